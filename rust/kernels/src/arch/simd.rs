//! The traits between instruction sets and loops: [`Simd`] has the vector operations, [`Kernel`] is a computation over them.
//!
//! An instruction set implements [`Simd`] once; a loop is written once, as a [`Kernel`], [`TileKernel`],
//! [`PairTileKernel`] or [`ByteTileKernel`]. All traits are in this file because each names the others.

use crate::matrix::{ByteRow, HalfRow, PairRow, QuadRow, Row, SumRow, WordRow};
use crate::numbers::f32_to_bf16;

/// An upper bound of [`Simd::TILE_ROWS`] for all instruction sets: the length of arrays with an element for each row of a
/// tile.
pub const MAX_TILE_ROWS: usize = 16;

/// How many columns [`Simd::load_columns`] reads.
pub const COLUMNS: usize = 8;

/// Vectors of float32 and what they are made for: the tile of a matrix product.
///
/// A value of a type with this trait proves that the CPU has the instructions, so every method is safe to call. All methods
/// of an implementation are `inline(always)`: they become single instructions inside a [`Kernel`], which is compiled with
/// the features of the instruction set, and would be calls anywhere else.
///
/// Implementations do the same operations in the same order within each element, and differ in [`LANES`](Simd::LANES). Sums
/// over lanes are [`Sums`](super::Sums), which do not depend on it.
pub trait Simd: Copy + Send + Sync {
    /// A vector of [`LANES`](Simd::LANES) numbers.
    type V: Copy;

    /// Number of elements in a vector; divides [`PANEL`](crate::PANEL).
    const LANES: usize;

    /// The most rows that a tile can have, from 1 to [`MAX_TILE_ROWS`]: as many as leave the sums of a tile in registers.
    const TILE_ROWS: usize;

    /// As [`TILE_ROWS`](Simd::TILE_ROWS), for tiles of int8 numbers, which have a sum of a group beside each sum.
    const BYTE_TILE_ROWS: usize = Self::TILE_ROWS;

    /// Returns `x` in all lanes.
    fn splat(self, x: f32) -> Self::V;

    /// Reads the columns `at..at + LANES` of a row.
    ///
    /// # Panics
    ///
    /// If they reach beyond the row.
    fn load(self, row: &Row, at: usize) -> Self::V;

    /// Whether [`load_columns`](Simd::load_columns) takes a few instructions.
    const READS_COLUMNS: bool = false;

    /// Reads the numbers `at..at + COLUMNS` of `LANES` rows: lane i of vector j has number `at + j` of row i.
    ///
    /// # Panics
    ///
    /// If they reach beyond a row, or there are other than `LANES` rows.
    #[inline(always)]
    fn load_columns(self, rows: &[&[f32]], at: usize) -> [Self::V; COLUMNS] {
        assert!(rows.len() == Self::LANES);
        let mut columns = [self.splat(0.0); COLUMNS];
        for (k, column) in (at..).zip(&mut columns) {
            let mut numbers = Row::ZERO;
            numbers.0.iter_mut().zip(rows).for_each(|(to, row)| *to = row[k]);
            *column = self.load(&numbers, 0);
        }
        columns
    }

    /// Writes the columns `at..at + LANES` of a row.
    ///
    /// # Panics
    ///
    /// If they reach beyond the row.
    fn store(self, row: &mut Row, at: usize, x: Self::V);

    /// Returns x + y.
    fn add(self, x: Self::V, y: Self::V) -> Self::V;

    /// Returns x − y.
    fn sub(self, x: Self::V, y: Self::V) -> Self::V;

    /// Returns x·y.
    fn mul(self, x: Self::V, y: Self::V) -> Self::V;

    /// Returns x/y.
    fn div(self, x: Self::V, y: Self::V) -> Self::V;

    /// Returns x·y + z, rounded once.
    fn fma(self, x: Self::V, y: Self::V, z: Self::V) -> Self::V;

    /// Returns the maximum of each lane; `y` where one of the two is NaN.
    fn max(self, x: Self::V, y: Self::V) -> Self::V;

    /// Returns the minimum of each lane; `y` where one of the two is NaN.
    fn min(self, x: Self::V, y: Self::V) -> Self::V;

    /// Rounds to the nearest integer, ties to even, for |x| below 2²².
    fn round(self, x: Self::V) -> Self::V;

    /// Returns 2ⁿ, for integers n from −126 to 127.
    fn pow2(self, n: Self::V) -> Self::V;

