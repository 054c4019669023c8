"""Passages and questions are cut into the same words, and FTS5 cuts them no further."""

import unicodedata
import unittest

from support import TestCase, atelier, make_case, question

PRIVATE, EMOJI, NEWER = "\uf0b7", "\U0001fae1", "\u1c95"  # a bullet, a face, a Georgian capital
# What Python takes for a letter or a digit and no search does: the apostrophe U+02BC, fillers that nobody
# sees, and signs that Unicode 6.1, which FTS5 knows, did not have as letters (New Tai Lue vowels, two Vedic
# signs).
NOT_LETTERS = {0x2bc, 0x115f, 0x1160, 0x3164, 0xffa0, *range(0x19b0, 0x19c1), 0x19c8, 0x19c9, 0x1cf2, 0x1cf3}


def searched(text, stop_words=atelier.STOP_WORDS):
    """(terms, ignored) of a question."""
    [words] = atelier.search_terms([text], stop_words)
    return tuple(words)


def fts5_tokens(texts):
    """What FTS5 indexes of each text: a list of lists of tokens."""
    database = atelier.open_database()
    try:
        database.execute("CREATE VIRTUAL TABLE t USING fts5(text, content = '', tokenize = '{}')".format(
            atelier.TOKENIZER))
        database.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, 'instance')")
        database.execute("BEGIN")
        database.executemany("INSERT INTO t(rowid, text) VALUES (?, ?)", enumerate(texts))
        tokens = [[] for _ in texts]
        for row, token in database.execute("SELECT doc, term FROM v ORDER BY doc, offset"):
            tokens[row].append(token)
        return tokens
    finally:
        database.close()


class EveryCharacter(TestCase):
    def test_fts5_takes_for_letters_what_it_is_given_and_no_more(self):
        points = [point for point in range(1, 0x30000) if not 0xd800 <= point < 0xe000]
        for pattern in ("a{0}b {0} {0}c d{0}", "{0}"):
            texts = [atelier.make_searchable(pattern.format(chr(point))) for point in points]
            for point, text, tokens in zip(points, texts, fts5_tokens(texts)):
                words = [word for word in text.split(" ") if any(map(str.isalnum, word))]  # not a mark alone
                if len(words) != len(tokens):
                    self.fail("U+{:04X}: {!r} is {} for FTS5".format(point, text, tokens))

    def test_letters_are_those_of_python_but_for_a_short_list(self):
        def is_searched(point):
            return any(map(str.isalnum, atelier.make_searchable(chr(point))))
        points = [point for point in range(1, 0x30000) if not 0xd800 <= point < 0xe000]
        letters = {point for point in points if chr(point).isalnum()}
        found = {point for point in points if is_searched(point)}
        self.assertEqual(found - letters, set())
        self.assertEqual(letters - found, NOT_LETTERS & letters)

    def test_a_question_finds_each_letter_in_either_case(self):
        points = set(range(1, 0x30000)) - NOT_LETTERS
        letters = [chr(point) for point in sorted(points) if chr(point).isalnum()]
        pairs = [(letter, cased) for letter in letters for cased in {letter.lower(), letter.upper()}
                 if len(unicodedata.normalize("NFC", cased)) == 1 and cased.upper().lower() == letter.lower()]
        tokens = fts5_tokens([atelier.make_searchable(character) for pair in pairs for character in pair])
        for (letter, cased), told, other in zip(pairs, tokens[::2], tokens[1::2]):
            if told != other:
                self.fail("{!r} is {} and {!r} is {}".format(letter, told, cased, other))
        self.assertGreater(len(pairs), 2000)


