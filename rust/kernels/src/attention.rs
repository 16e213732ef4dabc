//! Self-attention within one sequence: softmax(q·kᵀ/√d + bias)·v, head by head; the scores may have relative terms
//! ([`disentangled`](crate::disentangled)).
//!
//! The scores of a tile of queries stay in the first-level cache until they are used; the matrix of all scores is never
//! stored. A row of scores is complete before its softmax, so nothing is rescaled, as it would be in a streaming softmax.
//!
//! In attention with a window, a tile of queries is multiplied with the panels of keys that one of them sees, so that a
//! sequence costs rows·(2·window + tile) scores and not rows².
//!
//! Both products are float32, or multiply numbers rounded to bfloat16; the softmax between them is float32.
//!
//! Cost: 4·rows·keys·d operations a head without a window. The scratch buffers hold the keys of one head, transposed, and the scores of a
//! tile.

use std::ops::Range;

use wordpiece_parallel::{checkpoint, map_with};

use crate::arch::{self, Kernel, MAX_TILE_ROWS, Simd, TileUnit};
use crate::attention_pairs::{MAX_PAIR_ROWS, PairOperands, PairProducts};
use crate::disentangled::{HeadScores, RelativeScores, RelativeScratch};
use crate::execution::Execution;
use crate::matrix::{Matrix, PANEL, Row, View, ViewMut, copy_columns, panels};
use crate::softmax::{softmax, softmax_within};
use crate::tile::{Ahead, BLOCK_PANELS, PAIR_BLOCK_PANELS, Tile, tiles};
use crate::transpose::Transpose;

/// A head can be interrupted after this many queries.
const ROWS_PER_CHECKPOINT: usize = 256;

/// Queries, keys and values of one sequence. Its rows are the tokens that are computed: positions may be missing.
#[derive(Clone, Copy)]
pub struct AttentionInputs<'a> {
    /// The queries of all rows, [rows, H].
    pub queries: View<'a>,
    /// The keys of the rows that may be attended to, which are the first ones, [keys, H].
    pub keys: View<'a>,
    /// The values of the same rows, [keys, H].
    pub values: View<'a>,
    /// The number of heads.
    pub heads: usize,
    /// d, the columns of a head; head h has the columns h·d to (h + 1)·d.
    pub size: usize,
    /// The position of each row in its sequence, `[rows]`; used for relative biases, for the window, and for the order of
    /// attention weights. With a window, the positions of the keys must increase.
    pub positions: &'a [u32],
    /// The greatest distance from a query to a key that it sees, by positions; None if it sees all keys. The context and the
    /// weights of a row that sees no key are 0.
    pub window: Option<usize>,
    /// A bias that depends on the head and on the positions of query and key, which is added to the scores.
    pub relative_bias: Option<ScoreBias<'a>>,
    /// The terms of relative positions that are added to the products of queries and keys. The positions of the keys must
    /// ascend.
    pub relative_scores: Option<RelativeScores<'a>>,
    /// Whether queries, keys, values and the numerators of the softmax are rounded to bfloat16 where they are multiplied.
    pub bfloat16: bool,
}

/// What is added to the scores of a head.
#[derive(Clone, Copy)]
pub enum ScoreBias<'a> {
    /// A number for each distance from query to key.
    Distances(RelativeBias<'a>),
    /// −m·|i − j| for the positions i and j of query and key, with a slope m for each head (Press et al. 2022, ALiBi).
    Slopes(&'a [f32]),
}

/// A bias that depends on the head and on the distance from query to key.
#[derive(Clone, Copy)]
pub struct RelativeBias<'a> {
    /// For each head, the biases of the distances key − query from −`max_distance` to `max_distance`.
    pub bias: &'a [f32],
    /// The greatest distance; no two positions of a sequence may be farther apart.
    pub max_distance: usize,
}

/// The output for the attention weights of one sequence.
pub struct AttentionWeights<'a> {
    /// [heads, length, length], query by key. Must be 0 beforehand: positions without a row are skipped.
    pub to: &'a mut [f32],
    /// The length of the sequence, greater than all positions.
    pub length: usize,
}

