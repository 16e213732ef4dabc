//! Problems with a text in a file.

/// A problem with a text in a file. [`Error::BadText`](crate::Error::BadText) and
/// [`Error::BadRow`](crate::Error::BadRow) add its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextProblem {
    /// Bytes that are not UTF-8.
    NotUtf8 {
        /// The first byte that cannot be part of UTF-8 at its position.
        byte: u8,
        /// Whether the file looks like UTF-16, by a byte order mark or by the places of its control characters.
        utf16: bool,
    },
    /// A line that is not JSON.
    NotJson {
        /// The message of the JSON parser.
        message: String,
    },
    /// A JSON line without the requested field.
    NoField {
        /// The path of the field, with dots between keys.
        field: String,
        /// The top-level keys of the line.
        keys: Vec<String>,
    },
    /// A field whose value is not a string.
    NotText {
        /// The path of the field.
        field: String,
        /// The message of the JSON parser.
        message: String,
    },
    /// A JSON escape such as `\ud800` without its other half, which is not a character.
    LoneSurrogate {
        /// The path of the field.
        field: String,
    },
    /// A row of a table with more fields than the header has, or without the field that is read.
    FieldCount {
        /// The number of fields of the row.
        fields: usize,
        /// The number of columns.
        columns: usize,
    },
    /// A quotation mark that begins a field of a table and is never closed.
    OpenQuote,
    /// A field of a table that continues after its closing quotation mark.
    AfterQuote,
    /// A null in a column.
    Null,
    /// Offsets of a column of strings that decrease or exceed its bytes.
    BadOffsets,
    /// A text above the size limit for one text.
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
}
