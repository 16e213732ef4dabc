//! AdamW and the norm of all gradients, over parameters that are divided into pieces of fixed lengths.

use wordpiece_parallel::map_with;

use crate::arch::{self, Kernel, Simd};
use crate::execution::Execution;

/// Numbers of a piece: the sum of squares of each is computed by one thread.
const PIECE: usize = 1 << 15;

/// What an AdamW step multiplies by and adds, the same for all numbers (Loshchilov and Hutter 2019).
#[derive(Debug, Clone, Copy)]
pub struct AdamW {
    /// What gradients are multiplied by first: the factor of clipping.
    pub factor: f32,
    /// β₁ and β₂.
    pub betas: [f64; 2],
    /// ε.
    pub eps: f64,
    /// η, the learning rate.
    pub rate: f64,
    /// t, the number of the step, from 1 on, if the bias of the moments is corrected.
    pub corrected_step: Option<u64>,
}

/// A parameter, its gradient and its moments.
pub struct AdamWParameter<'a> {
    /// p.
    pub parameter: &'a mut [f32],
    /// g.
    pub gradient: &'a [f32],
    /// m and v.
    pub moments: [&'a mut [f32]; 2],
    /// λ.
    pub decay: f64,
}

/// Returns the sum of the squares of each gradient, in float64 and in an order that depends on its length only.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::training::sums_of_squares;
/// use wordpiece_kernels::{Execution, InstructionSet};
///
/// let execution = Execution::on_this_thread(InstructionSet::detect());
/// assert_eq!(sums_of_squares(execution, &[&[3.0, 4.0], &[]]), [25.0, 0.0]);
/// ```
pub fn sums_of_squares(execution: Execution, gradients: &[&[f32]]) -> Vec<f64> {
    let pieces: Vec<(usize, &[f32])> = gradients
        .iter()
        .enumerate()
        .flat_map(|(number, gradient)| gradient.chunks(PIECE).map(move |piece| (number, piece)))
        .collect();
    let squares = map_with(
        pieces,
        execution.pool,
        || (),
        |(), (number, piece)| (number, arch::run(execution.instruction_set, Squares(piece))),
    );
    let mut sums = vec![0.0; gradients.len()];
    for (number, square) in squares {
        sums[number] += square;
    }
    sums
}

struct Squares<'a>(&'a [f32]);

impl Kernel for Squares<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> f64 {
        // A plain loop over independent sums, which the compiler vectorizes.
        let mut sums = [0.0_f64; 32];
        let (whole, rest) = self.0.as_chunks::<32>();
        for numbers in whole {
            for (sum, x) in sums.iter_mut().zip(numbers) {
                *sum += f64::from(*x) * f64::from(*x);
            }
        }
        for (sum, x) in sums.iter_mut().zip(rest) {
            *sum += f64::from(*x) * f64::from(*x);
        }
        sums.iter().sum()
    }
}

/// Makes one step: g ← factor·g, m ← m + (1 − β₁)(g − m), v ← β₂v + (1 − β₂)g², p ← p·(1 − ηλ), and then
/// p ← p − η/(1 − β₁ᵗ)·m/(√v/√(1 − β₂ᵗ) + ε).
///
/// Without the correction of the bias, it is the optimizer of Google's BERT: p ← p − η·(m/(√v + ε) + λp).
///
/// # Panics
///
/// If the lengths of a parameter, its gradient and its moments differ.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::training::{AdamW, AdamWParameter, adamw};
/// use wordpiece_kernels::{Execution, InstructionSet};
///
/// let execution = Execution::on_this_thread(InstructionSet::detect());
/// let step = AdamW { factor: 1.0, betas: [0.9, 0.999], eps: 0.0, rate: 0.25, corrected_step: Some(1) };
/// let (mut p, mut m, mut v) = ([1.0], [0.0], [0.0]);
/// adamw(execution, step, vec![AdamWParameter { parameter: &mut p, gradient: &[8.0], moments: [&mut m, &mut v], decay: 0.0 }]);
/// assert!((p[0] - 0.75).abs() < 1e-6); // the first step has the length of the learning rate
/// ```
pub fn adamw(execution: Execution, step: AdamW, parameters: Vec<AdamWParameter<'_>>) {
    let mut pieces = Vec::new();
    for AdamWParameter { parameter, gradient, moments: [m, v], decay } in parameters {
        assert!(parameter.len() == gradient.len() && m.len() == v.len() && m.len() == gradient.len());
        let moments = m.chunks_mut(PIECE).zip(v.chunks_mut(PIECE));
        for ((p, g), (m, v)) in parameter.chunks_mut(PIECE).zip(gradient.chunks(PIECE)).zip(moments) {
            pieces.push(Update { p, g, m, v, step, decay });
        }
    }
    map_with(pieces, execution.pool, || (), |(), piece| arch::run(execution.instruction_set, piece));
}

struct Update<'a> {
    p: &'a mut [f32],
    g: &'a [f32],
    m: &'a mut [f32],
    v: &'a mut [f32],
    step: AdamW,
    decay: f64,
}

impl Kernel for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let AdamW { factor, betas: [beta1, beta2], eps, rate, corrected_step } = self.step;
        let power = |beta: f64| corrected_step.map_or(1.0, |t| 1.0 - beta.powf(t as f64));
        let corrected = corrected_step.is_some();
        let kept = if corrected { (1.0 - rate * self.decay) as f32 } else { 1.0 };
        let decay = if corrected { 0.0 } else { (rate * self.decay) as f32 };
        let (rate, root) = ((rate / power(beta1)) as f32, power(beta2).sqrt() as f32);
        let (grow1, beta2, grow2, eps) = ((1.0 - beta1) as f32, beta2 as f32, (1.0 - beta2) as f32, eps as f32);
        // A plain loop, which the compiler vectorizes.
        for (((p, g), m), v) in self.p.iter_mut().zip(self.g).zip(self.m).zip(self.v) {
            let g = g * factor;
            *m += grow1 * (g - *m);
            *v = beta2 * *v + grow2 * (g * g);
            let x = *p * kept;
            *p = x - rate * *m / (v.sqrt() / root + eps) - decay * x;
        }
    }
}
