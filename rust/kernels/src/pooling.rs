//! One vector of a sequence's tokens.

use crate::matrix::{PANEL, View};

/// The ways, by the names of `functional.py`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The first token.
    Cls,
    /// The greatest of each column.
    Max,
    /// The mean.
    Mean,
    /// The sum over √tokens.
    MeanSqrtLenTokens,
    /// The mean with weights 1, 2, 3, …
    WeightedMean,
    /// The last token.
    LastToken,
}

/// Pools the rows of a sequence, its first `skip` left out, into `columns` numbers; sums run from the first row to the last.
///
/// Without any row left, sums are 0 and the maximum is −∞; the first token is then the first of all, the last token 0.
pub fn pool(mode: Pooling, x: View<'_>, skip: usize, columns: usize, to: &mut [f32]) {
    let left = skip.min(x.len())..x.len();
    let tokens = left.len();
    for (p, to) in to[..columns].chunks_mut(PANEL).enumerate() {
        let all = x.panel(p);
        let rows = &all[left.clone()];
        let copy = |to: &mut [f32], row: Option<&crate::Row>| match row {
            Some(row) => to.copy_from_slice(&row.0[..to.len()]),
            None => to.fill(0.0),
        };
        match mode {
            Pooling::Cls => copy(to, rows.first().or(all.first())),
            Pooling::LastToken => copy(to, rows.last()),
            Pooling::Max => {
                to.fill(f32::NEG_INFINITY);
                for row in rows {
                    for (to, x) in to.iter_mut().zip(row.0) {
                        // A NaN is the greatest, as in NumPy.
                        *to = if x > *to || x.is_nan() { x } else { *to };
                    }
                }
            }
            Pooling::Mean | Pooling::MeanSqrtLenTokens | Pooling::WeightedMean => {
                let mut sums = [0.0; PANEL];
                let mut total = 0.0;
                for (i, row) in rows.iter().enumerate() {
                    let weight = if mode == Pooling::WeightedMean { (skip + i + 1) as f32 } else { 1.0 };
                    total += weight;
                    for (sum, x) in sums.iter_mut().zip(row.0) {
                        *sum += weight * x;
                    }
                }
                let count = if tokens == 0 { 1e-9 } else { total };
                let divisor = if mode == Pooling::MeanSqrtLenTokens { count.sqrt() } else { count };
                for (to, sum) in to.iter_mut().zip(sums) {
                    *to = sum / divisor;
                }
            }
        }
    }
}
