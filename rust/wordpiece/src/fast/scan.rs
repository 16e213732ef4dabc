//! Text, 64 bytes at a time: lower case, what cleaning removes, and where words begin and end.
//!
//! ASCII becomes three masks, a bit for each byte: `word` (letters, digits and all else that makes words), `punct` (each a
//! word of its own) and `odd` (first bytes of characters that are not ASCII, or that cleaning removes); what is in none of
//! them is white space, or inside a character. Odd characters are read one by one; a table says what each becomes, and mostly
//! that takes as many bytes or fewer: it is written where the character stood, the bits of the masks follow, and bytes that
//! nothing is left of are squeezed out of the block at the end.
//!
//! A word begins where `word` follows something else, and at the first byte of each `punct`; it ends where `word` is
//! followed by something else, and after the last byte of each `punct`. Two shifts and a few ands say so for 64 bytes at
//! once, without a branch; a carry of one bit leads from block to block.

use super::arch::Isa;
use super::buffer::Buffer;
use super::chars::{Chars, Entry, Kind, Plan};

/// Bytes classified at a time.
pub(super) const BLOCK: usize = 64;

/// The classes of 64 bytes, the first in the lowest bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Masks {
    pub word: u64,
    pub punct: u64,
    pub odd: u64,
}

/// What is scanned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    /// The text, of which `at..end` is scanned; both between characters.
    pub text: &'a str,
    pub at: usize,
    pub end: usize,
    /// What characters become.
    pub chars: &'a Chars,
}

/// The loop: scans up to the first character that does not fit where it stands, into `buffer`; returns where it stopped.
///
/// Inlined into a function of each instruction set, so that its intrinsics are.
///
/// # Safety
///
/// The CPU is that of `isa`.
#[inline(always)]
pub(super) unsafe fn scan_with<I: Isa>(isa: I, source: Source<'_>, buffer: &mut Buffer) -> usize {
    assert!(source.text.is_char_boundary(source.at) && source.text.is_char_boundary(source.end));
    // SAFETY: the caller's; the range is one of the text.
    unsafe {
        match (source.chars.lowercase(), buffer.aligned) {
            (false, false) => scan_loop::<I, false, false>(isa, source, buffer),
            (false, true) => scan_loop::<I, false, true>(isa, source, buffer),
            (true, false) => scan_loop::<I, true, false>(isa, source, buffer),
            (true, true) => scan_loop::<I, true, true>(isa, source, buffer),
        }
    }
}

/// A block on its way.
struct Block {
    /// What is inside words.
    word: u64,
    /// The first and the last byte of each word that is one character of its own.
    first: u64,
    last: u64,
    /// What is left when removed bytes are squeezed out.
    kept: u64,
    /// The bytes that are done.
    n: usize,
    /// The block ends before a character that does not fit.
    stopped: bool,
}

