"""One token that is found in a text as it is."""

from __future__ import annotations

from dataclasses import dataclass

from wordpiece_bert._internal.checks import checked_flag
from wordpiece_bert.errors import InputError

__all__ = ["AddedToken"]

_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


@dataclass(frozen=True, slots=True, init=False)
class AddedToken:
    """A token that is found in the text before anything else is done to it, and is never split.

    Parameters
    ----------
    content
        The text of the token.
    single_word
        It is found only where no word character stands beside it.
    lstrip, rstrip
        It takes the white space before it, or after it, along.
    normalized
        It is searched for in the normalized text, itself normalized; else in the text as it is. By default the opposite
        of `special`.
    special
        `Tokenizer.decode` leaves it out with ``skip_special_tokens``.

    Raises
    ------
    InputError
        An empty content, which would be found everywhere; a content or flag of another type.
    """

    content: str
    single_word: bool
    lstrip: bool
    rstrip: bool
    normalized: bool
    special: bool

    def __init__(
        self,
        content: str,
        *,
        single_word: bool = False,
        lstrip: bool = False,
        rstrip: bool = False,
        normalized: bool | None = None,
        special: bool = False,
    ) -> None:
        given: object = content
        if not isinstance(given, str) or not given:
            message = f"the content of an added token is a str that is not empty, not {content!r}"
            raise InputError(message)
        object.__setattr__(self, "content", content)
        flags = (single_word, lstrip, rstrip, not special if normalized is None else normalized, special)
        for name, flag in zip(_FLAGS, flags, strict=True):
            checked_flag(f"{name} of the added token {content!r}", flag)
            object.__setattr__(self, name, flag)

    def __str__(self) -> str:
        return self.content
