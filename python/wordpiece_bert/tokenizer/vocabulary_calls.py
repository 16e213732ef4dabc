"""The vocabulary of a tokenizer: tokens and ids, added tokens, special tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, overload

from wordpiece_bert._internal.checks import check_instance, check_several, checked_flag
from wordpiece_bert._internal.lazy import lazy_module
from wordpiece_bert._internal.peer_arguments import TOKENIZER_ARGUMENTS, refusing
from wordpiece_bert.tokenizer.model_rows import IdBounds
from wordpiece_bert.tokenizer.pretrained import SPECIAL_TOKEN_ROLES
from wordpiece_bert.tokenizer.tokenizer_base import TokenizerBase, word_core

if TYPE_CHECKING:
    from wordpiece_bert.tokenizer import added_token
else:
    added_token = lazy_module("wordpiece_bert.tokenizer.added_token")


class VocabularyCalls(TokenizerBase):
    """The methods and attributes for the vocabulary."""

    __slots__ = ()

    def _id_bounds(self) -> IdBounds:
        """Return the largest ids."""
        largest = self._inner.largest_id
        vocabulary = (-1, "") if largest is None else (largest, self._inner.id_to_token(largest) or "")
        return IdBounds.of(vocabulary, ((index, fields[0]) for index, fields in self._inner.added_tokens()))

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token, added tokens included, or None if there is no such token.

        Parameters
        ----------
        token : str
            The token.

        Returns
        -------
        int or None
            The id.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.token_to_id("york")
        5
        >>> tokenizer.token_to_id("london") is None
        True
        """
        return self._inner.token_to_id(token)

    def id_to_token(self, token_id: int) -> str | None:
        """Return the token of an id, added tokens included, or None if the id has no token.

        Parameters
        ----------
        token_id : int
            The id.

        Returns
        -------
        str or None
            The token.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.id_to_token(5)
        'york'
        """
        return self._inner.id_to_token(token_id)

    @overload
    def convert_tokens_to_ids(self, tokens: str) -> int: ...

    @overload
    def convert_tokens_to_ids(self, tokens: list[str] | tuple[str, ...]) -> list[int]: ...

    def convert_tokens_to_ids(self, tokens: str | list[str] | tuple[str, ...]) -> int | list[int]:
        """Return the id of a token, or of each in a list; an unknown one gets the id of the unknown token.

        Parameters
        ----------
        tokens : str, or list of str
            A token, or several.

        Returns
        -------
        int or list of int
            An id for a str, else one for each token.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.convert_tokens_to_ids(["york", "##er", "london"])
        [5, 6, 1]
        """
        if isinstance(tokens, str):
            found = self._inner.token_to_id(tokens)
            return self._inner.unk_id if found is None else found
        check_instance("tokens", tokens, Iterable, "a token, or a list of tokens")
        return [self.convert_tokens_to_ids(token) for token in tokens]

    @overload
    def convert_ids_to_tokens(self, ids: int, skip_special_tokens: bool = False) -> str | None: ...

    @overload
    def convert_ids_to_tokens(
        self,
        ids: Iterable[int],
        skip_special_tokens: bool = False,
    ) -> list[str | None]: ...

    def convert_ids_to_tokens(
        self,
        ids: int | Iterable[int],
        skip_special_tokens: bool = False,
    ) -> str | list[str | None] | None:
        """Return the token of an id, or of each in a list; None for an id without a token.

        With `skip_special_tokens`, the ids of `all_special_ids` are omitted from a list.

        Parameters
        ----------
        ids : int, or iterable of int
            An id, or several.
        skip_special_tokens : bool, default False
            Omit the ids of `all_special_ids` from a list.

        Returns
        -------
        str, None, or list of these
            A token for an int, else one for each id.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> tokenizer.convert_ids_to_tokens([2, 5, 6, 3], skip_special_tokens=True)
        ['york', '##er']
        """
        if isinstance(ids, int) or getattr(ids, "ndim", None) == 0:
            return self._inner.id_to_token(ids)  # type: ignore[arg-type]  # an integer of NumPy, too
        check_several("ids", ids)
        if not skip_special_tokens:
            return [self._inner.id_to_token(i) for i in ids]
        skipped = set(self.all_special_ids)
        tokens = ((i, self._inner.id_to_token(i)) for i in ids)
        return [token for i, token in tokens if int(i) not in skipped]

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """Return token -> id: the model's tokens by id, then the added tokens that the model does not have.

        Parameters
        ----------
        with_added_tokens : bool, default True
            Include the added tokens.

        Returns
        -------
        dict of str to int
            The ids by their tokens.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "york", "##er"])
        >>> tokenizer.get_vocab()
        {'[UNK]': 0, 'york': 1, '##er': 2}
        """
        return self._inner.vocab(checked_flag("with_added_tokens", with_added_tokens))

    @property
    def vocab_size(self) -> int:
        """The number of tokens of the model, without added tokens; ``len(tokenizer)`` includes them."""
        return self._inner.vocab_size(False)

    @property
    def memory_bytes_per_thread(self) -> int:
        """The upper bound of the word cache, in bytes per thread.

        The cache holds the pieces of words seen before. When it is full, words are evicted and computed again when they
        recur, so the memory stays below this bound for any number of distinct words. 0 for a tokenizer without a cache.
        """
        return self._inner.memory_bytes_per_thread

    @property
    def is_fast(self) -> bool:
        """Whether encodings have offsets and word ids, as with the tokenizers of transformers in Rust."""
        return word_core(self._inner) is None

    def __len__(self) -> int:
        return self._inner.vocab_size(True)

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and self._inner.token_to_id(token) is not None

    @property
    def added_tokens(self) -> dict[int, added_token.AddedToken]:
        """Id -> added token, in the order in which they were added."""
        return {
            token_id: added_token.AddedToken(content, **dict(zip(added_token.FLAGS, flags, strict=True)))
            for token_id, (content, *flags) in self._inner.added_tokens()
        }

    @refusing(TOKENIZER_ARGUMENTS["num_special_tokens_to_add"])
    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """Return how many special tokens the template adds to a text, or with `pair` to a pair.

        Parameters
        ----------
        pair : bool, default False
            Whether two texts make the row.

        Returns
        -------
        int
            The number of special tokens.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> tokenizer = Tokenizer.from_vocab(
        ...     ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"]
        ... )
        >>> (
        ...     tokenizer.num_special_tokens_to_add(),
        ...     tokenizer.num_special_tokens_to_add(pair=True),
        ... )
        (2, 3)
        """
        return self._inner.special_tokens_added(checked_flag("pair", pair))

    # --- special tokens

    @property
    def all_special_tokens(self) -> list[str]:
        """The tokens with a role and other special tokens, without duplicates.

        Of a tokenizer from a folder, the others are those that its files name or list as extra or additional special
        tokens, as in transformers; of other tokenizers, all added tokens that are special.
        """
        listed = self._settings.listed_special_tokens
        if listed is None:
            return self._marked_special_tokens()
        return list(dict.fromkeys(token for token in listed if self._inner.token_to_id(token) is not None))

    def _marked_special_tokens(self) -> list[str]:
        """Return the tokens with a role and all other added tokens that are special."""
        roles = [token for role in SPECIAL_TOKEN_ROLES if (token := self._role(role)) is not None]
        added = [token.content for token in self.added_tokens.values() if token.special]
        return list(dict.fromkeys([*roles, *added]))

    @property
    def all_special_ids(self) -> list[int]:
        """The ids of `all_special_tokens`."""
        return self.convert_tokens_to_ids(self.all_special_tokens)
