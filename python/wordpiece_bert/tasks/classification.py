"""Labels for texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wordpiece_bert.bert.functional import Activation, Array, sigmoid, softmax
from wordpiece_bert.bert.heads.tasks import SequenceClassification
from wordpiece_bert.errors import InputError
from wordpiece_bert.model_inputs import batches
from wordpiece_bert.results import Answers
from wordpiece_bert.tasks.common import encode, longest, one_or_many, with_head

if TYPE_CHECKING:
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.tasks.common import Source

__all__ = ["classify"]

Function = Literal["sigmoid", "softmax", "none"]

_FUNCTIONS: dict[str, Activation] = {"sigmoid": sigmoid, "softmax": softmax, "none": lambda x: x}


def classify(
    source: Source,
    texts: Any,  # noqa: ANN401
    *,
    top_k: int | None = 1,
    function_to_apply: Function | None = None,
    batch_size: int = 32,
) -> Any:  # noqa: ANN401
    """Label texts or pairs.

    Parameters
    ----------
    source
        What `load` gives for a model that classifies sequences, or its name or folder.
    texts
        A text, a pair (a tuple of two texts, or a dict with ``text`` and ``text_pair``), or a list of these.
    top_k
        How many labels to give, the best first; None for all.
    function_to_apply
        What makes scores of the logits: ``"softmax"``, ``"sigmoid"`` or ``"none"``. By default none for regression,
        sigmoid for one label or where any number of labels may hold, softmax else, as in transformers.
    batch_size
        How many texts go through the model at once.

    Returns
    -------
    Answers
        Dicts with ``label`` and ``score`` (a float), the best first; a list of such lists for a list of texts. Its
        ``truncated`` tells whether the text was cut.

    Raises
    ------
    InputError
        The model has another head, or an argument is wrong.

    Warns
    -----
    TruncationWarning
        Texts were cut at the longest row of the model.
    """
    model, tokenizer = with_head(source, SequenceClassification, "classify")
    if top_k is not None and (type(top_k) is not int or top_k < 1):
        message = f"top_k must be an integer, 1 or more, or None for all, not {top_k!r}"
        raise InputError(message)
    if function_to_apply is not None and function_to_apply not in _FUNCTIONS:
        message = f"function_to_apply must be one of {', '.join(_FUNCTIONS)}, or None, not {function_to_apply!r}"
        raise InputError(message)
    single, items = one_or_many(texts, str, tuple, Mapping)
    encodings = encode(tokenizer, [_pair(item) for item in items], longest(model, tokenizer))
    function = _FUNCTIONS[function_to_apply or _default_function(model.config)]
    answers: dict[int, Answers] = {}
    for rows, inputs in batches(encodings, batch_size):
        scores: Array = function(model.logits(model.base_model(**inputs, visible_only=True)))  # [B, labels]
        for row, values in zip(rows, scores, strict=True):
            best = np.argsort(-values, kind="stable")[:top_k]
            found = [{"label": model.config.label(int(i)), "score": float(values[i])} for i in best]
            answers[row] = Answers(found, truncated=encodings[row].truncated)
    result = [answers[row] for row in range(len(items))]
    return result[0] if single else result


def _default_function(config: BertConfig) -> str:
    if config.problem_type == "regression":
        return "none"
    if config.problem_type == "multi_label_classification" or config.num_labels == 1:
        return "sigmoid"
    return "softmax"


def _pair(item: object) -> object:
    """{"text": a, "text_pair": b} -> (a, b); anything else is for the tokenizer to judge."""
    if not isinstance(item, Mapping):
        return item
    if "text" not in item or not set(item) <= {"text", "text_pair"}:
        message = f"a text as a dict has the keys text and text_pair, not {sorted(map(str, item))}"
        raise InputError(message)
    return item["text"] if item.get("text_pair") is None else (item["text"], item["text_pair"])
