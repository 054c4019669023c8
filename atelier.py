#!/usr/bin/env python3
"""Did every word of every required quote survive the cutting, the search and the word budget?

A RAG team has documents, questions and, for each question, the exact quotes without which the
answer would be wrong.  The documents are cut into passages, the passages are indexed and searched,
the best ones are concatenated under a budget of words, and a model would read that text.  This file
follows each quote along the way and names the stage that lost it.  Nothing is sent anywhere.

    python3 atelier.py                          the table of the case that stands beside the script
    python3 atelier.py --output resultat.json   the table and the full report
    python3 atelier.py --case mon_cas.json      another case
    python3 atelier.py --contexts moteur.jsonl  what another engine sent, judged alike
    python3 atelier.py --citations registre.json    the citations of an answer
    python3 atelier.py --html page.html         the page where one sees where each proof went
    python3 atelier.py --self-test              the thirteen guards of the evaluator

The flow; each arrow is a function of values, without file, clock or print:

    bytes -> Case -> passages -> index -> hits -> context -> coverage, loss -> report -> table, JSON, page

Glossary
    word      an element of str.split(): a unit for counting, neither a token nor an index term
    span      Span(document, start, end): words start to end - 1 of one document
    passage   a span of one document that the index knows under an id, `frais#0003`
    hit       a passage that a question found, with its rank and its score
    context   the first top_k hits, in rank order, cut at budget_words
    fact      a quote, located as a span, that a question requires
    covered   said of a fact all of whose words lie in the union of the kept spans of its document
    loss      the first stage at which an uncovered fact was lost, with what is needed to act

Plan: the path first, in the order of the data; then the doors, none of which needs another
    path     1 vocabulary   2 the run   3 cutting   4 searching   5 assembling   6 coverage and loss
             7 report   8 table
    doors    9 reading   10 structures   11 explanations   12 warnings   13 baseline   14 engines
             15 citations   16 page   17 guards   18 command

Limits: the ranking is FTS5's bm25 and says nothing about another engine's; presence in the context
says nothing about reading order, understanding, or a right answer.
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
from collections import namedtuple  # typing's records would cost a tenth of the start-up
from errno import EBADF, errorcode
from functools import lru_cache
from itertools import accumulate, chain, combinations, islice, takewhile

TYPE_CHECKING = False  # as in typing, which only a type checker needs here
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

__version__ = "1.0.0"


# --- 1. Vocabulary: the records and the tables, no behaviour --------------------------------------

class Span(namedtuple("Span", "document start end")):
    """Words start to end - 1 of a document (an id), counted from 0: the one unit in which every stage is paid."""
    __slots__ = ()


class Document(namedtuple("Document", "id title text metadata starts ends sections label file structure", defaults=("", ""))):
    """A source text; word i is text[starts[i]:ends[i]]; metadata is {key: text, number, boolean or list of texts}.

    sections are Sections in text order, none when it has no structure; label is what index_titles searches; file is its
    path in the case, structure a line of STRUCTURES, if any.
    """
    __slots__ = ()


class Section(namedtuple("Section", "title metadata start end pieces")):
    """Characters start to end of a document under one title; pieces are the (start, end) characters never to be cut."""
    __slots__ = ()


class Quote(namedtuple("Quote", "text span")):
    """A text to the letter, with its Span in its document."""
    __slots__ = ()


class Fact(namedtuple("Fact", "id quotes several")):
    """What an answer may need: a tuple of Quotes, any of which proves it; several tells that the case gave alternatives."""
    __slots__ = ()


class Question(namedtuple("Question", "id text answerable required_facts filters per_document set")):
    """A text to search; required_facts are fact ids; filters {key: condition}, per_document and set (or None) are its own."""
    __slots__ = ()


class Settings(namedtuple("Settings", "filters top_k budget_words stop_words index_titles")):
    """What a case may change: filters {metadata key: condition}, two integers, a tuple of words, a boolean."""
    __slots__ = ()


class Case(namedtuple("Case", "file sha256 title documents facts questions settings variants")):
    """A whole case file, checked: documents and facts by id, questions, variants; every quote is located."""
    __slots__ = ()


class Variant(namedtuple("Variant", "id unit parameters question_filters", defaults=(True,))):
    """One way of cutting: unit names a line of UNITS, parameters {name: value} are that unit's own."""
    __slots__ = ()


class Passage(namedtuple("Passage", "id span touched start end heading words")):
    """What is indexed and sent: a heading (empty but for a continuation) and characters start to end of a document.

    span holds the words wholly inside, touched those that are at least partly so; words is what it costs, heading included.
    """
    __slots__ = ()

    @property
    def heading_words(self) -> int:
        return self.words - size([self.touched])

    @property
    def lead(self) -> int:
        """The words that stand before the first whole one: they are sent, and prove nothing."""
        return self.heading_words + self.span.start - self.touched.start


class Cutting(namedtuple("Cutting", "by_id by_document")):
    """The Passages of one variant: {passage id: Passage}, {document id: [Passage, in the order of its number]}."""
    __slots__ = ()


class Hit(namedtuple("Hit", "rank passage score kept")):
    """A Passage found by a question: rank from 1, score (None when unknown), kept, the words that the budget let through."""
    __slots__ = ()


class Kept(namedtuple("Kept", "passage words")):
    """What a context holds of a passage (an id): its first words (a number)."""
    __slots__ = ()


class Trip(namedtuple("Trip", "quote missing touching holders hits rank_of budget_words broken_filters")):
    """All that the stages of loss may need to know about one uncovered quote.

    missing: the spans of the quote that the context lacks; touching: the admitted passages that hold
    a part of it, in text order; holders: those that hold it whole; rank_of(passage id) is a rank
    among the admitted matches of the question, None when unmatched; broken_filters: the filters that
    keep out all that holds some word of the quote.
    """
    __slots__ = ()


class Attempt(namedtuple("Attempt", "quote missing loss")):
    """A Quote as one context leaves it: how many of its words are missing, its loss (None when covered)."""
    __slots__ = ()


class Verdict(namedtuple("Verdict", "fact attempts chosen")):
    """A required Fact: an Attempt for each of its quotes, and the one that speaks for it."""
    __slots__ = ()


class Outcome(namedtuple("Outcome", "question terms query hits context kept verdicts no_hits")):
    """A Question's trip through one variant: [(term, passages that hold it)], query, Hits, those of the context, their
    kept Spans, Verdicts, why no hits.  Of another engine, terms and query, and perhaps hits, are None.
    """
    __slots__ = ()


class Sent(namedtuple("Sent", "context hits")):
    """What an engine sent for a question: [(Passage, words kept)], and [Passage] as found, or None when not told."""
    __slots__ = ()


class Unit(namedtuple("Unit", "cut keys")):
    """A way of cutting: its function, whose parameters are its Keys."""
    __slots__ = ()


class Key(namedtuple("Key", "name kind required default", defaults=(False, None))):
    """A member that an object of the file may have: its name, and its kind, a line of KINDS."""
    __slots__ = ()


class Stage(namedtuple("Stage", "id test label detail advice")):
    """A stage of loss: its test (Trip to dict or None), its French name, what the table says of it, what to try next."""
    __slots__ = ()


VARIANTS = (
    Variant("fixe_48_0", "words", {"size": 48, "overlap": 0}),
    Variant("fixe_96_0", "words", {"size": 96, "overlap": 0}),
    Variant("fixe_48_16", "words", {"size": 48, "overlap": 16}),
    Variant("paragraphes", "paragraphs", {}),
)
TOKENIZER = "unicode61 remove_diacritics 2"
# Grammar alone: the elided letters are here; words that carry a condition (sans, sauf, pas, hors, ni,
# non, si, avant, après, entre, avec…) are not, nor is « dû ».
STOP_WORDS = tuple("""
    a à ai aie ait as au aux avait avez avons c ce cela celle celles celui ces cet cette ceux ci combien comment d dans
    de des du elle elles en es est et étaient était étant être eu eux il ils j je jusqu jusque l la là laquelle le
    lequel les lesquelles lesquels leur leurs lorsqu lorsque lui m ma me mes moi mon n ne nos notre nous on ont ou où
    par peut pour pourquoi puis puisqu puisque qu quand que quel quelle quelles quels qui quoi s sa se sera ses soi
    soit son sont suis sur t ta te tes toi ton tu un une va vos votre vous y
""".split())
DEFAULTS = Settings({}, 3, 120, STOP_WORDS, False)
LISTED_LOSSES = 12       # under the table
SIGNIFICANT = 0.05       # below, a sign test tells two variants apart


class AtelierError(Exception):
    """What the user can mend: one or several French sentences, `file : place : problem. Mend.`, fit for a terminal."""

    def __init__(self, *sentences: str):
        self.sentences = [CONTROL.sub(lambda match: "\\x{:02x}".format(ord(match.group())), sentence) for sentence in sentences]
        super().__init__("\n".join(self.sentences))


# --- 2. The run, from a case to its report --------------------------------------------------------

def diagnose(case: Case, engines: Mapping[str, Mapping[str, Sent]] = {}, tick: Callable[[], None] = lambda: None) -> Dict[str, Any]:
    """The whole report, as a dict ready for JSON; engines are {name: {question id: what was sent}}.

    tick is called once a question of a variant is done.
    """
    terms = search_terms((question.text for question in case.questions), case.settings.stop_words)
    variants = in_threads([lambda go_on, variant=variant: diagnose_variant(case, variant, terms, go_on, tick) for variant in case.variants],
                          worth_it=sum(len(document.starts) for document in case.documents.values()) > 20_000)
    variants += [diagnose_engine(case, name, sent) for name, sent in engines.items()]
    return {
        "atelier": __version__,
        "environment": describe_environment(),
        "warnings": [sentence for check in CHECKS for sentence in check(case, variants)],
        "case": describe_case(case),
        "settings": {"filters": case.settings.filters, "top_k": case.settings.top_k, "budget_words": case.settings.budget_words,
                     "tokenizer": TOKENIZER, "stop_words": list(case.settings.stop_words), "index_titles": case.settings.index_titles},
        "variants": variants,
        "comparisons": [compare_variants(*pair) for pair in combinations(variants, 2)],
    }


