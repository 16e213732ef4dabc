//! The tile of bfloat16 numbers in tile registers: 32 rows by one panel, as 2 × 2 tiles of sums.
//!
//! Two tiles of inputs and two of weights are loaded for four products, so loading takes less time than multiplying. The sums
//! of all of K stay in the registers. A row of sums depends on one row of inputs only: rows of 0 are added to make whole
//! tiles, and their sums are dropped.

use crate::arch::{InputTile, SumTiles, TILE_REGISTER_ROWS as ROWS, TileRegisters, WeightTiles};
use crate::matrix::{HalfRow, PairRow, Row, View};

/// The most rows of [`multiply_with_registers`].
pub const REGISTER_ROWS: usize = 2 * ROWS;

/// Computes out = a·b for the rows of `a` from `first` on; `out` [rows, 32] has at most [`REGISTER_ROWS`].
///
/// `b` is one panel of packed weights, 16 rows of pairs for each panel of `a`.
///
/// # Panics
///
/// If `a` does not have whole tiles of 16 rows for those of `out`, or `b` is not 16 rows for each of its panels.
#[inline(always)]
pub fn multiply_with_registers<T: TileRegisters>(
    registers: &mut T,
    a: View<'_, HalfRow>,
    first: usize,
    b: &[PairRow],
    out: &mut [Row],
) {
    assert!(out.len() <= REGISTER_ROWS && b.len() == ROWS * a.width());
    let (b, _) = b.as_chunks::<ROWS>();
    if out.len() > ROWS {
        registers.zero::<0>();
        registers.zero::<1>();
        registers.zero::<2>();
        registers.zero::<3>();
        for (p, b) in b.iter().enumerate() {
            multiply_step(registers, inputs(a, p, first), b);
            registers.load_inputs::<5>(inputs(a, p, first + ROWS));
            registers.multiply::<2, 5, 6>();
            registers.multiply::<3, 5, 7>();
        }
        let (upper, lower) = out.split_at_mut(ROWS);
        store::<_, 0, 1>(registers, upper);
        store::<_, 2, 3>(registers, lower);
    } else {
        registers.zero::<0>();
        registers.zero::<1>();
        for (p, b) in b.iter().enumerate() {
            multiply_step(registers, inputs(a, p, first), b);
        }
        store::<_, 0, 1>(registers, out);
    }
}

/// Returns a tile of panel `panel`: its rows from `first` on.
#[inline(always)]
fn inputs(a: View<'_, HalfRow>, panel: usize, first: usize) -> &InputTile {
    a.panel(panel)[first..].first_chunk().expect("`a` has whole tiles of rows")
}

/// Adds the products of one tile of inputs, in register 4, and the two of weights, in 6 and 7, to the sums in 0 and 1.
#[inline(always)]
fn multiply_step<T: TileRegisters>(registers: &mut T, a: &InputTile, b: &WeightTiles) {
    registers.load_inputs::<4>(a);
    registers.load_weights::<6, 0>(b);
    registers.load_weights::<7, 1>(b);
    registers.multiply::<0, 4, 6>();
    registers.multiply::<1, 4, 7>();
}

/// Stores two tiles of sums side by side, as many rows as `out` has.
#[inline(always)]
fn store<T: TileRegisters, const LEFT: usize, const RIGHT: usize>(registers: &T, out: &mut [Row]) {
    if let Some(out) = out.first_chunk_mut() {
        registers.store::<LEFT, 0>(out);
        registers.store::<RIGHT, 1>(out);
    } else {
        let mut whole: SumTiles = [Row::ZERO; ROWS];
        registers.store::<LEFT, 0>(&mut whole);
        registers.store::<RIGHT, 1>(&mut whole);
        out.copy_from_slice(&whole[..out.len()]);
    }
}
