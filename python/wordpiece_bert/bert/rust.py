"""The engine in Rust: the same numbers as NumPy's to 1e-6, several times as fast.

Its kernels are in the crate `rust/kernels`, whose design is told in rust/DESIGN.md. Weights are packed once. The tokens
of a batch are laid one behind the other without padding, and one call runs all layers, so there are no single steps.
Each number is computed by operations whose order depends on its own sequence alone: a sequence gives the same bits
whatever batch it is in, and whatever the number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert.bert import functional
from wordpiece_bert.bert.config import BertConfig
from wordpiece_bert.bert.half_precision import BFLOAT16, is_half, widen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    _Stored = tuple[npt.NDArray[np.generic], str]

    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.functional import Array, Ids, Mask, PoolingMode
    from wordpiece_bert.bert.inputs import Inputs

__all__ = ["PackedWeight", "RustBackend", "RustDense", "RustEncoder"]

#: The kernels' names of activations, by the function.
_ACTIVATIONS = {
    functional.gelu: "gelu",
    functional.gelu_tanh: "gelu_tanh",
    functional.quick_gelu: "quick_gelu",
    functional.relu: "relu",
    functional.silu: "silu",
    functional.tanh: "tanh",
    functional.sigmoid: "sigmoid",
    functional.mish: "mish",
}

#: The kernels' names of a layer's weights, by BERT's.
_PACKED = {
    "attention.self.query.weight": "query",
    "attention.self.key.weight": "key",
    "attention.self.value.weight": "value",
    "attention.output.dense.weight": "output",
    "intermediate.dense.weight": "inner",
    "output.dense.weight": "outer",
}


class PackedWeight:
    """A weight that the kernels keep in their own form, and give back when it is asked for."""

    def __init__(self, layer: _core.PackedLayer, name: str, weight: AnyArray, *, bf16: bool) -> None:
        self._layer, self._name = layer, name
        self.shape, self.dtype = weight.shape, BFLOAT16 if bf16 else weight.dtype
        self.nbytes = weight.size * self.dtype.itemsize

    def unpack(self) -> AnyArray:
        """Return the weight [out, in], the same numbers as were packed; rounded ones if they are multiplied so."""
        return self._layer.weight(self._name).view(self.dtype)


class RustEncoder:
    """The weights of one model, packed, and the whole forward pass over them."""

    def __init__(
        self, config: BertConfig, weights: Mapping[str, AnyArray], path: str | None = None, dtype: str = "float32"
    ) -> None:
        bf16 = dtype == "bfloat16"
        self._config = config
        #: Weights that are kept in the kernels' form alone, by BERT's names.
        self.packed: dict[str, PackedWeight] = {}
        self._layers: list[_core.PackedLayer] = []
        done: dict[int, tuple[_core.PackedLayer, str]] = {}  # layers of ALBERT share their weights
        for index in range(config.encoder_layers):
            place = f"encoder.layer.{index}."
            key = id(weights[f"{place}attention.self.query.weight"])
            if key not in done:
                done[key] = _packed_layer(weights, place, bf16=bf16), place
                for name, short in _PACKED.items():
                    self.packed[place + name] = PackedWeight(done[key][0], short, weights[place + name], bf16=bf16)
            layer, first = done[key]
            self._layers.append(layer)
            self.packed |= {place + name: self.packed[first + name] for name in _PACKED}
        # The others are kept as they are.
        self._rest = {name: weight for name, weight in weights.items() if name not in self.packed}
        self._build(path)

    def _build(self, path: str | None) -> None:
        config, weights = self._config, self._rest
        table = weights.get("encoder.relative_attention_bias.weight")
        types = weights.get("embeddings.token_type_embeddings.weight")
        projected = "embeddings.projection.weight" in weights
        self._core = _core.BertEncoder(
            self._layers,
            _stored(weights["embeddings.word_embeddings.weight"]),
            _stored(weights["embeddings.position_embeddings.weight"]),
            None if types is None else _stored(types),
            _norm(weights, "embeddings.LayerNorm"),
            _dense(weights, "embeddings.projection") if projected else None,
            None if table is None else _by_distance(widen(table), config.max_position_embeddings),
            embedding=config.embedding_size,
            heads=config.num_attention_heads,
            activation=_ACTIVATIONS[functional.ACTIVATIONS[config.hidden_act]],
            eps=config.layer_norm_eps,
            path=path,
        )
        self._pooler = (
            RustDense(weights["pooler.dense.weight"], weights["pooler.dense.bias"], "tanh")
            if "pooler.dense.weight" in weights
            else None
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_core"}

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
        """Run all layers.

        Returns hidden states [B, S, H], all L + 1 of them or the last alone, and the attention weights [B, N, S, S] of
        each layer, none if they are not wanted. With `visible_only` the places that the mask hides are not computed and
        stay 0, but for the first of each row, which heads read.
        """
        batch, length = inputs.shape
        order, counts, keys = _packed_places(inputs.mask, batch, length, visible_only=visible_only)
        rows = np.repeat(np.arange(batch), counts)

        def flat(column: Ids) -> npt.NDArray[np.uint32]:
            return np.broadcast_to(column, (batch, length))[rows, order].astype(np.uint32)

        vectors = None
        if inputs.input_ids is not None:
            ids = flat(inputs.input_ids)
        else:
            assert inputs.inputs_embeds is not None
            vectors = np.ascontiguousarray(inputs.inputs_embeds[rows, order])
            ids = np.arange(len(order), dtype=np.uint32)
        layers = self._config.encoder_layers
        states, p = self._core.forward(
            ids,
            flat(inputs.token_type_ids),
            flat(inputs.position_ids),
            order.astype(np.uint32),
            np.concatenate([[0], np.cumsum(counts)]),
            keys,
            vectors,
            length,
            list(range(layers + 1)) if hidden_states else [layers],
            attentions,
            threads,
        )
        return tuple(states), tuple(p)

    def pooler(self, x: Array) -> Array | None:
        """[B, S, H] -> [B, H], as `functional.pooler`; None for a model without one."""
        return None if self._pooler is None else self._pooler(np.ascontiguousarray(x[:, 0]))

    def pool(self, x: Array, mask: Mask, mode: PoolingMode, skip: int = 0) -> Array:
        """[B, S, H] -> [B, H], as `functional.pool`."""
        return functional.pool(x, mask, mode, skip)

    def pooled(self, ids: Ids, ends: Ids, modes: Sequence[PoolingMode], skip: int, threads: int | None) -> Array:
        """Run all layers over rows of ids [tokens] that end at `ends` [B + 1], and pool each: [B, modes · H].

        Token types are 0.
        """
        positions = self._positions(ids, ends)
        tokens, offsets = ids.astype(np.uint32, copy=False), ends.astype(np.int64, copy=False)
        return self._core.pooled(tokens, positions, offsets, list(modes), skip, threads)

    def _positions(self, ids: Ids, ends: Ids) -> npt.NDArray[np.uint32]:
        """Return the positions of tokens; nothing where they count from 0, which the kernels do by themselves."""
        if type(self._config).default_positions is BertConfig.default_positions:
            return np.zeros(0, np.uint32)
        rows = [
            self._config.default_positions(ids[None, start:end], end - start)[0]
            for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        ]
        return np.concatenate(rows).astype(np.uint32)


class RustDense:
    """activation(x·Wᵀ + b) over weights as they are; a panel of them is packed at a time when they are used."""

    #: Rows of a half-precision weight that are widened at once: 24 MB of a masked-language decoder of 768 columns.
    _BLOCK = 8192

    def __init__(self, weight: AnyArray, bias: AnyArray, activation: str = "identity") -> None:
        self._weight, self._bias, self._activation = weight, widen(bias), activation

    def __call__(self, x: Array) -> Array:
        """[..., in] -> [..., out]."""
        rows = np.ascontiguousarray(x).reshape(-1, x.shape[-1])
        if is_half(self._weight.dtype):
            blocks = [slice(start, start + self._BLOCK) for start in range(0, len(self._weight), self._BLOCK)]
            parts = [self._multiply(rows, widen(self._weight[block]), self._bias[block]) for block in blocks]
            y = np.concatenate(parts, axis=-1)
        else:
            y = self._multiply(rows, widen(self._weight), self._bias)
        return y.reshape(*x.shape[:-1], len(self._weight))

    def _multiply(self, rows: Array, weight: Array, bias: Array) -> Array:
        weight, bias = np.ascontiguousarray(weight), np.ascontiguousarray(bias)
        return _core.dense(rows, weight, bias, self._activation)


class RustBackend:
    """The kernels in Rust. Their threads are those of `wordpiece_bert.set_num_threads`, or of `threads` of a call."""

    def __init__(self, dtype: str = "float32") -> None:
        self._dtype = dtype

    def prepare(self, config: BertConfig, weights: Mapping[str, AnyArray]) -> RustEncoder:
        """Pack the weights."""
        return RustEncoder(config, weights, dtype=self._dtype)

    def dense(self, weight: AnyArray, bias: AnyArray) -> RustDense:
        """Take in a dense layer of a head."""
        return RustDense(weight, bias)

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        """x·Wᵀ + b, as `functional.linear`."""
        return RustDense(weight, bias)(x)


def _packed_layer(weights: Mapping[str, AnyArray], place: str, *, bf16: bool) -> _core.PackedLayer:
    return _core.PackedLayer(
        [_dense(weights, f"{place}attention.self.{name}") for name in ("query", "key", "value")],
        _dense(weights, f"{place}attention.output.dense"),
        _norm(weights, f"{place}attention.output.LayerNorm"),
        _dense(weights, f"{place}intermediate.dense"),
        _dense(weights, f"{place}output.dense"),
        _norm(weights, f"{place}output.LayerNorm"),
        bf16,
    )


def _dense(weights: Mapping[str, AnyArray], name: str) -> tuple[_Stored, Array]:
    return _stored(weights[f"{name}.weight"]), np.ascontiguousarray(widen(weights[f"{name}.bias"]))


def _norm(weights: Mapping[str, AnyArray], name: str) -> tuple[Array, Array]:
    weight, bias = widen(weights[f"{name}.weight"]), widen(weights[f"{name}.bias"])
    return np.ascontiguousarray(weight), np.ascontiguousarray(bias)


def _stored(weight: AnyArray) -> _Stored:
    """Return numbers as they are kept, those of 16 bits as their bits, and the name of their dtype."""
    weight = np.ascontiguousarray(weight)
    if not is_half(weight.dtype):
        return weight, "float32"
    return weight.view(np.uint16), "bfloat16" if weight.dtype == BFLOAT16 else "float16"


def _by_distance(table: Array, most: int) -> Array:
    """MPNet's bias for each head and each distance of key and query from −`most` to `most`, [N, 2 · most + 1]."""
    return np.ascontiguousarray(table[functional.distance_buckets(-np.arange(-most, most + 1))].T)


def _packed_places(
    mask: Mask | None, batch: int, length: int, *, visible_only: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return how the tokens of a batch are laid one behind the other.

    The place of each in its row, the visible ones of a row first; how many each row has, and how many are visible.
    """
    if mask is None:
        everything = np.full(batch, length)
        return np.tile(np.arange(length), batch), everything, everything
    keys = np.count_nonzero(mask, axis=1)  # [B]
    order = np.argsort(~mask, axis=1, kind="stable")  # [B, S]
    if not visible_only:
        return order.reshape(-1), np.full(batch, length), keys
    counts = keys + ~mask[:, 0]
    # The first hidden place is the row's first place where that is hidden.
    return order[np.arange(length) < counts[:, None]], counts, keys
