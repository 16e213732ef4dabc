"""`zero_shot`: labels that a model has not been trained for, by entailment (Yin et al. 2019).

A model for natural language inference reads a text and a sentence about it with the label, and says whether the first
entails the second. Scores are as from the zero-shot-classification pipeline of transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack, overload

import numpy as np

from wordpiece_bert._internal.answers import Answer, Results
from wordpiece_bert._internal.checks import iterates, whole_number
from wordpiece_bert._internal.safe_json import quoted
from wordpiece_bert._internal.texts import check_texts, warn_truncated
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.bert.heads.kinds import SequenceClassification
from wordpiece_bert.errors import CheckpointWarning, InputError
from wordpiece_bert.tasks.inference import infer
from wordpiece_bert.tasks.task_loading import longest_row, with_head
from wordpiece_bert.tokenizer.subword import model_encodings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tasks.task_loading import Source
    from wordpiece_bert.tokenizer.arrow_table import ArrowArray, ArrowStream
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer

_TEMPLATE = "This example is {}."


class _Options(TypedDict, total=False):
    """The options of `zero_shot` in its overloads."""

    hypothesis_template: str
    multi_label: bool
    batch_size: int


@overload
def zero_shot(  # type: ignore[overload-overlap]
    source: Source, texts: str, candidate_labels: str | Sequence[str], **options: Unpack[_Options]
) -> Answer: ...


@overload
def zero_shot(
    source: Source,
    texts: Iterable[str] | ArrowArray | ArrowStream,
    candidate_labels: str | Sequence[str],
    **options: Unpack[_Options],
) -> list[Answer]: ...


def zero_shot(
    source: Source,
    texts: str | Iterable[str] | ArrowArray | ArrowStream,
    candidate_labels: str | Sequence[str],
    *,
    hypothesis_template: str = _TEMPLATE,
    multi_label: bool = False,
    batch_size: int = 32,
) -> Answer | list[Answer]:
    """Label texts with any labels, by a model for natural language inference.

    Each text goes through the model with each label.

    Parameters
    ----------
    source
        A model for sequence classification, as `load` returns it, or its name or folder. One of its labels begins with
        "entail", in small letters or capitals: the first such in ``label2id`` of config.json, or without it by number.
        Otherwise the last label is taken for it, with a warning.
    texts
        A text, or a list of texts. Those that are too long are truncated.
    candidate_labels
        The labels; or one string with commas between them.
    hypothesis_template
        The sentence with the label, which stands for ``{}``.
    multi_label
        Whether each label is judged by itself, so that several may apply; else the scores of a text add up to 1.
    batch_size
        The most pairs of text and label that go through the model at once.

    Returns
    -------
    Answer
        A dict with ``sequence`` (the text), ``labels`` and ``scores``, the highest score first; for a list of texts, a
        list of these. The attribute ``truncated`` is whether the text was truncated.

    Raises
    ------
    InputError
        There are no labels, the template has no ``{}``, the model has another head or a single label, its ``label2id``
        has a wrong number for entailment, or a label with the template leaves no room for a text.

    Warns
    -----
    CheckpointWarning
        No label of the model begins with "entail".
    TruncationWarning
        Texts were longer than the model accepts, and were truncated.
    """
    model, tokenizer = with_head(source, SequenceClassification, "zero_shot")
    batch_size = whole_number("batch_size", batch_size, 1)
    labels = _labels(candidate_labels)
    hypotheses = [_hypothesis(hypothesis_template, label) for label in labels]
    entailment = _entailment(model.config)
    single, items = check_texts(texts)
    rows = _encode(tokenizer, items, labels, hypotheses, longest_row(model, tokenizer))
    logits = np.array(infer(model, rows.encodings, batch_size), np.float32)
    shape = (len(items), len(labels), model.config.num_labels)
    scores = _scores(logits.reshape(shape), entailment, multi_label=multi_label)
    result: Results[Answer] = Results()
    for text, row, truncated in zip(items, scores, rows.truncated, strict=True):
        order = np.argsort(-row, kind="stable")
        found = {"sequence": text, "labels": [labels[i] for i in order], "scores": [float(row[i]) for i in order]}
        result.append(Answer(found, truncated=bool(truncated)))
    return result[0] if single else result


def _scores(logits: Array, entailment: int, *, multi_label: bool) -> Array:
    """Return the scores of all labels, from logits [texts, labels, classes] -> [texts, labels]."""
    if multi_label or logits.shape[1] == 1:
        contradiction = -1 if entailment == 0 else 0
        return softmax(logits[..., [contradiction, entailment]])[..., 1]
    return softmax(logits[..., entailment])


def _labels(candidate_labels: object) -> list[str]:
    """Return the labels, of which there is at least one."""
    if isinstance(candidate_labels, str):
        labels = [label.strip() for label in candidate_labels.split(",") if label.strip()]
    elif isinstance(candidate_labels, bytes | Mapping) or not iterates(candidate_labels):
        raise InputError(
            f"candidate_labels must be a list of str, or a str with commas between labels, not {candidate_labels!r}"
        )
    else:
        labels = list(candidate_labels)
    for index, label in enumerate(labels):
        if not isinstance(label, str):
            raise InputError(f"candidate_labels[{index}] must be a str, not {type(label).__name__}: {label!r}")
    if not labels:
        raise InputError(f"candidate_labels is {candidate_labels!r}: pass at least one label")
    return labels


def _hypothesis(template: object, label: str) -> str:
    """Return the sentence with a label."""
    if not isinstance(template, str):
        raise InputError(f"hypothesis_template must be a str, not {type(template).__name__}: {template!r}")
    try:
        # Two labels that no template has: the sentence depends on the label where the template has a place for it.
        has_place = template.format("\0") != template.format("\1")
        sentence = template.format(label)
    except (LookupError, ValueError, AttributeError, TypeError) as cause:
        raise InputError(f"hypothesis_template is {template!r}: it must have one {{}}, for the label") from cause
    if not has_place:
        raise InputError(f"hypothesis_template is {template!r}: it must have {{}}, the place of the label")
    return sentence


def _entailment(config: BertConfig) -> int:
    """Return which of the model's labels means entailment; −1, the last, if none is called so."""
    if config.num_labels < 2:
        raise InputError("zero_shot needs a model with a label for entailment and another, not one with a single label")
    ids = config.label2id or {name: index for index, name in sorted(config.id2label.items())}
    for name, index in ids.items():
        if name.lower().startswith("entail"):
            if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < config.num_labels:
                raise InputError(
                    f"label2id of the model has {quoted(index)} for {quoted(name)}: it must be an integer from 0 to "
                    f"{config.num_labels - 1}"
                )
            return index
    names = ", ".join(map(repr, config.id2label.values()))
    warn(f"no label of the model begins with 'entail' ({names}): the last one is taken for it", CheckpointWarning)
    return -1


