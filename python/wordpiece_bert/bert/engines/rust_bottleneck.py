"""MobileBERT for the kernels: its packed layers, and the neighbours of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert.bert.bottleneck import FIXED_EPS, Bottleneck
from wordpiece_bert.bert.engines.stored import stored_norm

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.engines.packing import DensePacker
    from wordpiece_bert.bert.functional import Array, Ids

    _Norm = tuple[Array, Array, float | None]
    _DenseNorm = tuple[_core.PackedDense, _Norm]

__all__ = [
    "NO_NEIGHBOUR",
    "TRANSFORMATION",
    "bottleneck_layer",
    "bottleneck_norm",
    "neighbours_in_rows",
    "pack_bottleneck",
    "padded_neighbours",
]

#: What the kernels read as the neighbour of a token at the end of a row: a vector of zeros.
NO_NEIGHBOUR = 2**32 - 1

#: The name of the dense layer after the word vectors.
TRANSFORMATION = "embeddings.embedding_transformation"


def pack_bottleneck(kind: Bottleneck, index: int, packer: DensePacker) -> None:
    """Pack the dense layers of a layer that are used."""
    layer = f"encoder.layer.{index}"
    attention = f"{layer}.attention.self"
    packer.pack(f"{attention}.query", f"{attention}.key")
    names = ["attention.self.value", "attention.output.dense", "intermediate.dense", "output.dense"]
    names += ["bottleneck.input.dense", "output.bottleneck.dense"] if kind.narrow else []
    names += ["bottleneck.attention.dense"] if kind.shared and not kind.attention else []
    for j in range(kind.feed_forwards - 1):
        names += [f"ffn.{j}.intermediate.dense", f"ffn.{j}.output.dense"]
    for name in names:
        packer.pack(f"{layer}.{name}")


def bottleneck_norm(
    weights: Mapping[str, AnyArray], name: str, eps: float, kind: Bottleneck
) -> tuple[Array, Array, float | None]:
    """Return a norm for the kernels: γ, β and ε, or None for NoNorm."""
    weight, bias = stored_norm(weights, name)
    return weight, bias, eps if kind.layer_norms else None


def bottleneck_layer(
    config: BertConfig,
    weights: Mapping[str, AnyArray],
    dense: Mapping[str, _core.PackedDense],
    kind: Bottleneck,
    index: int,
) -> _core.PackedBottleneck:
    """Return a layer for the kernels, made of packed dense layers and norms."""

    def part(name: str, eps: float = config.layer_norm_eps) -> _DenseNorm:
        return dense[f"{name}.dense"], bottleneck_norm(weights, f"{name}.LayerNorm", eps, kind)

    layer = f"encoder.layer.{index}"
    shared = kind.shared and not kind.attention
    networks = [
        (dense[f"{layer}.ffn.{j}.intermediate.dense"], part(f"{layer}.ffn.{j}.output"))
        for j in range(kind.feed_forwards - 1)
    ]
    networks.append((dense[f"{layer}.intermediate.dense"], part(f"{layer}.output", FIXED_EPS)))
    return _core.PackedBottleneck(
        part(f"{layer}.bottleneck.input") if kind.narrow else None,
        part(f"{layer}.bottleneck.attention") if shared else None,
        dense[f"{layer}.attention.self.query"],
        dense[f"{layer}.attention.self.value"],
        part(f"{layer}.attention.output"),
        networks,
        part(f"{layer}.output.bottleneck") if kind.narrow else None,
        hidden=config.hidden_size,
        queries_from="narrow" if kind.attention else "shared" if shared else "hidden",
        values_from="narrow" if kind.attention else "hidden",
    )


def padded_neighbours(ids: Ids) -> npt.NDArray[np.int64]:
    """Return the next and the previous id of each token of padded rows, [B, S] -> [B, S, 2]."""
    found = np.full((*ids.shape, 2), NO_NEIGHBOUR, np.int64)
    found[:, :-1, 0] = ids[:, 1:]
    found[:, 1:, 1] = ids[:, :-1]
    return found


def neighbours_in_rows(ids: Ids, ends: Ids) -> npt.NDArray[np.uint32]:
    """Return the next and the previous id of each token of rows without padding, [tokens] -> [tokens · 2]."""
    found = np.full((len(ids), 2), NO_NEIGHBOUR, np.uint32)
    found[:-1, 0], found[1:, 1] = ids[1:], ids[:-1]
    found[ends[1:] - 1, 0] = NO_NEIGHBOUR
    found[ends[:-1], 1] = NO_NEIGHBOUR
    return found.reshape(-1)
