"""Batches for the DataLoader of PyTorch; with ``return_tensors="np"``, for jax and others, it needs no package.

Stability: provisional.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

__all__ = ["PaddingCollator", "TextCollator"]


@dataclass(frozen=True)
class PaddingCollator:
    """Pads rows that are encoded already: the ``collate_fn`` of a DataLoader.

    It can be pickled, for the workers of a DataLoader.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.integrations.torch import PaddingCollator
    >>> collate = PaddingCollator(
    ...     Tokenizer.from_pretrained("models/reviews"), return_tensors="np"
    ... )
    >>> batch = collate(
    ...     [{"input_ids": [2, 7, 8, 3], "label": 1}, {"input_ids": [2, 9, 3], "label": 0}]
    ... )
    >>> batch["input_ids"].shape, batch["labels"]
    ((2, 4), array([1, 0]))
    """

    #: The tokenizer.
    tokenizer: Tokenizer
    #: True for the longest row of a batch, ``"max_length"`` for `max_length`.
    padding: bool | Literal["longest", "max_length"] = True
    #: The length for ``"max_length"``.
    max_length: int | None = None
    #: Round the length up to a multiple of this.
    pad_to_multiple_of: int | None = None
    #: ``"pt"`` for tensors that share the memory of the arrays, ``"np"`` for arrays.
    return_tensors: Literal["np", "pt"] = "pt"
    #: What pads labels of tokens, the label that losses ignore.
    label_pad_token_id: int = -100

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Pad rows to one batch.

        Parameters
        ----------
        features : sequence of mapping
            Rows with ``input_ids`` and other values; ``label`` and ``label_ids`` become ``labels``. Labels that are
            lists of integers, one for each token, are padded with `label_pad_token_id`.

        Returns
        -------
        dict
            Tensors or arrays by name.

        Raises
        ------
        InputError
            A row is not a mapping, or as for `Tokenizer.pad`.
        """
        rows: list[dict[str, Any]] = []
        for index, row in enumerate(features):
            if not isinstance(row, Mapping):
                raise InputError(
                    f"item {index} must be a mapping with input_ids, not {type(row).__name__}: {row!r:.80}"
                )
            rows.append({"labels" if name in ("label", "label_ids") else name: value for name, value in row.items()})
        labels = [row.pop("labels") for row in rows] if all(_labels_tokens(row) for row in rows) else None
        inputs = self.tokenizer.pad(
            rows,
            padding=self.padding,
            max_length=self.max_length,
            pad_to_multiple_of=self.pad_to_multiple_of,
            return_tensors=self.return_tensors,
        )
        if labels is not None:
            shape = tuple(inputs["input_ids"].shape)
            padded = np.full(shape, self.label_pad_token_id, np.int64)
            for row, values in zip(padded, labels, strict=True):
                place = (
                    slice(len(values))
                    if self.tokenizer.padding_side == "right"
                    else slice(len(row) - len(values), None)
                )
                row[place] = values
            inputs["labels"] = padded
        return dict(inputs.convert_to_tensors(self.return_tensors))


def _labels_tokens(row: Mapping[str, Any]) -> bool:
    """Whether a row has a label for each token; numbers with a fraction are the targets of a regression instead."""
    labels, ids = row.get("labels"), row.get("input_ids")
    if np.ndim(labels) != 1 or ids is None or len(labels) != len(ids):  # type: ignore[arg-type]
        return False
    return not len(ids) or np.asarray(labels).dtype.kind in "iu"


@dataclass(frozen=True)
class TextCollator:
    """Encodes and pads texts: the ``collate_fn`` of a DataLoader over texts, or over examples with a text.

    It can be pickled, for the workers of a DataLoader, each of which encodes on one thread by default.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.integrations.torch import TextCollator
    >>> collate = TextCollator(
    ...     Tokenizer.from_pretrained("models/reviews"), return_tensors="np", max_length=32
    ... )
    >>> batch = collate(
    ...     [{"text": "a great film", "label": 1}, {"text": "dull", "label": 0}]
    ... )
    >>> batch["input_ids"].shape, batch["labels"]
    ((2, 5), array([1, 0]))
    """

    #: The tokenizer.
    tokenizer: Tokenizer
    #: The name of the text in an example, and of the second text of a pair.
    column: str = "text"
    pair: str | None = None
    #: As for ``tokenizer(...)``.
    padding: bool | Literal["longest", "max_length"] = True
    truncation: bool = True
    max_length: int | None = None
    pad_to_multiple_of: int | None = None
    #: ``"pt"`` for tensors that share the memory of the arrays, ``"np"`` for arrays.
    return_tensors: Literal["np", "pt"] = "pt"
    #: The number of threads.
    threads: int | None = 1

    def __call__(self, examples: Sequence[Any]) -> dict[str, Any]:
        """Encode and pad texts to one batch.

        Parameters
        ----------
        examples : sequence of str or mapping
            Texts, or examples with a text; ``label`` becomes ``labels``, and other values are left out.

        Returns
        -------
        dict
            Tensors or arrays by name.

        Raises
        ------
        InputError
            An example lacks a column, or is neither a text nor a mapping; or some have a label and some have none.
        """
        texts: list[tuple[str, Any]] = []
        labels: list[Any] = []
        for index, example in enumerate(examples):
            if isinstance(example, str):
                texts.append((example, None))
                continue
            if not isinstance(example, Mapping):
                raise InputError(
                    f"item {index} must be a text or a mapping with {self.column!r}, not {type(example).__name__}: "
                    f"{example!r:.80}"
                )
            try:
                texts.append((example[self.column], None if self.pair is None else example[self.pair]))
            except KeyError as cause:
                raise InputError(
                    f"item {index} has no {cause.args[0]!r}; it has {', '.join(map(str, example))}"
                ) from None
            labels += [example[name] for name in ("labels", "label") if name in example][:1]
        if labels and len(labels) < len(texts):
            raise InputError(f"{len(labels)} of {len(texts)} items have a label: give each item one, or none")
        seconds = [second for _, second in texts]
        inputs = self.tokenizer(
            [first for first, _ in texts],
            None if self.pair is None else seconds,
            padding=self.padding,
            truncation=self.truncation,
            max_length=self.max_length,
            pad_to_multiple_of=self.pad_to_multiple_of,
            threads=self.threads,
        )
        if labels:
            inputs["labels"] = labels
        return dict(inputs.convert_to_tensors(self.return_tensors))
