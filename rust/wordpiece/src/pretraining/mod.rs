//! Pre-training data: token stores, examples, masking, and batches.
//!
//! Text becomes a [token store](store) once; a store becomes examples, rows of tokens for an objective, for each set of
//! options; and masks are computed when rows are read, from a seed, an epoch and the number of the row.
//!
//! Nothing here writes files: stores and rows are arrays, and [`formats`] returns encoded bytes.
//!
//! - [`random`] is the source of all random choices: numbers that are a function of keys;
//! - [`masking`] chooses the tokens to predict; [`collate`] writes rows as padded arrays.

pub mod collate;
mod documents;
pub mod formats;
pub mod masking;
mod packing;
pub mod random;
pub mod rows;
mod sentences;
pub mod store;

pub use documents::DocumentRule;
pub use packing::pack;
pub use sentences::{ABBREVIATIONS, SentenceSplitter};
