"""kitoken. It adds no [CLS] and [SEP]: they are added for the comparison, outside of the timed part."""

# Arguments and results differ between engines, so they have no common types.

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from worker import UnsupportedError, Work, from_lists, serve


def version() -> str:
    from importlib.metadata import version

    import kitoken  # noqa: F401 - checks that it is installed

    return version("kitoken")


def load(request: dict[str, Any]) -> Any:
    from kitoken import Kitoken

    tokenizer = Kitoken.from_tokenizers_file(request["tokenizer"])

    def works(name: str, options: dict[str, Any]) -> Work:
        vocab = json.loads(Path(request["tokenizer"]).read_text(encoding="utf-8"))["model"]["vocab"]
        cls_id, sep_id = vocab["[CLS]"], vocab["[SEP]"]
        if name == "ragged":
            return Work(
                run=lambda texts: tokenizer.encode_all(texts, True),
                count=lambda rows: sum(len(row) + 2 for row in rows),
                answers=lambda rows: {"ids": from_lists([cls_id, *row, sep_id] for row in rows)},
            )
        if name == "one":
            return Work(
                run=lambda texts: tokenizer.encode(texts[0], True),
                count=lambda row: len(row) + 2,
                answers=lambda row: {"ids": from_lists([[cls_id, *row, sep_id]])},
            )
        message = f"kitoken has no {name}"
        raise UnsupportedError(message)

    return works


if __name__ == "__main__":
    serve(load, version)
