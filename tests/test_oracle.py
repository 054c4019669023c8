"""An independent oracle: it recomputes the report of a case the slow and obvious way, from the specification alone.

Coverage is a set of (document, position), redundancy a Counter, the budget a list cut short, bm25 its published formula.
Seeded random cases are compared field by field; so is a case of real text, when its data is beside the repository.
"""

import contextlib
import hashlib
import io
import json
import math
import random
import re
import sys
import tempfile
import unicodedata
import unittest
from collections import Counter, defaultdict, namedtuple
from itertools import count, groupby
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import atelier  # noqa: E402
import chroma  # noqa: E402

WINDOWS = {"fixe_48_0": (48, 0), "fixe_96_0": (96, 0), "fixe_48_16": (48, 16)}
VARIANTS = [*WINDOWS, "paragraphes"]
STAGES = {"filtered_out", "cut_by_budget", "split_at_boundary", "not_matched", "ranked_too_low"}  # four fixed variants index every word

Passage = namedtuple("Passage", "id document start end")


# --- Running the tool

def encode(case):
    return json.dumps(case, ensure_ascii=False).encode("utf-8")


def run(case):
    """The report that the command writes for a case."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "case.json"), Path(folder, "report.json")
        source.write_bytes(encode(case))
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = atelier.main(["--case", str(source), "--output", str(target)])
        if code:
            raise AssertionError("exit code {}: {}".format(code, said.getvalue()))
        return json.loads(target.read_text(encoding="utf-8"))


# --- Words, quotes, cuts, terms

def naive_windows(words, size, overlap):
    found = []
    for start in range(0, words, size - overlap):
        found.append((start, min(start + size, words)))
        if start + size >= words:
            break
    return found


def naive_paragraphs(text):
    found, start = [], 0
    for written, lines in groupby(text.split("\n"), key=lambda line: bool(line.strip())):
        end = start + sum(len(line.split()) for line in lines)
        if written:
            found.append((start, end))
        start = end
    return found


def inside_a_word(text, edge):
    before, after = text[:edge][-2:], text[edge:edge + 2]
    return (before[-1:].isalnum() and after[:1].isalnum()
            or bool(after) and unicodedata.category(after[0]).startswith("M")
            or bool(re.fullmatch(r"\d[.,]\d.?|.?\d[.,]\d", before[-2:] + after[:1]) or re.fullmatch(r"\d[.,]\d", before[-1:] + after)))


def occurrences(quote, text):
    """[(first word, word after the last)] of a quote; both texts have their white space folded."""
    found, at = [], text.find(quote)
    while at >= 0:
        if not inside_a_word(text, at) and not inside_a_word(text, at + len(quote)):
            first = text.count(" ", 0, at)
            found.append((first, first + len(quote.split())))
        at = text.find(quote, at + 1)
    return found


def folded(text):
    return " ".join(text.split())


def without_accents(text):
    bare = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare).lower()


def tokens(text):
    return re.findall(r"[^\W_]+", without_accents(text))


def search_terms(text, stop_words):
    kept = {}
    for run_of_letters in re.findall(r"[^\W_]+", unicodedata.normalize("NFC", text)):
        word = run_of_letters.lower()
        if word not in stop_words:
            kept.setdefault(without_accents(word), word)
    return list(kept.values())


def refusals(document, filters):
    """The filters that a document does not pass."""
    return {key: wanted for key, wanted in filters.items()
            if not (document.get(key) == wanted or isinstance(document.get(key), list) and wanted in document[key])}


class Corpus:
    """What every variant shares: texts, positions of words and quotes, settings read back from the report."""

    def __init__(self, case, settings):
        self.texts = {document["id"]: document["text"] for document in case["documents"]}
        self.bounds = {id: [word.span() for word in re.finditer(r"\S+", text)] for id, text in self.texts.items()}
        self.folded = {id: folded(text) for id, text in self.texts.items()}
        self.refusals = {document["id"]: refusals(document, settings["filters"]) for document in case["documents"]}
        self.top_k, self.budget, self.stop_words = settings["top_k"], settings["budget_words"], settings["stop_words"]
        self.facts = {fact["id"]: fact for fact in case["facts"]}
        self.quotes = {}
        for fact in case["facts"]:
            found = occurrences(folded(fact["quote"]), self.folded[fact["document"]])
            start, end = [span for span in found if span[0] == fact.get("start", span[0])][0]
            self.quotes[fact["id"]] = Passage(fact["id"], fact["document"], start, end)

    def text(self, document, start, end):
        bounds = self.bounds[document]
        return self.texts[document][bounds[start][0]:bounds[end - 1][1]]


class Variant:
    """The passages of one variant, their tokens, and what a question must find, send, cover and lose among them."""

    def __init__(self, corpus, id):
        self.corpus, self.passages = corpus, []
        for document, text in corpus.texts.items():
            cuts = naive_windows(len(text.split()), *WINDOWS[id]) if id in WINDOWS else naive_paragraphs(text)
            self.passages += [Passage("{}#{:04}".format(document, number), document, start, end)
                              for number, (start, end) in enumerate(cuts, 1)]
        self.admitted = [passage for passage in self.passages if not corpus.refusals[passage.document]]
        self.indexed = {(p.document, position) for p in self.admitted for position in range(p.start, p.end)}
        self.lengths, self.rows = {}, defaultdict(dict)
        for passage in self.passages:
            counts = Counter(tokens(corpus.text(*passage[1:])))
            self.lengths[passage.id] = sum(counts.values())
            for token, times in counts.items():
                self.rows[token][passage.id] = times

    def scores(self, terms):
        """({passage id: bm25}, {passage id: what its score is made of}); filtered passages count in the statistics."""
        scores, made_of = defaultdict(float), {}
        mean = sum(self.lengths.values()) / len(self.lengths)
        for term in terms:
            rows = self.rows.get(without_accents(term), {})
            idf = math.log((len(self.lengths) - len(rows) + 0.5) / (len(rows) + 0.5))
            idf = idf if idf > 0 else 1e-6
            for id, times in rows.items():
                scores[id] -= idf * (times * 2.2 / (times + 1.2 * (1 - 0.75 + 0.75 * self.lengths[id] / mean)))
                made_of.setdefault(id, [self.lengths[id]]).append((len(rows), times))
        return scores, made_of

    def ranking(self, terms):
        """(admitted passages that match, best first; their scores; whether rounding alone could swap two of them)."""
        scores, made_of = self.scores(terms)
        ranked = sorted((p for p in self.admitted if p.id in scores), key=lambda p: (scores[p.id], p.id))
        doubtful = any(math.isclose(scores[a.id], scores[b.id], rel_tol=1e-12) and made_of[a.id] != made_of[b.id]
                       for a, b in zip(ranked, ranked[1:]))
        return ranked, scores, doubtful

    def question(self, question, terms, ranked):
        """The record of a question, scores apart."""
        hits = ranked[:self.corpus.top_k]
        sent = [(hit.document, position, rank) for rank, hit in enumerate(hits, 1) for position in range(hit.start, hit.end)]
        kept = sent[:self.corpus.budget]
        kept_by_rank = Counter(rank for _, _, rank in kept)
        needed = question.get("required_facts", [])
        facts = [self.fact(self.corpus.quotes[id], sent, kept, ranked) for id in needed]
        return {
            "id": question["id"], "text": question["text"], "answerable": question.get("answerable", True),
            "terms": [{"term": term, "passages": len(self.rows.get(without_accents(term), {}))} for term in terms],
            "query": " OR ".join('"{}"'.format(term) for term in terms),
            "no_hits": None if hits else "no_match" if terms else "no_term",
            "hits_before_budget": [
                dict(self.shown(rank, hit, hit.end), kept_words=kept_by_rank[rank]) for rank, hit in enumerate(hits, 1)],
            "context": [
                dict(self.shown(rank, hit, hit.start + kept_by_rank[rank]), truncated=kept_by_rank[rank] < hit.end - hit.start)
                for rank, hit in enumerate(hits, 1) if kept_by_rank[rank]],
            "words_sent": len(kept),
            "redundant_words": sum(times - 1 for times in Counter(place[:2] for place in kept).values()),
            "facts": facts,
            "all_required_covered": all(fact["covered"] for fact in facts) if needed else None}

    def shown(self, rank, passage, end):
        return {"rank": rank, "passage": passage.id, "document": passage.document, "start": passage.start, "end": end,
                "words": end - passage.start, "text": self.corpus.text(passage.document, passage.start, end)}

    def fact(self, quote, sent, kept, ranked):
        words = {(quote.document, position) for position in range(quote.start, quote.end)}
        missing = words - {place[:2] for place in kept}
        loss = self.loss(quote, words, missing, sent, ranked) if missing else None
        echoes = self.same_words_in(quote, {place[:2] for place in kept})
        if loss and echoes:
            loss["same_words_in"] = echoes
        return {"id": quote.id, "document": quote.document, "quote": self.corpus.facts[quote.id]["quote"], "start": quote.start,
                "end": quote.end, "words": len(words), "words_covered": len(words - missing), "covered": not missing, "loss": loss}

    def loss(self, quote, words, missing, sent, ranked):
        if self.corpus.refusals[quote.document]:
            return {"stage": "filtered_out", "filter": self.corpus.refusals[quote.document]}
        positions = [position for position in range(quote.start, quote.end) if (quote.document, position) in missing]
        loss = {"missing": intervals(positions)}
        if missing - self.indexed:
            return dict(loss, stage="not_indexed")
        if missing <= {place[:2] for place in sent}:
            budget = self.corpus.budget
            still_missing = set(missing)
            for words_over in count(1):
                document, position, rank = sent[budget + words_over - 1]
                still_missing.discard((document, position))
                if not still_missing:
                    return dict(loss, stage="cut_by_budget", passage=ranked[rank - 1].id, rank=rank, words_over=words_over)
        ranks = {passage.id: rank for rank, passage in enumerate(ranked, 1)}
        near = [p for p in self.admitted if p.document == quote.document and p.start < quote.end and quote.start < p.end]
        whole = [p for p in near if p.start <= quote.start and quote.end <= p.end]
        if not whole:
            return dict(loss, stage="split_at_boundary", pieces=[{"passage": p.id, "rank": ranks.get(p.id)} for p in near])
        matched = [p for p in whole if p.id in ranks]
        if not matched:
            return dict(loss, stage="not_matched", passage=whole[0].id)
        best = min(matched, key=lambda p: ranks[p.id])
        return dict(loss, stage="ranked_too_low", passage=best.id, rank=ranks[best.id])

    def same_words_in(self, quote, kept):
        wanted = folded(self.corpus.facts[quote.id]["quote"])
        return sorted(
            document for document in {document for document, _ in kept} - {quote.document}
            if any({(document, position) for position in range(*span)} <= kept
                   for span in occurrences(wanted, self.corpus.folded[document])))

    def summary(self, questions):
        """The summary, from the records of the questions."""
        records = [record for record in questions if record["answerable"]]
        facts = [fact for record in records for fact in record["facts"]]
        sizes = sorted(passage.end - passage.start for passage in self.passages)
        median = (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2
        return {
            "passages_indexed": len(sizes), "words_indexed": sum(sizes),
            "complete_contexts": sum(record["all_required_covered"] for record in records), "answerable_questions": len(records),
            "facts_covered": sum(fact["covered"] for fact in facts), "facts_required": len(facts),
            "facts_whole": sum(any(p.document == fact["document"] and p.start <= fact["start"] and fact["end"] <= p.end
                                   for p in self.passages) for fact in facts),
            "words_sent": sum(record["words_sent"] for record in records),
            "redundant_words": sum(record["redundant_words"] for record in records),
            "losses": dict(Counter(fact["loss"]["stage"] for fact in facts if fact["loss"])),
            "passage_words": {"min": sizes[0], "median": int(median) if median == int(median) else median, "max": sizes[-1]}}


def intervals(positions):
    found = []
    for position in positions:
        if found and found[-1][1] == position:
            found[-1][1] += 1
        else:
            found.append([position, position + 1])
    return found


# --- Comparing

def only(record, like):
    """A record of the report without the keys that the oracle does not know."""
    return {key: record.get(key) for key in like}


class OracleTest(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.stages, self.questions, self.doubtful, self.ties = Counter(), 0, 0, 0

    def check(self, case):
        report = run(case)
        corpus = Corpus(case, report["settings"])
        self.check_case(case, report, corpus)
        self.assertEqual([variant["id"] for variant in report["variants"]], VARIANTS)
        for reported in report["variants"]:
            variant = Variant(corpus, reported["id"])
            self.assertEqual(reported["passages"], {id: [[p.start, p.end] for p in variant.passages if p.document == id]
                                                    for id in corpus.texts})
            records = [self.check_question(variant, *pair) for pair in zip(case["questions"], reported["questions"])]
            self.assertEqual(len(records), len(reported["questions"]))
            summary = variant.summary(records)
            self.assertEqual(only(reported["summary"], summary), summary)
            self.assertEqual(repr(reported["summary"]["passage_words"]["median"]), repr(summary["passage_words"]["median"]))
            self.stages.update(summary["losses"])

    def check_case(self, case, report, corpus):
        words = {id: len(bounds) for id, bounds in corpus.bounds.items()}
        expected = {
            "sha256": hashlib.sha256(encode(case)).hexdigest(), "file": "case.json", "words": sum(words.values()),
            "documents": [{"id": id, "words": words[id], "sha256": hashlib.sha256(text.encode("utf-8")).hexdigest()}
                          for id, text in corpus.texts.items()],
            "questions": len(case["questions"]), "facts": len(case["facts"]),
            "answerable_questions": sum(question.get("answerable", True) for question in case["questions"])}
        self.assertEqual(only(report["case"], expected), expected)
        self.assertEqual(report["settings"]["filters"], case.get("filters", {}))
        self.assertEqual(only(report["settings"], case["settings"]), case["settings"])

    def check_question(self, variant, question, reported):
        """The record expected, once compared with the one reported."""
        terms = search_terms(question["text"], variant.corpus.stop_words)
        ranked, scores, doubtful = variant.ranking(terms)
        hits = reported["hits_before_budget"]
        self.questions += 1
        self.doubtful += doubtful
        if doubtful:  # two scores differ by rounding alone: follow the order reported, which the scores below must allow
            shown = [hit["passage"] for hit in hits]
            ranked.sort(key=lambda p: shown.index(p.id) if p.id in shown else len(shown))
        self.assertEqual(len(hits), min(len(ranked), variant.corpus.top_k))
        for hit, passage in zip(hits, ranked):
            self.assertAlmostEqual(hit["score"], scores[passage.id], delta=1e-8)
            self.assertEqual(hit["score"], round(hit["score"], 9))
        self.ties += len(hits) - len({scores[passage.id] for passage in ranked[:len(hits)]})
        expected = variant.question(question, terms, ranked)
        for key, known in expected.items():
            obtained = reported.get(key)
            if key in ("hits_before_budget", "context", "facts"):
                self.assertEqual(len(obtained), len(known))
                obtained = [only(*pair) for pair in zip(obtained, known)]
            self.assertEqual(obtained, known, (variant.passages[0].id, question["id"], key))
        return expected


# --- Random cases

COMMON = """le la de du dû à où ou et l'hôtel hôtel d'accord l’accord plafond train billet Paris paris été Été sans pas
remboursé Remboursé remboursés frais nuit de\u0301le\u0301gue\u0301 œuvre classe sauf""".split()
RARE = "kayak zinc gelée brume l'avion orage quai tunnel vélo îlot".split()
SPACES = [" "] * 30 + ["  ", "\n", "\r\n", "\t", "\u00a0", " \n "]
BLANK_LINES = ["\n\n", "\n \t\n", "\r\n\r\n", "\n\n\n", " \n\n "]
SYNTAX = ["", "", "", " ?", "*", '"', " NOT ", " NEAR(", "^", ":", "-", ")", "'", " AND", ";--"]


def spaced(rng, words, spaces=SPACES):
    return "".join(word + rng.choice(spaces) for word in words[:-1]) + words[-1]


def random_words(rng, length):
    return [rng.choice(RARE if rng.random() < 0.05 else COMMON) for _ in range(length)]


def random_text(rng, shared):
    """From 5 to 220 words, in paragraphs some of which other documents repeat."""
    length, paragraphs = rng.choice([rng.randint(5, 60), rng.randint(5, 220)]), []
    while sum(map(len, paragraphs)) < length:
        paragraphs.append(rng.choice(shared) if rng.random() < 0.3 else random_words(rng, rng.randint(1, 90)))
    left, text = length, rng.choice(["", " ", "\n\n"])
    for paragraph in paragraphs:
        kept, left = paragraph[:left], left - len(paragraph[:left])
        text += spaced(rng, kept) + (rng.choice(BLANK_LINES) if left else rng.choice(["", "\n", "\n\n "]))
    return text


def random_document(rng, id, shared):
    document = {"id": id, "text": random_text(rng, shared), "pays": rng.choice(["FR", "BE"]), "actif": rng.random() < 0.7,
                "sujets": rng.sample(["hôtel", "train", "repas"], rng.randint(1, 3)), "année": rng.choice([2023, 2024])}
    if rng.random() < 0.1:
        del document["pays"]
    return document


def random_fact(rng, id, documents):
    document = rng.choice(documents)
    words = document["text"].split()
    length = min(len(words), rng.choice([rng.randint(1, 4), rng.randint(5, 25), rng.randint(26, 60)]))
    start = rng.randrange(len(words) - length + 1)
    quoted = words[start:start + length]
    if "'" in quoted[0] and rng.random() < 0.5:
        quoted[0] = quoted[0].split("'")[1]  # a quote may begin after an elision: its positions are the words that it touches
    fact = {"id": id, "document": document["id"], "quote": spaced(rng, quoted)}
    if len(occurrences(" ".join(quoted), folded(document["text"]))) > 1 or rng.random() < 0.1:
        fact["start"] = start
    return fact


def random_question(rng, id, facts):
    words = random_words(rng, rng.randint(1, 5)) if rng.random() < 0.9 else [rng.choice(["?", "« … »", "le la", "'"])]
    question = {"id": id, "text": "".join(word + rng.choice(SYNTAX) + " " for word in words).strip()}
    if rng.random() < 0.15:
        return dict(question, answerable=False, **rng.choice([{}, {"required_facts": []}]))
    return dict(question, required_facts=rng.sample([fact["id"] for fact in facts], rng.randint(1, min(3, len(facts)))))


def random_case(seed):
    rng = random.Random(seed)
    shared = [random_words(rng, length) for length in (3, 12, 48, 60)]
    ids = rng.sample(["a", "B", "doc-10", "doc-2", "été"], rng.randint(1, 4))
    documents = [random_document(rng, id, shared) for id in ids]
    model = rng.choice(documents)
    passed = {key: rng.choice(value) if isinstance(value, list) else value for key, value in model.items() if key not in ("id", "text")}
    filters = {key: passed[key] for key in rng.sample(sorted(passed), rng.choice([0, 0, 1, 1, 2, 3]))}
    settings = {"top_k": rng.randint(1, 5), "budget_words": rng.randint(5, 150),
                "stop_words": rng.choice([[], ["le", "dû", "été"], None])}
    facts = [random_fact(rng, "f{}".format(number), documents) for number in range(rng.randint(1, 8))]
    return {"documents": documents, "facts": facts, **({"filters": filters} if filters or rng.random() < 0.5 else {}),
            "settings": {key: value for key, value in settings.items() if value is not None},
            "questions": [random_question(rng, "q{}".format(number), facts) for number in range(rng.randint(1, 6))]}


class RandomCases(OracleTest):
    def test_the_report_equals_the_oracle_on_seeded_random_cases(self):
        for seed in range(120):
            with self.subTest(seed=seed):
                self.check(random_case(seed))
        self.assertEqual(set(self.stages), STAGES)
        self.assertGreater(self.ties, 20)
        self.assertLess(self.doubtful, self.questions / 50)
        print(self.stages, self.ties, self.doubtful, self.questions)


class RealText(OracleTest):
    @classmethod
    def setUpClass(cls):
        if not chroma.FOLDER.is_dir():
            raise unittest.SkipTest("real data absent: {}".format(chroma.FOLDER))
        cls.case = chroma.make_case()

    def test_counts_without_stop_words_nor_budget(self):
        report = run(dict(self.case, settings={"stop_words": [], "budget_words": 100000}))
        summaries = {variant["id"]: variant["summary"] for variant in report["variants"]}
        figures = {id: (s["passages_indexed"], s["complete_contexts"], s["facts_covered"]) for id, s in summaries.items()}
        self.assertEqual(figures, {"fixe_48_0": (4785, 138, 259), "fixe_96_0": (2395, 251, 449),
                                   "fixe_48_16": (7173, 166, 291), "paragraphes": (2196, 337, 570)})

    def test_the_report_equals_the_oracle(self):
        self.check(dict(self.case, settings={"stop_words": chroma.ENGLISH_STOP_WORDS}))
        print(self.stages, self.ties, self.doubtful, self.questions)


if __name__ == "__main__":
    unittest.main()
