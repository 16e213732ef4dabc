//! The rows of a column as inputs of the tokenizer.

use wordpiece::{BatchItem, Input, Text};

use crate::abi::{ArrowArray, ArrowSchema};
use crate::array_slice::{ArraySlice, NullMask};
use crate::column_type::{ColumnType, ListLayout, StringLayout, StringType};
use crate::export::{self, Buffer};
use crate::lists::{ListArray, TextArray};
use crate::problem::{Problem, ReadError, RowPosition};
use crate::rows::{Row, copied};
use crate::strings::StringArray;

/// The required form of a column's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestedRows {
    /// Texts are lists of words rather than strings.
    pub words: bool,
    /// Each row may be a pair of texts.
    pub pairs: bool,
}

/// Why a column cannot be opened.
#[derive(Debug)]
pub enum ColumnError {
    /// Its type is not one that was requested.
    Type(ColumnType),
    /// It is malformed.
    Read(ReadError),
}

impl From<Problem> for ColumnError {
    fn from(problem: Problem) -> ColumnError {
        ColumnError::Read(problem.into())
    }
}

/// A column of texts or pairs of texts, in one or more chunks of memory that a producer laid out as Arrow prescribes.
///
/// The column owns the arrays and with them the producer's memory; both are released when it is dropped. Rows are borrowed
/// from it, and their texts copied before they are looked at. Threads may share it.
pub struct TextColumn {
    row_type: RowType,
    chunks: Vec<ArrowArray>,
    /// For each chunk, the number of rows up to its end.
    chunk_ends: Vec<usize>,
}

/// The type of a row.
enum RowType {
    Text(TextType),
    /// A table with one column of texts, or with two for pairs.
    Columns(Vec<TextType>),
    /// A list of two texts.
    Pair(ListLayout, TextType),
}

/// The type of a text.
#[derive(Clone, Copy)]
enum TextType {
    String(StringType),
    Words(ListLayout, StringType),
}

