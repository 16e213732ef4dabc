r"""Files of word counts: Parquet, Arrow, and lines of ``word<TAB>count``.

All have the columns ``word`` and ``count``, sorted by count descending, then by word, and `CountsInfo` as metadata.
"""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert._internal.atomic_file import write_bytes
from wordpiece_bert._internal.checks import checked_path
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert.errors import InputError, TrainingError
from wordpiece_bert.training.options import NormalizerSettings, differences, read_pipeline

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "word-counts/1"
PREFIX = "wordpiece_bert."
# The largest count: they have 64 bits.
LARGEST = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class CountsInfo:
    """Everything about counts except the words: the normalizer settings, and totals of what was read.

    The numbers are the properties of `WordCounts` with the same names.
    """

    settings: NormalizerSettings | None = None
    texts: int = 0
    bytes: int = 0
    undercount: int = 0
    dropped: int = 0
    replaced: int = 0
    skipped: int = 0

    def merged(self, other: CountsInfo) -> CountsInfo:
        """Return the information about the sum of two counts.

        Raises
        ------
        TrainingError
            They were counted with different settings.
        """
        mine, others = self.settings, other.settings
        if mine is not None and others is not None and mine != others:
            raise TrainingError(
                f"counts made with different settings cannot be added: {differences(mine, others)}; "
                "count both with the same settings"
            )
        numbers = {name: mine_n + getattr(other, name) for name, mine_n in self._numbers().items()}
        return CountsInfo(settings=None if others is None else mine, **numbers)

    def _numbers(self) -> dict[str, int]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "settings"}

    def metadata(self, words: int) -> dict[str, str]:
        """Return the metadata of a file with this many distinct words."""
        known = {"schema": SCHEMA}
        if self.settings is not None:
            known |= {"pipeline": self.settings.pipeline, "fingerprint": self.settings.fingerprint}
        known |= {name: str(number) for name, number in self._numbers().items()} | {"words": str(words)}
        return {PREFIX + name: value for name, value in known.items()}

    @classmethod
    def read(cls, metadata: dict[str, str], words: int) -> CountsInfo:
        """Parse the metadata of a file, and check the number of its words.

        Raises
        ------
        TrainingError
            The metadata is of another version, or contradicts itself or the words.
        """
        known = {name.removeprefix(PREFIX): value for name, value in metadata.items() if name.startswith(PREFIX)}
        if not known:
            return cls()
        if known.get("schema") != SCHEMA:
            raise TrainingError(f"the schema is {known.get('schema')!r}; only {SCHEMA!r} can be read")
        settings = read_pipeline(known["pipeline"]) if "pipeline" in known else None
        if settings is not None and known.get("fingerprint") != settings.fingerprint:
            raise TrainingError("the fingerprint does not match the settings in the file; count again")
        names = [name for name in asdict(cls()) if name != "settings"]
        numbers = {}
        for name in [*names, "words"]:
            value = known.get(name, "0")
            if not (value.isascii() and value.isdigit()):
                raise TrainingError(f"the metadata has {value!r} for {name}, which is not a number")
            numbers[name] = int(value)
        if "words" in known and numbers["words"] != words:
            raise TrainingError(
                f"there are {words:,} words, but the metadata says {numbers['words']:,}: the file is incomplete"
            )
        return cls(settings=settings, **{name: numbers[name] for name in names})


def read(path: Path) -> tuple[_core.WordCounts, CountsInfo]:
    """Read a file of counts.

    Raises
    ------
    TrainingError
        The file is invalid; the message begins with its path.
    InputError
        The suffix is not supported, or pyarrow is needed and not installed.
    """
    checked_path(path)
    columns = _kind(path)[0]
    try:
        text, ends, counts, metadata = columns(path)
        if len(counts) and not counts.all():
            raise TrainingError("a count is 0")
        inner = _core.WordCounts.from_columns(text, ends, counts)
        if len(inner) != len(counts):
            raise TrainingError("a word is empty")
        return inner, CountsInfo.read(metadata, len(counts))
    except (TrainingError, InputError) as error:
        raise type(error)(f"{path}: {error}") from error.__cause__


def write(path: Path, words: _core.WordCounts, info: CountsInfo) -> None:
    """Write a file of counts, atomically. Errors are as for `read`."""
    to_bytes = _kind(path)[1]
    write_bytes(path, to_bytes(words, info.metadata(len(words))))


