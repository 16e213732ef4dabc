//! Texts out of files: read, split and encoded without a Python object for any of them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use wordpiece::Error;
use wordpiece::files::{FieldPath, NextBlock, OnError, ReadAhead, ReadOptions, TextLayout, TextSource};

use crate::batch::{self, Rows};
use crate::error::{self, guarded, to_py};
use crate::options::Options;
use crate::threads;
use crate::tokenizer::Tokenizer;

/// How long a wait may go on before signals are looked at: Ctrl-C must end a command that reads from a silent pipe.
const PATIENCE: Duration = Duration::from_millis(100);

fn on_error(name: &str) -> PyResult<OnError> {
    Ok(match name {
        "strict" => OnError::Strict,
        "replace" => OnError::Replace,
        "skip" => OnError::Skip,
        _ => return Err(error::input(format!("errors must be 'strict', 'replace' or 'skip', not {name:?}"))),
    })
}

/// Reads files on a thread of its own, block by block.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct TextReader {
    ahead: Mutex<ReadAhead>,
}

#[pymethods]
impl TextReader {
    /// Start to read; None among the files is standard input. Without a separator a file is one text; with one or two
    /// fields it has JSON lines.
    #[new]
    fn new(
        files: Vec<Option<PathBuf>>,
        separator: Option<String>,
        fields: Vec<String>,
        errors: &str,
        block_texts: Option<usize>,
    ) -> PyResult<TextReader> {
        let fields = fields.iter().map(|field| FieldPath::new(field)).collect::<Result<Vec<_>, _>>().map_err(to_py)?;
        let mut fields = fields.into_iter();
        let layout = match (fields.next(), separator) {
            (Some(first), _) => TextLayout::JsonLines(first, fields.next()),
            (None, Some(separator)) => TextLayout::Separator(separator),
            (None, None) => TextLayout::WholeFile,
        };
        let mut options = ReadOptions { layout, on_error: on_error(errors)?, ..ReadOptions::default() };
        options.block_texts = block_texts.unwrap_or(options.block_texts);
        let sources = files.into_iter().map(|file| file.map_or_else(TextSource::stdin, TextSource::path)).collect();
        let reader = wordpiece::files::TextReader::new(sources, options).map_err(to_py)?;
        Ok(TextReader { ahead: Mutex::new(ReadAhead::start(reader).map_err(to_py)?) })
    }

    /// Return the next block, None at the end. Waiting for it can be interrupted.
    fn next_block(&self, py: Python<'_>) -> PyResult<Option<TextBlock>> {
        guarded(|| {
            loop {
                let wait = || self.ahead.lock().unwrap_or_else(PoisonError::into_inner).next(PATIENCE);
                match py.detach(wait).map_err(to_py)? {
                    NextBlock::Ready(block) => return Ok(Some(TextBlock { block: Arc::new(block) })),
                    NextBlock::Done => return Ok(None),
                    NextBlock::TimedOut => py.check_signals()?,
                }
            }
        })
    }
}

/// The bytes of a column of strings, where each ends, and which of them are not null.
type ArrowColumn<'py> = (PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, i64>, Option<PyReadonlyArray1<'py, bool>>);

/// Some megabytes of texts, and where each comes from.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct TextBlock {
    block: Arc<wordpiece::files::TextBlock>,
}

#[pymethods]
impl TextBlock {
    /// Take the strings of an Arrow array: text *i* is the part of `data` that ends at ``ends[i]``; None in `valid`: no
    /// nulls. With a second column texts are pairs.
    #[staticmethod]
    fn from_arrow(
        py: Python<'_>,
        name: &str,
        first_row: u64,
        columns: Vec<ArrowColumn<'_>>,
        errors: &str,
    ) -> PyResult<TextBlock> {
        guarded(|| {
            let mut borrowed = Vec::new();
            for (data, ends, valid) in &columns {
                let valid = valid.as_ref().map(|valid| valid.as_slice()).transpose()?;
                borrowed.push((data.as_slice()?, ends.as_slice()?, valid));
            }
            let on_error = on_error(errors)?;
            let block = py
                .detach(|| wordpiece::files::TextBlock::from_arrow(name, first_row, &borrowed, on_error))
                .map_err(to_py)?;
            Ok(TextBlock { block: Arc::new(block) })
        })
    }

    fn __len__(&self) -> usize {
        self.block.len()
    }

    /// The number of bytes of text.
    #[getter]
    fn bytes(&self) -> usize {
        self.block.bytes()
    }

    /// How many bytes of the files had been read when the block was made.
    #[getter]
    fn bytes_read(&self) -> u64 {
        self.block.bytes_read()
    }

    /// How many texts were left out on the way to this block.
    #[getter]
    fn skipped_count(&self) -> usize {
        self.block.skipped_count()
    }

    /// What was wrong with the first of them, and where.
    #[getter]
    fn skipped(&self) -> Vec<String> {
        self.block.skipped().to_vec()
    }

    /// Return where a text comes from, in words.
    fn location(&self, i: usize) -> PyResult<String> {
        if i >= self.block.len() {
            return Err(error::input(format!("text {i} of a block of {}", self.block.len())));
        }
        Ok(self.block.location(i))
    }

    /// Return the texts, or pairs of texts, as Python has them.
    fn texts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let text = |text: &str| PyString::new(py, text);
        let (first, second) = (self.block.texts(), self.block.second_texts());
        if second.len() == 0 {
            return PyList::new(py, first.map(text));
        }
        let pairs = first.zip(second).map(|(first, second)| PyTuple::new(py, [text(first), text(second)]));
        PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)
    }

    /// Encode the texts into flat arrays, as `Tokenizer.encode_batch` does; an error names the place of its text.
    fn encode(
        &self,
        py: Python<'_>,
        tokenizer: &Tokenizer,
        options: &Options,
        columns: Vec<String>,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Rows> {
        guarded(|| {
            let threads = threads::checked("threads", threads)?;
            let columns = batch::columns(&columns)?;
            let rows = py.detach(|| {
                let pool = threads::pool_for_bytes(threads, self.block.bytes());
                tokenizer.core.encode_batch::<u32>(&self.block.inputs(), &options.core, &columns, pool)
            });
            let rows = rows.map_err(|error| match error {
                Error::AtIndex { index, error } => error.at_location(self.block.location(index)),
                error => error,
            });
            Rows::new(py, rows.map_err(to_py)?, &columns)
        })
    }
}
