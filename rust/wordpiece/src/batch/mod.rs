//! Encodes many inputs on several threads into flat arrays.
//!
//! Inputs are divided into runs of consecutive ones; a thread encodes a run into a [`RowChunk`](chunk::RowChunk), and
//! the chunks are copied one after the other into the arrays of the batch, where padding is added. Without padding, several
//! threads copy each chunk as soon as its place is known. The result does not depend on the number of threads.
//!
//! - [`columns`]: what is requested and what is returned, plain data;
//! - [`encode`]: the division into runs;
//! - [`chunk`]: the rows of a run, input by input;
//! - [`plain`]: the same for many short texts at once, which most batches consist of;
//! - [`mod@concat`]: concatenation of chunks into arrays;
//! - [`in_place`]: arrays that threads fill chunk by chunk.

mod chunk;
mod columns;
mod concat;
mod encode;
mod in_place;
mod plain;

pub use columns::{BatchRows, Columns, Number};
