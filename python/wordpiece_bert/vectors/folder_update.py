"""Writing a folder of vectors, and bringing one up to date: only the vectors of new and changed texts are computed.

Parts never change. New ones are written into the folder `UNFINISHED`, where they wait. At the end they get their places
in the folder, the list of parts is replaced in one step, and parts that it no longer has are removed. A process that is
killed leaves parts that no list has: the next run finds them by their metadata, and takes their rows as known.
"""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.atomic_file import sync_folder
from wordpiece_bert._internal.file_locks import only_writer
from wordpiece_bert._internal.signals import telling, uninterrupted
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow
from wordpiece_bert.vectors.forms import form_of, ranges_of
from wordpiece_bert.vectors.known_rows import compare, text_hashes
from wordpiece_bert.vectors.layout import (
    CHUNK,
    END,
    HASH,
    LISTING,
    START,
    UNFINISHED,
    Layout,
    Listing,
    Part,
    parse_record,
    part_number,
    read_listing,
    write_listing,
)
from wordpiece_bert.vectors.part_collector import Collector, is_small
from wordpiece_bert.vectors.part_files import MappedPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert.tokenizer.corpus.part_records import PartRecord
    from wordpiece_bert.vectors.documents import Documents
    from wordpiece_bert.vectors.known_rows import Comparison

__all__ = ["Encoded", "UpdatePlan", "write_folder"]

#: The most texts that are encoded at once; for the first ranges of 8-bit numbers exactly so many.
TEXTS = 1 << 10
TEXTS_FOR_RANGES = 1 << 12
# The first time fewer, and twice as many while that takes few seconds: what is lost when the program is interrupted.
_FIRST_TEXTS = 1 << 6
_QUICK_SECONDS = 1.0


@dataclass(frozen=True)
class Encoded:
    """What is made of some texts."""

    #: The vectors as the encoder makes them, in order: one for each text, or for each chunk of each.
    vectors: Any
    #: Which texts were truncated, [texts].
    truncated: npt.NDArray[np.bool_]
    #: The text of each chunk, and where it begins and ends there, [chunks, 3]; None without chunks.
    chunks: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True)
class UpdatePlan:
    """What writing a folder will do, by the ids and texts of the documents.

    Attributes
    ----------
    new, changed : int
        How many documents have an id that the folder does not have, or a text other than there: their vectors are
        computed.
    other_fields : int
        How many have the same text, and other fields that are kept.
    unchanged : int
        How many are as in the folder, or as a run before that was interrupted has left them.
    gone : int
        How many documents of the folder have an id that is not among the documents.
    prune : bool
        Whether these are dropped.

    Examples
    --------
    >>> import pyarrow
    >>> import wordpiece_bert as wb
    >>> table = pyarrow.table({"number": [7, 8], "text": ["bread dough", "a bicycle"]})
    >>> columns = {"text_column": "text", "id_column": "number"}
    >>> plan = wb.write_vectors(table, "texts.vectors", "models/static", **columns).plan
    >>> plan.new, plan.changed, plan.unchanged
    (2, 0, 0)
    """

    new: int
    changed: int
    other_fields: int
    unchanged: int
    gone: int
    prune: bool

    @property
    def to_embed(self) -> int:
        """The number of documents whose vectors are computed."""
        return self.new + self.changed


