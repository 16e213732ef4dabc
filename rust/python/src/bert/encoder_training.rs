//! The backward pass and the optimizer of `wordpiece_kernels::training` over NumPy arrays, for `wordpiece_bert.finetune`.
//!
//! Parameters and gradients stay in their arrays and are borrowed while a call runs. Arrays are validated by the Python side,
//! as for `encoder`.

use std::collections::HashMap;

use numpy::{
    Ix2, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use wordpiece_kernels::Execution;
use wordpiece_kernels::plan::{Names, Plan};
use wordpiece_kernels::training::{
    self, AdamW, AdamWParameter, Batch, Dropout, EncoderGradients, EncoderParameters, LinearGradients, PassOptions,
};

use super::engine::{kernels_for, products_for};
use super::plan;
use super::stored_arrays::by_rows;
use super::training_arrays::{Array, ArrayMut, Borrower, Writer, slice, slice_mut};
use crate::error::{self, guarded};
use crate::interrupt::detached;
use crate::new_arrays::zeros;
use crate::offsets;
use crate::text::{Fields, Utf8, Utf8String};
use crate::threads::{self, Threads};

/// An encoder that is trained, and what its last forward pass kept. One pass at a time.
#[pyclass(module = "wordpiece_bert._core")]
pub struct EncoderTraining {
    core: training::EncoderTraining,
    /// The layers with parameters of their own.
    plan: Plan<Names>,
    /// For each layer the number of the one in `plan` with its parameters.
    uses: Vec<usize>,
    frequencies: Vec<Vec<f32>>,
    rates: HashMap<Utf8String, f64>,
}

/// The tokens of a batch, one sequence after the other; in each, those that may be attended to come first.
#[derive(FromPyObject)]
struct TrainingTokens<'py> {
    /// Where each sequence begins, and the number of tokens, [B + 1].
    starts: PyReadonlyArray1<'py, i64>,
    /// How many tokens of each sequence may be attended to, [B].
    visible: PyReadonlyArray1<'py, i64>,
    /// Rows of the tables of words, types, positions and tasks, [tokens]; without ids there are `vectors` [tokens, E].
    ids: Option<PyReadonlyArray1<'py, u32>>,
    types: PyReadonlyArray1<'py, u32>,
    positions: PyReadonlyArray1<'py, u32>,
    tasks: PyReadonlyArray1<'py, u32>,
    vectors: Option<PyReadonlyArray2<'py, f32>>,
    /// The place of each token in its padded row, [tokens].
    columns: PyReadonlyArray1<'py, u32>,
}

/// The options of a pass.
#[derive(FromPyObject)]
struct TrainingOptions {
    /// Seed, step and micro-batch of dropout.
    dropout: Option<[u64; 3]>,
    /// P of each rate of dropout, by the name that parts have for it.
    rates: HashMap<Utf8String, f64>,
    /// Nothing is kept below this layer.
    trained_from: Option<usize>,
    /// Whether only the input of each layer is kept.
    gradient_checkpointing: bool,
}

#[pymethods]
impl EncoderTraining {
    /// Make an encoder of a plan, in which layers that share their parameters are equal, with the frequencies of its rotary
    /// positions. Products have the type `dtype`, float32 or bfloat16, with float32 sums. Without `instruction_set`,
    /// the best one of this CPU computes.
    #[new]
    #[pyo3(signature = (plan, frequencies, dtype=None, instruction_set=None))]
    fn new(
        plan: &Bound<'_, PyAny>,
        frequencies: Vec<PyReadonlyArray1<'_, f32>>,
        dtype: Option<Utf8<'_>>,
        instruction_set: Option<Utf8<'_>>,
    ) -> PyResult<EncoderTraining> {
        guarded(|| {
            let instruction_set = instruction_set.as_deref();
            let products = products_for(dtype.as_deref().unwrap_or("float32"), instruction_set)?;
            let (plan, uses) = plan::each_once(plan::read(plan)?);
            Ok(EncoderTraining {
                core: training::EncoderTraining::new(products, execution_for(instruction_set, None)?),
                plan,
                uses,
                frequencies: frequencies.iter().map(|one| Ok(one.as_slice()?.to_vec())).collect::<PyResult<_>>()?,
                rates: HashMap::new(),
            })
        })
    }

