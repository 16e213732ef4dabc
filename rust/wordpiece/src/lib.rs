//! WordPiece tokenization: text to BERT inputs.
//!
//! A [`Definition`] describes a tokenizer as data; [`format`](mod@format) reads it from `tokenizer.json` or `vocab.txt`. A
//! [`Tokenizer`] is built from a definition. It encodes texts and pairs of texts, one at a time as an [`Encoding`], or in
//! batches over threads as the flat arrays of [`BatchRows`]. Every output equals the output of Hugging Face
//! `tokenizers` 0.23.3, apart from documented differences.
//!
//! A text passes through these steps, one module each:
//!
//! 1. `added` finds added tokens such as `[MASK]`;
//! 2. [`normalize`] cleans up, lower-cases and strips accents, keeping track of positions;
//! 3. [`split`] divides the result into words;
//! 4. `matcher` divides each word into pieces;
//! 5. [`inputs`] truncates, adds special tokens and pads.
//!
//! Ordinary BERT definitions take a fast path through steps 2 to 4 that uses SIMD instructions; it gives the same results.
//! The module `reference` (feature `reference`) is a slow second implementation that the tests compare everything with.
//!
//! Further modules read texts from [`files`] and [`train`] vocabularies; [`unicode`] has the properties of characters.
//!
//! # Example
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
mod byte_level;
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
pub mod pretraining;
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
pub use offsets::OffsetUnit;
pub use pattern::Pattern;
pub use tokenizer::{BatchItem, EncodeOptions, Input, Text, Tokenizer};
pub use vocab::Vocab;
pub use wordpiece_parallel::InstructionSet;
#[doc(hidden)]
pub use wordpiece_parallel::prefetch;

#[cfg(test)]
mod tests {
    use super::*;

    /// Public types can be shared between threads and used after a caught panic; checked by the compiler.
    #[test]
    fn public_types_are_send_sync_and_unwind_safe() {
        fn check<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
        check::<Tokenizer>();
        check::<Encoding>();
        check::<Error>();
    }
}
