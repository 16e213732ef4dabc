//! Word → ids, in one look.
//!
//! A word is a key of 16 bytes. Two keys and what they stand for fill a cache line: a look-up reads one line, compares two
//! keys and has up to three ids. Every whole word of the vocabulary is there from the start, so the first pass over a text
//! is already warm; words of several pieces come in as they are met. A word whose line is full stands in the line beside it,
//! or in one of two others; a line knows whether one of its words does. The table doubles while half of it is taken, up to a
//! limit; from then on words leave when others want their places.

mod key;
mod look_up;

#[cfg(target_arch = "x86_64")]
pub(super) use key::FACTORS;
pub(super) use key::{GROUP, Group, KEY_BYTES, Key, LINE_BYTES, Place, WORD_BYTES, read_keys};
pub(super) use look_up::{Found, Miss, Words, look_up_with};

use crate::memory;

/// Ids that fit into a value.
const INLINE: usize = 3;

/// What a key stands for. It is copied out whole, of which `count` numbers are ids.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct Value {
    ids: [u32; INLINE],
    /// How many ids; 0: the place is free; [`STORED`]: they are in the store, and `ids` says where.
    count: u8,
    /// In the first value of a line: the steps of [`Table::lines_of`] at which words of this line stand elsewhere, a bit each.
    elsewhere: u8,
    unused: u16,
}

/// The count of values whose ids, or whose word, do not fit.
const STORED: u8 = u8::MAX;

/// A place that no word has taken.
const FREE: (Key, Value) = (Key { low: 0, high: 1 }, Value { ids: [0; INLINE], count: 0, elsewhere: 0, unused: 0 });

/// Two words, a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line {
    pub keys: [Key; 2],
    pub values: [Value; 2],
}

/// Where the values of a line stand in it, in bytes.
pub(super) const VALUES_AT: usize = std::mem::offset_of!(Line, values);

const _: () = assert!(size_of::<Line>() as u64 == LINE_BYTES);

const EMPTY: Line = Line { keys: [FREE.0; 2], values: [FREE.1; 2] };

/// The table of one thread.
#[derive(Debug)]
pub(super) struct Table {
    lines: Vec<Line>,
    place: Place,
    /// Places that are taken.
    taken: usize,
    /// For values that do not fit: the bytes of the word, if its key does not hold them, four to a number; then its ids.
    store: Vec<u32>,
}

/// The most lines: 32 MiB of them.
const MOST_LINES: usize = 1 << 19;

/// Where the store starts anew, in numbers: 16 MiB of them.
const MOST_STORED: usize = 1 << 22;

/// The bytes that a table never takes more than.
pub(super) const MOST_BYTES: usize = MOST_LINES * size_of::<Line>() + MOST_STORED * size_of::<u32>();

impl Clone for Table {
    fn clone(&self) -> Table {
        let mut lines = Vec::new();
        memory::reserve(&mut lines, self.lines.len());
        lines.extend_from_slice(&self.lines);
        Table { lines, store: self.store.clone(), ..*self }
    }
}

impl Table {
    /// A table for a vocabulary of `n` words: two places for each or more, at least 4,096 lines.
    pub fn new(n: usize) -> Table {
        Table::of_lines(n.next_power_of_two().clamp(1 << 12, MOST_LINES))
    }

    fn of_lines(n: usize) -> Table {
        let mut lines = Vec::new();
        memory::reserve(&mut lines, n);
        lines.resize(n, EMPTY);
        Table { lines, place: Place { shift: 64 - n.trailing_zeros() }, taken: 0, store: Vec::new() }
    }

    #[inline(always)]
    fn line(&self, key: Key) -> usize {
        self.place.number(key) as usize
    }

    /// The lines in which a word may stand, its own first.
    fn lines_of(&self, key: Key) -> [usize; 4] {
        let (own, other) = (self.line(key), self.line(key.turned()));
        [own, own ^ 1, other, other ^ 1]
    }

    /// Appends the ids of a word that is not in its own line but perhaps elsewhere; whether it was.
    pub fn look_elsewhere(&self, word: &[u8], key: Key, out: &mut Vec<u32>) -> bool {
        let elsewhere = self.lines[self.line(key)].values[0].elsewhere;
        if elsewhere == 0 {
            return false;
        }
        let lines = self.lines_of(key);
        let steps = (1..lines.len()).filter(|step| elsewhere >> step & 1 == 1);
        let places = steps.flat_map(|step| [0, 1].map(|i| (&self.lines[lines[step]], i)));
        let Some((line, i)) = places.into_iter().find(|(line, i)| line.keys[*i].is(key)) else { return false };
        let value = &line.values[i];
        if value.count != STORED {
            out.extend_from_slice(&value.ids[..value.count as usize]);
            return true;
        }
        let stored = self.stored(value, word);
        stored.inspect(|ids| out.extend_from_slice(ids)).is_some()
    }

