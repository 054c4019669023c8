"""What other libraries really write, recorded: tests/engines/records/LIBRARY.jsonl, which tests/test_engines.py reads.

    python record.py [LIBRARY ...]     with the Python of any environment that has these libraries

The documents of cas_fr.json are cut, or given to the library by paragraphs, in its own way; each question is sent the
chunks that share the most words with it, or a whole answer of the library, as that library serialises it.  A library
that is missing keeps the file it had.  Paths are made up and relative; nothing is downloaded and no server is needed.
LangChain.js needs node and its packages, in the folder that NODE_PATH names.

Recorded with Python 3.11 and langchain-core 1.8.3, langchain-text-splitters 1.1.3, llama-index-core 0.14.25, haystack-ai
3.4.1, semchunk 4.1.1, qdrant-client 1.20.0, chromadb 1.5.9, docling-core 2.104.0, unstructured 0.27.35, deepeval 4.3.1,
ragas 0.4.3; with Node, @langchain/core 1.4.0 and @langchain/textsplitters 1.0.2.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

os.environ.update(HAYSTACK_TELEMETRY_ENABLED="False", ANONYMIZED_TELEMETRY="False", DEEPEVAL_TELEMETRY_OPT_OUT="YES",
                  RAGAS_DO_NOT_TRACK="true", DO_NOT_TRACK="1", SCARF_NO_ANALYTICS="true", HF_HUB_OFFLINE="1")

HERE = Path(__file__).resolve().parent
SIZE, TOP = 300, 3
SENT = {"deepeval": "retrieval_context", "ragas": "retrieved_contexts"}
LIBRARIES = {}


def library(record):
    """Enters a library in the table: a generator of what each question is sent, of the texts and the questions."""
    LIBRARIES[record.__name__] = record
    return record


def words(text):
    return set(re.findall(r"\w{4,}", text.lower()))


def nearest(question, texts):
    """The numbers of the texts that share the most words with a question, then in their order."""
    return sorted(range(len(texts)), key=lambda number: -len(words(question) & words(texts[number])))[:TOP]


def choose(questions, texts, records):
    """For each question, the records of the nearest texts."""
    for question in questions:
        yield [records[number] for number in nearest(question, texts)]


def paragraphs(texts):
    """(document, paragraph) of each."""
    return [(id, part) for id, text in texts.items() for part in text.split("\n\n")]


def vectors(passages):
    """Tiny vectors: how often some letters stand in a text, which is enough to be ranked."""
    return [[passage.count(letter) / len(passage) for letter in "aehlnprt"] for passage in passages]


@library
def langchain(questions, texts):
    from langchain_text_splitters import RecursiveCharacterTextSplitter
    splitter = RecursiveCharacterTextSplitter(chunk_size=SIZE, chunk_overlap=60, add_start_index=True)
    chunks = splitter.create_documents(list(texts.values()), [{"source": "./corpus/" + id} for id in texts])
    return choose(questions, [chunk.page_content for chunk in chunks], [chunk.model_dump() for chunk in chunks])


@library
def langchain_to_json(questions, texts):
    from langchain_core.documents import Document
    chunks = [Document(page_content=part, metadata={"source": "./corpus/" + id}) for id, part in paragraphs(texts)]
    return choose(questions, [chunk.page_content for chunk in chunks], [chunk.to_json() for chunk in chunks])


@library
def langchain_js(questions, texts):
    script = """
        const { RecursiveCharacterTextSplitter } = require("@langchain/textsplitters");
        const texts = JSON.parse(require("fs").readFileSync(0, "utf-8")), ids = Object.keys(texts);
        new RecursiveCharacterTextSplitter({ chunkSize: 300, chunkOverlap: 60 })
            .createDocuments(Object.values(texts), ids.map((id) => ({ source: "./corpus/" + id })))
            .then((chunks) => console.log(JSON.stringify(chunks)));"""
    said = subprocess.run(["node", "-e", script], input=json.dumps(texts).encode(), stdout=subprocess.PIPE, check=True)
    chunks = json.loads(said.stdout.decode("utf-8"))
    return choose(questions, [chunk["pageContent"] for chunk in chunks], chunks)


def llama_index_nodes(texts):
    from llama_index.core import Document
    from llama_index.core.node_parser import SentenceSplitter
    documents = [Document(text=text, id_=id, metadata={"file_path": "corpus/" + id}) for id, text in texts.items()]
    return SentenceSplitter(chunk_size=100, chunk_overlap=20, tokenizer=str.split).get_nodes_from_documents(documents)


@library
def llama_index(questions, texts):
    nodes = llama_index_nodes(texts)
    return choose(questions, [node.text for node in nodes], [node.to_dict() for node in nodes])


@library
def llama_index_scored(questions, texts):
    from llama_index.core.schema import NodeWithScore
    nodes = llama_index_nodes(texts)
    return choose(questions, [node.text for node in nodes],
                  [NodeWithScore(node=node, score=0.5).to_dict() for node in nodes])


@library
def llama_index_hierarchical(questions, texts):
    from llama_index.core import Document
    from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter, get_leaf_nodes
    sizes = {"large": 120, "small": 40}
    parser = HierarchicalNodeParser.from_defaults(node_parser_ids=list(sizes), node_parser_map={
        name: SentenceSplitter(chunk_size=size, chunk_overlap=0, tokenizer=str.split, include_metadata=False)
        for name, size in sizes.items()})
    nodes = get_leaf_nodes(parser.get_nodes_from_documents(
        [Document(text=text, id_=id, metadata={"file_path": "corpus/" + id}) for id, text in texts.items()]))
    return choose(questions, [node.text for node in nodes], [node.to_dict() for node in nodes])


@library
def llama_index_window(questions, texts):
    from llama_index.core import Document
    from llama_index.core.node_parser import SentenceWindowNodeParser
    from llama_index.core.postprocessor import MetadataReplacementPostProcessor
    from llama_index.core.schema import NodeWithScore
    parser = SentenceWindowNodeParser.from_defaults(window_size=1, sentence_splitter=re.compile(r"(?<=\.) ").split)
    nodes = parser.get_nodes_from_documents(
        [Document(text=text, id_=id, metadata={"file_path": "corpus/" + id}) for id, text in texts.items()])
    nodes = MetadataReplacementPostProcessor("window").postprocess_nodes(
        [NodeWithScore(node=node, score=0.5) for node in nodes])
    return choose(questions, [scored.node.text for scored in nodes], [scored.to_dict() for scored in nodes])


def haystack_chunks(texts):
    from haystack import Document
    from haystack.components.preprocessors import DocumentSplitter
    documents = [Document(id=id, content=text, meta={"file_path": "corpus/" + id}) for id, text in texts.items()]
    return DocumentSplitter(split_by="word", split_length=50, split_overlap=10).run(documents)["documents"]


@library
def haystack(questions, texts):
    chunks = haystack_chunks(texts)
    return choose(questions, [chunk.content for chunk in chunks], [chunk.to_dict(flatten=False) for chunk in chunks])


@library
def haystack_flat(questions, texts):
    chunks = haystack_chunks(texts)
    return choose(questions, [chunk.content for chunk in chunks], [chunk.to_dict() for chunk in chunks])


@library
def haystack_hierarchical(questions, texts):
    from haystack import Document
    from haystack.components.preprocessors import HierarchicalDocumentSplitter
    splitter = HierarchicalDocumentSplitter(block_sizes={80, 40}, split_overlap=0, split_by="word")
    chunks = splitter.run([Document(id=id, content=text, meta={"file_path": "corpus/" + id})
                           for id, text in texts.items()])["documents"]
    chunks = [chunk for chunk in chunks if not chunk.meta["__children_ids"]]
    return choose(questions, [chunk.content for chunk in chunks], [chunk.to_dict(flatten=False) for chunk in chunks])


@library
def semchunk(questions, texts):
    from semchunk import chunkerify
    chunker = chunkerify(lambda text: len(text.split()), 50)
    answers = [chunker(text, offsets=True) for text in texts.values()]
    for question in questions:
        yield answers[nearest(question, list(texts.values()))[0]]


@library
def qdrant(questions, texts):
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, PointStruct, VectorParams
    parts = paragraphs(texts)
    client = QdrantClient(":memory:")
    client.create_collection("passages", VectorParams(size=8, distance=Distance.COSINE))
    client.upsert("passages", [
        PointStruct(id=number, vector=vector, payload={"page_content": part, "metadata": {"source": "corpus/" + id}})
        for number, ((id, part), vector) in enumerate(zip(parts, vectors([part for _, part in parts])))])
    for vector in vectors(questions):
        yield client.query_points("passages", query=vector, limit=TOP).model_dump()


@library
def chroma(questions, texts):
    import chromadb
    parts = paragraphs(texts)
    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection("passages", embedding_function=None)
    collection.add(ids=["p{}".format(number) for number, _ in enumerate(parts)],
                   embeddings=vectors([part for _, part in parts]), documents=[part for _, part in parts],
                   metadatas=[{"source": "corpus/" + id} for id, _ in parts])
    for vector in vectors(questions):
        yield collection.query(query_embeddings=[vector], n_results=TOP)


@library
def docling(questions, texts):
    from docling_core.transforms.chunker.hierarchical_chunker import HierarchicalChunker
    from docling_core.types.doc import DoclingDocument, DocItemLabel
    from docling_core.types.doc.document import DocumentOrigin
    chunks = []
    for number, (id, text) in enumerate(texts.items()):
        document = DoclingDocument(name=id, origin=DocumentOrigin(mimetype="text/plain", binary_hash=number, filename=id))
        document.add_heading(id.title())
        for part in text.split("\n\n"):
            document.add_text(label=DocItemLabel.TEXT, text=part)
        chunks += HierarchicalChunker().chunk(document)
    return choose(questions, [chunk.text for chunk in chunks], [chunk.model_dump(mode="json") for chunk in chunks])


@library
def unstructured(questions, texts):
    from unstructured.chunking.basic import chunk_elements
    from unstructured.documents.elements import ElementMetadata, NarrativeText
    chunks = []
    for id, text in texts.items():  # elements made here: partition_text downloads a model
        elements = [NarrativeText(part, metadata=ElementMetadata(filename="corpus/" + id, languages=["fra"]))
                    for part in text.split("\n\n")]
        chunks += elements[:1] + chunk_elements(elements[1:], max_characters=1000)
    return choose(questions, [chunk.text for chunk in chunks], [chunk.to_dict() for chunk in chunks])


@library
def deepeval(questions, texts):
    from deepeval.test_case import LLMTestCase
    parts = [part for _, part in paragraphs(texts)]
    for question, sent in zip(questions, choose(questions, parts, parts)):
        yield LLMTestCase(input=question, actual_output="…", retrieval_context=sent, context=parts,
                          expected_labels={"langue": "fr"}).model_dump(mode="json")


@library
def ragas(questions, texts):
    from ragas import SingleTurnSample
    parts = [part for _, part in paragraphs(texts)]
    for question, sent in zip(questions, choose(questions, parts, parts)):
        yield SingleTurnSample(user_input=question, retrieved_contexts=sent, reference_contexts=parts,
                               response="…").model_dump()


def main(names):
    case = json.loads((HERE.parent.parent / "cas_fr.json").read_text(encoding="utf-8"))
    texts = {document["id"]: document["text"] for document in case["documents"]}
    (HERE / "records").mkdir(exist_ok=True)
    for name in names or LIBRARIES:
        try:
            answers = list(LIBRARIES[name]([question["text"] for question in case["questions"]], texts))
        except ModuleNotFoundError as error:
            print("{:<24} skipped: {}".format(name, error))
            continue
        lines = answers if name in SENT else [{"question": question["id"], "context": answer}
                                              for question, answer in zip(case["questions"], answers)]
        with open(HERE / "records" / (name + ".jsonl"), "w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        print("{:<24} {} questions".format(name, len(lines)))


if __name__ == "__main__":
    main(sys.argv[1:])
