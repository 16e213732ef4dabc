//! The forward pass.
//!
//! Sequences are laid out one after the other, without padding, so a batch is as much work as it has tokens. They are grouped
//! into tasks, which threads take one at a time; a task goes through all layers with the buffers of its thread, whose sizes
//! depend on the task and not on the batch. Each number of a result has one order of operations, so that a sequence gives the
//! same bits in any batch and with any number of threads.

use std::mem::swap;

use wordpiece_parallel::{Scratch, ScratchPool, Workers, map_with};

use super::disentangled_scratch::DisentangledScratch;
use super::inputs::{EmbeddingTables, Sequence, TokenColumns};
use super::tasks::{RowsTogether, Tasks, rows_of};
use super::weights::{Packed, RelativeBiasTable};
use crate::arch::{InstructionSet, TileUnit};
use crate::attention::{AttentionInputs, AttentionScratch, AttentionWeights, RelativeBias, ScoreBias, attention};
use crate::disentangled::RelativePositions;
use crate::embeddings::sum_rows;
use crate::execution::Execution;
use crate::gemm::{ConvertedInputs, Epilogue, PackedWeights, linear, linear_of_converted, linear_rounded};
use crate::matrix::{Matrix, PANEL, add_rows, panels};
use crate::plan::{Attention, Mlp, Plan, Residual, Step, of_body};
use crate::pooling::pool_rows;
use crate::rotary::{Rotation, rotate};
use crate::tile::tiles;

/// The most scratch buffers that an encoder keeps: enough for 16 threads.
const KEPT_SCRATCH: usize = 16;

/// An encoder: all weights except the embedding tables, which each call passes in.
pub struct Encoder {
    /// The layers.
    pub plan: Plan<Packed>,
    /// H, the width of the hidden states.
    pub hidden: usize,
    /// E, the width of the embedding tables.
    pub embedding: usize,
    /// The instructions to compute with.
    pub instruction_set: InstructionSet,
    /// The tile registers that multiply pairs of bfloat16 numbers or int8 numbers, if the CPU has them.
    pub tiles: Option<TileUnit>,
    /// The frequencies of rotary positions, `[d/2]` each, of which layers may have different ones.
    pub rotary: Vec<Vec<f32>>,
    /// Which relative position each distance has, where scores have terms of them.
    pub relative_positions: Option<RelativePositions>,
    /// The scratch buffers of earlier calls.
    pub scratch: ScratchPool<EncoderScratch, KEPT_SCRATCH>,
}

/// The intermediate results of a task. Buffers only grow.
#[derive(Default)]
pub struct EncoderScratch {
    /// The hidden state [rows, H]; before the first layer the embeddings [rows, E].
    pub(super) x: Matrix,
    /// What becomes `x` next.
    next: Matrix,
    /// The input of a body after the norm before it [rows, H].
    normed: Matrix,
    /// Queries, keys and values [rows, 3·N·d], each beginning at a panel.
    pub(super) qkv: Matrix,
    /// The output of attention [rows, N·d].
    pub(super) context: Matrix,
    /// The intermediate activations of some rows of the feed-forward network [rows, F].
    inner: Matrix,
    /// The gate of these rows in a gated feed-forward network [rows, F].
    gate: Matrix,
    /// The inputs of products in 16 or 8 bits.
    pub(super) converted: ConvertedInputs,
    /// The intermediate activations of some rows of the feed-forward network in 16 bits.
    rounded: ConvertedInputs,
    attention: AttentionScratch,
    /// Two embedding vectors.
    pub(super) line: Vec<f32>,
    /// The position of each row in its sequence.
    pub(super) positions: Vec<u32>,
    /// The row of each row in the table of positions, or the position by which it is rotated.
    position_ids: Vec<u32>,
    /// The rotations by each of the frequencies.
    rotations: Vec<Rotation>,
    /// What a DeBERTa computes besides the above.
    pub(super) disentangled: DisentangledScratch,
}

impl Scratch for EncoderScratch {}

impl Encoder {
    /// Whether attention multiplies bfloat16 numbers after products with these weights: as they do, and after int8 with tile
    /// registers. By vectors alone, int8 has the same bits on every CPU.
    pub fn multiplies_heads_as_bfloat16(tiles: Option<TileUnit>, weights: &PackedWeights) -> bool {
        weights.is_bf16_pairs() || (weights.factors().is_some() && tiles.is_some())
    }

