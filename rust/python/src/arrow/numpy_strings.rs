//! NumPy's fixed-width strings (`dtype="<U10"`) as a column.
//!
//! Each string is an array of 32-bit code points, padded with zeros to the width of the dtype. They are converted to UTF-8
//! one row at a time, much faster than Python could make a `str` of each.

use std::collections::TryReserveError;
use std::ptr;

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use wordpiece_arrow::TextColumn;

use crate::error;

/// Copies the strings of a one-dimensional, contiguous array of fixed-width strings in native byte order into a column.
///
/// Returns `None` for anything else, for an array with a mask, and if a string has a surrogate: the caller then converts the
/// array item by item, which names the item.
///
/// # Errors
///
/// InputError if there is no memory for what the array claims to hold, or a string has a number above 0x10FFFF, of which
/// Python makes no `str`.
pub fn column(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<TextColumn>> {
    let Some(strings) = Strings::new(value) else { return Ok(None) };
    let column = strings.copied().map_err(|_| {
        error::input(format!(
            "{name} is an array of {} strings of up to {} characters, for which there is not enough memory: pass fewer at once",
            strings.n_rows, strings.width
        ))
    });
    match column? {
        Copied::Texts(text, ends) => Ok(Some(TextColumn::from_strings(text, ends))),
        Copied::Surrogate => Ok(None),
        Copied::Beyond { item, position, number } => Err(error::input(format!(
            "item {item} of {name} has the number {number:#x} at position {position}, which is not a character"
        ))),
    }
}

/// What copying the strings of an array came to.
enum Copied {
    /// The strings, and where each begins and the last one ends.
    Texts(String, Vec<i64>),
    /// A string has a surrogate.
    Surrogate,
    /// A string has a number above 0x10FFFF.
    Beyond { item: usize, position: usize, number: u32 },
}

/// An array of fixed-width strings.
struct Strings<'py> {
    /// Keeps the memory alive.
    _view: Bound<'py, PyAny>,
    data: *const u8,
    n_rows: usize,
    width: usize,
}

impl<'py> Strings<'py> {
    fn new(value: &Bound<'py, PyAny>) -> Option<Strings<'py>> {
        // The items of an array with a mask are not all strings.
        if value.cast::<PyUntypedArray>().ok()?.dtype().kind() != b'U' || value.hasattr("mask").unwrap_or(true) {
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
        // SAFETY: `array` is a reference to an object of NumPy's array type (checked by the cast), whose structure has this
        // field.
        let data = unsafe { (*array.as_array_ptr()).fields.data.cast::<u8>() };
        Some(Strings { data, n_rows, width, _view: view })
    }

    fn copied(&self) -> Result<Copied, TryReserveError> {
        let mut has_surrogate = false;
        let (mut text, mut ends, mut row) = (String::new(), Vec::new(), Vec::new());
        // An array of zeros takes no memory however large it is: its strings are empty, so what they could hold does
        // not say how much memory is needed.
        ends.try_reserve_exact(self.n_rows + 1)?;
        row.try_reserve_exact(self.width)?;
        row.resize(self.width, 0_u32);
        ends.push(0);
        for i in 0..self.n_rows {
            // SAFETY: the array is contiguous with `n_rows` items of `width` code points (checked by `new`), so these bytes are
            // inside its memory. The view keeps the array alive; the memory as well unless someone calls the array's
            // `resize` with refcheck=False, which frees it whoever refers to it: NumPy leaves that to its caller. They are
            // copied as bytes, so `data` may have any alignment. `row` has `width` elements and is not NumPy's memory.
            //
            // Another thread may write to the array at the same time, with the GIL (NumPy releases it) or without. So no
            // reference to its memory is made, and all that follows looks at the copy: such a write mixes old and new
            // characters, but what was checked cannot change afterwards.
            unsafe {
                let source = self.data.add(i * self.width * size_of::<u32>());
                ptr::copy_nonoverlapping(source, row.as_mut_ptr().cast::<u8>(), self.width * size_of::<u32>());
            }
            if push_code_points(&mut text, &row)?.is_none() {
                if let Some(position) = row.iter().position(|&number| number > char::MAX.into()) {
                    return Ok(Copied::Beyond { item: i, position, number: row[position] });
                }
                has_surrogate = true;
            }
            ends.push(text.len() as i64);
        }
        Ok(if has_surrogate { Copied::Surrogate } else { Copied::Texts(text, ends) })
    }
}

/// Appends the code points before the zeros that end a row; `None` if one is not a character.
fn push_code_points(text: &mut String, row: &[u32]) -> Result<Option<()>, TryReserveError> {
    let len = row.iter().rposition(|&unit| unit != 0).map_or(0, |last| last + 1);
    let row = &row[..len];
    if row.iter().fold(0, |all, unit| all | unit) < 0x80 {
        text.try_reserve(len)?;
        text.extend(row.iter().map(|&unit| char::from(unit as u8)));
        return Ok(Some(()));
    }
    text.try_reserve(len.saturating_mul(char::MAX_LEN_UTF8))?;
    Ok(row.iter().try_for_each(|&unit| char::from_u32(unit).map(|character| text.push(character))))
}
