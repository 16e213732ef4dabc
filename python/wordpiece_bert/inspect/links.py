"""Links of attention: what a token gives another, beside what the others give it.

A large weight alone says little: many heads look at one word from everywhere. A link tells something where a token
gives a word more than any other token does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array

#: A view opens on a link if its weight is at least this much above what any other token gives.
LEAST_LEAD = 0.1
#: Tokens that stand for a word to be guessed: a link from one of them comes first.
MASKS = ("[MASK]", "<mask>")


def telling_link(
    weights: Array, tokens: Sequence[str], sides: Sequence[int], words: Sequence[int | None] | None = None
) -> dict[str, Any] | None:
    """Return the link that stands out most from what all other tokens give the same token.

    Links between neighbours, within a word, between equal tokens and with tokens without letters or digits are left
    out: heads with such habits have them everywhere. In a text with a mask only its links count, if one stands out.

    Parameters
    ----------
    weights : array
        The attention weights, [L, N, S, S].
    tokens : sequence of str
        S tokens.
    sides : sequence of int
        The text of each token, negative for a special token.
    words : sequence of int, optional
        The word of each token in its text.

    Returns
    -------
    dict or None
        ``layer``, ``head``, ``token`` (the query), ``pair`` (the key). None if no link is so far above the others.
    """
    masks = [i for i, token in enumerate(tokens) if token in MASKS]
    allowed = _allowed(tokens, sides, words, masks)
    if masks and (found := _best(weights, allowed & np.isin(np.arange(len(tokens)), masks)[:, None])):
        return found
    return _best(weights, allowed)


def _allowed(
    tokens: Sequence[str], sides: Sequence[int], words: Sequence[int | None] | None, masks: list[int]
) -> npt.NDArray[np.bool_]:
    """Return which pairs of a query and a key may be a telling link, [S, S]."""
    places = np.arange(len(tokens))
    spelled = np.array([any(c.isalnum() for c in token) for token in tokens], np.bool_) & (np.array(sides) >= 0)
    asking = spelled.copy()
    asking[masks] = True  # a mask is a special token in some tokenizers
    named = np.unique(np.array(tokens), return_inverse=True)[1]
    word = np.array([-1 - i if one is None else one for i, one in enumerate(words or [None] * len(tokens))])
    text = np.array(sides)
    same_word = (word[:, None] == word) & (text[:, None] == text)
    far = np.abs(places[:, None] - places) > 1
    allowed: npt.NDArray[np.bool_] = asking[:, None] & spelled & far & (named[:, None] != named) & ~same_word
    return allowed


def _best(weights: Array, allowed: npt.NDArray[np.bool_]) -> dict[str, Any] | None:
    best, lead = None, LEAST_LEAD
    keys = np.arange(weights.shape[-1])
    for layer, heads in enumerate(weights):
        for head, one in enumerate(heads):
            query = one.argmax(axis=0)  # the token that gives each key most
            first = one[query, keys]
            others = one.copy()
            others[query, keys] = -1
            leads = np.where(allowed[query, keys], first - others.max(axis=0), -1)
            key = int(leads.argmax())
            if leads[key] >= lead:
                lead = float(leads[key])
                best = {"layer": layer, "head": head, "token": int(query[key]), "pair": key}
    return best
