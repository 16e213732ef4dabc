//! The table of relative positions of a DeBERTa, which all layers read, in a pass over a batch.
//!
//! Each layer projects R̃ = dropout(R), R the table or its norm, to Kʳ and Qʳ. The gradients of both are summed up over the
//! tasks and go back through the projections: they add to the gradients of the dense layers, and to the gradient of R.
//!
//! Only those rows of the table are computed whose distances occur in the batch, in the order of key positions, as in
//! [`RelativeTerms`]: the opposite of that in the table.
//!
//! With n such rows, a layer projects n·H numbers, not a row for each pair of tokens; n is at most 2·farthest + 1, and less
//! where distances share a row. Projections are computed once for a layer and read by all tasks. Their gradients are sums over
//! tasks, added in the order of the tasks, so that they have the same bits for any number of threads.

use wordpiece_parallel::map_with;

use super::body::{Pass, TrainingConfig};
use super::dropout::{Site, drop_rows};
use super::encoder_gradients::OfTerm;
use super::heads::RelativeHeads;
use super::norm::Normalized;
use super::parameters::{
    Affine, Borrowed, RelativeGradients, RelativeParameters, attention_width, norm_of, packed, packed_transposed, write,
};
use super::products::add_column_sums;
use super::tasks::Task;
use crate::disentangled::{RelativeScores, RelativeTerms};
use crate::gemm::{Epilogue, linear};
use crate::matrix::{Matrix, PANEL, Row, View, add_rows, copy_columns, panels};
use crate::plan::{Attention, Residual};

/// The rows of the table that a batch needs, and their gradient.
#[derive(Default)]
pub(super) struct RelativeTable {
    /// The relative positions of the distances key − query from −`max_distance` to `max_distance`, counted from the first.
    distances: Vec<u32>,
    max_distance: usize,
    /// The row of the table of each relative position.
    rows: Vec<usize>,
    /// Of the norm.
    normalized: Normalized,
    /// R [relative positions, H].
    table: Matrix,
    /// The gradient of R so far.
    dtable: Matrix,
}

/// What a layer has of relative positions.
pub(super) struct LayerTerms {
    /// R̃ [relative positions, H].
    dropped: Matrix,
    /// Kʳ and Qʳ, or one of them, side by side.
    projected: Matrix,
    packed: RelativeTerms,
}

/// The gradients of Kʳ and Qʳ, or one of them, in one layer.
pub(super) struct TermGradients {
    /// Which of them there are.
    there: [bool; 2],
    /// R̃ [relative positions, H].
    dropped: Matrix,
    /// Side by side, each beginning at a panel.
    dterms: Matrix,
    /// The sums of their rows.
    sums: Vec<Row>,
}

impl RelativeTable {
    /// Reads the rows for positions up to `farthest`, applies the norm if the model has one, and begins with the gradient 0.
    ///
    /// It is called once for a batch: all layers read the same R. What the norm's backward pass needs is kept beside it.
    pub fn prepare(&mut self, pass: &Pass<'_>, parameters: &RelativeParameters<'_>, farthest: usize) {
        let TrainingConfig { hidden, .. } = pass.config;
        let RelativeTable { distances, max_distance, rows, normalized, table, dtable } = self;
        let positions = parameters.positions;
        positions.fill(farthest, distances);
        *max_distance = farthest;
        let (first, last) = (distances[0], distances[2 * farthest]);
        distances.iter_mut().for_each(|row| *row -= first);
        rows.clear();
        rows.extend((first..=last).map(|row| 2 * positions.span - 1 - row as usize));
        let numbers: Vec<f32> =
            rows.iter().flat_map(|row| &parameters.table[row * hidden..(row + 1) * hidden]).copied().collect();
        let to = if parameters.norm.is_some() { &mut normalized.x_hat } else { &mut *table };
        to.fill_rows(rows.len(), hidden, &numbers);
        if let Some(norm) = parameters.norm {
            pass.normalize(&norm_of(norm), normalized, &mut table.reshape(rows.len(), hidden).view_mut());
        }
        dtable.reshape(rows.len(), hidden).data_mut().fill(Row::ZERO);
    }

