//! The embeddings of an encoder, forward and backward: sums of rows of tables, a norm, and a dense layer before or after it.
//!
//! Masked tokens are 0 where the plan says so; dropout follows the norm, or the sum without one.

use std::mem::swap;

use wordpiece_parallel::{Workers, map_with};

use super::dropout::Site;
use super::embeddings::add_to_table;
use super::encoder::EncoderTraining;
use super::layer::{LayerScratch, Pass, TrainingConfig};
use super::norm::{normalize, normalize_backward};
use super::parameters::{
    Affine, AffineGradient, Borrowed, EncoderGradients, EncoderParameters, norm_of, packed, packed_transposed,
    write_sum,
};
use super::products::{WeightGradient, add_column_sums, weight_gradients};
use super::tasks::{Batch, Task, Worker};
use crate::embeddings::sum_rows;
use crate::encoder::Norm;
use crate::gemm::{Dense, Epilogue, linear};
use crate::matrix::{Matrix, Row, panels};
use crate::numbers::Numbers;
use crate::plan::{Embeddings, Step};

/// What follows the sum.
struct Order<'a> {
    norm: Option<Norm>,
    /// The number of columns of what is dropped.
    columns: usize,
    /// The dense layer, before the norm or after it.
    before: Option<Affine<'a>>,
    after: Option<Affine<'a>>,
}

