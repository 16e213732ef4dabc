"""Pairs of segments from documents in memory, and batches of them.

The procedure is as in Devlin et al., "BERT" (2019), section 3.1 and appendix A.2. Where the paper leaves a detail
open, ``create_pretraining_data.py`` from the authors' code release decides.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import check_instance, checked_probability, iterates, whole_number
from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.pretraining.masking import Masking, Seed, seed_of
from wordpiece_bert.pretraining.parameters import ROWS
from wordpiece_bert.pretraining.parts import masked_rows
from wordpiece_bert.pretraining.row_options import RowOptions
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

# [CLS] A [SEP] B [SEP]
_SPECIAL_TOKENS = 3


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

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.pretraining import next_sentence_pairs
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> documents = [
    ...     ["baking bread", "the oven was great"],
    ...     ["he repaired the wheel", "a bicycle"],
    ... ]
    >>> pair = next(iter(next_sentence_pairs(documents, tokenizer, seed=0)))
    >>> (
    ...     tokenizer.decode(pair.input_ids, skip_special_tokens=False),
    ...     pair.next_sentence_label,
    ... )
    ('[CLS] baking bread [SEP] he repaired the wheel a bicycle [SEP]', 1)
    """

    input_ids: npt.NDArray[np.int64]
    token_type_ids: npt.NDArray[np.int64]
    next_sentence_label: int


@completed_by(ROWS)
def next_sentence_pairs(
    documents: Iterable[Iterable[str]],
    tokenizer: Tokenizer,
    *,
    max_length: int = 128,
    short_seq_prob: float = 0.1,
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
    ...     print(
    ...         " ".join(tokenizer.convert_ids_to_tokens(pair.input_ids)),
    ...         pair.next_sentence_label,
    ...     )
    [CLS] a a [SEP] b [SEP] 0
    [CLS] c [SEP] b [SEP] 1
    [CLS] d d [SEP] a a b [SEP] 1
    """
    check_instance("tokenizer", tokenizer, Tokenizer)
    max_length = whole_number("max_length", max_length, _SPECIAL_TOKENS + 2, meaning="[CLS] A [SEP] B [SEP]")
    short_seq_prob = checked_probability("short_seq_prob", short_seq_prob)
    cls_id, sep_id = tokenizer.cls_token_id, tokenizer.sep_token_id
    if cls_id is None or sep_id is None:
        raise ConfigError("the tokenizer has no [CLS] or no [SEP] token, which pairs need")
    tokens = _TokenizedDocuments(documents, tokenizer)
    options = RowOptions(
        max_length=max_length, short_seq_prob=short_seq_prob, seed=seed_of(seed), cls_id=cls_id, sep_id=sep_id
    )
    builder = _core.ExampleBuilder(
        tokens.ids,
        tokens.sentence_offsets,
        tokens.document_offsets,
        np.arange(len(tokens.document_offsets) - 1, dtype=np.uint64),
        options,
        pass_number=0,
        masking=None,
        threads=1,
    )
    return _pairs(builder)


def _pairs(builder: _core.ExampleBuilder) -> Iterator[PairExample]:
    """Yield the rows of a builder one by one."""
    while (block := builder.next_block()) is not None:
        arrays = block.arrays()
        ids, types = arrays["input_ids"].astype(np.int64), arrays["token_type_ids"].astype(np.int64)
        labels = arrays["pair_labels"].tolist()
        for (start, end), label in zip(pairwise(arrays["row_offsets"].tolist()), labels, strict=True):
            yield PairExample(ids[start:end].copy(), types[start:end].copy(), label)


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

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.pretraining import Masking, collate, next_sentence_pairs
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> documents = [
    ...     ["baking bread", "the oven was great"],
    ...     ["he repaired the wheel", "a bicycle"],
    ... ]
    >>> pairs = list(next_sentence_pairs(documents, tokenizer, seed=0))
    >>> batch = collate(pairs, Masking(tokenizer), seed=0)
    >>> batch["input_ids"].shape, batch["labels"].shape, batch["next_sentence_label"]
    ((4, 14), (4, 14), array([1, 1, 1, 1]))
    """
    check_instance("masking", masking, Masking)
    given: object = examples
    if not iterates(given) or isinstance(given, PairExample | str | bytes):
        raise InputError(f"examples must be a list of PairExample, not {type(examples).__name__}")
    examples = list(examples)
    for index, example in enumerate(examples):
        check_instance(f"examples[{index}]", example, PairExample)
    shape = (len(examples), max((len(example.input_ids) for example in examples), default=0))
    batch = {name: np.zeros(shape, np.int64) for name in ("input_ids", "token_type_ids", "attention_mask")}
    batch["labels"] = np.full(shape, IGNORED)
    lengths = [len(example.input_ids) for example in examples]
    for row, (example, n) in enumerate(zip(examples, lengths, strict=True)):
        batch["token_type_ids"][row, :n] = example.token_type_ids
        batch["attention_mask"][row, :n] = 1
    is_token = batch["attention_mask"] == 1
    ids = np.concatenate([np.empty(0, np.int64), *(example.input_ids for example in examples)])
    masked = masked_rows(masking, ids, lengths, seed_of(seed))
    batch["input_ids"][~is_token] = masking.pad_id
    batch["input_ids"][is_token], batch["labels"][is_token] = masked
    batch["next_sentence_label"] = np.array([example.next_sentence_label for example in examples], np.int64)
    return batch


class _TokenizedDocuments:
    """The ids of documents as the arrays of a token store, without sentences and documents that have no tokens."""

    def __init__(self, documents: Iterable[Iterable[str]], tokenizer: Tokenizer) -> None:
        given: object = documents
        if not iterates(given) or isinstance(given, str | bytes):
            raise InputError(f"documents must be a list of documents, not {type(documents).__name__}")
        sentences: list[str] = []
        ends = [0]
        for index, document in enumerate(documents):
            if not iterates(document):
                raise InputError(
                    f"documents[{index}] must be the sentences of a document, not {type(document).__name__}"
                )
            if isinstance(document, str | bytes):
                kind = type(document).__name__
                raise InputError(f"documents[{index}] is a {kind}: pass a document as its sentences, ['One.', 'Two.']")
            for number, sentence in enumerate(document):
                if not isinstance(sentence, str):
                    raise InputError(
                        f"documents[{index}][{number}] must be a str, not {type(sentence).__name__}: {sentence!r:.80}"
                    )
                sentences.append(sentence)
            ends.append(len(sentences))
        batch = tokenizer.encode_batch(sentences, add_special_tokens=False, truncation=False, padding=False)
        kept = batch.lengths > 0
        self.ids = batch.ids
        self.sentence_offsets = np.append(batch.row_offsets[:-1][kept], len(self.ids)).astype(np.int64)
        # The number of kept sentences before each document. `unique` drops documents without any.
        self.document_offsets = np.unique(np.concatenate(([0], np.cumsum(kept)))[ends]).astype(np.int64)
        if len(self.document_offsets) == 2:
            raise InputError("only one of documents is not empty, and a random second segment needs another one")
