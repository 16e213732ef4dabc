"""The rules of pre-training data, written slowly and plainly: the oracle of the tests.

Nothing here is fast, and nothing here is shared with the package. Documents are lists of sentences, sentences are lists
of ids, rows are Python lists. A tokenizer is a function from a sentence to its ids.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

# --- the generator: SplitMix64 with keys

BITS = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
PAIRS, CHOICE, FATE, RANDOM, LENGTH, ORDER = 1, 2, 3, 4, 5, 6


def mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & BITS
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & BITS
    return z ^ (z >> 31)


def absorb(key: int, word: int) -> int:
    return mix(((key ^ word) + GAMMA) & BITS)


def key_of(seed: int, stream: int, epoch: int, high: int, low: int) -> int:
    key = 0
    for word in (seed, stream, epoch, high, low):
        key = absorb(key, word)
    return key


def draw(key: int, number: int) -> int:
    return mix((key + (number + 1) * GAMMA) & BITS)


def unit_of(u: int) -> float:
    return (u >> 11) * 2.0**-53


def below_of(u: int, n: int) -> int:
    return (u * n) >> 64


class Draws:
    """The draws of a key, one after the other."""

    def __init__(self, key: int) -> None:
        self.key = key
        self.number = 0

    def next(self) -> int:
        self.number += 1
        return draw(self.key, self.number - 1)

    def unit(self) -> float:
        return unit_of(self.next())

    def below(self, n: int) -> int:
        return below_of(self.next(), n)

    def coins(self, n: int) -> int:
        ones = 0
        while n > 0:
            bits = min(n, 64)
            ones += (self.next() & ((1 << bits) - 1)).bit_count()
            n -= bits
        return ones


def text_id(text: str) -> int:
    """The document id of a string: mixed FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & BITS
    return mix(value)


def span_length(u: int, p: float = 0.2, last: int = 10) -> int:
    sums, weight, total = [], 1.0, 0.0
    for _ in range(last):
        total += weight
        sums.append(total)
        weight = weight * (1 - p)
    return next(i for i, sum_ in enumerate(sums, 1) if unit_of(u) * sums[-1] < sum_)


def epoch_order(n: int, seed: int, epoch: int) -> list[int]:
    bits = max(2, (n - 1).bit_length())
    half = (bits + 1) // 2
    key = key_of(seed, ORDER, epoch, 0, n)

    def permuted(x: int) -> int:
        left, right = x >> half, x & ((1 << half) - 1)
        for r in range(4):
            left, right = right, left ^ (absorb(draw(key, r), right) & ((1 << half) - 1))
        return left << half | right

    order = []
    for position in range(n):
        x = permuted(position)
        while x >= n:
            x = permuted(x)
        order.append(x)
    return order


# --- documents and sentences

WHITE_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
ENDS = ".!?…。！？"
FULL_WIDTH_ENDS = "。！？"
CLOSERS = "\"')]}»”’」』）】"
OPENERS = "\"'([{«“‘「『（【"
ABBREVIATIONS = set(
    ("mr mrs ms dr prof st jr sr vs etc e.g i.e cf al inc ltd co corp no vol fig eq pp gen col lt sgt rev hon").split()  # noqa: SIM905
)


def lines_of(text: str) -> list[str]:
    r"""Lines end at ``\n``, after an optional ``\r``, and are trimmed; what follows the last end is a line if not empty."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.strip(WHITE_SPACE) for line in lines]


def split_line(line: str, abbreviations: Iterable[str] = ABBREVIATIONS) -> list[str]:
    """The sentences of a line."""
    line = line.strip(WHITE_SPACE)
    sentences, begin, at = [], 0, 0
    while at < len(line):
        if line[at] not in ENDS:
            at += 1
            continue
        run = at
        while at < len(line) and line[at] in ENDS:
            at += 1
        run_end = at
        while at < len(line) and line[at] in CLOSERS:
            at += 1
        follows = at
        while follows < len(line) and line[follows] in WHITE_SPACE:
            follows += 1
        if not (at == len(line) or line[at] in WHITE_SPACE or line[run_end - 1] in FULL_WIDTH_ENDS):
            continue
        if follows < len(line) and line[follows].islower():
            continue
        if line[run:run_end] == ".":
            word_begin = run
            while word_begin > 0 and line[word_begin - 1] not in WHITE_SPACE:
                word_begin -= 1
            word = line[word_begin:run].lstrip(OPENERS)
            if (len(word) == 1 and word.isupper()) or word.lower() in abbreviations:
                continue
        sentences.append(line[begin:at].strip(WHITE_SPACE))
        begin = at
    sentences.append(line[begin:].strip(WHITE_SPACE))
    return [sentence for sentence in sentences if sentence]


@dataclass
class Text:
    """A document before it is tokenized."""

    id: int
    sentences: list[str]


def documents_of(
    files: Sequence[str],
    documents: str = "blank-line",
    sentences: str = "lines",
    abbreviations: Iterable[str] = ABBREVIATIONS,
    numbers: Sequence[int] | None = None,
) -> Iterator[Text]:
    """The documents of files, which are given as their contents; `numbers` are the files' numbers in a longer list."""
    for number, content in zip(numbers or range(len(files)), files, strict=True):
        lines = lines_of(content)
        if documents == "blank-line":
            groups: list[list[str]] = [[]]
            for line in lines:
                if line:
                    groups[-1].append(line)
                elif groups[-1]:
                    groups.append([])
            groups = [group for group in groups if group]
        elif documents == "line":
            groups = [[line] for line in lines if line]
        else:
            groups = [[line for line in lines if line]]
        for place, group in enumerate(groups):
            yield Text((number << 40) + place, cut_lines(group, sentences, abbreviations))


