//! Norms that keep what their backward pass needs.
//!
//! y = x̂·γ + β with x̂ = (x − mean(x))·r, r = 1/√(variance + ε). For a loss with the gradient dy and g = dy·γ:
//! dγ = Σ dy·x̂ and dβ = Σ dy over the rows, and dx = r·(g − mean(g) − x̂·mean(g·x̂)) within each row (Ba, Kiros and Hinton
//! 2016). RMSNorm has no mean: x̂ = x·r with r = 1/√(mean(x²) + ε), and dx = r·(g − x̂·mean(g·x̂)).

use crate::arch::{self, InstructionSet, Kernel, Simd, Sums};
use crate::matrix::{Matrix, PANEL, Row, View, ViewMut};
use crate::norm::{LayerNorm, NormKind, ROWS, center, mean_square_factors};

/// What the forward pass keeps.
#[derive(Default)]
pub struct Normalized {
    /// x̂ [rows, columns].
    pub x_hat: Matrix,
    /// r `[rows]`.
    pub r: Vec<f32>,
}

/// Replaces x in `kept.x_hat` by x̂, and writes y to `y`. The padding columns of x must be 0.
///
/// # Panics
///
/// If the shapes do not agree.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::norm::{LayerNorm, NormKind};
/// use wordpiece_kernels::training::{Normalized, normalize};
/// use wordpiece_kernels::{InstructionSet, Matrix, pad_to_panels};
///
/// let (weight, bias) = (pad_to_panels(&[2.0, 2.0]), pad_to_panels(&[0.0, 10.0]));
/// let norm = LayerNorm { weight: &weight, bias: &bias, eps: 0.0, columns: 2 };
/// let (mut kept, mut y) = (Normalized::default(), Matrix::default());
/// kept.x_hat.fill_rows(1, 2, &[3.0, 7.0]); // mean 5, variance 4
/// normalize(InstructionSet::detect(), NormKind::Layer, norm, &mut kept, &mut y.reshape(1, 2).view_mut());
/// assert_eq!(y.view().panel(0)[0].0[..2], [-2.0, 12.0]);
/// assert_eq!((kept.x_hat.view().panel(0)[0].0[1], kept.r[0]), (1.0, 0.5));
/// ```
pub fn normalize(
    instruction_set: InstructionSet,
    kind: NormKind,
    norm: LayerNorm<'_>,
    kept: &mut Normalized,
    y: &mut ViewMut<'_>,
) {
    let mut x = kept.x_hat.view_mut();
    assert!(x.len() == y.len());
    kept.r.resize(x.len(), 0.0);
    arch::run(instruction_set, Standardize { kind, norm, x: &mut x, r: &mut kept.r });
    scale_and_shift(instruction_set, norm, kept.x_hat.view(), y);
}

/// Writes y = x̂·γ + β.
///
/// # Panics
///
/// If the shapes do not agree.
pub fn scale_and_shift(instruction_set: InstructionSet, norm: LayerNorm<'_>, x_hat: View<'_>, y: &mut ViewMut<'_>) {
    arch::run(instruction_set, ScaleAndShift { norm, x_hat, y });
}

/// Replaces dy by dx, and adds dγ and dβ to `weight` and `bias`, which have a row for each panel.
///
/// # Panics
///
/// If the shapes do not agree.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::norm::{LayerNorm, NormKind};
/// use wordpiece_kernels::training::{Normalized, normalize, normalize_backward};
/// use wordpiece_kernels::{InstructionSet, Matrix, pad_to_panels};
///
/// let (weight, bias) = (pad_to_panels(&[2.0, 2.0]), pad_to_panels(&[0.0, 0.0]));
/// let norm = LayerNorm { weight: &weight, bias: &bias, eps: 0.0, columns: 2 };
/// let (mut kept, mut y, mut dy) = (Normalized::default(), Matrix::default(), Matrix::default());
/// kept.x_hat.fill_rows(1, 2, &[3.0, 7.0]);
/// let instructions = InstructionSet::detect();
/// normalize(instructions, NormKind::Layer, norm, &mut kept, &mut y.reshape(1, 2).view_mut());
///
/// dy.fill_rows(1, 2, &[1.0, 3.0]);
/// let (mut dweight, mut dbias) = (pad_to_panels(&[0.0, 0.0]), pad_to_panels(&[0.0, 0.0]));
/// normalize_backward(instructions, NormKind::Layer, norm, &kept, &mut dy.view_mut(), [&mut dweight, &mut dbias]);
/// assert_eq!(dweight[0].0[..2], [-1.0, 3.0]);
/// assert_eq!(dbias[0].0[..2], [1.0, 3.0]);
/// assert_eq!(dy.view().panel(0)[0].0[..2], [0.0, 0.0]); // two numbers have only two normal forms
/// ```
pub fn normalize_backward(
    instruction_set: InstructionSet,
    kind: NormKind,
    norm: LayerNorm<'_>,
    kept: &Normalized,
    dy: &mut ViewMut<'_>,
    [weight, bias]: [&mut [Row]; 2],
) {
    assert!(kept.r.len() == dy.len() && weight.len() == norm.weight.len() && bias.len() == weight.len());
    arch::run(instruction_set, Backward { kind, norm, x_hat: kept.x_hat.view(), r: &kept.r, dy, weight, bias });
}

