//! The backward pass of one head over one sequence.
//!
//! With P the weights, P̃ = dropout(P), c = P̃·v the context, and dc its gradient, there are dv = P̃ᵀ·dc, dP̃ = dc·vᵀ, and the
//! gradient of the scores ds = P ⊙ (dP − D), in which D is the sum of P ⊙ dP over the keys of a query. D is computed as dc·c,
//! for which no row of weights is needed. Then dq = ds·k and dk = dsᵀ·q, each times the scale.
//!
//! The weights are computed again from queries, keys and [`Statistics`], for a block of [`QUERY_BLOCK`] queries at a time: no
//! matrix has a number for each pair of a query and a key. dv and dk are sums over the blocks, in their order.

use std::ops::Range;

use super::heads::{Heads, QUERY_BLOCK, Rows, Statistics, only, relative_terms};
use super::masked_queries::attend_to_all_backward;
use super::outer_sums::add_outer_products;
use super::relative_gradients::{HeadGradients, RelativeGradientScratch};
use crate::activation;
use crate::arch::{Kernel, Simd, Sums};
use crate::attention::{VisibleKeys, add_bias};
use crate::disentangled::{HeadScores, RelativeScratch};
use crate::matrix::{PANEL, Row, View, panels};
use crate::tile::{Tile, tiles};

/// What the backward pass of one head reads.
pub(super) struct Operands<'a> {
    /// The queries [rows, d], as the forward pass multiplied them.
    pub q: View<'a>,
    /// The keys [rows, d].
    pub k: View<'a>,
    /// The context [rows, d].
    pub c: View<'a>,
    /// The gradient of the context [rows, d].
    pub dc: View<'a>,
    /// Keys and values.
    pub transposed: [&'a [Row]; 2],
}

/// The operands of one head of one sequence, and where its gradients go; what the forward pass had too is described there.
pub(super) struct Backward<'a> {
    pub heads: Heads<'a>,
    pub head: usize,
    /// The sequence.
    pub rows: &'a Rows,
    /// The place of each of its tokens in the padded row.
    pub positions: &'a [u32],
    /// What the products read.
    pub operands: Operands<'a>,
    /// Those that the forward pass has written.
    pub statistics: &'a [Statistics],
    /// Scratch: the weights of a block and their gradient. They only grow.
    pub weights: &'a mut [Vec<Row>; 2],
    /// dq, dk and dv [rows, d].
    pub gradients: [&'a mut [Row]; 3],
    /// The gradient of the bias by distance, in models that have one; the gradient from this sequence is added to it.
    pub dbias: Option<&'a mut [f32]>,
    /// Kʳ and Qʳ [relative positions, d], and the sums of their gradients, by panels.
    pub tables: [Option<View<'a>>; 2],
    pub dterms: [&'a mut [Row]; 2],
    /// Scratch of the terms of relative positions, and of their gradients.
    pub relative: (&'a mut RelativeScratch, &'a mut RelativeGradientScratch),
}

impl Kernel for Backward<'_> {
    type Output = ();

    /// Computes dq, dk and dv, and adds to the gradients of biases and relative positions. The queries come first that attend to
    /// keys; the queries of masked tokens of a DeBERTa weigh all keys equally; they have no gradient, and add to dv
    /// alone.
    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let (all, keys) = (self.operands.q.len(), self.rows.keys);
        let (key_panels, attending) = (panels(keys), self.heads.attending(self.rows));
        for weights in self.weights.iter_mut() {
            weights.resize((key_panels * QUERY_BLOCK).max(weights.len()), Row::ZERO);
        }
        let transposed = self.operands.transposed[0];
        let terms = relative_terms(simd, self.heads, self.head, self.rows, self.positions, transposed, self.relative.0);
        let of_terms = HeadGradients { tables: self.tables, queries: &self.positions[..attending] };
        if let Some(terms) = &terms {
            of_terms.start(terms, self.relative.1);
        }
        for start in (0..attending).step_by(QUERY_BLOCK) {
            let block = start..(start + QUERY_BLOCK).min(attending);
            let n = block.len();
            let seen = self.visible().panels(block.clone());
            if seen.is_empty() {
                self.gradients[0].chunks_mut(all).for_each(|dq| dq[block.clone()].fill(Row::ZERO));
                continue;
            }
            let seen_keys = seen.start * PANEL..keys.min(seen.end * PANEL);
            self.weights_of_block(simd, block.clone(), seen.clone(), terms.as_ref());
            let [p, ds] = &*self.weights;
            let (p, ds) = (&p[..seen.len() * n], &ds[..seen.len() * n]);
            let Operands { q, k, dc, .. } = self.operands;
            let [dq, dk, dv] = &mut self.gradients;
            for tile in tiles(n, S::TILE_ROWS) {
                for (panel, dq) in dq.chunks_mut(all).enumerate() {
                    let out = &mut dq[start + tile.start..start + tile.end];
                    simd.run_tile(Tile::new(
                        View::new(ds, n).rows(tile.clone()),
                        &k.panel(panel)[seen_keys.clone()],
                        out,
                    ));
                }
            }
            for (left, right, to) in [(p, dc, &mut **dv), (ds, q, &mut **dk)] {
                for (panel, to) in to.chunks_mut(all).enumerate() {
                    let b = &right.panel(panel)[block.clone()];
                    add_outer_products(simd, left, b, &mut to[seen_keys.clone()]);
                }
            }
            if let Some(terms) = &terms {
                let [sums, _] = &mut self.dterms;
                of_terms.add_block(simd, terms, block, ds, q, dq, sums, self.relative.1);
            }
        }
        let [dq, dk, dv] = self.gradients;
        if let Some(terms) = &terms {
            of_terms.finish(simd, terms, self.operands.k, dk, self.dterms[1], self.relative.1);
        }
        dq.chunks_mut(all).for_each(|dq| dq[attending..].fill(Row::ZERO));
        let scale = simd.splat(self.heads.scale());
        for row in dq.iter_mut().chain(dk) {
            for at in (0..PANEL).step_by(S::LANES) {
                simd.store(row, at, simd.mul(simd.load(row, at), scale));
            }
        }
        attend_to_all_backward(simd, self.heads, self.head, self.rows, self.operands.dc, &mut self.weights[0], dv);
    }
}

