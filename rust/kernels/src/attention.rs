//! Self-attention within one sequence: softmax(q·kᵀ/√d + bias)·v, head by head.
//!
//! The scores of a tile of queries lie in the first-level cache until they are used; the matrix of all scores is nowhere. A
//! whole row of scores is there at once, so the softmax is the plain one, and nothing is rescaled.

use rayon::ThreadPool;
use wordpiece_parallel::map_with;

use crate::activation;
use crate::arch::{InstructionSet, Kernel, Simd};
use crate::gemm::{Tile, tiles};
use crate::matrix::{Matrix, PANEL, Row, View, ViewMut, panels};

/// Queries, keys and values of one sequence.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// All its rows, [rows, H].
    pub queries: View<'a>,
    /// The rows that may be attended to, [keys, H].
    pub keys: View<'a>,
    /// As many, [keys, H].
    pub values: View<'a>,
    /// N.
    pub heads: usize,
    /// d; the columns of head h are h·d to (h + 1)·d.
    pub size: usize,
    /// Where each row stands in its sequence, for what depends on it; the keys are the first of the rows.
    pub places: &'a [u32],
    /// A number to add to the score for each head and distance, if there is.
    pub distances: Option<Distances<'a>>,
}

/// A bias by the distance of key and query.
#[derive(Clone, Copy)]
pub struct Distances<'a> {
    /// For each head, the numbers for key − query from −`most` to `most`.
    pub bias: &'a [f32],
    /// The greatest distance.
    pub most: usize,
}

/// The attention weights of one sequence, to be written where they are wanted.
pub struct Weights<'a> {
    /// [N, length, length], query by key, zero from the start.
    pub to: &'a mut [f32],
    /// Places of the sequence.
    pub length: usize,
}

/// The context of all heads, side by side, [rows, H].
///
/// With `team`, the threads of rayon's current pool share the heads, where a head is a whole number of panels.
///
/// # Panics
///
/// If the shapes do not agree.
pub fn attention(
    path: InstructionSet,
    inputs: Inputs<'_>,
    scratch: &mut Scratch,
    mut out: ViewMut<'_>,
    weights: Option<Weights<'_>>,
    team: Option<&ThreadPool>,
) {
    let Inputs { queries, keys, values, heads, size, places, .. } = inputs;
    assert!(queries.len() == out.len() && queries.len() == places.len() && keys.len() == values.len());
    assert!(keys.len() <= queries.len() && heads > 0 && size > 0);
    let (whole, length) = (panels(size), weights.as_ref().map_or(0, |weights| weights.length));
    let mut each_weights: Vec<Option<&mut [f32]>> = match weights {
        Some(weights) => weights.to.chunks_mut((length * length).max(1)).map(Some).collect(),
        None => (0..heads).map(|_| None).collect(),
    };
    if size.is_multiple_of(PANEL) {
        let head = |head: usize, scratch: &mut Scratch, mut out: Vec<&mut [Row]>, weights: Option<&mut [f32]>| {
            let columns = head * whole..(head + 1) * whole;
            let (q, k, v) = (queries.panels(columns.clone()), keys.panels(columns.clone()), values.panels(columns));
            path.run(Head { inputs, head, q, k, v, scratch, out: &mut out, weights, length });
        };
        let mut panels = out.each_panel().into_iter();
        let mut parts = Vec::with_capacity(heads);
        for weights in each_weights {
            parts.push((panels.by_ref().take(whole).collect::<Vec<_>>(), weights));
        }
        if team.is_some() {
            let parts = parts.into_iter().enumerate().collect();
            map_with(parts, team, Scratch::default, |scratch, (h, (out, weights))| head(h, scratch, out, weights));
        } else {
            for (h, (out, weights)) in parts.into_iter().enumerate() {
                head(h, scratch, out, weights);
            }
        }
        return;
    }
    // Heads that do not fill panels: each is copied to where it does. No model of a usual size has such.
    let mut copies: [Matrix; 3] = Default::default();
    let mut context = Matrix::default();
    for (head, weights) in each_weights.iter_mut().enumerate() {
        for (copy, from) in copies.iter_mut().zip([queries, keys, values]) {
            copy_columns(from, head * size, copy.reshape(from.len(), size).view_mut(), 0, size);
        }
        let mut columns = context.reshape(queries.len(), size).view_mut().each_panel();
        let [q, k, v] = copies.each_ref().map(Matrix::view);
        path.run(Head { inputs, head, q, k, v, scratch, out: &mut columns, weights: weights.as_deref_mut(), length });
        copy_columns(context.view(), 0, out.rows(0..queries.len()), head * size, size);
    }
}

/// Copies columns from one matrix to another, number by number.
fn copy_columns(from: View<'_>, first: usize, mut to: ViewMut<'_>, at: usize, columns: usize) {
    for column in 0..columns {
        let (source, target) = (first + column, at + column);
        let rows = from.panel(source / PANEL).iter().zip(to.panel(target / PANEL));
        for (from, to) in rows {
            to.0[target % PANEL] = from.0[source % PANEL];
        }
    }
}

/// Memory that attention needs, kept from call to call.
#[derive(Default)]
pub struct Scratch {
    /// Keys by column: panel p has row c for column c of the keys 32p to 32p + 31.
    keys: Vec<Row>,
    /// The scores of a tile.
    scores: Vec<Row>,
}

