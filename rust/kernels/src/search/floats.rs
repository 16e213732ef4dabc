//! Search over float32 vectors.
//!
//! Queries are packed like the weights of a dense layer, 32 to a panel. Rows are read where they are, once from memory: a
//! block of them stays in the second-level cache while all panels pass by, and the next block is requested meanwhile. One
//! query is multiplied by columns of the rows instead, where an instruction set reads these fast: the same sums, bit for bit.

use std::ops::Range;

use super::top_k::{PanelOfBest, Scores};
use super::{Hit, Part, TopK, search_parts};
use crate::Execution;
use crate::arch::{MAX_TILE_ROWS, Simd, Sums};
use crate::matrix::{PANEL, Row};
use crate::tile::{Ahead, Measure, Product, QueryTile, VectorTile, pack_vectors, tiles};

/// Scores are computed from sums for so many queries at a time: a division of 32 numbers takes as long as the products of a
/// row with one query.
const EIGHT: usize = 8;

/// The most rows of a tile.
const MAX_ROWS: usize = if MAX_TILE_ROWS > PANEL { MAX_TILE_ROWS } else { PANEL };

/// Of a shorter vector, float32 squares have lost digits, or are 0.
const LEAST_LENGTH: f32 = 1e-12;

/// What a score is; higher is nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// q·x.
    Dot,
    /// q·x / |x|: the cosine if the queries have length 1; 0 if x is 0.
    Cosine,
    /// −√Σ(q − x)².
    Euclidean,
    /// −Σ|q − x|.
    Manhattan,
}

impl Metric {
    /// Returns the score in float64, in which no sum of float32 numbers or of their squares is beyond the range.
    #[cold]
    fn exact(self, query: impl Iterator<Item = f32>, row: &[f32]) -> f64 {
        let (mut sum, mut squares) = (0.0, 0.0);
        for (q, x) in query.zip(row).map(|(q, &x)| (f64::from(q), f64::from(x))) {
            squares += x * x;
            sum += match self {
                Metric::Dot | Metric::Cosine => q * x,
                Metric::Euclidean => (q - x) * (q - x),
                Metric::Manhattan => (q - x).abs(),
            };
        }
        match self {
            Metric::Dot => sum,
            Metric::Cosine => sum / squares.sqrt().max(f64::MIN_POSITIVE),
            Metric::Euclidean => -sum.sqrt(),
            Metric::Manhattan => -sum,
        }
    }

    /// Returns whether float32 sums were enough for the score of a row of this length.
    #[inline(always)]
    fn holds(self, score: f64, length: f32) -> bool {
        match self {
            Metric::Cosine => score.is_finite() && (LEAST_LENGTH..=f32::MAX).contains(&length),
            Metric::Euclidean => (f64::from(LEAST_LENGTH)..f64::INFINITY).contains(&-score),
            Metric::Dot | Metric::Manhattan => score.is_finite(),
        }
    }
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
    let packed = pack_vectors(queries, width);
    let only = (queries.len() == width).then_some(queries);
    let part = Floats { queries: &packed, only, collection, width, metric, numbers: None };
    let count = collection.len() / width;
    search_parts(execution, count, width * size_of::<f32>(), queries.len() / width, top_k, &part)
}

/// The search over the rows of a collection.
pub(super) struct Floats<'a> {
    /// Panels of `width` rows.
    pub queries: &'a [Row],
    /// The query, if there is only one.
    pub only: Option<&'a [f32]>,
    pub collection: &'a [f32],
    pub width: usize,
    pub metric: Metric,
    /// The number of each row, if it is not its place.
    pub numbers: Option<&'a [usize]>,
}

impl Part for Floats<'_> {
    #[inline(always)]
    fn search<S: Simd>(&self, simd: S, rows: Range<usize>, best: &mut [TopK]) {
        match self.metric {
            Metric::Dot => self.with(simd, rows, best, Product, |sum, _| sum),
            Metric::Cosine => self.with(simd, rows, best, Product, |sum, length| sum / length),
            Metric::Euclidean => self.with(simd, rows, best, SquaredDifference, |sum, _| -sum.sqrt()),
            Metric::Manhattan => self.with(simd, rows, best, AbsoluteDifference, |sum, _| -sum),
        }
    }
}

