//! `likelihood`: join the pair that gains most by being joined. Schuster & Nakajima's score (*Japanese and Korean Voice
//! Search*, 2012), in the form in which it is usually taught.
//!
//! Definition. Over the present segmentation of all words, f(x) is how often symbol x occurs and g(a, b) how often a and b
//! are neighbours, both weighted with the counts of the words.
//!
//! 1. Eligible are pairs with g ≥ `min_frequency` (and ≥ 1). The score is g(a, b) / (f(a) · f(b)).
//! 2. Take the highest score; of equal ones the larger g, then the smaller left id, then the smaller right id. Scores are
//!    compared as fractions of integers; no rounding decides.
//! 3. Join it in all words, from left to right, as `bpe` does; f and g are those of the new segmentation.
//! 4. Stop where the vocabulary is full or nothing is eligible.
//!
//! What makes it fast. Joining (a, b) lowers f(a) and f(b), which *raises* the score of every other pair with a or b, even
//! though nothing about that pair changed: a heap that is put right only at its top would miss them. So the heap is keyed
//! with an upper bound. For each symbol there is q(x) ≤ f(x) out of a coarse grid (numbers of a few leading bits); the bound
//! is g / (q(a) · q(b)). While f(x) stays at or above q(x) all bounds hold; when it falls below, q(x) goes down the grid and
//! the pairs of x get new entries. To choose, entries are taken from the heap while they may beat the best exact score seen
//! so far; those that did not win go back.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::symbols::{Met, Neighbours, Pair, PairMap, Words, all_pairs, pair, parts};
use super::tokens::Tokens;
use super::{Stop, Watch};
use crate::error::Result;

/// Leading bits that a number of the grid keeps. More of them make the bounds tighter, fewer make them last longer. Numbers
/// of so many bits are in the grid themselves, so the bounds of rare pairs, of which thousands tie, are exact.
const GRID_BITS: u32 = 5;

/// A numerator g and a denominator q(a) · q(b) below these make a quotient of floats that is equal to another such only
/// where the fractions are: two different ones are more than 2^-51 apart, relatively, and a float has 53 bits.
const EXACT: (u64, u128) = (1 << 20, 1 << 31);

/// More than what rounding makes of a quotient, relatively.
const HAIR: f64 = 4.0 * f64::EPSILON;

/// No list of places.
const NONE: u32 = u32::MAX;

/// A pair and how often it occurs.
#[derive(Debug, Clone, Copy)]
struct Known {
    pair: Pair,
    g: u64,
    /// The entry of the heap that counts is the one with this number; others are out of date.
    version: u32,
    /// The words it was met in: the last of its chunks. Some words may have it no more.
    chunk: u32,
}

/// Words in which a pair was met: a range of the list of places, and the chunk before.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    start: usize,
    len: u32,
    before: u32,
}

/// An upper bound on the rank of a pair.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// At least the score.
    bound: f64,
    /// At least g.
    g: u64,
    pair: Pair,
    index: u32,
    version: u32,
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        let key = |entry: &Entry| (entry.g, Reverse(entry.pair), entry.version);
        self.bound.total_cmp(&other.bound).then_with(|| key(self).cmp(&key(other)))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

/// The best pair so far.
struct Best {
    /// What was taken from the heap.
    entry: Entry,
    g: u64,
    /// f(a) · f(b).
    denominator: u128,
    /// At most the score; the score itself where `exact`.
    low: f64,
    exact: bool,
}

impl Best {
    /// Whether a pair with this bound may be better.
    fn may_lose_to(&self, entry: &Entry) -> bool {
        match entry.bound.total_cmp(&self.low) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => !self.exact || (entry.g, Reverse(entry.pair)) > (self.g, Reverse(self.entry.pair)),
        }
    }

    /// Whether a pair with this score is better.
    fn loses_to(&self, g: u64, denominator: u128, pair: Pair) -> bool {
        let by_score = product(g, self.denominator).cmp(&product(self.g, denominator));
        by_score.then_with(|| (g, Reverse(pair)).cmp(&(self.g, Reverse(self.entry.pair)))) == Ordering::Greater
    }
}

