"""The metrics of the tasks that BERT is fine-tuned for.

Stability: provisional.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.checks import checked_strings
from wordpiece_bert._internal.correlation import equal_shapes, pearson, spearman
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.tags import OUTSIDE, tag_of
from wordpiece_bert.bert.inputs import as_classes, check_labels
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

__all__ = [
    "accuracy",
    "answer_f1",
    "entity_f1",
    "entity_f1_by_type",
    "exact_match",
    "f1",
    "f1_by_label",
    "pearson",
    "spearman",
]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def accuracy(predictions: npt.ArrayLike, labels: npt.ArrayLike, *, ignored: int = -100) -> float:
    """Return the share of labels that are predicted correctly.

    Parameters
    ----------
    predictions, labels : array_like
        Arrays of one shape.
    ignored : int, optional
        The label that does not count.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    InputError
        The shapes differ, no label counts, one is NaN, or some are numbers and others str.

    Examples
    --------
    >>> from wordpiece_bert.finetune.metrics import accuracy
    >>> accuracy([1, 0, 1, 1], [1, 1, 1, 1])
    0.75
    """
    found, right = _counted(predictions, labels, ignored)
    return float((found == right).mean())


def _counted(
    predictions: npt.ArrayLike, labels: npt.ArrayLike, ignored: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the labels that count, and their predictions: numbers or str, which are never equal to each other."""
    both = equal_shapes(predictions, labels)
    found, right = (np.asarray(side.tolist()) if side.dtype == object else side for side in both)
    kinds = {side.dtype.kind if side.dtype.kind in "US" else "number" for side in (found, right)}
    if len(kinds) > 1 or found.dtype == object or right.dtype == object:
        raise InputError(
            f"predictions and labels must be both numbers or both str, not {found.dtype} and {right.dtype}"
        )
    for name, side in (("predictions", found), ("labels", right)):
        if (bad := np.argwhere(side != side)).size:  # only NaN is not equal to itself
            raise InputError(f"{name}{bad[0].tolist()} is nan: a class is a number or a str")
    counted = right != ignored
    if not counted.any():
        raise InputError(f"all {right.size} labels are ignored ({ignored}): the metric is not defined")
    return found[counted], right[counted]


@completed_by(accuracy)
def f1(predictions: npt.ArrayLike, labels: npt.ArrayLike, *, positive: int = 1, ignored: int = -100) -> float:
    """Return the harmonic mean of precision and recall of one class; 0 where it never occurs.

    Parameters
    ----------
    positive : int, default 1
        The class.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from wordpiece_bert.finetune.metrics import f1
    >>> f1([1, 0, 1, 0], [1, 1, 0, 0])
    0.5
    """
    found, right = _counted(predictions, labels, ignored)
    both = int(((found == positive) & (right == positive)).sum())
    total = int((found == positive).sum()) + int((right == positive).sum())
    return 2 * both / total if total else 0.0


@completed_by(accuracy)
def f1_by_label(
    predictions: npt.ArrayLike, labels: npt.ArrayLike, names: Sequence[str], *, ignored: int = -100
) -> dict[str, float]:
    """Return the F1 of each class, their mean, and the F1 over all rows, as scikit-learn's ``f1_score`` computes them.

    Predictions and labels are the numbers of the classes.

    Parameters
    ----------
    names : sequence of str
        The names of the classes by number.

    Returns
    -------
    dict of str to float
        ``f1_macro``, the mean over the classes that are predicted or right somewhere; ``f1_micro``, of the counts of
        all classes together, which is the accuracy where every row has one class; and for each class ``f1/NAME``, 0
        where it never occurs.

    Examples
    --------
    >>> from wordpiece_bert.finetune.metrics import f1_by_label
    >>> f1_by_label([1, 0, 1, 0], [1, 1, 0, 0], ["bad", "good"])
    {'f1_macro': 0.5, 'f1_micro': 0.5, 'f1/bad': 0.5, 'f1/good': 0.5}
    """
    found, right = equal_shapes(predictions, labels)
    names = checked_strings("names", names)
    right = check_labels("labels", as_classes("labels", right), right.shape, len(names), ignored)
    found = np.array(as_classes("predictions", found))
    found[right == ignored] = 0  # which does not count
    found, right = _counted(check_labels("predictions", found, found.shape, len(names)), right, ignored)
    both = [int(((found == number) & (right == number)).sum()) for number in range(len(names))]
    total = [int((found == number).sum()) + int((right == number).sum()) for number in range(len(names))]
    return _by_name("f1", names, both, total)


def _by_name(prefix: str, names: Sequence[str], both: Sequence[int], total: Sequence[int]) -> dict[str, float]:
    """Return F1 scores given how often each name is right, and how often it is predicted or should be."""
    scores = [2 * same / count if count else 0.0 for same, count in zip(both, total, strict=True)]
    occurring = [score for score, count in zip(scores, total, strict=True) if count]
    return {
        f"{prefix}_macro": sum(occurring) / len(occurring) if occurring else 0.0,
        f"{prefix}_micro": 2 * sum(both) / sum(total) if sum(total) else 0.0,
        **{f"{prefix}/{name}": score for name, score in zip(names, scores, strict=True)},
    }