    /// Projects the rows for layer number `index`, if its scores have terms of relative positions: R̃·Wᵀ + b for the keys and the queries, as far as the model has these terms, side by
    /// side. The weights are the layer's own or the weights of its queries and keys, as the model shares them or not.
    pub fn terms(&self, pass: &Pass<'_>, index: usize, layer: &[Residual<Borrowed<'_>>]) -> Option<LayerTerms> {
        let TrainingConfig { hidden, products, .. } = pass.config;
        let (attention, parameters) = relative_of(layer)?;
        let (heads, width) = (attention.heads, attention_width(attention));
        let layers = layers_of(parameters);
        let (mut dropped, mut projected) = (Matrix::default(), Matrix::default());
        dropped.reshape(self.rows.len(), hidden).data_mut().copy_from_slice(self.table.data());
        self.drop(pass, index, parameters, &mut dropped);
        let dense = packed(&layers, hidden, products);
        let to = projected.reshape(self.rows.len(), layers.len() * panels(width) * PANEL).view_mut();
        linear(pass.execution, dropped.view(), &dense, Epilogue::Bias, to, &mut Default::default());
        let tables = tables_of(&projected, there(parameters), width);
        let packed = RelativeTerms::of_rows(pass.execution.instruction_set, tables, heads, width / heads, false);
        Some(LayerTerms { dropped, projected, packed })
    }

    /// Returns what the scores of a layer have of relative positions; None for a layer without attention.
    pub fn heads<'a>(
        &'a self,
        layer: &[Residual<Borrowed<'_>>],
        terms: Option<&'a LayerTerms>,
    ) -> Option<RelativeHeads<'a>> {
        let attention = layer.iter().find_map(Residual::attention)?;
        let there = attention.relative.as_ref().map_or([false; 2], there);
        Some(RelativeHeads {
            scores: RelativeScores {
                terms: terms.map(|terms| &terms.packed),
                rows: &self.distances,
                max_distance: self.max_distance,
                count: attention.terms,
            },
            tables: terms.map_or([None; 2], |terms| tables_of(&terms.projected, there, attention_width(attention))),
        })
    }

    /// Adds up the gradients of Kʳ and Qʳ of all tasks, multiplies them by the scale of scores, and adds what comes of them to
    /// the gradient of R.
    pub fn backward(
        &mut self,
        pass: &Pass<'_>,
        index: usize,
        layer: &[Residual<Borrowed<'_>>],
        terms: LayerTerms,
        tasks: &[Task],
    ) -> Option<TermGradients> {
        let (TrainingConfig { hidden, products, .. }, execution) = (pass.config, pass.execution);
        let (attention, parameters) = relative_of(layer)?;
        let (heads, width) = (attention.heads, attention_width(attention));
        let (rows, size) = (self.rows.len(), width / heads);
        let scale = 1.0 / ((size * attention.terms) as f32).sqrt();
        let layers = layers_of(parameters);
        let mut dterms = Matrix::default();
        dterms.reshape(rows, layers.len() * panels(width) * PANEL).data_mut().fill(Row::ZERO);
        let there = there(parameters);
        for (place, term) in (0..2).filter(|term| there[*term]).enumerate() {
            let sums = map_with(
                (0..heads).collect(),
                execution.pool,
                || (),
                |(), head| {
                    let of_head = panels(size) * rows;
                    let mut sums = vec![Row::ZERO; of_head];
                    for task in tasks {
                        let terms = &task.gradients.positions.terms[term];
                        add_rows(&terms[head * of_head..][..of_head], &mut sums);
                    }
                    sums.iter_mut().flat_map(|row| &mut row.0).for_each(|x| *x *= scale);
                    sums
                },
            );
            for (head, sums) in sums.iter().enumerate() {
                let first = place * panels(width) * PANEL + head * size;
                copy_columns(View::new(sums, rows), 0, dterms.view_mut(), first, size);
            }
        }
        let mut sums = vec![Row::ZERO; layers.len() * panels(width)];
        add_column_sums(execution, dterms.view(), &mut sums);
        let mut dtable = Matrix::default();
        let dense = packed_transposed(&layers, hidden, products);
        let to = dtable.reshape(rows, hidden).view_mut();
        linear(execution, dterms.view(), &dense, Epilogue::Bias, to, &mut Default::default());
        self.drop(pass, index, parameters, &mut dtable);
        add_rows(dtable.data(), self.dtable.data_mut());
        Some(TermGradients { there, dropped: terms.dropped, dterms, sums })
    }

    /// Writes the gradients of the table and its norm.
    pub fn finish(&mut self, pass: &Pass<'_>, parameters: &RelativeParameters<'_>, to: &mut RelativeGradients<'_>) {
        let TrainingConfig { hidden, .. } = pass.config;
        let Some(to_table) = &mut to.table else { return };
        if let (Some(norm), Some(to)) = (parameters.norm, &mut to.norm) {
            let mut sums = [(); 2].map(|()| vec![Row::ZERO; panels(hidden)]);
            pass.normalize_backward(&norm_of(norm), &self.normalized, &mut self.dtable.view_mut(), &mut sums);
            write(&sums[0], to.weight, false);
            write(&sums[1], to.bias, false);
        }
        to_table.fill(0.0);
        for (from, row) in self.rows.iter().enumerate() {
            self.dtable.copy_row(from, &mut to_table[row * hidden..(row + 1) * hidden]);
        }
    }

    /// Applies the dropout of a layer to rows of H columns.
    fn drop(&self, pass: &Pass<'_>, index: usize, parameters: &RelativeParameters<'_>, x: &mut Matrix) {
        if let Some(mask) = pass.mask(Site::Relative, index, parameters.dropout) {
            let states: Vec<u64> = self.rows.iter().map(|row| mask.state(*row, 0)).collect();
            let width = x.view().width();
            drop_rows(pass.execution.instruction_set, mask, &states, &mut x.view_mut(), width);
        }
    }
}

