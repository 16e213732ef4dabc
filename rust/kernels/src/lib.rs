//! BERT's arithmetic on the CPU.
//!
//! The forward pass of an encoder over the tokens of many sequences, laid one behind the other without padding. Numbers
//! are float32. Every element of every result is computed by one sequence of operations that depends on the sequence it
//! belongs to alone: the same sequence gives the same bits whatever stands beside it, and however many threads work.
//!
//! From the bottom to the top: [`arch`] has what each instruction set does in its own way, behind one trait; [`gemm`],
//! [`activation`], [`norm`] and [`attention`] are functions over slices, written once over that trait; [`encoder`] joins
//! them to layers and shares them out among threads; [`pooling`] makes one vector of a sequence; [`reference`] is the
//! plain definition, in float64, that the tests compare with.
//!
//! A matrix of activations is stored by panels of 32 columns: panel 0 of all rows, then panel 1 of all rows. So the
//! results of a tile are one run of memory, a head of 32 columns is one panel, and threads that compute different columns
//! write to different slices.

pub mod activation;
pub mod arch;
pub mod attention;
pub mod embeddings;
pub mod encoder;
pub mod gemm;
mod matrix;
pub mod norm;
pub mod numbers;
pub mod pooling;
pub mod reference;

pub use arch::InstructionSet;
pub use matrix::{HalfRow, Matrix, PANEL, PairRow, Row, View, ViewMut, panels};
