//! Portable Rust: arrays of 8 numbers in place of vectors. A tile is 4 rows × 8 columns; four cover a panel.
//!
//! It runs on every CPU and needs no `unsafe`. The compiler turns the loops into what vector instructions the target
//! guarantees (SSE2 on x86-64).

use super::simd::{
    ByteDot, ByteTileKernel, Kernel, PairTileKernel, Simd, TileKernel, WidenedPairs, run_pair_tile_of_rows,
    run_tile_of_rows,
};
use crate::matrix::{ByteRow, PairRow, QuadRow, Row, SumRow};

/// Lanes of a vector: a multiple of what the baseline vectors of any target hold.
const LANES: usize = 8;

/// The instruction set of every CPU: its value needs no proof.
#[derive(Clone, Copy)]
pub struct Scalar;

type V = [f32; LANES];

#[inline(always)]
fn zip(x: V, y: V, f: impl Fn(f32, f32) -> f32) -> V {
    std::array::from_fn(|i| f(x[i], y[i]))
}

/// Products of four bytes, one after the other.
#[derive(Clone, Copy)]
struct ByteLoop;

impl ByteDot<Scalar> for ByteLoop {
    type Sums = [i32; LANES];
    type Inputs = [i8; 4];
    type Quads = [[i8; 4]; LANES];

    #[inline(always)]
    fn start(self, _: Scalar, _: &SumRow, _: usize) -> [i32; LANES] {
        [0; LANES]
    }

    #[inline(always)]
    fn load(self, _: Scalar, row: &QuadRow, at: usize, _: usize) -> [[i8; 4]; LANES] {
        std::array::from_fn(|i| row.0[at + i])
    }

    #[inline(always)]
    fn splat(self, _: Scalar, quad: u32) -> [i8; 4] {
        quad.to_le_bytes().map(|byte| byte as i8)
    }

    #[inline(always)]
    fn dot(self, _: Scalar, a: [i8; 4], b: [[i8; 4]; LANES], sums: [i32; LANES]) -> [i32; LANES] {
        std::array::from_fn(|i| sums[i] + (0..4).map(|j| i32::from(a[j]) * i32::from(b[i][j])).sum::<i32>())
    }

    #[inline(always)]
    fn to_float(self, _: Scalar, sums: [i32; LANES]) -> V {
        sums.map(|sum| sum as f32)
    }
}

impl Simd for Scalar {
    type V = V;

    const LANES: usize = LANES;
    const TILE_ROWS: usize = 4;

    #[inline(always)]
    fn splat(self, x: f32) -> V {
        [x; LANES]
    }

    #[inline(always)]
    fn load(self, row: &Row, at: usize) -> V {
        std::array::from_fn(|i| row.0[at + i])
    }

    #[inline(always)]
    fn store(self, row: &mut Row, at: usize, x: V) {
        row.0[at..at + LANES].copy_from_slice(&x);
    }

    #[inline(always)]
    fn add(self, x: V, y: V) -> V {
        zip(x, y, |x, y| x + y)
    }

    #[inline(always)]
    fn sub(self, x: V, y: V) -> V {
        zip(x, y, |x, y| x - y)
    }

    #[inline(always)]
    fn mul(self, x: V, y: V) -> V {
        zip(x, y, |x, y| x * y)
    }

    #[inline(always)]
    fn div(self, x: V, y: V) -> V {
        zip(x, y, |x, y| x / y)
    }

    #[inline(always)]
    fn fma(self, x: V, y: V, z: V) -> V {
        // Rounded twice: where the instruction is missing, `mul_add` calls a function that takes fifty times as long.
        self.add(self.mul(x, y), z)
    }

    #[inline(always)]
    fn max(self, x: V, y: V) -> V {
        zip(x, y, |x, y| if x > y { x } else { y })
    }

    #[inline(always)]
    fn min(self, x: V, y: V) -> V {
        zip(x, y, |x, y| if x < y { x } else { y })
    }

    #[inline(always)]
    fn round(self, x: V) -> V {
        // 1.5·2²³ + x has no bits left for the fraction of x.
        const MAGIC: f32 = 12_582_912.0;
        x.map(|x| (x + MAGIC) - MAGIC)
    }

    #[inline(always)]
    fn pow2(self, n: V) -> V {
        n.map(|n| f32::from_bits(((n as i32 + 127) << 23) as u32))
    }

    #[inline(always)]
    fn interleave(self, x: V, y: V) -> [V; 2] {
        let of_half = |half: usize| std::array::from_fn(|i| [x, y][i % 2][(half * LANES + i) / 2]);
        [of_half(0), of_half(1)]
    }

    #[inline(always)]
    fn where_less(self, x: V, y: V, a: V, b: V) -> V {
        std::array::from_fn(|i| if x[i] < y[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn first(self, n: usize, a: V, b: V) -> V {
        std::array::from_fn(|i| if i < n { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn sum(self, x: V) -> f32 {
        ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))
    }

    #[inline(always)]
    fn greatest(self, x: V) -> f32 {
        x.into_iter().fold(f32::NEG_INFINITY, |most, x| if x > most { x } else { most })
    }

    #[inline(always)]
    fn max_magnitude(self, x: V, y: V) -> V {
        // Numbers that are not negative have the same order as their bits; NaN is the greatest.
        zip(x, y, |x, y| f32::from_bits(x.abs().to_bits().max(y.abs().to_bits())))
    }

    #[inline(always)]
    fn greatest_magnitude(self, x: V) -> f32 {
        f32::from_bits(x.into_iter().fold(0, |most, x| most.max(x.to_bits())))
    }

    #[inline(always)]
    fn store_bytes(self, row: &mut ByteRow, at: usize, x: V, bias: u8) {
        /// 1.5·2²³: a small number that is added to it is rounded to an integer, whose bits are the lowest of the sum.
        const ROUND: f32 = 12_582_912.0;
        for (to, x) in row.0[at..at + LANES].iter_mut().zip(x) {
            *to = (x + ROUND).to_bits() as u8 ^ bias;
        }
    }

    #[inline(always)]
    fn load_pairs(self, row: &PairRow, at: usize) -> [V; 2] {
        [
            std::array::from_fn(|i| f32::from_bits(row.0[at + i] << 16)),
            std::array::from_fn(|i| f32::from_bits(row.0[at + i] & 0xffff_0000)),
        ]
    }

    #[inline(always)]
    fn load_integers(self, row: &SumRow, at: usize) -> V {
        std::array::from_fn(|i| row.0[at + i] as f32)
    }

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline]
    fn run_tile<T: TileKernel>(self, tile: T) {
        run_tile_of_rows!(self, tile, 1, 1 2 3 4);
    }

    #[inline]
    fn run_pair_tile<T: PairTileKernel>(self, tile: T) {
        run_pair_tile_of_rows!(self, WidenedPairs, tile, 1, 1 2 3 4);
    }

    #[inline(always)]
    fn byte_bias(self) -> u8 {
        0
    }

    #[inline]
    fn run_byte_tile<T: ByteTileKernel>(self, tile: T) {
        run_pair_tile_of_rows!(self, ByteLoop, tile, 1, 1 2 3 4);
    }
}