/// # Safety
///
/// As for [`scan_with`]; `at` and `end` are as the source wants them.
#[inline(always)]
unsafe fn scan_loop<I: Isa, const LOWER: bool, const ALIGNED: bool>(
    isa: I,
    source: Source<'_>,
    buffer: &mut Buffer,
) -> usize {
    let Source { text, mut at, end, chars, .. } = source;
    // Whether the byte before is inside a word, and whether it ends a word of one character.
    let mut in_word = u64::from(buffer.open);
    let mut after_last = 0u64;
    let room = buffer.room(end - at);
    // How much has been written.
    let (mut bytes, mut starts, mut ends, mut units) = (0, 0, 0, 0);
    while at < end {
        let n = (end - at).min(BLOCK);
        // SAFETY: `n` bytes follow `at` in the text; the buffer has room for 64 of everything; the caller has the CPU.
        unsafe {
            let to = room.text.add(bytes);
            let masks = isa.classify::<LOWER>(text.as_ptr().add(at), n, to);
            let mut block =
                Block { word: masks.word, first: masks.punct, last: masks.punct, kept: u64::MAX, n, stopped: false };
            let (from_units, to_units) = (room.from.wrapping_add(bytes), room.to.wrapping_add(bytes));
            if ALIGNED {
                isa.count_up(buffer.unit.wrapping_add(units), from_units, to_units);
            }
            if masks.odd != 0 {
                read_odd::<ALIGNED>(text, at, masks.odd, chars, to, from_units, to_units, &mut block);
            }
            let given = if block.n == BLOCK { u64::MAX } else { (1 << block.n) - 1 };
            let [mut word, mut first, mut last] = [block.word & given, block.first & given, block.last & given];
            let mut written = block.n;
            if block.kept & given != given {
                let kept = block.kept & given;
                written = kept.count_ones() as usize;
                [word, first, last] = isa.squeeze(kept, to, [word, first, last]);
                if ALIGNED {
                    isa.squeeze_numbers(kept, from_units);
                    isa.squeeze_numbers(kept, to_units);
                }
            }
            let begin = (word & !(word << 1 | in_word)) | first;
            let mut end = ((word << 1 | in_word) & !word) | (last << 1 | after_last);
            if written < BLOCK {
                end &= (1 << written) - 1;
            }
            let base = room.base.wrapping_add(bytes as u32);
            starts += isa.positions(begin, base, room.starts.add(starts));
            ends += isa.positions(end, base, room.ends.add(ends));
            if written > 0 {
                in_word = word >> (written - 1) & 1;
                after_last = last >> (written - 1) & 1;
            }
            at += block.n;
            units = units.wrapping_add(block.n as u32);
            bytes += written;
            if block.stopped {
                break;
            }
        }
    }
    // SAFETY: so many were written.
    unsafe { buffer.advance(bytes, units, starts, ends) };
    if after_last == 1 {
        buffer.end_word();
    }
    buffer.open = in_word == 1;
    at
}

/// Reads the characters of a block that are not plain ASCII, from byte `at` of the text on, and writes what they become.
///
/// # Safety
///
/// `at` is in the text and between characters; 64 bytes can be written at `to`, and as many numbers at `from_units` and
/// `to_units` if `ALIGNED`.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "the parts of a block, and where it is written")]
unsafe fn read_odd<const ALIGNED: bool>(
    text: &str,
    at: usize,
    mut odd: u64,
    chars: &Chars,
    to: *mut u8,
    from_units: *mut u32,
    to_units: *mut u32,
    block: &mut Block,
) {
    let bits = |n: usize| (1u64 << n) - 1;
    // Characters are read four bytes at a time: the last ones of a text where bytes follow.
    let mut last = [0; BLOCK + 3];
    let mut bytes = &text.as_bytes()[at..];
    if bytes.len() < last.len() {
        last[..bytes.len()].copy_from_slice(bytes);
        bytes = &last;
    }
    let bytes = bytes.as_ptr();
    while odd != 0 {
        let place = odd.trailing_zeros() as usize;
        odd &= odd - 1;
        // SAFETY: four bytes from a place in the block on are in the text or in the copy.
        let four = unsafe { u32::from_le_bytes(bytes.add(place).cast::<[u8; 4]>().read()) };
        let (code, units) = decode(four);
        if place + units > BLOCK {
            // It begins the next block.
            block.n = place;
            return;
        }
        let plan = if units < 4 { chars.plan(code as u16) } else { Plan::Look };
        if plan != Plan::Look {
            // Which of the two it is cannot be guessed where they mix: by arithmetic.
            let alone = plan as u64;
            block.word |= (bits(units) << place) & alone.wrapping_sub(1);
            block.first |= alone << place;
            block.last |= alone << (place + units - 1);
        } else {
            // SAFETY: decoded from a str, at the beginning of a character.
            let c = unsafe { char::from_u32_unchecked(code) };
            let Entry { kind, len, bytes: [a, b, d, e, _, _] } = chars.get(c);
            if !kind.fits() {
                (block.n, block.stopped) = (place, true);
                return;
            }
            let len = len as usize;
            block.kept &= !((bits(units) ^ bits(len)) << place);
            match kind {
                Kind::Inside => block.word |= bits(len) << place,
                Kind::Space => {}
                _ => {
                    block.first |= 1 << place;
                    block.last |= 1 << (place + len - 1);
                }
            }
            // SAFETY: the character lies in the block; what is written behind it, and behind the block, is what was there.
            unsafe {
                let shown = bits(8 * units) as u32;
                let to = to.add(place).cast::<[u8; 4]>();
                let old = u32::from_le_bytes(to.read());
                to.write((u32::from_le_bytes([a, b, d, e]) | old & !shown).to_le_bytes());
            }
        }
        if ALIGNED {
            for i in place..place + units {
                // SAFETY: the caller allows 64 numbers.
                unsafe {
                    from_units.add(i).write(from_units.add(place).read());
                    to_units.add(i).write(from_units.add(place).read().wrapping_add(units as u32));
                }
            }
        }
    }
}

