//! AVX-512: a block is one register; masks come out of comparisons, positions out of a compress.

use std::arch::x86_64::*;

use super::{BLOCK, Isa, Masks, scan_with};
use crate::fast::buffer::Buffer;

/// The proof that the CPU has AVX-512 F, BW, VL, VBMI and VBMI2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx512(());

impl Avx512 {
    /// The proof, where it can be had.
    pub fn new() -> Option<Avx512> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("bmi2");
        has.then_some(Avx512(()))
    }

    /// As [`super::Path::scan`].
    pub(super) fn scan(self, text: &[u8], at: usize, end: usize, lower: bool, buffer: &mut Buffer) -> usize {
        // SAFETY: `self` is the proof that the CPU has the features; the caller has checked `at` and `end`.
        unsafe { scan_features(self, text, at, end, lower, buffer) }
    }
}

/// # Safety
///
/// As for [`scan_with`]; the features are those of `isa`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn scan_features(isa: Avx512, text: &[u8], at: usize, end: usize, lower: bool, buffer: &mut Buffer) -> usize {
    // SAFETY: the caller's.
    unsafe { scan_with(isa, text, at, end, lower, buffer) }
}

/// 0, 1, … 63.
const IOTA: [u8; BLOCK] = {
    let mut iota = [0; BLOCK];
    let mut i = 0;
    while i < BLOCK {
        iota[i] = i as u8;
        i += 1;
    }
    iota
};

// SAFETY: a value of the type is had only where the CPU has the features.
unsafe impl Isa for Avx512 {
    #[inline(always)]
    unsafe fn classify<const LOWER: bool>(self, from: *const u8, n: usize, to: *mut u8) -> Masks {
        // SAFETY: a masked load reads `n` bytes, the store writes the 64 that the caller allows.
        unsafe {
            let given = if n == BLOCK { u64::MAX } else { (1 << n) - 1 };
            let bytes = _mm512_maskz_loadu_epi8(given, from.cast());
            let between = |low: u8, high: u8| {
                let shifted = _mm512_sub_epi8(bytes, _mm512_set1_epi8(low as i8));
                _mm512_cmple_epu8_mask(shifted, _mm512_set1_epi8((high - low) as i8))
            };
            let equal = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
            let upper = between(b'A', b'Z');
            let word = upper | between(b'a', b'z') | between(b'0', b'9');
            let graphic = between(b'!', b'~');
            let space = equal(b' ') | equal(b'\n') | equal(b'\t') | equal(b'\r');
            let mut out = _mm512_mask_blend_epi8(space, bytes, _mm512_set1_epi8(b' ' as i8));
            if LOWER {
                out = _mm512_mask_add_epi8(out, upper, out, _mm512_set1_epi8(32));
            }
            _mm512_storeu_si512(to.cast(), out);
            Masks { word: word & given, punct: graphic & !word & given, odd: !(graphic | space) & given }
        }
    }

    #[inline(always)]
    unsafe fn positions(self, mask: u64, base: u32, to: *mut u32) -> usize {
        let n = mask.count_ones() as usize;
        // SAFETY: the caller allows to write 64 numbers; each store writes 16 of them.
        unsafe {
            let packed = _mm512_maskz_compress_epi8(mask, _mm512_loadu_si512(IOTA.as_ptr().cast()));
            let base = _mm512_set1_epi32(base as i32);
            let widened = |quarter| _mm512_add_epi32(_mm512_cvtepu8_epi32(quarter), base);
            _mm512_storeu_si512(to.cast(), widened(_mm512_castsi512_si128(packed)));
            // Prose has ten words in 64 bytes; more than 16 is rare enough to be guessed.
            if n > 16 {
                _mm512_storeu_si512(to.add(16).cast(), widened(_mm512_extracti32x4_epi32::<1>(packed)));
                _mm512_storeu_si512(to.add(32).cast(), widened(_mm512_extracti32x4_epi32::<2>(packed)));
                _mm512_storeu_si512(to.add(48).cast(), widened(_mm512_extracti32x4_epi32::<3>(packed)));
            }
        }
        n
    }

    #[inline(always)]
    unsafe fn count_up(self, base: u32, from: *mut u32, to: *mut u32) {
        // SAFETY: the caller allows to write 64 numbers at both.
        unsafe {
            let sixteen = _mm512_set1_epi32(16);
            let mut numbers = _mm512_add_epi32(
                _mm512_cvtepu8_epi32(_mm_loadu_si128(IOTA.as_ptr().cast())),
                _mm512_set1_epi32(base as i32),
            );
            for i in 0..4 {
                _mm512_storeu_si512(from.add(16 * i).cast(), numbers);
                _mm512_storeu_si512(to.add(16 * i).cast(), _mm512_add_epi32(numbers, _mm512_set1_epi32(1)));
                numbers = _mm512_add_epi32(numbers, sixteen);
            }
        }
    }
}
