//! The forward pass.
//!
//! Sequences are laid out one after the other, without padding, so a batch is as much work as it has tokens. They are grouped
//! into tasks, which threads take one at a time; a task goes through all layers with the buffers of its thread, whose sizes
//! depend on the task and not on the batch. Each number of a result has one order of operations, so that a sequence gives the
//! same bits in any batch and with any number of threads.

use std::cmp::Reverse;
use std::sync::Arc;

use wordpiece_parallel::{Scratch, ScratchPool, Workers, map_with};

use super::disentangled_scratch::DisentangledScratch;
use super::inputs::{EmbeddingTables, Sequence, TokenColumns};
use super::tasks::{RowsTogether, group_into_tasks, rows_of};
use super::weights::{
    Disentangled, EncoderConfig, Layer, LayerNormWeights, LayerPositions, Layers, Norm, RelativeBiasTable,
};
use crate::arch::{InstructionSet, TileUnit};
use crate::attention::{AttentionInputs, AttentionScratch, AttentionWeights, RelativeBias, ScoreBias, attention};
use crate::embeddings::sum_rows;
use crate::execution::Execution;
use crate::gemm::{
    ConvertedInputs, Dense, Epilogue, PackedWeights, Products, linear, linear_of_converted, linear_rounded,
};
use crate::matrix::{Matrix, PANEL, ViewMut, add_rows, panels};
use crate::norm::{LayerNorm, layer_norm, rms_norm};
use crate::pooling::pool_rows;
use crate::rotary::{Rotation, rotate};
use crate::tile::tiles;

/// The most scratch buffers that an encoder keeps: enough for 16 threads.
const KEPT_SCRATCH: usize = 16;

/// An encoder: all weights except the embedding tables, which each call passes in.
pub struct Encoder {
    /// The sizes.
    pub config: EncoderConfig,
    /// The instructions to compute with.
    pub instruction_set: InstructionSet,
    /// The tile registers that multiply pairs of bfloat16 numbers or int8 numbers, if the CPU has them.
    pub tiles: Option<TileUnit>,
    /// The dense layer of MobileBERT from E, or 3E for three neighbours, to H, before the other embeddings are added.
    pub transformation: Option<Arc<Dense>>,
    /// The norm of the embeddings, over E columns, or over H in MobileBERT, if the model has one.
    pub embedding_norm: Option<Norm>,
    /// The dense layer from E to H, if the model has one.
    pub projection: Option<Dense>,
    /// The layers.
    pub layers: Layers,
    /// The layer norm after the last layer, over H columns, if the model has one.
    pub last_norm: Option<LayerNormWeights>,
    /// The bias of MPNet's attention, or ALiBi's.
    pub relative_bias: Option<RelativeBiasTable>,
    /// How a DeBERTa differs from BERT.
    pub disentangled: Option<Disentangled>,
    /// The frequencies of rotary positions, `[d/2]` each, of which layers may have different ones.
    pub rotary: Vec<Vec<f32>>,
    /// What each layer knows about positions; may be empty if none knows anything.
    pub positions: Vec<LayerPositions>,
    /// The scratch buffers of earlier calls.
    pub scratch: ScratchPool<EncoderScratch, KEPT_SCRATCH>,
}

/// The intermediate results of a task. Buffers only grow.
#[derive(Default)]
pub struct EncoderScratch {
    /// The embeddings [rows, E], if they are projected.
    pub(super) embedded: Matrix,
    /// The hidden state [rows, H].
    pub(super) x: Matrix,
    /// The input of a half of a layer after its norm [rows, H], if norms come first.
    pub(super) normed: Matrix,
    /// Queries, keys and values [rows, 3·N·d], each beginning at a panel.
    pub(super) qkv: Matrix,
    /// The output of attention [rows, N·d].
    pub(super) context: Matrix,
    /// The output of the attention block [rows, H].
    pub(super) attended: Matrix,
    /// The intermediate activations of some rows of the feed-forward network [rows, F].
    pub(super) inner: Matrix,
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
    /// The narrow input of a layer of MobileBERT [rows, h].
    pub(super) narrow: Matrix,
    /// What becomes `attended` or `x` next [rows, h or H].
    pub(super) spare: Matrix,
}

