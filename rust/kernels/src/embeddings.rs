//! Embedding tables, as wide as they are stored.

use crate::matrix::{PANEL, ViewMut};
use crate::numbers::Numbers;

/// Adds up rows of tables and writes them into row `to` of a matrix, padding columns included.
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
