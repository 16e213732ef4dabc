//! What can go wrong in training.

use std::fmt;

/// Why words could not be counted or a vocabulary not be trained.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrainingError {
    /// There is no word to learn from.
    NoWords,
    /// Bytes that are not UTF-8.
    NotUtf8 {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The byte offset in the file.
        offset: u64,
        /// The first byte that is wrong.
        byte: u8,
        /// The file begins with the byte order mark of UTF-16.
        utf16: bool,
    },
    /// More bytes without white space than positions can number.
    EndlessWord {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The byte offset in the file at which it begins.
        offset: u64,
        /// The bytes that may stand between two white spaces.
        limit: usize,
    },
    /// Counts whose sum, over all characters of all words, passes 63 bits.
    CountsTooLarge {
        /// The word at which that happens.
        word: String,
        /// Its count.
        count: u64,
    },
    /// A word that stands twice in a list of counts.
    DuplicateWord {
        /// The word.
        word: String,
    },
    /// More characters in distinct words than can be numbered.
    TooManySymbols,
    /// The vocabulary to extend is as large as what was asked for already.
    SizeOfBase {
        /// The size asked for.
        vocab_size: usize,
        /// The size that is there.
        base: usize,
    },
    /// There is no slot to fill.
    NoUnusedSlot,
    /// A threshold below 1 would keep every piece.
    ZeroThreshold,
    /// Whoever watches said stop.
    Interrupted,
}

impl fmt::Display for TrainingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrainingError::NoWords => f.write_str("there is no word to learn from: the texts or counts are empty"),
            TrainingError::NotUtf8 { file, line, offset, byte, utf16 } => {
                let what = if *utf16 { "it begins as UTF-16 does: convert it to UTF-8" } else { "convert it to UTF-8" };
                write!(
                    f,
                    "{file}: not UTF-8: byte 0x{byte:02x} in line {line}, byte offset {offset} of the file; {what}, or \
                     pass errors=\"replace\" or errors=\"skip\""
                )
            }
            TrainingError::EndlessWord { file, line, offset, limit } => write!(
                f,
                "{file}: more than {limit} bytes without white space in line {line}, from byte offset {offset} on: \
                 this is no text, leave it out"
            ),
            TrainingError::CountsTooLarge { word, count } => write!(
                f,
                "the counts are too large: their sum over all characters passes 2**63 at {word:?} with {count}; \
                 divide all counts by a common number"
            ),
            TrainingError::DuplicateWord { word } => {
                write!(f, "the word {word:?} stands twice in the counts; add its counts up first")
            }
            TrainingError::TooManySymbols => f.write_str(
                "the distinct words have more than 2**32 characters together: drop the rarest with max_distinct_words",
            ),
            TrainingError::SizeOfBase { vocab_size, base } => write!(
                f,
                "vocab_size is {vocab_size}, but the vocabulary to extend has {base} tokens already: ask for more than \
                 that, or fill its unused slots with fill_unused=True"
            ),
            TrainingError::NoUnusedSlot => f.write_str(
                "fill_unused: the vocabulary has no [unused0], [unused1], … to fill; give a vocab_size instead",
            ),
            TrainingError::ZeroThreshold => f.write_str(
                "lower_thresh and upper_thresh must be at least 1, or None: a threshold of 0 would keep every piece",
            ),
            TrainingError::Interrupted => f.write_str("interrupted"),
        }
    }
}
