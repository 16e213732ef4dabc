//! NEON: a block is four registers of 16 bytes. Bit masks are folded out of byte masks; positions are extracted bit by
//! bit, as in portable Rust.
//!
//! Every 64-bit Arm CPU that runs an operating system has NEON, so these functions need no `#[target_feature]` to be
//! inlined. Squeezing and reading keys are left to the portable code of [`Primitives`].

use std::arch::aarch64::*;

use wordpiece_parallel::instruction_set::Neon;

use super::operations::{BLOCK, ByteClasses, Primitives};

/// Packs four masks of 16 bytes, each 0 or 255, into 64 bits.
///
/// # Safety
///
/// The CPU must have NEON.
#[inline(always)]
unsafe fn bits(masks: [uint8x16_t; 4]) -> u64 {
    // SAFETY: the CPU has NEON, by the contract; the load reads the 16 bytes of an array.
    unsafe {
        // Leave one bit in each byte, by its index in its group of eight; adding adjacent bytes three times then
        // gathers the eight bits of a group in one byte.
        let weights: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        let weights = vld1q_u8(weights.as_ptr());
        let [a, b, c, d] = masks.map(|mask| vandq_u8(mask, weights));
        let sum = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sum, sum)))
    }
}

// SAFETY: a value of `Neon` exists only on CPUs with NEON, the only extension whose intrinsics are used here.
unsafe impl Primitives for Neon {
    #[inline(always)]
    unsafe fn classify<const LOWER: bool>(self, from: *const u8, n: usize, to: *mut u8) -> ByteClasses {
        let mut padded = [b' '; BLOCK];
        let mut source = from;
        if n < BLOCK {
            // SAFETY: `n < 64` bytes are readable at `from`, by the contract, and `padded` has 64.
            unsafe { std::ptr::copy_nonoverlapping(from, padded.as_mut_ptr(), n) };
            source = padded.as_ptr();
        }
        // SAFETY: 64 bytes are readable at `source` (`padded`, or a block of the text) and writable at `to`; each
        // quarter is 16 of them.
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
                // Continuation bytes, 128 to 191.
                let continuation = between(0x80, 0xBF);
                let mut out = vbslq_u8(space, vdupq_n_u8(b' '), bytes);
                if LOWER {
                    out = vaddq_u8(out, vandq_u8(upper, vdupq_n_u8(32)));
                }
                vst1q_u8(to.add(16 * quarter), out);
                words[quarter] = letters;
                puncts[quarter] = vbicq_u8(graphic, letters);
                odds[quarter] = vmvnq_u8(vorrq_u8(vorrq_u8(graphic, space), continuation));
            }
            let given = if n == BLOCK { u64::MAX } else { (1 << n) - 1 };
            ByteClasses { word: bits(words) & given, punct: bits(puncts) & given, odd: bits(odds) & given }
        }
    }

    #[inline(always)]
    unsafe fn count_up(self, base: u32, from: *mut u32, to: *mut u32) {
        // SAFETY: 64 numbers are writable at both, by the contract; each of the 16 rounds writes four of them.
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
