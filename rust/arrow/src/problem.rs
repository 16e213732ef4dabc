//! Why a column cannot be read, as data. The binding words the messages that users see.

use std::ffi::c_int;
use std::fmt;

/// A problem with a column, or with a text in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A row, text or word is null.
    Null,
    /// A string is not valid UTF-8.
    NotUtf8 {
        /// The number of valid bytes at the beginning of the string.
        valid_up_to: usize,
    },
    /// A list that should be a pair does not have two texts.
    NotAPair {
        /// The number of texts that it has.
        texts: usize,
    },
    /// The producer broke a rule of the specification.
    Malformed(String),
    /// A function of a stream returned an error.
    StreamFailed {
        /// What the function returned, an `errno` value.
        code: c_int,
        /// The stream's own words, if it has any and they are UTF-8.
        message: Option<String>,
    },
    /// There is not enough memory for the list of rows.
    OutOfMemory {
        /// The number of rows.
        rows: usize,
    },
}

impl Problem {
    /// Returns [`Problem::Malformed`] with a fixed text.
    pub(crate) fn malformed(rule: &str) -> Problem {
        Problem::Malformed(rule.to_owned())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Null => f.write_str("null"),
            Problem::NotUtf8 { valid_up_to } => write!(f, "not valid UTF-8 from byte {valid_up_to} on"),
            Problem::NotAPair { texts } => write!(f, "a list of {texts} texts instead of a pair"),
            Problem::Malformed(rule) => write!(f, "malformed Arrow data: {rule}"),
            Problem::StreamFailed { code, message } => {
                write!(f, "the stream failed with code {code}: {}", message.as_deref().unwrap_or("no message"))
            }
            Problem::OutOfMemory { rows } => write!(f, "{rows} rows do not fit into memory"),
        }
    }
}

/// The position of a text, or of a word in it, in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPosition {
    /// The row, counted from the first chunk on.
    pub row: usize,
    /// Whether it is the second text of a pair.
    pub is_second: bool,
    /// The index of the word, where texts are lists of words and one of the words is meant.
    pub word: Option<usize>,
}

/// A problem and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// Where the problem is; `None` if it concerns the column rather than one row.
    pub position: Option<RowPosition>,
    /// What is wrong.
    pub problem: Problem,
}

impl From<Problem> for ReadError {
    /// Makes an error that concerns the column rather than one row.
    fn from(problem: Problem) -> ReadError {
        ReadError { position: None, problem }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(RowPosition { row, is_second, word }) = self.position {
            write!(f, "row {row}{}", if is_second { ", second text" } else { "" })?;
            word.map_or(Ok(()), |word| write!(f, ", word {word}"))?;
            f.write_str(": ")?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for ReadError {}
