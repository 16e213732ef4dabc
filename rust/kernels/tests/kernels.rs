//! Every kernel on every instruction set of this CPU, against the reference implementation in float64.
//!
//! Sizes lie on both sides of every edge: of a vector, a panel, a tile and a block. A failure begins with the name of its
//! instruction set. `WORDPIECE_REQUIRE_INSTRUCTION_SETS=scalar,avx2,avx512` makes the tests fail where one is missing.

mod common;

use common::{Random, matrix, numbers, wide};
use wordpiece_kernels::activation::{self, Activation};
use wordpiece_kernels::arch::TileUnit;
use wordpiece_kernels::attention::{
    AttentionInputs, AttentionScratch, AttentionWeights, RelativeBias, ScoreBias, attention,
};
use wordpiece_kernels::gemm::{Dense, Epilogue, PackedWeights, Products, UnpackedWeights, linear, linear_unpacked};
use wordpiece_kernels::norm::{LayerNorm, layer_norm};
use wordpiece_kernels::numbers::{Numbers, bf16_to_f32, f32_to_bf16};
use wordpiece_kernels::rotary::{Rotation, rotate};
use wordpiece_kernels::{Execution, InstructionSet, Matrix, PANEL, Row, View, pad_to_panels, panels, reference};
use wordpiece_parallel::testing::instruction_sets;
use wordpiece_parallel::{Workers, thread_pool};

/// Bounds on the distance of a result from the definition, in units in the last place of its scale: the result, or the sum of
/// the absolute values that are added up in it.
///
/// The comments have the greatest errors measured on AVX-512, AVX2 and scalar; each bound leaves a factor of about two.
mod ulps {
    use super::Activation;

    pub const LINEAR: f64 = 8.0; // sums of 600 products, against Σ|x·w|: 3.5
    pub const LAYER_NORM: f64 = 6.0; // 2.8
    pub const ROTATION: f64 = 2.0; // of 1, the greatest of the numbers: 0.9
    pub const CONTEXT: f64 = 3.0; // 1.1
    /// Slopes leave the weight to a few keys, whose errors do not cancel as the errors of many do.
    pub const CONTEXT_OF_FEW_KEYS: f64 = 7.0; // 3.5
    pub const WEIGHTS: f64 = 2.0; // of 1, the sum of the weights of a row: 0.5

    /// In units of |result|, or of |x| clamped to ¼…8 if that is more: most activations are x times an approximated factor.
    pub fn activation(activation: Activation) -> f64 {
        match activation {
            Activation::Identity | Activation::Relu => 0.0,
            Activation::Gelu => 5.0,                                                // 2.5
            Activation::GeluTanh | Activation::QuickGelu | Activation::Silu => 4.0, // 1.8
            Activation::Tanh => 6.0,                                                // 3.1
            Activation::Sigmoid | Activation::Mish => 4.0,                          // 1.8
        }
    }
}

/// Returns the distance of x from y in units in the last place of `scale`.
fn distance(x: f32, y: f64, scale: f64) -> f64 {
    let unit = f64::from(f32::EPSILON) * 2f64.powi(scale.abs().max(1e-30).log2().floor() as i32);
    (f64::from(x) - y).abs() / unit
}

/// Sizes at the edges of vectors (4, 8, 16), panels (32) and blocks of K (512).
const COLUMNS: [usize; 13] = [1, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 512, 600];

fn pool_of(workers: usize) -> Workers {
    thread_pool(workers).expect("the system starts threads")
}

/// Rows at the edges of tiles of 4, 6, 14, 16 and 32.
const ROWS: [usize; 19] = [1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 15, 16, 17, 28, 29, 32, 33, 49];

