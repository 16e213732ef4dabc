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

use super::body::{Layer, Pass, TrainedBody, TrainingConfig};
use super::buffers::{Kept, TaskTokens, clear};
use super::dropout::Dropout;
use super::encoder_gradients::{GradientWriter, OfTerm, Place};
use super::heads::Rows;
use super::layer::{backward, forward};
use super::parameters::{
    AffineGradient, AffineNorm, Borrowed, EncoderGradients, EncoderParameters, RelativeParameters, Written, norm_of,
    write_sum,
};
use super::products::weight_gradients;
use super::relative::RelativeTable;
use super::tasks::{Batch, Task, Worker};
use crate::execution::Execution;
use crate::gemm::Products;
use crate::matrix::panels;
use crate::plan::{Attention, Body, Residual, of_body};

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
        self.config = self.sizes(parameters, batch);
        self.embed(parameters, batch, pool);
        let plan = &parameters.plan;
        if let Some(relative) = relative_of(&plan.layers) {
            let farthest = batch.positions.iter().max().map_or(0, |position| *position as usize);
            self.relative.prepare(&self.pass(None), relative, farthest);
        }
        for (index, set) in parameters.uses.iter().enumerate() {
            self.layer_forward(index, &plan.layers[*set], pool);
        }
        if let Some(norm) = plan.last {
            self.last_norm(norm, pool);
        }
        for task in &self.tasks[..self.used] {
            let x = x.chunks_exact_mut(self.config.hidden).skip(task.tokens.first).take(task.tokens.rows);
            x.enumerate().for_each(|(row, x)| task.x.copy_row(row, x));
        }
    }

    /// Runs layer number `index`, and keeps what its backward pass needs.
    fn layer_forward(&mut self, index: usize, plan: &[Residual<Borrowed<'_>>], pool: Option<Workers>) {
        let (shared, options) = (self.pass(pool), self.options);
        let packed = forward(&shared, plan);
        let layer = Layer { index, plan, packed: &packed };
        let terms = self.relative.terms(&shared, index, plan);
        let pass = Pass { relative: self.relative.heads(plan, terms.as_ref()), ..self.pass(None) };
        let trained = options.trained_from.is_none_or(|first| index >= first);
        map_with(
            self.tasks[..self.used].iter_mut().collect(),
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

    /// Applies the norm after the last layer.
    fn last_norm(&mut self, norm: AffineNorm<'_>, pool: Option<Workers>) {
        let (pass, norm) = (self.pass(None), norm_of(norm));
        map_with(
            self.tasks[..self.used].iter_mut().collect(),
            pool,
            || (),
            |(), task: &mut Task| {
                let Task { last, x, .. } = task;
                last.x_hat.reshape(task.tokens.rows, pass.config.hidden).data_mut().copy_from_slice(x.data());
                pass.normalize(&norm, last, &mut x.view_mut());
            },
        );
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
        let (hidden, plan) = (self.config.hidden, &parameters.plan);
        for task in &mut self.tasks[..self.used] {
            let TaskTokens { first, rows, .. } = task.tokens;
            task.dx.fill_rows(rows, hidden, &dx[first * hidden..(first + rows) * hidden]);
            task.gradients.positions.distances.fill(0.0);
        }
        if let (Some(norm), Some(to)) = (plan.last, &mut gradients.plan.last) {
            self.last_norm_backward(norm, to, pool);
        }
        let mut written = vec![false; plan.layers.len()];
        let lowest = self.options.trained_from.unwrap_or(0);
        for (index, set) in parameters.uses.iter().enumerate().skip(lowest).rev() {
            self.layer_backward(index, &plan.layers[*set], &mut gradients.plan.layers[*set], written[*set], pool);
            written[*set] = true;
        }
        for (residual, to) in plan.layers.iter().flatten().zip(gradients.plan.layers.iter_mut().flatten()) {
            if let (Some(attention), Body::Attention(to)) = (residual.attention(), &mut to.body) {
                self.write_positions(attention, to);
            }
        }
        if gradients.vectors.is_some() {
            self.embed_backward(parameters, gradients, pool);
        }
    }

    /// Takes the gradient back through layer number `index`, and writes the gradients of its parameters, or adds to them.
    fn layer_backward(
        &mut self,
        index: usize,
        plan: &[Residual<Borrowed<'_>>],
        to: &mut [Residual<Written<'_>>],
        add: bool,
        pool: Option<Workers>,
    ) {
        let shared = self.pass(pool);
        let packed = backward(&shared, plan);
        let layer = Layer { index, plan, packed: &packed };
        let again = self.options.checkpointing.then(|| forward(&shared, plan));
        let terms = self.relative.terms(&shared, index, plan);
        let pass = Pass { relative: self.relative.heads(plan, terms.as_ref()), ..self.pass(None) };
        map_with(
            self.tasks[..self.used].iter_mut().collect(),
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
        let tasks = &self.tasks[..self.used];
        let of_terms = terms.and_then(|terms| self.relative.backward(&shared, index, plan, terms, tasks));
        let of_terms = [0, 1].map(|term| of_terms.as_ref()?.of(term));
        self.write_layer(shared.execution, layer, to, add, of_terms);
    }

    /// Writes the gradients of a layer's parameters, or adds to them. `terms` belong to the dense layers of relative
    /// positions.
    fn write_layer(
        &self,
        execution: Execution,
        layer: Layer<'_, '_>,
        to: &mut [Residual<Written<'_>>],
        add: bool,
        terms: [OfTerm<'_>; 2],
    ) {
        let place = Place { index: layer.index, place: 0, is_first: true, checkpointing: self.options.checkpointing };
        let mut writer = GradientWriter {
            tasks: &self.tasks[..self.used],
            execution,
            multiplies_pairs: self.multiplies_pairs(),
            hidden: self.config.hidden,
            add,
            terms,
            place,
            weights: Vec::with_capacity(7),
        };
        for (place, (residual, to)) in layer.plan.iter().zip(to).enumerate() {
            writer.place = Place { place, is_first: place == 0 && residual.before.is_none(), ..writer.place };
            of_body!(&residual.body, body => body.write(&mut to.body, &mut writer));
            writer.norm(to.before.as_mut(), |sums| &sums.before);
            writer.norm(to.after.as_mut(), |sums| &sums.after);
            writer.norm(to.again.as_mut(), |sums| &sums.again);
        }
        weight_gradients(execution, writer.weights, writer.multiplies_pairs);
    }

    /// Writes the gradients of what the scores of all layers have of positions, where an attention has the array.
    fn write_positions(&mut self, attention: &Attention<Borrowed<'_>>, to: &mut Attention<Written<'_>>) {
        if let (Some(relative), Some(to)) = (&attention.relative, &mut to.relative) {
            self.relative.finish(&self.pass(None), relative, to);
        }
        if let Some(Some(to)) = &mut to.bias {
            to.fill(0.0);
            for task in &self.tasks[..self.used] {
                to.iter_mut().zip(&task.gradients.positions.distances).for_each(|(to, x)| *to += x);
            }
        }
    }

    /// Replaces the gradient with respect to the result of the norm after the last layer by the gradient with respect
    /// to its input.
    fn last_norm_backward(&mut self, norm: AffineNorm<'_>, to: &mut AffineGradient<'_>, pool: Option<Workers>) {
        let (pass, norm) = (self.pass(None), norm_of(norm));
        map_with(
            self.tasks[..self.used].iter_mut().collect(),
            pool,
            || (),
            |(), task: &mut Task| {
                let Task { last, dx, last_norm, .. } = task;
                last_norm.iter_mut().for_each(|sums| clear(sums, panels(pass.config.hidden)));
                pass.normalize_backward(&norm, last, &mut dx.view_mut(), last_norm);
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

    /// Returns what the steps of a pass have in common; with `pool` for what threads share, else for what one thread computes.
    pub(super) fn pass(&self, pool: Option<Workers>) -> Pass<'static> {
        let execution = Execution { pool, ..self.execution };
        Pass { config: self.config, execution, dropout: self.options.dropout, relative: None }
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
