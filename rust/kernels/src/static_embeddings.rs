//! Static embeddings: the vector of a text is the mean of its tokens' vectors, which do not depend on their neighbours.
//!
//! Tokenizing costs about as much as reading the table, so the rows of tokens to come are prefetched while one is added, and
//! sums stay in registers for as many columns as fit. Sums run from the first token to the last.

use wordpiece_parallel::prefetch;

use crate::arch::{InstructionSet, Kernel, Simd, Sums, run};
use crate::matrix::{PANEL, Row, panels};

/// How many tokens ahead of the current one are prefetched.
const PREFETCH_DISTANCE: usize = 16;

/// An id that no token has.
const NONE: u32 = u32::MAX;

/// The vectors of all tokens, widened to float32 and padded to complete panels, so that each begins in its own cache line.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticEmbeddings {
    /// [rows, panels(width)]
    table: Vec<Row>,
    rows: usize,
    width: usize,
    mapping: Option<Vec<u32>>,
    weights: Option<Vec<f32>>,
}

/// How the vectors of a text's tokens are combined.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MeanOptions {
    /// The token that is left out of the mean: the unknown token of model2vec.
    pub dropped: Option<u32>,
    /// Scales vectors to length 1: they are divided by their length, or by this number if that is larger.
    pub least_length: Option<f32>,
}

impl StaticEmbeddings {
    /// Packs a table [rows, width], row by row.
    ///
    /// `mapping` has the row of each token, by id; without it, a token's row has its id as its number. `weights` has the
    /// factor of each token, by id; without it, every token counts once.
    ///
    /// # Panics
    ///
    /// If the table has no complete rows, a row in `mapping` does not exist, or there are not as many weights as tokens.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece_kernels::InstructionSet;
    /// use wordpiece_kernels::static_embeddings::{MeanOptions, StaticEmbeddings};
    ///
    /// let table = StaticEmbeddings::new(&[1.0, 0.0, 3.0, 4.0, 8.0, 8.0], 2, None, None); // [3, 2]
    /// let mut vectors = [0.0; 4];
    /// // Two texts: tokens 0 and 1, and none.
    /// table.means(InstructionSet::detect(), &[0, 1], &[2, 2], MeanOptions::default(), &mut vectors);
    /// assert_eq!(vectors, [2.0, 2.0, 0.0, 0.0]);
    /// ```
    pub fn new(table: &[f32], width: usize, mapping: Option<Vec<u32>>, weights: Option<Vec<f32>>) -> StaticEmbeddings {
        assert!(width > 0 && table.len().is_multiple_of(width), "complete rows of {width} numbers");
        let rows = table.len() / width;
        assert!(rows < NONE as usize, "fewer than 2³² − 1 rows");
        if let Some(mapping) = &mapping {
            assert!(mapping.len() < NONE as usize, "fewer than 2³² − 1 tokens");
            assert!(mapping.iter().all(|&row| (row as usize) < rows), "a row of {rows} for each token");
        }
        if let Some(weights) = &weights {
            assert_eq!(weights.len(), mapping.as_ref().map_or(rows, Vec::len), "a weight for each token");
        }
        let mut packed = Vec::with_capacity(rows * panels(width));
        for row in table.chunks_exact(width) {
            for columns in row.chunks(PANEL) {
                let mut panel = Row::ZERO;
                panel.0[..columns.len()].copy_from_slice(columns);
                packed.push(panel);
            }
        }
        StaticEmbeddings { table: packed, rows, width, mapping, weights }
    }

    /// The number of rows of the table.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns of the table.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many ids have a vector: ids from 0 to one less.
    pub fn tokens(&self) -> usize {
        self.mapping.as_ref().map_or(self.rows, Vec::len)
    }

    /// The row of each token, if it is not its id.
    pub fn mapping(&self) -> Option<&[u32]> {
        self.mapping.as_deref()
    }

    /// The factor of each token, if there are any.
    pub fn weights(&self) -> Option<&[f32]> {
        self.weights.as_deref()
    }

    /// Writes a row of the table.
    ///
    /// # Panics
    ///
    /// If there is no such row, or `to` has another length than [`width`](StaticEmbeddings::width).
    pub fn copy_row(&self, row: usize, to: &mut [f32]) {
        assert_eq!(to.len(), self.width, "one row");
        copy_columns(self.panels_of(row as u32), to);
    }

