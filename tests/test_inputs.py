"""Inputs on which other tools have failed: cutting, quotes, questions, budgets, ties, files."""

import json
import random
import re
import unicodedata
import unittest

from support import TestCase, atelier, bare, make_case, question, run, variant

FILLER = "mot " * 47


class Cutting(TestCase):
    def test_windows_worked_by_hand(self):
        for words, size, overlap, expected in (
                (9, 4, 1, [(0, 4), (3, 7), (6, 9)]),
                (8, 5, 2, [(0, 5), (3, 8)]),
                (6, 5, 2, [(0, 5), (3, 6)]),
                (5, 5, 2, [(0, 5)]),
                (0, 5, 2, []),
                (1, 1, 0, [(0, 1)]),
                (3, 2, 1, [(0, 2), (1, 3)])):
            self.assertEqual(atelier.windows(words, size, overlap), expected)

    def test_a_passage_is_the_exact_slice(self):
        case = make_case(" Un deux  trois\nquatre cinq six sept huit neuf\n", "six",
                         variants=[{"id": "v", "unit": "words", "size": 4, "overlap": 1}])
        self.assertEqual(
            [(row["id"], row["start"], row["end"], row["text"]) for row in self.passages(case)["v"]], [
                ("v/d#0001", 0, 4, "Un deux  trois\nquatre"), ("v/d#0002", 3, 7, "quatre cinq six sept"),
                ("v/d#0003", 6, 9, "sept huit neuf")])

    def test_impossible_windows_are_refused_before_any_work(self):
        for size, overlap in ((5, 5), (5, 6), (0, 0), (5, -1), ("5", 0), (5, "1"), (True, 0), (5, True), (1e3, 0), (5, 1.0)):
            with self.subTest(size=size, overlap=overlap), self.assertRaisesRegex(atelier.AtelierError, "refusée? ; il faut un entier"):
                atelier.windows(10, size, overlap)

    def test_paragraphs_are_separated_by_blank_lines_of_any_kind(self):
        for blank in ("\n\n", "\r\n\r\n", "\r\r", "\n \t\n", "\r\n \r\n", "\n\n\n\n", "\u2028\u2028", "\x85\x85"):
            report = self.report(make_case("Préavis un.\nEncore un." + blank + "Préavis trois mois."))
            self.assertEqual(variant(report, "paragraphes")["passages"], {"d": [[0, 4], [4, 7]]}, repr(blank))
        for single in ("\n", "\r\n", "\r", "\u2028", " "):
            report = self.report(make_case("Préavis un." + single + "Préavis trois mois."))
            self.assertEqual(variant(report, "paragraphes")["passages"], {"d": [[0, 5]]}, repr(single))

    def test_passage_numbers_sort_as_text_beyond_four_digits(self):
        case = make_case("mot\n\n" * 10_001 + "Le préavis est de trois mois.",
                         variants=[{"id": "p", "unit": "paragraphs"}])
        self.assertEqual(question(self.report(case), "p")["hits_before_budget"][0]["passage"], "d#10002")
        ids = [row["id"] for row in self.passages(case)["p"]]
        self.assertEqual(ids[:2], ["p/d#00001", "p/d#00002"])
        self.assertEqual(sorted(ids), ids)


