"""README.md keeps its word: its commands print what it shows, and it names all that the report holds."""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import unittest

from support import ROOT, TESTS, TestCase, atelier, run, spawn

README = (ROOT / "README.md").read_text(encoding="utf-8")


def keys_of(value):
    """Every key of a JSON value that is a name of the format, not an id of the case."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if isinstance(value, dict):
        return set(value).union(*(keys_of(item) for key, item in value.items() if key not in ("passages", "losses", "filters", "filter")))
    return set()


class Readme(TestCase):
    def test_its_commands_print_what_it_shows(self):
        for name in ("atelier.py", "cas_fr.json"):
            shutil.copy(ROOT / name, self.folder)
        shutil.copytree(TESTS / "cas", self.folder / "tests" / "cas")
        compared = 0
        for block in re.findall(r"```console\n(.*?)```", README, re.S):
            command, _, shown = block.partition("\n")
            words = shlex.split(command[2:])
            self.assertEqual((command[:2], words[0]), ("$ ", "python3"))
            if "unittest" in words:
                continue  # this very run
            process = spawn(*words[1:], cwd=self.folder, env={**os.environ, "PYTHONIOENCODING": "utf-8"})
            self.assertEqual((process.returncode, process.stdout.decode("utf-8")), (0, shown), command)
            compared += 1
        self.assertEqual(compared, 7)
        self.assertIn("variants", json.loads((self.folder / "resultat.json").read_text(encoding="utf-8")))

    def test_its_examples_are_sound_cases(self):
        plain, structured, register = re.findall(r"```json\n(.*?)```", README, re.S)
        (self.folder / "contrats").mkdir()
        (self.folder / "contrats" / "2024.txt").write_text("Préavis : trois mois.", encoding="utf-8")
        shutil.copy(TESTS / "cas" / "contrats" / "nettoyage.txt", self.folder)
        for example in (plain, structured):
            code, _, err = run("--case", self.write(example))
            self.assertEqual(code, 0, err)
        self.assertEqual(run("--citations", self.write(register))[0], 0)

    def test_its_snippets_do_what_it_says(self):
        """The bulk format and the run of a cluster, as README writes them, on a cluster of straw."""
        run("--export", self.folder / "passages.jsonl")
        snippet = re.findall(r"```python\n(.*?)```", README, re.S)[1]
        said, here = io.StringIO(), os.getcwd()
        os.chdir(self.folder)
        try:
            names = {}
            with contextlib.redirect_stdout(said):
                exec(snippet, names)
        finally:
            os.chdir(here)
        lines = [json.loads(line) for line in said.getvalue().splitlines()]
        self.assertEqual((len(lines), lines[0]), (2 * 35, {"index": {"_index": "passages", "_id": "fixe_48_0/transports#0001"}}))
        questions = json.loads((ROOT / "cas_fr.json").read_text(encoding="utf-8"))["questions"]
        with open(self.folder / "grappe.trec", "w", encoding="utf-8") as file:
            names["write_run"](lambda text: {"hits": {"hits": [{"_id": "paragraphes/sejour#0001", "_score": 2.5}]}}, questions, file)
        code, out, err = run("--contexts", self.folder / "grappe.trec")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"(?m)^grappe +- +- +1/5 +2/10 ")

    def test_it_names_every_unit_and_its_keys(self):
        for name, unit in atelier.UNITS.items():
            line, = re.findall(r"^\| `{}` \|(.*)$".format(name), README, re.M)
            self.assertEqual(re.findall(r"`(\w+)`", line.split("|")[0].replace("`false`", "")), [key.name for key in unit.keys])

    def test_it_names_every_key_of_the_report(self):
        run("--output", self.folder / "rapport.json")
        keys = keys_of(json.loads((self.folder / "rapport.json").read_text(encoding="utf-8")))
        run("--citations", TESTS / "cas" / "citations.json", "--output", self.folder / "citations.json")
        keys |= keys_of(json.loads((self.folder / "citations.json").read_text(encoding="utf-8")))
        self.assertGreater(len(keys), 60)
        self.assertEqual([key for key in sorted(keys) if not re.search(r"\b{}\b".format(key), README)], [])

    def test_it_tells_every_stage_in_the_order_of_the_code(self):
        stages = re.findall(r"^\| `(\w+)` \| .+ \| .+ \| .+ \|$", README.split("## Où une preuve")[1].split("\n## ")[0], re.M)
        self.assertEqual(stages, [stage.id for stage in atelier.STAGES])
        stages = re.findall(r"^\| `(\w+)` \| .+ \|$", README.split("Ses preuves perdues ont leurs étapes")[1].split("\nUn moteur dense")[0], re.M)
        self.assertEqual(stages, [stage.id for stage in atelier.ENGINE_STAGES])
        statuses = re.findall(r"^\| `(\w+)` \| .+ \|$", README.split("le premier de ces états")[1].split("\nUne affirmation")[0], re.M)
        self.assertEqual(statuses, list(atelier.STATUSES))

    def test_it_names_the_variants_and_settings_of_the_code(self):
        for each in atelier.VARIANTS:
            self.assertIn("| `{}` |".format(each.id), README)
        self.assertIn("`top_k` {}, `budget_words` {}".format(atelier.DEFAULTS.top_k, atelier.DEFAULTS.budget_words), README)

    def test_its_french_has_plain_spaces_before_high_punctuation(self):
        prose = re.sub(r"```.*?```|`[^`]*`|<[^>]*>|\]\([^)]*\)", "", README, flags=re.S)
        self.assertEqual(re.findall(r"\S*[^\s«][;?!»](?=\s|$)|\S*[^\s|-]:(?=\s|$)|«\S+|[\u00a0\u202f]", prose), [])


if __name__ == "__main__":
    unittest.main()