    /// Writes the vector of a token: its row, times its weight.
    ///
    /// # Panics
    ///
    /// As [`copy_row`](StaticEmbeddings::copy_row), for a token that has no vector.
    pub fn copy_token(&self, id: u32, to: &mut [f32]) {
        self.copy_row(self.mapping.as_ref().map_or(id, |mapping| mapping[id as usize]) as usize, to);
        if let Some(weights) = &self.weights {
            to.iter_mut().for_each(|x| *x *= weights[id as usize]);
        }
    }

    /// Writes the vectors of texts: of `ids`, the first `ends[0]` belong to the first text, and so on; `to` is [texts,
    /// width]. A text without tokens has zeros.
    ///
    /// # Panics
    ///
    /// If an id has no vector, `ends` falls or is larger than the number of ids, or `to` is too small.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece_kernels::InstructionSet;
    /// use wordpiece_kernels::static_embeddings::{MeanOptions, StaticEmbeddings};
    ///
    /// // Tokens 0 and 1 share a row, and token 1 counts twice; token 2 is the unknown token.
    /// let table = [3.0, 4.0, 9.0, 9.0];
    /// let table = StaticEmbeddings::new(&table, 2, Some(vec![0, 0, 1]), Some(vec![1.0, 2.0, 1.0]));
    /// let options = MeanOptions { dropped: Some(2), least_length: Some(1e-12) };
    /// let mut vector = [0.0; 2];
    /// table.means(InstructionSet::detect(), &[0, 2, 1], &[3], options, &mut vector);
    /// assert!((vector[0] - 0.6).abs() < 1e-6 && (vector[1] - 0.8).abs() < 1e-6); // of length 1
    /// ```
    pub fn means(&self, set: InstructionSet, ids: &[u32], ends: &[i64], options: MeanOptions, to: &mut [f32]) {
        assert!(to.len() >= ends.len() * self.width, "a vector for each text");
        let tokens = self.tokens();
        let largest = ids.iter().fold(0, |largest, &id| largest.max(id)) as usize;
        assert!(ids.is_empty() || largest < tokens, "id {largest}, but {tokens} tokens have vectors");
        let mapped: Option<Vec<u32>> =
            self.mapping.as_ref().map(|mapping| ids.iter().map(|&id| mapping[id as usize]).collect());
        let rows = mapped.as_deref().unwrap_or(ids);
        let dropped = options.dropped.unwrap_or(NONE);
        run(set, Means { embeddings: self, ids, rows, ends, dropped, least_length: options.least_length, to });
    }

    #[inline(always)]
    fn panels_of(&self, row: u32) -> &[Row] {
        let panels = panels(self.width);
        &self.table[row as usize * panels..][..panels]
    }
}

/// [`StaticEmbeddings::means`] with the instructions of one set.
struct Means<'a> {
    embeddings: &'a StaticEmbeddings,
    ids: &'a [u32],
    /// The row of each token.
    rows: &'a [u32],
    ends: &'a [i64],
    /// The id that does not count.
    dropped: u32,
    least_length: Option<f32>,
    to: &'a mut [f32],
}

