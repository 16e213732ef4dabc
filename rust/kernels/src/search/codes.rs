//! Exact search that reads most rows as 8-bit codes.
//!
//! A row x has codes c, a scale s, and e ≥ |x − s·c|. So q·x is at most q·(s·c) + |q|·e (Cauchy-Schwarz), and a row whose
//! bound is below the lowest of the best so far is never read in float32. The others are scored by the tiles of
//! [`floats`](super::floats), so hits, scores and the order of ties are those of its search, bit for bit: bounds have room for
//! what float32 sums round. Queries are rounded as well, to 12 bits if they are few and to 8 bits if they are compared by
//! panels, and the length of what that takes from them counts like e.
//!
//! Rows are taken in blocks. Where most rows of a block have to be scored, codes are only tried again after more and more
//! blocks, so that rows of which codes say little take the time of the float32 search.

use std::array;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use wordpiece_parallel::{checkpoint, map_with};

use super::bytes::{pack_row, product};
use super::floats::{Floats, Metric};
use super::{Hit, Part, TopK, search_parts};
use crate::Execution;
use crate::arch::{MAX_TILE_ROWS, Simd};
use crate::matrix::{ByteRow, PANEL, Row, View};
use crate::tile::{Ahead, ByteQueries, ByteVectorTile, pack_vectors, tiles};

/// Rows of a block: their codes stay in the caches while queries pass by, and the bounds follow the best of all blocks before.
const BLOCK: usize = 128;

/// With fewer queries, comparing a row with one after the other is faster than copying it.
const LEAST_AT_ONCE: usize = 3;

/// The greatest number of a query of 12 bits, and of one of 8 bits.
const FEW: f64 = 2047.0;
const MANY: f64 = 127.0;

/// Codes are tried again after 2ⁿ blocks that they were no use for, n at most this.
const LONGEST_WAIT: u32 = 6;

/// A row whose length is not between these has infinite errors: what float32 sums make of it depends on more than its length.
const LENGTHS: Range<f64> = 1e-12..1e37;

/// The bytes of [`RowNumbers`], which follow the codes of each row.
pub const NUMBER_BYTES: usize = 12;

/// What is known of a row beside its codes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowNumbers {
    /// What the codes are multiplied by.
    pub scale: f32,
    /// At least the length of the difference from the row; infinite if the row must always be read.
    pub error: f32,
    /// The length of the row.
    pub length: f32,
}

impl RowNumbers {
    /// Writes the numbers as bytes, the lowest first.
    fn write(self, to: &mut [u8]) {
        for (to, number) in to.chunks_exact_mut(4).zip([self.scale, self.error, self.length]) {
            to.copy_from_slice(&number.to_le_bytes());
        }
    }

    /// Reads what [`RowNumbers::write`] wrote.
    #[inline(always)]
    fn read(from: &[u8]) -> RowNumbers {
        let from: &[u8; NUMBER_BYTES] = from.try_into().expect("as many bytes");
        let number = |at: usize| f32::from_le_bytes([from[at], from[at + 1], from[at + 2], from[at + 3]]);
        RowNumbers { scale: number(0), error: number(4), length: number(8) }
    }
}

/// A collection with its codes.
#[derive(Debug, Clone, Copy)]
pub struct Coded<'a> {
    /// [rows, width]
    pub rows: &'a [f32],
    /// Signed bytes from −127 to 127, each row followed by its [`RowNumbers`], [rows, width + 12].
    pub codes: &'a [u8],
    /// Numbers of a row.
    pub width: usize,
}

impl<'a> Coded<'a> {
    /// Returns the codes of a row, and its numbers.
    #[inline(always)]
    fn row(&self, row: usize) -> (&'a [u8], RowNumbers) {
        let stride = self.width + NUMBER_BYTES;
        let (codes, numbers) = self.codes[row * stride..(row + 1) * stride].split_at(self.width);
        (codes, RowNumbers::read(numbers))
    }
}

