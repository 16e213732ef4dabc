"""`vocab_report`: how well a vocabulary fits texts, in numbers that can be compared."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import check_instance, finite_number, iterates, whole_number
from wordpiece_bert._internal.figures import PLOTTED, new_figure, save_figure
from wordpiece_bert._internal.notebook import fields_html
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.parts import core_of
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, TrainingWarning
from wordpiece_bert.tokenizer.parts import plain_core
from wordpiece_bert.tokenizer.tokenizer import Tokenizer
from wordpiece_bert.training.parameters import COUNTING
from wordpiece_bert.training.vocab_summary import is_placeholder

if TYPE_CHECKING:
    import os

    from wordpiece_bert.training.counts import Texts

# Texts are passed to the core in groups of this many.
_TEXTS_PER_GROUP = 4096
# The maximum row length of most BERT models.
_USUAL_LENGTH = 512
# [CLS] and [SEP].
_SPECIAL_TOKENS = 2
# A report lists this many unused tokens, and counts the rest.
_DEAD_SHOWN = 50


@dataclass(frozen=True, slots=True, repr=False)
class VocabReport:
    """How well a vocabulary fits texts.

    In the formulas below, W is the number of words and T the number of tokens of all texts that are not empty, without
    the special tokens of the template. U is the number of words that become [UNK]. C and B are the characters and UTF-8
    bytes of the original texts. A ratio is None if its denominator is 0.

    ``print(report)`` shows a report, and ``report.text(other)`` shows several side by side. The numbers of two
    vocabularies can be compared only for the same texts and the same normalizer; if `fingerprint` or `texts_digest`
    differ, `text` and `plot` warn. Each [UNK] lowers fertility, so look at both.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer, vocab_report
    >>> report = vocab_report(
    ...     Tokenizer.from_pretrained("models/words"), ["she baked the bread", "a new oven"]
    ... )
    >>> report.words, report.tokens, report.unk_words
    (7, 7, 0.2857142857142857)
    >>> report.text().splitlines()[9]
    'characters of unknown words     33.3 %'
    """

    #: The label of the report.
    name: str
    #: The numbers of texts, words (W), tokens (T), characters (C) and bytes (B).
    texts: int
    words: int
    tokens: int
    chars: int
    bytes: int
    #: The size of the vocabulary.
    vocab_size: int
    #: T / W.
    fertility: float | None
    #: T / C.
    tokens_per_char: float | None
    #: B / T.
    bytes_per_token: float | None
    #: U / W.
    unk_words: float | None
    #: Characters of words that become [UNK] / characters of all words, after normalization.
    unk_chars: float | None
    #: Words that are one token other than [UNK] / W.
    whole_words: float | None
    #: Words of two or more tokens / W.
    continued_words: float | None
    #: Tokens of words of two or more tokens / number of these words.
    mean_pieces_of_split: float | None
    #: Distinct tokens that are used at least `min_count` times / tokens of the vocabulary, both without special tokens
    #: and ``[unused0]``, ``[unused1]``, …
    utilisation: float | None
    min_count: int
    #: The number of tokens that are never used, without the same, and the first 50 of them.
    dead: int
    dead_tokens: list[str]
    #: −Σ p log2 p over the tokens that are used, [UNK] included, in bits; and 2 to that power.
    entropy: float | None
    perplexity: float | None
    #: log2(Σ p^α) / (1 − α) / log2 N with N the size of the vocabulary (for α = 1: entropy / log2 N), and the same with
    #: N the number of tokens that are used; and α.
    renyi_efficiency: float | None
    renyi_efficiency_seen: float | None
    alpha: float
    #: Tokens per text, two special tokens included: mean, median, 95th percentile (the smallest length that 95 % of the
    #: texts do not exceed) and maximum.
    mean_length: float | None
    p50: int | None
    p95: int | None
    max: int | None
    #: The share of texts of more than 512 tokens.
    over_512: float | None
    #: SHA-256 of the normalizer and the pre-tokenizer.
    fingerprint: str
    #: SHA-256 of the texts.
    texts_digest: str
    #: Token -> number of uses.
    token_counts: dict[str, int]
    #: Number of tokens -> number of words with that many, without words that become [UNK].
    words_by_tokens: dict[int, int]
    #: Number of tokens, two special tokens included -> number of texts with that many.
    texts_by_length: dict[int, int]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name.

        Returns
        -------
        dict
            The values by the names of the fields.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer, vocab_report
        >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "new", "york", "##er"])
        >>> report = vocab_report(tokenizer, ["New Yorker", "new"])
        >>> report.to_dict()["texts"]
        2
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_json(self, *, indent: int | None = 2, details: bool = False) -> str:
        """Return the report as JSON.

        Parameters
        ----------
        indent : int or None, default 2
            How many spaces each level is indented by, as `json.dumps` has it.
        details : bool, default False
            Include `token_counts`, `words_by_tokens` and `texts_by_length`.

        Returns
        -------
        str
            A JSON object.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer, vocab_report
        >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "new", "york", "##er"])
        >>> report = vocab_report(tokenizer, ["New Yorker", "new"])
        >>> import json
        >>> json.loads(report.to_json())["texts"]
        2
        """
        content = self.to_dict()
        if not details:
            for name in ("token_counts", "words_by_tokens", "texts_by_length"):
                del content[name]
        return json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)

    def text(self, *others: VocabReport) -> str:
        """Return a table of this report and others, side by side.

        Parameters
        ----------
        *others : VocabReport
            Reports to show in further columns.

        Returns
        -------
        str
            Lines of text.

        Warns
        -----
        TrainingWarning
            The reports are for different texts or normalizers, so their numbers cannot be compared.
        """
        reports = (self, *others)
        _warn_unless_comparable(reports)
        rows = [["", *(report.name for report in reports)]]
        rows += [[label, *(_shown(getattr(report, name), kind) for report in reports)] for name, label, kind in _ROWS]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = []
        for label, *cells in rows:
            padded = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
            lines.append("  ".join([label.ljust(widths[0]), *padded]).rstrip())
        for report in reports:
            if report.dead:
                named = " ".join(report.dead_tokens)
                more = report.dead - len(report.dead_tokens)
                lines.append(f"never used in {report.name}: {named}{f' and {more:,} more' if more else ''}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return (
            f"VocabReport({self.name!r}, {self.texts:,} texts, {self.words:,} words, {self.tokens:,} tokens, fertility "
            f"{_shown(self.fertility, 'ratio')}, unknown words {_shown(self.unk_words, 'share')})"
        )

    def _repr_html_(self) -> str:
        return fields_html(self.name, {label: _shown(getattr(self, name), kind) for name, label, kind in _ROWS})

    @completed_by(PLOTTED)
    def plot(self, path: str | os.PathLike[str], *others: VocabReport) -> None:
        """Plot this report, and others for comparison, to a file. Needs matplotlib.

        The plot has three panels: uses of tokens by rank, number of tokens per word, and length of texts.

        Parameters
        ----------
        *others : VocabReport
            Reports to plot in the same panels.

        Raises
        ------
        InputError
            matplotlib is not installed.

        Warns
        -----
        TrainingWarning
            As for `text`.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer, vocab_report
        >>> report = vocab_report(
        ...     Tokenizer.from_pretrained("models/words"), ["she baked the bread", "a new oven"]
        ... )
        >>> report.plot("report.svg")  # doctest: +SKIP
        """
        figure, _ = new_figure("plot", figsize=(13, 4), layout="constrained")
        reports = (self, *others)
        _warn_unless_comparable(reports)
        by_rank, by_pieces, by_length = figure.subplots(1, 3)
        for i, report in enumerate(reports):
            counts = sorted(report.token_counts.values(), reverse=True)
            by_rank.plot(range(1, len(counts) + 1), counts, label=report.name)
            words = report.words_by_tokens
            width = 0.8 / len(reports)
            positions = [pieces + (i + 0.5) * width - 0.4 for pieces in words]
            by_pieces.bar(positions, [n / max(1, report.words) for n in words.values()], width, label=report.name)
            texts = sorted(report.texts_by_length.items())
            cumulative, so_far = [], 0
            for _, n in texts:
                so_far += n
                cumulative.append(so_far / max(1, report.texts))
            by_length.step([length for length, _ in texts], cumulative, where="post", label=report.name)
        by_rank.set(xscale="log", yscale="log", xlabel="rank of the token", ylabel="uses", title="Tokens")
        by_pieces.set(xlabel="tokens per word", ylabel="share of words", title="Words", xlim=(0.4, 8.6))
        by_length.set(
            xlabel="tokens per text", ylabel="share of texts up to this length", title="Texts", ylim=(0, 1.02)
        )
        by_rank.legend()
        save_figure(figure, path)


_ROWS = (
    ("vocab_size", "tokens in the vocabulary", "number"),
    ("texts", "texts", "number"),
    ("words", "words (W)", "number"),
    ("tokens", "tokens (T)", "number"),
    ("fertility", "fertility, T / W", "ratio"),
    ("tokens_per_char", "tokens per character", "ratio"),
    ("bytes_per_token", "bytes per token", "ratio"),
    ("unk_words", "unknown words", "share"),
    ("unk_chars", "characters of unknown words", "share"),
    ("whole_words", "words that are one token", "share"),
    ("continued_words", "words of several tokens", "share"),
    ("mean_pieces_of_split", "  tokens per such word", "ratio"),
    ("utilisation", "tokens that are used", "share"),
    ("dead", "tokens that are never used", "number"),
    ("entropy", "entropy, bits", "ratio"),
    ("perplexity", "perplexity", "ratio"),
    ("renyi_efficiency", "Rényi efficiency", "ratio"),
    ("renyi_efficiency_seen", "  of the tokens used", "ratio"),
    ("mean_length", "tokens per text, mean", "ratio"),
    ("p50", "  median", "number"),
    ("p95", "  95th percentile", "number"),
    ("max", "  maximum", "number"),
    ("over_512", "texts over 512 tokens", "share"),
)


def _shown(value: float | None, kind: str) -> str:
    if value is None:
        return "–"
    if kind == "number":
        return f"{value:,}"
    return f"{100 * value:.3g} %" if kind == "share" else f"{value:.4g}"


def _warn_unless_comparable(reports: tuple[VocabReport, ...]) -> None:
    for what, name in (("texts", "texts_digest"), ("normalizers", "fingerprint")):
        if len({getattr(report, name) for report in reports}) > 1:
            warn(f"these reports are for different {what}: their numbers cannot be compared", TrainingWarning)


@completed_by(COUNTING)
def vocab_report(
    tokenizer: Tokenizer,
    texts: Texts,
    *,
    name: str | None = None,
    min_count: int = 1,
    alpha: float = 2.5,
    threads: int | None = None,
) -> VocabReport:
    """Measure how well a tokenizer's vocabulary fits texts.

    Parameters
    ----------
    tokenizer : Tokenizer
        The tokenizer. Its added tokens are not matched in the texts.
    texts : iterable of str, or Arrow column
        The texts. An iterable is consumed lazily. Empty texts are skipped.
    name : str, optional
        The label of the report; by default the size of the vocabulary.
    min_count : int, default 1
        How often a token must occur to count as used in `VocabReport.utilisation`.
    alpha : float, default 2.5
        The order α of the Rényi entropy. The default correlates best with the quality of translation (Zouhar et al.
        2023).

    Returns
    -------
    VocabReport
        The numbers.

    Raises
    ------
    InputError
        An item is not a str, or an option is wrong.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer, vocab_report
    >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "the", "cat", "##s"])
    >>> report = vocab_report(tokenizer, ["the cats", "the cat", "the dog"])
    >>> report.words, report.tokens, report.unk_words
    (6, 7, 0.16666666666666666)
    """
    column = _core._column_texts(texts)
    if column is None and (isinstance(texts, str | bytes | Mapping) or not iterates(texts)):
        raise InputError(f"texts must be an iterable of str, not {type(texts).__name__}")
    least = whole_number("min_count", min_count, 1)
    alpha = finite_number("alpha", alpha, above=0)
    check_instance("tokenizer", tokenizer, Tokenizer)
    core = _core.Reporter(plain_core(tokenizer, "vocab_report"), threads)
    digest = hashlib.sha256()
    items = iter(texts if column is None else column)  # type: ignore[arg-type]
    first = 0
    while group := list(islice(items, _TEXTS_PER_GROUP)):
        core.add(group, first)
        first += len(group)
        # With the length before each text, so that no other texts have the same digest.
        digest.update(b"".join(b"%d:%b" % (len(data), data) for data in (text.encode() for text in group if text)))
    called = name or f"{tokenizer.vocab_size:,} tokens"
    return _report(tokenizer, core.sums(), called, least, alpha, digest.hexdigest())


def _report(
    tokenizer: Tokenizer, sums: _core.ReportSums, name: str, min_count: int, alpha: float, digest: str
) -> VocabReport:
    vocab = tokenizer.get_vocab(with_added_tokens=False)
    special = set(tokenizer.all_special_tokens)
    plain = [
        token
        for token, _ in sorted(vocab.items(), key=lambda item: item[1])
        if token not in special and not is_placeholder(token)
    ]
    by_id = {number: token for token, number in vocab.items()}
    counts = {by_id[number]: n for number, n in sums.used}
    dead = [token for token in plain if token not in counts]
    used = sum(counts.get(token, 0) >= min_count for token in plain)
    words_by_tokens = dict(sums.words_by_tokens)
    continued = sum(n for pieces, n in words_by_tokens.items() if pieces > 1)
    pieces_of_split = sum(pieces * n for pieces, n in words_by_tokens.items() if pieces > 1)
    lengths = {tokens + _SPECIAL_TOKENS: n for tokens, n in sums.texts_by_tokens}
    shares = [n / sums.tokens for n in counts.values()]
    entropy = 0.0 - math.fsum(p * math.log2(p) for p in shares) if shares else None
    return VocabReport(
        name=name,
        texts=sums.texts,
        words=sums.words,
        tokens=sums.tokens,
        chars=sums.chars,
        bytes=sums.bytes,
        vocab_size=len(vocab),
        fertility=_ratio(sums.tokens, sums.words),
        tokens_per_char=_ratio(sums.tokens, sums.chars),
        bytes_per_token=_ratio(sums.bytes, sums.tokens),
        unk_words=_ratio(sums.unk_words, sums.words),
        unk_chars=_ratio(sums.unk_chars, sums.word_chars),
        whole_words=_ratio(words_by_tokens.get(1, 0), sums.words),
        continued_words=_ratio(continued, sums.words),
        mean_pieces_of_split=_ratio(pieces_of_split, continued),
        utilisation=_ratio(used, len(plain)),
        min_count=min_count,
        dead=len(dead),
        dead_tokens=dead[:_DEAD_SHOWN],
        entropy=entropy,
        perplexity=None if entropy is None else 2**entropy,
        renyi_efficiency=_renyi(shares, len(vocab), alpha),
        renyi_efficiency_seen=_renyi(shares, len(shares), alpha),
        alpha=alpha,
        mean_length=_ratio(sum(length * n for length, n in lengths.items()), sums.texts),
        p50=_percentile(lengths, sums.texts, 50),
        p95=_percentile(lengths, sums.texts, 95),
        max=max(lengths, default=None),
        over_512=_ratio(sum(n for length, n in lengths.items() if length > _USUAL_LENGTH), sums.texts),
        fingerprint=hashlib.sha256(core_of(tokenizer).pipeline.encode()).hexdigest(),
        texts_digest=digest,
        token_counts=counts,
        words_by_tokens=words_by_tokens,
        texts_by_length=lengths,
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _renyi(shares: list[float], size: int, alpha: float) -> float | None:
    """Return the Rényi entropy of order α as a share of the maximum for `size` tokens."""
    if not shares or size < 2:
        return None
    if alpha == 1:
        return (0.0 - math.fsum(p * math.log2(p) for p in shares)) / math.log2(size)
    largest = max(shares)  # a power of a share alone may be too small for a float
    powers = alpha * math.log2(largest) + math.log2(math.fsum((p / largest) ** alpha for p in shares))
    return powers / (1 - alpha) / math.log2(size)


def _percentile(lengths: dict[int, int], texts: int, percent: int) -> int | None:
    """Return the smallest length that `percent` of the texts do not exceed."""
    so_far = 0
    for length, n in sorted(lengths.items()):
        so_far += n
        if 100 * so_far >= percent * texts:
            return length
    return None
