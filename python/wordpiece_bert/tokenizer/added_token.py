"""`AddedToken`: a token that is found in a text before normalization and splitting."""

from __future__ import annotations

from dataclasses import dataclass

from wordpiece_bert._internal.checks import checked_flag
from wordpiece_bert.errors import InputError

FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


@dataclass(frozen=True, slots=True, init=False)
class AddedToken:
    """A token that is matched in the text before the text is split into words, and that is never split itself.

    Parameters
    ----------
    content : str
        The text of the token. It must not be empty.
    single_word : bool, default False
        Match only where no word character is next to it.
    lstrip, rstrip : bool, default False
        Include the white space before (`lstrip`) or after (`rstrip`) the token in the match.
    normalized : bool, optional
        Match the normalized token in the normalized text, instead of the token in the original text. Defaults to the
        opposite of `special`.
    special : bool, default False
        `Tokenizer.decode` omits the token if its ``skip_special_tokens`` is set, which is the default there.

    Raises
    ------
    InputError
        The content is empty, which would match everywhere, or the content or a flag has the wrong type.

    Examples
    --------
    >>> from wordpiece_bert import AddedToken, Tokenizer
    >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "see"])
    >>> tokenizer.with_added_tokens([AddedToken("[URL]", special=True)]).tokenize(
    ...     "see [URL]"
    ... )
    ['see', '[URL]']
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
            raise InputError(f"the content of an added token must be a non-empty str, not {content!r}")
        object.__setattr__(self, "content", content)
        flags = (single_word, lstrip, rstrip, not special if normalized is None else normalized, special)
        for name, flag in zip(FLAGS, flags, strict=True):
            checked_flag(f"{name} of the added token {content!r}", flag)
            object.__setattr__(self, name, flag)

    def __str__(self) -> str:
        return self.content
