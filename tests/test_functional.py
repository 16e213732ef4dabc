"""The arithmetic, compared with the same formulas as slow loops in float64."""

from __future__ import annotations

import ast
import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordpiece_bert.bert import functional as F  # noqa: N812
from wordpiece_bert.bert import poolings, rotary

RNG = np.random.default_rng(20_240_607)


def random(*shape: int, scale: float = 1.0) -> Any:
    return (scale * RNG.standard_normal(shape)).astype(np.float32)


def dense(size_in: int, size_out: int) -> Any:
    return {"weight": random(size_out, size_in, scale=size_in**-0.5), "bias": random(size_out)}


def norm(size: int) -> Any:
    return {"weight": 1 + random(size, scale=0.2), "bias": random(size)}


# --- oracles: plain Python over lists of floats


def loop_linear(x: list[float], weight: Any, bias: Any) -> list[float]:
    return [
        sum(float(w) * v for w, v in zip(row, x, strict=True)) + float(b) for row, b in zip(weight, bias, strict=True)
    ]


def loop_layer_norm(x: list[float], weight: Any, bias: Any, eps: float) -> list[float]:
    mean = sum(x) / len(x)
    variance = sum((v - mean) ** 2 for v in x) / len(x)
    return [
        (v - mean) / math.sqrt(variance + eps) * float(g) + float(b) for v, g, b in zip(x, weight, bias, strict=True)
    ]


def loop_softmax(x: list[float]) -> list[float]:
    e = [math.exp(v - max(x)) for v in x]
    return [v / sum(e) for v in e]


def loop_attention(rows: list[list[float]], layer: Any, heads: int, visible: Any) -> tuple[list[list[float]], Any]:
    """One sequence. Each query attends to the visible keys only, so no mask is added to scores."""
    q, k, v = ([loop_linear(row, **layer[name]) for row in rows] for name in ("query", "key", "value"))
    size = len(rows[0]) // heads
    context = [[0.0] * len(rows[0]) for _ in rows]
    weights = np.zeros((heads, len(rows), len(rows)))
    keys = [j for j in range(len(rows)) if visible[j]]
    for head in range(heads):
        part = range(head * size, (head + 1) * size)
        for i in range(len(rows)):
            scores = [sum(q[i][c] * k[j][c] for c in part) / math.sqrt(size) for j in keys]
            for j, p in zip(keys, loop_softmax(scores), strict=True):
                weights[head, i, j] = p
                for c in part:
                    context[i][c] += p * v[j][c]
    return context, weights


def loop_gelu(x: float) -> float:
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def loop_encoder_layer(rows: list[list[float]], layer: Any, heads: int, visible: Any, eps: float) -> list[list[float]]:
    context, _ = loop_attention(rows, layer["attention"]["self"], heads, visible)
    result = []
    for row, c in zip(rows, context, strict=True):
        a = [u + v for u, v in zip(row, loop_linear(c, **layer["attention"]["output"]["dense"]), strict=True)]
        a = loop_layer_norm(a, **layer["attention"]["output"]["LayerNorm"], eps=eps)
        h = [loop_gelu(v) for v in loop_linear(a, **layer["intermediate"]["dense"])]
        b = [u + v for u, v in zip(a, loop_linear(h, **layer["output"]["dense"]), strict=True)]
        result.append(loop_layer_norm(b, **layer["output"]["LayerNorm"], eps=eps))
    return result


# --- the small functions


@pytest.mark.parametrize("module", [F, poolings, rotary])
def test_functional_imports_only_numpy(module: Any) -> None:
    """Numbers come from NumPy alone; ways of pooling and rotary positions are in modules of their own."""
    with open(module.__file__, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    documented = "wordpiece_bert._internal.parameters"  # it completes docstrings
    modules -= {"wordpiece_bert.bert.poolings", "wordpiece_bert.bert.rotary", documented}
    assert {str(name).partition(".")[0] for name in modules} - {"numpy"} <= sys.stdlib_module_names


def test_linear_equals_loops() -> None:
    x, layer = random(2, 3, 5), dense(5, 7)
    y = F.linear(x, **layer)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, [[loop_linear(row, **layer) for row in rows] for rows in x.tolist()], atol=1e-6)


@pytest.mark.parametrize(("offset", "eps"), [(0.0, 1e-12), (0.0, 1e-3), (1000.0, 1e-12)])
def test_layer_norm_equals_loops_also_far_from_zero(offset: float, eps: float) -> None:
    x, layer = random(4, 48) + np.float32(offset), norm(48)
    y = F.layer_norm(x, **layer, eps=eps)
    assert y.dtype == np.float32
    expected = [loop_layer_norm(row, **layer, eps=eps) for row in x.tolist()]
    np.testing.assert_allclose(y, expected, atol=2e-6 if offset == 0 else 2e-3)


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=40))
def test_softmax_equals_loops_and_never_overflows(values: list[float]) -> None:
    x = np.array(values, np.float32)
    with np.errstate(all="raise", under="ignore"):
        p = F.softmax(x)
    np.testing.assert_allclose(p, loop_softmax(x.tolist()), atol=1e-6)
    assert abs(float(p.sum()) - 1) < 1e-5


