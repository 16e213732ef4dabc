//! Measures the matrix product on this CPU, at the shapes of MiniLM and BERT-base, for each instruction set.
//!
//!     cargo run --release -p wordpiece-kernels --example rates

use std::time::Instant;

use wordpiece_kernels::activation::Activation;
use wordpiece_kernels::gemm::{Dense, Epilogue, Products, linear};
use wordpiece_kernels::numbers::Numbers;
use wordpiece_kernels::{Execution, InstructionSet, Matrix, Row};

fn main() {
    let shapes = [(384, 1152), (384, 384), (384, 1536), (1536, 384), (768, 2304), (768, 3072), (3072, 768), (32, 128)];
    for set in InstructionSet::all_available() {
        let kinds = [
            ("float32", Products::Float32),
            ("rounded", Products::RoundedWeights),
            ("bfloat16", Products::Bfloat16Pairs),
        ];
        for (kind, products) in kinds {
            for (k, n) in shapes {
                let rates: Vec<String> =
                    [7, 14, 56, 192].map(|m| format!("{:7.1}", rate(set, products, m, k, n))).into();
                let rates = rates.join(" ");
                println!("{:8} {kind:8} K {k:5} N {n:5}   Gflop/s at 7, 14, 56, 192 rows: {rates}", set.name());
            }
        }
    }
}

/// Returns the best rate of several runs, in Gflop/s.
fn rate(set: InstructionSet, products: Products, m: usize, k: usize, n: usize) -> f64 {
    let numbers: Vec<f32> = (0..k * n).map(|i| (i * 7 % 13) as f32 * 0.01 - 0.06).collect();
    let dense = Dense::new(&[(Numbers::F32(&numbers), &vec![0.0; n])], k, products);
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
        linear(execution, x.view(), &dense, epilogue, y.view_mut(), &mut Vec::new());
        best = best.min(start.elapsed().as_secs_f64());
    }
    flop / best / 1e9
}
