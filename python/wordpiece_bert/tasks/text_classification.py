"""`classify`: labels for texts and pairs of texts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack, overload

import numpy as np

from wordpiece_bert._internal.answers import Answers, Results
from wordpiece_bert._internal.checks import checked_choice, whole_number
from wordpiece_bert._internal.texts import one_or_many, warn_truncated
from wordpiece_bert.bert.functional import Activation, sigmoid, softmax
from wordpiece_bert.bert.heads.kinds import SequenceClassification
from wordpiece_bert.errors import InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.tasks.inference import encode, finite, infer
from wordpiece_bert.tasks.results import Label
from wordpiece_bert.tasks.task_loading import frozen_classifier, longest_row, static_classifier, with_head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.finetune.frozen_classifier import FrozenClassifier
    from wordpiece_bert.sentence.dense.static_classifier import StaticClassifier
    from wordpiece_bert.tasks.task_loading import Source
    from wordpiece_bert.tokenizer.arrow_table import ArrowArray, ArrowStream

#: A text or a pair of texts.
OneText: TypeAlias = "str | tuple[str, str] | Mapping[str, str]"
FunctionName = Literal["sigmoid", "softmax", "none"]

#: The functions from logits to scores by name.
FUNCTIONS: dict[str, Activation] = {"sigmoid": sigmoid, "softmax": softmax, "none": lambda x: x}


class _Options(TypedDict, total=False):
    """The options of `classify` in its overloads."""

    top_k: int | None
    function_to_apply: FunctionName | None
    batch_size: int


@overload
def classify(  # type: ignore[overload-overlap]
    source: Source | FrozenClassifier | StaticClassifier, texts: OneText, **options: Unpack[_Options]
) -> Answers[Label]: ...


@overload
def classify(
    source: Source | FrozenClassifier | StaticClassifier,
    texts: Iterable[OneText] | ArrowArray | ArrowStream,
    **options: Unpack[_Options],
) -> list[Answers[Label]]: ...


def classify(
    source: Source | FrozenClassifier | StaticClassifier,
    texts: OneText | Iterable[OneText] | ArrowArray | ArrowStream,
    *,
    top_k: int | None = 1,
    function_to_apply: FunctionName | None = None,
    batch_size: int = 32,
) -> Answers[Label] | list[Answers[Label]]:
    """Label texts or pairs of texts.

    Parameters
    ----------
    source : Loaded, FrozenClassifier, StaticClassifier, str or PathLike
        A model for sequence classification, as `load` returns it, or its name or folder; or a `FrozenClassifier`, or
        the folder in which one was saved; or a static model with a head of model2vec, or its folder.
    texts : str, pair of str, iterable of these or Arrow column
        A text, a pair (a tuple of two texts, or a dict with ``text`` and ``text_pair``), or a list of these.
    top_k : int, default 1
        How many labels to return for each text; None for all.
    function_to_apply : {"sigmoid", "softmax", "none"}, optional
        The function from logits to scores: ``"softmax"``, ``"sigmoid"`` or ``"none"``. By default as in transformers:
        none for regression, sigmoid for a single label and for multi-label classification, else softmax.
    batch_size : int, default 32
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

    Examples
    --------
    >>> from wordpiece_bert.tasks import classify
    >>> classify("models/reviews", "A wonderful film!")[0]["label"]
    'positive'
    """
    if isinstance(source, str | os.PathLike):
        source = find_model(source)  # once, also where its contents are looked at several times
    frozen = frozen_classifier(source)
    static = static_classifier(source) if frozen is None else None
    if frozen is None and static is None:
        model, tokenizer = with_head(source, SequenceClassification, "classify")
    if top_k is not None:
        top_k = whole_number("top_k", top_k, 1, others="or None for all")
    batch_size = whole_number("batch_size", batch_size, 1)
    if function_to_apply is not None:
        checked_choice("function_to_apply", function_to_apply, tuple(FUNCTIONS), "None, ")
    single, items = one_or_many(texts, str, tuple, Mapping)
    if frozen is not None:
        found = _by_vectors(frozen, items, batch_size)
    elif static is not None:
        found = _by_static(static, items)
    else:
        encodings = encode(tokenizer, [_pair(item) for item in items], longest_row(model, tokenizer))
        cut = [encoding.truncated for encoding in encodings]
        found = _Found(infer(model, encodings, batch_size), cut, model.config.label, default_function(model.config))
    function = FUNCTIONS[function_to_apply or found.function]
    result: Results[Answers[Label]] = Results()
    for logits, truncated in zip(found.logits, found.truncated, strict=True):
        scores = function(logits)  # [labels]
        best = np.argsort(-scores, kind="stable")[:top_k]
        labels = [Label(label=found.label(int(i)), score=float(scores[i])) for i in best]
        result.append(Answers(labels, truncated=bool(truncated)))
    return result[0] if single else result


class _Found(NamedTuple):
    """Logits of texts, and what they mean."""

    logits: Sequence[Array]  # [labels] for each text
    truncated: Sequence[bool]
    label: Callable[[int], str]
    function: str  # a key of `FUNCTIONS`


def _by_vectors(classifier: FrozenClassifier, items: list[Any], batch_size: int) -> _Found:
    """Return the logits of a head on frozen vectors."""
    from wordpiece_bert.finetune.parts import frozen_scores

    scores, cut = frozen_scores(classifier, items, batch_size) if items else (np.zeros((0, 1)), np.zeros(0, np.bool_))
    warn_truncated(cut, classifier.encoder.max_seq_length, remedy="see .truncated of each result")
    function = "none" if classifier.is_regression else "softmax"
    return _Found(list(finite(scores.astype(np.float32))), cut.tolist(), classifier.labels.__getitem__, function)


def _by_static(classifier: StaticClassifier, items: list[Any]) -> _Found:
    """Return the outputs of the head of a static model, before its activation."""
    from wordpiece_bert.sentence.dense.parts import labels_of, outputs_of

    if (pair := next((item for item in items if not isinstance(item, str)), None)) is not None:
        raise InputError(f"a static model with a head takes texts, not pairs: pass a str instead of {pair!r:.80}")
    encoder = classifier.encoder
    vectors, cut = encoder.encode(items, return_truncated=True)
    warn_truncated(cut, encoder.max_seq_length, remedy="see .truncated of each result")
    function = "none" if classifier.activation == "identity" else classifier.activation
    return _Found(
        list(finite(outputs_of(classifier, vectors))), cut.tolist(), labels_of(classifier).__getitem__, function
    )


def default_function(config: BertConfig) -> str:
    """Return the name of the function from logits to scores that transformers applies for a configuration."""
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
        raise InputError(f"a text as a dict has the keys text and text_pair, not {sorted(map(str, item))}")
    return item["text"] if item.get("text_pair") is None else (item["text"], item["text_pair"])
