"""The log of the package, by the name ``wordpiece_bert``, and what is said on standard error."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TextIO


def tell(message: str, *arguments: object) -> None:
    """Log a message at the level INFO, as ``logging.Logger.info``.

    Without a handler of the program nothing of this level is shown. A program that has not imported ``logging`` has
    none, and does not pay for its import.
    """
    if (logging := sys.modules.get("logging")) is not None:
        logging.getLogger("wordpiece_bert").info(message, *arguments)


def say(text: str, stream: TextIO | None = None, *, end: str = "\n") -> None:
    """Print to standard error or another stream; if that fails, as its reader is gone, the text is lost silently."""
    stream = stream or sys.stderr
    with suppress(OSError):
        stream.write(text + end)
        stream.flush()
