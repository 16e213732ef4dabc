"""`wordpiece_bert.inspect`: its values against the definitions, its pages and pictures, and hostile texts."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import re
import string
import sys
import time
import xml.etree.ElementTree as ET
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import case_files
import strategies
import tiny_models
import wordpiece_bert as wb
from model_files import MODELS
from wordpiece_bert import inspect
from wordpiece_bert.bert import AutoModel, BertConfig, BertForSequenceClassification
from wordpiece_bert.bert.checkpoint import bert_shapes
from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.bert.variants import MegatronBertConfig, MegatronBertForSequenceClassification
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect import Trace
from wordpiece_bert.inspect.pack import ALPHABET, ENCODINGS, pack
from wordpiece_bert.inspect.packed_page import page_file
from wordpiece_bert.inspect.scores import TOLERANCE, pack_scores
from wordpiece_bert.tasks import Loaded

if TYPE_CHECKING:
    from pathlib import Path

    from wordpiece_bert.inspect import View

HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> ]]> & \" ' `${1}` \u2028 \u202e"
VOCAB = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "un",
    "##afford",
    "##able",
    "caf",
    "##e",
    "cafe",
    "the",
    ",",
    "漢",
]


@pytest.fixture(scope="module")
def tok() -> wb.Tokenizer:
    return wb.Tokenizer.from_vocab(VOCAB)


def some_attention(length: int = 7, layers: int = 2, heads: int = 3, seed: int = 0) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(layers, heads, length, length)) * 3
    return softmax(scores.astype(np.float32))


def from_text(part: str) -> bytes:
    """The bytes of a part, by the decoder of the standard library, whose alphabet differs."""
    standard = string.digits + string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~"
    return base64.b85decode(part.translate(str.maketrans(ALPHABET, standard)))


def decoded(page: str) -> tuple[dict[str, Any], list[bytes]]:
    """The content of a page and its compressed parts, read by other means than the page's own script."""
    content = json.loads(re.search(r'<script type="application/json" id="content">(.*?)</script>', page, re.DOTALL)[1])
    blobs = re.findall(r'<script type="text/plain" id="b\d+">([^<]*)</script>', page)
    parts = [from_text(blob) for blob in blobs]
    for view in content["views"]:
        if "packed" in view["data"]:
            view["data"] = json.loads(zlib.decompress(parts[view["data"]["packed"]][: view["data"]["length"]]))
    return content, parts


def weights_of_scores(head: bytes, rows: int, width: int) -> np.ndarray:
    """The weights of a head that is stored as factors, bit by bit as `wordpiece_bert.inspect.scores` describes it."""
    step = np.frombuffer(head[:4], "<f4")[0]
    means = np.frombuffer(head[4 : 4 + 8 * width], "<f4")
    low = head[4 + 8 * width : 4 + 10 * width]
    bits = iter("".join(f"{byte:08b}" for byte in head[4 + 10 * width :]))
    columns = np.zeros((rows, 2 * width), np.float32)
    for column in range(2 * width):
        for row in range(rows):
            high = 0
            while next(bits) == "1":
                high += 1
            u = high << low[column] | int("".join(next(bits) for _ in range(low[column])) or "0", 2)
            columns[row, column] = (u // 2 if u % 2 == 0 else -(u + 1) // 2) * step + means[column]
    return softmax(columns[:, :width] @ columns[:, width:].T)


def unpacked(spec: dict[str, Any], blobs: list[bytes]) -> np.ndarray:
    """An array of a page."""
    rows, columns = ([1, *spec["shape"]])[-2:]
    if spec["encoding"] == "softmax":
        q, k = (unpacked(spec[name], blobs) for name in ("queries", "keys"))
        return softmax(q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(q.shape[-1])))
    parts: list[Any] = []
    for number, length in enumerate(spec["lengths"]):
        if spec["encoding"] == "scores":
            parts.append(weights_of_scores(blobs[spec["first"] + number][:length], rows, spec["width"]))
            continue
        raw = zlib.decompress(blobs[spec["first"] + number][:length])
        if spec["encoding"] in {"rows", "coarse"}:
            most = np.frombuffer(raw[: 4 * rows], "<f4")
            part = np.frombuffer(raw[4 * rows :], np.uint8).reshape(rows, columns) * (most / spec["levels"])[:, None]
        elif spec["encoding"] == "columns":
            most = np.frombuffer(raw[: 4 * columns], "<f4")
            both = np.frombuffer(raw[4 * columns :], np.uint8).reshape(2, -1).T.tobytes()
            part = np.frombuffer(both, "<i2").reshape(columns, rows).T * (most / spec["steps"])
        elif spec["encoding"] == "single":
            part = np.frombuffer(raw, "<f4")
        else:
            both = np.frombuffer(raw, np.uint8).reshape(2, -1).T.tobytes()
            part = (
                np.frombuffer(both, "<f2") if spec["encoding"] == "half" else np.frombuffer(both, "<i2") / spec["unit"]
            )
        parts.append(part)
    return np.array(parts, np.float32).reshape(spec["shape"])


