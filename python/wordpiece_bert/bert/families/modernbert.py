"""ModernBERT: norms first, rotary positions, gated networks, and windows in most layers (Warner et al. 2024).

Source: "Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder for Fast, Memory Efficient, and Long Context
Finetuning and Inference", section 2. A layer is `functional.norm_first_layer`; the first has no norm before attention.
In layers with *sliding attention* a query sees only the keys of a window around it, and positions are rotated by other
angles than in those with *full attention*. No weight has a bias unless the configuration says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from wordpiece_bert.bert.checkpoint.names import Shape, dense_shapes, norm_shapes
from wordpiece_bert.bert.config import SIZES, BertConfig, refuse
from wordpiece_bert.bert.families.rotated_config import RotatedConfig
from wordpiece_bert.bert.functional import ACTIVATIONS
from wordpiece_bert.bert.heads.kinds import (
    MaskedLM,
    MaskedLMNames,
    MultipleChoice,
    QuestionAnswering,
    ScoreLayers,
    ScoreModel,
    SequenceClassification,
    TokenClassification,
)
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.plan.building import attention, gated_mlp, norm_first, tables
from wordpiece_bert.bert.plan.parts import Embeddings, Norm, Plan
from wordpiece_bert.bert.rotary import Rotary

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = [
    "ModernBertConfig",
    "ModernBertForMaskedLM",
    "ModernBertForMultipleChoice",
    "ModernBertForQuestionAnswering",
    "ModernBertForSequenceClassification",
    "ModernBertForTokenClassification",
    "ModernBertModel",
]

# BERT's names of weights, as the engines use them, and the checkpoints' names, where queries, keys and values are one
# tensor, and so are the two halves of a gated network.
_NAMES = {
    "encoder.layer.": "layers.",
    "embeddings.word_embeddings.": "embeddings.tok_embeddings.",
    "embeddings.LayerNorm.": "embeddings.norm.",
    "encoder.ln.": "final_norm.",
    ".attention.self.query.": ".attn.Wqkv.query.",
    ".attention.self.key.": ".attn.Wqkv.key.",
    ".attention.self.value.": ".attn.Wqkv.value.",
    ".attention.output.dense.": ".attn.Wo.",
    ".attention.ln.": ".attn_norm.",
    ".ln.": ".mlp_norm.",
    ".intermediate.gate.": ".mlp.Wi.gate.",
    ".intermediate.up.": ".mlp.Wi.up.",
    ".output.dense.": ".mlp.Wo.",
}

_FULL, _SLIDING = "full_attention", "sliding_attention"
_SWITCHES = ("norm_bias", "attention_bias", "mlp_bias", "classifier_bias", "decoder_bias")


@dataclass(frozen=True, kw_only=True)
class ModernBertConfig(RotatedConfig):
    """Sizes and settings of a ModernBERT model: the fields of `BertConfig`, without token types, and those below.

    Attributes
    ----------
    norm_bias, attention_bias, mlp_bias : bool
        Whether layer norms, the dense layers of attention, and the dense layers of feed-forward networks have biases.
    embedding_dropout : float
        The dropout rate of training after the embeddings; `hidden_dropout_prob` is used in feed-forward networks.
    classifier_bias, decoder_bias : bool
        Whether the hidden layer of a head and the decoder of the vocabulary have biases.
    classifier_activation : str
        Activation of the hidden layer of a head.
    classifier_pooling : str
        What a classifier of sequences reads: ``"cls"``, the first position, or ``"mean"``, the mean of the tokens.
    layer_types : tuple of str, or None
        ``"full_attention"`` or ``"sliding_attention"`` for each layer; None for full attention in layers 0, n, 2n, …,
        n being `global_attn_every_n_layers`.
    global_attn_every_n_layers : int
        n; without effect where `layer_types` is given.
    local_attention : int
        The width of the window of sliding attention: a query sees the keys at most half of it, rounded down, away.
    global_rope_theta, local_rope_theta : float
        θ of the rotary positions in layers with full and with sliding attention.

    Examples
    --------
    Every third layer has full attention, the others a window of 64 tokens on each side:

    >>> from wordpiece_bert.bert import ModernBertConfig
    >>> config = ModernBertConfig()
    >>> [config.layer_positions(layer).window for layer in range(5)]
    [None, 64, 64, None, 64]
    """

    vocab_size: int = 50_368
    num_hidden_layers: int = 22
    intermediate_size: int = 1152
    max_position_embeddings: int = 8192
    type_vocab_size: int = 0
    layer_norm_eps: float = 1e-5
    pad_token_id: int | None = 50_283
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout: float | None = 0.0
    embedding_dropout: float = 0.0
    model_type: str = "modernbert"
    norm_bias: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    classifier_bias: bool = False
    decoder_bias: bool = True
    classifier_activation: str = "gelu"
    classifier_pooling: str = "cls"
    layer_types: tuple[str, ...] | None = None
    global_attn_every_n_layers: int = 3
    local_attention: int = 128
    global_rope_theta: float = 160_000.0
    local_rope_theta: float = 10_000.0

    _names_in_file: ClassVar[Mapping[str, str]] = {
        "hidden_act": "hidden_activation",
        "layer_norm_eps": "norm_eps",
        "attention_probs_dropout_prob": "attention_dropout",
        "hidden_dropout_prob": "mlp_dropout",
    }
    _fixed: ClassVar[tuple[str, ...]] = ("type_vocab_size",)
    _sizes: ClassVar[tuple[str, ...]] = (*SIZES[:-1], "global_attn_every_n_layers", "local_attention")
    # Released files have position_embedding_type "absolute", which means nothing here.
    _must_be: ClassVar[Mapping[str, object]] = {
        "is_decoder": False,
        "add_cross_attention": False,
        "quantization_config": None,
    }
    has_pooler: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                refuse(name, getattr(self, name), "it must be true or false")
        if str(self.classifier_activation) not in ACTIVATIONS:
            refuse("classifier_activation", self.classifier_activation, f"it must be one of {', '.join(ACTIVATIONS)}")
        if self.classifier_pooling not in ("cls", "mean"):
            refuse("classifier_pooling", self.classifier_pooling, 'it must be "cls" or "mean"')
        self._check_positive("global_rope_theta", "local_rope_theta")
        for kind in self.kinds_of_layers:
            if kind not in (_FULL, _SLIDING):
                refuse("layer_types", kind, f'a layer must have "{_FULL}" or "{_SLIDING}"')
        if len(self.kinds_of_layers) != self.num_hidden_layers:
            why = f"there must be one for each of the {self.num_hidden_layers} layers"
            refuse("layer_types", list(self.kinds_of_layers), why)

    @property
    def kinds_of_layers(self) -> tuple[str, ...]:
        """Return the kind of each layer, as `layer_types` has it."""
        if self.layer_types is not None:
            return self.layer_types
        n = self.global_attn_every_n_layers
        return tuple(_SLIDING if layer % n else _FULL for layer in range(self.num_hidden_layers))

    @property
    def head_activation(self) -> str:
        """Return the activation of a head's hidden layer."""
        return self.classifier_activation

    def _plan(self) -> Plan:
        """Return the layers of the model: norms first but in the first layer, rotary positions, gates, and windows."""

        def norm(name: str) -> Norm:
            return Norm(name, self.layer_norm_eps, bias=self.norm_bias)

        layers = []
        for layer, kind in enumerate(self.kinds_of_layers):
            is_full = kind == _FULL
            attend = attention(
                self,
                layer,
                biases=self.attention_bias,
                rotary=Rotary(self.head_size, self.global_rope_theta if is_full else self.local_rope_theta),
                window=None if is_full else self.local_attention // 2,
            )
            bias = self.mlp_bias
            feed = gated_mlp(self, layer, bias=bias, output_bias=bias, dropout="hidden_dropout_prob")
            first, second = norm_first(layer, attend, feed, norm, dropout="")
            first = replace(first, dropout="attention_probs_dropout_prob", before=first.before if layer else None)
            layers.append((first, second))
        first_norm = norm("embeddings.LayerNorm")
        return Plan(
            Embeddings(tables(self), (first_norm,), dropout="embedding_dropout"), tuple(layers), norm("encoder.ln")
        )

    @classmethod
    def _in_present_form(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read the kinds of layers and θ from either form of a configuration; refuse other kinds of positions."""
        known = dict(values)
        kinds = known.pop("layer_types", None)
        if kinds is not None:
            if not isinstance(kinds, list | tuple) or not all(isinstance(kind, str) for kind in kinds):
                refuse("layer_types", kinds, "it must be a list of the kinds of the layers, or null")
            known["layer_types"] = tuple(kinds)
        rope, scaling = known.get("rope_parameters"), known.get("rope_scaling")
        rope = {} if rope is None else rope
        if not isinstance(rope, dict) or not rope.keys() <= {_FULL, _SLIDING}:
            refuse("rope_parameters", rope, f"it must be an object with {_FULL} and {_SLIDING}")
        for kind, name in ((_FULL, "global_rope_theta"), (_SLIDING, "local_rope_theta")):
            of_kind = rope.get(kind)
            for parameters in (scaling, of_kind):
                _check_rope(f"rope_parameters.{kind}" if parameters is of_kind else "rope_scaling", parameters)
            if of_kind and "rope_theta" in of_kind:
                known[name] = of_kind["rope_theta"]
        return super()._in_present_form(known)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of a ``config.json`` that transformers can read.

        Returns
        -------
        dict
            The fields by their names in the file.

        Examples
        --------
        >>> from wordpiece_bert.bert import ModernBertConfig
        >>> content = ModernBertConfig(num_hidden_layers=4).to_dict()
        >>> content["layer_types"]
        ['full_attention', 'sliding_attention', 'sliding_attention', 'full_attention']
        """
        written = super().to_dict()
        thetas = {_FULL: written.pop("global_rope_theta"), _SLIDING: written.pop("local_rope_theta")}
        return written | {
            "layer_types": list(self.kinds_of_layers),
            "rope_parameters": {kind: {"rope_type": "default", "rope_theta": theta} for kind, theta in thetas.items()},
        }


def _check_rope(name: str, parameters: object) -> None:
    """Refuse rotary positions that are not computed as in Su et al. 2021."""
    if parameters is None:
        return
    if not isinstance(parameters, dict):
        refuse(name, parameters, "it must be an object or null")
    for key in ("rope_type", "type"):
        if parameters.get(key, "default") not in ("default", None):
            refuse(f"{name}.{key}", parameters[key], "only default is supported; results would be wrong")
    if parameters.get("partial_rotary_factor", 1.0) not in (1, None):
        why = "it must be 1; results would be wrong"
        refuse(f"{name}.partial_rotary_factor", parameters["partial_rotary_factor"], why)


class ModernBertModel(BertModel):
    """The ModernBERT encoder. It has no token types, which are ignored, no table of positions and no pooler."""

    config_class = ModernBertConfig
    _renames = _NAMES
    _prefix = "model."
    _layers = "layers."
    _pretraining_heads = ("head.", "decoder.")
    _fused: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "Wqkv": ("Wqkv.query", "Wqkv.key", "Wqkv.value"),
        "Wi": ("Wi.gate", "Wi.up"),
    }


