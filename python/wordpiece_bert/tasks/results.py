"""The types of the dicts that the tasks return."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Label(TypedDict):
    """A label of a text, from `classify`."""

    #: The name of the label.
    label: str
    #: Its score, a probability unless another function was applied.
    score: float


class FilledMask(TypedDict):
    """A token for a mask, from `fill_mask`."""

    #: Its probability.
    score: float
    #: Its id.
    token: int
    #: The token as text.
    token_str: str
    #: The text with the token in it.
    sequence: str


class Entity(TypedDict):
    """A named entity or a labelled token, from `ner`."""

    #: The label without B- and I-; not with ``aggregation_strategy="none"``.
    entity_group: NotRequired[str]
    #: The complete label, and the position of the token; only with ``aggregation_strategy="none"``.
    entity: NotRequired[str]
    index: NotRequired[int]
    #: The probability, the mean over the group.
    score: float
    #: The text of the entity as the tokenizer writes it.
    word: str
    #: Its first character, and the one after its last: ``text[start:end]`` is the entity.
    start: int
    end: int
