//! Columns of texts that are passed as arguments.

use numpy::PyArrayDescr;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};
use wordpiece::{Input, Text};
use wordpiece_arrow::{
    ArrowArray, ArrowArrayStream, ArrowSchema, ColumnError, ColumnType, Problem, ReadError, RequestedRows, Row,
    RowPosition, TextColumn, read_stream,
};

use crate::arrow::{capsule, numpy_strings};
use crate::error::{self, guarded};
use crate::location::Location;
use crate::numpy_api;

/// The methods by which objects pass on columns: a stream of arrays, or one array.
const STREAM_METHOD: &str = "__arrow_c_stream__";
const ARRAY_METHOD: &str = "__arrow_c_array__";

/// Whether an object has a method that passes on its columns.
pub fn passes_on_columns(value: &Bound<'_, PyAny>) -> bool {
    [STREAM_METHOD, ARRAY_METHOD].into_iter().any(|method| value.hasattr(method).unwrap_or(false))
}

/// A column of texts, or of pairs of texts, and the argument that it was passed as.
pub struct ColumnArgument {
    /// The argument's name, for messages.
    name: &'static str,
    column: TextColumn,
}

impl ColumnArgument {
    /// Takes over the column that an object passes on.
    ///
    /// Returns `None` if it passes on none, fails to although it can be read in another way, or would have to copy:
    /// pandas converts arrays of Python objects, and rejects pairs there. With `is_split`, texts are lists of words.
    /// Unless `allow_pairs` is set, pairs are refused.
    ///
    /// # Errors
    ///
    /// `InputError` if the object fails to pass on its column, or if the column is malformed or of another type.
    pub fn import(
        value: &Bound<'_, PyAny>,
        name: &'static str,
        is_split: bool,
        allow_pairs: bool,
    ) -> PyResult<Option<ColumnArgument>> {
        // A class has the methods of its instances as attributes, but cannot call them.
        if value.is_instance_of::<PyType>() {
            return Ok(None);
        }
        if let Ok(dtype) = value.getattr("dtype") {
            numpy_api::ready(value.py())?;
            if dtype.is_instance_of::<PyArrayDescr>() {
                return Ok(None);
            }
        }
        let malformed = |rule: String| to_py(name, Problem::Malformed(rule).into(), item);
        // The stream comes first: an object with both methods, such as nanoarrow's, may hold several arrays.
        let (schema, chunks) = if let Ok(method) = value.getattr(STREAM_METHOD) {
            let Some(exported) = call_export(value, &method, name)? else { return Ok(None) };
            let stream = capsule::take::<ArrowArrayStream>(&exported).map_err(malformed)?;
            // The producer may wait for other threads that need the interpreter.
            value.py().detach(|| read_stream(stream)).map_err(|problem| to_py(name, problem.into(), item))?
        } else if let Ok(method) = value.getattr(ARRAY_METHOD) {
            let Some(exported) = call_export(value, &method, name)? else { return Ok(None) };
            let capsules = exported.cast::<PyTuple>().ok().filter(|capsules| capsules.len() == 2);
            let capsules =
                capsules.ok_or_else(|| malformed(format!("{ARRAY_METHOD} must return a tuple of two capsules")))?;
            let schema = capsule::take::<ArrowSchema>(&capsules.get_item(0)?).map_err(malformed)?;
            (schema, vec![capsule::take::<ArrowArray>(&capsules.get_item(1)?).map_err(malformed)?])
        } else {
            return Ok(None);
        };
        let requested = RequestedRows { words: is_split, pairs: allow_pairs };
        // SAFETY: both came from one call of the interface's methods. The interface requires that the arrays have the
        // type of the schema and buffers of the prescribed lengths, and that nobody frees the buffers before the arrays
        // are released.
        let column = unsafe { TextColumn::new(&schema, chunks, requested) };
        let column = column.map_err(|error| match error {
            ColumnError::Type(found) => error::input(type_message(name, &found, requested)),
            ColumnError::Read(error) => to_py(name, error, item),
        })?;
        Ok(Some(ColumnArgument { name, column }))
    }

    /// Copies the strings of a NumPy array of fixed-width strings into a column; `None` for anything else.
    ///
    /// # Errors
    ///
    /// InputError if there is no memory for the copy.
    pub fn from_numpy_strings(value: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Option<ColumnArgument>> {
        if !value.hasattr("dtype").unwrap_or(false) {
            return Ok(None); // no array, for which NumPy need not be imported
        }
        numpy_api::ready(value.py())?;
        Ok(numpy_strings::column(value, name)?.map(|column| ColumnArgument { name, column }))
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.column.len()
    }

    /// Returns the number of chunks.
    pub fn n_chunks(&self) -> usize {
        self.column.n_chunks()
    }

    /// Returns the rows of one chunk. Panics if there is no such chunk.
    pub fn chunk_rows(&self, chunk: usize) -> PyResult<Vec<Row<'_>>> {
        self.column.chunk_rows(chunk).map_err(|error| to_py(self.name, error, item))
    }

