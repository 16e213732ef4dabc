"""The evaluator of reranking: for each query, texts that answer it and texts that do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.arrays import as_numbers
from wordpiece_bert._internal.checks import (
    check_function,
    check_instance,
    checked_flag,
    checked_strings,
    shows_progress,
    whole_number,
)
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.evaluation.encoding import encoded
from wordpiece_bert.evaluation.evaluator import EVALUATING, BaseEvaluator, Measured
from wordpiece_bert.evaluation.measures import average_precision, discounted_gain
from wordpiece_bert.sentence.metrics import checked_scores, similarity
from wordpiece_bert.sentence.sparse.sparse_vectors import SparseVectors, sparse_similarity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wordpiece_bert.bert.functional import Array


@completed_by(EVALUATING)
class RerankingEvaluator(BaseEvaluator):
    """How high the texts that answer a query are ranked among those that do not: ``map``, ``mrr@10``, ``ndcg@10``.

    nDCG counts texts with equal scores as if they shared their places. Samples without texts of one kind are left out.

    Parameters
    ----------
    samples : list of dict, or dict of them
        Dicts with ``query``, ``positive`` and ``negative``, the last two lists of texts, or one text.
    at_k : int, default 10
        How many texts count for MRR and nDCG, the primary measure.
    similarity_fct : callable, optional
        A function of a query [1, d] and texts [m, d] that returns scores [1, m]; by default their cosine.
    batch_size : int, default 64
        The most texts that go through the NumPy engine at once.
    use_batched_encoding : bool, default True
        Whether all texts are encoded at once, which is faster, or the texts of one sample after the other.

    Raises
    ------
    InputError
        No sample has texts of both kinds, or an argument is wrong.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.evaluation import RerankingEvaluator
    >>> sample = {
    ...     "query": "bake bread",
    ...     "positive": ["bread dough"],
    ...     "negative": ["a bicycle", "a city"],
    ... }
    >>> evaluator = RerankingEvaluator([sample])
    >>> evaluator(SentenceEncoder("models/sentences"))["map"]
    1.0
    """

    def __init__(
        self,
        samples: Sequence[Mapping[str, Any]] | Mapping[Any, Mapping[str, Any]],
        at_k: int = 10,
        name: str = "",
        write_csv: bool = True,
        similarity_fct: Callable[[Any, Any], Any] | None = None,
        batch_size: int = 64,
        show_progress_bar: bool = False,
        use_batched_encoding: bool = True,
        truncate_dim: int | None = None,
    ) -> None:
        check_instance("samples", samples, Iterable, "a list of samples, each a dict")
        given = list(samples.values() if isinstance(samples, Mapping) else samples)
        found = [_sample(number, sample) for number, sample in enumerate(given)]
        self.samples = [sample for sample in found if sample[1] and sample[2]]
        if not self.samples:
            raise InputError(f"none of the {len(given)} samples has positive and negative texts")
        self.at_k = whole_number("at_k", at_k, 1)
        if similarity_fct is not None:
            check_function("similarity_fct", similarity_fct, "vectors of queries and documents")
        self.similarity_fct = similarity_fct
        self.batch_size = whole_number("batch_size", batch_size, 1)
        self.show_progress_bar = shows_progress(show_progress_bar)
        self.use_batched_encoding = checked_flag("use_batched_encoding", use_batched_encoding)
        self.truncate_dim = truncate_dim
        self.primary_metric = f"ndcg@{self.at_k}"
        self._set_up(name, "RerankingEvaluator", f"results_@{self.at_k}.csv", write_csv=write_csv)

    def _measured(self, model: Any) -> Measured:
        groups = [self.samples] if self.use_batched_encoding else [[sample] for sample in self.samples]
        found = np.concatenate([self._of(model, group) for group in groups])
        precision, rank, gain = found.mean(axis=0).tolist()
        metrics = {"map": precision, f"mrr@{self.at_k}": rank, f"ndcg@{self.at_k}": gain}
        columns = {"MAP": precision, f"MRR@{self.at_k}": rank, f"NDCG@{self.at_k}": gain}
        return Measured(metrics, f"ndcg@{self.at_k}", columns)

    def _of(self, model: Any, samples: Iterable[tuple[str, list[str], list[str]]]) -> Array:
        """Return average precision, reciprocal rank and nDCG of samples, [n, 3]."""
        samples = list(samples)
        how = {name: getattr(self, name) for name in ("batch_size", "show_progress_bar", "truncate_dim")}
        queries = encoded(model, [query for query, _, _ in samples], "query", **how)
        texts = [text for _, positive, negative in samples for text in (*positive, *negative)]
        vectors = encoded(model, texts, "document", **how)
        start, found = 0, []
        for number, (_, positive, negative) in enumerate(samples):
            count = len(positive) + len(negative)
            scores = self._scores(queries[number : number + 1], vectors[start : start + count])
            start += count
            relevant = np.arange(count) < len(positive)
            found.append(_measures(scores, relevant, self.at_k))
        return np.array(found)

    def _scores(self, query: Any, texts: Any) -> Array:
        compare = self.similarity_fct
        if compare is None:
            sparse = isinstance(texts, SparseVectors)
            compare = (lambda a, b: sparse_similarity(a, b, "cosine")) if sparse else similarity
        found = as_numbers("the result of similarity_fct", compare(query, texts))
        scores: Array = checked_scores("similarity_fct", found.reshape(1, -1), 1, len(texts))[0]
        return scores


def _sample(number: int, sample: Any) -> tuple[str, list[str], list[str]]:
    """Return the query and the texts of a sample, checked."""
    if not isinstance(sample, Mapping) or not {"query", "positive", "negative"} <= set(sample):
        raise InputError(f"samples[{number}] must be a dict with query, positive and negative, not {sample!r:.80}")
    query = sample["query"]
    if not isinstance(query, str):
        raise InputError(f"samples[{number}]['query'] must be a str, not {query!r:.80}")
    sides = []
    for kind in ("positive", "negative"):
        texts = sample[kind]
        sides.append([texts] if isinstance(texts, str) else checked_strings(f"samples[{number}][{kind!r}]", texts))
    return query, sides[0], sides[1]


def _measures(scores: Array, relevant: np.ndarray[Any, np.dtype[np.bool_]], k: int) -> tuple[float, float, float]:
    """Return average precision, reciprocal rank among the first k, and nDCG of them, of one query."""
    order = np.argsort(-scores, kind="stable")
    ranked = relevant[order]
    first = int(ranked.argmax())
    # Of equal scores each has the mean relevance (McSherry and Najork 2008).
    _, groups, counts = np.unique(-scores[order], return_inverse=True, return_counts=True)
    shared = (np.bincount(groups, ranked) / counts)[groups]
    best = np.sort(relevant)[::-1].astype(float)
    gain = float(discounted_gain(shared[:k]) / discounted_gain(best[:k]))
    return average_precision(scores, relevant), 1 / (first + 1) if first < k else 0.0, gain
