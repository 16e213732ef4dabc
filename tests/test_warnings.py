"""Every warning that a call causes names the line of the call, wherever in the package it arises."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from make_models import make_ranker, make_reviews, make_words

import wordpiece_bert as wb
from model_files import MODELS, sentence_folder, with_tokenizer
from small_tokenizer import with_file_settings
from wordpiece_bert import tasks
from wordpiece_bert.bert import BertForSequenceClassification
from wordpiece_bert.sentence import StaticEncoder, distill_static, paraphrase_mining, retrieve_and_rerank

PACKAGE = Path(wb.__file__).parent
LONG = "the cat sat on the mat " * 40


def test_only_one_function_of_the_package_emits_warnings() -> None:
    """What it emits names a line outside the package; a call of `warnings.warn` elsewhere would have to count frames."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = node.func if isinstance(node, ast.Call) else None
            emits = isinstance(name, ast.Attribute) and name.attr in ("warn", "warn_explicit")
            if emits and isinstance(name.value, ast.Name) and name.value.id == "warnings":  # type: ignore[union-attr]
                assert file == PACKAGE / "_internal" / "warn.py", f"{file}:{node.lineno}"
            imports = isinstance(node, ast.ImportFrom) and node.module == "warnings"
            assert not imports, f"{file}:{getattr(node, 'lineno', 0)}"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("warnings")
    sentence_folder("sentence_mean_normalize", home)
    with_tokenizer("cross_encoder_score", home)
    with_tokenizer("bert_masked_lm", home)
    (home / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\ncat\n\ncat\n", encoding="utf-8")
    (home / "texts.txt").write_text(LONG + "\n", encoding="utf-8")
    (home / "tokenizer.json").write_text(
        with_file_settings(
            truncation={"max_length": 5, "stride": 0, "strategy": "LongestFirst", "direction": "Right"}
        ).to_json(),
        encoding="utf-8",
    )
    make_words(home / "words")
    make_reviews(home / "reviews")
    make_ranker(home / "ranker")
    return home


def calls(home: Path) -> dict[str, Callable[[], object]]:
    """Calls that warn, by name. The line that a warning must name is the line of the lambda or the function."""
    dense = wb.SentenceEncoder(home / "sentence_mean_normalize")
    static = StaticEncoder(MODELS / "static_m2v")
    static.max_seq_length = 4
    sparse, colbert = wb.SparseEncoder(MODELS / "splade_sum"), wb.MultiVectorEncoder(MODELS / "colbert_st")
    ranker = wb.CrossEncoder(home / "cross_encoder_score")
    cut = wb.Tokenizer.from_file(home / "tokenizer.json")
    pytest.importorskip("sklearn")
    from wordpiece_bert.integrations.sklearn import SentenceEmbedder

    embedder = SentenceEmbedder(str(home / "sentence_mean_normalize"))
    return {
        "encode": lambda: dense.encode([LONG]),
        "encode_query": lambda: dense.encode_query(LONG),
        "encode_document": lambda: dense.encode_document([LONG]),
        "encode_tokens": lambda: dense.encode_tokens(LONG),
        "static encode": lambda: static.encode([LONG]),
        "static encode_query": lambda: static.encode_query([LONG]),
        "sparse encode": lambda: sparse.encode([LONG]),
        "sparse encode_query": lambda: sparse.encode_query([LONG]),
        "multi-vector encode_document": lambda: colbert.encode_document([LONG]),
        "multi-vector rank": lambda: colbert.rank("cat", [LONG]),
        "predict": lambda: ranker.predict([(LONG, "cat")]),
        "rank": lambda: ranker.rank("cat", [LONG]),
        "retrieve_and_rerank": lambda: retrieve_and_rerank("cat", [LONG], dense),
        "paraphrase_mining": lambda: paraphrase_mining(dense, [LONG, "cat"]),
        "an adapter": lambda: embedder.transform([LONG]),
        "from_vocab": lambda: wb.Tokenizer.from_vocab(home / "vocab.txt"),
        "a setting of the file": lambda: cut.encode_batch([LONG]),
        "a setting of the file, encodings": lambda: cut.encodings([LONG]),
        "a setting of the file, files": lambda: cut.encode_files([home / "texts.txt"], home / "out.npy"),
        "a setting of the file, batches": lambda: list(cut.iter_files([home / "texts.txt"])),
        "a call without a maximum": lambda: with_file_settings()(["a"], truncation=True),
        "pad without a maximum": lambda: with_file_settings().pad({"input_ids": [[1]]}, padding="max_length"),
        "a target": lambda: tasks.fill_mask(home / "words", "the [MASK]", targets=["catx"]),
        "a long text of a task": lambda: tasks.classify(home / "reviews", LONG * 9),
        "training": lambda: wb.train_vocab([home / "texts.txt"], vocab_size=100),
        "a drawn head": lambda: BertForSequenceClassification.from_pretrained(MODELS / "bert_small", new_head=7),
        "principal components": lambda: distill_static(dense, vocabulary=["cat", "mat"], pca_dims=999),
    }


def named_line(call: Callable[[], object]) -> tuple[list[Any], int, int]:
    """The warnings of a call, and the first and the last line of the call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    lines, start = inspect.getsourcelines(call)
    return caught, start, start + len(lines) - 1


def test_a_warning_names_the_line_of_the_call(home: Path) -> None:
    for name, call in calls(home).items():
        caught, first, last = named_line(call)
        assert caught, f"{name}: no warning"
        for one in caught:
            assert one.filename == __file__, f"{name}: {one.filename}:{one.lineno}: {one.message}"
            assert first <= one.lineno <= last, f"{name}: {one.lineno}, not {first} to {last}"


def test_a_warning_names_the_line_of_the_user_behind_other_code(home: Path) -> None:
    encoder = wb.SentenceEncoder(home / "sentence_mean_normalize")

    class Own(wb.SentenceEncoder):
        def encode(self, *args: Any, **kwargs: Any) -> Any:
            return super().encode(*args, **kwargs)  # the user's line, in the user's class

    async def waits() -> Any:
        return await encoder.aencode([LONG])

    with ThreadPoolExecutor(1) as pool:
        for call in (
            functools.partial(Own(home / "sentence_mean_normalize").encode, [LONG]),
            lambda: asyncio.run(waits()),
            lambda: pool.submit(lambda: encoder.encode([LONG])).result(),
            lambda: next(map(encoder.encode, [[LONG]])),
            lambda: np.concatenate([encoder.encode([text]) for text in (LONG,)]),
            lambda: contextlib.ExitStack().enter_context(contextlib.nullcontext(encoder.encode([LONG]))),
        ):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                call()
            assert [one.filename for one in caught] == [__file__]


def test_the_same_line_warns_once_by_default(home: Path) -> None:
    """As Python's default filter says: once for each line, here of the user, not of the package."""
    encoder = wb.SentenceEncoder(home / "sentence_mean_normalize")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            encoder.encode_query([LONG])
        encoder.encode_query([LONG])
    assert len(caught) == 2
