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


class Excerpts(TestCase):
    """What a text that is not the whole of its passage is told to be, and when a part is enough."""

    PASSAGE = "L'acheteur a sept jours, pas un de plus.\nIl paie 1\u202f140 euros au comptant."

    def judge(self, text, **changes):
        """The one citation of a register of one passage, and the lines printed."""
        register = {"passages": [{"id": "S", "text": self.PASSAGE}], "context": ["S"], "claims": [
            {"id": "c", "text": "Sept jours.", "citations": [
                {"passage": "S", "text": text, "relation": "supports"}]}], **changes}
        code, out, err = run("--citations", self.write(register, "registre.json"),
                             "--output", self.folder / "r.json")
        self.assertEqual((code, err), (0, ""))
        found = json.loads((self.folder / "r.json").read_text(encoding="utf-8"))["citations"]
        claim, = found["claims"]
        cited, = claim["citations"]
        self.assertEqual((found["excerpts"], claim["text"], cited["text"]),
                         (changes.get("excerpts", False), "Sept jours.", text))
        self.assertEqual(claim["verdict"] == "supported", cited["status"] == "valid")
        return [cited[key] for key in ("status", "excerpt", "typography")], out.splitlines()

    def test_a_run_of_whole_words_is_enough_when_the_register_says_so(self):
        for text in ("sept jours", self.PASSAGE.splitlines()[0], "de plus.\r\nIl paie", self.PASSAGE[:-1]):
            for excerpts, status in ((True, "valid"), (False, "content_mismatch")):
                found, lines = self.judge(text, excerpts=excerpts)
                self.assertEqual(found, [status, True, False], text)
                told = "valide (extrait)" if excerpts else "autre texte (extrait)"
                self.assertIn("    S : {}, soutient".format(told), lines)

    def test_typography_alone_is_told_and_never_enough(self):
        for text, excerpt in (
                (self.PASSAGE.replace("'", "’"), False), (self.PASSAGE.replace("\n", " "), False),
                (self.PASSAGE + " ", False), ("L’acheteur a sept jours", True), ("de plus. Il paie", True)):
            for excerpts in (True, False):
                found, lines = self.judge(text, excerpts=excerpts)
                self.assertEqual(found, ["content_mismatch", excerpt, True], text)
                told = "autre texte{} (typographie)".format(" (extrait)" * excerpt)
                self.assertIn("    S : {}, soutient".format(told), lines)
        passage = [{"id": "S", "text": "Payé à l'échéance"}]
        found, _ = self.judge("Paye\u0301 à l'e\u0301che\u0301ance", passages=passage)
        self.assertEqual(found, ["content_mismatch", False, True])

    def test_half_a_word_half_a_number_or_another_word_is_no_excerpt(self):
        for text in ("sept jour", "140 euros", "acheteur a quatorze jours", "sept jours […] Il paie"):
            found, lines = self.judge(text, excerpts=True)
            self.assertEqual(found, ["content_mismatch", False, False], text)
            self.assertIn("    S : autre texte, soutient", lines)

    def test_what_has_no_text_to_be_held_to_has_no_marks(self):
        for text, status, changes in (
                (self.PASSAGE, "valid", {}), ("sept jours", "not_in_context", {"context": []}),
                ("sept jours", "source_missing", {"passages": [], "context": []}),
                ("sept jours", "revision_mismatch", {
                    "passages": [{"id": "S", "revision": 2, "text": self.PASSAGE}]})):
            self.assertEqual(self.judge(text, excerpts=True, **changes)[0], [status, None, None])

    def test_the_seventeen_claims_count_the_same_with_excerpts(self):
        register = json.loads(REGISTER.read_text(encoding="utf-8"))
        for changes in ({}, {"excerpts": False}, {"excerpts": True}):
            code, out, _ = run("--citations", self.write({**register, **changes}, "registre.json"))
            fractions = [line.split()[-1] for line in out.splitlines()[2:5]]
            self.assertEqual((code, fractions), (0, ["7/17", "7/19", "15/19"]))

    def test_excerpts_is_true_or_false(self):
        register = {"passages": [{"id": "S", "text": "x"}], "context": ["S"], "claims": [], "excerpts": "oui"}
        self.assertEqual(run("--citations", self.write(register, "registre.json")), (2, "", (
            "registre.json : excerpts : attendu : true ou false ; trouvé : « oui ».\n")))

    def test_a_cut_passage_is_cited_as_far_as_it_was_sent(self):
        text = "Le préavis est de trois mois."
        code, _, err = run("--case", self.write(make_case(text, settings={"budget_words": 4})),
                           "--output", self.folder / "resultat.json")
        self.assertEqual(code, 0, err)
        origin = {"report": "resultat.json", "variant": "paragraphes", "question": "q"}
        for cited, status in (("préavis est", "valid"), ("préavis est de trois", "content_mismatch")):
            register = {"context_from": origin, "excerpts": True, "claims": [
                {"id": "c", "text": "…", "citations": [
                    {"passage": "d#0001", "text": cited, "relation": "supports"}]}]}
            run("--citations", self.write(register, "registre.json"), "--output", self.folder / "r.json")
            found = json.loads((self.folder / "r.json").read_text(encoding="utf-8"))["citations"]
            self.assertEqual(found["claims"][0]["citations"][0]["status"], status)


if __name__ == "__main__":
    unittest.main()
