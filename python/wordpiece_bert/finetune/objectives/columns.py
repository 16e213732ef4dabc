"""The names of the columns of labelled tables."""

from __future__ import annotations

from dataclasses import dataclass

from wordpiece_bert._internal.checks import checked_strings

#: The columns that only some objectives read.
OPTIONAL_COLUMNS = ("pair", "choices", "answer_start")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a labelled table.

    Attributes
    ----------
    text : str
        The texts, or lists of words.
    pair : str, optional
        The second text of each pair, or the question about each text.
    label : str
        The labels, numbers or answers.
    choices : tuple of str
        A column of lists of choices, or a column for each choice.
    answer_start : str, optional
        The first character of each answer.

    Examples
    --------
    >>> from wordpiece_bert.finetune.objectives import Columns
    >>> columns = Columns(text="premise", pair="hypothesis")
    >>> columns.text, columns.pair, columns.label
    ('premise', 'hypothesis', 'label')
    """

    text: str = "text"
    pair: str | None = None
    label: str = "label"
    choices: tuple[str, ...] = ("choices",)
    answer_start: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "choices", tuple(checked_strings("choices", self.choices)))
