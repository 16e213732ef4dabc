"""Reads the pickles that PyTorch writes, restricted to an allow-list; nothing is imported or called.

A pickle is a program for a small stack machine, and one of its instructions can call any function of any module. This
interpreter implements only the instructions that build plain values, and accepts only the few names that ``torch.save``
uses for the tensors of a state dict. Names are compared as text; any other name is an error whose message quotes it.
A hostile file can therefore make this module build lists and dicts of about the size of the file, and nothing else.

Source: Python's ``pickletools`` for the instructions, ``torch/serialization.py`` and ``torch/_utils.py`` for the names.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, NoReturn

import numpy as np

from wordpiece_bert._internal.safe_json import quoted
from wordpiece_bert.bert.half_precision import BFLOAT16
from wordpiece_bert.errors import CheckpointError

#: Longest pickle, in bytes. A state dict of a thousand tensors has about 100 kB.
_LONGEST = 16_000_000

#: Longest integer, in bytes: the magic number of old files has 10.
_LONGEST_INTEGER = 16

_MOST_DIMENSIONS = 8

#: The dtypes of storages by their names in torch; little-endian, as in most files.
STORAGES: dict[str, np.dtype[Any]] = {
    "torch FloatStorage": np.dtype("<f4"),
    "torch HalfStorage": np.dtype("<f2"),
    "torch BFloat16Storage": BFLOAT16,
    "torch DoubleStorage": np.dtype("<f8"),
    "torch LongStorage": np.dtype("<i8"),
    "torch IntStorage": np.dtype("<i4"),
    "torch ShortStorage": np.dtype("<i2"),
    "torch CharStorage": np.dtype("i1"),
    "torch ByteStorage": np.dtype("u1"),
    "torch BoolStorage": np.dtype("?"),
}

_DICT = "collections OrderedDict"
_TENSORS = ("torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor")
_PARAMETER = "torch._utils _rebuild_parameter"


class Storage(NamedTuple):
    """A run of numbers of one dtype; several tensors may be views of one storage."""

    key: str  # decimal digits
    dtype: np.dtype[Any]
    length: int  # in numbers


class View(NamedTuple):
    """One tensor: the numbers of a storage that belong to it. The offset and the strides count numbers, not bytes."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Global(NamedTuple):
    """A name of the allow-list, which is never imported."""

    name: str


class _Mark:
    """The value that the instruction MARK pushes."""


_MARK = _Mark()


def read_pickle(data: memoryview, start: int, where: str) -> tuple[Any, int]:
    """Interpret one pickle.

    Parameters
    ----------
    data
        Bytes that contain it.
    start : int
        The offset of its first byte.
    where : str
        The file, for messages.

    Returns
    -------
    Any
        None, booleans, integers, floats, strings, tuples, lists, dicts with string keys, and a `View` for each tensor.
    int
        The offset of the byte after the pickle.

    Raises
    ------
    CheckpointError
        The pickle is truncated or malformed, or has an instruction or a name that is not allowed.
    """
    return _Machine(data, start, where).run()


