"""Dtypes and calibration of every class and command that loads a model: what they take, and what they refuse."""

from __future__ import annotations

import json
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS, with_tokenizer
from wordpiece_bert import CrossEncoder, MultiVectorEncoder, SentenceEncoder, SparseEncoder, tasks
from wordpiece_bert.bert import AutoModel, BertModel, heads
from wordpiece_bert.bert.engines import DTYPES, choose_dtype
from wordpiece_bert.bert.engines.choice import AUTO
from wordpiece_bert.cli import embed, main, search
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.hub import find_model

Load = Callable[..., Any]

TEXTS = ["a cat", "the dog runs home", "one two three"]
LINES = ["one text", "and another"]

#: The folders of the encoders of texts, by their class.
ENCODERS: dict[type[Any], str] = {
    SentenceEncoder: "sentence_plain_folder",
    SparseEncoder: "splade_max",
    MultiVectorEncoder: "colbert_st",
}


def loaders(parent: Path) -> dict[str, Load]:
    """What loads a model, by a name for messages; each takes keywords."""
    ranker = with_tokenizer("cross_encoder_score", parent)
    found: dict[str, Load] = {
        cls.__name__: lambda cls=cls, folder=folder, **options: cls(MODELS / folder, **options)
        for cls, folder in ENCODERS.items()
    }
    found |= {
        f"{cls.__name__}.from_pretrained": lambda cls=cls, folder=folder, **options: cls.from_pretrained(
            MODELS / folder, **options
        )
        for cls, folder in ENCODERS.items()
    }
    found["stanford"] = lambda **options: MultiVectorEncoder(MODELS / "colbert_stanford", **options)
    found["CrossEncoder"] = lambda **options: CrossEncoder(ranker, **options)
    found["tasks.load"] = lambda **options: tasks.load(ranker, **options)
    found["BertModel"] = lambda **options: BertModel.from_pretrained(ranker, **options)
    found["AutoModel"] = lambda **options: AutoModel.from_pretrained(ranker, **options)
    found["base"] = lambda **options: AutoModel.base_from_pretrained(ranker, **options)
    for name in (
        "bert_masked_lm",
        "bert_multiple_choice",
        "bert_next_sentence",
        "bert_pretraining",
        "bert_question_answering",
        "bert_seqcls_single",
        "bert_token_cls",
    ):
        found[name] = lambda name=name, **options: AutoModel.from_pretrained(MODELS / name, **options)
    return found


def test_the_heads_above_are_all_heads_of_bert(tmp_path: Path) -> None:
    classes = {type(load()).__name__ for name, load in loaders(tmp_path).items() if name.startswith("bert_")}
    assert classes == {name for name in heads.__all__ if name.startswith("BertFor")}


def test_every_class_refuses_what_it_does_not_have_before_it_reads_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wordpiece_bert.bert import loading

    def read(*_: object, **__: object) -> None:
        message = "weights were read before the options were checked"
        raise AssertionError(message)

    found = loaders(tmp_path)
    monkeypatch.setattr(loading, "open_tensors", read)
    monkeypatch.setattr("wordpiece_bert.sentence.multi_vector.multi_vector_loading.open_tensors", read)
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"dtype": "int4"}, InputError, "dtype must be one of 'float32', 'bfloat16', 'int8', 'auto', not 'int4'"),
        ({"dtype": None}, InputError, "dtype must be one of 'float32', 'bfloat16', 'int8', 'auto', not None"),
        ({"dtype": ["int8"]}, InputError, "dtype must be one of 'float32', 'bfloat16', 'int8', 'auto', not "),
        ({"backend": "jax"}, InputError, "backend must be one of 'numpy', 'rust', not 'jax'"),
        (
            {"backend": "numpy", "dtype": "bfloat16"},
            ConfigError,
            "dtype='bfloat16': backend 'numpy' computes in 'float32', 'auto' only",
        ),
        (
            {"backend": "numpy", "dtype": "int8"},
            ConfigError,
            "dtype='int8': backend 'numpy' computes in 'float32', 'auto' only",
        ),
        ({"dtype": "int8", "calibrate": []}, InputError, "calibrate has no texts"),
        ({"dtype": "int8", "calibrate": "a"}, InputError, "calibrate must be a list of texts, not str"),
        ({"dtype": "int8", "calibrate": b"a"}, InputError, "calibrate must be a list of texts, not bytes"),
        ({"dtype": "int8", "calibrate": 7}, InputError, "calibrate must be a list of texts, not int"),
        ({"dtype": "int8", "calibrate": {"a"}}, InputError, "calibrate must be a list of texts, not set"),
        ({"dtype": "int8", "calibrate": {0: "a"}}, InputError, "calibrate must be a list of texts, not dict"),
        ({"dtype": "int8", "calibrate": ["a", 3]}, InputError, r"calibrate\[1\] must be a string, not int"),
        ({"dtype": "float32", "calibrate": ["a"]}, InputError, "calibrate is for dtype='int8', not 'float32'"),
        ({"dtype": "bfloat16", "calibrate": ["a"]}, InputError, "calibrate is for dtype='int8', not 'bfloat16'"),
        ({"dtype": "auto", "calibrate": ["a"]}, InputError, "calibrate is for dtype='int8', not 'auto'"),
    ]
    for name, load in found.items():
        for options, error, message in cases:
            with pytest.raises(error) as raised:
                load(**options)
            assert re.search(message, str(raised.value)), f"{name} with {options}: {raised.value}"


