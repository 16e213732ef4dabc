"""Hard negatives: for each query of a training set, texts that its vectors take for answers but that are not.

The selection and its names are as in sentence-transformers; the margins are described in de Souza P. Moreira et al.,
"NV-Retriever: Improving text embedding models with effective hard-negative mining" (2024).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.arrays import check_finite
from wordpiece_bert._internal.checks import checked_choice, checked_flag, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, TrainingWarning
from wordpiece_bert.search.negative_choice import Candidates, checked_limits, how_chosen
from wordpiece_bert.search.pair_scores import check_reranker
from wordpiece_bert.search.training_pairs import LAYOUTS, Mined, read_pairs, rows_in_layout
from wordpiece_bert.sentence.dense.sentence_encoder import sentence_encoder
from wordpiece_bert.sentence.metrics import pairwise_similarity
from wordpiece_bert.sentence.nearest_rows import nearest
from wordpiece_bert.sentence.parameters import ENCODING
from wordpiece_bert.sentence.parts import threads_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.search.negative_choice import Choice
    from wordpiece_bert.search.training_pairs import TrainingPairs
    from wordpiece_bert.sentence.cross_encoder import CrossEncoder
    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder


@completed_by(ENCODING)
def mine_hard_negatives(
    dataset: Any,
    model: SentenceEncoder | str | os.PathLike[str],
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

    The candidates of a query are the texts of the corpus that are most similar to it, without its own positives and
    without the query, where it stands in the corpus itself. Rows with the same query have several positives.

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
        The highest and the lowest score of a negative: of cosines, from −1 to 1.
    absolute_margin : float, optional
        How much lower than the lowest positive's score the score of a negative must be at least.
    relative_margin : float, optional
        The same, as a share of the positive's score, at most 1: 0.05 for 5 %.
    num_negatives : int, default 3
        How many negatives to find for each query.
    sampling_strategy : {"top", "random"}, default "top"
        Whether the negatives are the best candidates, or are drawn from all of them.
    query_prompt_name, query_prompt : str, optional
        The prompt of the queries, by name or as text.
    corpus_prompt_name, corpus_prompt : str, optional
        The prompt of the corpus, by name or as text.
    include_positives : bool, default False
        Whether the positives that the search finds are ranked among the negatives, of which `num_negatives` are then
        the best of both; limits and `range_min` are for the others. The format is then ``"n-tuple"``.
    output_format : {"triplet", "n-tuple", "labeled-pair", "labeled-list"}, default "triplet"
        The columns: query, positive, ``negative``, a row for each negative; query, positive, ``negative_1`` and so on,
        without the queries that have fewer; query, text, ``label`` 1 or 0; query, list of texts, ``labels``.
    output_scores : bool, default False
        Whether the scores are returned: in a column ``scores`` with the positive's first, in place of ``labels``
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
        There are no pairs, a column is missing, named twice or has something else than texts, no score can be within
        the limits, a vector or a score is NaN, or an argument is wrong.

    Warns
    -----
    TrainingWarning
        Queries have fewer negatives than `num_negatives`; the message has their number and the arguments to change.

    Examples
    --------
    >>> from wordpiece_bert.util import mine_hard_negatives
    >>> pairs = {
    ...     "query": ["to bake bread", "to repair a bicycle"],
    ...     "text": ["bread in the oven", "the wheel of a bicycle"],
    ... }
    >>> mined = mine_hard_negatives(
    ...     pairs, "models/sentences", num_negatives=1, verbose=False
    ... )
    >>> mined[0]["text"], mined[0]["negative"]
    ('bread in the oven', 'the wheel of a bicycle')
    """
    layout = checked_choice("output_format", output_format, tuple(LAYOUTS))
    layout = "n-tuple" if checked_flag("include_positives", include_positives) else layout
    scored = checked_flag("output_scores", output_scores)
    checked_flag("use_faiss", use_faiss)
    checked_flag("verbose", verbose)
    whole_number("faiss_batch_size", faiss_batch_size, 1)
    if cross_encoder is not None:
        check_reranker(cross_encoder, "cross_encoder")
    pairs = read_pairs(dataset, anchor_column_name, positive_column_name, corpus)
    encoder = sentence_encoder(model, "model")
    metric = encoder.similarity_fn_name
    of_scores = None if cross_encoder is not None else "cosine" if metric == "dot" else metric  # the lengths are 1
    limits = checked_limits(absolute_margin, relative_margin, max_score, min_score, of_scores)
    choice = how_chosen(
        limits,
        num_negatives,
        range_min,
        range_max,
        sampling_strategy,
        seed,
        with_positives=include_positives,
        most_positives=max(map(len, pairs.positives.values())),
        rescored=cross_encoder is not None,
    )
    options: dict[str, Any] = {
        "batch_size": batch_size,
        "normalize_embeddings": True,
        "show_progress_bar": show_progress_bar,
    }
    documents = encoder.encode_document(pairs.pool, corpus_prompt_name, corpus_prompt, **options)
    queries = encoder.encode_query([*pairs.positives], query_prompt_name, query_prompt, **options)
    check_finite("the vectors of the corpus", documents)
    mined = []
    found = _candidates(pairs, queries, documents, metric, choice, threads_of(encoder))
    for (text, positives), candidates in zip(pairs.positives.items(), found, strict=True):
        if cross_encoder is not None and limits.given():
            candidates = _rescored(candidates, text, positives, pairs.pool, cross_encoder, batch_size)
        chosen = choice.of(candidates)
        rows, scores = candidates.rows[chosen].tolist(), candidates.scores[chosen].tolist()
        mined.append(Mined(text, positives, candidates.positive_scores.tolist(), rows, scores))
    _warn_of_few(mined, choice, len(pairs.pool), layout)
    return rows_in_layout(dataset, pairs, mined, layout, choice.number, scored=scored)


