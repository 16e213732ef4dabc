//! The gradients of the parameters of a layer, as sums over all tasks.
//!
//! For a dense layer y = x·Wᵀ + b, dW is the sum of dyᵀ·x over the tokens of all tasks, in the order of the tasks, and db that
//! of dy, which each task has summed up over its tokens. Each kind of body says which of its buffers are dy and x.

use super::encoder::EncoderTraining;
use super::layer::{Layer, ResidualGradients};
use super::parameters::{AffineGradient, Written, attention_width, mlp_width, write_sum};
use super::products::{WeightGradient, weight_gradients};
use super::tasks::Task;
use crate::execution::Execution;
use crate::matrix::{PANEL, Row, View, panels};
use crate::plan::{Body, Residual};

/// The factors of the gradient of a dense layer from relative positions, and the sums of its bias; `None` without the term.
type OfTerm<'a> = Option<([View<'a>; 2], &'a [Row])>;

impl EncoderTraining {
    /// Writes the gradients of a layer's parameters, or adds to them. `terms` belong to the dense layers of relative
    /// positions.
    pub(super) fn write_layer(
        &self,
        execution: Execution,
        layer: Layer<'_, '_>,
        to: &mut [Residual<Written<'_>>],
        add: bool,
        terms: [OfTerm<'_>; 2],
    ) {
        let (hidden, tasks) = (self.config.hidden, &self.tasks[..self.used]);
        let checkpointing = self.options.checkpointing;
        let mut weights = Vec::with_capacity(7);
        let mut convolutions = Vec::new();
        for (place, (residual, to)) in layer.plan.iter().zip(&mut *to).enumerate() {
            // The input of a body is the input of the layer only if there is nothing before it.
            let first = place == 0 && residual.before.is_none();
            let input = |task| input_of(task, layer.index, place, first);
            let gradients = |task| gradients_of(task, place);
            match (&residual.body, &mut to.body) {
                (Body::Attention(of), Body::Attention(to)) => {
                    let width = panels(attention_width(of));
                    let own = to.relative.as_ref().map_or([false; 2], |own| own.terms.each_ref().map(Option::is_some));
                    // What keys and queries get of relative positions that share their layers.
                    let shared = [0, 1].map(|term| if own[term] { None } else { terms[term] });
                    let shared = [shared[1], shared[0], None];
                    for (n, gradient) in to.qkv.iter_mut().enumerate() {
                        let part = n * width..(n + 1) * width;
                        let parts =
                            tasks.iter().map(|task| [gradients(task).dinner.view().panels(part.clone()), input(task)]);
                        let parts = parts.chain(shared[n].map(|(factors, _)| factors)).collect();
                        weights.push(WeightGradient { parts, inputs: hidden, to: gradient.weight, add });
                        let part = n * width..(n + 1) * width;
                        let sums = tasks.iter().map(|task| &gradients(task).sums.inner[part.clone()]);
                        write_sum(sums.chain(shared[n].map(|(_, sums)| sums)), gradient.bias, add);
                    }
                    let relative = to.relative.iter_mut().flat_map(|relative| &mut relative.terms);
                    for (gradient, term) in relative.zip(terms) {
                        if let (Some(gradient), Some((factors, sums))) = (gradient, term) {
                            let parts = vec![factors];
                            weights.push(WeightGradient { parts, inputs: hidden, to: gradient.weight, add });
                            write_sum(std::iter::once(sums), gradient.bias, add);
                        }
                    }
                    let parts = tasks.iter().map(|task| {
                        let kept = &task.kept(layer.index, checkpointing).residuals[place];
                        [gradients(task).dy.view(), kept.context.view()]
                    });
                    let (parts, inputs) = (parts.collect(), attention_width(of));
                    weights.push(WeightGradient { parts, inputs, to: to.output.weight, add });
                    write_sum(tasks.iter().map(|task| &gradients(task).sums.output[..]), to.output.bias, add);
                    for (norm, to) in to.norms.iter_mut().flatten().enumerate() {
                        write_norm(tasks, to, add, |task| &gradients(task).sums.norms[norm]);
                    }
                }
                (Body::Mlp(of), Body::Mlp(to)) => {
                    let width = panels(mlp_width(of));
                    for (n, gradient) in [Some(&mut to.inner), to.up.as_mut()].into_iter().flatten().enumerate() {
                        let part = n * width..(n + 1) * width;
                        let parts =
                            tasks.iter().map(|task| [gradients(task).dinner.view().panels(part.clone()), input(task)]);
                        let parts = parts.collect();
                        weights.push(WeightGradient { parts, inputs: hidden, to: gradient.weight, add });
                        let part = n * width..(n + 1) * width;
                        write_sum(
                            tasks.iter().map(|task| &gradients(task).sums.inner[part.clone()]),
                            gradient.bias,
                            add,
                        );
                    }
                    let parts = tasks.iter().map(|task| [gradients(task).dy.view(), gradients(task).h.view()]);
                    let (parts, inputs) = (parts.collect(), mlp_width(of));
                    weights.push(WeightGradient { parts, inputs, to: to.output.weight, add });
                    write_sum(tasks.iter().map(|task| &gradients(task).sums.output[..]), to.output.bias, add);
                }
                (Body::Convolution(of), Body::Convolution(to)) => {
                    write_sum(tasks.iter().map(|task| &gradients(task).sums.output[..]), to.dense.bias, add);
                    convolutions.push((place, of.width, &mut *to.dense.weight));
                }
                _ => unreachable!("gradients are of the parts of the plan"),
            }
            for (norm, of) in [(&mut to.before, 0), (&mut to.after, 1), (&mut to.again, 2)] {
                if let Some(to) = norm {
                    write_norm(tasks, to, add, |task| {
                        let sums = &gradients(task).sums;
                        [&sums.before, &sums.after, &sums.again][of]
                    });
                }
            }
        }
        weight_gradients(execution, weights, self.multiplies_pairs());
        for (place, width, to) in convolutions {
            self.write_convolution(execution, layer.index, (place, width), to);
        }
    }

    /// Writes the gradient of the weight of a convolution.
    fn write_convolution(&self, execution: Execution, index: usize, (place, width): (usize, usize), to: &mut [f32]) {
        let (hidden, tasks) = (self.config.hidden, &self.tasks[..self.used]);
        let padded = panels(hidden) * PANEL;
        let inputs = width * padded;
        // Each neighbour begins at a panel.
        let mut weight = vec![0.0; hidden * inputs];
        let parts = tasks.iter().map(|task| {
            let kept = &task.kept(index, self.options.checkpointing).residuals[place];
            [task.gradients.residuals[place].dinner.view(), kept.convolution.neighbours.view()]
        });
        let gradient = WeightGradient { parts: parts.collect(), inputs, to: &mut weight, add: false };
        weight_gradients(execution, vec![gradient], self.multiplies_pairs());
        for (to, from) in to.chunks_exact_mut(hidden).zip(weight.chunks_exact(padded)) {
            to.copy_from_slice(&from[..hidden]);
        }
    }
}

fn gradients_of(task: &Task, place: usize) -> &ResidualGradients {
    &task.gradients.residuals[place]
}

/// Returns the input of a body.
fn input_of(task: &Task, index: usize, place: usize, first: bool) -> View<'_> {
    if first { task.layers[index].x.view() } else { gradients_of(task, place).input.view() }
}

/// Writes the gradients of γ and β.
fn write_norm<'t>(
    tasks: &'t [Task],
    to: &mut AffineGradient<'_>,
    add: bool,
    sums: impl Fn(&'t Task) -> &'t [Vec<Row>; 2],
) {
    for (n, to) in [&mut *to.weight, &mut *to.bias].into_iter().enumerate() {
        write_sum(tasks.iter().map(|task| &sums(task)[n][..]), to, add);
    }
}
