//! What a kind of layer is in training: the trait that the body of a sub-layer implements, and what it is given.

use super::attention::PositionSums;
use super::buffers::{LayerScratch, ResidualGradients, ResidualKept, TaskTokens};
use super::dropout::{Dropout, Mask, Site, drop_rows};
use super::encoder_gradients::GradientWriter;
use super::heads::RelativeHeads;
use super::norm::{Normalized, normalize, normalize_backward};
use super::parameters::{Affine, Borrowed, PackedResidual, Written};
use crate::encoder::Norm;
use crate::execution::Execution;
use crate::gemm::{ConvertedInputs, Dense, Epilogue, Products, linear};
use crate::matrix::{Matrix, Row, View, ViewMut, add_rows, panels};
use crate::plan::{Body, Residual};

/// The sizes of an encoder that is trained, and how it multiplies.
#[derive(Debug, Clone, Copy)]
pub struct TrainingConfig {
    /// H.
    pub hidden: usize,
    /// E, the width of the embedding tables.
    pub embedding: usize,
    /// How dense layers multiply. The gradients of weights are sums of pairs as well where vectors multiply them.
    pub products: Products,
}

/// What all tasks of a pass share in a layer.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    /// The sizes.
    pub config: TrainingConfig,
    /// Without threads: tasks are shared among them.
    pub execution: Execution,
    /// The masks, as a function of site, layer and token; `None` in a pass without dropout.
    pub dropout: Option<Dropout>,
    /// What the scores of a DeBERTa have of relative positions.
    pub relative: Option<RelativeHeads<'a>>,
}

/// A layer: its sub-layers, and the same packed for one direction.
#[derive(Clone, Copy)]
pub(super) struct Layer<'a, 'p> {
    /// Its number in the encoder.
    pub index: usize,
    /// Its sub-layers with their parameters.
    pub plan: &'a [Residual<Borrowed<'p>>],
    /// The same, packed: as they are, or transposed for the backward pass.
    pub packed: &'a [PackedResidual],
}

/// A sub-layer, and the tokens of a task that it is computed for.
#[derive(Clone, Copy)]
pub(super) struct SubLayer<'a, 'p> {
    /// What all tasks share.
    pub pass: &'a Pass<'a>,
    /// The layer.
    pub layer: Layer<'a, 'p>,
    /// The number of the sub-layer in it.
    pub place: usize,
    /// The tokens.
    pub tokens: &'a TaskTokens,
}

/// What a body computes its result from.
#[derive(Clone, Copy)]
pub(super) struct BodyInputs<'a> {
    /// The input of the layer.
    pub layer: View<'a>,
    /// The input of the sub-layer, to which the result is added.
    pub residual: View<'a>,
    /// The same after the norm before the body, if it has one.
    pub normed: View<'a>,
}

/// A kind of layer, forward and backward: what the body of a sub-layer is trained by.
pub(super) trait TrainedBody {
    /// Whether it reads the input of the layer, and not the input of the sub-layer.
    const READS_LAYER: bool = false;

    /// Returns the dense layers of each of its products, in their order.
    fn products(&self, hidden: usize) -> Vec<Product<'_>>;

    /// Computes to = residual + dropout(body(normed)), and keeps what the backward pass needs.
    fn forward(
        &self,
        of: SubLayer<'_, '_>,
        inputs: BodyInputs<'_>,
        kept: &mut ResidualKept,
        to: &mut Matrix,
        scratch: &mut LayerScratch,
    );

    /// Takes `gradients.dy` back to `gradients.dinner`, the gradient with respect to the result of the first dense layer, and
    /// computes what the gradients of the parameters are made of. Returns that dense layer, through which the caller goes on;
    /// None for a body that keeps the gradient with respect to the input of the layer.
    fn backward<'a>(
        &self,
        of: SubLayer<'a, '_>,
        kept: &mut ResidualKept,
        gradients: &mut ResidualGradients,
        positions: &mut PositionSums,
        scratch: &mut LayerScratch,
    ) -> Option<&'a Dense>;

    /// Writes the gradients of its parameters, as sums over the tasks.
    fn write<'a>(&self, to: &'a mut Body<Written<'_>>, writer: &mut GradientWriter<'a>);
}

