"""What the configurations of all models with rotary positions have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordpiece_bert._internal.checks import real_number
from wordpiece_bert.bert.config import LARGEST_SIZE, BertConfig, refuse


@dataclass(frozen=True, kw_only=True)
class RotatedConfig(BertConfig):
    """Sizes and settings of a model that rotates queries and keys by their positions and has no table of positions.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertConfig, ModernBertConfig
    >>> BertConfig().has_position_table, ModernBertConfig().has_position_table
    (True, False)
    """

    def _check_heads(self) -> None:
        super()._check_heads()
        if self.head_size % 2:
            why = f"heads of {self.head_size} columns cannot be rotated: their number must be even"
            refuse("hidden_size", self.hidden_size, why)

    def _check_positive(self, *names: str) -> None:
        """Refuse values of these fields that are not finite numbers above 0."""
        for name in names:
            value = getattr(self, name)
            if not 0 < real_number(value) < np.inf:
                refuse(name, value, "it must be a finite number above 0")

    @property
    def has_position_table(self) -> bool:
        """Return False."""
        return False

    @property
    def longest_row(self) -> int:
        """Return 2³¹ − 1: no table limits a row. `max_position_embeddings` is what the model was trained for."""
        return LARGEST_SIZE