class _Machine:
    """The stack machine."""

    def __init__(self, data: memoryview, start: int, where: str) -> None:
        self._data = data
        self._position = start
        self._end = min(len(data), start + _LONGEST)
        self._where = where
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> tuple[Any, int]:
        try:
            while True:
                code = self.take(1)[0]
                if code == _STOP:
                    return self._pop(), self._position
                step = _STEPS.get(code)
                if step is None:
                    self._refuse(f"has the instruction 0x{code:02x}, which files of tensors do not need")
                step(self)
        finally:
            self._stack.clear()
            self._memo.clear()

    # --- the stream

    def take(self, count: int) -> bytes:
        if count > self._end - self._position:
            self._refuse(f"is truncated, or longer than {_LONGEST:,} bytes")
        self._position += count
        return bytes(self._data[self._position - count : self._position])

    def number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def _line(self) -> str:
        """Read a line, the operand of an instruction in text form."""
        found = bytes(self._data[self._position : min(self._end, self._position + 256)]).find(b"\n")
        if found < 0:
            self._refuse("has a name without a line break after it")
        return self._text(self.take(found + 1)[:-1])

    def _text(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self._refuse(f"has a string that is not UTF-8: {quoted(raw)}")

    # --- the stack

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            self._refuse("pops from an empty stack")
        return self._stack.pop()

    def pop_to_mark(self) -> list[Any]:
        mark = len(self._stack) - 1
        while mark >= 0 and self._stack[mark] is not _MARK:
            mark -= 1
        if mark < 0:
            self._refuse("has no mark on its stack where one is needed")
        values = self._stack[mark + 1 :]
        del self._stack[mark:]
        return values

    def _top(self, kind: type) -> Any:
        if not self._stack or type(self._stack[-1]) is not kind:
            self._refuse(f"adds to a value that is not a {kind.__name__}")
        return self._stack[-1]

    # --- the instructions

    def protocol(self) -> None:
        version = self.take(1)[0]
        if version > 5:
            self._refuse(f"has protocol {version}; the newest is 5")

    def frame(self) -> None:
        if self.number("<Q") > self._end - self._position:
            self._refuse("has a frame that is longer than the file")

    def pop(self) -> None:
        if not self._stack:
            self._refuse("pops from an empty stack")
        self._stack.pop()

    def long(self) -> None:
        length = self.take(1)[0]
        if length > _LONGEST_INTEGER:
            self._refuse(f"has an integer of {length} bytes")
        self.push(int.from_bytes(self.take(length), "little", signed=True))

    def string(self, form: str) -> None:
        self.push(self._text(self.take(self.number(form))))

    def short_string(self) -> None:
        raw = self.take(self.take(1)[0])
        self.push(raw.decode("latin-1"))

    def tuple_of(self, count: int) -> None:
        values = [self._pop() for _ in range(count)]
        self.push(tuple(reversed(values)))

    def append(self) -> None:
        value = self._pop()
        self._top(list).append(value)

    def appends(self) -> None:
        values = self.pop_to_mark()
        self._top(list).extend(values)

    def set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._set(self._top(dict), key, value)

    def set_items(self) -> None:
        values = self.pop_to_mark()
        if len(values) % 2:
            self._refuse("has a dict with a key and no value")
        target = self._top(dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            self._set(target, key, value)

    def _set(self, target: dict[str, Any], key: object, value: object) -> None:
        if type(key) is not str:  # besides, hashing a deeply nested tuple would exhaust the C stack
            self._refuse(f"has a dict with a key that is not a string, but {type(key).__name__}")
        if key in target:
            self._refuse(f"has the key {quoted(key)} twice in one dict")
        target[key] = value

    def get(self, form: str) -> None:
        slot = self.number(form)
        if slot not in self._memo:
            self._refuse(f"refers to memo entry {slot}, which does not exist")
        self.push(self._memo[slot])

    def put(self, form: str) -> None:
        slot = self.number(form)
        if not self._stack or self._stack[-1] is _MARK:
            self._refuse("stores a value of an empty stack in the memo")
        self._memo[slot] = self._stack[-1]

    def memoize(self) -> None:
        if not self._stack or self._stack[-1] is _MARK:
            self._refuse("stores a value of an empty stack in the memo")
        self._memo[len(self._memo)] = self._stack[-1]

    def global_(self) -> None:
        module = self._line()
        self._name(module, self._line())

    def stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            self._refuse("has a global whose name is not a string")
        self._name(module, name)

    def _name(self, module: str, name: str) -> None:
        full = f"{module} {name}"
        if full not in (*STORAGES, _DICT, *_TENSORS, _PARAMETER):
            self._refuse(
                f"names {quoted(f'{module}.{name}')}, which is not among the names that files of tensors need. "
                "Nothing was executed. If you trust the file, convert it to safetensors where torch is installed"
            )
        self.push(_Global(full))

    def persistent_id(self) -> None:
        """('storage', kind, key, device, length[, view]) -> a storage; the device is ignored."""
        value = self._pop()
        if (
            type(value) is not tuple
            or len(value) not in (5, 6)
            or value[0] != "storage"
            or value[5:] not in ((), (None,))
        ):
            self._refuse("has a persistent id that is not a storage")
        kind, key, count = value[1], value[2], value[4]
        if type(kind) is not _Global or kind.name not in STORAGES:
            self._refuse("refers to a storage of an unknown dtype")
        if type(key) is not str or not (key.isascii() and key.isdigit()):
            self._refuse("refers to a storage whose key is not a number")
        if type(count) is not int or count < 0:
            self._refuse(f"refers to storage {key} of an impossible length")
        self.push(Storage(key, STORAGES[kind.name], count))

    def reduce(self) -> None:
        arguments, function = self._pop(), self._pop()
        if type(function) is not _Global or type(arguments) is not tuple:
            self._refuse("calls a value that is not a function")
        if function.name == _DICT:
            self.push(self._dict(arguments))
        elif function.name in _TENSORS:
            self.push(self._view(arguments))
        elif function.name == _PARAMETER:
            if len(arguments) != 3 or type(arguments[0]) is not View:
                self._refuse("has a parameter that is not a tensor")
            self.push(arguments[0])
        else:
            self._refuse(f"calls {quoted(function.name)}")

    def build(self) -> None:
        """Drop the state of an OrderedDict: its attribute `_metadata`, the versions of torch's modules."""
        state = self._pop()
        self._top(dict)
        if type(state) is not dict or set(state) != {"_metadata"}:
            self._refuse("sets attributes that files of tensors do not have")

    def _dict(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        if len(arguments) > 1 or (arguments and type(arguments[0]) is not list):
            self._refuse("makes a dict of values that are not pairs")
        for pair in arguments[0] if arguments else ():
            if type(pair) not in (tuple, list) or len(pair) != 2:
                self._refuse("makes a dict of values that are not pairs")
            self._set(result, pair[0], pair[1])
        return result

    def _view(self, arguments: tuple[Any, ...]) -> View:
        """(storage, offset, size, stride[, requires_grad, hooks[, metadata]]) -> a tensor within its storage."""
        if len(arguments) not in (4, 6, 7) or type(arguments[0]) is not Storage:
            self._refuse("has a tensor with the wrong arguments")
        storage, offset, shape, strides = arguments[:4]
        if type(shape) is not tuple or type(strides) is not tuple or len(shape) != len(strides):
            self._refuse("has a tensor with a different number of sizes and strides")
        if len(shape) > _MOST_DIMENSIONS:
            self._refuse(f"has a tensor of {len(shape)} dimensions; {_MOST_DIMENSIONS} is the most")
        if not all(type(number) is int and 0 <= number < 2**63 for number in (offset, *shape, *strides)):
            self._refuse("has a tensor with a size, a stride or an offset that is not a number from 0 to 2^63 - 1")
        numbers = 1
        for size in shape:
            numbers *= size
        last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        if numbers and last >= storage.length:
            self._refuse(f"has a tensor that ends at number {last} of a storage of {storage.length}")
        if numbers > storage.length:
            self._refuse(f"has a tensor of {numbers} numbers spread over a storage of {storage.length}")
        return View(storage, offset, shape, strides)

    def _refuse(self, what: str) -> NoReturn:
        raise CheckpointError(f"{self._where}: the pickle {what} (at byte {self._position})")


_STOP = ord(".")

_STEPS = {
    0x80: _Machine.protocol,
    0x95: _Machine.frame,
    ord("("): lambda m: m.push(_MARK),
    ord("0"): _Machine.pop,
    ord("1"): lambda m: m.pop_to_mark() and None,
    ord("N"): lambda m: m.push(None),
    0x88: lambda m: m.push(True),
    0x89: lambda m: m.push(False),
    ord("J"): lambda m: m.push(m.number("<i")),
    ord("K"): lambda m: m.push(m.number("<B")),
    ord("M"): lambda m: m.push(m.number("<H")),
    0x8A: _Machine.long,
    ord("G"): lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
    ord("X"): lambda m: m.string("<I"),
    0x8C: lambda m: m.string("<B"),
    ord("U"): _Machine.short_string,
    ord(")"): lambda m: m.push(()),
    ord("t"): lambda m: m.push(tuple(m.pop_to_mark())),
    0x85: lambda m: m.tuple_of(1),
    0x86: lambda m: m.tuple_of(2),
    0x87: lambda m: m.tuple_of(3),
    ord("]"): lambda m: m.push([]),
    ord("a"): _Machine.append,
    ord("e"): _Machine.appends,
    ord("}"): lambda m: m.push({}),
    ord("s"): _Machine.set_item,
    ord("u"): _Machine.set_items,
    ord("h"): lambda m: m.get("<B"),
    ord("j"): lambda m: m.get("<I"),
    ord("q"): lambda m: m.put("<B"),
    ord("r"): lambda m: m.put("<I"),
    0x94: _Machine.memoize,
    ord("c"): _Machine.global_,
    0x93: _Machine.stack_global,
    ord("Q"): _Machine.persistent_id,
    ord("R"): _Machine.reduce,
    ord("b"): _Machine.build,
}
