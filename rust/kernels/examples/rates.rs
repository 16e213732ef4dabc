//! Measures the matrix product on this CPU, at the shapes of MiniLM and BERT-base, for each instruction set.
//!
//!     cargo run --release -p wordpiece-kernels --example rates [float32 | rounded | bfloat16 | int8]

use std::time::Instant;

use wordpiece_kernels::activation::Activation;
use wordpiece_kernels::gemm::{Dense, Epilogue, PackedWeights, Products, QuantizedWeight, linear};
use wordpiece_kernels::numbers::Numbers;
use wordpiece_kernels::{Execution, InstructionSet, Matrix, Row, pad_to_panels};

fn main() {
    let shapes = [(384, 1152), (384, 384), (384, 1536), (1536, 384), (768, 2304), (768, 3072), (3072, 768), (32, 128)];
    let only = std::env::args().nth(1);
    for set in InstructionSet::all_available() {
        let mut paths = vec![
            (set.name(), set, "float32", Some(Products::Float32)),
            (set.name(), set, "rounded", Some(Products::RoundedWeights)),
            (set.name(), set, "bfloat16", Some(Products::Bfloat16Pairs)),
        ];
        paths.extend(set.byte_paths().into_iter().map(|(name, set)| (name, set, "int8", None)));
        paths.retain(|path| only.as_ref().is_none_or(|only| *only == path.2));
        for (name, set, kind, products) in paths {
            for (k, n) in shapes {
                let rates: Vec<String> =
                    [7, 14, 56, 192].map(|m| format!("{:7.1}", rate(set, products, m, k, n))).into();
                let rates = rates.join(" ");
                println!("{name:11} {kind:8} K {k:5} N {n:5}   Gop/s at 7, 14, 56, 192 rows: {rates}");
            }
        }
    }
}

/// Returns a layer of these products, or of int8 products for `None`.
fn dense_of(products: Option<Products>, weight: &[f32], k: usize, n: usize) -> Dense {
    let bias = vec![0.0; n];
    if let Some(products) = products {
        return Dense::new(&[(Numbers::F32(weight), &bias)], k, products);
    }
    let factors = vec![1.0; k];
    let weight = QuantizedWeight::new(Numbers::F32(weight), &factors).expect("finite weights");
    let packed = PackedWeights::int8(&[(&weight.values, &weight.scales, &weight.columns)], &factors);
    Dense::from_parts(packed, pad_to_panels(&bias))
}

/// Returns the best rate of several runs, in thousand millions of operations a second.
fn rate(set: InstructionSet, products: Option<Products>, m: usize, k: usize, n: usize) -> f64 {
    let numbers: Vec<f32> = (0..k * n).map(|i| (i * 7 % 13) as f32 * 0.01 - 0.06).collect();
    let dense = dense_of(products, &numbers, k, n);
    let (mut x, mut y) = (Matrix::default(), Matrix::default());
    x.reshape(m, k).data_mut().fill(Row([0.1; 32]));
    y.reshape(m, n);
    let execution = Execution::on_this_thread(set);
    let epilogue = Epilogue::Activation(Activation::Identity);
    let flop = 2.0 * (m * k * n) as f64;
    let times = if set == InstructionSet::Scalar { 2 } else { (2e9 / flop) as usize + 3 };
    let mut best = f64::INFINITY;
    for _ in 0..times {
        let start = Instant::now();
        linear(execution, x.view(), &dense, epilogue, y.view_mut(), &mut Default::default());
        best = best.min(start.elapsed().as_secs_f64());
    }
    flop / best / 1e9
}
