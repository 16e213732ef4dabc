//! The suffixes of all words, numbered, and segmentation of the words into suffixes.

use std::hash::Hasher;

use hashbrown::HashTable;

use super::super::pairs::NumberHasher;
use super::super::progress::Monitor;
use super::super::vocab_builder::CONTINUATION_PREFIX;
use crate::error::Result;
use wordpiece_parallel::prefetch;

/// No suffix.
const NONE: u32 = u32::MAX;

/// The number of words that are segmented at the same time; see [`WordSuffixes::segment_all`].
const LANES: usize = 16;

/// The distinct non-empty suffixes of all words, numbered.
///
/// There are two kinds: *plain* suffixes, which are entire words, and *marked* ones, which begin inside a word and have
/// the continuation prefix as tokens. Plain suffixes come first and have the numbers of their words; marked suffixes
/// follow in string order. A suffix that is a prefix of another one of its kind therefore has the smaller number.
/// Without `include_joiner` there is one kind only, and all suffixes are marked.
pub(super) struct WordSuffixes<'a> {
    /// The words with their counts, in string order.
    words: Vec<(&'a str, u64)>,
    /// The prefix of marked suffixes; empty without `include_joiner`.
    prefix: &'static str,
    /// The number of the suffix at each character of each word, the words one after the other.
    at: Vec<u32>,
    /// For each word, the index in `at` of its first character; followed by the length of `at`.
    word_starts: Vec<usize>,
    /// For each suffix, a word that it occurs in and the byte where it begins.
    example: Vec<(u32, u32)>,
    /// For each suffix, its number of characters.
    char_len: Vec<u32>,
    /// For each suffix, the longest shorter suffix of the same kind that it begins with, or `NONE`.
    prefix_link: Vec<u32>,
    /// The number of plain suffixes, and the number of the first marked one.
    first_marked: u32,
    /// Pairs of a plain and a marked suffix that are the same token, because the word itself begins with the prefix.
    twins: Vec<(u32, u32)>,
}

/// The state of a suffix in a round. The two fields are read together, so they are stored together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SuffixCell {
    /// The weighted number of pieces that start at this suffix.
    pub count: u64,
    /// The number of characters of the longest piece that the suffix begins with.
    longest_piece: u32,
}

impl<'a> WordSuffixes<'a> {
    /// Numbers the suffixes of these words, which must be in string order.
    pub fn new(
        words: Vec<(&'a str, u64)>,
        include_joiner: bool,
        monitor: &mut Monitor<'_>,
    ) -> Result<WordSuffixes<'a>> {
        let first_marked = if include_joiner { words.len() as u32 } else { 0 };
        let mut suffixes = WordSuffixes {
            prefix: if include_joiner { CONTINUATION_PREFIX } else { "" },
            at: Vec::with_capacity(words.iter().map(|(word, _)| word.len()).sum()),
            word_starts: Vec::with_capacity(words.len() + 1),
            example: (0..first_marked).map(|word| (word, 0)).collect(),
            char_len: vec![0; first_marked as usize],
            prefix_link: Vec::new(),
            first_marked,
            twins: Vec::new(),
            words,
        };
        suffixes.number(monitor)?;
        suffixes.sort_marked();
        monitor.check()?;
        suffixes.link_prefixes();
        suffixes.find_twins();
        Ok(suffixes)
    }

