"""A progress bar for reading files."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wordpiece_bert.corpus.texts import TextReader

__all__ = ["progress"]


@contextmanager
def progress(texts: TextReader, *, show: bool | None) -> Iterator[Callable[[], object]]:
    """Show a bar of the bytes read, and yield a function that updates it.

    Parameters
    ----------
    texts : TextReader
        The reader to follow.
    show : bool or None
        Whether to show the bar. None shows it if standard error is a terminal and tqdm is installed.

    Raises
    ------
    InputError
        `show` is True and tqdm is not installed.
    """
    installed = importlib.util.find_spec("tqdm") is not None
    if show and not installed:
        message = "show_progress_bar needs tqdm: pip install 'wordpiece-bert[progress]'"
        raise InputError(message)
    if show is False or (show is None and not (installed and sys.stderr.isatty())):
        yield lambda: None
        return
    from tqdm import tqdm

    with tqdm(total=texts.size, unit="B", unit_scale=True, leave=False, file=sys.stderr) as bar:

        def update() -> None:
            bar.set_postfix_str(f"{texts.count:,} texts", refresh=False)
            bar.update(texts.bytes_read - bar.n)

        yield update