#[test]
fn activations_equal_their_formulas() {
    for set in instruction_sets() {
        for kind in Activation::ALL {
            // Multiples of 1/16, numbers near zero and far from it, and random numbers in between.
            let mut random = Random(1);
            let mut x: Vec<f32> = (-400..=400).map(|i| i as f32 / 16.0).collect();
            x.extend([0.0, -0.0, 1e-30, -1e-30, 1e-6, 100.0, -100.0, 1e4, -1e4, 3e38, -3e38]);
            x.extend((0..20_000).map(|i| random.next() * [1.0, 6.0, 12.0][i % 3]));
            let mut rows = pad_to_panels(&x);
            activation::apply(set, kind, &mut rows);
            let mut worst = (0.0, 0.0);
            for (x, y) in x.iter().zip(rows.iter().flat_map(|row| row.0)) {
                let expected = reference::activation(kind, f64::from(*x));
                let far = distance(y, expected, expected.abs().max(f64::from(x.abs()).clamp(0.25, 8.0)));
                worst = if far > worst.0 { (far, *x) } else { worst };
                let bound = ulps::activation(kind);
                assert!(far <= bound, "{}: {kind:?}({x}) is {y}, not {expected}: {far} ulp", set.name());
            }
            println!("{}: {kind:?}: {:.2} ulp at {}", set.name(), worst.0, worst.1);
        }
    }
}

#[test]
fn activations_of_nan_are_nan() {
    for set in instruction_sets() {
        for kind in Activation::ALL.into_iter().filter(|kind| *kind != Activation::Relu) {
            let mut rows = [Row([f32::NAN; PANEL])];
            activation::apply(set, kind, &mut rows);
            assert!(rows[0].0.iter().all(|x| x.is_nan()), "{}: {kind:?}", set.name());
        }
    }
}

#[test]
fn layer_norm_equals_its_formula() {
    for set in instruction_sets() {
        let mut worst: f64 = 0.0;
        for columns in COLUMNS {
            for rows in [1, 7, 8, 9, 17] {
                let mut random = Random(columns as u64);
                let x: Vec<f32> = random.numbers(rows * columns).iter().map(|x| 3.0 * x + 0.5).collect();
                let (weight, bias) = (random.numbers(columns), random.numbers(columns));
                let mut y = matrix(&x, rows, columns);
                let (weights, biases) = (pad_to_panels(&weight), pad_to_panels(&bias));
                let norm = LayerNorm { weight: &weights, bias: &biases, eps: 1e-5, columns };
                layer_norm(set, norm, &mut y.view_mut());
                let expected = reference::layer_norm(&wide(&x), &wide(&weight), &wide(&bias), f64::from(1e-5f32));
                for (y, expected) in numbers(&y, rows, columns).iter().zip(expected) {
                    let far = distance(*y, expected, expected.abs().max(1.0));
                    worst = worst.max(far);
                    assert!(far <= ulps::LAYER_NORM, "{}: {rows}×{columns}: {y}, not {expected}", set.name());
                }
                for row in y.view().panel(panels(columns) - 1) {
                    let valid = (columns - 1) % PANEL + 1;
                    assert!(row.0[valid..].iter().all(|x| *x == 0.0), "{}: padding columns stay 0", set.name());
                }
            }
        }
        println!("{}: layer_norm: {worst:.2} ulp", set.name());
    }
}