/// Scratch buffers of attention, kept from call to call. They only grow.
#[derive(Default)]
pub struct AttentionScratch {
    /// The keys of one head, transposed: panel p has row c for column c of the keys 32p to 32p + 31.
    keys: Vec<Row>,
    /// The scores of a tile, [tile rows, keys] by panels.
    scores: Vec<Row>,
    /// What is multiplied in bfloat16.
    pairs: PairOperands,
    relative: RelativeScratch,
}

/// Computes the context of all heads, side by side, into `out` [rows, H], and on request the attention weights.
///
/// The threads share the heads if a head is a whole number of panels; otherwise the calling thread computes all of them.
///
/// # Panics
///
/// If the shapes do not agree, or a position or distance is out of range.
///
/// # Examples
///
/// Two tokens, one of which may be attended to: the context of both is its value.
///
/// ```
/// use wordpiece_kernels::attention::{AttentionInputs, AttentionScratch, attention};
/// use wordpiece_kernels::{Execution, InstructionSet, Matrix};
///
/// let (mut q, mut k, mut v) = (Matrix::default(), Matrix::default(), Matrix::default());
/// q.fill_rows(2, 2, &[0.1, 0.2, 0.3, 0.4]);
/// k.fill_rows(1, 2, &[1.0, -1.0]);
/// v.fill_rows(1, 2, &[5.0, 7.0]);
/// let inputs = AttentionInputs {
///     queries: q.view(),
///     keys: k.view(),
///     values: v.view(),
///     heads: 1,
///     size: 2,
///     positions: &[0, 1],
///     window: None,
///     relative_bias: None,
///     relative_scores: None,
///     bfloat16: false,
/// };
/// let mut context = Matrix::default();
/// let out = context.reshape(2, 2).view_mut();
/// let execution = Execution::on_this_thread(InstructionSet::detect());
/// attention(execution, inputs, &mut AttentionScratch::default(), out, None);
/// assert_eq!(context.view().panel(0)[1].0[..2], [5.0, 7.0]);
/// ```
pub fn attention(
    execution: Execution,
    inputs: AttentionInputs<'_>,
    scratch: &mut AttentionScratch,
    out: ViewMut<'_>,
    weights: Option<AttentionWeights<'_>>,
) {
    let AttentionInputs { queries, keys, values, heads, size, positions, .. } = inputs;
    assert!(queries.len() == out.len() && queries.len() == positions.len() && keys.len() == values.len());
    assert!(keys.len() <= queries.len() && heads > 0 && size > 0);
    assert!(inputs.window.is_none() || inputs.relative_scores.is_none(), "terms of positions are those of all keys");
    let length = weights.as_ref().map_or(0, |weights| weights.length);
    let each_weights: Vec<Option<&mut [f32]>> = match weights {
        Some(weights) => weights.to.chunks_mut((length * length).max(1)).map(Some).collect(),
        None => (0..heads).map(|_| None).collect(),
    };
    if size.is_multiple_of(PANEL) {
        heads_of_whole_panels(execution, inputs, scratch, out, each_weights, length);
    } else {
        heads_within_panels(execution, inputs, scratch, out, each_weights, length);
    }
}

/// Computes all heads where each is a whole number of panels, which are read and written in place.
fn heads_of_whole_panels(
    execution: Execution,
    inputs: AttentionInputs<'_>,
    scratch: &mut AttentionScratch,
    out: ViewMut<'_>,
    each_weights: Vec<Option<&mut [f32]>>,
    length: usize,
) {
    let AttentionInputs { queries, keys, values, heads, size, .. } = inputs;
    let Execution { instruction_set, tiles: unit, pool } = execution;
    let head_panels = size / PANEL;
    let compute_head =
        |head: usize, scratch: &mut AttentionScratch, mut out: Vec<&mut [Row]>, weights: Option<&mut [f32]>| {
            let columns = head * head_panels..(head + 1) * head_panels;
            let (q, k, v) = (queries.panels(columns.clone()), keys.panels(columns.clone()), values.panels(columns));
            let out = &mut out[..];
            arch::run(instruction_set, AttentionHead { inputs, unit, head, q, k, v, scratch, out, weights, length });
        };
    let mut panels = out.each_panel().into_iter();
    let mut parts = Vec::with_capacity(heads);
    for weights in each_weights {
        parts.push((panels.by_ref().take(head_panels).collect::<Vec<_>>(), weights));
    }
    if pool.is_some() {
        let parts = parts.into_iter().enumerate().collect();
        map_with(parts, pool, AttentionScratch::default, |scratch, (head, (out, weights))| {
            compute_head(head, scratch, out, weights);
        });
    } else {
        for (head, (out, weights)) in parts.into_iter().enumerate() {
            compute_head(head, scratch, out, weights);
        }
    }
}

