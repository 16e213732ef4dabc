//! The forward and backward pass of an encoder over a batch.
//!
//! The sequences of the batch are grouped into tasks, by their lengths alone. In each layer, a task is computed by one
//! thread; then the threads share the gradients of the layer's weights, which are sums over all tasks. So the bits of the
//! result do not depend on the number of threads.
//!
//! A pass forward keeps, for each layer, what its backward pass needs: 7H + F numbers for each token of the batch, and two
//! for each query and head. With checkpointing it keeps the input of each layer alone, H numbers for a token, and the
//! backward pass runs the layer again before it goes through it: about a third more work for a fraction of the memory, and
//! the same bits, since masks of dropout are functions of place.
//!
//! The backward pass ends at the lowest layer that is trained: below it no gradient is computed, and nothing was kept.

use std::mem::swap;

use wordpiece_parallel::{ScratchPool, Workers, map_with};

use super::convolution::Convolution;
use super::dropout::{Dropout, Site};
use super::heads::Rows;
use super::layer::{Gradients, Kept, LayerScratch, Pass, TaskTokens, TrainingConfig};
use super::norm::{normalize, normalize_backward};
use super::parameters::{
    Affine, AffineGradient, Backward, EncoderGradients, EncoderParameters, Forward, LayerParameters,
    RelativeParameters, norm_weights, write_sum,
};
use super::relative::{LayerTerms, RelativeTable};
use super::tasks::{Batch, Task, Worker};
use crate::attention::RelativeBias;
use crate::execution::Execution;
use crate::gemm::Products;
use crate::matrix::{Matrix, Row, panels};

/// The most tokens of a task, unless one sequence has more: enough that reading the weights costs little compared with
/// using them, few enough that there are tasks for many threads.
const TASK_ROWS: usize = 128;

/// What a pass does besides the computation.
#[derive(Debug, Clone, Copy, Default)]
pub struct PassOptions {
    /// The dropout; `None` for none.
    pub dropout: Option<Dropout>,
    /// The lowest layer that is trained; `None` if the embeddings are. Nothing is kept below it.
    pub trained_from: Option<usize>,
    /// Whether only the input of each layer is kept, and the layer is run again by the backward pass.
    pub checkpointing: bool,
}

/// A forward pass over a batch that keeps what its backward pass needs.
///
/// The buffers are kept from batch to batch; they only grow.
pub struct EncoderTraining {
    /// The sizes.
    pub(super) config: TrainingConfig,
    /// On one thread; each pass is given others.
    pub(super) execution: Execution,
    /// The options of the last forward pass, which its backward pass goes by.
    pub(super) options: PassOptions,
    /// The tasks; those beyond the ones in use keep their buffers for another batch.
    pub(super) tasks: Vec<Task>,
    /// How many of the tasks the batch has.
    pub(super) used: usize,
    /// The rows of the tables that each token read, to whose gradients it adds: of words, unless vectors were given;
    pub(super) ids: Option<Vec<u32>>,
    /// of token types;
    pub(super) types: Vec<u32>,
    /// and of positions.
    pub(super) position_ids: Vec<u32>,
    /// What a DeBERTa has of relative positions.
    relative: RelativeTable,
    /// The scratch buffers of each thread.
    pub(super) scratch: ScratchPool<Worker, 64>,
}

impl EncoderTraining {
    /// Returns an encoder of these sizes, to be trained with these instructions.
    pub fn new(config: TrainingConfig, execution: Execution) -> EncoderTraining {
        EncoderTraining {
            config,
            execution: Execution { pool: None, ..execution },
            options: PassOptions::default(),
            tasks: Vec::new(),
            used: 0,
            ids: None,
            types: Vec::new(),
            position_ids: Vec::new(),
            relative: RelativeTable::default(),
            scratch: ScratchPool::default(),
        }
    }

