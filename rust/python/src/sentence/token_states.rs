//! The vectors of all tokens of rows without padding: what sparse and multi-vector encoders begin with.

use numpy::ndarray::Ix2;
use numpy::{PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use wordpiece_kernels::encoder::Sequence;

use crate::bert::{BertEncoder, Tokens};
use crate::error::guarded;
use crate::new_arrays::zeros;
use crate::threads::Threads;

/// Run an encoder over `tokens`: the last hidden state of every token, float32 [tokens, H].
#[pyfunction]
#[pyo3(signature = (encoder, tokens, threads))]
pub fn token_states<'py>(
    py: Python<'py>,
    encoder: &BertEncoder,
    tokens: Tokens<'_>,
    threads: Option<Threads>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    guarded(|| {
        let (hidden, last) = (encoder.hidden(), encoder.layers());
        let states = zeros::<Ix2>(py, [tokens.ids.len(), hidden], tokens.keys.len(), "token vectors")?;
        {
            let mut borrowed = states.readwrite();
            let mut rest = borrowed.as_slice_mut()?;
            let mut sequences = Vec::with_capacity(tokens.keys.len());
            for (tokens, keys) in tokens.sequences()? {
                let (to, others) = rest.split_at_mut(tokens.len() * hidden);
                rest = others;
                sequences.push(Sequence {
                    keys,
                    states: vec![(last, to)],
                    attentions: Vec::new(),
                    length: tokens.len(),
                    tokens,
                    pooled: None,
                });
            }
            encoder.run(py, &tokens, sequences, threads)?;
        }
        Ok(states)
    })
}
