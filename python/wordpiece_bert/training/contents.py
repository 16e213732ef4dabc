"""What is in a vocabulary: kinds of tokens, scripts, lengths, and where each kind begins."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["VocabContents", "vocab_contents"]

_UNUSED = re.compile(r"\[unused\d+\]")
_JOINER = "##"
_LETTERS = frozenset({"Lu", "Ll", "Lt", "Lo"})

#: A token and its id.
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class VocabContents:
    """What is in a vocabulary. Every token is of one kind: special, unused, character, word or continuation."""

    #: The number of tokens.
    tokens: int
    #: The special tokens with their ids.
    special: dict[str, int]
    #: Slots ``[unused0]``, ``[unused1]``, …
    unused: int
    #: Tokens that are one character and may begin a word.
    single_characters: int
    #: Longer tokens that may begin a word.
    whole_words: int
    #: Tokens that begin with ``##``, and how many of them are one character.
    continuations: int
    single_character_continuations: int
    #: The first and the last of them, by id.
    first_whole_word: Place | None
    last_whole_word: Place | None
    first_continuation: Place | None
    last_continuation: Place | None
    #: Script -> number of tokens, the most frequent first: that of the first letter, by the first word of its name in
    #: Unicode; tokens without a letter are ``DIGIT`` or ``SYMBOL``. Special tokens and slots are not among them.
    scripts: dict[str, int]
    #: Characters (without ``##``) -> number of tokens, special tokens and slots not among them.
    lengths: dict[int, int]
    #: The longest token that is none of those.
    longest: str | None

    def to_dict(self) -> dict[str, object]:
        """Return everything by name."""
        return asdict(self)


def vocab_contents(vocab: Sequence[str] | Mapping[str, int], special_tokens: Collection[str]) -> VocabContents:
    """Sort the tokens of a vocabulary into kinds.

    Parameters
    ----------
    vocab
        Token -> id, or the tokens in the order of their ids.
    special_tokens
        Which of them are special.
    """
    ids = vocab.items() if isinstance(vocab, Mapping) else ((token, i) for i, token in enumerate(vocab))
    tokens = sorted(ids, key=lambda place: place[1])
    special = {token: i for token, i in tokens if token in special_tokens}
    plain = [(token, i) for token, i in tokens if token not in special and not _UNUSED.fullmatch(token)]
    continuations = [(token, i) for token, i in plain if token.startswith(_JOINER) and token != _JOINER]
    words = [(token, i) for token, i in plain if not token.startswith(_JOINER) or token == _JOINER]
    characters = [place for place in words if len(place[0]) == 1]
    whole = [place for place in words if len(place[0]) > 1]
    texts = [token for token, _ in words] + [token.removeprefix(_JOINER) for token, _ in continuations]
    lengths = Counter(map(len, texts))
    return VocabContents(
        tokens=len(tokens),
        special=special,
        unused=len(tokens) - len(special) - len(plain),
        single_characters=len(characters),
        whole_words=len(whole),
        continuations=len(continuations),
        single_character_continuations=sum(len(token) == len(_JOINER) + 1 for token, _ in continuations),
        first_whole_word=whole[0] if whole else None,
        last_whole_word=whole[-1] if whole else None,
        first_continuation=continuations[0] if continuations else None,
        last_continuation=continuations[-1] if continuations else None,
        scripts=dict(Counter(map(_script, texts)).most_common()),
        lengths=dict(sorted(lengths.items())),
        longest=max(texts, key=len, default=None),
    )


def _script(text: str) -> str:
    """The script of the first letter, by name."""
    for c in text:
        if unicodedata.category(c) in _LETTERS:
            name = unicodedata.name(c, "").removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ")
            # Others are letters by category only: MICRO SIGN, SCRIPT SMALL L.
            if name.startswith(("HANGUL", "CJK")) or " LETTER " in name or " SYLLABLE " in name:
                return name.partition(" ")[0]
    return "DIGIT" if any(c.isnumeric() for c in text) else "SYMBOL"
