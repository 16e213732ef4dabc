"""GTE v1.5: BERT with rotary positions and a gated feed-forward network (Zhang et al. 2024).

Source: "mGTE: Generalized Long-Context Text Representation and Reranking Models for Multilingual Text Retrieval". The
models on the Hugging Face Hub have the type ``new`` and remote code, which is never run: their configurations and the
names of their weights are read here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from wordpiece_bert.bert.families.rotary_model import ROTARY_MUST_BE, RotaryConfig, RotaryModel
from wordpiece_bert.bert.heads.kinds import MaskedLM, MaskedLMNames, SequenceClassification, TokenClassification

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "GteConfig",
    "GteForMaskedLM",
    "GteForSequenceClassification",
    "GteForTokenClassification",
    "GteModel",
]


@dataclass(frozen=True, kw_only=True)
class GteConfig(RotaryConfig):
    """Sizes and settings of a GTE model: the fields of `BertConfig`, and fields for the rotary positions.

    Attributes
    ----------
    head_dim : int or None
        d, the size of one head, an even number; None for H / N.
    rope_theta : float
        θ, from which the frequencies of the rotation are computed.
    rope_factor : float
        How many times longer than the texts of the training texts may be (NTK-aware scaling); 1 for no scaling.

    Examples
    --------
    >>> from wordpiece_bert.bert import GteConfig
    >>> GteConfig().layer_positions(0).rotary
    Rotary(size=64, theta=160000.0, factor=1.0)
    >>> GteConfig(rope_factor=4.0).layer_positions(0).rotary
    Rotary(size=64, theta=160000.0, factor=4.0)
    """

    vocab_size: int = 250_048
    max_position_embeddings: int = 8192
    type_vocab_size: int = 1
    pad_token_id: int | None = 1
    attention_probs_dropout_prob: float = 0.0
    rope_theta: float = 160_000.0
    model_type: str = "gte"

    has_biases: ClassVar[bool] = True
    _gate_dropout: ClassVar[str] = "hidden_dropout_prob"
    _must_be: ClassVar[Mapping[str, object]] = {
        **ROTARY_MUST_BE,
        "logn_attention_scale": False,
        "logn_attention_clip1": False,
        "layer_norm_type": "layer_norm",
    }

    @classmethod
    def _in_present_form(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        if values.get("model_type") == "new":
            values = {**values, "model_type": "gte"}
        return super()._in_present_form(values)


class GteModel(RotaryModel):
    """The GTE encoder. It has no pooler, except in a checkpoint of `GteForSequenceClassification`."""

    config_class = GteConfig
    _prefix = "gte."
    _pretraining_heads = ("lm_head.",)
    _older_prefixes = ("new.",)
    _older_modules = (
        (r"^lm_head\.norm\.", "lm_head.layer_norm."),
        (r"(^|\.)encoder\.layer\.(\d+)\.attention\.(qkv|q|k|v|o)_proj\.", r"\1layers.\2.self_attn.\3_proj."),
        (r"(^|\.)encoder\.layer\.(\d+)\.mlp\.(up_gate|up|gate|down)_proj\.", r"\1layers.\2.mlp.\3_proj."),
        (r"(^|\.)encoder\.layer\.(\d+)\.attn_ln\.", r"\1layers.\2.post_attention_layernorm."),
        (r"(^|\.)encoder\.layer\.(\d+)\.mlp_ln\.", r"\1layers.\2.post_mlp_layernorm."),
    )


class GteForMaskedLM(MaskedLM):
    """GTE that predicts masked tokens: logits [B, S, V]. The activation of its head is always GELU."""

    _base_model_class = GteModel
    _names = MaskedLMNames(
        "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.decoder.bias", activation="gelu"
    )


class GteForSequenceClassification(SequenceClassification):
    """GTE that classifies texts or pairs: logits [B, labels], over the pooler."""

    _base_model_class = GteModel
    _reads_pooler = True


class GteForTokenClassification(TokenClassification):
    """GTE that labels tokens: logits [B, S, labels]."""

    _base_model_class = GteModel
