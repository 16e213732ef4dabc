//! Rounding of activations to bfloat16, the inputs of products of pairs.

use crate::arch::{Kernel, Simd};
use crate::matrix::{HalfRow, PANEL, View, panels};
use crate::numbers::f32_to_bf16;

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

    // A plain loop: the compiler vectorizes it with the instructions that `run` enables.
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (p, to) in self.to.chunks_mut(self.rows.max(1)).enumerate().take(panels(self.k)) {
            let valid = (self.k - p * PANEL).min(PANEL);
            let (to, beyond) = to.split_at_mut(self.x.len());
            beyond.fill(HalfRow::ZERO);
            for (from, to) in self.x.panel(p).iter().zip(to) {
                for (x, to) in from.0.iter().zip(&mut to.0) {
                    *to = f32_to_bf16(*x);
                }
                if valid < PANEL {
                    to.0[valid..].fill(0);
                }
            }
        }
    }
}
