"""Citations: seventeen claims worked by hand, registers taken from a report, and refusals."""

import hashlib
import json
import unittest

from support import TESTS, TestCase, make_case, run

REGISTER = TESTS / "cas" / "citations.json"


class Citations(TestCase):
    def judge(self, register):
        code, _, err = run("--citations", self.write(register, "registre.json"), "--output", self.folder / "rapport.json")
        self.assertEqual(code, 0, err)
        return json.loads((self.folder / "rapport.json").read_text(encoding="utf-8"))["citations"]

    def refused(self, register):
        code, out, err = run("--citations", self.write(register, "registre.json"))
        self.assertEqual((code, out), (2, ""))
        return [line[len("registre.json : "):] for line in err.splitlines()]

    def small(self, *citations, **changes):
        """One passage A (revision 1), sent; B, known and not sent; one claim."""
        register = {"passages": [{"id": "A", "revision": 1, "text": "un\ndeux"}, {"id": "B", "revision": 1, "text": "trois"}], "context": ["A"],
                    "claims": [{"id": "c", "text": "Un, deux.", "citations": list(citations)}]}
        register.update(changes)
        return register

    def cite(self, text="un\ndeux", passage="A", revision=1, relation="supports"):
        return {"passage": passage, "revision": revision, "text": text, "relation": relation}

    def test_the_reference_register(self):
        found = self.judge(REGISTER.read_text(encoding="utf-8"))
        # 7 of 17: 01, 04, 06, 08, 13, 14, 16.  19 citations: 17 - 1 (07) + 1 each for 08, 13, 14; 15 valid: not 10, 11, 12, 17.
        self.assertEqual([found[key] for key in ("claim_support", "citation_usefulness", "structural_validity")], [
            {"numerator": 7, "denominator": 17, "fraction": "7/17"}, {"numerator": 7, "denominator": 19, "fraction": "7/19"},
            {"numerator": 15, "denominator": 19, "fraction": "15/19"}])
        supported = {"C40-{:02}".format(number) for number in (1, 4, 6, 8, 13, 14, 16)}
        self.assertEqual({claim["id"]: claim["verdict"] for claim in found["claims"]}, {
            "C40-{:02}".format(number): "supported" if "C40-{:02}".format(number) in supported else "review" if number == 15 else "unsupported"
            for number in range(1, 18)})
        statuses = {(claim["id"], each["passage"]): each["status"] for claim in found["claims"] for each in claim["citations"] if each["status"] != "valid"}
        self.assertEqual(statuses, {("C40-10", "S4"): "not_in_context", ("C40-11", "S9"): "source_missing", ("C40-12", "S1"): "revision_mismatch",
                                    ("C40-17", "S1"): "content_mismatch"})
        self.assertEqual([found["duplicates"], found["uncited"], found["open_reviews"]],
                         [[{"claim": "C40-08", "passage": "S1", "revision": 3}], ["C40-07"], [{"claim": "C40-15", "passage": "S1"}]])
        self.assertEqual([(each["passage"], each["relation"], each["duplicate"]) for each in found["claims"][7]["citations"]],
                         [("S1", "supports", False), ("S3", "irrelevant", False), ("S1", "supports", True)])

    def test_the_console_shows_three_fractions_and_what_to_look_at(self):
        code, out, err = run("--citations", REGISTER)
        self.assertEqual((code, err), (0, ""))
        for line in ("affirmations soutenues                  7/17", "citations valides qui soutiennent       7/19", "citations valides                      15/19",
                     "À relire : C40-15 (S1)", "Citations répétées : C40-08 (S1)", "Sans citation : C40-07", "    S1 : autre révision, soutient"):
            self.assertIn(line, out.splitlines())
        self.assertTrue(all(len(line) <= 80 for line in out.splitlines()))

    def test_statuses_one_by_one(self):
        for citation, status in ((self.cite(), "valid"), (self.cite("un\r\ndeux"), "valid"), (self.cite("un deux"), "content_mismatch"), (self.cite("un"), "content_mismatch"),
                                 (self.cite("trois", "B"), "not_in_context"), (self.cite("trois", "C"), "source_missing"), (self.cite("autre", revision=2), "revision_mismatch"),
                                 (self.cite(revision="1"), "revision_mismatch"), (self.cite(revision=None), "revision_mismatch")):
            claim = self.judge(self.small(citation))["claims"][0]
            self.assertEqual((claim["citations"][0]["status"], claim["verdict"]), (status, "supported" if status == "valid" else "unsupported"))

    def test_a_new_revision_tells_whether_the_text_changed(self):
        for text, same in (("un\r\ndeux", True), ("un\ntrois", False)):
            self.assertIs(self.judge(self.small(self.cite(text, revision=2)))["claims"][0]["citations"][0]["same_content"], same)
        self.assertNotIn("same_content", self.judge(self.small(self.cite()))["claims"][0]["citations"][0])

    def test_invalid_citations_never_support(self):
        found = self.judge(self.small(self.cite("trois", "B"), self.cite("x", "C"), self.cite("faux"), self.cite(relation="review")))
        self.assertEqual([found["claims"][0]["verdict"], found["claim_support"]["fraction"], found["citation_usefulness"]["fraction"],
                          found["structural_validity"]["fraction"]], ["review", "0/1", "0/4", "1/4"])

    def test_what_is_repeated_is_told_once_for_each_repeat_and_opens_no_second_review(self):
        review = self.cite(relation="review")
        claims = [{"id": id, "text": "…", "citations": [review, review]} for id in "cd"]
        found = self.judge(self.small(claims=claims))
        self.assertEqual(found["open_reviews"],
                         [{"claim": "c", "passage": "A"}, {"claim": "d", "passage": "A"}])
        self.assertEqual(
            found["duplicates"],
            [{"claim": "c", "passage": "A", "revision": 1}, {"claim": "d", "passage": "A", "revision": 1}])
        _, out, _ = run("--citations", self.folder / "registre.json")
        self.assertEqual(out.splitlines().count("    A : valide, à relire, répétée"), 2)

    def test_two_texts_that_differ_by_a_blank_are_two_citations(self):
        found = self.judge(self.small(self.cite(), self.cite("un\ndeux ")))
        self.assertEqual([(each["status"], each["duplicate"]) for each in found["claims"][0]["citations"]],
                         [("valid", False), ("content_mismatch", False)])

    def test_the_register_is_known_by_its_bytes(self):
        found = self.judge(self.small())
        digest = hashlib.sha256((self.folder / "registre.json").read_bytes()).hexdigest()
        self.assertEqual((found["file"], found["sha256"]), ("registre.json", digest))

    def test_an_empty_register_has_empty_fractions(self):
        found = self.judge(self.small(claims=[]))
        self.assertEqual([found[key]["fraction"] for key in ("claim_support", "citation_usefulness", "structural_validity")], ["0/0"] * 3)

    def test_refused_registers(self):
        for register, lines in (
                (self.small(self.cite(), self.cite(relation="contradicts")),
                 ["claims[0] (c).citations[1] : même citation qu'une autre de cette affirmation, avec une autre relation (supports et contradicts) ; choisissez."]),
                (self.small(self.cite(relation="support")), ["claims[0] (c).citations[0].relation : relation « support » inconnue. Possibles : supports (soutient), "
                 "insufficient (ne suffit pas), contradicts (contredit), irrelevant (hors sujet), review (à relire)."]),
                (self.small(passages=[{"id": "A", "text": "un"}, {"id": "A", "text": "deux"}]),
                 ["passages[1] (A).id : identifiant « A » déjà pris par passages[0] (A).id ; donnez-en un autre."]),
                (self.small(passages=[{"id": "A", "text": " "}, {"id": "B"}], context=[]),
                 ["passages[0] (A).text : attendu : un texte non vide, entre guillemets ; trouvé : un texte vide.", "passages[1] (B) : la clé « text » manque ; ajoutez-la."]),
                (self.small(context=["A", "Z"]), ["context[1] : passage « Z » inconnu. Possibles : A, B."]),
                (self.small(self.cite(revision=1.5)), ["claims[0] (c).citations[0].revision : attendu : un entier, un texte ou null ; trouvé : 1.5."]),
                ({"claims": []}, ["la clé « passages » manque, ou « context_from ».", "la clé « context » manque, ou « context_from »."]),
                (self.small(context_from={"report": "r", "variant": "v", "question": "q"}), ["context_from : remplace « passages » et « context » ; ôtez-les.",
                                                                                           "context_from.report (r) : introuvable ; vérifiez le chemin."])):
            self.assertEqual(self.refused(register), lines)

    def test_a_register_may_take_its_passages_from_a_report(self):
        text = "Le préavis est de trois mois.\n\nLe préavis court dès la lettre.\n\nLe préavis se compte en jours."
        case = make_case(text, "trois mois", settings={"budget_words": 9})
        self.report(case)
        (self.folder / "rapport.json").rename(self.folder / "resultat.json")
        hits = json.loads((self.folder / "resultat.json").read_text(encoding="utf-8"))["variants"][3]["questions"][0]["hits_before_budget"]
        self.assertEqual([hit["kept_words"] for hit in hits], [6, 3, 0])
        origin = {"report": "resultat.json", "variant": "paragraphes", "question": "q"}
        citations = [self.cite(hit["text"], hit["passage"], None) for hit in hits] + [self.cite("x", "d#0009", None),
                                                                                      self.cite(" ".join(hits[1]["text"].split()[:3]), hits[1]["passage"], None)]
        found = self.judge({"context_from": origin, "claims": [{"id": "c", "text": "…", "citations": citations}]})
        self.assertEqual([each["status"] for each in found["claims"][0]["citations"]], ["valid", "content_mismatch", "not_in_context", "source_missing", "valid"])
        for key, value, sentence in (("variant", "paragraphs", "context_from.variant : « paragraphs » inconnu du rapport. Vouliez-vous dire « paragraphes » ?"),
                                     ("question", "z", "context_from.question : « z » inconnu du rapport. Possibles : q."),
                                     ("report", "cas.json", "context_from.report (cas.json) : ce n'est pas un rapport d'Atelier, ou il est abîmé ; donnez un fichier écrit par --output.")):
            self.assertEqual(self.refused({"context_from": {**origin, key: value}, "claims": []}), [sentence])

    def test_the_report_of_an_engine_without_hits_gives_what_it_sent(self):
        contexts = self.write('{"question": "q", "context": ["trois mois."]}', "moteur.jsonl")
        run("--case", self.write(make_case()), "--contexts", contexts, "--output",
            self.folder / "resultat.json")
        sent, = json.loads(
            (self.folder /
             "resultat.json").read_text(encoding="utf-8"))["variants"][-1]["questions"][0]["context"]
        origin = {"report": "resultat.json", "variant": "moteur", "question": "q"}
        register = {
            "context_from": origin, "claims": [{
                "id": "c", "text": "…", "citations": [self.cite(sent["text"], sent["passage"], None)]}]}
        self.assertEqual(self.judge(register)["claims"][0]["verdict"], "supported")
        before = (self.folder / "resultat.json").read_bytes()
        code, _, err = run("--citations", self.folder / "registre.json", "--output",
                           self.folder / "resultat.json")
        self.assertEqual((code, err), (2, "{} : c'est un fichier d'entrée ; donnez un autre nom.\n".format(
            self.folder / "resultat.json")))
        self.assertEqual((self.folder / "resultat.json").read_bytes(), before)

    def test_it_goes_with_output_alone(self):
        for option in ("--case", "--contexts", "--export", "--require", "--baseline"):
            self.assertEqual(run("--citations", REGISTER, option, "x"), (
                2, "", "--citations ne s'emploie qu'avec --output et --html : un registre se juge sans cas.\n"))
        self.assertEqual(run("--citations", REGISTER, "--output", REGISTER)[0], 2)


if __name__ == "__main__":
    unittest.main()
