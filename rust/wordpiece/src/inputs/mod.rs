//! Model inputs from pieces: truncation, special tokens, padding.
//!
//! The last step of the pipeline. Nothing here looks at text: a text has become [`Pieces`](pieces::Pieces). In order:
//!
//! | file | contents |
//! |---|---|
//! | `pieces` | the pieces of one text and their properties |
//! | `truncate` | the number of pieces of each text that remain in a row |
//! | `window` | the ranges of pieces that the rows contain |
//! | `template` | the post-processor as data: the special tokens around the texts |
//! | `layout` | the slots of a row, derived from the post-processor |
//! | `assemble` | the rows, written slot by slot |
//! | `trim` | RoBERTa's trimming of offsets |
//! | `pad` | the settings of padding, and the length to pad to |
//! | `encoding` | one finished row: its fields, its padding, and queries on it |
//!
//! All of it equals the post-processors, truncation and padding of `tokenizers` 0.23.3, down to the order in which
//! windows overflow. Cost: linear in the tokens written.

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
