"""The layers of a model for the kernels, packed one after the other, and what runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert import functional
from wordpiece_bert.bert.bottleneck import FIXED_EPS
from wordpiece_bert.bert.engines.rust_bottleneck import (
    TRANSFORMATION,
    bottleneck_layer,
    bottleneck_norm,
    neighbours_in_rows,
    pack_bottleneck,
)
from wordpiece_bert.bert.engines.rust_disentangled import disentangled_parts
from wordpiece_bert.bert.engines.stored import stored, stored_dense, stored_norm
from wordpiece_bert.bert.half_precision import widen
from wordpiece_bert.bert.parameters import PREPARING
from wordpiece_bert.bert.rotary import frequencies
from wordpiece_bert.bert.stored_tensor import loaded_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.engines.packing import DensePacker
    from wordpiece_bert.bert.functional import Array, Ids

__all__ = ["LayerPacker", "RowColumns", "build_kernels", "layer_stages", "row_columns", "with_tables_loaded"]


@completed_by(PREPARING)
class LayerPacker:
    """Packs layers one after the other; those that share weights, as in ALBERT, once.

    Parameters
    ----------
    packer
        Packs the dense layers.
    """

    def __init__(self, config: BertConfig, weights: Mapping[str, AnyArray], packer: DensePacker) -> None:
        self._config, self._weights, self._packer = config, weights, packer
        self._done: dict[int, tuple[_core.PackedLayer, str]] = {}
        #: The layers so far; none for MobileBERT, whose layers `bottlenecks` combines.
        self.layers: list[_core.PackedLayer] = []

    def pack(self, index: int) -> None:
        """Pack a layer."""
        kind = self._config.bottleneck
        if kind is not None:
            pack_bottleneck(kind, index, self._packer)
            return
        prefix = f"encoder.layer.{index}."
        key = _identity(self._weights, index)
        if key not in self._done:
            self._done[key] = self._packed_layer(prefix), prefix
        layer, first = self._done[key]
        self.layers.append(layer)
        packed = self._packer.packed
        same = {name: weight for name, weight in packed.items() if name.startswith(first)}
        packed |= {prefix + name.removeprefix(first): weight for name, weight in same.items()}

    def _packed_layer(self, prefix: str) -> _core.PackedLayer:
        weights, pack = self._weights, self._packer.pack
        gated = f"{prefix}intermediate.gate.weight" in weights
        norm_first = self._config.norm_first
        norms = ("attention.ln", "ln") if norm_first else ("attention.output.LayerNorm", "output.LayerNorm")
        return _core.PackedLayer(
            pack(*(f"{prefix}attention.self.{name}" for name in ("query", "key", "value"))),
            pack(f"{prefix}attention.output.dense"),
            stored_norm(weights, f"{prefix}{norms[0]}") if f"{prefix}{norms[0]}.weight" in weights else None,
            pack(f"{prefix}intermediate.{'gate' if gated else 'dense'}"),
            pack(f"{prefix}intermediate.up") if gated else None,
            pack(f"{prefix}output.dense"),
            stored_norm(weights, f"{prefix}{norms[1]}"),
            *self._further_norms(prefix),
        )

    def _further_norms(self, prefix: str) -> list[Any]:
        """Return the norms of queries and keys, and the one after a second residual, if the model has them."""
        if f"{prefix}attention.query_norm.weight" not in self._weights:
            return []
        query, key, second = (
            stored_norm(self._weights, f"{prefix}attention.{name}")
            for name in ("query_norm", "key_norm", "second_norm")
        )
        return [(query, key), second]


def layer_stages(config: BertConfig, weights: Mapping[str, AnyArray]) -> list[range]:
    """Return the layers in groups that run one after the other: no two groups have a layer with the same weights."""
    keys = [_identity(weights, index) for index in range(config.encoder_layers)]
    last = {key: index for index, key in enumerate(keys)}
    stages, start, end = [], 0, 0
    for index, key in enumerate(keys):
        end = max(end, last[key])
        if index == end:
            stages.append(range(start, index + 1))
            start = index + 1
    return stages


def _identity(weights: Mapping[str, AnyArray], index: int) -> int:
    """Return what is the same for layers with the same weights."""
    return id(weights[f"encoder.layer.{index}.attention.self.query.weight"])


def with_tables_loaded(weights: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the weights, in memory but for those that are packed: tables, norms and biases are kept as arrays."""
    kept = {
        name: weight
        for name, weight in weights.items()
        if weight.ndim < 2 or not name.startswith(("encoder.layer.", "pooler.dense.", TRANSFORMATION))
    }
    return {**weights, **loaded_all(kept)}


