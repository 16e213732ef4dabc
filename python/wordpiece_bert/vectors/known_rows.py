"""What a folder of vectors has already, compared with the documents as they are now."""

from __future__ import annotations

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

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def text_hashes(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Return the SHA-256 of texts in UTF-8, [n, 32]."""
    digests = b"".join(sha256(text.encode()).digest() for text in texts)
    return np.frombuffer(digests, np.uint8).reshape(len(texts), 32)


@dataclass(frozen=True)
class Known:
    """A part with rows that are known."""

    part: MappedPart
    #: Whether the folder's list has it; rows of others count only if they belong to a document.
    is_listed: bool
    #: Whether its last document surely ends in it.
    ends: bool
    #: The numbers of its rows that were replaced or deleted.
    replaced: Rows


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
    #: For each part whether its first row goes on with the chunks of a document of the part before.
    goes_on: list[bool]
    #: The ids and kept fields of the documents, without their texts.
    fields: Any
    #: How many documents are new, have another text, only other fields, or none of these; and how many of the folder
    #: are not among the documents.
    new: int
    changed: int
    other_fields: int
    unchanged: int
    gone: int


def compare(documents: Documents, layout: Layout, parts: Sequence[Known], *, prune: bool) -> Comparison:
    """Compare documents with the rows of parts, of which one at a time is in memory.

    Parameters
    ----------
    documents : Documents
        The documents as they are now.
    layout : Layout
        What the parts are.
    parts : sequence of Known
        The parts, in the order in which they were written: of rows with equal ids the last one counts.
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
    for known in parts:
        for field in documents.schema:
            kind = known.part.schema.field(field.name).type
            if kind != field.type:
                raise InputError(f"the column {field.name!r} is {field.type}, but {kind} in the folder")
    # Of each document its first row; of each row its document in the parts, counted through all parts.
    documents_of = [_documents_of(known.part, layout) for known in parts]
    firsts, owners = [first for first, _ in documents_of], [owner for _, owner in documents_of]
    source = _Growing(np.int64)  # of each document in the parts the one now, −1 for none
    listed = _Growing(np.bool_)  # whether it is listed and not among those now
    at = np.full(len(ids), -1, np.int64)  # of each document now the one in the parts
    for known, first, owner, is_cut in zip(parts, firsts, owners, _cut(parts, firsts), strict=True):
        counted = np.ones(known.part.rows, np.bool_)
        counted[known.replaced] = False
        counted[first[-1:]] &= not is_cut
        own = known.part.table([layout.id_column]).column(0).combine_chunks().take(pyarrow.array(first))
        position = _positions(pyarrow, own, ids)
        position[~counted[first]] = -1
        matched = np.flatnonzero(position >= 0)
        at[position[matched]] = matched + source.count
        owner += source.count
        listed.append(counted[first] & (position < 0) & known.is_listed)
        source.append(position)
    found = np.flatnonzero(at >= 0)
    same_text, same = _equal_rows(pyarrow, parts, firsts, at[found], fields.take(pyarrow.array(found)), hashes[found])
    stays = np.zeros(source.count, np.bool_) if prune else listed.array.copy()
    stays[at[found[same]]] = True
    refreshed = np.zeros(source.count, np.bool_)
    refreshed[at[found[same_text & ~same]]] = True
    embed = np.ones(len(ids), np.bool_)
    embed[found[same_text]] = False
    flags: list[tuple[Flags, Flags]] = []
    for known, owner in zip(parts, owners, strict=True):
        counted = owner >= 0
        counted[known.replaced] = False
        flags.append((stays[owner] & counted, refreshed[owner] & counted) if source.count else (counted, counted))
    return Comparison(
        embed,
        [one for one, _ in flags],
        [one for _, one in flags],
        [source.array[owner][some] for owner, (_, some) in zip(owners, flags, strict=True)],
        [bool(len(owner)) and (not len(first) or first[0] > 0) for owner, first in zip(owners, firsts, strict=True)],
        fields,
        new=len(ids) - len(found),
        changed=int((~same_text).sum()),
        other_fields=int((same_text & ~same).sum()),
        unchanged=int(same.sum()),
        gone=int(listed.array.sum()),
    )


class _Growing:
    """An array that is made of pieces."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._pieces: list[npt.NDArray[Any]] = [np.zeros(0, dtype)]
        self.count = 0

    def append(self, piece: npt.NDArray[Any]) -> None:
        """Add a piece at the end."""
        self._pieces.append(piece)
        self.count += len(piece)

    @property
    def array(self) -> npt.NDArray[Any]:
        """The pieces as one array."""
        if len(self._pieces) > 1:
            self._pieces = [np.concatenate(self._pieces)]
        return self._pieces[0]


def _documents_of(part: MappedPart, layout: Layout) -> tuple[Rows, Rows]:
    """Return the first row of each document of a part, and the document of each row; −1 if it began before the part."""
    if not layout.chunks:
        return np.arange(part.rows), np.arange(part.rows)
    is_first = part.table([CHUNK]).column(0).to_numpy() == 0
    return np.flatnonzero(is_first), np.cumsum(is_first) - 1


def _cut(parts: Sequence[Known], firsts: list[Rows]) -> list[bool]:
    """Return for each part whether an interrupted run may have written only the beginning of its last document."""
    found: list[bool] = []
    following: bool | None = None  # of the document that goes on in the part after; None if none does
    for known, first in zip(reversed(parts), reversed(firsts), strict=True):
        found.append(not known.ends if following is None else following)
        following = (None if first[0] == 0 else False) if len(first) else found[-1]
    return found[::-1]


def _equal_rows(
    pyarrow: Any, parts: Sequence[Known], firsts: list[Rows], rows: Rows, fields: Any, hashes: npt.NDArray[np.uint8]
) -> tuple[Flags, Flags]:
    """Compare documents with their first rows in the parts: whether the texts are the same, and everything.

    Only the row groups that have such rows are read.
    """
    same_text, same = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    compared = list(fields.column_names[1:])
    bounds = np.cumsum([0, *map(len, firsts)])
    for number, known in enumerate(parts):
        own = np.flatnonzero((rows >= bounds[number]) & (rows < bounds[number + 1]))
        if not len(own):
            continue
        first = firsts[number][rows[own] - bounds[number]]
        groups = np.searchsorted(known.part.starts, first, side="right") - 1
        for group in np.unique(groups).tolist():
            some = own[groups == group]
            places = pyarrow.array(first[groups == group] - known.part.starts[group])
            table = known.part.group(group, [HASH, *compared]).take(places)
            equal = (_bytes_of(table.column(HASH)) == hashes[some]).all(axis=1)
            same_text[some] = equal
            now = fields.take(pyarrow.array(some))
            for name in compared:
                columns = (one.column(name).combine_chunks() for one in (table, now))
                equal = equal & _equal(pyarrow, *columns)
            same[some] = equal
    return same_text, same


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
