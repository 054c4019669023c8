"""Contracts and codes as people have them: what is a title, a cross-reference, a clause, and what is doubted."""

import json
import unittest

from support import TESTS, TestCase, make_case, question, variant
from test_structure import HEADER

TEXTS = TESTS / "cas" / "structures"


class Contracts(TestCase):
    """Contracts cut by sections, read through the exports and the reports of cases that they alone make."""

    def case(self, text, max_chars=10_000, **metadata):
        return make_case(documents=[{"id": "d", "structure": "contract", "text": text, **metadata}], facts=[],
                         questions=[{"id": "q", "text": text, "answerable": False}],
                         settings={"top_k": 1000, "stop_words": []},
                         variants=[{"id": "v", "unit": "sections", "max_chars": max_chars}])

    def sections(self, text, **metadata):
        """[(title of its section, text)] of each passage of a contract, in text order."""
        hits = question(self.report(self.case(text, **metadata)), "v")["hits_before_budget"]
        return [(*hit["sections"], hit["text"]) for hit in sorted(hits, key=lambda hit: hit["passage"])]

    def body(self, text):
        return self.sections(HEADER + text)

    def titles(self, text):
        return [title for title, _ in self.body(text)]

    def pieces(self, text, max_chars=1):
        """The texts of the passages of a contract with this body, under a limit of characters."""
        return [row["text"] for row in self.passages(self.case(HEADER + text, max_chars))["v"]]

    def doubts(self, text):
        """The warnings about a contract with this body."""
        return [warning for warning in self.report(self.case(HEADER + text))["warnings"] if "« d »" in warning]


