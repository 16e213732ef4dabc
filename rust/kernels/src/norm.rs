//! Layer normalization.

use crate::arch::{InstructionSet, Kernel, Simd};
use crate::matrix::{PANEL, Row, ViewMut};

/// γ, β and ε of a layer norm over `columns` columns; what stands behind the last column of γ and β is 0.
#[derive(Clone, Copy)]
pub struct Norm<'a> {
    /// γ.
    pub weight: &'a [Row],
    /// β.
    pub bias: &'a [Row],
    /// ε, added to the variance.
    pub eps: f32,
    /// H.
    pub columns: usize,
}

/// (x − mean)/√(variance + ε)·γ + β for each row, in place; the padding columns of x must be 0, and stay 0.
pub fn layer_norm(path: InstructionSet, norm: Norm<'_>, x: &mut ViewMut<'_>) {
    path.run(LayerNorm { norm, x });
}

struct LayerNorm<'a, 'x> {
    norm: Norm<'a>,
    x: &'a mut ViewMut<'x>,
}

/// Rows that are worked on together: those of one tile, whose panels are runs of memory.
const ROWS: usize = 8;

impl Kernel for LayerNorm<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Norm { weight, bias, eps, columns } = self.norm;
        if columns == 0 {
            return;
        }
        let scale = 1.0 / columns as f32;
        let last = columns - (weight.len() - 1) * PANEL; // columns of the last panel
        let all = self.x.len();
        for start in (0..all).step_by(ROWS) {
            let rows = start..(start + ROWS).min(all);
            let mut sums = [simd.splat(0.0); ROWS];
            for p in 0..weight.len() {
                for (row, sum) in self.x.panel(p)[rows.clone()].iter().zip(&mut sums) {
                    for at in (0..PANEL).step_by(S::LANES) {
                        *sum = simd.add(*sum, simd.load(row, at));
                    }
                }
            }
            let mut means = sums;
            for mean in &mut means {
                *mean = simd.splat(simd.sum(*mean) * scale);
            }
            let mut squares = [simd.splat(0.0); ROWS];
            for p in 0..weight.len() {
                let there = if p + 1 == weight.len() { last } else { PANEL };
                let rows = self.x.panel(p)[rows.clone()].iter_mut();
                for ((row, mean), sum) in rows.zip(means).zip(&mut squares) {
                    for at in (0..PANEL).step_by(S::LANES) {
                        let apart = simd.sub(simd.load(row, at), mean);
                        let apart = simd.first(there.saturating_sub(at), apart, simd.splat(0.0));
                        simd.store(row, at, apart);
                        *sum = simd.fma(apart, apart, *sum);
                    }
                }
            }
            let mut factors = squares;
            for factor in &mut factors {
                *factor = simd.splat(1.0 / (simd.sum(*factor) * scale + eps).sqrt());
            }
            for (p, (weight, bias)) in weight.iter().zip(bias).enumerate() {
                for (row, factor) in self.x.panel(p)[rows.clone()].iter_mut().zip(factors) {
                    normalize(simd, row, factor, weight, bias);
                }
            }
        }
    }
}

#[inline(always)]
fn normalize<S: Simd>(simd: S, row: &mut Row, factor: S::V, weight: &Row, bias: &Row) {
    for at in (0..PANEL).step_by(S::LANES) {
        let x = simd.mul(simd.load(row, at), factor);
        simd.store(row, at, simd.fma(x, simd.load(weight, at), simd.load(bias, at)));
    }
}
