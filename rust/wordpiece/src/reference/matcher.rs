//! Division of a word into tokens, longest match first: the model `WordPiece` of `tokenizers`.

use std::collections::HashMap;

use super::config::Config;
use super::normalize::{Aligned, span, string};

/// A token of a text, before it has a word number and a segment.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub id: u32,
    /// The text of the token; for an added token, the text that it covers.
    pub text: String,
    /// The characters of the original that it covers, end exclusive.
    pub offsets: (usize, usize),
}

/// Returns the tokens of a word: the longest token that fits, repeatedly. If at any point none fits, or the word has too
/// many characters, the word is one unknown token.
pub(super) fn pieces(config: &Config, vocab: &HashMap<String, u32>, word: &[Aligned]) -> Vec<Token> {
    let unknown = || {
        let unk = &config.unk_token;
        vec![Token { id: vocab[unk], text: unk.clone(), offsets: span(word) }]
    };
    if word.len() > config.max_input_chars_per_word {
        return unknown();
    }
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < word.len() {
        let prefix = if start > 0 { config.continuing_subword_prefix.as_str() } else { "" };
        let longest = (start + 1..=word.len()).rev().find_map(|end| {
            let text = format!("{prefix}{}", string(&word[start..end]));
            let id = *vocab.get(&text)?;
            Some((end, Token { id, text, offsets: span(&word[start..end]) }))
        });
        let Some((end, token)) = longest else { return unknown() };
        pieces.push(token);
        start = end;
    }
    pieces
}
