"""How pages store arrays: within the documented errors, and small."""

from __future__ import annotations

import dataclasses
import math
import re
import string
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import wordpiece_bert as wb
from inspect_fixtures import blanks, folders, some_attention
from page_reader import decoded, from_text, unpacked
from wordpiece_bert import inspect
from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.inspect.pack import ENCODINGS, pack
from wordpiece_bert.inspect.scores import (
    COSINE_TOLERANCE,
    SCORE_TOLERANCE,
    TOLERANCE,
    pack_cosines,
    pack_factors,
    pack_scores,
    pack_table,
)

if TYPE_CHECKING:
    from wordpiece_bert.tasks import Loaded


@pytest.mark.parametrize("length", [1, 5, 300])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_packed_arrays_come_back_within_their_documented_error(encoding: Any, length: int) -> None:
    values = some_attention(length, 1, 2)
    if encoding not in {"rows", "coarse"}:
        values = values * 2 - 1
    packed = pack(values, encoding)
    found = unpacked(packed.spec | {"first": 0}, [from_text(part) for part in packed.parts])
    error = np.abs(found - values)
    if encoding in {"rows", "coarse"}:
        share = 1 / 63 if encoding == "coarse" else 1 / 255 if length > 256 else 1 / 509
        assert (error <= values.max(axis=-1, keepdims=True) * share + 1e-9).all()
    elif encoding == "unit":
        assert error.max() <= 1 / 3999
    elif encoding == "columns":
        assert (error <= np.abs(values).max(axis=-2, keepdims=True) / 32_000).all()
    elif encoding == "half":
        assert (error <= np.abs(values) / 2040 + 1e-7).all()
    else:
        assert (found == values).all()


def test_numbers_too_large_for_half_precision_are_kept() -> None:
    assert pack(np.array([[1e6, -3.0]], np.float32), "half").spec["encoding"] == "single"


def test_a_page_with_queries_and_keys_does_not_store_the_attention_too() -> None:
    rng = np.random.default_rng(2)
    q, k = rng.normal(size=(2, 2, 3, 40, 16)).astype(np.float32)
    weights = softmax(q @ k.swapaxes(-1, -2) / np.float32(4))
    names = [f"t{i}" for i in range(40)]
    heads, pairs = inspect.attention(weights, names), inspect.neurons(None, names, queries=q, keys=k)
    alone, both = (inspect.page(*views).to_html() for views in ((heads,), (heads, pairs)))
    content, blobs = decoded(both)
    spec = content["views"][0]["arrays"]["attention"]
    assert spec["encoding"] == "softmax"
    found = unpacked(spec, blobs)
    assert (np.abs(found - weights) <= weights.max(axis=-1, keepdims=True) / 255).all()
    assert decoded(alone)[0]["views"][0]["arrays"]["attention"]["encoding"] == "rows"
    # Other weights, a part of the layers, or more than q·k in the scores: the weights are stored.
    for other in (
        inspect.neurons(None, names, queries=q * 1.1, keys=k),
        inspect.neurons(None, names, queries=q, keys=k, layers=[0]),
        inspect.neurons(None, names, queries=q[:, :, :, :8], keys=k[:, :, :, :8]),
    ):
        content, _ = decoded(inspect.page(heads, other).to_html())
        assert content["views"][0]["arrays"]["attention"]["encoding"] == "rows"


def test_weights_of_a_long_text_are_stored_by_factors_of_their_scores() -> None:
    rng = np.random.default_rng(5)
    q, k = rng.normal(size=(2, 2, 2, 150, 16)).astype(np.float32)
    k += 3  # a constant of the keys, which no weight depends on
    weights = softmax(q @ k.swapaxes(-1, -2) / np.float32(4))
    packed = pack_scores(weights, q, k)
    assert packed is not None
    found = unpacked(packed.spec | {"first": 0}, [from_text(part) for part in packed.parts])
    error = np.abs(found - weights) / weights.max(axis=-1, keepdims=True)
    assert error.max() <= TOLERANCE * 1.001
    assert np.median(error) <= TOLERANCE / 10
    assert sum(map(len, packed.parts)) < sum(map(len, pack(weights, "rows").parts)) / 2
    # Weights with something added to the scores are not a softmax of the products.
    assert pack_scores(softmax(np.log(weights) + rng.normal(size=weights.shape).astype(np.float32)), q, k) is None


def stored(packed: Any) -> np.ndarray:
    return unpacked(packed.spec | {"first": 0}, [from_text(part) for part in packed.parts])


def test_queries_and_keys_of_a_long_text_keep_their_scores() -> None:
    rng = np.random.default_rng(7)
    q, k = (rng.normal(size=(2, 2, 3, 150, 16)) * [[[[[1]]]], [[[[4]]]]]).astype(np.float32)
    packed = [pack_factors(one, q, k) for one in (q, k)]
    assert None not in packed
    found = [stored(one) for one in packed]
    exact, kept = (a @ b.swapaxes(-1, -2) / 4 for a, b in ((q, k), found))
    assert np.abs(kept - exact).max() <= SCORE_TOLERANCE * 1.001
    assert all(np.abs(one - given).max() < 0.05 for one, given in zip(found, (q, k), strict=True))
    small = sum(len(part) for one in packed for part in one.parts)
    assert small < 0.7 * sum(len(part) for one in (q, k) for part in pack(one, "columns").parts)
    # Numbers whose products no step keeps are stored otherwise.
    assert pack_factors(q * 1e12, q * 1e12, k) is None
    names = [f"t{i}" for i in range(150)]
    for scale, encoding in ((1, "coded"), (1e12, "columns")):
        view = inspect.neurons(None, names, queries=q * np.float32(scale), keys=k)
        assert view.packed()["queries"].spec["encoding"] == encoding


