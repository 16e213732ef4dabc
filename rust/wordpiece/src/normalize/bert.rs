//! BERT's normalizer: clean, set ideographs apart, strip accents, lower-case — in one pass over the characters.

use super::{Normalized, Span};
use crate::unicode::{self, CharClass};

/// The options of BERT's normalizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BertNormalizer {
    /// Remove control characters and turn white space into spaces.
    pub clean_text: bool,
    /// Put spaces around ideographs.
    pub tokenize_chinese_chars: bool,
    /// Decompose and drop nonspacing marks; `None`: as `lowercase` says.
    pub strip_accents: Option<bool>,
    /// Lower-case.
    pub lowercase: bool,
}

impl Default for BertNormalizer {
    fn default() -> Self {
        BertNormalizer { clean_text: true, tokenize_chinese_chars: true, strip_accents: None, lowercase: true }
    }
}

/// One character of a run of marks that waits to be put in canonical order.
#[derive(Debug, Clone, Copy)]
struct Mark {
    combining_class: u8,
    c: char,
    /// It came out of a decomposition after another character, so it takes no range of its own.
    inserted: bool,
}

/// What a pass carries along besides its output.
#[derive(Debug)]
struct Pass {
    strip: bool,
    lowercase: bool,
    /// Marks since the last starter, and the ranges of the characters they came from, in order.
    marks: Vec<Mark>,
    ranges: Vec<Span>,
    /// The range dealt out last: that of an inserted character.
    last: Span,
}

impl BertNormalizer {
    /// Whether accents are stripped.
    pub fn strips_accents(&self) -> bool {
        self.strip_accents.unwrap_or(self.lowercase)
    }

    /// Normalizes a piece of the original, which begins there at byte `base`, into `out`.
    pub(crate) fn normalize(&self, piece: &str, base: u32, aligned: bool, out: &mut Normalized) {
        out.clear(base, aligned);
        out.text.reserve(piece.len());
        let characters = piece.char_indices().map(|(at, c)| {
            let start = base + at as u32;
            (c, Span { start, end: start + c.len_utf8() as u32 })
        });
        self.run(characters, out);
    }

    /// Normalizes a text that another normalizer has already rewritten.
    pub(crate) fn renormalize(&self, text: &mut Normalized) {
        let mut out = Normalized { aligned: text.aligned, base: text.base, ..Normalized::default() };
        let span = |at| text.spans.get(at).copied().unwrap_or_default();
        self.run(text.text.char_indices().map(|(at, c)| (c, span(at))), &mut out);
        *text = out;
    }

    fn run(&self, characters: impl Iterator<Item = (char, Span)>, out: &mut Normalized) {
        let mut pass = Pass {
            strip: self.strips_accents(),
            lowercase: self.lowercase,
            marks: Vec::new(),
            ranges: Vec::new(),
            last: Span { start: out.base, end: out.base },
        };
        for (c, span) in characters {
            let class = unicode::class(c);
            if self.clean_text {
                if class.contains(CharClass::REMOVED) {
                    continue;
                }
                if class.contains(CharClass::WHITESPACE) {
                    pass.starter(' ', CharClass::WHITESPACE, span, out);
                    continue;
                }
            }
            if self.tokenize_chinese_chars && class.contains(CharClass::CJK) {
                pass.starter(' ', CharClass::WHITESPACE, span, out);
                pass.character(c, class, span, out);
                pass.starter(' ', CharClass::WHITESPACE, span, out);
            } else {
                pass.character(c, class, span, out);
            }
        }
        pass.flush(out);
    }
}

impl Pass {
    /// Takes one character of the cleaned text.
    #[inline]
    fn character(&mut self, c: char, class: CharClass, span: Span, out: &mut Normalized) {
        if !self.strip {
            self.last = span;
            self.emit(c, class, span, out);
        } else if !class.intersects(CharClass::DECOMPOSES | CharClass::REORDERS) {
            self.starter(c, class, span, out);
        } else {
            self.decomposed(c, span, out);
        }
    }

    /// Takes a character that neither decomposes nor moves: all marks before it are complete.
    #[inline]
    fn starter(&mut self, c: char, class: CharClass, span: Span, out: &mut Normalized) {
        if !self.marks.is_empty() {
            self.flush(out);
        }
        self.last = span;
        self.emit(c, class, span, out);
    }

    /// Takes a character that decomposes, or that canonical ordering may move.
    fn decomposed(&mut self, c: char, span: Span, out: &mut Normalized) {
        let decomposition = unicode::decompose(c);
        let parts = decomposition.as_deref().unwrap_or(std::slice::from_ref(&c));
        for (i, &part) in parts.iter().enumerate() {
            let inserted = i > 0;
            let combining_class = unicode::combining_class(part);
            if combining_class == 0 {
                self.flush(out);
                if !inserted {
                    self.last = span;
                }
                self.emit(part, unicode::class(part), self.last, out);
            } else {
                if !inserted {
                    self.ranges.push(span);
                }
                self.marks.push(Mark { combining_class, c: part, inserted });
            }
        }
    }

    /// Puts the waiting marks in canonical order and deals their ranges out in that order: marks that changed places
    /// get each other's range, as in the reference.
    fn flush(&mut self, out: &mut Normalized) {
        self.marks.sort_by_key(|mark| mark.combining_class);
        let mut ranges = 0;
        for i in 0..self.marks.len() {
            let mark = self.marks[i];
            if !mark.inserted {
                self.last = self.ranges[ranges];
                ranges += 1;
            }
            self.emit(mark.c, unicode::class(mark.c), self.last, out);
        }
        self.marks.clear();
        self.ranges.clear();
    }

    /// The last two steps: drop accents, lower-case.
    #[inline]
    fn emit(&self, c: char, class: CharClass, span: Span, out: &mut Normalized) {
        if self.strip && class.contains(CharClass::NONSPACING_MARK) {
            return;
        }
        if self.lowercase && class.contains(CharClass::CHANGES_IN_LOWERCASE) {
            for lower in unicode::lowercase(c) {
                out.push(lower, span);
            }
        } else {
            out.push(c, span);
        }
    }
}