class Quotes(TestCase):
    def place(self, text, quote, **fact):
        report = self.report(make_case(text, facts=[dict({"id": "f", "document": "d", "quote": quote}, **fact)]))
        fact = question(report, "fixe_48_0")["facts"][0]
        return fact["start"], fact["end"]

    def test_positions_are_the_words_touched(self):
        self.assertEqual(self.place("Le préavis, dit-on, est de trois mois.", "dit-on, est"), (2, 4))
        self.assertEqual(self.place("C'est l'indemnité due.", "indemnité"), (1, 2))
        self.assertEqual(self.place("Une fois (une seule) suffit.", "une seule"), (2, 4))

    def test_white_space_is_folded(self):
        text = "Frais :\u00a020\u202f€\r\n  par\tjour ."
        self.assertEqual(self.place(text, " 20 €  par jour\n"), (2, 6))

    def test_identical_sentences_are_told_apart_by_their_place(self):
        text = "Chapitre 1\n\nPréavis : un mois.\n\nChapitre 2\n\nPréavis : un mois."
        case = make_case(text, facts=[{"id": "f", "document": "d", "quote": "Préavis : un mois.", "start": 8}], settings={"top_k": 1})
        asked = question(self.report(case), "paragraphes")
        self.assertEqual([hit["passage"] for hit in asked["hits_before_budget"]], ["d#0002"])
        self.assertEqual(bare(asked["facts"][0]["loss"]), {
            "stage": "ranked_too_low", "missing": [[8, 12]], "passage": "d#0004", "rank": 2, "limit": "top_k"
        })

    def test_repeats_inside_one_word_are_one_place(self):
        self.assertEqual(self.place("Un aller-aller simple.", "aller"), (1, 2))

    def test_edges_inside_numbers_and_words(self):
        for text, quote in (("Soit 140 euros.", "40 euros"), ("Soit 2,5 euros.", "5 euros"),
                            ("Soit 2,5 euros.", "Soit 2"), ("Soit 1.500 euros.",
                                                            "500 euros"), ("Un x\u0304tat.", "Un x"),
                            ("Un e\u0301tat.", "tat"), ("Soit 10 %.", "1"), ("Le 12/03/2024.", "2024"),
                            ("Soit 1234-5-1.", "1234-5"), ("Soit -5 °C.", "5 °C"), ("Soit (−5 °C).", "5 °C"),
                            ("Soit 1/3 mois.", "3 mois"), ("Soit 1 140 euros.",
                                                           "140 euros"), ("Soit 1\n140 euros.", "140 euros"),
                            ("Soit 1 140 euros.", "Soit 1"), ("Soit 1 234 567 euros.",
                                                              "234 567"), ("Soit 1 234 567 euros.", "1 234")):
            with self.subTest(quote=quote):
                self.assertIn("à l'intérieur d'un mot ou d'un nombre", self.refused(make_case(text, quote))[0])
        self.assertEqual(self.place("Soit 5, ou 6.", "5"), (1, 2))
        self.assertEqual(self.place("Soit A-5 ou B - 6.", "5"), (1, 2))
        self.assertEqual(self.place("Soit -5 °C.", "-5 °C"), (1, 3))
        self.assertEqual(self.place("En 2024 140 euros.", "140 euros"), (2, 4))
        self.assertEqual(self.place("Lot 1 1400 euros.", "1400 euros"), (2, 4))
        self.assertEqual(self.place("Lot 12 14 euros.", "14 euros"), (2, 4))
        self.assertEqual(self.place("Article 1\n\n140 euros.", "140 euros"),
                         (2, 4))  # no number goes on in another paragraph
        self.assertEqual(self.place("Soit 140 euros. Ou 40 euros.", "40 euros"), (4, 6))

    def test_a_number_is_whole_whatever_groups_its_thousands(self):
        whole = {" ": (2, 5), "\u00a0": (2, 5), "\u202f": (2, 5), "'": (2, 4), "’": (2, 4), "": (2, 4)}
        for written, place in whole.items():
            text = "Prime de 4{}000 euros.".format(written)
            for quoted in whole:
                quote = "4{}000 euros".format(quoted)
                with self.subTest(text=text, quote=quote):
                    same = {written, quoted} <= {" ", "\u00a0", "\u202f"} or {written, quoted} <= {
                        "'", "’"} or written == quoted
                    if same:
                        self.assertEqual(self.place(text, quote), place)
                    else:
                        self.assertIn("Texte le plus proche (mot 2)", self.refused(make_case(text, quote))[0])
            for part in ("000 euros", "00 euros", "de 4"):
                with self.subTest(text=text, quote=part):
                    self.assertIn("à l'intérieur d'un mot ou d'un nombre : « ",
                                  self.refused(make_case(text, part))[0])
            self.assertEqual(self.place(text, "euros"), (place[1] - 1, place[1]))

    def test_apostrophes_are_one_and_so_are_composed_and_decomposed_letters(self):
        text = "La loi ne dispose que pour l'avenir ; elle n'a point d'effet re\u0301troactif."
        for quote in (text, text.replace("'", "’"), text.replace("'", "ʼ"), unicodedata.normalize(
                "NFC", text), unicodedata.normalize("NFD", text)):
            self.assertEqual(self.place(text, quote), (0, 13))
            self.assertEqual(self.place(unicodedata.normalize("NFC", text).replace("'", "’"), quote), (0, 13))
        self.assertEqual(self.place("L’" + "e\u0301te\u0301 " * 3 + "est chaud.", "été est"), (2, 4))

    def test_the_character_where_a_quote_starts_tells_its_place(self):
        for text in ("Un mois. L’e\u0301te\u0301, un mois. Puis un mois.",
                     "\u00a0Un mois.\r\n\r\nL'été, un  mois. Puis un mois."):
            at = text.index("mois", 10)
            self.assertEqual(self.place(text, "mois", start_char=at), (4, 5))
            self.assertEqual(self.place(text, " mois", start_char=at - 1),
                             (4, 5))  # a tool that takes the blank with it
            self.assertEqual(self.place(text, "mois", start_char=text.rindex("mois")), (7, 8))
            case = make_case(text,
                             facts=[{"id": "f", "document": "d", "quote": "mois", "start_char": at + 1}])
            self.assertEqual(
                self.refused(case)[0].split(" : ", 2)[2],
                "« mois » ne commence pas au caractère {} de « d » ; « start_char » peut valoir : "
                "{}.".format(at + 1, ", ".join(str(match.start()) for match in re.finditer("mois", text))))
        self.assertEqual(self.place("Un aller-aller simple.", "aller", start_char=9), (1, 2))
        self.assertEqual(
            self.report(
                make_case("a b a",
                          facts=[{"id": "f", "any_of": [
                              {"document": "d", "quote": "a",
                               "start_char": 4}]}]))["variants"][0]["questions"][0]["facts"][0]["start"], 2)

    def test_one_changed_figure_is_named(self):
        self.assertEqual(self.refused(make_case("Le plafond est de 150 euros.", "plafond est de 110 euros")), [
            "cas.json : facts[0] (f).quote : « plafond est de 110 euros » n'est pas dans « d ». Texte le plus proche (mot 1) : "
            "« plafond est de 150 euros. » ; ce qui diffère : « 110 » y est écrit « 150 ». Recopiez le texte."])

    def test_a_wrong_start_is_refused_even_where_the_quote_stands_once(self):
        fact = {"id": "f", "document": "d", "quote": "trois mois", "start": 3}
        self.assertEqual(self.refused(make_case(facts=[fact])), [
            "cas.json : facts[0] (f).quote : « trois mois » ne commence pas au mot 3 de « d » ; « start » peut valoir : 4."
        ])

    def test_the_first_ten_places_of_a_quote_are_listed(self):
        places = "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
        for repeats, listed in ((10, places), (11, places + ", …")):
            self.assertEqual(self.refused(make_case("mot " * repeats, "mot")), [
                "cas.json : facts[0] (f).quote : « mot » figure plusieurs fois dans « d », aux mots {} ; précisez laquelle, "
                "par exemple \"start\": 0.".format(listed)])

    def test_a_word_left_out_of_a_quote_is_named_and_three_differences_at_most(self):
        told, = self.refused(
            make_case("Le préavis normal est de trois mois francs.", "préavis est de trois mois francs"))
        self.assertIn("ce qui diffère : « normal » manque à la citation. Recopiez", told)
        told, = self.refused(
            make_case("un a deux b trois c quatre d cinq", "un A1 deux B1 trois C1 quatre D1 cinq"))
        self.assertEqual(
            told.partition("ce qui diffère : ")[2],
            "« A1 » y est écrit « a », « B1 » y est écrit « b », « C1 » y est écrit « c », …. Recopiez le texte."
        )

    def test_a_missing_final_full_stop_is_no_difference(self):
        self.assertEqual(self.place("Le préavis est de trois mois.", "est de trois mois"), (2, 6))