# --- packing


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
    # Weights with something added to the scores are no softmax of the products.
    assert pack_scores(softmax(np.log(weights) + rng.normal(size=weights.shape).astype(np.float32)), q, k) is None


def test_a_trace_of_a_long_text_is_stored_by_factors(blanks: Loaded) -> None:
    short = inspect.trace(blanks, "paris")
    q, k = np.random.default_rng(6).normal(size=(2, 2, 2, 140, 16)).astype(np.float32)
    weights = softmax(q @ k.swapaxes(-1, -2) / np.float32(4))
    changes: dict[str, Any] = {"tokens": ["t"] * 140, "sentence_ids": [0] * 140, "attentions": weights}
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


# --- tokens


def entry(view: View, index: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = view.data["tokenizers"][index]
    return found


def test_tokens_show_each_step(tok: wb.Tokenizer) -> None:
    shown = entry(inspect.tokens(tok, "Unaffordable\u200b, Café\t漢zzz"))
    assert [row["token"] for row in shown["tokens"]] == tok.encode("Unaffordable\u200b, Café\t漢zzz").tokens
    (side,) = shown["sides"]
    assert shown["agrees"] is True
    steps = {change["from"]: change["steps"] for change in side["changes"]}
    assert steps == {
        "U": ["lower case"],
        "\u200b": ["removed"],
        "C": ["lower case"],
        "é": ["accent"],
        "\t": ["space"],
        "漢": ["set apart"],
    }
    words = {word["word"]: word for word in side["words"]}
    assert [piece["token"] for piece in words["unaffordable"]["pieces"]] == ["un", "##afford", "##able"]
    assert [(piece["start"], piece["end"]) for piece in words["unaffordable"]["pieces"]] == [(0, 2), (2, 8), (8, 12)]
    assert "no token" in words["zzz"]["unknown"]
    assert [row["unknown"] for row in shown["tokens"]].count(True) == 1


def test_tokens_that_are_cut_and_padded_are_marked(tok: wb.Tokenizer) -> None:
    shown = entry(inspect.tokens(tok, "the cafe, the cafe", "the", max_length=6))
    kept = [row["token"] for row in shown["tokens"]]
    assert len(kept) == 6
    assert [token["token"] for token in shown["cut"]] == [",", "the", "cafe"]
    assert shown["truncated"] is True


def test_two_tokenizers_side_by_side(tok: wb.Tokenizer) -> None:
    cased = wb.Tokenizer.from_vocab([*VOCAB, "Café"], lowercase=False)
    view = inspect.tokens(tok, "Café", beside=cased, names=("uncased", "cased"))
    assert [entry(view, i)["name"] for i in (0, 1)] == ["uncased", "cased"]
    assert [[row["token"] for row in entry(view, i)["tokens"]] for i in (0, 1)] == [
        ["[CLS]", "cafe", "[SEP]"],
        ["[CLS]", "Café", "[SEP]"],
    ]


def test_added_tokens_are_found_before_the_text_is_split(tok: wb.Tokenizer) -> None:
    shown = entry(inspect.tokens(tok, "the [MASK] cafe"))
    assert [word["added"] for word in shown["sides"][0]["words"]] == [False, True, False]
    assert shown["agrees"] is True


@given(st.text(alphabet="unafordble café漢\u200b\t,.!Éß#\u0301 İ", max_size=30))
def test_the_steps_agree_with_the_tokenizer(text: str) -> None:
    tokenizer = wb.Tokenizer.from_vocab([*VOCAB, *"unafordblec", *(f"##{c}" for c in "unafordblc"), "i", "s", "ß", "."])
    shown = entry(inspect.tokens(tokenizer, text))
    assert shown["agrees"] is True
    assert [row["id"] for row in shown["tokens"]] == tokenizer.encode(text).ids


def steps_of(tokenizer: wb.Tokenizer, text: str, pair: str | None = None) -> list[dict[str, Any]]:
    """The words of both texts, as the last step shows them, compared with the encoding."""
    shown = entry(inspect.tokens(tokenizer, text, pair))
    whole = tokenizer.encode(text, pair, truncation=False, padding=False)
    assert shown["agrees"] is True
    words = [{**word, "side": index} for index, side in enumerate(shown["sides"]) for word in side["words"]]
    tokens = [
        (word["side"], token)
        for word in words
        for token in (
            [shown["unknown"]]
            if word["unknown"]
            else [word["word"]]
            if word["added"]
            else [piece["token"] for piece in word["pieces"]]
        )
    ]
    columns = zip(whole.sequence_ids, whole.tokens, whole.word_ids, whole.offsets, strict=True)
    own = sorted((column for column in columns if column[0] is not None), key=lambda column: column[0] or 0)
    assert tokens == [(side, token) for side, token, _, _ in own]
    spans: dict[tuple[int | None, int | None], list[tuple[int, int]]] = {}
    for side, _, word, span in own:
        spans.setdefault((side, word), []).append(span)
    assert [(word["start"], word["end"]) for word in words] == [
        (min(start for start, _ in group), max(end for _, end in group)) for group in spans.values()
    ]
    for word in words:
        if not word["added"] and not word["unknown"]:
            ends = [0, *(piece["end"] for piece in word["pieces"])]
            assert [piece["start"] for piece in word["pieces"]] == ends[:-1]
            assert ends[-1] == len(word["word"])
    return words


@given(strategies.cases())
def test_the_last_step_is_the_encoding_for_any_tokenizer_and_text(case: dict[str, Any]) -> None:
    case = {name: value for name, value in case.items() if name not in ("padding", "truncation")}
    try:
        tokenizer = wb.Tokenizer.from_json(case_files.tokenizer_json(case))
    except InputError as error:  # an added token that no text can have
        if "normalizer turns it into nothing" not in str(error):
            raise
        return
    for one in case["inputs"]:
        texts = [text if isinstance(text, str) else " ".join(text) for text in one.values()]
        steps_of(tokenizer, *texts)


@given(strategies.texts)
def test_changes_of_characters_make_the_normalized_text(text: str) -> None:
    """Also of characters that this Python's Unicode knows and BERT's does not, or the other way round."""
    tokenizer = wb.Tokenizer.from_vocab(VOCAB)
    (side,) = entry(inspect.tokens(tokenizer, text))["sides"]
    changed = {change["index"]: change["to"] for change in side["changes"]}
    normalized = "".join(changed.get(index, c) for index, c in enumerate(text))
    # Marks that follow each other are put in their canonical order, of the whole text.
    assert sorted(normalized) == sorted(side["normalized"])


def test_the_time_of_tokens_is_linear_in_the_text() -> None:
    """Four times the text takes about four times as long, of texts, long words and added tokens."""
    tokenizer = wb.Tokenizer.from_vocab([*VOCAB, "a", "##a"], max_input_chars_per_word=1_000_000)

    def seconds(text: str) -> float:
        times = []
        for _ in range(3):
            start = time.process_time()
            assert entry(inspect.tokens(tokenizer, text))["agrees"]
            times.append(time.process_time() - start)
        return min(times)

    for part in ("Café, the漢 unaffordable\t", "a", "[MASK]"):
        short, long = (seconds(part * (count // len(part))) for count in (5_000, 40_000))
        assert long < 8 * 3 * max(short, 0.01), part


# --- attention


def test_attention_takes_plain_arrays_and_lists_of_layers() -> None:
    weights = some_attention()
    names = [f"t{i}" for i in range(7)]
    view = inspect.attention(weights, names)
    assert view.arrays["attention"].dtype == np.float32
    np.testing.assert_array_equal(view.arrays["attention"], weights)
    as_layers = inspect.attention([layer[None] for layer in weights], names)  # what output_attentions gives
    np.testing.assert_array_equal(as_layers.arrays["attention"], weights)
    assert "value_norms" not in view.arrays


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
        ("text", ["a"], "numbers"),
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
    with pytest.raises(InputError, match="sentence_ids must be 7"):
        inspect.attention(weights, names, sentence_ids=[0, 1, 2])
    with pytest.raises(InputError, match="value_norms"):
        inspect.attention(weights, names, value_norms=np.ones((1, 1, 1)))
    with pytest.raises(InputError, match="not among"):
        inspect.neurons(None, names, queries=np.ones((2, 1, 7, 4)), keys=np.ones((2, 1, 7, 4)), layers=[1], layer=0)


FOLDERS = ["bert_model", "distilbert_model", "albert_model", "electra_model", "mpnet_model", "bert_masked_lm"]


def traced(folder: str, length: int = 9) -> tuple[Trace, Any]:
    model = AutoModel.from_pretrained(MODELS / folder)
    ids = [i % model.config.vocab_size for i in range(3, 3 + length)]
    size = model.config.vocab_size
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{i}" for i in range(4, size))]
    tokenizer = wb.Tokenizer.from_vocab(names)
    text = " ".join(names[i] for i in ids if i > 3)
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


# --- patterns


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


# --- language


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny_models.make_all(folder)
    return folder


@pytest.fixture(scope="module")
def reviews(folders: Path) -> Loaded:
    from wordpiece_bert import tasks

    return tasks.load(folders / "reviews")


@pytest.fixture(scope="module")
def blanks(folders: Path) -> Loaded:
    from wordpiece_bert import tasks

    return tasks.load(folders / "words")


def test_predictions_are_the_softmax_of_the_head(blanks: Loaded) -> None:
    text = "[MASK] is the capital of france"
    view = inspect.predictions(blanks, text, top_k=3)
    encoding = blanks.tokenizer.encode(text)
    p = softmax(blanks.model([encoding.ids]).logits[0])
    order = np.argsort(-p, axis=-1, kind="stable")[:, :3]
    assert view.data["words"] == [[blanks.tokenizer.id_to_token(int(i)) for i in row] for row in order]
    np.testing.assert_allclose(view.arrays["probabilities"], np.take_along_axis(p, order, -1), rtol=1e-6)
    np.testing.assert_allclose(view.arrays["own"], p[np.arange(len(p)), encoding.ids], rtol=1e-6)


def test_each_position_is_masked_in_turn(blanks: Loaded) -> None:
    text = "the capital of france"
    view = inspect.predictions(blanks, text, top_k=1, mask_each=True)
    ids = blanks.tokenizer.encode(text).ids
    for i in range(1, len(ids) - 1):
        row = [*ids[:i], blanks.tokenizer.mask_token_id, *ids[i + 1 :]]
        p = softmax(blanks.model([row]).logits[0, i])
        assert view.arrays["own"][i] == pytest.approx(p[ids[i]], rel=1e-5)


def test_the_last_layer_of_the_lens_is_the_prediction(blanks: Loaded) -> None:
    text = "[MASK] is the capital of france"
    lens, last = inspect.logit_lens(blanks, text), inspect.predictions(blanks, text, top_k=5)
    assert lens.arrays["probabilities"].shape[0] == blanks.model.config.num_hidden_layers + 1
    np.testing.assert_allclose(lens.arrays["probabilities"][-1], last.arrays["probabilities"], rtol=1e-6)
    assert lens.data["words"][-1] == last.data["words"]


@pytest.mark.parametrize("replace", ["mask", "remove"])
def test_saliency_is_the_score_without_the_token(reviews: Loaded, replace: Any) -> None:
    text = "a dull film"
    view = inspect.saliency(reviews, text, replace=replace)
    tokenizer, model = reviews.tokenizer, reviews.model
    ids = tokenizer.encode(text).ids
    whole = softmax(model([ids]).logits)[0]
    chosen = int(whole.argmax())
    assert view.data["label"] == model.config.label(chosen)
    assert view.arrays["effect"][0] == view.arrays["effect"][-1] == 0
    for i in range(1, len(ids) - 1):
        row = [*ids[:i], *([tokenizer.mask_token_id] if replace == "mask" else []), *ids[i + 1 :]]
        without = softmax(model([row]).logits)[0, chosen]
        assert view.arrays["effect"][i] == pytest.approx(whole[chosen] - without, abs=1e-6)
    assert int(view.arrays["effect"].argmax()) == view.data["tokens"].index("dull")


def drawn_classifier(cls: Any, config_class: Any, vocab_size: int) -> Any:
    """A classifier of two layers and three labels whose weights are drawn: its logits are smooth in the word vectors."""
    config = config_class(
        vocab_size=vocab_size,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
        id2label={0: "a", 1: "b", 2: "c"},
    )
    random = np.random.default_rng(5)
    weights = {}
    for name, shape in bert_shapes(config).items():
        sizes = [getattr(config, size) if isinstance(size, str) else size for size in shape]
        drawn = 0.3 * random.standard_normal(sizes)
        weights[f"bert.{name}"] = (drawn + name.endswith("LayerNorm.weight")).astype(np.float32)
    weights["classifier.weight"] = random.standard_normal((3, 16)).astype(np.float32)
    weights["classifier.bias"] = random.standard_normal(3).astype(np.float32)
    return cls(config, weights, backend="numpy")


@pytest.fixture(scope="module")
def drawn(reviews: Loaded) -> Loaded:
    tokenizer = reviews.tokenizer
    return Loaded(drawn_classifier(BertForSequenceClassification, BertConfig, len(tokenizer)), tokenizer)


def word_vectors(drawn: Loaded, text: str, pair: str | None = None) -> tuple[Any, Any]:
    """The word vectors of a text [S, E], and the logits as a function of them."""
    encoding = drawn.tokenizer.encode(text, pair)
    table = dict(drawn.model.named_parameters())["bert.embeddings.word_embeddings.weight"]

    def logits(vectors: Any) -> Any:
        return drawn.model(inputs_embeds=vectors[None], token_type_ids=[encoding.token_type_ids]).logits[0]

    return table[encoding.ids], logits


@pytest.mark.parametrize("label", [None, "a", 2])
def test_gradients_are_those_of_central_differences(drawn: Loaded, label: Any) -> None:
    text, pair = "a dull film", "the story was moving"
    plain = inspect.saliency(drawn, text, pair, label=label, method="gradient")
    product = inspect.saliency(drawn, text, pair, label=label, method="input_x_gradient")
    vectors, logits = word_vectors(drawn, text, pair)
    chosen = plain.data["chosen"]
    assert chosen == {None: int(logits(vectors).argmax()), "a": 0, 2: 2}[label]
    gradient = np.zeros_like(vectors)
    for index in np.ndindex(*vectors.shape):
        step = np.zeros_like(vectors)
        step[index] = 0.03
        gradient[index] = (logits(vectors + step) - logits(vectors - step))[chosen] / 0.06
    largest = float(np.abs(plain.arrays["effect"]).max())
    np.testing.assert_allclose(plain.arrays["effect"], np.linalg.norm(gradient, axis=-1), atol=0.01 * largest)
    np.testing.assert_allclose(product.arrays["effect"], (vectors * gradient).sum(axis=-1), atol=0.02 * largest)
    assert not plain.data["signed"]
    assert (product.arrays["effect"] < 0).any()


@pytest.mark.parametrize("replace", ["mask", "remove"])
def test_integrated_gradients_add_up_to_the_change_of_the_logit(drawn: Loaded, replace: Any) -> None:
    text = "a wonderful story and a dull film"
    view = inspect.saliency(drawn, text, label="b", method="integrated_gradients", replace=replace, steps=64)
    vectors, logits = word_vectors(drawn, text)
    start = vectors.copy()
    start[1:-1] = word_vectors(drawn, "[MASK]")[0][1] if replace == "mask" else 0
    change = float((logits(vectors) - logits(start))[1])
    effect = view.arrays["effect"]
    assert np.abs(effect).max() > 0.05
    assert float(effect.sum()) == pytest.approx(change, abs=2e-3)
    assert effect[0] == effect[-1] == 0  # special tokens are not replaced
    assert f"{float(effect.sum()):+.3f}" in view.data["note"]
    # One point of the Gauss-Legendre rule is the middle of the line: the gradient there times the difference.
    middle = inspect.saliency(drawn, text, label="b", method="integrated_gradients", replace=replace, steps=1)
    product = float(middle.arrays["effect"].sum())
    ahead, behind = (logits(start + (0.5 + a) * (vectors - start))[1] for a in (0.01, -0.01))
    assert product == pytest.approx(float(ahead - behind) / 0.02, rel=0.02, abs=1e-3)


def test_a_linear_score_has_the_same_effects_by_every_method(reviews: Loaded) -> None:
    """The words of praise and blame decide, whatever the method.

    Not so for word vector times gradient: a norm follows the word vectors, which have no positions added, so the score
    does not change with their length, and what that method measures is 0 up to rounding.
    """
    text = "a wonderful film and a dull film"
    product = inspect.saliency(reviews, text, label="positive", method="input_x_gradient").arrays["effect"]
    np.testing.assert_allclose(product, 0, atol=1e-4)
    assert "right angle" in inspect.attribute(reviews, text, label="positive", method="input_x_gradient").why_zero
    for method in ("occlusion", "integrated_gradients"):
        view = inspect.saliency(reviews, text, label="positive", method=method)  # type: ignore[arg-type]
        effect = dict(zip(view.data["tokens"], view.arrays["effect"].tolist(), strict=True))
        assert max(effect, key=effect.__getitem__) == "wonderful", method
        assert min(effect, key=effect.__getitem__) == "dull", method
    size = inspect.saliency(reviews, text, label="positive", method="gradient").arrays["effect"]
    assert (size >= 0).all()


def test_long_texts_are_differentiated_in_parts(drawn: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = inspect.saliency(drawn, "a dull film", method="integrated_gradients", steps=7)
    monkeypatch.setattr(sys.modules["wordpiece_bert.inspect.effects"], "GRADIENT_TOKENS", 11)
    parts = inspect.saliency(drawn, "a dull film", method="integrated_gradients", steps=7)
    np.testing.assert_allclose(whole.arrays["effect"], parts.arrays["effect"], rtol=1e-4, atol=1e-5)


def test_saliency_refuses_what_it_does_not_know(drawn: Loaded) -> None:
    with pytest.raises(InputError, match="method must be one of 'occlusion', 'gradient'"):
        inspect.saliency(drawn, "a film", method="lime")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="replace must be one of"):
        inspect.saliency(drawn, "a film", replace="zero")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="steps must be a whole number"):
        inspect.saliency(drawn, "a film", steps=0)
    with pytest.raises(InputError, match="label must be one of a, b, c"):
        inspect.saliency(drawn, "a film", label=3)
    vocab_size = len(drawn.tokenizer)
    other = drawn_classifier(MegatronBertForSequenceClassification, MegatronBertConfig, vocab_size)
    with pytest.raises(
        InputError, match=r"MegatronBertForSequenceClassification does not have here.*method='occlusion'"
    ):
        inspect.saliency((other, drawn.tokenizer), "a film", method="gradient")


def test_a_view_refuses_a_model_without_its_head(reviews: Loaded, blanks: Loaded) -> None:
    with pytest.raises(InputError, match="masked-language head"):
        inspect.predictions(reviews, "a film")
    with pytest.raises(InputError, match="masked-language head"):
        inspect.logit_lens(reviews, "a film")
    with pytest.raises(InputError, match=r"no \[MASK\]"):
        inspect.saliency(blanks, "a film")
    with pytest.raises(InputError, match="label must be one of"):
        inspect.saliency(reviews, "a film", label="none such")
    with pytest.raises(InputError, match="a model and its tokenizer"):
        inspect.trace((1, 2), "a")  # type: ignore[arg-type]


# --- vectors


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


# --- views, pages, pictures


def all_views(reviews: Loaded, blanks: Loaded, tok: wb.Tokenizer, text: str = "the film is [MASK]") -> list[View]:
    trace = inspect.trace(blanks, text)
    vectors = np.eye(3, 8, dtype=np.float32)
    return [
        inspect.tokens(tok, text, "the cafe", beside=blanks.tokenizer),
        inspect.attention(trace),
        inspect.attention(trace, layer=0, head=0, token=1),
        inspect.neurons(trace),
        inspect.patterns(trace),
        inspect.predictions(blanks, text),
        inspect.logit_lens(blanks, text),
        inspect.saliency(reviews, text),
        inspect.saliency(reviews, text, method="gradient"),
        inspect.saliency(reviews, text, method="integrated_gradients"),
        inspect.similarity(vectors, [text, "b", "c"]),
        inspect.token_similarity(trace, trace),
        inspect.embedding_map(vectors, [text, "b", "c"], groups=["x", text, "x"]),
        inspect.positions(blanks.model),
    ]


def test_every_view_has_every_format(reviews: Loaded, blanks: Loaded, tok: wb.Tokenizer, tmp_path: Path) -> None:
    for number, view in enumerate(all_views(reviews, blanks, tok)):
        svg = view.save(tmp_path / f"{number}.svg").read_text(encoding="utf-8")
        assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
        assert view.save(tmp_path / f"{number}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        values = json.loads(view.save(tmp_path / f"{number}.json").read_text(encoding="utf-8"))
        assert set(values) == {"kind", "title", "data", "arrays"}
        for name, array in view.arrays.items():
            np.testing.assert_array_equal(np.array(values["arrays"][name], np.float32), array)
        assert view.save(tmp_path / f"{number}.html").stat().st_size > 10_000
        shown = view._repr_html_()
        assert "<svg" in shown
        assert "<script" not in shown
        assert 'sandbox="allow-scripts allow-downloads allow-modals"' in view.frame()._repr_html_()


def test_the_page_allows_nothing_remote(reviews: Loaded, blanks: Loaded, tok: wb.Tokenizer) -> None:
    page = inspect.page(*all_views(reviews, blanks, tok)).to_html()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/=]{44}'", rules["script-src"])
    assert rules["img-src"] == "data:"
    without_names = page.replace("http://www.w3.org/2000/svg", "")  # the name of a format, which nobody fetches
    assert not re.search(r"https?://|//[a-z]+\.[a-z]", without_names)


def test_hostile_texts_stay_texts(reviews: Loaded, blanks: Loaded, tok: wb.Tokenizer) -> None:
    names = [HOSTILE, "</title>", "\x00\x1f", "a" * 1000]
    view = inspect.attention(some_attention(4), names, layer=0, token=0, title=HOSTILE)
    others = all_views(reviews, blanks, tok, f"the film {HOSTILE} is")
    page = inspect.page(view, *others, title=HOSTILE).to_html()
    # One script that runs, one of content and one for each part; nothing of the texts is markup.
    scripts = re.findall(r"<script[^>]*>", page)
    assert all(
        one in {"<script>", '<script type="application/json" id="content">'} or "text/plain" in one for one in scripts
    )
    assert scripts.count("<script>") == 1
    assert "<img" not in page
    assert "<!--" not in page
    content, _ = decoded(page)
    assert content["title"] == HOSTILE
    assert content["views"][0]["data"]["tokens"] == names
    for one in [view, *others]:
        ET.fromstring(one.to_svg())
        assert "<img" not in one._repr_html_()
        frame, script = one.frame()._repr_html_().split("<script>")
        assert script.removesuffix("</script>") == page_file("frame.js")
        assert frame.count("<") == frame.count(">") == 2


@given(st.lists(st.text(max_size=12), min_size=1, max_size=4))
def test_any_tokens_survive(names: list[str]) -> None:
    view = inspect.attention(some_attention(len(names)), names, layer=0)
    content, _ = decoded(view.to_html())
    assert content["views"][0]["data"]["tokens"] == names
    ET.fromstring(view.to_svg())


#: Texts of any characters of Python, lone surrogates among them.
ANY_TEXT = st.text(st.characters(), max_size=8)


@given(st.lists(ANY_TEXT, min_size=2, max_size=2), ANY_TEXT)
def test_every_format_takes_any_text(names: list[str], title: str) -> None:
    view = inspect.similarity(np.eye(2), names, title=title)
    page = inspect.page(view, title=title)
    for text in (view.to_html(), view.to_svg(), view._repr_html_(), page.to_html(), page._repr_html_()):
        text.encode("utf-8")
    # JSON has no half of a pair alone, but an escape for it; two escapes that follow each other are one character.
    joined = [text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") for text in (title, *names)]
    for text in (view.to_json(), page.to_json()):
        values = json.loads(text.encode("utf-8"))
        values = values if "kind" in values else values["views"][0]
        assert [values["title"], *values["data"]["rows"]] == joined
    content, _ = decoded(page.to_html())
    assert content["views"][0]["data"]["rows"] == joined[1:]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, b"a"])
def test_values_that_json_lacks_are_refused(value: Any) -> None:
    view = inspect.View("similarity", "", {"rows": ["a"], "columns": ["a"], "value": value}, {"similarity": np.eye(1)})
    for written in (view.to_json, view.to_html, inspect.page(view).to_json):
        with pytest.raises(InputError, match="must be values of JSON"):
            written()


def test_files_and_pages_are_checked(tmp_path: Path) -> None:
    view = inspect.similarity(np.eye(2), ["a", "b"])
    with pytest.raises(InputError, match=r"must end in one of \.html"):
        view.save(tmp_path / "view.pdf")
    with pytest.raises(InputError, match=r"must end in one of \.html, \.json"):
        inspect.page(view).save(tmp_path / "page.svg")
    with pytest.raises(InputError, match="at least one view"):
        inspect.page()
    with pytest.raises(InputError, match=r"views\[0\]"):
        inspect.page("view")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_png_without_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"wordpiece-bert\[plot\]"):
        inspect.similarity(np.eye(2), ["a", "b"]).save(tmp_path / "view.png")


# --- notebooks


def test_encodings_and_batches_show_themselves(tok: wb.Tokenizer) -> None:
    shown = tok.encode("the cafe")._repr_html_()
    assert "<td>cafe</td><td>10</td><td>4–8</td>" in shown
    wild = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "<", "b", ">"]).encode("<b>")._repr_html_()
    assert "<td>&lt;</td>" in wild
    assert "<b>" not in wild
    batch = tok.encode_batch(["the cafe"] * 12)
    assert "first 10 rows" in batch._repr_html_()
    assert "2 × 4" in tok(["the cafe", "the"], padding=True)._repr_html_()
    assert "list" in tok(["the cafe", "the"], return_tensors=None)._repr_html_()
    long = tok.encode("the " * 500)._repr_html_()
    assert "the first 100" in long


