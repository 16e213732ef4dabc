"""Which tokens of two rows belong together: by the characters of one text, or by the tokens of two."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Tokens of the first row that belong to tokens of the second; one of them may be empty.
Group = tuple[list[int], list[int]]

Span = tuple[int, int, int]


def align_tokens(a: Sequence[str], b: Sequence[str]) -> list[Group]:
    """Align two rows of tokens, one by one and in order: Needleman and Wunsch (1970).

    A pair of equal tokens counts 1, a pair of others −1, and a token without a counterpart −1.

    Parameters
    ----------
    a, b : sequence of str
        The tokens.

    Returns
    -------
    list of (list of int, list of int)
        Groups in the order of the rows.
    """
    best = [[-j for j in range(len(b) + 1)]]  # of the first i tokens of a and the first j of b
    for i, token in enumerate(a):
        above, row = best[-1], [-i - 1]
        for j, other in enumerate(b):
            row.append(max(above[j] + (1 if token == other else -1), above[j + 1] - 1, row[j] - 1))
        best.append(row)
    groups: list[Group] = []
    i, j = len(a), len(b)
    while i or j:
        if i and j and best[i][j] == best[i - 1][j - 1] + (1 if a[i - 1] == b[j - 1] else -1):
            i, j = i - 1, j - 1
            groups.append(([i], [j]))
        elif j and best[i][j] == best[i][j - 1] - 1:
            j -= 1
            groups.append(([], [j]))
        else:
            i -= 1
            groups.append(([i], []))
    return groups[::-1]


def align_spans(a: Sequence[Span | None], b: Sequence[Span | None]) -> list[Group]:
    """Align two rows of tokens of the same text by the characters that they are from.

    Parameters
    ----------
    a, b : sequence of (int, int, int) or None
        For each token the number of its text, and where it begins and ends in it; None for a special token. Special
        tokens belong together in their order between the others.

    Returns
    -------
    list of (list of int, list of int)
        The smallest groups of neighbours that no token crosses, in the order of the rows.
    """
    rows = (a, b)
    groups: list[Group] = []
    at = [0, 0]
    while any(place < len(row) for row, place in zip(rows, at, strict=True)):
        heads = [row[place] if place < len(row) else None for row, place in zip(rows, at, strict=True)]
        ends = [place == len(row) for row, place in zip(rows, at, strict=True)]
        taken: tuple[list[int], list[int]] = ([], [])
        after = [next((one for one in row[place:] if one), None) for row, place in zip(rows, at, strict=True)]
        sides = _next_sides(heads, ends, after)
        for side in sides:
            taken[side].append(at[side])
            at[side] += 1
        last = max((head[2] for side in sides if (head := heads[side]) is not None), default=None)
        first = heads[sides[0]]
        grown = len(sides) == 2 and first is not None
        while grown and first is not None and last is not None:  # until no token crosses the end of the group
            grown = False
            for side, row in enumerate(rows):
                while at[side] < len(row) and (span := row[at[side]]) and span[0] == first[0] and span[1] < last:
                    taken[side].append(at[side])
                    last, grown = max(last, span[2]), True
                    at[side] += 1
        groups.append(taken)
    return groups


def _next_sides(heads: Sequence[Span | None], ends: Sequence[bool], after: Sequence[Span | None]) -> list[int]:
    """Return which rows give their next token to a group: both, or the one whose token comes first alone.

    `after` has for each row the next token that is not special.
    """
    left, right = heads
    for side in (0, 1):
        if ends[side]:
            return [1 - side]
    if left is None and right is None:  # special tokens
        return [0, 1]
    if left is None or right is None:  # the one that stands before the other's place in the text comes first
        special = 0 if left is None else 1
        following, token = after[special], right if left is None else left
        assert token is not None, "the other is special"
        return [special] if following is not None and following[:2] <= token[:2] else [1 - special]
    if left[:2] != right[:2]:
        if (left[0], left[2]) <= right[:2]:
            return [0]
        if (right[0], right[2]) <= left[:2]:
            return [1]
    return [0, 1]
