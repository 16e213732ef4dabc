//! Search over quantized vectors: packed bits by their Hamming distance, 8-bit numbers by their inner product.
//!
//! Both are whole numbers and exact. The loops are plain Rust: compiled with the features of an instruction set they become
//! its byte operations.

use std::ops::Range;

use super::{Hit, Part, TopK, search_parts};
use crate::Execution;
use crate::arch::{InstructionSet, Kernel, Simd, run};

/// How many rows stay in the cache while the queries pass by.
const ROWS: usize = 64;

/// The products of this many pairs of 8-bit numbers have a sum below 2³¹.
const EXACT: usize = 1 << 14;

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
/// use wordpiece_kernels::search::integers::search_bits;
/// use wordpiece_kernels::{Execution, InstructionSet};
///
/// let execution = Execution::on_this_thread(InstructionSet::detect());
/// let found = search_bits(execution, &[0b1010], &[0b0101, 0b1011, 0b0000], 1, 2);
/// assert_eq!(found[0].iter().map(|hit| (hit.row, hit.score)).collect::<Vec<_>>(), [(1, -1.0), (2, -2.0)]);
/// ```
pub fn search_bits(
    execution: Execution,
    queries: &[u8],
    collection: &[u8],
    width: usize,
    top_k: usize,
) -> Vec<Vec<Hit>> {
    check(queries, collection, width);
    let words = width.div_ceil(8);
    let mut padded = vec![0; words * (queries.len() / width)];
    for (query, to) in queries.chunks_exact(width).zip(padded.chunks_exact_mut(words)) {
        to.iter_mut().zip(query.chunks(8)).for_each(|(to, bytes)| *to = word(bytes));
    }
    let part = Bits { set: execution.instruction_set, queries: &padded, collection, width };
    search_parts(execution, collection.len() / width, width, queries.len() / width, top_k, &part)
}

/// Returns for each query the `top_k` rows with the largest inner products, or all rows if there are fewer.
///
/// Queries and collection have rows of `width` bytes, both unsigned, or both signed.
///
/// # Panics
///
/// If `width` is 0, or an array has no complete rows.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::search::integers::search_bytes;
/// use wordpiece_kernels::{Execution, InstructionSet};
///
/// let execution = Execution::on_this_thread(InstructionSet::detect());
/// let found = search_bytes(execution, &[2, 1], &[0, 255, 100, 100], 2, false, 2);
/// assert_eq!(found[0].iter().map(|hit| (hit.row, hit.score)).collect::<Vec<_>>(), [(1, 300.0), (0, 255.0)]);
/// let found = search_bytes(execution, &[2, 1], &[0, 255, 100, 100], 2, true, 2); // 255 is −1
/// assert_eq!(found[0].iter().map(|hit| (hit.row, hit.score)).collect::<Vec<_>>(), [(1, 300.0), (0, -1.0)]);
/// ```
pub fn search_bytes(
    execution: Execution,
    queries: &[u8],
    collection: &[u8],
    width: usize,
    are_signed: bool,
    top_k: usize,
) -> Vec<Vec<Hit>> {
    check(queries, collection, width);
    let widened: Vec<i16> =
        queries.iter().map(|&x| if are_signed { i16::from(x as i8) } else { i16::from(x) }).collect();
    let part = Bytes { set: execution.instruction_set, queries: &widened, collection, width, are_signed };
    search_parts(execution, collection.len() / width, width, queries.len() / width, top_k, &part)
}

fn check(queries: &[u8], collection: &[u8], width: usize) {
    assert!(width > 0, "vectors have at least one byte");
    assert!(queries.len().is_multiple_of(width) && collection.len().is_multiple_of(width), "rows of {width} bytes");
}

struct Bits<'a> {
    set: InstructionSet,
    /// [queries, ⌈width / 8⌉] words, padded with zeros.
    queries: &'a [u64],
    collection: &'a [u8],
    width: usize,
}

impl Part for Bits<'_> {
    fn search(&self, rows: Range<usize>, best: &mut [TopK]) {
        run(self.set, SearchBits { bits: self, rows, best });
    }
}

struct SearchBits<'a> {
    bits: &'a Bits<'a>,
    rows: Range<usize>,
    best: &'a mut [TopK],
}

impl Kernel for SearchBits<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let &Bits { queries, collection, width, .. } = self.bits;
        let words = width.div_ceil(8);
        for start in self.rows.clone().step_by(ROWS) {
            let rows = &collection[start * width..self.rows.end.min(start + ROWS) * width];
            for (query, best) in queries.chunks_exact(words).zip(&mut *self.best) {
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

/// Up to 8 bytes as a word, padded with zeros.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(padded)
}

struct Bytes<'a> {
    set: InstructionSet,
    /// [queries, width]
    queries: &'a [i16],
    collection: &'a [u8],
    width: usize,
    are_signed: bool,
}

