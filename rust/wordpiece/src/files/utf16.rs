//! Recognises UTF-16. Without a byte order mark, texts of many languages in UTF-16 are valid UTF-8 with NUL characters.

/// The byte order mark of UTF-8.
pub(crate) const UTF8_MARK: &[u8] = "\u{feff}".as_bytes();

/// How many bytes at the start of a file decide.
pub(crate) const SAMPLE_BYTES: usize = 512;

/// A file without a byte order mark is UTF-16 if at least one in so many units of its sample is an ASCII character. In
/// Cyrillic and Greek texts, where others are spaces and punctuation, it is about one in six.
const UNITS_PER_ASCII: usize = 32;

/// A file whose characters are nearly all of one alphabet (Cyrillic, Arabic) has a control character in the upper bytes of
/// so many units at least, or of all units if there are fewer.
const CONTROLS: usize = 16;

/// Returns the position of the first byte by which a file is UTF-16 and not UTF-8; `None` if it is not UTF-16.
///
/// That is the byte order mark; a file with UTF-8's mark is UTF-8. Without a mark, NULs decide: there are two or more, and all
/// are at even positions, or all at odd ones, as the upper bytes of ASCII characters are. With fewer of them, control
/// characters do, which the upper bytes of other alphabets are.
pub(crate) fn position(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Some(0);
    }
    if bytes.starts_with(UTF8_MARK) {
        return None;
    }
    let sample = &bytes[..bytes.len().min(SAMPLE_BYTES)];
    let first = memchr::memchr(0, sample)?;
    let (mut same, mut other) = (0, 0);
    for at in memchr::memchr_iter(0, sample) {
        *(if at % 2 == first % 2 { &mut same } else { &mut other }) += 1;
    }
    if other == 0 && same >= 2 && same * UNITS_PER_ASCII >= sample.len() / 2 {
        return Some(first);
    }
    let units = sample.as_chunks::<2>().0;
    let is_control = |byte: u8| matches!(byte, 0..=8 | 14..=31);
    let [low, high] = [0, 1].map(|side| units.iter().filter(|unit| is_control(unit[side])).count());
    let are_upper = |controls: usize, others: usize| {
        controls >= units.len().clamp(2, CONTROLS) && controls * 2 > units.len() && others * 8 <= controls
    };
    let side = usize::from(are_upper(high, low));
    (side == 1 || are_upper(low, high))
        .then(|| units.iter().position(|unit| is_control(unit[side])).map(|unit| 2 * unit + side))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_utf16_are_recognised_and_others_are_not() {
        let texts = [
            "кошка\n",
            "كلمة\n",
            &format!("кошка\n{}", "кошка".repeat(99)),
            "hello world\n",
            "Привет, мир\nКак дела?\n",
            "Γειά σου\nκόσμε\n",
            "שלום עולם\nמה\n",
            "a\r\nb",
        ];
        for text in texts {
            for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
                let encoded: Vec<u8> = text.encode_utf16().flat_map(bytes).collect();
                let found = position(&encoded).expect(text);
                assert!(encoded[found] < 32, "{text}");
                let marked: Vec<u8> = format!("\u{feff}{text}").encode_utf16().flat_map(bytes).collect();
                assert_eq!(position(&marked), Some(0));
            }
            assert_eq!(position(text.as_bytes()), None);
        }
        for text in [
            "",
            "\0",
            "a\0",
            "one\0 text\n",
            "a\0b\0\0c",
            "a\0\u{1}b\u{1}c\u{1}",
            &format!("\0a\0{}", "long ".repeat(100)),
        ] {
            assert_eq!(position(text.as_bytes()), None, "{text:?}");
        }
    }
}