@completed_by(PREPARING)
def build_kernels(
    config: BertConfig,
    weights: Mapping[str, Any],
    layers: list[_core.PackedLayer],
    dense: Mapping[str, _core.PackedDense],
    numbers: Sequence[int],
    instruction_set: str | None,
    part: Literal["whole", "first layers", "other layers"] = "whole",
) -> _core.BertEncoder:
    """Return the kernels' encoder, which borrows packed layers and the other weights.

    Parameters
    ----------
    weights
        All weights by BERT's names; those that are packed may be packed, in a file or in memory.
    layers
        Packed layers; none for MobileBERT.
    dense
        Packed dense layers, by name.
    numbers
        The numbers of the layers.
    part
        Whether the layers are all of the model; or the first ones, or others, whose input is given in place of word
        vectors. The norm after the last layer belongs to the whole.
    """
    kind = config.bottleneck
    is_begun, is_whole = part != "other layers", part == "whole"
    hidden = config.hidden_size

    def table(name: str) -> AnyArray | None:
        return weights.get(f"embeddings.{name}_embeddings.weight") if is_begun else None

    words, positions, types = table("word"), table("position"), _types_of_tasks(table("token_type"), table("task_type"))
    if not is_begun:  # the kernels add other embeddings to the word vectors of MobileBERT, so add 0
        words = np.zeros((1, hidden), np.float32)
        types = None if kind is None else words
    assert words is not None, "every model has a table of words"
    distances = weights.get("encoder.relative_attention_bias.weight")
    positions_of_layers = [config.layer_positions(layer) for layer in numbers]
    rotations = list(dict.fromkeys(of_layer.rotary for of_layer in positions_of_layers if of_layer.rotary is not None))
    projected = is_begun and "embeddings.projection.weight" in weights
    return _core.BertEncoder(
        layers,
        [] if kind is None else [bottleneck_layer(config, weights, dense, kind, index) for index in numbers],
        stored(words),
        None if positions is None else stored(positions),
        None if types is None else stored(types),
        dense.get(TRANSFORMATION) if is_begun else None,
        _embedding_norm(config, weights) if is_begun else None,
        stored_dense(weights, "embeddings.projection") if projected else None,
        stored_norm(weights, "encoder.ln") if config.norm_first and is_whole else None,
        None if distances is None else _by_distance(widen(distances), config.max_position_embeddings),
        [frequencies(*rotary) for rotary in rotations],
        [(None if rotary is None else rotations.index(rotary), window) for rotary, window in positions_of_layers],
        embedding=config.embedding_size if is_begun else hidden,
        heads=config.num_attention_heads,
        # The kernels call each activation by the name of its function.
        activation=functional.ACTIVATIONS[config.hidden_act].__name__,
        eps=config.layer_norm_eps,
        norm_first=config.norm_first,
        rms_norm=config.rms_norm,
        slopes=config.alibi_slopes,
        disentangled=disentangled_parts(config, weights, numbers, instruction_set, is_begun=is_begun),
        instruction_set=instruction_set,
    )


def _embedding_norm(config: BertConfig, weights: Mapping[str, AnyArray]) -> tuple[Array, Array, float | None] | None:
    if config.bottleneck is not None:
        return bottleneck_norm(weights, "embeddings.LayerNorm", FIXED_EPS, config.bottleneck)
    if "embeddings.LayerNorm.weight" not in weights:
        return None
    return (*stored_norm(weights, "embeddings.LayerNorm"), config.layer_norm_eps)


def _types_of_tasks(types: AnyArray | None, tasks: AnyArray | None) -> AnyArray | None:
    """Return a table of token types for the kernels: in ERNIE those of task 0, then those of task 1, and so on."""
    if tasks is None or types is None:
        return types
    sums: Array = widen(tasks)[:, None] + widen(types)  # [tasks, T, H]
    return np.ascontiguousarray(sums.reshape(-1, sums.shape[-1]))


def _by_distance(table: Array, longest: int) -> Array:
    """Return MPNet's bias for each head and each distance key − query, from −`longest` on: [N, 2 · longest + 1]."""
    return np.ascontiguousarray(table[functional.distance_buckets(-np.arange(-longest, longest + 1))].T)


class RowColumns(NamedTuple):
    """The tokens of rows without padding."""

    ids: npt.NDArray[np.uint32]  # [tokens]
    positions: npt.NDArray[np.uint32]  # [tokens], or empty for 0, 1, 2, … in each row
    neighbours: npt.NDArray[np.uint32]  # [2 · tokens], or empty for a model that does not join them
    row_offsets: npt.NDArray[np.int64]  # [B + 1]


def row_columns(config: BertConfig, ids: Ids, ends: Ids) -> RowColumns:
    """Return what the kernels need to know about the tokens of rows without padding."""
    counted = config.packed_positions(ids, ends)
    # The kernels count from 0 where they get no positions.
    positions = np.zeros(0, np.uint32) if counted is None else counted.astype(np.uint32)
    tokens, offsets = ids.astype(np.uint32, copy=False), ends.astype(np.int64, copy=False)
    joined = config.bottleneck is not None and config.bottleneck.trigrams
    neighbours = neighbours_in_rows(ids, ends) if joined else np.zeros(0, np.uint32)
    return RowColumns(tokens, positions, neighbours, offsets)
