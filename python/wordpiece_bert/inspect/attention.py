"""Attention: the weights of every layer and head, their norm-weighted form, their rollout, and queries and keys.

Drawn as in Vig (2019), "A Multiscale Visualization of Attention in the Transformer Model": the head view, the
model view and the neuron view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.checks import check_instance, check_several, whole_number
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.links import telling_link
from wordpiece_bert.inspect.pack import as_finite, encoding_of_vectors
from wordpiece_bert.inspect.trace import Trace, about, called, traced
from wordpiece_bert.inspect.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.inspect.pack import Encoding
    from wordpiece_bert.inspect.sources import AnySource

#: The width of a head's thumbnail, in cells; longer rows are reduced to it by maxima.
THUMBNAIL = 48
#: How far the sum of a row may be from 1: weights in bfloat16 are rounded by up to 1/512 each.
SUM_TOLERANCE = 0.01


def attention(
    source: Trace | AnySource | npt.ArrayLike,
    tokens: Sequence[str] | None = None,
    *,
    sentence_ids: Sequence[int | None] | None = None,
    value_norms: npt.ArrayLike | None = None,
    layer: int | None = None,
    head: int = 0,
    token: int | None = None,
    text: str | None = None,
    pair: str | None = None,
    title: str = "Attention",
) -> View:
    """Show the attention weights: of one token in one head, and of all layers and heads at once.

    Parameters
    ----------
    source : Trace, array_like or model
        What `trace` returns, or with ``text`` a model; or the weights after the softmax, numbers [L, N, S, S] or L
        arrays [1, N, S, S], as ``output_attentions=True`` returns them here, in transformers and in torch.
    tokens : sequence of str, optional
        S tokens; not with a `Trace`, which has them.
    sentence_ids : sequence of int, optional
        For each token 0 or 1, the text of a pair, or None for a special token. By default all are of one text, except
        ``[CLS]``, ``[SEP]`` and their like.
    value_norms : array_like, optional
        ‖f(x_j)‖ of each layer and head, [L, N, S], for the norm-weighted form α·‖f(x_j)‖ (Kobayashi et al. 2020,
        "Attention is Not Only a Weight").
    layer, head, token : int
        What is selected at first: the index of a layer, of a head and of a query token. The picture of the view shows
        this head; without a layer it shows all heads.
    text, pair : str, optional
        The text to trace, and the second text of a pair, if ``source`` is a model in any form that `trace` takes.
    title : str, default "Attention"
        A line above the view.

    Returns
    -------
    View
        Arrays ``attention`` [L, N, S, S], ``rollout`` [L, S, S], ``thumbnails`` [L, N, T, T], ``most`` [L, N, S], the
        largest weight that any token gives each, and, if known, ``value_norms`` [L, N, S]. Without a layer, the page
        opens on the link that stands out most, ``data["telling"]``: a token that gives a word more than any other does.

    Raises
    ------
    InputError
        An array has the wrong shape; a weight is negative or not finite, or a row's weights do not add up to 1, to 0.01
        (in torch, weights of a model in training have dropout); or the tokens are not S strings.

    Examples
    --------
    >>> from wordpiece_bert import inspect, tasks
    >>> words = tasks.load("models/words")
    >>> trace = inspect.trace(words, "the capital of france is paris")
    >>> inspect.attention(trace).kind
    'attention'
    """
    given: Any = traced(source, text, pair)
    factors, truncated, model = {}, False, ""
    texts: tuple[str, ...] = ()
    words: Sequence[int | None] | None = None
    if isinstance(given, Trace):
        truncated, texts, words, model = given.truncated, given.texts, given.word_ids, called(given.model)
        tokens, sentence_ids, value_norms = given.tokens, given.sentence_ids, given.value_norms
        if given.position_bias is None:
            factors["attention"] = (given.queries, given.keys)
        given = given.attentions
    weights = checked_weights(given)
    norms = None if value_norms is None else as_finite("value_norms", value_norms, (3,))
    names = checked_tokens(tokens, weights.shape[-1])
    if norms is not None and norms.shape != weights.shape[:3]:
        raise InputError(f"value_norms must have the shape {list(weights.shape[:3])}, not {list(norms.shape)}")
    if norms is not None and norms.min() < 0:
        index = np.argwhere(norms < 0)[0].tolist()
        raise InputError(f"value_norms{index} is {norms[tuple(index)]}: a norm is not negative")
    arrays = {"attention": weights, "rollout": rollout(weights), "thumbnails": _thumbnails(weights)}
    arrays["most"] = weights.max(axis=2)
    encodings: dict[str, Encoding] = {
        "attention": "rows",
        "rollout": "rows",
        "thumbnails": "coarse" if weights.shape[-1] > THUMBNAIL else "rows",
        "most": "rows",
    }
    if norms is not None:
        arrays["value_norms"] = norms
        encodings["value_norms"] = "half"
    focus = None
    if layer is not None:
        focus = {
            "layer": _index("layer", layer, weights.shape[0]),
            "head": _index("head", head, weights.shape[1]),
            "token": None if token is None else _index("token", token, weights.shape[2]),
        }
    sides = checked_sentences(names, sentence_ids)
    data = {"tokens": names, "sentences": sides, "focus": focus, "truncated": truncated}
    data["telling"] = telling_link(weights, names, sides, words) if focus is None else None
    data |= {"about": about(*texts or [" ".join(names)]), "model": model}
    return View("attention", title, data, arrays, encodings, factors)


def rollout(attentions: npt.ArrayLike) -> Array:
    """Return the attention rollout: how much of each input token reaches each position, layer by layer.

    Abnar and Zuidema (2020), "Quantifying Attention Flow in Transformers": heads are averaged, the residual connection
    counts as attention of each position to itself with weight ½, and the matrices of the layers are multiplied.

    Parameters
    ----------
    attentions : array_like
        The weights after the softmax, [L, N, S, S].

    Returns
    -------
    array
        float32 [L, S, S]: after each layer, position by input token. Each row sums to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert import inspect
    >>> weights = np.full((2, 1, 3, 3), 1 / 3)  # two layers, one head, three tokens
    >>> inspect.rollout(weights).shape
    (2, 3, 3)
    """
    weights = checked_weights(attentions)
    length = weights.shape[-1]
    product = np.eye(length, dtype=np.float32)
    layers = []
    for layer in weights:
        step = 0.5 * layer.mean(axis=0) + 0.5 * np.eye(length, dtype=np.float32)  # [S, S]
        step /= step.sum(axis=-1, keepdims=True)
        product = step @ product
        layers.append(product)
    return np.stack(layers).astype(np.float32, copy=False)


def neurons(
    source: Trace | AnySource | None = None,
    tokens: Sequence[str] | None = None,
    *,
    queries: npt.ArrayLike | None = None,
    keys: npt.ArrayLike | None = None,
    layers: Sequence[int] | None = None,
    layer: int = 0,
    head: int = 0,
    query: int = 0,
    key: int = 0,
    text: str | None = None,
    pair: str | None = None,
    title: str = "Queries and keys",
) -> View:
    """Show how a weight comes about: query, key, their elementwise product, the score and the softmax.

    Parameters
    ----------
    source : Trace or model, optional
        What `trace` returns, or with ``text`` a model; or None, and the next three arguments.
    tokens : sequence of str, optional
        S tokens.
    queries, keys : array_like, optional
        The vectors of each head, [L, N, S, d].
    layers : sequence of int, optional
        The indices of the layers to show; by default all.
    layer, head, query, key : int, default 0
        What is selected at first: the indices of a layer, a head and a pair of tokens.
    text, pair : str, optional
        For a model: the text whose queries and keys are shown, or two texts, which are a pair.
    title : str, default "Queries and keys"
        A line above the view.

    Returns
    -------
    View
        Arrays ``queries`` and ``keys``, [layers, N, S, d], and ``bias`` [layers, N, S, S] for a model whose scores are
        more than q·k/√d (the relative positions of MPNet, Jina-BERT and DeBERTa, the windows of ModernBERT).

    Raises
    ------
    InputError
        Queries and keys differ in shape, or the selected layer is not shown.

    Examples
    --------
    >>> from wordpiece_bert import inspect, tasks
    >>> words = tasks.load("models/words")
    >>> trace = inspect.trace(words, "the capital of france is paris")
    >>> inspect.neurons(trace).arrays["queries"].shape
    (1, 1, 8, 67)
    """
    given: Any = traced(source, text, pair)
    bias = None
    if given is not None:
        check_instance("source", given, Trace, "a model, or what trace returns")
        queries, keys, tokens, bias = given.queries, given.keys, given.tokens, given.position_bias
    q, k = as_finite("queries", queries, (4,)), as_finite("keys", keys, (4,))
    if q.shape != k.shape:
        raise InputError(f"queries and keys must have one shape, not {list(q.shape)} and {list(k.shape)}")
    names = checked_tokens(tokens, q.shape[2])
    check_several("layers", layers, or_none=True)
    chosen = list(range(len(q))) if layers is None else [_index("layers", one, len(q)) for one in layers]
    layer = _index("layer", layer, len(q))
    if layer not in chosen:
        raise InputError(f"layer {layer} is not among the layers to show, {chosen}")
    first = {
        "layer": chosen.index(layer),
        "head": _index("head", head, q.shape[1]),
        "query": _index("query", query, q.shape[2]),
        "key": _index("key", key, q.shape[2]),
    }
    q, k = q[chosen], k[chosen]
    arrays = {"queries": q, "keys": k}
    encodings: dict[str, Encoding] = dict.fromkeys(("queries", "keys"), encoding_of_vectors(len(names)))
    if bias is not None:
        arrays["bias"] = bias[chosen]
        encodings["bias"] = "half"
    truncated, texts = (False, ()) if given is None else (given.truncated, given.texts)
    data = {"tokens": names, "layers": chosen, "first": first, "truncated": truncated}
    data |= {"about": about(*texts or [" ".join(names)]), "model": "" if given is None else called(given.model)}
    return View("neurons", title, data, arrays, encodings, dict.fromkeys(("queries", "keys"), (q, k)))


def checked_weights(value: npt.ArrayLike | None) -> Array:
    """Return attention weights as float32 [L, N, S, S].

    Raises
    ------
    InputError
        The shape is none that `attention` accepts, a weight is negative or not finite, or a row's weights do
        not add up to 1.
    """
    weights = as_finite("attentions", value, (4, 5))
    if weights.ndim == 5:
        if weights.shape[1] != 1:
            raise InputError(
                f"attentions have {weights.shape[1]} rows: pass those of one text, [a[i] for a in attentions]"
            )
        weights = weights[:, 0]
    if 0 in weights.shape or weights.shape[2] != weights.shape[3]:
        raise InputError(f"attentions must be [layers, heads, tokens, tokens], not {list(weights.shape)}")
    if weights.min() < 0:
        index = np.argwhere(weights < 0)[0].tolist()
        raise InputError(f"attentions{index} is {weights[tuple(index)]}: pass the weights after the softmax")
    sums = weights.sum(axis=-1)  # [L, N, S]
    wrong = np.abs(sums - 1) > SUM_TOLERANCE
    if wrong.any():
        index = np.argwhere(wrong)[0].tolist()
        raise InputError(
            f"attentions{index} adds up to {sums[tuple(index)]:.4g}, not 1: pass the weights after the softmax, those "
            "of all keys, of a model without dropout"
        )
    return weights


def checked_tokens(tokens: Sequence[str] | None, count: int) -> list[str]:
    """Return the tokens as a list.

    Raises
    ------
    InputError
        They are not `count` strings.
    """
    check_several("tokens", tokens, or_none=True)
    names = [] if tokens is None else list(tokens)
    if len(names) != count or not all(isinstance(token, str) for token in names):
        raise InputError(f"tokens must be {count} strings, one for each position, not {len(names)}: {names[:4]!r}")
    return names


def _index(name: str, value: int, count: int) -> int:
    """Return an index as one from 0; negative ones count from the end."""
    return whole_number(name, value, -count, count - 1) % count


def checked_sentences(tokens: list[str], ids: Sequence[int | None] | None) -> list[int]:
    """Return 0 or 1 for each token of a text, −1 for special tokens.

    Raises
    ------
    InputError
        They are not one for each token.
    """
    if ids is None:
        special = [
            (t.startswith("[") and t.endswith("]") and t[1:-1].isupper()) or t in {"<s>", "</s>"} for t in tokens
        ]
        return [-1 if one else 0 for one in special]
    listed: list[Any] = list(ids)
    if len(listed) != len(tokens) or not all(one is None or one in (-1, 0, 1) for one in listed):
        raise InputError(f"sentence_ids must be {len(tokens)} values, each 0, 1 or None, not {listed[:6]!r}")
    return [-1 if one is None else int(one) for one in listed]


def _thumbnails(weights: Array) -> Array:
    """Reduce [L, N, S, S] to [L, N, T, T] by the maximum of each block; as they are if S ≤ T."""
    length = weights.shape[-1]
    if length <= THUMBNAIL:
        return weights
    starts = np.arange(THUMBNAIL) * length // THUMBNAIL
    return np.maximum.reduceat(np.maximum.reduceat(weights, starts, axis=-1), starts, axis=-2)
