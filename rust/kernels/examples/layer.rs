//! Measures each part of a layer of MiniLM on this CPU: nanoseconds a token, on one thread.
//!
//!     cargo run --release -p wordpiece-kernels --example layer -- 128

use std::time::Instant;

use wordpiece_kernels::activation::{self, Activation};
use wordpiece_kernels::attention::{AttentionInputs, AttentionScratch, attention};
use wordpiece_kernels::gemm::{ConvertedInputs, Dense, Epilogue, PackedWeights, Products, QuantizedWeight, linear};
use wordpiece_kernels::norm::{LayerNorm, layer_norm};
use wordpiece_kernels::numbers::Numbers;
use wordpiece_kernels::{Execution, InstructionSet, Matrix, pad_to_panels};

/// MiniLM's width, the width between the halves of its feed-forward network, and its heads.
const H: usize = 384;
const F: usize = 1536;
const HEADS: usize = 12;

fn main() {
    let rows: usize = std::env::args().nth(1).map_or(128, |rows| rows.parse().expect("a number of tokens"));
    let best = InstructionSet::detect();
    let tiles = Execution::on_this_thread(best).tiles;
    for products in [Products::Float32, Products::bfloat16(best, tiles)] {
        println!("{products:?} by {}, {rows} tokens: nanoseconds a token", products.name(best, tiles));
        parts(best, Some(products), rows);
    }
    for set in InstructionSet::all_available().into_iter().rev().filter(|set| *set != InstructionSet::Scalar) {
        for (name, set) in set.byte_paths() {
            println!("int8 by {name}, {rows} tokens: nanoseconds a token");
            parts(set, None, rows);
        }
    }
}

/// Measures the parts of a layer of these products, or of int8 for `None`.
fn parts(set: InstructionSet, products: Option<Products>, rows: usize) {
    let execution = Execution::on_this_thread(set);
    let bfloat16 = match products {
        Some(products) => products == Products::Bfloat16Pairs,
        None => execution.tiles.is_some(),
    };
    let mut all = 0.0;
    let mut report = |name: &str, nanoseconds: f64| {
        all += nanoseconds;
        println!("  {name:32} {nanoseconds:8.1}");
    };
    for (name, k, n) in [("query, key, value", H, 3 * H), ("output", H, H), ("inner", H, F), ("outer", F, H)] {
        report(name, product(execution, products, rows, k, n));
    }
    report("attention", heads(execution, rows, bfloat16));
    report(
        "GELU",
        each(rows, || {
            let mut x = filled(rows.min(56), F);
            move || activation::apply(set, Activation::Gelu, x.data_mut())
        }) * rows as f64
            / rows.min(56) as f64,
    );
    report(
        "two layer norms",
        2.0 * each(rows, || {
            let (weight, bias) = (pad_to_panels(&[1.0; H]), pad_to_panels(&[0.0; H]));
            let mut x = filled(rows, H);
            move || {
                let norm = LayerNorm { weight: &weight, bias: &bias, eps: 1e-12, columns: H };
                layer_norm(set, norm, &mut x.view_mut());
            }
        }),
    );
    println!("  {:32} {all:8.1}", "sum");
}

/// Returns a matrix of numbers from −1 to 1.
fn filled(rows: usize, columns: usize) -> Matrix {
    let numbers: Vec<f32> = (0..rows * columns).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
    let mut x = Matrix::default();
    x.fill_rows(rows, columns, &numbers);
    x
}

/// Returns the shortest time of a function in nanoseconds a token.
fn each<G: FnMut()>(rows: usize, make: impl FnOnce() -> G) -> f64 {
    let mut run = make();
    let best = (0..400).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    best.fold(f64::INFINITY, f64::min) * 1e9 / rows as f64
}

/// Returns a layer of these products, or of int8 products for `None`.
fn dense_of(products: Option<Products>, k: usize, n: usize) -> Dense {
    let weight: Vec<f32> = (0..k * n).map(|i| (i * 7 % 13) as f32 * 0.01 - 0.06).collect();
    let (weight, bias) = (Numbers::F32(&weight), vec![0.0; n]);
    if let Some(products) = products {
        return Dense::new(&[(weight, &bias)], k, products);
    }
    let factors = vec![1.0; k];
    let weight = QuantizedWeight::new(weight, &factors).expect("finite weights");
    let packed = PackedWeights::int8(&[(&weight.values, &weight.scales, &weight.columns)], &factors);
    Dense::from_parts(packed, pad_to_panels(&bias))
}

fn product(execution: Execution, products: Option<Products>, rows: usize, k: usize, n: usize) -> f64 {
    let dense = dense_of(products, k, n);
    each(rows, || {
        let (x, mut y, mut converted) = (filled(rows, k), Matrix::default(), ConvertedInputs::default());
        move || {
            let to = y.reshape(rows, n).view_mut();
            linear(execution, x.view(), &dense, Epilogue::Bias, to, &mut converted);
        }
    })
}

fn heads(execution: Execution, rows: usize, bfloat16: bool) -> f64 {
    let positions: Vec<u32> = (0..rows as u32).collect();
    each(rows, || {
        let (x, mut out, mut scratch) = (filled(rows, H), Matrix::default(), AttentionScratch::default());
        move || {
            let inputs = AttentionInputs {
                queries: x.view(),
                keys: x.view(),
                values: x.view(),
                heads: HEADS,
                size: H / HEADS,
                positions: &positions,
                window: None,
                relative_bias: None,
                relative_scores: None,
                bfloat16,
            };
            attention(execution, inputs, &mut scratch, out.reshape(rows, H).view_mut(), None);
        }
    })
}
