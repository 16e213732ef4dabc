//! Arrow columns of strings as inputs of the tokenizer, and arrays as Arrow columns. Neither direction copies buffers; texts
//! are copied a few at a time while they are encoded.
//!
//! The crate speaks the [Arrow C data interface](https://arrow.apache.org/docs/format/CDataInterface.html): three
//! structures of C, [`ArrowSchema`], [`ArrowArray`] and [`ArrowArrayStream`], through which libraries in one process hand
//! over columns. It knows nothing of Python; the binding moves the structures into and out of capsules.
//!
//! | module | contents |
//! |---|---|
//! | `abi` | the structures and their ownership |
//! | `problem` | why a column cannot be read, and where |
//! | `column_type` | the type that a schema describes |
//! | `array_slice` | rows of an array, and the only code that follows buffer pointers |
//! | `foreign` | memory that others may write to, read as copies |
//! | `strings`, `lists` | the elements of an array: strings of every layout, lists |
//! | `rows` | [`Row`]: a row as an item of a batch, whose text is copied and checked when its turn comes |
//! | `column` | [`TextColumn`]: the rows of a column |
//! | [`export`] | structures over our own buffers |
//!
//! # What is trusted and what is checked
//!
//! The interface passes pointers without lengths, so the length of each buffer has to be trusted. That is
//! the contract of [`TextColumn::new`]. Everything else is checked before it is used: signs and sizes of numbers, the
//! presence and alignment of children, the order of offsets, dictionary indices, the targets of string views, and UTF-8.
//! A column that fails a check yields a [`ReadError`]; no input causes a panic.
//!
//! A producer's memory may be a mapped file or a buffer that others write to, although the specification forbids that. So
//! nothing that was checked is read again: numbers are read once, and texts are copied, and the copy is checked and used.
//!
//! # Cost
//!
//! Opening a column reads the last offset of each chunk. Reading a row costs a few bounds checks, and allocates only where a
//! text is a list of words. The threads that encode a batch copy and validate some 64 KiB of text at a time, which then are
//! in their cache.
//!
//! ```
//! use wordpiece::Text;
//! use wordpiece_arrow::TextColumn;
//!
//! let column = TextColumn::from_strings("new york".to_owned(), vec![0, 4, 8]);
//! let mut copies = Vec::new();
//! let inputs = column.inputs(&mut copies)?;
//! assert!(matches!(inputs[1].first, Text::Raw("york")));
//! # Ok::<(), wordpiece_arrow::ReadError>(())
//! ```

mod abi;
mod array_slice;
mod column;
mod column_type;
mod foreign;
mod lists;
mod problem;
mod rows;
mod stream;
mod strings;

pub mod export;

pub use abi::{ArrowArray, ArrowArrayStream, ArrowSchema, CStructure};
pub use column::{ColumnError, RequestedRows, TextColumn};
pub use column_type::{ColumnType, IndexType, ListLayout, StringLayout, StringType};
pub use problem::{Problem, ReadError, RowPosition};
pub use rows::Row;
pub use stream::read_stream;