class Titles(Contracts):
    def test_titles_that_a_lawyer_would_call_so(self):
        for line in ("Article 4 – Prix", "Art. 2. Durée", "ARTICLE PREMIER", "Article 7 (abrogé)", "Article 4bis",
                     "Article 4 sexies – Fin", "Article 12 duodecies", "Article L. 441-10", "Article R*132-4",
                     "Art. R.* 132-4. – texte", "Art. D. 123-4-1", "Article LO 141", "Article L.O. 141-2 : Mandat",
                     "Article A. 123-1", "Article L441-10 bis", "Article 1649 quater B bis", "Article 200-0 A",
                     "Annexe II", "ANNEXE", "Annexe – Tarifs", "ARTICLE 3 DURÉE DU CONTRAT",
                     "Article 3 Durée du contrat", "Article 4-Prix", "Article IX. – Divers", "Article 12.3 – Suite",
                     "Article préliminaire", "Art. 4. — Prix", "Article 1er – Objet",
                     "Article R** 123 – Conseil", "Article L. 441‑10 – Pénalités"):
            text = line + "\nLe texte."
            self.assertEqual(self.body(text), [(line, text)])
            self.assertEqual(self.doubts(text), [], line)

    def test_marks_around_a_title_are_not_of_it(self):
        for line in ("**Article 4 – Prix**", "## Article 4 – Prix", "# **Article 4** – Prix", "__Article 4 – Prix__"):
            text = line + "\nDix euros."
            self.assertEqual(self.body(text), [("Article 4 – Prix", text)])

    def test_a_cross_reference_that_the_line_break_cut_is_no_title(self):
        for before, line in (("1.1 Le client doit les pénalités prévues par le premier alinéa de cet",
                              "article L. 441-10 du code de commerce et une indemnité."),
                             ("900 euros, révisés selon cet", "article 1 : indice de mai."),
                             ("La garantie est celle de l'", "Article 12."),
                             ("La garantie est celle que prévoit l'annexe et que précise l'", "article 12."),
                             ("Conformément à l'", "Article 2 – Prix, la remise est acquise."),
                             ("Le prix est révisé selon les", "Article 2 (modifié)"),
                             ("Le client est livré sous le régime des", "Articles L. 441-10 et L. 441-11"),
                             ("Un mois.", "Article 12-3 s'applique aux gaines."),
                             ("Un mois.", "Article L. 441-10 du code de commerce."),
                             ("Un mois.", "Article L. 441 - 10 du code de commerce."),
                             ("Un mois.", "Article L. 441-10, deuxième alinéa."),
                             ("Un mois, comme le prévoit la garantie", "Article 12 – Garantie"),
                             ("Un mois, en vertu du", "chapitre II : dispositions communes"),
                             ("Un mois.\n\nLe prix est celui de cet", "\narticle 4 : indice de mai.")):
            text = "\n".join(("Article 1 – Préavis", before, line, "1.2 Le préavis est de six mois."))
            self.assertEqual(self.body(text), [("Article 1 – Préavis", text)], line)

    def test_a_fact_over_a_cut_reference_is_whole(self):
        text = "Article 4 – Loyer\n900 euros, révisés selon cet\narticle 4 : indice de mai.\n\nArticle 5 – Fin\nFin."
        case = make_case(quote="selon cet article 4 : indice de mai", question="Quel indice ?",
                         documents=[{"id": "d", "structure": "contract", "text": HEADER + text}],
                         variants=[{"id": "v", "unit": "sections", "max_chars": 500}])
        self.assertEqual(variant(self.report(case), "v")["summary"]["facts_whole"], 1)

    def test_a_cut_reference_leaves_two_clauses(self):
        head = ("Article 1 – Pénalités\n1.1 En cas de retard, le client doit les pénalités prévues par le premier alinéa "
                "de cet\narticle L. 441-10 du code de commerce et une indemnité.")
        tail = "1.2 Le préavis est de six mois."
        self.assertEqual(self.pieces(head + "\n" + tail), [head, tail])
        self.assertEqual(self.titles(head + "\n" + tail), ["Article 1 – Pénalités"])

    def test_titles_without_blank_lines_nor_full_stops_between(self):
        text = "Article 1 – Objet\nUn.\nArt. 2. Durée\nDeux ans\nArticle 3 – Prix\nle client,\nARTICLE 4 : FIN\nFin."
        self.assertEqual(self.titles(text), ["Article 1 – Objet", "Art. 2. Durée", "Article 3 – Prix",
                                             "ARTICLE 4 : FIN"])

    def test_numbers_alone_are_titles_when_they_number_the_articles_throughout(self):
        text = "1. Objet\n1.1 Le site.\n1. Le client\n2. Durée\n2.1 Un an.\n3 – Fin\nTrois mois."
        self.assertEqual(self.titles(text), ["1. Objet", "2. Durée", "3 – Fin"])
        lists = "Article 1 – Objet\nSont vendus :\n1. Des livres\n2. Des disques\n\nArticle 2 – Fin\nFin."
        self.assertEqual(self.titles(lists), ["Article 1 – Objet", "Article 2 – Fin"])
        sentences = "Préalable.\n1. Le client paie.\n2. Le prestataire livre.\n4. Contrôle\n"
        self.assertEqual(self.titles(sentences), [""])

    def test_what_comes_before_decides(self):
        self.assertEqual(self.titles("Article 1 – Objet\nUn.\nDISPOSITIONS FINALES\nArticle 9 – Fin\nFin."),
                         ["Article 1 – Objet", "Article 9 – Fin"])
        self.assertEqual(self.titles("Article L. 441-10\nLe client a droit à la garantie\nArticle L. 12-1 – Garantie"),
                         ["Article L. 441-10"])
        self.assertEqual(self.titles("1. Objet\nLe prix est dû pour les\n2. Livres\n2. Durée\nUn an."),
                         ["1. Objet", "2. Durée"])
        self.assertEqual(self.titles("1. Objet\nUn an."), [""])

    def test_blanks_to_fill_in_are_no_table_of_contents(self):
        text = "Article 1 – Prix : ..........\nPar mois.\n\nArticle 2 – Lieu\n............"
        self.assertEqual(self.titles(text), ["Article 1 – Prix : ..........", "Article 2 – Lieu"])

    def test_an_article_on_one_line_keeps_it_and_its_title_is_its_number(self):
        text = ("Art. 1er. – Le ministre de la culture est chargé de la présente loi.\n"
                "Art. 2. – (Supprimé)\nArticle 3 (abrogé)\n\nArt. 4. – Le décret du 3 mai est abrogé.")
        self.assertEqual(self.body(text), list(zip(("Art. 1er", "Art. 2. – (Supprimé)", "Article 3 (abrogé)", "Art. 4"),
                                                   filter(None, text.split("\n")))))

    def test_a_title_over_two_lines(self):
        text = ("Article 8 – Conditions de la résiliation anticipée et de la restitution des\nmatériels confiés\n\n"
                "8.1 Un mois.")
        self.assertEqual(self.titles(text), [" ".join(text.split("\n\n")[0].split())])


