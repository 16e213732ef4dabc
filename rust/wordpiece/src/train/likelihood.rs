//! `likelihood`: merges the pair whose merging increases the likelihood of the text most (Schuster and Nakajima,
//! *Japanese and Korean Voice Search*, 2012), in the form in which the score is usually taught.
//!
//! # Definition
//!
//! In the present segmentation of all words, f(x) is how often the symbol x occurs and g(a, b) how often a and b are
//! adjacent, both weighted with the counts of the words.
//!
//! 1. A pair is eligible if g ≥ `min_frequency` (and ≥ 1). Its score is g(a, b) / (f(a) · f(b)).
//! 2. Choose the pair with the highest score; on a tie, the larger g, then the smaller left id, then the smaller right
//!    id. Scores are compared as fractions of integers, so rounding never decides.
//! 3. Merge it in all words as [`bpe`](super::bpe) does; f and g then describe the new segmentation.
//! 4. Stop if the vocabulary has the requested size or no pair is eligible.
//!
//! # Algorithm
//!
//! Merging (a, b) lowers f(a) and f(b), which *raises* the score of every other pair with a or b although nothing else
//! about that pair changed. A heap that is corrected only at its top, as in `bpe`, would miss them. The heap is
//! therefore ordered by an upper bound of the score. Each symbol has a lower bound q(x) ≤ f(x) from a coarse grid
//! (numbers with [`GRID_BITS`] significant bits), and the bound of a pair is g / (q(a) · q(b)).
//!
//! - While f(x) stays at or above q(x), all bounds hold. When it falls below, q(x) moves down the grid and the pairs of
//!   x get new entries.
//! - To choose a pair, entries are popped as long as their bound may beat the best exact score so far; the others are
//!   pushed back. That takes about ten pops for each merge.
//!
//! # Cost
//!
//! As `bpe`, plus the entries that are renewed when a symbol moves down the grid: about ten for each merge.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::neighbours::NeighbourChanges;
use super::pairs::{Pair, PairMap, PairOccurrences, all_pairs, pair, parts};
use super::progress::Monitor;
use super::symbols::SymbolWords;
use super::trained::Stop;
use super::vocab_builder::VocabBuilder;
use crate::error::Result;

/// The significant bits of the numbers of the grid. More bits make the bounds tighter, fewer make them last longer.
/// Numbers of at most this many bits are in the grid themselves, so the bounds of rare pairs, of which thousands tie,
/// are exact.
const GRID_BITS: u32 = 5;

/// Limits on the numerator g and the denominator q(a) · q(b) below which two quotients, rounded to floats, are equal
/// only if the fractions are: different fractions differ by more than 2⁻⁵¹ relatively, and a float has 53 significant
/// bits.
const EXACT_BELOW: (u64, u128) = (1 << 20, 1 << 31);

/// More than the relative rounding error of a quotient.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// The end of a list of chunks.
const NONE: u32 = u32::MAX;

/// A pair that occurs or has occurred.
#[derive(Debug, Clone, Copy)]
struct PairState {
    pair: Pair,
    /// g: how often it occurs.
    g: u64,
    /// The number of its latest heap entry; entries with other numbers are out of date.
    version: u32,
    /// The last chunk of the words it was seen in. In some of them it may no longer occur.
    chunk: u32,
}

/// Words in which a pair was seen: a range of the list of occurrences, and the previous chunk of the same pair.
#[derive(Debug, Clone, Copy)]
struct OccurrenceChunk {
    start: usize,
    len: u32,
    previous: u32,
}

/// An upper bound of the rank of a pair; ordered like the rank itself, by score, then g, then the smaller pair.
#[derive(Debug, Clone, Copy)]
struct BoundedPair {
    /// At least the score.
    bound: f64,
    /// At least the present g.
    g: u64,
    pair: Pair,
    /// The index of the pair in [`PairScores::pairs`].
    index: u32,
    version: u32,
}

impl Ord for BoundedPair {
    fn cmp(&self, other: &BoundedPair) -> Ordering {
        let tie_break = |entry: &BoundedPair| (entry.g, Reverse(entry.pair), entry.version);
        self.bound.total_cmp(&other.bound).then_with(|| tie_break(self).cmp(&tie_break(other)))
    }
}

