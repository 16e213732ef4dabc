"""`inspect.compare` and `compare_tokenizers`: alignments, differences, and the pictures of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_bert as wb
from test_inspect_trace import loaded
from wordpiece_bert import inspect
from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.alignment import align_spans, align_tokens
from wordpiece_bert.tasks import Loaded

LETTERS = st.lists(st.sampled_from("abcd"), max_size=9)


def check_cover(groups: Any, count_a: int, count_b: int) -> None:
    """Every token is in one group, in order."""
    assert [i for left, _ in groups for i in left] == list(range(count_a))
    assert [j for _, right in groups for j in right] == list(range(count_b))
    assert all(left or right for left, right in groups)


@given(LETTERS, LETTERS)
def test_tokens_are_aligned_one_by_one(a: list[str], b: list[str]) -> None:
    groups = align_tokens(a, b)
    check_cover(groups, len(a), len(b))
    assert all(len(left) <= 1 and len(right) <= 1 for left, right in groups)
    if a == b:
        assert groups == [([i], [i]) for i in range(len(a))]


@st.composite
def cuts(draw: st.DrawFn) -> list[tuple[int, int, int] | None]:
    """A text of 12 characters cut into tokens, some of which are left out, between special tokens."""
    ends = sorted(draw(st.sets(st.integers(1, 11), max_size=8)) | {0, 12})
    spans = [(0, start, end) for start, end in pairwise(ends)]
    kept = [span for span in spans if draw(st.integers(0, 5))]
    return [None, *kept, None]


@given(cuts(), cuts())
def test_tokens_of_one_text_are_aligned_by_their_characters(a: Any, b: Any) -> None:
    groups = align_spans(a, b)
    check_cover(groups, len(a), len(b))
    assert groups[0] == ([0], [0])
    assert groups[-1] == ([len(a) - 1], [len(b) - 1])
    for number, (left, right) in enumerate(groups):
        for i in left:
            for j in range(len(b)):
                if a[i] and b[j] and max(a[i][1], b[j][1]) < min(a[i][2], b[j][2]):
                    assert j in right, f"tokens {i} and {j} have a character in common, but not group {number}"
        if len(left) == len(right) == 1 and number not in (0, len(groups) - 1):
            assert max(a[left[0]][1], b[right[0]][1]) < min(a[left[0]][2], b[right[0]][2])


def test_two_texts_in_one_model() -> None:
    one = loaded("bert_model")
    a, b = inspect.trace(one, "w5 w6 w7 w8"), inspect.trace(one, "w5 w9 w7")
    found = inspect.compare(a, b)
    assert found.groups == [([0], [0]), ([1], [1]), ([2], [2]), ([3], [3]), ([4], []), ([5], [4])]
    assert found.units == [0, 1, 2, 3, 5]
    assert found.names == ("w5 w6 w7 w8", "w5 w9 w7")
    here, there = [0, 1, 2, 3, 5], [0, 1, 2, 3, 4]
    np.testing.assert_allclose(found.attentions[0], a.attentions[:, :, here][..., here], rtol=1e-6)
    np.testing.assert_allclose(found.attentions[1], b.attentions[:, :, there][..., there], rtol=1e-6)
    cosines = (normalize(a.hidden_states[:, here]) * normalize(b.hidden_states[:, there])).sum(axis=-1)
    assert found.distances is not None
    np.testing.assert_allclose(found.distances, 1 - cosines, atol=1e-6)
    assert found.distances[0, 1] == pytest.approx(0, abs=1e-6)  # the same word in the same place, before any layer
    assert found.distances[0, 2] > 0.01


def test_two_models_with_two_tokenizers() -> None:
    first = loaded("bert_model")
    pieces = wb.Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "w", "##1", "##5", "##6", "##7"])
    second = Loaded(loaded("distilbert_model").model, pieces)
    found = inspect.compare(inspect.trace(first, "w15 w6"), inspect.trace(second, "w15 w6"))
    assert found.groups == [([0], [0]), ([1], [1, 2, 3]), ([2], [4, 5]), ([3], [6])]
    weights = inspect.trace(second, "w15 w6").attentions
    # From the word w6 to the word w15: the mean over its two pieces of what they give to the three of the other.
    expected = weights[:, :, 4:6, 1:4].sum(axis=-1).mean(axis=-1)
    np.testing.assert_allclose(found.attentions[1][:, :, 2, 1], expected, rtol=1e-5)
    np.testing.assert_allclose(found.attentions[1].sum(axis=-1), 1, atol=1e-5)
    assert "BertModel" in found.names[0]
    assert "DistilBertModel" in found.names[1]


def test_layers_are_compared_whatever_their_rotation_and_scale() -> None:
    one = loaded("bert_model")
    trace = inspect.trace(one, "w5 w6 w7 w8 w9 w5")
    found = inspect.compare(trace, trace)
    np.testing.assert_allclose(np.diag(found.layers), 1, atol=1e-6)
    np.testing.assert_allclose(found.layers, found.layers.T, atol=1e-6)
    assert found.layers[0, -1] < 0.999
    assert found.distances is not None
    np.testing.assert_allclose(found.distances, 0, atol=1e-6)
    width = trace.hidden_states.shape[-1]
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(width, width)))[0].astype(np.float32)
    turned = inspect.compare(trace, replace(trace, hidden_states=3 * trace.hidden_states @ turn))
    np.testing.assert_allclose(turned.layers, found.layers, atol=1e-4)
    assert found.names == ("first", "second")


def test_tokenizers_are_compared_word_by_word() -> None:
    whole = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new", "yorker", "in"])
    pieces = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
    found = inspect.compare_tokenizers(whole, pieces, "New Yorker  in")
    assert found.tokens == (["new", "yorker", "in"], ["new", "york", "##er", "[UNK]"])
    assert found.groups == [([0], [0]), ([1], [1, 2]), ([2], [3])]
    assert found.counts == [(1, 1), (1, 2), (1, 1)]
    assert found.tokens_per_word == (1.0, 4 / 3)
    assert found.unknown == ([], [3])
    view = inspect.tokenizers(found)
    assert view.data["words"] == ["New", "Yorker", "in"]
    assert "##er" in view.to_svg()
    empty = inspect.compare_tokenizers(whole, pieces, " ")
    assert empty.tokens_per_word == (0.0, 0.0)
    assert inspect.tokenizers(empty).to_html()


def test_what_cannot_be_compared_is_refused() -> None:
    one = loaded("bert_model")
    trace = inspect.trace(one, "w5 w6")
    with pytest.raises(InputError, match="compare takes what trace returns, or a model and its text, not int"):
        inspect.compare(trace, 5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a model needs a text"):
        inspect.compare(trace, one)
    with pytest.raises(InputError, match="compare takes a text for models: a Trace has its own"):
        inspect.compare(trace, trace, text="w5")
    with pytest.raises(InputError, match="token_similarity takes what trace returns"):
        inspect.token_similarity(trace, [trace])  # type: ignore[arg-type]
    deep = replace(trace, hidden_states=np.concatenate([trace.hidden_states, trace.hidden_states]))
    with pytest.raises(InputError, match="layer must be a whole number from"):
        inspect.token_similarity(deep, trace, layer=len(trace.hidden_states))
    with pytest.raises(InputError, match="takes what compare returns"):
        inspect.comparison(trace)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="layer must be a whole number from"):
        inspect.comparison(inspect.compare(trace, trace), layer=99)
    with pytest.raises(InputError, match="layer must be a whole number from"):
        inspect.comparison(inspect.compare(trace, trace), layer="a")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="head must be a whole number from"):
        inspect.comparison(inspect.compare(trace, trace), head=-99)
    with pytest.raises(InputError, match="compare_tokenizers needs a Tokenizer, or a model with one, not int"):
        inspect.compare_tokenizers(5, one.tokenizer, "a")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="takes what compare_tokenizers returns"):
        inspect.tokenizers(trace)  # type: ignore[arg-type]


def test_models_are_compared_with_texts_of_their_own() -> None:
    one, other = loaded("bert_model"), loaded("bert_token_cls")
    a, b = inspect.trace(one, "w5 w6 w7"), inspect.trace(one, "w5 w8")
    for found in (
        inspect.compare(one, one, text="w5 w6 w7", other="w5 w8"),
        inspect.compare(a, one, text="w5 w8"),
        inspect.compare(one, b, text="w5 w6 w7"),
    ):
        expected = inspect.compare(a, b)
        assert (found.names, found.groups) == (expected.names, expected.groups)
        np.testing.assert_array_equal(found.layers, expected.layers)
    both = inspect.compare(one, other, text="w5 w6", pair="w7")
    assert both.texts == (("w5 w6", "w7"), ("w5 w6", "w7"))
    assert both.names[0] != both.names[1]


def test_comparisons_have_pictures() -> None:
    one = loaded("bert_model")
    found = inspect.compare(inspect.trace(one, "w5 w6 w7"), inspect.trace(one, "w5 w8"))
    view = inspect.comparison(found, layer=1, head=1)
    assert view.data["first"] == {"layers": [1, 1], "heads": [1, 1]}
    assert ">w8<" in view.to_svg()
    assert view.to_html()
