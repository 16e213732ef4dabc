"""Masked tokens for masked-language-model training: `Masking` chooses them, the core does the work.

The procedure is as in Devlin et al., "BERT" (2019), appendix A.1; spans are as in Joshi et al., "SpanBERT" (2020).
All random choices of a row are a function of (seed, epoch, number of the row).
"""

from __future__ import annotations

import numbers
import operator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import check_instance, checked_flag, checked_probability, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.tokenizer.parts import marked_special_ids, plain_core
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

#: A seed, or a generator whose state each use advances.
Seed = int | np.random.Generator

_LARGEST_SEED = (1 << 64) - 1


class MaskedTokens(NamedTuple):
    """Token ids after masking, with the labels to predict.

    Attributes
    ----------
    input_ids : ndarray of int64
        The ids, in the shape of the input.
    labels : ndarray of int64
        At each chosen position the original id, and -100 at all others: the form that masked-language-model heads
        accept as ``labels``.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.pretraining import Masking
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> ids = tokenizer.encode_ids("bake the bread in the oven")
    >>> masked = Masking(tokenizer, probability=0.3)(ids, seed=0)
    >>> tokenizer.convert_ids_to_tokens(masked.input_ids)
    ['[CLS]', 'bake', 'the', '[MASK]', '[MASK]', 'the', 'oven', '[SEP]']
    >>> masked.labels
    array([-100, -100, -100,   48,   31, -100, -100, -100])
    """

    input_ids: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]


