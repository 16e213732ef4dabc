//! One byte at a time: the definition that all other paths equal.

use super::Isa;
use crate::fast::buffer::Buffer;
use crate::fast::scan::{BLOCK, Masks, Source, scan_with};
use crate::fast::table::{Found, Miss, Table, Words, look_up_with};

/// What a byte is to the scan.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Word,
    Punct,
    Space,
    Inside,
    Odd,
}

const fn class(byte: u8) -> Class {
    match byte {
        b'\t' | b'\n' | b'\r' | b' ' => Class::Space,
        0x80..=0xBF => Class::Inside,
        0..=31 | 127.. => Class::Odd,
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => Class::Word,
        _ => Class::Punct,
    }
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Odd; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = class(byte as u8);
        byte += 1;
    }
    classes
};

#[derive(Clone, Copy)]
struct Scalar;

// SAFETY: nothing here asks anything of the CPU.
unsafe impl Isa for Scalar {
    unsafe fn classify<const LOWER: bool>(self, from: *const u8, n: usize, to: *mut u8) -> Masks {
        let mut masks = Masks { word: 0, punct: 0, odd: 0 };
        // SAFETY: the caller allows to read `n ≤ 64` bytes and to write 64.
        let (from, to) = unsafe { (std::slice::from_raw_parts(from, n), std::slice::from_raw_parts_mut(to, BLOCK)) };
        for (i, &byte) in from.iter().enumerate() {
            let bit = 1 << i;
            to[i] = byte;
            match CLASSES[byte as usize] {
                Class::Word => masks.word |= bit,
                Class::Punct => masks.punct |= bit,
                Class::Space => to[i] = b' ',
                Class::Odd => masks.odd |= bit,
                Class::Inside => {}
            }
            if LOWER {
                to[i] = to[i].to_ascii_lowercase();
            }
        }
        masks
    }

    unsafe fn positions(self, mut mask: u64, base: u32, to: *mut u32) -> usize {
        let n = mask.count_ones() as usize;
        for i in 0..n {
            // SAFETY: the caller allows to write 64 numbers.
            unsafe { to.add(i).write(base + mask.trailing_zeros()) };
            mask &= mask - 1;
        }
        n
    }

    unsafe fn count_up(self, base: u32, from: *mut u32, to: *mut u32) {
        for i in 0..BLOCK {
            // SAFETY: the caller allows to write 64 numbers at both.
            unsafe {
                from.add(i).write(base.wrapping_add(i as u32));
                to.add(i).write(base.wrapping_add(i as u32 + 1));
            }
        }
    }
}

/// As [`super::InstructionSet::scan`].
pub(super) fn scan(source: Source<'_>, buffer: &mut Buffer) -> usize {
    // SAFETY: needs nothing of the CPU.
    unsafe { scan_with(Scalar, source, buffer) }
}

/// As [`super::InstructionSet::look_up`].
pub(super) fn look_up(table: &mut Table, words: Words<'_>, found: Found<'_>, miss: &mut Miss<'_>) {
    // SAFETY: needs nothing of the CPU.
    unsafe { look_up_with(Scalar, table, words, found, miss) }
}
