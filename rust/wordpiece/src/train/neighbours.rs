//! Merging a pair in all its words, and the changes this causes to the counts of neighbouring pairs.
//!
//! A merge of (a, b) between L and R, in a word with count n, subtracts n from the counts of (L, a) and (b, R) and adds
//! n to the counts of (L, ab) and (ab, R). One sum for each distinct L and one for each distinct R therefore describe
//! all changes. They are accumulated in lists indexed by symbol, so that pairs are looked up once for each neighbour
//! and not once for each merge.

use std::ops::Range;

use super::progress::Monitor;
use super::symbols::SymbolWords;
use crate::error::Result;

/// How many words ahead of the present one are prefetched.
const PREFETCH_DISTANCE: usize = 8;

/// The changes that merging one pair causes. Its memory is reused for the next pair.
#[derive(Debug, Default)]
pub(super) struct NeighbourChanges {
    left: SideChanges,
    right: SideChanges,
}

/// The neighbours on one side.
#[derive(Debug, Default)]
struct SideChanges {
    /// For each symbol, 1 plus its index in `sums`, or 0 if it is not a neighbour.
    index: Vec<u32>,
    sums: Vec<NeighbourSum>,
    /// The index of each neighbour in `sums` with the words in which it had a merge, once for each word, in the order of
    /// the words: a word of a hundred million characters can have as many merges.
    words: Vec<(u32, u32)>,
}

/// The merges next to one neighbour.
#[derive(Debug, Clone, Copy)]
pub(super) struct NeighbourSum {
    /// The neighbour.
    pub symbol: u32,
    /// The sum of the counts of the words, once for each merge.
    pub weight: u64,
    /// While merging: the number of words. In `drain`: where the next word of this neighbour is stored.
    end: usize,
    /// The word recorded last.
    last_word: u32,
}

impl SideChanges {
    /// Records a merge next to `symbol` in a word with count `weight`.
    #[inline]
    fn record(&mut self, symbol: u32, word: u32, weight: u64) {
        if self.index.len() <= symbol as usize {
            self.index.resize(symbol as usize + 1024, 0);
        }
        let index = &mut self.index[symbol as usize];
        if *index == 0 {
            self.sums.push(NeighbourSum { symbol, weight, end: 1, last_word: word });
            *index = self.sums.len() as u32;
            self.words.push((*index - 1, word));
            return;
        }
        let sum = &mut self.sums[*index as usize - 1];
        sum.weight += weight;
        if sum.last_word != word {
            sum.last_word = word;
            sum.end += 1;
            self.words.push((*index - 1, word));
        }
    }

    /// Appends the words of each neighbour to `occurrences`, calls `each` with every neighbour and the range of its
    /// words, and clears all changes. The words of a neighbour keep their order.
    fn drain(&mut self, occurrences: &mut Vec<u32>, mut each: impl FnMut(NeighbourSum, Range<usize>)) {
        let base = occurrences.len();
        let mut next = base;
        for sum in &mut self.sums {
            next += std::mem::replace(&mut sum.end, next);
        }
        occurrences.resize(next, 0);
        for &(index, word) in &self.words {
            let sum = &mut self.sums[index as usize];
            occurrences[sum.end] = word;
            sum.end += 1;
        }
        let mut start = base;
        for &sum in &self.sums {
            each(sum, start..sum.end);
            start = sum.end;
            self.index[sum.symbol as usize] = 0;
        }
        self.sums.clear();
        self.words.clear();
    }
}

impl NeighbourChanges {
    /// Merges a pair in one word; returns the number of merges.
    #[inline]
    fn merge_in_word(&mut self, words: &mut SymbolWords, word: u32, parts: (u32, u32), ab: u32) -> u64 {
        let n = words.count(word);
        words.merge_pair(word, parts, ab, |left, right| {
            if let Some(left) = left {
                self.left.record(left, word, n);
            }
            if let Some(right) = right {
                self.right.record(right, word, n);
            }
        })
    }

    /// Merges a pair in all these words and records the changes. Words that no longer have the pair are unchanged, those
    /// that are listed twice included.
    ///
    /// Returns the number of merges, each weighted with the count of its word.
    pub fn merge_in_words(
        &mut self,
        words: &mut SymbolWords,
        occurrences: &[u32],
        parts: (u32, u32),
        ab: u32,
        monitor: &mut Monitor<'_>,
    ) -> Result<u64> {
        let mut merged = 0;
        for (i, &word) in occurrences.iter().enumerate() {
            words.prefetch(occurrences.get(i + PREFETCH_DISTANCE));
            monitor.step_word(words.symbols(word).len())?;
            merged += self.merge_in_word(words, word, parts, ab) * words.count(word);
        }
        Ok(merged)
    }

    /// Calls `each` with every neighbour, the left ones first, and clears all changes.
    ///
    /// The arguments are whether it is a left neighbour, its sum, and the words in which it changed, as a range of what
    /// is appended to `occurrences`.
    pub fn drain(&mut self, occurrences: &mut Vec<u32>, mut each: impl FnMut(bool, NeighbourSum, Range<usize>)) {
        self.left.drain(occurrences, |sum, range| each(true, sum, range));
        self.right.drain(occurrences, |sum, range| each(false, sum, range));
    }
}
