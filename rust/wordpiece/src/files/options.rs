//! Options for reading files: the division into texts, and the handling of texts that cannot be read.

use super::field_path::FieldPath;

/// How the fields of a table are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Commas, and quotation marks around fields that hold commas, quotation marks (doubled) or line breaks.
    Csv,
    /// Tabs. No field can hold a tab or a line break.
    Tsv,
}

impl TableFormat {
    /// Returns the byte between two fields.
    pub(super) fn separator(self) -> u8 {
        match self {
            TableFormat::Csv => b',',
            TableFormat::Tsv => b'\t',
        }
    }
}

/// How texts are laid out in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextLayout {
    /// Each text ends at this separator; the last text of a file may omit it.
    ///
    /// With `"\n"`, a `\r` directly before the line feed belongs to the separator. No other separator is special. An
    /// empty separator is refused with [`Error::EmptySeparator`](crate::Error::EmptySeparator).
    Separator(String),
    /// The entire file is one text, unchanged.
    WholeFile,
    /// Each line is a JSON value with the text in the given field; a second field makes each line a pair of texts.
    ///
    /// Lines that are empty or hold only ASCII white space are ignored.
    JsonLines(FieldPath, Option<FieldPath>),
    /// Each record is a row of a table whose first record names the columns, with the text in the given column; further
    /// columns make each row several texts.
    ///
    /// Empty lines are ignored. A record may have fewer fields than the header if the fields of the given columns are
    /// there.
    Table(TableFormat, String, Vec<String>),
}

/// What to do with a text that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Return the error. A file that looks like UTF-16 is one.
    #[default]
    Strict,
    /// Replace bytes that are not UTF-8, and lone surrogates in JSON, by U+FFFD, as Python's `errors="replace"` does.
    /// Everything else is an error.
    Replace,
    /// Skip the text; the block counts it and describes the first few (see [`TextBlock`](super::TextBlock)). A file that
    /// looks like UTF-16 counts as one text.
    Skip,
}

/// Options of a [`TextReader`](super::TextReader).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// How texts are laid out in the files.
    pub layout: TextLayout,
    /// What to do with a text that cannot be read.
    pub on_error: OnError,
    /// Whether the second field or column is the id of a document, a whole number or a string, and not a text.
    pub second_is_id: bool,
    /// A block is full once it holds this many bytes of text. The text that reaches the limit is included, so a block
    /// may be larger by one text.
    pub block_bytes: usize,
    /// The most texts in a block. Short texts take more memory for their positions than for their bytes.
    pub block_texts: usize,
    /// The most bytes in a text. A longer one is an error, which bounds the memory when a separator never comes.
    pub longest_text: usize,
}

impl Default for ReadOptions {
    /// Lines, read strictly; blocks of 4 MiB and at most 131,072 texts; texts of at most 1 GiB.
    fn default() -> Self {
        ReadOptions {
            layout: TextLayout::Separator("\n".to_owned()),
            on_error: OnError::Strict,
            second_is_id: false,
            block_bytes: 4 << 20,
            block_texts: 1 << 17,
            longest_text: 1 << 30,
        }
    }
}
