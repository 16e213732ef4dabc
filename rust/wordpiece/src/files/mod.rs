//! Reads texts from files in bounded memory: lines, other separators, whole files, fields of JSON lines, or columns of
//! CSV and TSV.
//!
//! A [`TextReader`] reads its [`TextSource`]s one after the other and returns one [`TextBlock`] at a time: a few
//! megabytes of complete texts, each with the file and line it comes from. [`ReadAhead`] runs a reader on a background
//! thread, so that the next block is usually ready when the last one has been processed.
//!
//! # Invariants
//!
//! - The texts and their locations depend on the bytes of the files only, not on the size of blocks or of reads.
//! - A text is never divided between two blocks, and no text spans two files.
//! - Memory is bounded by [`ReadOptions::block_bytes`] plus the longest text, which [`ReadOptions::longest_text`]
//!   limits.
//!
//! # Cost
//!
//! Each byte is read once, searched once for the separator, validated as UTF-8 once and copied once into the block.
//! Where a run of texts is valid UTF-8 and not JSON, it is copied as one piece, separators included.
//!
//! # Example
//!
//! ```
//! use wordpiece::files::{ReadOptions, TextBlock, TextReader, TextSource};
//!
//! let source = TextSource::reader("a.txt", "one\r\n\ntwo".as_bytes());
//! let mut reader = TextReader::new(vec![source], ReadOptions::default())?;
//! let mut block = TextBlock::default();
//! assert!(reader.next_block(&mut block)?);
//! assert_eq!(block.texts().collect::<Vec<_>>(), ["one", "", "two"]);
//! assert_eq!(block.location(2), "a.txt line 3");
//! assert!(!reader.next_block(&mut block)?);
//! # Ok::<(), wordpiece::Error>(())
//! ```

mod field_path;
mod options;
mod read_ahead;
mod read_buffer;
mod reader;
mod source;
mod table;
mod text_block;
pub(crate) mod utf16;

pub use crate::error::TextProblem;
pub use field_path::FieldPath;
pub use options::{OnError, ReadOptions, TableFormat, TextLayout};
pub use read_ahead::{NextBlock, ReadAhead};
pub use reader::TextReader;
pub use source::TextSource;
pub(crate) use source::unreadable_file;
pub use text_block::{ArrowColumn, TextBlock};
