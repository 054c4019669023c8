"""Contexts of other engines: records as they come, positions that lie, gates, baselines, figures against brute force."""

import hashlib
import json
import os
import random
import re
import unicodedata
import unittest
from fractions import Fraction
from itertools import product

from support import ROOT, TestCase, atelier, bare, make_case, measure_memory, question, run, spawn, variant

TEXT = "Prime 😀 de 100 € par an.\nL’indemnité est due : trois mois.\n\nLe préavis est de trois mois francs."
FACTS = [{"id": "prime", "document": "d", "quote": "100 €"}, {"id": "preavis", "document": "d", "quote": "préavis est de trois mois francs"}]

NOTHING_TO_READ = ("ligne 1 : context[0] : rien à lire : ni « passage », ni texte (text, page_content, pageContent, "
                   "content), ni document et positions (start, start_char, start_char_idx, split_idx_start, "
                   "start_index).")


class Contexts(TestCase):
    """A document of two facts, p (Prime ?) and q (Préavis ?), an unanswerable question a, and what engines send."""

    def setUp(self):
        super().setUp()
        self.case = make_case(TEXT, facts=FACTS, questions=[
            {"id": "p", "text": "Prime ?", "required_facts": ["prime"]}, {"id": "q", "text": "Préavis ?", "required_facts": ["preavis"]},
            {"id": "a", "text": "Loyer ?", "answerable": False}])

    def run_contexts(self, *lines, name="moteur.jsonl", case=None, options=()):
        path = self.write(lines[0] if isinstance(lines[0], (str, bytes)) else "\n".join(json.dumps(line, ensure_ascii=False) for line in lines), name)
        return run("--case", self.write(case or self.case), "--contexts", path, "--output", self.folder / "rapport.json", *options)

    def judge(self, *lines, **options):
        code, _, err = self.run_contexts(*lines, **options)
        self.assertIn(code, (0, 3), err)
        return json.loads((self.folder / "rapport.json").read_text(encoding="utf-8"))

    def sent(self, *records, **line):
        """The question p as an engine's report has it, once these records are sent for it."""
        report = self.judge({"question": "p", "context": list(records), **line}, {"question": "q", "context": []})
        return question(report, "moteur", "p")

    def faults(self, *lines, **options):
        code, out, err = self.run_contexts(*lines, **options)
        self.assertEqual((code, out), (2, ""), err)
        return [line.replace("moteur.jsonl : ", "", 1) for line in err.splitlines()]

    def fault(self, *records):
        """The one sentence with which these records are refused."""
        sentence, = self.faults({"question": "p", "context": list(records)}, {"question": "q", "context": []})
        return sentence

    def test_every_tools_record_is_read_as_it_comes(self):
        start = TEXT.index("100 €")
        for record in ({"passage": "paragraphes/d#0001"}, {"document": "d", "start": 3, "end": 5}, {"document": "d", "start": 3, "end": 5, "text": "100 €"},
                       {"document": "d", "start_char": start, "end_char": start + 5}, {"document": "d", "text": "100  €"}, {"text": "100\n€"}, "de 100 €",
                       {"page_content": "100 €", "metadata": {"source": "d", "start_index": start}}, {"page_content": "100 €", "metadata": {}},
                       {"text": "100 €", "start_char_idx": start, "end_char_idx": start + 5, "ref_doc_id": "d"},
                       {"content": "100 €", "meta": {"source_id": "d", "split_idx_start": start}}, {"content": "100 €", "source_id": "d", "split_idx_start": start, "meta": {}},
                       {"text": "100 €", "start_char_idx": start, "end_char_idx": start + 5, "relationships": {"1": {"node_id": "d"}}},
                       {"node": {"text": "100 €", "start_char_idx": start, "end_char_idx": start + 5, "relationships": {"1": {"node_id": "d"}}}, "score": 1},
                       {"lc": 1, "kwargs": {"page_content": "100 €", "metadata": {"source": "d", "start_index": start}}}, {"text": "100 €", "start_index": start, "end_index": start + 5, "document": "d"},
                       {"passage": "paragraphes/d#0001", "text": "Prime 😀 de 100 € par"},
                       {"document": "d", "text": "100 €", "start_char": None, "end_char": None}, {"document": "d", "text": "100 €", "start_char": -1},
                       {"document": "d", "text": "100 €", "start_char": 0, "end_char": 0}):
            with self.subTest(record=record):
                self.assertTrue(self.sent(record)["all_required_covered"])

    def test_a_document_may_be_named_by_its_file(self):
        (self.folder / "texte.txt").write_text(TEXT, encoding="utf-8")
        case = dict(self.case, documents=[{"id": "d", "file": "texte.txt"}])
        report = self.judge({"question": "p", "context": [{"page_content": "100 €", "metadata": {"source": "texte.txt"}}]}, {"question": "q", "context": []}, case=case)
        self.assertTrue(question(report, "moteur", "p")["all_required_covered"])

    def test_ragas_records_and_json_lists(self):
        lines = [{"user_input": "Prime ?", "retrieved_contexts": ["Prime 😀 de 100 €"]}, {"user_input": "Préavis ?", "retrieved_contexts": [], "response": "…"}]
        for text in ("\n".join(map(json.dumps, lines)), json.dumps(lines, indent=1), "\ufeff" + json.dumps(lines), "\n\n" + "\r\n".join(map(json.dumps, lines)) + "\n"):
            report = self.judge(text)
            self.assertEqual([question(report, "moteur", id)["all_required_covered"] for id in "pqa"], [True, False, None])

    def test_edges_inside_words_prove_only_whole_words(self):
        sent = self.sent({"text": "ime 😀 de 10"})
        self.assertEqual([(each["start"], each["end"], each["words"]) for each in sent["context"]], [(1, 3, 4)])
        self.assertEqual((sent["facts"][0]["words_covered"], sent["words_sent"]), (0, 4))

    def test_a_heading_is_sent_and_proves_nothing(self):
        sent = self.sent({"document": "d", "text": "100 €", "heading": "Titre : Contrat"})
        self.assertEqual((sent["words_sent"], sent["context"][0]["heading_words"], sent["context"][0]["text"]), (5, 3, "Titre : Contrat\n100 €"))
        _, _, err = self.run_contexts({"question": "p", "context": ["Titre : Contrat\n---\nLe préavis est de trois mois francs."]},
                                      {"question": "q", "context": []})
        self.assertIn("dans « heading »", err)

    def test_what_an_engine_has_no_figure_for_is_null(self):
        report = self.judge({"question": "p", "context": ["100 €"]}, {"question": "q", "context": []})
        engine = variant(report, "moteur")
        self.assertEqual([engine["summary"][key] for key in ("passages_indexed", "words_indexed", "facts_whole", "recall_at", "passage_words", "mixed_passages")], [None] * 6)
        self.assertEqual([engine["questions"][0][key] for key in ("terms", "query", "hits_before_budget", "no_hits")], [None] * 4)
        self.assertEqual((engine["chunking"], engine["passages"]), (None, None))
        self.assertEqual(list(question(report, "paragraphes", "p")), list(engine["questions"][0]))
        self.assertEqual(report["warnings"], self.report(self.case)["warnings"])
        code, out, _ = self.run_contexts({"question": "p", "context": ["100 €"]}, {"question": "q", "context": []})
        self.assertRegex(out, r"(?m)^moteur +- +- +1/2 +1/2 +2 +0$")

    def test_the_stages_of_an_engine(self):
        whole = {"passage": "paragraphes/d#0002"}
        for line, stage in (({"context": []}, "not_sent"), ({"context": [], "hits": []}, "not_retrieved"), ({"context": [], "hits": [whole]}, "cut_by_budget"),
                            ({"context": ["trois mois francs."], "hits": ["trois mois francs."]}, "not_retrieved")):
            report = self.judge({"question": "p", "context": ["100 €"]}, {"question": "q", **line})
            loss = question(report, "moteur", "q")["facts"][0]["loss"]
            self.assertEqual(loss["stage"], stage)
        self.assertEqual(loss["missing"], [[14, 17]])
        loss = question(self.judge({"question": "p", "context": []}, {"question": "q", "context": [], "hits": ["100 €", whole]}), "moteur", "q")["facts"][0]["loss"]
        self.assertEqual(
            bare(loss), {
                "stage": "cut_by_budget", "missing": [[14, 20]], "passage": "paragraphes/d#0002", "rank": 2,
                "words_over": None})
        case = dict(self.case, documents=[{"id": "d", "text": TEXT, "pays": "FR"}])
        case["questions"] = [dict(case["questions"][0]), dict(case["questions"][1], filters={"pays": "BE"}), case["questions"][2]]
        loss = question(self.judge({"question": "p", "context": []}, {"question": "q", "context": []}, case=case), "moteur", "q")["facts"][0]["loss"]
        self.assertEqual(bare(loss), {"stage": "filtered_out", "filter": {"pays": {"wanted": "BE", "found": "FR"}}})

    def test_recall_of_hits_and_contexts_over_budget(self):
        case = dict(self.case, settings={"budget_words": 3})
        report = self.judge({"question": "p", "context": ["Prime 😀 de 100 €"], "hits": ["par an.", "Prime 😀 de 100 €"]},
                            {"question": "q", "context": [], "hits": [{"passage": "paragraphes/d#0002"}]}, case=case)
        self.assertEqual(variant(report, "moteur")["summary"]["recall_at"], [0.5, 1.0])
        self.assertEqual([each["over_budget"] for each in variant(report, "moteur")["questions"]], [2, 0, 0])
        self.assertEqual([hit["kept_words"] for hit in question(report, "moteur", "p")["hits_before_budget"]], [0, 5])

    def test_an_engines_ranks_are_its_own_whatever_the_question_asks_per_document(self):
        case = dict(self.case, questions=[dict(self.case["questions"][0], per_document=1), self.case["questions"][1]])
        report = self.judge({"question": "p", "context": [], "hits": ["par an.", "Prime 😀", "100 €"]}, {"question": "q", "context": [], "hits": []}, case=case)
        self.assertEqual(variant(report, "moteur")["summary"]["recall_at"], [0.0, 0.0, 0.5])

    def test_hits_of_another_document_prove_nothing(self):
        case = dict(self.case, documents=[{"id": "d", "text": TEXT}, {"id": "e", "text": "un deux trois quatre cinq six sept"}])
        report = self.judge({"question": "p", "context": [], "hits": [{"document": "e", "start": 0, "end": 7}]}, {"question": "q", "context": [], "hits": []}, case=case)
        self.assertEqual((variant(report, "moteur")["summary"]["recall_at"], variant(
            report, "moteur")["summary"]["losses"]), ([0.0], {"not_retrieved": 2}))

    def test_a_context_that_hits_do_not_hold_is_told(self):
        report = self.judge({"question": "p", "context": ["100 €"], "hits": []}, {"question": "q", "context": ["100 €"], "hits": ["Prime 😀 de 100 €"]})
        self.assertEqual([each for each in report["warnings"] if "moteur" in each], ["moteur « moteur », question « p » : le contexte a des mots que « hits » n'a pas."])

    def test_hits_that_are_longer_than_a_context_may_still_not_hold_it(self):
        report = self.judge(
            {"question": "p", "context": ["100 €"], "hits": [{"passage": "paragraphes/d#0002"}]},
            {"question": "q", "context": []})
        self.assertIn("moteur « moteur », question « p » : le contexte a des mots que « hits » n'a pas.",
                      report["warnings"])

    def test_filters_see_the_sections_of_what_an_engine_lost(self):
        sections = [{"title": "Un", "text": "préavis un", "livre": "A"}, {
            "title": "Deux", "text": "préavis deux", "livre": "B"}]
        case = make_case(documents=[{"id": "d", "sections": sections}],
                         facts=[{"id": "un", "document": "d", "quote": "préavis un"}, {
                             "id": "deux", "document": "d", "quote": "préavis deux"}],
                         questions=[{
                             "id": "q", "text": "Préavis ?", "required_facts": ["un", "deux"], "filters": {
                                 "livre": "A"}}])
        asked = question(self.judge({"question": "q", "context": []}, case=case), "moteur")
        self.assertEqual([bare(fact["loss"]) for fact in asked["facts"]],
                         [{"stage": "not_sent", "missing": [[0, 2]]}, {
                             "stage": "filtered_out", "filter": {"livre": {"wanted": "A", "found": "B"}}}])

    def test_a_name_is_an_id_before_it_is_a_file(self):
        (self.folder / "a.txt").write_text("Trois mois.", encoding="utf-8")
        documents = [{"id": "a.txt", "text": "Trois mois."}, {"id": "b", "file": "a.txt"}]
        case = make_case(documents=documents, facts=[{"id": "f", "document": "a.txt", "quote": "Trois mois"}])
        report = self.judge({"question": "q", "context": [{"document": "a.txt", "text": "Trois mois."}]},
                            case=case)
        self.assertTrue(question(report, "moteur")["all_required_covered"])

    def test_a_question_is_known_by_its_words_whatever_their_blanks(self):
        case = dict(self.case, questions=[dict(self.case["questions"][0], text="Quelle\n prime ?")])
        report = self.judge({"user_input": " Quelle prime  ?", "retrieved_contexts": ["100 €"]}, case=case)
        self.assertTrue(question(report, "moteur", "p")["all_required_covered"])

    def test_many_hits_are_judged_in_time_that_grows_as_they_do(self):
        text = " ".join("m{}".format(number) for number in range(6000))
        case = make_case(text, quote="m5998 m5999")
        records = [{"document": "d", "start": start, "end": start + 2} for start in range(5999)]
        sent = question(self.judge({"question": "q", "context": records[::2], "hits": records}, case=case), "moteur")
        self.assertEqual([hit["kept_words"] for hit in sent["hits_before_budget"]], [2] * 5999)

    def test_positions_that_lie(self):
        start = TEXT.index("L’indemnité")
        text = "L’indemnité est due"
        counted = "Elles conviendraient comptées {} : donnez-les en caractères du document."
        byte, unit = len(TEXT[:start].encode("utf-8")), len(TEXT[:start].encode("utf-16-le")) // 2
        for first, end, how in ((byte, byte + len(text.encode("utf-8")), "en octets UTF-8"), (unit, unit + len(text), "en unités UTF-16"),
                                ):
            self.assertTrue(self.fault({"document": "d", "text": text, "start_char": first, "end_char": end}).endswith(counted.format(how)), how)
        third = TEXT.index("Le préavis") + 3  # line ends before it
        self.assertTrue(self.fault({"document": "d", "text": "Le préavis est", "start_char": third, "end_char": third + 14})
                        .endswith(counted.format("avec des fins de ligne CRLF")))
        self.assertTrue(self.fault({"page_content": text, "metadata": {"source": "d", "start_index": byte}}).endswith(counted.format("en octets UTF-8")))
        self.assertIn("BOM", self.fault({"document": "d", "text": "Prime 😀", "start_char": 1, "end_char": 8}))
        self.assertIn("BOM", self.fault({"document": "d", "text": "Prim",
                                         "start_char": 1}))  # no blank after it, and no end
        last = "mois francs."
        self.assertTrue(self.fault({"document": "d", "text": last, "start_char": len(TEXT.encode("utf-8")) - len(last), "end_char": len(TEXT.encode("utf-8"))})
                        .endswith(counted.format("en octets UTF-8")))
        crlf = dict(self.case, documents=[{"id": "d", "text": TEXT.replace("\n", "\r\n")}])
        sentence, = self.faults({"question": "p", "context": [{"document": "d", "text": text, "start_char": start, "end_char": start + len(text)}]},
                                {"question": "q", "context": []}, case=crlf)
        self.assertTrue(sentence.endswith(counted.format("avec des fins de ligne LF")))
        self.assertEqual(self.fault({"document": "d", "text": "Prime", "start_char": 3, "end_char": 8}),
                         "ligne 1 : context[0] : le texte « Prime » n'est pas celui des positions 3 à 8 de « d » : « me 😀 ». Ce texte est ailleurs : "
                         "il commence à 0.")

    def test_a_text_at_its_positions_may_have_other_apostrophes_or_be_decomposed(self):
        start, text = TEXT.index("L’indemnité"), "L’indemnité est due"
        for sent in (text.replace("’", "'"), unicodedata.normalize("NFD", text), "L'indemnite\u0301  est\ndue"):
            for limits in ({"start_char": start, "end_char": start + len(text)}, {"start": 7, "end": 10}):
                self.assertEqual(self.sent({"document": "d", "text": sent, **limits})["words_sent"], 3)
        prefix = {"passage": "fixe_48_0/d#0001", "text": "Prime 😀 de 100 € par an. L'indemnité"}
        self.assertEqual(self.sent(prefix)["words_sent"], 8)

    def test_long_texts_that_differ_are_shown_where_they_do(self):
        words = ["mot{}".format(number) for number in range(60)]
        case = make_case(" ".join(words), quote="mot1")
        record = {"document": "d", "start": 0, "end": 60, "text": " ".join(words[:50] + ["autre"] + words[51:])}
        sentence, = self.faults({"question": "q", "context": [record]}, case=case)
        self.assertRegex(sentence, "le texte « ….* mot49 autre .* » n'est pas celui des positions 0 à 60 de « d » : "
                                   "« ….* mot49 mot50 .* »")
        record = {"document": "d", "start_char": 4, "end_char": 5, "text": "mot"}
        sentence, = self.faults({"question": "q", "context": [record]}, case=case)
        self.assertTrue(sentence.endswith(
            "n'est pas celui des positions 4 à 5 de « d » : un texte vide. Ce texte est ailleurs : il commence à 5."),
            sentence)

    def test_a_pdf_or_an_archive_is_called_what_it_is(self):
        for data, kind in ((b"%PDF-1.7\n%\xe2\xe3\n1 0 obj\n", "un PDF"), (b"PK\x03\x04\n\xff\n", "un .docx ou une archive")):
            self.assertEqual(self.faults(data), [
                "c'est {} ; extrayez-en le texte, et enregistrez-le en UTF-8.".format(kind)])

    def test_half_a_utf_16_pair_beside_positions_is_a_sentence(self):
        sentences = self.faults(
            '{"question": "p", "context": [{"document": "d", "text": "\\ud800Prime", "start_char": 3}]}')
        self.assertTrue(any("moitié de paire UTF-16 isolée U+D800" in sentence for sentence in sentences),
                        sentences)

    def test_texts_that_are_not_what_the_document_says(self):
        for record, part in ((
                "Frais : 20 €.Visa : 90 €.", "n'est pas dans le corpus, qui n'a aucun de ses mots."), ({"document": "d", "text": "préavis est de quatre mois francs"}, "« quatre » y est écrit « trois »"),
                ({"document": "d", "text": "préavis préavis est de trois"}, "« préavis » y est écrit « Le »"), ("L’indemnité est due : trois mois. Le préavis est de trois mois", None),
                ("trois mois", "figure plusieurs fois dans le corpus ; donnez ses positions"), ({"document": "d", "text": "trois mois"}, "figure plusieurs fois dans « d »"),
                ("L'indemnité est dûe", "n'est pas dans le corpus")):
            if part is None:
                self.assertEqual(self.sent(record)["words_sent"], 12)  # two true halves joined are one stretch of the document
            else:
                code, _, err = self.run_contexts({"question": "p", "context": [record]}, {"question": "q", "context": []})
                self.assertIn(part, err, record)
                self.assertEqual(code, 2 if "figure" in part else 0)

    def test_a_text_typed_with_other_apostrophes_or_decomposed_is_located_to_the_character(self):
        text = "L’e\u0301te\u0301 a \u00e9te\u0301 chaud, l’hiver aussi."
        case = make_case(text, quote="hiver aussi")
        for sent, start, end in (("L'été a", 0, 2), ("t\u00e9 a \u00e9t", 1, 2), ("l'hiver auss", 4, 5),
                                 ("hiver auss", 5, 5)):
            hit = question(
                self.judge({"question": "q", "context": [{"document": "d", "text": sent}]}, case=case),
                "moteur")["context"][0]
            self.assertEqual((hit["start"], hit["end"]), (start, end))
            self.assertEqual(
                unicodedata.normalize("NFC", hit["text"]).replace("’", "'"), unicodedata.normalize(
                    "NFC", sent))

    def test_the_passage_of_another_contract_proves_nothing(self):
        documents = [{"id": "c2023", "text": "Le client indemnise le prestataire."}, {"id": "c2024", "text": "Le client indemnise le prestataire."}]
        case = make_case(documents=documents, facts=[{"id": "f", "document": "c2024", "quote": "client indemnise"}])
        report = self.judge({"question": "q", "context": [{"document": "c2023", "text": "Le client indemnise le prestataire."}]}, case=case)
        self.assertEqual(bare(question(report, "moteur")["facts"][0]["loss"]), {"stage": "not_sent", "missing": [[1, 3]], "same_words_in": ["c2023"]})
        for text, part in (("Le prestataire indemnise le client", "n'est pas dans"), ("Le client indemnise", "figure plusieurs fois dans le corpus")):
            _, _, err = self.run_contexts({"question": "q", "context": [text]}, case=case)
            self.assertIn(part, err)

    def test_overlapping_passages_count_once(self):
        text = " ".join("m{}".format(number) for number in range(300))
        case = make_case(text, facts=[{"id": "f", "document": "d", "quote": " ".join("m{}".format(number) for number in range(100, 200))}])
        for spans, covered, recall in ((((80, 180), (120, 220)), True, 1.0), (((0, 100),), False, 0.0), (((0, 150),), False, 0.5), (((90, 210), (90, 210)), True, 1.0)):
            report = self.judge({"question": "q", "context": [{"document": "d", "start": start, "end": end} for start, end in spans]}, case=case)
            self.assertEqual((question(report, "moteur")["all_required_covered"], variant(report, "moteur")["summary"]["evidence_recall"]), (covered, recall))

    def test_the_third_passage_after_its_four_hundredth_character(self):
        text = "x" * 10 + " " + "mot " * 120 + "la réponse est là"
        case = make_case(text, quote="réponse est là")
        sent = question(self.judge({"question": "q", "context": [{"document": "d", "start": 0, "end": 1}, {"document": "d", "start": 1, "end": 2},
                                                               {"document": "d", "text": text[8:]}]}, case=case), "moteur")
        self.assertTrue(sent["all_required_covered"])

    def test_malformed_contexts(self):
        for context, sentence in (([""], "ligne 1 : context[0] : texte attendu, non vide ; trouvé : un texte vide."), (["   "], "ligne 1 : context[0] : texte attendu, non vide ; trouvé : un texte vide."),
                                  ("100 €", "ligne 1 : « context » attend une liste ; trouvé : « 100 € »."), ("['a', 'b']", "ligne 1 : « context » attend une liste ; trouvé : « ['a', 'b'] »."),
                                  ([None], "ligne 1 : context[0] : passage attendu : un texte ou un objet ; trouvé : null."), (None, "ligne 1 : « context » attend une liste ; trouvé : null."),
                                  ([3], "ligne 1 : context[0] : passage attendu : un texte ou un objet ; trouvé : 3."),
                                  ([{}], NOTHING_TO_READ), ([{"document": "d"}], NOTHING_TO_READ),
                                  ([{"document": "e", "text": "100 €"}], "ligne 1 : context[0] : document « e » inconnu. Possibles : d."),
                                  ([{"document": "d ", "text": "100 €"}], "ligne 1 : context[0] : document « d » inconnu. Vouliez-vous dire « d » ?"),
                                  ([{"passage": "paragraphes/d#0009"}], "ligne 1 : context[0] : passage « d#0009 » inconnu de la variante « paragraphes ». Vouliez-vous dire « d#0002 » ?"),
                                  ([{"passage": "d#0001"}], "ligne 1 : context[0] : passage « d#0001 » inconnu ; il s'écrit <variante>/<passage>, comme dans --export."),
                                  ([{"passage": "paragraphes/d#0001", "text": "100 €"}], "ligne 1 : context[0] : ce texte n'est pas le début du passage « paragraphes/d#0001 » : « 100 € »."),
                                  ([{"document": "d", "start": 3, "end": 99}], "ligne 1 : context[0] : positions 3 à 99 hors du document « d », qui compte 20 mots."),
                                  ([{"document": "d", "start_char": 5, "end_char": 5}], "ligne 1 : context[0] : positions 5 à 5 : deux entiers croissants sont attendus."),
                                  ([{"document": "d", "start_char": "5", "end_char": 9}], "ligne 1 : context[0] : positions « 5 » à 9 : deux entiers croissants sont attendus."),
                                  ([{"start_char": 5, "end_char": 9}], NOTHING_TO_READ),
                                  ([{"text": "100 €", "start_char": 5, "end_char": 9}], "ligne 1 : context[0] : des positions sans document ; ajoutez « document ».")):
            with self.subTest(context=context):
                self.assertEqual(self.faults({"question": "p", "context": context}, {"question": "q", "context": []}), [sentence])

    def test_lines_that_are_missing_double_or_of_another_case(self):
        empty = {"question": "q", "context": []}
        for lines, sentences in (
                ([{"question": "p", "context": []}], ["moteur « moteur » : aucune ligne pour « q » ; ajoutez-la, même avec un contexte vide."]),
                ([{"question": "p", "context": []}, empty, empty], ["ligne 3 : question « q » donnée deux fois pour le moteur « moteur » ; gardez-en une."]),
                ([{"question": "z", "context": []}], ["ligne 1 : question « z » inconnue. Possibles : p, q, a."]),
                ([{"user_input": "Prime !", "retrieved_contexts": []}], ["ligne 1 : question « Prime ! » inconnue. Vouliez-vous dire « Prime ? » ?"]),
                ([dict(empty, engine="paragraphes"), {"engine": "paragraphes", "question": "p", "context": []}],
                 ["le moteur « paragraphes » porte le nom d'une variante ou d'un autre moteur ; donnez-lui-en un autre."]),
                ([dict(empty, engine=3)], ["ligne 1 : « engine » attend un texte ; trouvé : 3."]),
                (["\n \n"], ["aucune ligne ; donnez un objet par ligne, une liste JSON ou un classement TREC."]),
                (['{"question": "p", "context": []\n{"question": 1}'], ["ligne 1 : colonne 32 : JSON invalide : il manque une virgule, une fermeture, ou la barre devant un guillemet du texte (\\\").",
                                                                     "ligne 2 : question 1 inconnue. Possibles : p, q, a.", "ligne 2 : la clé « context » manque ; ajoutez-la."]),
                (['{\n "question": "p"}'], ["ligne 1 : colonne 2 : JSON invalide : un nom de clé entre guillemets droits est attendu. Un objet tient sur une ligne, ou dans une liste."]),
                (['{"question": "p", "context": [], "context": []}\n{"question": "q", "context": [NaN]}'],
                 ["ligne 1 : la clé « context » est donnée deux fois ; gardez-en une.", "ligne 2 : context[0] : NaN n'est pas un nombre JSON. Corrigez la valeur.",
                  "ligne 2 : context[0] : passage attendu : un texte ou un objet ; trouvé : une valeur illisible."]),
                ([b'{"question": "p", "context": ["\xe9"]}'], ["ligne 1 : ce n'est pas de l'UTF-8 ; enregistrez en UTF-8."])):
            self.assertEqual(self.faults(*lines), sentences)

    def test_places_of_faults_in_lists_and_after_blank_lines(self):
        sound = {"question": "q", "context": []}
        self.assertEqual(self.faults(json.dumps([sound, {"question": "z", "context": []}])),
                         ["[1] : question « z » inconnue. Possibles : p, q, a."])
        self.assertEqual(self.faults('\n\n[{"question": "q" "context": []}]'), [
            "ligne 3, colonne 19 : JSON invalide : il manque une virgule, une fermeture, ou la barre devant un guillemet du texte (\\\")."
        ])
        many = dict(self.case,
                    questions=[{"id": "q{}".format(number), "text": "Prime ?", "required_facts": ["prime"]}
                               for number in range(8)])
        self.assertEqual(self.faults({"question": "q0", "context": []}, case=many), [
            "moteur « moteur » : aucune ligne pour « q1 », « q2 », « q3 », « q4 », « q5 », … ; ajoutez-la, même avec un contexte vide."
        ])
        self.assertEqual(
            self.fault({"document": "d", "text": "100 €", "start_char": 900, "end_char": 905}),
            "ligne 1 : context[0] : positions 900 à 905 hors du document « d », qui compte {} caractères. Ce texte est ailleurs : il commence à {}.".
            format(len(TEXT), TEXT.index("100 €")))
        self.assertIn("six colonnes attendues", self.faults("p Q0 paragraphes/d#0001 1 inf x")[0])

    def test_two_files_may_not_hold_one_engine(self):
        line = "\n".join(json.dumps({"engine": "dense", "question": id, "context": []}) for id in "pq")
        paths = [self.write(line, name) for name in ("un.jsonl", "deux.jsonl")]
        code, _, err = run("--case", self.write(self.case), "--contexts", paths[0], "--contexts", paths[1])
        self.assertEqual((code, err), (2, "deux.jsonl : le moteur « dense » porte le nom d'une variante ou d'un autre moteur ; donnez-lui-en un autre.\n"))

    def test_a_trec_run_is_a_ranking(self):
        case = dict(self.case, settings={"top_k": 2, "budget_words": 14})
        text = ("p Q0 paragraphes/d#0002 2 5.0 x\n\np Q0 paragraphes/d#0001 1 5.0 x\r\nq Q0 paragraphes/d#0001 1 1 x\nq Q0 paragraphes/d#0002 2 9.5e0 x\n"
                "q Q0 fixe_48_0/d#0001 3 0.5 x\n")
        report = self.judge(text, name="passage.trec", case=case)
        asked = {id: question(report, "passage", id) for id in "pq"}
        self.assertEqual([hit["passage"] for hit in asked["p"]["hits_before_budget"]], ["paragraphes/d#0001", "paragraphes/d#0002"])
        self.assertEqual([hit["passage"] for hit in asked["q"]["hits_before_budget"]], ["paragraphes/d#0002", "paragraphes/d#0001"])
        self.assertEqual([(each["passage"], each["words"]) for each in asked["q"]["context"]], [("paragraphes/d#0002", 7), ("paragraphes/d#0001", 7)])
        self.assertEqual([asked[id]["all_required_covered"] for id in "pq"], [True, True])
        self.assertEqual([asked[id]["over_budget"] for id in "pq"], [0, 0])
        self.assertEqual([each for each in report["warnings"] if "classement" in each], [
            "question « q » : les rangs du classement contredisent ses scores ; ce sont les scores qui font foi, le plus grand d'abord."])
        for text, sentence in (("p Q0 paragraphes/d#0001 1 nan x", "ligne 1 : six colonnes attendues : question Q0 <variante>/<passage> rang score étiquette ; trouvé : « p Q0 paragraphes/d#0001 1 nan x »."),
                               ("p Q0 paragraphe/d#0001 1 1 x", "ligne 1 : variante « paragraphe » inconnue. Vouliez-vous dire « paragraphes » ?"),
                               ("p Q0 paragraphes/d#0001 1 5.0", "ligne 1 : six colonnes attendues : question Q0 <variante>/<passage> rang score étiquette ; trouvé : « p Q0 paragraphes/d#0001 1 5.0 »."),
                               ("z Q0 paragraphes/d#0001 1 5.0 x", "ligne 1 : question « z » inconnue. Possibles : p, q, a."),
                               ("p Q0 d#0001 1 5.0 x", "ligne 1 : passage « d#0001 » inconnu ; il s'écrit <variante>/<passage>, comme dans --export."),
                               ("p Q0 paragraphes/d#0001 un 5.0 x", "ligne 1 : six colonnes attendues : question Q0 <variante>/<passage> rang score étiquette ; trouvé : « p Q0 paragraphes/d#0001 un 5.0 x »."),
                               ("p Q0 paragraphes/d#0001 1 5.0 x\np Q0 paragraphes/d#0001 2 4.0 x", "ligne 2 : passage « paragraphes/d#0001 » donné deux fois pour « p » ; gardez-en un.")):
            self.assertEqual(self.faults(text), [sentence])

    def test_the_ranking_sent_back_scores_as_it_did(self):
        """Each variant's own hits, exported and sent back as a run, give the variant's own verdicts."""
        report = self.judge({"question": "p", "context": []}, {"question": "q", "context": []})
        for each in report["variants"][:4]:
            lines = ["{} Q0 {}/{} {} {} x".format(asked["id"], each["id"], hit["passage"], hit["rank"], -hit["rank"]) for asked in each["questions"] for hit in asked["hits_before_budget"]]
            again = variant(self.judge("\n".join(lines), name="copie.trec"), "copie")
            keys = ("complete_contexts", "facts_covered", "words_sent", "redundant_words", "recall_at", "evidence_recall", "evidence_precision", "evidence_iou")
            self.assertEqual([again["summary"][key] for key in keys], [each["summary"][key] for key in keys])

    def test_a_fuzzed_record_is_judged_or_refused_in_a_sentence(self):
        draw = random.Random(4)
        values = [
            None, -1, 0, 3, 9, 10 ** 9, "", "d", "100 €", "é", [], {}, True, 1.5, {
                "source": "d", "start_index": 3}, ["x"], "paragraphes/d#0001"]
        names = [
            "text", "document", "start", "end", "start_char", "end_char", "passage", "heading",
            "page_content", "metadata", "content", "meta", "ref_doc_id", "start_index"]
        words, judged = TEXT.split(), 0
        for _ in range(12):
            records = [{name: draw.choice(values) for name in draw.sample(names, draw.randint(0, 5))}
                       for _ in range(100)]
            sound, told = records, ["once"]
            while told:  # of each kind of fault, the first four places
                code, _, err = self.run_contexts({"question": "p", "context": sound}, {"question": "q", "context": []})
                told = err.splitlines() if code else []
                for sentence in told:
                    self.assertRegex(sentence, r"^moteur.jsonl : ligne 1 : context\[\d+\] : .+[.?]$")
                refused = {int(place) for place in re.findall(r"ligne 1 : context\[(\d+)\]", err)} if code else ()
                sound = [record for number, record in enumerate(sound) if number not in refused]
            sent = self.sent(*sound)["context"]
            self.assertEqual(len(sent), len(sound))
            for part in sent:
                if part["document"] is None:
                    self.assertEqual((part["start"], part["end"], part["passage"]), (None, None, None))
                    continue
                self.assertEqual((part["document"], part["words"]), ("d", len(part["text"].split())))
                self.assertEqual(words[part["start"]:part["end"]],
                                 part["text"].split()[part["lead_words"]:][:part["end"] - part["start"]])
            judged += len(sound)
        self.assertGreater(judged, 20)

    def test_a_long_file_is_read_line_by_line(self):
        """Lines of a million characters, which the report does not need, are not held together."""
        path, record = self.folder / "long.jsonl", {
            "user_input": "Prime ?", "retrieved_contexts": [{"passage": "paragraphes/d#0001"}]}
        with open(path, "w", encoding="utf-8") as file:
            for number in range(30):
                file.write(
                    json.dumps({"engine": "e{}".format(number), **record, "response": "x" * 1_000_000}) +
                    "\n")
        argv = [
            "--case",
            self.write(dict(self.case, questions=self.case["questions"][:1])), "--contexts", path, "--output",
            self.folder / "rapport.json"]
        (code, _, err), peak = measure_memory(lambda: run(*argv))
        self.assertEqual(code, 0, err)
        report = json.loads((self.folder / "rapport.json").read_text(encoding="utf-8"))
        self.assertEqual([each["summary"]["complete_contexts"] for each in report["variants"][4:]], [1] * 30)
        self.assertLess(peak, 15_000_000)


