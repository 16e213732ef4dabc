"""Record batches with pyarrow: an exception of a signal handler is not lost inside it."""

from __future__ import annotations

import gc
import io
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from wordpiece_bert.tokenizer.corpus.arrow_writer import ArrowWriter

pyarrow = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")

SCHEMA = pyarrow.schema([("number", pyarrow.int64())])
BATCH = pyarrow.record_batch([pyarrow.array([1, 2])], schema=SCHEMA)


class StopError(BaseException):
    """What a program raises to unwind."""


class DroppingWriter:
    """A writer in which a signal arrives, and which drops the exception of its handler."""

    def __init__(self, number: int) -> None:
        self._number = number

    def write_batch(self, _: object) -> None:
        with suppress(BaseException):
            signal.raise_signal(self._number)

    def close(self) -> None:
        self.write_batch(None)


def stop(number: int, frame: object) -> None:
    raise StopError


@pytest.mark.parametrize(("name", "handler"), [("SIGINT", signal.default_int_handler), ("SIGHUP", stop)])
@pytest.mark.parametrize("call", [lambda writer: writer.write(BATCH), lambda writer: writer.close()])
def test_a_dropped_exception_is_raised_again(name: str, handler: Any, call: Callable[[ArrowWriter], None]) -> None:
    number = getattr(signal, name)
    before = signal.signal(number, handler)
    try:
        with ArrowWriter("parquet") as writer:
            writer._writer = DroppingWriter(number)
            with pytest.raises((KeyboardInterrupt, StopError)):
                call(writer)
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


def interrupted_at(number: int, call: Callable[[], None]) -> tuple[bool, bool]:
    """Raise SIGINT before the given bytecode of a call, pyarrow's own left out: was it reached, and was it raised?"""
    left = number

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal left
        if "pyarrow" in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        left -= event == "opcode"
        if not left:
            sys.settrace(None)
            signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    gc.disable()  # its callbacks, of which other libraries have some, drop what is raised in them
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True, True
    finally:
        sys.settrace(before)
        gc.enable()
    return left <= 0, False


@pytest.mark.parametrize("call", [lambda writer: writer.write(BATCH), lambda writer: writer.close()])
def test_an_interrupt_at_any_place_is_raised_once(
    call: Callable[[ArrowWriter], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    places = 0
    try:
        while True:
            writer = ArrowWriter("parquet")
            writer.begin(io.BytesIO(), SCHEMA)
            reached, raised = interrupted_at(places + 1, lambda writer=writer: call(writer))  # type: ignore[misc]
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            assert reached == raised
            if not reached:
                break
            places += 1
    finally:
        signal.signal(signal.SIGINT, before)
    assert places > 100
    assert dropped == []


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows"])
def test_batches_are_written(kind: str) -> None:
    file = io.BytesIO()
    before = signal.getsignal(signal.SIGINT)
    with ArrowWriter(kind) as writer:
        writer.begin(file, SCHEMA)
        writer.write(BATCH)
        writer.write(BATCH)
        writer.close()
    assert signal.getsignal(signal.SIGINT) is before
    read = {"parquet": pyarrow.parquet.read_table, "arrow": pyarrow.ipc.open_file, "arrows": pyarrow.ipc.open_stream}
    table = read[kind](io.BytesIO(file.getvalue()))
    table = table if kind == "parquet" else table.read_all()
    assert table["number"].to_pylist() == [1, 2, 1, 2]
