"""What a command writes: whole or not at all, where it was asked, and told truly when it is stopped."""

import json
import os
import signal
import subprocess
import sys
import unittest
from unittest import mock

from support import ROOT, TESTS, TestCase, make_case, run, spawn

SCRIPT = ROOT / "atelier.py"
UTF8 = {**os.environ, "PYTHONIOENCODING": "utf-8"}


class Outputs(TestCase):
    def setUp(self):
        super().setUp()
        text = "Le préavis est de trois mois.\n\n" + "mot " * 100  # so long that no two variants cut alike
        self.case = self.write(make_case(text))
        self.report_path, self.page_path = self.folder / "r.json", self.folder / "p.html"
        self.argv = ["--case", self.case, "--output", self.report_path, "--html", self.page_path]

    def write_earlier(self):
        """An earlier report and page, and what the folder then holds."""
        self.report_path.write_text("ancien")
        self.page_path.write_text("ancienne")
        return self.contents()

    def contents(self):
        return {path.name: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}

    def assert_written(self):
        self.assertEqual(len(json.loads(self.report_path.read_text(encoding="utf-8"))["variants"]), 4)
        self.assertTrue(self.page_path.read_text(encoding="utf-8").endswith("</html>\n"))
        self.assertEqual(list(self.folder.glob(".atelier-*")), [])


