//! The softmax of the scores of a tile, without its last factor.
//!
//! Each row is read twice: for its greatest score, and for the exponentials and their sum. The greatest score is subtracted
//! first, so that no exponential is above 1 and none of them overflows. The factor that is left is one number for a row, and
//! the product with the values, which follows, is narrower than the scores: it is cheaper there.
//!
//! Scores stand in panels of 32 keys: the score of row r and key k is column k mod 32 of `scores[k / 32 * n + r]` for a
//! tile of n rows. Keys beyond the last one of a sequence get the weight 0 whatever their scores are, so that a tile
//! needs no mask. The sum of a row depends on the row alone, not on those that are computed with it.

use std::ops::Range;

use crate::activation;
use crate::arch::{Simd, Sums};
use crate::matrix::{PANEL, Row};
use crate::tile::tiles;

/// Rows whose softmax is computed together: their chains of operations do not depend on each other.
const ROWS: usize = 4;

/// Replaces the scores x of each of `n` rows by exp((x − max x)·scale) in the first `keys` columns and by 0 beyond them.
///
/// `scores` are panels of `n` rows, [keys / 32 rounded up, n]. There is at least one key: the sum is then 1 or more, and its
/// reciprocal finite. The reciprocals of the sums of the rows, by which the softmax is still to be
/// multiplied, go to `factors`.
#[inline(always)]
pub(crate) fn softmax<S: Simd>(simd: S, scores: &mut [Row], n: usize, keys: usize, scale: f32, factors: &mut [f32]) {
    for rows in tiles(n, ROWS) {
        let (first, factors) = (rows.start, &mut factors[rows.clone()]);
        match rows.len() {
            1 => softmax_of_rows::<S, 1>(simd, scores, n, first, keys, scale, factors),
            2 => softmax_of_rows::<S, 2>(simd, scores, n, first, keys, scale, factors),
            3 => softmax_of_rows::<S, 3>(simd, scores, n, first, keys, scale, factors),
            _ => softmax_of_rows::<S, ROWS>(simd, scores, n, first, keys, scale, factors),
        }
    }
}

/// Replaces the scores x of row `i` of a tile by exp((x − max x)·scale) in some columns and by 0 in all others; returns the
/// reciprocal of their sum, and 0 if there are no such columns.
///
/// This is for rows that see a window of keys, each row another one: `columns` counts from the first key of the tile and may
/// end anywhere within a panel. Panels without a column of the window are filled with 0 and not computed.
#[inline(always)]
pub(crate) fn softmax_within<S: Simd>(
    simd: S,
    scores: &mut [Row],
    n: usize,
    i: usize,
    columns: Range<usize>,
    scale: f32,
) -> f32 {
    // The columns of a panel, as the first column and the one after the last.
    let within = |panel: usize| [columns.start, columns.end].map(|at| at.saturating_sub(panel * PANEL).min(PANEL));
    let only = |[from, to]: [usize; 2], at: usize, x: S::V, other: S::V| {
        simd.first(from.saturating_sub(at), other, simd.first(to.saturating_sub(at), x, other))
    };
    let lowest = simd.splat(f32::NEG_INFINITY);
    let mut most = lowest;
    for (panel, rows) in scores.chunks(n).enumerate() {
        for at in (0..PANEL).step_by(S::LANES) {
            most = simd.max(most, only(within(panel), at, simd.load(&rows[i], at), lowest));
        }
    }
    let (most, scale) = (simd.splat(simd.greatest(most)), simd.splat(scale));
    let mut sum = Sums::zero(simd);
    for (panel, rows) in scores.chunks_mut(n).enumerate() {
        let range = within(panel);
        if range[0] >= range[1] {
            rows[i] = Row::ZERO;
            continue;
        }
        for at in (0..PANEL).step_by(S::LANES) {
            let e = activation::exp(simd, simd.mul(simd.sub(simd.load(&rows[i], at), most), scale));
            let e = only(range, at, e, simd.splat(0.0));
            simd.store(&mut rows[i], at, e);
            sum.add(simd, at, e);
        }
    }
    if columns.is_empty() { 0.0 } else { 1.0 / sum.total(simd) }
}

/// As [`softmax`], for the rows from `first` on.
#[inline(always)]
fn softmax_of_rows<S: Simd, const R: usize>(
    simd: S,
    scores: &mut [Row],
    n: usize,
    first: usize,
    keys: usize,
    scale: f32,
    factors: &mut [f32],
) {
    let rows_of = |panel: usize| panel * n + first..panel * n + first + R;
    let (whole, rest) = (keys / PANEL, keys % PANEL);
    let mut most = [simd.splat(f32::NEG_INFINITY); R];
    for panel in 0..whole {
        let rows: &[Row; R] = scores[rows_of(panel)].try_into().expect("R rows");
        for (row, most) in rows.iter().zip(&mut most) {
            for at in (0..PANEL).step_by(S::LANES) {
                *most = simd.max(*most, simd.load(row, at));
            }
        }
    }
    if rest > 0 {
        for (row, most) in scores[rows_of(whole)].iter().zip(&mut most) {
            for at in (0..PANEL).step_by(S::LANES) {
                let x = simd.first(rest.saturating_sub(at), simd.load(row, at), *most);
                *most = simd.max(*most, x);
            }
        }
    }
    for most in &mut most {
        *most = simd.splat(simd.greatest(*most));
    }
    let scale = simd.splat(scale);
    let mut sums = [Sums::zero(simd); R];
    for panel in 0..whole {
        let rows: &mut [Row; R] = (&mut scores[rows_of(panel)]).try_into().expect("R rows");
        for ((row, most), sum) in rows.iter_mut().zip(most).zip(&mut sums) {
            for at in (0..PANEL).step_by(S::LANES) {
                let e = activation::exp(simd, simd.mul(simd.sub(simd.load(row, at), most), scale));
                simd.store(row, at, e);
                sum.add(simd, at, e);
            }
        }
    }
    if rest > 0 {
        for ((row, most), sum) in scores[rows_of(whole)].iter_mut().zip(most).zip(&mut sums) {
            for at in (0..PANEL).step_by(S::LANES) {
                let e = activation::exp(simd, simd.mul(simd.sub(simd.load(row, at), most), scale));
                let e = simd.first(rest.saturating_sub(at), e, simd.splat(0.0));
                simd.store(row, at, e);
                sum.add(simd, at, e);
            }
        }
    }
    for (factor, sum) in factors.iter_mut().zip(sums) {
        *factor = 1.0 / sum.total(simd);
    }
}
