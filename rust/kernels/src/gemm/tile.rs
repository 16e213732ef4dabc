//! The tile: all the arithmetic of a matrix product happens here.

use crate::arch::Simd;
use crate::matrix::{PANEL, Row, View};

/// A tile of a product: out = a·b, of a few rows of `a` (as many as `out` has) and `b` [K, 32].
pub struct Tile<'a> {
    /// The rows, of K columns or more.
    pub a: View<'a>,
    /// One panel of packed weights, a row for each of the K columns of `a`.
    pub b: &'a [Row],
    /// Where the sums go.
    pub out: &'a mut [Row],
}

/// Panels of K over which a sum stays in registers: 512 numbers. Sums of blocks are added, which keeps the rounding of long
/// sums small.
pub const BLOCK: usize = 16;

/// A tile of `ROWS` rows, computed `VECTORS` vectors at a time.
///
/// Each element is the sum of its blocks of K, first to last; within a block, of its products, first to last.
#[inline(always)]
pub fn multiply_tile<S: Simd, const ROWS: usize, const VECTORS: usize>(simd: S, tile: Tile<'_>) {
    let out: &mut [Row; ROWS] = tile.out.try_into().expect("as many rows as the caller says");
    for at in (0..PANEL).step_by(VECTORS * S::LANES) {
        for (block, b) in tile.b.chunks(BLOCK * PANEL).enumerate() {
            let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
            let (whole, rest) = b.as_chunks::<PANEL>();
            let first = block * BLOCK;
            for (p, b) in whole.iter().enumerate() {
                let a = rows_of::<ROWS>(tile.a, first + p);
                for (k, b) in b.iter().enumerate() {
                    multiply_row(simd, a, k, b, at, &mut sums);
                }
            }
            if !rest.is_empty() {
                let a = rows_of::<ROWS>(tile.a, first + whole.len());
                for (k, b) in rest.iter().enumerate().take(PANEL) {
                    multiply_row(simd, a, k, b, at, &mut sums);
                }
            }
            for (row, sums) in out.iter_mut().zip(sums) {
                for (v, sum) in sums.into_iter().enumerate() {
                    let at = at + v * S::LANES;
                    simd.store(row, at, if block == 0 { sum } else { simd.add(simd.load(row, at), sum) });
                }
            }
        }
        if tile.b.is_empty() {
            out.fill(Row::ZERO);
        }
    }
}

/// One panel of the rows of a tile: one run of memory, so that every number has a fixed distance from the first.
#[inline(always)]
fn rows_of<const ROWS: usize>(a: View<'_>, panel: usize) -> &[Row; ROWS] {
    a.panel(panel).try_into().expect("as many rows as the tile has")
}

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
