"""Encodings -> batches of padded arrays for a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import numpy as np

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from wordpiece_bert._core import Encoding

__all__ = ["ModelInputs", "batches"]


class ModelInputs(TypedDict):
    """What every model's call takes, [B, S] each."""

    input_ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.int64]
    token_type_ids: npt.NDArray[np.int64]


def batches(encodings: list[Encoding], size: int) -> Iterator[tuple[list[int], ModelInputs]]:
    """Sort rows by length, longest first, and give batches of them: their numbers, and padded inputs for a model."""
    if type(size) is not int or size < 1:
        message = f"batch_size must be an integer, 1 or more, not {size!r}"
        raise InputError(message)
    order = sorted(range(len(encodings)), key=lambda index: -len(encodings[index]))
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        length = len(encodings[rows[0]])
        inputs = ModelInputs(
            input_ids=np.zeros((len(rows), length), np.int64),
            attention_mask=np.zeros((len(rows), length), np.int64),
            token_type_ids=np.zeros((len(rows), length), np.int64),
        )
        for place, row in enumerate(rows):
            encoding = encodings[row]
            n = len(encoding)
            inputs["input_ids"][place, :n] = encoding.ids
            inputs["token_type_ids"][place, :n] = encoding.token_type_ids
            inputs["attention_mask"][place, :n] = 1
        yield rows, inputs