    /// Runs the encoder and writes the output of the last layer to `x` [tokens, H].
    ///
    /// # Panics
    ///
    /// If an id is outside its table, or the shapes do not agree.
    pub fn forward(
        &mut self,
        parameters: &EncoderParameters<'_>,
        batch: Batch<'_>,
        options: PassOptions,
        pool: Option<Workers>,
        x: &mut [f32],
    ) {
        self.options = options;
        self.ids = batch.ids.map(<[u32]>::to_vec);
        (self.types, self.position_ids) = (batch.types.to_vec(), batch.position_ids.to_vec());
        self.group(batch, parameters.uses.len());
        let (config, shared) = (self.config, self.shared(pool));
        let of_all = pass(config, self.execution, options, parameters);
        self.embed(&of_all, parameters, batch, pool);
        let kind = parameters.disentangled.as_ref();
        let relative = kind.and_then(|kind| kind.relative.as_ref());
        if let Some(relative) = relative {
            let farthest = batch.positions.iter().max().map_or(0, |position| *position as usize);
            self.relative.prepare(relative, farthest, config, self.execution);
        }
        let convolution = kind.and_then(|kind| kind.convolution).map(|of| Convolution::forward(of, config));
        let hidden = config.hidden;
        for (index, set) in parameters.uses.iter().enumerate() {
            let layer = &parameters.layers[*set];
            let packed = Forward::new(shared, layer, hidden, config.products);
            let terms = self.terms(&of_all, relative, index, layer, shared);
            let heads = kind.map(|kind| self.relative.heads(kind, terms.as_ref(), config));
            let pass = Pass { relative: heads, ..of_all };
            let convolution = convolution.as_ref().filter(|_| index == 0);
            let trained = options.trained_from.is_none_or(|first| index >= first);
            let tasks = self.tasks[..self.used].iter_mut().collect();
            map_with(
                tasks,
                pool,
                || self.scratch.check_out(),
                |worker, task: &mut Task| {
                    let Worker { layer: scratch, kept, next, .. } = &mut **worker;
                    let Task { tokens, layers, x, convolution: convolved, .. } = task;
                    let kept = if trained && !options.checkpointing { &mut layers[index] } else { kept };
                    pass.forward(index, &packed, tokens, x, kept, next, scratch);
                    if let Some(convolution) = convolution {
                        convolution.apply(&pass, tokens, x, next, convolved, scratch);
                    }
                    swap(x, next);
                    if trained {
                        swap(&mut layers[index].x, next);
                    }
                },
            );
        }
        if let Some(norm) = parameters.last_norm {
            let (norm, eps, set) = (norm_weights(norm), config.eps, self.execution.instruction_set);
            map_with(
                self.tasks[..self.used].iter_mut().collect(),
                pool,
                || (),
                |(), task: &mut Task| {
                    let Task { last, x, .. } = task;
                    last.x_hat.reshape(task.tokens.rows, hidden).data_mut().copy_from_slice(x.data());
                    normalize(set, norm.with_eps(eps, hidden), last, &mut x.view_mut());
                },
            );
        }
        for task in &self.tasks[..self.used] {
            for (row, x) in x.chunks_exact_mut(hidden).skip(task.tokens.first).take(task.tokens.rows).enumerate() {
                task.x.copy_row(row, x);
            }
        }
    }

