"""The command as a person runs it: the golden run, exit codes, consoles, outputs that must not be lost."""

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tarfile
import unittest
from unittest import mock

from support import ROOT, TESTS, TestCase, atelier, make_case, pythons, question, run, spawn

SCRIPT, CASE, GOLDEN = ROOT / "atelier.py", ROOT / "cas_fr.json", TESTS / "cas" / "cas_fr.attendu.json"
OTHER_SQLITE = TESTS / ".sqlite" / "bin" / "python"
UTF8 = {**os.environ, "PYTHONIOENCODING": "utf-8"}
RECENT = {version: path for version, path in pythons().items() if tuple(map(int, version.split("."))) >= (3, 9)}


def without_environment(data):
    return [line for line in data.decode("utf-8").splitlines() if not line.startswith('  "environment": ')]


class Golden(TestCase):
    def test_the_reference_case_gives_the_golden_report_on_every_python_and_hash_seed(self):
        expected, runs = without_environment(GOLDEN.read_bytes()), {}
        for version, python in RECENT.items():
            for seed in ("0", "1"):
                runs[version, seed] = subprocess.Popen([python, str(SCRIPT), "--output", "-"],
                                                       stdout=subprocess.PIPE,
                                                       stderr=subprocess.PIPE,
                                                       env={**UTF8, "PYTHONHASHSEED": seed})
        for (version, seed), process in runs.items():
            out, err = process.communicate()
            with self.subTest(python=version, seed=seed):
                self.assertEqual(process.returncode, 0, err)
                self.assertEqual(without_environment(out), expected)

    @unittest.skipUnless(
        OTHER_SQLITE.exists(), "no environment of another SQLite: run python3 -m venv tests/.sqlite "
        "&& tests/.sqlite/bin/python -m pip install pysqlite3-binary")
    def test_another_sqlite_gives_the_golden_report(self):
        script = """import sys, pysqlite3.dbapi2
sys.modules.update({"sqlite3": pysqlite3, "sqlite3.dbapi2": pysqlite3.dbapi2})
sys.path.insert(0, sys.argv[1])
import atelier
code = atelier.main(["--output", "-"])
print(pysqlite3.sqlite_version, file=sys.stderr)
sys.exit(code)"""
        process = spawn("-c", script, ROOT, python=OTHER_SQLITE, env=UTF8)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual(without_environment(process.stdout), without_environment(GOLDEN.read_bytes()))
        self.assertEqual(
            json.loads(process.stdout)["environment"]["sqlite"],
            process.stderr.decode("utf-8").split()[-1])

    def test_the_reference_table(self):
        report = json.loads(GOLDEN.read_text(encoding="utf-8"))
        columns = ("passages_indexed", "words_indexed", "complete_contexts", "answerable_questions", "facts_covered", "facts_required",
                   "words_sent", "redundant_words")
        self.assertEqual({each["id"]: [each["summary"][column] for column in columns] for each in report["variants"]}, {
            "fixe_48_0": [10, 432, 4, 5, 9, 10, 600, 0],
            "fixe_96_0": [6, 432, 3, 5, 8, 10, 600, 0],
            "fixe_48_16": [13, 592, 5, 5, 10, 10, 600, 101],
            "paragraphes": [6, 432, 5, 5, 10, 10, 600, 0]})
        self.assertEqual([report["case"][key] for key in ("words", "questions", "answerable_questions", "facts")], [432, 6, 5, 10])

    def test_the_three_told_cases(self):
        report = json.loads(GOLDEN.read_text(encoding="utf-8"))
        hotel = question(report, "fixe_48_0", "q_hotel")
        self.assertIn("140 euros", hotel["hits_before_budget"][0]["text"])
        self.assertIn("190 euros si un accord écrit", hotel["hits_before_budget"][1]["text"])
        self.assertEqual((hotel["all_required_covered"], hotel["words_sent"]), (True, 120))
        train = question(report, "fixe_96_0", "q_train")
        lost = train["facts"][1]
        self.assertEqual([hit["kept_words"] for hit in train["hits_before_budget"][:2]], [96, 24])
        self.assertIn(lost["quote"], train["hits_before_budget"][1]["text"])
        self.assertEqual((lost["words"], lost["words_covered"], lost["loss"]["stage"], lost["loss"]["rank"]), (22, 0, "cut_by_budget", 2))
        overlapped = question(report, "fixe_48_16", "q_train")
        self.assertEqual((overlapped["all_required_covered"], overlapped["redundant_words"]), (True, 32))
        for each in report["variants"]:
            absent = question(report, each["id"], "q_absente")
            self.assertTrue(absent["hits_before_budget"])
            self.assertIsNone(absent["all_required_covered"])

    def test_the_table_fits_80_columns_whatever_the_case(self):
        long = "très_long_identifiant_" * 5
        cases = [CASE, self.write(make_case(title="Titre " * 40)), self.write(make_case(
            "Un délai " + "mot " * 200 + "est dû.", "est dû", questions=[{"id": long, "text": "Quel délai ?", "required_facts": [long]}],
            facts=[{"id": long, "document": "d", "quote": "est dû"}]), "long.json")]
        for path in cases:
            code, out, _ = run("--case", path)
            self.assertEqual(code, 0)
            self.assertEqual([line for line in out.splitlines() if len(line) > 80], [])
            self.assertIn("Signature : atelier", out)

    def test_many_losses_are_counted_by_stage(self):
        facts = [{"id": "f{}".format(n), "document": "d", "quote": "zéro{}".format(n)} for n in range(4)]
        case = make_case(" ".join("zéro{}".format(n) for n in range(4)), facts=facts,
                         questions=[{"id": "q", "text": "Quoi ?", "required_facts": [fact["id"] for fact in facts]}])
        _, out, _ = run("--case", self.write(case))
        self.assertIn("  fixe_48_0                  4  sans mot commun avec la question\n", out)

    def test_every_stage_of_loss_has_its_words(self):
        far = ["mot{}".format(number) for number in range(300)]
        far[249:252] = ["préavis", "trois", "mois"]
        header = "Contrat\nRéférence : C-1\nType : essai\nParties : A ; B\nDate de signature : 2024-01-15\n\nArticle 1 – Objet\nUn essai."
        twice = "Chapitre 1\n\nPréavis : un mois.\n\nChapitre 2\n\nPréavis : un mois."
        filtered = make_case(documents=[{"id": "d", "text": "Trois mois.", "pays": "FR"}], quote="Trois mois")
        filtered["questions"][0]["filters"] = {"pays": "BE"}
        losses = {
            "filtered_out": (filtered, "pays = FR (demandé : BE)"), "not_indexed": (make_case(
                documents=[{"id": "d", "structure": "contract", "text": header}],
                quote="Date de signature : 2024-01-15",
                variants=[{"id": "v", "unit": "sections",
                           "max_chars": 500}]), "mots 12 à 16"), "cut_by_budget": (make_case(
                               " ".join(far), "trois mois"), "d#0001, rang 1, il manque 132 mots au budget"),
            "split_at_boundary": (make_case(
                "alpha " * 46 + "un délai de six semaines " + "préavis " * 20,
                "un délai de six semaines",
                settings={"top_k": 1},
                variants=[{"id": "v", "unit": "words",
                           "size": 48}]), "d#0001 (sans rang) + d#0002 (rang 1)"), "not_matched": (make_case(
                               "Un délai.\n\nTrois mois.", "Trois mois"), "d#0002"), "ranked_too_low": (
                                   make_case(twice,
                                             facts=[{
                                                 "id": "f", "document": "d", "quote": "Préavis : un mois.",
                                                 "start": 8}],
                                             settings={"top_k": 1}), "d#0004, rang 2")}
        self.assertEqual(list(losses), [stage.id for stage in atelier.STAGES])
        for stage, (case, words) in losses.items():
            case.setdefault("variants", [{"id": "v", "unit": "paragraphs"}])
            code, out, err = run("--case", self.write(case))
            self.assertEqual(code, 0, err)
            self.assertIn("  v · q · f\n    {} : {}\n".format(atelier.STAGE[stage].label, words), out)

