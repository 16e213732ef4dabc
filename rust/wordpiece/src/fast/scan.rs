//! ASCII, 64 bytes at a time: lower case, and where words begin and end.
//!
//! A block becomes three masks, a bit for each byte: `word` (letters, digits and all else that makes words), `punct`
//! (each a word of its own) and `odd` (bytes that this scan leaves to others: not ASCII, or removed by cleaning); what is
//! in none of them is white space. A word begins where `word` follows something else, and at each `punct`; it ends where
//! `word` is followed by something else, and after each `punct`. Two shifts and a few ands say so for 64 bytes at once,
//! without a branch; a carry of one bit leads from block to block.

use super::buffer::Buffer;
use super::isa::Isa;

/// Bytes classified at a time.
pub(super) const BLOCK: usize = 64;

/// The classes of 64 bytes, the first in the lowest bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Masks {
    pub word: u64,
    pub punct: u64,
    pub odd: u64,
}

/// The loop. Inlined into a function of each instruction set, so that its intrinsics are.
///
/// # Safety
///
/// As for `isa`; and `at <= end <= text.len()`.
#[inline(always)]
pub(super) unsafe fn scan_with<I: Isa>(isa: I, text: &[u8], at: usize, end: usize, lower: bool, buffer: &mut Buffer) -> usize {
    // SAFETY: the caller's.
    unsafe {
        match (lower, buffer.aligned) {
            (false, false) => scan_loop::<I, false, false>(isa, text, at, end, buffer),
            (false, true) => scan_loop::<I, false, true>(isa, text, at, end, buffer),
            (true, false) => scan_loop::<I, true, false>(isa, text, at, end, buffer),
            (true, true) => scan_loop::<I, true, true>(isa, text, at, end, buffer),
        }
    }
}

/// # Safety
///
/// As for [`scan_with`].
#[inline(always)]
unsafe fn scan_loop<I: Isa, const LOWER: bool, const ALIGNED: bool>(
    isa: I,
    text: &[u8],
    mut at: usize,
    end: usize,
    buffer: &mut Buffer,
) -> usize {
    // Whether the byte before is inside a word, and whether it is punctuation.
    let mut in_word = u64::from(buffer.open);
    let mut after_punct = 0u64;
    let room = buffer.room((end - at).next_multiple_of(BLOCK));
    // How much has been written.
    let (mut bytes, mut starts, mut ends) = (0, 0, 0);
    while at < end {
        let n = (end - at).min(BLOCK);
        // SAFETY: `n` bytes follow `at` in the text; the buffer has room for 64 of everything; the caller has the CPU.
        unsafe {
            let masks = isa.classify::<LOWER>(text.as_ptr().add(at), n, room.text.add(bytes));
            let n_kept = if masks.odd == 0 { n } else { masks.odd.trailing_zeros() as usize };
            let kept = if n_kept == BLOCK { u64::MAX } else { (1 << n_kept) - 1 };
            let (word, punct) = (masks.word & kept, masks.punct & kept);
            let begin = (word & !(word << 1 | in_word)) | punct;
            let end = (((word << 1 | in_word) & !word) | (punct << 1 | after_punct)) & kept;
            let base = room.base.wrapping_add(bytes as u32);
            starts += isa.positions(begin, base, room.starts.add(starts));
            ends += isa.positions(end, base, room.ends.add(ends));
            if ALIGNED {
                isa.count_up(buffer.unit.wrapping_add(bytes as u32), room.from.add(bytes), room.to.add(bytes));
            }
            if n_kept > 0 {
                in_word = word >> (n_kept - 1) & 1;
                after_punct = punct >> (n_kept - 1) & 1;
            }
            at += n_kept;
            bytes += n_kept;
            if masks.odd != 0 {
                break;
            }
        }
    }
    // SAFETY: so many were written.
    unsafe { buffer.advance(bytes, starts, ends) };
    if after_punct == 1 {
        buffer.end_word();
    }
    buffer.open = in_word == 1;
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::isa::Path;
    use proptest::prelude::*;

    fn scanned(path: Path, text: &[u8], lower: bool, aligned: bool, open: bool) -> (usize, Buffer) {
        let mut buffer = Buffer::default();
        buffer.reset(aligned, 0);
        if open {
            buffer.push_in_word(b"x", 1);
        }
        let at = path.scan(text, 0, text.len(), lower, &mut buffer);
        (at, buffer)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn every_path_equals_the_scalar_one(
            text in prop::collection::vec(
                prop_oneof![12 => prop::sample::select(b"aZ09 .,[]_\t\n\r".to_vec()), 1 => any::<u8>()],
                0..300,
            ),
            lower in any::<bool>(),
            aligned in any::<bool>(),
            open in any::<bool>(),
        ) {
            let expected = scanned(Path::Scalar, &text, lower, aligned, open);
            for path in Path::all_available() {
                prop_assert_eq!(&scanned(path, &text, lower, aligned, open), &expected, "{}", path.name());
            }
        }
    }

    #[test]
    fn every_byte_at_every_place_of_a_block() {
        let paths = Path::all_available();
        println!("paths of this machine: {:?}", paths.iter().map(|path| path.name()).collect::<Vec<_>>());
        for byte in 0..=255u8 {
            for length in [1, 63, 64, 65, 130] {
                for place in (0..length).filter(|place| place % 7 == 0 || *place > length - 3) {
                    let mut text = vec![b'A'; length];
                    text[place] = byte;
                    let expected = scanned(Path::Scalar, &text, true, true, false);
                    for &path in &paths {
                        assert_eq!(scanned(path, &text, true, true, false), expected, "{} {byte} {place}", path.name());
                    }
                }
            }
        }
    }
}
