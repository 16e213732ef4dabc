"""`distill_static`: a static model from an encoder, by running every token of its vocabulary through it.

The method is model2vec's: a token's vector is the vector of the text that consists of it, reduced by a principal
component analysis, and scaled down the more frequent the token is, for which its place in the vocabulary stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.batching import sorted_batches, token_runs, with_progress
from wordpiece_bert._internal.checks import checked_choice, checked_strings, shows_progress
from wordpiece_bert._internal.parts import core_of
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.sentence.dense.distill_tokens import Token, new_subword_tokenizer, subword_tokens, surroundings
from wordpiece_bert.sentence.dense.parts import body_of, encoder_of, transformer_of
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder, sentence_encoder
from wordpiece_bert.sentence.dense.static import StaticEncoder
from wordpiece_bert.sentence.dense.table import TableBody
from wordpiece_bert.sentence.dense.transformer import TOKENS_PER_CALL
from wordpiece_bert.sentence.folders.static import StaticFolder, StaticParts
from wordpiece_bert.tokenizer.parts import of_core
from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch
from wordpiece_bert.tokenizer.subword import SubwordTokenizer, wordpiece
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array, PoolingMode
    from wordpiece_bert.bert.model import BertModel
    from wordpiece_bert.tokenizer.option_types import TruncationSettings
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

PoolingName = Literal["mean", "first", "last", "pooler"]

# The names of model2vec, and the names in `functional.POOLING_MODES`.
_MODES: dict[str, PoolingMode] = {"mean": "mean", "first": "cls", "last": "lasttoken"}
# Rows of a call for `pooler`, and in the order of their length.
_ROWS = 256
#: The truncation that model2vec stores.
_MAX_LENGTH = 512


def distill_static(
    encoder: SentenceEncoder | str | os.PathLike[str],
    *,
    vocabulary: Iterable[str] | None = None,
    pca_dims: int | float | Literal["auto"] | None = 256,  # noqa: PYI041
    sif_coefficient: float | None = 1e-4,
    token_remove_pattern: str | None = r"\[unused\d+\]",
    pooling: PoolingName = "mean",
    show_progress_bar: bool | None = None,
) -> StaticEncoder:
    r"""Make a static model from an encoder.

    Parameters
    ----------
    encoder : SentenceEncoder, str or PathLike
        The encoder, or the name or folder of one. Only its BERT model is used, not the modules after it.
    vocabulary : iterable of str, optional
        Words to add to the tokens of the encoder, whose tokenizer must be WordPiece. Words of several pieces under its
        splitter become added tokens.
    pca_dims : int, float or {"auto"}, default 256
        The width of the vectors, by a principal component analysis: a whole number; a float between 0 and 1 for the
        least width that keeps this share of the variance; ``"auto"`` for the encoder's width; None for no analysis.
        There is none either if there are not more tokens than dimensions.
    sif_coefficient : float, default 0.0001
        The constant a of smooth inverse frequency, between 0 and 1: the vector of the token of rank r is scaled by
        a/(a + p), where p is its frequency by Zipf's law. None scales no vector.
    token_remove_pattern : str or None, optional
        Tokens that begin with a match of this regular expression are left out; None keeps all.
    pooling : {"mean", "first", "last", "pooler"}, default "mean"
        The vector of a token: the mean of the vectors of [CLS], the token and [SEP], the ``"first"`` or the
        ``"last"`` of them, or ``"pooler"``, the model's own pooler.
    show_progress_bar : bool, optional
        Whether to show a progress bar.

    Returns
    -------
    StaticEncoder
        A model in the layout of model2vec, with float32 vectors; `StaticEncoder.save_pretrained` writes a folder that
        model2vec and sentence-transformers load.

    Raises
    ------
    InputError
        An argument is wrong, no token is left, the model has no pooler for ``pooling="pooler"``, or there is a
        `vocabulary` and the tokenizer is not WordPiece.
    ModelNotFoundError, ConfigError, CheckpointError, TokenizerFormatError
        As for `SentenceEncoder.from_pretrained`.

    Warns
    -----
    UserWarning
        `pca_dims` is larger than the encoder's width, or not smaller than the number of tokens.

    Notes
    -----
    The numbers are as from model2vec 0.10.0 (`model2vec.distill.distill_from_model`), in float32. For byte-level BPE
    and Unigram tokenizers they are as from ``tokenizer.json`` as it stands, which transformers changes for some classes
    before model2vec sees it.

    Examples
    --------
    >>> from wordpiece_bert import distill_static
    >>> encoder = distill_static("models/sentences", pca_dims=None)
    >>> encoder.encode(["the bread", "a bicycle"]).shape
    (2, 67)
    """
    options = {"apply_pca": pca_dims, "sif_coefficient": sif_coefficient, "pooling": pooling}
    checked_choice("pooling", pooling, ("mean", "first", "last", "pooler"))
    _check_numbers(pca_dims, sif_coefficient)
    pattern = _compiled(token_remove_pattern)
    words = [] if vocabulary is None else checked_strings("vocabulary", vocabulary)
    source = sentence_encoder(encoder)
    if isinstance(body_of(source), TableBody):
        raise InputError(f"{encoder!r} is a static model already: distill_static takes an encoder")
    tokenizer = source.tokenizer
    if isinstance(tokenizer, SubwordTokenizer):
        if words:
            raise InputError(f"vocabulary needs an encoder with a WordPiece tokenizer, not {tokenizer!r}")
        tokens = subword_tokens(tokenizer, pattern)
    else:
        tokens = _tokens(wordpiece(tokenizer, "distill_static"), words, pattern)
    if not tokens:
        raise InputError("no token is left: token_remove_pattern matches all of them")
    body = transformer_of(source)
    x = _token_vectors(body.model, tokens, pooling, body.threads, show=shows_progress(show_progress_bar))  # [n, H]
    x = np.nan_to_num(x)
    if pca_dims is not None:
        x = _principal_components(x, pca_dims)
    if sif_coefficient is not None:
        x *= _weights(len(x), sif_coefficient)[:, None]
    new: AnyTokenizer
    if isinstance(tokenizer, SubwordTokenizer):
        new = new_subword_tokenizer(tokenizer, tokens, _MAX_LENGTH)
    else:
        new = _new_tokenizer(tokenizer, tokens)
    folder = StaticFolder(
        transformer=body.folder.transformer,
        dimension=x.shape[1],
        max_seq_length=_MAX_LENGTH,
        layout="model2vec",
        dtype="float32",
        least_length=1e-32,
    )
    table = _core.StaticEmbeddings(np.ascontiguousarray(x, np.float32), None, None)
    return encoder_of(StaticEncoder, TableBody(StaticParts(folder, new, table), body.threads, options))


def _check_numbers(pca_dims: object, sif_coefficient: object) -> None:
    is_number = isinstance(pca_dims, int | float | np.integer | np.floating) and not isinstance(pca_dims, bool)
    is_share = is_number and isinstance(pca_dims, float | np.floating)
    wrong = not is_number or not (0 < pca_dims < 1 if is_share else pca_dims >= 1)  # type: ignore[operator]
    if pca_dims is not None and pca_dims != "auto" and wrong:
        raise InputError(f"pca_dims must be a whole number, a float between 0 and 1, 'auto' or None, not {pca_dims!r}")
    if sif_coefficient is None:
        return
    if isinstance(sif_coefficient, bool) or not isinstance(sif_coefficient, int | float | np.floating):
        sif_coefficient = -1.0 if not isinstance(sif_coefficient, str) else sif_coefficient
    if isinstance(sif_coefficient, str) or not 0 < sif_coefficient < 1:
        raise InputError(f"sif_coefficient must be between 0 and 1, or None, not {sif_coefficient!r}")


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    try:
        if isinstance(pattern, bytes):
            raise TypeError("bytes, not a str")
        return re.compile(pattern)
    except (re.error, TypeError) as cause:
        raise InputError(
            f"token_remove_pattern must be a regular expression, or None, not {pattern!r}: {cause}"
        ) from cause


def _tokens(tokenizer: Tokenizer, words: list[str], pattern: re.Pattern[str] | None) -> list[Token]:
    """Return the tokens of the static model: the encoder's, then new words, then added tokens."""
    before, after = surroundings(tokenizer)
    kept = {tokenizer.unk_token, tokenizer.pad_token}
    added = {token.content for token in tokenizer.added_tokens.values()}
    old = tokenizer.get_vocab()
    tokens = [
        Token(text, [*before, token_id, *after], is_added=False)
        for text, token_id in sorted(old.items(), key=lambda item: item[1])
        if (text in kept or text not in added) and not (pattern and pattern.match(text))
    ]
    seen = set(old) - (added - kept)
    phrases: dict[str, None] = {}
    for word in words:
        normalized, pieces = core_of(tokenizer).words(word)
        if len(pieces) == 1:
            if pieces[0] not in seen and not (pattern and pattern.match(pieces[0])):
                seen.add(pieces[0])
                tokens.append(Token(pieces[0], _row(tokenizer, pieces[0]), is_added=False))
        elif pieces:
            phrases[normalized.strip()] = None
    tokens += [Token(text, _row(tokenizer, text), is_added=True) for text in phrases if text not in seen]
    return tokens


