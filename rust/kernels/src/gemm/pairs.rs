//! The tile of bfloat16 numbers: products of pairs, sums in float32.

use super::tile::BLOCK;
use crate::arch::Simd;
use crate::matrix::{HalfRow, PANEL, PairRow, Row, View};

/// A tile of a product, out = a·b, of bfloat16 numbers; as [`super::Tile`].
pub struct PairTile<'a> {
    /// The rows; the columns that make K even are 0.
    pub a: View<'a, HalfRow>,
    /// One panel of weights, a row for each pair of columns of `a`.
    pub b: &'a [PairRow],
    /// Where the sums go.
    pub out: &'a mut [Row],
}

/// A way to multiply pairs: an instruction of its own, or two of float32.
pub trait Dot<S: Simd>: Copy {
    /// A pair in each lane.
    type Pairs: Copy;

    /// The pairs from `at` on.
    fn load(self, simd: S, row: &PairRow, at: usize) -> Self::Pairs;
    /// A pair in all lanes.
    fn splat(self, simd: S, pair: u32) -> Self::Pairs;
    /// sum + a·b, both products of each pair.
    fn dot(self, simd: S, a: Self::Pairs, b: Self::Pairs, sum: S::V) -> S::V;
}

/// bfloat16 numbers widened to float32, for CPUs without the instruction.
#[derive(Clone, Copy)]
pub struct Widened;

impl<S: Simd> Dot<S> for Widened {
    type Pairs = [S::V; 2];

    #[inline(always)]
    fn load(self, simd: S, row: &PairRow, at: usize) -> [S::V; 2] {
        simd.load_pairs(row, at)
    }

    #[inline(always)]
    fn splat(self, simd: S, pair: u32) -> [S::V; 2] {
        [simd.splat(f32::from_bits(pair << 16)), simd.splat(f32::from_bits(pair & 0xffff_0000))]
    }

    #[inline(always)]
    fn dot(self, simd: S, a: [S::V; 2], b: [S::V; 2], sum: S::V) -> S::V {
        simd.fma(a[1], b[1], simd.fma(a[0], b[0], sum))
    }
}

/// Pairs in a panel of columns.
const PAIRS: usize = PANEL / 2;

/// A tile of `ROWS` rows, as [`super::multiply_tile`].
#[inline(always)]
pub fn multiply_pair_tile<S: Simd, D: Dot<S>, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    dot: D,
    tile: PairTile<'_>,
) {
    let out: &mut [Row; ROWS] = tile.out.try_into().expect("as many rows as the caller says");
    for at in (0..PANEL).step_by(VECTORS * S::LANES) {
        for (block, b) in tile.b.chunks(BLOCK * PAIRS).enumerate() {
            let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
            for (p, b) in b.chunks(PAIRS).enumerate() {
                let a: &[HalfRow; ROWS] =
                    tile.a.panel(block * BLOCK + p).try_into().expect("as many rows as the tile has");
                for (k, b) in b.iter().enumerate().take(PAIRS) {
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
            for (row, sums) in out.iter_mut().zip(sums) {
                for (v, sum) in sums.into_iter().enumerate() {
                    let at = at + v * S::LANES;
                    simd.store(row, at, if block == 0 { sum } else { simd.add(simd.load(row, at), sum) });
                }
            }
        }
    }
}