    /// Returns how many rows are computed together by what multiplies the weights of the layers.
    fn rows_together(&self) -> RowsTogether {
        let attention = self.plan.layers.iter().flatten().find_map(Residual::attention);
        let weights = attention.map(|attention| attention.qkv.weights());
        RowsTogether::of(weights.is_some_and(|weights| weights.are_multiplied_by(self.tiles)))
    }

    /// Runs the encoder over `sequences` on the calling thread and the threads of `pool`, and writes what they request.
    ///
    /// # Panics
    ///
    /// If an id is outside its table, or the shapes do not agree.
    pub fn run(
        &self,
        tables: EmbeddingTables<'_>,
        tokens: TokenColumns<'_>,
        sequences: Vec<Sequence<'_>>,
        pool: Option<Workers>,
    ) {
        let threads = pool.map_or(1, |pool| pool.count() + 1);
        let together = self.rows_together();
        let Tasks { shared, apart } = Tasks::new(sequences, threads, together);
        if !shared.is_empty() {
            let mut scratch = self.scratch.check_out();
            for sequences in shared {
                Task::new(self, pool, together, sequences, &mut scratch).run(tables, tokens);
            }
        }
        map_with(
            apart,
            pool,
            || self.scratch.check_out(),
            |scratch, sequences| Task::new(self, None, together, sequences, scratch).run(tables, tokens),
        );
    }
}

/// The state of some sequences in the encoder.
pub(super) struct Task<'a, 's> {
    pub(super) encoder: &'a Encoder,
    pub(super) execution: Execution,
    pub(super) together: RowsTogether,
    pub(super) sequences: Vec<Sequence<'s>>,
    /// The number of tokens of all sequences.
    pub(super) rows: usize,
    pub(super) scratch: &'a mut EncoderScratch,
}

/// A kind of layer in the forward pass.
pub(super) trait RunBody {
    /// Computes what is read from the input of the layer, before any of the sub-layers replaces it.
    fn prepare(&self, _: &mut Task<'_, '_>) {}

    /// Computes x = after(x + body(before(x))), in layer number `index`; the result of `before` is there already.
    fn run(&self, task: &mut Task<'_, '_>, index: usize, residual: &Residual<Packed>);
}

impl<'a, 's> Task<'a, 's> {
    fn new(
        encoder: &'a Encoder,
        pool: Option<Workers>,
        together: RowsTogether,
        sequences: Vec<Sequence<'s>>,
        scratch: &'a mut EncoderScratch,
    ) -> Task<'a, 's> {
        let execution = Execution { instruction_set: encoder.instruction_set, tiles: encoder.tiles, pool };
        Task { encoder, execution, together, rows: rows_of(&sequences), sequences, scratch }
    }

    fn run(mut self, tables: EmbeddingTables<'_>, tokens: TokenColumns<'_>) {
        self.embed(tables, tokens);
        self.find_relative_rows();
        self.write_state(0);
        let plan = &self.encoder.plan;
        for (index, layer) in plan.layers.iter().enumerate() {
            for residual in layer {
                of_body!(&residual.body, body => body.prepare(&mut self));
            }
            for residual in layer {
                self.run_residual(index, residual);
            }
            if index + 1 == plan.layers.len() {
                self.write_state(index + 2);
                if let Some(norm) = &plan.last {
                    norm.apply(self.execution.instruction_set, &mut self.scratch.x.view_mut());
                }
            }
            self.write_state(index + 1);
        }
        self.pool();
    }

