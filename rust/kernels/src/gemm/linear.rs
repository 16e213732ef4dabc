//! Dense layers: a matrix product over packed or plain weights, with its epilogue.
//!
//! A panel of outputs is computed for all rows before the next, so the weights are read once and the rows of the input,
//! which are fewer numbers, as often as there are panels. The next panel is prefetched meanwhile. With threads, each computes
//! whole panels.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use wordpiece_parallel::{checkpoint, map_with};

use super::epilogue::Epilogue;
use super::int8::{BytePanel, QuantizeRows, groups};
use super::pack::{PackedWeights, WeightPanel, pack_panel};
use super::products::Products;
use crate::activation::Activation;
#[cfg(target_arch = "x86_64")]
use crate::arch::AmxTiles;
use crate::arch::{self, Bfloat16, EmulatedTiles, Int8, Kernel, Simd, TILE_REGISTER_ROWS, TileRegisters, TileUnit};
use crate::execution::Execution;
use crate::matrix::{ByteRow, HalfRow, Matrix, PANEL, PairRow, Row, View, ViewMut, pad_to_panels, panels};
use crate::numbers::Numbers;
use crate::rounding::RoundRows;
use crate::tile::{
    Ahead, ByteTile, PairTile, REGISTER_ROWS, Tile, multiply_bytes_with_registers, multiply_with_registers, tiles,
};

/// A product can be interrupted between two panels of outputs, once they have this many rows together.
const ROWS_PER_CHECKPOINT: usize = 128;

/// Vectors multiply int8 numbers of up to so many rows where tile registers could: the bits are the same, and reading the
/// weights takes most of the time.
const MOST_ROWS_OF_BYTES_FOR_VECTORS: usize = 8;

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
        self.observed = Some(Mutex::new(ObservedInputs { rows: 0, squares: vec![0.0; self.weights.k()] }));
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
        observed.rows += x.len();
        for (p, squares) in observed.squares.chunks_mut(PANEL).enumerate() {
            for row in x.panel(p) {
                for (sum, x) in squares.iter_mut().zip(row.0) {
                    *sum += f64::from(x) * f64::from(x);
                }
            }
        }
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

/// Inputs in the type in which they are multiplied; buffers that only grow.
#[derive(Default)]
pub struct ConvertedInputs {
    half: Vec<HalfRow>,
    bytes: Vec<ByteRow>,
    scales: Vec<f32>,
}

/// Returns how many rows there are with those that are added for tile registers, which always read whole tiles.
fn padded(rows: usize, tiles: Option<TileUnit>) -> usize {
    tiles.map_or(rows, |_| rows.next_multiple_of(TILE_REGISTER_ROWS))
}

