"""Masked-language-model and next-sentence examples for pre-training BERT.

The procedure is that of Devlin et al., "BERT" (2019), section 3.1 and appendices A.1 and A.2. Where the paper leaves a
detail open, ``create_pretraining_data.py`` from the authors' code release decides.

`next_sentence_pairs` creates pairs of text segments, `Masking` masks tokens, and `collate` combines both into batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from wordpiece_bert._internal.checks import check_instance, checked_flag, checked_probability, whole_number
from wordpiece_bert.bert.losses import IGNORED
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

__all__ = ["MaskedTokens", "Masking", "PairExample", "collate", "next_sentence_pairs"]

#: A seed, or a generator whose state each use advances.
Seed = int | np.random.Generator

# [CLS] A [SEP] B [SEP]
_SPECIAL_TOKENS = 3


class MaskedTokens(NamedTuple):
    """Token ids after masking, with the labels to predict.

    Attributes
    ----------
    input_ids : ndarray of int64
        The ids, in the shape of the input.
    labels : ndarray of int64
        At each chosen position the original id, and -100 at all others: the form that masked-language-model heads
        accept as ``labels``.
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
        The tokenizer that made the ids. Its special tokens are never chosen, and its `continuing_subword_prefix` says
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

    Raises
    ------
    InputError
        A share is not between 0 and 1, `masked` and `random` add up to more than 1, or `max_predictions` is below 1.
    ConfigError
        The tokenizer has no mask token, or `whole_words` is set and its `continuing_subword_prefix` is empty, so that
        tokens do not show which of them continue a word.

    Examples
    --------
    >>> import wordpiece_bert as wb
    >>> from wordpiece_bert.pretraining import Masking
    >>> tokenizer = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"])
    >>> ids = tokenizer.encode_ids("the cat sat")
    >>> ids
    array([1, 4, 5, 6, 2], dtype=uint32)
    >>> masking = Masking(tokenizer, masked=1.0, random=0.0)
    >>> masking(ids, seed=0).labels
    array([-100, -100, -100,    6, -100])
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
    ) -> None:
        check_instance("tokenizer", tokenizer, Tokenizer)
        probability = checked_probability("probability", probability)
        masked = checked_probability("masked", masked)
        random = checked_probability("random", random)
        checked_flag("whole_words", whole_words)
        if masked + random > 1:
            message = f"masked and random are shares of the same tokens, but {masked!r} + {random!r} is more than 1"
            raise InputError(message)
        if max_predictions is not None:
            max_predictions = whole_number("max_predictions", max_predictions, 1, others="or None")
        if tokenizer.mask_token_id is None:
            message = "the tokenizer has no mask token; add BERT's with with_added_tokens(['[MASK]'], special=True)"
            raise ConfigError(message)
        self._mask_id = tokenizer.mask_token_id
        self._pad_id = tokenizer.pad_token_id or 0
        self._probability = probability
        self._max_predictions = max_predictions
        # Cumulative: a random number below the first means [MASK], one below the second a random token.
        self._thresholds = (masked, masked + random)
        size = 1 + max(tokenizer.get_vocab().values())
        self._is_special = np.zeros(size, np.bool_)
        self._is_special[tokenizer.all_special_ids] = True
        self._continues_word = np.zeros(size, np.bool_)
        if whole_words:
            self._continues_word[_continuing_ids(tokenizer)] = True
        self._whole_words = whole_words
        # Candidates for a random token: ids that the vocabulary has and that are not special.
        exists = np.zeros(size, np.bool_)
        exists[list(tokenizer.get_vocab().values())] = True
        self._ordinary_ids = np.flatnonzero(exists & ~self._is_special)

    @property
    def pad_id(self) -> int:
        """The id that rows are padded with: that of the tokenizer's padding token, or 0 if it has none."""
        return self._pad_id

    def __call__(self, input_ids: npt.ArrayLike, seed: Seed) -> MaskedTokens:
        """Mask tokens of a batch.

        Parameters
        ----------
        input_ids : array_like of int
            Token ids [B, S], padded if need be, or one row [S]. They are not modified.
        seed : int or numpy.random.Generator
            The source of randomness. The same seed and ids mask the same tokens.

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
        rows = self._checked_rows(input_ids)
        rng = _generator(seed)
        ids, labels = rows.copy(), np.full_like(rows, IGNORED)
        for row, label in zip(ids, labels, strict=True):
            chosen = self._choose(row, rng)
            label[chosen] = row[chosen]
            draws = rng.random(len(chosen))
            others = rng.integers(len(self._ordinary_ids), size=len(chosen)) if len(self._ordinary_ids) else None
            row[chosen[draws < self._thresholds[0]]] = self._mask_id
            if others is not None:
                is_random = (draws >= self._thresholds[0]) & (draws < self._thresholds[1])
                row[chosen[is_random]] = self._ordinary_ids[others[is_random]]
        shape = np.shape(input_ids)
        return MaskedTokens(ids.reshape(shape), labels.reshape(shape))

    def _checked_rows(self, input_ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the ids as int64 [B, S], or raise InputError."""
        try:
            ids = np.asarray(input_ids)
        except ValueError as error:
            message = "input_ids must be rows of one length: pad them, or pass one row at a time"
            raise InputError(message) from error
        if ids.size == 0 and ids.ndim in (1, 2):
            ids = ids.astype(np.int64)
        if not np.issubdtype(ids.dtype, np.integer) or ids.ndim not in (1, 2):
            message = f"input_ids must be integers [B, S] or [S], not {ids.dtype} of shape {ids.shape}"
            raise InputError(message)
        wrong = np.argwhere((ids < 0) | (ids >= len(self._is_special)))
        if len(wrong):
            index = tuple(wrong[0].tolist())
            message = (
                f"input_ids{list(index)} is {ids[index]}: the tokenizer's ids are 0 to {len(self._is_special) - 1}"
            )
            raise InputError(message)
        return np.atleast_2d(ids).astype(np.int64)

    def _choose(self, row: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.intp]:
        """Return the positions of a row whose tokens are to be predicted, in ascending order."""
        positions = np.flatnonzero(~self._is_special[row])
        if self._probability == 0 or len(positions) == 0:
            return positions[:0]
        target = max(1, round(self._probability * len(positions)))
        if self._max_predictions is not None:
            target = min(target, self._max_predictions)
        if not self._whole_words:
            return np.sort(rng.permutation(positions)[:target])
        # A word begins at a token that does not continue one, and after a special token.
        begins = ~self._continues_word[row[positions]]
        begins[0] = True
        begins[1:] |= np.diff(positions) > 1
        words = np.split(positions, np.flatnonzero(begins)[1:])
        chosen: list[npt.NDArray[np.intp]] = []
        n = 0
        for index in rng.permutation(len(words)):
            if n + len(words[index]) <= target:
                chosen.append(words[index])
                n += len(words[index])
            if n == target:
                break
        return np.sort(np.concatenate(chosen)) if chosen else positions[:0]


