//! The relative terms of disentangled attention (DeBERTa): scores between contents and positions.
//!
//! The score of query i and key j is qᵢ·kⱼ + qᵢ·Kʳ + kⱼ·Qʳ, of which the rows of Kʳ and Qʳ depend on the distance of j from
//! i. There are far fewer distances than pairs: S queries and S keys have at most 2S − 1, and in models with buckets a few
//! hundred. So, for a tile of queries, two products are computed for the range of relative positions that occur, q·Kʳᵀ and (once
//! for a head) Qʳ·kᵀ, and the scores are read along their diagonals. No matrix has a row for each query and each key.
//!
//! Relative positions are stored in the order of key positions, the opposite of the order in checkpoints: from one key to
//! the next the relative position is the next, or, where many distances share one, the same. Then 32 scores are read at
//! once.

use std::ops::Range;

use crate::arch::{self, InstructionSet, Kernel, Simd};
use crate::attention_pairs::{PairOperands, PairProducts, pack_pairs};
use crate::matrix::{Matrix, PANEL, PairRow, Row, View, copy_columns, panels};
use crate::tile::{Tile, tiles};
use crate::transpose::Transpose;

/// Which relative position each distance has.
#[derive(Debug, Clone, Copy)]
pub struct RelativePositions {
    /// K, half the number of relative positions.
    pub span: usize,
    /// M, the distance from which on all have the outermost bucket; None if each distance has its own relative position.
    pub longest: Option<usize>,
}

impl RelativePositions {
    /// Returns the row of a checkpoint's table, 0 to 2K − 1, of a distance query − key.
    pub fn row(&self, distance: i64) -> usize {
        let span = self.span as i64;
        let mut row = distance;
        if let Some(longest) = self.longest {
            let middle = span / 2;
            let magnitude = distance.abs();
            if magnitude > middle {
                let ratio = |x: i64| (x as f64 / middle as f64).ln();
                let steps = ratio(magnitude) / ratio(longest as i64 - 1) * (middle - 1) as f64;
                row = distance.signum() * (steps.ceil() as i64 + middle);
            }
        }
        (row + span).clamp(0, 2 * span - 1) as usize
    }

    /// Fills `to` with the relative positions, in the order of [`RelativeTerms`], of the distances key − query from
    /// −`max_distance` to `max_distance`.
    pub(crate) fn fill(&self, max_distance: usize, to: &mut Vec<u32>) {
        let max_distance = max_distance as i64;
        to.clear();
        to.extend((-max_distance..=max_distance).map(|distance| (2 * self.span - 1 - self.row(-distance)) as u32));
    }
}

/// The projected relative positions of one layer, head by head.
pub struct RelativeTerms {
    heads: Vec<HeadTerms>,
}

/// The projected relative positions of one head, in the order of key positions.
struct HeadTerms {
    /// Kʳ, what queries are multiplied by.
    keys: Option<PackedKeys>,
    /// Qʳ [2K, d], what keys are multiplied by.
    queries: Option<Matrix>,
}

/// Kʳ as attention packs the keys of a sequence, by panels of 32 relative positions.
enum PackedKeys {
    /// d rows a panel.
    Rows(Vec<Row>),
    /// 16 rows of pairs for each panel of columns.
    Pairs(Vec<PairRow>),
}

impl RelativeTerms {
    /// Packs Kʳ and Qʳ, each [rows, heads · size] by the rows of a checkpoint's table, of which a model may have one.
    ///
    /// # Panics
    ///
    /// If a length is not a multiple of `heads` times `size`.
    pub fn new(
        instruction_set: InstructionSet,
        [keys, queries]: [Option<&[f32]>; 2],
        heads: usize,
        size: usize,
        bfloat16: bool,
    ) -> RelativeTerms {
        let reversed = |table: &[f32]| {
            let columns = heads * size;
            assert!(table.len().is_multiple_of(columns));
            let numbers: Vec<f32> = table.chunks_exact(columns).rev().flatten().copied().collect();
            let mut matrix = Matrix::default();
            matrix.fill_rows(table.len() / columns, columns, &numbers);
            matrix
        };
        let tables = [keys, queries].map(|table| table.map(reversed));
        let views = tables.each_ref().map(|table| table.as_ref().map(Matrix::view));
        RelativeTerms::of_rows(instruction_set, views, heads, size, bfloat16)
    }

