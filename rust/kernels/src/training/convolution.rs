//! The convolution of a DeBERTa, forward and backward, over the tokens of one task: f(dropout(convolution(x₀))), x₀ being the
//! input of the layer. It is a dense layer over the neighbours of each token, side by side, and 0 for masked tokens.
//!
//! Backward, the gradient with respect to the neighbours is added up at the token that each of them is. It goes to x₀, past the
//! sub-layers between, so it is kept until these have added theirs.

use super::activation::activation_backward;
use super::dropout::Site;
use super::layer::{ConvolutionTask, LayerScratch, Pass, ResidualGradients, TaskTokens};
use super::parameters::Borrowed;
use super::products::add_column_sums;
use crate::activation::apply;
use crate::gemm::{Dense, Epilogue, linear};
use crate::matrix::{Matrix, PANEL, Row, View, add_columns, add_rows, panels};
use crate::neighbours::Neighbours;
use crate::plan::Convolution;

impl Pass<'_> {
    /// Computes to = x + f(dropout(convolution(x₀))).
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    pub fn convolve(
        &self,
        index: usize,
        of: &Convolution<Borrowed<'_>>,
        dense: &Dense,
        tokens: &TaskTokens,
        [first, x]: [View<'_>; 2],
        kept: &mut ConvolutionTask,
        to: &mut Matrix,
        scratch: &mut LayerScratch,
    ) {
        let (rows, hidden, instruction_set) = (tokens.rows, self.config.hidden, self.execution.instruction_set);
        let LayerScratch { h, converted, states, .. } = scratch;
        let ConvolutionTask { neighbours, z, .. } = kept;
        let mut gathered = neighbours.reshape(rows, of.width * panels(hidden) * PANEL).view_mut();
        for (of_sequence, part, visible) in each_sequence(of.width, tokens, hidden) {
            let positions = &tokens.positions[part.clone()];
            of_sequence.gather(first.rows(visible), positions, &mut gathered.rows(part));
        }
        linear(self.execution, neighbours.view(), dense, Epilogue::Bias, z.reshape(rows, hidden).view_mut(), converted);
        tokens.clear_masked(z);
        self.drop(self.mask(Site::Convolution, index, of.dropout), tokens, z, hidden, states);
        h.reshape(rows, hidden).data_mut().copy_from_slice(z.data());
        apply(instruction_set, of.activation, h.data_mut());
        for panel in 0..panels(hidden) {
            to.reshape(rows, hidden).view_mut().panel(panel).copy_from_slice(x.panel(panel));
        }
        // The activation of the padding columns need not be 0.
        add_columns(h.view(), to.view_mut(), hidden);
    }

    /// Computes the gradient of the dense layer's result in `gradients.dinner`, for `gradients.dy`, and keeps that with
    /// respect to x₀ for [`ConvolutionTask::add_to`].
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    pub fn convolve_backward(
        &self,
        index: usize,
        of: &Convolution<Borrowed<'_>>,
        dense: &Dense,
        tokens: &TaskTokens,
        kept: &mut ConvolutionTask,
        gradients: &mut ResidualGradients,
        scratch: &mut LayerScratch,
    ) {
        let (rows, hidden, instruction_set) = (tokens.rows, self.config.hidden, self.execution.instruction_set);
        let LayerScratch { h, converted, states, .. } = scratch;
        let ResidualGradients { dy, dinner: dz, sums, .. } = gradients;
        let ConvolutionTask { dneighbours, z, dx: to_input, .. } = kept;
        dz.reshape(rows, hidden).data_mut().copy_from_slice(dy.data());
        let h = h.reshape(rows, hidden).data_mut();
        activation_backward(instruction_set, of.activation, z.data(), dz.data_mut(), h);
        self.drop(self.mask(Site::Convolution, index, of.dropout), tokens, dz, hidden, states);
        tokens.clear_masked(dz);
        add_column_sums(self.execution, dz.view(), &mut sums.output);
        let to = dneighbours.reshape(rows, of.width * panels(hidden) * PANEL).view_mut();
        linear(self.execution, dz.view(), dense, Epilogue::Bias, to, converted);
        to_input.reshape(rows, hidden).data_mut().fill(Row::ZERO);
        for (of_sequence, part, visible) in each_sequence(of.width, tokens, hidden) {
            let to = &mut to_input.view_mut();
            let from = dneighbours.view().rows(part.clone());
            of_sequence.scatter(from, &tokens.positions[part], &mut to.rows(visible));
        }
    }
}

/// Returns which tokens of each sequence are neighbours, all of its tokens, and those that are visible.
fn each_sequence(
    width: usize,
    tokens: &TaskTokens,
    columns: usize,
) -> impl Iterator<Item = (Neighbours<'_>, std::ops::Range<usize>, std::ops::Range<usize>)> {
    tokens.sequences.iter().map(move |rows| {
        let part = rows.tokens.clone();
        let visible = part.start..part.start + rows.keys;
        (Neighbours { width, columns, visible: &tokens.positions[visible.clone()] }, part, visible)
    })
}

impl ConvolutionTask {
    /// Adds the gradient with respect to x₀.
    pub fn add_to(&self, dx: &mut Matrix) {
        add_rows(self.dx.data(), dx.data_mut());
    }
}
