//! The heads of an attention that is trained, and which keys their queries see.

use std::ops::Range;

use super::dropout::Mask;
use crate::arch::Simd;
use crate::attention::{RelativeBias, ScoreBias, scale_and_add_bias};
use crate::disentangled::{HeadScores, RelativeScores, RelativeScratch};
use crate::matrix::{PANEL, Row, View, panels};

/// Queries whose weights a backward pass has at a time: whole tiles on every instruction set.
pub(super) const QUERY_BLOCK: usize = 84;

/// One sequence of a task.
#[derive(Debug, Clone)]
pub struct Rows {
    /// Its tokens among the tokens of the task.
    pub tokens: Range<usize>,
    /// How many of them, the first ones, may be attended to.
    pub keys: usize,
    /// The number of the sequence in the batch.
    pub number: usize,
}

/// The heads of an attention and what its scores depend on besides queries and keys.
#[derive(Clone, Copy)]
pub struct Heads<'a> {
    /// The number of heads.
    pub count: usize,
    /// d, the columns of a head.
    pub size: usize,
    /// What is added to the scores.
    pub bias: Option<ScoreBias<'a>>,
    /// What scores have of relative positions in a DeBERTa, where a query that may not be attended to sees all rows alike.
    pub relative: Option<RelativeHeads<'a>>,
    /// The greatest distance from a query to a key that it sees, by positions; `None` if it sees all keys. The positions of
    /// the keys must increase.
    pub window: Option<usize>,
    /// The dropout of the weights.
    pub mask: Option<Mask>,
}

/// The terms of relative positions in the scores of a layer.
#[derive(Clone, Copy)]
pub struct RelativeHeads<'a> {
    /// The terms, packed.
    pub scores: RelativeScores<'a>,
    /// Kʳ and Qʳ [relative positions, H], which the terms are made of.
    pub tables: [Option<View<'a>>; 2],
}

impl Heads<'_> {
    /// Returns the bias of distances, which has a gradient.
    pub(super) fn distances(&self) -> Option<RelativeBias<'_>> {
        match self.bias {
            Some(ScoreBias::Distances(bias)) => Some(bias),
            _ => None,
        }
    }

    /// Returns what products of queries and keys are multiplied by.
    pub(super) fn scale(&self) -> f32 {
        let terms = self.relative.map_or(1, |relative| relative.scores.count);
        1.0 / ((self.size * terms) as f32).sqrt()
    }

    /// Returns how many rows of a sequence, the first ones, see only the keys.
    pub(super) fn attending(&self, rows: &Rows) -> usize {
        if self.relative.is_some() { rows.keys } else { rows.tokens.len() }
    }
}

/// For each head and row, the maximum of the scores and the reciprocal of the sum of exp(score − maximum).
pub type Statistics = [f32; 2];

/// Adds the relative bias, if there is one, to the scores of the rows `first..` of matrices with `n` rows, for the queries
/// `queries` and the keys `keys`; returns what the scores are still to be multiplied by.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "a part of two kernels")]
pub(super) fn final_scores<S: Simd>(
    simd: S,
    heads: Heads<'_>,
    head: usize,
    positions: &[u32],
    queries: Range<usize>,
    scores: &mut [Row],
    n: usize,
    first: usize,
    keys: Range<usize>,
) -> f32 {
    let scale = heads.scale();
    let keys = &positions[keys];
    match heads.bias {
        None => return scale,
        Some(ScoreBias::Distances(RelativeBias { bias, max_distance })) => {
            let of_head = &bias[head * (2 * max_distance + 1)..][..2 * max_distance + 1];
            for (i, query) in queries.enumerate() {
                // The bias of a key at position 0; the biases of the other positions follow it.
                let of_query = &of_head[max_distance - positions[query] as usize..];
                scale_and_add_bias(simd, scores, n, first + i, scale, keys, |key| of_query[key as usize]);
            }
        }
        Some(ScoreBias::Slopes(slopes)) => {
            let slope = slopes[head];
            for (i, query) in queries.enumerate() {
                let query = positions[query];
                let bias = |key: u32| key.abs_diff(query) as f32 * -slope;
                scale_and_add_bias(simd, scores, n, first + i, scale, keys, bias);
            }
        }
    }
    1.0
}

/// Computes what the relative terms of the queries of a sequence are read from, where scores have such terms; `keys` are
/// transposed.
#[inline(always)]
pub(super) fn relative_terms<'a, S: Simd>(
    simd: S,
    heads: Heads<'a>,
    head: usize,
    rows: &Rows,
    positions: &'a [u32],
    keys: &[Row],
    scratch: &mut RelativeScratch,
) -> Option<HeadScores<'a>> {
    let scores = heads.relative?.scores;
    let positions = &positions[..rows.keys];
    HeadScores::new(simd, scores, (head, heads.size), positions, positions, keys, None, S::TILE_ROWS, scratch)
}

/// The keys that queries see.
pub(super) struct VisibleKeys<'a> {
    pub window: Option<usize>,
    /// The positions of all rows, the keys first.
    pub positions: &'a [u32],
    pub keys: usize,
}

impl VisibleKeys<'_> {
    /// Returns the panels of 32 keys in which a block of queries sees any.
    pub fn panels(&self, queries: Range<usize>) -> Range<usize> {
        let Some(window) = self.window else { return 0..panels(self.keys) };
        let of_queries = self.positions[queries].iter();
        let (least, greatest) = (of_queries.clone().min(), of_queries.max());
        let (Some(least), Some(greatest)) = (least, greatest) else { return 0..0 };
        let keys = self.near(*least as usize, *greatest as usize, window);
        if keys.is_empty() { 0..0 } else { keys.start / PANEL..panels(keys.end) }
    }

    /// Returns the keys that a query sees, counted from key `first` on.
    pub fn columns(&self, query: usize, first: usize) -> Range<usize> {
        let Some(window) = self.window else { return 0..self.keys - first };
        let position = self.positions[query] as usize;
        let keys = self.near(position, position, window);
        keys.start.saturating_sub(first)..keys.end.saturating_sub(first)
    }

    /// Returns the keys at most `window` positions before `least` or after `greatest`, or between them.
    fn near(&self, least: usize, greatest: usize, window: usize) -> Range<usize> {
        let keys = &self.positions[..self.keys];
        let from = keys.partition_point(|key| (*key as usize) < least.saturating_sub(window));
        from..keys.partition_point(|key| *key as usize <= greatest.saturating_add(window))
    }
}

/// Returns `x` in the lanes that are among the columns, and `other` in the others. The first lane is column `at`.
#[inline(always)]
pub(super) fn only<S: Simd>(simd: S, columns: &Range<usize>, at: usize, x: S::V, other: S::V) -> S::V {
    let within = simd.first(columns.end.saturating_sub(at), x, other);
    simd.first(columns.start.saturating_sub(at), other, within)
}
