"""Markdown: its block structure, by hand and against markdown-it-py; titles that travel; twins."""

import json
import random
import re
import subprocess
import unittest

from support import ROOT, TESTS, TestCase, make_case, question, run, variant

ENGINES = TESTS / "engines"
PYTHON = ENGINES / ".venv" / "bin" / "python"


def has_markdown_it():
    return (
        PYTHON.exists()
        and not subprocess.run([PYTHON, "-c", "import markdown_it"], stderr=subprocess.DEVNULL).returncode
    )


class Sectioned(TestCase):
    """What Markdown texts become, read through the reports and exports of cases that they alone make."""

    def sections(self, *texts, structure="markdown", **parameters):
        """For each text, [(path, title, text)] of its passages by sections, in text order."""
        documents = [
            {"id": str(number), "text": text, **({"structure": structure} if structure else {})}
            for number, text in enumerate(texts)
        ]
        parameters = {"id": "v", "unit": "sections", "max_chars": 100_000, **parameters}
        case = make_case(
            documents=documents,
            facts=[],
            variants=[parameters],
            settings={"top_k": 100_000, "stop_words": []},
            questions=[{"id": "q", "text": " ".join(texts), "answerable": False}],
        )
        hits = sorted(question(self.report(case), "v")["hits_before_budget"], key=lambda hit: hit["passage"])
        return [
            [
                (*map(tuple, hit["paths"]), *hit["sections"], hit["text"])
                for hit in hits
                if hit["document"] == document["id"]
            ]
            for document in documents
        ]

    def titles(self, text):
        return [title for _, title, _ in self.sections(text)[0]]

    def pieces(self, *texts):
        """For each text, the first characters of its passages when each is a piece."""
        case = make_case(
            documents=[
                {"id": str(number), "structure": "markdown", "text": text}
                for number, text in enumerate(texts)
            ],
            facts=[],
            questions=[],
            variants=[{"id": "v", "unit": "sections", "max_chars": 1}],
        )
        starts = {str(number): [] for number in range(len(texts))}
        for row in self.passages(case)["v"]:
            starts[row["document"]].append(row["start_char"])
        return list(starts.values())


