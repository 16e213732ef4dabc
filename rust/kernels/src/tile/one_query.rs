//! The tile of stored vectors beside one query: a few rows, each in a lane, read where they are.
//!
//! In a [`VectorTile`](super::VectorTile) the lanes are queries. With one query all but one would be idle.
//!
//! Adding up the lanes of a row's products instead would be simpler, and as fast. But its sum has another order, so a query
//! would have other scores alone than together with others. Here rows are transposed as they are read
//! ([`Simd::load_columns`]), and the sum of each row runs over its numbers in the order of `VectorTile`.
//!
//! What a transposition costs depends on the instruction set; one that takes more for it than it saves has
//! [`Simd::READS_COLUMNS`] false, and keeps to `VectorTile`. The tile works with each of them, which the tests use.

use super::ahead::Ahead;
use super::meanwhile::Meanwhile;
use super::shape::BLOCK_PANELS;
use super::vectors::Measure;
use crate::arch::{COLUMNS, Simd};
use crate::matrix::{PANEL, Row};

/// How many vectors of rows a tile has: the sums of one vector would wait for each other.
const VECTORS: usize = 2;

/// The most lanes of a vector.
const MAX_LANES: usize = 16;

/// The sums of a few rows and one query, each computed from the same operations in the same order as in a
/// [`VectorTile`](super::VectorTile).
pub struct QueryTile<'a, M> {
    /// What is summed.
    pub measure: M,
    /// The rows [rows, width], one after the other, at least one.
    pub a: &'a [f32],
    /// The query.
    pub query: &'a [f32],
    /// What is requested meanwhile.
    pub ahead: Ahead,
}

impl<M: Measure> QueryTile<'_, M> {
    /// The most rows.
    pub const fn max_rows<S: Simd>() -> usize {
        VECTORS * S::LANES
    }

    /// Writes the sum of each row.
    ///
    /// # Panics
    ///
    /// If there are no rows, or more than [`max_rows`](QueryTile::max_rows).
    #[inline(always)]
    pub fn run<S: Simd>(mut self, simd: S, out: &mut [f32]) {
        const BLOCK: usize = BLOCK_PANELS * PANEL;
        const { assert!(S::LANES <= MAX_LANES) };
        let width = self.query.len();
        assert!((1..=VECTORS * S::LANES).contains(&out.len()) && self.a.len() == out.len() * width);
        let mut steps = width.div_ceil(COLUMNS);
        let mut totals = [simd.splat(0.0); VECTORS];
        for (block, query) in self.query.chunks(BLOCK).enumerate() {
            let mut rows: [&[f32]; VECTORS * MAX_LANES] = [&[]; VECTORS * MAX_LANES];
            for (i, row) in rows.iter_mut().enumerate() {
                // Lanes beyond the last row compute its sum again.
                *row = &self.a[i.min(out.len() - 1) * width + block * BLOCK..][..query.len()];
            }
            let mut sums = [simd.splat(0.0); VECTORS];
            let (whole, rest) = query.as_chunks::<COLUMNS>();
            for (at, query) in whole.iter().enumerate() {
                self.ahead.do_part(steps);
                steps -= 1;
                for (sum, rows) in sums.iter_mut().zip(rows.chunks_exact(S::LANES)) {
                    let columns = simd.load_columns(rows, at * COLUMNS);
                    for (x, q) in columns.into_iter().zip(query) {
                        *sum = self.measure.add(simd, simd.splat(*q), x, *sum);
                    }
                }
            }
            for (k, q) in (whole.len() * COLUMNS..).zip(rest) {
                for (sum, rows) in sums.iter_mut().zip(rows.chunks_exact(S::LANES)) {
                    let mut column = Row::ZERO;
                    column.0.iter_mut().zip(rows).for_each(|(to, row)| *to = row[k]);
                    *sum = self.measure.add(simd, simd.splat(*q), simd.load(&column, 0), *sum);
                }
            }
            for (total, sum) in totals.iter_mut().zip(sums) {
                *total = if block == 0 { sum } else { simd.add(*total, sum) };
            }
        }
        let mut row = Row::ZERO;
        for (v, total) in totals.into_iter().enumerate() {
            simd.store(&mut row, v * S::LANES, total);
        }
        out.copy_from_slice(&row.0[..out.len()]);
    }
}

