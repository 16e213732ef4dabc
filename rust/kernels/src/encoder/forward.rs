//! The forward pass.

use std::cmp::Reverse;
use std::sync::Arc;

use wordpiece_parallel::{Scratch, ScratchPool, Workers, map_with};

use super::inputs::{EmbeddingTables, Sequence, TokenColumns};
use super::tasks::{group_into_tasks, rows_of};
use super::weights::{EncoderConfig, Layer, LayerNormWeights, RelativeBiasTable};
use crate::arch::InstructionSet;
use crate::attention::{AttentionInputs, AttentionScratch, AttentionWeights, RelativeBias, attention};
use crate::embeddings::sum_rows;
use crate::execution::Execution;
use crate::gemm::{Dense, Epilogue, linear};
use crate::matrix::{HalfRow, Matrix, PANEL, panels};
use crate::norm::layer_norm;
use crate::pooling::pool_rows;
use crate::tile::tiles;

/// Rows that go through both halves of the feed-forward network at a time, so that what lies between stays in the
/// cache.
const FEED_FORWARD_ROWS: usize = 56;

/// The most scratch buffers that an encoder keeps: enough for 16 threads.
const KEPT_SCRATCH: usize = 16;

/// An encoder: all weights except the embedding tables, which each call passes in.
pub struct Encoder {
    /// The sizes.
    pub config: EncoderConfig,
    /// The instructions to compute with.
    pub instruction_set: InstructionSet,
    /// The layer norm of the embeddings, over E columns.
    pub embedding_norm: LayerNormWeights,
    /// The dense layer from E to H, if the model has one.
    pub projection: Option<Dense>,
    /// The layers in the order in which they run; ALBERT runs one several times.
    pub layers: Vec<Arc<Layer>>,
    /// MPNet's attention bias.
    pub relative_bias: Option<RelativeBiasTable>,
    /// The scratch buffers of earlier calls.
    pub scratch: ScratchPool<EncoderScratch, KEPT_SCRATCH>,
}

/// The intermediate results of a task. Buffers only grow.
#[derive(Default)]
pub struct EncoderScratch {
    /// The embeddings [rows, E], if they are projected.
    embedded: Matrix,
    /// The hidden state [rows, H].
    x: Matrix,
    /// Queries, keys and values [rows, 3H], each beginning at a panel.
    qkv: Matrix,
    /// The output of attention [rows, H].
    context: Matrix,
    /// The output of the attention block [rows, H].
    attended: Matrix,
    /// The intermediate activations of the feed-forward network [FEED_FORWARD_ROWS, F].
    inner: Matrix,
    /// Inputs rounded to bfloat16.
    rounded: Vec<HalfRow>,
    attention: AttentionScratch,
    /// Two embedding vectors.
    line: Vec<f32>,
    /// The position of each row in its sequence.
    positions: Vec<u32>,
}

impl Scratch for EncoderScratch {}

impl Encoder {
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
        let mut tasks = group_into_tasks(sequences, threads);
        if tasks.len() < threads {
            let mut scratch = self.scratch.check_out();
            for sequences in tasks {
                Task::new(self, pool, sequences, &mut scratch).run(tables, tokens);
            }
            return;
        }
        // The longest first, so that all threads finish at about the same time.
        tasks.sort_by_key(|task| Reverse(rows_of(task)));
        map_with(
            tasks,
            pool,
            || self.scratch.check_out(),
            |scratch, sequences| Task::new(self, None, sequences, scratch).run(tables, tokens),
        );
    }
}

/// The state of some sequences in the encoder.
struct Task<'a, 's> {
    encoder: &'a Encoder,
    execution: Execution,
    sequences: Vec<Sequence<'s>>,
    /// The number of tokens of all sequences.
    rows: usize,
    scratch: &'a mut EncoderScratch,
}

impl<'a, 's> Task<'a, 's> {
    fn new(
        encoder: &'a Encoder,
        pool: Option<Workers>,
        sequences: Vec<Sequence<'s>>,
        scratch: &'a mut EncoderScratch,
    ) -> Task<'a, 's> {
        let execution = Execution { instruction_set: encoder.instruction_set, pool };
        Task { encoder, execution, rows: rows_of(&sequences), sequences, scratch }
    }

