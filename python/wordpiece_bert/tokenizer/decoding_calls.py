"""Converting ids and tokens to text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Never, SupportsIndex

from wordpiece_bert._internal.checks import checked_flag, checked_strings, iterates
from wordpiece_bert._internal.lazy import lazy_module
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.peer_arguments import MISSING, TOKENIZER_ARGUMENTS, refuse, refusing, without_others
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.tokenizer_base import TokenizerBase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wordpiece_bert.tokenizer import ragged_batch
    from wordpiece_bert.tokenizer.tokenizer_base import Ids
else:
    ragged_batch = lazy_module("wordpiece_bert.tokenizer.ragged_batch")


class DecodingCalls(TokenizerBase):
    """The methods that convert ids and tokens to text."""

    __slots__ = ()

    @without_others
    def decode(
        self,
        ids: Ids | SupportsIndex = MISSING,
        skip_special_tokens: bool = True,
        clean_up_tokenization_spaces: bool | None = None,
        *,
        strict: bool = False,
        **others: Never,
    ) -> str:
        """Convert ids to text.

        Parameters
        ----------
        ids : list, array or int
            Ids [n], or one id; any integer type of NumPy.
        skip_special_tokens : bool, default True
            Omit special added tokens.
        clean_up_tokenization_spaces : bool, optional
            Remove the spaces before punctuation and in contractions from the text, as transformers does:
            ``isn ' t it ?`` becomes ``isn't it?``. False and None leave the text as the tokenizer's decoder makes it;
            BERT's decoder removes those before single punctuation characters.
        strict : bool, default False
            Raise InputError for an id that has no token, instead of skipping it as `tokenizers` does.

        Returns
        -------
        str
            The text.

        Raises
        ------
        InputError
            A value is not an id; the message has its index. Also for several rows, which are for `decode_batch`.
        TypeError
            There are no ids, or an argument that neither this method nor its peer has.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.decode([2, 4, 5, 6, 3])
        'new yorker'
        >>> tokenizer.decode([2, 4, 5, 6, 3], skip_special_tokens=False)
        '[CLS] new yorker [SEP]'
        """
        if others:
            refuse("Tokenizer.decode", others, TOKENIZER_ARGUMENTS["decode"])
        # Not for a list, which needs no NumPy.
        if not isinstance(ids, list) and (
            isinstance(ids, np.integer) or (isinstance(ids, np.ndarray) and ids.ndim == 0 and ids.dtype.kind in "iu")
        ):
            ids = int(ids)
        flags = _flags(skip_special_tokens, clean_up_tokenization_spaces, strict)
        try:
            return self._inner.decode(ids, *flags)
        except InputError:
            if ids is MISSING:
                raise TypeError("Tokenizer.decode() missing 1 required positional argument: 'ids'") from None
            if _has_rows(ids):
                raise InputError(
                    "ids has rows of ids: use decode_batch(rows), or batch_decode(rows), which keeps special tokens by "
                    "default, as transformers does"
                ) from None
            raise

    @refusing(TOKENIZER_ARGUMENTS["decode_batch"])
    @completed_by(decode)
    def decode_batch(
        self,
        ids: Iterable[Ids],
        skip_special_tokens: bool = True,
        clean_up_tokenization_spaces: bool | None = None,
        *,
        strict: bool = False,
    ) -> list[str]:
        """Convert rows of ids to texts.

        Parameters
        ----------
        ids : iterable of ids
            A list of lists, an array [rows, length], or a `RaggedBatch`.

        Returns
        -------
        list of str
            One text per row.

        Raises
        ------
        InputError
            A value is not an id; the message has its row and index.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.decode_batch([[2, 4, 3], [2, 5, 6, 3]])
        ['new', 'yorker']
        """
        flags = _flags(skip_special_tokens, clean_up_tokenization_spaces, strict)
        try:
            return self._inner.decode_batch(ids, *flags)
        except InputError as error:
            first = next(iter(ids), None) if isinstance(ids, Sequence | np.ndarray) and iterates(ids) else None
            if isinstance(first, int | np.integer):
                raise InputError(f"{error}: one row of ids is for decode(ids)") from None
            raise

    @refusing(TOKENIZER_ARGUMENTS["batch_decode"])
    def batch_decode(
        self,
        sequences: Iterable[Ids],
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
    ) -> list[str]:
        """Convert rows of ids to texts, with the name and the defaults of transformers.

        `decode` and `decode_batch` have the defaults of `tokenizers`: they omit special tokens and clean up on request
        only.

        Parameters
        ----------
        sequences : iterable of ids
            The ids of `decode_batch`.
        skip_special_tokens : bool, default False
            Omit special added tokens.
        clean_up_tokenization_spaces : bool, optional
            Remove the spaces that `decode` removes. Defaults to the setting of tokenizer_config.json, or False.

        Returns
        -------
        list of str
            One text per row.

        Raises
        ------
        InputError
            A value is not an id; the message has its row and index.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.batch_decode([[2, 4, 3], [2, 5, 6, 3]])
        ['[CLS] new [SEP]', '[CLS] yorker [SEP]']
        """
        if clean_up_tokenization_spaces is None:
            clean_up_tokenization_spaces = self._settings.clean_up_tokenization_spaces
        return self.decode_batch(sequences, skip_special_tokens, clean_up_tokenization_spaces)

    def convert_tokens_to_string(self, tokens: Iterable[str]) -> str:
        """Join tokens to a text, as `decode` does with the tokens of ids.

        Parameters
        ----------
        tokens : iterable of str
            The tokens; they need not be in the vocabulary.

        Returns
        -------
        str
            The text: the result of the decoder, or without one the tokens separated by spaces.

        Raises
        ------
        InputError
            A token is not a str.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.convert_tokens_to_string(["new", "york", "##er"])
        'new yorker'
        """
        return self._inner.join_tokens(checked_strings("tokens", tokens))


def _flags(skip: object, cleanup: object, strict: object) -> tuple[bool, bool, bool]:
    """Return the options of a call, checked, in the order in which the core takes them."""
    return (
        checked_flag("skip_special_tokens", skip),
        cleanup is not None and checked_flag("clean_up_tokenization_spaces", cleanup, or_none=True),
        checked_flag("strict", strict),
    )


def _has_rows(ids: object) -> bool:
    """Whether there are several rows of ids."""
    if isinstance(ids, np.ndarray):
        return ids.ndim > 1
    if isinstance(ids, Sequence) and not isinstance(ids, str | bytes) and ids:
        return isinstance(ids[0], Sequence | np.ndarray)
    return isinstance(ids, ragged_batch.RaggedBatch)
