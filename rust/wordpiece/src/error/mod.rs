//! The error type of the crate.
//!
//! Errors are data: each variant carries the value that was wrong and its location, so that callers can match on them.
//! The private module `message` has the wording of all of them. [`Error::kind`] groups the variants into the few
//! classes that callers usually distinguish, and [`Error::innermost`] removes the location of an error in a batch.

mod message;
mod text_problem;
mod training;

pub use text_problem::TextProblem;
pub use training::TrainingError;

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The class of an [`Error`]. A binding maps each to one exception type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The vocabulary is wrong.
    Vocab,
    /// A `tokenizer.json`, or another file that describes a tokenizer, is wrong or not supported.
    Format,
    /// A text, an id or an option of a call is wrong.
    Input,
    /// The operating system refused to read a file.
    File,
    /// Words could not be counted, or a vocabulary could not be trained.
    Training,
}

/// Everything that can go wrong.
///
/// The [`Display`](std::fmt::Display) form states the problem, with the value and its location, and a remedy;
/// [`problem`](Error::problem) and [`remedy`](Error::remedy) return the two parts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    // Vocabularies.
    /// A vocabulary has no tokens.
    EmptyVocab,
    /// The unknown token is not in the vocabulary.
    MissingUnk {
        /// The unknown token that the definition names.
        unk_token: String,
        /// The first token of the vocabulary, if it begins with a byte order mark.
        marked_token: Option<String>,
    },
    /// Two tokens have one id.
    DuplicateId {
        /// The id.
        id: u32,
        /// One of the tokens.
        first: String,
        /// The other token.
        second: String,
    },
    /// The id of a token is above [`Vocab::LAST_ID`](crate::Vocab::LAST_ID).
    IdTooLarge {
        /// The id.
        id: u32,
        /// The token.
        token: String,
    },
    /// A list of tokens, or a `vocab.txt` read strictly, has a token twice.
    DuplicateToken {
        /// The token.
        token: String,
        /// The first location of the token: an index from 0, or a line from 1.
        first: usize,
        /// The second location.
        second: usize,
        /// What the locations count: `"index"` or `"line"`.
        unit: &'static str,
    },
    /// A `vocab.txt` read strictly has a blank line.
    BlankLine {
        /// The line, counted from 1.
        line: usize,
        /// The white space other than ASCII that the line has, such as U+2028.
        white_space: String,
    },
    /// A `vocab.txt` read strictly has white space at the end of a line.
    TrailingSpace {
        /// The token of the line, without the white space.
        token: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// A `vocab.txt` read strictly begins with a byte order mark.
    ByteOrderMark,
    /// A vocabulary cannot be written as a `vocab.txt`, because its ids are not 0, 1, 2, ….
    VocabTxtGap {
        /// The first token whose id is not the number of its line.
        token: String,
        /// The id of the token.
        id: u32,
        /// The id that its line would give it.
        expected: u32,
    },
    /// A vocabulary cannot be written as a `vocab.txt`, because a line cannot represent one of its tokens.
    VocabTxtToken {
        /// The token.
        token: String,
        /// The id of the token.
        id: u32,
    },
    /// A `vocab.txt` is not UTF-8.
    VocabNotUtf8 {
        /// The line, counted from 1.
        line: usize,
        /// The byte offset in the file.
        offset: usize,
    },
    /// The tokens of a vocabulary have more bytes than the matcher can index.
    VocabTooLarge {
        /// The number of bytes at which reading stopped.
        bytes: usize,
    },

    // Files that describe a tokenizer.
    /// A `tokenizer.json` is not JSON, or its structure cannot be read.
    Json {
        /// The message of the JSON parser.
        message: String,
        /// The line, counted from 1; 0 if unknown.
        line: usize,
        /// The column, counted from 1; 0 if unknown.
        column: usize,
    },
    /// A `tokenizer.json` has a component that this crate does not implement.
    Unsupported {
        /// The path of the component, such as `"model"` or `"normalizer.normalizers[1]"`.
        component: String,
        /// The type that the file states.
        name: String,
    },
    /// A component lacks a field.
    MissingField {
        /// The path of the component.
        component: String,
        /// The name of the field.
        field: String,
    },
    /// A file has a field that the format does not define.
    UnknownField {
        /// The path of the component.
        component: String,
        /// The name of the field.
        field: String,
    },
    /// A field has a value that cannot be used.
    InvalidField {
        /// The path of the component.
        component: String,
        /// The name of the field.
        field: String,
        /// The value as JSON, shortened.
        value: String,
        /// What the format allows, in words.
        expected: String,
    },
    /// The id that a file states for an added token is not the one that the reference gives it on reading the file.
    AddedTokenId {
        /// The content of the token.
        content: String,
        /// The id in the file.
        stored: u32,
        /// The id that the reference gives it.
        assigned: u32,
    },
    /// No `tokenizer.json` gives an added token its id in `tokenizers` too.
    AddedTokenUnwritable {
        /// The content of the token.
        content: String,
        /// Its id.
        id: u32,
        /// The id that `tokenizers` would give it.
        read: u32,
    },
    /// The template of a post-processor is inconsistent.
    BadTemplate {
        /// What is wrong, as a sentence.
        message: String,
    },
    /// The regular-expression engine rejects a pattern.
    BadPattern {
        /// The pattern.
        pattern: String,
        /// The message of the engine.
        message: String,
    },

    // Calls.
    /// An added token is searched for in normalized text, but the normalizer deletes all of it.
    EmptyAddedToken {
        /// The content of the token, before normalization.
        content: String,
    },
    /// A text has 4 GiB or more; positions in a text are 32-bit numbers.
    TextTooLong {
        /// The size of the text in bytes.
        bytes: usize,
    },
    /// `max_length` is smaller than the number of special tokens in a row.
    MaxLengthBelowSpecials {
        /// The requested `max_length`, in tokens.
        max_length: usize,
        /// The number of special tokens that are added.
        added: usize,
    },
    /// The stride is not smaller than a window.
    StrideTooLarge {
        /// The requested stride, in tokens.
        stride: usize,
        /// The number of tokens of this text that fit into one window.
        window: usize,
        /// The requested `max_length`, in tokens.
        max_length: usize,
        /// The number of special tokens that are added.
        added: usize,
    },
    /// Truncation of only one text would have to remove more tokens than it has.
    SequenceTooShort {
        /// `"first"` or `"second"`.
        which: &'static str,
        /// The number of tokens of that text.
        length: usize,
        /// The number of tokens to remove.
        excess: usize,
    },
    /// Truncation of only the second text was requested for an input without one.
    SecondSequenceNotProvided,
    /// Padding to a multiple of 0 was requested.
    ZeroMultiple,
    /// A result exceeds a limit of its representation.
    TooLarge {
        /// The thing that is too large.
        what: &'static str,
        /// The size that it would have.
        size: usize,
    },
    /// Memory for the rows of a result cannot be allocated.
    OutOfMemory {
        /// The number of rows.
        rows: usize,
        /// The number of tokens of the longest row, padding included.
        length: usize,
        /// The number of bytes that could not be allocated.
        bytes: usize,
    },
    /// Strict decoding of an id that no token has.
    UnknownId {
        /// The id.
        id: u32,
        /// The number of tokens, added ones included.
        vocab_size: usize,
    },
    /// An input whose bytes are not UTF-8, which can happen in a column.
    InputNotUtf8 {
        /// Whether it is the second text of a pair.
        is_second: bool,
        /// The index of the word, where the text is a list of words.
        word: Option<usize>,
        /// The number of valid bytes at the beginning.
        valid_up_to: usize,
    },
    /// The regular-expression engine gave up on a text, for instance because of too much backtracking.
    PatternFailed {
        /// The pattern.
        pattern: String,
        /// The message of the engine.
        message: String,
    },

    // Files of texts.
    /// A file cannot be read.
    FileUnreadable {
        /// The name of the file.
        file: String,
        /// The error number of the operating system; `None` if the file was read but its compressed data is broken.
        code: Option<i32>,
        /// The message of the operating system or the decompressor.
        message: String,
    },
    /// A text in a file is wrong.
    BadText {
        /// The name of the file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The byte offset in the decompressed file.
        offset: u64,
        /// What is wrong with the text.
        problem: TextProblem,
    },
    /// A text in a column is wrong.
    BadRow {
        /// The name of the file.
        file: String,
        /// The row, counted from 1.
        row: u64,
        /// What is wrong with the text.
        problem: TextProblem,
    },
    /// A table has no column of a name, or several.
    NoColumn {
        /// The name of the file.
        file: String,
        /// The requested column.
        column: String,
        /// The columns of the table.
        columns: Vec<String>,
    },
    /// The path of a field of JSON lines has an empty key.
    BadFieldPath {
        /// The path.
        path: String,
    },
    /// The separator between texts is empty.
    EmptySeparator,
    /// The thread that reads files cannot be started or is gone.
    NoThread {
        /// The reason.
        message: String,
    },

    // Pre-training data.
    /// The arrays of an example folder do not fit together, or have no such row.
    BrokenExamples {
        /// The row, counted from 0 in its shard.
        row: usize,
    },

    /// No document of a corpus has a token.
    NoTokens,

    // Locations.
    /// An error in a text whose location in a file is known.
    AtLocation {
        /// The location in words, such as `"corpus.txt line 3"`.
        location: String,
        /// The error in that text.
        error: Box<Error>,
    },
    /// An error in one item of a batch.
    AtIndex {
        /// The index of the item, counted from 0.
        index: usize,
        /// The error in that item.
        error: Box<Error>,
    },

    /// Words could not be counted, or a vocabulary could not be trained.
    Training(TrainingError),
}

