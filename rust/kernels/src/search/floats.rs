//! Search over float32 vectors.
//!
//! A few rows at a time are copied to panels, which aligns them and pads them with zeros, and stay in the first-level cache
//! while the queries pass by. A tile is 4 rows by a few queries: enough independent sums to hide the latency of a fused
//! multiplication, and fewer loads than multiplications.

use std::ops::Range;

use wordpiece_parallel::prefetch;

use super::{Hit, Part, TopK, search_parts};
use crate::Execution;
use crate::arch::{InstructionSet, Kernel, Simd, run};
use crate::matrix::{PANEL, Row, pad_to_panels, panels};

/// How many rows a tile has: with one query, as many independent sums.
const TILE: usize = 4;

/// How many rows are in the cache at a time; a multiple of `TILE`. 16 rows of 384 numbers are 24 KB.
const ROWS: usize = 16;

/// Vectors shorter than this have the cosine 0 with every other.
const LEAST_LENGTH: f32 = 1e-12;

/// What a score is; higher is nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// q·x.
    Dot,
    /// q·x / |x|: the cosine if the queries have length 1.
    Cosine,
    /// −√Σ(q − x)².
    Euclidean,
    /// −Σ|q − x|.
    Manhattan,
}

/// Returns the `top_k` rows with the highest scores for each query, or all rows if there are fewer.
///
/// Queries and collection have rows of `width` numbers.
///
/// # Panics
///
/// If `width` is 0, or an array has no complete rows.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::search::floats::{Metric, search};
/// use wordpiece_kernels::{Execution, InstructionSet};
///
/// let collection = [3.0, 0.0, 0.0, 1.0, 1.0, 1.0]; // [3, 2]
/// let execution = Execution::on_this_thread(InstructionSet::detect());
/// let found = search(execution, &[1.0, 0.0], &collection, 2, Metric::Dot, 2);
/// let rows: Vec<(usize, f64)> = found[0].iter().map(|hit| (hit.row, hit.score)).collect();
/// assert_eq!(rows, [(0, 3.0), (2, 1.0)]);
/// ```
pub fn search(
    execution: Execution,
    queries: &[f32],
    collection: &[f32],
    width: usize,
    metric: Metric,
    top_k: usize,
) -> Vec<Vec<Hit>> {
    assert!(width > 0, "vectors have at least one number");
    assert!(queries.len().is_multiple_of(width) && collection.len().is_multiple_of(width), "rows of {width} numbers");
    let packed: Vec<Row> = queries.chunks_exact(width).flat_map(pad_to_panels).collect();
    let part = Floats { set: execution.instruction_set, queries: &packed, collection, width, metric };
    let count = collection.len() / width;
    search_parts(execution, count, width * size_of::<f32>(), queries.len() / width, top_k, &part)
}

struct Floats<'a> {
    set: InstructionSet,
    /// [queries, panels(width)]
    queries: &'a [Row],
    collection: &'a [f32],
    width: usize,
    metric: Metric,
}

impl Part for Floats<'_> {
    fn search(&self, rows: Range<usize>, best: &mut [TopK]) {
        run(self.set, SearchRows { floats: self, rows, best });
    }
}

/// Compares some rows with all queries, with the instructions of one set.
struct SearchRows<'a> {
    floats: &'a Floats<'a>,
    rows: Range<usize>,
    best: &'a mut [TopK],
}

impl Kernel for SearchRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match self.floats.metric {
            Metric::Dot => self.with::<S, Dot>(simd),
            Metric::Cosine => self.with::<S, Cosine>(simd),
            Metric::Euclidean => self.with::<S, Euclidean>(simd),
            Metric::Manhattan => self.with::<S, Manhattan>(simd),
        }
    }
}

