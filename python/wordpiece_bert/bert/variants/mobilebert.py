"""MobileBERT: a deep and narrow BERT for small devices (Sun et al. 2020); the formulas are in `bert.bottleneck`.

The vector of a token also depends on the words beside it, those of the padding included, as in transformers: a row
gives slightly other numbers when it is padded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from wordpiece_bert.bert.bottleneck import Bottleneck
from wordpiece_bert.bert.checkpoint.names import POOLER, Layout, Shape, dense_shapes, norm_shapes
from wordpiece_bert.bert.config import SIZES, BertConfig, refuse
from wordpiece_bert.bert.engines.packing import quantized_table
from wordpiece_bert.bert.half_precision import widen
from wordpiece_bert.bert.heads.bert import BertForSequenceClassification
from wordpiece_bert.bert.heads.kinds import MaskedLM, MaskedLMHead, MaskedLMNames
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.quantized import Int8Weight, StoredInt8Weight, TransposedInt8Weight
from wordpiece_bert.bert.stored_tensor import loaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.bert.heads.base import HeadWeights

__all__ = [
    "MobileBertConfig",
    "MobileBertForMaskedLM",
    "MobileBertForSequenceClassification",
    "MobileBertModel",
]

_NORMS = ("no_norm", "layer_norm")


@dataclass(frozen=True, kw_only=True)
class MobileBertConfig(BertConfig):
    """Sizes and settings of a MobileBERT model: the fields of `BertConfig`, and these.

    Attributes
    ----------
    embedding_size : int
        E, width of the word table.
    intra_bottleneck_size : int
        h, the width within a layer, if `use_bottleneck`.
    num_feedforward_networks : int
        Feed-forward networks of each layer.
    trigram_input : bool
        Whether the vector of a word is joined with those of its neighbours.
    use_bottleneck : bool
        Whether layers have the width h instead of H.
    use_bottleneck_attention : bool
        Whether queries, keys and values are computed from the narrow input.
    key_query_shared_bottleneck : bool
        Whether queries and keys are computed from a second narrow input.
    normalization_type : str
        ``"no_norm"`` or ``"layer_norm"``.
    classifier_activation : bool
        Whether the pooler is a dense layer and tanh; else it is the first token.

    Examples
    --------
    Token vectors have the width 512, and within a layer 128:

    >>> from wordpiece_bert.bert import MobileBertConfig
    >>> config = MobileBertConfig()
    >>> config.hidden_size, config.true_hidden_size, config.head_size
    (512, 128, 32)
    """

    hidden_size: int = 512
    num_hidden_layers: int = 24
    num_attention_heads: int = 4
    intermediate_size: int = 512
    hidden_act: str = "relu"
    embedding_size: int = 128
    intra_bottleneck_size: int = 128
    num_feedforward_networks: int = 4
    trigram_input: bool = True
    use_bottleneck: bool = True
    use_bottleneck_attention: bool = False
    key_query_shared_bottleneck: bool = True
    normalization_type: str = "no_norm"
    classifier_activation: bool = True
    model_type: str = "mobilebert"

    _sizes: ClassVar[tuple[str, ...]] = (
        *SIZES,
        "embedding_size",
        "intra_bottleneck_size",
        "num_feedforward_networks",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.normalization_type not in _NORMS:
            refuse("normalization_type", self.normalization_type, f"it must be one of {', '.join(_NORMS)}")
        for name in (
            "trigram_input",
            "use_bottleneck",
            "use_bottleneck_attention",
            "key_query_shared_bottleneck",
            "classifier_activation",
        ):
            if not isinstance(getattr(self, name), bool):
                refuse(name, getattr(self, name), "it must be true or false")
        if self.true_hidden_size != self.hidden_size and not (
            self.use_bottleneck_attention or self.key_query_shared_bottleneck
        ):
            why = "without use_bottleneck_attention, queries would come from vectors wider than their weights take"
            refuse("key_query_shared_bottleneck", self.key_query_shared_bottleneck, why)

    def _check_heads(self) -> None:
        super()._check_heads()
        if self.true_hidden_size % self.num_attention_heads:
            why = f"it must be a multiple of the {self.num_attention_heads} heads"
            refuse("intra_bottleneck_size", self.intra_bottleneck_size, why)

    @property
    def true_hidden_size(self) -> int:
        """Return h, the width within a layer."""
        return self.intra_bottleneck_size if self.use_bottleneck else self.hidden_size

    @property
    def head_size(self) -> int:
        """Return d = h / N, the size of one head."""
        return self.true_hidden_size // self.num_attention_heads

    @property
    def bottleneck(self) -> Bottleneck:
        """Return how the layers differ from those of BERT."""
        return Bottleneck(
            narrow=self.use_bottleneck,
            attention=self.use_bottleneck and self.use_bottleneck_attention,
            shared=self.use_bottleneck and self.key_query_shared_bottleneck,
            feed_forwards=self.num_feedforward_networks,
            trigrams=self.trigram_input,
            transformed=self.trigram_input or self.embedding_size != self.hidden_size,
            layer_norms=self.normalization_type == "layer_norm",
            pooler=self.classifier_activation,
        )


class MobileBertModel(BertModel):
    """The MobileBERT encoder."""

    config_class = MobileBertConfig
    _prefix = "mobilebert."

    @classmethod
    def _shapes(cls, config: BertConfig) -> dict[str, Shape]:
        assert isinstance(config, MobileBertConfig)
        words = config.embedding_size * (3 if config.trigram_input else 1)
        shapes: dict[str, Shape] = {
            "embeddings.word_embeddings.weight": ("vocab_size", "embedding_size"),
            "embeddings.position_embeddings.weight": ("max_position_embeddings", "hidden_size"),
            "embeddings.token_type_embeddings.weight": ("type_vocab_size", "hidden_size"),
            **dense_shapes("embeddings.embedding_transformation", words, "hidden_size"),
            **norm_shapes("embeddings.LayerNorm"),
        }
        for i in range(config.num_hidden_layers):
            shapes |= _layer_shapes(f"encoder.layer.{i}", config)
        return shapes | (
            dense_shapes("pooler.dense", "hidden_size", "hidden_size") if config.classifier_activation else {}
        )

    @classmethod
    def _layout(cls, config: BertConfig) -> Layout:
        layout = super()._layout(config)
        return layout._replace(optional=POOLER if POOLER[0] in layout.base else ())


def _layer_shapes(layer: str, config: MobileBertConfig) -> dict[str, Shape]:
    """Return the names and shapes of a layer's weights, those that are stored and not used among them."""
    narrow = "true_hidden_size"
    shapes: dict[str, Shape] = {}

    def add(name: str, size_in: str, size_out: str) -> None:
        """Add a dense layer and the norm after it."""
        shapes.update(dense_shapes(f"{name}.dense", size_in, size_out))
        shapes.update(norm_shapes(f"{name}.LayerNorm", size_out))

    for name in ("query", "key"):
        shapes |= dense_shapes(f"{layer}.attention.self.{name}", narrow, narrow)
    value = narrow if config.use_bottleneck_attention else "hidden_size"
    shapes |= dense_shapes(f"{layer}.attention.self.value", value, narrow)
    add(f"{layer}.attention.output", narrow, narrow)
    shapes |= dense_shapes(f"{layer}.intermediate.dense", narrow, "intermediate_size")
    add(f"{layer}.output", "intermediate_size", narrow)
    if config.use_bottleneck:
        add(f"{layer}.output.bottleneck", narrow, "hidden_size")
        add(f"{layer}.bottleneck.input", "hidden_size", narrow)
        if config.key_query_shared_bottleneck:
            add(f"{layer}.bottleneck.attention", "hidden_size", narrow)
    for j in range(config.num_feedforward_networks - 1):
        shapes |= dense_shapes(f"{layer}.ffn.{j}.intermediate.dense", narrow, "intermediate_size")
        add(f"{layer}.ffn.{j}.output", "intermediate_size", narrow)
    return shapes


