"""Counts of rows for the report, block by block."""

from __future__ import annotations

import operator
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.parameters import PAIR_LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert import _core
    from wordpiece_bert.pretraining.row_options import RowOptions


class Tally:
    """What rows consist of.

    Parameters
    ----------
    row_length : int
        The largest number of tokens of a row.

    Attributes
    ----------
    tokens : int
        Tokens so far.
    """

    def __init__(self, row_length: int) -> None:
        self.tokens = 0
        self._rows_by_length = np.zeros(row_length + 1, np.int64)
        self._counts: Counter[str] = Counter()

    def add(self, block: _core.ExampleBlock) -> None:
        """Count the rows of a block."""
        lengths = block.lengths()
        self.tokens += int(lengths.sum())
        self._rows_by_length += np.bincount(lengths, minlength=len(self._rows_by_length))
        self._counts["sequences"] += block.sequences
        labels = block.pair_labels()
        ones = int(labels.sum())
        self._counts["label_1"] += ones
        self._counts["label_0"] += len(labels) - ones

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add the counts of a builder that has no more rows."""
        self._counts.update(counts)

    def to_json(self) -> dict[str, Any]:
        """Return all that was counted, for a journal."""
        lengths = np.flatnonzero(self._rows_by_length)
        by_length = zip(lengths.tolist(), self._rows_by_length[lengths].tolist(), strict=True)
        return {"rows_by_length": [list(pair) for pair in by_length], "counts": dict(self._counts)}

    def merge(self, content: Mapping[str, Any]) -> None:
        """Add what another tally's `to_json` has returned.

        Raises
        ------
        InputError
            It is something else: the file it is from is damaged.
        """
        try:
            pairs = [(operator.index(length), operator.index(rows)) for length, rows in content["rows_by_length"]]
            counts = {str(name): operator.index(count) for name, count in content["counts"].items()}
            if not all(0 <= length < len(self._rows_by_length) and 0 <= rows < 1 << 48 for length, rows in pairs):
                raise ValueError
        except (AttributeError, KeyError, TypeError, ValueError) as cause:
            raise InputError(
                f"the counts of rows are damaged: {content!r:.80}; delete the output, and make it again"
            ) from cause
        for length, rows in pairs:
            self._rows_by_length[length] += rows
            self.tokens += length * rows
        self._counts.update(counts)

    @property
    def rows(self) -> int:
        """Rows so far."""
        return int(self._rows_by_length.sum())

    def report(self, options: RowOptions) -> dict[str, Any]:
        """Return the fields of `ExamplesReport` that rows decide."""
        counts = self._counts
        names = ("short_targets", "lone_sentences", "rows_dropped", "tokens_cut", "truncated")
        masks = ("candidates", "masked", "random", "kept", "capped")
        return {
            "objective": options.objective,
            "row_length": options.row_length,
            "rows": self.rows,
            "sequences": counts["sequences"],
            "tokens": self.tokens,
            "fill_rate": self.tokens / (self.rows * options.row_length) if self.rows else 0.0,
            "lengths": self._quartiles(),
            "labels": [counts["label_0"], counts["label_1"]] if options.objective in PAIR_LABELS else [],
            **{name: counts[name] for name in (*names, *masks)},
        }

    def _quartiles(self) -> list[int]:
        """Return the minimum, the quartiles and the maximum of lengths, each of them the length of a row."""
        if not self.rows:
            return []
        upto = np.cumsum(self._rows_by_length)
        least = [1, *(-(-self.rows * quarter // 4) for quarter in (1, 2, 3, 4))]
        return [int(np.searchsorted(upto, count)) for count in least]
