//! Normalized words alone, without pieces: what counting words needs of the fast path.

use super::buffer::Buffer;
use super::{Fast, InstructionSet};
use crate::definition::Definition;
use crate::normalize::{BertNormalizer, Normalizer};
use crate::vocab::Vocab;

/// Finds the words of texts; threads share one, each with a [`Space`] of its own.
#[derive(Debug, Clone)]
pub(crate) struct WordFinder(Fast);

/// What a thread writes to.
#[derive(Debug, Default)]
pub(crate) struct Space(Buffer);

/// The words of a piece of text: normalized bytes, and where words begin and end in them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a> {
    pub text: &'a [u8],
    pub starts: &'a [u32],
    pub ends: &'a [u32],
}

impl WordFinder {
    /// The finder for these options; `None` without cleaning, which only the pipeline can do.
    pub fn new(options: BertNormalizer, path: InstructionSet) -> Option<WordFinder> {
        // What is looked up does not matter here, but a definition has a vocabulary.
        let vocab = Vocab::new([("[UNK]", 0)]).ok()?;
        let definition = Definition { normalizer: Some(Normalizer::Bert(options)), ..Definition::bert(vocab) };
        Fast::new(&definition, 0, false, path).map(WordFinder)
    }

    /// The words of a piece of text that ends where a word does; `None` where there is something in it that only the
    /// pipeline can do.
    pub fn find<'s>(&self, text: &str, space: &'s mut Space) -> Option<Words<'s>> {
        let buffer = &mut space.0;
        buffer.reset(false, 0);
        self.0.normalize(text, 0, text.len(), buffer)?;
        buffer.close();
        Some(Words { text: buffer.text(), starts: buffer.starts(), ends: buffer.ends() })
    }
}
