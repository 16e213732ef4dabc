"""What looks like a mistake in a vocabulary: tokens that no text can have, and special tokens that it lacks."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wordpiece_bert import _core

__all__ = ["missing_specials", "unreachable_tokens"]

# Vocabularies of uncased models may have a few odd tokens with capital letters. Of those of cased models, a third has.
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
        ("lowercase", normalizer.lowercase, _has_capitals, "texts are put into lower case"),
        ("strip_accents", strips, _has_accents, "accents are removed from texts"),
    ]
    added = {fields[0] for _, fields in core.added_tokens()}
    tokens = [token for token in core.vocab(False) if token not in added and not _BRACKETED.fullmatch(token)]
    for option, is_on, is_changed, effect in causes:
        lost = [token for token in tokens if is_changed(token)] if is_on else []
        if lost and len(lost) * _SHARE >= len(tokens):
            about = f"{lost[0]!r} ({len(lost):,} of {len(tokens):,})"
            remedy = f": {remedies[option]}" if remedies else ""
            return [f"tokens such as {about} are in no text because {effect}{remedy}"]
    return []


def missing_specials(core: _core.Tokenizer, tokens: Iterable[str]) -> str | None:
    """Return which of the tokens a vocabulary does not have, for a sentence; None if it has all of them."""
    missing = [token for token in dict.fromkeys(tokens) if core.token_to_id(token) is None]
    return f"the vocabulary has no {' and no '.join(map(repr, missing))}" if missing else None


def _has_capitals(token: str) -> bool:
    return token.lower() != token


def _has_accents(token: str) -> bool:
    # Hangul is divided into its letters, which are no accents, but then the token is not found either.
    return not token.isascii() and unicodedata.normalize("NFD", token) != token
