//! The forward and backward pass of an encoder over a batch.
//!
//! The sequences of the batch are grouped into tasks, by their lengths alone. In each layer, a task is computed by one
//! thread; then the threads share the gradients of the layer's weights, which are sums over all tasks. So the bits of the
//! result do not depend on the number of threads.

use std::mem::swap;

use wordpiece_parallel::{Scratch, ScratchPool, Workers, map_with};

use super::attention::Rows;
use super::dropout::{Dropout, Site};
use super::embeddings::add_to_table;
use super::layer::{Gradients, Kept, LayerScratch, Pass, TaskTokens, TrainingConfig};
use super::norm::{Normalized, normalize, normalize_backward};
use super::parameters::{
    Affine, AffineGradient, Backward, EmbeddingGradients, EncoderGradients, EncoderParameters, Forward, LayerGradients,
    packed, packed_transposed, write,
};
use super::products::{WeightGradient, add_column_sums, weight_gradients};
use crate::attention::RelativeBias;
use crate::embeddings::sum_rows;
use crate::encoder::LayerNormWeights;
use crate::execution::Execution;
use crate::gemm::{Dense, Epilogue, Products, linear};
use crate::matrix::{Matrix, Row, panels};
use crate::numbers::Numbers;

/// The most tokens of a task, unless one sequence has more: enough that reading the weights costs little compared with
/// using them, few enough that there are tasks for many threads.
const TASK_ROWS: usize = 128;

/// The tokens of a batch, one sequence after the other; in each, those that may be attended to come first.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// Where each sequence begins, and the number of tokens, `[B + 1]`.
    pub offsets: &'a [usize],
    /// How many tokens of each sequence may be attended to, at least 1.
    pub keys: &'a [usize],
    /// The row of each token in the table of words; `None` if the parameters have word vectors instead of the table.
    pub ids: Option<&'a [u32]>,
    /// The row of each token in the table of types.
    pub types: &'a [u32],
    /// The row of each token in the table of positions.
    pub position_ids: &'a [u32],
    /// The place of each token in its padded sequence.
    pub positions: &'a [u32],
}

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
    config: TrainingConfig,
    /// On one thread; each pass is given others.
    execution: Execution,
    options: PassOptions,
    tasks: Vec<Task>,
    /// How many of the tasks the batch has.
    used: usize,
    ids: Option<Vec<u32>>,
    types: Vec<u32>,
    position_ids: Vec<u32>,
    /// The scratch buffers of each thread.
    scratch: ScratchPool<Worker, 64>,
}

/// The state of some sequences.
#[derive(Default)]
struct Task {
    tokens: TaskTokens,
    /// Of the norm of the embeddings.
    embedded: Normalized,
    /// The input of the projection [rows, E].
    unprojected: Matrix,
    /// What each layer keeps.
    layers: Vec<Kept>,
    /// Of the norm after the last layer.
    last: Normalized,
    /// The output of the last layer that was computed [rows, H].
    x: Matrix,
    /// The gradient with respect to it.
    dx: Matrix,
    gradients: Gradients,
    /// What the layer keeps that is run again.
    recomputed: Kept,
    /// The sums of the bias of the projection, and of γ and β of the norm of the embeddings and of the last one.
    projection: Vec<Row>,
    norm: [Vec<Row>; 2],
    last_norm: [Vec<Row>; 2],
}

/// The scratch buffers of one thread.
#[derive(Default)]
struct Worker {
    layer: LayerScratch,
    /// What a layer keeps whose backward pass does not run, or runs it again.
    kept: Kept,
    /// What becomes the task's x next.
    next: Matrix,
    line: Vec<f32>,
}

