"""NeoBERT: an encoder with RMS norms before the sub-layers, rotary positions and a gated feed-forward network.

Source: Le Breton et al. 2025, "NeoBERT: A Next-Generation BERT"; Zhang and Sennrich 2019, "Root Mean Square Layer
Normalization". The models have remote code, which is never run. In their files the queries, keys and values of each
head lie side by side, and the rotation takes neighbouring columns as pairs. Here queries and keys have the first
columns of all pairs before the second ones, so that the rotation is that of other models: their products are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from wordpiece_bert.bert.checkpoint.names import Shape, dense_shapes
from wordpiece_bert.bert.config import MUST_BE, SIZES, BertConfig, refuse
from wordpiece_bert.bert.engines.packing import quantized_table
from wordpiece_bert.bert.heads.kinds import MaskedLM, SequenceClassification
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.rotary import LayerPositions, Rotary
from wordpiece_bert.bert.stored_tensor import loaded
from wordpiece_bert.bert.variants.names import renamed
from wordpiece_bert.bert.variants.rotated import RotatedConfig
from wordpiece_bert.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.engines.base import VocabularyHead
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.bert.heads.base import HeadWeights
    from wordpiece_bert.bert.quantized import Int8Weight

__all__ = ["NeoBertConfig", "NeoBertForMaskedLM", "NeoBertForSequenceClassification", "NeoBertModel"]

_NAMES = {
    "embeddings.word_embeddings.": "encoder.",
    "encoder.ln.": "layer_norm.",
    "encoder.layer.": "transformer_encoder.",
    ".attention.ln.": ".attention_norm.",
    ".attention.self.": ".qkv.",
    ".attention.output.dense.": ".wo.",
    ".intermediate.": ".ffn.w12.",
    ".output.dense.": ".ffn.w3.",
    ".ln.": ".ffn_norm.",
}

#: The weights of a layer that a tensor ``qkv`` holds, in its order.
_PARTS = ("query", "key", "value")
_THETA = 10_000.0


@dataclass(frozen=True, kw_only=True)
class NeoBertConfig(RotatedConfig):
    """Sizes and settings of a NeoBERT model: the fields of `BertConfig`, some of which have other names in files.

    Attributes
    ----------
    intermediate_size : int
        F, of which the gated feed-forward network has two thirds, rounded up to a multiple of 8.
    max_position_embeddings : int
        The longest row in tokens; ``max_length`` in config.json.
    layer_norm_eps : float
        ε of the norms; ``norm_eps`` in config.json.

    Examples
    --------
    >>> from wordpiece_bert.bert import NeoBertConfig
    >>> config = NeoBertConfig(hidden_size=768, intermediate_size=3072)
    >>> config.gated_size, config.rms_norm
    (2048, True)
    """

    num_hidden_layers: int = 28
    hidden_act: str = "silu"
    max_position_embeddings: int = 1024
    type_vocab_size: int = 0
    layer_norm_eps: float = 1e-6
    model_type: str = "neobert"

    has_pooler: ClassVar[bool] = False
    _sizes: ClassVar[tuple[str, ...]] = SIZES[:-1]
    _fixed: ClassVar[tuple[str, ...]] = ("type_vocab_size",)
    _names_in_file: ClassVar[Mapping[str, str]] = {
        "max_position_embeddings": "max_length",
        "layer_norm_eps": "norm_eps",
    }
    _must_be: ClassVar[Mapping[str, object]] = {**MUST_BE, "rms_norm": True, "rope": True, "ngpt": False}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_act != "silu":
            refuse("hidden_act", self.hidden_act, "the gate of NeoBERT is silu, in config.json swiglu")

    @property
    def gated_size(self) -> int:
        """Return the width of the gated feed-forward network."""
        return 8 * -(-(2 * self.intermediate_size // 3) // 8)

    @property
    def longest_row(self) -> int:
        """Return the longest row: the rotation of the reference is a table of `max_position_embeddings` rows."""
        return self.max_position_embeddings

    @property
    def norm_first(self) -> bool:
        """Return True."""
        return True

    @property
    def rms_norm(self) -> bool:
        """Return True."""
        return True

    def _positions_of_layer(self, layer: int) -> LayerPositions:
        del layer
        return LayerPositions(Rotary(self.head_size, _THETA))

    @classmethod
    def _in_present_form(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        name = values.get("hidden_act", "swiglu")
        if not isinstance(name, str) or name.lower() != "swiglu":
            refuse("hidden_act", name, "supported is swiglu; results would be wrong")
        return super()._in_present_form({**values, "hidden_act": "silu"})

    def to_dict(self) -> dict[str, Any]:
        """Return the content of a ``config.json``.

        Returns
        -------
        dict
            The fields by name.

        Examples
        --------
        >>> from wordpiece_bert.bert import NeoBertConfig
        >>> content = NeoBertConfig().to_dict()
        >>> content["hidden_act"], content["max_length"]
        ('swiglu', 1024)
        """
        return super().to_dict() | {"hidden_act": "swiglu", "rms_norm": True, "rope": True}


class NeoBertModel(BertModel):
    """The NeoBERT encoder. It has no pooler, and hidden_states are the outputs of the layers, before the last norm."""

    config_class = NeoBertConfig
    _prefix = "model."
    _layers = "transformer_encoder."
    _pretraining_heads = ("decoder.",)
    _fused: ClassVar[Mapping[str, tuple[str, ...]]] = {"ffn.w12": ("ffn.w12.gate", "ffn.w12.up")}
    _layers_only: ClassVar[bool] = True

    @classmethod
    def _shapes(cls, config: BertConfig) -> dict[str, Shape]:
        shapes: dict[str, Shape] = {"embeddings.word_embeddings.weight": ("vocab_size", "hidden_size")}
        for i in range(config.num_hidden_layers):
            layer = f"encoder.layer.{i}"
            shapes |= {f"{layer}.attention.ln.weight": ("hidden_size",), f"{layer}.ln.weight": ("hidden_size",)}
            for name in (
                "attention.self.query",
                "attention.self.key",
                "attention.self.value",
                "attention.output.dense",
            ):
                shapes |= dense_shapes(f"{layer}.{name}", "hidden_size", "hidden_size", bias=False)
            for name in ("gate", "up"):
                shapes |= dense_shapes(f"{layer}.intermediate.{name}", "hidden_size", "gated_size", bias=False)
            shapes |= dense_shapes(f"{layer}.output.dense", "gated_size", "hidden_size", bias=False)
        return shapes | {"encoder.ln.weight": ("hidden_size",)}

    @classmethod
    def _name_in_checkpoint(cls, name: str, config: BertConfig) -> str:
        """Return the name in a checkpoint of NeoBERT for one of BERT's names."""
        del config
        return renamed(name, _NAMES)

    @classmethod
    def _renamed(
        cls, weights: Mapping[str, npt.NDArray[np.generic]], config: BertConfig, source: str
    ) -> Mapping[str, npt.NDArray[np.generic]]:
        """Split the tensors that hold several weights."""
        found: dict[str, Any] = {}
        n, d, h = config.num_attention_heads, config.head_size, config.hidden_size
        for name, tensor in super()._renamed(weights, config, source).items():
            if not name.endswith(".qkv.weight"):
                found[name] = tensor
                continue
            if tensor.shape != (3 * h, h):
                expected = [3 * h, h]
                raise CheckpointError(
                    f"{source}: {name} has shape {list(tensor.shape)}, but the configuration requires {expected}"
                )
            heads = loaded(tensor).reshape(n, 3, d, h)
            for i, part in enumerate(_PARTS):
                rows = heads[:, i] if part == "value" else heads[:, i][:, _by_halves(d)]
                found[name.replace(".qkv.", f".qkv.{part}.")] = rows.reshape(h, h)
        return found

    @classmethod
    def _as_written(
        cls, weights: Iterator[tuple[str, AnyArray | Int8Weight]], config: BertConfig
    ) -> Iterator[tuple[str, AnyArray | Int8Weight]]:
        """Join queries, keys and values as a file has them; int8 weights stay apart, since each has its own factors."""
        n, d, h = config.num_attention_heads, config.head_size, config.hidden_size
        kept: list[Any] = []
        for name, weight in weights:
            part = next((part for part in _PARTS if f".qkv.{part}." in name), None)
            if part is None or not isinstance(weight, np.ndarray):
                yield name, weight
                continue
            heads = weight.reshape(n, d, h)
            kept.append(heads if part == "value" else heads[:, np.argsort(_by_halves(d))])
            if part == "value":
                yield name.replace(".qkv.value.", ".qkv."), np.stack(kept, axis=1).reshape(3 * h, h)
                kept = []