class Questions(TestCase):
    TEXT = "L'hôtel coûte 20.5 euros, soit 50% de a,b pour x. Un co-traitant cite art:12, ses frais, near b et not x ou and."

    def ask(self, text, **changes):
        return question(self.report(make_case(self.TEXT, "frais", question=text, **changes)), "fixe_48_0")

    def test_nothing_in_a_question_is_an_operator(self):
        for text, plain in (("l'hôtel", "hôtel"), ("20.5", "20 5"), ("50%", "50"), ("a,b", "a b"), ("@x", "x"), ("AND", "and"), ("NOT x", "not x"),
                            ("co-traitant", "co traitant"), ("art:12", "art 12"), ("-frais", "frais"), ("frais*", "frais"), ("^frais", "frais"),
                            ("{t}:x", "t x"), ("NEAR(a b)", "near a b"), ("frais OR x", "frais or x"), ("fr\"ais\"", "fr ais"), ("frais + x", "frais x")):
            with self.subTest(text=text):
                settings = {"stop_words": ["l", "de"]}
                asked, expected = self.ask(text, settings=settings), self.ask(plain, settings=settings)
                self.assertEqual([term["term"] for term in asked["terms"]], plain.split())
                self.assertEqual(asked["hits_before_budget"], expected["hits_before_budget"])
                self.assertEqual(len(asked["hits_before_budget"]), int(text != "fr\"ais\""))

    def test_a_question_without_hits_says_why(self):
        for text, reason in (("?", "no_term"), ("€", "no_term"), ("(", "no_term"), ('"', "no_term"), ("*", "no_term"), ("le de la", "no_term"),
                             ("zzz ?", "no_match")):
            asked = self.ask(text)
            self.assertEqual((asked["no_hits"], asked["hits_before_budget"], asked["words_sent"]), (reason, [], 0), text)
            self.assertEqual(asked["facts"][0]["loss"]["stage"], "not_matched")
        self.assertIsNone(self.ask("frais")["no_hits"])

    def test_unicode_forms_find_each_other(self):
        for form, other in (("NFC", "NFD"), ("NFD", "NFC")):
            case = make_case(unicodedata.normalize(form, "Un délai, un préavis."), "délai", question=unicodedata.normalize(other, "Préavis ?"))
            case["facts"][0]["quote"] = unicodedata.normalize(form, "délai")
            asked = question(self.report(case), "fixe_48_0")
            self.assertEqual([len(asked["hits_before_budget"]), asked["terms"]], [1, [{"term": "préavis", "passages": 1}]])

    def test_a_repeat_weighs_once_as_fts5_folds_it(self):
        once = self.ask("hôtel frais")
        for text in ("hôtel frais hôtel", "hôtel HÔTEL frais Hotel", "hôtel frais, hotel"):
            asked = self.ask(text)
            self.assertEqual(asked["query"], '"hôtel" OR "frais"')
            self.assertEqual(asked["hits_before_budget"], once["hits_before_budget"])

    def test_words_that_carry_a_condition_are_searched(self):
        for text, word in (("reste dû", "dû"), ("sans justificatif", "sans"), ("pas prises en charge", "pas"), ("hors taxe", "hors"),
                           ("sauf accord", "sauf"), ("ni l'un", "ni"), ("ou non", "non")):
            self.assertIn(word, [term["term"] for term in self.ask(text)["terms"]])
        self.assertEqual(self.ask("Où est-ce dû à la carte ?")["query"], '"dû" OR "carte"')

    def test_stop_words_are_cut_as_questions_are(self):
        asked = self.ask("C'est aujourd'hui, DÛ.", settings={"stop_words": ["c'est", "Aujourd’hui", "du"]})
        self.assertEqual([term["term"] for term in asked["terms"]], ["dû"])

    def test_a_question_of_fifty_thousand_words(self):
        words = " ".join("w{}".format(number) for number in range(50_000))
        asked = self.ask("frais " + words, variants=[{"id": "fixe_48_0", "unit": "words", "size": 48}])
        self.assertEqual((len(asked["terms"]), len(asked["hits_before_budget"])), (50_001, 1))