def write_folder(
    folder: Path,
    documents: Documents,
    layout: Layout,
    embed: Callable[[list[str]], Encoded],
    *,
    update: bool,
    prune: bool,
    planned: Callable[[UpdatePlan], object],
    done: Callable[[int, list[Any]], object],
    part: PartRecord | None = None,
    first_texts: Callable[[], list[str]] | None = None,
) -> Listing:
    """Write the vectors of documents into a folder.

    Parameters
    ----------
    folder : Path
        The folder.
    documents : Documents
        The documents.
    layout : Layout
        What the vectors and columns are.
    embed : callable
        Encodes some texts.
    update, prune : bool
        Whether the folder may have vectors already, and whether those go whose id is not among the documents.
    planned : callable
        Called once with the `UpdatePlan`, before anything is computed.
    done : callable
        Called with the number of documents embedded so far, and the ids of those truncated among the last.
    part : PartRecord, optional
        Which part of which call the folder is.
    first_texts : callable, optional
        Returns the texts from which the ranges of 8-bit numbers come, if these are not the first of `documents`.

    Returns
    -------
    Listing
        What the folder has now.

    Raises
    ------
    InputError
        The folder has vectors and `update` is false, or vectors of something else; another process writes it; two
        documents have one id.
    OSError
        A file cannot be written; then the folder is as it was.
    """
    with only_writer(folder), ExitStack() as stack:
        listing = _listing_before(folder, layout, update=update)
        if listing is not None:
            layout = replace(layout, loading=listing.layout.loading)
        try:
            parts, finished = _parts(folder, listing, layout)
            ranges = _ranges(parts, listing)
            compared = compare(documents, layout, parts, finished, prune=prune)
            counts = {name: getattr(compared, name) for name in UpdatePlan.__dataclass_fields__ if name != "prune"}
            planned(UpdatePlan(**counts, prune=prune))
            if ranges is None and first_texts is not None and compared.embed.any():
                ranges = ranges_of(embed(first_texts()).vectors).tolist()
            (folder / UNFINISHED).mkdir(exist_ok=True)
            run = _Run(folder, documents, layout, ranges, parts, compared)
            stack.callback(run.close)
            with telling(run.keep):
                run.embed(embed, done)
                final = run.rest()
        except BaseException:
            with suppress(OSError):  # it has parts, which the next run takes
                (folder / UNFINISHED).rmdir()
            raise
        return _commit(folder, layout, run.ranges, final, part)


def _listing_before(folder: Path, layout: Layout, *, update: bool) -> Listing | None:
    """Return the list of a folder that is brought up to date; None for a new one."""
    if not (folder / LISTING).exists():
        names = [one.name for one in folder.iterdir()]
        strange = [name for name in names if part_number(name) is None and not name.startswith(".")]
        if strange:
            raise InputError(
                f"{folder}: has files that are not vectors, such as {strange[0]}: choose another folder, or empty it"
            )
        return None
    if not update:
        raise InputError(f"{folder}: has vectors already: bring them up to date with update, or choose another folder")
    listing = read_listing(folder)
    differences = listing.layout.differences(layout)
    if differences:
        raise InputError(
            f"{folder} cannot be brought up to date, because what differs is {'; '.join(differences)}. Use what it was "
            "made with, or write another folder"
        )
    return listing


def _parts(folder: Path, listing: Listing | None, layout: Layout) -> tuple[list[MappedPart], list[bool]]:
    """Return the parts of a folder in the order of their numbers, and which of them are listed.

    Parts of an interrupted run that are of something else are removed.
    """
    listed = {part.file for part in listing.parts} if listing else set()
    ranges = listing.ranges if listing else None
    found: list[tuple[int, MappedPart, bool]] = []
    homes = [folder, *([folder / UNFINISHED] if (folder / UNFINISHED).is_dir() else [])]
    paths = sorted(
        (number, path) for home in homes for path in home.iterdir() if (number := part_number(path.name)) is not None
    )
    for number, path in paths:
        is_listed = path.parent == folder and path.name in listed
        part = MappedPart(path)
        if not is_listed:
            known, own_ranges = _record(part)
            ranges = own_ranges if ranges is None else ranges
            if known is None or known.differences(layout) or own_ranges != ranges:
                path.unlink()
                continue
        found.append((number, part, is_listed))
    if len(listed) != sum(is_listed for *_, is_listed in found):
        missing = sorted(listed - {part.path.name for _, part, is_listed in found if is_listed})
        raise InputError(f"{folder}: the part {missing[0]} is missing: restore it, or make the folder again")
    return [part for _, part, _ in found], [is_listed for *_, is_listed in found]


def _record(part: MappedPart) -> tuple[Layout | None, list[list[float]] | None]:
    if part.record is None:
        return None, None
    try:
        return parse_record(part.record, str(part.path))
    except InputError:
        return None, None


def _ranges(parts: list[MappedPart], listing: Listing | None) -> list[list[float]] | None:
    """Return the ranges of the 8-bit numbers that there are already."""
    if listing is not None:
        return listing.ranges
    return next((ranges for part in parts if (ranges := _record(part)[1]) is not None), None)