impl TextType {
    /// Returns the type of texts in columns of type `column`, or `None` if it does not hold texts of the requested
    /// kind.
    fn new(column: &ColumnType, words: bool) -> Option<TextType> {
        match (column, words) {
            // Some libraries give this type to any empty column.
            (&ColumnType::String(null @ StringType::Plain(StringLayout::Null)), _) => Some(TextType::String(null)),
            (&ColumnType::String(string), false) => Some(TextType::String(string)),
            (&ColumnType::List(list, ref items), true) => match **items {
                ColumnType::String(string) => Some(TextType::Words(list, string)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Opens the texts of an array of this type.
    fn open(self, array: ArraySlice<'_>) -> Result<TextArray<'_>, Problem> {
        match self {
            TextType::String(string) => StringArray::new(array, string).map(TextArray::Strings),
            TextType::Words(list, string) => {
                let (lists, items) = ListArray::new(array, list)?;
                Ok(TextArray::Words(lists, StringArray::new(items, string)?))
            }
        }
    }
}

impl RowType {
    fn new(column: &ColumnType, requested: RequestedRows) -> Option<RowType> {
        let text = |kind| TextType::new(kind, requested.words);
        if let Some(text) = text(column) {
            return Some(RowType::Text(text));
        }
        let max_columns = if requested.pairs { 2 } else { 1 };
        match column {
            ColumnType::Struct(columns) if (1..=max_columns).contains(&columns.len()) => {
                columns.iter().map(|(_, kind)| text(kind)).collect::<Option<_>>().map(RowType::Columns)
            }
            ColumnType::List(list, texts) if requested.pairs => text(texts).map(|text| RowType::Pair(*list, text)),
            _ => None,
        }
    }
}

/// The rows of one chunk.
enum ChunkRows<'a> {
    Text(TextArray<'a>),
    Columns(NullMask<'a>, Vec<TextArray<'a>>),
    Pair(ListArray<'a>, TextArray<'a>),
}

impl<'a> ChunkRows<'a> {
    fn new(chunk: ArraySlice<'a>, row_type: &RowType) -> Result<ChunkRows<'a>, Problem> {
        Ok(match row_type {
            RowType::Text(text) => ChunkRows::Text(text.open(chunk)?),
            RowType::Columns(columns) => {
                let texts = columns.iter().enumerate().map(|(i, text)| text.open(chunk.column(i)?));
                ChunkRows::Columns(chunk.null_mask()?, texts.collect::<Result<_, _>>()?)
            }
            RowType::Pair(list, text) => {
                let (lists, items) = ListArray::new(chunk, *list)?;
                ChunkRows::Pair(lists, text.open(items)?)
            }
        })
    }

    /// Returns row `index` of the chunk, which is row `row` of the column.
    fn get(&self, index: usize, row: usize) -> Result<Row<'a>, ReadError> {
        let error =
            |is_second, word, problem| ReadError { position: Some(RowPosition { row, is_second, word }), problem };
        let first = |(word, problem)| error(false, word, problem);
        let second = |(word, problem)| error(true, word, problem);
        match self {
            ChunkRows::Text(texts) => Ok(Row { first: texts.get(index).map_err(first)?, second: None }),
            ChunkRows::Columns(nulls, columns) => {
                nulls.check(index).map_err(|problem| error(false, None, problem))?;
                Ok(Row {
                    first: columns[0].get(index).map_err(first)?,
                    second: columns.get(1).map(|texts| texts.get(index)).transpose().map_err(second)?,
                })
            }
            ChunkRows::Pair(lists, texts) => {
                let pair = lists.get(index).map_err(|problem| error(false, None, problem))?;
                if pair.len() != 2 {
                    return Err(error(false, None, Problem::NotAPair { texts: pair.len() }));
                }
                Ok(Row {
                    first: texts.get(pair.start).map_err(first)?,
                    second: Some(texts.get(pair.start + 1).map_err(second)?),
                })
            }
        }
    }
}

impl TextColumn {
    /// Opens a column. Only the offsets and lengths of its chunks are read.
    ///
    /// # Errors
    ///
    /// [`ColumnError::Type`] if the type is not one that was requested, [`ColumnError::Read`] if the schema or the
    /// length of a chunk is malformed.
    ///
    /// # Safety
    ///
    /// The chunks have the type that `schema` describes: every buffer that is present in them, their children and their
    /// dictionaries is at least as long as the specification prescribes for that type and for the array's offset and
    /// length (string data: up to the largest offset; data of views: as the buffer of lengths states). Nobody frees the
    /// buffers before the arrays are released. If somebody writes to them, what is read are old or new bytes.
    pub unsafe fn new(
        schema: &ArrowSchema,
        chunks: Vec<ArrowArray>,
        requested: RequestedRows,
    ) -> Result<TextColumn, ColumnError> {
        let column_type = ColumnType::read(schema)?;
        let Some(row_type) = RowType::new(&column_type, requested) else {
            return Err(ColumnError::Type(column_type));
        };
        let mut n_rows = 0_usize;
        let mut chunk_ends = Vec::with_capacity(chunks.len());
        for chunk in &chunks {
            // SAFETY: this function has the contract of `ArraySlice::new` for the type from which `row_type` was
            // derived.
            let len = unsafe { ArraySlice::new(chunk) }?.len();
            n_rows = n_rows.checked_add(len).ok_or_else(|| Problem::malformed("too many rows"))?;
            chunk_ends.push(n_rows);
        }
        Ok(TextColumn { row_type, chunks, chunk_ends })
    }

    /// Makes a column of consecutive strings in `text`: string *i* is `ends[i]..ends[i + 1]`.
    ///
    /// # Panics
    ///
    /// If `ends` is empty or its last item is not the length of `text`.
    pub fn from_strings(text: String, ends: Vec<i64>) -> TextColumn {
        assert_eq!(ends.last().map(|&end| end as usize), Some(text.len()), "the last string ends with the text");
        let n_rows = ends.len() - 1;
        let buffers = vec![Buffer::Absent, Buffer::Int64(ends), Buffer::Bytes(text.into_bytes())];
        TextColumn {
            row_type: RowType::Text(TextType::String(StringType::Plain(StringLayout::LargeUtf8))),
            chunks: vec![export::array(n_rows, 0, buffers, Vec::new())],
            chunk_ends: vec![n_rows],
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.chunk_ends.last().copied().unwrap_or(0)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of chunks.
    pub fn n_chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Returns all rows.
    ///
    /// # Errors
    ///
    /// The first row that cannot be read, or [`Problem::OutOfMemory`].
    pub fn rows(&self) -> Result<Vec<Row<'_>>, ReadError> {
        let mut rows = Vec::new();
        rows.try_reserve_exact(self.len()).map_err(|_| Problem::OutOfMemory { rows: self.len() })?;
        for chunk in 0..self.chunks.len() {
            self.read_chunk(chunk, |row| rows.push(row))?;
        }
        Ok(rows)
    }

    /// Copies the texts of all rows into `copies` and returns them from there. A batch is better encoded from
    /// [`TextColumn::rows`], of which few are copied at a time.
    ///
    /// # Errors
    ///
    /// As [`TextColumn::rows`], and the first text that is not UTF-8.
    pub fn inputs<'b>(&self, copies: &'b mut Vec<u8>) -> Result<Vec<Input<'b>>, ReadError> {
        copy_rows(&self.rows()?, 0, copies)
    }

    /// Copies the first texts of all rows, which are all texts of a column without pairs. Errors as [`TextColumn::inputs`].
    pub fn texts<'b>(&self, copies: &'b mut Vec<u8>) -> Result<Vec<Text<'b>>, ReadError> {
        Ok(self.inputs(copies)?.into_iter().map(|input| input.first).collect())
    }

    /// Returns the rows of one chunk.
    ///
    /// # Errors
    ///
    /// The first row that cannot be read.
    ///
    /// # Panics
    ///
    /// If there is no such chunk.
    pub fn chunk_rows(&self, chunk: usize) -> Result<Vec<Row<'_>>, ReadError> {
        let mut rows = Vec::new();
        self.read_chunk(chunk, |row| rows.push(row))?;
        Ok(rows)
    }

    /// Copies the texts of one row into `copies` and returns them from there.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the row cannot be read.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn input<'b>(&self, row: usize, copies: &'b mut Vec<u8>) -> Result<Input<'b>, ReadError> {
        let chunk = self.chunk_ends.partition_point(|&end| end <= row);
        let read = self.open_chunk(chunk)?.get(row - self.chunk_start(chunk), row)?;
        Ok(copy_rows(&[read], row, copies)?.remove(0))
    }

