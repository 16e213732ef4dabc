"""Examples to pre-train BERT with: hidden tokens, and pairs of which the second part may be random.

Devlin et al., "BERT" (2019), section 3.1 and appendix A.1 and A.2; where the paper is silent,
`create_pretraining_data.py` of the code that was released with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wordpiece_bert.bert.losses import IGNORED
from wordpiece_bert.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["MaskedTokens", "Masking", "PairExample", "collate", "next_sentence_pairs"]

#: The seeds that random generators take.
Seed = int | np.random.Generator

# [CLS] A [SEP] B [SEP]
_SPECIAL_TOKENS = 3


class MaskedTokens(NamedTuple):
    """Ids with some tokens hidden, and what they were.

    Attributes
    ----------
    input_ids
        The ids, int64 of the shape given.
    labels
        The id that was at each hidden place, -100 everywhere else: as the heads for masked language take them.
    """

    input_ids: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]


class Masking:
    """Hides some tokens of each row, for a model to guess.

    Of the tokens that are no special ones, `probability` are chosen in each row: rounded, but one at least. Of those
    80 % become ``[MASK]``, 10 % a random token of the vocabulary, and 10 % stay as they are, so that a model cannot
    rely on seeing what need not be guessed (appendix A.1).

    Parameters
    ----------
    tokenizer
        Its vocabulary tells the special tokens, and which tokens continue a word.
    probability
        The share of tokens that are chosen, from 0 to 1.
    whole_words
        Whether the pieces of a word are chosen together. A word that would make it too many is passed over.
    max_predictions
        The most tokens that are chosen in a row; None for no such limit. Google's models had 20 of 128, 77 of 512.
    masked, random
        The shares of the chosen tokens that become ``[MASK]``, and that become a random token; the rest stays.

    Raises
    ------
    InputError
        A share is not between 0 and 1, both together are more than 1, or `max_predictions` is less than 1.
    ConfigError
        The tokenizer has no mask token.
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
        for name, share in (("probability", probability), ("masked", masked), ("random", random)):
            if not 0 <= share <= 1:
                message = f"{name} must be between 0 and 1, not {share!r}"
                raise InputError(message)
        if masked + random > 1:
            message = (
                f"masked and random are shares of the same tokens, and together more than 1: {masked!r} + {random!r}"
            )
            raise InputError(message)
        if max_predictions is not None and max_predictions < 1:
            message = f"max_predictions must be 1 or more, or None, not {max_predictions!r}"
            raise InputError(message)
        if tokenizer.mask_token_id is None:
            message = (
                "the tokenizer has no mask token; BERT's is added with with_added_tokens(['[MASK]'], special=True)"
            )
            raise ConfigError(message)
        self._mask_id = tokenizer.mask_token_id
        self._pad_id = tokenizer.pad_token_id or 0
        self._probability = probability
        self._most = max_predictions
        self._shares = (masked, masked + random)
        size = 1 + max(tokenizer.get_vocab().values())
        self._is_special = np.zeros(size, np.bool_)
        self._is_special[tokenizer.all_special_ids] = True
        self._continues = np.zeros(size, np.bool_)
        if whole_words:
            pieces = [i for token, i in tokenizer.get_vocab(with_added_tokens=False).items() if token.startswith("##")]
            self._continues[pieces] = True
        self._whole_words = whole_words
        # What a random token may be: an id that the vocabulary has, and no special one.
        known = np.zeros(size, np.bool_)
        known[list(tokenizer.get_vocab().values())] = True
        self._ordinary = np.flatnonzero(known & ~self._is_special)

    @property
    def pad_id(self) -> int:
        """What rows are filled up with: the tokenizer's padding token, 0 where it has none."""
        return self._pad_id

    def __call__(self, input_ids: npt.ArrayLike, seed: Seed) -> MaskedTokens:
        """Hide tokens of a batch.

        Parameters
        ----------
        input_ids
            Integers, [B, S] with padding or without, or one row [S]. They are not changed.
        seed
            A number, or a generator of NumPy's: the same seed hides the same tokens.

        Raises
        ------
        InputError
            These are no ids of the tokenizer, or no rows of equal length.
        """
        rows = self._checked(input_ids)
        rng = np.random.default_rng(seed)
        ids, labels = rows.copy(), np.full_like(rows, IGNORED)
        for row, label in zip(ids, labels, strict=True):
            chosen = self._choose(row, rng)
            label[chosen] = row[chosen]
            fate = rng.random(len(chosen))
            others = rng.integers(len(self._ordinary), size=len(chosen)) if len(self._ordinary) else None
            row[chosen[fate < self._shares[0]]] = self._mask_id
            if others is not None:
                is_random = (fate >= self._shares[0]) & (fate < self._shares[1])
                row[chosen[is_random]] = self._ordinary[others[is_random]]
        shape = np.shape(input_ids)
        return MaskedTokens(ids.reshape(shape), labels.reshape(shape))

    def _checked(self, input_ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the ids as rows."""
        try:
            ids = np.asarray(input_ids)
        except ValueError as error:
            message = "input_ids must be rows of one length: pad them, or give one row at a time"
            raise InputError(message) from error
        if ids.size == 0 and ids.ndim in (1, 2):
            ids = ids.astype(np.int64)
        if not np.issubdtype(ids.dtype, np.integer) or ids.ndim not in (1, 2):
            message = f"input_ids must be integers [B, S] or [S], not {ids.dtype} of shape {ids.shape}"
            raise InputError(message)
        wrong = np.argwhere((ids < 0) | (ids >= len(self._is_special)))
        if len(wrong):
            place = tuple(wrong[0].tolist())
            message = (
                f"input_ids{list(place)} is {ids[place]}: the tokenizer's ids are 0 to {len(self._is_special) - 1}"
            )
            raise InputError(message)
        return np.atleast_2d(ids).astype(np.int64)

    def _choose(self, row: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.intp]:
        """Return the places of a row whose tokens are to be guessed, in order."""
        places = np.flatnonzero(~self._is_special[row])
        if self._probability == 0 or len(places) == 0:
            return places[:0]
        wanted = max(1, round(self._probability * len(places)))
        if self._most is not None:
            wanted = min(wanted, self._most)
        if not self._whole_words:
            return np.sort(rng.permutation(places)[:wanted])
        # A word begins where no piece continues it, and after a special token.
        begins = ~self._continues[row[places]]
        begins[0] = True
        begins[1:] |= np.diff(places) > 1
        words = np.split(places, np.flatnonzero(begins)[1:])
        chosen: list[npt.NDArray[np.intp]] = []
        n = 0
        for index in rng.permutation(len(words)):
            if n + len(words[index]) <= wanted:
                chosen.append(words[index])
                n += len(words[index])
            if n == wanted:
                break
        return np.sort(np.concatenate(chosen)) if chosen else places[:0]


class PairExample(NamedTuple):
    """Two pieces of text as one input, and whether the second follows the first.

    Attributes
    ----------
    input_ids
        ``[CLS] A [SEP] B [SEP]``, int64 [n].
    token_type_ids
        0 for ``[CLS] A [SEP]``, 1 for ``B [SEP]``, int64 [n].
    next_sentence_label
        0: B follows A; 1: B is from another document.
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
    """Make pairs of texts, in half of which the second does not follow the first.

    Sentences of a document are put together until an input is full. The first part ends after a random sentence of
    them; the second is the rest, or, every second time, as much from a random place of another document: what was not
    used then begins the next pair. Parts that are too long together lose tokens at a random end, the longer part first.

    Parameters
    ----------
    documents
        Texts in order, each as its sentences. All are tokenized before the first pair is made; empty ones are passed
        over.
    tokenizer
        Whose [CLS] and [SEP] are put around.
    max_length
        The most tokens in an input, special ones included: 5 or more.
    short_probability
        How often a pair aims at fewer tokens, a random number of them: what a model is used with later is seldom full.
    seed
        A number, or a generator of NumPy's. Other seeds make other pairs of the same documents: Google took ten.

    Yields
    ------
    PairExample
        In the order of the documents: shuffle them before training.

    Raises
    ------
    InputError
        A parameter is out of its range, there is one document only, so that none can be random, or a document is a str.
    ConfigError
        The tokenizer has no [CLS] or no [SEP].
    """
    if max_length < _SPECIAL_TOKENS + 2:
        message = f"max_length must be {_SPECIAL_TOKENS + 2} or more, [CLS] A [SEP] B [SEP], not {max_length!r}"
        raise InputError(message)
    if not 0 <= short_probability <= 1:
        message = f"short_probability must be between 0 and 1, not {short_probability!r}"
        raise InputError(message)
    cls_id, sep_id = tokenizer.cls_token_id, tokenizer.sep_token_id
    if cls_id is None or sep_id is None:
        message = "the tokenizer has no [CLS] or no [SEP], which go around the parts"
        raise ConfigError(message)
    tokens = _Documents(documents, tokenizer)
    return _pairs(tokens, (cls_id, sep_id), max_length, short_probability, np.random.default_rng(seed))


def collate(examples: Sequence[PairExample], masking: Masking, seed: Seed) -> dict[str, npt.NDArray[np.int64]]:
    """Make a batch of pairs with hidden tokens, as `BertForPreTraining` takes it.

    Returns
    -------
    dict
        ``input_ids``, ``token_type_ids``, ``attention_mask`` and ``labels`` [B, S], rows filled up to the longest, and
        ``next_sentence_label`` [B]; all int64.
    """
    shape = (len(examples), max((len(example.input_ids) for example in examples), default=0))
    batch = {name: np.zeros(shape, np.int64) for name in ("input_ids", "token_type_ids", "attention_mask")}
    batch["labels"] = np.full(shape, IGNORED)
    rng = np.random.default_rng(seed)
    for row, example in enumerate(examples):
        n = len(example.input_ids)
        batch["input_ids"][row, :n], batch["labels"][row, :n] = masking(example.input_ids, rng)
        batch["input_ids"][row, n:] = masking.pad_id
        batch["token_type_ids"][row, :n] = example.token_type_ids
        batch["attention_mask"][row, :n] = 1
    batch["next_sentence_label"] = np.array([example.next_sentence_label for example in examples], np.int64)
    return batch


class _Documents:
    """The tokens of documents: their ids one after the other, and where sentences and documents begin."""

    def __init__(self, documents: Iterable[Iterable[str]], tokenizer: Tokenizer) -> None:
        sentences: list[str] = []
        ends = [0]
        for index, document in enumerate(documents):
            if isinstance(document, str):
                message = f"documents[{index}] is a str: a document is given as its sentences, ['One.', 'Two.']"
                raise InputError(message)
            sentences.extend(document)
            ends.append(len(sentences))
        batch = tokenizer.encode_batch(sentences, add_special_tokens=False, truncation=False, padding=False)
        kept = batch.lengths > 0
        self._ids = batch.ids.astype(np.int64)
        self._starts = np.append(batch.row_offsets[:-1][kept], len(self._ids))
        # Sentences before each document: without the empty ones, and without documents of them alone.
        before = np.unique(np.concatenate(([0], np.cumsum(kept)))[ends])
        self._sentences = [range(a, b) for a, b in zip(before[:-1].tolist(), before[1:].tolist(), strict=True)]
        if len(self._sentences) == 1:
            message = "documents has one document that is not empty; a random second part needs another one"
            raise InputError(message)

    def __len__(self) -> int:
        return len(self._sentences)

    def sentences(self, document: int) -> range:
        """Return the numbers of a document's sentences."""
        return self._sentences[document]

    def ids(self, first: int, end: int) -> npt.NDArray[np.int64]:
        """Return the tokens of some sentences."""
        return self._ids[self._starts[first] : self._starts[end]]

    def until(self, first: int, end: int, tokens: int) -> int:
        """Return where sentences from `first` on have so many tokens, `end` at most; one sentence at least."""
        full = int(np.searchsorted(self._starts, self._starts[first] + tokens))
        return min(max(full, first + 1), end)


def _pairs(
    documents: _Documents, around: tuple[int, int], max_length: int, short_probability: float, rng: np.random.Generator
) -> Iterator[PairExample]:
    most = max_length - _SPECIAL_TOKENS
    for number in range(len(documents)):
        sentences = documents.sentences(number)
        at = sentences.start
        while at < sentences.stop:
            target = int(rng.integers(2, most + 1)) if rng.random() < short_probability else most
            end = documents.until(at, sentences.stop, target)
            middle = int(rng.integers(at + 1, end)) if end - at > 1 else end
            a = documents.ids(at, middle)
            is_random = end - at == 1 or rng.random() < 0.5
            if is_random:
                other = int(rng.integers(len(documents) - 1))
                there = documents.sentences(other + (other >= number))
                first = int(rng.integers(there.start, there.stop))
                b = documents.ids(first, documents.until(first, there.stop, target - len(a)))
                at = middle
            else:
                b = documents.ids(middle, end)
                at = end
            yield _pair(*_cut(a, b, most, rng), around, is_random=is_random)


def _cut(
    a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], most: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Take tokens off the longer part, one by one and from either end, until both fit."""
    surplus = max(0, len(a) + len(b) - most)
    # First off the longer one until they are alike, then in turn; where they are alike B is cut.
    off_a = min(surplus, max(0, len(a) - len(b)))
    off_b = min(surplus - off_a, max(0, len(b) - len(a)))
    rest = surplus - off_a - off_b
    return _shortened(a, off_a + rest // 2, rng), _shortened(b, off_b + rest - rest // 2, rng)


def _shortened(part: npt.NDArray[np.int64], n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Take n tokens off, each from the start or the end with equal chance."""
    start = int(rng.binomial(n, 0.5))
    return part[start : len(part) - (n - start)]


def _pair(
    a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], around: tuple[int, int], *, is_random: bool
) -> PairExample:
    cls_id, sep_id = around
    ids = np.concatenate(([cls_id], a, [sep_id], b, [sep_id]))
    types = np.zeros(len(ids), np.int64)
    types[len(a) + 2 :] = 1
    return PairExample(ids, types, int(is_random))