class Export(TestCase):
    def test_every_passage_of_every_variant(self):
        case = make_case(documents=[{"id": "d", "title": "Titre", "sections": [{"title": "Un", "text": "Le préavis  est", "livre": "A"}, {"title": "Deux", "text": "de trois mois."}], "pays": "FR"}],
                         variants=[{"id": "s", "unit": "sections", "max_chars": 9, "repeat_title": True}, {"id": "c", "unit": "chars", "size": 12}], quote="trois mois")
        self.assertEqual(run("--case", self.write(case), "--export", self.folder / "e.jsonl")[0], 0)
        rows = [json.loads(line) for line in (self.folder / "e.jsonl").read_text(encoding="utf-8").splitlines()]
        text = "Le préavis  est\n\nde trois mois."
        self.assertEqual([(row["id"], row["start"], row["end"], row["text"]) for row in rows if row["id"].startswith("s/")], [
            ("s/d#0001", 0, 1, "Un\nLe"), ("s/d#0002", 1, 2, "Un (suite)\npréavis"), ("s/d#0003", 2, 3, "Un (suite)\nest"),
            ("s/d#0004", 3, 4, "Deux\nde"), ("s/d#0005", 4, 5, "Deux (suite)\ntrois"),
            ("s/d#0006", 5, 6, "Deux (suite)\nmois.")])
        self.assertEqual([text[row["start_char"]:row["end_char"]] for row in rows if row["id"].startswith("c/")], [row["text"] for row in rows if row["id"].startswith("c/")])
        self.assertEqual(rows[0]["metadata"], {"pays": "FR", "livre": "A"})
        self.assertEqual({row["title"] for row in rows}, {"Titre"})

    def test_a_passage_over_two_sections_has_the_metadata_of_its_document(self):
        sections = [{"title": "Un", "text": "préavis un", "livre": "A"}, {
            "title": "Deux", "text": "préavis deux", "livre": "B"}]
        case = make_case(documents=[{"id": "d", "sections": sections, "livre": "tous"}],
                         facts=[],
                         questions=[],
                         variants=[{"id": "v", "unit": "words", "size": 3}])
        self.assertEqual([row["metadata"] for row in self.passages(case)["v"]],
                         [{"livre": "tous"}, {"livre": "B"}])

    def test_the_title_of_a_contract_is_what_index_titles_searches(self):
        header = "Contrat\nRéférence : C-1\nType : essai\nParties : Orsel ; Altibox\nDate de signature : 2024-01-15\n\n"
        case = make_case(documents=[{
            "id": "d", "structure": "contract", "text": header + "Article 1 – Objet"}],
                         facts=[],
                         questions=[])
        self.assertEqual({row["title"] for row in self.passages(case)["paragraphes"]},
                         {"C-1 Contrat Orsel Altibox"})

    def test_outputs_may_not_meet(self):
        path = self.write(make_case())
        told = "{} : deux sorties ne peuvent avoir le même nom ; changez-en une.\n"
        for one, other in ((self.folder / "x", self.folder / "x"), (self.folder / "x", self.folder / "." / "x")):
            code, _, err = run("--case", path, "--output", one, "--export", other)
            self.assertEqual((code, err), (2, told.format(other)))
        process = spawn(ROOT / "atelier.py", "--case", path, "--output", "-", "--export", "/dev/stdout",
                        env={**os.environ, "PYTHONIOENCODING": "utf-8"})
        self.assertEqual((process.returncode, process.stderr.decode("utf-8")), (2, told.format("/dev/stdout")))
        self.assertEqual(run("--case", path, "--export", path)[0], 2)


