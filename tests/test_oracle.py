"""An independent oracle: it recomputes a report the slow and obvious way, from the specification alone.

Coverage is a set of (document, position), redundancy a Counter, the budget a list cut short, bm25 its
published formula. Seeded random cases are compared field by field; so are the cases of the repository, and a
case of real text when its data is there. What the report says would be enough is run again, and less.

The passages of `sections` are read from the export: searched, sent and judged as the others.
"""

import copy
import json
import math
import random
import re
import subprocess
import sys
import unicodedata
import unittest
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, namedtuple
from functools import lru_cache
from itertools import combinations, groupby, product
from pathlib import Path
from tempfile import TemporaryDirectory

import chroma
from support import ROOT, TESTS, TestCase, atelier, run

CHUNKINGS = {"fixe_48_0": {"unit": "words", "size": 48, "overlap": 0},
             "fixe_96_0": {"unit": "words", "size": 96, "overlap": 0},
             "fixe_48_16": {"unit": "words", "size": 48, "overlap": 16},
             "paragraphes": {"unit": "paragraphs"}}
# Every stage but not_indexed: the variants of these cases index every word.
STAGES = {"filtered_out", "cut_by_budget", "split_at_boundary", "not_matched", "ranked_too_low"}
NOT_METADATA = {"id", "title", "text", "file", "structure", "sections"}
ENDLESS = 10 ** 7  # more words, and more passages, than any of these cases has

# `lead`: the words of its text before its own (a repeated title, a half word), `size`: all its text's words,
# `first` and `last`: the interval of the words that it touches, halves included.
Passage = namedtuple("Passage", "name document start end lead size first last text characters")
Quote = namedtuple("Quote", "document start end written")
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
    return unicodedata.normalize("NFC", re.sub("[’ʼ]", "'", " ".join(text.split())))


def inside(before, after):
    """Whether the edge between two texts falls inside a word or a number."""
    figures = re.search(r"\d[.,'/-]$", before) and after[:1].isdigit()
    figures = figures or before[-1:].isdigit() and re.match(r"[.,'/-]\d", after)
    thousands = re.search(r"(?<!\d)\d{1,3} ?$", before) and re.match(r" ?\d{3}(?!\d)", after)
    thousands = thousands and (before[-1] == " ") != (after[0] == " ")
    minus = re.search(r"(?<![^\s(])[-−]$", before) and after[:1].isdigit()
    return bool(figures or thousands or minus or before[-1:].isalnum() and after[:1].isalnum()
                or unicodedata.combining(after[:1] or " "))


def occurrences(quote, text):
    """[(first word, word after the last)] of a folded quote in a folded text, no word or number cut."""
    found, at = [], text.find(quote)
    while at >= 0:
        edges = at, at + len(quote)
        if not any(inside(text[max(0, edge - 9):edge], text[edge:edge + 9]) for edge in edges):
            first = text.count(" ", 0, at)
            found.append((first, first + len(quote.split())))
        at = text.find(quote, at + 1)
    return found


def without_accents(text):
    bare = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare).lower()


folded_word = lru_cache(maxsize=None)(without_accents)


def search_terms(text, stop_words):
    terms = {}
    for number, run_of in enumerate(re.finditer(r"[^\W_]+", unicodedata.normalize("NFC", text))):
        word, after = run_of[0], run_of.string[run_of.end():][:1]
        alone = len(word) == 1 and word.isupper() and number and after not in ("'", "’", "ʼ")
        if alone or word.lower() not in stop_words:
            terms.setdefault(folded_word(word), word.lower())
    return list(terms.values())


def likeness(one, other):
    """The share of the longer of two folded words that both begin with; 0 when too few."""
    shorter, longer = sorted((len(one), len(other)))
    shared = next((number for number, (a, b) in enumerate(zip(one, other)) if a != b), shorter)
    return shared / longer if shared >= 4 and 10 * shared >= 6 * longer else 0


class OneOf(tuple):
    """What is equal to any of its elements, where the specification leaves the choice."""

    def __eq__(self, other):
        return any(other == one for one in tuple(self))

    __hash__ = tuple.__hash__


@lru_cache(maxsize=None)
def by_first_letters(text):
    """{four folded letters: the words of a text that begin so}."""
    found = defaultdict(set)
    for word in set(letters_and_digits(unicodedata.normalize("NFC", text))):
        found[folded_word(word)[:4]].add(word)
    return found


def near_words(terms, text):
    """[[term, the words of a text nearest to it, all equally], …] of the terms that have some."""
    pairs = []
    for term in terms:
        alike = by_first_letters(text).get(folded_word(term)[:4], ())
        shares = {word: likeness(folded_word(term), folded_word(word)) for word in alike}
        best = max(shares.values(), default=0)
        pairs += [[term, OneOf(word for word in shares if shares[word] == best)]] if best else []
    return pairs


def passes(value, wanted):
    """Whether a value, or one of a list's, is the one wanted, or in the bounds wanted."""
    values = [one for one in (value if isinstance(value, list) else [value]) if one is not None]
    if not isinstance(wanted, dict):
        return wanted in values
    return any(wanted.get("gte", one) <= one <= wanted.get("lte", one) and one in wanted.get("in", [one])
               for one in values)


def refusals(metadata, filters):
    """The filters that some metadata do not pass, with what was found."""
    return {key: {"wanted": wanted, "found": metadata.get(key)} for key, wanted in filters.items()
            if not passes(metadata.get(key), wanted)}


def intervals(positions):
    firsts = [position for position in positions if position - 1 not in positions]
    lasts = [position for position in positions if position + 1 not in positions]
    return [[first, last + 1] for first, last in zip(firsts, lasts)]


def first_words(text, number):
    """The start of a text, to the end of one of its words."""
    return text[:[word.end() for word in re.finditer(r"\S+", text)][number - 1]]


def header(text):
    """The metadata of a contract, its title among them."""
    title, *lines = text.split("\n\n")[0].split("\n")
    pairs = [line.split(" : ", 1) for line in lines]
    found = {re.sub(r"\s", "_", without_accents(key)): value for key, value in pairs}
    return dict(found, parties=found["parties"].split(" ; "), title=title)


