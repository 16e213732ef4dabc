//! The rows of a batch as NumPy arrays, which take over the core's buffers without copying, but for small ones.

use numpy::{Element, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use wordpiece::{BatchRows, Columns};

use crate::error;

/// The rows of a batch as flat arrays. A column that was not requested is None.
#[pyclass(frozen, get_all, module = "wordpiece_bert._core")]
pub struct Rows {
    ids: Py<PyAny>,
    row_offsets: Py<PyArray1<i64>>,
    type_ids: Option<Py<PyAny>>,
    attention_mask: Option<Py<PyAny>>,
    special_tokens_mask: Option<Py<PyAny>>,
    offsets: Option<Py<PyArray2<i64>>>,
    word_ids: Option<Py<PyArray1<i32>>>,
    sequence_ids: Option<Py<PyArray1<i32>>>,
    overflow_to_sample: Option<Py<PyArray1<i64>>>,
    n_tokens: Option<Py<PyArray1<i64>>>,
    truncated: Py<PyArray1<bool>>,
    /// The number of rows and their length, if all rows have the same length.
    shape: Option<(usize, usize)>,
}

impl Rows {
    /// Wraps the rows of the core; only the requested columns become arrays.
    pub fn new<N: Element + Copy>(py: Python<'_>, rows: BatchRows<N>, columns: &Columns) -> PyResult<Rows> {
        let n = rows.ids.len();
        let shape = rows.shape();
        let offsets = match columns.offsets {
            true => Some(PyArray1::from_vec(py, rows.offsets).reshape([n, 2])?.unbind()),
            false => None,
        };
        Ok(Rows {
            ids: array(py, rows.ids).into_any(),
            row_offsets: array(py, rows.row_offsets),
            type_ids: columns.type_ids.then(|| array(py, rows.type_ids).into_any()),
            attention_mask: columns.attention_mask.then(|| array(py, rows.attention_mask).into_any()),
            special_tokens_mask: columns.special_tokens_mask.then(|| array(py, rows.special_tokens_mask).into_any()),
            offsets,
            word_ids: columns.word_ids.then(|| array(py, rows.word_ids)),
            sequence_ids: columns.sequence_ids.then(|| array(py, rows.sequence_ids)),
            overflow_to_sample: columns.windows.then(|| array(py, rows.overflow_to_sample)),
            n_tokens: columns.n_tokens.then(|| array(py, rows.n_tokens)),
            truncated: array(py, rows.truncated),
            shape,
        })
    }
}

/// Buffers of up to this many bytes are copied: an object that owns a buffer takes longer to make.
const MAX_COPIED_BYTES: usize = 4096;

/// Returns an array with the numbers of a buffer; it takes over all but small ones.
fn array<T: Element + Copy>(py: Python<'_>, buffer: Vec<T>) -> Py<PyArray1<T>> {
    if size_of_val(&buffer[..]) <= MAX_COPIED_BYTES {
        return PyArray1::from_slice(py, &buffer).unbind();
    }
    PyArray1::from_vec(py, buffer).unbind()
}

/// Returns the columns with these names, which are the names of the attributes of [`Rows`].
pub fn columns(names: &[String]) -> PyResult<Columns> {
    let mut columns = Columns::default();
    for name in names {
        let column = match name.as_str() {
            "type_ids" => &mut columns.type_ids,
            "attention_mask" => &mut columns.attention_mask,
            "special_tokens_mask" => &mut columns.special_tokens_mask,
            "offsets" => &mut columns.offsets,
            "word_ids" => &mut columns.word_ids,
            "sequence_ids" => &mut columns.sequence_ids,
            "overflow_to_sample" => &mut columns.windows,
            "n_tokens" => &mut columns.n_tokens,
            _ => return Err(error::input(format!("unknown column {name:?}"))),
        };
        *column = true;
    }
    Ok(columns)
}
