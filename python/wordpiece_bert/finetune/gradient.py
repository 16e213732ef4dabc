"""The loss of a model and its gradient with respect to every parameter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert.bert.heads.kinds import MultipleChoice
from wordpiece_bert.bert.inputs import as_array, check_inputs
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.dropout import GivenDropout
from wordpiece_bert.finetune.engines import NumpyTraining, TrainingEngine, engine_of
from wordpiece_bert.finetune.head_kinds import head_of
from wordpiece_bert.finetune.heads import Head, HeadInputs
from wordpiece_bert.finetune.network import Gradients, Network, Parameters
from wordpiece_bert.finetune.passes import PassOptions
from wordpiece_bert.finetune.tokens import lay_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.base_model import Model
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.finetune.tokens import Tokens

#: The inputs of a model's call, in its order.
_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids", "inputs_embeds", "task_type_ids")


@dataclass(frozen=True, eq=False)
class ValueAndGrad:
    """A loss and its gradients.

    Attributes
    ----------
    loss : float
        The mean loss of the batch.
    gradients : dict of str to array
        The gradient of each parameter that the loss depends on, by the names of `Model.named_parameters`, float32.
    inputs_embeds : array
        The gradient with respect to the word vectors, whether they came from the word table or from the caller,
        float32 [B, S, E], for multiple choice [B, choices, S, E]; 0 at positions that were not computed.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertForSequenceClassification
    >>> from wordpiece_bert.finetune import value_and_grad
    >>> model = BertForSequenceClassification.from_pretrained("models/reviews")
    >>> found = value_and_grad(model, [[2, 7, 3]], labels=[0])
    >>> found.gradients["classifier.bias"].shape, found.inputs_embeds.shape
    ((2,), (1, 3, 67))
    """

    loss: float
    gradients: dict[str, Array] = field(repr=False)
    inputs_embeds: Array = field(repr=False)


def value_and_grad(
    model: Model,
    input_ids: npt.ArrayLike | None = None,
    attention_mask: npt.ArrayLike | None = None,
    token_type_ids: npt.ArrayLike | None = None,
    position_ids: npt.ArrayLike | None = None,
    inputs_embeds: npt.ArrayLike | None = None,
    labels: npt.ArrayLike | None = None,
    *,
    task_type_ids: npt.ArrayLike | None = None,
    next_sentence_label: npt.ArrayLike | None = None,
    start_positions: npt.ArrayLike | None = None,
    end_positions: npt.ArrayLike | None = None,
    dropout_masks: Mapping[str, npt.ArrayLike] | None = None,
    gradient_checkpointing: bool = False,
) -> ValueAndGrad:
    """Compute the loss of a model with a head, and its gradient.

    Parameters
    ----------
    model : Model
        A model with a head, of BERT or one of its variants. It is not changed.
    input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds : array_like, optional
        The inputs of the model's call.
    labels : array_like, optional
        The labels as the model's class documents them.
    task_type_ids : array_like, optional
        The tasks of the tokens, for ERNIE; a model without a table of tasks ignores them.
    next_sentence_label : array_like, optional
        The second labels of `BertForPreTraining`.
    start_positions, end_positions : array_like, optional
        The labels of a model for question answering.
    dropout_masks : mapping of str to array_like, optional
        Masks of dropout by site, 1 where a number is kept: ``"embeddings"``, ``"layer.0.attention.output"``,
        ``"layer.0.output"`` [B, S, H], ``"layer.0.attention_probs"`` [B, N, S, S], ``"head"`` and ``"head2"`` [B, H],
        or [B, S, H] for heads that read every token. The rates are the configuration's. A site without a mask
        has no dropout.
    gradient_checkpointing : bool, default False
        Keep only the input of each layer, and compute the rest again: less memory, a third more time, the same numbers.

    Returns
    -------
    ValueAndGrad
        The loss, which equals the loss of the model's call without dropout, and the gradients.

    Raises
    ------
    InputError
        The model has no head, labels are missing, out of range or all ignored, or an input is wrong.
    ConfigError
        A dropout rate of the configuration is not from 0 to below 1.

    Examples
    --------
    The loss is the same as from the model's call; a small step against the gradient makes it smaller:

    >>> from wordpiece_bert.bert import BertForSequenceClassification
    >>> from wordpiece_bert.finetune import value_and_grad
    >>> model = BertForSequenceClassification.from_pretrained("models/reviews")
    >>> found = value_and_grad(model, [[2, 7, 3]], labels=[0])
    >>> moved = {
    ...     name: array - 0.01 * found.gradients[name]
    ...     for name, array in model.named_parameters()
    ... }
    >>> value_and_grad(
    ...     type(model)(model.config, moved), [[2, 7, 3]], labels=[0]
    ... ).loss < found.loss
    True
    """
    network = Network(model)
    batch: dict[str, Any] = {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "token_type_ids": token_type_ids,
        "position_ids": position_ids,
        "inputs_embeds": inputs_embeds,
        "task_type_ids": task_type_ids,
        "labels": labels,
        "next_sentence_label": next_sentence_label,
        "start_positions": start_positions,
        "end_positions": end_positions,
    }
    dropout = None if dropout_masks is None else GivenDropout(dropout_masks)
    found = compute(
        network,
        network.parameters(model),
        {name: value for name, value in batch.items() if value is not None},
        PassOptions(dropout, gradient_checkpointing),
        engine=engine_of(model.backend),
    )
    assert found.de is not None, "the embeddings are trained"
    vectors = found.tokens.padded(found.de)  # [B, S, E]
    if issubclass(network.model_class, MultipleChoice):
        vectors = vectors.reshape(len(as_array("labels", batch["labels"])), -1, *vectors.shape[1:])
    return ValueAndGrad(found.loss, found.gradients, vectors)


class Computed(NamedTuple):
    """The loss of a batch and its gradients."""

    loss: float
    gradients: dict[str, Array]  # by parameter
    de: Array | None  # [M, E] with respect to the word vectors; None if the embeddings are not trained
    tokens: Tokens


def compute(
    network: Network,
    parameters: Parameters,
    batch: Mapping[str, npt.ArrayLike],
    options: PassOptions | None = None,
    *,
    engine: TrainingEngine | None = None,
    head: Head | None = None,
) -> Computed:
    """Compute loss and gradients of one batch, for the parameters given; the arguments of `value_and_grad` by name.

    Without `engine`, NumPy computes, in the type of the parameters; `RustTraining` needs float32. Without `head`, the
    model's class defines the loss.
    """
    engine = NumpyTraining() if engine is None else engine
    options = PassOptions() if options is None else options
    head = head_of(network.model_class, network) if head is None else head
    if missing := [name for name in head.label_names if name not in batch]:
        raise InputError(f"{network.model_class.__name__} needs {' and '.join(missing)} for its loss")
    if unknown := [name for name in batch if name not in (*_INPUTS, *head.label_names)]:
        raise InputError(
            f"{network.model_class.__name__} takes no {unknown[0]}; its labels are {', '.join(head.label_names)}"
        )
    flat = _flat(batch) if issubclass(network.model_class, MultipleChoice) else batch
    inputs = check_inputs(network.config, *(flat.get(name) for name in _INPUTS))
    if inputs.shape[0] == 0:
        raise InputError("the batch has no rows: the loss is not defined")
    mask = np.ones(inputs.shape, np.bool_) if inputs.mask is None else inputs.mask  # [B, S]
    labels = {name: batch[name] for name in head.label_names}
    tokens = lay_out(inputs, network.computed(mask, head.read(mask, labels)))
    encoder = engine.encode(network, parameters, tokens, options)
    gradient = Gradients()
    with np.errstate(under="ignore"):
        given = HeadInputs(encoder.x, tokens, labels, parameters, options.dropout, gradient, engine, options.weights)
        result = head.run(given)
    de = encoder.backward(result.dx, gradient)
    return Computed(result.loss, dict(gradient), de, tokens)


def _flat(batch: Mapping[str, npt.ArrayLike]) -> dict[str, npt.ArrayLike]:
    """Return the inputs [B, choices, ...] of multiple choice as [B · choices, ...]."""
    flat: dict[str, npt.ArrayLike] = {}
    for name, value in batch.items():
        array = as_array(name, value)
        if name in _INPUTS:
            if array.ndim != (4 if name == "inputs_embeds" else 3):
                raise InputError(f"{name} must have shape [batch, choices, length], not {list(array.shape)}")
            array = array.reshape(-1, *array.shape[2:])
        flat[name] = array
    return flat
