"""The model that a fine-tuning starts from: a pre-trained encoder with a head for the labels of the data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

from wordpiece_bert._internal.checks import checked_strings
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.checkpoint import find_weights, read_tensors
from wordpiece_bert.bert.checkpoint.names import draw_weights, present_names
from wordpiece_bert.bert.family_table import class_named, family_of, trainable
from wordpiece_bert.bert.parts import config_of, layout_of, renamed_weights
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.finetune.parameters import FITTING
from wordpiece_bert.hub import find_model

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from wordpiece_bert.bert.heads.head_model import HeadModel

ProblemType = Literal["regression", "single_label_classification", "multi_label_classification"]


@completed_by(FITTING)
def model_for(
    name: str | os.PathLike[str],
    kind: Literal[
        "SequenceClassification",
        "TokenClassification",
        "QuestionAnswering",
        "MultipleChoice",
        "MaskedLM",
        "PreTraining",
    ],
    *,
    labels: Sequence[str] | None = None,
    problem_type: ProblemType | None = None,
    seed: int = 42,
    download: bool = False,
    backend: str = "rust",
) -> HeadModel:
    """Load a pre-trained encoder with a head.

    The head of the folder is kept if it has the same labels; otherwise its weights are drawn, N(0, initializer_range²)
    with biases 0. So is a pooler that the head reads and the folder does not have.

    Parameters
    ----------
    kind : str
        The head: ``"SequenceClassification"``, ``"TokenClassification"``, ``"QuestionAnswering"``,
        ``"MultipleChoice"``, ``"MaskedLM"`` or ``"PreTraining"``.
    labels : sequence of str, optional
        The names of the labels; None for the configuration's.
    problem_type : str, optional
        The loss of a head for sequences.

    Returns
    -------
    Model
        The model with its head.

    Raises
    ------
    ConfigError
        Models of this type cannot be trained here, or have no such head.

    Examples
    --------
    >>> from wordpiece_bert.finetune import model_for
    >>> model = model_for(
    ...     "models/sentences", "SequenceClassification", labels=["bad", "good"]
    ... )
    >>> type(model).__name__, model.config.id2label
    ('BertForSequenceClassification', {0: 'bad', 1: 'good'})
    """
    folder = find_model(name, download=download)
    config = read_config(folder)
    family = family_of(config)
    if family.training is None:
        raise ConfigError(
            f"{folder}: a model of type {config.model_type!r} cannot be trained here, only {', '.join(trainable())}"
        )
    found = class_named(family.head_name(kind))
    if found is None:
        raise ConfigError(f"{folder}: there is no {family.head_name(kind)}")
    model_class = cast("type[HeadModel]", found)
    stored = read_tensors(find_weights(folder))
    own = config_of(model_class, config, stored, str(folder))
    # By the names of the layout, whichever the file has.
    tensors = present_names(renamed_weights(model_class, stored, own, str(folder)), str(folder))
    if labels is not None:
        own = replace(own, id2label=dict(enumerate(checked_strings("labels", labels))), label2id=None)
    if problem_type is not None:
        own = replace(own, problem_type=problem_type)
    layout = layout_of(model_class, own)
    fresh = layout.head.keys() - layout.tied.keys()
    if own.id2label != config.id2label or not fresh <= tensors.keys():
        tensors = {name: array for name, array in tensors.items() if name not in fresh}
        tensors |= draw_weights(sorted(fresh), layout, own, seed)
    # What was trained on masked words alone has no pooler.
    pooler = [
        name for name in layout.base if name.startswith("pooler.") and not {name, layout.prefix + name} & set(tensors)
    ]
    if pooler:
        prefix = layout.prefix if any(name.startswith(layout.prefix) for name in tensors) else ""
        drawn = draw_weights(sorted(pooler), layout._replace(head=layout.base), own, seed + 1)
        tensors |= {prefix + name: array for name, array in drawn.items()}
    expected = {layout.prefix + part for part in layout.base} | layout.base.keys() | layout.head.keys()
    used = {weight: array for weight, array in tensors.items() if weight in expected}
    return model_class(own, used or tensors, backend=backend, source=str(folder))
