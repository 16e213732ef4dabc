//! Pooling: one vector from the token vectors of a sequence.
//!
//! Sums run from the first row to the last, in float32.

use crate::matrix::{PANEL, View};

/// How a vector is made from the vectors of the tokens; the names come from sentence-transformers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The vector of the first token.
    Cls,
    /// The maximum of each column; NaN if there is one.
    Max,
    /// The mean of each column.
    Mean,
    /// The sum of each column, divided by the square root of the number of tokens.
    MeanSqrtLenTokens,
    /// The weighted mean, with weights 1, 2, 3, … counted from the first token of the sequence.
    WeightedMean,
    /// The vector of the last token.
    LastToken,
}

/// Pools the rows of a sequence except the first `skip`, which belong to a prompt, into `columns` numbers.
///
/// If no row remains, sums and means are 0 and the maximum is −∞. `Cls` is then the first of all rows, `LastToken` is 0.
///
/// # Panics
///
/// If `x` or `to` has fewer than `columns` columns.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::Matrix;
/// use wordpiece_kernels::pooling::{Pooling, pool_rows};
///
/// let mut tokens = Matrix::default();
/// tokens.fill_rows(3, 2, &[9.0, 9.0, 1.0, 4.0, 3.0, 2.0]);
/// let mut vector = [0.0; 2];
/// pool_rows(Pooling::Mean, tokens.view(), 1, 2, &mut vector); // without the first token
/// assert_eq!(vector, [2.0, 3.0]);
/// ```
pub fn pool_rows(mode: Pooling, x: View<'_>, skip: usize, columns: usize, to: &mut [f32]) {
    let pooled = skip.min(x.len())..x.len();
    let tokens = pooled.len();
    for (p, to) in to[..columns].chunks_mut(PANEL).enumerate() {
        let all = x.panel(p);
        let rows = &all[pooled.clone()];
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
                        // NaN wins, as in NumPy.
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
                // The sums are 0 without tokens; any divisor will do.
                let count = if tokens == 0 { 1e-9 } else { total };
                let divisor = if mode == Pooling::MeanSqrtLenTokens { count.sqrt() } else { count };
                for (to, sum) in to.iter_mut().zip(sums) {
                    *to = sum / divisor;
                }
            }
        }
    }
}
