//! AVX2: a block is two registers of 32 bytes. Bit masks come out of the sign bits of bytes; positions are extracted
//! bit by bit, as in portable Rust.
//!
//! AVX2 has neither masked loads of bytes nor byte compression: the last block of a text goes through a padded copy,
//! and squeezing and reading keys are left to the portable code of [`Primitives`], compiled with BMI.

use std::arch::x86_64::*;

use wordpiece_parallel::instruction_set::Avx2;

use super::operations::{BLOCK, ByteClasses, Primitives, VALUE_OFFSETS};
use crate::fast::key::WordKey;

// SAFETY: a value of `Avx2` exists only on CPUs with AVX2, the only extension whose intrinsics are used here.
unsafe impl Primitives for Avx2 {
    #[inline(always)]
    unsafe fn classify<const LOWER: bool>(self, from: *const u8, n: usize, to: *mut u8) -> ByteClasses {
        let mut padded = [b' '; BLOCK];
        let mut source = from;
        if n < BLOCK {
            // SAFETY: `n < 64` bytes are readable at `from`, by the contract, and `padded` has 64.
            unsafe { std::ptr::copy_nonoverlapping(from, padded.as_mut_ptr(), n) };
            source = padded.as_ptr();
        }
        let (mut word, mut punct, mut odd) = (0u64, 0u64, 0u64);
        for half in 0..2 {
            // SAFETY: 64 bytes are readable at `source` (`padded`, or a block of the text) and writable at `to`; each
            // half is 32 of them.
            unsafe {
                let bytes = _mm256_loadu_si256(source.add(32 * half).cast());
                // The comparisons are signed: bytes from 128 on are negative, and so in none of the ranges.
                let between = |low: u8, high: u8| {
                    let above = _mm256_cmpgt_epi8(bytes, _mm256_set1_epi8(low as i8 - 1));
                    let below = _mm256_cmpgt_epi8(_mm256_set1_epi8((high + 1) as i8), bytes);
                    _mm256_and_si256(above, below)
                };
                let equal = |byte: u8| _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8));
                let or = |a, b| _mm256_or_si256(a, b);
                let upper = between(b'A', b'Z');
                let letters = or(or(upper, between(b'a', b'z')), between(b'0', b'9'));
                // `~` is 126, so the upper bound, one more, still is a signed byte.
                let graphic = between(b'!', b'~');
                let space = or(or(equal(b' '), equal(b'\n')), or(equal(b'\t'), equal(b'\r')));
                // Continuation bytes: as signed numbers, they are less than all bytes that begin a character.
                let continuation = _mm256_cmpgt_epi8(_mm256_set1_epi8(0xC0u8 as i8), bytes);
                let mut out = _mm256_blendv_epi8(bytes, _mm256_set1_epi8(b' ' as i8), space);
                if LOWER {
                    out = _mm256_add_epi8(out, _mm256_and_si256(upper, _mm256_set1_epi8(32)));
                }
                _mm256_storeu_si256(to.add(32 * half).cast(), out);
                let bits = |mask| u64::from(_mm256_movemask_epi8(mask) as u32) << (32 * half);
                word |= bits(letters);
                punct |= bits(_mm256_andnot_si256(letters, graphic));
                odd |= !bits(or(or(graphic, space), continuation)) & (0xFFFF_FFFF << (32 * half));
            }
        }
        let given = if n == BLOCK { u64::MAX } else { (1 << n) - 1 };
        ByteClasses { word: word & given, punct: punct & given, odd: odd & given }
    }

    #[inline(always)]
    unsafe fn count_up(self, base: u32, from: *mut u32, to: *mut u32) {
        // SAFETY: 64 numbers are writable at both, by the contract; each of the eight stores writes eight of them.
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
    unsafe fn find(self, keys: &[WordKey; 2], key: &WordKey) -> usize {
        // SAFETY: the references are to 32 and to 16 bytes, which is what the loads read.
        let equal = unsafe {
            let keys = _mm256_loadu_si256(keys.as_ptr().cast());
            let key = _mm256_broadcastsi128_si256(_mm_loadu_si128(std::ptr::from_ref(key).cast()));
            _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(keys, key)))
        };
        VALUE_OFFSETS[equal as usize & 0xFF].into()
    }
}