/// Returns the codes of rows of `width` numbers, each followed by its [`RowNumbers`], [rows, width + 12].
///
/// # Panics
///
/// If `width` is 0, or there are no complete rows.
pub fn encode(execution: Execution, rows: &[f32], width: usize) -> Vec<u8> {
    assert!(width > 0 && rows.len().is_multiple_of(width), "rows of {width} numbers");
    let stride = width + NUMBER_BYTES;
    let mut codes = vec![0; rows.len() / width * stride];
    let step = (1_usize << 16).div_ceil(width);
    let parts: Vec<_> = rows.chunks(step * width).zip(codes.chunks_mut(step * stride)).collect();
    map_with(
        parts,
        execution.pool,
        || (),
        |(), (rows, codes)| {
            checkpoint();
            for (row, codes) in rows.chunks_exact(width).zip(codes.chunks_exact_mut(stride)) {
                let (codes, numbers) = codes.split_at_mut(width);
                encode_row(row, codes).write(numbers);
            }
        },
    );
    codes
}

/// Writes the codes of a row.
fn encode_row(row: &[f32], codes: &mut [u8]) -> RowNumbers {
    let most = row.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let length = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    if length == 0.0 {
        codes.fill(0);
        return RowNumbers { scale: 0.0, error: 0.0, length: 0.0 };
    }
    if !LENGTHS.contains(&length) {
        codes.fill(0);
        return RowNumbers { scale: 0.0, error: f32::INFINITY, length: 1.0 };
    }
    let scale = most / MANY as f32;
    let mut squares = 0.0;
    for (x, code) in row.iter().zip(codes) {
        let rounded = (x / scale).round_ties_even().clamp(-127.0, 127.0);
        *code = rounded as i8 as u8;
        let difference = f64::from(*x) - f64::from(scale) * f64::from(rounded);
        squares += difference * difference;
    }
    // Rounded up, also where it is so short that float32 has few digits for it.
    RowNumbers { scale, error: (squares.sqrt() * (1.0 + 1e-6)) as f32 + f32::MIN_POSITIVE, length: length as f32 }
}

/// Returns the `top_k` rows with the highest scores for each query, as [`floats::search`](super::floats::search).
///
/// # Arguments
///
/// * `least`: scores for each query; rows below these may be missing. Empty for none.
///
/// # Panics
///
/// If the width is 0, an array has no complete rows, or the metric is [`Metric::Manhattan`], for which there is no bound.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::search::codes::{Coded, encode, search};
/// use wordpiece_kernels::search::floats::Metric;
/// use wordpiece_kernels::{Execution, InstructionSet};
///
/// let execution = Execution::on_this_thread(InstructionSet::detect());
/// let rows = [3.0, 0.0, 0.0, 1.0, 1.0, 1.0]; // [3, 2]
/// let codes = encode(execution, &rows, 2);
/// let coded = Coded { rows: &rows, codes: &codes, width: 2 };
/// let found = search(execution, &[1.0, 0.0], coded, Metric::Dot, 2, &[]);
/// let rows: Vec<(usize, f64)> = found[0].iter().map(|hit| (hit.row, hit.score)).collect();
/// assert_eq!(rows, [(0, 3.0), (2, 1.0)]);
/// ```
pub fn search(
    execution: Execution,
    queries: &[f32],
    coded: Coded<'_>,
    metric: Metric,
    top_k: usize,
    least: &[f64],
) -> Vec<Vec<Hit>> {
    let Coded { rows, codes, width } = coded;
    assert!(width > 0 && queries.len().is_multiple_of(width), "queries of {width} numbers");
    let rows = rows.len() / width;
    assert!(coded.rows.len() == rows * width, "rows of {width} numbers");
    assert!(codes.len() == rows * (width + NUMBER_BYTES), "codes of each row");
    assert!(metric != Metric::Manhattan, "differences of numbers have no bound by lengths");
    let count = queries.len() / width;
    let many = count >= LEAST_AT_ONCE;
    let rounded: Vec<Rounded> =
        queries.chunks_exact(width).map(|query| Rounded::new(query, if many { MANY } else { FEW }, metric)).collect();
    let integers = rounded.iter().flat_map(|query| query.integers.iter().copied());
    let asked = match many {
        true => Asked::Packed(ByteQueries::new(integers.map(|x| x as i8).collect::<Vec<_>>().into_iter(), width)),
        false => Asked::OneByOne(integers.collect()),
    };
    let packed = pack_vectors(queries, width);
    let floor = (0..count).map(|i| AtomicI64::new(key(least.get(i).copied().unwrap_or(f64::NEG_INFINITY)))).collect();
    let part = Codes {
        coded,
        metric,
        asked,
        panels: rounded.chunks(PANEL).map(PanelBounds::new).collect(),
        queries: &packed,
        only: (count == 1).then_some(queries),
        floor,
        waits: AtomicU32::new(0),
        blocks: AtomicU32::new(0),
    };
    search_parts(execution, rows, width + NUMBER_BYTES, count, top_k, &part)
}

