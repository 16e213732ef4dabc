//! Pre-tokenizers: the division of a normalized text into words, as ranges of its bytes.
//!
//! The second step of the pipeline. A [`PreTokenizer`] divides each range of a normalized text into smaller ones; text
//! outside all of them, such as white space, belongs to no word. Results equal the results of the pre-tokenizer of the
//! same name in `tokenizers` 0.23.3; [`PreTokenizer::Bert`] is the splitting of `BasicTokenizer` (Devlin et al., 2018).
//!
//! Invariants: the ranges are ascending, do not overlap, are never empty and lie on character boundaries. Only
//! [`PreTokenizer::Metaspace`] and [`PreTokenizer::ByteLevel`] change the text.
//!
//! Cost: one pass over the text per pre-tokenizer; those that search for a pattern take as long as the pattern does.
//!
//! For example, `Bert` splits `"don't  stop"` into `don`, `'`, `t` and `stop`, and `Whitespace` splits `"a+b=c!!"` into `a`,
//! `+`, `b`, `=`, `c` and `!!`.

use std::ops::Range;

pub use crate::byte_level::ByteLevel;
use crate::byte_level::{self, char_of};
use crate::error::Result;
use crate::normalize::Normalized;
use crate::pattern::Pattern;
use crate::unicode;

/// How a normalized text is split into words.
#[derive(Debug, Clone, PartialEq)]
pub enum PreTokenizer {
    /// At white space, and before and after every punctuation character.
    Bert,
    /// Into runs of word characters and runs of characters that are neither word characters nor white space
    /// (`\w+|[^\w\s]+`).
    Whitespace,
    /// At white space only.
    WhitespaceSplit,
    /// At punctuation only; white space remains part of the words.
    Punctuation(SplitBehavior),
    /// Separates numeric characters from the rest.
    Digits {
        /// Whether each numeric character is a word, rather than each run of them.
        individual: bool,
    },
    /// At the matches of a pattern.
    Split {
        /// The delimiter.
        pattern: Pattern,
        /// What happens to the delimiters.
        behavior: SplitBehavior,
        /// Whether the matches are the words and the text between them the delimiters, instead of the reverse.
        invert: bool,
    },
    /// At one character, which is removed.
    CharDelimiter(char),
    /// At spaces, which are replaced by a visible character that begins each word, as in SentencePiece.
    Metaspace(Metaspace),
    /// By GPT-2's pattern; each byte is replaced by a visible character.
    ByteLevel(ByteLevel),
    /// Several pre-tokenizers; each splits the words of the one before.
    Sequence(Vec<PreTokenizer>),
}

/// What happens to a delimiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SplitBehavior {
    /// It is removed.
    Removed,
    /// It becomes a word.
    #[default]
    Isolated,
    /// It is appended to the word before it.
    MergedWithPrevious,
    /// It is prepended to the word after it.
    MergedWithNext,
    /// Adjacent delimiters become one word.
    Contiguous,
}

/// The options of `Metaspace`.
#[derive(Debug, Clone, PartialEq)]
pub struct Metaspace {
    /// The character that replaces a space, usually `▁` (U+2581).
    pub replacement: char,
    /// When to insert `replacement` before a text that does not begin with it.
    pub prepend: PrependScheme,
    /// Whether to split the text before each `replacement`.
    pub split: bool,
}

/// When `Metaspace` inserts its character before a piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrependScheme {
    /// Only if the piece begins the original text.
    First,
    /// Never.
    Never,
    /// Before each piece.
    Always,
}

impl PreTokenizer {
    /// Returns whether splitting depends on the position of a piece in the original, and so needs an aligned text.
    pub(crate) fn needs_spans(&self) -> bool {
        match self {
            PreTokenizer::Metaspace(metaspace) => metaspace.prepend == PrependScheme::First,
            PreTokenizer::Sequence(steps) => steps.iter().any(PreTokenizer::needs_spans),
            _ => false,
        }
    }

    /// Replaces each range of `words` with the words inside it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::PatternFailed`](crate::Error::PatternFailed) if the regular expression of a `Split` gives up. `text`
    /// and `words` are then unspecified.
    pub(crate) fn split(&self, text: &mut Normalized, words: &mut Vec<Range<usize>>) -> Result<()> {
        match self {
            PreTokenizer::Sequence(steps) => return steps.iter().try_for_each(|step| step.split(text, words)),
            PreTokenizer::ByteLevel(byte_level) => {
                byte_level.rewrite(text, words);
                return Ok(());
            }
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

    /// Appends the words of one range to `words`; `matches` is a scratch buffer.
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
                split_at(piece, range.start, matches, SplitBehavior::Removed, false, words);
            }
            PreTokenizer::Punctuation(behavior) => {
                each_char(piece, unicode::is_punctuation, matches);
                split_at(piece, range.start, matches, *behavior, false, words);
            }
            PreTokenizer::Digits { individual } => {
                let behavior = if *individual { SplitBehavior::Isolated } else { SplitBehavior::Contiguous };
                each_char(piece, unicode::is_numeric, matches);
                split_at(piece, range.start, matches, behavior, false, words);
            }
            PreTokenizer::CharDelimiter(delimiter) => {
                each_char(piece, |c| c == *delimiter, matches);
                split_at(piece, range.start, matches, SplitBehavior::Removed, false, words);
            }
            PreTokenizer::Split { pattern, behavior, invert } => {
                pattern.find_all(piece, matches)?;
                split_at(piece, range.start, matches, *behavior, *invert, words);
            }
            PreTokenizer::Metaspace(metaspace) if metaspace.split => {
                each_char(piece, |c| c == metaspace.replacement, matches);
                split_at(piece, range.start, matches, SplitBehavior::MergedWithNext, false, words);
            }
            PreTokenizer::Metaspace(_) => words.push(range),
            PreTokenizer::ByteLevel(_) | PreTokenizer::Sequence(_) => unreachable!("split() applies them itself"),
        }
        Ok(())
    }
}

