"""The log of the package, by the name ``wordpiece_bert``: what was loaded, truncated, and read instead of computed."""

from __future__ import annotations

import sys


def tell(message: str, *arguments: object) -> None:
    """Log a message at the level INFO, as ``logging.Logger.info``.

    Without a handler of the program nothing of this level is shown. A program that has not imported ``logging`` has
    none, and does not pay for its import.
    """
    if (logging := sys.modules.get("logging")) is not None:
        logging.getLogger("wordpiece_bert").info(message, *arguments)
