//! Layer normalization, and the norms that models have in its place.
//!
//! The mean is subtracted before the variance is computed, from the differences, in two passes: exact enough for rows whose
//! mean is large against their spread.

use std::ops::Range;

use crate::arch::{self, InstructionSet, Kernel, Simd, Sums};
use crate::matrix::{PANEL, Row, ViewMut};

/// The parameters of a layer norm over `columns` columns.
#[derive(Clone, Copy)]
pub struct LayerNorm<'a> {
    /// γ `[columns]`, by panels; 0 beyond the last column.
    pub weight: &'a [Row],
    /// β `[columns]`, by panels; 0 beyond the last column.
    pub bias: &'a [Row],
    /// ε, which is added to the variance.
    pub eps: f32,
    /// The number of columns that are normalized.
    pub columns: usize,
}

/// What a norm computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// A layer norm.
    Layer,
    /// RMSNorm, which has no mean.
    Rms,
}

/// Computes (x − mean)/√(variance + ε)·γ + β for each row, in place. The padding columns of `x` must be 0, and stay 0.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::norm::{LayerNorm, layer_norm};
/// use wordpiece_kernels::{InstructionSet, Matrix, pad_to_panels};
///
/// let (weight, bias) = (pad_to_panels(&[1.0, 1.0]), pad_to_panels(&[0.0, 10.0]));
/// let mut x = Matrix::default();
/// x.fill_rows(1, 2, &[3.0, 5.0]); // mean 4, variance 1
/// let norm = LayerNorm { weight: &weight, bias: &bias, eps: 0.0, columns: 2 };
/// layer_norm(InstructionSet::detect(), norm, &mut x.view_mut());
/// assert_eq!(x.view().panel(0)[0].0[..3], [-1.0, 11.0, 0.0]);
/// ```
pub fn layer_norm(instruction_set: InstructionSet, norm: LayerNorm<'_>, x: &mut ViewMut<'_>) {
    arch::run(instruction_set, NormalizeRows { norm, x });
}

struct NormalizeRows<'a, 'x> {
    norm: LayerNorm<'a>,
    x: &'a mut ViewMut<'x>,
}

/// Rows that are normalized together, which hides the latency of adding up a row.
pub(crate) const ROWS: usize = 8;

impl Kernel for NormalizeRows<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let LayerNorm { weight, bias, columns, .. } = self.norm;
        if columns == 0 {
            return;
        }
        let all = self.x.len();
        for start in (0..all).step_by(ROWS) {
            let rows = start..(start + ROWS).min(all);
            let factors = center(simd, self.norm, self.x, rows.clone());
            for (p, (weight, bias)) in weight.iter().zip(bias).enumerate() {
                for (row, factor) in self.x.panel(p)[rows.clone()].iter_mut().zip(factors) {
                    scale_and_shift(simd, row, simd.splat(factor), weight, bias);
                }
            }
        }
    }
}

/// Subtracts its mean from each of at most [`ROWS`] rows; returns 1/√(variance + ε) of each.
#[inline(always)]
pub(crate) fn center<S: Simd>(simd: S, norm: LayerNorm<'_>, x: &mut ViewMut<'_>, rows: Range<usize>) -> [f32; ROWS] {
    let LayerNorm { weight, eps, columns, .. } = norm;
    let scale = 1.0 / columns as f32;
    let mut sums = [Sums::zero(simd); ROWS];
    for p in 0..weight.len() {
        for (row, sum) in x.panel(p)[rows.clone()].iter().zip(&mut sums) {
            for at in (0..PANEL).step_by(S::LANES) {
                sum.add(simd, at, simd.load(row, at));
            }
        }
    }
    let mut means = [simd.splat(0.0); ROWS];
    for (mean, sum) in means.iter_mut().zip(sums) {
        *mean = simd.splat(sum.total(simd) * scale);
    }
    let mut squares = [Sums::zero(simd); ROWS];
    for p in 0..weight.len() {
        let valid = (columns - p * PANEL).min(PANEL);
        for ((row, mean), sum) in x.panel(p)[rows.clone()].iter_mut().zip(means).zip(&mut squares) {
            for at in (0..PANEL).step_by(S::LANES) {
                let difference = simd.sub(simd.load(row, at), mean);
                let difference = simd.first(valid.saturating_sub(at), difference, simd.splat(0.0));
                simd.store(row, at, difference);
                sum.add_product(simd, at, difference, difference);
            }
        }
    }
    let mut factors = [0.0; ROWS];
    for (factor, sum) in factors.iter_mut().zip(squares) {
        *factor = 1.0 / (sum.total(simd) * scale + eps).sqrt();
    }
    factors
}

