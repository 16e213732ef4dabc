//! The pieces of a text: the interface between tokenizing a text and building model inputs from it.
//!
//! One list per property, so that properties that a call does not need cost nothing. A list that was not requested is
//! empty; the others have one entry per piece, except `texts`.

use crate::offsets::Span;

/// The pieces of one text.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// The id of each piece.
    pub ids: Vec<u32>,
    /// The word that each piece belongs to, counted from 0; empty if not requested.
    pub words: Vec<u32>,
    /// The range of the text that each piece covers; empty if not requested. In bytes until the end of tokenization, then
    /// in the requested unit.
    pub spans: Vec<Span>,
    /// The texts of pieces that differ from the vocabulary's text for their id (added tokens), each with the index of its
    /// piece, ascending; empty if not requested.
    pub texts: Vec<(usize, String)>,
}

impl Pieces {
    /// Removes all pieces and keeps the allocations.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.words.clear();
        self.spans.clear();
        self.texts.clear();
    }

    /// Returns the number of pieces.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns the bytes that the lists have allocated, texts not included.
    pub fn capacity_bytes(&self) -> usize {
        4 * self.ids.capacity() + 4 * self.words.capacity() + 8 * self.spans.capacity() + 40 * self.texts.capacity()
    }

    /// Returns the text of a piece if it differs from the text of its id.
    pub fn own_text(&self, index: usize) -> Option<&str> {
        let found = self.texts.binary_search_by_key(&index, |(at, _)| *at).ok()?;
        Some(&self.texts[found].1)
    }
}