impl Scratch for EncoderScratch {}

impl Encoder {
    /// Returns what layer number `index` knows about positions.
    fn positions_of(&self, index: usize) -> LayerPositions {
        self.positions.get(index).copied().unwrap_or_default()
    }

    /// Whether attention multiplies bfloat16 numbers after products with these weights: as they do, and after int8 where
    /// that is faster than float32.
    pub fn multiplies_heads_as_bfloat16(
        instruction_set: InstructionSet,
        tiles: Option<TileUnit>,
        weights: &PackedWeights,
    ) -> bool {
        let is_faster = Products::bfloat16(instruction_set, tiles).is_faster();
        weights.is_bf16_pairs() || (weights.factors().is_some() && is_faster)
    }

    /// Returns how many rows are computed together by what multiplies the weights of the layers.
    fn rows_together(&self) -> RowsTogether {
        let weights = match &self.layers {
            Layers::Bert(layers) => layers.first().map(|layer| layer.qkv.weights()),
            Layers::Bottleneck(layers) => layers.first().map(|layer| layer.value.weights()),
        };
        RowsTogether::of(weights.is_some_and(|weights| weights.are_multiplied_by(self.tiles)))
    }

    /// Runs the encoder over `sequences` on the calling thread and those of `pool`, and writes what they request.
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
        let mut tasks = group_into_tasks(sequences, threads, together);
        if tasks.len() < threads {
            let mut scratch = self.scratch.check_out();
            for sequences in tasks {
                Task::new(self, pool, together, sequences, &mut scratch).run(tables, tokens);
            }
            return;
        }
        // The longest first, so that all threads finish at about the same time.
        tasks.sort_by_key(|task| Reverse(rows_of(task)));
        map_with(
            tasks,
            pool,
            || self.scratch.check_out(),
            |scratch, sequences| Task::new(self, None, together, sequences, scratch).run(tables, tokens),
        );
    }
}

impl EncoderConfig {
    /// Applies a norm of the layers to each row of `x`, in place.
    fn normalize(&self, instruction_set: InstructionSet, norm: LayerNorm<'_>, x: &mut ViewMut<'_>) {
        if self.rms_norm {
            rms_norm(instruction_set, norm, x);
        } else {
            layer_norm(instruction_set, norm, x);
        }
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
        match self.encoder.layers {
            Layers::Bert(_) => self.embed(tables, tokens),
            Layers::Bottleneck(_) => self.embed_neighbours(tables, tokens),
        }
        self.write_state(0);
        let encoder = self.encoder;
        for index in 0..encoder.layers.len() {
            match &encoder.layers {
                Layers::Bert(layers) => {
                    self.attend(index, &layers[index]);
                    self.feed_forward(&layers[index]);
                    if index == 0 {
                        self.add_convolution();
                    }
                }
                Layers::Bottleneck(layers) => self.run_bottleneck(index, &layers[index]),
            }
            if index + 1 == encoder.layers.len() {
                self.write_state(index + 2);
                self.normalize_last();
            }
            self.write_state(index + 1);
        }
        self.pool();
    }