class Blocks(Sectioned):
    def test_a_code_span_of_three_backticks_opens_no_fence(self):
        text = "```ls``` liste.\n\n# Loyer\n900 euros.\n\n# Préavis\nTrois mois."
        self.assertEqual(
            self.sections(text)[0],
            [
                ((), "", "```ls``` liste."),
                ((), "Loyer", "# Loyer\n900 euros."),
                ((), "Préavis", "# Préavis\nTrois mois."),
            ],
        )

    def test_what_stands_in_a_list_or_a_quote_begins_no_section(self):
        for head in (
            "- ```\n  # note\n  ```",
            "- ```\n  # note",
            "> ```\n> # note",
            "> # note",
            "1) # note\n   ## suite",
            "- a\n\n  note\n  ====",
            "- a\n\n  ```\n\n  # note\n  ```\n\n  b",
        ):
            self.assertEqual(self.titles(head + "\n\n# Loyer\n900 euros."), ["", "Loyer"], head)
        # a fence ends with the list item, or the quote, that holds it
        self.assertEqual(self.titles("- a\n  ```\n# Loyer\n900 euros."), ["", "Loyer"])

    def test_comments_and_html_hold_no_heading(self):
        for block in (
            "<!--\n# Ancien\n\n# Autre\n-->",
            "<pre>\n# Ancien\n\n# Autre\n</pre>",
            "<?php\n\n# Ancien\n?>",
            "<![CDATA[\n\n# Ancien\n]]>",
            "<div>\n# Ancien\n</div>",
            "<b class=\"x\">\n# Ancien\n</b>",
            "<!DOCTYPE\n\n# Ancien\n>",
            "<script>\n\n# Ancien\n</script>",
        ):
            self.assertEqual(self.titles("# Loyer\n" + block + "\n900 euros."), ["Loyer"], block)
        self.assertEqual(self.titles("<div>\n\n# Loyer\n900 euros."), ["", "Loyer"])
        self.assertEqual(
            self.titles("texte\n<b>\n# Loyer\n900 euros."), ["", "Loyer"]
        )  # a tag ends no paragraph

    def test_front_matter_holds_no_heading(self):
        front = "---\ntitle: Bail\n# relu\n\nlang: fr\n---\n"
        self.assertEqual(
            self.sections(front + "\n# Loyer\n900 euros.")[0],
            [((), "", front[:-1]), ((), "Loyer", "# Loyer\n900 euros.")],
        )
        self.assertEqual(self.titles(front.replace("\n", "\r\n") + "# Loyer\r\n900 euros."), ["", "Loyer"])
        self.assertEqual(
            self.titles("---\n\nBail.\n\n# Loyer\n900 euros.\n\n---\n"), ["", "Loyer"]
        )  # two rules
        self.assertEqual(self.titles("---\nBail\n---\n900 euros.\n\n---\n"), ["Bail"])

    def test_underlined_headings(self):
        self.assertEqual(
            self.sections("Loyer\n=====\n900 euros.")[0], [((), "Loyer", "Loyer\n=====\n900 euros.")]
        )
        text = "# Bail\nentre nous\n\nLoyer\net charges\n---\n900 euros.\n\n- a\n---\n\n---\nfin"
        self.assertEqual(
            self.sections(text)[0],
            [
                ((), "Bail", "# Bail\nentre nous"),
                (("Bail",), "Loyer et charges", "Loyer\net charges\n---\n900 euros.\n\n- a\n---\n\n---\nfin"),
            ],
        )

    def test_link_definitions_are_no_heading(self):
        text = "[a]: /u\n'un\ntitre'\nLoyer\n===\n900 euros.\n\n[b]: </u>\n===\nfin"
        self.assertEqual(
            self.sections(text)[0],
            [((), "", "[a]: /u\n'un\ntitre'"), ((), "Loyer", text[text.index("Loyer") :])],
        )

    def test_a_line_separator_ends_no_line(self):
        table = "| poste | prix |\n| --- | --- |\n| bois\u2028# chauffage | 90 |"
        self.assertEqual(
            self.sections(table + "\n\n# Fin\nFin.")[0], [((), "", table), ((), "Fin", "# Fin\nFin.")]
        )

    def test_blank_lines_of_code_separate_no_paragraph(self):
        for block in ("```\na\n\nb\n```", "    a\n\n    b", "<!--\na\n\nb\n-->", "- ~~~\n  a\n\n  b\n  ~~~"):
            text = "un\n\n" + block + "\n\ndeux"
            self.assertEqual(self.pieces(text), [[0, text.index(block.lstrip()), len(text) - 4]], block)
        self.assertEqual(self.pieces("- a\n\n- b\n\n  c"), [[0, 5, 12]])

    def test_deep_containers_cost_no_square(self):
        deep = "> " * 3000 + "a\n" + "- " * 3000 + "b\n\n" * 3000 + "# Loyer\n900 euros."
        self.assertEqual(self.titles(deep), ["", "Loyer"])

    def test_a_procedure_read_by_hand(self):
        text = (TESTS / "cas" / "structures" / "procedure.md").read_text(encoding="utf-8")
        (found,) = self.sections(text)
        top = "Procédure de sauvegarde"
        self.assertEqual(
            [
                (path, title, section.split("\n")[0], section.split("\n")[-1])
                for path, title, section in found
            ],
            [
                ((), "", "---", "---"),
                ((top,), "Objet", top, "> Aucune copie ne quitte le bâtiment."),
                ((top,), "Matériel", "## Matériel", "  le coffre'"),
                ((top, "Lancement de la copie"), "En temps normal", "Lancement", "    copier --vite"),
                ((top, "Lancement de la copie"), "En cas de panne", "### En cas de panne", "***"),
                (("Restauration",), "Qui la demande", "# Restauration", "Le responsable du site, par écrit."),
            ],
        )
        self.assertEqual("".join("".join(section.split()) for _, _, section in found), "".join(text.split()))
        firsts = [text[start:].split("\n")[0].strip() for start in self.pieces(text)[0]]
        self.assertEqual(
            firsts,
            [
                "---",
                top,
                "> ## Rappel de la direction",
                "## Matériel",
                "```sh",
                "2. Le disque numéro 2, du jeudi au samedi.",
                "# Ce titre est celui d'un élément de liste",
                "<!--",
                "Le disque reste au coffre [le reste du temps][coffre].",
                "[coffre]: https://exemple.fr/coffre",
                "Lancement",
                "# ligne de commande, sans sa clôture",
                "### En cas de panne",
                "La panne est signalée dans les deux heures.",
                "<details>",
                "#Ceci non plus, faute d'espace, ni \\# ceci.",
                "| étape | durée |",
                "***",
                "# Restauration",
            ],
        )


