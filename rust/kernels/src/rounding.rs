//! Rounding of activations to bfloat16, the inputs of products of pairs.

use crate::arch::{Kernel, Simd};
use crate::matrix::{HalfRow, PANEL, PairRow, Row, View, panels};

/// Rounds the first `k` columns of `x` to bfloat16, and sets the columns beyond them to 0.
pub(crate) struct RoundRows<'a> {
    pub x: View<'a>,
    pub k: usize,
    /// ⌈K/32⌉ panels of `rows` rows; those beyond the rows of `x` are set to 0.
    pub to: &'a mut [HalfRow],
    /// How many rows a panel of `to` has, at least as many as `x`.
    pub rows: usize,
}

impl Kernel for RoundRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (p, to) in self.to.chunks_mut(self.rows.max(1)).enumerate().take(panels(self.k)) {
            let valid = (self.k - p * PANEL).min(PANEL);
            let (to, beyond) = to.split_at_mut(self.x.len());
            beyond.fill(HalfRow::ZERO);
            simd.round_rows(self.x.panel(p), to);
            if valid < PANEL {
                for row in to {
                    row.0[valid..].fill(0);
                }
            }
        }
    }
}

/// Rounds rows, two by two, to rows of pairs, the first of two in the lower halves; an odd last row is paired with 0, and what
/// is left of `to` set to 0.
#[inline(always)]
pub(crate) fn round_pairs<S: Simd>(simd: S, rows: &[Row], to: &mut [PairRow]) {
    let (pairs, last) = rows.as_chunks();
    let (to, beyond) = to.split_at_mut(pairs.len());
    simd.round_pairs(pairs, to);
    let (to, beyond) = beyond.split_at_mut(last.len());
    if let [last] = last {
        simd.round_pairs(&[[*last, Row::ZERO]], to);
    }
    beyond.fill(PairRow([0; PANEL]));
}