/// A query of integers t·d, and how far q·x can be from t·d·x.
struct Rounded {
    integers: Vec<i16>,
    /// t
    scale: f64,
    /// The factor of a row's error in its bound: |q| + |q − t·d|.
    of_error: f64,
    /// The factor of a row's length: |q − t·d|, and what sums round.
    of_length: f64,
    /// |q|²
    squares: f64,
    /// What products below the range of float32 lose.
    lost: f64,
}

impl Rounded {
    fn new(query: &[f32], most: f64, metric: Metric) -> Rounded {
        let width = query.len();
        let greatest = f64::from(query.iter().fold(0.0_f32, |most, x| most.max(x.abs())));
        let scale = greatest / most;
        let integer = |x: f32| if scale > 0.0 { (f64::from(x) / scale).round_ties_even() } else { 0.0 };
        let integers = query.iter().map(|&x| integer(x) as i16).collect();
        let squares: f64 = query.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let missing: f64 = query.iter().map(|&x| (f64::from(x) - scale * integer(x)).powi(2)).sum();
        let (length, missing) = (squares.sqrt(), missing.sqrt() * (1.0 + 1e-9));
        // Sums of blocks of 128 numbers are added up, and of squares 32 sums; twice as much as both may round.
        let units = 2.0 * (width.min(128) + width / 32 + 16) as f64;
        let rounding = units * f64::from(f32::EPSILON) / 2.0;
        let lost = width as f64 * f64::from(f32::MIN_POSITIVE);
        Rounded {
            integers,
            scale,
            of_error: length + missing,
            of_length: missing + rounding * length,
            squares,
            // A cosine is divided by a length of at least 10⁻¹².
            lost: if metric == Metric::Cosine { lost / LENGTHS.start } else { lost * (1.0 + length) },
        }
    }
}

/// What makes bounds of the products of codes, for each query of a panel: the greatest value that a row can have is
/// `product · scale · row.product + of_error · row.error + of_length · row.length + row.rest`.
struct PanelBounds {
    scale: [f64; PANEL],
    of_error: [f64; PANEL],
    of_length: [f64; PANEL],
    squares: [f64; PANEL],
    lost: [f64; PANEL],
    count: usize,
}

impl PanelBounds {
    fn new(queries: &[Rounded]) -> PanelBounds {
        let of = |value: fn(&Rounded) -> f64| array::from_fn(|i| queries.get(i).map_or(0.0, value));
        PanelBounds {
            scale: of(|query| query.scale),
            of_error: of(|query| query.of_error),
            of_length: of(|query| query.of_length),
            squares: of(|query| query.squares),
            lost: of(|query| query.lost),
            count: queries.len(),
        }
    }

