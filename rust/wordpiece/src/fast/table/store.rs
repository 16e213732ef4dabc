//! The word table of one thread.
//!
//! Invariants that the lookup loop relies on:
//! - the number of lines is a power of two, and `hash` numbers exactly these lines;
//! - a value never has more ids than its word has bytes, so the ids of a text never outnumber its bytes;
//! - a value with `count` [`STORED`] describes a range of `store`.

use crate::fast::key::{KEY_BYTES, LineHash, WORD_BYTES, WordKey};
use crate::fast::line::{FREE_KEY, INLINE_IDS, LineValue, STORED, TableLine};
use crate::memory;
use wordpiece_parallel::prefetch;

/// The table of one thread: see the [module above](super).
#[derive(Debug)]
pub(in crate::fast) struct WordTable {
    /// A power of two of them, from 4,096 to [`MAX_LINES`].
    pub(super) lines: Vec<TableLine>,
    /// Numbers the lines.
    pub(super) hash: LineHash,
    /// Number of occupied slots; a line has two.
    occupied: usize,
    /// Entries of values that do not fit into a line, one after the other: the bytes of the word if its key does not
    /// hold them, four to a number, then the ids.
    store: Vec<u32>,
}

/// The table stops growing at this many lines: 32 MiB.
const MAX_LINES: usize = 1 << 19;

/// The store is emptied before it exceeds this many numbers: 16 MiB.
const MAX_STORED: usize = 1 << 22;

/// A table never uses more than this many bytes.
pub(in crate::fast) const MAX_BYTES: usize = MAX_LINES * size_of::<TableLine>() + MAX_STORED * size_of::<u32>();

/// The slots of a word, as [`WordTable::lines_of`] orders its lines: the index of the line there, and 0 or 1.
type Slot = (usize, usize);

impl WordTable {
    /// Returns an empty table for a vocabulary of `n` words: a line for each, and at least 4,096.
    pub fn new(n: usize) -> WordTable {
        WordTable::with_lines(n.next_power_of_two().clamp(1 << 12, MAX_LINES))
    }

    /// Returns an empty table of `n` lines, a power of two.
    fn with_lines(n: usize) -> WordTable {
        debug_assert!(n.is_power_of_two() && n > 1);
        let mut lines = Vec::new();
        memory::reserve(&mut lines, n);
        lines.resize(n, TableLine::EMPTY);
        WordTable { lines, hash: LineHash::of_lines(n), occupied: 0, store: Vec::new() }
    }

    /// Returns the number of the own line of a word.
    #[inline(always)]
    fn line(&self, key: WordKey) -> usize {
        self.hash.line(key) as usize
    }

    /// Returns the lines in which a word may be: its own, the adjacent one (which many CPUs load with it), and two
    /// others, which a second key selects.
    fn lines_of(&self, key: WordKey) -> [usize; 4] {
        let (own, other) = (self.line(key), self.line(key.alternative()));
        [own, own ^ 1, other, other ^ 1]
    }

    /// Appends the ids of a word that is not in its own line but may be in one of the others; returns whether it was.
    pub fn append_from_other_lines(&self, word: &[u8], key: WordKey, out: &mut Vec<u32>) -> bool {
        let elsewhere = self.lines[self.line(key)].values[0].elsewhere;
        if elsewhere == 0 {
            return false;
        }
        let lines = self.lines_of(key);
        let steps = (1..lines.len()).filter(|step| elsewhere >> step & 1 == 1);
        let mut slots = steps.flat_map(|step| [0, 1].map(|i| (&self.lines[lines[step]], i)));
        let Some((line, i)) = slots.find(|(line, i)| line.keys[*i].equals(key)) else { return false };
        let value = &line.values[i];
        if value.count != STORED {
            out.extend_from_slice(&value.ids[..value.count as usize]);
            return true;
        }
        let stored = self.stored(value, word);
        stored.inspect(|ids| out.extend_from_slice(ids)).is_some()
    }

    /// Requests the lines from memory that a new word may be put into because its own line is full.
    pub fn prefetch_other_lines(&self, key: WordKey) {
        let [own, adjacent, other, _] = self.lines_of(key);
        if self.lines[own].values[1].count != 0 {
            prefetch(&raw const self.lines[adjacent]);
            prefetch(&raw const self.lines[other]);
        }
    }

