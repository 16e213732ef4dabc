//! Reading texts from files, and encoding them without creating a Python object for each.
//!
//! [`TextReader`] reads on a background thread while Python processes the previous [`TextBlock`].

use std::iter;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use wordpiece::files::{
    self, FieldPath, NextBlock, OnError, ReadAhead, ReadOptions, TableFormat, TextLayout, TextSource,
};
use wordpiece::{Error, Input};

use super::batch::{self, Rows};
use super::core_tokenizer::Tokenizer;
use super::options::Options;
use crate::error::{self, guarded, to_py};
use crate::interrupt::detached;
use crate::numpy_api;
use crate::text::{self, Utf8, Utf8String};
use crate::threads::{self, Threads};

/// The interval between checks for signals while waiting: Ctrl-C must end a command that reads from a silent pipe.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// Returns what the value of `errors` means.
fn on_error(name: &str) -> PyResult<OnError> {
    Ok(match name {
        "strict" => OnError::Strict,
        "replace" => OnError::Replace,
        "skip" => OnError::Skip,
        _ => return Err(error::input(format!("errors must be 'strict', 'replace' or 'skip', not {name:?}"))),
    })
}

/// Reads files on a background thread, block by block.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct TextReader {
    ahead: Mutex<ReadAhead>,
}

#[pymethods]
impl TextReader {
    /// Start to read `files`; None is standard input.
    ///
    /// With one or two `fields`, files have JSON lines; with `columns`, they are tables, as `table` says (``"csv"`` or
    /// ``"tsv"``); otherwise texts are divided by `separator`, or, if it is None, each file is one text.
    ///
    /// With `second_is_id`, the second field or column is the id of a document, a whole number or a string.
    #[new]
    #[pyo3(signature = (files, separator, fields, errors, block_texts, second_is_id=false, *, columns=vec![], table=None))]
    #[expect(clippy::too_many_arguments)]
    fn new(
        files: Vec<Option<PathBuf>>,
        separator: Option<Utf8String>,
        fields: Vec<Utf8String>,
        errors: Utf8<'_>,
        block_texts: Option<usize>,
        second_is_id: bool,
        columns: Vec<Utf8String>,
        table: Option<Utf8<'_>>,
    ) -> PyResult<TextReader> {
        guarded(|| {
            let fields =
                fields.iter().map(|field| FieldPath::new(field)).collect::<Result<Vec<_>, _>>().map_err(to_py)?;
            let mut fields = fields.into_iter();
            let mut columns = text::strings(columns).into_iter();
            let format = if table.as_deref() == Some("tsv") { TableFormat::Tsv } else { TableFormat::Csv };
            let layout = match (fields.next(), columns.next(), separator) {
                (Some(first), _, _) => TextLayout::JsonLines(first, fields.next()),
                (None, Some(first), _) => TextLayout::Table(format, first, columns.collect()),
                (None, None, Some(separator)) => TextLayout::Separator(separator.0),
                (None, None, None) => TextLayout::WholeFile,
            };
            let on_error = on_error(&errors)?;
            let mut options = ReadOptions { layout, on_error, second_is_id, ..ReadOptions::default() };
            options.block_texts = block_texts.unwrap_or(options.block_texts);
            let sources = files.into_iter().map(|file| file.map_or_else(TextSource::stdin, TextSource::path)).collect();
            let reader = files::TextReader::new(sources, options).map_err(to_py)?;
            Ok(TextReader { ahead: Mutex::new(ReadAhead::start(reader).map_err(to_py)?) })
        })
    }

    /// Wait for the next block and return it, None at the end. Signals are checked while waiting.
    fn next_block(&self, py: Python<'_>) -> PyResult<Option<TextBlock>> {
        guarded(|| {
            loop {
                let wait = || self.ahead.lock().unwrap_or_else(PoisonError::into_inner).next(SIGNAL_INTERVAL);
                match py.detach(wait).map_err(to_py)? {
                    NextBlock::Ready(block) => return Ok(Some(TextBlock::new(block))),
                    NextBlock::Done => return Ok(None),
                    NextBlock::TimedOut => py.check_signals()?,
                }
            }
        })
    }
}

/// The bytes of a column of strings, the end of each string, and which of them are not null (``None``: all; 0: null).
///
/// Bytes, because NumPy lets a bool array hold any byte, and a Rust `bool` other than 0 and 1 is undefined behaviour.
type ArrowColumn<'py> = (PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, i64>, Option<PyReadonlyArray1<'py, u8>>);

/// A few megabytes of texts and their locations, or a part of them; see `wordpiece::files::TextBlock`.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct TextBlock {
    pub block: Arc<files::TextBlock>,
    /// The texts that this object has.
    texts: Range<usize>,
}

impl TextBlock {
    fn new(block: files::TextBlock) -> TextBlock {
        TextBlock { texts: 0..block.len(), block: Arc::new(block) }
    }

    /// Returns the texts, borrowed.
    pub fn inputs(&self) -> Vec<Input<'_>> {
        let mut inputs = self.block.inputs();
        inputs.truncate(self.texts.end);
        inputs.drain(..self.texts.start);
        inputs
    }

    /// Gives an error that has the index of a text its location.
    pub fn locate(&self, error: Error) -> Error {
        match error {
            Error::AtIndex { index, error } => error.at_location(self.block.location(self.texts.start + index)),
            error => error,
        }
    }

    /// Returns the number of bytes of each text, or of both texts of a pair.
    fn text_bytes(&self) -> Vec<usize> {
        self.inputs().iter().map(Input::len).collect()
    }
}

