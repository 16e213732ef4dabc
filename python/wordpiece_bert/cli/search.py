"""``wordpiece-bert search``: the texts of files that are nearest in meaning to queries."""

from __future__ import annotations

import importlib
import sys
import time
from bisect import bisect_right
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wordpiece_bert._internal.json_text import json_text
from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.embed import block_texts, embed_texts, prompt_text
from wordpiece_bert.cli.messages import counted, print_verbose, print_warning, warn_skipped, warn_truncated
from wordpiece_bert.cli.search_folder import (
    add_folder_options,
    add_passages,
    check_no_folder_options,
    folder_search,
    folder_table,
    hit_table,
)
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.file_formats import VECTOR_FORMATS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert import _core
    from wordpiece_bert.sentence import BM25Index, CrossEncoder, MultiVectorEncoder, SentenceEncoder, SparseEncoder
    from wordpiece_bert.sentence.encoder_loading import Encoder
    from wordpiece_bert.tokenizer.corpus.text_reader import TextReader
    from wordpiece_bert.tokenizer.corpus.vector_files import StoredVectors

#: So many queries of a file are answered at once, which costs about as much as answering one.
QUERIES_PER_CALL = 64


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "search",
        parents=[arguments.common_options(), arguments.reading_arguments()],
        help=summary,
        description="Find the texts nearest in meaning to queries: by the similarity of their vectors and, with "
        "--rerank, by a cross encoder. FILE may be a folder of vectors that 'embed' wrote; its hits have the ids and "
        "fields of its documents. --json prints a line for each query.",
        epilog='examples: wordpiece-bert search texts.txt --vectors vectors.npy --query "repairing a bicycle"; '
        'wordpiece-bert search docs.vectors --query "repairing a bicycle" --json',
    )
    arguments.add_files(parser)
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--query", action="append", metavar="TEXT", help="a query; may be repeated")
    asked.add_argument(
        "--queries", metavar="FILE", help="a file with a query in each line; - or nothing is standard input"
    )
    asked.add_argument(
        "-i", "--interactive", action="store_true", help="answer each line of standard input when it is entered"
    )
    parser.add_argument(
        "--vectors",
        type=Path,
        metavar="FILE",
        help="the vectors of the texts, from 'embed'; if there is no such file, it is made (.npy, .parquet, .arrow, "
        ".arrows or .jsonl; default: compute them each time)",
    )
    parser.add_argument(
        "--allow-stale",
        action="store_true",
        help="search --vectors with a warning even if their fingerprint is that of other texts or another model",
    )
    parser.add_argument(
        "-m",
        "--model",
        metavar="MODEL",
        help="the model of the vectors, dense, sparse or many for a text: minilm, a folder, or org/name in the Hugging "
        "Face cache (default: minilm; that of a folder of vectors)",
    )
    arguments.add_prompts(parser, "each query (default: the model's for queries)")
    parser.add_argument(
        "--document-prompt", metavar="TEXT", help="put this before each text (default: the model's for documents)"
    )
    parser.add_argument(
        "-k", "--top-k", type=arguments.positive, default=10, metavar="N", help="texts for each query (default: 10)"
    )
    parser.add_argument(
        "--mode",
        choices=("vectors", "bm25", "hybrid"),
        default="vectors",
        help="compare vectors, or the tokens that query and text share (BM25, with the package bm25s), or join the "
        "--candidates of both by their ranks (default: vectors)",
    )
    parser.add_argument("--rerank", metavar="MODEL", help="rank the candidates with this cross encoder")
    parser.add_argument(
        "--candidates",
        type=arguments.positive,
        default=100,
        metavar="N",
        help="how many texts --rerank ranks, or --mode hybrid joins, for each query (default: 100)",
    )
    arguments.add_batch_size(parser)
    arguments.add_dtype(parser, of_folders=True)
    arguments.add_running(parser, run)
    add_folder_options(parser)
    parser.set_defaults(normalize=False)


class _Collection(NamedTuple):
    """The texts to search, where they are, and their vectors."""

    blocks: list[_core.TextBlock]
    #: The number of texts before the end of each block.
    ends: list[int]
    texts: list[str]
    vectors: Any

    def location(self, row: int) -> str:
        """Return where a text is, such as ``texts.txt line 2``."""
        block = bisect_right(self.ends, row)
        return self.blocks[block].location(row - (self.ends[block - 1] if block else 0))


