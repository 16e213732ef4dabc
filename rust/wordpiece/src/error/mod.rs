//! The one error type of the crate: every variant carries the value that was wrong.

mod text_problem;
mod training;

pub use text_problem::TextProblem;
pub use training::TrainingError;

use std::fmt;

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of thing was wrong. A binding maps each kind to one exception class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The vocabulary itself.
    Vocab,
    /// A `tokenizer.json` or another file that describes a tokenizer.
    Format,
    /// A text, an id or an option of a call.
    Input,
    /// A file that the operating system refuses.
    File,
    /// Counting words or training a vocabulary.
    Training,
}

/// Everything that can go wrong, with the value that was wrong and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A vocabulary without any token.
    EmptyVocab,
    /// The unknown token is not in the vocabulary.
    MissingUnk {
        /// The token that was looked for.
        unk_token: String,
    },
    /// Two tokens with one id.
    DuplicateId {
        /// The id.
        id: u32,
        /// The token that has it.
        first: String,
        /// The token that wants it too.
        second: String,
    },
    /// One token twice (in a list, or in a `vocab.txt` read strictly).
    DuplicateToken {
        /// The token.
        token: String,
        /// Where it stands first (an index, or a line counted from 1).
        first: usize,
        /// Where it stands again.
        second: usize,
        /// What the two numbers count: `"index"` or `"line"`.
        unit: &'static str,
    },
    /// A blank line in a `vocab.txt` read strictly.
    BlankLine {
        /// The line, counted from 1.
        line: usize,
    },
    /// White space at the end of a line of a `vocab.txt` read strictly.
    TrailingSpace {
        /// The token without it.
        token: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// A byte order mark at the start of a `vocab.txt` read strictly.
    ByteOrderMark,
    /// A vocabulary whose ids are not 0, 1, 2, …, so that the lines of a `vocab.txt` cannot be its ids.
    VocabTxtGap {
        /// The token.
        token: String,
        /// Its id.
        id: u32,
        /// The id of its line.
        expected: u32,
    },
    /// A token that a line of a `vocab.txt` cannot hold.
    VocabTxtToken {
        /// The token.
        token: String,
        /// Its id.
        id: u32,
    },
    /// A `vocab.txt` that is not UTF-8.
    VocabNotUtf8 {
        /// The line, counted from 1.
        line: usize,
        /// The byte offset in the file.
        offset: usize,
    },
    /// More text in a vocabulary than the matcher can number.
    VocabTooLarge {
        /// The size in bytes.
        bytes: usize,
    },

    /// Not JSON, or not the JSON that was expected there.
    Json {
        /// What the parser said.
        message: String,
        /// Line and column, counted from 1; 0 when unknown.
        line: usize,
        /// The column.
        column: usize,
    },
    /// A component of a `tokenizer.json` that this crate does not have.
    Unsupported {
        /// Where it stands: `"model"`, `"normalizer"`, `"pre_tokenizer"`, …
        component: String,
        /// Its name in the file.
        name: String,
    },
    /// A field that is missing.
    MissingField {
        /// The component.
        component: String,
        /// The field.
        field: String,
    },
    /// A field that should not be there.
    UnknownField {
        /// The component.
        component: String,
        /// The field.
        field: String,
    },
    /// A field with a value that cannot be used.
    InvalidField {
        /// The component.
        component: String,
        /// The field.
        field: String,
        /// The value, shortened.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// An added token whose stored id is not the one it gets.
    AddedTokenId {
        /// The token.
        content: String,
        /// The id in the file.
        stored: u32,
        /// The id that the vocabulary gives it.
        assigned: u32,
    },
    /// A post-processor that names tokens or sequences which do not fit.
    BadTemplate {
        /// What is wrong, in a sentence.
        message: String,
    },
    /// A pattern that the regular expression engine refuses.
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What the engine said.
        message: String,
    },

    /// An added token that the normalizer turns into nothing, so it would match between all characters.
    EmptyAddedToken {
        /// The content before normalization.
        content: String,
    },
    /// A text of 4 GiB or more; positions are 32-bit numbers.
    TextTooLong {
        /// The size in bytes.
        bytes: usize,
    },
    /// `max_length` leaves no room for the special tokens.
    MaxLengthBelowSpecials {
        /// The `max_length` asked for.
        max_length: usize,
        /// The number of special tokens that are added.
        added: usize,
    },
    /// The stride is not smaller than what one window holds.
    StrideTooLarge {
        /// The stride asked for.
        stride: usize,
        /// The tokens of this sequence that fit into one window.
        window: usize,
        /// The `max_length` asked for.
        max_length: usize,
        /// The number of special tokens that are added.
        added: usize,
    },
    /// `only_first` or `only_second` would have to remove more than that sequence has.
    SequenceTooShort {
        /// `"first"` or `"second"`.
        which: &'static str,
        /// Its length in tokens.
        length: usize,
        /// How many tokens have to go.
        excess: usize,
    },
    /// `only_second` without a second sequence.
    SecondSequenceNotProvided,
    /// A multiple of nothing.
    ZeroMultiple,
    /// A result larger than the arrays can be.
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it would be.
        size: usize,
    },
    /// An id that no token has, where the caller asked for strictness.
    UnknownId {
        /// The id.
        id: u32,
        /// The size of the vocabulary.
        vocab_size: usize,
    },
    /// The regular expression engine gave up on a text (too much backtracking).
    PatternFailed {
        /// The pattern.
        pattern: String,
        /// What the engine said.
        message: String,
    },
    /// A file that cannot be read.
    FileUnreadable {
        /// Its name.
        file: String,
        /// The number of the operating system's error; none where compressed data is broken.
        code: Option<i32>,
        /// What was said.
        message: String,
    },
    /// A text in a file that cannot be read.
    BadText {
        /// The name of the file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The byte offset in the file, decompressed.
        offset: u64,
        /// What is wrong with it.
        problem: TextProblem,
    },
    /// A text in a column that cannot be taken.
    BadRow {
        /// The name of the file.
        file: String,
        /// The row, counted from 0.
        row: u64,
        /// What is wrong with it.
        problem: TextProblem,
    },
    /// A path to a field of JSON lines with an empty key.
    BadFieldPath {
        /// The path.
        path: String,
    },
    /// A separator between texts that is empty.
    EmptySeparator,
    /// Files are read on a thread, and there is none.
    NoThread {
        /// Why.
        message: String,
    },
    /// An error in a text of a file.
    AtPlace {
        /// Where the text stands.
        place: String,
        /// What went wrong with it.
        error: Box<Error>,
    },
    /// An error in one item of a batch.
    AtIndex {
        /// The index of the item, from 0.
        index: usize,
        /// What went wrong with it.
        error: Box<Error>,
    },

    /// Counting words or training a vocabulary.
    Training(TrainingError),
}

