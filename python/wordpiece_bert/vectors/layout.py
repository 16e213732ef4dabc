"""What a folder of vectors consists of: the names of its files and columns, and its list of parts.

``vectors.json`` says what the vectors are and lists the parts, Parquet files in the same folder. It is replaced in one
step, so a reader sees the parts of one state. `UNFINISHED` is a folder in it with parts that no list has yet.
"""

from __future__ import annotations

import io
import json
import os
import re
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.atomic_file import sync_folder, write_bytes, write_text
from wordpiece_bert._internal.safe_json import parse_json, quoted, read_object
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.part_records import PartRecord
from wordpiece_bert.tokenizer.corpus.vector_fingerprint import Fingerprint
from wordpiece_bert.vectors.reloading import LOADING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

#: The list of parts, and the folder of those that are not in it yet.
LISTING = "vectors.json"
UNFINISHED = ".unfinished"
#: The version of the format, and of folders with replaced rows, which earlier programs would show.
VERSION, VERSION_WITH_REPLACED = 1, 2

#: The kinds of vectors: one for a text, its numbers other than 0, or one for each of its tokens.
DENSE, SPARSE, MULTI_VECTOR = "dense", "sparse", "multi_vector"

#: The columns of dense vectors, by precision.
VECTOR, INT8, BINARY = "vector", "vector_int8", "vector_binary"
#: The codes of float32 vectors, by which they are searched faster.
CODES = "vector_codes"
PRECISIONS = {"float32": VECTOR, "int8": INT8, "binary": BINARY}
#: The number of values of a sparse vector, or of vectors of a text.
COUNT = "count"
#: The SHA-256 of the text in UTF-8; of a chunk, the SHA-256 of the entire text.
HASH = "text_sha256"
#: The number of a chunk in its text, and where it begins and ends there, in characters.
CHUNK, START, END = "chunk", "start", "end"
#: Names that no column of the documents may have.
RESERVED = frozenset(
    [
        *PRECISIONS.values(),
        CODES,
        "indices",
        "values",
        "vectors",
        COUNT,
        HASH,
        CHUNK,
        START,
        END,
        "score",
        "retrieval_score",
    ]
)

#: The key of the layout in the metadata of a part.
RECORD_KEY = "wordpiece_bert.vectors"
_REPLACED = re.compile(r"replaced-\d{6,}\.npy")
_PART = re.compile(r"part-(\d{6,})\.parquet")
_LARGEST_LISTING = 100_000_000


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What the vectors and columns of a folder are, which every part has in its metadata."""

    kind: str
    #: The name under which the model was loaded, for the queries.
    model: str
    #: How vectors are compared.
    similarity: str
    dimension: int
    id_column: str
    text_column: str
    #: Other columns that are kept.
    keep: tuple[str, ...]
    #: The precisions of dense vectors that are stored.
    precisions: tuple[str, ...]
    #: How long texts are divided into chunks; None if they are not.
    chunks: dict[str, Any] | None
    #: Settings of the encoder that decide about vectors, besides those in the fingerprint.
    settings: dict[str, Any]
    fingerprint: Fingerprint
    #: The arguments with which the encoder is loaded again. What they decide about vectors of documents is in the
    #: fingerprint; what they decide about queries is not.
    loading: dict[str, Any] = field(default_factory=dict)

    def differences(self, now: Layout) -> list[str]:
        """Return in what a layout differs that is expected now, in words."""
        found = []
        for name in ("kind", "id_column", "text_column", "keep", "precisions", "chunks", "settings"):
            before, after = getattr(self, name), getattr(now, name)
            if before != after:
                found.append(f"{name} ({_shown(before)} in the folder, {_shown(after)} now)")
        for name in ("prompts", "default_prompt_name", "similarity_fn_name"):
            before, after = self.loading.get(name), now.loading.get(name)
            if after not in (None, before):
                found.append(f"{name} ({_shown(before)} in the folder, {_shown(after)} now)")
        return found + self.fingerprint.differences(now.fingerprint)

    def loading_of(self, model: str | os.PathLike[str]) -> dict[str, Any]:
        """Return the arguments with which a model is loaded again; another one than the folder's has no revision."""
        is_own = os.fspath(model) == self.model
        return {name: value for name, value in self.loading.items() if is_own or name != "revision"}

    def to_json(self) -> dict[str, Any]:
        """Return the layout as an object of JSON."""
        return asdict(self) | {"fingerprint": json.loads(self.fingerprint.to_json())}

    @classmethod
    def from_json(cls, content: object, where: str) -> Layout:
        """Read a layout from an object of JSON; an `InputError` names `where` it is if it is malformed."""
        try:
            found = dict(content)  # type: ignore[call-overload]
            fingerprint = Fingerprint.from_json(json.dumps(found.pop("fingerprint")).encode(), where)
            layout = cls(
                **found | {"keep": tuple(found["keep"]), "precisions": tuple(found["precisions"])},
                fingerprint=fingerprint,
            )
        except (KeyError, TypeError, ValueError) as cause:
            raise InputError(f"{where}: is not a description of vectors: {cause}") from cause
        texts: tuple[Any, ...] = (
            layout.kind,
            layout.model,
            layout.similarity,
            layout.id_column,
            layout.text_column,
            *layout.keep,
        )
        if (
            not set(map(type, texts)) <= {str}
            or type(layout.dimension) is not int
            or layout.dimension < 1
            or layout.kind not in (DENSE, SPARSE, MULTI_VECTOR)
            or not set(layout.precisions) <= PRECISIONS.keys()
            or type(layout.settings) is not dict
            or type(layout.loading) is not dict
            or not layout.loading.keys() <= {*LOADING}
            or type(layout.chunks) not in (dict, type(None))
            or (layout.chunks is not None and layout.chunks.keys() != {"size", "overlap", "by", "late"})
        ):
            raise InputError(f"{where}: is not a description of vectors: {quoted(found)}")
        return layout


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return json.dumps(value)


