//! Text → normalized text, with the alignment back to the original.
//!
//! [`Normalizer`] says what is done, as data; [`Normalized`] is what comes out: the new text and, for each of its bytes,
//! the bytes of the original that it stands for. `bert` does BERT's four steps in one pass; `components` has the small
//! ones that other files combine.

mod bert;
mod components;

pub use bert::BertNormalizer;

use std::ops::Range;

use crate::error::Result;
use crate::pattern::Pattern;

/// What is done to a text before it is split into words.
#[derive(Debug, Clone, PartialEq)]
pub enum Normalizer {
    /// Clean, set ideographs apart, strip accents, lower-case.
    Bert(BertNormalizer),
    /// One after the other.
    Sequence(Vec<Normalizer>),
    /// Lower-case each character, without context.
    Lowercase,
    /// Canonical decomposition.
    Nfd,
    /// Canonical composition.
    Nfc,
    /// Compatibility decomposition.
    Nfkd,
    /// Compatibility composition.
    Nfkc,
    /// Drop combining marks; does not decompose by itself.
    StripAccents,
    /// Drop white space at the ends.
    Strip {
        /// At the start.
        left: bool,
        /// At the end.
        right: bool,
    },
    /// Put `content` in place of every match.
    Replace {
        /// What to search for.
        pattern: Pattern,
        /// What to put there.
        content: String,
    },
    /// Put a string before a text that is not empty.
    Prepend(String),
}

impl Normalizer {
    /// Normalizes what `text` holds.
    pub(crate) fn apply(&self, text: &mut Normalized) -> Result<()> {
        match self {
            Normalizer::Bert(bert) => {
                bert.renormalize(text);
                Ok(())
            }
            Normalizer::Sequence(steps) => steps.iter().try_for_each(|step| step.apply(text)),
            component => components::apply(component, text),
        }
    }
}

/// A range of bytes of the original text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub start: u32,
    pub end: u32,
}

/// A normalized piece of text and where its bytes come from.
#[derive(Debug, Default)]
pub(crate) struct Normalized {
    /// The text as it is now.
    pub text: String,
    /// For each byte of `text` the bytes of the original it stands for; empty when not `aligned`.
    pub spans: Vec<Span>,
    /// Whether spans are kept. Without them nobody pays for them.
    pub aligned: bool,
    /// Where the piece begins in the original: what inserted text at its very start stands for.
    pub base: u32,
}

impl Normalized {
    /// Starts anew with the piece of the original that begins at byte `base`.
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

    /// Empties it.
    pub fn clear(&mut self, base: u32, aligned: bool) {
        self.text.clear();
        self.spans.clear();
        self.aligned = aligned;
        self.base = base;
    }

    /// Appends one character that stands for `span`.
    #[inline]
    pub fn push(&mut self, c: char, span: Span) {
        self.text.push(c);
        if self.aligned {
            self.spans.extend(std::iter::repeat_n(span, c.len_utf8()));
        }
    }

    /// A copy of a part.
    pub fn slice(&self, range: Range<usize>) -> Normalized {
        let spans = if self.aligned { self.spans[range.clone()].to_vec() } else { Vec::new() };
        let base = spans.first().map_or(self.base, |span: &Span| span.start);
        Normalized { text: self.text[range].to_owned(), spans, aligned: self.aligned, base }
    }

    /// The bytes of the original that `text[start..end]` stands for: from where its first byte starts to where its last
    /// byte ends. What was deleted inside is covered, what was deleted at the edges is not.
    #[inline]
    pub fn span(&self, start: usize, end: usize) -> Span {
        if !self.aligned {
            return Span::default();
        }
        Span { start: self.spans[start].start, end: self.spans[end - 1].end }
    }

    /// Rewrites the text as a list of characters with their changes, the first `removed` characters left out.
    ///
    /// A change of 0: the character replaces the one at the cursor. 1: it is new and stands for what the byte before the
    /// cursor stands for. −n: as 0, and the n characters after it go.
    pub fn transform(&mut self, changes: impl IntoIterator<Item = (char, isize)>, removed: usize) {
        if self.text.is_empty() {
            return;
        }
        if !self.aligned {
            self.text = changes.into_iter().map(|(c, _)| c).collect();
            return;
        }
        // The reference rewrites from the first byte that stands for something; before it there may be text that was
        // inserted at the very start, which therefore appears twice. Files that do that are rare; equal is equal.
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
}