def cut_lines(lines: Iterable[str], sentences: str, abbreviations: Iterable[str] = ABBREVIATIONS) -> list[str]:
    if sentences == "split":
        return [sentence for line in lines for sentence in split_line(line, abbreviations)]
    return [line for line in lines if line]


# --- the token store


@dataclass
class Document:
    id: int
    sentences: list[list[int]]


@dataclass
class Store:
    shards: list[list[Document]]
    counts: Counter[str] = field(default_factory=Counter)


def store_of(texts: Iterable[Text], encode: Callable[[str], list[int]], shard_tokens: int = 1 << 28) -> Store:
    """Tokenize documents into shards."""
    store = Store([])
    shard: list[Document] = []
    tokens = 0
    for text in texts:
        sentences = [encode(sentence) for sentence in text.sentences]
        kept = [ids for ids in sentences if ids]
        store.counts["sentences_empty"] += len(sentences) - len(kept)
        if not kept:
            store.counts["documents_empty"] += 1
            continue
        store.counts["documents"] += 1
        store.counts["sentences"] += len(kept)
        size = sum(map(len, kept))
        store.counts["tokens"] += size
        shard.append(Document(text.id, kept))
        tokens += size
        if tokens >= shard_tokens:
            store.shards.append(shard)
            shard, tokens = [], 0
    if shard:
        store.shards.append(shard)
    return store


# --- rows


@dataclass
class Row:
    """A row or sequence. `second` is the position of B's first token, or 0; label is None for single segments."""

    ids: list[int]
    second: int = 0
    label: int | None = None
    identity: tuple[int, int, int] = (0, 0, 0)

    @property
    def token_type_ids(self) -> list[int]:
        return [int(0 < self.second <= place) for place in range(len(self.ids))]


@dataclass
class Special:
    cls: int
    sep: int


@dataclass
class Options:
    objective: str = "nsp"
    max_length: int = 128
    short_seq_prob: float = 0.1
    min_sentences: int = 1
    dupe_factor: int = 1
    seed: int = 0


def joined(sentences: Iterable[list[int]]) -> list[int]:
    return [one for sentence in sentences for one in sentence]