/// The inputs of a product [rows, K] as they are multiplied.
#[derive(Clone, Copy)]
pub(crate) enum Inputs<'a> {
    F32(View<'a>),
    /// bfloat16 numbers, for the tile registers with whole tiles of rows, or for vectors.
    Bf16(View<'a, HalfRow>, Option<TileUnit>),
    /// int8 numbers, the scales of all rows, group by group, and what multiplies.
    Int8(View<'a, ByteRow>, &'a [f32], Option<TileUnit>),
}

impl ConvertedInputs {
    /// Converts `x` to what is multiplied by `weights`.
    pub(crate) fn convert<'a>(&'a mut self, execution: Execution, x: View<'a>, weights: &PackedWeights) -> Inputs<'a> {
        let Execution { instruction_set, tiles, .. } = execution;
        let k = weights.k();
        if let Some(factors) = weights.factors() {
            let tiles = tiles.filter(|unit| unit.multiplies_bytes() && x.len() > MOST_ROWS_OF_BYTES_FOR_VECTORS);
            let rows = padded(x.len(), tiles);
            let (len, scales) = (groups(k) * rows, groups(k) * x.len());
            self.bytes.resize(len.max(self.bytes.len()), ByteRow::ZERO);
            self.scales.resize(scales.max(self.scales.len()), 0.0);
            let (bytes, scales) = (&mut self.bytes[..len], &mut self.scales[..scales]);
            let is_biased = tiles.is_none();
            arch::run(instruction_set, QuantizeRows { x, k, factors, bytes, rows, is_biased, scales });
            return Inputs::Int8(View::new(&self.bytes[..len], rows), &self.scales[..groups(k) * x.len()], tiles);
        }
        if weights.is_bf16_pairs() {
            let rows = padded(x.len(), tiles);
            let len = panels(k) * rows;
            self.half.resize(len.max(self.half.len()), HalfRow::ZERO);
            arch::run(instruction_set, RoundRows { x, k, to: &mut self.half[..len], rows });
            return Inputs::Bf16(View::new(&self.half[..len], rows), tiles);
        }
        Inputs::F32(x)
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
    let Dense { weights, bias, .. } = dense;
    let Execution { instruction_set, pool, .. } = execution;
    let k = weights.k();
    assert!(x.width() >= panels(k) && x.len() == out.len());
    dense.observe(x);
    let x = converted.convert(execution, x, weights);
    if let Some(workers) = pool {
        map_with(out.each_panel().into_iter().enumerate().collect(), pool, Vec::new, |widened, (panel, out)| {
            // The panels in between are those of the other threads.
            let ahead = weights.memory_of(panel + workers.count() + 1);
            let (weights, bias) = (weights.panel(instruction_set, panel, widened), &bias[panel]);
            arch::run(instruction_set, ProductPanel { x, weights, ahead, bias, epilogue, panel, out });
        });
    } else {
        linear_panels(execution, x, dense, 0..bias.len(), epilogue, out);
    }
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
    let mut widened = Vec::new();
    let panels_per_checkpoint = (ROWS_PER_CHECKPOINT / out.len().max(1)).max(1);
    for (panel, from) in range.enumerate() {
        if panel % panels_per_checkpoint == 0 {
            checkpoint();
        }
        let ahead = weights.memory_of(from + 1);
        let weights = weights.panel(instruction_set, from, &mut widened);
        let (bias, out) = (&bias[from], out.panel(panel));
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
    panels_to_rows(execution, rows, n, to, |panel, widened, out| {
        let ahead = weights.memory_of(panel + threads);
        let (weights, bias) = (weights.panel(instruction_set, panel, widened), &bias[panel]);
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
        let (x, bias, ahead) = (Inputs::F32(x), &bias_row, Ahead::NOTHING);
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

/// One panel of the outputs of a dense layer, for all rows.
struct ProductPanel<'a> {
    /// The input [rows, K].
    x: Inputs<'a>,
    weights: WeightPanel<'a>,
    /// The panel that this thread computes next.
    ahead: Ahead,
    bias: &'a Row,
    epilogue: Epilogue<'a>,
    /// The number of the panel.
    panel: usize,
    out: &'a mut [Row],
}

impl Kernel for ProductPanel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let ProductPanel { x, weights, ahead, bias, epilogue, panel, out } = self;
        let all = out.len();
        match (weights, x) {
            (WeightPanel::F32(b), Inputs::F32(x)) => {
                for rows in tiles(out.len(), S::TILE_ROWS) {
                    let out = &mut out[rows.clone()];
                    simd.run_tile(Tile { a: x.rows(rows.clone()), b, ahead: ahead.part(&rows, all), out });
                    epilogue.apply(simd, bias, panel, rows, out);
                }
            }
            (WeightPanel::Pairs(b), Inputs::Bf16(x, None)) => {
                for rows in tiles(out.len(), S::TILE_ROWS) {
                    let out = &mut out[rows.clone()];
                    simd.run_pair_matrix_tile(PairTile {
                        a: x.rows(rows.clone()),
                        b,
                        ahead: ahead.part(&rows, all),
                        out,
                    });
                    epilogue.apply(simd, bias, panel, rows, out);
                }
            }
            (WeightPanel::Pairs(b), Inputs::Bf16(a, Some(unit))) => {
                let product = RegisterProduct { a, b, ahead, bias, epilogue, panel };
                match unit {
                    #[cfg(target_arch = "x86_64")]
                    TileUnit::Amx(token) => product.run(simd, &mut AmxTiles::<Bfloat16>::new(token), out),
                    TileUnit::Emulated => product.run(simd, &mut EmulatedTiles::<Bfloat16>::default(), out),
                }
            }
            (WeightPanel::Bytes(b), Inputs::Int8(x, scales, unit)) => {
                let product = ByteProduct { x, x_scales: scales, b, ahead, bias, epilogue, panel };
                match unit {
                    None => product.run(simd, out),
                    #[cfg(target_arch = "x86_64")]
                    Some(TileUnit::Amx(token)) => {
                        let token = token.int8().expect("`convert` asks whether the unit multiplies bytes");
                        product.run_with_registers(simd, &mut AmxTiles::<Int8>::new(token), out);
                    }
                    Some(TileUnit::Emulated) => {
                        product.run_with_registers(simd, &mut EmulatedTiles::<Int8>::default(), out);
                    }
                }
            }
            _ => unreachable!("`linear` converts the input to what the weights are multiplied by"),
        }
    }
}

/// One panel of the outputs of a dense layer by tile registers.
struct RegisterProduct<'a> {
    a: View<'a, HalfRow>,
    b: &'a [PairRow],
    ahead: Ahead,
    bias: &'a Row,
    epilogue: Epilogue<'a>,
    panel: usize,
}

impl RegisterProduct<'_> {
    #[inline(always)]
    fn run<S: Simd, T: TileRegisters<Numbers = Bfloat16>>(self, simd: S, registers: &mut T, out: &mut [Row]) {
        let all = out.len();
        for (block, out) in out.chunks_mut(REGISTER_ROWS).enumerate() {
            let rows = block * REGISTER_ROWS..block * REGISTER_ROWS + out.len();
            multiply_with_registers(registers, self.a, rows.start, self.b, self.ahead.part(&rows, all), out);
            self.epilogue.apply(simd, self.bias, self.panel, rows, out);
        }
    }
}

/// One panel of the outputs of a dense layer of int8 numbers.
struct ByteProduct<'a> {
    x: View<'a, ByteRow>,
    /// The scales of as many rows as there are outputs, group by group.
    x_scales: &'a [f32],
    b: BytePanel<'a>,
    ahead: Ahead,
    bias: &'a Row,
    epilogue: Epilogue<'a>,
    panel: usize,
}

