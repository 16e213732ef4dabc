//! A hash table that counts words.
//!
//! Nearly all words have at most 16 bytes. Such a word is stored as a key of two integers, together with its count, in
//! a slot of 24 bytes. Finding it costs one multiplication and, for the words that make up most of any text, one cache
//! line of the first-level cache. Longer words are stored in a list of bytes and found by a second table.
//!
//! # Invariants
//!
//! - A slot is empty if and only if its count is 0. At most three quarters of the slots are used.
//! - The number of slots is a power of two. Slots are found by linear probing; no single slot is ever emptied.
//! - A word that ends in a zero byte is stored as a long word, because keys are padded with zeros.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::word_counts::WordCounts;
use crate::fast::words::NormalizedWords;
use wordpiece_parallel::prefetch;

/// The most bytes of a word that is stored as a key.
const KEY_BYTES: usize = 16;

/// The number of words whose slots are prefetched before the first of them is read.
const GROUP: usize = 16;

/// The initial number of slots: 1.5 KiB.
const FIRST_SLOTS: usize = 64;

/// The bytes of a word padded with zeros, as two little-endian integers.
type WordKey = [u64; 2];

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    key: WordKey,
    /// The count of the word; 0 if the slot is empty.
    count: u64,
}

/// A word that does not fit into a key.
#[derive(Debug, Clone, Copy)]
struct LongWord {
    /// The position of the word in the list of bytes.
    start: usize,
    /// The length in bytes.
    len: usize,
    count: u64,
}

/// A word for sorting: its first 16 bytes as a big-endian integer, which is in byte order; its count; and the position
/// and length of a long word.
type SortKey = (u128, u64, Option<(usize, usize)>);

/// Words and their counts.
#[derive(Debug)]
pub(super) struct WordCountTable {
    slots: Vec<Slot>,
    /// The number of slots in use.
    used: usize,
    long: HashTable<LongWord>,
    /// The bytes of the long words.
    bytes: Vec<u8>,
    hasher: DefaultHashBuilder,
    /// Random for each table, so that no text can be constructed that is slow. The counts do not depend on it.
    seed: WordKey,
}

impl Default for WordCountTable {
    fn default() -> WordCountTable {
        let hasher = DefaultHashBuilder::default();
        let seed = [hasher.hash_one(0u8), hasher.hash_one(1u8)];
        WordCountTable {
            slots: vec![Slot::default(); FIRST_SLOTS],
            used: 0,
            long: HashTable::new(),
            bytes: Vec::new(),
            hasher,
            seed,
        }
    }
}

/// Returns the key of the word of `len` ≤ 16 bytes at `start` in `text`.
#[inline(always)]
fn key_at(text: &[u8], start: usize, len: usize) -> WordKey {
    let raw = match text.get(start..start + KEY_BYTES) {
        Some(raw) => u128::from_le_bytes(raw.try_into().expect("16 bytes")),
        // Fewer than 16 bytes are left at the end of a text.
        None => return key_of(&text[start..start + len]),
    };
    let raw = raw & u128::MAX.checked_shr(128 - 8 * len as u32).unwrap_or(0);
    [raw as u64, (raw >> 64) as u64]
}

/// Returns the key of a word of at most 16 bytes.
fn key_of(word: &[u8]) -> WordKey {
    let mut bytes = [0; KEY_BYTES];
    bytes[..word.len()].copy_from_slice(word);
    let raw = u128::from_le_bytes(bytes);
    [raw as u64, (raw >> 64) as u64]
}

impl WordCountTable {
    /// Returns the number of distinct words.
    pub fn len(&self) -> usize {
        self.used + self.long.len()
    }

    /// Counts the words of a text. The caller ensures that no word has a zero byte.
    pub fn count(&mut self, words: NormalizedWords<'_>) {
        let NormalizedWords { text, starts, ends } = words;
        let mut keys = [([0; 2], 0usize); GROUP];
        for (starts, ends) in starts.chunks(GROUP).zip(ends.chunks(GROUP)) {
            // The table grows before a group and not within it, so that the prefetched slots stay where they are.
            if 4 * (self.used + GROUP) > 3 * self.slots.len() {
                self.grow();
            }
            for ((key, &start), &end) in keys.iter_mut().zip(starts).zip(ends) {
                let len = (end - start) as usize;
                if len > KEY_BYTES {
                    self.add_long(&text[start as usize..end as usize], 1);
                    // Marks the word as counted.
                    *key = ([0; 2], usize::MAX);
                    continue;
                }
                let word = key_at(text, start as usize, len);
                let at = self.first_slot(word);
                prefetch(self.slots.as_ptr().wrapping_add(at));
                *key = (word, at);
            }
            for &(key, at) in &keys[..starts.len()] {
                if at != usize::MAX {
                    self.add_key(key, at, 1);
                }
            }
        }
    }

