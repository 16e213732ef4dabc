//! Normalizing a text 64 bytes at a time: lower case, what cleaning removes, and where words begin and end.
//!
//! A block of ASCII becomes masks with a bit for each byte (`ByteClasses`): `word` (letters and digits), `punct`
//! (each a word by itself) and `odd` (first bytes of multi-byte characters, and control characters). Bytes in none of
//! them are white space or continuation bytes. Odd characters are handled one by one: a table has the normalized
//! form of each, which usually has no more bytes than the character, so it is written in place and its bits are set in
//! the masks. Bytes that are left over are squeezed out of the block at the end.
//!
//! A word begins where `word` follows something else, and at the first byte of each `punct`. It ends where `word` is
//! followed by something else, and after the last byte of each `punct`. Two shifts and a few ANDs find both for 64
//! bytes at once, without a branch; two bits are carried from block to block.
//!
//! A character whose normalized form is longer stops the scan: the caller handles it and resumes.
//!
//! # Cost
//!
//! With AVX-512, some forty instructions for 64 bytes of ASCII, regardless of the words in them. Each odd character
//! adds a table lookup, and a block that shrinks is squeezed once.

use super::buffer::NormalizedBuffer;
use super::chars::{CharAction, CharEntry, CharKind, CharTable};
use super::primitives::{BLOCK, Primitives};

/// The input of a scan.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanSource<'a> {
    /// The text, of which `at..end` is scanned; both are character boundaries.
    pub text: &'a str,
    pub at: usize,
    pub end: usize,
    /// The normalized forms of characters.
    pub chars: &'a CharTable,
}

/// Scans up to the first character that needs more bytes than it has, appending to `buffer`. Returns where it stopped,
/// in bytes of the text: the start of that character, or `source.end`.
///
/// Always inlined: `dispatch` compiles it for each instruction set.
///
/// # Panics
///
/// If `source.at..source.end` is not a range of the text between characters.
///
/// # Safety
///
/// The CPU must have the instructions of `P`.
#[inline(always)]
pub(super) unsafe fn scan_with<P: Primitives>(
    primitives: P,
    source: ScanSource<'_>,
    buffer: &mut NormalizedBuffer,
) -> usize {
    assert!(source.text.get(source.at..source.end).is_some(), "a range between characters");
    // SAFETY: the CPU has the instructions of `P`, by the contract; the assertion above checked the range.
    unsafe {
        match (source.chars.lowercase(), buffer.aligned) {
            (false, false) => scan_loop::<P, false, false>(primitives, source, buffer),
            (false, true) => scan_loop::<P, false, true>(primitives, source, buffer),
            (true, false) => scan_loop::<P, true, false>(primitives, source, buffer),
            (true, true) => scan_loop::<P, true, true>(primitives, source, buffer),
        }
    }
}

/// The masks of the block that is being scanned.
struct ScanBlock {
    /// Bytes inside words.
    word: u64,
    /// First byte of each word that is a single character (punctuation, ideographs).
    first: u64,
    /// Last byte of each of them.
    last: u64,
    /// Bytes that stay when the block is squeezed.
    kept: u64,
    /// Number of bytes of the text that the block covers, at most 64.
    len: usize,
    /// Whether the block ends before a character that stops the scan.
    stopped: bool,
}

/// The output buffers of a block, with 64 elements each.
#[derive(Clone, Copy)]
struct BlockOutput {
    text: *mut u8,
    /// For each byte of `text` the first byte of the original that it comes from; used only if the buffer is aligned.
    origin_starts: *mut u32,
    /// For each normalized byte, the end of the original bytes that it comes from.
    origin_ends: *mut u32,
}

/// State carried from one block to the next; each is 0 or 1.
struct Carry {
    /// The byte is inside a word, which the block may continue.
    in_word: u64,
    /// The byte is the last one of a word that is a single character, so a word ends at the start of the block.
    after_last: u64,
}

