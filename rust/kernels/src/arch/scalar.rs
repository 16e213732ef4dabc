//! Portable Rust: arrays of 8 numbers in place of vectors. A tile is 4 rows × 8 columns; four cover a panel.
//!
//! It runs on every CPU. The compiler turns the loops into what vector instructions the target guarantees (SSE2 on x86-64).
//! Where the target guarantees no fused multiply-add, but the CPU has it, all is compiled with it once more; where the CPU
//! has none either, it is computed in float64.

use super::simd::{
    ByteDot, ByteTileKernel, Kernel, PairTileKernel, Simd, TileKernel, WidenedPairs, run_pair_tile_of_rows,
    run_tile_of_rows,
};
use crate::matrix::{ByteRow, PairRow, QuadRow, Row, SumRow};

/// Lanes of a vector: a multiple of what the baseline vectors of any target hold.
const LANES: usize = 8;

/// Whether the target guarantees an instruction for x·y + z.
const HAS_FMA: bool = cfg!(any(
    target_feature = "fma",
    target_arch = "aarch64",
    target_arch = "powerpc64",
    target_arch = "riscv64",
    target_arch = "s390x"
));

/// Portable code with vectors of `LANES` numbers. With `FUSED` its value proves that the CPU has an instruction for x·y + z.
#[derive(Clone, Copy)]
pub struct Portable<const LANES: usize, const FUSED: bool>(());

/// The instruction set of every CPU: its value needs no proof.
pub type Scalar = Portable<LANES, false>;

impl<const LANES: usize> Portable<LANES, false> {
    /// Returns it.
    pub const fn on_any_cpu() -> Portable<LANES, false> {
        Portable(())
    }
}

#[cfg(target_arch = "x86_64")]
impl<const LANES: usize> Portable<LANES, true> {
    /// Returns it if the CPU has the instruction and the target does not guarantee it.
    fn with_fma() -> Option<Portable<LANES, true>> {
        (!HAS_FMA && !cfg!(miri) && is_x86_feature_detected!("fma")).then_some(Portable(()))
    }
}

/// Runs a computation, with an instruction for x·y + z if the CPU has it.
#[inline]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(fused) = Portable::<LANES, true>::with_fma() {
        return fused.run(kernel);
    }
    Scalar::on_any_cpu().run(kernel)
}

/// What is compiled with the instruction.
#[cfg(target_arch = "x86_64")]
mod fused {
    use super::*;

    #[target_feature(enable = "fma")]
    pub(super) fn run<K: Kernel, P: Simd>(simd: P, kernel: K) -> K::Output {
        kernel.run(simd)
    }

    #[target_feature(enable = "fma")]
    pub(super) fn run_tile<T: TileKernel, P: Simd>(simd: P, tile: T) {
        run_tile_of_rows!(simd, tile, 1, 1 2 3 4);
    }

    #[target_feature(enable = "fma")]
    pub(super) fn run_pair_tile<T: PairTileKernel, P: Simd>(simd: P, tile: T) {
        run_pair_tile_of_rows!(simd, WidenedPairs, tile, 1, 1 2 3 4);
    }

    #[target_feature(enable = "fma")]
    pub(super) fn run_byte_tile<T: ByteTileKernel, P: Simd>(simd: P, tile: T)
    where
        ByteLoop: ByteDot<P>,
    {
        run_pair_tile_of_rows!(simd, ByteLoop, tile, 1, 1 2 3 4);
    }
}

