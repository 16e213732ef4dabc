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
from wordpiece_bert.bert.rotary import frequencies
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.encoder import EncoderPass
from wordpiece_bert.finetune.network import Gradients, Network, dropout_rate
from wordpiece_bert.finetune.rust_disentangled import DisentangledArrays
from wordpiece_bert.finetune.rust_pairs import gradient_of, pair, pair_if_any
from wordpiece_bert.finetune.weights import EncoderWeights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.finetune.passes import PassOptions
    from wordpiece_bert.finetune.rust_pairs import Pair
    from wordpiece_bert.finetune.tokens import Tokens

__all__ = ["RustEncoderPass", "new_workspace"]

#: The dense layers and norms of a layer, in the order of the kernels: lists of those that have one place together. The
#: first norm is that after the attention or, where norms come first, before it; the second likewise.
_LAST = (
    ("attention.self.query", "attention.self.key", "attention.self.value"),
    ("attention.self.pos_key_proj", "attention.self.pos_query_proj"),
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "intermediate.up",
    "output.dense",
    "output.LayerNorm",
)
_FIRST = (*_LAST[:3], "attention.ln", "intermediate.gate", *_LAST[5:7], "ln")
_POSITIONS = "embeddings.position_embeddings"
_LAST_NORM = "encoder.ln"