    /// Numbers the distinct suffixes, marked ones in the order in which they are found.
    ///
    /// A marked suffix is a character followed by a shorter marked suffix, so going backwards through a word, two
    /// numbers identify it, and no text is hashed.
    fn number(&mut self, monitor: &mut Monitor<'_>) -> Result<()> {
        let has_plain = !self.prefix.is_empty();
        let hash = |(c, next): (char, u32)| {
            let mut hasher = NumberHasher::default();
            hasher.write_u64(u64::from(c as u32) << 32 | u64::from(next));
            hasher.finish()
        };
        // For each suffix, its first character and the suffix after it.
        let mut parts: Vec<(char, u32)> = vec![('\0', NONE); self.first_marked as usize];
        let mut numbers: HashTable<u32> = HashTable::new();
        let mut chars = Vec::new();
        for (i, (word, _)) in self.words.iter().enumerate() {
            monitor.step()?;
            self.word_starts.push(self.at.len());
            chars.clear();
            chars.extend(word.char_indices());
            let start = self.at.len();
            // The first entry stays as it is where the word itself is a plain suffix.
            self.at.resize(start + chars.len(), i as u32);
            let mut next = NONE;
            for (position, &(byte, c)) in chars.iter().enumerate().rev() {
                if position == 0 && has_plain {
                    self.char_len[i] = chars.len() as u32;
                    continue;
                }
                let number = numbers.entry(
                    hash((c, next)),
                    |&number| parts[number as usize] == (c, next),
                    |&number| hash(parts[number as usize]),
                );
                let number = *number.or_insert_with(|| parts.len() as u32).get();
                if number as usize == parts.len() {
                    parts.push((c, next));
                    self.example.push((i as u32, byte as u32));
                    self.char_len.push((chars.len() - position) as u32);
                }
                self.at[start + position] = number;
                next = number;
            }
        }
        self.word_starts.push(self.at.len());
        Ok(())
    }

