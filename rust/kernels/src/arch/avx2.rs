//! AVX2 and FMA: 8 lanes. A tile is 6 rows × 16 columns, whose sums fill 12 of the 16 registers; two cover a panel.

use std::arch::x86_64::*;

use wordpiece_parallel::instruction_set::Avx2;

use super::simd::{Kernel, PairTileKernel, Simd, TileKernel, WidenedPairs, run_pair_tile_of_rows, run_tile_of_rows};
use crate::matrix::{PANEL, PairRow, Row};

#[target_feature(enable = "avx2,fma,popcnt")]
fn run_with_features<K: Kernel>(token: Avx2, kernel: K) -> K::Output {
    kernel.run(token)
}

#[target_feature(enable = "avx2,fma")]
fn run_tile_with_features<T: TileKernel>(token: Avx2, tile: T) {
    run_tile_of_rows!(token, tile, 2, 1 2 3 4 5 6);
}

#[target_feature(enable = "avx2,fma")]
fn run_pair_tile_with_features<T: PairTileKernel>(token: Avx2, tile: T) {
    run_pair_tile_of_rows!(token, WidenedPairs, tile, 2, 1 2 3 4 5 6);
}

/// 8 lanes of ones and 8 of zeros. Read from index 8 − n on, it is the mask of the first n lanes.
static FIRST_LANES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

impl Simd for Avx2 {
    type V = __m256;

    const LANES: usize = 8;
    const TILE_ROWS: usize = 6;

    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, row: &Row, at: usize) -> __m256 {
        assert!(at <= PANEL - Self::LANES);
        // SAFETY: `self` proves AVX2 and FMA; the assertion leaves 8 numbers from `at` on.
        unsafe { _mm256_loadu_ps(row.0.as_ptr().add(at)) }
    }

    #[inline(always)]
    fn store(self, row: &mut Row, at: usize, x: __m256) {
        assert!(at <= PANEL - Self::LANES);
        // SAFETY: `self` proves AVX2 and FMA; the assertion leaves 8 numbers from `at` on.
        unsafe { _mm256_storeu_ps(row.0.as_mut_ptr().add(at), x) }
    }

    #[inline(always)]
    fn add(self, x: __m256, y: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe { _mm256_add_ps(x, y) }
    }

    #[inline(always)]
    fn sub(self, x: __m256, y: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe { _mm256_sub_ps(x, y) }
    }

    #[inline(always)]
    fn mul(self, x: __m256, y: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe { _mm256_mul_ps(x, y) }
    }

    #[inline(always)]
    fn div(self, x: __m256, y: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe { _mm256_div_ps(x, y) }
    }

    #[inline(always)]
    fn fma(self, x: __m256, y: __m256, z: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe { _mm256_fmadd_ps(x, y, z) }
    }

    #[inline(always)]
    fn max(self, x: __m256, y: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe { _mm256_max_ps(x, y) }
    }

    #[inline(always)]
    fn min(self, x: __m256, y: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe { _mm256_min_ps(x, y) }
    }

    #[inline(always)]
    fn round(self, x: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x) }
    }

    #[inline(always)]
    fn pow2(self, n: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe {
            let biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
        }
    }

    #[inline(always)]
    fn where_less(self, x: __m256, y: __m256, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe { _mm256_blendv_ps(b, a, _mm256_cmp_ps::<_CMP_LT_OQ>(x, y)) }
    }

    #[inline(always)]
    fn first(self, n: usize, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2; the offset is at most 8, which leaves 8 of the 16 numbers.
        unsafe {
            let mask = _mm256_loadu_ps(FIRST_LANES.as_ptr().add(Self::LANES - n.min(Self::LANES)).cast());
            _mm256_blendv_ps(b, a, mask)
        }
    }

    #[inline(always)]
    fn sum(self, x: __m256) -> f32 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe {
            let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)))
        }
    }

    #[inline(always)]
    fn greatest(self, x: __m256) -> f32 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe {
            let x = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let x = _mm_max_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)))
        }
    }

    #[inline(always)]
    fn load_pairs(self, row: &PairRow, at: usize) -> [__m256; 2] {
        assert!(at <= PANEL - Self::LANES);
        // SAFETY: `self` proves AVX2 and FMA; the assertion leaves 8 pairs from `at` on.
        unsafe {
            let pairs = _mm256_loadu_si256(row.0.as_ptr().add(at).cast());
            let second = _mm256_and_si256(pairs, _mm256_set1_epi32(0xffff_0000_u32 as i32));
            [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(pairs)), _mm256_castsi256_ps(second)]
        }
    }

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` proves AVX2, FMA and POPCNT, the features of the function.
        unsafe { run_with_features(self, kernel) }
    }

    #[inline(always)]
    fn run_tile<T: TileKernel>(self, tile: T) {
        // SAFETY: `self` proves AVX2 and FMA, the features of the function.
        unsafe { run_tile_with_features(self, tile) }
    }

    #[inline(always)]
    fn run_pair_tile<T: PairTileKernel>(self, tile: T) {
        // SAFETY: `self` proves AVX2 and FMA, the features of the function.
        unsafe { run_pair_tile_with_features(self, tile) }
    }
}
