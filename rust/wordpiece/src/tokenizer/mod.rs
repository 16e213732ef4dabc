//! The tokenizer: what a call passes in, and the pipeline that turns one text into pieces and rows.
//!
//! - [`input`], [`options`]: the types of a call, plain data;
//! - [`pipeline`]: the [`Tokenizer`] itself, and text → pieces: added tokens, normalize, split, match. The steps are
//!   called from there and nowhere else; no step calls another;
//! - [`rows`]: the rows of one input, as an [`Encoding`](crate::Encoding) or as ids only;
//! - [`plain`]: the shortest path for single texts of moderate length, used for one text and for batches;
//! - [`tokens`]: lookups between tokens and ids, and decoding.
//!
//! Many inputs at once, over threads, are in [`batch`](crate::batch).

mod input;
mod options;
mod pipeline;
mod plain;
mod rows;
mod tokens;

pub use input::{BatchItem, Input, Text};
pub use options::EncodeOptions;
pub(crate) use options::RequestedFields;
pub use pipeline::Tokenizer;
pub(crate) use plain::PlainLayout;
