//! The tokens of a batch, and the tasks that they are divided into.

use wordpiece_parallel::Scratch;

use super::buffers::{Gradients, Kept, LayerScratch, TaskTokens};
use super::norm::Normalized;
use crate::matrix::{Matrix, Row};

/// The tokens of a batch, one sequence after the other; in each, those that may be attended to come first.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// Where each sequence begins, and the number of tokens, `[B + 1]`.
    pub offsets: &'a [usize],
    /// How many tokens of each sequence may be attended to, at least 1.
    pub keys: &'a [usize],
    /// The row of each token in the table of words; `None` if the parameters have word vectors instead of the table.
    pub ids: Option<&'a [u32]>,
    /// The row of each token in the table of types.
    pub types: &'a [u32],
    /// The row of each token in the table of positions.
    pub position_ids: &'a [u32],
    /// The row of each token in the table of tasks.
    pub tasks: &'a [u32],
    /// The place of each token in its padded sequence.
    pub positions: &'a [u32],
}

/// The state of some sequences.
#[derive(Default)]
pub(super) struct Task {
    pub tokens: TaskTokens,
    /// Of the norm of the embeddings.
    pub embedded: Normalized,
    /// The input of the projection [rows, E].
    pub unprojected: Matrix,
    /// What each layer keeps.
    pub layers: Vec<Kept>,
    /// Of the norm after the last layer.
    pub last: Normalized,
    /// The output of the last layer that was computed [rows, H].
    pub x: Matrix,
    /// The gradient with respect to it.
    pub dx: Matrix,
    pub gradients: Gradients,
    /// What the layer keeps that is run again.
    pub recomputed: Kept,
    /// The sums of the bias of the projection, and of γ and β of the norm of the embeddings and of the last one.
    pub projection: Vec<Row>,
    pub norm: [Vec<Row>; 2],
    pub last_norm: [Vec<Row>; 2],
}

/// The scratch buffers of one thread.
#[derive(Default)]
pub(super) struct Worker {
    pub layer: LayerScratch,
    /// What a layer keeps whose backward pass does not run, or runs it again.
    pub kept: Kept,
    /// What becomes the task's x next.
    pub next: Matrix,
    pub line: Vec<f32>,
}

impl Scratch for Worker {}

impl Task {
    /// Returns what layer `index` kept, or computed again.
    pub fn kept(&self, index: usize, checkpointing: bool) -> &Kept {
        if checkpointing { &self.recomputed } else { &self.layers[index] }
    }
}
