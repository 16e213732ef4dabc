"""The formats of examples: one entry for each, which `build_examples` and the command read.

How rows are written is in the classes of `sinks`. A module is imported when its format is needed.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from wordpiece_bert.pretraining.sinks.row_sink import RowSink


@dataclass(frozen=True, kw_only=True)
class RowFormat:
    """A format of examples.

    Attributes
    ----------
    name : str
        The value of ``format=`` and ``--format``.
    module, sink : str
        The class that writes it, and its module, which is imported when the format is needed.
    suffixes : tuple of str
        The suffixes of outputs for which it is the default.
    """

    name: str
    module: str
    sink: str
    suffixes: tuple[str, ...] = ()

    def load(self) -> type[RowSink]:
        """Return the class that writes the format."""
        return cast("type[RowSink]", getattr(importlib.import_module(self.module), self.sink))


#: The formats by name. The first is for an output without a known suffix.
FORMATS: dict[str, RowFormat] = {}


def register(entry: RowFormat) -> None:
    """Add a format, or replace the one of this name."""
    FORMATS[entry.name] = entry


def format_of(path: Path, given: object = None) -> RowFormat:
    """Return the format of an output.

    Parameters
    ----------
    path : Path
        The output.
    given : str, optional
        The name of the format; by default the format of the suffix of `path`, or ``"npy"``.

    Raises
    ------
    InputError
        There is no such format.
    """
    if given is None:
        by_suffix = (entry for entry in FORMATS.values() if path.suffix in entry.suffixes)
        return next(by_suffix, FORMATS["npy"])
    if not isinstance(given, str) or given not in FORMATS:
        raise InputError(f"format must be one of {', '.join(map(repr, FORMATS))}, not {given!r:.80}")
    return FORMATS[given]


_SINKS = "wordpiece_bert.pretraining.sinks"
for _entry in (
    RowFormat(name="npy", module=f"{_SINKS}.array_folder", sink="ArrayFolder"),
    RowFormat(name="arrow", module=f"{_SINKS}.tables", sink="ArrowRows", suffixes=(".arrow",)),
    RowFormat(name="parquet", module=f"{_SINKS}.tables", sink="ParquetRows", suffixes=(".parquet",)),
    RowFormat(name="jsonl", module=f"{_SINKS}.tables", sink="JsonRows", suffixes=(".jsonl",)),
    RowFormat(name="mds", module=f"{_SINKS}.mds", sink="MdsFolder", suffixes=(".mds",)),
    RowFormat(name="tfrecord", module=f"{_SINKS}.tfrecord", sink="TfrecordRows", suffixes=(".tfrecord", ".tfrecords")),
):
    register(_entry)
