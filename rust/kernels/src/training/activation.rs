//! The gradient of the activations: dz = dh·f′(z) for h = f(z).
//!
//! The forward pass keeps z only; h, which the gradient of the next weight needs, is computed again beside f′, with which it
//! shares most of its work.

use std::f32::consts::FRAC_1_SQRT_2;

use crate::activation::{Activation, erf, exp, sigmoid, tanh};
use crate::arch::{self, InstructionSet, Kernel, Simd};
use crate::matrix::{PANEL, Row};

/// Replaces dh in `gradient` by dz = dh·f′(z), and writes h = f(z) to `h`.
///
/// # Panics
///
/// If the lengths differ.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::activation::Activation;
/// use wordpiece_kernels::training::activation_backward;
/// use wordpiece_kernels::{InstructionSet, pad_to_panels};
///
/// let z = pad_to_panels(&[-1.0, 2.0]);
/// let (mut gradient, mut h) = (pad_to_panels(&[5.0, 7.0]), pad_to_panels(&[0.0, 0.0]));
/// activation_backward(InstructionSet::detect(), Activation::Relu, &z, &mut gradient, &mut h);
/// assert_eq!(gradient[0].0[..2], [0.0, 7.0]);
/// assert_eq!(h[0].0[..2], [0.0, 2.0]);
/// ```
pub fn activation_backward(
    instruction_set: InstructionSet,
    activation: Activation,
    z: &[Row],
    gradient: &mut [Row],
    h: &mut [Row],
) {
    assert!(z.len() == gradient.len() && z.len() == h.len());
    arch::run(instruction_set, Backward { activation, z, gradient, h });
}

struct Backward<'a> {
    activation: Activation,
    z: &'a [Row],
    gradient: &'a mut [Row],
    h: &'a mut [Row],
}

impl Kernel for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
        /// The loop around a formula for [f(x), f′(x)]. A macro for the reason given in `activation::apply_with`.
        macro_rules! each {
            ($x:ident => $formula:expr) => {
                for ((z, gradient), h) in self.z.iter().zip(self.gradient).zip(self.h) {
                    for at in (0..PANEL).step_by(S::LANES) {
                        let $x = simd.load(z, at);
                        let [value, slope] = $formula;
                        simd.store(h, at, value);
                        simd.store(gradient, at, simd.mul(simd.load(gradient, at), slope));
                    }
                }
            };
        }
        match self.activation {
            Activation::Identity => each!(x => [x, one]),
            Activation::Gelu => each!(x => gelu(simd, x)),
            Activation::GeluTanh => each!(x => gelu_tanh(simd, x)),
            Activation::QuickGelu => each!(x => {
                let factor = simd.splat(1.702);
                swish(simd, x, simd.mul(factor, x), factor)
            }),
            Activation::Relu => each!(x => [simd.max(zero, x), simd.where_less(zero, x, one, zero)]),
            Activation::Silu => each!(x => swish(simd, x, x, one)),
            Activation::Tanh => each!(x => {
                let t = tanh(simd, x);
                [t, simd.sub(one, simd.mul(t, t))]
            }),
            Activation::Sigmoid => each!(x => {
                let s = sigmoid(simd, x);
                [s, simd.mul(s, simd.sub(one, s))]
            }),
            Activation::Mish => each!(x => mish(simd, x)),
        }
    }
}

/// x·Φ(x) and Φ(x) + x·φ(x), with Φ(x) = ½(1 + erf(x/√2)) and φ(x) = exp(−x²/2)/√(2π).
#[inline(always)]
fn gelu<S: Simd>(simd: S, x: S::V) -> [S::V; 2] {
    const ROOT: f32 = 0.398_942_3; // 1/√(2π)
    let (limit, zero, one) = (simd.splat(4.0), simd.splat(0.0), simd.splat(1.0));
    let z = simd.mul(x, simd.splat(FRAC_1_SQRT_2));
    let clipped = simd.min(limit, simd.max(simd.splat(-4.0), z));
    let half = simd.splat(0.5);
    let phi = simd.fma(half, erf(simd, clipped), half);
    let phi = simd.where_less(z, simd.splat(-4.0), zero, simd.where_less(limit, z, one, phi));
    // Beyond ±20 the density is 0, and x² would overflow at last.
    let near = simd.min(simd.splat(20.0), simd.max(simd.splat(-20.0), x));
    let density = exp(simd, simd.mul(simd.mul(near, near), simd.splat(-0.5)));
    [simd.mul(x, phi), simd.fma(simd.mul(near, simd.splat(ROOT)), density, phi)]
}

/// x·σ(w) and (x·σ(w))′ = σ·(1 + x·w′·(1 − σ)), for w and its derivative `slope` at x.
#[inline(always)]
fn swish<S: Simd>(simd: S, x: S::V, w: S::V, slope: S::V) -> [S::V; 2] {
    let one = simd.splat(1.0);
    let s = sigmoid(simd, w);
    // Beyond ±100, σ is 0 or 1, and x·w′ might overflow.
    let near = simd.min(simd.splat(100.0), simd.max(simd.splat(-100.0), x));
    let inner = simd.mul(simd.mul(near, slope), simd.sub(one, s));
    [simd.mul(x, s), simd.fma(s, inner, s)]
}

/// ½x(1 + tanh(u)) = x·σ(2u) with u = √(2/π)(x + 0.044715x³).
#[inline(always)]
fn gelu_tanh<S: Simd>(simd: S, x: S::V) -> [S::V; 2] {
    const TWICE_ROOT: f32 = 1.595_769; // 2√(2/π)
    // Beyond ±20, σ is 0 or 1 to the last bit.
    let near = simd.min(simd.splat(20.0), simd.max(simd.splat(-20.0), x));
    let square = simd.mul(near, near);
    let cubic = simd.fma(square, simd.splat(0.044_715 * TWICE_ROOT), simd.splat(TWICE_ROOT));
    let slope = simd.fma(square, simd.splat(3.0 * 0.044_715 * TWICE_ROOT), simd.splat(TWICE_ROOT));
    let [_, slope] = swish(simd, near, simd.mul(near, cubic), slope);
    [simd.mul(x, sigmoid(simd, simd.mul(near, cubic))), slope]
}

/// x·t and t + x·σ(x)·(1 − t²), with t = tanh(ln(1 + exp(x))) = n/(n + 2), n = e(e + 2), e = exp(x).
#[inline(always)]
fn mish<S: Simd>(simd: S, x: S::V) -> [S::V; 2] {
    let (one, two) = (simd.splat(1.0), simd.splat(2.0));
    // From 20 on t rounds to 1, and e² is far from overflowing.
    let e = exp(simd, simd.min(simd.splat(20.0), x));
    let n = simd.mul(e, simd.add(e, two));
    let t = simd.where_less(x, simd.splat(-87.0), simd.splat(0.0), simd.div(n, simd.add(n, two)));
    let rest = simd.mul(simd.mul(x, sigmoid(simd, x)), simd.sub(one, simd.mul(t, t)));
    [simd.mul(x, t), simd.add(t, rest)]
}
