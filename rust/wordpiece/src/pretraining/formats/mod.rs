//! Encodes rows for other programs: the caller writes the bytes.
//!
//! Each takes [`RowBlock`](super::rows::RowBlock)s in order. The bytes do not depend on the bounds of blocks.
//!
//! - [`MdsEncoder`]: shards for mosaicml-streaming;
//! - [`TfrecordEncoder`]: the records that the original BERT reads.

mod mds;
mod tfrecord;

pub use mds::{MdsEncoder, MdsLayout, MdsShard};
pub use tfrecord::TfrecordEncoder;