    fn run(mut self, tables: EmbeddingTables<'_>, tokens: TokenColumns<'_>) {
        self.embed(tables, tokens);
        self.write_state(0);
        for (index, layer) in self.encoder.layers.iter().enumerate() {
            self.attend(index, layer);
            self.feed_forward(layer);
            self.write_state(index + 1);
        }
        self.pool();
    }

    /// Computes x = LN(word + type + position), projected to H columns if the model has a projection.
    fn embed(&mut self, tables: EmbeddingTables<'_>, tokens: TokenColumns<'_>) {
        let Encoder { config, projection, embedding_norm, .. } = self.encoder;
        let EncoderConfig { hidden, embedding, eps, .. } = *config;
        let EncoderScratch { embedded, x, rounded, line, positions, .. } = &mut *self.scratch;
        line.resize(2 * embedding, 0.0);
        positions.clear();
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
                parts[count] = (tables.positions, value(tokens.position_ids, i));
                sum_rows(&parts[..=count], embedding, line, positions.len(), &mut out);
                positions.push(value(tokens.positions, i) as u32);
            }
        }
        layer_norm(self.execution.instruction_set, embedding_norm.with_eps(eps, embedding), &mut out);
        if let Some(projection) = projection {
            let to = x.reshape(self.rows, hidden).view_mut();
            linear(self.execution, embedded.view(), projection, Epilogue::Bias, to, rounded);
        }
    }

    /// Computes attended = LN(x + attention(x)·Wᵀ + b) with layer `layer`, which is number `index`.
    fn attend(&mut self, index: usize, layer: &Layer) {
        let EncoderConfig { hidden, heads, eps, .. } = self.encoder.config;
        let rows = self.rows;
        let EncoderScratch { x, qkv, context, attended, rounded, attention: scratch, positions, .. } =
            &mut *self.scratch;
        let width = panels(hidden);
        let to = qkv.reshape(rows, 3 * width * PANEL).view_mut();
        linear(self.execution, x.view(), &layer.qkv, Epilogue::Bias, to, rounded);
        // Attention does not write the padding columns of heads that do not fill panels. They are 0 from the first use
        // on.
        context.reshape(rows, hidden);
        let relative_bias = self.encoder.relative_bias.as_ref();
        let relative_bias =
            relative_bias.map(|table| RelativeBias { bias: &table.bias, max_distance: table.max_distance });
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
                size: hidden / heads,
                positions: &positions[all.clone()],
                relative_bias,
            };
            let length = sequence.length;
            let weights = sequence.attentions.get_mut(index).map(|to| AttentionWeights { to, length });
            attention(self.execution, inputs, scratch, context.view_mut().rows(all), weights);
        }
        let to = attended.reshape(rows, hidden).view_mut();
        linear(self.execution, context.view(), &layer.output, Epilogue::Residual(x.view()), to, rounded);
        let norm = layer.output_norm.with_eps(eps, hidden);
        layer_norm(self.execution.instruction_set, norm, &mut attended.view_mut());
    }

    /// Computes x = LN(a + activation(a·W₁ᵀ + b₁)·W₂ᵀ + b₂) for a = attended.
    fn feed_forward(&mut self, layer: &Layer) {
        let EncoderConfig { hidden, intermediate, activation, eps, .. } = self.encoder.config;
        let EncoderScratch { x, attended, inner, rounded, .. } = &mut *self.scratch;
        let norm = layer.outer_norm.with_eps(eps, hidden);
        for part in tiles(self.rows, FEED_FORWARD_ROWS) {
            let a = attended.view().rows(part.clone());
            let to = inner.reshape(part.len(), intermediate).view_mut();
            linear(self.execution, a, &layer.inner, Epilogue::Activation(activation), to, rounded);
            let mut x = x.view_mut();
            let to = x.rows(part.clone());
            linear(self.execution, inner.view(), &layer.outer, Epilogue::Residual(a), to, rounded);
            layer_norm(self.execution.instruction_set, norm, &mut x.rows(part));
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