#[cfg(test)]
mod tests {
    use wordpiece_parallel::testing::instruction_sets;

    use super::{MAX_LANES, QueryTile, VECTORS};
    use crate::arch::{self, COLUMNS, Kernel, Simd};
    use crate::matrix::Row;
    use crate::tile::{Ahead, Product, VectorTile, pack_vectors, tiles};

    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|i| (i * 7919 % 1009) as f32 / 500.0 - 1.0).collect()
    }

    /// Reads all whole columns of rows of so many numbers, a row for each lane, and returns them row by row.
    struct Columns<'a>(&'a [f32], usize);

    impl Kernel for Columns<'_> {
        type Output = Vec<Vec<f32>>;

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let Columns(numbers, width) = self;
            let rows: Vec<&[f32]> = numbers.chunks_exact(width).take(S::LANES).collect();
            let mut found = vec![Vec::new(); S::LANES];
            for at in (0..=width - COLUMNS).step_by(COLUMNS) {
                for column in simd.load_columns(&rows, at) {
                    let mut row = Row::ZERO;
                    simd.store(&mut row, 0, column);
                    found.iter_mut().zip(row.0).for_each(|(to, x)| to.push(x));
                }
            }
            found
        }
    }

    #[test]
    fn lane_i_of_column_k_is_number_k_of_row_i() {
        for set in instruction_sets() {
            for width in [8, 9, 24, 31] {
                let rows = numbers(MAX_LANES * width);
                for (found, row) in arch::run(set, Columns(&rows, width)).iter().zip(rows.chunks(width)) {
                    assert_eq!(found, &row[..width / COLUMNS * COLUMNS], "{}, {width} numbers", set.name());
                }
            }
        }
    }

    /// Computes the sums of rows and one query by the tile for it, and by the tile for several queries.
    struct BothTiles<'a> {
        rows: &'a [f32],
        query: &'a [f32],
        packed: &'a [Row],
    }

    impl Kernel for BothTiles<'_> {
        type Output = [Vec<f32>; 2];

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let BothTiles { rows, query, packed } = self;
            let (width, mut found) = (query.len(), [Vec::new(), Vec::new()]);
            for rows in rows.chunks(QueryTile::<Product>::max_rows::<S>() * width) {
                let mut sums = [0.0; VECTORS * MAX_LANES];
                let sums = &mut sums[..rows.len() / width];
                QueryTile { measure: Product, a: rows, query, ahead: Ahead::of(rows) }.run(simd, sums);
                found[0].extend_from_slice(sums);
            }
            for tile in tiles(rows.len() / width, S::TILE_ROWS) {
                let mut sums = vec![Row::ZERO; tile.len()];
                let a = &rows[tile.start * width..tile.end * width];
                let ahead = Ahead::NOTHING;
                simd.run_tile(VectorTile { measure: Product, a, b: packed, queries: 1, ahead, out: &mut sums });
                found[1].extend(sums.iter().map(|row| row.0[0]));
            }
            found
        }
    }

    #[test]
    fn sums_are_those_of_a_tile_of_many_queries_bit_for_bit() {
        let shapes: &[(usize, usize)] = if cfg!(miri) {
            &[(1, 3), (11, 5)]
        } else {
            &[(1, 3), (7, 40), (8, 33), (31, 1), (127, 5), (128, 16), (129, 17), (300, 32), (384, 65), (1030, 9)]
        };
        for set in instruction_sets() {
            for &(width, count) in shapes {
                let (rows, query) = (numbers(count * width), numbers(width + 3).split_off(3));
                let packed = pack_vectors(&query, width);
                let [found, expected] = arch::run(set, BothTiles { rows: &rows, query: &query, packed: &packed });
                assert_eq!(found.len(), count);
                let bits = |sums: &[f32]| sums.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&found), bits(&expected), "{}: {count} × {width}", set.name());
            }
        }
    }
}
