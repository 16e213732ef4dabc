//! One row with everything that is known about it, and queries that map between tokens, words and characters.
//!
//! It has the fields and methods of `tokenizers.Encoding`. Queries by word or character search linearly within their
//! text.

use std::ops::Range;

use super::pad::Padding;
use super::truncate::Side;

/// One encoded input: its tokens, where each comes from, and the rows of the tokens that truncation dropped.
///
/// All lists have one entry per token, except `overflowing` and `sequence_ranges`. Offsets are in the requested
/// [`OffsetUnit`](crate::OffsetUnit) and refer to the text that a token comes from, or to its word if the text was
/// given as words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Encoding {
    /// The ids of the tokens.
    pub ids: Vec<u32>,
    /// The segment of each token; 0 and 1 for the first and second text in BERT.
    pub type_ids: Vec<u32>,
    /// The tokens as text. For an added token, the slice it matched, including white space that it absorbed.
    pub tokens: Vec<String>,
    /// The word that each token belongs to, counted from 0 within each text; `None` for special tokens and padding.
    pub word_ids: Vec<Option<u32>>,
    /// The start and end of each token in its text, end exclusive; `(0, 0)` for special tokens and padding.
    pub offsets: Vec<(u32, u32)>,
    /// 1 for special tokens and padding.
    pub special_tokens_mask: Vec<u8>,
    /// 0 for padding, 1 for all other tokens.
    pub attention_mask: Vec<u8>,
    /// The rows of the other windows, if the input was truncated; nested for pairs, as in the reference.
    pub overflowing: Vec<Encoding>,
    /// The tokens that come from each text (0 or 1). Empty if that is unknown; queries then assume the first text.
    pub sequence_ranges: Vec<(u32, Range<usize>)>,
    /// Whether truncation dropped any tokens.
    pub truncated: bool,
    /// The number of tokens before truncation and padding, including special tokens.
    pub n_tokens: usize,
}

impl Encoding {
    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns the number of texts in the row.
    pub fn n_sequences(&self) -> usize {
        self.sequence_ranges.len().max(1)
    }

    /// Returns the text that each token comes from; `None` for special tokens and padding.
    pub fn sequence_ids(&self) -> Vec<Option<u32>> {
        let mut ids = vec![None; self.len()];
        for sequence in 0..self.n_sequences() as u32 {
            ids[self.sequence_range(sequence)].fill(Some(sequence));
        }
        ids
    }

    /// Returns the tokens of one text, or all tokens if its range is unknown.
    pub fn sequence_range(&self, sequence: u32) -> Range<usize> {
        let known = self.sequence_ranges.iter().find(|(id, _)| *id == sequence);
        known.map_or(0..self.len(), |(_, range)| range.clone())
    }

    /// Returns the text that a token comes from.
    pub fn token_to_sequence(&self, token: usize) -> Option<u32> {
        if token >= self.len() {
            return None;
        }
        if self.sequence_ranges.is_empty() {
            return Some(0);
        }
        self.sequence_ranges.iter().find(|(_, range)| range.contains(&token)).map(|(id, _)| *id)
    }

    /// Returns the tokens of a word of a text.
    pub fn word_to_tokens(&self, word: u32, sequence: u32) -> Option<Range<usize>> {
        let range = self.sequence_range(sequence);
        let words = &self.word_ids[range.clone()];
        // The words of a text ascend. Where ranges are unknown, a second text begins again at a smaller word; as in the
        // reference, the search ends at the first word after the wanted one.
        let end = words.iter().position(|&other| other > Some(word)).unwrap_or(words.len());
        let first = words[..end].iter().position(|&other| other == Some(word))?;
        let last = words[..end].iter().rposition(|&other| other == Some(word))?;
        Some(range.start + first..range.start + last + 1)
    }

    /// Returns the offsets of a word of a text.
    pub fn word_to_chars(&self, word: u32, sequence: u32) -> Option<(u32, u32)> {
        let tokens = self.word_to_tokens(word, sequence)?;
        Some((self.offsets[tokens.start].0, self.offsets[tokens.end - 1].1))
    }

    /// Returns the text that a token comes from and its offsets there.
    pub fn token_to_chars(&self, token: usize) -> Option<(u32, (u32, u32))> {
        Some((self.token_to_sequence(token)?, *self.offsets.get(token)?))
    }

    /// Returns the text and the word that a token belongs to.
    pub fn token_to_word(&self, token: usize) -> Option<(u32, u32)> {
        Some((self.token_to_sequence(token)?, (*self.word_ids.get(token)?)?))
    }

    /// Returns the first token that covers an offset of a text.
    pub fn char_to_token(&self, position: u32, sequence: u32) -> Option<usize> {
        let mut range = self.sequence_range(sequence);
        range.find(|&i| self.offsets[i].0 <= position && position < self.offsets[i].1)
    }

    /// Returns the word that covers an offset of a text.
    pub fn char_to_word(&self, position: u32, sequence: u32) -> Option<u32> {
        Some(self.token_to_word(self.char_to_token(position, sequence)?)?.1)
    }

    /// Returns the number of rows: this one, and those that overflow from it.
    pub(crate) fn rows(&self) -> usize {
        1 + self.overflowing.iter().map(Encoding::rows).sum::<usize>()
    }

    /// Pads the row, and the rows that overflow from it, to `target` tokens. Longer rows are not changed.
    pub fn pad(&mut self, target: usize, padding: &Padding) {
        for row in &mut self.overflowing {
            row.pad(target, padding);
        }
        let n = target.saturating_sub(self.len());
        if n == 0 {
            return;
        }
        let at = if padding.side == Side::Left { 0 } else { self.len() };
        fill(&mut self.ids, at, n, padding.id);
        fill(&mut self.type_ids, at, n, padding.type_id);
        fill(&mut self.tokens, at, n, padding.token.clone());
        fill(&mut self.word_ids, at, n, None);
        fill(&mut self.offsets, at, n, (0, 0));
        fill(&mut self.special_tokens_mask, at, n, 1);
        fill(&mut self.attention_mask, at, n, 0);
        if padding.side == Side::Left {
            for (_, range) in &mut self.sequence_ranges {
                *range = range.start + n..range.end + n;
            }
        }
    }
}

/// Records the tokens of a text. If a row contains a text twice, the last occurrence counts, as in the reference.
pub(crate) fn set_sequence(ranges: &mut Vec<(u32, Range<usize>)>, sequence: u32, range: Range<usize>) {
    ranges.retain(|(id, _)| *id != sequence);
    ranges.push((sequence, range));
}

/// Inserts `n` copies of `value` at index `at`.
fn fill<T: Clone>(list: &mut Vec<T>, at: usize, n: usize, value: T) {
    list.splice(at..at, std::iter::repeat_n(value, n));
}
