"""A producer of Arrow columns that can break the rules: the structures of the C interface, made with ctypes."""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_char_p, c_int, c_int64, c_void_p
from typing import Any


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
RELEASE_STREAM = ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))
GET_SCHEMA = ctypes.CFUNCTYPE(c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))
GET_NEXT = ctypes.CFUNCTYPE(c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))
GET_LAST_ERROR = ctypes.CFUNCTYPE(c_void_p, ctypes.POINTER(Stream))

Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_char_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", RELEASE_SCHEMA),
    ("private_data", c_void_p),
]
Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", ctypes.POINTER(c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", RELEASE_ARRAY),
    ("private_data", c_void_p),
]
Stream._fields_ = [
    ("get_schema", GET_SCHEMA),
    ("get_next", GET_NEXT),
    ("get_last_error", GET_LAST_ERROR),
    ("release", RELEASE_STREAM),
    ("private_data", c_void_p),
]

#: All structures and buffers ever made, so that what a capsule points to outlives every test.
KEPT: list[Any] = []
#: How often each kind of structure was released.
RELEASED = {"schema": 0, "array": 0, "stream": 0}


def _release(kind: str, function: Any) -> Any:
    @function  # type: ignore[untyped-decorator]
    def release(pointer: Any) -> None:
        RELEASED[kind] += 1
        pointer[0].release = function()

    return release


RELEASES = {
    "schema": _release("schema", RELEASE_SCHEMA),
    "array": _release("array", RELEASE_ARRAY),
    "stream": _release("stream", RELEASE_STREAM),
}


def _pointers(structures: Any, kind: Any) -> Any:
    pointers = (ctypes.POINTER(kind) * max(1, len(structures)))(*(map(ctypes.pointer, structures)))
    KEPT.append(pointers)
    return ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(kind)))


def schema(form: bytes, *children: Schema, dictionary: Schema | None = None, **wrong: Any) -> Schema:
    """A schema. Keyword arguments overwrite fields of the finished structure, to break it."""
    made = Schema(format=form, name=b"", n_children=len(children), release=RELEASES["schema"])
    if children:
        made.children = _pointers(children, Schema)
    if dictionary is not None:
        made.dictionary = ctypes.pointer(dictionary)
    for name, value in wrong.items():
        setattr(made, name, value)
    KEPT.append(made)
    return made


def again(kind: bytes, *children: bytes, **wrong: Any) -> Schema:
    return schema(kind, *map(schema, children), **wrong)


def array(
    length: int,
    buffers: list[bytes | None],
    /,
    *children: Array,
    dictionary: Array | None = None,
    **wrong: Any,
) -> Array:
    """An array over copies of the buffers. Keyword arguments overwrite fields of the finished structure, to break it."""
    held = [None if buffer is None else ctypes.create_string_buffer(buffer, len(buffer) + 1) for buffer in buffers]
    addresses = (c_void_p * max(1, len(held)))(*(None if b is None else ctypes.addressof(b) for b in held))
    made = Array(length=length, n_buffers=len(held), n_children=len(children), release=RELEASES["array"])
    made.buffers = ctypes.cast(addresses, ctypes.POINTER(c_void_p))
    if children:
        made.children = _pointers(children, Array)
    if dictionary is not None:
        made.dictionary = ctypes.pointer(dictionary)
    for name, value in wrong.items():
        setattr(made, name, value)
    KEPT.append((made, held, addresses))
    return made


def ends(*numbers: int, size: int = 4) -> bytes:
    """Signed integers of `size` bytes each, in native byte order."""
    return b"".join(number.to_bytes(size, sys.byteorder, signed=True) for number in numbers)


def strings(*texts: bytes, **wrong: Any) -> Array:
    """An array of type utf8."""
    offsets = [0]
    for text in texts:
        offsets.append(offsets[-1] + len(text))
    return array(len(texts), [None, ends(*offsets), b"".join(texts)], **wrong)


def capsule(structure: Any, name: bytes) -> Any:
    """A capsule that points to a structure without owning it."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [c_void_p, c_char_p, c_void_p]
    KEPT.append(name)
    return new(ctypes.addressof(structure), name, None)


class Column:
    """An object that passes on one array."""

    def __init__(self, kind: Schema, column: Array) -> None:
        self.kind, self.column = kind, column

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return capsule(self.kind, b"arrow_schema"), capsule(self.column, b"arrow_array")


class Columns:
    """An object that passes on a stream of arrays; bytes in place of an array make the stream fail with that message."""

    def __init__(self, kind: Schema | bytes, columns: list[Array | bytes], **wrong: Any) -> None:
        self.kind, self.columns, self.error = kind, list(columns), ctypes.create_string_buffer(b"", 200)
        self.functions = (GET_SCHEMA(self._schema), GET_NEXT(self._next), GET_LAST_ERROR(self._last_error))
        self.stream = Stream(*self.functions, RELEASES["stream"])
        for name, value in wrong.items():
            setattr(self.stream, name, value)
        KEPT.append(self)

    def _write(self, structure: Any, out: Any) -> int:
        if isinstance(structure, bytes):
            self.error.value = structure
            return 5
        ctypes.memmove(out, ctypes.addressof(structure), ctypes.sizeof(structure))
        return 0

    def _schema(self, _: Any, out: Any) -> int:
        return self._write(self.kind, out)

    def _next(self, _: Any, out: Any) -> int:
        return self._write(self.columns.pop(0) if self.columns else Array(), out)

    def _last_error(self, _: Any) -> int:
        return ctypes.addressof(self.error)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return capsule(self.stream, b"arrow_array_stream")