    /// Adds `n` to the count of a word.
    pub fn add(&mut self, word: &[u8], n: u64) {
        // A zero at the end of a word would be lost in the padding of a key.
        if word.len() > KEY_BYTES || word.last().is_none_or(|&last| last == 0) {
            self.add_long(word, n);
            return;
        }
        self.add_short(key_of(word), n);
    }

    /// Returns the index of the slot where the search for a key begins.
    #[inline(always)]
    fn first_slot(&self, key: WordKey) -> usize {
        let product = u128::from(key[0] ^ self.seed[0]) * u128::from(key[1] ^ self.seed[1]);
        (product as u64 ^ (product >> 64) as u64) as usize & (self.slots.len() - 1)
    }

    /// Adds `n` to the count of a key whose search begins at slot `at`. There must be an empty slot.
    #[inline(always)]
    fn add_key(&mut self, key: WordKey, mut at: usize, n: u64) {
        let last = self.slots.len() - 1;
        loop {
            let slot = &mut self.slots[at & last];
            if slot.key == key && slot.count > 0 {
                slot.count += n;
                return;
            }
            if slot.count == 0 {
                *slot = Slot { key, count: n };
                self.used += 1;
                return;
            }
            at += 1;
        }
    }

    /// Adds `n` to the count of a key, and grows the table if necessary.
    fn add_short(&mut self, key: WordKey, n: u64) {
        if 4 * (self.used + 1) > 3 * self.slots.len() {
            self.grow();
        }
        self.add_key(key, self.first_slot(key), n);
    }

    /// Doubles the number of slots.
    #[cold]
    fn grow(&mut self) {
        let larger = vec![Slot::default(); 2 * self.slots.len()];
        let slots = std::mem::replace(&mut self.slots, larger);
        self.used = 0;
        for slot in slots.into_iter().filter(|slot| slot.count > 0) {
            self.add_key(slot.key, self.first_slot(slot.key), slot.count);
        }
    }

    /// Adds `n` to the count of a word that does not fit into a key.
    fn add_long(&mut self, word: &[u8], n: u64) {
        let WordCountTable { long, bytes, hasher, .. } = self;
        let hash = hasher.hash_one(word);
        if let Some(known) = long.find_mut(hash, |long| &bytes[long.start..long.start + long.len] == word) {
            known.count += n;
            return;
        }
        let new = LongWord { start: bytes.len(), len: word.len(), count: n };
        bytes.extend_from_slice(word);
        long.insert_unique(hash, new, |long| hasher.hash_one(&bytes[long.start..long.start + long.len]));
    }

    /// Adds the counts of another table.
    pub fn merge(&mut self, other: &WordCountTable) {
        self.merge_above(other, 0);
    }

    /// Adds the counts of another table that are greater than `least`.
    fn merge_above(&mut self, other: &WordCountTable, least: u64) {
        for slot in other.slots.iter().filter(|slot| slot.count > least) {
            self.add_short(slot.key, slot.count);
        }
        for long in other.long.iter().filter(|long| long.count > least) {
            self.add_long(&other.bytes[long.start..long.start + long.len], long.count);
        }
    }

    /// Removes the words with count 1, then those with count 2, and so on until at most `most` words are left. Returns
    /// the last count removed and the number of words removed.
    pub fn drop_rarest(&mut self, most: usize) -> (u64, usize) {
        let before = self.len();
        if before <= most {
            return (0, 0);
        }
        let mut counts: Vec<u64> = self.slots.iter().map(|slot| slot.count).filter(|&n| n > 0).collect();
        counts.extend(self.long.iter().map(|long| long.count));
        // The `before - most` smallest counts must go, and with them all that equal the largest of these.
        let (_, &mut dropped, _) = counts.select_nth_unstable(before - most - 1);
        let old = std::mem::take(self);
        self.merge_above(&old, dropped);
        (dropped, before - self.len())
    }

