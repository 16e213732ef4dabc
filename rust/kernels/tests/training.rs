//! The kernels of the backward pass on every instruction set of this CPU, against their formulas in float64.
//!
//! The encoder as a whole is compared with the one in NumPy, and with torch's gradients, by `tests/test_finetune_*.py`.

mod common;

use common::{Random, matrix, numbers};
use wordpiece_kernels::activation::Activation;
use wordpiece_kernels::norm::{LayerNorm, NormKind};
use wordpiece_kernels::training::*;
use wordpiece_kernels::{Execution, Matrix, PANEL, Row, pad_to_panels, panels, reference};
use wordpiece_parallel::testing::instruction_sets;
use wordpiece_parallel::thread_pool;

#[test]
fn slopes_equal_central_differences() {
    for set in instruction_sets() {
        for kind in Activation::ALL {
            let x: Vec<f32> = (-1600..=1600).map(|i| (i as f32 + 0.5) / 64.0).collect();
            let z = pad_to_panels(&x);
            let mut gradient = vec![Row([2.0; PANEL]); z.len()];
            let mut h = vec![Row::ZERO; z.len()];
            activation_backward(set, kind, &z, &mut gradient, &mut h);
            for (i, x) in x.iter().enumerate() {
                let at = f64::from(*x);
                let [below, value, above] = [-1e-5, 0.0, 1e-5].map(|step| reference::activation(kind, at + step));
                let slope = (above - below) / 2e-5;
                let (found, own) = (f64::from(gradient[i / PANEL].0[i % PANEL]), f64::from(h[i / PANEL].0[i % PANEL]));
                assert!((found - 2.0 * slope).abs() < 5e-6, "{}: {kind:?}′({x}) is {found}/2, not {slope}", set.name());
                assert!((own - value).abs() <= 1e-6 * at.abs().max(1.0), "{}: {kind:?}({x}) is {own}", set.name());
            }
            let mut far = [Row([3e38; PANEL]), Row([-3e38; PANEL])];
            let z = far;
            far.fill(Row([1.0; PANEL]));
            activation_backward(set, kind, &z, &mut far, &mut [Row::ZERO; 2]);
            assert!(far.iter().flat_map(|row| row.0).all(f32::is_finite), "{}: {kind:?}", set.name());
        }
    }
}

#[test]
fn norms_equal_their_formulas() {
    let sizes = [(1, 1), (7, 31), (9, 33), (17, 100)];
    for (set, kind) in instruction_sets().into_iter().flat_map(|set| [(set, NormKind::Layer), (set, NormKind::Rms)]) {
        let without_mean = |mean: f64| if kind == NormKind::Rms { 0.0 } else { mean };
        for (rows, columns) in sizes {
            let mut random = Random(columns as u64);
            let (x, dy) = (random.numbers(rows * columns), random.numbers(rows * columns));
            let (gamma, beta) = (random.numbers(columns), random.numbers(columns));
            let (weight, bias) = (pad_to_panels(&gamma), pad_to_panels(&beta));
            let norm = LayerNorm { weight: &weight, bias: &bias, eps: 1e-3, columns };
            let mut kept = Normalized { x_hat: matrix(&x, rows, columns), r: Vec::new() };
            let mut y = Matrix::default();
            normalize(set, kind, norm, &mut kept, &mut y.reshape(rows, columns).view_mut());
            let mut dx = matrix(&dy, rows, columns);
            let mut sums = [vec![Row::ZERO; weight.len()], vec![Row::ZERO; weight.len()]];
            normalize_backward(set, kind, norm, &kept, &mut dx.view_mut(), sums.each_mut().map(|sums| &mut sums[..]));
            let (y, dx) = (numbers(&y, rows, columns), numbers(&dx, rows, columns));
            let mut expected = [vec![0.0; columns], vec![0.0; columns]];
            for row in 0..rows {
                let part = row * columns..(row + 1) * columns;
                let x: Vec<f64> = x[part.clone()].iter().map(|x| f64::from(*x)).collect();
                let mean = |x: &[f64]| x.iter().sum::<f64>() / columns as f64;
                let centered: Vec<f64> = x.iter().map(|v| v - without_mean(mean(&x))).collect();
                let r = 1.0 / (mean(&centered.iter().map(|v| v * v).collect::<Vec<_>>()) + f64::from(1e-3f32)).sqrt();
                let x_hat: Vec<f64> = centered.iter().map(|v| v * r).collect();
                let g: Vec<f64> =
                    dy[part.clone()].iter().zip(&gamma).map(|(a, b)| f64::from(*a) * f64::from(*b)).collect();
                let product = mean(&g.iter().zip(&x_hat).map(|(a, b)| a * b).collect::<Vec<_>>());
                for (i, at) in part.enumerate() {
                    let value = x_hat[i] * f64::from(gamma[i]) + f64::from(beta[i]);
                    assert!((f64::from(y[at]) - value).abs() < 3e-6, "{}: {rows} × {columns}", set.name());
                    let gradient = r * (g[i] - without_mean(mean(&g)) - x_hat[i] * product);
                    assert!(
                        (f64::from(dx[at]) - gradient).abs() < 1e-5 * r.max(1.0),
                        "{}: {rows} × {columns}",
                        set.name()
                    );
                    expected[0][i] += f64::from(dy[at]) * x_hat[i];
                    expected[1][i] += f64::from(dy[at]);
                }
            }
            for (found, expected) in sums.iter().zip(expected) {
                for (found, expected) in found.iter().flat_map(|row| row.0).zip(expected) {
                    assert!((f64::from(found) - expected).abs() < 1e-5, "{}: {rows} × {columns}", set.name());
                }
            }
        }
    }
}

