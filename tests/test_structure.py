"""Structured documents: contracts by article, books by chapter, raw windows, filters, recall by proof."""

import json
import random
import re
import unittest

import chroma
from support import ROOT, TESTS, TestCase, bare, make_case, question, run, variant

CONTRACTS = sorted((TESTS / "cas" / "contrats").glob("*.txt"))
HEADER = "Contrat\nRéférence : C-1\nType : essai\nParties : Orsel ; Altibox\nDate de signature : 2024-01-15\n\n"


def report_of(path, folder):
    code, _, err = run("--case", path, "--output", folder / "rapport.json")
    assert code == 0, err
    return json.loads((folder / "rapport.json").read_text(encoding="utf-8"))


class Structured(TestCase):
    """What a structured text becomes, read through the reports and exports of cases that it alone makes."""

    def hits(self, text, structure, **parameters):
        """The hits of a text cut by sections, in text order; all of them: the question is the text itself."""
        case = make_case(documents=[{"id": "d", "structure": structure, "text": text}], facts=[],
                         questions=[{"id": "q", "text": text, "answerable": False}],
                         settings={"top_k": 1000, "stop_words": []},
                         variants=[{"id": "v", "unit": "sections", "max_chars": 10_000, **parameters}])
        return sorted(question(self.report(case), "v")["hits_before_budget"], key=lambda hit: hit["passage"])

    def contract(self, body):
        """[(title, text)] of the sections of a contract with this body."""
        return [(*hit["sections"], hit["text"]) for hit in self.hits(HEADER + body, "contract")]

    def markdown(self, text):
        return [(*hit["sections"], hit["text"]) for hit in self.hits(text, "markdown")]

    def texts(self, text, structure, *variants):
        """For each variant (its parameters), the texts that a structured text is cut into."""
        case = make_case(documents=[{"id": "d", "structure": structure, "text": text}],
                         facts=[],
                         questions=[],
                         variants=[{"id": str(number), "unit": "sections", **parameters}
                                   for number, parameters in enumerate(variants)])
        return [[row["text"] for row in rows] for rows in self.passages(case).values()]


