"""The ranking, made from FTS5's postings, against FTS5's own bm25 and against a full sort.

What SQL says is asked of a table of its own: every passage as a row, every match scored and sorted.
That both are given the same words is the matter of test_words.py.
"""

import json
import random
import sqlite3
import unittest
from functools import lru_cache
from unittest import mock

import chroma
from support import ROOT, TestCase, atelier, make_case, run

SIZES = (1, 2, 3, 5, 8, 13)  # of random texts, in words


class Table:
    """Texts in an FTS5 table; `ranked` is what SQL says of a question: [(passage id, score)], best first."""

    def __init__(self, texts):
        self.ids = sorted(texts)
        self.database = sqlite3.connect(":memory:")
        self.database.execute("CREATE VIRTUAL TABLE rows USING fts5(text, tokenize = '{}')".format(
            atelier.TOKENIZER))
        self.database.executemany("INSERT INTO rows(rowid, text) VALUES (?, ?)",
                                  ((row, atelier.make_searchable(texts[passage]))
                                   for row, passage in enumerate(self.ids)))

    def ranked(self, terms, admitted=None):
        if not terms:
            return []
        found = self.database.execute("SELECT rowid, bm25(rows) FROM rows WHERE rows MATCH ?",
                                      (atelier.make_query(terms),))
        scored = sorted((score, self.ids[row]) for row, score in found)
        return [(passage, score) for score, passage in scored if admitted is None or passage in admitted]

    @lru_cache(None)
    def count(self, term):
        return len(self.ranked([term]))


class Compared(TestCase):
    """An index and a table of the same texts, asked the same questions."""

    def index(self, texts):
        index, table = atelier.Index(texts, texts.get), Table(texts)
        self.addCleanup(index.close)
        self.addCleanup(table.database.close)
        return index, table

    def same_answers(self, index, table, terms, admitted=None, ranks=None):
        """Equal to the last bit: best hits at several depths, ranks, counts, and what explains a score."""
        told = table.ranked(terms, admitted)
        for limit in (1, 3, None, 1000):
            self.assertEqual(index.best(terms, limit, admitted), told[:limit])
        places = {passage: rank for rank, (passage, _) in enumerate(told, 1)}
        for passage in ranks or table.ids:
            self.assertEqual(index.rank(terms, passage, admitted), places.get(passage))
        self.assertEqual(index.best(terms, 2, admitted), told[:2])  # after ranks, which took more candidates
        self.assertEqual([index.count(term) for term in terms], [table.count(term) for term in terms])
        for passage, score in told[:5]:
            total = 0.0
            for term, times, part in index.explain(terms, passage):
                self.assertGreaterEqual(times, 1)
                total += part
            self.assertEqual(-total, score)