#[test]
fn gradients_of_weights_equal_their_formula_for_any_number_of_threads() {
    for set in instruction_sets() {
        for (outputs, inputs, parts) in [(1, 1, vec![1]), (33, 31, vec![5, 0, 14]), (140, 400, vec![20, 600])] {
            let mut random = Random(7);
            let all: Vec<_> = parts
                .iter()
                .map(|rows| (*rows, random.numbers(rows * outputs), random.numbers(rows * inputs)))
                .collect();
            let by_panels: Vec<_> =
                all.iter().map(|(rows, dy, x)| [matrix(dy, *rows, outputs), matrix(x, *rows, inputs)]).collect();
            let mut results = Vec::new();
            for pool in [None, thread_pool(2)] {
                let mut dw = vec![f32::NAN; outputs * inputs];
                for add in [false, true] {
                    let parts = by_panels.iter().map(|part| part.each_ref().map(Matrix::view)).collect();
                    let gradient = WeightGradient { parts, inputs, to: &mut dw, add };
                    weight_gradients(Execution { pool, ..Execution::on_this_thread(set) }, vec![gradient], false);
                }
                results.push(dw);
            }
            assert_eq!(results[0], results[1], "{}: other bits on other threads", set.name());
            for (i, found) in results[0].iter().enumerate() {
                let (output, input) = (i / inputs, i % inputs);
                let products = all.iter().flat_map(|(rows, dy, x)| {
                    (0..*rows).map(|row| f64::from(dy[row * outputs + output]) * f64::from(x[row * inputs + input]))
                });
                let expected = 2.0 * products.sum::<f64>();
                assert!((f64::from(*found) - expected).abs() < 1e-4, "{}: {found}, not {expected}", set.name());
            }
        }
    }
}

#[test]
fn masks_keep_their_share_and_do_not_depend_on_the_instruction_set() {
    let dropout = Dropout { seed: 3, step: 5, micro_batch: 1 };
    assert!(dropout.at(Site::AttentionWeights, 0, 0.0).is_none());
    let mask = dropout.at(Site::Output, 4, 0.25).expect("P is not 0");
    let (rows, columns) = (50, 100);
    let states: Vec<u64> = (0..rows).map(|place| mask.state(2, place)).collect();
    let mut drawn = Vec::new();
    for set in instruction_sets() {
        let mut x = Matrix::default();
        x.reshape(rows, columns).data_mut().fill(Row([1.0; PANEL]));
        drop_rows(set, mask, &states, &mut x.view_mut(), panels(columns));
        drawn.push(numbers(&x, rows, columns));
    }
    let kept = drawn[0].iter().filter(|x| **x > 0.0).count() as f64 / drawn[0].len() as f64;
    assert!((kept - 0.75).abs() < 0.03, "{kept} are kept");
    assert!(drawn[0].iter().all(|x| *x == 0.0 || *x == 1.0 / 0.75));
    assert!(drawn.iter().all(|x| *x == drawn[0]));
}

#[test]
fn adamw_equals_its_formula_for_any_number_of_threads() {
    let n = 70_000;
    for set in instruction_sets() {
        for corrected_step in [None, Some(3)] {
            let step = AdamW { factor: 0.5, betas: [0.9, 0.999], eps: 1e-8, rate: 1e-2, corrected_step };
            let mut results = Vec::new();
            for pool in [None, thread_pool(2)] {
                let mut random = Random(1);
                let (mut p, g, mut m) = (random.numbers(n), random.numbers(n), random.numbers(n));
                let mut v: Vec<f32> = random.numbers(n).iter().map(|x| x.abs()).collect();
                let start = [p.clone(), g.clone(), m.clone(), v.clone()];
                let parameter =
                    AdamWParameter { parameter: &mut p, gradient: &g, moments: [&mut m, &mut v], decay: 0.1 };
                let execution = Execution { pool, ..Execution::on_this_thread(set) };
                adamw(execution, step, vec![parameter]);
                assert!(
                    (sums_of_squares(execution, &[&g])[0] - g.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>()).abs()
                        < 1e-6
                );
                results.push((start, p));
            }
            let ([p, g, m, v], found) = &results[0];
            assert_eq!(*found, results[1].1, "{}: other bits on other threads", set.name());
            for i in 0..n {
                let [p, g, m, v] = [p[i], g[i] * 0.5, m[i], v[i]].map(f64::from);
                let (m, v) = (m + 0.1 * (g - m), 0.999 * v + 0.001 * g * g);
                let expected = match corrected_step {
                    Some(t) => {
                        let divisor = v.sqrt() / (1.0 - 0.999f64.powi(t as i32)).sqrt() + 1e-8;
                        p * (1.0 - 1e-3) - 1e-2 / (1.0 - 0.9f64.powi(t as i32)) * m / divisor
                    }
                    None => p - 1e-2 * (m / (v.sqrt() + 1e-8) + 0.1 * p),
                };
                let limit = 1e-6 * (p - expected).abs().max(1.0);
                assert!((f64::from(found[i]) - expected).abs() < limit, "{}: {} {expected}", set.name(), found[i]);
            }
        }
    }
}