class Contexts(TestCase):
    def test_five_identical_passages_come_in_the_order_of_their_ids(self):
        documents = [{"id": id, "text": "Le préavis est d'un mois."} for id in "edcba"] + [{"id": "d0", "text": "Trois mois."}]
        for order in range(4):
            random.Random(order).shuffle(documents)
            case = make_case(documents=documents, facts=[{"id": "f", "document": "d0", "quote": "Trois mois"}])
            for each in self.report(case)["variants"]:
                hits = each["questions"][0]["hits_before_budget"]
                self.assertEqual([hit["passage"] for hit in hits], ["a#0001", "b#0001", "c#0001"])
                self.assertEqual(len({hit["score"] for hit in hits}), 1)

    def test_a_proof_beyond_the_budget_inside_one_paragraph(self):
        words = ["mot{}".format(number) for number in range(300)]
        words[249:252] = ["préavis", "trois", "mois"]
        fact = question(self.report(make_case(" ".join(words), "trois mois")), "paragraphes")["facts"][0]
        self.assertEqual(bare(fact["loss"]), {
            "stage": "cut_by_budget", "missing": [[250, 252]], "passage": "d#0001", "rank": 1,
            "words_over": 132})

    def test_budgets_worked_by_hand(self):
        for lengths, expected in (([60, 60], [60, 60]), ([60, 61], [60, 60]), ([121], [120]), ([121, 5], [120, 0]), ([], []), ([120, 1], [120, 0])):
            self.assertEqual(atelier.assemble(lengths, 120), expected)

    def test_a_quote_that_stops_one_word_early_in_the_context(self):
        text = "Préavis : " + FILLER + "il est de trois mois francs."
        words = len(text.split())
        for budget, covered in ((words - 1, False), (words, True)):
            asked = question(self.report(make_case(text, "trois mois francs", settings={"budget_words": budget})), "paragraphes")
            self.assertEqual(asked["all_required_covered"], covered)
            self.assertEqual(asked["context"][0]["truncated"], not covered)

    def test_two_documents_that_read_as_one_sentence_prove_nothing(self):
        documents = [{"id": "a", "text": "Le préavis est de trois"}, {"id": "b", "text": "mois, préavis compris."},
                     {"id": "c", "text": "Sans rapport : le délai est de trois mois."}]
        case = make_case(documents=documents, facts=[{"id": "f", "document": "c", "quote": "de trois mois"}])
        fact = question(self.report(case), "paragraphes")["facts"][0]
        self.assertEqual((fact["words_covered"], fact["loss"]["stage"]), (0, "not_matched"))
        self.assertNotIn("same_words_in", fact["loss"])

    def test_the_clause_of_2023_does_not_prove_that_of_2024(self):
        clause = "Le préavis est de trois mois."
        documents = [{"id": "contrat_2023", "text": clause, "status": "archived"}, {"id": "contrat_2024", "text": clause, "status": "current"}]
        facts = [{"id": "f", "document": "contrat_2024", "quote": "préavis est de trois mois"}]
        lost = question(self.report(make_case(documents=documents, facts=facts, settings={"top_k": 1})), "fixe_48_0")["facts"][0]
        self.assertEqual(
            bare(lost["loss"]), {
                "stage": "ranked_too_low", "missing": [[1, 6]], "passage": "contrat_2024#0001", "rank": 2,
                "limit": "top_k", "same_words_in": ["contrat_2023"]})
        filtered = make_case(documents=documents, facts=facts, filters={"status": "archived"})
        self.assertEqual(
            bare(question(self.report(filtered), "fixe_48_0")["facts"][0]["loss"]), {
                "stage": "filtered_out", "filter": {"status": {"wanted": "archived", "found": "current"}},
                "same_words_in": ["contrat_2023"]})
        self.assertTrue(question(self.report(dict(filtered, filters={"status": "current"})), "fixe_48_0")["all_required_covered"])

    def test_filters_restrict_candidates_not_statistics(self):
        documents = [{"id": "a", "text": "Le préavis est de trois mois.", "pays": ["FR", "BE"]}, {"id": "b", "text": "Préavis ailleurs.", "pays": "LU"},
                     {"id": "c", "text": "Rien.", "pays": "FR"}]
        case = make_case(documents=documents, facts=[{"id": "f", "document": "a", "quote": "trois mois"}])
        free, filtered = self.report(case), self.report(dict(case, filters={"pays": "BE"}))
        hits, kept = (question(report, "fixe_48_0")["hits_before_budget"] for report in (free, filtered))
        self.assertEqual([hit for hit in hits if hit["document"] == "a"], [dict(hit, rank=2) for hit in kept])
        self.assertEqual(question(filtered, "fixe_48_0")["terms"], [{"term": "préavis", "passages": 2}])

    def test_pieces_are_listed_in_text_order_with_their_ranks(self):
        text = "alpha " * 46 + "le préavis est de trois mois francs " + "préavis " * 20
        asked = question(self.report(make_case(text, "préavis est de trois", facts=[
            {"id": "f", "document": "d", "quote": "est de trois mois"}], settings={"top_k": 1})), "fixe_48_0")
        self.assertEqual(asked["facts"][0]["loss"], None)
        case = make_case("alpha " * 46 + "un délai de six semaines " + "préavis " * 20, "un délai de six semaines", settings={"top_k": 1})
        self.assertEqual(bare(question(self.report(case), "fixe_48_0")["facts"][0]["loss"]), {
            "stage": "split_at_boundary", "missing": [[46, 48]],
            "pieces": [{"passage": "d#0001", "rank": None}, {"passage": "d#0002", "rank": 1}]})