class Headings(Structured):
    def test_headings_of_contracts(self):
        for line in ("Article 12 – Préavis", "Article 12 - Préavis", "Article 12 — Préavis",
                     "Article 12 : Préavis", "ARTICLE 12 – PRÉAVIS", "Art. 12 - Préavis", "art 12 : préavis",
                     "Article 1er – Objet", "Art. 1er", "ARTICLE PREMIER", "Article premier – Objet",
                     "Article 12 bis :", "Article 12 ter – Suite", "Article 12 quater",
                     "Article 12 quinquies – Fin", "Article 3.2.1 - X", "Article L. 1234-5",
                     "Article L. 1234\u20115 – Préavis", "Article R 12-3 : X", "Annexe II",
                     "Annexe A – Tarifs", "Article 12", "Article 12.", "Article n° 4 – Prix", "Art.4 – Prix",
                     "Art. 4.– Prix", "Article 1er. – Objet", "Annexe n° 3 – Tarifs",
                     "  Article 12 – Préavis  ", "Article IV : X", "Article unique"):
            self.assertEqual(self.contract(line + "\nLe texte."),
                             [(" ".join(line.split()), line.lstrip() + "\nLe texte.")], line)

    def test_sentences_are_no_headings(self):
        for line in ("Article 12 s'applique aux gaines.", "Les articles L. 5421-1 à L. 5422-8 s'appliquent.", "Article 12 et article 13.", "L'article 4 – Prix – est abrogé.",
                     "Articles 12 – Préavis", "Article", "Annexes", "article 4, le préavis est de trois mois."):
            text = "Article 1 – Objet\n" + line
            self.assertEqual(self.contract(text), [("Article 1 – Objet", text)], line)

    def test_a_condition_stays_with_its_duration(self):
        text = "Article 12 – Préavis\nSous réserve de l'article 4, le préavis est de trois mois."
        self.assertEqual(self.contract(text), [("Article 12 – Préavis", text)])
        self.assertEqual(self.texts(HEADER + text, "contract", {"max_chars": 10}), [[text]])

    def test_what_looks_like_a_heading_and_is_none_is_told(self):
        text = HEADER + "Article 3 – Durée\nUn an.\nArticle 12 s'applique aux gaines.\nAnnexe technique\nL'article 3 vaut ici"
        warnings = self.report(make_case(documents=[{"id": "d", "text": text, "structure": "contract"}], quote="Un an"))["warnings"]
        self.assertEqual([warning for warning in warnings if "titre" in warning], [
            "document « d » : ressemble à un titre et n'est pas lu ainsi (1 fois) : ligne 10, « Annexe technique » ; "
            "un titre s'écrit « Article 4 – Prix »."])

    def test_what_the_case_says_wins_over_what_the_contract_says(self):
        text = HEADER + "Article 1 – Objet\nTexte."
        case = make_case(documents=[{
            "id": "d", "structure": "contract", "text": text, "title": "Autre", "type": "bail"}],
                         facts=[],
                         questions=[])
        row = self.passages(case)["paragraphes"][0]
        self.assertEqual((row["title"], row["metadata"]["type"], row["metadata"]["reference"]),
                         ("C-1 Autre Orsel Altibox", "bail", "C-1"))

    def test_a_long_sentence_is_not_taken_for_a_heading(self):
        line = "Article 12 " + "très " * 20 + "long sans point"
        warnings = self.report(
            make_case(documents=[{
                "id": "d", "text": HEADER + "Article 1 – Objet\n" + line, "structure": "contract"}],
                      quote="Objet"))["warnings"]
        self.assertEqual([warning for warning in warnings if "titre" in warning], [])

    def test_dates_and_amounts_are_no_clauses(self):
        text = "Article 12 – Date\n12.1 Le terme est le\n12.03.2024 au plus tard, pour\n12.50 euros et\n12.5 % de taxe.\n12.2 Fin."
        head, tail = text.split("\n12.2 ")
        self.assertEqual(self.texts(HEADER + text, "contract", {"max_chars": 1}), [[head, "12.2 " + tail]])

    def test_line_ends_headings_without_body_and_doubles(self):
        text = "Préambule.\n\nArticle 1 – Objet\n1.1 Un.\nSuite.\n1.2 Deux.\n\nArticle 1 – Objet\n\nArticle 2 – Fin"
        expected = [("", "Préambule."), ("Article 1 – Objet", "Article 1 – Objet\n1.1 Un.\nSuite.\n1.2 Deux."),
                    ("Article 2 – Fin", "Article 1 – Objet\n\nArticle 2 – Fin")]
        self.assertEqual(self.contract(text), expected)
        crlf = self.hits((HEADER + text).replace("\n", "\r\n"), "contract")
        self.assertEqual([(*hit["sections"], hit["text"].replace("\r\n", "\n")) for hit in crlf], expected)

    def test_the_header_becomes_metadata(self):
        text = HEADER + "Article 1 – Objet\nTexte."
        case = make_case(documents=[{"id": "d", "structure": "contract", "text": text}],
                         facts=[],
                         questions=[],
                         variants=[{"id": "v", "unit": "sections", "max_chars": 99}])
        row, = self.passages(case)["v"]
        self.assertEqual(
            row["metadata"], {
                "reference": "C-1", "type": "essai", "parties": ["Orsel", "Altibox"],
                "date_de_signature": "2024-01-15"})
        self.assertEqual(row["text"], "Article 1 – Objet\nTexte.")

    def test_clauses_bear_the_number_of_their_article(self):
        cut = {"max_chars": 1}
        for body, clauses in (("Article 12 – Objet\n12.1 Un.\n13.1 Deux.\n12.2 Trois.", [
                "12.1", "12.2"]), ("Article premier – Objet\n1.1 Un.\n2.1 Deux.\n1.2 Trois.", [
                    "1.1", "1.2"
                ]), ("Annexe A – Tarifs\n1.1 Un.\n2.1 Deux.", [
                    "1.1", "2.1"
                ]), ("Article 12 – Durées\n12.1 Un délai de\n12.5 mois ou de\n12.2 jours, ou\n12.3 Autre.", [
                    "12.1", "12.3"])):
            starts = [
                re.search(r"^\d+\.\d+", text, re.M).group()
                for text in self.texts(HEADER + body, "contract", cut)[0]]
            self.assertEqual(starts, clauses, body)

    def test_a_fence_is_closed_by_one_as_long_and_bare(self):
        for opening, inside, closing in (("````", "```", "````"), ("~~~~", "~~~", "~~~~~"),
                                         ("```", "``` sh", "```"), ("```", "~~~", "```")):
            text = "# Un\n\n{}\n{}\n\n# code\n\n{}\n\n# Deux\n".format(opening, inside, closing)
            self.assertEqual([title for title, _ in self.markdown(text)], ["Un", "Deux"], text)

    def test_seven_signs_make_no_heading_and_lines_that_follow_no_paragraph(self):
        text = "# Un\n\npremière ligne\nseconde ligne\n\n####### Sept"
        self.assertEqual([title for title, _ in self.markdown(text)], ["Un"])
        self.assertEqual(self.texts(text, "markdown", {"max_chars": 1}),
                         [["# Un\n\npremière ligne\nseconde ligne", "####### Sept"]])

    def test_headings_of_markdown(self):
        text = ("avant\n\n# Un\n\ntexte\n\n```sh\n# commentaire\n\n## pas un titre\n```\n#sans espace\n\n## Deux ##\n### Vide\n#\n\nSetext\n======\n\n"
                "~~~\n# a\n```\n# b\n~~~\n   # Trois\n    # code\nfin\n# Un\n")
        self.assertEqual([title for title, _ in self.markdown(text)],
                         ["", "Un", "Setext", "Trois", "Un"])
        self.assertEqual(dict(self.markdown(text))["Trois"], "# Trois\n    # code\nfin")
        self.assertEqual(self.markdown("rien\n\nque du texte"), [("", "rien\n\nque du texte")])


