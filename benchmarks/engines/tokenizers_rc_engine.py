"""tokenizers 1.0. Its release candidates have a different interface, without offsets and windows."""

# Arguments and results differ between engines, so they have no common types.

from __future__ import annotations

from typing import Any

import numpy as np
from worker import UnsupportedError, Work, from_lists, padded, serve

TEXTS_A_CALL = 1000


def version() -> str:
    import tokenizers

    return tokenizers.__version__


def load(request: dict[str, Any]) -> Any:
    from tokenizers import Padding, Tokenizer, Truncation

    tokenizer = Tokenizer.from_file(request["tokenizer"])

    def run(texts: list[Any]) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(texts), TEXTS_A_CALL):
            found.extend(row.ids_array for row in tokenizer.encode_batch(texts[start : start + TEXTS_A_CALL]))
        return found

    def works(name: str, options: dict[str, Any]) -> Work:
        if name == "ragged":
            return Work(
                run=run,
                count=lambda rows: sum(map(len, rows)),
                answers=lambda rows: {"ids": from_lists(row.tolist() for row in rows)},
            )
        if name == "one":
            return Work(
                run=lambda texts: tokenizer.encode(texts[0]).ids_array,
                count=len,
                answers=lambda ids: {"ids": from_lists([ids.tolist()])},
            )
        if name in ("padded", "pairs"):
            length = options.get("max_length")
            padding = Padding(length=length) if options["padding"] == "max_length" else Padding()
            truncation = None if length is None else Truncation(length)

            def arrays(texts: list[Any]) -> dict[str, Any]:
                rows = tokenizer.encode_batch(texts, padding=padding, truncation=truncation)
                return {
                    "input_ids": np.array([row.ids_array for row in rows], np.int64),
                    "token_type_ids": np.array([row.type_ids_array for row in rows], np.int64),
                    "attention_mask": np.array([row.attention_mask_array for row in rows], np.int64),
                }

            return padded(arrays)
        message = f"tokenizers 1.0 has no {name}"
        raise UnsupportedError(message)

    return works


if __name__ == "__main__":
    serve(load, version)
