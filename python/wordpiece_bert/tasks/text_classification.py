"""`classify`: labels for texts and pairs of texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, overload

import numpy as np

from wordpiece_bert._internal.answers import Answers, Results
from wordpiece_bert._internal.checks import checked_choice, whole_number
from wordpiece_bert._internal.texts import one_or_many
from wordpiece_bert.bert.functional import Activation, sigmoid, softmax
from wordpiece_bert.bert.heads.kinds import SequenceClassification
from wordpiece_bert.errors import InputError
from wordpiece_bert.tasks.inference import encode, infer
from wordpiece_bert.tasks.loading import longest_row, with_head
from wordpiece_bert.tasks.results import Label

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wordpiece_bert.arrow import ArrowArray, ArrowStream
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.tasks.loading import Source

__all__ = ["classify"]

#: A text or a pair of texts.
OneText: TypeAlias = "str | tuple[str, str] | Mapping[str, str]"
FunctionName = Literal["sigmoid", "softmax", "none"]

_FUNCTIONS: dict[str, Activation] = {"sigmoid": sigmoid, "softmax": softmax, "none": lambda x: x}


@overload
def classify(  # type: ignore[overload-overlap]
    source: Source,
    texts: OneText,
    *,
    top_k: int | None = 1,
    function_to_apply: FunctionName | None = None,
    batch_size: int = 32,
) -> Answers[Label]: ...


@overload
def classify(
    source: Source,
    texts: Iterable[OneText] | ArrowArray | ArrowStream,
    *,
    top_k: int | None = 1,
    function_to_apply: FunctionName | None = None,
    batch_size: int = 32,
) -> list[Answers[Label]]: ...


def classify(
    source: Source,
    texts: OneText | Iterable[OneText] | ArrowArray | ArrowStream,
    *,
    top_k: int | None = 1,
    function_to_apply: FunctionName | None = None,
    batch_size: int = 32,
) -> Answers[Label] | list[Answers[Label]]:
    """Label texts or pairs of texts.

    Parameters
    ----------
    source
        A model for sequence classification, as `load` returns it, or its name or folder.
    texts
        A text, a pair (a tuple of two texts, or a dict with ``text`` and ``text_pair``), or a list of these.
    top_k
        How many labels to return for each text; None for all.
    function_to_apply
        The function from logits to scores: ``"softmax"``, ``"sigmoid"`` or ``"none"``. By default that of transformers:
        none for regression, sigmoid for a single label and for multi-label classification, else softmax.
    batch_size
        The most texts that go through the model at once.

    Returns
    -------
    Answers
        Dicts with ``label`` and ``score`` (a float), the highest score first; for a list of texts, a list of these. The
        attribute ``truncated`` is whether the text was truncated.

    Raises
    ------
    InputError
        The model has another head, or an argument is wrong.

    Warns
    -----
    TruncationWarning
        Texts were longer than the model accepts, and were truncated.
    """
    model, tokenizer = with_head(source, SequenceClassification, "classify")
    if top_k is not None:
        top_k = whole_number("top_k", top_k, 1, others="or None for all")
    batch_size = whole_number("batch_size", batch_size, 1)
    if function_to_apply is not None:
        checked_choice("function_to_apply", function_to_apply, tuple(_FUNCTIONS), "None, ")
    single, items = one_or_many(texts, str, tuple, Mapping)
    encodings = encode(tokenizer, [_pair(item) for item in items], longest_row(model, tokenizer))
    function = _FUNCTIONS[function_to_apply or _default_function(model.config)]
    result: Results[Answers[Label]] = Results()
    for logits, encoding in zip(infer(model, encodings, batch_size), encodings, strict=True):
        scores = function(logits)  # [labels]
        best = np.argsort(-scores, kind="stable")[:top_k]
        labels = [Label(label=model.config.label(int(i)), score=float(scores[i])) for i in best]
        result.append(Answers(labels, truncated=encoding.truncated))
    return result[0] if single else result


def _default_function(config: BertConfig) -> str:
    if config.problem_type == "regression":
        return "none"
    if config.problem_type == "multi_label_classification" or config.num_labels == 1:
        return "sigmoid"
    return "softmax"


def _pair(item: object) -> object:
    """{"text": a, "text_pair": b} -> (a, b); anything else is left to the tokenizer, which checks it."""
    if not isinstance(item, Mapping):
        return item
    if "text" not in item or not set(item) <= {"text", "text_pair"}:
        message = f"a text as a dict has the keys text and text_pair, not {sorted(map(str, item))}"
        raise InputError(message)
    return item["text"] if item.get("text_pair") is None else (item["text"], item["text_pair"])
