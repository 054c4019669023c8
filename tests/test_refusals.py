"""Refused cases: each file of cas/refus stands beside the exact sentences expected."""

import json
import random
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
