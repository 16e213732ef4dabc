//! AVX-512 with VBMI2: a block is one register. Bit masks come out of comparisons, positions out of one byte
//! compression, and the keys of four words are read, masked and hashed in one register.
//!
//! VBMI2 adds byte compression (`vpcompressb`), VBMI the byte permutation across a register (`vpermb`). A CPU
//! with AVX-512 but without these two uses AVX2: see [`effective`](crate::fast::dispatch::effective).

use std::arch::x86_64::*;

use wordpiece_parallel::instruction_set::Vbmi2;

use super::operations::{BLOCK, ByteClasses, Primitives, VALUE_OFFSETS};
use crate::fast::key::{FACTORS, GROUP, KEY_BYTES, KeyGroup, LINE_BYTES, LineHash, WordKey};

/// The numbers 0 to 63.
const IOTA: [u8; BLOCK] = {
    let mut iota = [0; BLOCK];
    let mut i = 0;
    while i < BLOCK {
        iota[i] = i as u8;
        i += 1;
    }
    iota
};

/// Logarithm of the size of a line: multiplying its number by the size is a shift.
const LINE_SHIFT: u32 = LINE_BYTES.trailing_zeros();

/// For each of the four quarters of a group of 16 words, the numbers of its four words, 16 times each: byte `i` of a
/// register of four keys belongs to word `WORD_OF_BYTE[quarter][i]` of the group.
const WORD_OF_BYTE: [[u8; BLOCK]; 4] = {
    let mut which = [[0; BLOCK]; 4];
    let mut i = 0;
    while i < 4 * BLOCK {
        which[i / BLOCK][i % BLOCK] = (i / 16) as u8;
        i += 1;
    }
    which
};

