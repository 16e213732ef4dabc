//! The tile of int8 numbers: products of quads, exact sums in int32 over a group, and sums of groups in float32.
//!
//! Inputs and weights are quantized by groups of 64 along K, each with a scale of its own. Within a group, four products
//! are one instruction where the CPU has it ([`ByteDot`]). At the end of a group, its sum is converted, which is exact,
//! multiplied by both scales and added.

use super::ahead::Ahead;
use super::matrices::multiply_rows;
use crate::arch::{ByteDot, ByteTileKernel, MatrixDot, Simd};
use crate::matrix::{ByteRow, PANEL, QuadRow, Row, SumRow, View, WordRow};
use crate::numbers::GROUP;

/// How many quads of columns a group has.
pub const QUADS: usize = GROUP / 4;

/// A tile of a product, out = a·b, of int8 numbers, with as many rows of `a` as `out` has.
pub struct ByteTile<'a> {
    /// The rows [rows, K] by groups, K rounded up to whole groups, plus [`Simd::byte_bias`].
    pub a: View<'a, ByteRow>,
    /// The scale of each group of each row: the scale of group g of row r is `a_scales[g * a_stride + r]`.
    pub a_scales: &'a [f32],
    /// The distance from the scales of a group to the scales of the next.
    pub a_stride: usize,
    /// One panel of packed weights, [`QUADS`] rows for each group.
    pub b: &'a [QuadRow],
    /// The scales of the weights, a row for each group.
    pub b_scales: &'a [Row],
    /// −128 times the sum of the weights, a row for each group.
    pub b_sums: &'a [SumRow],
    /// The inputs that are not quantized, whose products come last in a sum.
    pub unquantized: Unquantized<'a>,
    /// What is requested meanwhile, for the next panel.
    pub ahead: Ahead,
    /// The sums [rows, 32], overwritten.
    pub out: &'a mut [Row],
}

/// Inputs that are multiplied in float32 beside those that are quantized.
#[derive(Clone, Copy)]
pub struct Unquantized<'a> {
    /// The numbers: the one for input i and row r is `x[i * stride + r]`.
    pub x: &'a [f32],
    /// The distance from the numbers of an input to the numbers of the next.
    pub stride: usize,
    /// The weights of each input.
    pub weights: &'a [Row],
}

impl Unquantized<'_> {
    /// Adds the products to the sums of a tile.
    #[inline(always)]
    pub(super) fn add<S: Simd>(self, simd: S, out: &mut [Row]) {
        for (i, weights) in self.weights.iter().enumerate() {
            for (row, x) in out.iter_mut().zip(&self.x[i * self.stride..]) {
                let x = simd.splat(*x);
                for at in (0..PANEL).step_by(S::LANES) {
                    simd.store(row, at, simd.fma(x, simd.load(weights, at), simd.load(row, at)));
                }
            }
        }
    }

    /// Adds the products to the sums of a tile in registers.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "as in `multiply_group`")]
    fn add_in_registers<S: Simd, const ROWS: usize, const VECTORS: usize>(
        self,
        simd: S,
        totals: &mut [[S::V; VECTORS]; ROWS],
    ) {
        for (i, weights) in self.weights.iter().enumerate() {
            let x: &[f32; ROWS] = self.x[i * self.stride..].first_chunk().expect("a number for each row");
            for row in 0..ROWS {
                let x = simd.splat(x[row]);
                for v in 0..VECTORS {
                    totals[row][v] = simd.fma(x, simd.load(weights, v * S::LANES), totals[row][v]);
                }
            }
        }
    }
}

/// The int32 sums of a group for the columns `at..at + VECTORS * LANES` of a tile.
pub(super) type GroupSums<S, D, const ROWS: usize, const VECTORS: usize> = [[<D as ByteDot<S>>::Sums; VECTORS]; ROWS];

/// Returns the products of a group: of `ROWS` rows of inputs, `a` and, widened, `words`, and [`QUADS`] rows of weights `b`,
/// and requests memory `ahead` meanwhile.
///
/// The sums are exact: a group adds 64 products of an unsigned and a signed byte, at most 64 · 255 · 128 = 2,088,960, far from
/// the limits of int32. Where inputs are stored plus 128, the sums start at −128 times the sum of the weights, which takes
/// the addend away again.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "loops over constant ranges are unrolled, so that sums stay in registers"
)]
pub(super) fn multiply_group<S: Simd, D: ByteDot<S>, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    dot: D,
    a: &[ByteRow; ROWS],
    words: &[WordRow; ROWS],
    (b, starts): (&[QuadRow], &SumRow),
    at: usize,
    ahead: &mut Ahead,
) -> GroupSums<S, D, ROWS, VECTORS> {
    let mut start = [dot.start(simd, starts, at); VECTORS];
    for v in 1..VECTORS {
        start[v] = dot.start(simd, starts, at + v * S::LANES);
    }
    let mut sums = [start; ROWS];
    for (k, b) in b.iter().enumerate().take(QUADS) {
        ahead.request_row();
        for part in 0..D::PARTS {
            let mut vectors = [dot.load(simd, b, at, part); VECTORS];
            for v in 1..VECTORS {
                vectors[v] = dot.load(simd, b, at + v * S::LANES, part);
            }
            for row in 0..ROWS {
                let quad = if D::PARTS == 1 { a[row].quad(k) } else { words[row].0[part][k] };
                let a = dot.splat(simd, quad);
                for v in 0..VECTORS {
                    sums[row][v] = dot.dot(simd, a, vectors[v], sums[row][v]);
                }
            }
        }
    }
    sums
}

