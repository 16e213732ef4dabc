//! `tokenizer.json`: everything about a tokenizer in one file, in the format of Hugging Face `tokenizers`.
//!
//! [`read()`] accepts every WordPiece file whose components this crate implements, and names the component that it does not.
//! [`write()`] returns the text that `tokenizers` itself would write, byte for byte. Reading a written definition gives the
//! same definition, with its added tokens by ascending id and each only once. [`snapshot()`] and [`restore()`] do the same for
//! states that no file can hold, and [`state()`] keeps the order of added tokens. [`outline()`] leaves out the vocabulary.
//!
//! Reading is stricter than the reference where the reference guesses: the `type` of a component decides what it is, the
//! stored id of an added token must be the id that the reference gives it, two added tokens may not share an id, and a
//! template may name only the special tokens that it defines.
//!
//! Memory is proportional to the file, and nesting is limited, so a hostile file can exhaust neither memory nor the stack.
//!
//! ```
//! use wordpiece::format::tokenizer_json;
//! use wordpiece::{Definition, Vocab};
//!
//! let definition = Definition::bert(Vocab::new([("[UNK]", 0), ("un", 1)])?);
//! let json = tokenizer_json::write(&definition)?;
//! assert_eq!(tokenizer_json::read(&json)?, definition);
//! let error = tokenizer_json::read(&json.replace("BertPreTokenizer", "FixedLength")).unwrap_err();
//! assert_eq!(error.to_string(), r#"pre_tokenizer: "FixedLength" is not supported"#);
//! # Ok::<(), wordpiece::Error>(())
//! ```

mod canonical;
mod components;
mod object;
mod outline;
mod portable;
mod read;
mod write;

pub use canonical::{identity, normalizer_type, pipeline, pre_tokenizer_type};
pub use outline::outline;
pub use read::{read, restore, text};
pub use write::{snapshot, state, write};

#[cfg(test)]
mod tests;
