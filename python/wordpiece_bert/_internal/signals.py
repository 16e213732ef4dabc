"""Signal handlers that are replaced for a block, and deferred for calls that belong together."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

#: What ends a program from outside and can be handled.
_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def replaced_handlers(
    replace: Callable[[Callable[[int, FrameType | None], object]], Callable[[int, FrameType | None], object]],
) -> Iterator[None]:
    """Replace the handlers, in Python, of signals that end a program; at the end of the block they are as before.

    Parameters
    ----------
    replace : callable
        Returns the handler to use instead of one.
    """
    previous: list[tuple[int, Callable[[int, FrameType | None], object]]] = []
    try:
        if threading.current_thread() is threading.main_thread():  # Python runs handlers in the main thread only
            for number in _ENDING:
                handler = signal.getsignal(number)
                if callable(handler):
                    previous.append((number, handler))
                    signal.signal(number, replace(handler))
        yield
    finally:
        try:
            _restore(previous)
        finally:  # a handler that is restored may raise before the others are
            _restore(previous)


def _restore(previous: list[tuple[int, Callable[[int, FrameType | None], object]]]) -> None:
    while previous:
        signal.signal(*previous[-1])
        previous.pop()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let signals that end a program take effect only at the end of the block, for calls that belong together."""
    arrived: list[Callable[[], object]] = []

    def deferring(handler: Callable[[int, FrameType | None], object]) -> Callable[[int, FrameType | None], None]:
        return lambda number, frame: arrived.append(lambda: handler(number, frame))

    try:
        with replaced_handlers(deferring):
            yield
    finally:
        if arrived:
            arrived[-1]()


@contextmanager
def telling(kept: Callable[[], str]) -> Iterator[None]:
    """Add to what interrupts the block, such as KeyboardInterrupt, what is kept of its work and how to go on.

    Parameters
    ----------
    kept : callable
        Called at an interruption; returns the note, which commands print after ``interrupted``.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        error.add_note(kept())
        raise
