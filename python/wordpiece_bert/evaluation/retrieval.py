"""The evaluator of retrieval: queries, a corpus, and which documents answer each query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.atomic_file import write_text
from wordpiece_bert._internal.checks import (
    check_function,
    check_ids,
    check_instance,
    checked_choice,
    checked_flag,
    finite_or_none,
    iterates,
    shows_progress,
    whole_number,
)
from wordpiece_bert._internal.json_text import json_text
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.evaluation import measures
from wordpiece_bert.evaluation.encoding import encoded, own_similarity
from wordpiece_bert.evaluation.evaluator import EVALUATING, BaseEvaluator, Measured, at_least_one
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.metrics import METRICS, checked_scores
from wordpiece_bert.sentence.nearest_rows import best_of_scores, merged, nearest
from wordpiece_bert.sentence.parts import threads_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert.sentence.nearest_rows import Found

    ScoreFunction = Callable[[Any, Any], Any]

#: The most scores that are in memory at once, where all documents have one: 16 MB, or the scores of one query.
_SCORES = 1 << 22


@completed_by(EVALUATING)
class InformationRetrievalEvaluator(BaseEvaluator):
    """How well the documents that answer queries are found, by comparing each query with all documents.

    The keys are ``cosine_accuracy@1``, ``cosine_precision@1``, ``cosine_recall@1``, ``cosine_ndcg@10``,
    ``cosine_mrr@10``, ``cosine_map@100`` and so on, with the name of the model's similarity. Of equal scores the
    document with the lower id comes first. Queries without relevant documents are left out.

    Parameters
    ----------
    queries : dict of str
        The queries by id.
    corpus : dict of str
        The documents by id.
    relevant_docs : dict of set, or of dict
        The ids of the documents that answer a query, by the id of the query. With grades in place of a set,
        ``{id: grade}``, nDCG takes them as gains, as trec_eval does; the other measures count grades above 0.
    corpus_chunk_size : int, default 50000
        How many documents are encoded and searched at once.
    mrr_at_k, ndcg_at_k, accuracy_at_k, precision_recall_at_k, map_at_k : sequence of int
        How many hits the measures count.
    batch_size : int, default 32
        The most texts that go through the NumPy engine at once.
    score_functions : dict of callable, optional
        How vectors are compared, by name: functions of queries [n, d] and documents [m, d] that return scores [n, m].
    main_score_function : str, optional
        The name of the one by which models are compared; by default the one with the highest nDCG.
    query_prompt, query_prompt_name, corpus_prompt, corpus_prompt_name : str, optional
        The prompts of queries and documents, as text or by name.
    write_predictions : bool, default False
        Whether a call with `output_path` also writes the hits of each query, as JSON lines.
    ignore_identical_ids : bool, default False
        Whether a document with the id of the query does not count as a hit for it, as in BEIR.

    Raises
    ------
    InputError
        No query has relevant documents, or an argument is wrong.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.evaluation import InformationRetrievalEvaluator
    >>> corpus = {"d1": "bread dough in the oven", "d2": "the wheel of a bicycle"}
    >>> evaluator = InformationRetrievalEvaluator(
    ...     {"q1": "bake bread"}, corpus, {"q1": {"d1"}}
    ... )
    >>> measures = evaluator(SentenceEncoder("models/sentences"))
    >>> measures["cosine_accuracy@1"], measures["cosine_ndcg@10"]
    (1.0, 1.0)
    """

    def __init__(
        self,
        queries: Mapping[Any, str],
        corpus: Mapping[Any, str],
        relevant_docs: Mapping[Any, Iterable[Any]],
        corpus_chunk_size: int = 50_000,
        mrr_at_k: Sequence[int] = (10,),
        ndcg_at_k: Sequence[int] = (10,),
        accuracy_at_k: Sequence[int] = (1, 3, 5, 10),
        precision_recall_at_k: Sequence[int] = (1, 3, 5, 10),
        map_at_k: Sequence[int] = (100,),
        show_progress_bar: bool = False,
        batch_size: int = 32,
        name: str = "",
        write_csv: bool = True,
        truncate_dim: int | None = None,
        score_functions: Mapping[str, ScoreFunction] | None = None,
        main_score_function: str | None = None,
        query_prompt: str | None = None,
        query_prompt_name: str | None = None,
        corpus_prompt: str | None = None,
        corpus_prompt_name: str | None = None,
        write_predictions: bool = False,
        *,
        ignore_identical_ids: bool = False,
    ) -> None:
        check_instance("queries", queries, Mapping, "a dict of texts by id")
        check_instance("corpus", corpus, Mapping, "a dict of texts by id")
        check_instance("relevant_docs", relevant_docs, Mapping, "a dict of sets of ids by the id of the query")
        grades = {query: _grades(query, relevant_docs[query]) for query in queries if query in relevant_docs}
        self.queries = {query: queries[query] for query in queries if grades.get(query)}
        self.relevant_docs = {query: grades[query] for query in self.queries}
        if not self.queries or not corpus:
            raise InputError(
                f"there is nothing to evaluate: {len(queries)} queries, of which {len(self.queries)} have relevant "
                f"documents, and {len(corpus)} documents"
            )
        try:
            self.corpus = {document: corpus[document] for document in sorted(corpus)}
        except TypeError as cause:
            raise InputError(f"the ids of the corpus are not of one type: {cause}") from cause
        self.corpus_chunk_size = whole_number("corpus_chunk_size", corpus_chunk_size, 1)
        self.mrr_at_k = at_least_one("mrr_at_k", mrr_at_k)
        self.ndcg_at_k = at_least_one("ndcg_at_k", ndcg_at_k)
        self.accuracy_at_k = at_least_one("accuracy_at_k", accuracy_at_k)
        self.precision_recall_at_k = at_least_one("precision_recall_at_k", precision_recall_at_k)
        self.map_at_k = at_least_one("map_at_k", map_at_k)
        self.show_progress_bar = shows_progress(show_progress_bar)
        self.batch_size = whole_number("batch_size", batch_size, 1)
        self.truncate_dim = truncate_dim
        if score_functions is not None:
            check_instance("score_functions", score_functions, Mapping, "a dict of functions by name")
            if not score_functions:
                raise InputError("score_functions is empty: leave it out for the similarity of the model")
            for key, function in score_functions.items():
                check_function(f"score_functions[{key!r}]", function, "vectors of queries and documents")
        self.score_functions = None if score_functions is None else dict(score_functions)
        self.main_score_function = getattr(main_score_function, "value", main_score_function)
        if main_score_function is not None:
            checked_choice("main_score_function", self.main_score_function, tuple(self.score_functions or METRICS))
        self.prompts = (query_prompt_name, query_prompt), (corpus_prompt_name, corpus_prompt)
        self.write_predictions = checked_flag("write_predictions", write_predictions)
        self.ignore_identical_ids = checked_flag("ignore_identical_ids", ignore_identical_ids)
        self._set_up(name, "Information-Retrieval_evaluation", write_csv=write_csv)

    def _measured(self, model: Any) -> Measured:
        functions = self.score_functions
        names = [own_similarity(model)] if functions is None else sorted(functions)
        if self.main_score_function is not None:
            checked_choice("main_score_function", self.main_score_function, tuple(names))
        ids = list(self.corpus)
        metrics, columns = dict[str, float](), dict[str, float]()
        self._predictions: dict[str, list[list[tuple[Any, float]]]] = {}
        for name, (rows, scores) in self._found(model, names).items():
            self._predictions[name] = [
                [(ids[row], score) for row, score in zip(*one, strict=True) if row >= 0]
                for one in zip(rows.tolist(), scores.tolist(), strict=True)
            ]
            found = self._measures(rows)
            for key, value in found.items():
                metrics[f"{name}_{key}"] = value
            for key in self._columns():
                measure, _, k = key.partition("@")
                label = measure.upper() if measure in ("mrr", "ndcg", "map") else measure.capitalize()
                columns[f"{name}-{label}@{k}"] = found[key]
        last = f"ndcg@{max(self.ndcg_at_k)}"
        main = self.main_score_function or max(names, key=lambda name: metrics[f"{name}_{last}"])
        return Measured(metrics, f"{main}_{last}", columns)

    def _columns(self) -> list[str]:
        """Return the keys of the measures in the order of the file's columns."""
        pairs = [f"{measure}@{k}" for k in self.precision_recall_at_k for measure in ("precision", "recall")]
        ks = {"mrr": self.mrr_at_k, "ndcg": self.ndcg_at_k, "map": self.map_at_k}
        single = [f"{measure}@{k}" for measure, numbers in ks.items() for k in numbers]
        return [*(f"accuracy@{k}" for k in self.accuracy_at_k), *pairs, *single]

    def _most(self) -> int:
        """Return how many hits of a query the measures count."""
        return max(self.mrr_at_k + self.ndcg_at_k + self.accuracy_at_k + self.precision_recall_at_k + self.map_at_k)

    def _found(self, model: Any, names: Sequence[str]) -> dict[str, Found]:
        """Return the best documents of each query by each function: rows of the corpus and scores, [q, hits]."""
        most = self._most() + self.ignore_identical_ids
        (query_name, query_prompt), (corpus_name, corpus_prompt) = self.prompts
        how = {name: getattr(self, name) for name in ("batch_size", "show_progress_bar", "truncate_dim")}
        asked = encoded(model, list(self.queries.values()), "query", **how, prompt_name=query_name, prompt=query_prompt)
        texts = list(self.corpus.values())
        best: dict[str, Found] = {}
        for start in range(0, len(texts), self.corpus_chunk_size):
            vectors = encoded(
                model,
                texts[start : start + self.corpus_chunk_size],
                "document",
                **how,
                prompt_name=corpus_name,
                prompt=corpus_prompt,
            )
            for name in names:
                rows, scores = self._nearest(model, name, asked, vectors, most)
                some = rows + start, scores
                best[name] = merged(best[name], some, most) if name in best else some
        if self.ignore_identical_ids:
            best = {name: self._without_own(*found) for name, found in best.items()}
        return best

    def _nearest(self, model: Any, name: str, asked: Any, vectors: Any, most: int) -> Found:
        """Return the rows and scores of the vectors nearest to each query."""
        function = model.similarity if self.score_functions is None else self.score_functions[name]
        if self.score_functions is None and isinstance(model, SentenceEncoder):
            return nearest(asked, vectors, name, min(most, len(vectors)), threads_of(model))
        step = max(1, _SCORES // len(vectors))
        parts = []
        for start in range(0, len(asked), step):
            some = asked[start : start + step]
            label = f"the score function {name!r}"
            scores = checked_scores(label, function(some, vectors), len(some), len(vectors))
            parts.append(best_of_scores(scores, most))
        return np.concatenate([rows for rows, _ in parts]), np.concatenate([scores for _, scores in parts])

    def _without_own(self, rows: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]) -> Found:
        """Return hits [q, k + 1] without the document that has the id of the query, at most k of the others.

        Where there are no k others, the row −1 stands for it, at the end.
        """
        numbers = {document: row for row, document in enumerate(self.corpus)}
        own = np.array([numbers.get(query, -1) for query in self.queries])[:, None] == rows
        order = np.argsort(own, axis=1, kind="stable")
        rows, scores, own = (np.take_along_axis(array, order, axis=1) for array in (rows, scores, own))
        most = min(rows.shape[1], self._most())
        return np.where(own, -1, rows)[:, :most], scores[:, :most]

    def _measures(self, rows: npt.NDArray[np.int64]) -> dict[str, float]:
        """Return the measures of the hits [q, k]."""
        numbers = {document: row for row, document in enumerate(self.corpus)}
        gains = np.zeros(rows.shape)
        for query, (grades, hits) in enumerate(zip(self.relevant_docs.values(), rows, strict=True)):
            known = {numbers[document]: grade for document, grade in grades.items() if document in numbers}
            for place in np.flatnonzero(np.isin(hits, list(known))).tolist():
                gains[query, place] = known[int(hits[place])]
        relevant = gains > 0
        totals = np.array([len(grades) for grades in self.relevant_docs.values()])
        ideal = [np.sort(np.array([*grades.values()], float))[::-1] for grades in self.relevant_docs.values()]
        found = {f"accuracy@{k}": measures.accuracy_at(relevant, k) for k in self.accuracy_at_k}
        found |= {f"precision@{k}": measures.precision_at(relevant, k) for k in self.precision_recall_at_k}
        found |= {f"recall@{k}": measures.recall_at(relevant, totals, k) for k in self.precision_recall_at_k}
        found |= {f"ndcg@{k}": measures.ndcg_at(gains, ideal, k) for k in self.ndcg_at_k}
        found |= {f"mrr@{k}": measures.mrr_at(relevant, k) for k in self.mrr_at_k}
        return found | {f"map@{k}": measures.map_at(relevant, totals, k) for k in self.map_at_k}

    def _write_more(self, folder: Path) -> None:
        if not self.write_predictions:
            return
        for name, found in self._predictions.items():
            lines = [
                json_text(
                    {
                        "query_id": query,
                        "query": text,
                        "results": [{"corpus_id": document, "score": score} for document, score in hits],
                    }
                )
                for (query, text), hits in zip(self.queries.items(), found, strict=True)
            ]
            folder.mkdir(parents=True, exist_ok=True)
            file = self.csv_file.replace("_results.csv", f"_predictions_{name}.jsonl")
            write_text(folder / file, "\n".join(lines) + "\n")


def _grades(query: Any, relevant: Iterable[Any]) -> dict[Any, float]:
    """Return the relevant documents of a query with their grades; 1 for the documents of a set."""
    if isinstance(relevant, str | bytes) or not iterates(relevant):
        raise InputError(f"relevant_docs[{query!r}] must be a set of ids, or grades by id, not {relevant!r:.80}")
    if isinstance(relevant, Mapping):
        grades = {document: _grade(query, document, grade) for document, grade in relevant.items()}
        return {document: grade for document, grade in grades.items() if grade > 0}
    ids = list(relevant)
    check_ids(f"relevant_docs[{query!r}]", ids)
    return dict.fromkeys(ids, 1.0)


def _grade(query: Any, document: Any, grade: Any) -> float:
    number = finite_or_none(grade)
    if number is None:
        raise InputError(f"relevant_docs[{query!r}][{document!r}] is {grade!r:.80}: a grade is a finite number")
    return number
