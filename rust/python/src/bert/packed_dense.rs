//! Packed dense layers, of which the layers of a model are made.

use std::sync::Arc;

use numpy::ndarray::Ix2;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use wordpiece_kernels::gemm::{Dense, PackedWeights, Products, QuantizedWeight, linear_to_rows};
use wordpiece_kernels::{Execution, Matrix, pad_to_panels, panels};

use super::engine::{kernels_for, products_for};
use super::names::activation_of;
use super::stored_arrays::{BorrowedNumbers, DenseArrays, Int8Arrays, StoredArray, by_rows, int8_arrays, stored_array};
use crate::error::{self, guarded};
use crate::interrupt::detached;
use crate::new_arrays::zeros;
use crate::text::{self, Utf8, Utf8String};
use crate::threads::{self, Threads};

/// One dense layer, or several with the same input that are computed as one, packed.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct PackedDense {
    dense: Arc<Dense>,
    /// The name and the number of outputs of each layer.
    parts: Vec<(String, usize)>,
    /// The number of inputs.
    columns: usize,
    /// The last two arguments of the constructor.
    made_for: (String, Option<String>),
}

#[pymethods]
impl PackedDense {
    /// Pack dense layers under these names, for the products of `dtype` with `instruction_set`: float32 or bfloat16;
    /// or int8 for weights that `quantize` returned, with the same `factors` [in] for all, 0 for inputs that are not
    /// quantized. An `observed` layer remembers its inputs.
    #[new]
    #[pyo3(signature = (names, layers, dtype, instruction_set=None, factors=None, *, observed=false))]
    fn new(
        py: Python<'_>,
        names: Vec<Utf8String>,
        layers: Vec<DenseArrays<'_>>,
        dtype: Utf8String,
        instruction_set: Option<Utf8String>,
        factors: Option<PyReadonlyArray1<'_, f32>>,
        observed: bool,
    ) -> PyResult<PackedDense> {
        guarded(|| {
            let rows = layers.iter().map(|layer| layer.1.len());
            let parts: Vec<_> = text::strings(names).into_iter().zip(rows).collect();
            let (dtype, instruction_set) = (dtype.0, instruction_set.map(|name| name.0));
            let (dense, columns) = match &factors {
                Some(factors) => (int8_dense(py, &layers, factors.as_slice()?)?, factors.len()),
                None => {
                    let products = products_for(&dtype, instruction_set.as_deref())?;
                    float_dense(py, &layers, products)?
                }
            };
            let dense = Arc::new(if observed { dense.observing() } else { dense });
            Ok(PackedDense { dense, parts, columns, made_for: (dtype, instruction_set) })
        })
    }

    /// Compute activation(x·Wᵀ + b): x float32 [rows, in] -> float32 [rows, out], for a single layer.
    #[pyo3(signature = (x, activation, threads=None))]
    fn multiply<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f32>,
        activation: Utf8<'_>,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        guarded(|| {
            let (columns, n) = self.sizes();
            if self.parts.len() != 1 || x.shape()[1] != columns {
                let (shape, parts) = (x.shape(), self.parts.len());
                return Err(error::input(format!("a product of {shape:?} with {parts} layers of {columns} inputs")));
            }
            let (rows, activation) = (x.shape()[0], activation_of(&activation)?);
            let (instruction_set, tiles) = kernels_for(self.made_for.1.as_deref())?;
            let y = zeros::<Ix2>(py, [rows, n], rows, "the outputs of a dense layer")?;
            {
                let mut borrowed = y.readwrite();
                let (to, x) = (borrowed.as_slice_mut()?, by_rows(&x)?);
                detached(py, || {
                    let execution = Execution { instruction_set, tiles, pool: threads::pool(threads) };
                    let mut matrix = Matrix::default();
                    matrix.fill_rows(rows, columns, x);
                    linear_to_rows(execution, &matrix, &self.dense, activation, to);
                })?;
            }
            Ok(y)
        })
    }

    /// Return how many rows an observed layer has had, and the sum of the squares, float64 [in], and the greatest
    /// magnitude, float32 [in], of each input.
    fn observations<'py>(&self, py: Python<'py>) -> PyResult<Option<ObservedArrays<'py>>> {
        guarded(|| {
            Ok(self.dense.observed().map(|observed| {
                let (squares, greatest) = (observed.squares.into_pyarray(py), observed.greatest.into_pyarray(py));
                (observed.rows, squares, greatest)
            }))
        })
    }

    /// Return what the inputs of an int8 layer are multiplied by, float32 [in]; 0 for those that are not quantized.
    fn factors<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<f32>>>> {
        guarded(|| Ok(self.factors_of().map(|factors| factors.into_pyarray(py))))
    }

    /// Return the weight [out, in] of this name; 16-bit numbers as uint16 bits, int8 numbers as a tuple with their
    /// scales and columns.
    fn weight<'py>(&self, py: Python<'py>, name: Utf8<'_>) -> PyResult<Bound<'py, PyAny>> {
        let name = &*name;
        guarded(|| {
            let part = self.each().find(|(_, other, _)| *other == name);
            let (first, _, rows) = part.ok_or_else(|| error::input(format!("unknown weight {name:?}")))?;
            Ok(self.stored(py, first, rows)?.0)
        })
    }

    /// Return the class and the arguments of its constructor, for pickle and copy.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        guarded(|| {
            let (this, py) = (slf.get(), slf.py());
            let layers = this
                .each()
                .map(|(first, _, rows)| {
                    Ok((this.stored(py, first, rows)?, this.dense.bias(first, rows).into_pyarray(py)))
                })
                .collect::<PyResult<Vec<_>>>()?;
            let names: Vec<&str> = this.each().map(|(_, name, _)| name).collect();
            let (dtype, instruction_set) = this.made_for.clone();
            let factors = this.factors_of().map(|factors| factors.into_pyarray(py));
            let arguments = (names, layers, dtype, instruction_set, factors);
            Ok((slf.get_type(), arguments.into_pyobject(py)?))
        })
    }
}