class Pieces(Structured):
    def test_sections_tile_the_document_a_header_apart(self):
        count = 0
        for path in CONTRACTS:
            text = path.read_text(encoding="utf-8")
            sections, = self.texts(text, "contract", {"max_chars": 10_000})
            self.assertEqual("\n\n".join(sections) + "\n", text[text.index("\n\n") + 2:], path.name)
            count += len(sections)
        self.assertEqual(count, 31)

    def test_no_clause_is_ever_cut_and_no_heading_stands_alone(self):
        variants = [{"max_chars": max_chars, "repeat_title": repeat_title}
                    for max_chars in (1, 40, 90, 150, 220, 400, 500, 700) for repeat_title in (False, True)]
        for path in CONTRACTS:
            text = path.read_text(encoding="utf-8")
            clauses = re.findall(r"^\d+\.\d+ .+$", text, re.M)
            for parameters, sent in zip(variants, self.texts(text, "contract", *variants)):
                self.assertEqual([sum(clause in part for part in sent) for clause in clauses],
                                 [1] * len(clauses))
                held = [len(re.findall(r"^\d+\.\d+ ", part, re.M)) for part in sent]
                self.assertTrue(all(held))
                self.assertTrue(
                    all(
                        len(part) <= parameters["max_chars"] or number == 1
                        for part, number in zip(sent, held)))
                if not parameters["repeat_title"]:
                    self.assertEqual(" ".join(sent).split(), text[text.index("\n\n"):].split())

    def test_a_continuation_repeats_its_title(self):
        body = "Article 4 – Prix\n4.1 Un prix ferme de dix euros.\n4.2 Une remise de deux euros."
        self.assertEqual(
            self.texts(HEADER + body, "contract", {"max_chars": 50})[0][1], "4.2 Une remise de deux euros.")
        one, two = self.hits(HEADER + body, "contract", max_chars=60, repeat_title=True)
        self.assertEqual((one["text"], two["text"]),
                         ("Article 4 – Prix\n4.1 Un prix ferme de dix euros.",
                          "Article 4 – Prix (suite)\n4.2 Une remise de deux euros."))
        self.assertEqual(
            (one["heading_words"], two["heading_words"], two["words"], two["end"] - two["start"]),
            (0, 5, 11, 6))
        # the heading counts in the limit: 24 characters, a line break, then 29
        self.assertEqual(len(two["text"]), 54)
        cuts = self.texts(HEADER + body + "\n4.3 X.", "contract",
                          *({"max_chars": limit, "repeat_title": True} for limit in (60, 61)))
        self.assertEqual([len(sent) for sent in cuts], [3, 2])

    def test_a_heading_proves_nothing_and_counts_in_the_budget(self):
        body = "Article 4 – Prix\n4.1 " + "Un prix ferme. " * 8 + "\n4.2 Une remise de deux euros."
        case = make_case(documents=[{"id": "d", "structure": "contract", "text": HEADER + body}],
                         facts=[{"id": "f", "document": "d", "quote": "Une remise de deux euros"}, {"id": "g", "document": "d", "quote": "Article 4 – Prix"}],
                         questions=[{"id": "q", "text": "Quelle remise ?", "required_facts": ["f", "g"]}],
                         variants=[{"id": "v", "unit": "sections", "max_chars": 60, "repeat_title": True}])
        asked = question(self.report(dict(case, settings={"budget_words": 10})), "v")
        hit, context = asked["hits_before_budget"][0], asked["context"][0]
        self.assertEqual([hit[key] for key in ("words", "heading_words", "kept_words", "start", "end", "sections")], [11, 5, 10, 46, 52, ["Article 4 – Prix"]])
        self.assertEqual([context[key] for key in ("words", "heading_words", "start", "end", "text")],
                         [10, 5, 46, 51, "Article 4 – Prix (suite)\n4.2 Une remise de deux"])
        self.assertEqual(bare(asked["facts"][0]["loss"]), {
            "stage": "cut_by_budget", "missing": [[51, 52]], "passage": "d#0002", "rank": 1, "words_over": 1})
        self.assertEqual(asked["facts"][1]["words_covered"], 0)
        self.assertEqual(question(self.report(dict(case, settings={"budget_words": 3})), "v")["context"][0]["heading_words"], 3)
        self.assertTrue(question(self.report(dict(case, settings={"budget_words": 11})), "v")["facts"][0]["covered"])

    def test_a_fact_of_the_header_is_indexed_by_other_units_only(self):
        case = make_case(documents=[{"id": "d", "structure": "contract", "text": HEADER + "Article 1 – Objet\nUn essai."}],
                         facts=[{"id": "f", "document": "d", "quote": "Date de signature : 2024-01-15"}], question="Quel essai ?",
                         variants=[{"id": "s", "unit": "sections", "max_chars": 500}, {"id": "w", "unit": "words", "size": 50}])
        report = self.report(case)
        self.assertEqual(bare(question(report, "s")["facts"][0]["loss"]), {"stage": "not_indexed", "missing": [[12, 17]]})
        self.assertTrue(question(report, "w")["all_required_covered"])
        case["questions"][0]["filters"] = {"type": "autre"}  # the document itself is removed, whatever is indexed of it
        self.assertEqual(
            bare(question(self.report(case), "s")["facts"][0]["loss"]),
            {"stage": "filtered_out", "filter": {"type": {"wanted": "autre", "found": "essai"}}})

    def test_markdown_is_cut_between_paragraphs_and_kept_whole_in_fences(self):
        text = "# Un\n\npremier paragraphe\n\n```\ncode\n\nencore\n```\n\ndernier"
        self.assertEqual(self.texts(text, "markdown", {"max_chars": 1}),
                         [["# Un\n\npremier paragraphe", "```\ncode\n\nencore\n```", "dernier"]])

    def test_markdown_sections_tile_real_texts(self):
        texts = [(ROOT / "README.md").read_text(encoding="utf-8")]
        if chroma.FOLDER.is_dir():
            texts += [path.read_text(encoding="utf-8") for path in (chroma.FOLDER / "corpora").glob("*.md")]
        for text in texts:
            for sent in self.texts(text, "markdown", {"max_chars": 1}, {"max_chars": 800}):
                self.assertEqual(" ".join(sent).split(), text.split())
        if len(texts) == 1:
            self.skipTest("real data absent: {}".format(chroma.FOLDER.name))

    def test_plain_sections_are_cut_at_words(self):
        case = make_case(documents=[{"id": "d", "sections": [{"title": "Un", "text": "aaa bbb ccc"}, {"title": "Deux", "text": "d" * 20 + " ee"}]}],
                         facts=[], questions=[], variants=[{"id": "v", "unit": "sections", "max_chars": 7}])
        self.assertEqual(variant(self.report(case), "v")["passages"], {"d": [[0, 2], [2, 3], [3, 4], [4, 5]]})


