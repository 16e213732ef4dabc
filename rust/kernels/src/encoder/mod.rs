//! The encoder: embeddings and transformer layers over the tokens of many sequences, without padding.
//!
//! Sequences are grouped into tasks of a few hundred rows, each of which goes through all layers on one thread: there is no
//! barrier between layers, and what one layer writes is still in the cache when the next reads it. If there are fewer tasks
//! than threads, one task after the other is computed by all threads, which share the panels of each product.
//!
//! A sequence has the same bits whichever others are computed with it and however many threads there are.

mod forward;
mod inputs;
mod tasks;
mod weights;

pub use forward::{Encoder, EncoderScratch};
pub use inputs::{EmbeddingTables, PooledOutput, Sequence, TokenColumns};
pub use weights::{EncoderConfig, Layer, LayerNormWeights, RelativeBiasTable};