/// Appends the words of `piece`, which begins at `base`: white space separates words, a punctuation character is a word.
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

/// Appends the matches of `\w+|[^\w\s]+` in `piece`, which begins at `base`.
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

/// Appends the range of each delimiter character.
fn each_char(piece: &str, is_delimiter: impl Fn(char) -> bool, matches: &mut Vec<(usize, usize)>) {
    matches.extend(piece.char_indices().filter(|&(_, c)| is_delimiter(c)).map(|(at, c)| (at, at + c.len_utf8())));
}

/// Appends the words of `piece`, which begins at `base`, given the `matches` of a pattern in it.
///
/// The matches are the delimiters or, with `invert`, the text between them is.
fn split_at(
    piece: &str,
    base: usize,
    matches: &[(usize, usize)],
    behavior: SplitBehavior,
    invert: bool,
    words: &mut Vec<Range<usize>>,
) {
    // The piece as a sequence of parts, each with whether it is a delimiter.
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

    let mut merged: Vec<Range<usize>> = Vec::with_capacity(parts.len());
    let mut previous = false;
    match behavior {
        SplitBehavior::Removed => merged.extend(parts.into_iter().filter(|part| !part.1).map(|part| part.0)),
        SplitBehavior::Isolated => merged.extend(parts.into_iter().map(|part| part.0)),
        SplitBehavior::Contiguous => {
            for (part, delimiter) in parts {
                match merged.last_mut() {
                    Some(last) if delimiter == previous => last.end = part.end,
                    _ => merged.push(part),
                }
                previous = delimiter;
            }
        }
        SplitBehavior::MergedWithPrevious => {
            for (part, delimiter) in parts {
                match merged.last_mut() {
                    Some(last) if delimiter && !previous => last.end = part.end,
                    _ => merged.push(part),
                }
                previous = delimiter;
            }
        }
        SplitBehavior::MergedWithNext => {
            for (part, delimiter) in parts.into_iter().rev() {
                match merged.last_mut() {
                    Some(last) if delimiter && !previous => last.start = part.start,
                    _ => merged.push(part),
                }
                previous = delimiter;
            }
            merged.reverse();
        }
    }
    words.extend(merged.into_iter().filter(|part| !part.is_empty()).map(|part| base + part.start..base + part.end));
}

impl Metaspace {
    /// Replaces the spaces in each range, inserts the character before it where the scheme requires, and updates `words`.
    fn rewrite(&self, text: &mut Normalized, words: &mut [Range<usize>]) {
        let mark = self.replacement.to_string();
        let mut out = Normalized { aligned: text.aligned, base: text.base, ..Normalized::default() };
        for range in words.iter_mut() {
            let first_in_text = text.aligned && text.spans.get(range.start).is_some_and(|span| span.start == 0);
            let mut piece = text.slice(range.clone());
            let spaces: Vec<(usize, usize)> = piece.text.match_indices(' ').map(|(at, _)| (at, at + 1)).collect();
            piece.replace(&spaces, &mark);
            let prepend = match self.prepend {
                PrependScheme::Always => true,
                PrependScheme::First => first_in_text,
                PrependScheme::Never => false,
            };
            if prepend && !piece.text.starts_with(self.replacement) {
                piece.prepend(&mark);
            }
            *range = out.text.len()..out.text.len() + piece.text.len();
            out.text.push_str(&piece.text);
            out.spans.append(&mut piece.spans);
        }
        *text = out;
    }
}

impl ByteLevel {
    /// Splits each range, and replaces the bytes of the words.
    fn rewrite(&self, text: &mut Normalized, words: &mut Vec<Range<usize>>) {
        let mut out = Normalized { aligned: text.aligned, base: text.base, ..Normalized::default() };
        let mut cut = Vec::new();
        for range in std::mem::take(words) {
            let mut piece = text.slice(range);
            // Of all white space only the space counts, as in the reference.
            if self.add_prefix_space && !piece.text.starts_with(' ') {
                piece.prepend(" ");
            }
            cut.clear();
            match self.use_regex {
                true => byte_level::split(&piece.text, &mut cut),
                false => cut.push(0..piece.text.len()),
            }
            for word in &cut {
                let mut word = piece.slice(word.clone());
                // The first byte of a character replaces it; the others are inserted, and so derive from it too.
                let bytes = word.text.bytes().map(|byte| (char_of(byte), isize::from(byte & 0xC0 == 0x80)));
                let changes: Vec<(char, isize)> = bytes.collect();
                word.transform(changes, 0);
                words.push(out.text.len()..out.text.len() + word.text.len());
                out.text.push_str(&word.text);
                out.spans.append(&mut word.spans);
            }
        }
        *text = out;
    }
}