class Files(TestCase):
    def test_line_ends_and_bom_do_not_change_the_verdicts(self):
        text = json.dumps(make_case("Un.\n\nLe préavis\nest de trois mois.", "préavis est de trois"), ensure_ascii=False, indent=1)
        plain = self.report(text)
        for other in (text.replace("\n", "\r\n"), "\ufeff" + text, text.replace("\\n", "\\r\\n")):
            report = self.report(other)
            self.assertEqual([each["passages"] for each in report["variants"]], [each["passages"] for each in plain["variants"]])
            self.assertEqual([each["summary"] for each in report["variants"]], [each["summary"] for each in plain["variants"]])

    def test_ids_that_are_not_texts_or_that_differ_by_a_space(self):
        question = {"id": "1", "text": "Quel ?", "required_facts": ["f"]}
        self.assertEqual(self.refused(make_case(questions=[dict(question, id=1), question])), [
            "cas.json : questions[0].id : attendu : un texte non vide, entre guillemets ; trouvé : 1."])
        self.assertEqual(self.refused(make_case(questions=[dict(question, id="A"), dict(question, id="A ")])), [
            "cas.json : questions[1] (A).id : identifiant « A » déjà pris par questions[0] (A).id ; donnez-en un autre."])

    def test_invisible_characters_and_idle_facts_and_like_variants_are_told(self):
        case = make_case("Le pré\u00adavis est de trois mo\u200bis.", "est de trois")
        case["facts"].append({"id": "g", "document": "d", "quote": "est de"})
        code, _, err = run("--case", self.write(case))
        self.assertEqual((code, err.splitlines()), (0, [
            "attention : fait « g » : aucune question ne l'exige.",
            "attention : document « d » : trait d'union conditionnel (U+00AD, 1 fois, d'abord au mot 1) ; il ne se voit pas, et une citation qui ne l'a pas n'y est plus : ôtez-le.",
            "attention : document « d » : espace de largeur nulle (U+200B, 1 fois, d'abord au mot 5) ; il ne se voit pas, et une citation qui ne l'a pas n'y est plus : ôtez-le.",
            "attention : variante « fixe_48_16 » : le recouvrement n'a aucun effet, chaque document tient en un passage.",
            "attention : variantes fixe_48_0, fixe_96_0, fixe_48_16, paragraphes : mêmes passages ; les comparer n'apprend rien."]))
        self.assertEqual(["attention : " + warning for warning in self.report(case)["warnings"]], err.splitlines())

    def test_a_case_without_answerable_question(self):
        report = self.report(make_case(facts=[], questions=[{"id": "q", "text": "Quel préavis ?", "answerable": False}]))
        summary = report["variants"][0]["summary"]
        self.assertEqual((summary["complete_contexts"], summary["answerable_questions"], summary["words_sent"], summary["losses"]), (0, 0, 0, {}))
        self.assertEqual(question(report, "fixe_48_0")["words_sent"], 6)
        self.assertIsNone(question(report, "fixe_48_0")["all_required_covered"])

    def test_a_case_without_question(self):
        report = self.report(make_case(facts=[], questions=[]))
        self.assertEqual(report["variants"][0]["questions"], [])
        self.assertIn("aucune question : seuls les passages sont décrits.", report["warnings"])

    def test_what_a_reader_should_know_of_questions_and_filters_is_told(self):
        case = make_case(documents=[{"id": "d", "text": "Le préavis est de trois mois.", "status": "x"}, {"id": "e", "text": "Un.", "statut": "x"}],
                         filters={"status": "x"}, question="pré\u200bavis")
        case["questions"].append({"id": "vide", "text": "Quel est le ?", "required_facts": ["f"]})
        self.assertEqual(self.report(case)["warnings"][:3], [
            "question « q » : espace de largeur nulle (U+200B, 1 fois, d'abord au mot 0) ; il ne se voit pas, et une citation qui ne l'a pas n'y est plus : ôtez-le.",
            "question « vide » : aucun mot à chercher, une fois ôtés les mots vides.",
            "filtre « status » : clé absente de « e » ; le filtre les écarte."])

    def test_every_invisible_character_is_told(self):
        for character in "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff":
            warnings = self.report(make_case("Le pré{}avis est de trois mois.".format(character)))["warnings"]
            self.assertRegex(
                warnings[0], r"^document « d » : .+ \(U\+{:04X}, 1 fois, d'abord au mot 1\)".format(
                    ord(character)))

    def alike(self, documents, *variants):
        """The warnings about variants that cut alike, or whose overlap is idle."""
        case = make_case(documents=documents, facts=[], questions=[], variants=list(variants))
        return [warning for warning in self.report(case)["warnings"] if warning.startswith("variante")]

    def test_variants_that_differ_by_filters_titles_or_one_overlap_are_not_alike(self):
        plain = [{"id": "d", "text": "mot " * 9}, {"id": "e", "text": "mot"}]
        one, two = {"id": "v", "unit": "paragraphs"}, {"id": "w", "unit": "paragraphs"}
        self.assertEqual(self.alike(plain, one, two),
                         ["variantes v, w : mêmes passages ; les comparer n'apprend rien."])
        self.assertEqual(self.alike(plain, one, dict(two, question_filters=False)), [])
        sections = {"id": "v", "unit": "sections", "max_chars": 20}
        titled = [{"id": "d", "sections": [{"title": "T", "text": "aaaa bbbbbbbbb ccccccccc"}]}]
        self.assertEqual(self.alike(titled, sections, dict(sections, id="w", repeat_title=True)), [])
        overlapping = {"id": "v", "unit": "words", "size": 5, "overlap": 2}
        self.assertEqual(self.alike(plain, overlapping), [])
        self.assertEqual(self.alike(plain[1:], overlapping), [
            "variante « v » : le recouvrement n'a aucun effet, chaque document tient en un passage."])

    def test_documents_without_the_filtered_key_are_told_those_of_sections_apart(self):
        documents = [{
            "id": "d", "sections": [{"title": "Un", "text": "Le préavis est de trois mois.", "pays": "FR"}]}]
        self.assertNotIn(
            "clé absente", " ".join(
                self.report(make_case(documents=documents, filters={"pays": "FR"}))["warnings"]))
        documents += [{"id": "e{}".format(number), "text": "Un."} for number in range(6)]
        self.assertIn(
            "filtre « pays » : clé absente de « e0 », « e1 », « e2 », « e3 », « e4 », … ; le filtre les écarte.",
            self.report(make_case(documents=documents, filters={"pays": "FR"}))["warnings"])

    def test_words_of_the_trade_are_searched(self):
        for text, word in (("le tarif d'été", "été"), ("obtenir un avoir", "avoir"), ("le fait générateur", "fait")):
            self.assertIn(word, [term["term"] for term in question(self.report(make_case(question=text)), "fixe_48_0")["terms"]])


class WhatIsHidden(TestCase):
    """What a fault hides is not accused in its turn."""

    def test_an_empty_list_of_facts_is_told_where_one_is_required(self):
        self.assertEqual(self.refused(make_case(facts=[])), [
            "cas.json : questions[0] (q).required_facts[0] : fait « f » inconnu : « facts » est vide ; définissez-le."])

    def test_a_quote_of_the_second_of_two_documents_of_one_id_is_not_accused(self):
        documents = [{"id": "d", "text": "Un."}, {"id": "d", "text": "Le préavis est de trois mois."}]
        self.assertEqual(self.refused(make_case(documents=documents)), [
            "cas.json : documents[1] (d).id : identifiant « d » déjà pris par documents[0] (d).id ; donnez-en un autre."])

    def test_an_empty_list_of_documents_accuses_no_fact(self):
        self.assertEqual(self.refused(make_case(documents=[])), [
            "cas.json : documents : liste vide ; donnez au moins un document."])


if __name__ == "__main__":
    unittest.main()
