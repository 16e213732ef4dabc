//! `bpe`: byte-pair encoding on characters, which merges the most frequent pair again and again (Sennrich, Haddow and
//! Birch, *Neural Machine Translation of Rare Words with Subword Units*, 2016). Hugging Face `tokenizers` calls this
//! WordPiece training.
//!
//! # Definition
//!
//! As in `WordPieceTrainer` of tokenizers 0.23.3 (`models/bpe/trainer.rs`). The one thing that is random there, the ids
//! of the continuation characters, is fixed here by [`Alphabet`](super::alphabet::Alphabet).
//!
//! 1. Each word is a sequence of symbols, at first its characters. Count the adjacent pairs of all words, each position
//!    once, weighted with the counts of the words.
//! 2. Choose the pair with the highest count; on a tie, the smaller left id, then the smaller right id.
//! 3. Stop if its count is below `min_frequency` (or 1), or the vocabulary has the requested size.
//! 4. Merge it in all words, from left to right without overlap. The text of the two together is a new token, unless
//!    there is a token with that text.
//! 5. Adjust the counts of the neighbouring pairs: each merge between L and R, in a word with count n, subtracts n from
//!    (L, a) and (b, R) and adds n to (L, ab) and (ab, R). Continue with 2.
//!
//! # Algorithm
//!
//! Counts only fall, except the counts of pairs with the new symbol, which get new heap entries. An entry may therefore
//! be out of date only by being too high, and it is enough to compare it with the true count (in `tally`) when it
//! reaches the top.
//!
//! - Most pairs are too rare ever to reach the top. They are kept in an unsorted list ([`PairQueue`]) until
//!   the best count in the heap has fallen to theirs.
//! - Each entry has the words that it was created from, so a merge reads only those words.
//! - The changes of a merge are summed by neighbour first ([`NeighbourChanges`]), so `tally` is accessed once for each
//!   neighbour and not once for each merge.
//!
//! # Cost
//!
//! The time is proportional to the length of all words that have a merged pair, summed over the merges. Memory is about
//! 12 bytes for each symbol of the distinct words, plus the pairs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use hashbrown::hash_map::Entry;

use super::neighbours::NeighbourChanges;
use super::pairs::{Pair, PairMap, PairOccurrences, all_pairs, pair, parts};
use super::progress::Monitor;
use super::symbols::SymbolWords;
use super::trained::Stop;
use super::vocab_builder::VocabBuilder;
use crate::error::Result;

/// A pair that may be merged, ordered by count, then by the smaller pair, then by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CountedPair {
    /// The count when the entry was created or last corrected; at least the true count.
    count: i64,
    pair: Reverse<Pair>,
    /// How many entries were pushed before. A pair has two entries at a time only where a merge recreated the text of
    /// an existing token, which happens only with words that contain `##`; then the older entry comes first.
    turn: Reverse<u32>,
    /// The index of the range of occurrences that has the words it was created from.
    range: u32,
}

/// The next batch of pairs that enters the heap has counts down to the best count divided by this.
const BATCH_RATIO: i64 = 4;

/// A priority queue whose heap is small: entries with counts below `bound` wait in a list.
#[derive(Debug, Default)]
struct PairQueue {
    heap: BinaryHeap<CountedPair>,
    bound: i64,
    waiting: Vec<CountedPair>,
    /// The number of entries pushed so far.
    turns: u32,
}

impl PairQueue {
    fn push(&mut self, count: i64, pair: Reverse<Pair>, range: u32) {
        let entry = CountedPair { count, pair, turn: Reverse(self.turns), range };
        self.turns = self.turns.wrapping_add(1);
        if entry.count >= self.bound {
            self.heap.push(entry);
        } else {
            self.waiting.push(entry);
        }
    }

    /// Removes and returns the greatest entry.
    fn pop(&mut self) -> Option<CountedPair> {
        // The heap holds exactly the entries at or above the bound, so its top is the greatest of all. When it is
        // empty, the bound falls and a batch of entries moves in.
        while self.heap.is_empty() && !self.waiting.is_empty() {
            let best = self.waiting.iter().map(|entry| entry.count).max().unwrap_or(0);
            self.bound = if best > BATCH_RATIO { best / BATCH_RATIO } else { i64::MIN };
            self.heap.extend(self.waiting.extract_if(.., |entry| entry.count >= self.bound));
        }
        self.heap.pop()
    }
}

