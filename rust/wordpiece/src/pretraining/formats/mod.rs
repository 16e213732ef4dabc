//! Writes rows as files that other programs read.
//!
//! Each takes [`RowBlock`](super::rows::RowBlock)s in order. The rows of a file do not depend on the bounds of blocks.
//!
//! - [`NpyExampleWriter`]: arrays to be memory-mapped, the layout of this package;
//! - [`MdsWriter`]: shards for mosaicml-streaming;
//! - [`TfrecordEncoder`]: the records that the original BERT reads.

mod mds;
mod npy_examples;
mod tfrecord;

pub use mds::{MdsLayout, MdsShard, MdsWriter};
pub use npy_examples::{NpyExampleLayout, NpyExampleWriter};
pub use tfrecord::TfrecordEncoder;