class RowsOfShard:
    """The rows of one pass over one shard."""

    def __init__(
        self, shard: list[Document], special: Special, options: Options, pass_: int, report: Counter[str]
    ) -> None:
        self.shard = shard
        self.special = special
        self.options = options
        self.pass_ = pass_
        self.report = report
        self.begun: Counter[int] = Counter()
        self.rows: list[Row] = []
        if options.objective in ("nsp", "sop"):
            for number in range(len(shard)):
                self.pairs(number)
        else:
            self.single()

    def add(self, number: int, ids: list[int], second: int = 0, label: int | None = None) -> None:
        identity = (self.pass_, self.shard[number].id, self.begun[number])
        self.begun[number] += 1
        self.rows.append(Row(ids, second, label, identity))

    def pairs(self, number: int) -> None:
        options, report = self.options, self.report
        n = options.max_length - 3
        document = self.shard[number]
        draws = Draws(key_of(options.seed, PAIRS, self.pass_, document.id, 0))
        sentences = document.sentences
        least = 2 if options.objective == "sop" else options.min_sentences
        at = 0
        while at < len(sentences):
            target = n
            if draws.unit() < options.short_seq_prob:
                target = 2 + draws.below(n - 1)
                report["short"] += 1
            end = at
            while end < len(sentences) and (sum(map(len, sentences[at:end])) < target or end - at < least):
                end += 1
            k = end - at
            split = 1 if k == 1 else 1 + draws.below(k - 1)
            a = joined(sentences[at : at + split])
            if options.objective == "nsp":
                random = len(self.shard) > 1 and (k == 1 or draws.unit() < 0.5)
                if random:
                    other = draws.below(len(self.shard) - 1)
                    if other >= number:
                        other += 1
                    partner = self.shard[other].sentences
                    first = draws.below(len(partner))
                    b: list[int] = []
                    while first < len(partner) and (not b or len(b) < target - len(a)):
                        b += partner[first]
                        first += 1
                    at += split
                    if k == 1:
                        report["lone"] += 1
                elif k == 1:
                    report["rows_dropped"] += 1
                    at = end
                    continue
                else:
                    b = joined(sentences[at + split : end])
                    at = end
                label = int(random)
            else:
                if k == 1:
                    report["rows_dropped"] += 1
                    at = end
                    continue
                b = joined(sentences[at + split : end])
                label = int(draws.unit() < 0.5)
                if label:
                    a, b = b, a
                at = end
            a, b = self.cut(a, b, n, draws)
            cls, sep = self.special.cls, self.special.sep
            self.add(number, [cls, *a, sep, *b, sep], len(a) + 2, label)

    def cut(self, a: list[int], b: list[int], n: int, draws: Draws) -> tuple[list[int], list[int]]:
        length_a, length_b = len(a), len(b)
        while length_a + length_b > n:
            if length_a > length_b:
                length_a -= 1
            else:
                length_b -= 1
        cuts_a, cuts_b = len(a) - length_a, len(b) - length_b
        self.report["tokens_cut"] += cuts_a + cuts_b
        front_a = draws.coins(cuts_a)
        front_b = draws.coins(cuts_b)
        return a[front_a : front_a + length_a], b[front_b : front_b + length_b]

    def single(self) -> None:
        objective, n = self.options.objective, self.options.max_length - 2
        cls, sep = self.special.cls, self.special.sep
        row: list[int] = []
        begin = last = -1
        for number, document in enumerate(self.shard):
            if objective == "text":
                ids = joined(document.sentences)
                self.report["tokens_cut"] += max(0, len(ids) - n)
                self.report["truncated"] += len(ids) > n
                self.add(number, [cls, *ids[:n], sep])
                continue
            size = 1 if objective == "blocks" else n
            for sentence in document.sentences:
                for start in range(0, len(sentence), size):
                    piece = sentence[start : start + size]
                    between = [sep] if row and last != number else []
                    if row and len(row) + len(between) + len(piece) > n:
                        self.add(begin, [cls, *row, sep])
                        row, between = [], []
                    if not row:
                        begin = number
                    row += between + piece
                    last = number
            if objective == "doc-sentences" and row:
                self.add(begin, [cls, *row, sep])
                row = []
        if row:
            self.add(begin, [cls, *row, sep])


def rows_of(store: Store, special: Special, options: Options, report: Counter[str]) -> list[list[list[Row]]]:
    """The rows of each pass and shard."""
    return [
        [RowsOfShard(shard, special, options, pass_, report).rows for shard in store.shards]
        for pass_ in range(options.dupe_factor)
    ]


def packed(
    lengths: Sequence[int], room: int, window: int = 4096, max_sequences_per_row: int | None = None
) -> list[list[int]]:
    """Which sequences make which row."""
    rows: list[list[int]] = []
    for start in range(0, len(lengths), window):
        opened: list[list[int]] = []
        numbers = range(start, min(start + window, len(lengths)))
        for number in sorted(numbers, key=lambda number: (-lengths[number], number)):
            best, least = None, math.inf
            for row in opened:
                left = room - sum(lengths[one] for one in row)
                if len(row) == max_sequences_per_row or lengths[number] > left:
                    continue
                if left < least:
                    best, least = row, left
            if best is None:
                opened.append([number])
            else:
                best.append(number)
        rows += opened
    return rows


# --- masking


@dataclass
class Vocabulary:
    """What masking needs to know of a tokenizer."""

    special: set[int]
    continues: set[int]
    ordinary: list[int]
    mask: int


@dataclass
class MaskOptions:
    probability: float = 0.15
    unit_kind: str = "tokens"
    max_predictions: int | None = None
    masked: float = 0.8
    random: float = 0.1
    span_probability: float = 0.2
    max_span_length: int = 10


