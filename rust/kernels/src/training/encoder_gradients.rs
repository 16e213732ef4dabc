//! The gradients of the parameters of a layer, as sums over all tasks.
//!
//! For a dense layer y = x·Wᵀ + b, dW is the sum of dyᵀ·x over the tokens of all tasks, in the order of the tasks, and db that
//! of dy, which each task has summed up over its tokens. Each kind of body says which of its buffers are dy and x.

use std::ops::Range;

use super::buffers::{ResidualGradients, ResidualKept, Sums};
use super::parameters::{AffineGradient, write_sum};
use super::products::WeightGradient;
use super::tasks::Task;
use crate::execution::Execution;
use crate::matrix::{Row, View};

/// The factors of the gradient of a dense layer from relative positions, and the sums of its bias; `None` without the term.
pub(super) type OfTerm<'a> = Option<([View<'a>; 2], &'a [Row])>;

/// Collects the gradients of a layer's parameters, sub-layer by sub-layer.
pub(super) struct GradientWriter<'a> {
    /// The tasks of the batch.
    pub tasks: &'a [Task],
    /// How products are computed.
    pub execution: Execution,
    /// Whether the gradients of weights are sums of products of pairs.
    pub multiplies_pairs: bool,
    /// H.
    pub hidden: usize,
    /// Whether gradients are added to what is there.
    pub add: bool,
    /// What belongs to the dense layers of relative positions.
    pub terms: [OfTerm<'a>; 2],
    /// The sub-layer.
    pub place: Place,
    /// The gradients of weights, which are computed together.
    pub weights: Vec<WeightGradient<'a>>,
}

/// Where a task has the buffers of a sub-layer.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The number of the layer.
    pub index: usize,
    /// The number of the sub-layer in it.
    pub place: usize,
    /// Whether the input of the body is the input of the layer: nothing is before it.
    pub is_first: bool,
    /// Whether layers are computed again by the backward pass.
    pub checkpointing: bool,
}

impl Place {
    /// Returns the gradients of the sub-layer.
    pub fn gradients(self, task: &Task) -> &ResidualGradients {
        &task.gradients.residuals[self.place]
    }

    /// Returns what the sub-layer kept.
    pub fn kept(self, task: &Task) -> &ResidualKept {
        &task.kept(self.index, self.checkpointing).residuals[self.place]
    }

    /// Returns the input of the body.
    fn input(self, task: &Task) -> View<'_> {
        if self.is_first { task.layers[self.index].x.view() } else { self.gradients(task).input.view() }
    }
}

impl<'a> GradientWriter<'a> {
    /// Writes the gradient of a dense layer with `inputs` inputs, for dy and x of each task, and the sums of dy.
    pub fn dense(
        &mut self,
        to: &'a mut AffineGradient<'_>,
        inputs: usize,
        parts: Vec<[View<'a>; 2]>,
        sums: impl Iterator<Item = &'a [Row]>,
    ) {
        self.weights.push(WeightGradient { parts, inputs, to: to.weight, add: self.add });
        write_sum(sums, to.bias, self.add);
    }

    /// Writes the gradient of a dense layer from the body's input, which has these panels of `dinner`, with what it gets of
    /// relative positions.
    pub fn inner(&mut self, to: &'a mut AffineGradient<'_>, panels: Range<usize>, term: OfTerm<'a>) {
        let (place, tasks) = (self.place, self.tasks);
        let factors = |task| [place.gradients(task).dinner.view().panels(panels.clone()), place.input(task)];
        let parts = tasks.iter().map(factors).chain(term.map(|(factors, _)| factors)).collect();
        let sums = tasks.iter().map(|task| &place.gradients(task).sums.inner[panels.clone()]);
        self.dense(to, self.hidden, parts, sums.chain(term.map(|(_, sums)| sums)));
    }

    /// Writes the gradient of the dense layer that ends the body, from its `inputs` inputs `x` of each task.
    pub fn output(&mut self, to: &'a mut AffineGradient<'_>, inputs: usize, x: impl Fn(&'a Task) -> View<'a>) {
        let (place, tasks) = (self.place, self.tasks);
        let parts = tasks.iter().map(|task| [place.gradients(task).dy.view(), x(task)]).collect();
        self.dense(to, inputs, parts, tasks.iter().map(|task| &place.gradients(task).sums.output[..]));
    }

    /// Writes the gradients of γ and β, if there is a norm.
    pub fn norm(&self, to: Option<&mut AffineGradient<'_>>, sums: impl Fn(&'a Sums) -> &'a [Vec<Row>; 2]) {
        let Some(AffineGradient { weight, bias }) = to else { return };
        for (n, to) in [weight, bias].into_iter().enumerate() {
            write_sum(self.tasks.iter().map(|task| &sums(&self.place.gradients(task).sums)[n][..]), to, self.add);
        }
    }
}
