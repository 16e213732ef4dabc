"""The dtypes of the engines: which `dtype="auto"` takes on this CPU, and how a model says what computes."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wordpiece_bert as wb
from model_files import MODELS, with_tokenizer
from wordpiece_bert import CrossEncoder, SentenceEncoder, _core, tasks
from wordpiece_bert.bert import AutoModel, BertModel
from wordpiece_bert.bert.engines import DTYPES, choose_dtype, describe_engine
from wordpiece_bert.bert.engines.choice import AUTO
from wordpiece_bert.cli import main
from wordpiece_bert.errors import ConfigError, InputError

#: Whether this CPU multiplies bfloat16 faster than float32.
FASTER = _core.describe_products("bfloat16")[2]


def test_auto_takes_bfloat16_exactly_where_its_products_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_dtype("rust", AUTO) == ("bfloat16" if FASTER else "float32")
    for faster, expected in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr(_core, "describe_products", lambda *_, faster=faster: ("a CPU", "avx2", faster, "a rule"))
        assert choose_dtype("rust", AUTO) == expected
        info = describe_engine("rust", expected, requested=AUTO)
        assert (info.cpu, info.dtype, info.instructions) == ("a CPU", expected, "avx2")
        assert info.reason == "the fastest dtype within a cosine of 0.9999 of float32 (a rule)"
        # The NumPy engine has one dtype.
        assert choose_dtype("numpy", AUTO) == "float32"


@pytest.mark.parametrize("instruction_set", _core.kernel_instruction_sets())
def test_products_are_faster_only_with_instructions_for_bfloat16(instruction_set: str) -> None:
    cpu, instructions, faster, reason = _core.describe_products("bfloat16", instruction_set)
    assert cpu
    assert reason
    assert instructions.startswith(instruction_set)
    assert faster == (instructions != instruction_set)
    # Tile registers do not multiply float32.
    vectors = "avx512" if instruction_set == "amx" else instruction_set
    assert _core.describe_products("float32", instruction_set)[1:] == (vectors, False, "")


def test_an_unknown_dtype_lists_what_is_offered() -> None:
    for dtype in ("int4", "", None, 16):
        with pytest.raises(InputError, match=r"dtype must be one of 'float32', 'bfloat16', .*'auto', not "):
            choose_dtype("rust", dtype)  # type: ignore[arg-type]
    for dtype in DTYPES["rust"][1:]:
        with pytest.raises(ConfigError, match=f"dtype='{dtype}': backend 'numpy' computes in 'float32', 'auto' only"):
            choose_dtype("numpy", dtype)
    for backend in ("jax", None, ["rust"]):
        with pytest.raises(InputError, match="backend must be one of 'numpy', 'rust', not "):
            choose_dtype(backend, "float32")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="multiply float32 or bfloat16"):
        _core.describe_products("float16")


def test_a_model_says_what_computes_and_why() -> None:
    folder = MODELS / "bert_small"
    model = BertModel.from_pretrained(folder, dtype="auto")
    assert model.dtype == choose_dtype("rust", AUTO)
    info = model.engine
    assert (info.backend, info.dtype, info.threads) == ("rust", model.dtype, _core.num_threads())
    assert info.reason.startswith("the fastest dtype within a cosine of 0.9999")
    assert str(info).startswith(f"{model.dtype} by {info.instructions} on {info.cpu}, {info.threads} thread")
    assert repr(info).startswith(f"EngineInfo(cpu={info.cpu!r}, backend='rust', dtype={model.dtype!r}")
    with pytest.raises(AttributeError):
        info.dtype = "int8"  # type: ignore[misc]
    # A model that was pickled keeps its dtype and the reason.
    again = pickle.loads(pickle.dumps(model))
    assert again.engine == info
    assert BertModel.from_pretrained(folder).engine.reason == "requested"
    assert BertModel.from_pretrained(folder, dtype="bfloat16").engine.reason.startswith("requested")
    plain = BertModel.from_pretrained(folder, "numpy", "auto").engine
    assert (plain.dtype, plain.instructions, plain.threads) == ("float32", "blas", None)
    assert plain.with_threads(3) == plain


def test_encoders_tasks_and_heads_take_every_dtype(tmp_path: Path) -> None:
    sentences = MODELS / "sentence_plain_folder"
    ranker = with_tokenizer("cross_encoder_score", tmp_path)
    for dtype in (*DTYPES["rust"], AUTO):
        chosen = choose_dtype("rust", dtype)
        encoder = SentenceEncoder(sentences, dtype=dtype, threads=1)
        assert encoder.engine.dtype == chosen
        assert encoder.engine.threads == 1
        exact = SentenceEncoder(sentences).encode("a cat")
        found = encoder.encode("a cat")
        assert found @ exact / np.linalg.norm(found) / np.linalg.norm(exact) > 0.999
        scored = CrossEncoder(ranker, dtype=dtype, threads=2)
        assert (scored.engine.dtype, scored.engine.threads) == (chosen, 2)
        assert np.isfinite(scored.predict([("a cat", "a dog")])).all()
        loaded = tasks.load(ranker, dtype=dtype)
        assert (loaded.model.dtype, loaded.model.engine.dtype) == (chosen, chosen)
        head: Any = AutoModel.from_pretrained(ranker, dtype=dtype)
        assert head.engine == loaded.model.engine
    static = SentenceEncoder(MODELS / "static_st", dtype="auto")
    assert static.engine.dtype == "float32"
    assert "rows of its table" in static.engine.reason


def test_set_num_threads_is_what_an_engine_reports() -> None:
    model = BertModel.from_pretrained(MODELS / "bert_small")
    # Only Linux says which processors a process may use.
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1024
    try:
        wb.set_num_threads(1)
        assert model.engine.threads == 1
        wb.set_num_threads(3)
        assert model.engine.threads == min(3, processors)
        assert model.engine.with_threads(2).threads == min(2, processors)
    finally:
        wb.set_num_threads(None)


def test_info_shows_the_engine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["info", "minilm"]) == 0
    out = capsys.readouterr().out
    assert "engine" in out
    assert "the fastest dtype within a cosine" in out
    assert ", ".join((*DTYPES["rust"], AUTO)) in out
    SentenceEncoder(MODELS / "sentence_plain_folder", dtype="int8").save_pretrained(tmp_path)
    assert main(["info", "--json", str(tmp_path)]) == 0
    engine = json.loads(capsys.readouterr().out)["engine"]
    assert (engine["dtypes"], engine["auto"]) == (["int8", "auto"], "int8")
