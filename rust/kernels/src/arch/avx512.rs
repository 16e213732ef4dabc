//! AVX-512: 16 lanes. A tile is 14 rows × 32 columns, whose sums fill 28 of the 32 registers and cover a panel.
//!
//! Pairs of bfloat16 numbers are multiplied with AVX512-BF16, bytes with AVX512-VNNI, where the CPU has them.

use std::arch::x86_64::*;

use wordpiece_parallel::instruction_set::{Avx512, Bf16, Vnni};

use super::simd::{
    ByteDot, ByteTileKernel, COLUMNS, Kernel, MultipliedBytes, PairDot, PairTileKernel, Simd, TileKernel, WidenedPairs,
    round_pair_by_pair, round_row_by_row, run_pair_tile_of_rows, run_tile_of_rows, vector_operations,
};
use crate::matrix::{ByteRow, HalfRow, PANEL, PairRow, QuadRow, Row, SumRow, WordRow};
use crate::numbers::GROUP;

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,fma,popcnt")]
fn run_with_features<K: Kernel>(token: Avx512, kernel: K) -> K::Output {
    kernel.run(token)
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,fma,popcnt,avx512vpopcntdq")]
fn run_counting_with_features<K: Kernel>(token: Avx512, kernel: K) -> K::Output {
    kernel.run(token)
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,fma")]
fn run_tile_with_features<T: TileKernel>(token: Avx512, tile: T) {
    run_tile_of_rows!(token, tile, 2, 1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,fma")]
fn run_pair_tile_with_features<T: PairTileKernel>(token: Avx512, tile: T) {
    run_pair_tile_of_rows!(token, WidenedPairs, tile, 1, 1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,fma,avx512bf16")]
fn run_bf16_tile_with_features<T: PairTileKernel>(token: Avx512, bf16: Bf16, tile: T) {
    run_pair_tile_of_rows!(token, bf16, tile, 2, 1 2 3 4 5 6 7 8 9 10 11 12 13 14);
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,fma")]
fn run_byte_tile_with_features<T: ByteTileKernel>(token: Avx512, tile: T) {
    run_pair_tile_of_rows!(token, MultipliedBytes, tile, 2, 1 2 3 4 5 6 7);
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,fma,avx512vnni")]
fn run_vnni_tile_with_features<T: ByteTileKernel>(token: Avx512, vnni: Vnni, tile: T) {
    run_pair_tile_of_rows!(token, vnni, tile, 2, 1 2 3 4 5 6 7);
}

/// Rounds rows to bfloat16, subnormal numbers to 0.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn round_rows_with_features(from: &[Row], to: &mut [HalfRow]) {
    assert!(from.len() == to.len());
    for (from, to) in from.iter().zip(to) {
        const { assert!(PANEL == 32) };
        // SAFETY: a row has 32 numbers, which are two vectors of float32 and one of bfloat16.
        unsafe {
            let (low, high) = (_mm512_loadu_ps(from.0.as_ptr()), _mm512_loadu_ps(from.0.as_ptr().add(16)));
            let rounded: __m512i = std::mem::transmute(_mm512_cvtne2ps_pbh(high, low));
            _mm512_storeu_si512(to.0.as_mut_ptr().cast(), rounded);
        }
    }
}

/// Rounds rows, two by two, to rows of pairs, subnormal numbers to 0.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn round_pairs_with_features(from: &[[Row; 2]], to: &mut [PairRow]) {
    assert!(from.len() == to.len());
    // The numbers of the first and the second row in turns, each a half of a pair.
    let turns: [u16; 32] = std::array::from_fn(|i| (i / 2 + i % 2 * 16) as u16);
    // SAFETY: the array has 32 numbers of 16 bits.
    let turns = unsafe { _mm512_loadu_si512(turns.as_ptr().cast()) };
    for (from, to) in from.iter().zip(to) {
        for at in [0, 16] {
            // SAFETY: rows have 32 numbers; 16 from `at` on are read of each, and as many pairs written.
            unsafe {
                let [first, second] = from.each_ref().map(|row| _mm512_loadu_ps(row.0.as_ptr().add(at)));
                let rounded: __m512i = std::mem::transmute(_mm512_cvtne2ps_pbh(second, first));
                let pairs = _mm512_permutexvar_epi16(turns, rounded);
                _mm512_storeu_si512(to.0.as_mut_ptr().add(at).cast(), pairs);
            }
        }
    }
}

/// Reads 16 quads of weights.
#[inline(always)]
fn load_quads(_: Avx512, row: &QuadRow, at: usize) -> __m512i {
    assert!(at <= PANEL - Avx512::LANES);
    // SAFETY: the token proves AVX-512; the assertion leaves 16 quads of 4 bytes from `at` on.
    unsafe { _mm512_loadu_si512(row.0.as_ptr().add(at).cast()) }
}

impl ByteDot<Avx512> for Vnni {
    type Sums = __m512i;
    type Inputs = __m512i;
    type Quads = __m512i;

    #[inline(always)]
    fn start(self, _: Avx512, row: &SumRow, at: usize) -> __m512i {
        assert!(at <= PANEL - Avx512::LANES);
        // SAFETY: `self` proves AVX-512; the assertion leaves 16 sums from `at` on.
        unsafe { _mm512_loadu_si512(row.0.as_ptr().add(at).cast()) }
    }

    #[inline(always)]
    fn load(self, simd: Avx512, row: &QuadRow, at: usize, _: usize) -> __m512i {
        load_quads(simd, row, at)
    }

    #[inline(always)]
    fn splat(self, _: Avx512, quad: u32) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_set1_epi32(quad as i32) }
    }

    #[inline(always)]
    fn dot(self, _: Avx512, a: __m512i, b: __m512i, sums: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX512-VNNI.
        unsafe { _mm512_dpbusd_epi32(sums, a, b) }
    }

    #[inline(always)]
    fn to_float(self, _: Avx512, sums: __m512i) -> __m512 {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_cvtepi32_ps(sums) }
    }
}

impl ByteDot<Avx512> for MultipliedBytes {
    type Sums = __m512i;
    type Inputs = __m512i;
    type Quads = __m512i;

    const PARTS: usize = 2;

    #[inline(always)]
    fn start(self, _: Avx512, _: &SumRow, _: usize) -> __m512i {
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn widen(self, _: Avx512, row: &ByteRow, to: &mut WordRow) {
        let [even, odd] = &mut to.0;
        // SAFETY: the token proves AVX-512 with BW; a row has 64 bytes, and its halves 16 numbers each.
        unsafe {
            let x = _mm512_loadu_si512(row.0.as_ptr().cast());
            let low = _mm512_srai_epi16::<8>(_mm512_slli_epi16::<8>(x));
            _mm512_storeu_si512(even.as_mut_ptr().cast(), low);
            _mm512_storeu_si512(odd.as_mut_ptr().cast(), _mm512_srai_epi16::<8>(x));
        }
    }

    #[inline(always)]
    fn load(self, simd: Avx512, row: &QuadRow, at: usize, part: usize) -> __m512i {
        let quads = load_quads(simd, row, at);
        // SAFETY: the token proves AVX-512 with BW.
        unsafe {
            match part {
                0 => _mm512_slli_epi16::<8>(quads),
                _ => _mm512_and_si512(quads, _mm512_set1_epi16(0xff00_u16 as i16)),
            }
        }
    }

    #[inline(always)]
    fn splat(self, _: Avx512, pair: u32) -> __m512i {
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_set1_epi32(pair as i32) }
    }

    #[inline(always)]
    fn dot(self, _: Avx512, a: __m512i, b: __m512i, sums: __m512i) -> __m512i {
        // SAFETY: the token proves AVX-512 with BW.
        unsafe { _mm512_add_epi32(sums, _mm512_madd_epi16(a, b)) }
    }

    #[inline(always)]
    fn to_float(self, _: Avx512, sums: __m512i) -> __m512 {
        // SAFETY: the token proves AVX-512.
        unsafe { _mm512_cvtepi32_ps(_mm512_srai_epi32::<8>(sums)) }
    }
}

impl PairDot<Avx512> for Bf16 {
    type Pairs = __m512bh;

    #[inline(always)]
    fn load(self, _: Avx512, row: &PairRow, at: usize) -> __m512bh {
        assert!(at <= PANEL - Avx512::LANES);
        // SAFETY: `self` proves AVX-512; the assertion leaves 16 pairs from `at` on; all bit patterns are valid pairs.
        unsafe { std::mem::transmute(_mm512_loadu_si512(row.0.as_ptr().add(at).cast())) }
    }

    #[inline(always)]
    fn splat(self, _: Avx512, pair: u32) -> __m512bh {
        // SAFETY: `self` proves AVX-512; both types have 512 bits, and all bit patterns are valid pairs.
        unsafe { std::mem::transmute(_mm512_set1_epi32(pair as i32)) }
    }

    #[inline(always)]
    fn dot(self, _: Avx512, a: __m512bh, b: __m512bh, sum: __m512) -> __m512 {
        // SAFETY: `self` proves AVX512-BF16.
        unsafe { _mm512_dpbf16_ps(sum, a, b) }
    }
}

impl Simd for Avx512 {
    type V = __m512;

    const LANES: usize = 16;
    const TILE_ROWS: usize = 14;
    const BYTE_TILE_ROWS: usize = 7;

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, row: &Row, at: usize) -> __m512 {
        assert!(at <= PANEL - Self::LANES);
        // SAFETY: `self` proves AVX-512; the assertion leaves 16 numbers from `at` on.
        unsafe { _mm512_loadu_ps(row.0.as_ptr().add(at)) }
    }

    const READS_COLUMNS: bool = true;

    #[inline(always)]
    fn load_columns(self, rows: &[&[f32]], at: usize) -> [__m512; COLUMNS] {
        let rows: &[&[f32]; Self::LANES] = rows.try_into().expect("a row for each lane");
        assert!(rows.iter().all(|row| row.len() >= COLUMNS && at <= row.len() - COLUMNS));
        /// Four numbers of rows i, i + 4, i + 8 and i + 12: the instructions that follow work within quarters of 4 lanes.
        macro_rules! quarters {
            ($i:literal, $at:expr) => {{
                let first = _mm512_castps128_ps512(_mm_loadu_ps(rows[$i].as_ptr().add($at)));
                let two = _mm512_insertf32x4::<1>(first, _mm_loadu_ps(rows[$i + 4].as_ptr().add($at)));
                let three = _mm512_insertf32x4::<2>(two, _mm_loadu_ps(rows[$i + 8].as_ptr().add($at)));
                _mm512_insertf32x4::<3>(three, _mm_loadu_ps(rows[$i + 12].as_ptr().add($at)))
            }};
        }
        let mut columns = [self.splat(0.0); COLUMNS];
        for (half, columns) in columns.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let at = at + 4 * half;
            // SAFETY: `self` proves AVX-512; the assertion leaves 4 numbers of each row from `at` on.
            unsafe {
                let (a, b, c, d) = (quarters!(0, at), quarters!(1, at), quarters!(2, at), quarters!(3, at));
                let (ab, cd) = (_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
                columns[0] = _mm512_shuffle_ps::<0b0100_0100>(ab, cd);
                columns[1] = _mm512_shuffle_ps::<0b1110_1110>(ab, cd);
                let (ab, cd) = (_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
                columns[2] = _mm512_shuffle_ps::<0b0100_0100>(ab, cd);
                columns[3] = _mm512_shuffle_ps::<0b1110_1110>(ab, cd);
            }
        }
        columns
    }

    #[inline(always)]
    fn store(self, row: &mut Row, at: usize, x: __m512) {
        assert!(at <= PANEL - Self::LANES);
        // SAFETY: `self` proves AVX-512; the assertion leaves 16 numbers from `at` on.
        unsafe { _mm512_storeu_ps(row.0.as_mut_ptr().add(at), x) }
    }

    vector_operations! { __m512:
        add(x, y) = _mm512_add_ps(x, y);
        sub(x, y) = _mm512_sub_ps(x, y);
        mul(x, y) = _mm512_mul_ps(x, y);
        div(x, y) = _mm512_div_ps(x, y);
        fma(x, y, z) = _mm512_fmadd_ps(x, y, z);
        max(x, y) = _mm512_max_ps(x, y);
        min(x, y) = _mm512_min_ps(x, y);
        round(x) = _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
        scale_by_pow2(x, n) = _mm512_scalef_ps(x, n);
        where_less(x, y, a, b) = _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, y), b, a);
    }

    #[inline(always)]
    fn pow2(self, n: __m512) -> __m512 {
        // SAFETY: `self` proves AVX-512.
        unsafe {
            let biased = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased))
        }
    }

    #[inline(always)]
    fn interleave(self, x: __m512, y: __m512) -> [__m512; 2] {
        // SAFETY: `self` proves AVX-512.
        unsafe {
            // Lane i of y is number 16 + i.
            let lower = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let upper = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            [_mm512_permutex2var_ps(x, lower, y), _mm512_permutex2var_ps(x, upper, y)]
        }
    }

    #[inline(always)]
    fn first(self, n: usize, a: __m512, b: __m512) -> __m512 {
        let mask = if n >= Self::LANES { u16::MAX } else { (1 << n) - 1 };
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_mask_blend_ps(mask, b, a) }
    }

    #[inline(always)]
    fn sum(self, x: __m512) -> f32 {
        // SAFETY: `self` proves AVX-512.
        unsafe {
            let x = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps::<1>(x));
            let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)))
        }
    }

    #[inline(always)]
    fn greatest(self, x: __m512) -> f32 {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_reduce_max_ps(x) }
    }

    #[inline(always)]
    fn max_magnitude(self, x: __m512, y: __m512) -> __m512 {
        // SAFETY: `self` proves AVX-512.
        unsafe {
            // Numbers that are not negative have the same order as their bits; NaN is the greatest.
            let bits = _mm512_set1_epi32(0x7fff_ffff);
            let x = _mm512_and_si512(_mm512_castps_si512(x), bits);
            let y = _mm512_and_si512(_mm512_castps_si512(y), bits);
            _mm512_castsi512_ps(_mm512_max_epi32(x, y))
        }
    }

    #[inline(always)]
    fn greatest_magnitude(self, x: __m512) -> f32 {
        // SAFETY: `self` proves AVX-512.
        unsafe { f32::from_bits(_mm512_reduce_max_epi32(_mm512_castps_si512(x)) as u32) }
    }

    #[inline(always)]
    fn store_bytes(self, row: &mut ByteRow, at: usize, x: __m512, bias: u8) {
        assert!(at <= GROUP - Self::LANES);
        // SAFETY: `self` proves AVX-512; the assertion leaves 16 bytes from `at` on.
        unsafe {
            let x = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x));
            let x = _mm_xor_si128(x, _mm_set1_epi8(bias as i8));
            _mm_storeu_si128(row.0.as_mut_ptr().add(at).cast(), x);
        }
    }

    #[inline(always)]
    fn load_pairs(self, row: &PairRow, at: usize) -> [__m512; 2] {
        assert!(at <= PANEL - Self::LANES);
        // SAFETY: `self` proves AVX-512; the assertion leaves 16 pairs from `at` on.
        unsafe {
            let pairs = _mm512_loadu_si512(row.0.as_ptr().add(at).cast());
            let second = _mm512_and_si512(pairs, _mm512_set1_epi32(0xffff_0000_u32 as i32));
            [_mm512_castsi512_ps(_mm512_slli_epi32::<16>(pairs)), _mm512_castsi512_ps(second)]
        }
    }

    #[inline(always)]
    fn load_integers(self, row: &SumRow, at: usize) -> __m512 {
        assert!(at <= PANEL - Self::LANES);
        // SAFETY: `self` proves AVX-512; the assertion leaves 16 integers from `at` on.
        unsafe { _mm512_cvtepi32_ps(_mm512_loadu_si512(row.0.as_ptr().add(at).cast())) }
    }

    #[inline(always)]
    fn round_rows(self, from: &[Row], to: &mut [HalfRow]) {
        match self.bf16() {
            // SAFETY: `self` and the token prove AVX-512 and AVX512-BF16, the features of the function.
            Some(_) => unsafe { round_rows_with_features(from, to) },
            None => round_row_by_row(from, to),
        }
    }

    #[inline(always)]
    fn round_pairs(self, from: &[[Row; 2]], to: &mut [PairRow]) {
        match self.bf16() {
            // SAFETY: `self` and the token prove AVX-512 and AVX512-BF16, the features of the function.
            Some(_) => unsafe { round_pairs_with_features(from, to) },
            None => round_pair_by_pair(from, to),
        }
    }

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` proves AVX-512, FMA and POPCNT, the features of the function.
        unsafe { run_with_features(self, kernel) }
    }

    #[inline(always)]
    fn counts_bits_of_vectors(self) -> bool {
        self.vpopcnt().is_some()
    }

    #[inline(always)]
    fn run_counting<K: Kernel>(self, kernel: K) -> K::Output {
        match self.vpopcnt() {
            // SAFETY: `self` and the token prove AVX-512, FMA, POPCNT and AVX512-VPOPCNTDQ, the features of the function.
            Some(_) => unsafe { run_counting_with_features(self, kernel) },
            None => self.run(kernel),
        }
    }

    // The compiler would gather words of several rows, which takes twice as long.
    #[inline(always)]
    fn add_differing_bits(self, x: &[u64; 8], y: u64, sums: &mut [u64; 8]) {
        match self.vpopcnt() {
            // SAFETY: `self` and the token prove AVX-512 and AVX512-VPOPCNTDQ; the arrays have 512 bits.
            Some(_) => unsafe {
                let x = _mm512_loadu_si512(x.as_ptr().cast());
                let bits = _mm512_popcnt_epi64(_mm512_xor_si512(x, _mm512_set1_epi64(y as i64)));
                let sum = _mm512_add_epi64(_mm512_loadu_si512(sums.as_ptr().cast()), bits);
                _mm512_storeu_si512(sums.as_mut_ptr().cast(), sum);
            },
            None => sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += u64::from((x ^ y).count_ones())),
        }
    }

    #[inline(always)]
    fn run_tile<T: TileKernel>(self, tile: T) {
        // SAFETY: `self` proves AVX-512 and FMA, the features of the function.
        unsafe { run_tile_with_features(self, tile) }
    }

    #[inline(always)]
    fn run_pair_tile<T: PairTileKernel>(self, tile: T) {
        match self.bf16() {
            // SAFETY: `self` and `bf16` prove AVX-512, FMA and AVX512-BF16, the features of the function.
            Some(bf16) => unsafe { run_bf16_tile_with_features(self, bf16, tile) },
            // SAFETY: `self` proves AVX-512 and FMA, the features of the function.
            None => unsafe { run_pair_tile_with_features(self, tile) },
        }
    }

    #[inline(always)]
    fn byte_bias(self) -> u8 {
        if self.vnni().is_some() { 128 } else { 0 }
    }

    #[inline(always)]
    fn run_byte_tile<T: ByteTileKernel>(self, tile: T) {
        match self.vnni() {
            // SAFETY: `self` and `vnni` prove AVX-512, FMA and AVX512-VNNI, the features of the function.
            Some(vnni) => unsafe { run_vnni_tile_with_features(self, vnni, tile) },
            // SAFETY: `self` proves AVX-512 and FMA, the features of the function.
            None => unsafe { run_byte_tile_with_features(self, tile) },
        }
    }
}