@dataclass(frozen=True)
class Part:
    """A Parquet file of a folder."""

    file: str
    rows: int
    bytes: int
    #: The SHA-256 of the end of the file, which says where everything is: damage there could end the process.
    footer: str


@dataclass(frozen=True)
class Replaced:
    """A file with the numbers of the rows that later parts replace, or that were deleted: a ``.npy``, rising.

    The rows of all parts are counted, in the order of the list.
    """

    file: str
    rows: int
    #: The SHA-256 of the file.
    digest: str


@dataclass(frozen=True)
class Listing:
    """The contents of ``vectors.json``."""

    layout: Layout
    #: The lowest and the highest value of each dimension, with which 8-bit numbers were made; None without such.
    ranges: list[list[float]] | None
    parts: tuple[Part, ...]
    #: Which part of which call the folder is; None if it is whole.
    part: PartRecord | None = None
    #: The rows of the parts that do not count; None if all do.
    replaced: Replaced | None = None

    @property
    def rows(self) -> int:
        """The number of rows of all parts that count."""
        return sum(part.rows for part in self.parts) - (self.replaced.rows if self.replaced else 0)

    def replaced_rows(self, folder: Path) -> list[npt.NDArray[np.int64]]:
        """Read, for each part, the numbers of its rows that do not count.

        Raises
        ------
        InputError
            The file is not as it was written.
        FileNotFoundError
            It does not exist.
        """
        bounds = np.cumsum([0, *(part.rows for part in self.parts)])
        rows = np.zeros(0, np.int64)
        if self.replaced is not None:
            path = folder / self.replaced.file
            content = path.read_bytes()
            if sha256(content).hexdigest() != self.replaced.digest:
                raise InputError(f"{path}: another program has changed it: make the folder again")
            rows = _checked_rows(path, content, self.replaced.rows, int(bounds[-1]))
        places = np.searchsorted(rows, bounds)
        return [rows[places[i] : places[i + 1]] - bounds[i] for i in range(len(self.parts))]


def _checked_rows(path: Path, content: bytes, count: int, most: int) -> npt.NDArray[np.int64]:
    """Read numbers of rows that rise; an `InputError` if they are others."""
    try:
        rows = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError) as cause:
        raise InputError(f"{path}: is damaged: {cause}; make the folder again") from cause
    if rows.shape != (count,) or rows.dtype.kind != "u" or (rows[1:] <= rows[:-1]).any() or (rows >= most).any():
        raise InputError(f"{path}: is damaged: its rows are not those of the folder; make the folder again")
    return np.asarray(rows.astype(np.int64))


def part_name(number: int) -> str:
    """Return the name of the file of a part."""
    return f"part-{number:06}.parquet"


def part_number(name: str) -> int | None:
    """Return the number of a part by the name of its file; None for other names."""
    found = _PART.fullmatch(name)
    return int(found[1]) if found else None


def write_replaced(
    folder: Path, rows: Sequence[npt.NDArray[np.int64]], parts: Sequence[Part], before: Replaced | None
) -> Replaced | None:
    """Write the numbers of the rows of each part that do not count; None if all do."""
    bounds = np.cumsum([0, *(part.rows for part in parts)])
    found = np.concatenate([np.zeros(0, np.int64), *(one + bounds[i] for i, one in enumerate(rows))])
    if not len(found):
        return None
    content = io.BytesIO()
    np.save(content, found.astype(np.uint32 if bounds[-1] < 2**32 else np.uint64), allow_pickle=False)
    number = 0 if before is None else int(before.file[len("replaced-") : -len(".npy")]) + 1
    name = f"replaced-{number:06}.npy"
    write_bytes(folder / name, content.getvalue())
    return Replaced(name, len(found), sha256(content.getvalue()).hexdigest())


