"""README.md keeps its word: its commands print what it shows, and it names all that the report holds.

A `console` block shows the whole output of its command; a `console extrait` block some lines of what its
commands say, in order, and `code N` when the last one must not end with 0. A `json` or `python` block
that a line ending in « sous `name` : » introduces is a file of that name.
"""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import sys
import types
import unittest
from unittest import mock

from support import ROOT, TESTS, TestCase, atelier, run, spawn

README = (ROOT / "README.md").read_text(encoding="utf-8")
TUTORIAL, REFERENCE = README.split("\n## Table des matières\n")
BLOCK = re.compile(r"^```(?P<kind>\w+)(?P<info>.*)\n(?P<body>(?s:.*?))^```$", re.M)
FOUR_FILES = ("atelier.py", "cas_fr.json", "README.md", "LICENSE")


def section(title):
    """The text under a heading of the second level."""
    return README.split("\n## {}\n".format(title))[1].split("\n## ")[0]


def rows(text):
    """The cells of each row of the tables of a text, headers included."""
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines()
            if line.startswith("| ")]


def first_names(text):
    """The names that stand alone in the first cell of a row."""
    return [row[0].strip("`") for row in rows(text) if re.match(r"`\w+`$", row[0])]


def keys_of(value):
    """Every key of a JSON value that is a name of the format, not an id of the case."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if isinstance(value, dict):
        named_by_case = ("passages", "losses", "filters", "filter", "by_set", "mixed_by")
        inner = [keys_of(item) for key, item in value.items() if key not in named_by_case]
        return set(value).union(*inner)
    return set()


class Readme(TestCase):
    def setUp(self):
        super().setUp()
        for name in FOUR_FILES:
            shutil.copy(ROOT / name, self.folder)

    def write_files(self, text):
        """Write the files that README gives to copy."""
        for block in BLOCK.finditer(text):
            named = re.search(r"sous `([\w.]+)` :\n\n\Z", text[:block.start()])
            if named:
                (self.folder / named.group(1)).write_text(block["body"], encoding="utf-8")

    def obey(self, command, code=0):
        """What a command of README says, standard output first; those that need a clone run in it."""
        words = shlex.split(command)
        self.assertEqual(words[0], "python3", command)
        folder = ROOT if "tests/" in command else self.folder
        process = spawn(*words[1:], cwd=folder, env={**os.environ, "PYTHONIOENCODING": "utf-8"})
        self.assertEqual(process.returncode, code, (command, process.stderr.decode("utf-8")))
        return process.stdout.decode("utf-8"), process.stderr.decode("utf-8")

    def follow(self, text):
        """Run the commands of a text in order, compare what they say; the number of those that ran."""
        ran = 0
        for block in BLOCK.finditer(text):
            if block["kind"] != "console":
                continue
            commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block["body"], re.M)
            self.assertEqual("".join("$ {}\n{}".format(*each) for each in commands), block["body"])
            code = int((re.findall(r"code (\d)", block["info"]) or [0])[0])
            for command, shown in commands:
                if "unittest" in command:
                    continue  # this very run
                out, err = self.obey(command, code if command == commands[-1][0] else 0)
                ran += 1
                if "extrait" not in block["info"]:
                    self.assertEqual(out, shown, command)
                said = iter((out + err).splitlines())
                for line in shown.splitlines():
                    self.assertIn(line, said, command)
        return ran

    def test_its_tutorial_runs_from_the_four_files(self):
        self.write_files(TUTORIAL)
        self.assertNotIn("tests/", TUTORIAL)
        self.assertEqual(self.follow(TUTORIAL), 6)
        self.assertIn("variants", json.loads((self.folder / "resultat.json").read_text(encoding="utf-8")))
        self.assertIn("<svg", (self.folder / "page.html").read_text(encoding="utf-8"))

    def test_its_three_questions_are_as_it_tells(self):
        command, = re.findall(r"^\$ (.*--question.*)$", TUTORIAL, re.M)
        trips = dict(re.findall(r"(?ms)^Question (\w+) : (.*?)(?=^Question |\Z)", self.obey(command)[0]))

        def hits(question, variant):
            trip = trips[question].split("\n\n{}\n".format(variant))[1].split("\n\n")[0]
            return trip, re.findall(r"(?m)^  \d+\. (.*)$", trip)
        self.assertEqual(sorted(trips), ["q_absente", "q_hotel", "q_train"])
        self.assertEqual(hits("q_hotel", "fixe_48_0")[1][:2], ["sejour#0001, 48 mots", "sejour#0002, 48 mots"])
        self.assertEqual(len(hits("q_absente", "fixe_48_0")[1]), 3)
        self.assertNotIn("preuve", trips["q_absente"].split("Test des signes")[0])
        self.assertIn("il suffirait de : un budget de 143 mots", hits("q_train", "fixe_96_0")[0])
        self.assertEqual(hits("q_train", "fixe_48_16")[0].count(" : couverte"), 2)
        self.obey("python3 atelier.py --output resultat.json")
        report = json.loads((self.folder / "resultat.json").read_text(encoding="utf-8"))
        trains = [question for variant in report["variants"] for question in variant["questions"]
                  if (variant["id"], question["id"]) == ("fixe_48_16", "q_train")]
        self.assertEqual([question["redundant_words"] for question in trains], [32])

    def test_its_engine_passes_once_mended(self):
        self.write_files(TUTORIAL)
        self.obey("python3 atelier.py --contexts moteur.jsonl --output resultat_moteur.json")
        path = self.folder / "moteur.jsonl"
        mended, = re.findall(r"de `q_repas`, le contexte devient `(.*?)`", TUTORIAL)
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            if line["question"] == "q_repas":
                line["context"] = json.loads(mended)
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        command, = re.findall(r"^\$ (.*--require.*)$", TUTORIAL, re.M)
        self.assertIn("  moteur : 1 preuve gagnée, 0 perdue, 0 étape changée\n", self.obey(command)[0])

    def test_its_reference_shows_what_its_commands_print(self):
        self.write_files(REFERENCE)
        self.assertEqual(self.follow(REFERENCE), 1)
        self.assertIn("articles", self.obey("python3 atelier.py --case articles.json")[0])

    def test_its_inline_commands_run(self):
        self.write_files(README)
        self.obey("python3 atelier.py --output resultat.json")
        commands = re.findall(r"`(python3 atelier\.py [^`]*)`", README)
        self.assertGreaterEqual(len(commands), 4)
        for command in commands:
            self.obey(command)

    def test_its_register_may_come_from_a_report(self):
        self.write_files(README)
        self.obey("python3 atelier.py --output resultat.json")
        origin, = re.findall(r'`("context_from": .*?)` remplace', README)
        register = {**json.loads("{%s}" % origin), "claims": [{"id": "A", "text": "a", "citations": [
            {"passage": "sejour#0001", "text": "b", "relation": "supports"}]}]}
        self.write(register, "du_rapport.json")
        self.assertIn("    sejour#0001 : hors du contexte, soutient\n",
                      self.obey("python3 atelier.py --citations du_rapport.json")[0])

    def test_its_figures_of_the_cases_of_a_clone_are_theirs(self):
        target = self.folder / "rapport.json"

        def summaries(case):
            self.assertEqual(run("--case", TESTS / "cas" / case, "--output", target)[0], 0)
            report = json.loads(target.read_text(encoding="utf-8"))
            return {variant["id"]: variant["summary"] for variant in report["variants"]}
        contracts, books = summaries("contrats/contrats.json"), summaries("mediatheque.json")
        recalls = [contracts[name]["recall_at"][0]
                   for name in ("taille_400_60", "structure_500", "structure_500_filtres")]
        told = "est de {:.3f} ; de {:.3f} par article, de {:.3f} avec les filtres".format(*recalls)
        self.assertIn(told.replace(".", ","), README)
        complete = ["{complete_contexts}/{answerable_questions}".format(**contracts[name])
                    for name in ("taille_400_60", "structure_500")]
        self.assertIn("a {} contextes complets ; par article, {}".format(*complete), README)
        mixed = [books["naif_180_{}".format(overlap)]["mixed_passages"] for overlap in (0, 20, 40, 80)]
        self.assertIn("{}, {}, {} et {} pour 0, 20, 40 et 80".format(*mixed), README)
        self.assertIn("`naif_180_40` a {} passages à cheval sur deux livres".format(
            books["naif_180_40"]["mixed_by"]["book"]), README)
        self.assertEqual(books["structure_220"]["mixed_by"]["book"], 0)

    def test_its_snippets_do_what_it_says(self):
        """The engine and the cluster, as README writes them, on a store and a cluster of straw."""
        dense, cluster = [block["body"] for block in BLOCK.finditer(REFERENCE) if block["kind"] == "python"]
        self.obey("python3 atelier.py --export passages.jsonl")
        store = mock.Mock()
        store.query.return_value = {"ids": [["paragraphes/sejour#0001", "paragraphes/sejour#0002"]]}
        chromadb = types.ModuleType("chromadb")
        chromadb.Client = lambda: mock.Mock(create_collection=lambda name: store)
        said, here, names = io.StringIO(), os.getcwd(), {}
        os.chdir(self.folder)
        try:
            with mock.patch.dict(sys.modules, chromadb=chromadb), contextlib.redirect_stdout(said):
                exec(dense, {})
                exec(cluster, names)
        finally:
            os.chdir(here)
        self.assertEqual(len(store.add.call_args[1]["ids"]), 6)
        lines = [json.loads(line) for line in said.getvalue().splitlines()]
        self.assertEqual((len(lines), lines[0]),
                         (2 * 35, {"index": {"_index": "passages", "_id": "fixe_48_0/transports#0001"}}))
        questions = json.loads((ROOT / "cas_fr.json").read_text(encoding="utf-8"))["questions"]
        found = {"hits": {"hits": [{"_id": "paragraphes/sejour#0001", "_score": 2.5}]}}
        with open(self.folder / "grappe.trec", "w", encoding="utf-8") as file:
            names["write_run"](lambda text: found, questions, file)
        out, _ = self.obey("python3 atelier.py --contexts grappe.trec --contexts dense.jsonl")
        self.assertRegex(out, r"(?m)^grappe +- +- +1/5 +2/10 ")
        self.assertRegex(out, r"(?m)^dense +- +- +2/5 +4/10 ")

    def test_it_names_every_unit_and_its_keys(self):
        units = {row[0].strip("`"): row[1] for row in rows(section("Contrats par article, livres par chapitre"))
                 if len(row) == 3}
        for name, unit in atelier.UNITS.items():
            named = re.findall(r"`(\w+)`", units[name].replace("`false`", ""))
            self.assertEqual(named, re.findall(r"(\w+)[!:]", unit.shape))

    def test_it_names_every_key_of_the_report(self):
        """Of each kind: the reference case, engines, a baseline, contracts, sets, alternatives, citations."""
        self.write_files(README)
        case = json.loads((self.folder / "articles.json").read_text(encoding="utf-8"))
        case["questions"][0]["set"] = "validation"
        self.write(case, "articles.json")
        first = "python3 atelier.py --contexts moteur.jsonl --output a.json"
        commands = [first, first.replace("a.json", "b.json --baseline a.json"),
                    "python3 atelier.py --case articles.json --output c.json",
                    "python3 atelier.py --citations registre.json --output d.json"]
        keys = set()
        for command in commands:
            self.obey(command)
            report = self.folder / re.search(r"--output (\S+)", command).group(1)
            keys |= keys_of(json.loads(report.read_text(encoding="utf-8")))
        self.assertGreater(len(keys), 90)
        self.assertEqual([key for key in sorted(keys) if not re.search(r"\b{}\b".format(key), REFERENCE)], [])

    def test_it_tells_every_stage_in_the_order_of_the_code(self):
        stages = first_names(section("Où une preuve s'est perdue"))
        self.assertEqual(stages, [stage.id for stage in atelier.STAGES])
        after = section("Un autre moteur").split("ont leurs étapes, dans cet ordre : ")[1].split("\n\n")[0]
        self.assertEqual(re.findall(r"`(\w+)` \(", after), [stage.id for stage in atelier.ENGINE_STAGES])
        after = section("Les citations d'une réponse").split("| état | quand |")[1].split("\n\n")[0]
        self.assertEqual(first_names(after), list(atelier.STATUSES))

    def test_it_names_every_option_and_what_it_takes(self):
        told = " ".join(row[0] for row in rows(section("Commandes"))) + section("Commandes")
        for name, (taken, _) in atelier.OPTIONS.items():
            self.assertIn("`{}`".format(name + " " * bool(taken) + (taken or "")), told)
        repeatable = {row[0].strip("`").split()[0] for row in rows(section("Commandes")) if "répétable" in row[1]}
        self.assertEqual(repeatable, set(atelier.REPEATABLE))

    def test_it_names_the_variants_and_settings_of_the_code(self):
        names = first_names(section("Lire le tableau"))
        self.assertEqual(names, [variant.id for variant in atelier.VARIANTS])
        defaults = "`top_k` {0.top_k}, `budget_words` {0.budget_words}".format(atelier.DEFAULTS)
        self.assertIn(defaults, REFERENCE)

    def test_its_table_of_contents_leads_to_each_part(self):
        def anchor(title):
            return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        anchors = [anchor(title) for title in re.findall(r"^##+ (.*)$", README, re.M)]
        self.assertEqual(len(set(anchors)), len(anchors))
        self.assertEqual(set(re.findall(r"\]\(#([^)]*)\)", README)) - set(anchors), set())
        contents, parts = REFERENCE.split("\n## ", 1)
        self.assertEqual(re.findall(r"\]\(#([^)]*)\)", contents),
                         [anchor(title) for title in re.findall(r"^## (.*)$", "## " + parts, re.M)])

    def test_it_shows_no_output_twice(self):
        shown = [line for block in BLOCK.finditer(README) if block["kind"] == "console"
                 for line in block["body"].splitlines() if len(line) > 40]
        self.assertEqual([line for line in set(shown) if shown.count(line) > 1], [])

    def test_its_french_has_plain_spaces_before_high_punctuation(self):
        prose = re.sub(r"```.*?```|`[^`]*`|<[^>]*>|\]\([^)]*\)", "", README, flags=re.S)
        faults = r"\S*[^\s«][;?!»%](?=\s|$)|\S*[^\s|-]:(?=\s|$)|«\S+"
        self.assertEqual(re.findall(faults, prose), [])
        self.assertEqual(re.findall("[\u00a0\u202f\u2009]", README), [])

    def test_its_first_two_levels_leave_out_words_of_the_trade(self):
        words = r"(?i)\b(racinisation|plongements?|NFC|UTF-16|TREC)\b"
        self.assertEqual(re.findall(words, TUTORIAL), [])


if __name__ == "__main__":
    unittest.main()