#[test]
fn linear_equals_its_formula_at_all_edges() {
    for set in instruction_sets() {
        let execution = Execution::on_this_thread(set);
        let mut worst: f64 = 0.0;
        for k in COLUMNS {
            for n in [1, 16, 31, 32, 33, 65] {
                let mut random = Random((k * 100 + n) as u64);
                let (weight, bias) = (random.numbers(n * k), random.numbers(n));
                let dense = Dense::new(&[(Numbers::F32(&weight), &bias)], k, Products::Float32);
                for rows in ROWS {
                    let (x, residual) = (random.numbers(rows * k), random.numbers(rows * n));
                    let expected = reference::linear(&wide(&x), &wide(&weight), &wide(&bias), k);
                    let absolute = |x: &[f32]| x.iter().map(|x| f64::from(x.abs())).collect::<Vec<_>>();
                    let scales = reference::linear(&absolute(&x), &absolute(&weight), &absolute(&bias), k);
                    let (x, residual) = (matrix(&x, rows, k), matrix(&residual, rows, n));
                    let mut y = Matrix::default();
                    let mut run = |epilogue: Epilogue<'_>| {
                        let to = y.reshape(rows, n).view_mut();
                        linear(execution, x.view(), &dense, epilogue, to, &mut Default::default());
                        numbers(&y, rows, n)
                    };
                    let plain = run(Epilogue::Bias);
                    for ((y, expected), scale) in plain.iter().zip(&expected).zip(scales) {
                        let far = distance(*y, *expected, scale.max(1.0));
                        worst = worst.max(far);
                        assert!(far <= ulps::LINEAR, "{}: {rows}×{k}×{n}: {y}, not {expected}", set.name());
                    }
                    // An epilogue has the same result as the same operation after the product.
                    let mut activated = pad_to_panels(&plain);
                    activation::apply(set, Activation::Gelu, &mut activated);
                    let activated: Vec<f32> = activated.iter().flat_map(|row| row.0).take(plain.len()).collect();
                    assert_eq!(run(Epilogue::Activation(Activation::Gelu)), activated, "{}: activation", set.name());
                    let added: Vec<f32> = plain.iter().zip(numbers(&residual, rows, n)).map(|(y, x)| y + x).collect();
                    assert_eq!(run(Epilogue::Residual(residual.view())), added, "{}: residual", set.name());
                    let gated: Vec<f32> = plain.iter().zip(numbers(&residual, rows, n)).map(|(y, x)| y * x).collect();
                    assert_eq!(run(Epilogue::Gate(residual.view())), gated, "{}: gate", set.name());
                    let mut unpacked = vec![f32::NAN; plain.len()];
                    linear_unpacked(execution, &x, &weight, &bias, Activation::Identity, &mut unpacked);
                    assert_eq!(unpacked, plain, "{}: unpacked weights", set.name());
                }
            }
        }
        println!("{}: linear: {worst:.2} ulp", set.name());
    }
}

#[test]
fn heads_are_rotated_by_the_angles_of_their_positions() {
    for set in instruction_sets() {
        for (heads, size) in [(1, 2), (3, 6), (2, 8), (3, 16), (2, 32), (5, 64), (1, 96), (2, 34), (2, 256)] {
            let mut random = Random(size as u64);
            let positions = [0, 1, 7, 500, 100_000];
            let frequencies: Vec<f32> = (0..size / 2).map(|j| 1000f32.powf(-2.0 * j as f32 / size as f32)).collect();
            let x = random.numbers(positions.len() * heads * size);
            let mut rotation = Rotation::default();
            rotation.fill(&positions, &frequencies);
            let mut rotated = matrix(&x, positions.len(), heads * size);
            rotate(set, &rotation, heads, size, &mut rotated.view_mut());
            let found = numbers(&rotated, positions.len(), heads * size);
            let expected = reference::rotate(&wide(&x), &positions, &frequencies, size);
            for (y, expected) in found.iter().zip(&expected) {
                let far = distance(*y, *expected, 1.0);
                assert!(far <= ulps::ROTATION, "{}: {heads} heads of {size}: {y}, not {expected}", set.name());
            }
        }
    }
}

/// Returns the ways to multiply pairs of bfloat16 numbers, with the name of each: all instruction sets, AVX-512 also as on CPUs
/// without an instruction for pairs, AMX where it is, and its emulation everywhere.
fn paths_of_pairs() -> Vec<(&'static str, Execution)> {
    let vectors = |set| Execution { tiles: None, ..Execution::on_this_thread(set) };
    let mut paths = Vec::new();
    for set in instruction_sets() {
        paths.push((set.name(), vectors(set)));
        #[cfg(target_arch = "x86_64")]
        if let InstructionSet::Avx512(token) = set {
            let plain = InstructionSet::Avx512(token.without_extensions());
            paths.push(("avx512 without bf16", vectors(plain)));
        }
        #[cfg(target_arch = "aarch64")]
        if let InstructionSet::Neon(token) = set {
            let plain = InstructionSet::Neon(token.without_extensions());
            paths.push(("neon without bf16", vectors(plain)));
            if token.bf16_matrix().is_some() {
                paths.push(("neon with BFDOT", vectors(InstructionSet::Neon(token.without_matrices()))));
            }
        }
        if let Some(unit) = TileUnit::of(set) {
            paths.push((unit.name(), Execution::on_this_thread(set)));
        }
    }
    let best = vectors(InstructionSet::detect());
    paths.push((TileUnit::Emulated.name(), Execution { tiles: Some(TileUnit::Emulated), ..best }));
    paths
}

