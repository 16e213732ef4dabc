//! Texts out of files, in bounded memory: lines, other separators, whole files, fields of JSON lines.
//!
//! A [`TextReader`] gives one [`Block`] after the other: some megabytes of whole texts, each with the place it comes from.
//! [`ReadAhead`] runs one on a thread of its own, so that the next block is there when the last one is done.
//!
//! ```
//! use wordpiece::files::{Block, ReadOptions, Source, TextReader};
//!
//! let source = Source::reader("a.txt", "one\r\n\ntwo".as_bytes());
//! let mut reader = TextReader::new(vec![source], ReadOptions::default())?;
//! let mut block = Block::default();
//! assert!(reader.next_block(&mut block)?);
//! assert_eq!(block.texts().collect::<Vec<_>>(), ["one", "", "two"]);
//! assert_eq!(block.place(2), "a.txt line 3");
//! assert!(!reader.next_block(&mut block)?);
//! # Ok::<(), wordpiece::Error>(())
//! ```

mod ahead;
mod block;
mod field;

mod reader;
mod source;
mod window;

pub use crate::error::TextProblem;
pub use ahead::{Next, ReadAhead};
pub use block::{Block, Column};
pub use field::FieldPath;
pub(crate) use reader::unreadable;
pub use reader::{OnError, ReadOptions, Split, TextReader};
pub use source::Source;