    /// The ids of a value that did not fit, when it is that of this word.
    #[inline(always)]
    fn stored(&self, value: &Value, word: &[u8]) -> Option<&[u32]> {
        let [at, n, word_len] = value.ids.map(|number| number as usize);
        let stored = &self.store[at..at + word_len.div_ceil(4) + n];
        let (bytes, ids) = stored.split_at(stored.len() - n);
        // SAFETY: any four bytes may be read as bytes; the list is as long.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<u8>(), 4 * bytes.len()) };
        (word_len == 0 || bytes[..word_len] == *word).then_some(ids)
    }

    /// Puts a word of the vocabulary in, if there is a place for it. Words come in the order of their ids, which in
    /// vocabularies that were learned is that of their frequency: the first to come have the best places.
    pub fn fill(&mut self, word: &[u8], id: u32) {
        let key = Key::of(word);
        if let Some(place) = self.free_place(key) {
            let value = self.value(word, &[id]);
            self.put(place, key, value);
        }
    }

    /// Remembers the ids of a word that is not there. One of [`WORD_BYTES`] bytes or more is not remembered.
    pub fn remember(&mut self, word: &[u8], key: Key, ids: &[u32]) {
        if key == Key::NONE {
            return;
        }
        if self.taken > self.lines.len() && self.lines.len() < MOST_LINES {
            self.grow();
        }
        let value = self.value(word, ids);
        // Where there is no place the second word of the line gives way: what is forgotten is worked out again.
        let place = self.free_place(key).unwrap_or((0, 1));
        self.put(place, key, value);
    }

    /// What stands for a word: its ids, or where they are stored.
    fn value(&mut self, word: &[u8], ids: &[u32]) -> Value {
        let mut value = Value { ids: [0; INLINE], count: ids.len().min(INLINE) as u8, elsewhere: 0, unused: 0 };
        if word.len() <= KEY_BYTES && ids.len() <= INLINE {
            value.ids[..ids.len()].copy_from_slice(ids);
            return value;
        }
        if self.store.len() + WORD_BYTES + ids.len() > MOST_STORED {
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

    /// A free place for a word: the step of [`Table::lines_of`] and which of the two there.
    fn free_place(&self, key: Key) -> Option<(usize, usize)> {
        let is_free = |line: usize, i: usize| self.lines[line].values[i].count == 0;
        // The other lines are looked at only when the own one is full: they are far in memory.
        let lines = self.lines_of(key);
        (0..lines.len()).flat_map(|step| [(step, 0), (step, 1)]).find(|&(step, i)| is_free(lines[step], i))
    }

    fn put(&mut self, (step, i): (usize, usize), key: Key, value: Value) {
        let lines = self.lines_of(key);
        let line = &mut self.lines[lines[step]];
        self.taken += usize::from(line.values[i].count == 0);
        let elsewhere = line.values[0].elsewhere;
        (line.keys[i], line.values[i]) = (key, value);
        line.values[0].elsewhere = elsewhere;
        if step > 0 {
            self.lines[lines[0]].values[0].elsewhere |= 1 << step;
        }
    }

    /// Doubles the lines.
    fn grow(&mut self) {
        let mut grown = Table::of_lines(2 * self.lines.len());
        grown.store = std::mem::take(&mut self.store);
        for line in &self.lines {
            for (&key, &value) in line.keys.iter().zip(&line.values).filter(|(_, value)| value.count > 0) {
                if let Some(place) = grown.free_place(key) {
                    grown.put(place, key, value);
                }
            }
        }
        *self = grown;
    }

    /// Frees the places of all words that have something in the store.
    fn forget_stored(&mut self) {
        for line in &mut self.lines {
            for (key, value) in line.keys.iter_mut().zip(&mut line.values).filter(|(_, value)| value.count == STORED) {
                *key = FREE.0;
                value.count = 0;
                self.taken -= 1;
            }
        }
        self.store.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::arch::InstructionSet;

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
    fn what_is_remembered_is_right_or_forgotten_on_every_path() {
        for path in InstructionSet::all_available() {
            let mut table = Table::new(1);
            for i in 0..40_000 {
                table.fill(&word(i), 10 * i as u32);
            }
            let n = 600_000;
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
            let found = Found { ids: &mut out, counts: &mut counts, count: true };
            // SAFETY: so were they made.
            let words = unsafe { Words::new(&text, &starts, &ends) };
            path.look_up(&mut table, words, found, &mut |table, word, key, out| {
                misses += 1;
                if !table.look_elsewhere(word, key, out) {
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
                let expected = if i < 40_000 && ids.len() == 1 { vec![10 * i as u32] } else { ids_of(i) };
                assert_eq!(ids, expected, "{} word {i}", path.name());
            }
            assert!(rest.is_empty() && counts.len() == 2 * n);
            assert!((n..2 * n).contains(&misses), "{misses} of {} words missed", 2 * n);
            let bytes = size_of_val(&table.lines[..]) + size_of_val(&table.store[..]);
            assert!(bytes <= MOST_BYTES, "{bytes}");
        }
    }
}
