//! The operands of attention's products in bfloat16, and the ways to multiply them.
//!
//! Queries and the numerators of the softmax are rounded a tile at a time; keys and values of a head once, as pairs: keys
//! transposed, so that a pair is two columns of a key, and values so that a pair is two keys.
//!
//! A pair is always two numbers that follow each other along the axis that a product sums over: the columns d for q·kᵀ, the
//! keys for p·v. Where that axis has an odd length, the other half of the last pair is 0 on one side at least, and adds
//! nothing.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use crate::arch::AmxTiles;
use crate::arch::{Bfloat16, EmulatedTiles, Kernel, MAX_TILE_ROWS, Simd, TILE_REGISTER_ROWS, TileUnit};
use crate::matrix::{HalfRow, PANEL, PairRow, Row, View, panels};
use crate::rounding::{RoundRows, round_pairs};
use crate::tile::{Ahead, PairTile, REGISTER_ROWS, multiply_with_registers};
use crate::transpose::transpose_block;

/// Pairs of a panel of inputs.
const PAIRS: usize = PANEL / 2;

/// The most rows of a product of either kind.
pub(crate) const MAX_PAIR_ROWS: usize = if MAX_TILE_ROWS > REGISTER_ROWS { MAX_TILE_ROWS } else { REGISTER_ROWS };

/// How pairs are multiplied: by vectors, or by tile registers, which are configured as long as the value exists.
pub(crate) enum PairProducts {
    Vectors,
    #[cfg(target_arch = "x86_64")]
    Amx(AmxTiles<Bfloat16>),
    Emulated(EmulatedTiles<Bfloat16>),
}

impl PairProducts {
    /// Configures the tile registers of `unit`. Drop the value before code that may configure them as well.
    #[inline(always)]
    pub(crate) fn new(unit: Option<TileUnit>) -> PairProducts {
        match unit {
            None => PairProducts::Vectors,
            #[cfg(target_arch = "x86_64")]
            Some(TileUnit::Amx(token)) => PairProducts::Amx(AmxTiles::new(token)),
            Some(TileUnit::Emulated) => PairProducts::Emulated(EmulatedTiles::default()),
        }
    }

    /// Returns the most rows of a product by `unit`.
    #[inline(always)]
    pub(crate) fn most_rows<S: Simd>(unit: Option<TileUnit>) -> usize {
        unit.map_or(S::TILE_ROWS, |_| REGISTER_ROWS)
    }

    /// Returns how many rows the rounded inputs of `rows` rows have: whole tiles for tile registers.
    #[inline(always)]
    fn padded(&self, rows: usize) -> usize {
        match self {
            PairProducts::Vectors => rows,
            _ => rows.next_multiple_of(TILE_REGISTER_ROWS),
        }
    }

    /// Computes out = a·b for each panel of `b`, of `pair_rows` rows of pairs; `out` has as many panels of `rows` rows.
    #[inline(always)]
    fn multiply<'b, 'o, S: Simd>(
        &mut self,
        simd: S,
        a: View<'_, HalfRow>,
        each: impl Iterator<Item = (&'b [PairRow], &'o mut [Row])>,
    ) {
        for (b, out) in each {
            match self {
                PairProducts::Vectors => simd.run_pair_matrix_tile(PairTile { a, b, ahead: Ahead::NOTHING, out }),
                #[cfg(target_arch = "x86_64")]
                PairProducts::Amx(registers) => multiply_with_registers(registers, a, 0, b, Ahead::NOTHING, out),
                PairProducts::Emulated(registers) => multiply_with_registers(registers, a, 0, b, Ahead::NOTHING, out),
            }
        }
    }
}

/// Keys and values of one head as pairs, and a tile of rounded inputs. Buffers only grow.
#[derive(Default)]
pub(crate) struct PairOperands {
    /// For each panel of 32 keys, 16 rows of pairs for each panel of columns.
    keys: Vec<PairRow>,
    /// For each panel of columns, 16 rows of pairs for each panel of keys.
    values: Vec<PairRow>,
    /// The rows of a tile, rounded.
    inputs: Vec<HalfRow>,
    /// How many rows the rounded numerators have.
    rounded_rows: usize,
}

impl PairOperands {
    /// Rows of pairs for each panel of columns.
    pub(crate) const PAIRS: usize = PAIRS;

    /// Rounds and packs the keys [keys, d] and the values [keys, d] of a head; `size` is d.
    #[inline(always)]
    pub(crate) fn pack<S: Simd>(&mut self, simd: S, keys: View<'_>, values: View<'_>, size: usize) {
        let key_panels = panels(keys.len());
        let zero = PairRow([0; PANEL]);
        let len = key_panels * panels(size) * PAIRS;
        self.values.resize(len.max(self.values.len()), zero);
        pack_pairs(simd, keys, size, &mut self.keys);
        for (panel, to) in self.values[..len].chunks_mut((key_panels * PAIRS).max(1)).enumerate() {
            for (block, to) in to.chunks_mut(PAIRS).enumerate() {
                pack_values(simd, rows_of(values, panel, block), size - panel * PANEL, to);
            }
        }
    }