#[test]
fn bfloat16_products_are_those_of_rounded_numbers() {
    let pool = pool_of(1);
    let round = |x: &[f32]| -> Vec<f32> { x.iter().map(|x| bf16_to_f32(f32_to_bf16(*x))).collect() };
    for (name, alone) in paths_of_pairs() {
        let mut worst: f64 = 0.0;
        for k in COLUMNS {
            for n in [1, 31, 32, 33] {
                let mut random = Random((k * 100 + n) as u64);
                let (weight, bias) = (random.numbers(n * k), random.numbers(n));
                let dense = Dense::new(&[(Numbers::F32(&weight), &bias)], k, Products::Bfloat16Pairs);
                let bits: Vec<u16> = weight.iter().map(|x| f32_to_bf16(*x)).collect();
                assert_eq!(dense.weights().unpack(0, n), UnpackedWeights::Bf16(bits), "{name}");
                for rows in ROWS {
                    let x = random.numbers(rows * k);
                    let (near_x, near_weight) = (wide(&round(&x)), wide(&round(&weight)));
                    let expected = reference::linear(&near_x, &near_weight, &wide(&bias), k);
                    let absolute = |x: &[f64]| x.iter().map(|x| x.abs()).collect::<Vec<_>>();
                    let scales =
                        reference::linear(&absolute(&near_x), &absolute(&near_weight), &absolute(&wide(&bias)), k);
                    let mut y = Matrix::default();
                    // Padding columns must not matter.
                    let mut x = matrix(&x, rows, k);
                    for row in &mut x.data_mut()[(panels(k) - 1) * rows..] {
                        row.0[(k - 1) % PANEL + 1..].fill(f32::NAN);
                    }
                    let to = y.reshape(rows, n).view_mut();
                    let execution = Execution { pool: (rows % 2 == 0).then_some(pool), ..alone };
                    linear(execution, x.view(), &dense, Epilogue::Bias, to, &mut Default::default());
                    let found = numbers(&y, rows, n);
                    for ((y, expected), scale) in found.iter().zip(expected).zip(scales) {
                        let far = distance(*y, expected, scale.max(1.0));
                        worst = worst.max(far);
                        assert!(far <= ulps::LINEAR, "{name}: {rows}×{k}×{n}: {y}, not {expected}");
                    }
                    let mut last = Matrix::default();
                    let (view, to) = (x.view().rows(rows - 1..rows), last.reshape(1, n).view_mut());
                    linear(alone, view, &dense, Epilogue::Bias, to, &mut Default::default());
                    assert_eq!(numbers(&last, 1, n), found[(rows - 1) * n..], "{name}: a row has the same bits alone");
                }
            }
        }
        println!("{name}: bfloat16: {worst:.2} ulp");
    }
}

#[test]
fn packed_weights_can_be_unpacked_and_the_outputs_of_each_layer_begin_at_a_panel() {
    for (k, sizes) in [(5, vec![3]), (40, vec![33, 33, 33]), (64, vec![64, 1]), (17, vec![32])] {
        let mut random = Random(k as u64);
        let weights: Vec<Vec<f32>> = sizes.iter().map(|n| random.numbers(n * k)).collect();
        let wide: Vec<Numbers<'_>> = weights.iter().map(|weight| Numbers::F32(weight)).collect();
        let wide = PackedWeights::new(&wide, k);
        let mut first = 0;
        for (weight, n) in weights.iter().zip(sizes) {
            assert_eq!(wide.unpack(first, n), UnpackedWeights::F32(weight.clone()));
            first += panels(n);
        }
        assert_eq!((wide.k(), wide.panels()), (k, first));
    }
}

