"""Writing examples: `row_sink` has the interface of a format, the other modules a format or several each.

A format is a class with an entry in `wordpiece_bert.pretraining.formats`. Rows come in blocks, in order. `FileSink` is
the base of formats that are one file, `FolderSink` of those that are a folder of files.
"""

from wordpiece_bert.pretraining.sinks.row_sink import FileSink, FolderSink, RowSink

__all__ = ["FileSink", "FolderSink", "RowSink"]