    /// Returns x·2ⁿ, for integers n from −126 to 127 and products that are not subnormal.
    #[inline(always)]
    fn scale_by_pow2(self, x: Self::V, n: Self::V) -> Self::V {
        self.mul(x, self.pow2(n))
    }

    /// Returns the lanes of both in turns, x₀, y₀, x₁, y₁, …: first the lanes of their lower halves, then the lanes of
    /// their upper halves.
    fn interleave(self, x: Self::V, y: Self::V) -> [Self::V; 2];

    /// Returns `a` where x < y, else `b`.
    fn where_less(self, x: Self::V, y: Self::V, a: Self::V, b: Self::V) -> Self::V;

    /// Returns the first `n` lanes of `a` and the remaining lanes of `b`; all of `a` if `n` is at least `LANES`.
    fn first(self, n: usize, a: Self::V, b: Self::V) -> Self::V;

    /// Returns the sum of all lanes: lanes that are `LANES`/2 apart are added, of these sums those that are half as far apart,
    /// and so on. What it is the sum of depends on `LANES`: see [`Sums`](super::Sums).
    fn sum(self, x: Self::V) -> f32;

    /// Returns the maximum of all lanes; unspecified if one is NaN.
    fn greatest(self, x: Self::V) -> f32;

    /// Returns the greater magnitude, |x| or |y|, of each lane; NaN if one is NaN.
    fn max_magnitude(self, x: Self::V, y: Self::V) -> Self::V;

    /// Returns the greatest of all lanes, none of which is negative; NaN if one is NaN.
    fn greatest_magnitude(self, x: Self::V) -> f32;

    /// Rounds numbers from −127 to 127 to the nearest integers, ties to even, and writes them as bytes, each combined with
    /// `bias` by exclusive or, to the columns `at..at + LANES` of a row. NaN becomes an unspecified byte.
    ///
    /// # Panics
    ///
    /// If they reach beyond the row.
    fn store_bytes(self, row: &mut ByteRow, at: usize, x: Self::V, bias: u8);

    /// Reads the pairs `at..at + LANES` of a row and widens them: the first number of each pair, and the second.
    ///
    /// # Panics
    ///
    /// If they reach beyond the row.
    fn load_pairs(self, row: &PairRow, at: usize) -> [Self::V; 2];

    /// Reads the integers `at..at + LANES` of a row, of magnitudes up to 2²⁴, and converts them, which is exact.
    ///
    /// # Panics
    ///
    /// If they reach beyond the row.
    fn load_integers(self, row: &SumRow, at: usize) -> Self::V;

    /// Rounds rows to bfloat16 as [`f32_to_bf16`], except that an instruction set may round
    /// subnormal numbers to 0, if its products of pairs take them as 0 as well.
    ///
    /// # Panics
    ///
    /// If there are not as many rows in `to`.
    #[inline(always)]
    fn round_rows(self, from: &[Row], to: &mut [HalfRow]) {
        round_row_by_row(from, to);
    }

    /// Rounds rows, two by two, to rows of pairs, the first row of two in the lower halves; as
    /// [`round_rows`](Simd::round_rows).
    ///
    /// # Panics
    ///
    /// If there are not as many rows in `to`.
    #[inline(always)]
    fn round_pairs(self, from: &[[Row; 2]], to: &mut [PairRow]) {
        round_pair_by_pair(from, to);
    }

    /// Runs a computation, compiled with the features of this instruction set.
    fn run<K: Kernel>(self, kernel: K) -> K::Output;

    /// Whether [`add_differing_bits`](Simd::add_differing_bits) is an instruction that counts the bits of all words of
    /// a vector, in a computation that [`run_counting`](Simd::run_counting) runs.
    #[inline(always)]
    fn counts_bits_of_vectors(self) -> bool {
        false
    }

    /// Runs a computation that counts bits by [`add_differing_bits`](Simd::add_differing_bits). Where the CPU has an
    /// instruction to count the bits of all words of a vector, the computation is compiled with it.
    #[inline(always)]
    fn run_counting<K: Kernel>(self, kernel: K) -> K::Output {
        self.run(kernel)
    }

