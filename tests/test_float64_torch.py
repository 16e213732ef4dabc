"""The part `float64` of the benchmark of accuracy: the distance of float32 to float64, beside torch's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as commands
from benchmarks import accuracy, exactness
from model_files import MODELS
from wordpiece_bert.bert import AutoModel

MODEL = MODELS / "sentence_plain_folder"


def test_the_error_of_a_text_is_that_of_its_worst_token() -> None:
    exact = exactness.States(np.array([[1.0, 4.0], [2.0, -1.0], [0.5, 8.0]]), np.array([[1.5, 1.5], [0.5, 8.0]]))
    tokens = np.array([[1.0, 4.0], [2.5, -1.0], [0.5, 7.0]], np.float32)
    found = exactness.States(tokens, np.array([[1.5, 1.5], [0.5, 7.5]], np.float32))
    of_tokens, of_means = exactness.errors(found, exact, np.array([0, 2, 3]))
    assert of_tokens.tolist() == [0.25, 0.125]
    assert of_means.tolist() == [0, 0.0625]
    assert list(exactness.statistics(of_tokens)) == pytest.approx([0.1875, 0.24875, 0.25])


def test_random_models_have_the_shape_and_the_deviation(tmp_path: Path) -> None:
    folder = exactness.random_model(MODEL, tmp_path / "random", 0.25)
    found, like = (AutoModel.base_from_pretrained(one, "numpy") for one in (folder, MODEL))
    weights, like_weights = found._encoder.weights, like._encoder.weights
    assert {name: x.shape for name, x in weights.items()} == {name: like_weights[name].shape for name in weights}
    norms = [x for name, x in weights.items() if "LayerNorm.weight" in name]
    others = [x for name, x in weights.items() if "LayerNorm.weight" not in name]
    for arrays, mean in ((norms, 1), (others, 0)):
        numbers = np.concatenate([np.asarray(x).ravel() for x in arrays])
        assert numbers.mean() == pytest.approx(mean, abs=0.05)
        assert numbers.std() == pytest.approx(0.25, abs=0.05)


def test_float64_needs_a_python_with_torch(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        commands.main(["accuracy", "--only", "float64"])
    assert "--torch" in capsys.readouterr().err


def test_float32_is_compared_with_float64(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    command = ["accuracy", "--only", "float64", "--torch", sys.executable, "--model", str(MODEL), "--quick"]
    assert commands.main([*command, "--record", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    (record,) = tmp_path.glob("*.json")
    results = json.loads(record.read_text(encoding="utf-8"))["results"]
    assert {*results} == {"float64"} < {*accuracy.SECTIONS}
    titles = [str(MODEL), "random, deviation 0.25", "random, deviation 1"]
    assert [*results["float64"]] == titles
    for title, by_kind in results["float64"].items():
        assert f"### {title}" in out
        assert [*by_kind] == ["hidden states", "means"]
        for of_kind in by_kind.values():
            assert [*of_kind] == ["ours rust", "ours numpy", "torch", "torch eager"]
            for found in of_kind.values():
                # Far from bfloat16's 4e-3, and not the reference itself.
                assert 1e-9 < found["median"] <= found["percentile_99"] <= found["greatest"] < 1e-3
    assert out.count("the lowest is that of") == 3 * 2 * 2
