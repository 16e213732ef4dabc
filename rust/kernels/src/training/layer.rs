//! One layer of the encoder, forward and backward, over the tokens of one task.
//!
//! Read it beside `wordpiece_bert.finetune.encoder`, whose steps it takes, on the rows of a task:
//! a = LN(x + dropout(attention(x)·Wᵀ + b)) and x′ = LN(a + dropout(f(a·W₁ᵀ + b₁)·W₂ᵀ + b₂)).
//!
//! The backward pass takes the steps in the opposite order, from the gradient of x′ to that of x. A residual sends its
//! gradient both ways, so x gets the sum of what comes through the attention and around it. For a dense layer
//! y = x·Wᵀ + b there are dx = dy·W, which is computed here, and dW = dyᵀ·x and db, the sum of the rows of dy, which are sums
//! over all tokens of the batch: the operands are left in place, and the weights' gradients are computed once for all tasks.
//!
//! Three kinds of buffers: what the backward pass needs of the forward pass is in [`Kept`], a layer's own; what a thread needs
//! while it computes a task is in [`LayerScratch`]; and gradients that are summed over the tasks are in [`Gradients`]. All only
//! grow, so that from the second batch on nothing is allocated.

use super::activation::activation_backward;
use super::attention::{AttentionScratch, PositionSums, attend, attend_backward};
use super::dropout::{Dropout, Mask, Site, drop_rows};
use super::gate::multiply;
use super::heads::{Heads, RelativeHeads, Rows, Statistics};
use super::norm::{Normalized, normalize, normalize_backward, scale_and_shift};
use super::parameters::{Backward, Forward, Positions};
use super::products::add_column_sums;
use crate::activation::{Activation, apply};
use crate::attention::RelativeBias;
use crate::execution::Execution;
use crate::gemm::{ConvertedInputs, Dense, Epilogue, Products, linear};
use crate::matrix::{Matrix, PANEL, Row, View, add_rows, panels};
use crate::rotary::{Rotation, rotate};

/// The sizes of an encoder that is trained, and what is the same in all its layers.
#[derive(Debug, Clone, Copy)]
pub struct TrainingConfig {
    /// H.
    pub hidden: usize,
    /// E, the width of the embedding tables.
    pub embedding: usize,
    /// N.
    pub heads: usize,
    /// F.
    pub intermediate: usize,
    /// The activation of the feed-forward network.
    pub activation: Activation,
    /// ε of the norms.
    pub eps: f32,
    /// How dense layers multiply. The gradients of weights are sums of pairs as well where vectors multiply them.
    pub products: Products,
    /// Whether norms are applied to the inputs of the two halves of a layer, and not after their residuals.
    pub norm_first: bool,
    /// Whether the feed-forward network has a gate.
    pub gated: bool,
}