def _continuing_ids(tokenizer: Tokenizer) -> list[int]:
    """Return the ids of the tokens that continue a word.

    Raises
    ------
    ConfigError
        The prefix that marks them is empty.
    """
    prefix = tokenizer._inner.continuing_subword_prefix
    if not prefix:
        message = (
            "whole_words=True needs tokens that show whether they continue a word, and the tokenizer's "
            "continuing_subword_prefix is empty: use whole_words=False"
        )
        raise ConfigError(message)
    return [i for token, i in tokenizer.get_vocab(with_added_tokens=False).items() if token.startswith(prefix)]


class PairExample(NamedTuple):
    """Two segments of text as one input, labelled with whether the second follows the first.

    Attributes
    ----------
    input_ids : ndarray of int64
        ``[CLS] A [SEP] B [SEP]``, shape [n].
    token_type_ids : ndarray of int64
        0 for ``[CLS] A [SEP]`` and 1 for ``B [SEP]``, shape [n].
    next_sentence_label : int
        0 if B follows A, 1 if B is from another document.
    """

    input_ids: npt.NDArray[np.int64]
    token_type_ids: npt.NDArray[np.int64]
    next_sentence_label: int


def next_sentence_pairs(
    documents: Iterable[Iterable[str]],
    tokenizer: Tokenizer,
    *,
    max_length: int = 128,
    short_probability: float = 0.1,
    seed: Seed = 0,
) -> Iterator[PairExample]:
    """Make pairs of text segments, in half of which the second does not follow the first.

    Consecutive sentences of a document are collected until they fill an input. The first segment ends after a random
    one of these sentences. The second is either the rest, or, with probability 0.5, a passage of the same length from a
    random position in another document; the sentences this leaves unused begin the next pair. If the segments are too
    long together, tokens are removed one by one from the longer segment, from a random end.

    Parameters
    ----------
    documents : iterable of iterables of str
        The documents, each as its sentences in order. All are tokenized before the first pair is made, and their token
        ids are held in memory. Empty sentences and documents are skipped.
    tokenizer : Tokenizer
        The tokenizer, which must have a [CLS] and a [SEP] token.
    max_length : int, default 128
        The largest number of tokens in an input, including the three special tokens: 5 or more.
    short_probability : float, default 0.1
        The probability that a pair aims at a random smaller number of tokens, because inputs at inference time are
        rarely full.
    seed : int or numpy.random.Generator, default 0
        The source of randomness. Different seeds make different pairs of the same documents; BERT was trained on ten
        such copies.

    Yields
    ------
    PairExample
        The pairs in the order of the documents. Shuffle them before training.

    Raises
    ------
    InputError
        A parameter is out of range, a document is a str, or only one document is not empty, so that no random second
        segment exists.
    ConfigError
        The tokenizer has no [CLS] or no [SEP] token.

    Examples
    --------
    >>> import wordpiece_bert as wb
    >>> from wordpiece_bert.pretraining import next_sentence_pairs
    >>> tokenizer = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d"])
    >>> documents = [["a a", "b"], ["c", "d d"]]
    >>> for pair in next_sentence_pairs(documents, tokenizer, seed=3):
    ...     print(" ".join(tokenizer.convert_ids_to_tokens(pair.input_ids)), pair.next_sentence_label)
    [CLS] a a [SEP] b [SEP] 0
    [CLS] c [SEP] a a b [SEP] 1
    [CLS] d d [SEP] b [SEP] 1
    """
    check_instance("tokenizer", tokenizer, Tokenizer)
    max_length = whole_number("max_length", max_length, _SPECIAL_TOKENS + 2, meaning="[CLS] A [SEP] B [SEP]")
    short_probability = checked_probability("short_probability", short_probability)
    cls_id, sep_id = tokenizer.cls_token_id, tokenizer.sep_token_id
    if cls_id is None or sep_id is None:
        message = "the tokenizer has no [CLS] or no [SEP] token, which pairs need"
        raise ConfigError(message)
    rng = _generator(seed)
    tokens = _TokenizedDocuments(documents, tokenizer)
    return _pairs(tokens, (cls_id, sep_id), max_length, short_probability, rng)