#[pymethods]
impl TextBlock {
    /// Copy the strings of one Arrow column, or of two columns as pairs. `name` and `first_row` are for messages.
    #[staticmethod]
    fn from_arrow(
        py: Python<'_>,
        name: Utf8<'_>,
        first_row: u64,
        columns: &Bound<'_, PyAny>,
        errors: Utf8<'_>,
    ) -> PyResult<TextBlock> {
        guarded(|| {
            numpy_api::ready(py)?;
            let columns: Vec<ArrowColumn<'_>> = columns.extract()?;
            let mut borrowed = Vec::new();
            for (data, ends, valid) in &columns {
                let is_valid = |valid: &[u8]| valid.iter().map(|&byte| byte != 0).collect::<Vec<bool>>();
                let valid = valid.as_ref().map(|valid| valid.as_slice().map(is_valid)).transpose()?;
                borrowed.push((data.as_slice()?, ends.as_slice()?, valid));
            }
            let borrowed: Vec<_> =
                borrowed.iter().map(|(data, ends, valid)| (*data, *ends, valid.as_deref())).collect();
            let on_error = on_error(&errors)?;
            let block =
                py.detach(|| files::TextBlock::from_arrow(&name, first_row, &borrowed, on_error)).map_err(to_py)?;
            Ok(TextBlock::new(block))
        })
    }

    /// Return the number of texts.
    fn __len__(&self) -> usize {
        self.texts.len()
    }

    /// The number of bytes of all texts.
    #[getter]
    fn bytes(&self) -> usize {
        self.text_bytes().iter().sum()
    }

    /// Divide the texts into parts whose rows have about `max_tokens` tokens at most; a part has at least one text.
    ///
    /// A text counts as one token for each byte, times `copies`, but no less than `min_tokens`.
    fn parts(&self, min_tokens: usize, copies: usize, max_tokens: usize) -> Vec<TextBlock> {
        let mut parts = Vec::new();
        let (mut start, mut tokens) = (self.texts.start, 0_usize);
        for (i, bytes) in self.texts.clone().zip(self.text_bytes()) {
            let more = bytes.saturating_mul(copies).max(min_tokens);
            if i > start && tokens.saturating_add(more) > max_tokens {
                parts.push(TextBlock { block: Arc::clone(&self.block), texts: start..i });
                (start, tokens) = (i, 0);
            }
            tokens = tokens.saturating_add(more);
        }
        if start < self.texts.end {
            parts.push(TextBlock { block: Arc::clone(&self.block), texts: start..self.texts.end });
        }
        parts
    }

    /// The number of bytes of all files that the texts up to the end of the block have taken.
    #[getter]
    fn bytes_read(&self) -> u64 {
        self.block.bytes_read()
    }

    /// The number of texts that were skipped since the previous block.
    #[getter]
    fn skipped_count(&self) -> usize {
        self.block.skipped_count()
    }

    /// What is wrong with the first of them, with their locations.
    #[getter]
    fn skipped(&self) -> Vec<String> {
        self.block.skipped().to_vec()
    }

    /// Return the location of a text for messages: ``a.txt line 3``.
    fn location(&self, i: usize) -> PyResult<String> {
        if i >= self.texts.len() {
            return Err(error::input(format!("text {i} of a block of {}", self.texts.len())));
        }
        Ok(self.block.location(self.texts.start + i))
    }

    /// Return a list of the texts as str, or of pairs and rows of several texts as tuples.
    fn texts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let text = |text: &str| PyString::new(py, text);
        let (start, n) = (self.texts.start, self.texts.len());
        let first = self.block.texts().skip(start).take(n);
        if self.block.second_texts().len() == 0 {
            return PyList::new(py, first.map(text).collect::<Vec<_>>());
        }
        let row = |(i, first)| {
            let row: Vec<_> = iter::once(first).chain(self.block.other_texts(start + i)).map(text).collect();
            PyTuple::new(py, row)
        };
        PyList::new(py, first.enumerate().map(row).collect::<PyResult<Vec<_>>>()?)
    }

    /// Return the UTF-8 bytes of the texts, one after the other, and the number of bytes of each; of pairs, the first.
    fn utf8<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyArray1<i64>>)> {
        numpy_api::ready(py)?;
        let mut bytes = Vec::new();
        let mut lengths = Vec::with_capacity(self.texts.len());
        for text in self.block.texts().skip(self.texts.start).take(self.texts.len()) {
            bytes.extend_from_slice(text.as_bytes());
            lengths.push(text.len() as i64);
        }
        Ok((PyBytes::new(py, &bytes), lengths.into_pyarray(py)))
    }

    /// Encode the texts into flat arrays, as `Tokenizer.encode_batch` does. An error has the location of its text.
    fn encode(
        &self,
        py: Python<'_>,
        tokenizer: &Tokenizer,
        options: &Options,
        columns: Vec<Utf8String>,
        threads: Option<Threads>,
    ) -> PyResult<Rows> {
        guarded(|| {
            let columns = batch::columns(&columns)?;
            let rows = detached(py, || {
                let inputs = self.inputs();
                let pool = threads::pool_for_texts(threads, &inputs);
                tokenizer.core.encode_batch::<u32>(&inputs, &options.core, &columns, pool)
            })?;
            Rows::new(py, rows.map_err(|error| to_py(self.locate(error)))?, &columns, false)
        })
    }
}