    /// Returns the ids of a value that is in the store, if it is the value of this word.
    #[inline(always)]
    pub(super) fn stored(&self, value: &LineValue, word: &[u8]) -> Option<&[u32]> {
        let [at, n, word_len] = value.ids.map(|number| number as usize);
        let stored = &self.store[at..at + word_len.div_ceil(4) + n];
        let (bytes, ids) = stored.split_at(stored.len() - n);
        // SAFETY: a slice of `u32` is four times as many initialised bytes, and bytes need no alignment.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<u8>(), 4 * bytes.len()) };
        (word_len == 0 || bytes[..word_len] == *word).then_some(ids)
    }

    /// Adds a word of the vocabulary if one of its slots is free. Words should come in the order of their ids, which in
    /// trained vocabularies is the order of their frequency: the first to come get the best slots.
    pub fn fill(&mut self, word: &[u8], id: u32) {
        let key = WordKey::of(word);
        if !word.is_empty()
            && let Some(slot) = self.free_slot(key)
        {
            let value = self.value(word, &[id]);
            self.put(slot, key, value);
        }
    }

    /// Adds a word that is not in the table, replacing another one if necessary.
    ///
    /// A word of more than [`WORD_BYTES`] bytes is ignored. So is one with more ids than bytes, which no matcher
    /// returns: the lookup reserves an id for each byte of a text.
    pub fn remember(&mut self, word: &[u8], key: WordKey, ids: &[u32]) {
        if key == WordKey::NONE || ids.is_empty() || ids.len() > word.len() {
            return;
        }
        if self.occupied > self.lines.len() && self.lines.len() < MAX_LINES {
            self.grow();
        }
        let value = self.value(word, ids);
        // If all slots are occupied, the word in the second slot of the own line is replaced.
        let slot = self.free_slot(key).unwrap_or((0, 1));
        self.put(slot, key, value);
    }

    /// Returns the value of a word: its ids, or where they were put in the store.
    fn value(&mut self, word: &[u8], ids: &[u32]) -> LineValue {
        let mut value =
            LineValue { ids: [0; INLINE_IDS], count: ids.len().min(INLINE_IDS) as u8, elsewhere: 0, unused: 0 };
        if word.len() <= KEY_BYTES && ids.len() <= INLINE_IDS {
            value.ids[..ids.len()].copy_from_slice(ids);
            return value;
        }
        if self.store.len() + WORD_BYTES + ids.len() > MAX_STORED {
            self.forget_stored();
        }
        let word = if word.len() > KEY_BYTES { word } else { b"" };
        value.ids = [self.store.len() as u32, ids.len() as u32, word.len() as u32];
        value.count = STORED;
        for bytes in word.chunks(4) {
            let mut number = [0; 4];
            number[..bytes.len()].copy_from_slice(bytes);
            self.store.push(u32::from_ne_bytes(number));
        }
        self.store.extend_from_slice(ids);
        value
    }

    /// Returns the first free slot of a word.
    fn free_slot(&self, key: WordKey) -> Option<Slot> {
        let is_free = |line: usize, i: usize| self.lines[line].values[i].count == 0;
        // The iterator is lazy: the other lines, probably not in the cache, are read only if the own line is full.
        let lines = self.lines_of(key);
        (0..lines.len()).flat_map(|step| [(step, 0), (step, 1)]).find(|&(step, i)| is_free(lines[step], i))
    }

    /// Writes a word into a slot, replacing any other.
    fn put(&mut self, (step, i): Slot, key: WordKey, value: LineValue) {
        let lines = self.lines_of(key);
        let line = &mut self.lines[lines[step]];
        self.occupied += usize::from(line.values[i].count == 0);
        let elsewhere = line.values[0].elsewhere;
        (line.keys[i], line.values[i]) = (key, value);
        line.values[0].elsewhere = elsewhere;
        if step > 0 {
            self.lines[lines[0]].values[0].elsewhere |= 1 << step;
        }
    }

