//! The text of a Python `str` as Rust's `str`. Every string that Python passes comes through this module.
//!
//! A `str` may hold what is not text. A lone surrogate has no UTF-8, so CPython raises. A number above 0x10FFFF, which
//! C code such as NumPy's `tolist` puts into a `str` unchecked, gets bytes that are not UTF-8, or the bytes of another
//! character. PyO3's conversions take the bytes as they are; here they are checked. `clippy.toml` forbids PyO3's
//! methods, and [`Utf8`] and [`Utf8String`] take the place of `&str` and `String` in signatures.

use std::borrow::Borrow;
use std::fmt;
use std::iter::successors;
use std::ops::Deref;

use pyo3::exceptions::{PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{Borrowed, ffi};

use crate::error;

/// The largest number of a character.
const LAST_CHARACTER: u32 = 0x10_FFFF;

/// The first byte of a character of four bytes is not smaller; no other byte of UTF-8 is as large.
const FIRST_OF_FOUR: u8 = 0xF0;

/// Returns the text of a `str`, borrowed. It belongs to the `str` and lives as long, without ever changing.
///
/// # Errors
///
/// InputError with the place `location` if a surrogate or a number above 0x10FFFF is in it, MemoryError.
#[inline]
pub fn utf8<'a>(string: Borrowed<'a, '_, PyString>, location: impl fmt::Display) -> PyResult<&'a str> {
    match checked(string) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(no_text(string, location)),
        Err(cause) if cause.is_instance_of::<PyUnicodeEncodeError>(string.py()) => Err(no_text(string, location)),
        Err(cause) => Err(cause),
    }
}

/// A `str` whose text was checked, kept alive.
pub struct CheckedStr(Py<PyString>);

impl CheckedStr {
    /// Checks a `str`.
    ///
    /// # Errors
    ///
    /// As [`utf8`].
    pub fn new(string: &Bound<'_, PyString>, location: impl fmt::Display) -> PyResult<CheckedStr> {
        utf8(string.as_borrowed(), location)?;
        Ok(CheckedStr(string.clone().unbind()))
    }

    /// Returns the text.
    pub fn get(&self, py: Python<'_>) -> &str {
        let mut size = 0;
        // SAFETY: the object is a `str`. `new` had CPython make its UTF-8, which is cached, so that the function cannot fail,
        // and found it valid. It lives as long as the object, and never changes.
        unsafe {
            let data = ffi::PyUnicode_AsUTF8AndSize(self.0.bind(py).as_ptr(), &mut size);
            std::str::from_utf8_unchecked(std::slice::from_raw_parts(data.cast(), size as usize))
        }
    }
}

/// As [`utf8`], but `None` for a `str` that has no text.
#[inline]
pub fn plain<'a>(string: Borrowed<'a, '_, PyString>) -> Option<&'a str> {
    checked(string).ok().flatten()
}

/// Returns the text of a `str`, `None` if it has a number above 0x10FFFF.
///
/// # Errors
///
/// What CPython raises: UnicodeEncodeError for a surrogate, or MemoryError.
#[inline]
fn checked<'a>(string: Borrowed<'a, '_, PyString>) -> PyResult<Option<&'a str>> {
    let mut size = 0;
    // SAFETY: the argument is a `str`. The bytes are cached in it or are its own, so they live as long and never change.
    let bytes = unsafe {
        let data = ffi::PyUnicode_AsUTF8AndSize(string.as_ptr(), &mut size);
        if data.is_null() {
            return Err(PyErr::fetch(string.py()));
        }
        std::slice::from_raw_parts(data.cast::<u8>(), size as usize)
    };
    // SAFETY: the argument is a `str`.
    let length = unsafe { ffi::PyUnicode_GetLength(string.as_ptr()) } as usize;
    // A character of four bytes has three more than one. English has few others, and its bytes need not be read here.
    let has_no_four = bytes.len() < length + 3 || has_three_at_most(bytes);
    // SAFETY: it is the UTF-8 of characters.
    Ok((has_no_four || has_characters_only(string, bytes)).then(|| unsafe { std::str::from_utf8_unchecked(bytes) }))
}

/// Returns whether no character of a text has four bytes, so that nothing else is to be looked at.
#[inline]
fn has_three_at_most(bytes: &[u8]) -> bool {
    const LANES: usize = 16;
    let mut max = [0; LANES];
    // Bytes at the end are looked at twice, which takes less time than to look at them one by one.
    let Some(last) = bytes.last_chunk::<LANES>() else {
        return bytes.iter().all(|byte| *byte < FIRST_OF_FOUR);
    };
    for block in bytes.as_chunks::<LANES>().0.iter().chain([last]) {
        for (max, byte) in max.iter_mut().zip(block) {
            *max = (*max).max(*byte);
        }
    }
    max.iter().all(|byte| *byte < FIRST_OF_FOUR)
}

