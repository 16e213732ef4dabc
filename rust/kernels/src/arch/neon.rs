//! NEON: 4 lanes. A tile is 6 rows × 16 columns, whose sums fill 24 of the 32 registers; two cover a panel.
//!
//! Numbers of bfloat16 are multiplied by BFMMLA, in products of columns by BFDOT; int8 numbers by `smmla` or `sdot`; each where
//! the CPU has it.

use std::arch::aarch64::*;
use std::arch::asm;

use wordpiece_parallel::instruction_set::{Bf16Matrix, DotProduct, Int8Matrix, Neon, NeonBf16};

use super::simd::{
    ByteDot, ByteTileKernel, Kernel, MatrixDot, MultipliedBytes, PairDot, PairMatrixTileKernel, PairTileKernel, Simd,
    TileKernel, WidenedPairs, run_matrix_tile_of_rows, run_pair_tile_of_rows, run_tile_of_rows, vector_operations,
};
use crate::matrix::{ByteRow, PANEL, PairRow, QuadRow, Row, SumRow};
use crate::numbers::GROUP;

#[target_feature(enable = "neon")]
fn run_with_features<K: Kernel>(token: Neon, kernel: K) -> K::Output {
    kernel.run(token)
}

#[target_feature(enable = "neon")]
fn run_tile_with_features<T: TileKernel>(token: Neon, tile: T) {
    run_tile_of_rows!(token, tile, 4, 1 2 3 4 5 6);
}

#[target_feature(enable = "neon")]
fn run_pair_tile_with_features<T: PairTileKernel>(token: Neon, tile: T) {
    run_pair_tile_of_rows!(token, WidenedPairs, tile, 2, 1 2 3 4 5 6);
}

#[target_feature(enable = "neon,bf16")]
fn run_bf16_tile_with_features<T: PairTileKernel>(token: Neon, bf16: NeonBf16, tile: T) {
    run_pair_tile_of_rows!(token, bf16, tile, 4, 1 2 3 4 5 6);
}

// Half a panel: interleaved weights need registers beside the sums.
#[target_feature(enable = "neon,bf16")]
fn run_bf16_matrix_tile_with_features<T: PairMatrixTileKernel>(token: Neon, dot: Bf16Matrix, tile: T) {
    run_matrix_tile_of_rows!(token, dot, tile, 2, 1/1 2/1 3/2 4/2 5/3 6/3);
}

impl PairDot<Neon> for NeonBf16 {
    type Pairs = uint32x4_t;

    #[inline(always)]
    fn load(self, _: Neon, row: &PairRow, at: usize) -> uint32x4_t {
        assert!(at <= PANEL - Neon::LANES);
        // SAFETY: `self` proves NEON; the assertion leaves 4 pairs from `at` on.
        unsafe { vld1q_u32(row.0.as_ptr().add(at)) }
    }

