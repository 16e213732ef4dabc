//! Sparse vectors of texts over the vocabulary: a masked-language head, pooled over the tokens of each text (SPLADE).
//!
//! A text of S tokens has S·V logits, of which only a sum or a maximum for each entry of the vocabulary is kept. The logits
//! are computed for one block of the vocabulary at a time and pooled while the block is in the cache; nothing of size S·V
//! exists. The vectors of a few texts are dense while they are computed, and leave as rows of a compressed matrix.
//!
//! A text has the same bits whichever others are computed with it and however many threads there are: the logits of a token
//! depend on that token only, and the tokens of a text are pooled from the first to the last.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use wordpiece_parallel::map_with;

use crate::activation::Activation;
use crate::arch::{self, InstructionSet, Kernel, Simd};
use crate::encoder::Norm;
use crate::execution::Execution;
use crate::gemm::{ConvertedInputs, Dense, Epilogue, Products, linear, linear_panels};
use crate::matrix::{Matrix, PANEL, Row, View, panels};
use crate::numbers::Numbers;

/// Entries of the vocabulary whose logits are computed before they are pooled: the block of a task's tokens and its weights
/// stay in the second-level cache.
const BLOCK: usize = 8 * PANEL;

/// The most tokens of a task, unless one text has more, as in the encoder.
const TASK_TOKENS: usize = 192;

/// The most texts of a task: their vectors are dense while it runs, 8 MB for a vocabulary of 30,522.
const TASK_TEXTS: usize = 64;

/// How the values of a text's tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenPooling {
    /// The greatest.
    Max,
    /// The sum, from the first token to the last.
    Sum,
}

/// How logits become the vector of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SparseOptions {
    /// How the values of the tokens are combined.
    pub pooling: TokenPooling,
    /// Whether the logarithm is taken twice: ln(1 + ln(1 + max(z, 0))).
    pub twice: bool,
    /// The most values of a vector that are kept, the greatest; of equal values the ones of the lower entries. `None`
    /// keeps all.
    pub max_values: Option<usize>,
}

/// Rows of a sparse matrix: only numbers above 0 are stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SparseRows {
    /// How many numbers each row has.
    pub counts: Vec<usize>,
    /// The column of each number, rising in each row.
    pub columns: Vec<u32>,
    /// The numbers.
    pub values: Vec<f32>,
}

impl SparseRows {
    /// Appends the rows of another matrix.
    fn append(&mut self, other: SparseRows) {
        self.counts.extend(other.counts);
        self.columns.extend(other.columns);
        self.values.extend(other.values);
    }
}

/// A masked-language head: logits = decoder(norm(activation(dense(x)))).
pub struct VocabularyHead {
    dense: Arc<Dense>,
    activation: Activation,
    norm: Norm,
    decoder: Arc<Dense>,
    /// H, the width of the token vectors.
    hidden: usize,
    /// E, the width of the decoder's input.
    width: usize,
    /// V, the number of entries of the vocabulary.
    vocabulary: usize,
}

/// A dense layer: its weight [N, K] and its bias `[N]`.
pub type DenseParts<'a> = (Numbers<'a>, &'a [f32]);

impl VocabularyHead {
    /// Packs a head: the dense layer [E, H] with its activation, the norm over E columns, and the decoder [V, E].
    ///
    /// # Panics
    ///
    /// If the shapes do not agree, or there are no entries.
    ///
    /// # Examples
    ///
    /// Two tokens of one text, a vocabulary of 3, and a head that passes its normalized input on:
    ///
    /// ```
    /// use wordpiece_kernels::activation::Activation;
    /// use wordpiece_kernels::encoder::{LayerNormWeights, Norm};
    /// use wordpiece_kernels::gemm::Products;
    /// use wordpiece_kernels::norm::NormKind;
    /// use wordpiece_kernels::numbers::Numbers;
    /// use wordpiece_kernels::sparse::{SparseOptions, TokenPooling, VocabularyHead};
    /// use wordpiece_kernels::{Execution, InstructionSet};
    ///
    /// let identity = [1.0, 0.0, 0.0, 1.0];
    /// let weights = LayerNormWeights::new(&[1.0; 2], &[0.0; 2]);
    /// let norm = Norm { weights, eps: 0.0, columns: 2, kind: NormKind::Layer };
    /// let decoder = [1.0, 0.0, 0.0, 1.0, -1.0, -1.0]; // [3, 2]
    /// let head = VocabularyHead::new(
    ///     (Numbers::F32(&identity), &[0.0; 2]),
    ///     Activation::Identity,
    ///     norm,
    ///     (Numbers::F32(&decoder), &[0.0; 3]),
    ///     Products::Float32,
    /// );
    /// let options = SparseOptions { pooling: TokenPooling::Max, twice: false, max_values: None };
    /// let execution = Execution::on_this_thread(InstructionSet::detect());
    /// let rows = head.encode(execution, &[3.0, 1.0, 0.0, 2.0], &[0, 2], options); // normalized: 1, −1 and −1, 1
    /// assert_eq!((&rows.counts[..], &rows.columns[..]), (&[2][..], &[0, 1][..])); // entry 2 is 0 for both tokens
    /// assert!(rows.values.iter().all(|value| (value - 2f32.ln()).abs() < 1e-6));
    /// ```
    pub fn new(
        dense: DenseParts<'_>,
        activation: Activation,
        norm: Norm,
        decoder: DenseParts<'_>,
        products: Products,
    ) -> VocabularyHead {
        let (width, vocabulary) = (dense.1.len(), decoder.1.len());
        assert!(width > 0 && vocabulary > 0 && decoder.0.len() == vocabulary * width, "a decoder [V, E]");
        let hidden = dense.0.len() / width;
        let [dense, decoder] =
            [(dense, hidden), (decoder, width)].map(|(parts, k)| Arc::new(Dense::new(&[parts], k, products)));
        VocabularyHead::from_layers(dense, activation, norm, decoder, vocabulary)
    }