/// Dense layers with the same input, which are computed as one.
pub(super) struct Product<'a> {
    /// Their parameters.
    pub layers: Vec<Affine<'a>>,
    /// How many inputs they have.
    pub inputs: usize,
    /// Whether the inputs are neighbours, of which each begins at a panel.
    pub of_neighbours: bool,
}

impl Pass<'_> {
    /// Returns the mask of a site of a layer; `None` for no dropout there.
    pub fn mask(&self, site: Site, index: usize, rate: f64) -> Option<Mask> {
        self.dropout.and_then(|dropout| dropout.at(site, index, rate))
    }

    /// Multiplies the `columns` columns of the token vectors `x` by the mask of a site, if it has one.
    pub fn drop(&self, mask: Option<Mask>, tokens: &TaskTokens, x: &mut Matrix, columns: usize, states: &mut Vec<u64>) {
        let Some(mask) = mask else { return };
        states.clear();
        for rows in &tokens.sequences {
            states.extend((0..rows.tokens.len()).map(|place| mask.state(rows.number, place)));
        }
        drop_rows(self.execution.instruction_set, mask, states, &mut x.view_mut(), panels(columns));
    }

    /// Computes y from what `kept` has of x, as [`normalize`].
    pub fn normalize(&self, norm: &Norm, kept: &mut Normalized, y: &mut ViewMut<'_>) {
        normalize(self.execution.instruction_set, norm.kind, norm.parameters(), kept, y);
    }

    /// Replaces dy by dx and adds to the sums of γ and β, as [`normalize_backward`].
    pub fn normalize_backward(&self, norm: &Norm, kept: &Normalized, dy: &mut ViewMut<'_>, sums: &mut [Vec<Row>; 2]) {
        let sums = sums.each_mut().map(|sums| &mut sums[..]);
        normalize_backward(self.execution.instruction_set, norm.kind, norm.parameters(), kept, dy, sums);
    }
}

impl<'a, 'p> SubLayer<'a, 'p> {
    /// Returns what it is, with its parameters.
    pub fn residual(&self) -> &'a Residual<Borrowed<'p>> {
        &self.layer.plan[self.place]
    }

    /// Returns the same, packed.
    pub fn packed(&self) -> &'a PackedResidual {
        &self.layer.packed[self.place]
    }

    /// Multiplies the `columns` columns of `x` by the mask of a site, if it has one.
    pub fn drop(&self, site: Site, rate: f64, x: &mut Matrix, columns: usize, states: &mut Vec<u64>) {
        self.pass.drop(self.pass.mask(site, self.layer.index, rate), self.tokens, x, columns, states);
    }

    /// Computes to = dropout(x·Wᵀ + b) + residual, of H columns, which ends a body.
    pub fn project(
        &self,
        site: Site,
        dense: &Dense,
        [x, residual]: [View<'_>; 2],
        to: &mut Matrix,
        converted: &mut ConvertedInputs,
        states: &mut Vec<u64>,
    ) {
        let (execution, hidden) = (self.pass.execution, self.pass.config.hidden);
        let mask = self.pass.mask(site, self.layer.index, self.residual().dropout);
        to.reshape(self.tokens.rows, hidden);
        if mask.is_none() {
            linear(execution, x, dense, Epilogue::Residual(residual), to.view_mut(), converted);
            return;
        }
        linear(execution, x, dense, Epilogue::Bias, to.view_mut(), converted);
        self.pass.drop(mask, self.tokens, to, hidden, states);
        for panel in 0..panels(hidden) {
            add_rows(residual.panel(panel), to.view_mut().panel(panel));
        }
    }
}
