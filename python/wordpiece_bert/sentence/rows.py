"""Texts as rows of tokens, and rows as passes of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordpiece_bert._internal.batching import Passes
from wordpiece_bert._internal.parts import core_of
from wordpiece_bert._internal.texts import check_tokens
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.tokenizer.parts import with_core
from wordpiece_bert.tokenizer.subword import SubwordTokenizer, tokenizer_of

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.bert.model import BertModel
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch
    from wordpiece_bert.tokenizer.subword import AnyTokenizer
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter


def model_tokenizer(folder: Path, *, lowercase: bool, word_splitter: WordSplitter | None = None) -> AnyTokenizer:
    """Load the tokenizer of a model, for texts in lower case if the folder says so.

    Raises
    ------
    ConfigError
        It assigns a token type other than 0 to a single text, which rows of several texts do not support.
    """
    tokenizer = tokenizer_of(folder, word_splitter=word_splitter)
    check_token_types(tokenizer, folder)
    return with_lowercase(tokenizer) if lowercase else tokenizer


def check_token_types(tokenizer: AnyTokenizer, owner: Path | str) -> None:
    """Raise a `ConfigError`, which names the owner, if a tokenizer assigns a token type other than 0 to one text."""
    if any(tokenizer.encode("a", truncation=False, padding=False).token_type_ids):
        raise ConfigError(f"{owner}: the tokenizer assigns a token type other than 0 to a single text")


def with_lowercase(tokenizer: AnyTokenizer) -> AnyTokenizer:
    """Put a lower-casing step before the normalizer, unless it has one; special tokens keep their case."""
    if isinstance(tokenizer, SubwordTokenizer):
        return tokenizer.lowercased()
    core = core_of(tokenizer)
    lowered = core.with_lowercase()
    return tokenizer if lowered.pipeline == core.pipeline else with_core(tokenizer, lowered)


def rows_of(
    tokenizer: AnyTokenizer, texts: list[str], longest_row: int, threads: int | None, *, return_offsets: bool = False
) -> RaggedBatch:
    """Tokenize texts, truncated to `longest` tokens; settings of the tokenizer's file do not apply.

    Raises
    ------
    InputError
        A text has no token.
    """
    rows = tokenizer.encode_batch(
        texts,
        return_offsets=return_offsets,
        truncation=True,
        max_length=longest_row,
        stride=0,
        padding=False,
        threads=threads,
    )
    check_tokens(texts, rows.lengths)
    return rows


def passes(
    model: BertModel,
    rows: RaggedBatch,
    batch_size: int,
    tokens: int,
    *,
    bound_padding: bool = False,
    visible: npt.NDArray[np.int64] | None = None,
    known: npt.NDArray[np.bool_] | None = None,
) -> Passes:
    """Divide rows into passes of a model: runs of at most `tokens` tokens, or batches of rows of similar length.

    Rows with the same ids, of which as many tokens are visible [rows], are computed once, and rows with `known` results
    not at all.
    """
    most = tokens if model.takes_rows else None
    return Passes(rows, batch_size, most, bound_padding=bound_padding, also=visible, known=known)