def entity_f1(predictions: Sequence[Sequence[str]], labels: Sequence[Sequence[str]]) -> float:
    """Return the F1 of whole entities, as the CoNLL-2003 task counts them (Tjong Kim Sang and De Meulder 2003).

    An entity is right if its first and last token and its type are.

    Parameters
    ----------
    predictions, labels : sequence of sequence of str
        The tags of each text, in the scheme B-TYPE, I-TYPE, O; I-TYPE after another type begins an entity. A tag
        without B- or I-, such as X-RAY, is a type, and counts as I-.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    InputError
        The texts, or the tags of a text, differ in number, or a text has a str instead of a list of tags.

    Examples
    --------
    >>> from wordpiece_bert.finetune.metrics import entity_f1
    >>> entity_f1([["B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "B-LOC"]])
    0.6666666666666666
    """
    found, right = _entities_of(predictions, labels)
    return 2 * len(found & right) / (len(found) + len(right)) if found or right else 0.0


@completed_by(entity_f1)
def entity_f1_by_type(predictions: Sequence[Sequence[str]], labels: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return the F1 of whole entities for each type, their mean, and over all entities, which is `entity_f1`.

    Returns
    -------
    dict of str to float
        ``entity_f1_macro``, ``entity_f1_micro``, and ``entity_f1/TYPE`` for each type, in alphabetical order.

    Examples
    --------
    >>> from wordpiece_bert.finetune.metrics import entity_f1_by_type
    >>> found = entity_f1_by_type([["B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "B-LOC"]])
    >>> for name, value in found.items():
    ...     print(name, round(value, 2))
    entity_f1_macro 0.5
    entity_f1_micro 0.67
    entity_f1/LOC 0.0
    entity_f1/PER 1.0
    """
    found, right = _entities_of(predictions, labels)
    types = sorted({entity[-1] for entity in found | right})
    both = [sum(entity[-1] == kind for entity in found & right) for kind in types]
    total = [sum(entity[-1] == kind for side in (found, right) for entity in side) for kind in types]
    return _by_name("entity_f1", types, both, total)


def _entities_of(*tagged: Sequence[Sequence[str]]) -> list[set[tuple[int, int, int, str]]]:
    """Return the entities of predictions and of labels, each with its text."""
    rows = [
        [checked_strings(f"{name}[{i}]", row) for i, row in enumerate(texts)]
        for name, texts in zip(("predictions", "labels"), tagged, strict=True)
    ]
    if len({tuple(map(len, texts)) for texts in rows}) > 1:
        raise InputError("predictions and labels have different numbers of tags")
    return [{(i, *entity) for i, row in enumerate(texts) for entity in _entities(row)} for texts in rows]


def _entities(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return first token, token after the last, and type of each entity."""
    entities, start, kind = [], 0, ""
    for i, tag in enumerate([*tags, OUTSIDE]):
        begins, name = tag_of(tag)
        if kind and (begins or name != kind):
            entities.append((start, i, kind))
            kind = ""
        if name and not kind:
            start, kind = i, name
    return entities


def exact_match(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> float:
    """Return the share of questions whose prediction is one of the accepted answers, as SQuAD counts it.

    Case, punctuation, articles and spaces do not count (Rajpurkar et al. 2016, ``evaluate-v1.1.py``). A question
    without an answer needs the prediction "" (SQuAD 2.0).

    Parameters
    ----------
    predictions : sequence of str
        One answer for each question.
    answers : sequence of sequence of str
        The accepted answers of each question; an empty list for none.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from wordpiece_bert.finetune.metrics import exact_match
    >>> exact_match(["The Louvre", "Rome"], [["Louvre"], ["Paris"]])
    0.5
    """
    return _mean_best(predictions, answers, lambda found, right: float(found == right))


@completed_by(exact_match)
def answer_f1(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> float:
    """Return the mean F1 of the words of predictions and accepted answers, the best of each question, as SQuAD does.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from wordpiece_bert.finetune.metrics import answer_f1
    >>> answer_f1(["in Paris"], [["Paris", "the city of Paris"]])
    0.6666666666666666
    """
    return _mean_best(predictions, answers, _word_f1)


def _mean_best(
    predictions: Sequence[str], answers: Sequence[Sequence[str]], score: Callable[[list[str], list[str]], float]
) -> float:
    predictions = checked_strings("predictions", predictions)
    if len(predictions) != len(answers) or not answers:
        raise InputError(f"there are {len(predictions)} predictions for {len(answers)} questions")
    total = 0.0
    for row, (prediction, given) in enumerate(zip(predictions, answers, strict=True)):
        accepted = checked_strings(f"answers[{row}]", given)
        right = [words for words in map(_words, accepted) if words] or [[]]
        total += max(score(_words(prediction), words) for words in right)
    return total / len(answers)


def _words(answer: str) -> list[str]:
    """Return the words that count: in lower case, without punctuation and articles."""
    return _ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split()


def _word_f1(found: list[str], right: list[str]) -> float:
    if not found or not right:
        return float(found == right)
    same = sum((Counter(found) & Counter(right)).values())
    return 2 * same / (len(found) + len(right))
