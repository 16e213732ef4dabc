"""Fingerprints of vectors: of which texts they are and what computed them, in a form that is kept beside the vectors.

A fingerprint is a record of several fields, so that two of them can be compared, and a difference be named. In Parquet
and Arrow files it is in the metadata. For .npy and JSON lines it is in a file of its own, the sidecar.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.ordinary_file import require_ordinary_file
from wordpiece_bert._internal.safe_json import MAX_CONFIG_BYTES, parse_json, quoted
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

#: The key of the fingerprint in the metadata of Parquet and Arrow files.
METADATA_KEY = "wordpiece_bert.fingerprint"
#: The version of the format. A change of what a field is computed from is a new version.
VERSION = 1

_SUFFIX = ".fingerprint.json"
# The vectors that `VectorsDigest` reads: the first ones, and every so many of the others.
_FIRST, _STEP = 1024, 1024

# What the parts of a model are called in messages.
_PARTS = {
    "weights": "the weights of the model",
    "configuration": "the configuration of the model",
    "modules": "the modules after the encoder, such as the pooling",
    "tokenizer": "the tokenizer",
}
# The fields that older records lack, which then have their defaults.
_ADDED = ("instructions", "numerics", "ids")
_VERSIONS = {"numerics": "vectors in {}", "ids": "the tokenizer's ids"}


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """Of which texts vectors are, and what computed them. Digests are SHA-256 in hex."""

    #: The digests of the contents of the model, by part: weights, configuration, modules, tokenizer.
    model: dict[str, str]
    #: The dtype of the matrix products.
    dtype: str
    #: The digest of the texts that int8 inputs were calibrated with; None for the default.
    calibration: str | None
    #: What was put before each text.
    prompt: str
    #: The longest row in tokens.
    max_seq_length: int
    #: Whether the vectors were scaled to length 1; None if that is not compared.
    normalized: bool | None
    #: The number of dimensions.
    dimension: int
    #: The digest of the texts and their number; None if they are not known, and so not compared.
    texts: str | None
    count: int | None
    #: The digest of the vectors themselves, which ties the record to them; empty before they are computed.
    vectors: str = ""
    #: The version of this package, which is not compared.
    library: str = _core.__version__
    #: The instructions that multiplied, on which the last bits depend; recorded, and not compared.
    instructions: str = ""
    #: The versions of the vectors of this dtype, and of the tokenizer's ids; a record without them has the first.
    numerics: int = 1
    ids: int = 1

    def to_json(self) -> str:
        """Return the record that is stored."""
        return json.dumps({"version": VERSION, **asdict(self)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, record: bytes, where: str) -> Fingerprint:
        """Read a record.

        Parameters
        ----------
        record
            JSON in UTF-8.
        where
            The file, for messages.

        Raises
        ------
        InputError
            It is malformed, or of another version.
        """

        def refuse(what: str) -> NoReturn:
            raise InputError(f"{where}: the fingerprint of the vectors {what}")

        content = parse_json(record, where, InputError)
        if not isinstance(content, dict):
            refuse("is no JSON object")
        if content.get("version") != VERSION:
            version = quoted(content.get("version"))
            refuse(f"has the version {version}, not {VERSION}: it was written by another version of wordpiece-bert")
        found: dict[str, Any] = {}
        for field in fields(cls):
            value = content.get(field.name, field.default if field.name in _ADDED else None)
            kinds = _KINDS[str(field.type)]
            if type(value) not in kinds or (isinstance(value, dict) and not set(map(type, value.values())) <= {str}):
                refuse(f"is malformed: {field.name} is {quoted(value)}")
            found[field.name] = value
        return cls(**found)

    def differences(self, now: Fingerprint) -> list[str]:
        """Return what differs from the fingerprint that is expected now, in words; `vectors` are not compared."""
        found = [
            _PARTS.get(part, part)
            for part in sorted(self.model.keys() | now.model.keys())
            if self.model.get(part) != now.model.get(part)
        ]
        for name in ("dtype", "prompt", "max_seq_length", "normalized", "dimension"):
            before, after = getattr(self, name), getattr(now, name)
            if before != after and after is not None:
                called = "truncate_dim, the dimension" if name == "dimension" else name
                found.append(f"{called} ({_shown(before)} in the file, {_shown(after)} now)")
        for name, called in _VERSIONS.items():
            before, after = getattr(self, name), getattr(now, name)
            if before != after and (name == "ids" or self.dtype == now.dtype):
                found.append(
                    f"{name}, how wordpiece-bert computes {called.format(self.dtype)} (version {before} in the file, "
                    f"written by {self.library}; {after} now)"
                )
        if self.calibration != now.calibration:
            found.append("calibrate, the texts of the int8 calibration")
        if now.texts is not None and (self.texts, self.count) != (now.texts, now.count):
            other = "" if self.count == now.count else f" ({self.count} in the file, {now.count} now)"
            found.append(f"the texts{other}")
        return found

    def key(self) -> str:
        """Return a digest of everything that is compared, for the name of a file."""
        compared = {
            name: value for name, value in asdict(self).items() if name not in ("vectors", "library", "instructions")
        }
        return hashlib.sha256(json.dumps([VERSION, compared], sort_keys=True).encode()).hexdigest()[:32]


_KINDS: dict[str, tuple[type, ...]] = {
    "dict[str, str]": (dict,),
    "str": (str,),
    "str | None": (str, type(None)),
    "int": (int,),
    "int | None": (int, type(None)),
    "bool | None": (bool, type(None)),
}


def _shown(value: object) -> str:
    return quoted(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


class TextsDigest:
    """The digest of a sequence of texts, which does not depend on how they are divided into blocks."""

    def __init__(self) -> None:
        self._bytes, self._lengths = hashlib.sha256(), hashlib.sha256()
        self.count = 0

    def add_utf8(self, content: bytes, lengths: npt.NDArray[np.int64]) -> None:
        """Add texts: their UTF-8 bytes, one after the other, and the number of bytes of each."""
        self._bytes.update(content)
        self._lengths.update(lengths.astype("<i8", copy=False).data)
        self.count += len(lengths)

    def add(self, texts: Sequence[str]) -> None:
        """Add texts."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        self.add_utf8(b"".join(encoded), np.fromiter(map(len, encoded), np.int64, len(encoded)))

    def hexdigest(self) -> str:
        """Return the digest of the texts that were added."""
        return hashlib.sha256(self._bytes.digest() + self._lengths.digest()).hexdigest()


