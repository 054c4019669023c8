"""Engines that would look better than they are: what the table, report, page and --require say of them."""

import hashlib
import html
import json
import re
import unittest

from support import ROOT, TestCase, bare, make_case, question, run, variant

# Eight words that the filter admits and four that it excludes, under a budget of six.
CASE = {
    "filters": {"statut": "en vigueur"}, "settings": {"budget_words": 6},
    "documents": [
        {"id": "contrat", "statut": "en vigueur", "text": "Préavis : trois mois.\n\nDurée : trois ans."},
        {"id": "ancien", "statut": "expiré", "text": "Préavis : un mois."}],
    "facts": [{"id": "preavis", "document": "contrat", "quote": "Préavis : trois mois"},
              {"id": "duree", "document": "contrat", "quote": "Durée : trois ans"}],
    "questions": [{"id": "q_preavis", "text": "Quel préavis ?", "required_facts": ["preavis"]},
                  {"id": "q_duree", "text": "Quelle durée ?", "required_facts": ["duree"]},
                  {"id": "q_loyer", "text": "Quel loyer ?", "answerable": False}]}
CONTRACT, FORMER = {"document": "contrat", "start": 0, "end": 8}, {"document": "ancien", "start": 0, "end": 4}
NOTICE, TERM = {"document": "contrat", "start": 0, "end": 4}, {"document": "contrat", "start": 4, "end": 8}


class Judged(TestCase):
    """A test that has engines judged."""

    def judge(self, case, contexts, *options):
        """(exit code, lines of the table, lines of standard error); self.page and self.saved are set.

        contexts: {question id: records}, or the lines of the file.
        """
        lines = contexts if isinstance(contexts, list) else [
            {"question": asked, "context": records} for asked, records in contexts.items()]
        engine = self.write("\n".join(map(json.dumps, lines)), "moteur.jsonl")
        paths = {"--output": self.folder / "rapport.json", "--html": self.folder / "page.html"}
        written = [part for pair in paths.items() for part in pair]
        code, out, err = run("--case", self.write(case), "--contexts", engine, *written, *options)
        self.assertIn(code, (0, 3), err)
        self.saved = json.loads(paths["--output"].read_text(encoding="utf-8"))
        page = html.unescape(re.sub("<[^>]*>", "", paths["--html"].read_text(encoding="utf-8")))
        self.page = re.sub(r"\s", " ", re.sub(r"(?<=\d)\s(?=\d{3}\b)", "", page)).replace("’", "'")
        return code, out.splitlines(), err.splitlines()

    def figures(self, key, engine="moteur"):
        """[the figure of each question, the sum of those that have an answer]."""
        judged = variant(self.saved, engine)
        return [asked[key] for asked in judged["questions"]] + [judged["summary"][key]]


