//! Exact search over vectors in NumPy arrays, for `wordpiece_bert.search`.
//!
//! Arrays are validated by the Python side, which is the only caller; they are read in place, memory-mapped ones too.

use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use wordpiece_kernels::Execution;
use wordpiece_kernels::search::Hit;
use wordpiece_kernels::search::codes::{self, Coded};
use wordpiece_kernels::search::floats::Metric;
use wordpiece_kernels::search::{bits, bytes, floats};

use crate::bert::by_rows;
use crate::bert::kernels_for;
use crate::error::{self, guarded};
use crate::interrupt::detached;
use crate::text::Utf8;
use crate::threads::{self, Threads};

/// The rows found, int64 [n, k], and their scores, float64 [n, k]; k is the lower of `top_k` and the size of the collection.
type Found<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f64>>);

/// Return the nearest rows of a collection and their scores: float32 [n, d] and [m, d]. `metric` is "dot", "cosine" (of
/// queries of length 1), "euclidean" or "manhattan".
#[pyfunction]
pub fn search_floats<'py>(
    py: Python<'py>,
    queries: PyReadonlyArray2<'py, f32>,
    collection: PyReadonlyArray2<'py, f32>,
    metric: Utf8<'_>,
    top_k: usize,
    threads: Option<Threads>,
    instruction_set: Option<Utf8<'_>>,
) -> PyResult<Found<'py>> {
    guarded(|| {
        let metric = metric_of(&metric)?;
        let (asked, rows, width) = (by_rows(&queries)?, by_rows(&collection)?, queries.shape()[1]);
        let execution = execution(size_of_val(rows), queries.shape()[0], threads, instruction_set.as_deref())?;
        let top_k = top_k.min(collection.shape()[0]);
        let found = detached(py, || floats::search(execution, asked, rows, width, metric, top_k))?;
        arrays(py, found, top_k)
    })
}

/// Return the 8-bit codes of rows, float32 [n, d], each followed by 12 bytes of numbers, uint8 [n, d + 12].
#[pyfunction]
pub fn search_codes_of<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, f32>,
    threads: Option<Threads>,
) -> PyResult<Bound<'py, PyArray2<u8>>> {
    guarded(|| {
        let (shape, rows) = ([rows.shape()[0], rows.shape()[1]], by_rows(&rows)?);
        let execution = execution(size_of_val(rows), 1, threads, None)?;
        let found = detached(py, || codes::encode(execution, rows, shape[1]))?;
        found.into_pyarray(py).reshape([shape[0], shape[1] + codes::NUMBER_BYTES])
    })
}

/// Return what `search_floats` returns, given what `search_codes_of` returns for the collection. Rows with a score below
/// `least`, float64 [n] or [0], may be missing: they have the number -1.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "arrays of one collection")]
pub fn search_by_codes<'py>(
    py: Python<'py>,
    queries: PyReadonlyArray2<'py, f32>,
    collection: PyReadonlyArray2<'py, f32>,
    codes: PyReadonlyArray2<'py, u8>,
    metric: Utf8<'_>,
    top_k: usize,
    least: PyReadonlyArray1<'py, f64>,
    threads: Option<Threads>,
    instruction_set: Option<Utf8<'_>>,
) -> PyResult<Found<'py>> {
    guarded(|| {
        let metric = metric_of(&metric)?;
        let (asked, rows, width) = (by_rows(&queries)?, by_rows(&collection)?, queries.shape()[1]);
        if codes.shape() != [collection.shape()[0], width + codes::NUMBER_BYTES] || metric == Metric::Manhattan {
            return Err(error::input("the codes are not of these rows".to_owned()));
        }
        let (of_rows, least) = (by_rows(&codes)?, least.as_slice()?);
        let execution = execution(size_of_val(rows), queries.shape()[0], threads, instruction_set.as_deref())?;
        let top_k = top_k.min(collection.shape()[0]);
        let coded = Coded { rows, codes: of_rows, width };
        let mut found = detached(py, || codes::search(execution, asked, coded, metric, top_k, least))?;
        for hits in &mut found {
            hits.resize(top_k, Hit { row: usize::MAX, score: f64::NEG_INFINITY });
        }
        arrays(py, found, top_k)
    })
}

/// Return the rows with the smallest Hamming distances and minus these: uint8 [n, w] and [m, w].
#[pyfunction]
pub fn search_packed_bits<'py>(
    py: Python<'py>,
    queries: PyReadonlyArray2<'py, u8>,
    collection: PyReadonlyArray2<'py, u8>,
    top_k: usize,
    threads: Option<Threads>,
    instruction_set: Option<Utf8<'_>>,
) -> PyResult<Found<'py>> {
    guarded(|| {
        let (asked, rows, width) = (by_rows(&queries)?, by_rows(&collection)?, queries.shape()[1]);
        let execution = execution(rows.len(), queries.shape()[0], threads, instruction_set.as_deref())?;
        let top_k = top_k.min(collection.shape()[0]);
        let found = detached(py, || bits::search(execution, asked, rows, width, top_k))?;
        arrays(py, found, top_k)
    })
}

/// Return the rows with the largest inner products and these: int8 [n, d], and uint8 [m, d], or int8 as the same bytes if
/// `are_signed`.
#[pyfunction]
pub fn search_small_integers<'py>(
    py: Python<'py>,
    queries: PyReadonlyArray2<'py, i8>,
    collection: PyReadonlyArray2<'py, u8>,
    are_signed: bool,
    top_k: usize,
    threads: Option<Threads>,
    instruction_set: Option<Utf8<'_>>,
) -> PyResult<Found<'py>> {
    guarded(|| {
        let (asked, rows, width) = (by_rows(&queries)?, by_rows(&collection)?, queries.shape()[1]);
        let execution = execution(rows.len(), queries.shape()[0], threads, instruction_set.as_deref())?;
        let top_k = top_k.min(collection.shape()[0]);
        let found = detached(py, || bytes::search(execution, asked, rows, width, are_signed, top_k))?;
        arrays(py, found, top_k)
    })
}

fn metric_of(name: &str) -> PyResult<Metric> {
    match name {
        "dot" => Ok(Metric::Dot),
        "cosine" => Ok(Metric::Cosine),
        "euclidean" => Ok(Metric::Euclidean),
        "manhattan" => Ok(Metric::Manhattan),
        other => Err(error::input(format!("no metric {other:?}"))),
    }
}

fn execution(
    bytes: usize,
    queries: usize,
    threads: Option<Threads>,
    instruction_set: Option<&str>,
) -> PyResult<Execution> {
    let (instruction_set, tiles) = kernels_for(instruction_set)?;
    Ok(Execution { instruction_set, tiles, pool: threads::pool_for_bytes(threads, bytes.saturating_mul(queries)) })
}

fn arrays(py: Python<'_>, found: Vec<Vec<Hit>>, top_k: usize) -> PyResult<Found<'_>> {
    let shape = [found.len(), top_k];
    let rows: Vec<i64> = found.iter().flatten().map(|hit| hit.row as i64).collect();
    let scores: Vec<f64> = found.iter().flatten().map(|hit| hit.score).collect();
    let rows: Bound<'_, PyArray1<i64>> = rows.into_pyarray(py);
    Ok((rows.reshape(shape)?, scores.into_pyarray(py).reshape(shape)?))
}
