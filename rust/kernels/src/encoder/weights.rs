//! The sizes of an encoder and the weights of its layers.

use crate::activation::Activation;
use crate::gemm::Dense;
use crate::matrix::{Row, pad_to_panels};
use crate::norm::LayerNorm;

/// The sizes of an encoder, and what its layers have in common.
#[derive(Debug, Clone, Copy)]
pub struct EncoderConfig {
    /// H, the width of the hidden states.
    pub hidden: usize,
    /// E, the width of the embedding tables; differs from H only if the encoder has a projection.
    pub embedding: usize,
    /// N, the number of attention heads.
    pub heads: usize,
    /// d, the width of a head: H / N, unless a model with rotary positions has another.
    pub head_size: usize,
    /// F, the width between the halves of the feed-forward network.
    pub intermediate: usize,
    /// The activation between the halves of the feed-forward network.
    pub activation: Activation,
    /// ε of the layer norms.
    pub eps: f32,
    /// Whether the norms of a layer are applied to the inputs of its two halves, and not after their residuals.
    pub norm_first: bool,
}

/// γ and β of a layer norm, by panels.
pub struct LayerNormWeights {
    weight: Vec<Row>,
    bias: Vec<Row>,
}

impl LayerNormWeights {
    /// Stores γ = `weight` and β = `bias` by panels.
    pub fn new(weight: &[f32], bias: &[f32]) -> LayerNormWeights {
        LayerNormWeights { weight: pad_to_panels(weight), bias: pad_to_panels(bias) }
    }

    /// Returns γ and β, `columns` numbers each, as they were given.
    pub fn to_vecs(&self, columns: usize) -> [Vec<f32>; 2] {
        [&self.weight, &self.bias].map(|rows| rows.iter().flat_map(|row| row.0).take(columns).collect())
    }

    /// Returns the parameters of the layer norm over `columns` columns with `eps` as ε.
    pub(super) fn with_eps(&self, eps: f32, columns: usize) -> LayerNorm<'_> {
        LayerNorm { weight: &self.weight, bias: &self.bias, eps, columns }
    }
}

/// The weights of one layer.
pub struct Layer {
    /// Query, key and value, computed as one: [3·N·d, H].
    pub qkv: Dense,
    /// The dense layer after attention, [H, N·d].
    pub output: Dense,
    /// The layer norm of the attention block, over H columns: after `output` and its residual, or before `qkv`.
    pub output_norm: LayerNormWeights,
    /// The first half of the feed-forward network, [F, H]; in a gated network the gate.
    pub inner: Dense,
    /// What is multiplied by the gate of a gated network, [F, H].
    pub up: Option<Dense>,
    /// The second half of the feed-forward network, [H, F].
    pub outer: Dense,
    /// The layer norm of the feed-forward network, over H columns: after `outer` and its residual, or before `inner`.
    pub outer_norm: LayerNormWeights,
}

/// MPNet's attention bias by distance, the same for all layers.
pub struct RelativeBiasTable {
    /// For each head, the biases of the distances key − query from −`max_distance` to `max_distance`.
    pub bias: Vec<f32>,
    /// The greatest distance; sequences are no longer than this plus 1.
    pub max_distance: usize,
}
