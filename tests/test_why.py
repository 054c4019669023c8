"""Why a proof was lost, and how much would be enough: places, near forms, advice that is followed, trips, curves."""

import json
import unittest

from support import ROOT, TestCase, bare, make_case, question, run, variant


def first_loss(report, variant_id, question_id="q"):
    return question(report, variant_id, question_id)["facts"][0]["loss"]


class Places(TestCase):
    def test_a_place_has_the_passage_its_rank_and_the_terms_that_it_has_and_lacks(self):
        text = "Le préavis du cadre est long.\n\nLe préavis se compte en jours, sauf accord.\n\nUn délai de trois mois."
        case = make_case(text, "trois mois", question="Quel délai de préavis pour un cadre long ?", settings={"top_k": 1},
                         variants=[{"id": "v", "unit": "paragraphs"}])
        asked = question(self.report(case), "v")
        loss = asked["facts"][0]["loss"]
        self.assertEqual((loss["stage"], loss["rank"], loss["limit"]), ("ranked_too_low", 2, "top_k"))
        place, = loss["places"]
        self.assertEqual([place[key] for key in ("passage", "document", "start", "end", "words", "rank", "text")],
                         ["d#0003", "d", 14, 19, 5, 2, "Un délai de trois mois."])
        self.assertEqual([term["term"] for term in place["terms"]], ["délai"])
        self.assertEqual((place["lacking"], place["near"]), (["préavis", "cadre", "long"], []))
        self.assertAlmostEqual(sum(term["part"] for term in place["terms"]), -place["score"], 7)
        # rank 1 won by the terms that the proof's passage lacks
        self.assertEqual([term["term"] for term in asked["hits_before_budget"][0]["terms"]], ["préavis", "cadre", "long"])

    def test_a_form_near_a_lacking_term_is_shown_and_told(self):
        case = make_case("Les règles prescrivent trois mois.", "trois mois", question="Que prescrit le texte ?",
                         variants=[{"id": "v", "unit": "paragraphs"}])
        loss = first_loss(self.report(case), "v")
        self.assertEqual(loss["stage"], "not_matched")
        self.assertEqual(loss["places"][0]["near"], [["prescrit", "prescrivent"]])
        self.assertEqual((loss["places"][0]["rank"], loss["places"][0]["score"]), (None, None))
        _, out, _ = run("--case", self.write(case), "--question", "q")
        said = " ".join(out.split())
        self.assertIn("n'a pas : prescrit (proche : prescrivent), texte", said)
        self.assertNotIn("Le corpus le dit autrement", said)
        case["questions"][0]["text"] = "Que prescrivent les règles ?"  # as the advice says: its words
        self.assertTrue(question(self.report(case), "v")["all_required_covered"])

    def test_near_forms_share_four_letters_and_six_tenths(self):
        for term, word, near in (("prescrit", "prescrivent", True), ("délai", "délais", True), ("mois", "moisson", False),
                                 ("prix", "prise", False), ("louer", "loyer", False), ("état", "états", True),
                                 ("remboursement", "rembourser", True), ("rembours", "remboursementquivaloin", False)):
            case = make_case(word + " de trois ans.", "trois ans", question=term + " ?",
                             variants=[{"id": "v", "unit": "paragraphs"}])
            with self.subTest(term=term, word=word):
                self.assertEqual(first_loss(self.report(case), "v")["places"][0]["near"], [[term, word]] if near else [])