# What markdown-it-py reads otherwise than CommonMark stays out: link definitions stand before a blank line or
# a heading (it lets them end a paragraph).
TOKENS = (
    "#",
    "##",
    "# Titre",
    "## Autre ##",
    "a",
    "mot",
    "1.",
    "2.",
    "10) ",
    "-",
    "- ",
    "*",
    "+ ",
    ">",
    "> ",
    "   ",
    "\t",
    "```",
    "~~~",
    "```sh",
    "`",
    "===",
    "---",
    "--",
    "<!--",
    "-->",
    "<pre>",
    "</pre>",
    "<div>",
    "</div>",
    "<b>",
    "</b>",
    "<?",
    "?>",
    "\\",
    "é\u00a0",
    "| a\u2028b |",
    " ",
)
LINES = (
    "[a]: /u 't'\n===",
    "[a]: /u\nmot\n===",
    "[a]: </u>\n",
    "> [a]: /u\n",
    "- [a]: /u\n  ===",
    "[a]: /u\n'tit\nre'\nmot\n---",
    "[a\n===",
    "[a]: u(v\n===",
    "    x",
    "",
)


def random_text(rng):
    lines = []
    for _ in range(rng.randint(1, 14)):
        parts = (
            rng.choice(TOKENS) + rng.choice(("", "", " ")) for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4)))
        )
        lines.append(rng.choice(LINES) if rng.random() < 0.3 else "".join(parts))
    return "mot\n\n" + "\n".join(lines)  # no front matter


