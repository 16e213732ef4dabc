"""What models with a head give to other modules of this package, besides `wordpiece_bert.bert.parts`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.bert.heads.bert import BertForPreTraining
    from wordpiece_bert.bert.heads.kinds import (
        MaskedLM,
        MaskedLMNames,
        ScoreLayers,
        ScoreModel,
        SequenceClassification,
    )
    from wordpiece_bert.bert.outputs import BertOutput


def masked_lm_names(kind: type[MaskedLM], config: BertConfig) -> MaskedLMNames:
    """Return the names of the layers of a class's masked-language head."""
    return kind._head_names(config)


def score_layers(kind: type[ScoreModel], config: BertConfig) -> ScoreLayers:
    """Return the layers of a class's head for labels, choices or answers."""
    return kind._score_layers(config)


def classified(model: ScoreModel, output: BertOutput) -> Array:
    """Return what the classifier of a head reads, given the output of the encoder: [B, S, H] or [B, H]."""
    return model._classified(output)


def targets_of(
    kind: type[SequenceClassification], config: BertConfig, labels: npt.ArrayLike, shape: tuple[int, ...]
) -> tuple[str, npt.NDArray[Any]]:
    """Return which loss labels of sequences have, and the labels, checked for logits of this shape."""
    return kind._targets(config, labels, shape)


def next_sentence_scores(model: BertForPreTraining, pooled: Array) -> Array:
    """Run the head for pairs only, over pooled first tokens: [B, H] -> [B, 2]."""
    return model._next_sentence(pooled)
