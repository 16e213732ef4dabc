"""Tools around texts: their normalized form and words, their tokens counted, and texts cut where tokens end."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, overload

from wordpiece_bert._internal.checks import check_several, whole_number
from wordpiece_bert._internal.lazy import lazy_module
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.encoding_calls import EncodingCalls
from wordpiece_bert.tokenizer.tokenizer_base import word_core
from wordpiece_bert.tokenizer.vocabulary_calls import VocabularyCalls

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.tokenizer import dividing
    from wordpiece_bert.tokenizer.dividing import TextPart
    from wordpiece_bert.tokenizer.tokenizer_base import Batch
else:
    dividing = lazy_module("wordpiece_bert.tokenizer.dividing")


def _word(token: tuple[int | None, str, int]) -> int:
    """Return the number of the word that a token of an encoding without special tokens belongs to."""
    assert token[0] is not None
    return token[0]


class TextCalls(EncodingCalls, VocabularyCalls):
    """The methods that look at texts, count their tokens or cut them."""

    __slots__ = ()

    def normalize(self, text: str) -> str:
        """Return what the normalizer makes of a text, added tokens included: they are ordinary text here.

        Parameters
        ----------
        text : str
            The text.

        Returns
        -------
        str
            The normalized text, as ``normalizer.normalize_str`` of `tokenizers` returns it.

        Raises
        ------
        InputError
            It is not a str, has a lone surrogate, or the tokenizer has a word_splitter.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new"]).normalize("Crème brûlée")
        'creme brulee'
        """
        return self._words(text)[0]

    def pre_tokenize(self, text: str) -> list[TextPart]:
        """Return the words of a text, which WordPiece divides into tokens, and their places.

        Parameters
        ----------
        text : str
            The text. Added tokens in it are words.

        Returns
        -------
        list of TextPart
            Each with ``text``, normalized, ``start`` and ``end``, in order.

        Raises
        ------
        InputError
            It is not a str, has a lone surrogate, or the tokenizer has a word_splitter.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> for word in Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new"]).pre_tokenize(
        ...     "New York's"
        ... ):
        ...     print(*word)
        new 0 3
        york 4 8
        ' 8 9
        s 9 10
        """
        self._words(text)
        encoding = self.encode(text, add_special_tokens=False, truncation=False, padding=False)
        added = self.added_tokens
        words = []
        for number, tokens in itertools.groupby(
            zip(encoding.word_ids, encoding.tokens, encoding.ids, strict=True), _word
        ):
            first, *others = tokens
            span = encoding.word_to_chars(number)
            assert span is not None
            _, token, token_id = first
            place = text[slice(*span)]
            # The unknown token is an added token, and stands for words that are not added tokens.
            is_added = not others and token_id in added and (token_id != self.unk_token_id or token in place)
            words.append(dividing.TextPart(token if is_added else "".join(self._words(place)[1]), *span))
        return words

    @overload
    def count_tokens(  # type: ignore[overload-overlap]
        self,
        texts: str,
        *,
        add_special_tokens: bool = ...,
        encode_special_tokens: bool = ...,
        threads: int | None = ...,
    ) -> int: ...

    @overload
    def count_tokens(
        self,
        texts: Batch,
        *,
        add_special_tokens: bool = ...,
        encode_special_tokens: bool = ...,
        threads: int | None = ...,
    ) -> npt.NDArray[np.int64]: ...

    @completed_by(EncodingCalls.encode_batch)
    def count_tokens(
        self,
        texts: str | Batch,
        *,
        add_special_tokens: bool = False,
        encode_special_tokens: bool = False,
        threads: int | None = None,
    ) -> Any:
        """Count the tokens of texts, as fast as their ids are computed.

        Parameters
        ----------
        texts : str or batch
            One text, or what `encode_batch` takes.
        add_special_tokens : bool, default False
            Whether the special tokens of a row count.

        Returns
        -------
        int or ndarray of int64
            The number of tokens of one text, or of each text, [n]. Nothing is truncated.

        Raises
        ------
        InputError
            As from `encode_batch`.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> tokenizer.count_tokens("New Yorker")
        3
        >>> tokenizer.count_tokens(["New Yorker", "New"], add_special_tokens=True)
        array([5, 3])
        """
        is_one = isinstance(texts, str)
        items: Any = [texts] if is_one else texts
        rows = self.encode_batch(
            items,
            add_special_tokens=add_special_tokens,
            truncation=False,
            padding=False,
            encode_special_tokens=encode_special_tokens,
            threads=threads,
        )
        counts = np.diff(rows.row_offsets)
        return int(counts[0]) if is_one else counts

    def truncate_text(self, text: str, max_tokens: int) -> str:
        """Cut a text after its first tokens.

        Parameters
        ----------
        text : str
            The text.
        max_tokens : int
            The most tokens of the text, without special tokens.

        Returns
        -------
        str
            The text up to the end of that token, or of one before it where the text would have more tokens; all of it
            if it has no more. The cut may be within a word, and the last word may then have other tokens than it had.

        Raises
        ------
        InputError
            The text is not a str, `max_tokens` is negative, or the tokenizer has a word_splitter.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> tokenizer.truncate_text("A New Yorker", 3)
        'A New York'
        """
        whole_number("max_tokens", max_tokens, 0)
        encoding = self.encode(text, add_special_tokens=False, truncation=False, padding=False)
        return dividing.first_tokens(text, encoding.offsets, max_tokens, self.count_tokens)

    def split_text(self, text: str, max_tokens: int, overlap: int = 0) -> list[TextPart]:
        """Divide a text into parts of at most so many tokens.

        Parameters
        ----------
        text : str
            The text.
        max_tokens : int
            The most tokens of a part by itself, without special tokens.
        overlap : int, default 0
            How many of the last tokens of a part the next one begins with.

        Returns
        -------
        list of TextPart
            Each with ``text``, ``start`` and ``end``; each begins where a token begins and ends where one ends. A
            border may be within a word, whose halves may have other tokens than the word had: a part that would have
            more than `max_tokens` for this reason ends earlier, if need be within a token. Only a single character may
            have more. Empty if there are no tokens.

        Raises
        ------
        InputError
            The text is not a str, `overlap` is not below `max_tokens`, or the tokenizer has a word_splitter.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
        >>> [
        ...     part.text
        ...     for part in tokenizer.split_text("A New Yorker in New York", 3, overlap=1)
        ... ]
        ['A New York', 'Yorker in', 'in New York']
        """
        whole_number("max_tokens", max_tokens, 1)
        whole_number("overlap", overlap, 0, max_tokens - 1, meaning="one less than max_tokens")
        encoding = self.encode(text, add_special_tokens=False, truncation=False, padding=False)
        borders = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        units = dividing.units_of(borders)
        [places] = dividing.divided([text], [borders], [units], max_tokens, overlap, self.count_tokens)
        return [dividing.TextPart(text[start:end], start, end) for start, end in places]

    def build_inputs_with_special_tokens(
        self, token_ids_0: Sequence[int], token_ids_1: Sequence[int] | None = None
    ) -> list[int]:
        """Add the special tokens of a row to the ids of one text or of two, as in transformers.

        Parameters
        ----------
        token_ids_0 : sequence of int
            The ids of the first text, without special tokens.
        token_ids_1 : sequence of int, optional
            The ids of the second text.

        Returns
        -------
        list of int
            The ids of the row: ``[CLS] A [SEP]``, or ``[CLS] A [SEP] B [SEP]``, or as the tokenizer's template says.

        Raises
        ------
        InputError
            An id is not in the vocabulary.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new", "york"])
        >>> tokenizer.build_inputs_with_special_tokens([3, 4])
        [1, 3, 4, 2]
        """
        texts = [token_ids_0] if token_ids_1 is None else [token_ids_0, token_ids_1]
        known = len(self)
        for name, ids in zip(("token_ids_0", "token_ids_1"), texts, strict=False):
            check_several(name, ids)
            for token_id in ids:
                whole_number(name, token_id, 0)
                if self.id_to_token(token_id) is None:
                    raise InputError(f"{name}: {token_id} is not the id of one of the {known} tokens")
        row = self.encode("a", None if token_ids_1 is None else "a", truncation=False, padding=False)
        places = zip(row.sequence_ids, row.ids, strict=True)
        found: list[int] = []
        for sequence, tokens in itertools.groupby(places, key=lambda place: place[0]):
            found += [int(i) for i in texts[sequence]] if sequence is not None else [i for _, i in tokens]
        return found

    def _words(self, text: str) -> tuple[str, list[str]]:
        """Return the normalized text and its words."""
        if word_core(self._inner) is not None:
            raise InputError("a tokenizer with a word_splitter has no words with places in the text: use tokenize")
        return self._inner.words(text)
