//! Matrix products: y = x·Wᵀ + b over packed weights, and what follows it while a tile is still in the cache.
//!
//! A tile is a few rows by one panel. Its sums stay in registers over the whole of K, or over blocks of K whose sums are
//! added in order; how many rows a tile has, and which thread computes it, leaves the order within each element alone.

mod pack;
mod tile;

use std::ops::Range;

use rayon::prelude::*;

pub use pack::Packed;
pub use tile::{BLOCK, Tile, multiply_tile};

use crate::activation::{self, Activation};
use crate::arch::{Kernel, Path, Simd};
use crate::matrix::{Row, View, ViewMut};

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
/// `x` has K columns, `weights` [N, K] are packed, `bias` has the panels of N, and so has `out`. With `team`, the threads
/// of rayon's current pool share the panels.
///
/// # Panics
///
/// If the shapes do not agree.
pub fn linear(
    path: Path,
    x: View<'_>,
    weights: &Packed,
    bias: &[Row],
    then: Then<'_>,
    mut out: ViewMut<'_>,
    team: bool,
) {
    let k = weights.k();
    assert!(x.width() >= crate::panels(k) && x.len() == out.len() && bias.len() == weights.panels());
    if team {
        let each = out.each_panel();
        each.into_par_iter()
            .enumerate()
            .for_each(|(p, out)| path.run(Panel { x, weights: weights.panel(p), bias: &bias[p], then, panel: p, out }));
    } else {
        path.run(AllPanels { x, weights, bias, then, out: &mut out });
    }
}

struct AllPanels<'a, 'o> {
    x: View<'a>,
    weights: &'a Packed,
    bias: &'a [Row],
    then: Then<'a>,
    out: &'a mut ViewMut<'o>,
}

impl Kernel for AllPanels<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (panel, bias) in self.bias.iter().enumerate() {
            let (x, weights, then) = (self.x, self.weights.panel(panel), self.then);
            Panel { x, weights, bias, then, panel, out: self.out.panel(panel) }.run(simd);
        }
    }
}

/// One panel of a product.
struct Panel<'a> {
    x: View<'a>,
    weights: &'a [Row],
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
            simd.tile(Tile { a: self.x.rows(rows.clone()), b: self.weights, out });
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
        for at in (0..crate::PANEL).step_by(S::LANES) {
            simd.store(row, at, simd.add(simd.load(row, at), simd.load(bias, at)));
        }
    }
}

#[inline(always)]
fn add_rows<S: Simd>(simd: S, x: &[Row], out: &mut [Row]) {
    for (row, x) in out.iter_mut().zip(x) {
        for at in (0..crate::PANEL).step_by(S::LANES) {
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
