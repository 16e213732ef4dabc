//! Arrow columns of strings as inputs of the tokenizer, and arrays as Arrow columns. Neither direction copies buffers.
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
//! | `strings`, `lists` | the elements of an array: strings of every layout, lists |
//! | `column` | [`TextColumn`]: the rows of a column as [`wordpiece::Input`]s |
//! | [`export`] | structures over our own buffers |
//!
//! # What is trusted and what is checked
//!
//! The interface passes pointers without lengths, so the length of each buffer has to be trusted. That is
//! the contract of [`TextColumn::new`]. Everything else is checked before it is used: signs and sizes of numbers, the
//! presence and alignment of children, the order of offsets, dictionary indices, the targets of string views, and UTF-8.
//! A column that fails a check yields a [`ReadError`]; no input causes a panic.
//!
//! # Cost
//!
//! Opening a column reads the first and last offset of each chunk. Reading a row costs a few bounds checks and the UTF-8
//! validation of its bytes, and allocates only where a text is a list of words.
//!
//! ```
//! use wordpiece::Text;
//! use wordpiece_arrow::TextColumn;
//!
//! let column = TextColumn::from_strings("new york".to_owned(), vec![0, 4, 8]);
//! let inputs = column.inputs()?;
//! assert!(matches!(inputs[1].first, Text::Raw("york")));
//! # Ok::<(), wordpiece_arrow::ReadError>(())
//! ```

mod abi;
mod array_slice;
mod column;
mod column_type;
mod lists;
mod problem;
mod stream;
mod strings;

pub mod export;

pub use abi::{ArrowArray, ArrowArrayStream, ArrowSchema, CStructure};
pub use column::{ColumnError, RequestedRows, TextColumn};
pub use column_type::{ColumnType, IndexType, ListLayout, StringLayout, StringType};
pub use problem::{Problem, ReadError, RowPosition};
pub use stream::read_stream;
