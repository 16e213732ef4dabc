//! The backward pass and the optimizer of `wordpiece_kernels::training` over NumPy arrays, for `wordpiece_bert.finetune`.
//!
//! Parameters and gradients stay in their arrays and are borrowed while a call runs. Arrays are validated by the Python side,
//! as for `kernels`.

use numpy::{
    Ix2, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use wordpiece_kernels::Execution;
use wordpiece_kernels::training::{
    self, AdamW, AdamWParameter, Batch, Dropout, EncoderGradients, LinearGradients, PassOptions, Rates, TrainingConfig,
};

use crate::engine::{kernels_for, products_for};
use crate::error::guarded;
use crate::interrupt::detached;
use crate::names::activation_of;
use crate::new_arrays::zeros;
use crate::offsets;
use crate::stored_arrays::by_rows;
use crate::text::Utf8;
use crate::threads;
use crate::training_arrays::{
    Array, ArrayMut, BatchArrays, DisentangledArraysMut, EmbeddingArraysMut, LayerArraysMut, PairMut, ParameterArrays,
    affine_gradient, disentangled_gradients, embedding_gradients, layer_gradients, parameters_of, slice, slice_mut,
};

/// An encoder that is trained, and what its last forward pass kept. One pass at a time.
#[pyclass(module = "wordpiece_bert._core")]
pub struct EncoderTraining {
    core: training::EncoderTraining,
    config: TrainingConfig,
}

#[pymethods]
impl EncoderTraining {
    /// Make an encoder of these sizes. Products are those of `dtype`, float32 or bfloat16, with float32 sums. Without
    /// `instruction_set`, the best one of this CPU computes.
    #[new]
    #[pyo3(signature = (*, hidden, embedding, heads, intermediate, activation, eps, norm_first, gated,
        dtype=None, instruction_set=None))]
    #[allow(clippy::too_many_arguments, reason = "a Python signature: the sizes of an encoder by name")]
    fn new(
        hidden: usize,
        embedding: usize,
        heads: usize,
        intermediate: usize,
        activation: Utf8<'_>,
        eps: f32,
        norm_first: bool,
        gated: bool,
        dtype: Option<Utf8<'_>>,
        instruction_set: Option<Utf8<'_>>,
    ) -> PyResult<EncoderTraining> {
        guarded(|| {
            let instruction_set = instruction_set.as_deref();
            let products = products_for(dtype.as_deref().unwrap_or("float32"), instruction_set)?;
            let activation = activation_of(&activation)?;
            let config =
                TrainingConfig { hidden, embedding, heads, intermediate, activation, eps, products, norm_first, gated };
            Ok(EncoderTraining {
                core: training::EncoderTraining::new(config, execution_for(instruction_set, None)?),
                config,
            })
        })
    }

    /// Run the encoder over a batch: float32 [tokens, H].
    ///
    /// `dropout` is (seed, step, micro-batch) and P of the embeddings, of attention weights, after the attention's output,
    /// before and after the second dense layer of the feed-forward network, after a convolution, and of relative positions.
    /// Nothing is kept below the layer `trained_from`; with `checkpointing`, only the input of each layer is.
    #[pyo3(signature = (parameters, batch, dropout, trained_from, checkpointing, threads))]
    #[allow(clippy::too_many_arguments, reason = "a Python signature")]
    fn forward<'py>(
        &mut self,
        py: Python<'py>,
        parameters: ParameterArrays<'_>,
        batch: BatchArrays<'_>,
        dropout: Option<([u64; 3], [f64; 7])>,
        trained_from: Option<usize>,
        checkpointing: bool,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        guarded(|| {
            let (offsets, keys, ids, types, position_ids, positions) = batch;
            let x = zeros::<Ix2>(py, [types.len(), self.config.hidden], keys.len(), "hidden states")?;
            {
                let mut borrowed = x.readwrite();
                let to = borrowed.as_slice_mut()?;
                let parameters = parameters_of(&parameters)?;
                let keys = keys.as_slice()?.iter();
                let rows = offsets::rows("offsets", &offsets, types.len())?;
                let keys: Vec<usize> = keys.zip(&rows).map(|(keys, row)| offsets::keys(*keys, row.len())).collect();
                let offsets = offsets::ends(&rows);
                let batch = Batch {
                    offsets: &offsets,
                    keys: &keys,
                    ids: ids.as_ref().map(|ids| ids.as_slice()).transpose()?,
                    types: types.as_slice()?,
                    position_ids: position_ids.as_slice()?,
                    positions: positions.as_slice()?,
                };
                let dropout = dropout.map(|([seed, step, micro_batch], rates)| {
                    let [embeddings, attention_weights, attention_output, intermediate, output, ..] = rates;
                    let [.., convolution, relative] = rates;
                    let rates = Rates {
                        embeddings,
                        attention_weights,
                        attention_output,
                        intermediate,
                        output,
                        convolution,
                        relative,
                    };
                    Dropout { seed, step, micro_batch, rates }
                });
                let options = PassOptions { dropout, trained_from, checkpointing };
                let core = &mut self.core;
                detached(py, || core.forward(&parameters, batch, options, threads::pool(threads), to))?;
            }
            Ok(x)
        })
    }

    /// Write the gradients of the parameters of the last forward pass, for dx [tokens, H], to the arrays of `embeddings`, of
    /// which the tables must be 0, of `layers`, of `relative_bias`, of `last_norm` and of `disentangled`; return the gradient
    /// with respect to the word vectors, float32 [tokens, E], if `embeddings` are given.
    #[pyo3(signature = (parameters, dx, embeddings, layers, relative_bias, last_norm, disentangled, threads))]
    #[allow(clippy::too_many_arguments, reason = "a Python signature")]
    fn backward<'py>(
        &mut self,
        py: Python<'py>,
        parameters: ParameterArrays<'_>,
        dx: PyReadonlyArray2<'_, f32>,
        embeddings: Option<EmbeddingArraysMut<'_>>,
        layers: Vec<LayerArraysMut<'_>>,
        relative_bias: Option<ArrayMut<'_>>,
        last_norm: Option<PairMut<'_>>,
        disentangled: Option<DisentangledArraysMut<'_>>,
        threads: Option<usize>,
    ) -> PyResult<Option<Bound<'py, PyArray2<f32>>>> {
        guarded(|| {
            let (mut embeddings, mut layers) = (embeddings, layers);
            let (mut relative_bias, mut last_norm, mut disentangled) = (relative_bias, last_norm, disentangled);
            let tokens = dx.shape()[0];
            let vectors = match embeddings {
                Some(_) => Some(zeros::<Ix2>(py, [tokens, self.config.embedding], tokens, "gradients of tokens")?),
                None => None,
            };
            {
                let parameters = parameters_of(&parameters)?;
                let dx = by_rows(&dx)?;
                let mut borrowed = vectors.as_ref().map(|vectors| vectors.readwrite());
                let embeddings = match (&mut embeddings, &mut borrowed) {
                    (Some(arrays), Some(vectors)) => Some(embedding_gradients(arrays, vectors.as_slice_mut()?)?),
                    _ => None,
                };
                let layers = layers.iter_mut().map(layer_gradients).collect::<PyResult<Vec<_>>>()?;
                let relative_bias = relative_bias.as_mut().map(slice_mut).transpose()?;
                let last_norm = last_norm.as_mut().map(affine_gradient).transpose()?;
                let disentangled = disentangled.as_mut().map(disentangled_gradients).transpose()?;
                let (relative, convolution) = disentangled.unwrap_or_default();
                let mut gradients =
                    EncoderGradients { embeddings, relative_bias, layers, last_norm, relative, convolution };
                let core = &mut self.core;
                detached(py, || core.backward(&parameters, dx, &mut gradients, threads::pool(threads)))?;
            }
            Ok(vectors)
        })
    }
}

