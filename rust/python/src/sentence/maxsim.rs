//! MaxSim over the token vectors of queries and documents.
//!
//! Arrays are validated by `sentence/multi_vector/late_interaction.py`, the only caller; a wrong shape is a panic here, reported as an
//! InternalError.

use numpy::ndarray::Ix2;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use wordpiece_kernels::Execution;
use wordpiece_kernels::maxsim as kernels;

use crate::bert::by_rows;
use crate::bert::kernels_for;
use crate::error::guarded;
use crate::interrupt::detached;
use crate::new_arrays::zeros;
use crate::offsets;
use crate::text::Utf8;
use crate::threads::{self, Threads};

/// Token vectors float32 [tokens, d], and where each text begins, int64 [n + 1].
type Tokens<'py> = (PyReadonlyArray2<'py, f32>, PyReadonlyArray1<'py, i64>);

/// Score every query with every document: float32 [queries, documents].
#[pyfunction]
#[pyo3(signature = (queries, documents, threads=None, instruction_set=None))]
pub fn maxsim<'py>(
    py: Python<'py>,
    queries: Tokens<'_>,
    documents: Tokens<'_>,
    threads: Option<Threads>,
    instruction_set: Option<Utf8<'_>>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    guarded(|| {
        let [n, m] = [&queries, &documents].map(|tokens| tokens.1.len().max(1) - 1);
        let scores = zeros::<Ix2>(py, [n, m], n, "scores")?;
        let mut borrowed = scores.readwrite();
        score(
            py,
            [&queries, &documents],
            threads,
            instruction_set.as_deref(),
            borrowed.as_slice_mut()?,
            kernels::maxsim,
        )?;
        drop(borrowed);
        Ok(scores)
    })
}

/// Score each query with the document of the same number: float32 [n].
#[pyfunction]
#[pyo3(signature = (queries, documents, threads=None, instruction_set=None))]
pub fn maxsim_pairwise<'py>(
    py: Python<'py>,
    queries: Tokens<'_>,
    documents: Tokens<'_>,
    threads: Option<Threads>,
    instruction_set: Option<Utf8<'_>>,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    guarded(|| {
        let scores = PyArray1::<f32>::zeros(py, queries.1.len().max(1) - 1, false);
        let mut borrowed = scores.readwrite();
        score(
            py,
            [&queries, &documents],
            threads,
            instruction_set.as_deref(),
            borrowed.as_slice_mut()?,
            kernels::maxsim_pairwise,
        )?;
        drop(borrowed);
        Ok(scores)
    })
}

/// Runs a kernel over the token vectors of queries and documents, with the interpreter detached.
fn score(
    py: Python<'_>,
    [queries, documents]: [&Tokens<'_>; 2],
    threads: Option<Threads>,
    instruction_set: Option<&str>,
    to: &mut [f32],
    kernel: impl Fn(Execution, &kernels::Queries, &[f32], &[usize], &mut [f32]) + Sync,
) -> PyResult<()> {
    let (instruction_set, tiles) = kernels_for(instruction_set)?;
    let [starts, offsets] = [offsets_of(queries)?, offsets_of(documents)?];
    let (width, vectors, documents) = (queries.0.shape()[1], by_rows(&queries.0)?, by_rows(&documents.0)?);
    detached(py, || {
        let execution = Execution { instruction_set, tiles, pool: threads::pool(threads) };
        let queries = kernels::Queries::new(vectors, width, &starts);
        kernel(execution, &queries, documents, &offsets, to);
    })
}

fn offsets_of(tokens: &Tokens<'_>) -> PyResult<Vec<usize>> {
    Ok(offsets::ends(&offsets::rows("offsets", &tokens.1, tokens.0.shape()[0])?))
}
