"""Real engines on the reference case: their records, as they serialise them, are read and judged rightly.

They run in the environment that tests/engines/build.sh makes; without it these tests skip, saying so.  The records kept
in tests/engines/records are read everywhere.
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


RECORDS = sorted((ENGINES / "records").glob("*.jsonl"))


def texts_sent(record):
    """(text, name of its document or None, its first character or None) of each record of a recorded answer."""
    if isinstance(record, str):
        return [(record, None, None)]
    if isinstance(record, list) and len(record) == 2 and record[1] and isinstance(record[1][0], list):  # semchunk
        return [(text, None, start) for text, (start, _) in zip(*record)]
    if isinstance(record, list):
        return [each for part in record for each in texts_sent(part)]
    if "points" in record:
        return texts_sent([point["payload"] for point in record["points"]])
    if "ids" in record:
        return [(text, metadata["source"], None) for text, metadata in zip(record["documents"][0], record["metadatas"][0])]
    if "lc" in record:
        return texts_sent(record["kwargs"])
    if "node" in record:
        record = record["node"]
    if "relationships" in record:
        start = record["start_char_idx"] if "4" not in record["relationships"] and "window" not in record["metadata"] else None
        return [(record["text"], record["relationships"]["1"]["node_id"], start)]
    text = next(record[key] for key in ("text", "content", "page_content", "pageContent") if key in record)
    meta = record.get("metadata") or record.get("meta") or record
    name = next(meta[key] for key in ("source", "file_path", "filename", "origin") if key in meta)
    start = None if "__parent_id" in meta else meta.get("start_index", meta.get("split_idx_start"))
    return [(text, name["filename"] if isinstance(name, dict) else name, start)]


class Recorded(TestCase):
    """What tests/engines/record.py recorded of other libraries, read wherever the tests run."""

    def test_there_are_records(self):
        self.assertTrue(RECORDS, "no record in tests/engines/records: run tests/engines/record.py")

    def test_none_tells_where_it_was_made(self):
        for path in RECORDS:
            with self.subTest(path.stem):
                self.assertNotRegex(path.read_text(encoding="utf-8"), r'"(file:/+)?(/|[A-Za-z]:\\\\)[\w.]|/tmp/|/root/|/home/')

    def test_every_record_is_read_where_it_stands(self):
        case = json.loads((ROOT / "cas_fr.json").read_text(encoding="utf-8"))
        texts = {document["id"]: document["text"] for document in case["documents"]}
        ids = {question[key]: question["id"] for question in case["questions"] for key in ("id", "text")}
        options = [part for path in RECORDS for part in ("--contexts", path)]
        code, _, err = run(*options, "--output", self.folder / "rapport.json")
        self.assertEqual(code, 0, err)
        self.assertNotIn("ne sont pas dans le corpus", err)
        variants = json.loads((self.folder / "rapport.json").read_text(encoding="utf-8"))["variants"]
        report = {variant["id"]: {question["id"]: question for question in variant["questions"]} for variant in variants}
        for path in RECORDS:
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            asked = [ids[next(line[key] for key in ("question", "user_input", "input") if key in line)] for line in lines]
            self.assertEqual(sorted(asked), sorted(report[path.stem]))
            for id, line in zip(asked, lines):
                sent = next(line[key] for key in ("retrieval_context", "retrieved_contexts", "context") if key in line)
                with self.subTest(path.stem, question=id):
                    places = [self.place(*each, texts) for each in texts_sent(sent)]
                    judged = report[path.stem][id]
                    self.assertEqual([(part["document"], part["start"], part["end"]) for part in judged["context"]], places)
                    self.assertEqual(judged["words_sent"], sum(len(text.split()) for text, _, _ in texts_sent(sent)))
                    self.assertEqual(judged["foreign_words"], 0)
                    for fact in judged["facts"]:
                        covered = {(document, word) for document, start, end in places for word in range(start, end)}
                        wanted = {(fact["document"], word) for word in range(fact["start"], fact["end"])}
                        self.assertEqual(fact["words_covered"], len(wanted & covered))

    def test_positions_tell_which_of_two_places_is_meant(self):
        case = json.loads((ROOT / "cas_fr.json").read_text(encoding="utf-8"))
        documents = [{"id": document["id"], "text": "\n\n".join([document["text"]] * 2)} for document in case["documents"]]
        case = {"documents": documents + [{"id": "z", "text": "Une autre règle."}],
                "facts": [{"id": "f", "document": "z", "quote": "Une autre règle."}],
                "questions": [{"id": question["id"], "text": question["text"], "required_facts": ["f"]} for question in case["questions"]]}
        positioned = ("langchain", "llama_index", "llama_index_scored", "haystack", "haystack_flat", "semchunk")
        for path in RECORDS:
            with self.subTest(path.stem):
                code, _, err = run("--case", self.write(case), "--contexts", path)
                if path.stem in positioned:
                    self.assertEqual(code, 0, err)
                else:
                    self.assertIn("figure plusieurs fois", err)

    def place(self, text, name, start, texts):
        """(document, first word, word after the last) of a text, from its own position or from the one place where it stands."""
        pattern = r"\s+".join(map(re.escape, text.split()))
        found = [(id, match.start(), match.end()) for id, whole in texts.items() for match in re.finditer(pattern, whole)
                 if name in (None, id) or name.rpartition("/")[2] == id]
        if start is not None:
            found = [each for each in found if each[1] == start + len(text) - len(text.lstrip())]
        ((id, first, last),) = found
        starts = [word.start() for word in re.finditer(r"\S+", texts[id])]
        return id, sum(at < first for at in starts), sum(at < last for at in starts)


if __name__ == "__main__":
    unittest.main()
