"""Speed and memory, as ratios against something else run beside it; prints, and judges nothing.

    python3 tests/bench.py                all of it, some minutes
    python3 tests/bench.py --rounds 5     medians of more interleaved runs

(a) the reference run against a Python that imports argparse, json and sqlite3 and compiles atelier.py's text;
(b) the Chroma case, four variants and the report written, against a bare loop that cuts, indexes and searches;
(c) the same with 4 and 16 distinct copies of the corpora: time a question, and peak memory.
(b) and (c) need the data that tests/chroma.py names, and are left out where it is absent.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import chroma

SCRIPT = Path(__file__).resolve().parent.parent / "atelier.py"
BASELINE = "import argparse, json, sqlite3; compile(open({!r}, encoding='utf-8').read(), 'atelier.py', 'exec')".format(str(SCRIPT))

BARE_LOOP = r'''
import json, re, sqlite3, sys

case = json.load(open(sys.argv[1], encoding="utf-8"))
stopped = set(case["settings"].get("stop_words", ()))


def windows(text, size, overlap):
    words = [match.span() for match in re.finditer(r"\S+", text)]
    for start in range(0, max(len(words) - overlap, 1), size - overlap):
        yield text[words[start][0]:words[min(start + size, len(words)) - 1][1]]


def paragraphs(text):
    return (part for part in re.split(r"\n[ \t]*\n", text) if part.strip())


for cut in (lambda text: windows(text, 48, 0), lambda text: windows(text, 96, 0), lambda text: windows(text, 48, 16), paragraphs):
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE passages USING fts5(id UNINDEXED, text, tokenize = 'unicode61 remove_diacritics 2')")
    database.executemany("INSERT INTO passages VALUES (?, ?)", (
        ("{}#{:04}".format(document["id"], number), text)
        for document in case["documents"] for number, text in enumerate(cut(document["text"]), 1)))
    for question in case["questions"]:
        terms = dict.fromkeys(term for term in re.findall(r"[^\W_]+", question["text"].lower()) if term not in stopped)
        database.execute("SELECT id, text, bm25(passages) AS score FROM passages WHERE passages MATCH ? ORDER BY score, id LIMIT 3",
                         (" OR ".join('"%s"' % term for term in terms),)).fetchall()
    database.close()
'''

MEASURE = r'''
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
'''


def timed(command):
    """Seconds of a whole process."""
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def interleaved(rounds, **commands):
    """Median seconds of each command, run in turn."""
    times = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(timed(command))
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def peak_megabytes(command):
    kilobytes = int(subprocess.run([sys.executable, "-c", MEASURE, *command], stdout=subprocess.PIPE, check=True).stdout)
    return kilobytes / (1024 * 1024 if sys.platform == "darwin" else 1024)


def bench_start(rounds, folder):
    python = [sys.executable, "-I", "-S"]
    seconds = interleaved(rounds * 10, run=python + [str(SCRIPT)], baseline=python + ["-c", BASELINE],
                          report=python + [str(SCRIPT), "--output", os.path.join(folder, "report.json")])
    print("(a) reference run {:.1f} ms, with its report {:.1f} ms, imports and compilation {:.1f} ms: ratios {:.2f} and {:.2f}".format(
        seconds["run"] * 1000, seconds["report"] * 1000, seconds["baseline"] * 1000,
        seconds["run"] / seconds["baseline"], seconds["report"] / seconds["baseline"]))


def bench_copies(copies, rounds, folder):
    case = chroma.make_case(copies=copies, stop_words=chroma.ENGLISH_STOP_WORDS)
    path = os.path.join(folder, "case.json")
    Path(path).write_text(json.dumps(case, ensure_ascii=False), encoding="utf-8")
    words = sum(len(document["text"].split()) for document in case["documents"])
    run = [sys.executable, str(SCRIPT), "--case", path, "--output", os.path.join(folder, "report.json")]
    bare = [sys.executable, "-c", BARE_LOOP, path]
    seconds = interleaved(rounds, run=run, bare=bare)
    memory = {name: peak_megabytes(command) for name, command in (("run", run), ("bare", bare))}
    size = os.path.getsize(os.path.join(folder, "report.json")) / 1e6
    if copies == 1:
        page = os.path.join(folder, "page.html")
        drawn = interleaved(rounds, with_page=run + ["--html", page], run=run)
        print("    the page: {:.2f} s more than the run's {:.2f} s, ratio {:.2f}; {:.2f} MB".format(
            drawn["with_page"] - drawn["run"], drawn["run"], drawn["with_page"] / drawn["run"] - 1, os.path.getsize(page) / 1e6))
    print("{} {} copies, {} words: run {:.2f} s, bare loop {:.2f} s, ratio {:.2f}; {:.2f} µs a question and thousand words; "
          "peak {:.0f} MB against {:.0f}, ratio {:.2f}; report {:.1f} MB".format(
              "(b)" if copies == 1 else "(c)", copies, words, seconds["run"], seconds["bare"], seconds["run"] / seconds["bare"],
              seconds["run"] / len(case["questions"]) / words * 1e9, memory["run"], memory["bare"], memory["run"] / memory["bare"], size))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--copies", type=int, nargs="*", default=[1, 4, 16])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench_start(options.rounds, folder)
        if not chroma.FOLDER.is_dir():
            print("(b), (c) left out: no data in", chroma.FOLDER.name)
            return
        for copies in options.copies:
            bench_copies(copies, options.rounds, folder)


if __name__ == "__main__":
    main()
