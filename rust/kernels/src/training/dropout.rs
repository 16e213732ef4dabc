//! Dropout as a pure function of seed, step and place: the backward pass draws a mask again instead of keeping it.
//!
//! Each number is kept with probability 1 − P and multiplied by 1/(1 − P) (Srivastava et al. 2014). A draw is the output of
//! SplitMix64 (Steele, Lea and Flood 2014) at state `key + (counter + 1)·γ`. The key is derived from seed, stream, step,
//! micro-batch, layer and the row of the batch; the counter is the place in the row and the column. Neither depends on
//! padding, on the division into tasks or on threads. `wordpiece_bert.finetune.dropout` draws the same masks.

use crate::arch::{self, InstructionSet, Kernel, Simd};
use crate::matrix::{PANEL, Row, ViewMut};

/// The increment of SplitMix64.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The places of an encoder that have dropout; the numbers are the streams of their draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// After the norm of the embeddings.
    Embeddings = 16,
    /// The attention weights.
    AttentionWeights = 17,
    /// After the dense layer of the attention, before the residual.
    AttentionOutput = 18,
    /// After the second dense layer of the feed-forward network, before the residual.
    Output = 19,
    /// Before the second dense layer of the feed-forward network.
    Intermediate = 23,
    /// After the convolution of a DeBERTa.
    Convolution = 24,
    /// The table of relative positions of a DeBERTa, in each layer; its rows take the place of the rows of the batch.
    Relative = 25,
}

/// The key of all masks of a micro-batch.
#[derive(Debug, Clone, Copy)]
pub struct Dropout {
    /// The seed of the training.
    pub seed: u64,
    /// The number of the optimizer's step.
    pub step: u64,
    /// The number of the batch among the batches of the step.
    pub micro_batch: u64,
}

/// The masks at one site.
#[derive(Debug, Clone, Copy)]
pub struct Mask {
    key: u64,
    /// A draw of at least this is kept.
    threshold: u64,
    /// What a kept number is multiplied by.
    scale: f32,
}

impl Dropout {
    /// Returns the masks at `site` of layer `layer`, which is 0 for the embeddings, for P = `rate`; `None` where that is 0.
    pub fn at(&self, site: Site, layer: usize, rate: f64) -> Option<Mask> {
        let words = [self.seed, site as u64, self.step, self.micro_batch, layer as u64];
        let key = words.iter().fold(0, |key, word| next(key ^ word));
        // The top 53 bits of a draw are compared with P·2⁵³; the lower ones do not matter.
        let threshold = ((rate * (1_u64 << 53) as f64).ceil() as u64) << 11;
        (rate > 0.0).then_some(Mask { key, threshold, scale: (1.0 / (1.0 - rate)) as f32 })
    }
}

impl Mask {
    /// Returns the state of the draws for column 0 of place `place` in row `row` of the batch.
    pub fn state(&self, row: usize, place: usize) -> u64 {
        next(self.key ^ row as u64).wrapping_add(((place as u64) << 32).wrapping_add(1).wrapping_mul(GAMMA))
    }

    /// Returns the mask of 32 columns from `column` on, for the state of column 0: 0 or 1/(1 − P).
    #[inline(always)]
    pub fn columns(&self, state: u64, column: usize) -> Row {
        let first = state.wrapping_add((column as u64).wrapping_mul(GAMMA));
        let mut row = Row::ZERO;
        for (i, x) in row.0.iter_mut().enumerate() {
            let draw = mix(first.wrapping_add((i as u64).wrapping_mul(GAMMA)));
            *x = if draw >= self.threshold { self.scale } else { 0.0 };
        }
        row
    }
}

/// Multiplies each row of `x` by its mask; `states` has the state of column 0 of each row.
pub fn drop_rows(instruction_set: InstructionSet, mask: Mask, states: &[u64], x: &mut ViewMut<'_>, panels: usize) {
    arch::run(instruction_set, DropRows { mask, states, x, panels });
}

struct DropRows<'a, 'x> {
    mask: Mask,
    states: &'a [u64],
    x: &'a mut ViewMut<'x>,
    panels: usize,
}

impl Kernel for DropRows<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for p in 0..self.panels {
            for (row, state) in self.x.panel(p).iter_mut().zip(self.states) {
                let mask = self.mask.columns(*state, p * PANEL);
                for at in (0..PANEL).step_by(S::LANES) {
                    simd.store(row, at, simd.mul(simd.load(row, at), simd.load(&mask, at)));
                }
            }
        }
    }
}

/// Returns the draw that follows a state.
fn next(state: u64) -> u64 {
    mix(state.wrapping_add(GAMMA))
}

/// The output function of SplitMix64.
#[inline(always)]
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
