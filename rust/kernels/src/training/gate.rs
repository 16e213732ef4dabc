//! Products of each two numbers, of which a gated feed-forward network is made: h = f(z)·u.

use crate::arch::{self, InstructionSet, Kernel, Simd};
use crate::matrix::{PANEL, Row};

/// Multiplies each number of `x` by the number of `by` at the same place.
///
/// # Panics
///
/// If the lengths differ.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::training::multiply;
/// use wordpiece_kernels::{InstructionSet, pad_to_panels};
///
/// let mut x = pad_to_panels(&[2.0, 3.0]);
/// multiply(InstructionSet::detect(), &mut x, &pad_to_panels(&[5.0, 7.0]));
/// assert_eq!(x[0].0[..2], [10.0, 21.0]);
/// ```
pub fn multiply(instruction_set: InstructionSet, x: &mut [Row], by: &[Row]) {
    assert!(x.len() == by.len());
    arch::run(instruction_set, Multiply { x, by });
}

struct Multiply<'a> {
    x: &'a mut [Row],
    by: &'a [Row],
}

impl Kernel for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (x, by) in self.x.iter_mut().zip(self.by) {
            for at in (0..PANEL).step_by(S::LANES) {
                simd.store(x, at, simd.mul(simd.load(x, at), simd.load(by, at)));
            }
        }
    }
}
