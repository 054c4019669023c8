"""Real engines on the reference case: their records, as they serialise them, are read and judged rightly.

They run in the environment that tests/engines/build.sh makes; without it these tests skip, saying so.
"""

import json
import re
import subprocess
import unittest

from support import ROOT, TESTS, TestCase, run

ENGINES = TESTS / "engines"
PYTHON = ENGINES / ".venv" / "bin" / "python"
LIGHT = ("langchain", "llama_index", "haystack", "haystack_flat", "chonkie", "semchunk", "bm25s", "tantivy")


def interval(record, text, passages):
    """(document, start, end) characters of a record, from what the tool itself says."""
    if "passage" in record:
        passage = passages[record["passage"]]
        return passage["document"], passage["start_char"], passage["end_char"]
    if "page_content" in record:
        start = record["metadata"]["start_index"]
        return record["metadata"]["source"], start, start + len(record["page_content"])
    if "content" in record:
        meta = record.get("meta") or record
        return meta["source_id"], meta["split_idx_start"], meta["split_idx_start"] + len(record["content"])
    if "start_char_idx" in record:
        return record["relationships"]["1"]["node_id"], record["start_char_idx"], record["end_char_idx"]
    names = ("start_char", "end_char") if "start_char" in record else ("start_index", "end_index")
    return (record["document"], *(record[name] for name in names))


@unittest.skipUnless(PYTHON.exists(), "no environment of engines: run tests/engines/build.sh light")
class Engines(TestCase):
    def test_every_engine_is_read_and_judged_as_characters_judge_it(self):
        case = json.loads((ROOT / "cas_fr.json").read_text(encoding="utf-8"))
        texts = {document["id"]: document["text"] for document in case["documents"]}
        export = self.folder / "passages.jsonl"
        self.assertEqual(run("--export", export)[0], 0)
        passages = {passage["id"]: passage for passage in map(json.loads, export.read_text(encoding="utf-8").splitlines())}
        subprocess.run([PYTHON, "-W", "ignore", ENGINES / "engines.py", ROOT / "cas_fr.json", export, self.folder], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        files = {path.stem: path for path in self.folder.glob("*.jsonl") if path != export}
        self.assertLessEqual(set(LIGHT), set(files))
        options = [part for path in files.values() for part in ("--contexts", path)]
        code, _, err = run(*options, "--output", self.folder / "rapport.json")
        self.assertEqual(code, 0, err)
        report = {variant["id"]: variant for variant in json.loads((self.folder / "rapport.json").read_text(encoding="utf-8"))["variants"]}
        for name, path in files.items():
            sent = {line["question"]: line for line in map(json.loads, path.read_text(encoding="utf-8").splitlines())}
            for question in report[name]["questions"]:
                covered = {id: set() for id in texts}
                for record in sent[question["id"]]["context"]:
                    document, start, end = interval(record, texts, passages)
                    covered[document] |= {number for number, word in enumerate(re.finditer(r"\S+", texts[document]))
                                          if start <= word.start() and word.end() <= end}
                for fact in question["facts"]:
                    words = set(range(fact["start"], fact["end"]))
                    self.assertEqual(fact["words_covered"], len(words & covered[fact["document"]]), (name, question["id"], fact["id"]))
                self.assertEqual(question["over_budget"], 0, (name, question["id"]))
            self.assertEqual(report[name]["summary"]["recall_at"] is None, False)

    def test_a_trec_run_and_the_records_of_one_engine_agree(self):
        export = self.folder / "passages.jsonl"
        run("--export", export)
        subprocess.run([PYTHON, "-W", "ignore", ENGINES / "engines.py", ROOT / "cas_fr.json", export, self.folder, "bm25s"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        (self.folder / "bm25s.trec").rename(self.folder / "classement.trec")
        run("--contexts", self.folder / "bm25s.jsonl", "--contexts", self.folder / "classement.trec", "--output", self.folder / "rapport.json")
        records, ranking = json.loads((self.folder / "rapport.json").read_text(encoding="utf-8"))["variants"][-2:]
        self.assertEqual([records["id"], ranking["id"]], ["bm25s", "classement"])
        for one, other in zip(records["questions"], ranking["questions"]):
            self.assertEqual([hit["passage"] for hit in one["hits_before_budget"] or ()], [hit["passage"] for hit in other["hits_before_budget"] or ()])
            self.assertEqual([[part["text"] for part in each["context"]] for each in (one,)], [[part["text"] for part in other["context"]]])
            self.assertEqual(one["facts"], other["facts"])


if __name__ == "__main__":
    unittest.main()
