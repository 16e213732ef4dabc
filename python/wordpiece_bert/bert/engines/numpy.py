"""The NumPy engine: the functions of `functional`, called one after the other over the weights of a checkpoint.

Weights are used as they are; those in half precision are widened when they are used, one layer at a time. Threads are
those of the BLAS library that NumPy was built with, so the argument `threads` of a call has no effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from wordpiece_bert.bert import functional
from wordpiece_bert.bert.bottleneck import attention_inputs, bottleneck_embeddings, bottleneck_layer
from wordpiece_bert.bert.engines.vocabulary import NumpyVocabularyHead
from wordpiece_bert.bert.half_precision import is_half, widen
from wordpiece_bert.bert.inputs import Inputs
from wordpiece_bert.bert.rotary import Rotation, rotation
from wordpiece_bert.bert.stored_tensor import loaded_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wordpiece_bert.bert.bottleneck import Weights
    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.engines.base import HeadLayers
    from wordpiece_bert.bert.functional import (
        Affine,
        Array,
        Embeddings,
        EmbeddingTable,
        Ids,
        Layer,
        Mask,
        PoolingMode,
    )

__all__ = ["NumpyDense", "NumpyEncoder", "NumpyEngine", "layer_heads"]


class NumpyEncoder:
    """The weights of one model and the forward pass over them, in NumPy."""

    #: Rows are padded to the longest of a batch.
    takes_rows = False

    def __init__(self, config: BertConfig, weights: Mapping[str, AnyArray]) -> None:
        #: The weights, in the layout of the checkpoint.
        self.weights = weights = loaded_all(weights)
        tree = _tree(weights)
        self._config = config
        self._word_table: AnyArray = tree["embeddings"]["word_embeddings"]["weight"]
        self._tables: Embeddings = tree["embeddings"]
        self._layers: list[Layer] = [tree["encoder"]["layer"][str(i)] for i in range(config.encoder_layers)]
        self._pooler: Affine | None = tree["pooler"]["dense"] if "pooler" in tree else None
        self._distances: EmbeddingTable | None = tree["encoder"].get("relative_attention_bias")
        self._last_norm: Affine | None = tree["encoder"].get("ln")
        self._half = any(is_half(weight.dtype) for weight in weights.values())
        # MPNet's bias for the last length seen. Threads may write it at once: equal lengths give equal arrays.
        self._bias: Array | None = None

    def forward(
        self,
        inputs: Inputs,
        *,
        hidden_states: bool,
        attentions: bool,
        visible_only: bool = False,
        threads: int | None = None,
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Run embeddings and all layers, as `base.Encoder.forward`; masked positions are computed in any case."""
        del visible_only, threads
        positions = self._position_dependent(inputs)
        states, weights = [], []
        # The weight of a masked key underflows to the 0 that it should be, whatever np.seterr has been set to.
        with np.errstate(under="ignore"):
            x = self._embeddings(inputs)  # [B, S, H]
            for stored in self._layers:
                if hidden_states:
                    states.append(x)
                layer: Layer = _widened(stored) if self._half else stored
                x, p = self._run_layer(x, layer, inputs.mask, positions)  # [B, S, H], [B, N, S, S]
                if attentions:
                    weights.append(p)
            if self._last_norm is not None:
                x = functional.layer_norm(x, **_widened(self._last_norm), eps=self._config.layer_norm_eps)
        return (*states, x), tuple(weights)

    def pooler(self, x: Array) -> Array | None:
        """[B, S, H] -> [B, H], as `functional.pooler`; None for a model without one."""
        if self._config.bottleneck is not None and not self._config.bottleneck.pooler:
            return np.ascontiguousarray(x[:, 0])
        if self._pooler is None:
            return None
        with np.errstate(under="ignore"):
            return functional.pooler(x, _widened(self._pooler))

    def pool(self, x: Array, mask: Mask, mode: PoolingMode, skip: int = 0) -> Array:
        """[B, S, H] -> [B, H], as `functional.pool`."""
        return functional.pool(x, mask, mode, skip)

    def pooled(self, ids: Ids, ends: Ids, modes: Sequence[PoolingMode], skip: int, threads: int | None) -> Array:
        """Pad the rows, run all layers and pool each row, as `base.Encoder.pooled`."""
        x, mask = self._padded_states(ids, ends, np.diff(ends), threads)  # [B, S, H], [B, S]
        return np.concatenate([self.pool(x, mask, mode, skip) for mode in modes], axis=1)

    def token_states(self, ids: Ids, ends: Ids, keys: Ids, threads: int | None) -> Array:
        """Pad the rows, run all layers and join the vectors of the tokens, as `base.Encoder.token_states`."""
        x, mask = self._padded_states(ids, ends, keys, threads)  # [B, S, H], [B, S]
        return x[mask]

    def _padded_states(self, ids: Ids, ends: Ids, keys: Ids, threads: int | None) -> tuple[Array, Mask]:
        """Pad the rows and run all layers: the last hidden state [B, S, H], and which of it are tokens [B, S]."""
        lengths = np.diff(ends)  # [B]
        columns = np.arange(lengths.max())  # [S]
        mask = columns < lengths[:, None]  # [B, S]
        visible = columns < keys[:, None]  # [B, S]
        padded = np.zeros(mask.shape, np.int64)  # [B, S]
        padded[mask] = ids
        vectors = None
        if self._config.bottleneck is not None:  # a token is joined with its neighbours, but not with padding
            vectors = widen(self._word_table[padded]) * mask[:, :, None]  # [B, S, E]
        inputs = Inputs(
            shape=mask.shape,
            input_ids=padded if vectors is None else None,
            inputs_embeds=vectors,
            token_type_ids=np.zeros((1, mask.shape[1]), np.int64),
            position_ids=self._config.default_positions(padded, mask.shape[1]),
            mask=None if visible.all() else visible,
        )
        (x,), _ = self.forward(inputs, hidden_states=False, attentions=False, threads=threads)  # [B, S, H]
        return x, mask

    def _embeddings(self, inputs: Inputs) -> Array:
        tables, vectors = self._tables, inputs.inputs_embeds
        if self._half:
            if vectors is None:  # widen the rows that are used, not the entire table
                vectors = widen(self._word_table[inputs.input_ids])
            tables = _widened({name: table for name, table in tables.items() if name != "word_embeddings"})
        kind = self._config.bottleneck
        if kind is not None:
            e = tables["word_embeddings"]["weight"][inputs.input_ids] if vectors is None else vectors  # [B, S, E]
            named = cast("Weights", tables)
            return bottleneck_embeddings(e, inputs.token_type_ids, inputs.position_ids, named, kind)
        return functional.embeddings(
            inputs.input_ids,
            inputs.token_type_ids,
            inputs.position_ids,
            tables,
            eps=self._config.layer_norm_eps,
            inputs_embeds=vectors,
        )

    def _position_dependent(self, inputs: Inputs) -> _Positions:
        """Return what the attention of all layers needs to know about positions."""
        frequencies = self._config.rotary_frequencies  # [d/2]
        return _Positions(
            None if self._distances is None else self._position_bias(self._distances, inputs.shape[1]),
            None if frequencies is None else rotation(inputs.position_ids, frequencies),
        )

    def _run_layer(self, x: Array, layer: Layer, mask: Mask | None, positions: _Positions) -> tuple[Array, Array]:
        """[B, S, H] -> [B, S, H] and the attention weights [B, N, S, S]."""
        config = self._config
        activation = functional.ACTIVATIONS[config.hidden_act]
        heads, eps = config.num_attention_heads, config.layer_norm_eps
        if config.bottleneck is not None:
            kind = config.bottleneck
            return bottleneck_layer(x, cast("Weights", layer), mask, kind, heads=heads, activation=activation, eps=eps)
        if config.norm_first:
            return functional.norm_first_layer(x, layer, mask, heads=heads, activation=activation, eps=eps)
        return functional.encoder_layer(
            x,
            layer,
            mask,
            heads=heads,
            activation=activation,
            eps=eps,
            position_bias=positions.bias,
            rotation=positions.rotation,
        )

    def _position_bias(self, distances: EmbeddingTable, length: int) -> Array:
        """Return MPNet's bias [1, N, S, S] for rows of this length."""
        bias = self._bias
        if bias is None or bias.shape[-1] != length:
            bias = self._bias = functional.relative_position_bias(length, widen(distances["weight"]))
        return bias


