"""Long calls for asyncio: in a thread, so that they do not block the event loop, and cancellable."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

from wordpiece_bert._internal.progress import observed

if TYPE_CHECKING:
    from collections.abc import Callable


Result = TypeVar("Result")


class _CancelledError(BaseException):
    """The task that waits for the thread was cancelled. No ``except Exception`` catches it."""


async def run_in_thread(function: Callable[[], Result]) -> Result:
    """Call a function in a thread of the event loop's executor and wait for its result.

    If the waiting task is cancelled, the function is ended after the pass of the model that is running.
    """
    import asyncio

    cancelled = threading.Event()

    def check(*_: int) -> None:
        if cancelled.is_set():
            raise _CancelledError

    def work() -> Result:
        with observed(check):
            return function()

    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        cancelled.set()
        raise