    /// Renumbers the marked suffixes in string order.
    fn sort_marked(&mut self) {
        let first_marked = self.first_marked;
        let count = self.count() as u32;
        let mut order: Vec<(u64, u32)> =
            (first_marked..count).map(|number| (first_bytes(self.text(number)), number)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.text(a.1).cmp(self.text(b.1))));
        let mut new_number: Vec<u32> = (0..count).collect();
        (first_marked..).zip(&order).for_each(|(new, &(_, old))| new_number[old as usize] = new);
        self.at.iter_mut().for_each(|number| *number = new_number[*number as usize]);
        drop(new_number);
        let old_number = |new: u32| match new.checked_sub(first_marked) {
            Some(rank) => order[rank as usize].1 as usize,
            None => new as usize,
        };
        self.example = (0..count).map(|new| self.example[old_number(new)]).collect();
        self.char_len = (0..count).map(|new| self.char_len[old_number(new)]).collect();
    }

    /// Finds for each suffix the longest shorter one of its kind that it begins with.
    ///
    /// In string order, the prefixes of a suffix that are suffixes themselves are on a stack: each comes directly after
    /// its own longest prefix or after texts that begin with it.
    fn link_prefixes(&mut self) {
        let mut prefix_link = vec![NONE; self.count()];
        // The prefixes of the present suffix, the longest last.
        let mut open: Vec<u32> = Vec::new();
        for number in 0..self.count() as u32 {
            if number == self.first_marked {
                open.clear();
            }
            while open.last().is_some_and(|&last| !self.text(number).starts_with(self.text(last))) {
                open.pop();
            }
            prefix_link[number as usize] = open.last().copied().unwrap_or(NONE);
            open.push(number);
        }
        self.prefix_link = prefix_link;
    }

    /// Finds the words that begin with the continuation prefix: each is the same token as one of its marked suffixes.
    fn find_twins(&mut self) {
        let prefix = self.prefix;
        let is_twin = |&i: &usize| {
            let word = self.words[i].0;
            !prefix.is_empty() && word.len() > prefix.len() && word.starts_with(prefix)
        };
        let twins = (0..self.words.len()).filter(is_twin);
        self.twins = twins.map(|i| (i as u32, self.at[self.word_starts[i] + prefix.chars().count()])).collect();
    }

    /// Returns the number of suffixes.
    pub fn count(&self) -> usize {
        self.char_len.len()
    }

    /// Returns the number of the first marked suffix.
    pub fn first_marked(&self) -> u32 {
        self.first_marked
    }

    /// Returns the pairs of a plain and a marked suffix that are the same token.
    pub fn twins(&self) -> &[(u32, u32)] {
        &self.twins
    }

    /// Returns the text of a suffix, without the continuation prefix.
    fn text(&self, number: u32) -> &'a str {
        let (word, byte) = self.example[number as usize];
        &self.words[word as usize].0[byte as usize..]
    }

    /// Returns the token of a suffix: its text, with the continuation prefix if it is marked.
    pub fn token(&self, number: u32) -> String {
        let prefix = if number < self.first_marked { "" } else { self.prefix };
        format!("{prefix}{}", self.text(number))
    }

    /// Returns the suffixes with this token: none, one, or two that are twins.
    pub fn numbers_of(&self, token: &str) -> impl Iterator<Item = u32> {
        let find = |range: std::ops::Range<u32>, text: &str| {
            let (mut low, mut high) = (range.start, range.end);
            while low < high {
                let middle = low.midpoint(high);
                if self.text(middle) < text { low = middle + 1 } else { high = middle }
            }
            (low < range.end && self.text(low) == text).then_some(low)
        };
        let plain = find(0..self.first_marked, token);
        let marked = token.strip_prefix(self.prefix);
        let marked = marked.and_then(|text| find(self.first_marked..self.count() as u32, text));
        plain.into_iter().chain(marked)
    }

    /// Returns the counts of the first round, in which a piece starts at every character.
    pub fn first_counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.count()];
        for (i, &(_, n)) in self.words.iter().enumerate() {
            let suffixes = &self.at[self.word_starts[i]..self.word_starts[i + 1]];
            suffixes.iter().for_each(|&number| counts[number as usize] += n);
        }
        counts
    }

    /// Segments all words into the pieces `kept` and single characters, and sets the counts of `cells`.
    ///
    /// `kept` is changed: where one of two twins is kept, so is the marked one.
    pub fn count_round(&self, kept: &mut [bool], cells: &mut [SuffixCell], monitor: &mut Monitor<'_>) -> Result<()> {
        let plain_kept: Vec<bool> = self.twins.iter().map(|&(plain, _)| kept[plain as usize]).collect();
        for (&(_, marked), &plain) in self.twins.iter().zip(&plain_kept) {
            // Twins are one token. That the plain one may use the pieces of the marked one is ensured below.
            kept[marked as usize] |= plain;
        }
        for i in 0..cells.len() {
            let longest_piece = match (kept[i], self.prefix_link[i]) {
                (true, _) => self.char_len[i],
                (false, NONE) => 1,
                (false, link) => cells[link as usize].longest_piece,
            };
            cells[i] = SuffixCell { count: 0, longest_piece };
        }
        for &(plain, marked) in &self.twins {
            // A word that begins with the prefix may also begin with a marked piece, which is then read literally.
            let as_marked = CONTINUATION_PREFIX.chars().count() as u32 + cells[marked as usize].longest_piece;
            let cell = &mut cells[plain as usize];
            cell.longest_piece = cell.longest_piece.max(as_marked);
        }
        self.segment_all(cells, monitor)
    }

    /// Segments all words into their longest pieces and counts the suffixes at which the pieces start.
    ///
    /// The start of the next piece is known only when the cell of the present one has arrived from memory. [`LANES`]
    /// words are therefore segmented at the same time, so that their cache misses overlap.
    fn segment_all(&self, cells: &mut [SuffixCell], monitor: &mut Monitor<'_>) -> Result<()> {
        // For each lane, the position and the end of the word in `at`, and its count. Lanes `..live` have a word.
        let mut lanes = [(0, 0, 0u64); LANES];
        let (mut live, mut next) = (0, 0);
        loop {
            while live < LANES && next < self.words.len() {
                lanes[live] = (self.word_starts[next], self.word_starts[next + 1], self.words[next].1);
                (live, next) = (live + 1, next + 1);
            }
            if live == 0 {
                return Ok(());
            }
            let mut i = 0;
            while i < live {
                let (position, end, n) = &mut lanes[i];
                let cell = &mut cells[self.at[*position] as usize];
                cell.count += *n;
                *position += cell.longest_piece as usize;
                if position < end {
                    prefetch(cells.as_ptr().wrapping_add(self.at[*position] as usize));
                    i += 1;
                } else {
                    live -= 1;
                    lanes[i] = lanes[live];
                }
            }
            monitor.step()?;
        }
    }
}

/// Returns the first eight bytes as a number that is in string order; it decides most comparisons while sorting.
fn first_bytes(text: &str) -> u64 {
    let mut bytes = [0; 8];
    let n = text.len().min(8);
    bytes[..n].copy_from_slice(&text.as_bytes()[..n]);
    u64::from_be_bytes(bytes)
}
