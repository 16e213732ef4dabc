//! AVX-512: 16 lanes, and a tile of 14 × 32 numbers in 28 of the 32 registers.

use std::arch::x86_64::*;

use super::{Kernel, Simd, pair_tile_of_rows, tile_of_rows};
use crate::gemm::{Dot, PairTile, Tile, Widened};
use crate::matrix::{PANEL, PairRow, Row};

/// The proof that the CPU has AVX-512 F, DQ, BW and VL, and FMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx512 {
    bf16: Option<Bf16>,
}

/// The proof that it also has AVX512-BF16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bf16(());

impl Avx512 {
    /// The proof, where it can be had.
    pub fn new() -> Option<Avx512> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("fma");
        has.then(|| Avx512 { bf16: is_x86_feature_detected!("avx512bf16").then_some(Bf16(())) })
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
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,fma")]
unsafe fn run_with_features<K: Kernel>(isa: Avx512, kernel: K) -> K::Output {
    kernel.run(isa)
}

/// # Safety
///
/// The features are those of `isa`.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,fma")]
unsafe fn tile_with_features(isa: Avx512, tile: Tile<'_>) {
    tile_of_rows!(isa, tile, 2, 1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

/// # Safety
///
/// The features are those of `isa`.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,fma")]
unsafe fn pair_tile_with_features(isa: Avx512, tile: PairTile<'_>) {
    pair_tile_of_rows!(isa, Widened, tile, 1, 1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

/// # Safety
///
/// The features are those of `isa` and `bf16`.
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,fma,avx512bf16")]
unsafe fn bf16_tile_with_features(isa: Avx512, bf16: Bf16, tile: PairTile<'_>) {
    pair_tile_of_rows!(isa, bf16, tile, 2, 1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

impl Dot<Avx512> for Bf16 {
    type Pairs = __m512bh;

    #[inline(always)]
    fn load(self, _: Avx512, row: &PairRow, at: usize) -> __m512bh {
        assert!(at + Avx512::LANES <= PANEL);
        // SAFETY: the arguments are the proof of the features; 16 pairs stand there.
        unsafe { std::mem::transmute(_mm512_loadu_si512(row.0.as_ptr().add(at).cast())) }
    }

    #[inline(always)]
    fn splat(self, _: Avx512, pair: u32) -> __m512bh {
        // SAFETY: the arguments are the proof of the features.
        unsafe { std::mem::transmute(_mm512_set1_epi32(pair as i32)) }
    }

    #[inline(always)]
    fn dot(self, _: Avx512, a: __m512bh, b: __m512bh, sum: __m512) -> __m512 {
        // SAFETY: the arguments are the proof of the features.
        unsafe { _mm512_dpbf16_ps(sum, a, b) }
    }
}

// Every intrinsic below needs a CPU with the features; a value of `Avx512` is the proof that it has them.
impl Simd for Avx512 {
    type V = __m512;

    const LANES: usize = 16;
    const TILE: usize = 14;

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, row: &Row, at: usize) -> __m512 {
        assert!(at + Self::LANES <= PANEL);
        // SAFETY: see above; 16 numbers stand there.
        unsafe { _mm512_loadu_ps(row.0.as_ptr().add(at)) }
    }

    #[inline(always)]
    fn store(self, row: &mut Row, at: usize, x: __m512) {
        assert!(at + Self::LANES <= PANEL);
        // SAFETY: see above; 16 numbers stand there.
        unsafe { _mm512_storeu_ps(row.0.as_mut_ptr().add(at), x) }
    }

    #[inline(always)]
    fn add(self, x: __m512, y: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_add_ps(x, y) }
    }

    #[inline(always)]
    fn sub(self, x: __m512, y: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_sub_ps(x, y) }
    }

    #[inline(always)]
    fn mul(self, x: __m512, y: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_mul_ps(x, y) }
    }

    #[inline(always)]
    fn div(self, x: __m512, y: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_div_ps(x, y) }
    }

    #[inline(always)]
    fn fma(self, x: __m512, y: __m512, z: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_ps(x, y, z) }
    }

    #[inline(always)]
    fn max(self, x: __m512, y: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_max_ps(x, y) }
    }

    #[inline(always)]
    fn min(self, x: __m512, y: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_min_ps(x, y) }
    }

    #[inline(always)]
    fn round(self, x: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x) }
    }

    #[inline(always)]
    fn pow2(self, n: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe {
            let biased = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased))
        }
    }

    #[inline(always)]
    fn where_less(self, x: __m512, y: __m512, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, y), b, a) }
    }

    #[inline(always)]
    fn first(self, n: usize, a: __m512, b: __m512) -> __m512 {
        let mask = if n >= Self::LANES { u16::MAX } else { (1 << n) - 1 };
        // SAFETY: see above.
        unsafe { _mm512_mask_blend_ps(mask, b, a) }
    }

    #[inline(always)]
    fn sum(self, x: __m512) -> f32 {
        // SAFETY: see above.
        unsafe {
            let x = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps::<1>(x));
            let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)))
        }
    }

    #[inline(always)]
    fn greatest(self, x: __m512) -> f32 {
        // SAFETY: see above.
        unsafe { _mm512_reduce_max_ps(x) }
    }

    #[inline(always)]
    fn load_pairs(self, row: &PairRow, at: usize) -> [__m512; 2] {
        assert!(at + Self::LANES <= PANEL);
        // SAFETY: see above; 16 pairs stand there.
        unsafe {
            let pairs = _mm512_loadu_si512(row.0.as_ptr().add(at).cast());
            let second = _mm512_and_si512(pairs, _mm512_set1_epi32(0xffff_0000_u32 as i32));
            [_mm512_castsi512_ps(_mm512_slli_epi32::<16>(pairs)), _mm512_castsi512_ps(second)]
        }
    }

    #[inline(always)]
    fn pair_tile(self, tile: PairTile<'_>) {
        match self.bf16 {
            // SAFETY: `self` and `bf16` are the proofs that the CPU has the features.
            Some(bf16) => unsafe { bf16_tile_with_features(self, bf16, tile) },
            // SAFETY: `self` is the proof that the CPU has the features.
            None => unsafe { pair_tile_with_features(self, tile) },
        }
    }

    #[inline(always)]
    fn tile(self, tile: Tile<'_>) {
        // SAFETY: `self` is the proof that the CPU has the features.
        unsafe { tile_with_features(self, tile) }
    }
}