    /// Returns what the value of a row must reach for a score of at least `least`, for query `i`.
    #[inline(always)]
    fn needed(&self, metric: Metric, i: usize, least: f64) -> f64 {
        match metric {
            // −score² ≤ 2·q·x − |x|² − |q|²
            Metric::Euclidean => {
                let distance = least.min(0.0);
                self.squares[i] * (1.0 - 1e-9) - distance * distance * (1.0 + 1e-3) - 2.0 * self.lost[i]
            }
            _ => least - least.abs() * 1e-9 - self.lost[i],
        }
    }
}

/// The factors of a row in its bounds.
#[derive(Clone, Copy, Default)]
struct RowBound {
    product: f64,
    error: f64,
    length: f64,
    rest: f64,
}

impl RowBound {
    #[inline(always)]
    fn new(metric: Metric, numbers: RowNumbers) -> RowBound {
        let (scale, error, length) = (f64::from(numbers.scale), f64::from(numbers.error), f64::from(numbers.length));
        match metric {
            Metric::Cosine => {
                let inverse = if length > 0.0 { 1.0 / length } else { 0.0 };
                RowBound { product: scale * inverse, error: error * inverse, length: length * inverse, rest: 0.0 }
            }
            Metric::Euclidean => RowBound {
                product: 2.0 * scale,
                error: 2.0 * error,
                length: 2.0 * length,
                rest: -length * length * (1.0 - 1e-6),
            },
            _ => RowBound { product: scale, error, length, rest: 0.0 },
        }
    }
}

/// The queries as integers.
enum Asked {
    /// [queries, width]
    OneByOne(Vec<i16>),
    Packed(ByteQueries),
}

struct Codes<'a> {
    coded: Coded<'a>,
    metric: Metric,
    asked: Asked,
    panels: Vec<PanelBounds>,
    /// Panels of `width` rows.
    queries: &'a [Row],
    /// The query, if there is only one.
    only: Option<&'a [f32]>,
    /// The highest of what any thread has as the lowest of its best, for each query, as [`key`].
    floor: Vec<AtomicI64>,
    /// How many blocks in succession codes were no use for.
    waits: AtomicU32,
    /// The number of blocks that were searched.
    blocks: AtomicU32,
}

/// Numbers in the order of floats; its own inverse.
fn key(x: f64) -> i64 {
    flipped(x.to_bits() as i64)
}

fn flipped(bits: i64) -> i64 {
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

impl Part for Codes<'_> {
    #[inline(always)]
    fn search<S: Simd>(&self, simd: S, rows: Range<usize>, best: &mut [TopK]) {
        let width = self.coded.width;
        let mut chosen: Vec<Vec<usize>> = vec![Vec::with_capacity(BLOCK); self.panels.len()];
        let mut copied = Vec::new();
        for start in rows.clone().step_by(BLOCK) {
            let block = start..rows.end.min(start + BLOCK);
            let waits = self.waits.load(Ordering::Relaxed);
            let number = self.blocks.fetch_add(1, Ordering::Relaxed);
            if !number.is_multiple_of(1 << waits.min(LONGEST_WAIT)) {
                self.floats(self.coded.rows, None, None).search(simd, block, best);
                continue;
            }
            chosen.iter_mut().for_each(Vec::clear);
            self.choose(simd, block.clone(), best, &mut chosen);
            let count: usize = chosen.iter().map(Vec::len).sum();
            let is_useful = 2 * count < block.len() * chosen.len();
            self.waits.store(if is_useful { 0 } else { waits.saturating_add(1) }, Ordering::Relaxed);
            for (panel, (chosen, best)) in chosen.iter().zip(best.chunks_mut(PANEL)).enumerate() {
                if 2 * chosen.len() >= block.len() {
                    self.floats(self.coded.rows, Some(panel), None).search(simd, block.clone(), best);
                } else if !chosen.is_empty() {
                    copied.clear();
                    for &row in chosen {
                        copied.extend_from_slice(&self.coded.rows[row * width..(row + 1) * width]);
                    }
                    self.floats(&copied, Some(panel), Some(chosen)).search(simd, 0..chosen.len(), best);
                } else {
                    continue;
                }
                for (best, floor) in best.iter_mut().zip(&self.floor[panel * PANEL..]) {
                    floor.fetch_max(key(best.lowest()), Ordering::Relaxed);
                }
            }
        }
    }
}

