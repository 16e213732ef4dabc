"""The special tokens of a tokenizer by their roles, which every kind of tokenizer has."""

from __future__ import annotations


class TokenRoles:
    """The special tokens by their roles, for a class that finds the token of a role and its id."""

    __slots__ = ()

    def _role(self, role: str) -> str | None:
        """Return the token of a role as ``"pad_token"``; None if there is none."""
        raise NotImplementedError

    def _role_id(self, role: str) -> int | None:
        """Return the id of the token of a role; None if there is none."""
        raise NotImplementedError

    @property
    def unk_token(self) -> str | None:
        """The token for a word that the vocabulary cannot represent."""
        return self._role("unk_token")

    @property
    def cls_token(self) -> str | None:
        """The token at the start of a row; None if the vocabulary has none."""
        return self._role("cls_token")

    @property
    def sep_token(self) -> str | None:
        """The token at the end of each text; None if the vocabulary has none."""
        return self._role("sep_token")

    @property
    def pad_token(self) -> str | None:
        """The token that rows are padded with; None if the vocabulary has none."""
        return self._role("pad_token")

    @property
    def mask_token(self) -> str | None:
        """The token that replaces masked tokens; None if the vocabulary has none."""
        return self._role("mask_token")

    @property
    def unk_token_id(self) -> int | None:
        """The id of `unk_token`."""
        return self._role_id("unk_token")

    @property
    def cls_token_id(self) -> int | None:
        """The id of `cls_token`; None if the vocabulary has none."""
        return self._role_id("cls_token")

    @property
    def sep_token_id(self) -> int | None:
        """The id of `sep_token`; None if the vocabulary has none."""
        return self._role_id("sep_token")

    @property
    def pad_token_id(self) -> int | None:
        """The id of `pad_token`; None if the vocabulary has none."""
        return self._role_id("pad_token")

    @property
    def mask_token_id(self) -> int | None:
        """The id of `mask_token`; None if the vocabulary has none."""
        return self._role_id("mask_token")
