//! The forward pass of one head over one sequence: out = dropout(softmax(q·kᵀ·scale + what positions add))·v.
//!
//! It runs tile by tile: the scores of a tile of queries with all keys that one of them sees are in the scratch buffer, 32 keys
//! beside each other, and become weights in place. So a head needs memory for one tile of rows, not for all pairs of a query
//! and a key.
//!
//! The weights are not kept. What the backward pass needs to compute them again are two numbers for each query, its
//! [`Statistics`]; the mask of dropout is a function of place, and is computed again as well. Queries and keys are in memory
//! anyway, because their own gradients need them.
//!
//! The numerators of the softmax are multiplied by the values as they are, and the context by the reciprocal of their sum:
//! d products for a query in place of one for each key.

use std::ops::Range;

use super::heads::{Heads, Rows, Statistics, only, relative_terms};
use super::masked_queries::attend_to_all;
use crate::activation;
use crate::arch::{Kernel, Simd, Sums};
use crate::attention::{VisibleKeys, add_bias};
use crate::disentangled::RelativeScratch;
use crate::matrix::{PANEL, Row, View, panels};
use crate::tile::{Tile, tiles};

/// The operands of one head of one sequence, and where its results go.
pub(super) struct Forward<'a> {
    /// What all heads of the layer have in common.
    pub heads: Heads<'a>,
    /// The number of the head, on which the bias of positions and the mask of dropout depend.
    pub head: usize,
    /// The sequence.
    pub rows: &'a Rows,
    /// The place of each of its tokens in the padded row, by which windows and biases go.
    pub positions: &'a [u32],
    /// The queries and the values of all rows.
    pub q: View<'a>,
    pub v: View<'a>,
    /// The keys, transposed.
    pub keys: &'a [Row],
    /// Scratch: the scores of a tile, [keys / 32 rounded up, rows of a tile]. It only grows.
    pub scores: &'a mut Vec<Row>,
    /// Scratch of the terms of relative positions.
    pub relative: &'a mut RelativeScratch,
    /// The context of the head [rows, d].
    pub out: &'a mut [Row],
    /// For each query, what its weights are computed from again.
    pub statistics: &'a mut [Statistics],
}

impl Kernel for Forward<'_> {
    type Output = ();

    /// Computes the context of all queries. Panels of keys that no query of a tile sees are left out of both products; a query
    /// that sees no key has the context 0.
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Forward { heads, head, rows, positions, q, v, keys, scores, relative, out, statistics } = self;
        let (all, attending) = (q.len(), heads.attending(rows));
        let terms = relative_terms(simd, heads, head, rows, positions, keys, relative);
        scores.resize((panels(rows.keys) * S::TILE_ROWS).max(scores.len()), Row::ZERO);
        for tile in tiles(attending, S::TILE_ROWS) {
            let n = tile.len();
            let visible = VisibleKeys { window: heads.window, positions, keys: rows.keys };
            let seen = visible.panels(tile.clone());
            let seen_keys = seen.start * PANEL..rows.keys.min(seen.end * PANEL);
            if seen.is_empty() {
                statistics[tile.clone()].fill([0.0; 2]);
                out.chunks_mut(all).for_each(|out| out[tile.clone()].fill(Row::ZERO));
                continue;
            }
            let scores = &mut scores[..seen.len() * n];
            let keys = &keys[seen.start * heads.size..seen.end * heads.size];
            for (b, out) in keys.chunks(heads.size).zip(scores.chunks_mut(n)) {
                simd.run_tile(Tile::new(q.rows(tile.clone()), b, out));
            }
            if let Some(terms) = &terms {
                let (q, places) = (q.rows(tile.clone()), &positions[tile.clone()]);
                terms.add(simd, (q, places), None, relative, scores, (n, 0..n));
            }
            let (queries, keys) = (&positions[tile.clone()], &positions[seen_keys.clone()]);
            let scale = add_bias(simd, heads.bias, head, heads.scale(), queries, keys, scores, (n, 0));
            for (i, query) in tile.clone().enumerate() {
                let columns = visible.columns(query, seen_keys.start);
                statistics[query] = softmax(simd, scores, n, i, columns, scale);
                if let Some(mask) = heads.mask {
                    let state = mask.state(rows.number, query);
                    for (p, panel) in scores.chunks_mut(n).enumerate() {
                        let mask = mask.columns(state, (head << 20) | ((seen.start + p) * PANEL));
                        for at in (0..PANEL).step_by(S::LANES) {
                            let x = simd.mul(simd.load(&panel[i], at), simd.load(&mask, at));
                            simd.store(&mut panel[i], at, x);
                        }
                    }
                }
            }
            let weights = View::new(scores, n);
            for (p, out) in out.chunks_mut(all).enumerate() {
                let out = &mut out[tile.clone()];
                simd.run_tile(Tile::new(weights, &v.panel(p)[seen_keys.clone()], out));
                for (row, [_, factor]) in out.iter_mut().zip(&statistics[tile.clone()]) {
                    for at in (0..PANEL).step_by(S::LANES) {
                        simd.store(row, at, simd.mul(simd.load(row, at), simd.splat(*factor)));
                    }
                }
            }
        }
        attend_to_all(simd, heads, head, rows, v, scores, out);
    }
}

/// Replaces the scores of row `i` of `n` by exp((x − max x)·scale) in some columns and by 0 in the others. Without such columns
/// the statistics are 0.
#[inline(always)]
fn softmax<S: Simd>(simd: S, scores: &mut [Row], n: usize, i: usize, columns: Range<usize>, scale: f32) -> Statistics {
    if columns.is_empty() {
        scores.chunks_mut(n).for_each(|panel| panel[i] = Row::ZERO);
        return [0.0; 2];
    }
    let lowest = simd.splat(f32::NEG_INFINITY);
    let mut most = lowest;
    for (p, panel) in scores.chunks(n).enumerate() {
        for at in (0..PANEL).step_by(S::LANES) {
            most = simd.max(most, only(simd, &columns, p * PANEL + at, simd.load(&panel[i], at), lowest));
        }
    }
    let most = simd.greatest(most);
    let mut sum = Sums::zero(simd);
    for (p, panel) in scores.chunks_mut(n).enumerate() {
        for at in (0..PANEL).step_by(S::LANES) {
            let x = simd.mul(simd.sub(simd.load(&panel[i], at), simd.splat(most)), simd.splat(scale));
            let e = only(simd, &columns, p * PANEL + at, activation::exp(simd, x), simd.splat(0.0));
            simd.store(&mut panel[i], at, e);
            sum.add(simd, at, e);
        }
    }
    [most, 1.0 / sum.total(simd)]
}
