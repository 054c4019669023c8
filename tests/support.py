"""What the tests share: the product called in process, small cases, and the Pythons found on the machine."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
import unittest
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
sys.path.insert(0, str(ROOT))

import atelier  # noqa: E402
import chroma  # noqa: E402


def run(*argv, main=None):
    """(exit code, standard output, standard error) of the command, in process; main may be another copy's."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = (main or atelier.main)([str(argument) for argument in argv])
    return code, out.getvalue(), err.getvalue()


def spawn(*argv, python=sys.executable, **options):
    """The finished process of a command of its own, its outputs as bytes."""
    return subprocess.run([python, *map(str, argv)], stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, **options)


@lru_cache(maxsize=None)
def pythons():
    """{version: path} of the CPythons on this machine that are 3.7 or later: the one that runs, PATH's, pyenv's."""
    folders = os.environ.get("PATH", "").split(os.pathsep) + [str(path) for path in Path.home().glob(".pyenv/versions/*/bin")]
    found = {}
    for path in [sys.executable] + [shutil.which(name, path=folder) for folder in folders
                                    for name in ["python3"] + ["python3.{}".format(minor) for minor in range(7, 15)]]:
        if path and path not in found.values():
            said = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:3], sep='.')"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL).stdout.decode().strip()
            if re.match(r"3\.([7-9]|1\d)\.", said):
                found.setdefault(said, path)
    return found


def measure_memory(action):
    """(what an action returns, the most bytes that it held at once)."""
    tracemalloc.start()
    try:
        return action(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class TestCase(unittest.TestCase):
    """A test with a folder of its own, and small cases written in it."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, case, name="cas.json"):
        """The path of a case, given as a dict, a text or bytes."""
        data = case if isinstance(case, (bytes, str)) else json.dumps(case, ensure_ascii=False)
        path = self.folder / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
        return path

    def report(self, case):
        """The report of a case."""
        target = self.folder / "rapport.json"
        code, _, err = run("--case", self.write(case), "--output", target)
        self.assertEqual(code, 0, err)
        return json.loads(target.read_text(encoding="utf-8"))

    def passages(self, case):
        """The passages of a case as it exports them, in order: {variant id: [row of the export]}."""
        target, rows = self.folder / "passages.jsonl", {}
        code, _, err = run("--case", self.write(case), "--export", target)
        self.assertEqual(code, 0, err)
        for row in map(json.loads, target.read_text(encoding="utf-8").split("\n")[:-1]):
            rows.setdefault(row["id"].partition("/")[0], []).append(row)
        return rows

    def refused(self, case):
        """The lines with which a case is refused."""
        code, out, err = run("--case", self.write(case))
        self.assertEqual((code, out), (2, ""), err)
        return err.splitlines()


@lru_cache(maxsize=None)
def real_run():
    """(case, report, bytes of the page) of the real text of chroma.py; run once for all the tests."""
    case = chroma.make_case(stop_words=chroma.ENGLISH_STOP_WORDS)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("case.json", "report.json", "page.html")]
        paths[0].write_text(json.dumps(case), encoding="utf-8")
        code, _, err = run("--case", paths[0], "--output", paths[1], "--html", paths[2])
        if code != 0:
            raise AssertionError(err)
        return case, json.loads(paths[1].read_text(encoding="utf-8")), paths[2].read_bytes()


def make_case(text="Le préavis est de trois mois.", quote="trois mois", question="Quel préavis ?", **changes):
    """The smallest sound case: one document, one fact, one question."""
    case = {"documents": [{"id": "d", "text": text}],
            "facts": [{"id": "f", "document": "d", "quote": quote}],
            "questions": [{"id": "q", "text": question, "required_facts": ["f"]}]}
    case.update(changes)
    return case


def bare(loss):
    """A loss without the places that explain it."""
    return {name: value for name, value in loss.items() if name != "places"}


def variant(report, id):
    return next(each for each in report["variants"] if each["id"] == id)


def question(report, variant_id, question_id="q"):
    return next(each for each in variant(report, variant_id)["questions"] if each["id"] == question_id)
