//! The feed-forward network of a layer, forward and backward, over the tokens of one task: h = f(W₁·x + b₁), or with a gate
//! f(W_gate·x)·(W_up·x).
//!
//! Only z, what is before the activation, is kept: h is computed again where its gradient is. The second dense layer is the
//! caller's, which adds the residual. Backward, from the gradient dy of its result: dh = dy·W₂ and dz = dh ⊙ f′(z); with a gate
//! of value g and u = W_up·x there are dg = dh ⊙ u ⊙ f′(g) and du = dh ⊙ f(g), side by side.

use super::activation::activation_backward;
use super::dropout::Site;
use super::gate::multiply;
use super::layer::{LayerScratch, Pass, ResidualGradients, TaskTokens};
use super::parameters::{Borrowed, inner_panels, mlp_width};
use super::products::add_column_sums;
use crate::activation::apply;
use crate::gemm::{Dense, Epilogue, linear};
use crate::matrix::{Matrix, PANEL, View, panels};
use crate::plan::Mlp;

impl Pass<'_> {
    /// Computes z and, in the scratch buffers, h = dropout(f(z)), or dropout(f(z)·u) with a gate, for the input `x`.
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    pub fn hidden(
        &self,
        index: usize,
        of: &Mlp<Borrowed<'_>>,
        inner: &Dense,
        tokens: &TaskTokens,
        x: View<'_>,
        z: &mut Matrix,
        scratch: &mut LayerScratch,
    ) {
        let LayerScratch { h, converted, states, .. } = scratch;
        let (rows, columns, instruction_set) = (tokens.rows, mlp_width(of), self.execution.instruction_set);
        let to = z.reshape(rows, inner_panels(of) * PANEL).view_mut();
        linear(self.execution, x, inner, Epilogue::Bias, to, converted);
        let (gate, up) = z.data().split_at(rows * panels(columns));
        h.reshape(rows, columns).data_mut().copy_from_slice(gate);
        apply(instruction_set, of.activation, h.data_mut());
        if of.up.is_some() {
            multiply(instruction_set, h.data_mut(), up);
        }
        self.drop(self.mask(Site::Intermediate, index, of.dropout), tokens, h, columns, states);
    }

    /// Computes dz and h for the gradient `dy` of the result, and the sums of the biases.
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    pub fn hidden_backward(
        &self,
        index: usize,
        of: &Mlp<Borrowed<'_>>,
        output: &Dense,
        tokens: &TaskTokens,
        z: &Matrix,
        gradients: &mut ResidualGradients,
        scratch: &mut LayerScratch,
    ) {
        let LayerScratch { converted, states, .. } = scratch;
        let (rows, columns) = (tokens.rows, mlp_width(of));
        let (instruction_set, execution, gated) = (self.execution.instruction_set, self.execution, of.up.is_some());
        let ResidualGradients { dinner: dz, dy, h, sums, .. } = gradients;
        let (width, mask) = (panels(columns), self.mask(Site::Intermediate, index, of.dropout));
        add_column_sums(execution, dy.view(), &mut sums.output);
        let to = &mut dz.reshape(rows, inner_panels(of) * PANEL).view_mut();
        linear(execution, dy.view(), output, Epilogue::Bias, to.panels(0..width), converted);
        self.drop(mask, tokens, dz, columns, states);
        let h_of = h.reshape(rows, columns).data_mut();
        let (gate, up) = z.data().split_at(rows * width);
        let (dgate, dup) = dz.data_mut().split_at_mut(rows * width);
        if gated {
            dup.copy_from_slice(dgate);
            multiply(instruction_set, dgate, up);
        }
        activation_backward(instruction_set, of.activation, gate, dgate, h_of);
        if gated {
            multiply(instruction_set, dup, h_of);
            multiply(instruction_set, h_of, up);
        }
        self.drop(mask, tokens, h, columns, states);
        add_column_sums(execution, dz.view(), &mut sums.inner);
    }
}