    /// Packs Kʳ and Qʳ, each [rows, heads · size] in the order of key positions.
    pub fn of_rows(
        instruction_set: InstructionSet,
        [keys, queries]: [Option<View<'_>>; 2],
        heads: usize,
        size: usize,
        bfloat16: bool,
    ) -> RelativeTerms {
        let of_head = |table: View<'_>, head: usize| {
            let mut matrix = Matrix::default();
            matrix.reshape(table.len(), size).data_mut().fill(Row::ZERO);
            copy_columns(table, head * size, matrix.view_mut(), 0, size);
            matrix
        };
        let heads = (0..heads).map(|head| HeadTerms {
            keys: keys.map(|table| {
                let matrix = of_head(table, head);
                arch::run(instruction_set, PackKeys { keys: matrix.view(), size, bfloat16 })
            }),
            queries: queries.map(|table| of_head(table, head)),
        });
        RelativeTerms { heads: heads.collect() }
    }
}

/// Packs Kʳ [2K, d] of a head.
struct PackKeys<'a> {
    keys: View<'a>,
    size: usize,
    bfloat16: bool,
}

impl Kernel for PackKeys<'_> {
    type Output = PackedKeys;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> PackedKeys {
        let PackKeys { keys, size, bfloat16 } = self;
        if bfloat16 {
            let mut pairs = Vec::new();
            pack_pairs(simd, keys, size, &mut pairs);
            return PackedKeys::Pairs(pairs);
        }
        let mut rows = Vec::new();
        Transpose { from: keys, columns: size, to: &mut rows }.run(simd);
        PackedKeys::Rows(rows)
    }
}

/// What attention needs to know about the relative terms of a layer.
#[derive(Clone, Copy)]
pub struct RelativeScores<'a> {
    /// The projected relative positions; None if the layer has no terms of positions.
    pub terms: Option<&'a RelativeTerms>,
    /// The relative positions of the distances key − query from −`max_distance` to `max_distance`.
    pub rows: &'a [u32],
    /// The greatest distance; no two positions of a sequence may be farther apart.
    pub max_distance: usize,
    /// By how much scores are scaled down besides d.
    pub count: usize,
}

/// Scratch buffers of the relative terms, kept from call to call. They only grow.
#[derive(Default)]
pub(crate) struct RelativeScratch {
    /// Queries of a tile by relative positions: for each panel of 32 relative positions a row for each query.
    to_positions: Vec<Row>,
    /// One of the queries by relative positions, in their order.
    line: Vec<f32>,
    /// Keys by relative positions: for each panel of 32 keys a row for each relative position.
    to_contents: Vec<Row>,
}

/// The relative positions of up to 32 keys for one query.
pub(crate) enum OfKeys {
    /// There are 32 keys; the first has this one, and each other the next.
    Successive(usize),
    /// All keys have this one.
    Same(usize),
    /// Each key has its own.
    Each,
}

/// The relative terms of one head and one sequence.
pub(crate) struct HeadScores<'a> {
    scores: RelativeScores<'a>,
    head: &'a HeadTerms,
    /// The positions of the keys, in ascending order.
    keys: &'a [u32],
    /// The relative positions of `to_contents`.
    range: Range<usize>,
    /// Whether relative positions are left out between two distances that follow each other, as where there are more buckets
    /// than distances.
    has_gaps: bool,
    size: usize,
}

