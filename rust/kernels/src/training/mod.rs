//! Training: the forward pass of an encoder that keeps what its backward pass needs, the backward pass, and the optimizer.
//!
//! The formulas are the same as in `wordpiece_bert.bert.gradients`, which explains them one by one in NumPy; this
//! module computes the same gradients on packed rows and all threads.
//!
//! # Reproducible bits
//!
//! The bits of a gradient depend on the batch and the instruction set, never on the number of threads. Sequences are grouped
//! into tasks by their lengths alone; sums over tokens run within each task first to last, then over the tasks in order.
//! Dropout is a function of seed, step and place.
//!
//! # Memory
//!
//! A layer keeps 7H + F numbers a token, in float32, and 2N for the softmax; with checkpointing H only. The gradients of
//! one layer need another 6H + 2F numbers a token. A gate counts as another F. The gradients of relative positions take H
//! numbers for each of them and each of their terms, in every task.

mod activation;
mod attention;
mod attention_backward;
mod attention_forward;
mod body;
mod buffers;
mod convolution;
mod dropout;
mod embeddings;
mod encoder;
mod encoder_embeddings;
mod encoder_gradients;
mod feed_forward;
mod gate;
mod heads;
mod layer;
mod linear;
mod loss;
mod masked_queries;
mod norm;
mod optimizer;
mod outer_sums;
mod parameters;
mod products;
mod relative;
mod relative_gradients;
mod self_attention;
mod tasks;

pub use activation::activation_backward;
pub use attention::{AttentionScratch, PositionSums, SequenceHeads, attend, attend_backward};
pub use body::TrainingConfig;
pub use dropout::{Dropout, Mask, Site, drop_rows};
pub use embeddings::add_to_table;
pub use encoder::{EncoderTraining, PassOptions};
pub use gate::multiply;
pub use heads::{Heads, RelativeHeads, Rows, Statistics};
pub use linear::{LinearGradients, linear_backward};
pub use loss::cross_entropy;
pub use norm::{Normalized, normalize, normalize_backward, scale_and_shift};
pub use optimizer::{AdamW, AdamWParameter, adamw, sums_of_squares};
pub use parameters::{
    Affine, AffineGradient, AffineNorm, Bias, Borrowed, EmbeddingTable, EncoderGradients, EncoderParameters,
    RelativeGradients, RelativeParameters, Written,
};
pub use products::{WeightGradient, add_column_sums, weight_gradients};
pub use tasks::Batch;
