//! NEON: 4 lanes, and a tile of 6 × 16 numbers in 24 of the 32 registers, twice for a panel.

use std::arch::aarch64::*;

use super::{Kernel, Simd, pair_tile_of_rows, tile_of_rows};
use crate::gemm::{PairTile, Tile, Widened};
use crate::matrix::{PANEL, PairRow, Row};

/// The proof that the CPU has NEON, which all of 64-bit Arm have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neon(());

impl Neon {
    /// The proof, where it can be had.
    pub fn new() -> Option<Neon> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Neon(()))
    }

    /// As [`super::InstructionSet::run`].
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` is the proof that the CPU has the feature.
        unsafe { run_with_features(self, kernel) }
    }
}

/// # Safety
///
/// The features are those of `isa`.
#[target_feature(enable = "neon")]
unsafe fn run_with_features<K: Kernel>(isa: Neon, kernel: K) -> K::Output {
    kernel.run(isa)
}

/// # Safety
///
/// The features are those of `isa`.
#[target_feature(enable = "neon")]
unsafe fn tile_with_features(isa: Neon, tile: Tile<'_>) {
    tile_of_rows!(isa, tile, 4, 1 2 3 4 5 6);
}

/// # Safety
///
/// The features are those of `isa`.
#[target_feature(enable = "neon")]
unsafe fn pair_tile_with_features(isa: Neon, tile: PairTile<'_>) {
    pair_tile_of_rows!(isa, Widened, tile, 2, 1 2 3 4 5 6);
}

// Every intrinsic below needs a CPU with the feature; a value of `Neon` is the proof that it has it.
impl Simd for Neon {
    type V = float32x4_t;

    const LANES: usize = 4;
    const TILE: usize = 6;

    #[inline(always)]
    fn splat(self, x: f32) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vdupq_n_f32(x) }
    }

    #[inline(always)]
    fn load(self, row: &Row, at: usize) -> float32x4_t {
        assert!(at + Self::LANES <= PANEL);
        // SAFETY: see above; 4 numbers stand there.
        unsafe { vld1q_f32(row.0.as_ptr().add(at)) }
    }

    #[inline(always)]
    fn store(self, row: &mut Row, at: usize, x: float32x4_t) {
        assert!(at + Self::LANES <= PANEL);
        // SAFETY: see above; 4 numbers stand there.
        unsafe { vst1q_f32(row.0.as_mut_ptr().add(at), x) }
    }

    #[inline(always)]
    fn add(self, x: float32x4_t, y: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vaddq_f32(x, y) }
    }

    #[inline(always)]
    fn sub(self, x: float32x4_t, y: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vsubq_f32(x, y) }
    }

    #[inline(always)]
    fn mul(self, x: float32x4_t, y: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vmulq_f32(x, y) }
    }

    #[inline(always)]
    fn div(self, x: float32x4_t, y: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vdivq_f32(x, y) }
    }

    #[inline(always)]
    fn fma(self, x: float32x4_t, y: float32x4_t, z: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vfmaq_f32(z, x, y) }
    }

    #[inline(always)]
    fn max(self, x: float32x4_t, y: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vbslq_f32(vcgtq_f32(x, y), x, y) }
    }

    #[inline(always)]
    fn min(self, x: float32x4_t, y: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vbslq_f32(vcltq_f32(x, y), x, y) }
    }

    #[inline(always)]
    fn round(self, x: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vrndnq_f32(x) }
    }

    #[inline(always)]
    fn pow2(self, n: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127)))) }
    }

    #[inline(always)]
    fn where_less(self, x: float32x4_t, y: float32x4_t, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vbslq_f32(vcltq_f32(x, y), a, b) }
    }

    #[inline(always)]
    fn first(self, n: usize, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        const LANE: [u32; 4] = [0, 1, 2, 3];
        // SAFETY: see above; 4 numbers stand there.
        unsafe { vbslq_f32(vcltq_u32(vld1q_u32(LANE.as_ptr()), vdupq_n_u32(n as u32)), a, b) }
    }

    #[inline(always)]
    fn sum(self, x: float32x4_t) -> f32 {
        // SAFETY: see above.
        unsafe { vaddvq_f32(x) }
    }

    #[inline(always)]
    fn greatest(self, x: float32x4_t) -> f32 {
        // SAFETY: see above.
        unsafe { vmaxvq_f32(x) }
    }

    #[inline(always)]
    fn load_pairs(self, row: &PairRow, at: usize) -> [float32x4_t; 2] {
        assert!(at + Self::LANES <= PANEL);
        // SAFETY: see above; 4 pairs stand there.
        unsafe {
            let pairs = vld1q_u32(row.0.as_ptr().add(at));
            let second = vandq_u32(pairs, vdupq_n_u32(0xffff_0000));
            [vreinterpretq_f32_u32(vshlq_n_u32::<16>(pairs)), vreinterpretq_f32_u32(second)]
        }
    }

    #[inline(always)]
    fn pair_tile(self, tile: PairTile<'_>) {
        // SAFETY: `self` is the proof that the CPU has the feature.
        unsafe { pair_tile_with_features(self, tile) }
    }

    #[inline(always)]
    fn tile(self, tile: Tile<'_>) {
        // SAFETY: `self` is the proof that the CPU has the feature.
        unsafe { tile_with_features(self, tile) }
    }
}