impl Codes<'_> {
    /// Returns the search over rows in float32, for all queries or a panel of them.
    #[inline(always)]
    fn floats<'a>(&'a self, rows: &'a [f32], panel: Option<usize>, numbers: Option<&'a [usize]>) -> Floats<'a> {
        let width = self.coded.width;
        let queries = panel.map_or(self.queries, |panel| &self.queries[panel * width..(panel + 1) * width]);
        Floats { queries, only: self.only, collection: rows, width, metric: self.metric, numbers }
    }

    /// Adds the rows of a block that may be among the best to those of each panel.
    #[inline(always)]
    fn choose<S: Simd>(&self, simd: S, rows: Range<usize>, best: &mut [TopK], chosen: &mut [Vec<usize>]) {
        let Coded { codes, width, .. } = self.coded;
        let stride = width + NUMBER_BYTES;
        let mut needed = vec![[f64::INFINITY; PANEL]; self.panels.len()];
        for ((i, best), floor) in best.iter_mut().enumerate().zip(&self.floor) {
            let shared = f64::from_bits(flipped(floor.load(Ordering::Relaxed)) as u64);
            let least = best.lowest().max(shared);
            needed[i / PANEL][i % PANEL] = self.panels[i / PANEL].needed(self.metric, i % PANEL, least);
        }
        match &self.asked {
            Asked::OneByOne(queries) => {
                let (panel, needed) = (&self.panels[0], &needed[0]);
                for row in rows {
                    let (codes, numbers) = self.coded.row(row);
                    let bound = RowBound::new(self.metric, numbers);
                    let is_chosen = queries.chunks_exact(width).enumerate().any(|(i, query)| {
                        let product = product::<8192>(query, codes, &|x| i32::from(x as i8)) as f64;
                        let most = product * panel.scale[i] * bound.product
                            + panel.of_error[i] * bound.error
                            + panel.of_length[i] * bound.length
                            + bound.rest;
                        most.partial_cmp(&needed[i]) != Some(std::cmp::Ordering::Less) // also if it is NaN
                    });
                    if is_chosen {
                        chosen[0].push(row);
                    }
                }
            }
            Asked::Packed(queries) => {
                let bias = simd.byte_bias();
                let mut packed = vec![ByteRow::ZERO; MAX_TILE_ROWS * queries.groups()];
                let mut products = [[0.0; PANEL]; MAX_TILE_ROWS];
                let mut bounds = [RowBound::default(); MAX_TILE_ROWS];
                for tile in tiles(rows.len(), S::BYTE_TILE_ROWS) {
                    let first = rows.start + tile.start;
                    let (stored, next) = codes[first * stride..].split_at(tile.len() * stride);
                    let mut ahead = Ahead::of(&next[..stored.len().min(next.len())]);
                    let packed = &mut packed[..tile.len() * queries.groups()];
                    for (r, row) in stored.chunks_exact(stride).enumerate() {
                        bounds[r] = RowBound::new(self.metric, RowNumbers::read(&row[width..]));
                        pack_row(&row[..width], bias, packed[r..].iter_mut().step_by(tile.len()));
                    }
                    let a = View::new(packed, tile.len());
                    for (p, b) in queries.panels().enumerate() {
                        let (panel, needed) = (&self.panels[p], &needed[p]);
                        let out = &mut products[..tile.len()];
                        simd.run_byte_tile(ByteVectorTile { a, b, queries: panel.count, ahead, out: &mut *out });
                        ahead = Ahead::NOTHING;
                        for (r, (products, bound)) in out.iter().zip(&bounds).enumerate() {
                            if panel.may_reach(products, bound, needed) {
                                chosen[p].push(first + r);
                            }
                        }
                    }
                }
            }
        }
    }
}

