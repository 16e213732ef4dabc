"""What columns rows have."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from wordpiece_bert import _core


@dataclass(frozen=True, kw_only=True)
class RowSchema:
    """What columns rows have, and how large their entries can be.

    Attributes
    ----------
    label : str or None
        The name of the label of pairs.
    masked, packed : bool
        Whether rows have labels of tokens, and several sequences.
    ids : numpy.dtype
        The type that holds all ids: uint16 or uint32.
    row_length : int
        The largest number of tokens of a row.
    max_predictions : int or None
        The largest number of masked tokens in a row.
    """

    label: str | None = None
    masked: bool = False
    packed: bool = False
    ids: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.uint32))
    row_length: int = 128
    max_predictions: int | None = None

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the order of the files."""
        names = ["input_ids", "token_type_ids"]
        names += [self.label] if self.label is not None else []
        names += ["labels"] if self.masked else []
        return names + (["position_ids", "cu_seqlens"] if self.packed else [])

    @property
    def narrow_ids(self) -> bool:
        """Whether ids are stored in 16 bits."""
        return self.ids.itemsize == 2

    def flat(self, rows: _core.ExampleBlock) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]]:
        """Return each column as the entries of all rows, one after the other, and where each row's entries begin.

        The offsets [rows + 1] are None for a column with one value a row.
        """
        arrays = rows.arrays()
        ends, sequences = arrays["row_offsets"], arrays.get("sequence_offsets")
        found: dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]] = {}
        for name in self.columns:
            if name == self.label:
                found[name] = arrays["pair_labels"], sequences
            elif name == "cu_seqlens" and sequences is not None:  # one more than sequences
                found[name] = arrays[name], sequences + np.arange(len(sequences))
            else:
                found[name] = arrays[name], ends
        return found

    def dicts(self, rows: _core.ExampleBlock) -> Iterator[dict[str, Any]]:
        """Yield each row as a dict of lists and numbers."""
        columns: list[list[Any]] = []
        for array, offsets in self.flat(rows).values():
            values = array.tolist()
            columns.append(values if offsets is None else [values[a:b] for a, b in pairwise(offsets.tolist())])
        for row in zip(*columns, strict=True):
            yield dict(zip(self.columns, row, strict=True))
