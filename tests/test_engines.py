"""The engines agree, and the Rust engine gives the same bits for a row in any batch, on every instruction set."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wordpiece_bert as wb
from kernel_paths import forced_path
from model_files import MODELS, reference_cases, sentence_folder, with_tokenizer
from wordpiece_bert import SentenceEncoder, _core
from wordpiece_bert.bert import AutoModel, BertModel
from wordpiece_bert.bert.checkpoint import bert_shapes
from wordpiece_bert.bert.engines.rust import PackedRustDense, RustDense, RustEncoder
from wordpiece_bert.bert.functional import POOLING_MODES, pool
from wordpiece_bert.bert.half_precision import to_bfloat16, widen
from wordpiece_bert.errors import InputError

# The arrays of an encoder are called CASE.in.NAME and CASE.out.NAME; the arrays of static and other sentence models are
# not.
FOLDERS = sorted(
    file.parent.name for file in MODELS.glob("*/reference.npz") if all(key.count(".") == 2 for key in np.load(file))
)
CASES = [(folder, case) for folder in FOLDERS for case in reference_cases(folder)]
EVERYTHING = {"output_hidden_states": True, "output_attentions": True}


def outputs(out: Any) -> dict[str, Any]:
    """All arrays of an output; tuples of arrays are stacked."""
    found = {name: getattr(out, name) for name in out.__dataclass_fields__}
    return {name: np.asarray(x) for name, x in found.items() if x is not None}


def check_close(found: Any, expected: Any, tolerance: float = 1e-6) -> None:
    """Compare all outputs; the tolerance is relative to the greatest of all numbers, which counts as at least 1."""
    found, expected = outputs(found), outputs(expected)
    assert found.keys() == expected.keys()
    scale = max(1.0, *(float(np.abs(x).max(initial=0.0)) for x in expected.values() if np.isfinite(x).all()))
    for name, x in expected.items():
        assert found[name].shape == x.shape, name
        assert found[name].dtype == x.dtype, name
        np.testing.assert_allclose(found[name], x, rtol=0, atol=tolerance * scale, err_msg=name)


# --- equal to NumPy


@pytest.mark.parametrize("backend", ["numpy", "rust"])
def test_optional_outputs_may_be_none_as_in_transformers(backend: Any) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / "bert_masked_lm", backend)
    output = model([[1]], output_attentions=None, output_hidden_states=None)
    assert (output.attentions, output.hidden_states) == (None, None)


@pytest.mark.parametrize(("folder", "case"), CASES)
def test_both_engines_give_the_same_numbers(folder: str, case: str) -> None:
    inputs, _ = reference_cases(folder)[case]
    expected: Any = AutoModel.from_pretrained(MODELS / folder, "numpy")
    found: Any = AutoModel.from_pretrained(MODELS / folder, "rust")
    # Which products NumPy's library computes depends on the CPU: NeoBERT is 1.1e-6 away with the products of a Xeon.
    check_close(found(**inputs, **EVERYTHING), expected(**inputs, **EVERYTHING), 2e-6)


@pytest.mark.parametrize("instruction_set", _core.kernel_instruction_sets())
@pytest.mark.parametrize(
    "folder", ["bert_model", "mpnet_model", "albert_model", "nomic_model", "jina_qk_norm", "neobert_model"]
)
def test_every_instruction_set_gives_the_same(folder: str, instruction_set: str) -> None:
    expected: Any = AutoModel.from_pretrained(MODELS / folder, "numpy")
    with forced_path(instruction_set):
        found: Any = AutoModel.from_pretrained(MODELS / folder, "rust")
    assert found._encoder._kernels.instruction_set == instruction_set
    for inputs, _ in reference_cases(folder).values():
        check_close(found(**inputs, **EVERYTHING), expected(**inputs, **EVERYTHING), 2e-6)  # NeoBERT: as above


def test_a_missing_instruction_set_is_reported() -> None:
    model = BertModel.from_pretrained(MODELS / "bert_small", "numpy")
    weights: dict[str, Any] = {name: np.array(weight) for name, weight in model.named_parameters()}
    with pytest.raises(InputError, match=r"this machine has no instruction set .avx1024"):
        RustEncoder(model.config, weights, "avx1024")


@pytest.fixture(scope="module")
def model() -> BertModel:
    return BertModel.from_pretrained(MODELS / "bert_small", "rust")


# --- the same bits


def tokens(model: BertModel, ids: Any, mask: Any = None, **options: Any) -> Any:
    return model(ids, mask, **options).last_hidden_state


@pytest.mark.parametrize("instruction_set", _core.kernel_instruction_sets())
@pytest.mark.parametrize("folder", ["bert_model", "mpnet_model", "electra_model"])
def test_pooled_rows_have_the_same_bits_in_any_batch(folder: str, instruction_set: str) -> None:
    plain: Any = AutoModel.from_pretrained(MODELS / folder, "numpy")
    names = {name: plain._name_in_checkpoint(name, plain.config) for name in bert_shapes(plain.config)}
    given_ = dict(plain.named_parameters())
    weights = {name: np.array(given_[own]) for name, own in names.items() if own in given_}
    encoder = RustEncoder(plain.config, weights, instruction_set)
    random = np.random.default_rng(1)
    rows = [random.integers(2, plain.config.vocab_size, random.integers(1, 20)) for _ in range(60)]

    def pooled(rows: list[Any], threads: int) -> Any:
        ends = np.cumsum([0, *map(len, rows)])
        return encoder.pooled(np.concatenate(rows), ends, POOLING_MODES, 1, threads)

    together = pooled(rows, 1)
    assert together.shape == (60, 6 * plain.config.hidden_size)
    for threads in (2, 3, 8):
        np.testing.assert_array_equal(pooled(rows, threads), together)
        np.testing.assert_array_equal(pooled(rows[::-1], threads)[::-1], together)
        for i in (0, 7, 59):
            np.testing.assert_array_equal(pooled([rows[i]], threads)[0], together[i])
    # Pooling in NumPy gives the same numbers.
    for i in (0, 7, 59):
        x = plain(rows[i][None]).last_hidden_state
        expected = np.concatenate([pool(x, np.ones(x.shape[:2], bool), mode, 1) for mode in POOLING_MODES], axis=1)
        # Relative to the greatest number, as everywhere between the engines: pooled sums exceed 10 here.
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(together[i] / scale, expected[0] / scale, rtol=0, atol=3e-6)


@pytest.mark.parametrize("folder", ["bert_model", "mpnet_model", "electra_model"])
def test_both_engines_pool_rows_of_different_lengths(folder: str) -> None:
    models: list[Any] = [AutoModel.base_from_pretrained(MODELS / folder, name) for name in ("rust", "numpy")]
    assert [model.takes_rows for model in models] == [True, False]
    random = np.random.default_rng(4)
    lengths = random.integers(1, 20, 12)
    rows = wb.RaggedBatch(
        ids=random.integers(2, models[0].config.vocab_size, lengths.sum()).astype(np.uint32),
        row_offsets=np.concatenate([[0], np.cumsum(lengths)]),
        truncated=np.zeros(12, bool),
    )
    for model in models:
        every = model.pooled(rows, slice(0, 12), POOLING_MODES, 1)
        assert every.shape == (12, 6 * model.config.hidden_size)
        for part in (slice(3, 7), np.array([7, 2, 11]), np.array([5])):
            np.testing.assert_allclose(model.pooled(rows, part, POOLING_MODES, 1), every[part], rtol=0, atol=3e-6)
    found, expected = (model.pooled(rows, np.arange(12)[::-1], ["mean", "cls"]) for model in models)
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6)


SENTENCES = ["the cat sat on the mat", "a", "", "cats " * 40, "the mat and the cat", "who is it ?"] * 9


@pytest.mark.parametrize("name", sorted(folder.name for folder in MODELS.glob("sentence_*") if folder.is_dir()))
def test_a_sentence_has_the_same_bits_in_any_batch(name: str, tmp_path: Path) -> None:
    encoder = SentenceEncoder.from_pretrained(sentence_folder(name, tmp_path))
    vectors, _ = encoder.encode(SENTENCES, return_truncated=True)
    other, _ = encoder.encode(SENTENCES[::-1], return_truncated=True, batch_size=3)
    np.testing.assert_array_equal(other[::-1], vectors)
    for i, text in enumerate(SENTENCES[:6]):
        alone, _ = encoder.encode(text, return_truncated=True)
        np.testing.assert_array_equal(alone, vectors[i])
    for threads in (1, 2, 3):
        counted = SentenceEncoder.from_pretrained(tmp_path / name, threads=threads)
        np.testing.assert_array_equal(counted.encode(SENTENCES, return_truncated=True)[0], vectors)
    numpy = SentenceEncoder.from_pretrained(tmp_path / name, "numpy")
    np.testing.assert_allclose(numpy.encode(SENTENCES, return_truncated=True)[0], vectors, rtol=0, atol=2e-6)


# --- weights are stored once, and returned unchanged


@pytest.mark.parametrize("folder", FOLDERS)
def test_parameters_are_returned_unchanged(folder: str, tmp_path: Path) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / folder, "rust")
    plain: Any = AutoModel.from_pretrained(MODELS / folder, "numpy")
    found, expected = dict(model.named_parameters()), dict(plain.named_parameters())
    assert list(found) == list(expected)
    for name, weight in expected.items():
        np.testing.assert_array_equal(found[name], weight, err_msg=name)
    assert model.num_parameters() == plain.num_parameters()
    model.save_pretrained(tmp_path)
    plain.save_pretrained(tmp_path / "plain")
    assert (tmp_path / "model.safetensors").read_bytes() == (tmp_path / "plain" / "model.safetensors").read_bytes()


def test_packed_weights_are_stored_only_in_the_engine(model: BertModel) -> None:
    kept = {name for name, weight in model._weights.items() if isinstance(weight, np.ndarray) and weight.ndim == 2}
    tables = {f"embeddings.{name}_embeddings.weight" for name in ("word", "position", "token_type")}
    assert kept == tables


# --- bfloat16


def test_weights_that_are_bfloat16_in_the_file_are_not_rounded() -> None:
    """Inputs are, where that makes products faster; weights are stored rounded, in half the memory."""
    near: Any = AutoModel.from_pretrained(MODELS / "variant_bfloat16", dtype="bfloat16")
    exact: Any = AutoModel.from_pretrained(MODELS / "variant_bfloat16")
    ids = np.random.default_rng(6).integers(2, near.config.vocab_size, (9, 20))
    same = not near.engine.instructions.endswith("bf16")
    assert np.array_equal(near(ids).last_hidden_state, exact(ids).last_hidden_state) == same
    original = dict(exact.named_parameters())
    for name, weight in near.named_parameters():
        rounded = name.endswith("weight") and near._weights[name].dtype != np.float32
        np.testing.assert_array_equal(weight, widen(to_bfloat16(original[name])) if rounded else original[name])


# --- dense layers of heads


def test_a_dense_layer_is_its_formula() -> None:
    random = np.random.default_rng(2)
    for rows, k, n in [(1, 5, 3), (17, 40, 100), (3, 33, 2100)]:
        weight, bias = random.normal(size=(n, k)).astype("f4"), random.normal(size=n).astype("f4")
        x = random.normal(size=(rows, 2, k)).astype(np.float32)
        expected = x.astype("f8") @ weight.astype("f8").T + bias
        size = np.abs(expected).max()
        dense = RustDense(weight, bias)
        np.testing.assert_allclose(dense(x), expected, rtol=0, atol=2e-6 * size)
        np.testing.assert_array_equal(PackedRustDense(weight, bias, "float32")(x), dense(x))
        for kind, tolerance in (("float32", 2e-6), ("bfloat16", 0.02), ("int8", 0.02)):
            packed = PackedRustDense(weight, bias, kind)
            np.testing.assert_allclose(packed(x), expected, rtol=0, atol=tolerance * size, err_msg=kind)
            for layer in (dense, packed, pickle.loads(pickle.dumps(packed))):
                y = layer(x)
                np.testing.assert_array_equal(layer(x[:1]), y[:1])
                np.testing.assert_array_equal(layer(x[:, ::2]), y[:, ::2])
                assert layer(x[:0]).shape == (0, 2, n)


@pytest.mark.parametrize("instruction_set", [*_core.kernel_instruction_sets(), "amx-emulated"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_packed_decoders_are_close_by_every_path(dtype: str, instruction_set: str) -> None:
    random = np.random.default_rng(3)
    weight, bias = random.normal(size=(2100, 70)).astype("f4"), random.normal(size=2100).astype("f4")
    x = random.normal(size=(35, 70)).astype("f4")
    expected = x @ weight.T + bias
    found = PackedRustDense(weight, bias, dtype, instruction_set)(x)
    cosines = (expected * found).sum(1) / np.linalg.norm(expected, axis=1) / np.linalg.norm(found, axis=1)
    assert cosines.min() > {"float32": 0.999999, "bfloat16": 0.99998, "int8": 0.9998}[dtype]


def test_a_packed_layer_refuses_inputs_of_another_width() -> None:
    weight = np.ones((3, 5), np.float32)
    layer = PackedRustDense(weight, np.zeros(3, np.float32), "float32")
    with pytest.raises(InputError, match=r"a product of \[2, 4\] with 1 layers of 5 inputs"):
        layer(np.ones((2, 4), np.float32))


# --- threads, processes, empty and wrong input


def test_many_threads_share_a_model(model: BertModel) -> None:
    ids = np.random.default_rng(3).integers(0, 110, (5, 24))
    expected = tokens(model, ids)
    wrong: list[int] = []

    def work(i: int) -> None:
        found = [tokens(model, ids, threads=1 + i % 3) for _ in range(20)]
        wrong.extend(i for x in found if not np.array_equal(x, expected))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def _encode_in_child(data: bytes) -> Any:
    model, ids = pickle.loads(data)
    return tokens(model, ids, threads=2)


_SHARED: dict[str, Any] = {}


def _encode_shared(_: int) -> Any:
    return tokens(_SHARED["model"], _SHARED["ids"], threads=2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_model_works_after_a_fork(model: BertModel) -> None:
    ids = np.random.default_rng(4).integers(0, 110, (30, 24))
    _SHARED.update(model=model, ids=ids)
    expected = tokens(model, ids, threads=2)  # starts the thread pool before the fork
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for found in pool.map(_encode_shared, range(4)):
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(pool.apply(_encode_in_child, (pickle.dumps((model, ids)),)), expected)
    np.testing.assert_array_equal(tokens(model, ids, threads=2), expected)


def test_rows_without_tokens_and_batches_without_rows(model: BertModel) -> None:
    out = model(np.zeros((0, 5), int), **EVERYTHING)
    assert out.last_hidden_state.shape == (0, 5, 24)
    with pytest.raises(InputError, match="a row needs at least one token"):
        model(np.zeros((2, 0), int))


def test_rows_beyond_the_models_tables_are_reported(tmp_path: Path) -> None:
    """Without an encoder, which refuses a tokenizer that has more tokens than the model has rows of words."""
    tokenizer = wb.Tokenizer.from_pretrained(with_tokenizer("bert_small", tmp_path))
    rows, long_rows = tokenizer.encode_batch(["a b c", "a"]), tokenizer.encode_batch(["a " * 40])
    model = AutoModel.from_pretrained(tmp_path / "bert_small")
    with pytest.raises(InputError, match=r"input_ids\[0\] has \d+ tokens, the model's longest row 24"):
        model.pooled(long_rows, slice(0, 1), ["mean"])
    rows.ids[2] = 110
    with pytest.raises(InputError, match=r"input_ids\[0, 2\] is 110, outside 0 to 109"):
        model.pooled(rows, slice(0, 2), ["mean"])
