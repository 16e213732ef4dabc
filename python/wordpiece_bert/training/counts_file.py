r"""Counts in files: Parquet, Arrow, and lines of ``word<TAB>count``.

All hold the columns ``word`` and ``count``, by count descending, then word ascending, and the metadata of `Contents`.
"""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.atomic_file import write_bytes
from wordpiece_bert.errors import InputError, TrainingError
from wordpiece_bert.training.options import NormalizerSettings, differences, read_pipeline

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Contents", "read", "write"]

SCHEMA = "word-counts/1"
PREFIX = "wordpiece_bert."
# Larger numbers are no counts.
LARGEST = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Contents:
    """What is known about counts beside the words: how they were counted, and from what."""

    settings: NormalizerSettings | None = None
    texts: int = 0
    bytes: int = 0
    undercount: int = 0
    dropped: int = 0
    replaced: int = 0
    skipped: int = 0

    def merged(self, other: Contents) -> Contents:
        """What is known about both together.

        Raises
        ------
        TrainingError
            They were counted with different settings.
        """
        mine, others = self.settings, other.settings
        if mine is not None and others is not None and mine != others:
            message = (
                f"these words were counted with different settings and do not add up: {differences(mine, others)}; "
                "count both with the same"
            )
            raise TrainingError(message)
        numbers = {name: mine_n + getattr(other, name) for name, mine_n in self._numbers().items()}
        return Contents(settings=None if others is None else mine, **numbers)

    def _numbers(self) -> dict[str, int]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "settings"}

    def metadata(self, words: int) -> dict[str, str]:
        """As the metadata of a file."""
        known = {"schema": SCHEMA}
        if self.settings is not None:
            known |= {"pipeline": self.settings.pipeline, "fingerprint": self.settings.fingerprint}
        known |= {name: str(number) for name, number in self._numbers().items()} | {"words": str(words)}
        return {PREFIX + name: value for name, value in known.items()}

    @classmethod
    def read(cls, metadata: dict[str, str], words: int) -> Contents:
        """Read the metadata of a file, and check that it is about these words."""
        known = {name.removeprefix(PREFIX): value for name, value in metadata.items() if name.startswith(PREFIX)}
        if not known:
            return cls()
        if known.get("schema") != SCHEMA:
            message = f"the schema is {known.get('schema')!r}; this version reads {SCHEMA!r}"
            raise TrainingError(message)
        settings = read_pipeline(known["pipeline"]) if "pipeline" in known else None
        if settings is not None and known.get("fingerprint") != settings.fingerprint:
            message = "the fingerprint is not that of the settings beside it; count again"
            raise TrainingError(message)
        names = [name for name in asdict(cls()) if name != "settings"]
        numbers = {}
        for name in [*names, "words"]:
            value = known.get(name, "0")
            if not (value.isascii() and value.isdigit()):
                message = f"the metadata has {value!r} for {name}, which is no number"
                raise TrainingError(message)
            numbers[name] = int(value)
        if "words" in known and numbers["words"] != words:
            message = f"there are {words:,} words, and the metadata says {numbers['words']:,}: the file is not whole"
            raise TrainingError(message)
        return cls(settings=settings, **{name: numbers[name] for name in names})


def read(path: Path) -> tuple[_core.WordCounts, Contents]:
    """Read a file of counts."""
    columns = _kind(path)[0]
    try:
        text, ends, counts, metadata = columns(path)
        if len(counts) and not counts.all():
            message = "a count is 0"
            raise TrainingError(message)
        inner = _core.WordCounts.from_columns(text, ends, counts)
        if len(inner) != len(counts):
            message = "a word is empty"
            raise TrainingError(message)
        return inner, Contents.read(metadata, len(counts))
    except (TrainingError, InputError) as error:
        message = f"{path}: {error}"
        raise type(error)(message) from error.__cause__


def write(path: Path, words: _core.WordCounts, contents: Contents) -> None:
    """Write a file of counts."""
    to_bytes = _kind(path)[1]
    write_bytes(path, to_bytes(words, contents.metadata(len(words))))


def _kind(path: Path) -> tuple[Any, Any]:
    kind = _KINDS.get(path.suffix)
    if kind is None:
        message = f"{path}: counts are kept in files that end in {', '.join(_KINDS)}"
        raise InputError(message)
    return kind


# --- lines


