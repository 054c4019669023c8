#!/usr/bin/env python3
"""Did every word of every required quote survive the cutting, the search and the word budget?

A RAG team has documents, questions and, for each question, the exact quotes without which the answer would be
wrong.  Documents are cut into passages, passages are indexed and searched, the best are concatenated under a
budget of words, and a model would read that text.  This file follows each quote along the way and names the
stage that lost it.  Nothing is sent anywhere.

    python3 atelier.py --output resultat.json       the table, and the report, of the case beside the script
    python3 atelier.py --case mon_cas.json          another case; --question ID: the whole trip of a question
    python3 atelier.py --contexts moteur.jsonl      what another engine sent, judged alike
    python3 atelier.py --citations registre.json    the citations of an answer
    python3 atelier.py --html page.html             the page where one sees where each proof went
    python3 atelier.py --self-test                  the thirteen guards of the evaluator

The flow; each arrow is a function of values, without file, clock or print:

    bytes -> Case -> passages -> index -> hits -> context -> coverage, loss -> report -> table, JSON, page

Glossary
    word      an element of str.split(): a unit for counting, neither a token nor an index term
    span      Span(document, start, end): words start to end - 1 of one document
    passage   a span of one document that the index knows under an id, `frais#0003`
    hit       a passage that a question found, with its rank and its score
    context   the first top_k hits, in rank order, cut at budget_words
    fact      a quote, located as a span, that a question requires
    covered   said of a fact all of whose words lie in the union of the sent spans of its document
    loss      the first stage at which an uncovered fact was lost, with what is needed to act

Plan
    path     1 vocabulary  2 the run  3 cutting  4 searching  5 assembling  6 coverage and loss  7 filters
             8 report  9 table: read so far, and you know the whole diagnostic
    beneath  10 words  11 measures  12 engine room: what the path calls
    doors    13 reading  14 structures  15 explanations  16 why and how much  17 warnings  18 comparisons
             19 engines  20 citations  21 page  22 guards  23 command: each can be cut out

Limits: the ranking is FTS5's bm25 and says nothing about another engine's; presence in the context says
nothing about reading order, understanding, or a right answer.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import sys
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, namedtuple  # typing's records would cost a tenth of the start-up
from errno import EBADF, errorcode
from functools import lru_cache
from itertools import accumulate, chain, combinations, groupby, islice, takewhile
from math import log

TYPE_CHECKING = False  # as in typing, which only a type checker needs here
if TYPE_CHECKING:
    from typing import (Any, Callable, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Sequence,
                        Set, Tuple)
    Tree = Mapping[str, Any]                        # a part of a report or of a file
    Documents = Mapping[str, Optional["Document"]]  # by id
    Filters = Sequence[Tuple[str, Any]]             # (metadata key, condition)
    Columns = Optional[Mapping[str, dict]]          # by metadata key
    Deliveries = Dict[str, "Delivery"]              # by question id
    Study = Callable[["Case", "Outcome"], "Outcome"]

__version__ = "1.0.0"


# --- 1. Vocabulary: the records and the tables, no behaviour --------------------------------------

def record(name: str, fields: str, words: str, **options: Any) -> Any:
    """A frozen record: a named tuple, and what its fields hold."""
    made = namedtuple(name, fields, **options)
    made.__doc__ = words
    return made


Span = record("Span", "document start end", """
    Words start to end - 1 of a document (an id), counted from 0: the coin of every stage.""")
Section = record("Section", "title path lead metadata start end pieces", """
    Characters start to end of a document under one title; path: its parents' titles; lead: the titles that
    its text does not begin with, a line each; pieces are the (start, end) never to be cut.""")
Document = record("Document", "id title text metadata starts ends sections label file structure doubts", """
    A source text; word i is text[starts[i]:ends[i]]; metadata {key: text, number, boolean or list of texts};
    sections, in text order, none when it has no structure; label is what index_titles searches; file is its
    path in the case, structure a line of STRUCTURES, if any; doubts: (line of DOUBTS, character).""",
                  defaults=("", "", ()))
Quote = record("Quote", "text span", "A text to the letter, with its Span in its document.")
Fact = record("Fact", "id quotes several", """
    What an answer may need: Quotes, any of which proves it; several: the case gave alternatives.""")
Question = record("Question", "id text answerable required_facts filters per_document set", """
    A text to search; required_facts are fact ids; filters {key: condition}; per_document, set: or None.""")
Settings = record("Settings", "filters top_k budget_words stop_words index_titles", """
    What a case may change: filters {key: condition}, two integers, a tuple of words, a boolean.""")
Variant = record("Variant", "id unit parameters question_filters", """
    One way of cutting: unit names a line of UNITS, parameters {name: value} are that unit's own.""",
                 defaults=(True,))
Case = record("Case", "file sha256 title documents facts questions settings variants", """
    A whole case file, checked: documents and facts by id, questions, variants; every quote is located.""")
Passage = record("Passage", "id span touched start end heading words", """
    What is indexed and sent: a heading (put before), characters start to end of a document; span holds the
    words wholly inside, touched those at least partly so; words is its cost, heading included.""")
Cutting = record("Cutting", "by_id by_document longest over_max", """
    The Passages of one variant: {passage id: Passage}, {document id: [Passage, by number]}; the most whole
    words that one of them holds; how many are longer than max_chars.""")
Hit = record("Hit", "rank passage score kept_words terms", """
    A Passage that was found: rank from 1, score (or None), how many words the budget let through, and the
    (term, times, part of the score) of each of the question's terms that it holds (of an engine: None).""",
             defaults=(None,))
Sent = record("Sent", "question filters terms ignored no_hits hits context cutting index admitted", """
    What a variant, or another engine, found and sent for a question.  filters: the (key, condition) in force;
    terms: [(term, passages that hold it)]; ignored: words left out; no_hits: why there are none; hits: [Hit]
    before the budget; context: the Hits of which something was sent; cutting and index: the variant's;
    admitted: the ids of the passages that filters let through, None for all.  An engine has no terms,
    cutting, index, perhaps no hits.""")
Lost = record("Lost", "quote missing sent budget_words refusing touching holders", """
    What the stages of loss may need to know of one uncovered quote (a Span).  missing: the spans of it that
    the context lacks; refusing: {key: condition} that keep out all that holds some word of it; touching: the
    admitted passages that hold a part of it, in text order; holders: those that hold it whole.""")
Attempt = record("Attempt", "quote missing loss", """
    A Quote as one context leaves it: how many of its words are missing, its loss (None when covered).""")
Verdict = record("Verdict", "fact attempts chosen", """
    A required Fact: an Attempt for each of its quotes, and the one that speaks for it.""")
Outcome = record("Outcome", "sent spans verdicts counts needed", """
    A question's trip: what was Sent, the source Spans of its context, a Verdict for each required fact, the
    words that count_words gives, and what would be enough, when it was studied.""", defaults=(None,))

VARIANTS = (
    Variant("fixe_48_0", "words", {"size": 48, "overlap": 0}),
    Variant("fixe_96_0", "words", {"size": 96, "overlap": 0}),
    Variant("fixe_48_16", "words", {"size": 48, "overlap": 16}),
    Variant("paragraphes", "paragraphs", {}),
)

TOKENIZER = "unicode61 remove_diacritics 2"

# Grammar alone: the elided letters are here; words that carry a condition (sans, sauf, pas, hors, ni, non,
# si, avant, après, entre, avec…) are not, nor is « dû ».
STOP_WORDS = tuple("""
    a à ai aie ait as au aux avait avez avons c ce cela celle celles celui ces cet cette ceux ci combien
    comment d dans de des du elle elles en es est et étaient était étant être eu eux il ils j je jusqu jusque
    l la là laquelle le lequel les lesquelles lesquels leur leurs lorsqu lorsque lui m ma me mes moi mon n ne
    nos notre nous on ont ou où par peut pour pourquoi puis puisqu puisque qu quand que quel quelle quelles
    quels qui quoi s sa se sera ses soi soit son sont suis sur t ta te tes toi ton tu un une va vos votre
    vous y
""".split())

DEFAULTS = Settings({}, 3, 120, STOP_WORDS, False)
NOWHERE = Document("", "", "", {}, (), (), (), "")  # where another engine's text stands that no document has


class AtelierError(Exception):
    """What the user can mend: French sentences, `file : place : problem. Mend.`, fit for a terminal."""

    def __init__(self, *sentences: str):
        self.sentences = [CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", sentence)
                          for sentence in sentences]
        super().__init__("\n".join(self.sentences))


# --- 2. The run, from a case to its report --------------------------------------------------------

def diagnose(case: Case, cutting_of: Callable[[str], Cutting], engines: Mapping[str, Iterable[Sent]] = {},
             study: Study = lambda case, outcome: outcome, tick: Callable[[], None] = lambda: None) -> Tree:
    """The whole report, a dict ready for JSON; warnings, comparisons and contexts are left to their doors.

    cutting_of(variant id) gives its passages; engines, {name: what it sent for each question, in order}, are
    judged beside the variants; study may add to an outcome; tick is called once a question is done.
    """
    words = search_terms([question.text for question in case.questions], case.settings.stop_words)
    variants = [diagnose_variant(case, variant, cutting_of(variant.id), words, study, tick)
                for variant in case.variants]
    variants += [diagnose_engine(case, name, deliveries, study) for name, deliveries in engines.items()]
    return {"atelier": __version__, "environment": describe_environment(), "warnings": [],
            "case": describe_case(case), "settings": describe_settings(case.settings),
            "variants": variants, "comparisons": [], "contexts": []}


def diagnose_variant(case: Case, variant: Variant, cutting: Cutting, words: Sequence[Words],
                     study: Study, tick: Callable[[], None]) -> Tree:
    """A variant's part of the report: its passages indexed, each question searched, assembled and judged."""
    index = Index(cutting.by_id, lambda name: searched_text(case, cutting.by_id[name]))
    filtered = case.settings.filters or any(question.filters for question in case.questions)
    admission = Admission(case.documents, cutting) if filtered else None
    outcomes = []
    try:
        for question, searched in zip(case.questions, words):
            if not variant.question_filters:
                question = question._replace(filters={}, per_document=None)
            sent = send(case, cutting, index, admission, question, searched)
            outcomes.append(study(case, judge(case, sent)))
            tick()
    finally:
        index.close()
    return {
        "id": variant.id,
        "chunking": {"unit": variant.unit, **variant.parameters},
        "question_filters": variant.question_filters,
        **summarize_sets(case, cutting, outcomes),
        "passages": {name: [[passage.span.start, passage.span.end] for passage in passages]
                     for name, passages in cutting.by_document.items()},
        "questions": describe_outcomes(case, outcomes),
    }


def diagnose_engine(case: Case, name: str, deliveries: Iterable[Sent], study: Study) -> Tree:
    """Another engine's part of the report: a variant's, None where an engine has no figure."""
    outcomes = [study(case, judge(case, sent)) for sent in deliveries]
    return {"id": name, "chunking": None, "question_filters": True, **summarize_sets(case, None, outcomes),
            "passages": None, "questions": describe_outcomes(case, outcomes)}


def send(case: Case, cutting: Cutting, index: Index, admission: Optional[Admission], question: Question,
         words: Words) -> Sent:
    """Search a question among the admitted passages of a variant, and assemble its context."""
    terms, filters = words.terms, filters_in_force(case, question)
    admitted = admission.admitted(filters) if filters else None
    found = index.best(terms, None if question.per_document else case.settings.top_k, admitted)
    if question.per_document:
        found = best_of_each(found, cutting, question.per_document)
    passages = [cutting.by_id[name] for name, _ in found]
    kept = assemble([passage.words for passage in passages], case.settings.budget_words)
    hits = [Hit(rank, passage, score, kept_words, index.explain(terms, passage.id))
            for rank, (passage, (_, score), kept_words) in enumerate(zip(passages, found, kept), 1)]
    no_hits = "no_term" if not terms else "no_document" if admitted == frozenset() else "no_match"
    return Sent(question, filters, [(term, index.count(term)) for term in terms], words.ignored,
                None if hits else no_hits, hits, [hit for hit in hits if hit.kept_words], cutting, index,
                admitted)


def rank_of(sent: Sent, name: str) -> Optional[int]:
    """The rank of a passage among the hits, else among the admitted matches; None when it shares no term."""
    ranks = [hit.rank for hit in sent.hits if hit.passage.id == name]
    return ranks[0] if ranks else sent.index.rank([term for term, _ in sent.terms], name, sent.admitted)


def judge(case: Case, sent: Sent) -> Outcome:
    """Whether what was sent covers each fact that the question requires; where not, which stage lost it."""
    if sent.cutting:
        spans = kept_spans(sent.cutting.by_id, [(hit.passage.id, hit.kept_words) for hit in sent.context])
    else:  # two passages of an engine may bear one name, and other headings
        spans = [kept_span(hit.passage, hit.kept_words) for hit in sent.context]
    verdicts = []
    for name in sent.question.required_facts:
        attempts = [try_quote(case, sent, quote, spans) for quote in case.facts[name].quotes]
        chosen = min(attempts, key=lambda attempt: attempt.missing / size([attempt.quote.span]))
        verdicts.append(Verdict(case.facts[name], attempts, chosen))
    return Outcome(sent, spans, verdicts, count_words(case, sent, spans))


def try_quote(case: Case, sent: Sent, quote: Quote, spans: Sequence[Span]) -> Attempt:
    """How the source spans of a context leave a quote; what is not covered has its loss."""
    missing = missing_spans(quote.span, spans)
    if not missing:
        return Attempt(quote, 0, None)
    lost = gather_lost(case, sent, quote.span, missing)
    return Attempt(quote, size(missing), find_loss(lost, STAGES if sent.cutting else ENGINE_STAGES))


# --- 3. Cutting: a case and a variant to passages -------------------------------------------------

WORD = re.compile(r"\S+")
LINE_BREAK = r"(?:\r\n|\r(?!\n)|[\n\x85\u2028\u2029])"
PARAGRAPH_BREAK = re.compile(LINE_BREAK + r"[^\S\r\n\x85\u2028\u2029]*" + LINE_BREAK)


def windows(count: int, size: int, overlap: int) -> List[Tuple[int, int]]:
    """Half-open windows of size words (or characters), the first overlap of which repeat the window before.

    No window starts once one has reached the end; the last may be short.
    8 words, size 5, overlap 2: [(0, 5), (3, 8)].
    Raises AtelierError when size < 1 or overlap is not in 0 … size - 1.
    """
    if type(size) is not int or size < 1:
        raise AtelierError(f"taille de fenêtre {shown(size)} refusée ; il faut un entier d'au moins 1.")
    if type(overlap) is not int or not 0 <= overlap < size:
        raise AtelierError("recouvrement {} refusé ; il faut un entier de 0 à {} (taille {}).".format(
            shown(overlap), size - 1, size))
    starts = range(0, max(count - overlap, min(count, 1)), size - overlap)
    return [(start, min(start + size, count)) for start in starts]


# A unit gives, in text order, the (first character, last + 1, heading put before) of a document's passages.

def cut_words(document: Document, size: int, overlap: int) -> Iterator[Tuple[int, int, str]]:
    """Windows of size words."""
    for start, end in windows(len(document.starts), size, overlap):
        yield document.starts[start], document.ends[end - 1], ""


def cut_chars(document: Document, size: int, overlap: int) -> Iterator[Tuple[int, int, str]]:
    """Raw windows, which may cut a word."""
    for start, end in windows(len(document.text), size, overlap):
        yield start, end, ""


def cut_paragraphs(document: Document) -> Iterator[Tuple[int, int, str]]:
    """Paragraphs are separated by blank lines."""
    breaks = [bisect_left(document.starts, match.end()) for match in PARAGRAPH_BREAK.finditer(document.text)]
    limits = sorted({0, len(document.starts), *breaks})
    for start, end in zip(limits, limits[1:]):
        yield document.starts[start], document.ends[end - 1], ""


def cut_sections(document: Document, max_chars: int, repeat_title: bool) -> Iterator[Tuple[int, int, str]]:
    """A passage a section; one longer than max_chars is cut between its pieces, at words when it has none.

    A document without structure is one section.
    """
    for section in document.sections or [Section("", (), "", {}, 0, len(document.text), ())]:
        low, high = bisect_left(document.starts, section.start), bisect_right(document.ends, section.end)
        pieces = section.pieces or list(zip(document.starts[low:high], document.ends[low:high]))
        repeated = repeat_title and section.title
        (start, end), heading = pieces[0], section.lead if repeat_title else ""
        for piece_start, piece_end in pieces[1:]:
            if sent_length(start, piece_end, heading) > max_chars:
                yield start, end, heading
                start = piece_start
                heading = "\n".join([*section.path, section.title + " (suite)"]) if repeated else ""
            end = piece_end
        yield start, end, heading


def sent_length(start: int, end: int, heading: str) -> int:
    """The characters of a passage as it is sent."""
    return len(heading) + bool(heading) + end - start


Unit = record("Unit", "cut shape defaults", """
    A way of cutting: its function, whose parameters have a shape (as a line of SHAPES) and defaults.""")

UNITS = {
    "words": Unit(cut_words, "size!count overlap:position", {"overlap": 0}),
    "paragraphs": Unit(cut_paragraphs, "", {}),
    "chars": Unit(cut_chars, "size!count overlap:position", {"overlap": 0}),
    "sections": Unit(cut_sections, "max_chars!count repeat_title:flag", {"repeat_title": False}),
}


def cut(documents: Documents, variant: Variant) -> Cutting:
    """The passages of every document; ids are zero-padded so that text order is reading order."""
    by_document = {}
    for document in documents.values():
        pieces = list(UNITS[variant.unit].cut(document, **variant.parameters))
        width = max(4, len(str(len(pieces))))
        by_document[document.id] = [
            make_passage(document, "{}#{:0{}}".format(document.id, number, width), *piece)
            for number, piece in enumerate(pieces, 1)]
    by_id = {passage.id: passage for passages in by_document.values() for passage in passages}
    limit = variant.parameters.get("max_chars")
    return Cutting(by_id, by_document, max((size([passage.span]) for passage in by_id.values()), default=0),
                   sum(sent_length(passage.start, passage.end, passage.heading) > limit
                       for passage in by_id.values()) if limit else 0)


def make_passage(document: Document, name: str, start: int, end: int, heading: str) -> Passage:
    """The passage (name is its id) of characters start to end, with the words that it holds and touches."""
    touched = Span(document.id, bisect_right(document.ends, start), bisect_left(document.starts, end))
    first, last = bisect_left(document.starts, start), bisect_right(document.ends, end)
    span = touched if (first, last) == touched[1:] else Span(document.id, first, max(first, last))
    return Passage(name, span, touched, start, end, heading, len(heading.split()) + size([touched]))


def heading_words(passage: Passage) -> int:
    """The words that were put before the source's own."""
    return passage.words - size([passage.touched])


def lead_words(passage: Passage) -> int:
    """The words that stand before the first whole one: they are sent, and prove nothing."""
    return heading_words(passage) + passage.span.start - passage.touched.start


def passage_of(documents: Documents, span: Span) -> Passage:
    """The very words of a span, which is not empty, as a passage without id."""
    document = documents[span.document]
    return make_passage(document, "", document.starts[span.start], document.ends[span.end - 1], "")


def text_of(documents: Documents, passage: Passage, words: Optional[int] = None) -> str:
    """A passage as it is sent: its heading, the exact slice of the source; its first words only when told."""
    source = documents.get(passage.span.document, NOWHERE).text[passage.start:passage.end]
    text = "\n".join(filter(None, (passage.heading, source)))
    if words is None or words >= passage.words:
        return sys.intern(text)  # hits, contexts and places of many questions share it
    return text[:next(islice(WORD.finditer(text), words - 1, None)).end()] if words else ""


def searched_text(case: Case, passage: Passage) -> str:
    """What the index holds of a passage: its text and, when the settings say so, its document's label."""
    label = case.documents[passage.span.document].label if case.settings.index_titles else ""
    return label + "\n" + text_of(case.documents, passage)


def touching(cutting: Cutting, span: Span) -> List[Passage]:
    """The passages that hold at least a part of a word of a span, in text order."""
    return overlapping(cutting.by_document[span.document], span.start, span.end,
                       lambda passage: passage.touched)


def sections_of(document: Document, passage: Passage) -> List[Section]:
    """The sections that a passage overlaps, by their characters."""
    return overlapping(document.sections, passage.start, passage.end)


def holds(passage: Passage, span: Span) -> bool:
    """Whether a passage of the same document holds every word of a span."""
    return passage.span.start <= span.start and span.end <= passage.span.end


# --- 4. Searching: questions to hits --------------------------------------------------------------

def make_searchable(text: str) -> str:
    """What FTS5 is given of a passage, its runs alone: `\uf0b7Préavis, 3 mois` gives ` préavis  3 mois`.

    FTS5 knows Unicode 6.1, takes what came since for letters, and for small letters too.
    """
    return keep_letters(text).replace("'", " ").lower()


Words = record("Words", "terms ignored", """
    What a question is searched by: its terms, in order, and the words left out, as written, in order.""")


def sort_words(question: str, stopped: Set[str]) -> Words:
    """The runs of a question, stop words apart.  A capital letter alone is a name, as in « l'annexe A », and
    is searched, unless it begins the question or is elided: « À quelle date l'annexe… », « L'annexe… ».
    """
    terms, ignored = [], []
    for number, (word, apostrophe) in enumerate(re.findall("([^ ']+)('?)", keep_letters(question))):
        is_name = number > 0 and len(word) == 1 and word.isupper() and not apostrophe
        if is_name or word.lower() not in stopped:
            terms.append(word.lower())
        else:
            ignored.append(word)
    return Words(terms, ignored)


def search_terms(texts: Iterable[str], stop_words: Iterable[str]) -> List[Words]:
    """For each question, its terms without repeat (as FTS5 folds them), and the words left out."""
    stopped = {run for word in stop_words for run in make_searchable(word).split()}
    found = [sort_words(text, stopped) for text in texts]
    folds = fold_terms([term for words in found for term in words.terms])
    return [words._replace(terms=distinct_terms(words.terms, folds)) for words in found]


def distinct_terms(terms: Iterable[str], folds: Mapping[str, Tuple[str, ...]]) -> List[str]:
    """The terms that FTS5 tells apart, in their first spelling, in order; not those it folds to nothing."""
    first: Dict[Tuple[str, ...], str] = {}
    for term in terms:
        if folds[term]:
            first.setdefault(folds[term], term)
    return list(first.values())


def make_query(terms: Iterable[str]) -> str:
    """An FTS5 expression in which nothing but OR is an operator."""
    return " OR ".join(f'"{term}"' for term in terms)


K1, B, LEAST_IDF = 1.2, 0.75, 1e-6  # as in FTS5's bm25, file ext/fts5/fts5_aux.c of SQLite

Postings = record("Postings", "idf parts most", """
    Who holds a term: its weight, {row: what it adds to the score}, and the largest of these parts.""")


def weigh(times: Mapping[int, int], norms: Sequence[float]) -> Postings:
    """What a term adds to FTS5's bm25 of each row, given {row: how many times it holds the term}.

        part = idf × (times × (k1 + 1)) / (times + norm)
        norm = k1 × (1 − b + b × size / mean size), a row's own
        idf = ln((N − n + 0.5) / (n + 0.5)) where n rows of N hold the term, 1e-6 when it is not above 0

    Held once by a row of mean size, and by no other of 10: ln(9.5 / 1.5) × 2.2 / 2.2 = 1.8458.
    """
    idf = log((len(norms) - len(times) + 0.5) / (len(times) + 0.5))
    idf = idf if idf > 0 else LEAST_IDF
    parts = {row: idf * (number * (K1 + 1.0) / (number + norms[row])) for row, number in times.items()}
    return Postings(idf, parts, max(parts.values(), default=0.0))


class Index:
    """The passages of one variant, in FTS5, and their ranking by its bm25, made so that it can be explained.

    terms are those that distinct_terms gives; admitted, a set of passage ids (None: all), restricts what is
    found, never the statistics.  Order: score ascending (smaller is better), then passage id, as text.
    """

    def __init__(self, ids: Iterable[str], text_of_id: Callable[[str], str]):
        self.ids = sorted(ids)  # a row's number is its place in the order of ids
        self.rows = {passage: row for row, passage in enumerate(self.ids)}
        self.postings: Dict[str, Postings] = {}
        self.admitted: Tuple[Optional[FrozenSet[str]], Optional[Set[int]]] = (None, None)
        self.asked: Any = None
        self.checked = False
        self.database = open_database()
        run_sql(lambda: self._build(text_of_id))

    def _build(self, text_of_id: Callable[[str], str]) -> None:
        execute = self.database.execute
        execute(f"CREATE VIRTUAL TABLE passages USING fts5(text, content = '', tokenize = '{TOKENIZER}')")
        execute("CREATE VIRTUAL TABLE instances USING fts5vocab(passages, 'instance')")
        execute("BEGIN")
        self.database.executemany("INSERT INTO passages(rowid, text) VALUES (?, ?)", (
            (row, make_searchable(text_of_id(passage))) for row, passage in enumerate(self.ids)))
        execute("COMMIT")
        sizes = [read_varint(size) for size, in execute("SELECT sz FROM passages_docsize ORDER BY id")]
        mean = (sum(sizes) or 1) / (len(sizes) or 1)
        self.norms = [K1 * (1 - B + B * size / mean) for size in sizes]

    def _find(self, term: str) -> Postings:
        """Who holds a term; when FTS5 makes several tokens of it, they must follow each other."""
        if term not in self.postings:
            tokens = fold_terms([term])[term]
            places = " INTERSECT ".join(f"SELECT doc, offset - {place} FROM instances WHERE term = ?"
                                        for place in range(len(tokens)))
            times = run_sql(lambda: Counter(chain.from_iterable(
                self.database.execute(f"SELECT doc FROM ({places})", tokens))))
            self.postings[term] = weigh(times, self.norms)
        return self.postings[term]

    def _ask(self, terms: Sequence[str], admitted: Optional[FrozenSet[str]]) -> Ranking:
        """The ranking of a question: the last one's is still at hand, with what was added up for it."""
        if admitted != self.admitted[0]:
            self.admitted = admitted, None if admitted is None else {self.rows[name] for name in admitted}
        if self.asked is None or self.asked[:2] != (terms, admitted):
            self.asked = terms, admitted, Ranking([self._find(term) for term in terms], self.admitted[1])
        return self.asked[2]

    def best(self, terms: Sequence[str], limit: Optional[int],
             admitted: Optional[FrozenSet[str]] = None) -> List[Tuple[str, float]]:
        """The (passage id, score) of the best matches, in order; all of them when limit is None."""
        found = self._ask(terms, admitted).best(limit)
        if found and not self.checked:
            self._check(terms)
        return [(self.ids[row], score) for score, row in found]

    def before(self, terms: Sequence[str], passage: str,
               admitted: Optional[FrozenSet[str]] = None) -> Optional[List[str]]:
        """The matches before a passage, in no order; None when it shares no term with the question."""
        rows = self._ask(terms, admitted).before(self.rows[passage])
        return None if rows is None else [self.ids[row] for row in rows]

    def rank(self, terms: Sequence[str], passage: str,
             admitted: Optional[FrozenSet[str]] = None) -> Optional[int]:
        """The rank of a passage among the matches, from 1; None when it shares no term with the question."""
        rows = self._ask(terms, admitted).before(self.rows[passage])
        return None if rows is None else 1 + len(rows)

    def count(self, term: str) -> int:
        """How many passages of the variant hold a term."""
        return len(self._find(term).parts)

    def explain(self, terms: Sequence[str], passage: str) -> List[Tuple[str, int, float]]:
        """The (term, times, part) of each term that a passage holds; parts added up in order make -score."""
        row, explained = self.rows[passage], []
        for term in terms:
            found = self._find(term)
            if row in found.parts:
                part = found.parts[row]
                times = part * self.norms[row] / (found.idf * (K1 + 1.0) - part)  # weigh, turned round
                explained.append((term, round(times), part))
        return explained

    def _check(self, terms: Sequence[str]) -> None:
        """Ask FTS5's own bm25 one question; AtelierError when it differs from ours by more than rounding."""
        query = "SELECT rowid, bm25(passages) FROM passages WHERE passages MATCH ?"
        told = dict(run_sql(lambda: self.database.execute(query, (make_query(terms),)).fetchall()))
        ours = {row: score for score, row in Ranking([self._find(term) for term in terms], None).best(None)}
        if ours.keys() != told.keys() or not all(
                ours[row] * ROUNDING >= score >= ours[row] / ROUNDING for row, score in told.items()):
            raise AtelierError(f"Le bm25 de SQLite {sqlite_version()} n'est pas celui que ce programme "
                               "connaît et explique ; prenez un Python qui a un autre SQLite.")
        self.checked = True

    def close(self) -> None:
        self.database.close()


# --- 5. Assembling: hits and a budget to a context ------------------------------------------------

def assemble(lengths: Iterable[int], budget_words: int) -> List[int]:
    """The words kept of each hit, in rank order; the one that overflows is cut, later ones keep none.

    [60, 61] under 120: [60, 60].
    """
    totals = [0] + [min(total, budget_words) for total in accumulate(lengths)]
    return [after - before for before, after in zip(totals, totals[1:])]


# --- 6. Coverage and loss: spans in, verdicts out -------------------------------------------------

def missing_spans(quote: Span, spans: Iterable[Span]) -> List[Span]:
    """The parts of a quote that no span of its document holds; a fact is covered when there is none.

    Pieces add up: [0, 9[ misses [4, 6[ when [0, 4[ and [6, 9[ were sent.
    """
    missing, at = [], quote.start
    for span in sorted(span for span in spans if span.document == quote.document and span.start < span.end):
        if at < span.start and at < quote.end:
            missing.append(Span(quote.document, at, min(span.start, quote.end)))
        at = max(at, span.end)
    return missing + ([Span(quote.document, at, quote.end)] if at < quote.end else [])


def is_complete(question: Question, covered: Iterable[bool]) -> Optional[bool]:
    """Whether every required fact is covered; None for a question that has no answer."""
    return all(covered) if question.answerable else None


def kept_span(passage: Passage, words: int) -> Span:
    """The source positions of the first words of a passage."""
    end = min(passage.span.end, passage.span.start + words - lead_words(passage))
    return passage.span._replace(end=max(passage.span.start, end))


def kept_spans(by_id: Mapping[str, Passage], context: Iterable[Tuple[str, int]]) -> List[Span]:
    """The source positions of a context of (passage id, words kept); AtelierError when an id is unknown."""
    spans = []
    for name, words in context:
        if name not in by_id:
            raise AtelierError(f"passage {shown(name)} inconnu de cette variante. {suggestion(name, by_id)}")
        spans.append(kept_span(by_id[name], words))
    return spans


def size(spans: Iterable[Span]) -> int:
    """How many words spans have, those that several share counted each time."""
    return sum(span.end - span.start for span in spans)


def gather_lost(case: Case, sent: Sent, quote: Span, missing: Sequence[Span]) -> Lost:
    """What the stages need; of an engine, whose passages are unknown, the quote stands for a passage."""
    document, own = case.documents[quote.document], passage_of(case.documents, quote)
    touched = touching(sent.cutting, quote) if sent.cutting else [own]
    inside = [passage for passage in touched if not refused_by(sent.filters, owners_of(document, passage))]
    refusing = find_refusing(sent.filters, document, own, touched, inside)
    excluded, unsent = (excluded_words(case.documents, sent.filters, spans) for spans in ([quote], missing))
    return Lost(quote, missing, sent, case.settings.budget_words,
                refusing if unsent == excluded else {},  # an engine may send what filters refuse
                inside, [passage for passage in inside if holds(passage, quote)])


def find_refusing(filters: Filters, document: Document, own: Passage, touched: Sequence[Passage],
                  inside: Sequence[Passage]) -> Tree:
    """The conditions that keep out all that holds some word of a quote (own), or its whole document."""
    gaps = missing_spans(own.span, [passage.touched for passage in inside])
    refused = [passage for passage in touched if passage not in inside]
    if any(overlapping(gaps, passage.touched.start, passage.touched.end) for passage in refused):
        return refused_by(filters, [owner for passage in refused for owner in owners_of(document, passage)])
    if all(refused_by(filters, [owner]) for owner in owners_of(document)):
        return refused_by(filters, owners_of(document, own))
    return {}


# The stages of loss: each takes an uncovered quote and gives what its loss carries, None when it does not
# hold.

def filtered_out(lost: Lost) -> Optional[Tree]:
    """The filters refuse the document, or the section, where the quote stands."""
    return {"filter": lost.refusing} if lost.refusing else None


def not_indexed(lost: Lost) -> Optional[Tree]:
    """No passage touches some word of the quote: the cutting left it out."""
    return {} if missing_spans(lost.quote, [passage.touched for passage in lost.touching]) else None


def cut_by_budget(lost: Lost) -> Optional[Tree]:
    """words_over: how far beyond the budget, in the concatenated hits, the last word needed lies.

    None when it lies within: another engine cut its context by a rule of its own.
    """
    hits = lost.sent.hits or ()
    found = last_needed(lost.quote, [hit.passage for hit in hits])
    if not found:
        return None
    place, words = found
    over = words - lost.budget_words
    return {"passage": hits[place].passage.id, "rank": hits[place].rank,
            "words_over": over if over > 0 else None,
            **({"pieces": pieces_of(lost)} if lost.sent.cutting and not lost.holders else {})}


def last_needed(quote: Span, passages: Sequence[Passage]) -> Optional[Tuple[int, int]]:
    """In concatenated passages, (place of the last that a quote needs, words that reach the quote's end).

    A word counts at its earliest place.  None when the passages do not hold the whole quote.
    """
    left, before, last = [quote], 0, None
    for place, passage in enumerate(passages):
        span = passage.span
        after = [rest for part in left for rest in missing_spans(part, [span])]
        if size(after) < size(left):
            end = min(span.end, max(part.end for part in left if part.start < span.end))
            last = place, before + lead_words(passage) + end - span.start
        left, before = after, before + passage.words
        if not left:
            return last
    return None


def split_at_boundary(lost: Lost) -> Optional[Tree]:
    """Every word is in a passage, but no passage holds the whole quote; longest, when none could."""
    if lost.holders:
        return None
    longest = lost.sent.cutting.longest
    return {"pieces": pieces_of(lost), **({"longest": longest} if longest < size([lost.quote]) else {})}


def pieces_of(lost: Lost) -> List[Tree]:
    """The passages that hold a part of a lost quote, in text order, with their ranks (None: unmatched)."""
    return [{"passage": piece.id, "rank": rank_of(lost.sent, piece.id)} for piece in lost.touching]


def not_matched(lost: Lost) -> Optional[Tree]:
    """Passages hold the quote; none shares a term with the question."""
    return None if best_holder(lost) else {"passage": lost.holders[0].id}


def ranked_too_low(lost: Lost) -> Optional[Tree]:
    """The best ranked passage that holds the quote came after top_k."""
    rank, passage = best_holder(lost)
    limit = "per_document" if lost.sent.question.per_document else "top_k"
    return {"passage": passage, "rank": rank, "limit": limit}


def not_retrieved(lost: Lost) -> Optional[Tree]:
    """Another engine gave its hits, and they do not hold the quote."""
    return None if lost.sent.hits is None else {}


def not_sent(lost: Lost) -> Optional[Tree]:
    """Another engine gave its context alone: no more can be told."""
    return {}


def best_holder(lost: Lost) -> Optional[Tuple[int, str]]:
    """The (rank, passage id) of the best ranked of the passages that hold the quote whole."""
    ranked = [(rank_of(lost.sent, holder.id), holder.id) for holder in lost.holders]
    return min(((rank, name) for rank, name in ranked if rank), default=None)


Stage = record("Stage", "id test label detail advice special", """
    A stage of loss: its test (Lost to dict or None), its French name, what the table says, what to try;
    special: {what its loss may carry: what to try then}.""", defaults=({},))

