"""The function that `Tokenizer.map_function` returns, for ``Dataset.map`` of Hugging Face."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.parts import core_of
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.parts import resolved_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.tokenizer.option_types import CallOptions
    from wordpiece_bert.tokenizer.tokenizer_base import TokenizerBase


@dataclass(frozen=True)
class MapFunction:
    """Encodes a column of a batch of examples.

    Its pickle depends on the tokenizer and the options alone, so that `datasets` finds a result in its cache, in other
    processes too.

    Attributes
    ----------
    tokenizer : Tokenizer
        The tokenizer.
    column, pair : str
        The columns of the texts and of the second texts of pairs.
    columns : tuple of str
        The arrays besides the ids, by their names in the core.
    options : CallOptions
        The options of encoding.
    dtype : str
        The type of the arrays.
    threads : int or None
        The number of threads.
    """

    tokenizer: TokenizerBase
    column: str
    pair: str | None
    columns: tuple[str, ...]
    options: CallOptions
    dtype: str
    threads: int | None

    def __call__(self, examples: Mapping[str, Any]) -> Any:
        """Encode the examples of a batch.

        Parameters
        ----------
        examples : mapping or pyarrow.Table
            Columns by name: lists of texts, or Arrow columns.

        Returns
        -------
        dict or pyarrow.Table
            ``input_ids``, ``token_type_ids`` and ``attention_mask``: arrays [rows, length], or lists of an array for
            each row if the rows differ in length. For a table, as a dataset in the format ``"arrow"`` has it, the table
            with these columns, whose types are those that datasets gives them: lists of int32 and int8.

        Raises
        ------
        InputError
            There is no such column, or it is not a batch.
        """
        texts = self._column(examples, self.column)
        pairs = None if self.pair is None else self._column(examples, self.pair)
        split, resolved = resolved_options(self.tokenizer, self.options, like_transformers=True)
        is_int64 = self.dtype == "int64"
        rows = core_of(self.tokenizer).encode_batch(
            texts, pairs, split, resolved, list(self.columns), is_int64, self.threads
        )
        if hasattr(examples, "append_column"):
            return self._appended(examples, rows)
        found: dict[str, Any] = {}
        for name, array in rows.model_inputs().items():
            values = array.astype(self.dtype, copy=False)
            if rows.shape is not None and self.options.padding:
                found[name] = values.reshape(rows.shape)
            else:
                flat = values.reshape(-1)
                found[name] = [flat[start:end] for start, end in pairwise(rows.row_offsets.tolist())]
        return found

    def _appended(self, table: Any, rows: Any) -> Any:
        """Return a table with the arrays of rows as columns of lists; columns of these names are replaced."""
        import pyarrow as pa

        offsets = pa.array(rows.row_offsets.astype(np.int32))
        for name, array in rows.model_inputs().items():
            number_type = np.int32 if name == "input_ids" else np.int8
            values = pa.array(array.reshape(-1).astype(number_type, copy=False))
            column = pa.ListArray.from_arrays(offsets, values)
            if name in table.column_names:
                table = table.drop_columns(name)
            table = table.append_column(name, column)
        return table

    def _column(self, examples: Mapping[str, Any], name: str) -> Any:
        names = getattr(examples, "column_names", None) or list(examples)
        if name not in names:
            raise InputError(f"no column {name!r}; the examples have {', '.join(map(str, names))}")
        values = examples[name]
        if isinstance(values, str):
            raise InputError(f"{name} is one text, not a batch of texts: use dataset.map(function, batched=True)")
        return (
            list(values) if not hasattr(values, "__arrow_c_stream__") and not isinstance(values, np.ndarray) else values
        )
