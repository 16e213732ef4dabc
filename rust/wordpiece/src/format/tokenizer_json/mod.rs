//! `tokenizer.json`: everything about a tokenizer in one file, as Hugging Face `tokenizers` writes it.
//!
//! [`read`] takes every WordPiece file whose components are known here and refuses the others by the component's name;
//! [`write`] gives the file that `tokenizers` itself would write. Between the two nothing is lost.
//!
//! Reading differs from the reference on purpose where the reference guesses: the declared `type` of a component decides
//! what it is, a stored id of an added token must be the id that the token gets, two tokens may not share an id, a
//! template may name only what it defines.

mod canonical;
mod components;
mod object;
mod read;
mod write;

pub use canonical::{normalizer_type, pipeline, pre_tokenizer_type};
pub use read::read;
pub use write::write;

#[cfg(test)]
mod tests;
