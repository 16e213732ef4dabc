//! MaxSim, the score of late interaction: for each token of a query the greatest dot product with a token of the document,
//! summed over the tokens of the query.
//!
//! The tokens of queries are packed like the weights of a dense layer, 32 to a panel, and the tokens of documents are
//! read where they are, row by row. A tile has the dot products of a few document tokens with the query tokens of a
//! panel; their maxima are all that leaves it.
//!
//! A score has the same bits whichever others are computed with it and however many threads there are: a dot product depends
//! on its two tokens only, a maximum has no order, and sums run from the first token of the query to the last.
//!
//! # Examples
//!
//! ```
//! use wordpiece_kernels::maxsim::{Queries, maxsim};
//! use wordpiece_kernels::{Execution, InstructionSet};
//!
//! let queries = Queries::new(&[1.0, 0.0, 0.0, 1.0], 2, &[0, 2]); // one query of two tokens
//! let documents = [0.5, 0.5, 2.0, -1.0, 3.0, 4.0]; // of two tokens and of one
//! let mut scores = [0.0; 2];
//! maxsim(Execution::on_this_thread(InstructionSet::detect()), &queries, &documents, &[0, 2, 3], &mut scores);
//! assert_eq!(scores, [2.5, 7.0]); // 2 + ½, and 3 + 4
//! ```

use std::ops::Range;

use wordpiece_parallel::map_with;

use crate::arch::{self, Kernel, MAX_TILE_ROWS, Simd};
use crate::execution::Execution;
use crate::matrix::{PANEL, Row, panels};
use crate::tile::{Ahead, Product, VectorTile, pack_vectors, tiles};

/// The score of a document without tokens.
pub const EMPTY_DOCUMENT: f32 = -1e9;

/// Document tokens of a task: enough to amortize handing it out, few enough that they stay in the second-level cache while
/// all queries are compared with them.
const TASK_TOKENS: usize = 512;

/// The most documents of a task.
const TASK_DOCUMENTS: usize = 256;

/// The tokens of queries, packed by panels of 32; each query begins at a panel.
pub struct Queries {
    /// For each panel `width` rows: number k of all its tokens.
    rows: Vec<Row>,
    /// The number of tokens of each query.
    counts: Vec<usize>,
    width: usize,
}

impl Queries {
    /// Packs queries: `vectors` are the vectors of all tokens [tokens, width], row by row; the tokens of query i are
    /// `offsets[i]..offsets[i + 1]`.
    ///
    /// # Panics
    ///
    /// If the offsets fall, or there are fewer tokens.
    pub fn new(vectors: &[f32], width: usize, offsets: &[usize]) -> Queries {
        // Before memory is allocated by them.
        let end = offsets.last().map_or(Some(0), |last| last.checked_mul(width));
        assert!(
            offsets.is_sorted() && end.is_some_and(|end| end <= vectors.len()),
            "offsets of the tokens that there are"
        );
        let counts: Vec<usize> = offsets.windows(2).map(|ends| ends[1] - ends[0]).collect();
        let mut rows = Vec::with_capacity(counts.iter().map(|count| panels(*count) * width).sum());
        for ends in offsets.windows(2) {
            let tokens = &vectors[ends[0] * width..ends[1] * width];
            rows.extend(pack_vectors(tokens, width));
        }
        Queries { rows, counts, width }
    }

    /// Returns the number of queries.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there are no queries.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the number of tokens of each query.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }
}

/// Computes the scores [queries, documents] of every query with every document.
///
/// `documents` are the vectors of all their tokens, row by row, and `offsets` where each document begins, and the last ends,
/// in tokens. A document without tokens has the score [`EMPTY_DOCUMENT`], and a query without tokens 0.
///
/// # Panics
///
/// If the offsets fall, there are fewer tokens, or `scores` has another length.
pub fn maxsim(execution: Execution, queries: &Queries, documents: &[f32], offsets: &[usize], scores: &mut [f32]) {
    let count = offsets.len().saturating_sub(1);
    assert_eq!(scores.len(), queries.len() * count, "a score for each query and document");
    let tasks = group_documents(offsets);
    let parts = map_with(tasks.clone(), execution.pool, Vec::new, |greatest, range| {
        let mut scores = vec![0.0; queries.len() * range.len()];
        let mut first_row = 0;
        for (query, scores) in scores.chunks_mut(range.len()).enumerate() {
            let rows = panels(queries.counts[query]) * queries.width;
            let query = Query {
                rows: &queries.rows[first_row..first_row + rows],
                count: queries.counts[query],
                width: queries.width,
            };
            first_row += rows;
            let offsets = &offsets[range.start..=range.end];
            arch::run(execution.instruction_set, Score { query, documents, offsets, greatest, scores });
        }
        scores
    });
    for (range, part) in tasks.into_iter().zip(parts) {
        for (query, from) in part.chunks(range.len()).enumerate() {
            scores[query * count + range.start..query * count + range.end].copy_from_slice(from);
        }
    }
}

