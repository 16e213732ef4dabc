"""What a folder of vectors has already, compared with the documents as they are now."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow
from wordpiece_bert.vectors.layout import CHUNK, HASH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.vectors.documents import Documents
    from wordpiece_bert.vectors.layout import Layout
    from wordpiece_bert.vectors.part_files import MappedPart

__all__ = ["Comparison", "compare", "text_hashes"]

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def text_hashes(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Return the SHA-256 of texts in UTF-8, [n, 32]."""
    digests = b"".join(sha256(text.encode()).digest() for text in texts)
    return np.frombuffer(digests, np.uint8).reshape(len(texts), 32)


@dataclass(frozen=True)
class Comparison:
    """What is to be done with each document and each row of the parts."""

    #: The documents to embed, [documents].
    embed: Flags
    #: For each part the rows that stay as they are, [rows].
    stays: list[Flags]
    #: For each part the rows whose text stays and whose fields do not, [rows], and the document of each of them.
    refreshed: list[Flags]
    sources: list[Rows]
    #: The ids and kept fields of the documents, without their texts.
    fields: Any
    #: How many documents are new, have another text, only other fields, or none of these; and how many of the folder
    #: are not among the documents.
    new: int
    changed: int
    other_fields: int
    unchanged: int
    gone: int


def compare(
    documents: Documents, layout: Layout, parts: Sequence[MappedPart], finished: Sequence[bool], *, prune: bool
) -> Comparison:
    """Compare documents with the rows of parts.

    Parameters
    ----------
    documents : Documents
        The documents as they are now.
    layout : Layout
        What the parts are.
    parts : sequence of MappedPart
        The parts, in the order in which they were written: of rows with equal ids the last one counts.
    finished : sequence of bool
        Whether each part is listed in the folder; rows of others count only if they belong to a document.
    prune : bool
        Whether rows whose id is not among the documents go.

    Raises
    ------
    InputError
        Two documents have the same id, or the types of columns differ from the types in the parts.
    """
    pyarrow = import_pyarrow("comparing documents")
    fields, hashes = _read(pyarrow, documents)
    ids = fields.column(layout.id_column).combine_chunks()
    _check_unique(pyarrow, ids, layout.id_column)
    compared = [name for name in layout.keep if name != layout.text_column]
    columns = [layout.id_column, *compared, HASH, *([CHUNK] if layout.chunks else [])]
    for part in parts:
        for field in documents.schema:
            if part.schema.field(field.name).type != field.type:
                raise InputError(
                    f"the column {field.name!r} is {field.type}, but {part.schema.field(field.name).type} in the folder"
                )
    tables = [part.table(columns) for part in parts]
    sizes = [part.rows for part in parts]
    if not sum(sizes):
        none = [np.zeros(size, np.bool_) for size in sizes]
        empty = [np.zeros(0, np.int64) for _ in sizes]
        embed = np.ones(len(ids), np.bool_)
        return Comparison(embed, none, none, empty, fields, len(ids), 0, 0, 0, 0)
    known = pyarrow.concat_tables(tables)
    # The first row of each document, and the document of each row.
    is_first = known.column(CHUNK).to_numpy() == 0 if layout.chunks else np.ones(len(known), np.bool_)
    firsts = np.flatnonzero(is_first)
    document_of = np.cumsum(is_first) - 1
    known = known.take(pyarrow.array(firsts)) if layout.chunks else known
    known_ids = known.column(layout.id_column).combine_chunks()
    last = _last_of_equal(pyarrow, known_ids)
    alive = np.flatnonzero(last)
    listed = np.repeat(np.asarray(finished, np.bool_), sizes)[firsts]

    at = _positions(pyarrow, ids, known_ids.take(pyarrow.array(alive)))
    found = np.flatnonzero(at >= 0)  # documents
    row = alive[at[found]]  # their documents in the parts
    same_text = (_bytes_of(known.column(HASH))[row] == hashes[found]).all(axis=1)
    same = same_text.copy()
    for name in compared:
        before = known.column(name).combine_chunks().take(pyarrow.array(row))
        same &= _equal(pyarrow, before, fields.column(name).combine_chunks().take(pyarrow.array(found)))

    source = np.full(len(firsts), -1, np.int64)
    source[row] = found
    gone = listed & (_positions(pyarrow, known_ids, ids) < 0)
    stays = np.zeros(len(firsts), np.bool_)
    stays[row[same]] = True
    if not prune:
        stays |= gone
    refreshed = np.zeros(len(firsts), np.bool_)
    refreshed[row[same_text & ~same]] = True
    embed = np.ones(len(ids), np.bool_)
    embed[found[same_text]] = False
    bounds = np.cumsum([0, *sizes])
    rows = [slice(int(start), int(end)) for start, end in itertools.pairwise(bounds)]
    refreshed_rows = [refreshed[document_of[some]] for some in rows]
    return Comparison(
        embed,
        [stays[document_of[some]] for some in rows],
        refreshed_rows,
        [source[document_of[some]][flags] for some, flags in zip(rows, refreshed_rows, strict=True)],
        fields,
        new=len(ids) - len(found),
        changed=int((~same_text).sum()),
        other_fields=int((same_text & ~same).sum()),
        unchanged=int(same.sum()),
        gone=int(gone.sum()),
    )


