//! AVX2 and FMA: 8 lanes. A tile is 6 rows × 16 columns, whose sums fill 12 of the 16 registers; two cover a panel.

use std::arch::x86_64::*;

use wordpiece_parallel::instruction_set::{Avx2, AvxVnni};

use super::simd::{
    ByteDot, ByteTileKernel, COLUMNS, Kernel, MultipliedBytes, PairTileKernel, Simd, TileKernel, WidenedPairs,
    run_pair_tile_of_rows, run_tile_of_rows, vector_operations,
};
use crate::matrix::{ByteRow, PANEL, PairRow, QuadRow, Row, SumRow, WordRow};
use crate::numbers::GROUP;

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

#[target_feature(enable = "avx2,fma")]
fn run_byte_tile_with_features<T: ByteTileKernel>(token: Avx2, tile: T) {
    run_pair_tile_of_rows!(token, MultipliedBytes, tile, 2, 1 2 3 4 5 6);
}

#[target_feature(enable = "avx2,fma,avxvnni")]
fn run_vnni_tile_with_features<T: ByteTileKernel>(token: Avx2, vnni: AvxVnni, tile: T) {
    run_pair_tile_of_rows!(token, vnni, tile, 2, 1 2 3 4 5 6);
}

/// Reads 8 quads of weights.
#[inline(always)]
fn load_quads(_: Avx2, row: &QuadRow, at: usize) -> __m256i {
    assert!(at <= PANEL - Avx2::LANES);
    // SAFETY: the token proves AVX2; the assertion leaves 8 quads of 4 bytes from `at` on.
    unsafe { _mm256_loadu_si256(row.0.as_ptr().add(at).cast()) }
}

impl ByteDot<Avx2> for AvxVnni {
    type Sums = __m256i;
    type Inputs = __m256i;
    type Quads = __m256i;

    #[inline(always)]
    fn start(self, _: Avx2, row: &SumRow, at: usize) -> __m256i {
        assert!(at <= PANEL - Avx2::LANES);
        // SAFETY: `self` proves AVX2; the assertion leaves 8 sums from `at` on.
        unsafe { _mm256_loadu_si256(row.0.as_ptr().add(at).cast()) }
    }

    #[inline(always)]
    fn load(self, simd: Avx2, row: &QuadRow, at: usize, _: usize) -> __m256i {
        load_quads(simd, row, at)
    }

    #[inline(always)]
    fn splat(self, _: Avx2, quad: u32) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_set1_epi32(quad as i32) }
    }

    #[inline(always)]
    fn dot(self, _: Avx2, a: __m256i, b: __m256i, sums: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX-VNNI.
        unsafe { _mm256_dpbusd_avx_epi32(sums, a, b) }
    }

    #[inline(always)]
    fn to_float(self, _: Avx2, sums: __m256i) -> __m256 {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_cvtepi32_ps(sums) }
    }
}

impl ByteDot<Avx2> for MultipliedBytes {
    type Sums = __m256i;
    type Inputs = __m256i;
    type Quads = __m256i;

    const PARTS: usize = 2;

    #[inline(always)]
    fn start(self, _: Avx2, _: &SumRow, _: usize) -> __m256i {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn widen(self, _: Avx2, row: &ByteRow, to: &mut WordRow) {
        let [even, odd] = &mut to.0;
        // SAFETY: the token proves AVX2; a row has 64 bytes, and its halves 16 numbers each.
        unsafe {
            for half in 0..2 {
                let x = _mm256_loadu_si256(row.0.as_ptr().cast::<__m256i>().add(half));
                let low = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(x));
                _mm256_storeu_si256(even.as_mut_ptr().cast::<__m256i>().add(half), low);
                _mm256_storeu_si256(odd.as_mut_ptr().cast::<__m256i>().add(half), _mm256_srai_epi16::<8>(x));
            }
        }
    }

    #[inline(always)]
    fn load(self, simd: Avx2, row: &QuadRow, at: usize, part: usize) -> __m256i {
        let quads = load_quads(simd, row, at);
        // SAFETY: the token proves AVX2.
        unsafe {
            match part {
                0 => _mm256_slli_epi16::<8>(quads),
                _ => _mm256_and_si256(quads, _mm256_set1_epi16(0xff00_u16 as i16)),
            }
        }
    }