#[test]
fn a_row_has_the_same_bits_beside_any_number_of_others_and_on_any_number_of_threads() {
    let pools = [1, 2, 3].map(pool_of);
    for set in instruction_sets() {
        let (k, n) = (100, 70);
        let mut random = Random(5);
        let (weight, bias) = (random.numbers(n * k), random.numbers(n));
        let dense = Dense::new(&[(Numbers::F32(&weight), &bias)], k, Products::Float32);
        let x = random.numbers(40 * k);
        let run = |x: View<'_>, pool: Option<Workers>| {
            let mut y = Matrix::default();
            let epilogue = Epilogue::Activation(Activation::Gelu);
            let to = y.reshape(x.len(), n).view_mut();
            linear(
                Execution { instruction_set: set, tiles: None, pool },
                x,
                &dense,
                epilogue,
                to,
                &mut Default::default(),
            );
            numbers(&y, x.len(), n)
        };
        let all = matrix(&x, 40, k);
        let whole = run(all.view(), None);
        for rows in 1..=40 {
            for start in [0, 1, 7, 39] {
                let range = start..(start + rows).min(40);
                let rows = run(all.view().rows(range.clone()), None);
                assert_eq!(rows, whole[range.start * n..range.end * n], "{}: rows {range:?}", set.name());
            }
        }
        for pool in pools {
            let workers = pool.count();
            assert_eq!(run(all.view(), Some(pool)), whole, "{}: {workers} workers", set.name());
        }
    }
}