    /// Computes the gradients of the parameters that [`forward`](EncoderTraining::forward) ran with, for the gradient `dx`
    /// [tokens, H] with respect to its result. Can be called once after each forward pass.
    ///
    /// # Panics
    ///
    /// If the shapes do not agree.
    pub fn backward(
        &mut self,
        parameters: &EncoderParameters<'_>,
        dx: &[f32],
        gradients: &mut EncoderGradients<'_>,
        pool: Option<Workers>,
    ) {
        let (options, config, execution) = (self.options, self.config, self.shared(pool));
        let hidden = config.hidden;
        let of_all = pass(config, self.execution, options, parameters);
        let kind = parameters.disentangled.as_ref();
        let relative = kind.and_then(|kind| kind.relative.as_ref());
        let convolution = kind.and_then(|kind| kind.convolution);
        let packed_convolution = convolution.map(|of| Convolution::backward(of, config));
        for task in &mut self.tasks[..self.used] {
            let TaskTokens { first, rows, .. } = task.tokens;
            task.dx.fill_rows(rows, hidden, &dx[first * hidden..(first + rows) * hidden]);
            task.gradients.sums.positions.distances.fill(0.0);
        }
        if let (Some(norm), Some(to)) = (parameters.last_norm, &mut gradients.last_norm) {
            self.last_norm_backward(norm, to, pool);
        }
        let mut written = vec![false; parameters.layers.len()];
        let lowest = options.trained_from.unwrap_or(0);
        for (index, set) in parameters.uses.iter().enumerate().skip(lowest).rev() {
            let layer = &parameters.layers[*set];
            let packed = Backward::new(execution, layer, hidden, config.products);
            let forward = options.checkpointing.then(|| Forward::new(execution, layer, hidden, config.products));
            let terms = self.terms(&of_all, relative, index, layer, execution);
            let heads = kind.map(|kind| self.relative.heads(kind, terms.as_ref(), config));
            let pass = Pass { relative: heads, ..of_all };
            let convolution = packed_convolution.as_ref().filter(|_| index == 0);
            let tasks = self.tasks[..self.used].iter_mut().collect();
            map_with(
                tasks,
                pool,
                || self.scratch.check_out(),
                |worker, task: &mut Task| {
                    let Worker { layer: scratch, next, .. } = &mut **worker;
                    let Task { tokens, layers, dx, gradients, recomputed, convolution: convolved, .. } = task;
                    if let Some(convolution) = convolution {
                        convolution.apply_backward(&pass, tokens, dx, convolved, scratch);
                    }
                    let mut kept = &layers[index];
                    if let Some(layer) = &forward {
                        pass.forward(index, layer, tokens, &kept.x, recomputed, next, scratch);
                        kept = recomputed;
                    }
                    pass.backward(index, &packed, tokens, kept, dx, gradients, scratch);
                    if convolution.is_some() {
                        convolved.add_to(dx);
                    }
                },
            );
            let scale = pass.heads(index).scale();
            let of_terms = terms.zip(relative).map(|(terms, relative)| {
                let tasks: Vec<_> =
                    self.tasks[..self.used].iter().map(|task| &task.gradients.sums.positions.terms).collect();
                let mask = of_all.mask(Site::Relative, index);
                let table = &mut self.relative;
                (table.backward(relative, layer, terms, &tasks, scale, mask, config, execution), relative.terms)
            });
            let of_terms = [0, 1].map(|term| of_terms.as_ref().and_then(|(found, terms)| found.of(term, *terms)));
            self.write_layer(execution, index, &mut gradients.layers[*set], written[*set], of_terms);
            written[*set] = true;
        }
        if let (Some(relative), Some(to)) = (relative, &mut gradients.relative) {
            self.relative.finish(relative, to, config, self.execution);
        }
        if let (Some(of), Some(to)) = (convolution, &mut gradients.convolution) {
            self.write_convolution(execution, of, to);
        }
        if let Some(to) = &mut gradients.relative_bias {
            to.fill(0.0);
            for task in &self.tasks[..self.used] {
                to.iter_mut().zip(&task.gradients.sums.positions.distances).for_each(|(to, x)| *to += x);
            }
        }
        if let Some(gradients) = &mut gradients.embeddings {
            self.embed_backward(&of_all, parameters, gradients, pool);
        }
    }

    /// Replaces the gradient with respect to the result of the norm after the last layer by that of its input.
    fn last_norm_backward(&mut self, norm: Affine<'_>, to: &mut AffineGradient<'_>, pool: Option<Workers>) {
        let (norm, hidden, eps) = (norm_weights(norm), self.config.hidden, self.config.eps);
        let set = self.execution.instruction_set;
        map_with(
            self.tasks[..self.used].iter_mut().collect(),
            pool,
            || (),
            |(), task: &mut Task| {
                let Task { last, dx, last_norm, .. } = task;
                for sums in last_norm.iter_mut() {
                    sums.clear();
                    sums.resize(panels(hidden), Row::ZERO);
                }
                let sums = last_norm.each_mut().map(|sums| &mut sums[..]);
                normalize_backward(set, norm.with_eps(eps, hidden), last, &mut dx.view_mut(), sums);
            },
        );
        for (n, to) in [&mut to.weight, &mut to.bias].into_iter().enumerate() {
            write_sum(self.tasks[..self.used].iter().map(|task| &task.last_norm[n][..]), to, false);
        }
    }

