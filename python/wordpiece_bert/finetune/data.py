"""Labelled data from tables: CSV, TSV, JSON lines and Parquet files to rows for a `Trainer`.

Stability: provisional.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.checks import check_several, checked_strings
from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert._internal.texts import row_texts, text_problem
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, TrainingWarning
from wordpiece_bert.finetune.labels import (
    class_labels,
    class_name,
    class_problem,
    number_labels,
    sorted_names,
    warn_alike,
)
from wordpiece_bert.tokenizer.corpus.table_reader import read_columns as read_columns
from wordpiece_bert.tokenizer.subword import check_tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer

__all__ = ["label_names", "read_columns", "sequence_rows", "token_rows"]


def label_names(labels: Sequence[Any]) -> list[str]:
    """Return the names of the labels of a column, in the order of their ids.

    Parameters
    ----------
    labels : sequence
        One label for each row: strings, whole numbers or booleans; numbers are sorted by value, strings by code point.

    Returns
    -------
    list of str
        The names.

    Raises
    ------
    InputError
        A label is missing, a list or a fraction, or they are of several types, or all are one; the message has the row.

    Warns
    -----
    TrainingWarning
        Two labels differ in white space alone, as ``"food"`` and ``"food "`` do.

    Examples
    --------
    >>> from wordpiece_bert.finetune.data import label_names
    >>> label_names(["good", "bad", "good"]), label_names([10, 9, 10])
    (['bad', 'good'], ['9', '10'])
    """
    found = sorted_names(class_name(label) for label in class_labels(labels).tolist())
    if len(found) < 2:
        raise InputError(
            f"all {len(labels)} labels are {found[0]!r}: at least two are needed" if found else "there are no labels"
        )
    warn_alike(found)
    return found


def sequence_rows(
    tokenizer: AnyTokenizer,
    texts: Sequence[str],
    pairs: Sequence[str] | None,
    labels: Sequence[Any],
    *,
    names: Sequence[str] | None,
    max_length: int,
) -> list[dict[str, Any]]:
    """Make rows for sequence classification or regression.

    Parameters
    ----------
    tokenizer : Tokenizer or SubwordTokenizer
        The tokenizer.
    texts, pairs : sequence of str
        The texts, and the second text of each pair.
    labels : sequence
        One label for each row: one of `names`, or a number if `names` is None.
    names : sequence of str
        The names by id; None for regression.
    max_length : int
        Longer rows are truncated.

    Returns
    -------
    list of dict
        For each text a dict of ``input_ids``, ``token_type_ids`` and ``labels``.

    Raises
    ------
    InputError
        A text is missing or no str, or a label is missing, not one of `names`, or no number; the message has the row.

    Warns
    -----
    TrainingWarning
        Texts were truncated, or labels have no examples.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.finetune.data import sequence_rows
    >>> tokenizer = Tokenizer.from_pretrained("models/reviews")
    >>> rows = sequence_rows(
    ...     tokenizer,
    ...     ["a great film", "a dull film"],
    ...     None,
    ...     ["good", "bad"],
    ...     names=["bad", "good"],
    ...     max_length=32,
    ... )
    >>> (
    ...     tokenizer.convert_ids_to_tokens(rows[0]["input_ids"]),
    ...     [row["labels"] for row in rows],
    ... )
    (['[CLS]', 'a', 'great', 'film', '[SEP]'], [1, 0])
    """
    ids = {name: index for index, name in enumerate(() if names is None else checked_strings("names", names))}
    columns = [row_texts("texts", texts)] + ([] if pairs is None else [row_texts("pairs", pairs)])
    values = number_labels(labels).tolist() if names is None else label_ids(ids, labels)
    _check_counts(texts=columns[0], **({"pairs": columns[1]} if pairs is not None else {}), labels=values)
    check_tokenizer(tokenizer)
    encoded: Sequence[AnyEncoding] = tokenizer.encodings(
        columns[0] if pairs is None else list(zip(*columns, strict=True)),
        truncation=True,
        max_length=max_length,
        padding=False,
    )
    rows: list[dict[str, Any]] = [
        {"input_ids": encoding.ids, "token_type_ids": encoding.token_type_ids, "labels": value}
        for encoding, value in zip(encoded, values, strict=True)
    ]
    _warn(sum(bool(encoding.overflowing) for encoding in encoded), len(rows), max_length)
    if names is not None:
        counts = Counter(row["labels"] for row in rows)
        if absent := [name for name, index in ids.items() if not counts[index]]:
            warn(f"no example has the label {absent[0]!r}", TrainingWarning)
    return rows


def token_rows(
    tokenizer: AnyTokenizer,
    words: Sequence[Sequence[str]],
    tags: Sequence[Sequence[str]],
    *,
    names: Sequence[str],
    max_length: int,
) -> list[dict[str, Any]]:
    """Make rows for token classification: the first token of a word has its label, the others are ignored.

    Parameters
    ----------
    tokenizer : Tokenizer or SubwordTokenizer
        The tokenizer.
    words, tags : sequence of sequence of str
        The words of each text, and their labels.
    names : sequence of str
        The names of the labels by id.
    max_length : int
        Longer rows are truncated.

    Returns
    -------
    list of dict
        For each text a dict of ``input_ids``, ``token_type_ids`` and ``labels``.

    Raises
    ------
    InputError
        A text is not a list of str, has another number of words than of labels, or a label is missing or none of
        `names`; the message has the row.

    Warns
    -----
    TrainingWarning
        Texts were truncated.

    Examples
    --------
    The second token of a word has no label, nor have special tokens:

    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.finetune.data import token_rows
    >>> tokenizer = Tokenizer.from_pretrained("models/entities")
    >>> words, tags, names = [["Ada", "repairing"]], [["B-PER", "O"]], ["O", "B-PER"]
    >>> row = token_rows(tokenizer, words, tags, names=names, max_length=32)[0]
    >>> tokenizer.convert_ids_to_tokens(row["input_ids"]), row["labels"]
    (['[CLS]', 'ada', 'repair', '##ing', '[SEP]'], [-100, 1, 0, -100, -100])
    """
    ids = {name: index for index, name in enumerate(checked_strings("names", names))}
    check_several("words", words)
    check_several("tags", tags)
    texts, values = [_row_list("words", number, text) for number, text in enumerate(words)], []
    _check_counts(words=texts, tags=tags)
    for number, (text, given) in enumerate(zip(texts, tags, strict=True)):
        labels = _row_list("tags", number, given)
        if len(text) != len(labels):
            raise InputError(f"row {number} has {len(text)} words, but {len(labels)} labels")
        for place, one in enumerate(text):
            if problem := text_problem(one):
                raise InputError(f"row {number}, word {place}: {problem}")
        values.append([_id(ids, label, f"row {number}, word {place}") for place, label in enumerate(labels)])
    check_tokenizer(tokenizer)
    encoded: Sequence[AnyEncoding] = tokenizer.encodings(
        texts, is_split_into_words=True, truncation=True, max_length=max_length, padding=False
    )
    rows = []
    for encoding, own in zip(encoded, values, strict=True):
        before, row = None, []
        for word in encoding.word_ids:
            row.append(IGNORED if word is None or word == before else own[word])
            before = word
        rows.append({"input_ids": encoding.ids, "token_type_ids": encoding.token_type_ids, "labels": row})
    _warn(sum(bool(encoding.overflowing) for encoding in encoded), len(rows), max_length)
    return rows


def label_ids(ids: Mapping[str, int], labels: Sequence[Any]) -> list[int]:
    """Return the ids of labels, given the ids of the names; an `InputError` with the row if one is none of them."""
    check_several("labels", labels)
    return [_id(ids, label, f"row {number}") for number, label in enumerate(labels)]


def _row_list(name: str, row: int, value: Any) -> list[Any]:
    """Return the words or the tags of a row; a str is not a list of letters."""
    check_several(f"row {row}, {name}:", value)
    return list(value)


def _check_counts(**columns: Sequence[Any]) -> None:
    """Raise an `InputError` if columns have different numbers of rows."""
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        raise InputError(f"the columns have different numbers of rows: {counts}")


def _warn(cut: int, rows: int, max_length: int) -> None:
    if cut:
        warn(f"{cut:,} of {rows:,} texts are longer than {max_length} tokens and were truncated", TrainingWarning)


def _id(ids: Mapping[str, int], label: Any, where: str) -> int:
    """Return the id of a label."""
    if problem := class_problem(label):
        raise InputError(f"{where}: {problem}")
    name = class_name(label)
    if name not in ids:
        raise InputError(f"{where} has the label {name!r}, which is none of {', '.join(ids)}")
    return ids[name]
