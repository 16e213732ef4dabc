//! What offsets count: bytes, characters, or UTF-16 units.

use crate::normalize::Span;

/// What offsets count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OffsetUnit {
    /// Unicode scalar values, as Python indexes strings.
    #[default]
    Char,
    /// Bytes of UTF-8.
    Byte,
    /// Units of UTF-16, as JavaScript and Java index strings.
    Utf16,
}

/// Turns spans in bytes of `text` into spans in `unit`.
///
/// Between two characters that are not ASCII, positions in bytes and in units differ by the same number. Spans come nearly
/// sorted, so such characters and spans are read along with each other; one that lies before the last begins anew.
pub(crate) fn convert(text: &str, unit: OffsetUnit, spans: &mut [Span]) {
    if unit == OffsetUnit::Byte || text.is_ascii() {
        return;
    }
    let mut cursor = Cursor::new(text.as_bytes(), unit);
    for span in spans {
        *span = Span { start: cursor.at(span.start), end: cursor.at(span.end) };
    }
}

/// Where bytes of a text stand in units.
struct Cursor<'t> {
    text: &'t [u8],
    unit: OffsetUnit,
    /// The end of the last character passed that is not ASCII, and the start of the next one.
    from: usize,
    next: usize,
    /// Bytes that are no units, up to there.
    surplus: usize,
}

impl<'t> Cursor<'t> {
    fn new(text: &'t [u8], unit: OffsetUnit) -> Cursor<'t> {
        Cursor { text, unit, from: 0, next: next_wide(text, 0), surplus: 0 }
    }

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

/// The first byte from `at` on that is not ASCII; the end where there is none.
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
    fn units_are_counted_whatever_the_order() {
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