    /// Doubles the number of lines. The store stays as it is: values refer to it by position.
    fn grow(&mut self) {
        let n = self.lines.len();
        let hash = LineHash::of_lines(2 * n);
        let mut lines = Vec::new();
        memory::reserve(&mut lines, 2 * n);
        // Line `i` becomes lines `2 i` and `2 i + 1`.
        let mut elsewhere = Vec::new();
        for (i, line) in self.lines.iter().enumerate() {
            let mut halves = [TableLine::EMPTY; 2];
            for (&key, &value) in line.keys.iter().zip(&line.values).filter(|(_, value)| value.count > 0) {
                let own = hash.line(key) as usize;
                if own / 2 == i {
                    halves[own % 2].push(key, value);
                } else {
                    elsewhere.push((key, value));
                }
            }
            lines.extend_from_slice(&halves);
        }
        // Both at once: `hash` numbers exactly these lines.
        (self.lines, self.hash) = (lines, hash);
        // Words that were in a line of others because their own was full.
        self.occupied -= elsewhere.len();
        for (key, value) in elsewhere {
            if let Some(slot) = self.free_slot(key) {
                self.put(slot, key, value);
            }
        }
    }

    /// Empties the store, and frees the slots of all words that have an entry there: long words, and words of more than
    /// three pieces. They are few, and match again when they occur.
    fn forget_stored(&mut self) {
        for line in &mut self.lines {
            for (key, value) in line.keys.iter_mut().zip(&mut line.values).filter(|(_, value)| value.count == STORED) {
                *key = FREE_KEY;
                value.count = 0;
                self.occupied -= 1;
            }
        }
        self.store.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::dispatch::{self, tests::instruction_sets};
    use crate::fast::key::GROUP;
    use crate::fast::table::look_up::{LookupOutput, WordRanges};

    fn ids_of(i: usize) -> Vec<u32> {
        (0..1 + i % 9).map(|k| (i * 10 + k) as u32).collect()
    }

    /// Words of 1 to 60 bytes, all different.
    fn word(i: usize) -> Vec<u8> {
        let mut word = format!("{i}").into_bytes();
        word.resize(word.len().max(i * 7 % 61), b'x');
        word
    }

    #[test]
    fn remembered_ids_are_right_or_forgotten_on_every_instruction_set() {
        let (n, n_filled) = if cfg!(miri) { (600, 200) } else { (600_000, 40_000) };
        for set in instruction_sets() {
            let mut table = WordTable::new(1);
            for i in 0..n_filled {
                table.fill(&word(i), 10 * i as u32);
            }
            let mut text = Vec::new();
            let (mut starts, mut ends) = (Vec::new(), Vec::new());
            for i in (0..n).chain((0..n).rev()) {
                starts.push(text.len() as u32);
                text.extend(word(i));
                ends.push(text.len() as u32);
            }
            text.extend([b'y'; 64]);
            let numbers = |list: &[u32]| [list, &[0; GROUP]].concat();
            let (mut counts, mut out, mut misses) = (Vec::new(), Vec::new(), 0);
            let (starts, ends) = (numbers(&starts), numbers(&ends));
            let output = LookupOutput { ids: &mut out, counts: &mut counts, count: true };
            // SAFETY: the loop above appended the words one after the other, and 64 bytes follow the last.
            let words = unsafe { WordRanges::new(&text, &starts, &ends) };
            dispatch::look_up(set, &mut table, words, output, &mut |table, word, key, out| {
                misses += 1;
                if !table.append_from_other_lines(word, key, out) {
                    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
                    let i = std::str::from_utf8(&word[..digits]).unwrap().parse().unwrap();
                    out.extend(ids_of(i));
                    table.remember(word, key, &ids_of(i));
                }
            });
            let mut rest = &out[..];
            for (i, &count) in (0..n).chain((0..n).rev()).zip(&counts) {
                let (ids, more) = rest.split_at(count as usize);
                rest = more;
                let expected = if i < n_filled && ids.len() == 1 { vec![10 * i as u32] } else { ids_of(i) };
                assert_eq!(ids, expected, "{} word {i}", set.name());
            }
            assert!(rest.is_empty() && counts.len() == 2 * n, "{}", set.name());
            assert!(cfg!(miri) || (n..2 * n).contains(&misses), "{}: {misses} of {} words missed", set.name(), 2 * n);
            let bytes = size_of_val(&table.lines[..]) + size_of_val(&table.store[..]);
            assert!(bytes <= MAX_BYTES, "{}: {bytes}", set.name());
        }
    }

    #[test]
    fn more_ids_than_bytes_are_never_remembered() {
        let mut table = WordTable::new(1);
        let key = WordKey::of(b"ab");
        table.remember(b"ab", key, &[1, 2, 3]);
        table.remember(b"", WordKey { low: 1, high: 0 }, &[1]);
        assert_eq!(table.occupied, 0);
        table.remember(b"ab", key, &[1, 2]);
        assert_eq!(table.occupied, 1);
    }
}