STAGES = (
    Stage("filtered_out", filtered_out, "écartée par un filtre", "{filter}",
          "Vérifiez le filtre et les métadonnées du document."),
    Stage("not_indexed", not_indexed, "absente de l'index", "{missing}",
          "Le découpage laisse ces mots de côté : changez-le."),
    Stage("cut_by_budget", cut_by_budget, "coupée par le budget",
          "{passage}, rang {rank}, il manque {words_over} au budget",
          "La preuve est trouvée, mais trop loin : passages plus courts, moins de répétitions, "
          "ou budget plus grand.",
          {"pieces": "La preuve est trouvée en morceaux, mais trop loin : budget plus grand, ou recouvrement "
                     "qui la garde entière dans un passage."}),
    Stage("split_at_boundary", split_at_boundary, "coupée par le découpage", "{pieces}",
          "Une limite traverse la citation : déplacez-la (paragraphes, recouvrement), ou scindez le fait.",
          {"longest": "La citation est plus longue que tout passage (au plus {longest} mots) : il faut des "
                      "passages plus longs, ou scinder le fait ; aucun recouvrement n'y suffit."}),
    Stage("not_matched", not_matched, "sans mot commun avec la question", "{passage}",
          "Le corpus le dit autrement : reprenez ses mots dans la question, ou ajoutez-lui ceux de la "
          "question.",
          {"near": "Le passage a des formes voisines des mots de la question ({near}) : la recherche, "
                   "sans racines, ne les rapproche pas."}),
    Stage("ranked_too_low", ranked_too_low, "classée trop bas", "{passage}, rang {rank}",
          "Le passage est trouvé au-delà du top_k : voyez quels passages le précèdent, et par quels termes.",
          {"per_document": "Le passage est trouvé, mais « per_document » s'arrête avant lui dans son "
                           "document : augmentez-le ; « top_k » n'y change rien."}),
)
ENGINE_STAGES = (  # for an engine whose index is unknown
    STAGES[0],
    STAGES[2],
    Stage("not_retrieved", not_retrieved, "non trouvée par le moteur", "{missing}",
          "Le moteur ne l'a pas parmi ses passages trouvés : voyez son découpage, ses vecteurs, "
          "son top_k."),
    Stage("not_sent", not_sent, "absente du contexte", "{missing}",
          "Donnez aussi les passages trouvés (« hits ») pour savoir si la recherche ou le budget "
          "l'a perdue."),
)
STAGE = {stage.id: stage for stage in STAGES + ENGINE_STAGES}


def find_loss(lost: Lost, stages: Sequence[Stage]) -> Tree:
    """The first stage that holds, with what its loss carries (`missing` except for filters)."""
    for stage in stages:
        carried = stage.test(lost)
        if carried is not None:
            missing = [[span.start, span.end] for span in lost.missing]
            return {"stage": stage.id, **({} if stage == STAGES[0] else {"missing": missing}), **carried}
    raise AssertionError(f"no stage of loss holds for {lost.quote}")


# --- 7. Filters: what of a cutting a question may find --------------------------------------------

# Filters restrict the candidates, never the statistics.  A condition is a value (equal, or contained in a
# list) or an object of OPERATORS.  It judges owners of metadata: the sections that a passage overlaps, or its
# document when it has none.

def kind_of(value: Any) -> str:
    """What may be compared with what."""
    return "booléen" if isinstance(value, bool) else "nombre" if isinstance(value, (int, float)) else "texte"


def values_of(value: Any) -> List[Any]:
    """The values of a metadata key: those of a list, the one given, or none."""
    return value if isinstance(value, list) else [] if value is None else [value]


def is_same(value: Any, wanted: Any) -> bool:
    """Equality of one kind: true never equals 1."""
    return value == wanted and kind_of(value) == kind_of(wanted)


OPERATORS: Dict[str, Callable[[Any, Any], bool]] = {
    "gte": lambda value, bound: kind_of(value) == kind_of(bound) and value >= bound,
    "lte": lambda value, bound: kind_of(value) == kind_of(bound) and value <= bound,
    "in": lambda value, choices: any(is_same(value, choice) for choice in choices),
}


def operators_of(wanted: Any) -> Tree:
    """A condition as {operator: bound}."""
    return wanted if isinstance(wanted, dict) else {"in": [wanted]}


def passes(found: Any, wanted: Any) -> bool:
    """Whether a value of the metadata (None when absent) meets a condition."""
    if isinstance(wanted, list):
        return found == wanted
    return all(any(OPERATORS[operator](value, bound) for value in values_of(found))
               for operator, bound in operators_of(wanted).items())


def filters_in_force(case: Case, question: Question) -> Filters:
    """The (key, condition) that a passage must meet: the case's and the question's."""
    return [*case.settings.filters.items(), *question.filters.items()]


def refused_by(filters: Filters, owners: Iterable[Any]) -> Tree:
    """The conditions that some owners do not meet: {key: what was wanted, and what the first of them has}."""
    refusing: Tree = {}
    for owner in owners:
        for key, wanted in filters:
            found = owner.metadata.get(key)
            if not passes(found, wanted):
                refusing.setdefault(key, {"wanted": wanted, "found": found})
    return refusing


def owners_of(document: Document, passage: Optional[Passage] = None) -> Sequence[Any]:
    """What filters judge of a passage, or of a whole document: sections, or the document that has none."""
    return (sections_of(document, passage) if passage else document.sections) or [document]


# --- 8. Report: outcomes to the JSON's dict -------------------------------------------------------

def summarize_sets(case: Case, cutting: Optional[Cutting], outcomes: Sequence[Outcome]) -> Tree:
    """The summary and, when questions have sets, that of each set."""
    names = dict.fromkeys(question.set for question in case.questions if question.set)
    by_set = {name: summarize(case, cutting, [outcome for outcome in outcomes
                                              if outcome.sent.question.set == name]) for name in names}
    return {"summary": summarize(case, cutting, outcomes), **({"by_set": by_set} if by_set else {})}


def summarize(case: Case, cutting: Optional[Cutting], outcomes: Sequence[Outcome]) -> Tree:
    """The counts of a variant over the answerable questions; None where an engine (no cutting) has none."""
    judged = [outcome for outcome in outcomes if outcome.sent.question.answerable]
    verdicts = [verdict for outcome in judged for verdict in outcome.verdicts]
    lost = [verdict.chosen.loss["stage"] for verdict in verdicts if verdict.chosen.loss]
    lengths = sorted(passage.words for passage in cutting.by_id.values()) if cutting else []
    return {
        "passages_indexed": len(lengths) or None,
        "words_indexed": sum(lengths) or None,
        "complete_contexts": sum(all(not verdict.chosen.loss for verdict in outcome.verdicts)
                                 for outcome in judged),
        "answerable_questions": len(judged),
        "facts_covered": len(verdicts) - len(lost),
        "facts_required": len(verdicts),
        "facts_whole": sum(is_held_whole(cutting, verdict.fact) for verdict in verdicts) if cutting else None,
        "recall_at": recall_at(judged, case.settings.top_k),
        **measure_evidence(judged),
        **{key: sum(outcome.counts[key] for outcome in judged) for key in WORDS_SENT},
        "losses": {stage: lost.count(stage) for stage in STAGE if stage in lost},
        "budget_curve": curve([outcome.needed and outcome.needed["budget_words"] for outcome in judged]),
        "depth_curve": curve([outcome.needed and depth_needed(
            outcome.needed, outcome.sent.question.per_document) for outcome in judged]) if cutting else None,
        "passage_words": {"min": lengths[0], "median": median(lengths),
                          "max": lengths[-1]} if lengths else None,
        "over_max": cutting.over_max if cutting else None,
        **count_mixed(case.documents, cutting),
    }


def describe_case(case: Case) -> Tree:
    """The report's `case`: files by name and SHA-256, sizes in words, counts."""
    documents = [{"id": document.id, "words": len(document.starts),
                  "sha256": sha256(document.text.encode("utf-8"))} for document in case.documents.values()]
    return {
        "file": case.file, "sha256": case.sha256, "title": case.title,
        "words": sum(document["words"] for document in documents),
        "documents": documents,
        "questions": len(case.questions),
        "answerable_questions": sum(question.answerable for question in case.questions),
        "facts": len(case.facts),
    }


def describe_settings(settings: Settings) -> Tree:
    """The report's `settings`: all that a run of the same case depends on."""
    return {"filters": settings.filters, "top_k": settings.top_k, "budget_words": settings.budget_words,
            "tokenizer": TOKENIZER, "stop_words": list(settings.stop_words),
            "index_titles": settings.index_titles}


def describe_outcomes(case: Case, outcomes: Sequence[Outcome]) -> List[Tree]:
    """The questions of the report; passages that several find are sliced once."""
    slice_text = lru_cache(None)(lambda *passage: text_of(case.documents, *passage))
    return [describe_outcome(case, question, outcome, slice_text)
            for question, outcome in zip(case.questions, outcomes)]


def describe_outcome(case: Case, question: Question, outcome: Outcome,
                     slice_text: Callable[..., str]) -> Tree:
    """A question of the report: what was searched, found and sent, and the verdict on each fact."""
    sent = outcome.sent
    facts = [describe_verdict(verdict) for verdict in outcome.verdicts]
    return {
        "id": question.id, "text": question.text, "answerable": question.answerable,
        **({"set": question.set} if question.set else {}),
        "filters": question.filters, "per_document": question.per_document,
        "terms": sent.terms and [{"term": term, "passages": passages} for term, passages in sent.terms],
        "ignored": sent.ignored,
        "query": None if sent.terms is None else make_query(term for term, _ in sent.terms),
        "no_hits": sent.no_hits,
        "hits_before_budget": sent.hits and [describe_hit(case, hit, slice_text) for hit in sent.hits],
        "context": [describe_kept(hit, span, slice_text) for hit, span in zip(sent.context, outcome.spans)],
        **outcome.counts,
        "facts": facts,
        "all_required_covered": is_complete(question, [fact["covered"] for fact in facts]),
        "needed": outcome.needed,
    }


def describe_hit(case: Case, hit: Hit, slice_text: Callable[..., str]) -> Tree:
    """A line of `hits_before_budget`; slice_text(passage) is its text, scores have 9 decimals."""
    passage = hit.passage
    sections = sections_of(case.documents.get(passage.span.document, NOWHERE), passage)
    return {"rank": hit.rank, **describe_place(passage, passage.span), "words": passage.words,
            "heading_words": heading_words(passage), "lead_words": lead_words(passage),
            "kept_words": hit.kept_words, "score": hit.score and round(hit.score, 9),
            "terms": describe_terms(hit.terms), "sections": [section.title for section in sections],
            "paths": [list(section.path) for section in sections], "text": slice_text(passage)}


def describe_place(passage: Passage, span: Span) -> Tree:
    """Which passage, and which words of which document; nulls for a text that no document has."""
    where = span if span.document != NOWHERE.id else Span(None, None, None)
    return {"passage": passage.id, **where._asdict()}


def describe_terms(terms: Optional[Iterable[Tuple[str, int, float]]]) -> Optional[List[Tree]]:
    """The terms of a question that a passage holds: how many times, and the part of its score."""
    return terms and [{"term": term, "times": times, "part": round(part, 9)} for term, times, part in terms]


def describe_kept(hit: Hit, span: Span, slice_text: Callable[..., str]) -> Tree:
    """A line of `context`: the words that were kept, of source positions span."""
    passage, words = hit.passage, hit.kept_words
    return {"rank": hit.rank, **describe_place(passage, span), "words": words,
            "heading_words": min(words, heading_words(passage)),
            "lead_words": min(words, lead_words(passage)), "truncated": words < passage.words,
            "text": slice_text(passage, words)}


def describe_verdict(verdict: Verdict) -> Tree:
    """The figures of the quote that speaks for a fact and, when it has alternatives, those of each."""
    described = {"id": verdict.fact.id, **describe_attempt(verdict.chosen)}
    if verdict.fact.several:
        described["alternatives"] = [describe_attempt(attempt) for attempt in verdict.attempts]
        described["covered_by"] = None if verdict.chosen.loss else verdict.attempts.index(verdict.chosen)
    return described


def describe_attempt(attempt: Attempt) -> Tree:
    """The figures of one quote, in words of its document, and its loss."""
    span, words = attempt.quote.span, size([attempt.quote.span])
    return {"document": span.document, "quote": attempt.quote.text, "start": span.start, "end": span.end,
            "words": words, "words_covered": words - attempt.missing, "covered": attempt.loss is None,
            "loss": attempt.loss}


# --- 9. Table: a report to eighty columns ---------------------------------------------------------

LISTED_LOSSES = 12       # under the table
TABLE_HEAD = """\
variante                passages     mots contextes    faits     mots       mots
                                  indexés  complets couverts  envoyés redondants"""
TABLE_LINE = "{:<23}{:>9}{:>9}{:>10}{:>9}{:>9}{:>11}"
BREACHES = {"over_budget": "au-delà du budget", "excluded_words": "malgré les filtres"}  # words sent


def format_table(report: Tree, questions: Sequence[str] = ()) -> str:
    """The result table, at most 80 columns wide; questions (ids) have their whole trip."""
    case, settings = report["case"], report["settings"]
    title = " · ".join(filter(None, ["Atelier " + report["atelier"], case["file"], case["title"]]))
    signature = "Signature : atelier {}, cas {}, top_k {}, budget {}".format(
        report["atelier"], case["sha256"][:12], settings["top_k"], counted(settings["budget_words"], "mot"))
    return "\n".join([
        clip(title), describe_size(case), "", TABLE_HEAD, "-" * 80,
        *[line for variant in report["variants"] for line in format_lines(variant)], "",
        *format_recall(report["variants"], settings["top_k"]), "",
        *format_needs(report["variants"], settings["top_k"]),
        *(format_trips(report, questions) if questions else format_losses(report["variants"])), "",
        *(format_comparisons(report["comparisons"]) if report["comparisons"] else []),
        clip(signature)]) + "\n"


def describe_size(case: Tree) -> str:
    """`432 mots, 3 documents, 6 questions dont 5 avec réponse, 10 faits`."""
    return "{}, {}, {} dont {} avec réponse, {}".format(
        counted(case["words"], "mot"), counted(len(case["documents"]), "document"),
        counted(case["questions"], "question"), case["answerable_questions"], counted(case["facts"], "fait"))


def format_lines(variant: Tree) -> Iterator[str]:
    """A variant's line of the result table, and one for each set; under each, what was out of bounds."""
    for name, summary in [(variant["id"], variant["summary"]), *variant.get("by_set", {}).items()]:
        whole = summary is variant["summary"]
        passages, words = (summary[key] or "-" if whole else ""
                           for key in ("passages_indexed", "words_indexed"))
        yield TABLE_LINE.format(
            clip(name, 22) if whole else "  " + clip(f"lot {name}", 20), passages, words,
            "{complete_contexts}/{answerable_questions}".format(**summary),
            "{facts_covered}/{facts_required}".format(**summary),
            summary["words_sent"], summary["redundant_words"])
        breaches = [f"{counted(summary[key], 'mot')} {problem}" for key, problem in BREACHES.items()
                    if summary[key]]
        if breaches:
            yield "    " + clip("dont " + ", ".join(breaches), 76)


def format_recall(variants: Sequence[Tree], top_k: int) -> List[str]:
    """Recall by proof at a few k, its ceiling, and how many passages mix sections when some do."""
    mixed = any(variant["summary"]["mixed_passages"] for variant in variants)
    ranks = sorted({k for k in ((1, 4, top_k) if mixed and top_k > 4 else (1, 2, 4, top_k)) if k <= top_k})
    lines = ["{:<23}{}{:>18}{}".format(
        "rappel par preuve", "".join("{:>9}".format("k = {}".format(k)) for k in ranks), "d'un seul tenant",
        "{:>10}".format("à cheval") if mixed else "")]
    for variant in variants:
        summary, recall = variant["summary"], variant["summary"]["recall_at"]
        shares = [decimal(recall[min(k, len(recall)) - 1], 3) if recall else "-" for k in ranks]
        whole, over = summary["facts_whole"], summary["mixed_passages"]
        lines.append("{:<23}{}{:>18}{}".format(
            clip(variant["id"], 22), "".join("{:>9}".format(share) for share in shares),
            "-" if whole is None else "{}/{}".format(whole, summary["facts_required"]),
            "{:>10}".format("-" if over is None else over) if mixed else ""))
    return lines


def format_needs(variants: Sequence[Tree], top_k: int) -> List[str]:
    """The complete contexts that this top_k allows, and the smallest budget that gives them."""
    form = "{:<23}{:>18}{:>20}"
    lines = [form.format(f"possible à top_k {top_k}", "contextes complets", "budget suffisant")]
    for variant in variants:
        summary = variant["summary"]
        budget, complete = (summary["budget_curve"] or [[None, 0]])[-1]
        known = summary["recall_at"] is not None  # hits were given
        lines.append(form.format(
            clip(variant["id"], 22), f"{complete}/{summary['answerable_questions']}" if known else "-",
            counted(budget, "mot") if budget else "-"))
    return [*lines, ""]


def format_losses(variants: Sequence[Tree]) -> List[str]:
    """Two lines for each lost proof or, when they are many, a line for each variant and stage."""
    lost = [(variant["id"], question["id"], fact) for variant in variants for question in variant["questions"]
            for fact in question["facts"] if fact["loss"]]
    if not lost:
        required = any(variant["summary"]["facts_required"] for variant in variants)
        return ["Aucune preuve perdue." if required else "Aucune preuve exigée."]
    if len(lost) > LISTED_LOSSES:
        return [clip(f"Preuves perdues (une à une : --question {lost[0][1]}, ou --output FICHIER)")] + [
            f"  {clip(variant['id'], 21):<22}{number:>6}  {STAGE[stage].label}"
            for variant in variants for stage, number in variant["summary"]["losses"].items()]
    lines = ["Preuves perdues"]
    for variant, question, fact in lost:
        where = f"{clip(variant, 24)} · {clip(question, 24)} · {fact['id']}"
        why = f"{STAGE[fact['loss']['stage']].label} : {detail_of(fact['loss'])}"
        lines += ["  " + clip(where, 78), "    " + clip(why, 76)]
    return lines


def detail_of(loss: Tree) -> str:
    """What a loss carries, in French: `regles#0002, rang 2, 22 mots de trop`."""
    return STAGE[loss["stage"]].detail.format(**{**loss, **words_of(loss)})


# --- 10. Words: figures, values and losses as French sentences tell them --------------------------

def words_of(loss: Tree) -> Dict[str, str]:
    """The members of a loss that a sentence tells in words."""
    pieces = [(piece["passage"], rank_in_words(piece["rank"])) for piece in loss.get("pieces", ())]
    near = dict.fromkeys("{} / {}".format(*pair) for place in loss.get("places", ())
                         for pair in place["near"] or ())
    return {
        "filter": ", ".join(f"{key} = {plain(sides['found'])} (demandé : {plain(sides['wanted'])})"
                            for key, sides in loss.get("filter", {}).items()),
        "missing": ", ".join(f"mots {start} à {end - 1}" for start, end in loss.get("missing", ())),
        "near": ", ".join(near),
        "pieces": " + ".join("{} ({})".format(*piece) for piece in pieces),
        "words_over": counted(loss["words_over"], "mot") if loss.get("words_over") else "des mots",
    }


def rank_in_words(rank: Optional[int]) -> str:
    """`rang 2`; a passage that shares no term has no rank."""
    return f"rang {rank}" if rank else "sans rang"