class SameWordsOnBothSides(TestCase):
    def covered(self, text, asked, quote="trois mois"):
        return question(self.report(make_case(text, quote, asked)), "paragraphes")["facts"][0]["covered"]

    def test_a_sign_that_fts5_takes_for_a_letter_glues_no_word(self):
        for sign in (PRIVATE, EMOJI, "\u20bf", "\u0378", "\u2e4f"):
            with self.subTest(sign=sign):
                self.assertTrue(self.covered(sign + "Préavis" + sign + ": trois mois.", "Quel préavis ?"))
                asked = "Quel " + sign + "préavis" + sign + " ?"
                self.assertTrue(self.covered("Préavis : trois mois.", asked))

    def test_an_invisible_character_cuts_no_word(self):
        for sign in "\u00ad\u200b\u200d\u2060\ufeff\u200e\u202a\u2066\ufe0f":
            with self.subTest(sign=sign):
                self.assertTrue(self.covered("Le pré" + sign + "avis : trois mois.", "Quel préavis ?"))
                self.assertTrue(self.covered("Le préavis : trois mois.", "Quel pré" + sign + "avis ?"))

    def test_composed_or_not(self):
        self.assertTrue(self.covered("Le pre\u0301avis : trois mois.", "Quel préavis ?"))
        self.assertTrue(self.covered("Le préavis : trois mois.", "Quel pre\u00ad\u0301avis ?"))

    def test_a_capital_that_fts5_does_not_know(self):
        if unicodedata.category(NEWER) == "Lu":
            self.assertTrue(self.covered("Le " + NEWER + " : trois mois.", NEWER.lower() + " ?"))

    def test_the_three_apostrophes(self):
        for apostrophe in "'’ʼ":
            self.assertTrue(self.covered("Durée de l{}avis : trois mois.".format(apostrophe), "Quel avis ?"))
            self.assertEqual(searched("Pourquoi l{}avis ?".format(apostrophe)), (["avis"], ["Pourquoi", "l"]))


class LoneCapitals(TestCase):
    def test_an_annex_is_found_by_its_letter(self):
        text = "Annexe C : 60 euros.\n\nAnnexe A : 90 euros."
        case = make_case(text, "90 euros", "Que dit l'annexe A ?", settings={"top_k": 1})
        told = question(self.report(case), "paragraphes")
        self.assertEqual([term["term"] for term in told["terms"]], ["dit", "annexe", "a"])
        self.assertTrue(told["all_required_covered"])

    def test_which_capitals_are_searched(self):
        for text, terms, ignored in (
                ("Que dit l'annexe A ?", ["dit", "annexe", "a"], ["Que", "l"]),
                ("L'annexe", ["annexe"], ["L"]),
                ("À quelle date ?", ["date"], ["À", "quelle"]),
                ("« À la date »", ["date"], ["À", "la"]),
                ("A", [], ["A"]),
                ("Annexe À", ["annexe", "à"], []),
                ("annexe a", ["annexe"], ["a"]),
                ("Que dit L'annexe ?", ["dit", "annexe"], ["Que", "L"]),
                ("Que dit L’annexe ?", ["dit", "annexe"], ["Que", "L"]),
                ("Article L. 1234-5", ["article", "l", "1234", "5"], []),
                ("Entre A, C et 'D'", ["entre", "a", "c"], ["et", "D"]),
                ("annexe AU", ["annexe"], ["AU"]),
                ("annexe B", ["annexe", "b"], [])):
            with self.subTest(text):
                self.assertEqual(searched(text), (terms, ignored))

    def test_words_left_out_are_told_as_written_in_order(self):
        self.assertEqual(searched("Où est LE préavis de la Préfecture, le préavis ?"),
                         (["préavis", "préfecture"], ["Où", "est", "LE", "de", "la", "le"]))
        self.assertEqual(searched("Le pre\u0301avis, et la pr\u00adime ?"),
                         (["préavis", "prime"], ["Le", "et", "la"]))
        self.assertEqual(searched("Le préavis", []), (["le", "préavis"], []))
        self.assertEqual(searched("… ?"), ([], []))


if __name__ == "__main__":
    unittest.main()
