"""Encoding texts in memory: one text, or a batch as flat arrays or as encodings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Never, Unpack

from wordpiece_bert._internal.lazy import lazy_module
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.parameters import completed_by, taking
from wordpiece_bert._internal.peer_arguments import TOKENIZER_ARGUMENTS, refuse, without_others
from wordpiece_bert._internal.texts import warn_cut_by_file, warn_file_truncated
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.tokenizer.option_types import DEFAULTS, CallOptions, NamedOptions
from wordpiece_bert.tokenizer.parameters import ENCODING
from wordpiece_bert.tokenizer.tokenizer_base import TokenizerBase, requested

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert import _core
    from wordpiece_bert._core import Encoding
    from wordpiece_bert.tokenizer import ragged_batch
    from wordpiece_bert.tokenizer.option_types import OffsetUnit, Side, Strategy
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch
    from wordpiece_bert.tokenizer.tokenizer_base import Batch, Text
else:
    ragged_batch = lazy_module("wordpiece_bert.tokenizer.ragged_batch")

# A text with more windows than this is reported.
_MANY_WINDOWS = 10_000


class EncodingCalls(TokenizerBase):
    """The methods that encode texts in memory.

    `encode` and `encode_batch` name their options instead of taking `NamedOptions`: with a dict, a call for a short
    text takes a tenth longer.
    """

    __slots__ = ()

    @without_others
    @completed_by(ENCODING)
    def encode(
        self,
        text: Text,
        pair: Text | None = None,
        is_split_into_words: bool = False,
        add_special_tokens: bool = True,
        *,
        truncation: bool | Strategy | Literal["do_not_truncate"] | None = None,
        max_length: int | None = None,
        stride: int | None = None,
        truncation_side: Side | None = None,
        padding: bool | Literal["longest", "max_length", "do_not_pad"] | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: Side | None = None,
        offset_unit: OffsetUnit = "char",
        encode_special_tokens: bool = False,
        **others: Never,
    ) -> Encoding:
        """Encode one text, or a pair of texts, with all details.

        The first four arguments have the order of `tokenizers`, where the third is named ``is_pretokenized``.

        Parameters
        ----------
        text : str
            The text; with ``is_split_into_words=True`` a list of words.
        pair : str, optional
            The second text of a pair. An empty str makes a pair; None does not.

        Returns
        -------
        Encoding
            Ids, tokens, offsets, word ids, masks, and the further windows of a truncated text.

        Raises
        ------
        InputError
            An argument is not text, has a lone surrogate, or an option is wrong.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> encoding = tokenizer.encode("New Yorker")
        >>> encoding.tokens
        ['[CLS]', 'new', 'york', '##er', '[SEP]']
        >>> encoding.offsets
        [(0, 0), (0, 3), (4, 8), (8, 10), (0, 0)]
        """
        if others:
            refuse("Tokenizer.encode", others, TOKENIZER_ARGUMENTS["encode"])
        plain = self._plain
        if plain is not None and (  # a call without options, the most frequent one, in half the time
            is_split_into_words is False
            and add_special_tokens is True
            and truncation is None
            and max_length is None
            and stride is None
            and truncation_side is None
            and padding is None
            and pad_to_multiple_of is None
            and padding_side is None
            and offset_unit == "char"
            and encode_special_tokens is False
        ):
            return self._inner.encode(text, pair, False, plain)
        given = (
            is_split_into_words,
            add_special_tokens,
            truncation,
            max_length,
            stride,
            truncation_side,
            padding,
            pad_to_multiple_of,
            padding_side,
            offset_unit,
            encode_special_tokens,
        )
        split, resolved = self._resolve(given)
        return self._inner.encode(text, pair, split, resolved)

    def encode_ids(self, text: str, pair: str | None = None) -> npt.NDArray[np.uint32]:
        """Encode one text, or a pair, to ids: the fastest way for single texts.

        Parameters
        ----------
        text : str
            The text.
        pair : str, optional
            The second text of a pair.

        Returns
        -------
        ndarray of uint32
            The ids of ``encode(text, pair)``, shape [n].

        Raises
        ------
        InputError
            An argument is not a str, or has a lone surrogate.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.encode_ids("New Yorker")
        array([2, 4, 5, 6, 3], dtype=uint32)
        """
        return self._inner.encode_ids(text, pair, self._plain or self._resolve(CallOptions())[1])

    @without_others
    @completed_by(ENCODING)
    def encode_batch(
        self,
        texts: Batch,
        is_split_into_words: bool = False,
        add_special_tokens: bool = True,
        *,
        truncation: bool | Strategy | Literal["do_not_truncate"] | None = None,
        max_length: int | None = None,
        stride: int | None = None,
        truncation_side: Side | None = None,
        padding: bool | Literal["longest", "max_length", "do_not_pad"] | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: Side | None = None,
        offset_unit: OffsetUnit = "char",
        encode_special_tokens: bool = False,
        return_offsets: bool = False,
        return_word_ids: bool = False,
        return_sequence_ids: bool = False,
        return_overflowing_tokens: bool = False,
        return_n_tokens: bool = False,
        threads: int | None = None,
        **others: Never,
    ) -> RaggedBatch:
        """Encode a batch to flat arrays: the fastest way for many texts.

        The first three arguments have the order of `tokenizers`, where the second is named ``is_pretokenized``.

        Parameters
        ----------
        texts : iterable, array or Arrow column
            Texts and pairs ``(text, pair)``; with ``is_split_into_words=True`` each text is a list of words. An Arrow
            column of any library is read in place: strings, a table or struct of two string columns for pairs, or
            lists of strings for words.

        Returns
        -------
        RaggedBatch
            The rows in the order of the texts.

        Raises
        ------
        InputError
            As for `encode`, and for a null in a column. The message has the index of the item.

        Warns
        -----
        UserWarning
            With `return_overflowing_tokens`, one text has more than ten thousand windows. A pair's windows are all
            combinations of the windows of both texts, as in `tokenizers`.
        TruncationWarning
            The truncation of the tokenizer's file, which the call does not mention, cut texts.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> batch = tokenizer.encode_batch(["New Yorker", ("new", "york")], return_offsets=True)
        >>> batch
        RaggedBatch(2 rows, 10 tokens, 0 texts truncated, offsets)
        >>> batch[1]
        array([2, 4, 3, 5, 3], dtype=uint32)
        """
        if others:
            refuse("Tokenizer.encode_batch", others, TOKENIZER_ARGUMENTS["encode_batch"])
        given = (
            is_split_into_words,
            add_special_tokens,
            truncation,
            max_length,
            stride,
            truncation_side,
            padding,
            pad_to_multiple_of,
            padding_side,
            offset_unit,
            encode_special_tokens,
        )
        columns: list[str] = []
        if return_offsets or return_word_ids or return_sequence_ids or return_overflowing_tokens or return_n_tokens:
            columns = requested(
                offsets=return_offsets,
                word_ids=return_word_ids,
                sequence_ids=return_sequence_ids,
                overflow_to_sample=return_overflowing_tokens,
                n_tokens=return_n_tokens,
            )
        split, resolved = self._resolve(given)
        rows = self._inner.encode_batch(texts, None, split, resolved, columns, False, threads)
        if return_overflowing_tokens:
            warn_many_windows(rows)
        if self._file_truncates(truncation, max_length) and not return_overflowing_tokens:
            warn_file_truncated(rows.truncated, resolved.truncation)
        return ragged_batch.ragged(rows)

    @completed_by(encode_batch)
    @taking(NamedOptions, DEFAULTS, TOKENIZER_ARGUMENTS["encodings"])
    def encodings(
        self,
        texts: Batch,
        is_split_into_words: bool = False,
        add_special_tokens: bool = True,
        *,
        threads: int | None = None,
        **options: Unpack[NamedOptions],
    ) -> list[Encoding]:
        """Encode a batch to one `Encoding` per text: complete, and slower than `encode_batch`.

        The first three arguments have the order of `encode_batch` in `tokenizers`, where the second is named
        ``is_pretokenized``.

        Returns
        -------
        list of Encoding
            In the order of the texts. The encoding of a truncated text keeps a reference to its text, or to the entire
            column.

        Raises
        ------
        InputError
            As for `encode_batch`.

        Warns
        -----
        TruncationWarning
            As for `encode_batch`.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> [
        ...     encoding.tokens
        ...     for encoding in tokenizer.encodings(["New Yorker", ("new", "york")])
        ... ]
        [['[CLS]', 'new', 'york', '##er', '[SEP]'], ['[CLS]', 'new', '[SEP]', 'york', '[SEP]']]
        """
        given = CallOptions(is_split_into_words, add_special_tokens, **options)
        split, resolved = self._resolve(given)
        encodings = self._inner.encodings(texts, split, resolved, threads)
        if self._file_truncates(given.truncation, given.max_length):
            cut = [index for index, encoding in enumerate(encodings) if encoding.truncated]
            if cut and resolved.truncation is not None:
                warn_cut_by_file(len(cut), len(encodings), f"index {cut[0]}", resolved.truncation)
        return encodings

    def tokenize(
        self,
        text: str,
        pair: str | None = None,
        add_special_tokens: bool = False,
    ) -> list[str]:
        """Return the tokens of a text, or of a pair, without truncation and padding.

        Parameters
        ----------
        text : str
            The text.
        pair : str, optional
            The second text of a pair.
        add_special_tokens : bool, default False
            Add the special tokens of the template.

        Returns
        -------
        list of str
            The tokens in order.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.tokenize("New Yorker")
        ['new', 'york', '##er']
        """
        return self.encode(text, pair, add_special_tokens=add_special_tokens, truncation=False, padding=False).tokens


def warn_many_windows(rows: _core.Rows) -> None:
    """Warn if a text has very many windows."""
    if rows.overflow_to_sample is None or len(rows.overflow_to_sample) <= _MANY_WINDOWS:
        return
    counts = np.bincount(rows.overflow_to_sample)
    index = int(counts.argmax())
    if counts[index] > _MANY_WINDOWS:
        warn(
            f"texts[{index}] has {counts[index]:,} windows. Those of a pair are all combinations of the windows of "
            "both texts; truncation='only_first' or 'only_second' divides one of them"
        )
