//! The encoder: embeddings and layers over the tokens of many sequences, shared out among threads.
//!
//! Sequences are put together to tasks of a few hundred rows, each of which goes through all layers on one thread: there is
//! no barrier, and what a layer leaves is still in the cache when the next takes it. Where there are fewer tasks than
//! threads, one task after the other is done by all threads, which share the panels of each product.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;

use rayon::ThreadPool;
use wordpiece_parallel::map_with;

use crate::activation::Activation;
use crate::arch::InstructionSet;
use crate::attention::{self, Distances, Inputs, Weights};
use crate::embeddings::sum_rows;
use crate::gemm::{Packed, Then, linear, tiles};
use crate::matrix::{HalfRow, Matrix, PANEL, Row, panels};
use crate::norm::{Norm, layer_norm};
use crate::numbers::Numbers;
use crate::pooling::{Pooling, pool};

/// Rows of a task: enough that reading the weights costs little beside using them, few enough that a task's activations
/// stay in the second-level cache.
const TASK_ROWS: usize = 192;

/// Rows that go through both halves of the feed-forward network at a time, so that what is between stays in the cache.
const FEED_ROWS: usize = 56;

/// The sizes of an encoder.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// H.
    pub hidden: usize,
    /// E, width of the embedding tables.
    pub embedding: usize,
    /// N.
    pub heads: usize,
    /// F.
    pub intermediate: usize,
    /// Between the halves of the feed-forward network.
    pub activation: Activation,
    /// ε of the layer norms.
    pub eps: f32,
}

/// γ and β of a layer norm, or bias alone, by panels.
pub fn padded(x: &[f32]) -> Vec<Row> {
    x.chunks(PANEL)
        .map(|x| {
            let mut row = Row::ZERO;
            row.0[..x.len()].copy_from_slice(x);
            row
        })
        .collect()
}

/// A dense layer.
pub struct Dense {
    weights: Packed,
    bias: Vec<Row>,
}

impl Dense {
    /// Packs dense layers with the same input, each a weight [N, K] and a bias [N], to be computed as one; with `bf16` the
    /// products are those of numbers rounded to bfloat16.
    pub fn new(layers: &[(Numbers<'_>, &[f32])], k: usize, bf16: bool) -> Dense {
        let weights: Vec<Numbers<'_>> = layers.iter().map(|layer| layer.0).collect();
        let weights = if bf16 { Packed::pairs(&weights, k) } else { Packed::new(&weights, k) };
        Dense { weights, bias: layers.iter().flat_map(|layer| padded(layer.1)).collect() }
    }

    /// The bias of the layer whose outputs begin with panel `first`; `n` is how many there are.
    pub fn bias(&self, first: usize, n: usize) -> Vec<f32> {
        self.bias[first..].iter().flat_map(|row| row.0).take(n).collect()
    }

    /// The packed weights.
    pub fn weights(&self) -> &Packed {
        &self.weights
    }
}

/// γ and β of a layer norm.
pub struct Affine {
    weight: Vec<Row>,
    bias: Vec<Row>,
}

impl Affine {
    /// From γ and β as they are stored.
    pub fn new(weight: &[f32], bias: &[f32]) -> Affine {
        Affine { weight: padded(weight), bias: padded(bias) }
    }

    /// γ and β as they were.
    pub fn parts(&self, columns: usize) -> [Vec<f32>; 2] {
        [&self.weight, &self.bias].map(|rows| rows.iter().flat_map(|row| row.0).take(columns).collect())
    }

    fn norm(&self, config: &Config, columns: usize) -> Norm<'_> {
        Norm { weight: &self.weight, bias: &self.bias, eps: config.eps, columns }
    }
}

/// The weights of one layer.
pub struct Layer {
    /// Query, key and value, [3H, H].
    pub qkv: Dense,
    /// What follows attention, [H, H].
    pub output: Dense,
    /// And its norm.
    pub output_norm: Affine,
    /// The first half of the feed-forward network, [F, H].
    pub inner: Dense,
    /// The second, [H, F].
    pub outer: Dense,
    /// And its norm.
    pub outer_norm: Affine,
}

/// A bias by distance, for MPNet.
pub struct DistanceBias {
    /// For each head, the numbers for key − query from −`most` to `most`.
    pub bias: Vec<f32>,
    /// The greatest distance.
    pub most: usize,
}

/// The weights of an encoder, all but the embedding tables.
pub struct Encoder {
    /// Sizes.
    pub config: Config,
    /// The instructions to compute with.
    pub path: InstructionSet,
    /// The norm of the embeddings.
    pub embedding_norm: Affine,
    /// The dense layer from E to H, where there is one.
    pub projection: Option<Dense>,
    /// The layers in the order in which they are run; some may be the same.
    pub layers: Vec<Arc<Layer>>,
    /// MPNet's bias.
    pub distances: Option<DistanceBias>,
    /// Memory that earlier calls have left.
    pub spare: Spare,
}

/// The embedding tables, each with rows of E numbers.
#[derive(Clone, Copy)]
pub struct Tables<'a> {
    /// Words; or, in place of them, the vectors of all tokens one after the other.
    pub words: Numbers<'a>,
    /// Token types, where there are.
    pub types: Option<Numbers<'a>>,
    /// Positions.
    pub positions: Numbers<'a>,
}

