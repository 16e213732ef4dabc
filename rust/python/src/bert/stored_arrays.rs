//! Weights as NumPy arrays, float32, bfloat16 as bits or int8, read in place and unpacked.

use numpy::{
    Element, IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use wordpiece_kernels::encoder::{LayerNormWeights, Norm};
use wordpiece_kernels::gemm::{QuantizedWeight, UnpackedWeights, groups};
use wordpiece_kernels::norm::NormKind;
use wordpiece_kernels::numbers::Numbers;

use crate::error;
use crate::text::Utf8String;

/// The numbers of a table or weight and the name of their type: float32; bfloat16 as uint16 bits; or int8 as a
/// tuple of int8 numbers [rows, columns], float32 scales [rows, groups] and the float32 columns that are not quantized.
pub type StoredArray<'py> = (Bound<'py, PyAny>, Utf8String);

/// A dense layer of a checkpoint: weight [out, in] and bias [out].
pub type DenseArrays<'py> = (StoredArray<'py>, PyReadonlyArray1<'py, f32>);

/// A norm: γ, β and ε.
pub type NormWithEps<'py> = (PyReadonlyArray1<'py, f32>, PyReadonlyArray1<'py, f32>, f32);

/// Copies a layer norm.
///
/// # Errors
///
/// If an array is not contiguous.
pub fn norm_of((weight, bias, eps): &NormWithEps<'_>) -> PyResult<Norm> {
    let weights = LayerNormWeights::new(weight.as_slice()?, bias.as_slice()?);
    Ok(Norm { weights, eps: *eps, columns: weight.len(), kind: NormKind::Layer })
}

/// Returns unpacked weights as an array [rows, columns], and the name of their type.
///
/// # Errors
///
/// If there are not rows·columns of them.
pub fn stored_array(py: Python<'_>, weights: UnpackedWeights, shape: [usize; 2]) -> PyResult<StoredArray<'_>> {
    let name = |name: &str| Utf8String(name.to_owned());
    Ok(match weights {
        UnpackedWeights::F32(x) => (x.into_pyarray(py).reshape(shape)?.into_any(), name("float32")),
        UnpackedWeights::Bf16(x) => (x.into_pyarray(py).reshape(shape)?.into_any(), name("bfloat16")),
        UnpackedWeights::Int8(x) => (int8_arrays(py, x, shape)?.into_pyobject(py)?.into_any(), name("int8")),
    })
}

/// int8 numbers [out, in], their scales [out, groups] and the columns that are not quantized, [out, n].
pub type Int8Arrays<'py> = (Bound<'py, PyArray2<i8>>, Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<f32>>);

/// Returns an int8 weight [rows, columns] as arrays.
///
/// # Errors
///
/// If there are not rows·columns numbers.
pub fn int8_arrays(py: Python<'_>, weight: QuantizedWeight, [rows, columns]: [usize; 2]) -> PyResult<Int8Arrays<'_>> {
    let kept = weight.columns.len() / rows.max(1);
    Ok((
        weight.values.into_pyarray(py).reshape([rows, columns])?,
        weight.scales.into_pyarray(py).reshape([rows, groups(columns)])?,
        weight.columns.into_pyarray(py).reshape([rows, kept])?,
    ))
}

/// A stored array while it is read.
pub enum BorrowedNumbers<'py> {
    F32(PyReadonlyArray2<'py, f32>),
    /// bfloat16 numbers as bits.
    Bf16(PyReadonlyArray2<'py, u16>),
    Int8 {
        values: PyReadonlyArray2<'py, i8>,
        scales: PyReadonlyArray2<'py, f32>,
    },
}

impl<'py> BorrowedNumbers<'py> {
    pub fn new(array: &Bound<'py, PyAny>, dtype: &str) -> PyResult<BorrowedNumbers<'py>> {
        Ok(match dtype {
            "float32" => BorrowedNumbers::F32(array.extract()?),
            "int8" => {
                // Tables have the factor 1 for all columns, so all are quantized.
                let (values, scales, _) = array.extract::<(_, _, Bound<'py, PyAny>)>()?;
                BorrowedNumbers::Int8 { values, scales }
            }
            _ => BorrowedNumbers::Bf16(array.extract()?),
        })
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        match self {
            BorrowedNumbers::F32(array) => array.shape()[1],
            BorrowedNumbers::Int8 { values, .. } => values.shape()[1],
            BorrowedNumbers::Bf16(array) => array.shape()[1],
        }
    }

    /// Returns the numbers, row by row.
    ///
    /// # Errors
    ///
    /// If the array is not C-contiguous.
    pub fn numbers(&self) -> PyResult<Numbers<'_>> {
        Ok(match self {
            BorrowedNumbers::F32(array) => Numbers::F32(by_rows(array)?),
            BorrowedNumbers::Int8 { values, scales } => {
                Numbers::Int8 { values: by_rows(values)?, scales: by_rows(scales)?, columns: values.shape()[1] }
            }
            BorrowedNumbers::Bf16(array) => Numbers::Bf16(by_rows(array)?),
        })
    }
}

/// Returns the numbers of an array, row by row.
///
/// # Errors
///
/// InputError if they are in another order: the slice of an array by columns would be its transpose.
pub fn by_rows<'a, T: Element>(array: &'a PyReadonlyArray2<'_, T>) -> PyResult<&'a [T]> {
    if !array.is_c_contiguous() {
        let message = format!("an array {:?} is not stored row by row: pass np.ascontiguousarray(it)", array.shape());
        return Err(error::input(message));
    }
    Ok(array.as_slice()?)
}