class Chars(TestCase):
    def test_raw_windows_are_slices(self):
        draw = random.Random(1)
        cut_words = truncated = 0
        for _ in range(20):
            texts = {
                "d{}".format(number): "".join(draw.choice("ab  \né")
                                              for _ in range(draw.randint(1, 80))) + "x"
                for number in range(5)}
            sizes = {
                "v{}".format(number): (size, draw.randrange(size))
                for number, size in enumerate(draw.sample(range(1, 21), 4))}
            case = make_case(documents=[{"id": id, "text": text} for id, text in texts.items()],
                             facts=[],
                             questions=[{"id": "q", "text": " ".join(texts.values()), "answerable": False}],
                             settings={"top_k": 1000, "budget_words": draw.randint(1, 99), "stop_words": []},
                             variants=[{"id": id, "unit": "chars", "size": size, "overlap": overlap}
                                       for id, (size, overlap) in sizes.items()])
            exported, report = self.passages(case), self.report(case)
            for id, (size, overlap) in sizes.items():
                rows = {}
                for row in exported[id]:
                    rows.setdefault(row["document"], []).append(row)
                for document, text in texts.items():
                    starts = range(0, max(len(text) - overlap, 1), size - overlap)
                    self.assertEqual([row["text"] for row in rows[document]],
                                     [text[start:start + size] for start in starts])
                    words = [word.span() for word in re.finditer(r"\S+", text)]
                    for start, row in zip(starts, rows[document]):
                        self.assertEqual((row["start_char"], row["end_char"]),
                                         (start, min(start + size, len(text))))
                        inside = [
                            number for number, (first, last) in enumerate(words)
                            if start <= first and last <= start + size]
                        self.assertEqual(list(range(row["start"], row["end"])), inside)
                        cut_words += len(row["text"].split()) > len(inside)
                asked = question(report, id)
                sent = {part["passage"]: part["text"].split() for part in asked["context"]}
                for hit in asked["hits_before_budget"]:
                    self.assertEqual(hit["words"], len(hit["text"].split()))
                    self.assertEqual(sent.get(hit["passage"], []), hit["text"].split()[:hit["kept_words"]])
                    truncated += 0 < hit["kept_words"] < hit["words"]
        self.assertGreater(cut_words, 500)
        self.assertGreater(truncated, 20)

    def test_half_words_are_sent_and_prove_nothing(self):
        case = make_case("Le préavis est de six semaines.", "six semaines", variants=[{"id": "v", "unit": "chars", "size": 22}], settings={"top_k": 2})
        asked = question(self.report(case), "v")
        self.assertEqual([(hit["text"], hit["start"], hit["end"], hit["words"]) for hit in asked["hits_before_budget"]], [("Le préavis est de six ", 0, 5, 5)])
        case["variants"][0]["size"] = 25
        asked = question(self.report(case), "v")
        self.assertEqual([(hit["text"], hit["start"], hit["end"], hit["words"]) for hit in asked["hits_before_budget"]], [("Le préavis est de six sem", 0, 5, 6)])
        self.assertEqual(bare(asked["facts"][0]["loss"]), {"stage": "split_at_boundary", "missing": [[5, 6]],
                                                     "pieces": [{"passage": "d#0001", "rank": 1}, {"passage": "d#0002", "rank": None}]})
        self.assertEqual((asked["words_sent"], asked["redundant_words"]), (6, 0))

    def test_two_halves_of_a_word_do_not_make_it(self):
        case = make_case("Un préavis de six semaines.", "six semaines", question="préavis aines", variants=[{"id": "v", "unit": "chars", "size": 21}])
        asked = question(self.report(case), "v")
        self.assertEqual(sorted(each["text"] for each in asked["context"]), ["Un préavis de six sem", "aines."])
        self.assertEqual((asked["words_sent"], asked["facts"][0]["words_covered"], asked["facts"][0]["loss"]["stage"]), (6, 1, "split_at_boundary"))