    /// Adds to each sum the number of bits in which its word differs from `y`.
    #[inline(always)]
    fn add_differing_bits(self, x: &[u64; 8], y: u64, sums: &mut [u64; 8]) {
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum += u64::from((x ^ y).count_ones());
        }
    }

    /// Runs a computation over a tile of float32 numbers, with the shape that suits the registers as constants.
    ///
    /// It is compiled as a separate function, which all kernels of the crate share.
    ///
    /// # Panics
    ///
    /// If the tile has no rows, or more than [`TILE_ROWS`](Simd::TILE_ROWS).
    fn run_tile<T: TileKernel>(self, tile: T);

    /// Runs a computation over a tile of bfloat16 pairs, as [`run_tile`](Simd::run_tile), with the best way to multiply
    /// pairs that the CPU has.
    ///
    /// # Panics
    ///
    /// If the tile has no rows, or more than [`TILE_ROWS`](Simd::TILE_ROWS).
    fn run_pair_tile<T: PairTileKernel>(self, tile: T);

    /// Runs a computation over a tile of bfloat16 pairs, as [`run_pair_tile`](Simd::run_pair_tile), by products of matrices
    /// where the CPU has them.
    ///
    /// # Panics
    ///
    /// If the tile has no rows, or more than [`TILE_ROWS`](Simd::TILE_ROWS).
    #[inline(always)]
    fn run_pair_matrix_tile<T: PairMatrixTileKernel>(self, tile: T) {
        self.run_pair_tile(tile);
    }

    /// Returns what is added to int8 inputs, modulo 256, before [`run_byte_tile`](Simd::run_byte_tile): 128 where the
    /// instruction multiplies unsigned by signed bytes, else 0.
    fn byte_bias(self) -> u8;

    /// Runs a computation over a tile of int8 numbers, as [`run_tile`](Simd::run_tile), with the best way to multiply them
    /// that the CPU has. All ways compute the same integers.
    ///
    /// # Panics
    ///
    /// If the tile has no rows, or more than [`BYTE_TILE_ROWS`](Simd::BYTE_TILE_ROWS).
    fn run_byte_tile<T: ByteTileKernel>(self, tile: T);
}

/// [`Simd::round_rows`] by integers.
#[inline(always)]
pub(super) fn round_row_by_row(from: &[Row], to: &mut [HalfRow]) {
    assert!(from.len() == to.len());
    for (from, to) in from.iter().zip(to) {
        for (x, to) in from.0.iter().zip(&mut to.0) {
            *to = f32_to_bf16(*x);
        }
    }
}

/// [`Simd::round_pairs`] by integers.
#[inline(always)]
pub(super) fn round_pair_by_pair(from: &[[Row; 2]], to: &mut [PairRow]) {
    assert!(from.len() == to.len());
    for (from, to) in from.iter().zip(to) {
        for ((to, first), second) in to.0.iter_mut().zip(from[0].0).zip(from[1].0) {
            *to = u32::from(f32_to_bf16(first)) | u32::from(f32_to_bf16(second)) << 16;
        }
    }
}

/// A computation that is written once and compiled for every instruction set.
pub trait Kernel {
    /// The result type.
    type Output;

    /// Computes it. Implementations, and all functions that they call with `simd`, are `inline(always)`: only then are they
    /// compiled with the features of the instruction set.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// A computation over a tile: a few rows by one panel.
pub trait TileKernel {
    /// How many rows the tile has.
    fn rows(&self) -> usize;

    /// Computes it for `ROWS` rows, `VECTORS` vectors of each at a time; `inline(always)`, as [`Kernel::run`].
    fn run<S: Simd, const ROWS: usize, const VECTORS: usize>(self, simd: S);
}

/// A computation over a tile of bfloat16 pairs.
pub trait PairTileKernel {
    /// How many rows the tile has.
    fn rows(&self) -> usize;

    /// Computes it for `ROWS` rows, `VECTORS` vectors of each at a time; `inline(always)`, as [`Kernel::run`].
    fn run<S: Simd, D: PairDot<S>, const ROWS: usize, const VECTORS: usize>(self, simd: S, dot: D);
}

/// A computation over a tile of bfloat16 pairs that products of matrices can do as well.
pub trait PairMatrixTileKernel: PairTileKernel {
    /// Computes the same as [`run`](PairTileKernel::run) by products of matrices, for `PAIRS` pairs of rows, of which the
    /// last lacks a row if `ROWS` is odd.
    fn run_matrices<S, M, const ROWS: usize, const PAIRS: usize, const VECTORS: usize>(self, simd: S, dot: M)
    where
        S: Simd,
        M: MatrixDot<S, Row = PairRow>;
}

/// A computation over a tile of int8 numbers.
pub trait ByteTileKernel {
    /// How many rows the tile has.
    fn rows(&self) -> usize;

    /// Computes it for `ROWS` rows, `VECTORS` vectors of each at a time; `inline(always)`, as [`Kernel::run`].
    fn run<S: Simd, D: ByteDot<S>, const ROWS: usize, const VECTORS: usize>(self, simd: S, dot: D);