class Gates(TestCase):
    def test_require(self):
        case = make_case("Le préavis est de trois mois. " + "mot " * 160, "trois mois", question="mot", settings={"budget_words": 1})
        path = self.write(case)
        code, out, err = run("--case", path, "--require", "paragraphes", "--require", "fixe_48_0")
        self.assertEqual((code, err), (3, "exigence non tenue : fixe_48_0 : 1 contexte incomplet (q).\nexigence non tenue : paragraphes : 1 contexte incomplet (q).\n"))
        self.assertIn("rappel par preuve", out)
        self.assertEqual(run("--case", path, "--require", "x"), (2, "", "--require : « x » n'est ni une variante ni un moteur. Possibles : fixe_48_0, fixe_96_0, fixe_48_16, paragraphes.\n"))
        self.assertEqual(run("--case", self.write(make_case()), "--require", "paragraphes")[0], 0)
        engine = self.write('{"question": "q", "context": ["trois mois."]}', "dense.jsonl")
        self.assertEqual(run("--case", path, "--contexts", engine, "--require", "dense")[0], 0)

    def test_a_question_without_answer_misses_nothing_that_is_required(self):
        case = make_case()
        case["questions"].append({"id": "sans", "text": "zéro", "answerable": False})
        code, _, err = run("--case", self.write(case), "--require", "paragraphes")
        self.assertEqual((code, "exigence" in err), (0, False), err)

    def test_the_first_five_of_many_incomplete_contexts_are_named(self):
        case = make_case(questions=[{"id": "q{}".format(number), "text": "zéro", "required_facts": ["f"]}
                                    for number in range(7)])
        code, _, err = run("--case", self.write(case), "--require", "paragraphes")
        self.assertEqual((code, err.splitlines()[-1]), (
            3, "exigence non tenue : paragraphes : 7 contextes incomplets (q0, q1, q2, q3, q4, …)."))

    def test_sets_are_summed_apart(self):
        case = make_case("Un préavis.\n\nUn délai.", quote="préavis", questions=[
            {"id": "a", "text": "Préavis ?", "required_facts": ["f"], "set": "réglage"}, {"id": "b", "text": "Loyer ?", "required_facts": ["f"], "set": "validation"},
            {"id": "c", "text": "Préavis", "required_facts": ["f"]}])
        each = variant(self.report(case), "paragraphes")
        self.assertEqual({name: (summary["complete_contexts"], summary["answerable_questions"]) for name, summary in each["by_set"].items()}, {"réglage": (1, 1), "validation": (0, 1)})
        self.assertEqual((each["summary"]["complete_contexts"], each["summary"]["answerable_questions"]), (2, 3))
        self.assertEqual([asked.get("set") for asked in each["questions"]], ["réglage", "validation", None])
        self.assertNotIn("by_set", variant(self.report(make_case()), "paragraphes"))


