//! Tiles: a few rows by one panel of a matrix product. All arithmetic of products happens here.
//!
//! A tile is a computation over vector primitives, run with [`Simd::run_tile`](crate::arch::Simd::run_tile),
//! [`Simd::run_pair_tile`](crate::arch::Simd::run_pair_tile) or
//! [`Simd::run_byte_tile`](crate::arch::Simd::run_byte_tile), which fix the numbers of rows and vectors at compile time so
//! that the sums stay in registers. Where tile registers multiply, [`multiply_with_registers`] and
//! [`multiply_bytes_with_registers`] take their place.
//!
//! Each element is the sum of its [blocks](BLOCK_PANELS) of K ([of bfloat16](PAIR_BLOCK_PANELS)), first to last; within a block, of its products, first to
//! last. How many rows a tile has does not change that order, so it does not change a bit of the result.

mod ahead;
mod bfloat16;
mod byte_vectors;
mod float32;
mod int8;
mod matrices;
mod meanwhile;
mod one_query;
mod outer;
mod registers;
mod shape;
mod vectors;

pub use ahead::Ahead;
pub use bfloat16::PairTile;
pub use byte_vectors::{ByteQueries, ByteVectorTile};
pub use float32::Tile;
pub use int8::{ByteTile, QUADS, Unquantized};
pub use meanwhile::Meanwhile;
pub use one_query::QueryTile;
pub use outer::{OuterTile, PairOuterTile};
pub use registers::{REGISTER_ROWS, multiply_bytes_with_registers, multiply_with_registers};
pub use shape::{BLOCK_PANELS, PAIR_BLOCK_PANELS, tiles};
pub use vectors::{Measure, Product, VectorTile, pack_vectors};
