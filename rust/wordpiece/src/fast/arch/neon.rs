//! NEON: a block is four registers; masks are folded out of them, positions taken bit by bit.

use std::arch::aarch64::*;

use super::Isa;
use crate::fast::buffer::Buffer;
use crate::fast::scan::{BLOCK, Masks, Source, scan_with};
use crate::fast::table::{Found, Miss, Table, Words, look_up_with};

/// The proof that the CPU has NEON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neon(());

impl Neon {
    /// The proof, where it can be had.
    pub fn new() -> Option<Neon> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Neon(()))
    }

    /// As [`super::InstructionSet::scan`].
    pub(super) fn scan(self, source: Source<'_>, buffer: &mut Buffer) -> usize {
        // SAFETY: `self` is the proof that the CPU has NEON.
        unsafe { scan_with(self, source, buffer) }
    }

    /// As [`super::InstructionSet::look_up`].
    pub(super) fn look_up(self, table: &mut Table, words: Words<'_>, found: Found<'_>, miss: &mut Miss<'_>) {
        // SAFETY: `self` is the proof that the CPU has NEON.
        unsafe { look_up_with(self, table, words, found, miss) }
    }
}

/// Four masks of 16 bytes, 0 or 255 each, as 64 bits.
///
/// # Safety
///
/// The CPU has NEON.
#[inline(always)]
unsafe fn bits(masks: [uint8x16_t; 4]) -> u64 {
    // SAFETY: the caller's.
    unsafe {
        // One bit a byte, by its place in eight; adding neighbours three times gathers eight bytes into one.
        let places: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        let places = vld1q_u8(places.as_ptr());
        let [a, b, c, d] = masks.map(|mask| vandq_u8(mask, places));
        let sum = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sum, sum)))
    }
}

// SAFETY: a value of the type is had only where the CPU has the features.
unsafe impl Isa for Neon {
    #[inline(always)]
    unsafe fn classify<const LOWER: bool>(self, from: *const u8, n: usize, to: *mut u8) -> Masks {
        let mut last = [b' '; BLOCK];
        let mut source = from;
        if n < BLOCK {
            // SAFETY: `n` bytes can be read, and a block holds more.
            unsafe { std::ptr::copy_nonoverlapping(from, last.as_mut_ptr(), n) };
            source = last.as_ptr();
        }
        // SAFETY: 64 bytes can be read at `source` and written at `to`; each quarter is 16 of them.
        unsafe {
            let zero = vdupq_n_u8(0);
            let (mut words, mut puncts, mut odds) = ([zero; 4], [zero; 4], [zero; 4]);
            for quarter in 0..4 {
                let bytes = vld1q_u8(source.add(16 * quarter));
                let between = |low: u8, high: u8| vcleq_u8(vsubq_u8(bytes, vdupq_n_u8(low)), vdupq_n_u8(high - low));
                let equal = |byte: u8| vceqq_u8(bytes, vdupq_n_u8(byte));
                let upper = between(b'A', b'Z');
                let letters = vorrq_u8(vorrq_u8(upper, between(b'a', b'z')), between(b'0', b'9'));
                let graphic = between(b'!', b'~');
                let space = vorrq_u8(vorrq_u8(equal(b' '), equal(b'\n')), vorrq_u8(equal(b'\t'), equal(b'\r')));
                // Bytes inside a character, from 128 to 191.
                let inside = between(0x80, 0xBF);
                let mut out = vbslq_u8(space, vdupq_n_u8(b' '), bytes);
                if LOWER {
                    out = vaddq_u8(out, vandq_u8(upper, vdupq_n_u8(32)));
                }
                vst1q_u8(to.add(16 * quarter), out);
                words[quarter] = letters;
                puncts[quarter] = vbicq_u8(graphic, letters);
                odds[quarter] = vmvnq_u8(vorrq_u8(vorrq_u8(graphic, space), inside));
            }
            let given = if n == BLOCK { u64::MAX } else { (1 << n) - 1 };
            Masks { word: bits(words) & given, punct: bits(puncts) & given, odd: bits(odds) & given }
        }
    }

    #[inline(always)]
    unsafe fn count_up(self, base: u32, from: *mut u32, to: *mut u32) {
        // SAFETY: the caller allows to write 64 numbers at both.
        unsafe {
            let first: [u32; 4] = [0, 1, 2, 3];
            let mut numbers = vaddq_u32(vdupq_n_u32(base), vld1q_u32(first.as_ptr()));
            for i in 0..16 {
                vst1q_u32(from.add(4 * i), numbers);
                vst1q_u32(to.add(4 * i), vaddq_u32(numbers, vdupq_n_u32(1)));
                numbers = vaddq_u32(numbers, vdupq_n_u32(4));
            }
        }
    }
}