    /// Passes the rows of a chunk to `consume`, one after the other, until one cannot be read.
    fn read_chunk<'a>(&'a self, chunk: usize, mut consume: impl FnMut(Row<'a>)) -> Result<(), ReadError> {
        let (start, end) = (self.chunk_start(chunk), self.chunk_ends[chunk]);
        // The buffers of an empty chunk may be absent.
        if start < end {
            let rows = self.open_chunk(chunk)?;
            for row in start..end {
                consume(rows.get(row - start, row)?);
            }
        }
        Ok(())
    }

    /// Returns the row of the column that is the first of a chunk.
    fn chunk_start(&self, chunk: usize) -> usize {
        chunk.checked_sub(1).map_or(0, |previous| self.chunk_ends[previous])
    }

    fn open_chunk(&self, chunk: usize) -> Result<ChunkRows<'_>, Problem> {
        // SAFETY: the contract of `TextColumn::new` also binds `from_strings`. By it the chunk has the type from which
        // `row_type` was derived, and its buffers have the lengths for this type. They live as long as `self`.
        let array = unsafe { ArraySlice::new(&self.chunks[chunk]) }?;
        ChunkRows::new(array, &self.row_type)
    }
}

/// Copies the texts of rows, of which the first has number `first` in its column, into `copies`.
fn copy_rows<'b>(rows: &[Row<'_>], first: usize, copies: &'b mut Vec<u8>) -> Result<Vec<Input<'b>>, ReadError> {
    let bytes = rows.iter().map(BatchItem::bytes).fold(0, usize::saturating_add);
    copies.clear();
    copies.try_reserve_exact(bytes).map_err(|_| Problem::OutOfMemory { rows: rows.len() })?;
    copied(rows, copies).map_err(|not_utf8| not_utf8.at(first))
}
