"""The Rust engine: the results of the NumPy engine to 1e-6, several times as fast.

The kernels are in the crate ``rust/kernels``; ``rust/kernels/DESIGN.md`` explains them. Weights are packed once, when a
model is loaded. The tokens of a batch are laid out one row after the other without padding, and one call runs all
layers.

The order of operations for each number depends only on its own row, so a row gives the same bits in any batch, at
any position of the batch, and with any number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.batching import sorted_batches
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert import functional
from wordpiece_bert.bert.calibration import random_rows
from wordpiece_bert.bert.engines.layer_inputs import LayerInputs
from wordpiece_bert.bert.engines.packing import DensePacker, packed_layer
from wordpiece_bert.bert.engines.rust_layers import (
    LayerPacker,
    RowColumns,
    build_kernels,
    layer_stages,
    row_columns,
    with_tables_loaded,
)
from wordpiece_bert.bert.engines.vocabulary_heads import RustVocabularyHead
from wordpiece_bert.bert.parameters import PREPARING
from wordpiece_bert.bert.plan.parts import Dense, weighted
from wordpiece_bert.bert.poolings import have_kernels
from wordpiece_bert.bert.stored_tensor import loaded_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.engines.engine_interface import Calibration, HeadLayers
    from wordpiece_bert.bert.engines.stored import PackedLayerWeight
    from wordpiece_bert.bert.functional import Array, Ids, Mask
    from wordpiece_bert.bert.inputs import Inputs
    from wordpiece_bert.bert.quantized import Int8Weight

# Rows that NumPy pools at once, where a pooling has no kernel.
_POOLED_ROWS = 64


@completed_by(PREPARING)
class RustEncoder:
    """The weights of one model, packed, and the forward pass over them.

    Parameters
    ----------
    dtype
        ``"float32"``, ``"bfloat16"`` or ``"int8"``.

    Raises
    ------
    InputError
        The CPU does not support the instruction set, or the kernels do not compute a part of the model's plan.
    """

    #: Rows are laid out one after the other, without padding.
    takes_rows = True

    def __init__(
        self,
        config: BertConfig,
        weights: Mapping[str, Array],
        instruction_set: str | None = None,
        dtype: str = "float32",
        calibration: Calibration | None = None,
    ) -> None:
        self._config = config
        self._plan = config.plan()
        _core.check_plan(self._plan)
        weights = with_tables_loaded(self._plan, weights)
        packer = DensePacker(weights, dtype, instruction_set)
        self._pack(weights, packer, calibration)
        unpacked = loaded_all({name: weight for name, weight in weights.items() if name not in packer.packed})
        #: All weights, by BERT's names.
        self.weights: dict[str, Array | PackedLayerWeight] = unpacked | packer.packed
        self._instruction_set = instruction_set
        self._build()

    def _pack(self, weights: Mapping[str, Array], packer: DensePacker, calibration: Calibration | None) -> None:
        """Pack the layers one after the other; those that are quantized here after a run over rows in float32."""
        inputs = None
        of_layers = {f"{part.name}.weight" for part in weighted(self._plan.layers) if isinstance(part, Dense)}
        if packer.dtype == "int8" and any(weights[name].dtype != np.int8 for name in of_layers):
            rows = calibration() if callable(calibration) else calibration
            rows = random_rows(self._config) if rows is None else rows
            inputs = LayerInputs(self._config, weights, packer, rows)
        layers = LayerPacker(self._config, weights, packer)
        for stage in layer_stages(self._config, weights):
            if inputs is not None:
                packer.observations = inputs.observe(stage)
            for index in stage:
                layers.pack(index)
        # Of the pooler one row of each sequence is multiplied, and by the projection vectors that are narrow: their
        # dtype would save nothing.
        pooler = self._plan.pooler
        others = [part for part in self._plan.embeddings.then if isinstance(part, Dense)]
        for part in (*others, *([pooler] if pooler is not None and f"{pooler.name}.weight" in weights else [])):
            packer.pack(part.name, dtype="float32")
        #: The packed dense layers by name.
        self._dense = packer.dense

    def _build(self) -> None:
        """Create the kernels' encoder, which borrows the packed layers and the other weights."""
        self._kernels = build_kernels(self._plan, self.weights, self._dense, self._config, self._instruction_set)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kernels"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._build()

    def forward(
        self,
        inputs: Inputs,
        *,
        hidden_states: bool,
        attentions: bool,
        visible_only: bool = False,
        threads: int | None = None,
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Run embeddings and all layers, as `Encoder.forward`; `visible_only` does skip masked positions."""
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
        layers = len(self._plan.layers)
        shown = [*range(layers), *([] if self._plan.last is None else [layers + 1]), layers]
        types = inputs.token_type_ids
        if inputs.task_type_ids is not None:  # the kernels have the types of one task after the other
            types = types + self._config.type_vocab_size * inputs.task_type_ids
        tokens = RowColumns(
            ids,
            flat(types),
            flat(inputs.position_ids),
            layout.columns.astype(np.uint32),
            np.concatenate([[0], np.cumsum(layout.lengths)]),
            layout.visible,
            vectors,
        )
        states, p = self._kernels.forward(tokens, length, shown if hidden_states else [layers], attentions, threads)
        return tuple(states), tuple(p)

    def pooler(self, x: Array) -> Array | None:
        """[B, S, H] -> [B, H], as `functional.pooler`; None for a model without one."""
        pooler = self._dense.get("pooler.dense")
        return None if pooler is None else pooler.multiply(np.ascontiguousarray(x[:, 0]), "tanh")

    def pooled(self, ids: Ids, ends: Ids, modes: Sequence[str], skip: int, threads: int | None) -> Array:
        """Run all layers over rows without padding and pool each row, as `Encoder.pooled`."""
        if have_kernels(modes):
            return self._kernels.pooled(row_columns(self._config, ids, ends), list(modes), skip, threads)
        return _pooled_rows(self.token_states(ids, ends, np.diff(ends), threads), ends, modes, skip)

    def token_states(self, ids: Ids, ends: Ids, keys: Ids, threads: int | None) -> Array:
        """Run all layers over rows without padding, as `Encoder.token_states`."""
        return _core.token_states(self._kernels, row_columns(self._config, ids, ends, keys), threads)


def _pooled_rows(x: Array, ends: Ids, modes: Sequence[str], skip: int) -> Array:
    """[tokens, H] of rows that end at `ends` [B + 1] -> [B, modes · H], for poolings without a kernel."""
    lengths = np.diff(ends)  # [B]
    pooled = np.zeros((len(lengths), len(modes) * x.shape[1]), np.float32)
    for batch in sorted_batches(lengths, _POOLED_ROWS, bound_padding=True):  # little padding, in bounded memory
        columns = np.arange(lengths[batch].max())  # [S]
        mask = columns < lengths[batch][:, None]  # [batch, S]
        padded = np.zeros((*mask.shape, x.shape[1]), np.float32)
        padded[mask] = x[(ends[batch][:, None] + columns)[mask]]
        pooled[batch] = np.concatenate([functional.pool(padded, mask, mode, skip) for mode in modes], axis=1)
    return pooled


class RustDense:
    """x·Wᵀ + b in float32 over the weights of a checkpoint, of which each call packs a panel at a time.

    For a decoder of the vocabulary, a packed copy of which would need the memory of the word table again.
    """

    def __init__(self, weight: Array, bias: Array, instruction_set: str | None = None) -> None:
        self._weight, self._bias, self._instruction_set = weight, bias, instruction_set

    def __call__(self, x: Array) -> Array:
        """[..., in] -> [..., out]."""
        rows = np.ascontiguousarray(x).reshape(-1, x.shape[-1])
        weight, bias = np.ascontiguousarray(self._weight), np.ascontiguousarray(self._bias)
        y = _core.dense(rows, weight, bias, "identity", instruction_set=self._instruction_set)
        return y.reshape(*x.shape[:-1], len(self._weight))


@completed_by(PREPARING)
class PackedRustDense:
    """x·Wᵀ + b over weights that are packed when the layer is first used.

    Parameters
    ----------
    weight, bias
        [out, in] and [out].
    dtype
        The number type of the products.
    """

    def __init__(self, weight: Array | Int8Weight, bias: Array, dtype: str, instruction_set: str | None = None) -> None:
        self._weight, self._bias, self._dtype = weight, bias, dtype
        self._instruction_set = instruction_set
        self._packed: _core.PackedDense | None = None

    def __call__(self, x: Array) -> Array:
        """[..., in] -> [..., out]."""
        packed = self._packed
        if packed is None:  # two threads may both pack it: either result is kept
            packed = packed_layer("head", self._weight, self._bias, self._dtype, self._instruction_set)
            self._packed = packed
        y = packed.multiply(np.ascontiguousarray(x).reshape(-1, x.shape[-1]), "identity")
        return y.reshape(*x.shape[:-1], self._weight.shape[0])

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_packed": None}


class RustEngine:
    """The kernels in Rust, with `threads` threads of a call or the number from `wordpiece_bert.set_num_threads`."""

    def __init__(self, dtype: str = "float32", instruction_set: str | None = None) -> None:
        self._dtype, self._set = dtype, instruction_set

    def prepare(
        self, config: BertConfig, weights: Mapping[str, Array], calibration: Calibration | None = None
    ) -> RustEncoder:
        """Return an encoder over these weights, packed."""
        return RustEncoder(config, weights, self._set, self._dtype, calibration)

    def dense(self, weight: Array, bias: Array) -> PackedRustDense:
        """Return a dense layer in float32, whichever the dtype: the layers of heads are a small part of the work."""
        return PackedRustDense(weight, bias, "float32", self._set)

    def decoder(self, weight: Array, bias: Array) -> RustDense | PackedRustDense:
        """Return a dense layer over the vocabulary: packed in bfloat16 if that is faster, or in int8, else unpacked."""
        if self._dtype == "int8" or (self._dtype == "bfloat16" and _core.describe_products("bfloat16", self._set)[2]):
            return PackedRustDense(weight, bias, self._dtype, self._set)
        return RustDense(weight, bias, self._set)

    def vocabulary_head(self, layers: HeadLayers) -> RustVocabularyHead:
        """Return a masked-language head that pools its logits, packed."""
        return RustVocabularyHead(layers, self._dtype, self._set)

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        """x·Wᵀ + b, as `functional.linear`."""
        return RustDense(weight, bias, self._set)(x)


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