impl Error {
    /// Returns the class of the error; an error with a location has the class of the error there.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece::Error;
    ///
    /// let error = Error::EmptyVocab.at_index(3);
    /// assert_eq!(error.kind(), Error::EmptyVocab.kind());
    /// assert_eq!(error.problem(), "item 3: the vocabulary is empty");
    /// assert!(matches!(error.innermost(), Error::EmptyVocab));
    /// ```
    pub fn kind(&self) -> ErrorKind {
        use Error::*;
        match self {
            EmptyVocab
            | MissingUnk { .. }
            | DuplicateId { .. }
            | IdTooLarge { .. }
            | DuplicateToken { .. }
            | BlankLine { .. }
            | TrailingSpace { .. }
            | ByteOrderMark
            | VocabTxtGap { .. }
            | VocabTxtToken { .. }
            | VocabNotUtf8 { .. }
            | VocabTooLarge { .. } => ErrorKind::Vocab,
            Json { .. }
            | Unsupported { .. }
            | MissingField { .. }
            | UnknownField { .. }
            | InvalidField { .. }
            | AddedTokenId { .. }
            | BadTemplate { .. }
            | BadPattern { .. } => ErrorKind::Format,
            AddedTokenUnwritable { .. }
            | EmptyAddedToken { .. }
            | TextTooLong { .. }
            | MaxLengthBelowSpecials { .. }
            | StrideTooLarge { .. }
            | SequenceTooShort { .. }
            | SecondSequenceNotProvided
            | ZeroMultiple
            | TooLarge { .. }
            | OutOfMemory { .. }
            | UnknownId { .. }
            | InputNotUtf8 { .. }
            | PatternFailed { .. }
            | FileUnreadable { code: None, .. }
            | BadText { .. }
            | BadRow { .. }
            | NoColumn { .. }
            | BadFieldPath { .. }
            | EmptySeparator
            | BrokenExamples { .. }
            | NoTokens
            | NoThread { .. } => ErrorKind::Input,
            FileUnreadable { code: Some(_), .. } => ErrorKind::File,
            Training(_) => ErrorKind::Training,
            AtIndex { error, .. } | AtLocation { error, .. } => error.kind(),
        }
    }

    /// Returns the error without the locations around it.
    pub fn innermost(&self) -> &Error {
        match self {
            Error::AtIndex { error, .. } | Error::AtLocation { error, .. } => error.innermost(),
            error => error,
        }
    }

    /// Returns the error as the error of one item of a batch.
    pub fn at_index(self, index: usize) -> Error {
        Error::AtIndex { index, error: Box::new(self) }
    }

    /// Returns the error as the error of a text at a location in a file.
    pub fn at_location(self, location: String) -> Error {
        Error::AtLocation { location, error: Box::new(self) }
    }
}

impl std::error::Error for Error {}
