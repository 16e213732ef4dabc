//! Errors of training.

/// Why words could not be counted or a vocabulary could not be trained.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrainingError {
    /// There is no word to learn from.
    NoWords,
    /// A file has bytes that are not UTF-8.
    NotUtf8 {
        /// The name of the file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The byte offset in the file.
        offset: u64,
        /// The first byte that cannot be part of UTF-8 at its position.
        byte: u8,
        /// Whether the file looks like UTF-16, by a byte order mark or by the places of its control characters.
        utf16: bool,
    },
    /// A file has a longer run of bytes without white space than a block can hold.
    EndlessWord {
        /// The name of the file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The byte offset in the file at which the run begins.
        offset: u64,
        /// The longest run allowed, in bytes.
        limit: usize,
    },
    /// The counts, summed over all characters of all words, exceed 63 bits.
    CountsTooLarge {
        /// The word at which the sum exceeds the limit.
        word: String,
        /// The count of that word.
        count: u64,
    },
    /// A list of counts has a word twice.
    DuplicateWord {
        /// The word.
        word: String,
    },
    /// The distinct words have more characters than 32-bit numbers can index.
    TooManySymbols,
    /// The vocabulary to extend already has the requested size.
    SizeOfBase {
        /// The requested size.
        vocab_size: usize,
        /// The size of the vocabulary to extend.
        base: usize,
    },
    /// The vocabulary whose unused slots are to be filled has none.
    NoUnusedSlot,
    /// A threshold of 0 was requested, which would keep every piece.
    ZeroThreshold,
    /// The observer of the work asked to stop it.
    Interrupted,
}