def plain(value: Any) -> str:
    """A metadata value, or a condition, as a sentence tells it."""
    if isinstance(value, dict):
        signs = {"gte": ">= {}", "lte": "<= {}", "in": "l'un de {}"}
        return " et ".join(signs.get(sign, "{}").format(plain(bound)) for sign, bound in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "absent" if value is None else value if isinstance(value, str) else shown(value)


def clip(text: str, width: int = 80) -> str:
    """A text on one line, cut with an ellipsis when it is wider."""
    folded = " ".join(text.split())
    return folded if len(folded) <= width else folded[:width - 1] + "…"


def counted(number: int, noun: str) -> str:
    """`1 mot`, `22 mots`; a noun of several words takes the mark on each: `fait couvert`."""
    if number > 1:
        noun = " ".join(word + ("" if word.endswith(("s", "x")) else "s") for word in noun.split())
    return f"{number} {noun}"


def decimal(number: float, digits: int) -> str:
    """`0,500`: with that many digits and the French comma."""
    return "{:.{}f}".format(number, digits).replace(".", ",")


def shown(value: Any) -> str:
    """A value as a sentence quotes it: on one line, at most 80 characters."""
    if isinstance(value, str):
        return f"« {clip(reveal(value))} »" if value.strip() else "un texte vide"
    if isinstance(value, Unreadable):
        return "une valeur illisible"
    if isinstance(value, dict) or isinstance(value, list) and any(
            isinstance(item, (dict, list, Unreadable)) for item in value):
        return "un objet" if isinstance(value, dict) else "une liste"
    return clip(json.dumps(value, ensure_ascii=False))


def some(names: Iterable[str], most: int = 5) -> str:
    """`a, b, c, d, e, …`: the first names of a list."""
    first = list(islice(names, most + 1))
    return ", ".join(first[:most]) + (", …" if len(first) > most else "")


def suggestion(value: str, known: Iterable[str]) -> str:
    """The mend of an unknown name: the nearest known one, else the list of those that are known."""
    from difflib import get_close_matches
    names, pairs = list(dict.fromkeys(known)), set(zip(value, value[1:]))
    alike = sorted(names, key=lambda name: -len(pairs.intersection(zip(name, name[1:]))))[:50]  # for speed
    near = get_close_matches(value, alike, 1)
    if near:
        return f"Vouliez-vous dire {shown(near[0])} ?"
    return f"Possibles : {some(names, 12)}." if names else "Rien n'est admis ici."


# --- 11. Measures: what sums questions up ---------------------------------------------------------

def curve(needs: Iterable[Optional[int]]) -> List[List[int]]:
    """[[value, how many of the needs it meets], …], a step a line; what nothing meets (None) is left out."""
    times = sorted(Counter(need for need in needs if need is not None).items())
    return [[need, met] for (need, _), met in zip(times, accumulate(number for _, number in times))]


def depth_needed(needed: Tree, per_document: Optional[int]) -> Optional[int]:
    """The top_k that a question needs, whatever the budget; 1 when its own per_document is enough."""
    deeper = needed["deeper"] or {}
    if per_document:
        return 1 if deeper.get("per_document", per_document + 1) <= per_document else None
    return deeper.get("top_k")


def is_held_whole(cutting: Cutting, fact: Fact) -> bool:
    """Whether some passage of a variant holds one of a fact's quotes whole: what the cutting alone allows."""
    return any(holds(passage, quote.span) for quote in fact.quotes
               for passage in touching(cutting, quote.span))


def measure_evidence(outcomes: Sequence[Outcome]) -> Dict[str, Optional[float]]:
    """Word-level recall, precision and intersection over union of the required quotes and the contexts, as in
    Chroma's evaluation of chunking: over distinct source positions, averaged over questions.  None without.
    """
    shares = []
    for outcome in outcomes:
        evidence = union([verdict.chosen.quote.span for verdict in outcome.verdicts])
        sent = union(outcome.spans)
        both = size(evidence) - size([span for quote in evidence for span in missing_spans(quote, sent)])
        shares.append((both / size(evidence), both / size(sent) if size(sent) else 0,
                       both / (size(evidence) + size(sent) - both)))
    names = ("evidence_recall", "evidence_precision", "evidence_iou")
    if not shares:
        return dict.fromkeys(names)
    return {name: round(sum(values) / len(values), 9) for name, values in zip(names, zip(*shares))}


def recall_at(outcomes: Sequence[Outcome], top_k: int) -> Optional[List[float]]:
    """For k from 1, the mean share of a question's required facts that one hit of rank <= k holds whole.

    Before the budget; k ends at top_k, or at the most hits of a question, after which nothing changes; with
    per_document all the hits of a question count at every k.  None without question or hits.
    """
    if not outcomes or any(outcome.sent.hits is None for outcome in outcomes):
        return None
    ranks = [[first_rank(outcome.sent, verdict.fact) for verdict in outcome.verdicts] for outcome in outcomes]
    last = min(top_k, max(1, *(len(outcome.sent.hits) for outcome in outcomes)))
    return [round(sum(sum(rank is not None and rank <= k for rank in asked) / len(asked) for asked in ranks)
                  / len(ranks), 9) for k in range(1, last + 1)]


def first_rank(sent: Sent, fact: Fact) -> Optional[int]:
    """The rank of the first hit that holds a fact whole; 1 for any hit of a question with per_document."""
    for hit in sent.hits:
        for quote in fact.quotes:
            if hit.passage.span.document == quote.span.document and holds(hit.passage, quote.span):
                return 1 if sent.question.per_document else hit.rank
    return None


REPEATED_RUN = 8  # words: fewer in common say little


def union(spans: Iterable[Span]) -> List[Span]:
    """The same positions as disjoint spans, in order."""
    merged: List[Span] = []
    for span in sorted(spans):
        if merged and merged[-1].document == span.document and span.start <= merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


WORDS_SENT = ("words_sent", "redundant_words", "duplicate_words", "foreign_words", "over_budget",
              "excluded_words")


def count_words(case: Case, sent: Sent, spans: Sequence[Span]) -> Dict[str, int]:
    """A line of WORDS_SENT: how many words.  Redundant: occurrences beyond the first of a source position;
    duplicate: of a text; foreign: of a text that no document has."""
    words = sum(hit.kept_words for hit in sent.context)
    foreign = size(hit.passage.touched for hit in sent.context if hit.passage.touched.document == NOWHERE.id)
    return dict(zip(WORDS_SENT, (
        words, size(spans) - size(union(spans)), duplicate_words(case.documents, spans), foreign,
        max(0, words - case.settings.budget_words), excluded_words(case.documents, sent.filters, spans))))


def excluded_words(documents: Documents, filters: Filters, spans: Iterable[Span]) -> int:
    """How many words of spans, each occurrence counted, lie in sections that filters refuse, or anywhere in a
    document that they refuse whole."""
    excluded, whole_words = 0, sorted(span for span in spans if filters and span.start < span.end)
    for name, parts in groupby(whole_words, lambda span: span.document):
        document, parts = documents[name], list(parts)
        if all(refused_by(filters, [owner]) for owner in owners_of(document)):
            excluded += size(parts)
            continue
        for span in parts:
            for section in sections_of(document, passage_of(documents, span)):
                if refused_by(filters, [section]):
                    inside = make_passage(document, "", section.start, section.end, "").span
                    excluded += min(span.end, inside.end) - max(span.start, inside.start)
    return excluded


def duplicate_words(documents: Documents, spans: Iterable[Span]) -> int:
    """How many words of spans have a text already sent from elsewhere, in runs of 8 words or a whole span."""
    seen: Dict[tuple, tuple] = {}
    repeated: Set[tuple] = set()
    for span in spans:
        words = text_of(documents, passage_of(documents, span)).split() if size([span]) else []
        places = [(span.document, number) for number in range(span.start, span.end)]
        run = min(REPEATED_RUN, len(words))
        runs = list(zip(*(words[after:] for after in range(run))))
        if seen.keys().isdisjoint(runs):  # for speed
            seen.update(zip(runs, places))
            runs = []
        for number, words_of_run in enumerate(runs):
            if seen.setdefault(words_of_run, places[number]) != places[number]:
                repeated.update(places[number:number + run])
        for length in range(1, run):  # a budget may leave so little of a twin
            seen.setdefault(tuple(words[:length]), places[0])
    return len(repeated)


def count_mixed(documents: Documents, cutting: Optional[Cutting]) -> Tree:
    """How many passages overlap two sections or more and, for each metadata key of sections, two values."""
    if not cutting:
        return {"mixed_passages": None, "mixed_by": None}
    overlapped = [sections_of(documents[name], passage) for name, passages in cutting.by_document.items()
                  for passage in passages]
    mixed = [sections for sections in overlapped if len(sections) > 1]
    keys = sorted({key for document in documents.values() for section in document.sections
                   for key, value in section.metadata.items() if value != document.metadata.get(key)})
    values = {key: [{json.dumps(section.metadata.get(key)) for section in sections} for sections in mixed]
              for key in keys}
    return {"mixed_passages": len(mixed),
            "mixed_by": {key: sum(len(found) > 1 for found in values[key]) for key in keys}}


def median(ordered: Sequence[int]) -> Any:
    """The mean of the two middle values, an integer when whole."""
    double = ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
    return double / 2 if double % 2 else double // 2


# --- 12. Engine room: SQLite, and what makes searching and filtering quick ------------------------

INVISIBLE = {  # the French names of some of what no screen shows
    "\u00ad": "trait d'union conditionnel", "\u200b": "espace de largeur nulle",
    "\u200c": "antiliant sans chasse", "\u200d": "liant sans chasse", "\u2060": "gluon de mots",
    "\ufeff": "indicateur d'ordre des octets",
    **dict.fromkeys("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
                    "marque de sens d'écriture"),
}
APOSTROPHES = "'’ʼ"
# A letter or a digit: Python's, but the few that FTS5 takes for signs; or a mark that FTS5 keeps in a word.
LETTER = ("[^\\W_\u19b0-\u19c0\u19c8\u19c9\u1cf2\u1cf3]|"
          "[\u0300-\u0304\u0306-\u030c\u030f\u0311\u031b\u0323-\u0328\u032d\u032e\u0330\u0331]")
# What no screen shows: soft hyphens, zero-width and bidirectional signs, fillers, variants.
UNSEEN = ("[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
          "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
          "\U000e0000-\U000e0fff]")


class Letters(dict):
    """What is left of each character, by code point, where words are looked for; filled as they come."""

    def __missing__(self, point: int) -> str:
        character = chr(point)
        self[point] = ("" if re.match(UNSEEN, character) else "'" if character in APOSTROPHES
                       else character if re.match(LETTER, character) else " ")
        return self[point]


LETTERS = Letters()


def keep_letters(text: str) -> str:
    """A text in NFC, without its invisible characters; blanks for all but letters, digits, apostrophes."""
    return unicodedata.normalize("NFC", text).translate(LETTERS)


def without_accents(text: str) -> str:
    """A text, decomposed, without the marks that Latin letters bear."""
    return re.sub("[\u0300-\u036f]+", "", unicodedata.normalize("NFD", text))


def describe_environment() -> Dict[str, str]:
    """What scores and words may depend on."""
    return {"python": "{}.{}.{}".format(*sys.version_info), "sqlite": sqlite_version()}


def sha256(data: bytes) -> str:
    """Hexadecimal digest."""
    from hashlib import sha256 as digest
    return digest(data).hexdigest()


def open_database() -> Any:
    """A connection to a database in memory; AtelierError when this Python has no usable FTS5."""
    try:
        import sqlite3
    except ImportError:
        raise AtelierError("Ce Python n'a pas le module sqlite3 ; prenez un Python qui l'a.") from None
    if sqlite3.sqlite_version_info < (3, 27):
        raise AtelierError(f"SQLite {sqlite3.sqlite_version} est trop ancien ; "
                           "il faut SQLite 3.27 ou plus récent.")
    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        database.execute("SELECT fts5_source_id()")
    except sqlite3.OperationalError:
        raise AtelierError("Le SQLite de ce Python est compilé sans FTS5 ; "
                           "prenez un Python dont SQLite a FTS5.") from None
    return database


def sqlite_version() -> str:
    """That of the library, not of the module."""
    from sqlite3 import sqlite_version as version
    return version


def run_sql(action: Callable[[], Any]) -> Any:
    """The result of an action on a database; AtelierError gives the cause of a failure."""
    from sqlite3 import Error
    try:
        return action()
    except Error as error:
        raise AtelierError(f"La recherche a échoué dans SQLite : {error}.") from error


def read_varint(data: bytes) -> int:
    """An integer as SQLite packs it: seven bits a byte, the highest first; 0x81 0x00 is 128."""
    value = 0
    for byte in data:
        value = value << 7 | byte & 127
    return value


FOLDS = {}  # {term: its tokens} of those met so far


def fold_terms(terms: Iterable[str]) -> Dict[str, tuple]:
    """Each term with the tokens that FTS5 makes of it when given it alone: `Hôtel` gives ("hotel",)."""
    new = [term for term in dict.fromkeys(terms) if term not in FOLDS]
    if new:
        FOLDS.update(run_sql(lambda: ask_folds(new)))
    return FOLDS


def ask_folds(terms: Sequence[str]) -> Dict[str, tuple]:
    """What FTS5 indexes when it is given each term alone."""
    folds, database = dict.fromkeys(terms, ()), open_database()
    try:
        database.execute(f"CREATE VIRTUAL TABLE words USING fts5(word, tokenize = '{TOKENIZER}')")
        database.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab(words, 'instance')")
        database.execute("BEGIN")
        database.executemany("INSERT INTO words(rowid, word) VALUES (?, ?)", enumerate(terms))
        for number, token in database.execute("SELECT doc, term FROM tokens ORDER BY doc, offset"):
            folds[terms[number]] += (token,)
    finally:
        database.close()
    return folds


ROUNDING = 1 - 1e-9  # parts added up in two orders agree far better than that


class Ranking:
    """The matches of one question, added up from its heaviest term to its lightest, no further than is asked.

    This is MaxScore (Turtle and Flood, 1995): a term adds at most its largest part.  Let three terms add at
    most 5, 2 and 1, and some passage have 4 once the first is added up.  One that lacks the first gets 3 at
    most and is not the best: the two others are looked up in the passages of the first, and let none in.
    Such sums only discard, with a margin for rounding; a score that is told is added up anew in the query's
    order, as FTS5 does it, and equals its bm25 to the last bit.
    """

    def __init__(self, postings: Sequence[Postings], admitted: Optional[Set[int]]):
        self.postings, self.admitted = postings, admitted
        self.heaviest = sorted(postings, key=lambda term: -term.most)
        self.left = list(accumulate((term.most for term in reversed(self.heaviest)), initial=0.0))[::-1]
        self.sums = {}
        self.taken = 0  # how many of the heaviest are added up in sums; the others add at most left[taken]
        self.floor, self.reached = float("inf"), self.sums
        self.ahead = {}

    def _take(self) -> None:
        """Add up the next heaviest term; the admitted rows that have none of those before come in."""
        parts = self.heaviest[self.taken].parts
        for row in parts if self.admitted is None else parts.keys() & self.admitted:
            self.sums[row] = self.sums.get(row, 0.0) + parts[row]
        self.taken += 1

    def _reach(self, floor: float) -> Dict[int, float]:
        """{row: sum of all its parts} of every match that reaches floor, and of some others.

        An answer serves again for whatever lies above: the ranks of a question's lost proofs share it.
        """
        if floor < self.floor:
            while self.left[self.taken] > floor:
                self._take()
            reached = self.sums
            for term, left in zip(self.heaviest[self.taken:], self.left[self.taken:]):
                part, least = term.parts.get, floor - left
                reached = {row: total + part(row, 0.0) for row, total in reached.items() if total >= least}
            self.floor, self.reached = floor, reached
        return self.reached

    def score(self, row: int) -> float:
        """Minus the sum of a row's parts, added up in the query's order."""
        total = 0.0
        for term in self.postings:  # sum() would round less than FTS5 since Python 3.12
            total += term.parts.get(row, 0.0)
        return -total

    def best(self, limit: Optional[int]) -> List[Tuple[float, int]]:
        """The (score, row) of the first limit matches, or of all, in order."""
        def last_of_best(sums):
            return sorted(sums.values())[-limit] * ROUNDING if limit and len(sums) >= limit else 0.0
        floor = 0.0
        while self.left[self.taken] > floor:
            self._take()
            if self.left[self.taken] < self.left[0] / 2:  # else no sum is above what is left
                floor = last_of_best(self.sums)
        reached = self._reach(floor)
        floor = last_of_best(reached)
        return sorted((self.score(row), row) for row, total in reached.items() if total >= floor)[:limit]

    def before(self, row: int) -> Optional[List[int]]:
        """The matches that come before a row, in no order; None when it is no match."""
        own = self.score(row)
        if not own or self.admitted is not None and row not in self.admitted:
            return None
        if row not in self.ahead:
            lowest, highest = -own * ROUNDING, -own / ROUNDING
            self.ahead[row] = [other for other, total in self._reach(lowest).items() if total > highest or
                               total >= lowest and (self.score(other), other) < (own, row)]
        return self.ahead[row]


def overlapping(items: Sequence[Any], start: int, end: int,
                limits: Callable[[Any], Any] = lambda item: item) -> List[Any]:
    """The items that share a position with start … end; limits gives their .start and .end, both in order."""
    low, high = 0, len(items)
    while low < high:  # bisect has no key before Python 3.10
        middle = (low + high) // 2
        low, high = (middle + 1, high) if limits(items[middle]).end <= start else (low, middle)
    return list(takewhile(lambda item: limits(item).start < end, islice(items, low, None)))


class Admission:
    """The passages of a cutting that filters let through, looked up by value, once a distinct filter."""

    def __init__(self, documents: Documents, cutting: Optional[Cutting]):
        self.known = {}
        self.by_value = {}  # {key: {value: owners that have it}}
        self.passages = {}  # of each owner
        self.owners = {}    # how many each passage has
        for name, document in documents.items():
            for owner in owners_of(document):
                for key, found in owner.metadata.items():
                    whole = [("liste", json.dumps(found))] if isinstance(found, list) else []
                    for value in whole + [(kind_of(value), value) for value in values_of(found)]:
                        self.by_value.setdefault(key, {}).setdefault(value, set()).add(id(owner))
            for passage in cutting.by_document[name] if cutting else ():
                owners = owners_of(document, passage)
                self.owners[passage.id] = len(owners)
                for owner in owners:
                    self.passages.setdefault(id(owner), []).append(passage.id)

    def meeting(self, key: str, wanted: Any) -> Set[int]:
        """The owners that meet a condition."""
        values, met = self.by_value.get(key, {}), []
        if isinstance(wanted, list):
            return values.get(("liste", json.dumps(wanted)), set())
        for operator, bound in operators_of(wanted).items():
            found = [(kind_of(choice), choice) for choice in bound] if operator == "in" else [
                value for value in values if value[0] != "liste" and OPERATORS[operator](value[1], bound)]
            met.append(set().union(*(values.get(value, ()) for value in found)))
        return set.intersection(*met)

    def admitted(self, filters: Filters) -> FrozenSet[str]:
        """The ids of the passages all of whose owners meet all of some filters, which are not empty."""
        name = json.dumps(filters)
        if name not in self.known:
            owners = set.intersection(*(self.meeting(*condition) for condition in filters))
            met = Counter(passage for owner in owners for passage in self.passages.get(owner, ()))
            self.known[name] = frozenset(passage for passage in met if met[passage] == self.owners[passage])
        return self.known[name]


def best_of_each(found: Iterable[tuple], cutting: Cutting, limit: int) -> List[tuple]:
    """The first limit matches of each document, in the order of all."""
    room, best = {}, []
    for name, score in found:
        document = cutting.by_id[name].span.document
        room[document] = room.get(document, limit) - 1
        if room[document] >= 0:
            best.append((name, score))
    return best


# --- 13. Reading a case: bytes to Case ------------------------------------------------------------
# Shape first (JSON, keys, types), then meaning (ids, references, quotes); all the faults of a file are told.

CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")  # what no text may hold
MAX_DEPTH = 50           # of nesting in a file; the formats need 10
MAX_DIGITS = 15          # of an integer: beyond, other JSON readers lose digits
LISTED_FAULTS = 100      # of one file


class Faults:
    """Gathers the faults of one file, to be shown together.

    alike: those of one kind, which differ by names and figures alone, are shown as one.
    """

    def __init__(self, file: str, alike: bool = False):
        self.file, self.alike = file, alike
        self.told = {}  # {kind: (its first sentence, what suggestion takes, if anything, its places as keys)}

    def add(self, place: str, problem: str, *meant: Any) -> None:
        """Tell a problem at a place; meant: the name that was given, and those among which it should be."""
        kind = sentence = " : ".join(filter(None, (self.file, place, problem)))
        if self.alike and place:
            kind = re.sub("« .*? »|[0-9]+", "", problem).partition(". ")[0]
        _, _, places = self.told.setdefault(kind, (sentence, meant, {}))
        places[place] = None

    def extend(self, place: str, error: AtelierError) -> None:
        """Tell the sentences of an error that knows neither file nor place."""
        for sentence in error.sentences:
            self.add(place, sentence)

    def check(self) -> None:
        """Raise AtelierError when there is at least one fault; beyond LISTED_FAULTS they are counted."""
        sentences = []
        for sentence, meant, (_, *others) in islice(self.told.values(), LISTED_FAULTS):
            also = f" De même en {counted(len(others), 'autre endroit')} : {some(others, 3)}."
            sentences.append(sentence + (" " + suggestion(*meant) if meant else "") + also * bool(others))
        if len(self.told) > LISTED_FAULTS:
            sentences.append(f"{self.file} : et {counted(len(self.told) - LISTED_FAULTS, 'autre faute')}.")
        if sentences:
            raise AtelierError(*sentences)


Unreadable = record("Unreadable", "problem", """
    Stands in the parsed tree for a value that JSON readers accept and this one refuses, in French.""")


class RepeatedKeys(dict):
    """An object of the file that gives some keys, its names, twice."""


BINARIES = ((b"%PDF", "un PDF"), (b"PK\x03\x04", "un .docx ou une archive"), (b"\xd0\xcf\x11\xe0", "un .doc"))


def decode(data: bytes) -> str:
    """UTF-8 text, without its BOM; AtelierError (a sentence without file) names the first bad byte."""
    for beginning, kind in BINARIES:
        if data.startswith(beginning):
            raise AtelierError(f"c'est {kind} ; extrayez-en le texte, et enregistrez-le en UTF-8.")
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        at, line = error.start, data.count(b"\n", 0, error.start) + 1
        raise AtelierError(f"octet {at} (0x{data[at]:02X}, ligne {line}) : ce n'est pas de l'UTF-8 ; "
                           "enregistrez en UTF-8.") from None


def read_members(pairs: Filters) -> dict:
    """An object of a JSON text."""
    tree = dict(pairs)
    if len(tree) < len(pairs):
        tree = RepeatedKeys(tree)
        tree.names = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    return tree


def read_integer(digits: str) -> Any:
    """An integer of a JSON text; Unreadable beyond MAX_DIGITS."""
    return int(digits) if len(digits) <= MAX_DIGITS else Unreadable(
        f"entier démesuré ({len(digits)} chiffres)")


def read_float(digits: str) -> Any:
    """A number of a JSON text; Unreadable when it is infinite."""
    number = float(digits)
    return number if abs(number) != float("inf") else Unreadable(f"nombre démesuré ({digits[:20]})")


def parse_json(text: str) -> Any:
    """The tree of a JSON text, with Unreadable and RepeatedKeys in it; AtelierError when it is no JSON."""
    try:
        return json.loads(text, object_pairs_hook=read_members, parse_int=read_integer,
                          parse_float=read_float, parse_constant=lambda name: Unreadable(
                              f"{name} n'est pas un nombre JSON"))
    except RecursionError:
        raise AtelierError("imbrication démesurée de listes ou d'objets ; "
                           "le format n'en demande que cinq niveaux.") from None
    except json.JSONDecodeError as error:
        raise AtelierError(explain_json(error)) from None


def check_tree(value: Any, faults: Faults, place: str = "", joint: str = " : ", depth: int = 0) -> None:
    """Tell what no value of a file may hold, wherever it stands under a place; joint goes before a name."""
    if isinstance(value, Unreadable):
        faults.add(place, value.problem + ". Corrigez la valeur.")
    elif isinstance(value, str):
        check_characters(value, place, faults)
    elif depth >= MAX_DEPTH and value and isinstance(value, (dict, list)):
        faults.add("", f"plus de {MAX_DEPTH} niveaux d'imbrication ; le format n'en demande que cinq.")
    elif isinstance(value, dict):
        for name in getattr(value, "names", ()):
            faults.add(place, f"la clé {shown(name)} est donnée deux fois ; gardez-en une.")
        for name in value:
            check_characters(name, place, faults)
        for name, item in value.items():
            check_tree(item, faults, place + (place and joint) + name, ".", depth + 1)
    elif isinstance(value, list):
        before = place + (place and joint).replace(".", "")
        for number, item in enumerate(value):
            check_tree(item, faults, f"{before}[{number}]", ".", depth + 1)


def check_characters(text: str, place: str, faults: Faults) -> None:
    """Tell the first control character or lone surrogate of a text, with its position."""
    match = CONTROL.search(text)
    if match:
        code = ord(match.group())
        what = "moitié de paire UTF-16 isolée" if code >= 0xD800 else "caractère de contrôle"
        mend = ("le texte semble mal décodé, réenregistrez-le en UTF-8" if 0x80 <= code < 0xA0
                else "supprimez ce caractère")
        faults.add(place, f"{what} U+{code:04X} au caractère {match.start()} (compté depuis 0) ; {mend}.")


# One table of what files may hold, and one walker.  A shape lists the members of an object, `name:kind`, or
# `name!kind` for one that is required; `*` stands for all the others.  A kind is a line of KINDS (the first
# one when none is told) or of SHAPES (an object), `[kind]` (a list), `kind?` (or null).

PLAIN = (str, int, float, bool)


def is_a(*types: type) -> Callable[[Any], bool]:
    """The test of the very type of a value: true is no integer."""
    return lambda value: type(value) in types


def is_metadata(value: Any) -> bool:
    """Whether a value is of a kind that metadata may have."""
    return type(value) in PLAIN or isinstance(value, list) and all(map(is_a(str), value))


KINDS = {  # the test of a value, and what is expected, in French
    "": (lambda value: type(value) is str and value.strip(), "un texte non vide, entre guillemets"),
    "text": (is_a(str), "un texte entre guillemets"),
    "count": (lambda value: type(value) is int and value >= 1, "un entier d'au moins 1, sans guillemets"),
    "position": (lambda value: type(value) is int and value >= 0,
                 "un entier positif ou nul, sans guillemets"),
    "flag": (is_a(bool), "true ou false"),
    "object": (lambda value: isinstance(value, dict), "un objet, entre accolades"),
    "list": (is_a(list), "une liste, entre crochets"),
    "[text]": (is_a(list), "une liste de textes, entre crochets"),
    "metadata": (is_metadata, "un texte, un nombre, true, false ou une liste de textes"),
    "condition": (lambda value: is_metadata(value) or isinstance(value, dict),
                  "une valeur, ou un objet de « gte », « lte » et « in »"),
    "bound": (is_a(str, int, float), "un nombre ou une date ISO"),
    "choices": (lambda value: isinstance(value, list) and value and all(map(is_a(*PLAIN), value)),
                "une liste de valeurs, non vide"),
    "revision": (is_a(int, str, type(None)), "un entier, un texte ou null"),
    "stage": (lambda value: type(value) is str and value in STAGE, "une étape de perte"),
    "any": (lambda value: True, ""),
}
SHAPES = {
    "case": "title:text description:text filters:filters settings:settings variants:[variant] "
            "documents![document] facts![fact] questions![question]",
    "settings": "top_k:count budget_words:count stop_words:[text] index_titles:flag",
    "filters": "*:condition",
    "operators": "gte:bound lte:bound in:choices",
    "variant": "id! unit! question_filters:flag *:any",
    "document": "id! title:text text: file: sections:[section] structure: *:metadata",
    "section": "title:text text! *:metadata",
    "fact": "id! document: quote: start:position start_char:position any_of:[quote]",
    "quote": "document! quote! start:position start_char:position",
    "question": "id! text! answerable:flag required_facts:[text] filters:filters per_document:count set:",
    "register": "passages:[source] context:[text] context_from:context_from excerpts:flag claims![claim]",
    "source": "id! revision:revision text!",
    "claim": "id! text! citations![citation]",
    "citation": "passage! revision:revision text! relation!",
    "context_from": "report! variant! question!",
    # an earlier report, as far as it is read again
    "report": "case!case_report settings!settings_report variants![variant_report] *:any",
    "settings_report": "filters:filters *:any",
    "case_report": "sha256! documents![document_report] *:any",
    "document_report": "id! sha256! *:any",
    "variant_report": "id! chunking!object? question_filters!flag questions![question_report] *:any",
    "question_report": "id! text!text filters!object per_document!count? facts![fact_report] "
                       "hits_before_budget![part_report]? context![part_report] *:any",
    "part_report": "passage!? text!text *:any",
    "fact_report": "id! loss!loss_report? document! quote! start!position alternatives:[quote_report] *:any",
    "quote_report": "document! quote! start!position *:any",
    "loss_report": "stage!stage *:any",
}
EMPTY = {  # what mends an empty list of a kind
    "document": "donnez au moins un document", "section": "donnez au moins une section",
    "quote": "donnez au moins une citation", "variant": "ôtez la clé pour les quatre variantes fixes"}
UNSOUND = object()


class Found(dict):
    """The sound members of an object; what is unknown, missing, or of the wrong kind is told.

    place is where it stands, given all its names, sound or not; others are the members that its shape (as
    a line of SHAPES) does not name: metadata.
    """

    def __init__(self, value: Tree, shape: str, place: str, faults: Faults):
        super().__init__()
        self.given, self.place, self.faults = value.keys(), place, faults
        members = members_of(shape)
        for name, item in value.items():
            kind, _ = members.get(name) or members.get("*") or (None, False)
            if kind is None:
                self.tell(name, "clé inconnue.", name, members)
                continue
            item = sound(item, kind, self.at(name), faults)
            if item is not UNSOUND:
                self[name] = item
        for name, (_, required) in members.items():
            if required and name not in value:
                self.tell(None, f"la clé {shown(name)} manque ; ajoutez-la.")
        self.others = {name: self[name] for name in self if name not in members}

    def at(self, name: str) -> str:
        """The place of a member."""
        return "{}.{}".format(self.place, name if name.strip() else '""').lstrip(".")

    def tell(self, name: Optional[str], problem: str, *meant: Any) -> None:
        """Tell a fault of a member, or of the object itself (None), as Faults.add does."""
        self.faults.add(self.place if name is None else self.at(name), problem, *meant)


@lru_cache(None)
def members_of(shape: str) -> dict:
    """{name: (kind, whether it is required)} of a shape."""
    return {name: (kind, mark == "!") for name, mark, kind in re.findall(r"(\S+?)([!:])(\S*)", shape)}


def read_tree(data: bytes, shape: str, faults: Faults) -> Found:
    """The sound members of the object that a JSON file holds; AtelierError at once when it is no JSON."""
    try:
        tree = parse_json(decode(data))
    except AtelierError as error:
        faults.extend("", error)
        faults.check()
    check_tree(tree, faults)
    found = sound(tree, shape, "", faults)
    return Found({}, "", "", faults) if found is UNSOUND else found


def sound(value: Any, kind: str, place: str, faults: Faults) -> Any:
    """What a value holds of its kind, its objects as Found; UNSOUND, and a fault, when it is of another."""
    if isinstance(value, Unreadable):
        return UNSOUND  # told by check_tree
    if kind.endswith("?"):
        return None if value is None else sound(value, kind[:-1], place, faults)
    test, expected = KINDS.get(kind) or KINDS["object" if kind in SHAPES else "list"]
    if not test(value):
        faults.add(place, f"attendu : {expected} ; trouvé : {shown(value)}.")
        return UNSOUND
    if kind in SHAPES:
        return Found(value, SHAPES[kind], place, faults)
    return sound_items(value, kind[1:-1], place, faults) if kind.startswith("[") else value


def sound_items(items: list, kind: str, place: str, faults: Faults) -> Any:
    """The sound items of a list, UNSOUND when none is, or not every text; an id already taken is told."""
    found, taken, named = [], {}, SHAPES.get(kind, "").startswith("id!")
    if kind in EMPTY and not items:
        faults.add(place, f"liste vide ; {EMPTY[kind]}.")
    for number, value in enumerate(items):
        name = value.get("id") if named and isinstance(value, dict) else None
        known = f" ({clip(name, 40)})" if isinstance(name, str) and name.strip() else ""
        item = sound(value, kind, f"{place}[{number}]{known}", faults)
        if item is UNSOUND:
            continue
        found.append(item)
        if named and "id" in item:
            first = taken.setdefault(unicodedata.normalize("NFC", item["id"].strip()), item.place)
            if first != item.place:
                item.tell("id", f"identifiant {shown(item['id'])} déjà pris par {first}.id ; "
                                "donnez-en un autre.")
    return found if len(found) == len(items) or found and kind != "text" else UNSOUND


def read_case(data: bytes, name: str, read: Callable[[str], bytes]) -> Case:
    """The case that a file holds; name is the file's, read gives the bytes of a `file` of its documents.

    Raises AtelierError with all the faults of the file.
    """
    faults = Faults(name)
    found = read_tree(data, "case", faults)
    documents = read_documents(found, read)
    owners = [owner for document in documents.values() if document for owner in owners_of(document)]
    columns = read_columns(owners) if documents and all(documents.values()) else None
    facts = read_facts(found, documents)
    case = Case(os.path.basename(name), sha256(data), found.get("title", ""), documents, facts,
                read_questions(found, facts, columns), read_settings(found, owners, columns),
                read_variants(found))
    faults.check()
    return case


def read_settings(case: Found, owners: list, columns: Columns) -> Settings:
    """The settings and filters of a case, over the defaults; filters that admit nothing are told."""
    def admit_none(filters):
        return all(refused_by(filters, [owner]) for owner in owners)

    filters, settings = read_filters(case, columns), case.get("settings", {})
    alone = [key for key, wanted in filters.items() if admit_none([(key, wanted)])]
    for key in alone:
        case["filters"].tell(key, f"aucun document n'a {shown(filters[key])} pour cette clé. "
                                     f"Valeurs présentes : {present_values(columns[key])}.")
    if filters and not alone and admit_none(filters.items()):
        case.tell("filters", "aucun document ne passe tous ces filtres à la fois ; ôtez-en un.")
    stop_words = tuple(settings.get("stop_words", STOP_WORDS))
    return DEFAULTS._replace(**{**settings, "filters": filters, "stop_words": stop_words})


def read_variants(case: Found) -> Sequence[Variant]:
    """The case's own variants, in place of the four fixed ones."""
    variants = []
    for item in case.get("variants", ()):
        name, unit = item.get("unit"), UNITS.get(item.get("unit"))
        if not unit:
            if name:
                item.tell("unit", f"unité {shown(name)} inconnue.", name, UNITS)
            continue
        own = Found(item.others, unit.shape, item.place, item.faults)
        if {"size", "overlap"} <= own.keys() and own["overlap"] >= own["size"]:
            own.tell("overlap", "recouvrement {overlap} pour une taille de {size} ; "
                                "il doit être plus petit.".format(**own))
        if "id" in item:
            parameters = {name: own.get(name, unit.defaults.get(name)) for name in members_of(unit.shape)}
            variants.append(Variant(item["id"], item["unit"], parameters, item.get("question_filters", True)))
    return tuple(variants) or VARIANTS


ISO_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")


@lru_cache(None)  # the documents' values are looked at for each question
def is_undated(value: Any) -> bool:
    """Whether a value is a text that no ISO date is."""
    return isinstance(value, str) and not ISO_DATE.fullmatch(value)


def read_columns(owners: list) -> dict:
    """{key: {(kind, value): None}}: the distinct values that the metadata of all owners hold, in order."""
    columns = {}
    for owner in owners:
        for key, found in owner.metadata.items():
            columns.setdefault(key, {}).update(((kind_of(value), value), None) for value in values_of(found))
    return columns


def present_values(column: Tree) -> str:
    """The first dozen values of a key, for the sentence that refuses another."""
    return some((shown(value) for _, value in column), 12)


def read_filters(owner: Found, columns: Columns) -> Tree:
    """The sound filters of a case or a question; unknown keys, comparisons of unlike things, are told.

    columns is None when some metadata could not be read: nothing is then said of them.
    """
    given, filters = owner.get("filters", {}), {}
    for key, wanted in given.items():
        if isinstance(wanted, dict) and wanted != sound(wanted, "operators", given.at(key), owner.faults):
            continue
        problem = find_unlike(wanted, columns[key]) if columns and key in columns else ""
        if wanted == {}:
            given.tell(key, "condition vide ; donnez « gte », « lte » ou « in ».")
        elif columns is None:
            continue
        elif key not in columns:
            given.tell(key, "aucun document n'a cette clé parmi ses métadonnées.", key, columns)
        elif problem:
            given.tell(key, problem)
        else:
            filters[key] = wanted
    return filters


def find_unlike(wanted: Any, column: dict) -> str:
    """What makes a condition meaningless beside the values of its key, in French; empty when it is sound."""
    operators = wanted if isinstance(wanted, dict) else {"in": values_of(wanted)}
    bounds = [operators[name] for name in ("gte", "lte") if name in operators]
    for value in bounds + operators.get("in", []):
        if kind_of(value) not in (kind for kind, _ in column):
            return (f"{shown(value)} est un {kind_of(value)}, les documents ont : {present_values(column)}. "
                    "Donnez une valeur de même nature.")
    ordered = bounds + [value for _, value in column] if bounds else []
    undated = next(filter(is_undated, ordered), None)
    if undated is not None:
        return "{}{} n'est pas une date ISO (2024-01-31) ; sans elle, l'ordre n'a pas de sens.".format(
            shown(undated), "" if undated in bounds else ", dans les documents,")
    if len(set(map(kind_of, bounds))) == 2:
        return "« gte » et « lte » sont de natures différentes : rien ne peut convenir."
    return "« gte » dépasse « lte » : rien ne peut convenir." if bounds[1:] and bounds[0] > bounds[1] else ""


def read_documents(case: Found, read: Callable) -> Documents:
    """Documents by id; None stands for one whose text is not sound, so that its facts are not accused."""
    documents = {}
    for item in case.get("documents", ()):
        document = read_document(item, read)
        if "id" in item:
            documents[item["id"]] = None if item["id"] in documents else document
    return documents


def read_document(item: Found, read: Callable) -> Optional[Document]:
    """A document, with the sections that it gives or that its structure has; None when it is not sound."""
    given = {"text", "file", "sections"} & item.given
    if len(given) != 1:
        item.tell(None, "il faut « text », « file » ou « sections », l'un des trois et un seul.")
        return None
    found = join_sections(item) if "sections" in given else read_text(item, read)
    if not found:
        return None
    text, title, header, sections, doubts = found
    title = item.get("title") or title
    label = " ".join(filter(None, [str(header.get("reference", "")), title, *header.get("parties", ())]))
    metadata = {**header, **item.others}
    sections = [section._replace(metadata={**metadata, **section.metadata}) for section in sections]
    return make_document(item.get("id", ""), title, text, metadata, sections, label)._replace(
        file=item.get("file", ""), structure=item.get("structure", ""), doubts=doubts)


def make_document(name: str, title: str, text: str, metadata: Tree, sections: Sequence[Section] = (),
                  label: str = "") -> Document:
    """A document (name is its id) with the characters at which its words begin and end."""
    starts, ends = array("I"), array("I")
    for match in WORD.finditer(text):
        starts.append(match.start())
        ends.append(match.end())
    return Document(name, title, text, metadata, starts, ends, tuple(sections), label or title)


def read_text(item: Found, read: Callable) -> Optional[tuple]:
    """(text, title, metadata, sections, doubts) of a document given as `text` or `file`, if it is sound."""
    where, text, structure = item.at("text"), item.get("text", ""), item.get("structure")
    try:
        if "file" in item:
            where = f"{item.place}.file ({item['file']})"
            text = decode(read(item["file"]))
            check_characters(text, where, item.faults)
            if not text.strip():
                raise AtelierError("document vide ; donnez-lui un texte.")
        if text and structure and structure in STRUCTURES:
            return (text, *STRUCTURES[structure](text, item.others))
    except AtelierError as error:
        item.faults.extend(where, error)
        return None
    if text and structure:
        item.tell("structure", f"structure {shown(structure)} inconnue.", structure, STRUCTURES)
    return None if structure or not text else (text, "", {}, (), ())


def join_sections(item: Found) -> Optional[tuple]:
    """The same of one given as sections, which a blank line joins."""
    if "structure" in item:
        item.tell("structure", "sans objet avec « sections » ; ôtez-la.")
    parts, sections, start = item.get("sections", ()), [], 0
    if not parts or not all("text" in part for part in parts):
        return None
    for part in parts:
        end = start + len(part["text"])
        title = part.get("title", "")
        begun = re.match(r"(?i)\W*" + re.escape(fold_text(title)) + r"(?!\w)", fold_text(part["text"]))
        sections.append(Section(title, (), "" if begun else title, part.others, start, end, ()))
        start = end + 2
    return "\n\n".join(part["text"] for part in parts), "", {}, sections, ()


def read_facts(case: Found, documents: Documents) -> dict:
    """Facts by id; None stands for one whose quotes could not all be located."""
    facts = {}
    for item in case.get("facts", ()):
        several = "any_of" in item.given
        if several and {"document", "quote", "start", "start_char"} & item.given:
            item.tell(None, "« any_of » remplace « document », « quote » et « start » ; ôtez-les.")
        for name in () if several else ("document", "quote"):
            if name not in item.given:
                item.tell(None, f"la clé {shown(name)} manque ; ajoutez-la.")
        quotes = [read_quote(part, documents) for part in (item.get("any_of", ()) if several else [item])]
        if "id" in item:
            located = quotes and all(quotes) and item["id"] not in facts
            facts[item["id"]] = Fact(item["id"], tuple(quotes), several) if located else None
    return facts


def read_quote(item: Found, documents: Documents) -> Optional[Quote]:
    """A quote with its one place in its document; None, and a fault, when it has none."""
    name, quote = item.get("document"), item.get("quote")
    if name is not None and documents and name not in documents:
        item.tell("document", f"document {shown(name)} inconnu.", name, documents)
    elif {"start", "start_char"} <= item.keys():
        item.tell(None, "« start » compte des mots, « start_char » des caractères ; gardez l'un des deux.")
    elif quote and documents.get(name) and {"start", "start_char"} & item.given <= item.keys():
        try:
            place = choose_place(quote, name, documents, item.get("start"), item.get("start_char"))
            return Quote(quote, Span(name, *place))
        except AtelierError as error:
            item.tell("quote", f"{shown(quote)} {error}")
    return None


def read_questions(case: Found, facts: dict, columns: Columns) -> Sequence[Question]:
    """The questions of a case; what they require must be known, and agree with their being answerable."""
    questions = []
    for item in case.get("questions", ()):
        required, answerable = item.get("required_facts", []), item.get("answerable", True)
        first = dict(zip(reversed(required), range(len(required) - 1, -1, -1)))
        for number, name in enumerate(required):
            if "facts" in case and not facts:
                item.tell(f"required_facts[{number}]", f"fait {shown(name)} inconnu : « facts » est vide ; "
                                                       "définissez-le.")
            elif "facts" in case and name not in facts:
                item.tell(f"required_facts[{number}]", f"fait {shown(name)} inconnu.", name, facts)
            elif first[name] < number:
                item.tell(f"required_facts[{number}]", f"fait {shown(name)} exigé deux fois ; ôtez-en un.")
        if {"answerable", "required_facts"} & item.given - item.keys():
            pass  # a type is wrong: what it means is unknown
        elif answerable and not required:
            item.tell(None, "question sans fait exigé ; listez-les dans « required_facts », "
                          "ou écrivez \"answerable\": false.")
        elif required and not answerable:
            item.tell(None, "question déclarée sans réponse, mais qui exige des faits ; "
                          "ôtez les faits ou « answerable ».")
        filters = read_filters(item, columns)
        if {"id", "text"} <= item.keys():
            questions.append(Question(item["id"], item["text"], answerable, tuple(required), filters,
                                      item.get("per_document"), item.get("set")))
    return tuple(questions)


LISTED_PLACES = 10       # of an ambiguous quote
NUMBER_GOES_ON = r"""    # around a limit that cuts a number in two
    (?<=\d)[.,'/-]\d | (?<=\d[.,'/-])\d                                       # 2,5   1.500   1/3   1234-5
    | (?<=\d)(?<!\d{4})[ ]\d{3}(?!\d) | (?<=\d[ ])(?<!\d{4}[ ])\d{3}(?!\d)    # 1 140
    | (?<=[-−])(?<!\w[-−])\d                                                  # -5, but not A-5"""


Folded = record("Folded", "text starts paragraphs", """
    A text as quotes are sought in it, composed, with one space between words; the characters where its words
    begin (and where one more would); those where its paragraphs do.""")


def compose(text: str) -> str:
    """A text in NFC, with straight apostrophes; its words are the text's own, one for one."""
    return re.sub("[’ʼ]", "'", unicodedata.normalize("NFC", text))


def fold_text(text: str) -> str:
    """A text composed, with one space between its words."""
    return " ".join(compose(text).split())


@lru_cache(maxsize=None)  # made once for the facts and the engines of a run
def fold(text: str) -> Folded:
    """A document's text as quotes are sought in it."""
    words, firsts = [], []
    for paragraph in PARAGRAPH_BREAK.split(compose(text)):
        firsts.append(len(words))
        words += paragraph.split()
    starts = array("I", accumulate((len(word) + 1 for word in words), initial=0))
    return Folded(" ".join(words), starts, {starts[first] for first in firsts})


def characters_of(document: Document, start: int, end: int) -> tuple:
    """The (start, end) characters of a document where its folded text has characters start to end - 1."""
    limits, starts = [], fold(document.text).starts
    for at, inside in ((start, start), (end, end - 1)):
        word = bisect_right(starts, inside) - 1
        written = document.text[document.starts[word]:document.ends[word]]
        limits.append(document.starts[word] + uncomposed(written, at - starts[word]))
    return limits[0], limits[1]


def uncomposed(word: str, length: int) -> int:
    """How many characters of a word the first `length` ones of its composed form come from."""
    low, high = 0, len(word)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(compose(word[:middle])) <= length else (low, middle - 1)
    return low


def folded_character(document: Document, at: int) -> int:
    """Where the folded text of a document has its character at, or the next one when that is a blank."""
    word, starts = bisect_right(document.ends, at), fold(document.text).starts
    begun = document.text[document.starts[word]:at] if word < len(document.ends) else ""
    return starts[word] + len(compose(begun))


def is_mark(character: str) -> bool:
    """Whether a character combines with the one before it."""
    return unicodedata.category(character)[0] == "M"


def cuts_a_word(folded: Folded, at: int) -> bool:
    """Whether the limit before character at falls inside a word, or a number of one paragraph."""
    text = folded.text
    if not 0 < at < len(text):
        return False
    before = [character for character in text[max(0, at - 9):at] if not is_mark(character)][-1:]
    return (is_mark(text[at]) or "".join(before + [text[at]]).isalnum() or
            not {at, at + 1} & folded.paragraphs and bool(re.compile(NUMBER_GOES_ON, re.X).match(text, at)))


def find_whole(quote: str, folded: Folded, low: int = 0, high: Optional[int] = None) -> Iterator[tuple]:
    """The (start, end) of each whole occurrence of a quote that starts at characters low to high - 1."""
    needle = fold_text(quote)
    limit = len(folded.text) if high is None else high + len(needle) - 1
    at = folded.text.find(needle, low, limit)
    while at >= 0:
        if not (cuts_a_word(folded, at) or cuts_a_word(folded, at + len(needle))):
            yield at, at + len(needle)
        at = folded.text.find(needle, at + 1, limit)


def touched_words(folded: Folded, start: int, end: int) -> tuple:
    """The (start, end) words that characters start to end - 1 of a folded text touch."""
    return bisect_right(folded.starts, start) - 1, bisect_left(folded.starts, end)


def occurrences(quote: str, folded: Folded, *limits: int) -> Iterator[tuple]:
    """The (start, end) words that each whole occurrence of a quote touches; those inside one word are one."""
    places = (touched_words(folded, *characters) for characters in find_whole(quote, folded, *limits))
    return (place for place, _ in groupby(places))


def choose_place(quote: str, name: str, documents: Documents, start: Optional[int],
                 start_char: Optional[int]) -> tuple:
    """The (start, end) words of a quote in a document: its one occurrence, or the one that is told.

    start is the position of its first word, start_char that of its first character in the document's text.
    Raises AtelierError, which tells why it has no place, or which it may have.
    """
    document, limits = documents[name], ()
    folded = fold(document.text)
    if start_char is not None:
        limits = [at + folded_character(document, start_char) for at in (0, 1)]
    elif start is not None:
        limits = [*folded.starts[start:start + 2], len(folded.text), len(folded.text)][:2]
    places = list(islice(occurrences(quote, folded, *limits), 1 if limits else LISTED_PLACES + 1))
    if len(places) == 1:
        return places[0]
    words = some((str(first) for first, _ in places or occurrences(quote, folded)), LISTED_PLACES)
    if not words:
        raise AtelierError(explain_elsewhere(quote, name, documents))
    if places:
        raise AtelierError(f"figure plusieurs fois dans {shown(name)}, aux mots {words} ; précisez laquelle, "
                           f"par exemple \"start\": {places[0][0]}.")
    given, possible = f"mot {start} de {shown(name)} ; « start »", words
    if start_char is not None:
        given = f"caractère {start_char} de {shown(name)} ; « start_char »"
        possible = some((str(characters_of(document, *found)[0]) for found in find_whole(quote, folded)),
                        LISTED_PLACES)
    raise AtelierError(f"ne commence pas au {given} peut valoir : {possible}.")


def explain_elsewhere(quote: str, name: str, documents: Documents) -> str:
    """Where a quote is that its own document lacks: in others, or nearly in it."""
    others = some((shown(other) for other, document in documents.items()
                   if document and any(occurrences(quote, fold(document.text)))), LISTED_PLACES)
    if others:
        return f"n'est pas dans {shown(name)}, mais dans {others} ; corrigez « document »."
    return f"n'est pas dans {shown(name)}. {explain_absence(quote, fold(documents[name].text))}"


# --- 14. Structures: contracts and Markdown to sections -------------------------------------------

# A structure is a function of a text, and of what the case says of it, to (title, metadata, sections,
# doubts); AtelierError (sentences without file) tells what is missing.  It reads lines that are not blank as
# (first character, None or, for a heading, its (level, title), whether a piece of a section may begin there);
# the other lines of a heading are left out.

DASHES = "‐‑‒–—―−-"
DIVISIONS = {"annexe": 0, "législative": 0, "réglementaire": 0, "partie": 1, "livre": 2, "titre": 3,
             "chapitre": 4, "section": 5, "sous-section": 6, "paragraphe": 7}  # their levels as headings
ARTICLE_LEVEL = 8
# Compiled when a contract is read: it would cost a tenth of the start-up.
HEADING = r"""(?ix) (?P<label> (?: article \s (?= annexe ) )?
    (?: pr[ée]ambule (?! \.) | partie \s (?: législative | réglementaire ) | (?: premi[eè]re | deuxi[eè]me
      | seconde | troisi[eè]me | quatri[eè]me | cinqui[eè]me ) \s partie
    | (?: (?: article | sous\ssection | {} ) \s | art (?: \.\s? | \s ) ) (?: n° \s? )? (?P<number>
        (?: \*? (?P<code> (?: l\.?\s?[op] | [lrda] ) \.? \s? (?: \*\.? ){{0,2}} ) \s?
            \d{{1,9}} (?: \s?[{dashes}]\s?\d{{1,9}} )*
        | (?: \d{{1,9}} | (?-i: [IVXLCDM]+ ) ) (?: [.{dashes}]\d{{1,9}} )* (?: \s?er | [eè]re | e | ° )?
        | premi (?: er | [eè]re ) | unique | (?: pr[ée] )? liminaire | (?-i: [A-Z] ) )
        (?: \s? (?: bis | ter | quater | quinquies | sexies | septies | octies | nonies
                  | \w{{0,9}} (?: dec | vic | tric ) ies ) (?! \w )
          | \s (?-i: [A-Z]{{1,2}} ) (?! [\w.'’] ) | [{dashes}]\d{{1,9}} )* )
    | annexe ) ) (?! [\w'’] | \.?\s?[{dashes}]\d | \.\d )
    (?P<mark> \s?[.)/]?\s?[:{dashes}] | [.)/]? ) \s* (?P<rest> .* )""".format(
        " | ".join(DIVISIONS), dashes=DASHES)
NUMBERED = re.compile(f"(?P<label>(?P<number>[0-9]{{1,9}}))\\s?(?:[.)]|\\.?\\s?[{DASHES}])\\s(?P<rest>.*)")
ALMOST_HEADING = re.compile("(?:A(?:rticle|RTICLE|rt[.]|RT[.]|nnexe|NNEXE|venant|VENANT)"
                            "|C(?:lause|LAUSE) [0-9]).{,60}")
CLAUSE = re.compile(r"(\d{1,9}(?:\.[1-9]\d?)+)[.)]?\s+(?!(?:euros?|heures?|jours?|semaines?|mois|ans?|fois"
                    r"|points?|mètres?|[ckm]?m[²³]?|kg|ha|[ghlt])(?!['’\w])|[€%])")
HANGING = frozenset(STOP_WORDS + ("sous", "selon", "suivant", "avec", "sans", "voir", "présent"))
FINAL = tuple(".!?…:;»")  # a line that ends so ends a sentence, or announces what follows
HEADER_KEYS = ("Référence", "Type", "Parties", "Date de signature")


def lines_of(text: str) -> Iterator[Tuple[int, str]]:
    """(first character, text without its line end) of each line."""
    start = 0
    for whole, line in zip(text.splitlines(keepends=True), text.splitlines()):
        yield start, line
        start += len(whole)


def make_key(label: str) -> str:
    """`Date de signature` gives date_de_signature."""
    plain = "".join(sign for sign in unicodedata.normalize("NFD", label.lower()) if not is_mark(sign))
    return "_".join(plain.split())


def parse_contract(text: str, known: Tree) -> Tuple[str, Tree, List[Section], List[tuple]]:
    """A title on the first line, `Clé : valeur` lines if any, a blank line, articles and their clauses.

    known: the case's own metadata of the document, which may stand for lines of the header.
    """
    lines = text.splitlines()
    first, start, end = find_header(lines)
    metadata = parse_header(lines, start, end, known) if start < end else {}
    metadata.update((key, known[key]) for key in map(make_key, HEADER_KEYS) if key in known)
    parties = metadata.get("parties", [])
    if not isinstance(parties, list):
        metadata["parties"] = [party.strip() for party in str(parties).split(";") if party.strip()]
    articles, doubts = read_articles(list(lines_of(text))[end:])
    return " ".join(lines[first].split()), metadata, make_sections(text, articles), doubts


def find_header(lines: Sequence[str]) -> Tuple[int, int, int]:
    """A contract's title, the first line of its header, that after its last: the same when it has none."""
    filled = [bool(line.strip()) for line in lines] + [False]
    first = filled.index(True)
    last = filled.index(False, first)
    keys = {make_key(line.partition(":")[0]) for line in lines[first + 1:last]}
    if not keys.isdisjoint(map(make_key, HEADER_KEYS)):
        return first, first + 1, last
    match = re.match(HEADING, bare(lines[first]))
    body = first if match and is_title(match) else first + 1
    return first, body, body


def parse_header(lines: Sequence[str], first: int, last: int, known: Tree) -> dict:
    """The metadata that lines first to last - 1 of a contract give, unless they are known."""
    metadata, wanted, problems = {}, {}, []
    for number in range(first, last):
        label, _, value = (part.strip() for part in lines[number].partition(":"))
        if not (label and value):
            wanted[number] = "Clé : valeur"
        elif make_key(label) in metadata:
            problems.append((number, f"la clé {shown(label)} est donnée deux fois dans l'en-tête ; "
                                     "gardez-en une."))
        else:
            metadata[make_key(label)] = value
    for number, label in enumerate(HEADER_KEYS, first):
        if make_key(label) not in {**metadata, **known}:
            wanted.setdefault(number, label + " : …")
    for number, line in wanted.items():
        found = shown(lines[number]) if number < len(lines) else "la fin du texte"
        problems.append((number, f"« {line} » attendue dans l'en-tête ; trouvé : {found}."))
    if problems:
        raise AtelierError(*(f"ligne {number + 1} : {problem}" for number, problem in sorted(problems)))
    return metadata


Line = record("Line", "start text gap", """
    A line that is not blank: its first character, its text without marks around it, whether a blank line
    stands before it.""")
Heading = record("Heading", "level title key label rest", """
    A line that is a title; key: an article's (prefix of its code, figures, suffix), None for others; label:
    its kind and number, rest: what comes after.""")


def bare(line: str) -> str:
    """A line without Markdown's marks of a title: `## **Article 4** – Prix`."""
    folded = re.sub(r"^#{1,6} ", "", unicodedata.normalize("NFC", " ".join(line.split())))
    return re.sub(r"^(\*\*|__)(.+?)\1(?! ?\d)", r"\2", folded)


def read_articles(lines: Iterable[Tuple[int, str]]) -> Tuple[List[tuple], List[tuple]]:
    """(what make_sections reads, [(a line of DOUBTS, first character)]) of a contract's lines."""
    rows, gap, doubts = [], True, []
    for start, line in lines:
        if line.strip():
            rows.append(Line(start, bare(line), gap))
        gap = not line.strip()
    headings = find_headings(rows, doubts)
    drop_contents(rows, headings, doubts)
    check_numbers(rows, headings, doubts)
    read = list(read_clauses(rows, headings, doubts))
    return read, sorted(doubts, key=lambda doubt: doubt[1])


def is_dotted(text: str) -> bool:
    """Whether a line ends as that of a table of contents: a row of dots, a page."""
    return text[-1].isdigit() and text.rstrip("0123456789 ").replace(" ", "").endswith(("....", "……"))


def find_headings(lines: Sequence[Line], doubts: List[tuple]) -> Dict[int, Heading]:
    """The lines that are titles, by number: articles, divisions; `4. Contrôle` when none says Article."""
    headings, last = {}, None
    for at, line in enumerate(lines):
        match, after, kind = re.match(HEADING, line.text), lines[at + 1:at + 2], ""
        heading = match and is_title(match, after) and make_heading(match, line.text)
        if match and (is_dotted(line.text) or after and is_dotted(after[0].text)
                      and not re.match(HEADING, after[0].text)):
            kind = "contents"
        elif not heading:
            kind = ALMOST_HEADING.fullmatch(line.text) and line.text[-1] not in ".,;:" and "unread"
        elif not continues(lines, at, headings, follows(last, heading.key)):
            headings[at], last = heading, heading.key or last
        elif line.text[0].isupper() or is_finished(lines, at, headings):
            kind = "unread"
        doubts += [(kind, line.start)] if kind else []
    articles = any(heading.key for heading in headings.values())
    return headings if articles else {**find_numbered(lines), **headings}


def find_numbered(lines: Sequence[Line]) -> Dict[int, Heading]:
    """The titles `1. Objet`, `2. Durée`… of a contract that numbers its articles so throughout."""
    found = {}
    for at, line in enumerate(lines):
        match = NUMBERED.fullmatch(line.text)
        if (match and int(match.group("number")) == len(found) + 1 and is_short(match.group("rest"))
                and not continues(lines, at, found, True)):
            found[at] = make_heading(match, line.text)
    return found if len(found) > 1 else {}


def is_short(text: str) -> bool:
    """Whether a text looks like a title rather than a sentence."""
    return text[:1].isupper() and text[-1] not in ".,;:!?…" and len(text) <= 80


def is_title(match: Any, after: Sequence[Line] = ()) -> bool:
    """Whether what follows a number is a title; without dash or colon, neither verb nor sentence is."""
    mark, rest = match.group("mark").strip(), match.group("rest")
    if not rest or mark.strip(".)/") or re.fullmatch(r"\([^()]*\)\.?", rest):
        return True
    if mark:
        return not rest[0].islower()
    return is_short(rest) and not (after and after[0].text[0].islower() and not after[0].gap)


def make_heading(match: Any, text: str) -> Heading:
    """What a line says as the title that it is; a division has no key."""
    groups, label = match.groupdict(), match.group("label")
    words = label.lower().replace("sous section", "sous-section").split()
    level = min((DIVISIONS[word] for word in words if word in DIVISIONS), default=ARTICLE_LEVEL)
    key, number = None, label[match.start("number") - match.start():] if groups["number"] else ""
    if level == ARTICLE_LEVEL and number:
        code, number = groups.get("code") or "", number.lower().replace("premi", "1")
        suffix = re.sub(rf"[\d\s.{DASHES}]|[eè]re?", "", number[len(code):])
        key = (re.sub(r"[\s.]", "", code).lower(), tuple(map(int, re.findall(r"\d+", number))), suffix)
    return Heading(level, text, key, label, groups["rest"])


def follows(last: Optional[tuple], key: Optional[tuple]) -> bool:
    """Whether an article may come next after the last one."""
    if not (last and key and last[1] and key[1]) or last[0] != key[0]:
        return True
    return last[1] <= key[1] if key[0] else key != last and key[1][0] - last[1][0] in (0, 1)


def is_finished(lines: Sequence[Line], at: int, headings: Tree) -> bool:
    """Whether no sentence is left open before a line."""
    before = lines[at - 1].text
    return at == 0 or at - 1 in headings or before.endswith(FINAL) or before.isupper()


def hangs(text: str) -> bool:
    """Whether a line ends on a word that calls for another: `conformément à l'`."""
    return re.split(r"[\s'’]", text.rstrip("'’"))[-1].lower() in HANGING or text.endswith(("(", "«"))


def continues(lines: Sequence[Line], at: int, headings: Tree, expected: bool) -> bool:
    """Whether a line goes on with the sentence before; expected: its number is that of the next article."""
    lower, finished = lines[at].text[0].islower(), is_finished(lines, at, headings)
    if lines[at].gap or at == 0:
        return lower and not finished
    return lower or not finished and (not expected or hangs(lines[at - 1].text))


def drop_contents(lines: Sequence[Line], headings: Dict[int, Heading], doubts: List[tuple]) -> None:
    """Takes out a table of contents: titles in a row, two articles of which stand elsewhere with a body."""
    bodied = {heading.key for at, heading in headings.items()
              if heading.key and at + 1 < len(lines) and at + 1 not in headings}
    row, twice = [], []
    for at in range(len(lines) + 1):
        if at in headings:
            row.append(at)
            if headings[at].key in bodied and (at + 1 in headings or at + 1 == len(lines)):
                twice.append(at)
            continue
        for number in row if len(twice) > 1 else ():
            if number <= twice[-1]:
                del headings[number]
                doubts.append(("contents", lines[number].start))
        row, twice = [], []


def check_numbers(lines: Sequence[Line], headings: Dict[int, Heading], doubts: List[tuple]) -> None:
    """Tells the articles whose number is taken, or does not follow; an annex counts anew."""
    last, taken = None, set()
    for at, (level, _, key, _, _) in sorted(headings.items()):
        if level == 0:
            last, taken = None, set()
        elif key:
            if key in taken or not key[0] and not follows(last, key):
                doubts.append(("repeated" if key in taken else "jump", lines[at].start))
            taken.add(key)
            last = key


def complete_titles(lines: Sequence[Line], headings: Dict[int, Heading]) -> Set[int]:
    """The lines that end the title before them; an article's text on its own line leaves its title."""
    ends = set()
    for at, heading in headings.items():
        after = lines[at + 1] if at + 2 < len(lines) and at + 1 not in headings else None
        short = after and is_short(after.text[0].upper() + after.text[1:]) and (
            lines[at + 2].gap or at + 2 in headings)
        cut = after and not after.gap and after.text[0].islower() and len(heading.title) > 60
        below = heading.level < ARTICLE_LEVEL and not heading.rest and short and after.text[0].isupper()
        if below or cut and short:
            ends.add(at + 1)
            headings[at] = heading._replace(title=f"{heading.title}{' – ' if below else ' '}{after.text}")
        elif cut or heading.rest.endswith(FINAL) and len(heading.rest.split()) > 4:
            headings[at] = heading._replace(title=heading.label)
    return ends


def read_clauses(lines: Sequence[Line], headings: Dict[int, Heading], doubts: List[tuple]) -> Iterator[tuple]:
    """The lines of articles; a piece begins at a clause of its article's number, not under another."""
    ends, own, clause = complete_titles(lines, headings), None, ""
    for at, line in enumerate(lines):
        heading, match = headings.get(at), CLAUSE.match(line.text)
        if heading:
            own, clause = heading.key and not heading.key[0] and heading.key[1][:1], ""
            yield line.start, heading[:2], False
            whole = heading.rest[:1] == "(" or heading.rest.endswith(FINAL)
            if heading.key and whole and at + 1 in headings:
                yield line.start, None, False  # all that the article says is on its title's line
        elif at not in ends:
            begins, number = False, match.group(1) if match else ""
            if match and own and own != (int(number.partition(".")[0]),):
                doubts.append(("clause", line.start))
            elif match and not (line.text[match.end():][:1].islower() and hangs(lines[at - 1].text)):
                begins = not (clause and number.startswith(clause + "."))
                clause = number if begins else clause
            yield line.start, None, begins


# Markdown, by CommonMark's block structure.  Tabs are read as spaces; a line that shows nothing is blank.

MARKDOWN_LINE = re.compile(r"([^\r\n]*)(?:\r\n?|\n|$)")
FRONT_MATTER = re.compile(r"(?ms)---[ \t\r]*\n(?=[^\s#][^\n]*:).*?^(?:---|\.\.\.)[ \t\r]*$")
MOST_CONTAINERS = 20
QUOTE = re.compile(" {0,3}> ?")
ITEM = re.compile(r" {0,3}(?:[-+*]|([0-9]{1,9})[.)])(?: {1,4}(?=[^ ])| (?= {4})|(?= *$))")
ATX_HEADING = re.compile(r" {0,3}(#{1,6})(?: (.*))?")
GLUED_HEADING = re.compile(r" {0,3}#{1,6}[^#\s]")
UNDERLINE = re.compile(r" {0,3}(?:=+|-+) *")
RULE = re.compile(r" {0,3}(?:(?:- *){3,}|(?:_ *){3,}|(?:\* *){3,})")
FENCE = re.compile(r" {0,3}(```+(?=[^`]*$)|~~~+)")
# These two are compiled when they are first needed.
DEFINITIONS = r"""(?xs) (?: \[ (?!\s*\]) (?: [^][\\] | \\. )+ \]: \s*
    (?: <(?: [^<>\n\\] | \\. )*> | (?!<)(?: \\[()] | [^\s()] | \((?: \\[()] | [^\s()] )*\) )+ )
    (?: \s+ (?: "(?: [^"\\] | \\. )*" | '(?: [^'\\] | \\. )*' | \((?: [^()\\] | \\. )*\) ) )?
    [ ]* (?: \n | \Z ) )*"""
HTML_BLOCK = r"""(?xi) [ ]{0,3} (?:
    (<(?:pre|script|style|textarea)(?:\s|>|$)) | (<!--) | (<\?) | (<![a-z]) | (<!\[(?-i:CDATA)\[)
    | (</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog
        |dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html
        |iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section
        |summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?:\s|/?>|$))
    | ((?: </[a-z][a-z\d-]*\s*> | <[a-z][a-z\d-]*
        (?:\s+[a-z_:][\w.:-]*(?:\s*=\s*(?:[^\s"'=<>`]+|'[^']*'|"[^"]*"))?)*\s*/?> )\s*$) )"""
HTML_ENDS = [re.compile(end, re.I) for end in (
    "</(?:pre|script|style|textarea)>", "-->", r"\?>", ">", r"\]\]>", r"^\s*$", r"^\s*$")]


def parse_markdown(text: str, known: Tree) -> Tuple[str, Tree, List[Section], List[tuple]]:
    """Headings begin sections, blank lines separate paragraphs, as CommonMark reads them.

    Those of a quote or of a list item begin no section; front matter is no heading.
    """
    lines = read_blocks(text)
    glued = [("glued", start) for start, _, begins in lines if begins and GLUED_HEADING.match(text, start)]
    return "", {}, make_sections(text, lines), glued


def read_blocks(text: str) -> List[tuple]:
    """The lines of a Markdown text."""
    blocks, found, blank = Blocks(), [], True
    front = FRONT_MATTER.match(text)
    for match in MARKDOWN_LINE.finditer(text):
        start, line = match.start(), match.group(1)
        if front and start < front.end():
            heading, blocks.verbatim = None, True
        else:
            heading = blocks.read(line)
        if heading and not blocks.containers:
            level, title, above = heading
            start = found[-above][0] if above else start
            found[len(found) - above:] = [(start, (level, title), False)]
        elif line.strip():
            found.append((start, None, blank and not blocks.verbatim))
        blank = not line.strip()
    return found


class Blocks:
    """The blocks that are open, line after line.

    containers: the quotes and list items, each as the pattern by which a line goes on with it; in the last,
    paragraph: the lines of a paragraph; closing: the pattern that ends a fence or HTML; code: it is indented
    code.  hollow: that item has nothing yet; verbatim: the line read goes on with a fence, HTML or code.
    """

    def __init__(self) -> None:
        self.containers: List[Any] = []
        self.close(0)

    def close(self, depth: int, containers: Sequence[Any] = ()) -> None:
        """Close all that is beyond some containers, and open others in them."""
        self.containers[depth:] = containers
        self.paragraph: List[str] = []
        self.closing, self.code, self.hollow, self.verbatim = None, False, False, False

    def read(self, line: str) -> Optional[Tuple[int, str, int]]:
        """The heading that a line ends: (level, title, how many lines before are its own); None for none."""
        rest, depth = line.expandtabs(4), 0
        for container in self.containers:
            found = container.match(rest)
            if not found:
                break
            rest, depth = rest[found.end():], depth + 1
        held = depth == len(self.containers)
        blank = not rest.strip()
        self.verbatim = held and bool(self.closing or self.code and (blank or rest.startswith("    ")))
        if not self.verbatim and blank:
            self.close(depth - (held and self.hollow))
        elif not self.verbatim:
            return self.begin(rest, depth)
        elif self.closing and self.closing.search(rest):
            self.closing = None
        return None

    def begin(self, rest: str, depth: int) -> Optional[Tuple[int, str, int]]:
        """Read what a line has after the containers that it goes on with, which are depth."""
        held, opened = depth == len(self.containers), []
        while depth + len(opened) < MOST_CONTAINERS:
            container, width = open_container(rest, bool(self.paragraph) and held and not opened)
            if not container:
                break
            opened.append(container)
            rest = rest[width:]
        going = bool(self.paragraph) and not opened  # the line may go on with a paragraph
        if going and held and UNDERLINE.fullmatch(rest):
            text = "\n".join(self.paragraph)
            title = text[re.match(DEFINITIONS, text).end():]
            if title:
                self.close(depth)
                return 2 - ("=" in rest), " ".join(title.split()), title.count("\n") + 1
        if going and not interrupts(rest):
            self.paragraph.append(rest.strip())
            return None
        self.close(depth, opened)
        return self.open_leaf(rest)

    def open_leaf(self, rest: str) -> Optional[Tuple[int, str, int]]:
        """Open the block with which the rest of a line begins; a heading is read at once."""
        atx, fence, html = ATX_HEADING.fullmatch(rest), FENCE.match(rest), re.match(HTML_BLOCK, rest)
        if not rest.strip():
            self.hollow = self.containers[-1] is not QUOTE
        elif rest.startswith("    "):
            self.code = True
        elif atx:
            return len(atx.group(1)), atx_title(atx.group(2) or ""), 0
        elif fence:
            self.closing = re.compile("^ {{0,3}}{}{{{},}} *$".format(fence.group(1)[0], len(fence.group(1))))
        elif html:
            end = HTML_ENDS[html.lastindex - 1]
            self.closing = None if end.search(rest) else end
        elif not RULE.fullmatch(rest):
            self.paragraph = [rest.strip()]
        return None


def open_container(rest: str, in_paragraph: bool) -> tuple:
    """(the pattern of the quote or list item that begins here, its width), or (None, 0)."""
    quote, item = QUOTE.match(rest), ITEM.match(rest)
    if quote:
        return QUOTE, quote.end()
    if not item or RULE.fullmatch(rest):
        return None, 0
    blank = not rest[item.end():].strip()
    if in_paragraph and (blank or int(item.group(1) or 1) != 1):
        return None, 0
    columns = len(item.group().rstrip()) + 1 if blank else item.end()
    return re.compile(" {%d}| *$" % columns), columns


def interrupts(rest: str) -> bool:
    """Whether a line ends the paragraph before it."""
    html = re.match(HTML_BLOCK, rest)
    return bool(ATX_HEADING.fullmatch(rest) or FENCE.match(rest) or RULE.fullmatch(rest)
                or html and html.lastindex < 7)


def atx_title(content: str) -> str:
    """What a heading says, without its closing run of #, which a blank must precede."""
    content = content.strip()
    closed = content.rstrip("#")
    return " ".join((closed if closed.endswith(" ") else content if closed else "").split())


def make_sections(text: str, lines: Iterable[tuple]) -> List[Section]:
    """The sections that the lines of a text make; a heading without body of its own joins the next one.

    Sections tile the text; their pieces hold no blank at either end.
    """
    marks = []  # [first character of a section or of a piece, (title, path, lead) or None]
    parents = []  # the headings in force: (level, title, first character)
    fresh = False  # whether no body has followed the last heading
    for start, heading, begins in lines:
        if heading:
            level, title = heading
            parents = [parent for parent in parents if parent[0] < level]
            first = marks.pop()[0] if fresh else start
            marks.append((first, (title, tuple(name for _, name, _ in parents),
                                  "\n".join(name for _, name, at in parents if at < first))))
            parents += [(level, title, start)] if title else []
        elif not marks:
            marks.append((start, ("", (), "")))
        elif begins and not fresh:
            marks.append((start, None))
        fresh = bool(heading)
    sections = []
    for (start, names), (end, _) in zip(marks, marks[1:] + [(len(text), None)]):
        start, end = end - len(text[start:end].lstrip()), start + len(text[start:end].rstrip())
        if names:
            sections.append(Section(*names, {}, start, end, []))
        sections[-1].pieces.append((start, end))
    return [section._replace(end=section.pieces[-1][1]) for section in sections]


STRUCTURES = {"contract": parse_contract, "markdown": parse_markdown}


# --- 15. Explanations: what is wrong with a value, a JSON text, a quote, positions, a file --------

JSON_MESSAGES = (  # the beginnings of the standard parser's messages
    ("Expecting property name", "un nom de clé entre guillemets droits est attendu"),
    ("Expecting ',' delimiter",
     "il manque une virgule, une fermeture, ou la barre devant un guillemet du texte (\\\")"),
    ("Expecting ':' delimiter", "il manque le deux-points après la clé"),
    ("Expecting value", "une valeur est attendue (true, false et null s'écrivent en minuscules)"),
    ("Extra data", "du texte suit la fin du JSON"),
    ("Unterminated string", "ce texte n'a pas de guillemet fermant"),
    ("Invalid control character", "un retour à la ligne, une tabulation ou un caractère de contrôle est "
                                  "écrit tel quel ; écrivez \\n ou \\t"),
    ("Invalid \\", "une barre oblique inverse n'annonce rien de connu ; doublez-la"),
)


def explain_json(error: json.JSONDecodeError) -> str:
    """Where a text stops being JSON, and how to mend it; the same sentence whatever the version of Python."""
    before = error.doc[:error.pos + error.msg.startswith("Illegal trailing comma")].rstrip()
    problem = next((french for english, french in JSON_MESSAGES if error.msg.startswith(english)),
                   "syntaxe inattendue")
    position = error.pos
    if not error.doc.strip():
        problem = "le fichier est vide"
    elif before.endswith(",") and error.doc[len(before):].lstrip()[:1] in ("]", "}"):
        position, problem = len(before) - 1, "une virgule suit le dernier élément ; ôtez-la"
    *lines, last = error.doc[:position].split("\n")
    return f"ligne {len(lines) + 1}, colonne {len(last) + 1} : JSON invalide : {problem}."


# What a keyboard or a converter changes unseen: the French name of the difference, and what erases it,
# from the slightest to the strongest; the strongest are given up first when looking for the culprits.
ERASERS = (
    ("caractère invisible", lambda text: re.sub(UNSEEN, "", text)),
    ("apostrophe", lambda text: re.sub("[‘′`´]", "'", text)),
    ("guillemets", lambda text: re.sub("[\"«»“”„]", "", text)),
    ("tiret", lambda text: re.sub(f"[{DASHES}]", "-", text)),
    ("points de suspension, … ou ...", lambda text: text.replace("…", "...")),
    ("ponctuation", lambda text: re.sub(r"[.,;:!?()\[\]]", "", text)),
    ("ligature ou variante de caractère", lambda text: unicodedata.normalize("NFKC", text).replace(
        "œ", "oe").replace("Œ", "Oe").replace("æ", "ae")),
    ("majuscules", str.casefold),
    ("accents", without_accents),
    ("espaces ou traits d'union", lambda text: re.sub(r"[\s'-]", "", text)),
)
SHOWN_BEFORE = 40     # characters of a long text before what a message points at
COMPARED_WORDS = 200  # of a long absent quote, around its first fault
VOTES = 2_000         # places of an absent quote's rarer words that are looked at


def reveal(text: str) -> str:
    """A text with what no screen shows named, `mo[trait d'union conditionnel U+00AD]is`."""
    return re.sub(UNSEEN, lambda match: "[{} U+{:04X}]".format(
        INVISIBLE.get(match.group(), "caractère invisible"), ord(match.group())), text)


def shown_around(text: str, at: int) -> str:
    """A text as a message quotes it, clipped when long to what stands around character at."""
    text, at = reveal(text), len(reveal(text[:at]))
    clipped = "…" + text[at - SHOWN_BEFORE:] if len(text) > 80 and at > SHOWN_BEFORE else text
    return f"« {clip(clipped)} »"


def shown_apart(one: str, other: str) -> List[str]:
    """Two texts as a message compares them, clipped around their first difference."""
    at = len(os.path.commonprefix([one, other]))
    return [shown_around(one, at), shown_around(other, at)]


def erase(text: str, without: Sequence[str] = ()) -> str:
    """The text after every eraser but some."""
    for name, eraser in ERASERS:
        if name not in without:
            text = eraser(text)
    return text


Indexed = record("Indexed", "words keys places joined joints", """
    The words of a folded text; keys, the same erased, empty for signs; {key: its places}; the keys joined,
    and where they start in that.""")


def index_words(text: str) -> Indexed:
    """A folded text, indexed for what is sought and compared in it."""
    words, places = text.split(" "), {}
    keys = erase("\0".join(words)).split("\0")
    for place, key in enumerate(keys):
        places.setdefault(key, array("I")).append(place)
    return Indexed(words, keys, places, "".join(keys), array("I", accumulate(map(len, keys), initial=0)))


index_document = lru_cache(maxsize=64)(index_words)  # once for all the quotes that it lacks


def explain_absence(quote: str, folded: Folded) -> str:
    """The nearest text of a document to a quote that is not in it, and what differs."""
    needle = fold_text(quote)
    at, words = folded.text.find(needle), needle.split(" ")
    if at >= 0:
        return explain_part(folded, at, at + len(needle))
    stretches = (" ".join(words[first:first + COMPARED_WORDS])
                 for first in range(0, len(words), COMPARED_WORDS // 2))
    sought = next((stretch for stretch in stretches if stretch not in folded.text), "")
    parts = [part for part in map(str.strip, re.split(r"[\[(]?(?:…|\.\.\.)[\])]?", needle)) if part]
    if not sought or len(parts) > 1 and all(part in folded.text for part in set(parts)):
        return ("Ses morceaux y sont, séparés : une citation est d'un seul tenant ; "
                "faites un fait de chaque morceau.")
    return explain_nearest(index_words(sought), index_document(folded.text))


def explain_part(folded: Folded, start: int, end: int) -> str:
    """Which words hold characters start to end - 1 of a text, with those around: a number may go on there."""
    first, last = touched_words(folded, start, end)
    first, last = folded.starts[max(0, first - 1)], folded.starts[last:last + 2][-1]
    cut = start if cuts_a_word(folded, start) else end
    return "Il n'y est qu'à l'intérieur d'un mot ou d'un nombre : {}. Citez des mots entiers.".format(
        shown_around(folded.text[first:last].strip(), cut - first))


def explain_nearest(sought: Indexed, text: Indexed) -> str:
    """Which words of a text stand for those that are sought, and what differs."""
    start, end = find_nearest(sought, text)
    if start == end:
        return "Aucun de ses mots n'y figure : est-ce le bon document ?"
    words = text.words[start:end]
    differences = compare(words, sought.words)
    nearest = shown_around(" ".join(words), differences[0][0])
    told = some((tell_difference(*texts) for _, *texts in differences), 3)
    return f"Texte le plus proche (mot {start}) : {nearest} ; ce qui diffère : {told}. Recopiez le texte."


def find_nearest(sought: Indexed, text: Indexed) -> tuple:
    """(start, end) words of a text that stand for those sought; (0, 0) when it has none of them.

    They are these but for the spaces; else the rarer ones vote for a start, and what follows it is aligned.
    """
    from difflib import SequenceMatcher
    at = text.joined.find(sought.joined)
    end = at + len(sought.joined)
    first = bisect_right(text.joints, at) - 1 if sought.keys[0] else bisect_left(text.joints, at)
    last = bisect_left(text.joints, end) if sought.keys[-1] else bisect_right(text.joints, end) - 1
    if at >= 0 and text.joints[first] == at and text.joints[last] == end:
        return first, last
    votes, count = vote(sought.keys, text), len(sought.keys)
    if not votes:
        return 0, 0
    likely = max(votes, key=lambda start: sum(votes[start + shift] for shift in range(-3, 4)))
    start = max(0, likely - 2)
    window = text.keys[start:likely + count * 5 // 4 + 3]  # room for words added or left out
    *blocks, _ = SequenceMatcher(None, window, sought.keys, autojunk=False).get_matching_blocks()
    first, last = (start + block.a - block.b for block in (blocks[0], blocks[-1]))
    return max(0, first), min(len(text.keys), last + count)


def vote(keys: Sequence[str], text: Indexed) -> Counter:
    """{where a text would begin for some of the rarer keys to be in place: the more and rarer they are}."""
    votes, looked = Counter(), 0
    for times, offset in sorted((len(text.places[key]), offset) for offset, key in enumerate(keys)
                                if key and key in text.places):
        looked += times
        if votes and looked > VOTES:
            break
        for place in text.places[keys[offset]][:VOTES]:
            votes[place - offset] += (len(text.keys) // times).bit_length()
    return votes


def compare(words: Sequence[str], sought: Sequence[str]) -> List[tuple]:
    """Each (character, written, quoted) where words of a text are not those sought, but for signs around."""
    from difflib import SequenceMatcher
    written, differences = list(words), []
    if sought[0][0].isalnum():
        written[0] = re.sub(r"^\W+", "", written[0])
    if sought[-1][-1].isalnum():
        written[-1] = re.sub(r"\W+$", "", written[-1])
    for kind, a, b, c, d in SequenceMatcher(None, written, sought, autojunk=False).get_opcodes():
        if kind != "equal" and (c < d or 0 < a and b < len(written)):
            at = len(" ".join([*words[:a], ""]))
            differences.append((at, " ".join(written[a:b]), " ".join(sought[c:d])))
    return differences


def tell_difference(written: str, quoted: str) -> str:
    """`« mai - juin » y est écrit « mai – juin » (tiret)`."""
    if not written:
        return f"{shown(quoted)} n'y est pas"
    if not quoted:
        return f"{shown(written)} manque à la citation"
    told, causes = " y est écrit ".join(shown_apart(quoted, written)), ", ".join(find_causes(written, quoted))
    return f"{told} ({causes})" if causes else told


def find_causes(written: str, quoted: str) -> List[str]:
    """The names of the erasers that make two texts one; else the codes of the signs that may look alike."""
    if erase(written) != erase(quoted):
        at = len(os.path.commonprefix([written, quoted]))
        signs = quoted[at:at + 1] + written[at:at + 1]
        foreign = [sign for sign in signs if sign > "\u024f" and unicodedata.category(sign)[0] in "LNC"]
        return ["U+{:04X} au lieu de U+{:04X}".format(*map(ord, signs))] if foreign and signs[1:] else []
    spared = []
    for name, _ in reversed(ERASERS):
        if erase(written, spared + [name]) == erase(quoted, spared + [name]):
            spared.append(name)
    return [name for name, _ in ERASERS if name not in spared]


VIEWS = (  # other ways of counting: French name, codec and bytes of what is counted, what the text had become
    ("en octets UTF-8", "utf-8", 1, str),
    ("en unités UTF-16", "utf-16-le", 2, str),
    ("avec des fins de ligne CRLF", "utf-32-le", 4, lambda text: re.sub("\r?\n", "\r\n", text)),
    ("avec des fins de ligne LF", "utf-32-le", 4, lambda text: text.replace("\r\n", "\n")),
    ("avec un indicateur d'ordre des octets (BOM) en tête", "utf-32-le", 4, "\ufeff{}".format),
)


def explain_positions(text: str, document: Document, start: int, end: Optional[int]) -> str:
    """How positions that are wrong in characters would be right, or where the text is; empty when nowhere."""
    for name, codec, width, change in VIEWS:
        empty, quote, view = (change(part).encode(codec, "surrogatepass")
                              for part in ("", text, document.text))
        last = start + (len(quote) - len(empty)) // width if end is None else end
        there = view[start * width:last * width].decode(codec, "replace")
        if last * width <= len(view) and fold_text(there) == fold_text(text):
            return f"Elles conviendraient comptées {name} : donnez-les en caractères du document."
    folded, needle, at = fold(document.text), fold_text(text), folded_character(document, start)
    places = {folded.text.rfind(needle, 0, at + len(needle)), folded.text.find(needle, at)} - {-1}
    if not places:
        return ""
    nearest = min(places, key=lambda place: abs(place - at))
    first, _ = characters_of(document, nearest, nearest + len(needle))
    return f"Ce texte est ailleurs : il commence à {first}."


OS_PROBLEMS = {
    "ENOENT": "introuvable", "EACCES": "accès refusé", "EPERM": "opération refusée",
    "EISDIR": "c'est un dossier", "ENOTDIR": "un élément du chemin n'est pas un dossier",
    "ENOSPC": "plus de place sur le disque", "EROFS": "disque en lecture seule", "EDQUOT": "quota dépassé",
    "EFBIG": "fichier trop grand", "ENAMETOOLONG": "nom trop long", "ELOOP": "liens en boucle",
    "EINVAL": "nom ou opération invalide", "EIO": "erreur du disque", "EBADF": "descripteur fermé",
    "ENXIO": "rien à l'autre bout",
}


def os_problem(error: OSError) -> str:
    """A system error in French, without its path."""
    code = errorcode.get(error.errno or 0, str(error.errno))
    return OS_PROBLEMS.get(code, f"erreur système {code}")


# --- 16. Why, and how much: where a lost proof stands, what would be enough -----------------------

SHARED_LETTERS = 4  # the least that two near forms begin with
LETTER_RUN = re.compile(r"[^\W_]+")


def study(case: Case, outcome: Outcome) -> Outcome:
    """The outcome of a question with its losses explained and what would be enough; it lets its index go."""
    sent, verdicts = outcome.sent, []
    for verdict in outcome.verdicts:
        attempts = [attempt._replace(loss=explain_loss(case, outcome, attempt)) if attempt.loss else attempt
                    for attempt in verdict.attempts]
        verdicts.append(Verdict(verdict.fact, attempts, attempts[verdict.attempts.index(verdict.chosen)]))
    needed = find_needed(sent, [verdict.fact for verdict in verdicts]) if sent.question.answerable else None
    return outcome._replace(sent=sent._replace(index=None), verdicts=verdicts, needed=needed)


def explain_loss(case: Case, outcome: Outcome, attempt: Attempt) -> Tree:
    """A loss with the other documents that sent the same words, if any, and the passages that it names."""
    loss = dict(attempt.loss)
    twins = same_words_in(case.documents, attempt.quote, outcome.spans)
    if twins:
        loss["same_words_in"] = twins
    return {**loss, "places": find_places(case, outcome.sent, loss)}


def same_words_in(documents: Documents, quote: Quote, spans: Sequence[Span]) -> List[str]:
    """The other documents from which the context holds the very words of a quote."""
    found = []
    for span in union(spans):
        if span.document != quote.span.document and span.start < span.end:
            folded = fold(documents[span.document].text)
            places = occurrences(quote.text, folded, folded.starts[span.start], folded.starts[span.end])
            found += [span.document] if any(end <= span.end for _, end in places) else []
    return list(dict.fromkeys(found))


def find_places(case: Case, sent: Sent, loss: Tree) -> List[Tree]:
    """The passages that a loss names, each once: their ranks, the question's terms they have and lack."""
    ranks = {piece["passage"]: piece.get("rank") for piece in [loss, *loss.get("pieces", ())]
             if "passage" in piece}
    places = []
    for name, rank in ranks.items():
        passage = sent.cutting.by_id[name] if sent.cutting else next(
            hit.passage for hit in sent.hits if hit.passage.id == name)
        text = text_of(case.documents, passage)
        match = describe_match(sent, name, text) if sent.index else dict.fromkeys(
            ("score", "terms", "lacking", "near"))
        places.append({"passage": name, **passage.span._asdict(), "words": passage.words,
                       "lead_words": lead_words(passage), "rank": rank, **match, "text": text})
    return places


def describe_match(sent: Sent, name: str, text: str) -> Tree:
    """The score of a passage, the question's terms that it has, those that it lacks, and their near forms."""
    terms = [term for term, _ in sent.terms]
    held = sent.index.explain(terms, name)
    had = {term for term, _, _ in held}
    lacking = [term for term in terms if term not in had]
    return {"score": round(-sum(part for _, _, part in held), 9) if held else None,
            "terms": describe_terms(held), "lacking": lacking, "near": near_forms(lacking, text)}


@lru_cache(1 << 10)
def fold_case(text: str) -> str:
    """A text without its case and its accents."""
    return without_accents(text.casefold())


def near_forms(lacking: Sequence[str], text: str) -> list:
    """[[term, word], …]: for each term, the word of a text that begins most like it, if one does enough.

    Folded, they share their first letters: four at least, and six tenths of the longer, as `prescrit` and
    `prescrivent` do.
    """
    text, near = unicodedata.normalize("NFC", text), []
    for term in lacking:
        share, at, best = max(likenesses(fold_case(term), fold_case(text)), default=(0, 0, ""))
        if share >= 0.6:  # as it is written: about there, since folding may lengthen a text, as ß does
            runs = LETTER_RUN.findall(text, max(0, -at - 99), 99 - at)
            near.append([term, next((run for run in runs if fold_case(run) == best), best)])
    return near


def likenesses(term: str, text: str) -> Iterator[tuple]:
    """(share of letters in common, -place, word) of each word of a folded text with a term's first ones."""
    first = term[:SHARED_LETTERS]
    at = text.find(first) if len(term) >= SHARED_LETTERS else -1
    while at >= 0:
        word = LETTER_RUN.match(text, at).group()
        if not (at and text[at - 1].isalnum()):
            yield len(os.path.commonprefix([term, word])) / max(len(term), len(word)), -at, word
        at = text.find(first, at + len(word))


def find_needed(sent: Sent, facts: Sequence[Fact]) -> Tree:
    """The smallest budget that completes a question; of a variant, its smallest depth, then budget, too."""
    budget = budget_for(facts, [hit.passage for hit in sent.hits or ()])
    if not sent.cutting:
        return {"budget_words": budget}
    ranks = {hit.passage.id: hit.rank for hit in sent.hits}
    return {"budget_words": budget, "deeper": (
        find_deeper_by_document(sent, facts) if sent.question.per_document else
        find_deeper(sent, facts, ranks.get if budget else lambda name: rank_of(sent, name)))}


def budget_for(facts: Iterable[Fact], passages: Sequence[Passage]) -> Optional[int]:
    """The smallest budget under which concatenated passages cover facts by their cheapest quotes; or None."""
    needs = []
    for fact in facts:
        ends = [last_needed(quote.span, passages) for quote in fact.quotes]
        needs.append(min((words for _, words in filter(None, ends)), default=None))
    return None if None in needs else max(needs)


def find_deeper(sent: Sent, facts: Sequence[Fact], rank: Callable) -> Optional[Tree]:
    """The smallest top_k at which a question is complete, then the smallest budget; None when none is enough.

    What needs the whole depth ends in its last passage, beyond the end of all that needs less.
    """
    end = find_end(sent, facts, rank)
    if not end:
        return None
    depth, inside, last = end
    before = sent.index.before([term for term, _ in sent.terms], last, sent.admitted)
    return {"top_k": depth, "budget_words": inside + sum(sent.cutting.by_id[name].words for name in before)}


def find_deeper_by_document(sent: Sent, facts: Sequence[Fact]) -> Optional[Tree]:
    """The same in passages of each document."""
    found = sent.index.best([term for term, _ in sent.terms], None, sent.admitted)
    ranks, counts = {}, Counter()
    for name, _ in found:
        document = sent.cutting.by_id[name].span.document
        counts[document] += 1
        ranks[name] = counts[document]
    end = find_end(sent, facts, ranks.get)
    if not end:
        return None
    hits = [sent.cutting.by_id[name] for name, _ in best_of_each(found, sent.cutting, end[0])]
    return {"per_document": end[0], "budget_words": budget_for(facts, hits)}


def find_end(sent: Sent, facts: Iterable[Fact], rank: Callable) -> Optional[tuple]:
    """(rank, words of it, id) of the last passage that facts need; None when one is out of reach.

    rank(passage id) may be None.
    """
    ends = []
    for fact in facts:
        reached = [end_of(quote.span, touching(sent.cutting, quote.span), rank) for quote in fact.quotes]
        ends.append(min(filter(None, reached), default=None))
    return None if None in ends else max(ends)


def end_of(quote: Span, passages: Iterable[Passage], rank: Callable) -> Optional[tuple]:
    """The same of the last passage with some word of a quote that no better one has."""
    left = [quote]
    for found, passage in sorted((found, passage) for passage in passages
                                 for found in [rank(passage.id)] if found):
        after = [rest for part in left for rest in missing_spans(part, [passage.span])]
        if not after:
            end = max(part.end for part in left)
            return found, lead_words(passage) + end - passage.span.start, passage.id
        left = after
    return None


def advice_of(loss: Tree) -> str:
    """What to try next, in French; what the loss carries may change it."""
    stage, words = STAGE[loss["stage"]], words_of(loss)
    carried = [advice for sign, advice in stage.special.items()
               if loss.get(sign) or loss.get("limit") == sign or sign == "near" and words["near"]]
    return [*carried, stage.advice][0].format(**{**loss, **words})


def format_trips(report: Tree, names: Sequence[str]) -> List[str]:
    """The whole trip of some questions (ids), variant by variant, at most 80 columns wide."""
    from textwrap import wrap
    told = []
    for number, question in enumerate(report["variants"][0]["questions"]):
        if question["id"] in names:
            told += [("", f"Question {question['id']} : {question['text']}"), ("", "")]
            for variant in report["variants"]:
                told += [("", variant["id"]), *tell_trip(variant["questions"][number], variant["chunking"]),
                         ("", "")]
    lines = [wrap(text, 80, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)
             for indent, text in told]
    return [line for wrapped in lines for line in wrapped or [""]][:-1]


def tell_trip(question: Tree, chunking: Optional[Tree]) -> Iterator[tuple]:
    """(indent, sentence): what was searched, found, cut, proved and lost, and what would be enough."""
    if chunking:
        sought = ", ".join("{term} ({passages})".format(**term) for term in question["terms"])
        yield "  ", f"cherchés : {sought or 'aucun mot'}"
        yield "  ", f"laissés de côté : {', '.join(question['ignored']) or 'aucun mot'}"
    for hit in question["hits_before_budget"] or question["context"]:
        words, kept = hit["words"], hit.get("kept_words", hit["words"])
        cut = f", dont {kept} sous le budget" if kept < words else ""
        yield "  ", f"{hit['rank']}. {hit['passage'] or 'hors du corpus'}, {counted(words, 'mot')}{cut}"
        if hit.get("terms"):
            yield "     ", "par " + tell_terms(hit["terms"])
    for fact in question["facts"]:
        loss = fact["loss"]
        state = f"{STAGE[loss['stage']].label} : {detail_of(loss)}" if loss else "couverte"
        yield "  ", f"preuve {fact['id']} (mots {fact['start']} à {fact['end'] - 1}) : {state}"
        for place in loss.get("places", ()) if loss else ():
            yield from tell_place(place, fact)
        if loss:
            yield "     ", advice_of(loss)
    needed, complete = question["needed"], question["all_required_covered"]
    if needed and (needed["budget_words"] or not complete):
        yield "  ", tell_needed(needed, complete)


def tell_terms(terms: Iterable[Tree]) -> str:
    """`préavis 1,846, mois 0,500`."""
    return ", ".join(f"{term['term']} {decimal(term['part'], 3)}" for term in terms)


def tell_place(place: Tree, fact: Tree) -> Iterator[Tuple[str, str]]:
    """A passage where a lost proof stands: its rank, its words from the proof on, its terms."""
    before = place["lead_words"] + fact["start"] - place["start"] if fact["start"] > place["start"] else 0
    held = " ".join(place["text"].split()[before:])
    yield "     ", f"{place['passage']}, {rank_in_words(place['rank'])} : « {clip(held, 120)} »"
    if place["terms"] is not None:
        yield "       ", f"a : {tell_terms(place['terms']) or 'aucun mot cherché'}"
        near = {term: f"{term} (proche : {word})" for term, word in place["near"]}
        yield "       ", f"n'a pas : {', '.join(near.get(term, term) for term in place['lacking']) or '-'}"


def tell_needed(needed: Tree, complete: bool = False) -> str:
    """What would be enough to complete a question, or was, in French."""
    budget, further = needed["budget_words"], needed.get("deeper")
    told = [f"un budget de {counted(budget, 'mot')}"] if budget else []
    if further and (not budget or further["budget_words"] < budget):
        limit = "per_document" if "per_document" in further else "top_k"
        told.append(f"{limit} {further[limit]} et un budget de {counted(further['budget_words'], 'mot')}")
    if told:
        return ("il suffisait de : " if complete else "il suffirait de : ") + ", ou ".join(told)
    if "deeper" in needed:
        return "à ce découpage, rien ne suffirait, ni budget ni profondeur"
    return "ce que le moteur a trouvé ne suffirait sous aucun budget"


# --- 17. Warnings: what does not stop a run but spoils its reading --------------------------------

# A check is a function (Case, the variants' parts of the report) -> Iterator[str]: a sentence a warning.

def idle_facts(case, variants):
    """Facts that no question requires."""
    required = {fact for question in case.questions for fact in question.required_facts}
    for fact in case.facts:
        if fact not in required:
            yield f"fait {shown(fact)} : aucune question ne l'exige."


def invisible_characters(case, variants):
    """Signs that do not show, and that a quote without them does not match; first places in words."""
    for kind, holders in (("document", case.documents.values()), ("question", case.questions)):
        for holder in holders:
            found = Counter(re.findall(f"[{''.join(INVISIBLE)}]", holder.text))
            for sign, times in found.items():
                word = len((holder.text.split(sign)[0] + "x").split()) - 1
                yield (f"{kind} {shown(holder.id)} : {INVISIBLE[sign]} (U+{ord(sign):04X}, {times} fois, "
                       f"d'abord au mot {word}) ; il ne se voit pas, et une citation qui ne l'a pas n'y est "
                       "plus : ôtez-le.")


DOUBTS = {  # what is doubtful in a document, and what mends it
    "unread": ("ressemble à un titre et n'est pas lu ainsi", "un titre s'écrit « Article 4 – Prix »"),
    "contents": ("entrée d'une table des matières, laissée dans le texte", "ôtez la table si elle gêne"),
    "repeated": ("numéro d'article déjà pris", "voyez si l'un des deux est un renvoi"),
    "jump": ("numéro d'article qui ne suit pas le précédent", "voyez si un titre manque"),
    "clause": ("numéro d'un autre article, sans y ouvrir de clause", "voyez si elle est à sa place"),
    "glued": ("un # sans espace après ne fait pas un titre", "ajoutez l'espace si c'en est un")}


def doubtful_headings(case, variants):
    """Structures without a title; what a document holds that may be read wrong, once a kind."""
    for document in (document for document in case.documents.values() if document.structure):
        name = f"document {shown(document.id)}"
        if not any(section.title for section in document.sections):
            title = "Article 4 – Prix" if document.structure == "contract" else "# Prix"
            yield f"{name} : aucun titre reconnu ; un titre s'écrit « {title} »."
        lines, places = list(lines_of(document.text)) if document.doubts else [], {}
        for kind, start in document.doubts:
            places.setdefault(kind, []).append(bisect_left(lines, (start,)))
        for kind, numbers in places.items():
            what, mend = DOUBTS[kind]
            told = some((f"ligne {number + 1}, {shown(lines[number][1])}" for number in numbers), 3)
            yield f"{name} : {what} ({counted(len(numbers), 'fois')}) : {told} ; {mend}."


def doubtful_structures(case, variants):
    """A contract read as Markdown, and the reverse: the other structure has more than twice the headings."""
    others = {"contract": "markdown", "markdown": "contract"}
    for document in (document for document in case.documents.values() if document.structure in others):
        other = others[document.structure]
        try:
            _, _, sections, _ = STRUCTURES[other](document.text, {})
        except AtelierError:
            sections = []  # no contract
        own, titles = ([section.title for section in found if section.title]
                       for found in (document.sections, sections))
        if other == "contract":  # the items of a list may look like the articles of a contract
            titles = [title for title in titles if not title[0].isdigit()]
        if len(titles) > max(1, 2 * len(own)):
            yield (f"document {shown(document.id)} : {counted(len(own), 'titre')} par la structure "
                   f"« {document.structure} », {len(titles)} par « {other} » "
                   f"({some(map(shown, titles), 2)}) ; est-ce la bonne ?")


def unstructured_sections(case, variants):
    """Documents without structure, and pieces longer than max_chars, in variants by sections."""
    without = [document.id for document in case.documents.values() if not document.sections]
    for variant in variants:
        if variant["chunking"] and variant["chunking"]["unit"] == "sections":
            name, over = f"variante {shown(variant['id'])}", variant["summary"]["over_max"]
            if without:
                yield (f"{name} : {counted(len(without), 'document')} sans structure "
                       f"({some(map(shown, without))}), d'une seule section ; donnez « sections » ou "
                       "« structure ».")
            if over:
                yield (f"{name} : {counted(over, 'passage')} au-delà de max_chars "
                       f"({variant['chunking']['max_chars']}) : ni clause, ni paragraphe ne se coupe.")


def twins(case, variants):
    """Documents of the same text, then passages of others that have the same."""
    alike: Dict[str, List[str]] = {}
    for document in case.documents.values():
        alike.setdefault(" ".join(document.text.split()), []).append(document.id)
    for names in alike.values():
        if len(names) > 1:
            yield f"documents {some(map(shown, names))} : même texte ; l'un peut prendre la place de l'autre."
    words = {name: case.documents[name].text.split() for name, *_ in alike.values()}
    for variant in variants:
        holders: Dict[str, List[str]] = {}
        for name in words if variant["passages"] else ():
            for start, end in variant["passages"][name]:
                holders.setdefault(" ".join(words[name][start:end]) or name, []).append(name)
        shared = [(text, names) for text, names in holders.items() if len(set(names)) > 1]
        if shared:
            text, names = shared[0]
            yield "variante {} : {} de même texte dans des documents différents : {} ({}){}".format(
                shown(variant["id"]), counted(sum(len(names) for _, names in shared), "passage"), shown(text),
                some(map(shown, dict.fromkeys(names))), ", … ;" if shared[1:] else " ;") + (
                " une preuve que plusieurs donnent s'écrit « any_of ».")


def contexts_beyond_hits(case, variants):
    """Engines whose contexts hold source positions that their hits have not."""
    engines = [variant for variant in variants if variant["chunking"] is None]
    for engine, question in ((engine, question) for engine in engines for question in engine["questions"]):
        hits, sent = ([Span(part["document"], part["start"], part["end"]) for part in question[key] or ()
                       if part["document"] is not None] for key in ("hits_before_budget", "context"))
        if question["hits_before_budget"] is not None and size(union(hits)) < size(union(hits + sent)):
            yield (f"moteur {shown(engine['id'])}, question {shown(question['id'])} : "
                   "le contexte a des mots que « hits » n'a pas.")


def contexts_out_of_bounds(case, variants):
    """Engines that sent words beyond the budget or in spite of the filters."""
    for variant in variants:
        for key, problem in BREACHES.items():
            broken = [question for question in variant["questions"] if question[key]]
            if broken:
                words = counted(sum(question[key] for question in broken), "mot envoyé")
                yield (f"moteur {shown(variant['id'])} : {words} {problem} "
                       f"({some(question['id'] for question in broken)}) ; ses preuves peuvent en venir.")


def contexts_of_quotes(case, variants):
    """Engines that sent the required quotes and nothing else."""
    for variant in variants:
        if variant["chunking"] is None and variant["summary"]["evidence_iou"] == 1:
            yield (f"moteur {shown(variant['id'])} : ses contextes sont les citations exigées elles-mêmes ; "
                   "ils ne disent rien d'une recherche.")


def questions_without_terms(case, variants):
    """Questions whose words are all on the stop list."""
    if not case.questions:
        yield "aucune question : seuls les passages sont décrits."
    for question in variants[0]["questions"]:
        if question["terms"] == []:
            yield f"question {shown(question['id'])} : aucun mot à chercher, une fois ôtés les mots vides."


def documents_without_filtered_key(case, variants):
    """Documents that a filter of the case keeps out for want of its key."""
    for key in case.settings.filters:
        without = [shown(document.id) for document in case.documents.values()
                   if not any(key in owner.metadata for owner in owners_of(document))]
        if without:
            yield f"filtre « {key} » : clé absente de {some(without)} ; le filtre les écarte."


def question_filters(case, variants):
    """Filters of questions that nothing passes, or that keep out a fact which their question requires."""
    admission = Admission(case.documents, None)
    for question in (question for question in case.questions if question.filters):
        name = shown(question.id)
        for key, wanted in question.filters.items():
            if not admission.meeting(key, wanted):
                values = (shown(value) for kind, value in admission.by_value[key] if kind != "liste")
                mend = " Une liste se compare entière ; pour l'une de ses valeurs, écrivez {\"in\": […]}."
                yield (f"question {name}, filtre « {key} » : aucun document n'a {plain(wanted)}. "
                       f"Valeurs présentes : {some(values, 12)}.{mend if isinstance(wanted, list) else ''}")
        filters = list(question.filters.items())
        for fact in (case.facts[required] for required in question.required_facts):
            owners = [owners_of(case.documents[quote.span.document], passage_of(case.documents, quote.span))
                      for quote in fact.quotes]
            if all(refused_by(filters, places) for places in owners):
                yield f"question {name} : ses filtres écartent le fait {shown(fact.id)}, qu'elle exige."


def idle_variants(case, variants):
    """Variants that cut the same passages, and overlaps without effect."""
    alike = {}
    for variant in variants:
        passages, name = variant["passages"], variant["id"]
        if passages is None:
            continue  # another engine
        cutting = json.dumps([passages, variant["summary"]["words_indexed"], variant["question_filters"]])
        alike.setdefault(cutting, []).append(name)
        if variant["chunking"].get("overlap") and all(len(spans) == 1 for spans in passages.values()):
            yield (f"variante {shown(name)} : le recouvrement n'a aucun effet, "
                   "chaque document tient en un passage.")
    for names in alike.values():
        if len(names) > 1:
            yield f"variantes {', '.join(names)} : mêmes passages ; les comparer n'apprend rien."


CHECKS = (idle_facts, invisible_characters, doubtful_headings, doubtful_structures,
          unstructured_sections, twins, contexts_beyond_hits, contexts_out_of_bounds, contexts_of_quotes,
          questions_without_terms, documents_without_filtered_key, question_filters, idle_variants)


def warn(case: Case, variants: Sequence[Tree]) -> List[str]:
    """The sentences of all the checks."""
    return [sentence for check in CHECKS for sentence in check(case, variants)]


# --- 18. Comparisons: variants with each other, and with an earlier report ------------------------

SIGNIFICANT = 0.05  # below, a sign test tells two variants apart
CHANGES = (("gained", "+", "preuve gagnée"), ("lost", "-", "perdue"), ("changed", "~", "étape changée"))
NOT_COMPARED = {"added": "sans équivalent dans la référence",
                "removed": "sans équivalent dans ce rapport",
                "question_changed": "question modifiée", "fact_changed": "fait modifié"}

Fate = record("Fate", "asked required edited stage", """
    What became of a required fact: the question's text, its quotes (plain values, to compare), whether a
    document of theirs has changed since, the stage that lost it, or None.""")


def compare_all(variants: Sequence[Tree]) -> List[Tree]:
    """Each pair of variants or engines: complete contexts of one against incomplete ones of the other."""
    complete = {variant["id"]: [question["all_required_covered"] for question in variant["questions"]
                                if question["all_required_covered"] is not None] for variant in variants}
    comparisons = []
    for one, other in combinations(complete, 2):
        pairs = Counter(zip(complete[one], complete[other]))
        wins, losses = pairs[True, False], pairs[False, True]
        comparisons.append({"variants": [one, other], "wins": wins, "losses": losses,
                            "ties": len(complete[one]) - wins - losses, "p": sign_test(wins, losses)})
    return comparisons


def sign_test(wins: int, losses: int) -> float:
    """Two-sided p, exact but for the last rounding: min(1, 2 P(X <= the smaller)), X binomial over both."""
    trials, ways, tail = wins + losses, 1, 0
    for successes in range(min(wins, losses) + 1):
        tail += ways
        ways = ways * (trials - successes) // (successes + 1)
    return min(1.0, round(2 * tail / 2 ** trials, 9))


def format_comparisons(comparisons: Sequence[Tree]) -> List[str]:
    """What the sign test tells apart, in words; it will often be nothing, and that is the right answer."""
    told = [pair for pair in comparisons if pair["p"] <= SIGNIFICANT]
    if not told:
        least = decimal(min(pair["p"] for pair in comparisons), 3)
        return [f"Test des signes : aucune paire de variantes n'est départagée (p >= {least}).", ""]
    lines = ["Test des signes : seules ces paires sont départagées"]
    for pair in told[:LISTED_LOSSES]:
        one, other = pair["variants"]
        p = f"p = {decimal(pair['p'], 4)}" if pair["p"] >= 0.0001 else "p < 0,0001"
        score = f"{pair['wins']} à {pair['losses']}, {p}"
        lines.append("  " + clip(f"{one} contre {other} : {score}", 78))
    if len(told) > LISTED_LOSSES:
        lines.append(f"  et {len(told) - LISTED_LOSSES} autres (dans le rapport)")
    return lines + [""]


def compare_reports(report: Tree, earlier: Tree) -> Tree:
    """What changed since an earlier report, per variant of either: facts gained, lost, lost elsewhere.

    differences name, in French, what is not the same in both, which keeps no other fact from being compared.
    """
    edited = alterations(hashes(report), hashes(earlier))
    now, then = traits(report, edited), traits(earlier, edited)
    after, before = ({variant["id"]: fates(variant, edited) for variant in side["variants"]}
                     for side in (report, earlier))
    return {"differences": [*name_settings(report["settings"], earlier["settings"]),
                            *chain.from_iterable(name_changes(kind, now[kind], then[kind]) for kind in now)],
            "variants": {name: compare_fates(after.get(name, {}), before.get(name, {}))
                         for name in {**after, **before}}}


def compare_fates(now: Tree, then: Tree) -> Tree:
    """The changes of a variant, [question id, fact id, the stages that lost it] by kind.

    A fact is compared when its question asks the same, and its quotes are the same: at the same places, or
    in a document that was edited (the fact is then told in `edited`).  not_compared counts the others.
    """
    changes, reasons = {kind: [] for kind, _, _ in CHANGES}, Counter()
    compared, edited = 0, []
    for pair in {**now, **then}:
        ours, theirs = now.get(pair), then.get(pair)
        reason = why_not_compared(ours, theirs)
        if reason:
            reasons[reason] += 1
            continue
        compared += 1
        if ours.edited:
            edited.append([*pair])
        if ours.stage != theirs.stage:
            kind = "gained" if not ours.stage else "changed" if theirs.stage else "lost"
            changes[kind].append([*pair, *filter(None, [ours.stage and theirs.stage, ours.stage])])
    return {**changes, "compared": compared, "edited": edited, "not_compared": reasons}


def why_not_compared(ours: Optional[Fate], theirs: Optional[Fate]) -> str:
    """A line of NOT_COMPARED; empty when the fates of a fact in two reports can be compared."""
    if not ours or not theirs:
        return "removed" if theirs else "added"
    return ("question_changed" if ours.asked != theirs.asked else
            "fact_changed" if ours.required != theirs.required else "")


def fates(variant: Tree, edited: Tree) -> Tree:
    """{(question id, fact id): Fate} of a variant; edited names the documents that have changed."""
    found = {}
    for question in variant["questions"]:
        for fact in question["facts"]:
            quotes = fact.get("alternatives", [fact])
            required = [[quote["document"], fold_text(quote["quote"]),
                         None if quote["document"] in edited else quote["start"]] for quote in quotes]
            found[question["id"], fact["id"]] = Fate(
                question["text"], required, any(quote["document"] in edited for quote in quotes),
                fact["loss"] and fact["loss"]["stage"])
    return found


def hashes(report: Tree) -> Tree:
    """{document id: SHA-256 of its text} of a report."""
    return {document["id"]: document["sha256"] for document in report["case"]["documents"]}


def traits(report: Tree, edited: Tree) -> Tree:
    """What two reports may not share, settings apart: {kind, in French: {name: value}}."""
    first = report["variants"][:1]
    facts = {pair: fate for variant in first for pair, fate in fates(variant, edited).items()}
    return {
        "document": hashes(report),
        "variante": {variant["id"]: [variant["chunking"], variant["question_filters"]]
                     for variant in report["variants"]},
        "question": {question["id"]: [question["text"], question["filters"], question["per_document"]]
                     for variant in first for question in variant["questions"]},
        "fait exigé": {f"{question} / {fact}": fate.required for (question, fact), fate in facts.items()},
    }


def alterations(ours: Tree, theirs: Tree) -> Dict[str, str]:
    """{name: how it differs, in French} of what one of two reports lacks, or that is not the same in both."""
    told = {name: "ajouté" for name in ours if name not in theirs}
    told.update({name: "retiré" for name in theirs if name not in ours})
    told.update({name: "modifié" for name in ours if name in theirs and ours[name] != theirs[name]})
    return told


def name_changes(kind: str, ours: Tree, theirs: Tree) -> List[str]:
    """`2 questions modifiées : q_prix, q_loyer`: a sentence for each way in which a kind of thing differs."""
    mark, altered = "e" if kind in ("variante", "question") else "", {}
    for name, change in alterations(ours, theirs).items():
        altered.setdefault(change, []).append(name)
    return [f"{counted(len(names), f'{kind} {change}{mark}')} : {some(names)}"
            for change, names in altered.items()]


def name_settings(ours: Tree, theirs: Tree) -> List[str]:
    """`top_k : 4 → 6`, for each setting that is not the same; of a list, what came and went."""
    sides = [{**settings, **{f"filters.{key}": value for key, value in settings.get("filters", {}).items()}}
             for settings in (theirs, ours)]
    told = []
    for name in dict.fromkeys(key for side in sides for key in side if key != "filters"):
        values = [side.get(name) for side in sides]
        if values[0] != values[1]:
            if all(isinstance(value, list) for value in values):
                values = [[item for item in value if item not in other] or "rien"
                          for value, other in zip(values, values[::-1])]
            told.append("{} : {} → {}".format(name, *(clip(plain(value), 60) for value in values)))
    return told


def format_baseline(baseline: Tree) -> str:
    """What changed since an earlier report, to print under the table."""
    lines = ["", clip(f"Depuis le rapport de référence {baseline['file']}")]
    lines += ["  " + clip(f"attention : {difference}", 78) for difference in baseline["differences"]]
    for name, changes in baseline["variants"].items():
        counts = ", ".join(counted(len(changes[kind]), noun) for kind, _, noun in CHANGES)
        lines.append("  " + clip(f"{name} : {counts}" if changes["compared"] else
                                 f"{name} : rien n'est comparé", 78))
        edited = set(map(tuple, changes["edited"]))
        for kind, sign, _ in CHANGES:
            for question, fact, *stages in changes[kind]:
                told = " (document modifié)" * ((question, fact) in edited)
                told += " : " * bool(stages) + ", puis ".join(STAGE[stage].label for stage in stages)
                lines.append("    " + clip(f"{sign} {question} · {fact}{told}", 76))
        for reason, number in changes["not_compared"].items():
            apart = f"? {counted(number, 'preuve')} hors comparaison : {NOT_COMPARED[reason]}"
            lines.append("    " + clip(apart, 76))
    return "\n".join(lines) + "\n"


def regressions(baseline: Tree) -> Iterator[str]:
    """Why --no-regression does not hold: the variants that lost proofs, a line each; nothing compared."""
    for name, changes in baseline["variants"].items():
        if changes["lost"]:
            lost = some((f"{question} · {fact}" for question, fact, _ in changes["lost"]), LISTED_LOSSES)
            yield f"régression : {name} : {counted(len(changes['lost']), 'preuve perdue')} ({lost}).\n"
    told = baseline["variants"].values()
    if any(changes["not_compared"] for changes in told) and not any(changes["compared"] for changes in told):
        yield (f"régression : rien n'est comparable à {baseline['file']} ; "
               "donnez un rapport du même cas.\n")


def read_report(data: bytes, name: str) -> Found:
    """An earlier report of a case; AtelierError, under this name, when it is none."""
    faults = Faults(name)
    report = read_tree(data, "report", faults)
    if faults.told:
        raise AtelierError(f"{name} : " * bool(name) + "ce n'est pas un rapport d'Atelier, ou il est abîmé ; "
                           "donnez un fichier écrit par --output.")
    return report


# --- 19. Engines: what others sent, to the same evaluator -----------------------------------------

# What a line may hold.  In the records of the libraries that evaluate: the key of what was sent, that of the
# question, then the others, among them the references, what should have been sent, which are never scored.
LINE = "engine question context hits"
LIBRARIES = (
    ("retrieval_context", "input",  # deepeval
     "actual_output expected_output metadata additional_metadata name comments tags tools_called "
     "expected_tools source_file custom_column_key_values mcp_servers mcp_tools_called mcp_resources_called "
     "mcp_prompts_called expectations expected_labels"),
    ("retrieved_contexts", "user_input",  # ragas
     "response multi_responses reference reference_contexts retrieved_context_ids reference_context_ids "
     "rubric rubrics persona_name query_style query_length synthesizer_name"),
    ("contexts", "question", "answer ground_truth ground_truths evolution_type metadata"),  # ragas before
)
# Where Atelier, LangChain (Python, JavaScript), LlamaIndex, Haystack (nested or flat), Unstructured, docling,
# Chonkie and semchunk have these in a record; a dot goes inside.
FIELDS = {
    "text": "text page_content pageContent content text_resource.text",
    "document": "document metadata.document ref_doc_id relationships.1.node_id meta.source_id source_id "
                "metadata.source metadata.file_path meta.file_path file_path metadata.filename "
                "metadata.file_name meta.origin.filename",
    "start": "start_char metadata.start_char metadata.start_index start_char_idx meta.split_idx_start "
             "split_idx_start start_index",
    "end": "end_char metadata.end_char end_char_idx end_index",
}
# Where a record is in another one (LangChain's to_json, LlamaIndex's nodes with a score, Elasticsearch's and
# Qdrant's rows), the rows in a whole answer, and the parent from whose beginning positions may count.
WRAPPERS = ("kwargs", "node", "_source", "payload")
ROWS = ("hits.hits", "result.points", "result", "points")
PARENT = "relationships.4 meta.__parent_id __parent_id"
BLANK = b"\xef\xbb\xbf \t\r\n\v\f"  # a BOM's bytes, and those of white space
TOLD_FOREIGN = 3  # texts of a file that no document has

Delivery = record("Delivery", "context hits", """
    What a file says that an engine sent and found, [(Passage, words kept)] each; hits may be None.""")


class Corpus:
    """What records may come from, by name: a case's documents and questions, and its variants' passages.

    cutting_of(variant id) is a Cutting; warnings gathers sentences on files that are read all the same;
    foreign has what no document has: {(line, text): (its place, the Document that it named, or None)}.
    """

    def __init__(self, case: Case, cutting_of: Callable[[str], Cutting]):
        self.case, self.cutting_of = case, cutting_of
        self.questions = {question.id: question for question in case.questions}
        self.asked = by_name((" ".join(question.text.split()), question.id) for question in case.questions)
        paths = [(plain_path(document.file or name), name) for name, document in case.documents.items()]
        self.documents = ({name: [name] for name in case.documents}, by_name(paths),
                          by_name((path.rpartition("/")[2], name) for path, name in paths))
        self.named = {**self.documents[0], **self.documents[1]}
        self.warnings, self.foreign, self.explained = [], {}, 0

    def explain(self, explanation: Callable[..., str], *values: Any) -> str:
        """What mends a fault; nothing for the faults beyond those that are shown."""
        self.explained += 1
        return explanation(*values) if self.explained <= LISTED_FAULTS else ""

    def find(self, kind: str, unknown: str, name: Any, ids: Iterable[str], others: Tree = {}) -> str:
        """The id that a name stands for: an id, else another name, that of one thing alone."""
        text = str(name)
        found = [text] if text in ids else others.get(" ".join(text.split()), ())
        if not found:
            known = chain(ids, others if " " in text else ())
            raise AtelierError(f"{kind} {shown(name)} {unknown}. {self.explain(suggestion, text, known)}")
        return only(name, found)

    def document(self, names: Sequence[Any]) -> Optional[Document]:
        """The document that one of some names is: its id, its `file`, its file name; None without names."""
        paths = [plain_path(name) for name in names]
        wanted = list(map(str, names)), paths, [path.rpartition("/")[2] for path in paths]
        found = [bearers for asked, known in zip(wanted, self.documents)
                 for bearers in map(known.get, asked) if bearers]
        if names and not found:
            self.find("document", "inconnu", names[0], self.named)
        return self.case.documents[only(names[0], found[0])] if names else None

    def passage(self, name: Any) -> Passage:
        """`fixe_48_0/frais#0003`; where the ids of several variants fit, the longest that has it is meant."""
        text, variants = str(name), [variant.id for variant in self.case.variants]
        if "/" not in text:
            raise AtelierError(
                f"passage {shown(name)} inconnu ; il s'écrit <variante>/<passage>, comme dans --export.")
        fitting = sorted((variant for variant in variants if text.startswith(variant + "/")), key=len)[::-1]
        having = [variant for variant in fitting if text[len(variant) + 1:] in self.cutting_of(variant).by_id]
        variant = (having or fitting or [self.find("variante", "inconnue", text.split("/")[0], variants)])[0]
        passages, unknown = self.cutting_of(variant).by_id, "inconnu de la variante " + shown(variant)
        return passages[self.find("passage", unknown, text[len(variant) + 1:], passages)]._replace(id=text)


def only(name: Any, bearers: Sequence[str]) -> str:
    """The one thing that bears a name; AtelierError when several do."""
    if len(bearers) > 1:
        raise AtelierError(f"{shown(name)} est le nom commun de {' et '.join(map(shown, bearers))} ; "
                           "donnez l'identifiant.")
    return bearers[0]


def by_name(pairs: Iterable[Tuple[str, str]]) -> dict:
    """{name: the ids of all that bear it}."""
    names = {}
    for name, bearer in pairs:
        names.setdefault(name, []).append(bearer)
    return names


def plain_path(name: Any) -> str:
    """A path as a case has it: `file:///x/a%20b.txt` is `/x/a b.txt`, `.\\x\\a.txt` is `x/a.txt`."""
    path = unicodedata.normalize("NFC", str(name)).replace("\\", "/")
    if path.startswith("file:"):
        from urllib.parse import unquote
        path = unquote(re.sub("^file:(//)?", "", path))
    return re.sub(r"^(\./+)+", "", path)


def look_up(record: Any, paths: str) -> Any:
    """The first value that a record has at some dotted paths; None when there is none."""
    return next(iter(look_up_all(record, paths)), None)


def look_up_all(record: Any, paths: str) -> List[Any]:
    """All the values, None apart, that a record has at some dotted paths."""
    values = []
    for path in paths.split():
        value = record
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        values += [value] if value is not None else []
    return values


def unwrap(record: Any) -> Tree:
    """A record with what its wrapper holds: of a text, of a (document, score) pair, the record that it is."""
    if isinstance(record, list) and len(record) == 2 and type(record[1]) in (int, float):
        record = record[0]
    record = {"text": record} if isinstance(record, str) else record
    if not isinstance(record, dict):
        raise AtelierError(f"passage attendu : un texte ou un objet ; trouvé : {shown(record)}.")
    for wrapper in WRAPPERS:
        if isinstance(record.get(wrapper), dict):
            record = {**record[wrapper], **record}
    return record


def read_passage(record: Any, corpus: Corpus, place: str) -> tuple:
    """(passage, words kept) of a record at a place; AtelierError (a sentence without file) when it lies."""
    record = unwrap(record)
    text, heading = look_up(record, FIELDS["text"]), record.get("heading") or ""
    if text is not None and not (isinstance(text, str) and text.strip()):
        raise AtelierError(f"texte attendu, non vide ; trouvé : {shown(text)}.")
    if not isinstance(heading, str):
        raise AtelierError(f"« heading » attend un texte ; trouvé : {shown(heading)}.")
    exported = exported_name(record, corpus)
    if exported is not None:
        passage = corpus.passage(exported)
        return passage, passage.words if text is None else count_prefix(text, passage, corpus)
    document = corpus.document(look_up_all(record, FIELDS["document"]))
    found = find_place(record, text, document, corpus) if text or document or not heading else None
    if found:
        home, start, end = found
        passage = make_passage(home, f"{home.id}:{start}-{end}", start, end, heading)
    else:
        passage = make_foreign(text or "", heading)
        if text:
            corpus.foreign.setdefault((place.rpartition(" : ")[0], text), (place, document))
    return passage, passage.words


def exported_name(record: Tree, corpus: Corpus) -> Any:
    """The name of an exported passage: a record's `passage`, or its id when it is one; None without."""
    begun = tuple(variant.id + "/" for variant in corpus.case.variants)
    known = [name for name in look_up_all(record, "_id id") if str(name).startswith(begun)]
    return next(iter(look_up_all(record, "passage") + known), None)


def make_foreign(text: str, heading: str) -> Passage:
    """The passage of a text that no document has, after the words put in front of it."""
    count, sent = len(text.split()), "\n".join(filter(None, (heading, text)))
    return Passage(None, Span(NOWHERE.id, count, count), Span(NOWHERE.id, 0, count), 0, 0, sent,
                   len(sent.split()))


def count_prefix(text: str, passage: Passage, corpus: Corpus) -> int:
    """How many words of a passage a text keeps, which must be its first ones."""
    words, whole = (fold_text(part).split() for part in (text, text_of(corpus.case.documents, passage)))
    if words != whole[:len(words)]:
        raise AtelierError(f"ce texte n'est pas le début du passage {shown(passage.id)} : {shown(text)}.")
    return len(words)


def find_place(record: Tree, text: Optional[str], document: Optional[Document],
               corpus: Corpus) -> Optional[tuple]:
    """(document, start, end) in characters of what a record sends; None when no document has its text."""
    limits = [look_up(record, FIELDS[side]) for side in ("start", "end")]
    in_words = limits == [None, None]
    start, end = limits = [record.get("start"), record.get("end")] if in_words else limits
    if text is None and (document is None or limits == [None, None]):
        texts, starts = (", ".join(path for path in FIELDS[name].split() if "." not in path)
                         for name in ("text", "start"))
        raise AtelierError(f"rien à lire : ni « passage », ni texte ({texts}), ni document et positions "
                           f"(start, {starts}).")
    if text is not None and (start in (None, -1) or limits == [0, 0]):  # unknown
        return locate_text(text, document, corpus)
    last = start + len(text) if end is None and text and not in_words and type(start) is int else end
    if not (type(start) is type(last) is int and 0 <= start < last):
        raise AtelierError(
            f"positions {shown(start)} à {shown(last)} : deux entiers croissants sont attendus.")
    homes = [document] if document else corpus.case.documents.values()
    found = [(home, *characters) for home in homes
             for characters in [stands_at(home, start, last, in_words, text)] if characters]
    if len(found) == 1:
        return found[0]
    if text and (look_up(record, PARENT) is not None or text == look_up(record, "metadata.window")):
        return locate_text(text, document, corpus)  # LlamaIndex put another text in place of the node's own
    if document is None:
        raise AtelierError("des positions sans document ; ajoutez « document ».")
    raise AtelierError(explain_limits(start, last, end, in_words, document, text, corpus))


def stands_at(document: Document, start: int, last: int, in_words: bool,
              text: Optional[str]) -> Optional[tuple]:
    """The (start, end) characters that positions tell; None outside the document, or of another text.

    A text of that very length, but in another form, ends in the document where it ends itself.
    """
    limits = characters_at(document, start, last, in_words)
    if limits and (text is None or fold_text(text) == fold_text(document.text[slice(*limits)])):
        return limits
    if in_words or text is None or last - start != len(text):
        return None
    folded, needle = fold(document.text), fold_text(text)
    at = folded_character(document, start)
    if folded.text.startswith(needle, at):
        limits = characters_of(document, at, at + len(needle))
        return limits if limits[0] == start + len(text) - len(text.lstrip()) else None
    return None


def characters_at(document: Document, start: int, last: int, in_words: bool) -> Optional[tuple]:
    """The (start, end) characters of positions, in words or not; None when the document has not so many."""
    if last > len(document.ends if in_words else document.text):
        return None
    return (document.starts[start], document.ends[last - 1]) if in_words else (start, last)


def explain_limits(start: int, last: int, end: Optional[int], in_words: bool, document: Document,
                   text: Optional[str], corpus: Corpus) -> str:
    """What is wrong with positions: outside the document, or those of another text than the one given."""
    length, unit = (len(document.starts), "mots") if in_words else (len(document.text), "caractères")
    place, name = f"positions {start} à {last}", shown(document.id)
    limits = characters_at(document, start, last, in_words)
    problem = f"{place} hors du document {name}, qui compte {length} {unit}."
    if limits:
        there = fold_text(document.text[slice(*limits)])
        sent, there = shown_apart(fold_text(text), there) if there else (shown(text), shown(there))
        problem = f"le texte {sent} n'est pas celui des {place} de {name} : {there}."
    if text and not in_words:
        problem += " " + corpus.explain(explain_positions, text, document, start, end)
    return problem.rstrip()


def locate_text(text: str, document: Optional[Document], corpus: Corpus) -> Optional[tuple]:
    """The one place of a text: (document, start, end); white space is folded, its edges may cut a word.

    None when it is nowhere in the corpus.
    """
    every = corpus.case.documents.values()
    places = places_of(text, [document] if document else every)
    if len(places) > 1:
        where = f"dans {shown(document.id)}" if document else "dans le corpus"
        enough = len({home.id for home, _ in places}) == len(places)
        mend = "donnez son document : il suffit" if enough else "donnez ses positions"
        raise AtelierError(f"le texte {shown(text)} figure plusieurs fois {where} ; {mend}.")
    elsewhere = places_of(text, every) if document and not places else ()
    if elsewhere:
        raise AtelierError(f"le texte {shown(text)} n'est pas dans {shown(document.id)}, mais dans "
                           f"{shown(elsewhere[0][0].id)} ; corrigez son document.")
    for home, first in places:
        last = first + len(fold_text(text))
        return (home, *characters_of(home, first, last))


def places_of(text: str, homes: Iterable[Document]) -> List[tuple]:
    """The (document, character of its folded text) of the first and the last places of a text in each."""
    needle, folded = fold_text(text), [(home, fold(home.text).text) for home in homes]
    return [(home, at) for home, whole in folded
            for at in sorted({whole.find(needle), whole.rfind(needle)}) if at >= 0]


def tell_foreign(corpus: Corpus) -> Iterator[str]:
    """How many texts no document has; of the first ones, where they are, the nearest text, what differs."""
    if corpus.foreign:
        yield (f"textes qui ne sont pas dans le corpus : {len(corpus.foreign)} ; envoyés et comptés, ils ne "
               "prouvent rien. Les mots que le moteur met devant un passage vont dans « heading ».")
    for (_, text), (place, named) in islice(corpus.foreign.items(), TOLD_FOREIGN):
        document, cause = named or nearest_document(text, corpus), ", qui n'a aucun de ses mots."
        if document:
            cause = explain_absence(text, fold(document.text)).replace(" Recopiez le texte.", "")
            cause = f" ; document {shown(document.id)} : {cause}"
        yield f"{place} : le texte {shown(text)} n'est pas dans le corpus{cause}"


def nearest_document(text: str, corpus: Corpus) -> Optional[Document]:
    """The document that has the most of the words of a text; None when none has any."""
    words = set(LETTER_RUN.findall(fold_text(text).casefold()))
    shared = {name: len(words.intersection(LETTER_RUN.findall(fold(document.text).text.casefold())))
              for name, document in corpus.case.documents.items()}
    best = max(shared, key=shared.get)
    return corpus.case.documents[best] if shared[best] else None


def read_contexts(lines: Iterable[bytes], name: str, corpus: Corpus, taken: Iterable[str]) -> dict:
    """{engine: {question id: Delivery}} of a file given line by line: JSON lines, a JSON list, or a TREC run.

    taken: the names that no engine may bear.  Raises AtelierError with all the faults of the file.
    """
    faults, engines, ranking = Faults(name, alike=True), {}, []
    stem = os.path.splitext(os.path.basename(name))[0]
    corpus.foreign.clear()
    for place, value in parse_lines(lines, faults):
        if isinstance(value, tuple):
            ranking.append((place, value))
        elif sound(value, "object", place, faults) is not UNSOUND:
            read_line(value, place, stem, corpus, engines, faults)
    if ranking:
        engines[stem] = read_ranking(ranking, corpus, faults)
    if not engines and not faults.told:
        faults.add("", "aucune ligne ; donnez un objet par ligne, une liste JSON ou un classement TREC.")
    sound_lines = not faults.told
    for engine, deliveries in engines.items():
        if engine in taken:
            faults.add("", f"le moteur {shown(engine)} porte le nom d'une variante ou d'un autre moteur ; "
                           "donnez-lui-en un autre.")
        absent = [shown(question.id) for question in corpus.case.questions
                  if question.answerable and question.id not in deliveries]
        if absent and sound_lines:
            faults.add("", f"moteur {shown(engine)} : aucune ligne pour {some(absent)} ; "
                           "ajoutez-la, même avec un contexte vide.")
    faults.check()
    corpus.warnings += [f"{name} : {sentence}" for sentence in tell_foreign(corpus)]
    return engines


def parse_lines(lines: Iterable[bytes], faults: Faults) -> Iterator[tuple]:
    """The (place, value) of each record of a file, one at a time; a TREC line is a tuple of columns."""
    lines, head, form = iter(lines), [], b""
    for line in lines:
        head.append(line)
        form = line.lstrip(BLANK)
        if form:
            break
    lines = chain(head, lines)
    if form.startswith((b"[", *(beginning for beginning, _ in BINARIES))):
        tree = collect(faults, "", lambda: parse_json(decode(b"".join(lines)))) or []
        check_tree(tree, faults)
        yield from ((f"[{number}]", value) for number, value in enumerate(tree))
    for number, line in enumerate(lines, 1):
        place, text = f"ligne {number}", line.strip(BLANK)
        if not text:
            continue
        try:
            value = parse_json(decode(line).strip()) if form.startswith(b"{") else tuple(decode(line).split())
        except AtelierError as error:
            cause = re.sub("octet.*?: |ligne 1, ", "", str(error), count=1)
            faults.add(place, cause + " Un objet tient sur une ligne, ou dans une liste." * (text == b"{"))
            if text == b"{":
                return
        else:
            check_tree(value, faults, place)
            yield place, value


def collect(faults: Faults, place: str, read: Callable[..., Any], *values: Any) -> Any:
    """What is read of values; None, once it is told at a place, when they are refused."""
    try:
        return read(*values)
    except AtelierError as error:
        faults.extend(place, error)


def read_line(line: Tree, place: str, stem: str, corpus: Corpus, engines: dict, faults: Faults) -> None:
    """Put what a line says that an engine (stem by default) sent among what engines sent, if it is sound."""
    engine = line.get("engine", stem)
    if not (isinstance(engine, str) and engine.strip()):
        faults.add(place, f"« engine » attend un texte ; trouvé : {shown(engine)}.")
        engine = stem
    asked = [line[name] for name in ("question", "user_input", "input") if name in line]
    if not asked:
        faults.add(place, "la clé « question » manque ; ajoutez-la.")
    question = collect(faults, place, corpus.find, "question", "inconnue", asked[0], corpus.questions,
                       corpus.asked) if asked else None
    key = find_sent(line, place, faults)
    context = read_passages(line.get(key, []), key, place, corpus, faults)
    hits = line.get("hits")
    if hits is not None:
        hits = read_passages(hits, "hits", place, corpus, faults)
    deliveries = engines.setdefault(engine, {})
    if question in deliveries:
        faults.add(place, f"question {shown(question)} donnée deux fois pour le moteur {shown(engine)} ; "
                          "gardez-en une.")
    if question:
        deliveries[question] = Delivery(context, hits)


def find_sent(line: Tree, place: str, faults: Faults) -> str:
    """The key of what was sent; tells when it is missing or double, and the keys that no such line has."""
    made = [keys for keys in LIBRARIES if keys[0] in line] or [
        keys for keys in LIBRARIES if keys[1] in line and keys[1] not in LINE.split()]
    known = " ".join([LINE, *map(" ".join, made)]).split()
    for name, value in line.items():
        if name not in known and not (made and type(value) in (int, float, bool, type(None))):  # a score
            faults.add(f"{place} : {name}", "clé inconnue.", name, known)
    sent = [keys[0] for keys in made if keys[0] in line]
    if any(line[key] != line[sent[0]] for key in sent):
        faults.add(place, " et ".join(map(shown, sent)) + " diffèrent : laquelle de ces clés a ce qui a été "
                                                          "envoyé ? Ôtez l'autre.")
    key = made[0][0] if made else "context"
    if key not in line:
        faults.add(place, f"la clé {shown(key)} manque ; ajoutez-la."
                   + " « context » y est une référence, qui n'est pas jugée." * ("context" in line))
    return key


def read_passages(value: Any, key: str, place: str, corpus: Corpus, faults: Faults) -> list:
    """The (passage, words kept) of the records of a line's key."""
    rows = collect(faults, place, rows_of, value, key) or ()
    places = [f"{place} : {key}[{number}]" for number, _ in enumerate(rows)]
    return [collect(faults, at, read_passage, row, corpus, at) for at, row in zip(places, rows)]


def rows_of(value: Any, key: str) -> list:
    """The records of a list, of semchunk's pair of lists, of an answer of Elasticsearch, Qdrant or Chroma."""
    for path in ROWS:
        if isinstance(look_up(value, path), list):
            return look_up(value, path)
    if isinstance(value, dict) and isinstance(value.get("ids"), list):
        columns = [value.get(name) for name in ("ids", "documents", "metadatas")]
        if value["ids"] and isinstance(value["ids"][0], list):  # a list a question
            if len(value["ids"]) > 1:
                raise AtelierError(f"« {key} » répond à {len(value['ids'])} questions ; une ligne n'en a "
                                   "qu'une.")
            columns = [column[0] if column and isinstance(column, list) else None for column in columns]
        columns = [column if isinstance(column, list) else [None] * len(columns[0]) for column in columns]
        return [dict(zip(("id", "text", "metadata"), row)) for row in zip(*columns)]
    if not isinstance(value, list):
        sought = f" On y a cherché {', '.join(ROWS)} et ids." if isinstance(value, dict) else ""
        raise AtelierError(f"« {key} » attend une liste ; trouvé : {shown(value)}.{sought}")
    if len(value) == 2 and all(isinstance(part, list) for part in value) and all(
            isinstance(pair, list) and len(pair) == 2 for pair in value[1]):
        return [{"text": text, "start_index": start, "end_index": end}
                for text, (start, end) in zip(*value)]
    return value


def read_ranking(rows: Iterable[tuple], corpus: Corpus, faults: Faults) -> Deliveries:
    """A TREC run, best score first, ties by rank; the context is cut by the case's top_k and budget."""
    found, deliveries, settings = {}, {}, corpus.case.settings
    for place, columns in rows:
        collect(faults, place, read_row, columns, corpus, found)
    for question, entries in found.items():
        ranked = sorted(entries.values(), key=lambda entry: entry[:2])
        ranks = [rank for _, rank, _ in ranked]
        if ranks != sorted(ranks):
            corpus.warnings.append(f"question {shown(question)} : les rangs du classement contredisent ses "
                                   "scores ; ce sont les scores qui font foi, le plus grand d'abord.")
        hits = [(passage, passage.words) for _, _, passage in ranked[:settings.top_k]]
        kept = assemble([words for _, words in hits], settings.budget_words)
        context = [(passage, words) for (passage, _), words in zip(hits, kept) if words]
        deliveries[question] = Delivery(context, hits)
    return deliveries


def read_row(columns: tuple, corpus: Corpus, found: dict) -> None:
    """Put `question Q0 <variant>/<passage> rank score tag` in {question: {name: (-score, rank, passage)}}."""
    try:
        question, _, name, rank, score, _ = columns
        entry = -float(score), int(rank), corpus.passage(name)
        if not abs(entry[0]) < float("inf"):
            raise ValueError(score)
    except ValueError:
        line = " ".join(columns)
        blank = [name for name in blank_names(corpus.case) if " ".join(name.split()) in line]
        cause = "".join(f" L'identifiant {shown(name)} a une espace, ce que ce format ne permet pas ; "
                        "changez-le." for name in blank[:1])
        raise AtelierError("six colonnes attendues : question Q0 <variante>/<passage> rang score étiquette ; "
                           f"trouvé : {shown(line)}.{cause}") from None
    entries = found.setdefault(corpus.find("question", "inconnue", question, corpus.questions), {})
    if name in entries:
        raise AtelierError(f"passage {shown(name)} donné deux fois pour {shown(question)} ; gardez-en un.")
    entries[name] = entry


def blank_names(case: Case) -> List[str]:
    """The ids of a case that no TREC run can carry, since they hold white space."""
    things = [*case.questions, *case.variants, *case.documents.values()]
    return [thing.id for thing in things if len(thing.id.split()) > 1]


def engine_sent(case: Case, question: Question, delivery: Delivery) -> Sent:
    """What an engine sent for a question, as the evaluator takes it; its ranks ignore per_document."""
    spans = union(kept_span(*part) for part in delivery.context)
    sent = {document: list(parts) for document, parts in groupby(spans, lambda span: span.document)}
    foreign = {passage for passage, _ in delivery.context if passage.span.document == NOWHERE.id}

    def sent_words(passage):
        if passage in foreign:
            return passage.words
        document, start, end = passage.span
        return sum(min(end, part.end) - max(start, part.start)
                   for part in overlapping(sent.get(document, ()), start, end))
    context = [Hit(rank, passage, None, words) for rank, (passage, words) in enumerate(delivery.context, 1)]
    hits = delivery.hits and [Hit(rank, passage, None, sent_words(passage))
                              for rank, (passage, _) in enumerate(delivery.hits, 1)]
    question = question._replace(per_document=None)
    return Sent(question, filters_in_force(case, question), None, None, None, hits, context, None, None, None)


def unfit_for_trec(case: Case) -> Iterator[str]:
    """A sentence on the ids of an exported case that no TREC run can carry."""
    names = blank_names(case)
    if names:
        yield (f"--export : un classement TREC ne peut porter un identifiant qui a une espace : "
               f"{some(map(shown, names))}.")


def export_passages(case: Case, cutting_of: Callable[[str], Cutting]) -> Iterator[str]:
    """A JSON line for each passage of each variant, for another engine to index exactly these."""
    for variant in case.variants:
        for passage in cutting_of(variant.id).by_id.values():
            document = case.documents[passage.span.document]
            sections = sections_of(document, passage)
            yield encode({
                "id": f"{variant.id}/{passage.id}", **passage.span._asdict(),
                "start_char": passage.start, "end_char": passage.end,
                "text": text_of(case.documents, passage), "title": document.label,
                "metadata": sections[0].metadata if len(sections) == 1 else document.metadata}) + "\n"


# --- 20. Citations: a register to three fractions -------------------------------------------------

RELATIONS = {"supports": "soutient", "insufficient": "ne suffit pas", "contradicts": "contredit",
             "irrelevant": "hors sujet", "review": "à relire"}  # human judgements: none is inferred
VERDICTS = {"supported": "soutenue", "review": "à relire", "unsupported": "non soutenue"}
CLAIMS = {"supported": "Affirmations soutenues", "review": "Affirmations à relire",
          "unsupported": "Affirmations non soutenues"}
STATUSES = {"source_missing": "source inconnue", "not_in_context": "hors du contexte",
            "revision_mismatch": "autre révision", "content_mismatch": "autre texte", "valid": "valide"}
MARKS = {"excerpt": "extrait", "typography": "typographie"}  # how a text stands to its passage's
FRACTIONS = (("claim_support", "affirmations soutenues"),
             ("citation_usefulness", "citations valides qui soutiennent"),
             ("structural_validity", "citations valides"))


def check_citations(data: bytes, name: str, read: Callable[[str], bytes]) -> Tree:
    """The `citations` of a register's report; name is the file's, read gives the bytes of one that it names.

    Raises AtelierError with all the faults of the file.
    """
    faults = Faults(name)
    register = read_tree(data, "register", faults)
    known = read_given(register, read, faults)
    excerpts = register.get("excerpts", False)
    claims = [(claim, read_citations(claim, known, excerpts, faults)) for claim in register.get("claims", ())]
    faults.check()
    return {"file": os.path.basename(name), "sha256": sha256(data), "excerpts": excerpts,
            **count_citations(claims)}


def read_given(register: Found, read: Callable[[str], bytes], faults: Faults) -> dict:
    """{passage id: (revision, text, whether it was sent)}, from a register's own lists or from a report."""
    if "context_from" in register.given:
        if register.given & {"passages", "context"}:
            faults.add("context_from", "remplace « passages » et « context » ; ôtez-les.")
        return read_context(register.get("context_from", {}), read, faults)
    for key in ("passages", "context"):
        if key not in register.given:
            faults.add("", f"la clé {shown(key)} manque, ou « context_from ».")
    sent = register.get("context", ())
    known = {item["id"]: (item.get("revision"), item["text"], item["id"] in sent)
             for item in register.get("passages", ()) if {"id", "text"} <= set(item)}
    for number, name in enumerate(sent):
        if name not in known:
            faults.add(f"context[{number}]", f"passage {shown(name)} inconnu.", name, known)
    return known


def read_context(origin: Found, read: Callable[[str], bytes], faults: Faults) -> dict:
    """The passages that a report found for a question; those sent, as the budget let them through."""
    if len(origin) < 3:
        return {}
    try:
        found = read_report(read(origin["report"]), "")
    except AtelierError as error:
        faults.extend(f"context_from.report ({origin['report']})", error)
        return {}
    for key in ("variant", "question"):
        name, parts = origin[key], {part["id"]: part for part in found[key + "s"]}
        if name not in parts:
            faults.add("context_from." + key, f"{shown(name)} inconnu du rapport.", name, parts)
            return {}
        found = parts[name]
    return {part["passage"]: (None, part["text"], key == "context")
            for key in ("hits_before_budget", "context") for part in found[key] or () if part["passage"]}


def read_citations(claim: Found, known: dict, excerpts: bool, faults: Faults) -> List[Tree]:
    """A claim's citations, as the report has them; one that repeats another must have its relation."""
    relations, citations = {}, []
    for item in claim.get("citations", ()):
        relation = item.get("relation", "review")
        if relation not in RELATIONS:
            names = ", ".join(f"{name} ({told})" for name, told in RELATIONS.items())
            faults.add(item.place + ".relation", f"relation {shown(relation)} inconnue. Possibles : {names}.")
        if not {"passage", "text", "relation"} <= set(item):
            continue
        key = item["passage"], item.get("revision"), item["text"]
        duplicate, first = key in relations, relations.setdefault(key, relation)
        if first != relation:
            faults.add(item.place, "même citation qu'une autre de cette affirmation, avec une autre relation "
                                   f"({first} et {relation}) ; choisissez.")
        citations.append({"passage": key[0], "revision": key[1], "text": key[2],
                          **assess(*key[1:], known.get(key[0]), excerpts),
                          "relation": relation, "duplicate": duplicate})
    return citations


def assess(revision: Any, text: str, given: Optional[tuple], excerpts: bool) -> Tree:
    """A citation's status, the first that holds, and how its text stands to the passage's, where that counts.

    given is (revision, text, whether it was sent) of its passage; excerpts: whether a part of it is enough.
    """
    unlike = {"excerpt": None, "typography": None}
    if not given or not given[2]:
        return {"status": "not_in_context" if given else "source_missing", **unlike}
    known_revision, known_text, _ = given
    lines, known_lines = ("\n".join(part.splitlines()) for part in (text, known_text))
    same = lines == known_lines  # to the letter, line ends apart
    if revision != known_revision:
        return {"status": "revision_mismatch", "same_content": same, **unlike}
    if not same:
        unlike = compare_texts(lines, known_lines)
    valid = same or excerpts and unlike["excerpt"] and not unlike["typography"]
    return {"status": "valid" if valid else "content_mismatch", **unlike}


def compare_texts(text: str, known: str) -> Dict[str, bool]:
    """Whether a text is an excerpt of another, in whole words; whether typography alone sets them apart.

    Typography: apostrophes, blanks, canonical form; both are true of an excerpt so changed.
    """
    folded = fold(known)
    whole = fold_text(text) == folded.text
    excerpt = not whole and any(find_whole(text, folded))
    return {"excerpt": excerpt, "typography": whole or excerpt and text not in known}


def count_citations(found: Iterable[tuple]) -> Tree:
    """Three fractions that are never merged, and what they are made of: (claim, its citations) of each.

    A claim is supported when a valid citation supports it, else under review when a valid one is.
    """
    claims = []
    for claim, citations in found:
        told = {citation["relation"] for citation in citations if citation["status"] == "valid"}
        verdict = "supported" if "supports" in told else "review" if "review" in told else "unsupported"
        claims.append({"id": claim.get("id"), "text": claim.get("text"), "verdict": verdict,
                       "citations": citations})
    pairs = [(claim["id"], cited) for claim in claims for cited in claim["citations"]]
    distinct = [pair for pair in pairs if not pair[1]["duplicate"]]
    valid = [pair for pair in distinct if pair[1]["status"] == "valid"]
    return {
        "claim_support": fraction(sum(claim["verdict"] == "supported" for claim in claims), claims),
        "citation_usefulness": fraction(sum(cited["relation"] == "supports" for _, cited in valid), distinct),
        "structural_validity": fraction(len(valid), distinct),
        "claims": claims,
        "duplicates": [{"claim": name, "passage": cited["passage"], "revision": cited["revision"]}
                       for name, cited in pairs if cited["duplicate"]],
        "uncited": [claim["id"] for claim in claims if not claim["citations"]],
        "open_reviews": [{"claim": name, "passage": cited["passage"]} for name, cited in valid
                         if cited["relation"] == "review"],
    }


def fraction(part: int, whole: list) -> Tree:
    """`7/17` and its two numbers; `0/0` when there is nothing to count."""
    return {"numerator": part, "denominator": len(whole), "fraction": f"{part}/{len(whole)}"}


def format_citations(citations: Tree) -> str:
    """The three fractions, then what a person has to look at, at most 80 columns wide."""
    lines = [clip(f"Atelier {__version__} · {citations['file']}"), ""]
    lines += [f"{label:<36}{citations[key]['fraction']:>8}" for key, label in FRACTIONS] + [""]
    for claim in citations["claims"]:
        lines.append(clip(f"{claim['id']} : {VERDICTS[claim['verdict']]}"))
        for cited in claim["citations"]:
            marks = "".join(f" ({label})" for mark, label in MARKS.items() if cited[mark])
            told = f"{cited['passage']} : {STATUSES[cited['status']]}{marks}, {RELATIONS[cited['relation']]}"
            lines.append("    " + clip(told + ", répétée" * cited["duplicate"], 76))
    for key, label in (("open_reviews", "À relire"), ("duplicates", "Citations répétées"),
                       ("uncited", "Sans citation")):
        names = [item if key == "uncited" else "{claim} ({passage})".format(**item)
                 for item in citations[key]]
        lines += ["", clip(f"{label} : {', '.join(names)}")] if names else []
    return "\n".join(lines) + "\n"


# --- 21. Page: a report's dict to one HTML page ---------------------------------------------------

STYLE = """
:root{--ink:#1c1c20;--soft:#595a62;--line:#c7c8cf;--paper:#fff;--wash:#f3f3f5;
--kept:#c3c8d4;--proof:#1d4fa6;--lost:#ab2318;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--ink:#ebebef;--soft:#b3b4bd;--line:#4b4c55;--paper:#16171b;
--wash:#212228;--kept:#565b69;--proof:#8fb8ff;--lost:#ff9a90}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem 1rem 4rem;max-width:76rem;background:var(--paper);color:var(--ink);
font:1rem/1.5 Charter,"Sitka Text",Cambria,Georgia,serif;font-variant-numeric:tabular-nums lining-nums;
overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.2;margin:.2rem 0 .6rem}
h2{font-size:1.3rem;margin:2rem 0 .6rem}
h3{font-size:1rem;margin:2rem 0 .5rem}
p,ul{margin:.4rem 0}
a{color:inherit;text-underline-offset:.15em}
:focus-visible{outline:3px solid var(--proof);outline-offset:2px}
:target{outline:3px solid var(--proof);outline-offset:.3rem}
[id]{scroll-margin-top:6rem}
.skip{position:absolute;left:-99rem}.skip:focus{position:static}
.h{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.soft,dt,th,figcaption,small{color:var(--soft)}
figcaption,small{font-size:.8rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.8rem 0;font-size:.85rem}
dd{margin:0}
.beside,nav ul,.filters{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem}
.losses{flex:2 1 30rem}aside{flex:1 1 18rem;font-size:.85rem}
nav ul,.losses{padding:0;margin:0;list-style:none}
.losses li{display:flex;flex-wrap:wrap;gap:.2rem 1rem;align-items:start;padding:.35rem 0;
border-top:1px solid var(--line)}
.losses .m{flex:0 0 11rem}.losses span{flex:1 1 14rem}
.filters{border:1px solid var(--line);font-size:.85rem;margin:.5rem 0}
@supports not selector(:has(a)){.filters{display:none}}
.scroll{overflow:auto;position:relative}#matrice .scroll{max-height:90vh}
table{border-collapse:collapse;margin-bottom:1rem;font-size:.85rem;overflow-wrap:normal}
th{font-weight:400;text-align:left;vertical-align:bottom}
tbody th,td{vertical-align:top}
th,td{padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--line)}
.n{text-align:right}td.n{white-space:nowrap}.n a{display:block}
.n details{border:0;padding:0}.n details[open]{max-height:12rem;overflow:auto}
.id{overflow-wrap:anywhere;min-width:7rem}
.bar{display:block;height:.35rem;min-width:4rem;border:1px solid var(--soft);margin-top:.2rem}
.bar i{display:block;height:100%;background:var(--kept)}
.bar i,.m{forced-color-adjust:none;print-color-adjust:exact;-webkit-print-color-adjust:exact}
#matrice thead th,#matrice tbody th{position:sticky;background:var(--paper)}
#matrice thead th{top:0;z-index:1;overflow-wrap:anywhere;min-width:5rem}
#matrice tbody th{left:0;color:var(--ink);min-width:9rem}
.m{display:block;margin:.1rem 0;padding:.05rem .4rem;border:1px solid var(--lost);background:var(--lost);
color:var(--paper);text-decoration:none;white-space:nowrap}
.narrow td,.narrow th{padding-right:.2rem}.narrow .w{display:none}
.ok{display:inline-block;width:0;height:0;margin:.4rem .15rem 0;border:.25rem solid var(--soft);
border-radius:50%;overflow:hidden;white-space:nowrap}
.lost{color:var(--lost)}
details{border-top:1px solid var(--line);padding:.4rem 0}
summary{cursor:pointer}
@media screen{.long article{content-visibility:auto;contain-intrinsic-size:auto 9rem}}
@media (min-width:40rem){article h3{position:sticky;top:0;z-index:2;background:var(--paper)}}
@media (max-width:40rem){dl{grid-template-columns:1fr}#matrice tbody th{position:static}}
@media print{@page{margin:1.2cm}html{font-size:8.5pt}body{padding:0;max-width:none}
nav,.skip,.filters,.long tr[data-lost=""],.short article:not(:has([open])),.short article details:not([open]){
display:none}
#matrice .scroll{max-height:none;overflow:visible}article h3,#matrice th{position:static!important}
h2,h2+p,h3,h3+p,p:has(+.terms),summary{break-after:avoid}h3{margin-top:1rem}
figure,li,tr,.words,h3,.long article{break-inside:avoid}
.long section,.long h3,.long table{font-size:7pt}.long #trajets{columns:2}.long .m{display:inline-block}
.long h3,.long p,.long details,.long .m{margin:0;padding:0 .2rem;border:0}.long td,.long th{padding:0 .2rem}}
"""
TRIP_STYLE = """
.words i,.row>:first-child{color:var(--soft)}
.row>:first-child,.zones,.terms{font-size:.8rem}
figure{margin:.8rem 0}
.row{display:grid;grid-template-columns:13rem 1fr;align-items:end;gap:0 .8rem}
.row>*+*{position:relative;height:2.2rem;
background:linear-gradient(var(--line) 0 0) 0 1.45rem/100% 1px no-repeat}
.strip .row>*+*{background:linear-gradient(90deg,transparent var(--budget),var(--wash) 0)}
.strip .row>*+*::after{content:"";position:absolute;top:0;bottom:0;left:calc(var(--budget) - 2px);
border-left:4px double var(--lost)}
.zones{position:relative;height:1.3rem;margin:0 0 0 13.8rem}
.zones b{position:absolute;left:clamp(9rem,var(--budget),100% - 7rem);transform:translateX(-50%);
white-space:nowrap;line-height:1.3rem;color:var(--lost)}
.zones b::before,.zones b::after{position:absolute;padding:0 .5rem;font-weight:400;color:var(--soft)}
.zones b::before{content:"envoyé au modèle";right:100%}.zones b::after{content:"hors budget";left:100%}
.row i,.row svg{position:absolute;top:1rem;height:.9rem}
.row svg{top:0;width:100%;height:100%;fill:none;stroke:var(--ink)}
.kept,.again,.cut,.away{border:1px solid var(--soft)}
.kept{background:var(--kept)}
.again{background:radial-gradient(var(--soft) 30%,var(--paper) 35%) 0/4px 4px}
.cut{background:repeating-linear-gradient(135deg,transparent 0 3px,var(--soft) 3px 4px)}
.away{background:var(--paper)}
.row .q{top:.85rem;height:1.2rem;border:2px solid var(--proof);min-width:4px}
.row .lost{border:2px dashed var(--lost)}.row .twice{border-width:1px}
.row .from{border-left:0}.row .on{border-right:0}
.q b{position:absolute;top:-1.05rem;left:3px;white-space:nowrap}
.q b,mark b{font:bold .75rem/1rem sans-serif;color:var(--proof)}
.q.lost b,mark.lost b,.end{color:var(--lost)}
.row .p{top:1.9rem;height:.25rem;min-width:3px;background:var(--lost)}
.o{min-width:3px;background:var(--proof)}
.row i,.terms i{forced-color-adjust:none;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.words{background:var(--wash);padding:.6rem .8rem;font-size:.9rem;white-space:pre-line}
mark{background:none;color:inherit;border-bottom:3px solid var(--proof)}
mark.lost{border-bottom:3px dashed var(--lost)}
.end{border:1px solid;margin:0 .3rem;padding:0 .3rem;white-space:nowrap;font-size:.8rem;direction:ltr;
unicode-bidi:isolate}
.terms{padding:0;list-style:none}
.loss{border-left:4px solid var(--lost);padding-left:.6rem}
.terms i{display:inline-block;font-style:normal;border:1px solid var(--line);padding:0 .3rem;
background:linear-gradient(var(--soft) 0 0) 0 100%/var(--part) 4px no-repeat}
.curves{display:grid;grid-template-columns:repeat(auto-fill,minmax(13rem,1fr));gap:0 1.5rem}
.curves svg{width:100%;height:4rem;overflow:visible;clip-path:inset(-2px 0);
border:solid var(--soft);border-width:0 0 1px 1px}
.curves p{color:var(--soft);font-size:.8rem}.curves>div{break-inside:avoid}
.curves path{fill:none;stroke:var(--ink);stroke-width:2}
.curves .limit{stroke:var(--lost);stroke-dasharray:4 3}
.claim{display:grid;grid-template-columns:1fr 1fr;gap:0 1.5rem;border-top:1px solid var(--line)}
.claim h3,blockquote{margin:.5rem 0}.unsupported h3{color:var(--lost)}
blockquote{padding-left:.8rem;border-left:3px solid var(--line)}
@media (max-width:40rem){.row,.claim{grid-template-columns:1fr}.zones{margin:0}}
"""
HEAD = """<!DOCTYPE html>
<html lang="fr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{}</title>
<link rel="icon" href="data:,">
<style>{}</style>
</head>
<body>
<a class="skip" href="#contenu">Aller au contenu</a>
"""
COVERED = ("●", "couverte")
SIGNS = {  # of each stage: its shape, its word, what a sentence says after a count
    "filtered_out": ("△", "filtre", "par un filtre"),
    "not_indexed": ("○", "hors index", "hors de l'index"),
    "cut_by_budget": ("◐", "budget", "par le budget"),
    "split_at_boundary": ("◇", "découpage", "par le découpage"),
    "not_matched": ("□", "sans mot commun", "faute d'un mot commun"),
    "ranked_too_low": ("▽", "rang", "par le rang"),
    "not_retrieved": ("✕", "non trouvée", "hors des résultats d'un moteur"),
    "not_sent": ("–", "non envoyée", "hors du contexte d'un moteur"),
}
NOTHING_FOUND = {
    "no_term": "Aucun mot à chercher.", "no_match": "Aucun passage ne partage un mot avec la question.",
    "no_document": "Les filtres n'admettent aucun document.", None: "Rien n'a été envoyé.",
}
COLUMNS = (  # of the variants: label, what is shown
    ("contextes complets", "{complete_contexts}/{answerable_questions}"),
    ("preuves couvertes", "{facts_covered}/{facts_required}"), ("rappel par preuve", "{recall}"),
    ("d'un seul tenant", "{facts_whole}/{facts_required}"),
    ("possible à ce top_k", "{possible}/{answerable_questions}"), ("budget suffisant", "{enough}"),
    ("passages", "{passages_indexed}"), ("mots indexés", "{words_indexed}"), ("mots envoyés", "{words_sent}"),
    ("redondants", "{redundant_words}"),
)
RARE_COLUMNS = {  # those that are shown where they count something
    "mixed_passages": "à cheval", "duplicate_words": "envoyés deux fois", "over_budget": "hors budget",
    "excluded_words": "exclus par un filtre", "foreign_words": "hors du corpus", "over_max": "trop longs",
}
NARROW, MOST_COLUMNS = 6, 20  # variants of the matrix: beyond, narrow columns; beyond, no matrix
DETAILED_QUESTIONS = 50  # beyond, the page is brief: only the questions that lost a proof are detailed
SHOWN_WORDS = 200        # of what the budget cut from a passage
AROUND_WORDS = 6         # on each side of a quote, on a brief page or in a passage that was not found
SHOWN_WINNERS = 10       # the first hits, by the terms that they were found by
SHOWN_STEPS = 3          # of a curve, told in words
DRAWN_QUOTES = 40        # one a line; beyond, all on one
TOLD_LIMITS = 20         # of the passages of a document


def escape(text: Any) -> str:
    """The one way from a value to the page."""
    from html import escape as escape_html
    return escape_html(str(text))


UNIT = re.compile(r"\b(\d{1,15}) (?=(?:mot|passage|question|fait|preuve|document|contexte|perte)s?\b)")


def fr(sentence: str, *names: Any) -> str:
    """Our own French, escaped, with its typography; each {} is a name of the case, which is left as it is."""
    text = UNIT.sub(lambda match: thousands(int(match.group(1))) + "\u00a0", sentence)
    text = escape(re.sub(r"(?<=\w)'(?=[\w{])", "’", text))
    text = re.sub(" ([;?!%])", "\u202f\\1", re.sub(" ([:»])|(?<=«) ", "\u00a0\\1", text))
    first, *rest = text.split("{}", len(names))
    return first + "".join(bdi(name) + part for name, part in zip(names, rest))


def thousands(number: int) -> str:
    """`12 345`, with narrow no-break spaces."""
    return f"{number:,}".replace(",", "\u202f")


def tag(opening: str, *inside: str) -> str:
    """An element, from what stands in its opening tag and the markup inside."""
    return f"<{opening}>{''.join(inside)}</{opening.split()[0]}>"


def bdi(text: Any) -> str:
    """A name of the case, which may be of a script that runs the other way."""
    return tag("bdi", escape(text))


def bullets(sentences: Iterable[str]) -> str:
    """A list of our own sentences; empty without any."""
    items = [tag("li", fr(sentence)) for sentence in sentences]
    return tag("ul", *items) if items else ""


def bar(part: float, whole: float) -> str:
    """A share of a whole, drawn."""
    return tag('span class="bar"', f'<i style="width:{(100 * part / whole if whole else 0):.1f}%"></i>')


def table(labels: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> Iterator[str]:
    """Rows are (name, *cells); kind is the attribute of the labels after the first."""
    head = [tag('th scope="col"' + kind * (number > 0), escape(label)) for number, label in enumerate(labels)]
    yield "<table>" + tag("thead", tag("tr", *head)) + "<tbody>"
    for name, *cells in rows:
        yield tag("tr", tag('th scope="row" class="id"', escape(name)), *cells)
    yield "</tbody></table>"


def scrolled(label: str) -> str:
    """The opening of what is wider than a narrow screen, which the keyboard must reach."""
    return f'section class="scroll" tabindex="0" aria-label="{label}"'


def draw_page(report: Tree) -> Iterator[str]:
    """The pieces of the page of a report, of a case or of citations."""
    of_case = "case" in report
    title = report["case"]["title"] or report["case"]["file"] if of_case else report["citations"]["file"]
    rules = filter_rules(report["variants"]) if of_case and is_long(report) else ""
    yield HEAD.format(escape("Atelier – " + title), STYLE + TRIP_STYLE + rules)
    yield from (draw_report if of_case else draw_citations)(report, title)
    yield "</main>" + draw_foot(report) + "</body>\n</html>\n"


def is_long(report: Tree) -> bool:
    """Whether only the questions that lost a proof are detailed, briefly, and may be filtered."""
    return len(report["variants"][0]["questions"]) > DETAILED_QUESTIONS


def draw_foot(report: Tree) -> str:
    """What the page was drawn from: files and their hashes, version, settings."""
    case, settings = report.get("case") or report["citations"], report.get("settings")
    files = [case, *report.get("contexts", ()), *filter(None, [report.get("baseline")])]
    pairs = [(file.get("file", "Référence"), file["sha256"]) for file in files]
    pairs.append(("Atelier", report["atelier"]))
    if settings:
        filters = [f"{key} = {plain(wanted)}" for key, wanted in settings["filters"].items()]
        budget = counted(settings["budget_words"], "mot")
        pairs += [("Filtres", ", ".join(filters) or "aucun"),
                  ("Réglages", f"top_k {settings['top_k']}, budget {budget}")]
    return tag("footer", tag("dl", *(tag("dt", bdi(name)) + tag("dd", bdi(value)) for name, value in pairs)))


def draw_report(report: Tree, title: str) -> Iterator[str]:
    """The page of a case, in order: the verdict, variants, matrix, strips with their words, documents."""
    settings, variants = report["settings"], report["variants"]
    case = {**report["case"], "questions": len(variants[0]["questions"])}  # what is given, whatever is said
    brief, losses = is_long(report), losses_of(variants)
    links = [tag("li", f'<a href="#{name.lower()}">{name}</a>')
             for name in ("Variantes", "Matrice", "Budget", "Trajets", "Documents")
             if name != "Budget" or case["answerable_questions"]]
    verdict = tell_verdict(losses, sum(variant["summary"]["facts_required"] for variant in variants))
    yield tag("header", tag('div class="soft"', bdi(title) + " – " + fr(describe_size(case))),
              tag("h1", fr(verdict)), tag("p", tell_intact(variants, losses), " ", tell_signs(report)),
              draw_warnings(report["warnings"]), tag('nav aria-label="Sommaire"', tag("ul", *links)))
    yield '<main id="contenu"' + f' class="{"long" if brief else "short"}">'
    listed = tag('ul class="losses"', *map(draw_loss, losses)) if 0 < len(losses) <= LISTED_LOSSES else ""
    yield tag('div class="beside"', listed, draw_baseline(report, losses))
    yield tag('section id="variantes"', "<h2>Étapes et variantes</h2>",
              draw_stages(variants, losses) if losses else "", draw_variants(variants, settings["top_k"]))
    detailed = [number for number in range(case["questions"]) if not brief or lost_in(number, variants)]
    yield from draw_filters(variants) if brief else ()
    yield tag('section id="matrice"', "<h2>La matrice</h2>", *draw_matrix(variants, set(detailed), brief))
    if case["answerable_questions"]:
        yield tag('section id="budget"', "<h2>Sous un autre budget</h2>",
                  draw_curves(variants, settings["budget_words"]))
    yield from draw_trips(detailed, variants, settings["budget_words"], brief)
    yield from draw_documents(case["documents"], variants)


def losses_of(variants: list) -> List[tuple]:
    """(anchor, variant id, question, fact) of each lost proof, variant by variant."""
    return [(f"q{number}v{column}f{rank}", variant["id"], question, fact)
            for column, variant in enumerate(variants) for number, question in enumerate(variant["questions"])
            for rank, fact in enumerate(question["facts"]) if fact["loss"]]


def lost_in(number: int, variants: list) -> List[Tuple[str, int]]:
    """(stage, column of the variant) of the proofs that a question lost."""
    return [(fact["loss"]["stage"], column) for column, variant in enumerate(variants)
            for fact in variant["questions"][number]["facts"] if fact["loss"]]


def tell_verdict(losses: list, required: int) -> str:
    """`3 preuves perdues sur 40 : 2 par le découpage, 1 par le budget.`"""
    if not losses:
        return f"Aucune preuve perdue sur {thousands(required)}." if required else "Aucune preuve exigée."
    stages = Counter(fact["loss"]["stage"] for *_, fact in losses).most_common()
    return "{} sur {} : {}.".format(
        counted(len(losses), "preuve perdue"), thousands(required),
        ", ".join(f"{thousands(times)} {SIGNS[stage][2]}" for stage, times in stages))


def tell_intact(variants: list, losses: list) -> str:
    """Which variants lost nothing, where some proof was lost."""
    losers = {name for _, name, *_ in losses}
    names = [clip(variant["id"], 40) for variant in variants if variant["id"] not in losers]
    told = some(["{}"] * len(names), LISTED_LOSSES) or "aucune variante"
    return fr(f"Sans perte : {told}.", *names[:LISTED_LOSSES]) if losses else ""


def tell_signs(report: Tree) -> str:
    """What the sign test says; below six questions it cannot tell two variants apart: 2 / 2^5 > 0.05."""
    questions, pairs = report["case"]["answerable_questions"], report["comparisons"]
    told = [sorted(zip((pair["wins"], pair["losses"]), pair["variants"]), reverse=True)
            for pair in pairs if pair["p"] <= SIGNIFICANT]
    if told:
        scores = [f"{{}} devant {{}} ({most} à {least})" for (most, _), (least, _) in told]
        return fr(f"Départagées par le test des signes : {some(scores, LISTED_LOSSES)}.",
                  *(name for pair in told[:LISTED_LOSSES] for _, name in pair))
    if not pairs or not questions:
        return ""
    return fr(f"Trop peu de questions ({questions}) pour départager les variantes : il en faut au moins 6."
              if questions < 6 else
              "Le test des signes ne départage aucune variante : ces écarts peuvent être dus au hasard.")


def draw_warnings(warnings: Sequence[str]) -> str:
    """What spoils the reading; the names that they quote are left as they are."""
    items = [tag("li", fr(re.sub("« .*? »", "« {} »", warning), *re.findall("« (.*?) »", warning)))
             for warning in warnings]
    told = tag("summary", tag("strong", fr(counted(len(items), "avertissement"))))
    return tag("details open" if len(items) < 4 else "details", told, tag("ul", *items)) if items else ""


def draw_baseline(report: Tree, losses: list) -> str:
    """What each variant gained and lost since an earlier report, beside the losses."""
    if "baseline" not in report:
        return ""
    anchors = {(name, question["id"], fact["id"]): anchor for anchor, name, question, fact in losses}
    told = [fr(difference) for difference in report["baseline"]["differences"][:LISTED_LOSSES]]
    for name, changes in report["baseline"]["variants"].items():
        counts = ", ".join(counted(len(changes[kind]), noun) for kind, _, noun in CHANGES)
        counts = counts if changes["compared"] else "rien n'est comparé"
        told.append(tag("b", bdi(name)) + fr(" : " + counts))
        for kind, sign, _ in CHANGES:
            for question, fact, *_ in changes[kind][:LISTED_LOSSES]:
                anchor, label = anchors.get((name, question, fact)), fr(sign + " {} · {}", question, fact)
                edited = " (document modifié)" * ((question, fact) in map(tuple, changes["edited"]))
                told.append((tag(f'a href="#{anchor}"', label) if anchor else label) + edited)
        told += [fr(f"? {counted(number, 'preuve')} hors comparaison : {NOT_COMPARED[reason]}")
                 for reason, number in changes["not_compared"].items()]
    return tag("aside", tag("strong", "Depuis la référence"), tag("ul", *(tag("li", line) for line in told)))


def draw_loss(loss: tuple) -> str:
    """A lost proof in a line or two: stage, question, variant, quote, what would be enough or what to try."""
    _, variant, question, fact = loss
    needed = question["needed"]
    can_do = needed["budget_words"] or needed.get("deeper")
    told = tell_needed(needed) + "." if can_do else advice_of(fact["loss"])
    return tag("li", draw_mark(loss), tag(
        "span", tag("strong", bdi(question["text"])), " ", bdi(variant), " <br>",
        fr("« {} » " + told[:1].upper() + told[1:], clip(fact["quote"], 90))))


def draw_mark(loss: tuple) -> str:
    """A lost proof, filled: shape, word, figure, and what it is for who does not see its place."""
    anchor, variant, question, fact = loss
    shape, word, _ = SIGNS[fact["loss"]["stage"]]
    name = fr(" : {} · {} · {}", question["id"], variant, fact["id"])
    return tag(f'a class="m" href="#{anchor}"', shape, tag('span class="w"', " ", word),
               figure_of(fact["loss"]), tag('span class="h"', name))


def figure_of(loss: Tree) -> str:
    """The figure of a stage, if it has one: words beyond the budget, rank, pieces."""
    if loss.get("words_over"):
        return f" −{thousands(loss['words_over'])}"
    if loss["stage"] == "ranked_too_low":
        return f" {thousands(loss['rank'])}"
    return f" en {len(loss['pieces'])}" if loss["stage"] == "split_at_boundary" and loss.get("pieces") else ""


def draw_stages(variants: list, losses: list) -> str:
    """Variants by stages of loss: each count leads to its losses."""
    places: Dict[tuple, list] = {}
    for loss in losses:
        places.setdefault((loss[1], loss[3]["loss"]["stage"]), []).append(loss)
    stages = [stage for stage in SIGNS if any(stage == other for _, other in places)]
    rows = [[variant["id"], *(draw_count(places.get((variant["id"], stage), ())) for stage in stages)]
            for variant in variants]
    labels = ["preuves perdues", *(" ".join(SIGNS[stage][:2]) for stage in stages)]
    return tag(scrolled("Étapes par variantes"), *table(labels, rows, ' class="n"'))


def draw_count(losses: Sequence[tuple]) -> str:
    """The cell of a count: a link, or a fold of links."""
    if not losses:
        return '<td class="n soft">–</td>'
    links = [(anchor, fr("{} · {}", question["id"], fact["id"])) for anchor, _, question, fact in losses]
    if len(links) == 1:
        anchor, name = links[0]
        return tag('td class="n"', tag(f'a href="#{anchor}"', "1", tag('span class="h"', fr(" : "), name)))
    return tag('td class="n"', tag("details", tag("summary", thousands(len(links))), *(
        tag(f'a href="#{anchor}"', name) for anchor, name in links)))


def draw_variants(variants: list, top_k: int) -> str:
    """A line for each variant, and under it for each set of questions: all that the table says."""
    rare = [name for name in RARE_COLUMNS if any(variant["summary"].get(name) for variant in variants)]
    columns = [*COLUMNS, *((RARE_COLUMNS[name], "{" + name + "}") for name in rare)]
    rows = []
    for variant in variants:
        for name, summary in [("", variant["summary"]), *variant.get("by_set", {}).items()]:
            values = figures_of(summary, top_k, rare)
            told = [re.sub("–/.*", "–", form.format(**values)) for _, form in columns]
            rows.append([f"lot {name}" if name else variant["id"], *(
                tag('td class="n"', escape(figure)) for figure in told)])
    labels = ["variante"] + [label.replace("'", "’") for label, _ in columns]
    return tag(scrolled("Tableau des variantes"), *table(labels, rows, ' class="n"'))


def figures_of(summary: Tree, top_k: int, rare: Iterable[str]) -> Dict[str, str]:
    """What the columns show of a summary: figures as they are read, a dash for what is not known."""
    recall = summary["recall_at"]
    budget, complete = (summary["budget_curve"] or [[None, 0]])[-1]
    values = {**dict.fromkeys(rare), **summary, "enough": budget, "possible": complete if recall else None}
    told = {name: "–" if value is None else thousands(value) if isinstance(value, int) else value
            for name, value in values.items()}
    ranks = sorted({k for k in (1, 2, 4, top_k) if k <= top_k}) if recall else ()
    shares = [f"{decimal(recall[min(k, len(recall)) - 1], 3)} à {k}" for k in ranks]
    return {**told, "recall": " · ".join(shares) or "–"}


def sign_of(fact: Tree) -> Tuple[str, str]:
    """The (shape, word) of its state."""
    return SIGNS[fact["loss"]["stage"]][:2] if fact["loss"] else COVERED


def draw_matrix(variants: list, linked: Set[int], brief: bool) -> Iterator[str]:
    """Questions by variants: a dot for a covered proof, a filled mark for a lost one."""
    if len(variants) > MOST_COLUMNS:
        yield tag("p", fr(f"Au-delà de {MOST_COLUMNS} variantes, le tableau des étapes en tient lieu."))
        return
    yield f"<{scrolled('Questions et variantes')}><table" + ' class="narrow"' * (len(variants) > NARROW) + ">"
    heads = [tag('th scope="col"', bdi(clip(variant["id"], 40))) for variant in variants]
    yield tag("thead", tag("tr", '<th scope="col">question</th>', *heads)) + "<tbody>"
    for number, question in enumerate(variants[0]["questions"]):
        name = bdi(question["text"])
        cells = [tag("td", *draw_cell(number, column, variant)) for column, variant in enumerate(variants)]
        yield tag(f'tr id="m{number}"' + lost_marks(number, variants) * brief, tag(
            'th scope="row"', tag(f'a href="#q{number}"', name) if number in linked else name), *cells)
    yield "</tbody></table></section>"


def draw_cell(number: int, column: int, variant: Tree) -> Iterator[str]:
    """The marks of a question's proofs for one variant."""
    question = variant["questions"][number]
    for rank, fact in enumerate(question["facts"]):
        yield (draw_mark((f"q{number}v{column}f{rank}", variant["id"], question, fact)) if fact["loss"] else
               tag('span class="ok"', bdi(fact["id"]), " couverte "))
    if not question["facts"]:
        yield '<span class="soft">sans preuve exigée</span>'


def lost_marks(number: int, variants: list) -> str:
    """The attribute by which filters know a question: l for any loss, s2 its stage, v1 its variant, s2v1."""
    marks, order = set(), list(SIGNS)
    for stage, column in lost_in(number, variants):
        stage = f"s{order.index(stage)}"
        marks.update(("l", stage, f"v{column}", f"{stage}v{column}"))
    return f' data-lost="{" ".join(sorted(marks))}"'


def filters_of(variants: list) -> Tuple[Dict[str, str], Dict[str, str]]:
    """{id of a choice: label}, of the stages that occur and of the variants."""
    stages = {f"s{number}": SIGNS[stage][1] for number, stage in enumerate(SIGNS)
              if any(stage in variant["summary"]["losses"] for variant in variants)}
    columns = {f"v{number}": variant["id"] for number, variant in enumerate(variants[:MOST_COLUMNS])}
    return {"l": "avec une perte", **stages}, columns


def filter_rules(variants: list) -> str:
    """What each choice hides; a browser without :has() drops the rule whole, and hides nothing.

    :has() is asked of the few labels beside the choices: of the body, turning the screen takes minutes.
    """
    stages, columns = filters_of(variants)
    choices = [(choice,) for choice in (*stages, *columns)]
    choices += [(stage, column) for stage in [*stages][1:] for column in columns]
    return ",".join("".join(f".filters:has(#{name}:checked)~" for name in choice) + "section [data-lost]:not("
                    f"[data-lost~={''.join(choice)}])" for choice in choices) + "{display:none}"


def draw_filters(variants: list) -> Iterator[str]:
    """The choices, as radio buttons that the rules read, beside the sections that they filter."""
    for legend, choices in zip(("Questions", "Pertes de"), filters_of(variants)):
        radios = [f'<label><input type="radio" name="{legend[0]}" id="{choice}"> {bdi(label)}</label>'
                  for choice, label in choices.items()]
        yield tag('fieldset class="filters"', tag("legend", legend),
                  f'<label><input type="radio" name="{legend[0]}" checked> toutes</label>', *radios)


def draw_trips(detailed: List[int], variants: list, budget: int, brief: bool) -> Iterator[str]:
    """The questions that are detailed, by their numbers; brief: advice is given once."""
    yield '<section id="trajets"><h2>Le trajet de chaque preuve</h2>' + tag("p", fr(
        "Les passages trouvés, par rang, à l'échelle de leurs mots. Plein : envoyé ; pointillé : envoyé une "
        "fois de plus ; hachuré : coupé ; vide : resté hors des passages trouvés. Un cadre lettré est une "
        "preuve exigée ; tireté, elle est perdue ; ouvert ([B…, …B]), elle continue ailleurs. Les mots d'un "
        "document se comptent à partir de 0."))
    left = len(variants[0]["questions"]) - len(detailed)
    if left:
        yield tag("p", fr(f"{counted(left, 'question')} sans preuve perdue : dans la matrice seulement."))
    if brief:
        lost = {name for variant in variants for name in variant["summary"]["losses"]}
        yield bullets(f"Une preuve {stage.label} : {stage.advice}"
                      for stage in STAGE.values() if stage.id in lost)
    for number in detailed:
        yield draw_question(number, variants, budget, brief)
    yield "</section>"


def draw_question(number: int, variants: list, budget: int, brief: bool) -> str:
    """A question, and the trip of each variant, all on one scale."""
    asked = variants[0]["questions"][number]
    trips = [make_trip(variant, variant["questions"][number]) for variant in variants]
    ends = [sum(hit["words"] for hit in trip.hits) for trip in trips]
    ends += [budget + place["words"] for trip in trips for place in trip.away]
    folds = [draw_trip(f"q{number}v{column}", variant["id"], trip, (budget, max(1.2 * budget, *ends)), brief)
             for column, (variant, trip) in enumerate(zip(variants, trips))]
    back = f"m{number}" if len(variants) <= MOST_COLUMNS else "matrice"
    return tag(f'article aria-labelledby="q{number}"' + lost_marks(number, variants) * brief,
               tag(f'h3 id="q{number}"', bdi(asked["text"])), tag(
                   'p class="soft"', bdi(asked["id"]), f' · <a href="#{back}">matrice</a>'), *folds)


Trip = record("Trip", "question hits facts away", """
    What the page draws of a question for one variant: the hits, the facts with their letters, and the
    passages, not among the hits, where a lost proof stands.""")
Part = record("Part", "fact label first last start end", """
    What a passage holds of a fact's quote: words first to last - 1 of the document, start to end - 1 of the
    passage, those put before it counted; the label says on which side the quote goes on elsewhere.""")


def make_trip(variant: Tree, question: Tree) -> Trip:
    """What there is to draw of a question; the passages away hold what its lost proofs lack."""
    hits = shown_hits(variant, question)
    facts = [{**fact, "letter": chr(ord("A") + number) if number < 26 else str(number + 1)}
             for number, fact in enumerate(question["facts"])]  # A, B, C…, then 27, 28…
    found = {hit["passage"] for hit in hits}
    away = {place["passage"]: {"lead_words": 0, **place, "kept_words": 0}
            for fact in facts if fact["loss"] for place in fact["loss"].get("places", ())
            if place["passage"] not in found}
    return Trip(question, hits, facts, list(away.values()))


def shown_hits(variant: Tree, question: Tree) -> list:
    """The hits; of another engine, what it sent, then what it found and left."""
    hits = question["hits_before_budget"] or []
    if variant["chunking"] is not None:
        return hits
    found = {hit["passage"] or hit["text"]: hit for hit in hits}
    sent = [{**found.pop(part["passage"] or part["text"], part), "rank": part["rank"],
             "kept_words": part["words"]} for part in question["context"]]
    return sent + [{**hit, "kept_words": 0} for hit in found.values()]


def places_in(hit: Tree, facts: list) -> List[Part]:
    """What a passage holds of each fact; nothing when its text is foreign to the corpus."""
    parts = []
    for fact in facts:
        if fact["document"] == hit["document"]:
            first, last = max(fact["start"], hit["start"]), min(fact["end"], hit["end"])
            lead, label = hit["lead_words"] - hit["start"], fact["letter"]
            if last - first < fact["end"] - fact["start"]:
                label = ("[" if first == fact["start"] else "…") + label
                label += "]" if last == fact["end"] else "…"
            if first < last:
                parts.append(Part(fact, label, first, last, lead + first, lead + last))
    return parts


def draw_trip(place: str, name: str, trip: Trip, scale: Tuple[int, float], brief: bool) -> str:
    """The trip of a variant, open when it lost a proof; brief: a line alone when it lost none.

    place is its anchor, scale the budget and how many words wide a strip is.
    """
    lost = [(f"{place}f{number}", fact) for number, fact in enumerate(trip.facts) if fact["loss"]]
    state = ", ".join(fr("{} : " + STAGE[fact["loss"]["stage"]].label, fact["id"]) for _, fact in lost)
    state = state or fr("preuves couvertes" if trip.facts else "sans réponse attendue")
    if brief and not lost:
        return tag(f'p id="{place}"', bdi(name), " – ", state)
    told = [*(tell_lost(anchor, fact, brief) for anchor, fact in lost),
            draw_strip(trip, *scale, brief) or tag("p", fr(NOTHING_FOUND[trip.question["no_hits"]])),
            *draw_words(trip, scale[0], brief)]
    if lost:
        told.append(draw_terms(trip, brief))
        if trip.question["needed"]:
            told.append(tag("p", fr(tell_needed(trip.question["needed"]).capitalize() + ".")))
    return tag("details open" if lost and not brief else "details", tag("summary", bdi(name), " – ", tag(
        'span class="lost"' if lost else "span", state)), tag(f'div id="{place}"', *told))


def box(kind: str, start: float, end: float, scale: float, inside: str = "") -> str:
    """A box from word start to word end of a track that is scale words long."""
    return (f'<i class="{kind}" style="left:{round(100 * start / scale, 1):g}%;'
            f'width:{round(100 * (end - start) / scale, 1):g}%">{inside}</i>')


def boxes(kind: str, quotes: list, total: float) -> str:
    """The boxes of (start, end, …) places, in words of a track of total words."""
    return "".join(box(kind, start, end, total) for start, end, *_ in quotes)


def track(label: str, drawn: str, told: str) -> str:
    """A label of markup, and boxes on a line with the words that say the same."""
    return tag('div class="row"', tag("span", label), tag(f'span role="img" aria-label="{fr(told)}"', drawn))


def label_of(hit: Tree, rank: Any) -> str:
    """`2 · regles#0002`."""
    return f"{rank} · " + (bdi(hit["passage"]) if hit["passage"] else "texte étranger au corpus")


def draw_strip(trip: Trip, budget: int, scale: float, brief: bool) -> str:
    """The hits to scale on both sides of the budget, then the passages away where a lost proof stands.

    Empty when there are none; brief: hits without a lost proof share a line.
    """
    tracks, before, group, sent, lost = [], 0, [], {}, [fact for fact in trip.facts if fact["loss"]]
    for hit, after in zip(trip.hits, [*trip.hits[1:], None]):
        group.append(hit)
        if not brief or after is None or places_in(hit, lost) or places_in(after, lost):
            name = f"{group[0]['rank']} à {hit['rank']}" if group[1:] else label_of(hit, hit["rank"])
            tracks.append(draw_passages(group, name, before, scale, trip.facts, sent))
            before, group = before + sum(hit["words"] for hit in group), []
    tracks += [draw_passages([place], label_of(place, rank_in_words(place["rank"])), budget, scale,
                             trip.facts, None) for place in trip.away]
    over = sum(hit["kept_words"] for hit in trip.hits) - budget
    told = [fr(f"envoyé au-delà du budget : {counted(over, 'mot')}")] if over > 0 else []
    told += [fr(fact["letter"] + " : {}, " + sign_of(fact)[1], fact["id"]) for fact in trip.facts
             if not (brief and fact["loss"])]
    zones = tag('p class="zones"', tag("b", fr(counted(budget, "mot"))))
    return tag(f'figure class="strip" style="--budget:{round(100 * budget / scale, 1):g}%"', zones, *tracks,
               tag("figcaption", " · ".join(told))) if tracks else ""


def draw_passages(group: list, name: str, before: int, scale: float, facts: list,
                  sent: Optional[dict]) -> str:
    """A line of the strip, after some words: one passage, or several without a lost proof.

    sent is what was sent before, for sent_again; None for a passage that was not found.
    """
    words, kept = (sum(hit[name] for hit in group) for name in ("words", "kept_words"))
    drawn, left = box("kept", before, before + kept, scale) if kept else "", "away" if sent is None else "cut"
    drawn += box(left, before + kept, before + words, scale) if kept < words else ""
    told, quotes, repeated = counted(kept, "mot envoyé"), "", 0
    for hit in group:
        again, lead = sent_again(hit, sent) if hit["kept_words"] else [], before + hit["lead_words"]
        drawn += boxes("again", [(lead + part.start - hit["start"], lead + part.end - hit["start"])
                                 for part in again], scale)
        repeated += size(again)
        for part in places_in(hit, facts):
            kind = " from" * part.label.startswith("…") + " on" * part.label.endswith("…")
            kind += " lost" if part.fact["loss"] else " twice" * (
                not missing_spans(Span(hit["document"], part.first, part.last), again))
            drawn += box("q" + kind, before + part.start, before + part.end, scale, tag("b", part.label))
            quotes += f" ; {part.label}, mots {part.first} à {part.last - 1}"
        before += hit["words"]
    told += (f", dont {counted(repeated, 'répété')}" if repeated else "") + quotes
    return track(f"{name} · {fr(counted(words, 'mot'))}", drawn, told)


def sent_again(hit: Tree, sent: dict) -> List[Span]:
    """What was sent of a passage and already had been; sent: {document: (starts, ends) of disjoint spans}."""
    kept = hit["kept_words"] - hit["lead_words"]
    if hit["document"] is None or kept <= 0:
        return []
    start, end = hit["start"], min(hit["end"], hit["start"] + kept)
    starts, ends = sent.setdefault(hit["document"], ([], []))
    first, last = bisect_right(ends, start), bisect_left(starts, end)
    spans = list(zip(starts[first:last], ends[first:last]))
    starts[first:last] = [min([start, *starts[first:last]])]
    ends[first:last] = [max([end, *ends[first:last]])]
    return [Span(hit["document"], max(start, other), min(end, last)) for other, last in spans]


def draw_words(trip: Trip, budget: int, brief: bool) -> Iterator[str]:
    """What was sent and what was cut (brief: around lost quotes), with the word where the budget ends."""
    room, before = SHOWN_WORDS, 0
    for number, hit in enumerate([*trip.hits, *trip.away]):
        parts, kept, is_away = places_in(hit, trip.facts), hit["kept_words"], number >= len(trip.hits)
        shown_words = min(hit["words"], kept + room)
        room -= shown_words - kept
        around = [(0, shown_words)]
        if brief or is_away:
            around = [(max(0, part.start - AROUND_WORDS), part.end + AROUND_WORDS) for part in parts
                      if part.fact["loss"]]
        around += [(part.start, part.end) for part in parts if part.end > shown_words]  # however far
        end = budget - before if before < budget <= before + kept else None
        before += kept
        if around:
            state = f"{counted(kept, 'mot envoyé')} sur {hit['words']}" if kept else "non envoyé"
            label = label_of(hit, rank_in_words(hit["rank"]) if is_away else hit["rank"]) + fr(" · " + state)
            yield tag('p class="words" dir="auto"', tag("small", label), "\n",
                      mark_words(hit, parts, around, end, budget))


def mark_words(hit: Tree, parts: List[Part], around: list, end: Optional[int], budget: int) -> str:
    """The words around some places, quotes marked, what was not sent greyed; others are counted.

    end: how many of its words come before the budget's end, if it ends there.
    """
    words, sent = list(WORD.finditer(hit["text"])), hit["kept_words"]
    edges = {limit for pair in around for limit in pair
             if not any(part.start < limit < part.end for part in parts)}  # a quote is not broken there
    edges |= {0, sent, end or 0, len(words)}.union(*((part.start, part.end) for part in parts))
    limits, text, left = sorted({min(limit, len(words)) for limit in edges}), "", 0
    for start, last in zip(limits, limits[1:]):
        if any(first < last and start < final for first, final in around):
            if start:
                text += left_out(left) if left else hit["text"][words[start - 1].end():words[start].start()]
            part = mark_part(hit["text"][words[start].start():words[last - 1].end()], start, parts)
            text, left = text + (tag("i", part) if start >= sent else part), 0
        else:
            left += last - start
        if last == end:
            rank = "1er" if budget == 1 else f"{budget}e"
            text += tag('b class="end"', fr(f"✂ {rank} mot : fin du budget"))
    return text + (left_out(left) if left else "")


def mark_part(text: str, start: int, parts: List[Part]) -> str:
    """The words of a passage from start on, marked and lettered where quotes hold them."""
    held = [part for part in parts if part.start <= start < part.end]
    letters = [tag("b", part.label) + " " for part in held if part.start == start]
    lost = ' class="lost"' if all(part.fact["loss"] for part in held) else ""
    return tag("mark" + lost, *letters, escape(text)) if held else escape(text)


def left_out(words: int) -> str:
    """`… 191 mots …`, in the place of words that are not shown."""
    return " " + tag("i", fr(f"… {counted(words, 'mot')} …")) + " "


def tell_lost(anchor: str, fact: Tree, brief: bool) -> str:
    """A lost proof: at which stage, its quote and, unless brief, what to try."""
    loss, told = fact["loss"], detail_of(fact["loss"])
    names = [place["passage"] for place in loss.get("places", ())]
    for name in names:
        told = told.replace(name, "{}", 1)
    label = "" if brief else " : " + STAGE[loss["stage"]].label
    quote = "" if brief and names else fr(" « {} »", fact["quote"])
    return tag(f'p class="loss" id="{anchor}"', tag(
        'b class="lost"', fr(fact["letter"] + " · {}" + label, fact["id"])), fr(f" ({told}).", *names),
        quote, "" if brief else "<br>" + fr(advice_of(loss)))


def draw_terms(trip: Trip, brief: bool) -> str:
    """The terms that won the first hits their ranks; those that the passages of lost proofs have and lack."""
    rows = [hit for hit in trip.hits[:SHOWN_WINNERS] if hit.get("terms") and not brief]
    rows += [place for fact in trip.facts if fact["loss"] for place in fact["loss"].get("places", ())
             if place["terms"] is not None]
    rows, lines = list({place["passage"]: place for place in rows}.values()), []
    largest = max((term["part"] for place in rows for term in place["terms"]), default=0) or 1
    for place in rows:
        chips = [tag("i" if brief else f'i style="--part:{100 * term["part"] / largest:.0f}%"', escape(
            f"{ended(term['term'])} {decimal(term['part'], 3)}")) for term in place["terms"]]
        near = dict(place.get("near", ()))
        lacking = [f"{term} (proche : {near[term]})" if term in near else term
                   for term in place.get("lacking", ()) if term in near or not brief]
        chips.append(fr("n'a pas : ") + escape(", ".join(lacking)) if lacking else "")
        label = tag("small", label_of(place, rank_in_words(place["rank"])))
        lines.append(tag("li", label, " ", " ".join(chips)))
    title = "" if brief else tag("p", "Ce que chaque terme de la question a compté")
    return title + tag('ul class="terms"', *lines) if lines else ""


def ended(term: str) -> str:
    """A term, and U+200E where it may be of a script that runs the other way: what follows stays after it."""
    return term if term.isascii() else term + "\u200e"


def draw_curves(variants: list, budget: int) -> str:
    """Complete contexts as the budget grows up to four times the case's, which is marked: a step curve a
    variant; and as the depth grows, where a proof ranked too low.
    """
    title = tag("p", fr(f"Les contextes complets selon le budget, de 0 à {counted(4 * budget, 'mot')} ; le "
                        "tireté est celui du cas."))
    return title + tag('div class="curves"', *[draw_curve(variant, budget) for variant in variants])


def draw_curve(variant: Tree, budget: int) -> str:
    """The curves of a variant, and the sentences that say the same."""
    summary, steps = variant["summary"], variant["summary"]["budget_curve"] or []
    asked = summary["answerable_questions"]
    reached = max((complete for words, complete in steps if words <= budget), default=0)
    told = f"{reached} sur {asked} à {counted(budget, 'mot')}"
    beyond = [f"{complete} dès {thousands(words)}" for words, complete in steps if words > budget]
    told += "".join(" ; " + step for step in beyond[:SHOWN_STEPS] + beyond[SHOWN_STEPS:][-1:])
    drawn = draw_steps(steps, asked, 4 * budget, told, stroke(f"M{budget} 0V{asked}", ' class="limit"'))
    depths = summary["depth_curve"] if "ranked_too_low" in summary["losses"] else None
    if depths:
        deeper = [f"{complete} à top_k {depth}" for depth, complete in depths]
        deeper = "Sans limite de budget : " + ", ".join(deeper[:SHOWN_STEPS] + deeper[SHOWN_STEPS:][-1:])
        drawn += draw_steps(depths, asked, depths[-1][0], deeper)
    return tag("div", tag("b", bdi(variant["id"])), drawn)


def draw_steps(steps: list, height: int, last: int, told: str, mark: str = "") -> str:
    """A step curve of [value, count], whose coordinates are values and counts, and its caption."""
    path = "".join(f"H{value}V{height - count}" for value, count in steps if value <= last)
    return tag(f'svg aria-hidden="true" viewBox="0 0 {last} {height or 1}" preserveAspectRatio="none"',
               stroke(f"M0 {height}{path}H{last}"), mark) + tag("p", fr(told))


def stroke(path: str, kind: str = "") -> str:
    """A line of one width, however its drawing is stretched."""
    return f'<path{kind} d="{path}" vector-effect="non-scaling-stroke"/>'


def draw_documents(documents: list, variants: list) -> Iterator[str]:
    """Each document as a line of its words: the limits of each variant above, quotes below."""
    yield '<section id="documents"><h2>Les documents</h2>' + tag("p", fr(
        "Chaque ligne est le document entier, à l'échelle de ses mots. Les traits sont les limites des "
        "passages, les cadres les preuves ; celles qu'une limite coupe sont soulignées sur la ligne de la "
        "variante."))
    quotes = {document["id"]: set() for document in documents}
    for question in variants[0]["questions"]:
        for fact in question["facts"]:
            for quote in fact.get("alternatives", [fact]):
                quotes[quote["document"]].add((quote["start"], quote["end"], fact["id"]))
    for document in documents:
        yield draw_document(document, sorted(quotes[document["id"]]), variants)
    yield "</section>"


def draw_document(document: Tree, quotes: List[tuple], variants: list) -> str:
    """One document: quotes are (start, end, fact id)."""
    name, total, proofs = document["id"], document["words"], counted(len(quotes), "preuve")
    tracks, broken = [], {}
    for variant in variants:
        if variant["passages"] is not None:
            limits, split = cut_quotes(variant["passages"][name], quotes)
            for _, _, fact, where in split:
                broken.setdefault((fact, where), []).append(variant["id"])
            places = some(map(str, limits), TOLD_LIMITS)
            tracks.append(track(bdi(variant["id"]), draw_limits(limits, total) + boxes("p", split, total),
                                f"{counted(len(limits) - 1, 'passage')}, limites aux mots {places}"))
    if len(quotes) > DRAWN_QUOTES:
        tracks.append(track("les preuves", boxes("o", quotes, total), proofs))
    else:
        tracks += [track(f"{bdi(fact)} · {start}–{end - 1}", box("q", start, end, total),
                         f"mots {start} à {end - 1}") for start, end, fact in quotes]
    sentences = [f"{fact} : {where} par {', '.join(names)}." for (fact, where), names in broken.items()]
    if len(sentences) > DRAWN_QUOTES:
        sentences[DRAWN_QUOTES:] = [f"et {counted(len(sentences) - DRAWN_QUOTES, 'autre')}."]
    return "".join([tag("h3", bdi(name)), tag('p class="soft"', fr(f"{counted(total, 'mot')}, {proofs}")),
                    tag("figure", *tracks), bullets(sentences)])


def cut_quotes(passages: list, quotes: List[tuple]) -> Tuple[List[int], List[tuple]]:
    """The limits of the passages, and the quotes that none holds whole: (start, end, fact id, where cut)."""
    limits = sorted({limit for pair in passages for limit in pair})
    starts, split = [start for start, _ in passages], []
    for start, end, name in quotes:
        before = bisect_right(starts, start)  # of those that start in time, the last one goes furthest
        if not before or passages[before - 1][1] < end:
            inside = limits[bisect_right(limits, start):bisect_left(limits, end)]
            split.append((start, end, name, f"coupée au mot {inside[0]}" if inside else
                          "laissée de côté, ou coupée dans un mot,"))
    return limits, split


def draw_limits(limits: Iterable[int], total: int) -> str:
    """One stroke at each limit of a document."""
    strokes = "".join(f"M{round(1000 * limit / total, 1)} 6v20" for limit in limits)
    return tag('svg viewBox="0 0 1000 32" preserveAspectRatio="none" aria-hidden="true"',
               stroke(strokes))


def draw_citations(report: Tree, title: str) -> Iterator[str]:
    """Three fractions as bars, then the claims by verdict, claim and cited texts beside each other."""
    citations = report["citations"]
    yield tag("header", tag("h1", fr("Citations de {}", title)))
    rows = []
    for name, label in FRACTIONS:
        bars = bar(citations[name]["numerator"], citations[name]["denominator"])
        rows.append([label, tag('td class="n"', escape(citations[name]["fraction"]), bars)])
    yield '<main id="contenu">'
    yield tag("section", "<h2>Trois fractions</h2>", *table(("part", "compte"), rows, ' class="n"'))
    for verdict, label in CLAIMS.items():
        claims = [claim for claim in citations["claims"] if claim["verdict"] == verdict]
        yield tag("section", tag("h2", fr(f"{label} : {len(claims)}")), *map(draw_claim, claims))


def draw_claim(claim: Tree) -> str:
    """A claim beside what it cites; the words that one side alone has are marked, grammar apart."""
    cited, text = claim["citations"], claim.get("text", "")
    others = " ".join(citation.get("text", "") for citation in cited)
    shape = {"supported": "●", "review": "◐", "unsupported": "✕"}[claim["verdict"]]
    name = tag("h3", shape, fr(" {} : " + VERDICTS[claim["verdict"]], claim["id"]))
    quotes = [tag("blockquote", tag("small", tell_citation(citation)), tag(
        'p dir="auto"', mark_new(citation.get("text", ""), text))) for citation in cited]
    return tag(f'article class="claim {claim["verdict"]}"', tag("div", name, tag(
        'p dir="auto"', mark_new(text, others or text))), tag("div", *quotes or ["sans citation"]))


def tell_citation(citation: Tree) -> str:
    """`S1 : valide, soutient`, and what else is known of it."""
    told = [STATUSES[citation["status"]], RELATIONS[citation["relation"]]]
    told += [words for key, words in (
        ("duplicate", "répétée"), ("excerpt", "extrait exact"), ("same_content", "même texte"),
        ("typography", "seule la typographie diffère")) if citation.get(key)]
    return fr("{} : " + ", ".join(told), citation["passage"])


def mark_new(text: str, other: str) -> str:
    """A text, its words that another has not marked, whatever their case and accents; grammar is left."""
    known = {fold_case(word) for word in [*LETTER_RUN.findall(other), *STOP_WORDS]}
    return "".join(tag("mark", escape(part)) if number % 2 and fold_case(part) not in known else escape(part)
                   for number, part in enumerate(re.split(f"({LETTER_RUN.pattern})", text)))


# --- 22. Guards: the thirteen of --self-test ------------------------------------------------------

GUARD_CASE = {
    "documents": [
        {"id": "a", "text": "Le plafond est de 140 euros. Il monte à 190 euros après accord écrit."},
        {"id": "b", "text": "Le plafond est de 140 euros."}],
    "facts": [{"id": "regle", "document": "a", "quote": "plafond est de 140 euros"},
              {"id": "exception", "document": "a", "quote": "190 euros après accord écrit"}],
    "questions": [{"id": "q", "text": "Quel plafond ?", "required_facts": ["regle", "exception"]}],
}


def read_guard_case(added: Tree = {}) -> Case:
    """The case of the guards, with more documents, facts or questions."""
    case = {name: members + added.get(name, []) for name, members in GUARD_CASE.items()}
    return read_case(json.dumps(case).encode("utf-8"), "", lambda path: b"")


def verdicts(document: str, *sent: Tuple[int, int]) -> list:
    """[rule covered, exception covered, complete] when these words of a document are sent."""
    case, spans = read_guard_case(), [Span(document, *words) for words in sent]
    covered = [not missing_spans(fact.quotes[0].span, spans) for fact in case.facts.values()]
    return covered + [is_complete(case.questions[0], covered)]


def outcome_of(attempt: Callable, *given: Any) -> Any:
    """What an attempt gives, or the sentences with which it is refused."""
    try:
        return attempt(*given)
    except AtelierError as error:
        return error.sentences


TAKEN = "{0} ({1}).id : identifiant « {1} » déjà pris par {2} ({1}).id ; donnez-en un autre."

GUARDS = (  # the sentence to defend, what is tried (or added to the case), what must come, worked by hand
    ("deux documents de même identifiant sont refusés", {"documents": [{"id": "b", "text": "Autre."}]},
     [TAKEN.format("documents[2]", "b", "documents[1]")]),
    ("deux faits de même identifiant sont refusés",
     {"facts": [{"id": "regle", "document": "b", "quote": "140 euros"}]},
     [TAKEN.format("facts[2]", "regle", "facts[0]")]),
    ("deux questions de même identifiant sont refusées",
     {"questions": [{"id": "q", "text": "Combien ?", "required_facts": ["regle"]}]},
     [TAKEN.format("questions[1]", "q", "questions[0]")]),
    ("un fait sur un document inconnu est refusé",
     {"facts": [{"id": "c", "document": "z", "quote": "140 euros"}]},
     ["facts[2] (c).document : document « z » inconnu. Possibles : a, b."]),
    ("une question sur un fait inconnu est refusée",
     {"questions": [{"id": "r", "text": "Combien ?", "required_facts": ["regles"]}]},
     ["questions[1] (r).required_facts[0] : fait « regles » inconnu. Vouliez-vous dire « regle » ?"]),
    ("une citation absente de son document est refusée",
     {"facts": [{"id": "c", "document": "b", "quote": "plafond est de 150 euros"}]},
     ["facts[2] (c).quote : « plafond est de 150 euros » n'est pas dans « b ». Texte le plus proche "
      "(mot 1) : « plafond est de 140 euros. » ; ce qui diffère : « 150 » y est écrit « 140 ». "
      "Recopiez le texte."]),
    ("une question incohérente avec ses faits est refusée", {"questions": [
         {"id": "r", "text": "Combien ?", "required_facts": []},
         {"id": "s", "text": "Où ?", "answerable": False, "required_facts": ["regle"]}]},
     ["questions[1] (r) : question sans fait exigé ; listez-les dans « required_facts », "
      'ou écrivez "answerable": false.',
      "questions[2] (s) : question déclarée sans réponse, mais qui exige des faits ; "
      "ôtez les faits ou « answerable »."]),
    ("un document vide est refusé", {"documents": [{"id": "c", "text": " \n"}]},
     ["documents[2] (c).text : attendu : un texte non vide, entre guillemets ; trouvé : un texte vide."]),
    ("la règle sans son exception ne suffit pas", lambda: verdicts("a", (0, 6)), [True, False, False]),
    ("une citation à laquelle il manque un mot n'est pas couverte",
     lambda: verdicts("a", (0, 5))[:2] + verdicts("a", (1, 6), (10, 14))[:2], [False, False, True, False]),
    ("les mêmes mots dans un autre document ne prouvent rien",
     lambda: verdicts("b", (0, 6))[:2], [False, False]),
    ("un passage inconnu dans un contexte est une erreur",
     lambda: kept_spans({"a#0001": make_passage(make_document("a", "", "mot", {}), "a#0001", 0, 3, "")},
                        [("a#0001", 1), ("a#0002", 1)]),
     ["passage « a#0002 » inconnu de cette variante. Vouliez-vous dire « a#0001 » ?"]),
    ("un recouvrement impossible est refusé",
     lambda: [outcome_of(windows, 5, 4, overlap) for overlap in (-1, 4, 3)],
     [["recouvrement -1 refusé ; il faut un entier de 0 à 3 (taille 4)."],
      ["recouvrement 4 refusé ; il faut un entier de 0 à 3 (taille 4)."],
      [(0, 4), (1, 5)]]),
)


def run_guards() -> tuple:
    """The lines to print and the number of failures; a crash is one, and so is having no guard."""
    lines, failures = [], 0
    for number, (sentence, attempt, expected) in enumerate(GUARDS, 1):
        try:
            obtained = outcome_of(attempt) if callable(attempt) else outcome_of(read_guard_case, attempt)
        except Exception as error:  # a guard must be able to say that the code it watches is broken
            obtained = repr(error)
        lines.append(f"{'ok   ' if obtained == expected else 'échec'} {number:>2} {sentence}")
        if obtained != expected:
            failures += 1
            lines += [f"         obtenu  : {obtained}", f"         attendu : {expected}"]
    lines.append(f"{counted(len(GUARDS), 'contrôle')}, {counted(len(GUARDS) - failures, 'réussi')}, "
                 f"{counted(failures, 'échoué')}")
    return lines, failures + (not GUARDS)


# --- 23. Command: the only file access, the only printing, the only exit codes --------------------

OPTIONS = {  # what each takes (None: nothing), help
    "--case": ("FICHIER", "le cas à diagnostiquer (par défaut cas_fr.json, à côté du script)"),
    "--output": ("FICHIER", "écrit aussi le rapport JSON ; « - » : sur la sortie standard"),
    "--html": ("FICHIER", "dessine aussi la page"),
    "--from": ("RAPPORT", "avec --html : dessine un rapport déjà écrit"),
    "--export": ("FICHIER", "écrit les passages de chaque variante, en JSON par ligne"),
    "--question": ("ID", "montre tout le trajet de cette question, au lieu de la liste des pertes "
                         "(répétable)"),
    "--contexts": ("FICHIER", "juge aussi ce qu'un autre moteur a envoyé (répétable)"),
    "--require": ("ID", "code 3 si un contexte de cette variante, ou de ce moteur, est incomplet, dépasse "
                        "le budget ou passe outre les filtres (répétable)"),
    "--baseline": ("RAPPORT", "compare à un rapport antérieur"),
    "--no-regression": (None, "avec --baseline : code 3 si une preuve qui était couverte est perdue"),
    "--citations": ("FICHIER", "juge les citations d'un registre ; sans cas"),
    "--self-test": (None, "exécute les treize contrôles de l'évaluateur"),
    "--version": (None, "affiche la version"),
    "--help": (None, "affiche cette aide"),
}
REPEATABLE = ("--question", "--contexts", "--require")


class FrenchFormatter(argparse.HelpFormatter):
    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=20, width=79)  # a width given spares a costly import

    def add_usage(self, usage, actions, groups, prefix=None):
        super().add_usage(usage, actions, groups, "usage : ")


class FrenchParser(argparse.ArgumentParser):
    def error(self, message: str):
        """argparse knows two faults of these options; unknown ones are told by parse_arguments."""
        option = re.search("--[a-z-]+", message)
        problem = "n'attend pas de valeur." if "explicit argument" in message else "attend une valeur."
        raise AtelierError(f"L'option {option.group() if option else ''} {problem} Voyez --help.")


def make_parser() -> FrenchParser:
    """The options, in French; abbreviations are refused."""
    parser = FrenchParser(
        prog="atelier.py", add_help=False, allow_abbrev=False, formatter_class=FrenchFormatter,
        description="Dit si chaque mot des preuves exigées a survécu au découpage, à la recherche et au "
                    "budget de mots et, sinon, à quelle étape il s'est perdu.",
        epilog="Codes de sortie : 0 terminé ; 1 un contrôle a échoué ; 2 mauvais usage, mauvais cas, "
               "FTS5 absent ou sortie impossible à écrire ; 3 exigence non tenue (--require, "
               "--no-regression) ; 130 interrompu.")
    group = parser.add_argument_group("options ")
    for name, (taken, told) in OPTIONS.items():
        kind = {"action": "append", "metavar": taken} if taken else {"action": "store_true"}
        group.add_argument(*(["-h"] if name == "--help" else []), name, help=told, **kind)
    return parser


def parse_arguments(argv: Sequence[str]) -> dict:
    """{option: value} of those given: a text, a list when it may be repeated, or True."""
    parsed, unknown = make_parser().parse_known_args(argv)
    options = {"--" + name.replace("_", "-"): value for name, value in vars(parsed).items() if value}
    for argument in unknown:
        if "--case" not in options and not argument.startswith("-"):
            name = f'"{argument}"' if " " in argument else argument
            raise AtelierError(f"{shown(argument)} : l'option manque ; "
                               f"pour diagnostiquer ce cas, écrivez --case {name}.")
        raise AtelierError(f"L'option {shown(argument)} est inconnue. {suggestion(argument, OPTIONS)}")
    for name, values in options.items():
        if "" in (values if isinstance(values, list) else ()) and OPTIONS[name][0] != "ID":
            raise AtelierError(f"{name} : chemin vide ; donnez un nom de fichier.")
        if isinstance(values, list) and name not in REPEATABLE:
            if len(values) > 1:
                raise AtelierError(f"L'option {name} est donnée deux fois ; gardez-en une.")
            options[name] = values[0]
    used = options.keys()
    if "--self-test" in used and len(used) > 1:
        raise AtelierError("--self-test s'emploie seul : il ne lit ni n'écrit aucun fichier.")
    if "--citations" in used and not used <= {"--citations", "--output", "--html"}:
        raise AtelierError(
            "--citations ne s'emploie qu'avec --output et --html : un registre se juge sans cas.")
    if "--no-regression" in used and "--baseline" not in used:
        raise AtelierError(
            "--no-regression ne s'emploie qu'avec --baseline, qui donne le rapport de référence.")
    if "--from" in used and used != {"--from", "--html"}:
        raise AtelierError("--from s'emploie avec --html, et lui seul : le rapport contient déjà tout.")
    return options


def read_file(path: str) -> bytes:
    """The bytes of a file; AtelierError as read_lines."""
    return b"".join(read_lines(path))


def read_lines(path: str, place: str = "{} : ") -> Iterator[bytes]:
    """The lines of a file, one at a time; an AtelierError begins with its place (of the path)."""
    try:
        with open(path, "rb") as file:
            yield from file
    except OSError as error:
        raise AtelierError(f"{place.format(path)}{os_problem(error)} ; vérifiez le chemin.") from None
    except ValueError:
        raise AtelierError(f"{shown(path)} : chemin invalide.") from None


class Folder:
    """Reads what stands under the folder of a file, and remembers which files it read."""

    def __init__(self, path: str):
        self.path, self.files = os.path.realpath(os.path.dirname(path)), []

    def read(self, name: str) -> bytes:
        """The bytes of a file, named from the folder; an AtelierError does not know its name."""
        if CONTROL.search(name):
            raise AtelierError("chemin invalide ; séparez les dossiers par « / ».")
        if os.path.isabs(name):
            raise AtelierError("chemin absolu ; donnez-le depuis le dossier du fichier qui le nomme.")
        path = os.path.realpath(os.path.join(self.path, name))
        if os.path.exists(path) and not os.path.isfile(path):
            raise AtelierError("ce n'est pas un fichier ordinaire ; donnez un fichier de texte.")
        if not path.startswith(os.path.join(self.path, "")):
            raise AtelierError("hors du dossier du fichier qui le nomme ; placez-le sous ce dossier.")
        self.files.append(path)
        return b"".join(read_lines(path, ""))


def goes_to(stream: Any, path: str) -> bool:
    """Whether a path names what a standard stream writes to; `-` is standard output."""
    try:
        return (stream is sys.stdout if path == "-" else
                os.path.samestat(os.fstat(stream.fileno()), os.stat(path)))
    except (AttributeError, OSError, ValueError):  # the stream may be absent, closed, or in memory
        return False


def is_stream(path: str) -> bool:
    """Whether an output is written to as it comes: standard output, a descriptor, a device or a pipe."""
    return (goes_to(sys.stdout, path) or os.path.exists(path) and not os.path.isfile(path)
            or re.match("/dev/(fd/|std)|/proc/", os.path.abspath(path)) is not None)


def check_outputs(options: dict, inputs: Sequence[str]) -> None:
    """Refuse, before any work, outputs that would destroy something or that cannot be written."""
    paths = [options[option] for option in ("--output", "--html", "--export") if option in options]
    for number, path in enumerate(paths):
        problem = find_problem(path, [__file__, *inputs], paths[:number])
        if problem:
            raise AtelierError(f"{path} : {problem}")


def find_problem(path: str, inputs: Sequence[str], others: Sequence[str]) -> str:
    """Why an output is refused, with the mend; empty when it is not."""
    if "\0" in path:
        return "chemin invalide ; donnez un nom de fichier."
    target, printed = os.path.realpath(path), goes_to(sys.stdout, path)
    folder = os.path.dirname(target)
    if any(target == os.path.realpath(other) or printed and goes_to(sys.stdout, other) for other in others):
        return "deux sorties ne peuvent avoir le même nom ; changez-en une."
    if os.path.isfile(target):
        if any(os.path.samefile(target, source) for source in inputs if os.path.exists(source)):
            return "c'est un fichier d'entrée ; donnez un autre nom."
        if goes_to(sys.stderr, path):
            return "la sortie d'erreur y va déjà ; donnez un autre nom."
    if os.path.isdir(target):
        return "c'est un dossier ; donnez un nom de fichier."
    if is_stream(path):
        return ""
    if os.path.islink(target):
        return "liens en boucle ; donnez un autre nom."
    if not os.path.exists(folder):
        return "le dossier n'existe pas ; créez-le."
    if not os.path.isdir(folder):
        return "un élément du chemin n'est pas un dossier."
    if os.path.exists(target) and not (os.access(target, os.W_OK) and os.stat(target).st_mode & 0o222):
        return "fichier en lecture seule ; donnez un autre nom."
    return ""


UTF8 = {"encoding": "utf-8", "errors": "replace", "newline": "\n"}  # half a pair becomes `?`


def write_outputs(texts: Tree, staged: dict) -> None:
    """Write {path: pieces of a text}; files are staged, then put in their places once all are whole."""
    try:
        for path in sorted(texts, key=is_stream):
            if is_stream(path):
                write_stream(path, texts[path])
            else:
                stage(path, texts[path], staged)
        for path, temporary in staged.items():
            os.replace(temporary, os.path.realpath(path))
    except OSError as error:
        name = "sortie standard" if goes_to(sys.stdout, path) else path
        others = f" ({outcome(staged)})" if len(texts) > 1 else ""
        raise AtelierError(f"{name} : {os_problem(error)} ; cette sortie n'est pas écrite{others}.") from None


def stage(path: str, pieces: Iterable[str], staged: dict) -> None:
    """Write a text beside its target, with the mode that it must have; staged gains {path: that file}."""
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".atelier-{os.urandom(8).hex()}.tmp")
    with open(temporary, "x", **UTF8) as file:
        staged[path] = temporary
        try:
            if os.path.exists(target):
                os.chmod(temporary, os.stat(target).st_mode & 0o7777)
        except PermissionError:
            pass  # a file system without modes
        file.writelines(pieces)


def outcome(staged: dict) -> str:
    """What became of the files: one whose temporary file is gone has been replaced."""
    written = [path for path, temporary in staged.items() if not os.path.exists(temporary)]
    return f"déjà écrit : {', '.join(written)}" if written else "rien n'a été remplacé"


def write_stream(path: str, pieces: Iterable[str]) -> None:
    """Write to what is no file to replace; a reader that leaves has what it wanted."""
    try:
        if not goes_to(sys.stdout, path):
            with open(path, "a", **UTF8) as file:
                file.writelines(pieces)
        elif sys.stdout:
            if hasattr(sys.stdout, "reconfigure"):
                sys.stdout.reconfigure(**UTF8)
            sys.stdout.writelines(pieces)
            sys.stdout.flush()
        else:
            raise OSError(EBADF, "closed")
    except BrokenPipeError:
        pass


encode = json.JSONEncoder(ensure_ascii=False).encode

UNFOLDED = {"hits_before_budget": 1, "context": 1, "places": 1, "terms": 0}  # levels; elsewhere, all


def members(value: Any) -> List[tuple]:
    """(key, item) of an object of objects, (None, item) of a list of objects; nothing of plain values."""
    if isinstance(value, dict) and any(item and isinstance(item, (dict, list)) for item in value.values()):
        return list(value.items())
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [(None, item) for item in value]
    return []


def render_json(value: Any, indent: str = "\n", levels: int = 99) -> Iterator[str]:
    """The JSON text of a report, piece by piece: a line for each item, to so many levels; the rest on one."""
    pairs = members(value) if levels else []
    if not pairs:
        yield encode(value)
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    for key, item in pairs:
        name, deeper = "" if key is None else encode(key) + ": ", UNFOLDED.get(key, levels - 1)
        yield opening + indent + "  " + name
        if deeper and isinstance(item, (dict, list)):
            yield from render_json(item, indent + "  ", deeper)
        else:
            yield encode(item)
        opening = ","
    yield indent + closing


def say(text: str, stream: Any) -> None:
    """Print for a person; a reader that left is no fault, a full disk is, where it can be told."""
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # so that the last flush is quiet
        if not isinstance(error, BrokenPipeError) and stream is not sys.stderr:
            raise AtelierError(f"sortie standard : {os_problem(error)}.") from None


def is_watched() -> bool:
    """Whether a person reads standard error."""
    return bool(sys.stderr and sys.stderr.isatty())


def count_questions(total: int) -> Iterator[None]:
    """At each step one more question is done, which a person is told percent by percent."""
    for done in range(1, total + 1):
        if done * 100 % total < 100 and is_watched():
            say(f"\r{done * 100 // total:3} % des questions, toutes variantes comprises" if done < total
                else "\r" + " " * 60 + "\r", sys.stderr)
        yield


def run(argv: Sequence[str]) -> int:
    """Do what is asked; the exit code."""
    options = parse_arguments(argv)
    if "--help" in options or "--version" in options:
        told = make_parser().format_help() if "--help" in options else f"atelier.py {__version__}\n"
        say(told, sys.stdout)
        return 0
    open_database().close()  # without FTS5, say so before any work
    if "--self-test" in options:
        lines, failures = run_guards()
        say("\n".join(lines) + "\n", sys.stdout)
        return 1 if failures else 0
    job = draw_saved if "--from" in options else judge_register if "--citations" in options else diagnose_file
    return deliver(*job(options))


def deliver(texts: Mapping[str, Iterable[str]], table: str = "", unmet: str = "") -> int:
    """Write {path: pieces of a text}, say a table where none goes, then what is not met; the exit code.

    A KeyboardInterrupt tells what became of the files.
    """
    staged = {}
    try:
        write_outputs(texts, staged)
        say(table, sys.stderr if any(goes_to(sys.stdout, path) for path in texts) else sys.stdout)
        if is_watched():
            say("".join(f"Écrit : {path}\n" for path in staged), sys.stderr)
        say(unmet, sys.stderr)
        return 3 if unmet else 0
    except KeyboardInterrupt:
        raise KeyboardInterrupt(outcome(staged)) from None
    finally:
        for temporary in filter(os.path.exists, staged.values()):
            os.remove(temporary)


# A job gives what deliver takes.

def draw_saved(options: dict) -> tuple:
    """Draw a report already written."""
    path = options["--from"]
    data = read_file(path)
    try:
        report = parse_json(decode(data))
    except AtelierError as error:
        raise AtelierError(*(f"{path} : {sentence}" for sentence in error.sentences)) from None
    check_outputs(options, [path])
    try:
        return {options["--html"]: list(draw_page(report))},
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise AtelierError(f"{path} : ce n'est pas un rapport d'Atelier, ou il est abîmé ; donnez un fichier "
                           "écrit par --output.") from None


def judge_register(options: dict) -> tuple:
    """Judge the citations of a register."""
    path = options["--citations"]
    data, folder = read_file(path), Folder(path)
    citations = check_citations(data, os.path.basename(path), folder.read)
    check_outputs(options, [path, *folder.files])
    report = {"atelier": __version__, "environment": describe_environment(), "citations": citations}
    return make_texts(options, report), format_citations(citations)


def diagnose_file(options: dict) -> tuple:
    """Diagnose a case, with the contexts of other engines if any."""
    path = options.get("--case", os.path.join(os.path.dirname(os.path.abspath(__file__)), "cas_fr.json"))
    data, folder = read_file(path), Folder(path)
    case = read_case(data, os.path.basename(path), folder.read)
    questions, contexts, required = (options.get(option, []) for option in REPEATABLE)
    baseline, unmet = options.get("--baseline", ""), []
    before = read_file(baseline) if baseline else b""
    earlier = read_report(before, baseline) if baseline else None
    check_names("--question", questions, [question.id for question in case.questions],
                "n'est pas une question du cas")
    check_outputs(options, [path, baseline, *folder.files, *contexts])
    variants = {variant.id: variant for variant in case.variants}
    reused = contexts or "--export" in options  # else a variant's passages go with it
    cutting_of = lru_cache(None if reused else 1)(lambda name: cut(case.documents, variants[name]))
    engines, files, warnings = read_engines(contexts, case, cutting_of) if contexts else ({}, [], [])
    check_names("--require", required, [*variants, *engines], "n'est ni une variante ni un moteur")
    if "--export" in options:
        warnings = [*warnings, *unfit_for_trec(case)]
    tick = count_questions(len(case.questions) * len(variants)).__next__
    report = diagnose(case, cutting_of, engines, study, tick)
    report["warnings"] = [*warn(case, report["variants"]), *warnings]
    report["comparisons"], report["contexts"] = compare_all(report["variants"]), files
    table = format_table(report, questions)
    if earlier:
        report["baseline"] = {"file": os.path.basename(baseline), "sha256": sha256(before),
                              **compare_reports(report, earlier)}
        table += format_baseline(report["baseline"])
        unmet += regressions(report["baseline"]) if "--no-regression" in options else []
    say("".join(f"attention : {warning}\n" for warning in report["warnings"]), sys.stderr)
    unmet += unmet_requirements(report, required)
    return make_texts(options, report, case, cutting_of), table, "".join(unmet)


def check_names(option: str, names: Iterable[str], known: Sequence[str], problem: str) -> None:
    """Refuse a name given to an option that stands for nothing."""
    for name in names:
        if name not in known:
            raise AtelierError(f"{option} : {shown(name)} {problem}. {suggestion(name, known)}")


def read_engines(paths: Sequence[str], case: Case, cutting_of: Callable[[str], Cutting]) -> tuple:
    """({engine: what it Sent for each question}, name and digest of each file, warnings) of contexts."""
    from hashlib import sha256 as digest
    corpus, engines, files = Corpus(case, cutting_of), {}, []
    names = [variant.id for variant in case.variants]
    for path in paths:
        name, read = os.path.basename(path), digest()
        lines = (read.update(line) or line for line in read_lines(path))
        engines.update(read_contexts(lines, name, corpus, {*engines, *names}))
        files.append({"file": name, "sha256": read.hexdigest()})
    sent = {name: [engine_sent(case, question, deliveries.get(question.id, Delivery([], None)))
                   for question in case.questions] for name, deliveries in engines.items()}
    return sent, files, corpus.warnings


def make_texts(options: dict, report: Tree, *exported: Any) -> Dict[str, Iterable[str]]:
    """{path: pieces of a text} of the outputs asked for."""
    texts = {"--output": lambda: render_json(report), "--html": lambda: draw_page(report),
             "--export": lambda: export_passages(*exported)}
    return {options[name]: make() for name, make in texts.items() if name in options}


def unmet_requirements(report: Tree, required: Iterable[str]) -> Iterator[str]:
    """A line for each of some variants and engines whose contexts are incomplete or out of bounds: which."""
    for variant in (variant for variant in report["variants"] if variant["id"] in required):
        questions = variant["questions"]
        missed = [question for question in questions if question["all_required_covered"] is False]
        failures = [("contexte incomplet", "", missed)]
        failures += [("contexte envoyé", " " + problem, [question for question in questions if question[key]])
                     for key, problem in BREACHES.items()]
        told = [f"{counted(len(failing), noun)}{problem} ({some(question['id'] for question in failing)})"
                for noun, problem, failing in failures if failing]
        foreign = [question["id"] for question in missed if question["foreign_words"]]
        if foreign:
            told.append(f"preuve absente et texte étranger au corpus ({some(foreign)}) peuvent n'être qu'un, "
                        "si le moteur a récrit la preuve")
        if told:
            yield f"exigence non tenue : {variant['id']} : {' ; '.join(told)}.\n"


def main(argv: Optional[Sequence[str]] = None) -> int:
    """The command: 0 done, 1 a guard failed, 2 for the user to mend, 3 a gate not met, 130 interrupted."""
    try:
        try:
            for stream in (sys.stdout, sys.stderr):
                if hasattr(stream, "reconfigure"):
                    stream.reconfigure(errors="replace")
            if sys.version_info < (3, 9):
                raise AtelierError("atelier.py demande Python 3.9 ou plus récent ; celui-ci est "
                                   "Python {}.{}.".format(*sys.version_info))
            return run(sys.argv[1:] if argv is None else argv)
        except AtelierError as error:
            say("".join(sentence + "\n" for sentence in error.sentences), sys.stderr)
            return 2
    except KeyboardInterrupt as interruption:
        say("Interrompu : {}.\n".format(*interruption.args or ["rien n'a été remplacé"]), sys.stderr)
        return 130


if __name__ == "__main__":
    gc.disable()  # a run makes no cycles worth looking for, and it ends soon
    sys.exit(main())