def _candidates(
    pairs: TrainingPairs, queries: Array, documents: Array, metric: str, choice: Choice, threads: int | None
) -> Iterator[Candidates]:
    """Yield the candidates of each query, with positives and the query itself besides those that may be chosen."""
    more = max(map(len, pairs.positives.values())) + bool(pairs.own)
    count = min(choice.last + more, len(documents))
    found, similarities = nearest(queries, documents, metric, count, threads)
    for index, (text, positives) in enumerate(pairs.positives.items()):
        asked = np.repeat(queries[index : index + 1], len(positives), axis=0)
        yield Candidates(
            found[index],
            similarities[index].astype(np.float32),
            np.isin(found[index], positives),
            found[index] == pairs.own.get(text, -1),
            pairwise_similarity(asked, documents[positives], metric),
        )


def _rescored(
    candidates: Candidates, text: str, positives: list[int], pool: list[str], ranker: CrossEncoder, batch_size: int
) -> Candidates:
    """Return candidates with the scores of a cross encoder."""
    rows = [*candidates.rows.tolist(), *positives]
    scores = ranker.predict([(text, pool[row]) for row in rows], batch_size)
    if np.isnan(scores).any():
        raise InputError(f"cross_encoder scores {pool[rows[int(np.isnan(scores).argmax())]]!r:.80} with NaN")
    count = len(candidates.rows)
    return replace(candidates, scores=scores[:count], positive_scores=scores[count:])


def _warn_of_few(mined: list[Mined], choice: Choice, texts: int, layout: str) -> None:
    """Warn of queries with fewer negatives than were asked for, and name what leaves them out."""
    few = sum(len(query.negatives) < choice.number for query in mined)
    if few:
        causes = [*choice.limits.given(), *["range_min"] * bool(choice.first)]
        causes.append("range_max" if choice.passes_over and choice.last < texts else "corpus")
        warn(
            f"{few:,} of {len(mined):,} queries have fewer than num_negatives={choice.number} negatives"
            f"{', and so no row' * (layout == 'n-tuple')}: change {' or '.join(causes)}, or lower num_negatives",
            TrainingWarning,
        )