impl Error {
    /// The kind, for callers that have a class for each.
    pub fn kind(&self) -> ErrorKind {
        use Error::*;
        match self {
            EmptyVocab
            | MissingUnk { .. }
            | DuplicateId { .. }
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
            EmptyAddedToken { .. }
            | TextTooLong { .. }
            | MaxLengthBelowSpecials { .. }
            | StrideTooLarge { .. }
            | SequenceTooShort { .. }
            | SecondSequenceNotProvided
            | ZeroMultiple
            | TooLarge { .. }
            | UnknownId { .. }
            | PatternFailed { .. }
            | FileUnreadable { code: None, .. }
            | BadText { .. }
            | BadRow { .. }
            | BadFieldPath { .. }
            | EmptySeparator
            | NoThread { .. } => ErrorKind::Input,
            FileUnreadable { code: Some(_), .. } => ErrorKind::File,
            Training(_) => ErrorKind::Training,
            AtIndex { error, .. } | AtPlace { error, .. } => error.kind(),
        }
    }

    /// The same error, told to be that of one item of a batch.
    pub fn at_index(self, index: usize) -> Error {
        Error::AtIndex { index, error: Box::new(self) }
    }

    /// The same error, told to be that of a text of a file.
    pub fn at_place(self, place: String) -> Error {
        Error::AtPlace { place, error: Box::new(self) }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Error::*;
        match self {
            EmptyVocab => write!(f, "the vocabulary is empty: give at least the unknown token"),
            MissingUnk { unk_token } => write!(
                f,
                "the unknown token {unk_token:?} is not in the vocabulary: add it, or name the right one with unk_token="
            ),
            DuplicateId { id, first, second } => {
                write!(f, "id {id} is given to two tokens, {first:?} and {second:?}: every token needs its own id")
            }
            DuplicateToken { token, first, second, unit } => {
                write!(f, "token {token:?} stands twice in the vocabulary, at {unit} {first} and {unit} {second}")
            }
            BlankLine { line } => write!(f, "line {line} of the vocabulary is blank"),
            TrailingSpace { token, line } => {
                write!(f, "line {line} of the vocabulary ends in white space, which is not part of its token {token:?}")
            }
            ByteOrderMark => write!(
                f,
                "the vocabulary begins with a byte order mark (U+FEFF), which would be part of its first token: \
                 save it without"
            ),
            VocabTxtGap { token, id, expected } => write!(
                f,
                "token {token:?} has id {id} but would stand on the line of id {expected}: a vocab.txt needs ids \
                 0, 1, 2, … without gaps; write a tokenizer.json"
            ),
            VocabTxtToken { token, id } => write!(
                f,
                "token {token:?} (id {id}) holds a line break or ends in white space, which a vocab.txt cannot keep: \
                 write a tokenizer.json"
            ),
            VocabNotUtf8 { line, offset } => {
                write!(f, "the vocabulary is not UTF-8: line {line}, byte offset {offset}")
            }
            VocabTooLarge { bytes } => write!(f, "the vocabulary holds {bytes} bytes of text; the limit is 2 GiB"),
            Json { message, line, column } if *line > 0 => {
                write!(f, "not a valid tokenizer.json: {message} at line {line} column {column}")
            }
            Json { message, .. } => write!(f, "not a valid tokenizer.json: {message}"),
            Unsupported { component, name } => write!(f, "{component}: {name:?} is not supported"),
            MissingField { component, field } => write!(f, "{component}: the field {field:?} is missing"),
            UnknownField { component, field } => write!(f, "{component}: unknown field {field:?}"),
            InvalidField { component, field, value, expected } => {
                write!(f, "{component}: {field:?} is {value}; expected {expected}")
            }
            AddedTokenId { content, stored, assigned } => write!(
                f,
                "added_tokens: {content:?} has id {stored} in the file but gets id {assigned}; \
                 the rows of an embedding table depend on it: correct the file"
            ),
            BadTemplate { message } => write!(f, "post_processor: {message}"),
            BadPattern { pattern, message } => write!(f, "the pattern {pattern:?} cannot be used: {message}"),
            EmptyAddedToken { content } => write!(
                f,
                "added token {content:?}: the normalizer turns it into nothing, so it would match everywhere; \
                 use normalized=False"
            ),
            TextTooLong { bytes } => write!(f, "a text of {bytes} bytes; the limit is 4 GiB: cut it"),
            MaxLengthBelowSpecials { max_length, added } => write!(
                f,
                "max_length is {max_length}, but {added} special tokens are added: \
                 give max_length of at least {added}, or add_special_tokens=False"
            ),
            StrideTooLarge { stride, window, max_length, added } => write!(
                f,
                "stride is {stride}, but a window holds only {window} tokens of the text \
                 (max_length {max_length}, {added} special tokens): stride must be smaller than {window}"
            ),
            SequenceTooShort { which, length, excess } => write!(
                f,
                "truncation: sequence to truncate too short to respect the provided max_length: \
                 the {which} text has {length} tokens and {excess} would have to go; use \"longest_first\""
            ),
            SecondSequenceNotProvided => {
                write!(f, "truncation \"only_second\": second sequence not provided; give a pair")
            }
            ZeroMultiple => write!(f, "pad_to_multiple_of is 0; give a positive number, or None"),
            TooLarge { what, size } => write!(f, "{what} would be {size}, which is too large"),
            UnknownId { id, vocab_size } => {
                write!(f, "id {id} has no token (the vocabulary has {vocab_size})")
            }
            PatternFailed { pattern, message } => {
                write!(f, "the pattern {pattern:?} failed on this text: {message}")
            }
            FileUnreadable { file, message, .. } => write!(f, "{file}: {message}"),
            BadText { file, line, offset, problem } => {
                write!(f, "{file}: line {line}, byte offset {offset}: {problem}")
            }
            BadRow { file, row, problem } => write!(f, "{file}: row {row}: {problem}"),
            BadFieldPath { path } => {
                write!(f, "the field {path:?} has an empty key: keys stand between dots, as in \"meta.title\"")
            }
            EmptySeparator => write!(f, "the separator is empty; to take each file as one text, give none"),
            NoThread { message } => write!(f, "no thread to read files with: {message}"),
            AtPlace { place, error } => write!(f, "{place}: {error}"),
            AtIndex { index, error } => write!(f, "item {index}: {error}"),
            Training(error) => error.fmt(f),
        }
    }
}
