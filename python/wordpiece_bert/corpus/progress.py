"""Progress of reading files."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wordpiece_bert._internal.progress import Progress, shows_bars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wordpiece_bert.corpus.texts import TextReader

__all__ = ["progress"]


@contextmanager
def progress(texts: TextReader, *, show: bool | None) -> Iterator[Callable[[int], object]]:
    """Show the bytes read on standard error, and yield a function that updates it with the tokens so far.

    Parameters
    ----------
    texts : TextReader
        The reader to follow.
    show : bool or None
        Whether to show progress. None shows it on a terminal and in a notebook.
    """
    if show is False or (show is None and not shows_bars(sys.stderr)):
        yield lambda _: None
        return
    with Progress(texts.size, "B") as bar:
        yield lambda tokens: bar.update(texts.bytes_read, texts=texts.count, tokens=tokens)
