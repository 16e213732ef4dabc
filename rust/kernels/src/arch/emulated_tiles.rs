//! Tile registers without AMX: the arithmetic of the instructions as their manual defines it, number by number.
//!
//! Intel® 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS and TDPBSSD.

use std::marker::PhantomData;

use super::tile_registers::{
    Bfloat16, ExclusiveUse, InputTile, Int8, SumTiles, TILE_REGISTER_ROWS as ROWS, TileNumbers, TileRegisters,
    WeightTiles,
};
use crate::matrix::{ByteRow, HalfRow, PairRow, QuadRow, Row, SumRow};

/// The groups of 4 bytes of a row, and the sums of a row.
const COLUMNS: usize = 16;

/// One tile register as 16 rows of 16 numbers of 32 bits.
type Register = [[u32; COLUMNS]; ROWS];

/// Eight tile registers in memory, 0 at first.
///
/// A thread has one such value at a time, as where AMX is: code that would break the rule there panics here, too.
pub struct EmulatedTiles<N> {
    registers: Box<[Register; 8]>,
    _exclusive: ExclusiveUse,
    numbers: PhantomData<N>,
}

impl<N> Default for EmulatedTiles<N> {
    /// # Panics
    ///
    /// If this thread has such a value already, of either type of numbers.
    fn default() -> Self {
        let exclusive = ExclusiveUse::new();
        #[cfg(test)]
        CONFIGURATIONS.set(CONFIGURATIONS.get() + 1);
        EmulatedTiles { registers: Box::default(), _exclusive: exclusive, numbers: PhantomData }
    }
}