// Loops over arrays instead of `array::from_fn` and `map`: their closures are compiled as functions without the features of
// the instruction set, and each vector then passes through memory.
impl SearchRows<'_> {
    #[inline(always)]
    fn with<S: Simd, M: Measure>(self, simd: S) {
        let &Floats { queries, collection, width, .. } = self.floats;
        let panels = panels(width);
        let mut packed = vec![Row::ZERO; ROWS * panels];
        let mut step = Step { rows: 0..0, lengths: [0.0; ROWS], best: self.best };
        let mut start = self.rows.start;
        while start < self.rows.end {
            step.rows = start..self.rows.end.min(start + ROWS);
            pack(collection, step.rows.clone(), width, &mut packed);
            if M::USES_LENGTH {
                for (length, row) in step.lengths.iter_mut().zip(packed.chunks_exact(panels)) {
                    *length = simd.sum(squares(simd, row)).sqrt();
                }
            }
            // Rows of the last tile beyond the end are those of an earlier step; their sums are dropped.
            let packed = &packed[..step.rows.len().next_multiple_of(TILE) * panels];
            let mut query = 0;
            let count = queries.len() / panels;
            while query < count {
                let left = &queries[query * panels..];
                // As many queries at once as leave the sums in registers.
                query += match S::LANES {
                    4 | 16 if count - query >= 4 => step.tiles::<S, M, 4>(simd, packed, left, panels, query),
                    8 if count - query >= 2 => step.tiles::<S, M, 2>(simd, packed, left, panels, query),
                    _ => step.tiles::<S, M, 1>(simd, packed, left, panels, query),
                };
            }
            start += ROWS;
        }
    }
}

/// The rows that are packed, their lengths, and the best hits of all queries.
struct Step<'a> {
    rows: Range<usize>,
    lengths: [f32; ROWS],
    best: &'a mut [TopK],
}

impl Step<'_> {
    /// Compares `QUERIES` queries with all packed rows; returns `QUERIES`.
    #[inline(always)]
    fn tiles<S: Simd, M: Measure, const QUERIES: usize>(
        &mut self,
        simd: S,
        packed: &[Row],
        queries: &[Row],
        panels: usize,
        first_query: usize,
    ) -> usize {
        let best = &mut self.best[first_query..][..QUERIES];
        for (tile, rows) in packed.chunks_exact(TILE * panels).enumerate() {
            let sums = tile_sums::<S, M, QUERIES>(simd, rows, queries, panels);
            let first = tile * TILE;
            let count = TILE.min(self.rows.len() - first);
            for (best, sums) in best.iter_mut().zip(&sums) {
                for (r, sum) in sums.iter().enumerate().take(count) {
                    best.push(self.rows.start + first + r, f64::from(M::score(*sum, self.lengths[first + r])));
                }
            }
        }
        QUERIES
    }
}

/// Copies rows to panels; what follows the last row is left as it is.
#[inline(always)]
fn pack(collection: &[f32], rows: Range<usize>, width: usize, to: &mut [Row]) {
    let next = collection.as_ptr().wrapping_add(rows.end * width);
    for (r, (row, to)) in collection[rows.start * width..rows.end * width]
        .chunks_exact(width)
        .zip(to.chunks_exact_mut(panels(width)))
        .enumerate()
    {
        let (complete, rest) = row.as_chunks::<PANEL>();
        for (p, (x, to)) in complete.iter().zip(&mut *to).enumerate() {
            // The rows of the next step, two cache lines at a time.
            let ahead = next.wrapping_add(r * width + p * PANEL);
            prefetch(ahead);
            prefetch(ahead.wrapping_add(PANEL / 2));
            to.0 = *x;
        }
        if let Some(last) = to.get_mut(complete.len()) {
            last.0[..rest.len()].copy_from_slice(rest);
        }
    }
}