def layer_heads(
    x: Array, weights: Mapping[str, AnyArray], config: BertConfig, position_ids: Ids
) -> tuple[Array, Array, Array]:
    """Return the queries, keys and values of each head of one layer: x [B, S, H] -> q, k, v [B, N, S, d].

    The scores of the layer are q·kᵀ/√d, and in MPNet a bias.

    Parameters
    ----------
    x : ndarray
        The input of the layer, [B, S, H].
    weights : mapping of str to ndarray
        The weights of the layer, by BERT's names after ``encoder.layer.0.``.
    config : BertConfig
        The configuration of the model.
    position_ids : ndarray of int
        [B, S] or [1, S].
    """
    layer = _widened(_tree(weights))
    values, eps = x, config.layer_norm_eps
    if config.bottleneck is not None:
        _, x, values = attention_inputs(x, layer, config.bottleneck, eps)
    elif config.norm_first:
        x = values = functional.layer_norm(x, **layer["attention"]["ln"], eps=eps)
    frequencies = config.rotary_frequencies  # [d/2]
    return functional.queries_keys_values(
        x,
        **layer["attention"]["self"],
        heads=config.num_attention_heads,
        rotation=None if frequencies is None else rotation(position_ids, frequencies),
        values=values,
    )


class _Positions(NamedTuple):
    """What the attention of all layers needs to know about positions."""

    bias: Array | None  # [1, N, S, S], in MPNet
    rotation: Rotation | None  # in models with rotary positions


