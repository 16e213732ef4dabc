"""Naive reference implementations of the three training algorithms.

Each follows its definition literally, and none shares code with the package. A corpus is a dict of words and counts; the
result is a list of tokens.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

Counts = dict[str, int]


# --- shared by bpe and likelihood


def alphabet(counts: Counts, limit: int | None, initial: Iterable[str]) -> list[str]:
    """The characters to keep, in ascending order."""
    weights: Counter[str] = Counter()
    for word, n in counts.items():
        for c in word:
            weights[c] += n
    first = {text[0] for text in initial if text}
    ranked = sorted(set(weights) | first, key=lambda c: (c not in first, -weights[c], c))
    return sorted(ranked if limit is None else ranked[:limit])


def with_alphabet(tokens: list[str], counts: Counts, kept: list[str]) -> list[str]:
    """The tokens, followed by the initial forms and then the continuation forms of the characters."""
    tokens = list(dict.fromkeys([*tokens, *kept]))
    continuing = sorted({c for word in counts for c in word[1:]})
    return list(dict.fromkeys([*tokens, *(f"##{c}" for c in continuing if c in tokens)]))


def characters(counts: Counts, tokens: list[str]) -> list[tuple[list[str], int]]:
    """Each word as its symbols, without characters that are not in the vocabulary."""
    known = set(tokens)
    return [
        ([c if i == 0 else f"##{c}" for i, c in enumerate(word) if c in known], n) for word, n in sorted(counts.items())
    ]


def longest_pieces(counts: Counts, tokens: list[str]) -> list[tuple[list[str], int]]:
    """Each word as its longest pieces, without characters that are in no piece."""
    known = set(tokens)
    cut = []
    for word, n in sorted(counts.items()):
        symbols, at = [], 0
        while at < len(word):
            prefix = "##" if at else ""
            end = next(
                (e for e in range(len(word), at, -1) if word[at] in known and prefix + word[at:e] in known), None
            )
            if end is not None:
                symbols.append(prefix + word[at:end])
            at = at + 1 if end is None else end
        cut.append((symbols, n))
    return cut


def merge(symbols: list[str], pair: tuple[str, str], merged: str) -> list[str]:
    """Merge a pair from left to right, without overlap."""
    out, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == pair:
            out.append(merged)
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


def merged_text(a: str, b: str) -> str:
    return a + b.removeprefix("##")


# --- bpe


def bpe(
    counts: Counts,
    vocab_size: int,
    *,
    min_frequency: int = 2,
    limit_alphabet: int | None = 1000,
    initial_alphabet: Iterable[str] = (),
    special_tokens: Sequence[str] = SPECIALS,
    base: Sequence[str] | None = None,
) -> list[str]:
    """Hugging Face's WordPieceTrainer, with its heap entries and pair counts.

    A heap entry is a pair, the count it had and the words it occurred in; counts of adjacent pairs are adjusted by each merge.
    """
    counts = {word: n for word, n in counts.items() if word and n}
    kept = alphabet(counts, limit_alphabet, initial_alphabet)
    tokens = with_alphabet(list(dict.fromkeys(base or special_tokens)), counts, kept)
    words = (characters if base is None else longest_pieces)(counts, tokens)
    ids = {token: i for i, token in enumerate(tokens)}
    pair_counts: dict[tuple[int, int], int] = defaultdict(int)
    where: dict[tuple[int, int], set[int]] = defaultdict(set)
    segmented = [[ids[symbol] for symbol in symbols] for symbols, _ in words]
    for i, symbols in enumerate(segmented):
        for pair in itertools.pairwise(symbols):
            pair_counts[pair] += words[i][1]
            where[pair].add(i)
    entries = [[pair_counts[pair], pair, word_indices] for pair, word_indices in where.items()]
    while len(tokens) < vocab_size and entries:
        best = max(entries, key=lambda entry: (entry[0], -entry[1][0], -entry[1][1]))
        entries.remove(best)
        count, pair, word_indices = best
        if count != pair_counts[pair]:
            entries.append([pair_counts[pair], pair, word_indices])
            continue
        if count < 1 or count < min_frequency:
            break
        a, b = pair
        text = merged_text(tokens[a], tokens[b])
        if text not in ids:
            ids[text] = len(tokens)
            tokens.append(text)
        new = ids[text]
        gained: dict[tuple[int, int], set[int]] = defaultdict(set)
        for i in word_indices:
            symbols, n, at = segmented[i], words[i][1], 0
            while at < len(symbols):
                if tuple(symbols[at : at + 2]) == pair:
                    if at > 0:
                        pair_counts[symbols[at - 1], a] -= n
                        pair_counts[symbols[at - 1], new] += n
                        gained[symbols[at - 1], new].add(i)
                    symbols[at : at + 2] = [new]
                    if at + 1 < len(symbols):
                        pair_counts[b, symbols[at + 1]] -= n
                        pair_counts[new, symbols[at + 1]] += n
                        gained[new, symbols[at + 1]].add(i)
                at += 1
        entries += [
            [pair_counts[pair], pair, word_indices] for pair, word_indices in gained.items() if pair_counts[pair] > 0
        ]
    return tokens


# --- likelihood


def likelihood(
    counts: Counts,
    vocab_size: int,
    *,
    min_frequency: int = 2,
    limit_alphabet: int | None = 1000,
    initial_alphabet: Iterable[str] = (),
    special_tokens: Sequence[str] = SPECIALS,
    base: Sequence[str] | None = None,
) -> list[str]:
    """Count all pairs again for each merge, and compare scores as fractions."""
    counts = {word: n for word, n in counts.items() if word and n}
    kept = alphabet(counts, limit_alphabet, initial_alphabet)
    tokens = with_alphabet(list(dict.fromkeys(base or special_tokens)), counts, kept)
    words = (characters if base is None else longest_pieces)(counts, tokens)
    while len(tokens) < vocab_size:
        f: Counter[str] = Counter()
        g: Counter[tuple[str, str]] = Counter()
        for symbols, n in words:
            for symbol in symbols:
                f[symbol] += n
            for pair in itertools.pairwise(symbols):
                g[pair] += n
        ids = {token: i for i, token in enumerate(tokens)}
        eligible = [pair for pair in g if g[pair] >= max(1, min_frequency)]
        if not eligible:
            break

        ranks = {(a, b): (Fraction(g[a, b], f[a] * f[b]), g[a, b], -ids[a], -ids[b]) for a, b in eligible}
        best = max(ranks, key=ranks.__getitem__)
        text = merged_text(*best)
        if text not in ids:
            tokens.append(text)
        words = [(merge(symbols, best, text), n) for symbols, n in words]
    return tokens


# --- top_down


def prepared(
    counts: Counts,
    special_tokens: Sequence[str],
    max_token_length: int,
    max_unique_chars: int,
    max_input_words: int | None,
) -> list[tuple[str, int]]:
    """The words to train from."""
    words = [
        (word, n) for word, n in sorted(counts.items()) if len(word) <= max_token_length and word not in special_tokens
    ]
    weights: Counter[str] = Counter()
    for word, n in words:
        for c in word:
            weights[c] += n
    allowed = set(sorted(weights, key=lambda c: (-weights[c], c))[:max_unique_chars])
    words = sorted(((word, n) for word, n in words if set(word) <= allowed), key=lambda item: -item[1])
    return words if max_input_words in (None, -1) else words[:max_input_words]


def starts_of(word: str, pieces: Iterable[str], joiner: str) -> list[int]:
    """The positions at which the longest pieces of a word start."""
    starts, at = [], 0
    while at < len(word):
        starts.append(at)
        prefix = joiner if at else ""
        at = next(end for end in range(len(word), at, -1) if prefix + word[at:end] in pieces)
    return starts


def pieces_literally(
    words: list[tuple[str, int]], chars: list[str], threshold: int, rounds: int, joiner: str
) -> Counts:
    """The vocabulary for a threshold, as in TensorFlow Text's code."""
    pieces = dict.fromkeys(chars, 1) | {joiner + c: 1 for c in chars}
    for i in range(rounds):
        # Texts by their length without the joiner: a prefix has the joiner if its text has it.
        by_length: dict[int, Counter[tuple[bool, str]]] = defaultdict(Counter)
        for word, n in words:
            for start in range(len(word)) if i == 0 else starts_of(word, pieces, joiner):
                for end in range(start + 1, len(word) + 1):
                    by_length[end - start][start > 0 and joiner != "", word[start:end]] += n
        kept: Counts = {}
        for length in sorted(by_length, reverse=True):
            for (marked, text), count in by_length[length].items():
                if count >= threshold:
                    kept[(joiner if marked else "") + text] = count
                for shorter in range(1, length):
                    by_length[shorter][marked, text[:shorter]] -= count
        pieces = {joiner + c: 1 for c in chars} | dict.fromkeys(chars, 1) | kept
    return pieces