class Masking:
    """Masks random tokens of each row, for masked-language-model training.

    In each row a share `probability` of the tokens that are not special is chosen: the number is rounded, and at least
    1. Of the chosen tokens 80 % become ``[MASK]``, 10 % become a random token of the vocabulary, and 10 % stay as they
    are, so that a model cannot assume that a token it sees is the right one (appendix A.1).

    Parameters
    ----------
    tokenizer : Tokenizer
        The tokenizer that made the ids. Its special tokens are never chosen, and its ``continuing_subword_prefix`` says
        which tokens continue a word.
    probability : float, default 0.15
        The share of tokens to choose, from 0 to 1.
    whole_words : bool, default False
        Choose all pieces of a word together. A word that would exceed the number of tokens to choose is skipped.
    max_predictions : int, optional
        The largest number of tokens to choose in a row; no limit by default. BERT was trained with 20 for rows of 128
        tokens and 77 for rows of 512.
    masked : float, default 0.8
        The share of the chosen tokens that become ``[MASK]``.
    random : float, default 0.1
        The share of the chosen tokens that become a random token. The remaining ones stay as they are.
    spans : bool, default False
        Choose runs of whole words, of which all tokens become ``[MASK]``, or all random, or all stay (SpanBERT).
    span_probability : float, default 0.2
        The parameter p of the geometric distribution of the number of words in a span, above 0.
    max_span_length : int, default 10
        The largest number of words in a span.

    Raises
    ------
    InputError
        A share is not between 0 and 1, `masked` and `random` add up to more than 1, `max_predictions` or
        `max_span_length` is below 1, or both `spans` and `whole_words` are set.
    ConfigError
        The tokenizer has no mask token, or `whole_words` or `spans` is set and its ``continuing_subword_prefix`` is
        empty, so that tokens do not show which of them continue a word.

    Examples
    --------
    >>> import wordpiece_bert as wb
    >>> from wordpiece_bert.pretraining import Masking
    >>> tokenizer = wb.Tokenizer.from_vocab(
    ...     ["[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]
    ... )
    >>> ids = tokenizer.encode_ids("the cat sat")
    >>> ids
    array([1, 4, 5, 6, 2], dtype=uint32)
    >>> masking = Masking(tokenizer, masked=1.0, random=0.0)
    >>> masking(ids, seed=0).labels
    array([-100, -100,    5, -100, -100])
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        probability: float = 0.15,
        whole_words: bool = False,
        max_predictions: int | None = None,
        masked: float = 0.8,
        random: float = 0.1,
        spans: bool = False,
        span_probability: float = 0.2,
        max_span_length: int = 10,
    ) -> None:
        check_instance("tokenizer", tokenizer, Tokenizer)
        options: dict[str, Any] = {
            "probability": checked_probability("probability", probability),
            "unit": _unit(whole_words=whole_words, spans=spans),
            "max_predictions": max_predictions,
            "masked": checked_probability("masked", masked),
            "random": checked_probability("random", random),
            "span_probability": checked_probability("span_probability", span_probability),
            "max_span_length": whole_number("max_span_length", max_span_length, 1, 1 << 16),
        }
        if masked + random > 1:
            raise InputError(
                f"masked and random are shares of the same tokens, but {masked!r} + {random!r} is more than 1"
            )
        if options["span_probability"] == 0:
            raise InputError(f"span_probability must be above 0, not {span_probability!r}")
        if max_predictions is not None:
            options["max_predictions"] = whole_number("max_predictions", max_predictions, 1, others="or None")
        if tokenizer.mask_token_id is None:
            raise ConfigError(
                "the tokenizer has no mask token; add BERT's with with_added_tokens(['[MASK]'], special=True)"
            )
        core = plain_core(tokenizer, "masking")
        if options["unit"] != "tokens" and not core.continuing_subword_prefix:
            name = "spans" if options["unit"] == "spans" else "whole_words"
            raise ConfigError(
                f"{name}=True needs tokens that show whether they continue a word, and the tokenizer's "
                f"continuing_subword_prefix is empty: use {name}=False"
            )
        self._tokenizer = tokenizer
        self._options = options
        self._pad_id = tokenizer.pad_token_id or 0
        self._rules = _core.MaskingRules(core, marked_special_ids(tokenizer), tokenizer.mask_token_id, options)

    @property
    def pad_id(self) -> int:
        """The id that rows are padded with: the id of the tokenizer's padding token, or 0 if it has none."""
        return self._pad_id

    def __call__(self, input_ids: npt.ArrayLike, seed: Seed) -> MaskedTokens:
        """Mask tokens of a batch.

        Parameters
        ----------
        input_ids : array_like of int
            Token ids [B, S], padded if need be, or one row [S]. They are not modified.
        seed : int or numpy.random.Generator
            The source of randomness. The same seed and ids mask the same tokens; a row depends on its number in the
            batch, too. A generator gives a seed of 64 bits.

        Returns
        -------
        MaskedTokens
            The masked ids and the labels, both in the shape of `input_ids`.

        Raises
        ------
        InputError
            The rows differ in length, the array is not of integers or has more than two dimensions, or an id is not
            one of the tokenizer's.
        """
        ids = self._checked_rows(input_ids)
        return self._masked(ids, np.arange(len(ids), dtype=np.uint64), seed_of(seed), 0, np.shape(input_ids))

    @completed_by(__call__)
    def rows(self, input_ids: npt.ArrayLike, *, seed: int, epoch: int, rows: npt.ArrayLike) -> MaskedTokens:
        """Mask rows of a data set: what becomes of a row depends on `seed`, `epoch` and its number alone.

        Any batch and any worker thus gives a row the same masks as `PretrainingDataset` does.

        Parameters
        ----------
        seed : int
            The seed of the training run, from 0 to 2⁶⁴ - 1.
        epoch : int
            The number of the pass over the data set, from 0 to 2⁶⁴ - 1.
        rows : array_like of int
            The number of each row in the data set [B]; an int for one row.

        Returns
        -------
        MaskedTokens
            The masked ids and the labels, both in the shape of `input_ids`.

        Raises
        ------
        InputError
            As for a call of the object; or there are more or fewer numbers than rows, or one is negative.

        Examples
        --------
        A row has the same masks whatever is beside it:

        >>> from wordpiece_bert import Tokenizer
        >>> from wordpiece_bert.pretraining import Masking
        >>> tokenizer = Tokenizer.from_pretrained("models/words")
        >>> ids = tokenizer(
        ...     ["to bake the bread", "a wheel of a bicycle"], padding=True
        ... ).input_ids
        >>> masking = Masking(tokenizer)
        >>> both = masking.rows(ids, seed=1, epoch=0, rows=[7, 8])
        >>> alone = masking.rows(ids[1:], seed=1, epoch=0, rows=[8])
        >>> bool((both.input_ids[1:] == alone.input_ids).all())
        True
        """
        ids = self._checked_rows(input_ids)
        given = np.atleast_1d(np.asarray(rows))
        if given.size == 0:
            given = given.astype(np.int64)
        if not np.issubdtype(given.dtype, np.integer) or given.shape != (len(ids),) or (given < 0).any():
            raise InputError(f"rows must be the numbers of the {len(ids)} rows, 0 or above, not {rows!r:.80}")
        epoch = whole_number("epoch", epoch, 0, _LARGEST_SEED)
        return self._masked(ids, given.astype(np.uint64), checked_seed(seed), epoch, np.shape(input_ids))

    def _ragged(self, input_ids: npt.NDArray[np.int64], lengths: Sequence[int], seed: int) -> MaskedTokens:
        """Mask rows of different lengths that lie one after the other in an array; as a call of the object does.

        Parameters
        ----------
        input_ids : ndarray of int
            The ids of all rows.
        lengths : sequence of int
            The number of ids of each row.
        seed : int
            The source of randomness.

        Returns
        -------
        MaskedTokens
            The masked ids and the labels, in the shape of `input_ids`.
        """
        ids = self._checked_rows(input_ids)[0]
        offsets = np.cumsum([0, *lengths], dtype=np.int64)
        rows = np.arange(len(lengths), dtype=np.uint64)
        return MaskedTokens(*self._rules.apply(ids, offsets, rows, seed, 0, 0))

    def _masked(
        self, ids: npt.NDArray[np.int64], rows: npt.NDArray[np.uint64], seed: int, epoch: int, shape: tuple[int, ...]
    ) -> MaskedTokens:
        offsets = np.arange(len(ids) + 1, dtype=np.int64) * ids.shape[1]
        masked, labels = self._rules.apply(ids.reshape(-1), offsets, rows, seed, epoch, 0)
        return MaskedTokens(masked.reshape(shape), labels.reshape(shape))

    def _checked_rows(self, input_ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the ids as int64 [B, S], or raise InputError."""
        try:
            ids = np.asarray(input_ids)
        except ValueError as error:
            raise InputError("input_ids must be rows of one length: pad them, or pass one row at a time") from error
        if ids.size == 0 and ids.ndim in (1, 2):
            ids = ids.astype(np.int64)
        if not np.issubdtype(ids.dtype, np.integer) or ids.ndim not in (1, 2):
            raise InputError(f"input_ids must be integers [B, S] or [S], not {ids.dtype} of shape {ids.shape}")
        wrong = np.argwhere((ids < 0) | (ids >= self._rules.size))
        if len(wrong):
            index = tuple(wrong[0].tolist())
            raise InputError(
                f"input_ids{list(index)} is {ids[index]}: the tokenizer's ids are 0 to {self._rules.size - 1}"
            )
        return np.ascontiguousarray(np.atleast_2d(ids), np.int64)

    def __reduce__(self) -> tuple[Any, ...]:
        options = dict(self._options)
        unit = options.pop("unit")
        return _restored, (self._tokenizer, options | {"whole_words": unit == "words", "spans": unit == "spans"})


def _restored(tokenizer: Tokenizer, options: dict[str, Any]) -> Masking:
    """Return a `Masking` out of a pickle."""
    return Masking(tokenizer, **options)


def _unit(*, whole_words: bool, spans: bool) -> str:
    checked_flag("whole_words", whole_words)
    checked_flag("spans", spans)
    if whole_words and spans:
        raise InputError("whole_words=True and spans=True exclude each other: spans consist of whole words already")
    return "spans" if spans else "words" if whole_words else "tokens"


def checked_seed(seed: object) -> int:
    """Return a seed as an int of 64 bits, or raise InputError."""
    return whole_number("seed", cast("int", seed), 0, _LARGEST_SEED)


def seed_of(seed: object) -> int:
    """Return the seed that a seed or a generator stands for; an `InputError` for a value that is neither."""
    if isinstance(seed, numbers.Integral | np.integer) and not isinstance(seed, bool):
        number = operator.index(seed)
        if 0 <= number <= _LARGEST_SEED:
            return number
        raise InputError(
            f"seed must be a whole number from 0 to {_LARGEST_SEED} or a numpy.random.Generator, not {seed!r:.80}"
        )
    try:
        generator = np.random.default_rng(cast("Seed", seed))
    except (TypeError, ValueError) as cause:
        raise InputError(f"seed must be a whole number from 0 or a numpy.random.Generator, not {seed!r:.80}") from cause
    return int(generator.integers(1 << 64, dtype=np.uint64))
