//! Ranges of a text, and the units that their offsets count.
//!
//! The pipeline works with byte offsets throughout; [`convert`] turns them into the unit that a call asked for, at the very
//! end. It imports no other module, so everything that has offsets can use it.
//!
//! Cost: ASCII texts need no conversion. Otherwise, one pass over the text per forward run of spans; spans of one text are
//! nearly sorted, so that is about one pass in total.

/// The unit of offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OffsetUnit {
    /// Unicode scalar values, the index of a Python string.
    #[default]
    Char,
    /// Bytes of UTF-8.
    Byte,
    /// UTF-16 code units, the index of a JavaScript or Java string. Characters above U+FFFF count twice.
    Utf16,
}

/// A range of a text: of its bytes, until [`convert`] changes the unit. `start <= end`.
///
/// Offsets are `u32` because a span is stored for every byte of a normalized text; longer texts are refused with
/// [`Error::TextTooLong`](crate::Error::TextTooLong).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    /// The first byte (or unit).
    pub start: u32,
    /// The byte (or unit) after the last.
    pub end: u32,
}

/// Converts spans in bytes of `text` to spans in `unit`, in place.
///
/// Between two non-ASCII characters, offsets in bytes and in units differ by a constant. A cursor moves over the non-ASCII
/// characters and accumulates the difference; a span that begins before the cursor restarts it. Offsets must lie on
/// character boundaries.
pub(crate) fn convert(text: &str, unit: OffsetUnit, spans: &mut [Span]) {
    if unit == OffsetUnit::Byte || text.is_ascii() {
        return;
    }
    let mut cursor = Cursor::new(text.as_bytes(), unit);
    for span in spans {
        *span = Span { start: cursor.at(span.start), end: cursor.at(span.end) };
    }
}

/// Maps byte offsets of a text to offsets in a unit.
struct Cursor<'t> {
    text: &'t [u8],
    unit: OffsetUnit,
    /// The end of the last non-ASCII character before the cursor.
    from: usize,
    /// The start of the first non-ASCII character after the cursor, or the length of the text.
    next: usize,
    /// The number of bytes in `..from`, less the number of units there.
    surplus: usize,
}

impl<'t> Cursor<'t> {
    /// Returns a cursor at the start of `text`.
    fn new(text: &'t [u8], unit: OffsetUnit) -> Cursor<'t> {
        Cursor { text, unit, from: 0, next: next_wide(text, 0), surplus: 0 }
    }

    /// Returns the offset in units of the character that begins at `byte`.
    #[inline]
    fn at(&mut self, byte: u32) -> u32 {
        let byte = byte as usize;
        if byte < self.from {
            *self = Cursor::new(self.text, self.unit);
        }
        while byte > self.next {
            let (length, units) = match self.text[self.next] {
                0xF0.. => (4, if self.unit == OffsetUnit::Utf16 { 2 } else { 1 }),
                0xE0.. => (3, 1),
                _ => (2, 1),
            };
            self.surplus += length - units;
            self.from = self.next + length;
            self.next = next_wide(self.text, self.from);
        }
        (byte - self.surplus) as u32
    }
}

/// Returns the index of the first non-ASCII byte from `at` on, or the length of the text.
#[inline]
fn next_wide(text: &[u8], mut at: usize) -> usize {
    while let Some(eight) = text.get(at..at + 8) {
        let high = u64::from_le_bytes(eight.try_into().expect("eight bytes")) & 0x8080_8080_8080_8080;
        if high != 0 {
            return at + high.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    text[at..].iter().position(|&byte| byte >= 0x80).map_or(text.len(), |found| at + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_converted_in_any_order() {
        let text = "aé中😀b";
        let all = [(0, 1), (1, 3), (3, 6), (6, 10), (10, 11), (1, 6), (0, 11)];
        let converted = |unit| {
            let mut spans: Vec<Span> = all.iter().map(|&(start, end)| Span { start, end }).collect();
            convert(text, unit, &mut spans);
            spans.iter().map(|span| (span.start, span.end)).collect::<Vec<_>>()
        };
        assert_eq!(converted(OffsetUnit::Byte), all);
        assert_eq!(converted(OffsetUnit::Char), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 3), (0, 5)]);
        assert_eq!(converted(OffsetUnit::Utf16), [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6), (1, 3), (0, 6)]);
    }
}
