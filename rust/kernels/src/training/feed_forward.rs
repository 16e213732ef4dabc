//! The feed-forward network of a layer, forward and backward, over the tokens of one task: h = f(W₁·x + b₁), or with a gate
//! f(W_gate·x)·(W_up·x).
//!
//! Only z, what is before the activation, is kept: h is computed again where its gradient is. The second dense layer adds the
//! residual. Backward, from the gradient dy of its result: dh = dy·W₂ and dz = dh ⊙ f′(z); with a gate
//! of value g and u = W_up·x there are dg = dh ⊙ u ⊙ f′(g) and du = dh ⊙ f(g), side by side.

use super::activation::activation_backward;
use super::attention::PositionSums;
use super::body::{BodyInputs, Product, SubLayer, TrainedBody};
use super::buffers::{LayerScratch, ResidualGradients, ResidualKept, clear};
use super::dropout::Site;
use super::encoder_gradients::GradientWriter;
use super::gate::multiply;
use super::parameters::{Borrowed, Written, inner_panels, mlp_width};
use super::products::add_column_sums;
use crate::activation::apply;
use crate::gemm::{Dense, Epilogue, linear};
use crate::matrix::{Matrix, PANEL, panels};
use crate::plan::{Body, Mlp};

impl TrainedBody for Mlp<Borrowed<'_>> {
    fn products(&self, hidden: usize) -> Vec<Product<'_>> {
        // One, or the gate and what it multiplies.
        let inner = std::iter::once(self.inner).chain(self.up).collect();
        let product = |layers, inputs| Product { layers, inputs, of_neighbours: false };
        vec![product(inner, hidden), product(vec![self.output], mlp_width(self))]
    }

    /// h = dropout(f(z)), or dropout(f(z)·u) with a gate, stays in the scratch buffers.
    fn forward(
        &self,
        of: SubLayer<'_, '_>,
        inputs: BodyInputs<'_>,
        kept: &mut ResidualKept,
        to: &mut Matrix,
        scratch: &mut LayerScratch,
    ) {
        let LayerScratch { h, converted, states, .. } = scratch;
        let (rows, columns, execution) = (of.tokens.rows, mlp_width(self), of.pass.execution);
        let [inner, output] = &of.packed().dense[..] else { unreachable!("two products") };
        let z = kept.z.reshape(rows, inner_panels(self) * PANEL);
        linear(execution, inputs.normed, inner, Epilogue::Bias, z.view_mut(), converted);
        let (gate, up) = z.data().split_at(rows * panels(columns));
        h.reshape(rows, columns).data_mut().copy_from_slice(gate);
        apply(execution.instruction_set, self.activation, h.data_mut());
        if self.up.is_some() {
            multiply(execution.instruction_set, h.data_mut(), up);
        }
        of.drop(Site::Intermediate, self.dropout, h, columns, states);
        of.project(Site::Output, output, [h.view(), inputs.residual], to, converted, states);
    }

    /// Computes dz and h, and the sums of the biases.
    fn backward<'a>(
        &self,
        of: SubLayer<'a, '_>,
        kept: &mut ResidualKept,
        gradients: &mut ResidualGradients,
        _: &mut PositionSums,
        scratch: &mut LayerScratch,
    ) -> Option<&'a Dense> {
        let LayerScratch { converted, states, .. } = scratch;
        let (rows, columns, width) = (of.tokens.rows, mlp_width(self), panels(mlp_width(self)));
        let (execution, set, gated) = (of.pass.execution, of.pass.execution.instruction_set, self.up.is_some());
        let [inner, output] = &of.packed().dense[..] else { unreachable!("two products") };
        let ResidualGradients { dinner: dz, dy, h, sums, .. } = gradients;
        of.drop(Site::Output, of.residual().dropout, dy, of.pass.config.hidden, states);
        add_column_sums(execution, dy.view(), &mut sums.output);
        let to = &mut dz.reshape(rows, inner_panels(self) * PANEL).view_mut();
        linear(execution, dy.view(), output, Epilogue::Bias, to.panels(0..width), converted);
        of.drop(Site::Intermediate, self.dropout, dz, columns, states);
        let h_of = h.reshape(rows, columns).data_mut();
        let (gate, up) = kept.z.data().split_at(rows * width);
        let (dgate, dup) = dz.data_mut().split_at_mut(rows * width);
        if gated {
            dup.copy_from_slice(dgate);
            multiply(set, dgate, up);
        }
        activation_backward(set, self.activation, gate, dgate, h_of);
        if gated {
            multiply(set, dup, h_of);
            multiply(set, h_of, up);
        }
        of.drop(Site::Intermediate, self.dropout, h, columns, states);
        clear(&mut sums.inner, inner_panels(self));
        add_column_sums(execution, dz.view(), &mut sums.inner);
        Some(inner)
    }

    fn write<'a>(&self, to: &'a mut Body<Written<'_>>, writer: &mut GradientWriter<'a>) {
        let Body::Mlp(to) = to else { unreachable!("gradients are of the parts of the plan") };
        let (place, width) = (writer.place, panels(mlp_width(self)));
        for (n, to) in std::iter::once(&mut to.inner).chain(to.up.as_mut()).enumerate() {
            writer.inner(to, n * width..(n + 1) * width, None);
        }
        writer.output(&mut to.output, mlp_width(self), |task| place.gradients(task).h.view());
    }
}