def in_threads(tasks: Sequence[Callable[[Callable[[], None]], Any]], worth_it: bool) -> List[Any]:
    """The results of independent tasks, in order; SQLite releases the interpreter lock while it works.

    Each task is given a function to call now and then, which raises once the run is given up.
    """
    given_up: List[bool] = []

    def go_on():
        if given_up:
            raise KeyboardInterrupt

    if not worth_it:
        return [task(go_on) for task in tasks]
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(max_workers=min(len(tasks), os.cpu_count() or 1)) as pool:
        futures = [pool.submit(task, go_on) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:
            given_up.append(True)
            raise


def diagnose_variant(case: Case, variant: Variant, terms: Sequence[Sequence[str]], go_on: Callable[[], None],
                     tick: Callable[[], None]) -> Dict[str, Any]:
    """One variant's part of the report; terms are those of each question, in order; go_on is called all along."""
    cutting = cut(case.documents, variant)

    def searched(id):
        go_on()
        label = case.documents[cutting.by_id[id].span.document].label if case.settings.index_titles else ""
        return label + "\n" + text_of(case.documents, cutting.by_id[id])
    index = Index(cutting.by_id, searched)
    admit = lru_cache(None)(lambda key: admitted_ids(case.documents, cutting, json.loads(key)))  # questions share filters
    slice_text = lru_cache(None)(lambda *kept: text_of(case.documents, *kept))  # and find the same passages
    try:
        outcomes = []
        for question, searched_terms in zip(case.questions, terms):
            go_on()
            conditions = [case.settings.filters] + ([question.filters] if variant.question_filters else [])
            outcomes.append(follow(case, cutting, index, conditions, admit(json.dumps(conditions)),
                                   question if variant.question_filters else question._replace(per_document=None), searched_terms))
            tick()
        return {
            "id": variant.id,
            "chunking": {"unit": variant.unit, **variant.parameters},
            "question_filters": variant.question_filters,
            **summarize_sets(case, cutting, outcomes),
            "passages": {document: [[passage.span.start, passage.span.end] for passage in passages]
                         for document, passages in cutting.by_document.items()},
            "questions": [describe_outcome(case.documents, slice_text, *pair) for pair in zip(case.questions, outcomes)],
        }
    finally:
        index.close()


def admitted_ids(documents: Mapping[str, Document], cutting: Cutting, conditions: Sequence[Mapping[str, Any]]) -> Optional[FrozenSet[str]]:
    """The ids of the passages all of whose sections (or whose document, without) pass; None when nothing is filtered."""
    if not any(conditions):
        return None
    admitted = []
    for name, passages in cutting.by_document.items():
        document = documents[name]
        broken = {id(judged): breaks(conditions, [judged]) for judged in (document, *document.sections)}
        admitted += [passage.id for passage in passages
                     if not any(broken[id(judged)] for judged in sections_of(document, passage) or [document])]
    return frozenset(admitted)


def breaks(conditions: Sequence[Mapping[str, Any]], judged: Iterable[Any]) -> Dict[str, Any]:
    """The conditions that some documents or sections do not meet."""
    return {key: wanted for each in judged for filters in conditions for key, wanted in broken_filters(filters, each.metadata).items()}


def follow(case: Case, cutting: Cutting, index: Index, conditions: Sequence[Mapping[str, Any]], admitted: Optional[FrozenSet[str]],
           question: Question, terms: Sequence[str]) -> Outcome:
    """Search a question, assemble its context, and judge each fact that it requires."""
    query = make_query(terms)
    found = index.best(query, -1 if question.per_document else case.settings.top_k, admitted)
    if question.per_document:
        found = best_of_each(found, cutting, question.per_document)
    kept = assemble([cutting.by_id[id].words for id, _ in found], case.settings.budget_words)
    hits = [Hit(rank, cutting.by_id[id], score, words) for rank, ((id, score), words) in enumerate(zip(found, kept), 1)]
    context = [hit for hit in hits if hit.kept]
    spans = kept_spans(cutting.by_id, [Kept(hit.passage.id, hit.kept) for hit in context])

    def lose(quote, missing):
        passages = touching(cutting, quote.span)
        inside = [passage for passage in passages if admitted is None or passage.id in admitted]
        return find_loss(Trip(quote.span, missing, inside, [passage for passage in inside if holds(passage, quote.span)], hits,
                              lambda id: index.rank(query, id, admitted), case.settings.budget_words,
                              find_broken(case.documents[quote.span.document], quote.span, passages, inside, conditions)), STAGES)
    verdicts = [judge(case.facts[fact], case.documents, spans, lose) for fact in question.required_facts]
    no_hits = None if hits else "no_term" if not terms else "no_document" if admitted == frozenset() else "no_match"
    return Outcome(question, [(term, index.count(term)) for term in terms], query, hits, context, spans, verdicts, no_hits)


def best_of_each(found: Iterable[Tuple[str, float]], cutting: Cutting, limit: int) -> List[Tuple[str, float]]:
    """The first limit matches of each document, in the order of all."""
    room: Dict[str, int] = {}
    kept = []
    for id, score in found:
        name = cutting.by_id[id].span.document
        room[name] = room.get(name, limit) - 1
        if room[name] >= 0:
            kept.append((id, score))
    return kept


def find_broken(document: Document, quote: Span, touched: Sequence[Passage], inside: Sequence[Passage],
                conditions: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """The conditions that keep out the whole document of a quote, or all that holds some of its words."""
    whole = document.sections or [document]
    if all(breaks(conditions, [judged]) for judged in whole):
        return breaks(conditions, whole)
    gaps = missing_spans(quote, [passage.touched for passage in inside])
    outside = [passage for passage in touched if passage not in inside
               and any(passage.touched.start < gap.end and gap.start < passage.touched.end for gap in gaps)]
    return breaks(conditions, [judged for passage in outside for judged in sections_of(document, passage) or [document]])


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
    if not is_integer(size) or size < 1:
        raise AtelierError("taille de fenêtre {} refusée ; il faut un entier d'au moins 1.".format(shown(size)))
    if not is_integer(overlap) or not 0 <= overlap < size:
        raise AtelierError("recouvrement {} refusé ; il faut un entier de 0 à {} (taille {}).".format(shown(overlap), size - 1, size))
    step = size - overlap
    return [(start, min(start + size, count)) for start in range(0, max(count - overlap, min(count, 1)), step)]


def cut_words(document: Document, size: int, overlap: int) -> Iterator[Tuple[int, int, str]]:
    """(first character, last + 1, text put before) of each window of size words."""
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
    """A passage a section; one that is longer than max_chars is cut between its pieces, or at words when it has none."""
    for section in document.sections:
        low, high = bisect_left(document.starts, section.start), bisect_right(document.ends, section.end)
        pieces = section.pieces or list(zip(document.starts[low:high], document.ends[low:high]))
        (start, end), heading = pieces[0], ""
        for piece in pieces[1:]:
            if len(heading) + bool(heading) + piece[1] - start > max_chars:
                yield start, end, heading
                start, heading = piece[0], section.title + " (suite)" if repeat_title and section.title else ""
            end = piece[1]
        yield start, end, heading


WINDOW_KEYS = (Key("size", "count", True), Key("overlap", "position", default=0))
UNITS = {
    "words": Unit(cut_words, WINDOW_KEYS),
    "paragraphs": Unit(cut_paragraphs, ()),
    "chars": Unit(cut_chars, WINDOW_KEYS),
    "sections": Unit(cut_sections, (Key("max_chars", "count", True), Key("repeat_title", "flag", default=False))),
}


def cut(documents: Mapping[str, Document], variant: Variant) -> Cutting:
    """The passages of every document; ids are zero-padded so that text order is reading order."""
    by_document = {}
    for document in documents.values():
        pieces = list(UNITS[variant.unit].cut(document, **variant.parameters))
        width = max(4, len(str(len(pieces))))
        by_document[document.id] = [make_passage(document, "{}#{:0{}}".format(document.id, number, width), *piece)
                                    for number, piece in enumerate(pieces, 1)]
    return Cutting({passage.id: passage for passages in by_document.values() for passage in passages}, by_document)


def make_document(id: str, title: str, text: str, metadata: Mapping[str, Any], sections: Sequence[Section] = (), label: str = "") -> Document:
    """A document with the characters at which its words begin and end."""
    starts, ends = array("I"), array("I")
    for match in WORD.finditer(text):
        starts.append(match.start())
        ends.append(match.end())
    return Document(id, title, text, metadata, starts, ends, tuple(sections), label or title)


def make_passage(document: Document, id: str, start: int, end: int, heading: str) -> Passage:
    """The passage of characters start to end of a document, with the words that it holds and touches."""
    touched = Span(document.id, bisect_right(document.ends, start), bisect_left(document.starts, end))
    first, last = bisect_left(document.starts, start), bisect_right(document.ends, end)
    span = touched if (first, last) == touched[1:] else Span(document.id, first, max(first, last))
    return Passage(id, span, touched, start, end, heading, len(heading.split()) + size([touched]))


def words_of(document: Document, span: Span) -> str:
    """The exact slice of a document from the first word of a span, which is not empty, to its last."""
    return document.text[document.starts[span.start]:document.ends[span.end - 1]]


def text_of(documents: Mapping[str, Document], passage: Passage, kept: Optional[int] = None) -> str:
    """A passage as it is sent: its heading, and the exact slice of the source; cut after kept words when they are told."""
    text = (passage.heading + "\n" if passage.heading else "") + documents[passage.span.document].text[passage.start:passage.end]
    if kept is None or kept >= passage.words:
        return text
    return text[:next(islice(WORD.finditer(text), kept - 1, None)).end()] if kept else ""


def overlapping(items: Sequence[Any], start: int, end: int, limits: Callable[[Any], Any] = lambda item: item) -> List[Any]:
    """The items that share a position with start … end; limits gives their .start and .end, both in order."""
    low, high = 0, len(items)
    while low < high:  # bisect has no key before Python 3.10
        middle = (low + high) // 2
        low, high = (middle + 1, high) if limits(items[middle]).end <= start else (low, middle)
    return list(takewhile(lambda item: limits(item).start < end, islice(items, low, None)))


def touching(cutting: Cutting, span: Span) -> List[Passage]:
    """The passages that hold at least a part of a word of a span, in text order."""
    return overlapping(cutting.by_document[span.document], span.start, span.end, lambda passage: passage.touched)


def sections_of(document: Document, passage: Passage) -> List[Section]:
    """The sections that a passage overlaps, by their characters."""
    return overlapping(document.sections, passage.start, passage.end)


def holds(passage: Passage, span: Span) -> bool:
    """Whether a passage of the same document holds every word of a span."""
    return passage.span.start <= span.start and span.end <= passage.span.end


# --- 4. Searching: the only SQL -------------------------------------------------------------------

# Letters and digits; the marks U+0300 to U+0331 are those that FTS5's unicode61 keeps inside a word.
TERM = re.compile("[^\\W_]+(?:[\u0300-\u0331]+[^\\W_]*)*")


def kind_of(value: Any) -> str:
    """What may be compared with what."""
    return "booléen" if isinstance(value, bool) else "nombre" if isinstance(value, (int, float)) else "texte"


def each_value(value: Any) -> List[Any]:
    """The values of a metadata key: those of a list, the one given, or none."""
    return value if isinstance(value, list) else [] if value is None else [value]


def is_among(found: Any, wanted: Sequence[Any]) -> bool:
    """Whether a document's value, or one of its list, equals a wanted one; true never equals 1."""
    return any(each == value and kind_of(each) == kind_of(value) for each in each_value(found) for value in wanted)


OPERATORS: Dict[str, Callable[[Any, Any], bool]] = {
    "gte": lambda found, bound: any(kind_of(each) == kind_of(bound) and each >= bound for each in each_value(found)),
    "lte": lambda found, bound: any(kind_of(each) == kind_of(bound) and each <= bound for each in each_value(found)),
    "in": is_among,
}


def passes(found: Any, wanted: Any) -> bool:
    """Whether a value of the metadata (None when absent) meets a condition."""
    if isinstance(wanted, dict):
        return all(OPERATORS[name](found, bound) for name, bound in wanted.items())
    return found == wanted if isinstance(wanted, list) else is_among(found, [wanted])


def broken_filters(filters: Mapping[str, Any], metadata: Mapping[str, Any]) -> Dict[str, Any]:
    """The conditions that some metadata do not meet."""
    return {key: wanted for key, wanted in filters.items() if not passes(metadata.get(key), wanted)}


def open_database() -> Any:
    """A connection to a database in memory; AtelierError when this Python has no usable FTS5."""
    try:
        import sqlite3
    except ImportError:
        raise AtelierError("Ce Python n'a pas le module sqlite3 ; prenez un Python qui l'a.") from None
    if sqlite3.sqlite_version_info < (3, 27):
        raise AtelierError("SQLite {} est trop ancien ; il faut SQLite 3.27 ou plus récent.".format(sqlite3.sqlite_version))
    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        database.execute("SELECT fts5_source_id()")
    except sqlite3.OperationalError:
        raise AtelierError("Le SQLite de ce Python est compilé sans FTS5 ; prenez un Python dont SQLite a FTS5.") from None
    return database


def sqlite_version() -> str:
    from sqlite3 import sqlite_version as version
    return version


def run_sql(action: Callable[[], Any]) -> Any:
    """The result of an action on a database; AtelierError gives the cause of a failure."""
    from sqlite3 import Error
    try:
        return action()
    except Error as error:
        raise AtelierError("La recherche a échoué dans SQLite : {}.".format(error)) from error


def fold_terms(terms: Iterable[str]) -> Dict[str, Tuple[str, ...]]:
    """Each term with the tokens that FTS5 makes of it: `Hôtel` gives ("hotel",)."""
    folds: Dict[str, Tuple[str, ...]] = dict.fromkeys(terms, ())
    names = list(folds)
    database = open_database()

    def work():
        database.execute("CREATE VIRTUAL TABLE words USING fts5(word, tokenize = '{}')".format(TOKENIZER))
        database.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab(words, 'instance')")
        database.execute("BEGIN")
        database.executemany("INSERT INTO words(rowid, word) VALUES (?, ?)", enumerate(names))
        for number, token in database.execute("SELECT doc, term FROM tokens ORDER BY doc, offset"):
            folds[names[number]] += (token,)

    try:
        run_sql(work)
    finally:
        database.close()
    return folds


def cut_terms(text: str) -> List[str]:
    """The runs of letters and digits of a text, NFC, in lower case."""
    return [run.lower() for run in TERM.findall(unicodedata.normalize("NFC", text))]


def search_terms(texts: Iterable[str], stop_words: Iterable[str]) -> List[List[str]]:
    """For each question, the terms to search: no stop word, no repeat (as FTS5 folds them)."""
    stopped = {term for word in stop_words for term in cut_terms(word)}
    kept = [[term for term in cut_terms(text) if term not in stopped] for text in texts]
    folds = fold_terms(term for terms in kept for term in terms)
    return [distinct_terms(terms, folds) for terms in kept]


def distinct_terms(terms: Iterable[str], folds: Mapping[str, Tuple[str, ...]]) -> List[str]:
    """The terms that FTS5 tells apart, the first spelling of each, in order; those it would fold to nothing are left out."""
    first: Dict[Tuple[str, ...], str] = {}
    for term in terms:
        if folds[term]:
            first.setdefault(folds[term], term)
    return list(first.values())


def make_query(terms: Iterable[str]) -> str:
    """An FTS5 expression in which nothing but OR is an operator."""
    return " OR ".join('"{}"'.format(term) for term in terms)


class Index:
    """The passages of one variant, ranked by FTS5's bm25; nothing outside knows how they are ranked.

    A question's matches are scored once, into a table from which best hits and ranks are read.
    Order: score ascending (smaller is better), then passage id, as text.
    """

    def __init__(self, ids: Iterable[str], text_of_id: Callable[[str], str]):
        self.ids = sorted(ids)  # a row's number is its place in the order of ids
        self.database = open_database()
        self.scored: Tuple[str, Optional[FrozenSet[str]]] = ("", None)
        self.counts: Dict[str, int] = {}
        run_sql(lambda: self._build(text_of_id))

    def _build(self, text_of_id: Callable[[str], str]) -> None:
        execute = self.database.execute
        execute("CREATE VIRTUAL TABLE passages USING fts5(text, content = '', tokenize = '{}')".format(TOKENIZER))
        execute("CREATE TABLE scores(number INTEGER PRIMARY KEY, score REAL)")
        execute("CREATE TABLE admitted(number INTEGER PRIMARY KEY)")
        execute("BEGIN")
        self.database.executemany("INSERT INTO passages(rowid, text) VALUES (?, ?)",
                                  ((number, text_of_id(id)) for number, id in enumerate(self.ids)))
        execute("COMMIT")

    def _score(self, query: str, admitted: Optional[FrozenSet[str]]) -> None:
        """Score the matches of a query among the admitted passages (None: all); statistics are of all."""
        if (query, admitted) == self.scored:
            return
        execute = self.database.execute
        if admitted is not self.scored[1]:
            execute("DELETE FROM admitted")
            self.database.executemany("INSERT INTO admitted VALUES (?)",
                                      ((number,) for number, id in enumerate(self.ids) if admitted and id in admitted))
        execute("DELETE FROM scores")
        if query:
            execute("INSERT INTO scores SELECT rowid, bm25(passages) FROM passages WHERE passages MATCH ?"
                    + ("" if admitted is None else " AND +rowid IN (SELECT number FROM admitted)"), (query,))
        self.scored = query, admitted

    def best(self, query: str, limit: int, admitted: Optional[FrozenSet[str]] = None) -> List[Tuple[str, float]]:
        """The (passage id, score) of the best matches, in order; all of them when limit is -1."""
        def work():
            self._score(query, admitted)
            return self.database.execute("SELECT number, score FROM scores ORDER BY score, number LIMIT ?", (limit,)).fetchall()
        return [(self.ids[number], score) for number, score in run_sql(work)]

    def rank(self, query: str, passage: str, admitted: Optional[FrozenSet[str]] = None) -> Optional[int]:
        """The rank of a passage among the matches, from 1; None when it shares no word with the query."""
        def work():
            self._score(query, admitted)
            number = bisect_left(self.ids, passage)
            return self.database.execute(
                "SELECT (SELECT count(*) FROM scores AS other WHERE (other.score, other.number) <= (own.score, own.number))"
                " FROM scores AS own WHERE number = ?", (number,)).fetchone()
        row = run_sql(work)
        return row and row[0]

    def count(self, term: str) -> int:
        """How many passages of the variant hold a term."""
        if term not in self.counts:
            row = run_sql(lambda: self.database.execute(
                "SELECT count(*) FROM passages WHERE passages MATCH ?", (make_query([term]),)).fetchone())
            self.counts[term] = row[0]
        return self.counts[term]

    def close(self) -> None:
        self.database.close()


# --- 5. Assembling: hits and a budget to a context ------------------------------------------------

def assemble(lengths: Iterable[int], budget_words: int) -> List[int]:
    """The words kept of each hit, in rank order; the one that overflows is cut, later ones keep none.

    [60, 61] under 120: [60, 60].
    """
    sent = [0] + [min(total, budget_words) for total in accumulate(lengths)]
    return [after - before for before, after in zip(sent, sent[1:])]


# --- 6. Coverage and loss: spans in, verdicts out -------------------------------------------------

def missing_spans(quote: Span, kept: Iterable[Span]) -> List[Span]:
    """The parts of a quote that no kept span of its document holds; a fact is covered when there is none.

    Pieces add up: [0, 9[ misses [4, 6[ when [0, 4[ and [6, 9[ are kept.
    """
    missing, at = [], quote.start
    for span in sorted(span for span in kept if span.document == quote.document and span.start < span.end):
        if at < span.start and at < quote.end:
            missing.append(Span(quote.document, at, min(span.start, quote.end)))
        at = max(at, span.end)
    return missing + ([Span(quote.document, at, quote.end)] if at < quote.end else [])


def size(spans: Iterable[Span]) -> int:
    """How many words spans have, those that several share counted each time."""
    return sum(span.end - span.start for span in spans)


def is_complete(question: Question, covered: Iterable[bool]) -> Optional[bool]:
    """Whether every required fact is covered; None for a question that has no answer."""
    return all(covered) if question.answerable else None


def kept_spans(by_id: Mapping[str, Passage], context: Iterable[Kept]) -> List[Span]:
    """The source positions of a context; AtelierError when it names a passage that the variant has not."""
    spans = []
    for kept in context:
        if kept.passage not in by_id:
            raise AtelierError("passage {} inconnu de cette variante. {}".format(shown(kept.passage), suggestion(kept.passage, by_id)))
        passage = by_id[kept.passage]
        start, end = passage.span.start, passage.span.start + kept.words - passage.lead
        spans.append(passage.span._replace(end=max(start, min(passage.span.end, end))))
    return spans


def union(spans: Iterable[Span]) -> List[Span]:
    """The same positions as disjoint spans, in order."""
    merged: List[Span] = []
    for span in sorted(spans):
        if merged and merged[-1].document == span.document and span.start <= merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def redundant_words(spans: Sequence[Span]) -> int:
    """Occurrences sent beyond the first of the same source position."""
    return size(spans) - size(union(spans))


def judge(fact: Fact, documents: Mapping[str, Document], kept: Sequence[Span],
          lose: Callable[[Quote, Sequence[Span]], Dict[str, Any]]) -> Verdict:
    """Whether the kept spans cover a fact and, for each of its quotes that they do not, where it was lost."""
    attempts = []
    for quote in fact.quotes:
        missing, loss = missing_spans(quote.span, kept), None
        if missing:
            loss, twins = lose(quote, missing), same_words_in(documents, quote, kept)
            loss = {**loss, "same_words_in": twins} if twins else loss
        attempts.append(Attempt(quote, size(missing), loss))
    return Verdict(fact, attempts, min(attempts, key=lambda attempt: attempt.missing / size([attempt.quote.span])))


def filtered_out(trip: Trip) -> Optional[Dict[str, Any]]:
    """The filters refuse the document, or the section, where the quote stands."""
    return {"filter": dict(trip.broken_filters)} if trip.broken_filters else None


def not_indexed(trip: Trip) -> Optional[Dict[str, Any]]:
    """No passage touches some word of the quote: the cutting left it out."""
    return {} if missing_spans(trip.quote, [passage.touched for passage in trip.touching]) else None


def cut_by_budget(trip: Trip) -> Optional[Dict[str, Any]]:
    """words_over: how far beyond the budget, in the concatenated hits, the last word needed lies.

    None when it lies within: another engine cut its context by a rule of its own.
    """
    left, before, carried = [trip.quote], 0, None
    for hit in trip.hits or ():
        span = hit.passage.span
        after = [rest for part in left for rest in missing_spans(part, [span])]
        if size(after) < size(left):
            end = min(span.end, max(part.end for part in left if part.start < span.end))
            over = before + hit.passage.lead + end - span.start - trip.budget_words
            carried = {"passage": hit.passage.id, "rank": hit.rank, "words_over": over if over > 0 else None}
        left, before = after, before + hit.passage.words
    return None if left else carried


def split_at_boundary(trip: Trip) -> Optional[Dict[str, Any]]:
    """Every word is in a passage, but no passage holds the whole quote."""
    return None if trip.holders else {"pieces": [{"passage": piece.id, "rank": trip.rank_of(piece.id)} for piece in trip.touching]}


def not_matched(trip: Trip) -> Optional[Dict[str, Any]]:
    """Passages hold the quote; none shares a term with the question."""
    return None if best_holder(trip) else {"passage": trip.holders[0].id}


def ranked_too_low(trip: Trip) -> Optional[Dict[str, Any]]:
    """The best ranked passage that holds the quote came after top_k."""
    rank, passage = best_holder(trip)
    return {"passage": passage, "rank": rank}


def not_retrieved(trip: Trip) -> Optional[Dict[str, Any]]:
    """Another engine gave its hits, and they do not hold the quote."""
    return None if trip.hits is None else {}


def not_sent(trip: Trip) -> Optional[Dict[str, Any]]:
    """Another engine gave its context alone: no more can be told."""
    return {}


def best_holder(trip: Trip) -> Optional[Tuple[int, str]]:
    """The (rank, passage id) of the best ranked of the passages that hold the quote whole."""
    return min(((rank, holder.id) for holder in trip.holders for rank in [trip.rank_of(holder.id)] if rank), default=None)


STAGES = (
    Stage("filtered_out", filtered_out, "écartée par un filtre", "{filter}",
          "Vérifiez le filtre et les métadonnées du document."),
    Stage("not_indexed", not_indexed, "absente de l'index", "{missing}",
          "Le découpage laisse ces mots de côté : changez-le."),
    Stage("cut_by_budget", cut_by_budget, "coupée par le budget", "{passage}, rang {rank}, il manque {words_over} au budget",
          "La preuve est trouvée, mais trop loin : passages plus courts, moins de répétitions, ou budget plus grand."),
    Stage("split_at_boundary", split_at_boundary, "coupée par le découpage", "{pieces}",
          "Une limite traverse la citation : déplacez-la (paragraphes, recouvrement), ou scindez le fait."),
    Stage("not_matched", not_matched, "sans mot commun avec la question", "{passage}",
          "Le corpus le dit autrement : comparez les termes de la question à ceux du passage."),
    Stage("ranked_too_low", ranked_too_low, "classée trop bas", "{passage}, rang {rank}",
          "Le passage est trouvé sous le top_k : voyez quels passages le précèdent, et par quels termes."),
)
ENGINE_STAGES = (  # for an engine whose index is unknown
    STAGES[0],
    STAGES[2],
    Stage("not_retrieved", not_retrieved, "non trouvée par le moteur", "{missing}",
          "Le moteur ne l'a pas parmi ses passages trouvés : voyez son découpage, ses plongements, son top_k."),
    Stage("not_sent", not_sent, "absente du contexte", "{missing}",
          "Donnez aussi les passages trouvés (« hits ») pour savoir si la recherche ou le budget l'a perdue."),
)
STAGE = {stage.id: stage for stage in STAGES + ENGINE_STAGES}


def find_loss(trip: Trip, stages: Sequence[Stage]) -> Dict[str, Any]:
    """The first stage that holds, with what its loss carries (`missing` except for filters)."""
    for stage in stages:
        carried = stage.test(trip)
        if carried is not None:
            missing = {} if stage.test is filtered_out else {"missing": [[span.start, span.end] for span in trip.missing]}
            return {"stage": stage.id, **missing, **carried}
    raise AssertionError("no stage of loss holds for {}".format(trip.quote))


def same_words_in(documents: Mapping[str, Document], quote: Quote, kept: Sequence[Span]) -> List[str]:
    """The other documents from which the context holds the very words of a quote."""
    return list(dict.fromkeys(
        span.document for span in union(kept) if span.document != quote.span.document and span.start < span.end
        and any(occurrences(quote.text, fold(words_of(documents[span.document], span))))))


# --- 7. Report: outcomes to the JSON's dict -------------------------------------------------------

def summarize_sets(case: Case, cutting: Optional[Cutting], outcomes: Sequence[Outcome]) -> Dict[str, Any]:
    """The summary and, when questions have sets, that of each set."""
    sets = dict.fromkeys(question.set for question in case.questions if question.set)
    parts = {name: summarize(case, cutting, [outcome for outcome in outcomes if outcome.question.set == name]) for name in sets}
    return {"summary": summarize(case, cutting, outcomes), **({"by_set": parts} if parts else {})}


def summarize(case: Case, cutting: Optional[Cutting], outcomes: Sequence[Outcome]) -> Dict[str, Any]:
    """The counts of one variant, over the answerable questions; what an engine (cutting None) has no figure for is None."""
    judged = [outcome for outcome in outcomes if outcome.question.answerable]
    verdicts = [verdict for outcome in judged for verdict in outcome.verdicts]
    lost = [verdict.chosen.loss["stage"] for verdict in verdicts if verdict.chosen.loss]
    lengths = sorted(passage.words for passage in cutting.by_id.values()) if cutting else []
    return {
        "passages_indexed": len(lengths) or None,
        "words_indexed": sum(lengths) or None,
        "complete_contexts": sum(bool(is_complete(outcome.question, [not verdict.chosen.loss for verdict in outcome.verdicts])) for outcome in judged),
        "answerable_questions": len(judged),
        "facts_covered": len(verdicts) - len(lost),
        "facts_required": len(verdicts),
        "facts_whole": sum(any(holds(passage, quote.span) for quote in verdict.fact.quotes for passage in touching(cutting, quote.span))
                           for verdict in verdicts) if cutting else None,
        "recall_at": recall_at(judged, case.settings.top_k),
        **measure_evidence(judged),
        "words_sent": sum(hit.kept for outcome in judged for hit in outcome.context),
        "redundant_words": sum(redundant_words(outcome.kept) for outcome in judged),
        "losses": {stage: lost.count(stage) for stage in STAGE if stage in lost},
        "passage_words": {"min": lengths[0], "median": median(lengths), "max": lengths[-1]} if lengths else None,
        **count_mixed(case.documents, cutting),
    }


def measure_evidence(outcomes: Sequence[Outcome]) -> Dict[str, Optional[float]]:
    """Word-level recall, precision and intersection over union of the required quotes and the contexts, as in Chroma's
    evaluation of chunking: over distinct source positions, averaged over questions.  None without question.
    """
    shares = []
    for outcome in outcomes:
        evidence, sent = union([verdict.chosen.quote.span for verdict in outcome.verdicts]), union(outcome.kept)
        both = size(evidence) - size([span for quote in evidence for span in missing_spans(quote, sent)])
        shares.append((both / size(evidence), both / size(sent) if size(sent) else 0, both / (size(evidence) + size(sent) - both)))
    names = ("evidence_recall", "evidence_precision", "evidence_iou")
    return {name: round(sum(each) / len(shares), 9) for name, each in zip(names, zip(*shares))} if shares else dict.fromkeys(names)


def recall_at(outcomes: Sequence[Outcome], top_k: int) -> Optional[List[float]]:
    """For k = 1 … top_k, the mean share of a question's required facts that one hit of rank <= k holds whole.

    Before the budget; all the hits of a question with per_document count at every k.  None without question or hits.
    """
    if not outcomes or any(outcome.hits is None for outcome in outcomes):
        return None

    def first_rank(outcome, verdict):
        ranks = [hit.rank for hit in outcome.hits for quote in verdict.fact.quotes
                 if hit.passage.span.document == quote.span.document and holds(hit.passage, quote.span)]
        return min(ranks, default=top_k + 1) if not outcome.question.per_document else 1 if ranks else top_k + 1
    ranks = [[first_rank(outcome, verdict) for verdict in outcome.verdicts] for outcome in outcomes]
    return [round(sum(sum(rank <= k for rank in each) / len(each) for each in ranks) / len(ranks), 9)
            for k in range(1, top_k + 1)]


def count_mixed(documents: Mapping[str, Document], cutting: Optional[Cutting]) -> Dict[str, Any]:
    """How many passages overlap two sections or more and, for each metadata key of sections, two values or more."""
    if not cutting:
        return {"mixed_passages": None, "mixed_by": None}
    overlapped = [sections_of(documents[name], passage) for name, passages in cutting.by_document.items() if documents[name].sections
                  for passage in passages]
    keys = sorted({key for document in documents.values() for section in document.sections for key in section.metadata
                   if section.metadata[key] != document.metadata.get(key)})
    return {"mixed_passages": sum(len(sections) > 1 for sections in overlapped), "mixed_by": {
        key: sum(len({json.dumps(section.metadata.get(key)) for section in sections}) > 1 for sections in overlapped) for key in keys}}


def median(ordered: Sequence[int]) -> Any:
    """The mean of the two middle values, an integer when whole."""
    double = ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
    return double / 2 if double % 2 else double // 2


def describe_environment() -> Dict[str, str]:
    return {"python": "{}.{}.{}".format(*sys.version_info), "sqlite": sqlite_version()}


def sha256(data: bytes) -> str:
    """Hexadecimal digest."""
    from hashlib import sha256 as digest
    return digest(data).hexdigest()


def describe_case(case: Case) -> Dict[str, Any]:
    documents = [{"id": document.id, "words": len(document.starts), "sha256": sha256(document.text.encode("utf-8"))}
                 for document in case.documents.values()]
    return {
        "file": case.file, "sha256": case.sha256, "title": case.title,
        "words": sum(document["words"] for document in documents),
        "documents": documents,
        "questions": len(case.questions),
        "answerable_questions": sum(question.answerable for question in case.questions),
        "facts": len(case.facts),
    }


def describe_outcome(documents: Mapping[str, Document], slice_text: Callable[..., str], question: Question, outcome: Outcome) -> Dict[str, Any]:
    """A question of the report: what was searched, found and sent, and the verdict on each fact."""
    facts = [describe_verdict(verdict) for verdict in outcome.verdicts]
    return {
        "id": question.id, "text": question.text, "answerable": question.answerable, **({"set": question.set} if question.set else {}),
        "filters": question.filters, "per_document": question.per_document,
        "terms": outcome.terms and [{"term": term, "passages": passages} for term, passages in outcome.terms],
        "query": outcome.query,
        "no_hits": outcome.no_hits,
        "hits_before_budget": outcome.hits and [describe_hit(documents, hit, slice_text) for hit in outcome.hits],
        "context": [describe_kept(hit, span, slice_text) for hit, span in zip(outcome.context, outcome.kept)],
        "words_sent": sum(hit.kept for hit in outcome.context),
        "redundant_words": redundant_words(outcome.kept),
        "facts": facts,
        "all_required_covered": is_complete(question, [fact["covered"] for fact in facts]),
    }


def describe_hit(documents: Mapping[str, Document], hit: Hit, slice_text: Callable[..., str]) -> Dict[str, Any]:
    passage = hit.passage
    return {"rank": hit.rank, "passage": passage.id, **passage.span._asdict(), "words": passage.words, "heading_words": passage.heading_words,
            "lead_words": passage.lead, "kept_words": hit.kept, "score": hit.score and round(hit.score, 9),
            "sections": [section.title for section in sections_of(documents[passage.span.document], passage)], "text": slice_text(passage)}


def describe_kept(hit: Hit, span: Span, slice_text: Callable[..., str]) -> Dict[str, Any]:
    return {"rank": hit.rank, "passage": hit.passage.id, **span._asdict(), "words": hit.kept,
            "heading_words": min(hit.kept, hit.passage.heading_words), "lead_words": min(hit.kept, hit.passage.lead), "truncated": hit.kept < hit.passage.words,
            "text": slice_text(hit.passage, hit.kept)}


def describe_verdict(verdict: Verdict) -> Dict[str, Any]:
    """The figures of the quote that speaks for a fact and, when it has alternatives, those of each."""
    described = {"id": verdict.fact.id, **describe_attempt(verdict.chosen)}
    if verdict.fact.several:
        described["alternatives"] = [describe_attempt(attempt) for attempt in verdict.attempts]
        described["covered_by"] = verdict.attempts.index(verdict.chosen) if verdict.chosen.loss is None else None
    return described


def describe_attempt(attempt: Attempt) -> Dict[str, Any]:
    quote, words = attempt.quote, size([attempt.quote.span])
    return {"document": quote.span.document, "quote": quote.text, "start": quote.span.start, "end": quote.span.end,
            "words": words, "words_covered": words - attempt.missing, "covered": attempt.loss is None, "loss": attempt.loss}


def compare_variants(one: Mapping[str, Any], other: Mapping[str, Any]) -> Dict[str, Any]:
    """Complete contexts of one against incomplete ones of the other, over the answerable questions that both hold.

    p is the exact two-sided sign test: min(1, 2 P(X <= the smaller)), X binomial over wins + losses; 1 when all tie.
    """
    theirs = {question["id"]: question["all_required_covered"] for question in other["questions"]}
    pairs = [(question["all_required_covered"], theirs[question["id"]]) for question in one["questions"]
             if question["all_required_covered"] is not None and theirs.get(question["id"]) is not None]
    wins, losses = pairs.count((True, False)), pairs.count((False, True))
    return {"variants": [one["id"], other["id"]], "wins": wins, "losses": losses, "ties": len(pairs) - wins - losses, "p": sign_test(wins, losses)}


def sign_test(wins: int, losses: int) -> float:
    """Two-sided p, exact but for the last rounding."""
    trials, ways, tail = wins + losses, 1, 0
    for successes in range(min(wins, losses) + 1):
        tail += ways
        ways = ways * (trials - successes) // (successes + 1)
    return min(1.0, round(2 * tail / 2 ** trials, 9)) if trials else 1.0


encode = json.JSONEncoder(ensure_ascii=False).encode


def members(value: Any) -> Optional[Tuple[str, str, List[Tuple[str, Any]]]]:
    """(opening, closing, [(label, item)]) of what is unfolded: an object that holds objects or lists, a list of objects."""
    if isinstance(value, dict):
        for item in value.values():
            if item and isinstance(item, (dict, list)):
                return "{", "}", [(encode(key) + ": ", item) for key, item in value.items()]
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        return "[", "]", [("", item) for item in value]
    return None


def unfold(value: Any, indent: str) -> str:
    """JSON with a line for each item; what holds plain values stays on one, by Python's fast encoder, which cannot indent."""
    parts = members(value)
    if not parts:
        return encode(value)
    (opening, closing, items), deeper = parts, indent + "  "
    return opening + deeper + ("," + deeper).join([label + unfold(item, deeper) for label, item in items]) + indent + closing


def render_json(value: Any, indent: str = "\n") -> Iterator[str]:
    """The JSON text of a report, in pieces no larger than a question."""
    parts = members(value) if len(indent) < 8 else None
    if not parts:
        yield unfold(value, indent)
        return
    opening, closing, items = parts
    for label, item in items:
        yield opening + indent + "  " + label
        yield from render_json(item, indent + "  ")
        opening = ","
    yield indent + closing


# --- 8. Table: a report to eighty columns ---------------------------------------------------------

TABLE_HEAD = """\
variante                passages     mots contextes    faits     mots       mots
                                  indexés  complets couverts  envoyés redondants"""
TABLE_LINE = "{:<23}{:>9}{:>9}{:>10}{:>9}{:>9}{:>11}"


def format_table(report: Mapping[str, Any]) -> str:
    """The result table, at most 80 columns wide, ending with a line break."""
    case, settings = report["case"], report["settings"]
    lines = [clip(" · ".join(filter(None, ["Atelier " + report["atelier"], case["file"], case["title"]]))),
             "{}, {}, {} dont {} avec réponse, {}".format(
                 counted(case["words"], "mot"), counted(len(case["documents"]), "document"), counted(case["questions"], "question"),
                 case["answerable_questions"], counted(case["facts"], "fait")),
             "", TABLE_HEAD, "-" * 80]
    lines += [format_line(variant["id"], variant["summary"]) for variant in report["variants"]]
    lines += ["", *format_recall(report["variants"], settings["top_k"]), "", *format_losses(report["variants"]),
              *format_comparisons(report["comparisons"]), "",
              clip("Signature : atelier {}, cas {}, top_k {}, budget {}".format(
                  report["atelier"], case["sha256"][:12], settings["top_k"], counted(settings["budget_words"], "mot")))]
    return "\n".join(lines) + "\n"


def format_comparisons(comparisons: Sequence[Mapping[str, Any]]) -> List[str]:
    """What the sign test tells apart, in words; it will often be nothing, and that is the right answer."""
    told = [each for each in comparisons if each["p"] <= SIGNIFICANT]
    if not comparisons:
        return []
    if not told:
        return ["", "Test des signes : aucune paire de variantes n'est départagée (p >= {}).".format(
            decimal(min(each["p"] for each in comparisons), 3))]
    return ["", "Test des signes : seules ces paires sont départagées"] + [
        "  " + clip("{} contre {} : {} à {}, p = {}".format(*each["variants"], each["wins"], each["losses"], decimal(each["p"], 4)), 78)
        for each in told[:LISTED_LOSSES]] + (["  et {} autres (dans le rapport)".format(len(told) - LISTED_LOSSES)] if len(told) > LISTED_LOSSES else [])


def format_line(id: str, summary: Mapping[str, Any]) -> str:
    """A variant's line of the result table."""
    unknown = "-"
    return TABLE_LINE.format(
        clip(id, 22), summary["passages_indexed"] or unknown, summary["words_indexed"] or unknown,
        "{}/{}".format(summary["complete_contexts"], summary["answerable_questions"]),
        "{}/{}".format(summary["facts_covered"], summary["facts_required"]), summary["words_sent"], summary["redundant_words"])


def format_recall(variants: Sequence[Mapping[str, Any]], top_k: int) -> List[str]:
    """Recall by proof at a few k, its ceiling, and how many passages mix sections when some do."""
    ranks = sorted({1, 2, 4, top_k} & set(range(1, top_k + 1)))
    mixed = any(variant["summary"]["mixed_passages"] for variant in variants)
    lines = ["{:<23}{}{:>18}{}".format("rappel par preuve", "".join("{:>9}".format("k = {}".format(k)) for k in ranks), "d'un seul tenant",
                                       "{:>10}".format("à cheval") if mixed else "")]
    for variant in variants:
        summary, recall = variant["summary"], variant["summary"]["recall_at"] or []
        lines.append("{:<23}{}{:>18}{}".format(
            clip(variant["id"], 22), "".join("{:>9}".format(decimal(recall[k - 1], 3) if recall else "-") for k in ranks),
            "-" if summary["facts_whole"] is None else "{}/{}".format(summary["facts_whole"], summary["facts_required"]),
            "{:>10}".format("-" if summary["mixed_passages"] is None else summary["mixed_passages"]) if mixed else ""))
    return lines


def format_losses(variants: Sequence[Mapping[str, Any]]) -> List[str]:
    """A line for each lost proof, or, when they are many, a line for each variant and stage."""
    lost = [(variant["id"], question["id"], fact) for variant in variants for question in variant["questions"]
            for fact in question["facts"] if fact["loss"]]
    if not lost:
        return ["Aucune preuve perdue."] if any(variant["summary"]["facts_required"] for variant in variants) else ["Aucune preuve exigée."]
    if len(lost) > LISTED_LOSSES:
        return ["Preuves perdues (une à une dans le rapport : --output FICHIER)"] + [
            "  {:<22}{:>6}  {}".format(clip(variant["id"], 21), variant["summary"]["losses"][stage.id], stage.label)
            for variant in variants for stage in STAGE.values() if stage.id in variant["summary"]["losses"]]
    return ["Preuves perdues"] + [
        line for variant, question, fact in lost
        for line in ("  " + clip("{} · {} · {}".format(clip(variant, 24), clip(question, 24), fact["id"]), 78),
                     "    " + clip("{} : {}".format(STAGE[fact["loss"]["stage"]].label, detail_of(fact["loss"])), 76))]


def detail_of(loss: Mapping[str, Any]) -> str:
    """What a loss carries, in French: `regles#0002, rang 2, 22 mots de trop`."""
    words = {
        "filter": ", ".join("{} = {}".format(key, value) for key, value in loss.get("filter", {}).items()),
        "missing": ", ".join("mots {} à {}".format(start, end - 1) for start, end in loss.get("missing", ())),
        "pieces": " + ".join("{} ({})".format(piece["passage"], "rang {}".format(piece["rank"]) if piece["rank"] else "sans rang")
                             for piece in loss.get("pieces", ())),
        "words_over": counted(loss["words_over"], "mot") if loss.get("words_over") else "des mots",
    }
    return STAGE[loss["stage"]].detail.format(**{**loss, **words})


def clip(text: str, width: int = 80) -> str:
    """A text on one line, cut with an ellipsis when it is wider."""
    folded = " ".join(text.split())
    return folded if len(folded) <= width else folded[:width - 1] + "…"


def counted(number: int, noun: str) -> str:
    """`1 mot`, `22 mots`; a noun of several words takes the mark on each: `fait couvert`."""
    if number < 2:
        return "{} {}".format(number, noun)
    return "{} {}".format(number, " ".join(word + ("" if word.endswith(("s", "x")) else "s") for word in noun.split()))


def decimal(number: float, digits: int) -> str:
    """`0,500`: with that many digits and the French comma."""
    return "{:.{}f}".format(number, digits).replace(".", ",")


# --- 9. Reading a case: bytes to Case -------------------------------------------------------------

CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")  # what no text may hold
MAX_DEPTH = 50           # of nesting in a case file; the format needs 5
MAX_DIGITS = 15          # of an integer: beyond, other JSON readers lose digits
LISTED_FAULTS = 100      # of one file


class Faults:
    """Gathers the faults of one file, to be shown together."""

    def __init__(self, file: str):
        self.file = file
        self.sentences: List[str] = []

    def add(self, place: str, problem: str) -> None:
        self.sentences.append(" : ".join(part for part in (self.file, place, problem) if part))

    def extend(self, place: str, error: AtelierError) -> None:
        """Add the sentences of an error that knows neither file nor place."""
        for sentence in error.sentences:
            self.add(place, sentence)

    def check(self) -> None:
        """Raise AtelierError when there is at least one fault; beyond LISTED_FAULTS they are counted."""
        told = list(dict.fromkeys(self.sentences))
        if told:
            more = ["{} : et {}.".format(self.file, counted(len(told) - LISTED_FAULTS, "autre faute"))] if len(told) > LISTED_FAULTS else []
            raise AtelierError(*told[:LISTED_FAULTS], *more)


def shown(value: Any) -> str:
    """A value as an error message quotes it: on one line, at most 80 characters."""
    if isinstance(value, str):
        return "« {} »".format(clip(value)) if value.strip() else "un texte vide"
    if isinstance(value, Unreadable):
        return "une valeur illisible"
    if isinstance(value, dict) or isinstance(value, list) and any(isinstance(each, (dict, list, Unreadable)) for each in value):
        return "un objet" if isinstance(value, dict) else "une liste"
    return clip(json.dumps(value, ensure_ascii=False))


def suggestion(value: str, known: Iterable[str]) -> str:
    """The mend of an unknown name: the nearest known one, else the list of those that are known."""
    from difflib import get_close_matches
    names = list(known)
    near = get_close_matches(value, names, 1)
    if near:
        return "Vouliez-vous dire {} ?".format(shown(near[0]))
    return "Possibles : {}{}.".format(", ".join(names[:12]), "…" if len(names) > 12 else "") if names else "Rien n'est admis ici."


class Unreadable(namedtuple("Unreadable", "problem")):
    """Stands in the parsed tree for a value that JSON readers accept and this one refuses; problem is French."""
    __slots__ = ()


class RepeatedKeys(dict):
    """An object of the file that gives some keys twice."""
    names: Tuple[str, ...] = ()


def decode(data: bytes) -> str:
    """UTF-8 text, without its BOM; AtelierError (a sentence without file) names the first bad byte."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AtelierError("octet {} (0x{:02X}, ligne {}) : ce n'est pas de l'UTF-8 ; enregistrez en UTF-8.".format(
            error.start, data[error.start], data.count(b"\n", 0, error.start) + 1)) from None
    return text[1:] if text.startswith("\ufeff") else text


def parse_json(text: str) -> Any:
    """The tree of a JSON text; what it must not hold stands in it as Unreadable or RepeatedKeys.

    Raises AtelierError (a sentence without file) when the text is no JSON.
    """
    def read_object(pairs):
        tree = RepeatedKeys(pairs)
        if len(tree) == len(pairs):
            return dict(pairs)
        keys = [key for key, _ in pairs]
        tree.names = tuple(dict.fromkeys(key for key in keys if keys.count(key) > 1))
        return tree

    def read_integer(digits):
        return int(digits) if len(digits) <= MAX_DIGITS else Unreadable("entier démesuré ({} chiffres)".format(len(digits)))

    def read_float(digits):
        number = float(digits)
        return number if abs(number) != float("inf") else Unreadable("nombre démesuré ({})".format(digits[:20]))

    def read_constant(name):
        return Unreadable("{} n'est pas un nombre JSON".format(name))

    try:
        return json.loads(text, object_pairs_hook=read_object, parse_int=read_integer, parse_float=read_float,
                          parse_constant=read_constant)
    except RecursionError:
        raise AtelierError("imbrication démesurée de listes ou d'objets ; le format n'en demande que cinq niveaux.") from None
    except json.JSONDecodeError as error:
        raise AtelierError(explain_json(error)) from None


def check_tree(tree: Any, faults: Faults, place: str = "") -> None:
    """Report what no value of the file may hold, wherever it stands under a place."""
    stack = [(place and place + " : ", tree, 0)]
    while stack:
        place, value, depth = stack.pop()
        if isinstance(value, Unreadable):
            faults.add(place, value.problem + ". Corrigez la valeur.")
        elif isinstance(value, str):
            check_characters(value, place, faults)
        elif depth >= MAX_DEPTH and value and isinstance(value, (dict, list)):
            faults.add("", "plus de {} niveaux d'imbrication ; le format n'en demande que cinq.".format(MAX_DEPTH))
        elif isinstance(value, dict):
            for name in getattr(value, "names", ()):
                faults.add(place.replace(" : ", ""), "la clé {} est donnée deux fois ; gardez-en une.".format(shown(name)))
            for key in value:
                check_characters(key, place, faults)
            stack += reversed([(key if not place else place + key if place.endswith(" : ") else "{}.{}".format(place, key), item, depth + 1)
                               for key, item in value.items()])
        elif isinstance(value, list):
            stack += reversed([("{}[{}]".format(place, number), item, depth + 1) for number, item in enumerate(value)])


def check_characters(text: str, place: str, faults: Faults) -> None:
    """Report the first control character or lone surrogate of a text, with its position."""
    match = CONTROL.search(text)
    if match:
        code = ord(match.group())
        faults.add(place, "{} U+{:04X} au caractère {} (compté depuis 0) ; {}.".format(
            "moitié de paire UTF-16 isolée" if code >= 0xD800 else "caractère de contrôle", code, match.start(),
            "le texte semble mal décodé, réenregistrez-le en UTF-8" if 0x80 <= code < 0xA0 else "supprimez ce caractère"))


def is_integer(value: Any) -> bool:
    return type(value) is int


def is_metadata(value: Any) -> bool:
    return isinstance(value, (str, int, float)) or isinstance(value, list) and all(isinstance(item, str) for item in value)


KINDS: Dict[str, Tuple[Callable[[Any], bool], str]] = {  # a type of value: its test, and the words for what is expected
    "text": (lambda value: isinstance(value, str), "un texte entre guillemets"),
    "filled": (lambda value: isinstance(value, str) and bool(value.strip()), "un texte non vide, entre guillemets"),
    "count": (lambda value: is_integer(value) and value >= 1, "un entier d'au moins 1, sans guillemets"),
    "position": (lambda value: is_integer(value) and value >= 0, "un entier positif ou nul, sans guillemets"),
    "flag": (lambda value: isinstance(value, bool), "true ou false"),
    "texts": (lambda value: isinstance(value, list), "une liste de textes, entre crochets"),
    "object": (lambda value: isinstance(value, dict), "un objet, entre accolades"),
    "list": (lambda value: isinstance(value, list), "une liste, entre crochets"),
    "metadata": (is_metadata, "un texte, un nombre, true, false ou une liste de textes"),
    "condition": (lambda value: is_metadata(value) or isinstance(value, dict), "une valeur, ou un objet de « gte », « lte » et « in »"),
    "bound": (lambda value: kind_of(value) != "booléen" and isinstance(value, (str, int, float)), "un nombre ou une date ISO"),
    "choices": (lambda value: isinstance(value, list) and value and all(isinstance(each, (str, int, float)) for each in value),
                "une liste de valeurs, non vide"),
    "any": (lambda value: True, ""),
    "revision": (lambda value: value is None or is_integer(value) or isinstance(value, str), "un entier, un texte ou null"),
}
CASE_KEYS = (Key("title", "text"), Key("description", "text"), Key("filters", "object"), Key("settings", "object"),
             Key("variants", "list"), Key("documents", "list", True), Key("facts", "list", True), Key("questions", "list", True))
SETTINGS_KEYS = (Key("top_k", "count"), Key("budget_words", "count"), Key("stop_words", "texts"), Key("index_titles", "flag"))
DOCUMENT_KEYS = (Key("id", "filled", True), Key("title", "text"), Key("text", "filled"), Key("file", "filled"),
                 Key("sections", "list"), Key("structure", "filled"))
SECTION_KEYS = (Key("title", "text"), Key("text", "filled", True))
QUOTE_KEYS = (Key("document", "filled", True), Key("quote", "filled", True), Key("start", "position"))
FACT_KEYS = (Key("id", "filled", True),) + tuple(key._replace(required=False) for key in QUOTE_KEYS) + (Key("any_of", "list"),)
VARIANT_KEYS = (Key("id", "filled", True), Key("unit", "filled", True), Key("question_filters", "flag"))
QUESTION_KEYS = (Key("id", "filled", True), Key("text", "filled", True), Key("answerable", "flag"), Key("required_facts", "texts"),
                 Key("filters", "object"), Key("per_document", "count"), Key("set", "filled"))


def read_object(value: Any, place: str, keys: Sequence[Key], faults: Faults, others: str = "") -> Dict[str, Any]:
    """The sound members of an object; faults tells what is unknown, missing, or of the wrong type.

    others names the kind of the members that keys does not list, which are refused when it is empty.
    """
    if not fits(value, "object", place, faults):
        return {}
    kinds = {key.name: key.kind for key in keys}
    sound = {}
    for name, item in value.items():
        where = "{}.{}".format(place, name if name.strip() else '""').lstrip(".")
        if name not in kinds and not others:
            faults.add(where, "clé inconnue. " + suggestion(name, kinds))
        elif fits(item, kinds.get(name, others), where, faults):
            sound[name] = item
    for key in keys:
        if key.required and key.name not in value:
            faults.add(place, "la clé {} manque ; ajoutez-la.".format(shown(key.name)))
    return sound


def fits(value: Any, kind: str, place: str, faults: Faults) -> bool:
    """Whether a value is of the kind; faults tells the first thing that is not."""
    if isinstance(value, Unreadable):
        return False  # told by check_tree
    if kind == "texts" and isinstance(value, list):
        return all([fits(item, "text", "{}[{}]".format(place, number), faults) for number, item in enumerate(value)])
    test, expected = KINDS[kind]
    if not test(value):
        faults.add(place, "attendu : {} ; trouvé : {}.".format(expected, shown(value)))
    return test(value)


def read_list(tree: Mapping[str, Any], name: str, keys: Sequence[Key], faults: Faults,
              others: str = "") -> List[Tuple[str, Any, Dict[str, Any]]]:
    """The (place, raw value, sound members) of a list of objects that have an id; ids already taken are told."""
    items, taken = [], {}
    for number, value in enumerate(tree.get(name, ())):
        place = "{}[{}]".format(name, number)
        item = read_object(value, place, keys, faults, others)
        if "id" in item:
            first = taken.setdefault(unicodedata.normalize("NFC", item["id"].strip()), place)
            if first != place:
                faults.add(place + ".id", "identifiant {} déjà pris par {}.id ; donnez-en un autre.".format(shown(item["id"]), first))
        items.append((place, value, item))
    return items


def read_case(data: bytes, name: str, read: Callable[[str], bytes]) -> Case:
    """The case that a file holds; name is the file's, read gives the bytes of a `file` of its documents.

    Raises AtelierError with all the faults of the file.
    """
    faults = Faults(name)
    try:
        tree = parse_json(decode(data))
    except AtelierError as error:
        raise AtelierError(*("{} : {}".format(name, sentence) for sentence in error.sentences)) from None
    check_tree(tree, faults)
    case = read_object(tree, "", CASE_KEYS, faults)
    documents = read_documents(case, read, faults)
    facts = read_facts(case, documents, faults)
    questions = read_questions(case, facts, documents, faults)
    settings = read_settings(case, documents, faults)
    variants = read_variants(case, documents, faults)
    faults.check()
    return Case(os.path.basename(name), sha256(data), case.get("title", ""), documents, facts, questions, settings, variants)


def read_settings(case: Mapping[str, Any], documents: Mapping[str, Optional[Document]], faults: Faults) -> Settings:
    """The settings and filters of a case, over the defaults; filters that admit nothing are told."""
    settings = read_object(case.get("settings", {}), "settings", SETTINGS_KEYS, faults)
    filters = read_filters(case.get("filters", {}), "filters", documents, faults)
    judged = judged_metadata(documents)
    if filters and judged and not any(broken_filters(filters, metadata) == {} for metadata in judged):
        alone = [key for key, wanted in filters.items() if all(broken_filters({key: wanted}, metadata) for metadata in judged)]
        for key in alone:
            faults.add("filters." + key, "aucun document n'a {} pour cette clé. Valeurs présentes : {}.".format(
                shown(filters[key]), present_values(key, judged)))
        if not alone:
            faults.add("filters", "aucun document ne passe tous ces filtres à la fois ; ôtez-en un.")
    return DEFAULTS._replace(filters=filters, **{
        key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()})


def read_variants(case: Mapping[str, Any], documents: Mapping[str, Optional[Document]], faults: Faults) -> Tuple[Variant, ...]:
    """The case's own variants, in place of the four fixed ones."""
    if case.get("variants") == []:
        faults.add("variants", "liste vide ; ôtez la clé pour les quatre variantes fixes.")
    variants = []
    for place, value, item in read_list(case, "variants", VARIANT_KEYS, faults, others="any"):
        unit = item.get("unit")
        if unit not in UNITS:
            if unit:
                faults.add(place + ".unit", "unité {} inconnue. {}".format(shown(unit), suggestion(unit, UNITS)))
            continue
        known = {key.name for key in VARIANT_KEYS}
        keys, own = UNITS[unit].keys, {name: each for name, each in value.items() if name not in known}
        given = read_object(own, place, keys, faults)
        parameters = {key.name: given.get(key.name, key.default) for key in keys}
        if {"size", "overlap"} <= set(given) and given["overlap"] >= given["size"]:
            faults.add(place + ".overlap", "recouvrement {} pour une taille de {} ; il doit être plus petit.".format(
                given["overlap"], given["size"]))
        for id, document in documents.items() if unit == "sections" else ():
            if document and not document.sections:
                faults.add(place + ".unit", "{} {}.".format(shown(id), "n'a aucun article reconnu ; voyez ses titres" if document.structure else
                                                            "est sans structure ; donnez-lui « sections » ou « structure », ou changez d'unité"))
        if "id" in item:
            variants.append(Variant(item["id"], unit, parameters, item.get("question_filters", True)))
    return tuple(variants) or VARIANTS


OPERATOR_KEYS = (Key("gte", "bound"), Key("lte", "bound"), Key("in", "choices"))
ISO_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")


def judged_metadata(documents: Mapping[str, Optional[Document]]) -> List[Mapping[str, Any]]:
    """What filters see: the metadata of each section, or of a document that has none."""
    return [judged.metadata for document in documents.values() if document for judged in document.sections or [document]]


def present_values(key: str, judged: Iterable[Mapping[str, Any]]) -> str:
    """The first dozen values that a key takes, for the sentence that refuses another."""
    values = dict.fromkeys(shown(value) for metadata in judged for value in each_value(metadata.get(key)))
    return ", ".join(islice(values, 12)) + (", …" if len(values) > 12 else "")


def read_filters(value: Any, place: str, documents: Mapping[str, Optional[Document]], faults: Faults) -> Dict[str, Any]:
    """The sound conditions of a filter; keys that no metadata have, and comparisons of unlike things, are told."""
    filters, judged = {}, judged_metadata(documents)
    for key, wanted in read_object(value, place, (), faults, others="condition").items():
        where = "{}.{}".format(place, key)
        if isinstance(wanted, dict) and (not wanted or len(read_object(wanted, where, OPERATOR_KEYS, faults)) < len(wanted)):
            if not wanted:
                faults.add(where, "condition vide ; donnez « gte », « lte » ou « in ».")
            continue
        found = [each for metadata in judged for each in each_value(metadata.get(key))]
        bounds = [wanted] if not isinstance(wanted, dict) else [bound for name, bound in wanted.items() if name in ("gte", "lte")]
        compared = bounds + (each_value(wanted.get("in")) if isinstance(wanted, dict) else [])
        compared = [each for bound in compared for each in each_value(bound)]
        unlike = [each for each in compared if found and kind_of(each) not in map(kind_of, found)]
        dates = [each for each in bounds + found if isinstance(wanted, dict) and bounds and isinstance(each, str) and not ISO_DATE.fullmatch(each)]
        if not found and judged:
            known = dict.fromkeys(name for metadata in judged for name in metadata)
            faults.add(where, "aucun document n'a cette clé parmi ses métadonnées. " + suggestion(key, known))
        elif unlike:
            faults.add(where, "{} est un {}, les documents ont : {}. Donnez une valeur de même nature.".format(
                shown(unlike[0]), kind_of(unlike[0]), present_values(key, judged)))
        elif dates:
            faults.add(where, "{}{} n'est pas une date ISO (2024-01-31) ; sans elle, l'ordre n'a pas de sens.".format(
                shown(dates[0]), "" if dates[0] in bounds else ", dans les documents,"))
        elif isinstance(wanted, dict) and {"gte", "lte"} <= set(wanted) and wanted["gte"] > wanted["lte"]:
            faults.add(where, "« gte » dépasse « lte » : rien ne peut convenir.")
        elif judged:
            filters[key] = wanted
    return filters


def read_documents(case: Mapping[str, Any], read: Callable[[str], bytes], faults: Faults) -> Dict[str, Optional[Document]]:
    """Documents by id; None stands for one whose text is not sound, so that its facts are not accused."""
    documents: Dict[str, Optional[Document]] = {}
    if case.get("documents") == []:
        faults.add("documents", "liste vide ; donnez au moins un document.")
    for place, value, item in read_list(case, "documents", DOCUMENT_KEYS, faults, others="metadata"):
        known = {key.name for key in DOCUMENT_KEYS}
        metadata = {key: each for key, each in item.items() if key not in known}
        given = [key for key in ("text", "file", "sections") if isinstance(value, dict) and key in value]
        document = None
        if isinstance(value, dict) and len(given) != 1:
            faults.add(place, "il faut « text », « file » ou « sections », l'un des trois et un seul.")
        elif given == ["sections"]:
            document = join_sections(place, item, metadata, faults)
        elif given:
            document = read_text(place, item, metadata, read, faults)
        if "id" in item:
            documents.setdefault(item["id"], document)
    return documents


def join_sections(place: str, item: Mapping[str, Any], metadata: Mapping[str, Any], faults: Faults) -> Optional[Document]:
    """A document given as sections: their texts joined by a blank line; None when one is not sound."""
    if "structure" in item:
        faults.add(place + ".structure", "sans objet avec « sections » ; ôtez-la.")
    if item.get("sections") == []:
        faults.add(place + ".sections", "liste vide ; donnez au moins une section.")
    sections, start = [], 0
    for number, value in enumerate(item.get("sections", ())):
        part = read_object(value, "{}.sections[{}]".format(place, number), SECTION_KEYS, faults, others="metadata")
        own = {key: each for key, each in part.items() if key not in ("title", "text")}
        sections.append((part.get("title", ""), own, start, part.get("text", "")))
        start += len(part.get("text", "")) + 2
    if not sections or not all(text for _, _, _, text in sections):
        return None
    text = "\n\n".join(text for _, _, _, text in sections)
    return make_document(item.get("id", ""), item.get("title", ""), text, metadata, [
        Section(title, {**metadata, **own}, start, start + len(part), ()) for title, own, start, part in sections])


def read_text(place: str, item: Mapping[str, Any], metadata: Mapping[str, Any], read: Callable[[str], bytes],
              faults: Faults) -> Optional[Document]:
    """A document given as `text` or `file`, with the sections of its structure; None when it is not sound."""
    where, text, structure = place + ".text", item.get("text"), item.get("structure")
    if "file" in item:
        where = "{}.file ({})".format(place, item["file"])
        try:
            text = decode(read(item["file"]))
        except AtelierError as error:
            faults.extend(where, error)
            return None
        check_characters(text, where, faults)
        if not text.strip():
            faults.add(where, "document vide ; donnez-lui un texte.")
    if not text or not text.strip():
        return None
    title, header, sections, label = item.get("title", ""), {}, [], ""
    if structure in STRUCTURES:
        try:
            found, header, sections = STRUCTURES[structure](text)
            title = title or found
            label = " ".join(filter(None, [header.get("reference"), title, *header.get("parties", ())]))
        except AtelierError as error:
            faults.extend(where, error)
            return None
    elif structure:
        faults.add(place + ".structure", "structure {} inconnue. {}".format(shown(structure), suggestion(structure, STRUCTURES)))
        return None
    metadata = {**header, **metadata}
    sections = [section._replace(metadata=metadata) for section in sections]
    document = make_document(item.get("id", ""), title, text, metadata, sections, label)
    return document._replace(file=item.get("file", ""), structure=structure or "")


def read_facts(case: Mapping[str, Any], documents: Mapping[str, Optional[Document]], faults: Faults) -> Dict[str, Optional[Fact]]:
    """Facts by id; None stands for one whose quotes could not all be located."""
    facts: Dict[str, Optional[Fact]] = {}
    texts = FoldedTexts(documents)
    for place, value, item in read_list(case, "facts", FACT_KEYS, faults):
        several = isinstance(value, dict) and "any_of" in value
        if several and {"document", "quote", "start"} & set(value):
            faults.add(place, "« any_of » remplace « document », « quote » et « start » ; ôtez-les.")
        if several and item.get("any_of") == []:
            faults.add(place + ".any_of", "liste vide ; donnez au moins une citation.")
        parts = [("{}.any_of[{}]".format(place, number), part) for number, part in enumerate(item.get("any_of", ()))] if several else [
            (place, {key.name: value[key.name] for key in QUOTE_KEYS if key.name in value} if isinstance(value, dict) else {})]
        quotes = [read_quote(*part, documents, texts, faults) for part in parts]
        if "id" in item:
            facts.setdefault(item["id"], Fact(item["id"], tuple(quotes), several) if quotes and all(quotes) else None)
    return facts


def read_quote(place: str, value: Any, documents: Mapping[str, Optional[Document]], texts: FoldedTexts, faults: Faults) -> Optional[Quote]:
    """A quote with its one place in its document; None, and a fault, when it has none."""
    item = read_object(value, place, QUOTE_KEYS, faults)
    name, quote = item.get("document"), item.get("quote")
    if name is not None and documents and name not in documents:
        faults.add(place + ".document", "document {} inconnu. {}".format(shown(name), suggestion(name, documents)))
    elif quote and documents.get(name):
        try:
            return Quote(quote, Span(name, *choose_place(quote, item.get("start"), name, texts)))
        except AtelierError as error:
            faults.add(place + ".quote", "{} {}".format(shown(quote), error))
    return None


def read_questions(case: Mapping[str, Any], facts: Mapping[str, Optional[Fact]], documents: Mapping[str, Optional[Document]],
                   faults: Faults) -> Tuple[Question, ...]:
    """The questions of a case; what they require must be known, and agree with their being answerable."""
    questions = []
    for place, value, item in read_list(case, "questions", QUESTION_KEYS, faults):
        required, answerable = item.get("required_facts", []), item.get("answerable", True)
        for number, fact in enumerate(required):
            where = "{}.required_facts[{}]".format(place, number)
            if "facts" in case and fact not in facts:
                faults.add(where, "fait {} inconnu. {}".format(shown(fact), suggestion(fact, facts)))
            elif fact in required[:number]:
                faults.add(where, "fait {} exigé deux fois ; ôtez-en un.".format(shown(fact)))
        if isinstance(value, dict) and value.get("answerable", True) is not answerable:
            pass  # its type is wrong: what it means is unknown
        elif answerable and not required and isinstance(value, dict) and value.get("required_facts", []) == []:
            faults.add(place, "question sans fait exigé ; listez-les dans « required_facts », ou écrivez \"answerable\": false.")
        elif not answerable and required:
            faults.add(place, "question déclarée sans réponse, mais qui exige des faits ; ôtez les faits ou « answerable ».")
        filters = read_filters(item.get("filters", {}), place + ".filters", documents, faults)
        if {"id", "text"} <= set(item):
            questions.append(Question(item["id"], item["text"], answerable, tuple(required), filters, item.get("per_document"), item.get("set")))
    return tuple(questions)


LISTED_PLACES = 10       # of an ambiguous quote


class Folded(namedtuple("Folded", "text starts")):
    """A text whose runs of white space are one space; word i begins at character starts[i]."""
    __slots__ = ()


def fold(text: str) -> Folded:
    """A text with one space between its words."""
    words = text.split()
    return Folded(" ".join(words), array("I", accumulate([0] + [len(word) + 1 for word in words[:-1]])))


class FoldedTexts(dict):
    """The folded text of each document, made when it is first asked for."""

    def __init__(self, documents: Mapping[str, Optional[Document]]):
        super().__init__()
        self.documents = documents

    def __missing__(self, name: str) -> Folded:
        self[name] = fold(self.documents[name].text)
        return self[name]


def is_mark(character: str) -> bool:
    """Whether a character combines with the one before it."""
    return unicodedata.category(character)[0] == "M"


def cuts_a_word(text: str, at: int) -> bool:
    """Whether the limit before character at falls inside a word or a number."""
    if not 0 < at < len(text):
        return False
    if is_mark(text[at]):
        return True
    base = at - 1
    while base and is_mark(text[base]):
        base -= 1
    left, right = text[max(0, at - 2):at], text[at:at + 2]
    return bool(text[base].isalnum() and right[0].isalnum()
                or re.fullmatch(r"\d[.,]", left) and right[0].isdigit()
                or left[-1].isdigit() and re.fullmatch(r"[.,]\d", right))


def occurrences(quote: str, folded: Folded, first: int = 0) -> Iterator[Tuple[int, int]]:
    """The (start, end) words that each whole occurrence of a quote touches, from word first on.

    Occurrences inside one and the same word touch the same place: it is given once.
    """
    needle, last = " ".join(quote.split()), None
    at = folded.text.find(needle, folded.starts[first]) if first < len(folded.starts) else -1
    while at >= 0:
        if not (cuts_a_word(folded.text, at) or cuts_a_word(folded.text, at + len(needle))):
            place = bisect_right(folded.starts, at) - 1, bisect_left(folded.starts, at + len(needle))
            if place != last:
                yield place
            last = place
        at = folded.text.find(needle, at + 1)


def choose_place(quote: str, start: Optional[int], name: str, texts: FoldedTexts) -> Tuple[int, int]:
    """The (start, end) words of a quote in a document; AtelierError tells why it has no place, or which it may have."""
    here = texts[name]
    if start is not None:
        chosen = next(occurrences(quote, here, start), None)
        if chosen and chosen[0] == start:
            return chosen
    found = list(islice(occurrences(quote, here), LISTED_PLACES + 1))
    if len(found) == 1 and start is None:
        return found[0]
    places = ", ".join(str(begin) for begin, _ in found[:LISTED_PLACES]) + (", …" if len(found) > LISTED_PLACES else "")
    if not found:
        others = [shown(other) for other, document in texts.documents.items() if document and any(occurrences(quote, texts[other]))]
        if others:
            raise AtelierError("n'est pas dans {}, mais dans {} ; corrigez « document ».".format(shown(name), ", ".join(others)))
        raise AtelierError("n'est pas dans {}. {}".format(shown(name), explain_absence(quote, here)))
    if start is None:
        raise AtelierError("figure plusieurs fois dans {}, aux mots {} ; précisez laquelle, par exemple \"start\": {}.".format(
            shown(name), places, found[0][0]))
    raise AtelierError("ne commence pas au mot {} de {} ; « start » peut valoir : {}.".format(start, shown(name), places))


# --- 10. Structures: contracts and Markdown to sections -------------------------------------------

DASHES = "‐‑‒–—―−-"
ARTICLE = re.compile(r"""(?ix) \s* (?: (?: article | annexe ) \s+ | art (?: \.\s* | \s+ ) ) (?: n° \s* )?
    (?P<number> \d+ (?: [.‑‐-] \d+ )* (?: er | ère )? | premi(?: er | ère ) | unique | [ivxlcdm]+
              | [lrd]\.?\s? \d+ (?: [.‑‐-] \d+ )* | [a-z] )
    (?: \s+ (?: bis | ter | quater | quinquies ) )? \s* (?: \.? \s* [:{}] .* | \.? ) \s*""".format(DASHES))
ALMOST_ARTICLE = re.compile(r"(?i)\s*(?:article|art\.|annexe|avenant)\b.{0,60}[^\s.,;:]\s*")  # what a reader may take for a heading
CLAUSE = re.compile(r"\s*(\d+)(?:\.[1-9]\d?)+[.)]?\s+(?!(?:euros?|%|€|[a-z]{1,2}|heures?|jours?|mois|fois)\b|[%€])")
HEADER_LINE = re.compile(r"\s*([^:]+?)\s*:\s*(.*\S)")
HEADER_KEYS = ("Référence", "Type", "Parties", "Date de signature")
ATX_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
FENCE = re.compile(r" {0,3}(```+|~~~+)")


def lines_of(text: str) -> Iterator[Tuple[int, str]]:
    """(first character, text without its line end) of each line."""
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, line.rstrip("\r\n\x0b\x0c\x85\u2028\u2029")
        start += len(line)


def make_key(label: str) -> str:
    """`Date de signature` gives date_de_signature."""
    return "_".join("".join(c for c in unicodedata.normalize("NFD", label.lower()) if not is_mark(c)).split())


def parse_contract(text: str) -> Tuple[str, Dict[str, Any], List[Section]]:
    """A first line that is the title, `Clé : valeur` lines, a blank line, then articles and their numbered clauses."""
    lines = list(lines_of(text))
    first = next(number for number, (_, line) in enumerate(lines) if line.strip())
    last = next((number for number in range(first + 1, len(lines)) if not lines[number][1].strip()), len(lines))
    metadata, problems = {}, []
    for number in range(first + 1, last):
        match = HEADER_LINE.fullmatch(lines[number][1])
        if match and make_key(match.group(1)) in metadata:
            problems.append("ligne {} : la clé {} est donnée deux fois dans l'en-tête ; gardez-en une.".format(number + 1, shown(match.group(1))))
        elif match:
            metadata[make_key(match.group(1))] = match.group(2)
        else:
            problems.append("ligne {} : « Clé : valeur » attendue dans l'en-tête ; trouvé : {}.".format(number + 1, shown(lines[number][1])))
    for rank, key in enumerate(HEADER_KEYS, first + 1):
        if make_key(key) not in metadata and not (rank < last and not HEADER_LINE.fullmatch(lines[rank][1])):
            problems.append("ligne {} : « {} : … » attendue dans l'en-tête ; trouvé : {}.".format(
                rank + 1, key, shown(lines[rank][1]) if rank < len(lines) else "la fin du texte"))
    if problems:
        raise AtelierError(*problems)
    metadata["parties"] = metadata["parties"].split(" ; ")
    return " ".join(lines[first][1].split()), metadata, make_sections(text, mark_articles(lines[last:]))


def mark_articles(lines: Iterable[Tuple[int, str]]) -> Iterator[Tuple[int, Optional[str]]]:
    """(character, title) where a section begins, (character, None) where a clause does; a heading keeps what follows it."""
    number, fresh, begun = None, False, False
    for start, line in lines:
        heading, clause = ARTICLE.fullmatch(line), CLAUSE.match(line)
        if heading:
            digits = re.match(r"\d+", heading.group("number"))
            number = digits.group() if digits else "1" if heading.group("number").lower().startswith("premi") else None
            yield start, " ".join(line.split())
        elif line.strip() and not begun:
            yield start, ""
        elif clause and not fresh and number in (None, clause.group(1)):
            yield start, None
        if line.strip():
            fresh, begun = bool(heading), True


def parse_markdown(text: str) -> Tuple[str, Dict[str, Any], List[Section]]:
    """ATX headings, outside code fences, begin sections; blank lines, outside them too, separate paragraphs."""
    return "", {}, make_sections(text, mark_headings(text))


def mark_headings(text: str) -> Iterator[Tuple[int, Optional[str]]]:
    """As mark_articles, for paragraphs."""
    fence, fresh, begun, blank = "", False, False, False
    for start, line in lines_of(text):
        opening = FENCE.match(line)
        heading = None if fence else ATX_HEADING.fullmatch(line)
        if heading:
            yield start, " ".join((heading.group(1) or "").split())
        elif line.strip() and not begun:
            yield start, ""
        elif line.strip() and blank and not fence and not fresh:
            yield start, None
        if line.strip():
            fresh, begun = bool(heading), True
        blank = not line.strip()
        if opening and not fence:
            fence = opening.group(1)
        elif opening and opening.group(1).startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""


def make_sections(text: str, marks: Iterable[Tuple[int, Optional[str]]]) -> List[Section]:
    """Sections, from the characters where they (with a title) and their next pieces (with None) begin."""
    sections: List[Section] = []
    marks = list(marks)
    for (start, title), (end, _) in zip(marks, marks[1:] + [(len(text), None)]):
        start, end = end - len(text[start:end].lstrip()), start + len(text[start:end].rstrip())
        if title is not None:
            sections.append(Section(title, {}, start, end, []))
        sections[-1].pieces.append((start, end))
    return [section._replace(end=section.pieces[-1][1]) for section in sections]


STRUCTURES = {"contract": parse_contract, "markdown": parse_markdown}


# --- 11. Explanations: what is wrong with a JSON text, a quote, positions, a file -----------------

JSON_MESSAGES = (  # the beginnings of the standard parser's messages
    ("Expecting property name", "un nom de clé entre guillemets droits est attendu"),
    ("Expecting ',' delimiter", "il manque une virgule, une fermeture, ou la barre devant un guillemet du texte (\\\")"),
    ("Expecting ':' delimiter", "il manque le deux-points après la clé"),
    ("Expecting value", "une valeur est attendue (true, false et null s'écrivent en minuscules)"),
    ("Extra data", "du texte suit la fin du JSON"),
    ("Unterminated string", "ce texte n'a pas de guillemet fermant"),
    ("Invalid control character", "un retour à la ligne, une tabulation ou un caractère de contrôle est écrit tel quel ; écrivez \\n ou \\t"),
    ("Invalid \\", "une barre oblique inverse n'annonce rien de connu ; doublez-la"),
)


def explain_json(error: json.JSONDecodeError) -> str:
    """Where a text stops being JSON, and how to mend it; the same sentence whatever the version of Python."""
    before = error.doc[:error.pos + error.msg.startswith("Illegal trailing comma")].rstrip()
    problem = next((french for english, french in JSON_MESSAGES if error.msg.startswith(english)), "syntaxe inattendue")
    position = error.pos
    if not error.doc.strip():
        problem = "le fichier est vide"
    elif before.endswith(",") and error.doc[len(before):].lstrip()[:1] in ("]", "}"):
        position, problem = len(before) - 1, "une virgule suit le dernier élément ; ôtez-la"
    line = error.doc.count("\n", 0, position) + 1
    return "ligne {}, colonne {} : JSON invalide : {}.".format(line, position - error.doc.rfind("\n", 0, position), problem)


INVISIBLE = {  # they split FTS5's words but not str.split()'s
    "\u00ad": "trait d'union conditionnel", "\u200b": "espace de largeur nulle", "\u200c": "antiliant sans chasse",
    "\u200d": "liant sans chasse", "\u200e": "marque gauche-à-droite", "\u200f": "marque droite-à-gauche",
    "\u2060": "gluon de mots", "\ufeff": "indicateur d'ordre des octets",
}
# What a keyboard or a converter changes unseen: the French name of the difference, and what erases it,
# from the slightest to the strongest; the strongest are given up first when looking for the culprits.
ERASERS: Tuple[Tuple[str, Callable[[str], str]], ...] = (
    ("forme Unicode, NFC ou NFD", lambda text: unicodedata.normalize("NFC", text)),
    ("caractère invisible", lambda text: re.sub("[{}]".format("".join(INVISIBLE)), "", text)),
    ("apostrophe, ' ou ’", lambda text: re.sub("[’‘ʼ′`´]", "'", text)),
    ("guillemets", lambda text: re.sub("[\"«»“”„]", "", text)),
    ("tiret", lambda text: re.sub("[{}]".format(DASHES), "-", text)),
    ("points de suspension, … ou ...", lambda text: text.replace("…", "...")),
    ("ponctuation", lambda text: re.sub(r"[.,;:!?()\[\]]", "", text)),
    ("ligature", lambda text: unicodedata.normalize("NFKC", text).replace("œ", "oe").replace("Œ", "Oe").replace("æ", "ae")),
    ("majuscules", str.casefold),
    ("accents", lambda text: "".join(c for c in unicodedata.normalize("NFD", text) if not is_mark(c))),
    ("espaces ou traits d'union", lambda text: re.sub(r"[\s'-]", "", text)),
)
COMPARED_WORDS = 200  # of an absent quote


def erase(text: str, without: Sequence[str] = ()) -> str:
    """The text after every eraser but some."""
    for name, eraser in ERASERS:
        if name not in without:
            text = eraser(text)
    return text


def explain_absence(quote: str, folded: Folded) -> str:
    """The nearest text of a document to a quote that is not in it, and what differs."""
    words, sought = folded.text.split(" "), quote.split()
    at = folded.text.find(" ".join(sought))
    if at >= 0:
        first = bisect_right(folded.starts, at) - 1
        return "Il n'y est qu'à l'intérieur d'un mot ou d'un nombre : {}. Citez des mots entiers.".format(
            shown(" ".join(words[first:first + len(sought)])))
    pieces = [" ".join(piece.split()) for piece in re.split(r"\[?(?:…|\.\.\.)\]?", quote)]
    if len(pieces) > 1 and all(piece in folded.text for piece in pieces):
        return "Ses morceaux y sont, séparés : une citation est d'un seul tenant ; faites un fait de chaque morceau."
    start, end, differences = nearest_words(sought[:COMPARED_WORDS], words)
    if start == end:
        return "Aucun de ses mots n'y figure : est-ce le bon document ?"
    return "Texte le plus proche (mot {}) : {} ; ce qui diffère : {}. Recopiez le texte.".format(
        start, shown(" ".join(words[start:end])), ", ".join(differences[:3]))


def nearest_words(sought: Sequence[str], words: Sequence[str]) -> Tuple[int, int, List[str]]:
    """(start, end, differences) of the words around the longest run that a quote shares with a text, spelling apart."""
    from difflib import SequenceMatcher
    loose, erased = ([erased_word(word) for word in each] for each in (sought, words))
    matcher = SequenceMatcher(None, erased, loose, autojunk=False)
    run = matcher.find_longest_match(0, len(erased), 0, len(loose))
    if not run.size or not "".join(loose[run.b:run.b + run.size]).isalnum():
        joined, limits = "".join(erased), list(accumulate(map(len, erased)))  # words may be cut or joined
        at = joined.find("".join(loose)) if "".join(loose).isalnum() else -1
        if at < 0:
            return 0, 0, []
        start, end = bisect_right(limits, at), bisect_left(limits, at + len("".join(loose))) + 1
        return start, end, [tell_difference(words[start:end], sought)]
    start = max(0, run.a - run.b - 2)  # room for words added or left out
    matcher.set_seq1(erased[start:run.a - run.b + len(loose) * 5 // 4 + 3])
    changes = trim(matcher.get_opcodes(), sought)
    differences = []
    for kind, a, b, c, d in changes:
        written, quoted = words[start + a:start + b], sought[c:d]
        if kind != "equal":
            differences.append(tell_difference(written, quoted))
        for at, (one, other) in enumerate(zip(written, quoted) if kind == "equal" else ()):
            if one != other and not (c + at in (0, len(sought) - 1) and other in one):  # an edge may be a part of a word
                differences.append(tell_difference([one], [other]))
    return start + changes[0][1], start + changes[-1][2], differences


@lru_cache(maxsize=1 << 16)
def erased_word(word: str) -> str:
    """The word after every eraser; as it is when nothing would be left."""
    return erase(word) or word


def tell_difference(written: Sequence[str], quoted: Sequence[str]) -> str:
    """`« l'an » y est écrit « l’an » (apostrophe, ' ou ’)`."""
    one, other = " ".join(written), " ".join(quoted)
    if not one or not other:
        return "{} manque à la citation".format(shown(one)) if one else "{} n'y est pas".format(shown(other))
    spared: List[str] = []
    for name, _ in reversed(ERASERS):
        if erase(one, spared + [name]) == erase(other, spared + [name]):
            spared.append(name)
    culprits = [name for name, _ in ERASERS if name not in spared]
    return "{} y est écrit {}{}".format(shown(other), shown(one), " ({})".format(", ".join(culprits)) if erase(one) == erase(other) else "")


def trim(changes: Sequence[Tuple[str, int, int, int, int]], sought: Sequence[str]) -> List[Tuple[str, int, int, int, int]]:
    """Edit operations without the words of the text that stand before and after the quote."""
    kept = [change for change in changes if change[0] != "delete" or change not in (changes[0], changes[-1])]
    for edge in {0, len(kept) - 1}:
        kind, a, b, c, d = kept[edge]
        room = d - c if "".join(sought[c:d]).isalnum() or kind == "equal" else 0  # what stands for a lone sign is not its double
        kept[edge] = (kind, max(a, b - room), b, c, d) if edge == 0 else (kind, a, min(b, a + room), c, d)
    return kept


VIEWS: Tuple[Tuple[str, Callable[[str], Any], Callable[[Any], str]], ...] = (  # other ways of counting: French name, encoder, decoder
    ("en octets UTF-8", lambda text: text.encode("utf-8"), lambda data: data.decode("utf-8", "replace")),
    ("en unités UTF-16", lambda text: memoryview(text.encode("utf-16-le")).cast("H"), lambda data: bytes(data).decode("utf-16-le", "replace")),
    ("avec des fins de ligne CRLF", lambda text: re.sub("\r?\n", "\r\n", text), str),
    ("avec des fins de ligne LF", lambda text: text.replace("\r\n", "\n"), str),
    ("avec un indicateur d'ordre des octets (BOM) en tête", lambda text: "\ufeff" + text, str),
)


def explain_positions(text: str, whole: str, start: int, end: Optional[int]) -> str:
    """How positions that are wrong in characters would be right; empty when they would not."""
    for name, encode_view, decode_view in VIEWS:
        view, length = encode_view(whole), len(encode_view(text)) - (name == VIEWS[-1][0])
        if decode_view(view[start:start + length if end is None else end]).split() == text.split():
            return "Elles conviendraient comptées {} : donnez-les en caractères du document.".format(name)
    return ""


OS_PROBLEMS = {
    "ENOENT": "introuvable", "EACCES": "accès refusé", "EPERM": "opération refusée", "EISDIR": "c'est un dossier",
    "ENOTDIR": "un élément du chemin n'est pas un dossier", "ENOSPC": "plus de place sur le disque", "EROFS": "disque en lecture seule",
    "EDQUOT": "quota dépassé", "EFBIG": "fichier trop grand", "ENAMETOOLONG": "nom trop long", "ELOOP": "liens en boucle",
    "EINVAL": "nom ou opération invalide", "EIO": "erreur du disque", "EBADF": "descripteur fermé", "ENXIO": "rien à l'autre bout",
}


def os_problem(error: OSError) -> str:
    """A system error in French, without its path."""
    code = errorcode.get(error.errno or 0, str(error.errno))
    return OS_PROBLEMS.get(code, "erreur système {}".format(code))


# --- 12. Warnings: what does not stop a run but spoils its reading --------------------------------

def idle_facts(case: Case, variants: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    required = {fact for question in case.questions for fact in question.required_facts}
    for fact in case.facts:
        if fact not in required:
            yield "fait {} : aucune question ne l'exige.".format(shown(fact))


def invisible_characters(case: Case, variants: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    holders = [("document", each) for each in case.documents.values()] + [("question", each) for each in case.questions]
    for kind, holder in holders:
        found = re.findall("[{}]".format("".join(INVISIBLE)), holder.text)
        for character in dict.fromkeys(found):
            at = len((holder.text[:holder.text.index(character)] + "x").split()) - 1
            yield "{} {} : {} (U+{:04X}, {} fois, d'abord au mot {}) ; la recherche y coupe le mot en deux, ôtez ce caractère.".format(
                kind, shown(holder.id), INVISIBLE[character], ord(character), found.count(character), at)


def doubtful_headings(case: Case, variants: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Lines of a contract that look like an article's title and are not read as one."""
    remedy = "un titre s'écrit « Article 4 – Prix »."
    for document in case.documents.values():
        if document.structure != "contract":
            continue
        if not any(section.title for section in document.sections):
            yield "document {} : aucun article reconnu dans ce contrat ; {}".format(shown(document.id), remedy)
        for number, (_, line) in enumerate(lines_of(document.text), 1):
            if ALMOST_ARTICLE.fullmatch(line) and not ARTICLE.fullmatch(line):
                yield "document {}, ligne {} : {} n'est pas lu comme un titre ; {}".format(shown(document.id), number, shown(line), remedy)


def contexts_beyond_hits(case: Case, variants: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Engines whose context holds words that their hits do not."""
    for variant in variants:
        for question in variant["questions"] if variant["chunking"] is None else ():
            hits, sent = ([Span(each["document"], each["start"], each["end"]) for each in question[key] or ()]
                          for key in ("hits_before_budget", "context"))
            if question["hits_before_budget"] is not None and size(union(hits)) < size(union(hits + sent)):
                yield "moteur {}, question {} : le contexte a des mots que « hits » n'a pas.".format(shown(variant["id"]), shown(question["id"]))


def questions_without_terms(case: Case, variants: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not case.questions:
        yield "aucune question : seuls les passages sont décrits."
    for question in variants[0]["questions"]:
        if question["terms"] == []:
            yield "question {} : aucun mot à chercher, une fois ôtés les mots vides.".format(shown(question["id"]))


def documents_without_filtered_key(case: Case, variants: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for key in case.settings.filters:
        without = [shown(document.id) for document in case.documents.values()
                   if not any(key in judged.metadata for judged in document.sections or [document])]
        if without:
            yield "filtre « {} » : clé absente de {} ; le filtre les écarte.".format(key, ", ".join(without[:5]) + (", …" if len(without) > 5 else ""))


def idle_variants(case: Case, variants: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Variants that cut the same passages, and overlaps without effect."""
    alike: Dict[str, List[str]] = {}
    for variant in variants:
        if variant["passages"] is None:
            continue  # another engine
        cutting = json.dumps([variant["passages"], variant["summary"]["words_indexed"], variant["question_filters"]])
        alike.setdefault(cutting, []).append(variant["id"])
        if variant["chunking"].get("overlap") and all(len(passages) == 1 for passages in variant["passages"].values()):
            yield "variante {} : le recouvrement n'a aucun effet, chaque document tient en un passage.".format(shown(variant["id"]))
    for ids in alike.values():
        if len(ids) > 1:
            yield "variantes {} : mêmes passages ; les comparer n'apprend rien.".format(", ".join(ids))


CHECKS = (idle_facts, invisible_characters, doubtful_headings, contexts_beyond_hits, questions_without_terms,
          documents_without_filtered_key, idle_variants)


# --- 13. Baseline: what changed since an earlier report -------------------------------------------

def compare_reports(report: Mapping[str, Any], earlier: Mapping[str, Any]) -> Dict[str, Any]:
    """What changed since an earlier report, per variant that both have: facts gained, lost, or lost at another stage.

    differences name, in French, what makes them hard to compare, which is left out; where a document changed nothing is compared.
    """
    differences = name_changes("document", *({document["id"]: document["sha256"] for document in each["case"]["documents"]}
                                             for each in (report, earlier)))
    comparable = not differences
    differences += name_changes("réglage", report["settings"], earlier["settings"])
    ours, theirs = ({variant["id"]: variant for variant in each["variants"]} for each in (report, earlier))
    if comparable:
        differences += name_changes("variante", *({id: [variant["chunking"], variant["question_filters"]] for id, variant in each.items()}
                                                  for each in (ours, theirs)))
    variants = {}
    for id in ours if comparable else ():
        if id in theirs:
            asked, told = ({question["id"]: [question["text"], question["filters"], question["per_document"]] for question in each[id]["questions"]}
                           for each in (ours, theirs))
            differences += name_changes("question", asked, told)
            now, then = (fates(each[id]) for each in (ours, theirs))
            differences += name_changes("fait exigé", *({" / ".join(key): quote for key, (quote, _) in each.items()} for each in (now, then)))
            same = [key for key in now if key in then and asked[key[0]] == told.get(key[0]) and now[key][0] == then[key][0]]
            pairs = [(key, then[key][1], now[key][1]) for key in same if now[key][1] != then[key][1]]
            variants[id] = {
                "gained": [list(key) for key, before, after in pairs if not after],
                "lost": [[*key, after] for key, before, after in pairs if not before],
                "changed": [[*key, before, after] for key, before, after in pairs if before and after]}
    return {"sha256": earlier["case"]["sha256"], "differences": list(dict.fromkeys(differences)), "variants": variants}


def name_changes(kind: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> List[str]:
    """A French sentence for each name that only one of two reports has, or that they do not hold for the same."""
    mark = "e" if kind in ("variante", "question") else ""
    told = {name: "absent{} de la référence" for name in ours if name not in theirs}
    told.update({name: "absent{} de ce rapport" for name in theirs if name not in ours})
    told.update({name: "différent{}" for name in ours if name in theirs and ours[name] != theirs[name]})
    return ["{} {} : {}".format(kind, shown(name), what.format(mark)) for name, what in told.items()]


def fates(variant: Mapping[str, Any]) -> Dict[Tuple[str, str], Tuple[Any, Optional[str]]]:
    """{(question id, fact id): (its quotes, the stage that lost it)} of a variant."""
    def quotes(fact):
        return [[each[key] for key in ("document", "quote", "start")] for each in fact.get("alternatives", [fact])]
    return {(question["id"], fact["id"]): (quotes(fact), fact["loss"] and fact["loss"]["stage"])
            for question in variant["questions"] for fact in question["facts"]}


def format_baseline(baseline: Mapping[str, Any]) -> str:
    """What changed since an earlier report, to print under the table."""
    lines = ["", "Depuis le rapport de référence"] + ["  attention : {}".format(each) for each in baseline["differences"]]
    if not baseline["variants"]:
        lines.append("  rien n'est comparé")
    for id, each in baseline["variants"].items():
        lines.append("  " + clip("{} : {}, {}, {}".format(id, counted(len(each["gained"]), "preuve gagnée"), counted(len(each["lost"]), "perdue"),
                                                        counted(len(each["changed"]), "étape changée")), 78))
        lines += ["    " + clip(text, 76) for text in
                  ["+ {} · {}".format(*one) for one in each["gained"]]
                  + ["- {} · {} : {}".format(one[0], one[1], STAGE[one[2]].label) for one in each["lost"]]
                  + ["~ {} · {} : {}, puis {}".format(one[0], one[1], STAGE[one[2]].label, STAGE[one[3]].label) for one in each["changed"]]]
    return "\n".join(lines) + "\n"


def parse_report(data: bytes) -> Dict[str, Any]:
    """An earlier report; AtelierError (a sentence without file) when it is none."""
    report = parse_json(decode(data))
    try:  # go through all that will be read of it
        compare_reports(report, report)
        for variant in report["variants"] + []:
            for question in variant["questions"]:
                [(each["passage"], each["text"] + "") for each in [*(question["hits_before_budget"] or ()), *question["context"]]]
    except (KeyError, TypeError, AttributeError):
        raise AtelierError("ce n'est pas un rapport d'Atelier, ou il est abîmé ; donnez un fichier écrit par --output.") from None
    return report


# --- 14. Engines: what others sent, to the same evaluator -----------------------------------------

class Row(namedtuple("Row", "tool text document start end")):
    """Where a tool's record holds its text, its document and the characters where it starts and ends; a dot goes inside."""
    __slots__ = ()


ROWS = (
    Row("Atelier", "text", "document", "start_char", "end_char"),
    Row("LangChain", "page_content", "metadata.source", "metadata.start_index", None),
    Row("LangChain, to_json", "kwargs.page_content", "kwargs.metadata.source", "kwargs.metadata.start_index", None),
    Row("LlamaIndex", "text", "ref_doc_id", "start_char_idx", "end_char_idx"),
    Row("LlamaIndex, to_dict", "text", "relationships.1.node_id", "start_char_idx", "end_char_idx"),
    Row("LlamaIndex, with score", "node.text", "node.relationships.1.node_id", "node.start_char_idx", "node.end_char_idx"),
    Row("Haystack", "content", "meta.source_id", "meta.split_idx_start", None),
    Row("Haystack, flat", "content", "source_id", "split_idx_start", None),
    Row("Chonkie, semchunk", "text", "document", "start_index", "end_index"),
)
LINE_NAMES = {"question": ("question", "user_input"), "context": ("context", "retrieved_contexts")}  # ragas: the second ones


def look_up(record: Mapping[str, Any], path: Optional[str]) -> Any:
    """The value at a dotted path; None when there is none."""
    for name in path.split(".") if path else ():
        record = record.get(name) if isinstance(record, dict) else None
    return record if path else None


def field(record: Mapping[str, Any], role: str) -> Any:
    """The value that plays a role in a record, whatever the tool."""
    return next((value for row in ROWS for value in [look_up(record, getattr(row, role))] if value is not None), None)


class Sources:
    """What records may come from: the documents of a case and the passages of its variants, cut when first asked for."""

    def __init__(self, case: Case):
        self.case = case
        self.texts = FoldedTexts(case.documents)
        self.questions = {question.id: question for question in case.questions}
        self.by_text = {" ".join(question.text.split()): question.id for question in case.questions}
        self.warnings: List[str] = []
        self.names = {**{document.file: id for id, document in case.documents.items() if document.file}, **{id: id for id in case.documents}}
        self.cutting = lru_cache(None)(lambda id: next(cut(case.documents, variant) for variant in case.variants if variant.id == id))

    def document(self, name: Any) -> Document:
        if not isinstance(name, str) or name not in self.names:
            raise AtelierError("document {} inconnu. {}".format(shown(name), suggestion(str(name), self.names)))
        return self.case.documents[self.names[name]]

    def passage(self, name: Any) -> Passage:
        """`fixe_48_0/frais#0003`."""
        ids = [variant.id for variant in self.case.variants]
        variant = next((id for id in ids if str(name).startswith(id + "/")), None)
        if variant is None and isinstance(name, str) and "/" in name:
            raise AtelierError("variante {} inconnue. {}".format(shown(name.split("/")[0]), suggestion(name.split("/")[0], ids)))
        if variant is None:
            raise AtelierError("passage {} inconnu ; il s'écrit <variante>/<passage>, comme dans --export.".format(shown(name)))
        by_id = self.cutting(variant).by_id
        id = name[len(variant) + 1:]
        if id not in by_id:
            raise AtelierError("passage {} inconnu de la variante {}. {}".format(shown(id), shown(variant), suggestion(id, by_id)))
        return by_id[id]._replace(id=name)


def resolve(record: Any, sources: Sources) -> Tuple[Passage, int]:
    """(passage, words kept) of a record; AtelierError (a sentence without file) when it is not what it says."""
    record = {"text": record} if isinstance(record, str) else record
    if not isinstance(record, dict):
        raise AtelierError("passage attendu : un texte ou un objet ; trouvé : {}.".format(shown(record)))
    text, heading = field(record, "text"), record.get("heading") or ""
    if text is not None and not (isinstance(text, str) and text.strip()):
        raise AtelierError("texte attendu, non vide ; trouvé : {}.".format(shown(text)))
    if not isinstance(heading, str):
        raise AtelierError("« heading » attend un texte ; trouvé : {}.".format(shown(heading)))
    if "passage" in record:
        passage = sources.passage(record["passage"])
        return passage, passage.words if text is None else count_prefix(text, passage, sources)
    name = field(record, "document")
    if name is None and text is None:
        raise AtelierError("ni « passage », ni « document », ni texte : d'où vient ce passage ?")
    document = None if name is None else sources.document(name)
    limits = find_limits(record, document, text)
    if limits is None:
        document, limits = locate_text(text, document, sources)
    passage = make_passage(document, "{}:{}-{}".format(document.id, *limits), *limits, heading)
    return passage, passage.words


def count_prefix(text: str, passage: Passage, sources: Sources) -> int:
    """How many words of a passage a text keeps, which must be its first ones."""
    words, whole = text.split(), text_of(sources.case.documents, passage).split()
    if words != whole[:len(words)]:
        raise AtelierError("ce texte n'est pas le début du passage {} : {}.".format(shown(passage.id), shown(text)))
    return len(words)


def find_limits(record: Mapping[str, Any], document: Optional[Document], text: Optional[str]) -> Optional[Tuple[int, int]]:
    """The (start, end) characters that a record tells, checked against its text; None when they are unknown."""
    start, end, unit, length = field(record, "start"), field(record, "end"), "caractères", len(document.text) if document else 0
    if start is None and end is None and {"start", "end"} & set(record):
        start, end, unit, length = record.get("start"), record.get("end"), "mots", len(document.starts) if document else 0
    if text is not None and (start in (None, -1) or (start, end) == (0, 0)):
        return None
    if document is None:
        raise AtelierError("des positions sans document ; ajoutez « document ».")
    if end is None and text is not None and unit == "caractères":
        end = start + len(text) if is_integer(start) else None
    if not (is_integer(start) and is_integer(end) and 0 <= start < end):
        raise AtelierError("positions {} à {} : deux entiers croissants sont attendus.".format(shown(start), shown(end)))
    if end > length and (text is None or not explain_positions(text, document.text, start, field(record, "end"))):
        raise AtelierError("positions {} à {} hors du document {}, qui compte {} {}.".format(start, end, shown(document.id), length, unit))
    if unit == "mots":
        start, end = document.starts[start], document.ends[end - 1]
    if text is not None and text.split() != document.text[start:end].split():
        raise AtelierError("le texte {} n'est pas celui des positions {} à {} de {} : {}. {}".format(
            shown(text), start, end, shown(document.id), shown(document.text[start:end]),
            explain_positions(text, document.text, start, field(record, "end"))).rstrip())
    return start, end


def locate_text(text: str, document: Optional[Document], sources: Sources) -> Tuple[Document, Tuple[int, int]]:
    """The one place of a text, white space folded, edges anywhere, in a document or in the whole corpus."""
    needle, places = " ".join(text.split()), []
    for each in [document] if document else sources.case.documents.values():
        folded = sources.texts[each.id]
        at = folded.text.find(needle)
        while at >= 0 and len(places) <= LISTED_PLACES:
            places.append((each, at))
            at = folded.text.find(needle, at + 1)
    where = "dans {}".format(shown(document.id)) if document else "dans le corpus"
    if not places:
        raise AtelierError("le texte {} n'est pas {}. {}".format(shown(text), where, explain_absence(needle, sources.texts[document.id]) if document
                                                             else "Les mots ajoutés devant vont dans « heading »."))
    if len(places) > 1:
        raise AtelierError("le texte {} figure plusieurs fois {} ; donnez ses positions.".format(shown(text), where))
    (found, at), (folded, end) = places[0], (sources.texts[places[0][0].id], places[0][1] + len(needle))
    first, last = bisect_right(folded.starts, at) - 1, bisect_right(folded.starts, end - 1) - 1
    return found, (found.starts[first] + at - folded.starts[first], found.starts[last] + end - folded.starts[last])


def read_contexts(lines: Iterable[bytes], name: str, sources: Sources, taken: Iterable[str]) -> Dict[str, Dict[str, Sent]]:
    """{engine: {question id: Sent}} of a file given line by line: JSON lines, a JSON list, or a TREC run.

    taken: the names that no engine may bear.  Raises AtelierError with all the faults of the file.
    """
    faults, engines = Faults(name), {}
    stem = os.path.splitext(os.path.basename(name))[0]
    for place, value in parse_lines(lines, faults):
        if isinstance(value, Run):
            engines.setdefault(stem, {}).update(read_run(value, sources, faults))
            continue
        read = read_line(value, place, stem, sources, faults)
        if read:
            engine, question, sent = read
            if question in engines.setdefault(engine, {}):
                faults.add(place, "question {} donnée deux fois pour le moteur {} ; gardez-en une.".format(shown(question), shown(engine)))
            engines[engine][question] = sent
    sound = not faults.sentences
    for engine, sent in engines.items():
        if engine in taken:
            faults.add("", "le moteur {} porte le nom d'une variante ou d'un autre moteur ; donnez-lui-en un autre.".format(shown(engine)))
        absent = [shown(question.id) for question in sources.case.questions if question.answerable and question.id not in sent]
        if absent and sound:
            faults.add("", "moteur {} : aucune ligne pour {} ; ajoutez-la, fût-elle de contexte vide.".format(
                shown(engine), ", ".join(absent[:5]) + (", …" if len(absent) > 5 else "")))
    if not engines and not faults.sentences:
        faults.add("", "aucune ligne ; donnez un objet par ligne, une liste JSON ou un classement TREC.")
    faults.check()
    return engines


class Run(namedtuple("Run", "lines")):
    """The (place, columns) of a TREC run."""
    __slots__ = ()


def parse_lines(lines: Iterable[bytes], faults: Faults) -> Iterator[Tuple[str, Any]]:
    """The (place, value) of each record of a file, one at a time; a TREC run is one value."""
    filled = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    number, line = next(filled, (0, b""))
    start = line.lstrip(b"\xef\xbb\xbf \t")[:1]
    if start == b"[":
        try:
            tree = parse_json(decode(b"\n" * (number - 1) + line + b"".join(line for _, line in filled)))
        except AtelierError as error:
            faults.extend("", error)
            return
        check_tree(tree, faults)
        yield from (("[{}]".format(number), value) for number, value in enumerate(tree))
        return
    columns = []
    for number, line in chain([(number, line)] if number else (), filled):
        place = "ligne {}".format(number)
        try:
            text = ""
            text = decode(line).strip()
            value = parse_json(text) if start == b"{" else columns.append((place, text.split()))
        except AtelierError as error:
            cause = str(error).replace("ligne 1, ", "") if "JSON" in str(error) else "ce n'est pas de l'UTF-8 ; enregistrez en UTF-8."
            faults.add(place, cause + (" Un objet tient sur une ligne, ou dans une liste." if text == "{" else ""))
            if text == "{":
                return
            continue
        if start == b"{":
            check_tree(value, faults, place)
            yield place, value
    if columns:
        yield "", Run(columns)


def read_line(value: Any, place: str, stem: str, sources: Sources, faults: Faults) -> Optional[Tuple[str, str, Sent]]:
    """(engine, question id, what was sent) of a line; None, and faults, when it is not sound."""
    if not fits(value, "object", place, faults):
        return None
    found = {role: next((value[name] for name in names if name in value), None) for role, names in LINE_NAMES.items()}
    engine, before = value.get("engine", stem), len(faults.sentences)
    question = found["question"]
    if "question" not in value and isinstance(question, str):
        question = sources.by_text.get(" ".join(question.split()), question)
    if not (isinstance(engine, str) and engine.strip()):
        faults.add(place, "« engine » attend un texte ; trouvé : {}.".format(shown(engine)))
    if not isinstance(question, str) or question not in sources.questions:
        faults.add(place, "question {} inconnue. {}".format(
            shown(question), suggestion(str(question), sources.questions if "question" in value else sources.by_text)))
    passages = {}
    for key, records in (("context", found["context"]), ("hits", value.get("hits"))):
        if key == "context" and not set(LINE_NAMES["context"]) & set(value):
            faults.add(place, "la clé « context » manque ; ajoutez-la.")
            continue
        if not isinstance(records, list) and not (key == "hits" and records is None):
            faults.add(place, "« {} » attend une liste ; trouvé : {}.".format(key, shown(records)))
            continue
        passages[key] = None if records is None else []
        for number, record in enumerate(records or ()):
            try:
                passages[key].append(resolve(record, sources))
            except AtelierError as error:
                faults.extend("{} : {}[{}]".format(place, key, number), error)
    if len(faults.sentences) > before:
        return None
    return engine, question, Sent(passages["context"], passages["hits"] and [passage for passage, _ in passages["hits"]])


def read_run(run: Run, sources: Sources, faults: Faults) -> Dict[str, Sent]:
    """A TREC run: `question Q0 <variant>/<passage> rank score tag`, best score first, ties by rank; the context is assembled here."""
    found: Dict[str, List[Tuple[float, int, Passage]]] = {}
    for place, columns in run.lines:
        try:
            question, _, passage, rank, score, _ = columns
            ranked = -float(score), int(rank), sources.passage(passage)
            if not abs(ranked[0]) < float("inf"):
                raise ValueError(score)
        except ValueError:
            faults.add(place, "six colonnes attendues : question Q0 <variante>/<passage> rang score étiquette ; trouvé : {}.".format(
                shown(" ".join(columns))))
            continue
        except AtelierError as error:
            faults.extend(place, error)
            continue
        if question not in sources.questions:
            faults.add(place, "question {} inconnue. {}".format(shown(question), suggestion(question, sources.questions)))
        elif any(ranked[2].id == other.id for _, _, other in found.setdefault(question, [])):
            faults.add(place, "passage {} donné deux fois pour {} ; gardez-en un.".format(shown(passage), shown(question)))
        else:
            found[question].append(ranked)
    sent = {}
    for question, ranked in found.items():
        if sorted(ranked, key=lambda each: each[:2]) != sorted(ranked, key=lambda each: each[1]):
            sources.warnings.append("question {} : les rangs du classement contredisent ses scores ; ce sont les scores qui font foi, "
                                    "le plus grand d'abord.".format(shown(question)))
        hits = [passage for _, _, passage in sorted(ranked, key=lambda each: each[:2])][:sources.case.settings.top_k]
        kept = assemble([passage.words for passage in hits], sources.case.settings.budget_words)
        sent[question] = Sent([(passage, words) for passage, words in zip(hits, kept) if words], hits)
    return sent


def diagnose_engine(case: Case, name: str, sent: Mapping[str, Sent]) -> Dict[str, Any]:
    """An engine's part of the report: a variant's, None where an engine has no figure."""
    outcomes = [follow_engine(case, question, sent.get(question.id, Sent([], None))) for question in case.questions]
    described = [describe_outcome(case.documents, lambda *kept: text_of(case.documents, *kept), *pair) for pair in zip(case.questions, outcomes)]
    for question in described:
        over = question["words_sent"] - case.settings.budget_words
        question["over_budget"] = max(0, over)
    return {"id": name, "chunking": None, "question_filters": True, **summarize_sets(case, None, outcomes), "passages": None, "questions": described}


def follow_engine(case: Case, question: Question, sent: Sent) -> Outcome:
    """Judge each fact that a question requires on what an engine sent."""
    context = [Hit(rank, passage, None, kept) for rank, (passage, kept) in enumerate(sent.context, 1)]
    by_id = {passage.id: passage for passage, _ in sent.context}
    spans = kept_spans(by_id, [Kept(hit.passage.id, hit.kept) for hit in context])
    merged: Dict[str, List[Span]] = {}
    for span in union(span for span in spans if span.start < span.end):
        merged.setdefault(span.document, []).append(span)

    def count_kept(span):
        shared = overlapping(merged.get(span.document, ()), span.start, span.end)
        return sum(min(span.end, each.end) - max(span.start, each.start) for each in shared)
    hits = None if sent.hits is None else [Hit(rank, passage, None, count_kept(passage.span)) for rank, passage in enumerate(sent.hits, 1)]
    conditions = [case.settings.filters, question.filters]

    def lose(quote, missing):
        document = case.documents[quote.span.document]
        judged = overlapping(document.sections, document.starts[quote.span.start], document.ends[quote.span.end - 1]) or [document]
        return find_loss(Trip(quote.span, missing, (), (), hits, lambda id: None, case.settings.budget_words, breaks(conditions, judged)), ENGINE_STAGES)
    verdicts = [judge(case.facts[fact], case.documents, spans, lose) for fact in question.required_facts]
    return Outcome(question._replace(per_document=None), None, None, hits, context, spans, verdicts, None)  # its ranks are its own


def export_passages(case: Case) -> Iterator[str]:
    """A JSON line for each passage of each variant, for another engine to index exactly these."""
    for variant in case.variants:
        for name, passages in cut(case.documents, variant).by_document.items():
            document = case.documents[name]
            for passage in passages:
                sections = sections_of(document, passage)
                yield encode({
                    "id": "{}/{}".format(variant.id, passage.id), **passage.span._asdict(), "start_char": passage.start, "end_char": passage.end,
                    "text": text_of(case.documents, passage), "title": document.label,
                    "metadata": sections[0].metadata if len(sections) == 1 else document.metadata}) + "\n"


# --- 15. Citations: a register to three fractions -------------------------------------------------

RELATIONS = {"supports": "soutient", "insufficient": "ne suffit pas", "contradicts": "contredit", "irrelevant": "hors sujet",
             "review": "à relire"}  # human judgements: none is inferred
VERDICTS = {"supported": "soutenue", "review": "à relire", "unsupported": "non soutenue"}
CLAIMS = {"supported": "Affirmations soutenues", "review": "Affirmations à relire", "unsupported": "Affirmations non soutenues"}
STATUSES = {"source_missing": "source inconnue", "not_in_context": "hors du contexte", "revision_mismatch": "autre révision",
            "content_mismatch": "autre texte", "valid": "valide"}
FRACTIONS = (("claim_support", "affirmations soutenues"), ("citation_usefulness", "citations valides qui soutiennent"),
             ("structural_validity", "citations valides"))
REGISTER_KEYS = (Key("passages", "list"), Key("context", "texts"), Key("context_from", "object"), Key("claims", "list", True))
SOURCE_KEYS = (Key("id", "filled", True), Key("revision", "revision"), Key("text", "filled", True))
CLAIM_KEYS = (Key("id", "filled", True), Key("text", "filled", True), Key("citations", "list", True))
CITATION_KEYS = (Key("passage", "filled", True), Key("revision", "revision"), Key("text", "filled", True), Key("relation", "filled", True))
FROM_KEYS = (Key("report", "filled", True), Key("variant", "filled", True), Key("question", "filled", True))


class Source(namedtuple("Source", "revision text given")):
    """A passage of a register: given tells that it was in the context."""
    __slots__ = ()


class Citation(namedtuple("Citation", "passage revision text relation status same_content duplicate")):
    """A claim's citation, judged; same_content (None but for a revision_mismatch) tells whether only the number changed."""
    __slots__ = ()


def same_text(one: str, other: str) -> bool:
    """To the letter, line ends apart."""
    return one.splitlines() == other.splitlines()


def judge_citation(sources: Mapping[str, Source], passage: str, revision: Any, text: str) -> Tuple[str, Optional[bool]]:
    """(status, same_content): the first status that holds."""
    source = sources.get(passage)
    if source is None or not source.given:
        return "source_missing" if source is None else "not_in_context", None
    same = same_text(source.text, text)
    if source.revision != revision:
        return "revision_mismatch", same
    return "valid" if same else "content_mismatch", None


def judge_claim(citations: Iterable[Citation]) -> str:
    """supported by a valid citation that supports; else review when a valid one is under review; else unsupported."""
    relations = {citation.relation for citation in citations if citation.status == "valid"}
    return "supported" if "supports" in relations else "review" if "review" in relations else "unsupported"


def check_citations(data: bytes, name: str, read: Callable[[str], bytes]) -> Dict[str, Any]:
    """The `citations` of a register's report; name is the file's, read gives the bytes of a report that it names.

    Raises AtelierError with all the faults of the file.
    """
    faults = Faults(name)
    try:
        tree = parse_json(decode(data))
    except AtelierError as error:
        faults.extend("", error)
        faults.check()
    check_tree(tree, faults)
    register = read_object(tree, "", REGISTER_KEYS, faults)
    sources = read_sources(register, read, faults)
    claims = [(item.get("id"), read_citations(place, item, sources, faults)) for place, _, item in read_list(register, "claims", CLAIM_KEYS, faults)]
    faults.check()
    return {"file": os.path.basename(name), "sha256": sha256(data), **count_citations(claims)}


def read_sources(register: Mapping[str, Any], read: Callable[[str], bytes], faults: Faults) -> Dict[str, Source]:
    """The passages of a register by id, from its own list or from a report's context."""
    if "context_from" in register:
        if "passages" in register or "context" in register:
            faults.add("context_from", "remplace « passages » et « context » ; ôtez-les.")
        return read_report_context(read_object(register["context_from"], "context_from", FROM_KEYS, faults), read, faults)
    for key in ("passages", "context"):
        if key not in register:
            faults.add("", "la clé {} manque, ou « context_from ».".format(shown(key)))
    sources = {item["id"]: Source(item.get("revision"), item["text"], item["id"] in register.get("context", ()))
               for _, _, item in read_list(register, "passages", SOURCE_KEYS, faults) if {"id", "text"} <= set(item)}
    for number, id in enumerate(register.get("context", ())):
        if id not in sources:
            faults.add("context[{}]".format(number), "passage {} inconnu. {}".format(shown(id), suggestion(id, sources)))
    return sources


def read_report_context(origin: Mapping[str, Any], read: Callable[[str], bytes], faults: Faults) -> Dict[str, Source]:
    """The passages that a report found for a question, with the words that the budget let through."""
    if len(origin) < len(FROM_KEYS):
        return {}
    try:
        report = parse_report(read(origin["report"]))
    except AtelierError as error:
        faults.extend("context_from.report ({})".format(origin["report"]), error)
        return {}
    found: Any = report["variants"]
    for key in ("variant", "question"):
        known = {each["id"]: each for each in found}
        if origin[key] not in known:
            faults.add("context_from." + key, "{} inconnu du rapport. {}".format(shown(origin[key]), suggestion(origin[key], known)))
            return {}
        found = known[origin[key]]["questions"] if key == "variant" else known[origin[key]]
    dropped = {hit["passage"]: Source(None, hit["text"], False) for hit in found["hits_before_budget"] or ()}
    return {**dropped, **{kept["passage"]: Source(None, kept["text"], True) for kept in found["context"]}}


def read_citations(place: str, item: Mapping[str, Any], sources: Mapping[str, Source], faults: Faults) -> List[Citation]:
    """A claim's citations, judged; one that repeats another is a duplicate, and a fault when it changes the relation."""
    citations: Dict[Tuple[str, Any, str], Citation] = {}
    judged = []
    for number, value in enumerate(item.get("citations", ())):
        where = "{}.citations[{}]".format(place, number)
        each = read_object(value, where, CITATION_KEYS, faults)
        if each.get("relation", "review") not in RELATIONS:
            faults.add(where + ".relation", "relation {} inconnue. Possibles : {}.".format(
                shown(each["relation"]), ", ".join("{} ({})".format(*pair) for pair in RELATIONS.items())))
        if not {"passage", "text", "relation"} <= set(each):
            continue
        key = each["passage"], each.get("revision"), each["text"]
        first = citations.get(key)
        if first and first.relation != each["relation"]:
            faults.add(where, "même citation qu'une autre de cette affirmation, avec une autre relation ({} et {}) ; choisissez.".format(
                first.relation, each["relation"]))
        citation = Citation(*key, each["relation"], *judge_citation(sources, *key), duplicate=bool(first))
        citations.setdefault(key, citation)
        judged.append(citation)
    return judged


def count_citations(claims: Sequence[Tuple[str, Sequence[Citation]]]) -> Dict[str, Any]:
    """Three fractions that are never merged, and what they are made of."""
    distinct = [citation for _, citations in claims for citation in citations if not citation.duplicate]
    valid = [citation for citation in distinct if citation.status == "valid"]
    return {
        "claim_support": fraction(sum(judge_claim(citations) == "supported" for _, citations in claims), len(claims)),
        "citation_usefulness": fraction(sum(citation.relation == "supports" for citation in valid), len(distinct)),
        "structural_validity": fraction(len(valid), len(distinct)),
        "claims": [{"id": id, "verdict": judge_claim(citations), "citations": [describe_citation(citation) for citation in citations]}
                   for id, citations in claims],
        "duplicates": [{"claim": id, "passage": citation.passage, "revision": citation.revision}
                       for id, citations in claims for citation in citations if citation.duplicate],
        "uncited": [id for id, citations in claims if not citations],
        "open_reviews": [{"claim": id, "passage": citation.passage} for id, citations in claims for citation in citations
                         if citation.relation == "review" and citation.status == "valid" and not citation.duplicate],
    }


def fraction(numerator: int, denominator: int) -> Dict[str, Any]:
    return {"numerator": numerator, "denominator": denominator, "fraction": "{}/{}".format(numerator, denominator)}


def describe_citation(citation: Citation) -> Dict[str, Any]:
    same = {"same_content": citation.same_content} if citation.status == "revision_mismatch" else {}
    return {"passage": citation.passage, "revision": citation.revision, "status": citation.status, **same,
            "relation": citation.relation, "duplicate": citation.duplicate}


def format_citations(citations: Mapping[str, Any]) -> str:
    """The three fractions, then what a person has to look at, at most 80 columns wide."""
    lines = [clip("Atelier {} · {}".format(__version__, citations["file"])), ""]
    lines += ["{:<36}{:>8}".format(label, citations[key]["fraction"]) for key, label in FRACTIONS] + [""]
    for claim in citations["claims"]:
        lines.append(clip("{} : {}".format(claim["id"], VERDICTS[claim["verdict"]])))
        lines += ["    " + clip("{} : {}, {}{}".format(each["passage"], STATUSES[each["status"]], RELATIONS[each["relation"]],
                                                      ", répétée" if each["duplicate"] else ""), 76) for each in claim["citations"]]
    for key, label in (("open_reviews", "à relire"), ("duplicates", "citations répétées"), ("uncited", "sans citation")):
        names = ", ".join(each if isinstance(each, str) else "{} ({})".format(each["claim"], each["passage"]) for each in citations[key])
        lines += [] if not names else ["", clip("{} : {}".format(label.capitalize(), names))]
    return "\n".join(lines) + "\n"


# --- 16. Page: a report's dict to one HTML page ---------------------------------------------------

STYLE = """
:root{--ink:#1c1c20;--soft:#595a62;--line:#c7c8cf;--paper:#fff;--wash:#f3f3f5;
--kept:#8fa6cc;--proof:#a04a00;--lost:#a8201a}
@media (prefers-color-scheme:dark){:root{--ink:#ebebef;--soft:#b3b4bd;--line:#4b4c55;--paper:#16171b;
--wash:#212228;--kept:#4d6690;--proof:#ffb866;--lost:#ff9a90}}
*{box-sizing:border-box}
html{color-scheme:light dark}
body{margin:0 auto;padding:1.5rem 1rem 4rem;max-width:60rem;background:var(--paper);color:var(--ink);
font:1rem/1.55 Charter,"Bitstream Charter","Sitka Text",Cambria,Georgia,serif;
font-variant-numeric:tabular-nums lining-nums;overflow-wrap:anywhere}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .3rem}
h2{font-size:1.35rem;margin:3rem 0 .8rem}
h3{font-size:1rem;margin:2.2rem 0 .5rem}
p,ul{margin:.5rem 0}
a{color:inherit;text-underline-offset:.15em}
a:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:3px solid var(--proof);outline-offset:2px}
.skip{position:absolute;left:-99rem}.skip:focus{position:static}
.soft,dt,th,figcaption{color:var(--soft)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.8rem 0;font-size:.85rem}
dd{margin:0}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;list-style:none}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.85rem;overflow-wrap:normal}
th{font-weight:400;text-align:left;vertical-align:bottom}
tbody th,td{vertical-align:top}
th,td{padding:.35rem .6rem .35rem 0;border-bottom:1px solid var(--line)}
.n{text-align:right;white-space:nowrap}
.id{overflow-wrap:anywhere;min-width:7rem}
.bar{display:block;height:.35rem;min-width:4rem;border:1px solid var(--soft);margin-top:.2rem}
.bar i{display:block;height:100%;background:var(--kept)}
.marks{display:grid;gap:.1rem}
.m{white-space:nowrap}.m b{display:inline-block;width:1.2em;text-align:center;font-weight:400}
.lost{color:var(--lost)}
details{border-top:1px solid var(--line);padding:.5rem 0}
summary{cursor:pointer}
figure{margin:.8rem 0}
.row{display:grid;grid-template-columns:12rem 1fr;align-items:end;gap:0 .8rem}
.lab,.row>:first-child{font-size:.8rem;color:var(--soft)}
.row>*+*{position:relative;height:2.2rem;
background:linear-gradient(var(--line) 0 0) 0 1.45rem/100% 1px no-repeat}
.strip .row>*+*::after{content:"";position:absolute;top:0;height:100%;left:var(--budget);
border-left:3px double var(--lost)}
i{font-style:normal}
.row>*+*>*{position:absolute;top:1rem;height:.9rem}
.kept,.cut,.away{border:1px solid var(--ink)}
.kept{background:var(--kept)}
.cut{background:repeating-linear-gradient(135deg,transparent 0 3px,var(--soft) 3px 4px)}
.away{border-style:dashed}
.row>*+*>.q{top:.85rem;height:1.2rem;border:2px solid var(--proof);min-width:4px}
.q b{white-space:nowrap;position:absolute;top:-1.05rem;left:-1px;font-size:.75rem;line-height:1rem;
color:var(--proof)}
.row>*+*>.tag{top:0;height:auto;padding:0 .35rem;font-size:.8rem;color:var(--lost);white-space:nowrap}
.row>*+*>.tag.before{transform:translateX(-100%)}
.strip>.first>*+*,.strip>.away-row>*+*{background-image:none}
.strip>.away-row>*+*::after{display:none}
.row>*+* svg{top:0;left:0;width:100%;height:100%;stroke:var(--ink)}
.row>*+*>.p{top:1.9rem;height:.25rem;min-width:3px;background:var(--lost)}
.row>*+*>.o{min-width:3px;background:var(--proof)}
.bar i,.kept,.cut,.p,.o{forced-color-adjust:none;print-color-adjust:exact;-webkit-print-color-adjust:exact}
figcaption{font-size:.8rem}figcaption span{display:inline-block;margin-right:1.2rem}
.m small{color:var(--soft);font-size:.75rem}
[id]{scroll-margin-top:1rem}
.words{background:var(--wash);padding:.6rem .8rem;font-size:.9rem;white-space:pre-line}
mark{background:none;color:inherit;border-bottom:3px solid var(--proof)}
.off{color:var(--soft);font-style:italic}
@media (max-width:40rem){body{padding-top:1rem}.row{grid-template-columns:1fr;margin-top:.3rem}
dl{grid-template-columns:1fr}dd{margin-bottom:.3rem}th,td{padding-right:.4rem}}
@media print{body{max-width:none;font-size:.85rem}nav,.skip{display:none}figure,.words{break-inside:avoid}
h2,h3,summary{break-after:avoid}.words{border:1px solid var(--line)}
details::details-content{content-visibility:visible;block-size:auto}}
"""
PAGE = """<!DOCTYPE html>
<html lang="fr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@TITLE@</title>
<link rel="icon" href="data:,">
<style>@STYLE@</style>
</head>
<body>
<a class="skip" href="#contenu">Aller au contenu</a>
@BODY@
</body>
</html>
"""
SCROLLED = 'section class="scroll" tabindex="0" aria-label="{}"'  # by keyboard too
COVERED = ("●", "couverte")
SIGNS = {
    "filtered_out": ("△", "filtre"), "not_indexed": ("○", "hors index"), "cut_by_budget": ("◐", "budget"),
    "split_at_boundary": ("◇", "découpage"), "not_matched": ("□", "sans mot commun"),
    "ranked_too_low": ("▽", "rang"), "not_retrieved": ("✕", "non trouvée"), "not_sent": ("–", "non envoyée"),
}
NOTHING_FOUND = {
    "no_term": "Aucun mot à chercher.", "no_match": "Aucun passage ne partage un mot avec la question.",
    "no_document": "Les filtres n'admettent aucun document.", None: "Rien n'a été envoyé.",
}
COLUMNS = (  # of the variants: label, what is shown, a figure of the summary, what it is a part of
    ("passages", "{}", "passages_indexed", None), ("mots indexés", "{}", "words_indexed", None),
    ("contextes complets", "{}/{}", "complete_contexts", "answerable_questions"),
    ("faits couverts", "{}/{}", "facts_covered", "facts_required"),
    ("mots envoyés", "{}", "words_sent", None), ("mots redondants", "{}", "redundant_words", "words_sent"),
)
DETAILED_QUESTIONS = 50  # beyond, only those that lost a proof are detailed
SHOWN_WORDS = 200        # of what the budget cut from a passage
AROUND_WORDS = 15        # on each side of a quote, on a long page
DRAWN_QUOTES = 40        # one a line; beyond, all on one
TOLD_LIMITS = 20         # of the passages of a document


def escape(text: Any) -> str:
    """The one way from a value to the page."""
    from html import escape as escape_html
    return escape_html(str(text), quote=True)


def fr(text: str, *values: Any) -> str:
    """Our own French with its values, escaped, with its non-breaking spaces."""
    sentence = escape(text.format(*values) if values else text)
    return re.sub(" ([;?!%])", "\u202f\\1", re.sub(" ([:»])|(?<=«) ", "\u00a0\\1", sentence))


def tag(opening: str, *inside: str) -> str:
    """An element, from what stands in its opening tag and the markup inside."""
    return "<{}>{}</{}>".format(opening, "".join(inside), opening.split()[0])


def bdi(text: Any) -> str:
    """A name of the case, which may be of a script that runs the other way."""
    return tag("bdi", escape(text))


def bullets(sentences: Iterable[str]) -> str:
    items = [tag("li", fr(sentence)) for sentence in sentences]
    return tag("ul", *items) if items else ""


def bar(part: float, whole: float) -> str:
    return tag('span class="bar"', '<i style="width:{:.1f}%"></i>'.format(100 * part / whole if whole else 0))


def table(labels: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> Iterator[str]:
    """Rows are (name, *cells); kind is the attribute of the labels after the first."""
    head = [tag('th scope="col"' + kind * (number > 0), escape(label)) for number, label in enumerate(labels)]
    yield "<table>" + tag("thead", tag("tr", *head)) + "<tbody>"
    for name, *cells in rows:
        yield tag("tr", tag('th scope="row" class="id"', escape(name)), *cells)
    yield "</tbody></table>"


def draw_page(report: dict) -> Iterator[str]:
    """The pieces of the page of a report, of a case or of citations."""
    if "case" in report:
        title, body = report["case"]["title"] or report["case"]["file"], draw_report
    else:
        title, body = report["citations"]["file"], draw_citations
    head, tail = PAGE.split("@BODY@")
    yield head.replace("@STYLE@", STYLE).replace("@TITLE@", escape("Atelier – " + title))
    yield from body(report, title)
    yield tail


def draw_header(title: str, sentence: str, figures: dict) -> str:
    """The top of a page: its title, a sentence of markup, {label: figure}."""
    pairs = [tag("dt", label) + tag("dd", escape(figure)) for label, figure in figures.items()]
    return tag("header", tag("h1", escape(title)), sentence, tag("dl", *pairs))


def draw_report(report: dict, title: str) -> Iterator[str]:
    """The page of a case, in order: the case, variants, matrix, strips with their words, documents."""
    case, settings, variants = report["case"], report["settings"], report["variants"]
    questions = variants[0]["questions"]
    yield draw_header(title, tag("p", fr(
        "{}, {}, {} dont {} avec réponse, {}", counted(case["words"], "mot"),
        counted(len(case["documents"]), "document"), counted(len(questions), "question"),
        case["answerable_questions"], counted(case["facts"], "fait"))), {
            "Cas": case["file"], "Empreinte": case["sha256"], "Atelier": report["atelier"],
            "Filtres": ", ".join("{} = {}".format(*pair) for pair in settings["filters"].items()) or "aucun",
            "Réglages": "top_k {}, budget {}".format(
                settings["top_k"], counted(settings["budget_words"], "mot"))})
    links = [tag("li", '<a href="#{}">{}</a>'.format(name.lower(), name))
             for name in ("Variantes", "Matrice", "Trajets", "Documents")]
    yield tag('nav aria-label="Sommaire"', tag("ul", *links)) + '<main id="contenu">'
    yield draw_variants(report)
    brief = len(questions) > DETAILED_QUESTIONS
    detailed = [number for number in range(len(questions)) if not brief or any(
        fact["loss"] for variant in variants for fact in variant["questions"][number]["facts"])]
    yield '<section id="matrice"><h2>La matrice</h2><{}>'.format(SCROLLED.format("Questions et variantes"))
    labels = ["question"] + [variant["id"] for variant in variants]
    yield from table(labels, draw_matrix(variants, set(detailed)))
    yield "</section></section>"
    yield from draw_trips(detailed, variants, settings["budget_words"], brief)
    yield from draw_documents(case["documents"], variants)
    yield "</main>"


def draw_variants(report: dict) -> str:
    """The warnings, then a line for each variant, with bars."""
    rows = []
    for variant in report["variants"]:
        summary = variant["summary"]
        rows.append([variant["id"]])
        for _, text, name, total in COLUMNS:
            part, whole = summary[name], summary.get(total)
            known = part is not None and (whole != 0 or text == "{}")
            rows[-1].append(tag('td class="n"', escape(text.format(part, whole)) if known else "–",
                                bar(part, whole) if whole else ""))
    labels = ["variante"] + [label for label, *_ in COLUMNS]
    return tag('section id="variantes"', "<h2>Les variantes</h2>",
               bullets("Attention : " + warning for warning in report["warnings"]),
               tag(SCROLLED.format("Tableau des variantes"), *table(labels, rows, ' class="n"')))


def sign_of(fact: dict) -> Tuple[str, str]:
    """The (shape, word) of a fact's state."""
    return SIGNS[fact["loss"]["stage"]] if fact["loss"] else COVERED


def draw_matrix(variants: list, linked: Iterable[int]) -> Iterator[List[str]]:
    """Questions by variants: a mark for each fact, a shape and a word, linked to its detail."""
    for number, question in enumerate(variants[0]["questions"]):
        cells = []
        for column, variant in enumerate(variants):
            link = ' href="#d{}-{}"'.format(number, column) if number in linked else ""
            marks = [draw_mark(fact, link) for fact in variant["questions"][number]["facts"]]
            marks = marks or ['<span class="soft">sans preuve exigée</span>']
            cells.append(tag("td", tag('div class="marks"', *marks)))
        yield [question["id"], *cells]


def draw_mark(fact: dict, link: str) -> str:
    """A fact in the matrix; link is its attribute, if any."""
    shape, word = sign_of(fact)
    opening = '{} class="m{}"{}'.format("a" if link else "span", " lost" if fact["loss"] else "", link)
    return tag(opening, tag('b aria-hidden="true"', shape), word, " ", tag("small", bdi(fact["id"])))


def draw_trips(detailed: List[int], variants: list, budget: int, brief: bool) -> Iterator[str]:
    """The questions that are detailed, by their numbers; brief: advice is given once."""
    yield '<section id="trajets"><h2>Le trajet de chaque preuve</h2>'
    yield tag("p", fr(
        "Les passages trouvés, dans l'ordre des rangs, à l'échelle de leurs mots ; le double trait est le "
        "budget. Plein : envoyé ; hachuré : coupé ; tireté : resté hors des passages trouvés. Les cadres "
        "lettrés sont les preuves exigées. Les mots d'un document se comptent à partir de 0."))
    left = len(variants[0]["questions"]) - len(detailed)
    if left:
        yield tag("p", fr("{} sans preuve perdue : dans la matrice seulement.", counted(left, "question")))
    if brief:
        lost = {name for variant in variants for name in variant["summary"]["losses"]}
        yield bullets("Une preuve {} : {}".format(stage.label, stage.advice)
                      for stage in STAGE.values() if stage.id in lost)
    for number in detailed:
        yield draw_question(number, variants, budget, brief)
    yield "</section>"


def draw_question(number: int, variants: list, budget: int, brief: bool) -> str:
    """A question, and a fold for each variant: the strip, the words; brief: only where a proof was lost."""
    asked, folds = variants[0]["questions"][number], []
    for column, variant in enumerate(variants):
        question = variant["questions"][number]
        facts, hits = lettered(question["facts"]), shown_hits(variant, question)
        lost = ", ".join("{} : {}".format(fact["id"], STAGE[fact["loss"]["stage"]].label)
                         for fact in facts if fact["loss"])
        state = fr(lost or ("preuves couvertes" if facts else "sans réponse attendue"))
        place, name = 'id="d{}-{}"'.format(number, column), escape(variant["id"]) + " – "
        if brief and not lost:
            folds.append(tag("p " + place, name, state))
            continue
        away = [(fact, *stand) for fact in facts for stand in places_away(variant, fact, hits)]
        strip = draw_strip(hits, away, facts, budget, brief) if hits or away else tag(
            "p", fr(NOTHING_FOUND[question["no_hits"]]))
        folds.append(tag("details open" if lost and not brief else "details",
                         tag("summary", name, tag('span class="lost"' if lost else "span", state)),
                         tag("div " + place, strip, *draw_words(hits, facts, brief))))
    return tag('article aria-labelledby="q{}"'.format(number),
               tag('h3 id="q{}"'.format(number), escape(asked["text"])),
               tag('p class="soft"', escape(asked["id"])), *folds)


def lettered(facts: list) -> list:
    """The facts of a question, with a letter each: A, B, C…"""
    return [{**fact, "letter": chr(ord("A") + number) if number < 26 else str(number + 1)}
            for number, fact in enumerate(facts)]


def box(kind: str, start: float, end: float, scale: float, inside: str = "") -> str:
    """A box from word start to word end of a track that is scale words long."""
    left, width = (round(100 * words / scale, 1) or 0 for words in (start, end - start))
    style = "left:{:g}%;width:{:g}%" if end > start else "left:{:g}%"
    return '<i class="{}" style="{}">{}</i>'.format(kind, style.format(left, width), inside)


def track(label: str, drawn: str, told: str, kind: str = "") -> str:
    """A label, and boxes on a line with the words that say the same."""
    return tag('div class="row{}"'.format(kind), tag("span", bdi(label)),
               tag('span role="img" aria-label="{}"'.format(fr(told)), drawn))


def shown_hits(variant: dict, question: dict) -> list:
    """The hits; of another engine, what it sent, then what it found and left."""
    hits = question["hits_before_budget"] or []
    if variant["chunking"] is not None:
        return hits
    found = {hit["passage"]: hit for hit in hits}
    sent = [{**found.get(part["passage"], part), "rank": part["rank"], "kept_words": part["words"]}
            for part in question["context"]]
    names = {hit["passage"] for hit in sent}
    return sent + [{**hit, "kept_words": 0} for hit in hits if hit["passage"] not in names]


def places_in(hit: dict, facts: list) -> List[tuple]:
    """(letter, start, end) of the quotes in a passage, in its own words, those put before it counted."""
    places, lead = [], hit["lead_words"] - hit["start"]
    for fact in facts:
        start, end = max(fact["start"], hit["start"]), min(fact["end"], hit["end"])
        if fact["document"] == hit["document"] and start < end:
            places.append((fact["letter"], lead + start, lead + end))
    return places


def places_away(variant: dict, fact: dict, hits: list) -> Iterator[tuple]:
    """(label, start, end) of the passages, not among the hits, where a lost proof really stands."""
    loss, found = fact["loss"] or {}, {hit["passage"] for hit in hits}
    for piece in loss.get("pieces", [loss] if "passage" in loss else []):
        name, rank = piece["passage"], piece.get("rank")
        document, _, number = name.rpartition("#")
        if name not in found and variant["passages"] and number.isdigit():
            start, end = variant["passages"][document][int(number) - 1]
            rank = "rang {}".format(rank) if rank else "sans rang"
            yield "{} · {} · {}".format(rank, name, counted(end - start, "mot")), start, end


def draw_strip(hits: list, away: list, facts: list, budget: int, brief: bool) -> str:
    """The hits to scale, the budget, the passages away; brief: those without proof share a line."""
    scale = max([budget, sum(hit["words"] for hit in hits)] + [end - start for *_, start, end in away])
    limit = box("tag before" if budget * 2 > scale else "tag", budget, budget, scale,
                fr("budget : {}", counted(budget, "mot")))
    tracks, before, group = [tag('div class="row first"', "<span></span>", tag("span", limit))], 0, []
    for hit, after in zip(hits, [*hits[1:], None]):
        group.append(hit)
        if not brief or after is None or places_in(hit, facts) or places_in(after, facts):
            tracks.append(draw_passages(group, before, scale, facts))
            before, group = before + sum(hit["words"] for hit in group), []
    for fact, label, start, end in away:
        first, last = max(start, fact["start"]), min(end, fact["end"])
        quote = box("q", first - start, last - start, scale, tag("b", fact["letter"]))
        tracks.append(track(label, box("away", 0, end - start, scale) + quote,
                            "{}, mots {} à {}".format(fact["letter"], first, last - 1), " away-row"))
    legend = [tag("span", fr("{} : {}, {}", fact["letter"], fact["id"], sign_of(fact)[1])) for fact in facts]
    strip = 'div class="strip" style="--budget:{:g}%"'.format(round(100 * budget / scale, 1))
    return tag("figure", tag(strip, *tracks), tag("figcaption", " ".join(legend)))


def draw_passages(group: list, before: int, scale: int, facts: list) -> str:
    """A line of the strip, after some words: one passage, or several without proof."""
    hit, words, sent = group[0], *(sum(hit[name] for hit in group) for name in ("words", "kept_words"))
    drawn = box("kept", before, before + sent, scale) if sent else ""
    drawn += box("cut", before + sent, before + words, scale) if sent < words else ""
    told = "{}, {}".format(counted(sent, "mot envoyé"), counted(words - sent, "coupé"))
    first = hit["start"] - hit["lead_words"]  # told as in the JSON: words of the document, from 0
    for letter, start, end in places_in(hit, facts):
        drawn += box("q", before + start, before + end, scale, tag("b", letter))
        told += " ; {}, mots {} à {}".format(letter, first + start, first + end - 1)
    name = "· " + hit["passage"] if len(group) == 1 else "à {}".format(group[-1]["rank"])
    return track("{} {} · {}".format(hit["rank"], name, counted(words, "mot")), drawn, told)


def draw_words(hits: list, facts: list, brief: bool) -> Iterator[str]:
    """What was sent (brief: around the quotes), then each loss in a sentence, and what to try."""
    room = SHOWN_WORDS
    for hit in hits:
        places = [(start, end) for _, start, end in places_in(hit, facts)]
        shown_words = min(hit["words"], hit["kept_words"] + room)
        room -= shown_words - hit["kept_words"]
        around = [(max(0, start - AROUND_WORDS), end + AROUND_WORDS) for start, end in places]
        around = around if brief else [(0, shown_words)]
        around += [place for place in places if place[1] > shown_words]  # a quote is shown, however far
        if around:
            label = tag('span class="lab"', bdi("{} · {}".format(hit["rank"], hit["passage"])))
            yield tag('p class="words" dir="auto"', label, "\n", mark_words(hit, places, around))
    for fact in facts:
        if fact["loss"]:
            stage = STAGE[fact["loss"]["stage"]]
            sentence = fr("{} : {} ({}).", fact["id"], stage.label, detail_of(fact["loss"]))
            yield tag("p", tag('span class="lost"', sentence), " «\u00a0", bdi(fact["quote"]), "\u00a0»",
                      "" if brief else "<br>" + fr(stage.advice))


def mark_words(hit: dict, places: List[tuple], around: List[tuple]) -> str:
    """The words around some places, quotes marked, the budget's cut greyed; others are counted."""
    def within(pairs):
        return any(first <= start < last for first, last in pairs)
    words, sent = list(WORD.finditer(hit["text"])), hit["kept_words"]
    limits = sorted({min(limit, len(words)) for limit in {0, sent, len(words)}.union(*places, *around)})
    text, left = "", 0
    for start, end in zip(limits, limits[1:]):
        if not within(around):
            left += end - start
            continue
        if start:
            text += left_out(left) if left else hit["text"][words[start - 1].end():words[start].start()]
        part, left = escape(hit["text"][words[start].start():words[end - 1].end()]), 0
        part = tag("mark", part) if within(places) else part
        text += tag('span class="off"', part) if start >= sent else part
    return text + (left_out(left) if left else "")


def left_out(words: int) -> str:
    """`… 191 mots …`, in the place of words that are not shown."""
    return " {} ".format(tag('span class="off"', fr("… {} …", counted(words, "mot"))))


def draw_documents(documents: list, variants: list) -> Iterator[str]:
    """Each document as a line of its words: the limits of each variant above, quotes below."""
    yield '<section id="documents"><h2>Les documents</h2>'
    yield tag("p", fr(
        "Chaque ligne est le document entier, à l'échelle de ses mots. Les traits sont les limites des "
        "passages, les cadres les preuves ; celles qu'une limite coupe sont soulignées sur la ligne de la "
        "variante."))
    quotes: Dict[str, set] = {document["id"]: set() for document in documents}
    for question in variants[0]["questions"]:
        for fact in question["facts"]:
            for quote in fact.get("alternatives", [fact]):
                quotes[quote["document"]].add((quote["start"], quote["end"], fact["id"]))
    for document in documents:
        yield draw_document(document, sorted(quotes[document["id"]]), variants)
    yield "</section>"


def draw_document(document: dict, quotes: List[tuple], variants: list) -> str:
    """One document: quotes are (start, end, fact id)."""
    name, total, proofs = document["id"], document["words"], counted(len(quotes), "preuve")
    tracks, broken = [], {}
    for variant in variants:
        if variant["passages"] is not None:
            limits, split = cut_quotes(variant["passages"][name], quotes)
            for _, _, fact, where in split:
                broken.setdefault((fact, where), []).append(variant["id"])
            told = "{}, limites aux mots {}".format(
                counted(len(limits) - 1, "passage"), ", ".join(map(str, limits[:TOLD_LIMITS])))
            tracks.append(track(variant["id"], draw_limits(limits, total) + boxes("p", split, total),
                                told + (", …" if len(limits) > TOLD_LIMITS else "")))
    if len(quotes) > DRAWN_QUOTES:
        tracks.append(track("les preuves", boxes("o", quotes, total), proofs))
    else:
        tracks += [track("{} · {}–{}".format(fact, start, end - 1), box("q", start, end, total),
                         "mots {} à {}".format(start, end - 1)) for start, end, fact in quotes]
    sentences = ["{} : {} par {}.".format(*pair, ", ".join(names)) for pair, names in broken.items()]
    if len(sentences) > DRAWN_QUOTES:
        sentences[DRAWN_QUOTES:] = ["et {}.".format(counted(len(sentences) - DRAWN_QUOTES, "autre"))]
    return tag("h3", bdi(name)) + tag('p class="soft"', fr("{}, {}", counted(total, "mot"), proofs)) + tag(
        "figure", *tracks) + bullets(sentences)


def boxes(kind: str, quotes: List[tuple], total: int) -> str:
    return "".join(box(kind, start, end, total) for start, end, *_ in quotes)


def cut_quotes(passages: list, quotes: List[tuple]) -> Tuple[List[int], List[tuple]]:
    """The limits of the passages, and the quotes that none holds whole: (start, end, fact id, where cut)."""
    limits = sorted({limit for pair in passages for limit in pair})
    starts, split = [start for start, _ in passages], []
    for start, end, name in quotes:
        inside = limits[bisect_right(limits, start):bisect_left(limits, end)]
        before = bisect_right(starts, start)  # of those that start in time, the last one goes furthest
        if not before or passages[before - 1][1] < end:
            split.append((start, end, name, "coupée au mot {}".format(inside[0]) if inside else
                          "laissée de côté, ou coupée dans un mot,"))
    return limits, split


def draw_limits(limits: Iterable[int], total: int) -> str:
    """One stroke at each limit of a document."""
    strokes = "".join("M{} 6v20".format(round(1000 * limit / total, 1)) for limit in limits)
    return tag('svg viewBox="0 0 1000 32" preserveAspectRatio="none" aria-hidden="true"',
               '<path d="{}" fill="none" vector-effect="non-scaling-stroke"/>'.format(strokes))


def draw_citations(report: dict, title: str) -> Iterator[str]:
    """Three fractions as bars, then the claims by verdict, each citation with its status."""
    citations = report["citations"]
    yield draw_header(title, "", {"Empreinte": citations["sha256"], "Atelier": report["atelier"]})
    yield '<main id="contenu"><section><h2>Trois fractions</h2><table><tbody>'
    for name, label in FRACTIONS:
        figure = citations[name]
        yield tag("tr", tag('th scope="row"', fr(label)), tag(
            'td class="n"', escape(figure["fraction"]), bar(figure["numerator"], figure["denominator"])))
    yield "</tbody></table></section>"
    for verdict, label in CLAIMS.items():
        rows = [draw_claim(claim) for claim in citations["claims"] if claim["verdict"] == verdict]
        yield tag("section", tag("h2", fr("{} : {}", label, len(rows))),
                  *table(("affirmation", "citations"), rows) if rows else "")
    yield "</main>"


def draw_claim(claim: dict) -> List[str]:
    """Its line of the table."""
    told = [fr("{} : {}, {}{}", cited["passage"], STATUSES[cited["status"]], RELATIONS[cited["relation"]],
               ", répétée" if cited["duplicate"] else "") for cited in claim["citations"]]
    return [claim["id"], tag('td class="id"', "<br>".join(told) or "sans citation")]


# --- 17. Guards: the thirteen of --self-test ------------------------------------------------------

GUARD_CASE = {
    "documents": [
        {"id": "a", "text": "Le plafond est de 140 euros. Il monte à 190 euros après accord écrit."},
        {"id": "b", "text": "Le plafond est de 140 euros."}],
    "facts": [{"id": "regle", "document": "a", "quote": "plafond est de 140 euros"},
              {"id": "exception", "document": "a", "quote": "190 euros après accord écrit"}],
    "questions": [{"id": "q", "text": "Quel plafond ?", "required_facts": ["regle", "exception"]}],
}


def read_guard_case(**added: List[dict]) -> Case:
    """The case of the guards, with more documents, facts or questions."""
    case = {name: members + added.get(name, []) for name, members in GUARD_CASE.items()}
    return read_case(json.dumps(case).encode("utf-8"), "", lambda path: b"")


def verdicts(document: str, *sent: Tuple[int, int]) -> List[Any]:
    """[rule covered, exception covered, complete] when these words of a document are sent."""
    case, spans = read_guard_case(), [Span(document, *words) for words in sent]
    covered = [not missing_spans(fact.quotes[0].span, spans) for fact in case.facts.values()]
    return covered + [is_complete(case.questions[0], covered)]


def outcome_of(attempt: Callable[..., Any], *given: Any) -> Any:
    """What an attempt gives, or the sentences with which it is refused."""
    try:
        return attempt(*given)
    except AtelierError as error:
        return error.sentences


GUARDS = (  # the sentence to defend, what is tried, what must come, worked by hand
    ("deux documents de même identifiant sont refusés",
     lambda: read_guard_case(documents=[{"id": "b", "text": "Autre."}]),
     ["documents[2].id : identifiant « b » déjà pris par documents[1].id ; donnez-en un autre."]),
    ("deux faits de même identifiant sont refusés",
     lambda: read_guard_case(facts=[{"id": "regle", "document": "b", "quote": "140 euros"}]),
     ["facts[2].id : identifiant « regle » déjà pris par facts[0].id ; donnez-en un autre."]),
    ("deux questions de même identifiant sont refusées",
     lambda: read_guard_case(questions=[{"id": "q", "text": "Combien ?", "required_facts": ["regle"]}]),
     ["questions[1].id : identifiant « q » déjà pris par questions[0].id ; donnez-en un autre."]),
    ("un fait sur un document inconnu est refusé",
     lambda: read_guard_case(facts=[{"id": "c", "document": "z", "quote": "140 euros"}]),
     ["facts[2].document : document « z » inconnu. Possibles : a, b."]),
    ("une question sur un fait inconnu est refusée",
     lambda: read_guard_case(questions=[{"id": "r", "text": "Combien ?", "required_facts": ["regles"]}]),
     ["questions[1].required_facts[0] : fait « regles » inconnu. Vouliez-vous dire « regle » ?"]),
    ("une citation absente de son document est refusée",
     lambda: read_guard_case(facts=[{"id": "c", "document": "b", "quote": "plafond est de 150 euros"}]),
     ["facts[2].quote : « plafond est de 150 euros » n'est pas dans « b ». Texte le plus proche (mot 1) : "
      "« plafond est de 140 euros. » ; ce qui diffère : « 150 » y est écrit « 140 ». Recopiez le texte."]),
    ("une question incohérente avec ses faits est refusée",
     lambda: read_guard_case(questions=[
         {"id": "r", "text": "Combien ?", "required_facts": []},
         {"id": "s", "text": "Où ?", "answerable": False, "required_facts": ["regle"]}]),
     ["questions[1] : question sans fait exigé ; listez-les dans « required_facts », "
      'ou écrivez "answerable": false.',
      "questions[2] : question déclarée sans réponse, mais qui exige des faits ; "
      "ôtez les faits ou « answerable »."]),
    ("un document vide est refusé",
     lambda: read_guard_case(documents=[{"id": "c", "text": " \n"}]),
     ["documents[2].text : attendu : un texte non vide, entre guillemets ; trouvé : un texte vide."]),
    ("la règle sans son exception ne suffit pas",
     lambda: verdicts("a", (0, 6)), [True, False, False]),
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


def run_guards() -> Tuple[List[str], int]:
    """The lines to print and the number of failures; a crash is one, and so is having no guard."""
    lines, failures = [], 0
    for number, (sentence, attempt, expected) in enumerate(GUARDS, 1):
        try:
            obtained = outcome_of(attempt)
        except Exception as error:  # a guard must be able to say that the code it watches is broken
            obtained = repr(error)
        lines.append("{} {:>2} {}".format("ok   " if obtained == expected else "échec", number, sentence))
        if obtained != expected:
            failures += 1
            lines += ["         obtenu  : {}".format(obtained), "         attendu : {}".format(expected)]
    lines.append("{}, {}, {}".format(*map(counted, (len(GUARDS), len(GUARDS) - failures, failures),
                                          ("contrôle", "réussi", "échoué"))))
    return lines, failures + (not GUARDS)


# --- 18. Command: the only file access, the only printing, the only exit codes --------------------

OPTIONS = (  # names, what it takes (nothing: a flag), help
    ("--case", "FICHIER", "le cas à diagnostiquer (par défaut cas_fr.json, à côté du script)"),
    ("--output", "FICHIER", "écrit aussi le rapport JSON ; « - » : sur la sortie standard"),
    ("--html", "FICHIER", "dessine aussi la page"),
    ("--from", "RAPPORT", "avec --html : dessine un rapport déjà écrit"),
    ("--export", "FICHIER", "écrit les passages de chaque variante, en JSON par ligne"),
    ("--contexts", "FICHIER", "juge aussi ce qu'un autre moteur a envoyé (répétable)"),
    ("--require", "ID",
     "code 3 si un contexte de cette variante, ou de ce moteur, est incomplet (répétable)"),
    ("--baseline", "RAPPORT", "compare à un rapport antérieur"),
    ("--citations", "FICHIER", "juge les citations d'un registre ; sans cas"),
    ("--self-test", None, "exécute les treize contrôles de l'évaluateur"),
    ("--version", None, "affiche la version"),
    ("-h --help", None, "affiche cette aide"),
)


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
        raise AtelierError("L'option {} {} Voyez --help.".format(option.group() if option else "", problem))


def make_parser() -> FrenchParser:
    parser = FrenchParser(
        prog="atelier.py", add_help=False, allow_abbrev=False, formatter_class=FrenchFormatter,
        description="Dit si chaque mot des preuves exigées a survécu au découpage, à la recherche et au "
                    "budget de mots et, sinon, à quelle étape il s'est perdu.",
        epilog="Codes de sortie : 0 terminé ; 1 un contrôle a échoué ; 2 mauvais usage, mauvais cas, "
               "FTS5 absent ou sortie impossible à écrire ; 3 exigence non tenue (--require) ; "
               "130 interrompu.")
    group = parser.add_argument_group("options ")
    for names, taken, told in OPTIONS:
        kind = {"action": "append", "metavar": taken} if taken else {"action": "store_true"}
        group.add_argument(*names.split(), help=told, **kind)
    return parser


def parse_arguments(argv: Sequence[str]) -> Dict[str, Any]:
    """{option: value} of those given: a text, a list when it may be repeated, or True."""
    parsed, unknown = make_parser().parse_known_args(argv)
    options = {"--" + name.replace("_", "-"): value for name, value in vars(parsed).items() if value}
    for name in unknown:
        if "--case" not in options and not name.startswith("-"):
            raise AtelierError("{} : l'option manque ; pour diagnostiquer ce cas, écrivez --case {}.".format(
                shown(name), '"{}"'.format(name) if " " in name else name))
        known = [name for names, _, _ in OPTIONS for name in names.split()]
        raise AtelierError("L'option {} est inconnue. {}".format(shown(name), suggestion(name, known)))
    for name, values in options.items():
        if isinstance(values, list) and name not in ("--contexts", "--require"):
            if len(values) > 1:
                raise AtelierError("L'option {} est donnée deux fois ; gardez-en une.".format(name))
            options[name] = values[0]
    used = options.keys()
    if "--self-test" in used and len(used) > 1:
        raise AtelierError("--self-test s'emploie seul : il ne lit ni n'écrit aucun fichier.")
    if "--citations" in used and not used <= {"--citations", "--output", "--html"}:
        raise AtelierError(
            "--citations ne s'emploie qu'avec --output et --html : un registre se juge sans cas.")
    if "--from" in used and used != {"--from", "--html"}:
        raise AtelierError("--from s'emploie avec --html, et lui seul : le rapport contient déjà tout.")
    return options


def read_file(path: str, option: str) -> bytes:
    return b"".join(read_lines(path, option))


def read_lines(path: str, option: str = "--contexts") -> Iterator[bytes]:
    """The lines of a file, one at a time."""
    if not path:
        raise AtelierError("{} : chemin vide ; donnez un nom de fichier.".format(option))
    try:
        with open(path, "rb") as file:
            yield from file
    except OSError as error:
        raise AtelierError("{} : {} ; vérifiez le chemin.".format(path, os_problem(error))) from None
    except ValueError:
        raise AtelierError("{} : chemin invalide.".format(shown(path))) from None


class Folder:
    """Reads what stands under the folder of a file, and remembers which files it read."""

    def __init__(self, path: str):
        self.path = os.path.realpath(os.path.dirname(path))
        self.files: List[str] = []

    def read(self, name: str) -> bytes:
        """The bytes of a file, named from the folder; an AtelierError does not know its name."""
        if CONTROL.search(name):
            raise AtelierError("chemin invalide ; séparez les dossiers par « / ».")
        if os.path.isabs(name):
            raise AtelierError("chemin absolu ; donnez-le depuis le dossier du fichier qui le nomme.")
        path = os.path.realpath(os.path.join(self.path, name))
        try:
            inside = os.path.commonpath([self.path, path]) == self.path
        except ValueError:  # on Windows, another drive
            inside = False
        if not inside:
            raise AtelierError("hors du dossier du fichier qui le nomme ; placez-le sous ce dossier.")
        if os.path.exists(path) and not os.path.isfile(path):
            raise AtelierError("ce n'est pas un fichier ordinaire ; donnez un fichier de texte.")
        self.files.append(path)
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError as error:
            raise AtelierError("{} ; vérifiez le chemin.".format(os_problem(error))) from None


DESCRIPTOR = re.compile(r"/dev/std(in|out|err)|/(?:dev|proc/self)/fd/(\d+)")


def named_descriptor(path: str) -> Optional[int]:
    """The open descriptor that a path names, perhaps by links: `-` and /dev/stdout give 1."""
    if path == "-":
        return 1
    for _ in range(40):
        match = DESCRIPTOR.fullmatch(os.path.abspath(path))
        if match:
            return int(match.group(2) or ("in", "out", "err").index(match.group(1)))
        if not os.path.islink(path):
            break
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return None


def goes_to(stream: Any, path: str) -> bool:
    """Whether a standard stream goes to this regular file."""
    try:
        return os.path.isfile(path) and os.path.samestat(os.fstat(stream.fileno()), os.stat(path))
    except (AttributeError, OSError, ValueError):  # it may be absent, closed, or in memory
        return False


def descriptor_of(path: str) -> Optional[int]:
    """The descriptor that a path names, or 1 for the file where standard output goes."""
    named = named_descriptor(path)
    return 1 if named is None and goes_to(sys.stdout, path) else named


def check_outputs(options: dict, inputs: Sequence[str]) -> None:
    """Refuse, before any work, outputs that would destroy something or that cannot be written."""
    given = [(option, options[option]) for option in ("--output", "--html", "--export") if option in options]
    for number, (option, path) in enumerate(given):
        problem = find_problem(path, inputs, [earlier for _, earlier in given[:number]])
        if problem:
            raise AtelierError("{} : {}".format(path or option, problem))


def find_problem(path: str, inputs: Sequence[str], others: Sequence[str]) -> str:
    """Why an output is refused, with the mend; empty when it is not."""
    if not path or "\0" in path:
        return "chemin {} ; donnez un nom de fichier.".format("invalide" if path else "vide")
    target, descriptor = os.path.realpath(path), descriptor_of(path)
    folder = os.path.dirname(target)
    if any(descriptor == descriptor_of(other) and (descriptor or same_file(path, other)) for other in others):
        return "deux sorties ne peuvent avoir le même nom ; changez-en une."
    if path != "-" and os.path.isfile(target) and any(same_file(target, source) for source in inputs):
        return "c'est un fichier d'entrée ; donnez un autre nom."
    if named_descriptor(path) is not None:
        return ""
    if goes_to(sys.stderr, path):
        return "la sortie d'erreur y va déjà ; donnez un autre nom."
    if os.path.isdir(target):
        return "c'est un dossier ; donnez un nom de fichier."
    if os.path.islink(target):
        return "liens en boucle ; donnez un autre nom."
    if not os.path.isdir(folder):
        return ("un élément du chemin n'est pas un dossier." if os.path.exists(folder)
                else "le dossier n'existe pas ; créez-le.")
    if os.path.exists(target) and not (os.access(target, os.W_OK) and os.stat(target).st_mode & 0o222):
        return "fichier en lecture seule ; donnez un autre nom."
    return ""


def same_file(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


class Outputs:
    """Files on their way: written beside their targets, put in their places together, else removed."""

    def __init__(self):
        self.staged: List[Tuple[str, str, str]] = []  # (path as given, temporary file, target)

    def write(self, texts: Mapping[str, Iterable[str]]) -> None:
        """Write {path: pieces of a text}; a file is replaced once all are whole, a device or a pipe never."""
        path = ""
        try:
            streams = [path for path in texts if descriptor_of(path) is not None
                       or os.path.exists(path) and not os.path.isfile(path)]
            for path in texts:
                if path not in streams:
                    self.stage(path, texts[path])
            for path in streams:
                write_stream(path, texts[path])
            for path, temporary, target in self.staged:
                os.replace(temporary, target)
        except OSError as error:
            raise AtelierError("{} : {} ; cette sortie n'est pas écrite{}.".format(
                "sortie standard" if descriptor_of(path) == 1 else path, os_problem(error),
                " ({})".format(self.outcome()) if len(texts) > 1 else "")) from None

    def stage(self, path: str, pieces: Iterable[str]) -> None:
        """Write a text beside its target, in a file of its own, with the mode that it must have."""
        from tempfile import mkstemp
        target = os.path.realpath(path)
        descriptor, temporary = mkstemp(".tmp", ".atelier-", os.path.dirname(target))
        self.staged.append((path, temporary, target))
        with open(descriptor, "wb") as file:
            write_pieces(file, pieces)
        mask = os.umask(0)
        os.umask(mask)
        try:
            os.chmod(temporary, os.stat(target).st_mode & 0o7777 if os.path.exists(target) else 0o666 & ~mask)
        except PermissionError:
            pass  # a file system without modes

    def outcome(self) -> str:
        """What became of the files: one whose temporary file is gone has been replaced."""
        written = [path for path, temporary, _ in self.staged if not os.path.exists(temporary)]
        return "déjà écrit : {}".format(", ".join(written)) if written else "rien n'a été remplacé"

    def discard(self) -> None:
        for _, temporary, _ in self.staged:
            if os.path.exists(temporary):
                os.remove(temporary)


def write_stream(path: str, pieces: Iterable[str]) -> None:
    """Write to what is no file to replace; a reader that leaves has what it wanted."""
    descriptor = descriptor_of(path)
    try:
        if descriptor != 1:
            with open(path if descriptor is None else os.dup(descriptor), "wb") as file:
                write_pieces(file, pieces)
        elif sys.stdout:
            sys.stdout.flush()
            write_pieces(getattr(sys.stdout, "buffer", sys.stdout), pieces)
            sys.stdout.flush()
        else:
            raise OSError(EBADF, "closed")
    except BrokenPipeError:
        pass


def write_pieces(file: Any, pieces: Iterable[str]) -> None:
    """Write in UTF-8, but to an output in memory; half a pair, as in some file names, becomes `?`."""
    for piece in pieces:
        file.write(piece if file is sys.stdout else piece.encode("utf-8", "replace"))


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
            raise AtelierError("sortie standard : {}.".format(os_problem(error))) from None


def run(argv: Sequence[str]) -> int:
    """Do what is asked; the exit code.  A KeyboardInterrupt tells what became of the files."""
    options = parse_arguments(argv)
    if "--help" in options or "--version" in options:
        version = "atelier.py {}\n".format(__version__)
        say(make_parser().format_help() if "--help" in options else version, sys.stdout)
        return 0
    open_database().close()  # without FTS5, say so before any work
    if "--self-test" in options:
        lines, failures = run_guards()
        say("\n".join(lines) + "\n", sys.stdout)
        return 1 if failures else 0
    outputs = Outputs()
    try:
        if "--from" in options:
            return draw_saved(options, outputs)
        return (judge_register if "--citations" in options else diagnose_file)(options, outputs)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(outputs.outcome()) from None
    finally:
        outputs.discard()


def parse_file(path: str, option: str, parse: Callable[[bytes], Any]) -> Any:
    """What a file holds; parse raises AtelierErrors that do not know its name."""
    data = read_file(path, option)
    try:
        return parse(data)
    except AtelierError as error:
        raise AtelierError(*("{} : {}".format(path, sentence) for sentence in error.sentences)) from None


def draw_saved(options: dict, outputs: Outputs) -> int:
    """Draw a report already written."""
    path = options["--from"]
    report = parse_file(path, "--from", lambda data: parse_json(decode(data)))
    check_outputs(options, [path, __file__])
    try:
        page = list(draw_page(report))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise AtelierError("{} : ce n'est pas un rapport d'Atelier, ou il est abîmé ; donnez un fichier "
                           "écrit par --output.".format(path)) from None
    finish(outputs, {options["--html"]: page})
    return 0


def judge_register(options: dict, outputs: Outputs) -> int:
    """Judge the citations of a register."""
    path = options["--citations"]
    data, folder = read_file(path, "--citations"), Folder(path)
    citations = check_citations(data, os.path.basename(path), folder.read)
    check_outputs(options, [path, __file__, *folder.files])
    report = {"atelier": __version__, "environment": describe_environment(), "citations": citations}
    finish(outputs, make_texts(options, report), format_citations(citations))
    return 0


def diagnose_file(options: dict, outputs: Outputs) -> int:
    """Diagnose a case, with the contexts of other engines if any."""
    path = options.get("--case", os.path.join(os.path.dirname(os.path.abspath(__file__)), "cas_fr.json"))
    data, folder = read_file(path, "--case"), Folder(path)
    case = read_case(data, os.path.basename(path), folder.read)
    contexts, required = options.get("--contexts", []), options.get("--require", [])
    baseline = options.get("--baseline")
    earlier = None if baseline is None else parse_file(baseline, "--baseline", parse_report)
    check_outputs(options, [path, __file__, *folder.files, *contexts, *filter(None, [baseline])])
    engines: Dict[str, Dict[str, Sent]] = {}
    sources = Sources(case) if contexts else None
    names = [variant.id for variant in case.variants]
    for given in contexts:
        engines.update(read_contexts(read_lines(given), os.path.basename(given), sources, {*engines, *names}))
    names += engines
    for name in required:
        if name not in names:
            raise AtelierError("--require : {} n'est ni une variante ni un moteur. {}".format(
                shown(name), suggestion(name, names)))
    report = diagnose(case, engines, Progress(len(case.questions) * len(case.variants)))
    report["warnings"] += sources.warnings if sources else []
    if earlier:
        report["baseline"] = compare_reports(report, earlier)
    for warning in report["warnings"]:
        say("attention : {}\n".format(warning), sys.stderr)
    finish(outputs, make_texts(options, report, case),
           format_table(report) + (format_baseline(report["baseline"]) if earlier else ""))
    return check_requirements(report, required)


def make_texts(options: dict, report: dict, case: Optional[Case] = None) -> Dict[str, Iterable[str]]:
    """{path: pieces of a text} of the outputs asked for."""
    texts = {"--output": lambda: render_json(report), "--html": lambda: draw_page(report),
             "--export": lambda: export_passages(case)}
    return {options[name]: make() for name, make in texts.items() if name in options}


def check_requirements(report: dict, required: Iterable[str]) -> int:
    """0, or 3 once it is said which contexts of some variants and engines are incomplete."""
    code = 0
    for variant in report["variants"]:
        missed = [question["id"] for question in variant["questions"]
                  if question["all_required_covered"] is False and variant["id"] in required]
        if missed:
            code = 3
            say("exigence non tenue : {} : {} ({}{}).\n".format(
                variant["id"], counted(len(missed), "contexte incomplet"), ", ".join(missed[:5]),
                ", …" if len(missed) > 5 else ""), sys.stderr)
    return code


def finish(outputs: Outputs, texts: Mapping[str, Iterable[str]], table: str = "") -> None:
    """Write the files, print the table where none goes, tell a person at a terminal where they are."""
    outputs.write(texts)
    say(table, sys.stderr if 1 in map(descriptor_of, texts) else sys.stdout)
    if sys.stderr and sys.stderr.isatty():
        say("".join("Écrit : {}\n".format(path) for path in texts if descriptor_of(path) is None), sys.stderr)


class Progress:
    """Counts the questions done, on standard error when it is a terminal."""

    def __init__(self, total: int):
        self.total, self.done, self.told = total, 0, 0
        self.stream = sys.stderr if sys.stderr and sys.stderr.isatty() else None

    def __call__(self) -> None:
        self.done += 1
        percent = self.done * 100 // self.total
        if self.stream and percent > self.told:
            self.told = percent
            say("\r{:3} % des questions, toutes variantes comprises".format(percent) if percent < 100
                else "\r" + " " * 60 + "\r", self.stream)


def main(argv: Optional[Sequence[str]] = None) -> int:
    """The command: 0 done, 1 a guard failed, 2 for the user to mend, 3 --require not met, 130 interrupted."""
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
