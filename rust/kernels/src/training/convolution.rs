//! The convolution of a DeBERTa, forward and backward, over the tokens of one task: f(dropout(convolution(x₀))), x₀ being the
//! input of the layer. It is a dense layer over the neighbours of each token, side by side, and 0 for masked tokens.
//!
//! Backward, the gradient with respect to the neighbours is added up at the token that each of them is. It goes to x₀, past the
//! sub-layers between, so it is kept until these have added theirs.

use super::activation::activation_backward;
use super::attention::PositionSums;
use super::body::{BodyInputs, Product, SubLayer, TrainedBody};
use super::buffers::{LayerScratch, ResidualGradients, ResidualKept, TaskTokens};
use super::dropout::Site;
use super::encoder_gradients::GradientWriter;
use super::parameters::{Borrowed, Written, write_sum};
use super::products::{WeightGradient, add_column_sums, weight_gradients};
use crate::activation::apply;
use crate::gemm::{Dense, Epilogue, linear};
use crate::matrix::{Matrix, PANEL, Row, add_columns, panels};
use crate::neighbours::Neighbours;
use crate::plan::{Body, Convolution};

impl TrainedBody for Convolution<Borrowed<'_>> {
    const READS_LAYER: bool = true;

    fn products(&self, hidden: usize) -> Vec<Product<'_>> {
        vec![Product { layers: vec![self.dense], inputs: self.width * hidden, of_neighbours: true }]
    }

    fn forward(
        &self,
        of: SubLayer<'_, '_>,
        inputs: BodyInputs<'_>,
        kept: &mut ResidualKept,
        to: &mut Matrix,
        scratch: &mut LayerScratch,
    ) {
        let (rows, hidden, execution) = (of.tokens.rows, of.pass.config.hidden, of.pass.execution);
        let LayerScratch { h, converted, states, .. } = scratch;
        let ResidualKept { neighbours, z, .. } = kept;
        let mut gathered = neighbours.reshape(rows, self.width * panels(hidden) * PANEL).view_mut();
        for (of_sequence, part, visible) in each_sequence(self.width, of.tokens, hidden) {
            let positions = &of.tokens.positions[part.clone()];
            of_sequence.gather(inputs.layer.rows(visible), positions, &mut gathered.rows(part));
        }
        let z_of = z.reshape(rows, hidden).view_mut();
        linear(execution, neighbours.view(), &of.packed().dense[0], Epilogue::Bias, z_of, converted);
        of.tokens.clear_masked(z);
        of.drop(Site::Convolution, self.dropout, z, hidden, states);
        h.reshape(rows, hidden).data_mut().copy_from_slice(z.data());
        apply(execution.instruction_set, self.activation, h.data_mut());
        for panel in 0..panels(hidden) {
            to.reshape(rows, hidden).view_mut().panel(panel).copy_from_slice(inputs.residual.panel(panel));
        }
        // The activation of the padding columns need not be 0.
        add_columns(h.view(), to.view_mut(), hidden);
    }

    fn backward<'a>(
        &self,
        of: SubLayer<'a, '_>,
        kept: &mut ResidualKept,
        gradients: &mut ResidualGradients,
        _: &mut PositionSums,
        scratch: &mut LayerScratch,
    ) -> Option<&'a Dense> {
        let (rows, hidden, execution) = (of.tokens.rows, of.pass.config.hidden, of.pass.execution);
        let LayerScratch { h, converted, states, .. } = scratch;
        let ResidualGradients { dy, dinner: dz, sums, .. } = gradients;
        let ResidualKept { dneighbours, z, dlayer, .. } = kept;
        dz.reshape(rows, hidden).data_mut().copy_from_slice(dy.data());
        let h = h.reshape(rows, hidden).data_mut();
        activation_backward(execution.instruction_set, self.activation, z.data(), dz.data_mut(), h);
        of.drop(Site::Convolution, self.dropout, dz, hidden, states);
        of.tokens.clear_masked(dz);
        add_column_sums(execution, dz.view(), &mut sums.output);
        let to = dneighbours.reshape(rows, self.width * panels(hidden) * PANEL).view_mut();
        linear(execution, dz.view(), &of.packed().dense[0], Epilogue::Bias, to, converted);
        dlayer.reshape(rows, hidden).data_mut().fill(Row::ZERO);
        for (of_sequence, part, visible) in each_sequence(self.width, of.tokens, hidden) {
            let to = &mut dlayer.view_mut();
            let from = dneighbours.view().rows(part.clone());
            of_sequence.scatter(from, &of.tokens.positions[part], &mut to.rows(visible));
        }
        None
    }

    fn write<'a>(&self, to: &'a mut Body<Written<'_>>, writer: &mut GradientWriter<'a>) {
        let Body::Convolution(Convolution { dense: to, .. }) = to else {
            unreachable!("gradients are of the parts of the plan")
        };
        let (place, hidden) = (writer.place, self.dense.bias.len());
        write_sum(writer.tasks.iter().map(|task| &place.gradients(task).sums.output[..]), to.bias, writer.add);
        // Each neighbour begins at a panel.
        let padded = panels(hidden) * PANEL;
        let mut weight = vec![0.0; hidden * self.width * padded];
        let factors = |task| [place.gradients(task).dinner.view(), place.kept(task).neighbours.view()];
        let parts = writer.tasks.iter().map(factors).collect();
        let gradient = WeightGradient { parts, inputs: self.width * padded, to: &mut weight, add: false };
        weight_gradients(writer.execution, vec![gradient], writer.multiplies_pairs);
        for (to, from) in to.weight.chunks_exact_mut(hidden).zip(weight.chunks_exact(padded)) {
            to.copy_from_slice(&from[..hidden]);
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