def run(options: argparse.Namespace) -> None:
    """Load the models, read the texts, make the vectors if need be, and answer the queries."""
    from wordpiece_bert.hub import find_model
    from wordpiece_bert.sentence import BM25Index, CrossEncoder, SentenceEncoder
    from wordpiece_bert.tokenizer.corpus.text_reader import TextReader

    start = time.perf_counter()
    if any(Path(name).is_dir() for name in options.files):
        _search_folder(options)
        return
    check_no_folder_options(options)
    options.model = options.model or "minilm"
    files = arguments.input_files(options.files)
    _check(options, files)
    folder = find_model(options.model, download=options.download)
    _take_dtype(options)
    block = block_texts(folder, options.batch_size)
    reader = TextReader(files, block_texts=block, **arguments.reading_options(options))
    loading = arguments.loading_options(options)
    encoder = _encoder(options, folder, loading)
    ranker = None
    if options.rerank is not None:
        ranker = CrossEncoder.from_pretrained(options.rerank, download=options.download, **loading)
        if ranker.num_labels != 1:
            raise InputError(
                f"{options.rerank}: has {ranker.num_labels} labels; --rerank needs a cross encoder with one"
            )
    print_verbose(options, str(encoder.engine))
    if options.mode == "bm25":
        blocks = list(reader)
        warn_skipped(reader.skipped_count, reader.skipped)
        collection = _collection(blocks, None)
    elif isinstance(encoder, SentenceEncoder):
        collection = _collect(options, reader, encoder)
    else:
        collection = _collect_lists(options, reader, encoder)
    print_verbose(
        options,
        f"{counted(len(collection.texts), 'text')}, vectors of {encoder.dimension}, ready in "
        f"{time.perf_counter() - start:.2f} s",
    )
    keywords = None if options.mode == "vectors" else BM25Index(collection.texts, encoder.tokenizer)
    for queries in _queries(options):
        _answer(options, queries, collection, encoder, keywords, ranker)


def _take_dtype(options: argparse.Namespace) -> None:
    """Compute with the dtype of ``--vectors``, if the file has a fingerprint and no option says otherwise."""
    from wordpiece_bert.tokenizer.corpus.vector_files import read_stored
    from wordpiece_bert.tokenizer.corpus.vector_fingerprint import Fingerprint

    path: Path | None = options.vectors
    if options.dtype is None and options.mode != "bm25" and path is not None and path.exists():
        record = read_stored(path).record
        options.dtype = None if record is None else Fingerprint.from_json(record, str(path)).dtype


def _search_folder(options: argparse.Namespace) -> None:
    """Answer the queries from a folder of vectors."""
    _check(options, [])
    answer, column = folder_search(options)
    for queries in _queries(options):
        for query, hits in zip(queries, answer(queries), strict=True):
            if options.json:
                print(json_text({"query": query, "hits": hits}, ensure_ascii=False, default=str))
            else:
                print(folder_table(query, hits, column))
        sys.stdout.flush()


def _encoder(options: argparse.Namespace, folder: Path, loading: dict[str, Any]) -> Encoder:
    """Load the model of the vectors, of the class that the folder is for."""
    from wordpiece_bert.sentence.encoder_loading import encoder_class
    from wordpiece_bert.sentence.folders.kinds import CROSS, SENTENCE, kind_of

    kind = kind_of(folder)
    if kind is CROSS:
        raise InputError(f"{options.model}: is a cross encoder, which makes no vectors; give it to --rerank")
    if kind.class_name != SENTENCE.class_name and options.vectors is not None:
        raise InputError(
            f"{options.model}: makes {kind.vectors}, which --vectors does not keep; leave it out, they are made each "
            "time"
        )
    return encoder_class(folder).from_pretrained(folder, **loading)


