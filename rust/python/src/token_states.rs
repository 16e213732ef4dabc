//! The vectors of all tokens of rows without padding: what sparse and multi-vector encoders begin with.

use numpy::ndarray::Ix2;
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use wordpiece_kernels::encoder::{Sequence, TokenColumns};

use crate::error::guarded;
use crate::kernels::BertEncoder;
use crate::new_arrays::zeros;
use crate::offsets;
use crate::stored_arrays::by_rows;

/// Run an encoder over rows of ids: the last hidden state of every token, float32 [tokens, H].
///
/// ids and position_ids: uint32 [tokens] (position_ids may be empty for 0, 1, 2, … in each row); neighbours as for
/// `BertEncoder.forward`; row_offsets: int64 [B + 1]; keys, how many tokens of each row, from the first on, may be attended
/// to: int64 [B]. `vectors`, float32 [tokens, E], replace the table of words.
#[pyfunction]
#[pyo3(signature = (encoder, ids, position_ids, neighbours, row_offsets, keys, threads, vectors=None))]
#[allow(clippy::too_many_arguments, reason = "a Python signature: the arrays of a batch by name")]
pub fn token_states<'py>(
    py: Python<'py>,
    encoder: &BertEncoder,
    ids: PyReadonlyArray1<'_, u32>,
    position_ids: PyReadonlyArray1<'_, u32>,
    neighbours: PyReadonlyArray1<'_, u32>,
    row_offsets: PyReadonlyArray1<'_, i64>,
    keys: PyReadonlyArray1<'_, i64>,
    threads: Option<usize>,
    vectors: Option<PyReadonlyArray2<'_, f32>>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    guarded(|| {
        let (ids, keys) = (ids.as_slice()?, keys.as_slice()?);
        let rows = offsets::rows("row_offsets", &row_offsets, ids.len())?;
        let (hidden, last) = (encoder.hidden(), encoder.layers());
        let states = zeros::<Ix2>(py, [ids.len(), hidden], keys.len(), "token vectors")?;
        {
            let mut borrowed = states.readwrite();
            let mut rest = borrowed.as_slice_mut()?;
            let mut sequences = Vec::with_capacity(keys.len());
            for (tokens, keys) in rows.into_iter().zip(keys) {
                let (to, others) = rest.split_at_mut(tokens.len() * hidden);
                rest = others;
                sequences.push(Sequence {
                    keys: offsets::keys(*keys, tokens.len()),
                    states: vec![(last, to)],
                    attentions: Vec::new(),
                    length: tokens.len(),
                    tokens,
                    pooled: None,
                });
            }
            let (position_ids, neighbours) = (position_ids.as_slice()?, neighbours.as_slice()?);
            let tokens = TokenColumns { ids, types: &[], position_ids, neighbours, positions: &[] };
            let vectors = vectors.as_ref().map(by_rows).transpose()?;
            encoder.run(py, tokens, vectors, sequences, threads)?;
        }
        Ok(states)
    })
}
