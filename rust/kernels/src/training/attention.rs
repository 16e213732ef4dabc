//! Attention that can be differentiated: c = (softmax(q·kᵀ/√d + bias)·m)·v for each head of a sequence, m its dropout.
//!
//! The forward pass keeps the maximum and the reciprocal of the sum of each row of the softmax; the backward pass computes
//! the weights again from queries and keys (Dao et al., "FlashAttention", 2022, section 3.1). With p̃ = p·m:
//! dv = p̃ᵀ·dc, dp = (dc·vᵀ)·m, ds = p·(dp − dc·c), dq = ds·k/√d, dk = dsᵀ·q/√d.
//!
//! Scratch buffers hold the keys and values of one head, transposed, and the weights of a block of queries.

use std::ops::Range;

use wordpiece_parallel::checkpoint;

use super::dropout::Mask;
use crate::activation;
use crate::arch::{self, InstructionSet, Kernel, Simd};
use crate::attention::{RelativeBias, copy_columns, scale_and_add_bias};
use crate::matrix::{Matrix, PANEL, Row, View, ViewMut, panels};
use crate::tile::{Ahead, OuterTile, Tile, tiles};
use crate::transpose::Transpose;

/// Queries whose weights the backward pass has at a time: whole tiles on every instruction set.
const QUERY_BLOCK: usize = 84;

/// One sequence of a task.
#[derive(Debug, Clone)]
pub struct Rows {
    /// Its tokens among those of the task.
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
    /// A bias for each head and distance.
    pub relative_bias: Option<RelativeBias<'a>>,
    /// The greatest distance from a query to a key that it sees, by positions; `None` if it sees all keys. The positions of
    /// the keys must increase.
    pub window: Option<usize>,
    /// The dropout of the weights.
    pub mask: Option<Mask>,
}

/// For each head and row, the maximum of the scores and the reciprocal of the sum of exp(score − maximum).
pub type Statistics = [f32; 2];

/// Scratch buffers of one thread. They only grow.
#[derive(Default)]
pub struct AttentionScratch {
    /// The columns of one head of q, k, v, dc and c, where heads do not fill panels.
    copies: [Matrix; 5],
    /// The context, or dq.
    first: Matrix,
    /// dk and dv.
    others: [Matrix; 2],
    transposed: [Vec<Row>; 2],
    weights: [Vec<Row>; 2],
}

/// Computes the context of one sequence into its rows of `context`, and the statistics of its softmax, by head and row.
///
/// `qkv` has queries, keys and values, each beginning at a panel; `positions` the place of each row in its padded sequence.
#[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
pub fn attend(
    instruction_set: InstructionSet,
    heads: Heads<'_>,
    rows: &Rows,
    positions: &[u32],
    qkv: View<'_>,
    context: &mut ViewMut<'_>,
    statistics: &mut [Statistics],
    scratch: &mut AttentionScratch,
) {
    let of_sequence = qkv.rows(rows.tokens.clone());
    let mut context = context.rows(rows.tokens.clone());
    let all = qkv.len();
    for head in 0..heads.count {
        checkpoint();
        let AttentionScratch { copies: [q, k, v, ..], first, transposed: [keys, _], weights: [scores, _], .. } =
            scratch;
        let [q, k, v] = [(q, 0), (k, 1), (v, 2)].map(|(copy, part)| columns_of(of_sequence, heads, part, head, copy));
        let (k, v) = (k.rows(0..rows.keys), v.rows(0..rows.keys));
        let statistics = &mut statistics[head * all..][rows.tokens.clone()];
        arch::run(instruction_set, Transpose { from: k, columns: heads.size, to: keys });
        let out = first.reshape(q.len(), heads.size).data_mut();
        let forward = Forward { heads, head, rows, positions, q, v, keys, scores, out, statistics };
        arch::run(instruction_set, forward);
        put_columns(first.view(), &mut context, head * heads.size, heads.size);
    }
}

