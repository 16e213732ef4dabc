"""A model's plan and weights for the kernels: layers packed one after the other, and what runs them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert import functional
from wordpiece_bert.bert.disentangled import convolution_as_dense
from wordpiece_bert.bert.engines.stored import stored
from wordpiece_bert.bert.half_precision import widen
from wordpiece_bert.bert.parameters import PREPARING
from wordpiece_bert.bert.plan.building import layer_name
from wordpiece_bert.bert.plan.parts import (
    Attention,
    Convolution,
    Dense,
    Distances,
    Embeddings,
    Mlp,
    Norm,
    weighted,
)
from wordpiece_bert.bert.rotary import frequencies
from wordpiece_bert.bert.stored_tensor import loaded, loaded_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.engines.packing import DensePacker
    from wordpiece_bert.bert.engines.stored import Stored
    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.bert.plan.parts import Plan, Relative
    from wordpiece_bert.bert.rotary import Rotary


@dataclass(frozen=True)
class KernelWeights:
    """The weights of a plan for the kernels, which read these fields by their names.

    Attributes
    ----------
    dense
        Packed dense layers by name; queries, keys and values by the name of the queries.
    arrays
        Weights and biases of norms, by their names; and what is computed from weights: biases of scores by distance,
        the projected relative positions of layers, and convolutions as dense layers.
    tables
        The tables of embeddings, by what tokens read them by.
    frequencies
        Frequencies of rotary positions, in the order in which layers have them.
    """

    dense: Mapping[str, _core.PackedDense]
    arrays: Mapping[str, Array]
    tables: Mapping[str, Stored]
    frequencies: Sequence[Array]


@completed_by(PREPARING)
class LayerPacker:
    """Packs layers one after the other; those that share weights, as in ALBERT, once.

    Parameters
    ----------
    packer
        Packs the dense layers.
    """

    def __init__(self, config: BertConfig, weights: Mapping[str, Array], packer: DensePacker) -> None:
        self._plan, self._weights, self._packer = config.plan(), weights, packer
        self._done: dict[int, int] = {}  # the number of the first layer with the same weights

    def pack(self, index: int) -> None:
        """Pack a layer."""
        first = self._done.setdefault(_identity(self._plan, self._weights, index), index)
        if first != index:
            self._share(first, index)
            return
        for residual in self._plan.layers[index]:
            body = residual.body
            if isinstance(body, Attention):
                self._packer.pack(body.query.name, body.key.name, body.value.name)
                self._packer.pack(body.output.name)
            elif isinstance(body, Mlp):
                for dense in (*body.inner, body.output):
                    self._packer.pack(dense.name)

    def _share(self, first: int, index: int) -> None:
        """Give a layer what the first with the same weights has."""
        prefix, of_first = f"{layer_name(index)}.", f"{layer_name(first)}."

        def share(found: dict[str, Any]) -> None:
            same = {name: one for name, one in found.items() if name.startswith(of_first)}
            found |= {prefix + name.removeprefix(of_first): one for name, one in same.items()}

        share(self._packer.packed)
        share(self._packer.dense)


def layer_stages(config: BertConfig, weights: Mapping[str, Array]) -> list[range]:
    """Return the layers in groups that run one after the other: no two groups have a layer with the same weights."""
    plan = config.plan()
    keys = [_identity(plan, weights, index) for index in range(len(plan.layers))]
    last = {key: index for index, key in enumerate(keys)}
    stages, start, end = [], 0, 0
    for index, key in enumerate(keys):
        end = max(end, last[key])
        if index == end:
            stages.append(range(start, index + 1))
            start = index + 1
    return stages


def _identity(plan: Plan, weights: Mapping[str, Array], index: int) -> int:
    """Return what is the same for layers with the same weights."""
    return id(weights[f"{next(weighted(plan.layers[index])).name}.weight"])


def packed_names(plan: Plan) -> list[str]:
    """Return the names of the weights of dense layers, which are packed."""
    return [f"{part.name}.weight" for part in plan.parts() if isinstance(part, Dense)]


def with_tables_loaded(plan: Plan, weights: Mapping[str, Array]) -> dict[str, Array]:
    """Return the weights, in memory but for those that are packed: tables, norms and biases are kept as arrays."""
    packed = set(packed_names(plan))
    return {**weights, **loaded_all({name: weight for name, weight in weights.items() if name not in packed})}


def part_of(plan: Plan, layers: range, *, begun: bool) -> Plan:
    """Return the plan of some layers: the first ones, or, if `begun`, others, whose input is given as word vectors."""
    first = Embeddings(()) if begun else plan.embeddings
    return replace(plan, embeddings=first, layers=plan.layers[layers.start : layers.stop], last=None)


def build_kernels(
    plan: Plan,
    weights: Mapping[str, Any],
    dense: Mapping[str, _core.PackedDense],
    config: BertConfig,
    instruction_set: str | None,
) -> _core.BertEncoder:
    """Return the kernels' encoder, which borrows packed layers and the other weights.

    Parameters
    ----------
    plan : Plan
        The layers, all or some of a model's.
    weights : mapping
        All weights by BERT's names; those that are packed may be packed, in a file or in memory.
    dense : mapping
        Packed dense layers, by name.
    config : BertConfig
        Sizes.
    instruction_set : str or None
        The instructions to compute with; None for the best.
    """
    arrays: dict[str, Array] = {}
    rotaries: dict[Rotary, None] = {}
    for part in weighted(plan):
        if isinstance(part, Norm):
            weight, bias = weights[f"{part.name}.weight"], weights.get(f"{part.name}.bias")
            arrays[f"{part.name}.weight"] = np.ascontiguousarray(weight)
            arrays[f"{part.name}.bias"] = np.zeros_like(weight) if bias is None else np.ascontiguousarray(bias)
        elif isinstance(part, Convolution):
            weight, bias = (_widened(weights[f"{part.name}.{name}"]) for name in ("weight", "bias"))
            arrays[f"{part.name}.weight"] = convolution_as_dense(weight)
            arrays[f"{part.name}.bias"] = np.ascontiguousarray(bias)
    for _, residual in plan.bodies():
        if not isinstance(body := residual.body, Attention):
            continue
        if body.rotary is not None:
            rotaries[body.rotary] = None
        if isinstance(body.bias, Distances):
            table = weights[f"{body.bias.table.name}.weight"]
            arrays[f"{body.bias.table.name}.by_distance"] = _by_distance(table, config.max_position_embeddings)
        if body.relative is not None:
            terms = _terms(weights, body.relative, instruction_set)
            arrays |= {f"{body.query.name}.relative_{name}": term for name, term in terms.items()}
    of_tables = {table.reads: weights[f"{table.name}.weight"] for table in plan.embeddings.tables}
    if "tasks" in of_tables:
        of_tables["types"] = _types_of_tasks(of_tables["types"], of_tables.pop("tasks"))
    if "ids" not in of_tables:  # vectors are given in their place
        of_tables["ids"] = np.zeros((1, config.hidden_size), np.float32)
    tables: dict[str, Stored] = {reads: stored(table) for reads, table in of_tables.items()}
    known = KernelWeights(dense, arrays, tables, [frequencies(*rotary) for rotary in rotaries])
    return _core.BertEncoder(plan, known, instruction_set)


def _terms(weights: Mapping[str, Any], part: Relative, instruction_set: str | None) -> dict[str, Array]:
    """Return K^r and Q^r [2K, N·d] of a layer, as "keys" and "queries", from the weights as they are stored."""
    table = _widened(weights[f"{part.table.name}.weight"])
    if part.norm is not None:
        weight, bias = weights[f"{part.norm.name}.weight"], weights.get(f"{part.norm.name}.bias")
        if part.norm.kind == "rms":
            table = functional.rms_norm(table, weight, part.norm.eps)
        else:
            table = functional.layer_norm(table, weight, bias, eps=part.norm.eps)
    table = np.ascontiguousarray(table)

    def projected(dense: Dense) -> Array:
        """Project R by a dense layer, in an order of operations that no number of threads changes."""
        weight = np.ascontiguousarray(_widened(weights[f"{dense.name}.weight"]))
        found = weights.get(f"{dense.name}.bias")
        bias = np.zeros(len(weight), np.float32) if found is None else np.ascontiguousarray(_widened(found))
        return _core.dense(table, weight, bias, "identity", instruction_set=instruction_set)

    found = {"keys": part.keys, "queries": part.queries}
    return {name: projected(dense) for name, dense in found.items() if dense is not None}


def _widened(weight: Any) -> Array:
    """Return a weight in float32, wherever it is."""
    weight = loaded(weight)
    return widen(weight if isinstance(weight, np.ndarray) else weight.unpack())


def _types_of_tasks(types: Array, tasks: Array) -> Array:
    """Return a table of token types for the kernels: the types of task 0, then of task 1, and so on (ERNIE)."""
    sums: Array = tasks[:, None] + types  # [tasks, T, H]
    return np.ascontiguousarray(sums.reshape(-1, sums.shape[-1]))


def _by_distance(table: Array, longest: int) -> Array:
    """Return MPNet's bias for each head and each distance key − query, from −`longest` on: [N, 2 · longest + 1]."""
    return np.ascontiguousarray(table[functional.distance_buckets(-np.arange(-longest, longest + 1))].T)