/// Computes x/√(mean(x²) + ε)·γ + β for each row, in place: RMSNorm (Zhang and Sennrich 2019). The padding columns of `x` must
/// be 0, and stay 0.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::norm::{LayerNorm, rms_norm};
/// use wordpiece_kernels::{InstructionSet, Matrix, pad_to_panels};
///
/// let (weight, bias) = (pad_to_panels(&[1.0, 2.0]), pad_to_panels(&[0.0, 0.0]));
/// let mut x = Matrix::default();
/// x.fill_rows(1, 2, &[1.0, 7.0]); // the mean of the squares is 25
/// let norm = LayerNorm { weight: &weight, bias: &bias, eps: 0.0, columns: 2 };
/// rms_norm(InstructionSet::detect(), norm, &mut x.view_mut());
/// assert!((x.view().panel(0)[0].0[0] - 0.2).abs() < 1e-6);
/// assert!((x.view().panel(0)[0].0[1] - 2.8).abs() < 1e-6);
/// ```
pub fn rms_norm(instruction_set: InstructionSet, norm: LayerNorm<'_>, x: &mut ViewMut<'_>) {
    arch::run(instruction_set, ScaleRowsByMeanSquare { norm, x });
}

struct ScaleRowsByMeanSquare<'a, 'x> {
    norm: LayerNorm<'a>,
    x: &'a mut ViewMut<'x>,
}

impl Kernel for ScaleRowsByMeanSquare<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let LayerNorm { weight, bias, .. } = self.norm;
        let all = self.x.len();
        for start in (0..all).step_by(ROWS) {
            let rows = start..(start + ROWS).min(all);
            let factors = mean_square_factors(simd, self.norm, self.x, rows.clone());
            for (p, (weight, bias)) in weight.iter().zip(bias).enumerate() {
                for (row, factor) in self.x.panel(p)[rows.clone()].iter_mut().zip(factors) {
                    scale_and_shift(simd, row, simd.splat(factor), weight, bias);
                }
            }
        }
    }
}

/// Returns 1/√(mean(x²) + ε) of each of at most [`ROWS`] rows.
#[inline(always)]
pub(crate) fn mean_square_factors<S: Simd>(
    simd: S,
    norm: LayerNorm<'_>,
    x: &mut ViewMut<'_>,
    rows: Range<usize>,
) -> [f32; ROWS] {
    let LayerNorm { weight, eps, columns, .. } = norm;
    let scale = 1.0 / columns.max(1) as f32;
    let mut squares = [Sums::zero(simd); ROWS];
    for p in 0..weight.len() {
        for (row, sum) in x.panel(p)[rows.clone()].iter().zip(&mut squares) {
            for at in (0..PANEL).step_by(S::LANES) {
                let x = simd.load(row, at);
                sum.add_product(simd, at, x, x);
            }
        }
    }
    let mut factors = [0.0; ROWS];
    for (factor, sum) in factors.iter_mut().zip(squares) {
        *factor = 1.0 / (sum.total(simd) * scale + eps).sqrt();
    }
    factors
}

/// Scales a row of differences and applies γ and β.
#[inline(always)]
fn scale_and_shift<S: Simd>(simd: S, row: &mut Row, factor: S::V, weight: &Row, bias: &Row) {
    for at in (0..PANEL).step_by(S::LANES) {
        let x = simd.mul(simd.load(row, at), factor);
        simd.store(row, at, simd.fma(x, simd.load(weight, at), simd.load(bias, at)));
    }
}
