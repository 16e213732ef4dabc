//! Arrow columns of Python objects: texts coming in, arrays of ids going out. Neither direction copies buffers (of
//! incoming columns some texts at a time are), and neither needs a package such as pyarrow.
//!
//! Libraries hand over columns through the methods of [Arrow's PyCapsule
//! interface](https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html). The crate `wordpiece_arrow`
//! reads and makes the structures in these capsules; what needs the interpreter is here:
//!
//! - `capsule` moves structures out of capsules;
//! - `column` requests the column of an object and words its problems;
//! - `numpy_strings` makes a column of NumPy's fixed-width strings;
//! - `table` passes on the arrays of a batch.
//!
//! `rust/arrow/DESIGN.md` explains why no crate for Arrow is used.

mod capsule;
mod column;
mod numpy_strings;
mod table;

pub use column::{_column_texts, ColumnArgument, passes_on_columns};
pub use table::{_arrow_array, _arrow_schema, _arrow_stream};
