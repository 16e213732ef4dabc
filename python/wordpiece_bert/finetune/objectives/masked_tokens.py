"""Masked tokens, with the label of pairs where rows are pairs: the objectives of BERT.

Source: Devlin et al., "BERT" (2019), section 3.1. The loss is the mean cross entropy of the masked tokens plus, where
rows are pairs, the cross entropy of the next sentence (or, for pairs of ALBERT, of the sentences' order).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.auto import read_config, read_config_file
from wordpiece_bert.bert.config import BertConfig
from wordpiece_bert.bert.family_table import class_named, family_of
from wordpiece_bert.bert.heads.bert import BertForPreTraining
from wordpiece_bert.bert.heads.head_model import pooler_output
from wordpiece_bert.bert.heads.parts import next_sentence_scores
from wordpiece_bert.bert.inputs import as_array, check_labels
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.finetune.objectives.examples import (
    ExamplesObjective,
    Sums,
    collated,
    metrics_of_words,
)
from wordpiece_bert.finetune.parameters import FITTING
from wordpiece_bert.finetune.problem import ModelProblem
from wordpiece_bert.finetune.start import model_for
from wordpiece_bert.hub import find_model

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from wordpiece_bert.bert.family_table import Family
    from wordpiece_bert.bert.heads.head_model import HeadModel
    from wordpiece_bert.finetune.problem import TrainingProblem


@completed_by(FITTING)
def new_model(config: BertConfig, *, pairs: bool, seed: int = 42, backend: str = "rust") -> HeadModel:
    """Return a model with the heads of pre-training and weights drawn for it.

    Weights are N(0, initializer_range²), biases 0, norms 1, and the row of the padding token 0.

    Parameters
    ----------
    pairs : bool
        Whether it has the head for pairs too, which BERT and ERNIE have: `BertForPreTraining`, otherwise
        `BertForMaskedLM` or the class of the configuration's family.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    ConfigError
        The family has no head for masked tokens, or none for pairs.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertConfig
    >>> from wordpiece_bert.finetune import new_model
    >>> config = BertConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
    ... )
    >>> (
    ...     type(new_model(config, pairs=False)).__name__,
    ...     type(new_model(config, pairs=True)).__name__,
    ... )
    ('BertForMaskedLM', 'BertForPreTraining')
    """
    family = family_of(config)
    model_class = class_named(family.head_name("PreTraining" if pairs else "MaskedLM"))
    if model_class is None or (pairs and not _has_pairs(family)):
        what = "for pairs" if pairs else "for masked tokens"
        raise ConfigError(f"models of type {family.model_type!r} have no head {what}")
    return cast("type[HeadModel]", model_class).from_config(config, seed=seed, backend=backend)


def _has_pairs(family: Family) -> bool:
    """Return whether a family has the head for pairs."""
    found = class_named(family.head_name("PreTraining"))  # ELECTRA's is its discriminator
    return found is not None and issubclass(found, BertForPreTraining)


class MaskedTokens(ExamplesObjective["HeadModel"]):
    """Masked tokens: `BertForMaskedLM` or a variant's class, or with the label of pairs `BertForPreTraining`.

    An evaluation has ``eval_loss``, the sum of the parts; ``eval_mlm_loss``, the mean over all masked tokens;
    ``eval_perplexity``, its exponential; ``eval_mlm_accuracy``; and with a head for pairs ``eval_pair_loss`` and
    ``eval_pair_accuracy``. The head for masked tokens runs at masked positions only, so that memory is bounded by a
    batch.
    """

    off_scale: ClassVar[tuple[str, ...]] = ("eval_perplexity", "eval_mlm_loss", "eval_pair_loss")

    def new_config(self, sizes: Mapping[str, Any]) -> BertConfig:
        """Return the configuration of a new BERT."""
        return BertConfig(**sizes)

    def config_from_file(self, file: str | os.PathLike[str]) -> BertConfig:
        """Read the configuration of a new model, of any family with a head for masked tokens."""
        return read_config_file(Path(file))

    def new_model(self, config: BertConfig, *, pairs: bool, seed: int = 42, backend: str = "rust") -> HeadModel:
        """Return a model with random weights, as `new_model`; without the head for pairs where the family has none."""
        return new_model(config, pairs=pairs and _has_pairs(family_of(config)), seed=seed, backend=backend)

    def load_model(
        self, name: str | os.PathLike[str], *, pairs: bool, seed: int = 42, download: bool = False
    ) -> HeadModel:
        """Load a model with a head for masked tokens, and one for pairs where the family has it."""
        family = family_of(read_config(find_model(name, download=download)))
        head = "PreTraining" if pairs and _has_pairs(family) else "MaskedLM"
        return model_for(name, head, seed=seed, download=download)  # type: ignore[arg-type]

    def reads_pairs(self, model: HeadModel) -> bool:
        """Return whether a model has a head for pairs."""
        return isinstance(model, BertForPreTraining)

    def problem(self, model: HeadModel) -> TrainingProblem[Any]:
        """Return the loss and the parameters of a model."""
        if not hasattr(model, "predict"):
            raise ConfigError(
                f"{type(model).__name__} has no head for masked tokens; use BertForPreTraining or BertForMaskedLM"
            )
        pairs = self.reads_pairs(model)

        def collate(rows: Sequence[Any]) -> Mapping[str, Any]:
            batch, label = collated(rows)
            return batch | ({"next_sentence_label": label} if pairs else {})

        return ModelProblem(model, collate)

    def measured(self, model: Any, batches: Iterable[Mapping[str, Any]], seed: int) -> dict[str, float]:
        """Return the losses, the perplexity and the accuracies."""
        del seed
        has_pairs = self.reads_pairs(model)
        words, pairs = Sums(), Sums()
        for batch in batches:
            shape = np.shape(batch["input_ids"])
            labels = check_labels("labels", batch["labels"], shape, model.config.vocab_size, IGNORED)
            out = model.base_model(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"])
            chosen = labels != IGNORED
            with np.errstate(under="ignore"):
                words.add(model.predict(out.last_hidden_state[chosen]), labels[chosen])  # [n, V], [n]
                if has_pairs:
                    scores = next_sentence_scores(model, pooler_output(out))  # [B, 2]
                    pairs.add(scores, as_array("labels", batch["next_sentence_label"]))
        metrics = {"eval_loss": words.loss + pairs.loss} | metrics_of_words(words)
        return metrics | ({"eval_pair_loss": pairs.loss, "eval_pair_accuracy": pairs.accuracy} if has_pairs else {})

    def shown(self, metrics: Mapping[str, float]) -> str:
        """Return perplexity and accuracies."""
        text = f"perplexity {metrics['eval_perplexity']:.2f}, {metrics['eval_mlm_accuracy']:.1%} of tokens right"
        pairs = metrics.get("eval_pair_accuracy")
        return text if pairs is None else f"{text}, {pairs:.1%} of pairs"
