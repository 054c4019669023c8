"""Damaged files given to the doors: each is refused in a sentence that names the place, or judged rightly."""

import json
import unittest

from support import TestCase, make_case, question, run, variant


class Records(TestCase):
    """What one file of contexts is refused for, or judged to be."""

    def contexts(self, case, data, name="m.jsonl"):
        if not isinstance(data, (str, bytes)):
            data = "\n".join(json.dumps(line, ensure_ascii=False) for line in data)
        path = self.write(data, name)
        return run("--case", self.write(case), "--contexts", path, "--output", self.folder / "r.json")

    def judged(self, case, data, name="m.jsonl"):
        code, _, err = self.contexts(case, data, name)
        self.assertEqual(code, 0, err)
        return json.loads((self.folder / "r.json").read_text(encoding="utf-8"))

    def told(self, case, data, name="m.jsonl"):
        code, out, err = self.contexts(case, data, name)
        self.assertEqual((code, out), (2, ""), err)
        return [line.replace(name + " : ", "", 1) for line in err.splitlines()]

    def test_positions_in_words_are_never_explained_in_bytes(self):
        """In bytes, 3 to 9 of « é abc » would be « abc »: words are no bytes."""
        case = make_case("é abc", "abc")
        record = {"document": "d", "start": 3, "end": 9, "text": "abc"}
        self.assertEqual(self.told(case, [{"question": "q", "context": [record]}]), [
            "ligne 1 : context[0] : positions 3 à 9 hors du document « d », qui compte 2 mots."])
        record = {"document": "d", "start": 0, "end": 1, "text": "abc"}
        self.assertEqual(self.told(case, [{"question": "q", "context": [record]}]), [
            "ligne 1 : context[0] : le texte « abc » n'est pas celui des positions 0 à 1 de « d » : « é »."])

    def test_a_broken_list_names_the_line_of_the_file(self):
        for text, line in (('[\n\n\n{"question": "q",\n\n"context" []}]', 6),
                           ('\n \n[\n\n{"question": "q" "context": []}]', 5),
                           ('\ufeff[\r\n\r\n{"question": "q",\r\n\r\n"context" []}]', 5),
                           ('\ufeff\n\n[\n\n{"question" "q"}]', 5)):
            sentence, = self.told(make_case(), text)
            self.assertTrue(sentence.startswith("ligne {}, colonne ".format(line)), (text, sentence))
        sentence, = self.told(make_case(), b'[\n\n\n{"question": "\xe9"}]')
        self.assertTrue(sentence.startswith("octet 18 (0xE9, ligne 4)"), sentence)

    def test_lines_after_blank_ones_and_a_bom_keep_their_numbers(self):
        line = '{"question": "z", "context": []}'
        for text in ("\ufeff\n\n" + line, "\r\n\r\n" + line, "\n \t\n" + line + "\n\n"):
            self.assertEqual(self.told(make_case(), text), [
                "ligne 3 : question « z » inconnue. Possibles : q."])
        self.assertEqual(self.told(make_case(), "\ufeff\n\nz Q0 paragraphes/d#0001 1 1 x"), [
            "ligne 3 : question « z » inconnue. Possibles : q."])

    def test_a_text_that_two_questions_have_is_refused(self):
        case = make_case()
        case["questions"].append(dict(case["questions"][0], id="r", text="Quel  préavis ?"))
        lines = [{"user_input": "Quel préavis ?", "retrieved_contexts": []}, {"question": "r", "context": []}]
        self.assertEqual(self.told(case, lines), [
            "ligne 1 : « Quel préavis ? » est le nom commun de « q » et « r » ; donnez l'identifiant."])
        case["questions"][1]["id"] = "Quel préavis ?"  # an id comes first
        lines[1]["question"] = "q"
        self.assertIsNotNone(question(self.judged(case, lines), "m", "Quel préavis ?"))

    def test_a_file_that_two_documents_share_is_refused(self):
        (self.folder / "un.txt").write_text("Le préavis est de trois mois.", encoding="utf-8")
        case = make_case(documents=[{"id": "d", "file": "un.txt"}, {"id": "e", "file": "un.txt"}])
        lines = [{"question": "q", "context": [{"document": "un.txt", "text": "trois mois"}]}]
        self.assertEqual(self.told(case, lines), [
            "ligne 1 : context[0] : « un.txt » est le nom commun de « d » et « e » ; donnez l'identifiant."])
        case["documents"][1] = {"id": "un.txt", "text": "Deux."}
        self.assertEqual(self.told(case, lines), [  # a document is found by its id first
            "ligne 1 : context[0] : le texte « trois mois » n'est pas dans « un.txt », mais dans « d » ; "
            "corrigez son document."])

    def test_one_passage_with_and_without_heading_counts_for_both(self):
        case = make_case()
        for first, second in ((0, 1), (1, 0)):
            records = [{"document": "d", "text": "trois mois"}]
            records.append(dict(records[0], heading="Un titre long"))
            line = {"question": "q", "context": [records[first], records[second]]}
            sent = question(self.judged(case, [line]), "m")
            self.assertEqual([part["end"] - part["start"] for part in sent["context"]], [1, 1])

    def test_the_variant_of_a_passage_is_the_longest_that_its_name_begins_with(self):
        case = make_case(variants=[{"id": "m", "unit": "paragraphs"},
                                   {"id": "m/5", "unit": "words", "size": 5}])
        line = {"question": "q", "context": [{"passage": "m/5/d#0002"}]}
        sent = question(self.judged(case, [line], "x.jsonl"), "x")
        self.assertEqual((sent["context"][0]["start"], sent["context"][0]["passage"]), (5, "m/5/d#0002"))

    def test_a_variant_may_be_named_with_braces(self):
        case = make_case(variants=[{"id": "{x}", "unit": "paragraphs"}])
        self.assertEqual(self.told(case, [{"question": "q", "context": [{"passage": "{x}/{d}"}]}]), [
            "ligne 1 : context[0] : passage « {d} » inconnu de la variante « {x} ». Possibles : d#0001."])

    def test_each_line_of_a_ranking_is_looked_at_once(self):
        """Three thousand passages of one question: what was seen is found by its name."""
        case = make_case("mot " * 3000 + "trois mois", variants=[{"id": "v", "unit": "words", "size": 1}])
        rows = ["q Q0 v/d#{:04} {} {} x".format(number, number, -number) for number in range(1, 3003)]
        sent = question(self.judged(case, "\n".join(rows), "m.trec"), "m")
        self.assertEqual([hit["passage"] for hit in sent["hits_before_budget"]],
                         ["v/d#0001", "v/d#0002", "v/d#0003"])
        self.assertEqual(self.told(case, "\n".join(rows + rows[-1:]), "m.trec"), [
            "ligne 3003 : passage « v/d#3002 » donné deux fois pour « q » ; gardez-en un."])

    def test_half_a_character_is_told_and_nothing_breaks_on_it(self):
        record = {"document": "d", "start_char": 3, "text": "\ud800"}
        self.assertEqual(self.told(make_case(), json.dumps({"question": "q", "context": [record]})), [
            "ligne 1 : context[0].text : moitié de paire UTF-16 isolée U+D800 au caractère 0 "
            "(compté depuis 0) ; supprimez ce caractère.",
            "ligne 1 : context[0] : le texte « \\xd800 » n'est pas celui des positions 3 à 4 de « d » : "
            "« p »."])

    def test_many_faults_of_many_names_are_explained_no_more_than_they_are_shown(self):
        case = make_case("mot " * 2000 + "trois mois", variants=[{"id": "v", "unit": "words", "size": 1}])
        rows = ["q Q0 v/x#{:05} {} {} x".format(number, number, -number) for number in range(1, 2001)]
        told = self.told(case, "\n".join(rows), "m.trec")
        self.assertEqual(told, [
            "ligne 1 : passage « x#00001 » inconnu de la variante « v ». Vouliez-vous dire « d#0001 » ? "
            "De même en 1999 autres endroits : ligne 2, ligne 3, ligne 4, …."])

    def test_equal_ranks_contradict_nothing(self):
        case = make_case("Un.\n\nLe préavis est de trois mois.", settings={"top_k": 1})
        rows = ["q Q0 paragraphes/d#0001 1 1 x", "q Q0 paragraphes/d#0002 1 2 x"]
        report = self.judged(case, "\n".join(rows), "m.trec")
        self.assertTrue(question(report, "m")["all_required_covered"])
        self.assertEqual([warning for warning in report["warnings"] if "classement" in warning], [])


