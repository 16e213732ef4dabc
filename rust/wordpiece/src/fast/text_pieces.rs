//! The pieces of a text, as the fast path passes them to the caller, and which of their properties are requested.
//!
//! Plain data, so that the engine and everything built on it can share them.

use crate::offsets::Span;

/// The properties of pieces that are requested in addition to ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PieceFields {
    /// The number of the word that each piece belongs to.
    pub word_ids: bool,
    /// The bytes of the text that each piece comes from.
    pub spans: bool,
}

/// The pieces of a text, borrowed from the state of the fast path.
#[derive(Debug)]
pub(crate) struct TextPieces<'a> {
    /// The id of each piece.
    pub ids: &'a [u32],
    /// The number of the word that each piece belongs to; empty unless requested.
    pub word_ids: &'a [u32],
    /// The bytes of the text that each piece comes from; empty unless requested. Mutable, so that they can be converted
    /// to another unit where they are.
    pub spans: &'a mut [Span],
}