    #[inline(always)]
    fn splat(self, _: Neon, pair: u32) -> uint32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vdupq_n_u32(pair) }
    }

    // Rust has no stable intrinsic for it.
    #[inline(always)]
    fn dot(self, _: Neon, a: uint32x4_t, b: uint32x4_t, mut sum: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves that the CPU has the instruction, which reads and writes these registers only.
        unsafe {
            asm!(
                ".arch_extension bf16",
                "bfdot {sum:v}.4s, {a:v}.8h, {b:v}.8h",
                sum = inout(vreg) sum,
                a = in(vreg) a,
                b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sum
    }
}

#[target_feature(enable = "neon")]
fn run_byte_tile_with_features<T: ByteTileKernel>(token: Neon, tile: T) {
    run_pair_tile_of_rows!(token, MultipliedBytes, tile, 4, 1 2 3 4 5 6);
}

#[target_feature(enable = "neon,dotprod")]
fn run_dot_product_tile_with_features<T: ByteTileKernel>(token: Neon, dot: DotProduct, tile: T) {
    run_pair_tile_of_rows!(token, dot, tile, 4, 1 2 3 4 5 6);
}

// Half a panel: interleaved weights need registers beside the sums.
#[target_feature(enable = "neon,i8mm")]
fn run_int8_matrix_tile_with_features<T: ByteTileKernel>(token: Neon, dot: Int8Matrix, tile: T) {
    run_matrix_tile_of_rows!(token, dot, tile, 2, 1/1 2/1 3/2 4/2 5/3 6/3);
}

/// Reads 4 quads of weights.
#[inline(always)]
fn load_quads(_: Neon, row: &QuadRow, at: usize) -> int8x16_t {
    assert!(at <= PANEL - Neon::LANES);
    // SAFETY: the token proves NEON; the assertion leaves 4 quads of 4 bytes from `at` on.
    unsafe { vld1q_s8(row.0.as_ptr().add(at).cast()) }
}

/// The parts of [`ByteDot`] that both ways of multiplying on NEON have in common.
macro_rules! neon_bytes {
    () => {
        type Sums = int32x4_t;
        type Inputs = int8x16_t;
        type Quads = int8x16_t;

        #[inline(always)]
        fn start(self, _: Neon, _: &SumRow, _: usize) -> int32x4_t {
            // SAFETY: the token proves NEON.
            unsafe { vdupq_n_s32(0) }
        }

        #[inline(always)]
        fn load(self, simd: Neon, row: &QuadRow, at: usize, _: usize) -> int8x16_t {
            load_quads(simd, row, at)
        }

        #[inline(always)]
        fn splat(self, _: Neon, quad: u32) -> int8x16_t {
            // SAFETY: the token proves NEON.
            unsafe { vreinterpretq_s8_u32(vdupq_n_u32(quad)) }
        }

        #[inline(always)]
        fn to_float(self, _: Neon, sums: int32x4_t) -> float32x4_t {
            // SAFETY: the token proves NEON.
            unsafe { vcvtq_f32_s32(sums) }
        }
    };
}

impl ByteDot<Neon> for DotProduct {
    neon_bytes!();

    /// The instruction is written as assembly: Rust 1.95 has no stable function for it.
    #[inline(always)]
    fn dot(self, _: Neon, a: int8x16_t, b: int8x16_t, mut sums: int32x4_t) -> int32x4_t {
        // SAFETY: `self` proves that the CPU has `sdot`, which reads and writes these registers only.
        unsafe {
            asm!(
                ".arch_extension dotprod",
                "sdot {sums:v}.4s, {a:v}.16b, {b:v}.16b",
                sums = inout(vreg) sums,
                a = in(vreg) a,
                b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sums
    }
}

/// Products in 16 bits, which hold 127·127, are added two by two into 32 bits.
impl ByteDot<Neon> for MultipliedBytes {
    neon_bytes!();

    #[inline(always)]
    fn dot(self, _: Neon, a: int8x16_t, b: int8x16_t, sums: int32x4_t) -> int32x4_t {
        // SAFETY: the token proves NEON.
        unsafe {
            let first = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
            let second = vpaddlq_s16(vmull_high_s8(a, b));
            vaddq_s32(sums, vpaddq_s32(first, second))
        }
    }
}

/// Rows of quads interleave to the operand of `smmla`: 8 bytes of a column, then 8 of the next.
impl MatrixDot<Neon> for Int8Matrix {
    type Row = QuadRow;
    type Inputs = int8x16_t;
    type Weights = [int8x16_t; 2];
    /// The sums of the first two columns and of the next two, each by rows.
    type Sums = [int32x4_t; 2];

    #[inline(always)]
    fn zero(self, _: Neon) -> [int32x4_t; 2] {
        // SAFETY: the token proves NEON.
        unsafe { [vdupq_n_s32(0); 2] }
    }

    #[inline(always)]
    fn inputs(self, _: Neon, first: u64, second: u64) -> int8x16_t {
        // SAFETY: the token proves NEON.
        unsafe { vreinterpretq_s8_u64(vcombine_u64(vcreate_u64(first), vcreate_u64(second))) }
    }

    #[inline(always)]
    fn load(self, simd: Neon, rows: &[QuadRow; 2], at: usize) -> [int8x16_t; 2] {
        // SAFETY: the token proves NEON.
        unsafe {
            let first = vreinterpretq_s32_s8(load_quads(simd, &rows[0], at));
            let second = vreinterpretq_s32_s8(load_quads(simd, &rows[1], at));
            let (left, right) = (vzip1q_s32(first, second), vzip2q_s32(first, second));
            [vreinterpretq_s8_s32(left), vreinterpretq_s8_s32(right)]
        }
    }

    /// The instruction is written as assembly: Rust 1.95 has no stable function for it.
    #[inline(always)]
    fn dot(self, _: Neon, a: int8x16_t, b: [int8x16_t; 2], mut sums: [int32x4_t; 2]) -> [int32x4_t; 2] {
        for half in 0..2 {
            // SAFETY: `self` proves that the CPU has `smmla`, which reads and writes these registers only.
            unsafe {
                asm!(
                    ".arch_extension i8mm",
                    "smmla {sums:v}.4s, {a:v}.16b, {b:v}.16b",
                    sums = inout(vreg) sums[half],
                    a = in(vreg) a,
                    b = in(vreg) b[half],
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
        }
        sums
    }

    #[inline(always)]
    fn to_rows(self, _: Neon, sums: [int32x4_t; 2]) -> [float32x4_t; 2] {
        // SAFETY: the token proves NEON.
        unsafe {
            let (left, right) = (vreinterpretq_s64_s32(sums[0]), vreinterpretq_s64_s32(sums[1]));
            let (first, second) = (vzip1q_s64(left, right), vzip2q_s64(left, right));
            [vcvtq_f32_s32(vreinterpretq_s32_s64(first)), vcvtq_f32_s32(vreinterpretq_s32_s64(second))]
        }
    }
}

/// Rows of pairs interleave to the operand of BFMMLA: 4 numbers of a column, then 4 of the next.
impl MatrixDot<Neon> for Bf16Matrix {
    type Row = PairRow;
    type Inputs = uint64x2_t;
    type Weights = [uint32x4_t; 2];
    /// The sums of the first two columns and of the next two, each by rows.
    type Sums = [float32x4_t; 2];

    #[inline(always)]
    fn zero(self, _: Neon) -> [float32x4_t; 2] {
        // SAFETY: the token proves NEON.
        unsafe { [vdupq_n_f32(0.0); 2] }
    }

    #[inline(always)]
    fn inputs(self, _: Neon, first: u64, second: u64) -> uint64x2_t {
        // SAFETY: the token proves NEON.
        unsafe { vcombine_u64(vcreate_u64(first), vcreate_u64(second)) }
    }

    #[inline(always)]
    fn load(self, _: Neon, rows: &[PairRow; 2], at: usize) -> [uint32x4_t; 2] {
        assert!(at <= PANEL - Neon::LANES);
        // SAFETY: the token proves NEON; the assertion leaves 4 pairs of each row from `at` on.
        unsafe {
            let (first, second) = (vld1q_u32(rows[0].0.as_ptr().add(at)), vld1q_u32(rows[1].0.as_ptr().add(at)));
            [vzip1q_u32(first, second), vzip2q_u32(first, second)]
        }
    }

    /// The instruction is written as assembly: Rust 1.95 has no stable function for it.
    #[inline(always)]
    fn dot(self, _: Neon, a: uint64x2_t, b: [uint32x4_t; 2], mut sums: [float32x4_t; 2]) -> [float32x4_t; 2] {
        for half in 0..2 {
            // SAFETY: `self` proves that the CPU has BFMMLA, which reads and writes these registers only.
            unsafe {
                asm!(
                    ".arch_extension bf16",
                    "bfmmla {sums:v}.4s, {a:v}.8h, {b:v}.8h",
                    sums = inout(vreg) sums[half],
                    a = in(vreg) a,
                    b = in(vreg) b[half],
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
        }
        sums
    }

    #[inline(always)]
    fn to_rows(self, _: Neon, sums: [float32x4_t; 2]) -> [float32x4_t; 2] {
        // SAFETY: the token proves NEON.
        unsafe {
            let (left, right) = (vreinterpretq_u64_f32(sums[0]), vreinterpretq_u64_f32(sums[1]));
            let (first, second) = (vzip1q_u64(left, right), vzip2q_u64(left, right));
            [vreinterpretq_f32_u64(first), vreinterpretq_f32_u64(second)]
        }
    }
}

impl Simd for Neon {
    type V = float32x4_t;

    const LANES: usize = 4;
    const TILE_ROWS: usize = 6;

    #[inline(always)]
    fn splat(self, x: f32) -> float32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vdupq_n_f32(x) }
    }

    #[inline(always)]
    fn load(self, row: &Row, at: usize) -> float32x4_t {
        assert!(at <= PANEL - Self::LANES);
        // SAFETY: `self` proves NEON; the assertion leaves 4 numbers from `at` on.
        unsafe { vld1q_f32(row.0.as_ptr().add(at)) }
    }

    #[inline(always)]
    fn store(self, row: &mut Row, at: usize, x: float32x4_t) {
        assert!(at <= PANEL - Self::LANES);
        // SAFETY: `self` proves NEON; the assertion leaves 4 numbers from `at` on.
        unsafe { vst1q_f32(row.0.as_mut_ptr().add(at), x) }
    }

    vector_operations! { float32x4_t:
        add(x, y) = vaddq_f32(x, y);
        sub(x, y) = vsubq_f32(x, y);
        mul(x, y) = vmulq_f32(x, y);
        div(x, y) = vdivq_f32(x, y);
        fma(x, y, z) = vfmaq_f32(z, x, y);
        max(x, y) = vbslq_f32(vcgtq_f32(x, y), x, y);
        min(x, y) = vbslq_f32(vcltq_f32(x, y), x, y);
        round(x) = vrndnq_f32(x);
        pow2(n) = vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127))));
        where_less(x, y, a, b) = vbslq_f32(vcltq_f32(x, y), a, b);
        // The maximum of NaN and a number is NaN.
        max_magnitude(x, y) = vmaxq_f32(vabsq_f32(x), vabsq_f32(y));
    }

    #[inline(always)]
    fn interleave(self, x: float32x4_t, y: float32x4_t) -> [float32x4_t; 2] {
        // SAFETY: `self` proves NEON.
        unsafe { [vzip1q_f32(x, y), vzip2q_f32(x, y)] }
    }

    #[inline(always)]
    fn first(self, n: usize, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        const LANE: [u32; 4] = [0, 1, 2, 3];
        let n = n.min(Self::LANES) as u32;
        // SAFETY: `self` proves NEON; the 4 numbers read are the numbers of `LANE`.
        unsafe { vbslq_f32(vcltq_u32(vld1q_u32(LANE.as_ptr()), vdupq_n_u32(n)), a, b) }
    }

    #[inline(always)]
    fn sum(self, x: float32x4_t) -> f32 {
        // SAFETY: `self` proves NEON.
        unsafe {
            let x = vadd_f32(vget_low_f32(x), vget_high_f32(x));
            vget_lane_f32::<0>(vpadd_f32(x, x))
        }
    }

    #[inline(always)]
    fn greatest(self, x: float32x4_t) -> f32 {
        // SAFETY: `self` proves NEON.
        unsafe { vmaxvq_f32(x) }
    }

    #[inline(always)]
    fn greatest_magnitude(self, x: float32x4_t) -> f32 {
        // SAFETY: `self` proves NEON. The maximum is NaN if one lane is.
        unsafe { vmaxvq_f32(x) }
    }

    #[inline(always)]
    fn store_bytes(self, row: &mut ByteRow, at: usize, x: float32x4_t, bias: u8) {
        assert!(at <= GROUP - Self::LANES);
        // SAFETY: `self` proves NEON; the assertion leaves 4 bytes from `at` on.
        unsafe {
            let x = vmovn_s32(vcvtnq_s32_f32(x));
            let x = veor_s8(vmovn_s16(vcombine_s16(x, x)), vdup_n_s8(bias as i8));
            row.0[at..at + Self::LANES].copy_from_slice(&vget_lane_u32::<0>(vreinterpret_u32_s8(x)).to_le_bytes());
        }
    }

    #[inline(always)]
    fn load_pairs(self, row: &PairRow, at: usize) -> [float32x4_t; 2] {
        assert!(at <= PANEL - Self::LANES);
        // SAFETY: `self` proves NEON; the assertion leaves 4 pairs from `at` on.
        unsafe {
            let pairs = vld1q_u32(row.0.as_ptr().add(at));
            let second = vandq_u32(pairs, vdupq_n_u32(0xffff_0000));
            [vreinterpretq_f32_u32(vshlq_n_u32::<16>(pairs)), vreinterpretq_f32_u32(second)]
        }
    }

    #[inline(always)]
    fn load_integers(self, row: &SumRow, at: usize) -> float32x4_t {
        assert!(at <= PANEL - Self::LANES);
        // SAFETY: `self` proves NEON; the assertion leaves 4 integers from `at` on.
        unsafe { vcvtq_f32_s32(vld1q_s32(row.0.as_ptr().add(at))) }
    }

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` proves NEON, the feature of the function.
        unsafe { run_with_features(self, kernel) }
    }

    #[inline(always)]
    fn run_tile<T: TileKernel>(self, tile: T) {
        // SAFETY: `self` proves NEON, the feature of the function.
        unsafe { run_tile_with_features(self, tile) }
    }

    #[inline(always)]
    fn run_pair_tile<T: PairTileKernel>(self, tile: T) {
        match self.bf16() {
            // SAFETY: `self` and `bf16` prove NEON and BFDOT, the features of the function.
            Some(bf16) => unsafe { run_bf16_tile_with_features(self, bf16, tile) },
            // SAFETY: `self` proves NEON, the feature of the function.
            None => unsafe { run_pair_tile_with_features(self, tile) },
        }
    }

    #[inline(always)]
    fn run_pair_matrix_tile<T: PairMatrixTileKernel>(self, tile: T) {
        match self.bf16_matrix() {
            // SAFETY: `self` and `dot` prove NEON and BFMMLA, the features of the function.
            Some(dot) => unsafe { run_bf16_matrix_tile_with_features(self, dot, tile) },
            None => self.run_pair_tile(tile),
        }
    }

    #[inline(always)]
    fn byte_bias(self) -> u8 {
        0
    }

    #[inline(always)]
    fn run_byte_tile<T: ByteTileKernel>(self, tile: T) {
        match (self.int8_matrix(), self.dot_product()) {
            // SAFETY: `self` and `dot` prove NEON and the products of matrices, the features of the function.
            (Some(dot), _) => unsafe { run_int8_matrix_tile_with_features(self, dot, tile) },
            // SAFETY: `self` and `dot` prove NEON and the dot products, the features of the function.
            (None, Some(dot)) => unsafe { run_dot_product_tile_with_features(self, dot, tile) },
            // SAFETY: `self` proves NEON, the feature of the function.
            (None, None) => unsafe { run_byte_tile_with_features(self, tile) },
        }
    }
}
