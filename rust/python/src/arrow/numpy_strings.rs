//! NumPy's fixed-width strings (`dtype="<U10"`) as a column.
//!
//! Each string is an array of 32-bit code points, padded with zeros to the width of the dtype. They are converted to UTF-8
//! one row at a time, much faster than Python could make a `str` of each.

use std::ptr;

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use wordpiece_arrow::TextColumn;

/// Copies the strings of a one-dimensional, contiguous array of fixed-width strings in native byte order into a column.
///
/// Returns `None` for anything else, and if a string has a code point that UTF-8 cannot represent (a surrogate): the caller
/// then converts the array item by item, which names the item.
pub fn column(value: &Bound<'_, PyAny>) -> Option<TextColumn> {
    if value.cast::<PyUntypedArray>().ok()?.dtype().kind() != b'U' {
        return None;
    }
    // Shape, strides and dtype of an array can be assigned to. A view of our own has its own, which do not change between
    // the checks and the reads, whatever other threads do to the array.
    let ndarray = value.py().get_type::<PyUntypedArray>();
    let view = ndarray.call_method1("view", (value, &ndarray)).ok()?;
    let array = view.cast::<PyUntypedArray>().ok()?;
    let dtype = array.dtype();
    if dtype.kind() != b'U' || dtype.is_native_byteorder() != Some(true) {
        return None;
    }
    if array.ndim() != 1 || !array.is_c_contiguous() {
        return None;
    }
    let (n_rows, width) = (array.len(), dtype.itemsize() / size_of::<u32>());
    // SAFETY: `array` is a reference to an object of NumPy's array type (checked by the cast), whose structure has this field.
    let data = unsafe { (*array.as_array_ptr()).fields.data.cast::<u8>() };

    let mut text = String::with_capacity(n_rows * width);
    let mut ends = Vec::with_capacity(n_rows + 1);
    ends.push(0);
    let mut row = vec![0_u32; width];
    for i in 0..n_rows {
        // SAFETY: the array is contiguous with `n_rows` items of `width` code points (checked above), so these bytes are
        // inside its memory, which the view keeps alive; NumPy refuses to resize an array while there are views of it. They
        // are copied as bytes, so `data` may have any alignment. `row` has `width` elements and is not NumPy's memory.
        //
        // Another thread may write to the array at the same time, with the GIL (NumPy releases it) or without. So no
        // reference to its memory is made, and all that follows looks at the copy: such a write mixes old and new
        // characters, but what was checked cannot change afterwards.
        unsafe {
            let source = data.add(i * width * size_of::<u32>());
            ptr::copy_nonoverlapping(source, row.as_mut_ptr().cast::<u8>(), width * size_of::<u32>());
        }
        push_code_points(&mut text, &row)?;
        ends.push(text.len() as i64);
    }
    Some(TextColumn::from_strings(text, ends))
}

/// Appends the code points before the zeros that end a row; `None` if one is not a character.
fn push_code_points(text: &mut String, row: &[u32]) -> Option<()> {
    let len = row.iter().rposition(|&unit| unit != 0).map_or(0, |last| last + 1);
    let row = &row[..len];
    if row.iter().fold(0, |all, unit| all | unit) < 0x80 {
        text.extend(row.iter().map(|&unit| char::from(unit as u8)));
        return Some(());
    }
    row.iter().try_for_each(|&unit| char::from_u32(unit).map(|character| text.push(character)))
}