impl PanelBounds {
    /// Returns whether the value of a row may be what a query of the panel needs.
    #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "NaN is below nothing")]
    #[inline(always)]
    fn may_reach(&self, products: &[f64; PANEL], row: &RowBound, needed: &[f64; PANEL]) -> bool {
        // Eight flags, because the compiler makes vector instructions of independent ones only.
        let mut flags = [0_u64; 8];
        for at in (0..PANEL).step_by(8) {
            for (lane, flag) in flags.iter_mut().enumerate() {
                let i = at + lane;
                let most = products[i] * self.scale[i] * row.product
                    + self.of_error[i] * row.error
                    + self.of_length[i] * row.length
                    + row.rest;
                // Queries beyond the last need an infinite value. NaN is below nothing.
                *flag |= u64::from(!(most < needed[i])) & u64::from(i < self.count);
            }
        }
        flags != [0; 8]
    }
}

#[cfg(test)]
mod tests {
    use wordpiece_parallel::testing::instruction_sets;
    use wordpiece_parallel::thread_pool;

    use super::{Coded, Metric, RowNumbers, encode, key, search};
    use crate::Execution;
    use crate::search::floats;

    const METRICS: [Metric; 3] = [Metric::Dot, Metric::Cosine, Metric::Euclidean];

    /// Numbers from −1 to 1.
    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    /// Vectors that are hard to bound, by name.
    fn collections(count: usize, width: usize) -> Vec<(&'static str, Vec<f32>)> {
        let plain = numbers(count * width, 1);
        let rows = |f: &dyn Fn(usize, usize, f32) -> f32| {
            plain.iter().enumerate().map(|(i, &x)| f(i / width, i % width, x)).collect::<Vec<f32>>()
        };
        let mut repeated = plain.clone();
        for row in 1..count {
            if row % 3 != 0 {
                repeated.copy_within((row / 7 * width)..(row / 7 + 1) * width, row * width);
            }
        }
        vec![
            ("duplicates", repeated),
            ("ties", rows(&|_, _, x| (x * 1.5).round())),
            ("equal", rows(&|_, column, _| column as f32)),
            ("zeros", rows(&|row, _, x| if row % 3 == 0 { x } else { 0.0 })),
            ("outlying column", rows(&|_, column, x| if column == 0 { 100.0 + x } else { x })),
            ("scales", rows(&|row, _, x| x * [1.0, 1e30, 1e-30, 1e38, 1e-42, 1e-12, 1e18, 3e-13][row % 8])),
            ("columns of many scales", rows(&|_, column, x| x * 10.0_f32.powi((column % 30) as i32 - 15))),
            (
                "not finite",
                rows(&|row, column, x| match (row % 11, column) {
                    (3, 0) => f32::NAN,
                    (5, 0) => f32::INFINITY,
                    (7, 0) => f32::NEG_INFINITY,
                    _ => x,
                }),
            ),
            ("plain", plain),
        ]
    }

    /// Hits with the bits of their scores. Which of its bits a NaN has beside those that make it one, Rust does not say.
    fn bits(found: &[Vec<super::Hit>]) -> Vec<Vec<(usize, u64)>> {
        let bits_of = |score: f64| if score.is_nan() { f64::NAN } else { score }.to_bits();
        found.iter().map(|hits| hits.iter().map(|hit| (hit.row, bits_of(hit.score))).collect()).collect()
    }