impl PartialOrd for BoundedPair {
    fn partial_cmp(&self, other: &BoundedPair) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for BoundedPair {
    fn eq(&self, other: &BoundedPair) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for BoundedPair {}

/// The best pair found so far while choosing.
struct BestPair {
    /// The heap entry it was popped as.
    entry: BoundedPair,
    g: u64,
    /// f(a) · f(b).
    denominator: u128,
    /// At most the score; equal to it if `exact`.
    lower_bound: f64,
    exact: bool,
}

impl BestPair {
    /// Returns whether a pair with this bound may be better.
    fn may_lose_to(&self, entry: &BoundedPair) -> bool {
        match entry.bound.total_cmp(&self.lower_bound) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => !self.exact || (entry.g, Reverse(entry.pair)) > (self.g, Reverse(self.entry.pair)),
        }
    }

    /// Returns whether a pair with this score is better, in exact arithmetic.
    fn loses_to(&self, g: u64, denominator: u128, pair: Pair) -> bool {
        let by_score = wide_product(g, self.denominator).cmp(&wide_product(self.g, denominator));
        by_score.then_with(|| (g, Reverse(pair)).cmp(&(self.g, Reverse(self.entry.pair)))) == Ordering::Greater
    }
}

/// Returns a product of up to 192 bits as its upper 128 and lower 64 bits, so that tuples compare like products.
fn wide_product(a: u64, b: u128) -> (u128, u64) {
    let low = u128::from(a) * u128::from(b as u64);
    (u128::from(a) * (b >> 64) + (low >> 64), low as u64)
}

/// Returns a quotient as a float, and whether equal floats mean equal fractions (see [`EXACT_BELOW`]).
fn quotient(g: u64, denominator: u128) -> (f64, bool) {
    (g as f64 / denominator as f64, g < EXACT_BELOW.0 && denominator < EXACT_BELOW.1)
}

/// Returns the largest number of the grid that is at most `f`: `f` with all but its leading bits cleared.
fn floor_to_grid(f: u64) -> u64 {
    let extra = (u64::BITS - f.leading_zeros()).saturating_sub(GRID_BITS);
    f >> extra << extra
}

/// The frequencies of symbols and pairs in the present segmentation, and the heap of pairs.
///
/// Invariants, between merges: `f[x]` is the frequency of x; q(x) ≤ f(x); every pair with g ≥ `least` has an entry with
/// its latest version, whose bound is at least its score.
#[derive(Default)]
struct PairScores {
    /// Pairs with a smaller g are not eligible.
    least: u64,
    /// f, by symbol.
    f: Vec<u64>,
    /// q, by symbol.
    q: Vec<u64>,
    pairs: Vec<PairState>,
    /// The index of each pair in `pairs`.
    index: PairMap<u32>,
    /// For each symbol, the indices of the pairs that have it. A pair that no longer occurs is removed when the list is
    /// read next.
    pairs_of: Vec<Vec<u32>>,
    heap: BinaryHeap<BoundedPair>,
    chunks: Vec<OccurrenceChunk>,
}

impl PairScores {
    /// Counts the symbols and pairs of all words; also returns the list of occurrences.
    fn new(
        words: &SymbolWords,
        least: u64,
        symbols: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<(PairScores, Vec<u32>)> {
        let mut scores = PairScores { least, ..PairScores::default() };
        scores.resize(symbols);
        for word in words.iter() {
            for &symbol in words.symbols(word) {
                scores.f[symbol as usize] += words.count(word);
            }
        }
        scores.q = scores.f.iter().map(|&f| floor_to_grid(f)).collect();
        let (pairs, occurrences) = all_pairs(words, monitor)?;
        for PairOccurrences { pair, weight, occurrences } in pairs {
            scores.increase(pair, weight, occurrences.start, occurrences.len() as u32);
        }
        Ok((scores, occurrences))
    }

    /// Makes the lists long enough for this many symbols.
    fn resize(&mut self, symbols: usize) {
        self.f.resize(symbols, 0);
        self.q.resize(symbols, 0);
        self.pairs_of.resize_with(symbols, Vec::new);
    }

    /// Adds `weight` to the frequency of a pair, which occurs in this range of the list of occurrences.
    fn increase(&mut self, pair: Pair, weight: u64, start: usize, len: u32) {
        let PairScores { pairs, index, pairs_of, .. } = self;
        let i = *index.entry(pair).or_insert_with(|| {
            let i = pairs.len() as u32;
            let (a, b) = parts(pair);
            pairs_of[a as usize].push(i);
            if a != b {
                pairs_of[b as usize].push(i);
            }
            pairs.push(PairState { pair, g: 0, version: 0, chunk: NONE });
            i
        });
        let state = &mut self.pairs[i as usize];
        state.g += weight;
        self.chunks.push(OccurrenceChunk { start, len, previous: state.chunk });
        state.chunk = self.chunks.len() as u32 - 1;
        self.push_entry(i);
    }

    /// Pushes a new heap entry for a pair if it is eligible; its earlier entries become out of date.
    fn push_entry(&mut self, i: u32) {
        let state = &mut self.pairs[i as usize];
        state.version += 1;
        if state.g >= self.least {
            let (a, b) = parts(state.pair);
            let denominator = u128::from(self.q[a as usize]) * u128::from(self.q[b as usize]);
            let (bound, exact) = quotient(state.g, denominator);
            let bound = if exact { bound } else { bound * (1.0 + ROUNDING) };
            self.heap.push(BoundedPair { bound, g: state.g, pair: state.pair, index: i, version: state.version });
        }
    }

    /// Removes the best pair from the heap and returns it. `tried` is a buffer that is empty before and after.
    fn choose(&mut self, tried: &mut Vec<BoundedPair>) -> Option<BoundedPair> {
        let mut best: Option<BestPair> = None;
        while let Some(&top) = self.heap.peek() {
            if best.as_ref().is_some_and(|best| !best.may_lose_to(&top)) {
                break;
            }
            self.heap.pop();
            let state = &self.pairs[top.index as usize];
            if state.version != top.version || state.g < self.least {
                continue;
            }
            let (a, b) = parts(state.pair);
            let denominator = u128::from(self.f[a as usize]) * u128::from(self.f[b as usize]);
            if best.as_ref().is_none_or(|best| best.loses_to(state.g, denominator, state.pair)) {
                let (score, exact) = quotient(state.g, denominator);
                let lower_bound = if exact { score } else { score * (1.0 - ROUNDING) };
                let previous = best.replace(BestPair { entry: top, g: state.g, denominator, lower_bound, exact });
                tried.extend(previous.map(|previous| previous.entry));
            } else {
                tried.push(top);
            }
        }
        for entry in tried.drain(..) {
            self.push_entry(entry.index);
        }
        best.map(|best| best.entry)
    }

    /// Restores q(x) ≤ f(x) after f(x) has fallen. If q(x) has to move down the grid, all pairs of x get new entries.
    fn lower_bound_of(&mut self, symbol: u32) {
        let (f, q) = (self.f[symbol as usize], &mut self.q[symbol as usize]);
        if f >= *q {
            return;
        }
        *q = floor_to_grid(f);
        let mut pairs = std::mem::take(&mut self.pairs_of[symbol as usize]);
        pairs.retain(|&i| {
            let PairState { pair, g, .. } = self.pairs[i as usize];
            if g > 0 {
                self.push_entry(i);
            } else if self.index.get(&pair) == Some(&i) {
                // If the pair occurs again, it gets a new state.
                self.index.remove(&pair);
            }
            g > 0
        });
        self.pairs_of[symbol as usize] = pairs;
    }

    /// Merges a pair in all words it was seen in, and adjusts its own frequency and the frequencies of its symbols. The
    /// frequencies of the neighbouring pairs follow from `changes`.
    fn merge(
        &mut self,
        chosen: BoundedPair,
        ab: u32,
        words: &mut SymbolWords,
        occurrences: &[u32],
        changes: &mut NeighbourChanges,
        monitor: &mut Monitor<'_>,
    ) -> Result<()> {
        let (a, b) = parts(chosen.pair);
        let mut merged = 0;
        let mut chunk = self.pairs[chosen.index as usize].chunk;
        while chunk != NONE {
            let OccurrenceChunk { start, len, previous } = self.chunks[chunk as usize];
            let chunk_words = &occurrences[start..start + len as usize];
            merged += changes.merge_in_words(words, chunk_words, (a, b), ab, monitor)?;
            chunk = previous;
        }
        let state = &mut self.pairs[chosen.index as usize];
        (state.g, state.chunk) = (state.g - merged, NONE);
        self.f[a as usize] -= merged;
        self.f[b as usize] -= merged;
        self.f[ab as usize] += merged;
        if self.q[ab as usize] == 0 {
            self.q[ab as usize] = floor_to_grid(self.f[ab as usize]);
        }
        Ok(())
    }
}

/// Appends tokens until there are `size`, or no pair is eligible.
pub(super) fn learn(
    words: &mut SymbolWords,
    vocab: &mut VocabBuilder,
    size: usize,
    min_frequency: u64,
    monitor: &mut Monitor<'_>,
) -> Result<Stop> {
    let (mut scores, mut occurrences) = PairScores::new(words, min_frequency.max(1), vocab.len(), monitor)?;
    let mut changes = NeighbourChanges::default();
    let mut tried = Vec::new();
    let mut gained: Vec<(Pair, u64, usize, u32)> = Vec::new();
    let mut lost: Vec<(Pair, u64)> = Vec::new();
    while vocab.len() < size {
        monitor.step()?;
        let Some(chosen) = scores.choose(&mut tried) else { return Ok(Stop::NothingLeft) };
        let (a, b) = parts(chosen.pair);
        let ab = vocab.add_merged(a, b);
        scores.resize(vocab.len());
        scores.merge(chosen, ab, words, &occurrences, &mut changes, monitor)?;
        changes.drain(&mut occurrences, |is_left, sum, range| {
            let (loses, gains) = match is_left {
                true => (pair(sum.symbol, a), pair(sum.symbol, ab)),
                false => (pair(b, sum.symbol), pair(ab, sum.symbol)),
            };
            lost.push((loses, sum.weight));
            gained.push((gains, sum.weight, range.start, range.len() as u32));
        });
        // Gains first: a pair may gain and lose in the same word, and g must not fall below 0 in between.
        for (pair, weight, start, len) in gained.drain(..) {
            scores.increase(pair, weight, start, len);
        }
        for (pair, weight) in lost.drain(..) {
            let i = scores.index[&pair];
            scores.pairs[i as usize].g -= weight;
        }
        scores.lower_bound_of(a);
        scores.lower_bound_of(b);
        monitor.set_done(vocab.len() as u64);
    }
    Ok(Stop::SizeReached)
}