def _read(pyarrow: Any, documents: Documents) -> tuple[Any, npt.NDArray[np.uint8]]:
    """Return the ids and kept fields of all documents, without texts, and the hashes of their texts."""
    tables, hashes = [], [np.zeros((0, 32), np.uint8)]
    for table in documents.tables(texts=True):
        hashes.append(text_hashes(table.column("").to_pylist()))
        tables.append(table.drop_columns(["", *({documents.text_column} & {*table.column_names})]))
    names = [name for name in documents.schema.names if name != documents.text_column]
    schema = pyarrow.schema([documents.schema.field(name) for name in names])
    return pyarrow.concat_tables([schema.empty_table(), *tables]), np.concatenate(hashes)


def _check_unique(pyarrow: Any, ids: Any, column: str) -> None:
    """Raise an `InputError` that names an id which two documents have."""
    first = ~_last_of_equal(pyarrow, ids)
    if first.any():
        row = int(np.argmax(first))
        raise InputError(f"two documents have the same {column}, {ids[row].as_py()!r}: ids must be different")


def _last_of_equal(pyarrow: Any, values: Any) -> Flags:
    """Return which values have no equal one after them."""
    codes = values.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    last = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
    last[codes] = np.arange(len(codes))  # of equal indices the last assignment counts
    return np.asarray(last[codes] == np.arange(len(codes)))


def _positions(pyarrow: Any, values: Any, among: Any) -> Rows:
    """Return the position of each value among others, −1 where it is not one of them."""
    import pyarrow.compute as compute

    found = compute.index_in(values, value_set=among)
    return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def _bytes_of(column: Any) -> npt.NDArray[np.uint8]:
    """Return a column of SHA-256 as an array [n, 32]."""
    chunks = [np.frombuffer(chunk.buffers()[1], np.uint8)[chunk.offset * 32 :][: len(chunk) * 32]
              for chunk in column.chunks if len(chunk)]  # fmt: skip
    return np.concatenate([np.zeros(0, np.uint8), *chunks]).reshape(-1, 32)


def _equal(pyarrow: Any, before: Any, now: Any) -> Flags:
    """Return where two columns are equal; nulls and NaN are equal to each other."""
    import pyarrow.compute as compute

    try:
        equal = compute.equal(before, now).fill_null(False)
        is_float = pyarrow.types.is_floating(now.type)
        both = compute.and_(*(compute.is_null(column, nan_is_null=is_float) for column in (before, now)))
        return np.asarray(compute.or_(equal, both).to_numpy(zero_copy_only=False))
    except pyarrow.ArrowNotImplementedError:  # lists and structures
        return np.array([a == b for a, b in zip(before.to_pylist(), now.to_pylist(), strict=True)], np.bool_)
