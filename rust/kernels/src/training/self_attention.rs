//! Self-attention in a layer, forward and backward, over the tokens of one task: c = softmax(q·kᵀ/√d)·v.
//!
//! Forward: queries, keys and values are one product; then the norms of queries and keys and their rotation, where the plan
//! has them; then the heads, sequence by sequence; and the dense layer over the contexts, which adds the residual.
//!
//! Backward, from the gradient of that dense layer's result: dc = dy·W; for each head dv, dq and dk, from attention weights
//! that are computed again of the kept q, k and the sums of the softmax; these are rotated back, and go back through the
//! norms. What remains is the gradient with respect to the joined product, of which the caller makes dx.

use super::attention::{PositionSums, SequenceHeads, attend, attend_backward};
use super::body::{BodyInputs, Pass, Product, SubLayer, TrainedBody};
use super::buffers::{LayerScratch, ResidualGradients, ResidualKept, TaskTokens, clear};
use super::dropout::Site;
use super::encoder_gradients::GradientWriter;
use super::heads::Heads;
use super::parameters::{Borrowed, Written, attention_width, score_bias};
use super::products::add_column_sums;
use crate::gemm::{Dense, Epilogue, linear};
use crate::matrix::{Matrix, PANEL, Row, View, panels};
use crate::plan::{Attention, Body};
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
}

