//! The weights of an encoder as its forward pass needs them.

use std::sync::Arc;

use crate::arch::InstructionSet;
use crate::disentangled::RelativeTerms;
use crate::gemm::Dense;
use crate::matrix::{Row, ViewMut, pad_to_panels};
use crate::norm::{LayerNorm, NormKind, layer_norm, rms_norm};
use crate::plan::Form;

/// Packed weights in a [`Plan`](crate::plan::Plan).
pub struct Packed;

impl Form for Packed {
    type Dense = Arc<Dense>;
    /// Computed as one: [3·N·d, H].
    type Joined = Arc<Dense>;
    type Norm = Norm;
    /// Tables are given to each call.
    type Table = ();
    type Bias = Arc<RelativeBiasTable>;
    type Relative = RelativeTerms;
    /// There is no dropout.
    type Rate = ();
}

/// γ and β of a layer norm, by panels.
pub struct LayerNormWeights {
    /// γ.
    weight: Vec<Row>,
    /// β.
    bias: Vec<Row>,
}

impl LayerNormWeights {
    /// Stores γ = `weight` and β = `bias` by panels.
    pub fn new(weight: &[f32], bias: &[f32]) -> LayerNormWeights {
        LayerNormWeights { weight: pad_to_panels(weight), bias: pad_to_panels(bias) }
    }

    /// Returns the parameters of the layer norm over `columns` columns with `eps` as ε.
    pub(crate) fn with_eps(&self, eps: f32, columns: usize) -> LayerNorm<'_> {
        LayerNorm { weight: &self.weight, bias: &self.bias, eps, columns }
    }
}

/// A norm.
pub struct Norm {
    /// γ and β.
    pub weights: LayerNormWeights,
    /// ε.
    pub eps: f32,
    /// The number of columns.
    pub columns: usize,
    /// What it computes.
    pub kind: NormKind,
}

impl Norm {
    /// Returns its parameters.
    pub(crate) fn parameters(&self) -> LayerNorm<'_> {
        self.weights.with_eps(self.eps, self.columns)
    }

    /// Applies the norm to each row of a matrix, in place.
    pub(crate) fn apply(&self, instruction_set: InstructionSet, x: &mut ViewMut<'_>) {
        let norm = self.parameters();
        match self.kind {
            NormKind::Layer => layer_norm(instruction_set, norm, x),
            NormKind::Rms => rms_norm(instruction_set, norm, x),
        }
    }
}

/// The bias of the scores by distance, the same for all layers.
pub enum RelativeBiasTable {
    /// MPNet's.
    Distances {
        /// For each head, the biases of the distances key − query from −`max_distance` to `max_distance`.
        bias: Vec<f32>,
        /// The greatest distance; sequences are no longer than this plus 1.
        max_distance: usize,
    },
    /// ALiBi: a slope for each head.
    Slopes(Vec<f32>),
}
