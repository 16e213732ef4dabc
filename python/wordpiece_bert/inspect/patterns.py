"""The habits of attention heads, measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.attention import checked_sentences, checked_tokens, checked_weights
from wordpiece_bert.inspect.trace import Trace, about, called, traced
from wordpiece_bert.inspect.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.inspect.sources import AnySource

#: What is measured for each head: the mean share of a token's weight that goes to these tokens, and for ``broad`` the
#: mean entropy of the weights, divided by the entropy of equal weights.
HABITS = ("previous", "next", "itself", "first", "separator", "same word", "same sentence", "broad")

#: A head has the first of these habits whose measure is at least as large as the threshold.
THRESHOLDS = (
    ("previous", 0.4),
    ("next", 0.4),
    ("itself", 0.4),
    ("same word", 0.3),
    ("separator", 0.4),
    ("first", 0.4),
    ("broad", 0.85),
    ("same sentence", 0.8),
)


def patterns(
    source: Trace | AnySource | Sequence[Trace] | npt.ArrayLike,
    tokens: Sequence[str] | None = None,
    *,
    sentence_ids: Sequence[int | None] | None = None,
    word_ids: Sequence[int | None] | None = None,
    text: str | None = None,
    pair: str | None = None,
    title: str = "Patterns",
) -> View:
    """Label each attention head by its measured habit.

    Clark et al. (2019), "What Does BERT Look At?", describe these habits.

    For each head the mean, over query tokens, of the weight that goes to the previous token, the next token, the token
    itself, the first token (``[CLS]``), the separators (``[SEP]``), the same word (other pieces of the word, and the
    same token elsewhere) and the same text of a pair; and how broad the weights are, their entropy over the entropy of
    equal weights. A head is labelled by the first habit of `THRESHOLDS` that it reaches, or as mixed.

    Parameters
    ----------
    source : Trace, sequence of Trace, array_like or model
        What `trace` returns, or with ``text`` a model, or several of them, whose measures are averaged; or weights as
        `attention` takes them.
    tokens, sentence_ids, word_ids : sequence, optional
        For weights: S tokens, the text of each token (0, 1 or None), and the word of each token.
    text, pair : str, optional
        For a model in any form that `trace` takes: what to trace, a text or a pair.
    title : str, default "Patterns"
        A line above the view.

    Returns
    -------
    View
        The array ``measures``, [L, N, habits] in the order of `HABITS`; in ``data`` the labels, [L][N].

    Raises
    ------
    InputError
        The models of the traces have different numbers of layers or heads, or an array has the wrong shape.

    Examples
    --------
    >>> from wordpiece_bert import inspect, tasks
    >>> words = tasks.load("models/words")
    >>> trace = inspect.trace(words, "the capital of france is paris")
    >>> inspect.patterns(trace).data["labels"]
    [['broad']]
    """
    given: Any = traced(source, text, pair)
    traces = [given] if isinstance(given, Trace) else given if isinstance(given, (list, tuple)) else []
    truncated, texts, model = False, [], ""
    if traces and all(isinstance(one, Trace) for one in traces):
        found = [_measures(checked_weights(t.attentions), t.tokens, t.sentence_ids, t.word_ids) for t in traces]
        is_pair = any(1 in t.sentence_ids for t in traces)
        truncated = any(t.truncated for t in traces)
        texts = about(*traces[0].texts) if len(traces) == 1 else []
        model = called(traces[0].model) if len({t.model for t in traces}) == 1 else ""
        if len({one.shape for one in found}) > 1:
            raise InputError("traces of models with different layers or heads cannot be averaged")
    else:
        weights = checked_weights(given)
        names = checked_tokens(tokens, weights.shape[-1])
        sentences = [0] * len(names) if sentence_ids is None else checked_sentences(names, sentence_ids)
        words = [None] * len(names) if word_ids is None else list(word_ids)
        if len(words) != len(names):
            raise InputError(f"word_ids must be {len(names)} values, one for each token, not {len(words)}")
        found = [_measures(weights, names, sentences, words)]
        texts = about(" ".join(names))
        is_pair = 1 in sentences
    measures: Array = np.mean(np.array(found, np.float64), axis=0).astype(np.float32)
    labels = [[_label(head, pair=is_pair) for head in layer] for layer in measures.tolist()]
    data = {"habits": list(HABITS), "labels": labels, "texts": len(found), "pair": is_pair, "truncated": truncated}
    data |= {"about": texts, "model": model}
    return View("patterns", title, data, {"measures": measures})


def _label(measures: list[float], *, pair: bool) -> str:
    by_name = dict(zip(HABITS, measures, strict=True))
    for habit, threshold in THRESHOLDS:
        # With one text every token is in the same sentence, which says nothing about a head.
        if by_name[habit] >= threshold and (pair or habit != "same sentence"):
            return habit
    return "mixed"


def _measures(
    weights: Array,
    tokens: Sequence[str],
    sentence_ids: Sequence[int | None],
    word_ids: Sequence[int | None],
) -> Array:
    """Return the measures of one text, [L, N, habits]."""
    length = len(tokens)
    rows = np.arange(length)
    separators = np.array([token in {"[SEP]", "</s>"} for token in tokens])
    sentences = np.array([-1 if s is None else s for s in sentence_ids])
    words = np.array([-1 - i if w is None else w for i, w in enumerate(word_ids)])
    names = np.unique(np.array(tokens), return_inverse=True)[1]
    distance = rows[None, :] - rows[:, None]  # key − query
    special = sentences < 0
    together = (sentences[:, None] == sentences[None, :]) & ~special[:, None] & ~special[None, :]
    same_word = (((words[:, None] == words[None, :]) & together) | (names[:, None] == names[None, :])) & (distance != 0)
    same_word &= ~separators[None, :]
    maps = [distance == -1, distance == 1, distance == 0, np.broadcast_to(rows == 0, distance.shape)]
    maps += [np.broadcast_to(separators, distance.shape), same_word, together]
    shares = np.einsum("lnqk,hqk->lnqh", weights, np.array(maps, np.float32), optimize=True)
    # The mean over the queries for which there is such a token: the first token has no previous one.
    has = np.array([one.any(axis=1) for one in maps])  # [habits, S]
    count = np.maximum(has.sum(axis=1), 1)
    means = (shares * has.T).sum(axis=2) / count  # [L, N, habits]
    entropy = -(weights * np.log(np.maximum(weights, 1e-30))).sum(axis=-1).mean(axis=-1)  # [L, N]
    broad = entropy / np.log(max(length, 2))
    return np.concatenate([means, broad[..., None]], axis=-1).astype(np.float32)
