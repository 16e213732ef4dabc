//! Activation functions, and the approximations of exp, erf and tanh that they use.
//!
//! The approximations are minimax fits of polynomials and rational functions (Lawson's iteration over least squares),
//! computed for this crate. Each activation is within a few units in the last place of its definition, which the tests
//! check on every instruction set. NaN stays NaN.

use crate::arch::{self, InstructionSet, Kernel, Simd};
use crate::matrix::{PANEL, Row};

/// An activation function; the names are the same as in `wordpiece_bert.bert.functional`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// x: no activation.
    Identity,
    /// x·½(1 + erf(x/√2)), the exact GELU: BERT's activation.
    Gelu,
    /// ½x(1 + tanh(√(2/π)(x + 0.044715x³))), the approximation of GELU in the original BERT code.
    GeluTanh,
    /// x·σ(1.702x), a coarser approximation of GELU.
    QuickGelu,
    /// max(x, 0).
    Relu,
    /// x·σ(x), also called swish.
    Silu,
    /// tanh(x), BERT's activation in the pooler.
    Tanh,
    /// σ(x) = 1/(1 + exp(−x)).
    Sigmoid,
    /// x·tanh(ln(1 + exp(x))).
    Mish,
}

impl Activation {
    /// All activations.
    pub const ALL: [Activation; 9] = [
        Activation::Identity,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::QuickGelu,
        Activation::Relu,
        Activation::Silu,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::Mish,
    ];
}

/// Applies an activation to every number, padding columns included, in place.
///
/// The padding columns of an activated matrix are 0 only if the activation maps 0 to 0: all do but `Sigmoid`.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::activation::{Activation, apply};
/// use wordpiece_kernels::{InstructionSet, pad_to_panels};
///
/// let mut rows = pad_to_panels(&[-1.0, 0.0, 2.0]);
/// apply(InstructionSet::detect(), Activation::Relu, &mut rows);
/// assert_eq!(rows[0].0[..3], [0.0, 0.0, 2.0]);
/// ```
pub fn apply(instruction_set: InstructionSet, activation: Activation, rows: &mut [Row]) {
    arch::run(instruction_set, ApplyActivation { activation, rows });
}

struct ApplyActivation<'a> {
    activation: Activation,
    rows: &'a mut [Row],
}

impl Kernel for ApplyActivation<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        apply_with(simd, self.activation, self.rows);
    }
}

/// Applies an activation within another kernel; as [`apply`].
#[inline(always)]
pub fn apply_with<S: Simd>(simd: S, activation: Activation, rows: &mut [Row]) {
    /// The loop around a formula. A macro, because a closure would be compiled without the features of the instruction set.
    macro_rules! each {
        ($x:ident => $formula:expr) => {
            for row in rows {
                for at in (0..PANEL).step_by(S::LANES) {
                    let $x = simd.load(row, at);
                    simd.store(row, at, $formula);
                }
            }
        };
    }
    match activation {
        Activation::Identity => {}
        Activation::Gelu => each!(x => gelu(simd, x)),
        Activation::GeluTanh => each!(x => gelu_tanh(simd, x)),
        Activation::QuickGelu => each!(x => simd.mul(x, sigmoid(simd, simd.mul(x, simd.splat(1.702))))),
        Activation::Relu => each!(x => simd.max(simd.splat(0.0), x)),
        Activation::Silu => each!(x => simd.mul(x, sigmoid(simd, x))),
        Activation::Tanh => each!(x => tanh(simd, x)),
        Activation::Sigmoid => each!(x => sigmoid(simd, x)),
        Activation::Mish => each!(x => mish(simd, x)),
    }
}

/// Returns c₀ + c₁x + c₂x² + …, by Horner's rule.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(simd: S, x: S::V, coefficients: [f32; N]) -> S::V {
    let mut y = simd.splat(coefficients[N - 1]);
    for c in coefficients[..N - 1].iter().rev() {
        y = simd.fma(y, x, simd.splat(*c));
    }
    y
}

/// Returns exp(x) for x ≤ 88. Below −87.3, where the result would no longer be a normal number, it is exp(−87.3).
#[inline(always)]
pub fn exp<S: Simd>(simd: S, x: S::V) -> S::V {
    // x = n·ln 2 + r with |r| ≤ ½ ln 2. ln 2 has two parts, the first with so few bits that n times it is exact.
    const LN2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    // (exp(r) − 1 − r)/r², within 3e-9 of exp(r).
    const P: [f32; 5] = [0.499_999_93, 0.166_665_2, 0.041_668_393, 0.008_368_78, 0.001_381_446_7];
    let x = simd.max(simd.splat(-87.3), x);
    let n = simd.round(simd.mul(x, simd.splat(std::f32::consts::LOG2_E)));
    let r = simd.fma(n, simd.splat(-LN2[0]), x);
    let r = simd.fma(n, simd.splat(-LN2[1]), r);
    let p = polynomial(simd, r, P);
    let y = simd.add(simd.fma(simd.mul(r, r), p, r), simd.splat(1.0));
    simd.scale_by_pow2(y, n)
}