/// The tokens of all sequences, one after the other.
#[derive(Clone, Copy)]
pub struct Tokens<'a> {
    /// Rows of the table of words.
    pub ids: &'a [u32],
    /// Rows of the table of types; empty for 0.
    pub types: &'a [u32],
    /// Rows of the table of positions; empty for each token's place in its sequence.
    pub positions: &'a [u32],
    /// Where each token stands in its sequence; empty for one after the other.
    pub places: &'a [u32],
}

/// One sequence, and what is wanted of it.
pub struct Sequence<'a> {
    /// Its tokens.
    pub tokens: Range<usize>,
    /// How many of them, from the first on, may be attended to.
    pub keys: usize,
    /// Hidden states [length, H] with their number, 0 for the embeddings; written at the places of the tokens.
    pub states: Vec<(usize, &'a mut [f32])>,
    /// The attention weights of each layer, [N, length, length]; empty or as many as layers. Zero from the start.
    pub attentions: Vec<&'a mut [f32]>,
    /// Places in the sequence: tokens there are, and others.
    pub length: usize,
    /// One vector a mode, [modes, H], over the tokens that may be attended to.
    pub pooled: Option<Pooled<'a>>,
}

/// How to pool, and where to.
pub struct Pooled<'a> {
    /// The ways, side by side.
    pub modes: &'a [Pooling],
    /// How many tokens at the start are left out.
    pub skip: usize,
    /// [modes, H].
    pub to: &'a mut [f32],
}

/// Memory that a task needs, kept for the next.
#[derive(Default)]
struct Scratch {
    embedded: Matrix,
    x: Matrix,
    qkv: Matrix,
    context: Matrix,
    mixed: Matrix,
    inner: Matrix,
    rounded: Vec<HalfRow>,
    attention: attention::Scratch,
    line: Vec<f32>,
    places: Vec<u32>,
}

/// The scratch memory of earlier calls.
///
/// It is only ever tried to lock: who finds it locked, by another thread or by one that a fork has left behind, does
/// without.
#[derive(Default)]
pub struct Spare(Mutex<Vec<Scratch>>);

/// How much is kept: the scratch memory of so many threads.
const MOST_SPARE: usize = 16;

impl Spare {
    fn lend(&self) -> Lent<'_> {
        let scratch = self.0.try_lock().ok().and_then(|mut kept| kept.pop()).unwrap_or_default();
        Lent { scratch, spare: self }
    }
}