/// Computes dq, dk and dv of one sequence into its rows of `dqkv`, which is laid out as `qkv`, and adds ds to the sum of its
/// head and distance in `dbias`.
///
/// `statistics` are those of [`attend`], `context` and `dcontext` c and dc.
#[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
pub fn attend_backward(
    instruction_set: InstructionSet,
    heads: Heads<'_>,
    rows: &Rows,
    positions: &[u32],
    qkv: View<'_>,
    statistics: &[Statistics],
    [context, dcontext]: [View<'_>; 2],
    dqkv: &mut ViewMut<'_>,
    dbias: &mut [f32],
    scratch: &mut AttentionScratch,
) {
    let of_sequence = qkv.rows(rows.tokens.clone());
    let [context, dcontext] = [context, dcontext].map(|x| x.rows(rows.tokens.clone()));
    let mut dqkv = dqkv.rows(rows.tokens.clone());
    let (all, width, size) = (qkv.len(), panels(heads.count * heads.size), heads.size);
    for head in 0..heads.count {
        checkpoint();
        let AttentionScratch { copies, first: dq, others: [dk, dv], transposed: [keys, values], weights } = scratch;
        let [copy_q, copy_k, copy_v, copy_c, copy_dc] = copies;
        let q = columns_of(of_sequence, heads, 0, head, copy_q);
        let k = columns_of(of_sequence, heads, 1, head, copy_k).rows(0..rows.keys);
        let v = columns_of(of_sequence, heads, 2, head, copy_v).rows(0..rows.keys);
        let c = columns_of(context, heads, 0, head, copy_c);
        let dc = columns_of(dcontext, heads, 0, head, copy_dc);
        arch::run(instruction_set, Transpose { from: k, columns: size, to: keys });
        arch::run(instruction_set, Transpose { from: v, columns: size, to: values });
        let statistics = &statistics[head * all..][rows.tokens.clone()];
        let n = q.len();
        dq.reshape(n, size);
        // The gradients of tokens that nothing attends to stay 0.
        dk.reshape(n, size).data_mut().fill(Row::ZERO);
        dv.reshape(n, size).data_mut().fill(Row::ZERO);
        let gradients = [dq.data_mut(), dk.data_mut(), dv.data_mut()];
        let operands = Operands { q, k, c, dc, transposed: [keys, values] };
        let dbias = heads.relative_bias.map(|bias| {
            let distances = 2 * bias.max_distance + 1;
            &mut dbias[head * distances..][..distances]
        });
        arch::run(
            instruction_set,
            Backward { heads, head, rows, positions, operands, statistics, weights, gradients, dbias },
        );
        for (part, from) in [&*dq, &*dk, &*dv].into_iter().enumerate() {
            let mut to = dqkv.panels(part * width..(part + 1) * width);
            put_columns(from.view(), &mut to, head * size, size);
        }
    }
}

/// Returns the columns of a head of part `part` of `x`, each part beginning at a panel; `copy` receives those of a head that
/// does not fill panels.
fn columns_of<'a>(x: View<'a>, heads: Heads<'_>, part: usize, head: usize, copy: &'a mut Matrix) -> View<'a> {
    let width = panels(heads.count * heads.size);
    if heads.size.is_multiple_of(PANEL) {
        let first = part * width + head * heads.size / PANEL;
        return x.panels(first..first + heads.size / PANEL);
    }
    let to = copy.reshape(x.len(), heads.size);
    to.data_mut().fill(Row::ZERO);
    let part = x.panels(part * width..(part + 1) * width);
    copy_columns(part, head * heads.size, to.view_mut(), 0, heads.size);
    copy.view()
}

/// Copies a matrix of `columns` columns to the columns of `to` from `at` on.
fn put_columns(from: View<'_>, to: &mut ViewMut<'_>, at: usize, columns: usize) {
    if at.is_multiple_of(PANEL) && columns.is_multiple_of(PANEL) {
        for panel in 0..columns / PANEL {
            to.panel(at / PANEL + panel).copy_from_slice(from.panel(panel));
        }
    } else {
        copy_columns(from, 0, to.rows(0..from.len()), at, columns);
    }
}

