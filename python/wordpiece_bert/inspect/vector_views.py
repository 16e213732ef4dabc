"""Vectors: similarities as heat maps, position embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert.bert.base_model import Model
from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.attention import checked_tokens
from wordpiece_bert.inspect.pack import as_finite
from wordpiece_bert.inspect.sources import is_source, resolve
from wordpiece_bert.inspect.trace import both_traced, encoder_of, name_of_file, stored_weight
from wordpiece_bert.inspect.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.inspect.pack import Encoding
    from wordpiece_bert.inspect.sources import AnySource
    from wordpiece_bert.inspect.trace import Trace


def similarity(
    vectors: npt.ArrayLike,
    labels: Sequence[str],
    others: npt.ArrayLike | None = None,
    other_labels: Sequence[str] | None = None,
    *,
    title: str = "Similarity",
) -> View:
    """Show the cosine similarities of vectors as a heat map with values.

    Parameters
    ----------
    vectors : array_like
        One vector for each text, [A, H].
    labels : sequence of str
        A texts.
    others, other_labels : array_like and sequence of str, optional
        The vectors [B, H] and texts of the columns; by default the rows'.
    title : str, default "Similarity"
        A line above the view.

    Returns
    -------
    View
        The array ``similarity``, [A, B]; a vector of zeros has the similarity 0 to all.

    Raises
    ------
    InputError
        The vectors differ in width, or there are more or fewer labels than vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert import inspect
    >>> view = inspect.similarity(np.eye(2), ["a", "b"])
    >>> view.arrays["similarity"]
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    a = as_finite("vectors", vectors, (2,))
    b = a if others is None else as_finite("others", others, (2,))
    rows = checked_tokens(labels, len(a))
    columns = rows if others is None else checked_tokens(other_labels, len(b))
    if a.shape[1] != b.shape[1]:
        raise InputError(f"vectors and others must have the same width, not {a.shape[1]} and {b.shape[1]}")
    values = _cosines(a, b)
    return View("similarity", title, {"rows": rows, "columns": columns}, {"similarity": values}, {"similarity": "unit"})


def token_similarity(
    a: Trace | AnySource,
    b: Trace | AnySource,
    *,
    layer: int = -1,
    text: str | None = None,
    other: str | None = None,
    title: str = "Token similarity",
) -> View:
    """Show the cosine similarities of the tokens of one text to the tokens of another.

    Parameters
    ----------
    a, b : Trace or model
        What `trace` returns for the two texts, or with ``text`` models in any form that it takes.
    layer : int, optional
        The index of the layer whose vectors are compared, 0 for the embeddings; by default the last.
    text, other : str, optional
        For models: the text of the first, and of the second, if it is another.
    title : str, default "Token similarity"
        A line above the view.

    Returns
    -------
    View
        The array ``similarity``, tokens of `a` by tokens of `b`.

    Raises
    ------
    InputError
        There is no such layer.

    Examples
    --------
    >>> from wordpiece_bert import inspect, tasks
    >>> words = tasks.load("models/words")
    >>> trace = inspect.trace(words, "the capital of france is paris")
    >>> other = inspect.trace(words, "a city in poland")
    >>> inspect.token_similarity(trace, other).arrays["similarity"].shape
    (8, 6)
    """
    a, b = both_traced("token_similarity", a, b, (text, None), (other, None))
    states = min(len(a.hidden_states), len(b.hidden_states))
    layer = whole_number("layer", layer, -states, states - 1)
    return similarity(a.hidden_states[layer], a.tokens, b.hidden_states[layer], b.tokens, title=title)


def positions(source: Model | AnySource | npt.ArrayLike, *, most: int = 512, title: str = "Positions") -> View:
    """Show position embeddings as the literature plots them: their values and cosine similarities, beside sinusoids.

    Wang and Chen (2020), "What Do Position Embeddings Learn?"; the sinusoids are as in Vaswani et al. (2017),
    section 3.5.

    Parameters
    ----------
    source : Model, Loaded, str, PathLike, SentenceEncoder, CrossEncoder or array_like
        A model with learned position embeddings, or a table [P, H].
    most : int, default 512
        How many positions to show.
    title : str, default "Positions"
        A line above the view.

    Returns
    -------
    View
        Arrays ``learned`` and ``sinusoid``, the cosine similarities of positions, [P, P], and ``table`` and ``waves``,
        the values, [P, H']. At most 64 columns of the tables are shown.

    Raises
    ------
    InputError
        The table is empty, or the model has none because it rotates queries and keys.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert import inspect
    >>> view = inspect.positions(np.eye(3))
    >>> view.arrays["learned"].shape
    (3, 3)
    """
    given: Any = resolve(source).model if is_source(source) else source
    model = name_of_file(given.source) if isinstance(given, Model) else ""
    if isinstance(given, Model):
        encoder = encoder_of(given)
        if not encoder.config.has_position_table:
            raise InputError(f"{type(given).__name__} has no table of positions: it rotates queries and keys instead")
        table = stored_weight(encoder, "embeddings.position_embeddings.weight")
    else:
        table = as_finite("positions", given, (2,))
    if 0 in table.shape:
        raise InputError(f"the table of positions is empty: {list(table.shape)}")
    table = table[: whole_number("most", most, 1)]
    waves = sinusoids(*table.shape)
    columns = np.unique(np.linspace(0, table.shape[1] - 1, min(64, table.shape[1])).astype(int))
    scale = float(np.quantile(np.abs(table), 0.995)) or 1.0  # a few numbers are far larger than the others
    arrays = {
        "learned": _cosines(table, table),
        "sinusoid": _cosines(waves, waves),
        "table": table[:, columns],
        "waves": waves[:, columns],
    }
    data = {"count": len(table), "width": table.shape[1], "columns": columns.tolist(), "scale": scale, "model": model}
    computed: dict[str, Encoding] = {"sinusoid": "computed", "waves": "computed"}
    encodings: dict[str, Encoding] = {"learned": "cosines", "table": "coded", **computed}
    return View("positions", title, data, arrays, encodings)


def sinusoids(count: int, width: int) -> Array:
    """Return the sinusoidal positions of Vaswani et al. (2017): sin(p/10000^(2i/H)) and cos, alternating, [P, H].

    Parameters
    ----------
    count : int
        The number of positions, P.
    width : int
        The width of a vector, H.

    Returns
    -------
    ndarray of float32
        The values, [P, H].

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert import inspect
    >>> inspect.sinusoids(2, 4).round(3)
    array([[0.   , 1.   , 0.   , 1.   ],
           [0.841, 0.54 , 0.01 , 1.   ]], dtype=float32)
    """
    count, width = whole_number("count", count, 0), whole_number("width", width, 0)
    rates = 10000.0 ** (-2 * (np.arange(width) // 2) / width)  # [H]
    angles = np.arange(count)[:, None] * rates  # [P, H]
    return np.where(np.arange(width) % 2 == 0, np.sin(angles), np.cos(angles)).astype(np.float32)


def _cosines(a: Array, b: Array) -> Array:
    values: Array = np.clip(normalize(a) @ normalize(b).T, -1, 1)
    return values