    /// Combines packed layers, whose number types may differ: the dense layer [E, H] with its activation, the norm over E
    /// columns, and the decoder [V, E], whose number of outputs is `vocabulary`.
    ///
    /// # Panics
    ///
    /// If the shapes do not agree, or there are no entries.
    pub fn from_layers(
        dense: Arc<Dense>,
        activation: Activation,
        norm: Norm,
        decoder: Arc<Dense>,
        vocabulary: usize,
    ) -> VocabularyHead {
        let (hidden, width) = (dense.weights().k(), decoder.weights().k());
        assert!(vocabulary > 0 && panels(vocabulary) == decoder.weights().panels(), "a decoder [V, E]");
        assert!(panels(width) == dense.weights().panels(), "the decoder has the outputs of the dense layer as inputs");
        VocabularyHead { dense, activation, norm, decoder, hidden, width, vocabulary }
    }

    /// Returns V, the number of entries of the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Returns the sparse vectors of texts.
    ///
    /// `x` are the vectors of all tokens [tokens, H], row by row; the tokens of text i are `offsets[i]..offsets[i + 1]`. A
    /// text without tokens has no values.
    ///
    /// # Panics
    ///
    /// If the offsets fall, or `x` has fewer tokens.
    pub fn encode(&self, execution: Execution, x: &[f32], offsets: &[usize], options: SparseOptions) -> SparseRows {
        let tasks = group_texts(offsets);
        let threads = execution.pool.map_or(1, |pool| pool.count() + 1);
        let mut rows = SparseRows::default();
        if tasks.len() < threads {
            let mut scratch = Scratch::default();
            for texts in tasks {
                rows.append(self.run(execution, x, &offsets[texts.start..=texts.end], options, &mut scratch));
            }
            return rows;
        }
        let alone = Execution { pool: None, ..execution };
        let parts = map_with(tasks, execution.pool, Scratch::default, |scratch, texts| {
            self.run(alone, x, &offsets[texts.start..=texts.end], options, scratch)
        });
        parts.into_iter().for_each(|part| rows.append(part));
        rows
    }

    /// Computes the vectors of the texts of a task; with threads, these share the blocks of the vocabulary.
    fn run(
        &self,
        execution: Execution,
        x: &[f32],
        offsets: &[usize],
        options: SparseOptions,
        scratch: &mut Scratch,
    ) -> SparseRows {
        let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
        let (texts, tokens) = (offsets.len() - 1, last - first);
        if tokens == 0 {
            return SparseRows { counts: vec![0; texts], ..SparseRows::default() };
        }
        let Scratch { x: input, hidden, converted, converted_hidden, pooled } = scratch;
        input.fill_rows(tokens, self.hidden, &x[first * self.hidden..last * self.hidden]);
        let to = hidden.reshape(tokens, self.width).view_mut();
        linear(execution, input.view(), &self.dense, Epilogue::Activation(self.activation), to, converted);
        self.norm.apply(execution.instruction_set, &mut hidden.view_mut());

        let ends: Vec<usize> = offsets[1..].iter().map(|end| end - first).collect();
        // Converted once for all blocks: rounding or quantizing it for each would cost as much as half of its product.
        let hidden = converted_hidden.convert(execution, hidden.view(), self.decoder.weights());
        let mut out = pooled.reshape(texts, self.vocabulary).view_mut();
        let mut each_panel = out.panels(0..panels(self.vocabulary)).each_panel();
        let blocks: Vec<(usize, &mut [&mut [Row]])> = each_panel.chunks_mut(panels(BLOCK)).enumerate().collect();
        let alone = Execution { pool: None, ..execution };
        map_with(blocks, execution.pool, Matrix::default, |logits, (block, to)| {
            let first = block * panels(BLOCK);
            let mut logits = logits.reshape(tokens, to.len() * PANEL).view_mut();
            let epilogue = match options.pooling {
                TokenPooling::Max => Epilogue::Bias,
                TokenPooling::Sum => Epilogue::Activation(Activation::Relu),
            };
            let range = first..first + to.len();
            linear_panels(alone, hidden, &self.decoder, range, epilogue, logits.rows(0..tokens));
            for (panel, to) in to.iter_mut().enumerate() {
                let rows = logits.panel(panel);
                arch::run(execution.instruction_set, PoolPanel { rows, ends: &ends, options, to });
            }
        });
        compress(execution.instruction_set, pooled, texts, self.vocabulary, options.max_values)
    }
}

