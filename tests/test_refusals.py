"""Refused cases: each file of cas/refus stands beside the exact sentences expected."""

import json
import random
import unicodedata
import unittest

from support import TESTS, TestCase, make_case, run

FOLDER = TESTS / "cas" / "refus"


class Refusals(TestCase):
    def test_each_refused_case_says_exactly_why(self):
        cases = sorted(FOLDER.glob("*.json"))
        self.assertGreater(len(cases), 50)
        self.assertEqual([path.stem for path in cases], sorted(path.stem for path in FOLDER.glob("*.txt")))
        for path in cases:
            with self.subTest(case=path.name):
                code, out, err = run("--case", path)
                self.assertEqual((code, out), (2, ""))
                self.assertEqual(err, path.with_suffix(".txt").read_text(encoding="utf-8"))
                self.assertTrue(all(line.startswith(path.name + " : ") and line.endswith((".", "?")) for line in err.splitlines()))

    def test_absurd_nesting_is_one_sentence(self):
        for text in ("[" * 100_000, '{"title": ' * 100_000):
            self.assertEqual(self.refused(text), [
                "cas.json : imbrication démesurée de listes ou d'objets ; le format n'en demande que cinq niveaux."])

    def test_a_case_that_is_not_there(self):
        code, _, err = run("--case", self.folder / "absent.json")
        self.assertEqual((code, err), (2, "{} : introuvable ; vérifiez le chemin.\n".format(self.folder / "absent.json")))
        code, _, err = run("--case", self.folder)
        self.assertEqual((code, err), (2, "{} : c'est un dossier ; vérifiez le chemin.\n".format(self.folder)))

    def test_a_document_file_that_leaves_the_folder_by_a_link(self):
        (self.folder / "dehors.txt").write_text("Le préavis est de trois mois.", encoding="utf-8")
        inside = self.folder / "cas"
        inside.mkdir()
        (inside / "lien.txt").symlink_to(self.folder / "dehors.txt")
        path = self.write(make_case(documents=[{"id": "d", "file": "lien.txt"}]), "cas/cas.json")
        self.assertEqual(run("--case", path), (2, "", "cas.json : documents[0].file (lien.txt) : hors du dossier du fichier "
                                                      "qui le nomme ; placez-le sous ce dossier.\n"))

    def test_a_file_path_that_no_system_takes(self):
        for name, shown in (("a\0b", "a\\x00b"), ("a\x1b[31mb", "a\\x1b[31mb"), ("pieces\bail.txt", "pieces\\x08ail.txt"), ("\\ud800x", "\\xd800x")):
            case = json.dumps(make_case(documents=[{"id": "d", "file": "@"}]), ensure_ascii=False).replace("@", json.dumps(name)[1:-1] if "ud800" not in name else name)
            lines = self.refused(case)
            self.assertEqual(len(lines), 2)
            self.assertRegex(lines[0], r"^cas.json : documents\[0\].file : (caractère de contrôle|moitié de paire) .* ; supprimez ce caractère\.$")
            self.assertEqual(lines[1], "cas.json : documents[0].file ({}) : chemin invalide ; séparez les dossiers par « / ».".format(shown))

    def test_a_link_within_the_folder_is_followed(self):
        (self.folder / "texte.txt").write_bytes(b"\xef\xbb\xbf" + "Le préavis\r\nest de trois mois.".encode("utf-8"))
        (self.folder / "lien.txt").symlink_to("texte.txt")
        report = self.report(make_case(documents=[{"id": "d", "file": "lien.txt"}]))
        self.assertEqual(report["variants"][0]["questions"][0]["hits_before_budget"][0]["text"], "Le préavis\r\nest de trois mois.")

    def test_an_encoding_other_than_utf_8_names_the_byte(self):
        text = '{"title": "é"}'
        self.assertEqual(self.refused(text.encode("cp1252")), ["cas.json : octet 11 (0xE9, ligne 1) : ce n'est pas de l'UTF-8 ; enregistrez en UTF-8."])

    def test_a_hundred_faults_are_told_and_the_others_counted(self):
        facts = [{"id": "f{}".format(number), "document": "d", "quote": "absent{}".format(number)} for number in range(150)]
        told = self.refused(make_case(facts=facts, questions=[]))
        self.assertEqual((len(told), told[99][:20], told[100]), (101, "cas.json : facts[99]", "cas.json : et 50 autres fautes."))

    def test_a_dozen_of_what_could_have_been_meant_is_listed(self):
        documents = [{"id": "d{:02}".format(number), "text": "Un.", "pays": "P{:02}".format(number)} for number in range(15)]
        listed = ["{}{:02}".format("{}", number) for number in range(12)]
        told = self.refused(make_case(documents=documents, facts=[{"id": "f", "document": "zzz", "quote": "Un"}], filters={"pays": "zzz"}))
        self.assertEqual(told, [
            "cas.json : facts[0].document : document « zzz » inconnu. Possibles : {}….".format(", ".join(listed).format(*"d" * 12)),
            "cas.json : filters.pays : aucun document n'a « zzz » pour cette clé. Valeurs présentes : {}, ….".format(
                ", ".join("« {} »".format(each) for each in listed).format(*"P" * 12))])

    def test_bounds_are_true_dates_and_may_be_equal(self):
        documents = [{"id": "d", "text": "Le préavis est de trois mois.", "date": "2024-05-01"}]
        for bound, refused in (("2024-13", True), ("2024-05-32", True), ("2024-00", True), ("2024-05-01", False)):
            case = make_case(documents=documents, filters={"date": {"gte": bound, "lte": bound}})
            code, _, err = run("--case", self.write(case))
            self.assertEqual((code, "n'est pas une date ISO" in err), (2, True) if refused else (0, False), bound)

    def test_a_document_file_with_a_control_character(self):
        (self.folder / "texte.txt").write_bytes("Le préavis est\x07 de trois mois.".encode("utf-8"))
        self.assertEqual(self.refused(make_case(documents=[{"id": "d", "file": "texte.txt"}])), [
            "cas.json : documents[0].file (texte.txt) : caractère de contrôle U+0007 au caractère 14 (compté depuis 0) ; "
            "supprimez ce caractère."])

    def test_integers_that_readers_would_round(self):
        for digits, code in ((15, 0), (16, 2)):
            case = make_case(documents=[{"id": "d", "text": "Le préavis est de trois mois.", "n": int("9" * digits)}])
            self.assertEqual(run("--case", self.write(case))[0], code)

    def test_ids_that_differ_by_their_unicode_form_are_one(self):
        documents = [{"id": unicodedata.normalize(form, "été"), "text": "Le préavis est de trois mois."} for form in ("NFC", "NFD")]
        told = self.refused(make_case(documents=documents, facts=[], questions=[]))
        self.assertEqual([line.partition("identifiant")[0] for line in told], ["cas.json : documents[1].id : "])

    def test_every_fault_of_json_has_its_words(self):
        for text, place in (('{"title": "a\\d"}', "ligne 1, colonne 13 : JSON invalide : une barre oblique inverse n'annonce rien"),
                            ('{"title": "a}', "ligne 1, colonne 11 : JSON invalide : ce texte n'a pas de guillemet fermant"),
                            ('{"title" 1}', "ligne 1, colonne 10 : JSON invalide : il manque le deux-points"),
                            ('{}\n{}', "ligne 2, colonne 1 : JSON invalide : du texte suit la fin du JSON")):
            told, = self.refused(text)
            self.assertTrue(told.startswith("cas.json : " + place), told)

    def test_an_absent_quote_is_always_explained(self):
        """Whatever the quote and the text, the refusal names a nearest text that is in the document, and does not crash."""
        draw = random.Random(3)
        words = ["le", "Le", "préavis", "pre\u0301avis", "l'an", "l’an", "2,5", "25", "mois.", "mois", "–", "-", "«", "…", "a…b", "É"]
        located = explained = 0
        for _ in range(1000):
            text, quote = (" ".join(draw.choice(words) for _ in range(draw.randint(1, size))) for size in (25, 8))
            case = make_case(text, quote, variants=[{"id": "v", "unit": "paragraphs"}])
            code, _, err = run("--case", self.write(case), "--output", self.folder / "rapport.json")
            if code == 0:
                fact = json.loads((self.folder / "rapport.json").read_text(encoding="utf-8"))["variants"][0]["questions"][0]["facts"][0]
                self.assertIn(quote, " ".join(text.split()[fact["start"]:fact["end"]]))
                located += 1
                continue
            self.assertEqual(code, 2)
            self.assertRegex(err, r"^[^\n]*(Texte le plus proche \(mot \d+\) : « .+ » ; ce qui diffère : .+\. Recopiez|à l'intérieur d'un mot|"
                                  r"Ses morceaux|Aucun de ses mots|figure plusieurs fois)[^\n]*\n$")
            explained += "Texte le plus proche" in err
        self.assertGreater(located, 10)
        self.assertGreater(explained, 500)


if __name__ == "__main__":
    unittest.main()
