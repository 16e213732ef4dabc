//! Building token stores.

use std::sync::Arc;

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wordpiece::pretraining::store::{self, Position, StoreCounts, StoreOptions, StorePart};
use wordpiece::pretraining::{DocumentRule, SentenceSplitter};

use super::slot::Slot;
use crate::error::{self, guarded};
use crate::text::{Utf8, Utf8String};
use crate::threads::{self, Threads};
use crate::tokenizer::TextBlock;
use crate::tokenizer::Tokenizer;

/// Ids from here on do not fit 16 bits.
const NARROW_IDS: u32 = 1 << 16;

/// Makes the arrays of a token store of blocks of texts.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct TokenStoreBuilder {
    builder: Slot<store::StoreBuilder>,
    tokenizer: Arc<wordpiece::Tokenizer>,
    threads: Option<Threads>,
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

/// Reads a position as [`position_dict`] returns it.
fn position_of(dict: &Bound<'_, PyDict>) -> PyResult<Position> {
    let whole = |dict: &Bound<'_, PyAny>, name: &str| dict.get_item(name)?.extract::<u64>();
    let counts = dict.as_any().get_item("counts")?;
    let count = |name: &str| whole(&counts, name);
    Ok(Position {
        input: whole(dict, "input")? as usize,
        documents: whole(dict, "documents")?,
        counts: StoreCounts {
            documents: count("documents")?,
            documents_empty: count("documents_empty")?,
            sentences: count("sentences")?,
            sentences_empty: count("sentences_empty")?,
            tokens: count("tokens")?,
            skipped: count("skipped")?,
            bytes: count("bytes")?,
        },
    })
}

fn position_dict(py: Python<'_>, position: Position) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("input", position.input)?;
    dict.set_item("documents", position.documents)?;
    dict.set_item("counts", counts_dict(py, position.counts)?)?;
    Ok(dict)
}

#[pymethods]
impl TokenStoreBuilder {
    /// Begin with the first document.
    ///
    /// `file_numbers` has the number of each input in the whole list of files, from which document ids derive.
    #[new]
    #[pyo3(signature = (tokenizer, *, file_numbers, documents, split, abbreviations, dtype, shard_tokens,
        threads))]
    #[allow(clippy::too_many_arguments, reason = "a Python signature: options by name")]
    fn new(
        tokenizer: &Tokenizer,
        file_numbers: Vec<u64>,
        documents: Utf8<'_>,
        split: bool,
        abbreviations: Option<Vec<Utf8String>>,
        dtype: Option<Utf8<'_>>,
        shard_tokens: u64,
        threads: Option<Threads>,
    ) -> PyResult<TokenStoreBuilder> {
        guarded(|| {
            let documents = match &*documents {
                "blank-line" => DocumentRule::BlankLine,
                "line" => DocumentRule::Line,
                "file" => DocumentRule::File,
                "value" => DocumentRule::Value,
                _ => {
                    let message = format!("documents must be 'blank-line', 'line' or 'file', not {:?}", &*documents);
                    return Err(error::input(message));
                }
            };
            let definition = tokenizer.definition();
            let added = definition.registered_tokens().into_iter().map(|(id, _)| id).max();
            let largest = definition.vocab.max_id().max(added).unwrap_or(0);
            let dtype = match dtype.as_deref() {
                None | Some("uint16") if largest < NARROW_IDS => "uint16",
                None | Some("uint32") => "uint32",
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
                Some(list) => SentenceSplitter::new(list.iter().map(|text| &**text)),
                None => SentenceSplitter::default(),
            });
            let options = StoreOptions { file_numbers, documents, splitter, shard_tokens };
            let builder = Slot::new(store::StoreBuilder::new(options));
            Ok(TokenStoreBuilder { builder, tokenizer: Arc::clone(&tokenizer.core), threads, dtype })
        })
    }

    /// Begin with the document after a shard: at a position that an earlier builder has returned with its end.
    fn resume(&self, py: Python<'_>, position: &Bound<'_, PyDict>) -> PyResult<()> {
        guarded(|| {
            let position = position_of(position)?;
            self.builder.call(py, |builder| {
                builder.resume(position);
                Ok(())
            })
        })
    }

    /// What was counted so far.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = self.builder.call(py, |builder| Ok(builder.counts()))?;
        counts_dict(py, counts)
    }

    /// Add the texts of a block, in the order of the inputs; return what the open shard gets, and each one after it.
    ///
    /// File 0 of a block is the input where the builder began, and the others follow it. `input_index` is the input of
    /// a block that was made of a column. `ids` are the ids of its documents.
    #[pyo3(signature = (block, *, input_index=None, ids=None))]
    fn add<'py>(
        &self,
        py: Python<'py>,
        block: &TextBlock,
        input_index: Option<usize>,
        ids: Option<PyReadonlyArray1<'_, u64>>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        guarded(|| {
            let ids = ids.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
            let pool = threads::pool_for_bytes(self.threads, block.block.bytes());
            let parts =
                self.builder.call(py, |builder| builder.add(&block.block, input_index, ids, &self.tokenizer, pool))?;
            self.arrays(py, parts)
        })
    }

    /// End the last document; return what the last shard gets.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        guarded(|| {
            let parts = self.builder.call(py, |builder| builder.finish(&self.tokenizer))?;
            self.arrays(py, parts)
        })
    }
}

impl TokenStoreBuilder {
    /// Returns the arrays of parts by the names of their files, and the position after a shard that is complete.
    fn arrays<'py>(&self, py: Python<'py>, parts: Vec<StorePart>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut list = Vec::new();
        for part in parts {
            let dict = PyDict::new(py);
            if self.dtype == "uint16" {
                let ids: Vec<u16> = py.detach(|| part.ids.iter().map(|&id| id as u16).collect());
                dict.set_item("ids", ids.into_pyarray(py))?;
            } else {
                dict.set_item("ids", part.ids.into_pyarray(py))?;
            }
            dict.set_item("sentence_offsets", part.sentence_ends.into_pyarray(py))?;
            dict.set_item("document_offsets", part.document_ends.into_pyarray(py))?;
            dict.set_item("document_ids", part.document_ids.into_pyarray(py))?;
            dict.set_item("next", part.next.map(|next| position_dict(py, next)).transpose()?)?;
            list.push(dict);
        }
        Ok(list)
    }
}
