"""An independent oracle: it recomputes the report of a case the slow and obvious way, from the specification alone.

Coverage is a set of (document, position), redundancy a Counter, the budget a list cut short, bm25 its published formula.
Seeded random cases are compared field by field; so is a case of real text, when its data is there.
"""

import json
import math
import random
import re
import subprocess
import sys
import unicodedata
import unittest
from collections import Counter, defaultdict, namedtuple
from itertools import combinations, count, groupby, product
from pathlib import Path
from tempfile import TemporaryDirectory

import chroma
from support import ROOT, TestCase, atelier, real_run

CHUNKINGS = {"fixe_48_0": {"unit": "words", "size": 48, "overlap": 0}, "fixe_96_0": {"unit": "words", "size": 96, "overlap": 0},
             "fixe_48_16": {"unit": "words", "size": 48, "overlap": 16}, "paragraphes": {"unit": "paragraphs"}}
# Every stage but not_indexed: the four variants index every word.
STAGES = {"filtered_out", "cut_by_budget", "split_at_boundary", "not_matched", "ranked_too_low"}

Passage = namedtuple("Passage", "id document start end")
letters_and_digits = re.compile(r"[^\W_]+").findall


def naive_windows(words, size, overlap):
    found = []
    for start in range(0, words, size - overlap):
        found.append((start, min(start + size, words)))
        if start + size >= words:
            break
    return found


def naive_paragraphs(text):
    found, start = [], 0
    for blank, lines in groupby(text.split("\n"), key=lambda line: line.strip() == ""):
        end = start + sum(len(line.split()) for line in lines)
        found += [] if blank else [(start, end)]
        start = end
    return found


def folded(text):
    return " ".join(text.split())


def occurrences(quote, text):
    """[(first word, word after the last)] of a folded quote in a folded text, no figure at its edges."""
    found, at = [], text.find(quote)
    while at >= 0:
        edges = [(text[:edge][-1:], text[edge:edge + 1]) for edge in (at, at + len(quote))]
        if not any(before.isalnum() and after.isalnum() or unicodedata.combining(after or " ") for before, after in edges):
            first = text.count(" ", 0, at)
            found.append((first, first + len(quote.split())))
        at = text.find(quote, at + 1)
    return found


def without_accents(text):
    bare = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare).lower()


def search_terms(text, stop_words):
    terms = {}
    for word in letters_and_digits(unicodedata.normalize("NFC", text)):
        if word.lower() not in stop_words:
            terms.setdefault(without_accents(word), word.lower())
    return list(terms.values())


def refusals(document, filters):
    """The filters that a document does not pass."""
    values = {key: document.get(key) if isinstance(document.get(key), list) else [document.get(key)] for key in filters}
    return {key: wanted for key, wanted in filters.items() if wanted not in values[key]}


def intervals(positions):
    firsts = [position for position in positions if position - 1 not in positions]
    lasts = [position for position in positions if position + 1 not in positions]
    return [[first, last + 1] for first, last in zip(firsts, lasts)]


class Corpus:
    """What the variants share: texts, positions of words and quotes, and the settings that the report states."""

    def __init__(self, case, settings):
        self.top_k, self.budget, self.stop_words = (settings[key] for key in ("top_k", "budget_words", "stop_words"))
        self.texts = {document["id"]: document["text"] for document in case["documents"]}
        self.words = {id: [word.span() for word in re.finditer(r"\S+", text)] for id, text in self.texts.items()}
        self.folded = {id: folded(text) for id, text in self.texts.items()}
        self.refusals = {document["id"]: refusals(document, settings["filters"]) for document in case["documents"]}
        self.facts, self.quotes = {fact["id"]: fact for fact in case["facts"]}, {}
        for id, fact in self.facts.items():
            spans = occurrences(folded(fact["quote"]), self.folded[fact["document"]])
            [span] = [span for span in spans if span[0] == fact.get("start", span[0])]
            self.quotes[id] = Passage(id, fact["document"], *span)

    def text(self, document, start, end):
        return self.texts[document][self.words[document][start][0]:self.words[document][end - 1][1]]