class Divisions(Contracts):
    def test_a_division_begins_what_follows(self):
        text = "Article 1 – Préavis\nUn mois.\n\nTITRE II – CADRES\n\nArticle 2 – Préavis\nTrois mois."
        one, two = text.split("\n\nTITRE")
        self.assertEqual(self.body(text), [("Article 1 – Préavis", one), ("Article 2 – Préavis", "TITRE" + two)])
        case = make_case(quote="Trois mois", question="Quel préavis pour les cadres ?", settings={"top_k": 1},
                         documents=[{"id": "d", "structure": "contract", "text": HEADER + text}],
                         variants=[{"id": "v", "unit": "sections", "max_chars": 500}])
        self.assertTrue(question(self.report(case), "v")["all_required_covered"])

    def test_divisions_of_every_kind(self):
        for line in ("TITRE II", "Titre Ier : Dispositions générales", "CHAPITRE 1ER – OBJET", "Chapitre préliminaire",
                     "Section 2", "Sous-section 3 : Délais (Articles L441-10 à L441-16)", "Sous section 3 : Délais",
                     "Partie législative (Articles L100-1 à L961-5)", "Première partie : Principes", "PARTIE II",
                     "Livre IV bis – Des biens", "Paragraphe 2 : Recours", "Section A – Prix", "TITRE II CADRES"):
            text = "Article 1 – Objet\nUn.\n{}\nArticle 2 – Fin\nFin.".format(line)
            self.assertEqual([part.split("\n")[0] for _, part in self.body(text)], ["Article 1 – Objet", line], line)
            self.assertEqual(self.titles(text), ["Article 1 – Objet", "Article 2 – Fin"])

    def test_a_preamble_is_a_section(self):
        text = "Préambule\nLes parties se sont rapprochées.\n\nArticle 1 – Objet\nUn."
        self.assertEqual(self.body(text), list(zip(("Préambule", "Article 1 – Objet"), text.split("\n\n"))))

    def test_sentences_are_no_divisions(self):
        text = ("Article 1 – Objet\nUn.\nSection d'investissement.\nPartie adverse.\nTitre exécutoire.\n"
                "Chapitre des dépenses.\nSection 2 du chapitre.\nPréambule de la Constitution.\nTitre : bail.")
        self.assertEqual(self.titles(text), ["Article 1 – Objet"])

    def test_a_division_may_have_its_title_on_the_next_line(self):
        text = "Chapitre Ier\nDispositions générales\n\nArticle 1\nUn.\n\nCHAPITRE II\n\nFIN\nArticle 2\nDeux."
        self.assertEqual(self.titles(text), ["Article 1", "Article 2"])


class Clauses(Contracts):
    def test_a_clause_may_begin_with_a_short_word(self):
        text = "Article 3 – Frais\n3.1 le dépôt est d'un mois.\n3.2 en cas de retard, 90 euros."
        self.assertEqual(self.pieces(text, 50), text.replace("\n3.2", "\n\n3.2").split("\n\n"))
        for words in ("le prix", "il paie", "à défaut", "l'heure", "t'as", "m'est dû", "Mois après mois"):
            self.assertEqual(len(self.pieces("Article 3 – Frais\n3.1 Un.\n3.2 " + words)), 2, words)

    def test_measures_are_no_clauses(self):
        for words in ("euros", "€", "%", "mois", "km de câble", "m² au sol", "h", "points"):
            self.assertEqual(len(self.pieces("Article 3 – Frais\n3.1 Un.\n3.2 " + words)), 1, words)
        self.assertEqual(len(self.pieces("Article 3 – Frais\n3.1 Un taux de\n3.2 fourni par la banque.")), 1)

    def test_what_is_under_a_clause_belongs_to_it(self):
        text = "Article 3 – Frais\n3.1 Les frais :\n3.1.1 de port ;\n3.1.2 d'envoi :\na) un ;\n1° deux.\n3.2 Fin.\n3.21 Suite."
        self.assertEqual(self.pieces(text), text.replace("\n3.2", "\n\n3.2").split("\n\n"))
        text = "Article 3 – Frais\n3.1.1 De port.\n3.1.2 D'envoi."
        self.assertEqual(self.pieces(text), text.replace("\n3.1.2", "\n\n3.1.2").split("\n\n"))

    def test_a_clause_of_another_article_is_told(self):
        text = "Article 4 – Prix\n4.1 Un.\n5.2 Deux.\n4.2 Trois."
        self.assertEqual(self.pieces(text), text.replace("\n4.2", "\n\n4.2").split("\n\n"))
        self.assertEqual(self.doubts(text), [
            "document « d » : numéro d'un autre article, sans y ouvrir de clause (1 fois) : ligne 9, « 5.2 Deux. » ; "
            "voyez si elle est à sa place."])


