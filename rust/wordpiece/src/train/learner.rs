//! The input and the result of a learner.

use super::counts::WordCounts;
use super::trained::{DroppedChars, ExcludedWords, Stop};
use super::vocab_builder::VocabBuilder;

/// The input of a learner.
#[derive(Debug)]
pub(super) struct LearningTask<'a> {
    /// The words to learn from.
    pub counts: &'a WordCounts,
    /// The tokens that come first: the special tokens, or the vocabulary to extend.
    pub vocab: VocabBuilder,
    /// Whether `vocab` is a vocabulary to extend. Then words are segmented with it instead of into characters, and
    /// words that are tokens already are learned from as well.
    pub extends: bool,
    /// The requested size.
    pub size: usize,
}

/// The output of a learner; see [`Trained`](super::Trained) for the fields.
#[derive(Debug, Default)]
pub(super) struct LearnerOutput {
    pub vocab: VocabBuilder,
    pub stop: Stop,
    pub least_size: usize,
    pub dropped: DroppedChars,
    pub excluded: ExcludedWords,
    pub threshold: Option<u64>,
}
