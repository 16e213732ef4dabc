"""What word counts give to other modules of this package, besides `wordpiece_bert._internal.parts`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wordpiece_bert.training.counts import WordCounts


def with_skipped(counts: WordCounts, skipped: int) -> WordCounts:
    """Return the counts of texts whose reader has skipped others."""
    return counts._build(counts._inner, replace(counts._info, skipped=skipped))
