"""A model as training sees it: its class, its configuration, and the names of its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.checks import finite_number
from wordpiece_bert.bert.family_table import Training, family_of, trainable
from wordpiece_bert.bert.heads.head_model import HeadModel
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.parts import name_in_checkpoint, place_of, prefix_of
from wordpiece_bert.bert.plan.parts import Attention, weighted
from wordpiece_bert.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wordpiece_bert.bert.base_model import Model
    from wordpiece_bert.bert.checkpoint.fused import Place
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.bert.plan.parts import Plan

#: Arrays by the names of a checkpoint, as `Model.named_parameters` has them.
Parameters = dict[str, "Array"]


def refuse_int8(model: Model) -> None:
    """Refuse to train an int8 model: its weights would be rounded again, and no other library loads what is saved.

    Raises
    ------
    ConfigError
        The model computes with int8 weights.
    """
    if model.dtype == "int8":
        raise ConfigError(
            f"{type(model).__name__} from {model.source} has int8 weights, and cannot be trained: load it with "
            "dtype='float32', and the trained model with dtype='int8'"
        )


class Network:
    """What training knows of a model besides the numbers of its parameters.

    Parameters
    ----------
    model : Model
        A model of a family that can be trained, with or without a head.

    Raises
    ------
    ConfigError
        The model's backward pass is not here, or a rate of dropout is not from 0 to below 1.
    InputError
        It is not a model of this package.

    Attributes
    ----------
    model_class : type of Model
        A class with a head, or `BertModel` or a variant of it.
    config : BertConfig
        Its sizes and settings.
    training : Training
        Where its heads have dropout.
    plan : Plan
        Its layers.
    rates : dict of str to float
        The rates of dropout of its parts, by the names that these have for them.
    """

    def __init__(self, model: Model) -> None:
        self.model_class = type(model)
        if isinstance(model, HeadModel):
            base, prefix = type(model.base_model), prefix_of(type(model.base_model))
        elif isinstance(model, BertModel):
            base, prefix = type(model), ""
        else:
            raise InputError(f"a model of this package is needed, not {type(model).__name__}: {model!r:.80}")
        self.config: BertConfig = model.config
        training = family_of(self.config).training
        if training is None:
            raise ConfigError(
                f"{type(model).__name__} cannot be trained here; models that can: {', '.join(trainable())}"
            )
        self.training: Training = training
        self.plan: Plan = self.config.plan()
        self.rates = {name: dropout_rate(self.config, name) for name in sorted(self.plan.rates())}
        self._places = {
            name: place_of(base, prefix + name_in_checkpoint(base, name, self.config), self.config)
            for name in self.plan.shapes()
        }

    def __contains__(self, name: str) -> bool:
        """Return whether the encoder has a weight of this name, one of BERT's."""
        return name in self._places

    def place(self, name: str) -> Place:
        """Return the parameter that holds the weight with one of BERT's names, and which part of its rows."""
        return self._places[name]

    def name(self, name: str) -> str:
        """Return the name of the parameter that holds the weight with one of BERT's names."""
        return self._places[name].tensor

    def layer(self, name: str) -> str:
        """Return the name of one of BERT's dense layers or norms in this model's checkpoint, without ``.weight``."""
        return self.name(f"{name}.weight").removesuffix(".weight")

    def lowest_trained(self, frozen: Collection[str]) -> int | None:
        """Return the lowest layer that needs a backward pass: None for the embeddings, the number of layers for none.

        Parameters
        ----------
        frozen
            The names of parameters that are not trained, in this model's checkpoint.
        """
        trained = {name for name, place in self._places.items() if place.tensor not in frozen}

        def is_trained(part: object) -> bool:
            return any(name in trained for one in weighted(part) for name in one.shapes())

        if is_trained(self.plan.embeddings):
            return None
        # What several layers read, such as a table of relative positions, is of the lowest of them.
        layers = self.plan.layers
        return next((index for index, layer in enumerate(layers) if is_trained(layer)), len(layers))

    def computed(self, mask: Mask, read: Mask) -> Mask:
        """Return the masked positions that must be computed so that those which a head reads are, booleans [B, S].

        Where a masked query sees all keys, its row is computed as a whole.

        Parameters
        ----------
        mask
            The attention mask, booleans [B, S].
        read
            The positions that the head reads, booleans [B, S].
        """
        if not any(isinstance(part.body, Attention) and part.body.masked_sees_all for _, part in self.plan.bodies()):
            return read
        return np.broadcast_to((read & ~mask).any(axis=1, keepdims=True), mask.shape)

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

    def add_part(self, place: Place, gradient: Array) -> None:
        """Add the gradient of one use of a part of a parameter."""
        if place.parts == 1:
            self.add(place.tensor, gradient)
            return
        if place.tensor not in self:
            self[place.tensor] = np.zeros((place.parts * len(gradient), *gradient.shape[1:]), gradient.dtype)
        whole = self[place.tensor]
        whole[place.rows(len(whole))] += gradient

    def add_affine(self, name: str, weight: Array, bias: Array | None) -> None:
        """Add the gradients of a dense layer's or a norm's weight and bias, None where there is none."""
        self.add(f"{name}.weight", weight)
        if bias is not None:
            self.add(f"{name}.bias", bias)


def dropout_rate(config: BertConfig, *names: str) -> float:
    """Return a dropout rate of the configuration, checked: the first of these fields that is not None; without any, 0.

    Raises
    ------
    ConfigError
        It is not a number from 0 to below 1.
    """
    if not names:
        return 0.0
    name = next((name for name in names if getattr(config, name) is not None), names[-1])
    value = getattr(config, name)
    try:
        return finite_number(name, value, least=0, below=1)
    except InputError as error:
        raise ConfigError(f"{error}; it is the configuration's dropout rate") from None


def affine(parameters: Mapping[str, Array], name: str) -> tuple[Array, Array | None]:
    """Return weight and bias of a dense layer or a norm; None for a bias that it does not have."""
    return parameters[f"{name}.weight"], parameters.get(f"{name}.bias")