struct Forward<'a> {
    heads: Heads<'a>,
    head: usize,
    rows: &'a Rows,
    positions: &'a [u32],
    q: View<'a>,
    v: View<'a>,
    /// The keys, transposed.
    keys: &'a [Row],
    scores: &'a mut Vec<Row>,
    /// The context of the head [rows, d].
    out: &'a mut [Row],
    statistics: &'a mut [Statistics],
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Forward { heads, head, rows, positions, q, v, keys, scores, out, statistics } = self;
        let all = q.len();
        scores.resize((panels(rows.keys) * S::TILE_ROWS).max(scores.len()), Row::ZERO);
        for tile in tiles(all, S::TILE_ROWS) {
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
                simd.run_tile(Tile { a: q.rows(tile.clone()), b, ahead: Ahead::NOTHING, out });
            }
            let scale = final_scores(simd, heads, head, positions, tile.clone(), scores, n, 0, seen_keys.clone());
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
                simd.run_tile(Tile { a: weights, b: &v.panel(p)[seen_keys.clone()], ahead: Ahead::NOTHING, out });
                for (row, [_, factor]) in out.iter_mut().zip(&statistics[tile.clone()]) {
                    for at in (0..PANEL).step_by(S::LANES) {
                        simd.store(row, at, simd.mul(simd.load(row, at), simd.splat(*factor)));
                    }
                }
            }
        }
    }
}

/// What the backward pass of one head reads.
struct Operands<'a> {
    q: View<'a>,
    k: View<'a>,
    c: View<'a>,
    dc: View<'a>,
    /// Keys and values.
    transposed: [&'a [Row]; 2],
}

struct Backward<'a> {
    heads: Heads<'a>,
    head: usize,
    rows: &'a Rows,
    positions: &'a [u32],
    operands: Operands<'a>,
    statistics: &'a [Statistics],
    weights: &'a mut [Vec<Row>; 2],
    /// dq, dk and dv [rows, d].
    gradients: [&'a mut [Row]; 3],
    dbias: Option<&'a mut [f32]>,
}

impl Kernel for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let (all, keys, size) = (self.operands.q.len(), self.rows.keys, self.heads.size);
        let key_panels = panels(keys);
        for weights in self.weights.iter_mut() {
            weights.resize((key_panels * QUERY_BLOCK).max(weights.len()), Row::ZERO);
        }
        for start in (0..all).step_by(QUERY_BLOCK) {
            let block = start..(start + QUERY_BLOCK).min(all);
            let n = block.len();
            let seen = self.visible().panels(block.clone());
            if seen.is_empty() {
                self.gradients[0].chunks_mut(all).for_each(|dq| dq[block.clone()].fill(Row::ZERO));
                continue;
            }
            let seen_keys = seen.start * PANEL..keys.min(seen.end * PANEL);
            self.weights_of_block(simd, block.clone(), seen.clone());
            let [p, ds] = &*self.weights;
            let (p, ds) = (&p[..seen.len() * n], &ds[..seen.len() * n]);
            let Operands { q, k, dc, .. } = self.operands;
            let [dq, dk, dv] = &mut self.gradients;
            for tile in tiles(n, S::TILE_ROWS) {
                for (panel, dq) in dq.chunks_mut(all).enumerate() {
                    let out = &mut dq[start + tile.start..start + tile.end];
                    simd.run_tile(Tile {
                        a: View::new(ds, n).rows(tile.clone()),
                        b: &k.panel(panel)[seen_keys.clone()],
                        ahead: Ahead::NOTHING,
                        out,
                    });
                }
            }
            for (left, right, to) in [(p, dc, &mut **dv), (ds, q, &mut **dk)] {
                for (panel, to) in to.chunks_mut(all).enumerate() {
                    let b = &right.panel(panel)[block.clone()];
                    for (a, out) in left.chunks(n).zip(to[seen_keys.clone()].chunks_mut(PANEL)) {
                        for tile in tiles(out.len(), S::TILE_ROWS) {
                            simd.run_tile(OuterTile { a, first: tile.start, b, out: &mut out[tile] });
                        }
                    }
                }
            }
        }
        let scale = simd.splat(1.0 / (size as f32).sqrt());
        let [dq, dk, _] = self.gradients;
        for row in dq.iter_mut().chain(dk) {
            for at in (0..PANEL).step_by(S::LANES) {
                simd.store(row, at, simd.mul(simd.load(row, at), scale));
            }
        }
    }
}