class Usage(TestCase):
    def test_faults_of_the_command_line(self):
        for argv, sentence in (
            (["--outptu", "x"], "L'option « --outptu » est inconnue. Vouliez-vous dire « --output » ?"),
            (["-x"], "L'option « -x » est inconnue. Possibles : --case, --output, --html, --from, --export, "
             "--question, --contexts, --require, --baseline, --no-regression, --citations, --self-test, …."), ([
                 "--case"], "L'option --case attend une valeur. Voyez --help."), ([
                     "--self-test=oui"], "L'option --self-test n'attend pas de valeur. Voyez --help."), ([
                         "--out", "x"], "L'option « --out » est inconnue. Vouliez-vous dire « --output » ?"),
            (["--case", ""], "--case : chemin vide ; donnez un nom de fichier."), ([
                "--help=x"], "L'option --help n'attend pas de valeur. Voyez --help."), ([
                    "--output", "a", "--output",
                    "b"], "L'option --output est donnée deux fois ; gardez-en une."), ([
                        "--self-test", "--case",
                        ""], "--case : chemin vide ; donnez un nom de fichier."), ([
                            "--output", ""], "--output : chemin vide ; donnez un nom de fichier."), ([
                                "--self-test", "--output",
                                "x"], "--self-test s'emploie seul : il ne lit ni n'écrit aucun fichier."), ([
                                    "--case", "a\0b"], "« a\\x00b » : chemin invalide.")):
            with self.subTest(argv=argv):
                self.assertEqual(run(*argv), (2, "", sentence + "\n"))

    def test_version_and_help(self):
        self.assertEqual(run("--version"), (0, "atelier.py 1.0.0\n", ""))
        self.assertEqual(run("--help")[0], 0)
        self.assertEqual(run("-h"), run("--help"))

    def test_a_python_without_fts5_or_sqlite3(self):
        (self.folder / "sqlite3.py").write_text(
            "sqlite_version, sqlite_version_info = '3.40.1', (3, 40, 1)\n"
            "class Error(Exception): pass\nclass OperationalError(Error): pass\n"
            "class connect:\n    def __init__(self, *_, **__): pass\n"
            "    def execute(self, sql): raise OperationalError('no such function: fts5_source_id')\n", encoding="utf-8")
        for argv in ([], ["--self-test"]):
            process = spawn(SCRIPT, *argv, env={**UTF8, "PYTHONPATH": str(self.folder)})
            self.assertEqual((process.returncode, process.stdout, process.stderr.decode("utf-8")), (
                2, b"", "Le SQLite de ce Python est compilé sans FTS5 ; prenez un Python dont SQLite a FTS5.\n"))
        with mock.patch.dict(sys.modules, {"sqlite3": None}):
            self.assertEqual(run(), (2, "", "Ce Python n'a pas le module sqlite3 ; prenez un Python qui l'a.\n"))
        with mock.patch("sqlite3.sqlite_version_info", (3, 26, 0)), mock.patch("sqlite3.sqlite_version", "3.26.0"):
            self.assertEqual(run(), (2, "", "SQLite 3.26.0 est trop ancien ; il faut SQLite 3.27 ou plus récent.\n"))

    def test_an_sql_error_stops_the_run_with_its_cause(self):
        class Full(sqlite3.Connection):
            def refuse(self, sql, *rest):
                if sql.startswith("INSERT"):
                    raise sqlite3.OperationalError("database or disk is full")
                return super().execute(sql, *rest)
            execute = executemany = refuse
        connect = sqlite3.connect
        with mock.patch("sqlite3.connect", lambda *args, **named: connect(*args, factory=Full, **named)):
            self.assertEqual(run(),
                             (2, "", "La recherche a échoué dans SQLite : database or disk is full.\n"))

    def test_old_pythons_are_refused_in_one_sentence(self):
        old = {version: path for version, path in pythons().items() if version not in RECENT}
        if not old:
            self.skipTest("no Python 3.7 or 3.8 on this machine")
        for version, python in old.items():
            process = spawn(SCRIPT, python=python, env=UTF8)
            self.assertEqual((process.returncode, process.stdout, process.stderr.decode("utf-8")), (
                2, b"", "atelier.py demande Python 3.9 ou plus récent ; celui-ci est Python {}.\n".format(version.rsplit(".", 1)[0])))


