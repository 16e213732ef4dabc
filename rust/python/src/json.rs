//! Numbers as JSON.

use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods as _};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::guarded;

/// Bytes of most numbers of a vector, with the comma.
const BYTES_OF_NUMBER: usize = 13;

/// Return an array of float32 as JSON, each number with the fewest digits that read back as the same float32.
///
/// The array is C-contiguous. A number that is not finite, which JSON does not have, is a ValueError, as of Python's `json`.
#[pyfunction]
pub fn json_of_floats(array: PyReadonlyArrayDyn<'_, f32>) -> PyResult<String> {
    guarded(|| {
        let values = array.as_slice()?;
        if let Some(number) = values.iter().find(|number| !number.is_finite()) {
            return Err(PyValueError::new_err(format!("JSON has no number {number}")));
        }
        let mut text = String::with_capacity(values.len() * BYTES_OF_NUMBER + 2);
        write(&mut text, array.shape(), values);
        Ok(text)
    })
}

/// Appends finite numbers as lists of lists: an array without dimensions is one number.
fn write(text: &mut String, lengths: &[usize], values: &[f32]) {
    let Some((&length, rest)) = lengths.split_first() else {
        text.push_str(zmij::Buffer::new().format_finite(values[0]));
        return;
    };
    let size = rest.iter().product::<usize>();
    text.push('[');
    for i in 0..length {
        if i > 0 {
            text.push(',');
        }
        write(text, rest, &values[i * size..][..size]);
    }
    text.push(']');
}
