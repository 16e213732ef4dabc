"""Hard negatives: for each query of a training set, texts that its vectors take for answers and that are none.

The selection and its names are those of sentence-transformers; the margins are described in de Souza P. Moreira et al.,
"NV-Retriever: Improving text embedding models with effective hard-negative mining" (2024).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wordpiece_bert._internal.checks import (
    check_instance,
    checked_choice,
    checked_flag,
    checked_strings,
    finite_number,
    whole_number,
)
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.cross_encoder import CrossEncoder
from wordpiece_bert.sentence.dense.encoder import sentence_encoder
from wordpiece_bert.sentence.metrics import pairwise_similarity
from wordpiece_bert.sentence.parameters import ENCODING
from wordpiece_bert.sentence.parts import threads_of
from wordpiece_bert.sentence.search.nearest import nearest

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.dense.base import DenseEncoder

__all__ = ["mine_hard_negatives"]

_FORMATS = ("triplet", "n-tuple", "labeled-pair", "labeled-list")
_STRATEGIES = ("top", "random")


@dataclass(frozen=True)
class Query:
    """A query with the rows and scores of its positives, and of the negatives that were chosen, the highest first."""

    text: str
    positives: list[int]
    positive_scores: list[float]
    negatives: list[int]
    negative_scores: list[float]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Which candidates count as negatives, as `mine_hard_negatives` describes them."""

    absolute_margin: float | None
    relative_margin: float | None
    max_score: float | None
    min_score: float | None

    def any(self) -> bool:
        """Whether there is a limit."""
        return any(value is not None for value in vars(self).values())

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


