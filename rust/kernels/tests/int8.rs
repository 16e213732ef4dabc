//! Quantized dense layers on every way of multiplying bytes that this CPU has, against their formula in float64.
//!
//! `WORDPIECE_REQUIRE_BYTE_PATHS=avx512-vnni,avx512-plain,avx-vnni,avx2-plain,scalar` makes the tests fail where one is missing.

mod common;

use std::io::Write;
use std::sync::Once;

use common::{Random, matrix};
use wordpiece_kernels::activation::Activation;
use wordpiece_kernels::arch::TileUnit;
use wordpiece_kernels::gemm::{
    Dense, Epilogue, PackedWeights, QuantizedWeight, UnpackedWeights, byte_products_name, groups, linear,
};
use wordpiece_kernels::numbers::Numbers;
use wordpiece_kernels::{Execution, InstructionSet, Matrix, PANEL, Row, View, pad_to_panels, panels};
use wordpiece_parallel::thread_pool;

/// Returns every way of multiplying bytes, by name. The first call reports them, and those that this CPU lacks.
///
/// Tile registers are emulated where the CPU has none, so that all but their instructions is tested everywhere.
fn paths() -> Vec<(&'static str, Execution)> {
    const NAMES: &[&str] = if cfg!(target_arch = "x86_64") {
        &["scalar", "avx2-plain", "avx-vnni", "avx512-plain", "avx512-vnni", "amx-int8"]
    } else if cfg!(target_arch = "aarch64") {
        &["scalar", "neon-plain", "sdot", "smmla"]
    } else {
        &["scalar"]
    };
    static REPORTED: Once = Once::new();
    let by_vectors = InstructionSet::all_available().into_iter().flat_map(InstructionSet::byte_paths);
    let mut all: Vec<_> = by_vectors.map(|(name, set)| (name, by(set, None))).collect();
    let best = InstructionSet::detect();
    if let Some(unit) = TileUnit::of(best).filter(|unit| unit.multiplies_bytes()) {
        all.push(("amx-int8", by(best, Some(unit))));
    }
    all.push(("amx-emulated-int8", by(best, Some(TileUnit::Emulated))));
    let skipped: Vec<&str> = NAMES.iter().copied().filter(|name| all.iter().all(|path| path.0 != *name)).collect();
    REPORTED.call_once(|| {
        let names: Vec<&str> = all.iter().map(|path| path.0).collect();
        let _ = writeln!(std::io::stderr(), "int8 paths tested: {}; skipped: {}", names.join(", "), skipped.join(", "));
    });
    let required = std::env::var("WORDPIECE_REQUIRE_BYTE_PATHS").unwrap_or_default();
    for name in required.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        assert!(all.iter().any(|path| path.0 == name), "{name}: required, but not available here");
    }
    all
}

fn by(instruction_set: InstructionSet, tiles: Option<TileUnit>) -> Execution {
    Execution { instruction_set, tiles, pool: None }
}

fn product(execution: Execution, x: View<'_>, dense: &Dense, n: usize) -> Vec<f32> {
    let mut y = Matrix::default();
    let to = y.reshape(x.len(), n).view_mut();
    linear(execution, x, dense, Epilogue::Bias, to, &mut Default::default());
    let mut numbers = vec![0.0; x.len() * n];
    for (row, to) in numbers.chunks_mut(n).enumerate() {
        y.copy_row(row, to);
    }
    numbers
}

/// A layer of random weights, its packed form, and the weights that it stands for, with input factors.
struct Layer {
    dense: Dense,
    quantized: QuantizedWeight,
    factors: Vec<f32>,
    bias: Vec<f32>,
    k: usize,
}

fn layer(k: usize, n: usize, seed: u64) -> Layer {
    let mut random = Random(seed);
    let (weight, bias) = (random.numbers(n * k), random.numbers(n));
    let mut factors: Vec<f32> = random.numbers(k).iter().map(|x| 1.5 + x).collect();
    // Some inputs are not quantized: at the edges of groups and panels, and up to all of a group.
    for j in [(seed % 3) as usize, 32, 63, 64, 129].into_iter().filter(|j| *j < k && seed.is_multiple_of(2)) {
        factors[j] = 0.0;
    }
    let quantized = QuantizedWeight::new(Numbers::F32(&weight), &factors).expect("finite weights");
    let packed = PackedWeights::int8(&[(&quantized.values, &quantized.scales, &quantized.columns)], &factors);
    Layer { dense: Dense::from_parts(packed, pad_to_panels(&bias)), quantized, factors, bias, k }
}

