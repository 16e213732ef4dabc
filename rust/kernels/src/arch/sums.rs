//! Sums over the columns of rows, with the same bits on every instruction set.

use super::simd::Simd;

/// The lanes of a sum.
const LANES: usize = 16;

/// The most vectors that make up the lanes: vectors of NEON have 4 numbers.
const VECTORS: usize = LANES / 4;

/// A sum over the columns of a row in 16 lanes, whatever vectors an instruction set has: lane i adds up the columns i, i + 16,
/// i + 32, …, in this order.
#[derive(Clone, Copy)]
pub struct Sums<S: Simd>([S::V; VECTORS]);

impl<S: Simd> Sums<S> {
    /// Returns sums of 0.
    #[inline(always)]
    pub fn zero(simd: S) -> Sums<S> {
        const { assert!(matches!(S::LANES, 4 | 8 | 16)) };
        Sums([simd.splat(0.0); VECTORS])
    }

    /// The lanes of the columns `at..at + S::LANES`.
    #[inline(always)]
    fn lanes(&mut self, at: usize) -> &mut S::V {
        &mut self.0[at / S::LANES % (LANES / S::LANES)]
    }

    /// Adds `x`, which belongs to the columns `at..at + S::LANES`.
    #[inline(always)]
    pub fn add(&mut self, simd: S, at: usize, x: S::V) {
        let lanes = self.lanes(at);
        *lanes = simd.add(*lanes, x);
    }

    /// Adds x·y, which belongs to the columns `at..at + S::LANES`.
    #[inline(always)]
    pub fn add_product(&mut self, simd: S, at: usize, x: S::V, y: S::V) {
        let lanes = self.lanes(at);
        *lanes = simd.fma(x, y, *lanes);
    }

    /// Returns the sum of all lanes: those that are 8 apart are added, of these sums those that are 4 apart, then 2, then 1.
    #[inline(always)]
    pub fn total(self, simd: S) -> f32 {
        let [a, b, c, d] = self.0;
        simd.sum(match S::LANES {
            4 => simd.add(simd.add(a, c), simd.add(b, d)),
            8 => simd.add(a, b),
            _ => a,
        })
    }
}