class Flattery(Judged):
    def told(self, both, exit_code, under, warnings, unmet, line, case=CASE):
        """Judge an engine with --require, and hold all that is said of it to the letter."""
        code, out, err = self.judge(case, both, "--require", "moteur")
        self.assertEqual(code, exit_code)
        place = out.index(next(row for row in out if row.startswith("moteur ")))
        self.assertEqual(out[place].split(), line.split())
        self.assertEqual(out[place + 1:place + 1 + len(under)], under)
        self.assertFalse(out[place + 1 + len(under)].strip())
        engine = [sentence for sentence in err if "moteur" in sentence]
        self.assertEqual(engine, ["attention : " + warning for warning in warnings] + unmet)
        self.assertEqual([each for each in self.saved["warnings"] if "moteur" in each], warnings)
        for warning in warnings:
            self.assertIn(warning, self.page)

    def test_the_whole_corpus(self):
        self.told({"q_preavis": [CONTRACT, FORMER], "q_duree": [CONTRACT, FORMER]}, 3,
                  ["    dont 12 mots au-delà du budget, 8 mots malgré les filtres"],
                  ["moteur « moteur » : 12 mots envoyés au-delà du budget (q_preavis, q_duree) ; ses preuves "
                   "peuvent en venir.",
                   "moteur « moteur » : 8 mots envoyés malgré les filtres (q_preavis, q_duree) ; ses preuves "
                   "peuvent en venir."],
                  ["exigence non tenue : moteur : 2 contextes envoyés au-delà du budget (q_preavis, "
                   "q_duree) ; 2 contextes envoyés malgré les filtres (q_preavis, q_duree)."],
                  "moteur - - 2/2 2/2 24 0")
        self.assertEqual(self.figures("over_budget"), [6, 6, 0, 12])
        self.assertEqual(self.figures("excluded_words"), [4, 4, 0, 8])

    def test_the_whole_corpus_of_the_reference_case(self):
        case = json.loads((ROOT / "cas_fr.json").read_text(encoding="utf-8"))
        whole = [{"document": document["id"], "start": 0, "end": len(document["text"].split())}
                 for document in case["documents"]]
        names = [asked["id"] for asked in case["questions"] if asked.get("answerable", True)]
        listed = ", ".join(names)
        self.assertEqual(len(names), 5)
        self.told(dict.fromkeys(names, whole), 3, ["    dont 1560 mots au-delà du budget"],  # 5 x (432 - 120)
                  [f"moteur « moteur » : 1560 mots envoyés au-delà du budget ({listed}) ; ses preuves "
                   "peuvent en venir."],
                  [f"exigence non tenue : moteur : 5 contextes envoyés au-delà du budget ({listed})."],
                  "moteur - - 5/5 10/10 2160 0", case)

    def test_every_document_that_filters_exclude(self):
        self.told({"q_preavis": [FORMER], "q_duree": [FORMER]}, 3, ["    dont 8 mots malgré les filtres"],
                  ["moteur « moteur » : 8 mots envoyés malgré les filtres (q_preavis, q_duree) ; ses preuves "
                   "peuvent en venir."],
                  ["exigence non tenue : moteur : 2 contextes incomplets (q_preavis, q_duree) ; 2 contextes "
                   "envoyés malgré les filtres (q_preavis, q_duree)."],
                  "moteur - - 0/2 0/2 8 0")

    def test_one_passage_repeated(self):
        self.told({"q_preavis": [NOTICE] * 3, "q_duree": [TERM] * 3}, 3,
                  ["    dont 12 mots au-delà du budget"],
                  ["moteur « moteur » : 12 mots envoyés au-delà du budget (q_preavis, q_duree) ; ses preuves "
                   "peuvent en venir."],
                  ["exigence non tenue : moteur : 2 contextes envoyés au-delà du budget (q_preavis, "
                   "q_duree)."], "moteur - - 2/2 2/2 24 16", dict(CASE, facts=[
                      dict(CASE["facts"][0], quote="trois mois"), CASE["facts"][1]]))

    def test_each_quote_alone(self):
        self.told({"q_preavis": [NOTICE], "q_duree": [TERM]}, 0, [],
                  ["moteur « moteur » : ses contextes sont les citations exigées elles-mêmes ; ils ne "
                   "disent rien d'une recherche."], [], "moteur - - 2/2 2/2 8 0")
        summary = variant(self.saved, "moteur")["summary"]
        self.assertEqual((summary["evidence_precision"], summary["over_budget"], summary["excluded_words"]),
                         (1.0, 0, 0))

    def test_references_beside_what_was_sent(self):
        """A record of an evaluation library: the proofs are references, what was sent does not have them."""
        wrong, right = "Durée : trois ans.", "Préavis : trois mois."
        for sent, reference in (("retrieval_context", "context"), ("contexts", "ground_truths"),
                                ("retrieved_contexts", "reference_contexts")):
            with self.subTest(sent=sent):
                self.told([{"question": "q_preavis", sent: [wrong], reference: [right]},
                           {"question": "q_duree", sent: [right], reference: [wrong]}], 3, [], [],
                          ["exigence non tenue : moteur : 2 contextes incomplets (q_preavis, q_duree)."],
                          "moteur - - 0/2 0/2 8 0")

    def test_quotes_with_a_word_more_or_less_are_not_the_quotes(self):
        for records in ([{"document": "contrat", "start": 0, "end": 5}], [dict(NOTICE, end=3)], []):
            with self.subTest(records=records):
                _, _, err = self.judge(CASE, {"q_preavis": records, "q_duree": [TERM]})
                self.assertFalse([line for line in err if "citations exigées" in line])