    /// Run the encoder over a batch, with weights by name: float32 [tokens, H].
    #[pyo3(signature = (weights, tokens, options, threads))]
    fn forward<'py>(
        &mut self,
        py: Python<'py>,
        weights: HashMap<Utf8String, Array<'_>>,
        tokens: TrainingTokens<'_>,
        options: Fields<TrainingOptions>,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        guarded(|| {
            let options = options.0;
            self.rates = options.rates;
            let borrower = Borrower::new(&weights, &self.rates);
            let vectors = tokens.vectors.as_ref().map(by_rows).transpose()?;
            let parameters = parameters(&self.plan, &self.uses, &self.frequencies, borrower, vectors)?;
            let hidden = hidden(&parameters)?;
            let x = zeros::<Ix2>(py, [tokens.types.len(), hidden], tokens.visible.len(), "hidden states")?;
            {
                let mut borrowed = x.readwrite();
                let to = borrowed.as_slice_mut()?;
                let rows = offsets::rows("starts", &tokens.starts, tokens.types.len())?;
                let keys = tokens.visible.as_slice()?.iter();
                let keys: Vec<usize> = keys.zip(&rows).map(|(keys, row)| offsets::keys(*keys, row.len())).collect();
                let offsets = offsets::ends(&rows);
                let batch = Batch {
                    offsets: &offsets,
                    keys: &keys,
                    ids: tokens.ids.as_ref().map(|ids| ids.as_slice()).transpose()?,
                    types: tokens.types.as_slice()?,
                    position_ids: tokens.positions.as_slice()?,
                    tasks: tokens.tasks.as_slice()?,
                    positions: tokens.columns.as_slice()?,
                };
                let dropout = options.dropout.map(|[seed, step, micro_batch]| Dropout { seed, step, micro_batch });
                let (trained_from, checkpointing) = (options.trained_from, options.gradient_checkpointing);
                let options = PassOptions { dropout, trained_from, checkpointing };
                let core = &mut self.core;
                detached(py, || core.forward(&parameters, batch, options, threads::pool(threads), to))?;
            }
            Ok(x)
        })
    }

    /// Write the gradients of the weights of the last forward pass, for dx [tokens, H], to the arrays of `gradients`,
    /// by the names of the weights; the arrays of tables must be 0. With `embeddings`, return the gradient with respect
    /// to the word vectors, float32 [tokens, E].
    #[pyo3(signature = (weights, dx, gradients, vectors, embeddings, threads))]
    #[allow(clippy::too_many_arguments, reason = "with self and the interpreter")]
    fn backward<'py>(
        &mut self,
        py: Python<'py>,
        weights: HashMap<Utf8String, Array<'_>>,
        dx: PyReadonlyArray2<'_, f32>,
        gradients: HashMap<Utf8String, ArrayMut<'_>>,
        vectors: Option<PyReadonlyArray2<'_, f32>>,
        embeddings: bool,
        threads: Option<Threads>,
    ) -> PyResult<Option<Bound<'py, PyArray2<f32>>>> {
        guarded(|| {
            let given = vectors.as_ref().map(by_rows).transpose()?;
            let borrower = Borrower::new(&weights, &self.rates);
            let parameters = parameters(&self.plan, &self.uses, &self.frequencies, borrower, given)?;
            let tokens = dx.shape()[0];
            let columns = match (&parameters.plan.embeddings.words, &vectors) {
                (Some(words), _) => words.columns,
                (None, Some(vectors)) => vectors.shape()[1],
                (None, None) => hidden(&parameters)?,
            };
            let of_vectors = if embeddings {
                Some(zeros::<Ix2>(py, [tokens, columns], tokens, "gradients of tokens")?)
            } else {
                None
            };
            {
                let mut borrowed = of_vectors.as_ref().map(|vectors| vectors.readwrite());
                let mut arrays = gradients;
                let mut writer = Writer::new(&mut arrays)?;
                let mut gradients = EncoderGradients {
                    plan: self.plan.with(&mut writer)?,
                    vectors: borrowed.as_mut().map(|vectors| vectors.as_slice_mut()).transpose()?,
                };
                let (core, dx) = (&mut self.core, by_rows(&dx)?);
                detached(py, || core.backward(&parameters, dx, &mut gradients, threads::pool(threads)))?;
            }
            Ok(of_vectors)
        })
    }
}

fn parameters<'a>(
    plan: &Plan<Names>,
    uses: &[usize],
    frequencies: &'a [Vec<f32>],
    mut borrower: Borrower<'a, '_>,
    vectors: Option<&'a [f32]>,
) -> PyResult<EncoderParameters<'a>> {
    Ok(EncoderParameters { plan: plan.with(&mut borrower)?, uses: uses.to_vec(), vectors, frequencies })
}

/// Returns H.
fn hidden(parameters: &EncoderParameters<'_>) -> PyResult<usize> {
    let attention = parameters.plan.layers.iter().flatten().find_map(|residual| residual.attention());
    let attention = attention.ok_or_else(|| error::input("an encoder needs an Attention".into()))?;
    Ok(attention.output.bias.len())
}

/// Returns an execution with this instruction set, or the best one of this CPU, on `threads` threads.
fn execution_for(instruction_set: Option<&str>, threads: Option<Threads>) -> PyResult<Execution> {
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
    threads: Option<Threads>,
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
    threads: Option<Threads>,
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
pub fn sums_of_squares(py: Python<'_>, gradients: Vec<Array<'_>>, threads: Option<Threads>) -> PyResult<Vec<f64>> {
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
    threads: Option<Threads>,
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
