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

use super::dropout::{Dropout, Site};
use super::heads::Rows;
use super::layer::{Kept, Layer, Pass, TaskTokens, TrainingConfig};
use super::norm::{normalize, normalize_backward};
use super::parameters::{
    AffineGradient, AffineNorm, Borrowed, EncoderGradients, EncoderParameters, RelativeParameters, backward, forward,
    norm_of, write_sum,
};
use super::relative::{LayerTerms, RelativeTable};
use super::tasks::{Batch, Task, Worker};
use crate::execution::Execution;
use crate::gemm::Products;
use crate::matrix::{Row, panels};
use crate::plan::{Attention, Body, Residual};

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
    /// The sizes of the last pass.
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
    /// of positions;
    pub(super) position_ids: Vec<u32>,
    /// and of tasks.
    pub(super) task_ids: Vec<u32>,
    /// What a DeBERTa has of relative positions.
    relative: RelativeTable,
    /// The scratch buffers of each thread.
    pub(super) scratch: ScratchPool<Worker, 64>,
}

impl EncoderTraining {
    /// Returns an encoder that is to be trained with these products and instructions.
    pub fn new(products: Products, execution: Execution) -> EncoderTraining {
        EncoderTraining {
            config: TrainingConfig { hidden: 0, embedding: 0, products },
            execution: Execution { pool: None, ..execution },
            options: PassOptions::default(),
            tasks: Vec::new(),
            used: 0,
            ids: None,
            types: Vec::new(),
            position_ids: Vec::new(),
            task_ids: Vec::new(),
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
        self.task_ids = batch.tasks.to_vec();
        self.group(batch, parameters.uses.len());
        let plan = &parameters.plan;
        self.config = self.sizes(parameters, batch);
        let (config, shared) = (self.config, self.shared(pool));
        let of_all = Pass { config, execution: self.execution, dropout: options.dropout, relative: None };
        self.embed(&of_all, parameters, batch, pool);
        if let Some(relative) = relative_of(&plan.layers) {
            let farthest = batch.positions.iter().max().map_or(0, |position| *position as usize);
            self.relative.prepare(relative, farthest, config, self.execution);
        }
        let hidden = config.hidden;
        for (index, set) in parameters.uses.iter().enumerate() {
            let plan = &plan.layers[*set][..];
            let packed = forward(shared, plan, hidden, config.products);
            let layer = Layer { index, plan, packed: &packed };
            let attention = plan.iter().find_map(Residual::attention);
            let terms = attention.and_then(|attention| self.terms(&of_all, index, attention, shared));
            let relative = attention.map(|attention| self.relative.heads(attention, terms.as_ref()));
            let pass = Pass { relative, ..of_all };
            let trained = options.trained_from.is_none_or(|first| index >= first);
            let tasks = self.tasks[..self.used].iter_mut().collect();
            map_with(
                tasks,
                pool,
                || self.scratch.check_out(),
                |worker, task: &mut Task| {
                    let Worker { layer: scratch, kept, next, .. } = &mut **worker;
                    let Task { tokens, layers, x, .. } = task;
                    let kept = if trained && !options.checkpointing { &mut layers[index] } else { kept };
                    pass.forward(layer, tokens, x, kept, next, scratch);
                    swap(x, next);
                    if trained {
                        swap(&mut layers[index].x, next);
                    }
                },
            );
        }
        if let Some(norm) = plan.last {
            let (norm, set) = (norm_of(norm), self.execution.instruction_set);
            map_with(
                self.tasks[..self.used].iter_mut().collect(),
                pool,
                || (),
                |(), task: &mut Task| {
                    let Task { last, x, .. } = task;
                    last.x_hat.reshape(task.tokens.rows, hidden).data_mut().copy_from_slice(x.data());
                    normalize(set, norm.kind, norm.parameters(), last, &mut x.view_mut());
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
        let (hidden, plan) = (config.hidden, &parameters.plan);
        let of_all = Pass { config, execution: self.execution, dropout: options.dropout, relative: None };
        for task in &mut self.tasks[..self.used] {
            let TaskTokens { first, rows, .. } = task.tokens;
            task.dx.fill_rows(rows, hidden, &dx[first * hidden..(first + rows) * hidden]);
            task.gradients.positions.distances.fill(0.0);
        }
        if let (Some(norm), Some(to)) = (plan.last, &mut gradients.plan.last) {
            self.last_norm_backward(norm, to, pool);
        }
        let mut written = vec![false; plan.layers.len()];
        let lowest = options.trained_from.unwrap_or(0);
        for (index, set) in parameters.uses.iter().enumerate().skip(lowest).rev() {
            let plan = &plan.layers[*set][..];
            let packed = backward(execution, plan, hidden, config.products);
            let layer = Layer { index, plan, packed: &packed };
            let again = options.checkpointing.then(|| forward(execution, plan, hidden, config.products));
            let attention = plan.iter().find_map(Residual::attention);
            let terms = attention.and_then(|attention| self.terms(&of_all, index, attention, execution));
            let relative = attention.map(|attention| self.relative.heads(attention, terms.as_ref()));
            let pass = Pass { relative, ..of_all };
            let scale = attention.map_or(1.0, |attention| pass.heads(index, attention).scale());
            let tasks = self.tasks[..self.used].iter_mut().collect();
            map_with(
                tasks,
                pool,
                || self.scratch.check_out(),
                |worker, task: &mut Task| {
                    let Worker { layer: scratch, next, .. } = &mut **worker;
                    let Task { tokens, layers, dx, gradients, recomputed, .. } = task;
                    let mut kept = &mut layers[index];
                    if let Some(packed) = &again {
                        pass.forward(Layer { packed, ..layer }, tokens, &kept.x, recomputed, next, scratch);
                        kept = recomputed;
                    }
                    pass.backward(layer, tokens, kept, dx, gradients, scratch);
                },
            );
            let of_terms = terms.zip(attention).and_then(|(terms, attention)| {
                let relative = attention.relative.as_ref()?;
                let tasks: Vec<_> =
                    self.tasks[..self.used].iter().map(|task| &task.gradients.positions.terms).collect();
                let mask = of_all.mask(Site::Relative, index, relative.dropout);
                let table = &mut self.relative;
                Some((table.backward(relative, attention, terms, &tasks, scale, mask, config, execution), relative))
            });
            let of_terms = [0, 1].map(|term| {
                let (found, relative) = of_terms.as_ref()?;
                found.of(term, relative.terms.map(|term| term.is_some()))
            });
            self.write_layer(execution, layer, &mut gradients.plan.layers[*set], written[*set], of_terms);
            written[*set] = true;
        }
        for (residual, to) in plan.layers.iter().flatten().zip(gradients.plan.layers.iter_mut().flatten()) {
            let (Body::Attention(attention), Body::Attention(to)) = (&residual.body, &mut to.body) else { continue };
            if let (Some(relative), Some(to)) = (&attention.relative, &mut to.relative) {
                self.relative.finish(relative, to, config, self.execution);
            }
            if let Some(Some(to)) = &mut to.bias {
                to.fill(0.0);
                for task in &self.tasks[..self.used] {
                    to.iter_mut().zip(&task.gradients.positions.distances).for_each(|(to, x)| *to += x);
                }
            }
        }
        if gradients.vectors.is_some() {
            self.embed_backward(&of_all, parameters, gradients, pool);
        }
    }

    /// Replaces the gradient with respect to the result of the norm after the last layer by the gradient with respect
    /// to its input.
    fn last_norm_backward(&mut self, norm: AffineNorm<'_>, to: &mut AffineGradient<'_>, pool: Option<Workers>) {
        let (norm, hidden) = (norm_of(norm), self.config.hidden);
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
                normalize_backward(set, norm.kind, norm.parameters(), last, &mut dx.view_mut(), sums);
            },
        );
        for (n, to) in [&mut to.weight, &mut to.bias].into_iter().enumerate() {
            write_sum(self.tasks[..self.used].iter().map(|task| &task.last_norm[n][..]), to, false);
        }
    }

    /// Returns H and E.
    fn sizes(&self, parameters: &EncoderParameters<'_>, batch: Batch<'_>) -> TrainingConfig {
        let attention = parameters.plan.layers.iter().flatten().find_map(Residual::attention);
        let hidden = attention.map_or(0, |attention| attention.output.bias.len());
        let embedding = match (&parameters.plan.embeddings.words, parameters.vectors) {
            (Some(words), _) => words.columns,
            (None, Some(vectors)) => vectors.len() / batch.types.len().max(1),
            (None, None) => hidden,
        };
        TrainingConfig { hidden, embedding, ..self.config }
    }

    /// Projects the relative positions for layer number `index`, if scores have terms of them.
    fn terms(
        &self,
        pass: &Pass<'_>,
        index: usize,
        attention: &Attention<Borrowed<'_>>,
        execution: Execution,
    ) -> Option<LayerTerms> {
        let relative = attention.relative.as_ref()?;
        let mask = pass.mask(Site::Relative, index, relative.dropout);
        Some(self.relative.terms(relative, attention, mask, self.config, execution))
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

/// Returns the relative positions, whose table all layers share.
fn relative_of<'a, 'p>(layers: &'a [Vec<Residual<Borrowed<'p>>>]) -> Option<&'a RelativeParameters<'p>> {
    layers.iter().flatten().find_map(|residual| residual.attention()?.relative.as_ref())
}