class AgainstSql(Compared):
    def test_random_cases_with_filters_ties_repeats_and_phrases(self):
        for seed in range(300):
            chooser = random.Random(seed)
            words = ["mot{}".format(number) for number in range(chooser.choice((3, 8, 30)))]
            words += ["ch\u1e9eux", "a\u0cf1b", "É\u0301t\u00e9"]
            weights = range(len(words), 0, -1)
            drawn = [chooser.choices(words, weights, k=chooser.choice(SIZES))
                     for _ in range(chooser.choice((1, 11, 59)))]
            texts = {"d#{:04}".format(number): " ".join(text) for number, text in enumerate(drawn, 1)}
            index, table = self.index(texts)
            for _ in range(3):
                terms = chooser.choices(words[:-1] + ["absent", words[0]], k=chooser.randrange(0, 6))
                half = frozenset(chooser.sample(sorted(texts), len(texts) // 2))
                admitted = chooser.choice((None, None, frozenset(), half))
                with self.subTest(seed=seed, terms=terms, admitted=admitted):
                    self.same_answers(index, table, terms, admitted)
                    for passage, text in texts.items():
                        told = {term: times for term, times, _ in index.explain(words[:3], passage)}
                        self.assertEqual(told, {word: text.split().count(word)
                                                for word in words[:3] if word in text.split()})

    def test_a_term_of_several_tokens_counts_where_they_follow_each_other(self):
        folds = {"deux mots": ("deux", "mots"), "a a": ("a", "a"), "x y z": ("x", "y", "z")}
        texts = {"d#1": "deux mots, deux mots et mots deux", "d#2": "mots deux", "d#3": "a a a b a a",
                 "d#4": "x y x y z x z", "d#5": "deux beaux mots", "d#6": "rien", "d#7": "rien"}
        with mock.patch.dict(atelier.FOLDS, folds):
            index, table = self.index(texts)
            self.same_answers(index, table, ["deux mots", "a a", "x y z", "deux"])
            explained = index.explain(["deux mots", "deux"], "d#1")
            self.assertEqual([(term, times) for term, times, _ in explained], [("deux mots", 2), ("deux", 3)])
            self.assertEqual([index.count(term) for term in ("deux mots", "a a", "x y z")], [1, 1, 1])
            self.assertEqual(index.explain(["a a"], "d#3")[0][1], 3)

    def test_the_sizes_of_long_passages_are_read_whole(self):
        sizes = [1, 63, 64, 65, 8191, 8192, 20_000]
        texts = {"d#{}".format(size): " ".join(["mot", "autre"] * size) for size in sizes}
        index, table = self.index(texts)
        self.same_answers(index, table, ["mot", "autre"])
        self.assertEqual([index.explain(["mot"], passage)[0][1] for passage in texts], sizes)

    def test_no_passage_and_passages_without_a_word(self):
        index, _ = self.index({})
        self.assertEqual((index.best(["mot"], 3), index.count("mot")), ([], 0))
        index, table = self.index({"d#1": "…", "d#2": "-"})
        self.same_answers(index, table, ["mot"])

    def test_the_reference_case(self):
        case = atelier.read_case((ROOT / "cas_fr.json").read_bytes(), "cas_fr.json", None)
        self.compare_case(case, every=1)

    def test_real_text_with_and_without_stop_words(self):
        if not chroma.FOLDER.is_dir():
            self.skipTest("no data in {}".format(chroma.FOLDER.name))
        for stop_words in ([], chroma.ENGLISH_STOP_WORDS):
            data = json.dumps(chroma.make_case(stop_words=stop_words)).encode()
            self.compare_case(atelier.read_case(data, "chroma.json", None), every=30)

    def compare_case(self, case, every):
        """One question in so many, not the same in each variant."""
        texts = [question.text for question in case.questions]
        terms = [words.terms for words in atelier.search_terms(texts, case.settings.stop_words)]
        for first, variant in enumerate(case.variants):
            passages = atelier.cut(case.documents, variant).by_id
            index, table = self.index({passage: atelier.text_of(case.documents, passages[passage])
                                       for passage in passages})
            for searched in terms[first % every::every]:
                told = table.ranked(searched)
                ranks = [told[len(told) // part][0] for part in (2, 3, 9, 50)] if told else None
                self.same_answers(index, table, searched, ranks=ranks)


class OneQuestionToSql(TestCase):
    """Each variant asks FTS5's bm25 one question, lest a score that it never gave be told."""

    def test_another_formula_stops_the_run_in_a_sentence(self):
        for name, value in (("K1", 1.3), ("B", 0.7), ("LEAST_IDF", 1e-5)):
            with self.subTest(name), mock.patch.object(atelier, name, value):
                case = make_case("Le préavis est de trois mois.\n\nLe préavis est long.")
                code, out, err = run("--case", self.write(case))
                self.assertEqual((code, out), (2, ""))
                self.assertEqual(err, "Le bm25 de SQLite {} n'est pas celui que ce programme connaît et "
                                 "explique ; prenez un Python qui a un autre SQLite.\n".format(
                                     sqlite3.sqlite_version))

    def test_a_search_that_failed_is_not_remembered(self):
        """A second run in the same process searches the words that SQLite could not take in the first."""
        case = make_case("zébulon arrive tôt", "zébulon arrive", "Quand arrive Zébulon ?")
        with mock.patch.object(atelier, "TOKENIZER", "aucun"):
            self.assertEqual(run("--case", self.write(case))[0], 2)
        question = self.report(case)["variants"][0]["questions"][0]
        self.assertEqual([(term["term"], term["passages"]) for term in question["terms"]],
                         [("arrive", 1), ("zébulon", 1)])

    def test_rounding_alone_stops_nothing(self):
        with mock.patch.object(atelier, "K1", 1.2 * (1 + 1e-12)):
            self.assertEqual(run()[0], 0)

    def test_no_other_question_goes_through_sql(self):
        asked = []
        index = atelier.Index(["d#1", "d#2", "d#3"], {"d#1": "a", "d#2": "b", "d#3": "c"}.get)
        self.addCleanup(index.close)
        index.database.set_trace_callback(asked.append)
        for terms in (["absent"], ["a"], ["b", "c"], ["a", "c"]):
            index.best(terms, 3)
            index.rank(terms, "d#1")
        self.assertEqual(sum("MATCH" in sentence and "bm25" in sentence for sentence in asked), 1)


if __name__ == "__main__":
    unittest.main()
