//! Division of a normalized text into words: `pre_tokenizers` of `tokenizers`.

use super::config::{Behavior, PreTokenizer};
use super::normalize::Text;
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
        Some(PreTokenizer::Sequence(all)) => all
            .iter()
            .fold(vec![text], |words, one| words.into_iter().flat_map(|word| pre_tokenize(Some(one), word)).collect()),
    }
}