def _row(tokenizer: Tokenizer, text: str) -> list[int]:
    return list(tokenizer.encode(text, truncation=False, padding=False).ids)


def _token_vectors(
    model: BertModel, tokens: list[Token], pooling: PoolingName, threads: int | None, *, show: bool
) -> Array:
    """Run the encoder over each token: [n, H]."""
    lengths = np.array([len(token.row) for token in tokens], np.int64)
    longest_row = model.config.longest_row
    if lengths.max() > longest_row:
        text = tokens[int(lengths.argmax())].text
        raise InputError(
            f"vocabulary has {text!r} with {lengths.max()} tokens, but the longest row of the model is {longest_row}"
        )
    ids = np.array([token_id for token in tokens for token_id in token.row], np.uint32)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = RaggedBatch(ids, offsets, np.zeros(len(tokens), np.bool_))
    x = np.empty((len(tokens), model.config.hidden_size), np.float32)
    if pooling == "pooler":
        for batch in with_progress(sorted_batches(lengths, _ROWS), show=show, lengths=lengths):
            x[batch] = _pooled_by_model(model, rows, batch, threads)
        return x
    parts: list[slice | npt.NDArray[np.intp]]
    parts = [*token_runs(rows.row_offsets, TOKENS_PER_CALL)] if model.takes_rows else [*sorted_batches(lengths, _ROWS)]
    for part in with_progress(parts, show=show, lengths=lengths):
        x[part] = model.pooled(rows, part, [_MODES[pooling]], 0, threads)
    return x


