//! Exact search: the rows of a collection that are nearest to queries, in one pass over the collection.
//!
//! With few queries the pass takes about as long as reading the collection from memory, so nothing that belongs to it is written
//! back: scores are compared with the lowest of the best so far as soon as they are computed ([`TopK`]), lengths for the
//! cosine are computed from the same bytes as the products, and no copy of the collection is made. With many queries the
//! products dominate: a few rows stay in the first-level cache while all queries pass by.
//!
//! The score of a query and a row is computed by one fixed sequence of operations. So it does not depend on the other
//! queries, on the other rows or on the number of threads; of equal scores the lower row comes first.
//!
//! - [`floats`]: float32 vectors, by inner product, cosine or distance.
//! - [`bytes`]: 8-bit numbers, by inner product.
//! - [`bits`]: packed bits, by Hamming distance.
//! - [`codes`]: float32 vectors, most of which are read as 8-bit numbers.

use std::ops::Range;

use wordpiece_parallel::{checkpoint, map_with};

use crate::Execution;
use crate::arch::{Kernel, Simd, run};

pub mod bits;
pub mod bytes;
pub mod codes;
pub mod floats;
mod top_k;

pub use top_k::{Hit, TopK};

/// A part of the collection that one thread searches is at least this large, counted once for each query, unless there is
/// less.
const MIN_PART_BYTES: usize = 1 << 20;

/// The collection is divided into this many parts for each thread, so that a thread that is held up delays the others
/// little.
const PARTS_PER_THREAD: usize = 8;

/// Between two checkpoints a thread reads about this many bytes for each query: well below a millisecond.
const CHECKPOINT_BYTES: usize = 1 << 18;

/// How one part of the collection is searched.
trait Part: Sync {
    /// Adds the rows of a range, which is short, to the best of each query.
    fn search<S: Simd>(&self, simd: S, rows: Range<usize>, best: &mut [TopK]);
}

/// [`Part::search`] with the instructions of one set.
struct SearchRows<'a, P> {
    part: &'a P,
    rows: Range<usize>,
    best: &'a mut [TopK],
}

impl<P: Part> Kernel for SearchRows<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        self.part.search(simd, self.rows, self.best);
    }
}

/// Searches `count` rows of `row_bytes` bytes each for `queries` queries, and returns the best `top_k` of each.
fn search_parts(
    execution: Execution,
    count: usize,
    row_bytes: usize,
    queries: usize,
    top_k: usize,
    part: &impl Part,
) -> Vec<Vec<Hit>> {
    let threads = execution.pool.map_or(1, |pool| pool.count() + 1);
    let row_bytes = row_bytes.max(1);
    let least = (MIN_PART_BYTES / row_bytes / queries.max(1)).max(64);
    let rows = count.div_ceil(threads * PARTS_PER_THREAD).max(least);
    let step = (CHECKPOINT_BYTES / row_bytes).clamp(16, 1 << 14);
    let parts: Vec<Range<usize>> = (0..count).step_by(rows).map(|start| start..count.min(start + rows)).collect();
    let found = map_with(
        parts,
        execution.pool,
        || (),
        |(), rows| {
            let mut best: Vec<TopK> = (0..queries).map(|_| TopK::new(top_k)).collect();
            for start in rows.clone().step_by(step) {
                checkpoint();
                let rows = start..rows.end.min(start + step);
                run(execution.instruction_set, SearchRows { part, rows, best: &mut best });
            }
            best
        },
    );
    let mut best: Vec<TopK> = (0..queries).map(|_| TopK::new(top_k)).collect();
    for part in found {
        for (best, other) in best.iter_mut().zip(part) {
            best.merge(other);
        }
        checkpoint();
    }
    best.into_iter().map(TopK::into_sorted).collect()
}

/// Checks that queries and a collection of so many bytes have complete rows.
fn check_rows(queries: usize, collection: usize, width: usize) {
    assert!(width > 0, "vectors have at least one byte");
    assert!(queries.is_multiple_of(width) && collection.is_multiple_of(width), "rows of {width} bytes");
}

#[cfg(test)]
mod integer_tests {
    use wordpiece_parallel::testing::instruction_sets;
    use wordpiece_parallel::thread_pool;

    use super::{Hit, bits, bytes};
    use crate::Execution;

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
            &[
                (1, 200, 3),
                (7, 65, 1),
                (8, 10, 2),
                (48, 300, 5),
                (100, 130, 33),
                (64, 50, 40),
                (384, 40, 9),
                (1100, 30, 4),
            ]
        };
        for &(width, count, queries) in shapes {
            let (rows, asked) = (bytes(count * width, 1), bytes(queries * width, 2));
            let signed: Vec<i8> = asked.iter().map(|&x| x as i8).collect();
            for set in instruction_sets() {
                for pool in [None, thread_pool(2)] {
                    let execution = Execution { pool, ..Execution::on_this_thread(set) };
                    let by_bits = bits::search(execution, &asked, &rows, width, 12);
                    for (query, hits) in asked.chunks(width).zip(by_bits) {
                        let distance = |row: &[u8]| -> i64 {
                            row.iter().zip(query).map(|(x, y)| i64::from((x ^ y).count_ones())).sum()
                        };
                        assert_eq!(hits, expected(rows.chunks(width).map(|row| -distance(row)), 12), "{}", set.name());
                    }
                    for are_signed in [false, true] {
                        let number = |x: u8| if are_signed { i64::from(x as i8) } else { i64::from(x) };
                        let by_products = bytes::search(execution, &signed, &rows, width, are_signed, 12);
                        for (query, hits) in signed.chunks(width).zip(by_products) {
                            let product = |row: &[u8]| -> i64 {
                                row.iter().zip(query).map(|(x, y)| number(*x) * i64::from(*y)).sum()
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
    fn the_largest_and_smallest_products_of_long_vectors_are_exact() {
        let width = 40_000;
        let execution = Execution::on_this_thread(*instruction_sets().last().unwrap());
        for (byte, are_signed, number) in
            [(255, false, 255.0), (128, true, -128.0), (127, true, 127.0), (0, false, 0.0)]
        {
            for (queries, asked) in [(1, -128), (5, -128), (1, 127), (5, 127)] {
                let queries = vec![asked; queries * width];
                let found = bytes::search(execution, &queries, &vec![byte; width], width, are_signed, 1);
                assert_eq!(found.last().unwrap()[0].score, number * f64::from(asked) * width as f64);
            }
        }
    }
}