impl TrainingConfig {
    /// Returns how many panels the first dense layers of the feed-forward network have.
    pub(super) fn inner_panels(&self) -> usize {
        panels(self.intermediate) * if self.gated { 2 } else { 1 }
    }
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
    /// What MPNet adds to the scores, by the distance of key and query.
    pub relative_bias: Option<RelativeBias<'a>>,
    /// What the scores of a DeBERTa have of relative positions.
    pub relative: Option<RelativeHeads<'a>>,
    /// For each layer, what it knows about positions.
    pub positions: &'a [Positions],
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

/// What a layer keeps for its backward pass: 7H + F numbers a token, with a gate 7H + 2F. The attention weights are computed
/// again.
#[derive(Default)]
pub(super) struct Kept {
    /// Its input [rows, H].
    pub x: Matrix,
    /// Queries, keys and values, each beginning at a panel; rotated, where positions are.
    pub qkv: Matrix,
    /// Of the softmax, by head and row.
    pub statistics: Vec<Statistics>,
    /// The context of all heads [rows, H].
    pub context: Matrix,
    /// Of the norm after the attention; where norms come first, before it.
    pub attention: Normalized,
    /// Before the activation [rows, F]; in a gated network the gate and what it multiplies, each beginning at a panel.
    pub z: Matrix,
    /// Of the norm after the feed-forward network; where norms come first, before it.
    pub output: Normalized,
}

/// The factors of the weights' gradients, and the sums over the task's rows.
#[derive(Default)]
pub(super) struct Gradients {
    /// With respect to queries, keys and values.
    pub dqkv: Matrix,
    /// With respect to the result of the attention's dense layer [rows, H].
    pub doutput: Matrix,
    /// The input of the attention [rows, H], where it is not that of the layer.
    pub x: Matrix,
    /// With respect to z, laid out as it is.
    pub dz: Matrix,
    /// With respect to the result of the feed-forward network [rows, H].
    pub douter: Matrix,
    /// a, the input of the feed-forward network [rows, H].
    pub a: Matrix,
    /// f(z) [rows, F], or f(z)·u with a gate u.
    pub h: Matrix,
    pub sums: Sums,
}

/// Sums over the rows of a task, by panels.
#[derive(Default)]
pub(super) struct Sums {
    pub qkv: Vec<Row>,
    pub output: Vec<Row>,
    pub inner: Vec<Row>,
    pub outer: Vec<Row>,
    /// γ and β.
    pub output_norm: [Vec<Row>; 2],
    pub outer_norm: [Vec<Row>; 2],
    /// Of what scores depend on besides queries and keys; those of distances are of all layers.
    pub positions: PositionSums,
}

/// Scratch buffers of one thread.
#[derive(Default)]
pub(super) struct LayerScratch {
    pub a: Matrix,
    /// The input of a norm, where norms come first [rows, H].
    pub unnormed: Matrix,
    pub h: Matrix,
    /// The gradient with respect to a [rows, H].
    pub da: Matrix,
    pub dcontext: Matrix,
    pub converted: ConvertedInputs,
    pub attention: AttentionScratch,
    pub states: Vec<u64>,
}

impl Pass<'_> {
    pub fn heads(&self, index: usize) -> Heads<'_> {
        let TrainingConfig { hidden, heads, .. } = self.config;
        Heads {
            count: heads,
            size: hidden / heads,
            relative_bias: self.relative_bias,
            relative: self.relative,
            window: self.positions[index].window,
            mask: self.mask(Site::AttentionWeights, index),
        }
    }

    pub fn mask(&self, site: Site, index: usize) -> Option<Mask> {
        self.dropout.and_then(|dropout| dropout.at(site, index))
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
    #[allow(clippy::too_many_arguments, reason = "the operands of a formula")]
    pub fn project(
        &self,
        site: Site,
        index: usize,
        tokens: &TaskTokens,
        dense: &Dense,
        x: View<'_>,
        residual: View<'_>,
        to: &mut Matrix,
        converted: &mut ConvertedInputs,
        states: &mut Vec<u64>,
    ) {
        to.reshape(tokens.rows, self.config.hidden);
        let mask = self.mask(site, index);
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

    /// Computes layer number `index` for the input `x` into `to`; `kept` receives all but the input.
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    pub fn forward_norm_last(
        &self,
        index: usize,
        layer: &Forward,
        tokens: &TaskTokens,
        x: &Matrix,
        kept: &mut Kept,
        to: &mut Matrix,
        scratch: &mut LayerScratch,
    ) {
        let TrainingConfig { hidden, eps, .. } = self.config;
        let (rows, instruction_set) = (tokens.rows, self.execution.instruction_set);
        self.attend(index, layer, tokens, x.view(), kept, scratch);
        let LayerScratch { a, h, converted, states, .. } = scratch;
        let (c, y) = (kept.context.view(), &mut kept.attention.x_hat);
        self.project(Site::AttentionOutput, index, tokens, &layer.output, c, x.view(), y, converted, states);
        let norm = layer.norms.attention().with_eps(eps, hidden);
        normalize(instruction_set, norm, &mut kept.attention, &mut a.reshape(rows, hidden).view_mut());
        self.hidden(index, layer, tokens, a.view(), &mut kept.z, h, converted, states);
        let y = &mut kept.output.x_hat;
        self.project(Site::Output, index, tokens, &layer.outer, h.view(), a.view(), y, converted, states);
        let norm = layer.norms.outer.with_eps(eps, hidden);
        normalize(instruction_set, norm, &mut kept.output, &mut to.reshape(rows, hidden).view_mut());
    }

    /// Computes queries, keys and values of `x`, and the context of all heads, into `kept`.
    pub fn attend(
        &self,
        index: usize,
        layer: &Forward,
        tokens: &TaskTokens,
        x: View<'_>,
        kept: &mut Kept,
        scratch: &mut LayerScratch,
    ) {
        let TrainingConfig { hidden, .. } = self.config;
        let LayerScratch { converted, attention, .. } = scratch;
        let (rows, instruction_set) = (tokens.rows, self.execution.instruction_set);
        let width = panels(hidden) * PANEL;
        let qkv = kept.qkv.reshape(rows, 3 * width).view_mut();
        linear(self.execution, x, &layer.qkv, Epilogue::Bias, qkv, converted);
        self.rotate(index, tokens, &mut kept.qkv, 0);
        let heads = self.heads(index);
        kept.statistics.resize(heads.count * rows, [0.0; 2]);
        kept.context.reshape(rows, hidden).data_mut().fill(Row::ZERO);
        for sequence in &tokens.sequences {
            let positions = &tokens.positions[sequence.tokens.clone()];
            let (qkv, mut context) = (kept.qkv.view(), kept.context.view_mut());
            attend(instruction_set, heads, sequence, positions, qkv, &mut context, &mut kept.statistics, attention);
        }
    }

    /// Rotates queries and keys in a layer with rotary positions; with `direction` 1, back.
    fn rotate(&self, index: usize, tokens: &TaskTokens, qkv: &mut Matrix, direction: usize) {
        let TrainingConfig { hidden, heads, .. } = self.config;
        let Some(rotation) = self.positions[index].rotation else { return };
        for part in 0..2 {
            let columns = part * panels(hidden)..(part + 1) * panels(hidden);
            let by = &tokens.rotations[rotation][direction];
            rotate(self.execution.instruction_set, by, heads, hidden / heads, &mut qkv.view_mut().panels(columns));
        }
    }

    /// Computes z and h = dropout(f(z)), or dropout(f(z)·u) with a gate, for the input `x` of the feed-forward network.
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    pub fn hidden(
        &self,
        index: usize,
        layer: &Forward,
        tokens: &TaskTokens,
        x: View<'_>,
        z: &mut Matrix,
        h: &mut Matrix,
        converted: &mut ConvertedInputs,
        states: &mut Vec<u64>,
    ) {
        let TrainingConfig { intermediate, activation, .. } = self.config;
        let (rows, instruction_set) = (tokens.rows, self.execution.instruction_set);
        let to = z.reshape(rows, self.config.inner_panels() * PANEL).view_mut();
        linear(self.execution, x, &layer.inner, Epilogue::Bias, to, converted);
        let (inner, up) = z.data().split_at(rows * panels(intermediate));
        h.reshape(rows, intermediate).data_mut().copy_from_slice(inner);
        apply(instruction_set, activation, h.data_mut());
        if self.config.gated {
            multiply(instruction_set, h.data_mut(), up);
        }
        self.drop(self.mask(Site::Intermediate, index), tokens, h, intermediate, states);
    }

    /// Computes dz and h for the gradient `douter` of the result of the feed-forward network, and the sums of its biases.
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    pub fn hidden_backward(
        &self,
        index: usize,
        layer: &Backward,
        tokens: &TaskTokens,
        z: &Matrix,
        gradients: &mut Gradients,
        converted: &mut ConvertedInputs,
        states: &mut Vec<u64>,
    ) {
        let TrainingConfig { intermediate, activation, gated, .. } = self.config;
        let (rows, instruction_set, execution) = (tokens.rows, self.execution.instruction_set, self.execution);
        let Gradients { dz, douter, h, sums, .. } = gradients;
        let (width, mask) = (panels(intermediate), self.mask(Site::Intermediate, index));
        add_column_sums(execution, douter.view(), &mut sums.outer);
        let to = &mut dz.reshape(rows, self.config.inner_panels() * PANEL).view_mut();
        linear(execution, douter.view(), &layer.outer, Epilogue::Bias, to.panels(0..width), converted);
        self.drop(mask, tokens, dz, intermediate, states);
        let h_of = h.reshape(rows, intermediate).data_mut();
        let (gate, up) = z.data().split_at(rows * width);
        let (dgate, dup) = dz.data_mut().split_at_mut(rows * width);
        if gated {
            dup.copy_from_slice(dgate);
            multiply(instruction_set, dgate, up);
        }
        activation_backward(instruction_set, activation, gate, dgate, h_of);
        if gated {
            multiply(instruction_set, dup, h_of);
            multiply(instruction_set, h_of, up);
        }
        self.drop(mask, tokens, h, intermediate, states);
        add_column_sums(execution, dz.view(), &mut sums.inner);
    }

    /// Computes the gradient of queries, keys and values for that of the context in `scratch`, and the sums of their biases.
    pub fn attend_backward(
        &self,
        index: usize,
        tokens: &TaskTokens,
        kept: &Kept,
        gradients: &mut Gradients,
        scratch: &mut LayerScratch,
    ) {
        let TrainingConfig { hidden, .. } = self.config;
        let LayerScratch { dcontext, attention, .. } = scratch;
        let Gradients { dqkv, sums, .. } = gradients;
        dqkv.reshape(tokens.rows, 3 * panels(hidden) * PANEL).data_mut().fill(Row::ZERO);
        let heads = self.heads(index);
        let bias = heads.relative_bias.map_or(0, |bias| heads.count * (2 * bias.max_distance + 1));
        sums.positions.distances.resize(bias, 0.0);
        let tables = heads.relative.map_or([None; 2], |relative| relative.tables);
        for (terms, table) in sums.positions.terms.iter_mut().zip(tables) {
            terms.clear();
            terms.resize(heads.count * panels(heads.size) * table.map_or(0, View::len), Row::ZERO);
        }
        for sequence in &tokens.sequences {
            attend_backward(
                self.execution.instruction_set,
                heads,
                sequence,
                &tokens.positions[sequence.tokens.clone()],
                kept.qkv.view(),
                &kept.statistics,
                [kept.context.view(), dcontext.view()],
                &mut dqkv.view_mut(),
                &mut sums.positions,
                attention,
            );
        }
        self.rotate(index, tokens, dqkv, 1);
        add_column_sums(self.execution, dqkv.view(), &mut sums.qkv);
    }

    /// Takes `gradients.doutput`, that with respect to dropout(W·c + b), back through the dense layer and the attention
    /// c = softmax(q·kᵀ/√d)·v.
    pub fn project_heads_backward(
        &self,
        index: usize,
        layer: &Backward,
        tokens: &TaskTokens,
        kept: &Kept,
        gradients: &mut Gradients,
        scratch: &mut LayerScratch,
    ) {
        let TrainingConfig { hidden, .. } = self.config;
        let LayerScratch { dcontext, converted, states, .. } = &mut *scratch;
        let Gradients { doutput, sums, .. } = &mut *gradients;
        self.drop(self.mask(Site::AttentionOutput, index), tokens, doutput, hidden, states);
        add_column_sums(self.execution, doutput.view(), &mut sums.output);
        let to = dcontext.reshape(tokens.rows, hidden).view_mut();
        linear(self.execution, doutput.view(), &layer.output, Epilogue::Bias, to, converted);
        self.attend_backward(index, tokens, kept, gradients, scratch);
    }

    /// Replaces the gradient with respect to the output of layer number `index`, `dx`, by that with respect to its input,
    /// and computes what the gradients of its parameters are made of.
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    pub fn backward_norm_last(
        &self,
        index: usize,
        layer: &Backward,
        tokens: &TaskTokens,
        kept: &Kept,
        dx: &mut Matrix,
        gradients: &mut Gradients,
        scratch: &mut LayerScratch,
    ) {
        let TrainingConfig { hidden, eps, .. } = self.config;
        let (rows, instruction_set, execution) = (tokens.rows, self.execution.instruction_set, self.execution);
        gradients.sums.clear(self.config);
        // x′ = LN(dropout(W₂·h + b₂) + a), h = f(z), z = W₁·a + b₁
        let norm = layer.norms.outer.with_eps(eps, hidden);
        let to = gradients.sums.outer_norm.each_mut().map(|x| &mut x[..]);
        normalize_backward(instruction_set, norm, &kept.output, &mut dx.view_mut(), to);
        let LayerScratch { da, converted, states, .. } = scratch;
        gradients.douter.reshape(rows, hidden).data_mut().copy_from_slice(dx.data());
        self.drop(self.mask(Site::Output, index), tokens, &mut gradients.douter, hidden, states);
        self.hidden_backward(index, layer, tokens, &kept.z, gradients, converted, states);
        let Gradients { doutput, dz, a, sums, .. } = gradients;
        let norm = layer.norms.attention().with_eps(eps, hidden);
        scale_and_shift(instruction_set, norm, kept.attention.x_hat.view(), &mut a.reshape(rows, hidden).view_mut());
        let residual = Epilogue::Residual(dx.view());
        linear(execution, dz.view(), &layer.inner, residual, da.reshape(rows, hidden).view_mut(), converted);
        // a = LN(dropout(W·c + b) + x)
        let to = sums.output_norm.each_mut().map(|x| &mut x[..]);
        normalize_backward(instruction_set, norm, &kept.attention, &mut da.view_mut(), to);
        doutput.reshape(rows, hidden).data_mut().copy_from_slice(da.data());
        self.project_heads_backward(index, layer, tokens, kept, gradients, scratch);
        let LayerScratch { da, converted, .. } = scratch;
        let residual = Epilogue::Residual(da.view());
        linear(execution, gradients.dqkv.view(), &layer.qkv, residual, dx.view_mut(), converted);
    }
}

impl Sums {
    /// Sets all sums but those of distances, which run over the layers, to 0.
    pub fn clear(&mut self, config: TrainingConfig) {
        let hidden = config.hidden;
        let Sums { qkv, output, inner, outer, output_norm, outer_norm, .. } = self;
        let of_hidden = [output, outer].into_iter().chain(output_norm).chain(outer_norm);
        let all = of_hidden.map(|sums| (sums, panels(hidden)));
        for (sums, panels) in all.chain([(qkv, 3 * panels(hidden)), (inner, config.inner_panels())]) {
            sums.clear();
            sums.resize(panels, Row::ZERO);
        }
    }
}