/// Returns an execution with this instruction set, or the best one of this CPU, on `threads` threads.
fn execution_for(instruction_set: Option<&str>, threads: Option<usize>) -> PyResult<Execution> {
    let (instruction_set, tiles) = kernels_for(instruction_set)?;
    Ok(Execution { instruction_set, tiles, pool: threads::pool(threads) })
}

/// Compute the gradients of y = x·Wᵀ + b: dy [rows, out], x [rows, in], weight [out, in] -> dx, dW and db, float32.
#[pyfunction]
#[pyo3(signature = (dy, x, weight, threads=None, instruction_set=None))]
#[allow(clippy::type_complexity, reason = "three arrays")]
pub fn linear_backward<'py>(
    py: Python<'py>,
    dy: PyReadonlyArray2<'_, f32>,
    x: PyReadonlyArray2<'_, f32>,
    weight: PyReadonlyArray2<'_, f32>,
    threads: Option<usize>,
    instruction_set: Option<Utf8<'_>>,
) -> PyResult<(Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<f32>>, Bound<'py, numpy::PyArray1<f32>>)> {
    guarded(|| {
        let (rows, inputs, outputs) = (x.shape()[0], weight.shape()[1], weight.shape()[0]);
        let dx = zeros::<Ix2>(py, [rows, inputs], rows, "the gradient of a dense layer's input")?;
        let dw = zeros::<Ix2>(py, [outputs, inputs], outputs, "the gradient of a weight")?;
        let db = zeros::<numpy::Ix1>(py, [outputs], outputs, "the gradient of a bias")?;
        {
            let execution = execution_for(instruction_set.as_deref(), threads)?;
            let (mut to_x, mut to_weight, mut to_bias) = (dx.readwrite(), dw.readwrite(), db.readwrite());
            let to = LinearGradients {
                x: to_x.as_slice_mut()?,
                weight: to_weight.as_slice_mut()?,
                bias: to_bias.as_slice_mut()?,
            };
            let (dy, x, weight) = (by_rows(&dy)?, by_rows(&x)?, by_rows(&weight)?);
            detached(py, || training::linear_backward(execution, dy, x, weight, to))?;
        }
        Ok((dx, dw, db))
    })
}

