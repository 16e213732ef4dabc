//! Texts of Python as blocks to count.
//!
//! Texts are copied into a block, each followed by a line feed. Counting does not care: words end at any white space.
//! An exception raised on the way is kept in `raised`, and counting stops as if it had been interrupted.

use pyo3::prelude::*;
use pyo3::types::PyIterator;
use wordpiece::Error;
use wordpiece::train::{BlockSource, ByteBlock, TrainingError};
use wordpiece_arrow::Row;

use crate::arrow::ColumnArgument;
use crate::location::Location;
use crate::tokenizer::convert;

/// The size of a block in bytes, which bounds how long the interpreter is held to fill it.
const BLOCK_BYTES: usize = 1 << 20;

/// The error that stops counting after an exception.
const STOPPED: Error = Error::Training(TrainingError::Interrupted);

/// A source of blocks that may raise.
pub trait PythonBlocks: BlockSource + Send {
    /// Returns the exception that ended the source.
    fn raised(self) -> Option<PyErr>;
}

/// Removes the content of a block.
fn clear(block: &mut ByteBlock) {
    block.bytes.clear();
    (block.texts, block.size) = (0, 0);
}

/// Appends a text to a block, which `append` appends to its bytes; returns whether the block is full.
fn push<E>(block: &mut ByteBlock, append: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<bool, E> {
    let start = block.bytes.len();
    append(&mut block.bytes)?;
    block.size += (block.bytes.len() - start) as u64;
    block.bytes.push(b'\n');
    block.texts += 1;
    Ok(block.bytes.len() >= BLOCK_BYTES)
}

/// The texts of an iterable.
pub struct IterableTexts {
    items: Py<PyIterator>,
    /// The index of the next item.
    index: usize,
    raised: Option<PyErr>,
}

impl IterableTexts {
    /// Begins to iterate.
    pub fn new(texts: &Bound<'_, PyAny>) -> PyResult<IterableTexts> {
        Ok(IterableTexts { items: texts.try_iter()?.unbind(), index: 0, raised: None })
    }

    fn fill(&mut self, py: Python<'_>, block: &mut ByteBlock) -> PyResult<()> {
        let expected = "texts to count are an iterable of str";
        for item in self.items.bind(py).clone() {
            let text = convert::string(&item?, Location::item("item", self.index), expected)?;
            self.index += 1;
            let append = |bytes: &mut Vec<u8>| {
                bytes.extend_from_slice(text.get(py).as_bytes());
                PyResult::Ok(())
            };
            if push(block, append)? {
                break;
            }
        }
        Ok(())
    }
}

impl BlockSource for IterableTexts {
    fn next_block(
        &mut self,
        block: &mut ByteBlock,
        _lines_may_break: bool,
        _interrupted: &mut dyn FnMut() -> wordpiece::Result<()>,
    ) -> wordpiece::Result<bool> {
        clear(block);
        match Python::try_attach(|py| self.fill(py, block)) {
            Some(Ok(())) => Ok(block.texts > 0),
            Some(Err(raised)) => {
                self.raised = Some(raised);
                Err(STOPPED)
            }
            // The interpreter is shutting down.
            None => Err(STOPPED),
        }
    }
}

impl PythonBlocks for IterableTexts {
    fn raised(self) -> Option<PyErr> {
        self.raised
    }
}

/// The texts of an Arrow column, read without the interpreter.
pub struct ColumnTexts<'a> {
    column: &'a ColumnArgument,
    /// The index of the next chunk.
    chunk: usize,
    /// The remaining rows of the present chunk.
    rows: std::vec::IntoIter<Row<'a>>,
    /// The number of rows that have been read.
    done: usize,
    raised: Option<PyErr>,
}

impl<'a> ColumnTexts<'a> {
    /// Begins at the first text. The column must have strings, not lists of words.
    pub fn new(column: &'a ColumnArgument) -> ColumnTexts<'a> {
        ColumnTexts { column, chunk: 0, rows: Vec::new().into_iter(), done: 0, raised: None }
    }
}

impl BlockSource for ColumnTexts<'_> {
    fn next_block(
        &mut self,
        block: &mut ByteBlock,
        _lines_may_break: bool,
        _interrupted: &mut dyn FnMut() -> wordpiece::Result<()>,
    ) -> wordpiece::Result<bool> {
        clear(block);
        loop {
            if let Some(row) = self.rows.next() {
                let is_full = push(block, |bytes| row.append_first(bytes)).map_err(|problem| {
                    self.raised = Some(self.column.refuse(self.done, problem));
                    STOPPED
                })?;
                self.done += 1;
                if is_full {
                    return Ok(true);
                }
            } else if self.chunk < self.column.n_chunks() {
                let rows = self.column.chunk_rows(self.chunk).map_err(|raised| {
                    self.raised = Some(raised);
                    STOPPED
                })?;
                self.rows = rows.into_iter();
                self.chunk += 1;
            } else {
                return Ok(block.texts > 0);
            }
        }
    }
}

impl PythonBlocks for ColumnTexts<'_> {
    fn raised(self) -> Option<PyErr> {
        self.raised
    }
}
