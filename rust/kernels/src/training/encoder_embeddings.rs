//! The embeddings of an encoder, forward and backward: x₀ = projection(dropout(LN(word + type + position))).
//!
//! In a DeBERTa x₀ = dropout(LN(projection(word + type + position))), and 0 for masked tokens.

use std::mem::swap;

use wordpiece_parallel::{Workers, map_with};

use super::dropout::Site;
use super::embeddings::add_to_table;
use super::encoder::EncoderTraining;
use super::layer::{LayerScratch, Pass, TrainingConfig};
use super::norm::{normalize, normalize_backward};
use super::parameters::{
    AffineGradient, EmbeddingGradients, EncoderParameters, norm_weights, packed, packed_transposed, write_sum,
};
use super::products::{WeightGradient, add_column_sums, weight_gradients};
use super::tasks::{Batch, Task, Worker};
use crate::embeddings::sum_rows;
use crate::gemm::{Dense, Epilogue, linear};
use crate::matrix::{Matrix, Row, panels};
use crate::numbers::Numbers;

/// Where the projection is.
struct Order<'a> {
    disentangled: bool,
    /// The number of columns of the norm.
    columns: usize,
    /// The projection, if it comes before the norm, or after.
    before: Option<&'a Dense>,
    after: Option<&'a Dense>,
}

impl<'a> Order<'a> {
    fn new(parameters: &EncoderParameters<'_>, projection: &'a Option<Dense>, config: TrainingConfig) -> Order<'a> {
        let (projection, TrainingConfig { hidden, embedding, .. }) = (projection.as_ref(), config);
        if parameters.disentangled.is_some() {
            Order { disentangled: true, columns: hidden, before: projection, after: None }
        } else {
            Order { disentangled: false, columns: embedding, before: None, after: projection }
        }
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
        let TrainingConfig { hidden, embedding, eps, .. } = self.config;
        let projection = parameters.projection.map(|layer| packed(&[layer], embedding, self.config.products));
        let Order { disentangled, columns, before, after } = Order::new(parameters, &projection, self.config);
        let norm = norm_weights(parameters.embedding_norm);
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
                let sums = if before.is_some() { &mut *unprojected } else { &mut embedded.x_hat };
                let mut out = sums.reshape(rows, embedding).view_mut();
                for row in 0..rows {
                    let token = tokens.first + row;
                    let word = batch.ids.map_or(token, |ids| ids[token] as usize);
                    let mut parts = vec![(Numbers::F32(parameters.words), word)];
                    parts.extend(parameters.types.map(|types| (Numbers::F32(types), batch.types[token] as usize)));
                    let place = batch.position_ids[token] as usize;
                    parts.extend(parameters.positions.map(|table| (Numbers::F32(table), place)));
                    sum_rows(&parts, embedding, line, row, &mut out);
                }
                if let Some(dense) = before {
                    let to = embedded.x_hat.reshape(rows, hidden).view_mut();
                    linear(pass.execution, unprojected.view(), dense, Epilogue::Bias, to, converted);
                }
                let y = if after.is_some() { &mut *unprojected } else { &mut *x };
                let norm = norm.with_eps(eps, columns);
                normalize(self.execution.instruction_set, norm, embedded, &mut y.reshape(rows, columns).view_mut());
                if disentangled {
                    tokens.clear_masked(y);
                }
                pass.drop(mask, tokens, y, columns, states);
                if let Some(dense) = after {
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
        gradients: &mut EmbeddingGradients<'_>,
        pool: Option<Workers>,
    ) {
        let TrainingConfig { hidden, embedding, eps, .. } = self.config;
        let (execution, mask) = (self.shared(pool), pass.mask(Site::Embeddings, 0));
        let projection: Option<Dense> =
            parameters.projection.map(|layer| packed_transposed(&[layer], embedding, self.config.products));
        let Order { disentangled, columns, before, after } = Order::new(parameters, &projection, self.config);
        let norm = norm_weights(parameters.embedding_norm);
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
                let mut project = |dense: &Dense, dx: &Matrix, to: &mut Matrix| {
                    bias.clear();
                    bias.resize(panels(hidden), Row::ZERO);
                    add_column_sums(pass.execution, dx.view(), bias);
                    let to = to.reshape(tokens.rows, embedding).view_mut();
                    linear(pass.execution, dx.view(), dense, Epilogue::Bias, to, converted);
                };
                match after {
                    Some(dense) => project(dense, dx, next),
                    None => next.reshape(tokens.rows, columns).data_mut().copy_from_slice(dx.data()),
                }
                pass.drop(mask, tokens, next, columns, states);
                if disentangled {
                    tokens.clear_masked(next);
                }
                for sums in sums.iter_mut() {
                    sums.clear();
                    sums.resize(panels(columns), Row::ZERO);
                }
                let norm = norm.with_eps(eps, columns);
                let sums = sums.each_mut().map(|sums| &mut sums[..]);
                normalize_backward(self.execution.instruction_set, norm, embedded, &mut next.view_mut(), sums);
                if let Some(dense) = before {
                    swap(dx, next);
                    project(dense, dx, next);
                }
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
