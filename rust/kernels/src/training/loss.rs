//! The cross entropy of the masked-language head, whose logits are the largest matrix of a step.

use wordpiece_parallel::map_with;

use crate::activation::exp;
use crate::arch::{self, Kernel, Simd, Sums};
use crate::execution::Execution;
use crate::matrix::{PANEL, Row};

/// Replaces logits [rows, classes] by the gradient of their mean cross entropy, (softmax − onehot)/rows; returns the mean of
/// −ln p\[label\], summed in float64 in the order of the rows.
///
/// # Panics
///
/// If a label is not a class, or the shapes do not agree.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::training::cross_entropy;
/// use wordpiece_kernels::{Execution, InstructionSet};
///
/// let mut logits = [1.0, 1.0];
/// let loss = cross_entropy(Execution::on_this_thread(InstructionSet::detect()), &mut logits, &[1]);
/// assert!((loss - 2f64.ln()).abs() < 1e-6);
/// assert_eq!(logits, [0.5, -0.5]);
/// ```
pub fn cross_entropy(execution: Execution, logits: &mut [f32], labels: &[usize]) -> f64 {
    let rows = labels.len().max(1);
    assert!(logits.len().is_multiple_of(rows));
    let classes = (logits.len() / rows).max(1);
    let each_row = logits.chunks_exact_mut(classes).zip(labels).collect();
    let losses = map_with(
        each_row,
        execution.pool,
        || (),
        |(), (logits, label)| {
            arch::run(execution.instruction_set, OfRow { logits, label: *label, scale: 1.0 / rows as f32 })
        },
    );
    losses.iter().sum::<f64>() / rows as f64
}

struct OfRow<'a> {
    logits: &'a mut [f32],
    label: usize,
    scale: f32,
}

impl Kernel for OfRow<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        let OfRow { logits, label, scale } = self;
        let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let of_label = logits[label];
        let mut sums = Sums::zero(simd);
        for numbers in logits.chunks_mut(PANEL) {
            let mut row = Row([f32::NEG_INFINITY; PANEL]);
            row.0[..numbers.len()].copy_from_slice(numbers);
            for at in (0..PANEL).step_by(S::LANES) {
                let e = exp(simd, simd.sub(simd.load(&row, at), simd.splat(most)));
                let e = simd.first(numbers.len().saturating_sub(at), e, simd.splat(0.0));
                sums.add(simd, at, e);
                simd.store(&mut row, at, e);
            }
            numbers.copy_from_slice(&row.0[..numbers.len()]);
        }
        let sum = sums.total(simd);
        let factor = scale / sum;
        logits.iter_mut().for_each(|x| *x *= factor);
        logits[label] -= scale;
        f64::from(most) - f64::from(of_label) + f64::from(sum).ln()
    }
}
