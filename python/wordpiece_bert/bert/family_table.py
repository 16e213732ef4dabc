"""Families of models: one entry for each, which loading, training and inspection read.

What a family computes is in its own module under `families`: the configuration, the names of its weights, and its
classes. The entry here says how a ``config.json`` names the family, which classes it has, and what training must know.
Modules are imported when one of their classes is needed.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.bert.base_model import Model
    from wordpiece_bert.bert.config import BertConfig

_HIDDEN = ("hidden_dropout_prob",)
_CLASSIFIER = ("classifier_dropout", *_HIDDEN)


@dataclass(frozen=True, kw_only=True)
class Training:
    """Where the heads of a family's models have dropout in training; the layers have it where their plan says so.

    A rate is given as names of fields of the configuration, of which the first that is not None holds; empty for no
    dropout.

    Attributes
    ----------
    classifier_input_rate : tuple of str
        The rate before the hidden layer of a sequence classifier that has one; `sequence_rate` is that after it.
    sequence_rate, token_rate : tuple of str
        The rates of heads for sequences and for tokens.
    answer_rate : tuple of str
        The rate of the head for question answering.
    """

    classifier_input_rate: tuple[str, ...] = _CLASSIFIER
    sequence_rate: tuple[str, ...] = _CLASSIFIER
    token_rate: tuple[str, ...] = _CLASSIFIER
    answer_rate: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of models.

    Attributes
    ----------
    model_type : str
        ``model_type`` in ``config.json``.
    module : str
        The module with the classes of encoder and configuration; imported when a class is needed.
    name : str
        What the names of its classes begin with: ``"DistilBert"``.
    heads : tuple of str
        Its heads, as the names of their classes end: ``"MaskedLM"`` for ``DistilBertForMaskedLM``.
    others : tuple of str
        Classes with other names.
    base : str
        The class without a head; ``name`` + ``"Model"`` if empty.
    heads_module : str
        The module with the classes of the heads, if it is another one.
    other_types : tuple of str
        Further values of ``model_type`` for the same models.
    other_name : str
        What the names of these classes begin with in the remote code of such models.
    other_classes : mapping of str to str
        Further names of classes in such remote code, with their names here.
    training : Training, optional
        What training must know; None if the models cannot be trained here.
    """

    model_type: str
    module: str
    name: str
    heads: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    base: str = ""
    heads_module: str = ""
    other_types: tuple[str, ...] = ()
    other_name: str = ""
    other_classes: Mapping[str, str] = field(default_factory=dict)
    training: Training | None = None

    @property
    def base_name(self) -> str:
        """The name of the class without a head."""
        return self.base or f"{self.name}Model"

    @property
    def modules(self) -> dict[str, str]:
        """The module of each model class, by name; the class without a head is the first."""
        heads = [self.head_name(head) for head in self.heads]
        return dict.fromkeys([self.base_name, *self.others], self.module) | dict.fromkeys(
            heads, self.heads_module or self.module
        )

    def head_name(self, head: str) -> str:
        """Return the name of the class with a head.

        Parameters
        ----------
        head : str
            One of `heads`.
        """
        return f"{self.name}For{head}"


_HERE = "wordpiece_bert.bert"

#: The families by ``model_type``.
FAMILIES: dict[str, Family] = {}


def register(family: Family) -> None:
    """Add a family. `AutoModel`, tasks, encoders, training and the commands then load its models.

    Parameters
    ----------
    family : Family
        The entry. One of the same `model_type` is replaced.
    """
    FAMILIES[family.model_type] = family


def family_of(config: BertConfig) -> Family:
    """Return the family of a configuration.

    Parameters
    ----------
    config : BertConfig
        The configuration of a model.
    """
    return FAMILIES[config.model_type]


def trainable() -> list[str]:
    """Return the types of models that can be trained here."""
    return [kind for kind, family in FAMILIES.items() if family.training is not None]


def family_named(model_type: str) -> Family | None:
    """Return the family of a ``model_type`` in a ``config.json``; None if there is none.

    Parameters
    ----------
    model_type : str
        The value in the file.
    """
    return FAMILIES.get(model_type) or next((f for f in FAMILIES.values() if model_type in f.other_types), None)


def class_named(name: str) -> type[Model] | None:
    """Return a model class by its name, imported if need be; None if no family has it.

    Parameters
    ----------
    name : str
        The name, such as ``"DistilBertForMaskedLM"``, or that in the remote code of such models.
    """
    for family in FAMILIES.values():
        modules = family.modules
        here = family.other_classes.get(name, name)
        if family.other_name and name.startswith(family.other_name):
            here = family.name + name.removeprefix(family.other_name)
        if here in modules:
            return cast("type[Model]", getattr(importlib.import_module(modules[here]), here))
    return None


def class_modules(package: str) -> dict[str, str]:
    """Return the module, relative to a package that contains it, of each model class and each variant's configuration.

    Parameters
    ----------
    package : str
        The package; classes of other packages are left out.
    """
    modules = {f"{family.name}Config": family.module for family in FAMILIES.values() if family.name != "Bert"}
    for family in FAMILIES.values():
        modules |= family.modules
    return {
        name: module.removeprefix(f"{package}.")
        for name, module in sorted(modules.items())
        if module.startswith(f"{package}.")
    }


