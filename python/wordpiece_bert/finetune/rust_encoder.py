"""The encoder's forward and backward pass in the Rust kernels, over the parameters' own arrays.

It computes what `wordpiece_bert.finetune.encoder` does, on all threads. The crate ``rust/kernels`` has the computation,
in its module ``training``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert import functional
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.encoder import EncoderPass
from wordpiece_bert.finetune.network import Gradients, Network, dropout_rate
from wordpiece_bert.finetune.weights import EncoderWeights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.finetune.passes import PassOptions
    from wordpiece_bert.finetune.tokens import Tokens

__all__ = ["RustEncoderPass", "new_workspace"]

#: The parts of a layer, in the order of the kernels.
_PARTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)


def new_workspace(network: Network, instruction_set: str | None, dtype: str) -> _core.EncoderTraining:
    """Return the buffers of a pass over a model of these sizes."""
    config = network.config
    return _core.EncoderTraining(
        hidden=config.hidden_size,
        embedding=config.embedding_size,
        heads=config.num_attention_heads,
        intermediate=config.intermediate_size,
        # The kernels call each activation by the name of its function.
        activation=functional.ACTIVATIONS[config.hidden_act].__name__,
        eps=config.layer_norm_eps,
        drops_attention_output=bool(network.training.attention_output_rate),
        dtype=dtype,
        instruction_set=instruction_set,
    )


@completed_by(EncoderPass)
class RustEncoderPass:
    """One forward pass over a batch, and its backward pass; as `encoder.EncoderPass`.

    The parameters are float32, stored row by row, and dropout is None or keyed.

    Parameters
    ----------
    workspace
        From `new_workspace`; used by one pass at a time.
    threads : int, optional
        How many threads; None for the default. The bits do not depend on it.
    release : callable
        Called after the backward pass, when another pass may use `workspace`.

    Attributes
    ----------
    x : array
        The output x_L of the last layer, [M, H].
    """

    def __init__(
        self,
        workspace: _core.EncoderTraining,
        network: Network,
        parameters: Mapping[str, Array],
        tokens: Tokens,
        options: PassOptions,
        *,
        threads: int | None = None,
        release: Callable[[], None],
    ) -> None:
        self._workspace, self._network, self._threads, self._release = workspace, network, threads, release
        self._tokens, self._trained_from = tokens, options.trained_from
        dropout = options.dropout
        assert dropout is None or isinstance(dropout, KeyedDropout), "given masks are for NumPy"
        config = network.config
        self._weights = weights = EncoderWeights(network, parameters)
        # The layers that have parameters of their own, by the first that has them.
        keys = [network.layer(f"encoder.layer.{i}.{_PARTS[0]}") for i in range(config.encoder_layers)]
        self._layers = [keys.index(key) for key in dict.fromkeys(keys)]
        uses = [self._layers.index(keys.index(key)) for key in keys]
        words = weights.table("embeddings.word_embeddings") if tokens.vectors is None else tokens.vectors
        self._parameters = (
            (
                np.ascontiguousarray(words, np.float32),
                weights.table("embeddings.position_embeddings"),
                weights.table("embeddings.token_type_embeddings") if config.type_vocab_size else None,
                self._affine("embeddings.LayerNorm"),
                self._affine("embeddings.projection") if config.has_projection else None,
            ),
            [[self._affine(f"encoder.layer.{i}.{part}") for part in _PARTS] for i in self._layers],
            uses,
            self._distances(),
        )
        rates = dropout_rate(config, "hidden_dropout_prob"), dropout_rate(config, "attention_probs_dropout_prob")
        self.x: Array = workspace.forward(
            self._parameters,
            (
                tokens.starts,
                tokens.visible,
                None if tokens.ids is None else _unsigned(tokens.ids),
                _unsigned(tokens.types),
                _unsigned(tokens.positions),
                _unsigned(tokens.columns),
            ),
            None if dropout is None else (*dropout.key, *rates),
            options.trained_from,
            options.gradient_checkpointing,
            threads,
        )

    def _affine(self, name: str) -> tuple[Array, Array]:
        """Return weight and bias of a dense layer or a norm; zeros for a bias that it does not have."""
        weight, bias = self._weights.affine(name)
        return weight, np.zeros(len(weight), np.float32) if bias is None else bias

    def _buckets(self) -> Ids:
        """Return MPNet's bucket of each distance key − query, from 1 − S to S − 1."""
        longest = self._tokens.shape[1] - 1
        return functional.distance_buckets(-np.arange(-longest, longest + 1))

    def _distances(self) -> Array | None:
        """Return MPNet's bias for each head and distance, [N, 2·S − 1]; None for other models."""
        if not self._network.config.relative_attention_num_buckets:
            return None
        table = self._weights.table("encoder.relative_attention_bias")  # [32, N]
        return np.ascontiguousarray(table[self._buckets()].T)

    def backward(self, dx: Array, gradient: Gradients) -> Array | None:
        """Add the gradients of all trained parameters of the encoder; as `encoder.EncoderPass.backward`."""
        config, trained_from = self._network.config, self._trained_from
        (words, positions, types, norm, projection), layers, uses, distances = self._parameters
        trained = set(uses[trained_from:])
        # Layers that are not trained are not written: their gradients need no memory.
        layer_gradients = [
            [_empty(pair) if i in trained else (np.empty(0, np.float32), np.empty(0, np.float32)) for pair in layer]
            for i, layer in enumerate(layers)
        ]
        embeddings: Any = None
        if trained_from is None:
            padding = config.pad_token_id
            embeddings = (
                None if self._tokens.ids is None else (np.zeros(words.shape, np.float32), padding),
                # MPNet's position table has a row for padding, which torch does not train.
                (np.zeros(positions.shape, np.float32), padding if config.relative_attention_num_buckets else None),
                None if types is None else np.zeros(types.shape, np.float32),
                _empty(norm),
                None if projection is None else _empty(projection),
            )
        dbias = None if distances is None else np.empty_like(distances)
        de = self._workspace.backward(
            self._parameters, np.ascontiguousarray(dx, np.float32), embeddings, layer_gradients, dbias, self._threads
        )
        self._release()
        for i, (number, pairs) in enumerate(zip(self._layers, layer_gradients, strict=True)):
            for part, pair in zip(_PARTS, pairs, strict=True):
                if i in trained:
                    self._weights.add(gradient, f"encoder.layer.{number}.{part}", *pair)
        if dbias is not None:
            self._bias_backward(dbias, gradient)
        if embeddings is not None:
            self._embeddings_backward(embeddings, gradient)
        return de

    def _bias_backward(self, dbias: Array, gradient: Gradients) -> None:
        """Add the sums over the distances of each bucket; dbias [N, 2·S − 1]."""
        count, buckets = self._network.config.relative_attention_num_buckets, self._buckets()
        sums = [np.bincount(buckets, weights=head, minlength=count) for head in dbias]
        self._weights.add(gradient, "encoder.relative_attention_bias", np.stack(sums, axis=1).astype(np.float32))

    def _embeddings_backward(self, embeddings: Any, gradient: Gradients) -> None:
        words, (positions, _), types, norm, projection = embeddings
        add = self._weights.add
        if words is not None:
            add(gradient, "embeddings.word_embeddings", words[0])
        add(gradient, "embeddings.position_embeddings", positions)
        if types is not None:
            add(gradient, "embeddings.token_type_embeddings", types)
        add(gradient, "embeddings.LayerNorm", *norm)
        if projection is not None:
            add(gradient, "embeddings.projection", *projection)


def _empty(pair: tuple[Array, Array]) -> tuple[Array, Array]:
    return np.empty(pair[0].shape, np.float32), np.empty(pair[1].shape, np.float32)


def _unsigned(ids: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    return np.ascontiguousarray(ids, np.uint32)
