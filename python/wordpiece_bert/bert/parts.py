"""What models and their classes give to other modules of this package, besides `wordpiece_bert._internal.parts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from wordpiece_bert.bert.base_model import Model
    from wordpiece_bert.bert.checkpoint import Layout
    from wordpiece_bert.bert.checkpoint.fused import Place
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.model import BertModel


def layout_of(kind: type[Model], config: BertConfig) -> Layout:
    """Return the names and shapes of the weights in a checkpoint of a class of models."""
    return kind._layout(config)


def as_written(kind: type[Model], weights: Iterator[tuple[str, Any]], config: BertConfig) -> Iterator[tuple[str, Any]]:
    """Return the weights of a model, by name, in the order of rows that a checkpoint has."""
    return kind._as_written(weights, config)


def config_of(kind: type[Model], config: BertConfig, names: Iterable[str], source: str) -> BertConfig:
    """Return the configuration of a model, completed by what only the names of its tensors say."""
    return kind._config_of(config, names, source)


def fused_names(kind: type[Model]) -> Mapping[str, tuple[str, ...]]:
    """Return the parts of names of tensors that hold several weights of a model, and what these have instead."""
    return kind._fused


def place_of(kind: type[Model], name: str, config: BertConfig) -> Place:
    """Return where a checkpoint has a weight with one of a class's names: which tensor, and which of its rows."""
    return kind._place(name, config)


def prefix_of(kind: type[BertModel]) -> str:
    """Return what the names of an encoder's weights begin with in a checkpoint of a model with a head."""
    return kind._prefix


def name_in_checkpoint(kind: type[BertModel], name: str, config: BertConfig) -> str:
    """Return the name in a checkpoint of an encoder, without the prefix, for one of BERT's names."""
    return kind._name_in_checkpoint(name, config)


def renamed_weights(
    kind: type[Model], weights: Mapping[str, Any], config: BertConfig, source: str
) -> Mapping[str, Any]:
    """Return the tensors of a file under the names that a class of models reads."""
    return kind._renamed(weights, config, source)


def weights_of(model: Model) -> Mapping[str, Any]:
    """Return the weights that a model computes with, by name in a checkpoint: arrays, or as the engine has them."""
    return model._weights