    /// Computes the sums of rows of tables, the norms and dense layers that follow, and the angles of rotary positions.
    fn embed(&mut self, tables: EmbeddingTables<'_>, tokens: TokenColumns<'_>) {
        let Encoder { plan, hidden, embedding, rotary, .. } = self.encoder;
        let EncoderScratch { x, line, positions, position_ids, rotations, .. } = &mut *self.scratch;
        line.resize(2 * embedding, 0.0);
        positions.clear();
        position_ids.clear();
        let mut out = x.reshape(self.rows, *embedding).view_mut();
        for sequence in &self.sequences {
            for (i, token) in sequence.tokens.clone().enumerate() {
                let value = |column: &[u32], default: usize| column.get(token).map_or(default, |n| *n as usize);
                let mut parts = [(tables.words, tokens.ids[token] as usize); 3];
                let mut count = 1;
                if let Some(types) = tables.types {
                    parts[count] = (types, value(tokens.types, 0));
                    count += 1;
                }
                let position = value(tokens.position_ids, i);
                if let Some(table) = tables.positions {
                    parts[count] = (table, position);
                    count += 1;
                }
                sum_rows(&parts[..count], *embedding, line, positions.len(), &mut out);
                positions.push(value(tokens.positions, i) as u32);
                position_ids.push(position as u32);
            }
        }
        rotations.resize_with(rotary.len(), Rotation::default);
        for (rotation, frequencies) in rotations.iter_mut().zip(rotary) {
            rotation.fill(position_ids, frequencies);
        }
        for step in &plan.embeddings.then {
            let EncoderScratch { x, next, converted, .. } = &mut *self.scratch;
            match step {
                Step::Norm(norm) => {
                    norm.apply(self.execution.instruction_set, &mut x.view_mut());
                    if plan.embeddings.masked {
                        self.clear_masked();
                    }
                }
                Step::Dense(dense) => {
                    swap(x, next);
                    let to = x.reshape(self.rows, *hidden).view_mut();
                    linear(self.execution, next.view(), dense, Epilogue::Bias, to, converted);
                }
            }
        }
    }

    /// Computes x = after(x + body(before(x))), and with a second norm again(x + that).
    fn run_residual(&mut self, index: usize, residual: &Residual<Packed>) {
        let instruction_set = self.execution.instruction_set;
        if let Some(norm) = &residual.before {
            let EncoderScratch { x, normed, .. } = &mut *self.scratch;
            normed.reshape(self.rows, self.encoder.hidden).data_mut().copy_from_slice(x.data());
            norm.apply(instruction_set, &mut normed.view_mut());
        }
        of_body!(&residual.body, body => body.run(self, index, residual));
        if let Some(again) = &residual.again {
            let EncoderScratch { x, next, .. } = &mut *self.scratch; // `next` is the input
            add_rows(next.data(), x.data_mut());
            again.apply(instruction_set, &mut x.view_mut());
        }
        if residual.masked {
            self.clear_masked();
        }
    }

    /// Computes the context of all heads from queries, keys and values, in layer number `index`.
    fn run_heads(&mut self, index: usize, of: &Attention<Packed>, size: usize) {
        let bfloat16 = Encoder::multiplies_heads_as_bfloat16(self.execution.tiles, of.qkv.weights());
        let width = panels(of.heads * size);
        let EncoderScratch { qkv, context, attention: scratch, positions, disentangled, .. } = &mut *self.scratch;
        // Attention does not write the padding columns of heads that do not fill panels, which products do not read.
        context.reshape(self.rows, of.heads * size);
        let relative_bias = of.bias.as_deref().map(|table| match table {
            RelativeBiasTable::Distances { bias, max_distance } => {
                ScoreBias::Distances(RelativeBias { bias, max_distance: *max_distance })
            }
            RelativeBiasTable::Slopes(slopes) => ScoreBias::Slopes(slopes),
        });
        let relative_scores = of.masked_sees_all.then(|| disentangled.scores(of));
        let mut start = 0;
        for sequence in &mut self.sequences {
            let all = start..start + sequence.tokens.len();
            start = all.end;
            let part = |n: usize| qkv.view().panels(n * width..(n + 1) * width);
            let keys = all.start..all.start + sequence.keys;
            let inputs = AttentionInputs {
                queries: part(0).rows(all.clone()),
                keys: part(1).rows(keys.clone()),
                values: part(2).rows(keys),
                heads: of.heads,
                size,
                positions: &positions[all.clone()],
                window: of.window,
                relative_bias,
                relative_scores,
                bfloat16,
            };
            let length = sequence.length;
            let weights = sequence.attentions.get_mut(index).map(|to| AttentionWeights { to, length });
            attention(self.execution, inputs, scratch, context.view_mut().rows(all), weights);
        }
        if of.masked_sees_all {
            self.attend_to_all(index, of, size);
        }
    }

    /// Copies hidden state number `index` to the sequences that request it.
    fn write_state(&mut self, index: usize) {
        let hidden = self.encoder.hidden;
        let mut start = 0;
        for sequence in &mut self.sequences {
            for (_, to) in sequence.states.iter_mut().filter(|state| state.0 == index) {
                for row in start..start + sequence.tokens.len() {
                    let position = self.scratch.positions[row] as usize;
                    self.scratch.x.copy_row(row, &mut to[position * hidden..][..hidden]);
                }
            }
            start += sequence.tokens.len();
        }
    }

