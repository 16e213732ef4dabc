//! The convolution of a DeBERTa, forward and backward, over the tokens of one task.
//!
//! The output x of the first layer, whose input is x₀, becomes LN(x + f(dropout(convolution(x₀)))), and 0 for masked tokens.
//! The convolution is a dense layer over the neighbours of each token, side by side.

use super::activation::activation_backward;
use super::dropout::Site;
use super::layer::{LayerScratch, Pass, TaskTokens, TrainingConfig};
use super::norm::{Normalized, normalize, normalize_backward};
use super::parameters::{Affine, ConvolutionParameters, norm_weights, packed, packed_transposed};
use super::products::add_column_sums;
use crate::activation::{Activation, apply};
use crate::encoder::LayerNormWeights;
use crate::gemm::{Dense, Epilogue, Products, linear};
use crate::matrix::{Matrix, PANEL, Row, add_columns, add_rows, panels};
use crate::neighbours::Neighbours;

/// The packed weights of a convolution, for one direction of a pass.
pub(super) struct Convolution {
    dense: Dense,
    norm: LayerNormWeights,
    activation: Activation,
    /// How many neighbours an output is computed from.
    width: usize,
}

/// What a task has of the convolution.
#[derive(Default)]
pub(super) struct ConvolutionTask {
    /// The neighbours of each token [rows, width · H′], and the gradient with respect to them.
    pub neighbours: Matrix,
    dneighbours: Matrix,
    /// Before the activation [rows, H].
    z: Matrix,
    /// Of the norm.
    output: Normalized,
    /// The gradient with respect to the result of the dense layer [rows, H].
    pub dz: Matrix,
    /// The gradient with respect to x₀ [rows, H].
    dx: Matrix,
    /// The sums of the gradients of the bias, and of γ and β.
    pub bias: Vec<Row>,
    pub norm: [Vec<Row>; 2],
}

impl Convolution {
    /// Packs a convolution for the forward pass.
    pub fn forward(of: ConvolutionParameters<'_>, config: TrainingConfig) -> Convolution {
        Convolution::new(of, config, packed)
    }

    /// Packs it for the backward pass.
    pub fn backward(of: ConvolutionParameters<'_>, config: TrainingConfig) -> Convolution {
        Convolution::new(of, config, packed_transposed)
    }

