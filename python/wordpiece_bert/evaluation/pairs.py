"""Evaluators of pairs and triplets of texts: correlation with scores, decisions by a threshold, order of two."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.arrays import as_numbers
from wordpiece_bert._internal.checks import checked_choice, checked_strings, finite_number, shows_progress, whole_number
from wordpiece_bert._internal.correlation import pearson, spearman
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.evaluation.encoding import checked_names, distinct, encoded, own_similarity, pair_scores
from wordpiece_bert.evaluation.evaluator import EVALUATING, BaseEvaluator, Measured
from wordpiece_bert.evaluation.measures import average_precision, best_accuracy, best_f1, matthews
from wordpiece_bert.sentence.metrics import METRICS
from wordpiece_bert.sentence.quantization import PRECISIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array


@completed_by(EVALUATING)
class EmbeddingSimilarityEvaluator(BaseEvaluator):
    """The correlation of the similarity of pairs with scores, as in the STS tasks.

    The keys are ``pearson_cosine``, ``spearman_cosine`` and so on; with several measures also ``pearson_max`` and
    ``spearman_max``. The primary one is Spearman's.

    Parameters
    ----------
    sentences1, sentences2 : list of str
        The texts of the pairs.
    scores : list of float
        How similar the texts of each pair are, higher for more; finite numbers.
    batch_size : int, default 16
        The most texts that go through the NumPy engine at once.
    main_similarity : str, optional
        The measure by which models are compared, one of `similarity_fn_names`; the only one if these are not given.
    precision : {"float32", "int8", "uint8", "binary", "ubinary"}, optional
        Evaluate quantized vectors, which are normalized first.

    Raises
    ------
    InputError
        The columns differ in length, a score is missing, or an argument is wrong.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.evaluation import EmbeddingSimilarityEvaluator
    >>> first, second = (
    ...     ["bread", "bread", "a bicycle"],
    ...     ["the bread", "a wheel", "a bicycle"],
    ... )
    >>> evaluator = EmbeddingSimilarityEvaluator(first, second, [0.7, 0.1, 1.0])
    >>> evaluator(SentenceEncoder("models/sentences"))["spearman_cosine"]
    1.0
    """

    def __init__(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        scores: npt.ArrayLike,
        batch_size: int = 16,
        main_similarity: str | None = None,
        similarity_fn_names: Sequence[str] | None = None,
        name: str = "",
        show_progress_bar: bool = False,
        write_csv: bool = True,
        precision: str | None = None,
        truncate_dim: int | None = None,
    ) -> None:
        self.sentences1, self.sentences2 = _texts(sentences1=sentences1, sentences2=sentences2)
        self.scores = as_numbers("scores", scores).astype(np.float64)
        if self.scores.shape != (len(self.sentences1),):
            raise InputError(f"there are {len(self.sentences1)} pairs, but scores has shape {list(self.scores.shape)}")
        if not (finite := np.isfinite(self.scores)).all():
            row = int(finite.argmin())
            raise InputError(f"scores[{row}] is {self.scores[row]}: leave out the pairs without a score")
        self.batch_size = whole_number("batch_size", batch_size, 1)
        self.similarity_fn_names = checked_names(similarity_fn_names, main_similarity)
        self.main_similarity = checked_names(None, main_similarity)
        self.show_progress_bar = shows_progress(show_progress_bar)
        self.precision = None if precision is None else checked_choice("precision", precision, PRECISIONS)
        self.truncate_dim = truncate_dim
        end = f"{precision}_results.csv" if precision else "results.csv"
        self._set_up(name, "similarity_evaluation", end, write_csv=write_csv)

    def _measured(self, model: Any) -> Measured:
        texts, (first, second) = distinct(self.sentences1, self.sentences2)
        options: dict[str, Any] = {}
        if self.precision is not None:
            options = {"precision": self.precision, "normalize_embeddings": True}
        vectors = encoded(model, texts, None, **_how(self), **options)
        if self.precision is not None:
            vectors = _unpacked(vectors, self.precision)
        names = self.similarity_fn_names or [own_similarity(model)]
        metrics, columns = dict[str, float](), dict[str, float]()
        for name in names:
            found = pair_scores(model, vectors[first], vectors[second], name)
            for measure, correlation in (("pearson", pearson), ("spearman", spearman)):
                columns[f"{name}_{measure}"] = metrics[f"{measure}_{name}"] = correlation(found, self.scores)
        if len(names) > 1:
            for measure in ("pearson", "spearman"):
                values = [metrics[f"{measure}_{name}"] for name in names]
                metrics[f"{measure}_max"] = max((value for value in values if value == value), default=math.nan)
        main = self.main_similarity or (["max"] if len(names) > 1 else names)
        return Measured(metrics, f"spearman_{main[0]}", columns)


@completed_by(EVALUATING)
class BinaryClassificationEvaluator(BaseEvaluator):
    """Whether the similarity of pairs tells similar from dissimilar ones, with the best threshold.

    For each measure there are ``cosine_accuracy`` with ``cosine_accuracy_threshold``, ``cosine_f1`` with
    ``cosine_f1_threshold``, ``cosine_precision`` and ``cosine_recall``, ``cosine_ap`` (average precision, the primary
    one) and ``cosine_mcc`` (Matthews correlation, at the threshold of F1). Thresholds of ``euclidean`` and
    ``manhattan`` are distances.

    Parameters
    ----------
    sentences1, sentences2 : list of str
        The texts of the pairs.
    labels : list of int
        1 for similar pairs, 0 for others.
    batch_size : int, default 32
        The most texts that go through the NumPy engine at once.

    Raises
    ------
    InputError
        The columns differ in length, or an argument is wrong.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.evaluation import BinaryClassificationEvaluator
    >>> first, second = (
    ...     ["bread", "bread", "a bicycle"],
    ...     ["the bread", "a wheel", "bicycles"],
    ... )
    >>> evaluator = BinaryClassificationEvaluator(first, second, [1, 0, 1])
    >>> measures = evaluator(SentenceEncoder("models/sentences"))
    >>> evaluator.primary_metric, measures["cosine_accuracy"]
    ('cosine_ap', 1.0)
    """

    def __init__(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        labels: npt.ArrayLike,
        name: str = "",
        batch_size: int = 32,
        show_progress_bar: bool = False,
        write_csv: bool = True,
        truncate_dim: int | None = None,
        similarity_fn_names: Sequence[str] | None = None,
    ) -> None:
        self.sentences1, self.sentences2 = _texts(sentences1=sentences1, sentences2=sentences2)
        self.labels = as_numbers("labels", labels)
        if self.labels.shape != (len(self.sentences1),) or not np.isin(self.labels, (0, 1)).all():
            raise InputError(f"labels must be {len(self.sentences1)} times 0 or 1, not {self.labels.tolist()!r:.80}")
        self.batch_size = whole_number("batch_size", batch_size, 1)
        self.show_progress_bar = shows_progress(show_progress_bar)
        self.truncate_dim = truncate_dim
        self.similarity_fn_names = checked_names(similarity_fn_names)
        self._set_up(name, "binary_classification_evaluation", write_csv=write_csv)

    def _measured(self, model: Any) -> Measured:
        texts, (first, second) = distinct(self.sentences1, self.sentences2)
        vectors = encoded(model, texts, None, **_how(self))
        names = self.similarity_fn_names or [own_similarity(model)]
        found = {name: self._decided(pair_scores(model, vectors[first], vectors[second], name), name) for name in names}
        metrics = {f"{name}_{key}": value for name, measures in found.items() for key, value in measures.items()}
        order = ("accuracy", "accuracy_threshold", "f1", "precision", "recall", "f1_threshold", "ap", "mcc")
        columns = {f"{name}_{key}": found[name][key] for name in names for key in order}
        if len(names) > 1:
            metrics |= {f"max_{key}": max(found[name][key] for name in names) for key in found[names[0]]}
        return Measured(metrics, "max_ap" if len(names) > 1 else f"{names[0]}_ap", columns)

    def _decided(self, scores: npt.NDArray[np.floating[Any]], name: str) -> dict[str, float]:
        positive = self.labels == 1
        accuracy, f1 = best_accuracy(scores, positive), best_f1(scores, positive)
        sign = -1 if name in ("euclidean", "manhattan") else 1  # of distances
        return {
            "accuracy": accuracy.value,
            "accuracy_threshold": sign * accuracy.threshold,
            "f1": f1.value,
            "f1_threshold": sign * f1.threshold,
            "precision": f1.precision,
            "recall": f1.recall,
            "ap": average_precision(scores, positive),
            "mcc": matthews(scores >= f1.threshold, positive),
        }


@completed_by(EVALUATING)
class TripletEvaluator(BaseEvaluator):
    """The share of triplets whose positive is nearer to the anchor than the negative: ``cosine_accuracy``.

    Anchors are encoded as queries, the others as documents.

    Parameters
    ----------
    anchors, positives, negatives : list of str
        The texts.
    main_similarity_function : str, optional
        The measure by which models are compared; the only one if `similarity_fn_names` is not given.
    margin : float or dict of str to float, optional
        By how much the similarity of the positive must be higher; one number, or one for each measure.
    batch_size : int, default 16
        The most texts that go through the NumPy engine at once.

    Raises
    ------
    InputError
        The columns differ in length, or an argument is wrong.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.evaluation import TripletEvaluator
    >>> evaluator = TripletEvaluator(["bread"], ["bread dough"], ["a wheel"])
    >>> evaluator(SentenceEncoder("models/sentences"))
    {'cosine_accuracy': 1.0}
    """

    def __init__(
        self,
        anchors: Sequence[str],
        positives: Sequence[str],
        negatives: Sequence[str],
        main_similarity_function: str | None = None,
        margin: float | Mapping[str, float] | None = None,
        name: str = "",
        batch_size: int = 16,
        show_progress_bar: bool = False,
        write_csv: bool = True,
        truncate_dim: int | None = None,
        similarity_fn_names: Sequence[str] | None = None,
    ) -> None:
        self.anchors, self.positives, self.negatives = _texts(anchors=anchors, positives=positives, negatives=negatives)
        self.main_similarity_function = checked_names(None, main_similarity_function)
        self.similarity_fn_names = checked_names(similarity_fn_names, main_similarity_function)
        given = margin if isinstance(margin, Mapping) else dict.fromkeys(METRICS, 0 if margin is None else margin)
        self.margin = {
            checked_choice("a key of margin", key, METRICS): finite_number("margin", value)
            for key, value in given.items()
        }
        self.batch_size = whole_number("batch_size", batch_size, 1)
        self.show_progress_bar = shows_progress(show_progress_bar)
        self.truncate_dim = truncate_dim
        self._set_up(name, "triplet_evaluation", write_csv=write_csv)

    def _measured(self, model: Any) -> Measured:
        documents, (positive, negative) = distinct(self.positives, self.negatives)
        queries, (anchor,) = distinct(self.anchors)
        asked = encoded(model, queries, "query", **_how(self))[anchor]
        vectors = encoded(model, documents, "document", **_how(self))
        names = self.similarity_fn_names or [own_similarity(model)]
        metrics = {}
        for name in names:
            margin = self.margin.get(name, 0)
            if name == "cosine" and abs(margin) > 2:
                raise InputError(f"margin must be from -2 to 2, a difference of cosines, not {margin}")
            nearer = pair_scores(model, asked, vectors[positive], name)
            farther = pair_scores(model, asked, vectors[negative], name) + np.float32(margin)
            metrics[f"{name}_accuracy"] = float((nearer > farther).mean())
        columns = {f"accuracy_{name}": metrics[f"{name}_accuracy"] for name in names}
        if len(names) > 1:
            metrics["max_accuracy"] = max(metrics.values())
        main = self.main_similarity_function or (["max"] if len(names) > 1 else names)
        return Measured(metrics, f"{main[0]}_accuracy", columns)


def _texts(**columns: Sequence[str]) -> list[list[str]]:
    """Return columns of texts, checked: as many in each, and at least one."""
    found = [checked_strings(name, texts) for name, texts in columns.items()]
    counts = [len(texts) for texts in found]
    if len(set(counts)) > 1 or not counts[0]:
        raise InputError(f"{', '.join(columns)} must have as many texts each, at least one, not {counts}")
    return found


def _how(evaluator: Any) -> dict[str, Any]:
    """Return how an evaluator encodes texts."""
    return {name: getattr(evaluator, name) for name in ("batch_size", "show_progress_bar", "truncate_dim")}


def _unpacked(vectors: npt.NDArray[Any], precision: str) -> Array:
    """Return quantized vectors as numbers: of binary ones the bits."""
    if precision == "binary":
        vectors = vectors.view(np.uint8) ^ np.uint8(128)  # binary is ubinary − 128
    if precision in ("binary", "ubinary"):
        vectors = np.unpackbits(vectors, axis=1)
    return np.asarray(vectors, np.float32)
