"""Objectives: what models are trained for, one entry for each, which the trainers and the commands read.

The class of an entry has the computation: a `TableObjective` for fine-tuning on labelled tables (``wordpiece-bert
finetune --task``), or an `ExamplesObjective` for pre-training on folders of examples (``wordpiece-bert pretrain
--objective``). Modules are imported when one of their classes is needed.

Stability: provisional.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from wordpiece_bert._internal.lazy import lazy_names
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.objectives.columns import Columns

if TYPE_CHECKING:
    from wordpiece_bert.finetune.objectives.examples import ExamplesObjective as ExamplesObjective
    from wordpiece_bert.finetune.objectives.replaced_tokens import ElectraPair as ElectraPair
    from wordpiece_bert.finetune.objectives.replaced_tokens import new_pair as new_pair
    from wordpiece_bert.finetune.objectives.tables import FrozenFit as FrozenFit
    from wordpiece_bert.finetune.objectives.tables import HeadObjective as HeadObjective
    from wordpiece_bert.finetune.objectives.tables import TableObjective as TableObjective
    from wordpiece_bert.finetune.objectives.tables import Tables as Tables

__all__ = [
    "OBJECTIVES",
    "Columns",
    "ElectraPair",
    "ExamplesObjective",
    "FrozenFit",
    "HeadObjective",
    "Objective",
    "TableObjective",
    "Tables",
    "new_pair",
    "objective_class",
    "objectives_for",
    "register",
]

Reads = Literal["tables", "examples"]


@dataclass(frozen=True, kw_only=True)
class Objective:
    """The entry of an objective.

    Attributes
    ----------
    name : str
        As the commands call it.
    summary : str
        What it trains a model for, for the help of the commands.
    reads : {"tables", "examples"}
        Whether it reads labelled tables or folders of pre-training examples.
    module : str
        The module of its class, imported when it is needed.
    class_name : str
        Its class, a `TableObjective` or an `ExamplesObjective`.
    columns : Columns
        The columns of tables, where a caller names no others.

    Examples
    --------
    >>> from wordpiece_bert.finetune.objectives import OBJECTIVES
    >>> entry = OBJECTIVES["answers"]
    >>> entry.summary, entry.columns.pair
    ('the part of a text that answers a question', 'question')
    >>> entry.load().__name__
    'Answers'
    """

    name: str
    summary: str
    reads: Reads
    module: str
    class_name: str
    columns: Columns = field(default_factory=Columns)

    def load(self) -> type[Any]:
        """Import the class and return it.

        Returns
        -------
        type
            The class.
        """
        found: type[Any] = getattr(importlib.import_module(self.module), self.class_name)
        return found


#: The objectives by name.
OBJECTIVES: dict[str, Objective] = {}


def register(objective: Objective) -> None:
    """Add an objective, which the trainers and the commands then have.

    Parameters
    ----------
    objective : Objective
        The entry. One of the same name is replaced.

    Examples
    --------
    >>> from wordpiece_bert.finetune.objectives import (
    ...     OBJECTIVES,
    ...     Columns,
    ...     Objective,
    ...     register,
    ... )
    >>> register(
    ...     Objective(
    ...         name="sentiment",
    ...         summary="a label for each review",
    ...         reads="tables",
    ...         module="wordpiece_bert.finetune.objectives.labelled",
    ...         class_name="Classify",
    ...         columns=Columns(text="review", label="stars"),
    ...     )
    ... )
    >>> OBJECTIVES.pop("sentiment").load().__name__
    'Classify'
    """
    OBJECTIVES[objective.name] = objective


def objectives_for(reads: Reads) -> dict[str, Objective]:
    """Return the objectives that read tables, or examples, by name.

    Parameters
    ----------
    reads : {"tables", "examples"}
        What they read.

    Returns
    -------
    dict of str to Objective
        The objectives.

    Examples
    --------
    >>> from wordpiece_bert.finetune.objectives import objectives_for
    >>> list(objectives_for("examples"))
    ['masked-tokens', 'replaced-tokens']
    """
    return {name: entry for name, entry in OBJECTIVES.items() if entry.reads == reads}


def objective_class(name: str, reads: Reads) -> type[Any]:
    """Return the class of an objective.

    Parameters
    ----------
    name : str
        Its name.
    reads : {"tables", "examples"}
        What it must read.

    Returns
    -------
    type
        The class.

    Raises
    ------
    InputError
        There is no such objective; the message has those that there are.

    Examples
    --------
    >>> from wordpiece_bert.finetune.objectives import objective_class
    >>> objective_class("tokens", "tables").__name__
    'Tokens'
    """
    known = objectives_for(reads)
    if name not in known:
        raise InputError(f"objective is {name!r}; those that read {reads} are {', '.join(known)}")
    return known[name].load()


_HERE = "wordpiece_bert.finetune.objectives"

for _name, _class, _summary, _columns in (
    ("classify", "Classify", "a label for each text or pair", Columns()),
    ("regress", "Regress", "a number", Columns()),
    ("tokens", "Tokens", "a label for each word", Columns()),
    (
        "answers",
        "Answers",
        "the part of a text that answers a question",
        Columns(text="context", pair="question", label="answers"),
    ),
    ("choose", "Choose", "the right one of several continuations", Columns()),
    ("similar", "Similar", "vectors whose cosines follow the labels of pairs", Columns()),
):
    register(
        Objective(
            name=_name,
            summary=_summary,
            reads="tables",
            module=f"{_HERE}.labelled",
            class_name=_class,
            columns=_columns,
        )
    )
register(
    Objective(
        name="masked-tokens",
        summary="the tokens that are masked, and the label of the pairs where rows are pairs (BERT)",
        reads="examples",
        module=f"{_HERE}.masked_tokens",
        class_name="MaskedTokens",
    )
)
register(
    Objective(
        name="replaced-tokens",
        summary="which tokens a small generator has replaced, trained together with it (ELECTRA)",
        reads="examples",
        module=f"{_HERE}.replaced_tokens",
        class_name="ReplacedTokens",
    )
)

__getattr__, __dir__ = lazy_names(
    globals(),
    {
        "ElectraPair": "replaced_tokens",
        "ExamplesObjective": "examples",
        "FrozenFit": "tables",
        "HeadObjective": "tables",
        "TableObjective": "tables",
        "Tables": "tables",
        "new_pair": "replaced_tokens",
    },
)