def new_workspace(network: Network, instruction_set: str | None, dtype: str) -> _core.EncoderTraining:
    """Return the buffers of a pass over a model of these sizes.

    Raises
    ------
    InputError
        The kernels have no backward pass for this family.
    """
    if not network.training.kernels:
        name = network.model_class.__name__
        raise InputError(f"{name} is trained in NumPy alone: the kernels have no backward pass for it")
    config = network.config
    return _core.EncoderTraining(
        hidden=config.hidden_size,
        embedding=config.embedding_size,
        heads=config.num_attention_heads,
        intermediate=config.intermediate_size,
        # The kernels call each activation by the name of its function.
        activation=functional.ACTIVATIONS[config.hidden_act].__name__,
        eps=config.layer_norm_eps,
        norm_first=config.norm_first,
        gated=network.training.gated,
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
        keys = [network.layer(f"encoder.layer.{i}.{_LAST[0][0]}") for i in range(config.encoder_layers)]
        self._layers = [keys.index(key) for key in dict.fromkeys(keys)]
        uses = [self._layers.index(keys.index(key)) for key in keys]
        self._parts = _FIRST if config.norm_first else _LAST
        kind = config.disentangled
        self._disentangled = None if kind is None else DisentangledArrays(kind, weights)
        words = weights.table("embeddings.word_embeddings") if tokens.vectors is None else tokens.vectors
        self._parameters: Any = (
            (
                np.ascontiguousarray(words, np.float32),
                weights.table(_POSITIONS) if _POSITIONS in weights else None,
                weights.table("embeddings.token_type_embeddings") if config.type_vocab_size else None,
                pair(weights, "embeddings.LayerNorm"),
                pair_if_any(weights, "embeddings.projection"),
            ),
            [tuple(self._layer(i, part) for part in self._parts) for i in self._layers],
            uses,
            self._distances(),
            pair_if_any(weights, _LAST_NORM),
            self._by_position(),
            None if self._disentangled is None else self._disentangled.parameters,
        )
        training = network.training
        sites = (
            training.embedding_rate,
            ("attention_probs_dropout_prob",),
            training.attention_output_rate,
            training.intermediate_rate,
            training.output_rate,
            training.output_rate,
            ("hidden_dropout_prob",),
        )
        rates = [dropout_rate(config, *rate) for rate in sites]
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
            None if dropout is None else (list(dropout.key), rates),
            options.trained_from,
            options.gradient_checkpointing,
            threads,
        )

    def _layer(self, index: int, part: str | tuple[str, ...]) -> Any:
        """Return what a layer has at one of its places."""
        name = f"encoder.layer.{index}."
        if isinstance(part, str):
            return pair_if_any(self._weights, name + part)
        return [pair_if_any(self._weights, name + one) for one in part]

    def _by_position(self) -> tuple[list[Array], list[tuple[int | None, int | None]]]:
        """Return the frequencies of rotary positions, and for each layer the number of its own, and its window."""
        config = self._network.config
        kinds = [config.layer_positions(i) for i in range(config.encoder_layers)]
        rotaries = list(dict.fromkeys(kind.rotary for kind in kinds if kind.rotary is not None))
        numbers = [(None if kind.rotary is None else rotaries.index(kind.rotary), kind.window) for kind in kinds]
        return [frequencies(*rotary) for rotary in rotaries], numbers

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
        (words, positions, types, norm, projection), layers, uses, distances, last_norm, *_ = self._parameters
        trained = set(uses[trained_from:])
        # Layers that are not trained are not written: their gradients need no memory.
        layer_gradients = [
            tuple(gradient_of(part, written=i in trained) for part in layer) for i, layer in enumerate(layers)
        ]
        embeddings: Any = None
        if trained_from is None:
            padding = config.pad_token_id
            # MPNet's position table has a row for padding, which torch does not train.
            of_positions = padding if config.relative_attention_num_buckets else None
            embeddings = (
                None if self._tokens.ids is None else (np.zeros(words.shape, np.float32), padding),
                None if positions is None else (np.zeros(positions.shape, np.float32), of_positions),
                None if types is None else np.zeros(types.shape, np.float32),
                gradient_of(norm),
                gradient_of(projection),
            )
        dbias = None if distances is None else np.empty_like(distances)
        dlast = gradient_of(last_norm)
        # All layers read what is of none of them.
        kind = self._disentangled if trained_from in {None, 0} else None
        dkind = None if kind is None else kind.gradients()
        de = self._workspace.backward(
            self._parameters,
            np.ascontiguousarray(dx, np.float32),
            embeddings,
            layer_gradients,
            dbias,
            dlast,
            dkind,
            self._threads,
        )
        self._release()
        for i, (number, found) in enumerate(zip(self._layers, layer_gradients, strict=True)):
            if i in trained:
                for part, pairs in zip(self._parts, found, strict=True):
                    names, of_part = (part, pairs) if isinstance(part, tuple) else ((part,), [pairs])
                    for name, pair in zip(names, of_part, strict=True):
                        self._add(f"encoder.layer.{number}.{name}", pair, gradient)
        self._add(_LAST_NORM, dlast, gradient)
        if kind is not None:
            kind.add(dkind, gradient)
        if dbias is not None:
            self._bias_backward(dbias, gradient)
        if embeddings is not None:
            self._embeddings_backward(embeddings, gradient)
        return de

    def _add(self, name: str, pair: Pair | None, gradient: Gradients) -> None:
        """Add the gradients of a dense layer or a norm, if the model has it."""
        if pair is not None:
            self._weights.add(gradient, name, *pair)

    def _bias_backward(self, dbias: Array, gradient: Gradients) -> None:
        """Add the sums over the distances of each bucket; dbias [N, 2·S − 1]."""
        count, buckets = self._network.config.relative_attention_num_buckets, self._buckets()
        sums = [np.bincount(buckets, weights=head, minlength=count) for head in dbias]
        self._weights.add(gradient, "encoder.relative_attention_bias", np.stack(sums, axis=1).astype(np.float32))

    def _embeddings_backward(self, embeddings: Any, gradient: Gradients) -> None:
        words, positions, types, norm, projection = embeddings
        for name, table in (("word", words), ("position", positions)):
            if table is not None:
                self._weights.add(gradient, f"embeddings.{name}_embeddings", table[0])
        if types is not None:
            self._weights.add(gradient, "embeddings.token_type_embeddings", types)
        self._add("embeddings.LayerNorm", norm, gradient)
        self._add("embeddings.projection", projection, gradient)


def _unsigned(ids: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    return np.ascontiguousarray(ids, np.uint32)