/// The intermediate results of a task. Buffers only grow.
#[derive(Default)]
struct Scratch {
    /// The token vectors [tokens, H].
    x: Matrix,
    /// The input of the decoder [tokens, E].
    hidden: Matrix,
    /// The inputs of the dense layer and of the decoder, as they are multiplied.
    converted: ConvertedInputs,
    converted_hidden: ConvertedInputs,
    /// The vectors [texts, V].
    pooled: Matrix,
}

/// Groups consecutive texts into tasks of bounded size.
fn group_texts(offsets: &[usize]) -> Vec<Range<usize>> {
    let mut tasks = Vec::new();
    let mut start = 0;
    for text in 0..offsets.len().saturating_sub(1) {
        if text > start && (offsets[text + 1] - offsets[start] > TASK_TOKENS || text - start == TASK_TEXTS) {
            tasks.push(start..text);
            start = text;
        }
    }
    if offsets.len() > 1 {
        tasks.push(start..offsets.len() - 1);
    }
    tasks
}

/// Pools the logits of one panel: a row for each token in, a row for each text out.
struct PoolPanel<'a> {
    /// The logits, or for a sum their positive part.
    rows: &'a mut [Row],
    /// Where the tokens of each text end.
    ends: &'a [usize],
    options: SparseOptions,
    to: &'a mut [Row],
}

impl Kernel for PoolPanel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let PoolPanel { rows, ends, options, to } = self;
        if options.pooling == TokenPooling::Sum {
            logarithms(rows, options.twice);
        }
        let mut start = 0;
        for (end, to) in ends.iter().zip(to.iter_mut()) {
            // Both begin with 0: the maximum is the maximum of the positive parts.
            *to = Row::ZERO;
            for row in &rows[start..*end] {
                for at in (0..PANEL).step_by(S::LANES) {
                    let (x, y) = (simd.load(row, at), simd.load(to, at));
                    let pooled = match options.pooling {
                        // NaN wins, as in NumPy.
                        TokenPooling::Max => simd.max_magnitude(simd.max(simd.splat(0.0), x), y),
                        TokenPooling::Sum => simd.add(x, y),
                    };
                    simd.store(to, at, pooled);
                }
            }
            start = *end;
        }
        if options.pooling == TokenPooling::Max {
            // The logarithm rises, so it is taken once for each text rather than for each token.
            logarithms(to, options.twice);
        }
    }
}

/// Computes ln(1 + x) for every x ≥ 0, in place, once or twice.
#[inline(always)]
fn logarithms(rows: &mut [Row], twice: bool) {
    for row in rows {
        // Loops rather than `map`, which is compiled without the features of the instruction set.
        for x in &mut row.0 {
            *x = ln_1_plus(*x);
        }
        if twice {
            for x in &mut row.0 {
                *x = ln_1_plus(*x);
            }
        }
    }
}

/// Returns ln(1 + x) for x ≥ 0, within 2 units in the last place.
///
/// Plain arithmetic that the compiler vectorizes; it has the same bits on every instruction set.
#[inline(always)]
fn ln_1_plus(x: f32) -> f32 {
    /// The bits of √½: numbers are divided by the power of two that brings them to √½…√2.
    const ROOT_HALF: u32 = 0x3f35_04f3;
    const ONE: u32 = 0x3f80_0000;
    let u = 1.0 + x;
    // What rounding 1 + x lost, as a part of u.
    let lost = (x - (u - 1.0)) / u;
    let bits = u.to_bits().wrapping_add(ONE - ROOT_HALF);
    let exponent = (bits >> 23) as i32 - 127;
    let m = f32::from_bits((bits & 0x007f_ffff) + ROOT_HALF);
    // ln m = 2·artanh(s) = 2s·(1 + s²/3 + s⁴/5 + …) for s = (m − 1)/(m + 1), where s² is below 0.03.
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let series = z * (2.0 / 3.0 + z * (2.0 / 5.0 + z * (2.0 / 7.0 + z * (2.0 / 9.0))));
    let y = exponent as f32 * std::f32::consts::LN_2 + (lost + (s * series + 2.0 * s));
    if x > f32::MAX { x } else { y }
}

