//! The gradients of the relative terms of disentangled attention, of one head and one sequence.
//!
//! The score of query i and key j is qᵢ·kⱼ + qᵢ·Kʳ + kⱼ·Qʳ, where the rows of Kʳ and Qʳ are the rows of the relative
//! position r(i, j). With ds the gradient of the scores, G[i, r] is the sum of ds[i, j] over the keys with r(i, j) = r,
//! and G′[j, r] that over the queries. Then dq has G·Kʳ besides ds·k, dKʳ is Gᵀ·q, dk has G′·Qʳ, and dQʳ is G′ᵀ·k.
//!
//! G and G′ have a column for each relative position in place of one for each key or query, so that all four are products of
//! small matrices; making them are additions alone, one for each query and key. Nothing is stored for all pairs at once: G
//! lives for a block of queries, and G′ is as large as the keys times the relative positions of one head.
//!
//! G is made for a block of queries at a time; from one key to the next r is the next, so 32 numbers are added at once. G′
//! has a row for each relative position, in which keys are side by side: there these numbers lie on a diagonal.

use std::ops::Range;

use super::outer_sums::add_outer_products;
use crate::arch::{MAX_TILE_ROWS, Simd};
use crate::disentangled::{HeadScores, OfKeys};
use crate::matrix::{PANEL, Row, View, panels};
use crate::tile::{Tile, tiles};

/// Scratch buffers. They only grow.
#[derive(Default)]
pub(super) struct RelativeGradientScratch {
    /// G of a block [queries, relative positions], by panels.
    by_query: Vec<Row>,
    /// One of its rows.
    line: Vec<f32>,
    /// G′: for each panel of 32 keys a row for each relative position.
    by_key: Vec<Row>,
}

/// What the gradients depend on, besides the scores.
pub(super) struct HeadGradients<'a> {
    /// Kʳ and Qʳ [relative positions, d].
    pub tables: [Option<View<'a>>; 2],
    /// The positions of the queries.
    pub queries: &'a [u32],
}

impl HeadGradients<'_> {
    /// Begins with G′ = 0.
    pub fn start(&self, terms: &HeadScores<'_>, scratch: &mut RelativeGradientScratch) {
        if self.tables[1].is_some() {
            let len = panels(terms.keys().len()) * terms.range().len();
            scratch.by_key.resize(len.max(scratch.by_key.len()), Row::ZERO);
            scratch.by_key[..len].fill(Row::ZERO);
        }
    }

    /// Adds ds [block, keys] of a block of queries to G′, and computes G·Kʳ and Gᵀ·q, which are added to `dq` and to `sums`,
    /// [rows, d] and [relative positions, d] by panels.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "the operands of two formulas")]
    pub fn add_block<S: Simd>(
        &self,
        simd: S,
        terms: &HeadScores<'_>,
        block: Range<usize>,
        ds: &[Row],
        q: View<'_>,
        dq: &mut [Row],
        sums: &mut [Row],
        scratch: &mut RelativeGradientScratch,
    ) {
        let (n, queries) = (block.len(), &self.queries[block.clone()]);
        let RelativeGradientScratch { by_query, line, by_key } = scratch;
        if self.tables[1].is_some() {
            for (i, query) in queries.iter().enumerate() {
                add_by_key(simd, terms, *query, ds.chunks(n).map(|panel| &panel[i]), by_key);
            }
        }
        let Some(keys) = self.tables[0] else { return };
        let range = terms.range_of(queries);
        let width = panels(range.len());
        by_query.resize((width * n).max(by_query.len()), Row::ZERO);
        line.resize((width * PANEL).max(line.len()), 0.0);
        let (by_query, line) = (&mut by_query[..width * n], &mut line[..width * PANEL]);
        for (i, query) in queries.iter().enumerate() {
            line.fill(0.0);
            add_by_query(terms, *query, ds.chunks(n).map(|panel| &panel[i]), range.start, line);
            for (to, from) in by_query.chunks_mut(n).zip(line.as_chunks::<PANEL>().0) {
                to[i].0 = *from;
            }
        }
        let all = q.len();
        for tile in tiles(n, S::TILE_ROWS) {
            let rows = block.start + tile.start..block.start + tile.end;
            for (panel, dq) in dq.chunks_mut(all).enumerate() {
                let a = View::new(by_query, n).rows(tile.clone());
                add_product(simd, a, &keys.panel(panel)[range.clone()], &mut dq[rows.clone()]);
            }
        }
        for (panel, sums) in sums.chunks_mut(keys.len()).enumerate() {
            add_outer_products(simd, by_query, &q.panel(panel)[block.clone()], &mut sums[range.clone()]);
        }
    }

    /// Computes G′·Qʳ and G′ᵀ·k, which are added to `dk` and to `sums`, [rows, d] and [relative positions, d] by panels.
    #[inline(always)]
    pub fn finish<S: Simd>(
        &self,
        simd: S,
        terms: &HeadScores<'_>,
        k: View<'_>,
        dk: &mut [Row],
        sums: &mut [Row],
        scratch: &RelativeGradientScratch,
    ) {
        let Some(queries) = self.tables[1] else { return };
        let range = terms.range();
        let count = range.len();
        let by_key = &scratch.by_key[..panels(k.len()) * count];
        let rows = dk.len() / queries.width();
        for (panel, dk) in dk.chunks_mut(rows).enumerate() {
            add_outer_products(simd, by_key, &queries.panel(panel)[range.clone()], &mut dk[..k.len()]);
        }
        for tile in tiles(count, S::TILE_ROWS) {
            for (panel, sums) in sums.chunks_mut(queries.len()).enumerate() {
                let a = View::new(by_key, count).rows(tile.clone());
                add_product(simd, a, k.panel(panel), &mut sums[range.start + tile.start..range.start + tile.end]);
            }
        }
    }
}