class Baselines(TestCase):
    def setUp(self):
        super().setUp()
        words = ["mot{}".format(number) for number in range(60)]
        words[2:2], words[55:55] = ["préavis", "trois", "mois"], ["délai", "six", "jours"]
        self.case = make_case(" ".join(words), facts=[{"id": "f", "document": "d", "quote": "préavis trois mois"}, {"id": "g", "document": "d", "quote": "délai six jours"}],
                              questions=[{"id": "q", "text": "préavis ?", "required_facts": ["f", "g"]}])

    def compare(self, before, after):
        (self.folder / "avant.json").write_text(json.dumps(self.report(before)), encoding="utf-8")
        code, out, err = run("--case", self.write(after), "--baseline", self.folder / "avant.json", "--output", self.folder / "apres.json")
        self.assertEqual(code, 0, err)
        return json.loads((self.folder / "apres.json").read_text(encoding="utf-8"))["baseline"], out

    def test_gained_lost_and_changed(self):
        wider = dict(self.case, questions=[{"id": "q", "text": "préavis ?", "required_facts": ["f", "g"]}], settings={"budget_words": 10})
        baseline, out = self.compare(self.case, wider)
        self.assertEqual(baseline["differences"], ["budget_words : 120 → 10"])
        self.assertEqual(self.changes_of(baseline, "paragraphes"), [[], [["q", "g", "cut_by_budget"]], []])
        self.assertIn("    - q · g : coupée par le budget", out.splitlines())
        baseline, out = self.compare(wider, self.case)
        self.assertEqual(self.changes_of(baseline, "paragraphes"), [[["q", "g"]], [], []])
        self.assertIn("    + q · g", out.splitlines())
        # `moto` has no match: the fact that the cutting left to rank is no longer matched at all
        baseline, out = self.compare(dict(self.case, settings={"top_k": 1}), dict(self.case, settings={"top_k": 1}, questions=[
            {"id": "q", "text": "préavis ?", "required_facts": ["f", "g"]}]))
        self.assertEqual(self.changes(baseline), [])

    def changes(self, baseline):
        return [fact for name in baseline["variants"]
                for facts in self.changes_of(baseline, name) for fact in facts]

    def changes_of(self, baseline, name):
        """The changes of a variant: gained, lost, changed."""
        return [baseline["variants"][name][kind] for kind in ("gained", "lost", "changed")]

    def test_the_facts_of_a_changed_question_are_not_compared(self):
        question = {"id": "q", "text": "préavis ?", "required_facts": ["f", "g"]}
        first, second = (dict(self.case, questions=[dict(question, text=text)])
                         for text in ("préavis ?", "délai ?"))
        baseline, _ = self.compare(first, second)  # each finds one of the two facts, not the same one
        self.assertEqual((baseline["differences"], self.changes(baseline)),
                         (["1 question modifiée : q"], []))
        documents = [dict(self.case["documents"][0], pays="FR")]
        for own in ({"filters": {"pays": {"in": ["FR", "BE"]}}}, {"per_document": 1}):
            first, second = (dict(self.case, documents=documents, questions=[dict(question, **part)])
                             for part in ({}, own))
            self.assertEqual(self.compare(first, second)[0]["differences"], ["1 question modifiée : q"])

    def test_a_fact_that_quotes_another_place_is_another_fact(self):
        text = "préavis un mois\n\npréavis deux mois"
        alternatives = [{"document": "d", "quote": "un mois"}, {"document": "d", "quote": "deux mois"}]
        for before, after in (({"document": "d", "quote": "préavis", "start": 0}, {
                "document": "d", "quote": "préavis", "start": 3}), ({"any_of": alternatives}, {
                    "any_of": alternatives[:1]})):
            baseline, _ = self.compare(*(make_case(text, facts=[{"id": "f", **fact}])
                                         for fact in (before, after)))
            self.assertEqual(baseline["differences"], ["1 fait exigé modifié : q / f"])

    def test_a_baseline_is_known_by_its_bytes_and_variants_by_their_filters(self):
        first, second = (dict(self.case,
                              variants=[{"id": "v", "unit": "paragraphs", "question_filters": own}])
                         for own in (True, False))
        baseline, _ = self.compare(first, second)
        self.assertEqual(baseline["differences"], ["1 variante modifiée : v"])
        digest = hashlib.sha256((self.folder / "avant.json").read_bytes()).hexdigest()
        self.assertEqual((baseline["file"], baseline["sha256"]), ("avant.json", digest))

    def test_a_changed_stage(self):
        before, after = (dict(self.case, settings={"top_k": top_k, "budget_words": 100, "stop_words": stop}, questions=[{"id": "q", "text": "préavis mot57 mot1", "required_facts": ["g"]}])
                         for top_k, stop in ((1, []), (1, ["mot57"])))
        baseline, out = self.compare(before, after)
        self.assertEqual(baseline["variants"]["fixe_48_0"]["lost"] + baseline["variants"]["fixe_48_0"]["changed"], [["q", "g", "ranked_too_low", "not_matched"]])
        self.assertIn("    ~ q · g : classée trop bas, puis sans mot commun avec la question", out.splitlines())

    def test_what_cannot_be_compared_is_named(self):
        asked = dict(self.case, questions=[{"id": "q", "text": "délai ?", "required_facts": ["f"]}])
        self.assertEqual(self.compare(self.case, asked)[0]["differences"], ["1 question modifiée : q", "1 fait exigé retiré : q / g"])
        other = dict(self.case, questions=[dict(self.case["questions"][0], id="z")])
        self.assertEqual(self.compare(self.case, other)[0]["differences"], [
            "1 question ajoutée : z", "1 question retirée : q", "2 faits exigés ajoutés : z / f, z / g",
            "2 faits exigés retirés : q / f, q / g"])
        shorter = dict(self.case, settings={"budget_words": 3}, facts=[dict(self.case["facts"][0], quote="préavis"), self.case["facts"][1]])
        baseline, _ = self.compare(dict(self.case, settings={"budget_words": 3}), shorter)
        self.assertEqual(baseline["differences"], ["1 fait exigé modifié : q / f"])  # a shorter quote is no progress
        self.assertEqual(self.changes(baseline), [])
        variants = dict(self.case, variants=[{"id": "fixe_48_0", "unit": "words", "size": 24}])
        self.assertEqual(self.compare(self.case, variants)[0]["differences"], [
            "3 variantes retirées : fixe_96_0, fixe_48_16, paragraphes", "1 variante modifiée : fixe_48_0"])

    def test_a_baseline_that_is_no_report(self):
        path = self.write("{}", "x.json")
        self.assertEqual(run("--baseline", path), (2, "", "{} : ce n'est pas un rapport d'Atelier, ou il est abîmé ; donnez un fichier écrit par --output.\n".format(path)))
        self.report(self.case)
        report = json.loads((self.folder / "rapport.json").read_text(encoding="utf-8"))
        for damage in (lambda each: each["variants"][0].pop("questions"), lambda each: each["variants"][0]["questions"][0].update(facts=None),
                       lambda each: each["variants"][0]["questions"][0]["facts"][0].pop("loss"), lambda each: each.update(variants={}), lambda each: each.pop("settings")):
            damaged = json.loads(json.dumps(report))
            damage(damaged)
            path = self.write(damaged, "x.json")
            self.assertEqual(run("--baseline", path)[0], 2)
        self.assertEqual(run("--baseline", self.folder / "absent"), (2, "", "{} : introuvable ; vérifiez le chemin.\n".format(self.folder / "absent")))