// SAFETY: a value of `Vbmi2` exists only on CPUs with AVX-512 F, BW, DQ, VL, VBMI and VBMI2, and with BMI2, the only
// extensions whose intrinsics are used here.
unsafe impl Primitives for Vbmi2 {
    #[inline(always)]
    unsafe fn classify<const LOWER: bool>(self, from: *const u8, n: usize, to: *mut u8) -> ByteClasses {
        // SAFETY: the masked load reads the `n` bytes that are readable by the contract and no others; the store writes
        // the 64 that are writable.
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
            // Continuation bytes: as signed numbers, they are less than all bytes that begin a character.
            let continuation = _mm512_cmplt_epi8_mask(bytes, _mm512_set1_epi8(0xC0u8 as i8));
            let mut out = _mm512_mask_blend_epi8(space, bytes, _mm512_set1_epi8(b' ' as i8));
            if LOWER {
                out = _mm512_mask_add_epi8(out, upper, out, _mm512_set1_epi8(32));
            }
            _mm512_storeu_si512(to.cast(), out);
            ByteClasses {
                word: word & given,
                punct: graphic & !word & given,
                odd: !(graphic | space | continuation) & given,
            }
        }
    }

    #[inline(always)]
    unsafe fn positions(self, mask: u64, base: u32, to: *mut u32) -> usize {
        let n = mask.count_ones() as usize;
        // SAFETY: 64 numbers are writable at `to`, by the contract; the four stores write 16 of them each. `IOTA` has
        // 64 bytes.
        unsafe {
            let packed = _mm512_maskz_compress_epi8(mask, _mm512_loadu_si512(IOTA.as_ptr().cast()));
            let base = _mm512_set1_epi32(base as i32);
            let widened = |quarter| _mm512_add_epi32(_mm512_cvtepu8_epi32(quarter), base);
            _mm512_storeu_si512(to.cast(), widened(_mm512_castsi512_si128(packed)));
            _mm512_storeu_si512(to.add(16).cast(), widened(_mm512_extracti32x4_epi32::<1>(packed)));
            // Prose has 14 words in 64 bytes: that there are more than 32 is rare, and so predicted well.
            if n > 32 {
                _mm512_storeu_si512(to.add(32).cast(), widened(_mm512_extracti32x4_epi32::<2>(packed)));
                _mm512_storeu_si512(to.add(48).cast(), widened(_mm512_extracti32x4_epi32::<3>(packed)));
            }
        }
        n
    }

    #[inline(always)]
    unsafe fn count_up(self, base: u32, from: *mut u32, to: *mut u32) {
        // SAFETY: 64 numbers are writable at both, by the contract; each of the four rounds writes 16 of them.
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
        // SAFETY: 64 initialised bytes are readable and writable at `text`, by the contract.
        unsafe {
            let bytes = _mm512_maskz_compress_epi8(kept, _mm512_loadu_si512(text.cast()));
            _mm512_storeu_si512(text.cast(), bytes);
            masks.map(|mask| _pext_u64(mask, kept))
        }
    }

    #[inline(always)]
    unsafe fn squeeze_numbers(self, kept: u64, list: *mut u32) {
        // SAFETY: 64 initialised numbers are readable and writable at `list`, by the contract; `to` never passes what
        // was read, because at most as many numbers are kept.
        unsafe {
            let mut to = list;
            for i in 0..4 {
                let kept = (kept >> (16 * i)) as u16;
                let numbers = _mm512_maskz_compress_epi32(kept, _mm512_loadu_si512(list.add(16 * i).cast()));
                // A store of all 16 would overwrite numbers that have not been read yet.
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
        hash: LineHash,
        group: &mut KeyGroup,
    ) -> u32 {
        // SAFETY: 16 bytes are readable from each start, by the contract; `starts` and `ends` are arrays of 16 numbers,
        // `group` of 16 keys and 16 line offsets, of which each of the four rounds writes four.
        unsafe {
            let lengths =
                _mm512_sub_epi32(_mm512_loadu_si512(ends.as_ptr().cast()), _mm512_loadu_si512(starts.as_ptr().cast()));
            let long = _mm512_cmpgt_epu32_mask(lengths, _mm512_set1_epi32(KEY_BYTES as i32));
            let lengths = _mm512_castsi128_si512(_mm512_cvtusepi32_epi8(lengths));
            let byte_index = _mm512_and_si512(_mm512_loadu_si512(IOTA.as_ptr().cast()), _mm512_set1_epi8(15));
            let factors = _mm512_broadcast_i32x4(_mm_set_epi64x(FACTORS[1] as i64, FACTORS[0] as i64));
            let shift = _mm_cvtsi32_si128(hash.shift as i32);
            let even = _mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6);
            for four in 0..4 {
                let word = |i: usize| _mm_loadu_si128(text.add(starts[4 * four + i] as usize).cast());
                let mut keys = _mm512_castsi128_si512(word(0));
                keys = _mm512_inserti32x4::<1>(keys, word(1));
                keys = _mm512_inserti32x4::<2>(keys, word(2));
                keys = _mm512_inserti32x4::<3>(keys, word(3));
                // Keep those bytes of each word whose index is less than its length.
                let word_of_byte = _mm512_loadu_si512(WORD_OF_BYTE[four].as_ptr().cast());
                let kept = _mm512_cmplt_epu8_mask(byte_index, _mm512_permutexvar_epi8(word_of_byte, lengths));
                keys = _mm512_maskz_mov_epi8(kept, keys);
                _mm512_storeu_si512(group.keys.as_mut_ptr().add(4 * four).cast(), keys);
                let products = _mm512_mullo_epi64(keys, factors);
                let hashes = _mm512_xor_si512(products, _mm512_shuffle_epi32::<0x4E>(products));
                let lines = _mm512_slli_epi64::<LINE_SHIFT>(_mm512_srl_epi64(hashes, shift));
                let lines = _mm512_castsi512_si256(_mm512_permutexvar_epi64(even, lines));
                _mm256_storeu_si256(group.line_offsets.as_mut_ptr().add(4 * four).cast(), lines);
            }
            long.into()
        }
    }

    #[inline(always)]
    unsafe fn find(self, keys: &[WordKey; 2], key: &WordKey) -> usize {
        // SAFETY: the references are to 32 and to 16 bytes, which is what the loads read.
        let equal = unsafe {
            let keys = _mm256_loadu_si256(keys.as_ptr().cast());
            let key = _mm256_broadcastsi128_si256(_mm_loadu_si128(std::ptr::from_ref(key).cast()));
            _mm256_cmpeq_epi64_mask(keys, key)
        };
        VALUE_OFFSETS[usize::from(equal)].into()
    }
}