#[test]
fn attention_equals_its_formula() {
    let pool = pool_of(2);
    for set in instruction_sets() {
        let (mut worst, mut worst_weight): (f64, f64) = (0.0, 0.0);
        for (heads, size) in [(1, 32), (2, 32), (3, 8), (2, 64), (1, 96), (2, 20), (1, 1)] {
            for (rows, keys) in [(1, 1), (5, 5), (14, 14), (15, 9), (31, 31), (33, 32), (40, 33), (70, 70)] {
                for kind in ["no bias", "a table", "slopes"] {
                    let mut random = Random((heads * size + rows) as u64);
                    let hidden = heads * size;
                    let [q, k, v] = [(); 3].map(|()| random.numbers(rows * hidden));
                    let max_distance = 3 * rows;
                    let bias = random.numbers(heads * (2 * max_distance + 1));
                    let slopes: Vec<f32> = (0..heads).map(|head| 0.5 / (head + 1) as f32).collect();
                    // Positions with gaps, and masked rows after the others, at any position.
                    let length = 2 * rows + 1;
                    let positions: Vec<u32> =
                        (0..keys).map(|i| 2 * i as u32 + 1).chain((0..rows - keys).map(|i| 2 * i as u32)).collect();
                    let [qm, km, vm] = [&q, &k, &v].map(|x| matrix(x, rows, hidden));
                    let mut out = Matrix::default();
                    let mut weights = vec![0.0; heads * length * length];
                    let inputs = AttentionInputs {
                        queries: qm.view(),
                        keys: km.view().rows(0..keys),
                        values: vm.view().rows(0..keys),
                        heads,
                        size,
                        positions: &positions,
                        window: None,
                        relative_bias: match kind {
                            "a table" => Some(ScoreBias::Distances(RelativeBias { bias: &bias, max_distance })),
                            "slopes" => Some(ScoreBias::Slopes(&slopes)),
                            _ => None,
                        },
                        relative_scores: None,
                        bfloat16: false,
                    };
                    let allowed = if kind == "slopes" { ulps::CONTEXT_OF_FEW_KEYS } else { ulps::CONTEXT };
                    let to = Some(AttentionWeights { to: &mut weights, length });
                    let alone = Execution::on_this_thread(set);
                    let view = out.reshape(rows, hidden).view_mut();
                    attention(alone, inputs, &mut AttentionScratch::default(), view, to);
                    let context = numbers(&out, rows, hidden);
                    let mut without = Matrix::default();
                    let to = without.reshape(rows, hidden).view_mut();
                    let with_pool = Execution { instruction_set: set, tiles: None, pool: Some(pool) };
                    attention(with_pool, inputs, &mut AttentionScratch::default(), to, None);
                    assert_eq!(
                        numbers(&without, rows, hidden),
                        context,
                        "{}: with and without weights, on one and several threads",
                        set.name()
                    );
                    for head in 0..heads {
                        let part = |x: &[f32], rows: usize| -> Vec<f64> {
                            x.chunks(hidden).take(rows).flat_map(|row| wide(&row[head * size..][..size])).collect()
                        };
                        let add = |i: usize, j: usize| match kind {
                            "slopes" => -f64::from(slopes[head]) * f64::from(positions[j].abs_diff(positions[i])),
                            "a table" => {
                                let distance = i64::from(positions[j]) - i64::from(positions[i]);
                                let index = (max_distance as i64 + distance) as usize;
                                f64::from(bias[head * (2 * max_distance + 1) + index])
                            }
                            _ => 0.0,
                        };
                        let (expected, p) =
                            reference::attention(&part(&q, rows), &part(&k, keys), &part(&v, keys), size, add);
                        for (i, expected) in expected.chunks(size).enumerate() {
                            for (c, expected) in expected.iter().enumerate() {
                                let far = distance(context[i * hidden + head * size + c], *expected, 1.0);
                                worst = worst.max(far);
                                assert!(far <= allowed, "{}: {kind} {heads}×{size} {rows} {keys}: {far}", set.name());
                            }
                        }
                        let of_head = &weights[head * length * length..][..length * length];
                        let mut seen = 0.0;
                        for (i, p) in p.chunks(keys).enumerate() {
                            for (j, p) in p.iter().enumerate() {
                                let weight = of_head[positions[i] as usize * length + positions[j] as usize];
                                let far = distance(weight, *p, 1.0);
                                worst_weight = worst_weight.max(far);
                                assert!(far <= ulps::WEIGHTS, "{}: weight {weight}, not {p}", set.name());
                                seen += f64::from(weight);
                            }
                        }
                        let all: f64 = of_head.iter().map(|x| f64::from(*x)).sum();
                        assert!((all - seen).abs() < 1e-9, "{}: 0 where there is no token", set.name());
                    }
                }
            }
        }
        println!("{}: attention: context {worst:.2} ulp, weights {worst_weight:.2} ulp", set.name());
    }
}