def _from_tsv(path: Path) -> tuple[bytes, Any, Any, dict[str, str]]:
    metadata: dict[str, str] = {}
    text = bytearray()
    ends: list[int] = []
    counts: list[int] = []
    for number, line in enumerate(path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        line = line.removesuffix(b"\r")
        word, tab, count = line.rpartition(b"\t")
        if not tab:
            if line.startswith(b"#") and not counts:
                name, _, value = line[1:].strip().decode("utf-8", "replace").partition("=")
                metadata[name.strip()] = value.strip()
            elif line:
                message = f"line {number} has no tab; a line is a word, a tab and a count"
                raise TrainingError(message)
            continue
        if not (count.isdigit() and 0 < int(count) <= LARGEST) or b"\t" in word:
            message = f"line {number} is {line[:80]!r}; a line is a word, a tab and a count above 0"
            raise TrainingError(message)
        try:
            word.decode("utf-8")
        except UnicodeDecodeError:
            message = f"line {number} is not UTF-8: {word[:80]!r}"
            raise TrainingError(message) from None
        text += word
        ends.append(len(text))
        counts.append(int(count))
    return bytes(text), np.array(ends, np.int64), np.array(counts, np.uint64), metadata


def _to_tsv(words: _core.WordCounts, metadata: dict[str, str]) -> bytes:
    # Counts that nothing is known about are the plain form, which other programs write and read as well.
    lines = [f"# {name}={value}" for name, value in metadata.items()] if PREFIX + "pipeline" in metadata else []
    for word, count in words.items(None):
        if "\t" in word or "\n" in word or word.endswith("\r"):
            message = f"the word {word!r} has a tab or a line break, which a .tsv cannot hold; write .parquet or .arrow"
            raise TrainingError(message)
        lines.append(f"{word}\t{count}")
    return "".join(f"{line}\n" for line in lines).encode()


# --- Arrow and Parquet


def _pyarrow(module: str) -> Any:  # noqa: ANN401
    try:
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError as cause:
        message = "counts in Arrow and Parquet need pyarrow: pip install 'wordpiece-bert[arrow]', or use .tsv"
        raise InputError(message) from cause
    return {"": pyarrow, "feather": pyarrow.feather, "parquet": pyarrow.parquet}[module]


def _table(words: _core.WordCounts, metadata: dict[str, str]) -> Any:  # noqa: ANN401
    pa = _pyarrow("")
    text, ends, counts = words.columns()
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    # Words by 32 bits where that is enough, which is what `string` means.
    large = len(text) > np.iinfo(np.int32).max
    kind = pa.large_string() if large else pa.string()
    offsets = offsets.astype(np.int64 if large else np.int32)
    column = pa.Array.from_buffers(kind, len(counts), [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    schema = pa.schema(
        [pa.field("word", kind, nullable=False), pa.field("count", pa.uint64(), nullable=False)], metadata
    )
    return pa.Table.from_arrays([column, pa.array(counts)], schema=schema)


def columns_of(table: Any) -> tuple[bytes, Any, Any, dict[str, str]]:  # noqa: ANN401
    pa = _pyarrow("")
    if not {"word", "count"} <= set(table.column_names):
        message = f"the columns are {', '.join(table.column_names)}; counts have word and count"
        raise TrainingError(message)
    word, count = table["word"], table["count"]
    if word.null_count or count.null_count:
        message = f"the column {'word' if word.null_count else 'count'} has a null"
        raise TrainingError(message)
    try:
        words = word.cast(pa.large_string()).combine_chunks()
        counts = count.cast(pa.uint64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as cause:
        message = f"the columns are {word.type} and {count.type}; counts have string and uint64: {cause}"
        raise TrainingError(message) from cause
    if isinstance(words, pa.ChunkedArray):  # of no chunk
        words = pa.array([], pa.large_string())
    _, offsets, text = words.buffers()
    ends = np.frombuffer(offsets, np.int64)[words.offset :] if offsets is not None else np.zeros(1, np.int64)
    start, end = (int(ends[0]), int(ends[len(words)])) if len(words) else (0, 0)
    data = bytes(memoryview(text)[start:end]) if text is not None and end else b""
    metadata = {
        name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for name, value in (table.schema.metadata or {}).items()
    }
    return data, ends[1 : len(words) + 1] - start, np.ascontiguousarray(counts), metadata


def _from_parquet(path: Path) -> tuple[bytes, Any, Any, dict[str, str]]:
    return _from_arrow_library(path, lambda: _pyarrow("parquet").read_table(path))


def _from_arrow(path: Path) -> tuple[bytes, Any, Any, dict[str, str]]:
    return _from_arrow_library(path, lambda: _pyarrow("feather").read_table(path))


def _from_arrow_library(path: Path, read_table: Any) -> tuple[bytes, Any, Any, dict[str, str]]:  # noqa: ANN401
    pa = _pyarrow("")
    path.open("rb").close()  # what the system says about the file is told in its own words
    try:
        table = read_table()
    except (pa.ArrowException, OSError) as cause:
        message = f"not a file of this kind: {cause}"
        raise TrainingError(message) from cause
    return columns_of(table)


def _to_parquet(words: _core.WordCounts, metadata: dict[str, str]) -> bytes:
    sink = io.BytesIO()
    _pyarrow("parquet").write_table(_table(words, metadata), sink, compression="zstd", store_schema=True)
    return sink.getvalue()


def _to_arrow(words: _core.WordCounts, metadata: dict[str, str]) -> bytes:
    table = _table(words, metadata)
    pa = _pyarrow("")
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


_KINDS: dict[str, tuple[Any, Any]] = {
    ".parquet": (_from_parquet, _to_parquet),
    ".arrow": (_from_arrow, _to_arrow),
    ".feather": (_from_arrow, _to_arrow),
    ".tsv": (_from_tsv, _to_tsv),
}
