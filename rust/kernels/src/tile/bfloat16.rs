//! The tile of bfloat16 numbers: products of pairs, sums in float32.
//!
//! It has the loops of the float32 tile, over pairs of inputs. The pairs of a row of weights and of a row of inputs are
//! multiplied by a [`PairDot`], which is one instruction where the CPU has it.
//!
//! A bfloat16 has 8 significant bits, so the product of two has at most 16 and is exact in float32, which has 24; what is
//! rounded are the sums. Where the CPU has no such instruction, pairs are widened to float32 and multiplied there.

use super::ahead::Ahead;
use super::matrices::multiply_rows;
use super::shape::{PAIR_BLOCK_PANELS, store_block};
use crate::arch::{MatrixDot, PairDot, PairMatrixTileKernel, PairTileKernel, Simd};
use crate::matrix::{HalfRow, PANEL, PairRow, Row, View};

/// How many pairs of columns a panel has.
const PAIRS: usize = PANEL / 2;

/// A tile of a product, out = a·b, of bfloat16 numbers, with as many rows of `a` as `out` has.
pub struct PairTile<'a> {
    /// The rows [rows, K], K rounded up to an even number. The column added by rounding up must be 0.
    pub a: View<'a, HalfRow>,
    /// One panel of packed weights, 16 rows of pairs for each panel of `a`.
    pub b: &'a [PairRow],
    /// What is requested meanwhile, for the next panel.
    pub ahead: Ahead,
    /// The sums [rows, 32], overwritten.
    pub out: &'a mut [Row],
}

impl PairTileKernel for PairTile<'_> {
    fn rows(&self) -> usize {
        self.out.len()
    }

    #[inline(always)]
    fn run<S: Simd, D: PairDot<S>, const ROWS: usize, const VECTORS: usize>(self, simd: S, dot: D) {
        let out: &mut [Row; ROWS] = self.out.try_into().expect("ROWS is the length of `out`");
        let mut ahead = self.ahead;
        for at in (0..PANEL).step_by(VECTORS * S::LANES) {
            for (block, b) in self.b.chunks(PAIR_BLOCK_PANELS * PAIRS).enumerate() {
                let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
                for (p, b) in b.chunks(PAIRS).enumerate() {
                    let a = self.a.panel(block * PAIR_BLOCK_PANELS + p);
                    let a: &[HalfRow; ROWS] = a.try_into().expect("`a` and `out` have the same number of rows");
                    for (k, b) in b.iter().enumerate().take(PAIRS) {
                        ahead.request_row();
                        let mut vectors = [dot.splat(simd, 0); VECTORS];
                        for (v, vector) in vectors.iter_mut().enumerate() {
                            *vector = dot.load(simd, b, at + v * S::LANES);
                        }
                        for (row, sums) in a.iter().zip(&mut sums) {
                            let a = dot.splat(simd, row.pair(k));
                            for (sum, b) in sums.iter_mut().zip(vectors) {
                                *sum = dot.dot(simd, a, b, *sum);
                            }
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
}

impl PairMatrixTileKernel for PairTile<'_> {
    /// A product of matrices adds the products of two pairs in order, so sums equal the ones of [`PairTileKernel::run`]
    /// if both instructions round alike.
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "loops over constant ranges are unrolled, so that sums stay in registers"
    )]
    fn run_matrices<S, M, const ROWS: usize, const PAIRS_OF_ROWS: usize, const VECTORS: usize>(self, simd: S, dot: M)
    where
        S: Simd,
        M: MatrixDot<S, Row = PairRow>,
    {
        let out: &mut [Row; ROWS] = self.out.try_into().expect("ROWS is the length of `out`");
        assert!(self.b.len().is_multiple_of(PAIRS));
        let mut ahead = self.ahead;
        for at in (0..PANEL).step_by(VECTORS * S::LANES) {
            for (block, b) in self.b.chunks(PAIR_BLOCK_PANELS * PAIRS).enumerate() {
                let mut sums = [[dot.zero(simd); VECTORS]; PAIRS_OF_ROWS];
                for (p, b) in b.chunks_exact(PAIRS).enumerate() {
                    let a = self.a.panel(block * PAIR_BLOCK_PANELS + p);
                    let a: &[HalfRow; ROWS] = a.try_into().expect("`a` and `out` have the same number of rows");
                    for (k, b) in b.as_chunks().0.iter().enumerate().take(PAIRS / 2) {
                        ahead.request_row();
                        ahead.request_row();
                        let mut pairs = [0; ROWS];
                        for row in 0..ROWS {
                            pairs[row] = a[row].two_pairs(k);
                        }
                        multiply_rows(simd, dot, pairs, b, at, &mut sums);
                    }
                }
                for pair in 0..PAIRS_OF_ROWS {
                    for v in 0..VECTORS {
                        let at = at + v * S::LANES;
                        let rows = dot.to_rows(simd, sums[pair][v]);
                        for row in 2 * pair..ROWS.min(2 * pair + 2) {
                            let sum = rows[row % 2];
                            let sum = if block == 0 { sum } else { simd.add(simd.load(&out[row], at), sum) };
                            simd.store(&mut out[row], at, sum);
                        }
                    }
                }
            }
        }
        if self.b.is_empty() {
            out.fill(Row::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use wordpiece_parallel::testing::instruction_sets;

    use super::*;
    use crate::arch::{Kernel, MAX_TILE_ROWS, run};

    /// A product of matrices without columns, into `out`.
    struct NoColumns<'a>(&'a mut [Row]);

    impl Kernel for NoColumns<'_> {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let a = View::new(&[], self.0.len());
            simd.run_pair_matrix_tile(PairTile { a, b: &[], ahead: Ahead::NOTHING, out: self.0 });
        }
    }

    #[test]
    fn a_product_without_columns_is_zero() {
        for set in instruction_sets() {
            for rows in 1..=MAX_TILE_ROWS.min(4) {
                let mut out = vec![Row([1.0; PANEL]); rows];
                run(set, NoColumns(&mut out));
                assert_eq!(out, vec![Row::ZERO; rows], "{}", set.name());
            }
        }
    }
}