/// Scratch memory, given back in the end.
struct Lent<'a> {
    scratch: Scratch,
    spare: &'a Spare,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Ok(mut kept) = self.spare.0.try_lock()
            && kept.len() < MOST_SPARE
        {
            kept.push(std::mem::take(&mut self.scratch));
        }
    }
}

impl Encoder {
    /// Runs the encoder over sequences; the calling thread and those of `team` do it.
    ///
    /// # Panics
    ///
    /// If an id is outside its table, or the shapes do not agree.
    pub fn run(&self, tables: Tables<'_>, tokens: Tokens<'_>, sequences: Vec<Sequence<'_>>, team: Option<&ThreadPool>) {
        let threads = team.map_or(1, |pool| pool.current_num_threads() + 1);
        let rows: usize = sequences.iter().map(|s| s.tokens.len()).sum();
        let mut tasks = share_out(sequences, rows, threads);
        if tasks.len() < threads {
            let mut lent = self.spare.lend();
            for task in tasks {
                self.run_task(tables, tokens, task, &mut lent.scratch, team);
            }
            return;
        }
        // The longest first, so that at the end all threads are done at about the same time.
        tasks.sort_by_key(|task| Reverse(rows_of(task)));
        let work = |lent: &mut Lent<'_>, task| self.run_task(tables, tokens, task, &mut lent.scratch, None);
        map_with(tasks, team, || self.spare.lend(), work);
    }

    fn run_task(
        &self,
        tables: Tables<'_>,
        tokens: Tokens<'_>,
        mut task: Vec<Sequence<'_>>,
        scratch: &mut Scratch,
        team: Option<&ThreadPool>,
    ) {
        let Config { hidden, intermediate, .. } = self.config;
        let rows = rows_of(&task);
        self.embed(tables, tokens, &task, scratch, team);
        self.keep_state(0, &mut task, scratch);
        for (index, layer) in self.layers.iter().enumerate() {
            let Scratch { x, qkv, context, mixed, inner, rounded, attention, places, .. } = scratch;
            linear(
                self.path,
                x.view(),
                &layer.qkv.weights,
                &layer.qkv.bias,
                Then::Bias,
                qkv.reshape(rows, 3 * panels(hidden) * PANEL).view_mut(),
                rounded,
                team,
            );
            // Padding columns of heads that do not fill panels stay as they are: the first time they are zero.
            context.reshape(rows, hidden);
            let mut start = 0;
            for sequence in &mut task {
                let all = start..start + sequence.tokens.len();
                start = all.end;
                let width = panels(hidden);
                let part = |n: usize| qkv.view().panels(n * width..(n + 1) * width);
                let keys = all.start..all.start + sequence.keys;
                let inputs = Inputs {
                    queries: part(0).rows(all.clone()),
                    keys: part(1).rows(keys.clone()),
                    values: part(2).rows(keys),
                    heads: self.config.heads,
                    size: hidden / self.config.heads,
                    places: &places[all.clone()],
                    distances: self.distances.as_ref().map(|d| Distances { bias: &d.bias, most: d.most }),
                };
                let length = sequence.length;
                let weights = sequence.attentions.get_mut(index).map(|to| Weights { to, length });
                let mut context = context.view_mut();
                attention::attention(self.path, inputs, attention, context.rows(all), weights, team);
            }
            let norm = layer.output_norm.norm(&self.config, hidden);
            let then = Then::Residual(x.view());
            let to = mixed.reshape(rows, hidden).view_mut();
            linear(self.path, context.view(), &layer.output.weights, &layer.output.bias, then, to, rounded, team);
            layer_norm(self.path, norm, &mut mixed.view_mut());
            let norm = layer.outer_norm.norm(&self.config, hidden);
            for part in tiles(rows, FEED_ROWS) {
                let a = mixed.view().rows(part.clone());
                let then = Then::Activation(self.config.activation);
                let to = inner.reshape(part.len(), intermediate).view_mut();
                linear(self.path, a, &layer.inner.weights, &layer.inner.bias, then, to, rounded, team);
                let mut x = x.view_mut();
                let to = x.rows(part.clone());
                let then = Then::Residual(a);
                linear(self.path, inner.view(), &layer.outer.weights, &layer.outer.bias, then, to, rounded, team);
                layer_norm(self.path, norm, &mut x.rows(part));
            }
            self.keep_state(index + 1, &mut task, scratch);
        }
        let mut start = 0;
        for sequence in task {
            if let Some(pooled) = sequence.pooled {
                let rows = scratch.x.view().rows(start..start + sequence.keys);
                for (mode, to) in pooled.modes.iter().zip(pooled.to.chunks_mut(hidden)) {
                    pool(*mode, rows, pooled.skip, hidden, to);
                }
            }
            start += sequence.tokens.len();
        }
    }

