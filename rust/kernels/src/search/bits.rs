//! Search over packed bits, by their Hamming distance, which is exact.
//!
//! Where an instruction counts the bits of all words of a vector, a row is compared with eight queries at once, else with
//! one after the other.

use std::ops::Range;

use super::top_k::{PanelOfBest, Scores};
use super::{Hit, Part, SearchRows, TopK, check_rows, search_parts};
use crate::Execution;
use crate::arch::{Kernel, Simd, run};
use crate::matrix::PANEL;

/// How many rows stay in the cache while the queries pass by.
const ROWS: usize = 64;

/// How many queries are compared at once: their words fill a vector of AVX-512.
const EIGHT: usize = 8;

/// With fewer queries, comparing a row with one after the other is faster.
const LEAST_AT_ONCE: usize = 4;

/// Returns for each query the `top_k` rows with the smallest Hamming distances, or all rows if there are fewer; the score of
/// a hit is minus the distance.
///
/// Queries and collection have rows of `width` bytes.
///
/// # Panics
///
/// If `width` is 0, or an array has no complete rows.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::search::bits::search;
/// use wordpiece_kernels::{Execution, InstructionSet};
///
/// let execution = Execution::on_this_thread(InstructionSet::detect());
/// let found = search(execution, &[0b1010], &[0b0101, 0b1011, 0b0000], 1, 2);
/// assert_eq!(found[0].iter().map(|hit| (hit.row, hit.score)).collect::<Vec<_>>(), [(1, -1.0), (2, -2.0)]);
/// ```
pub fn search(execution: Execution, queries: &[u8], collection: &[u8], width: usize, top_k: usize) -> Vec<Vec<Hit>> {
    check_rows(queries.len(), collection.len(), width);
    let (words, count, rows) = (width.div_ceil(8), queries.len() / width, collection.len() / width);
    if count < LEAST_AT_ONCE || !run(execution.instruction_set, CountsBitsOfVectors) {
        let queries = queries.chunks_exact(width).flat_map(|query| query.chunks(8).map(word)).collect();
        search_parts(execution, rows, width, count, top_k, &OneByOne { queries, collection, width })
    } else {
        let mut packed = vec![[0; EIGHT]; count.div_ceil(EIGHT) * words];
        for (i, query) in queries.chunks_exact(width).enumerate() {
            for (to, bytes) in packed[i / EIGHT * words..].iter_mut().zip(query.chunks(8)) {
                to[i % EIGHT] = word(bytes);
            }
        }
        search_parts(execution, rows, width, count, top_k, &EightAtOnce { queries: packed, collection, width })
    }
}

/// Asks the instruction set whether eight queries are compared at once.
struct CountsBitsOfVectors;

impl Kernel for CountsBitsOfVectors {
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        simd.counts_bits_of_vectors()
    }
}

/// Up to 8 bytes as a word, padded with zeros.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(padded)
}

struct OneByOne<'a> {
    /// [queries, ⌈width / 8⌉], padded with zeros.
    queries: Vec<u64>,
    collection: &'a [u8],
    width: usize,
}

impl Part for OneByOne<'_> {
    #[inline(always)]
    fn search<S: Simd>(&self, _: S, all: Range<usize>, best: &mut [TopK]) {
        let &OneByOne { ref queries, collection, width } = self;
        let words = width.div_ceil(8);
        for start in all.clone().step_by(ROWS) {
            let rows = &collection[start * width..all.end.min(start + ROWS) * width];
            for (query, best) in queries.chunks_exact(words).zip(&mut *best) {
                for (r, row) in rows.chunks_exact(width).enumerate() {
                    best.push(start + r, -f64::from(distance(query, row)));
                }
            }
        }
    }
}

/// The number of bits that differ.
#[inline(always)]
fn distance(query: &[u64], row: &[u8]) -> u32 {
    let (complete, rest) = row.as_chunks::<8>();
    let mut bits = 0;
    for (x, y) in query.iter().zip(complete) {
        bits += (x ^ u64::from_ne_bytes(*y)).count_ones();
    }
    if !rest.is_empty() {
        bits += (query[complete.len()] ^ word(rest)).count_ones();
    }
    bits
}

struct EightAtOnce<'a> {
    /// Word k of eight queries at a time, [⌈queries / 8⌉, ⌈width / 8⌉], padded with zeros.
    queries: Vec<[u64; EIGHT]>,
    collection: &'a [u8],
    width: usize,
}

impl Part for EightAtOnce<'_> {
    #[inline(always)]
    fn search<S: Simd>(&self, simd: S, rows: Range<usize>, best: &mut [TopK]) {
        simd.run_counting(CountBits(SearchRows { part: self, rows, best }));
    }
}

/// A search that is compiled with the instruction that counts bits, where the CPU has it.
struct CountBits<'a>(SearchRows<'a, EightAtOnce<'a>>);

impl Kernel for CountBits<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let SearchRows { part: EightAtOnce { queries, collection, width }, rows: all, best } = self.0;
        let words = width.div_ceil(8);
        let mut scores: Scores = [0.0; PANEL];
        for start in all.clone().step_by(ROWS) {
            let rows = &collection[start * width..all.end.min(start + ROWS) * width];
            for (queries, best) in queries.chunks(words * PANEL / EIGHT).zip(best.chunks_mut(PANEL)) {
                let mut best = PanelOfBest::new(best);
                for (r, row) in rows.chunks_exact(*width).enumerate() {
                    for (queries, to) in queries.chunks_exact(words).zip(scores.as_chunks_mut::<EIGHT>().0) {
                        *to = distances(simd, queries, row).map(|distance| -(distance as f64));
                    }
                    best.push(start + r, &scores);
                }
            }
        }
    }
}

/// The numbers of bits in which a row differs from each of eight queries.
#[inline(always)]
fn distances<S: Simd>(simd: S, queries: &[[u64; EIGHT]], row: &[u8]) -> [u64; EIGHT] {
    let (complete, rest) = row.as_chunks::<8>();
    let mut sums = [0; EIGHT];
    for (queries, y) in queries.iter().zip(complete) {
        simd.add_differing_bits(queries, u64::from_ne_bytes(*y), &mut sums);
    }
    if !rest.is_empty() {
        simd.add_differing_bits(&queries[complete.len()], word(rest), &mut sums);
    }
    sums
}