@completed_by(ENCODING)
def mine_hard_negatives(
    dataset: Any,
    model: DenseEncoder | str | os.PathLike[str],
    anchor_column_name: str | None = None,
    positive_column_name: str | None = None,
    corpus: list[str] | None = None,
    cross_encoder: CrossEncoder | None = None,
    range_min: int = 0,
    range_max: int | None = None,
    max_score: float | None = None,
    min_score: float | None = None,
    absolute_margin: float | None = None,
    relative_margin: float | None = None,
    num_negatives: int = 3,
    sampling_strategy: str = "top",
    query_prompt_name: str | None = None,
    query_prompt: str | None = None,
    corpus_prompt_name: str | None = None,
    corpus_prompt: str | None = None,
    include_positives: bool = False,
    output_format: str = "triplet",
    output_scores: bool = False,
    batch_size: int = 32,
    faiss_batch_size: int = 16384,
    use_faiss: bool = False,
    verbose: bool = False,
    *,
    seed: int = 0,
    show_progress_bar: bool | None = None,
) -> Any:
    """Add hard negatives to pairs of a query and a positive text.

    The candidates of a query are the texts of the corpus that are most similar to it, without its own positives. Rows
    with the same query have several positives.

    Parameters
    ----------
    dataset : datasets.Dataset, sequence of dict, or mapping of columns
        The pairs.
    model : SentenceEncoder, str or os.PathLike
        The encoder that finds candidates, or its name or folder.
    anchor_column_name, positive_column_name : str, optional
        The columns of the queries and of the positives; by default the first two.
    corpus : list of str, optional
        Further texts that may be negatives, besides all positives.
    cross_encoder : CrossEncoder, optional
        Its scores replace the similarities where there are limits: `absolute_margin`, `relative_margin`, `max_score`
        or `min_score`.
    range_min : int, default 0
        How many of the best candidates are skipped: they may be positives that nobody marked.
    range_max : int, optional
        How many of the best candidates are considered; by default as many as `num_negatives` and the limits need.
    max_score, min_score : float, optional
        The highest and the lowest score of a negative.
    absolute_margin : float, optional
        How much lower than that of the lowest positive the score of a negative must be at least.
    relative_margin : float, optional
        The same, as a share of the positive's score: 0.05 for 5 %.
    num_negatives : int, default 3
        How many negatives to find for each query.
    sampling_strategy : {"top", "random"}, default "top"
        Whether the negatives are the best candidates, or are drawn from all of them.
    query_prompt_name, query_prompt : str, optional
        The prompt of the queries, by name or as text.
    corpus_prompt_name, corpus_prompt : str, optional
        The prompt of the corpus, by name or as text.
    include_positives : bool, default False
        Whether positives may be candidates too, for a ranking of both; the format is then ``"n-tuple"``.
    output_format : {"triplet", "n-tuple", "labeled-pair", "labeled-list"}, default "triplet"
        The columns: query, positive, ``negative``, a row for each negative; query, positive, ``negative_1`` and so on,
        without the queries that have fewer; query, text, ``label`` 1 or 0; query, list of texts, ``labels``.
    output_scores : bool, default False
        Whether the scores are returned: in a column ``scores`` with that of the positive first, in place of ``labels``
        where there are labels, and as ``score`` for pairs.
    faiss_batch_size, use_faiss, verbose : int, bool, bool
        Arguments of sentence-transformers that change nothing here: the search compares with all texts in bounded
        memory, and nothing is printed.
    seed : int, default 0
        The seed of `sampling_strategy` ``"random"``.

    Returns
    -------
    datasets.Dataset or list of dict
        The rows; a `datasets.Dataset` if `dataset` is one.

    Raises
    ------
    InputError
        There are no pairs, a column is missing or has something else than texts, or an argument is wrong.

    Examples
    --------
    >>> from wordpiece_bert.util import mine_hard_negatives
    >>> pairs = {
    ...     "query": ["to bake bread", "to repair a bicycle"],
    ...     "text": ["bread in the oven", "the wheel of a bicycle"],
    ... }
    >>> mine_hard_negatives(pairs, "models/sentences", num_negatives=1, verbose=False)[0]
    {'query': 'to bake bread', 'text': 'bread in the oven', 'negative': 'the wheel of a bicycle'}
    """
    columns = _columns(dataset)
    anchor, positive = _names(columns, anchor_column_name, positive_column_name)
    texts, positives = (checked_strings(f"the column {name!r}", columns[name]) for name in (anchor, positive))
    if len(texts) != len(positives) or not texts:
        raise InputError(f"the columns {anchor!r} and {positive!r} have {len(texts)} and {len(positives)} texts")
    layout = checked_choice("output_format", output_format, _FORMATS)
    strategy = checked_choice("sampling_strategy", sampling_strategy, _STRATEGIES)
    scored = checked_flag("output_scores", output_scores)
    with_positives = checked_flag("include_positives", include_positives)
    checked_flag("use_faiss", use_faiss)
    checked_flag("verbose", verbose)
    whole_number("faiss_batch_size", faiss_batch_size, 1)
    if cross_encoder is not None:
        check_instance("cross_encoder", cross_encoder, CrossEncoder)
    limits = Limits(
        absolute_margin=None if absolute_margin is None else finite_number("absolute_margin", absolute_margin),
        relative_margin=None if relative_margin is None else finite_number("relative_margin", relative_margin),
        max_score=None if max_score is None else finite_number("max_score", max_score),
        min_score=None if min_score is None else finite_number("min_score", min_score),
    )
    number = whole_number("num_negatives", num_negatives, 1)
    first = whole_number("range_min", range_min, 0)
    most = max(Counter(texts).values())
    if range_max is None:
        spare = any(x is not None for x in (limits.absolute_margin, limits.relative_margin, limits.max_score))
        spare = spare or (cross_encoder is not None and limits.min_score is not None)
        last = first + number * (10 if spare else 1) + most
    else:
        last = whole_number("range_max", range_max, 1)
    if number > last - first:
        raise InputError(
            f"num_negatives={number} do not fit between range_min={first} and range_max={last}: lower num_negatives or "
            "range_min, or raise range_max"
        )

    pool = list(dict.fromkeys([*([] if corpus is None else checked_strings("corpus", corpus)), *positives]))
    row_of = {text: row for row, text in enumerate(pool)}
    rows_of: dict[str, dict[int, None]] = {}  # the positives of each query, without those that come twice
    for text, answer in zip(texts, positives, strict=True):
        rows_of.setdefault(text, {})[row_of[answer]] = None
    queries = list(rows_of)

    encoder = sentence_encoder(model, "model")
    options: dict[str, Any] = {
        "batch_size": batch_size,
        "normalize_embeddings": True,
        "show_progress_bar": show_progress_bar,
    }
    documents = encoder.encode_document(pool, corpus_prompt_name, corpus_prompt, **options)
    asked = encoder.encode_query(queries, query_prompt_name, query_prompt, **options)
    metric = encoder.similarity_fn_name
    rows, similarities = nearest(asked, documents, metric, min(last + most, len(pool)), threads_of(encoder))

    draw = random.Random(whole_number("seed", seed, 0))  # noqa: S311 - a sample, no secret
    rerank = cross_encoder if limits.any() else None
    mined = []
    for index, (text, found, near) in enumerate(zip(queries, rows, similarities.astype(np.float32), strict=True)):
        own = list(rows_of[text])
        if rerank is None:
            own_scores = pairwise_similarity(np.repeat(asked[index : index + 1], len(own), 0), documents[own], metric)
        else:
            predicted = rerank.predict([(text, pool[row]) for row in [*found.tolist(), *own]], batch_size)
            near, own_scores = predicted[: len(found)], predicted[len(found) :]
        kept = limits.within(near, own_scores.min())
        if not with_positives:
            kept &= ~np.isin(found, own)
        order = np.argsort(-near, kind="stable")
        order = order[kept[order]][first:last]
        if strategy == "random" and len(order) > number:
            order = order[sorted(draw.sample(range(len(order)), number))]
        order = order[:number]
        mined.append(Query(text, own, own_scores.tolist(), found[order].tolist(), near[order].tolist()))
    layout = "n-tuple" if with_positives else layout
    names = (anchor, positive)
    made = list(_LAYOUTS[layout](mined, pool, names, number, scored=scored))
    return _returned(dataset, made, _output_columns(layout, names, number, scored=scored))


