"""tokie. Its offsets count bytes of the normalized text, so they are not comparable and not measured."""

# Arguments and results differ between engines, so they have no common types.

from __future__ import annotations

from typing import Any

import numpy as np
from worker import UnsupportedError, Work, from_lists, serve


def version() -> str:
    from importlib.metadata import version

    import tokie  # noqa: F401 - checks that it is installed

    return version("tokie")


def load(request: dict[str, Any]) -> Any:
    from tokie import Tokenizer

    tokenizer = Tokenizer.from_json(request["tokenizer"])

    def works(name: str, options: dict[str, Any]) -> Work:
        if name == "ragged":
            return Work(
                run=lambda texts: tokenizer.encode_batch_flat(texts),
                count=lambda rows: len(rows[0]),
                answers=lambda rows: {"ids": (rows[0].astype(np.int64), rows[1].astype(np.int64))},
            )
        if name == "one":
            return Work(
                run=lambda texts: tokenizer.encode(texts[0]).ids,
                count=len,
                answers=lambda ids: {"ids": from_lists([ids])},
            )
        message = f"tokie's {name} is not measured"
        raise UnsupportedError(message)

    return works


if __name__ == "__main__":
    serve(load, version)
