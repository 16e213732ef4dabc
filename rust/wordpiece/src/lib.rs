//! WordPiece tokenization: text to BERT inputs.
//!
//! A [`Definition`] says what a tokenizer is made of (files are read into one by [`format`]); a [`Tokenizer`] is a
//! definition made ready. It turns texts and pairs of texts into an [`Encoding`] each, or many of them into flat arrays
//! over threads. Every output equals that of the reference implementation, Hugging Face `tokenizers`, but for documented
//! differences.
//!
//! ```
//! use wordpiece::{Definition, EncodeOptions, Input, Tokenizer, Vocab};
//!
//! let tokens = ["[UNK]", "un", "##want", "##ed", "!"];
//! let vocab = Vocab::new(tokens.iter().zip(0..).map(|(&token, id)| (token, id)))?;
//! let tokenizer = Tokenizer::new(Definition::bert(vocab))?;
//! let encoding = tokenizer.encode(&Input::single("Unwanted!"), &EncodeOptions::default())?;
//! assert_eq!(encoding.ids, [1, 2, 3, 4]);
//! # Ok::<(), wordpiece::Error>(())
//! ```

mod added;
mod batch;
mod decode;
mod definition;
mod error;
mod fast;
mod matcher;
mod memory;
mod offsets;
mod pattern;
mod scratch;
mod tokenizer;
mod vocab;

pub mod bert;
pub mod files;
pub mod format;
pub mod inputs;
pub mod normalize;
pub mod split;
pub mod train;
pub mod unicode;

#[cfg(feature = "reference")]
pub mod reference;

pub use added::AddedToken;
pub use batch::{BatchRows, Columns, Number};
pub use decode::Decoder;
pub use definition::Definition;
pub use error::{Error, ErrorKind, Result};
pub use inputs::Encoding;
#[doc(hidden)]
pub use memory::prefetch;
pub use offsets::OffsetUnit;
pub use pattern::Pattern;
pub use tokenizer::{EncodeOptions, Input, Text, Tokenizer};
pub use vocab::Vocab;
pub use wordpiece_parallel::InstructionSet;

#[cfg(test)]
mod tests {
    use super::*;

    /// The promise about threads, compiled.
    #[test]
    fn a_tokenizer_is_shared_by_threads_and_survives_panics() {
        fn check<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
        check::<Tokenizer>();
        check::<Encoding>();
        check::<Error>();
    }
}
