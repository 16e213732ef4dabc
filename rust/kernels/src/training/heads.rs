//! The heads of an attention that is trained, and which keys their queries see.

use std::ops::Range;

use super::dropout::Mask;
use crate::arch::Simd;
use crate::attention::{RelativeBias, ScoreBias};
use crate::disentangled::{HeadScores, RelativeScores, RelativeScratch};
use crate::matrix::{Row, View};

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

/// Returns `x` in the lanes that are among the columns, and `other` in the others. The first lane is column `at`.
#[inline(always)]
pub(super) fn only<S: Simd>(simd: S, columns: &Range<usize>, at: usize, x: S::V, other: S::V) -> S::V {
    let within = simd.first(columns.end.saturating_sub(at), x, other);
    simd.first(columns.start.saturating_sub(at), other, within)
}
