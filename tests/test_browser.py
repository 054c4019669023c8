"""Pages in a real browser: axe-core, an HTML validator, the keyboard, both schemes, two widths, paper.

They need chromium, node and what tests/browser/package.json names; without them these tests skip, saying so.
"""

import json
import os
import shutil
import subprocess
import unittest

from support import ROOT, TESTS, TestCase, make_case, run
from test_page import split_case

BROWSER = TESTS / "browser"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@unittest.skipUnless(CHROMIUM and shutil.which("node") and (BROWSER / "node_modules").is_dir(),
                     "no chromium, no node, or no npm install --no-package-lock in tests/browser")
class Browser(TestCase):
    def look(self, *argv):
        """What check.mjs found on the page of these options; a folder in ATELIER_SCREENSHOTS keeps what it saw."""
        page = self.folder / "page.html"
        code, _, err = run(*argv, "--html", page)
        self.assertEqual(code, 0, err)
        folder = [os.environ["ATELIER_SCREENSHOTS"]] if "ATELIER_SCREENSHOTS" in os.environ else []
        process = subprocess.run(["node", BROWSER / "check.mjs", CHROMIUM, page, *folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=180)
        self.assertEqual(process.returncode, 0, process.stderr.decode("utf-8"))
        said = json.loads(process.stdout.decode("utf-8"))
        self.assertEqual({key: said[key] for key in ("console", "requests", "axe", "overflow", "html")},
                         {"console": [], "requests": [], "axe": [], "overflow": [], "html": []})
        self.assertGreater(said["pdf"], 10_000)
        return said

    def test_the_reference_case(self):
        said = self.look("--case", ROOT / "cas_fr.json")
        self.assertEqual((said["opened"], said["followed"], said["seen"]), (True, True, 3))
        self.assertLessEqual(said["pages"], 6)

    def test_a_filter_hides_the_questions_that_lost_nothing_there(self):
        case = split_case(51)
        case["facts"][0]["quote"] = "règle0 vaut0"  # the first question loses nothing
        self.assertEqual(self.look("--case", self.write(case))["filtered"], [51, 50])

    def test_many_variants_long_ids_and_no_question(self):
        variants = [{"id": "w{}".format(n) + "x" * 190, "unit": "words", "size": n + 1} for n in range(40)]
        for case in (split_case(3, variants=variants), split_case(3, variants=variants[:10], title="الثانية"), make_case(facts=[], questions=[])):
            self.look("--case", self.write(case))

    def test_contracts_and_books(self):
        for path in (TESTS / "cas" / "contrats" / "contrats.json", TESTS / "cas" / "mediatheque.json"):
            self.look("--case", path)

    def test_citations(self):
        self.look("--citations", TESTS / "cas" / "citations.json")

    def test_long_hostile_and_foreign_texts(self):
        hostile = "<script>alert(1)</script>\"'& " + "identifiant_sans_la_moindre_espace_" * 6
        case = make_case("Le préavis 日本語 est de trois mois. " + "x" * 500 + " العربية " + "mot " * 300, quote="trois mois", title=hostile,
                         questions=[{"id": hostile, "text": hostile + " préavis", "required_facts": [hostile]}, {"id": "vide", "text": "zzz", "required_facts": [hostile]}],
                         facts=[{"id": hostile, "document": "d", "quote": "mot mot", "start": 250}])
        self.look("--case", self.write(case))


if __name__ == "__main__":
    unittest.main()
