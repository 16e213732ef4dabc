//! Word ids and spans of pieces, computed for many words at once after their ids are known.
//!
//! The lookup returns ids and the number of pieces of each word. From these numbers follow the word ids; with the
//! lengths of tokens, so do the spans: the pieces of a word cover its normalized bytes without gaps, and the buffer
//! knows which bytes of the original each normalized byte comes from.

use super::buffer::{NormalizedBuffer, WordBounds};
use crate::offsets::Span;

/// The lengths of all tokens: how far each piece of a word reaches.
#[derive(Debug, Clone)]
pub(super) struct TokenLengths {
    /// Length of each token in bytes, by id; 0 for an id without a token.
    by_id: Vec<u32>,
    /// Length of the continuing-subword prefix in bytes, which the second and further tokens of a word begin with.
    prefix: u32,
}

impl TokenLengths {
    /// Collects the lengths of tokens with ids up to `max_id`.
    pub fn new<'a>(tokens: impl Iterator<Item = (&'a str, u32)>, max_id: u32, prefix: &str) -> TokenLengths {
        let mut by_id = vec![0; max_id as usize + 1];
        for (token, id) in tokens {
            by_id[id as usize] = token.len() as u32;
        }
        TokenLengths { by_id, prefix: prefix.len() as u32 }
    }

    /// Appends the span of each piece: its word's if it is the only one, else as long as its token.
    ///
    /// `counts` is the number of pieces of each word, and `ids` are the ids of all of them. A word without pieces in the
    /// vocabulary has one id, the unknown token's, and one span.
    ///
    /// # Panics
    ///
    /// If the buffer is not aligned, or `ids` are not as many as the counts say.
    ///
    /// # Safety
    ///
    /// `words` are words of the buffer or parts of them: not empty, and inside of its text.
    pub unsafe fn push_spans(
        &self,
        buffer: &NormalizedBuffer,
        words: &WordBounds,
        counts: &[u32],
        ids: &[u32],
        spans: &mut Vec<Span>,
    ) {
        let n: usize = counts.iter().map(|&count| count as usize).sum();
        assert!(buffer.aligned && n == ids.len());
        let mut position = spans.len();
        // Resizing once and storing takes a fraction of the time of appending one by one.
        spans.resize(position + ids.len(), Span { start: 0, end: 0 });
        let mut piece = 0;
        for ((&start, &end), &count) in words.starts.iter().zip(&words.ends).zip(counts) {
            if count == 1 {
                // SAFETY: the buffer is aligned (checked above), and by the contract words are not empty and lie in its text.
                // `position` is the old length plus the counts before this word. The sum of all counts, this 1 included, is
                // `ids.len()` (checked above): `position` is less than the new length.
                unsafe {
                    *spans.get_unchecked_mut(position) = buffer.span_unchecked(start as usize, end as usize);
                }
            } else {
                let mut at = start as usize;
                for i in 0..count as usize {
                    let prefix = if i == 0 { 0 } else { self.prefix };
                    let next = at + (self.by_id[ids[piece + i] as usize] - prefix) as usize;
                    spans[position + i] = buffer.span(at, next);
                    at = next;
                }
            }
            piece += count as usize;
            position += count as usize;
        }
        debug_assert!(piece <= ids.len());
    }
}

/// Appends the word id of each piece: `given` for all, or the number of the word, the first of which is `first`.
pub(super) fn push_word_ids(given: Option<u32>, first: u32, counts: &[u32], word_ids: &mut Vec<u32>) {
    let n: u32 = counts.iter().sum();
    let at = word_ids.len();
    let end = at + n as usize;
    word_ids.resize(end + WRITTEN_AT_ONCE, 0);
    write_word_ids((first..).map(|word| given.unwrap_or(word)), counts, word_ids, at);
    word_ids.truncate(end);
}

/// Replaces `word_ids` by the word ids of the pieces of several texts, each counted from 0. `text_ends` holds the
/// number of words up to the end of each text.
pub(super) fn number_words(text_ends: &[usize], counts: &[u32], word_ids: &mut Vec<u32>) {
    let n: u32 = counts.iter().sum();
    word_ids.resize(n as usize + WRITTEN_AT_ONCE, 0);
    let (mut word, mut at) = (0, 0);
    for &end in text_ends {
        at = write_word_ids(0.., &counts[word..end], word_ids, at);
        word = end;
    }
    word_ids.truncate(n as usize);
}

/// Number of word ids that are written at once, needed or not: few words have more pieces.
const WRITTEN_AT_ONCE: usize = 4;

/// Writes the number of each word once for each of its pieces, from position `at` on; returns the position after them.
#[inline]
fn write_word_ids(numbers: impl Iterator<Item = u32>, counts: &[u32], word_ids: &mut [u32], mut at: usize) -> usize {
    for (number, &count) in numbers.zip(counts) {
        let count = count as usize;
        match word_ids.get_mut(at..at + WRITTEN_AT_ONCE) {
            Some(all) if count <= WRITTEN_AT_ONCE => all.fill(number),
            _ => word_ids[at..at + count].fill(number),
        }
        at += count;
    }
    at
}