impl Carry {
    /// Returns masks of the bytes at which words begin, and of those before which words end, in a block of `written`
    /// bytes; carries on to the next block. A word that ends with the block ends at the start of the next one.
    #[inline(always)]
    fn boundaries(&mut self, word: u64, first: u64, last: u64, written: usize) -> (u64, u64) {
        let begin = (word & !(word << 1 | self.in_word)) | first;
        let mut end = ((word << 1 | self.in_word) & !word) | (last << 1 | self.after_last);
        if written < BLOCK {
            end &= low_bits(written);
        }
        if written > 0 {
            self.in_word = word >> (written - 1) & 1;
            self.after_last = last >> (written - 1) & 1;
        }
        (begin, end)
    }
}

/// Returns a mask of the lowest `n` bits, `n < 64`.
#[inline(always)]
fn low_bits(n: usize) -> u64 {
    (1u64 << n) - 1
}

/// # Safety
///
/// The CPU must have the instructions of `P`; the range of the source must be one of its text, between characters.
#[inline(always)]
unsafe fn scan_loop<P: Primitives, const LOWER: bool, const ALIGNED: bool>(
    primitives: P,
    source: ScanSource<'_>,
    buffer: &mut NormalizedBuffer,
) -> usize {
    let ScanSource { text, mut at, end, chars, .. } = source;
    let mut carry = Carry { in_word: u64::from(buffer.open), after_last: 0 };
    let spare = buffer.spare_capacity(end - at);
    // What has been written: bytes, starts and ends of words, and how many bytes of the original were consumed.
    let (mut bytes, mut starts, mut ends, mut consumed) = (0, 0, 0, 0);
    while at < end {
        let n = (end - at).min(BLOCK);
        // SAFETY: `n` bytes follow `at` in the text, and the CPU has the instructions of `P`. The spare capacity is for
        // 64 of each list more than there are bytes in the range: at most as many bytes, starts and ends (with the end
        // of the open word) have been written as bytes have been consumed, and a block still to be scanned has one or
        // more. `classify`, `count_up` and `read_odd` initialise all of a block that `squeeze` reads.
        unsafe {
            let output = BlockOutput {
                text: spare.text.add(bytes),
                origin_starts: spare.origin_starts.wrapping_add(bytes),
                origin_ends: spare.origin_ends.wrapping_add(bytes),
            };
            let classes = primitives.classify::<LOWER>(text.as_ptr().add(at), n, output.text);
            let mut block = ScanBlock {
                word: classes.word,
                first: classes.punct,
                last: classes.punct,
                kept: u64::MAX,
                len: n,
                stopped: false,
            };
            if ALIGNED {
                let origin = buffer.origin.wrapping_add(consumed);
                primitives.count_up(origin, output.origin_starts, output.origin_ends);
            }
            if classes.odd != 0 {
                read_odd::<ALIGNED>(text, at, classes.odd, chars, output, &mut block);
            }
            let (written, [word, first, last]) = squeeze_block::<P, ALIGNED>(primitives, output, &block);
            let (begin, end) = carry.boundaries(word, first, last, written);
            let base = spare.base.wrapping_add(bytes as u32);
            starts += primitives.positions(begin, base, spare.starts.add(starts));
            ends += primitives.positions(end, base, spare.ends.add(ends));
            at += block.len;
            consumed = consumed.wrapping_add(block.len as u32);
            bytes += written;
            if block.stopped {
                break;
            }
        }
    }
    // SAFETY: the loop above initialised exactly these elements after the end of each list.
    unsafe { buffer.advance(bytes, consumed, starts, ends) };
    if carry.after_last == 1 {
        buffer.end_word();
    }
    buffer.open = carry.in_word == 1;
    at
}

/// Removes the bytes of a block that are not kept. Returns how many bytes are left, and the masks `word`, `first` and
/// `last` for them.
///
/// # Safety
///
/// The CPU must have the instructions of `P`. `output.text` must have 64 initialised bytes that can be read and
/// written; with `ALIGNED`, so must `output.origin_starts` and `output.origin_ends` have 64 numbers.
#[inline(always)]
unsafe fn squeeze_block<P: Primitives, const ALIGNED: bool>(
    primitives: P,
    output: BlockOutput,
    block: &ScanBlock,
) -> (usize, [u64; 3]) {
    let covered = if block.len == BLOCK { u64::MAX } else { low_bits(block.len) };
    let masks = [block.word & covered, block.first & covered, block.last & covered];
    let kept = block.kept & covered;
    if kept == covered {
        return (block.len, masks);
    }
    // SAFETY: the contract covers the three calls.
    unsafe {
        let masks = primitives.squeeze(kept, output.text, masks);
        if ALIGNED {
            primitives.squeeze_numbers(kept, output.origin_starts);
            primitives.squeeze_numbers(kept, output.origin_ends);
        }
        (kept.count_ones() as usize, masks)
    }
}