class Variant:
    """The passages of one variant, and what a question must find, send, cover and lose among them."""

    def __init__(self, corpus, id):
        self.corpus, self.passages, self.lengths, self.rows = corpus, {}, {}, defaultdict(dict)
        for document, text in corpus.texts.items():
            unit, *sizes = CHUNKINGS[id].values()
            cuts = naive_windows(len(text.split()), *sizes) if unit == "words" else naive_paragraphs(text)
            self.passages[document] = [Passage("{}#{:04}".format(document, number), document, *cut)
                                       for number, cut in enumerate(cuts, 1)]
            for passage in self.passages[document]:
                tokens = letters_and_digits(without_accents(corpus.text(*passage[1:])))
                self.lengths[passage.id] = len(tokens)
                for token, times in Counter(tokens).items():
                    self.rows[token][passage.id] = times
        self.admitted = [p for document in self.passages if not corpus.refusals[document] for p in self.passages[document]]
        self.indexed = {(p.document, position) for p in self.admitted for position in range(p.start, p.end)}

    def ranking(self, terms):
        """(admitted passages that match, best first; bm25 by id; whether rounding alone tells two neighbours apart)."""
        scores, made_of = defaultdict(float), defaultdict(list)
        passages, mean = len(self.lengths), sum(self.lengths.values()) / len(self.lengths)
        for rows in (self.rows[without_accents(term)] for term in terms):
            idf = math.log((passages - len(rows) + 0.5) / (len(rows) + 0.5))
            for id, times in rows.items():
                length = 1 - 0.75 + 0.75 * self.lengths[id] / mean
                scores[id] -= (idf if idf > 0 else 1e-6) * (times * (1.2 + 1) / (times + 1.2 * length))
                made_of[id] += [self.lengths[id], len(rows), times]
        ranked = sorted((p for p in self.admitted if p.id in scores), key=lambda p: (scores[p.id], p.id))
        return ranked, scores, any(math.isclose(scores[a.id], scores[b.id], rel_tol=1e-12) and made_of[a.id] != made_of[b.id]
                                   for a, b in zip(ranked, ranked[1:]))

    def question(self, question, terms, ranked):
        """The record of a question, scores apart."""
        hits = list(enumerate(ranked[:self.corpus.top_k], 1))
        sent = [(hit.document, position, rank) for rank, hit in hits for position in range(hit.start, hit.end)]
        kept = Counter(place[:2] for place in sent[:self.corpus.budget])
        kept_of = Counter(rank for _, _, rank in sent[:self.corpus.budget])
        required = question.get("required_facts", [])
        ranks = {passage.id: rank for rank, passage in enumerate(ranked, 1)}
        found, kept_places = {place[:2] for place in sent}, set(kept)
        facts = [self.fact(self.corpus.quotes[id], sent, found, kept_places, ranks) for id in required]
        return {
            "id": question["id"], "text": question["text"], "answerable": question.get("answerable", True),
            "terms": [{"term": term, "passages": len(self.rows[without_accents(term)])} for term in terms],
            "query": " OR ".join('"{}"'.format(term) for term in terms),
            "no_hits": None if hits else "no_match" if terms else "no_term",
            "hits_before_budget": [dict(self.shown(rank, hit, hit.end), kept_words=kept_of[rank]) for rank, hit in hits],
            "context": [dict(self.shown(rank, hit, hit.start + kept_of[rank]), truncated=kept_of[rank] < hit.end - hit.start)
                        for rank, hit in hits if kept_of[rank]],
            "words_sent": sum(kept.values()), "redundant_words": sum(times - 1 for times in kept.values()),
            "facts": facts, "all_required_covered": all(fact["covered"] for fact in facts) if required else None}

    def shown(self, rank, passage, end):
        return {"rank": rank, "passage": passage.id, "document": passage.document, "start": passage.start, "end": end,
                "words": end - passage.start, "text": self.corpus.text(passage.document, passage.start, end)}

    def fact(self, quote, sent, found, kept, ranks):
        words = {(quote.document, position) for position in range(quote.start, quote.end)}
        written = self.corpus.facts[quote.id]["quote"]
        loss = None if words <= kept else self.loss(quote, words - kept, sent, found, ranks)
        others = {document for document, _ in kept} - {quote.document} if loss else set()
        elsewhere = sorted(id for id in others if any({(id, position) for position in range(*span)} <= kept
                                                      for span in occurrences(folded(written), self.corpus.folded[id])))
        if elsewhere:
            loss["same_words_in"] = elsewhere
        return {"id": quote.id, "document": quote.document, "quote": written, "start": quote.start, "end": quote.end,
                "words": len(words), "words_covered": len(words & kept), "covered": words <= kept, "loss": loss}

    def loss(self, quote, missing, sent, found, ranks):
        if self.corpus.refusals[quote.document]:
            return {"stage": "filtered_out", "filter": self.corpus.refusals[quote.document]}
        loss = {"missing": intervals(sorted(position for _, position in missing))}
        if not missing <= self.indexed:
            return dict(loss, stage="not_indexed")
        added = set()
        if missing <= found:
            for words_over in count(1):
                *place, rank = sent[self.corpus.budget + words_over - 1]
                added.add(tuple(place))
                if missing <= added:
                    return dict(loss,
                                stage="cut_by_budget",
                                passage=list(ranks)[rank - 1],
                                rank=rank,
                                words_over=words_over)
        pieces = [p for p in self.passages[quote.document] if p.start < quote.end and quote.start < p.end]
        whole = [p.id for p in pieces if p.start <= quote.start and quote.end <= p.end]
        if not whole:
            return dict(loss, stage="split_at_boundary", pieces=[{"passage": p.id, "rank": ranks.get(p.id)} for p in pieces])
        if not any(id in ranks for id in whole):
            return dict(loss, stage="not_matched", passage=whole[0])
        rank, best = min((ranks[id], id) for id in whole if id in ranks)
        return dict(loss, stage="ranked_too_low", passage=best, rank=rank)

    def summary(self, questions):
        """The summary, from the records of the questions."""
        answerable = [question for question in questions if question["answerable"]]
        facts = [fact for question in answerable for fact in question["facts"]]
        sizes = sorted(passage.end - passage.start for passages in self.passages.values() for passage in passages)
        median = (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2
        return {
            "passages_indexed": len(sizes), "words_indexed": sum(sizes), "answerable_questions": len(answerable),
            "complete_contexts": sum(question["all_required_covered"] for question in answerable),
            "facts_covered": sum(fact["covered"] for fact in facts), "facts_required": len(facts),
            "facts_whole": sum(any(passage.start <= fact["start"] and fact["end"] <= passage.end
                                   for passage in self.passages[fact["document"]]) for fact in facts),
            "words_sent": sum(question["words_sent"] for question in answerable),
            "redundant_words": sum(question["redundant_words"] for question in answerable),
            "losses": dict(Counter(fact["loss"]["stage"] for fact in facts if fact["loss"])),
            "passage_words": {"min": sizes[0], "median": int(median) if median % 1 == 0 else median, "max": sizes[-1]}}


def only(record, like):
    """A record of the report without the keys that the oracle does not know."""
    return {key: record.get(key) for key in like}


class OracleTest(TestCase):
    def setUp(self):
        super().setUp()
        self.stages, self.questions, self.doubtful, self.ties = Counter(), 0, 0, 0

    def check(self, case, report=None):
        report = report or self.report(case)
        corpus = Corpus(case, report["settings"])
        self.check_case(case, report, corpus)
        self.assertEqual([variant["id"] for variant in report["variants"]], list(CHUNKINGS))
        for reported in report["variants"]:
            variant = Variant(corpus, reported["id"])
            self.assertEqual(reported["chunking"], CHUNKINGS[reported["id"]])
            self.assertEqual(reported["passages"], {document: [[passage.start, passage.end] for passage in passages]
                                                    for document, passages in variant.passages.items()})
            self.assertEqual(len(reported["questions"]), len(case["questions"]))
            records = [self.check_question(variant, *pair) for pair in zip(case["questions"], reported["questions"])]
            summary = variant.summary(records)
            self.assertEqual(only(reported["summary"], summary), summary)
            self.assertEqual(*(repr(figures["passage_words"]["median"]) for figures in (reported["summary"], summary)))
            self.stages.update(summary["losses"])

    def check_case(self, case, report, corpus):
        self.assertEqual({document["id"]: document["words"] for document in report["case"]["documents"]},
                         {id: len(text.split()) for id, text in corpus.texts.items()})
        answerable = sum(question.get("answerable", True) for question in case["questions"])
        expected = {"words": sum(map(len, corpus.words.values())), "questions": len(case["questions"]),
                    "answerable_questions": answerable, "facts": len(case["facts"])}
        self.assertEqual(only(report["case"], expected), expected)
        settings = dict(case["settings"], filters=case.get("filters", {}))
        self.assertEqual(only(report["settings"], settings), settings)
        used = {id for question in case["questions"] for id in question.get("required_facts", [])}
        named = [[id] for id in corpus.facts if id not in used]
        named += [[a["id"], b["id"]] for a, b in combinations(report["variants"], 2) if a["passages"] == b["passages"]]
        for ids in named:
            self.assertTrue(any(all(id in warning for id in ids) for warning in report["warnings"]), ids)
        told = [warning for warning in report["warnings"] if not re.match("question .* aucun mot à chercher|filtre .* clé absente|"
                                                                          "variante .* le recouvrement n'a aucun effet", warning)]
        self.assertEqual(bool(told), bool(named))

    def check_question(self, variant, question, reported):
        """The record expected, once compared with the one reported."""
        terms, hits = search_terms(question["text"], variant.corpus.stop_words), reported["hits_before_budget"]
        ranked, scores, doubtful = variant.ranking(terms)
        best = [scores[passage.id] for passage in ranked][:variant.corpus.top_k]
        if doubtful:  # rounding may swap two equals: the order reported is followed, and its scores checked
            shown = [hit["passage"] for hit in hits]
            ranked.sort(key=lambda passage: shown.index(passage.id) if passage.id in shown else len(shown))
        self.assertEqual(len(hits), len(best))
        for hit, passage, score in zip(hits, ranked, best):
            self.assertAlmostEqual(hit["score"], score, delta=1e-8)
            self.assertAlmostEqual(hit["score"], scores[passage.id], delta=1e-8)
            self.assertEqual(hit["score"], round(hit["score"], 9))
        self.questions, self.doubtful = self.questions + 1, self.doubtful + doubtful
        self.ties += len(best) - len(set(best))
        expected = variant.question(question, terms, ranked)
        for key, known in expected.items():
            obtained = reported[key]
            if key in ("hits_before_budget", "context", "facts"):
                self.assertEqual(len(obtained), len(known))
                like = ["id", "covered", "words_covered"] if doubtful and key == "facts" else known[0] if known else []
                obtained, known = [only(record, like) for record in obtained], [only(record, like) for record in known]
            self.assertEqual(obtained, known, (question["id"], key))
        return expected


# Random cases: few words, so that they collide.
COMMON = """le la de du dû à où ou et l'hôtel hôtel d'accord l’accord plafond train billet Paris paris Été été sans pas
remboursé Remboursé remboursés frais nuit de\u0301le\u0301gue\u0301 œuvre classe sauf""".split()
RARE = "kayak zinc gelée brume l'avion orage quai tunnel vélo îlot".split()
SPACES = [" "] * 30 + ["  ", "\n", "\r\n", "\t", "\u00a0", " \n "]
BLANK_LINES = ["\n\n", "\n \t\n", "\r\n\r\n", "\n\n\n", " \n\n "]
SYNTAX = ["", "", "", " ?", "*", '"', " NOT ", " NEAR(", "^", ":", "-", ")", "'", " AND", ";--"]


def random_words(rng, length):
    return [rng.choice(RARE if rng.random() < 0.05 else COMMON) for _ in range(length)]


def spaced(rng, words):
    return "".join(word + rng.choice(SPACES) for word in words[:-1]) + words[-1]


def random_document(rng, id, shared):
    """From 5 to 220 words, in paragraphs some of which other documents repeat."""
    left, text = rng.randint(5, rng.choice([60, 220])), rng.choice(["", " ", "\n\n"])
    while left > 0:
        words = (rng.choice(shared) if rng.random() < 0.5 else random_words(rng, rng.randint(1, 90)))[:left]
        text, left = text + spaced(rng, words) + rng.choice(BLANK_LINES), left - len(words)
    return {"id": id, "text": text if rng.random() < 0.5 else text.rstrip(), "année": rng.choice([2023, 2024]),
            "actif": rng.random() < 0.7, "sujets": rng.sample(["hôtel", "train", "repas"], rng.randint(1, 3)),
            **({"pays": rng.choice(["FR", "BE"])} if rng.random() < 0.9 else {})}


def random_fact(rng, id, documents):
    document = rng.choice(documents)
    words = document["text"].split()
    length = min(len(words), rng.randint(*rng.choice([(1, 4), (5, 25), (26, 60)])))
    start = rng.randrange(len(words) - length + 1)
    quoted = words[start:start + length]
    if rng.random() < 0.5:
        quoted[0] = quoted[0].split("'")[-1]  # a quote may begin after an elision
    several = len(occurrences(" ".join(quoted), folded(document["text"]))) > 1
    return {"id": id, "document": document["id"], "quote": spaced(rng, quoted), **({"start": start} if several else {})}


def random_question(rng, id, facts):
    words = random_words(rng, rng.randint(1, 5)) if rng.random() < 0.9 else [rng.choice(["?", "« … »", "le la", "'"])]
    question = {"id": id, "text": " ".join(word + rng.choice(SYNTAX) for word in words)}
    if rng.random() < 0.15:
        return dict(question, answerable=False, **rng.choice([{}, {"required_facts": []}]))
    return dict(question, required_facts=rng.sample([fact["id"] for fact in facts], rng.randint(1, min(3, len(facts)))))


def random_case(seed):
    rng = random.Random(seed)
    shared = [random_words(rng, length) for length in (3, 12, 48, 60)]
    documents = [random_document(rng, id, shared) for id in rng.sample(["a", "B", "d-10", "d-2", "été"], rng.randint(1, 4))]
    passing = {key: rng.choice(value) if isinstance(value, list) else value for key, value in rng.choice(documents).items()}
    keys = rng.sample(sorted(set(passing) - {"id", "text"}), rng.choice([0, 0, 1, 1, 2, 3]))
    facts = [random_fact(rng, "f{}".format(number), documents) for number in range(rng.randint(1, 8))]
    return {"documents": documents, "facts": facts, "filters": {key: passing[key] for key in keys},
            "questions": [random_question(rng, "q{}".format(number), facts) for number in range(rng.randint(1, 6))],
            "settings": {"top_k": rng.randint(1, 5), "budget_words": rng.randint(5, 150),
                         **rng.choice([{}, {"stop_words": []}, {"stop_words": ["le", "dû", "été"]}])}}


class RandomCases(OracleTest):
    def test_the_report_equals_the_oracle(self):
        for seed in range(120):
            with self.subTest(seed=seed):
                self.check(random_case(seed))
        self.assertEqual(set(self.stages), STAGES)
        self.assertGreater(self.ties, 10)
        self.assertLess(self.doubtful, self.questions / 50)


class Properties(TestCase):
    def test_passages_without_overlap_tile_the_document_and_the_budget_holds(self):
        for seed in range(40):
            rng = random.Random(seed)
            words, budget = random_words(rng, rng.randint(1, 300)), rng.randint(1, 200)
            text = "".join(word + rng.choice(SPACES + BLANK_LINES + ["\x0c", "\x85", "\u2028", "\u3000"]) for word in words)
            report = self.report({
                "documents": [{"id": "d", "text": text}], "facts": [], "settings": {"budget_words": budget},
                "questions": [{"id": "q", "text": " ".join(words[:3] + ["plafond"]), "answerable": False}]})
            for variant in report["variants"]:
                if not variant["chunking"].get("overlap"):
                    positions = [position for span in variant["passages"]["d"] for position in range(*span)]
                    self.assertEqual(positions, list(range(len(words))))
                [question] = variant["questions"]
                for part in question["hits_before_budget"] + question["context"]:
                    self.assertEqual(part["text"].split(), words[part["start"]:part["end"]])
                    self.assertIn(part["text"], text)
                self.assertLessEqual(sum(len(part["text"].split()) for part in question["context"]), budget)

    def test_coverage_never_falls_when_a_passage_is_added(self):
        rng = random.Random(0)
        for _ in range(500):
            start, kept, before = rng.randrange(20), [], None
            quote = atelier.Span("d", start, start + rng.randint(1, 20))
            for start in rng.sample(range(40), 6):
                kept.insert(rng.randint(0, len(kept)), atelier.Span(rng.choice("dde"), start, start + rng.randint(0, 12)))
                missing = [position for span in atelier.missing_spans(quote, kept) for position in range(span.start, span.end)]
                covered = {position for span in kept if span.document == "d" for position in range(span.start, span.end)}
                self.assertEqual(missing, sorted(set(range(quote.start, quote.end)) - covered))
                self.assertTrue(before is None or set(missing) <= before)
                before = set(missing)

    def test_windows_equal_a_naive_loop(self):
        for words, size in product(range(41), range(1, 13)):
            for overlap in range(size):
                self.assertEqual(list(atelier.windows(words, size, overlap)), naive_windows(words, size, overlap))


@unittest.skipUnless(chroma.FOLDER.is_dir(), "real data absent: {}".format(chroma.FOLDER))
class RealText(OracleTest):
    @classmethod
    def setUpClass(cls):
        """A run with every word searched, as long as the oracle: beside it, in a process of its own."""
        folder = TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.paths = [str(Path(folder.name, name)) for name in ("case.json", "report.json")]
        Path(cls.paths[0]).write_text(json.dumps(chroma.make_case(stop_words=[], budget_words=100000)),
                                      encoding="utf-8")
        cls.process = subprocess.Popen(
            [sys.executable,
             str(ROOT / "atelier.py"), "--case", cls.paths[0], "--output", cls.paths[1]],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.process.wait)

    def test_a_report_equals_the_oracle(self):
        self.check(*real_run()[:2])
        self.assertEqual(set(self.stages), STAGES - {"filtered_out"})

    def test_counts_without_stop_words_nor_budget(self):
        self.assertEqual(self.process.wait(), 0)
        report = json.loads(Path(self.paths[1]).read_text(encoding="utf-8"))
        figures = {variant["id"]: [variant["summary"][key] for key in ("passages_indexed", "complete_contexts", "facts_covered")]
                   for variant in report["variants"]}
        self.assertEqual(figures, {"fixe_48_0": [4785, 138, 259], "fixe_96_0": [2395, 251, 449],
                                   "fixe_48_16": [7173, 166, 291], "paragraphes": [2196, 337, 570]})


if __name__ == "__main__":
    unittest.main()
