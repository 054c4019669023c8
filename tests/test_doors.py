"""Each door of atelier.py can be cut out alone: the reference case runs through what remains.

A door is a section of the file, from the one that reads cases on, delimited by its line `# --- N. Title ---`.
"""

import contextlib
import json
import pickle
import re
import sqlite3
import sys
import types
import unittest
from unittest import mock

from support import ROOT, TestCase, atelier, make_case, run

SCRIPT, CASE = ROOT / "atelier.py", ROOT / "cas_fr.json"
SOURCE = SCRIPT.read_text(encoding="utf-8")
SECTION = re.compile(r"^# --- \d+\. (\w+).*$", re.M)
# What the command hands to the path, or adds to its report: without them the path runs alone, from a Case
# already read, to a report that lacks what they add.
BESIDE = {"Reading", "Why", "Warnings", "Comparisons", "Command"}
ADDED = {"needed", "places", "budget_curve", "depth_curve", "warnings", "comparisons"}


def doors():
    """{first word of its title: (where it starts, where it ends)} of each door of the source."""
    found = list(SECTION.finditer(SOURCE))
    limits = [match.start() for match in found] + [len(SOURCE)]
    places = {match.group(1): (limits[number], limits[number + 1]) for number, match in enumerate(found)}
    names = list(places)
    return {name: places[name] for name in names[names.index("Reading"):]}


def without(door):
    """A fresh module of the source without a door, lines numbered as in the file."""
    start, end = doors()[door]
    rest = SOURCE[:start] + "\n" * SOURCE.count("\n", start, end) + SOURCE[end:]
    module = types.ModuleType("atelier")
    module.__file__ = str(SCRIPT)
    with mock.patch.dict(sys.modules, {"atelier": module}):
        exec(compile(rest, str(SCRIPT), "exec"), module.__dict__)
    return module


def read_reference():
    """The reference case as the whole module reads it, pickled."""
    with mock.patch.object(atelier, "diagnose", side_effect=KeyboardInterrupt) as diagnose:
        run("--case", CASE)
    return pickle.dumps(diagnose.call_args[0][0])


def bare(value):
    """A part of a report without what the doors beside the path add to it."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if key not in ADDED}
    return [bare(item) for item in value] if isinstance(value, list) else value


class Doors(TestCase):
    def through_the_command(self, module=atelier):
        """The report of the reference case, written by the command of a module."""
        with mock.patch.dict(sys.modules, {"atelier": module}):
            code, _, err = run("--case", CASE, "--output", self.folder / "rapport.json", main=module.main)
        self.assertEqual((code, err), (0, ""))
        return json.loads((self.folder / "rapport.json").read_text(encoding="utf-8"))

    def through_the_path(self, module, pickled):
        """The report that the path of a module alone makes of a pickled case."""
        with mock.patch.dict(sys.modules, {"atelier": module}):
            case = pickle.loads(pickled)
            variants = {variant.id: variant for variant in case.variants}
            report = module.diagnose(case, lambda name: module.cut(case.documents, variants[name]))
            return json.loads(json.dumps(report))

    def test_every_door_can_be_cut_out_and_the_rest_still_works(self):
        found, whole, case = doors(), self.through_the_command(), read_reference()
        self.assertGreaterEqual(len(found), 9, found)
        self.assertLessEqual(BESIDE, set(found))
        for door, (start, end) in found.items():
            with self.subTest(door=door):
                module, names = without(door), re.findall(r"^(?:def|class) (\w+)", SOURCE[start:end], re.M)
                self.assertTrue(names)
                self.assertEqual([name for name in names if hasattr(module, name)], [])
                if door in BESIDE:
                    self.assertEqual(bare(self.through_the_path(module, case)), bare(whole))
                else:
                    self.assertEqual(self.through_the_command(module), whole)

    def test_sql_stands_in_its_section_and_files_in_the_commands(self):
        """The lines of atelier.py that hand a statement to SQLite, or open, replace or remove a file."""
        section_of = {}
        for number, line in enumerate(SOURCE.splitlines(), 1):
            match = SECTION.match(line)
            section_of[number] = match.group(1) if match else section_of.get(number - 1)
        seen = {"SQL": set(), "files": set()}

        def watch(kind, action):
            def watched(*args, **named):
                frame = sys._getframe(1)
                if frame.f_globals["__name__"] == "atelier":
                    seen[kind].add(section_of[frame.f_lineno])
                return action(*args, **named)
            return watched

        class Watched(sqlite3.Connection):
            execute, executemany = (watch(
                "SQL", action) for action in (sqlite3.Connection.execute, sqlite3.Connection.executemany))

        case, line = self.write(make_case()), self.write('{"question": "q", "context": ["trois mois"]}',
                                                         "moteur.jsonl")
        run("--case", case, "--output", self.folder / "avant.json")
        with mock.patch("sqlite3.connect",
                        lambda *args, **named: Watched(*args, **named)), contextlib.ExitStack() as patches:
            for name in ("builtins.open", "os.replace", "os.remove", "os.stat", "os.listdir"):
                module, _, action = name.partition(".")
                patches.enter_context(mock.patch(name, watch("files", getattr(sys.modules[module], action))))
            code, _, err = run("--case", case, "--contexts", line, "--baseline", self.folder / "avant.json",
                               "--output", self.folder / "apres.json", "--export", self.folder / "e.jsonl",
                               "--html", self.folder / "page.html")
        self.assertEqual(code, 0, err)
        self.assertEqual(seen, {"SQL": {"Searching", "Engine"}, "files": {"Command"}})


if __name__ == "__main__":
    unittest.main()
