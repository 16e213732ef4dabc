//! Pre-training data: random numbers, masking, token stores, rows, and batches of them.
//!
//! The classes and functions here hold values of `wordpiece::pretraining` and convert arguments and results. Arrays of
//! example folders, usually memory maps, are borrowed for the duration of a call and never copied.

mod examples;
mod mapped;
mod masking;
mod numbers;
mod reader;
mod slot;
mod store;

pub use examples::{ExampleBlock, ExampleBuilder, MdsEncoder, TfrecordEncoder, split_sentences};
pub use masking::{MaskingRules, epoch_order, text_document_id};
pub use reader::{ExampleReader, ExampleShard};
pub use store::TokenStoreBuilder;
