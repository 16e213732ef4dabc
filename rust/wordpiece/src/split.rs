//! Normalized text → words, as ranges of its bytes.
//!
//! A [`PreTokenizer`] cuts each range it is given into smaller ones; what it leaves out belongs to no word. One of them,
//! `Metaspace`, rewrites the text as well.

use std::ops::Range;

use crate::error::Result;
use crate::normalize::{Normalized, Normalizer};
use crate::pattern::Pattern;
use crate::unicode;

/// How a normalized text is cut into words.
#[derive(Debug, Clone, PartialEq)]
pub enum PreTokenizer {
    /// At white space, and around every punctuation character.
    Bert,
    /// Runs of word characters, and runs of what is neither word character nor white space (`\w+|[^\w\s]+`).
    Whitespace,
    /// At white space only.
    WhitespaceSplit,
    /// At punctuation; white space stays where it is.
    Punctuation(SplitBehavior),
    /// Digits apart from the rest.
    Digits {
        /// Each digit by itself, else runs of them.
        individual: bool,
    },
    /// At the matches of a pattern.
    Split {
        /// What to search for.
        pattern: Pattern,
        /// What happens to a match.
        behavior: SplitBehavior,
        /// The matches are the words, and what lies between them the delimiters.
        invert: bool,
    },
    /// At one character, which is dropped.
    CharDelimiter(char),
    /// Spaces become a visible character that begins the words.
    Metaspace(Metaspace),
    /// One after the other.
    Sequence(Vec<PreTokenizer>),
}

/// What happens to a delimiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SplitBehavior {
    /// It is dropped.
    Removed,
    /// It is a word of its own.
    #[default]
    Isolated,
    /// It ends the word before it.
    MergedWithPrevious,
    /// It begins the word after it.
    MergedWithNext,
    /// Neighbouring delimiters are one word.
    Contiguous,
}

/// The options of `Metaspace`.
#[derive(Debug, Clone, PartialEq)]
pub struct Metaspace {
    /// What stands for a space, usually `▁`.
    pub replacement: char,
    /// Whether one is put before a text that has none at its start.
    pub prepend: PrependScheme,
    /// Whether the text is split before each of them.
    pub split: bool,
}

/// When `Metaspace` puts its character before a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrependScheme {
    /// Only where the piece begins the original text.
    First,
    /// Never.
    Never,
    /// Before each piece.
    Always,
}

impl PreTokenizer {
    /// Whether the cut depends on where a piece stood in the original, so that spans must be kept.
    pub(crate) fn needs_spans(&self) -> bool {
        match self {
            PreTokenizer::Metaspace(metaspace) => metaspace.prepend == PrependScheme::First,
            PreTokenizer::Sequence(steps) => steps.iter().any(PreTokenizer::needs_spans),
            _ => false,
        }
    }

    /// Cuts each range of `words` into the words inside it; empty ranges do not survive.
    pub(crate) fn split(&self, text: &mut Normalized, words: &mut Vec<Range<usize>>) -> Result<()> {
        match self {
            PreTokenizer::Sequence(steps) => return steps.iter().try_for_each(|step| step.split(text, words)),
            PreTokenizer::Metaspace(metaspace) => metaspace.rewrite(text, words),
            _ => {}
        }
        let outer = std::mem::take(words);
        let mut matches = Vec::new();
        for range in outer {
            self.split_one(&text.text, range, &mut matches, words)?;
        }
        Ok(())
    }

    fn split_one(
        &self,
        text: &str,
        range: Range<usize>,
        matches: &mut Vec<(usize, usize)>,
        words: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        let piece = &text[range.clone()];
        matches.clear();
        match self {
            PreTokenizer::Bert => {
                bert(piece, range.start, words);
                return Ok(());
            }
            PreTokenizer::Whitespace => {
                runs(piece, range.start, words);
                return Ok(());
            }
            PreTokenizer::WhitespaceSplit => {
                each_char(piece, unicode::is_whitespace, matches);
                cut(piece, range.start, matches, SplitBehavior::Removed, false, words);
            }
            PreTokenizer::Punctuation(behavior) => {
                each_char(piece, unicode::is_punctuation, matches);
                cut(piece, range.start, matches, *behavior, false, words);
            }
            PreTokenizer::Digits { individual } => {
                let behavior = if *individual { SplitBehavior::Isolated } else { SplitBehavior::Contiguous };
                each_char(piece, unicode::is_numeric, matches);
                cut(piece, range.start, matches, behavior, false, words);
            }
            PreTokenizer::CharDelimiter(delimiter) => {
                each_char(piece, |c| c == *delimiter, matches);
                cut(piece, range.start, matches, SplitBehavior::Removed, false, words);
            }
            PreTokenizer::Split { pattern, behavior, invert } => {
                pattern.find_all(piece, matches)?;
                cut(piece, range.start, matches, *behavior, *invert, words);
            }
            PreTokenizer::Metaspace(metaspace) if metaspace.split => {
                each_char(piece, |c| c == metaspace.replacement, matches);
                cut(piece, range.start, matches, SplitBehavior::MergedWithNext, false, words);
            }
            PreTokenizer::Metaspace(_) => words.push(range),
            PreTokenizer::Sequence(_) => unreachable!("taken apart by split"),
        }
        Ok(())
    }
}

