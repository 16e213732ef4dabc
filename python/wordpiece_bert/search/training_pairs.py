"""Pairs of a query and a positive text as training data has them, and the rows that they and their negatives make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from wordpiece_bert._internal.checks import checked_strings, iterates
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class TrainingPairs:
    """The queries of a data set with their positives, among the texts that may be negatives."""

    #: The columns of the queries and of the positives.
    names: tuple[str, str]
    #: The texts of the corpus and the positives, each once.
    pool: list[str]
    #: The rows of the positives of each query in the pool, each once.
    positives: dict[str, list[int]]
    #: The row of each query that is itself in the pool.
    own: dict[str, int]


@dataclass(frozen=True)
class Mined:
    """A query with the rows and scores of its positives, and of the negatives that were chosen, the highest first."""

    text: str
    positives: list[int]
    positive_scores: list[float]
    negatives: list[int]
    negative_scores: list[float]


def read_pairs(
    dataset: Any, anchor: str | None, positive: str | None, corpus: Iterable[str] | None = None
) -> TrainingPairs:
    """Read the pairs of a data set.

    Parameters
    ----------
    dataset : datasets.Dataset, sequence of dict, or mapping of columns
        The data.
    anchor, positive : str, optional
        The names of the two columns; by default of the first two, or of the one of these that the other is not.
    corpus : iterable of str, optional
        Further texts for the pool.

    Raises
    ------
    InputError
        There are no pairs, or a column is missing, named twice, or has something else than texts.
    """
    columns = _columns(dataset)
    names = _names(columns, anchor, positive)
    texts, answers = (checked_strings(f"the column {name!r}", columns[name]) for name in names)
    if len(texts) != len(answers) or not texts:
        raise InputError(f"the columns {names[0]!r} and {names[1]!r} have {len(texts)} and {len(answers)} texts")
    pool = list(dict.fromkeys([*([] if corpus is None else checked_strings("corpus", corpus)), *answers]))
    row_of = {text: row for row, text in enumerate(pool)}
    positives: dict[str, list[int]] = {text: [] for text in texts}
    for text, answer in dict.fromkeys(zip(texts, answers, strict=True)):
        positives[text].append(row_of[answer])
    return TrainingPairs(names, pool, positives, {text: row_of[text] for text in positives if text in row_of})


def _columns(dataset: Any) -> Mapping[str, Iterable[Any]]:
    """Return the columns of a data set by name."""
    if hasattr(dataset, "column_names"):  # datasets.Dataset
        return {name: list(dataset[name]) for name in dataset.column_names}
    if isinstance(dataset, Mapping):
        return dataset
    if not iterates(dataset) or isinstance(dataset, str | bytes):
        raise InputError(f"dataset must be rows or columns of texts, not {type(dataset).__name__}")
    rows = list(dataset)
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"dataset must have rows that are dicts, not {rows[:1]!r:.80}")
    try:
        return {name: [row[name] for row in rows] for name in rows[0]}
    except KeyError as cause:
        raise InputError(f"a row of dataset has no column {cause}") from cause


def _names(columns: Mapping[str, Any], anchor: str | None, positive: str | None) -> tuple[str, str]:
    """Return the names of the columns of queries and positives."""
    for name in (anchor, positive):
        if name is not None and name not in list(columns):  # what is unhashable is in a list, too
            raise InputError(f"dataset has no column {name!r}; its columns are {list(columns)}")
    if len(columns) < 2:
        raise InputError(f"dataset must have two columns, queries and positives, not {list(columns)}")
    first, second = list(columns)[:2]
    anchor = (second if positive == first else first) if anchor is None else anchor
    positive = (first if anchor == second else second) if positive is None else positive
    if anchor == positive:
        raise InputError(f"the queries and the positives are the same column {anchor!r}: name two")
    return anchor, positive


# --- layouts of rows


class Row(NamedTuple):
    """What a row has after the query: texts, and a label or a score in the last column."""

    texts: list[Any]
    label: Any
    score: Any


class Layout(NamedTuple):
    """The rows of a query and the columns after the pairs' columns."""

    rows: Callable[[Mined, list[str], int], Iterator[Row]]
    negatives: Callable[[int], list[str]]
    label: str | None
    score: str


def rows_in_layout(
    dataset: Any, pairs: TrainingPairs, mined: Sequence[Mined], layout: str, number: int, *, scored: bool
) -> Any:
    """Return the rows of queries with their negatives: a `datasets.Dataset` if the data set is one, else dicts.

    Parameters
    ----------
    dataset : object
        The data set that the pairs were read from.
    pairs : TrainingPairs
        Its pairs.
    mined : sequence of Mined
        The queries with their negatives.
    layout : str
        One of `LAYOUTS`.
    number : int
        How many negatives were looked for.
    scored : bool
        Whether the last column has scores in place of labels.
    """
    of_query, negatives, label, score = LAYOUTS[layout]
    end = score if scored else label
    columns = [*pairs.names, *negatives(number), *([] if end is None else [end])]
    rows = []
    for query in mined:
        for row in of_query(query, pairs.pool, number):
            last = [] if end is None else [row.score if scored else row.label]
            rows.append(dict(zip(columns, [query.text, *row.texts, *last], strict=True)))
    if not hasattr(dataset, "column_names"):
        return rows
    return type(dataset).from_dict({name: [row[name] for row in rows] for name in columns})


def _triplets(query: Mined, pool: list[str], number: int) -> Iterator[Row]:
    for positive, score in zip(query.positives, query.positive_scores, strict=True):
        for negative, other in zip(query.negatives, query.negative_scores, strict=True):
            yield Row([pool[positive], pool[negative]], None, [score, other])


def _tuples(query: Mined, pool: list[str], number: int) -> Iterator[Row]:
    if len(query.negatives) == number:
        for positive, score in zip(query.positives, query.positive_scores, strict=True):
            texts = [pool[row] for row in (positive, *query.negatives)]
            yield Row(texts, None, [score, *query.negative_scores])


def _labeled_pairs(query: Mined, pool: list[str], number: int) -> Iterator[Row]:
    for row, score in zip(query.positives, query.positive_scores, strict=True):
        yield Row([pool[row]], 1, score)
    for row, score in zip(query.negatives, query.negative_scores, strict=True):
        yield Row([pool[row]], 0, score)


def _labeled_lists(query: Mined, pool: list[str], number: int) -> Iterator[Row]:
    if query.negatives:
        for positive, score in zip(query.positives, query.positive_scores, strict=True):
            texts = [pool[row] for row in (positive, *query.negatives)]
            yield Row([texts], [1] + [0] * len(query.negatives), [score, *query.negative_scores])


LAYOUTS = {
    "triplet": Layout(_triplets, lambda number: ["negative"], None, "scores"),
    "n-tuple": Layout(_tuples, lambda number: [f"negative_{i + 1}" for i in range(number)], None, "scores"),
    "labeled-pair": Layout(_labeled_pairs, lambda number: [], "label", "score"),
    "labeled-list": Layout(_labeled_lists, lambda number: [], "labels", "scores"),
}