class Corpus:
    """What the variants share: texts, positions of words and quotes, metadata, the settings of the report."""

    def __init__(self, case, settings):
        self.top_k, self.budget = settings["top_k"], settings["budget_words"]
        self.stop_words, self.filters = settings["stop_words"], settings["filters"]
        self.texts, self.metadata, self.sections, self.titles = {}, {}, {}, {}
        for document in case["documents"]:
            self.read(document, settings.get("index_titles"))
        self.words = {name: [word.span() for word in re.finditer(r"\S+", text)]
                      for name, text in self.texts.items()}
        self.edges = {name: tuple(zip(*spans)) for name, spans in self.words.items()}
        self.folded = {name: folded(text) for name, text in self.texts.items()}
        self.quotes = {fact["id"]: [self.locate(quote) for quote in fact.get("any_of", [fact])]
                       for fact in case["facts"]}

    def read(self, document, index_titles):
        name, sections = document["id"], document.get("sections", [])
        own = {key: value for key, value in document.items() if key not in NOT_METADATA}
        self.texts[name] = "\n\n".join(section["text"] for section in sections or [document])
        if document.get("structure") == "contract":
            own = dict(header(self.texts[name]), **own)
            self.titles[name] = " ".join([own["reference"], own.pop("title"), *own["parties"]])
        else:
            self.titles[name] = document.get("title", "")
        self.titles[name] = self.titles[name] if index_titles else ""
        self.metadata[name], self.sections[name], at = own, [], 0
        for section in sections:
            added = {key: value for key, value in section.items() if key not in NOT_METADATA}
            self.sections[name].append((at, at + len(section["text"]), dict(own, **added)))
            at += len(section["text"]) + 2

    def locate(self, quote):
        spans = occurrences(folded(quote["quote"]), self.folded[quote["document"]])
        [span] = [span for span in spans if span[0] == quote.get("start", span[0])]
        return Quote(quote["document"], *span, quote["quote"])

    def characters(self, document, start, end):
        return self.words[document][start][0], self.words[document][end - 1][1]

    def refusals(self, document, characters, filters):
        """Those of the sections that some characters overlap; of the document where there is none."""
        touched = [metadata for start, end, metadata in self.sections[document]
                   if start < characters[1] and characters[0] < end]
        told = [refusals(metadata, filters) for metadata in touched or [self.metadata[document]]]
        return {key: {"wanted": wanted, "found": OneOf(one[key]["found"] for one in told if key in one)}
                for key, wanted in filters.items() if any(key in one for one in told)}


