//! Attention that can be differentiated: c = (softmax(q·kᵀ/√d + bias)·m)·v for each head of a sequence, m its dropout.
//! Scores may have the terms of a DeBERTa as well, whose gradients are in `relative_gradients`.
//!
//! The forward pass keeps the maximum and the reciprocal of the sum of each row of the softmax; the backward pass computes
//! the weights again from queries and keys (Dao et al., "FlashAttention", 2022, section 3.1). With p̃ = p·m:
//! dv = p̃ᵀ·dc, dp = (dc·vᵀ)·m, ds = p·(dp − dc·c), dq = ds·k/√d, dk = dsᵀ·q/√d.
//!
//! Scratch buffers hold the keys and values of one head, transposed, and the weights of a block of queries.

use wordpiece_parallel::checkpoint;

use super::attention_backward::{Backward, Operands};
use super::attention_forward::Forward;
use super::heads::{Heads, Rows, Statistics};
use super::relative_gradients::RelativeGradientScratch;
use crate::arch::{self, InstructionSet};
use crate::disentangled::RelativeScratch;
use crate::matrix::{Matrix, PANEL, Row, View, ViewMut, copy_columns, panels};
use crate::transpose::Transpose;

/// Scratch buffers of one thread. They only grow.
#[derive(Default)]
pub struct AttentionScratch {
    /// The columns of one head of q, k, v, dc and c, where heads do not fill panels.
    copies: [Matrix; 5],
    /// The context, or dq.
    first: Matrix,
    /// dk and dv.
    others: [Matrix; 2],
    transposed: [Vec<Row>; 2],
    weights: [Vec<Row>; 2],
    relative: RelativeScratch,
    relative_gradients: RelativeGradientScratch,
    /// The columns of one head of Kʳ and Qʳ, where heads do not fill panels.
    tables: [Matrix; 2],
}

/// The sums, over the sequences of a task, of the gradients of what scores depend on besides queries and keys.
#[derive(Default)]
pub struct PositionSums {
    /// ds of a bias, by head and distance.
    pub distances: Vec<f32>,
    /// The gradients of Kʳ and Qʳ before the scaling of scores: for each head its panels of columns, [relative
    /// positions, 32] each.
    pub terms: [Vec<Row>; 2],
}

/// The attention of one sequence of a task.
#[derive(Clone, Copy)]
pub struct SequenceHeads<'a> {
    /// Its heads.
    pub heads: Heads<'a>,
    /// Its rows among the rows of the task.
    pub rows: &'a Rows,
    /// The place of each of its rows in the padded sequence.
    pub positions: &'a [u32],
    /// Queries, keys and values of the task, each beginning at a panel.
    pub qkv: View<'a>,
}

/// Computes the context of one sequence into its rows of `context`, and the statistics of its softmax, by head and row.
pub fn attend(
    instruction_set: InstructionSet,
    sequence: SequenceHeads<'_>,
    context: &mut ViewMut<'_>,
    statistics: &mut [Statistics],
    scratch: &mut AttentionScratch,
) {
    let SequenceHeads { heads, rows, positions, qkv } = sequence;
    let of_sequence = qkv.rows(rows.tokens.clone());
    let mut context = context.rows(rows.tokens.clone());
    let all = qkv.len();
    for head in 0..heads.count {
        checkpoint();
        let AttentionScratch {
            copies: [q, k, v, ..],
            first,
            transposed: [keys, _],
            weights: [scores, _],
            relative,
            ..
        } = scratch;
        let [q, k, v] = [(q, 0), (k, 1), (v, 2)].map(|(copy, part)| columns_of(of_sequence, heads, part, head, copy));
        let k = k.rows(0..rows.keys);
        let statistics = &mut statistics[head * all..][rows.tokens.clone()];
        arch::run(instruction_set, Transpose { from: k, columns: heads.size, to: keys });
        let out = first.reshape(q.len(), heads.size).data_mut();
        let forward = Forward { heads, head, rows, positions, q, v, keys, scores, relative, out, statistics };
        arch::run(instruction_set, forward);
        copy_columns(first.view(), 0, context.rows(0..first.view().len()), head * heads.size, heads.size);
    }
}

