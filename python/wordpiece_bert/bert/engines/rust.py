"""The Rust engine: the results of the NumPy engine to 1e-6, several times as fast.

The kernels are in the crate ``rust/kernels``; ``rust/DESIGN.md`` explains them. Weights are packed once, when a
model is loaded. The tokens of a batch are laid out one row after the other without padding, and one call runs all
layers.

The order of operations for each number depends only on its own row, so a row gives the same bits in any batch, at
any position of the batch, and with any number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert.bert import functional
from wordpiece_bert.bert.bottleneck import FIXED_EPS
from wordpiece_bert.bert.calibration import random_rows
from wordpiece_bert.bert.engines.packing import DensePacker
from wordpiece_bert.bert.engines.rust_bottleneck import (
    bottleneck_layers,
    bottleneck_norm,
    neighbours_in_rows,
    pack_bottlenecks,
    padded_neighbours,
)
from wordpiece_bert.bert.engines.stored import stored, stored_dense, stored_norm
from wordpiece_bert.bert.engines.vocabulary import RustVocabularyHead
from wordpiece_bert.bert.half_precision import is_half, widen
from wordpiece_bert.bert.quantized import Int8Weight

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.engines.base import HeadLayers
    from wordpiece_bert.bert.engines.packing import Observations
    from wordpiece_bert.bert.functional import Array, Ids, Mask, PoolingMode
    from wordpiece_bert.bert.inputs import Inputs


__all__ = ["RustDense", "RustEncoder", "RustEngine"]


class RustEncoder:
    """The weights of one model, packed, and the forward pass over them.

    Parameters
    ----------
    config, weights
        As for `base.Engine.prepare`.
    instruction_set
        One of `_core.kernel_instruction_sets()`; None for the best that the CPU supports.
    dtype
        ``"float32"``, ``"bfloat16"`` or ``"int8"``.
    calibration
        Rows of ids that the model is run over in float32, to choose the factors of int8 inputs; by default random ones.

    Raises
    ------
    InputError
        The CPU does not support the instruction set.
    """

    #: Rows are laid out one after the other, without padding.
    takes_rows = True

    def __init__(
        self,
        config: BertConfig,
        weights: Mapping[str, AnyArray],
        instruction_set: str | None = None,
        dtype: str = "float32",
        calibration: Sequence[Ids] | None = None,
    ) -> None:
        self._config = config
        observations = None
        if dtype == "int8" and any(not isinstance(weight, Int8Weight) for weight in _layer_weights(weights)):
            observations = _observe(config, weights, random_rows(config) if calibration is None else calibration)
        self._pack(weights, DensePacker(weights, dtype, instruction_set, observations))
        self._build(instruction_set)

    def _pack(self, weights: Mapping[str, AnyArray], packer: DensePacker) -> None:
        """Pack the layers; the other weights stay as they are."""
        #: The weights that are stored only in the kernels' layout, by BERT's names.
        self.packed = packer.packed
        #: The dense layers, by name.
        self._dense = packer.dense
        self._layers: list[_core.PackedLayer] = []
        kind = self._config.bottleneck
        if kind is None:
            self._pack_layers(weights, packer)
        else:
            pack_bottlenecks(self._config, kind, packer)
        self._unpacked = {name: weight for name, weight in weights.items() if name not in self.packed}

    def _pack_layers(self, weights: Mapping[str, AnyArray], packer: DensePacker) -> None:
        """Pack the layers of a model other than MobileBERT."""
        done: dict[int, tuple[_core.PackedLayer, str]] = {}  # ALBERT's layers share weights: pack each once
        for index in range(self._config.encoder_layers):
            prefix = f"encoder.layer.{index}."
            key = id(weights[f"{prefix}attention.self.query.weight"])
            if key not in done:
                done[key] = _packed_layer(weights, prefix, self._config, packer), prefix
            layer, first = done[key]
            self._layers.append(layer)
            same = {name: weight for name, weight in self.packed.items() if name.startswith(first)}
            self.packed |= {prefix + name.removeprefix(first): weight for name, weight in same.items()}

    def _build(self, instruction_set: str | None) -> None:
        """Create the kernels' encoder, which borrows the packed layers and the other weights."""
        config, weights = self._config, self._unpacked
        table = weights.get("encoder.relative_attention_bias.weight")
        types = weights.get("embeddings.token_type_embeddings.weight")
        positions = weights.get("embeddings.position_embeddings.weight")
        projected = "embeddings.projection.weight" in weights
        kind = config.bottleneck
        self._kernels = _core.BertEncoder(
            self._layers,
            [] if kind is None else bottleneck_layers(config, weights, self._dense, kind),
            stored(weights["embeddings.word_embeddings.weight"]),
            None if positions is None else stored(positions),
            None if types is None else stored(types),
            self._dense.get("embeddings.embedding_transformation"),
            _embedding_norm(config, weights),
            stored_dense(weights, "embeddings.projection") if projected else None,
            stored_norm(weights, "encoder.ln") if config.norm_first else None,
            None if table is None else _by_distance(widen(table), config.max_position_embeddings),
            config.rotary_frequencies,
            embedding=config.embedding_size,
            heads=config.num_attention_heads,
            # The kernels call each activation by the name of its function.
            activation=functional.ACTIVATIONS[config.hidden_act].__name__,
            eps=config.layer_norm_eps,
            norm_first=config.norm_first,
            instruction_set=instruction_set,
        )
        self._pooler = (
            RustDense(weights["pooler.dense.weight"], weights["pooler.dense.bias"], "tanh")
            if "pooler.dense.weight" in weights
            else None
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kernels"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._build(None)

    def forward(
        self,
        inputs: Inputs,
        *,
        hidden_states: bool,
        attentions: bool,
        visible_only: bool = False,
        threads: int | None = None,
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Run embeddings and all layers, as `base.Encoder.forward`; `visible_only` does skip masked positions."""
        batch, length = inputs.shape
        layout = _layout(inputs.mask, batch, length, visible_only=visible_only)
        rows = np.repeat(np.arange(batch), layout.lengths)  # [tokens]

        def flat(column: Ids) -> npt.NDArray[np.uint32]:
            """[B, S] or [1, S] -> [tokens]."""
            return np.broadcast_to(column, (batch, length))[rows, layout.columns].astype(np.uint32)

        vectors = None
        if inputs.input_ids is not None:
            ids = flat(inputs.input_ids)
        else:
            assert inputs.inputs_embeds is not None
            vectors = np.ascontiguousarray(inputs.inputs_embeds[rows, layout.columns])
            ids = np.arange(len(rows), dtype=np.uint32)
        neighbours = np.zeros(0, np.uint32)
        if self._config.bottleneck is not None and self._config.bottleneck.trigrams:
            # Those of the padded rows, of which a masked one may not be among the tokens.
            table = inputs.input_ids
            if table is None:
                assert inputs.inputs_embeds is not None
                table = np.arange(batch * length).reshape(batch, length)
                vectors = np.ascontiguousarray(inputs.inputs_embeds.reshape(batch * length, -1))
                ids = table[rows, layout.columns].astype(np.uint32)
            neighbours = padded_neighbours(table)[rows, layout.columns].astype(np.uint32).reshape(-1)
        layers = self._config.encoder_layers
        states, p = self._kernels.forward(
            ids,
            flat(inputs.token_type_ids),
            flat(inputs.position_ids),
            neighbours,
            layout.columns.astype(np.uint32),
            np.concatenate([[0], np.cumsum(layout.lengths)]),
            layout.visible,
            vectors,
            length,
            list(range(layers + 1)) if hidden_states else [layers],
            attentions,
            threads,
        )
        return tuple(states), tuple(p)

    def pooler(self, x: Array) -> Array | None:
        """[B, S, H] -> [B, H], as `functional.pooler`; None for a model without one."""
        if self._config.bottleneck is not None and not self._config.bottleneck.pooler:
            return np.ascontiguousarray(x[:, 0])
        return None if self._pooler is None else self._pooler(np.ascontiguousarray(x[:, 0]))

    def pool(self, x: Array, mask: Mask, mode: PoolingMode, skip: int = 0) -> Array:
        """[B, S, H] -> [B, H], as `functional.pool`."""
        return functional.pool(x, mask, mode, skip)

    def pooled(self, ids: Ids, ends: Ids, modes: Sequence[PoolingMode], skip: int, threads: int | None) -> Array:
        """Run all layers over rows without padding and pool each row, as `base.Encoder.pooled`."""
        return self._kernels.pooled(*self._columns(ids, ends), list(modes), skip, threads)

    def token_states(self, ids: Ids, ends: Ids, keys: Ids, threads: int | None) -> Array:
        """Run all layers over rows without padding, as `base.Encoder.token_states`."""
        visible: npt.NDArray[np.int64] = keys.astype(np.int64, copy=False)
        return _core.token_states(self._kernels, *self._columns(ids, ends), visible, threads)

    def _columns(self, ids: Ids, ends: Ids) -> _Columns:
        """Return what the kernels need to know about the tokens of rows without padding."""
        counted = self._config.packed_positions(ids, ends)
        # The kernels count from 0 where they get no positions.
        positions = np.zeros(0, np.uint32) if counted is None else counted.astype(np.uint32)
        tokens, offsets = ids.astype(np.uint32, copy=False), ends.astype(np.int64, copy=False)
        joined = self._config.bottleneck is not None and self._config.bottleneck.trigrams
        neighbours = neighbours_in_rows(ids, ends) if joined else np.zeros(0, np.uint32)
        return _Columns(tokens, positions, neighbours, offsets)


class _Columns(NamedTuple):
    """The tokens of rows without padding."""

    ids: npt.NDArray[np.uint32]  # [tokens]
    positions: npt.NDArray[np.uint32]  # [tokens], or empty for 0, 1, 2, … in each row
    neighbours: npt.NDArray[np.uint32]  # [2 · tokens], or empty for a model that does not join them
    row_offsets: npt.NDArray[np.int64]  # [B + 1]


class RustDense:
    """activation(x·Wᵀ + b) over the weights of a checkpoint, of which each call packs a panel at a time.

    A head is used once in a forward pass, so a packed copy would cost more memory than it saves time.
    """

    #: Rows of a half-precision weight that are widened at once: 24 MB for a masked-language decoder of 768 columns.
    _BLOCK = 8192

    def __init__(self, weight: AnyArray | Int8Weight, bias: AnyArray, activation: str = "identity") -> None:
        self._weight, self._bias, self._activation = weight, widen(bias), activation

    def __call__(self, x: Array) -> Array:
        """[..., in] -> [..., out]."""
        rows = np.ascontiguousarray(x).reshape(-1, x.shape[-1])
        if is_half(self._weight.dtype) or isinstance(self._weight, Int8Weight):
            blocks = [slice(start, start + self._BLOCK) for start in range(0, self._weight.shape[0], self._BLOCK)]
            parts = [self._multiply(rows, self._widened(block), self._bias[block]) for block in blocks]
            y = np.concatenate(parts, axis=-1)
        else:
            y = self._multiply(rows, widen(self._weight), self._bias)
        return y.reshape(*x.shape[:-1], self._weight.shape[0])

    def _widened(self, block: slice) -> Array:
        return self._weight.rows(block) if isinstance(self._weight, Int8Weight) else widen(self._weight[block])

    def _multiply(self, rows: Array, weight: Array, bias: Array) -> Array:
        weight, bias = np.ascontiguousarray(weight), np.ascontiguousarray(bias)
        return _core.dense(rows, weight, bias, self._activation)


class RustEngine:
    """The kernels in Rust, with `threads` threads of a call or those of `wordpiece_bert.set_num_threads`."""

    def __init__(self, dtype: str = "float32") -> None:
        self._dtype = dtype

    def prepare(
        self, config: BertConfig, weights: Mapping[str, AnyArray], calibration: Sequence[Ids] | None = None
    ) -> RustEncoder:
        """Return an encoder over these weights, packed."""
        return RustEncoder(config, weights, dtype=self._dtype, calibration=calibration)

    def dense(self, weight: AnyArray, bias: AnyArray) -> RustDense:
        """Return a dense layer over these weights, which are not copied."""
        return RustDense(weight, bias)

    def vocabulary_head(self, layers: HeadLayers) -> RustVocabularyHead:
        """Return a masked-language head that pools its logits, packed."""
        return RustVocabularyHead(layers, self._dtype)

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        """x·Wᵀ + b, as `functional.linear`."""
        return RustDense(weight, bias)(x)


def _packed_layer(
    weights: Mapping[str, AnyArray], prefix: str, config: BertConfig, packer: DensePacker
) -> _core.PackedLayer:
    gated = f"{prefix}intermediate.gate.weight" in weights
    norms = ("attention.ln", "ln") if config.norm_first else ("attention.output.LayerNorm", "output.LayerNorm")
    return _core.PackedLayer(
        packer.pack(*(f"{prefix}attention.self.{name}" for name in ("query", "key", "value"))),
        packer.pack(f"{prefix}attention.output.dense"),
        stored_norm(weights, f"{prefix}{norms[0]}"),
        packer.pack(f"{prefix}intermediate.{'gate' if gated else 'dense'}"),
        packer.pack(f"{prefix}intermediate.up") if gated else None,
        packer.pack(f"{prefix}output.dense"),
        stored_norm(weights, f"{prefix}{norms[1]}"),
    )


def _layer_weights(weights: Mapping[str, AnyArray]) -> list[AnyArray]:
    return [
        weight for name, weight in weights.items() if name.endswith(".dense.weight") and name.startswith("encoder.")
    ]


def _observe(config: BertConfig, weights: Mapping[str, AnyArray], rows: Sequence[Ids]) -> Observations:
    """Run a model in float32 over rows of ids, and return what its dense layers had as inputs."""
    encoder = object.__new__(RustEncoder)
    encoder._config = config
    packer = DensePacker(weights, "float32", None, observed=True)
    encoder._pack(weights, packer)
    encoder._build(None)
    ends = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    # On one thread, so that sums are added in the same order each time.
    encoder.pooled(np.concatenate(rows), ends, ["cls"], 0, threads=1)
    return packer.observations()


def _embedding_norm(config: BertConfig, weights: Mapping[str, AnyArray]) -> tuple[Array, Array, float | None] | None:
    if config.bottleneck is not None:
        return bottleneck_norm(weights, "embeddings.LayerNorm", FIXED_EPS, config.bottleneck)
    return None if config.norm_first else (*stored_norm(weights, "embeddings.LayerNorm"), config.layer_norm_eps)


def _by_distance(table: Array, longest: int) -> Array:
    """Return MPNet's bias for each head and each distance key − query, from −`longest` on: [N, 2 · longest + 1]."""
    return np.ascontiguousarray(table[functional.distance_buckets(-np.arange(-longest, longest + 1))].T)


class _Layout(NamedTuple):
    """The tokens of a padded batch that are computed, in order: row by row, the visible ones of a row first."""

    columns: npt.NDArray[np.int64]  # [tokens] the position of each token in its padded row
    lengths: npt.NDArray[np.int64]  # [B] tokens of each row that are computed
    visible: npt.NDArray[np.int64]  # [B] tokens of each row that are visible, and so attended to


def _layout(mask: Mask | None, batch: int, length: int, *, visible_only: bool) -> _Layout:
    """Return the layout of a batch [B, S]; with `visible_only` no masked position is in it but the first of a row."""
    if mask is None:
        everything = np.full(batch, length)
        return _Layout(np.tile(np.arange(length), batch), everything, everything)
    visible = np.count_nonzero(mask, axis=1)  # [B]
    order = np.argsort(~mask, axis=1, kind="stable")  # [B, S]
    if not visible_only:
        return _Layout(order.reshape(-1), np.full(batch, length), visible)
    # Heads read the first position of a row. If it is masked, it is the first masked one, so it follows the visible.
    lengths = visible + ~mask[:, 0]
    return _Layout(order[np.arange(length) < lengths[:, None]], lengths, visible)
