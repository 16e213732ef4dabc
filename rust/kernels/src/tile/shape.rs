//! The division of a product: rows into tiles, sums over K into blocks.

use std::ops::Range;

use crate::arch::Simd;
use crate::matrix::Row;

/// Panels of K over which the sum of an element stays in a register: 128 products.
///
/// The sums of blocks are then added, which keeps the rounding error of long sums small.
pub const BLOCK_PANELS: usize = 4;

/// The same for products of bfloat16 numbers, 512: their own rounding is hundreds of times as large as the rounding of
/// the sums.
pub const PAIR_BLOCK_PANELS: usize = 16;

/// Stores the sums of a block in the columns from `at` on, or adds them to the sums of the blocks before it.
#[inline(always)]
pub(super) fn store_block<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    sums: [[S::V; VECTORS]; ROWS],
    is_first: bool,
    out: &mut [Row; ROWS],
    at: usize,
) {
    for (row, sums) in out.iter_mut().zip(sums) {
        for (v, sum) in sums.into_iter().enumerate() {
            let at = at + v * S::LANES;
            simd.store(row, at, if is_first { sum } else { simd.add(simd.load(row, at), sum) });
        }
    }
}

/// Divides `0..rows` into as few ranges of at most `max_rows` as possible, whose lengths differ by at most one.
#[inline(always)]
pub fn tiles(rows: usize, max_rows: usize) -> impl Iterator<Item = Range<usize>> {
    let count = rows.div_ceil(max_rows);
    (0..count).map(move |i| i * rows / count..(i + 1) * rows / count)
}

#[cfg(test)]
mod tests {
    use super::tiles;

    #[test]
    fn tiles_cover_all_rows_and_differ_by_one_at_most() {
        for most in 1..20 {
            for rows in 0..if cfg!(miri) { 20 } else { 200 } {
                let cut: Vec<_> = tiles(rows, most).collect();
                assert_eq!(cut.iter().flat_map(Clone::clone).collect::<Vec<_>>(), (0..rows).collect::<Vec<_>>());
                let sizes = || cut.iter().map(ExactSizeIterator::len);
                assert!(sizes().all(|size| (1..=most).contains(&size)));
                assert!(sizes().max().unwrap_or(0) <= sizes().min().unwrap_or(0) + 1);
            }
        }
    }
}
