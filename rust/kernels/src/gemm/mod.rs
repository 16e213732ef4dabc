//! Matrix products: y = x·Wᵀ + b over packed weights, and what follows it while a tile is still in the cache.
//!
//! A tile is a few rows by one panel. Its sums stay in registers over the whole of K, or over blocks of K whose sums are
//! added in order; how many rows a tile has, and which thread computes it, leaves the order within each element alone.

mod pack;
mod pairs;
mod tile;

use std::ops::Range;

use rayon::ThreadPool;
use wordpiece_parallel::map_with;

pub use pack::{Packed, PanelRows, Unpacked};
pub use pairs::{Dot, PairTile, Widened, multiply_pair_tile};
pub use tile::{BLOCK, Tile, multiply_tile};

use crate::activation::{self, Activation};
use crate::arch::{InstructionSet, Kernel, Simd};
use crate::matrix::{HalfRow, Matrix, PANEL, Row, View, ViewMut};

/// What follows the product.
#[derive(Clone, Copy)]
pub enum Then<'a> {
    /// + b.
    Bias,
    /// activation(… + b).
    Activation(Activation),
    /// … + b + x.
    Residual(View<'a>),
}

/// x·Wᵀ + b, and what follows.
///
/// Where the weights are bfloat16 to be multiplied as such, `x` is rounded to it; sums are float32 in any case. `x` has K columns, `weights` [N, K] are packed, `bias` has the panels of N, and so has `out`. The calling thread and those
/// of `team` share the panels.
///
/// # Panics
///
/// If the shapes do not agree.
#[allow(clippy::too_many_arguments, reason = "operands, what follows, memory and threads")]
pub fn linear(
    path: InstructionSet,
    x: View<'_>,
    weights: &Packed,
    bias: &[Row],
    then: Then<'_>,
    mut out: ViewMut<'_>,
    rounded: &mut Vec<HalfRow>,
    team: Option<&ThreadPool>,
) {
    let k = weights.k();
    assert!(x.width() >= crate::panels(k) && x.len() == out.len() && bias.len() == weights.panels());
    let mut half = None;
    if weights.is_pairs() {
        let len = crate::panels(k) * x.len();
        rounded.resize(len.max(rounded.len()), HalfRow::ZERO);
        path.run(pack::Round { x, k, to: &mut rounded[..len] });
        half = Some(View::new(&rounded[..len], x.len()));
    }
    if team.is_some() {
        map_with(out.each_panel().into_iter().enumerate().collect(), team, Vec::new, |widened, (panel, out)| {
            let weights = weights.panel(path, panel, widened);
            path.run(Panel { x, half, weights, bias: &bias[panel], then, panel, out });
        });
    } else {
        let mut widened = Vec::new();
        for (panel, bias) in bias.iter().enumerate() {
            let weights = weights.panel(path, panel, &mut widened);
            path.run(Panel { x, half, weights, bias, then, panel, out: out.panel(panel) });
        }
    }
}

