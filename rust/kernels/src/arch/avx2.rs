//! AVX2 and FMA: 8 lanes, and a tile of 6 × 16 numbers in 12 of the 16 registers, twice for a panel.

use std::arch::x86_64::*;

use super::{Kernel, Simd, pair_tile_of_rows, tile_of_rows};
use crate::gemm::{PairTile, Tile, Widened};
use crate::matrix::{PANEL, PairRow, Row};

/// The proof that the CPU has AVX2 and FMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx2(());

impl Avx2 {
    /// The proof, where it can be had.
    pub fn new() -> Option<Avx2> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Avx2(()))
    }

    /// As [`super::InstructionSet::run`].
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` is the proof that the CPU has the features.
        unsafe { run_with_features(self, kernel) }
    }
}

/// # Safety
///
/// The features are those of `isa`.
#[target_feature(enable = "avx2,fma")]
unsafe fn run_with_features<K: Kernel>(isa: Avx2, kernel: K) -> K::Output {
    kernel.run(isa)
}

/// # Safety
///
/// The features are those of `isa`.
#[target_feature(enable = "avx2,fma")]
unsafe fn tile_with_features(isa: Avx2, tile: Tile<'_>) {
    tile_of_rows!(isa, tile, 2, 1 2 3 4 5 6);
}

/// # Safety
///
/// The features are those of `isa`.
#[target_feature(enable = "avx2,fma")]
unsafe fn pair_tile_with_features(isa: Avx2, tile: PairTile<'_>) {
    pair_tile_of_rows!(isa, Widened, tile, 2, 1 2 3 4 5 6);
}

/// 8 lanes of ones, 8 of zeros: read from the right place, the mask of the first lanes.
static FIRST: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

// Every intrinsic below needs a CPU with the features; a value of `Avx2` is the proof that it has them.
impl Simd for Avx2 {
    type V = __m256;

    const LANES: usize = 8;
    const TILE: usize = 6;

    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, row: &Row, at: usize) -> __m256 {
        assert!(at + Self::LANES <= PANEL);
        // SAFETY: see above; 8 numbers stand there.
        unsafe { _mm256_loadu_ps(row.0.as_ptr().add(at)) }
    }

    #[inline(always)]
    fn store(self, row: &mut Row, at: usize, x: __m256) {
        assert!(at + Self::LANES <= PANEL);
        // SAFETY: see above; 8 numbers stand there.
        unsafe { _mm256_storeu_ps(row.0.as_mut_ptr().add(at), x) }
    }

    #[inline(always)]
    fn add(self, x: __m256, y: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_add_ps(x, y) }
    }

    #[inline(always)]
    fn sub(self, x: __m256, y: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_sub_ps(x, y) }
    }

    #[inline(always)]
    fn mul(self, x: __m256, y: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_mul_ps(x, y) }
    }

    #[inline(always)]
    fn div(self, x: __m256, y: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_div_ps(x, y) }
    }

    #[inline(always)]
    fn fma(self, x: __m256, y: __m256, z: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_fmadd_ps(x, y, z) }
    }

    #[inline(always)]
    fn max(self, x: __m256, y: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_max_ps(x, y) }
    }

    #[inline(always)]
    fn min(self, x: __m256, y: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_min_ps(x, y) }
    }

    #[inline(always)]
    fn round(self, x: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x) }
    }

    #[inline(always)]
    fn pow2(self, n: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe {
            let biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
        }
    }

    #[inline(always)]
    fn where_less(self, x: __m256, y: __m256, a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_blendv_ps(b, a, _mm256_cmp_ps::<_CMP_LT_OQ>(x, y)) }
    }

    #[inline(always)]
    fn first(self, n: usize, a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above; from any of the first 9 places on 8 numbers can be read.
        unsafe {
            let mask = _mm256_loadu_ps(FIRST.as_ptr().add(Self::LANES - n.min(Self::LANES)).cast());
            _mm256_blendv_ps(b, a, mask)
        }
    }

    #[inline(always)]
    fn sum(self, x: __m256) -> f32 {
        // SAFETY: see above.
        unsafe {
            let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)))
        }
    }

    #[inline(always)]
    fn greatest(self, x: __m256) -> f32 {
        // SAFETY: see above.
        unsafe {
            let x = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let x = _mm_max_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)))
        }
    }

    #[inline(always)]
    fn load_pairs(self, row: &PairRow, at: usize) -> [__m256; 2] {
        assert!(at + Self::LANES <= PANEL);
        // SAFETY: see above; 8 pairs stand there.
        unsafe {
            let pairs = _mm256_loadu_si256(row.0.as_ptr().add(at).cast());
            let second = _mm256_and_si256(pairs, _mm256_set1_epi32(0xffff_0000_u32 as i32));
            [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(pairs)), _mm256_castsi256_ps(second)]
        }
    }

    #[inline(always)]
    fn pair_tile(self, tile: PairTile<'_>) {
        // SAFETY: `self` is the proof that the CPU has the features.
        unsafe { pair_tile_with_features(self, tile) }
    }

    #[inline(always)]
    fn tile(self, tile: Tile<'_>) {
        // SAFETY: `self` is the proof that the CPU has the features.
        unsafe { tile_with_features(self, tile) }
    }
}
