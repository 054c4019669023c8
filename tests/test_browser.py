"""Pages in a real browser: axe-core, two HTML validators, the keyboard, both schemes, four widths, paper.

They need chromium, node and what tests/browser/package.json names (java too, for one of the validators); without them
these tests skip, saying so.  A folder in ATELIER_SCREENSHOTS keeps what was seen; ATELIER_LONG asks for the long page.
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import chroma
from support import ROOT, TESTS, TestCase, make_case, run
from test_page import split_case

BROWSER = TESTS / "browser"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NU = BROWSER / "node_modules" / "vnu-jar" / "build" / "dist" / "vnu.jar"
HOSTILE = "<script>alert(1)</script>\"'& " + "identifiant_sans_la_moindre_espace_" * 6


def filtered_case():
    case = split_case(51)
    case["facts"][0]["quote"] = "règle0 vaut0"  # the first question loses nothing
    return case


def many_variants(count):
    return [{"id": "w{}".format(n) + "x" * 190, "unit": "words", "size": n + 1} for n in range(count)]


def hostile_case():
    return make_case("Le préavis 日本語 est de trois mois. " + "x" * 500 + " العربية " + "mot " * 300, quote="trois mois", title=HOSTILE,
                     questions=[{"id": HOSTILE, "text": HOSTILE + " préavis", "required_facts": [HOSTILE]}, {"id": "vide", "text": "zzz", "required_facts": [HOSTILE]}],
                     facts=[{"id": HOSTILE, "document": "d", "quote": "mot mot", "start": 250}])


def arabic_case():
    return make_case("مهلة الإشعار ثلاثة أشهر. " * 40 + "الثانية تسعون يوما.", quote="الثانية تسعون يوما", title="الثانية", settings={"budget_words": 20},
                     questions=[{"id": "سؤال", "text": "ما هي مهلة الإشعار الثانية ؟", "required_facts": ["f"]}])


CASES = {  # by page: a file, or what makes a case
    "reference": ROOT / "cas_fr.json",
    "filters": filtered_case,
    "forty": lambda: split_case(3, variants=many_variants(40)),
    "ten": lambda: split_case(3, variants=many_variants(10), title="الثانية"),
    "no_question": lambda: make_case(facts=[], questions=[]),
    "contracts": TESTS / "cas" / "contrats" / "contrats.json",
    "books": TESTS / "cas" / "mediatheque.json",
    "hostile": hostile_case,
    "arabic": arabic_case,
}


def draw(folder, name, *argv):
    """The page of these options, in a folder."""
    page = Path(folder) / (name + ".html")
    code, _, err = run(*argv, "--html", page)
    assert code == 0, err
    return page


def draw_all(folder):
    """Every page of the tests: cases, citations, an engine that went too far, and what changed since a baseline."""
    folder, pages = Path(folder), []
    for name, case in CASES.items():
        if callable(case):
            path = folder / (name + ".json")
            path.write_text(json.dumps(case()), encoding="utf-8")
            case = path
        pages.append(draw(folder, name, "--case", case))
    pages.append(draw(folder, "citations", "--citations", TESTS / "cas" / "citations.json"))
    contexts = folder / "moteur.jsonl"
    lines = [{"question": question["id"], "context": [{"document": "sejour", "start": 0, "end": 134}, {"text": "nulle part ailleurs"}]}
             for question in json.loads((ROOT / "cas_fr.json").read_text(encoding="utf-8"))["questions"]]
    contexts.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    earlier = folder / "avant.json"
    assert run("--output", earlier)[0] == 0
    pages.append(draw(folder, "engine", "--contexts", contexts, "--baseline", earlier))
    return pages


def look(pages):
    """What check.mjs says of each page."""
    process = subprocess.run(["node", BROWSER / "check.mjs", CHROMIUM, *pages], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=1200)
    assert process.returncode == 0, process.stderr.decode("utf-8")
    return json.loads(process.stdout.decode("utf-8"))


needs_a_browser = unittest.skipUnless(CHROMIUM and shutil.which("node") and NU.is_file(),
                                      "no chromium, no node, or no npm install --no-package-lock in tests/browser")


class Looked:
    """Pages looked at together, and what holds of each."""

    NOTHING = {"console": [], "requests": [], "html": [], "axe": [], "overflow": [], "orphans": []}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.pages = cls.draw(folder)
        cls.said = look(cls.pages)

    def test_nothing_is_found_wrong_on_any_page(self):
        self.assertEqual(len(self.said), len(self.pages))
        for name, said in self.said.items():
            with self.subTest(name):
                self.assertEqual({key: said[key] for key in self.NOTHING}, self.NOTHING)
                self.assertGreater(said["pdf"], 10_000)
                self.assertGreater(said["headings"], 0)

    @unittest.skipUnless(shutil.which("java"), "no java for the nu validator")
    def test_the_nu_validator_says_nothing(self):
        process = subprocess.run(["java", "-jar", NU, "--no-langdetect", "--format", "json", *self.pages], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        told = json.loads(process.stderr.decode("utf-8"))["messages"]
        self.assertEqual([(message["url"].rpartition("/")[2], message["message"]) for message in told], [])


@needs_a_browser
class Pages(Looked, TestCase):
    draw = staticmethod(draw_all)

    def test_the_reference_case_shows_its_losses_at_once_and_on_six_sheets_at_most(self):
        said = self.said["reference.html"]
        self.assertEqual((said["opened"], said["followed"], said["seen"]), (True, True, 3))
        self.assertLessEqual(said["pages"], 6)

    def test_a_baseline_does_not_push_the_losses_out(self):
        self.assertGreater(self.said["engine.html"]["seen"], 2)

    def test_a_filter_hides_the_questions_that_lost_nothing_there(self):
        self.assertEqual(self.said["filters.html"]["filtered"], [51, 50])


@unittest.skipUnless(os.environ.get("ATELIER_LONG"), "the long page takes more than a minute: set ATELIER_LONG")
@needs_a_browser
class LongPage(Looked, TestCase):
    """Chroma's: 472 questions, 4 variants, looked at in parts."""

    @staticmethod
    def draw(folder):
        if not chroma.FOLDER.is_dir():
            raise unittest.SkipTest("no data in " + chroma.FOLDER.name)
        path = Path(folder) / "chroma.json"
        path.write_text(json.dumps(chroma.make_case(stop_words=chroma.ENGLISH_STOP_WORDS)), encoding="utf-8")
        return [draw(folder, "chroma", "--case", path)]

    def test_it_can_be_filtered_followed_and_printed_on_sixty_sheets(self):
        said = self.said["chroma.html"]
        self.assertTrue(said["opened"] and said["followed"])
        self.assertLess(said["filtered"][1], said["filtered"][0])
        self.assertLessEqual(said["pages"], 60)


if __name__ == "__main__":
    unittest.main()
