//! The parameters of an encoder and their gradients, borrowed from the caller; and packed for products.
//!
//! Weights are [out, in], row by row. They change with each step, so they are packed anew in each pass, one layer at a time.

use wordpiece_parallel::map_with;

use crate::activation::Activation;
use crate::disentangled::RelativePositions;
use crate::encoder::LayerNormWeights;
use crate::execution::Execution;
use crate::gemm::{Dense, Products};
use crate::matrix::{PANEL, Row, panels};
use crate::numbers::Numbers;

/// Weight [out, in] and bias `[out]` of a dense layer, or γ and β of a norm.
#[derive(Clone, Copy)]
pub struct Affine<'a> {
    /// The weight, or γ.
    pub weight: &'a [f32],
    /// The bias, or β.
    pub bias: &'a [f32],
}

/// The parameters of a layer.
#[derive(Clone, Copy)]
pub struct LayerParameters<'a> {
    /// Query, key and value, each [H, H].
    pub qkv: [Affine<'a>; 3],
    /// Where a DeBERTa has them, the dense layers from relative positions to Kʳ and Qʳ, each [H, H]; without, those of keys
    /// and queries.
    pub relative: [Option<Affine<'a>>; 2],
    /// The dense layer after the attention [H, H].
    pub output: Affine<'a>,
    /// The norm after it. Where norms come first, that before the attention, which a layer may lack.
    pub output_norm: Option<Affine<'a>>,
    /// The first dense layer of the feed-forward network [F, H], or the gate.
    pub inner: Affine<'a>,
    /// What is multiplied by the gate of a gated network [F, H].
    pub up: Option<Affine<'a>>,
    /// The second dense layer [H, F].
    pub outer: Affine<'a>,
    /// The norm after it. Where norms come first, that before the feed-forward network.
    pub outer_norm: Affine<'a>,
}

/// What the attention of one layer knows about positions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Positions {
    /// The number of the frequencies by which queries and keys are rotated; `None` if they are not.
    pub rotation: Option<usize>,
    /// The greatest distance from a query to a key that it sees; `None` if it sees all.
    pub window: Option<usize>,
}

/// The parameters of an encoder.
pub struct EncoderParameters<'a> {
    /// Tables [rows, E] of words and positions; instead of words, vectors [tokens, E] of the batch.
    pub words: &'a [f32],
    /// Positions, if the model has them.
    pub positions: Option<&'a [f32]>,
    /// Types, if the model has them.
    pub types: Option<&'a [f32]>,
    /// The norm of the embeddings, over E columns.
    pub embedding_norm: Affine<'a>,
    /// The dense layer from E to H, if the model has one.
    pub projection: Option<Affine<'a>>,
    /// MPNet's attention bias [N, 2·D + 1], by the distance key − query from −D to D.
    pub relative_bias: Option<&'a [f32]>,
    /// The different layers.
    pub layers: Vec<LayerParameters<'a>>,
    /// For each layer of the encoder, the number of its parameters in `layers`: ALBERT's layers share them.
    pub uses: &'a [usize],
    /// The norm after the last layer, if the model has one.
    pub last_norm: Option<Affine<'a>>,
    /// The frequencies of rotary positions, `[d/2]` each, that layers have.
    pub frequencies: Vec<&'a [f32]>,
    /// For each layer of the encoder, what it knows about positions.
    pub layer_positions: Vec<Positions>,
    /// How a DeBERTa differs from BERT.
    pub disentangled: Option<DisentangledParameters<'a>>,
}

/// How a DeBERTa differs from BERT.
pub struct DisentangledParameters<'a> {
    /// By how much scores are scaled down besides d.
    pub count: usize,
    /// The relative positions, if scores have terms of them.
    pub relative: Option<RelativeParameters<'a>>,
    /// The convolution over the embeddings, which is added to the output of the first layer.
    pub convolution: Option<ConvolutionParameters<'a>>,
}

/// The table of relative positions.
pub struct RelativeParameters<'a> {
    /// Which row of the table each distance has.
    pub positions: RelativePositions,
    /// Whether scores have the terms of Kʳ and of Qʳ.
    pub terms: [bool; 2],
    /// The table [2K, H].
    pub table: &'a [f32],
    /// The norm of its rows, if the model has one.
    pub norm: Option<Affine<'a>>,
}