/// A product of 192 bits: the upper 128 and the lower 64.
fn product(a: u64, b: u128) -> (u128, u64) {
    let low = u128::from(a) * u128::from(b as u64);
    (u128::from(a) * (b >> 64) + (low >> 64), low as u64)
}

/// A quotient as a float, and whether it is told apart from all other such.
fn quotient(g: u64, denominator: u128) -> (f64, bool) {
    (g as f64 / denominator as f64, g < EXACT.0 && denominator < EXACT.1)
}

/// The largest number of the grid that is not above `f`.
fn floor_to_grid(f: u64) -> u64 {
    let extra = (u64::BITS - f.leading_zeros()).saturating_sub(GRID_BITS);
    f >> extra << extra
}

/// What is known about the symbols and pairs of the present segmentation.
#[derive(Default)]
struct State {
    least: u64,
    f: Vec<u64>,
    q: Vec<u64>,
    known: Vec<Known>,
    index: PairMap<u32>,
    /// For each symbol the pairs that have it; one that occurs no more leaves the list when it is next read.
    pairs_of: Vec<Vec<u32>>,
    heap: BinaryHeap<Entry>,
    chunks: Vec<Chunk>,
}

impl State {
    fn new(words: &Words, least: u64, symbols: usize, watch: &mut Watch<'_>) -> Result<(State, Vec<u32>)> {
        let mut state = State { least, ..State::default() };
        state.room_for(symbols);
        for word in words.iter() {
            for &symbol in words.symbols(word) {
                state.f[symbol as usize] += words.count(word);
            }
        }
        state.q = state.f.iter().map(|&f| floor_to_grid(f)).collect();
        let (pairs, places) = all_pairs(words, watch)?;
        for Met { pair, weight, places } in pairs {
            state.gain(pair, weight, places.start, places.len() as u32);
        }
        Ok((state, places))
    }

    fn room_for(&mut self, symbols: usize) {
        self.f.resize(symbols, 0);
        self.q.resize(symbols, 0);
        self.pairs_of.resize_with(symbols, Vec::new);
    }

    /// A pair occurs more often, in these places; it gets an entry.
    fn gain(&mut self, pair: Pair, weight: u64, start: usize, len: u32) {
        let State { known, index, pairs_of, .. } = self;
        let i = *index.entry(pair).or_insert_with(|| {
            let i = known.len() as u32;
            let (a, b) = parts(pair);
            pairs_of[a as usize].push(i);
            if a != b {
                pairs_of[b as usize].push(i);
            }
            known.push(Known { pair, g: 0, version: 0, chunk: NONE });
            i
        });
        let one = &mut self.known[i as usize];
        one.g += weight;
        self.chunks.push(Chunk { start, len, before: one.chunk });
        one.chunk = self.chunks.len() as u32 - 1;
        self.enter(i);
    }

    /// Puts a new entry for a pair into the heap; what was there for it is out of date.
    fn enter(&mut self, i: u32) {
        let one = &mut self.known[i as usize];
        one.version += 1;
        if one.g >= self.least {
            let (a, b) = parts(one.pair);
            let denominator = u128::from(self.q[a as usize]) * u128::from(self.q[b as usize]);
            let (bound, exact) = quotient(one.g, denominator);
            let bound = if exact { bound } else { bound * (1.0 + HAIR) };
            self.heap.push(Entry { bound, g: one.g, pair: one.pair, index: i, version: one.version });
        }
    }

