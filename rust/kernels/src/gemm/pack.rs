//! Weights in the form in which tiles read them: by panels of 32 outputs, within a panel by input.

use crate::matrix::{PANEL, Row, panels};

/// The weights [N, K] of one or more dense layers with the same input, packed once.
pub struct Packed {
    rows: Vec<Row>,
    k: usize,
    panels: usize,
}

impl Packed {
    /// Packs the weights of some dense layers, each [N, K] with as many rows as there are; the outputs of each begin a panel.
    ///
    /// # Panics
    ///
    /// If the length of a weight is no multiple of `k`.
    pub fn new(weights: &[&[f32]], k: usize) -> Packed {
        let mut rows = Vec::with_capacity(weights.iter().map(|w| panels(w.len() / k.max(1)) * k).sum());
        for weight in weights {
            assert!(weight.len().is_multiple_of(k), "{} weights for {k} inputs", weight.len());
            for outputs in weight.chunks(PANEL * k) {
                let start = rows.len();
                rows.resize(start + k, Row::ZERO);
                pack_panel(outputs, &mut rows[start..]);
            }
        }
        let panels = rows.len() / k.max(1);
        Packed { rows, k, panels }
    }

    /// How many inputs there are.
    pub fn k(&self) -> usize {
        self.k
    }

    /// How many panels of outputs there are.
    pub fn panels(&self) -> usize {
        self.panels
    }

    /// One panel: K rows.
    #[inline(always)]
    pub fn panel(&self, panel: usize) -> &[Row] {
        &self.rows[panel * self.k..][..self.k]
    }

    /// Gives back the weights [N, K] whose outputs begin with panel `first`.
    ///
    /// # Panics
    ///
    /// If the length of `to` is no multiple of `k`, or there are not so many panels.
    pub fn unpack(&self, first: usize, to: &mut [f32]) {
        for (p, outputs) in to.chunks_mut(PANEL * self.k).enumerate() {
            let panel = self.panel(first + p);
            for (n, weights) in outputs.chunks_exact_mut(self.k).enumerate() {
                for (weight, row) in weights.iter_mut().zip(panel) {
                    *weight = row.0[n];
                }
            }
        }
    }
}

/// Packs up to 32 outputs [n, K] into K rows; columns from n on are left.
pub fn pack_panel(outputs: &[f32], to: &mut [Row]) {
    let k = to.len();
    // Some inputs of all outputs at a time, so that what is written stays in the cache.
    const INPUTS: usize = 16;
    for (block, to) in to.chunks_mut(INPUTS).enumerate() {
        for (n, weights) in outputs.chunks_exact(k).enumerate() {
            for (weight, row) in weights[block * INPUTS..].iter().zip(to.iter_mut()) {
                row.0[n] = *weight;
            }
        }
    }
}
