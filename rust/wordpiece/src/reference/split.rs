//! Division of a normalized text into words: `pre_tokenizers` of `tokenizers`.

use super::config::{Behavior, PreTokenizer};
use super::normalize::{Aligned, Text};
use crate::unicode;

/// Splits a text into words at the characters for which `is_delimiter` is true. No word is empty.
fn split(text: Text, behavior: Behavior, is_delimiter: impl Fn(char) -> bool) -> Vec<Text> {
    let mut words: Vec<Text> = Vec::new();
    let mut previous = None;
    for a in text {
        let here = is_delimiter(a.c);
        let same_word = previous == Some(here) && !(here && matches!(behavior, Behavior::Isolated));
        previous = Some(here);
        if here && matches!(behavior, Behavior::Removed) {
            continue;
        }
        match words.last_mut().filter(|_| same_word) {
            Some(word) => word.push(a),
            None => words.push(vec![a]),
        }
    }
    words
}

/// Returns the length of the first match of GPT-2's pattern at the start of a text that is not empty:
/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.
fn gpt2_word(text: &[Aligned]) -> usize {
    let chars: Vec<char> = text.iter().map(|a| a.c).collect();
    let letter = |c: char| unicode::class(c).contains(unicode::CharClass::LETTER);
    let number = |c: char| unicode::class(c).contains(unicode::CharClass::NUMBER);
    let other = |c: char| !letter(c) && !number(c) && !unicode::is_whitespace(c);
    for contraction in ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"] {
        if chars.starts_with(&contraction.chars().collect::<Vec<char>>()) {
            return contraction.len();
        }
    }
    let classes: [&dyn Fn(char) -> bool; 3] = [&letter, &number, &other];
    for class in classes {
        let space = usize::from(chars[0] == ' ');
        let n = chars[space..].iter().take_while(|&&c| class(c)).count();
        if n > 0 {
            return space + n;
        }
    }
    let blank = chars.iter().take_while(|&&c| unicode::is_whitespace(c)).count();
    if blank < chars.len() && blank > 1 { blank - 1 } else { blank }
}

/// Returns the character of a byte: `bytes_to_unicode` of GPT-2.
fn byte_char(byte: u8) -> char {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let before = (0..byte).filter(|&byte| !printable(byte)).count() as u32;
    let code = if printable(byte) { byte.into() } else { 256 + before };
    char::from_u32(code).expect("below the surrogates")
}

/// Splits a text as `ByteLevel` does. All bytes of a character derive from what it derives from.
fn byte_level(mut text: Text, add_prefix_space: bool, use_regex: bool) -> Vec<Text> {
    if add_prefix_space && text.first().is_some_and(|a| a.c != ' ') {
        text.insert(0, Aligned { c: ' ', ..text[0] });
    }
    let mut words = Vec::new();
    let mut rest = text.as_slice();
    while !rest.is_empty() {
        let (word, others) = rest.split_at(if use_regex { gpt2_word(rest) } else { rest.len() });
        let bytes = |a: &Aligned| {
            let Aligned { c, from } = *a;
            c.to_string().bytes().map(move |byte| Aligned { c: byte_char(byte), from }).collect::<Text>()
        };
        words.push(word.iter().flat_map(bytes).collect());
        rest = others;
    }
    words
}

/// Splits a normalized text into words. Only the single word of an absent pre-tokenizer can be empty.
pub(super) fn pre_tokenize(pre_tokenizer: Option<&PreTokenizer>, text: Text) -> Vec<Text> {
    match pre_tokenizer {
        None => vec![text],
        Some(PreTokenizer::Bert) => split(text, Behavior::Removed, unicode::is_whitespace)
            .into_iter()
            .flat_map(|word| split(word, Behavior::Isolated, unicode::is_punctuation))
            .collect(),
        Some(PreTokenizer::Whitespace) => {
            split(text, Behavior::Removed, |c| unicode::is_whitespace(c) && !unicode::is_word(c))
                .into_iter()
                .flat_map(|word| split(word, Behavior::Contiguous, unicode::is_word))
                .collect()
        }
        Some(PreTokenizer::WhitespaceSplit) => split(text, Behavior::Removed, unicode::is_whitespace),
        Some(PreTokenizer::Punctuation(behavior)) => split(text, *behavior, unicode::is_punctuation),
        Some(PreTokenizer::Digits { individual }) => {
            let behavior = if *individual { Behavior::Isolated } else { Behavior::Contiguous };
            split(text, behavior, unicode::is_numeric)
        }
        Some(PreTokenizer::ByteLevel { add_prefix_space, use_regex }) => {
            byte_level(text, *add_prefix_space, *use_regex)
        }
        Some(PreTokenizer::Sequence(all)) => all
            .iter()
            .fold(vec![text], |words, one| words.into_iter().flat_map(|word| pre_tokenize(Some(one), word)).collect()),
    }
}