class Figures(TestCase):
    """Evidence and comparisons, read in the reports of cases whose engines send given words."""

    def judge(self, case, *lines):
        """(report, table) once engines sent these lines."""
        contexts = self.write("\n".join(map(json.dumps, lines)), "moteur.jsonl")
        code, out, err = run("--case", self.write(case), "--contexts", contexts, "--output",
                             self.folder / "rapport.json")
        self.assertEqual(code, 0, err)
        return json.loads((self.folder / "rapport.json").read_text(encoding="utf-8")), out

    def test_evidence_against_sets_of_positions(self):
        """Each question is a set of its own: its figures stand alone in by_set."""
        draw = random.Random(2)

        def spans(count):
            return [(draw.choice("ab"), start, start + draw.randint(1, 9))
                    for start in (draw.randint(0, 20) for _ in range(count))]
        facts, questions, lines, expected = [], [], [], {}
        for number in range(300):
            name, evidence, sent = str(number), spans(draw.randint(1, 3)), spans(draw.randint(0, 4))
            ids = ["{}-{}".format(name, rank) for rank, _ in enumerate(evidence)]
            facts += [{
                "id": id, "document": document, "quote": " ".join("{}{}".format(document, at)
                                                                  for at in range(start, end))}
                      for id, (document, start, end) in zip(ids, evidence)]
            questions.append({"id": name, "text": "zéro", "required_facts": ids, "set": name})
            lines.append({
                "question": name, "context": [
                    dict(zip(("document", "start", "end"), span)) for span in sent]})
            wanted, given = ({(document, at) for document, start, end in part for at in range(start, end)}
                             for part in (evidence, sent))
            expected[name] = [
                Fraction(len(wanted & given), len(wanted)),
                Fraction(len(wanted & given),
                         len(given) or 1),
                Fraction(len(wanted & given), len(wanted | given))]
        documents = [{"id": document, "text": " ".join("{}{}".format(document, at) for at in range(30))}
                     for document in "ab"]
        report, _ = self.judge(make_case(documents=documents, facts=facts, questions=questions,
                                         variants=[{"id": "v", "unit": "paragraphs"}]), *lines)
        for name, summary in variant(report, "moteur")["by_set"].items():
            for key, exact in zip(("evidence_recall", "evidence_precision", "evidence_iou"), expected[name]):
                self.assertAlmostEqual(summary[key], float(exact), 8)
        self.assertEqual(len(variant(report, "moteur")["by_set"]), 300)

    def test_evidence_worked_by_hand(self):
        # fact [100, 200[, context [80, 180[ + [120, 220[: 100 of 100 words, 100 of 140 sent, 100 of 140 together
        words = ["m{}".format(number) for number in range(300)]
        context = [{"document": "d", "start": start, "end": start + 100} for start in (80, 120)]
        report, _ = self.judge(make_case(" ".join(words), " ".join(words[100:200])),
                               {"question": "q", "context": context})
        figures = variant(report, "moteur")["summary"]
        self.assertEqual([figures[key] for key in ("evidence_recall", "evidence_precision", "evidence_iou")],
                         [1.0, round(100 / 140, 9), round(100 / 140, 9)])

    def test_the_sign_test_against_enumeration(self):
        for trials in range(1, 11):
            for wins in range(trials + 1):
                smaller = min(wins, trials - wins)
                tail = sum(sum(toss) <= smaller for toss in product((0, 1), repeat=trials))
                self.assertEqual(atelier.sign_test(wins, trials - wins), min(1.0, round(2 * tail / 2 ** trials, 9)))
        self.assertEqual([atelier.sign_test(*pair) for pair in ((0, 0), (5, 0), (6, 0), (1, 1), (10, 2))],
                         [1.0, 0.0625, 0.03125, 1.0, 0.038574219])

    def compare(self, **engines):
        """(comparisons between these engines, table): of each engine, whether each context is complete (1 or 0).

        The one variant finds nothing: it loses whatever an engine wins.  The last question has no answer.
        """
        count = len(next(iter(engines.values())))
        questions = [{"id": str(number), "text": "zéro", "required_facts": ["f"]} for number in range(count)]
        questions.append({"id": "sans", "text": "zéro", "answerable": False})
        report, table = self.judge(
            make_case(questions=questions, variants=[{"id": "nul", "unit": "paragraphs"}]),
            *({"engine": name, "question": str(number), "context": ["trois mois."] if whole == "1" else []}
              for name, verdicts in engines.items() for number, whole in enumerate(verdicts)))
        return [each for each in report["comparisons"] if "nul" not in each["variants"]], table.splitlines()

    def test_comparisons_count_complete_contexts(self):
        comparisons, _ = self.compare(a="1101", b="0100")
        self.assertEqual(comparisons, [{"variants": ["a", "b"], "wins": 2, "losses": 0, "ties": 2, "p": 0.5}])
        comparisons, _ = self.compare(a="0100", b="1101", c="1111")
        self.assertEqual(
            [(*each["variants"], each["wins"], each["losses"], each["ties"]) for each in comparisons], [
                ("a", "b", 0, 2, 2), ("a", "c", 0, 3, 1), ("b", "c", 0, 1, 3)])

    def test_the_table_says_what_is_told_apart(self):
        # 12 to 1 over 13: p = 2 (1 + 13) / 2^13 = 0,003417…; « nul » against a: 0 to 13, p = 2 / 2^13
        _, table = self.compare(**{"a": "1" * 12 + "0" + "1", "v1.0.2": "0" * 12 + "1" + "1"})
        start = table.index("Test des signes : seules ces paires sont départagées")
        self.assertEqual(table[start - 1:start + 3], [
            "", "Test des signes : seules ces paires sont départagées", "  nul contre a : 0 à 13, p = 0,0002",
            "  a contre v1.0.2 : 12 à 1, p = 0,0034"])
        # 3 to 0, at best: p = 2 / 8
        _, table = self.compare(a="1110", b="0000")
        self.assertIn("Test des signes : aucune paire de variantes n'est départagée (p >= 0,250).", table)
        _, out, _ = run("--case", self.write(make_case(variants=[{"id": "seule", "unit": "paragraphs"}])))
        self.assertNotIn("Test des signes", out)