def collate(examples: Sequence[PairExample], masking: Masking, seed: Seed) -> dict[str, npt.NDArray[np.int64]]:
    """Combine pairs into a batch with masked tokens, the input of `BertForPreTraining`.

    Parameters
    ----------
    examples : sequence of PairExample
        The pairs, one for each row.
    masking : Masking
        How tokens are masked.
    seed : int or numpy.random.Generator
        The source of randomness for masking.

    Returns
    -------
    dict of str to ndarray of int64
        ``input_ids``, ``token_type_ids``, ``attention_mask`` and ``labels`` [B, S], padded to the longest row, and
        ``next_sentence_label`` [B].

    Raises
    ------
    InputError
        An argument has the wrong type; the message has the index of an example.
    """
    check_instance("masking", masking, Masking)
    given: object = examples
    if not isinstance(given, Iterable) or isinstance(given, PairExample | str | bytes):
        message = f"examples must be a list of PairExample, not {type(examples).__name__}"
        raise InputError(message)
    examples = list(examples)
    for index, example in enumerate(examples):
        check_instance(f"examples[{index}]", example, PairExample)
    shape = (len(examples), max((len(example.input_ids) for example in examples), default=0))
    batch = {name: np.zeros(shape, np.int64) for name in ("input_ids", "token_type_ids", "attention_mask")}
    batch["labels"] = np.full(shape, IGNORED)
    rng = _generator(seed)
    for row, example in enumerate(examples):
        n = len(example.input_ids)
        batch["input_ids"][row, :n], batch["labels"][row, :n] = masking(example.input_ids, rng)
        batch["input_ids"][row, n:] = masking.pad_id
        batch["token_type_ids"][row, :n] = example.token_type_ids
        batch["attention_mask"][row, :n] = 1
    batch["next_sentence_label"] = np.array([example.next_sentence_label for example in examples], np.int64)
    return batch


def _generator(seed: object) -> np.random.Generator:
    """Return the source of randomness of a seed; an `InputError` for a value that is none."""
    try:
        return np.random.default_rng(cast("Seed", seed))
    except (TypeError, ValueError) as cause:
        message = f"seed must be a whole number from 0 or a numpy.random.Generator, not {seed!r:.80}"
        raise InputError(message) from cause


