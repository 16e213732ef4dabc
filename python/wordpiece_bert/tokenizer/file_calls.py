"""Encoding the texts of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from wordpiece_bert._internal.parameters import completed_by, taking
from wordpiece_bert.tokenizer.option_types import DEFAULTS, CallOptions, EncodeOptions
from wordpiece_bert.tokenizer.parameters import ENCODING, READING
from wordpiece_bert.tokenizer.tokenizer_base import requested
from wordpiece_bert.tokenizer.vocabulary_calls import VocabularyCalls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from wordpiece_bert.tokenizer.corpus.file_encoder import EncodeSummary, FileEncoder, FileOptions
    from wordpiece_bert.tokenizer.corpus.text_reader import Errors, Fields
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch
    from wordpiece_bert.tokenizer.tokenizer_base import StrPath


class FileCalls(VocabularyCalls):
    """The methods that encode the texts of files."""

    __slots__ = ()

    @taking(EncodeOptions, DEFAULTS)
    def _file_encoder(
        self,
        files: StrPath | Iterable[StrPath],
        *,
        separator: str | None = "\n",
        field: Fields | None = None,
        column: Fields | None = None,
        errors: Errors = "strict",
        return_offsets: bool = False,
        return_word_ids: bool = False,
        return_sequence_ids: bool = False,
        return_overflowing_tokens: bool = False,
        return_n_tokens: bool = False,
        threads: int | None = None,
        **options: Unpack[EncodeOptions],
    ) -> FileEncoder:
        """Return the encoder of `iter_files` and `encode_files`."""
        given = CallOptions(**options)
        _, resolved = self._resolve(given)
        from wordpiece_bert.tokenizer.corpus.file_encoder import FileEncoder  # only corpora need it

        return FileEncoder(
            self._inner,
            files,
            resolved,
            columns=requested(
                offsets=return_offsets,
                word_ids=return_word_ids,
                sequence_ids=return_sequence_ids,
                overflow_to_sample=return_overflowing_tokens,
                n_tokens=return_n_tokens,
            ),
            threads=threads,
            reading={"separator": separator, "field": field, "column": column, "errors": errors},
            warns=self._file_truncates(given.truncation, given.max_length),
        )

    @completed_by(READING, ENCODING)
    @taking(_file_encoder)
    def iter_files(
        self,
        files: StrPath | Iterable[StrPath],
        **options: Unpack[FileOptions],
    ) -> Iterator[RaggedBatch]:
        r"""Encode the texts of files block by block, in memory that does not grow with their size.

        Parameters
        ----------
        padding : bool or {"longest", "max_length", "do_not_pad"}, optional
            ``"max_length"`` pads rows to `max_length`. By default the setting of the tokenizer's file, or no padding.
            ``"longest"`` is an error, because a stream does not know its longest row.
        threads : int, optional
            Number of threads that encode, as for `encode_batch`; one more thread reads.

        Returns
        -------
        Iterator of RaggedBatch
            Batches of the rows of a few megabytes of text, in the order of the files. `RaggedBatch.overflow_to_sample`
            counts from the first text of its batch.

        Raises
        ------
        InputError
            As for `encode_batch`, and for a text that cannot be read; the message has the file, line and byte offset.
            Also for padding to the longest row, which a stream does not know: pad to a ``max_length``.
        OSError
            A file does not exist or cannot be read.

        Warns
        -----
        TruncationWarning
            The truncation of the tokenizer's file, which the call does not mention, cut texts. The warning comes with
            the end of the iteration.

        Examples
        --------
        >>> from pathlib import Path
        >>> from wordpiece_bert import Tokenizer
        >>> Path("cities.txt").write_text("New York\nYork\n")
        14
        >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new", "york"])
        >>> for batch in tokenizer.iter_files("cities.txt"):
        ...     print(batch.to_list())
        [[1, 3, 4, 2], [1, 4, 2]]
        """
        return self._file_encoder(files, **options).batches()

    @completed_by(iter_files, READING)
    @taking(_file_encoder)
    def encode_files(
        self,
        files: StrPath | Iterable[StrPath],
        output: StrPath,
        *,
        dtype: npt.DTypeLike = "uint32",
        ids_column: str = "ids",
        show_progress_bar: bool | None = None,
        **options: Unpack[FileOptions],
    ) -> EncodeSummary:
        r"""Encode the texts of files and write the rows to a file, in memory that does not grow with their size.

        The output is written atomically: it appears under its name when it is complete, and an interrupted call leaves
        nothing.

        Parameters
        ----------
        output : path
            The file to create or replace; its suffix determines the format.

            - ``X.npy``: the ids of all rows as one array [n], with the indices at which rows begin in
              ``X.row_offsets.npy``, int64 [rows + 1]; with ``padding="max_length"`` one array [rows, length]. Other
              requested fields are in ``X.offsets.npy`` and so on.
            - ``.arrow`` (a file), ``.arrows`` (a stream) and ``.parquet``: a table with the column ``ids`` and one for
              each other requested field. These need pyarrow.
            - ``.jsonl``: the same as JSON lines.

            With truncation there is a column ``truncated``.
        dtype : dtype_like, default "uint32"
            The type of ids: uint16 (if the vocabulary is small enough), uint32, int32 or int64.
        ids_column : str, default "ids"
            The name of the column of the ids in a table; datasets and transformers call it ``"input_ids"``.

        Returns
        -------
        EncodeSummary
            Counts of texts, rows and tokens, and the texts that were truncated or skipped.

        Raises
        ------
        InputError, OSError
            As for `iter_files`, and for an output that cannot be created or is one of `files`, or an id that does not
            fit `dtype`.

        Warns
        -----
        TruncationWarning
            As for `iter_files`.

        Examples
        --------
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from wordpiece_bert import Tokenizer
        >>> Path("cities.txt").write_text("New York\nYork\n")
        14
        >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new", "york"])
        >>> summary = tokenizer.encode_files(
        ...     "cities.txt", "cities.npy", show_progress_bar=False
        ... )
        >>> summary.texts, summary.tokens
        (2, 7)
        >>> np.load("cities.npy"), np.load("cities.row_offsets.npy")
        (array([1, 3, 4, 2, 1, 4, 2], dtype=uint32), array([0, 4, 7]))
        """
        from wordpiece_bert.tokenizer.corpus.file_encoder import write_encoded

        return write_encoded(
            self._file_encoder(files, **options),
            output,
            vocabulary=len(self),
            dtype=dtype,
            ids_column=ids_column,
            show_progress_bar=show_progress_bar,
        )