    /// Removes all words; keeps the memory.
    pub fn clear(&mut self) {
        self.slots.fill(Slot::default());
        self.used = 0;
        self.long.clear();
        self.bytes.clear();
    }

    /// Returns the words in order, with their counts.
    pub fn into_counts(self) -> WordCounts {
        let WordCountTable { slots, long, bytes, .. } = self;
        let big_endian = |key: WordKey| (u128::from(key[0]) | u128::from(key[1]) << 64).swap_bytes();
        let mut words: Vec<SortKey> = Vec::with_capacity(long.len());
        let used = slots.iter().filter(|slot| slot.count > 0);
        words.extend(used.map(|&Slot { key, count }| (big_endian(key), count, None)));
        drop(slots);
        words.extend(long.iter().map(|&LongWord { start, len, count }| {
            (big_endian(key_of(&bytes[start..start + len.min(KEY_BYTES)])), count, Some((start, len)))
        }));
        let long_text = |long: Option<(usize, usize)>| long.map_or(&[][..], |(start, len)| &bytes[start..start + len]);
        words.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| long_text(a.2).cmp(long_text(b.2))));
        let total: usize = words.iter().map(|word| word.2.map_or(KEY_BYTES, |(_, len)| len)).sum();
        let mut counts = WordCounts::with_capacity(words.len(), total);
        for (raw, count, long) in words {
            let short = raw.to_be_bytes();
            let word = match long {
                Some(_) => long_text(long),
                None => &short[..KEY_BYTES - (raw.trailing_zeros() / 8) as usize],
            };
            counts.push(std::str::from_utf8(word).expect("words are cut from text at character boundaries"), count);
        }
        counts.shrink_text();
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn expected(words: &[String], most_dropped: u64) -> WordCounts {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        words.iter().for_each(|word| *counts.entry(word).or_default() += 1);
        counts.retain(|_, n| *n > most_dropped);
        WordCounts::new(counts).unwrap()
    }

    fn counted(words: &[String]) -> WordCountTable {
        let text: String = words.concat();
        let ends: Vec<u32> = words
            .iter()
            .scan(0, |at, word| {
                *at += word.len() as u32;
                Some(*at)
            })
            .collect();
        let starts: Vec<u32> = ends.iter().zip(words).map(|(end, word)| end - word.len() as u32).collect();
        let mut table = WordCountTable::default();
        table.count(NormalizedWords { text: text.as_bytes(), starts: &starts, ends: &ends });
        table
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn a_table_counts_as_a_map_does(words in prop::collection::vec("[abé中]{1,3}|[ab]{14,18}|[a-z]{2}", 0..400)) {
            let mut by_one = WordCountTable::default();
            words.iter().for_each(|word| by_one.add(word.as_bytes(), 1));
            prop_assert_eq!(by_one.len(), expected(&words, 0).len());
            prop_assert_eq!(by_one.into_counts(), expected(&words, 0));
            prop_assert_eq!(counted(&words).into_counts(), expected(&words, 0));
            let (left, right) = words.split_at(words.len() / 3);
            let mut merged = counted(left);
            merged.merge(&counted(right));
            prop_assert_eq!(merged.into_counts(), expected(&words, 0));
        }

        #[test]
        fn the_rarest_go_first(words in prop::collection::vec("[ab]{1,3}|[a]{14,18}", 1..100), most in 0usize..20) {
            let mut table = counted(&words);
            let (dropped, gone) = table.drop_rarest(most);
            prop_assert!(table.len() <= most);
            prop_assert_eq!(gone, expected(&words, 0).len() - table.len());
            if dropped > 0 {
                prop_assert!(expected(&words, dropped - 1).len() > most, "a smaller bound was not enough");
            }
            prop_assert_eq!(table.into_counts(), expected(&words, dropped));
        }
    }

    #[test]
    fn a_zero_byte_is_part_of_a_word() {
        let mut table = WordCountTable::default();
        for word in ["a", "a\0", "\0", "a\0b", "a"] {
            table.add(word.as_bytes(), 1);
        }
        let counts = table.into_counts();
        assert_eq!(counts.iter().collect::<Vec<_>>(), [("\0", 1), ("a", 2), ("a\0", 1), ("a\0b", 1)]);
    }
}
