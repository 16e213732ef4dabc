//! The fast path: BERT's normalizer, pre-tokenizer and WordPiece in two loops, with the same results as the pipeline.
//!
//! The first loop ([`normalizer`], [`scan`]) turns a chunk of text into normalized bytes and the positions where words
//! begin and end: ASCII in blocks of 64 bytes, other characters one by one through a table ([`chars`]). The second
//! ([`table::look_up`]) reads each word as a key of 16 bytes and looks its ids up in a cache, the word table; a
//! word that is not in it is matched by the pipeline's matcher and inserted. [`engine`] combines the two for one
//! text, [`texts`] for several.
//!
//! The loops reject what they cannot handle, without side effects, and the pipeline processes that part of the text:
//! characters that canonical ordering might move, and parts whose normalized form has 4 GiB or more. Every result
//! equals the pipeline's, and both equal the reference implementation's; the tests compare all three.
//!
//! # Layers
//!
//! From the bottom, each importing only what is above it in this list:
//! - data: [`key`], [`mod@line`], [`buffer`], [`chars`], [`text_pieces`];
//! - [`primitives`]: operations on 64 bytes or 16 words, one implementation for each instruction set;
//! - loops over primitives: [`scan`], [`table`];
//! - [`dispatch`]: the loops compiled for each instruction set, and the choice between them;
//! - [`normalizer`], [`spans`], [`engine`], [`texts`] and [`words`], which do not depend on instruction sets.
//!
//! # Cost
//!
//! Linear in the length of the text; prose mostly hits the table, so a word costs one cache line. The tables of a
//! thread use at most [`FastPath::MAX_STATE_BYTES`] (48 MiB). Measurements are in `docs/benchmarks.md`.

mod buffer;
mod chars;
mod dispatch;
mod engine;
mod key;
mod line;
mod normalizer;
mod primitives;
mod scan;
mod spans;
mod table;
mod text_pieces;
mod texts;
pub(crate) mod words;

pub(crate) use dispatch::instruction_sets;
pub(crate) use engine::{FastPath, FastState, NormalizedTokens, PartOutcome, PartRequest};
pub(crate) use text_pieces::{PieceFields, TextPieces};