    /// LN(word + type + position), and the projection where there is one.
    fn embed(
        &self,
        tables: Tables<'_>,
        tokens: Tokens<'_>,
        task: &[Sequence<'_>],
        scratch: &mut Scratch,
        team: Option<&ThreadPool>,
    ) {
        let Config { hidden, embedding, .. } = self.config;
        let rows = rows_of(task);
        let Scratch { embedded, x, rounded, line, places, .. } = scratch;
        line.resize(2 * embedding, 0.0);
        places.clear();
        let to = if self.projection.is_some() { &mut *embedded } else { &mut *x };
        let mut out = to.reshape(rows, embedding).view_mut();
        for sequence in task {
            for (i, token) in sequence.tokens.clone().enumerate() {
                let of = |column: &[u32], default: usize| column.get(token).map_or(default, |n| *n as usize);
                let mut parts = [(tables.words, tokens.ids[token] as usize); 3];
                let mut count = 1;
                if let Some(types) = tables.types {
                    parts[count] = (types, of(tokens.types, 0));
                    count += 1;
                }
                parts[count] = (tables.positions, of(tokens.positions, i));
                sum_rows(&parts[..=count], embedding, line, places.len(), &mut out);
                places.push(of(tokens.places, i) as u32);
            }
        }
        layer_norm(self.path, self.embedding_norm.norm(&self.config, embedding), &mut out);
        if let Some(projection) = &self.projection {
            let to = x.reshape(rows, hidden).view_mut();
            linear(self.path, embedded.view(), &projection.weights, &projection.bias, Then::Bias, to, rounded, team);
        }
    }

    /// Copies a hidden state to where it is wanted.
    fn keep_state(&self, index: usize, task: &mut [Sequence<'_>], scratch: &Scratch) {
        let mut start = 0;
        for sequence in task {
            for (_, to) in sequence.states.iter_mut().filter(|state| state.0 == index) {
                for row in start..start + sequence.tokens.len() {
                    let place = scratch.places[row] as usize;
                    scratch.x.copy_row(row, &mut to[place * self.config.hidden..][..self.config.hidden]);
                }
            }
            start += sequence.tokens.len();
        }
    }
}

fn rows_of(task: &[Sequence<'_>]) -> usize {
    task.iter().map(|sequence| sequence.tokens.len()).sum()
}

/// Puts sequences together to tasks.
fn share_out<'a>(sequences: Vec<Sequence<'a>>, rows: usize, threads: usize) -> Vec<Vec<Sequence<'a>>> {
    // A few tasks a thread, so that they can be shared out evenly, where that leaves enough rows to a task.
    let wanted = rows.div_ceil(4 * threads).clamp(TASK_ROWS / 3, TASK_ROWS);
    let mut tasks: Vec<Vec<Sequence<'a>>> = Vec::new();
    let mut size = usize::MAX;
    for sequence in sequences {
        if size.saturating_add(sequence.tokens.len()) > wanted {
            tasks.push(Vec::new());
            size = 0;
        }
        size += sequence.tokens.len();
        tasks.last_mut().expect("one was pushed").push(sequence);
    }
    tasks
}