def is_replaced_name(name: str) -> bool:
    """Return whether a file has the numbers of replaced rows, by its name."""
    return _REPLACED.fullmatch(name) is not None


def read_listing(folder: Path) -> Listing:
    """Read ``vectors.json``.

    Raises
    ------
    InputError
        There is none, or it is malformed.
    """
    path = folder / LISTING
    if not path.is_file():
        if (folder / UNFINISHED).is_dir():
            message = (
                "its vectors were not finished: run the same `wordpiece-bert embed` again, which goes on with them"
            )
        else:
            message = f"has no {LISTING}: it is not a folder of vectors that `wordpiece-bert embed` wrote"
        raise InputError(f"{folder}: {message}")
    content = read_object(path, InputError, max_bytes=_LARGEST_LISTING)
    if content.get("version") not in (VERSION, VERSION_WITH_REPLACED):
        raise InputError(
            f"{path}: has the version {quoted(content.get('version'))}, not {VERSION} or {VERSION_WITH_REPLACED}: it "
            "was written by another version of wordpiece-bert"
        )
    try:
        parts = tuple(Part(**part) for part in content["parts"])
        ranges = content["ranges"]
        _check_ranges(path, ranges)
        layout = content["layout"]
        replaced = None if content.get("replaced") is None else Replaced(**content["replaced"])
    except (KeyError, TypeError) as cause:
        raise InputError(f"{path}: is malformed: {cause}") from cause
    for part in parts:
        if part_number(str(part.file)) is None or type(part.rows) is not int or type(part.bytes) is not int:
            raise InputError(f"{path}: is malformed: {quoted(part)} is no part")
    part_of = None if content.get("part") is None else PartRecord.from_json(content["part"], str(path))
    found = Listing(Layout.from_json(layout, str(path)), ranges, parts, part_of, replaced)
    if replaced is not None and (
        not is_replaced_name(str(replaced.file)) or type(replaced.rows) is not int or found.rows < 0
    ):
        raise InputError(f"{path}: is malformed: {quoted(replaced)} are no replaced rows")
    has_small = "int8" in found.layout.precisions
    if (ranges is None and has_small and parts) or (ranges is not None and not has_small):
        raise InputError(f"{path}: is malformed: there are ranges without 8-bit numbers, or these without ranges")
    if ranges is not None and len(ranges[0]) != found.layout.dimension:
        raise InputError(
            f"{path}: is malformed: there are {len(ranges[0])} ranges for {found.layout.dimension} numbers"
        )
    return found


def _check_ranges(path: Path, ranges: Any) -> None:
    """Raise an `InputError` unless ranges are None or two lists of as many numbers."""
    is_pair = isinstance(ranges, list) and len(ranges) == 2 and all(isinstance(one, list) for one in ranges)
    if ranges is not None and not (
        is_pair and len(ranges[0]) == len(ranges[1]) and {type(x) for one in ranges for x in one} <= {int, float}
    ):
        raise InputError(f"{path}: is malformed: {quoted(ranges)} are no ranges")


def write_listing(folder: Path, listing: Listing) -> None:
    """Replace ``vectors.json`` in one step; afterwards the parts that it lists are the folder's."""
    content = {
        "version": VERSION if listing.replaced is None else VERSION_WITH_REPLACED,
        "rows": listing.rows,
        "layout": listing.layout.to_json(),
        "ranges": listing.ranges,
        "parts": [asdict(part) for part in listing.parts],
        **({} if listing.part is None else {"part": listing.part.to_json()}),
        **({} if listing.replaced is None else {"replaced": asdict(listing.replaced)}),
    }
    write_text(folder / LISTING, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    sync_folder(folder)


def record_of(layout: Layout, ranges: Sequence[Sequence[float]] | None, *, ends: bool) -> str:
    """Return what a part has in its metadata; `ends` says that its last document surely ends in it."""
    return json.dumps({"layout": layout.to_json(), "ranges": ranges, "ends": ends}, ensure_ascii=False)


def parse_record(record: bytes, where: str) -> tuple[Layout, list[list[float]] | None, bool]:
    """Read what a part has in its metadata; an `InputError` if it is malformed."""
    content = parse_json(record, where, InputError)
    if not isinstance(content, dict) or "layout" not in content:
        raise InputError(f"{where}: its metadata are not those of a part of vectors")
    return Layout.from_json(content["layout"], where), content.get("ranges"), content.get("ends") is True
