//! What a text becomes: its pieces, one list for each thing that can be asked about them.

use crate::normalize::Span;

/// The pieces of one text.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pub ids: Vec<u32>,
    /// The word each piece belongs to; empty when nobody asked.
    pub words: Vec<u32>,
    /// Where each piece stands in its text; empty when nobody asked.
    pub spans: Vec<Span>,
    /// The pieces whose text is not that of their id in the model's vocabulary, by index.
    pub texts: Vec<(usize, String)>,
}

impl Pieces {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.words.clear();
        self.spans.clear();
        self.texts.clear();
    }

    /// The number of pieces.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// The memory that the lists hold.
    pub fn capacity_bytes(&self) -> usize {
        4 * self.ids.capacity() + 4 * self.words.capacity() + 8 * self.spans.capacity() + 40 * self.texts.capacity()
    }

    /// The text of a piece where it is not that of its id.
    pub fn own_text(&self, index: usize) -> Option<&str> {
        let found = self.texts.binary_search_by_key(&index, |(at, _)| *at).ok()?;
        Some(&self.texts[found].1)
    }
}
