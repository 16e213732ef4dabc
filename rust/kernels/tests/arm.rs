//! Products of matrices on 64-bit Arm (`smmla`, BFMMLA) beside dot products (`sdot`, BFDOT): the same bits.
//!
//! BFMMLA is defined as two steps of BFDOT, unless a process asks for fused sums (`FPCR.EBF`), which this library does not.

#![cfg(target_arch = "aarch64")]

mod common;

use std::io::Write;

use common::{Random, matrix, numbers};
use wordpiece_kernels::gemm::{Dense, Epilogue, PackedWeights, Products, QuantizedWeight, linear};
use wordpiece_kernels::numbers::Numbers;
use wordpiece_kernels::{Execution, InstructionSet, Matrix, pad_to_panels};
use wordpiece_parallel::instruction_set::Neon;

/// Shapes of products: one row and more, odd and even, of one tile and several; part of a group and several blocks of K.
const ROWS: [usize; 8] = [1, 2, 3, 5, 6, 7, 11, 13];
const COLUMNS: [usize; 7] = [1, 4, 31, 33, 100, 512, 1100];

/// Returns the token, or reports that its CPU lacks what is to be compared.
fn neon(name: &str, has_matrices: impl Fn(Neon) -> bool) -> Option<Neon> {
    let token = Neon::new().filter(|token| has_matrices(*token));
    if token.is_none() {
        let _ = writeln!(std::io::stderr(), "skipped: {name} is not available here");
    }
    token
}

fn product(token: Neon, x: &Matrix, dense: &Dense, n: usize) -> Vec<u32> {
    let execution = Execution::on_this_thread(InstructionSet::Neon(token));
    let mut y = Matrix::default();
    let rows = x.view().len();
    let to = y.reshape(rows, n).view_mut();
    linear(execution, x.view(), dense, Epilogue::Bias, to, &mut Default::default());
    numbers(&y, rows, n).into_iter().map(f32::to_bits).collect()
}

#[test]
fn smmla_has_the_bits_of_sdot_and_of_widening_products() {
    let Some(token) = neon("smmla", |token| token.int8_matrix().is_some()) else { return };
    for k in COLUMNS {
        let (n, mut random) = (40, Random(k as u64));
        let (weight, bias) = (random.numbers(n * k), random.numbers(n));
        let factors: Vec<f32> = random.numbers(k).iter().map(|x| 1.5 + x).collect();
        let weight = QuantizedWeight::new(Numbers::F32(&weight), &factors).expect("finite weights");
        let packed = PackedWeights::int8(&[(&weight.values, &weight.scales, &weight.columns)], &factors);
        let dense = Dense::from_parts(packed, pad_to_panels(&bias));
        for rows in ROWS {
            let x = matrix(&random.numbers(rows * k), rows, k);
            let found = product(token, &x, &dense, n);
            assert_eq!(found, product(token.without_matrices(), &x, &dense, n), "{rows}×{k}: sdot");
            assert_eq!(found, product(token.without_extensions(), &x, &dense, n), "{rows}×{k}: widening");
        }
    }
}

#[test]
fn bfmmla_has_the_bits_of_bfdot() {
    let Some(token) = neon("BFMMLA", |token| token.bf16_matrix().is_some()) else { return };
    for k in COLUMNS {
        // Sums in the normal range, and some whose products are subnormal or overflow.
        for scale in [1.0, 1e-19, 1e-22, 1e19] {
            let (n, mut random) = (40, Random(k as u64));
            let mut scaled = |n: usize| random.numbers(n).into_iter().map(|x| x * scale).collect::<Vec<_>>();
            let (weight, bias) = (scaled(n * k), vec![0.0; n]);
            let dense = Dense::new(&[(Numbers::F32(&weight), &bias)], k, Products::Bfloat16Pairs);
            for rows in ROWS {
                let x = matrix(&scaled(rows * k), rows, k);
                let found = product(token, &x, &dense, n);
                assert_eq!(found, product(token.without_matrices(), &x, &dense, n), "{rows}×{k}, times {scale}");
            }
        }
    }
}