impl Layer {
    /// Returns the products of rows as documented: inputs times factors, quantized by row and group, times the quantized
    /// weights; and the greatest magnitude that is added up in each.
    fn expected(&self, x: &[f32]) -> Vec<(f64, f64)> {
        let mut all = Vec::new();
        for x in x.chunks(self.k) {
            let scaled: Vec<f32> = x.iter().zip(&self.factors).map(|(x, factor)| x * factor).collect();
            for (n, bias) in self.bias.iter().enumerate() {
                let (mut sum, mut size) = (f64::from(*bias), f64::from(bias.abs()));
                for (g, group) in scaled.chunks(64).enumerate() {
                    let most = group.iter().fold(0f32, |most, x| most.max(x.abs()));
                    let inverse = 127.0 / most;
                    let products = group.iter().enumerate().map(|(i, x)| {
                        let q = if most == 0.0 { 0.0 } else { (x * inverse).round_ties_even() };
                        q as i64 * i64::from(self.quantized.values[n * self.k + 64 * g + i])
                    });
                    let scale = self.quantized.scales[n * groups(self.k) + g];
                    let product = products.sum::<i64>() as f64 * f64::from(most * (1.0 / 127.0)) * f64::from(scale);
                    sum += product;
                    size += product.abs();
                }
                let kept: Vec<usize> = (0..self.k).filter(|j| self.factors[*j] == 0.0).collect();
                for (i, j) in kept.iter().enumerate() {
                    let product = f64::from(x[*j]) * f64::from(self.quantized.columns[n * kept.len() + i]);
                    sum += product;
                    size += product.abs();
                }
                all.push((sum, size));
            }
        }
        all
    }
}

#[test]
fn quantized_layers_equal_their_formula_at_all_edges() {
    for (name, execution) in paths() {
        for k in [1, 3, 4, 31, 32, 33, 63, 64, 65, 96, 128, 130, 600] {
            for n in [1, 31, 32, 33, 65] {
                let layer = layer(k, n, (k * 100 + n) as u64);
                let mut random = Random(7);
                for rows in [1, 2, 5, 6, 7, 13, 14, 15, 29, 33] {
                    let x = random.numbers(rows * k);
                    let y = product(execution, matrix(&x, rows, k).view(), &layer.dense, n);
                    for (y, (expected, size)) in y.iter().zip(layer.expected(&x)) {
                        let far = (f64::from(*y) - expected).abs() / (size * f64::from(f32::EPSILON));
                        assert!(far <= 6.0, "{name}: {rows}×{k}×{n}: {y}, not {expected}: {far} ulp");
                    }
                }
            }
        }
    }
}

#[test]
fn all_paths_add_up_the_same_integers() {
    // A single group of unit scales: the result is the integer sum, which float32 holds exactly.
    let mut random = Random(11);
    let mut byte = || (random.next() * 127.0).round() as i8;
    for k in [1, 4, 7, 33, 64] {
        let (n, rows) = (40, 17);
        let mut values: Vec<i8> = (0..n * k).map(|_| byte()).collect();
        let mut x: Vec<f32> = (0..rows * k).map(|_| f32::from(byte())).collect();
        // The greatest sums: products of ±127 only, for which 16 bits would be too few if any were lost.
        values[..k].fill(127);
        values[k..2 * k].fill(-127);
        x[..k].fill(127.0);
        x[k..2 * k].fill(-127.0);
        for row in x.chunks_mut(k) {
            row[0] = 127.0; // the scale of each row is 1
        }
        let packed = PackedWeights::int8(&[(&values, &vec![1.0; n], &[])], &vec![1.0; k]);
        let dense = Dense::from_parts(packed, vec![Row::ZERO; panels(n)]);
        let expected: Vec<f32> = x
            .chunks(k)
            .flat_map(|x| {
                values.chunks(k).map(|w| x.iter().zip(w).map(|(x, w)| *x as i32 * i32::from(*w)).sum::<i32>() as f32)
            })
            .collect();
        for (name, execution) in paths() {
            assert_eq!(product(execution, matrix(&x, rows, k).view(), &dense, n), expected, "{name}, K = {k}");
        }
    }
}

#[test]
fn tile_registers_give_the_same_bits_as_vectors() {
    for set in InstructionSet::all_available() {
        let units = [Some(TileUnit::Emulated), TileUnit::of(set).filter(|unit| unit.multiplies_bytes())];
        for (k, n) in [(1, 1), (63, 32), (64, 33), (65, 31), (130, 65), (600, 96)] {
            let layer = layer(k, n, 12);
            for rows in [8, 9, 15, 16, 17, 31, 32, 33, 70] {
                let x = matrix(&Random(rows as u64).numbers(rows * k), rows, k);
                for (name, set) in set.byte_paths() {
                    let expected = product(by(set, None), x.view(), &layer.dense, n);
                    for unit in units.into_iter().flatten() {
                        let found = product(by(set, Some(unit)), x.view(), &layer.dense, n);
                        assert_eq!(found, expected, "{} beside {name}: {rows}×{k}×{n}", unit.name());
                    }
                }
            }
        }
    }
}

#[test]
fn products_of_bytes_have_the_name_of_what_multiplies_them() {
    for set in InstructionSet::all_available() {
        assert_eq!(byte_products_name(set, None), set.byte_paths()[0].0);
        assert_eq!(byte_products_name(set, Some(TileUnit::Emulated)), "amx-emulated-int8");
    }
}