/// activation(x·Wᵀ + b) with weights [N, K] that are used too seldom, or are too many, to be kept packed: a panel of them
/// is packed at a time. Returns [rows, N], columns side by side.
///
/// # Panics
///
/// If the shapes do not agree.
pub fn linear_once(
    path: InstructionSet,
    x: &Matrix,
    weights: &[f32],
    bias: &[f32],
    activation: Activation,
    team: Option<&ThreadPool>,
) -> Vec<f32> {
    let (x, n) = (x.view(), bias.len());
    let (rows, k) = (x.len(), weights.len() / n.max(1));
    assert!(weights.len() == n * k && (rows == 0 || x.width() >= crate::panels(k)));
    let then = Then::Activation(activation);
    let one = |panel: usize, packed: &mut Vec<Row>, out: &mut [Row]| {
        let columns = panel * PANEL..(panel * PANEL + PANEL).min(n);
        packed.resize(k, Row::ZERO);
        pack::pack_panel(&weights[columns.start * k..columns.end * k], packed);
        let mut bias_row = Row::ZERO;
        bias_row.0[..columns.len()].copy_from_slice(&bias[columns]);
        let weights = PanelRows::F32(packed);
        path.run(Panel { x, half: None, weights, bias: &bias_row, then, panel, out });
    };
    // A few panels at a time: what lies between product and result is small however large N is.
    const PANELS: usize = 64;
    let mut result = vec![0.0; rows * n];
    let mut part = Matrix::default();
    for first in (0..crate::panels(n)).step_by(PANELS) {
        let columns = first * PANEL..((first + PANELS) * PANEL).min(n);
        let each = part.reshape(rows, columns.len()).view_mut().each_panel();
        map_with(each.into_iter().enumerate().collect(), team, Vec::new, |packed, (p, out)| {
            one(first + p, packed, out)
        });
        for (row, to) in result.chunks_exact_mut(n).enumerate() {
            part.copy_row(row, &mut to[columns.clone()]);
        }
    }
    result
}

/// One panel of a product.
struct Panel<'a> {
    x: View<'a>,
    /// Its rows rounded to bfloat16, where they are multiplied so.
    half: Option<View<'a, HalfRow>>,
    weights: PanelRows<'a>,
    bias: &'a Row,
    then: Then<'a>,
    panel: usize,
    out: &'a mut [Row],
}

impl Kernel for Panel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for rows in tiles(self.out.len(), S::TILE) {
            let out = &mut self.out[rows.clone()];
            match (self.weights, self.half) {
                (PanelRows::F32(b), _) => simd.tile(Tile { a: self.x.rows(rows.clone()), b, out }),
                (PanelRows::Pairs(b), Some(half)) => simd.pair_tile(PairTile { a: half.rows(rows.clone()), b, out }),
                (PanelRows::Pairs(_), None) => unreachable!("rows are rounded for weights in pairs"),
            }
            match self.then {
                Then::Bias => add_bias(simd, self.bias, out),
                Then::Activation(activation) => {
                    add_bias(simd, self.bias, out);
                    activation::apply_with(simd, activation, out);
                }
                Then::Residual(x) => {
                    add_bias(simd, self.bias, out);
                    add_rows(simd, &x.panel(self.panel)[rows], out);
                }
            }
        }
    }
}

#[inline(always)]
fn add_bias<S: Simd>(simd: S, bias: &Row, out: &mut [Row]) {
    for row in out {
        for at in (0..PANEL).step_by(S::LANES) {
            simd.store(row, at, simd.add(simd.load(row, at), simd.load(bias, at)));
        }
    }
}

#[inline(always)]
fn add_rows<S: Simd>(simd: S, x: &[Row], out: &mut [Row]) {
    for (row, x) in out.iter_mut().zip(x) {
        for at in (0..PANEL).step_by(S::LANES) {
            simd.store(row, at, simd.add(simd.load(row, at), simd.load(x, at)));
        }
    }
}

/// Cuts `rows` rows into tiles of at most `most`, as equal as can be.
#[inline(always)]
pub fn tiles(rows: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let count = rows.div_ceil(most);
    (0..count).map(move |i| i * rows / count..(i + 1) * rows / count)
}

#[cfg(test)]
mod tests {
    use super::tiles;

    #[test]
    fn tiles_cover_all_rows_and_differ_by_one_at_most() {
        for most in 1..20 {
            for rows in 0..200 {
                let cut: Vec<_> = tiles(rows, most).collect();
                assert_eq!(cut.iter().flat_map(Clone::clone).collect::<Vec<_>>(), (0..rows).collect::<Vec<_>>());
                let sizes = || cut.iter().map(ExactSizeIterator::len);
                assert!(sizes().all(|size| (1..=most).contains(&size)));
                assert!(sizes().max().unwrap_or(0) <= sizes().min().unwrap_or(0) + 1);
            }
        }
    }
}