# --- heads


def _with_biases(shapes: Mapping[str, Shape], config: BertConfig) -> dict[str, Shape]:
    """Return the names and shapes of a head's weights without the biases that the configuration leaves out."""
    assert isinstance(config, ModernBertConfig)
    has = {
        "head.dense.bias": config.classifier_bias,
        "head.norm.bias": config.norm_bias,
        "decoder.bias": config.decoder_bias,
    }
    return {name: shape for name, shape in shapes.items() if has.get(name, True)}


class _HeadModel(ScoreModel):
    """A model whose head begins with h(x) = LN(activation(dense(x)))."""

    _base_model_class = ModernBertModel

    @classmethod
    def _head_shapes(cls, config: BertConfig) -> dict[str, Shape]:
        return _with_biases(super()._head_shapes(config), config)

    @classmethod
    def _score_layers(cls, config: BertConfig) -> ScoreLayers:
        assert isinstance(config, ModernBertConfig)
        return ScoreLayers("classifier", "head.dense", config.head_activation, "head.norm", cls._pooling_of(config))

    @classmethod
    def _pooling_of(cls, config: ModernBertConfig) -> str:
        """Return what a head for sequences reads, as `ScoreLayers.pooling`."""
        return "first" if config.classifier_pooling == "cls" else "mean"