class Sections(TestCase):
    def test_an_id_is_what_a_shape_says_it_is(self):
        """A section has no id of its own: `id` is metadata there, of any kind and as often as one likes."""
        sections = [{"text": "Le préavis est de trois mois.", "id": 3}, {"text": "Un.", "id": "a"},
                    {"text": "Deux.", "id": "a"}]
        report = self.report(make_case(documents=[{"id": "d", "sections": sections}]))
        self.assertEqual(variant(report, "paragraphes")["summary"]["mixed_by"]["id"], 0)


class Reports(TestCase):
    """Reports that are read again, once something in them is no longer what --output wrote."""

    DAMAGES = (  # of a report, a question of it, a hit, a fact
        lambda report, question, hit, fact: hit.update(passage=["d#0001"]),
        lambda report, question, hit, fact: hit.update(passage={}),
        lambda report, question, hit, fact: hit.update(text=3),
        lambda report, question, hit, fact: hit.update(text=None),
        lambda report, question, hit, fact: hit.pop("passage"),
        lambda report, question, hit, fact: question.update(context=7),
        lambda report, question, hit, fact: question.update(id={}),
        lambda report, question, hit, fact: fact.update(loss={"stage": "inventée", "missing": []}),
        lambda report, question, hit, fact: fact.update(loss={"stage": ["x"]}),
        lambda report, question, hit, fact: fact.update(id=None),
        lambda report, question, hit, fact: fact.update(alternatives=[{"id": 3, "quote": 5}]),
        lambda report, question, hit, fact: report.update(variants={"a": 1}),
        lambda report, question, hit, fact: report.update(variants=[3]),
        lambda report, question, hit, fact: report["variants"][0].update(id=["x"]),
        lambda report, question, hit, fact: report["case"].update(documents=None),
        lambda report, question, hit, fact: report["case"]["documents"][0].update(id=[]),
        lambda report, question, hit, fact: report.update(settings=[]))

    def damaged(self):
        report = self.report(make_case())
        for damage in self.DAMAGES:
            copy = json.loads(json.dumps(report))
            asked = copy["variants"][3]["questions"][0]
            damage(copy, asked, asked["hits_before_budget"][0], asked["facts"][0])
            yield self.write(copy, "avant.json")
        yield self.write("[]", "avant.json")
        yield self.write("3", "avant.json")
        yield self.write('{"citations": {}}', "avant.json")

    def test_a_damaged_baseline_is_refused(self):
        for path in self.damaged():
            code, out, err = run("--case", self.folder / "cas.json", "--baseline", path)
            self.assertEqual((code, out), (2, ""))
            self.assertIn("avant.json : ", err)
            self.assertNotIn("Traceback", err)

    def test_a_register_whose_report_is_damaged_is_refused(self):
        register = {"context_from": {"report": "avant.json", "variant": "paragraphes", "question": "q"},
                    "claims": [{"id": "c", "text": "…", "citations": [
                        {"passage": "d#0001", "text": "…", "relation": "supports"}]}]}
        for _ in self.damaged():
            code, out, err = run("--citations", self.write(register, "registre.json"))
            self.assertEqual((code, out), (2, ""))
            self.assertTrue(err.startswith("registre.json : context_from.report (avant.json) : "), err)

    def test_a_sound_report_is_compared_and_cited(self):
        report = self.report(make_case())
        path = self.write(report, "avant.json")
        self.assertEqual(run("--case", self.folder / "cas.json", "--baseline", path)[0], 0)
        self.assertIsNone(variant(report, "paragraphes")["questions"][0]["facts"][0]["loss"])


if __name__ == "__main__":
    unittest.main()