def _check(options: argparse.Namespace, files: list[str]) -> None:
    """Refuse combinations of options that cannot work, before anything is loaded."""
    from_stdin = options.query is None and options.queries in (None, arguments.STDIN)
    if from_stdin and arguments.STDIN in files:
        raise InputError("no query: texts are read from standard input, so give queries with --query or --queries FILE")
    if from_stdin and not options.interactive and options.queries is None and sys.stdin.isatty():
        raise InputError("no query: give --query TEXT, --queries FILE or --interactive, or pipe queries in")
    if options.rerank is None and options.mode != "hybrid":
        arguments.refuse(options, ["candidates"], "is for --rerank and --mode hybrid")
    if options.mode == "bm25":
        of_vectors = ["vectors", "prompt", "prompt_name", "document_prompt"]
        of_models = ["dtype", "calibrate", "batch_size"] if options.rerank is None else []
        arguments.refuse(options, of_vectors + of_models, "is not for --mode bm25, which compares no vectors")
    path: Path | None = options.vectors
    if path is None:
        if files:
            arguments.refuse(options, ["allow_stale"], "is for vectors that are read: give --vectors")
        return
    if path.suffix.removeprefix(".") not in VECTOR_FORMATS:
        raise InputError(f"{path}: --vectors ends in {', '.join('.' + kind for kind in VECTOR_FORMATS)}")
    from wordpiece_bert.tokenizer.corpus.vector_fingerprint import sidecar_of

    refuse_input_as_output([path, sidecar_of(path)], [*files, *([options.queries] if options.queries else [])])


def _collect(options: argparse.Namespace, reader: TextReader, encoder: SentenceEncoder) -> _Collection:
    """Read the texts, and read or make their vectors."""
    from wordpiece_bert.sentence import PreparedVectors
    from wordpiece_bert.tokenizer.corpus.vector_files import read_stored

    path: Path | None = options.vectors
    blocks: list[_core.TextBlock] = []
    made = None
    exists = path is not None and path.exists()
    if exists:
        blocks.extend(reader)
    else:
        made = _embedded(options, reader, encoder, blocks)
    warn_skipped(reader.skipped_count, reader.skipped)
    if path is None:
        assert made is not None
        vectors = made
    else:
        stored = read_stored(path)
        if exists:
            _compare(options, stored, blocks, encoder)
        vectors = stored.vectors
    # Making codes takes longer than one search, and saves time for each that follows.
    return _collection(blocks, vectors if options.query else PreparedVectors(vectors, threads=options.threads))


def _collection(blocks: list[_core.TextBlock], vectors: Any) -> _Collection:
    """Return the texts of blocks with their vectors."""
    texts = [text for block in blocks for text in block.texts()]
    return _Collection(blocks, list(accumulate(map(len, blocks))), texts, vectors)


def _embedded(
    options: argparse.Namespace, reader: TextReader, encoder: SentenceEncoder, blocks: list[_core.TextBlock]
) -> npt.NDArray[np.float32] | None:
    """Make the vectors, with the model's prompt for documents: write them to ``--vectors``, or return them."""
    from wordpiece_bert.sentence.dense.encoder_fingerprint import fingerprint_of
    from wordpiece_bert.tokenizer.corpus.vector_fingerprint import TextsDigest
    from wordpiece_bert.tokenizer.corpus.vector_writers import vector_writer

    prompt = {"prompt": options.document_prompt}
    if options.vectors is not None:
        digest = TextsDigest()
        with vector_writer(options.vectors, encoder.dimension, options.vectors.suffix.removeprefix(".")) as writer:
            writer.begin()
            cut, _ = embed_texts(
                reader, encoder, writer.append, options, blocks=blocks, as_documents=True, prompt=prompt, digest=digest
            )
            text = prompt_text(encoder, prompt, as_documents=True)
            writer.commit(fingerprint_of(encoder, digest, prompt=text))
        memory = None
    else:
        memory = _Memory(encoder.dimension)
        cut, _ = embed_texts(reader, encoder, memory.append, options, blocks=blocks, as_documents=True, prompt=prompt)
    notes = f" of {counted(reader.count, 'text')} truncated to the model's {encoder.max_seq_length} tokens"
    warn_truncated(len(cut), cut, notes, every=options.verbose)
    return None if memory is None else memory.vectors()


def _collect_lists(
    options: argparse.Namespace, reader: TextReader, encoder: SparseEncoder | MultiVectorEncoder
) -> _Collection:
    """Read the texts, and make their sparse or many vectors."""
    from wordpiece_bert.sentence import MultiVectors
    from wordpiece_bert.sentence.sparse.sparse_vectors import joined

    blocks: list[_core.TextBlock] = []
    parts: list[Any] = []
    prompt = {"prompt": options.document_prompt}
    cut, _ = embed_texts(reader, encoder, parts.append, options, blocks=blocks, as_documents=True, prompt=prompt)
    warn_skipped(reader.skipped_count, reader.skipped)
    notes = f" of {counted(reader.count, 'text')} truncated to the longest row of the model"
    warn_truncated(len(cut), cut, notes, every=options.verbose)
    parts = parts or [encoder.encode_document([])]
    vectors: Any
    if isinstance(parts[0], MultiVectors):
        rows = [one for part in parts for one in part]
        vectors = MultiVectors.from_list(rows) if rows else parts[0]
    else:
        vectors = joined(parts, encoder.dimension)
    return _collection(blocks, vectors)