@pytest.mark.parametrize("count", [1, 2, 60])
def test_cosines_are_stored_by_their_factors(count: int) -> None:
    rng = np.random.default_rng(8)
    vectors = np.cumsum(rng.normal(size=(count, 24)), axis=0).astype(np.float32)
    vectors[count // 2 :: 7] = 0 if count > 2 else vectors[count // 2 :: 7]
    learned = inspect.positions(vectors).arrays["learned"]
    packed = pack_cosines(learned)
    assert packed is not None
    assert np.abs(stored(packed) - learned).max() <= COSINE_TOLERANCE * 1.001
    assert pack_cosines(learned - 2) is None  # not the products of any vectors


def test_a_table_is_stored_as_its_colours_need() -> None:
    table = np.random.default_rng(9).normal(size=(80, 12)).astype(np.float32)
    scale = float(np.quantile(np.abs(table), 0.995))
    assert np.abs(stored(pack_table(table)) - table).max() <= scale / 127
    assert (stored(pack_table(np.zeros((3, 2), np.float32))) == 0).all()


def test_few_numbers_are_compressed_together() -> None:
    values = np.random.default_rng(10).normal(size=(6, 12, 3, 8)).astype(np.float32)
    packed = pack(values, "single")
    assert len(packed.parts) == 1
    np.testing.assert_array_equal(stored(packed), values)
    assert len(pack(np.zeros((6, 12, 40, 40), np.float32), "single").parts) == 72


@pytest.mark.model
def test_the_page_of_one_word_is_below_300_kilobytes() -> None:
    from wordpiece_bert import tasks

    model = tasks.load("minilm")
    for word in ("one", "Unaffordable"):
        trace = inspect.trace(model, word)
        page = inspect.page(
            inspect.tokens(model.tokenizer, word),
            inspect.attention(trace),
            inspect.neurons(trace),
            inspect.patterns(trace),
            inspect.positions(model.model),
        )
        assert len(page.to_html().encode("utf-8")) < 300_000


def test_a_page_has_the_scripts_of_what_it_shows_without_comments() -> None:
    weights, names = some_attention(3), list("abc")
    heads, habits = (inspect.page(make(weights, names)).to_html() for make in (inspect.attention, inspect.patterns))
    both = inspect.page(inspect.attention(weights, names), inspect.patterns(weights, names)).to_html()
    for page, (has, lacks) in {
        heads: ("builders.attention", "builders.patterns"),
        habits: ("builders.patterns", "builders.attention"),
    }.items():
        assert has in page
        assert lacks not in page
        assert has in both
    script = heads.rpartition("<script>")[2]
    assert not re.search(r"^\s*(//|/\*)|^ ", script, re.MULTILINE)


def test_a_trace_of_a_long_text_is_stored_by_factors(blanks: Loaded) -> None:
    short = inspect.trace(blanks, "paris")
    q, k = np.random.default_rng(6).normal(size=(2, 2, 2, 140, 16)).astype(np.float32)
    weights = softmax(q @ k.swapaxes(-1, -2) / np.float32(4))
    changes: dict[str, Any] = {"tokens": ["t"] * 140, "sentence_ids": [0] * 140, "attentions": weights}
    changes["word_ids"] = list(range(140))
    changes |= {"queries": q, "keys": k, "value_norms": np.ones((2, 2, 140), np.float32)}
    trace = dataclasses.replace(short, **changes)
    biased = dataclasses.replace(trace, position_bias=np.zeros_like(weights))
    for view, encoding in (
        (inspect.attention(trace), "scores"),
        (inspect.attention(biased), "rows"),
        (inspect.attention(weights, trace.tokens), "rows"),
        (inspect.attention(short), "rows"),
    ):
        assert decoded(view.to_html())[0]["views"][0]["arrays"]["attention"]["encoding"] == encoding


@pytest.mark.model
@pytest.mark.parametrize(("length", "limit"), [(64, 3_000_000), (512, 15_000_000)])
def test_pages_of_minilm_are_small(length: int, limit: int) -> None:
    from wordpiece_bert import tasks
    from wordpiece_bert.hub import find_model

    folder = find_model("minilm")
    model, tokenizer = tasks.load(folder)
    words = (wb.__doc__ or "") + (inspect.__doc__ or "") + (math.__doc__ or "")
    text = " ".join((words + (string.Formatter.__doc__ or "") + (re.__doc__ or "")).split() * 4)
    trace = inspect.trace((model, tokenizer), text, max_length=length)
    assert len(trace.tokens) == length
    page = inspect.page(
        inspect.tokens(tokenizer, text, max_length=length),
        inspect.attention(trace),
        inspect.neurons(trace),
        inspect.patterns(trace),
        inspect.positions(model),
    )
    assert len(page.to_html().encode("utf-8")) <= limit
