//! The best of many scores, without sorting all of them.

use std::cmp::Ordering;

use crate::matrix::PANEL;

/// A row of the collection, and its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The row, counted from 0.
    pub row: usize,
    /// Its score; float32 scores and whole numbers up to 2⁵³ are exact.
    pub score: f64,
}

impl Hit {
    /// Orders hits: the highest score first, of equal scores the lower row; NaN comes last.
    fn order(&self, other: &Hit) -> Ordering {
        let scores = other.score.partial_cmp(&self.score);
        scores.unwrap_or_else(|| self.score.is_nan().cmp(&other.score.is_nan())).then(self.row.cmp(&other.row))
    }
}

/// Keeps the highest `most` of the scores that it is given.
///
/// Up to twice as many hits are kept, and the lower half is dropped when they are full: a score costs one comparison if it
/// is not among the best, and a constant time on average if it is.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::search::TopK;
///
/// let mut best = TopK::new(2);
/// for (row, score) in [0.5, 2.0, 1.0, 2.0].into_iter().enumerate() {
///     best.push(row, score);
/// }
/// let rows: Vec<usize> = best.into_sorted().iter().map(|hit| hit.row).collect();
/// assert_eq!(rows, [1, 3]);
/// ```
#[derive(Debug, Clone)]
pub struct TopK {
    most: usize,
    hits: Vec<Hit>,
    /// Once there are `most` hits: a score that is not above it is not among the best. While it is NaN, every number is.
    threshold: f64,
}

impl TopK {
    /// Returns an empty collection of the `most` best.
    pub fn new(most: usize) -> TopK {
        TopK { most, hits: Vec::new(), threshold: f64::NEG_INFINITY }
    }

    /// Adds a score, whose row is higher than those added before.
    #[inline(always)]
    pub fn push(&mut self, row: usize, score: f64) {
        // Equal scores are not above: theirs is the higher row. While there are too few numbers, everything counts.
        if score > self.threshold || !self.is_full() {
            self.insert(Hit { row, score });
        }
    }

    fn is_full(&self) -> bool {
        self.hits.len() >= self.most && !self.threshold.is_nan()
    }

    #[inline(never)]
    fn insert(&mut self, hit: Hit) {
        self.hits.push(hit);
        if self.hits.len() == self.most || self.hits.len() == self.capacity() {
            self.prune();
        }
    }

    /// Returns the lowest of the best, once there are as many as are kept: a lower score is not among them.
    pub(super) fn lowest(&mut self) -> f64 {
        if self.hits.len() > self.most {
            self.prune();
        }
        self.threshold.max(f64::NEG_INFINITY) // −∞ for NaN
    }

    fn capacity(&self) -> usize {
        2 * self.most.max(32)
    }

    /// Drops all but the best, and sets the threshold to the lowest of them.
    fn prune(&mut self) {
        let Some(last) = self.most.checked_sub(1) else { return self.hits.clear() };
        if last < self.hits.len() {
            let (_, lowest, _) = self.hits.select_nth_unstable_by(last, Hit::order);
            self.threshold = lowest.score;
            self.hits.truncate(self.most);
        }
    }

    /// Adds the hits of another collection, of other rows.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece_kernels::search::TopK;
    ///
    /// let (mut first, mut second) = (TopK::new(1), TopK::new(1));
    /// first.push(0, 1.0);
    /// second.push(7, 3.0);
    /// first.merge(second);
    /// assert_eq!(first.into_sorted()[0].row, 7);
    /// ```
    pub fn merge(&mut self, other: TopK) {
        self.hits.extend(other.hits);
        self.prune();
    }

    /// Returns the best, the highest score first, of equal scores the lower row first.
    pub fn into_sorted(mut self) -> Vec<Hit> {
        self.prune();
        self.hits.sort_unstable_by(Hit::order);
        self.hits
    }
}

/// The scores of a row of the collection with the queries of a panel.
pub(super) type Scores = [f64; PANEL];

/// The best of each query of a panel, to which the scores of one row after the other are added.
///
/// Nearly all scores are not among the best, which one comparison of whole vectors shows.
pub(super) struct PanelOfBest<'a> {
    best: &'a mut [TopK],
    /// The threshold of each query; infinite in the columns without one.
    thresholds: Scores,
    /// Whether all have as many as they keep: while one has not, everything counts.
    are_full: bool,
}