class Advice(TestCase):
    """Each loss's advice is followed, and the proof is covered; what it says to be vain is tried, and it is not."""

    def covered(self, case, variant_id="v"):
        return question(self.report(case), variant_id)["facts"][0]["covered"]

    def test_a_quote_longer_than_every_passage_asks_for_longer_ones(self):
        words = ["m{}".format(number) for number in range(200)]
        case = make_case(" ".join(words), " ".join(words[40:103]), question="m60", settings={"budget_words": 1000, "top_k": 1},
                         variants=[{"id": "v", "unit": "words", "size": 48}])
        loss = first_loss(self.report(case), "v")
        self.assertEqual((loss["stage"], loss["longest"], len(loss["pieces"])), ("split_at_boundary", 48, 3))
        _, out, _ = run("--case", self.write(case), "--question", "q")
        self.assertIn("aucun recouvrement n'y suffit", " ".join(out.split()))
        for overlap in range(0, 48):
            case["variants"] = [{"id": "v", "unit": "words", "size": 48, "overlap": overlap}]
            self.assertFalse(self.covered(case), overlap)
        case["variants"] = [{"id": "v", "unit": "words", "size": 200}]
        self.assertTrue(self.covered(case))

    def test_a_boundary_is_moved(self):
        words = ["m{}".format(number) for number in range(96)]
        case = make_case(" ".join(words), " ".join(words[44:52]), question="m50", settings={"top_k": 1},
                         variants=[{"id": "v", "unit": "words", "size": 48}])
        loss = first_loss(self.report(case), "v")
        self.assertEqual((loss["stage"], "longest" in loss), ("split_at_boundary", False))
        case["variants"] = [{"id": "v", "unit": "words", "size": 48, "overlap": 16}]
        self.assertTrue(self.covered(case))

    def test_pieces_beyond_the_budget_are_saved_by_an_overlap_too(self):
        words = ["m{}".format(number) for number in range(96)]
        words[10], words[60] = "clé", "clé"
        case = make_case(" ".join(words), " ".join(words[46:50]), question="clé", settings={"top_k": 2, "budget_words": 49},
                         variants=[{"id": "v", "unit": "words", "size": 48}])
        loss = first_loss(self.report(case), "v")
        self.assertEqual((loss["stage"], loss["words_over"], [piece["passage"] for piece in loss["pieces"]]),
                         ("cut_by_budget", 1, ["d#0001", "d#0002"]))
        self.assertEqual([place["passage"] for place in loss["places"]], ["d#0002", "d#0001"])
        self.assertTrue(self.covered(dict(case, settings={"top_k": 2, "budget_words": 50})))
        case["variants"] = [{"id": "v", "unit": "words", "size": 60, "overlap": 20}]
        self.assertTrue(self.covered(dict(case, settings={"top_k": 2, "budget_words": 60})))
        _, out, _ = run("--case", self.write(dict(case, variants=[{"id": "v", "unit": "words", "size": 48}])), "--question", "q")
        self.assertIn("recouvrement", " ".join(out.split()))

    def test_per_document_is_the_limit_and_top_k_changes_nothing(self):
        text = "clé clé clé\n\nclé clé\n\nclé un deux trois quatre"
        case = make_case(text, "trois quatre", question="clé", settings={"top_k": 4}, variants=[{"id": "v", "unit": "paragraphs"}],
                         questions=[{"id": "q", "text": "clé", "required_facts": ["f"], "per_document": 2}])
        loss = first_loss(self.report(case), "v")
        self.assertEqual((loss["stage"], loss["rank"], loss["limit"]), ("ranked_too_low", 3, "per_document"))
        _, out, _ = run("--case", self.write(case), "--question", "q")
        self.assertIn("« per_document » s'arrête avant lui", " ".join(out.split()))
        self.assertFalse(self.covered(dict(case, settings={"top_k": 100})))
        self.assertEqual(question(self.report(case), "v")["needed"]["deeper"], {"per_document": 3, "budget_words": 10})
        case["questions"][0]["per_document"] = 3
        self.assertTrue(self.covered(case))

    def test_a_rank_beyond_top_k_is_reached_by_a_larger_one(self):
        text = "clé clé clé\n\nclé clé\n\nclé un deux trois quatre"
        case = make_case(text, "trois quatre", question="clé", settings={"top_k": 2}, variants=[{"id": "v", "unit": "paragraphs"}])
        loss = first_loss(self.report(case), "v")
        self.assertEqual((loss["stage"], loss["rank"], loss["limit"]), ("ranked_too_low", 3, "top_k"))
        self.assertTrue(self.covered(dict(case, settings={"top_k": loss["rank"]})))

    def test_a_filter_says_what_it_wanted_and_what_the_document_has(self):
        case = make_case(documents=[{"id": "d", "text": "Le préavis est de trois mois.", "pays": "FR", "an": 2024},
                                    {"id": "e", "text": "Le préavis est de deux ans.", "pays": "BE"}],
                         filters={"pays": "BE"}, variants=[{"id": "v", "unit": "paragraphs"}])
        loss = first_loss(self.report(case), "v")
        self.assertEqual(bare(loss), {"stage": "filtered_out", "filter": {"pays": {"wanted": "BE", "found": "FR"}}})
        self.assertIn("écartée par un filtre : pays = FR (demandé : BE)", run("--case", self.write(case))[1])
        self.assertTrue(self.covered(dict(case, filters={"pays": loss["filter"]["pays"]["found"]})))
        loss = first_loss(self.report(dict(case, filters={}, questions=[
            {"id": "q", "text": "Préavis ?", "required_facts": ["f"], "filters": {"an": {"gte": 2025, "lte": 2030}}}])), "v")
        self.assertEqual(loss["filter"], {"an": {"wanted": {"gte": 2025, "lte": 2030}, "found": 2024}})

    def test_the_budget_that_words_over_asks_for_is_enough(self):
        report = json.loads((ROOT / "tests" / "cas" / "cas_fr.attendu.json").read_text(encoding="utf-8"))
        loss = question(report, "fixe_96_0", "q_train")["facts"][1]["loss"]
        case = json.loads((ROOT / "cas_fr.json").read_text(encoding="utf-8"))
        for words, complete in ((loss["words_over"] - 1, False), (loss["words_over"], True)):
            case["settings"] = dict(case.get("settings", {}), budget_words=120 + words)
            self.assertEqual(question(self.report(case), "fixe_96_0", "q_train")["all_required_covered"], complete)


