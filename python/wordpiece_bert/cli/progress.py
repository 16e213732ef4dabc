"""Progress of counting and training: one bar after the other, one for each stage."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wordpiece_bert._internal.progress import Progress

__all__ = ["stage_progress"]


@contextmanager
def stage_progress(*, quiet: bool) -> Iterator[Callable[..., None]]:
    """Yield a callback for ``progress=`` that shows each stage on standard error; nothing if `quiet` is set."""
    if quiet:
        yield lambda *_: None
        return
    from wordpiece_bert._internal.progress import Progress

    bar: Progress | None = None

    def show(stage: str, done: int, total: int | None) -> None:
        nonlocal bar
        if bar is None or stage != bar.label or done < bar.done:
            if bar is not None:
                bar.close()
            bar = Progress(total, "B" if stage == "counting" else ("token" if total else "step"), stage)
        bar.update(done)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()