    #[test]
    fn hits_scores_and_ties_are_those_of_the_float32_search_bit_for_bit() {
        let shapes: &[_] =
            if cfg!(miri) { &[(5, 140, 2)] } else { &[(1, 300, 2), (33, 600, 3), (384, 140, 40), (100, 20, 1)] };
        for &(width, count, queries) in shapes {
            // Miri takes more than half an hour for all of them.
            let all = collections(count, width).into_iter().filter(|one| !cfg!(miri) || one.0 == "not finite");
            for (name, rows) in all {
                let finite = rows.chunks(width).find(|row| row.iter().all(|x| x.is_finite())).expect("one is");
                let mut asked = numbers(queries * width, 2);
                asked[..width].copy_from_slice(finite);
                if queries > 1 {
                    asked[width..2 * width].fill(0.0);
                }
                for set in instruction_sets() {
                    let alone = Execution::on_this_thread(set);
                    let codes = encode(alone, &rows, width);
                    let coded = Coded { rows: &rows, codes: &codes, width };
                    for metric in METRICS {
                        for top_k in [1, 10, count, count + 7] {
                            for asked in [&asked[..], &asked[..width], &asked[asked.len() - width..]] {
                                let expected = bits(&floats::search(alone, asked, &rows, width, metric, top_k));
                                for pool in [None, thread_pool(3)] {
                                    let execution = Execution { pool, ..alone };
                                    let found = bits(&search(execution, asked, coded, metric, top_k, &[]));
                                    assert_eq!(found, expected, "{} {name} {metric:?} {top_k} of {count}", set.name());
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn errors_are_at_least_the_lengths_of_differences_and_the_same_for_any_threads() {
        for (name, rows) in collections(90, 37) {
            let set = *instruction_sets().last().unwrap();
            let alone = Execution::on_this_thread(set);
            let codes = encode(alone, &rows, 37);
            assert!(encode(Execution { pool: thread_pool(3), ..alone }, &rows, 37) == codes);
            let coded = Coded { rows: &rows, codes: &codes, width: 37 };
            for (number, row) in rows.chunks(37).enumerate() {
                let (codes, RowNumbers { scale, error, length }) = coded.row(number);
                let pairs = || row.iter().zip(codes).map(|(&x, &code)| (f64::from(x), f64::from(code as i8)));
                let missing = pairs().map(|(x, code)| (x - f64::from(scale) * code).powi(2)).sum::<f64>().sqrt();
                assert!(missing <= f64::from(error) || error == f32::INFINITY, "{name}: {missing} is above {error}");
                let exact = pairs().map(|(x, _)| x * x).sum::<f64>().sqrt();
                assert!(error == f32::INFINITY || (f64::from(length) - exact).abs() <= 1e-6 * exact, "{name}");
            }
        }
    }

    /// Without pruning all rows would be hits.
    #[test]
    #[cfg_attr(miri, ignore = "searches 20,000 rows")]
    fn few_rows_are_read_in_float32() {
        let (width, count) = (128, 20_000);
        let (rows, asked) = (numbers(count * width, 3), numbers(5 * width, 4));
        for set in instruction_sets() {
            let execution = Execution::on_this_thread(set);
            let codes = encode(execution, &rows, width);
            let coded = Coded { rows: &rows, codes: &codes, width };
            for metric in METRICS {
                for asked in [&asked[..], &asked[..width]] {
                    let best = floats::search(execution, asked, &rows, width, metric, 1);
                    let least: Vec<f64> = best.iter().map(|hits| hits[0].score).collect();
                    let found = search(execution, asked, coded, metric, count, &least);
                    for (hits, best) in found.iter().zip(&best) {
                        assert_eq!(hits[0], best[0], "{} {metric:?}", set.name());
                        assert!(hits.len() < 100, "{} {metric:?}: {} rows are read", set.name(), hits.len());
                    }
                }
            }
        }
    }

    #[test]
    fn keys_have_the_order_of_floats_and_give_them_back() {
        let ordered = [f64::NEG_INFINITY, -1e300, -1.0, -1e-300, 0.0, 1e-300, 0.5, 2.0, f64::INFINITY];
        assert!(ordered.windows(2).all(|pair| key(pair[0]) < key(pair[1])));
        for x in ordered {
            assert_eq!(f64::from_bits(super::flipped(key(x)) as u64), x);
        }
    }
}
