"""How results show themselves in a notebook: tables in plain HTML, without scripts.

Notebooks call ``_repr_html_``. Every text is escaped, and only the beginning of a long result or text is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import numpy.typing as npt


#: What is shown of tokens, rows of a batch, ids of a row, numbers of a vector, results, columns of a result, and
#: characters of a cell.
TOKENS = 100
ROWS = 10
IDS = 24
NUMBERS = 8
RECORDS = 50
COLUMNS = 16
CHARACTERS = 200


def table_html(caption: str, heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table; every cell is escaped and of bounded length."""
    head = "".join(f"<th>{_cell(one)}</th>" for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<p>{_cell(caption)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def encoding_html(encoding: Any) -> str:
    """Return the tokens of an `Encoding` as a table: position, token, id, characters, word, text, segment, mask."""
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
        for position, (token, number, (start, end), word, text, segment, mask) in enumerate(islice(columns, TOKENS))
    ]
    caption = f"Encoding of {len(encoding)} tokens" + f", cut from {encoding.n_tokens}" * encoding.truncated
    caption += f"; the first {TOKENS}" * (len(encoding) > TOKENS)
    heads = ("position", "token", "id", "characters", "word", "text", "segment", "mask")
    return table_html(caption, heads, rows)


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
    rows = [(name, _shape(value), getattr(value, "dtype", ""), _beginning(value)) for name, value in data.items()]
    return table_html(caption, ("name", "shape", "dtype", "begins with"), islice(rows, RECORDS))


def vectors_html(
    caption: str, tokens: Sequence[str], offsets: Sequence[tuple[int, int]], vectors: npt.NDArray[Any]
) -> str:
    """Return the vectors of tokens as a table: position, token, characters, the beginning of the vector."""
    rows = [
        (position, token, f"{start}–{end}" if end else "–", _listed(vector[: NUMBERS + 1].tolist(), NUMBERS))
        for position, (token, (start, end), vector) in enumerate(zip(tokens, offsets, vectors[:TOKENS], strict=False))
    ]
    caption += f"; the first {TOKENS}" * (len(tokens) > TOKENS)
    return table_html(caption, ("position", "token", "characters", "begins with"), rows)


def arrays_text(data: Mapping[str, Any]) -> str:
    """Return arrays by name as text, without their contents: ``logits float32 [2, 5]``."""
    return ", ".join(f"{name} {_shape_text(value)}" for name, value in data.items() if value is not None)


def fields_html(caption: str, fields: Mapping[str, object]) -> str:
    """Return values by name as a table of two columns."""
    return table_html(
        caption, ("", "value"), islice(((name, _value(value)) for name, value in fields.items()), RECORDS)
    )


def records_html(caption: str, records: Sequence[Any]) -> str:
    """Return dicts, or lists of equal length, as a table with a row for each; lists of these one after the other.

    Parameters
    ----------
    caption : str
        What they are.
    records : sequence
        Dicts, sequences of scalars, or sequences of dicts, whose index then is the first column.
    """
    nested = any(isinstance(record, list) and record and not _is_scalar(record[0]) for record in records[:RECORDS])
    found = islice(_flat(records), RECORDS + 1) if nested else islice(((None, one) for one in records), RECORDS + 1)
    rows = [(index, one if isinstance(one, Mapping) else dict(enumerate(_as_list(one)))) for index, one in found]
    more = len(rows) > RECORDS
    rows = rows[:RECORDS]
    heads = list(dict.fromkeys(name for _, row in rows for name in row))[:COLUMNS]
    named = any(isinstance(name, str) for name in heads)
    head = [*(["of"] if nested else []), *(str(name) if named else "" for name in heads)]
    body = [[*([index] if nested else []), *(_value(row.get(name, "")) for name in heads)] for index, row in rows]
    return table_html(caption + f"; the first {RECORDS}" * more, head, body)


def _flat(records: Iterable[Any]) -> Iterable[tuple[object, Any]]:
    """Iterate over the dicts in nested lists, each with its path of indices."""
    for index, record in enumerate(records):
        if isinstance(record, list) and not (record and _is_scalar(record[0])):
            yield from ((index if path is None else f"{index}.{path}", one) for path, one in _flat_or_one(record))
        else:
            yield index, record


def _flat_or_one(records: list[Any]) -> Iterable[tuple[object, Any]]:
    if any(isinstance(record, list) for record in records):
        return _flat(records)
    return ((None, record) for record in records)


def _is_scalar(value: object) -> bool:
    return not isinstance(value, list | tuple | Mapping)


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _value(value: object) -> object:
    """Return a value as a reader wants it: numbers with few digits, texts as they are, a few items of a list."""
    if isinstance(value, bool | str) or value is None:
        return "–" if value is None else value
    if isinstance(value, float) or type(value).__name__.startswith("float"):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return _listed([f"{name}: {one}" for name, one in islice(value.items(), IDS + 1)])
    if isinstance(value, list | tuple):
        return _listed(list(value[: IDS + 1]))
    return _beginning(value) if hasattr(value, "shape") else value


def _cell(value: object) -> str:
    text = str(value)
    import html  # where a notebook asks for it: the module lists 2,231 names of characters

    return html.escape(text if len(text) <= CHARACTERS else text[: CHARACTERS - 2] + " …")


def _dash(value: int | None) -> object:
    return "–" if value is None else value


def _shape(value: object) -> str:
    shape = getattr(value, "shape", None)
    if shape is None:
        return "list" if isinstance(value, list) else type(value).__name__
    return " × ".join(map(str, shape)) or "scalar"


def _shape_text(value: object) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} × {_shape_text(value[0])}" if value else "none"
    shape = getattr(value, "shape", None)
    if not shape:  # a number
        return f"{value:.4g}" if isinstance(value, float) or shape is not None else str(value)
    return f"{getattr(value, 'dtype', '')} {list(shape)}".strip()


def _beginning(value: Any) -> str:
    """Return the first numbers of an array, of a tensor of another library, or of a list."""
    if isinstance(value, tuple) and value:
        return f"{len(value)} of these: {_shape(value[0])}"
    first = value
    while len(getattr(first, "shape", ())) > 1 and len(first):
        first = first[0]
    while isinstance(first, list) and first and isinstance(first[0], list):
        first = first[0]
    if getattr(first, "shape", None) == () or not (isinstance(first, list) or hasattr(first, "shape")):
        return str(first)
    begin = first[: IDS + 1]
    return _listed(begin.tolist() if hasattr(begin, "tolist") else list(begin))


def _listed(values: list[Any], most: int = IDS) -> str:
    shown = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in values[:most])
    return " ".join(shown) + " …" * (len(values) > most)
