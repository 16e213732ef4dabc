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
