//! Recognises UTF-16. Without a byte order mark, texts of many languages in UTF-16 are valid UTF-8 with NUL characters.

/// How many bytes at the start of a file decide.
pub(crate) const SAMPLE_BYTES: usize = 512;

/// A file without a byte order mark is UTF-16 if at least one in so many units of its sample is an ASCII character. In
/// Cyrillic and Greek texts, where others are spaces and punctuation, it is about one in six.
const UNITS_PER_ASCII: usize = 32;

/// Returns the position of the first byte by which a file is UTF-16 and not UTF-8; `None` if it is not UTF-16.
///
/// That is the byte order mark. Without it, NULs decide: there are two or more, and all are at even positions, or all at odd
/// ones, as the upper bytes of ASCII characters are.
pub(crate) fn position(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Some(0);
    }
    let sample = &bytes[..bytes.len().min(SAMPLE_BYTES)];
    let first = memchr::memchr(0, sample)?;
    let (mut same, mut other) = (0, 0);
    for at in memchr::memchr_iter(0, sample) {
        *(if at % 2 == first % 2 { &mut same } else { &mut other }) += 1;
    }
    (other == 0 && same >= 2 && same * UNITS_PER_ASCII >= sample.len() / 2).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_utf16_are_recognised_and_others_are_not() {
        let texts = ["hello world\n", "Привет, мир\nКак дела?\n", "Γειά σου\nκόσμε\n", "שלום עולם\nמה\n", "a\r\nb"];
        for text in texts {
            for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
                let encoded: Vec<u8> = text.encode_utf16().flat_map(bytes).collect();
                let found = position(&encoded).expect(text);
                assert_eq!(encoded[found], 0);
                let marked: Vec<u8> = format!("\u{feff}{text}").encode_utf16().flat_map(bytes).collect();
                assert_eq!(position(&marked), Some(0));
            }
            assert_eq!(position(text.as_bytes()), None);
        }
        for text in ["", "\0", "a\0", "one\0 text\n", "a\0b\0\0c", &format!("\0a\0{}", "long ".repeat(100))] {
            assert_eq!(position(text.as_bytes()), None, "{text:?}");
        }
    }
}