/// Computes all heads where they do not fill panels: each is copied to separate matrices, one head after the other.
///
/// Models of the usual sizes have heads of 32 or 64 columns, so this need not be fast.
fn heads_within_panels(
    execution: Execution,
    inputs: AttentionInputs<'_>,
    scratch: &mut AttentionScratch,
    mut out: ViewMut<'_>,
    each_weights: Vec<Option<&mut [f32]>>,
    length: usize,
) {
    let AttentionInputs { queries, keys, values, size, .. } = inputs;
    let mut copies: [Matrix; 3] = Default::default();
    let mut context = Matrix::default();
    for (head, weights) in each_weights.into_iter().enumerate() {
        for (copy, from) in copies.iter_mut().zip([queries, keys, values]) {
            copy_columns(from, head * size, copy.reshape(from.len(), size).view_mut(), 0, size);
        }
        let mut columns = context.reshape(queries.len(), size).view_mut().each_panel();
        let [q, k, v] = copies.each_ref().map(Matrix::view);
        let (scratch, out_of_head) = (&mut *scratch, &mut columns[..]);
        let unit = execution.tiles;
        let kernel = AttentionHead { inputs, unit, head, q, k, v, scratch, out: out_of_head, weights, length };
        arch::run(execution.instruction_set, kernel);
        copy_columns(context.view(), 0, out.rows(0..queries.len()), head * size, size);
    }
}

/// One head of attention.
struct AttentionHead<'a, 'o> {
    inputs: AttentionInputs<'a>,
    /// The tile registers that multiply pairs, if the products are in bfloat16.
    unit: Option<TileUnit>,
    /// The number of the head.
    head: usize,
    /// The queries of the head, [rows, d].
    q: View<'a>,
    /// The keys of the head, [keys, d].
    k: View<'a>,
    /// The values of the head, [keys, d].
    v: View<'a>,
    scratch: &'a mut AttentionScratch,
    /// The context of the head [rows, d], by panels.
    out: &'a mut [&'o mut [Row]],
    /// The attention weights of the head [length, length], if they are requested.
    weights: Option<&'a mut [f32]>,
    /// The length of the sequence; 0 if no weights are requested.
    length: usize,
}

/// Some queries of a head, and the keys that one of them sees.
struct QueryTile {
    /// The rows of the queries.
    rows: Range<usize>,
    /// The panels of 32 keys.
    panels: Range<usize>,
    /// The keys in these panels.
    keys: Range<usize>,
}

impl Kernel for AttentionHead<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        const { assert!(S::TILE_ROWS <= MAX_TILE_ROWS) };
        let AttentionInputs { positions, window, bfloat16, .. } = self.inputs;
        let keys = self.k.len();
        let visible = VisibleKeys { window, positions, keys };
        let tile_rows = if bfloat16 { PairProducts::most_rows::<S>(self.unit) } else { S::TILE_ROWS };
        let terms = self.prepare(simd, tile_rows);
        let mut products = None;
        for rows in tiles(self.q.len(), tile_rows) {
            if rows.start % ROWS_PER_CHECKPOINT < rows.len() {
                // It may call a signal handler of Python, which may use the tile registers of this thread.
                products = None;
                checkpoint();
            }
            let panels = visible.panels(rows.clone());
            if panels.is_empty() {
                self.out.iter_mut().for_each(|out| out[rows.clone()].fill(Row::ZERO));
                continue;
            }
            if bfloat16 && products.is_none() {
                products = Some(PairProducts::new(self.unit));
            }
            let tile = QueryTile { rows, keys: panels.start * PANEL..keys.min(panels.end * PANEL), panels };
            self.multiply_keys(simd, &tile, terms.as_ref(), products.as_mut());
            let factors = self.softmax(simd, &tile, &visible);
            self.write_weights(&tile, &factors);
            self.sum_values(simd, &tile, products.as_mut());
            for out in self.out.iter_mut() {
                for (row, factor) in out[tile.rows.clone()].iter_mut().zip(factors) {
                    for at in (0..PANEL).step_by(S::LANES) {
                        simd.store(row, at, simd.mul(simd.load(row, at), simd.splat(factor)));
                    }
                }
            }
        }
    }
}

