"""Signals that end a program: deferred for calls that belong together, and not lost in calls of an extension."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from wordpiece_bert._internal.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_Result = TypeVar("_Result")
_Handler: TypeAlias = "Callable[[int, FrameType | None], object]"

#: What ends a program from outside and can be handled.
_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _replace(replace: Callable[[_Handler], _Handler], previous: list[tuple[int, _Handler]]) -> None:
    """Replace the handlers, in Python, of signals that end a program, and append the former ones to `previous`."""
    if threading.current_thread() is threading.main_thread():  # Python runs handlers in the main thread only
        for number in _ENDING:
            handler = signal.getsignal(number)
            if callable(handler):
                previous.append((number, handler))
                signal.signal(number, replace(handler))


def _restore(previous: list[tuple[int, _Handler]]) -> None:
    while previous:
        signal.signal(*previous[-1])
        previous.pop()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let signals that end a program take effect only at the end of the block, for calls that belong together."""
    arrived: list[Callable[[], object]] = []
    previous: list[tuple[int, _Handler]] = []

    def deferring(handler: _Handler) -> _Handler:
        return lambda number, frame: arrived.append(lambda: handler(number, frame))

    try:
        try:
            _replace(deferring, previous)
            yield
        finally:
            _restore(previous)
    finally:
        _restore(previous)  # a handler that is restored may raise before the others are
        if arrived:
            arrived[-1]()


def call_keeping_interrupts(call: Callable[[], _Result]) -> _Result:
    """Call a function of an extension, and raise what a signal's handler raised in it, also if the function dropped it.

    Python runs signal handlers also in callbacks, in destructors and in the garbage collector. An exception that a
    handler raises there, such as KeyboardInterrupt, can be printed and dropped, and the work would go on.

    This is a function and no context manager of a generator: if the end of such a block is interrupted, the generator
    is left to the garbage collector, which prints what it raises.
    """
    raised: list[BaseException] = []
    previous: list[tuple[int, _Handler]] = []

    def remembering(handler: _Handler) -> _Handler:
        def handle(number: int, frame: FrameType | None) -> None:
            try:
                handler(number, frame)
            except BaseException as error:
                raised.append(error)
                raise

        return handle

    try:
        try:
            _replace(remembering, previous)
            return call()
        finally:
            _restore(previous)
    finally:  # also where the function has made an error of its own of it
        _restore(previous)
        if raised:
            raise raised[-1]


@contextmanager
def telling(kept: Callable[[], str]) -> Iterator[None]:
    """Add to what interrupts the block, such as KeyboardInterrupt, what is kept of its work and how to go on.

    Parameters
    ----------
    kept : callable
        Called at an interruption, but not in a forked child; returns the note, which commands print after
        ``interrupted``.
    """
    owner = Owner()
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        owner.do(lambda to: to.add_note(kept()), error)
        raise
