"""Documents with ids and fields: files of tables, or tables in memory, read as often as needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.checks import iterates
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.column_blocks import separator_format, suffix_of
from wordpiece_bert.tokenizer.corpus.file_parts import groups_of
from wordpiece_bert.tokenizer.corpus.parquet import first_row, import_pyarrow, missing_column
from wordpiece_bert.tokenizer.corpus.table_reader import json_rows, separated_rows
from wordpiece_bert.vectors.layout import RESERVED
from wordpiece_bert.vectors.text_files import TextFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: The most rows that are read at once, when texts are among their columns.
_ROWS = 1 << 12


class Documents:
    """Rows of a table: each with a text, an id, and fields to keep.

    Parameters
    ----------
    given : path, iterable of paths, table, or TextFiles
        Files: Parquet, which is read in blocks; .csv, .tsv and .jsonl, which are read entirely. Or a table that pyarrow
        takes: its own, or one of polars, pandas or DuckDB. Or files that are documents themselves. The cells of a .csv
        or .tsv are texts, except in columns of which all are whole numbers as Python writes them (not ``007``).
    text_column, id_column : str
        The columns of the texts and the ids. Ids are texts or whole numbers, all different.
    keep : sequence of str
        Other columns.

    Raises
    ------
    InputError
        pyarrow is not installed, a file is not a table, or a column is missing, named twice, or has another type or a
        name of the folder's.
    """

    def __init__(self, given: Any, text_column: str, id_column: str, keep: Sequence[str]) -> None:
        self._pyarrow = import_pyarrow("reading documents with their ids")
        self.text_column, self.id_column = text_column, id_column
        self._keep = tuple(keep)
        listed = _listed(given)
        self._sources = [self._source(one) for one in listed]
        separated = [i for i, one in enumerate(listed) if _is_separated(one)]
        for column in {id_column, *self._keep} - {text_column}:
            self._read_numbers(column, separated)
        self._names = [os.fspath(one) if isinstance(one, str | os.PathLike) else "the table" for one in listed]
        self._groups = [groups_of(one) for one in listed]
        schemas = [
            self._schema(name, source.schema_arrow if hasattr(source, "schema_arrow") else source.schema)
            for name, source in zip(self._names, self._sources, strict=True)
        ]
        #: The fields of the id and of what is kept, of plain types.
        self.schema = schemas[0]
        for name, schema in zip(self._names[1:], schemas[1:], strict=True):
            if schema != self.schema:
                raise InputError(f"{name}: its columns have other types than those of {self._names[0]}")

    def _source(self, given: Any) -> Any:
        """Return a file of Parquet, or a table."""
        pyarrow = self._pyarrow
        if isinstance(given, TextFiles):
            return given
        if not isinstance(given, str | os.PathLike):
            if isinstance(given, pyarrow.Table):
                return given
            if hasattr(given, "__arrow_c_stream__"):
                try:
                    return pyarrow.table(given)
                # pandas may have values of several types in a column, and halves of characters.
                except (pyarrow.ArrowException, UnicodeEncodeError) as cause:
                    raise InputError(f"the table cannot be read: {cause}") from cause
            raise InputError(f"documents must be paths of tables, or a table, not {type(given).__name__}")
        path = os.fspath(given)
        if not Path(path).exists():
            raise FileNotFoundError(2, "No such file or directory", path)
        columns = list(dict.fromkeys([self.text_column, self.id_column, *self._keep]))
        if _is_separated(path):
            return self._table(path, columns, separated_rows(Path(path), columns))
        if suffix_of(path) in (".jsonl", ".ndjson"):
            return self._table(path, columns, json_rows(Path(path)))
        try:
            return pyarrow.parquet.ParquetFile(path, pre_buffer=False)
        except pyarrow.ArrowException as cause:
            raise InputError(f"{path}: cannot be read as Parquet: {cause}") from cause

    def _table(self, path: str, columns: list[str], rows: Iterable[tuple[str, dict[str, Any]]]) -> Any:
        """Return columns of rows, each of which has its place in the file, as a table."""
        pyarrow = self._pyarrow
        values: dict[str, list[Any]] = {column: [] for column in columns}
        names: dict[str, None] = {}
        for where, row in rows:
            names.update(dict.fromkeys(row))
            for column in (self.text_column, self.id_column):
                if column not in row:
                    raise InputError(f"{path}, {where}: {missing_column(column, list(row))}")
                if row[column] is None:
                    raise InputError(f"{path}, {where}: the column {column!r} is null")
            for column, found in values.items():
                found.append(row.get(column))
        kind = pyarrow.string() if _is_separated(path) else None
        arrays = {}
        for column in columns:
            if kind is None and column not in names:
                raise InputError(f"{path}: {missing_column(column, list(names))}")
            try:
                arrays[column] = pyarrow.array(values[column], kind)
            except (pyarrow.ArrowException, OverflowError, UnicodeEncodeError) as cause:
                raise InputError(f"{path}: the column {column!r}: {cause}") from cause
        return pyarrow.table(arrays)

    def _read_numbers(self, column: str, separated: list[int]) -> None:
        """Make a column of CSV and TSV files numbers if all its cells are whole numbers as Python writes them."""
        pyarrow = self._pyarrow
        texts = [self._sources[i].column(column) for i in separated]
        try:
            numbers = [one.cast(pyarrow.int64()) for one in texts]
        except pyarrow.ArrowInvalid:
            return
        if all(one.cast(pyarrow.string()).equals(text) for one, text in zip(numbers, texts, strict=True)):
            for i, one in zip(separated, numbers, strict=True):
                place = self._sources[i].column_names.index(column)
                self._sources[i] = self._sources[i].set_column(place, column, one)

    def _schema(self, name: str, schema: Any) -> Any:
        """Check the columns of a table; return the id and what is kept, of plain types."""
        pyarrow, types = self._pyarrow, self._pyarrow.types
        wanted = [self.id_column, *self._keep]
        if len(set(wanted)) != len(wanted) or self.id_column == self.text_column:
            raise InputError(f"a column is named twice: text {self.text_column}, id and kept ones {', '.join(wanted)}")
        fields = []
        for column in dict.fromkeys([self.text_column, *wanted]):
            if schema.names.count(column) != 1:
                raise InputError(f"{name}: {missing_column(column, schema.names)}")
            kind = _plain(pyarrow, schema.field(column).type)
            if column in wanted and (column in RESERVED or (column == "id" and column != self.id_column)):
                raise InputError(
                    f"{name}: the column {column!r} has the name of a column of the folder: rename it in the documents"
                )
            if column == self.text_column and kind != pyarrow.string():
                raise InputError(f"{name}: the column {column!r} is {kind}, not text")
            if column == self.id_column:
                if types.is_integer(kind):
                    kind = pyarrow.int64()
                elif kind != pyarrow.string():
                    raise InputError(f"{name}: the column {column!r} is {kind}; ids are texts or whole numbers")
            if column in wanted:
                fields.append(pyarrow.field(column, kind, nullable=column != self.id_column))
        return pyarrow.schema([next(field for field in fields if field.name == column) for column in wanted])

    @property
    def count(self) -> int:
        """The number of documents."""
        return sum(
            (source.metadata.num_rows if hasattr(source, "metadata") else source.num_rows)
            if groups is None
            else sum(source.metadata.row_group(i).num_rows for i in groups)
            for source, groups in zip(self._sources, self._groups, strict=True)
        )

    def tables(self, *, texts: bool) -> Iterator[Any]:
        """Yield the id and what is kept, in blocks of rows; with `texts` after them the texts, under the name ``""``.

        Raises
        ------
        InputError
            An id or a text is null, or a value does not fit the type of its column.
        """
        pyarrow = self._pyarrow
        columns = [*self.schema.names, *([self.text_column] if texts else [])]
        schema = self.schema.append(pyarrow.field("", pyarrow.string(), nullable=False)) if texts else self.schema
        for name, source, groups in zip(self._names, self._sources, self._groups, strict=True):
            if groups is not None and not len(groups):
                continue
            row = 0 if groups is None else first_row(source, groups)
            read = list(dict.fromkeys(columns))
            if hasattr(source, "iter_batches"):
                more = {} if groups is None else {"row_groups": list(groups)}
                batches = source.iter_batches(_ROWS if texts else 1 << 16, columns=read, use_threads=False, **more)
            else:
                batches = source.select(read).to_batches(max_chunksize=_ROWS if texts else None)
            for batch in batches:
                arrays = []
                for field, column in zip(schema, columns, strict=True):
                    array = batch.column(column)
                    if not field.nullable and array.null_count:
                        # The rows of a file count from 1, the rows of a table in memory from 0.
                        bad = row + array.is_null().to_numpy(zero_copy_only=False).argmax()
                        bad += hasattr(source, "iter_batches")
                        raise InputError(f"{name}: row {bad} of the column {column!r} is null")
                    try:
                        array.validate(full=True)  # texts that are not UTF-8
                        arrays.append(array.cast(field.type))
                    except pyarrow.ArrowNotImplementedError:  # old versions, of the string views of polars
                        arrays.append(pyarrow.array(array.to_pylist(), field.type))
                    except pyarrow.ArrowInvalid as cause:
                        raise InputError(f"{name}: the column {column!r}: {cause}") from cause
                yield pyarrow.table(arrays, schema=schema)
                row += batch.num_rows


def _listed(given: Any) -> list[Any]:
    if isinstance(given, str | os.PathLike) or hasattr(given, "__arrow_c_stream__") or not iterates(given):
        return [given]
    listed = list(given)
    if not listed:
        raise InputError("documents is empty: pass at least one path")
    return listed


def _is_separated(given: Any) -> bool:
    """Return whether documents are a CSV or TSV file."""
    return isinstance(given, str | os.PathLike) and separator_format(os.fspath(given)) is not None


def _plain(pyarrow: Any, kind: Any, *, within: bool = False) -> Any:
    """Return the type in which values are kept: one that Parquet keeps, and, unless `within` others, one for texts."""
    types = pyarrow.types
    if within and (types.is_dictionary(kind) or types.is_large_string(kind)):
        return kind
    if types.is_dictionary(kind):
        return _plain(pyarrow, kind.value_type)
    if types.is_struct(kind):
        return pyarrow.struct([field.with_type(_plain(pyarrow, field.type, within=True)) for field in kind])
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        item = kind.value_field.with_type(_plain(pyarrow, kind.value_type, within=True))
        size = getattr(kind, "list_size", -1)
        return pyarrow.large_list(item) if types.is_large_list(kind) else pyarrow.list_(item, size)
    if types.is_timestamp(kind) and kind.unit == "s":
        return pyarrow.timestamp("ms", kind.tz)
    plain = {
        pyarrow.large_string(): pyarrow.string(),
        pyarrow.string_view(): pyarrow.string(),
        pyarrow.binary_view(): pyarrow.binary(),
        pyarrow.date64(): pyarrow.date32(),
        pyarrow.time32("s"): pyarrow.time32("ms"),
    }
    return plain.get(kind, kind)
