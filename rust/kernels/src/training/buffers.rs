//! The buffers of a task that is trained. They only grow, so that from the second batch on nothing is allocated.
//!
//! Three kinds: what the backward pass needs of the forward pass is in [`Kept`], a layer's own; what a thread needs while it
//! computes a task is in [`LayerScratch`]; and gradients that are summed over the tasks are in [`Gradients`].

use super::attention::{AttentionScratch, PositionSums};
use super::heads::{Rows, Statistics};
use super::norm::Normalized;
use crate::gemm::ConvertedInputs;
use crate::matrix::{Matrix, Row, panels};
use crate::rotary::Rotation;

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
    /// Before the activation [rows, F], in a convolution [rows, H]; in a gated network the gate and what it multiplies, each
    /// beginning at a panel.
    pub z: Matrix,
    /// The neighbours of each token [rows, width · H′], of a convolution.
    pub neighbours: Matrix,
    /// The gradient with respect to these.
    pub dneighbours: Matrix,
    /// The gradient with respect to the layer's input [rows, H], if that is what the body reads.
    pub dlayer: Matrix,
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
    pub between: [Matrix; 2],
    /// The input of a body after the norm before it [rows, H].
    pub normed: Matrix,
    pub h: Matrix,
    /// The gradient with respect to the input of a body [rows, H].
    pub da: Matrix,
    /// What goes around a second residual [rows, H].
    pub around: Matrix,
    pub dcontext: Matrix,
    pub converted: ConvertedInputs,
    pub attention: AttentionScratch,
    pub states: Vec<u64>,
}

impl Sums {
    /// Sets the sums over H columns to 0. The body does so for the others.
    pub fn clear(&mut self, hidden: usize) {
        let Sums { output, before, after, again, .. } = self;
        [output].into_iter().chain(before).chain(after).chain(again).for_each(|sums| clear(sums, panels(hidden)));
    }
}

/// Sets sums of so many panels to 0.
pub(super) fn clear(sums: &mut Vec<Row>, panels: usize) {
    sums.clear();
    sums.resize(panels, Row::ZERO);
}