# --- the command


def test_command_writes_a_page(folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert main(["inspect", "[MASK] is the capital of france", "-m", str(folders / "words"), "-o", str(out)]) == 0
    content, _ = decoded(out.read_text(encoding="utf-8"))
    kinds = [view["kind"] for view in content["views"]]
    assert kinds == ["tokens", "attention", "neurons", "patterns", "predictions", "lens", "saliency", "positions"]
    assert "tokens, attention, neurons" in capsys.readouterr().err
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("\n".join(VOCAB), encoding="utf-8")
    assert (
        main(["inspect", "the cafe", "-m", str(vocab), "--beside", str(folders / "reviews"), "-o", str(out), "-q"]) == 0
    )
    content, _ = decoded(out.read_text(encoding="utf-8"))
    assert [len(view["data"]["tokenizers"]) for view in content["views"]] == [2]


@pytest.mark.parametrize("length", [4, 6, 1000])
def test_command_cuts_every_view_at_the_same_length(folders: Path, tmp_path: Path, length: int) -> None:
    """Every view of a text has the tokens of the trace, also those of another model."""
    out, text = tmp_path / "page.html", "the capital of france is a wonderful city of the film"
    for name in ("words", "reviews"):
        command = ["inspect", text, "-m", str(folders / name), "-o", str(out), "--max-length", str(length), "-q"]
        assert main(command) == 0
        content, _ = decoded(out.read_text(encoding="utf-8"))
        shown = {view["kind"]: view["data"].get("tokens") for view in content["views"]}
        del shown["positions"]
        shown["patterns"] = shown["attention"]  # it has no tokens
        shown["tokens"] = [row["token"] for row in content["views"][0]["data"]["tokenizers"][0]["tokens"]]
        assert set(shown) >= ({"predictions", "lens"} if name == "words" else {"saliency"})
        expected = inspect.trace(folders / name, text, max_length=length).tokens
        assert len(expected) == min(length, 13)
        assert all(tokens == expected for tokens in shown.values())


def test_command_chooses_the_method_of_saliency(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    command = ["inspect", "a dull film", "-o", str(out), "--views", "saliency"]
    for chosen in ([], ["--saliency", "input_x_gradient"]):
        assert main([*command, "-m", str(folders / "reviews"), *chosen]) == 0
        content, _ = decoded(out.read_text(encoding="utf-8"))
        assert [view["data"]["method"] for view in content["views"]] == [chosen[-1] if chosen else "occlusion"]
    capsys.readouterr()
    chosen = ["--views", "tokens", "--saliency", "gradient"]
    assert main(["inspect", "a", "-m", str(folders / "words"), "-o", str(out), *chosen]) == 2
    assert "no view saliency" in capsys.readouterr().err


def test_command_refuses_views_that_the_model_lacks(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["-o", str(tmp_path / "page.html")]
    assert main(["inspect", "a", "-m", str(folders / "reviews"), "--views", "lens", *out]) == 2
    assert "does not allow lens" in capsys.readouterr().err
    assert main(["inspect", "a", "-m", str(folders / "reviews"), "--views", "nothing", *out]) == 2
    assert "not one of tokens" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


# --- MiniLM


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
