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
/// Spans come nearly sorted, so a cursor that counts from the last position to the next reads the text about once.
pub(crate) fn convert(text: &str, unit: OffsetUnit, spans: &mut [Span]) {
    if unit == OffsetUnit::Byte || text.is_ascii() {
        return;
    }
    let bytes = text.as_bytes();
    let count = |from: usize, to: usize| -> u32 {
        let units = bytes[from..to].iter().map(|&byte| match unit {
            // Every byte that begins a character, and for UTF-16 those of four bytes twice.
            OffsetUnit::Utf16 => u32::from(byte & 0xC0 != 0x80) + u32::from(byte >= 0xF0),
            _ => u32::from(byte & 0xC0 != 0x80),
        });
        units.sum()
    };
    let (mut at_byte, mut at_unit) = (0, 0);
    let mut move_to = |byte: u32| {
        let byte = byte as usize;
        at_unit = if byte >= at_byte { at_unit + count(at_byte, byte) } else { at_unit - count(byte, at_byte) };
        at_byte = byte;
        at_unit
    };
    for span in spans {
        *span = Span { start: move_to(span.start), end: move_to(span.end) };
    }
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