    fn new(
        of: ConvolutionParameters<'_>,
        config: TrainingConfig,
        pack: impl FnOnce(&[Affine<'_>], usize, Products) -> Dense,
    ) -> Convolution {
        let TrainingConfig { hidden, products, .. } = config;
        let (width, padded) = (neighbours(of, hidden), panels(hidden) * PANEL);
        // Each neighbour begins at a panel.
        let mut weight = vec![0.0; of.dense.weight.len() / hidden * padded];
        for (to, from) in weight.chunks_exact_mut(padded).zip(of.dense.weight.chunks_exact(hidden)) {
            to[..hidden].copy_from_slice(from);
        }
        let dense = pack(&[Affine { weight: &weight, bias: of.dense.bias }], width * padded, products);
        Convolution { dense, norm: norm_weights(of.norm), activation: of.activation, width }
    }
}

/// Returns how many neighbours an output is computed from.
pub(super) fn neighbours(of: ConvolutionParameters<'_>, hidden: usize) -> usize {
    of.dense.weight.len() / (hidden * hidden)
}

impl Convolution {
    /// Replaces the output `y` of the first layer, whose input is `x`.
    pub fn apply(
        &self,
        pass: &Pass<'_>,
        tokens: &TaskTokens,
        x: &Matrix,
        y: &mut Matrix,
        kept: &mut ConvolutionTask,
        scratch: &mut LayerScratch,
    ) {
        let TrainingConfig { hidden, eps, .. } = pass.config;
        let (rows, instruction_set) = (tokens.rows, pass.execution.instruction_set);
        let LayerScratch { h, converted, states, .. } = scratch;
        let ConvolutionTask { neighbours, z, output, .. } = kept;
        neighbours.reshape(rows, self.width * panels(hidden) * PANEL);
        for (of_sequence, part, visible) in self.each_sequence(tokens, hidden) {
            let to = &mut neighbours.view_mut();
            of_sequence.gather(x.view().rows(visible), &tokens.positions[part.clone()], &mut to.rows(part));
        }
        let to = z.reshape(rows, hidden).view_mut();
        linear(pass.execution, neighbours.view(), &self.dense, Epilogue::Bias, to, converted);
        tokens.clear_masked(z);
        pass.drop(pass.mask(Site::Convolution, 0), tokens, z, hidden, states);
        h.reshape(rows, hidden).data_mut().copy_from_slice(z.data());
        apply(instruction_set, self.activation, h.data_mut());
        output.x_hat.reshape(rows, hidden).data_mut().copy_from_slice(y.data());
        // The activation of the padding columns need not be 0.
        add_columns(h.view(), output.x_hat.view_mut(), hidden);
        normalize(instruction_set, self.norm.with_eps(eps, hidden), output, &mut y.view_mut());
        tokens.clear_masked(y);
    }

    /// Replaces the gradient with respect to the result by that with respect to the output of the first layer, and keeps that
    /// with respect to its input for [`ConvolutionTask::add_to`].
    pub fn apply_backward(
        &self,
        pass: &Pass<'_>,
        tokens: &TaskTokens,
        dx: &mut Matrix,
        kept: &mut ConvolutionTask,
        scratch: &mut LayerScratch,
    ) {
        let TrainingConfig { hidden, eps, .. } = pass.config;
        let (rows, instruction_set) = (tokens.rows, pass.execution.instruction_set);
        let LayerScratch { h, converted, states, .. } = scratch;
        let ConvolutionTask { dneighbours, z, output, dz, dx: to_input, bias, norm: sums, .. } = kept;
        for sums in sums.iter_mut().chain([&mut *bias]) {
            sums.clear();
            sums.resize(panels(hidden), Row::ZERO);
        }
        tokens.clear_masked(dx);
        let norm = self.norm.with_eps(eps, hidden);
        let sums = sums.each_mut().map(|sums| &mut sums[..]);
        normalize_backward(instruction_set, norm, output, &mut dx.view_mut(), sums);
        dz.reshape(rows, hidden).data_mut().copy_from_slice(dx.data());
        let h = h.reshape(rows, hidden).data_mut();
        activation_backward(instruction_set, self.activation, z.data(), dz.data_mut(), h);
        pass.drop(pass.mask(Site::Convolution, 0), tokens, dz, hidden, states);
        tokens.clear_masked(dz);
        add_column_sums(pass.execution, dz.view(), bias);
        let to = dneighbours.reshape(rows, self.width * panels(hidden) * PANEL).view_mut();
        linear(pass.execution, dz.view(), &self.dense, Epilogue::Bias, to, converted);
        to_input.reshape(rows, hidden).data_mut().fill(Row::ZERO);
        for (of_sequence, part, visible) in self.each_sequence(tokens, hidden) {
            let to = &mut to_input.view_mut();
            let from = dneighbours.view().rows(part.clone());
            of_sequence.scatter(from, &tokens.positions[part], &mut to.rows(visible));
        }
    }

    /// Returns which tokens of each sequence are neighbours, all of its tokens, and those that are visible.
    fn each_sequence<'a>(
        &self,
        tokens: &'a TaskTokens,
        columns: usize,
    ) -> impl Iterator<Item = (Neighbours<'a>, std::ops::Range<usize>, std::ops::Range<usize>)> + use<'a> {
        let width = self.width;
        tokens.sequences.iter().map(move |rows| {
            let part = rows.tokens.clone();
            let visible = part.start..part.start + rows.keys;
            (Neighbours { width, columns, visible: &tokens.positions[visible.clone()] }, part, visible)
        })
    }
}

impl ConvolutionTask {
    /// Adds the gradient with respect to x₀.
    pub fn add_to(&self, dx: &mut Matrix) {
        add_rows(self.dx.data(), dx.data_mut());
    }
}