def expected(text, headings, verbatim):
    """([(path, title, text)], [first character of a piece]) by what markdown-it-py says of a text's lines."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    opened, sections, pieces, body = {first: rest for first, *rest in headings}, [], [], True
    parents, at = [], 0
    while at < len(lines):
        if at in opened:
            end, level, title = opened[at]
            parents = [parent for parent in parents if parent[0] < level]
            named = (tuple(name for _, name in parents if name), " ".join(title.split()))
            parents.append((level, named[1]))
            if body:
                sections.append([at, named])
                pieces.append(at)
            else:
                sections[-1][1] = named
            body, at = False, end
            continue
        if lines[at].strip():
            if not sections:
                sections.append([at, ((), "")])
                pieces.append(at)
            elif body and not lines[at - 1].strip() and at not in verbatim:
                pieces.append(at)
            body = True
        at += 1
    ends = [at for at, _ in sections[1:]] + [len(lines)]
    return (
        [(*named, text[starts[at] : starts[end] - 1].strip()) for (at, named), end in zip(sections, ends)],
        [starts[at] + len(lines[at]) - len(lines[at].lstrip()) for at in pieces],
    )


@unittest.skipUnless(has_markdown_it(), "no markdown-it-py: run tests/engines/build.sh light")
class AgainstMarkdownIt(Sectioned):
    def check(self, texts):
        """How many headings texts have; their sections and pieces must be where markdown-it-py says."""
        said = subprocess.run(
            [PYTHON, ENGINES / "markdown_blocks.py"],
            input=json.dumps(texts),
            stdout=subprocess.PIPE,
            universal_newlines=True,
            check=True,
        ).stdout
        count = 0
        for text, pieces, found, blocks in zip(
            texts, self.pieces(*texts), self.sections(*texts), json.loads(said)
        ):
            sections, firsts = expected(text, *blocks)
            searched = [
                section for section in sections if re.search(r"\w", section[2])
            ]  # what a question can find
            self.assertEqual((found, pieces), (searched, firsts), text)
            count += len(blocks[0])
        return count

    def test_random_texts_of_the_tokens_that_matter(self):
        rng = random.Random(11)
        self.assertGreater(self.check([random_text(rng) for _ in range(2000)]), 800)

    def test_every_markdown_file_at_hand(self):
        paths = [ROOT / "README.md", *sorted((TESTS / "cas").rglob("*.md")), *sorted(ENGINES.rglob("*.md"))]
        texts = [path.read_text(encoding="utf-8") for path in paths]
        texts = [
            re.sub(r"\A---\n(?!\n)", "\n", text) for text in texts
        ]  # markdown-it-py knows no front matter
        self.assertGreater(self.check(texts), 30)


class Titles(Sectioned):
    def test_a_heading_without_body_joins_the_next_one(self):
        self.assertEqual(
            self.sections("# Contrat\n## Préavis\nTrois mois.")[0],
            [(("Contrat",), "Préavis", "# Contrat\n## Préavis\nTrois mois.")],
        )
        self.assertEqual(
            self.sections("# A\n# B\nb\n### C\nc\n## D\nd\n#\n## E\ne\n# F")[0],
            [
                ((), "B", "# A\n# B\nb"),
                (("B",), "C", "### C\nc"),
                (("B",), "D", "## D\nd"),
                ((), "E", "#\n## E\ne"),
                ((), "F", "# F"),
            ],
        )

    def test_with_repeat_title_a_passage_begins_with_its_titles(self):
        text = "# Bail\nEntre nous.\n## Loyer\n900 euros.\n\nRévisés en mai.\n# Fin\n## Préavis\nTrois mois."
        expected_texts = [
            "# Bail\nEntre nous.",
            "Bail\n## Loyer\n900 euros.",
            "Bail\nLoyer (suite)\nRévisés en mai.",
            "# Fin\n## Préavis\nTrois mois.",
        ]
        self.assertEqual(
            [text for _, _, text in self.sections(text, max_chars=35, repeat_title=True)[0]], expected_texts
        )
        whole = self.sections(text, max_chars=44, repeat_title=True)[0]
        self.assertEqual(whole[1], (("Bail",), "Loyer", "Bail\n## Loyer\n900 euros.\n\nRévisés en mai."))
        self.assertEqual(len(whole[1][2]), 41)
        self.assertEqual(len(self.sections(text, max_chars=41, repeat_title=True)[0]), 3)
        self.assertEqual(len(self.sections(text, max_chars=40, repeat_title=True)[0]), 4)  # titles count
        self.assertEqual(
            [text for _, _, text in self.sections(text, max_chars=35)[0]][1:3],
            ["## Loyer\n900 euros.", "Révisés en mai."],
        )

    def test_the_titles_of_a_list_of_sections_are_repeated_too(self):
        sections = [
            {"title": "Loyer", "text": "Il est de 900 euros."},
            {"title": "Préavis de  congé", "text": "Préavis de congé : trois mois."},
            {"text": "Fin."},
        ]
        case = make_case(
            documents=[{"id": "d", "sections": sections}],
            quote="trois mois",
            question="900 euros préavis fin",
            variants=[{"id": "v", "unit": "sections", "max_chars": 1000, "repeat_title": True}],
        )
        report = self.report(case)
        hits = sorted(question(report, "v")["hits_before_budget"], key=lambda hit: hit["passage"])
        self.assertEqual(
            [(hit["text"], hit["heading_words"], hit["words"], hit["paths"]) for hit in hits],
            [
                ("Loyer\nIl est de 900 euros.", 1, 6, [[]]),
                ("Préavis de congé : trois mois.", 0, 6, [[]]),
                ("Fin.", 0, 1, [[]]),
            ],
        )
        self.assertEqual(variant(report, "v")["summary"]["words_indexed"], 13)

    def test_a_beginning_is_found_by_its_title_before_its_continuation(self):
        sections = [
            {
                "title": "Préavis des cadres",
                "text": "Le préavis est de trois mois francs. Il court du lendemain.",
            }
        ]
        case = make_case(
            documents=[{"id": "d", "sections": sections}],
            quote="trois mois francs",
            question="Quel préavis pour les cadres ?",
            settings={"top_k": 1},
            variants=[{"id": "v", "unit": "sections", "max_chars": 60, "repeat_title": True}],
        )
        self.assertTrue(question(self.report(case), "v")["all_required_covered"])


class Doubts(TestCase):
    def warnings(self, documents, **changes):
        warnings = self.report(make_case(documents=documents, facts=[], questions=[], **changes))["warnings"]
        return [warning for warning in warnings if not warning.startswith("aucune question")]

    def test_a_document_without_structure_is_one_section_and_told(self):
        case = make_case(
            documents=[
                {"id": "a", "text": "Le préavis est de trois mois."},
                {"id": "b", "sections": [{"text": "Autre."}]},
            ],
            quote="trois mois",
            variants=[
                {"id": "v", "unit": "sections", "max_chars": 20},
                {"id": "w", "unit": "sections", "max_chars": 99},
            ],
        )
        case["facts"][0]["document"] = "a"
        report = self.report(case)
        self.assertEqual(
            [variant(report, name)["passages"]["a"] for name in "vw"], [[[0, 4], [4, 6]], [[0, 6]]]
        )
        self.assertEqual(
            report["warnings"],
            [
                "variante « {} » : 1 document sans structure (« a »), d'une seule section ; "
                "donnez « sections » ou « structure ».".format(name)
                for name in "vw"
            ],
        )
        self.assertEqual([hit["sections"] for hit in question(report, "w")["hits_before_budget"]], [[]])

    def test_passages_beyond_max_chars_are_counted_and_told(self):
        documents = [
            {"id": "d", "structure": "markdown", "text": "# Un\n" + "mot " * 10 + "\n\nmot\n\n" + "mot " * 9}
        ]
        case = make_case(
            documents=documents,
            facts=[],
            questions=[],
            variants=[
                {"id": "v", "unit": "sections", "max_chars": 35},
                {"id": "t", "unit": "sections", "max_chars": 46, "repeat_title": True},
                {"id": "p", "unit": "paragraphs"},
            ],
        )
        report = self.report(case)
        self.assertEqual([each["summary"]["over_max"] for each in report["variants"]], [1, 0, 0])
        self.assertEqual(
            [warning for warning in report["warnings"] if "max_chars" in warning],
            ["variante « v » : 1 passage au-delà de max_chars (35) : ni clause, ni paragraphe ne se coupe."],
        )
        contexts = self.write('{"question": "q", "context": []}', "m.jsonl")
        run(
            "--case",
            self.write(make_case()),
            "--contexts",
            contexts,
            "--output",
            self.folder / "rapport.json",
        )
        report = json.loads((self.folder / "rapport.json").read_text(encoding="utf-8"))
        self.assertIsNone(variant(report, "m")["summary"]["over_max"])

    def test_a_contract_read_as_markdown_and_the_reverse_are_doubted(self):
        header = "Bail\nRéférence : B-1\nType : bail\nParties : A ; B\nDate de signature : 2024-01-01\n\n"
        contract = header + "Article 1 – Loyer\n900 euros.\n\nArticle 2 – Préavis\nTrois mois.\n"
        markdown = header + "# Loyer\n900 euros.\n\n## Préavis\nTrois mois.\n"
        texts = {
            "c": ("contract", contract),
            "m": ("markdown", markdown),
            "bail": ("markdown", contract),
            "note": ("contract", markdown),
        }
        told = self.warnings(
            [{"id": name, "structure": structure, "text": text} for name, (structure, text) in texts.items()]
        )
        self.assertEqual(
            [warning for warning in told if "la bonne" in warning],
            [
                "document « bail » : 0 titre par la structure « markdown », 2 par « contract » "
                "(« Article 1 – Loyer », « Article 2 – Préavis ») ; est-ce la bonne ?",
                "document « note » : 0 titre par la structure « contract », 2 par « markdown » "
                "(« Loyer », « Préavis ») ; est-ce la bonne ?",
            ],
        )


    def test_markdown_without_heading_or_with_headings_that_lack_a_blank_is_told(self):
        texts = (
            "#Loyer\n900 euros.\n\n```\n\n#note\n```\n\n ##Préavis\nTrois mois.\n\nvoir\n#suite",
            "Le loyer.\n\n- # Loyer",
            "# Loyer",
        )
        documents = [
            {"id": str(number), "structure": "markdown", "text": text} for number, text in enumerate(texts)
        ]
        self.assertEqual(
            self.warnings(documents, variants=[{"id": "v", "unit": "sections", "max_chars": 99}]),
            [
                "document « 0 » : aucun titre reconnu ; un titre s'écrit « # Prix ».",
                "document « 0 » : un # sans espace après ne fait pas un titre (2 fois) : ligne 1, « #Loyer », "
                "ligne 9, « ##Préavis » ; ajoutez l'espace si c'en est un.",
                "document « 1 » : aucun titre reconnu ; un titre s'écrit « # Prix ».",
            ],
        )

    def test_a_title_is_not_repeated_before_itself(self):
        for text, begun in (("**LOYER** : 900 euros.", True), ("Loyers dus.", False)):
            case = make_case(
                documents=[{"id": "d", "sections": [{"title": "Loyer", "text": text}]}],
                facts=[],
                questions=[],
                variants=[{"id": "v", "unit": "sections", "max_chars": 99, "repeat_title": True}],
            )
            row, = self.passages(case)["v"]
            self.assertEqual(row["text"], text if begun else "Loyer\n" + text)


class Twins(TestCase):
    CLAUSE = "Le préavis est de trois mois francs pour tous les cadres"

    def test_identical_documents_are_told_once_and_their_passages_no_more(self):
        documents = [
            {"id": name, "text": text}
            for name, text in (("a", self.CLAUSE), ("b", self.CLAUSE.replace(" ", "\n")), ("c", "Autre."))
        ]
        told = self.report(make_case(documents=documents, facts=[], questions=[]))["warnings"]
        self.assertEqual(
            [warning for warning in told if "même texte" in warning],
            ["documents « a », « b » : même texte ; l'un peut prendre la place de l'autre."],
        )

    def test_identical_passages_of_different_documents_are_told(self):
        documents = [
            {"id": "a", "text": self.CLAUSE + "\n\nUn."},
            {"id": "b", "text": "Deux.\n\n" + self.CLAUSE + "\n\nTrois.\n\nTrois."},
        ]
        told = self.report(make_case(documents=documents, facts=[], questions=[]))["warnings"]
        self.assertEqual(
            [warning for warning in told if "même texte" in warning],
            [
                "variante « paragraphes » : 2 passages de même texte dans des documents différents : « {} » "
                "(« a », « b ») ; une preuve que plusieurs donnent s'écrit « any_of ».".format(self.CLAUSE)
            ],
        )

    def test_passages_without_a_whole_word_are_no_twins(self):
        documents = [{"id": name, "text": name * 30} for name in "ab"]
        case = make_case(documents=documents, facts=[], questions=[], variants=[{"id": "v", "unit": "chars", "size": 9}])
        self.assertNotIn("même texte", " ".join(self.report(case)["warnings"]))

    def test_words_whose_text_was_sent_are_counted(self):
        documents = [
            {"id": "a", "text": self.CLAUSE + "\n\nUn."},
            {"id": "b", "text": "Deux.\n\n" + self.CLAUSE},
        ]
        for budget, duplicates in ((40, 11), (16, 5), (11, 0)):
            case = make_case(
                documents=documents,
                facts=[{"id": "f", "document": "a", "quote": "trois mois"}],
                settings={"budget_words": budget},
            )
            report = self.report(case)
            asked, summary = question(report, "paragraphes"), variant(report, "paragraphes")["summary"]
            self.assertEqual(
                (asked["duplicate_words"], asked["redundant_words"], summary["duplicate_words"]),
                (duplicates, 0, duplicates),
                budget,
            )

    def test_words_sent_twice_from_one_place_are_redundant_and_no_duplicates(self):
        text = "Le préavis est de trois mois " + " ".join("mot{}".format(number) for number in range(60))
        case = make_case(
            text,
            variants=[{"id": "v", "unit": "words", "size": 24, "overlap": 12}],
            question="préavis mot14 mot20",
        )
        asked = question(self.report(case), "v")
        self.assertEqual((asked["redundant_words"] > 0, asked["duplicate_words"]), (True, 0))

    def test_runs_of_eight_words_are_duplicates_and_shorter_ones_are_not(self):
        run_of_eight = "un deux trois quatre cinq six sept huit"
        for common, duplicates in ((run_of_eight, 8), (run_of_eight[:-5], 0)):
            documents = [
                {"id": "a", "text": "préavis premier " + common + " dix"},
                {"id": "b", "text": "préavis second " + common + " onze"},
            ]
            case = make_case(documents=documents, quote="préavis premier", question="préavis")
            case["facts"][0]["document"] = "a"
            self.assertEqual(question(self.report(case), "paragraphes")["duplicate_words"], duplicates)


if __name__ == "__main__":
    unittest.main()
