//! The embeddings and layers of MobileBERT (Sun et al. 2020): narrow layers between wide hidden states.
//!
//! Hidden states have the width H, and a layer works in the width h = heads · head size, which is H where there is no
//! bottleneck. For x [rows, H], a layer computes
//!
//! ```text
//! n  = Norm(W_in·x)                      the narrow input [rows, h]; x itself without a bottleneck
//! s  = Norm(W_shared·x)                  a second one, for queries and keys, in models that share it
//! a  = Norm(W_o·attention(q, k, v) + n)  q and k from s, n or x, v from x or n
//! a  = Norm(FFN(a) + a)                  once for each feed-forward network
//! x' = Norm(W_back·a + x)                back to [rows, H]; a itself without a bottleneck
//! ```
//!
//! A norm is γ·x + β in models with `no_norm`, a layer norm in others. All matrices are of the scratch, which grows to its
//! largest use and is kept: a layer allocates nothing after the first call.

use std::mem::swap;

use super::forward::{EncoderScratch, Task};
use super::inputs::{EmbeddingTables, NO_NEIGHBOUR, TokenColumns};
use super::weights::{BottleneckLayer, DenseNorm, EncoderConfig, Source};
use crate::embeddings::sum_rows;
use crate::gemm::{Dense, Epilogue, linear};
use crate::matrix::{PANEL, ViewMut, panels};
use crate::numbers::Numbers;
use crate::tile::tiles;

impl Task<'_, '_> {
    /// Computes x = Norm(dense([next; word; previous]) + position + type). Models without neighbours have the word alone,
    /// those without a transformation no dense layer.
    ///
    /// `tokens.neighbours` has two ids for each token, the next one and the previous one, or [`NO_NEIGHBOUR`] at the ends of
    /// a sequence, for which the vector is 0. So no sequence reads the tokens of another in the same batch.
    pub(super) fn embed_neighbours(&mut self, tables: EmbeddingTables<'_>, tokens: TokenColumns<'_>) {
        let (encoder, instruction_set) = (self.encoder, self.execution.instruction_set);
        let EncoderConfig { hidden, embedding, .. } = encoder.config;
        let EncoderScratch { embedded, x, spare, converted, line, positions, .. } = &mut *self.scratch;
        let joined = if tokens.neighbours.is_empty() { embedding } else { 3 * embedding };
        line.resize((2 * hidden).max(joined), 0.0);
        positions.clear();
        let mut words = embedded.reshape(self.rows, joined).view_mut();
        let mut others = spare.reshape(self.rows, hidden).view_mut();
        for sequence in &self.sequences {
            for (i, token) in sequence.tokens.clone().enumerate() {
                let value = |column: &[u32], default: usize| column.get(token).map_or(default, |n| *n as usize);
                let row = positions.len();
                let (next, previous) = match tokens.neighbours.get(2 * token..2 * token + 2) {
                    Some(both) => (Some(both[0]), Some(both[1])),
                    None => (None, None),
                };
                let parts = [next, Some(tokens.ids[token]), previous];
                join_words(tables.words, parts, embedding, &mut line[..joined], row, &mut words);
                let mut parts = [(tables.words, 0); 2];
                let mut count = 0;
                for (table, index) in
                    [(tables.positions, value(tokens.position_ids, i)), (tables.types, value(tokens.types, 0))]
                {
                    if let Some(table) = table {
                        parts[count] = (table, index);
                        count += 1;
                    }
                }
                sum_rows(&parts[..count], hidden, &mut line[..2 * hidden], row, &mut others);
                positions.push(value(tokens.positions, i) as u32);
            }
        }
        x.reshape(self.rows, hidden);
        match &encoder.transformation {
            Some(dense) => {
                let epilogue = Epilogue::Residual(spare.view());
                linear(self.execution, embedded.view(), dense, epilogue, x.view_mut(), converted);
            }
            None => {
                let sums = embedded.data().iter().zip(spare.data());
                for (to, (word, other)) in x.data_mut().iter_mut().zip(sums) {
                    to.0 = std::array::from_fn(|column| word.0[column] + other.0[column]);
                }
            }
        }
        if let Some(norm) = &encoder.embedding_norm {
            norm.apply(instruction_set, hidden, &mut x.view_mut());
        }
    }

