//! A layer whose norms come first, forward and backward, over the tokens of one task.
//!
//! a = x + dropout(attention(LN(x))·Wᵀ + b) and x′ = a + dropout(h·W₂ᵀ + b₂), h the hidden layer of LN(a). The norm before the
//! attention may be missing, as in the first layer of ModernBERT.
//!
//! The steps are those of [`layer`](super::layer), with the norms moved: residuals add what was not normalized, so that the
//! gradient of x′ reaches x unchanged through both of them, and the norms' own gradients are added on the way. The last norm,
//! after all layers, is none of this module: [`encoder`](super::encoder) applies it.

use super::dropout::Site;
use super::layer::{Gradients, Kept, LayerScratch, Pass, TaskTokens, TrainingConfig};
use super::norm::{normalize, normalize_backward, scale_and_shift};
use super::parameters::{Backward, Forward};
use crate::gemm::{Epilogue, linear};
use crate::matrix::{Matrix, add_rows};

impl Pass<'_> {
    /// As [`forward_norm_last`](Pass::forward_norm_last).
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    pub fn forward_norm_first(
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
        if let Some(norm) = &layer.norms.output {
            // Taken out of the scratch buffers, which the attention is given too.
            let mut normed = std::mem::take(&mut scratch.a);
            kept.attention.x_hat.reshape(rows, hidden).data_mut().copy_from_slice(x.data());
            let to = &mut normed.reshape(rows, hidden).view_mut();
            normalize(instruction_set, norm.with_eps(eps, hidden), &mut kept.attention, to);
            self.attend(index, layer, tokens, normed.view(), kept, scratch);
            scratch.a = normed;
        } else {
            self.attend(index, layer, tokens, x.view(), kept, scratch);
        }
        let LayerScratch { a: normed, unnormed: a, h, converted, states, .. } = scratch;
        let c = kept.context.view();
        self.project(Site::AttentionOutput, index, tokens, &layer.output, c, x.view(), a, converted, states);
        kept.output.x_hat.reshape(rows, hidden).data_mut().copy_from_slice(a.data());
        let norm = layer.norms.outer.with_eps(eps, hidden);
        normalize(instruction_set, norm, &mut kept.output, &mut normed.reshape(rows, hidden).view_mut());
        self.hidden(index, layer, tokens, normed.view(), &mut kept.z, h, converted, states);
        self.project(Site::Output, index, tokens, &layer.outer, h.view(), a.view(), to, converted, states);
    }

    /// As [`backward_norm_last`](Pass::backward_norm_last).
    #[allow(clippy::too_many_arguments, reason = "the inputs of a computation, then its outputs")]
    pub fn backward_norm_first(
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
        // x′ = a + dropout(W₂·h + b₂), h the hidden layer of LN(a)
        let LayerScratch { da, converted, states, .. } = scratch;
        gradients.douter.reshape(rows, hidden).data_mut().copy_from_slice(dx.data());
        self.drop(self.mask(Site::Output, index), tokens, &mut gradients.douter, hidden, states);
        self.hidden_backward(index, layer, tokens, &kept.z, gradients, converted, states);
        let Gradients { doutput, dz, a, sums, .. } = gradients;
        let norm = layer.norms.outer.with_eps(eps, hidden);
        scale_and_shift(instruction_set, norm, kept.output.x_hat.view(), &mut a.reshape(rows, hidden).view_mut());
        linear(execution, dz.view(), &layer.inner, Epilogue::Bias, da.reshape(rows, hidden).view_mut(), converted);
        let to = sums.outer_norm.each_mut().map(|x| &mut x[..]);
        normalize_backward(instruction_set, norm, &kept.output, &mut da.view_mut(), to);
        add_rows(da.data(), dx.data_mut());
        // a = x + dropout(W·c + b), c the attention of LN(x)
        doutput.reshape(rows, hidden).data_mut().copy_from_slice(dx.data());
        self.project_heads_backward(index, layer, tokens, kept, gradients, scratch);
        let LayerScratch { da, converted, .. } = scratch;
        let Gradients { dqkv, x, sums, .. } = gradients;
        linear(execution, dqkv.view(), &layer.qkv, Epilogue::Bias, da.reshape(rows, hidden).view_mut(), converted);
        if let Some(norm) = &layer.norms.output {
            let norm = norm.with_eps(eps, hidden);
            scale_and_shift(
                instruction_set,
                norm,
                kept.attention.x_hat.view(),
                &mut x.reshape(rows, hidden).view_mut(),
            );
            let to = sums.output_norm.each_mut().map(|x| &mut x[..]);
            normalize_backward(instruction_set, norm, &kept.attention, &mut da.view_mut(), to);
        }
        add_rows(da.data(), dx.data_mut());
    }
}