// The steps of the kernel. Each is inlined into it, where the instructions of `S` are enabled; so none is a closure.
impl<'a> AttentionHead<'a, '_> {
    /// Packs the keys for products with a tile of queries, and computes what the relative terms of all queries are read from.
    #[inline(always)]
    fn prepare<S: Simd>(&mut self, simd: S, tile_rows: usize) -> Option<HeadScores<'a>> {
        let AttentionInputs { size, positions, relative_scores, bfloat16, .. } = self.inputs;
        let AttentionScratch { keys, scores, pairs, relative } = &mut *self.scratch;
        if bfloat16 {
            pairs.pack(simd, self.k, self.v, size);
        } else {
            Transpose { from: self.k, columns: size, to: keys }.run(simd);
        }
        scores.resize((panels(self.k.len()) * tile_rows).max(scores.len()), Row::ZERO);
        let terms = relative_scores?;
        let mut products = if bfloat16 { Some(PairProducts::new(self.unit)) } else { None };
        let (of_head, places) = ((self.head, size), &positions[..self.k.len()]);
        let pairs = products.as_mut().map(|products| (pairs, products));
        HeadScores::new(simd, terms, of_head, positions, places, keys, pairs, tile_rows, relative)
    }

    /// Computes the products of a tile of queries with its keys, and adds the relative terms.
    #[inline(always)]
    fn multiply_keys<S: Simd>(
        &mut self,
        simd: S,
        tile: &QueryTile,
        terms: Option<&HeadScores<'_>>,
        mut products: Option<&mut PairProducts>,
    ) {
        let AttentionInputs { size, positions, .. } = self.inputs;
        let AttentionScratch { keys, scores, pairs, relative } = &mut *self.scratch;
        let (n, q) = (tile.rows.len(), self.q.rows(tile.rows.clone()));
        let scores = &mut scores[..tile.panels.len() * n];
        if let Some(products) = products.as_deref_mut() {
            pairs.scores(simd, products, q, size, tile.panels.clone(), scores.chunks_mut(n));
        } else {
            let keys = &keys[tile.panels.start * size..tile.panels.end * size];
            for (b, out) in keys.chunks(size).zip(scores.chunks_mut(n)) {
                simd.run_tile(Tile::new(q, b, out));
            }
        }
        if let Some(terms) = terms {
            let pairs = products.map(|products| (pairs, products));
            terms.add(simd, (q, &positions[tile.rows.clone()]), pairs, relative, scores, (n, 0..n));
        }
    }

    /// Replaces the scores by the numerators of the softmax, 0 for keys that a query does not see. Returns the reciprocals of
    /// the rows' sums.
    #[inline(always)]
    fn softmax<S: Simd>(&mut self, simd: S, tile: &QueryTile, visible: &VisibleKeys<'_>) -> [f32; MAX_PAIR_ROWS] {
        let AttentionInputs { size, positions, relative_bias, relative_scores, .. } = self.inputs;
        let QueryTile { rows, panels, keys } = tile;
        let n = rows.len();
        let scores = &mut self.scratch.scores[..panels.len() * n];
        let scale = 1.0 / ((size * relative_scores.map_or(1, |relative| relative.count)) as f32).sqrt();
        let queries = &positions[rows.clone()];
        let scale = add_bias(simd, relative_bias, self.head, scale, queries, &positions[keys.clone()], scores, (n, 0));
        let mut factors = [0.0; MAX_PAIR_ROWS];
        if visible.window.is_none() {
            softmax(simd, scores, n, keys.len(), scale, &mut factors);
        } else {
            for (i, (query, factor)) in rows.clone().zip(&mut factors).enumerate() {
                *factor = softmax_within(simd, scores, n, i, visible.columns(query, keys.start), scale);
            }
        }
        factors
    }

    /// Writes the attention weights of a tile, if they are requested.
    #[inline(always)]
    fn write_weights(&mut self, tile: &QueryTile, factors: &[f32]) {
        let Some(weights) = self.weights.as_deref_mut() else { return };
        let (positions, n) = (self.inputs.positions, tile.rows.len());
        for (i, query) in tile.rows.clone().enumerate() {
            let to = &mut weights[positions[query] as usize * self.length..][..self.length];
            for (key, position) in positions[tile.keys.clone()].iter().enumerate() {
                to[*position as usize] = self.scratch.scores[key / PANEL * n + i].0[key % PANEL] * factors[i];
            }
        }
    }

    /// Multiplies the numerators of a tile with the values of its keys.
    #[inline(always)]
    fn sum_values<S: Simd>(&mut self, simd: S, tile: &QueryTile, mut products: Option<&mut PairProducts>) {
        let AttentionScratch { scores, pairs, .. } = &mut *self.scratch;
        let (n, key_panels) = (tile.rows.len(), panels(self.k.len()));
        let numerators = View::new(&scores[..tile.panels.len() * n], n);
        let mut part = [Row::ZERO; MAX_PAIR_ROWS];
        // Blocks as large as the tile's, so that keys that are not seen change no bit.
        let panels_of_block = match (self.inputs.window, &products) {
            (None, _) => key_panels,
            (Some(_), None) => BLOCK_PANELS,
            (Some(_), Some(_)) => PAIR_BLOCK_PANELS,
        };
        for block in blocks(tile.panels.clone(), panels_of_block) {
            // The sums of the first block are written, and the sums of the others are added to them.
            let is_first = block.start == tile.panels.start;
            let of_block = numerators.panels(block.start - tile.panels.start..block.end - tile.panels.start);
            let of_keys = block.start * PANEL..tile.keys.end.min(block.end * PANEL);
            if let Some(products) = products.as_deref_mut() {
                pairs.round_numerators(simd, products, of_block, of_keys.len());
            }
            for (p, out) in self.out.iter_mut().enumerate() {
                let out = &mut out[tile.rows.clone()];
                let Some(products) = products.as_deref_mut() else {
                    let b = &self.v.panel(p)[of_keys.clone()];
                    simd.run_tile(Tile { a: of_block, b, ahead: Ahead::NOTHING, is_first, out });
                    continue;
                };
                let to = if is_first { &mut *out } else { &mut part[..n] };
                pairs.context(simd, products, p, key_panels, block.clone(), to);
                if !is_first {
                    for (row, part) in out.iter_mut().zip(&part) {
                        for at in (0..PANEL).step_by(S::LANES) {
                            simd.store(row, at, simd.add(simd.load(row, at), simd.load(part, at)));
                        }
                    }
                }
            }
        }
    }
}