def _kind(path: Path) -> tuple[Any, Any]:
    kind = _KINDS.get(path.suffix)
    if kind is None:
        raise InputError(f"{path}: a file of counts must have one of the suffixes {', '.join(_KINDS)}")
    return kind


# --- TSV


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
                raise TrainingError(f"line {number} has no tab; a line must be a word, a tab and a count")
            continue
        if not (count.isdigit() and 0 < int(count) <= LARGEST) or b"\t" in word:
            raise TrainingError(f"line {number} is {line[:80]!r}; a line must be a word, a tab and a count above 0")
        try:
            word.decode("utf-8")
        except UnicodeDecodeError:
            raise TrainingError(f"line {number} is not UTF-8: {word[:80]!r}") from None
        text += word
        ends.append(len(text))
        counts.append(int(count))
    return bytes(text), np.array(ends, np.int64), np.array(counts, np.uint64), metadata


def _to_tsv(words: _core.WordCounts, metadata: dict[str, str]) -> bytes:
    # Without known settings the file is a plain list, which other programs can read and write.
    lines = [f"# {name}={value}" for name, value in metadata.items()] if PREFIX + "pipeline" in metadata else []
    for word, count in words.items(None):
        if "\t" in word or "\n" in word or word.endswith("\r"):
            raise TrainingError(
                f"the word {word!r} has a tab or a line break, which a .tsv cannot hold; save as .parquet or .arrow"
            )
        lines.append(f"{word}\t{count}")
    return "".join(f"{line}\n" for line in lines).encode()


# --- Arrow and Parquet


def _pyarrow(module: str) -> Any:
    try:
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError as cause:
        raise InputError(
            "counts in Arrow and Parquet need pyarrow: pip install 'wordpiece-bert[arrow]', or use .tsv"
        ) from cause
    return {"": pyarrow, "feather": pyarrow.feather, "parquet": pyarrow.parquet}[module]


def _table(words: _core.WordCounts, metadata: dict[str, str]) -> Any:
    pa = _pyarrow("")
    text, ends, counts = words.columns()
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    # The type string has 32-bit offsets; large_string, with 64 bits, is used only where it is needed.
    large = len(text) > np.iinfo(np.int32).max
    kind = pa.large_string() if large else pa.string()
    offsets = offsets.astype(np.int64 if large else np.int32)
    column = pa.Array.from_buffers(kind, len(counts), [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    schema = pa.schema(
        [pa.field("word", kind, nullable=False), pa.field("count", pa.uint64(), nullable=False)], metadata
    )
    return pa.Table.from_arrays([column, pa.array(counts)], schema=schema)


def columns_of(table: Any) -> tuple[bytes, Any, Any, dict[str, str]]:
    """Return the words as UTF-8 bytes, the end of each, the counts, and the metadata of an Arrow table.

    Raises
    ------
    TrainingError
        A column is missing, has a null, or has the wrong type.
    """
    pa = _pyarrow("")
    if not {"word", "count"} <= set(table.column_names):
        raise TrainingError(f"the columns are {', '.join(table.column_names)}; a file of counts has word and count")
    word, count = table["word"], table["count"]
    if word.null_count or count.null_count:
        raise TrainingError(f"the column {'word' if word.null_count else 'count'} has a null")
    try:
        words = word.cast(pa.large_string()).combine_chunks()
        counts = count.cast(pa.uint64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as cause:
        raise TrainingError(
            f"the columns are {word.type} and {count.type}; they must be string and uint64: {cause}"
        ) from cause
    if isinstance(words, pa.ChunkedArray):  # combine_chunks returns one for a column without chunks
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


def _from_arrow_library(path: Path, read_table: Any) -> tuple[bytes, Any, Any, dict[str, str]]:
    pa = _pyarrow("")
    path.open("rb").close()  # a missing file raises the plain OSError, not pyarrow's
    try:
        table = read_table()
        table.validate(full=True)  # offsets and text, which reading alone does not check
        return columns_of(table)
    except (TrainingError, InputError):
        raise
    # A damaged name is a UnicodeDecodeError; a damaged size of a buffer can be more than there is memory.
    except (pa.ArrowException, OSError, ValueError, TypeError, MemoryError) as cause:
        raise TrainingError(f"invalid file: {cause}") from cause


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
