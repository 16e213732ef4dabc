//! Byte-level words: text in which each byte is a visible character, as in GPT-2 (Radford et al., 2019).
//!
//! The pre-tokenizer [`ByteLevel`] splits a text with GPT-2's pattern and replaces each byte of its UTF-8 form by a
//! character; the decoder of the same name turns the characters back into bytes. Both give the same results as in
//! `tokenizers` 0.23.3. The pattern is a loop over character classes here, because it is constant: no expression is
//! compiled or backtracks.
//!
//! Cost: one pass over the text.
//!
//! For example, `"it's 1 é"` is split into `it`, `'s`, ` 1` and ` é`, which become `it`, `'s`, `Ġ1` and `ĠÃ©`.

use std::ops::Range;

use crate::unicode::{CharClass, class};

/// The options of `ByteLevel`, which is a pre-tokenizer and a decoder. The decoder ignores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteLevel {
    /// Whether to insert a space before a piece of text that does not begin with one.
    pub add_prefix_space: bool,
    /// An option of the post-processor of the same name. It is kept, and has no effect here.
    pub trim_offsets: bool,
    /// Whether to split the text with GPT-2's pattern.
    pub use_regex: bool,
}

/// Bytes without a visible character of their own get the characters from here on, in order.
const FIRST_SUBSTITUTE: u32 = 0x100;

/// Returns whether a byte is represented by the character with its number.
const fn is_visible(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// Number of bytes that are not visible.
const SUBSTITUTES: usize = 68;

/// The bytes that are not visible: the byte of character `FIRST_SUBSTITUTE`, of the one after it, and so on.
const INVISIBLE: [u8; SUBSTITUTES] = {
    let mut bytes = [0; SUBSTITUTES];
    let (mut byte, mut n) = (0, 0);
    while byte < 256 {
        if !is_visible(byte as u8) {
            bytes[n] = byte as u8;
            n += 1;
        }
        byte += 1;
    }
    assert!(n == SUBSTITUTES);
    bytes
};

/// The character of each byte.
const CHARS: [char; 256] = {
    let mut chars = ['\0'; 256];
    let mut byte = 0;
    while byte < 256 {
        chars[byte] = byte as u8 as char;
        byte += 1;
    }
    let mut n = 0;
    while n < SUBSTITUTES {
        match char::from_u32(FIRST_SUBSTITUTE + n as u32) {
            Some(c) => chars[INVISIBLE[n] as usize] = c,
            None => panic!("a substitute is a character"),
        }
        n += 1;
    }
    chars
};

/// Returns the character of a byte.
pub(crate) fn char_of(byte: u8) -> char {
    CHARS[usize::from(byte)]
}

/// Returns the byte of a character; `None` if no byte has it.
fn byte_of(c: char) -> Option<u8> {
    match u8::try_from(c) {
        Ok(byte) => is_visible(byte).then_some(byte),
        Err(_) => INVISIBLE.get((c as u32 - FIRST_SUBSTITUTE) as usize).copied(),
    }
}

/// Returns the text of byte-level tokens. A token with a character that no byte has stands for itself. Bytes that are
/// not UTF-8 become U+FFFD.
pub(crate) fn decode(tokens: &[String]) -> String {
    let mut bytes = Vec::with_capacity(tokens.iter().map(String::len).sum());
    for token in tokens {
        let start = bytes.len();
        for c in token.chars() {
            match byte_of(c) {
                Some(byte) => bytes.push(byte),
                None => {
                    bytes.truncate(start);
                    bytes.extend_from_slice(token.as_bytes());
                    break;
                }
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The classes of characters that GPT-2's pattern distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Letter,
    Number,
    Other,
}

impl Kind {
    fn of(c: char) -> Kind {
        let class = class(c);
        if class.contains(CharClass::LETTER) {
            Kind::Letter
        } else if class.contains(CharClass::NUMBER) {
            Kind::Number
        } else if class.contains(CharClass::WHITESPACE) {
            Kind::Space
        } else {
            Kind::Other
        }
    }
}

/// The endings of English words that are words by themselves, without their apostrophe. The pattern tries them in this
/// order; none is the beginning of another.
const CONTRACTIONS: [&str; 7] = ["s", "t", "re", "ve", "m", "ll", "d"];

/// Appends the matches of GPT-2's pattern, which cover all of `text`:
/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.
pub(crate) fn split(text: &str, words: &mut Vec<Range<usize>>) {
    let mut start = 0;
    while let Some(length) = first_word(&text[start..]) {
        words.push(start..start + length);
        start += length;
    }
}

/// Returns the length of the match at the start of a text; `None` if the text is empty.
fn first_word(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    if first == '\'' {
        let rest = &text[1..];
        if let Some(ending) = CONTRACTIONS.iter().find(|ending| rest.starts_with(**ending)) {
            return Some(1 + ending.len());
        }
    }
    if Kind::of(first) != Kind::Space {
        return Some(run(text));
    }
    let rest = &text[first.len_utf8()..];
    match rest.chars().next().map(Kind::of) {
        // A space belongs to the word after it; other white space is a word.
        Some(kind) if kind != Kind::Space => Some(if first == ' ' { 1 + run(rest) } else { first.len_utf8() }),
        // Of a run of white space, all but the last character, which may be the space of a word.
        _ => {
            let n = run(text);
            let last = text[..n].chars().next_back().map_or(0, char::len_utf8);
            Some(if n == text.len() { n } else { n - last })
        }
    }
}

/// Returns the length of the longest prefix of characters of one kind.
fn run(text: &str) -> usize {
    let mut kinds = text.char_indices().map(|(at, c)| (at, Kind::of(c)));
    let Some((_, first)) = kinds.next() else { return 0 };
    kinds.find(|&(_, kind)| kind != first).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;
    use proptest::prelude::*;

    /// The pattern itself, as the reference has it.
    const PATTERN: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

    #[test]
    fn every_byte_has_a_character_of_its_own() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert!(bytes.iter().all(|&byte| byte_of(char_of(byte)) == Some(byte)));
        let known: Vec<char> = (0..=0x10_FFFF).filter_map(char::from_u32).filter(|&c| byte_of(c).is_some()).collect();
        assert_eq!(known.len(), 256);
        assert_eq!([b' ', b'\n', b'a', 0xAD, 0xFF].map(char_of), ['Ġ', 'Ċ', 'a', '\u{143}', 'ÿ']);
    }

    #[test]
    fn a_token_that_is_not_byte_level_stands_for_itself() {
        let tokens = ["Ġé", "Ã©", "[中]", "Ã"].map(str::to_owned);
        assert_eq!(decode(&tokens), " \u{FFFD}é[中]\u{FFFD}");
    }

    proptest! {
        /// Characters that Oniguruma's version of Unicode classifies alike.
        #[test]
        fn the_loop_equals_the_pattern(
            text in prop::collection::vec(
                prop::sample::select("'strevmld aZé1²½٣ \u{3000}\t\n\u{a0}.-!中\u{301}😀\u{200d}Ⅷ".chars().collect::<Vec<_>>()),
                0..40,
            ).prop_map(String::from_iter),
        ) {
            let (mut words, mut matches) = (Vec::new(), Vec::new());
            split(&text, &mut words);
            Pattern::regex(PATTERN).unwrap().find_all(&text, &mut matches).unwrap();
            let matches: Vec<_> = matches.into_iter().map(|(start, end)| start..end).collect();
            prop_assert_eq!(words, matches);
        }
    }
}
