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

use std::mem::{swap, take};

use wordpiece_parallel::map_with;

use super::body::{BodyInputs, Layer, Pass, Product, SubLayer, TrainedBody, TrainingConfig};
use super::buffers::{Gradients, Kept, LayerScratch, ResidualGradients, ResidualKept, TaskTokens};
use super::norm::scale_and_shift;
use super::parameters::{Affine, AffineNorm, Borrowed, PackedResidual, norm_of, packed, packed_transposed};
use crate::gemm::{Dense, Epilogue, Products, linear};
use crate::matrix::{Matrix, PANEL, add_rows, panels};
use crate::plan::{Residual, of_body};

/// Packs the sub-layers of a layer for the forward pass, on all threads.
pub(super) fn forward(pass: &Pass<'_>, layer: &[Residual<Borrowed<'_>>]) -> Vec<PackedResidual> {
    pack_layer(pass, layer, packed)
}

/// Packs them for the backward pass.
pub(super) fn backward(pass: &Pass<'_>, layer: &[Residual<Borrowed<'_>>]) -> Vec<PackedResidual> {
    pack_layer(pass, layer, packed_transposed)
}

/// Packs the products of a layer by `pack`, which is given the dense layers of one, and their inputs.
fn pack_layer(
    pass: &Pass<'_>,
    layer: &[Residual<Borrowed<'_>>],
    pack: fn(&[Affine<'_>], usize, Products) -> Dense,
) -> Vec<PackedResidual> {
    let TrainingConfig { hidden, products: kind, .. } = pass.config;
    let products = layer.iter().map(|residual| of_body!(&residual.body, body => body.products(hidden)));
    let products: Vec<Vec<Product<'_>>> = products.collect();
    let counts: Vec<usize> = products.iter().map(Vec::len).collect();
    let products = products.into_iter().flatten().collect();
    let dense = map_with(
        products,
        pass.execution.pool,
        || (),
        |(), Product { layers, inputs, of_neighbours }| {
            if !of_neighbours {
                return pack(&layers, inputs, kind);
            }
            let weight = pad_neighbours(layers[0].weight, hidden);
            pack(&[Affine { weight: &weight, ..layers[0] }], weight.len() / layers[0].bias.len(), kind)
        },
    );
    let mut dense = dense.into_iter();
    let of = |norm: &Option<AffineNorm<'_>>| norm.map(norm_of);
    let packed = layer.iter().zip(counts).map(|(residual, count)| PackedResidual {
        dense: dense.by_ref().take(count).collect(),
        before: of(&residual.before),
        after: of(&residual.after),
        again: of(&residual.again),
        norms: residual.attention().and_then(|attention| attention.norms.map(|norms| norms.map(norm_of))),
    });
    packed.collect()
}

/// Returns the weight of a convolution [H, width · H] with each neighbour beginning at a panel.
fn pad_neighbours(weight: &[f32], hidden: usize) -> Vec<f32> {
    let padded = panels(hidden) * PANEL;
    let mut to = vec![0.0; weight.len() / hidden * padded];
    for (to, from) in to.chunks_exact_mut(padded).zip(weight.chunks_exact(hidden)) {
        to[..hidden].copy_from_slice(from);
    }
    to
}

impl Pass<'_> {
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
            SubLayer { pass: self, layer, place, tokens }.forward(inputs, &mut kept.residuals[place], to, scratch);
            swap(&mut input, &mut next);
        }
        scratch.between = [input, next];
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
            SubLayer { pass: self, layer, place, tokens }.backward(kept, dx, gradients, scratch);
        }
        for (residual, kept) in layer.plan.iter().zip(&kept.residuals) {
            if reads_layer(residual) {
                add_rows(kept.dlayer.data(), dx.data_mut());
            }
        }
    }
}