/// Computes the score of each query with the document of the same number; otherwise as [`maxsim`].
///
/// # Panics
///
/// As [`maxsim`], and if there are not as many documents as queries.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::maxsim::{Queries, maxsim_pairwise};
/// use wordpiece_kernels::{Execution, InstructionSet};
///
/// let queries = Queries::new(&[1.0, 0.0, 0.0, 1.0], 2, &[0, 1, 2]); // two queries of one token
/// let documents = [0.5, 0.5, 2.0, -1.0, 3.0, 4.0]; // of two tokens and of one
/// let mut scores = [0.0; 2];
/// maxsim_pairwise(Execution::on_this_thread(InstructionSet::detect()), &queries, &documents, &[0, 2, 3], &mut scores);
/// assert_eq!(scores, [2.0, 4.0]);
/// ```
pub fn maxsim_pairwise(
    execution: Execution,
    queries: &Queries,
    documents: &[f32],
    offsets: &[usize],
    scores: &mut [f32],
) {
    assert!(queries.len() + 1 == offsets.len() && scores.len() == queries.len(), "a document for each query");
    let mut next = 0;
    let pairs = scores.iter_mut().enumerate().map(|(i, score)| {
        let start = next;
        next += panels(queries.counts[i]) * queries.width;
        (i, start..next, score)
    });
    map_with(pairs.collect(), execution.pool, Vec::new, |greatest, (i, rows, score)| {
        let query = Query { rows: &queries.rows[rows], count: queries.counts[i], width: queries.width };
        let scores = std::slice::from_mut(score);
        arch::run(execution.instruction_set, Score { query, documents, offsets: &offsets[i..i + 2], greatest, scores });
    });
}

/// Groups consecutive documents into tasks of bounded size.
fn group_documents(offsets: &[usize]) -> Vec<Range<usize>> {
    let mut tasks = Vec::new();
    let mut start = 0;
    let count = offsets.len().saturating_sub(1);
    for i in 1..count {
        if offsets[i + 1] - offsets[start] > TASK_TOKENS || i - start == TASK_DOCUMENTS {
            tasks.push(start..i);
            start = i;
        }
    }
    if count > 0 {
        tasks.push(start..count);
    }
    tasks
}

/// One packed query.
struct Query<'a> {
    rows: &'a [Row],
    count: usize,
    width: usize,
}

/// Scores consecutive documents for one query.
struct Score<'a> {
    query: Query<'a>,
    /// The vectors of all documents.
    documents: &'a [f32],
    /// Where the tokens of each of these documents begin, and the last end.
    offsets: &'a [usize],
    /// A row for each document: the greatest dot products with the tokens of a panel; a scratch buffer.
    greatest: &'a mut Vec<Row>,
    scores: &'a mut [f32],
}

impl Kernel for Score<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Score { query, documents, offsets, greatest, scores } = self;
        let Query { rows, count, width } = query;
        let (first, last) = (offsets[0], offsets[scores.len()]);
        let documents = &documents[first * width..last * width];
        let mut sums = vec![0.0; scores.len()];
        let mut products = [Row::ZERO; MAX_TILE_ROWS];
        for (panel, b) in rows.chunks(width.max(1)).enumerate() {
            greatest.clear();
            greatest.resize(scores.len(), Row([f32::NEG_INFINITY; PANEL]));
            let mut document = 0;
            let queries = (count - panel * PANEL).min(PANEL);
            for tokens in tiles(last - first, S::TILE_ROWS) {
                let products = &mut products[..tokens.len()];
                let a = &documents[tokens.start * width..tokens.end * width];
                let out = &mut *products;
                simd.run_tile(VectorTile { measure: Product, a, b, queries, ahead: Ahead::NOTHING, out });
                for (token, products) in tokens.zip(products) {
                    while first + token >= offsets[document + 1] {
                        document += 1;
                    }
                    let to = &mut greatest[document];
                    for at in (0..PANEL).step_by(S::LANES) {
                        simd.store(to, at, simd.max(simd.load(products, at), simd.load(to, at)));
                    }
                }
            }
            for (sum, greatest) in sums.iter_mut().zip(greatest.iter()) {
                *sum += greatest.0[..queries].iter().map(|x| f64::from(*x)).sum::<f64>();
            }
        }
        for ((score, sum), ends) in scores.iter_mut().zip(sums).zip(offsets.windows(2)) {
            *score = if ends[0] == ends[1] { EMPTY_DOCUMENT } else { sum as f32 };
        }
    }
}