class Trips(TestCase):
    def test_a_trip_fits_eighty_columns_and_replaces_the_losses(self):
        code, out, err = run("--question", "q_train", "--question", "q_repas")
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(all(len(line) <= 80 for line in out.splitlines()))
        self.assertNotIn("Preuves perdues", out)
        said = " ".join(out.split())
        for part in ("Question q_train : En quelle classe", "Question q_repas : Jusqu'à combien", "laissés de côté : En, quelle, le, de, est",
                     "2. transports#0002, 71 mots, dont 24 sous le budget", "par classe 0,588, remboursé 0,000, trajet 1,300, heures 0,588",
                     "preuve train_seconde (mots 79 à 87) : couverte",
                     "coupée par le budget : transports#0002, rang 2, il manque 23 mots au budget",
                     "n'a pas : billet, train, dure, cinq", "il suffirait de : un budget de 143 mots",
                     "rien ne suffirait, ni budget ni profondeur", "couverte il suffisait de : un budget de"):
            self.assertIn(part, said)
        self.assertEqual(out.count("suffisait"), 5)  # of complete questions
        self.assertEqual(out.count("fixe_48_16"), 5)  # three tables, two trips

    def test_a_question_that_the_case_has_not(self):
        self.assertEqual(run("--question", "q_trin"), (
            2, "", "--question : « q_trin » n'est pas une question du cas. Vouliez-vous dire « q_train » ?\n"))

    def test_past_twelve_losses_the_table_points_to_a_question_that_lost_one(self):
        facts = [{"id": "f{}".format(number), "document": "d", "quote": "mot{}".format(number)} for number in range(7)]
        asked = [{"id": "q{}".format(number), "text": "absent", "required_facts": ["f{}".format(number)]} for number in range(7)]
        case = make_case(" ".join("mot{}".format(number) for number in range(7)), facts=facts, questions=asked,
                         variants=[{"id": "v", "unit": "paragraphs"}, {"id": "w", "unit": "words", "size": 3}])
        _, out, _ = run("--case", self.write(case))
        self.assertIn("Preuves perdues (une à une : --question q0, ou --output FICHIER)\n", out)
        self.assertIn("\nQuestion q0 : absent\n", run("--case", self.write(case), "--question", "q0")[1])

    def test_a_complete_engine_without_hits_is_told_no_need(self):
        contexts = self.write(json.dumps({"question": "q", "context": ["Le préavis est de trois mois."]}), "m.jsonl")
        out = run("--case", self.write(make_case()), "--contexts", contexts, "--question", "q")[1]
        self.assertTrue(out.partition("\nm\n")[2].partition("Test des")[0].rstrip().endswith("couverte"), out)

    def test_an_engines_trip_says_what_it_can(self):
        case = make_case()
        contexts = self.write(json.dumps({"question": "q", "context": ["Le préavis est"], "hits": ["Le préavis est", "trois mois."]}), "m.jsonl")
        code, out, _ = run("--case", self.write(case), "--contexts", contexts, "--question", "q")
        said = " ".join(out.partition("Question q")[2].partition("\nm\n")[2].split())
        self.assertEqual(code, 0)
        for part in ("1. d:0-14, 3 mots", "2. d:18-29, 2 mots, dont 0 sous le budget", "coupée par le budget", "il suffirait de : un budget de 5 mots"):
            self.assertIn(part, said)


