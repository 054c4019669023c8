"""Speed and memory, as ratios against something else run beside it; prints, and judges nothing.

    python3 tests/bench.py                all of it, some minutes
    python3 tests/bench.py --rounds 5     medians of more interleaved runs
    python3 tests/bench.py --copies 1     without (c)'s larger corpora
    python3 tests/bench.py --bm25s PYTHON     one that has bm25s; else an environment is made for it

(a) the reference run against a Python that imports argparse, json and sqlite3 and compiles atelier.py's text;
(b) the Chroma case, four variants and the report written, against a bare loop that cuts, indexes and searches
    and keeps no text, and against the package bm25s: every word searched, then with a stop list;
(c) the same with 4 and 16 distinct copies of the corpora and the stop list: time a question, and peak memory;
(d) absent quotes, a filter for each question, a long TREC run, each against the same without.
(b) and (c) need the data that tests/chroma.py names; bm25s is left out where it cannot be installed.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import chroma

SCRIPT = Path(__file__).resolve().parent.parent / "atelier.py"
BASELINE = ("import argparse, json, sqlite3; "
            "compile(open({!r}, encoding='utf-8').read(), 'atelier.py', 'exec')".format(str(SCRIPT)))

CUTS = r'''
import json, re, sys

case = json.load(open(sys.argv[1], encoding="utf-8"))
stopped = set(case["settings"].get("stop_words", ()))


def windows(text, size, overlap):
    words = [match.span() for match in re.finditer(r"\S+", text)]
    for start in range(0, max(len(words) - overlap, 1), size - overlap):
        yield text[words[start][0]:words[min(start + size, len(words)) - 1][1]]


def paragraphs(text):
    return (part for part in re.split(r"\n[ \t]*\n", text) if part.strip())


cuts = [lambda text, size=size, overlap=overlap: windows(text, size, overlap)
        for size, overlap in ((48, 0), (96, 0), (48, 16))] + [paragraphs]
'''

BARE_LOOP = CUTS + r'''
import sqlite3

for cut in cuts:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE passages USING fts5("
                     "text, content = '', tokenize = 'unicode61 remove_diacritics 2')")
    passages = sorted(("{}#{:04}".format(document["id"], number), text) for document in case["documents"]
                      for number, text in enumerate(cut(document["text"]), 1))
    database.executemany("INSERT INTO passages(rowid, text) VALUES (?, ?)",
                         enumerate(text for _, text in passages))
    ids = [id for id, _ in passages]
    del passages
    for question in case["questions"]:
        found = re.findall(r"[^\W_]+", question["text"].lower())
        terms = dict.fromkeys(term for term in found if term not in stopped)
        query = " OR ".join('"%s"' % term for term in terms)
        hits = database.execute("SELECT rowid, bm25(passages) AS score FROM passages WHERE passages MATCH ?"
                                " ORDER BY score, rowid LIMIT 3", (query,))
        best = [(ids[row], score) for row, score in hits]
    database.close()
'''

BM25S_LOOP = CUTS + r'''
import bm25s

for cut in cuts:
    passages = [text for document in case["documents"] for text in cut(document["text"])]
    retriever = bm25s.BM25(k1=1.2, b=0.75)
    options = {"stopwords": sorted(stopped), "token_pattern": r"(?u)[^\W_]+", "show_progress": False}
    retriever.index(bm25s.tokenize(passages, **options), show_progress=False)
    questions = bm25s.tokenize([question["text"] for question in case["questions"]], **options)
    retriever.retrieve(questions, k=3, show_progress=False)
'''

MEASURE = r'''
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
'''


def timed(command):
    """Seconds of a whole process, which may refuse its case (2) but not crash."""
    start = time.perf_counter()
    code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    if code not in (0, 2):
        raise SystemExit("exit code {}: {}".format(code, " ".join(command)))
    return time.perf_counter() - start


def interleaved(rounds, **commands):
    """Median seconds of each command, run in turn."""
    times = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(timed(command))
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def peak_megabytes(command):
    measure = [sys.executable, "-c", MEASURE, *command]
    kilobytes = int(subprocess.run(measure, stdout=subprocess.PIPE, check=True).stdout)
    return kilobytes / (1024 * 1024 if sys.platform == "darwin" else 1024)


def bench_start(rounds, folder):
    python = [sys.executable, "-I", "-S"]
    seconds = interleaved(rounds * 10, run=python + [str(SCRIPT)], baseline=python + ["-c", BASELINE],
                          report=python + [str(SCRIPT), "--output", os.path.join(folder, "report.json")])
    print("(a) reference run {:.1f} ms, with its report {:.1f} ms, imports and compilation {:.1f} ms: "
          "ratios {:.2f} and {:.2f}".format(
              seconds["run"] * 1000, seconds["report"] * 1000, seconds["baseline"] * 1000,
              seconds["run"] / seconds["baseline"], seconds["report"] / seconds["baseline"]))


def write_case(case, folder, name="case.json"):
    path = os.path.join(folder, name)
    Path(path).write_text(json.dumps(case, ensure_ascii=False), encoding="utf-8")
    return path


def find_bm25s(given, folder):
    """A Python that has bm25s: given, or of an environment made in a folder; None when it cannot be."""
    if given:
        return given
    python = os.path.join(folder, "venv", "Scripts" if os.name == "nt" else "bin", "python")
    made = [[sys.executable, "-m", "venv", os.path.join(folder, "venv")],
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "bm25s"]]
    try:
        for command in made:
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError):
        print("    bm25s left out: it could not be installed")
        return None
    return python


def bench_corpus(title, stop_words, copies, rounds, folder, bm25s=None):
    case = chroma.make_case(copies=copies, stop_words=stop_words)
    path, target = write_case(case, folder), os.path.join(folder, "report.json")
    words = sum(len(document["text"].split()) for document in case["documents"])
    run = [sys.executable, str(SCRIPT), "--case", path, "--output", target]
    bare = [sys.executable, "-c", BARE_LOOP, path]
    others = {"bm25s": [bm25s, "-c", BM25S_LOOP, path]} if bm25s else {}
    seconds = interleaved(rounds, run=run, bare=bare, **others)
    memory = {name: peak_megabytes(command) for name, command in (("run", run), ("bare", bare))}
    print("{}, {} words: run {:.2f} s, bare loop {:.2f} s, ratio {:.2f}; "
          "{:.2f} µs a question and thousand words; peak {:.0f} MB against {:.0f}, ratio {:.2f}; "
          "report {:.1f} MB".format(
              title, words, seconds["run"], seconds["bare"], seconds["run"] / seconds["bare"],
              seconds["run"] / len(case["questions"]) / words * 1e9, memory["run"], memory["bare"],
              memory["run"] / memory["bare"], os.path.getsize(target) / 1e6))
    if bm25s:
        print("    bm25s {:.2f} s, ratio {:.2f}".format(seconds["bm25s"], seconds["run"] / seconds["bm25s"]))


def bench_page(rounds, folder):
    path = write_case(chroma.make_case(stop_words=chroma.ENGLISH_STOP_WORDS), folder)
    page = os.path.join(folder, "page.html")
    run = [sys.executable, str(SCRIPT), "--case", path, "--output", os.path.join(folder, "report.json")]
    seconds = interleaved(rounds, page=run + ["--html", page], run=run)
    print("    its page: {:.2f} s more than the run's {:.2f} s, ratio {:.2f}; {:.2f} MB".format(
        seconds["page"] - seconds["run"], seconds["run"], seconds["page"] / seconds["run"] - 1,
        os.path.getsize(page) / 1e6))


def random_words(count, seed=0):
    chooser = random.Random(seed)
    return ["mot{}".format(chooser.randrange(5000)) for _ in range(count)]


def bench_pair(title, rounds, slow, plain):
    """A command beside one that differs from it by the thing measured alone."""
    python = [sys.executable, str(SCRIPT)]
    seconds = interleaved(rounds, slow=python + slow, plain=python + plain)
    print("(d) {}: {:.2f} s, without {:.2f} s, ratio {:.2f}".format(
        title, seconds["slow"], seconds["plain"], seconds["slow"] / seconds["plain"]))


def bench_absent_quotes(rounds, folder):
    words = random_words(100_000)
    quotes = [words[start:start + 12] for start in range(0, 99_000, 330)]

    def case(quoted):
        return {"documents": [{"id": "d", "text": " ".join(words)}],
                "facts": [{"id": "f{}".format(number), "document": "d", "quote": " ".join(quote)}
                          for number, quote in enumerate(quoted)],
                "questions": [{"id": "q", "text": "mot1 ?", "required_facts": ["f0"]}]}
    absent = [quote[:6] + ["absent"] + quote[7:] for quote in quotes]
    bench_pair("{} absent quotes in 100,000 words, against present ones".format(len(quotes)), rounds,
               ["--case", write_case(case(absent), folder, "absent.json")],
               ["--case", write_case(case(quotes), folder, "present.json")])


def bench_filters(rounds, folder):
    names = ["c{:04}".format(number) for number in range(2000)]
    documents = [{"id": name, "reference": name, "text": " ".join(random_words(120, name))} for name in names]
    facts = [{"id": name, "document": name, "quote": document["text"]}
             for name, document in zip(names, documents)]
    questions = [{"id": name, "text": "mot1 mot2 mot3 mot4 ?", "required_facts": [name]}
                 for name in names[:300]]
    filtered = [dict(question, filters={"reference": question["id"]}) for question in questions]
    cases = [write_case({"documents": documents, "facts": facts, "questions": asked}, folder, name)
             for asked, name in ((filtered, "filtered.json"), (questions, "plain.json"))]
    bench_pair("2,000 contracts, 300 questions, a filter for each question", rounds,
               ["--case", cases[0]], ["--case", cases[1]])


def bench_trec(rounds, folder):
    words = random_words(20_000)
    questions = [{"id": "q{}".format(number), "text": "mot{} ?".format(number), "required_facts": ["f"]}
                 for number in range(100)]
    facts = [{"id": "f", "document": "d", "quote": " ".join(words[:9]), "start": 0}]
    documents = [{"id": "d", "text": " ".join(words)}]
    path = write_case({"documents": documents, "questions": questions, "facts": facts}, folder, "trec.json")
    run = os.path.join(folder, "run.trec")
    lines = ["{} Q0 fixe_48_0/d#{:04} {} {} x\n".format(question["id"], rank * 4, rank, 100 - rank)
             for question in questions for rank in range(1, 101)]
    Path(run).write_text("".join(lines), encoding="utf-8")
    bench_pair("a TREC run of 10,000 lines", rounds, ["--case", path, "--contexts", run], ["--case", path])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--copies", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--bm25s", metavar="PYTHON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench_start(options.rounds, folder)
        stop_words = chroma.ENGLISH_STOP_WORDS
        if chroma.FOLDER.is_dir():
            if 1 in options.copies:
                python = find_bm25s(options.bm25s, folder)
                bench_corpus("(b) every word searched", [], 1, options.rounds, folder, python)
                bench_corpus("(b) with a stop list", stop_words, 1, options.rounds, folder, python)
                bench_page(options.rounds, folder)
            for copies in options.copies:
                if copies > 1:
                    bench_corpus("(c) {} copies".format(copies), stop_words, copies, options.rounds, folder)
        else:
            print("(b), (c) left out: no data in", chroma.FOLDER.name)
        for bench in (bench_absent_quotes, bench_filters, bench_trec):
            bench(options.rounds, folder)


if __name__ == "__main__":
    main()
