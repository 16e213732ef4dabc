//! The file formats of tokenizers.
//!
//! Readers turn a file into data ([`Vocab`](crate::Vocab) or [`Definition`](crate::Definition)), writers turn data into the
//! text of a file; neither touches the file system. A component that this crate does not implement is an error that names
//! it, never silently ignored.

pub mod tokenizer_json;
pub mod vocab_txt;
