//! Instruction sets: what each does in its own way, and the choice between them.
//!
//! The kernels are written once, over the trait [`Simd`]; each instruction set is a type that can be had only where the CPU
//! has it. All do the same operations in the same order within a row. They differ in the number of lanes over which a sum
//! is spread and, for [`scalar`], in rounding products: results agree to a few units in the last place.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::gemm::{PairTile, Tile};
use crate::matrix::{PairRow, Row};

/// Vectors of float32, and the tile of a matrix product.
///
/// A value of a type that has this trait is the proof that the CPU has the instructions.
pub trait Simd: Copy + Send + Sync {
    /// A vector.
    type V: Copy;

    /// Numbers in a vector: a divisor of 32.
    const LANES: usize;

    /// Most rows of a tile.
    const TILE: usize;

    /// `x` in all lanes.
    fn splat(self, x: f32) -> Self::V;
    /// The columns of a row from `at` on.
    fn load(self, row: &Row, at: usize) -> Self::V;
    /// Writes the columns of a row from `at` on.
    fn store(self, row: &mut Row, at: usize, x: Self::V);
    /// x + y.
    fn add(self, x: Self::V, y: Self::V) -> Self::V;
    /// x − y.
    fn sub(self, x: Self::V, y: Self::V) -> Self::V;
    /// x·y.
    fn mul(self, x: Self::V, y: Self::V) -> Self::V;
    /// x/y.
    fn div(self, x: Self::V, y: Self::V) -> Self::V;
    /// x·y + z, rounded once where the CPU can.
    fn fma(self, x: Self::V, y: Self::V, z: Self::V) -> Self::V;
    /// The greater; `y` where one is NaN.
    fn max(self, x: Self::V, y: Self::V) -> Self::V;
    /// The smaller; `y` where one is NaN.
    fn min(self, x: Self::V, y: Self::V) -> Self::V;
    /// To the nearest integer.
    fn round(self, x: Self::V) -> Self::V;
    /// 2ⁿ for integers from −126 to 127.
    fn pow2(self, n: Self::V) -> Self::V;
    /// `a` where x < y, else `b`.
    fn where_less(self, x: Self::V, y: Self::V, a: Self::V, b: Self::V) -> Self::V;
    /// The first `n` lanes of `a`, the others of `b`.
    fn first(self, n: usize, a: Self::V, b: Self::V) -> Self::V;
    /// The sum of all lanes, in an order of its own that is always the same.
    fn sum(self, x: Self::V) -> f32;
    /// The greatest of all lanes.
    fn greatest(self, x: Self::V) -> f32;

    /// The first and the second bfloat16 of the pairs from `at` on, widened.
    fn load_pairs(self, row: &PairRow, at: usize) -> [Self::V; 2];

    /// One tile of a matrix product, as [`crate::gemm::multiply_tile`].
    fn tile(self, tile: Tile<'_>);
    /// One tile of a product of bfloat16 numbers, as [`crate::gemm::multiply_pair_tile`].
    fn pair_tile(self, tile: PairTile<'_>);
}

/// A computation over some instruction set.
pub trait Kernel {
    /// What it returns.
    type Output;

    /// Does it. Implementations are `inline(always)`, so that they are compiled with the instructions of `simd`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// The instruction sets, best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// Everywhere.
    Scalar,
    /// x86-64 with AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    /// x86-64 with AVX-512 F, DQ, BW and VL.
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
    /// 64-bit Arm.
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
}

impl InstructionSet {
    /// All paths of this machine, the best last.
    pub fn all_available() -> Vec<InstructionSet> {
        #[cfg(target_arch = "x86_64")]
        let simd = [avx2::Avx2::new().map(InstructionSet::Avx2), avx512::Avx512::new().map(InstructionSet::Avx512)];
        #[cfg(target_arch = "aarch64")]
        let simd = [neon::Neon::new().map(InstructionSet::Neon)];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let simd: [Option<InstructionSet>; 0] = [];
        std::iter::once(InstructionSet::Scalar).chain(simd.into_iter().flatten()).collect()
    }

    /// The best path of this machine.
    pub fn detect() -> InstructionSet {
        InstructionSet::all_available().pop().unwrap_or(InstructionSet::Scalar)
    }

    /// Its name, as tests and benchmarks print it.
    pub fn name(self) -> &'static str {
        match self {
            InstructionSet::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon(_) => "neon",
        }
    }

    /// Does a computation with these instructions.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            InstructionSet::Scalar => kernel.run(scalar::Scalar),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2(isa) => isa.run(kernel),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512(isa) => isa.run(kernel),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon(isa) => isa.run(kernel),
        }
    }
}

/// Calls `multiply_tile` with the number of rows that a tile has as a constant.
macro_rules! tile_of_rows {
    ($isa:expr, $tile:expr, $vectors:literal, $($rows:literal)*) => {
        match $tile.out.len() {
            $($rows => crate::gemm::multiply_tile::<_, $rows, $vectors>($isa, $tile),)*
            rows => unreachable!("a tile of {rows} rows"),
        }
    };
}
pub(crate) use tile_of_rows;

/// Calls `multiply_pair_tile` with the number of rows that a tile has as a constant.
macro_rules! pair_tile_of_rows {
    ($isa:expr, $dot:expr, $tile:expr, $vectors:literal, $($rows:literal)*) => {
        match $tile.out.len() {
            $($rows => crate::gemm::multiply_pair_tile::<_, _, $rows, $vectors>($isa, $dot, $tile),)*
            rows => unreachable!("a tile of {rows} rows"),
        }
    };
}
pub(crate) use pair_tile_of_rows;