    /// Computes the same as [`run`](ByteTileKernel::run) by products of matrices, for `PAIRS` pairs of rows, of which the
    /// last lacks a row if `ROWS` is odd.
    fn run_matrices<S, M, const ROWS: usize, const PAIRS: usize, const VECTORS: usize>(self, simd: S, dot: M)
    where
        S: Simd,
        M: MatrixDot<S, Row = QuadRow>;
}

/// A way to multiply int8 numbers, four by four, and add their products to int32 sums, exactly.
///
/// Weights and inputs are from −127 to 127.
pub trait ByteDot<S: Simd>: Copy {
    /// An int32 sum in each lane.
    type Sums: Copy;
    /// Four inputs, or a part of them, the same in all lanes, in the form in which they are multiplied.
    type Inputs: Copy;
    /// Four weights in each lane, or a part of them.
    type Quads: Copy;

    /// How many parts four products are computed in: 1, or 2 if inputs are widened to 16 bits ([`ByteDot::widen`]).
    const PARTS: usize = 1;

    /// Returns the sums to begin with, which make up for [`Simd::byte_bias`]: `at..at + S::LANES` of a row of −128 times the
    /// sum of the weights, or 0.
    ///
    /// # Panics
    ///
    /// If they reach beyond the row.
    fn start(self, simd: S, row: &SumRow, at: usize) -> Self::Sums;

    /// Widens the inputs of a row and group to 16 bits. It is called if there are two parts.
    fn widen(self, _: S, _: &ByteRow, _: &mut WordRow) {}

    /// Reads the weights `at..at + S::LANES` of a row, part `part` of them.
    ///
    /// # Panics
    ///
    /// If they reach beyond the row.
    fn load(self, simd: S, row: &QuadRow, at: usize, part: usize) -> Self::Quads;

    /// Returns four inputs, the first in the lowest byte of `quad`, in all lanes; or two that were widened.
    fn splat(self, simd: S, quad: u32) -> Self::Inputs;

    /// Returns sums + a₀·b₀ + a₁·b₁ + a₂·b₂ + a₃·b₃ for the inputs a and weights b of each lane, or a part of these products.
    fn dot(self, simd: S, a: Self::Inputs, b: Self::Quads, sums: Self::Sums) -> Self::Sums;

    /// Converts the sums of a group, which is exact.
    fn to_float(self, simd: S, sums: Self::Sums) -> S::V;
}

/// An instruction that multiplies two rows of inputs by two columns of weights, 8 bytes of each, and adds the products to
/// their 2 × 2 sums.
///
/// It reads the weights from two neighbouring rows of a packed panel, each of which has 4 bytes of a column, so weights are
/// packed as for a dot product. Each of the sums depends on its row and its column only.
pub trait MatrixDot<S: Simd>: Copy {
    /// A row of packed weights: [`QuadRow`] for int8 numbers, [`PairRow`] for bfloat16.
    type Row;
    /// 8 bytes of two rows of inputs.
    type Inputs: Copy;
    /// 8 bytes of each of [`S::LANES`](Simd::LANES) columns.
    type Weights: Copy;
    /// The sums of two rows and [`S::LANES`](Simd::LANES) columns.
    type Sums: Copy;

    /// Returns sums of 0.
    fn zero(self, simd: S) -> Self::Sums;

    /// Returns 8 bytes of each of two rows of inputs; the first byte is the lowest.
    fn inputs(self, simd: S, first: u64, second: u64) -> Self::Inputs;

    /// Reads the weights of the columns `at..at + S::LANES`.
    ///
    /// # Panics
    ///
    /// If they reach beyond the rows.
    fn load(self, simd: S, rows: &[Self::Row; 2], at: usize) -> Self::Weights;

    /// Adds the products of two rows and all columns to their sums.
    fn dot(self, simd: S, a: Self::Inputs, b: Self::Weights, sums: Self::Sums) -> Self::Sums;

    /// Returns the sums of the first row and of the second as float32, exactly if int32 sums are at most 2²⁴.
    fn to_rows(self, simd: S, sums: Self::Sums) -> [S::V; 2];
}

/// A way to multiply pairs of bfloat16 numbers and add both products to a float32 sum.
pub trait PairDot<S: Simd>: Copy {
    /// A pair in each lane.
    type Pairs: Copy;

    /// Reads the pairs `at..at + S::LANES` of a row.
    ///
    /// # Panics
    ///
    /// If they reach beyond the row.
    fn load(self, simd: S, row: &PairRow, at: usize) -> Self::Pairs;