class Filters(TestCase):
    DOCUMENTS = [{"id": "a", "text": "Préavis un.", "pays": ["FR", "BE"], "annee": 2022, "date": "2022-05-01", "actif": True},
                 {"id": "b", "text": "Préavis deux.", "pays": "FR", "annee": 2024, "date": "2024-05-01", "actif": False},
                 {"id": "c", "text": "Préavis trois.", "pays": "LU", "annee": 2023.5}]

    def admitted(self, own, **case):
        asked = question(self.report(make_case(documents=self.DOCUMENTS, facts=[], questions=[
            {"id": "q", "text": "Préavis ?", "answerable": False, "filters": own}], **case)), "fixe_48_0")
        self.assertEqual((asked["filters"], asked["no_hits"]), (own, None if asked["hits_before_budget"] else "no_document"))
        return "".join(sorted(hit["document"] for hit in asked["hits_before_budget"]))

    def test_every_condition_worked_by_hand(self):
        for filters, expected in (({"pays": "FR"}, "ab"), ({"pays": "BE"}, "a"), ({"pays": ["FR", "BE"]}, "a"), ({"pays": {"in": ["BE", "LU"]}}, "ac"), ({"pays": "DE"}, ""),
                                  ({"annee": {"gte": 2023}}, "bc"), ({"annee": {"lte": 2023.5}}, "ac"), ({"annee": {"gte": 2022, "lte": 2023}}, "a"), ({"annee": 2024.0}, "b"),
                                  ({"date": {"gte": "2023"}}, "b"), ({"date": {"lte": "2022-12-31"}}, "a"), ({"actif": True}, "a"), ({"actif": False}, "b"),
                                  ({"pays": "FR", "annee": {"gte": 2023}}, "b"), ({"annee": {"in": [2022, 2024], "gte": 2023}}, "b")):
            self.assertEqual(self.admitted(filters), expected, filters)
        self.assertEqual(self.admitted({"annee": {"gte": 2023}}, filters={"pays": "FR"}), "b")
        self.assertEqual(self.admitted({"annee": {"gte": 2023}}, filters={"pays": "BE"}), "")

    def test_against_a_brute_force_filter(self):
        draw = random.Random(7)
        checked = 0

        def some_filters():
            filters = {}
            if draw.random() < 0.7:
                filters["k"] = draw.choice(["x", "z", {"in": ["y", "z"]}])
            if draw.random() < 0.7:
                filters["n"] = draw.choice([2, {"gte": 2}, {"lte": 3, "gte": 2}, {"in": [1, 5]}])
            return filters

        def keeps(document, filters):
            for key, wanted in filters.items():
                if key not in document:
                    return False
                values = document[key] if isinstance(document[key], list) else [document[key]]
                if not isinstance(wanted, dict):
                    wanted = {"in": [wanted]}
                if ("in" in wanted and not set(values) & set(wanted["in"])
                        or "gte" in wanted and not max(values) >= wanted["gte"]
                        or "lte" in wanted and not min(values) <= wanted["lte"]):
                    return False
            return True
        for _ in range(30):
            documents = [
                dict({"id": "d{}".format(n), "text": "mot {}".format(n)}, **{
                    key: value for key, value in (("k", draw.choice(["x", "y", ["x", "z"], ["y"]])),
                                                  ("n", draw.randint(1, 5))) if draw.random() < 0.8})
                for n in range(6)]
            documents[0].update(k="x", n=3)
            asked = [{
                "id": "q{}".format(number), "text": "mot", "answerable": False, "filters": some_filters()}
                     for number in range(10)]
            report = self.report(
                make_case(documents=documents, facts=[], settings={"top_k": 10}, questions=asked))
            for one in asked:
                expected = [document["id"] for document in documents if keeps(document, one["filters"])]
                hits = question(report, "fixe_48_0", one["id"])["hits_before_budget"]
                self.assertEqual(sorted(hit["document"] for hit in hits), expected)
                checked += 0 < len(expected) < 6
        self.assertGreater(checked, 100)

    def test_a_section_inherits_and_a_passage_passes_when_all_its_sections_do(self):
        sections = [{"title": "Un", "text": "Le préavis un", "livre": "A"}, {"title": "Deux", "text": "le préavis deux", "livre": "B", "pays": "BE"}]
        case = make_case(documents=[{"id": "d", "sections": sections, "pays": "FR"}, {"id": "e", "text": "Préavis hors section.", "livre": "A", "pays": "FR"}],
                         facts=[{"id": "f", "document": "d", "quote": "préavis deux"}],
                         questions=[{"id": "q", "text": "Préavis ?", "required_facts": ["f"], "filters": {"livre": "A"}}],
                         variants=[{"id": "s", "unit": "sections", "max_chars": 99}, {"id": "w", "unit": "words", "size": 4}])
        del case["documents"][1]
        report = self.report(case)
        self.assertEqual([hit["sections"] for hit in question(report, "s")["hits_before_budget"]], [["Un"]])
        self.assertEqual(question(report, "w")["no_hits"], "no_document")  # [0, 4[ is over both books, [4, 6[ is of the other
        for each in "sw":
            self.assertEqual(
                bare(question(report, each)["facts"][0]["loss"]),
                {"stage": "filtered_out", "filter": {"livre": {"wanted": "A", "found": "B"}}})
        self.assertEqual([variant(report, each)["summary"]["mixed_passages"] for each in "sw"], [0, 1])
        self.assertEqual(variant(report, "w")["summary"]["mixed_by"], {"livre": 1, "pays": 1})
        case["questions"][0]["filters"] = {"pays": "BE"}
        self.assertEqual([question(self.report(case), each)["all_required_covered"] for each in "sw"], [True, True])

    def test_what_an_admitted_passage_holds_is_not_filtered_out(self):
        # words 2 and 3 stand in [0, 4[, which is admitted, and in [2, 6[, which is not: it is over both books
        sections = [{"title": "Un", "text": "un deux trois quatre", "livre": "A"}, {
            "title": "Deux", "text": "cinq six", "livre": "B"}]
        case = make_case(documents=[{"id": "d", "sections": sections}], quote="trois quatre",
                         variants=[{"id": "v", "unit": "words", "size": 4, "overlap": 2}])
        case["questions"][0]["filters"] = {"livre": "A"}
        self.assertEqual(bare(question(self.report(case), "v")["facts"][0]["loss"]),
                         {"stage": "not_matched", "missing": [[2, 4]], "passage": "d#0001"})
        case["facts"][0]["quote"] = "quatre cinq"
        self.assertEqual(
            bare(question(self.report(case), "v")["facts"][0]["loss"]),
            {"stage": "filtered_out", "filter": {"livre": {"wanted": "A", "found": "B"}}})

    def test_a_key_that_sections_inherit_mixes_nothing(self):
        sections = [{"title": "Un", "text": "un", "livre": "A"}, {
            "title": "Deux", "text": "deux", "livre": "B"}]
        case = make_case(documents=[{"id": "d", "sections": sections, "pays": "FR"}], facts=[], questions=[],
                         variants=[{"id": "v", "unit": "words", "size": 2}])
        self.assertEqual(variant(self.report(case), "v")["summary"]["mixed_by"], {"livre": 1})

    def test_a_variant_may_ignore_the_filters_of_questions(self):
        case = make_case(documents=self.DOCUMENTS, facts=[], questions=[
            {"id": "q", "text": "Préavis ?", "answerable": False, "filters": {"pays": "DE"}, "per_document": 1}],
            variants=[{"id": "v", "unit": "paragraphs", "question_filters": False}, {"id": "w", "unit": "paragraphs"}])
        report = self.report(case)
        self.assertEqual([variant(report, each)["question_filters"] for each in "vw"], [False, True])
        self.assertEqual([question(report, each)["no_hits"] for each in "vw"], [None, "no_document"])

    def test_per_document_gives_the_best_of_each_whatever_top_k(self):
        documents = [{"id": "a", "text": "préavis préavis\n\npréavis\n\nautre"}, {"id": "b", "text": "rien\n\npréavis long de beaucoup de mots"}, {"id": "c", "text": "rien"}]
        case = make_case(documents=documents, facts=[{"id": "f", "document": "b", "quote": "préavis long"}], settings={"top_k": 2}, questions=[
            {"id": "q", "text": "Préavis ?", "required_facts": ["f"], "per_document": 2}], variants=[{"id": "v", "unit": "paragraphs"}])
        report = self.report(case)
        self.assertEqual([hit["passage"] for hit in question(report, "v")["hits_before_budget"]], ["a#0001", "a#0002", "b#0002"])
        self.assertEqual(variant(report, "v")["summary"]["recall_at"], [1.0, 1.0])  # all its hits count at every k
        del case["questions"][0]["per_document"]
        self.assertEqual(variant(self.report(case), "v")["summary"]["recall_at"], [0.0, 0.0])