struct Standardize<'a, 'x> {
    kind: NormKind,
    norm: LayerNorm<'a>,
    x: &'a mut ViewMut<'x>,
    r: &'a mut [f32],
}

impl Kernel for Standardize<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let all = self.x.len();
        for start in (0..all).step_by(ROWS) {
            let rows = start..(start + ROWS).min(all);
            let factors = match self.kind {
                NormKind::Layer => center(simd, self.norm, self.x, rows.clone()),
                NormKind::Rms => mean_square_factors(simd, self.norm, self.x, rows.clone()),
            };
            self.r[rows.clone()].copy_from_slice(&factors[..rows.len()]);
            for p in 0..self.norm.weight.len() {
                for (row, r) in self.x.panel(p)[rows.clone()].iter_mut().zip(&self.r[rows.clone()]) {
                    for at in (0..PANEL).step_by(S::LANES) {
                        simd.store(row, at, simd.mul(simd.load(row, at), simd.splat(*r)));
                    }
                }
            }
        }
    }
}

struct ScaleAndShift<'a, 'y> {
    norm: LayerNorm<'a>,
    x_hat: View<'a>,
    y: &'a mut ViewMut<'y>,
}

impl Kernel for ScaleAndShift<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (p, (weight, bias)) in self.norm.weight.iter().zip(self.norm.bias).enumerate() {
            for (x, y) in self.x_hat.panel(p).iter().zip(self.y.panel(p)) {
                for at in (0..PANEL).step_by(S::LANES) {
                    simd.store(y, at, simd.fma(simd.load(x, at), simd.load(weight, at), simd.load(bias, at)));
                }
            }
        }
    }
}

struct Backward<'a, 'y> {
    kind: NormKind,
    norm: LayerNorm<'a>,
    x_hat: View<'a>,
    r: &'a [f32],
    dy: &'a mut ViewMut<'y>,
    weight: &'a mut [Row],
    bias: &'a mut [Row],
}

impl Kernel for Backward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let LayerNorm { weight: gamma, columns, .. } = self.norm;
        let scale = 1.0 / columns as f32;
        let all = self.dy.len();
        for start in (0..all).step_by(ROWS) {
            let rows = start..(start + ROWS).min(all);
            // For each row, the sums of g and of g·x̂; for each column, the sums for dγ and dβ.
            let mut sums = [[Sums::zero(simd); 2]; ROWS];
            for (p, gamma) in gamma.iter().enumerate() {
                let (dy, x_hat) = (&self.dy.panel(p)[rows.clone()], &self.x_hat.panel(p)[rows.clone()]);
                for at in (0..PANEL).step_by(S::LANES) {
                    let gamma = simd.load(gamma, at);
                    let mut weight = simd.load(&self.weight[p], at);
                    let mut bias = simd.load(&self.bias[p], at);
                    for ((dy, x_hat), [sum, product]) in dy.iter().zip(x_hat).zip(&mut sums) {
                        let (dy, x_hat) = (simd.load(dy, at), simd.load(x_hat, at));
                        let g = simd.mul(dy, gamma);
                        sum.add(simd, at, g);
                        product.add_product(simd, at, g, x_hat);
                        weight = simd.fma(dy, x_hat, weight);
                        bias = simd.add(bias, dy);
                    }
                    simd.store(&mut self.weight[p], at, weight);
                    simd.store(&mut self.bias[p], at, bias);
                }
            }
            let mut means = [[simd.splat(0.0); 2]; ROWS];
            for (mean, sum) in means.iter_mut().flatten().zip(sums.iter().flatten()) {
                *mean = simd.splat(sum.total(simd) * scale);
            }
            if self.kind == NormKind::Rms {
                means.iter_mut().for_each(|[mean, _]| *mean = simd.splat(0.0));
            }
            for (p, gamma) in gamma.iter().enumerate() {
                let valid = (columns - p * PANEL).min(PANEL);
                let (dy, x_hat) = (&mut self.dy.panel(p)[rows.clone()], &self.x_hat.panel(p)[rows.clone()]);
                for (((dy, x_hat), r), [mean, product]) in
                    dy.iter_mut().zip(x_hat).zip(&self.r[rows.clone()]).zip(means)
                {
                    for at in (0..PANEL).step_by(S::LANES) {
                        let g = simd.mul(simd.load(dy, at), simd.load(gamma, at));
                        let centered = simd.sub(simd.sub(g, mean), simd.mul(simd.load(x_hat, at), product));
                        let dx = simd.mul(centered, simd.splat(*r));
                        simd.store(dy, at, simd.first(valid.saturating_sub(at), dx, simd.splat(0.0)));
                    }
                }
            }
        }
    }
}