impl ByteProduct<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S, out: &mut [Row]) {
        let all = out.len();
        for rows in tiles(all, S::BYTE_TILE_ROWS) {
            let tile = self.tile(all, &rows, self.x.rows(rows.clone()), &mut out[rows.clone()]);
            simd.run_byte_tile(tile);
            self.epilogue.apply(simd, self.bias, self.panel, rows.clone(), &mut out[rows]);
        }
    }

    #[inline(always)]
    fn run_with_registers<S: Simd, T: TileRegisters<Numbers = Int8>>(
        self,
        simd: S,
        registers: &mut T,
        out: &mut [Row],
    ) {
        let all = out.len();
        for (block, out) in out.chunks_mut(REGISTER_ROWS).enumerate() {
            let rows = block * REGISTER_ROWS..block * REGISTER_ROWS + out.len();
            let a = self.x.rows(rows.start..rows.end.next_multiple_of(TILE_REGISTER_ROWS));
            multiply_bytes_with_registers(simd, registers, self.tile(all, &rows, a, out));
            self.epilogue.apply(simd, self.bias, self.panel, rows, out);
        }
    }

    /// Returns the tile of the rows `rows` of `all` rows, whose inputs are `a`.
    #[inline(always)]
    fn tile<'t>(&'t self, all: usize, rows: &Range<usize>, a: View<'t, ByteRow>, out: &'t mut [Row]) -> ByteTile<'t> {
        let BytePanel { quads: b, scales: b_scales, sums: b_sums } = self.b;
        let (a_scales, ahead) = (&self.x_scales[rows.start..], self.ahead.part(rows, all));
        ByteTile { a, a_scales, a_stride: all, b, b_scales, b_sums, ahead, out }
    }
}

#[cfg(test)]
mod tests {
    use wordpiece_parallel::InstructionSet;

    use super::super::int8::QuantizedWeight;
    use super::*;
    use crate::arch::CONFIGURATIONS;

    #[test]
    #[cfg_attr(miri, ignore = "emulates thousands of products, in safe code")]
    fn tile_registers_multiply_more_rows_of_bytes_than_vectors_may() {
        let (k, n) = (70, 64);
        let factors = vec![1.0; k];
        let weight = QuantizedWeight::new(Numbers::F32(&vec![1.0; n * k]), &factors).expect("finite weights");
        let packed = PackedWeights::int8(&[(&weight.values, &weight.scales)], &factors);
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
