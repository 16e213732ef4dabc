"""Writes what ``torch.load`` reads: the zip archive of ``torch.save``, with tensors of float32 by their names.

`torch_files` says what is in such an archive. The pickle is written here operation by operation, because a pickler
would import torch to name its functions.

Source: ``torch/serialization.py``; the Python module ``pickletools`` for the operations.
"""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.bert.functional import Array

#: The folder in the archive, for which torch takes the name of the file.
_FOLDER = "archive"


def torch_file(tensors: Mapping[str, Array]) -> bytes:
    """Return the content of a file with a dict of tensors, as torch stores a state dict.

    Parameters
    ----------
    tensors : mapping of str to ndarray
        The tensors, float32.
    """
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED) as archive:

        def write(name: str, content: bytes) -> None:
            archive.writestr(zipfile.ZipInfo(f"{_FOLDER}/{name}"), content)  # with a date that is always the same

        write("data.pkl", _described(tensors))
        write("byteorder", b"little")
        for index, tensor in enumerate(tensors.values()):
            write(f"data/{index}", np.ascontiguousarray(tensor, "<f4").tobytes())
        write("version", b"3\n")
    return stored.getvalue()


def _described(tensors: Mapping[str, Array]) -> bytes:
    """Return the pickle of a dict whose tensors name their storages."""
    parts = [pickle.PROTO, b"\x02", pickle.EMPTY_DICT, pickle.MARK]
    for index, (name, tensor) in enumerate(tensors.items()):
        steps = [int(np.prod(tensor.shape[axis + 1 :])) for axis in range(tensor.ndim)]
        parts += [_text(name), _named("torch._utils", "_rebuild_tensor_v2"), pickle.MARK]
        parts += [pickle.MARK, _text("storage"), _named("torch", "FloatStorage"), _text(str(index)), _text("cpu")]
        parts += [_number(tensor.size), pickle.TUPLE, pickle.BINPERSID]
        parts += [_number(0), _numbers(tensor.shape), _numbers(steps), pickle.NEWFALSE]
        parts += [_named("collections", "OrderedDict"), pickle.EMPTY_TUPLE, pickle.REDUCE]
        parts += [pickle.TUPLE, pickle.REDUCE]
    return b"".join([*parts, pickle.SETITEMS, pickle.STOP])


def _text(text: str) -> bytes:
    encoded = text.encode("utf-8")
    return pickle.BINUNICODE + struct.pack("<I", len(encoded)) + encoded


def _named(module: str, name: str) -> bytes:
    return pickle.GLOBAL + f"{module}\n{name}\n".encode()


def _number(number: int) -> bytes:
    return pickle.BININT + struct.pack("<i", number)


def _numbers(numbers: tuple[int, ...] | list[int]) -> bytes:
    return pickle.MARK + b"".join(map(_number, numbers)) + pickle.TUPLE