impl Part for Bytes<'_> {
    fn search(&self, rows: Range<usize>, best: &mut [TopK]) {
        run(self.set, SearchBytes { bytes: self, rows, best });
    }
}

struct SearchBytes<'a> {
    bytes: &'a Bytes<'a>,
    rows: Range<usize>,
    best: &'a mut [TopK],
}

impl Kernel for SearchBytes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        if self.bytes.are_signed { self.search(|x| i32::from(x as i8)) } else { self.search(i32::from) }
    }
}

impl SearchBytes<'_> {
    /// Searches with the numbers that `widen` makes of the bytes of a row.
    #[inline(always)]
    fn search(self, widen: impl Fn(u8) -> i32) {
        let &Bytes { queries, collection, width, .. } = self.bytes;
        for start in self.rows.clone().step_by(ROWS) {
            let rows = &collection[start * width..self.rows.end.min(start + ROWS) * width];
            for (query, best) in queries.chunks_exact(width).zip(&mut *self.best) {
                for (r, row) in rows.chunks_exact(width).enumerate() {
                    best.push(start + r, product(query, row, &widen) as f64);
                }
            }
        }
    }
}

/// The inner product of a query and the numbers that `widen` makes of the bytes of a row.
#[inline(always)]
fn product(query: &[i16], row: &[u8], widen: &impl Fn(u8) -> i32) -> i64 {
    let mut total = 0;
    for (query, row) in query.chunks(EXACT).zip(row.chunks(EXACT)) {
        let sum: i32 = query.iter().zip(row).map(|(&x, &y)| i32::from(x) * widen(y)).sum();
        total += i64::from(sum);
    }
    total
}

#[cfg(test)]
mod tests {
    use wordpiece_parallel::testing::instruction_sets;
    use wordpiece_parallel::thread_pool;

    use super::{search_bits, search_bytes};
    use crate::Execution;
    use crate::search::Hit;

    fn bytes(count: usize, seed: u64) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..count).map(|_| next()).collect()
    }

    /// Sorts the scores of all rows.
    fn expected(scores: impl Iterator<Item = i64>, top_k: usize) -> Vec<Hit> {
        let mut hits: Vec<Hit> = scores.enumerate().map(|(row, score)| Hit { row, score: score as f64 }).collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
        hits.truncate(top_k);
        hits
    }

    #[test]
    fn hits_are_those_of_the_definition_for_every_width_and_instruction_set() {
        let shapes: &[_] = if cfg!(miri) {
            &[(1, 40, 2), (9, 20, 1)]
        } else {
            &[(1, 200, 3), (7, 65, 1), (8, 10, 2), (48, 300, 5), (100, 130, 2)]
        };
        for &(width, count, queries) in shapes {
            let (rows, asked) = (bytes(count * width, 1), bytes(queries * width, 2));
            for set in instruction_sets() {
                for pool in [None, thread_pool(2)] {
                    let execution = Execution { pool, ..Execution::on_this_thread(set) };
                    let by_bits = search_bits(execution, &asked, &rows, width, 12);
                    for (query, hits) in asked.chunks(width).zip(by_bits) {
                        let distance = |row: &[u8]| -> i64 {
                            row.iter().zip(query).map(|(x, y)| i64::from((x ^ y).count_ones())).sum()
                        };
                        assert_eq!(hits, expected(rows.chunks(width).map(|row| -distance(row)), 12), "{}", set.name());
                    }
                    for are_signed in [false, true] {
                        let number = |x: u8| if are_signed { i64::from(x as i8) } else { i64::from(x) };
                        let by_products = search_bytes(execution, &asked, &rows, width, are_signed, 12);
                        for (query, hits) in asked.chunks(width).zip(by_products) {
                            let product = |row: &[u8]| -> i64 {
                                row.iter().zip(query).map(|(x, y)| number(*x) * number(*y)).sum()
                            };
                            let expected = expected(rows.chunks(width).map(product), 12);
                            assert_eq!(hits, expected, "{} {are_signed}", set.name());
                        }
                    }
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "multiplies 40,000 numbers, in safe code")]
    fn the_largest_products_of_long_vectors_are_exact() {
        let width = 40_000;
        let execution = Execution::on_this_thread(*instruction_sets().last().unwrap());
        let found = search_bytes(execution, &vec![255; width], &vec![255; width], width, false, 1);
        assert_eq!(found[0][0].score, 255.0 * 255.0 * width as f64);
    }
}