impl Floats<'_> {
    /// Searches with the score that `score` makes of the sum of a measure and the length of a row, which is computed for the
    /// cosine only.
    #[inline(always)]
    fn with<S: Simd, M: Measure>(
        &self,
        simd: S,
        rows: Range<usize>,
        best: &mut [TopK],
        measure: M,
        score: impl Fn(f32, f32) -> f32,
    ) {
        let &Floats { queries, only, collection, width, metric, numbers } = self;
        let only = only.filter(|_| S::READS_COLUMNS);
        let max_rows = if only.is_some() { QueryTile::<M>::max_rows::<S>() } else { S::TILE_ROWS };
        let block = &collection[rows.start * width..rows.end * width];
        let next = &collection[rows.end * width..(rows.end + rows.len()).min(collection.len() / width) * width];
        let panels = queries.len() / width;
        let mut sums = [Row::ZERO; MAX_ROWS];
        let mut lengths = vec![1.0; rows.len()];
        let mut scores: Scores = [0.0; PANEL];
        for (panel, (b, best)) in queries.chunks_exact(width).zip(best.chunks_mut(PANEL)).enumerate() {
            let mut best = PanelOfBest::new(best);
            for tile in tiles(rows.len(), max_rows) {
                let a = &block[tile.start * width..tile.end * width];
                let done = panel * rows.len();
                let ahead = Ahead::of(next).part(&(done + tile.start..done + tile.end), panels * rows.len());
                let out = &mut sums[..tile.len()];
                if let Some(query) = only {
                    let mut column = [0.0; MAX_ROWS];
                    QueryTile { measure, a, query, ahead }.run(simd, &mut column[..out.len()]);
                    out.iter_mut().zip(column).for_each(|(row, sum)| row.0[0] = sum);
                } else {
                    simd.run_tile(VectorTile { measure, a, b, queries: best.len(), ahead, out });
                }
                let lengths = &mut lengths[tile.clone()];
                // With the first queries, while the rows are in the first-level cache; the others use the same lengths.
                if metric == Metric::Cosine && panel == 0 {
                    for (length, row) in lengths.iter_mut().zip(a.chunks_exact(width)) {
                        *length = length_of(simd, row);
                    }
                }
                for ((row, sums), &length) in tile.zip(&sums).zip(&*lengths) {
                    let used = best.len().div_ceil(EIGHT);
                    let (to, sums) = (scores.as_chunks_mut::<EIGHT>().0, sums.0.as_chunks::<EIGHT>().0);
                    for (to, sums) in to.iter_mut().zip(sums).take(used) {
                        for (to, sum) in to.iter_mut().zip(sums) {
                            *to = f64::from(score(*sum, length));
                        }
                    }
                    let scores_of_row = &mut scores[..best.len()];
                    // Not `all`: with a branch for each score a search takes a tenth longer, and of 32 numbers a quarter.
                    if !scores_of_row.iter().fold(true, |all, &score| all & metric.holds(score, length)) {
                        let numbers = &block[row * width..(row + 1) * width];
                        for (query, score) in scores_of_row.iter_mut().enumerate() {
                            if !metric.holds(*score, length) {
                                *score = metric.exact(b.iter().map(|column| column.0[query]), numbers);
                            }
                        }
                    }
                    let row = rows.start + row;
                    best.push(numbers.map_or(row, |numbers| numbers[row]), &scores);
                }
            }
        }
    }
}

/// Returns the length of a vector.
#[inline(always)]
fn length_of<S: Simd>(simd: S, row: &[f32]) -> f32 {
    let mut squares = Row::ZERO;
    let (whole, rest) = row.as_chunks::<PANEL>();
    for x in whole {
        squares.0.iter_mut().zip(x).for_each(|(sum, x)| *sum += x * x);
    }
    squares.0.iter_mut().zip(rest).for_each(|(sum, x)| *sum += x * x);
    let mut sum = Sums::zero(simd);
    for at in (0..PANEL).step_by(S::LANES) {
        sum.add(simd, at, simd.load(&squares, at));
    }
    sum.total(simd).sqrt()
}

/// (q − x)²; |q|² − 2q·x + |x|² would lose half the digits where x is close to q.
#[derive(Clone, Copy)]
struct SquaredDifference;

impl Measure for SquaredDifference {
    #[inline(always)]
    fn add<S: Simd>(self, simd: S, q: S::V, x: S::V, sum: S::V) -> S::V {
        let difference = simd.sub(q, x);
        simd.fma(difference, difference, sum)
    }
}

/// |q − x|.
#[derive(Clone, Copy)]
struct AbsoluteDifference;

