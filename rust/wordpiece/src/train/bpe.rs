//! `bpe`: join the most frequent pair, again and again. What Hugging Face `tokenizers` calls WordPiece training.
//!
//! Definition, as in `WordPieceTrainer` of tokenizers 0.23.3 (`models/bpe/trainer.rs`), with the one thing that is random
//! there, the ids of the continuation characters, fixed:
//!
//! 1. Each word is a list of symbols, at first its characters. Count the adjacent pairs of all words, each place once.
//! 2. Take the pair with the highest count; of equal ones that with the smaller left id, then the smaller right id.
//! 3. Stop where its count is below `min_frequency` (or 1), or the vocabulary is full.
//! 4. Join it in all words. The text of the two together is a new token, unless there is one with that text.
//! 5. Adjust the counts of the neighbouring pairs: a joint takes from (L, a) and (b, R), and gives to (L, ab) and (ab, R).
//!
//! What makes it fast: counts only fall, except for pairs with the new symbol, and those get new entries. So an entry may be
//! out of date only by being too high, and it is enough to put it right when it comes to the top (its count against the
//! `tally`). Most pairs are too rare ever to come there; they wait in a plain list (`Queue`) until the best are as rare as
//! they. Each entry carries the words it was made from, so joining reads those words and no others. What a joint changes is
//! summed up by neighbour first (`Neighbours`); the table of pairs is asked once for each neighbour, not once for each joint.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use hashbrown::hash_map::Entry;

use super::symbols::{Met, Neighbours, Pair, PairMap, Words, all_pairs, pair, parts};
use super::tokens::Tokens;
use super::{Stop, Watch};
use crate::error::Result;

/// A pair that may be joined: greatest first by count, then smallest by pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// What it was when the entry was made or last put right.
    count: i64,
    pair: Reverse<Pair>,
    /// How many were pushed before. A pair has two entries at a time only where the text of a joined pair was a token before,
    /// which takes words with `##` in them; then the older one comes first.
    turn: Reverse<u32>,
    /// The words it was made from: the number of their range in the list of places.
    range: u32,
}

/// How much rarer than the best in the heap the pairs may be that come into it next.
const STEP: i64 = 4;

/// All entries. Those with smaller counts than `bound` wait outside the heap, which is therefore small.
#[derive(Debug, Default)]
struct Queue {
    heap: BinaryHeap<Candidate>,
    bound: i64,
    waiting: Vec<Candidate>,
    turns: u32,
}

impl Queue {
    fn push(&mut self, count: i64, pair: Reverse<Pair>, range: u32) {
        let entry = Candidate { count, pair, turn: Reverse(self.turns), range };
        self.turns = self.turns.wrapping_add(1);
        if entry.count >= self.bound {
            self.heap.push(entry);
        } else {
            self.waiting.push(entry);
        }
    }

    fn pop(&mut self) -> Option<Candidate> {
        // What is put right and pushed back may fall below the bound, but nothing in the heap ever stands below it.
        while self.heap.is_empty() && !self.waiting.is_empty() {
            let best = self.waiting.iter().map(|entry| entry.count).max().unwrap_or(0);
            self.bound = if best > STEP { best / STEP } else { i64::MIN };
            self.heap.extend(self.waiting.extract_if(.., |entry| entry.count >= self.bound));
        }
        self.heap.pop()
    }
}

/// The words of entries, as ranges of one list, one after the other.
#[derive(Debug, Default)]
struct Ranges {
    ends: Vec<usize>,
}

impl Ranges {
    /// Numbers the range that ends here and begins where the last one ends.
    fn push(&mut self, end: usize) -> u32 {
        self.ends.push(end);
        self.ends.len() as u32 - 1
    }

    fn get(&self, range: u32) -> Range<usize> {
        let start = if range == 0 { 0 } else { self.ends[range as usize - 1] };
        start..self.ends[range as usize]
    }
}

/// Appends tokens until there are `size`.
pub(super) fn learn(
    words: &mut Words,
    tokens: &mut Tokens,
    size: usize,
    min_frequency: u64,
    watch: &mut Watch<'_>,
) -> Result<Stop> {
    // No count passes 63 bits: the sum of all does not.
    let least = i64::try_from(min_frequency).unwrap_or(i64::MAX).max(1);
    let (pairs, mut places) = all_pairs(words, watch)?;
    let mut tally: PairMap<i64> = PairMap::default();
    let mut queue = Queue { bound: i64::MAX, ..Queue::default() };
    let mut ranges = Ranges::default();
    for Met { pair, weight, places } in pairs {
        tally.insert(pair, weight as i64);
        queue.push(weight as i64, Reverse(pair), ranges.push(places.end));
    }
    let mut neighbours = Neighbours::default();
    let mut gained: Vec<(Pair, u32)> = Vec::new();
    while tokens.len() < size {
        watch.step()?;
        let Some(top) = queue.pop() else { return Ok(Stop::NothingLeft) };
        let now = tally.get(&top.pair.0).copied().unwrap_or(0);
        if top.count != now {
            queue.push(now, top.pair, top.range);
            continue;
        }
        if top.count < least {
            return Ok(Stop::NothingLeft);
        }
        let (a, b) = parts(top.pair.0);
        let ab = tokens.join(a, b);
        neighbours.join_all(words, &places[ranges.get(top.range)], (a, b), ab, watch)?;
        // The pair's own tally stays as it was, as in tokenizers: nothing asks for it again, unless its text is reused.
        neighbours.deal_out(&mut places, |is_left, sum, range| {
            let (lost, gains) = match is_left {
                true => (pair(sum.symbol, a), pair(sum.symbol, ab)),
                false => (pair(b, sum.symbol), pair(ab, sum.symbol)),
            };
            add(&mut tally, lost, -(sum.weight as i64));
            add(&mut tally, gains, sum.weight as i64);
            gained.push((gains, ranges.push(range.end)));
        });
        join_doubles(&mut gained, pair(ab, ab), &mut ranges, &mut places);
        for (gains, range) in gained.drain(..) {
            let count = tally.get(&gains).copied().unwrap_or(0);
            if count > 0 {
                queue.push(count, Reverse(gains), range);
            }
        }
        watch.done(tokens.len() as u64);
    }
    Ok(Stop::SizeReached)
}

/// Changes a count; what is not in the table counts 0, and takes no room.
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

/// Makes one entry of two for the same pair. Only the new symbol beside itself can gain on both sides, and only where its
/// text was a token before.
fn join_doubles(gained: &mut Vec<(Pair, u32)>, twin: Pair, ranges: &mut Ranges, places: &mut Vec<u32>) {
    let mut doubles = gained.iter().filter(|one| one.0 == twin).map(|one| one.1);
    if let (Some(first), Some(second)) = (doubles.next(), doubles.next()) {
        places.extend_from_within(ranges.get(first));
        places.extend_from_within(ranges.get(second));
        gained.retain(|one| one.0 != twin);
        gained.push((twin, ranges.push(places.len())));
    }
}