impl Scratch for Worker {}

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
        let pass = pass(self.config, self.execution, options, parameters);
        self.embed(&pass, parameters, batch, pool);
        let hidden = self.config.hidden;
        for (index, set) in parameters.uses.iter().enumerate() {
            let packed = Forward::new(self.shared(pool), &parameters.layers[*set], hidden, self.config.products);
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
                    pass.forward(index, &packed, tokens, x, kept, next, scratch);
                    swap(x, next);
                    if trained {
                        swap(&mut layers[index].x, next);
                    }
                },
            );
        }
        if let Some(norm) = parameters.last_norm {
            let (norm, eps, set) = (padded(norm), self.config.eps, self.execution.instruction_set);
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
        let (options, hidden, execution) = (self.options, self.config.hidden, self.shared(pool));
        let pass = pass(self.config, self.execution, options, parameters);
        for task in &mut self.tasks[..self.used] {
            let TaskTokens { first, rows, .. } = task.tokens;
            task.dx.fill_rows(rows, hidden, &dx[first * hidden..(first + rows) * hidden]);
            task.gradients.sums.distances.fill(0.0);
        }
        if let (Some(norm), Some(to)) = (parameters.last_norm, &mut gradients.last_norm) {
            self.last_norm_backward(norm, to, pool);
        }
        let mut written = vec![false; parameters.layers.len()];
        let lowest = options.trained_from.unwrap_or(0);
        for (index, set) in parameters.uses.iter().enumerate().skip(lowest).rev() {
            let layer = &parameters.layers[*set];
            let packed = Backward::new(execution, layer, hidden, self.config.products);
            let forward = options.checkpointing.then(|| Forward::new(execution, layer, hidden, self.config.products));
            let tasks = self.tasks[..self.used].iter_mut().collect();
            map_with(
                tasks,
                pool,
                || self.scratch.check_out(),
                |worker, task: &mut Task| {
                    let Worker { layer: scratch, next, .. } = &mut **worker;
                    let Task { tokens, layers, dx, gradients, recomputed, .. } = task;
                    let mut kept = &layers[index];
                    if let Some(layer) = &forward {
                        pass.forward(index, layer, tokens, &kept.x, recomputed, next, scratch);
                        kept = recomputed;
                    }
                    pass.backward(index, &packed, tokens, kept, dx, gradients, scratch);
                },
            );
            self.write_layer(execution, index, &mut gradients.layers[*set], written[*set]);
            written[*set] = true;
        }
        if let Some(to) = &mut gradients.relative_bias {
            to.fill(0.0);
            for task in &self.tasks[..self.used] {
                to.iter_mut().zip(&task.gradients.sums.distances).for_each(|(to, x)| *to += x);
            }
        }
        if let Some(gradients) = &mut gradients.embeddings {
            self.embed_backward(&pass, parameters, gradients, pool);
        }
    }

    /// Replaces the gradient with respect to the result of the norm after the last layer by that of its input.
    fn last_norm_backward(&mut self, norm: Affine<'_>, to: &mut AffineGradient<'_>, pool: Option<Workers>) {
        let (norm, hidden, eps) = (padded(norm), self.config.hidden, self.config.eps);
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

    fn shared(&self, pool: Option<Workers>) -> Execution {
        Execution { pool, ..self.execution }
    }

    /// Whether the gradients of weights are sums of products of bfloat16 pairs.
    fn multiplies_pairs(&self) -> bool {
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

    /// Computes x₀ = projection(dropout(LN(word + type + position))) of each task.
    fn embed(&mut self, pass: &Pass<'_>, parameters: &EncoderParameters<'_>, batch: Batch<'_>, pool: Option<Workers>) {
        let TrainingConfig { hidden, embedding, eps, .. } = self.config;
        let projection = parameters.projection.map(|layer| packed(&[layer], embedding, self.config.products));
        let norm = padded(parameters.embedding_norm);
        let mask = pass.mask(Site::Embeddings, 0);
        let tasks = self.tasks[..self.used].iter_mut().collect();
        map_with(
            tasks,
            pool,
            || self.scratch.check_out(),
            |worker, task: &mut Task| {
                let Worker { layer: LayerScratch { converted, states, .. }, line, .. } = &mut **worker;
                let Task { tokens, embedded, unprojected, x, .. } = task;
                let rows = tokens.rows;
                tokens.rotations.resize_with(parameters.frequencies.len(), Default::default);
                let places = &batch.position_ids[tokens.first..tokens.first + rows];
                for (rotations, frequencies) in tokens.rotations.iter_mut().zip(&parameters.frequencies) {
                    let back: Vec<f32> = frequencies.iter().map(|x| -x).collect();
                    rotations[0].fill(places, frequencies);
                    rotations[1].fill(places, &back);
                }
                line.resize(2 * embedding, 0.0);
                let mut out = embedded.x_hat.reshape(rows, embedding).view_mut();
                for row in 0..rows {
                    let token = tokens.first + row;
                    let word = batch.ids.map_or(token, |ids| ids[token] as usize);
                    let mut parts = vec![(Numbers::F32(parameters.words), word)];
                    parts.extend(parameters.types.map(|types| (Numbers::F32(types), batch.types[token] as usize)));
                    let place = batch.position_ids[token] as usize;
                    parts.extend(parameters.positions.map(|table| (Numbers::F32(table), place)));
                    sum_rows(&parts, embedding, line, row, &mut out);
                }
                let y = if projection.is_some() { &mut *unprojected } else { &mut *x };
                let norm = norm.with_eps(eps, embedding);
                normalize(self.execution.instruction_set, norm, embedded, &mut y.reshape(rows, embedding).view_mut());
                pass.drop(mask, tokens, y, embedding, states);
                if let Some(dense) = &projection {
                    let to = x.reshape(rows, hidden).view_mut();
                    linear(pass.execution, unprojected.view(), dense, Epilogue::Bias, to, converted);
                }
            },
        );
    }

    /// Writes the gradients of a layer's parameters, or adds to them.
    fn write_layer(&self, execution: Execution, index: usize, to: &mut LayerGradients<'_>, add: bool) {
        let TrainingConfig { hidden, intermediate, .. } = self.config;
        let (width, tasks) = (panels(hidden), &self.tasks[..self.used]);
        let checkpointing = self.options.checkpointing;
        let LayerGradients { qkv, output, output_norm, inner, up, outer, outer_norm } = to;
        // Where norms come first, the input of the attention is that of the layer only if there is no norm before it.
        let normed = self.config.norm_first && output_norm.is_some();
        let mut weights = Vec::with_capacity(7);
        for (n, gradient) in qkv.iter_mut().enumerate() {
            let part = n * width..(n + 1) * width;
            let parts = tasks.iter().map(|task| {
                let x = if normed { &task.gradients.x } else { &task.layers[index].x };
                [task.gradients.dqkv.view().panels(part.clone()), x.view()]
            });
            weights.push(WeightGradient { parts: parts.collect(), inputs: hidden, to: gradient.weight, add });
        }
        let parts =
            tasks.iter().map(|task| [task.gradients.doutput.view(), task.kept(index, checkpointing).context.view()]);
        let parts = parts.collect();
        weights.push(WeightGradient { parts, inputs: hidden, to: output.weight, add });
        let mut inners: Vec<_> = [Some(inner), up.as_mut()].into_iter().flatten().collect();
        for (n, gradient) in inners.iter_mut().enumerate() {
            let part = n * panels(intermediate)..(n + 1) * panels(intermediate);
            let parts =
                tasks.iter().map(|task| [task.gradients.dz.view().panels(part.clone()), task.gradients.a.view()]);
            weights.push(WeightGradient { parts: parts.collect(), inputs: hidden, to: gradient.weight, add });
        }
        let parts = tasks.iter().map(|task| [task.gradients.douter.view(), task.gradients.h.view()]).collect();
        weights.push(WeightGradient { parts, inputs: intermediate, to: outer.weight, add });
        weight_gradients(execution, weights, self.multiplies_pairs());
        for (n, gradient) in qkv.iter_mut().enumerate() {
            write_sum(
                tasks.iter().map(|task| &task.gradients.sums.qkv[n * width..(n + 1) * width]),
                gradient.bias,
                add,
            );
        }
        write_sum(tasks.iter().map(|task| &task.gradients.sums.output[..]), output.bias, add);
        for (n, gradient) in inners.iter_mut().enumerate() {
            let part = n * panels(intermediate)..(n + 1) * panels(intermediate);
            write_sum(tasks.iter().map(|task| &task.gradients.sums.inner[part.clone()]), gradient.bias, add);
        }
        write_sum(tasks.iter().map(|task| &task.gradients.sums.outer[..]), outer.bias, add);
        if let Some(norm) = output_norm {
            for (n, to) in [&mut norm.weight, &mut norm.bias].into_iter().enumerate() {
                write_sum(tasks.iter().map(|task| &task.gradients.sums.output_norm[n][..]), to, add);
            }
        }
        for (n, to) in [&mut outer_norm.weight, &mut outer_norm.bias].into_iter().enumerate() {
            write_sum(tasks.iter().map(|task| &task.gradients.sums.outer_norm[n][..]), to, add);
        }
    }

    /// Runs [`embed`](EncoderTraining::embed) in reverse.
    fn embed_backward(
        &mut self,
        pass: &Pass<'_>,
        parameters: &EncoderParameters<'_>,
        gradients: &mut EmbeddingGradients<'_>,
        pool: Option<Workers>,
    ) {
        let TrainingConfig { hidden, embedding, eps, .. } = self.config;
        let (execution, mask) = (self.shared(pool), pass.mask(Site::Embeddings, 0));
        let projection: Option<Dense> =
            parameters.projection.map(|layer| packed_transposed(&[layer], embedding, self.config.products));
        let norm = padded(parameters.embedding_norm);
        let mut rest = &mut *gradients.vectors;
        let mut tasks = Vec::with_capacity(self.used);
        for task in &mut self.tasks[..self.used] {
            let (own, others) = rest.split_at_mut(task.tokens.rows * embedding);
            tasks.push((task, own));
            rest = others;
        }
        map_with(
            tasks,
            pool,
            || self.scratch.check_out(),
            |worker, (task, vectors): (&mut Task, &mut [f32])| {
                let Worker { layer: LayerScratch { converted, states, .. }, next, .. } = &mut **worker;
                let Task { tokens, embedded, dx, projection: bias, norm: sums, .. } = task;
                if let Some(dense) = &projection {
                    bias.clear();
                    bias.resize(panels(hidden), Row::ZERO);
                    add_column_sums(pass.execution, dx.view(), bias);
                    let to = next.reshape(tokens.rows, embedding).view_mut();
                    linear(pass.execution, dx.view(), dense, Epilogue::Bias, to, converted);
                } else {
                    next.reshape(tokens.rows, embedding).data_mut().copy_from_slice(dx.data());
                }
                pass.drop(mask, tokens, next, embedding, states);
                for sums in sums.iter_mut() {
                    sums.clear();
                    sums.resize(panels(embedding), Row::ZERO);
                }
                let norm = norm.with_eps(eps, embedding);
                let sums = sums.each_mut().map(|sums| &mut sums[..]);
                normalize_backward(self.execution.instruction_set, norm, embedded, &mut next.view_mut(), sums);
                for (row, to) in vectors.chunks_exact_mut(embedding).enumerate() {
                    next.copy_row(row, to);
                }
            },
        );
        let tasks = &self.tasks[..self.used];
        if let Some(AffineGradient { weight, bias }) = &mut gradients.projection {
            let parts = tasks.iter().map(|task| [task.dx.view(), task.unprojected.view()]).collect();
            weight_gradients(
                execution,
                vec![WeightGradient { parts, inputs: embedding, to: weight, add: false }],
                self.multiplies_pairs(),
            );
            write_sum(tasks.iter().map(|task| &task.projection[..]), bias, false);
        }
        for (n, to) in [&mut gradients.norm.weight, &mut gradients.norm.bias].into_iter().enumerate() {
            write_sum(tasks.iter().map(|task| &task.norm[n][..]), to, false);
        }
        let vectors = &*gradients.vectors;
        let mut tables: Vec<(&mut [f32], &[u32], Option<usize>)> = Vec::with_capacity(3);
        if let (Some((words, without)), Some(ids)) = (&mut gradients.words, &self.ids) {
            tables.push((words, ids, *without));
        }
        if let Some((positions, without)) = &mut gradients.positions {
            tables.push((positions, &self.position_ids, *without));
        }
        if let Some(types) = &mut gradients.types {
            tables.push((types, &self.types, None));
        }
        map_with(
            tables,
            pool,
            || (),
            |(), (table, ids, without)| add_to_table(table, ids, without, vectors, embedding),
        );
    }
}

impl Task {
    /// Returns what layer `index` kept, or computed again.
    fn kept(&self, index: usize, checkpointing: bool) -> &Kept {
        if checkpointing { &self.recomputed } else { &self.layers[index] }
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
    Pass { config, execution, dropout: options.dropout, relative_bias, positions: &parameters.layer_positions }
}

fn padded(norm: Affine<'_>) -> LayerNormWeights {
    LayerNormWeights::new(norm.weight, norm.bias)
}

/// Writes the sum of the parts, first to last, or adds it to `to`.
fn write_sum<'a>(parts: impl Iterator<Item = &'a [Row]>, to: &mut [f32], add: bool) {
    for (n, part) in parts.enumerate() {
        write(part, to, add || n > 0);
    }
}
