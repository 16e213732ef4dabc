//! The vocabulary head of sparse encoders, and sparse matrices as NumPy arrays.
//!
//! Arrays are validated by the Python side, which is the only caller: a wrong shape is a panic here, reported as an
//! InternalError.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use wordpiece_kernels::arch::TileUnit;
use wordpiece_kernels::sparse::{SparseOptions, SparseRows, TokenPooling, VocabularyHead as Core};
use wordpiece_kernels::{Execution, InstructionSet};

use crate::bert::PackedDense;
use crate::bert::activation_of;
use crate::bert::kernels_for;
use crate::bert::{NormWithEps, by_rows, norm_of};
use crate::error::{self, guarded};
use crate::interrupt::detached;
use crate::offsets;
use crate::text::Utf8;
use crate::threads::{self, Threads};

/// Rows of a sparse matrix: indptr int64 [n + 1], indices int32, values float32.
type Csr<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<f32>>);

/// A masked-language head, packed. It never changes, so threads may share it.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct VocabularyHead {
    core: Core,
    instruction_set: InstructionSet,
    tiles: Option<TileUnit>,
}

#[pymethods]
impl VocabularyHead {
    /// Combine packed layers: the dense layer [E, H] with its activation, the norm over E columns, and the decoder [V, E].
    ///
    /// Without `instruction_set`, the best one of this CPU computes, for which the layers must have been packed.
    #[new]
    #[pyo3(signature = (dense, activation, norm, decoder, instruction_set=None))]
    fn new(
        dense: PyRef<'_, PackedDense>,
        activation: Utf8<'_>,
        norm: NormWithEps<'_>,
        decoder: PyRef<'_, PackedDense>,
        instruction_set: Option<Utf8<'_>>,
    ) -> PyResult<VocabularyHead> {
        guarded(|| {
            let (activation, norm) = (activation_of(&activation)?, norm_of(&norm)?);
            let (instruction_set, tiles) = kernels_for(instruction_set.as_deref())?;
            let vocabulary = decoder.sizes().1;
            let core = Core::from_layers(dense.dense(), activation, norm, decoder.dense(), vocabulary);
            Ok(VocabularyHead { core, instruction_set, tiles })
        })
    }

    /// Pool the logits of each row's tokens: x float32 [tokens, H], row_offsets int64 [B + 1] -> a sparse matrix [B, V].
    ///
    /// `pooling` is max or sum; with `twice` the logarithm is taken twice; `max_values` keeps the greatest values of each
    /// row.
    #[allow(clippy::too_many_arguments, reason = "a Python signature")]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'_, f32>,
        row_offsets: PyReadonlyArray1<'_, i64>,
        pooling: Utf8<'_>,
        twice: bool,
        max_values: Option<usize>,
        threads: Option<Threads>,
    ) -> PyResult<Csr<'py>> {
        guarded(|| {
            let pooling = match &*pooling {
                "max" => TokenPooling::Max,
                "sum" => TokenPooling::Sum,
                _ => return Err(error::input(format!("unknown pooling {:?}", &*pooling))),
            };
            let offsets = offsets::ends(&offsets::rows("row_offsets", &row_offsets, x.shape()[0])?);
            let (x, options) = (by_rows(&x)?, SparseOptions { pooling, twice, max_values });
            let rows = detached(py, || {
                let execution = Execution {
                    instruction_set: self.instruction_set,
                    tiles: self.tiles,
                    pool: threads::pool(threads),
                };
                self.core.encode(execution, x, &offsets, options)
            })?;
            Ok(csr(py, rows))
        })
    }

    /// V, the number of entries of the vocabulary.
    #[getter]
    fn vocabulary(&self) -> usize {
        self.core.vocabulary()
    }
}

/// Converts a sparse matrix to arrays.
fn csr(py: Python<'_>, rows: SparseRows) -> Csr<'_> {
    let mut indptr = Vec::with_capacity(rows.counts.len() + 1);
    indptr.push(0);
    let mut end = 0;
    for count in rows.counts {
        end += count as i64;
        indptr.push(end);
    }
    let columns: Vec<i32> = rows.columns.into_iter().map(|column| column as i32).collect();
    (indptr.into_pyarray(py), columns.into_pyarray(py), rows.values.into_pyarray(py))
}
