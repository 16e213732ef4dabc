"""The part of a long text that fits a query best, to show it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert.sentence.multi_vector.multi_vector_encoder import MultiVectorEncoder
from wordpiece_bert.sentence.parts import threads_of
from wordpiece_bert.tokenizer.dividing import token_counts
from wordpiece_bert.vectors.chunking import Chunking, spans_of, token_borders
from wordpiece_bert.vectors.document_vectors import room_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.sentence.encoder_loading import Encoder

#: The most tokens of a passage: sentences that fit into some lines.
PASSAGE_TOKENS = 64
# The most passages of a text of which the best is chosen, for models that read texts of any length.
_PASSAGES = 64


def best_passages(
    encoder: Encoder,
    query: str,
    texts: Sequence[str],
    *,
    entire: bool = False,
    prompt_name: str | None = None,
    prompt: str | None = None,
    batch_size: int = 32,
) -> list[tuple[int, int]]:
    """Return where the passage begins and ends in each text that is most similar to a query.

    Parameters
    ----------
    encoder : encoder
        What compares.
    query : str
        The query.
    texts : sequence of str
        The texts. One of at most `PASSAGE_TOKENS` tokens is a passage.
    entire : bool, default False
        Whether a passage may be after what the encoder reads of a text, where something else has found the text.
    prompt_name, prompt : str, optional
        What is put before the query, as for `encode_query`.
    batch_size : int, default 32
        How many passages go through the model at once.
    """
    threads = threads_of(encoder)
    borders, count = token_borders(encoder.tokenizer, texts, threads), token_counts(encoder.tokenizer, threads=threads)
    longest_row = encoder.document_length if isinstance(encoder, MultiVectorEncoder) else encoder.max_seq_length
    longest_row = sys.maxsize if entire or not longest_row else longest_row
    size = max(1, min(PASSAGE_TOKENS, room_of(encoder, None, None)))
    spans = []
    for tokens, found in zip(borders, spans_of(texts, borders, Chunking(size, 0, "sentences"), count), strict=True):
        read = tokens[min(longest_row, len(tokens)) - 1, 1] if len(tokens) else 0
        spans.append(found[: max(1, min(_PASSAGES, int(np.searchsorted(found[:, 0], read))))])
    owners = np.repeat(np.arange(len(texts)), [len(one) for one in spans])
    is_choice = np.repeat([len(one) > 1 for one in spans], [len(one) for one in spans])
    best = [0] * len(texts)
    if is_choice.any():
        places = np.concatenate(spans)
        pieces = [texts[i][start:end] for i, (start, end) in zip(owners.tolist(), places.tolist(), strict=True)]
        chosen = np.flatnonzero(is_choice).tolist()
        vectors = encoder.encode_document([pieces[i] for i in chosen], batch_size=batch_size)
        scores = np.full(len(pieces), -np.inf)
        queries = encoder.encode_query([query], prompt_name, prompt, batch_size)
        scores[chosen] = np.asarray(encoder.similarity(queries, vectors))[0]
        best = [int(scores[owners == i].argmax()) if len(one) > 1 else 0 for i, one in enumerate(spans)]
    return [
        (0, len(text)) if len(tokens) <= PASSAGE_TOKENS else (int(one[row, 0]), int(one[row, 1]))
        for text, tokens, one, row in zip(texts, borders, spans, best, strict=True)
    ]
