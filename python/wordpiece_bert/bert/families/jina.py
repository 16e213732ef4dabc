"""Jina-BERT-v2: BERT with linear biases in place of positions (ALiBi) and a gated feed-forward network.

Source: Günther et al. 2023, "Jina Embeddings 2: 8192-Token General-Purpose Text Embeddings for Long Documents"; Press
et al. 2022, "Train Short, Test Long" (ALiBi). The models have the type ``bert``, the `position_embedding_type`
``alibi`` and remote code, which is never run. There are two forms of them, told by the names of the tensors: the plain
one, and one that also normalizes queries and keys and adds the input of a layer a second time
(jina-embeddings-v2-base-code).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from wordpiece_bert._internal.safe_json import quoted
from wordpiece_bert.bert.checkpoint.names import renamed
from wordpiece_bert.bert.config import LARGEST_SIZE, MUST_BE, BertConfig, refuse
from wordpiece_bert.bert.functional import ACTIVATIONS
from wordpiece_bert.bert.heads.bert import BertForMaskedLM, BertForSequenceClassification, BertForTokenClassification
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.plan.building import attention, embeddings, gated_mlp, layer_name, norm_last, pooler
from wordpiece_bert.bert.plan.parts import Norm, Plan, Slopes
from wordpiece_bert.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

__all__ = [
    "JinaBertConfig",
    "JinaBertForMaskedLM",
    "JinaBertForSequenceClassification",
    "JinaBertForTokenClassification",
    "JinaBertModel",
]

# The activation of the gate, by the name of the network in config.json.
_GATES = {"geglu": "gelu", "reglu": "relu"}

# BERT's names of weights, as the engines use them, and the names in both forms. The first that occurs in a name counts.
_PLAIN = {
    ".attention.output.dense.": ".attention.output.dense.",
    ".attention.output.LayerNorm.": ".attention.output.LayerNorm.",
    ".intermediate.gate.": ".mlp.gated_layers.gate.",
    ".intermediate.up.": ".mlp.gated_layers.up.",
    ".output.dense.": ".mlp.wo.",
    ".output.LayerNorm.": ".mlp.layernorm.",
}
_QUERY_KEY_NORM = {
    ".attention.output.dense.": ".attention.output.dense.",
    ".attention.output.LayerNorm.": ".attention.output.LayerNorm.",
    ".attention.query_norm.": ".attention.self.layer_norm_q.",
    ".attention.key_norm.": ".attention.self.layer_norm_k.",
    ".attention.second_norm.": ".layer_norm_1.",
    ".intermediate.up.": ".mlp.up_gated_layer.up.",
    ".intermediate.gate.": ".mlp.up_gated_layer.gate.",
    ".output.dense.": ".mlp.down_layer.",
    ".output.LayerNorm.": ".layer_norm_2.",
}


@dataclass(frozen=True, kw_only=True)
class JinaBertConfig(BertConfig):
    """Sizes and settings of a Jina-BERT model: the fields of `BertConfig`, and two more.

    Nothing limits a row: `max_position_embeddings` is what the model was trained for.

    Attributes
    ----------
    hidden_act : str
        The activation of the gate: ``"gelu"`` or ``"relu"``; in config.json it is ``feed_forward_type``.
    head_act : str
        The activation of the masked-language head; in config.json it is `hidden_act`. The other classes do not read it.
    has_query_key_norms : bool
        Whether the model is of the form with norms of queries and keys; the names of the tensors tell it, so it is not
        in config.json.

    Examples
    --------
    Scores fall with the distance from query to key, in each head at its own rate, and nothing limits a row:

    >>> from wordpiece_bert.bert import JinaBertConfig
    >>> config = JinaBertConfig(hidden_size=256, num_attention_heads=4)
    >>> config.plan().layers[0][0].body.bias
    Slopes(slopes=(0.25, 0.0625, 0.015625, 0.00390625))
    >>> config.longest_row, config.usual_longest_row
    (2147483647, 8192)
    """

    vocab_size: int = 30_528
    max_position_embeddings: int = 8192
    head_act: str = "gelu"
    has_query_key_norms: bool = False
    model_type: str = "jina_bert"

    _names_in_file: ClassVar[Mapping[str, str]] = {"hidden_act": "feed_forward_type", "head_act": "hidden_act"}
    _unread: ClassVar[tuple[str, ...]] = ("has_query_key_norms",)
    _must_be: ClassVar[Mapping[str, object]] = {
        **MUST_BE,
        "position_embedding_type": "alibi",
        "alibi_scaling": 1,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_act not in _GATES.values():
            refuse("feed_forward_type", self.hidden_act, f"the gate must be one of {', '.join(_GATES.values())}")

    @property
    def head_activation(self) -> str:
        """Return the activation of a head's hidden layer."""
        return self.head_act

    @property
    def has_position_table(self) -> bool:
        """Return False."""
        return False

    @property
    def longest_row(self) -> int:
        """Return 2³¹ − 1: no table limits a row."""
        return LARGEST_SIZE

    def _plan(self) -> Plan:
        """Return the layers of BERT with linear biases and gates, and in one form with three more norms."""
        heads = self.num_attention_heads
        power = 2 ** int(math.log2(heads))
        slopes = [2.0 ** (-8 * (head + 1) / power) for head in range(power)]
        slopes += [2.0 ** (-8 * (2 * head + 1) / (2 * power)) for head in range(heads - power)]
        bias = Slopes(tuple(np.array(slopes, np.float32).tolist()))
        layers = []
        for layer in range(self.num_hidden_layers):
            norms = again = None
            if self.has_query_key_norms:
                of_query, of_key, again = (
                    Norm(f"{layer_name(layer)}.attention.{name}", self.layer_norm_eps)
                    for name in ("query_norm", "key_norm", "second_norm")
                )
                norms = of_query, of_key
            attend = attention(self, layer, bias=bias, norms=norms)
            feed = gated_mlp(self, layer, dropout="hidden_dropout_prob")
            first, second = norm_last(self, layer, attend, feed, again=again)
            layers.append((first, replace(second, dropout="")))
        return Plan(embeddings(self), tuple(layers), pooler=pooler(self))

    @classmethod
    def _in_present_form(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        kind = values.get("feed_forward_type", "original")
        if not isinstance(kind, str) or kind not in _GATES:
            refuse("feed_forward_type", kind, f"supported are {' and '.join(_GATES)}; results would be wrong")
        if values.get("model_type") in ("bert", None):
            values = {**values, "model_type": "jina_bert"}
        return super()._in_present_form({**values, "feed_forward_type": _GATES[kind]})

    def to_dict(self) -> dict[str, Any]:
        """Return the content of a ``config.json``.

        Returns
        -------
        dict
            The fields by name.

        Examples
        --------
        >>> from wordpiece_bert.bert import JinaBertConfig
        >>> content = JinaBertConfig().to_dict()
        >>> (
        ...     content["model_type"],
        ...     content["position_embedding_type"],
        ...     content["feed_forward_type"],
        ... )
        ('bert', 'alibi', 'geglu')
        """
        kind = next(name for name, activation in _GATES.items() if activation == self.hidden_act)
        of_jina = {"model_type": "bert", "position_embedding_type": "alibi", "feed_forward_type": kind}
        return super().to_dict() | of_jina


class JinaBertModel(BertModel):
    """The Jina-BERT encoder. position_ids are accepted and ignored: distances are those in the row."""

    config_class = JinaBertConfig
    _fused: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "mlp.gated_layers": ("mlp.gated_layers.gate", "mlp.gated_layers.up"),
        "mlp.up_gated_layer": ("mlp.up_gated_layer.up", "mlp.up_gated_layer.gate"),
    }

    @classmethod
    def _config_of(cls, config: BertConfig, names: Iterable[str], source: str) -> BertConfig:
        """Return the configuration with the form of the tensors."""
        assert isinstance(config, JinaBertConfig)
        modules = {match[1] for name in names if (match := re.search(r"\.mlp\.(gated_layers|up_gated_layer)\.", name))}
        if len(modules) != 1:
            found = "both" if modules else "neither"
            raise CheckpointError(
                f"{source}: position_embedding_type is 'alibi', and the file has {found} of the tensors "
                "mlp.gated_layers and mlp.up_gated_layer that tell the two known forms of Jina-BERT"
            )
        return replace(config, has_query_key_norms=modules == {"up_gated_layer"})

    @classmethod
    def _name_in_checkpoint(cls, name: str, config: BertConfig) -> str:
        """Return the name in a checkpoint of Jina-BERT for one of BERT's names."""
        assert isinstance(config, JinaBertConfig)
        return renamed(name, _QUERY_KEY_NORM if config.has_query_key_norms else _PLAIN)

    @classmethod
    def _renamed(
        cls, weights: Mapping[str, npt.NDArray[np.generic]], config: BertConfig, source: str
    ) -> Mapping[str, npt.NDArray[np.generic]]:
        """Split the tensors that hold two weights; refuse tensors of forms that are not known here."""
        known = {cls._name_in_checkpoint(name, config) for name in config.plan().shapes()}
        split = super()._renamed(weights, config, source)
        for name in split:
            own = name.removeprefix("module.").removeprefix(cls._prefix)
            old = own.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
            if own.startswith("encoder.") and old not in known:
                raise CheckpointError(
                    f"{source}: the tensor {quoted(name)} belongs to a form of Jina-BERT that is not known here; "
                    "results would be wrong"
                )
        return split


class JinaBertForMaskedLM(BertForMaskedLM):
    """Jina-BERT that predicts masked tokens: logits [B, S, V]."""

    _base_model_class = JinaBertModel

    @classmethod
    def _config_of(cls, config: BertConfig, names: Iterable[str], source: str) -> BertConfig:
        """Return the configuration; refuse an unknown activation of the head, which encoders do without."""
        if str(config.head_activation) not in ACTIVATIONS:
            raise ConfigError(
                f"{source}: hidden_act is {quoted(config.head_activation)}, the activation of the head: it must be one "
                f"of {', '.join(ACTIVATIONS)}"
            )
        return super()._config_of(config, names, source)


class JinaBertForSequenceClassification(BertForSequenceClassification):
    """Jina-BERT that classifies texts or pairs: logits [B, labels], over the pooler."""

    _base_model_class = JinaBertModel


class JinaBertForTokenClassification(BertForTokenClassification):
    """Jina-BERT that labels tokens: logits [B, S, labels]."""

    _base_model_class = JinaBertModel
