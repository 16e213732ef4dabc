//! Pre-training data: random numbers, masking, and batches of examples.
//!
//! The classes and functions here hold values of `wordpiece::pretraining` and convert arguments and results. Arrays of
//! example folders, usually memory maps, are borrowed for the duration of a call and never copied.

mod masking;
mod reader;

pub use masking::{MaskingRules, epoch_order, keyed_draws, text_document_id};
pub use reader::{ExampleReader, ExampleShard};
