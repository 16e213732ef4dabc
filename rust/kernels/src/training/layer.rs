//! The sub-layers of a layer, forward and backward, over the tokens of one task.
//!
//! Read it beside `wordpiece_bert.bert.plan.interpreter`, whose steps it takes, on the rows of a task:
//! y = after(x + dropout(body(before(x)))), and with a second norm y′ = again(x + y).
//!
//! The backward pass takes the steps in the opposite order, from the gradient of y to the gradient of x. A residual
//! sends its gradient both ways, so x gets the sum of what comes through the body and around it. For a dense layer y =
//! x·Wᵀ + b there are dx = dy·W, which is computed here, and dW = dyᵀ·x and db, the sum of the rows of dy, which are
//! sums over all tokens of the batch: the operands are left in place, and the weights' gradients are computed once for
//! all tasks.
//!
//! Three kinds of buffers: what the backward pass needs of the forward pass is in [`Kept`], a layer's own; what a thread needs
//! while it computes a task is in [`LayerScratch`]; and gradients that are summed over the tasks are in [`Gradients`]. All only
//! grow, so that from the second batch on nothing is allocated.

use std::mem::{swap, take};

use super::attention::{AttentionScratch, PositionSums};
use super::dropout::{Dropout, Mask, Site, drop_rows};
use super::heads::{RelativeHeads, Rows, Statistics};
use super::norm::{Normalized, normalize, normalize_backward, scale_and_shift};
use super::parameters::{Borrowed, PackedBody, PackedResidual, attention_width, inner_panels};
use crate::encoder::Norm;
use crate::execution::Execution;
use crate::gemm::{ConvertedInputs, Dense, Epilogue, Products, linear};
use crate::matrix::{Matrix, Row, View, add_rows, panels};
use crate::plan::{Body, Residual};
use crate::rotary::Rotation;

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

impl Layer<'_, '_> {
    /// Returns the norm whose result is the input of a sub-layer, where the norm belongs to the sub-layer before it.
    fn norm_before(&self, place: usize) -> Option<(&Norm, bool)> {
        let before = &self.packed[place.checked_sub(1)?];
        before.again.as_ref().map(|norm| (norm, true)).or(before.after.as_ref().map(|norm| (norm, false)))
    }
}

/// The tokens of a task.
#[derive(Default)]
pub(super) struct TaskTokens {
    /// The sequences, one after the other without padding: the rows of a task are tokens.
    pub sequences: Vec<Rows>,
    /// The number of tokens.
    pub rows: usize,
    /// The first one's number in the batch.
    pub first: usize,
    /// The place of each token in its padded sequence.
    pub positions: Vec<u32>,
    /// For each of the frequencies of rotary positions, the rotation of the tokens, and that back.
    pub rotations: Vec<[Rotation; 2]>,
}

impl TaskTokens {
    /// Sets the rows of masked tokens to 0.
    pub fn clear_masked(&self, x: &mut Matrix) {
        let mut x = x.view_mut();
        for Rows { tokens, keys, .. } in &self.sequences {
            x.rows(tokens.start + keys..tokens.end).each_panel().into_iter().for_each(|panel| panel.fill(Row::ZERO));
        }
    }
}

/// What a layer keeps for its backward pass.
#[derive(Default)]
pub(super) struct Kept {
    /// Its input [rows, H].
    pub x: Matrix,
    /// What each of its sub-layers keeps.
    pub residuals: Vec<ResidualKept>,
}

/// What a sub-layer keeps: attention 5N·d and a feed-forward network F numbers a token, with a gate 2F, and each norm as many
/// as it has columns. The attention weights are computed again.
#[derive(Default)]
pub(super) struct ResidualKept {
    /// Of the norm before the body.
    pub before: Normalized,
    /// Of the norm after the residual.
    pub after: Normalized,
    /// Of the norm after a second residual.
    pub again: Normalized,
    /// Of the norms of queries and keys.
    pub norms: [Normalized; 2],
    /// Queries, keys and values, each beginning at a panel; rotated, where positions are.
    pub qkv: Matrix,
    /// Of the softmax, by head and row.
    pub statistics: Vec<Statistics>,
    /// The context of all heads [rows, N·d].
    pub context: Matrix,
    /// Before the activation [rows, F]; in a gated network the gate and what it multiplies, each beginning at a panel.
    pub z: Matrix,
    /// Of a convolution.
    pub convolution: ConvolutionTask,
}