class _Rows(NamedTuple):
    """The pairs of each text with each label, text by text, and which texts were truncated."""

    encodings: Sequence[AnyEncoding]
    truncated: list[bool]


def _encode(tokenizer: AnyTokenizer, texts: list[str], labels: list[str], hypotheses: list[str], limit: int) -> _Rows:
    """Tokenize the pairs; of those that are too long the text is truncated."""
    own: Any = tokenizer.encodings(hypotheses, add_special_tokens=False, truncation=False, padding=False)
    special = tokenizer.num_special_tokens_to_add(pair=True)
    for label, hypothesis in zip(labels, own, strict=True):
        if len(hypothesis) + special >= limit:
            raise InputError(
                f"the label {label!r} with hypothesis_template has {len(hypothesis)} tokens: of the {limit} of a row, "
                "none is left for a text"
            )
    pairs = [(text, hypothesis) for text in texts for hypothesis in hypotheses]
    encodings = model_encodings(
        tokenizer, tokenizer.encodings(pairs, truncation="only_first", max_length=limit, padding=False)
    )
    of_pairs = np.array([encoding.truncated for encoding in encodings], np.bool_).reshape(len(texts), len(labels))
    cut = np.asarray(of_pairs.any(axis=1))
    warn_truncated(cut, limit, remedy="see .truncated of each result")
    return _Rows(encodings, cut.tolist())
