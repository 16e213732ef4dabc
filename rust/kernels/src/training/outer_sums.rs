//! Sums of the outer products of the rows of two matrices.

use crate::arch::Simd;
use crate::matrix::{PANEL, Row};
use crate::tile::{OuterTile, tiles};

/// Computes out += aᵀ·b, for one panel b [K, 32]; `a` has as many panels [K, 32] as are needed for the rows of `out`, one for
/// each of its columns.
#[inline(always)]
pub(super) fn add_outer_products<S: Simd>(simd: S, a: &[Row], b: &[Row], out: &mut [Row]) {
    for (a, out) in a.chunks(b.len()).zip(out.chunks_mut(PANEL)) {
        for tile in tiles(out.len(), S::TILE_ROWS) {
            simd.run_tile(OuterTile { a, first: tile.start, b, out: &mut out[tile] });
        }
    }
}