impl<'a> HeadScores<'a> {
    /// Computes the products of all keys, which `pairs` or `transposed` has, with Qʳ.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "the operands of one head and how they are multiplied")]
    pub(crate) fn new<S: Simd>(
        simd: S,
        scores: RelativeScores<'a>,
        (head, size): (usize, usize),
        queries: &[u32],
        keys: &'a [u32],
        transposed: &[Row],
        mut pairs: Option<(&mut PairOperands, &mut PairProducts)>,
        tile_rows: usize,
        scratch: &mut RelativeScratch,
    ) -> Option<HeadScores<'a>> {
        let head = &scores.terms?.heads[head];
        let has_gaps = scores.rows.windows(2).any(|rows| rows[1] > rows[0] + 1);
        let mut this = HeadScores { scores, head, keys, range: 0..0, has_gaps, size };
        if keys.is_empty() {
            return None;
        }
        this.range = this.range_of(queries);
        if let Some(table) = &head.queries {
            let count = this.range.len();
            let len = panels(keys.len()) * count;
            scratch.to_contents.resize(len.max(scratch.to_contents.len()), Row::ZERO);
            let to = &mut scratch.to_contents[..len];
            for rows in tiles(count, tile_rows) {
                let a = table.view().rows(this.range.start + rows.start..this.range.start + rows.end);
                let each_out = to.chunks_mut(count).map(|out| &mut out[rows.clone()]);
                match &mut pairs {
                    Some((pairs, products)) => pairs.scores(simd, products, a, size, 0..panels(keys.len()), each_out),
                    None => {
                        for (b, out) in transposed.chunks(size).zip(each_out) {
                            simd.run_tile(Tile::new(a, b, out));
                        }
                    }
                }
            }
        }
        Some(this)
    }

    /// Returns the positions of the keys.
    pub(crate) fn keys(&self) -> &'a [u32] {
        self.keys
    }

    /// Returns the relative positions of all keys for all queries.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Returns the relative positions of keys, by their positions from 0 on, for a query at a position.
    pub(crate) fn rows_of(&self, query: u32) -> &'a [u32] {
        &self.scores.rows[self.scores.max_distance - query as usize..]
    }

    /// Returns how the relative positions of up to 32 keys at these positions follow each other.
    #[inline(always)]
    pub(crate) fn of_keys(&self, rows: &[u32], positions: &[u32]) -> OfKeys {
        let last = positions.len() - 1;
        let (from, end) = (rows[positions[0] as usize] as usize, rows[positions[last] as usize] as usize);
        let is_whole = last + 1 == PANEL && !self.has_gaps;
        if is_whole && end - from == last && positions[last] - positions[0] == last as u32 {
            OfKeys::Successive(from)
        } else if from == end {
            OfKeys::Same(from)
        } else {
            OfKeys::Each
        }
    }

    /// Returns the relative positions of all keys for queries at these positions.
    pub(crate) fn range_of(&self, queries: &[u32]) -> Range<usize> {
        let least = queries.iter().min().copied().unwrap_or_default();
        let greatest = queries.iter().max().copied().unwrap_or_default();
        let (first, last) = (self.keys[0], self.keys[self.keys.len() - 1]);
        self.row_of(first, greatest)..self.row_of(last, least) + 1
    }

    fn row_of(&self, key: u32, query: u32) -> usize {
        self.scores.rows[self.scores.max_distance + key as usize - query as usize] as usize
    }

    /// Adds the terms to the scores of a tile of queries, with their positions: the rows `rows` of a matrix [count, keys].
    #[inline(always)]
    pub(crate) fn add<S: Simd>(
        &self,
        simd: S,
        (q, queries): (View<'_>, &[u32]),
        pairs: Option<(&mut PairOperands, &mut PairProducts)>,
        scratch: &mut RelativeScratch,
        scores: &mut [Row],
        (count, rows): (usize, Range<usize>),
    ) {
        let (n, range) = (q.len(), self.range_of(queries));
        let RelativeScratch { to_positions, line, to_contents } = scratch;
        // Whole panels of relative positions are computed.
        let (first, width) = (range.start / PANEL, range.end.div_ceil(PANEL) - range.start / PANEL);
        if let Some(keys) = &self.head.keys {
            to_positions.resize((width * n).max(to_positions.len()), Row::ZERO);
            line.resize((width * PANEL).max(line.len()), 0.0);
            let each_out = to_positions[..width * n].chunks_mut(n);
            match (keys, pairs) {
                (PackedKeys::Pairs(keys), Some((pairs, products))) => {
                    let len = panels(self.size) * PairOperands::PAIRS;
                    pairs.multiply(simd, products, q, self.size, keys[first * len..].chunks(len).zip(each_out));
                }
                (PackedKeys::Rows(keys), None) => {
                    for (b, out) in keys[first * self.size..].chunks(self.size).zip(each_out) {
                        simd.run_tile(Tile::new(q, b, out));
                    }
                }
                _ => unreachable!("relative positions are packed for the products of their layer"),
            }
        }
        for (i, query) in queries.iter().enumerate() {
            if self.head.keys.is_some() {
                for (to, from) in line.chunks_exact_mut(PANEL).zip(to_positions[..width * n].chunks(n)) {
                    to.copy_from_slice(&from[i].0);
                }
            }
            // The relative position of a key at position 0; the one for a key at position p is p numbers later.
            let distances = self.rows_of(*query);
            let len = self.range.len();
            for (p, (panel, positions)) in scores.chunks_mut(count).zip(self.keys.chunks(PANEL)).enumerate() {
                let mut sums = Row::ZERO;
                let contents = if self.head.queries.is_some() { &to_contents[p * len..][..len] } else { &[] };
                let line = if self.head.keys.is_some() { &line[..width * PANEL] } else { &[] };
                self.read(distances, positions, (line, first * PANEL), (contents, self.range.start), &mut sums);
                let to = &mut panel[rows.start + i];
                for at in (0..PANEL).step_by(S::LANES) {
                    simd.store(to, at, simd.add(simd.load(to, at), simd.load(&sums, at)));
                }
            }
        }
    }

    /// Adds up the terms of one query and up to 32 keys. Each product comes with the first of its relative positions, and
    /// is empty if the model lacks the term.
    #[inline(always)]
    fn read(
        &self,
        rows: &[u32],
        positions: &[u32],
        (line, line_from): (&[f32], usize),
        (contents, contents_from): (&[Row], usize),
        to: &mut Row,
    ) {
        match self.of_keys(rows, positions) {
            OfKeys::Successive(from) => {
                if !line.is_empty() {
                    to.0.copy_from_slice(&line[from - line_from..][..PANEL]);
                }
                if !contents.is_empty() {
                    let contents = &contents[from - contents_from..][..PANEL];
                    for (lane, (to, row)) in to.0.iter_mut().zip(contents).enumerate() {
                        *to += row.0[lane];
                    }
                }
            }
            OfKeys::Same(row) => {
                if !line.is_empty() {
                    to.0.fill(line[row - line_from]);
                }
                if !contents.is_empty() {
                    for (to, x) in to.0.iter_mut().zip(contents[row - contents_from].0) {
                        *to += x;
                    }
                }
            }
            OfKeys::Each => {
                for (lane, (to, position)) in to.0.iter_mut().zip(positions).enumerate() {
                    let row = rows[*position as usize] as usize;
                    if !line.is_empty() {
                        *to = line[row - line_from];
                    }
                    if !contents.is_empty() {
                        *to += contents[row - contents_from].0[lane];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_share_buckets_whose_widths_grow() {
        let positions = RelativePositions { span: 8, longest: Some(40) };
        // Distances up to 4 have a row each.
        assert_eq!((-4..=4).map(|distance| positions.row(distance)).collect::<Vec<_>>(), (4..=12).collect::<Vec<_>>());
        let rows: Vec<usize> = (0..200).map(|distance| positions.row(distance)).collect();
        assert!(rows.is_sorted() && rows[39] == 15 && rows[199] == 15);
        assert_eq!(positions.row(-39), 1);
        assert_eq!(positions.row(-40), 0);
    }

    #[test]
    fn without_buckets_distances_are_clipped() {
        let positions = RelativePositions { span: 3, longest: None };
        assert_eq!([-9, -3, -2, 0, 2, 3, 9].map(|distance| positions.row(distance)), [0, 0, 1, 3, 5, 5, 5]);
    }
}