/// Adds the gradients of the scores of one query, by panels of keys, to the gradients of its relative positions, the
/// first of which is `first`.
#[inline(always)]
fn add_by_query<'a>(
    terms: &HeadScores<'_>,
    query: u32,
    ds: impl Iterator<Item = &'a Row>,
    first: usize,
    line: &mut [f32],
) {
    let rows = terms.rows_of(query);
    for (ds, positions) in ds.zip(terms.keys().chunks(PANEL)) {
        match terms.of_keys(rows, positions) {
            OfKeys::Successive(row) => {
                line[row - first..][..PANEL].iter_mut().zip(ds.0).for_each(|(to, x)| *to += x);
            }
            OfKeys::Same(row) => line[row - first] += ds.0[..positions.len()].iter().sum::<f32>(),
            OfKeys::Each => {
                for (position, x) in positions.iter().zip(ds.0) {
                    line[rows[*position as usize] as usize - first] += x;
                }
            }
        }
    }
}

/// Adds the gradients of the scores of one query, by panels of keys, to G′.
#[inline(always)]
fn add_by_key<'a, S: Simd>(
    simd: S,
    terms: &HeadScores<'_>,
    query: u32,
    ds: impl Iterator<Item = &'a Row>,
    by_key: &mut [Row],
) {
    let (rows, range) = (terms.rows_of(query), terms.range());
    let panels = by_key.chunks_mut(range.len());
    for ((ds, positions), to) in ds.zip(terms.keys().chunks(PANEL)).zip(panels) {
        match terms.of_keys(rows, positions) {
            OfKeys::Successive(row) => {
                let to = &mut to[row - range.start..][..PANEL];
                for (lane, (to, x)) in to.iter_mut().zip(ds.0).enumerate() {
                    to.0[lane] += x;
                }
            }
            OfKeys::Same(row) => add(simd, ds, &mut to[row - range.start]),
            OfKeys::Each => {
                for (lane, (position, x)) in positions.iter().zip(ds.0).enumerate() {
                    to[rows[*position as usize] as usize - range.start].0[lane] += x;
                }
            }
        }
    }
}

/// Adds a·b, for one panel b [K, 32], to the rows of `out`, which are a tile at most.
#[inline(always)]
fn add_product<S: Simd>(simd: S, a: View<'_>, b: &[Row], out: &mut [Row]) {
    let mut product = [Row::ZERO; MAX_TILE_ROWS];
    let product = &mut product[..out.len()];
    simd.run_tile(Tile::new(a, b, product));
    for (product, to) in product.iter().zip(out) {
        add(simd, product, to);
    }
}

#[inline(always)]
fn add<S: Simd>(simd: S, x: &Row, to: &mut Row) {
    for at in (0..PANEL).step_by(S::LANES) {
        simd.store(to, at, simd.add(simd.load(to, at), simd.load(x, at)));
    }
}