/// A convolution over the tokens of a sequence, as a dense layer over neighbouring tokens.
#[derive(Clone, Copy)]
pub struct ConvolutionParameters<'a> {
    /// Weight [H, width · H], by neighbour from the first to the last, and bias.
    pub dense: Affine<'a>,
    /// The activation of its output.
    pub activation: Activation,
    /// The norm over the sum of its output and that of the first layer.
    pub norm: Affine<'a>,
}

/// The gradients of a weight and a bias.
pub struct AffineGradient<'a> {
    /// Of the weight, or γ.
    pub weight: &'a mut [f32],
    /// Of the bias, or β.
    pub bias: &'a mut [f32],
}

/// The gradients of a layer; as [`LayerParameters`].
pub struct LayerGradients<'a> {
    /// Query, key and value.
    pub qkv: [AffineGradient<'a>; 3],
    /// The layers' own dense layers from relative positions.
    pub relative: [Option<AffineGradient<'a>>; 2],
    /// The dense layer after the attention.
    pub output: AffineGradient<'a>,
    /// The norm after it.
    pub output_norm: Option<AffineGradient<'a>>,
    /// The first dense layer of the feed-forward network, or the gate.
    pub inner: AffineGradient<'a>,
    /// What is multiplied by the gate.
    pub up: Option<AffineGradient<'a>>,
    /// The second dense layer.
    pub outer: AffineGradient<'a>,
    /// The norm after it.
    pub outer_norm: AffineGradient<'a>,
}

/// The gradients of the embeddings. Those of the tables are added to; the others are overwritten.
pub struct EmbeddingGradients<'a> {
    /// The table of words and the row that gets no gradient, if the word vectors come from it.
    pub words: Option<(&'a mut [f32], Option<usize>)>,
    /// The table of positions and the row that gets no gradient.
    pub positions: Option<(&'a mut [f32], Option<usize>)>,
    /// The table of types.
    pub types: Option<&'a mut [f32]>,
    /// The norm.
    pub norm: AffineGradient<'a>,
    /// The projection.
    pub projection: Option<AffineGradient<'a>>,
    /// The word vectors [tokens, E].
    pub vectors: &'a mut [f32],
}

/// The gradients of an encoder.
pub struct EncoderGradients<'a> {
    /// Those of the embeddings; `None` if they are not trained.
    pub embeddings: Option<EmbeddingGradients<'a>>,
    /// MPNet's attention bias, as in [`EncoderParameters`].
    pub relative_bias: Option<&'a mut [f32]>,
    /// The different layers. Those that are not trained are not written.
    pub layers: Vec<LayerGradients<'a>>,
    /// The norm after the last layer.
    pub last_norm: Option<AffineGradient<'a>>,
    /// The table of relative positions and its norm, if they are trained.
    pub relative: Option<RelativeGradients<'a>>,
    /// The convolution, if it is trained, and its norm.
    pub convolution: Option<[AffineGradient<'a>; 2]>,
}

/// The gradients of the table of relative positions.
pub struct RelativeGradients<'a> {
    /// The table [2K, H].
    pub table: &'a mut [f32],
    /// The norm of its rows.
    pub norm: Option<AffineGradient<'a>>,
}

/// The packed parameters of a layer, for its forward pass.
pub(super) struct Forward {
    pub qkv: Dense,
    pub output: Dense,
    pub inner: Dense,
    pub outer: Dense,
    pub norms: Norms,
}

/// The packed weights of a layer for its backward pass, dx = dy·W: transposed, without biases.
pub(super) struct Backward {
    /// Its inputs are dq, dk and dv, each beginning at a panel.
    pub qkv: Dense,
    pub output: Dense,
    pub inner: Dense,
    pub outer: Dense,
    pub norms: Norms,
}

/// The norms of a layer.
pub(super) struct Norms {
    pub output: Option<LayerNormWeights>,
    pub outer: LayerNormWeights,
}

impl Norms {
    fn new(layer: &LayerParameters<'_>) -> Norms {
        Norms { output: layer.output_norm.map(norm_weights), outer: norm_weights(layer.outer_norm) }
    }

    /// Returns the norm after the attention, which every layer has whose norms come last.
    pub fn attention(&self) -> &LayerNormWeights {
        self.output.as_ref().expect("a norm after the attention")
    }
}

impl<'a> LayerParameters<'a> {
    /// Returns the dense layers from relative positions to those of Kʳ and Qʳ that scores have.
    pub(super) fn relative_layers(&self, terms: [bool; 2]) -> Vec<Affine<'a>> {
        let layers = [self.relative[0].unwrap_or(self.qkv[1]), self.relative[1].unwrap_or(self.qkv[0])];
        layers.into_iter().zip(terms).filter_map(|(layer, there)| there.then_some(layer)).collect()
    }

    /// Returns the dense layers of the feed-forward network before the activation: one, or the gate and what it multiplies.
    fn inners(&self) -> Vec<Affine<'a>> {
        std::iter::once(self.inner).chain(self.up).collect()
    }
}

