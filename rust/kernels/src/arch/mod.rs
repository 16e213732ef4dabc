//! Vector operations of each instruction set, and the dispatch to the one that was detected.
//!
//! Computations are written once, as a [`Kernel`] over the trait [`Simd`]; [`run`] compiles each for every instruction set
//! and picks one at run time. The capability tokens of [`wordpiece_parallel::instruction_set`] implement [`Simd`]: whoever
//! has one may use the instructions.
//!
//! This module has vectors and the shapes of tiles, and none of the computations. `tile`, `gemm` and the other modules
//! build on it; it imports none of them.
//!
//! Each instruction set does the same operations in the same order within a row, so all have the same bits. Operations on
//! vectors are rounded lane by lane as IEEE 754 says; x·y + z is rounded once; and sums over lanes are [`Sums`], which have 16
//! lanes everywhere. Products of bfloat16 are exempt, which CPUs add up in several ways.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod emulated_tiles;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
mod simd;
mod sums;
mod tile_registers;

#[cfg(target_arch = "x86_64")]
pub use amx::{AmxNumbers, AmxTiles};
#[cfg(test)]
pub(crate) use emulated_tiles::CONFIGURATIONS;
pub use emulated_tiles::{EmulatedNumbers, EmulatedTiles};
pub use scalar::{Portable, Scalar};
pub use simd::{
    ByteDot, ByteTileKernel, COLUMNS, Kernel, MAX_TILE_ROWS, MatrixDot, MultipliedBytes, PairDot, PairMatrixTileKernel,
    PairTileKernel, Simd, TileKernel, WidenedPairs,
};
pub use sums::Sums;
pub use tile_registers::{
    Bfloat16, InputTile, Int8, SumTiles, TILE_REGISTER_ROWS, TileNumbers, TileRegisters, TileUnit, WeightTiles,
};
pub use wordpiece_parallel::InstructionSet;