impl PackedDense {
    /// What the inputs of an int8 layer are multiplied by.
    fn factors_of(&self) -> Option<Vec<f32>> {
        let rows = self.dense.weights().factors()?;
        Some(rows.iter().flat_map(|row| row.0).take(self.columns).collect())
    }

    /// The numbers of inputs, and of outputs of the first layer.
    pub fn sizes(&self) -> (usize, usize) {
        (self.columns, self.parts.first().map_or(0, |part| part.1))
    }

    /// The packed layers.
    pub fn dense(&self) -> Arc<Dense> {
        self.dense.clone()
    }

    /// Iterates over the layers: the first panel, the name and the number of outputs.
    fn each(&self) -> impl Iterator<Item = (usize, &str, usize)> {
        self.parts.iter().scan(0, |next, (name, rows)| {
            let first = *next;
            *next += panels(*rows);
            Some((first, name.as_str(), *rows))
        })
    }

    fn stored<'py>(&self, py: Python<'py>, first: usize, rows: usize) -> PyResult<StoredArray<'py>> {
        stored_array(py, self.dense.weights().unpack(first, rows), [rows, self.columns])
    }
}

/// Packs dense layers of floats, and returns their number of inputs too.
fn float_dense(py: Python<'_>, layers: &[DenseArrays<'_>], products: Products) -> PyResult<(Dense, usize)> {
    let weights =
        layers.iter().map(|layer| BorrowedNumbers::new(&layer.0.0, &layer.0.1)).collect::<PyResult<Vec<_>>>()?;
    let dense = weights
        .iter()
        .zip(layers)
        .map(|(weight, layer)| Ok((weight.numbers()?, layer.1.as_slice()?)))
        .collect::<PyResult<Vec<_>>>()?;
    let Some((weight, bias)) = dense.first() else {
        return Err(error::input("a packed layer needs a dense layer".into()));
    };
    let columns = weight.len() / bias.len().max(1);
    Ok((py.detach(|| Dense::new(&dense, columns, products)), columns))
}

/// Packs dense layers of int8 numbers.
fn int8_dense(py: Python<'_>, layers: &[DenseArrays<'_>], factors: &[f32]) -> PyResult<Dense> {
    let weights = layers
        .iter()
        .map(|layer| {
            layer.0.0.extract::<(PyReadonlyArray2<'_, i8>, PyReadonlyArray2<'_, f32>, PyReadonlyArray2<'_, f32>)>()
        })
        .collect::<Result<Vec<_>, _>>()?;
    let weights = weights
        .iter()
        .map(|(values, scales, columns)| Ok((by_rows(values)?, by_rows(scales)?, by_rows(columns)?)))
        .collect::<PyResult<Vec<_>>>()?;
    let biases = layers.iter().map(|layer| Ok(pad_to_panels(layer.1.as_slice()?))).collect::<PyResult<Vec<_>>>()?;
    Ok(py.detach(|| Dense::from_parts(PackedWeights::int8(&weights, factors), biases.concat())))
}

/// Quantize a weight [out, in] whose input j is multiplied by factors[j]: return int8 numbers [out, in], float32 scales
/// [out, groups] and the float32 columns of the inputs whose factor is 0, or None if a number is not finite.
#[pyfunction]
#[pyo3(signature = (weight, factors))]
pub fn quantize<'py>(
    py: Python<'py>,
    weight: (Bound<'py, PyAny>, Utf8String),
    factors: PyReadonlyArray1<'_, f32>,
) -> PyResult<Option<Int8Arrays<'py>>> {
    guarded(|| {
        let borrowed = BorrowedNumbers::new(&weight.0, &weight.1)?;
        let (numbers, factors) = (borrowed.numbers()?, factors.as_slice()?);
        let Ok(weight) = py.detach(|| QuantizedWeight::new(numbers, factors)) else { return Ok(None) };
        let rows = numbers.len() / factors.len().max(1);
        Ok(Some(int8_arrays(py, weight, [rows, factors.len()])?))
    })
}

/// What an observed layer had as inputs: rows, sums of squares and greatest magnitudes.
type ObservedArrays<'py> = (usize, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f32>>);
