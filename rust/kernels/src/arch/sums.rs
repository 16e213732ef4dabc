//! Sums over the columns of rows, with the same bits on every instruction set.

use super::simd::Simd;

/// The lanes of a sum.
const LANES: usize = 16;

/// The most vectors that make up the lanes: those of NEON have 4 numbers.
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

#[cfg(test)]
mod tests {
    use wordpiece_parallel::testing::instruction_sets;

    use super::super::scalar::Portable;
    use super::super::{Kernel, Simd, run};
    use super::{LANES, Sums};
    use crate::matrix::{PANEL, Row};

    /// The sum of the numbers of rows and of their squares.
    struct Totals<'a>(&'a [Row]);

    impl Kernel for Totals<'_> {
        type Output = [u32; 2];

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> [u32; 2] {
            let mut sums = [Sums::zero(simd); 2];
            for row in self.0 {
                for at in (0..PANEL).step_by(S::LANES) {
                    let x = simd.load(row, at);
                    sums[0].add(simd, at, x);
                    sums[1].add_product(simd, at, x, x);
                }
            }
            sums.map(|sums| sums.total(simd).to_bits())
        }
    }

    /// The order that the documentation has.
    fn expected(rows: &[Row]) -> [u32; 2] {
        let mut sums = [[0.0_f32; LANES]; 2];
        for (column, x) in rows.iter().flat_map(|row| row.0).enumerate() {
            sums[0][column % LANES] += x;
            sums[1][column % LANES] = x.mul_add(x, sums[1][column % LANES]);
        }
        sums.map(|mut sums| {
            for apart in [8, 4, 2, 1] {
                for i in 0..apart {
                    sums[i] += sums[i + apart];
                }
            }
            sums[0].to_bits()
        })
    }

    /// Vectors of 4, 8 and 16 numbers are emulated, so that this is tested without NEON and AVX-512, too.
    #[test]
    fn sums_have_the_same_bits_for_every_length_of_vectors() {
        let mut state = 7_u32;
        for count in [1, 2, 3, 12, 48] {
            let rows: Vec<Row> = (0..count)
                .map(|_| {
                    Row(std::array::from_fn(|_| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
                    }))
                })
                .collect();
            let expected = expected(&rows);
            assert_eq!(Portable::<4, false>::on_any_cpu().run(Totals(&rows)), expected, "4 lanes");
            assert_eq!(Portable::<8, false>::on_any_cpu().run(Totals(&rows)), expected, "8 lanes");
            assert_eq!(Portable::<16, false>::on_any_cpu().run(Totals(&rows)), expected, "16 lanes");
            for set in instruction_sets() {
                assert_eq!(run(set, Totals(&rows)), expected, "{}", set.name());
            }
        }
    }
}