/// Returns x·y + z, rounded once, without an instruction for it.
///
/// The product is exact in float64. The sum is rounded there to a number whose last bit is 1, if it is not exact: rounding
/// that to float32 gives what rounding the exact sum gives (Boldo and Melquiond 2008). The C library's `fmaf`, which
/// `mul_add` calls, takes longer, and is not right on every system.
#[inline(always)]
fn fused_in_float64(x: f32, y: f32, z: f32) -> f32 {
    let (product, z) = (f64::from(x) * f64::from(y), f64::from(z));
    let sum = product + z;
    let rest = sum - product;
    let lost = (product - (sum - rest)) + (z - rest); // exactly what the sum lost
    let (bits, is_inexact) = (sum.to_bits(), (lost < 0.0) | (lost > 0.0));
    let is_beyond = (lost > 0.0) == (sum > 0.0);
    let odd = if is_beyond { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f64::from_bits(if is_inexact & (bits & 1 == 0) { odd } else { bits }) as f32
}

#[inline(always)]
fn zip<const LANES: usize>(x: [f32; LANES], y: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    std::array::from_fn(|i| f(x[i], y[i]))
}

/// Products of four bytes, one after the other.
#[derive(Clone, Copy)]
struct ByteLoop;

impl<const LANES: usize, const FUSED: bool> ByteDot<Portable<LANES, FUSED>> for ByteLoop {
    type Sums = [i32; LANES];
    type Inputs = [i8; 4];
    type Quads = [[i8; 4]; LANES];

    #[inline(always)]
    fn start(self, _: Portable<LANES, FUSED>, _: &SumRow, _: usize) -> [i32; LANES] {
        [0; LANES]
    }

    #[inline(always)]
    fn load(self, _: Portable<LANES, FUSED>, row: &QuadRow, at: usize, _: usize) -> [[i8; 4]; LANES] {
        std::array::from_fn(|i| row.0[at + i])
    }

    #[inline(always)]
    fn splat(self, _: Portable<LANES, FUSED>, quad: u32) -> [i8; 4] {
        quad.to_le_bytes().map(|byte| byte as i8)
    }

    #[inline(always)]
    fn dot(self, _: Portable<LANES, FUSED>, a: [i8; 4], b: [[i8; 4]; LANES], sums: [i32; LANES]) -> [i32; LANES] {
        std::array::from_fn(|i| sums[i] + (0..4).map(|j| i32::from(a[j]) * i32::from(b[i][j])).sum::<i32>())
    }

    #[inline(always)]
    fn to_float(self, _: Portable<LANES, FUSED>, sums: [i32; LANES]) -> [f32; LANES] {
        sums.map(|sum| sum as f32)
    }
}

impl<const LANES: usize, const FUSED: bool> Simd for Portable<LANES, FUSED> {
    type V = [f32; LANES];

    const LANES: usize = LANES;
    const TILE_ROWS: usize = 4;

    #[inline(always)]
    fn splat(self, x: f32) -> [f32; LANES] {
        [x; LANES]
    }

    #[inline(always)]
    fn load(self, row: &Row, at: usize) -> [f32; LANES] {
        std::array::from_fn(|i| row.0[at + i])
    }

    #[inline(always)]
    fn store(self, row: &mut Row, at: usize, x: [f32; LANES]) {
        row.0[at..at + LANES].copy_from_slice(&x);
    }

    #[inline(always)]
    fn add(self, x: [f32; LANES], y: [f32; LANES]) -> [f32; LANES] {
        zip(x, y, |x, y| x + y)
    }

    #[inline(always)]
    fn sub(self, x: [f32; LANES], y: [f32; LANES]) -> [f32; LANES] {
        zip(x, y, |x, y| x - y)
    }

    #[inline(always)]
    fn mul(self, x: [f32; LANES], y: [f32; LANES]) -> [f32; LANES] {
        zip(x, y, |x, y| x * y)
    }

    #[inline(always)]
    fn div(self, x: [f32; LANES], y: [f32; LANES]) -> [f32; LANES] {
        zip(x, y, |x, y| x / y)
    }

    #[inline(always)]
    fn fma(self, x: [f32; LANES], y: [f32; LANES], mut z: [f32; LANES]) -> [f32; LANES] {
        // A loop, because a closure may be compiled without the instruction.
        for i in 0..LANES {
            z[i] = if FUSED || HAS_FMA { x[i].mul_add(y[i], z[i]) } else { fused_in_float64(x[i], y[i], z[i]) };
        }
        z
    }

    #[inline(always)]
    fn max(self, x: [f32; LANES], y: [f32; LANES]) -> [f32; LANES] {
        zip(x, y, |x, y| if x > y { x } else { y })
    }

    #[inline(always)]
    fn min(self, x: [f32; LANES], y: [f32; LANES]) -> [f32; LANES] {
        zip(x, y, |x, y| if x < y { x } else { y })
    }

    #[inline(always)]
    fn round(self, x: [f32; LANES]) -> [f32; LANES] {
        // 1.5·2²³ + x has no bits left for the fraction of x.
        const MAGIC: f32 = 12_582_912.0;
        x.map(|x| (x + MAGIC) - MAGIC)
    }

    #[inline(always)]
    fn pow2(self, n: [f32; LANES]) -> [f32; LANES] {
        n.map(|n| f32::from_bits(((n as i32 + 127) << 23) as u32))
    }

    #[inline(always)]
    fn interleave(self, x: [f32; LANES], y: [f32; LANES]) -> [[f32; LANES]; 2] {
        let of_half = |half: usize| std::array::from_fn(|i| [x, y][i % 2][(half * LANES + i) / 2]);
        [of_half(0), of_half(1)]
    }

    #[inline(always)]
    fn where_less(self, x: [f32; LANES], y: [f32; LANES], a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        std::array::from_fn(|i| if x[i] < y[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn first(self, n: usize, a: [f32; LANES], b: [f32; LANES]) -> [f32; LANES] {
        std::array::from_fn(|i| if i < n { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn sum(self, mut x: [f32; LANES]) -> f32 {
        let mut apart = LANES / 2;
        while apart > 0 {
            for i in 0..apart {
                x[i] += x[i + apart];
            }
            apart /= 2;
        }
        x[0]
    }

    #[inline(always)]
    fn greatest(self, x: [f32; LANES]) -> f32 {
        x.into_iter().fold(f32::NEG_INFINITY, |most, x| if x > most { x } else { most })
    }

    #[inline(always)]
    fn max_magnitude(self, x: [f32; LANES], y: [f32; LANES]) -> [f32; LANES] {
        // Numbers that are not negative have the same order as their bits; NaN is the greatest.
        zip(x, y, |x, y| f32::from_bits(x.abs().to_bits().max(y.abs().to_bits())))
    }

    #[inline(always)]
    fn greatest_magnitude(self, x: [f32; LANES]) -> f32 {
        f32::from_bits(x.into_iter().fold(0, |most, x| most.max(x.to_bits())))
    }

    #[inline(always)]
    fn store_bytes(self, row: &mut ByteRow, at: usize, x: [f32; LANES], bias: u8) {
        /// 1.5·2²³: a small number that is added to it is rounded to an integer, whose bits are the lowest of the sum.
        const ROUND: f32 = 12_582_912.0;
        for (to, x) in row.0[at..at + LANES].iter_mut().zip(x) {
            *to = (x + ROUND).to_bits() as u8 ^ bias;
        }
    }

    #[inline(always)]
    fn load_pairs(self, row: &PairRow, at: usize) -> [[f32; LANES]; 2] {
        [
            std::array::from_fn(|i| f32::from_bits(row.0[at + i] << 16)),
            std::array::from_fn(|i| f32::from_bits(row.0[at + i] & 0xffff_0000)),
        ]
    }

    #[inline(always)]
    fn load_integers(self, row: &SumRow, at: usize) -> [f32; LANES] {
        std::array::from_fn(|i| row.0[at + i] as f32)
    }

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[cfg(target_arch = "x86_64")]
        if FUSED {
            // SAFETY: `self` proves the feature of the function.
            return unsafe { fused::run(self, kernel) };
        }
        kernel.run(self)
    }

    #[inline]
    fn run_tile<T: TileKernel>(self, tile: T) {
        #[cfg(target_arch = "x86_64")]
        if FUSED {
            // SAFETY: as in `run`.
            return unsafe { fused::run_tile(self, tile) };
        }
        run_tile_of_rows!(self, tile, 1, 1 2 3 4);
    }

    #[inline]
    fn run_pair_tile<T: PairTileKernel>(self, tile: T) {
        #[cfg(target_arch = "x86_64")]
        if FUSED {
            // SAFETY: as in `run`.
            return unsafe { fused::run_pair_tile(self, tile) };
        }
        run_pair_tile_of_rows!(self, WidenedPairs, tile, 1, 1 2 3 4);
    }

    #[inline(always)]
    fn byte_bias(self) -> u8 {
        0
    }

    #[inline]
    fn run_byte_tile<T: ByteTileKernel>(self, tile: T) {
        #[cfg(target_arch = "x86_64")]
        if FUSED {
            // SAFETY: as in `run`.
            return unsafe { fused::run_byte_tile(self, tile) };
        }
        run_pair_tile_of_rows!(self, ByteLoop, tile, 1, 1 2 3 4);
    }
}
