//! The encoder: embeddings and transformer layers over the tokens of many sequences, without padding.
//!
//! Sequences are grouped into tasks of a few hundred rows, each of which goes through all layers on one thread: there is no
//! barrier between layers, and what one layer writes is still in the cache when the next reads it. If there are fewer tasks
//! than threads, one task after the other is computed by all threads, which share the panels of each product.
//!
//! A sequence has the same bits whichever others are computed with it and however many threads there are.
//!
//! # Memory
//!
//! A task of R rows needs about 6·R·H + 56·F float32 numbers besides the weights; R is at most 192, or the length of its
//! longest sequence. An encoder keeps the scratch buffers of 16 threads for the next call.
//!
//! # Examples
//!
//! An encoder with one layer of width 2, whose weights are all 0, pools its normalized embeddings:
//!
//! ```
//! use std::sync::Arc;
//!
//! use wordpiece_kernels::InstructionSet;
//! use wordpiece_kernels::activation::Activation;
//! use wordpiece_kernels::encoder::*;
//! use wordpiece_kernels::gemm::{Dense, Products};
//! use wordpiece_kernels::numbers::Numbers;
//! use wordpiece_kernels::pooling::Pooling;
//!
//! let dense = || (Numbers::F32(&[0.0; 4]), &[0.0; 2][..]); // [2, 2] and [2]
//! let norm = || LayerNormWeights::new(&[1.0; 2], &[0.0; 2]);
//! let layer = Layer {
//!     qkv: Arc::new(Dense::new(&[dense(), dense(), dense()], 2, Products::Float32)),
//!     output: Arc::new(Dense::new(&[dense()], 2, Products::Float32)),
//!     output_norm: Some(norm()),
//!     query_key_norms: None,
//!     second_norm: None,
//!     inner: Arc::new(Dense::new(&[dense()], 2, Products::Float32)),
//!     up: None,
//!     outer: Arc::new(Dense::new(&[dense()], 2, Products::Float32)),
//!     outer_norm: norm(),
//! };
//! let encoder = Encoder {
//!     config: EncoderConfig {
//!         hidden: 2,
//!         embedding: 2,
//!         heads: 1,
//!         head_size: 2,
//!         intermediate: 2,
//!         activation: Activation::Gelu,
//!         eps: 0.0,
//!         rms_norm: false,
//!         norm_first: false,
//!     },
//!     instruction_set: InstructionSet::detect(),
//!     tiles: None,
//!     transformation: None,
//!     embedding_norm: Some(Norm { weights: norm(), eps: Some(0.0) }),
//!     projection: None,
//!     layers: Layers::Bert(vec![Arc::new(layer)]),
//!     last_norm: None,
//!     relative_bias: None,
//!     disentangled: None,
//!     rotary: vec![],
//!     positions: vec![],
//!     scratch: Default::default(),
//! };
//! let words = Numbers::F32(&[1.0, 3.0, 8.0, 2.0]); // ids 0 and 1
//! let tables = EmbeddingTables { words, types: None, positions: Some(Numbers::F32(&[0.0; 4])) };
//! let tokens = TokenColumns { ids: &[1, 0], types: &[], position_ids: &[], neighbours: &[], positions: &[] };
//!
//! let mut vector = [f32::NAN; 2];
//! let sequence = Sequence {
//!     tokens: 0..2,
//!     keys: 2,
//!     states: vec![],
//!     attentions: vec![],
//!     length: 2,
//!     pooled: Some(PooledOutput { modes: &[Pooling::Cls], skip: 0, to: &mut vector }),
//! };
//! encoder.run(tables, tokens, vec![sequence], None);
//! assert_eq!(vector, [1.0, -1.0]);
//! ```

mod bottleneck;
mod disentangled;
mod disentangled_scratch;
mod forward;
mod inputs;
mod tasks;
mod weights;

pub use forward::{Encoder, EncoderScratch};
pub use inputs::{EmbeddingTables, NO_NEIGHBOUR, PooledOutput, Sequence, TokenColumns};
pub use weights::{
    BottleneckLayer, Convolution, DenseNorm, Disentangled, EncoderConfig, Layer, LayerNormWeights, LayerPositions,
    Layers, Norm, RelativeBiasTable, Source,
};
