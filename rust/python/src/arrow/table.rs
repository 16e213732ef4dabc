//! The arrays of a batch as Arrow columns: a list for each row, over the arrays' own memory.

use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use wordpiece_arrow::ArrowArray;
use wordpiece_arrow::export::{self, Buffer, Field, SharedBuffer};

use crate::arrow::capsule;
use crate::error::{self, guarded};
use crate::text::Utf8String;

/// Arrays, with the names of the columns that they become.
type NamedArrays<'py> = Vec<(Utf8String, Bound<'py, PyAny>)>;

/// An array of one of the kinds that a batch has: C-contiguous and aligned.
enum BatchArray<'py> {
    /// Token ids, uint32 [tokens].
    Ids(Bound<'py, PyArray1<u32>>),
    /// Starts and ends of tokens, int64 [tokens, 2].
    Spans(Bound<'py, PyArray2<i64>>),
    /// Word or sequence ids, int32 [tokens]; −1 becomes null.
    OptionalIds(Bound<'py, PyArray1<i32>>),
    /// A number for each row, int64 [rows].
    RowNumbers(Bound<'py, PyArray1<i64>>),
    /// A flag for each row, bool [rows], viewed as uint8: any byte but 0 is true.
    RowFlags(Bound<'py, PyArray1<u8>>),
}

impl<'py> BatchArray<'py> {
    /// Recognises an array by its dtype and number of dimensions.
    ///
    /// # Errors
    ///
    /// `InputError` if it is none of the kinds, not C-contiguous, or not aligned: readers of Arrow data may refuse or, worse,
    /// dereference buffers that are not.
    fn new(name: &str, array: &Bound<'py, PyAny>) -> PyResult<BatchArray<'py>> {
        // The shape of an array can be assigned to. A view of our own keeps the one that is checked.
        let ndarray = array.py().get_type::<PyUntypedArray>();
        let array = &match array.is_instance(&ndarray)? {
            true => ndarray.call_method1("view", (array, &ndarray))?,
            false => array.clone(),
        };
        let is_readable =
            array.cast::<PyUntypedArray>().is_ok_and(|array| array.is_c_contiguous() && array.is_aligned());
        if is_readable {
            if let Ok(array) = array.cast() {
                return Ok(BatchArray::Ids(array.clone()));
            }
            if let Ok(array) = array.cast::<PyArray2<i64>>() {
                // The type of the column says that there are two for each token, and its reader believes that.
                if array.shape()[1] != 2 {
                    return Err(error::input(format!(
                        "{name} is an array of int64 {:?}, but starts and ends of tokens are [tokens, 2]",
                        array.shape()
                    )));
                }
                return Ok(BatchArray::Spans(array.clone()));
            }
            if let Ok(array) = array.cast() {
                return Ok(BatchArray::OptionalIds(array.clone()));
            }
            if let Ok(array) = array.cast() {
                return Ok(BatchArray::RowNumbers(array.clone()));
            }
            if array.cast::<PyArray1<bool>>().is_ok() {
                // A bool of NumPy may have any byte; one of Rust must be 0 or 1.
                let bytes = array.call_method1("view", ("uint8",))?;
                return Ok(BatchArray::RowFlags(bytes.cast_into::<PyArray1<u8>>()?));
            }
        }
        Err(error::input(format!(
            "{name} is not a contiguous, aligned array of one of the types that a batch has (uint32, int32, int64, bool)"
        )))
    }

    /// Returns the number of tokens or, of arrays with an item for each row, of rows.
    fn len(&self) -> usize {
        match self {
            BatchArray::Ids(array) => array.len(),
            BatchArray::Spans(array) => array.shape()[0],
            BatchArray::OptionalIds(array) => array.len(),
            BatchArray::RowNumbers(array) => array.len(),
            BatchArray::RowFlags(array) => array.len(),
        }
    }

    /// Whether there is an item for each row rather than for each token.
    fn is_per_row(&self) -> bool {
        matches!(self, BatchArray::RowNumbers(_) | BatchArray::RowFlags(_))
    }

    /// Returns the type of the column.
    fn field(&self, name: &str) -> Field {
        let list = |item| Field::new("+L", name).with_children([item]);
        match self {
            BatchArray::Ids(_) => list(Field::new("I", "item")),
            BatchArray::Spans(_) => list(Field::new("+w:2", "item").with_children([Field::new("l", "item")])),
            BatchArray::OptionalIds(_) => list(Field::new("i", "item")),
            BatchArray::RowNumbers(_) => Field::new("l", name),
            BatchArray::RowFlags(_) => Field::new("b", name),
        }
    }

    /// Returns the column: of arrays with an item for each token, lists delimited by `row_offsets`.
    fn to_arrow(&self, row_offsets: &[i64]) -> PyResult<ArrowArray> {
        let values = match self {
            BatchArray::Ids(ids) => export::array(ids.len(), 0, vec![Buffer::Absent, shared(ids)], Vec::new()),
            BatchArray::Spans(spans) => {
                let ends = export::array(spans.len(), 0, vec![Buffer::Absent, shared(spans)], Vec::new());
                export::array(self.len(), 0, vec![Buffer::Absent], vec![ends])
            }
            BatchArray::OptionalIds(ids) => {
                let valid = bitmap(ids.try_readonly()?.as_slice()?.iter().map(|&id| id >= 0));
                let nulls = self.len() - valid.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
                export::array(self.len(), nulls, vec![Buffer::Bytes(valid), shared(ids)], Vec::new())
            }
            BatchArray::RowNumbers(numbers) => {
                return Ok(export::array(self.len(), 0, vec![Buffer::Absent, shared(numbers)], Vec::new()));
            }
            BatchArray::RowFlags(flags) => {
                let flags = bitmap(flags.try_readonly()?.as_slice()?.iter().map(|&flag| flag != 0));
                return Ok(export::array(self.len(), 0, vec![Buffer::Absent, Buffer::Bytes(flags)], Vec::new()));
            }
        };
        let offsets = Buffer::Int64(row_offsets.to_vec());
        Ok(export::array(row_offsets.len() - 1, 0, vec![Buffer::Absent, offsets], vec![values]))
    }
}

/// A reference to a Python object that may be dropped on any thread, attached to the interpreter or not.
struct ObjectOwner(Option<Py<PyAny>>);

impl Drop for ObjectOwner {
    fn drop(&mut self) {
        let mut object = self.0.take();
        Python::try_attach(|_| drop(object.take()));
        // The interpreter is shutting down: its memory is about to go as a whole, and counting references is not possible.
        std::mem::forget(object);
    }
}

/// Returns the memory of a contiguous array, not copied, and keeps the array alive.
fn shared<T: Element, D: numpy::ndarray::Dimension>(array: &Bound<'_, numpy::PyArray<T, D>>) -> Buffer {
    let owner = ObjectOwner(Some(array.as_any().clone().unbind()));
    // SAFETY: the memory belongs to the array or to an object that it refers to, so it lives as long as `owner`, unless
    // someone calls the `resize` of its owner with refcheck=False: NumPy leaves that to its caller. It has all `array.len()`
    // items, as the array is contiguous and our own view, whose shape does not change. That nobody writes to it is what the
    // documentation of the batch asks of the users of its arrays: a reader would see other numbers, but look at no other
    // memory because of them, as they are neither offsets nor sizes.
    Buffer::Shared(unsafe { SharedBuffer::new(array.data().cast_const().cast(), Box::new(owner)) })
}

/// Returns a bit for each value, the first one in the lowest bit of the first byte.
fn bitmap(values: impl ExactSizeIterator<Item = bool>) -> Vec<u8> {
    let mut bits = vec![0; values.len().div_ceil(8)];
    for (i, value) in values.enumerate() {
        bits[i / 8] |= u8::from(value) << (i % 8);
    }
    bits
}

/// Returns the offsets of rows: rows + 1 numbers that are not negative and never decrease. They are copied before they are
/// checked, as the array may be written to: by them a reader finds its way in other memory.
fn checked_row_offsets(array: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let wrong =
        || error::input("row_offsets must be a contiguous array int64 [rows + 1] that never decreases".to_owned());
    let array = array.cast::<PyArray1<i64>>().map_err(|_| wrong())?;
    let offsets = array.try_readonly()?.as_slice().map_err(|_| wrong())?.to_vec();
    if offsets.first().is_none_or(|&first| first < 0) || !offsets.is_sorted() {
        return Err(wrong());
    }
    Ok(offsets)
}

/// The columns of a batch, checked to have as many items as `row_offsets` requires.
struct BatchTable<'py> {
    row_offsets: Vec<i64>,
    columns: Vec<(String, BatchArray<'py>)>,
}

impl<'py> BatchTable<'py> {
    fn new(arrays: NamedArrays<'py>, row_offsets: &Bound<'py, PyAny>) -> PyResult<BatchTable<'py>> {
        let row_offsets = checked_row_offsets(row_offsets)?;
        let rows = row_offsets.len() - 1;
        let tokens = row_offsets[rows];
        let column = |(name, array): (Utf8String, Bound<'py, PyAny>)| {
            let column = BatchArray::new(&name, &array)?;
            let (n, needed) = (column.len(), if column.is_per_row() { rows } else { tokens as usize });
            if n < needed || (column.is_per_row() && n > needed) {
                return Err(error::input(format!("{} has {n} items, but row_offsets requires {needed}", &*name)));
            }
            Ok((name.0, column))
        };
        Ok(BatchTable { columns: arrays.into_iter().map(column).collect::<PyResult<_>>()?, row_offsets })
    }

    /// Returns the type of a table, or of its only column if `single` is set.
    fn field(&self, single: bool) -> Field {
        match self.columns.as_slice() {
            [(_, column)] if single => column.field(""),
            columns => {
                let children = columns.iter().map(|(name, column)| column.field(name));
                Field { is_nullable: false, ..Field::new("+s", "").with_children(children) }
            }
        }
    }

    /// Returns the columns as one array of the type that [`BatchTable::field`] returns.
    fn to_arrow(&self, single: bool) -> PyResult<ArrowArray> {
        match self.columns.as_slice() {
            [(_, column)] if single => column.to_arrow(&self.row_offsets),
            columns => {
                let children = columns.iter().map(|(_, column)| column.to_arrow(&self.row_offsets));
                let children = children.collect::<PyResult<_>>()?;
                Ok(export::array(self.row_offsets.len() - 1, 0, vec![Buffer::Absent], children))
            }
        }
    }
}

/// Return the type of the arrays as a capsule: of a table or, with `single` and one array, of a column.
#[pyfunction]
pub fn _arrow_schema<'py>(
    py: Python<'py>,
    arrays: NamedArrays<'py>,
    row_offsets: &Bound<'py, PyAny>,
    single: bool,
) -> PyResult<Bound<'py, PyCapsule>> {
    guarded(|| capsule::new(py, BatchTable::new(arrays, row_offsets)?.field(single).schema()))
}

/// Return the arrays as two capsules, type and data, which share the arrays' memory and keep it alive.
#[pyfunction]
pub fn _arrow_array<'py>(
    py: Python<'py>,
    arrays: NamedArrays<'py>,
    row_offsets: &Bound<'py, PyAny>,
    single: bool,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    guarded(|| {
        let table = BatchTable::new(arrays, row_offsets)?;
        Ok((capsule::new(py, table.field(single).schema())?, capsule::new(py, table.to_arrow(single)?)?))
    })
}

/// Return the arrays as the capsule of a stream with one chunk; otherwise as `_arrow_array`.
#[pyfunction]
pub fn _arrow_stream<'py>(
    py: Python<'py>,
    arrays: NamedArrays<'py>,
    row_offsets: &Bound<'py, PyAny>,
    single: bool,
) -> PyResult<Bound<'py, PyCapsule>> {
    guarded(|| {
        let table = BatchTable::new(arrays, row_offsets)?;
        capsule::new(py, export::stream(table.field(single), table.to_arrow(single)?))
    })
}