def _by_halves(size: int) -> npt.NDArray[np.intp]:
    """Return the columns of a head with the first of each pair of neighbours before the second ones, [d]."""
    return np.concatenate([np.arange(0, size, 2), np.arange(1, size, 2)])


class NeoBertForMaskedLM(MaskedLM):
    """NeoBERT that predicts masked tokens: logits [B, S, V], a dense layer over x_L that is not the word table."""

    _base_model_class = NeoBertModel

    @classmethod
    def _head_shapes(cls, config: BertConfig) -> dict[str, Shape]:
        del config
        return dense_shapes("decoder", "hidden_size", "vocab_size")

    @classmethod
    def _tied(cls) -> dict[str, str]:
        return {}

    def _stored(self, name: str, weight: AnyArray) -> AnyArray | Int8Weight:
        if self.dtype == "int8" and name == "decoder.weight":
            return quantized_table(weight, "decoder")
        return super()._stored(name, weight)

    def _set_up_head(self, weights: HeadWeights) -> None:
        self._decoder = weights.decoder("decoder")

    def predict(self, x: Array) -> Array:
        """Run the head only, over any token vectors, [..., H] -> [..., V].

        Parameters
        ----------
        x : ndarray of float32
            Token vectors [..., H].

        Returns
        -------
        ndarray of float32
            The logits [..., V].

        Examples
        --------
        >>> from wordpiece_bert.bert import NeoBertConfig, NeoBertForMaskedLM
        >>> config = NeoBertConfig(vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96)
        >>> model = NeoBertForMaskedLM.from_config(config)
        >>> x = model.base_model([[2, 17, 4, 3]]).last_hidden_state
        >>> model.predict(x[0, 2]).shape
        (100,)
        """
        return self._decoder(x)

    def vocabulary_head(self) -> VocabularyHead:
        """Refuse: sparse vectors are pooled from heads with a hidden layer.

        Raises
        ------
        ConfigError
            Always.

        Examples
        --------
        >>> from wordpiece_bert.bert import NeoBertConfig, NeoBertForMaskedLM
        >>> config = NeoBertConfig(vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96)
        >>> NeoBertForMaskedLM.from_config(config).vocabulary_head()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        wordpiece_bert.errors.ConfigError: ... the head of NeoBERT has no hidden layer; sparse encoders need one
        """
        raise ConfigError(f"{self.source}: the head of NeoBERT has no hidden layer; sparse encoders need one")


class NeoBertForSequenceClassification(SequenceClassification):
    """NeoBERT that classifies texts or pairs: logits [B, labels], over tanh(dense(first token))."""

    _base_model_class = NeoBertModel
    _hidden = ("dense", "tanh")