class VectorsDigest:
    """A digest of the first 1,024 vectors and of every 1,024th: quick, and another one for another model or order.

    It depends on the values as float32, not on how a file stores them.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._count = 0

    def append(self, vectors: npt.NDArray[Any]) -> None:
        """Add vectors [n, d]."""
        start, end = self._count, self._count + len(vectors)
        some = np.arange(max(start, _FIRST) + -max(start, _FIRST) % _STEP, end, _STEP)
        rows = np.concatenate([np.arange(start, min(end, _FIRST)), some]) - start
        with np.errstate(over="ignore", invalid="ignore"):
            self._hash.update(np.ascontiguousarray(vectors[rows], "<f4").tobytes())
        self._count = end

    def hexdigest(self, width: int) -> str:
        """Return the digest of the vectors that were added, of `width` numbers each."""
        of_shape = hashlib.sha256(f"{self._count} {width} ".encode() + self._hash.digest())
        return of_shape.hexdigest()


def sidecar_of(path: Path) -> Path:
    """Return the file that has the fingerprint of a file of vectors whose format has no place for it."""
    return path.with_name(path.name + _SUFFIX)


def read_sidecar(path: Path) -> bytes | None:
    """Read the stored fingerprint of a file of vectors from its sidecar; None if there is none.

    Raises
    ------
    InputError
        The sidecar is not an ordinary file, or larger than a fingerprint can be.
    OSError
        It cannot be read.
    """
    sidecar = sidecar_of(Path(os.path.realpath(path)))
    try:
        require_ordinary_file(sidecar)
    except FileNotFoundError:
        return None
    with sidecar.open("rb") as file:
        record = file.read(MAX_CONFIG_BYTES + 1)
    if len(record) > MAX_CONFIG_BYTES:
        raise InputError(f"{sidecar}: larger than {MAX_CONFIG_BYTES:,} bytes, the limit for a fingerprint")
    return record
