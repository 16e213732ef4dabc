//! Vector operations of each instruction set, and the dispatch to the one that was detected.
//!
//! Computations are written once, as a [`Kernel`] over the trait [`Simd`]; [`run`] compiles each for every instruction set
//! and picks one at run time. The capability tokens of [`wordpiece_parallel::instruction_set`] implement [`Simd`]: whoever
//! has one may use the instructions.
//!
//! This module has vectors and the shapes of tiles, and none of the computations. `tile`, `gemm` and the other modules
//! build on it; it imports none of them.
//!
//! Each instruction set does the same operations in the same order within a row. They differ in the number of lanes over
//! which a sum is spread and, for [`Scalar`], in rounding products before they are added: results agree to a few units in
//! the last place.

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
mod tile_registers;

#[cfg(target_arch = "x86_64")]
pub use amx::AmxTiles;
pub use emulated_tiles::EmulatedTiles;
pub use scalar::Scalar;
pub use simd::{Kernel, MAX_TILE_ROWS, PairDot, PairTileKernel, Simd, TileKernel, WidenedPairs};
pub use tile_registers::{InputTile, SumTiles, TILE_REGISTER_ROWS, TileRegisters, TileUnit, WeightTiles};
pub use wordpiece_parallel::InstructionSet;

/// Runs a computation with the instructions of `instruction_set`.
///
/// The dispatch is one branch; a kernel should do enough work to amortize it and a call that is never inlined.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::arch::{InstructionSet, Kernel, Simd, run};
/// use wordpiece_kernels::{PANEL, Row};
///
/// struct Sum<'a>(&'a Row);
///
/// impl Kernel for Sum<'_> {
///     type Output = f32;
///
///     #[inline(always)]
///     fn run<S: Simd>(self, simd: S) -> f32 {
///         let mut sums = simd.splat(0.0);
///         for at in (0..PANEL).step_by(S::LANES) {
///             sums = simd.add(sums, simd.load(self.0, at));
///         }
///         simd.sum(sums)
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
        InstructionSet::Scalar => Scalar.run(kernel),
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
    use crate::matrix::{PANEL, PairRow, Row};

    fn panics(f: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(f)).is_err()
    }

    /// Accesses vectors that end beyond a row by one lane, and by so much that `at + LANES` wraps around.
    struct AccessBeyondRow;

    impl Kernel for AccessBeyondRow {
        type Output = bool;

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> bool {
            [PANEL - S::LANES + 1, PANEL, usize::MAX - S::LANES + 1, usize::MAX].into_iter().all(|at| {
                let mut row = Row::ZERO;
                panics(|| _ = simd.load(&row, at))
                    && panics(|| simd.store(&mut row, at, simd.splat(1.0)))
                    && panics(|| _ = simd.load_pairs(&PairRow([0; PANEL]), at))
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

    #[test]
    fn accesses_beyond_a_row_panic_also_where_the_end_wraps_around() {
        for set in instruction_sets() {
            assert!(run(set, AccessBeyondRow), "{}: an access beyond the row did not panic", set.name());
            run(set, LoadPairsBeyondRow(set.name()));
        }
    }
}