class _Memory:
    """Collects vectors instead of writing them."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._parts: list[npt.NDArray[np.float32]] = []

    def append(self, vectors: npt.NDArray[np.float32]) -> None:
        """Keep vectors [n, width]."""
        self._parts.append(vectors)

    def vectors(self) -> npt.NDArray[np.float32]:
        """Return all vectors."""
        import numpy as np

        return np.concatenate(self._parts) if self._parts else np.zeros((0, self._width), np.float32)


def _compare(
    options: argparse.Namespace, stored: StoredVectors, blocks: list[_core.TextBlock], encoder: SentenceEncoder
) -> None:
    """Check by the model that the vectors of a file are the vectors of the texts."""
    from wordpiece_bert.sentence.dense.encoder_fingerprint import check_fingerprint, fingerprint_of
    from wordpiece_bert.tokenizer.corpus.vector_fingerprint import TextsDigest

    path, count, (rows, width) = options.vectors, sum(map(len, blocks)), stored.vectors.shape
    if rows != count:
        raise InputError(
            f"{path} has {counted(rows, 'vector')}, but there are {counted(count, 'text')}: it was made of other "
            "texts; delete it, or give another file to --vectors"
        )
    if count and width != encoder.dimension:
        raise InputError(
            f"{path} has vectors of {width} numbers, the model of {encoder.dimension}: give the --model that made them"
        )
    digest = TextsDigest()
    for block in blocks:
        digest.add_utf8(*block.utf8())
    check_fingerprint(
        path,
        stored,
        fingerprint_of(
            encoder,
            digest,
            prompt=prompt_text(encoder, {"prompt": options.document_prompt}, as_documents=True),
            normalize=None if encoder.similarity_fn_name == "cosine" else False,
        ),
        allow_stale=options.allow_stale,
        option="--allow-stale",
        warn=print_warning,
    )


def _queries(options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the queries in groups."""
    from wordpiece_bert.tokenizer.corpus.text_reader import TextReader

    if options.query is not None:
        yield options.query
    elif options.interactive:
        while (line := _line()) is not None:
            if line.strip():
                yield [line]
    else:
        for block in TextReader(options.queries or arguments.STDIN, block_texts=QUERIES_PER_CALL):
            if queries := [query for query in block.texts() if query.strip()]:
                yield queries


def _line() -> str | None:
    """Return a line of standard input, None at its end; on a terminal with a prompt and a history."""
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        return line.rstrip("\r\n") if line else None
    with suppress(ImportError):
        importlib.import_module("readline")  # `input` then edits lines
    try:
        return input("query> ")
    except EOFError:
        print()
        return None


def _answer(
    options: argparse.Namespace,
    queries: list[str],
    collection: _Collection,
    encoder: Encoder,
    keywords: BM25Index | None,
    ranker: CrossEncoder | None,
) -> None:
    """Search for some queries, and print what was found."""
    from wordpiece_bert.sentence import retrieve_and_rerank

    found = retrieve_and_rerank(
        queries,
        collection.texts,
        keywords if options.mode == "bm25" and keywords is not None else encoder,
        ranker,
        document_embeddings=collection.vectors,
        keywords=keywords if options.mode == "hybrid" else None,
        retrieve_top_k=options.candidates,
        top_k=options.top_k,
        prompt=options.prompt,
        prompt_name=options.prompt_name,
        batch_size=options.batch_size,
    )
    for query, hits in zip(queries, found, strict=True):
        for hit in hits:
            hit["location"] = collection.location(hit["corpus_id"])
        if options.whole:
            add_passages(options, encoder, query, hits, "text")
        if options.json:
            print(json_text({"query": query, "hits": hits}, ensure_ascii=False))
        else:
            print(hit_table(query, hits, "location", _text))
    sys.stdout.flush()


def _text(hit: dict[str, Any]) -> str:
    return " ".join(hit.get("passage", hit["text"]).split())