/// What a task has of a convolution.
#[derive(Default)]
pub(super) struct ConvolutionTask {
    /// The neighbours of each token [rows, width · H′].
    pub neighbours: Matrix,
    /// The gradient with respect to these.
    pub dneighbours: Matrix,
    /// Before the activation [rows, H].
    pub z: Matrix,
    /// The gradient with respect to the layer's input [rows, H].
    pub dx: Matrix,
}

/// The factors of the weights' gradients, and the sums over the task's rows.
#[derive(Default)]
pub(super) struct Gradients {
    /// The gradients of each sub-layer.
    pub residuals: Vec<ResidualGradients>,
    /// Of what scores depend on besides queries and keys; the gradients for distances are of all layers.
    pub positions: PositionSums,
}

/// The gradients of a sub-layer.
#[derive(Default)]
pub(super) struct ResidualGradients {
    /// With respect to the result of the body [rows, H].
    pub dy: Matrix,
    /// The input of the body [rows, H], where it is not the input of the layer.
    pub input: Matrix,
    /// With respect to queries, keys and values; or to z, laid out as it is.
    pub dinner: Matrix,
    /// f(z) [rows, F], or f(z)·u with a gate u.
    pub h: Matrix,
    /// The gradients of biases and norms.
    pub sums: Sums,
}

/// Sums over the rows of a task, by panels.
#[derive(Default)]
pub(super) struct Sums {
    /// Of queries, keys and values; or of the first dense layers of a feed-forward network.
    pub inner: Vec<Row>,
    /// Of the dense layer that ends the body.
    pub output: Vec<Row>,
    /// Of γ and β of the norm before the body.
    pub before: [Vec<Row>; 2],
    /// Of the norm after the residual.
    pub after: [Vec<Row>; 2],
    /// Of the norm after a second residual.
    pub again: [Vec<Row>; 2],
    /// Of the norms of queries and keys.
    pub norms: [[Vec<Row>; 2]; 2],
}

/// Scratch buffers of one thread.
#[derive(Default)]
pub(super) struct LayerScratch {
    /// What is between the sub-layers of a layer [rows, H].
    between: [Matrix; 2],
    /// The input of a body after the norm before it [rows, H].
    normed: Matrix,
    pub h: Matrix,
    /// The gradient with respect to the input of a body [rows, H].
    da: Matrix,
    /// What goes around a second residual [rows, H].
    around: Matrix,
    pub dcontext: Matrix,
    pub converted: ConvertedInputs,
    pub attention: AttentionScratch,
    pub states: Vec<u64>,
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