    /// Projects the relative positions for layer number `index`, if scores have terms of them.
    fn terms(
        &self,
        pass: &Pass<'_>,
        relative: Option<&RelativeParameters<'_>>,
        index: usize,
        layer: &LayerParameters<'_>,
        execution: Execution,
    ) -> Option<LayerTerms> {
        let mask = pass.mask(Site::Relative, index);
        relative.map(|relative| self.relative.terms(relative, layer, mask, self.config, execution))
    }

    pub(super) fn shared(&self, pool: Option<Workers>) -> Execution {
        Execution { pool, ..self.execution }
    }

    /// Whether the gradients of weights are sums of products of bfloat16 pairs.
    pub(super) fn multiplies_pairs(&self) -> bool {
        self.config.products == Products::Bfloat16Pairs && self.execution.tiles.is_none()
    }

    /// Groups consecutive sequences into tasks of `TASK_ROWS` tokens.
    fn group(&mut self, batch: Batch<'_>, layers: usize) {
        self.used = 0;
        for (number, (ends, keys)) in batch.offsets.windows(2).zip(batch.keys).enumerate() {
            let count = ends[1] - ends[0];
            let fits = self.tasks[..self.used].last().is_some_and(|task| task.tokens.rows + count <= TASK_ROWS);
            if !fits {
                if self.used == self.tasks.len() {
                    self.tasks.push(Task::default());
                }
                let task = &mut self.tasks[self.used];
                task.layers.resize_with(layers, Kept::default);
                task.tokens.sequences.clear();
                task.tokens.positions.clear();
                (task.tokens.rows, task.tokens.first) = (0, ends[0]);
                self.used += 1;
            }
            let tokens = &mut self.tasks[self.used - 1].tokens;
            tokens.sequences.push(Rows { tokens: tokens.rows..tokens.rows + count, keys: *keys, number });
            tokens.positions.extend_from_slice(&batch.positions[ends[0]..ends[1]]);
            tokens.rows += count;
        }
    }
}

impl Pass<'_> {
    /// Runs layer number `index` forward, in the order of its norms.
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    fn forward(
        &self,
        index: usize,
        layer: &Forward,
        tokens: &TaskTokens,
        x: &Matrix,
        kept: &mut Kept,
        to: &mut Matrix,
        scratch: &mut LayerScratch,
    ) {
        if self.config.norm_first {
            self.forward_norm_first(index, layer, tokens, x, kept, to, scratch);
        } else {
            self.forward_norm_last(index, layer, tokens, x, kept, to, scratch);
        }
    }

    /// Runs it back.
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    fn backward(
        &self,
        index: usize,
        layer: &Backward,
        tokens: &TaskTokens,
        kept: &Kept,
        dx: &mut Matrix,
        gradients: &mut Gradients,
        scratch: &mut LayerScratch,
    ) {
        if self.config.norm_first {
            self.backward_norm_first(index, layer, tokens, kept, dx, gradients, scratch);
        } else {
            self.backward_norm_last(index, layer, tokens, kept, dx, gradients, scratch);
        }
    }
}

/// Returns what all tasks share.
fn pass<'a>(
    config: TrainingConfig,
    execution: Execution,
    options: PassOptions,
    parameters: &'a EncoderParameters<'_>,
) -> Pass<'a> {
    let relative_bias = parameters.relative_bias.map(|bias| {
        let max_distance = (bias.len() / config.heads - 1) / 2;
        RelativeBias { bias, max_distance }
    });
    Pass {
        config,
        execution,
        dropout: options.dropout,
        relative_bias,
        relative: None,
        positions: &parameters.layer_positions,
    }
}