impl TermGradients {
    /// Returns the gradient of Kʳ (0) or Qʳ (1) and R̃, the factors of the gradient of the dense layer between them, and the
    /// sum of its rows; None without the term.
    pub fn of(&self, term: usize) -> OfTerm<'_> {
        let width = self.sums.len() / self.there.iter().filter(|there| **there).count().max(1);
        let columns = place(term, self.there, width)?;
        Some(([self.dterms.view().panels(columns.clone()), self.dropped.view()], &self.sums[columns]))
    }
}

/// Returns the attention of a layer whose scores have terms of relative positions, and these.
fn relative_of<'a, 'p>(
    layer: &'a [Residual<Borrowed<'p>>],
) -> Option<(&'a Attention<Borrowed<'p>>, &'a RelativeParameters<'p>)> {
    let attention = layer.iter().find_map(Residual::attention)?;
    Some((attention, attention.relative.as_ref()?))
}

/// Returns the dense layers of the terms that there are.
fn layers_of<'a>(parameters: &RelativeParameters<'a>) -> Vec<Affine<'a>> {
    parameters.terms.into_iter().flatten().collect()
}

/// Returns which terms there are.
fn there(parameters: &RelativeParameters<'_>) -> [bool; 2] {
    parameters.terms.map(|term| term.is_some())
}

/// Returns Kʳ and Qʳ.
fn tables_of(projected: &Matrix, terms: [bool; 2], width: usize) -> [Option<View<'_>>; 2] {
    [0, 1].map(|term| Some(projected.view().panels(place(term, terms, panels(width))?)))
}

/// Returns the panels of a term among those that there are, each of `width` panels.
fn place(term: usize, terms: [bool; 2], width: usize) -> Option<std::ops::Range<usize>> {
    let before = terms[..term].iter().filter(|there| **there).count();
    terms[term].then_some(before * width..(before + 1) * width)
}