class RowColumns(NamedTuple):
    """The tokens of rows without padding, which the kernels read by the names of these fields."""

    ids: npt.NDArray[np.uint32]  # [tokens]
    types: npt.NDArray[np.uint32]  # [tokens], or empty for 0
    position_ids: npt.NDArray[np.uint32]  # [tokens], or empty for 0, 1, 2, … in each row
    places: npt.NDArray[np.uint32]  # [tokens] the place of each in its padded row, or empty for 0, 1, 2, … in each row
    row_offsets: npt.NDArray[np.int64]  # [B + 1]
    keys: npt.NDArray[np.int64]  # [B] how many tokens, the first ones, may be attended to
    vectors: Array | None = None  # [tokens, E] in place of word vectors


def row_columns(config: BertConfig, ids: Ids, ends: Ids, keys: Ids | None = None) -> RowColumns:
    """Return what the kernels need to know about the tokens of rows without padding; `keys` are all by default."""
    counted = config.packed_positions(ids, ends)
    none = np.zeros(0, np.uint32)
    # The kernels count from 0 where they get no positions.
    positions = none if counted is None else counted.astype(np.uint32)
    offsets = ends.astype(np.int64, copy=False)
    visible = np.diff(offsets) if keys is None else keys.astype(np.int64, copy=False)
    return RowColumns(ids.astype(np.uint32, copy=False), none, positions, none, offsets, visible)