/// Returns the sums of each of `QUERIES` queries with each of `TILE` rows.
#[inline(always)]
fn tile_sums<S: Simd, M: Measure, const QUERIES: usize>(
    simd: S,
    rows: &[Row],
    queries: &[Row],
    panels: usize,
) -> [[f32; TILE]; QUERIES] {
    let (mut row, mut query) = ([&rows[..panels]; TILE], [&queries[..panels]; QUERIES]);
    for r in 0..TILE {
        row[r] = &rows[r * panels..][..panels];
    }
    for q in 0..QUERIES {
        query[q] = &queries[q * panels..][..panels];
    }
    let mut sums = [[simd.splat(0.0); TILE]; QUERIES];
    for panel in 0..panels {
        for at in (0..PANEL).step_by(S::LANES) {
            let mut x = [simd.splat(0.0); TILE];
            for r in 0..TILE {
                x[r] = simd.load(&row[r][panel], at);
            }
            for q in 0..QUERIES {
                let y = simd.load(&query[q][panel], at);
                for r in 0..TILE {
                    sums[q][r] = M::add(simd, y, x[r], sums[q][r]);
                }
            }
        }
    }
    let mut totals = [[0.0; TILE]; QUERIES];
    for q in 0..QUERIES {
        for r in 0..TILE {
            totals[q][r] = simd.sum(sums[q][r]);
        }
    }
    totals
}

/// Returns the sum of the squares of a row's numbers, spread over lanes.
#[inline(always)]
fn squares<S: Simd>(simd: S, row: &[Row]) -> S::V {
    let mut sum = simd.splat(0.0);
    for panel in row {
        for at in (0..PANEL).step_by(S::LANES) {
            let x = simd.load(panel, at);
            sum = simd.fma(x, x, sum);
        }
    }
    sum
}

/// What a score is made of.
trait Measure {
    /// Whether [`score`](Measure::score) uses the length of a row.
    const USES_LENGTH: bool = false;

    /// Returns `sum` plus the term of the numbers `y` of a query and `x` of a row.
    fn add<S: Simd>(simd: S, y: S::V, x: S::V, sum: S::V) -> S::V;

    /// Returns the score for the sum of all terms and the length of the row.
    fn score(sum: f32, length: f32) -> f32;
}

struct Dot;

impl Measure for Dot {
    #[inline(always)]
    fn add<S: Simd>(simd: S, y: S::V, x: S::V, sum: S::V) -> S::V {
        simd.fma(y, x, sum)
    }

    #[inline(always)]
    fn score(sum: f32, _: f32) -> f32 {
        sum
    }
}

struct Cosine;

impl Measure for Cosine {
    const USES_LENGTH: bool = true;

    #[inline(always)]
    fn add<S: Simd>(simd: S, y: S::V, x: S::V, sum: S::V) -> S::V {
        simd.fma(y, x, sum)
    }

    #[inline(always)]
    fn score(sum: f32, length: f32) -> f32 {
        sum / length.max(LEAST_LENGTH)
    }
}

struct Euclidean;

impl Measure for Euclidean {
    /// (y − x)²; |y|² − 2y·x + |x|² would lose half the digits where x is close to y.
    #[inline(always)]
    fn add<S: Simd>(simd: S, y: S::V, x: S::V, sum: S::V) -> S::V {
        let difference = simd.sub(y, x);
        simd.fma(difference, difference, sum)
    }

    #[inline(always)]
    fn score(sum: f32, _: f32) -> f32 {
        -sum.sqrt()
    }
}

struct Manhattan;

impl Measure for Manhattan {
    #[inline(always)]
    fn add<S: Simd>(simd: S, y: S::V, x: S::V, sum: S::V) -> S::V {
        let difference = simd.sub(y, x);
        simd.add(simd.max(difference, simd.sub(simd.splat(0.0), difference)), sum)
    }

    #[inline(always)]
    fn score(sum: f32, _: f32) -> f32 {
        -sum
    }
}

#[cfg(test)]
mod tests {
    use wordpiece_parallel::testing::instruction_sets;
    use wordpiece_parallel::thread_pool;

    use super::{Metric, search};
    use crate::Execution;

    const METRICS: [Metric; 4] = [Metric::Dot, Metric::Cosine, Metric::Euclidean, Metric::Manhattan];