    /// Computes x = LN(word + type + position), of which a model may lack parts, projected to H columns if it has a
    /// projection, and the angles of rotary positions.
    fn embed(&mut self, tables: EmbeddingTables<'_>, tokens: TokenColumns<'_>) {
        let Encoder { config, projection, embedding_norm, rotary, .. } = self.encoder;
        let EncoderConfig { hidden, embedding, .. } = *config;
        let EncoderScratch { embedded, x, converted, line, positions, position_ids, rotations, .. } =
            &mut *self.scratch;
        line.resize(2 * embedding, 0.0);
        positions.clear();
        position_ids.clear();
        let to = if projection.is_some() { &mut *embedded } else { &mut *x };
        let mut out = to.reshape(self.rows, embedding).view_mut();
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
                sum_rows(&parts[..count], embedding, line, positions.len(), &mut out);
                positions.push(value(tokens.positions, i) as u32);
                position_ids.push(position as u32);
            }
        }
        rotations.resize_with(rotary.len(), Rotation::default);
        for (rotation, frequencies) in rotations.iter_mut().zip(rotary) {
            rotation.fill(position_ids, frequencies);
        }
        // The norm of DeBERTa follows the projection.
        let norm_first = self.encoder.disentangled.is_none();
        let instruction_set = self.execution.instruction_set;
        if let Some(norm) = embedding_norm.as_ref().filter(|_| norm_first) {
            norm.apply(instruction_set, embedding, &mut out);
        }
        if let Some(projection) = projection {
            let to = x.reshape(self.rows, hidden).view_mut();
            linear(self.execution, embedded.view(), projection, Epilogue::Bias, to, converted);
        }
        if let Some(norm) = embedding_norm.as_ref().filter(|_| !norm_first) {
            norm.apply(instruction_set, hidden, &mut x.view_mut());
        }
        self.prepare_disentangled();
    }

    /// Computes attended = LN(x + attention(x)·Wᵀ + b), or x + attention(LN(x))·Wᵀ + b, with layer `layer`, which is
    /// number `index`.
    fn attend(&mut self, index: usize, layer: &Layer) {
        let config = &self.encoder.config;
        let EncoderConfig { hidden, heads, head_size, eps, norm_first, .. } = *config;
        let (rows, instruction_set) = (self.rows, self.execution.instruction_set);
        let EncoderScratch { x, normed, qkv, converted, rotations, .. } = &mut *self.scratch;
        let norm = layer.output_norm.as_ref().map(|norm| norm.with_eps(eps, hidden));
        let input = match norm {
            Some(norm) if norm_first => {
                normed.reshape(rows, hidden).data_mut().copy_from_slice(x.data());
                config.normalize(instruction_set, norm, &mut normed.view_mut());
                normed.view()
            }
            _ => x.view(),
        };
        let width = panels(heads * head_size);
        let to = qkv.reshape(rows, 3 * width * PANEL).view_mut();
        linear(self.execution, input, &layer.qkv, Epilogue::Bias, to, converted);
        if let Some(norms) = &layer.query_key_norms {
            for (part, norm) in norms.iter().enumerate() {
                let norm = norm.with_eps(eps, heads * head_size);
                let mut qkv = qkv.view_mut();
                config.normalize(instruction_set, norm, &mut qkv.panels(part * width..(part + 1) * width));
            }
        }
        if let Some(rotary) = self.encoder.positions_of(index).rotary {
            for part in [0, 1] {
                let mut qkv = qkv.view_mut();
                rotate(
                    instruction_set,
                    &rotations[rotary],
                    heads,
                    head_size,
                    &mut qkv.panels(part * width..(part + 1) * width),
                );
            }
        }
        self.run_heads(index, self.multiplies_heads_as_bfloat16(layer.qkv.weights()));
        let EncoderScratch { x, context, attended, converted, .. } = &mut *self.scratch;
        let to = attended.reshape(rows, hidden).view_mut();
        linear(self.execution, context.view(), &layer.output, Epilogue::Residual(x.view()), to, converted);
        if let Some(norm) = norm.filter(|_| !norm_first) {
            config.normalize(instruction_set, norm, &mut attended.view_mut());
        }
        if let Some(second) = &layer.second_norm {
            add_rows(x.data(), attended.data_mut());
            config.normalize(instruction_set, second.with_eps(eps, hidden), &mut attended.view_mut());
        }
    }

    /// As the function of [`Encoder`], for the instructions of this task.
    pub(super) fn multiplies_heads_as_bfloat16(&self, weights: &PackedWeights) -> bool {
        let Execution { instruction_set, tiles, .. } = self.execution;
        Encoder::multiplies_heads_as_bfloat16(instruction_set, tiles, weights)
    }

    /// Computes the context of all heads from queries, keys and values, in layer number `index`.
    pub(super) fn run_heads(&mut self, index: usize, bfloat16: bool) {
        let EncoderConfig { heads, head_size, .. } = self.encoder.config;
        let width = panels(heads * head_size);
        let EncoderScratch { qkv, context, attention: scratch, positions, disentangled, .. } = &mut *self.scratch;
        // Attention does not write the padding columns of heads that do not fill panels. They are 0 from the first use
        // on.
        context.reshape(self.rows, heads * head_size);
        let relative_bias = self.encoder.relative_bias.as_ref();
        let relative_bias = relative_bias.map(|table| match table {
            RelativeBiasTable::Distances { bias, max_distance } => {
                ScoreBias::Distances(RelativeBias { bias, max_distance: *max_distance })
            }
            RelativeBiasTable::Slopes(slopes) => ScoreBias::Slopes(slopes),
        });
        let relative_scores = self.encoder.disentangled.as_ref().map(|kind| disentangled.scores(kind, index));
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
                heads,
                size: head_size,
                positions: &positions[all.clone()],
                window: self.encoder.positions_of(index).window,
                relative_bias,
                relative_scores,
                bfloat16,
            };
            let length = sequence.length;
            let weights = sequence.attentions.get_mut(index).map(|to| AttentionWeights { to, length });
            attention(self.execution, inputs, scratch, context.view_mut().rows(all), weights);
        }
        if relative_scores.is_some() {
            self.attend_to_all(index);
        }
    }

    /// Computes x = LN(a + FFN(a)), or a + FFN(LN(a)), for a = attended and FFN(a) = activation(a·W₁ᵀ + b₁)·W₂ᵀ + b₂,
    /// whose activation is multiplied by a·Wᵀ + b in a gated network.
    fn feed_forward(&mut self, layer: &Layer) {
        let config = &self.encoder.config;
        let EncoderConfig { hidden, intermediate, activation, eps, norm_first, .. } = *config;
        let instruction_set = self.execution.instruction_set;
        let EncoderScratch { x, normed, attended, inner, gate, converted, rounded, .. } = &mut *self.scratch;
        let norm = layer.outer_norm.with_eps(eps, hidden);
        if norm_first {
            normed.reshape(self.rows, hidden).data_mut().copy_from_slice(attended.data());
            config.normalize(instruction_set, norm, &mut normed.view_mut());
        }
        for part in tiles(self.rows, self.together.feed_forward) {
            let a = attended.view().rows(part.clone());
            let input = if norm_first { normed.view().rows(part.clone()) } else { a };
            let (mut last, mut epilogue) = (&layer.inner, Epilogue::Activation(activation));
            if let Some(up) = &layer.up {
                let to = gate.reshape(part.len(), intermediate).view_mut();
                linear(self.execution, input, last, epilogue, to, converted);
                (last, epilogue) = (up, Epilogue::Gate(gate.view()));
            }
            let mut x = x.view_mut();
            let to = x.rows(part.clone());
            if last.are_rounded_before(&layer.outer) {
                let input = converted.convert(self.execution, input, last.weights());
                let inner = linear_rounded(self.execution, input, last, epilogue, part.len(), &layer.outer, rounded);
                linear_of_converted(self.execution, inner, &layer.outer, Epilogue::Residual(a), to);
            } else {
                let inner_out = inner.reshape(part.len(), intermediate).view_mut();
                linear(self.execution, input, last, epilogue, inner_out, converted);
                linear(self.execution, inner.view(), &layer.outer, Epilogue::Residual(a), to, converted);
            }
            if !norm_first {
                config.normalize(instruction_set, norm, &mut x.rows(part));
            }
        }
    }

    /// Computes x = LN(x) after the last layer, if the model has such a norm.
    fn normalize_last(&mut self) {
        let config = &self.encoder.config;
        if let Some(norm) = &self.encoder.last_norm {
            let norm = norm.with_eps(config.eps, config.hidden);
            config.normalize(self.execution.instruction_set, norm, &mut self.scratch.x.view_mut());
        }
    }

    /// Copies hidden state number `index` to the sequences that request it.
    fn write_state(&mut self, index: usize) {
        let hidden = self.encoder.config.hidden;
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
        let hidden = self.encoder.config.hidden;
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