/// BERT's own: white space ends a word, a punctuation character is one.
fn bert(piece: &str, base: usize, words: &mut Vec<Range<usize>>) {
    let mut start = 0;
    for (at, c) in piece.char_indices() {
        let class = unicode::class(c);
        if !class.intersects(unicode::CharClass::WHITESPACE | unicode::CharClass::PUNCTUATION) {
            continue;
        }
        let end = at + c.len_utf8();
        if start < at {
            words.push(base + start..base + at);
        }
        if !class.contains(unicode::CharClass::WHITESPACE) {
            words.push(base + at..base + end);
        }
        start = end;
    }
    if start < piece.len() {
        words.push(base + start..base + piece.len());
    }
}

/// `\w+|[^\w\s]+`.
fn runs(piece: &str, base: usize, words: &mut Vec<Range<usize>>) {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Space,
        Word,
        Other,
    }
    let mut start = 0;
    let mut kind = Kind::Space;
    for (at, c) in piece.char_indices() {
        let class = unicode::class(c);
        let here = if class.contains(unicode::CharClass::WORD) {
            Kind::Word
        } else if class.contains(unicode::CharClass::WHITESPACE) {
            Kind::Space
        } else {
            Kind::Other
        };
        if here != kind {
            if kind != Kind::Space {
                words.push(base + start..base + at);
            }
            (start, kind) = (at, here);
        }
    }
    if kind != Kind::Space {
        words.push(base + start..base + piece.len());
    }
}

fn each_char(piece: &str, is_delimiter: impl Fn(char) -> bool, matches: &mut Vec<(usize, usize)>) {
    matches.extend(piece.char_indices().filter(|&(_, c)| is_delimiter(c)).map(|(at, c)| (at, at + c.len_utf8())));
}

/// Cuts `piece` at the matches. `invert` makes delimiters of what lies between them.
fn cut(
    piece: &str,
    base: usize,
    matches: &[(usize, usize)],
    behavior: SplitBehavior,
    invert: bool,
    words: &mut Vec<Range<usize>>,
) {
    // The whole piece as parts that are delimiters or not, in order.
    let mut parts: Vec<(Range<usize>, bool)> = Vec::with_capacity(2 * matches.len() + 1);
    let mut end = 0;
    for &(from, to) in matches {
        if end != from {
            parts.push((end..from, invert));
        }
        parts.push((from..to, !invert));
        end = to;
    }
    if end != piece.len() {
        parts.push((end..piece.len(), invert));
    }

    let mut joined: Vec<Range<usize>> = Vec::with_capacity(parts.len());
    let mut previous = false;
    match behavior {
        SplitBehavior::Removed => joined.extend(parts.into_iter().filter(|part| !part.1).map(|part| part.0)),
        SplitBehavior::Isolated => joined.extend(parts.into_iter().map(|part| part.0)),
        SplitBehavior::Contiguous => {
            for (part, delimiter) in parts {
                match joined.last_mut() {
                    Some(last) if delimiter == previous => last.end = part.end,
                    _ => joined.push(part),
                }
                previous = delimiter;
            }
        }
        SplitBehavior::MergedWithPrevious => {
            for (part, delimiter) in parts {
                match joined.last_mut() {
                    Some(last) if delimiter && !previous => last.end = part.end,
                    _ => joined.push(part),
                }
                previous = delimiter;
            }
        }
        SplitBehavior::MergedWithNext => {
            for (part, delimiter) in parts.into_iter().rev() {
                match joined.last_mut() {
                    Some(last) if delimiter && !previous => last.start = part.start,
                    _ => joined.push(part),
                }
                previous = delimiter;
            }
            joined.reverse();
        }
    }
    words.extend(joined.into_iter().filter(|part| !part.is_empty()).map(|part| base + part.start..base + part.end));
}

impl Metaspace {
    /// Replaces spaces in each range and puts the character before it where the scheme says so.
    fn rewrite(&self, text: &mut Normalized, words: &mut [Range<usize>]) {
        let mark = self.replacement.to_string();
        let to_mark = Normalizer::Replace { pattern: Pattern::literal(" "), content: mark.clone() };
        let mark_first = Normalizer::Prepend(mark);
        let mut out = Normalized { aligned: text.aligned, base: text.base, ..Normalized::default() };
        for range in words.iter_mut() {
            let first_in_text = text.aligned && text.spans[range.start].start == 0;
            let mut piece = text.slice(range.clone());
            let infallible = "a literal pattern cannot fail";
            to_mark.apply(&mut piece).expect(infallible);
            let wanted = match self.prepend {
                PrependScheme::Always => true,
                PrependScheme::First => first_in_text,
                PrependScheme::Never => false,
            };
            if wanted && !piece.text.starts_with(self.replacement) {
                mark_first.apply(&mut piece).expect(infallible);
            }
            *range = out.text.len()..out.text.len() + piece.text.len();
            out.text.push_str(&piece.text);
            out.spans.append(&mut piece.spans);
        }
        *text = out;
    }
}