class Facts(TestCase):
    def test_any_alternative_proves(self):
        documents = [{"id": "a", "text": "Règle : le préavis est de trois mois."}, {"id": "b", "text": "Rappel : préavis de trois mois, sans exception."}]
        alternatives = [{"document": "a", "quote": "préavis est de trois mois"}, {"document": "b", "quote": "préavis de trois mois"}]
        case = make_case(documents=documents, facts=[{"id": "f", "any_of": alternatives}], settings={"top_k": 1}, question="Rappel préavis")
        report = self.report(case)
        fact = question(report, "paragraphes")["facts"][0]
        self.assertEqual([fact[key] for key in ("document", "covered", "covered_by", "loss")], ["b", True, 1, None])
        self.assertEqual([alternative["loss"] and alternative["loss"]["stage"] for alternative in fact["alternatives"]], ["ranked_too_low", None])
        self.assertEqual([variant(report, "paragraphes")["summary"][key] for key in ("facts_whole", "recall_at", "facts_covered")], [1, [1.0], 1])

    def test_the_largest_share_speaks_for_a_lost_fact(self):
        documents = [{"id": "a", "text": "Un préavis"}, {"id": "b", "text": "préavis de trois mois francs"}]
        alternatives = [{"document": "a", "quote": "Un préavis"}, {"document": "b", "quote": "trois mois francs"}]
        case = make_case(documents=documents, facts=[{"id": "f", "any_of": alternatives}], question="préavis", settings={"top_k": 1, "budget_words": 1})
        fact = question(self.report(case), "paragraphes")["facts"][0]
        self.assertEqual([fact[key] for key in ("document", "words_covered", "covered_by")], ["a", 1, None])
        self.assertEqual(fact["loss"]["stage"], "cut_by_budget")

    def test_a_share_is_not_a_number_of_words(self):
        # of a, 1 word of 2 is missing; of b, 2 of 6: b speaks, though it misses more
        alternatives = [{"document": "a", "quote": "délai long"}, {"document": "b", "quote": "un deux trois quatre cinq six"}]
        case = make_case(documents=[{"id": "a", "text": "délai long"}, {"id": "b", "text": "un deux trois quatre cinq six"}],
                         facts=[{"id": "f", "any_of": alternatives}], question="délai un", settings={"budget_words": 5, "top_k": 2, "stop_words": []})
        report = self.report(case)
        hits = question(report, "paragraphes")["hits_before_budget"]
        fact = question(report, "paragraphes")["facts"][0]
        left = {each["document"]: each["words"] - each["words_covered"] for each in fact["alternatives"]}
        self.assertEqual(sum(hit["kept_words"] for hit in hits), 5)
        self.assertEqual((left, fact["covered_by"]), ({"a": 0, "b": 3}, 0))
        sent = [{"document": "a", "start": 0, "end": 1}, {"document": "b", "start": 0, "end": 4}]
        contexts = self.write(json.dumps({"question": "q", "context": sent}), "moteur.jsonl")
        self.assertEqual(
            run("--case", self.write(case), "--contexts", contexts, "--output",
                self.folder / "rapport.json")[0], 0)
        fact = question(json.loads((self.folder / "rapport.json").read_text(encoding="utf-8")),
                        "moteur")["facts"][0]
        self.assertEqual((fact["document"], fact["words_covered"], fact["words"]), ("b", 4, 6))

    def test_the_row_of_a_table_does_not_prove_what_its_header_says(self):
        table = "| zone | plafond |\n| --- | --- |\n" + "\n".join("| ville{} | {} |".format(number, number) for number in range(40))
        case = make_case(table, facts=[{"id": "tete", "document": "d", "quote": "| zone | plafond |"}, {"id": "ligne", "document": "d", "quote": "| ville30 | 30 |"}],
                         questions=[{"id": "q", "text": "ville30", "required_facts": ["tete", "ligne"]}], settings={"top_k": 1})
        asked = question(self.report(case), "fixe_48_0")
        self.assertEqual([fact["covered"] for fact in asked["facts"]], [False, True])
        self.assertFalse(asked["all_required_covered"])

    def test_a_footer_inside_a_quote_takes_two_quotes(self):
        text = "Le préavis est de\f\nPage 3 sur 12\n\ntrois mois francs."
        self.assertIn("« Page 3 sur 12 » manque à la citation", self.refused(make_case(text, "préavis est de trois mois francs"))[0])
        case = make_case(text, facts=[{"id": "f", "document": "d", "quote": "Le préavis est de"}, {"id": "g", "document": "d", "quote": "trois mois francs"}],
                         questions=[{"id": "q", "text": "Préavis ?", "required_facts": ["f", "g"]}])
        self.assertTrue(question(self.report(case), "fixe_48_0")["all_required_covered"])

    def test_titles_are_searched_and_never_sent(self):
        case = make_case(documents=[{"id": "d", "title": "Contrat Boréal", "text": "Trois mois."}], quote="Trois mois", question="Boréal ?")
        case["facts"][0]["quote"] = "Trois mois"
        self.assertEqual(question(self.report(case), "fixe_48_0")["no_hits"], "no_match")
        asked = question(self.report(dict(case, settings={"index_titles": True})), "fixe_48_0")
        self.assertEqual([(hit["text"], hit["words"]) for hit in asked["hits_before_budget"]], [("Trois mois.", 2)])
        self.assertEqual((asked["terms"], asked["words_sent"]), ([{"term": "boréal", "passages": 1}], 2))


