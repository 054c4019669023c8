"""The thirteen guards are honest: each cries, alone, when the check that it watches is taken away."""

import ast
import re
import subprocess
import sys
import unittest
from unittest import mock

from support import ROOT, TestCase, atelier, run, spawn

# (guard, text that stands once in the source, what replaces it)
MUTANTS = (
    *((number, "if first != item.place:", "if first != item.place and kind != {!r}:".format(kind))
      for number, kind in ((1, "document"), (2, "fact"), (3, "question"))),
    (4, "if name is not None and documents and name not in documents:", "if False:"),
    (5, 'if "facts" in case and name not in facts:', "if False:"),
    (6, "    if not words:\n        raise", "    if not words:\n        return 0, 1\n        raise"),
    (7, "elif required and not answerable:", "elif False:"),
    (7, "elif answerable and not required:", "elif False:"),
    (8, "title:text text: file:", "title:text text:text file:"),
    (9, "return all(covered) if question.answerable", "return any(covered) if question.answerable"),
    (10, "if at < quote.end else []", "if at < quote.end - 1 else []"),
    (10, "if at < span.start and at < quote.end:", "if at < span.start - 1 and at < quote.end:"),
    (11, "if span.document == quote.document and span.start < span.end)", "if span.start < span.end)"),
    (12, "if name not in by_id:", "if False:"),
    (13, "if type(overlap) is not int or not 0 <= overlap < size:", "if type(overlap) is not int:"),
)


class Guards(TestCase):
    def test_thirteen_guards_pass_and_say_so(self):
        code, out, err = run("--self-test")
        lines = out.splitlines()
        self.assertEqual((code, err, len(lines)), (0, "", 14))
        self.assertEqual([re.match(r"ok +(\d+) \w", line).group(1) for line in lines[:13]], [str(n) for n in range(1, 14)])
        self.assertEqual(lines[13], "13 contrôles, 13 réussis, 0 échoué")

    def test_every_guard_has_a_mutant(self):
        self.assertEqual(sorted({guard for guard, _, _ in MUTANTS}), list(range(1, len(atelier.GUARDS) + 1)))

    def test_each_mutant_makes_its_guard_cry_and_no_other(self):
        source, processes = (ROOT / "atelier.py").read_text(encoding="utf-8"), []
        for number, (_, text, replacement) in enumerate(MUTANTS):
            copy = self.folder / "mutant{}.py".format(number)
            copy.write_text(source.replace(text, replacement), encoding="utf-8")
            processes.append(
                subprocess.Popen([sys.executable, "-O", str(copy), "--self-test"],
                                 stdout=subprocess.PIPE,
                                 env={"PYTHONIOENCODING": "utf-8"}))
        for (guard, text, _), process in zip(MUTANTS, processes):
            said = process.communicate()[0].decode("utf-8")
            with self.subTest(guard=guard, text=text):
                self.assertEqual(source.count(text), 1, "stale mutant: its text must stand once in the source")
                self.assertEqual((process.returncode, re.findall(r"^échec +(\d+)", said, re.M)), (1, [str(guard)]), said)
                self.assertRegex(said, r"obtenu  : .+\n +attendu : .+")
                self.assertIn("13 contrôles, 12 réussis, 1 échoué", said)

    def test_no_guard_at_all_is_a_failure(self):
        with mock.patch.object(atelier, "GUARDS", ()):
            code, out, _ = run("--self-test")
        self.assertEqual((code, out), (1, "0 contrôle, 0 réussi, 0 échoué\n"))

    def test_the_shipped_file_asserts_nothing(self):
        tree = ast.parse((ROOT / "atelier.py").read_text(encoding="utf-8"))
        self.assertEqual([node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)], [])

    def test_guards_need_no_file_beside_the_script(self):
        copy = self.folder / "atelier.py"
        copy.write_bytes((ROOT / "atelier.py").read_bytes())
        self.assertEqual(spawn(copy, "--self-test").returncode, 0)


if __name__ == "__main__":
    unittest.main()
