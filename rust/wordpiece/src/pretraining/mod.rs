//! Pre-training data: token stores, examples, masking, and batches.
//!
//! Text becomes a [token store](store) once; a store becomes [examples](rows), rows of tokens for an objective, for each
//! set of options; and masks are computed when rows are read, from a seed, an epoch and the number of the row.
//!
//! - [`random`] is the source of all random choices: numbers that are a function of keys;
//! - [`masking`] chooses the tokens to predict; [`collate`] writes rows as padded arrays.

pub mod collate;
pub mod masking;
pub mod random;