#[test]
fn attention_in_bfloat16_is_that_of_rounded_numbers() {
    let pool = pool_of(1);
    let round = |x: &[f32]| -> Vec<f32> { x.iter().map(|x| bf16_to_f32(f32_to_bf16(*x))).collect() };
    for (name, alone) in paths_of_pairs() {
        let mut worst: f64 = 0.0;
        for (heads, size) in [(2, 32), (1, 64), (3, 5), (2, 40)] {
            for (rows, keys) in [(1, 1), (5, 3), (15, 15), (33, 31), (34, 34), (70, 65)] {
                let mut random = Random((rows * 100 + size) as u64);
                let hidden = heads * size;
                let [q, k, v] = [(); 3].map(|()| random.numbers(rows * hidden));
                let positions: Vec<u32> = (0..rows as u32).collect();
                let [qm, km, vm] = [&q, &k, &v].map(|x| matrix(x, rows, hidden));
                let run = |execution: Execution, first: usize, weights: Option<AttentionWeights<'_>>| {
                    let inputs = AttentionInputs {
                        queries: qm.view().rows(first..rows),
                        keys: km.view().rows(0..keys.min(rows - first)),
                        values: vm.view().rows(0..keys.min(rows - first)),
                        heads,
                        size,
                        positions: &positions[first..],
                        window: None,
                        relative_bias: None,
                        relative_scores: None,
                        bfloat16: true,
                    };
                    let mut out = Matrix::default();
                    let to = out.reshape(rows - first, hidden).view_mut();
                    attention(execution, inputs, &mut AttentionScratch::default(), to, weights);
                    numbers(&out, rows - first, hidden)
                };
                let mut weights = vec![0.0; heads * rows * rows];
                let context = run(alone, 0, Some(AttentionWeights { to: &mut weights, length: rows }));
                let shared = run(Execution { pool: Some(pool), ..alone }, 0, None);
                assert_eq!(context, shared, "{name}: on one and several threads");
                for head in 0..heads {
                    let part = |x: &[f32], rows: usize| -> Vec<f64> {
                        x.chunks(hidden).take(rows).flat_map(|row| wide(&round(&row[head * size..][..size]))).collect()
                    };
                    let (expected, _) =
                        reference::attention(&part(&q, rows), &part(&k, keys), &part(&v, keys), size, |_, _| 0.0);
                    for (i, expected) in expected.chunks(size).enumerate() {
                        for (c, expected) in expected.iter().enumerate() {
                            // The numerators, from 0 to 1, are rounded to 8 bits.
                            let far = (f64::from(context[i * hidden + head * size + c]) - expected).abs();
                            worst = worst.max(far);
                            assert!(far <= 1.0 / 256.0, "{name}: {heads}×{size} {rows} {keys}: {far}");
                        }
                        let sum: f32 = weights[(head * rows + i) * rows..][..rows].iter().sum();
                        assert!((sum - 1.0).abs() < 1e-5, "{name}: the weights of a row add up to {sum}");
                    }
                }
            }
        }
        println!("{name}: attention in bfloat16: {worst:.5}");
    }
}

#[test]
fn rounded_weights_are_multiplied_by_inputs_as_they_are() {
    for set in instruction_sets() {
        let (k, n, rows) = (70, 65, 17);
        let mut random = Random(4);
        let (weight, bias, x) = (random.numbers(n * k), random.numbers(n), random.numbers(rows * k));
        let near: Vec<f32> = weight.iter().map(|x| bf16_to_f32(f32_to_bf16(*x))).collect();
        let run = |weight: &[f32], products: Products| {
            let dense = Dense::new(&[(Numbers::F32(weight), &bias)], k, products);
            let (x, mut y) = (matrix(&x, rows, k), Matrix::default());
            let to = y.reshape(rows, n).view_mut();
            linear(Execution::on_this_thread(set), x.view(), &dense, Epilogue::Bias, to, &mut Default::default());
            numbers(&y, rows, n)
        };
        assert_eq!(run(&weight, Products::RoundedWeights), run(&near, Products::Float32), "{}", set.name());
        let dense =
            Dense::new(&[(Numbers::F32(&weight), &bias), (Numbers::F32(&near), &bias)], k, Products::RoundedWeights);
        let bits = UnpackedWeights::Bf16(weight.iter().map(|x| f32_to_bf16(*x)).collect());
        assert_eq!([0, panels(n)].map(|first| dense.weights().unpack(first, n)), [bits.clone(), bits]);
        assert_ne!(run(&weight, Products::RoundedWeights), run(&weight, Products::Float32), "{}", set.name());
    }
}

#[test]
fn products_of_bfloat16_are_chosen_by_instructions_and_tile_registers() {
    for set in instruction_sets() {
        let chosen = Products::bfloat16(set, None);
        assert_eq!(chosen.is_faster(), chosen == Products::Bfloat16Pairs);
        assert_eq!(chosen.name(set, None).ends_with("-bf16"), chosen.is_faster());
        assert_eq!(Products::bfloat16(set, Some(TileUnit::Emulated)), Products::Bfloat16Pairs);
    }
    assert_eq!(Products::bfloat16(InstructionSet::Scalar, None), Products::RoundedWeights);
}
