//! The rows of a batch as NumPy arrays, which take over the core's buffers without copying, but for small ones.

use numpy::ndarray::{Array, Dimension, IntoDimension};
use numpy::{Element, PyArray, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{ffi, intern};
use wordpiece::{BatchRows, Columns};

use crate::text::Utf8String;
use crate::{error, numpy_api};

/// The rows of a batch as arrays. A column that was not requested is None.
///
/// A column with a number for each token is flat, [n], and offsets are [n, 2]. If rows of one length were to be shaped, it is
/// [rows, length], and offsets are [rows, length, 2].
#[pyclass(frozen, get_all, module = "wordpiece_bert._core")]
pub struct Rows {
    ids: Py<PyAny>,
    row_offsets: Py<PyArray1<i64>>,
    type_ids: Option<Py<PyAny>>,
    attention_mask: Option<Py<PyAny>>,
    special_tokens_mask: Option<Py<PyAny>>,
    offsets: Option<Py<PyAny>>,
    word_ids: Option<Py<PyArray1<i32>>>,
    sequence_ids: Option<Py<PyArray1<i32>>>,
    overflow_to_sample: Option<Py<PyArray1<i64>>>,
    n_tokens: Option<Py<PyArray1<i64>>>,
    truncated: Py<PyArray1<bool>>,
    /// The number of rows and their length, if all rows have the same length.
    shape: Option<(usize, usize)>,
}

impl Rows {
    /// Wraps the rows of the core; only the requested columns become arrays. With `shaped`, rows of one length are an axis.
    pub fn new<N: Element + Copy>(
        py: Python<'_>,
        rows: BatchRows<N>,
        columns: &Columns,
        shaped: bool,
    ) -> PyResult<Rows> {
        numpy_api::ready(py)?;
        let n = rows.ids.len();
        let shape = rows.shape();
        let axes = shape.filter(|_| shaped);
        let of_tokens = |buffer: Vec<N>| match axes {
            Some((count, length)) => array(py, buffer, [count, length]).into_any().unbind(),
            None => array(py, buffer, [n]).into_any().unbind(),
        };
        let offsets = columns.offsets.then(|| match axes {
            Some((count, length)) => array(py, rows.offsets, [count, length, 2]).into_any().unbind(),
            None => array(py, rows.offsets, [n, 2]).into_any().unbind(),
        });
        Ok(Rows {
            ids: of_tokens(rows.ids),
            row_offsets: flat(py, rows.row_offsets),
            type_ids: columns.type_ids.then(|| of_tokens(rows.type_ids)),
            attention_mask: columns.attention_mask.then(|| of_tokens(rows.attention_mask)),
            special_tokens_mask: columns.special_tokens_mask.then(|| of_tokens(rows.special_tokens_mask)),
            offsets,
            word_ids: columns.word_ids.then(|| flat(py, rows.word_ids)),
            sequence_ids: columns.sequence_ids.then(|| flat(py, rows.sequence_ids)),
            overflow_to_sample: columns.windows.then(|| flat(py, rows.overflow_to_sample)),
            n_tokens: columns.n_tokens.then(|| flat(py, rows.n_tokens)),
            truncated: flat(py, rows.truncated),
            shape,
        })
    }
}

#[pymethods]
impl Rows {
    /// Return the columns with a number or a pair for each token, by their names in transformers.
    fn model_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inputs = PyDict::new(py);
        inputs.set_item(intern!(py, "input_ids"), &self.ids)?;
        for (name, column) in [
            (intern!(py, "token_type_ids"), &self.type_ids),
            (intern!(py, "attention_mask"), &self.attention_mask),
            (intern!(py, "special_tokens_mask"), &self.special_tokens_mask),
            (intern!(py, "offset_mapping"), &self.offsets),
        ] {
            if let Some(column) = column {
                inputs.set_item(name, column)?;
            }
        }
        Ok(inputs)
    }

    /// Set the fields of a `RaggedBatch`, which is frozen, to the columns of the same names.
    fn fill(&self, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = batch.py();
        let set = |name: &Bound<'_, PyString>, value: *mut ffi::PyObject| {
            // SAFETY: all three are objects that are alive, and None is one. It is what `object.__setattr__` calls.
            match unsafe { ffi::PyObject_GenericSetAttr(batch.as_ptr(), name.as_ptr(), value) } {
                0 => Ok(()),
                _ => Err(PyErr::fetch(py)),
            }
        };
        fn pointer<T>(py: Python<'_>, column: &Option<Py<T>>) -> *mut ffi::PyObject {
            column.as_ref().map_or_else(|| py.None().as_ptr(), Py::as_ptr)
        }
        set(intern!(py, "ids"), self.ids.as_ptr())?;
        set(intern!(py, "row_offsets"), self.row_offsets.as_ptr())?;
        set(intern!(py, "truncated"), self.truncated.as_ptr())?;
        set(intern!(py, "offsets"), pointer(py, &self.offsets))?;
        set(intern!(py, "word_ids"), pointer(py, &self.word_ids))?;
        set(intern!(py, "sequence_ids"), pointer(py, &self.sequence_ids))?;
        set(intern!(py, "overflow_to_sample"), pointer(py, &self.overflow_to_sample))?;
        set(intern!(py, "n_tokens"), pointer(py, &self.n_tokens))
    }
}

/// Buffers of up to this many bytes are copied: an object that owns a buffer takes longer to make.
const MAX_COPIED_BYTES: usize = 4096;

/// Returns an array with the numbers of a buffer, as many as `shape` has; it takes over all but small ones.
fn array<T: Element + Copy, D: Dimension>(
    py: Python<'_>,
    buffer: Vec<T>,
    shape: impl IntoDimension<Dim = D>,
) -> Bound<'_, PyArray<T, D>> {
    let shape = shape.into_dimension();
    if size_of_val(&buffer[..]) > MAX_COPIED_BYTES {
        let array = Array::from_shape_vec(shape, buffer).expect("the caller's shape has as many numbers");
        return PyArray::from_owned_array(py, array);
    }
    let array = PyArray::zeros(py, shape, false);
    // SAFETY: nothing else has a reference to the array, and it is contiguous.
    unsafe { array.as_slice_mut() }.expect("a new array is contiguous").copy_from_slice(&buffer);
    array
}

/// Returns an array of one axis; as [`array`].
fn flat<T: Element + Copy>(py: Python<'_>, buffer: Vec<T>) -> Py<PyArray1<T>> {
    let shape = [buffer.len()];
    array(py, buffer, shape).unbind()
}

/// Returns the columns with these names, which are the names of the attributes of [`Rows`].
pub fn columns(names: &[Utf8String]) -> PyResult<Columns> {
    let mut columns = Columns::default();
    for name in names {
        let column = match &**name {
            "type_ids" => &mut columns.type_ids,
            "attention_mask" => &mut columns.attention_mask,
            "special_tokens_mask" => &mut columns.special_tokens_mask,
            "offsets" => &mut columns.offsets,
            "word_ids" => &mut columns.word_ids,
            "sequence_ids" => &mut columns.sequence_ids,
            "overflow_to_sample" => &mut columns.windows,
            "n_tokens" => &mut columns.n_tokens,
            _ => return Err(error::input(format!("unknown column {:?}", &**name))),
        };
        *column = true;
    }
    Ok(columns)
}
