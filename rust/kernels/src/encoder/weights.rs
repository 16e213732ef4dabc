//! The sizes of an encoder and the weights of its layers.

use std::sync::Arc;

use crate::activation::Activation;
use crate::arch::InstructionSet;
use crate::disentangled::{RelativePositions, RelativeTerms};
use crate::gemm::Dense;
use crate::matrix::{Row, ViewMut, pad_to_panels};
use crate::norm::{LayerNorm, layer_norm, scale_and_shift_rows};

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
    /// Whether the norms of the layers, and the one after them, divide by the root of the mean square and have no mean.
    pub rms_norm: bool,
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
    pub(crate) fn with_eps(&self, eps: f32, columns: usize) -> LayerNorm<'_> {
        LayerNorm { weight: &self.weight, bias: &self.bias, eps, columns }
    }
}

/// The weights of one layer.
pub struct Layer {
    /// Query, key and value, computed as one: [3·N·d, H].
    pub qkv: Arc<Dense>,
    /// The dense layer after attention, [H, N·d].
    pub output: Arc<Dense>,
    /// The layer norm of the attention block, over H columns: after `output` and its residual, or before `qkv`. The first
    /// layer of ModernBERT has none.
    pub output_norm: Option<LayerNormWeights>,
    /// The layer norms of queries and keys, over N·d columns, if the model has them.
    pub query_key_norms: Option<[LayerNormWeights; 2]>,
    /// A layer norm over the sum of the layer's input and the output of the attention block, if the model has it.
    pub second_norm: Option<LayerNormWeights>,
    /// The first half of the feed-forward network, [F, H]; in a gated network the gate.
    pub inner: Arc<Dense>,
    /// What is multiplied by the gate of a gated network, [F, H].
    pub up: Option<Arc<Dense>>,
    /// The second half of the feed-forward network, [H, F].
    pub outer: Arc<Dense>,
    /// The layer norm of the feed-forward network, over H columns: after `outer` and its residual, or before `inner`.
    pub outer_norm: LayerNormWeights,
}

/// A norm: a layer norm, or the NoNorm of MobileBERT.
pub struct Norm {
    /// γ and β.
    pub weights: LayerNormWeights,
    /// ε of a layer norm; None for NoNorm, x·γ + β.
    pub eps: Option<f32>,
}

impl Norm {
    /// Applies the norm to each row of a matrix of `columns` columns, in place.
    pub(crate) fn apply(&self, instruction_set: InstructionSet, columns: usize, x: &mut ViewMut<'_>) {
        match self.eps {
            Some(eps) => layer_norm(instruction_set, self.weights.with_eps(eps, columns), x),
            None => scale_and_shift_rows(instruction_set, &self.weights.weight, &self.weights.bias, x),
        }
    }
}

/// A dense layer and the norm after it.
pub struct DenseNorm {
    /// The dense layer.
    pub dense: Arc<Dense>,
    /// The norm over its outputs, after a residual where there is one.
    pub norm: Norm,
}

/// What queries, keys and values of a [`BottleneckLayer`] are computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The hidden state.
    Hidden,
    /// The narrow input.
    Narrow,
    /// The second narrow input, for queries and keys.
    Shared,
}

/// The weights of one layer of MobileBERT: attention and feed-forward networks of width h between hidden states of width H.
pub struct BottleneckLayer {
    /// The dense layer [h, H] to the narrow input; without it, that is the hidden state.
    pub input: Option<DenseNorm>,
    /// The dense layer [h, H] to the second narrow input.
    pub shared: Option<DenseNorm>,
    /// What queries and keys are computed from.
    pub queries_from: Source,
    /// What values are computed from: the hidden state or the narrow input.
    pub values_from: Source,
    /// Query and key, computed as one: [2h, h].
    pub query_key: Arc<Dense>,
    /// Value, [h, H] or [h, h].
    pub value: Arc<Dense>,
    /// The dense layer after attention, [h, h], with the narrow input as residual.
    pub output: DenseNorm,
    /// The feed-forward networks, each a dense layer [F, h] and one back, [h, F].
    pub feed_forward: Vec<(Arc<Dense>, DenseNorm)>,
    /// The dense layer [H, h] back to the hidden state, which is its residual.
    pub back: Option<DenseNorm>,
}

/// The layers of an encoder, in the order in which they run.
pub enum Layers {
    /// Layers of BERT; ALBERT runs one several times.
    Bert(Vec<Arc<Layer>>),
    /// Layers of MobileBERT.
    Bottleneck(Vec<Arc<BottleneckLayer>>),
}

impl Layers {
    /// Returns how many layers are run.
    pub fn len(&self) -> usize {
        match self {
            Layers::Bert(layers) => layers.len(),
            Layers::Bottleneck(layers) => layers.len(),
        }
    }

    /// Whether there are no layers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How a DeBERTa differs from BERT.
pub struct Disentangled {
    /// Which relative position each distance has.
    pub positions: RelativePositions,
    /// By how much scores are scaled down besides d.
    pub count: usize,
    /// The projected relative positions of each layer; empty for a model without terms of positions.
    pub layers: Vec<RelativeTerms>,
    /// The convolution over the embeddings, whose output is added after the first layer.
    pub convolution: Option<Convolution>,
}

/// A convolution over the embeddings of a sequence, as a dense layer over neighbouring tokens.
pub struct Convolution {
    /// [H, width · H′], by neighbour from the first to the last, where H′ is H rounded up to whole panels.
    pub dense: Dense,
    /// How many neighbouring tokens an output is computed from, an odd number.
    pub width: usize,
    /// The activation of its output.
    pub activation: Activation,
    /// The layer norm over the sum of its output and that of the first layer.
    pub norm: LayerNormWeights,
}

/// What the attention of one layer knows about positions, besides a bias.
#[derive(Debug, Clone, Copy, Default)]
pub struct LayerPositions {
    /// Which of [`Encoder::rotary`](super::Encoder::rotary) queries and keys are rotated by; None if they are not.
    pub rotary: Option<usize>,
    /// The greatest distance from a query to a key that it sees; None if it sees all.
    pub window: Option<usize>,
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