impl TrainedBody for Attention<Borrowed<'_>> {
    fn products(&self, hidden: usize) -> Vec<Product<'_>> {
        let product = |layers, inputs| Product { layers, inputs, of_neighbours: false };
        vec![product(self.qkv.to_vec(), hidden), product(vec![self.output], attention_width(self))]
    }

    fn forward(
        &self,
        of: SubLayer<'_, '_>,
        inputs: BodyInputs<'_>,
        kept: &mut ResidualKept,
        to: &mut Matrix,
        scratch: &mut LayerScratch,
    ) {
        let LayerScratch { converted, attention, states, .. } = scratch;
        let (pass, tokens, rows) = (of.pass, of.tokens, of.tokens.rows);
        let [joined, output] = &of.packed().dense[..] else { unreachable!("two products") };
        let (columns, width) = (attention_width(self), panels(attention_width(self)));
        let qkv = kept.qkv.reshape(rows, 3 * width * PANEL).view_mut();
        linear(pass.execution, inputs.normed, joined, Epilogue::Bias, qkv, converted);
        for (part, norm) in of.packed().norms.iter().flatten().enumerate() {
            let ResidualKept { qkv, norms, .. } = &mut *kept;
            let mut x = norms[part].x_hat.reshape(rows, columns).view_mut();
            for panel in 0..width {
                x.panel(panel).copy_from_slice(qkv.view().panel(part * width + panel));
            }
            let y = &mut qkv.view_mut();
            pass.normalize(norm, &mut norms[part], &mut y.panels(part * width..(part + 1) * width));
        }
        pass.rotate(self, tokens, &mut kept.qkv, 0);
        let (heads, instruction_set) = (pass.heads(of.layer.index, self), pass.execution.instruction_set);
        kept.statistics.resize(heads.count * rows, [0.0; 2]);
        kept.context.reshape(rows, columns).data_mut().fill(Row::ZERO);
        for sequence in each_sequence(heads, tokens, kept.qkv.view()) {
            attend(instruction_set, sequence, &mut kept.context.view_mut(), &mut kept.statistics, attention);
        }
        of.project(Site::AttentionOutput, output, [kept.context.view(), inputs.residual], to, converted, states);
    }

    /// Takes the gradient of the output back through the dense layer and the attention, to the gradients of queries,
    /// keys and values, and computes the sums of their biases.
    fn backward<'a>(
        &self,
        of: SubLayer<'a, '_>,
        kept: &mut ResidualKept,
        gradients: &mut ResidualGradients,
        positions: &mut PositionSums,
        scratch: &mut LayerScratch,
    ) -> Option<&'a Dense> {
        let LayerScratch { dcontext, attention, converted, states, .. } = scratch;
        let ResidualGradients { dy, dinner: dqkv, sums, .. } = gradients;
        let (pass, tokens, width) = (of.pass, of.tokens, panels(attention_width(self)));
        let [joined, output] = &of.packed().dense[..] else { unreachable!("two products") };
        of.drop(Site::AttentionOutput, of.residual().dropout, dy, pass.config.hidden, states);
        add_column_sums(pass.execution, dy.view(), &mut sums.output);
        let to = dcontext.reshape(tokens.rows, attention_width(self)).view_mut();
        linear(pass.execution, dy.view(), output, Epilogue::Bias, to, converted);
        dqkv.reshape(tokens.rows, 3 * width * PANEL).data_mut().fill(Row::ZERO);
        let heads = pass.heads(of.layer.index, self);
        if let Some(bias) = heads.distances() {
            positions.distances.resize(heads.count * (2 * bias.max_distance + 1), 0.0);
        }
        let tables = heads.relative.map_or([None; 2], |relative| relative.tables);
        for (terms, table) in positions.terms.iter_mut().zip(tables) {
            clear(terms, heads.count * panels(heads.size) * table.map_or(0, View::len));
        }
        for sequence in each_sequence(heads, tokens, kept.qkv.view()) {
            let (contexts, to) = ([kept.context.view(), dcontext.view()], &mut dqkv.view_mut());
            let set = pass.execution.instruction_set;
            attend_backward(set, sequence, &kept.statistics, contexts, to, positions, attention);
        }
        pass.rotate(self, tokens, dqkv, 1);
        for (part, norm) in of.packed().norms.iter().flatten().enumerate() {
            sums.norms[part].iter_mut().for_each(|sums| clear(sums, width));
            let dy = &mut dqkv.view_mut();
            let dy = &mut dy.panels(part * width..(part + 1) * width);
            pass.normalize_backward(norm, &kept.norms[part], dy, &mut sums.norms[part]);
        }
        clear(&mut sums.inner, 3 * width);
        add_column_sums(pass.execution, dqkv.view(), &mut sums.inner);
        Some(joined)
    }

    fn write<'a>(&self, to: &'a mut Body<Written<'_>>, writer: &mut GradientWriter<'a>) {
        let Body::Attention(to) = to else { unreachable!("gradients are of the parts of the plan") };
        let (place, terms, width) = (writer.place, writer.terms, panels(attention_width(self)));
        let own = to.relative.as_ref().map_or([false; 2], |own| own.terms.each_ref().map(Option::is_some));
        // What keys and queries get of relative positions that share their layers.
        let shared = [0, 1].map(|term| if own[term] { None } else { terms[term] });
        for ((n, to), shared) in to.qkv.iter_mut().enumerate().zip([shared[1], shared[0], None]) {
            writer.inner(to, n * width..(n + 1) * width, shared);
        }
        let relative = to.relative.iter_mut().flat_map(|relative| &mut relative.terms);
        for (to, term) in relative.zip(terms) {
            if let (Some(to), Some((factors, sums))) = (to, term) {
                writer.dense(to, writer.hidden, vec![factors], [sums].into_iter());
            }
        }
        writer.output(&mut to.output, attention_width(self), |task| place.kept(task).context.view());
        for (norm, to) in to.norms.iter_mut().flatten().enumerate() {
            writer.norm(Some(to), |sums| &sums.norms[norm]);
        }
    }
}

/// Returns the attention of each sequence of a task.
fn each_sequence<'a>(
    heads: Heads<'a>,
    tokens: &'a TaskTokens,
    qkv: View<'a>,
) -> impl Iterator<Item = SequenceHeads<'a>> {
    tokens.sequences.iter().map(move |rows| {
        let positions = &tokens.positions[rows.tokens.clone()];
        SequenceHeads { heads, rows, positions, qkv }
    })
}
