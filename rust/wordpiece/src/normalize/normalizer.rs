//! The normalizers as data, and the dispatch to the code of each.

use unicode_normalization_alignments::UnicodeNormalization;

use super::bert::BertNormalizer;
use super::components;
use super::normalized::Normalized;
use crate::error::Result;
use crate::memory;
use crate::offsets::Span;
use crate::pattern::{Pattern, most_bytes};
use crate::unicode;

/// The changes that are applied to a text before it is split into words.
///
/// The variants are the normalizers of `tokenizer.json` that WordPiece files use; each behaves as in `tokenizers`
/// 0.23.3.
#[derive(Debug, Clone, PartialEq)]
pub enum Normalizer {
    /// BERT's own: clean up, isolate CJK ideographs, strip accents, lower-case; each step optional.
    Bert(BertNormalizer),
    /// Several normalizers, applied in order.
    Sequence(Vec<Normalizer>),
    /// Lower-case each character on its own: `Σ` becomes `σ` even at the end of a word.
    Lowercase,
    /// Canonical decomposition (NFD).
    Nfd,
    /// Canonical composition (NFC).
    Nfc,
    /// Compatibility decomposition (NFKD).
    Nfkd,
    /// Compatibility composition (NFKC).
    Nfkc,
    /// Delete combining marks. Does not decompose: precomposed characters keep their accents.
    StripAccents,
    /// Delete white space at the ends.
    Strip {
        /// At the start.
        left: bool,
        /// At the end.
        right: bool,
    },
    /// Replace every match of a pattern.
    Replace {
        /// The pattern to search for.
        pattern: Pattern,
        /// The replacement, inserted literally.
        content: String,
    },
    /// Insert a string before a text that is not empty.
    Prepend(String),
}

impl Normalizer {
    /// Returns the normalized form of a text, without its alignment.
    ///
    /// # Errors
    ///
    /// As [`apply`](Normalizer::apply).
    pub(crate) fn normalized(&self, text: &str) -> Result<String> {
        let mut normalized = Normalized::default();
        normalized.reset(text, 0, false);
        self.apply(&mut normalized)?;
        Ok(normalized.text)
    }

    /// Normalizes `text` in place.
    ///
    /// # Errors
    ///
    /// Returns [`Error::PatternFailed`](crate::Error::PatternFailed) if a regular expression of a `Replace` gives up,
    /// for example because it exceeds its limit of backtracking steps. `text` is then unspecified.
    pub(crate) fn apply(&self, text: &mut Normalized) -> Result<()> {
        self.step(text, most_bytes(text.text.len()))
    }

    /// As [`Normalizer::apply`]; replacements may make a text of at most `limit` bytes.
    fn step(&self, text: &mut Normalized, limit: usize) -> Result<()> {
        match self {
            Normalizer::Bert(bert) => bert.renormalize(text),
            Normalizer::Sequence(steps) => steps.iter().try_for_each(|step| step.step(text, limit))?,
            Normalizer::Lowercase => components::lowercase(text),
            Normalizer::Nfd => components::recompose(text, |old| old.nfd().collect()),
            Normalizer::Nfc => components::recompose(text, |old| old.nfc().collect()),
            Normalizer::Nfkd => components::recompose(text, |old| old.nfkd().collect()),
            Normalizer::Nfkc => components::recompose(text, |old| old.nfkc().collect()),
            Normalizer::StripAccents => components::filter(text, |c| !unicode::is_combining_mark(c)),
            Normalizer::Strip { left, right } => components::strip(text, *left, *right),
            Normalizer::Replace { pattern, content } => {
                let mut matches = Vec::new();
                pattern.find_all(&text.text, &mut matches)?;
                let bytes = pattern.replaced(text.text.len(), &matches, content, limit)?;
                memory::check(1, bytes, 1 + size_of::<Span>())?;
                text.replace(&matches, content);
            }
            Normalizer::Prepend(prefix) => text.prepend(prefix),
        }
        Ok(())
    }
}
