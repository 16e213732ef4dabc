//! The parameters of an encoder and their gradients, borrowed from the caller; and packed for products.
//!
//! Weights are [out, in], row by row. They change with each step, so they are packed anew in each pass, one layer at a time.

use std::marker::PhantomData;

use crate::attention::{RelativeBias, ScoreBias};
use crate::disentangled::RelativePositions;
use crate::encoder::{LayerNormWeights, Norm};
use crate::gemm::{Dense, Products};
use crate::matrix::{PANEL, Row, panels};
use crate::norm::NormKind;
use crate::numbers::Numbers;
use crate::plan::{Attention, Form, Mlp, Plan};

/// Weight [out, in] and bias `[out]` of a dense layer, or γ and β of a norm.
#[derive(Clone, Copy)]
pub struct Affine<'a> {
    /// The weight, or γ.
    pub weight: &'a [f32],
    /// The bias, or β.
    pub bias: &'a [f32],
}

/// A norm.
#[derive(Clone, Copy)]
pub struct AffineNorm<'a> {
    /// γ and β.
    pub weights: Affine<'a>,
    /// ε.
    pub eps: f32,
    /// What it computes.
    pub kind: NormKind,
}

/// A table of embeddings.
#[derive(Clone, Copy)]
pub struct EmbeddingTable<'a> {
    /// [rows, E].
    pub rows: &'a [f32],
    /// E.
    pub columns: usize,
    /// The row that gets no gradient.
    pub fixed: Option<usize>,
}

/// A bias of the scores.
#[derive(Clone)]
pub enum Bias<'a> {
    /// [N, 2·D + 1], by the distance key − query from −D to D.
    Distances(&'a [f32]),
    /// A slope for each head.
    Slopes(Vec<f32>),
}

/// The terms of relative positions of a layer.
#[derive(Clone, Copy)]
pub struct RelativeParameters<'a> {
    /// Which row of the table each distance has.
    pub positions: RelativePositions,
    /// The table [2K, H], which all layers share.
    pub table: &'a [f32],
    /// The norm of its rows, if the model has one.
    pub norm: Option<AffineNorm<'a>>,
    /// The dense layers from relative positions to Kʳ and Qʳ, each [H, H], of which a model may have one.
    pub terms: [Option<Affine<'a>>; 2],
    /// The dropout of the rows.
    pub dropout: f64,
}

/// Borrowed numbers in a [`Plan`].
pub struct Borrowed<'a>(PhantomData<&'a f32>);

impl<'a> Form for Borrowed<'a> {
    type Dense = Affine<'a>;
    type Joined = [Affine<'a>; 3];
    type Norm = AffineNorm<'a>;
    type Table = EmbeddingTable<'a>;
    type Bias = Bias<'a>;
    type Relative = RelativeParameters<'a>;
    type Rate = f64;
}

/// The parameters of an encoder.
pub struct EncoderParameters<'a> {
    /// The layers, each once.
    pub plan: Plan<Borrowed<'a>>,
    /// For each layer of the encoder, its number in the plan: ALBERT's layers share their parameters.
    pub uses: Vec<usize>,
    /// Vectors [tokens, E] of the batch in place of the table of words.
    pub vectors: Option<&'a [f32]>,
    /// The frequencies of rotary positions, `[d/2]` each, that layers have.
    pub frequencies: &'a [Vec<f32>],
}

/// The gradients of a weight and a bias; of a bias that the layer does not have, empty.
pub struct AffineGradient<'a> {
    /// Of the weight, or γ.
    pub weight: &'a mut [f32],
    /// Of the bias, or β.
    pub bias: &'a mut [f32],
}

/// The gradients of the terms of relative positions; each is written where it occurs first.
pub struct RelativeGradients<'a> {
    /// The table [2K, H], in one of the layers.
    pub table: Option<&'a mut [f32]>,
    /// The norm of its rows, in the same one.
    pub norm: Option<AffineGradient<'a>>,
    /// The layers' own dense layers from relative positions; `None` for those that are the layers of keys or queries.
    pub terms: [Option<AffineGradient<'a>>; 2],
}

/// The gradients of the weights in a [`Plan`]. The gradients of tables are added to; the others are overwritten.
pub struct Written<'a>(PhantomData<&'a mut f32>);

impl<'a> Form for Written<'a> {
    type Dense = AffineGradient<'a>;
    type Joined = [AffineGradient<'a>; 3];
    type Norm = AffineGradient<'a>;
    type Table = Option<&'a mut [f32]>;
    /// Of `Distances`, in one of the layers.
    type Bias = Option<&'a mut [f32]>;
    type Relative = RelativeGradients<'a>;
    type Rate = ();
}

/// The gradients of an encoder.
pub struct EncoderGradients<'a> {
    /// The gradients of the parameters, as [`EncoderParameters`] has them. Layers that are not trained are not written.
    pub plan: Plan<Written<'a>>,
    /// The word vectors [tokens, E]; `None` if the embeddings are not trained.
    pub vectors: Option<&'a mut [f32]>,
}

/// A sub-layer, packed.
pub(super) struct PackedResidual {
    /// Its products, packed for one direction of a pass: for the backward pass, dx = dy·W, transposed and without biases. Each
    /// of the layers of a product begins at a panel.
    pub dense: Vec<Dense>,
    /// The norm before the body.
    pub before: Option<Norm>,
    /// The norm after the residual.
    pub after: Option<Norm>,
    /// The norm after a second residual.
    pub again: Option<Norm>,
    /// Of queries and keys.
    pub norms: Option<[Norm; 2]>,
}

// Functions, not methods: the methods of a type count as its module's, and that module would then use this one.

/// Returns N·d, the width of all queries.
pub(super) fn attention_width(of: &Attention<Borrowed<'_>>) -> usize {
    of.qkv[0].bias.len()
}

/// Returns what an attention adds to its scores.
pub(super) fn score_bias<'a>(of: &'a Attention<Borrowed<'_>>) -> Option<ScoreBias<'a>> {
    of.bias.as_ref().map(|bias| match bias {
        Bias::Distances(bias) => {
            ScoreBias::Distances(RelativeBias { bias, max_distance: (bias.len() / of.heads - 1) / 2 })
        }
        Bias::Slopes(slopes) => ScoreBias::Slopes(slopes),
    })
}

/// Returns F.
pub(super) fn mlp_width(of: &Mlp<Borrowed<'_>>) -> usize {
    of.inner.bias.len()
}

/// Returns how many panels the first dense layers of a feed-forward network have.
pub(super) fn inner_panels(of: &Mlp<Borrowed<'_>>) -> usize {
    panels(mlp_width(of)) * if of.up.is_some() { 2 } else { 1 }
}

/// Pads γ and β to whole panels.
pub(super) fn norm_of(norm: AffineNorm<'_>) -> Norm {
    let AffineNorm { weights: Affine { weight, bias }, eps, kind } = norm;
    Norm { weights: LayerNormWeights::new(weight, bias), eps, columns: weight.len(), kind }
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
