//! The tile of float32 numbers: one fused multiply-add for each product.
//!
//! For each input k, the vectors of row k of the weights are loaded once and multiplied by one number of every row of the
//! tile. All sums stay in registers over a block of K.

use super::ahead::Ahead;
use super::shape::{BLOCK_PANELS, store_block};
use crate::arch::{Simd, TileKernel};
use crate::matrix::{PANEL, Row, View};

/// A tile of a product, out = a·b, with as many rows of `a` as `out` has.
pub struct Tile<'a> {
    /// The rows [rows, K]. Panels must hold K columns; columns beyond K are not read.
    pub a: View<'a>,
    /// One panel of packed weights [K, 32].
    pub b: &'a [Row],
    /// What is requested meanwhile, for the next panel.
    pub ahead: Ahead,
    /// Whether `out` is overwritten; otherwise the sums are added to it, block by block.
    pub is_first: bool,
    /// The sums [rows, 32].
    pub out: &'a mut [Row],
}

impl<'a> Tile<'a> {
    /// Returns the tile of out = a·b, which requests no memory for others.
    #[inline(always)]
    pub fn new(a: View<'a>, b: &'a [Row], out: &'a mut [Row]) -> Tile<'a> {
        Tile { a, b, ahead: Ahead::NOTHING, is_first: true, out }
    }
}

impl TileKernel for Tile<'_> {
    fn rows(&self) -> usize {
        self.out.len()
    }

    #[inline(always)]
    fn run<S: Simd, const ROWS: usize, const VECTORS: usize>(self, simd: S) {
        let out: &mut [Row; ROWS] = self.out.try_into().expect("ROWS is the length of `out`");
        let mut ahead = self.ahead;
        for at in (0..PANEL).step_by(VECTORS * S::LANES) {
            for (block, b) in self.b.chunks(BLOCK_PANELS * PANEL).enumerate() {
                let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
                let (whole, rest) = b.as_chunks::<PANEL>();
                let first = block * BLOCK_PANELS;
                for (p, b) in whole.iter().enumerate() {
                    let a = rows_of_panel::<ROWS>(self.a, first + p);
                    for (k, b) in b.iter().enumerate() {
                        ahead.request_row();
                        multiply_row(simd, a, k, b, at, &mut sums);
                    }
                }
                if !rest.is_empty() {
                    let a = rows_of_panel::<ROWS>(self.a, first + whole.len());
                    for (k, b) in rest.iter().enumerate().take(PANEL) {
                        multiply_row(simd, a, k, b, at, &mut sums);
                    }
                }
                store_block(simd, sums, self.is_first && block == 0, out, at);
            }
            if self.is_first && self.b.is_empty() {
                out.fill(Row::ZERO);
            }
        }
    }
}

/// Returns one panel of the rows of a tile as an array, whose elements have constant distances from the first.
#[inline(always)]
fn rows_of_panel<const ROWS: usize>(a: View<'_>, panel: usize) -> &[Row; ROWS] {
    a.panel(panel).try_into().expect("`a` and `out` have the same number of rows")
}

/// Adds the products of column `k` of `a` and row `b` to the sums of the columns `at..at + VECTORS * LANES`.
#[inline(always)]
fn multiply_row<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    a: &[Row; ROWS],
    k: usize,
    b: &Row,
    at: usize,
    sums: &mut [[S::V; VECTORS]; ROWS],
) {
    let mut vectors = [simd.splat(0.0); VECTORS];
    for (v, vector) in vectors.iter_mut().enumerate() {
        *vector = simd.load(b, at + v * S::LANES);
    }
    for (row, sums) in a.iter().zip(sums) {
        let a = simd.splat(row.0[k]);
        for (sum, b) in sums.iter_mut().zip(vectors) {
            *sum = simd.fma(a, b, *sum);
        }
    }
}
