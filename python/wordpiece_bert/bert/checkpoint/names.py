"""The names of a checkpoint's tensors -> the weights of a model.

Checkpoints of ten years differ in how they call the same tensor. `resolve` brings them to one set of names (those of
`bert_shapes`), and compares every shape with the configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from wordpiece_bert.errors import CheckpointError
from wordpiece_bert.untrusted import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array

__all__ = ["Resolved", "bert_shapes", "listed", "resolve"]

_PREFIX = "bert."
_DATA_PARALLEL_PREFIX = "module."

# Known and not needed by the base model: index buffers that old versions saved, and the pre-training heads.
_BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
_HEADS = "cls."

_POOLER = ("pooler.dense.weight", "pooler.dense.bias")

#: How many names a message lists.
_LISTED = 8


class Resolved(NamedTuple):
    """The weights of a model, and what was in the file beside them."""

    weights: dict[str, Array]
    unused: tuple[str, ...]


def bert_shapes(config: BertConfig) -> dict[str, tuple[str, ...]]:
    """Return the names of a base model's weights, each with the configuration fields that are its dimensions."""
    shapes: dict[str, tuple[str, ...]] = {
        "embeddings.word_embeddings.weight": ("vocab_size", "hidden_size"),
        "embeddings.position_embeddings.weight": ("max_position_embeddings", "hidden_size"),
        "embeddings.token_type_embeddings.weight": ("type_vocab_size", "hidden_size"),
        "embeddings.LayerNorm.weight": ("hidden_size",),
        "embeddings.LayerNorm.bias": ("hidden_size",),
    }

    def dense(name: str, size_in: str, size_out: str) -> None:
        shapes[f"{name}.weight"] = (size_out, size_in)
        shapes[f"{name}.bias"] = (size_out,)

    def norm(name: str) -> None:
        shapes[f"{name}.weight"] = ("hidden_size",)
        shapes[f"{name}.bias"] = ("hidden_size",)

    for i in range(config.num_hidden_layers):
        layer = f"encoder.layer.{i}"
        for name in ("query", "key", "value"):
            dense(f"{layer}.attention.self.{name}", "hidden_size", "hidden_size")
        dense(f"{layer}.attention.output.dense", "hidden_size", "hidden_size")
        norm(f"{layer}.attention.output.LayerNorm")
        dense(f"{layer}.intermediate.dense", "hidden_size", "intermediate_size")
        dense(f"{layer}.output.dense", "intermediate_size", "hidden_size")
        norm(f"{layer}.output.LayerNorm")
    dense("pooler.dense", "hidden_size", "hidden_size")
    return shapes


def resolve(tensors: Mapping[str, AnyArray], config: BertConfig, where: str) -> Resolved:
    """Find the weights of a base model among the tensors of a checkpoint.

    Parameters
    ----------
    tensors
        What `read_tensors` gave.
    config
        The configuration that the shapes must agree with.
    where
        The file, for messages.

    Returns
    -------
    Resolved
        The weights by the names of `bert_shapes`, float32; those of the pooler may be absent. And the names of tensors
        that belong to no part of a base model.

    Raises
    ------
    CheckpointError
        Weights are missing, have another shape than the configuration says, or are not floating-point numbers.
    """
    shapes = bert_shapes(config)
    tensors = _strip_data_parallel(_rename_norms(tensors, where))
    prefix = _prefix(tensors, shapes)
    if not any(prefix + name in tensors for name in _POOLER):  # models made to label tokens or spans have none
        shapes = {name: fields for name, fields in shapes.items() if name not in _POOLER}
    if missing := [prefix + name for name in shapes if prefix + name not in tensors]:
        counted = f"{len(missing)} of {len(shapes)} weights are missing"
        _refuse(where, f"{counted}: {listed(missing)}; in the file are {listed(tensors)}")
    weights = {
        name: _checked(tensors[prefix + name], prefix + name, fields, config, where) for name, fields in shapes.items()
    }
    expected = {prefix + name for name in (*shapes, *_BUFFERS)}
    unused = [name for name in tensors if name not in expected and not name.startswith(_HEADS)]
    return Resolved(weights, tuple(unused))


def _rename_norms(tensors: Mapping[str, AnyArray], where: str) -> dict[str, AnyArray]:
    """LayerNorm.gamma and LayerNorm.beta, TensorFlow's names, -> LayerNorm.weight and LayerNorm.bias."""
    renamed: dict[str, AnyArray] = {}
    for name, tensor in tensors.items():
        new = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        if new in renamed:
            _refuse(where, f"{quoted(new)} is there twice, also by its old name (gamma or beta)")
        renamed[new] = tensor
    return renamed


def _strip_data_parallel(tensors: dict[str, AnyArray]) -> dict[str, AnyArray]:
    """Take "module." off when every name has it: a checkpoint saved from within torch's DataParallel."""
    if all(name.startswith(_DATA_PARALLEL_PREFIX) for name in tensors):
        return {name.removeprefix(_DATA_PARALLEL_PREFIX): tensor for name, tensor in tensors.items()}
    return tensors


def _prefix(tensors: Mapping[str, AnyArray], shapes: Mapping[str, object]) -> str:
    """Return what stands before the encoder's names: "bert." in the checkpoint of a model with a head, else nothing.

    Decided once for the file, by how more of the weights are called; never tensor by tensor, which might mix models.
    """
    with_prefix = sum(_PREFIX + name in tensors for name in shapes)
    without = sum(name in tensors for name in shapes)
    return _PREFIX if with_prefix > without else ""


def _checked(tensor: AnyArray, name: str, fields: tuple[str, ...], config: BertConfig, where: str) -> Array:
    expected = tuple(int(getattr(config, field)) for field in fields)
    if tensor.shape != expected:
        wrong = [i for i in range(len(fields)) if tensor.ndim != len(fields) or tensor.shape[i] != expected[i]]
        meaning = ", ".join(dict.fromkeys(f"{fields[i]} is {expected[i]}" for i in wrong))
        found = f"{name} has shape {list(tensor.shape)}"
        _refuse(where, f"{found}, but the configuration asks for {list(expected)}: {meaning}")
    if tensor.dtype != np.float32:
        _refuse(where, f"{name} holds {tensor.dtype} numbers; weights must be floating-point, not quantized")
    return tensor.astype(np.float32, copy=False)


def listed(names: Iterable[str]) -> str:
    """Show the first few of some untrusted names."""
    names = list(names)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(quoted, names[:_LISTED])) + more if names else "nothing"


def _refuse(where: str, what: str) -> NoReturn:
    message = f"{where}: {what}"
    raise CheckpointError(message)