    /// Pools the last hidden state for the sequences that request it.
    fn pool(self) {
        let hidden = self.encoder.hidden;
        let mut start = 0;
        for sequence in self.sequences {
            if let Some(pooled) = sequence.pooled {
                let rows = self.scratch.x.view().rows(start..start + sequence.keys);
                for (mode, to) in pooled.modes.iter().zip(pooled.to.chunks_mut(hidden)) {
                    pool_rows(*mode, rows, pooled.skip, hidden, to);
                }
            }
            start += sequence.tokens.len();
        }
    }
}

impl RunBody for Attention<Packed> {
    /// Computes x = after(x + attention(before(x))·Wᵀ + b).
    fn run(&self, task: &mut Task<'_, '_>, index: usize, residual: &Residual<Packed>) {
        let (rows, instruction_set) = (task.rows, task.execution.instruction_set);
        let EncoderScratch { x, normed, qkv, converted, rotations, .. } = &mut *task.scratch;
        let input = if residual.before.is_some() { normed.view() } else { x.view() };
        let size = self.output.weights().k() / self.heads;
        let width = panels(self.heads * size);
        let to = qkv.reshape(rows, 3 * width * PANEL).view_mut();
        linear(task.execution, input, &self.qkv, Epilogue::Bias, to, converted);
        for (part, norm) in self.norms.iter().flatten().enumerate() {
            norm.apply(instruction_set, &mut qkv.view_mut().panels(part * width..(part + 1) * width));
        }
        if let Some(rotary) = self.rotary {
            for part in [0, 1] {
                let mut qkv = qkv.view_mut();
                let columns = &mut qkv.panels(part * width..(part + 1) * width);
                rotate(instruction_set, &rotations[rotary], self.heads, size, columns);
            }
        }
        task.run_heads(index, self, size);
        let EncoderScratch { x, context, next, converted, .. } = &mut *task.scratch;
        let to = next.reshape(rows, task.encoder.hidden).view_mut();
        linear(task.execution, context.view(), &self.output, Epilogue::Residual(x.view()), to, converted);
        if let Some(norm) = &residual.after {
            norm.apply(instruction_set, &mut next.view_mut());
        }
        swap(x, next);
    }
}

impl RunBody for Mlp<Packed> {
    /// Computes x = after(x + FFN(before(x))) for FFN(a) = activation(a·W₁ᵀ + b₁)·W₂ᵀ + b₂, whose activation is multiplied
    /// by a·Wᵀ + b in a gated network.
    fn run(&self, task: &mut Task<'_, '_>, _: usize, residual: &Residual<Packed>) {
        let (hidden, intermediate) = (task.encoder.hidden, self.output.weights().k());
        let instruction_set = task.execution.instruction_set;
        let EncoderScratch { x, normed, next, inner, gate, converted, rounded, .. } = &mut *task.scratch;
        next.reshape(task.rows, hidden);
        for part in tiles(task.rows, task.together.feed_forward) {
            let a = x.view().rows(part.clone());
            let input = if residual.before.is_some() { normed.view().rows(part.clone()) } else { a };
            let (mut last, mut epilogue) = (&self.inner, Epilogue::Activation(self.activation));
            if let Some(up) = &self.up {
                let to = gate.reshape(part.len(), intermediate).view_mut();
                linear(task.execution, input, last, epilogue, to, converted);
                (last, epilogue) = (up, Epilogue::Gate(gate.view()));
            }
            let mut next = next.view_mut();
            let to = next.rows(part.clone());
            if last.are_rounded_before(&self.output) {
                let input = converted.convert(task.execution, input, last.weights());
                let inner = linear_rounded(task.execution, input, last, epilogue, part.len(), &self.output, rounded);
                linear_of_converted(task.execution, inner, &self.output, Epilogue::Residual(a), to);
            } else {
                let inner_out = inner.reshape(part.len(), intermediate).view_mut();
                linear(task.execution, input, last, epilogue, inner_out, converted);
                linear(task.execution, inner.view(), &self.output, Epilogue::Residual(a), to, converted);
            }
            if let Some(norm) = &residual.after {
                norm.apply(instruction_set, &mut next.rows(part));
            }
        }
        swap(x, next);
    }
}