def mask_row(
    ids: Sequence[int], vocabulary: Vocabulary, options: MaskOptions, seed: int, epoch: int, high: int, low: int
) -> tuple[list[int], list[int], dict[int, str]]:
    """Ids and labels after masking, and what became of each position that was taken."""
    places = [place for place, one in enumerate(ids) if one not in vocabulary.special]
    masked, labels, fates = list(ids), [-100] * len(ids), {}
    if not places or options.probability == 0:
        return masked, labels, fates
    wanted = max(1, round(options.probability * len(places)))
    if options.max_predictions is not None:
        wanted = min(wanted, options.max_predictions)
    units: list[list[int]] = []
    for place in places:
        continued = options.unit_kind != "tokens" and ids[place] in vocabulary.continues
        if continued and units and units[-1][-1] == place - 1:
            units[-1].append(place)
        else:
            units.append([place])
    keys = {stream: key_of(seed, stream, epoch, high, low) for stream in (CHOICE, FATE, RANDOM, LENGTH)}
    order = list(range(len(units)))
    group: dict[int, int] = {}  # position taken -> first position of its group
    taken: set[int] = set()
    t = 0
    while len(group) < wanted and t < len(units):
        j = t + below_of(draw(keys[CHOICE], t), len(units) - t)
        order[t], order[j] = order[j], order[t]
        w = order[t]
        t += 1
        if w in taken:
            continue
        first = units[w][0]
        length = 1
        if options.unit_kind == "spans":
            length = span_length(draw(keys[LENGTH], first), options.span_probability, options.max_span_length)
        for x in range(w, w + length):
            if x == len(units) or x in taken:
                break
            if x > w and units[x][0] != units[x - 1][-1] + 1:
                break
            if len(group) + len(units[x]) > wanted:
                break
            taken.add(x)
            for place in units[x]:
                group[place] = first
    for place, first in sorted(group.items()):
        fate = unit_of(draw(keys[FATE], first if options.unit_kind == "spans" else place))
        labels[place] = ids[place]
        fates[place] = "kept"
        if fate < options.masked:
            masked[place] = vocabulary.mask
            fates[place] = "masked"
        elif fate < options.masked + options.random and vocabulary.ordinary:
            number = below_of(draw(keys[RANDOM], place), len(vocabulary.ordinary))
            masked[place] = vocabulary.ordinary[number]
            fates[place] = "random"
    return masked, labels, fates


# --- the arrays of example folders and of batches


def static_masks(
    rows: Sequence[Row], vocabulary: Vocabulary, options: MaskOptions, seed: int
) -> list[tuple[list[int], list[int], dict[int, str]]]:
    """Masks that depend on the identity of a row: (pass, document id, ordinal)."""
    return [mask_row(row.ids, vocabulary, options, seed, *row.identity) for row in rows]


def joined_row(sequences: Sequence[Row]) -> Row:
    """A packed row as one: the identity is its first sequence's."""
    return Row([one for row in sequences for one in row.ids], identity=sequences[0].identity)


def folder_arrays(
    rows: Sequence[Sequence[Row]],
    *,
    packing: bool,
    masks: Sequence[tuple[list[int], list[int], dict[int, str]]] | None = None,
) -> dict[str, list[int]]:
    """The arrays of one pass over one shard. A row is a list of sequences, one if rows are not packed."""
    arrays: dict[str, list[int]] = {"input_ids": [], "row_offsets": [0]}
    sequences = [one for row in rows for one in row]
    arrays["second_starts"] = [one.second for one in sequences]
    if sequences and sequences[0].label is not None:
        arrays["pair_labels"] = [one.label or 0 for one in sequences]
    if packing:
        arrays["sequence_lengths"] = [len(one.ids) for one in sequences]
        arrays["sequence_offsets"] = [0]
    if masks is not None:
        arrays |= {"masked_offsets": [0], "masked_positions": [], "masked_ids": []}
    for number, row in enumerate(rows):
        ids = joined_row(row).ids
        if masks is not None:
            ids, labels, _ = masks[number]
            places = [place for place, label in enumerate(labels) if label != -100]
            arrays["masked_positions"] += places
            arrays["masked_ids"] += [labels[place] for place in places]
            arrays["masked_offsets"].append(len(arrays["masked_positions"]))
        arrays["input_ids"] += ids
        arrays["row_offsets"].append(len(arrays["input_ids"]))
        if packing:
            arrays["sequence_offsets"].append(arrays["sequence_offsets"][-1] + len(row))
    return arrays
