"""The evaluator of paraphrase mining: a collection, and which of its texts say the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from wordpiece_bert._internal.checks import (
    check_ids,
    check_instance,
    check_several,
    checked_flag,
    shows_progress,
    whole_number,
)
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.evaluation.encoding import encoded
from wordpiece_bert.evaluation.evaluator import EVALUATING, BaseEvaluator, Measured
from wordpiece_bert.search.paraphrase_mining import paraphrase_mining_embeddings
from wordpiece_bert.sentence.parameters import CHUNKS


@completed_by(EVALUATING, CHUNKS, paraphrase_mining_embeddings)
class ParaphraseMiningEvaluator(BaseEvaluator):
    """How well the paraphrases of a collection are found by the cosine of their vectors.

    The keys are ``average_precision``, the primary one, ``f1`` with the best ``threshold``, ``precision`` and
    ``recall``.

    Parameters
    ----------
    sentences_map : dict of str
        The sentences by id.
    duplicates_list : list of (id, id), optional
        The pairs that say the same. Those with an id that is not in `sentences_map` are left out.
    duplicates_dict : dict of dict of bool, optional
        The same as ``{id: {id: True}}``.
    add_transitive_closure : bool, default False
        Whether paraphrases of paraphrases count as such.
    top_k : int, default 100
        How many of the sentences nearest to each one make pairs with it.
    batch_size : int, default 16
        The most texts that go through the NumPy engine at once.

    Raises
    ------
    InputError
        There are fewer than two sentences, or no pair of them is a duplicate, or an argument is wrong.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.evaluation import ParaphraseMiningEvaluator
    >>> sentences = {"a": "to bake bread", "b": "she baked bread", "c": "a bicycle"}
    >>> evaluator = ParaphraseMiningEvaluator(sentences, duplicates_list=[("a", "b")])
    >>> evaluator(SentenceEncoder("models/sentences"))["average_precision"]
    1.0
    """

    primary_metric = "average_precision"

    def __init__(
        self,
        sentences_map: Mapping[Any, str],
        duplicates_list: Iterable[tuple[Any, Any]] | None = None,
        duplicates_dict: Mapping[Any, Mapping[Any, bool]] | None = None,
        add_transitive_closure: bool = False,
        query_chunk_size: int = 5000,
        corpus_chunk_size: int = 100_000,
        max_pairs: int = 500_000,
        top_k: int = 100,
        show_progress_bar: bool = False,
        batch_size: int = 16,
        name: str = "",
        write_csv: bool = True,
        truncate_dim: int | None = None,
    ) -> None:
        if not isinstance(sentences_map, Mapping):
            raise InputError(f"sentences_map must be a dict of sentences by id, not {sentences_map!r:.80}")
        self.sentences = dict(sentences_map)
        if len(self.sentences) < 2:
            raise InputError(f"sentences_map must have at least two sentences, not {len(self.sentences)}")
        rows = {key: row for row, key in enumerate(self.sentences)}
        listed = () if duplicates_list is None else duplicates_list
        by_id = {} if duplicates_dict is None else duplicates_dict
        check_instance("duplicates_list", listed, Iterable, "a list of pairs of ids")
        check_instance("duplicates_dict", by_id, Mapping, "a dict of dicts of True by id")
        pairs: list[Any] = list(listed)
        for number, pair in enumerate(pairs):
            check_several(f"duplicates_list[{number}]", pair, "two ids")
            if len([*pair]) != 2:
                raise InputError(f"duplicates_list[{number}] must be two ids, not {pair!r:.80}")
            check_ids(f"duplicates_list[{number}]", pair)
        for first, others in by_id.items():
            if not isinstance(others, Mapping):
                raise InputError(f"duplicates_dict[{first!r}] must be a dict of True by id, not {others!r:.80}")
            pairs += [(first, second) for second, same in others.items() if same]
        known = [(rows[first], rows[second]) for first, second in pairs if first in rows and second in rows]
        if checked_flag("add_transitive_closure", add_transitive_closure):
            known = _closure(known, len(rows))
        self._pairs = {(min(pair), max(pair)) for pair in known if pair[0] != pair[1]}
        if not self._pairs:
            raise InputError(
                f"there is nothing to find: none of the {len(pairs)} pairs of duplicates is of two sentences of "
                "sentences_map"
            )
        whole_number("query_chunk_size", query_chunk_size, 1)
        whole_number("corpus_chunk_size", corpus_chunk_size, 1)
        self.max_pairs = whole_number("max_pairs", max_pairs, 1)
        self.top_k = whole_number("top_k", top_k, 1)
        self.show_progress_bar = shows_progress(show_progress_bar)
        self.batch_size = whole_number("batch_size", batch_size, 1)
        self.truncate_dim = truncate_dim
        self._set_up(name, "paraphrase_mining_evaluation", write_csv=write_csv)

    def _measured(self, model: Any) -> Measured:
        how = {name: getattr(self, name) for name in ("batch_size", "show_progress_bar", "truncate_dim")}
        vectors = encoded(model, list(self.sentences.values()), None, **how)
        found = paraphrase_mining_embeddings(vectors, top_k=self.top_k, max_pairs=self.max_pairs)
        scores = np.array([score for score, _, _ in found])
        right = np.cumsum([(i, j) in self._pairs for _, i, j in found])
        # What a threshold at each distinct score finds.
        last = np.flatnonzero(np.append(np.diff(scores) != 0, True))
        right, total = right[last], max(1, len(self._pairs))
        precision, recall = right / (last + 1), right / total
        f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
        best = int(f1.argmax())
        some = bool(f1[best] > 0)
        next_score = scores[min(int(last[best]) + 1, len(scores) - 1)]
        metrics = {
            "average_precision": float((precision * np.diff(right, prepend=0)).sum() / total),
            "f1": float(f1[best]) if some else 0.0,
            "precision": float(precision[best]) if some else 0.0,
            "recall": float(recall[best]) if some else 0.0,
            "threshold": float((scores[last[best]] + next_score) / 2) if some else 0.0,
        }
        order = ("precision", "recall", "f1", "threshold", "average_precision")
        return Measured(metrics, "average_precision", {key: metrics[key] for key in order})


def _closure(pairs: list[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """Return all pairs of rows that are connected by pairs."""
    group = list(range(count))  # the lowest known row of the same group, which leads to the lowest

    def lowest(row: int) -> int:
        while group[row] != row:
            group[row] = group[group[row]]
            row = group[row]
        return row

    for first, second in pairs:
        a, b = lowest(first), lowest(second)
        group[max(a, b)] = min(a, b)
    members: dict[int, list[int]] = {}
    for row in range(count):
        members.setdefault(lowest(row), []).append(row)
    return [(i, j) for rows in members.values() for place, i in enumerate(rows) for j in rows[place + 1 :]]