impl Forward {
    pub fn new(execution: Execution, layer: &LayerParameters<'_>, hidden: usize, products: Products) -> Forward {
        let (intermediate, inners) = (layer.inner.bias.len(), layer.inners());
        let parts = vec![
            (&layer.qkv[..], hidden),
            (std::slice::from_ref(&layer.output), hidden),
            (&inners[..], hidden),
            (std::slice::from_ref(&layer.outer), intermediate),
        ];
        let packed = map_with(parts, execution.pool, || (), |(), (layers, k)| packed(layers, k, products));
        let [qkv, output, inner, outer] = packed.try_into().unwrap_or_else(|_| unreachable!("four parts"));
        Forward { qkv, output, inner, outer, norms: Norms::new(layer) }
    }
}

impl Backward {
    pub fn new(execution: Execution, layer: &LayerParameters<'_>, hidden: usize, products: Products) -> Backward {
        let (intermediate, inners) = (layer.inner.bias.len(), layer.inners());
        let parts = vec![
            (&layer.qkv[..], hidden),
            (std::slice::from_ref(&layer.output), hidden),
            (&inners[..], hidden),
            (std::slice::from_ref(&layer.outer), intermediate),
        ];
        let packed =
            map_with(parts, execution.pool, || (), |(), (layers, inputs)| packed_transposed(layers, inputs, products));
        let [qkv, output, inner, outer] = packed.try_into().unwrap_or_else(|_| unreachable!("four parts"));
        Backward { qkv, output, inner, outer, norms: Norms::new(layer) }
    }
}

/// Pads γ and β to whole panels.
pub(super) fn norm_weights(norm: Affine<'_>) -> LayerNormWeights {
    LayerNormWeights::new(norm.weight, norm.bias)
}

/// Packs dense layers with the same `k` inputs.
pub(super) fn packed(layers: &[Affine<'_>], k: usize, products: Products) -> Dense {
    let layers: Vec<_> = layers.iter().map(|layer| (Numbers::F32(layer.weight), layer.bias)).collect();
    Dense::new(&layers, k, products)
}

/// Packs the transposes of dense layers with the same inputs, joined: a dense layer from all their outputs, of which each
/// layer's begin at a panel, to the inputs.
pub(super) fn packed_transposed(layers: &[Affine<'_>], inputs: usize, products: Products) -> Dense {
    /// Rows and columns that are transposed at a time, so that both sides stay in the cache.
    const SQUARE: usize = 32;
    let outputs: usize = layers.iter().map(|layer| panels(layer.bias.len()) * PANEL).sum();
    let mut transposed = vec![0.0; inputs * outputs];
    let mut first = 0;
    for layer in layers {
        for (block, rows) in layer.weight.chunks(SQUARE * inputs).enumerate() {
            for column in (0..inputs).step_by(SQUARE) {
                let columns = column..(column + SQUARE).min(inputs);
                for (row, weights) in rows.chunks_exact(inputs).enumerate() {
                    let to = &mut transposed[first + block * SQUARE + row..];
                    for (to, weight) in
                        to[columns.start * outputs..].iter_mut().step_by(outputs).zip(&weights[columns.clone()])
                    {
                        *to = *weight;
                    }
                }
            }
        }
        first += panels(layer.bias.len()) * PANEL;
    }
    Dense::new(&[(Numbers::F32(&transposed), &vec![0.0; inputs])], outputs, products)
}

/// Writes, or adds, the first numbers of `from` to `to`.
pub(super) fn write(from: &[Row], to: &mut [f32], add: bool) {
    for (from, to) in from.iter().zip(to.chunks_mut(PANEL)) {
        if add {
            to.iter_mut().zip(from.0).for_each(|(to, from)| *to += from);
        } else {
            to.copy_from_slice(&from.0[..to.len()]);
        }
    }
}

/// Writes the sum of the parts, first to last, or adds it to `to`.
pub(super) fn write_sum<'a>(parts: impl Iterator<Item = &'a [Row]>, to: &mut [f32], add: bool) {
    for (n, part) in parts.enumerate() {
        write(part, to, add || n > 0);
    }
}
