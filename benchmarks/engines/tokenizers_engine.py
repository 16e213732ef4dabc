"""tokenizers, whichever version its environment has.

Corpora go in by a thousand texts: one call with all of them would hold every `Encoding` at once, which is slower.
"""

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
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(request["tokenizer"])

    def chunks(encode: Any, take: Any) -> Any:
        def run(texts: list[Any]) -> list[Any]:
            found: list[Any] = []
            for start in range(0, len(texts), TEXTS_A_CALL):
                found.extend(take(encoding) for encoding in encode(texts[start : start + TEXTS_A_CALL]))
            return found

        return run

    def works(name: str, options: dict[str, Any]) -> Work:
        if name == "ragged":
            return Work(
                run=chunks(tokenizer.encode_batch_fast, lambda encoding: encoding.ids),
                count=lambda rows: sum(map(len, rows)),
                answers=lambda rows: {"ids": from_lists(rows)},
            )
        if name == "one":
            return Work(
                run=lambda texts: tokenizer.encode(texts[0]).ids,
                count=len,
                answers=lambda ids: {"ids": from_lists([ids])},
            )
        if name == "offsets":
            return Work(
                run=chunks(
                    tokenizer.encode_batch, lambda encoding: (encoding.ids, encoding.offsets, encoding.word_ids)
                ),
                count=lambda rows: sum(len(ids) for ids, _, _ in rows),
                answers=lambda rows: {
                    "ids": from_lists(ids for ids, _, _ in rows),
                    "offsets": from_lists([bound for pair in offsets for bound in pair] for _, offsets, _ in rows),
                    "word_ids": from_lists([-1 if word is None else word for word in words] for _, _, words in rows),
                },
            )
        if name == "windows":
            tokenizer.enable_truncation(options["max_length"], stride=options["stride"])
            rows = chunks(
                tokenizer.encode_batch, lambda encoding: [encoding.ids, *(cut.ids for cut in encoding.overflowing)]
            )
            return Work(
                run=lambda texts: [ids for windows in rows(texts) for ids in windows],
                count=lambda rows: sum(map(len, rows)),
                answers=lambda rows: {"ids": from_lists(rows)},
            )
        if name in ("padded", "pairs"):
            if "max_length" in options:
                tokenizer.enable_truncation(options["max_length"])
            tokenizer.enable_padding(length=options.get("max_length") if options["padding"] == "max_length" else None)

            def arrays(texts: list[Any]) -> dict[str, Any]:
                rows = tokenizer.encode_batch(texts)
                return {
                    "input_ids": np.array([row.ids for row in rows], np.int64),
                    "token_type_ids": np.array([row.type_ids for row in rows], np.int64),
                    "attention_mask": np.array([row.attention_mask for row in rows], np.int64),
                }

            return padded(arrays)
        message = f"no such work: {name}"
        raise UnsupportedError(message)

    return works


if __name__ == "__main__":
    serve(load, version)
