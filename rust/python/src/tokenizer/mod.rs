//! The tokenizer, from arguments to rows.
//!
//! - `vocab` and `bert_options` read what a tokenizer is made of; `core_tokenizer` holds it and answers calls;
//! - `convert` takes texts and pairs, `files` reads them from files, and `options` has the arguments of a call;
//! - `encoding` is one row as a result, `batch` arrays of rows.

mod batch;
mod bert_options;
pub mod convert;
mod core_tokenizer;
mod encoding;
mod files;
mod options;
mod vocab;

pub use batch::Rows;
pub use bert_options::{BertNormalizer, SPECIAL_TOKEN_ROLES};
pub use core_tokenizer::Tokenizer;
pub use encoding::{_restore_encoding, Encoding};
pub use files::{TextBlock, TextReader};
pub use options::{_same_objects, Options};