@pytest.mark.parametrize("cls", ENCODERS, ids=lambda cls: cls.__name__)
def test_encoders_take_every_dtype_and_say_which(cls: type[Any]) -> None:
    folder = MODELS / ENCODERS[cls]
    exact = as_array(cls(folder).encode(TEXTS))
    for dtype in (*DTYPES["rust"], AUTO):
        encoder = cls(folder, dtype=dtype, threads=1)
        chosen = choose_dtype("rust", dtype)
        assert (encoder.engine.dtype, encoder.engine.threads) == (chosen, 1)
        assert encoder.engine.reason.startswith("the fastest dtype" if dtype == AUTO else "requested")
        found = as_array(encoder.encode(TEXTS))
        assert (exact * found).sum() / np.linalg.norm(exact) / np.linalg.norm(found) > 0.999, dtype
        assert np.array_equal(exact, found) == (chosen == "float32")
    assert cls(folder, backend="numpy", dtype="auto").engine.instructions == "blas"


@pytest.mark.parametrize("cls", ENCODERS, ids=lambda cls: cls.__name__)
def test_encoders_are_calibrated_by_the_texts_that_they_are_given(cls: type[Any]) -> None:
    folder = MODELS / ENCODERS[cls]
    usual = as_array(cls(folder, dtype="int8").encode(TEXTS))
    encoder = cls(folder, dtype="int8", calibrate=LINES)
    found = as_array(encoder.encode(TEXTS))
    assert not np.array_equal(found, usual)
    np.testing.assert_array_equal(as_array(cls(folder, dtype="int8", calibrate=LINES).encode(TEXTS)), found)
    # A pickle has the texts, because it loads the folder again.
    np.testing.assert_array_equal(as_array(pickle.loads(pickle.dumps(encoder)).encode(TEXTS)), found)


def test_colberts_own_folders_are_calibrated_by_texts_and_not_by_random_rows() -> None:
    folder = MODELS / "colbert_stanford"
    vectors = [
        as_array(MultiVectorEncoder(folder, dtype="int8", **options).encode(TEXTS))
        for options in ({}, {"calibrate": LINES})
    ]
    assert not np.array_equal(*vectors)


def test_a_sparse_encoder_of_weights_alone_has_no_layers_to_calibrate(tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    shutil.copytree(MODELS / "splade_inference_free" / "query_0_SparseStaticEmbedding", folder / "0_Weights")
    kind = "sentence_transformers.sparse_encoder.modules.sparse_static_embedding.SparseStaticEmbedding"
    modules = [{"idx": 0, "name": "0", "path": "0_Weights", "type": kind}]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "config_sentence_transformers.json").write_text('{"model_type": "SparseEncoder"}')
    with pytest.raises(
        InputError, match="calibrate is for the layers of a model, and this one has token weights alone"
    ):
        SparseEncoder(folder, dtype="int8", calibrate=LINES)
    with pytest.raises(InputError, match="dtype must be one of"):
        SparseEncoder(folder, dtype="int4")
    engine = SparseEncoder(folder, threads=1).engine
    assert (engine.dtype, engine.threads) == ("float32", 1)
    assert "from a table" in engine.reason
    # With a route that runs a model, that one is described.
    assert SparseEncoder(MODELS / "splade_inference_free", dtype="int8").engine.dtype == "int8"


