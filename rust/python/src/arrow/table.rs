//! The arrays of a batch as columns of Arrow: lists, one for each row, over the arrays' own memory.

use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrow::abi::{Array, Schema, Stream, Structure};
use crate::arrow::export::{self, Buffer, Field, Held};
use crate::error::{self, guarded};

/// The arrays, with the names of the columns that they become.
type Arrays<'py> = Vec<(String, Bound<'py, PyAny>)>;

/// An array of one of the kinds that a batch has.
enum Column<'py> {
    /// Ids, uint32 [n].
    Ids(Bound<'py, PyArray1<u32>>),
    /// Starts and ends, int64 [n, 2].
    Spans(Bound<'py, PyArray2<i64>>),
    /// Word and sequence ids, int32 [n]; −1 is null.
    Numbers(Bound<'py, PyArray1<i32>>),
    /// Something for each row, int64 [rows].
    RowNumbers(Bound<'py, PyArray1<i64>>),
    /// Something for each row, bool [rows].
    RowFlags(Bound<'py, PyArray1<bool>>),
}

impl<'py> Column<'py> {
    fn new(name: &str, array: &Bound<'py, PyAny>) -> PyResult<Column<'py>> {
        let contiguous = array.cast::<PyUntypedArray>().is_ok_and(|array| array.is_c_contiguous());
        let column = match contiguous {
            false => None,
            true => {
                let ids = array.cast::<PyArray1<u32>>().map(|array| Column::Ids(array.clone()));
                let spans = || array.cast::<PyArray2<i64>>().map(|array| Column::Spans(array.clone()));
                let numbers = || array.cast::<PyArray1<i32>>().map(|array| Column::Numbers(array.clone()));
                let row_numbers = || array.cast::<PyArray1<i64>>().map(|array| Column::RowNumbers(array.clone()));
                let row_flags = || array.cast::<PyArray1<bool>>().map(|array| Column::RowFlags(array.clone()));
                ids.or_else(|_| spans()).or_else(|_| numbers()).or_else(|_| row_numbers()).or_else(|_| row_flags()).ok()
            }
        };
        column.ok_or_else(|| {
            error::input(format!(
                "{name} is no contiguous array of one of the types that a batch has (uint32, int32, int64, bool)"
            ))
        })
    }

    /// The number of tokens or, without lists, of rows.
    fn len(&self) -> usize {
        match self {
            Column::Ids(array) => array.len(),
            Column::Spans(array) => array.shape()[0],
            Column::Numbers(array) => array.len(),
            Column::RowNumbers(array) => array.len(),
            Column::RowFlags(array) => array.len(),
        }
    }

    fn is_per_row(&self) -> bool {
        matches!(self, Column::RowNumbers(_) | Column::RowFlags(_))
    }

    fn field(&self, name: &str) -> Field {
        let plain = |name: &str, format| Field { format, name: name.to_owned(), nullable: true, children: Vec::new() };
        let list = |item| Field { children: vec![item], ..plain(name, "+L") };
        match self {
            Column::Ids(_) => list(plain("item", "I")),
            Column::Spans(_) => list(Field { children: vec![plain("item", "l")], ..plain("item", "+w:2") }),
            Column::Numbers(_) => list(plain("item", "i")),
            Column::RowNumbers(_) => plain(name, "l"),
            Column::RowFlags(_) => plain(name, "b"),
        }
    }

    /// As an array of Arrow, cut into rows where `row_offsets` say.
    fn array(&self, row_offsets: &Bound<'py, PyArray1<i64>>) -> PyResult<Array> {
        let values = match self {
            Column::Ids(ids) => export::array(ids.len(), 0, vec![Buffer::Absent, held(ids)], Vec::new()),
            Column::Spans(spans) => {
                let ends = export::array(spans.len(), 0, vec![Buffer::Absent, held(spans)], Vec::new());
                export::array(self.len(), 0, vec![Buffer::Absent], vec![ends])
            }
            Column::Numbers(numbers) => {
                let valid = bits(numbers.try_readonly()?.as_slice()?.iter().map(|&number| number >= 0));
                let nulls = self.len() - valid.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
                export::array(self.len(), nulls, vec![Buffer::Bytes(valid), held(numbers)], Vec::new())
            }
            Column::RowNumbers(numbers) => {
                return Ok(export::array(self.len(), 0, vec![Buffer::Absent, held(numbers)], Vec::new()));
            }
            Column::RowFlags(flags) => {
                let bits = bits(flags.try_readonly()?.as_slice()?.iter().copied());
                return Ok(export::array(self.len(), 0, vec![Buffer::Absent, Buffer::Bytes(bits)], Vec::new()));
            }
        };
        Ok(export::array(row_offsets.len() - 1, 0, vec![Buffer::Absent, held(row_offsets)], vec![values]))
    }
}

/// The memory of an array, not copied.
fn held<T: Element, D: numpy::ndarray::Dimension>(array: &Bound<'_, numpy::PyArray<T, D>>) -> Buffer {
    Buffer::Held(Held::new(array.data().cast_const().cast(), array.as_any()))
}

/// A bit for each value, the first one lowest.
fn bits(values: impl ExactSizeIterator<Item = bool>) -> Vec<u8> {
    let mut bits = vec![0; values.len().div_ceil(8)];
    for (i, value) in values.enumerate() {
        bits[i / 8] |= u8::from(value) << (i % 8);
    }
    bits
}

/// The offsets of rows, when they are that.
fn row_offsets<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let wrong =
        || error::input("row_offsets must be a contiguous array int64 [rows + 1] that never decreases".to_owned());
    let array = array.cast::<PyArray1<i64>>().map_err(|_| wrong())?;
    {
        let offsets = array.try_readonly()?;
        let offsets = offsets.as_slice().map_err(|_| wrong())?;
        if offsets.first().is_none_or(|&first| first < 0) || !offsets.is_sorted() {
            return Err(wrong());
        }
    }
    Ok(array.clone())
}

/// The columns of a batch, checked.
struct Table<'py> {
    row_offsets: Bound<'py, PyArray1<i64>>,
    columns: Vec<(String, Column<'py>)>,
}

impl<'py> Table<'py> {
    fn new(arrays: Arrays<'py>, offsets: &Bound<'py, PyAny>) -> PyResult<Table<'py>> {
        let row_offsets = row_offsets(offsets)?;
        let rows = row_offsets.len() - 1;
        let last = row_offsets.try_readonly()?.as_slice()?[rows];
        let column = |(name, array): (String, Bound<'py, PyAny>)| {
            let column = Column::new(&name, &array)?;
            let (n, needed) = (column.len(), if column.is_per_row() { rows } else { last as usize });
            if n < needed || (column.is_per_row() && n > needed) {
                return Err(error::input(format!("{name} has {n} items, but by row_offsets there are {needed}")));
            }
            Ok((name, column))
        };
        Ok(Table { columns: arrays.into_iter().map(column).collect::<PyResult<_>>()?, row_offsets })
    }

    /// The only column alone, without a name; several as those of a table.
    fn field(&self, alone: bool) -> Field {
        match self.columns.as_slice() {
            [(_, column)] if alone => column.field(""),
            columns => Field {
                format: "+s",
                name: String::new(),
                nullable: false,
                children: columns.iter().map(|(name, column)| column.field(name)).collect(),
            },
        }
    }

    fn array(&self, alone: bool) -> PyResult<Array> {
        match self.columns.as_slice() {
            [(_, column)] if alone => column.array(&self.row_offsets),
            columns => {
                let children = columns.iter().map(|(_, column)| column.array(&self.row_offsets));
                let children = children.collect::<PyResult<_>>()?;
                Ok(export::array(self.row_offsets.len() - 1, 0, vec![Buffer::Absent], children))
            }
        }
    }
}

fn capsule<T: Structure + Send>(py: Python<'_>, structure: T) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, structure, T::CAPSULE)
}

/// Return the type of the columns as a capsule; one column may stand alone, else they are those of a table.
#[pyfunction]
pub fn _arrow_schema<'py>(
    py: Python<'py>,
    arrays: Arrays<'py>,
    row_offsets: &Bound<'py, PyAny>,
    alone: bool,
) -> PyResult<Bound<'py, PyCapsule>> {
    guarded(|| capsule::<Schema>(py, Table::new(arrays, row_offsets)?.field(alone).schema()))
}

/// Return the columns as two capsules, the type and the array; they share the arrays' memory and hold it.
#[pyfunction]
pub fn _arrow_array<'py>(
    py: Python<'py>,
    arrays: Arrays<'py>,
    row_offsets: &Bound<'py, PyAny>,
    alone: bool,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    guarded(|| {
        let table = Table::new(arrays, row_offsets)?;
        Ok((capsule::<Schema>(py, table.field(alone).schema())?, capsule::<Array>(py, table.array(alone)?)?))
    })
}

/// Return the columns as the capsule of a stream with one part; the rest as for `_arrow_array`.
#[pyfunction]
pub fn _arrow_stream<'py>(
    py: Python<'py>,
    arrays: Arrays<'py>,
    row_offsets: &Bound<'py, PyAny>,
    alone: bool,
) -> PyResult<Bound<'py, PyCapsule>> {
    guarded(|| {
        let table = Table::new(arrays, row_offsets)?;
        capsule::<Stream>(py, export::stream(table.field(alone), table.array(alone)?))
    })
}