def test_normalize_gives_length_1_and_keeps_zeros() -> None:
    x = random(5, 8)
    x[2] = 0
    length = np.linalg.norm(F.normalize(x), axis=1)
    np.testing.assert_allclose(length, [1, 1, 0, 1, 1], atol=1e-6)


# --- activations


def test_erf_is_accurate_to_float32() -> None:
    z = np.concatenate([np.linspace(-6, 6, 300_001), [-1e30, -40, 40, 1e30, 1e-30, 0.0, -np.inf, np.inf]])
    z = z.astype(np.float32)
    error = np.abs(F.erf(z) - np.array([math.erf(v) for v in z.tolist()]))
    assert error.max() < 1.25e-7  # two steps of float32 below 1; 8e-8 where NumPy has a vectorized tanh (AVX2, AVX-512)
    np.testing.assert_array_equal(np.abs(F.erf(z[np.abs(z) >= 5])), 1)  # exactly: GELU multiplies the difference by x


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


def gelu_tanh(x: float) -> float:
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ORACLES = {
    "gelu": loop_gelu,
    "gelu_python": loop_gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_fast": gelu_tanh,
    "gelu_accurate": gelu_tanh,
    "quick_gelu": lambda x: x * sigmoid(1.702 * x),
    "relu": lambda x: max(x, 0.0),
    "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(x),
    "tanh": math.tanh,
    "sigmoid": sigmoid,
    "mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
}


def test_every_activation_has_an_oracle() -> None:
    assert ORACLES.keys() == F.ACTIVATIONS.keys()


@pytest.mark.parametrize("name", ORACLES)
def test_activation_equals_its_formula(name: str) -> None:
    x = np.linspace(-30, 30, 120_001).astype(np.float32).reshape(1, -1)
    with np.errstate(all="raise", under="ignore"):
        y = F.ACTIVATIONS[name](x)
    assert y.dtype == np.float32
    assert y.shape == x.shape
    expected = np.array([ORACLES[name](v) for v in x[0].tolist()])
    np.testing.assert_allclose(y[0], expected, rtol=3e-7, atol=3e-7)


@pytest.mark.parametrize("name", ORACLES)
def test_activation_does_not_overflow_or_modify_its_input(name: str) -> None:
    x = np.array([[-1e4, -100.0, -88.5, 0.0, 88.5, 100.0, 1e4]], np.float32)
    before = x.copy()
    with np.errstate(all="raise", under="ignore"):
        y = F.ACTIVATIONS[name](x)
    assert np.isfinite(y).all()
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("size", [0, 1, 32_767, 32_768, 32_769, 100_000])
def test_blocks_of_an_activation_do_not_show_in_the_result(size: int) -> None:
    x = random(size)
    y = F.gelu(x)
    assert y.shape == x.shape
    np.testing.assert_array_equal(y, F.gelu(np.stack([x, x])[:, ::-1][0][::-1]))  # not contiguous


# --- attention, and one layer


@pytest.mark.parametrize(
    "visible", [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [1, 0, 1, 0, 1], [0, 0, 0, 1, 0]]
)
def test_self_attention_equals_loops_over_visible_keys(visible: list[int]) -> None:
    layer = {name: dense(12, 12) for name in ("query", "key", "value")}
    x = random(2, 5, 12)
    mask = np.array([visible, [1, 1, 1, 1, 1]], bool)
    context, p = F.self_attention(x, **layer, heads=3, mask=mask)
    for row in range(2):
        expected, weights = loop_attention(x[row].tolist(), layer, 3, mask[row])
        np.testing.assert_allclose(context[row], expected, atol=2e-6)
        np.testing.assert_allclose(p[row], weights, atol=1e-6)
    assert (p[0][:, :, ~mask[0]] == 0).all()


def test_no_mask_is_a_mask_of_ones() -> None:
    layer = {name: dense(8, 8) for name in ("query", "key", "value")}
    x = random(2, 4, 8)
    for a, b in zip(
        F.self_attention(x, **layer, heads=2, mask=None),
        F.self_attention(x, **layer, heads=2, mask=np.ones((2, 4), bool)),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_heads_are_split_and_merged_without_loss() -> None:
    x = random(2, 5, 12)
    heads = F.split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 4)
    np.testing.assert_array_equal(heads[1, 2, 3], x[1, 3, 8:12])
    np.testing.assert_array_equal(F.merge_heads(heads), x)


