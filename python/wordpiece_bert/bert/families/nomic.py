"""NomicBERT: BERT with rotary positions, a gated feed-forward network and no biases (Nussbaum et al. 2024).

Source: "Nomic Embed: Training a Reproducible Long Context Text Embedder". Mixtures of experts (version 2) are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from wordpiece_bert.bert.config import refuse
from wordpiece_bert.bert.families.rotary_model import ROTARY_MUST_BE, RotaryConfig, RotaryModel
from wordpiece_bert.bert.heads.kinds import MaskedLM, MaskedLMNames, SequenceClassification, TokenClassification

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "NomicBertConfig",
    "NomicBertForMaskedLM",
    "NomicBertForSequenceClassification",
    "NomicBertForTokenClassification",
    "NomicBertModel",
]

# The names of gated networks in older configurations, and the activation of the gate.
_GATES = {"swiglu": "silu", "geglu": "gelu"}


@dataclass(frozen=True, kw_only=True)
class NomicBertConfig(RotaryConfig):
    """Sizes and settings of a NomicBERT model: the fields of `BertConfig`, and fields for the rotary positions.

    The fields of older configurations (``n_embd``, ``rotary_emb_base``, …) are read where the present ones are absent.

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
    >>> from wordpiece_bert.bert import NomicBertConfig
    >>> NomicBertConfig().layer_positions(0).rotary
    Rotary(size=64, theta=1000.0, factor=1.0)
    >>> NomicBertConfig.from_dict({"n_embd": 256, "n_head": 4}).hidden_size  # older names
    256
    """

    vocab_size: int = 30_528
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    rope_theta: float = 1000.0
    model_type: str = "nomic_bert"

    _older_names: ClassVar[Mapping[str, str]] = {
        "n_embd": "hidden_size",
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "n_inner": "intermediate_size",
        "n_positions": "max_position_embeddings",
        "layer_norm_epsilon": "layer_norm_eps",
        "rotary_emb_base": "rope_theta",
        "resid_pdrop": "hidden_dropout_prob",
        "attn_pdrop": "attention_probs_dropout_prob",
        "embd_pdrop": "classifier_dropout",
    }
    _must_be: ClassVar[Mapping[str, object]] = {
        **ROTARY_MUST_BE,
        "rotary_emb_interleaved": False,
        "rotary_emb_fraction": 1.0,
        "rotary_scaling_factor": None,
        "rotary_emb_scale_base": None,
        "prenorm": False,
        "parallel_block": False,
        "causal": False,
        "use_rms_norm": False,
        "qkv_proj_bias": False,
        "mlp_fc1_bias": False,
        "mlp_fc2_bias": False,
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "num_experts": 0,
    }

    @classmethod
    def _in_present_form(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        gate = values.get("activation_function")
        if gate is not None and values.get("hidden_act") is None:
            if not isinstance(gate, str) or gate not in _GATES:
                refuse("activation_function", gate, f"supported are the gated {' and '.join(_GATES)}")
            values = {**values, "hidden_act": _GATES[gate]}
        if values.get("n_inner", 0) is None and "intermediate_size" not in values:
            width = values.get("hidden_size", values.get("n_embd", cls.hidden_size))
            values = {**values, "n_inner": 4 * width if isinstance(width, int) else None}
        return super()._in_present_form(values)


class NomicBertModel(RotaryModel):
    """The NomicBERT encoder. It has no pooler, except in a checkpoint of `NomicBertForSequenceClassification`."""

    config_class = NomicBertConfig
    _prefix = "nomic_bert."
    _pretraining_heads = ("cls.",)
    _older_prefixes = ("bert.",)
    _older_modules = (
        (r"(^|\.)emb_ln\.", r"\1embeddings.LayerNorm."),
        (r"(^|\.)encoder\.layers\.(\d+)\.attn\.Wqkv\.", r"\1layers.\2.self_attn.qkv_proj."),
        (r"(^|\.)encoder\.layers\.(\d+)\.attn\.out_proj\.", r"\1layers.\2.self_attn.o_proj."),
        (r"(^|\.)encoder\.layers\.(\d+)\.mlp\.fc11\.", r"\1layers.\2.mlp.up_proj."),
        (r"(^|\.)encoder\.layers\.(\d+)\.mlp\.fc12\.", r"\1layers.\2.mlp.gate_proj."),
        (r"(^|\.)encoder\.layers\.(\d+)\.mlp\.fc2\.", r"\1layers.\2.mlp.down_proj."),
        (r"(^|\.)encoder\.layers\.(\d+)\.norm1\.", r"\1layers.\2.post_attention_layernorm."),
        (r"(^|\.)encoder\.layers\.(\d+)\.norm2\.", r"\1layers.\2.post_mlp_layernorm."),
    )


class NomicBertForMaskedLM(MaskedLM):
    """NomicBERT that predicts masked tokens: logits [B, S, V]."""

    _base_model_class = NomicBertModel
    _names = MaskedLMNames(
        dense="cls.predictions.transform.dense",
        norm="cls.predictions.transform.layer_norm",
        decoder="cls.predictions.decoder",
        bias="cls.predictions.bias",
    )


class NomicBertForSequenceClassification(SequenceClassification):
    """NomicBERT that classifies texts or pairs: logits [B, labels], over the pooler."""

    _base_model_class = NomicBertModel
    _reads_pooler = True


class NomicBertForTokenClassification(TokenClassification):
    """NomicBERT that labels tokens: logits [B, S, labels]."""

    _base_model_class = NomicBertModel
