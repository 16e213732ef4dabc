//! AVX2: a block is two registers; masks are moved out of them, positions taken bit by bit.

use std::arch::x86_64::*;

use super::{Isa, VALUE_AT};
use crate::fast::buffer::Buffer;
use crate::fast::scan::{BLOCK, Masks, Source, scan_with};
use crate::fast::table::{Found, Key, Miss, Table, Words, look_up_with};

/// The proof that the CPU has AVX2 and BMI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx2(());

impl Avx2 {
    /// The proof, where it can be had.
    pub fn new() -> Option<Avx2> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Avx2(()))
    }

    /// As [`super::InstructionSet::scan`].
    pub(super) fn scan(self, source: Source<'_>, buffer: &mut Buffer) -> usize {
        // SAFETY: `self` is the proof that the CPU has the features.
        unsafe { scan_features(self, source, buffer) }
    }

    /// As [`super::InstructionSet::look_up`].
    pub(super) fn look_up(self, table: &mut Table, words: Words<'_>, found: Found<'_>, miss: &mut Miss<'_>) {
        // SAFETY: `self` is the proof that the CPU has the features.
        unsafe { look_up_features(self, table, words, found, miss) }
    }
}

/// # Safety
///
/// As for [`scan_with`]; the features are those of `isa`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn scan_features(isa: Avx2, source: Source<'_>, buffer: &mut Buffer) -> usize {
    // SAFETY: the caller's.
    unsafe { scan_with(isa, source, buffer) }
}

/// # Safety
///
/// The features are those of `isa`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn look_up_features(isa: Avx2, table: &mut Table, words: Words<'_>, found: Found<'_>, miss: &mut Miss<'_>) {
    // SAFETY: the caller's.
    unsafe { look_up_with(isa, table, words, found, miss) }
}

// SAFETY: a value of the type is had only where the CPU has the features.
unsafe impl Isa for Avx2 {
    #[inline(always)]
    unsafe fn classify<const LOWER: bool>(self, from: *const u8, n: usize, to: *mut u8) -> Masks {
        let mut last = [b' '; BLOCK];
        let mut source = from;
        if n < BLOCK {
            // SAFETY: `n` bytes can be read, and a block holds more.
            unsafe { std::ptr::copy_nonoverlapping(from, last.as_mut_ptr(), n) };
            source = last.as_ptr();
        }
        let (mut word, mut punct, mut odd) = (0u64, 0u64, 0u64);
        for half in 0..2 {
            // SAFETY: 64 bytes can be read at `source` and written at `to`; each half is 32 of them.
            unsafe {
                let bytes = _mm256_loadu_si256(source.add(32 * half).cast());
                // Signed comparisons: a byte from 128 on is negative and so in no range.
                let between = |low: u8, high: u8| {
                    let above = _mm256_cmpgt_epi8(bytes, _mm256_set1_epi8(low as i8 - 1));
                    let below = _mm256_cmpgt_epi8(_mm256_set1_epi8((high + 1) as i8), bytes);
                    _mm256_and_si256(above, below)
                };
                let equal = |byte: u8| _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8));
                let or = |a, b| _mm256_or_si256(a, b);
                let upper = between(b'A', b'Z');
                let letters = or(or(upper, between(b'a', b'z')), between(b'0', b'9'));
                // `~` is 126, so one above it still is a signed byte.
                let graphic = between(b'!', b'~');
                let space = or(or(equal(b' '), equal(b'\n')), or(equal(b'\t'), equal(b'\r')));
                // Bytes inside a character: as signed numbers, those below all that begin one.
                let inside = _mm256_cmpgt_epi8(_mm256_set1_epi8(0xC0u8 as i8), bytes);
                let mut out = _mm256_blendv_epi8(bytes, _mm256_set1_epi8(b' ' as i8), space);
                if LOWER {
                    out = _mm256_add_epi8(out, _mm256_and_si256(upper, _mm256_set1_epi8(32)));
                }
                _mm256_storeu_si256(to.add(32 * half).cast(), out);
                let bits = |mask| u64::from(_mm256_movemask_epi8(mask) as u32) << (32 * half);
                word |= bits(letters);
                punct |= bits(_mm256_andnot_si256(letters, graphic));
                odd |= !bits(or(or(graphic, space), inside)) & (0xFFFF_FFFF << (32 * half));
            }
        }
        let given = if n == BLOCK { u64::MAX } else { (1 << n) - 1 };
        Masks { word: word & given, punct: punct & given, odd: odd & given }
    }

    #[inline(always)]
    unsafe fn count_up(self, base: u32, from: *mut u32, to: *mut u32) {
        // SAFETY: the caller allows to write 64 numbers at both.
        unsafe {
            let mut numbers =
                _mm256_add_epi32(_mm256_set1_epi32(base as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            for i in 0..8 {
                _mm256_storeu_si256(from.add(8 * i).cast(), numbers);
                _mm256_storeu_si256(to.add(8 * i).cast(), _mm256_add_epi32(numbers, _mm256_set1_epi32(1)));
                numbers = _mm256_add_epi32(numbers, _mm256_set1_epi32(8));
            }
        }
    }

    #[inline(always)]
    unsafe fn find(self, keys: &[Key; 2], key: &Key) -> usize {
        // SAFETY: two keys are 32 bytes, one is 16.
        let equal = unsafe {
            let keys = _mm256_loadu_si256(keys.as_ptr().cast());
            let key = _mm256_broadcastsi128_si256(_mm_loadu_si128(std::ptr::from_ref(key).cast()));
            _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(keys, key)))
        };
        VALUE_AT[equal as usize & 0xFF].into()
    }
}
