//! Rows of tokens for an objective, out of the shards of a token store.
//!
//! [`ExampleBuilder`] makes the rows of one pass over one shard, block by block. What a row has follows from the store, the
//! options, and random choices that depend on the seed, the pass and the document alone, so the number of threads changes
//! nothing.
//!
//! - `pairs` makes the rows of next-sentence prediction and sentence order;
//! - `singles` those with one segment;
//! - `builder` divides the work, packs rows, and masks them.

mod block;
mod builder;
mod options;
mod pairs;
mod shard;
mod singles;

pub use block::{BlockCounts, RowBlock};
pub use builder::{ExampleBuilder, Packing};
pub use options::{Objective, RowOptions};
pub use shard::StoreShard;
