//! The encoder: embeddings and transformer layers over the tokens of many sequences, without padding.
//!
//! Sequences are grouped into tasks of a few hundred rows, each of which goes through all layers on one thread: there is no
//! barrier between layers, and what one layer writes is still in the cache when the next reads it. If that leaves
//! threads without work for too long, one task after the other is computed by all threads, which share the panels of each
//! product.
//!
//! A sequence has the same bits whichever others are computed with it and however many threads there are.
//!
//! # Memory
//!
//! A task of R rows needs about 6·R·H + 56·F float32 numbers besides the weights; R is at most 192 (512 with
//! tile registers), or the length of its longest sequence. An encoder keeps the scratch buffers of 16 threads for the next call.
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
//! use wordpiece_kernels::norm::NormKind;
//! use wordpiece_kernels::numbers::Numbers;
//! use wordpiece_kernels::plan::*;
//! use wordpiece_kernels::pooling::Pooling;
//!
//! let dense = || (Numbers::F32(&[0.0; 4]), &[0.0; 2][..]); // [2, 2] and [2]
//! let packed = |layers: &[_]| Arc::new(Dense::new(layers, 2, Products::Float32));
//! let weights = || LayerNormWeights::new(&[1.0; 2], &[0.0; 2]);
//! let norm = || Norm { weights: weights(), eps: 0.0, columns: 2, kind: NormKind::Layer };
//! let attention = Body::Attention(Attention {
//!     qkv: packed(&[dense(), dense(), dense()]),
//!     output: packed(&[dense()]),
//!     heads: 1,
//!     norms: None,
//!     rotary: None,
//!     window: None,
//!     bias: None,
//!     relative: None,
//!     terms: 1,
//!     masked_sees_all: false,
//!     dropout: (),
//! });
//! let mlp = Body::Mlp(Mlp {
//!     inner: packed(&[dense()]),
//!     up: None,
//!     output: packed(&[dense()]),
//!     activation: Activation::Gelu,
//!     dropout: (),
//! });
//! let residual =
//!     |body| Residual { body, before: None, after: Some(norm()), again: None, dropout: (), masked: false };
//! let encoder = Encoder {
//!     plan: Plan {
//!         embeddings: Embeddings {
//!             words: Some(()),
//!             positions: Some(()),
//!             types: None,
//!             tasks: None,
//!             then: vec![Step::Norm(norm())],
//!             masked: false,
//!             dropout: (),
//!         },
//!         layers: vec![vec![residual(attention), residual(mlp)]],
//!         last: None,
//!     },
//!     hidden: 2,
//!     embedding: 2,
//!     instruction_set: InstructionSet::detect(),
//!     tiles: None,
//!     rotary: vec![],
//!     relative_positions: None,
//!     scratch: Default::default(),
//! };
//! let words = Numbers::F32(&[1.0, 3.0, 8.0, 2.0]); // ids 0 and 1
//! let tables = EmbeddingTables { words, types: None, positions: Some(Numbers::F32(&[0.0; 4])) };
//! let tokens = TokenColumns { ids: &[1, 0], types: &[], position_ids: &[], positions: &[] };
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

mod disentangled;
mod disentangled_scratch;
mod forward;
mod inputs;
mod tasks;
mod weights;

pub use forward::{Encoder, EncoderScratch};
pub use inputs::{EmbeddingTables, PooledOutput, Sequence, TokenColumns};
pub use weights::{LayerNormWeights, Norm, Packed, RelativeBiasTable};
