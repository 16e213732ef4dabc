//! Sums of embedding vectors.
//!
//! Tables stay in the type in which they are stored; each vector is widened to float32 when it is read.

use crate::matrix::{PANEL, ViewMut};
use crate::numbers::Numbers;

/// Adds one row of each of several tables, first to last, and writes the sum into row `to` of a matrix, with zeros in the
/// padding columns.
///
/// `parts` has the tables [rows, columns] and the row to read from each; `line` is a scratch buffer of `2 * columns` numbers.
///
/// # Panics
///
/// If a row is outside its table, or `line` or `out` is too small.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::Matrix;
/// use wordpiece_kernels::embeddings::sum_rows;
/// use wordpiece_kernels::numbers::Numbers;
///
/// let words = Numbers::F32(&[1.0, 2.0, 3.0, 4.0]); // [2, 2]
/// let positions = Numbers::Bf16(&[0x3f80, 0x4000]); // [1, 2]: 1 and 2
/// let mut sums = Matrix::default();
/// sum_rows(&[(words, 1), (positions, 0)], 2, &mut [0.0; 4], 0, &mut sums.reshape(1, 2).view_mut());
/// assert_eq!(sums.view().panel(0)[0].0[..3], [4.0, 6.0, 0.0]);
/// ```
pub fn sum_rows(parts: &[(Numbers<'_>, usize)], columns: usize, line: &mut [f32], to: usize, out: &mut ViewMut<'_>) {
    let (sum, part) = line.split_at_mut(columns);
    for (i, (table, row)) in parts.iter().enumerate() {
        if i == 0 {
            table.read(row * columns, sum);
        } else {
            table.read(row * columns, &mut part[..columns]);
            for (sum, x) in sum.iter_mut().zip(&*part) {
                *sum += x;
            }
        }
    }
    for (p, from) in sum.chunks(PANEL).enumerate() {
        let row = &mut out.panel(p)[to].0;
        row[..from.len()].copy_from_slice(from);
        row[from.len()..].fill(0.0);
    }
}
