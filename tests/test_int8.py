"""`dtype="int8"`: quantized weights and inputs, their calibration, and saved models."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS, with_tokenizer
from wordpiece_bert import CrossEncoder, SentenceEncoder, _core, tasks
from wordpiece_bert.bert import AutoModel, BertModel, loading
from wordpiece_bert.bert.calibration import calibration_rows, random_rows
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.quantized import Int8Weight, input_factors, joined_tensors, split_tensors
from wordpiece_bert.cli import main
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError

#: Texts that the tiny models do not truncate.
SHORT = ["a cat", "the dog runs home", "one two three"]

#: Short sentences without rare words.
SHORT_SENTENCES = [
    *("Yes, you have got it.", "No, it is not.", "How do you do it?", "That is not a good idea."),
    *("You have got it right.", "Think about it in this way.", "It is up to you.", "I do not think so."),
    *("What do you want to know?", "Let me answer this.", "This is it.", "That was all.", "Why not?"),
    *("There is nothing there.", "He is not here.", "Do it again.", "A man is playing a guitar."),
]


def ids_for(model: Any, rows: int = 5, length: int = 21) -> npt.NDArray[np.int64]:
    return np.random.default_rng(6).integers(2, model.config.vocab_size, (rows, length))


def cosine(x: npt.NDArray[np.float32], y: npt.NDArray[np.float32]) -> float:
    return float((x * y).sum() / np.linalg.norm(x) / np.linalg.norm(y))


def test_quantization_is_deterministic_and_follows_the_calibration() -> None:
    folder = MODELS / "sentence_plain_folder"
    first, again = (SentenceEncoder(folder, dtype="int8").encode(SHORT) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = SentenceEncoder(folder, dtype="int8", calibrate=["one text", "and another"]).encode(SHORT)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("calibrate", "dtype", "message"),
    [
        ([], "int8", "calibrate has no texts"),
        ("one text", "int8", "calibrate must be a list of texts, not str"),
        (7, "int8", "calibrate must be a list of texts, not int"),
        (["a text", 3], "int8", r"calibrate\[1\] must be a string, not int"),
        (["a text"], "float32", "calibrate is for dtype='int8', not 'float32'"),
        (["a text"], "bfloat16", "calibrate is for dtype='int8', not 'bfloat16'"),
    ],
)
def test_a_wrong_calibration_is_refused(calibrate: object, dtype: str, message: str, tmp_path: Path) -> None:
    ranker = with_tokenizer("cross_encoder_score", tmp_path)
    loads: list[Any] = [BertModel.from_pretrained, AutoModel.from_pretrained, SentenceEncoder, tasks.load]
    for load in loads:
        with pytest.raises(InputError, match=message):
            load(MODELS / "sentence_plain_folder", dtype=dtype, calibrate=calibrate)
    with pytest.raises(InputError, match=message):
        CrossEncoder(ranker, dtype=dtype, calibrate=calibrate)


def test_other_engines_and_models_do_not_have_it() -> None:
    with pytest.raises(ConfigError, match="dtype='int8': backend 'numpy' computes in 'float32', 'auto' only"):
        BertModel.from_pretrained(MODELS / "bert_model", "numpy", "int8")
    with pytest.raises(InputError, match="dtype must be 'float32' for a static model"):
        SentenceEncoder(MODELS / "static_st", dtype="int8", calibrate=["a"])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused_by_name(bad: float) -> None:
    plain = BertModel.from_pretrained(MODELS / "bert_model")
    weights = {name: weight.copy() for name, weight in plain.named_parameters()}
    for name in ("encoder.layer.1.output.dense.weight", "embeddings.word_embeddings.weight", "pooler.dense.bias"):
        broken = {**weights, name: weights[name].copy()}
        broken[name].flat[5] = bad
        BertModel(plain.config, broken)  # float32 computes with it
        with pytest.raises(CheckpointError, match=f"1 weights are NaN or infinite.*{name}"):
            BertModel(plain.config, broken, dtype="int8")


def test_a_saved_model_is_loaded_without_the_float_weights_and_computes_the_same_bits(tmp_path: Path) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / "bert_model", dtype="int8")
    ids = ids_for(model)
    expected = model(ids).last_hidden_state
    model.save_pretrained(tmp_path)
    stored = read_tensors(tmp_path / "model.safetensors")
    assert any(tensor.dtype == np.int8 for tensor in stored.values())
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["quantization_config"] == {"quant_method": "wordpiece_bert_int8", "group_size": 64}
    again: Any = AutoModel.from_pretrained(tmp_path, dtype="int8")
    np.testing.assert_array_equal(again(ids).last_hidden_state, expected)
    # Saving what was loaded changes nothing.
    again.save_pretrained(tmp_path / "again")
    for name, tensor in read_tensors(tmp_path / "again" / "model.safetensors").items():
        np.testing.assert_array_equal(tensor, stored[name], err_msg=name)
    for dtype in ("float32", "bfloat16"):
        with pytest.raises(ConfigError, match="has int8 weights: load it with dtype='int8'"):
            AutoModel.from_pretrained(tmp_path, dtype=dtype)
    with pytest.raises(ConfigError, match="dtype='int8': backend 'numpy' computes in"):
        AutoModel.from_pretrained(tmp_path, backend="numpy", dtype="auto")


def test_a_saved_sentence_encoder_gives_the_same_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = SentenceEncoder(MODELS / "sentence_plain_folder", dtype="int8")
    encoder.save_pretrained(tmp_path)
    with monkeypatch.context() as patch:  # nothing is quantized, so no texts are tokenized
        patch.setattr(loading, "calibration_rows", lambda *_, **__: pytest.fail("they were made"))
        again = SentenceEncoder(tmp_path, dtype="auto")
    assert (again.engine.dtype, again.engine.reason) == ("int8", "the weights are stored in int8")
    np.testing.assert_array_equal(encoder.encode(SHORT), again.encode(SHORT))
    with pytest.raises(InputError, match=r"calibrate is for weights that are quantized when .* has int8 weights"):
        SentenceEncoder(tmp_path, dtype="int8", calibrate=SHORT)
    # A command without --dtype says what to do instead.
    assert main(["distill", "-m", str(tmp_path), "-o", str(tmp_path / "static")]) == 2
    assert "has int8 weights; name the model that it was quantized from" in capsys.readouterr().err


def test_parts_of_an_int8_weight_that_do_not_fit_are_refused() -> None:
    values = np.ones((3, 70), np.int8)
    good = {"w": values, "w.int8_scales": np.ones((3, 2), np.float32), "w.int8_factors": np.ones(70, np.float32)}
    (weight,) = joined_tensors(good, "file").values()
    assert isinstance(weight, Int8Weight)
    assert split_tensors({"w": weight}).keys() == good.keys()
    # Two columns that are not quantized: their factors are 0.
    factors = np.ones(70, np.float32)
    factors[[3, 66]] = 0
    columns = np.array([[0.5, 1e-9], [2.0, -3.0], [1e20, 0.0]], np.float32)
    kept = {**good, "w.int8_factors": factors, "w.int8_columns": columns}
    (weight,) = joined_tensors(kept, "file").values()
    assert split_tensors({"w": weight}).keys() == kept.keys()
    np.testing.assert_array_equal(weight.widen()[:, [3, 66]], columns)
    np.testing.assert_array_equal(weight.rows(slice(1, 2)), weight.widen()[1:2])
    for name, value, message in (
        ("w.int8_columns", columns[:, :1], "has 2 factors that are 0, but 1 columns"),
        ("w.int8_columns", columns[:2], "is not an int8 weight"),
        ("w.int8_columns", columns[0], "is not an int8 weight"),
        ("w.int8_columns", columns.astype(np.float64), "is not an int8 weight"),
        ("w.int8_columns", np.full_like(columns, np.nan), "NaN, infinite or negative"),
        ("w.int8_factors", np.ones(70, np.float32), "has 0 factors that are 0, but 2 columns"),
    ):
        with pytest.raises(CheckpointError, match=message):
            joined_tensors({**kept, name: value}, "file")
    lowest = values.copy()
    lowest[1, 2] = -128
    for name, value, message in (
        ("w", values.astype(np.float32), "is not an int8 weight"),
        ("w", lowest, "has the number -128"),
        ("w.int8_scales", np.ones((3, 1), np.float32), "is not an int8 weight"),
        ("w.int8_scales", np.full((3, 2), np.nan, np.float32), "NaN, infinite or negative"),
        ("w.int8_factors", np.ones(71, np.float32), "is not an int8 weight"),
        ("w.int8_factors", np.full(70, -1, np.float32), "NaN, infinite or negative"),
        ("w.int8_factors", np.zeros(70, np.float32), "has 70 factors that are 0, but 0 columns"),
    ):
        with pytest.raises(CheckpointError, match=message):
            joined_tensors({**good, name: value}, "file")
    with pytest.raises(CheckpointError, match="belongs to an int8 weight that the file does not have"):
        joined_tensors({"w.int8_scales": good["w.int8_scales"]}, "file")
    with pytest.raises(CheckpointError, match="belongs to an int8 weight that the file does not have"):
        joined_tensors({"w.int8_columns": columns}, "file")


@given(st.integers(1, 200), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_quantized_numbers_are_within_half_a_step(columns: int, rows: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    weight = random.normal(size=(rows, columns)).astype(np.float32)
    factors = np.exp2(random.integers(-3, 4, columns)).astype(np.float32)
    factors[random.random(columns) < 0.05] = 0
    quantized = _core.quantize((weight, "float32"), factors)
    assert quantized is not None
    found = Int8Weight(*quantized, factors)
    assert found.values.min() >= -127
    steps = np.repeat(found.scales, 64, axis=1)[:, :columns] * factors  # 0 for columns that are not quantized
    assert (np.abs(found.widen() - weight) <= steps * 0.5001).all()
    np.testing.assert_array_equal(found.columns, weight[:, factors == 0])
    np.testing.assert_array_equal(found.rows(slice(0, 1)), found.widen()[:1])


def test_factors_make_inputs_and_weights_equally_large() -> None:
    random = np.random.default_rng(0)
    size = np.exp2(np.array([-6.0, 0.0, 3.0, 5.0]))
    x, w = random.normal(size=(500, 4)) * size, random.normal(size=(300, 4)).astype(np.float32)
    factors = input_factors(500, (x**2).sum(0), np.zeros(4, np.float32), [w[:100], w[100:]])
    ratio = np.sqrt(((x * factors) ** 2).mean(0) / ((w / factors) ** 2).mean(0))
    assert (np.abs(np.log2(ratio)) < 0.2).all()
    # An input that is always 0 has a factor all the same.
    assert np.isfinite(input_factors(10, np.zeros(4), np.zeros(4, np.float32), [w])).all()


def test_inputs_that_one_token_has_many_times_larger_are_not_quantized() -> None:
    """They would take the digits of the others in their group: here the error would be twenty times as large."""
    random = np.random.default_rng(1)
    x = random.normal(size=(400, 128)).astype(np.float32)
    x[::20, 70] *= 100
    w = random.normal(size=(50, 128)).astype(np.float32)

    def factors_of(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return input_factors(len(x), (x.astype(np.float64) ** 2).sum(0), np.abs(x).max(0), [w])

    factors = factors_of(x)
    np.testing.assert_array_equal(np.flatnonzero(factors == 0), [70])
    quantized = _core.quantize((w, "float32"), factors)
    assert quantized is not None
    layer = _core.PackedDense(["w"], [(((*quantized,), "int8"), np.zeros(50, np.float32))], "int8", None, factors)
    expected = x @ w.T
    error = np.linalg.norm(layer.multiply(x, "identity") - expected, axis=1)
    assert (error / np.linalg.norm(expected, axis=1)).max() < 0.02
    assert error[::20].mean() < 1.5 * error.mean()
    # Pickled layers keep their columns.
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(layer)).multiply(x, "identity"), layer.multiply(x, "identity")
    )
    # At most two, the largest; none where all have the same distribution.
    x[::20, [5, 90]] *= 50
    np.testing.assert_array_equal(np.sort(np.argsort(-np.abs(x * (factors_of(x) == 0)).max(0))[:2]), [70, 90])
    assert (factors_of(x) == 0).sum() == 2
    assert (factors_of(random.normal(size=(400, 128)).astype(np.float32)) > 0).all()


def test_an_input_that_calibration_has_not_seen_takes_no_digits_of_the_others() -> None:
    """As a unit after a ReLU that no calibration row activates: its factor is like the factors of the others."""
    random = np.random.default_rng(2)
    w = random.normal(size=(50, 64)).astype(np.float32)
    x = random.normal(size=(400, 64))
    x[:, 7] = 0
    factors = input_factors(400, (x**2).sum(0), np.zeros(64, np.float32), [w])
    assert 0.5 < factors[7] / np.median(factors) < 2
    x[0, 7] = 1.0
    scaled = x[0] * factors  # as it is quantized: the largest number of a group is 127
    rounded = np.rint(scaled / np.abs(scaled).max() * 127) * np.abs(scaled).max() / 127 / factors
    expected = w @ x[0]
    assert np.linalg.norm(w @ rounded - expected) / np.linalg.norm(expected) < 0.05


def test_calibration_without_a_tokenizer_takes_random_rows(tmp_path: Path) -> None:
    model = BertModel.from_pretrained(MODELS / "bert_model")
    rows = calibration_rows(tmp_path, model.config, None)
    np.testing.assert_array_equal(np.concatenate(rows), np.concatenate(random_rows(model.config)))


def test_commands_take_the_dtype_and_the_calibration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, lines = tmp_path / "texts.txt", tmp_path / "lines.txt"
    texts.write_text("a cat\na dog\n")
    lines.write_text("the first line\n\nand another\n")
    model = str(MODELS / "sentence_plain_folder")
    arrays = []
    for index, options in enumerate((["--calibrate", str(lines)], [])):
        output = tmp_path / f"{index}.npy"
        command = ["embed", str(texts), "-o", str(output), "-m", model, "--dtype", "int8", *options]
        assert main(command) == 0
        arrays.append(np.load(output))
    expected = SentenceEncoder(model, dtype="int8", calibrate=["the first line", "and another"]).encode(
        ["a cat", "a dog"]
    )
    np.testing.assert_array_equal(arrays[0], expected)
    capsys.readouterr()
    command = ["embed", str(texts), "-o", str(tmp_path / "x.npy"), "-m", model, "--calibrate", str(lines)]
    assert main(command) != 0
    assert "calibrate is for --dtype int8, not 'float32'" in capsys.readouterr().err


@pytest.mark.model
def test_minilm_keeps_its_digits(tmp_path: Path) -> None:
    """The bounds are those that the documentation promises, over texts that were not used for calibration."""
    from pathlib import Path as File

    sentences = [line for line in File("examples/texts/sentences.txt").read_text().splitlines() if line.strip()]
    plain, encoder = SentenceEncoder("minilm"), SentenceEncoder("minilm", dtype="int8")

    def cosines(texts: list[str]) -> npt.NDArray[np.float32]:
        exact, found = plain.encode(texts), encoder.encode(texts)
        products: npt.NDArray[np.float32] = (exact * found).sum(1)
        return products / np.linalg.norm(exact, axis=1) / np.linalg.norm(found, axis=1)

    assert cosines(sentences).min() >= 0.9995
    assert np.median(cosines(sentences)) >= 0.9998
    # Short sentences of frequent words, which have the lowest cosines of all.
    assert cosines(SHORT_SENTENCES).min() >= 0.999
    shortest = {" ".join(line.split()[:count]) for line in sentences for count in (1, 2, 3)}
    letters = [chr(code) for code in range(33, 127)]
    assert (
        cosines([*sorted(shortest | {word for line in sentences for word in line.split()}), *letters]).min() >= 0.9985
    )
    found = encoder.encode(sentences)
    encoder.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").stat().st_size < 0.3 * 90_868_376
    np.testing.assert_array_equal(SentenceEncoder(tmp_path, dtype="int8").encode(sentences[:20]), found[:20])