impl SubLayer<'_, '_> {
    /// Computes the sub-layer into `to`, for the inputs of the layer and of the sub-layer.
    fn forward(&self, [first, x]: [&Matrix; 2], kept: &mut ResidualKept, to: &mut Matrix, scratch: &mut LayerScratch) {
        let (rows, hidden) = (self.tokens.rows, self.pass.config.hidden);
        let packed = self.packed();
        // Taken out of the scratch buffers, which the body is given too.
        let mut normed = take(&mut scratch.normed);
        if let Some(norm) = &packed.before {
            kept.before.x_hat.reshape(rows, hidden).data_mut().copy_from_slice(x.data());
            self.pass.normalize(norm, &mut kept.before, &mut normed.reshape(rows, hidden).view_mut());
        }
        let of_body = if packed.before.is_some() { normed.view() } else { x.view() };
        let inputs = BodyInputs { layer: first.view(), residual: x.view(), normed: of_body };
        // Where a norm follows, its buffer receives what it is applied to.
        let mut sum = packed.after.is_some().then(|| take(&mut kept.after.x_hat));
        let y = sum.as_mut().unwrap_or(&mut *to);
        of_body!(&self.residual().body, body => body.forward(*self, inputs, kept, y, scratch));
        scratch.normed = normed;
        if let (Some(norm), Some(sum)) = (&packed.after, sum) {
            kept.after.x_hat = sum;
            self.pass.normalize(norm, &mut kept.after, &mut to.reshape(rows, hidden).view_mut());
        }
        if let Some(norm) = &packed.again {
            let sum = kept.again.x_hat.reshape(rows, hidden).data_mut();
            sum.copy_from_slice(to.data());
            add_rows(x.data(), sum);
            self.pass.normalize(norm, &mut kept.again, &mut to.view_mut());
        }
        if self.residual().masked {
            self.tokens.clear_masked(to);
        }
    }

    /// Takes `dx` back through the sub-layer.
    fn backward(&self, kept: &mut Kept, dx: &mut Matrix, gradients: &mut Gradients, scratch: &mut LayerScratch) {
        let (rows, hidden) = (self.tokens.rows, self.pass.config.hidden);
        let (residual, packed) = (self.residual(), self.packed());
        let Gradients { residuals, positions } = gradients;
        let of = &mut residuals[self.place];
        of.sums.clear(hidden);
        if residual.masked {
            self.tokens.clear_masked(dx);
        }
        if !reads_layer(residual) {
            self.input_again(kept, &mut of.input);
        }
        let kept = &mut kept.residuals[self.place];
        if let Some(norm) = &packed.again {
            self.pass.normalize_backward(norm, &kept.again, &mut dx.view_mut(), &mut of.sums.again);
            scratch.around.reshape(rows, hidden).data_mut().copy_from_slice(dx.data());
        }
        if let Some(norm) = &packed.after {
            self.pass.normalize_backward(norm, &kept.after, &mut dx.view_mut(), &mut of.sums.after);
        }
        of.dy.reshape(rows, hidden).data_mut().copy_from_slice(dx.data());
        let inner = of_body!(&residual.body, body => body.backward(*self, kept, of, positions, scratch));
        if let Some(dense) = inner {
            let LayerScratch { da, converted, .. } = scratch;
            let to = da.reshape(rows, hidden).view_mut();
            if let Some(norm) = &packed.before {
                linear(self.pass.execution, of.dinner.view(), dense, Epilogue::Bias, to, converted);
                self.pass.normalize_backward(norm, &kept.before, &mut da.view_mut(), &mut of.sums.before);
                add_rows(da.data(), dx.data_mut());
            } else {
                let epilogue = Epilogue::Residual(dx.view());
                linear(self.pass.execution, of.dinner.view(), dense, epilogue, to, converted);
                swap(dx, da);
            }
        }
        if packed.again.is_some() {
            add_rows(scratch.around.data(), dx.data_mut());
        }
    }

    /// Computes the input of the body once more, for the gradients of its weights, where it is the result of a norm: the norm
    /// before the body, or one that ends the sub-layer before.
    fn input_again(&self, kept: &Kept, to: &mut Matrix) {
        let (packed, residuals) = (self.layer.packed, &kept.residuals);
        let place = if packed[self.place].before.is_some() { Some(self.place) } else { self.place.checked_sub(1) };
        let Some(place) = place else { return };
        let (packed, kept, is_own) = (&packed[place], &residuals[place], place == self.place);
        let (norm, kept) = match (is_own, &packed.before, &packed.again, &packed.after) {
            (true, Some(norm), ..) => (norm, &kept.before),
            (false, _, Some(norm), _) => (norm, &kept.again),
            (false, _, None, Some(norm)) => (norm, &kept.after),
            _ => return,
        };
        let to_rows = &mut to.reshape(self.tokens.rows, self.pass.config.hidden).view_mut();
        scale_and_shift(self.pass.execution.instruction_set, norm.parameters(), kept.x_hat.view(), to_rows);
        if !is_own && self.layer.plan[place].masked {
            self.tokens.clear_masked(to);
        }
    }
}

fn reads_layer(residual: &Residual<Borrowed<'_>>) -> bool {
    fn of<B: TrainedBody>(_: &B) -> bool {
        B::READS_LAYER
    }
    of_body!(&residual.body, body => of(body))
}