/// Consecutive ranges of the list of occurrences, stored as their ends.
#[derive(Debug, Default)]
struct OccurrenceRanges {
    ends: Vec<usize>,
}

impl OccurrenceRanges {
    /// Adds the range from the end of the previous one to `end`; returns its index.
    fn push(&mut self, end: usize) -> u32 {
        self.ends.push(end);
        self.ends.len() as u32 - 1
    }

    fn get(&self, range: u32) -> Range<usize> {
        let start = if range == 0 { 0 } else { self.ends[range as usize - 1] };
        start..self.ends[range as usize]
    }
}

/// Appends tokens until there are `size`, or no pair is frequent enough.
pub(super) fn learn(
    words: &mut SymbolWords,
    vocab: &mut VocabBuilder,
    size: usize,
    min_frequency: u64,
    monitor: &mut Monitor<'_>,
) -> Result<Stop> {
    // Counts fit into 63 bits: the driver has checked that the sum over all characters does.
    let least = i64::try_from(min_frequency).unwrap_or(i64::MAX).max(1);
    let (pairs, mut occurrences) = all_pairs(words, monitor)?;
    let mut tally: PairMap<i64> = PairMap::default();
    let mut queue = PairQueue { bound: i64::MAX, ..PairQueue::default() };
    let mut ranges = OccurrenceRanges::default();
    for PairOccurrences { pair, weight, occurrences } in pairs {
        tally.insert(pair, weight as i64);
        queue.push(weight as i64, Reverse(pair), ranges.push(occurrences.end));
    }
    let mut changes = NeighbourChanges::default();
    let mut gained: Vec<(Pair, u32)> = Vec::new();
    while vocab.len() < size {
        monitor.step()?;
        let Some(top) = queue.pop() else { return Ok(Stop::NothingLeft) };
        let count = tally.get(&top.pair.0).copied().unwrap_or(0);
        if top.count != count {
            queue.push(count, top.pair, top.range);
            continue;
        }
        if top.count < least {
            return Ok(Stop::NothingLeft);
        }
        let (a, b) = parts(top.pair.0);
        let ab = vocab.add_merged(a, b);
        changes.merge_in_words(words, &occurrences[ranges.get(top.range)], (a, b), ab, monitor)?;
        // The tally of the merged pair itself is left as it was, as in `tokenizers`. It is read again only if a later
        // merge recreates one of its symbols.
        changes.drain(&mut occurrences, |is_left, sum, range| {
            let (loses, gains) = match is_left {
                true => (pair(sum.symbol, a), pair(sum.symbol, ab)),
                false => (pair(b, sum.symbol), pair(ab, sum.symbol)),
            };
            add(&mut tally, loses, -(sum.weight as i64));
            add(&mut tally, gains, sum.weight as i64);
            gained.push((gains, ranges.push(range.end)));
        });
        combine_repeated(&mut gained, pair(ab, ab), &mut ranges, &mut occurrences);
        for (gains, range) in gained.drain(..) {
            let count = tally.get(&gains).copied().unwrap_or(0);
            if count > 0 {
                queue.push(count, Reverse(gains), range);
            }
        }
        monitor.set_done(vocab.len() as u64);
    }
    Ok(Stop::SizeReached)
}

/// Adds `change` to the count of a pair. Pairs with count 0 are not stored.
fn add(tally: &mut PairMap<i64>, pair: Pair, change: i64) {
    match tally.entry(pair) {
        Entry::Occupied(mut entry) => {
            *entry.get_mut() += change;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
        Entry::Vacant(entry) => {
            entry.insert(change);
        }
    }
}

/// Combines two entries for the pair `twin` = (ab, ab) into one.
///
/// It is the only pair that can gain on both sides of a merge, and only if the text `ab` was a token before.
fn combine_repeated(
    gained: &mut Vec<(Pair, u32)>,
    twin: Pair,
    ranges: &mut OccurrenceRanges,
    occurrences: &mut Vec<u32>,
) {
    let mut repeated = gained.iter().filter(|one| one.0 == twin).map(|one| one.1);
    if let (Some(first), Some(second)) = (repeated.next(), repeated.next()) {
        occurrences.extend_from_within(ranges.get(first));
        occurrences.extend_from_within(ranges.get(second));
        gained.retain(|one| one.0 != twin);
        gained.push((twin, ranges.push(occurrences.len())));
    }
}
