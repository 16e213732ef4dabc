//! AVX-512: a block is one register; masks come out of comparisons, positions out of a compress.

use std::arch::x86_64::*;

use super::{Isa, VALUE_AT};
use crate::fast::buffer::Buffer;
use crate::fast::scan::{BLOCK, Masks, Source, scan_with};
use crate::fast::table::{
    FACTORS, Found, GROUP, Group, KEY_BYTES, Key, LINE_BYTES, Miss, Place, Table, Words, look_up_with,
};

/// The proof that the CPU has AVX-512 F, BW, DQ, VL, VBMI and VBMI2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx512(());

impl Avx512 {
    /// The proof, where it can be had.
    pub fn new() -> Option<Avx512> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Avx512(()))
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
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn scan_features(isa: Avx512, source: Source<'_>, buffer: &mut Buffer) -> usize {
    // SAFETY: the caller's.
    unsafe { scan_with(isa, source, buffer) }
}

/// # Safety
///
/// The features are those of `isa`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn look_up_features(isa: Avx512, table: &mut Table, words: Words<'_>, found: Found<'_>, miss: &mut Miss<'_>) {
    // SAFETY: the caller's.
    unsafe { look_up_with(isa, table, words, found, miss) }
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

/// The logarithm of the bytes of a line.
const LINE_SHIFT: u32 = LINE_BYTES.trailing_zeros();

/// For each of the four quarters of 16 words, the number of its word, 16 times.
const WHICH: [[u8; BLOCK]; 4] = {
    let mut which = [[0; BLOCK]; 4];
    let mut i = 0;
    while i < 4 * BLOCK {
        which[i / BLOCK][i % BLOCK] = (i / 16) as u8;
        i += 1;
    }
    which
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
            // Bytes inside a character: as signed numbers, those below all that begin one.
            let inside = _mm512_cmplt_epi8_mask(bytes, _mm512_set1_epi8(0xC0u8 as i8));
            let mut out = _mm512_mask_blend_epi8(space, bytes, _mm512_set1_epi8(b' ' as i8));
            if LOWER {
                out = _mm512_mask_add_epi8(out, upper, out, _mm512_set1_epi8(32));
            }
            _mm512_storeu_si512(to.cast(), out);
            Masks { word: word & given, punct: graphic & !word & given, odd: !(graphic | space | inside) & given }
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
            _mm512_storeu_si512(to.add(16).cast(), widened(_mm512_extracti32x4_epi32::<1>(packed)));
            // Prose has 14 words in 64 bytes; more than 32 is rare enough to be guessed.
            if n > 32 {
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

    #[inline(always)]
    unsafe fn squeeze(self, kept: u64, text: *mut u8, masks: [u64; 3]) -> [u64; 3] {
        // SAFETY: the caller allows 64 bytes.
        unsafe {
            let bytes = _mm512_maskz_compress_epi8(kept, _mm512_loadu_si512(text.cast()));
            _mm512_storeu_si512(text.cast(), bytes);
            masks.map(|mask| _pext_u64(mask, kept))
        }
    }

    #[inline(always)]
    unsafe fn squeeze_numbers(self, kept: u64, list: *mut u32) {
        // SAFETY: the caller allows 64 numbers, and none is written behind where it was read.
        unsafe {
            let mut to = list;
            for i in 0..4 {
                let kept = (kept >> (16 * i)) as u16;
                let numbers = _mm512_maskz_compress_epi32(kept, _mm512_loadu_si512(list.add(16 * i).cast()));
                // A store of all 16 would destroy those that are still to be read.
                _mm512_mask_storeu_epi32(to.cast(), ((1u32 << kept.count_ones()) - 1) as u16, numbers);
                to = to.add(kept.count_ones() as usize);
            }
        }
    }

    #[inline(always)]
    unsafe fn keys(
        self,
        text: *const u8,
        starts: &[u32; GROUP],
        ends: &[u32; GROUP],
        place: Place,
        group: &mut Group,
    ) -> u32 {
        // SAFETY: the caller allows to read 16 bytes from each start on; lists are of 16.
        unsafe {
            let lengths =
                _mm512_sub_epi32(_mm512_loadu_si512(ends.as_ptr().cast()), _mm512_loadu_si512(starts.as_ptr().cast()));
            let long = _mm512_cmpgt_epu32_mask(lengths, _mm512_set1_epi32(KEY_BYTES as i32));
            let lengths = _mm512_castsi128_si512(_mm512_cvtusepi32_epi8(lengths));
            let places = _mm512_and_si512(_mm512_loadu_si512(IOTA.as_ptr().cast()), _mm512_set1_epi8(15));
            let factors = _mm512_broadcast_i32x4(_mm_set_epi64x(FACTORS[1] as i64, FACTORS[0] as i64));
            let shift = _mm_cvtsi32_si128(place.shift as i32);
            let even = _mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6);
            for four in 0..4 {
                let word = |i: usize| _mm_loadu_si128(text.add(starts[4 * four + i] as usize).cast());
                let mut keys = _mm512_castsi128_si512(word(0));
                keys = _mm512_inserti32x4::<1>(keys, word(1));
                keys = _mm512_inserti32x4::<2>(keys, word(2));
                keys = _mm512_inserti32x4::<3>(keys, word(3));
                // Of each word the bytes whose place is below its length.
                let which = _mm512_loadu_si512(WHICH[four].as_ptr().cast());
                let kept = _mm512_cmplt_epu8_mask(places, _mm512_permutexvar_epi8(which, lengths));
                keys = _mm512_maskz_mov_epi8(kept, keys);
                _mm512_storeu_si512(group.keys.as_mut_ptr().add(4 * four).cast(), keys);
                let products = _mm512_mullo_epi64(keys, factors);
                let hashes = _mm512_xor_si512(products, _mm512_shuffle_epi32::<0x4E>(products));
                let lines = _mm512_slli_epi64::<LINE_SHIFT>(_mm512_srl_epi64(hashes, shift));
                let lines = _mm512_castsi512_si256(_mm512_permutexvar_epi64(even, lines));
                _mm256_storeu_si256(group.lines.as_mut_ptr().add(4 * four).cast(), lines);
            }
            long.into()
        }
    }

    #[inline(always)]
    unsafe fn find(self, keys: &[Key; 2], key: &Key) -> usize {
        // SAFETY: two keys are 32 bytes, one is 16.
        let equal = unsafe {
            let keys = _mm256_loadu_si256(keys.as_ptr().cast());
            let key = _mm256_broadcastsi128_si256(_mm_loadu_si128(std::ptr::from_ref(key).cast()));
            _mm256_cmpeq_epi64_mask(keys, key)
        };
        VALUE_AT[usize::from(equal)].into()
    }
}