class Recall(TestCase):
    def test_against_brute_force(self):
        """For each report at hand: one hit, in the right document, that holds every word of the fact."""
        for path in (ROOT / "cas_fr.json", TESTS / "cas" / "contrats" / "contrats.json", TESTS / "cas" / "mediatheque.json"):
            report = report_of(path, self.folder)
            top_k = report["settings"]["top_k"]
            for each in report["variants"]:
                shares = {k: [] for k in range(1, top_k + 1)}
                for asked in each["questions"]:
                    for k in shares if asked["answerable"] else ():
                        hits = [hit for hit in asked["hits_before_budget"] if hit["rank"] <= k or asked["per_document"] and each["question_filters"]]
                        whole = [any(hit["document"] == fact["document"] and set(range(fact["start"], fact["end"])) <= set(range(hit["start"], hit["end"]))
                                     for hit in hits) for fact in asked["facts"]]
                        shares[k].append(sum(whole) / len(whole))
                self.assertEqual(each["summary"]["recall_at"], [round(sum(values) / len(values), 9) for values in shares.values()])

    def test_contracts_by_article(self):
        report = report_of(TESTS / "cas" / "contrats" / "contrats.json", self.folder)
        size, structure, filtered = ("taille_400_60", "structure_500", "structure_500_filtres")
        self.assertEqual([variant(report, each)["summary"]["passages_indexed"] for each in (size, structure, filtered)], [18, 32, 32])
        recall = {each: [variant(report, each)["summary"]["recall_at"][k - 1] for k in (1, 2, 4)] for each in (size, structure, filtered)}
        self.assertEqual(recall[filtered], [1.0, 1.0, 1.0])
        self.assertLess(recall[structure][0], 1.0)
        self.assertEqual(recall[structure][1:], [1.0, 1.0])
        self.assertLess(max(recall[size]), 1.0)
        notice = {each: question(report, each, "q_preavis_clairnet") for each in (size, structure)}
        self.assertFalse(any("moyennant un préavis de six semaines" in hit["text"] and hit["document"] == "nettoyage"
                             for hit in notice[size]["hits_before_budget"] if hit["start"] <= 114 and hit["end"] >= 128))
        self.assertEqual([variant(report, each)["summary"]["facts_whole"] for each in (size, structure)], [9, 10])
        self.assertEqual(notice[structure]["hits_before_budget"][1]["sections"], ["Art. 4 - Résiliation"])
        self.assertEqual(question(report, filtered, "q_verdure")["no_hits"], "no_document")
        trap = question(report, filtered, "q_penalite_clairnet")
        self.assertEqual({hit["document"] for hit in trap["hits_before_budget"]}, {"nettoyage"})
        self.assertEqual(question(report, structure, "q_penalite_clairnet")["hits_before_budget"][0]["document"], "ascenseurs")
        self.assertEqual([question(report, filtered, each)["per_document"] for each in ("q_preavis_compares", "q_prix_compares")], [1, 1])
        self.assertEqual([sum(asked["answerable"] for asked in each["questions"]) for each in report["variants"]], [8, 8, 8])

    def test_books_by_chapter(self):
        path = TESTS / "cas" / "mediatheque.json"
        sections = json.loads(path.read_text(encoding="utf-8"))["documents"][0]["sections"]
        self.assertTrue(all(292 <= len(section["text"]) <= 343 and 46 <= len(section["text"].split()) <= 63 for section in sections))
        report = report_of(path, self.folder)
        summaries = {each["id"]: each["summary"] for each in report["variants"]}
        self.assertEqual([summaries[each]["passages_indexed"] for each in ("naif_180_40", "structure_220")], [20, 18])
        self.assertEqual([summaries[each]["mixed_by"]["book"] for each in ("naif_180_40", "structure_220")], [2, 0])
        self.assertEqual([summaries["naif_180_{}".format(overlap)]["mixed_passages"] for overlap in (0, 20, 40, 80)], [7, 9, 9, 15])
        self.assertEqual(summaries["structure_220"]["mixed_passages"], 0)
        first = {asked["id"]: asked["hits_before_budget"][0]["sections"] for asked in variant(report, "structure_220")["questions"]}
        for id, book, chapter in (("q_pari", "Le Tour du monde en quatre-vingts jours", 1), ("q_calendrier", "Le Tour du monde en quatre-vingts jours", 3),
                                  ("q_greve", "Germinal", 2), ("q_cuvelage", "Germinal", 3), ("q_pieuvre", "Les Travailleurs de la mer", 2)):
            self.assertEqual([section["title"] for section in sections if (section["book"], section["chapter"]) == (book, chapter)], first[id])
        promise = question(report, "structure_220", "q_promesse")
        self.assertTrue(all(title.startswith("Les Travailleurs de la mer") for hit in promise["hits_before_budget"] for title in hit["sections"]))


if __name__ == "__main__":
    unittest.main()
