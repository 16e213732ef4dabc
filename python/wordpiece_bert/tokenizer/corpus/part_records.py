"""What a part of a larger output says about itself, so that parts of different calls are never put together.

A file has it beside itself, in ``FILE.part.json``; a folder of vectors has it in its list.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert._internal.atomic_file import write_text
from wordpiece_bert._internal.safe_json import quoted, read_object
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.file_lists import listed_files
from wordpiece_bert.tokenizer.corpus.file_parts import checked_part

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

_LARGEST = 100_000_000


@dataclass(frozen=True)
class PartRecord:
    """Which part of which call something is."""

    number: int
    count: int
    #: What decides about the output, as JSON has it: the same for all parts.
    call: dict[str, Any]

    @property
    def digest(self) -> str:
        """The SHA-256 of the call and of the number of parts."""
        return sha256(json.dumps([self.count, self.call], sort_keys=True).encode()).hexdigest()

    def __str__(self) -> str:
        return f"part {self.number}/{self.count}"

    def to_json(self) -> dict[str, Any]:
        """Return the record as an object of JSON."""
        return {"number": self.number, "count": self.count, "digest": self.digest, "call": self.call}

    @classmethod
    def from_json(cls, content: Any, where: str) -> PartRecord:
        """Read a record; an `InputError` names `where` it is if it is malformed, or its digest is another one."""
        try:
            number, count = checked_part((content["number"], content["count"]))
            found = cls(number, count, dict(content["call"]))
            whole = content["digest"] == found.digest
        except (KeyError, TypeError, ValueError, InputError) as cause:
            raise InputError(f"{where}: is not the record of a part: {cause}") from cause
        if not whole:
            raise InputError(f"{where}: the digest of the call does not fit the call: make the part again")
        return found


@dataclass(frozen=True)
class FileRecord:
    """What a file that is a part has beside itself."""

    part: PartRecord
    #: The sizes in bytes of the files that it consists of, by name.
    files: dict[str, int]
    rows: int
    #: What the last part knows of the texts of all parts, if the output has a fingerprint: digest and number.
    texts: tuple[str, int] | None = field(default=None)


def call_of(files: Iterable[str | os.PathLike[str]], **settings: Any) -> dict[str, Any]:
    """Return what decides about an output: the names and sizes of its inputs, settings, the version of this package.

    Values are those that JSON gives back.
    """
    inputs = [[name, Path(name).stat().st_size] for name in listed_files(files)]
    found: dict[str, Any] = json.loads(json.dumps({**settings, "inputs": inputs, "version": _core.__version__}))
    return found


def record_path(path: Path) -> Path:
    """Return the file that has the record of a file."""
    return path.with_name(f"{path.name}.part.json")


def write_record(path: Path, record: FileRecord) -> None:
    """Write the record of a file, which is complete."""
    content = {"part": record.part.to_json(), **{k: v for k, v in asdict(record).items() if k != "part"}}
    write_text(record_path(path), json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def read_record(path: Path) -> FileRecord:
    """Read the record of a file, and check that the file is complete.

    Raises
    ------
    InputError
        The file is no part or not complete, or its record is malformed.
    FileNotFoundError
        There is no such file.
    """
    beside = record_path(path)
    if not beside.is_file():
        path.stat()
        raise InputError(f"{path}: is not a complete part: {beside.name} is not beside it; run its command again")
    content = read_object(beside, InputError, max_bytes=_LARGEST)
    part = PartRecord.from_json(content.get("part"), str(beside))
    files, rows, texts = content.get("files"), content.get("rows"), content.get("texts")
    is_pair = isinstance(texts, list) and [*map(type, texts)] == [str, int]
    if (
        not isinstance(files, dict)
        or not files
        or not set(map(type, files.values())) <= {int}
        or any("/" in name for name in files)
        or type(rows) is not int
        or not (texts is None or is_pair)
    ):
        raise InputError(f"{beside}: is not the record of a part: {quoted(content)}")
    for name, size in files.items():
        actual = path.with_name(name).stat().st_size
        if actual != size:
            raise InputError(f"{path.with_name(name)}: has {actual:,} bytes, not {size:,}: make the part again")
    return FileRecord(part, files, rows, (texts[0], texts[1]) if texts else None)


def check_same(there: PartRecord, now: PartRecord, where: str) -> None:
    """Raise an `InputError` that has the difference if an output is another part than a call makes."""
    if there.digest != now.digest:
        raise InputError(f"{where} is of another call: {_difference(now, there)}. Choose another output")
    if there.number != now.number:
        raise InputError(f"{where} is {there}, not {now}: choose another output")


def in_order(records: Sequence[PartRecord], names: Sequence[str]) -> list[int]:
    """Return the order of the parts of one call.

    Raises
    ------
    InputError
        They are of several calls, or one is missing or there twice; the message has what differs.
    """
    first = records[0]
    for record, name in zip(records, names, strict=True):
        if record.digest != first.digest:
            raise InputError(f"{name} is of another call than {names[0]}: {_difference(first, record)}")
    place: dict[int, int] = {}
    for i, record in enumerate(records):
        if record.number in place:
            raise InputError(f"{names[place[record.number]]} and {names[i]} are both {record}: give it once")
        place[record.number] = i
    missing = [number for number in range(first.count) if number not in place]
    if missing:
        more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(f"part {missing[0]}/{first.count} is missing{more}: make it, and give all parts")
    return [place[number] for number in range(first.count)]


def _difference(first: PartRecord, second: PartRecord) -> str:
    if first.count != second.count:
        return f"it is {second}, the other one {first}"
    return f"what differs is {'; '.join(_differences(first.call, second.call)) or 'the order of settings'}"


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return in what two calls differ, in words."""
    found = []
    for name in sorted(first.keys() | second.keys()):
        before, now = first.get(name), second.get(name)
        if isinstance(before, dict) and isinstance(now, dict):
            found += _differences(before, now)
        elif before != now:
            found.append(f"{name} ({quoted(now)} here, {quoted(before)} there)")
    return found
