"""`ExamplesReport`: what `build_examples` made, in numbers that show whether the promised shares were kept."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.checks import check_instance, checked_probability
from wordpiece_bert._internal.figures import PLOTTED, new_figure, save_figure
from wordpiece_bert._internal.notebook import table_html
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

#: Shares further from what was asked for than this many standard errors are reported as such.
_STANDARD_ERRORS = 5


@dataclass(frozen=True, slots=True)
class Share:
    """A share that random choices should have, and the one that they have.

    Attributes
    ----------
    name : str
        What is counted.
    expected, observed : float
        The shares.
    count : int
        The number of random choices.
    """

    name: str
    expected: float
    observed: float
    count: int

    @property
    def standard_errors(self) -> float:
        """How many standard errors of a binomial distribution lie between the two."""
        error = math.sqrt(self.expected * (1 - self.expected) / self.count)
        difference = abs(self.observed - self.expected)
        return 0.0 if difference == 0 else math.inf if error == 0 else difference / error

    @property
    def holds(self) -> bool:
        """Whether they differ by at most five standard errors."""
        return self.standard_errors <= _STANDARD_ERRORS


@dataclass(frozen=True, slots=True)
class ExamplesReport:
    """What examples consist of. ``print(report)`` shows it; notebooks show it as tables.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.pretraining import (
    ...     ExamplesReport,
    ...     build_examples,
    ...     build_token_store,
    ... )
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> _ = build_token_store(
    ...     tokenizer,
    ...     "examples/texts/documents.txt",
    ...     "corpus.tokens",
    ...     show_progress_bar=False,
    ... )
    >>> report = build_examples(
    ...     "corpus.tokens", "pairs", tokenizer, max_length=32, show_progress_bar=False
    ... )
    >>> report.rows, report.documents
    (7, 3)
    >>> print(report.text().splitlines()[0])
    objective                           nsp
    >>> [share.name for share in report.shares()]
    ['random second segments']
    >>> ExamplesReport.from_dict(report.to_dict()) == report, report.to_json()[:1]
    (True, '{')
    """

    #: The folder or file that was written.
    output: str
    #: The objective: ``"nsp"``, ``"sop"``, ``"full-sentences"``, ``"doc-sentences"``, ``"blocks"`` or ``"text"``.
    objective: str
    #: The largest number of tokens of a row.
    row_length: int
    #: The number of rows, of sequences in them (more than rows if they are packed), and of tokens, special ones too.
    rows: int = 0
    sequences: int = 0
    tokens: int = 0
    #: tokens / (rows · row_length).
    fill_rate: float = 0.0
    #: The lengths of rows: minimum, quartiles and maximum.
    lengths: tuple[int, ...] = ()
    #: The sequences with label 0 and 1; empty for objectives without a label.
    labels: tuple[int, ...] = ()
    #: Pairs that aimed at a random smaller number of tokens.
    short_targets: int = 0
    #: Pairs whose second segment is random because the document had no second sentence left.
    lone_sentences: int = 0
    #: Pairs that could not be made, because a document had no second sentence left.
    rows_dropped: int = 0
    #: Tokens that were cut off, and documents that were cut (objective ``"text"``).
    tokens_cut: int = 0
    truncated: int = 0
    #: Static masks: the tokens that may be masked, and what became of those that were chosen; rows at max_predictions.
    candidates: int = 0
    masked: int = 0
    random: int = 0
    kept: int = 0
    capped: int = 0
    #: Documents of the store, documents dropped because they have no tokens, and the bytes of text.
    documents: int = 0
    documents_empty: int = 0
    bytes: int = 0
    #: How long the call took.
    seconds: float = 0.0
    #: The arguments of the call.
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ExamplesReport:
        """Return the report with given fields.

        Parameters
        ----------
        content : mapping of str to value
            The fields, as from `to_dict`. Unknown ones are ignored, so that newer reports can be read.

        Returns
        -------
        ExamplesReport
            The report.

        Raises
        ------
        InputError
            A field is missing, or has the wrong type.
        """
        check_instance("content", content, Mapping, "a dict of the fields of a report")
        given: dict[str, Any] = {}
        for one in fields(cls):
            if one.name not in content and one.default is MISSING and one.default_factory is MISSING:
                raise InputError(f"the report has no field {one.name!r}")
            if one.name in content:
                given[one.name] = _checked(one.name, str(one.type), content[one.name])
        _asked_shares(given.get("options", {}))
        return cls(**given)

    @property
    def chosen(self) -> int:
        """The tokens with a label: masked + random + kept."""
        return self.masked + self.random + self.kept

    def shares(self) -> list[Share]:
        """Return the shares that random choices should have, beside those they have.

        The share of chosen tokens is not among them: in each row it is rounded, so it is not random.

        Returns
        -------
        list of Share
            What became of chosen tokens, if masks are static; and the random second segments (nsp, without those that
            had no choice) or swapped segments (sop).
        """
        found = []
        if self.chosen:
            asked = _asked_shares(self.options)
            counts = {"masked": self.masked, "random": self.random, "kept": self.kept}
            for (name, count), share in zip(counts.items(), (*asked, 1 - sum(asked)), strict=True):
                found.append(
                    Share(f"{name}, of chosen tokens", min(max(share, 0.0), 1.0), count / self.chosen, self.chosen)
                )
        if self.labels:
            with_choice = sum(self.labels) - self.lone_sentences
            ones = self.labels[1] - self.lone_sentences
            what = "swapped segments" if self.objective == "sop" else "random second segments"
            if with_choice > 0:
                found.append(Share(what, 0.5, ones / with_choice, with_choice))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name.

        Returns
        -------
        dict
            The values by the names of the fields.
        """
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the report as JSON.

        Parameters
        ----------
        indent : int or None, default 2
            How many spaces each level is indented by; None for one line.

        Returns
        -------
        str
            A JSON object with all fields.
        """
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def text(self) -> str:
        """Return the report as lines of text.

        Returns
        -------
        str
            The text.
        """
        rows = list(self._lines())
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name.ljust(width)}  {value}".rstrip() for name, value in rows)

    __str__ = text

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "objective", self.objective
        yield "output", self.output
        yield "rows", f"{self.rows:,}"
        if self.sequences != self.rows:
            yield "  sequences in them", f"{self.sequences:,}"
        yield "tokens", f"{self.tokens:,}"
        yield "fill rate", f"{self.fill_rate:.2%} of {self.row_length} tokens a row"
        if self.lengths:
            yield "lengths", "minimum {}, quartiles {}, {}, {}, maximum {}".format(*self.lengths)
        if self.labels:
            yield "labels", f"{self.labels[0]:,} × 0, {self.labels[1]:,} × 1"
        for name, label in _COUNTS.items():
            if getattr(self, name):
                yield label, f"{getattr(self, name):,}"
        if self.candidates:
            yield "tokens chosen", f"{self.chosen:,}, {self.chosen / self.candidates:.2%} of {self.candidates:,}"
        for share in self.shares():
            verdict = f"{share.standard_errors:.1f} standard errors" + ": TOO FAR" * (not share.holds)
            yield share.name, f"{share.observed:.2%} ({share.expected:.2%} expected, {verdict})"
        yield "documents", f"{self.documents:,} used, {self.documents_empty:,} without tokens"
        yield "text", f"{self.bytes:,} bytes"
        yield "time", f"{self.seconds:.1f} s"

    def _repr_html_(self) -> str:
        parts = [table_html("Pre-training examples", ("", ""), self._lines())]
        for share in self.shares():
            width = round(100 * share.observed)
            parts.append(
                f'<div title="{html.escape(share.name)}" style="width:20em;background:#ddd">'
                f'<div style="width:{width}%;background:#4477aa;color:#fff;white-space:nowrap">{share.observed:.1%} '
                f"{html.escape(share.name)}</div></div>"
            )
        return "".join(parts)

    @completed_by(PLOTTED)
    def plot(self, path: str | os.PathLike[str]) -> None:
        """Plot the shares, the labels and the lengths of rows to a file. Needs matplotlib.

        Raises
        ------
        InputError
            matplotlib is not installed.

        Examples
        --------
        >>> from wordpiece_bert import Tokenizer
        >>> from wordpiece_bert.pretraining import build_examples, build_token_store
        >>> tokenizer = Tokenizer.from_pretrained("models/words")
        >>> store = build_token_store(
        ...     tokenizer, "examples/texts/documents.txt", "corpus.tokens"
        ... )  # doctest: +SKIP
        >>> build_examples(store, "pairs", tokenizer).plot("pairs.svg")  # doctest: +SKIP
        """
        figure, _ = new_figure("plot", figsize=(13, 4), layout="constrained")
        by_share, by_use, by_length = figure.subplots(1, 3)
        shares = self.shares()
        positions = range(len(shares))
        by_share.bar([one - 0.2 for one in positions], [share.expected for share in shares], 0.4, label="expected")
        by_share.bar([one + 0.2 for one in positions], [share.observed for share in shares], 0.4, label="observed")
        by_share.set_xticks(list(positions), [share.name.replace(", of ", "\nof ") for share in shares])
        by_share.set(title="Shares of random choices", ylim=(0, 1))
        if shares:
            by_share.legend()
        counts = {label.strip(): getattr(self, name) for name, label in _COUNTS.items()}
        by_use.barh(list(counts), list(counts.values()))
        by_use.set(title="What was cut, dropped or forced", xlabel="count")
        if self.lengths:
            statistics = dict(zip(("whislo", "q1", "med", "q3", "whishi"), self.lengths, strict=True))
            by_length.bxp([{**statistics, "label": ""}], showfliers=False)
        by_length.set(
            title=f"Lengths of rows, {self.fill_rate:.1%} full", ylabel="tokens", ylim=(0, self.row_length * 1.02)
        )
        save_figure(figure, path)


def _checked(name: str, kind: str, value: Any) -> Any:
    """Return the value of a field of a report."""
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
    if kind.startswith("tuple"):
        lengths = {"labels": (0, 2), "lengths": (0, 5)}[name]
        if isinstance(value, list | tuple) and len(value) in lengths:
            return tuple(_checked(name, "int", item) for item in value)
    elif kind == "int":
        if whole:
            return value
    elif kind == "float":
        if whole or (isinstance(value, float) and math.isfinite(value)):
            return float(value)
    elif isinstance(value, dict if kind.startswith("dict") else str):
        return value
    raise InputError(f"the field {name!r} of the report must be {kind}, not {value!r:.80}")


def _asked_shares(options: Mapping[str, Any]) -> tuple[float, float]:
    """Return which shares of the chosen tokens the options of a call mask, and replace at random."""
    masking = options.get("masking") or {}
    check_instance("the field 'masking' of the report's options", masking, dict)
    masked = checked_probability("masked", masking.get("masked", 0.8))
    return masked, checked_probability("random", masking.get("random", 0.1))


_COUNTS = {
    "short_targets": "pairs with a shorter target",
    "lone_sentences": "pairs with a forced random segment",
    "rows_dropped": "pairs not made",
    "tokens_cut": "tokens cut off",
    "truncated": "documents cut",
    "capped": "rows at max_predictions",
}