    /// Rounds the rows of a tile, columns from `size` on to 0, and multiplies them with the keys of some panels, each of which
    /// has its output.
    #[inline(always)]
    pub(crate) fn scores<'o, S: Simd>(
        &mut self,
        simd: S,
        by: &mut PairProducts,
        q: View<'_>,
        size: usize,
        of_keys: Range<usize>,
        out: impl Iterator<Item = &'o mut [Row]>,
    ) {
        let Self { keys, inputs, .. } = self;
        let a = round(simd, by, q, size, inputs);
        let panel_rows = panels(size) * PAIRS;
        let keys = &keys[of_keys.start * panel_rows..of_keys.end * panel_rows];
        by.multiply(simd, a, keys.chunks(panel_rows).zip(out));
    }

    /// Rounds the rows of a tile, columns from `size` on to 0, and multiplies them with panels of other keys, which
    /// [`pack_pairs`] packed.
    #[inline(always)]
    pub(crate) fn multiply<'b, 'o, S: Simd>(
        &mut self,
        simd: S,
        by: &mut PairProducts,
        q: View<'_>,
        size: usize,
        each: impl Iterator<Item = (&'b [PairRow], &'o mut [Row])>,
    ) {
        let a = round(simd, by, q, size, &mut self.inputs);
        by.multiply(simd, a, each);
    }

    /// Rounds the numerators of a tile for some keys, 0 beyond the last of them, for [`PairOperands::context`].
    #[inline(always)]
    pub(crate) fn round_numerators<S: Simd>(&mut self, simd: S, by: &PairProducts, numerators: View<'_>, keys: usize) {
        round(simd, by, numerators, keys, &mut self.inputs);
        self.rounded_rows = by.padded(numerators.len());
    }

    /// Multiplies the rounded numerators with the values of some panels of the keys, of which there are `key_panels`, in
    /// panel `panel` of the columns.
    #[inline(always)]
    pub(crate) fn context<S: Simd>(
        &self,
        simd: S,
        by: &mut PairProducts,
        panel: usize,
        key_panels: usize,
        of_keys: Range<usize>,
        out: &mut [Row],
    ) {
        let a = View::new(&self.inputs[..of_keys.len() * self.rounded_rows], self.rounded_rows);
        let values = &self.values[panel * key_panels * PAIRS..][of_keys.start * PAIRS..of_keys.end * PAIRS];
        by.multiply(simd, a, [(values, out)].into_iter());
    }
}

/// Rounds and packs keys [keys, d] by panels of 32 keys, into `to`, which grows as needed; `size` is d.
#[inline(always)]
pub(crate) fn pack_pairs<S: Simd>(simd: S, keys: View<'_>, size: usize, to: &mut Vec<PairRow>) {
    let width = panels(size);
    let len = panels(keys.len()) * width * PAIRS;
    to.resize(len.max(to.len()), PairRow([0; PANEL]));
    for (block, to) in to[..len].chunks_mut((width * PAIRS).max(1)).enumerate() {
        for (panel, to) in to.chunks_mut(PAIRS).enumerate() {
            pack_keys(simd, rows_of(keys, panel, block), size - panel * PANEL, to);
        }
    }
}

/// Rounds the first `columns` columns of a tile into `to`, which grows as needed.
#[inline(always)]
fn round<'a, S: Simd>(
    simd: S,
    by: &PairProducts,
    x: View<'_>,
    columns: usize,
    to: &'a mut Vec<HalfRow>,
) -> View<'a, HalfRow> {
    let rows = by.padded(x.len());
    let len = panels(columns) * rows;
    to.resize(len.max(to.len()), HalfRow::ZERO);
    RoundRows { x, k: columns, to: &mut to[..len], rows }.run(simd);
    View::new(&to[..len], rows)
}

/// Returns up to 32 rows of a panel, the rows of block `block`.
#[inline(always)]
fn rows_of(x: View<'_>, panel: usize, block: usize) -> &[Row] {
    let rows = &x.panel(panel)[block * PANEL..];
    &rows[..rows.len().min(PANEL)]
}

/// Packs up to 32 keys: row i has columns 2i and 2i + 1 of each key, 0 from column `valid` on and beyond the last key.
#[inline(always)]
fn pack_keys<S: Simd>(simd: S, keys: &[Row], valid: usize, to: &mut [PairRow]) {
    let mut columns = [Row::ZERO; PANEL];
    let columns = &mut columns[..valid.min(PANEL)];
    transpose_block(simd, keys, columns);
    round_pairs(simd, columns, to);
}

/// Packs up to 32 values: row i has keys 2i and 2i + 1 of each column, 0 from column `valid` on and beyond the last key.
#[inline(always)]
fn pack_values<S: Simd>(simd: S, values: &[Row], valid: usize, to: &mut [PairRow]) {
    round_pairs(simd, values, to);
    if valid < PANEL {
        for to in to {
            to.0[valid..].fill(0);
        }
    }
}