class Header(Contracts):
    BODY = "Article 1 – Objet\nUn."
    KNOWN = {"reference": "C-1", "type": "bail", "parties": "Orsel;Altibox", "date_de_signature": "2024-01-15"}

    def label(self, text, **metadata):
        """What index_titles searches of a contract: its reference, title and parties."""
        row, = self.passages(self.case(text, **metadata))["v"]
        return row["title"]

    def test_keys_may_come_from_the_case(self):
        text = "Bail\nType : bail\n\n" + self.BODY
        self.assertEqual(self.label(text, reference="C-1", parties=["Orsel"], date_de_signature="2024-01-15"),
                         "C-1 Bail Orsel")
        self.assertEqual(self.label("Bail\n\n" + self.BODY, **self.KNOWN), "C-1 Bail Orsel Altibox")
        known = {key: value for key, value in self.KNOWN.items() if key != "parties"}
        self.assertEqual(self.refused(self.case(text, **known)), ["cas.json : documents[0] (d).text : ligne 4 : « Parties : … » attendue dans "
                                      "l'en-tête ; trouvé : « Article 1 – Objet »."])

    def test_a_text_without_header_is_a_contract(self):
        self.assertEqual(self.sections("Conditions de vente\n\n" + self.BODY), [("Article 1 – Objet", self.BODY)])
        self.assertEqual(self.sections(self.BODY), [("Article 1 – Objet", self.BODY)])
        self.assertEqual(self.sections("Conditions\nVersion de mai : la seconde\n\n" + self.BODY),
                         [("", "Version de mai : la seconde"), ("Article 1 – Objet", self.BODY)])
        self.assertEqual(self.label("Conditions de vente\n\n" + self.BODY), "Conditions de vente")

    def test_parties_are_parted_at_semicolons_whatever_the_blanks(self):
        for parties in ("A\u00a0; B", "A;B", "A ; B", "A ;B ;"):
            text = HEADER.replace("Orsel ; Altibox", parties) + self.BODY
            row, = self.passages(self.case(text))["v"]
            self.assertEqual(row["metadata"]["parties"], ["A", "B"])