class _TokenizedDocuments:
    """The token ids of documents in one array, with the boundaries of sentences and documents.

    Sentences are numbered across all documents, without those that have no tokens.
    """

    def __init__(self, documents: Iterable[Iterable[str]], tokenizer: Tokenizer) -> None:
        given: object = documents
        if not isinstance(given, Iterable) or isinstance(given, str | bytes):
            message = f"documents must be a list of documents, not {type(documents).__name__}"
            raise InputError(message)
        sentences: list[str] = []
        ends = [0]
        for index, document in enumerate(documents):
            if not isinstance(document, Iterable):
                message = f"documents[{index}] must be the sentences of a document, not {type(document).__name__}"
                raise InputError(message)
            if isinstance(document, str | bytes):
                kind = type(document).__name__
                message = f"documents[{index}] is a {kind}: pass a document as its sentences, ['One.', 'Two.']"
                raise InputError(message)
            for number, sentence in enumerate(document):
                if not isinstance(sentence, str):
                    message = (
                        f"documents[{index}][{number}] must be a str, not {type(sentence).__name__}: {sentence!r:.80}"
                    )
                    raise InputError(message)
                sentences.append(sentence)
            ends.append(len(sentences))
        batch = tokenizer.encode_batch(sentences, add_special_tokens=False, truncation=False, padding=False)
        kept = batch.lengths > 0
        self._ids = batch.ids.astype(np.int64)
        self._starts = np.append(batch.row_offsets[:-1][kept], len(self._ids))
        # The number of kept sentences before each document. `unique` drops documents without any.
        before = np.unique(np.concatenate(([0], np.cumsum(kept)))[ends])
        self._sentences = [range(a, b) for a, b in zip(before[:-1].tolist(), before[1:].tolist(), strict=True)]
        if len(self._sentences) == 1:
            message = "only one of documents is not empty, and a random second segment needs another one"
            raise InputError(message)

    def __len__(self) -> int:
        return len(self._sentences)

    def sentences(self, document: int) -> range:
        """Return the numbers of a document's sentences."""
        return self._sentences[document]

    def ids(self, first: int, end: int) -> npt.NDArray[np.int64]:
        """Return the token ids of the sentences from `first` up to `end`, which is excluded."""
        return self._ids[self._starts[first] : self._starts[end]]

    def until(self, first: int, end: int, tokens: int) -> int:
        """Return the smallest sentence number at which the sentences from `first` have at least `tokens` tokens.

        The result is at least ``first + 1`` and at most `end`.
        """
        full = int(np.searchsorted(self._starts, self._starts[first] + tokens))
        return min(max(full, first + 1), end)


def _pairs(
    documents: _TokenizedDocuments,
    special_ids: tuple[int, int],
    max_length: int,
    short_probability: float,
    rng: np.random.Generator,
) -> Iterator[PairExample]:
    max_tokens = max_length - _SPECIAL_TOKENS
    for number in range(len(documents)):
        sentences = documents.sentences(number)
        start = sentences.start
        while start < sentences.stop:
            target = int(rng.integers(2, max_tokens + 1)) if rng.random() < short_probability else max_tokens
            end = documents.until(start, sentences.stop, target)
            middle = int(rng.integers(start + 1, end)) if end - start > 1 else end
            a = documents.ids(start, middle)
            is_random = end - start == 1 or rng.random() < 0.5
            if is_random:
                other = int(rng.integers(len(documents) - 1))
                other_sentences = documents.sentences(other + (other >= number))
                first = int(rng.integers(other_sentences.start, other_sentences.stop))
                b = documents.ids(first, documents.until(first, other_sentences.stop, target - len(a)))
                start = middle
            else:
                b = documents.ids(middle, end)
                start = end
            yield _pair(*_truncated_pair(a, b, max_tokens, rng), special_ids, is_random=is_random)


def _truncated_pair(
    a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], max_tokens: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Remove tokens from the longer segment, one by one and from either end, until both fit."""
    surplus = max(0, len(a) + len(b) - max_tokens)
    # First from the longer segment until both have the same length, then from each in turn, beginning with B.
    off_a = min(surplus, max(0, len(a) - len(b)))
    off_b = min(surplus - off_a, max(0, len(b) - len(a)))
    rest = surplus - off_a - off_b
    return _shortened(a, off_a + rest // 2, rng), _shortened(b, off_b + rest - rest // 2, rng)


def _shortened(segment: npt.NDArray[np.int64], n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Remove n tokens, each from the start or the end with equal probability."""
    start = int(rng.binomial(n, 0.5))
    return segment[start : len(segment) - (n - start)]


def _pair(
    a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], special_ids: tuple[int, int], *, is_random: bool
) -> PairExample:
    cls_id, sep_id = special_ids
    ids = np.concatenate(([cls_id], a, [sep_id], b, [sep_id]))
    types = np.zeros(len(ids), np.int64)
    types[len(a) + 2 :] = 1
    return PairExample(ids, types, int(is_random))
