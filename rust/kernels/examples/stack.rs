//! Measures all layers of an encoder on this CPU, each with weights of its own, so that reading them from memory counts.
//!
//!     cargo run --release -p wordpiece-kernels --example stack \
//!         [minilm | base] [float32 | bfloat16 | int8] [threads] [instruction set]

use std::sync::Arc;
use std::time::Instant;

use wordpiece_kernels::activation::Activation;
use wordpiece_kernels::encoder::*;
use wordpiece_kernels::gemm::{Dense, PackedWeights, Products, QuantizedWeight};
use wordpiece_kernels::norm::NormKind;
use wordpiece_kernels::numbers::Numbers;
use wordpiece_kernels::plan::*;
use wordpiece_kernels::pooling::Pooling;
use wordpiece_kernels::{Execution, InstructionSet, pad_to_panels};
use wordpiece_parallel::thread_pool;

/// The tokens of the sequences of each measurement: one sentence, and a batch.
const MEASURED: [&[usize]; 9] = [&[8], &[16], &[32], &[64], &[128], &[256], &[64; 3], &[24; 32], &[128; 8]];

/// The sizes of a model.
struct Sizes {
    hidden: usize,
    heads: usize,
    intermediate: usize,
    layers: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |i: usize, default: &'static str| arguments.get(i).map_or(default, String::as_str).to_owned();
    let sizes = match argument(0, "minilm").as_str() {
        "minilm" => Sizes { hidden: 384, heads: 12, intermediate: 1536, layers: 6 },
        "base" => Sizes { hidden: 768, heads: 12, intermediate: 3072, layers: 12 },
        other => panic!("{other}: not a model"),
    };
    let dtype = argument(1, "float32");
    let threads: usize = argument(2, "1").parse().expect("a number of threads");
    let set = argument(3, "");
    let set =
        InstructionSet::all_available().into_iter().find(|each| each.name() == set).unwrap_or(InstructionSet::detect());
    let Execution { tiles, .. } = Execution::on_this_thread(set);
    let products = match dtype.as_str() {
        "float32" => Some(Products::Float32),
        "bfloat16" => Some(Products::bfloat16(set, tiles)),
        "int8" => None,
        other => panic!("{other}: not a type"),
    };
    let (encoder, bytes) = encoder(&sizes, set, products);
    let pool = thread_pool(threads - 1);
    let words: Vec<f32> = (0..1000 * sizes.hidden).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
    println!("{dtype} by {}, {threads} threads, {:.1} MB of weights", set.name(), bytes as f64 / 1e6);
    for lengths in MEASURED {
        let tokens: usize = lengths.iter().sum();
        let ids: Vec<u32> = (0..tokens as u32).map(|i| i * 7 % 1000).collect();
        let positions: Vec<u32> = lengths.iter().flat_map(|n| 0..*n as u32).collect();
        let columns = TokenColumns { ids: &ids, types: &[], position_ids: &[], positions: &positions };
        let tables = EmbeddingTables { words: Numbers::F32(&words), types: None, positions: None };
        let mut vectors = vec![0.0; lengths.len() * sizes.hidden];
        let mut best = f64::INFINITY;
        for _ in 0..(4000 / tokens).clamp(8, 60) {
            let mut first = 0;
            let sequences = lengths.iter().zip(vectors.chunks_mut(sizes.hidden)).map(|(&n, to)| {
                first += n;
                let pooled = Some(PooledOutput { modes: &[Pooling::Mean], skip: 0, to });
                Sequence { tokens: first - n..first, keys: n, states: vec![], attentions: vec![], length: n, pooled }
            });
            let sequences = sequences.collect();
            let start = Instant::now();
            encoder.run(tables, columns, sequences, pool);
            best = best.min(start.elapsed().as_secs_f64());
        }
        let check: u64 = vectors
            .iter()
            .fold(0, |hash, x| hash.rotate_left(5) ^ u64::from(x.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        println!(
            "  {:>2} × {:>3} tokens: {:8.3} ms, {:6.0} ns a token and layer, weights once: {:5.1} GB/s, {check:016x}",
            lengths.len(),
            lengths[0],
            best * 1e3,
            best * 1e9 / (tokens * sizes.layers) as f64,
            bytes as f64 / best / 1e9
        );
    }
}

/// Returns an encoder whose layers have different weights, and the size of these in bytes.
fn encoder(sizes: &Sizes, instruction_set: InstructionSet, products: Option<Products>) -> (Encoder, usize) {
    let Sizes { hidden, heads, intermediate, layers } = *sizes;
    let mut seed = 0_u32;
    let mut bytes = 0;
    let mut dense = |k: usize, n: usize| {
        let weight: Vec<f32> = (0..k * n)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((seed >> 8) as f32 / (1 << 23) as f32 - 1.0) * 0.05
            })
            .collect();
        let bias = vec![0.0; n];
        let Some(products) = products else {
            bytes += k * n + k * n / 64 * 4;
            let factors = vec![1.0; k];
            let weight = QuantizedWeight::new(Numbers::F32(&weight), &factors).expect("finite weights");
            let packed = PackedWeights::int8(&[(&weight.values, &weight.scales, &weight.columns)], &factors);
            return Arc::new(Dense::from_parts(packed, pad_to_panels(&bias)));
        };
        bytes += k * n * if products == Products::Bfloat16Pairs { 2 } else { 4 };
        Arc::new(Dense::new(&[(Numbers::F32(&weight), &bias)], k, products))
    };
    let norm = || {
        let weights = LayerNormWeights::new(&vec![1.0; hidden], &vec![0.0; hidden]);
        Norm { weights, eps: 1e-12, columns: hidden, kind: NormKind::Layer }
    };
    let residual = |body| Residual { body, before: None, after: Some(norm()), again: None, dropout: (), masked: false };
    let each_layer: Vec<_> = (0..layers)
        .map(|_| {
            let attention = Body::Attention(Attention {
                qkv: dense(hidden, 3 * hidden),
                output: dense(hidden, hidden),
                heads,
                norms: None,
                rotary: None,
                window: None,
                bias: None,
                relative: None,
                terms: 1,
                masked_sees_all: false,
                dropout: (),
            });
            let mlp = Body::Mlp(Mlp {
                inner: dense(hidden, intermediate),
                up: None,
                output: dense(intermediate, hidden),
                activation: Activation::Gelu,
                dropout: (),
            });
            vec![residual(attention), residual(mlp)]
        })
        .collect();
    let then = vec![Step::Norm(norm())];
    let embeddings =
        Embeddings { words: Some(()), positions: Some(()), types: None, tasks: None, then, masked: false, dropout: () };
    let encoder = Encoder {
        plan: Plan { embeddings, layers: each_layer, last: None },
        hidden,
        embedding: hidden,
        instruction_set,
        tiles: Execution::on_this_thread(instruction_set).tiles,
        rotary: vec![],
        relative_positions: None,
        scratch: Default::default(),
    };
    (encoder, bytes)
}