class Curves(TestCase):
    def test_the_reference_budgets(self):
        run("--output", self.folder / "rapport.json")
        report = json.loads((self.folder / "rapport.json").read_text(encoding="utf-8"))
        self.assertEqual({each["id"]: [asked["needed"] and asked["needed"]["budget_words"] for asked in each["questions"]]
                          for each in report["variants"]}, {
            "fixe_48_0": [71, 95, 38, None, 70, None], "fixe_96_0": [71, 143, 38, None, 118, None],
            "fixe_48_16": [70, 95, 38, 46, 70, None], "paragraphes": [71, 64, 38, 39, 45, None]})
        self.assertEqual(variant(report, "fixe_48_0")["summary"]["budget_curve"], [[38, 1], [70, 2], [71, 3], [95, 4]])
        self.assertEqual(variant(report, "fixe_48_16")["summary"]["depth_curve"], [[1, 2], [2, 5]])
        out = run()[1]
        for line in ("possible à top_k 3     contextes complets    budget suffisant", "fixe_48_0                             4/5             95 mots",
                     "fixe_96_0                             4/5            143 mots", "fixe_48_16                            5/5             95 mots",
                     "paragraphes                           5/5             71 mots"):
            self.assertIn(line, out.splitlines())

    def test_sets_stand_under_their_variant(self):
        case = make_case(questions=[{"id": "q", "text": "Préavis ?", "required_facts": ["f"], "set": "réglage"},
                                    {"id": "r", "text": "Délai ?", "required_facts": ["f"], "set": "validation"}])
        lines = run("--case", self.write(case))[1].splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith("paragraphes"))
        self.assertRegex(lines[at + 1], r"^  lot réglage +1/1 +1/1 +6 +0$")
        self.assertRegex(lines[at + 2], r"^  lot validation +0/1 +0/1 +0 +0$")

    def test_a_tiny_p_is_never_written_as_nought(self):
        facts = [{"id": "f{}".format(number), "document": "d{}".format(number), "quote": "mot{0} fin{0}".format(number)} for number in range(20)]
        case = make_case(documents=[{"id": "d{}".format(number), "text": "mot{0} fin{0}".format(number)} for number in range(20)], facts=facts,
                         questions=[{"id": "q{}".format(number), "text": "mot{}".format(number), "required_facts": ["f{}".format(number)]} for number in range(20)],
                         variants=[{"id": "v", "unit": "paragraphs"}, {"id": "w", "unit": "words", "size": 1}])
        out = run("--case", self.write(case))[1]
        self.assertIn("  v contre w : 20 à 0, p < 0,0001\n", out)
        self.assertNotIn("0,0000", out)


class QuestionFilters(TestCase):
    DOCUMENTS = [{"id": "d", "text": "Le préavis est de trois mois.", "service": "RH", "parties": ["Sodélec", "Nord"]},
                 {"id": "e", "text": "Le prix est de trois euros.", "service": "Achats", "parties": ["Sud"]}]

    def warned(self, **filters):
        case = make_case(documents=self.DOCUMENTS, questions=[{"id": "q", "text": "Préavis ?", "required_facts": ["f"], "filters": filters}])
        return [sentence for sentence in self.report(case)["warnings"] if sentence.startswith("question")]

    def test_a_filter_that_no_document_passes_shows_the_values_present(self):
        hidden = "question « q » : ses filtres écartent le fait « f », qu'elle exige."
        self.assertEqual(self.warned(service="rh"), [
            "question « q », filtre « service » : aucun document n'a rh. Valeurs présentes : « RH », « Achats ».", hidden])
        self.assertEqual(self.warned(parties="Sodelec"), [
            "question « q », filtre « parties » : aucun document n'a Sodelec. Valeurs présentes : « Sodélec », « Nord », « Sud ».", hidden])
        said = self.warned(service=["RH", "Achats"])
        self.assertIn("écrivez {\"in\": […]}", said[0])

    def test_a_filter_that_removes_a_fact_that_its_question_requires(self):
        self.assertEqual(self.warned(service="Achats"), ["question « q » : ses filtres écartent le fait « f », qu'elle exige."])
        self.assertEqual(self.warned(service="RH"), [])
        self.assertEqual(self.warned(service={"in": ["RH", "Achats"]}), [])


if __name__ == "__main__":
    unittest.main()
