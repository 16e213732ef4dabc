//! Arrays of 16-bit or 32-bit numbers that a class keeps.

use numpy::{Element, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use wordpiece::pretraining::collate::Column;

use crate::error;

/// An array of uint16 or uint32.
pub enum Numbers {
    U16(Py<PyArray1<u16>>),
    U32(Py<PyArray1<u32>>),
}

/// [`Numbers`] while they are read.
pub enum ReadonlyNumbers<'py> {
    U16(PyReadonlyArray1<'py, u16>),
    U32(PyReadonlyArray1<'py, u32>),
}

impl Numbers {
    /// Keeps an array, which must be of one of the types.
    pub fn new(name: &str, array: &Bound<'_, PyAny>) -> PyResult<Numbers> {
        if let Ok(array) = array.cast::<PyArray1<u16>>() {
            return Ok(Numbers::U16(array.clone().unbind()));
        }
        match array.cast::<PyArray1<u32>>() {
            Ok(array) => Ok(Numbers::U32(array.clone().unbind())),
            Err(_) => Err(error::input(format!("{name} must be an array of uint16 or uint32 with one dimension"))),
        }
    }

    /// Borrows the array for reading.
    pub fn read<'py>(&self, py: Python<'py>) -> PyResult<ReadonlyNumbers<'py>> {
        Ok(match self {
            Numbers::U16(array) => ReadonlyNumbers::U16(readonly(py, array)?),
            Numbers::U32(array) => ReadonlyNumbers::U32(readonly(py, array)?),
        })
    }
}

impl ReadonlyNumbers<'_> {
    /// Returns the numbers.
    pub fn column(&self) -> PyResult<Column<'_>> {
        Ok(match self {
            ReadonlyNumbers::U16(array) => Column::U16(array.as_slice()?),
            ReadonlyNumbers::U32(array) => Column::U32(array.as_slice()?),
        })
    }
}

/// Borrows an array for reading.
pub fn readonly<'py, T: Element>(py: Python<'py>, array: &Py<PyArray1<T>>) -> PyResult<PyReadonlyArray1<'py, T>> {
    array.bind(py).extract()
}
