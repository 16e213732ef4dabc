"""Examples as TFRecords with the features of Google's BERT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordpiece_bert import _core
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.sinks.row_sink import FileSink

if TYPE_CHECKING:
    from wordpiece_bert.pretraining.row_options import RowOptions


class TfrecordRows(FileSink):
    """Rows as TFRecords."""

    @classmethod
    def check(cls, options: RowOptions) -> None:
        """Check that rows are masked, with a bound, and not packed."""
        if options.masking is None or options.max_predictions is None:
            raise InputError(
                "format='tfrecord' has the features of BERT's own script, which are masked: pass "
                "masking=Masking(tokenizer, max_predictions=20), or choose another format"
            )
        if options.packing is not None:
            raise InputError("format='tfrecord' has one sequence a row: pass packing=False, or choose another format")

    def start(self, offset: int) -> None:
        """Begin or continue the file, which has nothing but records."""
        del offset
        self._encoder = _core.TfrecordEncoder(self.schema.row_length, self.schema.max_predictions or 0)

    def add(self, rows: _core.ExampleBlock) -> None:
        """Write a record for each row."""
        self.file.write(self._encoder.encode(rows).data)
