"""Turns the data of Chroma's chunking evaluation into a case, as a check and a benchmark on real text.

    python3 tests/chroma.py FOLDER CASE.json     FOLDER holds questions_df.csv and corpora/

Its 842 excerpts become 790 facts: an excerpt is widened to the whole words that it touches, told apart by
`start` where its text stands several times, and kept once where a question repeats it.
"""

import csv
import json
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "chroma_general_evaluation"

ENGLISH_STOP_WORDS = """a about after all also an and any are as at be because been but by can could did do does for from
had has have he her his how i if in into is it its may more most no not of on or other our s she so some such t than that
the their them then there these they this those to was we were what when where which while who why will with would you
your""".split()


def make_case(folder=FOLDER, copies=1, **settings):
    """The case as a dict; with several copies, each further one has its own words (`word` + number) and no question."""
    texts = {path.stem: path.read_bytes().decode("utf-8") for path in sorted((folder / "corpora").glob("*.md"))}
    documents = [{"id": name, "text": text} for name, text in texts.items()]
    for copy in range(2, copies + 1):
        documents += [{"id": "{}_{}".format(name, copy), "text": shifted(text, copy)} for name, text in texts.items()]
    facts, questions = [], []
    with open(folder / "questions_df.csv", encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            spans = dict.fromkeys(widen(texts[row["corpus_id"]], excerpt["start_index"], excerpt["end_index"])
                                  for excerpt in json.loads(row["references"]))
            ids = ["f{:03}_{}".format(number, rank) for rank, _ in enumerate(spans, 1)]
            facts += [{"id": id, "document": row["corpus_id"], "quote": quote, "start": start}
                      for id, (start, quote) in zip(ids, spans)]
            questions.append({"id": "q{:03}".format(number), "text": row["question"], "required_facts": ids})
    return {"title": "Chroma, évaluation générale", "settings": settings,
            "documents": documents, "facts": facts, "questions": questions}


def widen(text, start, end):
    """(first word, text) of the whole words that characters start to end touch."""
    while start and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end - 1].isspace() and not text[end].isspace():
        end += 1
    quote = text[start:end]
    return len(text[:start].split()), " ".join(quote.split())


def shifted(text, copy):
    """A text as long as the first, sharing half of its words with it: the other half ends with the copy's number."""
    words = text.split(" ")
    return " ".join(word + str(copy) if number % 2 and word[-1:].isalpha() else word for number, word in enumerate(words))


if __name__ == "__main__":
    case = make_case(Path(sys.argv[1]), stop_words=[], budget_words=100_000)
    Path(sys.argv[2]).write_text(json.dumps(case, ensure_ascii=False, indent=1), encoding="utf-8")
