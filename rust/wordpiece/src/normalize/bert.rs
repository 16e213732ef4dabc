//! BERT's normalizer: clean up, isolate ideographs, strip accents, lower-case.
//!
//! Equals `BertNormalizer` of `tokenizers` 0.23.3, which performs the steps one after the other:
//!
//! 1. clean up: delete control characters and U+FFFD, turn every white space character into a space;
//! 2. put a space before and after each CJK ideograph;
//! 3. decompose canonically (NFD) and delete nonspacing marks;
//! 4. lower-case each character.
//!
//! Here all four happen in one pass. Steps 1, 2 and 4 look at single characters. Only canonical ordering looks further: it
//! sorts runs of combining marks, so a pass buffers the marks since the last starter (a character of combining class 0)
//! and writes them when the next starter arrives.
//!
//! Cost: one table lookup per character that needs no decomposition; no allocation but for the output and runs of marks.
//!
//! With the default options, `"Héllo\t中"` becomes `"hello  中 "`.

use super::normalized::Normalized;
use crate::offsets::Span;
use crate::unicode::{self, CharClass};

/// The options of BERT's normalizer. The default is the one of the uncased models: everything on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BertNormalizer {
    /// Delete control characters and turn white space characters into spaces.
    pub clean_text: bool,
    /// Put spaces around CJK ideographs, so that each becomes a word. `handle_chinese_chars` in a `tokenizer.json`.
    pub tokenize_chinese_chars: bool,
    /// Decompose canonically and delete nonspacing marks. `None` means: if `lowercase` is set.
    pub strip_accents: Option<bool>,
    /// Lower-case each character.
    pub lowercase: bool,
}

impl Default for BertNormalizer {
    fn default() -> Self {
        BertNormalizer { clean_text: true, tokenize_chinese_chars: true, strip_accents: None, lowercase: true }
    }
}

/// One character of a run of marks that is waiting to be put in canonical order.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// Not 0: characters of class 0 end a run.
    combining_class: u8,
    c: char,
    /// Whether it is not the first character of its decomposition. Inserted characters have no span of their own.
    inserted: bool,
}

/// The state of a pass, apart from its output.
#[derive(Debug)]
struct Pass {
    strip: bool,
    lowercase: bool,
    /// The marks since the last starter, in the order of the text.
    marks: Vec<Mark>,
    /// The spans of the characters that those marks come from; one for each mark that is not inserted.
    mark_spans: Vec<Span>,
    /// The span assigned last, which an inserted character shares.
    last: Span,
}

impl BertNormalizer {
    /// Returns whether accents are stripped: `strip_accents`, or `lowercase` where that is `None`.
    pub fn strips_accents(&self) -> bool {
        self.strip_accents.unwrap_or(self.lowercase)
    }

    /// Normalizes a piece of the original, which begins at its byte `base`, and replaces the contents of `out`.
    pub(crate) fn normalize(&self, piece: &str, base: u32, aligned: bool, out: &mut Normalized) {
        out.clear(base, aligned);
        out.text.reserve(piece.len());
        let characters = piece.char_indices().map(|(at, c)| {
            let start = base + at as u32;
            (c, Span { start, end: start + c.len_utf8() as u32 })
        });
        self.run(characters, out);
    }

    /// Normalizes a text that another normalizer has already changed, keeping its alignment.
    pub(crate) fn renormalize(&self, text: &mut Normalized) {
        let mut out = Normalized { aligned: text.aligned, base: text.base, ..Normalized::default() };
        let span = |at| text.spans.get(at).copied().unwrap_or_default();
        self.run(text.text.char_indices().map(|(at, c)| (c, span(at))), &mut out);
        *text = out;
    }

    /// Appends the normalized form of `characters`, each with its span of the original.
    fn run(&self, characters: impl Iterator<Item = (char, Span)>, out: &mut Normalized) {
        let mut pass = Pass {
            strip: self.strips_accents(),
            lowercase: self.lowercase,
            marks: Vec::new(),
            mark_spans: Vec::new(),
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
    /// Accepts one character of the cleaned text.
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

    /// Accepts a character that neither decomposes nor moves. It completes the run of marks before it.
    #[inline]
    fn starter(&mut self, c: char, class: CharClass, span: Span, out: &mut Normalized) {
        if !self.marks.is_empty() {
            self.flush(out);
        }
        self.last = span;
        self.emit(c, class, span, out);
    }

    /// Accepts a character that decomposes or that canonical ordering may move.
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
                    self.mark_spans.push(span);
                }
                self.marks.push(Mark { combining_class, c: part, inserted });
            }
        }
    }

    /// Writes the run of marks in canonical order.
    ///
    /// Spans are assigned after sorting, in the order of the text: marks that swap positions also swap spans, as in the
    /// reference.
    fn flush(&mut self, out: &mut Normalized) {
        self.marks.sort_by_key(|mark| mark.combining_class);
        let mut next_span = 0;
        for i in 0..self.marks.len() {
            let mark = self.marks[i];
            if !mark.inserted {
                self.last = self.mark_spans[next_span];
                next_span += 1;
            }
            self.emit(mark.c, unicode::class(mark.c), self.last, out);
        }
        self.marks.clear();
        self.mark_spans.clear();
    }

    /// Performs the last two steps, deleting accents and lower-casing, and appends the result to `out`.
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