impl Kernel for Means<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Means { embeddings, ids, rows, ends, dropped, least_length, to } = self;
        let width = embeddings.width;
        let mut mean = vec![Row::ZERO; panels(width)];
        let (mut kept_ids, mut kept_rows): (Vec<u32>, Vec<u32>);
        let mut start = 0;
        for (&end, to) in ends.iter().zip(to.chunks_exact_mut(width)) {
            let end = end as usize;
            let (mut text_ids, mut text_rows) = (&ids[start..end], &rows[start..]);
            if text_ids.contains(&dropped) {
                let kept = text_ids.iter().zip(text_rows).filter(|(id, _)| **id != dropped);
                (kept_ids, kept_rows) = kept.map(|(&id, &row)| (id, row)).unzip();
                (text_ids, text_rows) = (&kept_ids, &kept_rows);
            }
            let mut panel = 0;
            while panel < mean.len() {
                // As many panels as leave the sums in registers: 32 with AVX-512, 16 elsewhere.
                let block = mean.len() - panel;
                let text = Text { embeddings, ids: text_ids, rows: text_rows, panel };
                panel += match block {
                    8.. if S::LANES >= 16 => text.mean::<S, 8, 16>(simd, &mut mean),
                    4.. if S::LANES >= 16 => text.mean::<S, 4, 8>(simd, &mut mean),
                    2.. if S::LANES >= 16 => text.mean::<S, 2, 4>(simd, &mut mean),
                    _ if S::LANES >= 16 => text.mean::<S, 1, 2>(simd, &mut mean),
                    2.. if S::LANES >= 8 => text.mean::<S, 2, 8>(simd, &mut mean),
                    _ if S::LANES >= 8 => text.mean::<S, 1, 4>(simd, &mut mean),
                    2.. if S::LANES >= 4 => text.mean::<S, 2, 16>(simd, &mut mean),
                    _ if S::LANES >= 4 => text.mean::<S, 1, 8>(simd, &mut mean),
                    _ => text.mean::<S, 1, PANEL>(simd, &mut mean),
                };
            }
            if let Some(least) = least_length {
                scale(simd, &mut mean, least);
            }
            copy_columns(&mean, to);
            start = end;
        }
    }
}

/// The tokens of one text that count, and the first panel of the columns that are summed.
struct Text<'a> {
    embeddings: &'a StaticEmbeddings,
    ids: &'a [u32],
    /// The rows of these tokens and of those after them.
    rows: &'a [u32],
    panel: usize,
}

impl Text<'_> {
    /// Writes the mean of `PANELS` panels, which are `VECTORS` vectors; returns `PANELS`.
    #[inline(always)]
    fn mean<S: Simd, const PANELS: usize, const VECTORS: usize>(&self, simd: S, mean: &mut [Row]) -> usize {
        const { assert!(VECTORS >= PANELS && VECTORS.is_multiple_of(PANELS)) };
        let per_panel = VECTORS / PANELS;
        let lanes = PANEL / per_panel;
        debug_assert_eq!(lanes, S::LANES);
        let of = |row: u32| &self.embeddings.panels_of(row)[self.panel..][..PANELS];
        let weights = self.embeddings.weights.as_deref();
        let mut sums = [simd.splat(0.0); VECTORS];
        for (token, (&id, &row)) in self.ids.iter().zip(self.rows).enumerate() {
            if let Some(&ahead) = self.rows.get(token + PREFETCH_DISTANCE) {
                for panel in of(ahead) {
                    prefetch(&raw const panel.0[0]);
                    prefetch(&raw const panel.0[PANEL / 2]);
                }
            }
            let row = of(row);
            if let Some(weights) = weights {
                let weight = simd.splat(weights[id as usize]);
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = simd.fma(weight, simd.load(&row[v / per_panel], v % per_panel * lanes), *sum);
                }
            } else {
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = simd.add(*sum, simd.load(&row[v / per_panel], v % per_panel * lanes));
                }
            }
        }
        // Without tokens the sums are 0, whatever they are divided by.
        let count = simd.splat(self.ids.len().max(1) as f32);
        let to = &mut mean[self.panel..][..PANELS];
        for (v, sum) in sums.into_iter().enumerate() {
            simd.store(&mut to[v / per_panel], v % per_panel * lanes, simd.div(sum, count));
        }
        PANELS
    }
}

/// Divides a vector by its length, or by `least` if that is larger.
#[inline(always)]
fn scale<S: Simd>(simd: S, vector: &mut [Row], least: f32) {
    let mut squares = Sums::zero(simd);
    for panel in &*vector {
        for at in (0..PANEL).step_by(S::LANES) {
            let x = simd.load(panel, at);
            squares.add_product(simd, at, x, x);
        }
    }
    let length = simd.splat(squares.total(simd).sqrt().max(least));
    for panel in vector {
        for at in (0..PANEL).step_by(S::LANES) {
            let x = simd.load(panel, at);
            simd.store(panel, at, simd.div(x, length));
        }
    }
}

/// Copies the first columns of a row of panels.
#[inline(always)]
fn copy_columns(from: &[Row], to: &mut [f32]) {
    for (panel, to) in from.iter().zip(to.chunks_mut(PANEL)) {
        to.copy_from_slice(&panel.0[..to.len()]);
    }
}