def pieces_in_closed_form(
    words: list[tuple[str, int]], chars: list[str], threshold: int, rounds: int, joiner: str
) -> Counts:
    """The same vocabulary, by the equivalent rule: the remaining count of a text is the number of starts whose entire
    remainder it is.
    """
    pieces = dict.fromkeys(chars, 1) | {joiner + c: 1 for c in chars}
    for i in range(rounds):
        remainders: Counter[tuple[bool, str]] = Counter()
        for word, n in words:
            for start in range(len(word)) if i == 0 else starts_of(word, pieces, joiner):
                remainders[start > 0 and joiner != "", word[start:]] += n
        kept: Counts = {}
        for (marked, text), count in sorted(remainders.items(), key=lambda item: -len(item[0][1])):
            if count >= threshold:
                kept[(joiner if marked else "") + text] = count
        pieces = {joiner + c: 1 for c in chars} | dict.fromkeys(chars, 1) | kept
    return pieces


def top_down(
    counts: Counts,
    vocab_size: int,
    *,
    lower_thresh: int | None = 10,
    upper_thresh: int | None = 10_000_000,
    num_iterations: int = 4,
    slack_ratio: float = 0.05,
    max_token_length: int = 50,
    max_unique_chars: int = 1000,
    max_input_words: int | None = 5_000_000,
    include_joiner: bool = True,
    special_tokens: Sequence[str] = SPECIALS,
    base: Sequence[str] | None = None,
    pieces_for: Callable[..., Counts] = pieces_literally,
) -> list[str]:
    """TensorFlow Text's learner: a search over thresholds."""
    counts = {word: n for word, n in counts.items() if word and n}
    high = max(counts.values())
    high = high if upper_thresh is None else min(high, upper_thresh)
    low = min(counts.values())
    low = low if lower_thresh is None else max(low, lower_thresh)
    specials = list(dict.fromkeys(special_tokens if base is None else base))
    words = prepared(counts, [] if base is not None else specials, max_token_length, max_unique_chars, max_input_words)
    chars = sorted({c for word, _ in words for c in word})
    joiner = "##" if include_joiner else ""
    if not words:
        return specials
    while True:
        threshold = (high + low) // 2
        pieces = pieces_for(words, chars, threshold, num_iterations, joiner)
        ranked = sorted(pieces, key=lambda token: (-pieces[token], token))
        tokens = list(dict.fromkeys([*specials, *chars, *ranked]))
        missing = vocab_size - len(tokens)
        if 0 <= missing <= max(0, slack_ratio * vocab_size) or low >= high or threshold <= 1:
            return tokens if base is None else tokens[:vocab_size]
        if missing < 0:
            low = threshold + 1
        else:
            high = threshold - 1
