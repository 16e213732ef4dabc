//! Tiles in tile registers: 32 rows by one panel, as 2 × 2 tiles of sums.
//!
//! Two tiles of inputs and two of weights are loaded for four products, so loading takes less time than multiplying. A row of
//! sums depends on one row of inputs only: rows are added to make whole tiles, and their sums are dropped.
//!
//! Sums of bfloat16 numbers stay in the registers for all of K. A group of int8 numbers is one product of each pair of tiles,
//! after which its sums are stored, to be multiplied by their scales as on vectors. The unit of tile registers works beside
//! the vector unit, so that is done while the registers multiply the next group.

use super::int8::{ByteTile, QUADS, add_group};
use super::meanwhile::Meanwhile;
use crate::arch::{
    Bfloat16, InputTile, Int8, Simd, SumTiles, TILE_REGISTER_ROWS as ROWS, TileNumbers, TileRegisters, WeightTiles,
};
use crate::matrix::{HalfRow, PANEL, PairRow, Row, SumRow, View};

/// The most rows of a tile in tile registers.
pub const REGISTER_ROWS: usize = 2 * ROWS;

const _: () = assert!(QUADS == ROWS);

/// Computes out = a·b for the rows of `a` from `first` on; `out` [rows, 32] has at most [`REGISTER_ROWS`].
///
/// `b` is one panel of packed weights, 16 rows of pairs for each panel of `a`. All of `meanwhile` is done.
///
/// # Panics
///
/// If `a` does not have whole tiles of 16 rows for the rows of `out`, or `b` is not 16 rows for each of its panels.
#[inline(always)]
pub fn multiply_with_registers<T: TileRegisters<Numbers = Bfloat16>, M: Meanwhile>(
    registers: &mut T,
    a: View<'_, HalfRow>,
    first: usize,
    b: &[PairRow],
    mut meanwhile: M,
    out: &mut [Row],
) {
    assert!(out.len() <= REGISTER_ROWS && b.len() == ROWS * a.width());
    let (b, _) = b.as_chunks::<ROWS>();
    let has_lower = out.len() > ROWS;
    zero(registers, has_lower);
    for (p, weights) in b.iter().enumerate() {
        multiply_step(registers, &a.panel(p)[first..], weights, has_lower);
        meanwhile.do_part(b.len() - p);
    }
    if b.is_empty() {
        meanwhile.do_part(1);
    }
    let (upper, lower) = out.split_at_mut(out.len().min(ROWS));
    store_rows::<_, 0, 1>(registers, upper);
    if has_lower {
        store_rows::<_, 2, 3>(registers, lower);
    }
}

/// Computes a tile of int8 numbers without [`Simd::byte_bias`]; `out` has at most [`REGISTER_ROWS`]. The result has the same
/// bits as by [`Simd::run_byte_tile`].
///
/// The products of a group are started before the sums of the group before it are added, and stored after that: one buffer is
/// enough for both. Additions have the order of the groups.
///
/// # Panics
///
/// If `a` does not have whole tiles of 16 rows for the rows of `out`, or `b` is not [`QUADS`] rows for each group.
#[inline(always)]
pub fn multiply_bytes_with_registers<S: Simd, T: TileRegisters<Numbers = Int8>>(
    simd: S,
    registers: &mut T,
    mut tile: ByteTile<'_>,
) {
    let ByteTile { a, b, unquantized, mut ahead, .. } = tile;
    assert!(tile.out.len() <= REGISTER_ROWS && b.len() == QUADS * a.width());
    let (b, _) = b.as_chunks::<QUADS>();
    let has_lower = tile.out.len() > ROWS;
    let mut sums = [[SumRow::ZERO; ROWS]; 2];
    for (group, weights) in b.iter().enumerate() {
        zero(registers, has_lower);
        multiply_step(registers, a.panel(group), weights, has_lower);
        ahead.do_part(b.len() - group);
        if group > 0 {
            add_sums(simd, &mut tile, group - 1, &sums);
        }
        store::<_, 0, 1>(registers, &mut sums[0]);
        if has_lower {
            store::<_, 2, 3>(registers, &mut sums[1]);
        }
    }
    match b.len() {
        0 => tile.out.fill(Row::ZERO),
        groups => add_sums(simd, &mut tile, groups - 1, &sums),
    }
    unquantized.add(simd, tile.out);
}

/// Adds the sums of a group, multiplied by their scales, to the sums of a tile.
#[inline(always)]
fn add_sums<S: Simd>(simd: S, tile: &mut ByteTile<'_>, group: usize, sums: &[[SumRow; ROWS]; 2]) {
    let a_scales = &tile.a_scales[group * tile.a_stride..][..tile.out.len()];
    for ((sums, out), scale) in sums.as_flattened().iter().zip(tile.out.iter_mut()).zip(a_scales) {
        for at in (0..PANEL).step_by(S::LANES) {
            let sum = simd.mul(simd.load_integers(sums, at), simd.splat(*scale));
            add_group(simd, sum, &tile.b_scales[group], group == 0, out, at);
        }
    }
}

/// Sets the sums to 0: for the upper 16 rows in registers 0 and 1, and for the lower in 2 and 3.
#[inline(always)]
fn zero<T: TileRegisters>(registers: &mut T, has_lower: bool) {
    registers.zero::<0>();
    registers.zero::<1>();
    if has_lower {
        registers.zero::<2>();
        registers.zero::<3>();
    }
}

/// Adds the products of one panel or group: of the tiles of inputs in registers 4 and 5 and the tiles of weights in 6
/// and 7.
#[inline(always)]
fn multiply_step<T: TileRegisters>(
    registers: &mut T,
    a: &[<T::Numbers as TileNumbers>::Input],
    b: &WeightTiles<T::Numbers>,
    has_lower: bool,
) {
    registers.load_inputs::<4>(inputs::<T>(a, 0));
    registers.load_weights::<6, 0>(b);
    registers.load_weights::<7, 1>(b);
    registers.multiply::<0, 4, 6>();
    registers.multiply::<1, 4, 7>();
    if has_lower {
        registers.load_inputs::<5>(inputs::<T>(a, ROWS));
        registers.multiply::<2, 5, 6>();
        registers.multiply::<3, 5, 7>();
    }
}

/// Returns a tile of inputs: the rows from `first` on.
#[inline(always)]
fn inputs<T: TileRegisters>(a: &[<T::Numbers as TileNumbers>::Input], first: usize) -> &InputTile<T::Numbers> {
    a[first..].first_chunk().expect("`a` has whole tiles of rows")
}

/// Stores two tiles of sums side by side.
#[inline(always)]
fn store<T: TileRegisters, const LEFT: usize, const RIGHT: usize>(registers: &T, to: &mut SumTiles<T::Numbers>) {
    registers.store::<LEFT, 0>(to);
    registers.store::<RIGHT, 1>(to);
}

/// Stores two tiles of sums side by side, as many rows as `out` has.
#[inline(always)]
fn store_rows<T: TileRegisters<Numbers = Bfloat16>, const LEFT: usize, const RIGHT: usize>(
    registers: &T,
    out: &mut [Row],
) {
    if let Some(out) = out.first_chunk_mut() {
        store::<_, LEFT, RIGHT>(registers, out);
    } else {
        let mut whole: SumTiles<Bfloat16> = [Row::ZERO; ROWS];
        store::<_, LEFT, RIGHT>(registers, &mut whole);
        out.copy_from_slice(&whole[..out.len()]);
    }
}
