//! NEON: 4 lanes. A tile is 6 rows × 16 columns, whose sums fill 24 of the 32 registers; two cover a panel.
//!
//! Pairs of bfloat16 numbers are multiplied with BFDOT where the CPU has it.

use std::arch::aarch64::*;
use std::arch::asm;

use wordpiece_parallel::instruction_set::{Neon, NeonBf16};

use super::simd::{
    Kernel, PairDot, PairTileKernel, Simd, TileKernel, WidenedPairs, run_pair_tile_of_rows, run_tile_of_rows,
};
use crate::matrix::{PANEL, PairRow, Row};

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

    #[inline(always)]
    fn add(self, x: float32x4_t, y: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vaddq_f32(x, y) }
    }

    #[inline(always)]
    fn sub(self, x: float32x4_t, y: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vsubq_f32(x, y) }
    }

    #[inline(always)]
    fn mul(self, x: float32x4_t, y: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vmulq_f32(x, y) }
    }

    #[inline(always)]
    fn div(self, x: float32x4_t, y: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vdivq_f32(x, y) }
    }

    #[inline(always)]
    fn fma(self, x: float32x4_t, y: float32x4_t, z: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vfmaq_f32(z, x, y) }
    }

    #[inline(always)]
    fn max(self, x: float32x4_t, y: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vbslq_f32(vcgtq_f32(x, y), x, y) }
    }

    #[inline(always)]
    fn min(self, x: float32x4_t, y: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vbslq_f32(vcltq_f32(x, y), x, y) }
    }

    #[inline(always)]
    fn round(self, x: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vrndnq_f32(x) }
    }

    #[inline(always)]
    fn pow2(self, n: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127)))) }
    }

    #[inline(always)]
    fn where_less(self, x: float32x4_t, y: float32x4_t, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves NEON.
        unsafe { vbslq_f32(vcltq_f32(x, y), a, b) }
    }

    #[inline(always)]
    fn first(self, n: usize, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        const LANE: [u32; 4] = [0, 1, 2, 3];
        let n = n.min(Self::LANES) as u32;
        // SAFETY: `self` proves NEON; the 4 numbers that are read are those of `LANE`.
        unsafe { vbslq_f32(vcltq_u32(vld1q_u32(LANE.as_ptr()), vdupq_n_u32(n)), a, b) }
    }

    #[inline(always)]
    fn sum(self, x: float32x4_t) -> f32 {
        // SAFETY: `self` proves NEON.
        unsafe { vaddvq_f32(x) }
    }

    #[inline(always)]
    fn greatest(self, x: float32x4_t) -> f32 {
        // SAFETY: `self` proves NEON.
        unsafe { vmaxvq_f32(x) }
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
}