def _columns(dataset: Any) -> Mapping[str, Iterable[Any]]:
    """Return the columns of a data set by name."""
    if hasattr(dataset, "column_names"):  # datasets.Dataset
        return {name: list(dataset[name]) for name in dataset.column_names}
    if isinstance(dataset, Mapping):
        return dataset
    if not isinstance(dataset, Iterable) or isinstance(dataset, str | bytes):
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
        if name is not None and name not in columns:
            raise InputError(f"dataset has no column {name!r}; its columns are {list(columns)}")
    if len(columns) < 2:
        raise InputError(f"dataset must have two columns, queries and positives, not {list(columns)}")
    first, second = list(columns)[:2]
    return first if anchor is None else anchor, second if positive is None else positive


# --- formats: each yields the rows, dicts by column


def _output_columns(layout: str, names: tuple[str, str], number: int, *, scored: bool) -> list[str]:
    """Return the columns of a format, also where there are no rows."""
    more = {
        "triplet": ["negative", *["scores"] * scored],
        "n-tuple": [*(f"negative_{i + 1}" for i in range(number)), *["scores"] * scored],
        "labeled-pair": ["score" if scored else "label"],
        "labeled-list": ["scores" if scored else "labels"],
    }
    return [*names, *more[layout]]


def _triplets(
    mined: list[Query], pool: list[str], names: tuple[str, str], number: int, *, scored: bool
) -> Iterator[dict[str, Any]]:
    for query in mined:
        for positive, score in zip(query.positives, query.positive_scores, strict=True):
            for negative, other in zip(query.negatives, query.negative_scores, strict=True):
                row = dict(zip((*names, "negative"), (query.text, pool[positive], pool[negative]), strict=True))
                yield row | ({"scores": [score, other]} if scored else {})


def _tuples(
    mined: list[Query], pool: list[str], names: tuple[str, str], number: int, *, scored: bool
) -> Iterator[dict[str, Any]]:
    for query in mined:
        if len(query.negatives) < number:
            continue
        negatives = {f"negative_{i + 1}": pool[row] for i, row in enumerate(query.negatives)}
        for positive, score in zip(query.positives, query.positive_scores, strict=True):
            row = dict(zip(names, (query.text, pool[positive]), strict=True)) | negatives
            yield row | ({"scores": [score, *query.negative_scores]} if scored else {})


def _labeled_pairs(
    mined: list[Query], pool: list[str], names: tuple[str, str], number: int, *, scored: bool
) -> Iterator[dict[str, Any]]:
    for query in mined:
        sides = (1, query.positives, query.positive_scores), (0, query.negatives, query.negative_scores)
        for label, rows, scores in sides:
            for row, score in zip(rows, scores, strict=True):
                pair = dict(zip(names, (query.text, pool[row]), strict=True))
                yield pair | ({"score": score} if scored else {"label": label})


def _labeled_lists(
    mined: list[Query], pool: list[str], names: tuple[str, str], number: int, *, scored: bool
) -> Iterator[dict[str, Any]]:
    for query in mined:
        if not query.negatives:
            continue
        texts = [pool[row] for row in query.negatives]
        for positive, score in zip(query.positives, query.positive_scores, strict=True):
            row = dict(zip(names, (query.text, [pool[positive], *texts]), strict=True))
            labels = {"scores": [score, *query.negative_scores]} if scored else {"labels": [1] + [0] * len(texts)}
            yield row | labels


_LAYOUTS: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {
    "triplet": _triplets,
    "n-tuple": _tuples,
    "labeled-pair": _labeled_pairs,
    "labeled-list": _labeled_lists,
}


def _returned(dataset: Any, rows: list[dict[str, Any]], columns: Sequence[str]) -> Any:
    """Return rows as the caller gave them: as a `datasets.Dataset` if it was one."""
    if not hasattr(dataset, "column_names"):
        return rows
    return type(dataset).from_dict({name: [row[name] for row in rows] for name in columns})
