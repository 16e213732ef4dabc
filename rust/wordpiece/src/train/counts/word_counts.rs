//! The multiset of words.

use crate::error::{Error, Result, TrainingError};
use crate::matcher::within_limit;

/// A multiset of words: distinct and not empty, each with a count above 0, in byte order (which is code point order).
///
/// It does not record the order in which words were seen, so nothing that is learned from it can depend on that order.
///
/// All words are in one string, so a word takes its bytes and 16 more for its end and its count.
///
/// ```
/// use wordpiece::train::WordCounts;
///
/// let counts = WordCounts::new([("b", 2), ("a", 3)])?;
/// assert_eq!(counts.iter().collect::<Vec<_>>(), [("a", 3), ("b", 2)]);
/// assert_eq!(counts.merged(&counts)?.get("b"), 4);
/// # Ok::<(), wordpiece::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WordCounts {
    /// All words, one after the other.
    text: String,
    /// The end of each word in `text`.
    ends: Vec<usize>,
    /// The count of each word.
    counts: Vec<u64>,
}

impl WordCounts {
    /// Creates a multiset with these counts. Empty words and words with count 0 are skipped.
    ///
    /// # Errors
    ///
    /// [`TrainingError::DuplicateWord`].
    pub fn new<'a>(words: impl IntoIterator<Item = (&'a str, u64)>) -> Result<WordCounts> {
        let mut words: Vec<(&str, u64)> = words.into_iter().filter(|&(word, n)| n > 0 && !word.is_empty()).collect();
        words.sort_unstable_by(|a, b| a.0.cmp(b.0));
        if let Some(pair) = words.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::Training(TrainingError::DuplicateWord { word: pair[0].0.to_owned() }));
        }
        let bytes = words.iter().map(|(word, _)| word.len()).sum();
        let mut counts = WordCounts::with_capacity(words.len(), bytes);
        words.into_iter().for_each(|(word, n)| counts.push(word, n));
        Ok(counts)
    }

    /// Creates an empty multiset with capacity for this many words and bytes.
    pub(super) fn with_capacity(words: usize, bytes: usize) -> WordCounts {
        WordCounts {
            text: String::with_capacity(bytes),
            ends: Vec::with_capacity(words),
            counts: Vec::with_capacity(words),
        }
    }

    /// Appends a word. The caller ensures that it is greater than all others and that `count` is not 0.
    pub(super) fn push(&mut self, word: &str, count: u64) {
        self.text.push_str(word);
        self.ends.push(self.text.len());
        self.counts.push(count);
    }

    /// Releases unused capacity of the text.
    pub(super) fn shrink_text(&mut self) {
        self.text.shrink_to_fit();
    }

    /// Returns the number of distinct words.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns the number of bytes of all distinct words.
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Returns whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the sum of all counts.
    pub fn total(&self) -> u128 {
        self.counts.iter().map(|&n| u128::from(n)).sum()
    }

    /// Returns the words with their counts, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u64)> {
        (0..self.len()).map(|i| (self.word(i), self.counts[i]))
    }

    /// Returns the word at index `i`.
    ///
    /// # Panics
    ///
    /// Panics if `i` is not less than [`len`](WordCounts::len).
    pub fn word(&self, i: usize) -> &str {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.text[start..self.ends[i]]
    }

    /// Returns the count of a word, 0 if it does not occur, by binary search.
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

    /// Returns the counts, in the order of the words.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the indices of the words by descending count, then ascending word.
    pub fn ranked(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(self.counts[i]));
        order
    }

    /// Returns the sum of two multisets.
    ///
    /// # Errors
    ///
    /// [`TrainingError::CountsTooLarge`] if a sum exceeds 64 bits.
    pub fn merged(&self, other: &WordCounts) -> Result<WordCounts> {
        let mut merged = WordCounts::with_capacity(self.len().max(other.len()), self.text.len().max(other.text.len()));
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
                    merged.push(a, checked_sum(a, self.counts[i], other.counts[j])?);
                    (i, j) = (i + 1, j + 1);
                }
            }
        }
        (i..self.len()).for_each(|i| merged.push(self.word(i), self.counts[i]));
        (j..other.len()).for_each(|j| merged.push(other.word(j), other.counts[j]));
        Ok(merged)
    }

    /// Returns the multiset without words of more than `most` characters, the number of distinct words removed, and how
    /// often they occurred.
    pub fn without_longer(&self, most: usize) -> (WordCounts, u64, u128) {
        let mut kept = WordCounts::with_capacity(self.len(), self.text.len());
        let (mut words, mut occurrences) = (0, 0);
        for (word, n) in self.iter() {
            // A word has at most as many characters as bytes.
            if !within_limit(word, most) {
                words += 1;
                occurrences += u128::from(n);
            } else {
                kept.push(word, n);
            }
        }
        (kept, words, occurrences)
    }
}

/// Returns the sum of two counts of `word`.
fn checked_sum(word: &str, a: u64, b: u64) -> Result<u64> {
    a.checked_add(b)
        .ok_or_else(|| Error::Training(TrainingError::CountsTooLarge { word: word.to_owned(), count: a.max(b) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn words_are_sorted_and_those_with_count_0_are_skipped() {
        let counts = WordCounts::new([("b", 2), ("", 7), ("é", 1), ("a", 0), ("ab", u64::MAX)]).unwrap();
        assert_eq!(counts.iter().collect::<Vec<_>>(), [("ab", u64::MAX), ("b", 2), ("é", 1)]);
        assert_eq!((counts.get("b"), counts.get("a"), counts.get("zz")), (2, 0, 0));
        assert!(WordCounts::new([("b", 2), ("b", 1)]).unwrap_err().to_string().contains("\"b\""));
        assert!(counts.merged(&counts).unwrap_err().to_string().contains("\"ab\""));
    }

    proptest! {
        #[test]
        fn merging_adds_the_counts(
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