CONTRACT = (
    "Le préavis est de trois mois. La prime est due chaque année.\n\n"
    "Les frais de dossier sont de vingt euros. "
    "Le siège est à Lyon."
)


class RecordsCase(TestCase):
    """A contract kept in a file, a question, and what an engine sent for it."""

    def setUp(self):
        super().setUp()
        self.write(CONTRACT, "contrat.txt")
        self.case = make_case(
            documents=[{"id": "c", "file": "contrat.txt"}],
            facts=[{"id": "f", "document": "c", "quote": "préavis est de trois mois"}],
            questions=[{"id": "q", "text": "Quel préavis ?", "required_facts": ["f"]}],
        )

    def run_lines(self, *lines, options=(), name="moteur.jsonl"):
        """(exit code, standard error, the engine's question or None) of an engine's file of these lines."""
        target = self.folder / "rapport.json"
        path = self.write(
            "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), name
        )
        code, _, err = run(
            "--case",
            self.write(self.case),
            "--contexts",
            path,
            "--output",
            target,
            "--html",
            self.folder / "page.html",
            *options,
        )
        report = json.loads(target.read_text(encoding="utf-8")) if code != 2 else None
        return code, err, report and report["variants"][-1]["questions"][0]

    def sent(self, context, **line):
        code, err, asked = self.run_lines({"question": "q", "context": context, **line})
        self.assertEqual(code, 0, err)
        return asked

    def fault(self, context):
        code, err, _ = self.run_lines({"question": "q", "context": context})
        self.assertEqual(code, 2, err)
        (sentence,) = err.splitlines()
        return sentence.replace("moteur.jsonl : ligne 1", "", 1).lstrip(" :")


