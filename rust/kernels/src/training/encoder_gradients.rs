//! The gradients of the parameters of a layer, as sums over all tasks.

use super::convolution::neighbours;
use super::encoder::EncoderTraining;
use super::layer::TrainingConfig;
use super::parameters::{AffineGradient, ConvolutionParameters, LayerGradients, write_sum};
use super::products::{WeightGradient, weight_gradients};
use crate::execution::Execution;
use crate::matrix::{PANEL, Row, View, panels};

impl EncoderTraining {
    /// Writes the gradients of a layer's parameters, or adds to them. `terms` are those of the dense layers of relative
    /// positions: the factors of the weight's gradient, and the bias's.
    pub(super) fn write_layer(
        &self,
        execution: Execution,
        index: usize,
        to: &mut LayerGradients<'_>,
        add: bool,
        terms: [Option<([View<'_>; 2], &[Row])>; 2],
    ) {
        let TrainingConfig { hidden, intermediate, .. } = self.config;
        let (width, tasks) = (panels(hidden), &self.tasks[..self.used]);
        let checkpointing = self.options.checkpointing;
        let LayerGradients { qkv, relative, output, output_norm, inner, up, outer, outer_norm } = to;
        // What keys and queries get of relative positions that share their layers.
        let shared = [0, 1].map(|term| if relative[term].is_some() { None } else { terms[term] });
        let shared = [shared[1], shared[0], None];
        // Where norms come first, the input of the attention is that of the layer only if there is no norm before it.
        let normed = self.config.norm_first && output_norm.is_some();
        let mut weights = Vec::with_capacity(7);
        for (n, gradient) in qkv.iter_mut().enumerate() {
            let part = n * width..(n + 1) * width;
            let parts = tasks.iter().map(|task| {
                let x = if normed { &task.gradients.x } else { &task.layers[index].x };
                [task.gradients.dqkv.view().panels(part.clone()), x.view()]
            });
            let parts = parts.chain(shared[n].map(|(factors, _)| factors)).collect();
            weights.push(WeightGradient { parts, inputs: hidden, to: gradient.weight, add });
        }
        for (gradient, term) in relative.iter_mut().zip(terms) {
            if let (Some(gradient), Some((factors, _))) = (gradient, term) {
                weights.push(WeightGradient { parts: vec![factors], inputs: hidden, to: gradient.weight, add });
            }
        }
        let parts =
            tasks.iter().map(|task| [task.gradients.doutput.view(), task.kept(index, checkpointing).context.view()]);
        let parts = parts.collect();
        weights.push(WeightGradient { parts, inputs: hidden, to: output.weight, add });
        let mut inners: Vec<_> = [Some(inner), up.as_mut()].into_iter().flatten().collect();
        for (n, gradient) in inners.iter_mut().enumerate() {
            let part = n * panels(intermediate)..(n + 1) * panels(intermediate);
            let parts =
                tasks.iter().map(|task| [task.gradients.dz.view().panels(part.clone()), task.gradients.a.view()]);
            weights.push(WeightGradient { parts: parts.collect(), inputs: hidden, to: gradient.weight, add });
        }
        let parts = tasks.iter().map(|task| [task.gradients.douter.view(), task.gradients.h.view()]).collect();
        weights.push(WeightGradient { parts, inputs: intermediate, to: outer.weight, add });
        weight_gradients(execution, weights, self.multiplies_pairs());
        for (n, gradient) in qkv.iter_mut().enumerate() {
            let parts = tasks.iter().map(|task| &task.gradients.sums.qkv[n * width..(n + 1) * width]);
            write_sum(parts.chain(shared[n].map(|(_, sums)| sums)), gradient.bias, add);
        }
        for (gradient, term) in relative.iter_mut().zip(terms) {
            if let (Some(gradient), Some((_, sums))) = (gradient, term) {
                write_sum(std::iter::once(sums), gradient.bias, add);
            }
        }
        write_sum(tasks.iter().map(|task| &task.gradients.sums.output[..]), output.bias, add);
        for (n, gradient) in inners.iter_mut().enumerate() {
            let part = n * panels(intermediate)..(n + 1) * panels(intermediate);
            write_sum(tasks.iter().map(|task| &task.gradients.sums.inner[part.clone()]), gradient.bias, add);
        }
        write_sum(tasks.iter().map(|task| &task.gradients.sums.outer[..]), outer.bias, add);
        if let Some(norm) = output_norm {
            for (n, to) in [&mut norm.weight, &mut norm.bias].into_iter().enumerate() {
                write_sum(tasks.iter().map(|task| &task.gradients.sums.output_norm[n][..]), to, add);
            }
        }
        for (n, to) in [&mut outer_norm.weight, &mut outer_norm.bias].into_iter().enumerate() {
            write_sum(tasks.iter().map(|task| &task.gradients.sums.outer_norm[n][..]), to, add);
        }
    }

    /// Writes the gradients of the convolution and its norm.
    pub(super) fn write_convolution(
        &self,
        execution: Execution,
        of: ConvolutionParameters<'_>,
        [dense, norm]: &mut [AffineGradient<'_>; 2],
    ) {
        let (hidden, tasks) = (self.config.hidden, &self.tasks[..self.used]);
        let padded = panels(hidden) * PANEL;
        let inputs = neighbours(of, hidden) * padded;
        // Each neighbour begins at a panel.
        let mut weight = vec![0.0; hidden * inputs];
        let parts = tasks.iter().map(|task| [task.convolution.dz.view(), task.convolution.neighbours.view()]).collect();
        let gradient = WeightGradient { parts, inputs, to: &mut weight, add: false };
        weight_gradients(execution, vec![gradient], self.multiplies_pairs());
        for (to, from) in dense.weight.chunks_exact_mut(hidden).zip(weight.chunks_exact(padded)) {
            to.copy_from_slice(&from[..hidden]);
        }
        write_sum(tasks.iter().map(|task| &task.convolution.bias[..]), dense.bias, false);
        for (n, to) in [&mut norm.weight, &mut norm.bias].into_iter().enumerate() {
            write_sum(tasks.iter().map(|task| &task.convolution.norm[n][..]), to, false);
        }
    }
}
