"""Checkpoints of a training: everything that the next step depends on, written atomically.

A checkpoint is a folder ``checkpoint-STEP`` with the model (``config.json``, ``model.safetensors``), the moments of the
optimizer and the parameters of the loss (``training.safetensors``), and ``trainer_state.json``. The random numbers are
functions of seed and step, so there is no state of a generator.
"""

from __future__ import annotations

import math
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.atomic_folder import check_complete, written_folder
from wordpiece_bert._internal.checks import real_number
from wordpiece_bert._internal.json_text import json_text
from wordpiece_bert._internal.safe_json import quoted, read_object
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.checkpoint.safetensors import safetensors_chunks
from wordpiece_bert.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert._internal.safe_json import JsonObject
    from wordpiece_bert.bert.functional import Array

_STATE, _TENSORS = "trainer_state.json", "training.safetensors"
_FORMAT, _VERSION = "wordpiece-bert training", 1
_NAME = re.compile(r"^checkpoint-(\d+)$")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The content of a checkpoint.

    Attributes
    ----------
    state : dict
        Step, history, settings and the like, as JSON holds them: a metric in the history that was not finite is null
        in the file, and NaN when it is read.
    parameters : dict of str to array
        The trained parameters, float32.
    moments : dict of str to pair of arrays
        m and v of the optimizer.
    """

    state: dict[str, Any]
    parameters: dict[str, Array]
    moments: dict[str, tuple[Array, Array]]


def write(
    folder: Path,
    state: Mapping[str, Any],
    parameters: Mapping[str, Array],
    moments: Mapping[str, tuple[Array, Array]],
    write_model: Callable[[AtomicFolder], None],
) -> None:
    """Write a checkpoint; it appears under its name only when it is complete and synced.

    Parameters
    ----------
    folder : Path
        ``checkpoint-STEP``.
    state, parameters, moments
        As in `Checkpoint`.
    write_model : callable
        Writes the files with which the model is loaded.

    Raises
    ------
    OSError
        A file cannot be written; no folder of this name has appeared.
    """
    tensors = {f"parameter.{name}": array for name, array in parameters.items()}
    for name, (m, v) in moments.items():
        tensors |= {f"m.{name}": m, f"v.{name}": v}
    content = {"format": _FORMAT, "version": _VERSION, **state}
    with written_folder(folder) as output:
        write_model(output)
        output.write(_TENSORS, safetensors_chunks(tensors))
        output.write_text(_STATE, json_text(content, indent=1) + "\n")


def read(folder: Path) -> Checkpoint:
    """Read a checkpoint.

    Parameters
    ----------
    folder : Path
        ``checkpoint-STEP``.

    Raises
    ------
    CheckpointError
        It is incomplete, damaged, or of another version.
    """
    if not (folder / _STATE).is_file() or not (folder / _TENSORS).is_file():
        raise CheckpointError(f"{folder}: it has no {_STATE} and {_TENSORS}, so it is no checkpoint of a training")
    check_complete(folder)
    state = read_object(folder / _STATE, CheckpointError, max_bytes=1 << 30)
    if state.get("format") != _FORMAT or state.get("version") != _VERSION:
        found = f"{state.get('format')!r}, version {state.get('version')!r}"
        raise CheckpointError(f"{folder}: its format is {found}, not {_FORMAT!r}, version {_VERSION}")
    _check_state(folder / _STATE, state)
    for entry in state["history"]:
        entry |= {name: math.nan for name, value in entry.items() if value is None}
    tensors = {name: np.array(array, np.float32) for name, array in read_tensors(folder / _TENSORS).items()}
    parameters, moments = {}, {}
    for name, array in tensors.items():
        kind, _, parameter = name.partition(".")
        if kind == "parameter":
            parameters[parameter] = array
        elif kind == "m" and f"v.{parameter}" in tensors:
            moments[parameter] = array, tensors[f"v.{parameter}"]
    return Checkpoint(state, parameters, moments)


def _check_state(file: Path, state: JsonObject) -> None:
    """Raise a `CheckpointError` unless the fields that a training goes on from are as `write` gets them."""
    losses, history, best = (state.get(name) for name in ("recent_losses", "history", "best"))
    right = {
        "step": _is_count(state.get("step")),
        "arguments": isinstance(state.get("arguments"), dict),
        "recent_losses": isinstance(losses, list) and all(map(_is_number, losses)),
        "history": isinstance(history, list) and all(isinstance(entry, dict) for entry in history),
        "best": best is None or (isinstance(best, dict) and _is_best(**best)),
    }
    for name, is_right in right.items():
        if not is_right:
            found = quoted(state.get(name))
            raise CheckpointError(f"{file}: {name} is {found}, which no training has written: the file was changed")


def _is_number(value: object) -> bool:
    return math.isfinite(real_number(value))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _is_best(
    value: object = None,
    step: object = None,
    checkpoint: object = None,
    evaluations_since: object = 0,
    **others: object,
) -> bool:
    """Return whether these are fields of the best evaluation."""
    is_name = isinstance(checkpoint, str) and _NAME.match(checkpoint)
    none = value is None and step is None and checkpoint is None
    return (
        not others
        and _is_count(evaluations_since)
        and (none or bool(_is_number(value) and _is_count(step) and is_name))
    )


def folders(output: Path) -> list[Path]:
    """Return the complete checkpoints of a training, the oldest first.

    Parameters
    ----------
    output : Path
        The training's `output_dir`.
    """
    if not output.is_dir():
        return []
    found = {int(match[1]): path for path in output.iterdir() if (match := _NAME.match(path.name))}
    return [found[step] for step in sorted(found) if is_complete(found[step])]


def is_complete(folder: Path) -> bool:
    """Return whether there is a complete checkpoint.

    Parameters
    ----------
    folder : Path
        ``checkpoint-STEP``.
    """
    return (folder / _STATE).is_file()


def newest(output: Path) -> Path:
    """Return the newest complete checkpoint of a training.

    Parameters
    ----------
    output : Path
        The training's `output_dir`.

    Raises
    ------
    CheckpointError
        There is none.
    """
    complete = folders(output)
    if not complete:
        raise CheckpointError(f"{output}: there is no checkpoint to resume from")
    return complete[-1]


def refuse_existing(output: Path) -> None:
    """Raise an error if a folder has checkpoints, which a new training would overwrite.

    Parameters
    ----------
    output : Path
        The training's `output_dir`.

    Raises
    ------
    CheckpointError
        It has checkpoints; the message says how to resume from them, or to begin again.
    """
    if found := folders(output):
        raise CheckpointError(
            f"{output}: it has checkpoints of an earlier training, up to {found[-1].name}; resume from there with "
            "resume_from_checkpoint=True, begin again with overwrite_output_dir=True, which removes them, or choose "
            "another folder"
        )


def remove_all(output: Path) -> None:
    """Remove all checkpoints of a training.

    Parameters
    ----------
    output : Path
        The training's `output_dir`.
    """
    for path in folders(output):
        shutil.rmtree(path)


def remove_old(output: Path, limit: int, keep: Path | None) -> None:
    """Remove all but the newest checkpoints.

    Parameters
    ----------
    output : Path
        The training's `output_dir`.
    limit : int
        How many stay.
    keep : Path
        One that stays in any case.
    """
    for path in folders(output)[:-limit]:
        if keep is None or path.resolve() != keep.resolve():
            shutil.rmtree(path)