def _pooled_by_model(model: BertModel, rows: RaggedBatch, batch: npt.NDArray[np.intp], threads: int | None) -> Array:
    """Return the output of the model's pooler for some rows: [B, H]."""
    mask = np.arange(rows.lengths[batch].max()) < rows.lengths[batch][:, None]  # [B, S]
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = np.concatenate([rows[int(row)] for row in batch])
    pooled = model(ids, mask, threads=threads).pooler_output
    if pooled is None:
        raise InputError(
            "pooling='pooler' needs a model with a pooler, which this one has not: use 'mean', 'first' or 'last'"
        )
    return pooled


def _principal_components(x: Array, dims: float | Literal["auto"]) -> Array:
    """Reduce vectors [n, H] to their principal components [n, k], without whitening."""
    count, width = x.shape
    k: float = width if dims == "auto" else dims
    if k > width:
        message = f"pca_dims is {k}, but the encoder's vectors have {width} numbers: they keep them all"
        warn(message)
        k = width
    if k >= count:
        message = f"pca_dims is {k}, but there are {count} tokens: no principal component analysis"
        warn(message)
        return x
    centred = x - x.mean(axis=0)
    values, vectors = np.linalg.eigh((centred.T @ centred) / (count - 1))
    values, vectors = np.clip(values[::-1], 0, None), vectors[:, ::-1]
    if isinstance(k, float | np.floating):
        share = np.cumsum(values) / values.sum()
        k = min(int(np.searchsorted(share, k)) + 1, width)
    scores: Array = centred @ vectors[:, : int(k)]
    # The sign of an eigenvector is arbitrary: the entry of largest magnitude in each column is made positive.
    signs = np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(scores.shape[1])])
    scores *= signs
    return scores


def _weights(count: int, coefficient: float) -> Array:
    """Return the factor of each token, [n]: a/(a + p), with p proportional to 1/(rank + 1)."""
    frequency = 1 / np.arange(2, count + 2)
    frequency /= frequency.sum()
    return np.asarray(coefficient / (coefficient + frequency), np.float32)


def _new_tokenizer(tokenizer: Tokenizer, tokens: list[Token]) -> Tokenizer:
    """Return a tokenizer with these tokens as ids 0, 1, …, and without special tokens around a text."""
    ids = {token.text: token_id for token_id, token in enumerate(tokens)}
    if tokenizer.unk_token not in ids:
        raise ConfigError(
            f"the static model needs the unknown token {tokenizer.unk_token!r}: token_remove_pattern matches it"
        )
    core = core_of(tokenizer)
    vocab = {token.text: ids[token.text] for token in tokens if not token.is_added}
    added = [(ids[fields[0]], fields) for _, fields in core.added_tokens() if fields[0] in ids]
    # The flags: single_word, lstrip, rstrip, normalized, special.
    added += [(ids[token.text], (token.text, False, False, False, True, False)) for token in tokens if token.is_added]
    truncation: TruncationSettings = {
        "max_length": _MAX_LENGTH,
        "stride": 0,
        "strategy": "longest_first",
        "direction": "right",
    }
    changed = core.with_tokens(vocab, sorted(added), template=False)
    return of_core(Tokenizer, changed.with_settings(truncation, None))
