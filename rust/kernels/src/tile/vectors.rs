//! The tile of stored vectors: a few rows, read where they are, beside the packed queries of a panel.
//!
//! As [`Tile`](super::Tile), for rows that are stored one after the other and used once: packing them first would write as
//! much as the sums read.

use super::ahead::Ahead;
use super::shape::{BLOCK_PANELS, store_block};
use crate::arch::{Simd, TileKernel};
use crate::matrix::{PANEL, Row};

/// What is summed over the numbers of two vectors.
pub trait Measure: Copy {
    /// Returns `sum` plus the terms of the numbers `q` of queries and the number `x` of a row, which is in all lanes.
    fn add<S: Simd>(self, simd: S, q: S::V, x: S::V, sum: S::V) -> S::V;
}

/// The product, q·x.
#[derive(Clone, Copy)]
pub struct Product;

impl Measure for Product {
    #[inline(always)]
    fn add<S: Simd>(self, simd: S, q: S::V, x: S::V, sum: S::V) -> S::V {
        simd.fma(x, q, sum)
    }
}

/// The sums of a few rows and the queries of a panel.
///
/// Each is computed from its row and its query alone, as the sum of its blocks of 128 numbers, first to last, and within
/// a block from the first number to the last: so it does not depend on how many rows or queries there are, and the
/// rounding error of wide vectors stays small.
pub struct VectorTile<'a, M> {
    /// What is summed.
    pub measure: M,
    /// The rows [rows, width], one after the other.
    pub a: &'a [f32],
    /// A panel of queries [width, 32], as [`pack_vectors`] packs them.
    pub b: &'a [Row],
    /// How many queries the panel has. The sums of the columns beyond them are unspecified.
    pub queries: usize,
    /// What is requested meanwhile.
    pub ahead: Ahead,
    /// The sums [rows, 32], overwritten.
    pub out: &'a mut [Row],
}

impl<M: Measure> TileKernel for VectorTile<'_, M> {
    fn rows(&self) -> usize {
        self.out.len()
    }

    #[inline(always)]
    fn run<S: Simd, const ROWS: usize, const VECTORS: usize>(mut self, simd: S) {
        for at in (0..self.queries.min(PANEL)).step_by(VECTORS * S::LANES) {
            // With few queries, most of the work would be done for columns without one.
            if self.queries - at <= S::LANES {
                self.columns::<S, ROWS, 1>(simd, at);
            } else {
                self.columns::<S, ROWS, VECTORS>(simd, at);
            }
        }
    }
}

impl<M: Measure> VectorTile<'_, M> {
    /// Computes the columns `at..at + VECTORS * LANES`.
    #[inline(always)]
    fn columns<S: Simd, const ROWS: usize, const VECTORS: usize>(&mut self, simd: S, at: usize) {
        const BLOCK: usize = BLOCK_PANELS * PANEL;
        let width = self.b.len();
        let out: &mut [Row; ROWS] = (&mut *self.out).try_into().expect("ROWS is the length of `out`");
        for (block, b) in self.b.chunks(BLOCK).enumerate() {
            let mut a: [&[f32]; ROWS] = [&[]; ROWS];
            for (i, a) in a.iter_mut().enumerate() {
                *a = &self.a[i * width + block * BLOCK..][..b.len()];
            }
            let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
            for (k, b) in b.iter().enumerate() {
                self.ahead.request_line();
                let mut vectors = [simd.splat(0.0); VECTORS];
                for (v, vector) in vectors.iter_mut().enumerate() {
                    *vector = simd.load(b, at + v * S::LANES);
                }
                for (a, sums) in a.iter().zip(&mut sums) {
                    let x = simd.splat(a[k]);
                    for (sum, q) in sums.iter_mut().zip(vectors) {
                        *sum = self.measure.add(simd, q, x, *sum);
                    }
                }
            }
            store_block(simd, sums, block == 0, out, at);
        }
        if self.b.is_empty() {
            out.fill(Row::ZERO);
        }
    }
}

/// Packs vectors [n, width] as the queries of tiles: ⌈n/32⌉ panels of `width` rows, of which row k has number k of the
/// panel's vectors, and 0 beyond the last.
///
/// # Panics
///
/// If the vectors are not whole.
pub fn pack_vectors(vectors: &[f32], width: usize) -> Vec<Row> {
    assert!(vectors.is_empty() || vectors.len().is_multiple_of(width), "vectors of {width} numbers");
    let mut rows = Vec::with_capacity(vectors.len().div_ceil((PANEL * width).max(1)) * width);
    for vectors in vectors.chunks((PANEL * width).max(1)) {
        let start = rows.len();
        rows.resize(start + width, Row::ZERO);
        for (n, vector) in vectors.chunks_exact(width).enumerate() {
            for (x, row) in vector.iter().zip(&mut rows[start..]) {
                row.0[n] = *x;
            }
        }
    }
    rows
}
