"""Texts divided and cut where tokens end; each part by itself has no more tokens than asked for.

A part may have other tokens than it had in its text: one that begins within a word loses the beginning of the word, and
a character that became several tokens is divided only as a whole. So parts are tokenized again, and shortened where
they have more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from wordpiece_bert._internal.lazy import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    import numpy.typing as npt

    #: Where each token of a text begins and ends, in characters; none is special, [tokens, 2].
    Borders: TypeAlias = npt.NDArray[np.int64]
    #: What parts are made of: the first token of each unit, and the one after its last, [units, 2].
    Units: TypeAlias = npt.NDArray[np.int64]
    #: The start and the end of a part, in characters.
    Place: TypeAlias = tuple[int, int]
    #: A function from texts to their numbers of tokens, without special tokens.
    Count: TypeAlias = Callable[[list[str]], Sequence[int] | npt.NDArray[np.int64]]


class TextPart(NamedTuple):
    """A part of a text, and its place.

    Attributes
    ----------
    text : str
        The part; a word that the pre-tokenizer finds is normalized.
    start, end : int
        Its place in the text, in characters.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> tokenizer.pre_tokenize("The oven!")[0]
    TextPart(text='the', start=0, end=3)
    """

    text: str
    start: int
    end: int


def units_of(borders: Borders) -> Units:
    """Return the smallest parts that tokens can be divided into: tokens, or those that share a character.

    A token without characters belongs to the one after it, or at the end to the one before.
    """
    if not len(borders):
        return np.zeros((0, 2), np.int64)
    ends = np.maximum.accumulate(borders[:, 1])
    apart = (ends[:-1] <= borders[1:, 0]) & (borders[:-1, 0] < borders[:-1, 1])
    last = int(np.flatnonzero(borders[:, 0] < borders[:, 1]).max(initial=0))
    firsts = np.concatenate([[0], 1 + np.flatnonzero(apart[:last])])
    return np.stack([firsts, np.append(firsts[1:], len(borders))], axis=1)


def token_counts(tokenizer: Any, prompt: str = "", threads: int | None = None) -> Count:
    """Return a function from texts to how many tokens each adds to the prompt before it, without special tokens."""

    def lengths(texts: list[str]) -> npt.NDArray[np.int64]:
        rows = tokenizer.encode_batch(texts, add_special_tokens=False, truncation=False, padding=False, threads=threads)
        found: npt.NDArray[np.int64] = np.diff(rows.row_offsets)
        return found

    before = int(lengths([prompt])[0]) if prompt else 0
    return lambda texts: lengths([prompt + text for text in texts]) - before


def divided(
    texts: Sequence[str],
    borders: Sequence[Borders],
    units: Sequence[Units],
    size: int,
    overlap: int,
    count: Count | None,
) -> list[list[Place]]:
    """Divide texts into parts of at most `size` tokens, of which the next ones repeat at most `overlap`.

    Parameters
    ----------
    texts : sequence of str
        The texts.
    borders, units : sequence of ndarray
        Their tokens, and what they may be divided into.
    size, overlap : int
        The most tokens of a part, and of two parts together.
    count : callable, optional
        Returns the numbers of tokens of texts: parts have no more than `size` by themselves, too.

    Returns
    -------
    list of list of (int, int)
        The places of the parts of each text. A character of more than `size` tokens is a part.
    """
    found: list[list[Place]] = [[] for _ in texts]
    running = [
        _parts(tokens, parts, size, overlap, places)
        for tokens, parts, places in zip(borders, units, found, strict=True)
    ]
    # One part of each text at a time, so that the parts of many texts are tokenized together.
    asked = [(index, place) for index, parts in enumerate(running) if (place := next(parts, None))]
    while asked:
        own = [0] * len(asked)
        if count is not None:
            own = np.asarray(count([texts[index][start:end] for index, (start, end) in asked])).tolist()
        answered = zip(asked, own, strict=True)
        asked = [(index, place) for (index, _), number in answered if (place := _answer(running[index], number))]
    return found


def first_tokens(text: str, borders: Sequence[tuple[int, int]], size: int, count: Count) -> str:
    """Return a text up to the end of a token, such that it has at most `size`; all of it if it has no more."""
    if len(borders) <= size:
        return text
    tokens = np.array(borders[: size + 1], np.int64)
    lasts = units_of(tokens)[:, 1]
    for end in np.maximum.accumulate(tokens[:, 1])[lasts[lasts <= size] - 1][::-1].tolist():
        if count([text[:end]])[0] <= size:
            return text[:end]
    return ""


#: Yields places, and is sent the number of tokens that each has by itself.
_Parts: TypeAlias = "Generator[Place, int, None]"


def _answer(parts: _Parts, number: int) -> Place | None:
    """Send the number of tokens of the last place; return the next place, or None at the end."""
    try:
        return parts.send(number)
    except StopIteration:
        return None


def _parts(borders: Borders, units: Units, size: int, overlap: int, found: list[Place]) -> _Parts:
    """Append the parts of a text to `found`: consecutive units of at most `size` tokens, in the text and by themselves.

    Yields the place of each part, and of shorter ones until one has no more tokens.
    """
    firsts, lasts = np.ascontiguousarray(units.T)
    ends = np.maximum.accumulate(borders[:, 1])

    def place(start: int, end: int) -> Place:
        return int(borders[firsts[start], 0]), int(ends[lasts[end - 1] - 1])

    start, reached, total = 0, 0, len(units)
    while start < total:
        end = max(int(lasts.searchsorted(firsts[start] + size, side="right")), start + 1)
        while (excess := (yield place(start, end)) - size) > 0 and end > start + 1:
            shorter = int(lasts.searchsorted(lasts[end - 1] - excess, side="right"))
            end = min(max(shorter, start + 1), end - 1)
        if end <= reached:  # the part was shortened, and has nothing new: it overlaps less
            start += 1
            continue
        first, last = place(start, end)
        if excess > 0 and last - first > 1:  # one unit
            finer, parts = _finer(borders[firsts[start] : lasts[start]], (first, last))
            yield from _parts(finer, parts, size, 0, found)
        else:
            found.append((first, last))
        if end == total:
            break
        # The first unit within the overlap, such that the next unit fits into the part after it.
        again, fits = (int(i) for i in firsts.searchsorted((lasts[end - 1] - overlap, lasts[end] - size)))
        reached, start = end, min(max(again, fits, start + 1), end)


def _finer(borders: Borders, place: Place) -> tuple[Borders, Units]:
    """Return what a unit that by itself has too many tokens is divided into: its tokens, else its characters."""
    units = units_of(borders)
    if len(units) > 1:
        return borders, units
    characters = np.arange(*place)
    singles = np.stack([characters, characters + 1], axis=1)
    return singles, units_of(singles)
