//! A hash table that counts words.
//!
//! Nearly all words that occur have at most 16 bytes. Such a word is two numbers, its key, and stands with its count in a
//! slot of 24 bytes: finding it costs one multiplication and, for the words that make up most of any text, one line of
//! the nearest cache. Longer words stand in a list of bytes, found by a table of their own.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::WordCounts;
use crate::fast::words::Words;
use crate::memory::prefetch;

/// The bytes of a key.
const KEY_BYTES: usize = 16;

/// Words whose slots are asked for before the first of them is looked at.
const GROUP: usize = 16;

/// The slots at first: 1.5 KiB.
const FIRST_SLOTS: usize = 64;

/// The bytes of a word, followed by zeros.
type Key = [u64; 2];

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    key: Key,
    /// 0: nothing stands here.
    count: u64,
}

/// A word of more bytes than a key has.
#[derive(Debug, Clone, Copy)]
struct Long {
    start: usize,
    len: usize,
    count: u64,
}

/// A word by its first 16 bytes as one number, which is in the order of the bytes; its count; and where all of it stands
/// when there is more.
type Ranked = (u128, u64, Option<(usize, usize)>);

/// Words and their counts.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<Slot>,
    /// How many of them are taken.
    taken: usize,
    long: HashTable<Long>,
    bytes: Vec<u8>,
    hasher: DefaultHashBuilder,
    /// Drawn anew for each table, so that no text is slow by design; what is counted does not depend on it.
    seed: Key,
}

impl Default for Table {
    fn default() -> Table {
        let hasher = DefaultHashBuilder::default();
        let seed = [hasher.hash_one(0u8), hasher.hash_one(1u8)];
        Table {
            slots: vec![Slot::default(); FIRST_SLOTS],
            taken: 0,
            long: HashTable::new(),
            bytes: Vec::new(),
            hasher,
            seed,
        }
    }
}

/// The key of a word of at most 16 bytes that stands in `text`.
#[inline(always)]
fn key_at(text: &[u8], start: usize, len: usize) -> Key {
    let raw = match text.get(start..start + KEY_BYTES) {
        Some(raw) => u128::from_le_bytes(raw.try_into().expect("16 bytes")),
        // Behind the last words of a text there is less to read.
        None => return key_of(&text[start..start + len]),
    };
    let raw = raw & u128::MAX.checked_shr(128 - 8 * len as u32).unwrap_or(0);
    [raw as u64, (raw >> 64) as u64]
}

fn key_of(word: &[u8]) -> Key {
    let mut bytes = [0; KEY_BYTES];
    bytes[..word.len()].copy_from_slice(word);
    let raw = u128::from_le_bytes(bytes);
    [raw as u64, (raw >> 64) as u64]
}

impl Table {
    /// The number of distinct words.
    pub fn len(&self) -> usize {
        self.taken + self.long.len()
    }

