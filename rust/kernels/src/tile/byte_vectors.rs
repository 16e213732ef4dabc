//! The tile of byte vectors: a few rows beside the packed queries of a panel, products exact at any width.

use super::ahead::Ahead;
use super::int8::{GroupSums, QUADS, multiply_group};
use super::matrices::multiply_rows;
use crate::arch::{ByteDot, ByteTileKernel, MatrixDot, Simd};
use crate::matrix::{ByteRow, PANEL, QuadRow, Row, SumRow, View, WordRow};
use crate::numbers::GROUP;

/// The sum of this many groups of products is at most 2²⁴, which float32 holds exactly.
const EXACT_GROUPS: usize = (1 << 24) / (GROUP << 14);

/// Queries of signed bytes, packed by panels of 32 and groups of 64 bytes.
pub struct ByteQueries {
    /// [`QUADS`] rows for each group of each panel, 0 beyond the last byte and query.
    rows: Vec<QuadRow>,
    /// −128 times the sum of each group.
    sums: Vec<SumRow>,
    groups: usize,
}

impl ByteQueries {
    /// Packs vectors of `width` numbers from −128 to 127, row by row.
    ///
    /// # Panics
    ///
    /// If the vectors are not whole.
    pub fn new(vectors: impl ExactSizeIterator<Item = i8>, width: usize) -> ByteQueries {
        assert!(vectors.len().is_multiple_of(width), "vectors of {width} numbers");
        let groups = width.div_ceil(GROUP);
        let panels = (vectors.len() / width).div_ceil(PANEL);
        let mut rows = vec![QuadRow::ZERO; panels * groups * QUADS];
        let mut sums = vec![SumRow::ZERO; panels * groups];
        for (i, x) in vectors.enumerate() {
            let (query, at) = (i / width, i % width);
            let (panel, column) = (query / PANEL, query % PANEL);
            rows[panel * groups * QUADS + at / 4].0[column][at % 4] = x;
            sums[panel * groups + at / GROUP].0[column] -= 128 * i32::from(x);
        }
        ByteQueries { rows, sums, groups }
    }

    /// Returns the number of groups of each vector.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Iterates over the panels: the rows and the sums of each.
    pub fn panels(&self) -> impl ExactSizeIterator<Item = (&[QuadRow], &[SumRow])> {
        self.rows.chunks_exact(self.groups * QUADS).zip(self.sums.chunks_exact(self.groups))
    }
}

/// The inner products of a few rows and the queries of a panel.
pub struct ByteVectorTile<'a> {
    /// The rows [rows, groups] of signed bytes plus [`Simd::byte_bias`]; bytes beyond the last may be any.
    pub a: View<'a, ByteRow>,
    /// A panel of queries.
    pub b: (&'a [QuadRow], &'a [SumRow]),
    /// How many queries the panel has. The products of the columns beyond them are unspecified.
    pub queries: usize,
    /// What is requested meanwhile.
    pub ahead: Ahead,
    /// The products [rows, 32], overwritten.
    pub out: &'a mut [[f64; PANEL]],
}

impl ByteVectorTile<'_> {
    /// Computes the columns `at..at + VECTORS * LANES`.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "as in `multiply_group`")]
    fn columns<S: Simd, D: ByteDot<S>, const ROWS: usize, const VECTORS: usize>(&mut self, simd: S, dot: D, at: usize) {
        let (rows, sums) = self.b;
        let mut words = [WordRow::ZERO; ROWS];
        for first in (0..sums.len()).step_by(EXACT_GROUPS) {
            let mut totals = [[simd.splat(0.0); VECTORS]; ROWS];
            for group in first..sums.len().min(first + EXACT_GROUPS) {
                let a: &[ByteRow; ROWS] = self.a.panel(group).try_into().expect("as many rows as `out`");
                if D::PARTS > 1 {
                    for row in 0..ROWS {
                        dot.widen(simd, &a[row], &mut words[row]);
                    }
                }
                let b = (&rows[group * QUADS..][..QUADS], &sums[group]);
                let products: GroupSums<S, D, ROWS, VECTORS> =
                    multiply_group(simd, dot, a, &words, b, at, &mut self.ahead);
                for row in 0..ROWS {
                    for v in 0..VECTORS {
                        totals[row][v] = simd.add(totals[row][v], dot.to_float(simd, products[row][v]));
                    }
                }
            }
            for row in 0..ROWS {
                for v in 0..VECTORS {
                    add(simd, totals[row][v], first == 0, &mut self.out[row], at + v * S::LANES);
                }
            }
        }
    }
}

/// Adds float32 numbers, exact integers, to the columns `at..at + LANES` of a row; sets them if they are the first.
#[inline(always)]
fn add<S: Simd>(simd: S, x: S::V, is_first: bool, out: &mut [f64; PANEL], at: usize) {
    let mut numbers = Row::ZERO;
    simd.store(&mut numbers, at, x);
    for (to, x) in out[at..at + S::LANES].iter_mut().zip(&numbers.0[at..at + S::LANES]) {
        *to = f64::from(*x) + if is_first { 0.0 } else { *to };
    }
}

impl ByteTileKernel for ByteVectorTile<'_> {
    fn rows(&self) -> usize {
        self.out.len()
    }

    #[inline(always)]
    fn run<S: Simd, D: ByteDot<S>, const ROWS: usize, const VECTORS: usize>(mut self, simd: S, dot: D) {
        for at in (0..self.queries.min(PANEL)).step_by(VECTORS * S::LANES) {
            if self.queries - at <= S::LANES {
                self.columns::<S, D, ROWS, 1>(simd, dot, at);
            } else {
                self.columns::<S, D, ROWS, VECTORS>(simd, dot, at);
            }
        }
    }

    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "as in `multiply_group`")]
    fn run_matrices<S, M, const ROWS: usize, const PAIRS: usize, const VECTORS: usize>(mut self, simd: S, dot: M)
    where
        S: Simd,
        M: MatrixDot<S, Row = QuadRow>,
    {
        for at in (0..self.queries.min(PANEL)).step_by(VECTORS * S::LANES) {
            for (group, b) in self.b.0.chunks_exact(QUADS).enumerate() {
                let a: &[ByteRow; ROWS] = self.a.panel(group).try_into().expect("as many rows as `out`");
                let mut sums = [[dot.zero(simd); VECTORS]; PAIRS];
                for (k, b) in b.as_chunks().0.iter().enumerate().take(QUADS / 2) {
                    self.ahead.request_row();
                    let mut quads = [0; ROWS];
                    for row in 0..ROWS {
                        quads[row] = a[row].two_quads(k);
                    }
                    multiply_rows(simd, dot, quads, b, at, &mut sums);
                }
                for pair in 0..PAIRS {
                    for v in 0..VECTORS {
                        let rows = dot.to_rows(simd, sums[pair][v]);
                        for row in 2 * pair..ROWS.min(2 * pair + 2) {
                            add(simd, rows[row % 2], group == 0, &mut self.out[row], at + v * S::LANES);
                        }
                    }
                }
            }
        }
    }
}