/// Returns whether there is no number above 0x10FFFF in a `str`, given what CPython has made of it.
///
/// CPython makes valid UTF-8 of all other numbers, or raises. Of such a number it makes four bytes from a part of its bits, of
/// which the first is [`FIRST_OF_FOUR`] or more, as of any number above 0xFFFF.
fn has_characters_only(string: Borrowed<'_, '_, PyString>, bytes: &[u8]) -> bool {
    const BLOCK: usize = 32;
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut before = 0;
    for block in blocks {
        // The number of characters that begin in it fits a byte: the compiler counts 16 bytes or more at a time.
        let (mut max, mut begun) = (0, 0_u8);
        for byte in block {
            max = max.max(*byte);
            begun += u8::from(begins_character(*byte));
        }
        if max >= FIRST_OF_FOUR && !has_characters_only_in(string, block, before) {
            return false;
        }
        before += usize::from(begun);
    }
    has_characters_only_in(string, rest, before)
}

/// As [`has_characters_only`], for some of the bytes, before which `before` characters begin.
fn has_characters_only_in(string: Borrowed<'_, '_, PyString>, bytes: &[u8], before: usize) -> bool {
    let mut index = before;
    for byte in bytes {
        if *byte >= FIRST_OF_FOUR && character(string, index) > LAST_CHARACTER {
            return false;
        }
        index += usize::from(begins_character(*byte));
    }
    true
}

/// Whether a byte of UTF-8 is the first of a character.
#[inline]
fn begins_character(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// Returns the number of the character at an index of the `str`; one that no `str` has if there is none.
fn character(string: Borrowed<'_, '_, PyString>, index: usize) -> u32 {
    // SAFETY: the argument is a `str`; for an index that it does not have, the function raises.
    let code = unsafe { ffi::PyUnicode_ReadChar(string.as_ptr(), index as isize) };
    if code == u32::MAX {
        drop(PyErr::take(string.py()));
    }
    code
}

/// Returns the error for a `str` that has no text: the position and the value of the first number that is not a
/// character.
#[cold]
fn no_text(string: Borrowed<'_, '_, PyString>, location: impl fmt::Display) -> PyErr {
    // SAFETY: the argument is a `str`.
    let length = unsafe { ffi::PyUnicode_GetLength(string.as_ptr()) } as usize;
    let numbers = (0..length).map(|at| (at, character(string, at)));
    let Some((at, code)) = { numbers }.find(|(_, code)| char::from_u32(*code).is_none()) else {
        return error::input(format!("{location} has no UTF-8 form"));
    };
    error::input(match code {
        ..=0xFFFF => format!(
            "{location} has a lone surrogate, '\\u{code:04x}', at position {at}, which is not a character: clean the text, \
             for example with text.encode(\"utf-8\", \"replace\").decode()"
        ),
        _ => format!(
            "{location} has the number {code:#x} at position {at}, which is not a character, as characters end at \
             0x10ffff: look where the text was made, for example from an array of bytes with another dtype"
        ),
    })
}

/// Returns a `str` for a message: what is not a character in it becomes U+FFFD.
pub fn lossy(string: &Bound<'_, PyString>) -> String {
    if let Some(text) = plain(string.as_borrowed()) {
        return text.to_owned();
    }
    // SAFETY: the argument is a `str`.
    let length = unsafe { ffi::PyUnicode_GetLength(string.as_ptr()) } as usize;
    let character = |at| char::from_u32(character(string.as_borrowed(), at)).unwrap_or(char::REPLACEMENT_CHARACTER);
    (0..length).map(character).collect()
}

/// Returns the `repr` of an object for a message; `None` if it raises.
pub fn repr(value: &Bound<'_, PyAny>) -> Option<String> {
    value.repr().ok().map(|repr| lossy(&repr))
}

/// An argument that is a `str`, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Utf8<'a>(&'a str);

impl<'a> FromPyObject<'a, '_> for Utf8<'a> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, '_, PyAny>) -> PyResult<Utf8<'a>> {
        Ok(Utf8(utf8(object.cast::<PyString>()?, "a str argument")?))
    }
}

impl Deref for Utf8<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

/// An argument, or an item or a field of one, that is a `str`, copied.
#[derive(Clone, Debug, PartialEq, Eq, Hash, IntoPyObject)]
#[pyo3(transparent)]
pub struct Utf8String(pub String);

impl FromPyObject<'_, '_> for Utf8String {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Utf8String> {
        Utf8::extract(object).map(|text| Utf8String(text.0.to_owned()))
    }
}

/// As a key of a map.
impl Borrow<str> for Utf8String {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Deref for Utf8String {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// An argument that is a struct of fields. What a field raises, as of a string with surrogates, comes through; PyO3 makes a
/// TypeError of it, which says only which field it is of.
pub struct Fields<T>(pub T);

impl<'a, 'py, T: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for Fields<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Fields<T>> {
        object.extract().map(Fields).map_err(|error: T::Error| {
            let (py, outer): (_, PyErr) = (object.py(), error.into());
            let mut causes = successors(outer.cause(py), |cause| cause.cause(py));
            causes.find(|cause| !cause.get_type(py).is(py.get_type::<PyTypeError>())).unwrap_or(outer)
        })
    }
}

/// Takes the strings out of a list of arguments.
pub fn strings(list: Vec<Utf8String>) -> Vec<String> {
    list.into_iter().map(|text| text.0).collect()
}