    /// Computes the output of layer `layer`, number `index`, from x and into x.
    pub(super) fn run_bottleneck(&mut self, index: usize, layer: &BottleneckLayer) {
        self.narrow(layer);
        self.query(layer);
        self.run_heads(index, self.multiplies_heads_as_bfloat16(layer.value.weights()));
        let EncoderConfig { hidden, heads, head_size, .. } = self.encoder.config;
        let (rows, size, execution) = (self.rows, heads * head_size, self.execution);
        let EncoderScratch { narrow, context, attended, converted, .. } = &mut *self.scratch;
        let to = attended.reshape(rows, size).view_mut();
        linear(execution, context.view(), &layer.output.dense, Epilogue::Residual(narrow.view()), to, converted);
        layer.output.norm.apply(execution.instruction_set, size, &mut attended.view_mut());
        for (inner, outer) in &layer.feed_forward {
            self.narrow_feed_forward(inner, outer);
        }
        let EncoderScratch { x, attended, spare, converted, .. } = &mut *self.scratch;
        match &layer.back {
            Some(back) => {
                let to = spare.reshape(rows, hidden).view_mut();
                linear(execution, attended.view(), &back.dense, Epilogue::Residual(x.view()), to, converted);
                back.norm.apply(execution.instruction_set, hidden, &mut spare.view_mut());
                swap(x, spare);
            }
            None => swap(x, attended),
        }
    }

    /// Computes the narrow input n and, into `normed`, the second one, s: [rows, h] each. Without a bottleneck n is
    /// a copy of x, so that all that follows reads n in either case.
    fn narrow(&mut self, layer: &BottleneckLayer) {
        let EncoderConfig { heads, head_size, .. } = self.encoder.config;
        let (rows, size, execution) = (self.rows, heads * head_size, self.execution);
        let EncoderScratch { x, narrow, normed, converted, .. } = &mut *self.scratch;
        match &layer.input {
            Some(input) => {
                let to = narrow.reshape(rows, size).view_mut();
                linear(execution, x.view(), &input.dense, Epilogue::Bias, to, converted);
                input.norm.apply(execution.instruction_set, size, &mut narrow.view_mut());
            }
            None => narrow.reshape(rows, size).data_mut().copy_from_slice(x.data()),
        }
        if let Some(shared) = &layer.shared {
            let to = normed.reshape(rows, size).view_mut();
            linear(execution, x.view(), &shared.dense, Epilogue::Bias, to, converted);
            shared.norm.apply(execution.instruction_set, size, &mut normed.view_mut());
        }
    }

    /// Computes queries, keys and values into `qkv`, side by side in whole panels: [rows, 3 · h rounded up to panels]. Queries
    /// and keys have one input, so they are one product; values may have another.
    fn query(&mut self, layer: &BottleneckLayer) {
        let EncoderConfig { heads, head_size, .. } = self.encoder.config;
        let width = panels(heads * head_size);
        let EncoderScratch { x, narrow, normed, qkv, converted, .. } = &mut *self.scratch;
        let from = |source: Source| match source {
            Source::Hidden => x.view(),
            Source::Narrow => narrow.view(),
            Source::Shared => normed.view(),
        };
        let mut to = qkv.reshape(self.rows, 3 * width * PANEL).view_mut();
        let queries = from(layer.queries_from);
        linear(self.execution, queries, &layer.query_key, Epilogue::Bias, to.panels(0..2 * width), converted);
        let values = from(layer.values_from);
        linear(self.execution, values, &layer.value, Epilogue::Bias, to.panels(2 * width..3 * width), converted);
    }

    /// Computes a = Norm(FFN(a) + a) for a = attended, some rows at a time: the inner activations of all rows, F wide, would
    /// not stay in a cache between the two products.
    fn narrow_feed_forward(&mut self, first: &Dense, second: &DenseNorm) {
        let EncoderConfig { heads, head_size, intermediate, activation, .. } = self.encoder.config;
        let (size, execution) = (heads * head_size, self.execution);
        let EncoderScratch { attended, inner, spare, converted, .. } = &mut *self.scratch;
        spare.reshape(self.rows, size);
        for part in tiles(self.rows, self.together.feed_forward) {
            let a = attended.view().rows(part.clone());
            let to = inner.reshape(part.len(), intermediate).view_mut();
            linear(execution, a, first, Epilogue::Activation(activation), to, converted);
            let mut spare = spare.view_mut();
            let to = spare.rows(part.clone());
            linear(execution, inner.view(), &second.dense, Epilogue::Residual(a), to, converted);
            second.norm.apply(execution.instruction_set, size, &mut spare.rows(part));
        }
        swap(attended, spare);
    }
}

/// Writes word vectors side by side, those that are not None, into row `to` of a matrix; `line` is as wide as all of them.
fn join_words(
    words: Numbers<'_>,
    ids: [Option<u32>; 3],
    columns: usize,
    line: &mut [f32],
    to: usize,
    out: &mut ViewMut<'_>,
) {
    for (part, id) in line.chunks_mut(columns).zip(ids.into_iter().flatten()) {
        match id {
            NO_NEIGHBOUR => part.fill(0.0),
            id => words.read(id as usize * columns, part),
        }
    }
    for (p, from) in line.chunks(PANEL).enumerate() {
        let row = &mut out.panel(p)[to].0;
        row[..from.len()].copy_from_slice(from);
        row[from.len()..].fill(0.0);
    }
}
