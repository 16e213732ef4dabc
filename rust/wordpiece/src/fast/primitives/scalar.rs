//! Portable Rust, one byte at a time: the definition that all other instruction sets equal.
//!
//! Tests compare the others with it on random blocks and on every kind of character at the edges of a block.

use super::operations::{BLOCK, ByteClasses, Primitives};

/// The class of a byte; see [`ByteClasses`].
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Word,
    Punct,
    Space,
    /// A byte of a multi-byte character other than its first.
    Continuation,
    Odd,
}

/// Returns the class of a byte; bytes from 0xC0 on begin a multi-byte character.
const fn class(byte: u8) -> Class {
    match byte {
        b'\t' | b'\n' | b'\r' | b' ' => Class::Space,
        0x80..=0xBF => Class::Continuation,
        0..=31 | 127.. => Class::Odd,
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => Class::Word,
        _ => Class::Punct,
    }
}

/// The class of each byte.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Odd; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = class(byte as u8);
        byte += 1;
    }
    classes
};

/// Portable Rust; available on every CPU.
#[derive(Clone, Copy)]
pub(in crate::fast) struct Scalar;

// SAFETY: no method uses an instruction that is not in the baseline of the target, or writes beyond what its contract
// names.
unsafe impl Primitives for Scalar {
    unsafe fn classify<const LOWER: bool>(self, from: *const u8, n: usize, to: *mut u8) -> ByteClasses {
        let mut classes = ByteClasses { word: 0, punct: 0, odd: 0 };
        // SAFETY: `n` initialised bytes are readable at `from`, by the contract, and `to` does not overlap them.
        let from = unsafe { std::slice::from_raw_parts(from, n) };
        for (i, &byte) in from.iter().enumerate() {
            let bit = 1 << i;
            let mut shown = byte;
            match CLASSES[byte as usize] {
                Class::Word => classes.word |= bit,
                Class::Punct => classes.punct |= bit,
                Class::Space => shown = b' ',
                Class::Odd => classes.odd |= bit,
                Class::Continuation => {}
            }
            if LOWER {
                shown = shown.to_ascii_lowercase();
            }
            // SAFETY: `i < n ≤ 64`, and 64 bytes are writable at `to`.
            unsafe { to.add(i).write(shown) };
        }
        // SAFETY: `n ≤ 64`, and 64 bytes are writable at `to`.
        unsafe { to.add(n).write_bytes(0, BLOCK - n) };
        classes
    }

    unsafe fn positions(self, mut mask: u64, base: u32, to: *mut u32) -> usize {
        let n = mask.count_ones() as usize;
        for i in 0..n {
            // SAFETY: a mask has at most 64 bits, and 64 numbers are writable at `to`.
            unsafe { to.add(i).write(base.wrapping_add(mask.trailing_zeros())) };
            mask &= mask - 1;
        }
        n
    }

    unsafe fn count_up(self, base: u32, from: *mut u32, to: *mut u32) {
        for i in 0..BLOCK {
            // SAFETY: `i` is below 64, and 64 numbers are writable at both.
            unsafe {
                from.add(i).write(base.wrapping_add(i as u32));
                to.add(i).write(base.wrapping_add(i as u32 + 1));
            }
        }
    }
}
