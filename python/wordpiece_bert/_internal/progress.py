"""Progress on standard error, without other packages: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from wordpiece_bert._internal.context import value_within
from wordpiece_bert._internal.log import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


BAR_WIDTH = 24
# Seconds between two states of a bar.
BAR_INTERVAL = 0.1
#: Seconds between two plain lines: a log of hours stays readable.
line_interval: ContextVar[float] = ContextVar("line_interval", default=10.0)


def lines_every(seconds: float) -> AbstractContextManager[None]:
    """Print plain lines at another interval, in seconds, within the context."""
    return value_within(line_interval, seconds)


def shows_bars(stream: TextIO) -> bool:
    r"""Whether a line on a stream can be replaced with ``\r``: a terminal, or the output of a notebook's cell."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel")


class Progress:
    """Shows how far a job is: its share, its speed, and the time left.

    A context manager. On a terminal the state is a bar that is redrawn in place and cleared at the end; elsewhere it is
    a line now and then, the first after `line_interval` seconds, so that a short job prints nothing.

    Parameters
    ----------
    total : int or None
        The amount of work; None if it is unknown, as for standard input.
    unit : str
        What is counted: ``"B"`` for bytes, which are shown as MB, or a noun.
    label : str, default ""
        What is done, shown first.
    done : int, default 0
        What had been done before, by an earlier run: it counts for the share, but not for the speed.
    stream : text file, optional
        Standard error by default.
    """

    def __init__(
        self,
        total: int | None,
        unit: str,
        label: str = "",
        *,
        done: int = 0,
        stream: TextIO | None = None,
    ) -> None:
        self.total = total
        self.unit = unit
        self.label = label
        self.done = self._before = done
        self._texts: int | None = None
        self._tokens: int | None = None
        self._stream = sys.stderr if stream is None else stream
        self._bar = shows_bars(self._stream)
        self._interval = BAR_INTERVAL if self._bar else line_interval.get()
        self._start = self._shown = time.monotonic()
        self._width = 0

    def __enter__(self) -> Self:
        return self

    def update(self, done: int, *, texts: int | None = None, tokens: int | None = None) -> None:
        """Set the amount of work done so far, and optionally the texts and tokens; show it if it is time to."""
        self.done, self._texts, self._tokens = done, texts, tokens
        now = time.monotonic()
        if now - self._shown < self._interval:
            return
        self._shown = now
        columns = shutil.get_terminal_size().columns - 1 if self._bar else None
        text = self.text(now - self._start, columns)
        if columns is not None:
            # Spaces instead of a terminal's control codes: a notebook's output has none.
            say("\r" + text.ljust(min(self._width, columns)), self._stream, end="")
            self._width = len(text)
        else:
            say(text, self._stream)

    def text(self, elapsed: float, columns: int | None = None) -> str:
        """Return the state after some seconds as one line of at most `columns` characters.

        Where it is too long, the bar goes first, then the texts and the amount: the rate and the time left stay.
        """
        bar, own = "", self.done - self._before
        parts = []
        if self.total:
            share = min(self.done / self.total, 1.0)
            parts.append(f"{share:4.0%}")
            if self._bar:
                filled = round(share * BAR_WIDTH)
                bar = f" [{'#' * filled}{'.' * (BAR_WIDTH - filled)}]"
        middle = [self._amount()]
        if self._texts is not None:
            middle.append(f"{self._texts:,} texts")
        end = []
        if elapsed > 0:
            if self._tokens is not None:
                end.append(f"{self._tokens / elapsed:,.0f} tokens/s")
            elif self.unit == "B":
                end.append(f"{size_text(own / elapsed)}/s")
            else:
                end.append(f"{own / elapsed:,.{0 if own > 10 * elapsed else 2}f} {self.unit}s/s")
        if self.total and own and elapsed > 0:
            left = max(elapsed * (self.total - self.done) / own, 0.0)
            end.append(f"{_clock(left)} left")
        else:
            end.append(_clock(elapsed))

        def line() -> str:
            share = [part + bar for part in parts]
            return (f"{self.label}: " if self.label else "") + ", ".join([*share, *middle, *end])

        while columns is not None and len(line()) > columns and (bar or middle):
            if bar:
                bar = ""
            else:
                middle.pop()
        return line()[:columns]

    def _amount(self) -> str:
        if self.unit == "B":
            return size_text(self.done) + (f" of {size_text(self.total)}" if self.total else "")
        return f"{self.done:,}" + (f" of {self.total:,}" if self.total else "") + f" {self.unit}s"

    def close(self) -> None:
        """Clear the bar."""
        if self._bar and self._width:
            say("\r" + " " * self._width + "\r", self._stream, end="")
            self._width = 0

    def __exit__(self, *_: object) -> None:
        self.close()