/// Runs a computation with the instructions of `instruction_set`.
///
/// The dispatch is one branch; a kernel should do enough work to amortize it and a call that is never inlined.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::arch::{InstructionSet, Kernel, Simd, Sums, run};
/// use wordpiece_kernels::{PANEL, Row};
///
/// struct Sum<'a>(&'a Row);
///
/// impl Kernel for Sum<'_> {
///     type Output = f32;
///
///     #[inline(always)]
///     fn run<S: Simd>(self, simd: S) -> f32 {
///         let mut sums = Sums::zero(simd);
///         for at in (0..PANEL).step_by(S::LANES) {
///             sums.add(simd, at, simd.load(self.0, at));
///         }
///         sums.total(simd)
///     }
/// }
///
/// for set in InstructionSet::all_available() {
///     assert_eq!(run(set, Sum(&Row([0.5; PANEL]))), 16.0);
/// }
/// ```
#[inline]
pub fn run<K: Kernel>(instruction_set: InstructionSet, kernel: K) -> K::Output {
    match instruction_set {
        InstructionSet::Scalar => scalar::run(kernel),
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2(token) => token.run(kernel),
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512(token) => token.run(kernel),
        #[cfg(target_arch = "aarch64")]
        InstructionSet::Neon(token) => token.run(kernel),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use wordpiece_parallel::testing::instruction_sets;

    use super::{Kernel, PairDot, PairTileKernel, Simd, run};
    use crate::matrix::{ByteRow, HalfRow, PANEL, PairRow, Row, SumRow};
    use crate::numbers::{GROUP, bf16_to_f32, f32_to_bf16};

    fn panics(f: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(f)).is_err()
    }

    /// Accesses vectors that end beyond a row by one lane, and by so much that `at + LANES` wraps around.
    struct AccessBeyondRow;

    impl Kernel for AccessBeyondRow {
        type Output = bool;

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> bool {
            let is_checked = [GROUP - S::LANES + 1, GROUP, usize::MAX].into_iter().all(|at| {
                let mut bytes = ByteRow::ZERO;
                panics(|| simd.store_bytes(&mut bytes, at, simd.splat(1.0), 0)) && bytes == ByteRow::ZERO
            });
            is_checked
                && [PANEL - S::LANES + 1, PANEL, usize::MAX - S::LANES + 1, usize::MAX].into_iter().all(|at| {
                    let mut row = Row::ZERO;
                    panics(|| _ = simd.load(&row, at))
                        && panics(|| simd.store(&mut row, at, simd.splat(1.0)))
                        && panics(|| _ = simd.load_pairs(&PairRow([0; PANEL]), at))
                        && panics(|| _ = simd.load_integers(&SumRow::ZERO, at))
                        && row == Row::ZERO
                })
        }
    }

    /// As [`AccessBeyondRow`], for the way to multiply pairs that the instruction set chooses; has its name.
    struct LoadPairsBeyondRow(&'static str);

    impl PairTileKernel for LoadPairsBeyondRow {
        fn rows(&self) -> usize {
            1
        }

        #[inline(always)]
        fn run<S: Simd, D: PairDot<S>, const ROWS: usize, const VECTORS: usize>(self, simd: S, dot: D) {
            for at in [PANEL - S::LANES + 1, usize::MAX] {
                let panicked = panics(|| _ = dot.load(simd, &PairRow([0; PANEL]), at));
                assert!(panicked, "{}: loading pairs at {at} did not panic", self.0);
            }
        }
    }

    impl Kernel for LoadPairsBeyondRow {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            simd.run_pair_tile(self);
        }
    }

    /// Rounds the numbers of a row to bytes, then their negatives.
    struct StoreBytes<'a>(&'a Row, u8, &'a mut ByteRow);

    impl Kernel for StoreBytes<'_> {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            for at in (0..PANEL).step_by(S::LANES) {
                let x = simd.load(self.0, at);
                simd.store_bytes(self.2, at, x, self.1);
                simd.store_bytes(self.2, PANEL + at, simd.sub(simd.splat(0.0), x), self.1);
            }
        }
    }

    /// Rounds a row to bfloat16, alone and as the first and the second of a pair.
    struct RoundToHalf<'a>(&'a Row);

    impl Kernel for RoundToHalf<'_> {
        type Output = [[u16; PANEL]; 3];

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> [[u16; PANEL]; 3] {
            let (mut half, mut pairs) = ([HalfRow::ZERO], [PairRow([0; PANEL]); 2]);
            simd.round_rows(&[*self.0], &mut half);
            simd.round_pairs(&[[*self.0, Row::ZERO], [Row::ZERO, *self.0]], &mut pairs);
            [half[0].0, pairs[0].0.map(|pair| pair as u16), pairs[1].0.map(|pair| (pair >> 16) as u16)]
        }
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest_bfloat16_and_subnormal_ones_perhaps_to_0() {
        let step = if cfg!(miri) { 99_990_001 } else { 9_001 };
        let all: Vec<f32> = (0..=u32::MAX).step_by(step).map(f32::from_bits).collect();
        let specials = [f32::INFINITY, f32::MAX, f32::MIN_POSITIVE, 0.0, 1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0];
        let specials = specials.into_iter().flat_map(|x| [x, -x]).chain([f32::NAN, -f32::NAN]).collect::<Vec<_>>();
        for set in instruction_sets() {
            for numbers in all.chunks_exact(PANEL).chain([&[specials.clone(), specials.repeat(2)].concat()[..PANEL]]) {
                let row = Row(numbers.try_into().expect("a row"));
                for rounded in run(set, RoundToHalf(&row)) {
                    for (x, rounded) in row.0.into_iter().zip(rounded) {
                        let (nearest, found) = (bf16_to_f32(f32_to_bf16(x)), bf16_to_f32(rounded));
                        let is_right = match x {
                            x if x.is_nan() => found.is_nan(),
                            x if x.is_subnormal() => found == nearest || found == 0.0,
                            _ => found.to_bits() == nearest.to_bits(),
                        };
                        assert!(is_right, "{}: {x} is rounded to {found}", set.name());
                    }
                }
            }
        }
    }

    #[test]
    fn bytes_are_the_nearest_integers_and_ties_go_to_even() {
        for set in instruction_sets() {
            for start in (-127..=127).step_by(if cfg!(miri) { 32 } else { 1 }).map(|x| x as f32) {
                let x = Row(std::array::from_fn(|i| (start + i as f32 / 8.0).min(127.0)));
                for bias in [0, 128] {
                    let mut bytes = ByteRow::ZERO;
                    run(set, StoreBytes(&x, bias, &mut bytes));
                    for (panel, sign) in bytes.0.chunks(PANEL).zip([1.0, -1.0]) {
                        let expected = x.0.map(|x| (sign * x).round_ties_even() as i8 as u8 ^ bias);
                        assert_eq!(panel, expected, "{}: {sign} times {x:?}", set.name());
                    }
                }
            }
        }
    }

    /// The greatest magnitude of a row.
    struct Greatest<'a>(&'a Row);

    impl Kernel for Greatest<'_> {
        type Output = f32;

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> f32 {
            let mut most = simd.splat(0.0);
            for at in (0..PANEL).step_by(S::LANES) {
                most = simd.max_magnitude(most, simd.load(self.0, at));
            }
            simd.greatest_magnitude(most)
        }
    }

    #[test]
    fn the_greatest_magnitude_of_each_column_is_found_and_nan_is_never_lost() {
        for set in instruction_sets() {
            for column in 0..PANEL {
                for x in [-3.0, 2.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN] {
                    let mut row = Row([1.5; PANEL]);
                    row.0[column] = x;
                    let found = run(set, Greatest(&row));
                    let is_equal = found == x.abs() || (found.is_nan() && x.is_nan());
                    assert!(is_equal, "{}: {found}, not |{x}| in column {column}", set.name());
                }
            }
        }
    }

    #[test]
    fn accesses_beyond_a_row_panic_also_where_the_end_wraps_around() {
        for set in instruction_sets() {
            assert!(run(set, AccessBeyondRow), "{}: an access beyond the row did not panic", set.name());
            run(set, LoadPairsBeyondRow(set.name()));
        }
    }
}