/// Computes dq, dk and dv of one sequence into its rows of `dqkv`, which is laid out as `qkv`, and adds to `sums`. The
/// sums that the heads have must have their size.
///
/// `statistics` are the statistics from [`attend`], `context` and `dcontext` c and dc.
pub fn attend_backward(
    instruction_set: InstructionSet,
    sequence: SequenceHeads<'_>,
    statistics: &[Statistics],
    [context, dcontext]: [View<'_>; 2],
    dqkv: &mut ViewMut<'_>,
    sums: &mut PositionSums,
    scratch: &mut AttentionScratch,
) {
    let SequenceHeads { heads, rows, positions, qkv } = sequence;
    let of_sequence = qkv.rows(rows.tokens.clone());
    let [context, dcontext] = [context, dcontext].map(|x| x.rows(rows.tokens.clone()));
    let mut dqkv = dqkv.rows(rows.tokens.clone());
    let (all, width, size) = (qkv.len(), panels(heads.count * heads.size), heads.size);
    for head in 0..heads.count {
        checkpoint();
        let AttentionScratch { copies, first: dq, others: [dk, dv], transposed: [keys, values], weights, .. } = scratch;
        let [copy_q, copy_k, copy_v, copy_c, copy_dc] = copies;
        let q = columns_of(of_sequence, heads, 0, head, copy_q);
        let k = columns_of(of_sequence, heads, 1, head, copy_k).rows(0..rows.keys);
        let v = columns_of(of_sequence, heads, 2, head, copy_v).rows(0..rows.keys);
        let c = columns_of(context, heads, 0, head, copy_c);
        let dc = columns_of(dcontext, heads, 0, head, copy_dc);
        arch::run(instruction_set, Transpose { from: k, columns: size, to: keys });
        arch::run(instruction_set, Transpose { from: v, columns: size, to: values });
        let statistics = &statistics[head * all..][rows.tokens.clone()];
        let n = q.len();
        dq.reshape(n, size);
        // The gradients of tokens that nothing attends to stay 0.
        dk.reshape(n, size).data_mut().fill(Row::ZERO);
        dv.reshape(n, size).data_mut().fill(Row::ZERO);
        let gradients = [dq.data_mut(), dk.data_mut(), dv.data_mut()];
        let operands = Operands { q, k, c, dc, transposed: [keys, values] };
        let PositionSums { distances, terms } = &mut *sums;
        let dbias = heads.distances().map(|bias| {
            let of_head = 2 * bias.max_distance + 1;
            &mut distances[head * of_head..][..of_head]
        });
        let tables = heads.relative.map_or([None; 2], |relative| relative.tables);
        let mut copies = scratch.tables.iter_mut();
        let tables = tables.map(|table| {
            let copy = copies.next()?;
            table.map(|table| columns_of(table, heads, 0, head, copy))
        });
        let dterms = terms.each_mut().map(|sums| {
            let of_head = sums.len() / heads.count;
            &mut sums[head * of_head..][..of_head]
        });
        let relative = (&mut scratch.relative, &mut scratch.relative_gradients);
        let backward = Backward {
            heads,
            head,
            rows,
            positions,
            operands,
            statistics,
            weights,
            gradients,
            dbias,
            tables,
            dterms,
            relative,
        };
        arch::run(instruction_set, backward);
        for (part, from) in [&*dq, &*dk, &*dv].into_iter().enumerate() {
            let mut to = dqkv.panels(part * width..(part + 1) * width);
            copy_columns(from.view(), 0, to.rows(0..n), head * size, size);
        }
    }
}

/// Returns the columns of a head of part `part` of `x`, each part beginning at a panel; `copy` receives the columns of
/// a head that does not fill panels.
fn columns_of<'a>(x: View<'a>, heads: Heads<'_>, part: usize, head: usize, copy: &'a mut Matrix) -> View<'a> {
    let width = panels(heads.count * heads.size);
    if heads.size.is_multiple_of(PANEL) {
        let first = part * width + head * heads.size / PANEL;
        return x.panels(first..first + heads.size / PANEL);
    }
    let to = copy.reshape(x.len(), heads.size);
    to.data_mut().fill(Row::ZERO);
    let part = x.panels(part * width..(part + 1) * width);
    copy_columns(part, head * heads.size, to.view_mut(), 0, heads.size);
    copy.view()
}
