"""`compare`: two texts, two models, two layers, token by token; `compare_tokenizers`: two tokenizers, word by word."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import groupby
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.checks import checked_strings, whole_number
from wordpiece_bert._internal.notebook import fields_html
from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.alignment import Group, align_spans, align_tokens
from wordpiece_bert.inspect.sources import tokenizer_in
from wordpiece_bert.inspect.trace import about, both_traced
from wordpiece_bert.inspect.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.inspect.pack import Encoding
    from wordpiece_bert.inspect.sources import AnySource
    from wordpiece_bert.inspect.trace import Trace
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """Two traces beside each other.

    A and B are the numbers of layers of the two, N heads, U units: groups of tokens that both have, in the order of the
    first. A unit's vector is the mean of its tokens' vectors, and its attention weight to another the mean over its
    queries of the sum over the keys of the other.

    Examples
    --------
    >>> from wordpiece_bert import inspect, tasks
    >>> words = tasks.load("models/words")
    >>> texts = ["the capital of france", "the capital of poland"]
    >>> found = inspect.compare(*(inspect.trace(words, text) for text in texts))
    >>> all(len(first) == 1 == len(second) for first, second in found.groups)
    True
    """

    #: What the two are called.
    names: tuple[str, str]
    #: The tokens of each.
    tokens: tuple[list[str], list[str]]
    #: Which tokens of the first belong to which of the second; one of the lists may be empty.
    groups: list[Group]
    #: The indices in `groups` of the units, those that have tokens of both, [U].
    units: list[int]
    #: The attention weights between units, [A, N, U, U] and [B, N, U, U].
    attentions: tuple[Array, Array]
    #: 1 less the cosine of the two vectors of each unit after each layer, [layers + 1, U]; None if the models have
    #: other widths or numbers of layers.
    distances: Array | None
    #: How far the attention of each head differs: half the sum of the absolute differences of the weights, mean over
    #: the queries, [A, N]; None if the models have other numbers of layers or heads.
    heads: Array | None
    #: How alike the vectors of the units are after each two layers, linear CKA, [A + 1, B + 1].
    layers: Array
    #: The text of each, or the two texts of a pair.
    texts: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def __repr__(self) -> str:
        names = ", ".join(repr(shorten(name, 60, placeholder=" …")) for name in self.names)
        return f"Comparison({names}, {len(self.units)} of {len(self.groups)} groups in both)"

    def _repr_html_(self) -> str:
        return fields_html(repr(self), {one.name: getattr(self, one.name) for one in fields(self)})


def compare(
    a: Trace | AnySource,
    b: Trace | AnySource,
    *,
    text: str | None = None,
    pair: str | None = None,
    other: str | None = None,
    other_pair: str | None = None,
    names: tuple[str, str] | None = None,
) -> Comparison:
    """Align two traces and compute how they differ: two texts in one model, one text in two, or one beside itself.

    Traces of one text are aligned by its characters, so that two models may have different tokenizers; others by their
    tokens. Layers are compared by linear CKA over the units (Kornblith et al. 2019, "Similarity of Neural Network
    Representations Revisited"): 1 for vectors that a rotation and a scale make equal. With few tokens it says little.

    Parameters
    ----------
    a, b : Trace or model
        What `trace` returned, or with ``text`` models in any form that it takes: of two models one text, or of one
        model, given twice, two.
    text, pair : str, optional
        For models: the text to trace in both, and the second text of a pair.
    other, other_pair : str, optional
        For models: the text of the second, if it is another.
    names : (str, str), optional
        What to call them. By default their texts, or their models where the texts are the same.

    Returns
    -------
    Comparison
        The alignment and the differences.

    Raises
    ------
    InputError
        They are neither traces nor models with a text, or have no token in common.

    Examples
    --------
    >>> from wordpiece_bert import inspect, tasks
    >>> words = tasks.load("models/words")
    >>> first = inspect.trace(words, "the capital of france is paris")
    >>> second = inspect.trace(words, "the capital of poland is warsaw")
    >>> found = inspect.compare(first, second)
    >>> [
    ...     (first.tokens[i[0]], second.tokens[j[0]])
    ...     for i, j in found.groups
    ...     if first.tokens[i[0]] != second.tokens[j[0]]
    ... ]
    [('france', 'poland'), ('paris', 'warsaw')]
    >>> inspect.compare(
    ...     words, words, text="a city in france", other="a city in poland"
    ... ).distances.shape
    (2, 6)
    """
    a, b = both_traced("compare", a, b, (text, pair), (other, other_pair))
    if names is not None:
        checked_strings("names", names, 2)
    same = bool(a.texts) and a.texts == b.texts
    if same and a.offsets is not None and b.offsets is not None:
        groups = align_spans(_spans(a.sentence_ids, a.offsets), _spans(b.sentence_ids, b.offsets))
    else:
        groups = align_tokens(a.tokens, b.tokens)
    units = [number for number, (left, right) in enumerate(groups) if left and right]
    if not units:
        raise InputError("the two have no token in common")
    members = tuple([groups[unit][side] for unit in units] for side in (0, 1))
    x, y = (_means(one.hidden_states, own) for one, own in zip((a, b), members, strict=True))  # [A + 1, U, H]
    distances = None
    if x.shape == y.shape:
        distances = (1 - (normalize(x) * normalize(y)).sum(axis=-1)).astype(np.float32)
    if names is None:
        called = (a.model, b.model) if same else (" / ".join(a.texts), " / ".join(b.texts))
        names = ("first", "second") if called[0] == called[1] or not all(called) else called
    first, second = _between(a.attentions, members[0]), _between(b.attentions, members[1])
    heads = None
    if first.shape == second.shape:  # layer by layer: the arrays are large
        far = [np.abs(one - other).sum(axis=-1).mean(axis=-1) / 2 for one, other in zip(first, second, strict=True)]
        heads = np.stack(far)
    grams = tuple([_gram(state) for state in states] for states in (x, y))
    return Comparison(
        names=names,
        tokens=(a.tokens, b.tokens),
        groups=groups,
        units=units,
        attentions=(first, second),
        distances=distances,
        heads=heads,
        layers=np.array([[_cka(one, other) for other in grams[1]] for one in grams[0]], np.float32),
        texts=(a.texts, b.texts),
    )


def _spans(texts: Sequence[int | None], offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int, int] | None]:
    return [None if text is None else (text, *span) for text, span in zip(texts, offsets, strict=True)]


def _means(x: Array, members: list[list[int]]) -> Array:
    """[L, S, H] -> [L, U, H]."""
    return np.stack([x[:, own].mean(axis=1) for own in members], axis=1)


def _between(weights: Array, members: list[list[int]]) -> Array:
    """[L, N, S, S] -> [L, N, U, U]: keys are added up, queries averaged."""
    counts = [len(own) for own in members]
    places = np.concatenate(members)
    starts = np.cumsum([0, *counts[:-1]])
    found = np.empty((*weights.shape[:2], len(members), len(members)), np.float32)
    for layer, one in zip(found, weights, strict=True):
        keys = np.add.reduceat(one[..., places], starts, axis=-1)  # [N, S, U]
        np.add.reduceat(keys[:, places], starts, axis=-2, out=layer)
        layer /= np.array(counts, np.float32)[:, None]
    return found


def _gram(x: Array) -> npt.NDArray[np.float64]:
    """Return XXᵀ [U, U] of centred vectors [U, H]: its sums of squares equal XᵀX's, [H, H], which may be larger."""
    centred: npt.NDArray[np.float64] = x.astype(np.float64) - x.mean(axis=0, dtype=np.float64)
    return centred @ centred.T


def _cka(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    """‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖) of vectors by their `_gram`; 0 where one of them is constant."""
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / scale if scale > 0 else 0.0


def comparison(found: Comparison, *, layer: int = -1, head: int = 0, title: str = "Comparison") -> View:
    """Show two traces beside each other: their tokens, the difference of each, and of the attention of any two heads.

    Parameters
    ----------
    found : Comparison
        What `compare` returned.
    layer, head : int
        The layer and the head that are shown at first, of both.
    title : str, default "Comparison"
        A line above the view.

    Returns
    -------
    View
        Arrays ``first`` and ``second``, the attention weights between units, and ``layers``, ``heads`` and
        ``distances`` as far as `Comparison` has them.

    Raises
    ------
    InputError
        It is something else, or there is no such layer or head.

    Examples
    --------
    >>> from wordpiece_bert import inspect, tasks
    >>> words = tasks.load("models/words")
    >>> trace = inspect.trace(words, "the capital of france is paris")
    >>> inspect.comparison(inspect.compare(trace, trace)).kind
    'comparison'
    """
    if not isinstance(found, Comparison):
        raise InputError(f"comparison takes what compare returns, not {type(found).__name__}")
    shapes = [one.shape[:2] for one in found.attentions]
    for name, value, counts in (("layer", layer, [s[0] for s in shapes]), ("head", head, [s[1] for s in shapes])):
        whole_number(name, value, -min(counts), min(counts) - 1)
    data: dict[str, Any] = {
        "names": list(found.names),
        "tokens": [list(one) for one in found.tokens],
        "groups": [[list(left), list(right)] for left, right in found.groups],
        "units": found.units,
        "first": {"layers": [layer % s[0] for s in shapes], "heads": [head % s[1] for s in shapes]},
        "about": [name for texts in found.texts for name in about(*texts)] if all(found.texts) else [],
    }
    arrays = {"first": found.attentions[0], "second": found.attentions[1], "layers": found.layers}
    encodings: dict[str, Encoding] = {"first": "rows", "second": "rows"}
    if found.distances is not None:
        arrays["distances"] = found.distances
    if found.heads is not None:
        arrays["heads"] = found.heads
    return View("comparison", title, data, arrays, encodings)


# --- tokenizers


@dataclass(frozen=True, eq=False, kw_only=True)
class TokenizerComparison:
    """One text in two tokenizers.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer, inspect
    >>> whole = Tokenizer.from_vocab(["[UNK]", "new", "yorker"])
    >>> pieces = Tokenizer.from_vocab(["[UNK]", "new", "york", "##er"])
    >>> inspect.compare_tokenizers(whole, pieces, "New Yorker").tokens
    (['new', 'yorker'], ['new', 'york', '##er'])
    """

    #: What the two are called.
    names: tuple[str, str]
    #: The text.
    text: str
    #: The tokens of each, special tokens left out.
    tokens: tuple[list[str], list[str]]
    #: Where each is in the text, (first character, the one after the last).
    offsets: tuple[list[tuple[int, int]], list[tuple[int, int]]]
    #: Which tokens of the first belong to which of the second: the smallest groups that no token crosses.
    groups: list[Group]
    #: The words of the text, as white space separates them: (first character, the one after the last).
    words: list[tuple[int, int]]
    #: How many tokens each has for each word, [words] of pairs.
    counts: list[tuple[int, int]]
    #: Tokens for each word, on average.
    tokens_per_word: tuple[float, float]
    #: Which tokens stand for what the vocabulary does not have.
    unknown: tuple[list[int], list[int]]

    def __repr__(self) -> str:
        left, right = self.tokens_per_word
        words = f"{len(self.words)} word{'s' * (len(self.words) != 1)}"
        return f"TokenizerComparison({words}, {left:.2f} and {right:.2f} tokens a word)"

    def _repr_html_(self) -> str:
        return fields_html(repr(self), {one.name: getattr(self, one.name) for one in fields(self)})


def compare_tokenizers(
    a: AnyTokenizer | AnySource,
    b: AnyTokenizer | AnySource,
    text: str,
    *,
    names: tuple[str, str] = ("first tokenizer", "second tokenizer"),
) -> TokenizerComparison:
    """Align the tokens of one text in two tokenizers by the characters that they are from.

    Parameters
    ----------
    a, b : Tokenizer or model
        The tokenizers, of any kind, or models that have one: encoders, rankers, what `tasks.load` returns, or names.
    text : str
        The text. It is not truncated.
    names : (str, str), optional
        What to call them.

    Returns
    -------
    TokenizerComparison
        The alignment, and how many tokens each has for each word.

    Raises
    ------
    InputError
        One is neither a tokenizer nor a model that has one.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer, inspect
    >>> whole = Tokenizer.from_vocab(["[UNK]", "new", "yorker"])
    >>> pieces = Tokenizer.from_vocab(["[UNK]", "new", "york", "##er"])
    >>> inspect.compare_tokenizers(whole, pieces, "New Yorker").tokens_per_word
    (1.0, 1.5)
    """
    both = [tokenizer_in(one, "compare_tokenizers") for one in (a, b)]
    checked_strings("names", names, 2)
    encodings = [one.encode(text, truncation=False, padding=False) for one in both]
    kept = [[i for i, side in enumerate(one.sequence_ids) if side is not None] for one in encodings]
    tokens = tuple([one.tokens[i] for i in own] for one, own in zip(encodings, kept, strict=True))
    offsets = tuple(_trimmed(one, own, text) for one, own in zip(encodings, kept, strict=True))
    words = _words(text)
    counts = [tuple(_in_word(spans, word) for spans in offsets) for word in words]
    total = max(1, len(words))
    unknown = tuple(
        [i for i, token in enumerate(own) if token == one.unk_token] for own, one in zip(tokens, both, strict=True)
    )
    return TokenizerComparison(
        names=names,
        text=text,
        tokens=(tokens[0], tokens[1]),
        offsets=(offsets[0], offsets[1]),
        groups=align_spans(*([(0, *span) for span in spans] for spans in offsets)),
        words=words,
        counts=[(left, right) for left, right in counts],
        tokens_per_word=(len(tokens[0]) / total, len(tokens[1]) / total),
        unknown=(unknown[0], unknown[1]),
    )


def _trimmed(encoding: AnyEncoding, kept: list[int], text: str) -> list[tuple[int, int]]:
    """Return where tokens are, without the white space before a word that some tokenizers count to it."""
    found, offsets = [], encoding.offsets
    for i in kept:
        start, end = offsets[i]
        while start < end - 1 and text[start].isspace():
            start += 1
        found.append((start, end))
    return found


def _words(text: str) -> list[tuple[int, int]]:
    spans = []
    for space, group in groupby(enumerate(text), key=lambda one: one[1].isspace()):
        places = [index for index, _ in group]
        if not space:
            spans.append((places[0], places[-1] + 1))
    return spans


def _in_word(spans: list[tuple[int, int]], word: tuple[int, int]) -> int:
    """Return how many tokens begin in a word."""
    return sum(word[0] <= start < word[1] for start, _ in spans)


def tokenizers(found: TokenizerComparison, *, title: str = "Tokenizers") -> View:
    """Show one text in two tokenizers, aligned, with the tokens that differ coloured, and the tokens for each word.

    Parameters
    ----------
    found : TokenizerComparison
        What `compare_tokenizers` returned.
    title : str, default "Tokenizers"
        A line above the view.

    Returns
    -------
    View
        The array ``counts`` [words, 2]: how many tokens each has for each word.

    Raises
    ------
    InputError
        It is something else.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer, inspect
    >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "new", "york", "##er"])
    >>> inspect.tokenizers(
    ...     inspect.compare_tokenizers(tokenizer, tokenizer, "New Yorker")
    ... ).kind
    'tokenizers'
    """
    if not isinstance(found, TokenizerComparison):
        raise InputError(f"tokenizers takes what compare_tokenizers returns, not {type(found).__name__}")
    data = {
        "names": list(found.names),
        "text": found.text,
        "tokens": [list(one) for one in found.tokens],
        "groups": [[list(left), list(right)] for left, right in found.groups],
        "words": [found.text[start:end] for start, end in found.words],
        "perWord": list(found.tokens_per_word),
        "about": about(found.text),
        "unknown": [list(one) for one in found.unknown],
    }
    counts = np.array(found.counts, np.float32).reshape(len(found.counts), 2)
    return View("tokenizers", title, data, {"counts": counts})
