//! Dense layers: a matrix product over packed or plain weights, with its epilogue.
//!
//! A panel of outputs is computed for all rows before the next, so the weights are read once and the rows of the input,
//! which are fewer numbers, as often as there are panels. The next panel is prefetched meanwhile. With threads, each computes
//! whole panels.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use wordpiece_parallel::{checkpoint, map_with};

use super::epilogue::Epilogue;
use super::inputs::{ConvertedInputs, Inputs};
use super::pack::{PackedWeights, WeightPanel, pack_panel};
use super::panel::{PanelOutput, ProductPanel};
use super::products::Products;
use crate::activation::Activation;
use crate::arch;
use crate::execution::Execution;
use crate::matrix::{HalfRow, Matrix, PANEL, Row, View, ViewMut, pad_to_panels, panels};
use crate::numbers::Numbers;
use crate::tile::Ahead;

/// A product can be interrupted between two panels of outputs, once they have this many rows together.
const ROWS_PER_CHECKPOINT: usize = 128;

/// A dense layer, or several with the same input that are computed as one: packed weights and their bias.
pub struct Dense {
    weights: PackedWeights,
    /// A row for each panel of outputs; 0 beyond the last output of a layer.
    bias: Vec<Row>,
    /// The inputs so far, if they are observed.
    observed: Option<Mutex<ObservedInputs>>,
}

/// The inputs that a layer has had, for the choice of the factors of [`QuantizedWeight`](super::QuantizedWeight).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedInputs {
    /// How many rows there were.
    pub rows: usize,
    /// The sum of the squares of each input.
    pub squares: Vec<f64>,
    /// The greatest magnitude of each input.
    pub greatest: Vec<f32>,
}