class MobileBertForSequenceClassification(BertForSequenceClassification):
    """MobileBERT that classifies texts or pairs: logits [B, labels], over the pooler."""

    _base_model_class = MobileBertModel


#: The columns of the decoder that the word table does not have, [H − E, V].
_REST = "cls.predictions.dense.weight"


class MobileBertForMaskedLM(MaskedLM):
    """MobileBERT that predicts masked tokens: logits [B, S, V].

    The decoder's weight is the word table [V, E], followed by H − E more columns of its own.
    """

    _base_model_class = MobileBertModel
    _names = MaskedLMNames(
        dense="cls.predictions.transform.dense",
        norm="cls.predictions.transform.LayerNorm",
        decoder="cls.predictions.decoder",
        bias="cls.predictions.bias",
    )

    @classmethod
    def _head_shapes(cls, config: BertConfig) -> dict[str, Shape]:
        names = cls._names
        if config.embedding_size > config.hidden_size:
            refuse("embedding_size", config.embedding_size, f"it must be at most the hidden_size {config.hidden_size}")
        return {
            names.bias: ("vocab_size",),
            **dense_shapes(names.dense, "hidden_size", "hidden_size"),
            **norm_shapes(names.norm),
            _REST: (config.hidden_size - config.embedding_size, "vocab_size"),
            **dense_shapes(names.decoder, "embedding_size", "vocab_size"),
        }

    @classmethod
    def _renamed(
        cls, weights: Mapping[str, npt.NDArray[np.generic]], config: BertConfig, source: str
    ) -> Mapping[str, npt.NDArray[np.generic]]:
        weights = super()._renamed(weights, config, source)
        rest: Any = weights.get(_REST)
        if not isinstance(rest, Int8Weight | StoredInt8Weight):
            return weights
        renamed: dict[str, Any] = {**weights, _REST: TransposedInt8Weight(*loaded(rest))}
        return renamed

    def _stored(self, name: str, weight: AnyArray) -> AnyArray | Int8Weight:
        stored = super()._stored(name, weight)
        if name != _REST or self.dtype != "int8" or isinstance(stored, Int8Weight):
            return stored
        return TransposedInt8Weight(*quantized_table(np.ascontiguousarray(stored.T), _REST.removesuffix(".weight")))

    def _set_up_head(self, weights: HeadWeights) -> None:
        self._head = _MobileMaskedLMHead(weights, self._names, self.config)


class _MobileMaskedLMHead(MaskedLMHead):
    """logits = LN(activation(dense(x)))·[word table; more columns]ᵀ + bias."""

    def __init__(self, weights: HeadWeights, names: MaskedLMNames, config: BertConfig) -> None:
        super().__init__(weights, names, config)
        self._rest = weights.transposed_decoder(_REST)
        self._width = config.embedding_size

    def _decoder_weight(self) -> AnyArray:
        words, rest = super()._decoder_weight(), self._weights.weight(_REST)
        return np.concatenate([widen(words), widen(rest).T], axis=1)  # [V, H]

    def __call__(self, x: Array) -> Array:
        """[..., H] -> [..., V]."""
        t = self._transform(x)  # [..., H]
        logits = self._decoder(np.ascontiguousarray(t[..., : self._width]))
        if t.shape[-1] > self._width:
            logits += self._rest(np.ascontiguousarray(t[..., self._width :]))
        return logits
