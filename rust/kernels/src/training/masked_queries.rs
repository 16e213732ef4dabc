//! The masked queries of a DeBERTa: they see no key, so their scores are equal, and the softmax gives all rows of the sequence
//! the same weight.

use std::ops::Range;

use super::heads::{Heads, QUERY_BLOCK, Rows};
use super::outer_sums::add_outer_products;
use crate::arch::Simd;
use crate::matrix::{PANEL, Row, View, panels};
use crate::tile::{Tile, tiles};

/// Computes the context [rows, d] of the queries after those that are attending, for the values of all rows.
#[inline(always)]
pub(super) fn attend_to_all<S: Simd>(
    simd: S,
    heads: Heads<'_>,
    head: usize,
    rows: &Rows,
    v: View<'_>,
    weights: &mut Vec<Row>,
    out: &mut [Row],
) {
    let (all, attending) = (v.len(), heads.attending(rows));
    for tile in tiles(all - attending, S::TILE_ROWS) {
        let queries = attending + tile.start..attending + tile.end;
        let weights = equal_weights(heads, head, rows, queries.clone(), weights);
        for (p, out) in out.chunks_mut(all).enumerate() {
            let a = View::new(weights, tile.len());
            simd.run_tile(Tile::new(a, v.panel(p), &mut out[queries.clone()]));
        }
    }
}

/// Adds their part to the gradient of the values [rows, d], from the gradient of the context.
#[inline(always)]
pub(super) fn attend_to_all_backward<S: Simd>(
    simd: S,
    heads: Heads<'_>,
    head: usize,
    rows: &Rows,
    dc: View<'_>,
    weights: &mut Vec<Row>,
    dv: &mut [Row],
) {
    let (all, attending) = (dc.len(), heads.attending(rows));
    for block in tiles(all - attending, QUERY_BLOCK) {
        let queries = attending + block.start..attending + block.end;
        let weights = equal_weights(heads, head, rows, queries.clone(), weights);
        for (p, dv) in dv.chunks_mut(all).enumerate() {
            add_outer_products(simd, weights, &dc.panel(p)[queries.clone()], dv);
        }
    }
}

/// Returns the weights of some queries for all rows [queries, rows], with dropout.
#[inline(always)]
fn equal_weights<'a>(
    heads: Heads<'_>,
    head: usize,
    rows: &Rows,
    queries: Range<usize>,
    to: &'a mut Vec<Row>,
) -> &'a [Row] {
    let (n, all) = (queries.len(), rows.tokens.len());
    to.resize((panels(all) * n).max(to.len()), Row::ZERO);
    let to = &mut to[..panels(all) * n];
    let share = 1.0 / all as f32;
    for (i, query) in queries.enumerate() {
        let state = heads.mask.map(|mask| (mask, mask.state(rows.number, query)));
        for (p, panel) in to.chunks_mut(n).enumerate() {
            let first = p * PANEL;
            let mask = state.map_or(Row([1.0; PANEL]), |(mask, state)| mask.columns(state, (head << 20) | first));
            panel[i] = Row::ZERO;
            for (to, mask) in panel[i].0.iter_mut().zip(mask.0).take(all - first) {
                *to = share * mask;
            }
        }
    }
    to
}
