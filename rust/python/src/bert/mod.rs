//! Models over NumPy arrays, for `wordpiece_bert.bert.engines` and `wordpiece_bert.finetune`.
//!
//! - `plan` reads a model's layers, with `names` for what they compute;
//! - `stored_arrays` reads weights, and `packed_dense` packs dense layers;
//! - `engine` chooses instructions, and `encoder` runs all layers with them;
//! - `training_arrays` has parameters with their gradients, and `encoder_training` runs the backward pass.

mod encoder;
mod encoder_training;
mod engine;
mod names;
mod packed_dense;
mod plan;
mod stored_arrays;
mod training_arrays;

pub use encoder::{BertEncoder, Tokens, dense};
pub use encoder_training::{EncoderTraining, adamw_step, cross_entropy, linear_backward, sums_of_squares};
pub use engine::{describe_products, kernel_instruction_sets, kernels_for, num_threads, read_environment};
pub use names::activation_of;
pub use packed_dense::{PackedDense, quantize};
pub use plan::check_plan;
pub use stored_arrays::{NormWithEps, by_rows, norm_of};
