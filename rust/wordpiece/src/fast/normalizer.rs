//! BERT's normalizer and pre-tokenizer in one loop: the normalized bytes of a text, and where words begin and end.
//!
//! Blocks of 64 bytes go through the [scan](super::scan); characters that become more bytes than they have are appended
//! one by one, until a block or eight bytes of ASCII fit again. What neither can do — a mark that canonical ordering
//! might move, or a result too long for 32-bit positions — is refused, and the pipeline does that part of the text.
//!
//! # Cost
//!
//! Linear in the length of the text, and cheapest by far for ASCII. A character that stops the scan costs more than a
//! block of ASCII; Korean consists of them, other scripts rarely have any.

use wordpiece_parallel::InstructionSet;

use super::buffer::{MAX_LEN, NormalizedBuffer};
use super::chars::{CharEntry, CharKind, CharTable};
use super::dispatch;
use super::scan::ScanSource;
use crate::normalize::BertNormalizer;

/// The most bytes that normalizing one byte adds to the buffer: a Hangul syllable of 3 bytes becomes up to 9, some
/// characters of 2 bytes become 6, and an ideograph of 3 bytes gets a space on each side.
const MAX_GROWTH: usize = 3;

/// Number of bytes that are normalized between two checks of the length of the buffer.
const CHECK_INTERVAL: usize = 1 << 20;

/// BERT's normalizer and pre-tokenizer for some options, on one instruction set. It does not change, so threads share
/// it.
#[derive(Debug, Clone)]
pub(super) struct FastNormalizer {
    /// One that [`dispatch::effective`] returns.
    instruction_set: InstructionSet,
    /// The normalized form of each character under the options.
    chars: &'static CharTable,
    /// The buffer never becomes longer than this, in bytes; [`MAX_LEN`], but for tests.
    max_len: usize,
}

impl FastNormalizer {
    /// Returns the normalizer for these options; `None` without cleaning, on which the scan relies. `exact_text` is as
    /// in [`CharTable::shared`].
    pub fn new(options: BertNormalizer, exact_text: bool, instruction_set: InstructionSet) -> Option<FastNormalizer> {
        let instruction_set = dispatch::effective(instruction_set);
        let chars = || CharTable::shared(options, exact_text);
        options.clean_text.then(|| FastNormalizer { instruction_set, chars: chars(), max_len: MAX_LEN })
    }

    /// Returns the instruction set in use.
    pub fn instruction_set(&self) -> InstructionSet {
        self.instruction_set
    }

    /// Appends `part[at..end]` to `buffer`, and a few bytes more if `end` is inside a character. Returns where it
    /// stopped, or `None` if only the pipeline can normalize the text; what is in the buffer then is not complete.
    ///
    /// A last word stays open: whether it ends here depends on what follows.
    pub fn normalize(&self, part: &str, mut at: usize, end: usize, buffer: &mut NormalizedBuffer) -> Option<usize> {
        while at < end {
            let checked = char_boundary(part, if end - at > CHECK_INTERVAL { at + CHECK_INTERVAL } else { end });
            // Neither sum overflows: both terms are sizes of allocations.
            if buffer.text().len() + MAX_GROWTH * (checked - at) > self.max_len {
                return None;
            }
            at = self.normalize_unchecked(part, at, checked, buffer)?;
        }
        Some(at)
    }

    /// Appends `part[at..end]`, which must not make the buffer too long; `end` must be a character boundary.
    #[inline(always)]
    fn normalize_unchecked(
        &self,
        part: &str,
        mut at: usize,
        end: usize,
        buffer: &mut NormalizedBuffer,
    ) -> Option<usize> {
        while at < end {
            let source = ScanSource { text: part, at, end, chars: self.chars };
            at = dispatch::scan(self.instruction_set, source, buffer);
            // One by one, until there is something that the scan can do.
            while at < end {
                let byte = part.as_bytes()[at];
                if byte < 128 {
                    if part.as_bytes().get(at..at + 8).is_some_and(|next| next.is_ascii()) {
                        break;
                    }
                    self.push_ascii(byte, buffer);
                    at += 1;
                    continue;
                }
                let (c, next) = char_at(part, at);
                let consumed = (next - at) as u32;
                let CharEntry { kind, len, bytes: [a, b, d, e, f, g] } = self.chars.get(c);
                let (text, len) = ([a, b, d, e, f, g, 0, 0], len as usize);
                match kind {
                    CharKind::Inside | CharKind::Space | CharKind::Word => break,
                    CharKind::Longer => buffer.push_short_in_word(text, len, consumed),
                    CharKind::Ideograph => {
                        // The spaces around it come from the same bytes as the ideograph.
                        buffer.push_space(consumed);
                        buffer.push_word(text, len, consumed);
                        buffer.origin -= consumed;
                        buffer.push_space(consumed);
                        buffer.origin += consumed;
                    }
                    CharKind::Hangul => {
                        let (text, len) = crate::unicode::decompose_hangul_to_utf8(c);
                        buffer.push_short_in_word(text, len, consumed);
                    }
                    CharKind::Other => return None,
                }
                at = next;
            }
        }
        Some(at)
    }