impl<'a> PanelOfBest<'a> {
    /// Adds to the best of up to 32 queries.
    #[inline(always)]
    pub fn new(best: &'a mut [TopK]) -> PanelOfBest<'a> {
        let mut panel = PanelOfBest { best, thresholds: [f64::INFINITY; PANEL], are_full: false };
        panel.read_thresholds();
        panel
    }

    /// Returns the number of queries.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.best.len()
    }

    /// Adds the scores of a row, which is higher than those added before; what stands beyond the last query is not read.
    #[inline(always)]
    pub fn push(&mut self, row: usize, scores: &Scores) {
        // Eight flags, because the compiler makes vector instructions of independent ones only.
        let mut are_better = [0_u64; 8];
        for (scores, thresholds) in scores.as_chunks::<8>().0.iter().zip(self.thresholds.as_chunks::<8>().0) {
            for ((is_better, score), threshold) in are_better.iter_mut().zip(scores).zip(thresholds) {
                *is_better |= u64::from(score > threshold);
            }
        }
        if !self.are_full || are_better != [0; 8] {
            self.insert(row, scores);
        }
    }

    #[inline(never)]
    fn insert(&mut self, row: usize, scores: &Scores) {
        for (best, score) in self.best.iter_mut().zip(scores) {
            best.push(row, *score);
        }
        self.read_thresholds();
    }

    fn read_thresholds(&mut self) {
        self.are_full = self.best.iter().all(TopK::is_full);
        for (to, best) in self.thresholds.iter_mut().zip(&*self.best) {
            *to = best.threshold;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Hit, PANEL, PanelOfBest, TopK};

    /// Sorts all scores.
    fn expected(scores: &[f64], most: usize) -> Vec<usize> {
        let mut hits: Vec<Hit> = scores.iter().enumerate().map(|(row, &score)| Hit { row, score }).collect();
        let key = |hit: &Hit| if hit.score.is_nan() { f64::NEG_INFINITY } else { hit.score };
        hits.sort_by(|a, b| key(b).total_cmp(&key(a)).then(a.row.cmp(&b.row)));
        hits.sort_by_key(|hit| hit.score.is_nan());
        hits.truncate(most);
        hits.into_iter().map(|hit| hit.row).collect()
    }

    fn rows(best: TopK) -> Vec<usize> {
        best.into_sorted().into_iter().map(|hit| hit.row).collect()
    }

    #[test]
    fn the_best_are_those_of_a_stable_sort_in_any_division() {
        let most_scores = if cfg!(miri) { 70 } else { 1000 };
        for (count, distinct) in [(0, 1), (1, 1), (70, 3), (most_scores, 7), (most_scores, 100_000)] {
            let scores: Vec<f64> = (0..count).map(|i| f64::from((i * 7919 + 13) % 104_729 % distinct)).collect();
            for most in [0, 1, 2, 10, 31, 33, 64, 500, 2000] {
                for part in [1, 50, 2000] {
                    let mut best = TopK::new(most);
                    for (number, scores) in scores.chunks(part).enumerate() {
                        let mut own = TopK::new(most);
                        scores.iter().enumerate().for_each(|(i, &score)| own.push(number * part + i, score));
                        best.merge(own);
                    }
                    assert_eq!(rows(best), expected(&scores, most), "{most} of {count} in parts of {part}");
                }
            }
        }
    }

    #[test]
    fn not_a_number_comes_last() {
        let (nan, least) = (f64::NAN, f64::NEG_INFINITY);
        let scores = [nan, 1.0, least, nan, f64::INFINITY, nan, -5.0, least, least];
        for most in 0..=scores.len() {
            let mut best = TopK::new(most);
            scores.iter().enumerate().for_each(|(row, &score)| best.push(row, score));
            assert_eq!(rows(best), expected(&scores, most), "{most}");
            let mut best = [TopK::new(most)];
            let mut panel = PanelOfBest::new(&mut best);
            scores.iter().enumerate().for_each(|(row, &score)| panel.push(row, &[score; PANEL]));
            assert_eq!(rows(best[0].clone()), expected(&scores, most), "{most} of a panel");
        }
    }
}
