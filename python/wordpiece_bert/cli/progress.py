"""Progress bars of counting and training: one after the other, one for each stage."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["stage_progress"]


@contextmanager
def stage_progress(*, quiet: bool) -> Iterator[Callable[..., None]]:
    """Yield a callback for ``progress=`` that shows a bar for each stage.

    It shows nothing if `quiet` is set, if standard error is not a terminal, or if tqdm is not installed.
    """
    if quiet or not sys.stderr.isatty() or importlib.util.find_spec("tqdm") is None:
        yield lambda *_: None
        return
    from tqdm import tqdm

    bar: Any = None
    current = ""

    def show(stage: str, done: int, total: int | None) -> None:
        nonlocal bar, current
        if stage != current or done < bar.n:
            if bar is not None:
                bar.close()
            unit = "B" if stage == "counting" else ("token" if total else "step")
            bar = tqdm(total=total, unit=unit, unit_scale=stage == "counting", desc=stage, leave=False, file=sys.stderr)
            current = stage
        bar.update(done - bar.n)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()
