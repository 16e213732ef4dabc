"""nanotoken. It runs on the calling thread, as it does by default for less than 1 MiB."""

# Arguments and results differ between engines, so they have no common types.

from __future__ import annotations

from typing import Any

from worker import UnsupportedError, Work, from_lists, from_ragged, padded, serve


def version() -> str:
    from importlib.metadata import version

    import nanotoken  # noqa: F401 - checks that it is installed

    return version("nanotoken")


def load(request: dict[str, Any]) -> Any:
    import nanotoken

    tokenizer = nanotoken.Tokenizer(request["tokenizer"])

    def works(name: str, options: dict[str, Any]) -> Work:
        if name == "ragged":
            return Work(
                run=lambda texts: tokenizer.encode_batch(texts, parallel=options.get("threads", 1) > 1),
                count=lambda rows: len(rows.ids),
                answers=lambda rows: {"ids": from_ragged(rows.ids, rows.offsets)},
            )
        if name == "one":
            return Work(
                run=lambda texts: tokenizer.encode(texts[0]),
                count=len,
                answers=lambda ids: {"ids": from_lists([ids.tolist()])},
            )
        if name == "padded":
            call = {"padding": options["padding"], "max_length": options.get("max_length"), "parallel": False}
            return padded(lambda texts: tokenizer.encode_batch_padded(texts, **call))
        message = f"nanotoken has no {name}"
        raise UnsupportedError(message)

    return works


if __name__ == "__main__":
    serve(load, version)
