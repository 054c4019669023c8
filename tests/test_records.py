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
        lambda report, question, hit, fact: report.update(settings=[]),
        lambda report, question, hit, fact: report["settings"].update(filters=[]))

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


class LivingCorpus(TestCase):
    """A baseline is compared with a case that has changed since: all that can be, and the rest is told."""

    def setUp(self):
        super().setUp()
        self.case = {
            "documents": [{"id": "bail", "text": "Préavis : trois mois.\n\nLoyer : cent euros."},
                          {"id": "prêt", "text": "Durée : dix ans.\n\nDurée du crédit : vingt ans."}],
            "facts": [{"id": "preavis", "document": "bail", "quote": "Préavis : trois mois"},
                      {"id": "duree", "document": "prêt", "quote": "Durée : dix ans"}],
            "questions": [{"id": "q_bail", "text": "Quel préavis ?", "required_facts": ["preavis"]},
                          {"id": "q_pret", "text": "Quelle durée ?", "required_facts": ["duree"]}],
            "variants": [{"id": "v", "unit": "paragraphs"}]}

    def compare(self, after, *options, before=None):
        """(code, baseline of the report, lines of standard output, of standard error)."""
        reference = self.folder / "avant.json"
        code, _, err = run("--case", self.write(before or self.case), "--output", reference)
        self.assertEqual(code, 0, err)
        return self.compare_again(after, *options)

    def compare_again(self, after, *options):
        code, out, err = run("--case", self.write(after), "--baseline", self.folder / "avant.json",
                             "--output", self.folder / "apres.json", *options)
        report = json.loads((self.folder / "apres.json").read_text(encoding="utf-8"))
        return code, report["baseline"], out.splitlines(), err.splitlines()

    def changed(self, **changes):
        """The case, once in each of its lists an item is replaced or added, by id."""
        case = json.loads(json.dumps(self.case))
        for key, items in changes.items():
            kept = {item["id"]: item for item in case[key]}
            kept.update((item["id"], item) for item in items)
            case[key] = list(kept.values())
        return case

    def test_one_unrelated_document_more(self):
        after = self.changed(documents=[{"id": "note", "text": "Rien à voir."}])
        code, baseline, lines, err = self.compare(after, "--no-regression")
        self.assertEqual((code, err), (0, []))
        self.assertEqual(baseline["differences"], ["1 document ajouté : note"])
        self.assertEqual(baseline["variants"], {"v": {
            "gained": [], "lost": [], "changed": [], "compared": 2, "edited": [], "not_compared": {}}})
        self.assertEqual(lines[-3:], [
            "Depuis le rapport de référence avant.json", "  attention : 1 document ajouté : note",
            "  v : 0 preuve gagnée, 0 perdue, 0 étape changée"])

    def test_a_document_more_that_takes_the_place_of_a_proof(self):
        """Three passages that repeat the question's word push the proof out of the three that are sent."""
        more = [{"id": "note{}".format(number), "text": "préavis préavis {}".format(number)} for number in range(3)]
        code, baseline, lines, err = self.compare(self.changed(documents=more), "--no-regression")
        self.assertEqual((code, err), (3, ["régression : v : 1 preuve perdue (q_bail · preavis)."]))
        self.assertEqual(baseline["variants"]["v"]["lost"], [["q_bail", "preavis", "ranked_too_low"]])
        self.assertIn("    - q_bail · preavis : classée trop bas", lines)
        self.assertEqual(self.compare(self.changed(documents=more))[0], 0)

    def test_an_edited_document_is_compared_where_its_quote_still_stands(self):
        text = "Bail signé en mairie.\n\nPréavis : trois mois."
        after = self.changed(documents=[{"id": "bail", "text": text}])
        code, baseline, lines, err = self.compare(after, "--no-regression")
        self.assertEqual((code, err, baseline["differences"]), (0, [], ["1 document modifié : bail"]))
        self.assertEqual([baseline["variants"]["v"][key] for key in ("compared", "edited", "not_compared")],
                         [2, [["q_bail", "preavis"]], {}])
        after["settings"] = {"budget_words": 2}
        code, baseline, lines, err = self.compare(after, "--no-regression")
        self.assertEqual((code, err), (3, [
            "régression : v : 2 preuves perdues (q_bail · preavis, q_pret · duree)."]))
        self.assertIn("    - q_bail · preavis (document modifié) : coupée par le budget", lines)
        self.assertIn("    - q_pret · duree : coupée par le budget", lines)
        self.assertIn("  attention : budget_words : 120 → 2", lines)

    def test_a_quote_in_other_typography_is_the_same_quote(self):
        before = self.changed(facts=[{"id": "preavis", "document": "bail", "quote": "trois  mois"}])
        after = self.changed(facts=[{"id": "preavis", "document": "bail", "quote": "trois mois"}])
        self.assertEqual(self.compare(after, before=before)[1]["variants"]["v"]["compared"], 2)

    def test_what_is_not_compared_is_counted_by_reason(self):
        after = self.changed(
            facts=[{"id": "preavis", "document": "bail", "quote": "trois mois"},
                   {"id": "loyer", "document": "bail", "quote": "cent euros"}],
            questions=[{"id": "q_pret", "text": "Durée du prêt ?", "required_facts": ["duree"]},
                       {"id": "q_loyer", "text": "Quel loyer ?", "required_facts": ["loyer"]}])
        before = self.changed(questions=[
            {"id": "q_bis", "text": "Et le préavis ?", "required_facts": ["preavis"]},
            {"id": "q_ter", "text": "Et après ?", "required_facts": ["preavis"]}])
        code, baseline, lines, err = self.compare(after, before=before)
        self.assertEqual(baseline["variants"]["v"]["not_compared"],
                         {"fact_changed": 1, "question_changed": 1, "added": 1, "removed": 2})
        self.assertEqual(sorted(line for line in lines if "?" in line), [
            "    ? 1 preuve hors comparaison : fait modifié",
            "    ? 1 preuve hors comparaison : question modifiée",
            "    ? 1 preuve hors comparaison : sans équivalent dans la référence",
            "    ? 2 preuves hors comparaison : sans équivalent dans ce rapport"])
        self.assertIn("  v : rien n'est comparé", lines)

    def test_a_removed_question_is_told_and_is_no_regression(self):
        after = self.changed()
        del after["questions"][0]
        code, baseline, lines, err = self.compare(after, "--no-regression")
        self.assertEqual((code, baseline["variants"]["v"]["not_compared"]), (0, {"removed": 1}))
        self.assertIn("    ? 1 preuve hors comparaison : sans équivalent dans ce rapport", lines)
        self.assertIn("  attention : 1 question retirée : q_bail", lines)

    def test_a_variant_or_an_engine_that_is_gone_is_told(self):
        after = self.changed(variants=[{"id": "w", "unit": "words", "size": 3, "overlap": 0}])
        contexts = self.write('{"question": "q_bail", "context": ["Préavis : trois mois."]}\n'
                              '{"question": "q_pret", "context": []}', "moteur.jsonl")
        run("--case", self.write(self.case), "--contexts", contexts, "--output", self.folder / "avant.json")
        code, baseline, lines, err = self.compare_again(after, "--no-regression")
        self.assertEqual({name: (changes["compared"], changes["not_compared"])
                          for name, changes in baseline["variants"].items()},
                         {"v": (2, {}), "w": (0, {"added": 2}), "moteur": (0, {"removed": 2})})
        self.assertEqual(baseline["differences"], ["1 variante ajoutée : w", "1 variante retirée : moteur"])
        self.assertIn("  moteur : rien n'est comparé", lines)
        self.assertEqual(code, 0)

    def test_a_variant_cut_otherwise_is_compared_all_the_same(self):
        after = dict(self.case, variants=[{"id": "v", "unit": "words", "size": 2, "overlap": 0}])
        code, baseline, _, err = self.compare(after, "--no-regression")
        self.assertEqual((code, baseline["differences"]), (3, ["1 variante modifiée : v"]))
        self.assertIn("q_bail · preavis", err[-1])

    def test_settings_read_as_what_they_were_and_what_they_are(self):
        before = dict(self.case, filters={"pays": "FR", "an": {"gte": 2}},
                      settings={"stop_words": ["le", "la"]},
                      documents=[dict(document, pays="FR", an=3) for document in self.case["documents"]])
        after = dict(before, filters={"an": {"gte": 3, "lte": 4}},
                     settings={"stop_words": ["la", "un"], "top_k": 6, "index_titles": True})
        self.assertEqual(self.compare(after, before=before)[1]["differences"], [
            "top_k : 3 → 6", "stop_words : le → un", "index_titles : false → true",
            "filters.pays : FR → absent", "filters.an : >= 2 → >= 3 et <= 4"])
        more = dict(before, settings={"stop_words": ["le", "la", "un"]})
        self.assertEqual(self.compare(more, before=before)[1]["differences"], ["stop_words : rien → un"])

    def test_a_filter_put_on_a_question_that_loses_its_proof(self):
        documents = [dict(document, pays="FR") for document in self.case["documents"]]
        before = self.changed(documents=documents + [{"id": "note", "text": "Préavis belge.", "pays": "BE"}])
        after = json.loads(json.dumps(before))
        after["questions"][0]["filters"] = {"pays": "BE"}
        code, baseline, _, err = self.compare(after, "--no-regression", before=before)
        self.assertEqual((code, baseline["differences"]), (3, ["1 question modifiée : q_bail"]))
        self.assertEqual(err[-1], "régression : v : 1 preuve perdue (q_bail · preavis).")

    def test_settings_of_another_version_are_told_as_they_are(self):
        run("--case", self.write(self.case), "--output", self.folder / "avant.json")
        report = json.loads((self.folder / "avant.json").read_text(encoding="utf-8"))
        report["settings"].update(filters={"pays": {"not": "FR"}}, budget_words=None, stop_words=3, ranker=[[1]])
        del report["settings"]["top_k"]
        self.write(report, "avant.json")
        differences = self.compare_again(self.case)[1]["differences"]
        self.assertEqual([told for told in differences if "stop_words" not in told], [
            "budget_words : absent → 120", "ranker : [1] → absent", "filters.pays : FR → absent",
            "top_k : absent → 3"])

    def test_many_documents_more_take_one_line(self):
        more = [{"id": "n{}".format(number), "text": "Rien."} for number in range(40)]
        _, baseline, lines, _ = self.compare(self.changed(documents=more))
        self.assertEqual(baseline["differences"], ["40 documents ajoutés : n0, n1, n2, n3, n4, …"])

    def test_a_gate_that_compares_nothing_does_not_hold(self):
        other = make_case(variants=self.case["variants"])
        code, _, _, err = self.compare(other, "--no-regression")
        self.assertEqual((code, err), (3, [
            "régression : rien n'est comparable à avant.json ; donnez un rapport du même cas."]))
        empty = {"documents": self.case["documents"], "facts": [], "variants": self.case["variants"],
                 "questions": [{"id": "q", "text": "Quel taux ?", "answerable": False}]}
        self.assertEqual(self.compare(empty, "--no-regression", before=empty)[0], 0)

    def test_it_is_refused_without_a_baseline(self):
        self.assertEqual(run("--case", self.write(self.case), "--no-regression"), (
            2, "", "--no-regression ne s'emploie qu'avec --baseline, qui donne le rapport de référence.\n"))

    def test_both_gates_are_told(self):
        after = dict(self.case, settings={"budget_words": 2})
        code, _, _, err = self.compare(after, "--no-regression", "--require", "v")
        self.assertEqual((code, [line.split(" : ")[0] for line in err]),
                         (3, ["régression", "exigence non tenue"]))

    def test_a_report_whose_engine_sent_foreign_text_can_be_a_baseline(self):
        run("--case", self.write(self.case), "--output", self.folder / "avant.json")
        report = json.loads((self.folder / "avant.json").read_text(encoding="utf-8"))
        foreign = dict.fromkeys(("passage", "document", "start", "end"))
        report["variants"][0]["questions"][0]["context"][0].update(foreign)
        self.write(report, "avant.json")
        self.assertEqual(self.compare_again(self.case)[0], 0)


if __name__ == "__main__":
    unittest.main()
