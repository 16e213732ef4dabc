//! Words as sequences of symbols (token ids), and merging a pair of symbols in a word.

use super::counts::WordCounts;
use crate::error::{Error, Result, TrainingError};
use wordpiece_parallel::prefetch;

/// The numbers before the symbols of a word: its length in symbols, and its count as two halves, the lower one first.
const HEADER: usize = 3;

/// One less than the number of `u32`s in a cache line of 64 bytes.
const LINE: usize = 15;

/// All words in one list: for each its length in symbols, its count, and its symbols. A word shrinks in place.
///
/// A word is identified by its position in the list, so that its length, count and symbols are on one or two cache
/// lines. Positions have 32 bits, which limits all words together to 2³² symbols and headers.
#[derive(Debug, Default)]
pub(super) struct SymbolWords {
    list: Vec<u32>,
}

impl SymbolWords {
    /// Creates an empty list with capacity for these words, each segmented into characters at most.
    pub fn with_capacity_for(words: &WordCounts) -> SymbolWords {
        SymbolWords { list: Vec::with_capacity(words.text_len() + HEADER * words.len()) }
    }

    /// Appends a word that occurs `count` times.
    ///
    /// # Errors
    ///
    /// [`TrainingError::TooManySymbols`] if positions exceed 32 bits.
    pub fn push(&mut self, symbols: impl IntoIterator<Item = u32>, count: u64) -> Result<()> {
        self.push_if(count, |list| {
            list.extend(symbols);
            true
        })?;
        Ok(())
    }

    /// Appends a word that occurs `count` times, whose symbols `fill` appends to the list. If it returns false, nothing is
    /// appended. Returns what `fill` returned.
    ///
    /// # Errors
    ///
    /// As for [`push`](SymbolWords::push).
    pub fn push_if(&mut self, count: u64, fill: impl FnOnce(&mut Vec<u32>) -> bool) -> Result<bool> {
        let word = self.list.len();
        self.list.extend([0, count as u32, (count >> 32) as u32]);
        if !fill(&mut self.list) {
            self.list.truncate(word);
            return Ok(false);
        }
        if u32::try_from(self.list.len()).is_err() {
            return Err(Error::Training(TrainingError::TooManySymbols));
        }
        self.list[word] = (self.list.len() - word - HEADER) as u32;
        Ok(true)
    }

    /// Returns the positions of all words. Valid only until a word has shrunk: the gap after it is not marked.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let word = next;
            next += HEADER + *self.list.get(word)? as usize;
            Some(word as u32)
        })
    }

    /// Returns how often the word at this position occurs.
    #[inline]
    pub fn count(&self, word: u32) -> u64 {
        u64::from(self.list[word as usize + 1]) | u64::from(self.list[word as usize + 2]) << 32
    }

    /// Returns the symbols of the word at this position.
    #[inline]
    pub fn symbols(&self, word: u32) -> &[u32] {
        let start = word as usize + HEADER;
        &self.list[start..start + self.list[word as usize] as usize]
    }

    /// Prefetches a word that will be read soon.
    #[inline(always)]
    pub fn prefetch(&self, word: Option<&u32>) {
        if let Some(&word) = word {
            // A word often extends beyond the cache line it begins in, so the next one is requested too.
            let address = self.list.as_ptr().wrapping_add(word as usize);
            prefetch(address);
            prefetch(address.wrapping_add(LINE));
        }
    }

    /// Replaces each adjacent `a`, `b` in a word by `ab`, from left to right without overlap; returns how often.
    ///
    /// For each replacement, `on_merge` receives the left neighbour after earlier replacements in the word, and the
    /// right neighbour before any.
    #[inline]
    pub fn merge_pair(
        &mut self,
        word: u32,
        (a, b): (u32, u32),
        ab: u32,
        mut on_merge: impl FnMut(Option<u32>, Option<u32>),
    ) -> u64 {
        let start = word as usize + HEADER;
        let len = self.list[word as usize] as usize;
        let symbols = &mut self.list[start..start + len];
        let (mut from, mut to) = (0, 0);
        while from < len {
            if symbols[from] == a && from + 1 < len && symbols[from + 1] == b {
                let left = if to > 0 { Some(symbols[to - 1]) } else { None };
                on_merge(left, symbols.get(from + 2).copied());
                symbols[to] = ab;
                from += 2;
            } else {
                symbols[to] = symbols[from];
                from += 1;
            }
            to += 1;
        }
        self.list[word as usize] = to as u32;
        (len - to) as u64
    }
}