_CLASSIFIERS = ("SequenceClassification", "TokenClassification")
_USUAL = ("MaskedLM", *_CLASSIFIERS, "QuestionAnswering")

for _family in (
    Family(
        model_type="bert",
        module=f"{_HERE}.model",
        heads_module=f"{_HERE}.heads.bert",
        name="Bert",
        heads=(*_USUAL, "MultipleChoice", "NextSentencePrediction", "PreTraining"),
        training=Training(),
    ),
    Family(
        model_type="albert",
        module=f"{_HERE}.families.albert",
        name="Albert",
        heads=(*_USUAL, "MultipleChoice"),
        training=Training(),
    ),
    Family(
        model_type="deberta-v2",
        module=f"{_HERE}.families.deberta_v2",
        name="DebertaV2",
        heads=(*_USUAL, "MultipleChoice"),
        training=Training(
            classifier_input_rate=("pooler_dropout",),
            sequence_rate=("cls_dropout", *_HIDDEN),
            token_rate=_HIDDEN,
        ),
    ),
    Family(
        model_type="distilbert",
        module=f"{_HERE}.families.distilbert",
        name="DistilBert",
        heads=(*_USUAL, "MultipleChoice"),
        training=Training(
            classifier_input_rate=(),
            sequence_rate=("seq_classif_dropout",),
            token_rate=_HIDDEN,
            answer_rate=("qa_dropout",),
        ),
    ),
    Family(
        model_type="camembert",
        module=f"{_HERE}.families.camembert",
        name="Camembert",
        heads=_USUAL,
        training=Training(),
    ),
    Family(
        model_type="data2vec-text",
        module=f"{_HERE}.families.data2vec",
        name="Data2VecText",
        heads=_USUAL,
        training=Training(),
    ),
    # Of the three encoders, transformers chooses the encoder of questions.
    Family(
        model_type="dpr",
        module=f"{_HERE}.families.dpr",
        name="DPR",
        base="DPRQuestionEncoder",
        others=("DPRContextEncoder", "DPRReader"),
    ),
    Family(
        model_type="electra",
        module=f"{_HERE}.families.electra",
        name="Electra",
        heads=(*_USUAL, "PreTraining"),
        training=Training(),
    ),
    Family(
        model_type="ernie",
        module=f"{_HERE}.families.ernie",
        name="Ernie",
        heads=(*_USUAL, "MultipleChoice", "NextSentencePrediction", "PreTraining"),
        training=Training(),
    ),
    Family(
        model_type="gte",
        module=f"{_HERE}.families.gte",
        name="Gte",
        heads=("MaskedLM", *_CLASSIFIERS),
        other_types=("new",),
        other_name="New",
        training=Training(),
    ),
    # Their config.json has the type bert: AutoModel knows them by their positions.
    Family(
        model_type="jina_bert",
        module=f"{_HERE}.families.jina",
        name="JinaBert",
        heads=("MaskedLM", *_CLASSIFIERS),
        training=Training(),
    ),
    Family(
        model_type="megatron-bert",
        module=f"{_HERE}.families.megatron",
        name="MegatronBert",
        heads=("MaskedLM", "SequenceClassification"),
        training=Training(sequence_rate=_HIDDEN, token_rate=_HIDDEN),
    ),
    Family(
        model_type="modernbert",
        module=f"{_HERE}.families.modernbert",
        name="ModernBert",
        heads=(*_USUAL, "MultipleChoice"),
        training=Training(classifier_input_rate=(), answer_rate=_CLASSIFIER),
    ),
    Family(
        model_type="mpnet",
        module=f"{_HERE}.families.mpnet",
        name="MPNet",
        heads=(*_USUAL, "MultipleChoice"),
        training=Training(),
    ),
    Family(
        model_type="neobert",
        module=f"{_HERE}.families.neobert",
        name="NeoBert",
        heads=("MaskedLM", "SequenceClassification"),
        other_classes={
            "NeoBERT": "NeoBertModel",
            "NeoBERTLMHead": "NeoBertForMaskedLM",
            "NeoBERTForSequenceClassification": "NeoBertForSequenceClassification",
        },
        training=Training(),
    ),
    Family(
        model_type="nomic_bert",
        module=f"{_HERE}.families.nomic",
        name="NomicBert",
        heads=("MaskedLM", *_CLASSIFIERS),
        training=Training(),
    ),
    Family(model_type="roberta", module=f"{_HERE}.families.roberta", name="Roberta", heads=_USUAL, training=Training()),
    Family(
        model_type="xlm-roberta",
        module=f"{_HERE}.families.xlm_roberta",
        name="XLMRoberta",
        heads=_USUAL,
        training=Training(),
    ),
    Family(
        model_type="xlm-roberta-xl",
        module=f"{_HERE}.families.xlm_roberta_xl",
        name="XLMRobertaXL",
        heads=_USUAL,
        training=Training(),
    ),
):
    register(_family)