class _Silent(Progress):
    """Progress that shows nothing."""

    def update(self, done: int, *, texts: int | None = None, tokens: int | None = None) -> None:
        """Do nothing."""


def shown_progress(total: int | None, unit: str, show: bool | None, label: str = "", *, done: int = 0) -> Progress:
    """Return progress that is shown if `show` is true, or if it is None and there is a terminal or a notebook.

    Parameters
    ----------
    total : int or None
        The amount of work.
    unit : str
        What is counted.
    show : bool or None
        Whether to show it.
    label : str, default ""
        What is done.
    done : int, default 0
        What was done by an earlier run.
    """
    visible = sys.stderr is not None and (shows_bars(sys.stderr) if show is None else show)
    return (Progress if visible else _Silent)(total, unit, label, done=done)


class Reading(Protocol):
    """How far a reader of texts is, as a `TextReader`."""

    #: The number of texts read so far.
    count: int
    #: The number of bytes read so far.
    bytes_read: int
    #: The size of the input in bytes; None if it is not known.
    size: int | None


class ReadingProgress:
    """Follows a reader of texts, text by text: a call shows how far its texts are done.

    Parameters
    ----------
    texts : Reading
        The reader.
    bar : Progress or None
        Where it is shown; None for nowhere.
    """

    def __init__(self, texts: Reading, bar: Progress) -> None:
        self._texts = texts
        self._bar = bar
        # The bytes and texts of all blocks before the one that is in work.
        self._bytes = self._count = 0

    def __call__(self, tokens: int | None = None, *, of_block: int | None = None, share: float | None = None) -> None:
        """Show that all texts read so far are done, or `of_block` texts of the last block.

        `share` is how much of the work on that block is done; by default the share of its texts.
        """
        read, count = self._texts.bytes_read, self._texts.count
        if of_block is None:
            self._bytes, self._count = read, count
        else:
            done = min(of_block, count - self._count)
            share = done / max(count - self._count, 1) if share is None else share
            read = self._bytes + int((read - self._bytes) * share)
            count = self._count + done
        self._bar.update(read, texts=count, tokens=tokens)


@contextmanager
def reading_progress(texts: Reading, *, show: bool | None, label: str = "") -> Iterator[ReadingProgress]:
    """Show the bytes and texts of a reader on standard error.

    Parameters
    ----------
    texts : Reading
        The reader to follow.
    show : bool or None
        Whether to show progress. None shows it on a terminal and in a notebook.
    label : str, default ""
        What is done, shown first.
    """
    with shown_progress(texts.size, "B", show, label) as bar:
        yield ReadingProgress(texts, bar)


@contextmanager
def stage_progress(*, quiet: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """Yield a callback for ``progress=`` that shows one stage of counting and training after the other.

    Nothing is shown if `quiet` is set.
    """
    if quiet:
        yield lambda *_: None
        return
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


def size_text(size: float) -> str:
    """Return a number of bytes with a unit: ``"1.5 MB"``."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size:.0f} B"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


# Called with (rows, tokens, tokens of the call) after each pass of a model, so that a caller who hands over many texts
# can show progress within them.
_observer: ContextVar[Callable[[int, int, int], object] | None] = ContextVar("observer", default=None)


def notify(rows: int, tokens: int, of_tokens: int = 0) -> None:
    """Report a pass of a model to who observes the current context.

    Parameters
    ----------
    rows, tokens : int
        What the pass has finished.
    of_tokens : int, default 0
        The tokens of all rows of the call, of which these are a part; 0 if they are not known.
    """
    observer = _observer.get()
    if observer is not None:
        observer(rows, tokens, of_tokens)


def observed(observer: Callable[[int, int, int], object]) -> AbstractContextManager[None]:
    """Call a function with (rows, tokens, tokens of the call) after each pass of a model inside this context."""
    return value_within(_observer, observer)
