"""The NumPy engine: the functions of `functional`, called one after the other over the weights of a checkpoint.

Weights are used as they are; those in half precision are widened when they are used, one layer at a time. Threads are
those of the BLAS library that NumPy was built with, so the argument `threads` of a call has no effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from wordpiece_bert.bert import functional
from wordpiece_bert.bert.bottleneck import attention_inputs, bottleneck_embeddings, bottleneck_layer
from wordpiece_bert.bert.disentangled import (
    RelativeTerms,
    convolution,
    disentangled_embeddings,
    disentangled_layer,
    relative_table,
    relative_terms,
)
from wordpiece_bert.bert.engines.vocabulary import NumpyVocabularyHead
from wordpiece_bert.bert.half_precision import is_half, widen
from wordpiece_bert.bert.inputs import Inputs
from wordpiece_bert.bert.rotary import frequencies, rotation
from wordpiece_bert.bert.stored_tensor import loaded_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
        Norm,
    )
    from wordpiece_bert.bert.rotary import Rotary, Rotation

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
        self._last_norm: Norm | None = tree["encoder"].get("ln")
        self._convolution: Any = tree["encoder"].get("conv")
        self._encoder_weights: Any = tree["encoder"]
        self._half = any(is_half(weight.dtype) for weight in weights.values())
        # The bias of scores for the last length seen. Threads may write it at once: equal lengths give equal arrays.
        self._bias: Array | None = None
        # The relative positions of DeBERTa, projected for each layer by the first call.
        self._terms: list[RelativeTerms] | None = None

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
        return self.run_layers(inputs, self.embedded(inputs), hidden_states=hidden_states, attentions=attentions)

    def embedded(self, inputs: Inputs) -> Array:
        """Return the input of the first layer, [B, S, H]."""
        with np.errstate(under="ignore"):
            return self._embeddings(inputs)

    def run_layers(
        self,
        inputs: Inputs,
        x: Array,
        first: int = 0,
        last: int | None = None,
        *,
        hidden_states: bool = False,
        attentions: bool = False,
        replaced: Mapping[int, Layer] | None = None,
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Run the layers from number `first` on, to the norm after the last or up to layer `last`.

        Parameters
        ----------
        inputs
            The rows; their ids or word vectors are not read.
        x
            The input of that layer, [B, S, H].
        first
            The number of the layer.
        last
            The number of the first layer that is not run; by default all are, and the norm after them.
        hidden_states
            Whether to return the input of each of these layers too.
        attentions
            Whether to return the attention weights.
        replaced
            Layers by their numbers, in place of those of the model.

        Returns
        -------
        tuple of ndarray
            As `base.Encoder.forward`: hidden states, of which the last is the output, and attention weights.
        """
        positions = self._position_dependent(inputs)
        embedded = x
        states: list[Array] = []
        weights: list[Array] = []
        # The weight of a masked key underflows to the 0 that it should be, whatever np.seterr has been set to.
        with np.errstate(under="ignore"):
            for index in range(first, len(self._layers) if last is None else last):
                if hidden_states:
                    states.append(x)
                layer = self.layer(index) if replaced is None or index not in replaced else replaced[index]
                # [B, S, H], and [B, N, S, S] if it is returned
                x, p = self._run_layer(x, index, layer, inputs.mask, positions, attentions=attentions)
                if index == 0 and self._convolution is not None:
                    x = self._convolve(x, embedded, inputs.mask)
                if attentions:
                    weights.append(p)
            if self._config.rms_norm and hidden_states:
                states.append(x)
            if self._last_norm is not None and last in (None, len(self._layers)):
                x = _norm(self._config)(x, **_widened(self._last_norm), eps=self._config.layer_norm_eps)
        return (*states, x), tuple(weights)

    def layer(self, index: int) -> Layer:
        """Return the weights of a layer in float32."""
        stored = self._layers[index]
        widened: Layer = _widened(stored) if self._half else stored
        return widened

    def pooler(self, x: Array) -> Array | None:
        """[B, S, H] -> [B, H], as `functional.pooler`; None for a model without one."""
        if self._config.bottleneck is not None and not self._config.bottleneck.pooler:
            return np.ascontiguousarray(x[:, 0])
        if self._pooler is None:
            return None
        with np.errstate(under="ignore"):
            return functional.pooler(x, _widened(self._pooler))

    def pooled(self, ids: Ids, ends: Ids, modes: Sequence[str], skip: int, threads: int | None) -> Array:
        """Pad the rows, run all layers and pool each row, as `base.Encoder.pooled`."""
        x, mask = self._padded_states(ids, ends, np.diff(ends), threads)  # [B, S, H], [B, S]
        return np.concatenate([functional.pool(x, mask, mode, skip) for mode in modes], axis=1)

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
        if self._config.disentangled is not None:
            return disentangled_embeddings(
                inputs.input_ids,
                inputs.token_type_ids,
                inputs.position_ids,
                inputs.mask,
                cast("Weights", tables),
                eps=self._config.layer_norm_eps,
                inputs_embeds=vectors,
            )
        return functional.embeddings(
            inputs.input_ids,
            inputs.token_type_ids,
            inputs.position_ids,
            tables,
            eps=self._config.layer_norm_eps,
            inputs_embeds=vectors,
            task_type_ids=inputs.task_type_ids,
        )

    def _position_dependent(self, inputs: Inputs) -> _Positions:
        """Return what the attention of all layers needs to know about positions."""
        kinds = {self._config.layer_positions(layer).rotary for layer in range(len(self._layers))}
        return _Positions(
            self._position_bias(inputs.shape[1]),
            {kind: rotation(inputs.position_ids, frequencies(*kind)) for kind in kinds if kind is not None},
        )

    def _run_layer(
        self, x: Array, index: int, layer: Layer, mask: Mask | None, positions: _Positions, *, attentions: bool
    ) -> tuple[Array, Array]:
        """[B, S, H] -> [B, S, H] and the attention weights [B, N, S, S], with layer number `index`.

        Without `attentions`, layers with a window may return none.
        """
        config = self._config
        rotary, window = config.layer_positions(index)
        rotated = None if rotary is None else positions.rotations[rotary]
        activation = functional.ACTIVATIONS[config.hidden_act]
        heads, eps = config.num_attention_heads, config.layer_norm_eps
        if config.bottleneck is not None:
            kind = config.bottleneck
            return bottleneck_layer(x, cast("Weights", layer), mask, kind, heads=heads, activation=activation, eps=eps)
        if config.disentangled is not None:
            terms = self._relative_terms()[index] if config.disentangled.has_terms else None
            return disentangled_layer(
                x, layer, mask, terms, config.disentangled, heads=heads, activation=activation, eps=eps
            )
        if config.norm_first:
            return functional.norm_first_layer(
                x,
                layer,
                mask,
                heads=heads,
                activation=activation,
                eps=eps,
                rotation=rotated,
                norm=_norm(config),
                window=window,
                in_blocks=not attentions,
            )
        return functional.encoder_layer(
            x,
            layer,
            mask,
            heads=heads,
            activation=activation,
            eps=eps,
            position_bias=positions.bias,
            rotation=rotated,
        )

    def _relative_terms(self) -> list[RelativeTerms]:
        """Return the projected relative positions of each layer of a DeBERTa; they depend on the weights alone."""
        kind, terms = self._config.disentangled, self._terms
        assert kind is not None, "only asked for in models with disentangled attention"
        if terms is None:
            names = ("rel_embeddings", "LayerNorm")
            weights = _widened({name: self._encoder_weights[name] for name in names if name in self._encoder_weights})
            table = relative_table(weights, kind, self._config.layer_norm_eps)  # [2K, H]
            attention = (_widened(layer["attention"]["self"]) for layer in self._layers)
            terms = self._terms = [relative_terms(table, one, kind) for one in attention]
        return terms

    def _convolve(self, x: Array, embedded: Array, mask: Mask | None) -> Array:
        """Add the convolution of a DeBERTa after its first layer, [B, S, H] -> [B, S, H]."""
        kind = self._config.disentangled
        assert kind is not None
        assert kind.convolution is not None, "there are weights of a convolution"
        eps = self._config.layer_norm_eps
        return convolution(x, embedded, mask, _widened(self._convolution), kind.convolution, eps)

    def _position_bias(self, length: int) -> Array | None:
        """Return the bias [1, N, S, S] of MPNet, or ALiBi's, for rows of this length; None in other models."""
        bias, slopes = self._bias, self._config.alibi_slopes
        if bias is None or bias.shape[-1] != length:
            if self._distances is not None:
                bias = functional.relative_position_bias(length, widen(self._distances["weight"]))
            elif slopes is not None:
                bias = functional.linear_bias(length, slopes)
            self._bias = bias
        return bias