    /// Takes the best pair out of the heap.
    fn choose(&mut self, tried: &mut Vec<Entry>) -> Option<Entry> {
        let mut best: Option<Best> = None;
        while let Some(&top) = self.heap.peek() {
            if best.as_ref().is_some_and(|best| !best.may_lose_to(&top)) {
                break;
            }
            self.heap.pop();
            let one = &self.known[top.index as usize];
            if one.version != top.version || one.g < self.least {
                continue;
            }
            let (a, b) = parts(one.pair);
            let denominator = u128::from(self.f[a as usize]) * u128::from(self.f[b as usize]);
            if best.as_ref().is_none_or(|best| best.loses_to(one.g, denominator, one.pair)) {
                let (score, exact) = quotient(one.g, denominator);
                let low = if exact { score } else { score * (1.0 - HAIR) };
                let lost = best.replace(Best { entry: top, g: one.g, denominator, low, exact });
                tried.extend(lost.map(|lost| lost.entry));
            } else {
                tried.push(top);
            }
        }
        for entry in tried.drain(..) {
            self.enter(entry.index);
        }
        best.map(|best| best.entry)
    }

    /// A symbol occurs less often. Where that takes it below its number of the grid, all its pairs get new entries.
    fn lose(&mut self, symbol: u32) {
        let (f, q) = (self.f[symbol as usize], &mut self.q[symbol as usize]);
        if f >= *q {
            return;
        }
        *q = floor_to_grid(f);
        let mut pairs = std::mem::take(&mut self.pairs_of[symbol as usize]);
        pairs.retain(|&i| {
            let Known { pair, g, .. } = self.known[i as usize];
            if g > 0 {
                self.enter(i);
            } else if self.index.get(&pair) == Some(&i) {
                // Should it come back, it is a pair that was never met.
                self.index.remove(&pair);
            }
            g > 0
        });
        self.pairs_of[symbol as usize] = pairs;
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
    let (mut state, mut places) = State::new(words, min_frequency.max(1), tokens.len(), watch)?;
    let mut neighbours = Neighbours::default();
    let mut tried = Vec::new();
    let mut gained: Vec<(Pair, u64, usize, u32)> = Vec::new();
    let mut lost: Vec<(Pair, u64)> = Vec::new();
    while tokens.len() < size {
        watch.step()?;
        let Some(chosen) = state.choose(&mut tried) else { return Ok(Stop::NothingLeft) };
        let (a, b) = parts(chosen.pair);
        let ab = tokens.join(a, b);
        state.room_for(tokens.len());
        let mut joined = 0;
        let mut chunk = state.known[chosen.index as usize].chunk;
        while chunk != NONE {
            let Chunk { start, len, before } = state.chunks[chunk as usize];
            joined += neighbours.join_all(words, &places[start..start + len as usize], (a, b), ab, watch)?;
            chunk = before;
        }
        let one = &mut state.known[chosen.index as usize];
        (one.g, one.chunk) = (one.g - joined, NONE);
        state.f[a as usize] -= joined;
        state.f[b as usize] -= joined;
        state.f[ab as usize] += joined;
        if state.q[ab as usize] == 0 {
            state.q[ab as usize] = floor_to_grid(state.f[ab as usize]);
        }
        neighbours.deal_out(&mut places, |is_left, sum, range| {
            let (less, more) = match is_left {
                true => (pair(sum.symbol, a), pair(sum.symbol, ab)),
                false => (pair(b, sum.symbol), pair(ab, sum.symbol)),
            };
            lost.push((less, sum.weight));
            gained.push((more, sum.weight, range.start, range.len() as u32));
        });
        // Gains first: a pair may gain and lose in one word, and no count is ever negative.
        for (pair, weight, start, len) in gained.drain(..) {
            state.gain(pair, weight, start, len);
        }
        for (pair, weight) in lost.drain(..) {
            let i = state.index[&pair];
            state.known[i as usize].g -= weight;
        }
        state.lose(a);
        state.lose(b);
        watch.done(tokens.len() as u64);
    }
    Ok(Stop::SizeReached)
}