    #[inline(always)]
    fn splat(self, _: Avx2, pair: u32) -> __m256i {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_set1_epi32(pair as i32) }
    }

    #[inline(always)]
    fn dot(self, _: Avx2, a: __m256i, b: __m256i, sums: __m256i) -> __m256i {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(a, b)) }
    }

    #[inline(always)]
    fn to_float(self, _: Avx2, sums: __m256i) -> __m256 {
        // SAFETY: the token proves AVX2.
        unsafe { _mm256_cvtepi32_ps(_mm256_srai_epi32::<8>(sums)) }
    }
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

    const READS_COLUMNS: bool = true;

    #[inline(always)]
    fn load_columns(self, rows: &[&[f32]], at: usize) -> [__m256; COLUMNS] {
        let rows: &[&[f32]; Self::LANES] = rows.try_into().expect("a row for each lane");
        assert!(rows.iter().all(|row| row.len() >= COLUMNS && at <= row.len() - COLUMNS));
        /// Half of row i, and the same half of row i + 4: the instructions that follow work within halves of 4 lanes.
        macro_rules! halves {
            ($i:literal, $at:expr) => {
                _mm256_insertf128_ps::<1>(
                    _mm256_castps128_ps256(_mm_loadu_ps(rows[$i].as_ptr().add($at))),
                    _mm_loadu_ps(rows[$i + 4].as_ptr().add($at)),
                )
            };
        }
        let mut columns = [self.splat(0.0); COLUMNS];
        for (half, columns) in columns.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let at = at + 4 * half;
            // SAFETY: `self` proves AVX2; the assertion leaves 4 numbers of each row from `at` on.
            unsafe {
                let (a, b, c, d) = (halves!(0, at), halves!(1, at), halves!(2, at), halves!(3, at));
                let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
                columns[0] = _mm256_shuffle_ps::<0b0100_0100>(ab, cd);
                columns[1] = _mm256_shuffle_ps::<0b1110_1110>(ab, cd);
                let (ab, cd) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
                columns[2] = _mm256_shuffle_ps::<0b0100_0100>(ab, cd);
                columns[3] = _mm256_shuffle_ps::<0b1110_1110>(ab, cd);
            }
        }
        columns
    }

    #[inline(always)]
    fn store(self, row: &mut Row, at: usize, x: __m256) {
        assert!(at <= PANEL - Self::LANES);
        // SAFETY: `self` proves AVX2 and FMA; the assertion leaves 8 numbers from `at` on.
        unsafe { _mm256_storeu_ps(row.0.as_mut_ptr().add(at), x) }
    }

    vector_operations! { __m256:
        add(x, y) = _mm256_add_ps(x, y);
        sub(x, y) = _mm256_sub_ps(x, y);
        mul(x, y) = _mm256_mul_ps(x, y);
        div(x, y) = _mm256_div_ps(x, y);
        fma(x, y, z) = _mm256_fmadd_ps(x, y, z);
        max(x, y) = _mm256_max_ps(x, y);
        min(x, y) = _mm256_min_ps(x, y);
        round(x) = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
        where_less(x, y, a, b) = _mm256_blendv_ps(b, a, _mm256_cmp_ps::<_CMP_LT_OQ>(x, y));
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
    fn interleave(self, x: __m256, y: __m256) -> [__m256; 2] {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe {
            // Each instruction works within halves of 4 lanes.
            let (first, second) = (_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y));
            [_mm256_permute2f128_ps::<0x20>(first, second), _mm256_permute2f128_ps::<0x31>(first, second)]
        }
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
    fn max_magnitude(self, x: __m256, y: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe {
            // Numbers that are not negative have the same order as their bits; NaN is the greatest.
            let bits = _mm256_set1_epi32(0x7fff_ffff);
            let x = _mm256_and_si256(_mm256_castps_si256(x), bits);
            let y = _mm256_and_si256(_mm256_castps_si256(y), bits);
            _mm256_castsi256_ps(_mm256_max_epi32(x, y))
        }
    }

    #[inline(always)]
    fn greatest_magnitude(self, x: __m256) -> f32 {
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe {
            let x = _mm256_castps_si256(x);
            let x = _mm_max_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
            let x = _mm_max_epi32(x, _mm_shuffle_epi32::<0b01_00_11_10>(x));
            let x = _mm_max_epi32(x, _mm_shuffle_epi32::<0b10_11_00_01>(x));
            _mm_cvtss_f32(_mm_castsi128_ps(x))
        }
    }

    #[inline(always)]
    fn store_bytes(self, row: &mut ByteRow, at: usize, x: __m256, bias: u8) {
        assert!(at <= GROUP - Self::LANES);
        // SAFETY: `self` proves AVX2 and FMA; the assertion leaves 8 bytes from `at` on.
        unsafe {
            let x = _mm256_cvtps_epi32(x);
            let x = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
            let x = _mm_xor_si128(_mm_packs_epi16(x, x), _mm_set1_epi8(bias as i8));
            _mm_storel_epi64(row.0.as_mut_ptr().add(at).cast(), x);
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
    fn load_integers(self, row: &SumRow, at: usize) -> __m256 {
        assert!(at <= PANEL - Self::LANES);
        // SAFETY: `self` proves AVX2; the assertion leaves 8 integers from `at` on.
        unsafe { _mm256_cvtepi32_ps(_mm256_loadu_si256(row.0.as_ptr().add(at).cast())) }
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

    #[inline(always)]
    fn byte_bias(self) -> u8 {
        if self.vnni().is_some() { 128 } else { 0 }
    }

    #[inline(always)]
    fn run_byte_tile<T: ByteTileKernel>(self, tile: T) {
        match self.vnni() {
            // SAFETY: `self` and `vnni` prove AVX2, FMA and AVX-VNNI, the features of the function.
            Some(vnni) => unsafe { run_vnni_tile_with_features(self, vnni, tile) },
            // SAFETY: `self` proves AVX2 and FMA, the features of the function.
            None => unsafe { run_byte_tile_with_features(self, tile) },
        }
    }
}
