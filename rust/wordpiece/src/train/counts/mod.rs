//! Words and how often each occurs: what all learners learn from.
//!
//! [`WordCounts`] is the multiset; [`Counter`] fills one from texts, over threads, with memory that grows with the number
//! of distinct words and not with the text. `blocks` brings the text in pieces, `table` is what counts.

mod blocks;
mod counter;
mod table;

pub use blocks::{Block, Blocks, Files};
pub use counter::{BadBytes, CountOptions, Counted, count};

use crate::error::{Error, Result, TrainingError};

/// A multiset of words: distinct, not empty, each with a count above 0, in the order of their bytes (which is that of
/// their code points).
///
/// Nothing about the order in which words were met is left, so whatever is learned from one cannot depend on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WordCounts {
    /// All words, one after the other.
    text: String,
    /// Where each ends.
    ends: Vec<usize>,
    counts: Vec<u64>,
}

impl WordCounts {
    /// The multiset with these counts. The empty word and words with count 0 are left out.
    ///
    /// # Errors
    ///
    /// A word stands twice.
    pub fn new<'a>(words: impl IntoIterator<Item = (&'a str, u64)>) -> Result<WordCounts> {
        let mut words: Vec<(&str, u64)> = words.into_iter().filter(|&(word, n)| n > 0 && !word.is_empty()).collect();
        words.sort_unstable_by(|a, b| a.0.cmp(b.0));
        if let Some(pair) = words.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::Training(TrainingError::DuplicateWord { word: pair[0].0.to_owned() }));
        }
        let bytes = words.iter().map(|(word, _)| word.len()).sum();
        let mut counts = WordCounts::with_room(words.len(), bytes);
        words.into_iter().for_each(|(word, n)| counts.push(word, n));
        Ok(counts)
    }

    fn with_room(words: usize, bytes: usize) -> WordCounts {
        WordCounts {
            text: String::with_capacity(bytes),
            ends: Vec::with_capacity(words),
            counts: Vec::with_capacity(words),
        }
    }

    /// Appends a word that comes after all others.
    fn push(&mut self, word: &str, count: u64) {
        self.text.push_str(word);
        self.ends.push(self.text.len());
        self.counts.push(count);
    }

    /// The number of distinct words.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// The bytes of all distinct words together.
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The sum of all counts.
    pub fn total(&self) -> u128 {
        self.counts.iter().map(|&n| u128::from(n)).sum()
    }

    /// The words with their counts, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u64)> {
        (0..self.len()).map(|i| (self.word(i), self.counts[i]))
    }

    /// The `i`th word.
    pub fn word(&self, i: usize) -> &str {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.text[start..self.ends[i]]
    }

    /// The count of a word; 0 where it is not in.
    pub fn get(&self, word: &str) -> u64 {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.word(middle).cmp(word) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.counts[middle],
            }
        }
        0
    }

    /// The counts, in the order of the words.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The numbers of the words, by count descending, then word ascending: the order of files.
    pub fn ranked(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(self.counts[i]));
        order
    }

    /// Both together.
    ///
    /// # Errors
    ///
    /// A sum passes 64 bits.
    pub fn merged(&self, other: &WordCounts) -> Result<WordCounts> {
        let mut merged = WordCounts::with_room(self.len().max(other.len()), self.text.len().max(other.text.len()));
        let (mut i, mut j) = (0, 0);
        while i < self.len() && j < other.len() {
            let (a, b) = (self.word(i), other.word(j));
            match a.cmp(b) {
                std::cmp::Ordering::Less => {
                    merged.push(a, self.counts[i]);
                    i += 1;
                }
                std::cmp::Ordering::Greater => {
                    merged.push(b, other.counts[j]);
                    j += 1;
                }
                std::cmp::Ordering::Equal => {
                    let sum = added(a, self.counts[i], other.counts[j])?;
                    merged.push(a, sum);
                    (i, j) = (i + 1, j + 1);
                }
            }
        }
        (i..self.len()).for_each(|i| merged.push(self.word(i), self.counts[i]));
        (j..other.len()).for_each(|j| merged.push(other.word(j), other.counts[j]));
        Ok(merged)
    }

    /// Without the words of more than `most` characters; how many they were, and how often they occurred.
    pub fn without_longer(&self, most: usize) -> (WordCounts, u64, u128) {
        let mut kept = WordCounts::with_room(self.len(), self.text.len());
        let (mut words, mut occurrences) = (0, 0);
        for (word, n) in self.iter() {
            if word.len() > most && word.chars().count() > most {
                words += 1;
                occurrences += u128::from(n);
            } else {
                kept.push(word, n);
            }
        }
        (kept, words, occurrences)
    }
}

fn added(word: &str, a: u64, b: u64) -> Result<u64> {
    a.checked_add(b)
        .ok_or_else(|| Error::Training(TrainingError::CountsTooLarge { word: word.to_owned(), count: a.max(b) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn words_are_sorted_and_nothing_is_kept_that_does_not_occur() {
        let counts = WordCounts::new([("b", 2), ("", 7), ("é", 1), ("a", 0), ("ab", u64::MAX)]).unwrap();
        assert_eq!(counts.iter().collect::<Vec<_>>(), [("ab", u64::MAX), ("b", 2), ("é", 1)]);
        assert_eq!((counts.get("b"), counts.get("a"), counts.get("zz")), (2, 0, 0));
        assert!(WordCounts::new([("b", 2), ("b", 1)]).unwrap_err().to_string().contains("\"b\""));
        assert!(counts.merged(&counts).unwrap_err().to_string().contains("\"ab\""));
    }

    proptest! {
        #[test]
        fn merging_is_adding(
            a in prop::collection::btree_map("[ab]{1,3}", 1u64..9, 0..12),
            b in prop::collection::btree_map("[ab]{1,3}", 1u64..9, 0..12),
        ) {
            let of = |map: &BTreeMap<String, u64>| WordCounts::new(map.iter().map(|(w, &n)| (w.as_str(), n))).unwrap();
            let mut sum = a.clone();
            b.iter().for_each(|(word, n)| *sum.entry(word.clone()).or_default() += n);
            prop_assert_eq!(of(&a).merged(&of(&b)).unwrap(), of(&sum));
        }
    }
}