#[cfg(test)]
mod tests {
    use wordpiece_parallel::testing::instruction_sets;

    use super::{MeanOptions, StaticEmbeddings};

    /// The formula, in float64.
    fn expected(table: &[f32], width: usize, tokens: &[(u32, f32)], least: Option<f32>) -> Vec<f64> {
        let mut sum = vec![0.0; width];
        for &(row, weight) in tokens {
            for (sum, x) in sum.iter_mut().zip(&table[row as usize * width..]) {
                *sum += f64::from(weight) * f64::from(*x);
            }
        }
        sum.iter_mut().for_each(|x| *x /= tokens.len().max(1) as f64);
        if let Some(least) = least {
            let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::from(least));
            sum.iter_mut().for_each(|x| *x /= length);
        }
        sum
    }

    #[test]
    fn means_are_those_of_the_formula_for_every_width_mapping_weight_and_instruction_set() {
        let tokens = 12;
        let widths: &[_] = if cfg!(miri) { &[1, 33] } else { &[1, 3, 24, 32, 33, 64, 100, 128, 256, 300, 513] };
        for &width in widths {
            let table: Vec<f32> = (0..tokens * width).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
            let mapping: Vec<u32> = (0..20).map(|id| (id * 5 % tokens) as u32).collect();
            let weights: Vec<f32> = (0..20).map(|id| 0.25 + id as f32 / 8.0).collect();
            for (mapping, weights, dropped, least) in [
                (None, None, None, None),
                (None, Some(weights[..tokens].to_vec()), Some(3), Some(1e-12)),
                (Some(mapping.clone()), None, Some(4), Some(1e-32)),
                (Some(mapping), Some(weights), None, Some(1e6)),
            ] {
                let embeddings = StaticEmbeddings::new(&table, width, mapping.clone(), weights.clone());
                let texts: [&[u32]; 5] = [&[1, 3, 1, 4], &[], &[3], &[11, 0, 2, 4, 4, 5, 6, 7, 8, 9, 10, 3], &[4]];
                let ids = texts.concat();
                let ends: Vec<i64> = texts
                    .iter()
                    .scan(0, |end, ids| {
                        Some({
                            *end += ids.len() as i64;
                            *end
                        })
                    })
                    .collect();
                for set in instruction_sets() {
                    let mut vectors = vec![f32::NAN; texts.len() * width];
                    let options = MeanOptions { dropped, least_length: least };
                    embeddings.means(set, &ids, &ends, options, &mut vectors);
                    for (text, vector) in texts.iter().zip(vectors.chunks(width)) {
                        let counted = text.iter().filter(|id| Some(**id) != dropped).map(|&id| {
                            let row = mapping.as_ref().map_or(id, |mapping| mapping[id as usize]);
                            (row, weights.as_ref().map_or(1.0, |weights| weights[id as usize]))
                        });
                        let expected = expected(&table, width, &counted.collect::<Vec<_>>(), least);
                        for (x, y) in vector.iter().zip(expected) {
                            assert!((f64::from(*x) - y).abs() < 1e-5, "{} {width}: {x} is not {y}", set.name());
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rows_and_tokens_are_copied_with_mapping_and_weight() {
        let embeddings =
            StaticEmbeddings::new(&[1.0, 2.0, 3.0, 4.0], 2, Some(vec![1, 1, 0]), Some(vec![1.0, 0.5, 2.0]));
        assert_eq!((embeddings.rows(), embeddings.width(), embeddings.tokens()), (2, 2, 3));
        let mut vector = [0.0; 2];
        embeddings.copy_row(1, &mut vector);
        assert_eq!(vector, [3.0, 4.0]);
        embeddings.copy_token(1, &mut vector);
        assert_eq!(vector, [1.5, 2.0]);
    }

    #[test]
    #[should_panic(expected = "id 2, but 2 tokens have vectors")]
    fn an_id_without_a_vector_panics() {
        let embeddings = StaticEmbeddings::new(&[1.0, 2.0], 1, None, None);
        embeddings.means(wordpiece_parallel::InstructionSet::Scalar, &[2], &[1], MeanOptions::default(), &mut [0.0]);
    }
}
