//! A text in its normalized form, with the alignment back to the original, and the edits that normalizers consist of.
//!
//! Normalization changes the number of bytes, but offsets must refer to the original text. [`Normalized`] therefore
//! stores, for each byte, the [`Span`] of the original that it derives from; every edit here keeps the two in step.
//! Inserted and deleted characters follow the rules of `NormalizedString` in `tokenizers` 0.23.3, so that the offsets
//! are the same.
//!
//! # Cost
//!
//! Each edit is linear in the length of the text and, if aligned, writes 8 bytes of span per byte of text.

use std::ops::Range;

use crate::offsets::Span;

/// A piece of a text in its normalized form, aligned with the original.
///
/// Invariant: if `aligned`, `spans` has one entry for each byte of `text`, and all bytes of a character have the same
/// span; otherwise `spans` is empty.
#[derive(Debug, Default)]
pub(crate) struct Normalized {
    /// The current form of the piece.
    pub text: String,
    /// For each byte of `text`, the bytes of the original that it derives from.
    pub spans: Vec<Span>,
    /// Whether spans are recorded. Callers that need no offsets leave this off and skip the cost.
    pub aligned: bool,
    /// The byte of the original at which the piece begins. Text inserted at the very start has the empty span there.
    pub base: u32,
}

impl Normalized {
    /// Returns the size of the memory that the lists hold, in bytes.
    pub fn capacity_bytes(&self) -> usize {
        self.text.capacity() + size_of::<Span>() * self.spans.capacity()
    }

    /// Replaces the contents with `piece`, which begins at byte `base` of the original and is not yet normalized.
    pub fn reset(&mut self, piece: &str, base: u32, aligned: bool) {
        self.clear(base, aligned);
        self.text.push_str(piece);
        if aligned {
            for (at, c) in piece.char_indices() {
                let start = base + at as u32;
                let end = start + c.len_utf8() as u32;
                self.spans.extend(std::iter::repeat_n(Span { start, end }, c.len_utf8()));
            }
        }
    }

    /// Removes all text, keeping the allocations, and prepares for a piece that begins at byte `base` of the original.
    pub fn clear(&mut self, base: u32, aligned: bool) {
        self.text.clear();
        self.spans.clear();
        self.aligned = aligned;
        self.base = base;
    }

    /// Appends one character that derives from `span`.
    #[inline]
    pub fn push(&mut self, c: char, span: Span) {
        self.text.push(c);
        if self.aligned {
            self.spans.extend(std::iter::repeat_n(span, c.len_utf8()));
        }
    }

    /// Returns a copy of a range of bytes.
    ///
    /// # Panics
    ///
    /// Panics if the range does not lie on character boundaries inside the text.
    pub fn slice(&self, range: Range<usize>) -> Normalized {
        let spans = if self.aligned { self.spans[range.clone()].to_vec() } else { Vec::new() };
        let base = spans.first().map_or(self.base, |span: &Span| span.start);
        Normalized { text: self.text[range].to_owned(), spans, aligned: self.aligned, base }
    }

    /// Returns the bytes of the original that `text[start..end]` derives from, or an empty span without alignment.
    ///
    /// The span runs from the start of the first byte's span to the end of the last byte's: characters deleted in
    /// between are covered, characters deleted at the edges are not. The range must not be empty.
    #[inline]
    pub fn span(&self, start: usize, end: usize) -> Span {
        if !self.aligned {
            return Span::default();
        }
        Span { start: self.spans[start].start, end: self.spans[end - 1].end }
    }

    /// Replaces the text with a list of characters and their changes; the first `removed` characters are deleted.
    ///
    /// A cursor moves over the old characters. The change of each new character states where it comes from:
    ///
    /// - 0: it replaces the character at the cursor, which advances by one;
    /// - 1: it is inserted, and derives from whatever the byte before the cursor derives from;
    /// - −n: as 0, and the n characters that follow are deleted.
    ///
    /// This is `NormalizedString::transform` of `tokenizers`.
    pub fn transform(&mut self, changes: impl IntoIterator<Item = (char, isize)>, removed: usize) {
        if self.text.is_empty() {
            return;
        }
        if !self.aligned {
            self.text = changes.into_iter().map(|(c, _)| c).collect();
            return;
        }
        // The reference rewrites from the first byte with a non-empty span. Text before it was inserted at the very
        // start, and therefore appears twice. Few tokenizer files do that, but those that do must give the same ids.
        let from = self.spans.iter().position(|span| span.start != span.end).unwrap_or(self.text.len());
        let mut old = self.text[from..].chars().map(char::len_utf8);
        let mut cursor = from + old.by_ref().take(removed).sum::<usize>();
        let mut text = String::with_capacity(self.text.len());
        let mut spans = Vec::with_capacity(self.spans.len());
        text.push_str(&self.text[..from]);
        spans.extend_from_slice(&self.spans[..from]);
        for (c, change) in changes {
            let span = if change > 0 {
                match cursor {
                    0 => Span { start: self.base, end: self.base },
                    _ => self.spans[cursor - 1],
                }
            } else {
                self.spans.get(cursor).copied().unwrap_or_default()
            };
            if change <= 0 {
                cursor += old.by_ref().take(1 + change.unsigned_abs()).sum::<usize>();
            }
            text.push(c);
            spans.extend(std::iter::repeat_n(span, c.len_utf8()));
        }
        self.text = text;
        self.spans = spans;
    }

    /// Replaces each of `ranges` (ascending, not overlapping) with `content`.
    ///
    /// The inserted text derives from whatever the last byte of the range derives from.
    pub fn replace(&mut self, ranges: &[(usize, usize)], content: &str) {
        if ranges.is_empty() {
            return;
        }
        let mut new_text = String::with_capacity(self.text.len());
        let mut new_spans = Vec::new();
        let mut kept = 0;
        for &(start, end) in ranges {
            new_text.push_str(&self.text[kept..start]);
            new_text.push_str(content);
            if self.aligned {
                new_spans.extend_from_slice(&self.spans[kept..start]);
                let span = match end {
                    0 => Span { start: self.base, end: self.base },
                    _ => self.spans[end - 1],
                };
                new_spans.extend(std::iter::repeat_n(span, content.len()));
            }
            kept = end;
        }
        new_text.push_str(&self.text[kept..]);
        if self.aligned {
            new_spans.extend_from_slice(&self.spans[kept..]);
        }
        self.text = new_text;
        self.spans = new_spans;
    }

    /// Inserts `prefix` before a text that is not empty; it derives from whatever the first character derives from.
    pub fn prepend(&mut self, prefix: &str) {
        if self.text.is_empty() || prefix.is_empty() {
            return;
        }
        self.text.insert_str(0, prefix);
        if self.aligned {
            let first = self.spans[0];
            self.spans.splice(0..0, std::iter::repeat_n(first, prefix.len()));
        }
    }
}
