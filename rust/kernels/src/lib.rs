//! BERT's arithmetic on the CPU: the forward pass of an encoder over the tokens of many sequences, without padding.
//!
//! Activations are float32; weights are float32, bfloat16 or int8. Every element of every result is computed by one
//! fixed sequence of operations, which depends on its own sequence only: a text has the same vector, bit for bit, whatever
//! texts are computed with it and however many threads take part. It has the same bits on every
//! instruction set, but for products of bfloat16.
//!
//! # Layers
//!
//! From the bottom to the top; each imports only modules before it.
//!
//! - [`matrix`](Matrix): matrices stored by panels of 32 columns; [`numbers`]: 16-bit number types.
//! - [`arch`]: vector operations of each instruction set, and the dispatch to one of them.
//! - [`activation`], [`norm`], [`embeddings`], [`pooling`], [`rotary`]: functions of a matrix.
//! - [`tile`]: a few rows by one panel of a product; [`gemm`]: dense layers over packed weights; [`attention`].
//! - [`plan`]: a model's layers as data; [`encoder`]: the whole model, shared among threads.
//! - [`training`]: the backward pass of an encoder, and the optimizer.
//! - [`static_embeddings`]: vectors without an encoder, the mean of rows of a table.
//! - [`sparse`]: vectors over the vocabulary, from a masked-language head; [`maxsim`]: scores of late interaction.
//! - [`search`]: the rows of a collection that are nearest to queries.
//!
//! [`reference`](mod@reference) has the definition of every kernel in float64, which the tests compare with.
//!
//! # Examples
//!
//! A dense layer of 2 inputs and 3 outputs with a ReLU:
//!
//! ```
//! use wordpiece_kernels::activation::Activation;
//! use wordpiece_kernels::gemm::{Dense, Epilogue, Products, linear};
//! use wordpiece_kernels::numbers::Numbers;
//! use wordpiece_kernels::{Execution, InstructionSet, Matrix};
//!
//! let weight = Numbers::F32(&[1.0, 2.0, 0.5, -1.0, -1.0, -1.0]); // [3, 2]
//! let dense = Dense::new(&[(weight, &[0.0, 1.0, 0.0])], 2, Products::Float32);
//! let (mut x, mut y) = (Matrix::default(), Matrix::default());
//! x.fill_rows(1, 2, &[3.0, 4.0]);
//! y.reshape(1, 3);
//!
//! let execution = Execution::on_this_thread(InstructionSet::detect());
//! linear(execution, x.view(), &dense, Epilogue::Activation(Activation::Relu), y.view_mut(), &mut Default::default());
//!
//! let mut row = [0.0; 3];
//! y.copy_row(0, &mut row);
//! assert_eq!(row, [11.0, 0.0, 0.0]); // the second sum is 0.5·3 − 4 + 1 = −1.5
//! ```

pub mod activation;
pub mod arch;
pub mod attention;
mod attention_pairs;
pub mod disentangled;
pub mod embeddings;
pub mod encoder;
mod execution;
pub mod gemm;
mod matrix;
pub mod maxsim;
mod neighbours;
pub mod norm;
pub mod numbers;
pub mod plan;
pub mod pooling;
pub mod reference;
pub mod rotary;
mod rounding;
pub mod search;
mod softmax;
pub mod sparse;
pub mod static_embeddings;
pub mod tile;
pub mod training;
mod transpose;

pub use arch::InstructionSet;
pub use execution::Execution;
pub use matrix::{
    ByteRow, HalfRow, Matrix, PANEL, PairRow, QuadRow, Row, SumRow, View, ViewMut, pad_to_panels, panels,
};