class Records(RecordsCase):
    """The records of libraries, as they write them."""

    def test_the_shapes_of_libraries(self):
        text, start = "Le préavis est de trois mois.", 0
        uuid = "528255d9-96ce-4a36-ac5d-5ea6692c74bf"
        source = {"1": {"node_id": uuid, "node_type": "4", "class_name": "RelatedNodeInfo"}}
        path = {"file_path": "/data/contrat.txt", "file_name": "contrat.txt"}
        leaf = {
            "id_": "18d7e30a",
            "metadata": path,
            "relationships": {**source, "4": {"node_id": "f664afeb", "node_type": "1"}},
            "text": text,
            "start_char_idx": 12,
            "end_char_idx": 41,
            "class_name": "TextNode",
        }
        window = text + "  La prime est due chaque année."
        shapes = {
            "LangChain.js": {
                "pageContent": text,
                "metadata": {"source": "./contrat.txt", "loc": {"lines": {"from": 1, "to": 1}}},
            },
            "LangChain with scores": [
                {
                    "id": None,
                    "metadata": {"source": "./contrat.txt"},
                    "page_content": text,
                    "type": "Document",
                },
                0.5,
            ],
            "LlamaIndex": {
                "id_": "e25f",
                "metadata": path,
                "relationships": source,
                "text": text,
                "start_char_idx": start,
                "end_char_idx": len(text),
                "class_name": "TextNode",
            },
            "LlamaIndex document": {
                "id_": uuid,
                "metadata": path,
                "relationships": {},
                "text_resource": {
                    "embeddings": None,
                    "text": text,
                    "path": None,
                    "url": None,
                    "mimetype": None,
                },
            },
            "LlamaIndex hierarchical": {"node": leaf, "score": 0.5, "class_name": "NodeWithScore"},
            "LlamaIndex after metadata replacement": {
                "node": {
                    "id_": "e25f",
                    "metadata": {**path, "window": window, "original_text": text},
                    "text": window,
                    "relationships": source,
                    "start_char_idx": 30,
                    "end_char_idx": 60,
                },
                "score": 0.5,
            },
            "Haystack hierarchical": {
                "id": "bb80",
                "content": text,
                "blob": None,
                "score": None,
                "meta": {
                    "file_path": "/data/contrat.txt",
                    "__block_size": 5,
                    "__parent_id": "5913",
                    "__children_ids": [],
                    "__level": 2,
                    "source_id": "5913",
                    "page_number": 1,
                    "split_id": 1,
                    "split_idx_start": 24,
                },
            },
            "Unstructured": {
                "type": "NarrativeText",
                "element_id": "5ef1",
                "text": text,
                "metadata": {"languages": ["fra"], "filename": "contrat.txt", "filetype": "text/plain"},
            },
            "docling": {
                "text": text,
                "meta": {
                    "schema_name": "docling_core.transforms.chunker.DocMeta",
                    "version": "1.0.0",
                    "doc_items": [],
                    "headings": ["Contrat"],
                    "origin": {
                        "mimetype": "text/plain",
                        "binary_hash": 12,
                        "filename": "contrat.txt",
                        "uri": None,
                    },
                },
            },
            "Elasticsearch hit": {
                "_index": "i",
                "_id": "7",
                "_score": 1.2,
                "_source": {"content": text, "document": "c"},
            },
            "Qdrant point": {
                "id": 3,
                "version": 0,
                "score": 0.8,
                "payload": {"page_content": text, "metadata": {"source": "contrat.txt"}},
                "vector": None,
            },
            "export in Elasticsearch": {
                "_index": "i",
                "_id": "paragraphes/c#0001",
                "_score": 1.2,
                "_source": {},
            },
        }
        for name, record in shapes.items():
            with self.subTest(name):
                sent = self.sent([record], hits=[record])
                self.assertTrue(sent["all_required_covered"])
                self.assertEqual((sent["context"][0]["start"], sent["foreign_words"]), (0, 0))

    def test_whole_answers(self):
        text, other = "Le préavis est de trois mois.", "Le siège est à Lyon."
        rows = [{"_id": str(rank), "_source": {"text": each}} for rank, each in enumerate((text, other))]
        points = [
            {"id": rank, "score": 1, "payload": {"text": each}} for rank, each in enumerate((text, other))
        ]
        ids = ["paragraphes/c#0001", "x"]
        places = [[CONTRACT.index(each), CONTRACT.index(each) + len(each)] for each in (text, other)]
        for answer in (
            {"took": 3, "hits": {"total": {"value": 2, "relation": "eq"}, "hits": rows}},
            {"result": {"points": points}, "status": "ok"},
            {"result": points, "status": "ok"},
            {"points": points},
            [[text, other], places],
            {
                "ids": [["x", "y"]],
                "distances": [[0.1, 0.2]],
                "documents": [[text, other]],
                "metadatas": [[{"source": "contrat.txt"}, None]],
                "embeddings": None,
            },
            {"ids": ["x", "y"], "documents": [text, other], "metadatas": None},
        ):
            with self.subTest(answer):
                sent = self.sent(answer, hits=answer)
                self.assertEqual(
                    [(part["start"], part["end"]) for part in sent["context"]], [(0, 6), (20, 25)]
                )
        self.assertTrue(self.sent({"ids": [ids[:1]], "documents": None})["all_required_covered"])
        self.assertEqual(
            self.fault({"ids": [["x"], ["y"]], "documents": [["a"], ["b"]]}),
            "« context » répond à 2 questions ; une ligne n'en a qu'une.",
        )
        for answer in (
            {"ids": [["x"]], "documents": {"x": text}, "metadatas": "y"},
            {"ids": [3]},
            {"ids": [[], []]},
        ):
            self.assertIn("context", self.fault(answer))
        self.assertEqual(
            self.fault({"nodes": []}),
            "« context » attend une liste ; trouvé : un objet. On y a cherché "
            "hits.hits, result.points, result, points et ids.",
        )

    def test_a_document_is_known_by_any_path_to_its_file(self):
        for source in (
            "c",
            "contrat.txt",
            "./contrat.txt",
            ".\\contrat.txt",
            "C:\\data\\contrat.txt",
            "/data/contrat.txt",
            "file:///data/contrat.txt",
            "file://contrat.txt",
        ):
            with self.subTest(source):
                record = {"page_content": "Le préavis est de trois mois.", "metadata": {"source": source}}
                self.assertTrue(self.sent([record])["all_required_covered"])
        self.case["documents"] = [{"id": "Mon contrat.txt", "text": CONTRACT}]
        self.case["facts"][0]["document"] = "Mon contrat.txt"
        record = {
            "text": "Le préavis est de trois mois.",
            "metadata": {"source": "file:///x/Mon%20contrat.txt"},
        }
        self.assertTrue(self.sent([record])["all_required_covered"])

    def test_a_file_name_that_two_documents_have_is_no_name(self):
        for folder in ("a", "b"):
            (self.folder / folder).mkdir()
            self.write(CONTRACT + folder, folder + "/contrat.txt")
        self.case["documents"] = [{"id": folder, "file": folder + "/contrat.txt"} for folder in "ab"]
        self.case["facts"][0]["document"] = "a"
        record = {"document": "/data/contrat.txt", "text": "Le préavis"}
        self.assertEqual(
            self.fault([record]),
            "context[0] : « /data/contrat.txt » est le nom commun de « a » et « b » ; "
            "donnez l'identifiant.",
        )
        self.assertEqual(
            self.sent([{"document": "./b/contrat.txt", "text": "Le préavis"}])["context"][0]["document"], "b"
        )
        self.assertEqual(self.sent([{**record, "metadata": {"source": "a"}}])["context"][0]["document"], "a")

    def test_faults_of_one_kind_are_one_sentence(self):
        records = [{"text": "Le siège", "ref_doc_id": "uuid-{}".format(number)} for number in range(200)]
        sentence = self.fault(records)
        self.assertEqual(
            sentence,
            "context[0] : document « uuid-0 » inconnu. Possibles : c, contrat.txt. De même en "
            "199 autres endroits : ligne 1 : context[1], ligne 1 : context[2], ligne 1 : "
            "context[3], ….",
        )

    def test_positions_of_another_form_of_the_text(self):
        written = "L’été a un préavis est de trois mois, près d’ici."
        self.write(unicodedata.normalize("NFD", written), "contrat.txt")
        self.case["facts"][0]["quote"] = "préavis est de trois mois"
        for form in ("NFC", "NFD"):
            text = unicodedata.normalize(form, "préavis est de trois mois, près d'ici.")
            start = unicodedata.normalize("NFD", written).index("p")
            for record in (
                {"page_content": text, "metadata": {"source": "c", "start_index": start}},
                {"document": "c", "text": text, "start_char": start, "end_char": start + len(text)},
            ):
                with self.subTest(record):
                    self.assertEqual(
                        (
                            self.sent([record])["context"][0]["start"],
                            self.sent([record])["context"][0]["end"],
                        ),
                        (3, 10),
                    )

    def test_a_text_that_stands_beside_its_positions(self):
        text = "Les frais de dossier"
        start = CONTRACT.index(text)
        for shift in (3, -3):
            record = {"page_content": text, "metadata": {"source": "c", "start_index": start + shift}}
            self.assertTrue(self.fault([record]).endswith("il commence à {}.".format(start)))
        record = {
            "document": "c",
            "text": "Les frais de dosier",
            "start_char": start,
            "end_char": start + len(text),
        }
        self.assertEqual(
            self.fault([record]),
            "context[0] : le texte « Les frais de dosier » n'est pas celui des positions "
            "62 à 82 de « c » : « Les frais de dossier ».",
        )


class SentNotReferences(RecordsCase):
    """What was sent is judged, never what should have been."""

    def setUp(self):
        super().setUp()
        self.case = make_case(
            "Préavis : trois mois.\n\nDurée : trois ans.", "Préavis : trois mois.", "Quel préavis ?"
        )
        self.good, self.bad = ["Préavis : trois mois."], ["Durée : trois ans."]

    def test_the_reference_of_an_evaluation_library_is_never_scored(self):
        for line in (
            {"question": "q", "retrieval_context": self.bad, "context": self.good},
            {
                "input": "Quel préavis ?",
                "retrieval_context": self.bad,
                "context": self.good,
                "actual_output": "…",
                "expected_output": "Trois mois.",
                "tools_called": None,
                "token_cost": 0.1,
            },
            {
                "user_input": "Quel préavis ?",
                "retrieved_contexts": self.bad,
                "reference_contexts": self.good,
                "reference": "Trois mois.",
                "response": "…",
                "faithfulness": 0.5,
            },
            {"question": "Quel préavis ?", "contexts": self.bad, "ground_truths": self.good, "answer": "…"},
        ):
            with self.subTest(line):
                code, err, asked = self.run_lines(line, options=("--require", "moteur"))
                self.assertEqual((code, asked["facts"][0]["covered"]), (3, False), err)
                swapped = {
                    key: self.good if value is self.bad else self.bad if value is self.good else value
                    for key, value in line.items()
                }
                self.assertEqual(self.run_lines(swapped, options=("--require", "moteur"))[0], 0)

    def test_a_reference_alone_is_refused(self):
        for line, missing in (
            ({"input": "Quel préavis ?", "context": self.good}, "retrieval_context"),
            ({"user_input": "Quel préavis ?", "context": self.good}, "retrieved_contexts"),
        ):
            self.assertEqual(
                self.run_lines(line)[:2],
                (
                    2,
                    "moteur.jsonl : ligne 1 : la clé « {} » manque ; ajoutez-la. "
                    "« context » y est une référence, qui n'est pas jugée.\n".format(missing),
                ),
            )
        line = {"input": "Quel préavis ?", "retrieval_context": None, "context": self.good}
        self.assertIn("« retrieval_context » attend une liste ; trouvé : null.", self.run_lines(line)[1])
        code, err, _ = self.run_lines(
            {"question": "q", "context": self.good, "expected_output": "Trois mois."}
        )
        self.assertIn("ligne 1 : expected_output : clé inconnue.", err)

    def test_a_line_without_question_is_refused(self):
        self.assertEqual(
            self.run_lines({"context": self.good})[:2],
            (2, "moteur.jsonl : ligne 1 : la clé « question » manque ; ajoutez-la.\n"),
        )

    def test_two_keys_that_could_both_be_what_was_sent(self):
        line = {"question": "q", "retrieved_contexts": self.bad, "contexts": self.good}
        self.assertEqual(
            self.run_lines(line)[:2],
            (
                2,
                "moteur.jsonl : ligne 1 : « retrieved_contexts » et « contexts » diffèrent : "
                "laquelle de ces clés a ce qui a été envoyé ? Ôtez l'autre.\n",
            ),
        )
        self.assertEqual(self.run_lines({**line, "contexts": self.bad})[0], 0)

    def test_an_unknown_key_is_refused_with_the_nearest(self):
        self.assertEqual(
            self.run_lines({"question": "q", "context": self.good, "hit": []})[:2],
            (2, "moteur.jsonl : ligne 1 : hit : clé inconnue. Vouliez-vous dire « hits » ?\n"),
        )
        line = {"user_input": "Quel préavis ?", "retrieved_contexts": [], "reference_context": self.good}
        self.assertIn("Vouliez-vous dire « reference_contexts » ?", self.run_lines(line)[1])