impl Backward<'_> {
    fn visible(&self) -> VisibleKeys<'_> {
        VisibleKeys { window: self.heads.window, positions: self.positions, keys: self.rows.keys }
    }

    /// Computes p̃ and ds of a block of queries, for the panels `seen` of keys, and adds ds to the sums of the distances.
    #[inline(always)]
    fn weights_of_block<S: Simd>(&mut self, simd: S, block: Range<usize>, seen: Range<usize>) {
        let Backward { heads, head, rows, positions, operands, statistics, weights, dbias, .. } = self;
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
                    simd.run_tile(Tile {
                        a: x.rows(of_queries.clone()),
                        b,
                        ahead: Ahead::NOTHING,
                        out: &mut out[tile.clone()],
                    });
                }
            }
            let scale = final_scores(simd, *heads, *head, positions, of_queries, p, n, tile.start, seen_keys.clone());
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
                    if let (Some(sums), Some(bias)) = (dbias.as_deref_mut(), heads.relative_bias) {
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

/// Adds the relative bias, if there is one, to the scores of the rows `first..` of matrices with `n` rows, for the queries
/// `queries` and the keys `keys`; returns what the scores are still to be multiplied by.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "a part of two kernels")]
fn final_scores<S: Simd>(
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
    let scale = 1.0 / (heads.size as f32).sqrt();
    let Some(RelativeBias { bias, max_distance }) = heads.relative_bias else { return scale };
    let of_head = &bias[head * (2 * max_distance + 1)..][..2 * max_distance + 1];
    for (i, query) in queries.enumerate() {
        // That of a key at position 0; those of the other positions follow it.
        let of_query = &of_head[max_distance - positions[query] as usize..];
        scale_and_add_bias(simd, scores, n, first + i, scale, &positions[keys.clone()], |key| of_query[key as usize]);
    }
    1.0
}

/// The keys that queries see.
struct VisibleKeys<'a> {
    window: Option<usize>,
    /// The positions of all rows, of which those of the keys come first.
    positions: &'a [u32],
    keys: usize,
}

impl VisibleKeys<'_> {
    /// Returns the panels of 32 keys in which a block of queries sees any.
    fn panels(&self, queries: Range<usize>) -> Range<usize> {
        let Some(window) = self.window else { return 0..panels(self.keys) };
        let of_queries = self.positions[queries].iter();
        let (least, greatest) = (of_queries.clone().min(), of_queries.max());
        let (Some(least), Some(greatest)) = (least, greatest) else { return 0..0 };
        let keys = self.near(*least as usize, *greatest as usize, window);
        if keys.is_empty() { 0..0 } else { keys.start / PANEL..panels(keys.end) }
    }

    /// Returns the keys that a query sees, counted from key `first` on.
    fn columns(&self, query: usize, first: usize) -> Range<usize> {
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

/// Returns `x` in the lanes, the first of which is column `at`, that are among the columns, and `other` in the others.
#[inline(always)]
fn only<S: Simd>(simd: S, columns: &Range<usize>, at: usize, x: S::V, other: S::V) -> S::V {
    let within = simd.first(columns.end.saturating_sub(at), x, other);
    simd.first(columns.start.saturating_sub(at), other, within)
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
    let mut sum = simd.splat(0.0);
    for (p, panel) in scores.chunks_mut(n).enumerate() {
        for at in (0..PANEL).step_by(S::LANES) {
            let x = simd.mul(simd.sub(simd.load(&panel[i], at), simd.splat(most)), simd.splat(scale));
            let e = only(simd, &columns, p * PANEL + at, activation::exp(simd, x), simd.splat(0.0));
            simd.store(&mut panel[i], at, e);
            sum = simd.add(sum, e);
        }
    }
    [most, 1.0 / simd.sum(sum)]
}

/// Returns the product of row `row` of two matrices of `panels` panels, whose padding columns are 0.
#[inline(always)]
fn row_product<S: Simd>(simd: S, x: View<'_>, y: View<'_>, row: usize, panels: usize) -> f32 {
    let mut sum = simd.splat(0.0);
    for p in 0..panels {
        let (x, y) = (&x.panel(p)[row], &y.panel(p)[row]);
        for at in (0..PANEL).step_by(S::LANES) {
            sum = simd.fma(simd.load(x, at), simd.load(y, at), sum);
        }
    }
    simd.sum(sum)
}