/// The character that begins four bytes of UTF-8, and how many of them it takes.
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
    use crate::fast::arch::InstructionSet;
    use crate::normalize::BertNormalizer;
    use proptest::prelude::*;

    fn tables() -> [Chars; 3] {
        let bert = BertNormalizer::default();
        [
            Chars::new(bert, false),
            Chars::new(bert, true),
            Chars::new(BertNormalizer { lowercase: false, strip_accents: Some(false), ..bert }, false),
        ]
    }

    fn scanned(path: InstructionSet, text: &str, chars: &Chars, aligned: bool, open: bool) -> (usize, Buffer) {
        let mut buffer = Buffer::default();
        buffer.reset(aligned, 0);
        if open {
            buffer.push_in_word(b"x", 1);
        }
        let at = path.scan(Source { text, at: 0, end: text.len(), chars }, &mut buffer);
        (at, buffer)
    }

    /// One character after the other, as far as the scan goes.
    fn by_definition(text: &str, chars: &Chars, aligned: bool, open: bool) -> (usize, Buffer) {
        let mut buffer = Buffer::default();
        buffer.reset(aligned, 0);
        if open {
            buffer.push_in_word(b"x", 1);
        }
        for (at, c) in text.char_indices() {
            let Entry { kind, len, bytes } = chars.get(c);
            let (units, bytes) = (c.len_utf8() as u32, &bytes[..len as usize]);
            match kind {
                Kind::Inside => buffer.push_in_word(bytes, units),
                Kind::Space => {
                    buffer.push_space(units);
                    buffer.unit += units;
                }
                Kind::Word => {
                    let mut eight = [0; 8];
                    eight[..bytes.len()].copy_from_slice(bytes);
                    buffer.push_word(eight, bytes.len(), units);
                }
                _ => return (at, buffer),
            }
        }
        (text.len(), buffer)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn every_path_equals_the_definition(
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
            thread_local!(static TABLES: [Chars; 3] = tables());
            TABLES.with(|tables| {
                let expected = by_definition(&text, &tables[table], aligned, open);
                for path in InstructionSet::all_available() {
                    let scanned = scanned(path, &text, &tables[table], aligned, open);
                    prop_assert_eq!(&scanned, &expected, "{}", path.name());
                }
                Ok(())
            })?;
        }
    }

    #[test]
    fn every_character_at_the_edges_of_a_block() {
        let paths = InstructionSet::all_available();
        println!("paths of this machine: {:?}", paths.iter().map(|path| path.name()).collect::<Vec<_>>());
        let tables = tables();
        for c in (0..=0x10_FFFF).step_by(7).chain(0..0x600).filter_map(char::from_u32) {
            for before in [0, 60, 62, 63] {
                let text = format!("{}{c}{}", "A".repeat(before), "B".repeat(67));
                let expected = by_definition(&text, &tables[0], true, false);
                for &path in &paths {
                    assert_eq!(scanned(path, &text, &tables[0], true, false), expected, "{} {text:?}", path.name());
                }
            }
        }
    }
}
