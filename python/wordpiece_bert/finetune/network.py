"""A model as training sees it: its class, its configuration, and the names of its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordpiece_bert._internal.checks import finite_number
from wordpiece_bert.bert.checkpoint import bert_shapes
from wordpiece_bert.bert.checkpoint.names import POOLER
from wordpiece_bert.bert.families import Training, family_of, trainable
from wordpiece_bert.bert.heads.base import HeadModel
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.parts import name_in_checkpoint, prefix_of
from wordpiece_bert.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wordpiece_bert.bert.base import Model
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array

__all__ = ["Gradients", "Network", "Parameters", "affine", "dropout_rate"]

#: Arrays by the names of a checkpoint, those of `Model.named_parameters`.
Parameters = dict[str, "Array"]


class Network:
    """What training knows of a model besides the numbers of its parameters.

    Parameters
    ----------
    model : Model
        A model of a family that can be trained, with or without a head.

    Raises
    ------
    ConfigError
        The model's backward pass is not here.
    InputError
        It is no model of this package.

    Attributes
    ----------
    model_class : type of Model
        A class with a head, or `BertModel` or a variant of it.
    config : BertConfig
        Its sizes and settings.
    training : Training
        Where it has dropout.
    """

    def __init__(self, model: Model) -> None:
        self.model_class = type(model)
        self.config: BertConfig = model.config
        if isinstance(model, HeadModel):
            base, prefix = type(model.base_model), prefix_of(type(model.base_model))
        elif isinstance(model, BertModel):
            base, prefix = type(model), ""
        else:
            raise InputError(f"a model of this package is needed, not {type(model).__name__}")
        training = family_of(self.config).training
        if training is None:
            raise ConfigError(
                f"{type(model).__name__} cannot be trained here; models that can: {', '.join(trainable())}"
            )
        self.training: Training = training
        names = [*bert_shapes(self.config), *POOLER]
        self._names = {name: prefix + name_in_checkpoint(base, name, self.config) for name in names}

    def name(self, name: str) -> str:
        """Return the name in this model's checkpoint for one of BERT's names, without prefix."""
        return self._names[name]

    def layer(self, name: str) -> str:
        """Return the name of one of BERT's dense layers or norms in this model's checkpoint, without ``.weight``."""
        return self._names[f"{name}.weight"].removesuffix(".weight")

    def lowest_trained(self, frozen: Collection[str]) -> int | None:
        """Return the lowest layer that needs a backward pass: None for the embeddings, the number of layers for none.

        Parameters
        ----------
        frozen
            The names of parameters that are not trained, in this model's checkpoint.
        """
        trained = {name for name, own in self._names.items() if own not in frozen}
        if any(name.startswith("embeddings.") for name in trained):
            return None
        if "encoder.relative_attention_bias.weight" in trained:  # read by all layers
            return 0
        layers = self.config.encoder_layers
        # Layers that share their weights have the same names in the checkpoint, so the lowest of them is found.
        return next((i for i in range(layers) if any(n.startswith(f"encoder.layer.{i}.") for n in trained)), layers)

    def parameters(self, model: Model) -> Parameters:
        """Return the parameters as float32 arrays, read-only views where the model has them so."""
        return dict(model.named_parameters())


class Gradients(dict[str, "Array"]):
    """Gradients by parameter, which add up where a parameter is used more than once."""

    def add(self, name: str, gradient: Array) -> None:
        """Add the gradient of one use of a parameter."""
        if name in self:
            self[name] = self[name] + gradient
        else:
            self[name] = gradient

    def add_affine(self, name: str, weight: Array, bias: Array) -> None:
        """Add the gradients of a dense layer's or a norm's weight and bias."""
        self.add(f"{name}.weight", weight)
        self.add(f"{name}.bias", bias)


def dropout_rate(config: BertConfig, *names: str) -> float:
    """Return a dropout rate of the configuration, checked: the first of these fields that is not None.

    Raises
    ------
    ConfigError
        It is not a number from 0 to below 1.
    """
    name = next((name for name in names if getattr(config, name) is not None), names[-1])
    value = getattr(config, name)
    try:
        return finite_number(name, value, least=0, below=1)
    except InputError as error:
        raise ConfigError(f"{error}; it is the configuration's dropout rate") from None


def affine(parameters: Mapping[str, Array], name: str) -> tuple[Array, Array]:
    """Return weight and bias of a dense layer or a norm."""
    return parameters[f"{name}.weight"], parameters[f"{name}.bias"]
