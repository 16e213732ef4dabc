//! Exact search: the rows of a collection that are nearest to queries, in one pass over the collection.
//!
//! With few queries the pass takes as long as reading the collection from memory, so nothing that belongs to it is written
//! back: scores are compared with the lowest of the best so far as soon as they are computed ([`TopK`]), lengths for the
//! cosine are computed from the same bytes as the products, and no copy of the collection is made. With many queries the
//! products dominate: a few rows stay in the first-level cache while all queries pass by.
//!
//! The score of a query and a row is computed by one fixed sequence of operations. So it does not depend on the other
//! queries, on the other rows or on the number of threads; of equal scores the lower row comes first.
//!
//! - [`floats`]: float32 vectors, by inner product, cosine or distance.
//! - [`integers`]: packed bits by Hamming distance, 8-bit numbers by inner product.

use std::ops::Range;

use wordpiece_parallel::{checkpoint, map_with};

use crate::Execution;

pub mod floats;
pub mod integers;
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
    fn search(&self, rows: Range<usize>, best: &mut [TopK]);
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
    let step = (CHECKPOINT_BYTES / row_bytes / queries.max(1)).max(16);
    let parts: Vec<Range<usize>> = (0..count).step_by(rows).map(|start| start..count.min(start + rows)).collect();
    let found = map_with(
        parts,
        execution.pool,
        || (),
        |(), rows| {
            let mut best: Vec<TopK> = (0..queries).map(|_| TopK::new(top_k)).collect();
            for start in rows.clone().step_by(step) {
                checkpoint();
                part.search(start..rows.end.min(start + step), &mut best);
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
