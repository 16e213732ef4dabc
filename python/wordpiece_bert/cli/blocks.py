"""Encoding blocks of texts from files, with progress that follows single texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from wordpiece_bert import _core
    from wordpiece_bert.cli.embed_ids import TextsWithIds
    from wordpiece_bert.tokenizer.corpus.text_reader import TextReader


def encode_blocks(
    texts: TextReader | TextsWithIds,
    encode: Callable[[_core.TextBlock], tuple[npt.NDArray[Any], int]],
    *,
    show_progress: bool,
) -> tuple[list[str], int]:
    """Encode all texts; return the locations of truncated texts and the number of tokens.

    Parameters
    ----------
    texts : TextReader
        What is read.
    encode : callable
        Encodes a block and writes the result; returns which texts were truncated, and the number of tokens that the
        encoder has not reported to `progress.observed`.
    show_progress : bool
        Whether progress is shown.
    """
    import numpy as np

    from wordpiece_bert._internal.progress import observed, reading_progress

    truncated: list[str] = []
    tokens = done = tokens_before = 0
    with reading_progress(texts, show=show_progress) as show:

        def count(rows: int, new_tokens: int, of_tokens: int) -> None:
            nonlocal tokens, done
            tokens += new_tokens
            done += rows
            # Models take the longest texts first, or last: the time that is left follows tokens, not texts.
            share = min((tokens - tokens_before) / of_tokens, 1.0) if of_tokens else None
            show(tokens, of_block=done, share=share)

        with observed(count):
            for block in texts:
                done, tokens_before = 0, tokens
                cut, more = encode(block)
                tokens += more
                truncated += map(block.location, np.flatnonzero(cut).tolist())
                show(tokens)
    return truncated, tokens