    /// Computes to = dropout(x·Wᵀ + b) + residual, of H columns.
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    fn project(
        &self,
        mask: Option<Mask>,
        tokens: &TaskTokens,
        dense: &Dense,
        [x, residual]: [View<'_>; 2],
        to: &mut Matrix,
        converted: &mut ConvertedInputs,
        states: &mut Vec<u64>,
    ) {
        to.reshape(tokens.rows, self.config.hidden);
        if mask.is_none() {
            linear(self.execution, x, dense, Epilogue::Residual(residual), to.view_mut(), converted);
            return;
        }
        linear(self.execution, x, dense, Epilogue::Bias, to.view_mut(), converted);
        self.drop(mask, tokens, to, self.config.hidden, states);
        for panel in 0..panels(self.config.hidden) {
            add_rows(residual.panel(panel), to.view_mut().panel(panel));
        }
    }

    /// Computes a layer for the input `x` into `to`; `kept` receives all but the input.
    pub fn forward(
        &self,
        layer: Layer<'_, '_>,
        tokens: &TaskTokens,
        x: &Matrix,
        kept: &mut Kept,
        to: &mut Matrix,
        scratch: &mut LayerScratch,
    ) {
        let count = layer.plan.len();
        kept.residuals.resize_with(count, ResidualKept::default);
        let [mut input, mut next] = take(&mut scratch.between);
        for place in 0..count {
            let inputs = [x, if place == 0 { x } else { &input }];
            let to = if place + 1 == count { &mut *to } else { &mut next };
            self.forward_residual(layer, place, tokens, inputs, &mut kept.residuals[place], to, scratch);
            swap(&mut input, &mut next);
        }
        scratch.between = [input, next];
    }

    /// Computes sub-layer number `place` into `to`, for the inputs of the layer and of the sub-layer.
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    fn forward_residual(
        &self,
        layer: Layer<'_, '_>,
        place: usize,
        tokens: &TaskTokens,
        [first, x]: [&Matrix; 2],
        kept: &mut ResidualKept,
        to: &mut Matrix,
        scratch: &mut LayerScratch,
    ) {
        let (rows, hidden, set) = (tokens.rows, self.config.hidden, self.execution.instruction_set);
        let (residual, packed) = (&layer.plan[place], &layer.packed[place]);
        // Taken out of the scratch buffers, which the body is given too.
        let mut normed = take(&mut scratch.normed);
        if let Some(norm) = &packed.before {
            kept.before.x_hat.reshape(rows, hidden).data_mut().copy_from_slice(x.data());
            let to = &mut normed.reshape(rows, hidden).view_mut();
            normalize(set, norm.kind, norm.parameters(), &mut kept.before, to);
        }
        let input = if packed.before.is_some() { normed.view() } else { x.view() };
        // Where a norm follows, its buffer receives what it is applied to.
        let mut sum = packed.after.is_some().then(|| take(&mut kept.after.x_hat));
        let y = sum.as_mut().unwrap_or(&mut *to);
        match (&residual.body, &packed.body) {
            (Body::Attention(attention), PackedBody::Attention { qkv, output }) => {
                self.attend(layer.index, attention, packed, qkv, tokens, input, kept, scratch);
                let mask = self.mask(Site::AttentionOutput, layer.index, residual.dropout);
                let LayerScratch { converted, states, .. } = scratch;
                self.project(mask, tokens, output, [kept.context.view(), x.view()], y, converted, states);
            }
            (Body::Mlp(mlp), PackedBody::Mlp { inner, output }) => {
                self.hidden(layer.index, mlp, inner, tokens, input, &mut kept.z, scratch);
                let mask = self.mask(Site::Output, layer.index, residual.dropout);
                let LayerScratch { h, converted, states, .. } = scratch;
                self.project(mask, tokens, output, [h.view(), x.view()], y, converted, states);
            }
            (Body::Convolution(of), PackedBody::Convolution { dense }) => {
                let inputs = [first.view(), x.view()];
                self.convolve(layer.index, of, dense, tokens, inputs, &mut kept.convolution, y, scratch);
            }
            _ => unreachable!("a body is packed as what it is"),
        }
        scratch.normed = normed;
        if let (Some(norm), Some(sum)) = (&packed.after, sum) {
            kept.after.x_hat = sum;
            let to = &mut to.reshape(rows, hidden).view_mut();
            normalize(set, norm.kind, norm.parameters(), &mut kept.after, to);
        }
        if let Some(norm) = &packed.again {
            let sum = kept.again.x_hat.reshape(rows, hidden).data_mut();
            sum.copy_from_slice(to.data());
            add_rows(x.data(), sum);
            normalize(set, norm.kind, norm.parameters(), &mut kept.again, &mut to.view_mut());
        }
        if residual.masked {
            tokens.clear_masked(to);
        }
    }

    /// Replaces the gradient with respect to the output of a layer, `dx`, by that with respect to its input, and computes
    /// what the gradients of its parameters are made of.
    pub fn backward(
        &self,
        layer: Layer<'_, '_>,
        tokens: &TaskTokens,
        kept: &mut Kept,
        dx: &mut Matrix,
        gradients: &mut Gradients,
        scratch: &mut LayerScratch,
    ) {
        gradients.residuals.resize_with(layer.plan.len().max(gradients.residuals.len()), ResidualGradients::default);
        for place in (0..layer.plan.len()).rev() {
            self.backward_residual(layer, place, tokens, kept, dx, gradients, scratch);
        }
        for (residual, kept) in layer.plan.iter().zip(&kept.residuals) {
            if let Body::Convolution(_) = residual.body {
                kept.convolution.add_to(dx);
            }
        }
    }

    /// Takes `dx` back through sub-layer number `place`.
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    fn backward_residual(
        &self,
        layer: Layer<'_, '_>,
        place: usize,
        tokens: &TaskTokens,
        kept: &mut Kept,
        dx: &mut Matrix,
        gradients: &mut Gradients,
        scratch: &mut LayerScratch,
    ) {
        let (rows, hidden, set) = (tokens.rows, self.config.hidden, self.execution.instruction_set);
        let (residual, packed) = (&layer.plan[place], &layer.packed[place]);
        let Gradients { residuals, positions } = gradients;
        let of = &mut residuals[place];
        of.sums.clear(residual, hidden);
        if residual.masked {
            tokens.clear_masked(dx);
        }
        let through_norm = |norm: &Norm, kept: &Normalized, dx: &mut Matrix, sums: &mut [Vec<Row>; 2]| {
            let sums = sums.each_mut().map(|sums| &mut sums[..]);
            normalize_backward(set, norm.kind, norm.parameters(), kept, &mut dx.view_mut(), sums);
        };
        // The input of the body once more, for the gradients of its weights.
        let input = match (&packed.before, layer.norm_before(place)) {
            (Some(norm), _) => Some((norm, &kept.residuals[place].before)),
            (None, Some((norm, true))) => Some((norm, &kept.residuals[place - 1].again)),
            (None, Some((norm, false))) => Some((norm, &kept.residuals[place - 1].after)),
            (None, None) => None,
        };
        if let Some((norm, kept)) = input.filter(|_| !matches!(residual.body, Body::Convolution(_))) {
            let to = &mut of.input.reshape(rows, hidden).view_mut();
            scale_and_shift(set, norm.parameters(), kept.x_hat.view(), to);
            if packed.before.is_none() && layer.plan[place - 1].masked {
                tokens.clear_masked(&mut of.input);
            }
        }
        let kept = &mut kept.residuals[place];
        if let Some(norm) = &packed.again {
            through_norm(norm, &kept.again, dx, &mut of.sums.again);
            scratch.around.reshape(rows, hidden).data_mut().copy_from_slice(dx.data());
        }
        if let Some(norm) = &packed.after {
            through_norm(norm, &kept.after, dx, &mut of.sums.after);
        }
        of.dy.reshape(rows, hidden).data_mut().copy_from_slice(dx.data());
        let inner = match (&residual.body, &packed.body) {
            (Body::Attention(attention), PackedBody::Attention { qkv, output }) => {
                let mask = self.mask(Site::AttentionOutput, layer.index, residual.dropout);
                self.drop(mask, tokens, &mut of.dy, hidden, &mut scratch.states);
                self.attend_backward(layer.index, attention, packed, output, tokens, kept, of, positions, scratch);
                Some(qkv)
            }
            (Body::Mlp(mlp), PackedBody::Mlp { inner, output }) => {
                let mask = self.mask(Site::Output, layer.index, residual.dropout);
                self.drop(mask, tokens, &mut of.dy, hidden, &mut scratch.states);
                self.hidden_backward(layer.index, mlp, output, tokens, &kept.z, of, scratch);
                Some(inner)
            }
            (Body::Convolution(of_convolution), PackedBody::Convolution { dense }) => {
                self.convolve_backward(layer.index, of_convolution, dense, tokens, &mut kept.convolution, of, scratch);
                None
            }
            _ => unreachable!("a body is packed as what it is"),
        };
        if let Some(dense) = inner {
            let LayerScratch { da, converted, .. } = scratch;
            let to = da.reshape(rows, hidden).view_mut();
            if let Some(norm) = &packed.before {
                linear(self.execution, of.dinner.view(), dense, Epilogue::Bias, to, converted);
                through_norm(norm, &kept.before, da, &mut of.sums.before);
                add_rows(da.data(), dx.data_mut());
            } else {
                linear(self.execution, of.dinner.view(), dense, Epilogue::Residual(dx.view()), to, converted);
                swap(dx, da);
            }
        }
        if packed.again.is_some() {
            add_rows(scratch.around.data(), dx.data_mut());
        }
    }
}

impl Sums {
    /// Sets all sums to 0.
    fn clear(&mut self, residual: &Residual<Borrowed<'_>>, hidden: usize) {
        let of_keys = match &residual.body {
            Body::Attention(attention) => panels(attention_width(attention)),
            _ => 0,
        };
        let inner = match &residual.body {
            Body::Attention(_) => 3 * of_keys,
            Body::Mlp(mlp) => inner_panels(mlp),
            Body::Convolution(_) => 0,
        };
        let Sums { inner: of_inner, output, before, after, again, norms } = self;
        let of_hidden = [output].into_iter().chain(before).chain(after).chain(again).map(|sums| (sums, panels(hidden)));
        let of_norms = norms.iter_mut().flatten().map(|sums| (sums, of_keys));
        for (sums, panels) in of_hidden.chain(of_norms).chain([(of_inner, inner)]) {
            sums.clear();
            sums.resize(panels, Row::ZERO);
        }
    }
}
