"""Positions of models that number tokens from the id of the padding on: RoBERTa and MPNet.

A token that is not padding has the position pad + the number of such tokens up to and with it; padding has the position
pad. So pad + 1 rows of the table are reserved, and padding inside a row shifts the tokens after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Ids


def counted_positions(input_ids: Ids | None, length: int, pad: int) -> Ids:
    """Return the positions of padded rows of ids, [B, S], or of `length` word vectors, pad + 1 and on, [1, S]."""
    if input_ids is None:
        return np.arange(pad + 1, pad + 1 + length, dtype=np.int64)[None, :]
    tokens = (input_ids != pad).astype(np.int64)  # [B, S]
    positions: Ids = np.cumsum(tokens, axis=1) * tokens + pad
    return positions


def packed_positions(ids: Ids, ends: Ids, pad: int) -> Ids:
    """Return the positions of rows without padding between them: row i is ``ids[ends[i]:ends[i + 1]]``, [tokens]."""
    tokens = (ids != pad).astype(np.int64)  # [tokens]
    counted = np.concatenate([[0], np.cumsum(tokens)])  # before each token
    positions: Ids = (counted[1:] - np.repeat(counted[ends[:-1]], np.diff(ends))) * tokens + pad
    return positions