class Together(Outputs):
    def test_the_temporary_file_of_another_process_of_the_same_number_is_left_alone(self):
        other = self.folder / ".atelier-{}.tmp".format(os.getpid())
        other.write_text("à un autre")
        self.assertEqual(run(*self.argv)[0], 0)
        self.assertEqual(other.read_text(), "à un autre")
        other.unlink()
        self.assert_written()

    def test_a_new_file_has_the_mode_that_the_mask_gives_and_an_old_one_keeps_its_own(self):
        self.page_path.write_text("ancienne")
        self.page_path.chmod(0o604)
        earlier = os.umask(0o027)
        try:
            self.assertEqual(run(*self.argv)[0], 0)
            self.assertEqual(os.umask(0o027), 0o027)
        finally:
            os.umask(earlier)
        modes = [path.stat().st_mode & 0o777 for path in (self.report_path, self.page_path)]
        self.assertEqual(modes, [0o640, 0o604])

    def test_a_file_system_without_modes_takes_the_report(self):
        with mock.patch("os.chmod", side_effect=PermissionError(1, "Operation not permitted")):
            self.assertEqual(run(*self.argv)[0], 0)
        self.assert_written()

    def test_an_output_that_fails_leaves_all_the_others_as_they_were(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full on this machine")
        before = self.write_earlier()
        self.assertEqual(run("--case", self.case, "--output", self.report_path, "--html", "/dev/full"), (
            2, "", "/dev/full : plus de place sur le disque ; cette sortie n'est pas écrite "
                   "(rien n'a été remplacé).\n"))
        self.assertEqual(self.contents(), before)

    def test_when_only_one_could_be_put_in_its_place_it_is_named(self):
        for error, code, said in (
                (PermissionError(13, "denied"), 2,
                 "{} : accès refusé ; cette sortie n'est pas écrite (déjà écrit : {}).\n"),
                (KeyboardInterrupt(), 130, "Interrompu : déjà écrit : {1}.\n")):
            self.write_earlier()
            real = os.replace

            def replace(source, target):
                if str(target) == os.path.realpath(self.page_path):
                    raise error
                real(source, target)
            with mock.patch("os.replace", replace):
                self.assertEqual(run(*self.argv), (code, "", said.format(self.page_path, self.report_path)))
            self.assertEqual(self.page_path.read_text(), "ancienne")
            self.page_path.unlink()
            self.assertEqual(run("--from", self.report_path, "--html", self.page_path), (0, "", ""))
            self.assert_written()


@unittest.skipUnless(hasattr(os, "mkfifo"), "no named pipe on this system")
class Stopped(Outputs):
    def start(self, argv, seen, **streams):
        """A command that lives and is stopped by a pipe, once something has been seen."""
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), *map(str, argv)], stderr=subprocess.PIPE, env=UTF8, **streams,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a background job ignores it
        while not seen() and process.poll() is None:
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        return process

    def start_with_a_page_that_nobody_reads(self):
        """The report is whole beside its place, and stays there."""
        os.mkfifo(self.folder / "tube")
        argv = ["--case", self.case, "--output", self.report_path, "--html", self.folder / "tube"]
        staged = self.folder.glob
        return self.start(argv, lambda: any(path.stat().st_size > 1000 for path in staged(".atelier-*")),
                          stdout=subprocess.PIPE)

    def test_two_runs_write_into_one_folder_at_the_same_time(self):
        process = self.start_with_a_page_that_nobody_reads()
        other = self.folder / "autre.json"
        self.assertEqual(run("--case", self.case, "--output", other, "--html", self.page_path)[0], 0)
        self.assertEqual(len(list(self.folder.glob(".atelier-*.tmp"))), 1)
        self.assertFalse(self.report_path.exists())
        self.assertEqual((self.folder / "tube").read_bytes(), self.page_path.read_bytes())
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assert_written()
        self.assertEqual(other.read_bytes(), self.report_path.read_bytes())

    def test_before_the_last_output_is_whole_nothing_is_replaced(self):
        before = self.write_earlier()
        process = self.start_with_a_page_that_nobody_reads()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out, err.decode("utf-8")), (
            130, b"", "Interrompu : rien n'a été remplacé.\n"))
        self.assertEqual(self.contents(), before)

    def test_once_the_files_are_in_their_places_they_are_named(self):
        """Standard output is a full pipe: the files are written, and the table cannot be said."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, b"\n" * 4096)
        except BlockingIOError:
            os.set_blocking(write, True)
        process = self.start(self.argv, self.page_path.exists, stdout=write)
        process.send_signal(signal.SIGINT)
        os.close(write)
        err = process.stderr.readline().decode("utf-8")
        with open(read, "rb") as rest:
            rest.read()
        process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (
            130, "Interrompu : déjà écrit : {}, {}.\n".format(self.report_path, self.page_path)))
        self.assert_written()


class Streams(Outputs):
    def spawn_into(self, path, *argv):
        """The finished process of a command whose standard output is a new file."""
        with open(path, "wb") as file:
            return spawn(SCRIPT, *argv, stdout=file, env=UTF8)

    def test_the_file_where_standard_output_goes_holds_the_output_and_the_table_is_not_lost(self):
        link = self.folder / "lien.json"
        link.symlink_to("r.json")
        for option, path, start in (
                ("--output", self.report_path, b'{\n  "atelier"'), ("--output", link, b'{\n  "atelier"'),
                ("--html", self.report_path, b"<!DOCTYPE html>"), ("--export", self.report_path, b'{"id"')):
            process = self.spawn_into(self.report_path, "--case", self.case, option, path)
            self.assertEqual(process.returncode, 0)
            self.assertIn("fixe_96_0", process.stderr.decode("utf-8"))
            data = self.report_path.read_bytes()
            self.assertTrue(data.startswith(start) and data.rstrip().endswith((b"}", b"</html>")), data[:99])
            self.assertNotIn(b"Signature : atelier", data)

    def test_a_register_and_a_saved_report_go_there_too(self):
        process = self.spawn_into(
            self.report_path, "--citations", TESTS / "cas" / "citations.json", "--output", self.report_path)
        report = json.loads(self.report_path.read_text(encoding="utf-8"))
        self.assertEqual(report["citations"]["claim_support"]["fraction"], "7/17")
        self.assertIn("7/17", process.stderr.decode("utf-8"))
        process = self.spawn_into(self.page_path, "--from", self.report_path, "--html", self.page_path)
        self.assertEqual(process.returncode, 0)
        self.assertTrue(self.page_path.read_bytes().endswith(b"</html>\n"))

    def test_two_outputs_cannot_both_go_there(self):
        for other in ("-", self.report_path):
            process = self.spawn_into(
                self.report_path, "--case", self.case, "--output", self.report_path, "--html", other)
            self.assertEqual((process.returncode, process.stderr.decode("utf-8")), (
                2, "{} : deux sorties ne peuvent avoir le même nom ; changez-en une.\n".format(other)))
            self.assertEqual(self.report_path.read_bytes(), b"")

    def test_the_file_where_standard_error_goes_is_no_output(self):
        for both in (False, True):
            with open(self.report_path, "wb") as file:
                argv = [SCRIPT, "--case", self.case, "--output", self.report_path]
                process = subprocess.run(
                    [sys.executable, *map(str, argv)], stdout=file if both else subprocess.PIPE,
                    stderr=file, env=UTF8)
            self.assertEqual(process.returncode, 2)
            said = self.report_path.read_text(encoding="utf-8")
            self.assertEqual(said, "{} : la sortie d'erreur y va déjà ; donnez un autre nom.\n".format(
                self.report_path))

    def test_standard_output_never_ends_an_input(self):
        before = self.case.read_bytes()
        for name in (self.case, "/dev/stdout"):
            if os.path.exists(name):
                with open(self.case, "ab") as file:
                    process = spawn(SCRIPT, "--case", self.case, "--output", name, stdout=file, env=UTF8)
                self.assertEqual((process.returncode, process.stderr.decode("utf-8")), (
                    2, "{} : c'est un fichier d'entrée ; donnez un autre nom.\n".format(name)))
                self.assertEqual(self.case.read_bytes(), before)


class Paths(Outputs):
    def test_a_path_that_no_system_has(self):
        for option in ("--output", "--html", "--export"):
            self.assertEqual(run("--case", self.case, option, "a\0b"), (
                2, "", "a\\x00b : chemin invalide ; donnez un nom de fichier.\n"))
        for option in ("--case", "--citations"):
            self.assertEqual(run(option, "a\0b/c.json"), (2, "", "« a\\x00b/c.json » : chemin invalide.\n"))

    def test_a_document_on_another_drive_is_outside_the_folder(self):
        """As on Windows, where a link may lead to a path that has nothing in common with its own."""
        self.write(make_case(documents=[{"id": "d", "file": "texte.txt"}]))
        (self.folder / "texte.txt").write_text("Le préavis est de trois mois.", encoding="utf-8")
        real = os.path.realpath
        with mock.patch("os.path.realpath",
                        lambda path: "D:/texte.txt" if str(path).endswith("texte.txt") else real(path)):
            code, out, err = run("--case", self.case)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("documents[0] (d).file", err)
        self.assertIn("hors du dossier du fichier qui le nomme ; placez-le sous ce dossier.", err)

    def test_a_file_name_of_another_encoding(self):
        name = os.fsencode(str(self.folder)) + b"/cas\xe9.json"
        try:
            with open(name, "wb") as file:
                file.write(self.case.read_bytes())
        except OSError:
            self.skipTest("this file system takes UTF-8 names alone")
        process = spawn(SCRIPT, "--case", os.fsdecode(name), "--output", self.report_path, env=UTF8)
        self.assertEqual((process.returncode, process.stderr.decode("utf-8")), (0, ""))
        report = json.loads(self.report_path.read_text(encoding="utf-8"))
        self.assertEqual(report["case"]["file"], "cas?.json")

    def test_a_case_given_without_its_option(self):
        missing = "« {} » : l'option manque ; pour diagnostiquer ce cas, écrivez --case {}."
        for argv, sentence in (
                (["mon_cas.json"], missing.format("mon_cas.json", "mon_cas.json")),
                (["mon cas.json"], missing.format("mon cas.json", '"mon cas.json"')),
                (["--output", "r.json", "c.json"], missing.format("c.json", "c.json")),
                (["--case", "a.json", "b"],
                 "L'option « b » est inconnue. Possibles : --case, --output, --html, --from, --export, "
                 "--question, --contexts, --require, --baseline, --no-regression, --citations, --self-test, …."),
                (["--cas", "a.json"], "L'option « --cas » est inconnue. Vouliez-vous dire « --case » ?")):
            self.assertEqual(run(*argv), (2, "", sentence + "\n"))


class Forged(Outputs):
    def setUp(self):
        super().setUp()
        self.assertEqual(run(*self.argv)[0], 0)
        self.sound = self.page_path.read_text(encoding="utf-8")

    def draw(self, **figures):
        """(exit code, page) of the report with some figures of its case changed."""
        report = json.loads(self.report_path.read_text(encoding="utf-8"))
        report["case"].update(figures)
        target = self.folder / "faux.html"
        code, _, err = run("--from", self.write(json.dumps(report), "faux.json"), "--html", target)
        return code, err or target.read_text(encoding="utf-8")

    def test_the_page_counts_the_questions_that_it_is_given(self):
        for figure in (30_000_000, 0, -1, "beaucoup", None):
            self.assertEqual(self.draw(questions=figure), (0, self.sound))

    def test_half_a_pair_in_a_title_is_no_traceback(self):
        self.assertEqual(self.draw(title="\ud800"), self.draw(title="?"))


if __name__ == "__main__":
    unittest.main()