/// One head.
struct Head<'a, 'o> {
    inputs: Inputs<'a>,
    head: usize,
    q: View<'a>,
    k: View<'a>,
    v: View<'a>,
    scratch: &'a mut Scratch,
    out: &'a mut [&'o mut [Row]],
    weights: Option<&'a mut [f32]>,
    length: usize,
}

impl Kernel for Head<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let Inputs { size, places, distances, .. } = self.inputs;
        let keys = self.k.len();
        let key_panels = panels(keys);
        let Scratch { keys: transposed, scores } = self.scratch;
        transpose(self.k, size, transposed);
        scores.resize((key_panels * S::TILE).max(scores.len()), Row::ZERO);
        let scale = 1.0 / (size as f32).sqrt();
        for rows in tiles(self.q.len(), S::TILE) {
            let n = rows.len();
            let scores = &mut scores[..key_panels * n];
            let q = self.q.rows(rows.clone());
            for (b, out) in transposed.chunks(size).zip(scores.chunks_mut(n)) {
                simd.tile(Tile { a: q, b, out });
            }
            let scale = match distances {
                None => scale,
                Some(distances) => {
                    let of_head = &distances.bias[self.head * (2 * distances.most + 1)..][..2 * distances.most + 1];
                    for (i, query) in rows.clone().enumerate() {
                        // The bias for a key at place 0; places grow from there.
                        let from = distances.most - places[query] as usize;
                        add_bias(simd, scores, n, i, scale, &of_head[from..], &places[..keys]);
                    }
                    1.0
                }
            };
            let mut factors = [0.0; 16];
            softmax(simd, scores, n, keys, scale, &mut factors);
            if let Some(weights) = self.weights.as_deref_mut() {
                for (i, query) in rows.clone().enumerate() {
                    let to = &mut weights[places[query] as usize * self.length..][..self.length];
                    for (key, place) in places[..keys].iter().enumerate() {
                        to[*place as usize] = scores[key / PANEL * n + i].0[key % PANEL] * factors[i];
                    }
                }
            }
            let scores = View::new(scores, n);
            for (p, out) in self.out.iter_mut().enumerate() {
                let out = &mut out[rows.clone()];
                simd.tile(Tile { a: scores, b: self.v.panel(p), out });
                for (row, factor) in out.iter_mut().zip(factors) {
                    for at in (0..PANEL).step_by(S::LANES) {
                        simd.store(row, at, simd.mul(simd.load(row, at), simd.splat(factor)));
                    }
                }
            }
        }
    }
}

/// Keys [keys, d] by column.
fn transpose(keys: View<'_>, size: usize, to: &mut Vec<Row>) {
    let blocks = panels(keys.len());
    // What stands behind the last key is not looked at.
    to.resize((blocks * size).max(to.len()), Row::ZERO);
    to.truncate(blocks * size);
    for (block, to) in to.chunks_mut(size).enumerate() {
        for (panel, to) in to.chunks_mut(PANEL).enumerate() {
            let keys = &keys.panel(panel)[block * PANEL..];
            for (column, to) in to.iter_mut().enumerate() {
                for (to, key) in to.0.iter_mut().zip(keys) {
                    *to = key.0[column];
                }
            }
        }
    }
}

/// x·scale + bias of one row of a tile.
#[inline(always)]
fn add_bias<S: Simd>(simd: S, scores: &mut [Row], n: usize, i: usize, scale: f32, bias: &[f32], places: &[u32]) {
    for (panel, places) in scores.chunks_mut(n).zip(places.chunks(PANEL)) {
        let mut row = Row::ZERO;
        for (to, place) in row.0.iter_mut().zip(places) {
            *to = bias[*place as usize];
        }
        for at in (0..PANEL).step_by(S::LANES) {
            let x = simd.fma(simd.load(&panel[i], at), simd.splat(scale), simd.load(&row, at));
            simd.store(&mut panel[i], at, x);
        }
    }
}

/// exp((x − max x)·scale) for each of `n` rows over their first `keys` columns, 0 behind them; `factors` become 1/Σ.
#[inline(always)]
fn softmax<S: Simd>(simd: S, scores: &mut [Row], n: usize, keys: usize, scale: f32, factors: &mut [f32]) {
    let scale = simd.splat(scale);
    for (i, factor) in factors[..n].iter_mut().enumerate() {
        let mut most = simd.splat(f32::NEG_INFINITY);
        for (p, panel) in scores.chunks(n).enumerate() {
            for at in (0..PANEL).step_by(S::LANES) {
                let there = keys.saturating_sub(p * PANEL + at);
                most = simd.max(most, simd.first(there, simd.load(&panel[i], at), most));
            }
        }
        let most = simd.splat(simd.greatest(most));
        let mut sum = simd.splat(0.0);
        for (p, panel) in scores.chunks_mut(n).enumerate() {
            for at in (0..PANEL).step_by(S::LANES) {
                let there = keys.saturating_sub(p * PANEL + at);
                let x = simd.mul(simd.sub(simd.load(&panel[i], at), most), scale);
                let e = simd.first(there, activation::exp(simd, x), simd.splat(0.0));
                simd.store(&mut panel[i], at, e);
                sum = simd.add(sum, e);
            }
        }
        *factor = 1.0 / simd.sum(sum);
    }
}