/// Returns the numbers above 0 of a matrix [texts, V], and NaN, or of each row only the greatest; NaN is the greatest.
fn compress(
    instruction_set: InstructionSet,
    pooled: &Matrix,
    texts: usize,
    vocabulary: usize,
    most: Option<usize>,
) -> SparseRows {
    let mut rows = SparseRows::default();
    let mut order: Vec<(f32, u32)> = Vec::new();
    for text in 0..texts {
        let start = rows.values.len();
        let select = Select { pooled: pooled.view(), text, vocabulary, rows: &mut rows };
        arch::run(instruction_set, select);
        if let Some(most) = most
            && rows.values.len() - start > most
        {
            keep_greatest(&mut rows, start, most, &mut order);
        }
        rows.counts.push(rows.values.len() - start);
    }
    rows
}

/// Appends the numbers above 0 of one row to a sparse matrix, and NaN.
struct Select<'a> {
    pooled: View<'a>,
    text: usize,
    vocabulary: usize,
    rows: &'a mut SparseRows,
}

impl Kernel for Select<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for panel in 0..panels(self.vocabulary) {
            let row = &self.pooled.panel(panel)[self.text];
            let mut greatest = simd.splat(0.0);
            for at in (0..PANEL).step_by(S::LANES) {
                greatest = simd.max_magnitude(greatest, simd.load(row, at));
            }
            if simd.greatest_magnitude(greatest) != 0.0 {
                let first = panel * PANEL;
                for (i, x) in row.0[..PANEL.min(self.vocabulary - first)].iter().enumerate() {
                    if *x != 0.0 {
                        self.rows.columns.push((first + i) as u32);
                        self.rows.values.push(*x);
                    }
                }
            }
        }
    }
}

/// Keeps the `most` greatest numbers from `start` on, in the order of their columns; of equal ones the first.
fn keep_greatest(rows: &mut SparseRows, start: usize, most: usize, order: &mut Vec<(f32, u32)>) {
    order.clear();
    order.extend(rows.values[start..].iter().copied().zip(rows.columns[start..].iter().copied()));
    if most > 0 {
        order.select_nth_unstable_by(most - 1, |x, y| match y.0.abs().total_cmp(&x.0.abs()) {
            Ordering::Equal => x.1.cmp(&y.1),
            unequal => unequal,
        });
    }
    order.truncate(most);
    order.sort_unstable_by_key(|entry| entry.1);
    rows.columns.truncate(start);
    rows.values.truncate(start);
    rows.columns.extend(order.iter().map(|entry| entry.1));
    rows.values.extend(order.iter().map(|entry| entry.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_within_2_units_of_its_definition() {
        let mut x = 1e-30_f32;
        while x < 1e30 {
            let (found, defined) = (f64::from(ln_1_plus(x)), f64::from(x).ln_1p());
            assert!((found - defined).abs() <= 2.0 * f64::from(f32::EPSILON) * defined, "{x}: {found}, not {defined}");
            x *= if cfg!(miri) { 1.37 } else { 1.000_37 };
        }
        assert_eq!(ln_1_plus(0.0), 0.0);
        assert_eq!(ln_1_plus(f32::INFINITY), f32::INFINITY);
    }

    #[test]
    fn texts_are_grouped_in_order_and_each_once() {
        let lengths = [0, 500, 3, 3, 0, 189, 1, 1, 192, 193, 2].into_iter().chain([2; 200]);
        let offsets: Vec<usize> = lengths
            .scan(0, |sum, n| {
                *sum += n;
                Some(*sum)
            })
            .collect();
        let tasks = group_texts(&offsets);
        assert_eq!(tasks.iter().flat_map(Clone::clone).collect::<Vec<_>>(), (0..offsets.len() - 1).collect::<Vec<_>>());
        assert!(tasks.iter().all(|task| {
            let tokens = offsets[task.end] - offsets[task.start];
            task.len() <= TASK_TEXTS && (tokens <= TASK_TOKENS || task.len() == 1)
        }));
    }

    #[test]
    fn the_greatest_are_kept_in_the_order_of_their_columns() {
        let mut rows =
            SparseRows { counts: vec![1], columns: vec![9, 1, 3, 5, 8], values: vec![9.0, 2.0, 7.0, 2.0, 3.0] };
        keep_greatest(&mut rows, 1, 3, &mut Vec::new());
        assert_eq!((rows.columns, rows.values), (vec![9, 1, 3, 8], vec![9.0, 2.0, 7.0, 3.0]));
    }
}