/// Handles the characters of a block that are not plain ASCII: writes what they become over them, and updates the masks
/// of the block. `odd` has the bit of the first byte of each; the block begins at byte `at` of the text.
///
/// # Safety
///
/// `at` must be a character boundary of the text, and `odd` mark first bytes of its characters. `output.text` must have
/// 64 initialised bytes that can be read and written; with `ALIGNED`, so must `output.origin_starts` and
/// `output.origin_ends` have 64 numbers.
#[inline(always)]
unsafe fn read_odd<const ALIGNED: bool>(
    text: &str,
    at: usize,
    mut odd: u64,
    chars: &CharTable,
    output: BlockOutput,
    block: &mut ScanBlock,
) {
    // Characters are read four bytes at a time. At the end of the text they are read from a copy that is padded with
    // zeros.
    let mut padded = [0; BLOCK + 3];
    let mut bytes = &text.as_bytes()[at..];
    if bytes.len() < padded.len() {
        padded[..bytes.len()].copy_from_slice(bytes);
        bytes = &padded;
    }
    let bytes = bytes.as_ptr();
    while odd != 0 {
        let position = odd.trailing_zeros() as usize;
        odd &= odd - 1;
        // SAFETY: `position < 64`, and there are at least 64 + 3 bytes, in the text or in the copy.
        let four = unsafe { u32::from_le_bytes(bytes.add(position).cast::<[u8; 4]>().read()) };
        let (code, len_utf8) = decode(four);
        if position + len_utf8 > BLOCK {
            // The next block begins with it.
            block.len = position;
            return;
        }
        let action = if len_utf8 < 4 { chars.action(code as u16) } else { CharAction::Replace };
        if action != CharAction::Replace {
            // Which of the other two it is cannot be predicted in mixed text: arithmetic instead of a branch.
            let is_word = action as u64;
            block.word |= (low_bits(len_utf8) << position) & is_word.wrapping_sub(1);
            block.first |= is_word << position;
            block.last |= is_word << (position + len_utf8 - 1);
        } else {
            // SAFETY: decoded from a character of a `str`, whose first byte is at `position`.
            let c = unsafe { char::from_u32_unchecked(code) };
            let CharEntry { kind, len, bytes: [a, b, d, e, _, _] } = chars.get(c);
            if !kind.fits() {
                (block.len, block.stopped) = (position, true);
                return;
            }
            let len = len as usize;
            block.kept &= !((low_bits(len_utf8) ^ low_bits(len)) << position);
            match kind {
                CharKind::Inside => block.word |= low_bits(len) << position,
                CharKind::Space => {}
                _ => {
                    block.first |= 1 << position;
                    block.last |= 1 << (position + len - 1);
                }
            }
            // SAFETY: the character ends inside the block: `position + len_utf8 ≤ 64`.
            unsafe { output.overwrite(position, [a, b, d, e], len_utf8) };
        }
        if ALIGNED {
            // SAFETY: the character ends inside the block: `position + len_utf8 ≤ 64`.
            unsafe { output.share_origin(position, len_utf8) };
        }
    }
}

impl BlockOutput {
    /// Replaces the `len ≤ 4` bytes of the text from `position` on by the first of `new`.
    ///
    /// # Safety
    ///
    /// `position + len ≤ 64`, and `text` must have 64 initialised bytes that can be read and written.
    #[inline(always)]
    unsafe fn overwrite(self, position: usize, new: [u8; 4], len: usize) {
        // At the end of the block, its last four bytes: the character is among them. Without a branch, and without
        // copying `len` bytes: that would be a call, around which no vector register keeps its value.
        let at = position.min(BLOCK - 4);
        let shift = 8 * (position - at);
        let replaced = (low_bits(8 * len) as u32) << shift;
        // SAFETY: `at + 4 ≤ 64`. Bytes that are not of the character are written back as they were; `new` has zeros
        // after its own bytes, of which there are at most `len`.
        unsafe {
            let to = self.text.add(at).cast::<[u8; 4]>();
            let old = u32::from_le_bytes(to.read());
            to.write((u32::from_le_bytes(new) << shift | old & !replaced).to_le_bytes());
        }
    }

