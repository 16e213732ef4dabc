//! Building token stores.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wordpiece::pretraining::store::{self, StoreCounts, StoreOptions};
use wordpiece::pretraining::{DocumentRule, SentenceSplitter};

use crate::error::{self, guarded, to_py};
use crate::files::TextBlock;
use crate::interrupt::detached;
use crate::threads;
use crate::tokenizer::Tokenizer;

/// Ids from here on do not fit 16 bits.
const NARROW_IDS: u32 = 1 << 16;

/// Builds a token store from blocks of texts; it resumes where an earlier run of the same call was killed.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct TokenStoreWriter {
    writer: Mutex<store::TokenStoreWriter>,
    tokenizer: Arc<wordpiece::Tokenizer>,
    threads: Option<usize>,
    #[pyo3(get)]
    dtype: &'static str,
}

/// Returns the counts of a store by name, in the order of its index.
fn counts_dict(py: Python<'_>, counts: StoreCounts) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("documents", counts.documents)?;
    dict.set_item("documents_empty", counts.documents_empty)?;
    dict.set_item("sentences", counts.sentences)?;
    dict.set_item("sentences_empty", counts.sentences_empty)?;
    dict.set_item("tokens", counts.tokens)?;
    dict.set_item("skipped", counts.skipped)?;
    dict.set_item("bytes", counts.bytes)?;
    Ok(dict)
}

#[pymethods]
impl TokenStoreWriter {
    /// Begin or resume a store in a folder.
    ///
    /// `options` is the JSON object that the index records; a run that was begun with another one is refused.
    /// `file_numbers` has the number of each input in the whole list of files, from which document ids derive.
    #[new]
    #[pyo3(signature = (tokenizer, folder, *, fingerprint, vocab_size, options, file_numbers, documents, split,
        abbreviations, dtype, shard_tokens, threads))]
    #[allow(clippy::too_many_arguments, reason = "a Python signature: options by name")]
    fn new(
        py: Python<'_>,
        tokenizer: &Tokenizer,
        folder: PathBuf,
        fingerprint: String,
        vocab_size: usize,
        options: String,
        file_numbers: Vec<u64>,
        documents: &str,
        split: bool,
        abbreviations: Option<Vec<String>>,
        dtype: Option<&str>,
        shard_tokens: u64,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TokenStoreWriter> {
        guarded(|| {
            let documents = match documents {
                "blank-line" => DocumentRule::BlankLine,
                "line" => DocumentRule::Line,
                "file" => DocumentRule::File,
                "value" => DocumentRule::Value,
                _ => {
                    let message = format!("documents must be 'blank-line', 'line' or 'file', not {documents:?}");
                    return Err(error::input(message));
                }
            };
            let definition = tokenizer.definition();
            let added = definition.registered_tokens().into_iter().map(|(id, _)| id).max();
            let largest = definition.vocab.max_id().max(added).unwrap_or(0);
            let narrow = match dtype {
                None => largest < NARROW_IDS,
                Some("uint32") => false,
                Some("uint16") if largest < NARROW_IDS => true,
                Some("uint16") => {
                    return Err(error::input(format!(
                        "dtype 'uint16' holds ids up to 65535, but the tokenizer's go up to {largest}: use dtype='uint32'"
                    )));
                }
                Some(other) => {
                    return Err(error::input(format!("dtype must be 'uint16', 'uint32' or None, not {other:?}")));
                }
            };
            let splitter = split.then(|| match &abbreviations {
                Some(list) => SentenceSplitter::new(list.iter().map(String::as_str)),
                None => SentenceSplitter::default(),
            });
            let threads = threads::checked("threads", threads)?;
            let options = StoreOptions {
                fingerprint,
                vocab_size,
                recorded: options,
                file_numbers,
                documents,
                splitter,
                narrow,
                shard_tokens,
            };
            let writer = py.detach(|| store::TokenStoreWriter::new(&folder, options)).map_err(to_py)?;
            let tokenizer = Arc::clone(&tokenizer.core);
            let dtype = if narrow { "uint16" } else { "uint32" };
            Ok(TokenStoreWriter { writer: Mutex::new(writer), tokenizer, threads, dtype })
        })
    }

    /// Whether the store is complete, so that nothing is to be added.
    #[getter]
    fn finished(&self, py: Python<'_>) -> bool {
        py.detach(|| self.lock().is_finished())
    }

    /// The index of the first input whose texts are to be added.
    #[getter]
    fn first_input(&self, py: Python<'_>) -> usize {
        py.detach(|| self.lock().first_input())
    }

    /// What was counted so far.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = py.detach(|| self.lock().counts());
        counts_dict(py, counts)
    }

    /// Add the texts of a block, in the order of the inputs.
    ///
    /// The files of a block are the inputs from `first_input` on; `input_index` is that of a block that was
    /// made of a column. `ids` are those of its documents.
    #[pyo3(signature = (block, *, input_index=None, ids=None))]
    fn add(
        &self,
        py: Python<'_>,
        block: &TextBlock,
        input_index: Option<usize>,
        ids: Option<PyReadonlyArray1<'_, u64>>,
    ) -> PyResult<()> {
        guarded(|| {
            let ids = ids.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
            let pool = threads::pool_for_bytes(self.threads, block.block.bytes());
            let added = detached(py, || self.lock().add(&block.block, input_index, ids, &self.tokenizer, pool))?;
            added.map_err(to_py)
        })
    }

    /// Complete the store and return what it has.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| {
            let counts = detached(py, || self.lock().finish(&self.tokenizer))?;
            counts_dict(py, counts.map_err(to_py)?)
        })
    }
}

impl TokenStoreWriter {
    /// A call that was interrupted leaves a writer that refuses further ones, so a poisoned lock is no concern.
    ///
    /// Only without the interpreter: a call that holds the lock asks for it now and then, to hear signals.
    fn lock(&self) -> std::sync::MutexGuard<'_, store::TokenStoreWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
