"""wordpiece-bert."""

# Arguments and results differ between engines, so they have no common types.

from __future__ import annotations

from typing import Any

from worker import Column, Work, from_lists, from_ragged, padded, serve


def version() -> str:
    import wordpiece_bert

    # The package imports NumPy and the extension when a name is first used; other packages do so when they are imported.
    assert wordpiece_bert.Tokenizer
    return wordpiece_bert.__version__


def load(request: dict[str, Any]) -> Any:
    import wordpiece_bert as wb

    tokenizer = wb.Tokenizer.from_file(request["tokenizer"])

    def columns(batch: Any) -> dict[str, Column]:
        found = {"ids": from_ragged(batch.ids, batch.row_offsets)}
        if batch.offsets is not None:
            found["offsets"] = from_ragged(batch.offsets, 2 * batch.row_offsets)
        if batch.word_ids is not None:
            found["word_ids"] = from_ragged(batch.word_ids, batch.row_offsets)
        return found

    def works(name: str, options: dict[str, Any]) -> Work:
        if name == "one":
            return Work(
                run=lambda texts: tokenizer.encode_ids(texts[0]),
                count=len,
                answers=lambda ids: {"ids": from_lists([ids.tolist()])},
            )
        if name in ("padded", "pairs"):
            call = {"padding": options["padding"], "threads": options.get("threads", 1)}
            if "max_length" in options:
                call |= {"truncation": True, "max_length": options["max_length"]}
            return padded(lambda texts: tokenizer(texts, **call))
        call = {"threads": options.get("threads", 1)}
        if name == "offsets":
            call |= {"return_offsets": True, "return_word_ids": True}
        elif name == "windows":
            call |= {"truncation": True, "max_length": options["max_length"], "stride": options["stride"]}
            call |= {"return_overflowing_tokens": True}
        return Work(
            run=lambda texts: tokenizer.encode_batch(texts, **call),
            count=lambda batch: len(batch.ids),
            answers=columns,
        )

    return works


if __name__ == "__main__":
    serve(load, version)