impl Backward<'_> {
    /// Returns which keys each query sees.
    fn visible(&self) -> VisibleKeys<'_> {
        VisibleKeys { window: self.heads.window, positions: self.positions, keys: self.rows.keys }
    }

    /// Computes p̃ and ds of a block of queries, for the panels `seen` of keys, and adds ds to the sums of the distances.
    #[inline(always)]
    fn weights_of_block<S: Simd>(
        &mut self,
        simd: S,
        block: Range<usize>,
        seen: Range<usize>,
        terms: Option<&HeadScores<'_>>,
    ) {
        let Backward { heads, head, rows, positions, operands, statistics, weights, dbias, relative, .. } = self;
        let Operands { q, c, dc, transposed: [keys, values], .. } = operands;
        let n = block.len();
        let [p, ds] = weights;
        let (p, ds) = (&mut p[..seen.len() * n], &mut ds[..seen.len() * n]);
        let visible = VisibleKeys { window: heads.window, positions, keys: rows.keys };
        let seen_keys = seen.start * PANEL..rows.keys.min(seen.end * PANEL);
        let columns = seen.start * heads.size..seen.end * heads.size;
        for tile in tiles(n, S::TILE_ROWS) {
            let of_queries = block.start + tile.start..block.start + tile.end;
            for (x, b, to) in [(*q, *keys, &mut *p), (*dc, *values, &mut *ds)] {
                for (b, out) in b[columns.clone()].chunks(heads.size).zip(to.chunks_mut(n)) {
                    simd.run_tile(Tile::new(x.rows(of_queries.clone()), b, &mut out[tile.clone()]));
                }
            }
            if let Some(terms) = terms {
                let (q, places) = (q.rows(of_queries.clone()), &positions[of_queries.clone()]);
                terms.add(simd, (q, places), None, relative.0, p, (n, tile.clone()));
            }
            let (queries, keys) = (&positions[of_queries], &positions[seen_keys.clone()]);
            let scale = add_bias(simd, heads.bias, *head, heads.scale(), queries, keys, p, (n, tile.start));
            for i in tile {
                let query = block.start + i;
                let product = row_product(simd, *c, *dc, query, panels(heads.size));
                let state = heads.mask.map(|mask| (mask, mask.state(rows.number, query)));
                let [most, factor] = statistics[query];
                let columns = visible.columns(query, seen_keys.start);
                for (number, (p, ds)) in p.chunks_mut(n).zip(ds.chunks_mut(n)).enumerate() {
                    let panel = seen.start + number;
                    let mask = state.map(|(mask, state)| mask.columns(state, (*head << 20) | (panel * PANEL)));
                    for at in (0..PANEL).step_by(S::LANES) {
                        let x = simd.mul(simd.sub(simd.load(&p[i], at), simd.splat(most)), simd.splat(scale));
                        let e = only(simd, &columns, number * PANEL + at, activation::exp(simd, x), simd.splat(0.0));
                        let weight = simd.mul(e, simd.splat(factor));
                        let mut dp = only(simd, &columns, number * PANEL + at, simd.load(&ds[i], at), simd.splat(0.0));
                        let mut dropped = weight;
                        if let Some(mask) = &mask {
                            let mask = simd.load(mask, at);
                            dp = simd.mul(dp, mask);
                            dropped = simd.mul(weight, mask);
                        }
                        simd.store(&mut p[i], at, dropped);
                        simd.store(&mut ds[i], at, simd.mul(weight, simd.sub(dp, simd.splat(product))));
                    }
                    if let (Some(sums), Some(bias)) = (dbias.as_deref_mut(), heads.distances()) {
                        let from = bias.max_distance - positions[query] as usize;
                        let keys = positions[..rows.keys].iter().skip(panel * PANEL);
                        for (x, key) in ds[i].0.iter().zip(keys) {
                            sums[from + *key as usize] += x;
                        }
                    }
                }
            }
        }
    }
}

/// Returns the product of row `row` of two matrices of `panels` panels, whose padding columns are 0.
#[inline(always)]
fn row_product<S: Simd>(simd: S, x: View<'_>, y: View<'_>, row: usize, panels: usize) -> f32 {
    let mut sum = Sums::zero(simd);
    for p in 0..panels {
        let (x, y) = (&x.panel(p)[row], &y.panel(p)[row]);
        for at in (0..PANEL).step_by(S::LANES) {
            sum.add_product(simd, at, simd.load(x, at), simd.load(y, at));
        }
    }
    sum.total(simd)
}
