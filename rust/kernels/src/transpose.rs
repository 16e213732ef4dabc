//! Transposition of a panel: columns of keys become rows, which tiles read as weights.
//!
//! Blocks of as many rows as vectors have lanes are transposed in registers. Interleaving rows i and i + n/2 of n rows, for
//! all i < n/2, log₂ n times in a row, is a transposition.

use crate::arch::{Kernel, Simd};
use crate::matrix::{PANEL, Row, View, panels};

/// The most lanes of a vector.
const MAX_LANES: usize = 16;

/// Transposes a matrix [rows, columns] into panels of 32 rows with a row for each column.
pub(crate) struct Transpose<'a> {
    pub from: View<'a>,
    /// The number of columns.
    pub columns: usize,
    /// Its memory only grows. Columns beyond the last row become 0.
    pub to: &'a mut Vec<Row>,
}

impl Kernel for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Transpose { from, columns, to } = self;
        let len = panels(from.len()) * columns;
        to.resize(len.max(to.len()), Row::ZERO);
        to.truncate(len);
        for (block, to) in to.chunks_mut(columns).enumerate() {
            for (panel, to) in to.chunks_mut(PANEL).enumerate() {
                transpose_block(simd, &from.panel(panel)[block * PANEL..], to);
            }
        }
    }
}

/// Transposes the first 32 rows of a panel, or all that there are: row c of `to` becomes column c. Columns beyond the last
/// row become 0.
#[inline(always)]
pub(crate) fn transpose_block<S: Simd>(simd: S, rows: &[Row], to: &mut [Row]) {
    const { assert!(S::LANES <= MAX_LANES && S::LANES.is_power_of_two()) };
    for column in (0..PANEL).step_by(S::LANES) {
        for row in (0..PANEL).step_by(S::LANES) {
            let mut block = [simd.splat(0.0); MAX_LANES];
            for (i, vector) in block.iter_mut().enumerate().take(S::LANES) {
                if let Some(row) = rows.get(row + i) {
                    *vector = simd.load(row, column);
                }
            }
            for _ in 0..S::LANES.ilog2() {
                let halves = block;
                for i in 0..S::LANES / 2 {
                    [block[2 * i], block[2 * i + 1]] = simd.interleave(halves[i], halves[i + S::LANES / 2]);
                }
            }
            for (i, vector) in block.into_iter().enumerate().take(S::LANES) {
                if let Some(to) = to.get_mut(column + i) {
                    simd.store(to, row, vector);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wordpiece_parallel::testing::instruction_sets;

    use super::Transpose;
    use crate::arch;
    use crate::matrix::{Matrix, PANEL};

    #[test]
    fn row_c_of_a_block_is_column_c_of_its_rows_and_0_beyond_the_last() {
        for set in instruction_sets() {
            let mut to = Vec::new();
            let shapes: &[_] = if cfg!(miri) {
                &[(1, 1), (5, 3), (33, 5), (3, 40)]
            } else {
                &[(1, 1), (5, 3), (31, 32), (32, 32), (33, 40), (70, 64), (96, 31), (3, 100)]
            };
            for &(rows, columns) in shapes {
                let numbers: Vec<f32> = (1..=rows * columns).map(|i| i as f32).collect();
                let mut from = Matrix::default();
                from.fill_rows(rows, columns, &numbers);
                arch::run(set, Transpose { from: from.view(), columns, to: &mut to });
                assert_eq!(to.len(), rows.div_ceil(PANEL) * columns);
                for (i, row) in to.iter().enumerate() {
                    let (block, column) = (i / columns, i % columns);
                    let expected =
                        |i: usize| numbers.get((block * PANEL + i) * columns + column).copied().unwrap_or(0.0);
                    assert_eq!(row.0, std::array::from_fn(expected), "{}: {rows} × {columns}, row {i}", set.name());
                }
            }
        }
    }
}