class Doubts(Contracts):
    def test_lines_that_look_like_titles_are_told_once_with_their_count(self):
        text = "Article 1 – Objet\nUn.\n" + "Annexe technique\n" * 5 + "Clause 4 – Prix\nArticle 9 – Prix\n"
        self.assertEqual(self.doubts(text), [
            "document « d » : ressemble à un titre et n'est pas lu ainsi (7 fois) : ligne 9, « Annexe technique », "
            "ligne 10, « Annexe technique », ligne 11, « Annexe technique », … ; un titre s'écrit « Article 4 – Prix »."])

    def test_numbers_that_jump_or_come_again_are_told(self):
        text = "Article 1 – A\nUn.\n\nArticle 3 – B\nDeux.\n\nArticle 3 bis – C\nTrois.\n\nArticle 3 – D\nQuatre."
        self.assertEqual(self.doubts(text), [
            "document « d » : numéro d'article qui ne suit pas le précédent (1 fois) : ligne 10, « Article 3 – B » ; "
            "voyez si un titre manque.",
            "document « d » : numéro d'article déjà pris (1 fois) : ligne 16, « Article 3 – D » ; "
            "voyez si l'un des deux est un renvoi."])
        self.assertEqual(self.doubts(text.replace("3 – D", "4 – D").replace("3", "2").replace("4 – D", "3 – D")), [])

    def test_codes_jump_and_annexes_count_anew_without_a_doubt(self):
        self.assertEqual(self.doubts("Article L. 441-10\nUn.\n\nArticle L. 442-1\nDeux.\n\nArticle R*132-4\nTrois.\n\n"
                                     "Article R132-4\nQuatre.\n\nArticle D. 1\nCinq."), [])
        self.assertEqual(self.doubts("Article 1 – A\nUn.\n\nAnnexe I\n\nArticle 1 – B\nDeux."), [])

    def test_a_table_of_contents_is_told_and_makes_no_section(self):
        body = "Article 1 – Objet\nUn.\n\nArticle 2 – Durée\nDeux."
        for contents in ("Sommaire\nTITRE I – TOUT\nArticle 1 – Objet\nArticle 2 – Durée",
                         "Article 1 – Objet ...... 3\nArticle 2 – Durée . . . . . 4",
                         "Table\nArticle 1 – Des conditions de la\nrestitution .......... 3\nArticle 2 – Durée ...... 4"):
            self.assertEqual(self.body(contents + "\n\n" + body),
                             [("", contents), *zip(("Article 1 – Objet", "Article 2 – Durée"), body.split("\n\n"))])
            doubt, = self.doubts(contents + "\n\n" + body)
            self.assertIn("entrée d'une table des matières, laissée dans le texte (", doubt)
        self.assertEqual(self.titles(body + "\n\nTable\n\nArticle 1 – Objet\nArticle 2 – Durée"),
                         ["Article 1 – Objet", "Article 2 – Durée"])

    def test_a_structure_without_any_section_is_told(self):
        self.assertEqual(self.doubts("Rien que du texte."),
                         ["document « d » : aucun titre reconnu ; un titre s'écrit « Article 4 – Prix »."])


class Texts(Contracts):
    """Whole texts, beside the sections that they must give, written by hand."""

    NAMES = ("code", "conditions", "decret")

    def test_sections_of_whole_texts(self):
        for name in self.NAMES:
            text = (TEXTS / (name + ".txt")).read_text(encoding="utf-8")
            expected = json.loads((TEXTS / (name + ".attendu.json")).read_text(encoding="utf-8"))
            hits = question(self.report(self.case(text)), "v")["hits_before_budget"]
            hits.sort(key=lambda hit: hit["passage"])
            self.assertEqual([(*hit["paths"], *hit["sections"]) for hit in hits],
                             [(section["path"], section["title"]) for section in expected], name)
            for hit, section in zip(hits, expected):
                self.assertEqual([hit["text"][:len(section["begins"])], hit["text"][-len(section["ends"]):]],
                                 [section["begins"], section["ends"]])
            self.assertEqual(" ".join(" ".join(hit["text"] for hit in hits).split()),
                             " ".join(text.partition("\n")[2].split()), name)

    def test_what_whole_texts_have_that_is_doubtful(self):
        kinds = {"code": ["entrée d'une table des matières, laissée dans le texte (7 fois)"], "decret": [],
                 "conditions": ["numéro d'un autre article, sans y ouvrir de clause (1 fois)"]}
        for name in self.NAMES:
            warnings = self.report(self.case((TEXTS / (name + ".txt")).read_text(encoding="utf-8")))["warnings"]
            told = [warning.split(" : ")[1] for warning in warnings if warning.startswith("document")]
            self.assertEqual(told, kinds[name], name)

    def test_clauses_of_general_terms(self):
        text = (TEXTS / "conditions.txt").read_text(encoding="utf-8")
        starts = [row["text"].split(" ")[0].split("\n")[-1] for row in self.passages(self.case(text, 1))["v"]]
        self.assertEqual(starts, ["Applicables", "1.", "1.2", "2.", "2.2", "3.", "4.", "Annexe"])


if __name__ == "__main__":
    unittest.main()