    /// Appends an ASCII byte: what the scan does for 64 of them, between characters that stop it.
    #[inline(always)]
    fn push_ascii(&self, byte: u8, buffer: &mut NormalizedBuffer) {
        let bytes = [byte, 0, 0, 0, 0, 0, 0, 0];
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {
                buffer.push_space(1);
                buffer.origin += 1;
            }
            // Cleaning removes control characters.
            0..=31 | 127 => buffer.origin += 1,
            b'A'..=b'Z' if self.chars.lowercase() => buffer.push_short_in_word([byte + 32, 0, 0, 0, 0, 0, 0, 0], 1, 1),
            _ if byte.is_ascii_alphanumeric() => buffer.push_short_in_word(bytes, 1, 1),
            _ => buffer.push_word(bytes, 1, 1),
        }
    }
}

/// Returns the first position from byte `at` on that is between characters.
#[inline(always)]
fn char_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// Returns the character at byte `at`, and where the next one begins. `at` must be a character boundary before the end.
#[inline(always)]
fn char_at(text: &str, at: usize) -> (char, usize) {
    let bytes = &text.as_bytes()[at..];
    let tail = |byte: u8| u32::from(byte & 0x3F);
    // Nearly all characters here have two or three bytes; the others are left to the standard library.
    let code = match *bytes {
        [a @ 0xC0..=0xDF, b, ..] => Some((u32::from(a & 0x1F) << 6 | tail(b), 2)),
        [a @ 0xE0..=0xEF, b, c, ..] => Some((u32::from(a & 0x0F) << 12 | tail(b) << 6 | tail(c), 3)),
        _ => None,
    };
    match code.and_then(|(code, len)| Some((char::from_u32(code)?, at + len))) {
        Some(found) => found,
        None => {
            let c = text[at..].chars().next().unwrap_or('\0');
            (c, at + c.len_utf8())
        }
    }
}

#[cfg(test)]
impl FastNormalizer {
    /// Lowers the limit on the length of the buffer, so that tests reach it.
    pub fn with_max_len(self, max_len: usize) -> FastNormalizer {
        FastNormalizer { max_len, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::dispatch::tests::instruction_sets;
    use wordpiece_parallel::testing::skips_exhaustive_test;

    /// Positions are 32-bit, and normalizing can triple a text: the limit must hold for what is written.
    #[test]
    fn a_text_whose_normalized_form_is_too_long_is_refused() {
        for set in instruction_sets() {
            let normalizer = FastNormalizer::new(BertNormalizer::default(), true, set).unwrap().with_max_len(900);
            let mut buffer = NormalizedBuffer::default();
            let mut normalized = |text: &str| {
                buffer.reset(true, 0);
                let stopped = normalizer.normalize(text, 0, text.len(), &mut buffer);
                assert!(buffer.text().len() <= 900, "{}: {} bytes", set.name(), buffer.text().len());
                stopped
            };
            assert_eq!(normalized(&"각".repeat(100)), Some(300), "{}", set.name());
            assert_eq!(normalized(&"각".repeat(101)), None, "{}", set.name());
            assert_eq!(normalized(&"中".repeat(100)), Some(300), "{}", set.name());
            assert_eq!(normalized(&"a".repeat(1000)), None, "{}", set.name());
        }
    }

    /// The bound that the limit is checked with.
    #[test]
    fn no_character_grows_more_than_threefold() {
        if skips_exhaustive_test("no_character_grows_more_than_threefold") {
            return;
        }
        for set in instruction_sets() {
            for options in [BertNormalizer::default(), BertNormalizer { lowercase: false, ..BertNormalizer::default() }]
            {
                let normalizer = FastNormalizer::new(options, true, set).unwrap();
                let mut buffer = NormalizedBuffer::default();
                for c in (0..=0x10_FFFF).filter_map(char::from_u32) {
                    buffer.reset(false, 0);
                    let text = c.encode_utf8(&mut [0; 4]).to_owned();
                    if normalizer.normalize(&text, 0, text.len(), &mut buffer).is_some() {
                        assert!(buffer.text().len() <= MAX_GROWTH * text.len(), "{}: {c:?}", set.name());
                    }
                }
            }
        }
    }
}