    /// Counts words of a text, in none of which a zero byte stands.
    pub fn count(&mut self, words: Words<'_>) {
        let Words { text, starts, ends } = words;
        let mut keys = [([0; 2], 0usize); GROUP];
        for (starts, ends) in starts.chunks(GROUP).zip(ends.chunks(GROUP)) {
            // The table grows before a group and not within it, so that its slots stay where they are.
            if 4 * (self.taken + GROUP) > 3 * self.slots.len() {
                self.grow();
            }
            for ((key, &start), &end) in keys.iter_mut().zip(starts).zip(ends) {
                let len = (end - start) as usize;
                if len > KEY_BYTES {
                    self.add_long(&text[start as usize..end as usize], 1);
                    // No word has this key: its count goes nowhere.
                    *key = ([0; 2], usize::MAX);
                    continue;
                }
                let word = key_at(text, start as usize, len);
                let at = self.place(word);
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

    /// Counts a word `n` times.
    pub fn add(&mut self, word: &[u8], n: u64) {
        // A zero at the end of a word would be lost in a key.
        if word.len() > KEY_BYTES || word.last().is_none_or(|&last| last == 0) {
            self.add_long(word, n);
            return;
        }
        if 4 * (self.taken + 1) > 3 * self.slots.len() {
            self.grow();
        }
        let key = key_of(word);
        self.add_key(key, self.place(key), n);
    }

    /// Where the search for a key begins.
    #[inline(always)]
    fn place(&self, key: Key) -> usize {
        let product = u128::from(key[0] ^ self.seed[0]) * u128::from(key[1] ^ self.seed[1]);
        (product as u64 ^ (product >> 64) as u64) as usize & (self.slots.len() - 1)
    }

    #[inline(always)]
    fn add_key(&mut self, key: Key, mut at: usize, n: u64) {
        let last = self.slots.len() - 1;
        loop {
            let slot = &mut self.slots[at & last];
            if slot.key == key && slot.count > 0 {
                slot.count += n;
                return;
            }
            if slot.count == 0 {
                *slot = Slot { key, count: n };
                self.taken += 1;
                return;
            }
            at += 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![Slot::default(); 2 * self.slots.len()];
        let slots = std::mem::replace(&mut self.slots, larger);
        self.taken = 0;
        for slot in slots.into_iter().filter(|slot| slot.count > 0) {
            self.add_key(slot.key, self.place(slot.key), slot.count);
        }
    }

    fn add_long(&mut self, word: &[u8], n: u64) {
        let Table { long, bytes, hasher, .. } = self;
        let hash = hasher.hash_one(word);
        if let Some(found) = long.find_mut(hash, |entry| &bytes[entry.start..entry.start + entry.len] == word) {
            found.count += n;
            return;
        }
        let entry = Long { start: bytes.len(), len: word.len(), count: n };
        bytes.extend_from_slice(word);
        long.insert_unique(hash, entry, |entry| hasher.hash_one(&bytes[entry.start..entry.start + entry.len]));
    }

    /// Adds what another table counted.
    pub fn merge(&mut self, other: &Table) {
        for slot in other.slots.iter().filter(|slot| slot.count > 0) {
            if 4 * (self.taken + 1) > 3 * self.slots.len() {
                self.grow();
            }
            self.add_key(slot.key, self.place(slot.key), slot.count);
        }
        other
            .long
            .iter()
            .for_each(|entry| self.add_long(&other.bytes[entry.start..entry.start + entry.len], entry.count));
    }

    /// Drops the words with a count of at most `t`, for t = 1, 2, … until at most `most` are left; returns the last t and
    /// how many words went.
    pub fn drop_rarest(&mut self, most: usize) -> (u64, usize) {
        let before = self.len();
        if before <= most {
            return (0, 0);
        }
        let mut counts: Vec<u64> = self.slots.iter().map(|slot| slot.count).filter(|&n| n > 0).collect();
        counts.extend(self.long.iter().map(|entry| entry.count));
        // The first `before - most` in this order must go, and with them whatever has the count of the last of them.
        let (_, &mut dropped, _) = counts.select_nth_unstable(before - most - 1);
        let old = std::mem::take(self);
        for slot in old.slots.iter().filter(|slot| slot.count > dropped) {
            if 4 * (self.taken + 1) > 3 * self.slots.len() {
                self.grow();
            }
            self.add_key(slot.key, self.place(slot.key), slot.count);
        }
        for entry in old.long.iter().filter(|entry| entry.count > dropped) {
            self.add_long(&old.bytes[entry.start..entry.start + entry.len], entry.count);
        }
        (dropped, before - self.len())
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.slots.fill(Slot::default());
        self.taken = 0;
        self.long.clear();
        self.bytes.clear();
    }

    /// The words in order, with their counts.
    pub fn into_counts(self) -> WordCounts {
        let Table { slots, long, bytes, .. } = self;
        let mut words: Vec<Ranked> = Vec::with_capacity(long.len());
        words.extend(slots.iter().filter(|slot| slot.count > 0).map(|&Slot { key, count }| {
            let raw = u128::from(key[0]) | u128::from(key[1]) << 64;
            (raw.swap_bytes(), count, None)
        }));
        drop(slots);
        words.extend(long.iter().map(|&Long { start, len, count }| {
            let key = key_of(&bytes[start..start + len.min(KEY_BYTES)]);
            let raw = u128::from(key[0]) | u128::from(key[1]) << 64;
            (raw.swap_bytes(), count, Some((start, len)))
        }));
        let rest = |long: Option<(usize, usize)>| long.map_or(&[][..], |(start, len)| &bytes[start..start + len]);
        words.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| rest(a.2).cmp(rest(b.2))));
        let total: usize = words.iter().map(|word| word.2.map_or(KEY_BYTES, |(_, len)| len)).sum();
        let mut counts = WordCounts::with_room(words.len(), total);
        for (raw, count, long) in words {
            let short = raw.to_be_bytes();
            let word = match long {
                Some((start, len)) => &bytes[start..start + len],
                None => &short[..KEY_BYTES - (raw.trailing_zeros() / 8) as usize],
            };
            counts.push(std::str::from_utf8(word).expect("words are cut out of text between characters"), count);
        }
        counts.text.shrink_to_fit();
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

    fn counted(words: &[String]) -> Table {
        let text: String = words.concat();
        let ends: Vec<u32> = words
            .iter()
            .scan(0, |at, word| {
                *at += word.len() as u32;
                Some(*at)
            })
            .collect();
        let starts: Vec<u32> = ends.iter().zip(words).map(|(end, word)| end - word.len() as u32).collect();
        let mut table = Table::default();
        table.count(Words { text: text.as_bytes(), starts: &starts, ends: &ends });
        table
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn a_table_counts_as_a_map_does(words in prop::collection::vec("[abé中]{1,3}|[ab]{14,18}|[a-z]{2}", 0..400)) {
            let mut by_one = Table::default();
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
        let mut table = Table::default();
        for word in ["a", "a\0", "\0", "a\0b", "a"] {
            table.add(word.as_bytes(), 1);
        }
        let counts = table.into_counts();
        assert_eq!(counts.iter().collect::<Vec<_>>(), [("\0", 1), ("a", 2), ("a\0", 1), ("a\0b", 1)]);
    }
}
