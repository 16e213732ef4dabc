"""DeBERTa, versions 2 and 3: disentangled attention (He et al. 2021, 2023); the formulas are in `bert.disentangled`.

Version 3 has the architecture of version 2 with other settings. Version 1 (``model_type`` ``deberta``) computes
something else and is not supported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert.bert.config import LARGEST_SIZE, SIZES, BertConfig, refuse
from wordpiece_bert.bert.functional import ACTIVATIONS
from wordpiece_bert.bert.heads.bert import MASKED_LM
from wordpiece_bert.bert.heads.kinds import (
    MaskedLM,
    MaskedLMNames,
    MultipleChoice,
    QuestionAnswering,
    SequenceClassification,
    TokenClassification,
)
from wordpiece_bert.bert.inputs import as_array, as_classes, check_labels, check_targets
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.plan.building import attention, layer_name, mlp, norm_last, tables
from wordpiece_bert.bert.plan.parts import Convolution, Dense, Embeddings, Norm, Plan, Relative, Residual, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.checkpoint import Layout

__all__ = [
    "DebertaV2Config",
    "DebertaV2ForMaskedLM",
    "DebertaV2ForMultipleChoice",
    "DebertaV2ForQuestionAnswering",
    "DebertaV2ForSequenceClassification",
    "DebertaV2ForTokenClassification",
    "DebertaV2Model",
]

_TERMS = ("c2p", "p2c")

_NAMES = {
    ".attention.self.query.": ".attention.self.query_proj.",
    ".attention.self.key.": ".attention.self.key_proj.",
    ".attention.self.value.": ".attention.self.value_proj.",
    "embeddings.projection.": "embeddings.embed_proj.",
}

#: The masked-language head of models whose `legacy` is false.
_NEW_MASKED_LM = MaskedLMNames(
    dense="lm_predictions.lm_head.dense",
    norm="lm_predictions.lm_head.LayerNorm",
    decoder="lm_predictions.lm_head.decoder",
    bias="lm_predictions.lm_head.bias",
)


@dataclass(frozen=True, kw_only=True)
class DebertaV2Config(BertConfig):
    """Sizes and settings of a DeBERTa model, version 2 or 3: the fields of `BertConfig`, and these.

    Attributes
    ----------
    embedding_size : int
        E, width of the embedding tables; 0 for H. If it is not H, a dense layer maps it to H.
    relative_attention : bool
        Whether there is a table of relative positions.
    max_relative_positions : int
        M, the largest distance that the table tells apart; less than 1 for `max_position_embeddings`.
    position_buckets : int
        K, half the rows of the table, if distances share them; less than 1 for a row for each distance.
    pos_att_type : tuple of str
        The terms of the scores besides the term of contents: ``"c2p"``, from the query's content to the key's position,
        and ``"p2c"``, from the query's position to the key's content. In a file also a string such as ``"p2c|c2p"``.
    position_biased_input : bool
        Whether a table of positions is added to the embeddings; without it nothing limits the length of a row.
    share_att_key : bool
        Whether relative positions are projected by the layers of queries and keys.
    norm_rel_ebd : str
        ``"layer_norm"`` for a layer norm over the table of relative positions, ``"none"`` for none.
    conv_kernel_size : int
        The width of the convolution that is added after the first layer, an odd number; 0 for none.
    conv_groups : int
        The groups of columns of the convolution.
    conv_act : str
        The activation after the convolution.
    pooler_hidden_act : str
        The activation of the layer that classifiers of sequences have over the first token.
    pooler_dropout : float
        The dropout rate of training before that layer.
    cls_dropout : float or None
        The dropout rate after it; None for `hidden_dropout_prob`.
    legacy : bool
        Whether the masked-language head has the names and the form of BERT's head; else of the released code's.

    Examples
    --------
    Without a table of absolute positions, nothing limits the length of a row:

    >>> from wordpiece_bert.bert import DebertaV2Config
    >>> DebertaV2Config(position_biased_input=True).longest_row
    512
    >>> DebertaV2Config(position_biased_input=False).longest_row
    2147483647
    """

    vocab_size: int = 128_100
    hidden_size: int = 1536
    num_hidden_layers: int = 24
    num_attention_heads: int = 24
    intermediate_size: int = 6144
    type_vocab_size: int = 0
    layer_norm_eps: float = 1e-7
    embedding_size: int = 0
    relative_attention: bool = False
    max_relative_positions: int = -1
    position_buckets: int = -1
    pos_att_type: tuple[str, ...] = ()
    position_biased_input: bool = True
    share_att_key: bool = False
    norm_rel_ebd: str = "none"
    conv_kernel_size: int = 0
    conv_groups: int = 1
    conv_act: str = "tanh"
    pooler_hidden_act: str = "gelu"
    pooler_dropout: float = 0.0
    cls_dropout: float | None = None
    legacy: bool = True
    model_type: str = "deberta-v2"

    _sizes: ClassVar[tuple[str, ...]] = (*SIZES, "embedding_size", "conv_kernel_size", "conv_groups")
    _may_be_0: ClassVar[tuple[str, ...]] = ("type_vocab_size", "embedding_size", "conv_kernel_size")
    has_pooler: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.embedding_size:
            object.__setattr__(self, "embedding_size", self.hidden_size)
        for name in ("relative_attention", "position_biased_input", "share_att_key", "legacy"):
            if not isinstance(getattr(self, name), bool):
                refuse(name, getattr(self, name), "it must be true or false")
        for name in ("max_relative_positions", "position_buckets"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value > LARGEST_SIZE:
                refuse(name, value, f"it must be an integer up to {LARGEST_SIZE}")
        object.__setattr__(self, "pos_att_type", _terms(self.pos_att_type))
        norm: object = self.norm_rel_ebd
        if not isinstance(norm, str) or not set(_parts(norm)) <= {"none", "layer_norm", ""}:
            refuse("norm_rel_ebd", norm, "it must be none or layer_norm")
        for name in ("conv_act", "pooler_hidden_act"):
            if str(getattr(self, name)) not in ACTIVATIONS:
                refuse(name, getattr(self, name), f"it must be one of {', '.join(ACTIVATIONS)}")
        if self.conv_kernel_size and self.conv_kernel_size % 2 == 0:
            refuse("conv_kernel_size", self.conv_kernel_size, "it must be an odd number, or 0 for no convolution")
        if self.hidden_size % self.conv_groups:
            refuse("conv_groups", self.conv_groups, f"it must divide hidden_size, {self.hidden_size}")
        if self.relative_attention and self.position_buckets > 0:
            self._check_buckets()

    def _check_buckets(self) -> None:
        """Refuse buckets whose logarithms are not defined."""
        middle, longest = self.position_buckets // 2, self._longest_distance
        if middle < 1 or longest - 1 <= middle:
            why = f"it must be at least 2, and half of it less than the largest distance, {longest - 1}"
            refuse("position_buckets", self.position_buckets, why)

    @property
    def _longest_distance(self) -> int:
        """Return M."""
        return self.max_relative_positions if self.max_relative_positions >= 1 else self.max_position_embeddings

    def _plan(self) -> Plan:
        """Return the layers of the model: the layers of BERT, whose scores have terms of relative positions."""
        columns = "hidden_size" if self.embedding_size == self.hidden_size else "embedding_size"
        project = [] if columns == "hidden_size" else [Dense("embeddings.projection", columns, bias=False)]
        norm = Norm("embeddings.LayerNorm", self.layer_norm_eps)
        first = Embeddings(tables(self, columns), (*project, norm), masked=True)
        attends = [
            attention(
                self, layer, relative=self._relative(layer), terms=1 + len(self.pos_att_type), masked_sees_all=True
            )
            for layer in range(self.num_hidden_layers)
        ]
        layers = [norm_last(self, layer, attend, mlp(self, layer)) for layer, attend in enumerate(attends)]
        if self.conv_kernel_size:
            width = self.hidden_size // self.conv_groups
            body = Convolution("encoder.conv.conv", self.conv_kernel_size, self.conv_groups, width, self.conv_act)
            norm = Norm("encoder.conv.LayerNorm", self.layer_norm_eps)
            layers[0] += (Residual(body, after=norm, dropout="", masked=True),)
        return Plan(first, tuple(layers))

    def _relative(self, layer: int) -> Relative | None:
        """Return the terms of relative positions in the scores of a layer."""
        if not self.relative_attention:
            return None
        buckets = self.position_buckets > 0
        span = self.position_buckets if buckets else self._longest_distance
        norm = Norm("encoder.LayerNorm", self.layer_norm_eps) if "layer_norm" in _parts(self.norm_rel_ebd) else None
        name = f"{layer_name(layer)}.attention.self."
        key, query = ("key", "query") if self.share_att_key else ("pos_key_proj", "pos_query_proj")
        return Relative(
            Table("encoder.rel_embeddings", 2 * span),
            norm,
            span,
            self._longest_distance if buckets else 0,
            Dense(name + key) if "c2p" in self.pos_att_type else None,
            Dense(name + query) if "p2c" in self.pos_att_type else None,
        )

    @property
    def has_position_table(self) -> bool:
        """Return whether positions are added to the embeddings."""
        return self.position_biased_input

    @property
    def longest_row(self) -> int:
        """Return the longest row in tokens: P with a table of positions, else 2³¹ − 1."""
        return self.max_position_embeddings if self.position_biased_input else LARGEST_SIZE

    def to_dict(self) -> dict[str, Any]:
        """Return the content of a ``config.json`` that transformers can read.

        Returns
        -------
        dict
            The fields by their names in the file.

        Examples
        --------
        >>> from wordpiece_bert.bert import DebertaV2Config
        >>> content = DebertaV2Config(
        ...     pos_att_type=("p2c", "c2p"), position_buckets=256
        ... ).to_dict()
        >>> content["pos_att_type"], content["position_buckets"]
        (['p2c', 'c2p'], 256)
        """
        return super().to_dict() | {"pos_att_type": list(self.pos_att_type)}

    @classmethod
    def _in_present_form(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        values = dict(super()._in_present_form(values))
        for name in ("embedding_size", "conv_kernel_size"):
            if values.get(name, 0) is None:
                del values[name]
        width = values.get("hidden_size", cls.hidden_size)
        heads = values.get("num_attention_heads", cls.num_attention_heads)
        if values.get("pooler_hidden_size") not in (None, width):
            refuse("pooler_hidden_size", values["pooler_hidden_size"], f"it must be hidden_size, {width}")
        head = values.get("attention_head_size")
        if head is not None and (not isinstance(head, int) or not isinstance(heads, int) or head * heads != width):
            refuse("attention_head_size", head, "it must be hidden_size divided by num_attention_heads")
        return values


def _terms(value: object) -> tuple[str, ...]:
    """Return the terms that `pos_att_type` names, once each: null, a string with |, or a list."""
    names = _parts(value) if isinstance(value, str) else () if value is None else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        refuse("pos_att_type", value, f"it must be a list of {', '.join(_TERMS)}")
    found = [name for part in names if (name := part.strip().lower())]
    if not set(found) <= set(_TERMS):
        refuse("pos_att_type", value, f"of such terms, only {' and '.join(_TERMS)} are supported")
    return tuple(dict.fromkeys(found))


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.lower().split("|")]


class DebertaV2Model(BertModel):
    """The DeBERTa encoder, version 2 or 3. token_type_ids are ignored by models without token types."""

    config_class = DebertaV2Config
    _renames = _NAMES
    _prefix = "deberta."
    _layers = "encoder.layer."
    _pretraining_heads = ("cls.", "lm_predictions.", "mask_predictions.", "pooler.")

    @classmethod
    def _renamed(
        cls, weights: Mapping[str, npt.NDArray[np.generic]], config: BertConfig, source: str
    ) -> Mapping[str, npt.NDArray[np.generic]]:
        """Return the tensors without those that released files have and no class reads."""
        assert isinstance(config, DebertaV2Config)
        unused = ["mask_predictions."]
        unused += ["lm_predictions."] * config.legacy
        unused += ["embeddings.position_embeddings."] * (not config.has_position_table)
        if not config.relative_attention:
            unused += ["encoder.LayerNorm.", "encoder.rel_embeddings."]
        without = tuple(unused)
        return {
            name: weight
            for name, weight in super()._renamed(weights, config, source).items()
            if not name.removeprefix("module.").removeprefix(cls._prefix).startswith(without)
        }


class DebertaV2ForMaskedLM(MaskedLM):
    """DeBERTa that predicts masked tokens: logits [B, S, V].

    The head has the form and names of BERT's head, or with ``legacy`` false of the released code's, whose decoder is
    always the word table.
    """

    _base_model_class = DebertaV2Model
    _names = MASKED_LM

    @classmethod
    def _head_names(cls, config: BertConfig) -> MaskedLMNames:
        assert isinstance(config, DebertaV2Config)
        return MASKED_LM if config.legacy else _NEW_MASKED_LM

    @classmethod
    def _tied(cls) -> dict[str, str]:
        return MASKED_LM.tied() | _NEW_MASKED_LM.tied()

    @classmethod
    def _layout(cls, config: BertConfig) -> Layout:
        return super()._layout(config)._replace(tied=cls._head_names(config).tied())

    @classmethod
    def _renamed(
        cls, weights: Mapping[str, npt.NDArray[np.generic]], config: BertConfig, source: str
    ) -> Mapping[str, npt.NDArray[np.generic]]:
        weights = dict(super()._renamed(weights, config, source))
        names = cls._head_names(config)
        words = "deberta.embeddings.word_embeddings.weight"
        if names is _NEW_MASKED_LM and not config.tie_word_embeddings and words in weights:
            weights[f"{names.decoder}.weight"] = weights[words]
            if names.bias in weights:
                weights[f"{names.decoder}.bias"] = weights[names.bias]
        return weights


class DebertaV2ForSequenceClassification(SequenceClassification):
    """DeBERTa that classifies texts or pairs: logits [B, labels], over activation(dense(first token)).

    labels without a problem_type: numbers [B, labels] are the probabilities of several labels, for which the loss is
    −Σ labels·log softmax(logits); integers [B] are labels, of which those below 0 are left out. With a problem_type, or
    a single label, labels and losses are as in the other families.
    """

    _base_model_class = DebertaV2Model
    _hidden = ("pooler.dense", "pooler_hidden_act")

    @classmethod
    def _targets(
        cls, config: BertConfig, labels: npt.ArrayLike, shape: tuple[int, ...]
    ) -> tuple[str, npt.NDArray[Any]]:
        if config.problem_type is not None or config.num_labels == 1:
            return super()._targets(config, labels, shape)
        given = as_array("labels", labels)
        if given.ndim > 1 and given.shape[1:] != (1,):
            return "probabilities", check_targets("labels", given, shape)
        given = as_classes("labels", given)
        if np.issubdtype(given.dtype, np.integer):
            given = np.where(given < 0, IGNORED, given)
        return "labels_or_none", check_labels("labels", given, shape[:1], shape[1], IGNORED)


class DebertaV2ForMultipleChoice(MultipleChoice):
    """DeBERTa that picks one of C choices: logits [B, C] for inputs [B, C, S], over activation(dense(first token))."""

    _base_model_class = DebertaV2Model
    _hidden = ("pooler.dense", "pooler_hidden_act")


class DebertaV2ForTokenClassification(TokenClassification):
    """DeBERTa that labels tokens: logits [B, S, labels]."""

    _base_model_class = DebertaV2Model


class DebertaV2ForQuestionAnswering(QuestionAnswering):
    """DeBERTa that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = DebertaV2Model
