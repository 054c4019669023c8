"""Refused cases: each file of cas/refus stands beside the exact sentences expected."""

import json
import random
import re
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
        self.assertEqual(run("--case", path), (2, "", "cas.json : documents[0] (d).file (lien.txt) : hors du dossier du fichier "
                                                      "qui le nomme ; placez-le sous ce dossier.\n"))

    def test_a_file_path_that_no_system_takes(self):
        for name, shown in (("a\0b", "a\\x00b"), ("a\x1b[31mb", "a\\x1b[31mb"), ("pieces\bail.txt", "pieces\\x08ail.txt"), ("\\ud800x", "\\xd800x")):
            case = json.dumps(make_case(documents=[{"id": "d", "file": "@"}]), ensure_ascii=False).replace("@", json.dumps(name)[1:-1] if "ud800" not in name else name)
            lines = self.refused(case)
            self.assertEqual(len(lines), 2)
            self.assertRegex(lines[0], r"^cas.json : documents\[0\].file : (caractère de contrôle|moitié de paire) .* ; supprimez ce caractère\.$")
            self.assertEqual(lines[1], "cas.json : documents[0] (d).file ({}) : chemin invalide ; séparez les dossiers par « / ».".format(shown))

    def test_a_link_within_the_folder_is_followed(self):
        (self.folder / "texte.txt").write_bytes(b"\xef\xbb\xbf" + "Le préavis\r\nest de trois mois.".encode("utf-8"))
        (self.folder / "lien.txt").symlink_to("texte.txt")
        report = self.report(make_case(documents=[{"id": "d", "file": "lien.txt"}]))
        self.assertEqual(report["variants"][0]["questions"][0]["hits_before_budget"][0]["text"], "Le préavis\r\nest de trois mois.")

    def test_an_encoding_other_than_utf_8_names_the_byte(self):
        text = '{"title": "é"}'
        self.assertEqual(self.refused(text.encode("cp1252")), ["cas.json : octet 11 (0xE9, ligne 1) : ce n'est pas de l'UTF-8 ; enregistrez en UTF-8."])

    def test_a_hundred_faults_are_told_and_the_others_counted(self):
        facts = [{"id": "f{}".format(number), "document": "d", "quote": "absent{}".format(number)}
                 for number in range(150)]
        told = self.refused(make_case(facts=facts, questions=[]))
        self.assertEqual((len(told), told[99][:20], told[100]),
                         (101, "cas.json : facts[99]", "cas.json : et 50 autres fautes."))

    def test_a_dozen_of_what_could_have_been_meant_is_listed(self):
        documents = [{"id": "d{:02}".format(number), "text": "Un.", "pays": "P{:02}".format(number)}
                     for number in range(15)]
        listed = ["{}{:02}".format("{}", number) for number in range(12)]
        told = self.refused(
            make_case(documents=documents,
                      facts=[{"id": "f", "document": "zzz", "quote": "Un"}],
                      filters={"pays": "zzz"}))
        self.assertEqual(told, [
            "cas.json : facts[0] (f).document : document « zzz » inconnu. Possibles : {}, ….".format(
                ", ".join(listed).format(*"d" * 12)),
            "cas.json : filters.pays : aucun document n'a « zzz » pour cette clé. Valeurs présentes : {}, ….".
            format(", ".join("« {} »".format(each) for each in listed).format(*"P" * 12))])

    def test_bounds_are_true_dates_and_may_be_equal(self):
        documents = [{"id": "d", "text": "Le préavis est de trois mois.", "date": "2024-05-01"}]
        for bound, refused in (("2024-13", True), ("2024-05-32", True), ("2024-00", True), ("2024-05-01",
                                                                                            False)):
            case = make_case(documents=documents, filters={"date": {"gte": bound, "lte": bound}})
            code, _, err = run("--case", self.write(case))
            self.assertEqual((code, "n'est pas une date ISO" in err), (2, True) if refused else (0, False),
                             bound)

    def test_a_document_file_with_a_control_character(self):
        (self.folder / "texte.txt").write_bytes("Le préavis est\x07 de trois mois.".encode("utf-8"))
        self.assertEqual(self.refused(make_case(documents=[{"id": "d", "file": "texte.txt"}])), [
            "cas.json : documents[0] (d).file (texte.txt) : caractère de contrôle U+0007 au caractère 14 (compté depuis 0) ; "
            "supprimez ce caractère."])

    def test_integers_that_readers_would_round(self):
        for digits, code in ((15, 0), (16, 2)):
            case = make_case(
                documents=[{"id": "d", "text": "Le préavis est de trois mois.", "n": int("9" * digits)}])
            self.assertEqual(run("--case", self.write(case))[0], code)

    def test_ids_that_differ_by_their_unicode_form_are_one(self):
        documents = [{"id": unicodedata.normalize(form, "été"), "text": "Le préavis est de trois mois."}
                     for form in ("NFC", "NFD")]
        told = self.refused(make_case(documents=documents, facts=[], questions=[]))
        self.assertEqual([line.partition("identifiant")[0] for line in told],
                         ["cas.json : documents[1] ({}).id : ".format(unicodedata.normalize("NFD", "été"))])

    def test_every_fault_of_json_has_its_words(self):
        for text, place in (
            ('{"title": "a\\d"}',
             "ligne 1, colonne 13 : JSON invalide : une barre oblique inverse n'annonce rien"),
            ('{"title": "a}', "ligne 1, colonne 11 : JSON invalide : ce texte n'a pas de guillemet fermant"),
            ('{"title" 1}', "ligne 1, colonne 10 : JSON invalide : il manque le deux-points"),
            ('{}\n{}', "ligne 2, colonne 1 : JSON invalide : du texte suit la fin du JSON")):
            told, = self.refused(text)
            self.assertTrue(told.startswith("cas.json : " + place), told)

    def test_a_pdf_or_a_word_file_says_to_extract_its_text(self):
        for data, kind in ((b"%PDF-1.7\n%\xe2\xe3", "un PDF"),
                           (b"PK\x03\x04\x14\0", "un .docx ou une archive"), (b"\xd0\xcf\x11\xe0",
                                                                              "un .doc")):
            told = "c'est {} ; extrayez-en le texte, et enregistrez-le en UTF-8.".format(kind)
            self.assertEqual(self.refused(data), ["cas.json : " + told])
            (self.folder / "bail").write_bytes(data)
            self.assertEqual(self.refused(make_case(documents=[{"id": "d", "file": "bail"}])),
                             ["cas.json : documents[0] (d).file (bail) : " + told])

    def absences(self, text, *quotes):
        """The sentence that refuses each quote of a text, after its place; None for one that is located."""
        case = make_case(text,
                         facts=[{"id": "f{}".format(number), "document": "d", "quote": quote}
                                for number, quote in enumerate(quotes)])
        case["questions"][0]["required_facts"] = [fact["id"] for fact in case["facts"]]
        told = {}
        for line in run("--case", self.write(case))[2].splitlines():
            match = re.match(r"cas\.json : facts\[(\d+)\].*?\.quote : (.*)", line)
            if match:
                told[int(match.group(1))] = match.group(2)
        return [told.get(number) for number in range(len(quotes))]

    def test_an_absent_quote_is_always_explained(self):
        """Whatever the quote and the text, a refusal names a nearest text of the document, and does not crash."""
        draw = random.Random(3)
        words = [
            "le", "Le", "préavis", "pre\u0301avis", "l'an", "l’an", "2,5", "25", "mois.", "mois", "–", "-",
            "«", "…", "a…b", "É", "€", "%", ";", "1", "140", "-5"]
        explained = 0
        for size in (1, 1, 2, 3, 5, 8, 12, 20, 30, 40) * 2:
            text = " ".join(draw.choice(words) for _ in range(size))
            quotes = [" ".join(draw.choice(words) for _ in range(draw.randint(1, 8))) for _ in range(90)]
            for quote, sentence in zip(quotes, self.absences(text, *quotes)):
                explained += "Texte le plus proche" in (sentence or "")
                self.assertRegex(
                    sentence or "située",
                    r"Texte le plus proche \(mot \d+\) : « .+ » ; ce qui diffère : .+\. Recopiez|"
                    "située|à l'intérieur d'un mot|Ses morceaux|Aucun de ses mots|figure plusieurs fois")
                if "Aucun de ses mots" in (sentence or ""):
                    self.assertFalse(
                        {word for word in quote.split() if word[0].isalnum()} & set(text.split()),
                        (text, quote))
        self.assertGreater(explained, 500)

    def test_signs_between_the_words_of_an_absent_quote(self):
        """A sign in the longest run that a quote shares with its text made none of its words known."""
        text = "Le loyer est de 900 € par mois ; une remise de 5 % est due, voir § 2 du bail."
        for quote, told in (
                ("Le loyer est de 900 € par an", "« an » y est écrit « mois »"),
                ("900 € par mois , une remise", "« , » y est écrit « ; » (ponctuation)"),
                ("remise de 5 % sera due", "« sera » y est écrit « est »"),
                ("est due, voir § 3", "« 3 » y est écrit « 2 »"),
                ("de 900 € par mois ; un rabais", "« un rabais » y est écrit « une remise »")):
            with self.subTest(quote=quote):
                self.assertRegex(
                    self.absences(text, quote)[0], r" ; ce qui diffère : {}\. Recopiez le texte\.$".format(
                        re.escape(told)))

    def test_the_fault_of_a_long_quote_is_found_wherever_it_is(self):
        words = ["m{}".format(number) for number in range(25_000)]
        for at in (0, 150, 199, 200, 12_345, 19_999):
            quote = words[1000:21_000]
            quote[at] = "faux"
            with self.subTest(at=at):
                self.assertTrue(self.absences(" ".join(words), " ".join(quote))[0].endswith(
                    " ; ce qui diffère : « faux » y est écrit « m{} ». Recopiez le texte.".format(1000 + at)))

    def test_a_text_of_one_repeated_word_explains_an_absence_as_another_does(self):
        sentences = self.absences("mot " * 50_000, "mot " * 20_000 + "faux", "mot faux", "mot…" * 8_000,
                                  "faux", "mot" + " " * 8_000 + "faux")
        self.assertEqual([re.sub(r".*(?:diffère|d\. ». |« d »\.)", "", sentence) for sentence in sentences], [
            " : « faux » y est écrit « mot ». Recopiez le texte.",
            " : « faux » y est écrit « mot ». Recopiez le texte.",
            " Ses morceaux y sont, séparés : une citation est d'un seul tenant ; faites un fait de chaque morceau.",
            " Aucun de ses mots n'y figure : est-ce le bon document ?",
            " : « faux » y est écrit « mot ». Recopiez le texte."])

    def test_many_absent_quotes_of_one_long_text_are_each_explained(self):
        draw = random.Random(5)
        words = [draw.choice("abcdefgh") + str(draw.randrange(4000)) for _ in range(100_000)]
        starts = [draw.randrange(99_000) for _ in range(99)]
        quotes = [
            " ".join(words[start:start + 9] + ["faux"] + words[start + 10:start + 20]) for start in starts]
        for start, sentence in zip(starts, self.absences(" ".join(words), *quotes)):
            self.assertIn(" Texte le plus proche (mot {}) : ".format(start), sentence)
            self.assertTrue(
                sentence.endswith(" : « faux » y est écrit « {} ». Recopiez le texte.".format(
                    words[start + 9])), sentence)


if __name__ == "__main__":
    unittest.main()
