//! Normalized words without their pieces: what counting words needs of the fast path.
//!
//! A text is normalized as one chunk, so its words stay in memory until the next one: callers pass texts of moderate
//! length.

use wordpiece_parallel::InstructionSet;

use super::buffer::NormalizedBuffer;
use super::normalizer::FastNormalizer;
use crate::normalize::BertNormalizer;

/// Finds the words of texts. Threads share one, each with its own [`WordBuffer`].
#[derive(Debug, Clone)]
pub(crate) struct WordFinder(FastNormalizer);

/// The output buffer for words of a thread, reused between texts to avoid allocations.
#[derive(Debug, Default)]
pub(crate) struct WordBuffer(NormalizedBuffer);

/// The words of a text: `text[starts[i]..ends[i]]`, not empty and in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NormalizedWords<'a> {
    /// The normalized text, valid UTF-8, with spaces between words. Nothing may be read past its end.
    pub text: &'a [u8],
    /// Where words begin, in bytes of `text`.
    pub starts: &'a [u32],
    /// Where they end.
    pub ends: &'a [u32],
}

impl WordFinder {
    /// Returns the finder for these options; `None` without cleaning, which only the pipeline handles.
    pub fn new(options: BertNormalizer, instruction_set: InstructionSet) -> Option<WordFinder> {
        FastNormalizer::new(options, false, instruction_set).map(WordFinder)
    }

    /// Finds the words of a text that ends where a word does. Returns `None` if there is something in the text that
    /// only the pipeline handles.
    pub fn find<'s>(&self, text: &str, buffer: &'s mut WordBuffer) -> Option<NormalizedWords<'s>> {
        let buffer = &mut buffer.0;
        buffer.reset(false, 0);
        self.0.normalize(text, 0, text.len(), buffer)?;
        buffer.close();
        Some(NormalizedWords { text: buffer.text(), starts: buffer.starts(), ends: buffer.ends() })
    }
}