    /// Returns all rows, in the producer's memory.
    pub fn rows(&self) -> PyResult<Vec<Row<'_>>> {
        self.column.rows().map_err(|error| to_py(self.name, error, item))
    }

    /// Returns a copy of one row. Panics if there is no such row.
    pub fn input<'b>(&self, row: usize, copies: &'b mut Vec<u8>) -> PyResult<Input<'b>> {
        self.column.input(row, copies).map_err(|error| to_py(self.name, error, item))
    }

    /// Returns copies of the texts of a column without pairs; errors are at `location`, given the row.
    pub fn texts<'b>(&self, copies: &'b mut Vec<u8>, location: fn(usize) -> Location) -> PyResult<Vec<Text<'b>>> {
        self.column.texts(copies).map_err(|error| to_py(self.name, error, location))
    }

    /// Returns the exception for a problem with a row.
    pub fn refuse(&self, row: usize, problem: Problem) -> PyErr {
        let position = Some(RowPosition { row, is_second: false, word: None });
        to_py(self.name, ReadError { position, problem }, item)
    }
}

/// Return the strings of an Arrow column, or None for anything else.
#[pyfunction]
pub fn _column_texts(py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Py<PyString>>>> {
    guarded(|| {
        let Some(column) = ColumnArgument::import(texts, "texts", false, false)? else { return Ok(None) };
        let mut copies = Vec::new();
        let strings = column.texts(&mut copies, item)?.into_iter().map(|text| match text {
            Text::Raw(text) => PyString::new(py, text).unbind(),
            Text::Words(_) => unreachable!("no lists of words were requested"),
        });
        Ok(Some(strings.collect()))
    })
}

/// The location of a row where rows are the items of a batch.
fn item(row: usize) -> Location {
    Location::item("item", row)
}

/// Calls a method of the interface. Returns `None` if it raises and the object can be read through `tolist` instead, as
/// pandas without pyarrow can.
fn call_export<'py>(
    value: &Bound<'py, PyAny>,
    method: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    match method.call0() {
        Ok(exported) => Ok(Some(exported)),
        Err(cause) if cause.is_instance_of::<PyException>(py) => {
            if value.hasattr("tolist")? {
                return Ok(None);
            }
            let error =
                error::input(format!("{name} is {}, which does not pass its columns on: {cause}", value.get_type()));
            error.set_cause(py, Some(cause));
            Err(error)
        }
        // KeyboardInterrupt and the like.
        Err(cause) => Err(cause),
    }
}

/// Returns the exception for a column that cannot be read: at a row's location, or at the argument `name`.
fn to_py(name: &'static str, error: ReadError, location: fn(usize) -> Location) -> PyErr {
    let at = error.position.map_or(Location::argument(name), |position| {
        let row = location(position.row);
        let text = if position.is_second { row.second() } else { row };
        position.word.map_or(text, |word| text.element("word", word))
    });
    error::input(match error.problem {
        Problem::Null => format!("{at} is null: fill nulls first (fill_null, fillna), or drop them"),
        Problem::NotUtf8 { valid_up_to } => error::not_utf8(at, valid_up_to),
        Problem::NotAPair { texts } => format!(
            "{at} is a list of {texts} texts; a pair has two texts; for a list of words: is_split_into_words=True"
        ),
        Problem::StreamFailed { code, message } => format!(
            "{at} cannot be read: its stream failed with code {code}: {}",
            message.as_deref().unwrap_or("no message")
        ),
        Problem::OutOfMemory { rows } => {
            format!("{at} has {rows} rows, which do not fit into memory: pass fewer at once")
        }
        Problem::Malformed(rule) => format!(
            "{at} is malformed Arrow data: {rule}; this is a bug in the library that made the column, pass a list of str \
             instead"
        ),
    })
}

/// Returns why a column of type `found` is not one that was requested.
fn type_message(name: &str, found: &ColumnType, requested: RequestedRows) -> String {
    const NAMES_SHOWN: usize = 8;
    let texts = match requested.words {
        false => "strings (string, large_string, string_view, or a dictionary of them)",
        true => "lists of strings, for is_split_into_words=True",
    };
    match found {
        ColumnType::Struct(columns) if columns.len() != 1 && (!requested.pairs || columns.len() != 2) => {
            let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).take(NAMES_SHOWN).collect();
            let more = if names.len() < columns.len() { ", …" } else { "" };
            let pairs = if requested.pairs { ", or two for pairs" } else { "" };
            format!(
                "{name} is a table of {} columns ({}{more}); choose one column of {texts}{pairs}",
                columns.len(),
                names.join(", ")
            )
        }
        _ => {
            let pairs = if requested.pairs { ", or two such columns for pairs" } else { "" };
            format!("{name} is an Arrow column of {found}; a batch is a column of {texts}{pairs}")
        }
    }
}