impl Measure for AbsoluteDifference {
    #[inline(always)]
    fn add<S: Simd>(self, simd: S, q: S::V, x: S::V, sum: S::V) -> S::V {
        let difference = simd.sub(q, x);
        simd.add(simd.max(difference, simd.sub(simd.splat(0.0), difference)), sum)
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
            Metric::Cosine => dot / pairs().map(|(_, x)| x * x).sum::<f64>().sqrt().max(1e-300),
            Metric::Euclidean => -pairs().map(|(q, x)| (q - x).powi(2)).sum::<f64>().sqrt(),
            Metric::Manhattan => -pairs().map(|(q, x)| (q - x).abs()).sum::<f64>(),
        }
    }

    /// Sums of hundreds of numbers, one after the other, are off by some units in the last place.
    fn tolerance(score: f64) -> f64 {
        1e-4 + 1e-6 * score.abs()
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
                        assert!(
                            (hit.score - expected).abs() < tolerance(expected),
                            "{} {metric:?}: {hit:?} {expected}",
                            set.name()
                        );
                    }
                    let lowest = hits.last().unwrap().score;
                    let missed = all.iter().filter(|&&score| score > lowest + tolerance(lowest)).count();
                    assert!(missed <= hits.len(), "{} {metric:?}: {missed} are above {lowest}", set.name());
                }
            }
        }
    }

    /// Sums of blocks of 512 numbers are about half as far off as the bounds, one sum of all numbers further.
    #[test]
    #[cfg_attr(miri, ignore = "multiplies 5 million numbers for each metric")]
    fn sums_over_wide_vectors_are_as_exact_as_those_of_blocks() {
        let (width, count, queries) = (4096, 40, 33);
        let (rows, asked) = (numbers(count * width, 5), numbers(queries * width, 6));
        for (set, metric) in instruction_sets().into_iter().flat_map(|set| METRICS.map(|metric| (set, metric))) {
            let found = search(Execution::on_this_thread(set), &asked, &rows, width, metric, count);
            let alone = search(Execution::on_this_thread(set), &asked[..width], &rows, width, metric, count);
            assert_eq!(alone[0], found[0], "{} {metric:?}: the score depends on other queries", set.name());
            let mut squares = 0.0;
            for (query, hits) in asked.chunks(width).zip(&found) {
                for hit in hits {
                    let row = &rows[hit.row * width..][..width];
                    let expected = score(metric, query, row);
                    let scale = match metric {
                        Metric::Dot => score(Metric::Dot, query, query),
                        Metric::Cosine => score(Metric::Dot, query, query).sqrt(),
                        _ => expected.abs(),
                    };
                    let error = (hit.score - expected).abs() / scale / f64::from(f32::EPSILON);
                    squares += error * error;
                }
            }
            let mean = (squares / (count * queries) as f64).sqrt();
            let most = match metric {
                Metric::Dot | Metric::Cosine => 0.1,
                Metric::Euclidean => 1.2,
                Metric::Manhattan => 2.4,
            };
            assert!(mean < most, "{} {metric:?}: {mean} units in the last place", set.name());
        }
    }

    /// A row has one length, whichever panel of queries it is compared with.
    #[test]
    fn the_cosine_of_equal_queries_is_the_same_in_each_panel() {
        let (width, count) = (40, 30);
        let rows = numbers(count * width, 7);
        let query = numbers(width, 8);
        for set in instruction_sets() {
            let found = search(Execution::on_this_thread(set), &query.repeat(70), &rows, width, Metric::Cosine, count);
            assert!(found.iter().all(|hits| hits == &found[0]), "{}", set.name());
            for hit in &found[0] {
                let expected = score(Metric::Cosine, &query, &rows[hit.row * width..][..width]);
                assert!((hit.score - expected).abs() < tolerance(expected), "{}: {hit:?} {expected}", set.name());
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

    /// Their float32 squares are infinite or 0. Such rows stand beside others, and in several tiles and panels.
    #[test]
    fn scores_of_rows_of_huge_and_tiny_numbers_are_those_of_the_formula() {
        let (width, count, queries) = (37, 40, 35);
        let mut rows = numbers(count * width, 9);
        for (row, scale) in rows.chunks_mut(width).zip([1e38, 1.0, 1e20, 1e-12, 3e-25, 1e-42, 1e18].iter().cycle()) {
            row.iter_mut().for_each(|x| *x *= scale);
        }
        let mut asked = numbers(queries * width, 10);
        asked[..width].copy_from_slice(&rows[4 * width..5 * width]);
        for (set, metric) in instruction_sets().into_iter().flat_map(|set| METRICS.map(|metric| (set, metric))) {
            for asked in [&asked, &asked[..width], &asked[width..2 * width]] {
                let found = search(Execution::on_this_thread(set), asked, &rows, width, metric, count);
                for (query, hits) in asked.chunks(width).zip(found) {
                    for hit in hits {
                        let expected = score(metric, query, &rows[hit.row * width..][..width]);
                        let error = (hit.score - expected).abs();
                        let most = if expected.abs() < 1e-12 { 0.02 * expected.abs() } else { tolerance(expected) };
                        assert!(error <= most || metric == Metric::Dot, "{} {metric:?} {hit:?} {expected}", set.name());
                        assert!(hit.score.is_finite());
                    }
                }
            }
        }
    }

    /// Their float32 products with some rows are infinite, and the cosines are not.
    #[test]
    fn cosines_with_queries_of_huge_numbers_are_those_of_the_formula() {
        let (width, count, queries) = (37, 40, 35);
        let (mut rows, mut asked) = (numbers(count * width, 9), numbers(queries * width, 10));
        for (row, scale) in rows.chunks_mut(width).zip([1.0, 1e8, 1e18].iter().cycle()) {
            row.iter_mut().for_each(|x| *x *= scale);
        }
        asked.iter_mut().for_each(|x| *x *= 1e30);
        for set in instruction_sets() {
            for asked in [&asked, &asked[..width]] {
                let found = search(Execution::on_this_thread(set), asked, &rows, width, Metric::Cosine, count);
                for (query, hits) in asked.chunks(width).zip(found) {
                    let length = score(Metric::Dot, query, query).sqrt();
                    for hit in hits {
                        let expected = score(Metric::Cosine, query, &rows[hit.row * width..][..width]);
                        assert!((hit.score - expected).abs() <= 1e-6 * length, "{} {hit:?} {expected}", set.name());
                    }
                }
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
