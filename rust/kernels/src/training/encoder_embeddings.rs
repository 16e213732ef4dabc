//! The embeddings of an encoder, forward and backward: sums of rows of tables, a norm, and a dense layer before or after it.
//!
//! Masked tokens are 0 where the plan says so; dropout follows the norm, or the sum without one.

use std::mem::swap;

use wordpiece_parallel::{Workers, map_with};

use super::body::{Pass, TrainingConfig};
use super::buffers::{LayerScratch, TaskTokens, clear};
use super::dropout::{Mask, Site};
use super::embeddings::add_to_table;
use super::encoder::EncoderTraining;
use super::norm::Normalized;
use super::parameters::{
    Affine, AffineGradient, Borrowed, EncoderGradients, EncoderParameters, Written, norm_of, packed, packed_transposed,
    write_sum,
};
use super::products::{WeightGradient, add_column_sums, weight_gradients};
use super::tasks::{Batch, Task, Worker};
use crate::embeddings::sum_rows;
use crate::encoder::Norm;
use crate::gemm::{Dense, Epilogue, Products, linear};
use crate::matrix::{Matrix, panels};
use crate::numbers::Numbers;
use crate::plan::{Embeddings, Step};

/// What follows the sum, packed for one direction of a pass.
struct Order {
    norm: Option<Norm>,
    /// The dense layer, before the norm or after it.
    before: Option<Dense>,
    after: Option<Dense>,
    /// The number of columns of what is dropped.
    columns: usize,
    mask: Option<Mask>,
    /// Whether masked tokens are 0.
    masked: bool,
}

impl Order {
    /// # Panics
    ///
    /// If the plan has more than one norm or dense layer.
    fn new(
        embeddings: &Embeddings<Borrowed<'_>>,
        pass: &Pass<'_>,
        pack: fn(&[Affine<'_>], usize, Products) -> Dense,
    ) -> Order {
        let TrainingConfig { hidden, embedding, products } = pass.config;
        let mask = pass.mask(Site::Embeddings, 0, embeddings.dropout);
        let mut order =
            Order { norm: None, before: None, after: None, columns: embedding, mask, masked: embeddings.masked };
        for step in &embeddings.then {
            match step {
                Step::Norm(norm) => {
                    assert!(order.norm.is_none(), "one norm");
                    order.norm = Some(norm_of(*norm));
                    order.before = order.after.take();
                    order.columns = if order.before.is_some() { hidden } else { embedding };
                }
                Step::Dense(dense) => {
                    assert!(order.after.is_none() && order.before.is_none(), "one dense layer");
                    order.after = Some(pack(&[*dense], embedding, products));
                }
            }
        }
        order
    }

    /// Returns where the sums are computed: where the norm follows, its buffer receives what it is applied to.
    fn sums<'t>(&self, embedded: &'t mut Normalized, x: &'t mut Matrix, unprojected: &'t mut Matrix) -> &'t mut Matrix {
        match (&self.before, &self.norm, &self.after) {
            (None, Some(_), _) => &mut embedded.x_hat,
            (None, None, None) => x,
            _ => unprojected,
        }
    }

    /// Computes x₀ of a task from the sums.
    fn forward(&self, pass: &Pass<'_>, task: &mut Task, scratch: &mut LayerScratch) {
        let TrainingConfig { hidden, .. } = pass.config;
        let LayerScratch { converted, states, .. } = scratch;
        let Task { tokens, embedded, unprojected, x, .. } = task;
        if let Some(dense) = &self.before {
            let to = embedded.x_hat.reshape(tokens.rows, hidden).view_mut();
            linear(pass.execution, unprojected.view(), dense, Epilogue::Bias, to, converted);
        }
        let y = if self.after.is_some() { &mut *unprojected } else { &mut *x };
        if let Some(norm) = &self.norm {
            pass.normalize(norm, embedded, &mut y.reshape(tokens.rows, self.columns).view_mut());
        }
        if self.masked {
            tokens.clear_masked(y);
        }
        pass.drop(self.mask, tokens, y, self.columns, states);
        if let Some(dense) = &self.after {
            let to = x.reshape(tokens.rows, hidden).view_mut();
            linear(pass.execution, unprojected.view(), dense, Epilogue::Bias, to, converted);
        }
    }

    /// Computes the gradient of the sums of a task, `to`, and the sums that the gradients of the weights are made of.
    fn backward(&self, pass: &Pass<'_>, task: &mut Task, to: &mut Matrix, scratch: &mut LayerScratch) {
        let TrainingConfig { hidden, embedding, .. } = pass.config;
        let LayerScratch { converted, states, .. } = scratch;
        let Task { tokens, embedded, dx, projection: bias, norm: sums, .. } = task;
        let mut project = |dense: &Dense, dx: &Matrix, to: &mut Matrix| {
            clear(bias, panels(hidden));
            add_column_sums(pass.execution, dx.view(), bias);
            let to = to.reshape(tokens.rows, embedding).view_mut();
            linear(pass.execution, dx.view(), dense, Epilogue::Bias, to, converted);
        };
        match &self.after {
            Some(dense) => project(dense, dx, to),
            None => to.reshape(tokens.rows, self.columns).data_mut().copy_from_slice(dx.data()),
        }
        pass.drop(self.mask, tokens, to, self.columns, states);
        if self.masked {
            tokens.clear_masked(to);
        }
        sums.iter_mut().for_each(|sums| clear(sums, panels(self.columns)));
        if let Some(norm) = &self.norm {
            pass.normalize_backward(norm, embedded, &mut to.view_mut(), sums);
        }
        if let Some(dense) = &self.before {
            swap(dx, to);
            project(dense, dx, to);
        }
    }
}

