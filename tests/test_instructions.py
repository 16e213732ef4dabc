"""The instruction set: of an encoder, of a command, of the process; what is recorded of it."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import error_of
from model_files import MODELS
from processes import python
from tiny_models import make_sentences
from wordpiece_bert import _core
from wordpiece_bert.bert import BertModel
from wordpiece_bert.bert.auto import AutoModel
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import CrossEncoder, M3Encoder, MultiVectorEncoder, SentenceEncoder, SparseEncoder
from wordpiece_bert.sentence.dense.encoder_fingerprint import fingerprint_of
from wordpiece_bert.serve.model_loading import load_model
from wordpiece_bert.tasks import load

TEXTS = ["a cat", "the dog runs home", "one two three"]
BEST = _core.describe_products("float32")[1]
SEVERAL = len(_core.kernel_instruction_sets()) > 1
#: What loads each kind, a folder, and numbers of it.
KINDS: dict[str, tuple[Any, str, Any]] = {
    "sentence": (SentenceEncoder, "st_modernbert_mean", lambda model: model.encode(TEXTS)),
    "sparse": (SparseEncoder, "splade_max", lambda model: model.encode(TEXTS).values),
    "multi-vector": (MultiVectorEncoder, "colbert_st", lambda model: np.concatenate(list(model.encode(TEXTS)))),
    "m3": (M3Encoder, "m3_model", lambda model: model.encode(TEXTS)[0]),
    "cross": (CrossEncoder, "rerank_modules_mean", lambda model: model.predict([("a cat", text) for text in TEXTS])),
    "model": (BertModel.from_pretrained, "bert_model", lambda model: model([[2, 7, 3]]).last_hidden_state),
    "auto": (AutoModel.from_pretrained, "bert_masked_lm", lambda model: model([[2, 7, 3]]).logits),
    "task": (
        lambda name, **more: load(name, **more).model,
        "zero_shot_bert",
        lambda model: model([[2, 7, 3]]).logits,
    ),
    "server": (load_model, "st_nomic", lambda model: model.encode(TEXTS)),
}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_sentences(Path("model"))
    Path("texts.txt").write_text("to repair a bicycle\nbread dough in the oven\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_each_kind_computes_with_the_instructions_that_it_is_given(kind: str, dtype: str) -> None:
    make, folder, numbers = KINDS[kind]
    name = str(MODELS / folder)
    model = make(name, dtype=dtype, instructions="scalar")
    assert model.engine.instructions == "scalar"
    best = make(name, dtype=dtype)
    if SEVERAL:
        assert best.engine.instructions != "scalar"
    if (dtype, best.engine.instructions) != ("int8", "amx-int8"):
        np.testing.assert_array_equal(numbers(model), numbers(best))
    again = pickle.loads(pickle.dumps(model))
    assert again.engine == model.engine
    np.testing.assert_array_equal(numbers(again), numbers(model))


def test_what_is_not_there_is_refused() -> None:
    folder = str(MODELS / "st_nomic")
    with pytest.raises(InputError, match='no instruction set "mmx"; it has scalar'):
        SentenceEncoder(folder, instructions="mmx")
    with pytest.raises(InputError, match="name of an instruction set, for backend='rust', not 'scalar'"):
        SentenceEncoder(folder, backend="numpy", instructions="scalar")
    with pytest.raises(InputError, match="not 5"):
        SentenceEncoder(folder, instructions=5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="instructions must be None for a static model"):
        SentenceEncoder(str(MODELS / "static_m2v"), instructions="scalar")


def test_files_record_the_instructions_and_compare_them_not(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "texts.txt", "-m", "model", "-o", "v.npy", "-q", "--instructions", "scalar"]) == 0
    assert json.loads(Path("v.npy.fingerprint.json").read_text())["instructions"] == "scalar"
    assert fingerprint_of(SentenceEncoder("model"), None, prompt="").instructions == BEST
    assert main(["search", "texts.txt", "-m", "model", "--vectors", "v.npy", "--query", "bread", "--json", "-q"]) == 0
    capsys.readouterr()
    error = error_of(capsys, "embed", "texts.txt", "-m", "model", "-o", "w.npy", "-q", "--instructions", "mmx")
    assert 'no instruction set "mmx"' in error


def process(code: str, value: str) -> subprocess.CompletedProcess[str]:
    return python(code, env={**os.environ, "WORDPIECE_BERT_INSTRUCTION_SET": value})


def test_the_environment_decides_for_the_process() -> None:
    code = (
        "from wordpiece_bert import SentenceEncoder\n"
        f"encoder = SentenceEncoder({str(MODELS / 'st_nomic')!r})\n"
        f"print(encoder.engine.instructions, encoder.encode({TEXTS!r}).tobytes().hex())\n"
        f"print(SentenceEncoder({str(MODELS / 'st_nomic')!r}, instructions='scalar').engine.instructions)"
    )
    expected = SentenceEncoder(MODELS / "st_nomic", instructions="scalar").encode(TEXTS).tobytes().hex()
    assert process(code, " scalar ").stdout == f"scalar {expected}\nscalar\n"
    assert process(code, "").stdout.startswith(f"{BEST} ")


def test_a_wrong_name_in_the_environment_is_an_error() -> None:
    done = process("import wordpiece_bert; wordpiece_bert.Tokenizer", "mmx")
    assert done.returncode == 1
    message = "the environment variable WORDPIECE_BERT_INSTRUCTION_SET must be one of scalar"
    assert message in done.stderr
    assert 'not "mmx": correct or unset it' in done.stderr
