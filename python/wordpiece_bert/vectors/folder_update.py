"""Writing a folder of vectors, and bringing one up to date: only the vectors of new and changed texts are computed.

Parts never change. New ones are written into the folder `UNFINISHED`, where they wait. At the end they get their places
in the folder, the list of parts is replaced in one step, and parts that it no longer has are removed. A process that is
killed leaves parts that no list has: the next run finds them by their metadata, and takes their rows as known.

An update writes what is new. Rows that are replaced or deleted stay where they are, and a small file has their numbers;
once they are a fifth of the folder, the parts with such rows are written again without them. Small parts are joined
with what is new where they are no larger, so that few small parts remain, and a row is seldom written again.
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
from wordpiece_bert._internal.owner import Owner
from wordpiece_bert._internal.signals import telling, uninterrupted
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow
from wordpiece_bert.vectors.forms import form_of, ranges_of
from wordpiece_bert.vectors.known_rows import Known, compare, text_hashes
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
    is_replaced_name,
    parse_record,
    part_number,
    read_listing,
    write_listing,
    write_replaced,
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

#: The most texts that are encoded at once; for the first ranges of 8-bit numbers exactly so many.
TEXTS = 1 << 10
TEXTS_FOR_RANGES = 1 << 12
# The first time fewer, and twice as many while that takes few seconds: what is lost when the program is interrupted.
_FIRST_TEXTS = 1 << 6
#: Parts with replaced rows are written again when one row of so many is replaced.
REPLACED_SHARE = 5
#: Small parts of at most so many bytes, or a 64th of the folder, are joined with what an update adds.
JOINED_BYTES = 1 << 20
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
    compact: bool = False,
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
    compact : bool, default False
        Whether no file may have replaced rows afterwards.

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
    owner = Owner()
    with only_writer(folder), ExitStack() as stack:
        listing = _listing_before(folder, layout, update=update)
        if listing is not None:
            layout = replace(layout, loading=listing.layout.loading)
        try:
            parts = _parts(folder, listing, layout)
            ranges = _ranges(parts, listing)
            compared = compare(documents, layout, parts, prune=prune)
            counts = {name: getattr(compared, name) for name in UpdatePlan.__dataclass_fields__ if name != "prune"}
            planned(UpdatePlan(**counts, prune=prune))
            if ranges is None and first_texts is not None and compared.embed.any():
                ranges = ranges_of(embed(first_texts()).vectors, layout).tolist()
            (folder / UNFINISHED).mkdir(exist_ok=True)
            run = _Run(folder, documents, layout, ranges, parts, compared)
            stack.callback(run.close)
            with telling(run.keep):
                run.embed(embed, done)
                final = run.rest(compact=compact)
        except BaseException:
            with suppress(OSError):  # it has parts, which the next run takes
                owner.do((folder / UNFINISHED).rmdir)
            raise
        before = None if listing is None else listing.replaced
        owner.check(folder)
        return _commit(owner, folder, Listing(layout, run.ranges, (), part, before), final)


def _listing_before(folder: Path, layout: Layout, *, update: bool) -> Listing | None:
    """Return the list of a folder that is brought up to date; None for a new one."""
    if not (folder / LISTING).exists():
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


def _parts(folder: Path, listing: Listing | None, layout: Layout) -> list[Known]:
    """Return the parts of a folder in the order of their numbers.

    Parts of an interrupted run that are of something else are removed; files that are none of ours are an error.
    """
    replaced = listing.replaced_rows(folder) if listing else []
    listed = {part.file: rows for part, rows in zip(listing.parts, replaced, strict=True)} if listing else {}
    ranges = listing.ranges if listing else None
    found: list[Known] = []
    homes = [folder, *([folder / UNFINISHED] if (folder / UNFINISHED).is_dir() else [])]
    paths = sorted(
        (number, path) for home in homes for path in home.iterdir() if (number := part_number(path.name)) is not None
    )
    parts = {path: MappedPart(path) for _, path in paths}
    for path in folder.iterdir():
        is_strange = parts[path].record is None if path in parts else listing is None and path.name[0] != "."
        if is_strange and path.name not in listed:
            raise InputError(
                f"{folder}: has files that are not vectors, such as {path.name}: choose another folder, or empty it"
            )
    for path, part in parts.items():
        is_listed = path.parent == folder and path.name in listed
        ends = True
        if not is_listed:
            known, own_ranges, ends = _record(part)
            ranges = own_ranges if ranges is None else ranges
            if known is None or known.differences(layout) or own_ranges != ranges:
                path.unlink()
                continue
        rows = listed[path.name] if is_listed else np.zeros(0, np.int64)
        found.append(Known(part, is_listed, ends or not layout.chunks, rows))
    missing = sorted(listed.keys() - {known.part.path.name for known in found if known.is_listed})
    if missing:
        raise InputError(f"{folder}: the part {missing[0]} is missing: restore it, or make the folder again")
    return found


def _record(part: MappedPart) -> tuple[Layout | None, list[list[float]] | None, bool]:
    with suppress(InputError):
        return parse_record(part.record or b"", str(part.path))
    return None, None, False


def _ranges(parts: list[Known], listing: Listing | None) -> list[list[float]] | None:
    """Return the ranges of the 8-bit numbers that there are already."""
    if listing is not None:
        return listing.ranges
    return next((ranges for known in parts if (ranges := _record(known.part)[1]) is not None), None)


@dataclass(frozen=True)
class _Held:
    """A part, and what becomes of its rows."""

    part: MappedPart
    #: The rows that stay, and those that get other fields, [rows]; and the document of each of the latter.
    stays: npt.NDArray[np.bool_]
    refreshed: npt.NDArray[np.bool_]
    sources: npt.NDArray[np.int64]
    is_listed: bool
    #: Whether its first row belongs to the last document of the part before; both are copied, or none.
    goes_on: bool

    @property
    def rows(self) -> int:
        """The number of rows that stay."""
        return int(np.count_nonzero(self.stays))

    @property
    def replaced(self) -> npt.NDArray[np.int64]:
        """The numbers of the rows that do not stay."""
        return np.flatnonzero(~self.stays)


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
        parts: list[Known],
        compared: Comparison,
    ) -> None:
        self._pyarrow = pyarrow = import_pyarrow("writing a folder of vectors")
        self._folder, self._documents, self._layout = folder, documents, layout
        self._compared = compared
        self._known = [
            _Held(known.part, stays, refreshed, sources, known.is_listed, goes_on)
            for known, stays, refreshed, sources, goes_on in zip(
                parts, compared.stays, compared.refreshed, compared.sources, compared.goes_on, strict=True
            )
        ]
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
        numbers = [number for known in parts if (number := part_number(known.part.path.name)) is not None]
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
                self.ranges = ranges_of(encoded.vectors, self._layout).tolist()
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

    def rest(self, *, compact: bool = False) -> list[_Held]:
        """Write the rows with other fields, join small parts, and return the parts of the folder."""
        made = [] if self._collector is None else list(self._collector.parts)
        units = _units([*self._known, *(_whole(part, self._layout) for part in made)])
        kept = [unit for unit in units if any(held.rows for held in unit)]
        copied = self._joined(kept, compact=compact)
        has_refreshed = any(held.refreshed.any() for held in self._known)
        if copied or has_refreshed:
            for held in (held for unit in copied for held in unit):
                self._copy(held.part, held.stays)
            for held in self._known:
                self._copy(held.part, held.refreshed, held.sources)
            self._collected().flush()
            new = [part for part in self._collected().parts if part not in made]
        else:
            new = []
        again = {id(unit) for unit in copied}
        stay = [held for unit in kept if id(unit) not in again for held in unit if held.rows]
        return [*stay, *(_whole(part, self._layout) for part in new)]

    def _joined(self, units: list[list[_Held]], *, compact: bool) -> list[list[_Held]]:
        """Choose the parts whose rows are written again.

        These are the small ones of this run, if there are several; listed ones no larger than what has come together so
        far, from the newest on; and once replaced rows are a fifth of all, the parts that have such rows.
        """
        rows = sum(held.part.rows for unit in units for held in unit)
        alive = sum(held.rows for unit in units for held in unit)
        size = sum(held.part.size for unit in units for held in unit)
        refreshed = sum(int(np.count_nonzero(held.refreshed)) for held in self._known)
        joins_all = bool(rows > alive) and (compact or (rows - alive) * REPLACED_SHARE > rows)
        has_replaced = [joins_all and any(len(held.replaced) for held in unit) for unit in units]
        chosen = [unit for unit, joins in zip(units, has_replaced, strict=True) if joins]
        small = [
            unit
            for unit, joins in zip(units, has_replaced, strict=True)
            if not joins and all(is_small(held.part) for held in unit)
        ]
        pool = [unit for unit in small if not any(held.is_listed for held in unit)]
        together = refreshed + sum(held.rows for unit in pool for held in unit)
        most = max(JOINED_BYTES, size // 64)
        for unit in reversed([unit for unit in small if any(held.is_listed for held in unit)]):
            own = sum(held.rows for held in unit)
            if own > together or sum(held.part.size for held in unit) > most:
                break
            pool.append(unit)
            together += own
        if chosen or len(pool) + (refreshed > 0) > 1:
            chosen += pool
        numbers = {id(unit) for unit in chosen}
        return [unit for unit in units if id(unit) in numbers]

    def _copy(
        self, part: MappedPart, flags: npt.NDArray[np.bool_], sources: npt.NDArray[np.int64] | None = None
    ) -> None:
        """Write rows of a part, with the fields of the documents `sources` if they are given."""
        pyarrow = self._pyarrow
        done = 0
        for group in range(part.groups):
            rows = slice(int(part.starts[group]), int(part.starts[group + 1]))
            count = int(np.count_nonzero(flags[rows]))
            if not count:
                continue
            table = part.group(group, self._schema.names).cast(self._schema).filter(pyarrow.array(flags[rows]))
            if sources is not None:
                fields = self._compared.fields.take(pyarrow.array(sources[done : done + count]))
                for name in fields.column_names:
                    at = self._schema.get_field_index(name)
                    table = table.set_column(at, self._schema.field(name), fields.column(name))
            done += count
            self._collected().append(table)


def _whole(part: MappedPart, layout: Layout) -> _Held:
    """Return a part that was just written, of which all rows stay."""
    none = np.zeros(part.rows, np.bool_)
    goes_on = layout.chunks is not None and part.rows > 0 and part.group(0, [CHUNK]).column(0)[0].as_py() > 0
    return _Held(part, ~none, none, np.zeros(0, np.int64), is_listed=False, goes_on=goes_on)


def _units(parts: list[_Held]) -> list[list[_Held]]:
    """Return parts with those that go on with their last document."""
    found: list[list[_Held]] = []
    for held in parts:
        if held.goes_on and found:
            found[-1].append(held)
        else:
            found.append([held])
    return found


def _commit(owner: Owner, folder: Path, listing: Listing, parts: list[_Held]) -> Listing:
    """Put the parts in their places, replace the list, and remove what it no longer has."""
    listed = tuple(Part(held.part.path.name, held.part.rows, held.part.size, held.part.footer) for held in parts)
    sync_folder(folder / UNFINISHED)
    with uninterrupted():
        for held in parts:
            if held.part.path.parent != folder:
                owner.do(held.part.path.rename, folder / held.part.path.name)
        replaced = write_replaced(folder, [held.replaced for held in parts], listed, listing.replaced)
        listing = replace(listing, parts=listed, replaced=replaced)
        write_listing(folder, listing)
        kept = {part.file for part in listed} | ({replaced.file} if replaced else set())
        for path in list(folder.iterdir()):
            if (part_number(path.name) is not None or is_replaced_name(path.name)) and path.name not in kept:
                owner.do(path.unlink)
        owner.do(shutil.rmtree, folder / UNFINISHED, ignore_errors=True)
        sync_folder(folder)
    return listing
