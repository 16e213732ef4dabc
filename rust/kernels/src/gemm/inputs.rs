//! Inputs of a dense layer as its weights are multiplied by them: float32, rounded to bfloat16, or quantized to int8.

use super::int8::{QuantizeRows, groups};
use super::pack::PackedWeights;
use crate::arch::{self, TILE_REGISTER_ROWS, TileUnit};
use crate::execution::Execution;
use crate::matrix::{ByteRow, HalfRow, PANEL, View, panels};
use crate::rounding::RoundRows;

/// Vectors multiply int8 numbers of up to so many rows where tile registers could: the bits are the same, and reading the
/// weights takes most of the time.
pub(super) const MOST_ROWS_OF_BYTES_FOR_VECTORS: usize = 8;

/// Inputs in the type in which they are multiplied; buffers that only grow.
#[derive(Default)]
pub struct ConvertedInputs {
    /// Rounded to bfloat16.
    half: Vec<HalfRow>,
    /// Quantized to int8,
    bytes: Vec<ByteRow>,
    /// with the scale of each group,
    scales: Vec<f32>,
    /// but for those inputs that stay in float32.
    unquantized: Vec<f32>,
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
    /// int8 numbers.
    Int8(ByteInputs<'a>),
}

/// Inputs that are quantized to int8.
#[derive(Clone, Copy)]
pub(crate) struct ByteInputs<'a> {
    pub bytes: View<'a, ByteRow>,
    /// The scales of all rows, group by group.
    pub scales: &'a [f32],
    /// The columns that are not quantized: the numbers of all rows, column by column.
    pub unquantized: &'a [f32],
    /// What multiplies.
    pub unit: Option<TileUnit>,
}

impl ConvertedInputs {
    /// Converts `x` to what is multiplied by `weights`.
    pub(crate) fn convert<'a>(&'a mut self, execution: Execution, x: View<'a>, weights: &PackedWeights) -> Inputs<'a> {
        let Execution { instruction_set, tiles, .. } = execution;
        let k = weights.k();
        if let Some(factors) = weights.factors() {
            let is_long = x.len() > MOST_ROWS_OF_BYTES_FOR_VECTORS;
            let tiles = tiles.filter(|_| is_long && weights.are_multiplied_by(tiles));
            let rows = padded(x.len(), tiles);
            let (len, scales) = (groups(k) * rows, groups(k) * x.len());
            self.bytes.resize(len.max(self.bytes.len()), ByteRow::ZERO);
            self.scales.resize(scales.max(self.scales.len()), 0.0);
            let (bytes, scales) = (&mut self.bytes[..len], &mut self.scales[..scales]);
            let is_biased = tiles.is_none();
            arch::run(instruction_set, QuantizeRows { x, k, factors, bytes, rows, is_biased, scales });
            self.unquantized.clear();
            for column in weights.unquantized() {
                self.unquantized.extend(x.panel(column / PANEL).iter().map(|row| row.0[column % PANEL]));
            }
            let (bytes, scales) = (View::new(&self.bytes[..len], rows), &self.scales[..groups(k) * x.len()]);
            return Inputs::Int8(ByteInputs { bytes, scales, unquantized: &self.unquantized, unit: tiles });
        }
        if weights.is_bf16_pairs() {
            let (to, rows) = self.half_rows(x.len(), k, tiles);
            arch::run(instruction_set, RoundRows { x, k, to: &mut *to, rows });
            return Inputs::Bf16(View::new(to, rows), tiles);
        }
        Inputs::F32(x)
    }

    /// Returns the buffer of bfloat16 inputs [rows, k] and how many rows each of its panels has.
    pub(super) fn half_rows(&mut self, rows: usize, k: usize, tiles: Option<TileUnit>) -> (&mut [HalfRow], usize) {
        let rows = padded(rows, tiles);
        let len = panels(k) * rows;
        self.half.resize(len.max(self.half.len()), HalfRow::ZERO);
        (&mut self.half[..len], rows)
    }
}