def test_encoder_layer_equals_loops() -> None:
    layer: Any = {
        "attention": {
            "self": {name: dense(12, 12) for name in ("query", "key", "value")},
            "output": {"dense": dense(12, 12), "LayerNorm": norm(12)},
        },
        "intermediate": {"dense": dense(12, 20)},
        "output": {"dense": dense(20, 12), "LayerNorm": norm(12)},
    }
    x, mask = random(2, 4, 12), np.array([[1, 1, 1, 0], [1, 1, 1, 1]], bool)
    y, p = F.encoder_layer(x, layer, mask, heads=3, activation=F.gelu, eps=1e-12)
    assert p.shape == (2, 3, 4, 4)
    for row in range(2):
        expected = loop_encoder_layer(x[row].tolist(), layer, 3, mask[row], 1e-12)
        np.testing.assert_allclose(y[row], expected, atol=5e-6)


def test_embeddings_are_the_norm_of_the_sum_of_three_rows() -> None:
    tables: Any = {
        "word_embeddings": {"weight": random(10, 6)},
        "position_embeddings": {"weight": random(5, 6)},
        "token_type_embeddings": {"weight": random(2, 6)},
        "LayerNorm": norm(6),
    }
    ids, types, positions = np.array([[1, 9, 0]]), np.array([[0, 1, 1]]), np.array([[0, 1, 4]])
    x = F.embeddings(ids, types, positions, tables, 1e-12)
    for position in range(3):
        total = sum(
            table["weight"][index[0, position]].astype(float)
            for table, index in zip(list(tables.values())[:3], (ids, positions, types), strict=True)
        )
        np.testing.assert_allclose(
            x[0, position], loop_layer_norm(total.tolist(), **tables["LayerNorm"], eps=1e-12), atol=1e-5
        )
    words = tables["word_embeddings"]["weight"][ids]
    np.testing.assert_array_equal(F.embeddings(None, types, positions, tables, 1e-12, inputs_embeds=words), x)


def test_pooler_is_tanh_of_a_dense_layer_over_the_first_token() -> None:
    x, layer = random(2, 3, 4), dense(4, 4)
    expected = [[math.tanh(v) for v in loop_linear(rows[0], **layer)] for rows in x.tolist()]
    np.testing.assert_allclose(F.pooler(x, layer), expected, atol=1e-6)


# --- pooling


def loop_pool(rows: Any, visible: list[int], mode: str, skip: int) -> Any:
    """One sequence, following the documentation of each mode."""
    positions = [i for i, v in enumerate(visible) if v]
    start = positions[0]
    weight = {i: i - start + 1 for i in range(len(visible))}
    positions = [i for i in positions if i >= start + skip]
    vectors = [rows[i].astype(float) for i in positions]
    if mode == "cls":
        return vectors[0]
    if mode == "lasttoken":
        return vectors[-1]
    if mode == "max":
        return np.max(vectors, axis=0)
    if mode == "weightedmean":
        return sum(weight[i] * v for i, v in zip(positions, vectors, strict=True)) / sum(weight[i] for i in positions)
    return sum(vectors) / (len(positions) if mode == "mean" else math.sqrt(len(positions)))


@pytest.mark.parametrize("mode", F.POOLING_MODES)
@pytest.mark.parametrize("skip", [0, 1, 2])
def test_pool_equals_loops(mode: F.PoolingMode, skip: int) -> None:
    masks = [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 1, 1, 0, 1], [1, 0, 1, 1, 0]]
    x = random(len(masks), 5, 4)
    y = F.pool(x, np.array(masks, bool), mode, skip)
    assert y.dtype == np.float32
    for row, visible in enumerate(masks):
        np.testing.assert_allclose(y[row], loop_pool(x[row], visible, mode, skip), atol=1e-6)


@pytest.mark.parametrize("mode", F.POOLING_MODES)
def test_padding_does_not_change_a_pooled_vector(mode: F.PoolingMode) -> None:
    x, mask = random(3, 14, 6), np.ones((3, 14), bool)
    y = F.pool(x, mask, mode)
    for before, after in ((0, 33), (2, 0), (1, 2)):
        wide = np.pad(x, ((0, 0), (before, after), (0, 0)), constant_values=7.0)
        visible = np.pad(mask, ((0, 0), (before, after)))
        np.testing.assert_array_equal(F.pool(wide, visible, mode), y)


@pytest.mark.parametrize(("mode", "value"), [("mean", 0), ("weightedmean", 0), ("lasttoken", 0), ("max", -np.inf)])
def test_a_row_without_tokens_is_pooled_as_in_the_reference(mode: F.PoolingMode, value: float) -> None:
    y = F.pool(random(1, 3, 2), np.ones((1, 3), bool), mode, skip=3)
    np.testing.assert_array_equal(y, [[value, value]])