class _Run:
    """A run that writes new parts.

    Attributes
    ----------
    ranges : list of list of float or None
        The ranges of 8-bit numbers, once they are known.
    """

    def __init__(
        self,
        folder: Path,
        documents: Documents,
        layout: Layout,
        ranges: list[list[float]] | None,
        parts: list[MappedPart],
        compared: Comparison,
    ) -> None:
        self._pyarrow = pyarrow = import_pyarrow("writing a folder of vectors")
        self._folder, self._documents, self._layout = folder, documents, layout
        self._parts, self._compared = parts, compared
        self._form = form_of(layout)
        self.ranges = ranges
        positions = [
            pyarrow.field(CHUNK, pyarrow.int32(), nullable=False),
            pyarrow.field(START, pyarrow.int64(), nullable=False),
            pyarrow.field(END, pyarrow.int64(), nullable=False),
        ]
        kept = list(documents.schema)
        self._schema = pyarrow.schema(
            [
                *self._form.fields(pyarrow),
                kept[0],
                *(positions if layout.chunks else []),
                *kept[1:],
                pyarrow.field(HASH, pyarrow.binary(32), nullable=False),
            ]
        )
        numbers = [number for part in parts if (number := part_number(part.path.name)) is not None]
        self._number = max(numbers, default=-1) + 1
        self._collector: Collector | None = None
        self._embedded = 0
        self._is_embedded = False
        self._texts = min(_FIRST_TEXTS, TEXTS)

    def _collected(self) -> Collector:
        if self._collector is None:
            self._collector = Collector(
                self._folder, self._schema, self._form.plain, self._layout, self.ranges, self._number
            )
        return self._collector

    def close(self) -> None:
        """Remove a part that is not complete."""
        if self._collector is not None:
            self._collector.close()

    def keep(self) -> str:
        """Keep the rows of the documents embedded so far, after an interruption; return what to tell about it."""
        total = int(np.count_nonzero(self._compared.embed))
        if self._collector is None:
            return "no text was embedded yet"
        if not (self._is_embedded or self._collector.keep()):
            return f"{self._folder} has the complete parts only; run it again for the rest"
        what = f"{self._embedded:,} of {total:,} texts are embedded and kept in {self._folder}"
        return f"{what}; run it again for the rest"

    def embed(self, embed: Callable[[list[str]], Encoded], done: Callable[[int, list[Any]], object]) -> None:
        """Embed the documents that are new or have another text, and write them."""
        for table in self._to_embed():
            ids = table.column(self._layout.id_column)
            texts = table.column("").to_pylist()
            start = time.monotonic()
            encoded = embed(texts)
            if time.monotonic() - start < _QUICK_SECONDS:
                self._texts = min(TEXTS, 2 * self._texts)
            if "int8" in self._layout.precisions and self.ranges is None:
                self.ranges = ranges_of(encoded.vectors).tolist()
            rows = self._rows(table, texts, encoded)
            with uninterrupted():
                self._collected().append(rows, slow=True)
                self._embedded += len(texts)
            done(self._embedded, [ids[int(i)].as_py() for i in np.flatnonzero(encoded.truncated)])
        if self._collector is not None:
            self._collector.flush()
        self._is_embedded = True

    def _to_embed(self) -> Iterator[Any]:
        """Yield the documents to embed, a table of some of them at a time."""
        if not self._compared.embed.any():
            return
        waiting: list[Any] = []
        row = rows = 0
        for table in self._documents.tables(texts=True):
            flags = self._compared.embed[row : row + len(table)]
            row += len(table)
            waiting.append(table.filter(self._pyarrow.array(flags)))
            rows += len(waiting[-1])
            while rows >= (size := self._texts_at_once()):
                joined = self._pyarrow.concat_tables(waiting)
                yield joined.slice(0, size)
                waiting, rows = [joined.slice(size)], rows - size
        if row != len(self._compared.embed):
            raise InputError(
                f"the documents were {len(self._compared.embed):,} and are now {row:,}: they changed meanwhile"
            )
        if rows:
            yield self._pyarrow.concat_tables(waiting)

    def _texts_at_once(self) -> int:
        return TEXTS_FOR_RANGES if "int8" in self._layout.precisions and self.ranges is None else self._texts

    def _rows(self, table: Any, texts: list[str], encoded: Encoded) -> Any:
        """Return the rows of some documents, as a table."""
        pyarrow = self._pyarrow
        ranges = None if self.ranges is None else np.array(self.ranges, np.float32)
        columns = dict(zip(self._schema.names, self._form.columns(pyarrow, encoded.vectors, ranges), strict=False))
        hashes = text_hashes(texts)
        if encoded.chunks is not None:
            owners, starts, ends = encoded.chunks.T
            table = table.take(pyarrow.array(owners))
            hashes = hashes[owners]
            firsts = np.searchsorted(owners, owners)
            columns[CHUNK] = pyarrow.array((np.arange(len(owners)) - firsts).astype(np.int32))
            columns[START], columns[END] = pyarrow.array(starts), pyarrow.array(ends)
        hashes = np.ascontiguousarray(hashes)
        columns[HASH] = pyarrow.Array.from_buffers(pyarrow.binary(32), len(hashes), [None, pyarrow.py_buffer(hashes)])
        for field in self._documents.schema:
            columns[field.name] = table.column(field.name)
        if encoded.chunks is not None and self._layout.text_column in columns:
            pieces = [texts[i][start:end] for i, start, end in encoded.chunks.tolist()]
            columns[self._layout.text_column] = pyarrow.array(pieces, pyarrow.string())
        return pyarrow.table([columns[name] for name in self._schema.names], schema=self._schema)

    def rest(self) -> list[MappedPart]:
        """Copy the rows that stay of parts which others leave, join small parts, and return the parts of the folder."""
        whole, left = [], []
        for part, stays, refreshed in zip(self._parts, self._compared.stays, self._compared.refreshed, strict=True):
            if stays.all():
                whole.append(part)
            elif stays.any() or refreshed.any():
                left.append(part)
        made = [] if self._collector is None else self._collector.parts
        small = [part for part in [*whole, *made] if is_small(part)]
        if left or len(small) > 1:
            own = {part.path: i for i, part in enumerate(self._parts)}
            for part in sorted([*left, *small], key=lambda one: part_number(one.path.name) or 0):
                self._copy(part, own.get(part.path))
            collector = self._collected()
            collector.flush()
            whole = [part for part in whole if part not in small]
            made = [part for part in collector.parts if part not in small]
        return [*whole, *made]

    def _copy(self, part: MappedPart, index: int | None) -> None:
        """Write the rows of a part that stay, and those with other fields."""
        pyarrow, compared = self._pyarrow, self._compared
        all_rows = np.ones(part.rows, np.bool_)
        stays = all_rows if index is None else compared.stays[index]
        refreshed = ~all_rows if index is None else compared.refreshed[index]
        sources = np.zeros(part.rows, np.int64)
        if index is not None:
            sources[refreshed] = compared.sources[index]
        for group in range(part.groups):
            rows = slice(int(part.starts[group]), int(part.starts[group + 1]))
            if not (stays[rows] | refreshed[rows]).any():
                continue
            table = part.group(group, self._schema.names).cast(self._schema)
            self._collected().append(table.filter(pyarrow.array(stays[rows])))
            if refreshed[rows].any():
                changed = table.filter(pyarrow.array(refreshed[rows]))
                fields = compared.fields.take(pyarrow.array(sources[rows][refreshed[rows]]))
                for name in fields.column_names:
                    at = self._schema.get_field_index(name)
                    changed = changed.set_column(at, self._schema.field(name), fields.column(name))
                self._collected().append(changed)


def _commit(
    folder: Path,
    layout: Layout,
    ranges: list[list[float]] | None,
    parts: list[MappedPart],
    part_of: PartRecord | None,
) -> Listing:
    """Put the parts in their places, replace the list, and remove what it no longer has."""
    listed = tuple(Part(part.path.name, part.rows, part.size, part.footer) for part in parts)
    listing = Listing(layout, ranges, listed, part_of)
    sync_folder(folder / UNFINISHED)
    with uninterrupted():
        for part in parts:
            if part.path.parent != folder:
                part.path.rename(folder / part.path.name)
        write_listing(folder, listing)
        kept = {part.file for part in listing.parts}
        for path in list(folder.iterdir()):
            if part_number(path.name) is not None and path.name not in kept:
                path.unlink()
        shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
        sync_folder(folder)
    return listing
