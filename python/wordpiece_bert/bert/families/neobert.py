"""NeoBERT: an encoder with RMS norms before the sub-layers, rotary positions and a gated feed-forward network.

Source: Le Breton et al. 2025, "NeoBERT: A Next-Generation BERT"; Zhang and Sennrich 2019, "Root Mean Square Layer
Normalization". The models have remote code, which is never run. In their files the queries, keys and values of each
head lie side by side, and the rotation takes neighbouring columns as pairs. Here queries and keys have the first
columns of all pairs before the second ones, so that the rotation is as in other models: their products are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from wordpiece_bert.bert.checkpoint.fused import Place
from wordpiece_bert.bert.config import MUST_BE, SIZES, BertConfig, refuse
from wordpiece_bert.bert.engines.packing import quantized_table
from wordpiece_bert.bert.families.rotated_config import RotatedConfig
from wordpiece_bert.bert.heads.kinds import MaskedLM, MaskedLMNames, SequenceClassification
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.plan.building import attention, gated_mlp, norm_first, tables
from wordpiece_bert.bert.plan.parts import Embeddings, Norm, Plan
from wordpiece_bert.bert.rotary import Rotary
from wordpiece_bert.bert.stored_tensor import loaded
from wordpiece_bert.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.engines.engine_interface import VocabularyHead
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
    >>> config.gated_size, config.plan().last.kind
    (2048, 'rms')
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

    def _plan(self) -> Plan:
        """Return the layers of the model: RMS norms before the sub-layers, rotary positions, gates, and no dropout."""

        def norm(name: str) -> Norm:
            return Norm(name, self.layer_norm_eps, bias=False, kind="rms")

        rotary = Rotary(self.head_size, _THETA)
        layers = [
            norm_first(
                layer,
                attention(self, layer, biases=False, rotary=rotary, dropout=""),
                gated_mlp(self, layer, width="gated_size", output_bias=False),
                norm,
                dropout="",
            )
            for layer in range(self.num_hidden_layers)
        ]
        return Plan(Embeddings(tables(self), dropout=""), tuple(layers), norm("encoder.ln"))

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
    _renames = _NAMES
    _prefix = "model."
    _layers = "transformer_encoder."
    _pretraining_heads = ("decoder.",)
    _fused: ClassVar[Mapping[str, tuple[str, ...]]] = {"ffn.w12": ("ffn.w12.gate", "ffn.w12.up")}
    _layers_only: ClassVar[bool] = True

    @classmethod
    def _renamed(
        cls, weights: Mapping[str, npt.NDArray[np.generic]], config: BertConfig, source: str
    ) -> Mapping[str, npt.NDArray[np.generic]]:
        """Split the tensors that hold several weights."""
        found: dict[str, Any] = {}
        h = config.hidden_size
        for name, tensor in super()._renamed(weights, config, source).items():
            if not name.endswith(".qkv.weight"):
                found[name] = tensor
                continue
            if tensor.shape != (3 * h, h):
                expected = [3 * h, h]
                raise CheckpointError(
                    f"{source}: {name} has shape {list(tensor.shape)}, but the configuration requires {expected}"
                )
            whole = loaded(tensor)
            found |= {name.replace(".qkv.", f".qkv.{part}."): whole[_rows(part, config)] for part in _PARTS}
        return found

    @classmethod
    def _as_written(
        cls, weights: Iterator[tuple[str, AnyArray | Int8Weight]], config: BertConfig
    ) -> Iterator[tuple[str, AnyArray | Int8Weight]]:
        """Join queries, keys and values as a file has them; int8 weights stay apart, since each has its own factors."""
        whole = np.empty((0, 0), np.float32)
        for name, weight in weights:
            place = cls._place(name, config)
            if place.order is None or not isinstance(weight, np.ndarray):
                yield name, weight
                continue
            if place.part == 0:
                whole = np.empty((place.parts * len(weight), *weight.shape[1:]), weight.dtype)
            whole[place.order] = weight
            if place.part == place.parts - 1:
                yield place.tensor, whole

    @classmethod
    def _place(cls, name: str, config: BertConfig) -> Place:
        part = next((part for part in _PARTS if f".qkv.{part}." in name), None)
        if part is None:
            return super()._place(name, config)
        tensor = name.replace(f".qkv.{part}.", ".qkv.")
        return Place(tensor, _PARTS.index(part), len(_PARTS), _rows(part, config))


def _rows(part: str, config: BertConfig) -> npt.NDArray[np.intp]:
    """Return the rows of queries, keys or values in a tensor ``qkv``, in the order in which they are computed, [H]."""
    n, d = config.num_attention_heads, config.head_size
    rows = np.arange(3 * n * d).reshape(n, 3, d)[:, _PARTS.index(part)]  # [N, d]
    if part != "value":
        rows = np.concatenate([rows[:, 0::2], rows[:, 1::2]], axis=1)  # the first of each pair, then the second ones
    return rows.ravel()


class NeoBertForMaskedLM(MaskedLM):
    """NeoBERT that predicts masked tokens: logits [B, S, V], a dense layer over x_L that is not the word table."""

    _base_model_class = NeoBertModel
    _names = MaskedLMNames(None, None, "decoder", "decoder.bias")

    @classmethod
    def _tied(cls) -> dict[str, str]:
        return {}

    def _stored(self, name: str, weight: AnyArray) -> AnyArray | Int8Weight:
        if self.dtype == "int8" and name == "decoder.weight":
            return quantized_table(weight, "decoder")
        return super()._stored(name, weight)

    def vocabulary_head(self) -> VocabularyHead:
        """Refuse: sparse vectors are pooled from heads with a hidden layer.

        Raises
        ------
        ConfigError
            Always.

        Examples
        --------
        >>> from wordpiece_bert.bert import NeoBertConfig, NeoBertForMaskedLM
        >>> config = NeoBertConfig(
        ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
        ... )
        >>> NeoBertForMaskedLM.from_config(config).vocabulary_head()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        wordpiece_bert.errors.ConfigError: ... the head of NeoBERT has no hidden layer; ...
        """
        raise ConfigError(f"{self.source}: the head of NeoBERT has no hidden layer; sparse encoders need one")


class NeoBertForSequenceClassification(SequenceClassification):
    """NeoBERT that classifies texts or pairs: logits [B, labels], over tanh(dense(first token))."""

    _base_model_class = NeoBertModel
    _hidden = ("dense", "tanh")
