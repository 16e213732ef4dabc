"""Which of the texts that are most similar to a query are taken as its negatives."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.checks import checked_choice, finite_number, whole_number
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.metrics import similarity_limit

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array

    Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Candidates:
    """The texts most similar to a query, by falling similarity, and the scores of its positives."""

    #: The rows of the texts, and their scores, which a cross encoder may have changed.
    rows: Rows
    scores: Array
    #: Which of them are positives of the query, and which is the query itself.
    is_positive: npt.NDArray[np.bool_]
    is_query: npt.NDArray[np.bool_]
    positive_scores: Array


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Which scores a negative may have, as `mine_hard_negatives` describes them."""

    absolute_margin: float | None
    relative_margin: float | None
    max_score: float | None
    min_score: float | None

    def given(self) -> list[str]:
        """Return the names of the limits that there are."""
        return [name for name, value in vars(self).items() if value is not None]

    def within(self, scores: Array, positive: np.float32) -> npt.NDArray[np.bool_]:
        """Return which scores [k] are within the limits, given the lowest score of a positive."""
        kept = np.ones(scores.shape, np.bool_)
        if self.absolute_margin is not None:
            kept &= scores + np.float32(self.absolute_margin) <= positive
        if self.relative_margin is not None:
            kept &= scores <= positive - abs(positive) * np.float32(self.relative_margin)
        if self.max_score is not None:
            kept &= scores <= np.float32(self.max_score)
        if self.min_score is not None:
            kept &= scores >= np.float32(self.min_score)
        return kept


def checked_limits(
    absolute_margin: float | None,
    relative_margin: float | None,
    max_score: float | None,
    min_score: float | None,
    metric: str | None,
) -> Limits:
    """Check limits of scores that are similarities by `metric`, or with None any numbers.

    Raises
    ------
    InputError
        A limit is not a finite number, or no score can be within the limits.
    """

    def limit(name: str, value: float | None) -> float | None:
        if value is None:
            return None
        return finite_number(name, value) if metric is None else similarity_limit(name, value, metric)

    highest, lowest = limit("max_score", max_score), limit("min_score", min_score)
    if highest is not None and lowest is not None and lowest > highest:
        raise InputError(f"min_score={min_score} is above max_score={max_score}: no score is within both")
    margin = None if absolute_margin is None else finite_number("absolute_margin", absolute_margin)
    if margin is not None and metric == "cosine" and margin > 2:
        raise InputError(
            f"absolute_margin must be at most 2, the greatest difference of cosines, not {absolute_margin}"
        )
    share = None if relative_margin is None else finite_number("relative_margin", relative_margin)
    if share is not None and share > 1:
        raise InputError(
            f"relative_margin must be at most 1, as a share of a score: 0.05 for 5 %, not {relative_margin}"
        )
    return Limits(absolute_margin=margin, relative_margin=share, max_score=highest, min_score=lowest)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How negatives are chosen from the candidates of a query."""

    limits: Limits
    #: Whether later candidates may be within the limits where the best ones are not: a higher `range_max` finds them.
    passes_over: bool
    #: The places of the candidates that may be chosen, among those that are within the limits.
    first: int
    last: int
    #: How many are chosen.
    number: int
    #: The generator that draws them; None for the best.
    draw: random.Random | None
    #: Whether positives are ranked among the negatives.
    with_positives: bool

    def of(self, candidates: Candidates) -> npt.NDArray[np.intp]:
        """Return which of the candidates are chosen, by falling score."""
        scores, positive = candidates.scores, candidates.is_positive
        allowed = self.limits.within(scores, candidates.positive_scores.min()) & ~positive & ~candidates.is_query
        order = np.argsort(-scores, kind="stable")
        chosen = order[allowed[order]][self.first : self.last]
        if self.draw is not None and len(chosen) > self.number:
            chosen = chosen[sorted(self.draw.sample(range(len(chosen)), self.number))]
        chosen = chosen[: self.number]
        if self.with_positives:  # limits and skipped places are for negatives alone
            ranked = positive.copy()
            ranked[chosen] = True
            chosen = order[ranked[order]][: self.number]
        return chosen


def how_chosen(
    limits: Limits,
    num_negatives: int,
    range_min: int,
    range_max: int | None,
    sampling_strategy: str,
    seed: int,
    *,
    with_positives: bool,
    most_positives: int,
    rescored: bool,
) -> Choice:
    """Check how negatives are chosen, as the arguments of `mine_hard_negatives` say it.

    Parameters
    ----------
    most_positives : int
        The most positives of a query.
    rescored : bool
        Whether a cross encoder scores the candidates.
    """
    strategy = checked_choice("sampling_strategy", sampling_strategy, ("top", "random"))
    number = whole_number("num_negatives", num_negatives, 1)
    first = whole_number("range_min", range_min, 0)
    # The best candidates by similarity are within a min_score if any are, but perhaps not within another limit.
    passes_over = any(rescored or name != "min_score" for name in limits.given())
    if range_max is None:
        last = first + number * (10 if passes_over else 1) + most_positives
    else:
        last = whole_number("range_max", range_max, 1)
    if number > last - first:
        raise InputError(
            f"num_negatives={number} do not fit between range_min={first} and range_max={last}: lower num_negatives or "
            "range_min, or raise range_max"
        )
    generator = random.Random(whole_number("seed", seed, 0))  # noqa: S311 - a sample, no secret
    return Choice(
        limits=limits,
        passes_over=passes_over,
        first=first,
        last=last,
        number=number,
        draw=generator if strategy == "random" else None,
        with_positives=with_positives,
    )
