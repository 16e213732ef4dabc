"""How encodings and batches show themselves in a notebook: tables in plain HTML, without scripts.

Notebooks call ``_repr_html_``. Every text is escaped, and only the beginning of a long result is shown.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert._core import Encoding

__all__ = ["arrays_html", "encoding_html", "rows_html", "table_html"]

#: Tokens, rows of a batch, and ids of a row that are shown.
TOKENS = 100
ROWS = 10
IDS = 24


def table_html(caption: str, heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table; every cell is escaped."""
    head = "".join(f"<th>{html.escape(one)}</th>" for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<p>{html.escape(caption)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def encoding_html(encoding: Encoding) -> str:
    """Return the tokens of an encoding as a table: position, token, id, characters, word, text, segment, mask."""
    columns = zip(
        encoding.tokens,
        encoding.ids,
        encoding.offsets,
        encoding.word_ids,
        encoding.sequence_ids,
        encoding.token_type_ids,
        encoding.attention_mask,
        strict=True,
    )
    rows = [
        (position, token, number, "–" if text is None else f"{start}–{end}", _dash(word), _dash(text), segment, mask)
        for position, (token, number, (start, end), word, text, segment, mask) in enumerate(columns)
    ]
    caption = f"Encoding of {len(encoding)} tokens" + f", cut from {encoding.n_tokens}" * encoding.truncated
    caption += f"; the first {TOKENS}" * (len(rows) > TOKENS)
    heads = ("position", "token", "id", "characters", "word", "text", "segment", "mask")
    return table_html(caption, heads, rows[:TOKENS])


def rows_html(caption: str, ids: npt.NDArray[Any], row_offsets: npt.NDArray[np.int64]) -> str:
    """Return the first rows of a batch as a table: row, number of tokens, ids."""
    count = len(row_offsets) - 1
    rows = []
    for row in range(min(count, ROWS)):
        start, end = int(row_offsets[row]), int(row_offsets[row + 1])
        rows.append((row, end - start, _listed(ids[start : min(end, start + IDS + 1)].tolist())))
    return table_html(caption + f"; the first {ROWS} rows" * (count > ROWS), ("row", "tokens", "ids"), rows)


def arrays_html(caption: str, data: Mapping[str, Any]) -> str:
    """Return arrays by name as a table: name, shape, dtype, the beginning of the first row."""
    rows = []
    for name, value in data.items():  # arrays, tensors of other libraries, or lists
        shape = getattr(value, "shape", None)
        nested = isinstance(value[0], list) if shape is None and len(value) else shape is not None and len(shape) > 1
        first = value[0] if nested and len(value) else value
        begin = (first.tolist() if hasattr(first, "tolist") else list(first))[: IDS + 1]
        shown = " × ".join(map(str, shape)) if shape is not None else "list"
        rows.append((name, shown, getattr(value, "dtype", ""), _listed(begin)))
    return table_html(caption, ("name", "shape", "dtype", "begins with"), rows)


def _dash(value: int | None) -> object:
    return "–" if value is None else value


def _listed(values: list[Any]) -> str:
    return " ".join(map(str, values[:IDS])) + " …" * (len(values) > IDS)