/// Returns erf(z) within 1e-7, for |z| ≤ 4.
#[inline(always)]
pub(crate) fn erf<S: Simd>(simd: S, z: S::V) -> S::V {
    // z·P(z²)/Q(z²) with these very numbers, within 2.6e-8 up to 4. A fit that is rounded afterwards is 1.5e-7 off, nearly
    // always to one side.
    const P: [f32; 6] =
        [std::f32::consts::FRAC_2_SQRT_PI, 0.193_722_98, 0.053_126_156, 0.003_890_481_5, 2.846_061e-4, 1.984_255e-6];
    const Q: [f32; 6] = [1.0, 0.505_015_43, 0.115_423_76, 0.015_222_757, 0.001_187_013_6, 3.739_519_5e-5];
    let t = simd.mul(z, z);
    simd.div(simd.mul(z, polynomial(simd, t, P)), polynomial(simd, t, Q))
}

/// Returns x·½(1 + erf(x/√2)).
#[inline(always)]
fn gelu<S: Simd>(simd: S, x: S::V) -> S::V {
    let limit = simd.splat(4.0);
    let z = simd.mul(x, simd.splat(std::f32::consts::FRAC_1_SQRT_2));
    let clipped = simd.min(limit, simd.max(simd.splat(-4.0), z));
    let half = simd.mul(simd.splat(0.5), x);
    let y = simd.fma(half, erf(simd, clipped), half);
    // Beyond ±4 the error of erf at the clip, 1.5e-8, would be multiplied by x.
    let y = simd.where_less(z, simd.splat(-4.0), simd.splat(0.0), y);
    simd.where_less(limit, z, x, y)
}

/// Returns tanh(x) within 1e-7.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(simd: S, x: S::V) -> S::V {
    // x·P(x²)/Q(x²), within 2.1e-8 of tanh(x) up to 9, where it is 1.
    const P: [f32; 5] = [1.0, 0.133_810_25, 0.003_495_587_6, 2.060_907_3e-5, 1.335_464_7e-8];
    const Q: [f32; 5] = [1.0, 0.467_143_4, 0.025_876_98, 3.285_634e-4, 7.776_552_7e-7];
    let one = simd.splat(1.0);
    let limit = simd.splat(9.0);
    let x = simd.min(limit, simd.max(simd.splat(-9.0), x));
    let t = simd.mul(x, x);
    let y = simd.div(simd.mul(x, polynomial(simd, t, P)), polynomial(simd, t, Q));
    simd.min(one, simd.max(simd.splat(-1.0), y))
}

/// Returns σ(x) = 1/(1 + exp(−x)).
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(simd: S, x: S::V) -> S::V {
    let one = simd.splat(1.0);
    // exp(87) is finite. Below −87, σ is set to 0, so that its product with any x is 0 as well.
    let minus = simd.min(simd.splat(87.0), simd.sub(simd.splat(0.0), x));
    let y = simd.div(one, simd.add(one, exp(simd, minus)));
    simd.where_less(x, simd.splat(-87.0), simd.splat(0.0), y)
}

/// Returns ½x(1 + tanh(u)) = x·σ(2u) with u = √(2/π)(x + 0.044715x³).
#[inline(always)]
fn gelu_tanh<S: Simd>(simd: S, x: S::V) -> S::V {
    const TWICE_ROOT: f32 = 1.595_769; // 2√(2/π)
    let cubic = simd.fma(simd.mul(x, x), simd.splat(0.044_715 * TWICE_ROOT), simd.splat(TWICE_ROOT));
    simd.mul(x, sigmoid(simd, simd.mul(x, cubic)))
}

/// Returns x·tanh(ln(1 + exp(x))) = x·n/(n + 2) with n = e(e + 2), e = exp(x).
#[inline(always)]
fn mish<S: Simd>(simd: S, x: S::V) -> S::V {
    // From 20 on the factor rounds to 1, and e² is far from overflowing.
    let e = exp(simd, simd.min(simd.splat(20.0), x));
    let n = simd.mul(e, simd.add(e, simd.splat(2.0)));
    let factor = simd.div(n, simd.add(n, simd.splat(2.0)));
    simd.mul(x, simd.where_less(x, simd.splat(-87.0), simd.splat(0.0), factor))
}