def as_array(vectors: Any) -> Any:
    """Dense, sparse or multiple vectors as one array."""
    if isinstance(vectors, np.ndarray):
        return vectors
    return vectors.vectors if hasattr(vectors, "vectors") else vectors.toarray()


@pytest.mark.parametrize("cls", ENCODERS, ids=lambda cls: cls.__name__)
def test_embed_calibrates_every_class(cls: type[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, lines = tmp_path / "texts.txt", tmp_path / "lines.txt"
    texts.write_text("\n".join(TEXTS) + "\n")
    lines.write_text("\n\n".join(LINES) + "\n")
    folder = MODELS / ENCODERS[cls]
    command = ["embed", str(texts), "-m", str(folder), "--dtype", "int8", "--format", "jsonl"]
    outputs = []
    for index, options in enumerate((["--calibrate", str(lines), "--verbose"], ["--quiet"])):
        output = tmp_path / f"{index}.jsonl"
        assert main([*command, "-o", str(output), *options]) == 0
        outputs.append(output.read_text())
    assert outputs[0] != outputs[1]
    assert str(cls(folder, dtype="int8").engine) in capsys.readouterr().err
    for options, message in (
        (["--dtype", "int4"], "must be one of 'float32', 'bfloat16', 'int8', 'auto', not 'int4'"),
        (["--dtype", "bfloat16", "--calibrate", str(lines)], "calibrate is for --dtype int8, not 'bfloat16'"),
        (["--dtype", "int8", "--calibrate", str(tmp_path / "none.txt")], "none.txt"),
    ):
        assert main(["embed", str(texts), "-m", str(folder), "-o", str(tmp_path / "x.jsonl"), *options]) != 0
        assert message in capsys.readouterr().err
    lines.write_text("\n \n")
    options = ["--dtype", "int8", "--calibrate", str(lines)]
    assert main(["embed", str(texts), "-m", str(folder), "-o", str(tmp_path / "x.jsonl"), *options]) != 0
    assert "calibrate has no texts" in capsys.readouterr().err
    assert not (tmp_path / "x.jsonl").exists()


def test_search_calibrates_both_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, lines = tmp_path / "texts.txt", tmp_path / "lines.txt"
    texts.write_text("\n".join(TEXTS) + "\n")
    lines.write_text("\n".join(LINES) + "\n")
    given: list[Any] = []
    for cls in (SentenceEncoder, CrossEncoder):
        original = cls.from_pretrained
        monkeypatch.setattr(
            cls,
            "from_pretrained",
            lambda name, original=original, **options: (given.append(options), original(name, **options))[1],
        )
    ranker = with_tokenizer("cross_encoder_score", tmp_path)
    command = ["search", str(texts), "-m", str(MODELS / "sentence_plain_folder"), "--query", "a dog", "--verbose"]
    options = ["--rerank", str(ranker), "--dtype", "int8", "--calibrate", str(lines)]
    assert main([*command, *options]) == 0
    assert [(one["dtype"], one["calibrate"]) for one in given] == [("int8", LINES)] * 2
    assert "int8 by " in capsys.readouterr().err
    assert main([*command, "--calibrate", str(lines)]) != 0
    assert "calibrate is for --dtype int8, not 'float32'" in capsys.readouterr().err


@pytest.mark.parametrize("module", [embed, search])
def test_a_command_resolves_the_name_of_its_model_once(
    module: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A name may stand for a download, and a folder may be replaced between two look-ups."""
    texts = tmp_path / "texts.txt"
    texts.write_text("a cat\n")
    named = []

    def find(name: Any, **options: Any) -> Path:
        named.append(name)
        return find_model(MODELS / "sentence_plain_folder" if name == "a-name" else name, **options)

    monkeypatch.setattr("wordpiece_bert.hub.find_model", find)
    monkeypatch.setattr("wordpiece_bert.bert.loading.find_model", find)
    more = ["-o", str(tmp_path / "x.npy")] if module is embed else ["--query", "a cat"]
    assert main([module.__name__.rpartition(".")[2], str(texts), "-m", "a-name", *more]) == 0
    capsys.readouterr()
    assert named.count("a-name") <= 2  # once for the model, and once to see whether the output would replace its files