def layer_heads(
    layer: int, x: Array, weights: Mapping[str, AnyArray], config: BertConfig, position_ids: Ids
) -> tuple[Array, Array, Array]:
    """Return the queries, keys and values of each head of one layer: x [B, S, H] -> q, k, v [B, N, S, d].

    The scores of the layer are q·kᵀ/√d, and in MPNet and Jina-BERT a bias; in DeBERTa those of `disentangled_scores`.

    Parameters
    ----------
    layer : int
        The number of the layer.
    x : ndarray
        The input of the layer, [B, S, H].
    weights : mapping of str to ndarray
        The weights of the layer, by BERT's names after ``encoder.layer.0.``.
    config : BertConfig
        The configuration of the model.
    position_ids : ndarray of int
        [B, S] or [1, S].
    """
    tree = _widened(_tree(weights))
    values, eps = x, config.layer_norm_eps
    if config.bottleneck is not None:
        _, x, values = attention_inputs(x, tree, config.bottleneck, eps)
    elif config.norm_first and "ln" in tree["attention"]:
        x = values = _norm(config)(x, **tree["attention"]["ln"], eps=eps)
    rotary = config.layer_positions(layer).rotary
    attention: Any = tree["attention"]["self"]  # DeBERTa has more layers there
    return functional.queries_keys_values(
        x,
        **{name: attention[name] for name in ("query", "key", "value")},
        heads=config.num_attention_heads,
        rotation=None if rotary is None else rotation(position_ids, frequencies(*rotary)),
        values=values,
        norms=functional.query_key_norm(tree["attention"], eps),
    )


def _norm(config: BertConfig) -> Callable[..., Array]:
    """Return the norm of the layers."""
    return functional.rms_norm if config.rms_norm else functional.layer_norm


class _Positions(NamedTuple):
    """What the attention of all layers needs to know about positions."""

    bias: Array | None  # [1, N, S, S], in MPNet and Jina-BERT
    rotations: Mapping[Rotary, Rotation]  # in models with rotary positions, of which layers may have different ones


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
