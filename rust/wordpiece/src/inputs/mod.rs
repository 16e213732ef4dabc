//! Model inputs from pieces: truncation, special tokens, padding.
//!
//! The last step of the pipeline. Nothing here looks at text: a text has become [`Pieces`](pieces::Pieces). In order:
//!
//! | file | question it answers |
//! |---|---|
//! | `pieces` | what is known about the pieces of one text |
//! | `truncate` | how many pieces of each text remain in a row |
//! | `window` | which ranges of pieces the rows show |
//! | `template` | which special tokens go around the texts (the post-processor as data) |
//! | `layout` | the slots of a row, derived from the post-processor |
//! | `assemble` | the rows themselves, written slot by slot |
//! | `trim` | RoBERTa's trimmed offsets |
//! | `pad` | how far rows are padded |
//! | `encoding` | one finished row and queries on it |
//!
//! All of it equals the post-processors, truncation and padding of `tokenizers` 0.23.3, down to the order in which windows
//! overflow. Cost: linear in the tokens written.

pub(crate) mod assemble;
pub(crate) mod encoding;
pub(crate) mod layout;
mod pad;
pub(crate) mod pieces;
mod template;
pub(crate) mod trim;
mod truncate;
pub(crate) mod window;

pub use encoding::Encoding;
pub use pad::{PadLength, Padding};
pub use template::{PostProcessor, SequenceId, SpecialToken, Template, TemplatePiece};
pub use truncate::{Side, Truncation, TruncationStrategy};