class NumpyDense:
    """`functional.linear` over the weights of a checkpoint."""

    #: Rows of a half-precision weight that are widened at once: 24 MB for a masked-language decoder of 768 columns.
    _BLOCK = 8192

    def __init__(self, weight: AnyArray, bias: AnyArray) -> None:
        self._weight, self._bias = weight, widen(bias)

    def __call__(self, x: Array) -> Array:
        """[..., in] -> [..., out]."""
        if not is_half(self._weight.dtype):
            return functional.linear(x, widen(self._weight), self._bias)
        blocks = range(0, len(self._weight), self._BLOCK)
        rows = [slice(start, start + self._BLOCK) for start in blocks]
        return np.concatenate([functional.linear(x, widen(self._weight[r]), self._bias[r]) for r in rows], axis=-1)


class NumpyEngine:
    """NumPy in float32."""

    def prepare(
        self, config: BertConfig, weights: Mapping[str, AnyArray], calibration: Sequence[Ids] | None = None
    ) -> NumpyEncoder:
        """Return an encoder over these weights; arrays are not copied."""
        del calibration
        return NumpyEncoder(config, weights)

    def dense(self, weight: AnyArray, bias: AnyArray) -> NumpyDense:
        """Return a dense layer over these weights, which are not copied."""
        return NumpyDense(weight, bias)

    def decoder(self, weight: AnyArray, bias: AnyArray) -> NumpyDense:
        """Return a dense layer over these weights, which are not copied."""
        return NumpyDense(weight, bias)

    def vocabulary_head(self, layers: HeadLayers) -> NumpyVocabularyHead:
        """Return a masked-language head that pools its logits."""
        return NumpyVocabularyHead(layers)

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        """x·Wᵀ + b, as `functional.linear`."""
        return functional.linear(x, weight, bias)


def _widened(tree: Any) -> Any:
    """Return a tree of weights with every array in float32."""
    return {name: _widened(part) for name, part in tree.items()} if isinstance(tree, dict) else widen(tree)


def _tree(weights: Mapping[str, AnyArray]) -> dict[str, Any]:
    """{"a.b.weight": w} -> {"a": {"b": {"weight": w}}}."""
    tree: dict[str, Any] = {}
    for name, weight in weights.items():
        *path, leaf = name.split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[leaf] = weight
    return tree