    /// Extends the origins of the `len` bytes of a character at `position` to all of it: offsets do not split
    /// characters.
    ///
    /// # Safety
    ///
    /// `position + len ≤ 64`, and both lists must have 64 initialised numbers that can be read and written.
    #[inline(always)]
    unsafe fn share_origin(self, position: usize, len: usize) {
        for i in position..position + len {
            // SAFETY: `position` and `i` are below 64.
            unsafe {
                let origin = self.origin_starts.add(position).read();
                self.origin_starts.add(i).write(origin);
                self.origin_ends.add(i).write(origin.wrapping_add(len as u32));
            }
        }
    }
}

/// Decodes the first character of four bytes of UTF-8. Returns the character and its length in bytes.
#[inline(always)]
fn decode(bytes: u32) -> (u32, usize) {
    let tail = |i: u32| bytes >> (8 * i) & 0x3F;
    match bytes as u8 {
        0..=0xBF => (bytes & 0x7F, 1),
        0xC0..=0xDF => ((bytes & 0x1F) << 6 | tail(1), 2),
        0xE0..=0xEF => ((bytes & 0x0F) << 12 | tail(1) << 6 | tail(2), 3),
        0xF0.. => ((bytes & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::dispatch::{self, tests::instruction_sets};
    use crate::normalize::BertNormalizer;
    use proptest::prelude::*;
    use wordpiece_parallel::InstructionSet;
    use wordpiece_parallel::testing::skips_exhaustive_test;

    fn tables() -> [&'static CharTable; 3] {
        let bert = BertNormalizer::default();
        [
            CharTable::shared(bert, false),
            CharTable::shared(bert, true),
            CharTable::shared(BertNormalizer { lowercase: false, strip_accents: Some(false), ..bert }, false),
        ]
    }

    fn scanned(
        set: InstructionSet,
        text: &str,
        chars: &CharTable,
        aligned: bool,
        open: bool,
    ) -> (usize, NormalizedBuffer) {
        let mut buffer = NormalizedBuffer::default();
        buffer.reset(aligned, 0);
        if open {
            buffer.push_in_word(b"x", 1);
        }
        let at = dispatch::scan(set, ScanSource { text, at: 0, end: text.len(), chars }, &mut buffer);
        (at, buffer)
    }

    /// Normalizes one character after the other, as far as the scan goes.
    fn by_definition(text: &str, chars: &CharTable, aligned: bool, open: bool) -> (usize, NormalizedBuffer) {
        let mut buffer = NormalizedBuffer::default();
        buffer.reset(aligned, 0);
        if open {
            buffer.push_in_word(b"x", 1);
        }
        for (at, c) in text.char_indices() {
            let CharEntry { kind, len, bytes } = chars.get(c);
            let (consumed, bytes) = (c.len_utf8() as u32, &bytes[..len as usize]);
            match kind {
                CharKind::Inside => buffer.push_in_word(bytes, consumed),
                CharKind::Space => {
                    buffer.push_space(consumed);
                    buffer.origin += consumed;
                }
                CharKind::Word => {
                    let mut eight = [0; 8];
                    eight[..bytes.len()].copy_from_slice(bytes);
                    buffer.push_word(eight, bytes.len(), consumed);
                }
                _ => return (at, buffer),
            }
        }
        (text.len(), buffer)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 3000 }))]

        #[test]
        fn every_instruction_set_equals_the_definition(
            text in prop::collection::vec(
                prop_oneof![
                    12 => prop::sample::select("aZ09 .,[]_\t\n\r".chars().collect::<Vec<_>>()),
                    3 => prop::sample::select("éÄÅжЙ\u{301}ıİß中〇。「ｶ\u{a0}\u{2028}\u{200d}\u{fffd}\0\u{7}한😀𝒜".chars().collect::<Vec<_>>()),
                    1 => any::<char>(),
                ],
                0..300,
            ).prop_map(String::from_iter),
            table in 0..3usize,
            aligned in any::<bool>(),
            open in any::<bool>(),
        ) {
            let chars = tables()[table];
            let expected = by_definition(&text, chars, aligned, open);
            for set in instruction_sets() {
                let scanned = scanned(set, &text, chars, aligned, open);
                prop_assert_eq!(&scanned, &expected, "{}", set.name());
            }
        }
    }

    #[test]
    fn every_character_at_the_edges_of_a_block() {
        if skips_exhaustive_test("every_character_at_the_edges_of_a_block") {
            return;
        }
        let sets = instruction_sets();
        let chars = CharTable::shared(BertNormalizer::default(), false);
        for c in (0..=0x10_FFFF).step_by(7).chain(0..0x600).filter_map(char::from_u32) {
            for before in [0, 60, 62, 63] {
                let text = format!("{}{c}{}", "A".repeat(before), "B".repeat(67));
                let expected = by_definition(&text, chars, true, false);
                for &set in &sets {
                    assert_eq!(scanned(set, &text, chars, true, false), expected, "{} {text:?}", set.name());
                }
            }
        }
    }

    /// 64 bytes directly before a page that cannot be accessed.
    #[cfg(target_os = "linux")]
    struct GuardedBlock {
        pages: *mut libc::c_void,
    }

    #[cfg(target_os = "linux")]
    impl GuardedBlock {
        const PAGE: usize = 1 << 16;

        fn new() -> GuardedBlock {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: an anonymous mapping at an address of the system's choice; access to its second half is revoked
            // before anything points there.
            let pages = unsafe {
                let pages = libc::mmap(std::ptr::null_mut(), 2 * Self::PAGE, access, flags, -1, 0);
                assert!(pages != libc::MAP_FAILED);
                assert_eq!(libc::mprotect(pages.byte_add(Self::PAGE), Self::PAGE, libc::PROT_NONE), 0);
                pages
            };
            GuardedBlock { pages }
        }

        fn as_mut_ptr(&mut self) -> *mut u8 {
            // SAFETY: inside the mapping.
            unsafe { self.pages.cast::<u8>().add(Self::PAGE - BLOCK) }
        }
    }

    #[cfg(target_os = "linux")]
    impl Drop for GuardedBlock {
        fn drop(&mut self) {
            // SAFETY: the mapping of `new`, which nothing borrows any more.
            unsafe { libc::munmap(self.pages, 2 * Self::PAGE) };
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no pages that cannot be accessed")]
    fn odd_characters_at_the_end_of_a_block_touch_nothing_behind_it() {
        let chars = &tables()[0];
        for c in ['É', '\u{301}', '\u{a0}', '。', '\u{200d}', '𝒜', '\u{7}'] {
            let len = c.len_utf8();
            let text = format!("{}{c}{}", "a".repeat(BLOCK - len), "b".repeat(8));
            let mut output = GuardedBlock::new();
            let to = output.as_mut_ptr();
            let mut block = ScanBlock {
                word: low_bits(BLOCK - len),
                first: 0,
                last: 0,
                kept: u64::MAX,
                len: BLOCK,
                stopped: false,
            };
            // SAFETY: the block has 64 bytes, all written by the copy; the numbers are not used without alignment.
            unsafe {
                to.copy_from_nonoverlapping(text.as_ptr(), BLOCK);
                let unused = std::ptr::null_mut();
                let output = BlockOutput { text: to, origin_starts: unused, origin_ends: unused };
                read_odd::<false>(&text, 0, 1 << (BLOCK - len), chars, output, &mut block);
            }
            let CharEntry { bytes, len: kept, .. } = chars.get(c);
            // SAFETY: 64 bytes, initialised above.
            let written = unsafe { std::slice::from_raw_parts(to, BLOCK) };
            assert_eq!(&written[BLOCK - len..][..kept as usize], &bytes[..kept as usize], "{c:?}");
            assert!(!block.stopped && block.len == BLOCK, "{c:?}");
        }
    }
}
