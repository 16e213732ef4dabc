//! Pieces → model inputs: special tokens around them, cut to length, filled up.
//!
//! Nothing here knows text. A text has become [`Pieces`](pieces::Pieces); `truncate` says how many of them stay, `window`
//! which rows show them, `layout` what stands around them, `assemble` writes the rows, `pad` fills them up.

pub(crate) mod assemble;
mod encoding;
pub(crate) mod layout;
mod pad;
pub(crate) mod pieces;
mod template;
mod truncate;
pub(crate) mod window;

pub use encoding::Encoding;
pub use pad::{PadLength, Padding};
pub use template::{Piece, PostProcessor, SpecialToken, Template, Which};
pub use truncate::{Side, Truncation, TruncationStrategy};
