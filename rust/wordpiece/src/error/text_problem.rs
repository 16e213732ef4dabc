//! What can be wrong with a text in a file.

use std::fmt;

/// What is wrong with a text in a file. [`Error::BadText`](crate::Error::BadText) adds where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextProblem {
    /// Bytes that are not UTF-8.
    NotUtf8 {
        /// The first wrong byte.
        byte: u8,
        /// Whether the file begins like UTF-16.
        utf16: bool,
    },
    /// A line that is not JSON.
    NotJson {
        /// What the parser said.
        message: String,
    },
    /// A JSON line without the field.
    NoField {
        /// The field that was asked for.
        field: String,
        /// The keys that the line has.
        keys: Vec<String>,
    },
    /// A field that holds something else than text.
    NotText {
        /// The field.
        field: String,
        /// What the parser said.
        message: String,
    },
    /// A `\ud800` in JSON without its second half, which is no character.
    LoneSurrogate {
        /// The field.
        field: String,
    },
    /// A null in a column.
    Null,
    /// Strings of a column that do not follow each other, or lie outside its bytes.
    BadOffsets,
    /// A text larger than a text may be.
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
}

/// Keys that a message lists.
const KEYS_SHOWN: usize = 12;

impl fmt::Display for TextProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextProblem::NotUtf8 { byte, utf16 } => {
                let guess = if *utf16 { "it looks like UTF-16" } else { "it may be Latin-1 or Windows-1252" };
                write!(
                    f,
                    "not UTF-8: byte 0x{byte:02x}; {guess}: convert it to UTF-8 first, or pass errors=\"replace\""
                )
            }
            TextProblem::NotJson { message } => write!(f, "not JSON: {message}"),
            TextProblem::NoField { field, keys } => {
                write!(f, "no field {field:?}; there are: ")?;
                for (i, key) in keys.iter().take(KEYS_SHOWN).enumerate() {
                    write!(f, "{}{key:?}", if i == 0 { "" } else { ", " })?;
                }
                match keys.len() {
                    0 => write!(f, "none"),
                    n if n > KEYS_SHOWN => write!(f, " and {} more", n - KEYS_SHOWN),
                    _ => Ok(()),
                }
            }
            TextProblem::NotText { field, message } => write!(f, "the field {field:?} is no text: {message}"),
            TextProblem::LoneSurrogate { field } => {
                write!(
                    f,
                    "the field {field:?} has a lone surrogate, which is no character; errors=\"replace\" takes it"
                )
            }
            TextProblem::Null => write!(f, "null, which is no text; errors=\"skip\" leaves it out"),
            TextProblem::BadOffsets => write!(f, "the offsets of the column are broken"),
            TextProblem::TooLong { limit } => {
                write!(f, "a text of more than {limit} bytes begins here: is the separator right?")
            }
        }
    }
}