#[test]
fn a_row_has_the_same_bits_beside_any_others_and_on_any_number_of_threads() {
    let pools = [1, 3].map(|workers| thread_pool(workers).expect("the system starts threads"));
    for (name, execution) in paths() {
        let (k, n) = (200, 70);
        let layer = layer(k, n, 6);
        let x = Random(6).numbers(40 * k);
        let all = matrix(&x, 40, k);
        let whole = product(execution, all.view(), &layer.dense, n);
        for rows in [1, 2, 13, 14, 15, 40] {
            for start in [0, 1, 7, 39] {
                let range = start..(start + rows).min(40);
                let part = product(execution, all.view().rows(range.clone()), &layer.dense, n);
                assert_eq!(part, whole[range.start * n..range.end * n], "{name}: rows {range:?}");
            }
        }
        for pool in pools {
            assert_eq!(
                product(Execution { pool: Some(pool), ..execution }, all.view(), &layer.dense, n),
                whole,
                "{name}"
            );
        }
    }
}

#[test]
fn numbers_beyond_the_last_column_do_not_change_the_scale() {
    for (name, execution) in paths() {
        let (k, n) = (40, 8);
        let layer = layer(k, n, 9);
        let mut x = matrix(&Random(1).numbers(3 * k), 3, k);
        let clean = product(execution, x.view(), &layer.dense, n);
        for row in &mut x.data_mut()[3..] {
            row.0[k - PANEL..].fill(f32::NAN);
        }
        assert_eq!(product(execution, x.view(), &layer.dense, n), clean, "{name}");
    }
}

#[test]
fn inputs_that_are_not_finite_give_results_that_are_not_finite() {
    for (name, execution) in paths() {
        let layer = layer(70, 33, 2);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = Random(3).numbers(2 * 70);
            x[66] = bad;
            let y = product(execution, matrix(&x, 2, 70).view(), &layer.dense, 33);
            assert!(y[..33].iter().all(|y| !y.is_finite()), "{name}: {bad}");
            assert!(y[33..].iter().all(|y| y.is_finite()), "{name}: another row");
        }
    }
}

#[test]
fn packed_weights_are_unpacked_bit_for_bit() {
    for (k, n) in [(1, 1), (64, 32), (65, 33), (200, 70)] {
        let (first, second) = (layer(k, n, 2), layer(k, n + 1, 8));
        let parts =
            [&first.quantized, &second.quantized].map(|part| (&part.values[..], &part.scales[..], &part.columns[..]));
        let packed = PackedWeights::int8(&parts, &first.factors);
        assert_eq!(packed.unpack(0, n), UnpackedWeights::Int8(first.quantized));
        assert_eq!(packed.unpack(panels(n), n + 1), UnpackedWeights::Int8(second.quantized));
        let kept: Vec<f32> = packed.factors().expect("int8 has factors").iter().flat_map(|row| row.0).take(k).collect();
        assert_eq!(kept, first.factors);
    }
}

#[test]
fn epilogues_follow_as_for_other_weights() {
    for (name, execution) in paths() {
        let layer = layer(64, 40, 8);
        let x = matrix(&Random(9).numbers(5 * 64), 5, 64);
        let plain = product(execution, x.view(), &layer.dense, 40);
        let mut y = Matrix::default();
        let to = y.reshape(5, 40).view_mut();
        let epilogue = Epilogue::Activation(Activation::Relu);
        linear(execution, x.view(), &layer.dense, epilogue, to, &mut Default::default());
        let mut row = vec![0.0; 40];
        for (i, plain) in plain.chunks(40).enumerate() {
            y.copy_row(i, &mut row);
            assert!(row.iter().zip(plain).all(|(y, x)| *y == x.max(0.0)), "{name}");
        }
    }
}

#[test]
fn a_layer_that_observes_has_the_squares_and_the_greatest_of_its_inputs() {
    let layer = layer(40, 8, 1);
    let dense = layer.dense.observing();
    let x = Random(2).numbers(5 * 40);
    let execution = Execution::on_this_thread(InstructionSet::detect());
    for part in [&x[..80], &x[80..]] {
        product(execution, matrix(part, part.len() / 40, 40).view(), &dense, 8);
    }
    let observed = dense.observed().expect("the layer observes");
    assert_eq!(observed.rows, 5);
    for (column, (sum, most)) in observed.squares.iter().zip(&observed.greatest).enumerate() {
        let of_column = || x.iter().skip(column).step_by(40);
        let expected: f64 = of_column().map(|x| f64::from(*x).powi(2)).sum();
        assert!((sum - expected).abs() < 1e-12, "column {column}: {sum}, not {expected}");
        assert_eq!(*most, of_column().fold(0.0, |most: f32, x| most.max(x.abs())), "column {column}");
    }
}
