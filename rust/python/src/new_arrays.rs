//! NumPy arrays for results.

use numpy::PyArray;
use numpy::ndarray::Dimension;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error;

/// Returns a new array of zeros; `rows` and `what` are for the message.
///
/// # Errors
///
/// InputError if it cannot be allocated. The constructors of the numpy crate panic in that case.
pub fn zeros<'py, D: Dimension>(
    py: Python<'py>,
    shape: impl AsRef<[usize]>,
    rows: usize,
    what: &str,
) -> PyResult<Bound<'py, PyArray<f32, D>>> {
    let shape = shape.as_ref();
    let array = py.import("numpy")?.call_method1("zeros", (PyTuple::new(py, shape)?, "float32"));
    let refused = |cause: PyErr| {
        if !cause.is_instance_of::<PyMemoryError>(py) && !cause.is_instance_of::<PyValueError>(py) {
            return cause;
        }
        let bytes = shape.iter().fold(size_of::<f32>(), |bytes, n| bytes.saturating_mul(*n));
        error::input(format!(
            "{what} of {rows} rows, {shape:?}, need {bytes} bytes of memory, which cannot be allocated: use fewer rows at a \
             time, or shorter ones"
        ))
    };
    Ok(array.map_err(refused)?.cast_into()?)
}