class ModernBertForMaskedLM(MaskedLM):
    """ModernBERT that predicts masked tokens: logits [B, S, V]. ``sparse_prediction`` has no effect."""

    _base_model_class = ModernBertModel
    _names = MaskedLMNames("head.dense", "head.norm", "decoder", "decoder.bias")

    @classmethod
    def _head_shapes(cls, config: BertConfig) -> dict[str, Shape]:
        hidden = dense_shapes("head.dense", "hidden_size", "hidden_size") | norm_shapes("head.norm")
        return _with_biases(hidden | dense_shapes("decoder", "hidden_size", "vocab_size"), config)

    @classmethod
    def _tied(cls) -> dict[str, str]:
        return {"decoder.weight": "embeddings.tok_embeddings.weight"}


class ModernBertForSequenceClassification(_HeadModel, SequenceClassification):
    """ModernBERT that classifies texts or pairs: logits [B, labels].

    With ``classifier_pooling`` ``"cls"`` it reads position 0, also of rows that are padded on the left.
    """


class ModernBertForTokenClassification(_HeadModel, TokenClassification):
    """ModernBERT that labels tokens: logits [B, S, labels]."""


class ModernBertForQuestionAnswering(_HeadModel, QuestionAnswering):
    """ModernBERT that answers questions: start_logits and end_logits [B, S]."""


class ModernBertForMultipleChoice(_HeadModel, MultipleChoice):
    """ModernBERT that scores choices: logits [B, C].

    With ``classifier_pooling`` ``"cls"`` it reads the first token of a row: not position 0, if that is padding.
    """

    @classmethod
    def _pooling_of(cls, config: ModernBertConfig) -> str:
        return config.classifier_pooling
