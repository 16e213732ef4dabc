//! Tile registers without AMX: the arithmetic of the instruction as its manual defines it, number by number.
//!
//! Intel® 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS.

use super::tile_registers::{InputTile, SumTiles, TILE_REGISTER_ROWS as ROWS, TileRegisters, WeightTiles};

/// The pairs of a row, and the sums of a row.
const COLUMNS: usize = 16;

/// One tile register as 16 rows of 16 numbers of 32 bits.
type Register = [[u32; COLUMNS]; ROWS];

/// Eight tile registers in memory, 0 at first.
#[derive(Default)]
pub struct EmulatedTiles([Register; 8]);

impl TileRegisters for EmulatedTiles {
    fn zero<const C: usize>(&mut self) {
        self.0[C] = [[0; COLUMNS]; ROWS];
    }

    fn load_inputs<const A: usize>(&mut self, from: &InputTile) {
        for (to, from) in self.0[A].iter_mut().zip(from) {
            for (k, to) in to.iter_mut().enumerate() {
                *to = from.pair(k);
            }
        }
    }

    fn load_weights<const B: usize, const HALF: usize>(&mut self, from: &WeightTiles) {
        for (to, from) in self.0[B].iter_mut().zip(from) {
            to.copy_from_slice(&from.0[COLUMNS * HALF..][..COLUMNS]);
        }
    }

    fn multiply<const C: usize, const A: usize, const B: usize>(&mut self) {
        let (a, b) = (self.0[A], self.0[B]);
        for (c, a) in self.0[C].iter_mut().zip(a) {
            let mut sums = [[0.0; COLUMNS]; 2];
            for (a, b) in a.into_iter().zip(b) {
                let a = split(a);
                for (n, b) in b.into_iter().enumerate() {
                    let b = split(b);
                    for (sums, (a, b)) in sums.iter_mut().zip(a.into_iter().zip(b)) {
                        sums[n] = flush(a.mul_add(b, sums[n]));
                    }
                }
            }
            for (n, c) in c.iter_mut().enumerate() {
                let both = flush(sums[0][n] + sums[1][n]);
                *c = flush(flush(f32::from_bits(*c)) + both).to_bits();
            }
        }
    }

    fn store<const C: usize, const HALF: usize>(&self, to: &mut SumTiles) {
        for (to, from) in to.iter_mut().zip(self.0[C]) {
            to.0[COLUMNS * HALF..][..COLUMNS].copy_from_slice(&from.map(f32::from_bits));
        }
    }
}

/// Widens a pair of bfloat16 numbers, the first in the lower half, subnormal ones to 0.
fn split(pair: u32) -> [f32; 2] {
    [flush(f32::from_bits(pair << 16)), flush(f32::from_bits(pair & 0xffff_0000))]
}

/// Replaces a subnormal number by 0 of the same sign.
fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{HalfRow, PANEL, PairRow, Row};
    use crate::numbers::f32_to_bf16;

    /// Multiplies one row of pairs by one column, through registers 0, 1 and 2.
    fn dot(a: &[f32], b: &[f32]) -> f32 {
        let mut tiles = EmulatedTiles::default();
        let (mut inputs, mut weights) = ([HalfRow::ZERO; ROWS], [PairRow([0; PANEL]); ROWS]);
        for (k, (a, b)) in a.iter().zip(b).enumerate() {
            inputs[3].0[k] = f32_to_bf16(*a);
            weights[k / 2].0[COLUMNS + 5] |= u32::from(f32_to_bf16(*b)) << (k % 2 * 16);
        }
        tiles.zero::<0>();
        tiles.load_inputs::<1>(&inputs);
        tiles.load_weights::<2, 1>(&weights);
        tiles.multiply::<0, 1, 2>();
        let mut sums = [Row::ZERO; ROWS];
        tiles.store::<0, 1>(&mut sums);
        for (r, row) in sums.iter().enumerate() {
            for (n, x) in row.0.iter().enumerate() {
                assert!((r, n) == (3, COLUMNS + 5) || *x == 0.0, "only one row and one column have numbers");
            }
        }
        sums[3].0[COLUMNS + 5]
    }

    #[test]
    fn sums_of_even_and_odd_products_are_separate_and_added_last() {
        assert_eq!(dot(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 32.0);
        // 2²⁵ + 1 − 2²⁵: first to last in one sum it would be 0; the 1 is an odd product, and is added in the end.
        let big = 2f32.powi(25);
        assert_eq!(dot(&[big, 1.0, -big], &[1.0, 1.0, 1.0]), 1.0);
        // As an even product, the 1 is lost against 2²⁵.
        assert_eq!(dot(&[big, 0.0, 1.0, 0.0, -big], &[1.0; 5]), 0.0);
        // Above 2²⁴ the numbers are even: 2²⁴ + 1 + 2⁻⁷ is nearer to 2²⁴ + 2.
        assert_eq!(dot(&[2f32.powi(24), 0.0, 1.0 + 2f32.powi(-7)], &[1.0; 3]), 2f32.powi(24) + 2.0);
        assert_eq!(dot(&[2f32.powi(24), 0.0, 1.0], &[1.0; 3]), 2f32.powi(24), "ties go to even");
    }

    #[test]
    fn subnormal_numbers_are_zero() {
        let tiny = f32::from_bits(0x0040_0000);
        assert_eq!(dot(&[tiny], &[2f32.powi(100)]), 0.0, "an input");
        assert_eq!(dot(&[2f32.powi(100)], &[-tiny]), 0.0, "a weight");
        assert_eq!(dot(&[2f32.powi(-70)], &[2f32.powi(-60)]), 0.0, "a product");
        assert_eq!(dot(&[2f32.powi(-70)], &[2f32.powi(-56)]), 2f32.powi(-126), "the least normal number");
    }

    #[test]
    fn products_are_added_to_the_sums_that_are_there() {
        let mut tiles = EmulatedTiles::default();
        let one = [HalfRow([f32_to_bf16(1.0); PANEL]); ROWS];
        let pair = u32::from(f32_to_bf16(1.0)) * 0x1_0001;
        tiles.load_inputs::<6>(&one);
        tiles.load_weights::<7, 0>(&[PairRow([pair; PANEL]); ROWS]);
        for _ in 0..3 {
            tiles.multiply::<4, 6, 7>();
        }
        let mut sums = [Row::ZERO; ROWS];
        tiles.store::<4, 0>(&mut sums);
        assert!(sums.iter().all(|row| row.0[..COLUMNS] == [96.0; COLUMNS] && row.0[COLUMNS..] == [0.0; COLUMNS]));
    }
}