class Excluded(Judged):
    """Words sent are counted where filters let nothing be found."""

    SECTIONS = [{"title": "Un", "text": "préavis de un mois", "livre": "A"},
                {"title": "Deux", "text": "préavis de deux mois entiers", "livre": "B"}]

    def sectioned(self, **asked):
        return make_case(documents=[{"id": "d", "sections": self.SECTIONS}],
                         facts=[{"id": "f", "document": "d", "quote": "un mois"}],
                         questions=[{"id": "q", "text": "Préavis ?", "required_facts": ["f"], **asked}])

    def test_the_words_of_a_section_that_the_questions_filters_exclude(self):
        case = self.sectioned(filters={"livre": "A"})
        whole = {"document": "d", "start": 0, "end": 9}
        for records, words in (([whole], 5), ([dict(whole, end=4)], 0), ([dict(whole, end=5)], 1),
                               ([dict(whole, start=6, end=8)], 2), ([dict(whole, start=3, end=6)] * 2, 4)):
            with self.subTest(records=records):
                self.judge(case, {"q": records})
                self.assertEqual(self.figures("excluded_words"), [words, words])
        self.judge(self.sectioned(), {"q": [whole]})
        self.assertEqual(self.figures("excluded_words"), [0, 0])

    def test_words_before_the_first_section_are_excluded_with_their_document(self):
        header = ("Contrat\nRéférence : C1\nType : bail\nParties : Ajonc ; Bruyère\n"
                  "Date de signature : 2024-01-02")
        text = header + "\n\nArticle 1 – Objet\n\nLe préavis.\n\nArticle 2 – Prix\n\nLe prix."
        case = make_case(documents=[{"id": "d", "structure": "contract", "text": text, "pays": "FR"}],
                         facts=[{"id": "f", "document": "d", "quote": "Le préavis"}])
        before, words = len(header.split()), len(text.split())
        for filters, end, excluded in (({"pays": "BE"}, words, words), ({"pays": "BE"}, before, before),
                                       ({"pays": "FR"}, words, 0)):
            with self.subTest(filters=filters, end=end):
                case["questions"][0]["filters"] = filters
                self.judge(case, {"q": [{"document": "d", "start": 0, "end": end}]})
                self.assertEqual(self.figures("excluded_words"), [excluded, excluded])

    def test_each_time_that_an_excluded_document_is_sent_counts(self):
        self.judge(CASE, {"q_preavis": [FORMER, dict(FORMER, end=3)], "q_duree": []})
        self.assertEqual(self.figures("excluded_words"), [7, 0, 0, 7])

    def test_what_holds_no_whole_word_has_none_that_is_excluded(self):
        length = len("".join(section["text"] for section in self.SECTIONS))
        for start, end in ((0, 3), (length - 3, length)):
            self.judge(self.sectioned(filters={"livre": "A"}),
                       {"q": [{"document": "d", "start_char": start, "end_char": end}]})
            self.assertEqual(self.figures("excluded_words"), [0, 0])

    def test_a_heading_and_the_halves_of_words_are_no_words_of_the_corpus(self):
        half = {"document": "ancien", "start_char": 3, "end_char": 12, "heading": "un titre"}
        self.judge(CASE, {"q_preavis": [half], "q_duree": []})
        sent = question(self.saved, "moteur", "q_preavis")
        self.assertEqual((sent["context"][0]["text"], sent["words_sent"], sent["excluded_words"]),
                         ("un titre\navis : un", 5, 2))

    def test_no_variant_sends_anything_out_of_bounds(self):
        for case in (CASE, self.sectioned(filters={"livre": "B"})):
            for each in self.report(case)["variants"]:
                for figures in (each["summary"], *each["questions"]):
                    self.assertEqual((figures["over_budget"], figures["excluded_words"]), (0, 0))

    def test_a_question_without_answer_is_told_and_gates_but_is_in_no_sum(self):
        contexts = {"q_preavis": [NOTICE], "q_duree": [], "q_loyer": [FORMER, CONTRACT]}
        code, out, err = self.judge(CASE, contexts, "--require", "moteur")
        self.assertEqual(self.figures("over_budget"), [0, 0, 6, 0])
        self.assertEqual(self.figures("excluded_words"), [0, 0, 4, 0])
        self.assertNotIn("    dont", "\n".join(out))
        self.assertEqual([line for line in err if "moteur" in line], [
            "attention : moteur « moteur » : 6 mots envoyés au-delà du budget (q_loyer) ; ses preuves "
            "peuvent en venir.",
            "attention : moteur « moteur » : 4 mots envoyés malgré les filtres (q_loyer) ; ses preuves "
            "peuvent en venir.",
            "exigence non tenue : moteur : 1 contexte incomplet (q_duree) ; 1 contexte envoyé au-delà du "
            "budget (q_loyer) ; 1 contexte envoyé malgré les filtres (q_loyer)."])
        self.assertEqual(code, 3)

    def test_sets_are_told_apart(self):
        case = dict(CASE, questions=[dict(asked, set=name)
                                     for asked, name in zip(CASE["questions"], ("un", "deux"))])
        _, out, _ = self.judge(case, {"q_preavis": [NOTICE, NOTICE], "q_duree": [FORMER]})
        place = next(number for number, row in enumerate(out) if row.startswith("moteur "))
        self.assertEqual([" ".join(row.split()) for row in out[place:place + 6]], [
            "moteur - - 1/2 1/2 12 4", "dont 2 mots au-delà du budget, 4 mots malgré les filtres",
            "lot un 1/1 1/1 8 4", "dont 2 mots au-delà du budget",
            "lot deux 0/1 0/1 4 0", "dont 4 mots malgré les filtres"])

    def test_a_ranking_may_hold_what_filters_exclude(self):
        path = self.write("q_preavis Q0 paragraphes/ancien#0001 1 2.5 x\n"
                          "q_duree Q0 paragraphes/contrat#0002 1 1 x", "classement.trec")
        code, out, err = run("--case", self.write(CASE), "--contexts", path, "--require", "classement")
        self.assertEqual((code, err.splitlines()[-1]), (
            3, "exigence non tenue : classement : 1 contexte incomplet (q_preavis) ; 1 contexte envoyé "
               "malgré les filtres (q_preavis)."))
        self.assertIn("\n    dont 4 mots malgré les filtres\n", out)