    /// Returns one pair, the first number in the lower half of `pair`, in all lanes.
    fn splat(self, simd: S, pair: u32) -> Self::Pairs;

    /// Returns sum + a₀·b₀ + a₁·b₁ for the pairs (a₀, a₁) and (b₀, b₁) of each lane.
    fn dot(self, simd: S, a: Self::Pairs, b: Self::Pairs, sum: S::V) -> S::V;
}

/// The [`PairDot`] of CPUs without an instruction for it: pairs are widened to float32, which is exact, and multiplied so.
#[derive(Clone, Copy)]
pub struct WidenedPairs;

impl<S: Simd> PairDot<S> for WidenedPairs {
    type Pairs = [S::V; 2];

    #[inline(always)]
    fn load(self, simd: S, row: &PairRow, at: usize) -> [S::V; 2] {
        simd.load_pairs(row, at)
    }

    #[inline(always)]
    fn splat(self, simd: S, pair: u32) -> [S::V; 2] {
        [simd.splat(f32::from_bits(pair << 16)), simd.splat(f32::from_bits(pair & 0xffff_0000))]
    }

    #[inline(always)]
    fn dot(self, simd: S, a: [S::V; 2], b: [S::V; 2], sum: S::V) -> S::V {
        simd.fma(a[1], b[1], simd.fma(a[0], b[0], sum))
    }
}

/// Calls [`TileKernel::run`] with the rows of a tile, one of those listed, and the given number of vectors as constants.
macro_rules! run_tile_of_rows {
    ($simd:expr, $tile:expr, $vectors:literal, $($rows:literal)*) => {{
        let tile = $tile;
        match tile.rows() {
            $($rows => tile.run::<_, $rows, $vectors>($simd),)*
            rows => unreachable!("a tile of {rows} rows"),
        }
    }};
}
pub(super) use run_tile_of_rows;

/// Implements methods of [`Simd`] that are one expression of intrinsics over vectors: `name(arguments) = expression;`.
///
/// The caller vouches that a value of the implementing type proves the features that the intrinsics need.
macro_rules! vector_operations {
    ($vector:ty: $($name:ident($($argument:ident),+) = $operation:expr;)+) => {$(
        #[inline(always)]
        fn $name(self, $($argument: $vector),+) -> $vector {
            // SAFETY: `self` proves the features of the instruction set.
            unsafe { $operation }
        }
    )+};
}
pub(super) use vector_operations;

/// Calls [`PairTileKernel::run`] as `run_tile_of_rows!` does [`TileKernel::run`].
macro_rules! run_pair_tile_of_rows {
    ($simd:expr, $dot:expr, $tile:expr, $vectors:literal, $($rows:literal)*) => {{
        let tile = $tile;
        match tile.rows() {
            $($rows => tile.run::<_, _, $rows, $vectors>($simd, $dot),)*
            rows => unreachable!("a tile of {rows} rows"),
        }
    }};
}
pub(super) use run_pair_tile_of_rows;

/// Calls `run_matrices` with the rows of a tile, one of those listed with its number of pairs of rows, and the given number
/// of vectors as constants.
#[cfg(target_arch = "aarch64")]
macro_rules! run_matrix_tile_of_rows {
    ($simd:expr, $dot:expr, $tile:expr, $vectors:literal, $($rows:literal / $pairs:literal)*) => {{
        let tile = $tile;
        match tile.rows() {
            $($rows => tile.run_matrices::<_, _, $rows, $pairs, $vectors>($simd, $dot),)*
            rows => unreachable!("a tile of {rows} rows"),
        }
    }};
}
#[cfg(target_arch = "aarch64")]
pub(super) use run_matrix_tile_of_rows;

/// The [`ByteDot`] of CPUs without an instruction for it. Each instruction set has its own.
///
/// On x86-64, the bytes of a quad are widened to 16 bits and multiplied in two parts, the first and third byte, then the
/// second and fourth, by `vpmaddwd`, which is exact. Weights are widened as the upper half of 16 bits, which takes one
/// instruction: the sums are 256 times the sums of the products, at most 256·64·127² < 2²⁸ for a group.
///
/// `vpmaddubsw`, which multiplies bytes, does not help: it needs the magnitudes of the inputs, the weights with their
/// signs, and `vpmaddwd` to widen its sums: as many multiplications, and two of three beside them on the same ports.
#[derive(Clone, Copy)]
pub struct MultipliedBytes;
