"""A summary of a vocabulary: the kinds of tokens and where each begins, scripts, and lengths."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
from wordpiece_bert._internal.checks import check_instance, checked_strings
from wordpiece_bert._internal.notebook import fields_html

_UNUSED = re.compile(r"\[unused\d+\]")
_LETTERS = frozenset({"Lu", "Ll", "Lt", "Lo"})

#: A token and its id.
TokenAndId = tuple[str, int]


def is_placeholder(token: str) -> bool:
    """Whether a token is one of ``[unused0]``, ``[unused1]``, …, which no text has."""
    return _UNUSED.fullmatch(token) is not None


@dataclass(frozen=True, slots=True)
class VocabContents:
    """The contents of a vocabulary.

    Every token is of exactly one kind: special, unused, single character, whole word or continuation.

    Examples
    --------
    >>> from wordpiece_bert.training import vocab_contents
    >>> contents = vocab_contents(["[UNK]", "a", "cat", "##s", "##ing"], ["[UNK]"])
    >>> contents.tokens, contents.whole_words, contents.continuations
    (5, 1, 2)
    >>> contents.to_dict()["longest"]
    'cat'
    """

    #: Number of tokens.
    tokens: int
    #: Special token -> id.
    special: dict[str, int]
    #: Number of unused tokens, ``[unused0]``, ``[unused1]``, …
    unused: int
    #: Number of tokens that begin a word and are one character.
    single_characters: int
    #: Number of tokens that begin a word and are longer than one character.
    whole_words: int
    #: Number of tokens that continue a word, and how many of those are one character.
    continuations: int
    single_character_continuations: int
    #: The whole words and continuations with the lowest and the highest id.
    first_whole_word: TokenAndId | None
    last_whole_word: TokenAndId | None
    first_continuation: TokenAndId | None
    last_continuation: TokenAndId | None
    #: Script -> number of tokens, the most frequent first. The script of a token is its first letter's, by the
    #: first word of its Unicode name; tokens without a letter count as ``DIGIT`` or ``SYMBOL``. Special and unused
    #: tokens are not counted.
    scripts: dict[str, int]
    #: Length in characters, without the prefix of continuations -> number of tokens. Special and unused tokens are not
    #: counted.
    lengths: dict[int, int]
    #: The longest token that is neither special nor unused, without the prefix.
    longest: str | None

    def to_dict(self) -> dict[str, object]:
        """Return all fields by name.

        Returns
        -------
        dict
            The values by the names of the fields.
        """
        return asdict(self)

    def _repr_html_(self) -> str:
        return fields_html("VocabContents", self.to_dict())


def vocab_contents(
    vocab: Sequence[str] | Mapping[str, int],
    special_tokens: Collection[str],
    *,
    continuing_subword_prefix: str = "##",
) -> VocabContents:
    """Sort the tokens of a vocabulary into kinds.

    Parameters
    ----------
    vocab : sequence of str, or mapping of str to int
        The tokens in the order of their ids, or token -> id.
    special_tokens : collection of str
        Which tokens are special. Those missing from `vocab` are ignored.
    continuing_subword_prefix : str, default "##"
        What marks a token that continues a word. With an empty prefix no token counts as a continuation.

    Returns
    -------
    VocabContents
        Numbers, examples and distributions.

    Examples
    --------
    >>> from wordpiece_bert.training import vocab_contents
    >>> contents = vocab_contents(["[UNK]", "a", "cat", "##s"], ["[UNK]"])
    >>> contents.whole_words, contents.continuations, contents.first_continuation
    (1, 1, ('##s', 3))
    """
    prefix = continuing_subword_prefix
    check_instance("continuing_subword_prefix", prefix, str)

    def continues(token: str) -> bool:
        return bool(prefix) and token.startswith(prefix) and token != prefix

    checked_strings("vocab", vocab)
    marked = set(checked_strings("special_tokens", special_tokens))
    ids = vocab.items() if isinstance(vocab, Mapping) else ((token, i) for i, token in enumerate(vocab))
    tokens = sorted(ids, key=lambda item: item[1])
    special = {token: i for token, i in tokens if token in marked}
    plain = [(token, i) for token, i in tokens if token not in special and not is_placeholder(token)]
    continuations = [(token, i) for token, i in plain if continues(token)]
    words = [(token, i) for token, i in plain if not continues(token)]
    characters = [item for item in words if len(item[0]) == 1]
    whole = [item for item in words if len(item[0]) > 1]
    texts = [token for token, _ in words] + [token.removeprefix(prefix) for token, _ in continuations]
    lengths = Counter(map(len, texts))
    return VocabContents(
        tokens=len(tokens),
        special=special,
        unused=len(tokens) - len(special) - len(plain),
        single_characters=len(characters),
        whole_words=len(whole),
        continuations=len(continuations),
        single_character_continuations=sum(len(token) == len(prefix) + 1 for token, _ in continuations),
        first_whole_word=whole[0] if whole else None,
        last_whole_word=whole[-1] if whole else None,
        first_continuation=continuations[0] if continuations else None,
        last_continuation=continuations[-1] if continuations else None,
        scripts=dict(Counter(map(_script, texts)).most_common()),
        lengths=dict(sorted(lengths.items())),
        longest=max(texts, key=len, default=None),
    )


def _script(text: str) -> str:
    """Return the script of the first letter, as the first word of its Unicode name."""
    for c in text:
        if unicodedata.category(c) in _LETTERS:
            name = unicodedata.name(c, "").removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ")
            # Some characters have the category of letters and no script in their name: MICRO SIGN, SCRIPT SMALL L.
            if name.startswith(("HANGUL", "CJK")) or " LETTER " in name or " SYLLABLE " in name:
                return name.partition(" ")[0]
    return "DIGIT" if any(c.isnumeric() for c in text) else "SYMBOL"
