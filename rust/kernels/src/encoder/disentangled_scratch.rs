//! The scratch buffers of what DeBERTa computes besides the layers of BERT.

use super::weights::Packed;
use crate::disentangled::RelativeScores;
use crate::matrix::Matrix;
use crate::plan::Attention;

/// Scratch buffers of a DeBERTa, kept from call to call. They only grow.
#[derive(Default)]
pub(super) struct DisentangledScratch {
    /// The relative positions of the distances key − query from −`max_distance` to `max_distance`.
    pub(super) relative_rows: Vec<u32>,
    pub(super) max_distance: usize,
    /// The embeddings of the neighbours of some rows, side by side [rows, width · H′].
    pub(super) neighbours: Matrix,
    /// The output of the convolution [rows, H].
    pub(super) convolved: Matrix,
}

impl DisentangledScratch {
    /// Returns the relative terms of an attention.
    pub(super) fn scores<'a>(&'a self, attention: &'a Attention<Packed>) -> RelativeScores<'a> {
        RelativeScores {
            terms: attention.relative.as_ref(),
            rows: &self.relative_rows,
            max_distance: self.max_distance,
            count: attention.terms,
        }
    }
}
