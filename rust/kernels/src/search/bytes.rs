//! Search over 8-bit numbers, by inner product, which is exact.
//!
//! Queries are packed like int8 weights, rows copied a few at a time to aligned groups. Instructions multiply signed bytes:
//! of unsigned rows 128 is subtracted, and what that takes from the product, the same for all rows, is added at the end.

use std::ops::Range;

use super::top_k::{PanelOfBest, Scores};
use super::{Hit, Part, TopK, check_rows, search_parts};
use crate::Execution;
use crate::arch::{MAX_TILE_ROWS, Simd};
use crate::matrix::{ByteRow, PANEL, View};
use crate::numbers::GROUP;
use crate::tile::{Ahead, ByteQueries, ByteVectorTile, tiles};

/// With fewer queries, comparing a row with one after the other, where it is, is faster than copying it.
const LEAST_AT_ONCE: usize = 3;

/// The products of this many pairs of 8-bit numbers have a sum below 2³¹.
const EXACT: usize = 1 << 14;

/// Returns for each query the `top_k` rows with the largest inner products, or all rows if there are fewer.
///
/// Queries and collection have rows of `width` bytes. Queries are signed; rows are signed or not.
///
/// # Panics
///
/// If `width` is 0, or an array has no complete rows.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::search::bytes::search;
/// use wordpiece_kernels::{Execution, InstructionSet};
///
/// let execution = Execution::on_this_thread(InstructionSet::detect());
/// let found = search(execution, &[2, 1], &[0, 255, 100, 100], 2, false, 2);
/// assert_eq!(found[0].iter().map(|hit| (hit.row, hit.score)).collect::<Vec<_>>(), [(1, 300.0), (0, 255.0)]);
/// let found = search(execution, &[2, 1], &[0, 255, 100, 100], 2, true, 2); // 255 is −1 in a row
/// assert_eq!(found[0].iter().map(|hit| (hit.row, hit.score)).collect::<Vec<_>>(), [(1, 300.0), (0, -1.0)]);
/// ```
pub fn search(
    execution: Execution,
    queries: &[i8],
    collection: &[u8],
    width: usize,
    are_signed: bool,
    top_k: usize,
) -> Vec<Vec<Hit>> {
    check_rows(queries.len(), collection.len(), width);
    let count = queries.len() / width;
    if count < LEAST_AT_ONCE {
        let queries = queries.iter().map(|&x| i16::from(x)).collect();
        let part = OneByOne { queries, collection, width, are_signed };
        return search_parts(execution, collection.len() / width, width, count, top_k, &part);
    }
    // Added modulo 256, 128 makes unsigned bytes signed.
    let offset = if are_signed { 0 } else { 128 };
    let packed = ByteQueries::new(queries.iter().copied(), width);
    let sum = |query: &[i8]| query.iter().map(|&x| i64::from(x)).sum::<i64>() as f64;
    let sums = queries.chunks_exact(width).map(|query| f64::from(offset) * sum(query)).collect();
    let part = Packed { queries: packed, sums, collection, width, offset };
    search_parts(execution, collection.len() / width, width, count, top_k, &part)
}

struct OneByOne<'a> {
    /// [queries, width]
    queries: Vec<i16>,
    collection: &'a [u8],
    width: usize,
    are_signed: bool,
}

impl Part for OneByOne<'_> {
    #[inline(always)]
    fn search<S: Simd>(&self, _: S, rows: Range<usize>, best: &mut [TopK]) {
        match self.are_signed {
            true => self.with(rows, best, |x| i32::from(x as i8)),
            false => self.with(rows, best, i32::from),
        }
    }
}

impl OneByOne<'_> {
    /// Searches with the numbers that `widen` makes of the bytes of a row. The compiler makes vector instructions of it.
    #[inline(always)]
    fn with(&self, rows: Range<usize>, best: &mut [TopK], widen: impl Fn(u8) -> i32) {
        let &OneByOne { ref queries, collection, width, .. } = self;
        for row in rows {
            let numbers = &collection[row * width..(row + 1) * width];
            for (query, best) in queries.chunks_exact(width).zip(&mut *best) {
                best.push(row, product::<EXACT>(query, numbers, &widen) as f64);
            }
        }
    }
}

/// The inner product of a query and the numbers that `widen` makes of the bytes of a row, `EXACT` of which have products whose
/// sum is below 2³¹.
#[inline(always)]
pub(super) fn product<const EXACT: usize>(query: &[i16], row: &[u8], widen: &impl Fn(u8) -> i32) -> i64 {
    let mut total = 0;
    for (query, row) in query.chunks(EXACT).zip(row.chunks(EXACT)) {
        let sum: i32 = query.iter().zip(row).map(|(&x, &y)| i32::from(x) * widen(y)).sum();
        total += i64::from(sum);
    }
    total
}

struct Packed<'a> {
    queries: ByteQueries,
    /// For each query what `offset` takes from a product.
    sums: Vec<f64>,
    collection: &'a [u8],
    width: usize,
    /// What makes bytes signed.
    offset: u8,
}

impl Part for Packed<'_> {
    #[inline(always)]
    fn search<S: Simd>(&self, simd: S, rows: Range<usize>, best: &mut [TopK]) {
        let &Packed { ref queries, collection, width, .. } = self;
        let offset = self.offset ^ simd.byte_bias();
        let mut packed = vec![ByteRow::ZERO; MAX_TILE_ROWS * queries.groups()];
        let mut products: [Scores; MAX_TILE_ROWS] = [[0.0; PANEL]; MAX_TILE_ROWS];
        for tile in tiles(rows.len(), S::BYTE_TILE_ROWS) {
            let first = rows.start + tile.start;
            let (stored, next) = collection[first * width..].split_at(tile.len() * width);
            // Rows are read once: without requests, each tile would begin by waiting for them.
            let mut ahead = Ahead::of(&next[..stored.len().min(next.len())]);
            let packed = &mut packed[..tile.len() * queries.groups()];
            for (r, row) in stored.chunks_exact(width).enumerate() {
                pack_row(row, offset, packed[r..].iter_mut().step_by(tile.len()));
            }
            let a = View::new(packed, tile.len());
            for ((b, best), of_queries) in queries.panels().zip(best.chunks_mut(PANEL)).zip(self.sums.chunks(PANEL)) {
                let mut best = PanelOfBest::new(best);
                let out = &mut products[..tile.len()];
                simd.run_byte_tile(ByteVectorTile { a, b, queries: best.len(), ahead, out: &mut *out });
                ahead = Ahead::NOTHING;
                for (r, scores) in out.iter_mut().enumerate() {
                    scores.iter_mut().zip(of_queries).for_each(|(score, of_query)| *score += of_query);
                    best.push(first + r, scores);
                }
            }
        }
    }
}

/// Copies a row, each byte combined with `offset` by exclusive or, to groups.
#[inline(always)]
pub(super) fn pack_row<'a>(row: &[u8], offset: u8, groups: impl Iterator<Item = &'a mut ByteRow>) {
    let (complete, rest) = row.as_chunks::<GROUP>();
    let mut last = [0; GROUP];
    last[..rest.len()].copy_from_slice(rest);
    // Whole groups: loops over a constant number of bytes become a few vector instructions.
    for (bytes, to) in complete.iter().chain((!rest.is_empty()).then_some(&last)).zip(groups) {
        for (to, x) in to.0.iter_mut().zip(bytes) {
            *to = x ^ offset;
        }
    }
}