class FilteredOut(Judged):
    """`filtered_out` is said of an engine for what it did not send, and for nothing else."""

    def loss(self, case, *records, **line):
        self.judge(case, [{"question": "q", "context": list(records), **line}])
        return bare(question(self.saved, "moteur")["facts"][0]["loss"])

    def test_a_proof_of_an_excluded_document(self):
        case = make_case(documents=[{"id": "d", "text": "Le préavis est de trois mois.", "pays": "FR"}],
                         facts=[{"id": "f", "document": "d", "quote": "est de trois mois"}])
        case["questions"][0]["filters"] = {"pays": "BE"}
        part, hit = {"document": "d", "start": 2, "end": 4}, {"document": "d", "start": 0, "end": 6}
        self.assertEqual(self.loss(case), {
            "stage": "filtered_out", "filter": {"pays": {"wanted": "BE", "found": "FR"}}})
        self.assertEqual(self.loss(case, {"document": "d", "start": 0, "end": 2})["stage"], "filtered_out")
        self.assertEqual(self.loss(case, part), {"stage": "not_sent", "missing": [[4, 6]]})
        self.assertEqual(self.loss(case, part, hits=[part]), {"stage": "not_retrieved", "missing": [[4, 6]]})
        self.assertEqual(self.loss(case, part, hits=[hit])["stage"], "cut_by_budget")

    def test_a_proof_over_two_sections_one_of_which_is_excluded(self):
        case = make_case(documents=[{"id": "d", "sections": [
            {"title": "Un", "text": "préavis de un mois", "livre": "A"},
            {"title": "Deux", "text": "sauf faute", "livre": "B"}]}])
        case["facts"] = [{"id": "f", "document": "d", "quote": "un mois sauf faute"}]
        case["questions"][0]["filters"] = {"livre": "A"}
        refused = {"stage": "filtered_out", "filter": {"livre": {"wanted": "A", "found": "B"}}}
        self.assertEqual(self.loss(case, {"document": "d", "start": 0, "end": 4}), refused)
        self.assertEqual(self.loss(case), refused)
        self.assertEqual(self.loss(case, {"document": "d", "start": 4, "end": 6}),
                         {"stage": "not_sent", "missing": [[2, 4]]})


