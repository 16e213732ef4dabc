//! Self-attention in a layer, forward and backward, over the tokens of one task: c = softmax(q·kᵀ/√d)·v.
//!
//! Forward: queries, keys and values are one product; then the norms of queries and keys and their rotation, where the plan
//! has them; then the heads, sequence by sequence. The dense layer over the contexts is the caller's, which adds the residual.
//!
//! Backward, from the gradient of that dense layer's result: dc = dy·W; for each head dv, dq and dk, from attention weights
//! that are computed again of the kept q, k and the sums of the softmax; these are rotated back, and go back through the
//! norms. What remains is the gradient with respect to the joined product, of which the caller makes dx.

use super::attention::{PositionSums, attend, attend_backward};
use super::dropout::Site;
use super::heads::Heads;
use super::layer::{LayerScratch, Pass, ResidualGradients, ResidualKept, TaskTokens};
use super::norm::{normalize, normalize_backward};
use super::parameters::{Borrowed, PackedResidual, attention_width, score_bias};
use super::products::add_column_sums;
use crate::gemm::{Dense, Epilogue, linear};
use crate::matrix::{Matrix, PANEL, Row, View, panels};
use crate::plan::Attention;
use crate::rotary::rotate;

impl Pass<'_> {
    /// Returns what the heads of a layer have in common: their bias, window, terms of relative positions and dropout.
    pub fn heads<'a>(&'a self, index: usize, of: &'a Attention<Borrowed<'_>>) -> Heads<'a> {
        Heads {
            count: of.heads,
            size: attention_width(of) / of.heads,
            bias: score_bias(of),
            relative: self.relative.filter(|_| of.masked_sees_all),
            window: of.window,
            mask: self.mask(Site::AttentionWeights, index, of.dropout),
        }
    }

    /// Computes queries, keys and values of `x`, and the context of all heads, into `kept`.
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    pub fn attend(
        &self,
        index: usize,
        of: &Attention<Borrowed<'_>>,
        packed: &PackedResidual,
        dense: &Dense,
        tokens: &TaskTokens,
        x: View<'_>,
        kept: &mut ResidualKept,
        scratch: &mut LayerScratch,
    ) {
        let LayerScratch { converted, attention, .. } = scratch;
        let (rows, instruction_set) = (tokens.rows, self.execution.instruction_set);
        let (columns, width) = (attention_width(of), panels(attention_width(of)));
        let qkv = kept.qkv.reshape(rows, 3 * width * PANEL).view_mut();
        linear(self.execution, x, dense, Epilogue::Bias, qkv, converted);
        for (part, norm) in packed.norms.iter().flatten().enumerate() {
            let ResidualKept { qkv, norms, .. } = &mut *kept;
            let mut to = norms[part].x_hat.reshape(rows, columns).view_mut();
            for panel in 0..width {
                to.panel(panel).copy_from_slice(qkv.view().panel(part * width + panel));
            }
            let to = &mut qkv.view_mut();
            let to = &mut to.panels(part * width..(part + 1) * width);
            normalize(instruction_set, norm.kind, norm.parameters(), &mut norms[part], to);
        }
        self.rotate(of, tokens, &mut kept.qkv, 0);
        let heads = self.heads(index, of);
        kept.statistics.resize(heads.count * rows, [0.0; 2]);
        kept.context.reshape(rows, columns).data_mut().fill(Row::ZERO);
        for sequence in &tokens.sequences {
            let positions = &tokens.positions[sequence.tokens.clone()];
            let (qkv, mut context) = (kept.qkv.view(), kept.context.view_mut());
            attend(instruction_set, heads, sequence, positions, qkv, &mut context, &mut kept.statistics, attention);
        }
    }

    /// Rotates queries and keys in a layer with rotary positions; with `direction` 1, back.
    fn rotate(&self, of: &Attention<Borrowed<'_>>, tokens: &TaskTokens, qkv: &mut Matrix, direction: usize) {
        let (Some(rotation), width) = (of.rotary, panels(attention_width(of))) else { return };
        for part in 0..2 {
            let columns = part * width..(part + 1) * width;
            let by = &tokens.rotations[rotation][direction];
            let size = attention_width(of) / of.heads;
            rotate(self.execution.instruction_set, by, of.heads, size, &mut qkv.view_mut().panels(columns));
        }
    }

    /// Takes the gradient of the output back through the dense layer and the attention, to the gradients of queries,
    /// keys and values, and computes the sums of their biases.
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    pub fn attend_backward(
        &self,
        index: usize,
        of: &Attention<Borrowed<'_>>,
        packed: &PackedResidual,
        output: &Dense,
        tokens: &TaskTokens,
        kept: &ResidualKept,
        gradients: &mut ResidualGradients,
        positions: &mut PositionSums,
        scratch: &mut LayerScratch,
    ) {
        let LayerScratch { dcontext, attention, converted, .. } = scratch;
        let ResidualGradients { dy, dinner: dqkv, sums, .. } = gradients;
        add_column_sums(self.execution, dy.view(), &mut sums.output);
        let to = dcontext.reshape(tokens.rows, attention_width(of)).view_mut();
        linear(self.execution, dy.view(), output, Epilogue::Bias, to, converted);
        let width = panels(attention_width(of));
        dqkv.reshape(tokens.rows, 3 * width * PANEL).data_mut().fill(Row::ZERO);
        let heads = self.heads(index, of);
        if let Some(bias) = heads.distances() {
            positions.distances.resize(heads.count * (2 * bias.max_distance + 1), 0.0);
        }
        let tables = heads.relative.map_or([None; 2], |relative| relative.tables);
        for (terms, table) in positions.terms.iter_mut().zip(tables) {
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
                positions,
                attention,
            );
        }
        self.rotate(of, tokens, dqkv, 1);
        for (part, norm) in packed.norms.iter().flatten().enumerate() {
            let sums = sums.norms[part].each_mut().map(|sums| &mut sums[..]);
            let dy = &mut dqkv.view_mut();
            let dy = &mut dy.panels(part * width..(part + 1) * width);
            let set = self.execution.instruction_set;
            normalize_backward(set, norm.kind, norm.parameters(), &kept.norms[part], dy, sums);
        }
        add_column_sums(self.execution, dqkv.view(), &mut sums.inner);
    }
}