/// The keys that queries see.
pub(crate) struct VisibleKeys<'a> {
    /// The greatest distance from a query to a key that it sees, by positions; `None` if it sees all.
    pub window: Option<usize>,
    /// The positions of all rows, the keys first; with a window, the positions of the keys increase.
    pub positions: &'a [u32],
    /// The number of keys.
    pub keys: usize,
}

impl VisibleKeys<'_> {
    /// Returns the panels of 32 keys in which a block of queries sees any.
    pub fn panels(&self, queries: Range<usize>) -> Range<usize> {
        let Some(window) = self.window else { return 0..panels(self.keys) };
        let of_queries = self.positions[queries].iter();
        let (least, greatest) = (of_queries.clone().min(), of_queries.max());
        let (Some(least), Some(greatest)) = (least, greatest) else { return 0..0 };
        let keys = self.near(*least as usize, *greatest as usize, window);
        if keys.is_empty() { 0..0 } else { keys.start / PANEL..panels(keys.end) }
    }

    /// Returns the keys that a query sees, counted from key `first` on.
    pub fn columns(&self, query: usize, first: usize) -> Range<usize> {
        let Some(window) = self.window else { return 0..self.keys - first };
        let position = self.positions[query] as usize;
        let keys = self.near(position, position, window);
        keys.start.saturating_sub(first)..keys.end.saturating_sub(first)
    }

    /// Returns the keys at most `window` positions before `least` or after `greatest`, or between them.
    fn near(&self, least: usize, greatest: usize, window: usize) -> Range<usize> {
        let keys = &self.positions[..self.keys];
        let from = keys.partition_point(|key| (*key as usize) < least.saturating_sub(window));
        from..keys.partition_point(|key| *key as usize <= greatest.saturating_add(window))
    }
}

