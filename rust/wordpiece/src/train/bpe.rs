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
//! What makes it fast: counts only fall, except for pairs with the new symbol, and those get new entries in the heap. So an
//! entry may be out of date only by being too high, and it is enough to put it right when it comes to the top (`Entry`
//! against `tally`). Each entry carries the words it was made from, so joining reads those words and no others. What a
//! joint changes is summed up by neighbour first (`Neighbours`); the table of pairs is asked once for each neighbour, not
//! once for each joint.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::symbols::{Met, Neighbours, Pair, PairMap, Words, all_pairs, pair, parts};
use super::tokens::Tokens;
use super::{Stop, Watch};
use crate::error::Result;

/// A pair that may be joined: greatest first by count, then smallest by pair.
///
/// The count is what it was when the entry was made or last put right; the words are a range of the list of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    count: i64,
    pair: Reverse<Pair>,
    start: usize,
    len: u32,
}

/// Appends tokens until there are `size`.
pub(super) fn learn(
    words: &mut Words,
    tokens: &mut Tokens,
    size: usize,
    min_frequency: u64,
    watch: &mut Watch<'_>,
) -> Result<Stop> {
    // No count passes 63 bits: the alphabet has checked the sum of all.
    let least = i64::try_from(min_frequency).unwrap_or(i64::MAX).max(1);
    let (pairs, mut places) = all_pairs(words);
    let mut tally: PairMap<i64> = PairMap::default();
    let mut heap = BinaryHeap::with_capacity(pairs.len());
    for Met { pair, weight, places } in pairs {
        tally.insert(pair, weight as i64);
        heap.push(Entry { count: weight as i64, pair: Reverse(pair), start: places.start, len: places.len() as u32 });
    }
    let mut neighbours = Neighbours::default();
    let mut gained: Vec<(Pair, usize, u32)> = Vec::new();
    while tokens.len() < size {
        watch.step()?;
        let Some(mut top) = heap.pop() else { return Ok(Stop::NothingLeft) };
        let now = tally.get(&top.pair.0).copied().unwrap_or(0);
        if top.count != now {
            top.count = now;
            heap.push(top);
            continue;
        }
        if top.count < least {
            return Ok(Stop::NothingLeft);
        }
        let (a, b) = parts(top.pair.0);
        let ab = tokens.join(a, b);
        for &word in &places[top.start..top.start + top.len as usize] {
            neighbours.join(words, word, (a, b), ab);
            watch.step()?;
        }
        // The pair's own tally stays as it was, as in tokenizers: nothing asks for it again, unless its text is reused.
        neighbours.deal_out(&mut places, |is_left, sum, range| {
            let (lost, gains) = match is_left {
                true => (pair(sum.symbol, a), pair(sum.symbol, ab)),
                false => (pair(b, sum.symbol), pair(ab, sum.symbol)),
            };
            *tally.entry(lost).or_default() -= sum.weight as i64;
            *tally.entry(gains).or_default() += sum.weight as i64;
            gained.push((gains, range.start, range.len() as u32));
        });
        join_doubles(&mut gained, pair(ab, ab), &mut places);
        for (gains, start, len) in gained.drain(..) {
            let count = tally[&gains];
            if count > 0 {
                heap.push(Entry { count, pair: Reverse(gains), start, len });
            }
        }
        watch.done(tokens.len() as u64);
    }
    Ok(Stop::SizeReached)
}

/// Makes one entry of two for the same pair. Only the new symbol beside itself can gain on both sides, and only where its
/// text was a token before.
fn join_doubles(gained: &mut Vec<(Pair, usize, u32)>, twin: Pair, places: &mut Vec<u32>) {
    let mut doubles = gained.iter().filter(|one| one.0 == twin).copied();
    if let (Some(first), Some(second)) = (doubles.next(), doubles.next()) {
        let start = places.len();
        for (_, start, len) in [first, second] {
            places.extend_from_within(start..start + len as usize);
        }
        gained.retain(|one| one.0 != twin);
        gained.push((twin, start, first.2 + second.2));
    }
}