impl<'a> Order<'a> {
    /// # Panics
    ///
    /// If the plan has more than one norm or dense layer.
    fn new(embeddings: &Embeddings<Borrowed<'a>>, config: TrainingConfig) -> Order<'a> {
        let mut order = Order { norm: None, columns: config.embedding, before: None, after: None };
        for step in &embeddings.then {
            match step {
                Step::Norm(norm) => {
                    assert!(order.norm.is_none(), "one norm");
                    order.norm = Some(norm_of(*norm));
                    order.before = order.after.take();
                    order.columns = if order.before.is_some() { config.hidden } else { config.embedding };
                }
                Step::Dense(dense) => {
                    assert!(order.after.is_none() && order.before.is_none(), "one dense layer");
                    order.after = Some(*dense);
                }
            }
        }
        order
    }
}

impl EncoderTraining {
    /// Computes x₀ of each task.
    pub(super) fn embed(
        &mut self,
        pass: &Pass<'_>,
        parameters: &EncoderParameters<'_>,
        batch: Batch<'_>,
        pool: Option<Workers>,
    ) {
        let TrainingConfig { hidden, embedding, products } = self.config;
        let of = &parameters.plan.embeddings;
        let Order { norm, columns, before, after } = Order::new(of, self.config);
        let [before, after] = [before, after].map(|layer| layer.map(|layer| packed(&[layer], embedding, products)));
        let mask = pass.mask(Site::Embeddings, 0, of.dropout);
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
                for (rotations, frequencies) in tokens.rotations.iter_mut().zip(parameters.frequencies) {
                    let back: Vec<f32> = frequencies.iter().map(|x| -x).collect();
                    rotations[0].fill(places, frequencies);
                    rotations[1].fill(places, &back);
                }
                line.resize(2 * embedding, 0.0);
                // Where the norm follows, its buffer receives what it is applied to.
                let sums = match (&before, &norm, &after) {
                    (None, Some(_), _) => &mut embedded.x_hat,
                    (None, None, None) => &mut *x,
                    _ => &mut *unprojected,
                };
                let mut out = sums.reshape(rows, embedding).view_mut();
                for row in 0..rows {
                    let token = tokens.first + row;
                    let mut parts = Vec::with_capacity(4);
                    match (parameters.vectors, batch.ids, &of.words) {
                        (None, Some(ids), Some(words)) => {
                            parts.push((Numbers::F32(words.rows), ids[token] as usize));
                        }
                        (vectors, ..) => parts.push((Numbers::F32(vectors.unwrap_or_default()), token)),
                    }
                    let tables =
                        [(&of.types, batch.types), (&of.positions, batch.position_ids), (&of.tasks, batch.tasks)];
                    for (table, ids) in tables {
                        parts.extend(table.map(|table| (Numbers::F32(table.rows), ids[token] as usize)));
                    }
                    sum_rows(&parts, embedding, line, row, &mut out);
                }
                if let Some(dense) = &before {
                    let to = embedded.x_hat.reshape(rows, hidden).view_mut();
                    linear(pass.execution, unprojected.view(), dense, Epilogue::Bias, to, converted);
                }
                let y = if after.is_some() { &mut *unprojected } else { &mut *x };
                if let Some(norm) = &norm {
                    let to = &mut y.reshape(rows, columns).view_mut();
                    normalize(self.execution.instruction_set, norm.kind, norm.parameters(), embedded, to);
                }
                if of.masked {
                    tokens.clear_masked(y);
                }
                pass.drop(mask, tokens, y, columns, states);
                if let Some(dense) = &after {
                    let to = x.reshape(rows, hidden).view_mut();
                    linear(pass.execution, unprojected.view(), dense, Epilogue::Bias, to, converted);
                }
            },
        );
    }

    /// Runs [`embed`](EncoderTraining::embed) in reverse.
    pub(super) fn embed_backward(
        &mut self,
        pass: &Pass<'_>,
        parameters: &EncoderParameters<'_>,
        gradients: &mut EncoderGradients<'_>,
        pool: Option<Workers>,
    ) {
        let TrainingConfig { hidden, embedding, products } = self.config;
        let of = &parameters.plan.embeddings;
        let (execution, mask) = (self.shared(pool), pass.mask(Site::Embeddings, 0, of.dropout));
        let Order { norm, columns, before, after } = Order::new(of, self.config);
        let [before, after]: [Option<Dense>; 2] =
            [before, after].map(|layer| layer.map(|layer| packed_transposed(&[layer], embedding, products)));
        let EncoderGradients { plan, vectors: Some(vectors) } = gradients else { return };
        let to = &mut plan.embeddings;
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
                let Worker { layer: LayerScratch { converted, states, .. }, next, .. } = &mut **worker;
                let Task { tokens, embedded, dx, projection: bias, norm: sums, .. } = task;
                let mut project = |dense: &Dense, dx: &Matrix, to: &mut Matrix| {
                    bias.clear();
                    bias.resize(panels(hidden), Row::ZERO);
                    add_column_sums(pass.execution, dx.view(), bias);
                    let to = to.reshape(tokens.rows, embedding).view_mut();
                    linear(pass.execution, dx.view(), dense, Epilogue::Bias, to, converted);
                };
                match &after {
                    Some(dense) => project(dense, dx, next),
                    None => next.reshape(tokens.rows, columns).data_mut().copy_from_slice(dx.data()),
                }
                pass.drop(mask, tokens, next, columns, states);
                if of.masked {
                    tokens.clear_masked(next);
                }
                for sums in sums.iter_mut() {
                    sums.clear();
                    sums.resize(panels(columns), Row::ZERO);
                }
                if let Some(norm) = &norm {
                    let (sums, set) = (sums.each_mut().map(|sums| &mut sums[..]), self.execution.instruction_set);
                    normalize_backward(set, norm.kind, norm.parameters(), embedded, &mut next.view_mut(), sums);
                }
                if let Some(dense) = &before {
                    swap(dx, next);
                    project(dense, dx, next);
                }
                for (row, to) in vectors.chunks_exact_mut(embedding).enumerate() {
                    next.copy_row(row, to);
                }
            },
        );
        let tasks = &self.tasks[..self.used];
        for step in &mut to.then {
            match step {
                Step::Dense(AffineGradient { weight, bias }) => {
                    let parts = tasks.iter().map(|task| [task.dx.view(), task.unprojected.view()]).collect();
                    let gradient = WeightGradient { parts, inputs: embedding, to: weight, add: false };
                    weight_gradients(execution, vec![gradient], self.multiplies_pairs());
                    write_sum(tasks.iter().map(|task| &task.projection[..]), bias, false);
                }
                Step::Norm(AffineGradient { weight, bias }) => {
                    for (n, to) in [weight, bias].into_iter().enumerate() {
                        write_sum(tasks.iter().map(|task| &task.norm[n][..]), to, false);
                    }
                }
            }
        }
        let vectors = &**vectors;
        let mut tables: Vec<(&mut [f32], &[u32], Option<usize>)> = Vec::with_capacity(4);
        let ids = self.ids.as_deref();
        for (to, table, ids) in [
            (&mut to.words, &of.words, ids),
            (&mut to.positions, &of.positions, Some(&self.position_ids[..])),
            (&mut to.types, &of.types, Some(&self.types[..])),
            (&mut to.tasks, &of.tasks, Some(&self.task_ids[..])),
        ] {
            if let (Some(Some(to)), Some(table), Some(ids)) = (to, table, ids) {
                tables.push((to, ids, table.fixed));
            }
        }
        map_with(
            tables,
            pool,
            || (),
            |(), (table, ids, without)| add_to_table(table, ids, without, vectors, embedding),
        );
    }
}
