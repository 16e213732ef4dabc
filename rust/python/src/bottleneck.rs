//! The packed layers of MobileBERT.

use std::sync::Arc;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use wordpiece_kernels::encoder::{BottleneckLayer, DenseNorm, Source};
use wordpiece_kernels::gemm::Dense;
use wordpiece_kernels::panels;

use crate::engine::products_for;
use crate::error::{self, guarded};
use crate::stored_arrays::{BorrowedNumbers, DenseArrays, NormWithEps, StoredArray, norm_of, stored_array};

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
    /// Pack dense layers under these names, for the products of `dtype`, float32 or bfloat16, with `instruction_set`.
    #[new]
    #[pyo3(signature = (names, layers, dtype, instruction_set=None))]
    fn new(
        py: Python<'_>,
        names: Vec<String>,
        layers: Vec<DenseArrays<'_>>,
        dtype: String,
        instruction_set: Option<String>,
    ) -> PyResult<PackedDense> {
        guarded(|| {
            let products = products_for(&dtype, instruction_set.as_deref())?;
            let weights = layers
                .iter()
                .map(|layer| BorrowedNumbers::new(&layer.0.0, &layer.0.1))
                .collect::<PyResult<Vec<_>>>()?;
            let dense = weights
                .iter()
                .zip(&layers)
                .map(|(weight, layer)| Ok((weight.numbers()?, layer.1.as_slice()?)))
                .collect::<PyResult<Vec<_>>>()?;
            let Some((weight, bias)) = dense.first() else {
                return Err(error::input("a packed layer needs a dense layer".into()));
            };
            let columns = weight.len() / bias.len().max(1);
            let parts = names.into_iter().zip(dense.iter().map(|layer| layer.1.len())).collect();
            let dense = Arc::new(py.detach(|| Dense::new(&dense, columns, products)));
            Ok(PackedDense { dense, parts, columns, made_for: (dtype, instruction_set) })
        })
    }

    /// Return the weight [out, in] of this name; 16-bit numbers as uint16 bits.
    fn weight<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
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
            let arguments = (names, layers, dtype, instruction_set);
            Ok((slf.get_type(), arguments.into_pyobject(py)?))
        })
    }
}

impl PackedDense {
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

/// A packed dense layer and the norm after it.
type DenseNormArgument<'py> = (PyRef<'py, PackedDense>, NormWithEps<'py>);

fn dense_norm((dense, norm): &DenseNormArgument<'_>) -> PyResult<DenseNorm> {
    Ok(DenseNorm { dense: dense.dense(), norm: norm_of(norm)? })
}

/// A layer of MobileBERT, made of packed dense layers.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct PackedBottleneck {
    layer: Arc<BottleneckLayer>,
    sizes: [usize; 3],
}

#[pymethods]
impl PackedBottleneck {
    /// Combine the parts of a layer; `queries_from` and `values_from` are hidden, narrow or shared.
    #[new]
    #[pyo3(signature = (narrow, shared, query_key, value, output, feed_forward, back, *, hidden, queries_from, values_from))]
    #[allow(clippy::too_many_arguments, reason = "a Python signature: the parts of a layer by name")]
    fn new(
        narrow: Option<DenseNormArgument<'_>>,
        shared: Option<DenseNormArgument<'_>>,
        query_key: PyRef<'_, PackedDense>,
        value: PyRef<'_, PackedDense>,
        output: DenseNormArgument<'_>,
        feed_forward: Vec<(PyRef<'_, PackedDense>, DenseNormArgument<'_>)>,
        back: Option<DenseNormArgument<'_>>,
        hidden: usize,
        queries_from: &str,
        values_from: &str,
    ) -> PyResult<PackedBottleneck> {
        guarded(|| {
            let intermediate = feed_forward.first().map_or(0, |(_, outer)| outer.0.columns);
            let sizes = [hidden, query_key.columns, intermediate];
            let layer = BottleneckLayer {
                input: narrow.as_ref().map(dense_norm).transpose()?,
                shared: shared.as_ref().map(dense_norm).transpose()?,
                queries_from: source_of(queries_from)?,
                values_from: source_of(values_from)?,
                query_key: query_key.dense(),
                value: value.dense(),
                output: dense_norm(&output)?,
                feed_forward: feed_forward
                    .iter()
                    .map(|(inner, outer)| Ok((inner.dense(), dense_norm(outer)?)))
                    .collect::<PyResult<Vec<_>>>()?,
                back: back.as_ref().map(dense_norm).transpose()?,
            };
            Ok(PackedBottleneck { layer: Arc::new(layer), sizes })
        })
    }
}

impl PackedBottleneck {
    /// The layer.
    pub fn layer(&self) -> Arc<BottleneckLayer> {
        self.layer.clone()
    }

    /// H, h and F.
    pub fn sizes(&self) -> [usize; 3] {
        self.sizes
    }
}

fn source_of(name: &str) -> PyResult<Source> {
    Ok(match name {
        "hidden" => Source::Hidden,
        "narrow" => Source::Narrow,
        "shared" => Source::Shared,
        _ => return Err(error::input(format!("unknown source {name:?}"))),
    })
}