impl Dense {
    /// Packs dense layers with the same `k` inputs, each a weight [N, K] and a bias `[N]`.
    ///
    /// The outputs of each layer begin at a panel.
    ///
    /// # Panics
    ///
    /// If the length of a weight is not N·K, or the weights are not all of one type.
    pub fn new(layers: &[(Numbers<'_>, &[f32])], k: usize, products: Products) -> Dense {
        let weights: Vec<Numbers<'_>> = layers.iter().map(|layer| layer.0).collect();
        let weights = match products {
            Products::Float32 => PackedWeights::new(&weights, k),
            Products::RoundedWeights => PackedWeights::rounded(&weights, k),
            Products::Bfloat16Pairs => PackedWeights::bf16_pairs(&weights, k),
        };
        Dense::from_parts(weights, layers.iter().flat_map(|layer| pad_to_panels(layer.1)).collect())
    }

    /// Combines packed weights with a bias that has a row for each of their panels.
    ///
    /// # Panics
    ///
    /// If the numbers of panels differ.
    pub fn from_parts(weights: PackedWeights, bias: Vec<Row>) -> Dense {
        assert!(bias.len() == weights.panels(), "{} panels of bias for {} of weights", bias.len(), weights.panels());
        Dense { weights, bias, observed: None }
    }

    /// Returns the same layer, which remembers its inputs from now on.
    pub fn observing(mut self) -> Dense {
        let k = self.weights.k();
        let observed = ObservedInputs { rows: 0, squares: vec![0.0; k], greatest: vec![0.0; k] };
        self.observed = Some(Mutex::new(observed));
        self
    }

    /// Returns the inputs so far of a layer made by [`Dense::observing`].
    pub fn observed(&self) -> Option<ObservedInputs> {
        Some(self.observed.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Adds the inputs [rows, K] to those observed, if they are.
    fn observe(&self, x: View<'_>) {
        let Some(observed) = &self.observed else { return };
        let mut observed = observed.lock().unwrap_or_else(PoisonError::into_inner);
        let ObservedInputs { rows, squares, greatest } = &mut *observed;
        *rows += x.len();
        for (p, (squares, greatest)) in squares.chunks_mut(PANEL).zip(greatest.chunks_mut(PANEL)).enumerate() {
            for row in x.panel(p) {
                for ((sum, most), x) in squares.iter_mut().zip(greatest.iter_mut()).zip(row.0) {
                    *sum += f64::from(x) * f64::from(x);
                    *most = most.max(x.abs());
                }
            }
        }
    }

    /// Whether the outputs can be rounded at once to the inputs of `next` ([`linear_rounded`]).
    pub(crate) fn are_rounded_before(&self, next: &Dense) -> bool {
        self.weights.is_bf16_pairs() && next.weights.is_bf16_pairs() && next.observed.is_none()
    }

    /// Returns the bias of `n` outputs, the first of which begins panel `first_panel`.
    pub fn bias(&self, first_panel: usize, n: usize) -> Vec<f32> {
        self.bias[first_panel..].iter().flat_map(|row| row.0).take(n).collect()
    }

    /// Returns the packed weights.
    pub fn weights(&self) -> &PackedWeights {
        &self.weights
    }
}

/// Computes x·Wᵀ + b and its epilogue into `out`; the threads share the panels of outputs.
///
/// `x` is [rows, K] and `out` [rows, N] with the panels of `dense`. Sums are float32. Where the weights are multiplied
/// as bfloat16 or int8, `x` is converted first, into `converted`, a scratch buffer; otherwise it is unused.
///
/// # Panics
///
/// If `x` has fewer than K columns, `x` and `out` differ in rows, or `out` lacks a panel.
pub fn linear(
    execution: Execution,
    x: View<'_>,
    dense: &Dense,
    epilogue: Epilogue<'_>,
    out: ViewMut<'_>,
    converted: &mut ConvertedInputs,
) {
    assert!(x.width() >= panels(dense.weights.k()) && x.len() == out.len());
    dense.observe(x);
    linear_of_converted(execution, converted.convert(execution, x, &dense.weights), dense, epilogue, out);
}

/// As [`linear`], for an input that is converted already.
pub(crate) fn linear_of_converted(
    execution: Execution,
    x: Inputs<'_>,
    dense: &Dense,
    epilogue: Epilogue<'_>,
    out: ViewMut<'_>,
) {
    if execution.pool.is_some() {
        let each_panel = out.each_panel().into_iter().map(PanelOutput::Sums);
        share_panels(execution, x, dense, epilogue, each_panel.collect());
    } else {
        linear_panels(execution, x, dense, 0..dense.bias.len(), epilogue, out);
    }
}

/// Computes x·Wᵀ + b and its epilogue for `rows` rows, and rounds the result to the input of a product with the weights of
/// `next`. The numbers before rounding never leave the first-level cache.
///
/// # Panics
///
/// If the weights of either layer are not multiplied as bfloat16, or `next` has other inputs than `dense` has outputs.
pub(crate) fn linear_rounded<'a>(
    execution: Execution,
    x: Inputs<'_>,
    dense: &Dense,
    epilogue: Epilogue<'_>,
    rows: usize,
    next: &Dense,
    to: &'a mut ConvertedInputs,
) -> Inputs<'a> {
    let k = next.weights.k();
    assert!(dense.are_rounded_before(next) && panels(k) == dense.bias.len());
    let (half, padded_rows) = to.half_rows(rows, k, execution.tiles);
    let each_panel = half.chunks_mut(padded_rows.max(1)).enumerate().map(|(panel, rounded)| {
        let (rounded, beyond) = rounded.split_at_mut(rows);
        beyond.fill(HalfRow::ZERO);
        PanelOutput::Rounded { to: rounded, columns: (k - panel * PANEL).min(PANEL) }
    });
    share_panels(execution, x, dense, epilogue, each_panel.collect());
    Inputs::Bf16(View::new(half, padded_rows), execution.tiles)
}

/// Computes the panels of a dense layer, each into its output; the threads share them.
fn share_panels(
    execution: Execution,
    x: Inputs<'_>,
    dense: &Dense,
    epilogue: Epilogue<'_>,
    each_panel: Vec<PanelOutput<'_>>,
) {
    let Dense { weights, bias, .. } = dense;
    let Execution { instruction_set, pool, .. } = execution;
    let threads = pool.map_or(1, |pool| pool.count() + 1);
    map_with(
        each_panel.into_iter().enumerate().collect(),
        pool,
        || (),
        |(), (panel, out)| {
            // The panels in between belong to the other threads.
            let ahead = weights.memory_of(panel + threads);
            let (weights, bias) = (weights.panel(panel), &bias[panel]);
            arch::run(instruction_set, ProductPanel { x, weights, ahead, bias, epilogue, panel, out });
        },
    );
}

/// Computes the outputs of `range`, panels of `dense`, into `out`, on this thread; `x` is converted already.
///
/// # Panics
///
/// If `out` has fewer panels than `range`.
pub(crate) fn linear_panels(
    execution: Execution,
    x: Inputs<'_>,
    dense: &Dense,
    range: Range<usize>,
    epilogue: Epilogue<'_>,
    mut out: ViewMut<'_>,
) {
    let Dense { weights, bias, .. } = dense;
    let Execution { instruction_set, .. } = execution;
    let panels_per_checkpoint = (ROWS_PER_CHECKPOINT / out.len().max(1)).max(1);
    for (panel, from) in range.enumerate() {
        if panel % panels_per_checkpoint == 0 {
            checkpoint();
        }
        let ahead = weights.memory_of(from + 1);
        let weights = weights.panel(from);
        let (bias, out) = (&bias[from], PanelOutput::Sums(out.panel(panel)));
        arch::run(instruction_set, ProductPanel { x, weights, ahead, bias, epilogue, panel, out });
    }
}

/// Computes activation(x·Wᵀ + b) into `to`, [rows, N] row by row, with packed weights; the same bits as [`linear`].
///
/// # Panics
///
/// If `x` has fewer than K columns, or `to` is not rows·N long for an N with the panels of `dense`.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::activation::Activation;
/// use wordpiece_kernels::gemm::{Dense, Products, linear_to_rows};
/// use wordpiece_kernels::numbers::Numbers;
/// use wordpiece_kernels::{Execution, InstructionSet, Matrix};
///
/// let mut x = Matrix::default();
/// x.fill_rows(2, 1, &[1.0, 2.0]);
/// let dense = Dense::new(&[(Numbers::F32(&[3.0, 4.0]), &[0.0, 1.0])], 1, Products::Float32);
/// let mut y = [0.0; 4];
/// linear_to_rows(Execution::on_this_thread(InstructionSet::detect()), &x, &dense, Activation::Identity, &mut y);
/// assert_eq!(y, [3.0, 5.0, 6.0, 9.0]);
/// ```
pub fn linear_to_rows(execution: Execution, x: &Matrix, dense: &Dense, activation: Activation, to: &mut [f32]) {
    let Dense { weights, bias, .. } = dense;
    let Execution { instruction_set, .. } = execution;
    let x = x.view();
    let (rows, n) = (x.len(), to.len() / x.len().max(1));
    assert!(rows == 0 || x.width() >= panels(weights.k()) && to.len() == rows * n && panels(n) == weights.panels());
    let mut converted = ConvertedInputs::default();
    let x = converted.convert(execution, x, weights);
    let epilogue = Epilogue::Activation(activation);
    let threads = execution.pool.map_or(1, |pool| pool.count() + 1);
    panels_to_rows(execution, rows, n, to, |panel, _, out| {
        let ahead = weights.memory_of(panel + threads);
        let (weights, bias, out) = (weights.panel(panel), &bias[panel], PanelOutput::Sums(out));
        arch::run(instruction_set, ProductPanel { x, weights, ahead, bias, epilogue, panel, out });
    });
}

/// Computes activation(x·Wᵀ + b) with plain float32 weights [N, K], one panel of which is packed at a time.
///
/// For weights that are used too seldom, or are too many, to be kept packed. `to` is [rows, N], row by row.
///
/// # Panics
///
/// If `weights` is not N·K long for the N of `bias`, `x` has fewer than K columns, or `to` is not rows·N long.
///
/// # Examples
///
/// ```
/// use wordpiece_kernels::activation::Activation;
/// use wordpiece_kernels::gemm::linear_unpacked;
/// use wordpiece_kernels::{Execution, InstructionSet, Matrix};
///
/// let mut x = Matrix::default();
/// x.fill_rows(2, 1, &[1.0, 2.0]);
/// let execution = Execution::on_this_thread(InstructionSet::detect());
/// let mut y = [0.0; 4];
/// linear_unpacked(execution, &x, &[3.0, 4.0], &[0.0, 1.0], Activation::Identity, &mut y);
/// assert_eq!(y, [3.0, 5.0, 6.0, 9.0]);
/// ```
pub fn linear_unpacked(
    execution: Execution,
    x: &Matrix,
    weights: &[f32],
    bias: &[f32],
    activation: Activation,
    to: &mut [f32],
) {
    let (x, n) = (x.view(), bias.len());
    let (rows, k) = (x.len(), weights.len() / n.max(1));
    assert!(weights.len() == n * k && (rows == 0 || x.width() >= panels(k)) && to.len() == rows * n);
    let epilogue = Epilogue::Activation(activation);
    panels_to_rows(execution, rows, n, to, |panel, packed, out| {
        let columns = panel * PANEL..(panel * PANEL + PANEL).min(n);
        packed.resize(k, Row::ZERO);
        pack_panel(&weights[columns.start * k..columns.end * k], packed);
        let mut bias_row = Row::ZERO;
        bias_row.0[..columns.len()].copy_from_slice(&bias[columns]);
        let weights = WeightPanel::F32(packed);
        let (x, bias, ahead, out) = (Inputs::F32(x), &bias_row, Ahead::NOTHING, PanelOutput::Sums(out));
        let product = ProductPanel { x, weights, ahead, bias, epilogue, panel, out };
        arch::run(execution.instruction_set, product);
    });
}

/// Computes each panel of a result [rows, N] with `compute`, which gets its number, a buffer of the thread and the rows to
/// write, and copies them to `to`, row by row; the threads share the panels.
fn panels_to_rows(
    execution: Execution,
    rows: usize,
    n: usize,
    to: &mut [f32],
    compute: impl Fn(usize, &mut Vec<Row>, &mut [Row]) + Sync,
) {
    /// Panels that are computed before they are copied to the result: the intermediate buffer is small however large N
    /// is.
    const PANELS_AT_ONCE: usize = 64;
    let mut part = Matrix::default();
    for first in (0..panels(n)).step_by(PANELS_AT_ONCE) {
        let columns = first * PANEL..((first + PANELS_AT_ONCE) * PANEL).min(n);
        let each_panel = part.reshape(rows, columns.len()).view_mut().each_panel();
        map_with(each_panel.into_iter().enumerate().collect(), execution.pool, Vec::new, |buffer, (p, out)| {
            compute(first + p, buffer, out)
        });
        for (row, to) in to.chunks_exact_mut(n.max(1)).enumerate() {
            part.copy_row(row, &mut to[columns.clone()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use wordpiece_parallel::testing::instruction_sets;
    use wordpiece_parallel::{InstructionSet, thread_pool};

    use super::super::inputs::MOST_ROWS_OF_BYTES_FOR_VECTORS;
    use super::super::int8::QuantizedWeight;
    use super::*;
    use crate::arch::{CONFIGURATIONS, TileUnit};

    #[test]
    #[cfg_attr(miri, ignore = "emulates thousands of products, in safe code")]
    fn rounded_outputs_are_the_inputs_of_the_next_layer() {
        let numbers = |n: usize, seed: usize| (0..n).map(|i| ((i * 37 + seed) % 101) as f32 / 50.0 - 1.0).collect();
        let pool = thread_pool(1).expect("the system starts threads");
        for set in instruction_sets() {
            for tiles in [None, TileUnit::of(set), Some(TileUnit::Emulated)] {
                for (rows, k, n) in [(1, 3, 5), (16, 40, 64), (33, 100, 70), (70, 32, 96)] {
                    let alone = Execution { tiles, ..Execution::on_this_thread(set) };
                    let (x, gate): (Vec<f32>, Vec<f32>) = (numbers(rows * k, 1), numbers(rows * n, 2));
                    let [first, next] = [(k, n), (n, 9)].map(|(k, n)| {
                        let (weights, bias): (Vec<f32>, Vec<f32>) = (numbers(k * n, 3), numbers(n, 4));
                        Dense::new(&[(Numbers::F32(&weights), &bias)], k, Products::Bfloat16Pairs)
                    });
                    let (mut a, mut b, mut expected, mut y) = <[Matrix; 4]>::default().into();
                    a.fill_rows(rows, k, &x);
                    b.fill_rows(rows, n, &gate);
                    for epilogue in [Epilogue::Activation(Activation::Sigmoid), Epilogue::Gate(b.view())] {
                        let [mut converted, mut rounded] = <[ConvertedInputs; 2]>::default();
                        let inner = y.reshape(rows, n).view_mut();
                        linear(alone, a.view(), &first, epilogue, inner, &mut converted);
                        let to = expected.reshape(rows, 9).view_mut();
                        linear(alone, y.view(), &next, Epilogue::Bias, to, &mut rounded);
                        for execution in [alone, Execution { pool: Some(pool), ..alone }] {
                            let input = converted.convert(execution, a.view(), first.weights());
                            let inner = linear_rounded(execution, input, &first, epilogue, rows, &next, &mut rounded);
                            let to = y.reshape(rows, 9).view_mut();
                            linear_of_converted(execution, inner, &next, Epilogue::Bias, to);
                            assert_eq!(y.data(), expected.data(), "{} {tiles:?}: {rows} × {k} × {n}", set.name());
                        }
                    }
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "emulates thousands of products, in safe code")]
    fn tile_registers_multiply_more_rows_of_bytes_than_vectors_may() {
        let (k, n) = (70, 64);
        let factors = vec![1.0; k];
        let weight = QuantizedWeight::new(Numbers::F32(&vec![1.0; n * k]), &factors).expect("finite weights");
        let packed = PackedWeights::int8(&[(&weight.values, &weight.scales, &weight.columns)], &factors);
        let dense = Dense::from_parts(packed, vec![Row::ZERO; panels(n)]);
        let execution =
            Execution { tiles: Some(TileUnit::Emulated), ..Execution::on_this_thread(InstructionSet::detect()) };
        let (mut x, mut y) = (Matrix::default(), Matrix::default());
        for (rows, expected) in [(1, 0), (MOST_ROWS_OF_BYTES_FOR_VECTORS, 0), (MOST_ROWS_OF_BYTES_FOR_VECTORS + 1, 2)] {
            x.fill_rows(rows, k, &vec![0.5; rows * k]);
            let before = CONFIGURATIONS.get();
            let to = y.reshape(rows, n).view_mut();
            linear(execution, x.view(), &dense, Epilogue::Bias, to, &mut Default::default());
            assert_eq!(CONFIGURATIONS.get() - before, expected, "{rows} rows, 2 panels");
        }
    }
}
