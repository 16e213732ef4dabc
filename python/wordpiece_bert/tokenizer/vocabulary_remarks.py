"""What looks like a mistake in a vocabulary: tokens that no text can have, and special tokens that it lacks."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from wordpiece_bert import _core

# An uncased model's vocabulary may have a few odd tokens with capital letters; in a cased model's, a third have them.
_SHARE = 100

# Special and unused tokens, which are found in texts as they are or not at all.
_BRACKETED = re.compile(r"[\[<].*[\]>]")


def unreachable_tokens(
    core: _core.Tokenizer, normalizer: _core.BertNormalizer, remedies: Mapping[str, str] | None = None
) -> list[str]:
    """Return a remark if texts are normalized so that tokens of the vocabulary are in none.

    Parameters
    ----------
    core : _core.Tokenizer
        The tokenizer.
    normalizer : _core.BertNormalizer
        Its normalizer.
    remedies : mapping of str to str, optional
        What to do, for the options ``lowercase`` and ``strip_accents``.

    Returns
    -------
    list of str
        One remark, or none if fewer than one ordinary token in a hundred is concerned.
    """
    strips = normalizer.lowercase if normalizer.strip_accents is None else normalizer.strip_accents
    causes = [
        ("lowercase", normalizer.lowercase, str.lower, "texts are put into lower case"),
        ("strip_accents", strips, _decomposed, "accents are removed from texts"),
    ]
    added = {fields[0] for _, fields in core.added_tokens()}

    def ordinary(tokens: Iterable[str]) -> list[str]:
        return [token for token in tokens if token not in added and not _BRACKETED.fullmatch(token)]

    for option, is_on, normalized, effect in causes:
        lost = ordinary(_changed(core, normalized)) if is_on else []
        if lost and len(lost) * _SHARE >= len(tokens := ordinary(core.vocab(False))):
            about = f"{lost[0]!r} ({len(lost):,} of {len(tokens):,})"
            remedy = f": {remedies[option]}" if remedies else ""
            return [f"tokens such as {about} are in no text because {effect}{remedy}"]
    return []


def missing_specials(core: _core.Tokenizer, tokens: Iterable[str]) -> str | None:
    """Return which of the tokens a vocabulary does not have, for a sentence; None if it has all of them."""
    missing = [token for token in dict.fromkeys(tokens) if core.token_to_id(token) is None]
    return f"the vocabulary has no {' and no '.join(map(repr, missing))}" if missing else None


def _changed(core: _core.Tokenizer, normalized: Callable[[str], str]) -> list[str]:
    """Return the tokens of the vocabulary that a function changes, by one call for all: loading waits for it."""
    text = core.to_vocab_txt()
    if text is None:  # ids have gaps, or a token ends with white space
        return [token for token in core.vocab(False) if normalized(token) != token]
    changed = normalized(text)
    if changed == text:
        return []
    return [token for token, line in zip(text.split("\n"), changed.split("\n"), strict=True) if token != line]


def _decomposed(text: str) -> str:
    # Hangul is divided into its letters, which are not accents, but then the token is not found either.
    return text if text.isascii() else unicodedata.normalize("NFD", text)