#[cfg(test)]
thread_local! {
    /// How many values this thread has made: where AMX is, each is a configuration of the registers.
    pub(crate) static CONFIGURATIONS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Numbers whose products are emulated.
pub trait EmulatedNumbers: TileNumbers {
    /// Returns the bytes 4k to 4k + 3 of a row of inputs.
    fn input(row: &Self::Input, k: usize) -> u32;

    /// Returns what belongs to output `n`.
    fn weight(row: &Self::Weight, n: usize) -> u32;

    /// Stores the sum of output `n`.
    fn store(row: &mut Self::Sum, n: usize, sum: u32);

    /// Adds the products of one row of a tile of inputs and all of a tile of weights to a row of sums.
    fn multiply(sums: &mut [u32; COLUMNS], inputs: [u32; COLUMNS], weights: &Register);
}

impl EmulatedNumbers for Bfloat16 {
    fn input(row: &HalfRow, k: usize) -> u32 {
        row.pair(k)
    }

    fn weight(row: &PairRow, n: usize) -> u32 {
        row.0[n]
    }

    fn store(row: &mut Row, n: usize, sum: u32) {
        row.0[n] = f32::from_bits(sum);
    }

    fn multiply(c: &mut [u32; COLUMNS], a: [u32; COLUMNS], b: &Register) {
        let mut sums = [[0.0; COLUMNS]; 2];
        for (a, b) in a.into_iter().zip(b) {
            let a = split(a);
            for (n, b) in b.iter().enumerate() {
                let b = split(*b);
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

impl EmulatedNumbers for Int8 {
    fn input(row: &ByteRow, k: usize) -> u32 {
        row.quad(k)
    }

    fn weight(row: &QuadRow, n: usize) -> u32 {
        u32::from_le_bytes(row.0[n].map(|x| x as u8))
    }

    fn store(row: &mut SumRow, n: usize, sum: u32) {
        row.0[n] = sum as i32;
    }

    fn multiply(c: &mut [u32; COLUMNS], a: [u32; COLUMNS], b: &Register) {
        for (a, b) in a.into_iter().zip(b) {
            let a = a.to_le_bytes();
            for (c, b) in c.iter_mut().zip(b) {
                for (a, b) in a.into_iter().zip(b.to_le_bytes()) {
                    *c = c.wrapping_add((i32::from(a as i8) * i32::from(b as i8)) as u32);
                }
            }
        }
    }
}

impl<N: EmulatedNumbers> TileRegisters for EmulatedTiles<N> {
    type Numbers = N;

    fn zero<const C: usize>(&mut self) {
        self.registers[C] = [[0; COLUMNS]; ROWS];
    }

    fn load_inputs<const A: usize>(&mut self, from: &InputTile<N>) {
        for (to, from) in self.registers[A].iter_mut().zip(from) {
            *to = std::array::from_fn(|k| N::input(from, k));
        }
    }

    fn load_weights<const B: usize, const HALF: usize>(&mut self, from: &WeightTiles<N>) {
        for (to, from) in self.registers[B].iter_mut().zip(from) {
            *to = std::array::from_fn(|n| N::weight(from, COLUMNS * HALF + n));
        }
    }

    fn multiply<const C: usize, const A: usize, const B: usize>(&mut self) {
        let (a, b) = (self.registers[A], self.registers[B]);
        for (c, a) in self.registers[C].iter_mut().zip(a) {
            N::multiply(c, a, &b);
        }
    }

    fn store<const C: usize, const HALF: usize>(&self, to: &mut SumTiles<N>) {
        for (to, from) in to.iter_mut().zip(self.registers[C]) {
            for (n, sum) in from.into_iter().enumerate() {
                N::store(to, COLUMNS * HALF + n, sum);
            }
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
    use crate::matrix::PANEL;
    use crate::numbers::f32_to_bf16;

    /// Multiplies one row of pairs by one column, through registers 0, 1 and 2.
    fn dot(a: &[f32], b: &[f32]) -> f32 {
        let mut tiles = EmulatedTiles::<Bfloat16>::default();
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
    #[cfg_attr(miri, ignore = "emulates thousands of products, in safe code")]
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
    #[cfg_attr(miri, ignore = "emulates thousands of products, in safe code")]
    fn subnormal_numbers_are_zero() {
        let tiny = f32::from_bits(0x0040_0000);
        assert_eq!(dot(&[tiny], &[2f32.powi(100)]), 0.0, "an input");
        assert_eq!(dot(&[2f32.powi(100)], &[-tiny]), 0.0, "a weight");
        assert_eq!(dot(&[2f32.powi(-70)], &[2f32.powi(-60)]), 0.0, "a product");
        assert_eq!(dot(&[2f32.powi(-70)], &[2f32.powi(-56)]), 2f32.powi(-126), "the least normal number");
    }

    #[test]
    #[cfg_attr(miri, ignore = "emulates thousands of products, in safe code")]
    fn products_are_added_to_the_sums_that_are_there() {
        let mut tiles = EmulatedTiles::<Bfloat16>::default();
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

    #[test]
    #[cfg_attr(miri, ignore = "emulates thousands of products, in safe code")]
    fn bytes_are_signed_and_all_64_products_are_added_up_exactly() {
        let mut tiles = EmulatedTiles::<Int8>::default();
        let inputs = std::array::from_fn(|r| ByteRow(std::array::from_fn(|k| (r * 31 + k * 7) as u8)));
        let weight = |k: usize, n: usize| (k * 11 + n * 5) as u8 as i8;
        let weights =
            std::array::from_fn(|k| QuadRow(std::array::from_fn(|n| std::array::from_fn(|i| weight(4 * k + i, n)))));
        tiles.load_inputs::<4>(&inputs);
        tiles.load_weights::<6, 0>(&weights);
        tiles.load_weights::<7, 1>(&weights);
        for times in 1..3 {
            tiles.multiply::<0, 4, 6>();
            tiles.multiply::<1, 4, 7>();
            let mut sums = [SumRow::ZERO; ROWS];
            tiles.store::<0, 0>(&mut sums);
            tiles.store::<1, 1>(&mut sums);
            for (inputs, sums) in inputs.iter().zip(sums) {
                for (n, sum) in sums.0.into_iter().enumerate() {
                    let product = |(k, x): (usize, &u8)| i32::from(*x as i8) * i32::from(weight(k, n));
                    let expected: i32 = inputs.0.iter().enumerate().map(product).sum();
                    assert_eq!(sum, times * expected, "output {n}");
                }
            }
        }
        tiles.zero::<0>();
        let mut sums = [SumRow([1; PANEL]); ROWS];
        tiles.store::<0, 0>(&mut sums);
        assert!(sums.iter().all(|row| row.0[..COLUMNS] == [0; COLUMNS] && row.0[COLUMNS..] == [1; COLUMNS]));
    }

    #[test]
    fn a_thread_has_one_set_of_registers_at_a_time() {
        let panics = |make: fn()| std::panic::catch_unwind(make).is_err();
        let pairs = || drop(EmulatedTiles::<Bfloat16>::default());
        let bytes = || drop(EmulatedTiles::<Int8>::default());
        let tiles = EmulatedTiles::<Bfloat16>::default();
        assert!(panics(pairs) && panics(bytes), "a second one on this thread");
        assert!(panics(pairs), "the refused one did not release the registers of the first");
        std::thread::scope(|scope| assert!(scope.spawn(bytes).join().is_ok(), "another thread has its own"));
        drop(tiles);
        assert!(!panics(bytes) && !panics(pairs), "one after the other");
        let held = || {
            let _tiles = EmulatedTiles::<Int8>::default();
            panic!("while in use");
        };
        assert!(panics(held) && !panics(pairs), "a panic releases them");
    }
}
