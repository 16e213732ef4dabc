//! The reference implementation of every kernel, which the tests compare with.
//!
//! It computes in float64, over matrices that are stored row by row, and follows the definitions as literally as possible.
//! It is slow, and shares no code with the kernels.

use crate::activation::Activation;

/// Computes x·Wᵀ + b: x [rows, K], weight [N, K], bias `[N]` -> [rows, N].
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::reference::linear;
///
/// assert_eq!(linear(&[1.0, 2.0], &[3.0, 4.0, 5.0, 6.0], &[0.0, 10.0], 2), [11.0, 27.0]);
/// ```
pub fn linear(x: &[f64], weight: &[f64], bias: &[f64], k: usize) -> Vec<f64> {
    let mut y = Vec::new();
    for row in x.chunks(k) {
        for (weight, bias) in weight.chunks(k).zip(bias) {
            y.push(row.iter().zip(weight).map(|(x, w)| x * w).sum::<f64>() + bias);
        }
    }
    y
}

/// Computes (x − mean)/√(variance + ε)·γ + β: x [rows, H], γ = `weight` and β = `bias` `[H]` -> [rows, H].
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::reference::layer_norm;
///
/// assert_eq!(layer_norm(&[3.0, 5.0], &[1.0, 1.0], &[0.0, 10.0], 0.0), [-1.0, 11.0]); // mean 4, variance 1
/// ```
pub fn layer_norm(x: &[f64], weight: &[f64], bias: &[f64], eps: f64) -> Vec<f64> {
    let columns = weight.len();
    let mut y = Vec::new();
    for row in x.chunks(columns) {
        let mean = row.iter().sum::<f64>() / columns as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns as f64;
        let scaled = row.iter().map(|x| (x - mean) / (variance + eps).sqrt());
        y.extend(scaled.zip(weight.iter().zip(bias)).map(|(x, (w, b))| x * w + b));
    }
    y
}

/// Applies an activation to one number.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::activation::Activation;
/// use wordpiece_kernels::reference::activation;
///
/// assert_eq!(activation(Activation::Relu, -1.0), 0.0);
/// assert!((activation(Activation::Gelu, 1.0) - 0.841_344_746).abs() < 1e-9);
/// ```
pub fn activation(activation: Activation, x: f64) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    match activation {
        Activation::Identity => x,
        Activation::Gelu => x * half_erfc(-x / std::f64::consts::SQRT_2),
        Activation::GeluTanh => x * sigmoid(2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))),
        Activation::QuickGelu => x * sigmoid(1.702 * x),
        Activation::Relu => x.max(0.0),
        Activation::Silu => x * sigmoid(x),
        Activation::Tanh => x.tanh(),
        Activation::Sigmoid => sigmoid(x),
        Activation::Mish => x * (x.exp().ln_1p()).tanh(),
    }
}

/// Returns ½(1 − erf(z)), which is 1/√π ∫ exp(−t²) dt from z to ∞.
fn half_erfc(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - half_erfc(-z);
    }
    if z < 3.0 {
        // ½ − 1/√π · Σ (−1)ⁿ z²ⁿ⁺¹ / (n!·(2n + 1)). Terms grow to e⁹/6 at most, which leaves 12 digits.
        let (mut term, mut sum) = (z, z);
        for n in 1..100 {
            term *= -z * z / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return 0.5 - sum / std::f64::consts::PI.sqrt();
    }
    // The continued fraction exp(−z²)/(2√π) · 1/(z + ½/(z + 1/(z + 1½/(z + …)))), evaluated from its end.
    let fraction = (1..100).rev().fold(z, |rest, n| z + f64::from(n) / 2.0 / rest);
    (-z * z).exp() / (2.0 * std::f64::consts::PI.sqrt() * fraction)
}

/// Computes one head of attention: q [rows, d], k and v [keys, d], and `bias(row, key)` to be added to the scores -> context
/// [rows, d] and weights [rows, keys]; `size` is d.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::reference::attention;
///
/// // Both keys have the same product with the query, and a bias makes the second three times as heavy.
/// let bias = |_, key| if key == 1 { 3_f64.ln() } else { 0.0 };
/// let (context, weights) = attention(&[1.0], &[2.0, 2.0], &[0.0, 8.0], 1, bias);
/// assert!((weights[0] - 0.25).abs() < 1e-12);
/// assert!((context[0] - 6.0).abs() < 1e-12);
/// ```
pub fn attention(
    q: &[f64],
    k: &[f64],
    v: &[f64],
    size: usize,
    bias: impl Fn(usize, usize) -> f64,
) -> (Vec<f64>, Vec<f64>) {
    let (mut context, mut weights) = (Vec::new(), Vec::new());
    for (i, q) in q.chunks(size).enumerate() {
        let scores: Vec<f64> = k
            .chunks(size)
            .enumerate()
            .map(|(j, k)| q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>() / (size as f64).sqrt() + bias(i, j))
            .collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let e: Vec<f64> = scores.iter().map(|x| (x - most).exp()).collect();
        let p: Vec<f64> = e.iter().map(|x| x / e.iter().sum::<f64>()).collect();
        for column in 0..size {
            context.push(p.iter().zip(v.chunks(size)).map(|(p, v)| p * v[column]).sum());
        }
        weights.extend(p);
    }
    (context, weights)
}

/// Rotates the pair (x_j, x_{j+d/2}) of each head of `size` = d columns by the angle p·ω_j, which is rounded to float32:
/// x [rows, N·d], `positions` `[rows]`, `frequencies` ω `[d/2]` -> [rows, N·d].
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::reference::rotate;
///
/// let x = [1.0, 0.0, 1.0, 0.0]; // two rows of one head
/// let y = rotate(&x, &[0, 1], &[std::f32::consts::FRAC_PI_2], 2);
/// assert_eq!(y[..2], [1.0, 0.0]); // position 0 stays
/// assert!(y[2].abs() < 1e-7 && (y[3] - 1.0).abs() < 1e-7); // a quarter turn
/// ```
pub fn rotate(x: &[f64], positions: &[u32], frequencies: &[f32], size: usize) -> Vec<f64> {
    let mut y = x.to_vec();
    let columns = x.len() / positions.len().max(1);
    for (row, position) in y.chunks_mut(columns.max(1)).zip(positions) {
        for head in row.chunks_mut(size) {
            for (j, frequency) in frequencies.iter().enumerate() {
                let angle = f64::from(*position as f32 * frequency);
                let (u, v) = (head[j], head[j + size / 2]);
                head[j] = u * angle.cos() - v * angle.sin();
                head[j + size / 2] = v * angle.cos() + u * angle.sin();
            }
        }
    }
    y
}