class ForeignText(RecordsCase):
    """Text that no document has is sent and counted, proves nothing, and is told."""

    def test_it_is_counted_and_told(self):
        summary = "En bref, le préavis est de quatre mois."
        code, err, asked = self.run_lines(
            {
                "question": "q",
                "context": [
                    summary,
                    {"document": "c", "text": "La prime est due chaque année.", "heading": "Page 2"},
                ],
                "hits": [summary, "Le préavis est de trois mois."],
            },
            options=("--require", "moteur"),
        )
        self.assertEqual((code, asked["foreign_words"], asked["words_sent"]), (3, 8, 16))
        part = asked["context"][0]
        self.assertEqual(
            [part[key] for key in ("passage", "document", "start", "end", "text", "words", "truncated")],
            [None, None, None, None, summary, 8, False],
        )
        self.assertEqual(
            (asked["facts"][0]["words_covered"], asked["facts"][0]["loss"]["stage"]), (0, "cut_by_budget")
        )
        self.assertEqual([hit["kept_words"] for hit in asked["hits_before_budget"]], [8, 0])
        told = [line for line in err.splitlines() if "moteur.jsonl" in line]
        self.assertEqual(
            told[0],
            (
                "attention : moteur.jsonl : textes qui ne sont pas dans le corpus : 1 ; envoyés et comptés, "
                "ils ne prouvent "
                "rien. Les mots que le moteur met devant un passage vont dans « heading »."
            ),
        )
        self.assertRegex(
            told[1],
            "^attention : moteur.jsonl : ligne 1 : context.0. : le texte « En bref, le préavis est de "
            "quatre mois. » n'est pas dans le corpus ; document « c » : .*« Le préavis est de trois "
            "mois. ».*« quatre » y est écrit « trois »",
        )
        self.assertEqual(len(told), 2)
        self.assertNotIn(">None<", (self.folder / "page.html").read_text(encoding="utf-8"))

    def test_only_the_first_are_shown(self):
        code, err, asked = self.run_lines(
            {"question": "q", "context": ["résumé {}".format(n) for n in range(9)]}
        )
        told = [line for line in err.splitlines() if "moteur.jsonl" in line]
        self.assertEqual((code, len(told), asked["foreign_words"]), (0, 4, 18))
        self.assertIn("ne sont pas dans le corpus : 9 ;", told[0])
        self.assertTrue(
            told[1].endswith("le texte « résumé 0 » n'est pas dans le corpus, qui n'a aucun de ses mots.")
        )

    def test_the_summary_counts_it_and_variants_have_none(self):
        self.run_lines({"question": "q", "context": ["autre chose", "Le siège est à Lyon."]})
        report = json.loads((self.folder / "rapport.json").read_text(encoding="utf-8"))
        self.assertEqual([each["summary"]["foreign_words"] for each in report["variants"]], [0, 0, 0, 0, 2])

    def test_filters_neither_admit_nor_refuse_it(self):
        self.case["documents"][0]["pays"] = "FR"
        self.case["documents"].append({"id": "b", "text": "Rien.", "pays": "BE"})
        self.case["filters"] = {"pays": "BE"}
        asked = self.sent(["autre chose", "Le siège est à Lyon."])
        self.assertEqual((asked["foreign_words"], asked["facts"][0]["loss"]["stage"]), (2, "filtered_out"))

    def test_the_trip_of_a_question_names_it(self):
        path = self.write(json.dumps({"question": "q", "context": ["autre chose"]}), "moteur.jsonl")
        _, out, _ = run("--case", self.write(self.case), "--contexts", path, "--question", "q")
        self.assertIn("  1. hors du corpus, 2 mots", out.splitlines())

    def test_citations_may_come_from_a_report_that_has_some(self):
        self.run_lines({"question": "q", "context": ["autre chose", "Le siège est à Lyon."]})
        register = self.write(
            {
                "context_from": {"report": "rapport.json", "variant": "moteur", "question": "q"},
                "claims": [
                    {
                        "id": "a",
                        "text": "t",
                        "citations": [
                            {"passage": "c:104-124", "text": "Le siège est à Lyon.", "relation": "supports"}
                        ],
                    }
                ],
            },
            "registre.json",
        )
        code, out, err = run("--citations", register)
        self.assertEqual(code, 0, err)
        self.assertIn("1/1", out)

    def test_a_heading_alone_is_sent(self):
        sent = self.sent([{"heading": "Titre du contrat"}, "Le préavis est de trois mois."])
        self.assertEqual(
            (sent["words_sent"], sent["foreign_words"], sent["all_required_covered"]), (9, 0, True)
        )
        self.assertEqual(
            (sent["context"][0]["heading_words"], sent["context"][0]["text"]), (3, "Titre du contrat")
        )

    def test_a_text_of_another_document_than_the_one_named_is_refused(self):
        self.case["documents"].append({"id": "e", "text": "Un autre contrat."})
        self.assertEqual(
            self.fault([{"document": "c", "text": "Un autre contrat."}]),
            "context[0] : le texte « Un autre contrat. » n'est pas dans « c », mais dans « e » ; corrigez "
            "son "
            "document.",
        )

    def test_a_text_in_several_places_says_when_its_document_is_enough(self):
        self.case["documents"].append({"id": "e", "text": "Le siège est à Lyon."})
        self.assertTrue(
            self.fault(["Le siège est à Lyon."]).endswith(
                "figure plusieurs fois dans le corpus ; donnez son document : il suffit."
            )
        )
        self.assertTrue(
            self.fault(["est"]).endswith("figure plusieurs fois dans le corpus ; donnez ses positions.")
        )


class KnownQuestions(TestCase):
    def test_an_id_that_is_its_question_is_listed_once(self):
        case = make_case(question="un mois")
        case["questions"][0]["id"] = "un mois"
        path = self.write('{"question": "zz zz", "context": []}', "moteur.jsonl")
        self.assertEqual(run("--case", self.write(case), "--contexts", path), (
            2, "", "moteur.jsonl : ligne 1 : question « zz zz » inconnue. Possibles : un mois.\n"))


class TrecNames(TestCase):
    def test_an_id_with_a_blank_is_the_cause(self):
        case = make_case()
        case["questions"][0]["id"] = "q 1"
        path = self.write("q 1 Q0 paragraphes/d#0001 1 5.0 x", "moteur.trec")
        code, _, err = run("--case", self.write(case), "--contexts", path)
        self.assertEqual(
            (code, err),
            (
                2,
                (
                    "moteur.trec : ligne 1 : six colonnes attendues : question Q0 <variante>/<passage> rang "
                    "score étiquette ; "
                    "trouvé : « q 1 Q0 paragraphes/d#0001 1 5.0 x ». L'identifiant « q 1 » a une espace, "
                    "ce que ce format ne "
                    "permet pas ; changez-le.\n"
                ),
            ),
        )
        code, _, err = run("--case", self.write(case), "--export", self.folder / "passages.jsonl")
        self.assertEqual(code, 0)
        warning = ("attention : --export : un classement TREC ne peut porter un identifiant qui a une "
                   "espace : « q 1 ».")
        self.assertIn(warning, err.splitlines())
        self.assertNotIn(warning, run("--case", self.write(case))[2])
        self.assertNotIn(
            "TREC", run("--case", self.write(make_case()), "--export", self.folder / "p.jsonl")[2]
        )

    def test_the_longest_variant_that_has_the_passage_is_meant(self):
        case = make_case(variants=[{"id": name, "unit": "paragraphs"} for name in ("m", "m/5")])
        case["documents"] += [{"id": "5/d", "text": "Cinq."}, {"id": "5/e", "text": "Six."}]
        lines = [
            {
                "engine": "x",
                "question": "q",
                "context": [{"passage": "m/5/d#0001"}, {"passage": "m/5/e#0001"}],
            }
        ]
        path, target = self.write(json.dumps(lines), "x.json"), self.folder / "rapport.json"
        code, _, err = run("--case", self.write(case), "--contexts", path, "--output", target)
        self.assertEqual(code, 0, err)
        report = json.loads(target.read_text(encoding="utf-8"))
        self.assertEqual([part["document"] for part in question(report, "x")["context"]], ["d", "5/e"])


if __name__ == "__main__":
    unittest.main()
