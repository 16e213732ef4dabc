//! The tile of a product of transposed rows, aᵀ·b: the sum of outer products of the rows of two matrices.
//!
//! The gradient of a weight is such a product, dWᵀ = dYᵀ·X, whose sum runs over the tokens. Panels hold the tokens of a few
//! columns one after the other, so both factors are read as they are: for each token, one row of `b` is loaded and multiplied
//! by one number of `a` for every row of the tile.

use super::shape::{BLOCK_PANELS, PAIR_BLOCK_PANELS, store_block};
use crate::arch::{PairDot, PairTileKernel, Simd, TileKernel};
use crate::matrix::{PANEL, PairRow, Row};

/// A tile of a product, out += aᵀ·b, with a row for each of as many columns of `a` as `out` has rows.
///
/// The products of 128 rows, or of 512 in bfloat16, are added up in registers, first to last, and then added to `out`.
pub struct OuterTile<'a> {
    /// One panel [K, 32].
    pub a: &'a [Row],
    /// The column of `a` that the first row of `out` belongs to.
    pub first: usize,
    /// One panel [K, 32].
    pub b: &'a [Row],
    /// The sums [rows, 32], to which the product is added.
    pub out: &'a mut [Row],
}

impl TileKernel for OuterTile<'_> {
    fn rows(&self) -> usize {
        self.out.len()
    }

    #[inline(always)]
    fn run<S: Simd, const ROWS: usize, const VECTORS: usize>(self, simd: S) {
        const BLOCK: usize = BLOCK_PANELS * PANEL;
        assert!(self.a.len() == self.b.len() && self.first + ROWS <= PANEL);
        let out: &mut [Row; ROWS] = self.out.try_into().expect("ROWS is the length of `out`");
        for at in (0..PANEL).step_by(VECTORS * S::LANES) {
            for (a, b) in self.a.chunks(BLOCK).zip(self.b.chunks(BLOCK)) {
                let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
                for (a, b) in a.iter().zip(b) {
                    let mut vectors = [simd.splat(0.0); VECTORS];
                    for (v, vector) in vectors.iter_mut().enumerate() {
                        *vector = simd.load(b, at + v * S::LANES);
                    }
                    let a: &[f32; ROWS] = a.0[self.first..][..ROWS].try_into().expect("a slice of ROWS numbers");
                    for (a, sums) in a.iter().zip(&mut sums) {
                        let a = simd.splat(*a);
                        for (sum, b) in sums.iter_mut().zip(vectors) {
                            *sum = simd.fma(a, b, *sum);
                        }
                    }
                }
                store_block(simd, sums, false, out, at);
            }
        }
    }
}

/// As [`OuterTile`], for bfloat16 numbers in pairs of rows: a row of a factor holds the columns of two tokens.
pub struct PairOuterTile<'a> {
    /// One panel [⌈K/2⌉, 32] of pairs.
    pub a: &'a [PairRow],
    /// The column of `a` that the first row of `out` belongs to.
    pub first: usize,
    /// One panel [⌈K/2⌉, 32] of pairs.
    pub b: &'a [PairRow],
    /// The sums [rows, 32], to which the product is added.
    pub out: &'a mut [Row],
}

impl PairTileKernel for PairOuterTile<'_> {
    fn rows(&self) -> usize {
        self.out.len()
    }

    #[inline(always)]
    fn run<S: Simd, D: PairDot<S>, const ROWS: usize, const VECTORS: usize>(self, simd: S, dot: D) {
        const BLOCK: usize = PAIR_BLOCK_PANELS * PANEL / 2;
        assert!(self.a.len() == self.b.len() && self.first + ROWS <= PANEL);
        let out: &mut [Row; ROWS] = self.out.try_into().expect("ROWS is the length of `out`");
        for at in (0..PANEL).step_by(VECTORS * S::LANES) {
            for (a, b) in self.a.chunks(BLOCK).zip(self.b.chunks(BLOCK)) {
                let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
                for (a, b) in a.iter().zip(b) {
                    let mut vectors = [dot.splat(simd, 0); VECTORS];
                    for (v, vector) in vectors.iter_mut().enumerate() {
                        *vector = dot.load(simd, b, at + v * S::LANES);
                    }
                    let a: &[u32; ROWS] = a.0[self.first..][..ROWS].try_into().expect("a slice of ROWS pairs");
                    for (a, sums) in a.iter().zip(&mut sums) {
                        let a = dot.splat(simd, *a);
                        for (sum, b) in sums.iter_mut().zip(vectors) {
                            *sum = dot.dot(simd, a, b, *sum);
                        }
                    }
                }
                store_block(simd, sums, false, out, at);
            }
        }
    }
}