/// Adds the sum of a group, multiplied by the scales of the weights, to the columns `at..at + LANES` of a row.
#[inline(always)]
pub(super) fn add_group<S: Simd>(simd: S, sum: S::V, scales: &Row, is_first: bool, out: &mut Row, at: usize) {
    let before = if is_first { simd.splat(0.0) } else { simd.load(out, at) };
    simd.store(out, at, simd.fma(sum, simd.load(scales, at), before));
}

impl ByteTileKernel for ByteTile<'_> {
    fn rows(&self) -> usize {
        self.out.len()
    }

    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "as in `multiply_group`")]
    fn run<S: Simd, D: ByteDot<S>, const ROWS: usize, const VECTORS: usize>(self, simd: S, dot: D) {
        let ByteTile { a, a_scales, a_stride, b, b_scales, b_sums, unquantized, mut ahead, out } = self;
        let out: &mut [Row; ROWS] = out.try_into().expect("ROWS is the length of `out`");
        // If a tile covers a panel, its sums fit into registers beside the sums of a group. Otherwise they are in
        // `out`.
        let is_whole = VECTORS * S::LANES == PANEL;
        let mut totals = [[simd.splat(0.0); VECTORS]; ROWS];
        let mut words = [WordRow::ZERO; ROWS];
        for group in 0..b_scales.len() {
            let a: &[ByteRow; ROWS] = a.panel(group).try_into().expect("`a` and `out` have the same number of rows");
            if D::PARTS > 1 {
                for row in 0..ROWS {
                    dot.widen(simd, &a[row], &mut words[row]);
                }
            }
            let a_scales = &a_scales[group * a_stride..][..ROWS];
            let b = (&b[group * QUADS..][..QUADS], &b_sums[group]);
            for at in (0..PANEL).step_by(VECTORS * S::LANES) {
                let sums: GroupSums<S, D, ROWS, VECTORS> = multiply_group(simd, dot, a, &words, b, at, &mut ahead);
                for row in 0..ROWS {
                    let scale = simd.splat(a_scales[row]);
                    for v in 0..VECTORS {
                        let at = at + v * S::LANES;
                        let sum = simd.mul(dot.to_float(simd, sums[row][v]), scale);
                        if is_whole {
                            totals[row][v] = simd.fma(sum, simd.load(&b_scales[group], at), totals[row][v]);
                        } else {
                            add_group(simd, sum, &b_scales[group], group == 0, &mut out[row], at);
                        }
                    }
                }
            }
        }
        if is_whole {
            unquantized.add_in_registers(simd, &mut totals);
            for row in 0..ROWS {
                for v in 0..VECTORS {
                    simd.store(&mut out[row], v * S::LANES, totals[row][v]);
                }
            }
        } else {
            if b_scales.is_empty() {
                out.fill(Row::ZERO);
            }
            unquantized.add(simd, out);
        }
    }

    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "as in `multiply_group`")]
    fn run_matrices<S, M, const ROWS: usize, const PAIRS: usize, const VECTORS: usize>(self, simd: S, dot: M)
    where
        S: Simd,
        M: MatrixDot<S, Row = QuadRow>,
    {
        let out: &mut [Row; ROWS] = self.out.try_into().expect("ROWS is the length of `out`");
        let mut ahead = self.ahead;
        for at in (0..PANEL).step_by(VECTORS * S::LANES) {
            for (group, (b, scales)) in self.b.chunks_exact(QUADS).zip(self.b_scales).enumerate() {
                let mut sums = [[dot.zero(simd); VECTORS]; PAIRS];
                let a = self.a.panel(group);
                let a: &[ByteRow; ROWS] = a.try_into().expect("`a` and `out` have the same number of rows");
                for (k, b) in b.as_chunks().0.iter().enumerate().take(QUADS / 2) {
                    ahead.request_row();
                    ahead.request_row();
                    let mut quads = [0; ROWS];
                    for row in 0..ROWS {
                        quads[row] = a[row].two_quads(k);
                    }
                    multiply_rows(simd, dot, quads, b, at, &mut sums);
                }
                let a_scales = &self.a_scales[group * self.a_stride..][..ROWS];
                for pair in 0..PAIRS {
                    for v in 0..VECTORS {
                        let rows = dot.to_rows(simd, sums[pair][v]);
                        for row in 2 * pair..ROWS.min(2 * pair + 2) {
                            let sum = simd.mul(rows[row % 2], simd.splat(a_scales[row]));
                            add_group(simd, sum, scales, group == 0, &mut out[row], at + v * S::LANES);
                        }
                    }
                }
            }
        }
        if self.b.is_empty() {
            out.fill(Row::ZERO);
        }
        self.unquantized.add(simd, out);
    }
}
