//! One row with everything that is known about it.

use std::ops::Range;

/// One row: its tokens, where they come from, and the rows that truncation cut off.
///
/// All lists have one entry a token. Offsets are in the unit that was asked for and refer to the text, or to the word of
/// a text given as words, that the token comes from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Encoding {
    /// Ids.
    pub ids: Vec<u32>,
    /// Segment ids.
    pub type_ids: Vec<u32>,
    /// The tokens as text. For an added token the matched slice, white space that it took included.
    pub tokens: Vec<String>,
    /// The word each token belongs to, counted from 0 in each text; `None` for special tokens and padding.
    pub word_ids: Vec<Option<u32>>,
    /// Start and end of each token in its text.
    pub offsets: Vec<(u32, u32)>,
    /// 1 for special tokens and padding.
    pub special_tokens_mask: Vec<u8>,
    /// 0 for padding.
    pub attention_mask: Vec<u8>,
    /// The other windows, as rows of their own.
    pub overflowing: Vec<Encoding>,
    /// Which tokens come from which text; empty where that is not known, which reads as: all from the first.
    pub sequence_ranges: Vec<(u32, Range<usize>)>,
    /// Whether truncation took anything from this row.
    pub truncated: bool,
    /// The number of tokens before truncation and padding, special tokens included.
    pub n_tokens: usize,
}

impl Encoding {
    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The number of texts the row is made of.
    pub fn n_sequences(&self) -> usize {
        self.sequence_ranges.len().max(1)
    }

    /// The text each token comes from; `None` for special tokens and padding.
    pub fn sequence_ids(&self) -> Vec<Option<u32>> {
        let mut ids = vec![None; self.len()];
        for sequence in 0..self.n_sequences() as u32 {
            ids[self.sequence_range(sequence)].fill(Some(sequence));
        }
        ids
    }

    /// The tokens of one text.
    pub fn sequence_range(&self, sequence: u32) -> Range<usize> {
        let known = self.sequence_ranges.iter().find(|(id, _)| *id == sequence);
        known.map_or(0..self.len(), |(_, range)| range.clone())
    }

    /// The text that a token comes from.
    pub fn token_to_sequence(&self, token: usize) -> Option<u32> {
        if token >= self.len() {
            return None;
        }
        if self.sequence_ranges.is_empty() {
            return Some(0);
        }
        self.sequence_ranges.iter().find(|(_, range)| range.contains(&token)).map(|(id, _)| *id)
    }

    /// The tokens of a word.
    pub fn word_to_tokens(&self, word: u32, sequence: u32) -> Option<Range<usize>> {
        let range = self.sequence_range(sequence);
        let is_word = |&i: &usize| self.word_ids[i] == Some(word);
        let first = range.clone().find(is_word)?;
        let last = range.rev().find(is_word)?;
        Some(first..last + 1)
    }

    /// The characters of a word.
    pub fn word_to_chars(&self, word: u32, sequence: u32) -> Option<(u32, u32)> {
        let tokens = self.word_to_tokens(word, sequence)?;
        Some((self.offsets[tokens.start].0, self.offsets[tokens.end - 1].1))
    }

    /// The text and the characters that a token comes from.
    pub fn token_to_chars(&self, token: usize) -> Option<(u32, (u32, u32))> {
        Some((self.token_to_sequence(token)?, *self.offsets.get(token)?))
    }

    /// The text and the word that a token belongs to.
    pub fn token_to_word(&self, token: usize) -> Option<(u32, u32)> {
        Some((self.token_to_sequence(token)?, (*self.word_ids.get(token)?)?))
    }

    /// The token that covers a character.
    pub fn char_to_token(&self, position: u32, sequence: u32) -> Option<usize> {
        let mut range = self.sequence_range(sequence);
        range.find(|&i| self.offsets[i].0 <= position && position < self.offsets[i].1)
    }

    /// The word that covers a character.
    pub fn char_to_word(&self, position: u32, sequence: u32) -> Option<u32> {
        Some(self.token_to_word(self.char_to_token(position, sequence)?)?.1)
    }
}
