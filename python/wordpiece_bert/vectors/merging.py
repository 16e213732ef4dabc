"""`merge_parts`: what several processes have written in parts, put together."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.atomic_file import in_real_folder, part_name, part_pattern, sync_folder
from wordpiece_bert._internal.file_locks import hold, remove_abandoned
from wordpiece_bert._internal.owner import Owner
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.file_lists import listed_files
from wordpiece_bert.tokenizer.corpus.merged_files import check_no_id_twice, merge_files
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow
from wordpiece_bert.tokenizer.corpus.part_records import in_order
from wordpiece_bert.vectors import layout
from wordpiece_bert.vectors.part_files import opened_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from wordpiece_bert.vectors.layout import Listing, Part


def merge_parts(
    parts: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], output: str | os.PathLike[str]
) -> int:
    """Put together what was written in parts, by ``--part`` of the commands or ``part=`` of `write_vectors`.

    Files have the bytes that one run writes. Of folders of vectors the files are linked, not copied, where the file
    system can do that; the rows are those of one run, in the same order.

    Parameters
    ----------
    parts : path or iterable of paths
        The files, or the folders of vectors, of all parts, in any order.
    output : str or os.PathLike
        The file to write, or the folder, which must not exist.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    InputError
        A part is not complete, of another call, or has columns of other types; one is missing or there twice; two rows
        have the same id; or the output is one of the parts, or has another format.
    OSError
        A file cannot be read or written.

    Examples
    --------
    >>> from pathlib import Path
    >>> import pyarrow, pyarrow.parquet
    >>> import wordpiece_bert as wb
    >>> table = pyarrow.table({"number": [7, 8], "text": ["bread dough", "a bicycle"]})
    >>> pyarrow.parquet.write_table(table, "some.parquet", row_group_size=1)
    >>> columns = {"text_column": "text", "id_column": "number"}
    >>> for i in range(2):
    ...     _ = wb.write_vectors(
    ...         "some.parquet", f"some-{i}.vectors", "models/static", part=(i, 2), **columns
    ...     )
    >>> wb.merge_parts(["some-0.vectors", "some-1.vectors"], "some.vectors")
    2
    >>> wb.open_vectors("some.vectors").ids()
    [7, 8]
    """
    paths = [Path(name) for name in listed_files(parts)]
    are_folders = [path.is_dir() for path in paths]
    if not any(are_folders):
        return merge_files(paths, Path(output))
    if not all(are_folders):
        file, folder = paths[are_folders.index(False)], paths[are_folders.index(True)]
        raise InputError(f"{file}: is no folder, but {folder} is one")
    return _merge_folders(paths, Path(output))


def _merge_folders(folders: Sequence[Path], output: Path) -> int:
    """Make a folder of vectors of folders that are its parts."""
    if output.exists():
        raise InputError(f"{output}: exists: choose another folder, or remove it")
    listing, files, replaced = joined_listing(folders)
    _check_ids(files, listing, replaced)
    target = in_real_folder(output)
    if not target.parent.is_dir():
        raise InputError(f"{output}: the folder {target.parent} does not exist; create it first")
    remove_abandoned(target.parent, part_pattern(target.name))
    temporary = target.with_name(part_name(target.name))
    with ExitStack() as stack:
        stack.callback(Owner().do, shutil.rmtree, temporary, ignore_errors=True)
        temporary.mkdir()
        descriptor = os.open(temporary, os.O_RDONLY)
        stack.callback(os.close, descriptor)
        hold(descriptor, temporary)
        for path, part in zip(files, listing.parts, strict=True):
            _link(path, temporary / part.file)
        listing = replace(listing, replaced=layout.write_replaced(temporary, replaced, listing.parts, None))
        layout.write_listing(temporary, listing)
        temporary.rename(target)
        sync_folder(target.parent)
    return listing.rows


def joined_listing(folders: Sequence[Path]) -> tuple[Listing, list[Path], list[npt.NDArray[np.int64]]]:
    """Return the list of the folder that parts make, where its files are, and which of their rows do not count.

    Raises
    ------
    InputError
        As for `merge_parts`, but ids are not read.
    """
    listings = [layout.read_listing(folder) for folder in folders]
    records = []
    for folder, listing in zip(folders, listings, strict=True):
        if listing.part is None:
            raise InputError(f"{folder}: is not a part: one run wrote it whole, or brought it up to date")
        records.append(listing.part)
    order = in_order(records, [str(folder) for folder in folders])
    ranges = [listings[i].ranges for i in order if listings[i].ranges is not None]
    if any(one != ranges[0] for one in ranges):
        raise InputError(f"{folders[0]}: the parts have other ranges of 8-bit numbers: make them again")
    found: list[Part] = []
    files: list[Path] = []
    replaced: list[npt.NDArray[np.int64]] = []
    for i in order:
        replaced += listings[i].replaced_rows(folders[i])
        for part in listings[i].parts:
            found.append(replace(part, file=layout.part_name(len(found))))
            files.append(folders[i] / part.file)
    first = listings[order[0]]
    own_columns = [first.layout.id_column, *first.layout.keep]
    types: dict[str, Any] = {}
    for path, part in zip(files, found, strict=True):
        for field in opened_part(path, part).schema:
            if field.name in own_columns and types.setdefault(field.name, field.type) != field.type:
                raise InputError(
                    f"{path}: the column {field.name!r} is {field.type}, but {types[field.name]} in another part, as "
                    "their files say: make the parts from Parquet files, which have types"
                )
    count = sum(map(len, replaced))
    own = layout.Replaced("", count, "") if count else None
    listing = replace(first, ranges=ranges[0] if ranges else None, parts=tuple(found), part=None, replaced=own)
    return listing, files, replaced


def _check_ids(files: Sequence[Path], listing: Listing, replaced: Sequence[npt.NDArray[np.int64]]) -> None:
    """Check that files are as they were written, and that no id is in two documents."""
    pyarrow = import_pyarrow("merging folders of vectors")
    column, is_chunked = listing.layout.id_column, listing.layout.chunks is not None
    ids = []
    for path, expected, rows in zip(files, listing.parts, replaced, strict=True):
        part = opened_part(path, expected)
        table = part.table([column, *([layout.CHUNK] if is_chunked else [])])
        if len(rows):
            table = table.take(pyarrow.array(np.delete(np.arange(len(table)), rows)))
        if is_chunked:
            table = table.filter(pyarrow.compute.equal(table.column(layout.CHUNK), 0))
        ids += table.column(column).chunks
    if ids:
        check_no_id_twice(pyarrow.chunked_array(ids), column)


def _link(path: Path, link: Path) -> None:
    """Give a file, which never changes, a second name; where that cannot be, copy it."""
    with suppress(OSError):
        os.link(path, link)
        return
    shutil.copyfile(path, link)