    /// Numbers from −1 to 1.
    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    /// The definition, in float64.
    fn score(metric: Metric, query: &[f32], row: &[f32]) -> f64 {
        let pairs = || query.iter().zip(row).map(|(q, x)| (f64::from(*q), f64::from(*x)));
        let dot: f64 = pairs().map(|(q, x)| q * x).sum();
        match metric {
            Metric::Dot => dot,
            Metric::Cosine => dot / pairs().map(|(_, x)| x * x).sum::<f64>().sqrt().max(1e-12),
            Metric::Euclidean => -pairs().map(|(q, x)| (q - x).powi(2)).sum::<f64>().sqrt(),
            Metric::Manhattan => -pairs().map(|(q, x)| (q - x).abs()).sum::<f64>(),
        }
    }

    #[test]
    fn scores_are_those_of_the_formula_and_hits_the_best_for_every_width_and_instruction_set() {
        let shapes: &[_] = if cfg!(miri) {
            &[(1, 3, 1), (33, 7, 2)]
        } else {
            &[(1, 3, 1), (31, 40, 2), (32, 17, 3), (100, 33, 5), (384, 70, 9)]
        };
        for &(width, count, queries) in shapes {
            let (rows, asked) = (numbers(count * width, 1), numbers(queries * width, 2));
            for (set, metric) in instruction_sets().into_iter().flat_map(|set| METRICS.map(|metric| (set, metric))) {
                let found = search(Execution::on_this_thread(set), &asked, &rows, width, metric, 5);
                for (query, hits) in asked.chunks(width).zip(found) {
                    let all: Vec<f64> = rows.chunks(width).map(|row| score(metric, query, row)).collect();
                    assert_eq!(hits.len(), count.min(5));
                    for hit in &hits {
                        let expected = all[hit.row];
                        assert!((hit.score - expected).abs() < 1e-4, "{} {metric:?}: {hit:?} {expected}", set.name());
                    }
                    let lowest = hits.last().unwrap().score;
                    let missed = all.iter().filter(|&&score| score > lowest + 1e-4).count();
                    assert!(missed <= hits.len(), "{} {metric:?}: {missed} are above {lowest}", set.name());
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "searches 30,000 rows")]
    fn hits_depend_neither_on_other_queries_nor_on_threads_and_of_equal_rows_the_lower_is_first() {
        let width = 48;
        let mut rows = numbers(30_000 * width, 3);
        rows.copy_within(0..1000 * width, 20_000 * width); // rows 20,000 to 20,999 equal rows 0 to 999
        let asked = numbers(11 * width, 4);
        for (set, metric) in instruction_sets().into_iter().flat_map(|set| METRICS.map(|metric| (set, metric))) {
            let alone = Execution::on_this_thread(set);
            let together = search(alone, &asked, &rows, width, metric, 40);
            let single: Vec<_> =
                asked.chunks(width).flat_map(|query| search(alone, query, &rows, width, metric, 40)).collect();
            assert_eq!(together, single, "{} {metric:?}", set.name());
            let threads = Execution { pool: thread_pool(3), ..alone };
            assert_eq!(together, search(threads, &asked, &rows, width, metric, 40), "{} {metric:?}", set.name());
            for hits in &together {
                let ordered = hits.windows(2).all(|pair| {
                    pair[0].score > pair[1].score || pair[0].score == pair[1].score && pair[0].row < pair[1].row
                });
                assert!(ordered, "{} {metric:?}: {hits:?}", set.name());
            }
        }
    }

    #[test]
    fn a_row_of_zeros_has_the_cosine_zero_and_no_query_or_row_is_no_hit() {
        for set in instruction_sets() {
            let execution = Execution::on_this_thread(set);
            let found = search(execution, &[1.0, 0.0], &[0.0, 0.0, -1.0, 0.0], 2, Metric::Cosine, 9);
            assert_eq!(found[0].iter().map(|hit| (hit.row, hit.score)).collect::<Vec<_>>(), [(0, 0.0), (1, -1.0)]);
            assert!(search(execution, &[], &[1.0, 0.0], 2, Metric::Dot, 3).is_empty());
            assert_eq!(search(execution, &[1.0, 0.0], &[], 2, Metric::Dot, 3), [vec![]]);
        }
    }
}