class Consoles(TestCase):
    def test_narrow_consoles_replace_what_they_cannot_show(self):
        for encoding, sign in (("cp1252", "é".encode("cp1252")), ("ascii", b"?")):
            environment = {**os.environ, "PYTHONIOENCODING": encoding}
            process = spawn(SCRIPT, "--self-test", env=environment)
            self.assertEqual((process.returncode, process.stderr), (0, b""))
            self.assertIn(b"13 contr" + (b"?" if sign == b"?" else "ô".encode("cp1252")) + b"les, 13 r" + sign + b"ussis", process.stdout)
            process = spawn(SCRIPT, "--case", self.write(make_case(title="日本 — cas")), "--output", "-", env=environment)
            self.assertEqual(process.returncode, 0, process.stderr)
            self.assertIn(b"?? ", process.stderr)
            self.assertEqual(json.loads(process.stdout.decode("utf-8"))["case"]["title"], "日本 — cas")
            process = spawn(SCRIPT, "--case", self.folder / "日本.json", env=environment)
            self.assertEqual(process.returncode, 2)
            self.assertNotIn(b"Traceback", process.stderr)

    def test_a_reader_that_leaves_ends_the_run_quietly(self):
        for argv in ([], ["--output", "-"], ["--output", self.folder / "r.json"], ["--self-test"], ["--help"]):
            read, write = os.pipe()
            os.close(read)
            process = spawn(SCRIPT, *argv, stdout=write, env=UTF8)
            os.close(write)
            self.assertEqual(process.returncode, 0, process.stderr)
            self.assertNotIn(b"rror", process.stderr)
        self.assertEqual(len(json.loads((self.folder / "r.json").read_text(encoding="utf-8"))["variants"]), 4)

    def test_a_full_disk_behind_standard_output(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full on this machine")
        for argv, sentence in (([], "sortie standard : plus de place sur le disque.\n"),
                               (["--output", "-"], "sortie standard : plus de place sur le disque ; cette sortie n'est pas écrite.\n")):
            with open("/dev/full", "wb") as full:
                process = spawn(SCRIPT, *argv, stdout=full, env=UTF8)
            self.assertEqual((process.returncode, process.stderr.decode("utf-8")), (2, sentence))

    def test_a_closed_standard_output(self):
        process = subprocess.run(["sh", "-c", '"$0" "$1" >&-', sys.executable, str(SCRIPT)], stderr=subprocess.PIPE)
        self.assertEqual((process.returncode, process.stderr), (0, b""))
        process = subprocess.run(["sh", "-c", '"$0" "$1" --output - >&-', sys.executable, str(SCRIPT)], stderr=subprocess.PIPE, env=UTF8)
        self.assertEqual((process.returncode, process.stderr.decode("utf-8")), (
            2, "sortie standard : descripteur fermé ; cette sortie n'est pas écrite.\n"))

    def test_a_full_disk_behind_standard_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full on this machine")
        for argv in (["--case", "absent.json"], ["--bad"]):
            with open("/dev/full", "wb") as full:
                process = subprocess.run([sys.executable, str(SCRIPT), *argv], stdout=subprocess.PIPE, stderr=full)
            self.assertEqual(process.returncode, 2)

    def test_standard_output_takes_the_report_and_standard_error_the_table(self):
        for name in ("-", "/dev/stdout", "/dev/fd/1"):
            if name != "-" and not os.path.exists(name):
                continue
            process = spawn(SCRIPT, "--output", name, env=UTF8)
            self.assertEqual(len(json.loads(process.stdout.decode("utf-8"))["variants"]), 4)
            self.assertIn("fixe_96_0", process.stderr.decode("utf-8"))
            target = self.folder / "sortie.json"
            with open(target, "ab") as file:  # behind the name there is a regular file, which must not be replaced
                inode = os.fstat(file.fileno()).st_ino
                spawn(SCRIPT, "--output", name, stdout=file, env=UTF8)
            self.assertEqual(os.stat(target).st_ino, inode)
            self.assertEqual(len(json.loads(target.read_text(encoding="utf-8"))["variants"]), 4)
            target.unlink()

    def test_a_descriptor_of_the_caller_is_written_where_it_stands(self):
        if not os.path.exists("/dev/fd"):
            self.skipTest("no /dev/fd on this machine")
        with open(self.folder / "journal", "a+b") as file:
            file.write(b"avant\n")
            file.flush()
            process = spawn(SCRIPT, "--output", "/dev/fd/{}".format(file.fileno()), pass_fds=[file.fileno()], env=UTF8)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertTrue((self.folder / "journal").read_bytes().startswith(b'avant\n{\n  "atelier"'))


class Terminal(TestCase):
    def test_a_terminal_sees_progress_and_where_the_files_are(self):
        """A pseudo-terminal as standard error; nothing of it when redirected."""
        try:
            import pty
        except ImportError:
            self.skipTest("no pseudo-terminal on this system")
        case = self.write(make_case("Un préavis.\n\n" + "mot " * 200, quote="préavis"))
        master, slave = pty.openpty()
        argv = [SCRIPT, "--case", case, "--output", self.folder / "r.json", "--html", self.folder / "p.html"]
        process = subprocess.run([sys.executable, *map(str, argv)], stdout=subprocess.PIPE, stderr=slave, env=UTF8)
        os.close(slave)
        said = os.read(master, 65536).decode("utf-8")
        os.close(master)
        self.assertEqual(process.returncode, 0)
        self.assertRegex(said, r"\r 25 % des questions.*\r 75 % des questions")
        self.assertTrue(said.replace("\r\n", "\n").endswith("Écrit : {}\nÉcrit : {}\n".format(self.folder / "r.json", self.folder / "p.html")), said)
        process = spawn(*argv, env=UTF8)
        self.assertEqual((process.returncode, process.stderr), (0, b""))


class Outputs(TestCase):
    def setUp(self):
        super().setUp()
        self.case = self.write(make_case(documents=[{"id": "d", "file": "texte.txt"}]))
        text = "Le préavis est de trois mois.\n\n" + "mot " * 100  # so long that no two variants cut alike
        (self.folder / "texte.txt").write_text(text, encoding="utf-8")
        self.target = self.folder / "rapport.json"

    def output(self, path):
        return run("--case", self.case, "--output", path)

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_refused_outputs_leave_everything_as_it_was(self):
        os.link(self.case, self.folder / "jumeau.json")
        (self.folder / "lien.json").symlink_to("cas.json")
        (self.folder / "boucle").symlink_to("boucle")
        locked = self.folder / "verrou.json"
        locked.write_text("gardé")
        locked.chmod(0o444)
        before = {path.name: path.read_bytes() for path in self.folder.iterdir() if path.exists()}
        for name, problem in (("cas.json", "c'est un fichier d'entrée ; donnez un autre nom."), ("texte.txt", "c'est un fichier d'entrée ; donnez un autre nom."),
                              ("jumeau.json", "c'est un fichier d'entrée ; donnez un autre nom."), ("lien.json", "c'est un fichier d'entrée ; donnez un autre nom."),
                              ("", "c'est un dossier ; donnez un nom de fichier."), ("absent/rapport.json", "le dossier n'existe pas ; créez-le."),
                              ("verrou.json", "fichier en lecture seule ; donnez un autre nom."), ("texte.txt/rapport.json", "un élément du chemin n'est pas un dossier."), ("boucle", "liens en boucle ; donnez un autre nom.")):
            with self.subTest(name=name):
                path = self.folder / name
                self.assertEqual(self.output(path), (2, "", "{} : {}\n".format(path, problem)))
        self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir() if path.exists()}, before)
        self.assertTrue((self.folder / "boucle").is_symlink())

    def test_no_output_may_name_a_file_that_is_read(self):
        contexts = self.folder / "moteur.jsonl"
        contexts.write_text('{"question": "q", "context": []}', encoding="utf-8")
        self.output(self.target)
        for path, argv in ((contexts, [
                "--case", self.case, "--contexts", contexts, "--output", contexts]), (self.target, [
                    "--case", self.case, "--baseline", self.target, "--html", self.target]), (self.target, [
                        "--from", self.target, "--html", self.target])):
            before = path.read_bytes()
            self.assertEqual(run(*argv),
                             (2, "", "{} : c'est un fichier d'entrée ; donnez un autre nom.\n".format(path)))
            self.assertEqual(path.read_bytes(), before)

    def test_the_table_leaves_standard_output_to_whatever_file_goes_there(self):
        table = run("--case", self.case)[1]
        code, out, err = run("--case", self.case, "--output", self.target, "--export", "-")
        self.assertEqual((code, err), (0, table))
        self.assertEqual(json.loads(out.splitlines()[0])["id"], "fixe_48_0/d#0001")
        code, out, err = run("--case", self.case, "--output",
                             "-")  # to a stream of text, without bytes beneath
        self.assertEqual((code, err, out), (0, table, self.target.read_text(encoding="utf-8")))

    def test_a_system_error_without_a_name_has_its_number(self):
        with mock.patch("os.replace", side_effect=OSError(9999, "Odd")):
            self.assertEqual(self.output(self.target), (
                2, "", "{} : erreur système 9999 ; cette sortie n'est pas écrite.\n".format(self.target)))

    def test_the_script_itself_is_no_output(self):
        self.assertEqual(run("--output", SCRIPT)[0], 2)
        self.assertEqual(run("--output", CASE)[0], 2)

    def test_a_links_target_is_replaced_not_the_link(self):
        (self.folder / "reel.json").write_text("ancien")
        (self.folder / "reel.json").chmod(0o640)
        self.target.symlink_to("reel.json")
        self.assertEqual(self.output(self.target)[0], 0)
        self.assertTrue(self.target.is_symlink())
        self.assertIn("variants", json.loads((self.folder / "reel.json").read_text(encoding="utf-8")))
        self.assertEqual((self.folder / "reel.json").stat().st_mode & 0o777, 0o640)
        (self.folder / "pendant.json").symlink_to("neuf.json")
        self.assertEqual(self.output(self.folder / "pendant.json")[0], 0)
        self.assertTrue((self.folder / "neuf.json").is_file())

    def test_a_failure_while_writing_leaves_the_earlier_report(self):
        self.target.write_text("ancien")
        before = self.files()
        for error, code, sentence in (
            (OSError(28, "No space left"), 2,
             "{} : plus de place sur le disque ; cette sortie n'est pas écrite.\n".format(
                 self.target)), (KeyboardInterrupt(), 130, "Interrompu : rien n'a été remplacé.\n")):
            with mock.patch("os.replace", side_effect=error):
                self.assertEqual(self.output(self.target), (code, "", sentence))
            self.assertEqual((self.target.read_text(), self.files()), ("ancien", before))

    def test_a_disk_that_fills_in_the_middle_of_a_report(self):
        try:
            import resource
        except ImportError:
            self.skipTest("no limit on the size of files on this system")
        self.target.write_text("ancien")
        before = self.files()
        process = spawn(SCRIPT, "--case", self.case, "--output", self.target, env=UTF8,
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
        self.assertEqual((process.returncode, process.stdout, process.stderr.decode("utf-8")), (
            2, b"", "{} : fichier trop grand ; cette sortie n'est pas écrite.\n".format(self.target)))
        self.assertEqual((self.target.read_text(), self.files()), ("ancien", before))

    def test_an_interruption_in_the_middle_of_a_long_run(self):
        if not hasattr(os, "mkfifo"):
            self.skipTest("no named pipe on this system")
        self.target.write_text("ancien")
        words = " ".join("mot{}".format(number % 5000) for number in range(400_000))
        case = make_case(words + " trois mois", "trois mois", questions=[
            {"id": "q{}".format(n), "text": "mot{} mot{}".format(n, n + 1), "required_facts": ["f"]} for n in range(12_000)])
        os.mkfifo(self.folder / "tube")  # so that the run is known to have begun
        process = subprocess.Popen([sys.executable, str(SCRIPT), "--case", str(self.folder / "tube"), "--output", str(self.target)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=UTF8,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a background job ignores it
        with open(self.folder / "tube", "w", encoding="utf-8") as tube:
            json.dump(case, tube)
        try:
            process.communicate(timeout=1)
            self.fail("the run was too short to be interrupted")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out, err.decode("utf-8").splitlines()[-1]), (130, b"", "Interrompu : rien n'a été remplacé."))
        self.assertEqual((self.target.read_text(), self.files()), ("ancien", ["cas.json", "rapport.json", "texte.txt", "tube"]))

    def test_what_is_no_regular_file_is_written_to_and_never_replaced(self):
        if os.path.exists("/dev/full"):
            device = os.stat("/dev/full").st_rdev
            self.assertEqual(self.output("/dev/full"), (2, "", "/dev/full : plus de place sur le disque ; cette sortie n'est pas écrite.\n"))
            self.assertEqual(os.stat("/dev/full").st_rdev, device)
        if hasattr(os, "mkfifo"):
            os.mkfifo(self.folder / "tube")
            reader = subprocess.Popen([sys.executable, "-c", "import sys; print(len(open(sys.argv[1]).read()))", str(self.folder / "tube")],
                                      stdout=subprocess.PIPE)
            self.assertEqual(self.output(self.folder / "tube")[0], 0)
            self.assertGreater(int(reader.communicate()[0]), 1000)
            self.assertFalse((self.folder / "tube").is_file())

    def test_the_same_case_gives_the_same_bytes(self):
        self.output(self.target)
        first = self.target.read_bytes()
        self.output(self.target)
        self.assertEqual(self.target.read_bytes(), first)
        self.assertNotIn(str(self.folder).encode(), first)


class Repository(TestCase):
    def test_an_archive_holds_exactly_the_four_files(self):
        if not (ROOT / ".git").exists():
            self.skipTest("not a git clone")
        archive = subprocess.run(["git", "-C", str(ROOT), "archive", "--worktree-attributes", "HEAD"], stdout=subprocess.PIPE, check=True).stdout
        names = tarfile.open(fileobj=io.BytesIO(archive)).getnames()
        self.assertEqual(sorted(names), ["LICENSE", "README.md", "atelier.py", "cas_fr.json"])

    def test_only_the_standard_library_is_imported(self):
        if not hasattr(sys, "stdlib_module_names"):
            self.skipTest("this Python does not list its standard library")
        source = SCRIPT.read_text(encoding="utf-8")
        import ast
        names = {alias.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
        self.assertEqual({name.split(".")[0] for name in names} - set(sys.stdlib_module_names), set())


if __name__ == "__main__":
    unittest.main()