/// Computes the sums of the rows that the tokens of a task read.
fn add_rows_of_tables(
    parameters: &EncoderParameters<'_>,
    batch: Batch<'_>,
    tokens: &TaskTokens,
    embedding: usize,
    line: &mut Vec<f32>,
    to: &mut Matrix,
) {
    let of = &parameters.plan.embeddings;
    let tables = [(&of.types, batch.types), (&of.positions, batch.position_ids), (&of.tasks, batch.tasks)];
    line.resize(2 * embedding, 0.0);
    let mut out = to.reshape(tokens.rows, embedding).view_mut();
    for row in 0..tokens.rows {
        let token = tokens.first + row;
        let mut parts = Vec::with_capacity(4);
        match (parameters.vectors, batch.ids, &of.words) {
            (None, Some(ids), Some(words)) => parts.push((Numbers::F32(words.rows), ids[token] as usize)),
            (vectors, ..) => parts.push((Numbers::F32(vectors.unwrap_or_default()), token)),
        }
        for (table, ids) in tables {
            parts.extend(table.map(|table| (Numbers::F32(table.rows), ids[token] as usize)));
        }
        sum_rows(&parts, embedding, line, row, &mut out);
    }
}

impl EncoderTraining {
    /// Computes x₀ of each task.
    pub(super) fn embed(&mut self, parameters: &EncoderParameters<'_>, batch: Batch<'_>, pool: Option<Workers>) {
        let pass = self.pass(None);
        let order = Order::new(&parameters.plan.embeddings, &pass, packed);
        map_with(
            self.tasks[..self.used].iter_mut().collect(),
            pool,
            || self.scratch.check_out(),
            |worker, task: &mut Task| {
                let Worker { layer: scratch, line, .. } = &mut **worker;
                let Task { tokens, embedded, unprojected, x, .. } = &mut *task;
                tokens.rotations.resize_with(parameters.frequencies.len(), Default::default);
                let places = &batch.position_ids[tokens.first..tokens.first + tokens.rows];
                for (rotations, frequencies) in tokens.rotations.iter_mut().zip(parameters.frequencies) {
                    let back: Vec<f32> = frequencies.iter().map(|x| -x).collect();
                    rotations[0].fill(places, frequencies);
                    rotations[1].fill(places, &back);
                }
                let sums = order.sums(embedded, x, unprojected);
                add_rows_of_tables(parameters, batch, tokens, pass.config.embedding, line, sums);
                order.forward(&pass, task, scratch);
            },
        );
    }

    /// Runs [`embed`](EncoderTraining::embed) in reverse.
    pub(super) fn embed_backward(
        &mut self,
        parameters: &EncoderParameters<'_>,
        gradients: &mut EncoderGradients<'_>,
        pool: Option<Workers>,
    ) {
        let EncoderGradients { plan, vectors: Some(vectors) } = gradients else { return };
        let (pass, embedding) = (self.pass(None), self.config.embedding);
        let order = Order::new(&parameters.plan.embeddings, &pass, packed_transposed);
        let mut rest = &mut **vectors;
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
                let Worker { layer: scratch, next, .. } = &mut **worker;
                order.backward(&pass, task, next, scratch);
                for (row, to) in vectors.chunks_exact_mut(embedding).enumerate() {
                    next.copy_row(row, to);
                }
            },
        );
        for step in &mut plan.embeddings.then {
            self.write_step(step, pool);
        }
        self.write_tables(&parameters.plan.embeddings, &mut plan.embeddings, vectors, pool);
    }

    /// Writes the gradients of a norm or dense layer after the sum.
    fn write_step(&self, step: &mut Step<Written<'_>>, pool: Option<Workers>) {
        let tasks = &self.tasks[..self.used];
        match step {
            Step::Dense(AffineGradient { weight, bias }) => {
                let parts = tasks.iter().map(|task| [task.dx.view(), task.unprojected.view()]).collect();
                let gradient = WeightGradient { parts, inputs: self.config.embedding, to: weight, add: false };
                weight_gradients(self.pass(pool).execution, vec![gradient], self.multiplies_pairs());
                write_sum(tasks.iter().map(|task| &task.projection[..]), bias, false);
            }
            Step::Norm(AffineGradient { weight, bias }) => {
                for (n, to) in [weight, bias].into_iter().enumerate() {
                    write_sum(tasks.iter().map(|task| &task.norm[n][..]), to, false);
                }
            }
        }
    }

    /// Adds the gradient of the sums to the gradients of the tables.
    fn write_tables(
        &self,
        of: &Embeddings<Borrowed<'_>>,
        to: &mut Embeddings<Written<'_>>,
        vectors: &[f32],
        pool: Option<Workers>,
    ) {
        let mut tables: Vec<(&mut [f32], &[u32], Option<usize>)> = Vec::with_capacity(4);
        for (to, table, ids) in [
            (&mut to.words, &of.words, self.ids.as_deref()),
            (&mut to.positions, &of.positions, Some(&self.position_ids[..])),
            (&mut to.types, &of.types, Some(&self.types[..])),
            (&mut to.tasks, &of.tasks, Some(&self.task_ids[..])),
        ] {
            if let (Some(Some(to)), Some(table), Some(ids)) = (to, table, ids) {
                tables.push((to, ids, table.fixed));
            }
        }
        let embedding = self.config.embedding;
        map_with(
            tables,
            pool,
            || (),
            |(), (table, ids, without)| add_to_table(table, ids, without, vectors, embedding),
        );
    }
}
