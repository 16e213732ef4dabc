"""Multiple choice: rows for a `Trainer`, each a text with every one of its choices.

Stability: provisional.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.checks import check_several
from wordpiece_bert._internal.texts import row_texts, text_problem
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, TrainingWarning
from wordpiece_bert.finetune.labels import class_name, class_problem
from wordpiece_bert.tokenizer.subword import check_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.tokenizer.subword import AnyTokenizer

__all__ = ["choice_rows"]


def choice_rows(
    tokenizer: AnyTokenizer,
    texts: Sequence[Any],
    choices: Sequence[Sequence[Any]],
    labels: Sequence[Any],
    *,
    max_length: int,
) -> list[dict[str, Any]]:
    """Make rows for multiple choice, the pairs (text, choice) as in SWAG (Zellers et al. 2018).

    Parameters
    ----------
    tokenizer : Tokenizer or SubwordTokenizer
        The tokenizer.
    texts : sequence of str
        What each choice continues or answers.
    choices : sequence of sequence of str
        The choices of each text, as many for all of them.
    labels : sequence
        The number of the right choice, from 0, or its text.
    max_length : int
        Longer pairs are truncated.

    Returns
    -------
    list of dict
        ``input_ids``, ``token_type_ids`` and ``attention_mask`` [choices, S], and ``labels``.

    Raises
    ------
    InputError
        A text or a choice is missing or no str, the numbers of choices differ, or a label is missing or none of the
        choices; the message has the row.

    Warns
    -----
    TrainingWarning
        Pairs were truncated.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.finetune.choices import choice_rows
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> rows = choice_rows(
    ...     tokenizer,
    ...     ["She baked"],
    ...     [["bread in the oven", "a bicycle"]],
    ...     [0],
    ...     max_length=32,
    ... )
    >>> rows[0]["input_ids"].shape, rows[0]["labels"]
    ((2, 9), 0)
    """
    rows: list[dict[str, Any]] = []
    cut = 0
    check_tokenizer(tokenizer)
    texts = row_texts("texts", texts)
    check_several("choices", choices)
    check_several("labels", labels)
    if not len(texts) == len(choices) == len(labels):
        raise InputError(f"there are {len(texts)} texts, {len(choices)} rows of choices and {len(labels)} labels")
    for number, (text, given, label) in enumerate(zip(texts, choices, labels, strict=True)):
        check_several(f"row {number}, choices:", given)
        if len(given) < 2 or len(given) != len(choices[0]):
            raise InputError(
                f"row {number} has the choices {given!r:.80}: each row needs {max(2, len(choices[0]))} of them"
            )
        options = list(given)
        for place, option in enumerate(options):
            if problem := text_problem(option):
                raise InputError(f"row {number}, choice {place}: {problem}")
        encoded = tokenizer.encodings(
            [(text, option) for option in options], truncation=True, max_length=max_length, padding=True
        )
        cut += any(encoding.truncated for encoding in encoded)
        rows.append(
            {
                "input_ids": np.array([encoding.ids for encoding in encoded], np.int32),
                "token_type_ids": np.array([encoding.token_type_ids for encoding in encoded], np.int32),
                "attention_mask": np.array([encoding.attention_mask for encoding in encoded], np.int32),
                "labels": _index(number, label, options),
            }
        )
    if cut:
        message = f"{cut:,} of {len(rows):,} rows have pairs longer than {max_length} tokens, which were truncated"
        warn(message, TrainingWarning)
    return rows


def _index(row: int, label: Any, options: list[str]) -> int:
    if problem := class_problem(label):
        raise InputError(f"row {row}: {problem}")
    name = class_name(label).strip()
    if isinstance(label, str) and options.count(label) == 1:
        return options.index(label)
    if name not in map(str, range(len(options))):
        raise InputError(
            f"row {row} has the label {label!r}: it must be a number from 0 to {len(options) - 1} or a choice"
        )
    return int(name)