/// Divides panels of keys at multiples of `length`. With a window, sums over keys are divided at the same keys for all tiles:
/// a row has the same bits beside any others, which may see other keys.
fn blocks(panels: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let Range { start, end } = panels;
    let bounds = (start / length..end.div_ceil(length)).map(move |block| block * length);
    bounds.map(move |bound| bound.max(start)..(bound + length).min(end))
}

/// Adds a bias to x·scale, for the scores x of the rows `first..` of matrices with `n` rows; `queries` and `keys` are the
/// positions of their rows and columns. Returns what the scores are still to be multiplied by.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "a part of three kernels")]
pub(crate) fn add_bias<S: Simd>(
    simd: S,
    bias: Option<ScoreBias<'_>>,
    head: usize,
    scale: f32,
    queries: &[u32],
    keys: &[u32],
    scores: &mut [Row],
    (n, first): (usize, usize),
) -> f32 {
    match bias {
        None => return scale,
        Some(ScoreBias::Distances(RelativeBias { bias, max_distance })) => {
            let of_head = &bias[head * (2 * max_distance + 1)..][..2 * max_distance + 1];
            for (i, query) in queries.iter().enumerate() {
                // The bias of a key at position 0; the biases of the other positions follow it.
                let of_query = &of_head[max_distance - *query as usize..];
                scale_and_add_bias(simd, scores, n, first + i, scale, keys, |key| of_query[key as usize]);
            }
        }
        Some(ScoreBias::Slopes(slopes)) => {
            let slope = slopes[head];
            for (i, query) in queries.iter().enumerate() {
                let bias = |key: u32| key.abs_diff(*query) as f32 * -slope;
                scale_and_add_bias(simd, scores, n, first + i, scale, keys, bias);
            }
        }
    }
    1.0
}

/// Replaces the scores x of row `i` of a tile of `n` rows by x·scale + the bias of the key's position.
#[inline(always)]
fn scale_and_add_bias<S: Simd>(
    simd: S,
    scores: &mut [Row],
    n: usize,
    i: usize,
    scale: f32,
    positions: &[u32],
    bias: impl Fn(u32) -> f32,
) {
    for (panel, positions) in scores.chunks_mut(n).zip(positions.chunks(PANEL)) {
        let mut row = Row::ZERO;
        for (to, position) in row.0.iter_mut().zip(positions) {
            *to = bias(*position);
        }
        for at in (0..PANEL).step_by(S::LANES) {
            let x = simd.fma(simd.load(&panel[i], at), simd.splat(scale), simd.load(&row, at));
            simd.store(&mut panel[i], at, x);
        }
    }
}

#[cfg(test)]
mod tests {
    use wordpiece_parallel::InstructionSet;

    use super::*;
    use crate::arch::CONFIGURATIONS;

    /// Returns how often tile registers are configured for two heads of `rows` tokens.
    fn configurations(rows: usize, bfloat16: bool) -> usize {
        let positions: Vec<u32> = (0..rows as u32).collect();
        let mut x = Matrix::default();
        x.fill_rows(rows, 64, &vec![0.5; rows * 64]);
        let inputs = AttentionInputs {
            queries: x.view(),
            keys: x.view(),
            values: x.view(),
            heads: 2,
            size: 32,
            positions: &positions,
            window: None,
            relative_bias: None,
            relative_scores: None,
            bfloat16,
        };
        let execution =
            Execution { tiles: Some(TileUnit::Emulated), ..Execution::on_this_thread(InstructionSet::detect()) };
        let mut out = Matrix::default();
        let before = CONFIGURATIONS.get();
        attention(execution, inputs, &mut AttentionScratch::default(), out.reshape(rows, 64).view_mut(), None);
        CONFIGURATIONS.get() - before
    }

    #[test]
    #[cfg_attr(miri, ignore = "emulates products of 512 rows")]
    fn tile_registers_are_configured_once_for_each_head_and_after_each_checkpoint() {
        assert_eq!(configurations(1, true), 2);
        assert_eq!(configurations(100, true), 2);
        assert_eq!(configurations(2 * ROWS_PER_CHECKPOINT, true), 4);
        assert_eq!(configurations(100, false), 0);
    }
}