/// Replace logits [rows, classes], float32, by the gradient of their mean cross entropy with labels, int64 [rows]; return the
/// cross entropy.
#[pyfunction]
#[pyo3(signature = (logits, labels, threads=None, instruction_set=None))]
pub fn cross_entropy(
    py: Python<'_>,
    mut logits: ArrayMut<'_>,
    labels: PyReadonlyArray1<'_, i64>,
    threads: Option<usize>,
    instruction_set: Option<Utf8<'_>>,
) -> PyResult<f64> {
    guarded(|| {
        let labels: Vec<usize> = labels.as_slice()?.iter().map(|label| *label as usize).collect();
        let (execution, logits) = (execution_for(instruction_set.as_deref(), threads)?, slice_mut(&mut logits)?);
        detached(py, || training::cross_entropy(execution, logits, &labels))
    })
}

/// Return the sum of squares of each float32 array, in float64.
#[pyfunction]
#[pyo3(signature = (gradients, threads=None))]
pub fn sums_of_squares(py: Python<'_>, gradients: Vec<Array<'_>>, threads: Option<usize>) -> PyResult<Vec<f64>> {
    guarded(|| {
        let gradients = gradients.iter().map(slice).collect::<PyResult<Vec<_>>>()?;
        let execution = execution_for(None, threads)?;
        detached(py, || training::sums_of_squares(execution, &gradients))
    })
}

/// Make one step of AdamW, in place, for parameters as tuples (parameter, gradient, m, v, decay) of flat float32 arrays.
///
/// Gradients are multiplied by `factor` first. `step` is the number of the step, from 1 on, or None for no correction of the
/// bias of the moments.
#[pyfunction]
#[pyo3(signature = (parameters, *, factor, betas, eps, rate, step, threads=None))]
#[allow(clippy::type_complexity, clippy::too_many_arguments, reason = "a Python signature")]
pub fn adamw_step(
    py: Python<'_>,
    parameters: Vec<(
        PyReadwriteArray1<'_, f32>,
        PyReadonlyArray1<'_, f32>,
        PyReadwriteArray1<'_, f32>,
        PyReadwriteArray1<'_, f32>,
        f64,
    )>,
    factor: f32,
    betas: [f64; 2],
    eps: f64,
    rate: f64,
    step: Option<u64>,
    threads: Option<usize>,
) -> PyResult<()> {
    guarded(|| {
        let mut parameters = parameters;
        let mut borrowed = Vec::with_capacity(parameters.len());
        for (p, g, m, v, decay) in &mut parameters {
            let moments = [m.as_slice_mut()?, v.as_slice_mut()?];
            let parameter = p.as_slice_mut()?;
            borrowed.push(AdamWParameter { parameter, gradient: g.as_slice()?, moments, decay: *decay });
        }
        let step = AdamW { factor, betas, eps, rate, corrected_step: step };
        let execution = execution_for(None, threads)?;
        detached(py, || training::adamw(execution, step, borrowed))
    })
}
