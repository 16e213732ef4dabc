//! How fast the matrix product is on this machine, at the shapes of MiniLM and BERT-base, for each instruction set.
//!
//!     cargo run --release -p wordpiece-kernels --example rates

use std::time::Instant;

use wordpiece_kernels::activation::Activation;
use wordpiece_kernels::gemm::{Packed, Then, linear};
use wordpiece_kernels::numbers::Numbers;
use wordpiece_kernels::{InstructionSet, Matrix, Row, panels};

type Pack = fn(&[Numbers<'_>], usize) -> Packed;

fn main() {
    let shapes = [(384, 1152), (384, 384), (384, 1536), (1536, 384), (768, 2304), (768, 3072), (3072, 768), (32, 128)];
    for path in InstructionSet::all_available() {
        for (kind, pack) in [("float32", Packed::new as Pack), ("bfloat16", Packed::pairs)] {
            for (k, n) in shapes {
                let rates: Vec<String> = [7, 14, 56, 192].map(|m| format!("{:7.1}", rate(path, pack, m, k, n))).into();
                let rates = rates.join(" ");
                println!("{:8} {kind:8} K {k:5} N {n:5}   Gflop/s at 7, 14, 56, 192 rows: {rates}", path.name());
            }
        }
    }
}

/// The best of some runs, in Gflop/s.
fn rate(path: InstructionSet, pack: Pack, m: usize, k: usize, n: usize) -> f64 {
    let numbers: Vec<f32> = (0..k * n).map(|i| (i * 7 % 13) as f32 * 0.01 - 0.06).collect();
    let weights = pack(&[Numbers::F32(&numbers)], k);
    let bias = vec![Row::ZERO; panels(n)];
    let (mut x, mut y) = (Matrix::default(), Matrix::default());
    x.reshape(m, k).data_mut().fill(Row([0.1; 32]));
    y.reshape(m, n);
    let flop = 2.0 * (m * k * n) as f64;
    let times = if path == InstructionSet::Scalar { 2 } else { (2e9 / flop) as usize + 3 };
    let mut best = f64::INFINITY;
    for _ in 0..times {
        let start = Instant::now();
        linear(
            path,
            x.view(),
            &weights,
            &bias,
            Then::Activation(Activation::Identity),
            y.view_mut(),
            &mut Vec::new(),
            None,
        );
        best = best.min(start.elapsed().as_secs_f64());
    }
    flop / best / 1e9
}