class Variant:
    """The passages of one variant, and what a question must find, send, cover and lose among them."""

    CUT = "start_char", "end_char", "text"

    def __init__(self, corpus, chunking, heeds_questions=True, exported=()):
        self.corpus, self.heeds_questions, self.passages = corpus, heeds_questions, {}
        self.lengths, self.rows, self.at, self.of = {}, defaultdict(dict), defaultdict(list), {}
        for document in corpus.texts:
            rows = [only(row, Variant.CUT) for row in exported if row["document"] == document]
            cuts = rows if chunking["unit"] == "sections" else self.cuts(document, **chunking)
            self.passages[document] = [self.passage(document, number, **cut)
                                       for number, cut in enumerate(cuts, 1)]
        self.every = [passage for passages in self.passages.values() for passage in passages]
        for passage in self.every:
            self.index(passage)
        self.mean = sum(self.lengths.values()) / len(self.every)

    def cuts(self, document, unit, size=None, overlap=None):
        text = self.corpus.texts[document]
        if unit == "chars":
            spans = naive_windows(len(text), size, overlap)
        else:
            words = len(text.split())
            spans = naive_windows(words, size, overlap) if unit == "words" else naive_paragraphs(text)
            spans = [self.corpus.characters(document, *span) for span in spans]
        return [dict(zip(self.CUT, (start, end, text[start:end]))) for start, end in spans]

    def passage(self, document, number, start_char, end_char, text):
        starts, ends = self.corpus.edges[document]
        first, last = bisect_right(ends, start_char), bisect_left(starts, end_char)
        size, halved = len(text.split()), first < last and starts[first] < start_char
        start = first + halved
        end = max(start, last - (first < last and ends[last - 1] > end_char))
        return Passage("{}#{:04}".format(document, number), document, start, end,
                       size - (last - first) + halved, size, first, last, text, (start_char, end_char))

    def index(self, passage):
        self.of[passage.name] = passage
        searched = self.corpus.titles[passage.document] + "\n" + passage.text
        tokens = letters_and_digits(without_accents(searched))
        self.lengths[passage.name] = len(tokens)
        for token, times in Counter(tokens).items():
            self.rows[token][passage.name] = times
        for position in range(passage.first, passage.last):
            self.at[passage.document, position].append(passage)

    def filters(self, question):
        return dict(self.corpus.filters, **(question.get("filters", {}) if self.heeds_questions else {}))

    def per_document(self, question):
        return question.get("per_document") if self.heeds_questions else None

    def refusals(self, passage, filters):
        return self.corpus.refusals(passage.document, passage.characters, filters)

    def part(self, term, name):
        """What a term adds to the relevance of a passage that holds it, by the formula of bm25."""
        rows = self.rows[folded_word(term)]
        times, passages = rows[name], len(self.every)
        idf = math.log((passages - len(rows) + 0.5) / (len(rows) + 0.5))
        length = 1 - 0.75 + 0.75 * self.lengths[name] / self.mean
        return (idf if idf > 0 else 1e-6) * (times * (1.2 + 1) / (times + 1.2 * length))

    def ranking(self, question, terms, shown):
        """(admitted passages that match, best first; bm25 by name; whether rounding alone tells two apart).

        Where it does, equals follow the order shown.
        """
        scores, made_of, filters = defaultdict(float), defaultdict(list), self.filters(question)
        passages = len(self.every)
        for rows in (self.rows[folded_word(term)] for term in terms):
            idf = math.log((passages - len(rows) + 0.5) / (len(rows) + 0.5))
            for name, times in rows.items():
                length = 1 - 0.75 + 0.75 * self.lengths[name] / self.mean
                scores[name] -= (idf if idf > 0 else 1e-6) * (times * (1.2 + 1) / (times + 1.2 * length))
                made_of[name].append((self.lengths[name], len(rows), times))
        ranked = [self.of[name] for _, name in sorted((score, name) for name, score in scores.items())
                  if not filters or not self.refusals(self.of[name], filters)]
        doubtful, groups = False, [0]
        for one, other in zip(ranked, ranked[1:]):
            close = scores[other.name] - scores[one.name] <= -1e-12 * scores[one.name]
            doubtful = doubtful or close and made_of[one.name] != made_of[other.name]
            groups.append(groups[-1] + (not close))
        if doubtful:
            place = {name: rank for rank, name in enumerate(shown)}
            keys = {passage.name: (group, place.get(passage.name, ENDLESS))
                    for group, passage in zip(groups, ranked)}
            ranked.sort(key=lambda passage: keys[passage.name])
        return ranked, scores, doubtful

    def hits(self, ranked, per_document, top_k):
        """The best of all, or the best of each document where the question asks for so many of each."""
        if per_document is None:
            return ranked[:top_k]
        seen, best = Counter(), []
        for passage in ranked:
            seen[passage.document] += 1
            best += [passage] if seen[passage.document] <= per_document else []
        return best

    def places(self, passage):
        """For each word of a passage's text, the (document, position) that it proves, or None."""
        own = [(passage.document, position) for position in range(passage.start, passage.end)]
        return [None] * passage.lead + own + [None] * (passage.size - passage.lead - len(own))

    def question(self, question, terms, ranked, scores):
        """The record of a question."""
        hits = list(enumerate(self.hits(ranked, self.per_document(question), self.corpus.top_k), 1))
        sent = [(place, rank) for rank, hit in hits for place in self.places(hit)]
        kept_of = Counter(rank for _, rank in sent[:self.corpus.budget])
        kept = Counter(place for place, _ in sent[:self.corpus.budget] if place)
        trip = Trip(self, question, terms, ranked, [hit for _, hit in hits], scores, sent, set(kept))
        required = question.get("required_facts", [])
        facts = [trip.fact(name) for name in required]
        return {
            "id": question["id"], "text": question["text"], "answerable": question.get("answerable", True),
            "terms": [{"term": term, "passages": len(self.rows[folded_word(term)])} for term in terms],
            "query": " OR ".join('"{}"'.format(term) for term in terms),
            "no_hits": None if hits else self.no_hits(question, terms),
            "hits_before_budget": [dict(self.shown(rank, hit, hit.size), kept_words=kept_of[rank],
                                        score=scores[hit.name], terms=trip.terms(hit)) for rank, hit in hits],
            "context": [dict(self.shown(rank, hit, kept_of[rank]), truncated=kept_of[rank] < hit.size)
                        for rank, hit in hits if kept_of[rank]],
            "words_sent": min(len(sent), self.corpus.budget),
            "redundant_words": sum(times - 1 for times in kept.values()),
            "facts": facts,
            "all_required_covered": all(fact["covered"] for fact in facts) if required else None,
            "needed": trip.needed(required) if required else None}

    def no_hits(self, question, terms):
        filters = self.filters(question)
        if terms and all(self.refusals(passage, filters) for passage in self.every):
            return "no_document"
        return "no_match" if terms else "no_term"

    def shown(self, rank, passage, words):
        own = min(max(0, words - passage.lead), passage.end - passage.start)
        return {"rank": rank, "passage": passage.name, "document": passage.document, "start": passage.start,
                "end": passage.start + own, "words": words,
                "text": passage.text if words == passage.size else first_words(passage.text, words)}

    def summary(self, questions):
        """The summary, from the records of the questions."""
        answerable = [question for question in questions if question["answerable"]]
        facts = [fact for question in answerable for fact in question["facts"]]
        sizes = sorted(passage.size for passage in self.every)
        median = (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2
        needed = [question["needed"] for question in answerable]
        budgets = [told["budget_words"] for told in needed]
        # Whatever top_k, a question by document has its own hits: complete from the first rank, or never.
        depths = [(told["deeper"] or {}).get("top_k", told["budget_words"] and 1) for told in needed]
        return {
            "passages_indexed": len(sizes), "words_indexed": sum(sizes),
            "answerable_questions": len(answerable),
            "complete_contexts": sum(question["all_required_covered"] for question in answerable),
            "facts_covered": sum(fact["covered"] for fact in facts), "facts_required": len(facts),
            "facts_whole": sum(any(map(self.whole, self.corpus.quotes[fact["id"]])) for fact in facts),
            "words_sent": sum(question["words_sent"] for question in answerable),
            "redundant_words": sum(question["redundant_words"] for question in answerable),
            "losses": dict(Counter(fact["loss"]["stage"] for fact in facts if fact["loss"])),
            "budget_curve": steps(budgets), "depth_curve": steps(depths),
            "passage_words": {"min": sizes[0], "max": sizes[-1],
                              "median": median if median % 1 else int(median)}}

    def touching(self, quote):
        """The passages that hold a word of a quote, or a part of one, in text order."""
        found = {p.name: p for place in words_of(quote) for p in self.at[place]}
        return [found[name] for name in sorted(found)]

    def whole(self, quote):
        return [p for p in self.touching(quote) if p.start <= quote.start and quote.end <= p.end]


def steps(needed):
    """[[setting, complete contexts], …] from what the questions need."""
    known = sorted(setting for setting in needed if setting is not None)
    return [[setting, sum(other <= setting for other in known)] for setting in sorted(set(known))]


def words_of(quote):
    return {(quote.document, position) for position in range(quote.start, quote.end)}


def enough(variant, hits, required):
    """(rank, words) by which hits have brought, in their order, every word of one alternative a fact."""
    alternatives = [[words_of(quote) for quote in variant.corpus.quotes[name]] for name in required]
    wanted = set().union(*(words for fact in alternatives for words in fact))
    near = {passage.name for place in wanted for passage in variant.at[place]}
    brought, words = set(), 0
    for rank, hit in enumerate(hits, 1):
        for number, place in enumerate(variant.places(hit) if hit.name in near else (), 1):
            if place in wanted and place not in brought:
                brought.add(place)
                if all(any(quoted <= brought for quoted in fact) for fact in alternatives):
                    return rank, words + number
        words += hit.size
    return None


class Trip:
    """A question's way through a variant: what it found and sent, and from that the fate of each fact."""

    def __init__(self, variant, question, terms, ranked, hits, scores, sent, kept):
        self.variant, self.ranked, self.hits, self.scores = variant, ranked, hits, scores
        self.searched, self.sent, self.kept, self.corpus = terms, sent, kept, variant.corpus
        self.filters, self.per_document = variant.filters(question), variant.per_document(question)
        self.found = {place for place, _ in sent}
        self.ranks = {passage.name: rank for rank, passage in enumerate(ranked, 1)}
        self.ranks.update((hit.name, rank) for rank, hit in enumerate(hits, 1))

    def terms(self, passage):
        held = [term for term in self.searched if passage.name in self.variant.rows[folded_word(term)]]
        return [{"term": term, "times": self.variant.rows[folded_word(term)][passage.name],
                 "part": self.variant.part(term, passage.name)} for term in held]

    def fact(self, name):
        judged = [self.judge(quote) for quote in self.corpus.quotes[name]]
        share = [fact["words_covered"] / fact["words"] for fact in judged]
        best = share.index(max(share))
        if len(judged) == 1:
            return dict(judged[0], id=name)
        covered_by = best if judged[best]["covered"] else None
        return dict(judged[best], id=name, alternatives=judged, covered_by=covered_by)

    def judge(self, quote):
        words = words_of(quote)
        loss = None if words <= self.kept else self.loss(quote, words - self.kept)
        if loss:
            loss["places"] = self.places_of(loss)
            others = {document for document, _ in self.kept} - {quote.document}
            elsewhere = sorted(name for name in others if any(
                words_of(Quote(name, *span, None)) <= self.kept
                for span in occurrences(folded(quote.written), self.corpus.folded[name])))
            loss.update({"same_words_in": elsewhere} if elsewhere else {})
        return {"document": quote.document, "quote": quote.written, "start": quote.start, "end": quote.end,
                "words": len(words), "words_covered": len(words & self.kept), "covered": words <= self.kept,
                "loss": loss}

    def loss(self, quote, missing):
        touching, document = self.variant.touching(quote), quote.document
        admitted = [p for p in touching if not self.variant.refusals(p, self.filters)]
        refused = [p for p in touching if p not in admitted]
        lost = [place for place in words_of(quote) if not any(p in admitted for p in self.variant.at[place])]
        if any(p in refused for place in lost for p in self.variant.at[place]):
            told = [why for p in refused for why in self.variant.refusals(p, self.filters).items()]
            found = {key: OneOf(value for name, why in told if name == key for value in why["found"])
                     for key in dict(told)}
            told = {key: {"wanted": self.filters[key], "found": found[key]} for key in found}
            return {"stage": "filtered_out", "filter": told}
        if not self.corpus.sections[document] and refusals(self.corpus.metadata[document], self.filters):
            return {"stage": "filtered_out", "filter": refusals(self.corpus.metadata[document], self.filters)}
        loss = {"missing": intervals(sorted(position for _, position in missing))}
        if lost:
            return dict(loss, stage="not_indexed")
        pieces = [{"passage": p.name, "rank": self.ranks.get(p.name)} for p in admitted]
        whole = [p.name for p in admitted if p.start <= quote.start and quote.end <= p.end]
        if missing <= self.found:
            loss.update(self.over_budget(missing), stage="cut_by_budget")
            return loss if whole else dict(loss, pieces=pieces)
        if not whole:
            longest = max(p.end - p.start for p in self.variant.every)
            longer = {"longest": longest} if quote.end - quote.start > longest else {}
            return dict(loss, stage="split_at_boundary", pieces=pieces, **longer)
        if not any(name in self.ranks for name in whole):
            return dict(loss, stage="not_matched", passage=whole[0])
        rank, best = min((self.ranks[name], name) for name in whole if name in self.ranks)
        limit = "top_k" if self.per_document is None else "per_document"
        return dict(loss, stage="ranked_too_low", passage=best, rank=rank, limit=limit)

    def over_budget(self, missing):
        left = set(missing)
        for words_over, (place, rank) in enumerate(self.sent[self.corpus.budget:], 1):
            left.discard(place)
            if not left:
                return {"passage": self.hits[rank - 1].name, "rank": rank, "words_over": words_over}

    def places_of(self, loss):
        names = [piece["passage"] for piece in [loss] + loss.get("pieces", []) if "passage" in piece]
        return [self.place(self.variant.of[name]) for name in dict.fromkeys(names)]

    def place(self, passage):
        held, rank = self.terms(passage), self.ranks.get(passage.name)
        lacking = [term for term in self.searched if term not in {one["term"] for one in held}]
        return {"passage": passage.name, "document": passage.document, "start": passage.start,
                "end": passage.end, "words": passage.size, "rank": rank,
                "lead_words": passage.lead, "score": self.scores[passage.name] if rank else None, "terms": held, "lacking": lacking,
                "near": near_words(lacking, passage.text), "text": passage.text}

    def needed(self, required):
        """The smallest budgets: with the case's depth, then with the least that is enough."""
        limit, here = "top_k", enough(self.variant, self.hits, required)
        deeper = enough(self.variant, self.ranked, required)
        if self.per_document is not None:
            limit, deepest = "per_document", max(Counter(p.document for p in self.ranked).values(), default=0)
            tries = [(depth, enough(self.variant, self.variant.hits(self.ranked, depth, None), required))
                     for depth in range(1, deepest + 1)] if deeper else []
            deeper = next(((depth, found[1]) for depth, found in tries if found), None)
        return {"budget_words": here and here[1],
                "deeper": deeper and {limit: deeper[0], "budget_words": deeper[1]}}


def only(record, like):
    """A record of the report without the keys that the oracle does not know."""
    return {key: record.get(key) for key in like}


def with_texts(path):
    """The case of a file, with the texts of its documents' files in it."""
    case = json.loads(path.read_text(encoding="utf-8"))
    for document in case["documents"]:
        if "file" in document:
            document["text"] = (path.parent / document.pop("file")).read_text(encoding="utf-8")
    return case


CASES = {name: with_texts(path) for name, path in (
    ("reference", ROOT / "cas_fr.json"), ("contracts", TESTS / "cas" / "contrats" / "contrats.json"),
    ("books", TESTS / "cas" / "mediatheque.json"))}


class OracleTest(TestCase):
    def setUp(self):
        super().setUp()
        self.stages, self.members, self.questions, self.doubtful, self.ties = Counter(), Counter(), 0, 0, 0

    def assertAlike(self, obtained, expected, where):
        """Two values are equal, their figures within rounding."""
        if obtained == expected:
            return
        self.assertEqual(type(obtained), type(expected), where)
        if isinstance(expected, float):
            self.assertAlmostEqual(obtained, expected, delta=1e-8, msg=where)
            self.assertEqual(obtained, round(obtained, 9), where)
        elif isinstance(expected, dict):
            self.assertEqual(set(obtained), set(expected), where)
            for key in expected:
                self.assertAlike(obtained[key], expected[key], where + (key,))
        elif isinstance(expected, list) and len(obtained) == len(expected):
            for number, pair in enumerate(zip(obtained, expected)):
                self.assertAlike(*pair, where + (number,))
        else:
            self.assertEqual(obtained, expected, where)

    def check(self, case, report=None):
        sections = any(variant["unit"] == "sections" for variant in case.get("variants", ()))
        exported = self.passages(case) if sections else {}
        report = report or self.report(case)
        corpus = Corpus(case, report["settings"])
        self.check_case(case, report, corpus)
        cuttings = {variant["id"]: only(variant, set(variant) - {"id", "question_filters"})
                    for variant in case.get("variants", ())} or CHUNKINGS
        self.assertEqual([variant["id"] for variant in report["variants"]], list(cuttings))
        heeds = {variant["id"]: variant.get("question_filters", True) for variant in case.get("variants", ())}
        for reported in report["variants"]:
            name = reported["id"]
            self.assertEqual(only(reported["chunking"], cuttings[name]), cuttings[name])
            variant = Variant(corpus, cuttings[name], heeds.get(name, True), exported.get(name, ()))
            self.check_variant(case, variant, reported)

    def check_variant(self, case, variant, reported):
        self.assertEqual(reported["passages"], {
            document: [[passage.start, passage.end] for passage in passages]
            for document, passages in variant.passages.items()})
        self.assertEqual(len(reported["questions"]), len(case["questions"]))
        pairs = zip(case["questions"], reported["questions"])
        records = [self.check_question(variant, *pair) for pair in pairs]
        summary = variant.summary(records)
        self.assertEqual(only(reported["summary"], summary), summary, reported["id"])
        medians = (figures["passage_words"]["median"] for figures in (reported["summary"], summary))
        self.assertEqual(*map(repr, medians))
        for name in {question["set"] for question in case["questions"] if "set" in question}:
            part = variant.summary([record for record, question in zip(records, case["questions"])
                                    if question.get("set") == name])
            told = reported["by_set"][name]
            self.assertEqual(only(told, set(told) & set(part)), only(part, set(told) & set(part)))
            self.assertLessEqual({"budget_curve", "depth_curve"}, set(told))
        self.stages.update(summary["losses"])

    def check_case(self, case, report, corpus):
        self.assertEqual({document["id"]: document["words"] for document in report["case"]["documents"]},
                         {name: len(text.split()) for name, text in corpus.texts.items()})
        answerable = sum(question.get("answerable", True) for question in case["questions"])
        expected = {"words": sum(map(len, corpus.words.values())), "questions": len(case["questions"]),
                    "answerable_questions": answerable, "facts": len(case["facts"])}
        self.assertEqual(only(report["case"], expected), expected)
        settings = dict(case.get("settings", {}), filters=case.get("filters", {}))
        self.assertEqual(only(report["settings"], settings), settings)
        used = {name for question in case["questions"] for name in question.get("required_facts", [])}
        named = [[name] for name in corpus.quotes if name not in used]
        named += [[a["id"], b["id"]] for a, b in combinations(report["variants"], 2)
                  if a["passages"] == b["passages"]
                  and a["summary"]["words_indexed"] == b["summary"]["words_indexed"]  # else titles set them apart
                  and a.get("question_filters") == b.get("question_filters")
                  and "chars" not in (a["chunking"]["unit"], b["chunking"]["unit"])]
        for names in named:
            told = [warning for warning in report["warnings"] if all(name in warning for name in names)]
            self.assertTrue(told, names)
        others = ("question .* aucun mot à chercher|filtre .* clé absente|"
                  "variante .* le recouvrement n'a aucun effet|documents? .* même texte|variante .* de même texte|"
                  "variante .* max_chars|document .* structure")
        told = [warning for warning in report["warnings"] if not re.match(others, warning)]
        if not any("filters" in question for question in case["questions"]):
            self.assertEqual(bool(told), bool(named), told)

    def check_question(self, variant, question, reported):
        """The record expected, once compared with the one reported."""
        terms = search_terms(question["text"], variant.corpus.stop_words)
        hits = reported["hits_before_budget"]
        ranked, scores, doubtful = variant.ranking(question, terms, [hit["passage"] for hit in hits])
        expected = variant.question(question, terms, ranked, scores)
        best = [hit["score"] for hit in expected["hits_before_budget"]]
        self.questions, self.doubtful = self.questions + 1, self.doubtful + doubtful
        self.ties += len(best) - len(set(best))
        for hit in hits:
            self.assertAlmostEqual(sum(term["part"] for term in hit["terms"]), -hit["score"], delta=1e-8)
        for key, known in expected.items():
            where, obtained = (question["id"], key), reported[key]
            if doubtful and key == "needed":
                continue
            if key in ("hits_before_budget", "context", "facts"):
                self.assertEqual(len(obtained), len(known), where)
                like = ["id", "covered", "words_covered"] if doubtful and key == "facts" else None
                obtained = [only(record, like or own) for record, own in zip(obtained, known)]
                known = [only(record, like or record) for record in known]
            self.assertAlike(obtained, known, where)
        self.members.update(name for fact in expected["facts"] for name in fact["loss"] or ())
        return expected


# Random cases: few words, so that they collide, and some that begin alike.
COMMON = """le la de du dû à où ou et l'hôtel hôtel d'accord l’accord plafond train billet Paris paris Été été
sans pas remboursé Remboursé remboursés frais nuit de\u0301le\u0301gue\u0301 œuvre classe sauf""".split()
RARE = """kayak zinc gelée brume l'avion orage quai tunnel vélo îlot
remboursement plafonné délégation classés""".split()
SPACES = [" "] * 30 + ["  ", "\n", "\r\n", "\t", "\u00a0", " \n "]
BLANK_LINES = ["\n\n", "\n \t\n", "\r\n\r\n", "\n\n\n", " \n\n "]
SYNTAX = ["", "", "", " ?", "*", '"', " NOT ", " NEAR(", "^", ":", "-", ")", "'", " AND", ";--"]


def random_words(rng, length):
    return [rng.choice(RARE if rng.random() < 0.05 else COMMON) for _ in range(length)]


def spaced(rng, words):
    return "".join(word + rng.choice(SPACES) for word in words[:-1]) + words[-1]


def random_document(rng, name, shared):
    """From 5 to 220 words, in paragraphs some of which other documents repeat."""
    left, text = rng.randint(5, rng.choice([60, 220])), rng.choice(["", " ", "\n\n"])
    while left > 0:
        words = (rng.choice(shared) if rng.random() < 0.5 else random_words(rng, rng.randint(1, 90)))[:left]
        text, left = text + spaced(rng, words) + rng.choice(BLANK_LINES), left - len(words)
    return {"id": name, "text": text if rng.random() < 0.5 else text.rstrip(),
            "année": rng.choice([2023, 2024]), "actif": rng.random() < 0.7,
            "sujets": rng.sample(["hôtel", "train", "repas"], rng.randint(1, 3)),
            **({"pays": rng.choice(["FR", "BE"])} if rng.random() < 0.9 else {}),
            **({"title": " ".join(random_words(rng, 3))} if rng.random() < 0.5 else {})}


def in_sections(rng, document):
    """A document whose text is cut into sections, some of which have a country and a year of their own."""
    words = document.pop("text").split()
    cuts = sorted({0, len(words), *(rng.randrange(len(words)) for _ in range(3))})
    document["sections"] = [{"title": " ".join(random_words(rng, 2)), "text": spaced(rng, words[start:end]),
                             **({"année": rng.choice([2023, 2024])} if rng.random() < 0.7 else {}),
                             **({"pays": rng.choice(["FR", "BE"])} if rng.random() < 0.3 else {})}
                            for start, end in zip(cuts, cuts[1:])]


def random_quote(rng, documents):
    document = rng.choice(documents)
    text = "\n\n".join(section["text"] for section in document.get("sections", [document]))
    words = text.split()
    length = min(len(words), rng.randint(*rng.choice([(1, 4), (5, 25), (26, 60)])))
    start = rng.randrange(len(words) - length + 1)
    quoted = words[start:start + length]
    if rng.random() < 0.5:
        quoted[0] = quoted[0].split("'")[-1]  # a quote may begin after an elision
    several = len(occurrences(folded(" ".join(quoted)), folded(text))) > 1
    return {"document": document["id"], "quote": spaced(rng, quoted), **({"start": start} if several else {})}


def random_fact(rng, name, documents):
    quotes = [random_quote(rng, documents) for _ in range(rng.choice([1, 1, 1, 1, 2, 3]))]
    distinct = {(quote["document"], folded(quote["quote"]), quote.get("start")): quote for quote in quotes}
    distinct = list(distinct.values())
    return dict(distinct[0], id=name) if len(distinct) == 1 else {"id": name, "any_of": distinct}


def random_question(rng, name, facts, filters):
    words = random_words(rng, rng.randint(1, 5))
    words = words if rng.random() < 0.9 else [rng.choice(["?", "« … »", "le la", "'"])]
    question = {"id": name, "text": " ".join(word + rng.choice(SYNTAX) for word in words)}
    question.update({"set": rng.choice(["choix", "épreuve"])} if rng.random() < 0.5 else {})
    question.update({"per_document": rng.randint(1, 3)} if rng.random() < 0.2 else {})
    question.update({"filters": dict(rng.sample(filters, rng.randint(1, min(2, len(filters)))))}
                    if filters and rng.random() < 0.25 else {})
    if rng.random() < 0.15:
        return dict(question, answerable=False, **rng.choice([{}, {"required_facts": []}]))
    names = [fact["id"] for fact in facts]
    return dict(question, required_facts=rng.sample(names, rng.randint(1, min(3, len(names)))))


def random_variants(rng, sections):
    """From one to four cuttings of a case's own, of any unit, some deaf to what the questions ask."""
    variants = []
    for number in range(rng.randint(1, 4)):
        unit = rng.choice(["words", "chars", "chars", "paragraphs"] + ["sections"] * 3 * sections)
        sizes = {"words": (1, 60), "chars": (9, 300), "paragraphs": (1, 1), "sections": (60, 300)}
        size = rng.randint(*sizes[unit])
        own = {"words": {"size": size, "overlap": rng.randrange(size)}, "paragraphs": {},
               "chars": {"size": size, "overlap": size // rng.randint(2, 9)},
               "sections": {"max_chars": size, "repeat_title": rng.random() < 0.5}}[unit]
        deaf = {"question_filters": False} if rng.random() < 0.2 else {}
        variants.append({"id": "v{}".format(number), "unit": unit, **own, **deaf})
    return variants


def random_case(seed):
    rng = random.Random(seed)
    shared = [random_words(rng, length) for length in (3, 12, 48, 60)]
    names = rng.sample(["a", "B", "d-10", "d-2", "été"], rng.randint(1, 4))
    documents = [random_document(rng, name, shared) for name in names]
    passing = {key: rng.choice(value) if isinstance(value, list) else value
               for key, value in rng.choice(documents).items() if key not in NOT_METADATA}
    keys = rng.sample(sorted(passing), rng.choice([0, 0, 1, 1, 2, 3]))
    asked = [("année", {"gte": 2024}), ("année", 2023), ("sujets", {"in": ["train", "repas"]}),
             ("sujets", "hôtel"), ("pays", "FR"), ("actif", True)]
    asked = [(key, wanted) for key, wanted in asked
             if key not in keys and any(key in document for document in documents)]
    sections = rng.random() < 0.25
    if sections:
        for document in documents:
            in_sections(rng, document)
    facts = [random_fact(rng, "f{}".format(number), documents) for number in range(rng.randint(1, 8))]
    questions = [random_question(rng, "q{}".format(number), facts, asked)
                 for number in range(rng.randint(1, 6))]
    return {"documents": documents, "facts": facts, "questions": questions,
            "filters": {key: passing[key] for key in keys},
            "settings": {"top_k": rng.randint(1, 5), "budget_words": rng.randint(5, 150),
                         **rng.choice([{}, {"stop_words": []}, {"stop_words": ["le", "dû", "été"]}]),
                         **({"index_titles": True} if rng.random() < 0.2 else {})},
            **({"variants": random_variants(rng, sections)} if sections or rng.random() < 0.3 else {})}


class RepositoryCases(OracleTest):
    def test_the_report_equals_the_oracle(self):
        for name, case in CASES.items():
            with self.subTest(name):
                self.check(case)


class RandomCases(OracleTest):
    def test_the_report_equals_the_oracle(self):
        for seed in range(120):
            with self.subTest(seed=seed):
                self.check(random_case(seed))
        self.assertEqual(set(self.stages), STAGES)
        self.assertGreater(self.ties, 10)
        self.assertLess(self.doubtful, self.questions / 50)


def fixed_variants():
    return [dict(chunking, id=name) for name, chunking in CHUNKINGS.items()]


def real_case(step):
    """The case of real text with one question in so many, and the facts that they require."""
    case = chroma.make_case(stop_words=chroma.ENGLISH_STOP_WORDS)
    questions = case["questions"][::step]
    used = {name for question in questions for name in question["required_facts"]}
    return dict(case, questions=questions, facts=[fact for fact in case["facts"] if fact["id"] in used])


class Enough(OracleTest):
    """What `needed` says is enough is enough, and a little less is not: the command runs again with both."""

    def rerun(self, case, variants, top_k, budget, depths):
        """{(variant, question): whether it is complete} in some variants, with other settings and depths."""
        case = copy.deepcopy(case)
        case["variants"] = [one for one in case.get("variants") or fixed_variants() if one["id"] in variants]
        case["settings"] = dict(case.get("settings", {}), top_k=top_k, budget_words=budget)
        for question in case["questions"]:
            question.update({"per_document": depths[question["id"]]} if question["id"] in depths else {})
        return {(variant["id"], question["id"]): question["all_required_covered"]
                for variant in self.report(case)["variants"] for question in variant["questions"]}

    def needs(self, report):
        """{(variant, question): what it needs} of the answerable questions; null for the others."""
        told = {(variant["id"], question["id"]): question["needed"]
                for variant in report["variants"] for question in variant["questions"]}
        for variant in report["variants"]:
            for question in variant["questions"]:
                self.assertEqual(question["needed"] is None, not question["answerable"])
        return {place: needed for place, needed in told.items() if needed}

    def settings_of(self, top_k, needed):
        """The settings that hold one `needed`: (top_k, budget, per_document), at the edge and one less."""
        deeper, budget = needed["deeper"], needed["budget_words"]
        yield from [(top_k, budget, None), (top_k, budget - 1, None)] if budget else [(top_k, ENDLESS, None)]
        if deeper is None:
            yield ENDLESS, ENDLESS, None
        elif "per_document" in deeper:
            depth = deeper["per_document"]
            yield from [(top_k, deeper["budget_words"], depth), (top_k, deeper["budget_words"] - 1, depth),
                        (top_k, ENDLESS, depth - 1)]
        else:
            depth = deeper["top_k"]
            yield from [(depth, deeper["budget_words"], None), (depth, deeper["budget_words"] - 1, None),
                        (depth - 1, ENDLESS, None)]

    def verdict(self, needed, by_document, top_k, other_top_k, budget, depth):
        """Whether a question must be complete with some settings; None where `needed` does not say."""
        deeper, enough_here = needed["deeper"], budget >= (needed["budget_words"] or math.inf)
        if not by_document and other_top_k != top_k:
            return deeper is not None and other_top_k >= deeper["top_k"] and budget >= deeper["budget_words"]
        if depth is None:
            return enough_here
        if deeper is None or depth < deeper["per_document"]:
            return False
        return budget >= deeper["budget_words"] if depth == deeper["per_document"] else None

    def check_again(self, case, report, chosen=None):
        """Run again with what some questions need, all by default, and judge every question by each run."""
        top_k, needs, runs = report["settings"]["top_k"], self.needs(report), defaultdict(set)
        for variant, question in chosen or needs:
            for settings in self.settings_of(top_k, needs[variant, question]):
                runs[settings].add(variant)
        asked = {question["id"] for question in case["questions"] if "per_document" in question}
        deaf = {variant["id"] for variant in case.get("variants", ())
                if not variant.get("question_filters", True)}
        for (other_top_k, budget, depth), variants in runs.items():
            if 0 in (other_top_k, budget, depth):
                continue
            depths = dict.fromkeys(asked, depth) if depth else {}
            for place, complete in self.rerun(case, variants, other_top_k, budget, depths).items():
                by_document = place[1] in asked and place[0] not in deaf
                settings = other_top_k, budget, depths.get(place[1]) if by_document else None
                expected = place in needs and self.verdict(needs[place], by_document, top_k, *settings)
                if place in needs and expected is not None:
                    self.assertEqual(complete, expected, (place, needs[place], settings))
                    self.verdicts[by_document, expected] += 1

    def setUp(self):
        super().setUp()
        self.verdicts = Counter()

    def test_the_reference_case_needs_what_its_readers_were_told(self):
        report = self.report(CASES["reference"])
        figures = {variant["id"]: [question["needed"] and question["needed"]["budget_words"]
                                   for question in variant["questions"]] for variant in report["variants"]}
        self.assertEqual(figures, {
            "fixe_48_0": [71, 95, 38, None, 70, None], "fixe_96_0": [71, 143, 38, None, 118, None],
            "fixe_48_16": [70, 95, 38, 46, 70, None], "paragraphes": [71, 64, 38, 39, 45, None]})

    def test_the_cases_of_the_repository_run_again(self):
        for name, case in CASES.items():
            with self.subTest(name):
                self.check_again(case, self.report(case))

    def test_random_cases_run_again(self):
        for seed in range(100):
            case, rng = random_case(seed), random.Random(seed)
            with self.subTest(seed=seed):
                report = self.report(case)
                needs = self.needs(report)
                able = [place for place, needed in needs.items() if needed["deeper"]] or list(needs)
                self.check_again(case, report, rng.sample(able, min(1, len(able))))
        for by_document, complete in product((True, False), repeat=2):
            self.assertGreater(self.verdicts[by_document, complete], 30)

    @unittest.skipUnless(chroma.FOLDER.is_dir(), "real data absent: {}".format(chroma.FOLDER))
    def test_a_sample_of_real_questions_runs_again(self):
        case = real_case(12)
        report, rng = self.report(case), random.Random(0)
        needs = self.needs(report)
        for variant in ("fixe_96_0", "paragraphes"):
            able = [place for place, needed in needs.items() if place[0] == variant and needed["deeper"]
                    and 1 < needed["deeper"]["top_k"] < 30]
            self.check_again(case, report, rng.sample(able, 1))
        self.assertGreater(min(self.verdicts[False, complete] for complete in (True, False)), 50)


class Engines(OracleTest):
    """An engine needs the budget under which its own hits, in their order, are complete; no depth is told."""

    def needed(self, case, sent):
        """{question: the smallest budget, tried one by one, or None}, from the words of its hits."""
        corpus = Corpus(case, dict(top_k=1, budget_words=1, stop_words=[], filters={}))
        found = {}
        for question in case["questions"]:
            facts = [[words_of(quote) for quote in corpus.quotes[name]]
                     for name in question.get("required_facts", ())]
            words = sent.get(question["id"], [])
            enough_of = (budget for budget in range(1, len(words) + 1)
                         if all(any(quoted <= set(words[:budget]) for quoted in fact) for fact in facts))
            found.update({question["id"]: next(enough_of, None)} if facts else {})
        return found

    def told(self, case, path, **settings):
        """{question: (needed, whether it is complete)} of the engine of a file, last in the report."""
        case = dict(case, settings=dict(case["settings"], **settings))
        target = self.folder / "rapport.json"
        code, _, err = run("--case", self.write(case), "--contexts", path, "--output", target)
        self.assertEqual(code, 0, err)
        engine = json.loads(target.read_text(encoding="utf-8"))["variants"][-1]
        for question in engine["questions"]:
            self.assertEqual(list(question["needed"] or ()), ["budget_words"] * question["answerable"])
        answerable = [question for question in engine["questions"] if question["answerable"]]
        budgets = [question["needed"]["budget_words"] for question in answerable]
        self.assertEqual(engine["summary"]["budget_curve"], steps(budgets))
        self.assertIsNone(engine["summary"]["depth_curve"])
        return {question["id"]: (budget, question["all_required_covered"])
                for question, budget in zip(answerable, budgets)}

    def random_hits(self, rng, corpus, question):
        """Records around the facts that a question requires, and elsewhere, some with words in front."""
        hits = []
        for name in question.get("required_facts", []) + [rng.choice(list(corpus.quotes))]:
            quote = rng.choice(corpus.quotes[name])
            start = max(0, quote.start - rng.randint(-1, 5))
            end = min(quote.end + rng.randint(-1, 5), len(corpus.words[quote.document]))
            heading = {"heading": "Deux mots"} if rng.random() < 0.3 else {}
            hits += [dict(heading, document=quote.document, start=start, end=end)] if start < end else []
        return rng.sample(hits, len(hits))

    def test_records_need_the_budget_of_their_hits(self):
        outcomes = Counter()
        for seed in range(40):
            case, rng, lines, sent = random_case(seed), random.Random(seed), [], {}
            corpus = Corpus(case, dict(top_k=1, budget_words=1, stop_words=[], filters={}))
            for question in case["questions"]:
                hits = self.random_hits(rng, corpus, question)
                name, sent[question["id"]] = question["id"], []
                lines.append({"engine": "moteur", "question": name, "hits": hits, "context": hits[:1]})
                for hit in hits:
                    sent[name] += [None] * len(hit.get("heading", "").split())
                    sent[name] += sorted(words_of(Quote(hit["document"], hit["start"], hit["end"], None)))
            path = self.folder / "moteur.jsonl"
            path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
            with self.subTest(seed=seed):
                budgets = {name: budget for name, (budget, _) in self.told(case, path).items()}
                self.assertEqual(budgets, self.needed(case, sent))
                outcomes.update(budget is not None for budget in budgets.values())
        self.assertGreater(min(outcomes[known] for known in (True, False)), 10)

    def test_a_ranking_is_complete_with_the_budget_that_it_needs_and_not_with_a_word_less(self):
        held = Counter()
        for seed in range(25):
            case, rng = random_case(seed), random.Random(seed)
            case["variants"] = [dict(CHUNKINGS["fixe_48_16"], id="v")]
            corpus = Corpus(case, dict(top_k=1, budget_words=1, stop_words=[], filters={}))
            variant, lines, sent = Variant(corpus, CHUNKINGS["fixe_48_16"]), [], {}
            for question in case["questions"]:
                ranked = rng.sample(variant.every, min(len(variant.every), 6))
                lines += ["{} Q0 v/{} {} {} t".format(question["id"], passage.name, rank, 9.5 - rank)
                          for rank, passage in enumerate(ranked, 1)]
                sent[question["id"]] = [place for passage in ranked[:case["settings"]["top_k"]]
                                        for place in variant.places(passage)]
            path = self.folder / "classement.trec"
            path.write_text("\n".join(lines), encoding="utf-8")
            with self.subTest(seed=seed):
                needed = {name: budget for name, (budget, _) in self.told(case, path).items()}
                self.assertEqual(needed, self.needed(case, sent))
                for budget in {one - less for one in needed.values() if one for less in (0, 1)} - {0}:
                    for name, (_, complete) in self.told(case, path, budget_words=budget).items():
                        self.assertEqual(complete, (needed[name] or math.inf) <= budget, (name, budget))
                        held[complete] += 1
        self.assertGreater(min(held.values()), 10)


class Properties(TestCase):
    def test_passages_without_overlap_tile_the_document_and_the_budget_holds(self):
        for seed in range(40):
            rng = random.Random(seed)
            words, budget = random_words(rng, rng.randint(1, 300)), rng.randint(1, 200)
            blanks = SPACES + BLANK_LINES + ["\x0c", "\x85", "\u2028", "\u3000"]
            text = "".join(word + rng.choice(blanks) for word in words)
            question = {"id": "q", "text": " ".join(words[:3] + ["plafond"]), "answerable": False}
            report = self.report({"documents": [{"id": "d", "text": text}], "facts": [],
                                  "questions": [question], "settings": {"budget_words": budget}})
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
                span = atelier.Span(rng.choice("dde"), start, start + rng.randint(0, 12))
                kept.insert(rng.randint(0, len(kept)), span)
                missing = [position for span in atelier.missing_spans(quote, kept)
                           for position in range(span.start, span.end)]
                covered = {position for span in kept if span.document == "d"
                           for position in range(span.start, span.end)}
                self.assertEqual(missing, sorted(set(range(quote.start, quote.end)) - covered))
                self.assertTrue(before is None or set(missing) <= before)
                before = set(missing)

    def test_windows_equal_a_naive_loop(self):
        for words, size in product(range(41), range(1, 13)):
            for overlap in range(size):
                sizes = words, size, overlap
                self.assertEqual(list(atelier.windows(*sizes)), naive_windows(*sizes))


@unittest.skipUnless(chroma.FOLDER.is_dir(), "real data absent: {}".format(chroma.FOLDER))
class RealText(OracleTest):
    @classmethod
    def setUpClass(cls):
        """A run with every word searched, which takes a while: beside the oracle, in its own process."""
        folder = TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.paths = [str(Path(folder.name, name)) for name in ("case.json", "report.json")]
        case = chroma.make_case(stop_words=[], budget_words=100000)
        Path(cls.paths[0]).write_text(json.dumps(case), encoding="utf-8")
        cls.process = subprocess.Popen([sys.executable, str(ROOT / "atelier.py"),
                                        "--case", cls.paths[0], "--output", cls.paths[1]],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.process.wait)

    def test_a_report_equals_the_oracle(self):
        self.check(real_case(4))
        self.assertEqual(set(self.stages), STAGES - {"filtered_out"})

    def test_counts_without_stop_words_nor_budget(self):
        self.assertEqual(self.process.wait(), 0)
        report = json.loads(Path(self.paths[1]).read_text(encoding="utf-8"))
        counted = "passages_indexed", "complete_contexts", "facts_covered"
        figures = {variant["id"]: [variant["summary"][key] for key in counted]
                   for variant in report["variants"]}
        self.assertEqual(figures, {"fixe_48_0": [4785, 138, 259], "fixe_96_0": [2395, 251, 449],
                                   "fixe_48_16": [7173, 166, 291], "paragraphes": [2196, 337, 570]})


if __name__ == "__main__":
    unittest.main()
