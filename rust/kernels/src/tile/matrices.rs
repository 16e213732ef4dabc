//! One step of a tile by products of matrices: 8 bytes of each row of inputs, and two rows of packed weights.
//!
//! Sums are computed for two rows at a time. A row of zeros completes a tile with an odd number of rows; its sums are
//! dropped.

use crate::arch::{MatrixDot, Simd};

/// Adds the products of 8 bytes of each row, `a`, and two rows of weights, `b`, to the sums of the columns
/// `at..at + VECTORS * LANES`. There are `PAIRS` = ⌈ROWS/2⌉ pairs of rows.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "loops over constant ranges are unrolled, so that sums stay in registers"
)]
pub fn multiply_rows<S: Simd, M: MatrixDot<S>, const ROWS: usize, const PAIRS: usize, const VECTORS: usize>(
    simd: S,
    dot: M,
    a: [u64; ROWS],
    b: &[M::Row; 2],
    at: usize,
    sums: &mut [[M::Sums; VECTORS]; PAIRS],
) {
    const { assert!(PAIRS == ROWS.div_ceil(2)) };
    let mut inputs = [dot.inputs(simd, a[0], 0); PAIRS];
    for pair in 0..PAIRS {
        let second = if 2 * pair + 1 < ROWS { a[2 * pair + 1] } else { 0 };
        inputs[pair] = dot.inputs(simd, a[2 * pair], second);
    }
    for v in 0..VECTORS {
        let weights = dot.load(simd, b, at + v * S::LANES);
        for pair in 0..PAIRS {
            sums[pair][v] = dot.dot(simd, inputs[pair], weights, sums[pair][v]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{ByteTileKernel, PairDot, PairMatrixTileKernel, Scalar, WidenedPairs};
    use crate::matrix::{ByteRow, HalfRow, PANEL, PairRow, QuadRow, Row, SumRow, View};
    use crate::numbers::GROUP;
    use crate::numbers::f32_to_bf16;
    use crate::tile::{Ahead, ByteTile, PAIR_BLOCK_PANELS, PairTile, QUADS, Unquantized};

    /// What `smmla` computes, number by number, so that the tile is tested on every CPU.
    #[derive(Clone, Copy)]
    struct Emulated;

    const LANES: usize = Scalar::LANES;

    impl MatrixDot<Scalar> for Emulated {
        type Row = QuadRow;
        type Inputs = [[i8; 8]; 2];
        type Weights = [[i8; 8]; LANES];
        type Sums = [[i32; LANES]; 2];

        fn zero(self, _: Scalar) -> Self::Sums {
            [[0; LANES]; 2]
        }

        fn inputs(self, _: Scalar, first: u64, second: u64) -> Self::Inputs {
            [first, second].map(|row| row.to_le_bytes().map(|byte| byte as i8))
        }

        fn load(self, _: Scalar, rows: &[QuadRow; 2], at: usize) -> Self::Weights {
            std::array::from_fn(|column| std::array::from_fn(|k| rows[k / 4].0[at + column][k % 4]))
        }

        fn dot(self, _: Scalar, a: Self::Inputs, b: Self::Weights, sums: Self::Sums) -> Self::Sums {
            std::array::from_fn(|row| {
                std::array::from_fn(|column| {
                    let products = a[row].iter().zip(b[column]).map(|(a, b)| i32::from(*a) * i32::from(b));
                    sums[row][column] + products.sum::<i32>()
                })
            })
        }

        fn to_rows(self, _: Scalar, sums: Self::Sums) -> [[f32; LANES]; 2] {
            sums.map(|row| row.map(|sum| sum as f32))
        }
    }

    /// What BFMMLA computes, with products and sums rounded as on this instruction set.
    #[derive(Clone, Copy)]
    struct EmulatedPairs;

    impl MatrixDot<Scalar> for EmulatedPairs {
        type Row = PairRow;
        type Inputs = [u64; 2];
        type Weights = [<WidenedPairs as PairDot<Scalar>>::Pairs; 2];
        type Sums = [[f32; LANES]; 2];

        fn zero(self, _: Scalar) -> Self::Sums {
            [[0.0; LANES]; 2]
        }

        fn inputs(self, _: Scalar, first: u64, second: u64) -> Self::Inputs {
            [first, second]
        }

        fn load(self, simd: Scalar, rows: &[PairRow; 2], at: usize) -> Self::Weights {
            [WidenedPairs.load(simd, &rows[0], at), WidenedPairs.load(simd, &rows[1], at)]
        }

        fn dot(self, simd: Scalar, a: Self::Inputs, b: Self::Weights, mut sums: Self::Sums) -> Self::Sums {
            for (sum, row) in sums.iter_mut().zip(a) {
                for (b, pair) in b.into_iter().zip([row as u32, (row >> 32) as u32]) {
                    *sum = WidenedPairs.dot(simd, WidenedPairs.splat(simd, pair), b, *sum);
                }
            }
            sums
        }

        fn to_rows(self, _: Scalar, sums: Self::Sums) -> [[f32; LANES]; 2] {
            sums
        }
    }

    /// Runs a tile with `run_matrices` for its number of rows.
    macro_rules! run_matrices {
        ($tile:expr, $dot:expr, $count:expr) => {
            match $count {
                1 => $tile.run_matrices::<_, _, 1, 1, 2>(Scalar::on_any_cpu(), $dot),
                2 => $tile.run_matrices::<_, _, 2, 1, 2>(Scalar::on_any_cpu(), $dot),
                3 => $tile.run_matrices::<_, _, 3, 2, 2>(Scalar::on_any_cpu(), $dot),
                4 => $tile.run_matrices::<_, _, 4, 2, 2>(Scalar::on_any_cpu(), $dot),
                5 => $tile.run_matrices::<_, _, 5, 3, 2>(Scalar::on_any_cpu(), $dot),
                _ => $tile.run_matrices::<_, _, 6, 3, 2>(Scalar::on_any_cpu(), $dot),
            }
        };
    }

    /// A linear congruential generator of bytes from −127 to 127.
    fn next(state: &mut u32) -> i8 {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((*state >> 16) % 255) as i8
    }

    #[test]
    #[cfg_attr(miri, ignore = "emulates thousands of products, in safe code")]
    fn products_of_bfloat16_matrices_are_those_of_rows() {
        let state = &mut 1;
        let mut number = || f32_to_bf16(f32::from(next(state)) / 77.0);
        for width in [0, 1, 2, PAIR_BLOCK_PANELS, PAIR_BLOCK_PANELS + 3] {
            let mut pair = || u32::from(number()) | u32::from(number()) << 16;
            let b: Vec<_> = (0..width * PANEL / 2).map(|_| PairRow([(); PANEL].map(|()| pair()))).collect();
            for rows in 1..=6 {
                // The tile is the first rows of more.
                let stride = rows + 3;
                let x: Vec<_> = (0..width * stride).map(|_| HalfRow([(); PANEL].map(|()| number()))).collect();
                let a = View::new(&x, stride).rows(0..rows);
                let mut expected = vec![Row([f32::NAN; PANEL]); rows];
                for (row, out) in expected.chunks_mut(1).enumerate() {
                    Scalar::on_any_cpu().run_pair_tile(PairTile {
                        a: a.rows(row..row + 1),
                        b: &b,
                        ahead: Ahead::NOTHING,
                        out,
                    });
                }
                let mut found = vec![Row([f32::NAN; PANEL]); rows];
                let tile = PairTile { a, b: &b, ahead: Ahead::NOTHING, out: &mut found };
                run_matrices!(tile, EmulatedPairs, rows);
                assert_eq!(found, expected, "{rows} rows, {width} panels");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "emulates thousands of products, in safe code")]
    fn products_of_int8_matrices_are_those_of_rows() {
        let state = &mut 1;
        for groups in 0..=3 {
            let b: Vec<_> =
                (0..groups * QUADS).map(|_| QuadRow([[(); 4]; PANEL].map(|x| x.map(|()| next(state))))).collect();
            let b_scales: Vec<_> = (0..groups).map(|group| Row([0.5 + group as f32; PANEL])).collect();
            let b_sums = vec![SumRow::ZERO; groups];
            for rows in 1..=6 {
                // The tile is the first rows of more.
                let stride = rows + 3;
                let x: Vec<_> =
                    (0..groups * stride).map(|_| ByteRow([(); GROUP].map(|()| next(state) as u8))).collect();
                let a_scales: Vec<_> = (0..groups * stride).map(|i| 0.25 + i as f32).collect();
                let a = View::new(&x, stride).rows(0..rows);
                let numbers: Vec<_> = (0..2 * stride).map(|i| i as f32 - 4.0).collect();
                let weights: Vec<_> = (0..groups.min(2)).map(|i| Row([0.5 - i as f32; PANEL])).collect();
                let mut expected = vec![Row([f32::NAN; PANEL]); rows];
                for (row, out) in expected.chunks_mut(1).enumerate() {
                    let unquantized = Unquantized { x: &numbers[row..], stride, weights: &weights };
                    let (a, a_scales) = (a.rows(row..row + 1), a_scales.get(row..).unwrap_or(&[]));
                    let (b, b_scales, b_sums) = (&b, &b_scales, &b_sums);
                    Scalar::on_any_cpu().run_byte_tile(ByteTile {
                        a,
                        a_scales,
                        a_stride: stride,
                        b,
                        b_scales,
                        b_sums,
                        unquantized,
                        ahead: Ahead::NOTHING,
                        out,
                    });
                }
                let mut found = vec![Row([f32::NAN; PANEL]); rows];
                let (b, b_scales, b_sums, out) = (&b, &b_scales, &b_sums, &mut found);
                let tile = ByteTile {
                    a,
                    a_scales: &a_scales,
                    a_stride: stride,
                    b,
                    b_scales,
                    b_sums,
                    unquantized: Unquantized { x: &numbers, stride, weights: &weights },
                    ahead: Ahead::NOTHING,
                    out,
                };
                run_matrices!(tile, Emulated, rows);
                assert_eq!(found, expected, "{rows} rows, {groups} groups");
            }
        }
    }
}