class WhatWasJudged(Judged):
    def test_the_name_and_digest_of_each_file_of_contexts_in_order(self):
        lines = [json.dumps({"question": name, "context": []}) for name in ("q_preavis", "q_duree")]
        rows = [f"{name} Q0 paragraphes/contrat#0001 1 1 x\n" for name in ("q_preavis", "q_duree")]
        texts = {"b.jsonl": "\ufeff" + "\r\n\r\n".join(lines), "a.json": f"[{', '.join(lines)}]\n",
                 "c.trec": "".join(rows) + "\n"}
        options = [part for name, text in texts.items() for part in ("--contexts", self.write(text, name))]
        code, _, err = run("--case", self.write(CASE), *options, "--output", self.folder / "rapport.json")
        self.assertEqual(code, 0, err)
        report = json.loads((self.folder / "rapport.json").read_text(encoding="utf-8"))
        self.assertEqual(report["contexts"], [
            {"file": name, "sha256": hashlib.sha256((self.folder / name).read_bytes()).hexdigest()}
            for name in texts])

    def test_none_without_contexts(self):
        self.assertEqual(self.report(CASE)["contexts"], [])


class Requirements(Judged):
    def test_the_three_failures_are_told_for_their_own_questions(self):
        case = dict(CASE, questions=CASE["questions"][:2] + [dict(CASE["questions"][0], id="q_bis")])
        contexts = {"q_preavis": [NOTICE, TERM], "q_duree": [], "q_bis": [FORMER, dict(NOTICE, end=2)]}
        code, _, err = self.judge(case, contexts, "--require", "moteur", "--require", "paragraphes")
        self.assertEqual((code, err[-1]), (
            3, "exigence non tenue : moteur : 2 contextes incomplets (q_duree, q_bis) ; 1 contexte envoyé "
               "au-delà du budget (q_preavis) ; 1 contexte envoyé malgré les filtres (q_bis)."))

    def test_a_gate_on_another_engine_holds(self):
        contexts = {"q_preavis": [CONTRACT, FORMER], "q_duree": []}
        code, _, err = self.judge(CASE, contexts, "--require", "paragraphes")
        self.assertEqual((code, [line for line in err if "exigence" in line]), (0, []))

    def test_a_missing_proof_and_foreign_text_may_be_one(self):
        case = dict(CASE, questions=CASE["questions"][:2] + [dict(CASE["questions"][0], id="q_bis")])
        code, _, err = self.judge(case, {"q_preavis": ["Le préavis dure trois mois."], "q_duree": [],
                                         "q_bis": [NOTICE, "Un résumé."]}, "--require", "moteur")
        self.assertEqual((code, err[-1]), (
            3, "exigence non tenue : moteur : 2 contextes incomplets (q_preavis, q_duree) ; preuve absente "
               "et texte étranger au corpus (q_preavis) peuvent n'être qu'un, si le moteur a récrit la preuve."))
        self.assertEqual(self.figures("foreign_words"), [5, 0, 2, 7])

    def test_foreign_text_beside_whole_proofs_fails_nothing(self):
        contexts = {"q_preavis": [NOTICE, "Un résumé."], "q_duree": [TERM]}
        code, _, err = self.judge(CASE, contexts, "--require", "moteur")
        self.assertEqual((code, [line for line in err if "exigence" in line]), (0, []))
        self.assertEqual(self.figures("excluded_words"), [0, 0, 0, 0])


if __name__ == "__main__":
    unittest.main()
