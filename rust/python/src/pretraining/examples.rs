//! Making rows of a token store, and writing them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use wordpiece::pretraining::formats::{
    MdsLayout, MdsShard, MdsWriter as CoreMdsWriter, NpyExampleLayout, NpyExampleWriter as CoreNpyWriter,
    TfrecordEncoder as CoreTfrecordEncoder,
};
use wordpiece::pretraining::masking::Masking;
use wordpiece::pretraining::rows::{
    ExampleBuilder as CoreBuilder, Objective, Packing, RowBlock, RowOptions, StoreShard,
};

use super::masking::MaskingRules;
use super::numbers::{Numbers, readonly};
use crate::error::{self, guarded, to_py};
use crate::interrupt::detached;
use crate::threads;

/// Makes the rows of one pass over one shard of a token store, block by block.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct ExampleBuilder {
    builder: Mutex<CoreBuilder>,
    ids: Numbers,
    sentence_offsets: Py<PyArray1<i64>>,
    document_offsets: Py<PyArray1<i64>>,
    document_ids: Py<PyArray1<u64>>,
    masking: Option<Arc<Masking>>,
    threads: Option<usize>,
}

/// Returns the objective of a name.
fn objective_of(name: &str) -> PyResult<Objective> {
    Ok(match name {
        "nsp" => Objective::Nsp,
        "sop" => Objective::Sop,
        "full-sentences" => Objective::FullSentences,
        "doc-sentences" => Objective::DocSentences,
        "blocks" => Objective::Blocks,
        "text" => Objective::Text,
        _ => {
            return Err(error::input(format!(
                "objective must be 'nsp', 'sop', 'full-sentences', 'doc-sentences', 'blocks' or 'text', not {name:?}"
            )));
        }
    })
}

#[pymethods]
impl ExampleBuilder {
    /// Begin with the first row. The arrays are those of a shard, usually memory maps; they are kept, not copied.
    ///
    /// `packing` is the length of packed rows, the window and the most sequences in a row. With `masking`, masks are
    /// static: they depend on the seed, the pass, and the document and number of each row.
    #[new]
    #[pyo3(signature = (ids, sentence_offsets, document_offsets, document_ids, *, objective, max_length, short_seq_prob,
        min_sentences, seed, pass_number, cls_id, sep_id, packing, masking, threads))]
    #[allow(clippy::too_many_arguments, reason = "a Python signature: options by name")]
    fn new(
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        sentence_offsets: Bound<'_, PyArray1<i64>>,
        document_offsets: Bound<'_, PyArray1<i64>>,
        document_ids: Bound<'_, PyArray1<u64>>,
        objective: &str,
        max_length: usize,
        short_seq_prob: f64,
        min_sentences: usize,
        seed: u64,
        pass_number: u64,
        cls_id: u32,
        sep_id: u32,
        packing: Option<(usize, usize, Option<usize>)>,
        masking: Option<&MaskingRules>,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<ExampleBuilder> {
        guarded(|| {
            let objective = objective_of(objective)?;
            let least = if matches!(objective, Objective::Nsp | Objective::Sop) { 5 } else { 3 };
            if max_length < least {
                return Err(error::input(format!("max_length is {max_length}, but rows need at least {least} tokens")));
            }
            if let Some((length, window, most)) = packing
                && (length < max_length || window == 0 || most == Some(0))
            {
                return Err(error::input(format!(
                    "rows of {length} tokens, a window of {window} and at most {most:?} sequences cannot be packed"
                )));
            }
            let options = RowOptions {
                objective,
                max_length,
                short_seq_prob,
                min_sentences,
                seed,
                pass: pass_number,
                cls_id,
                sep_id,
            };
            let packing = packing.map(|(length, window, max_sequences)| Packing { length, window, max_sequences });
            let builder = ExampleBuilder {
                builder: Mutex::new(CoreBuilder::new(options, packing)),
                ids: Numbers::new("ids", ids)?,
                sentence_offsets: sentence_offsets.unbind(),
                document_offsets: document_offsets.unbind(),
                document_ids: document_ids.unbind(),
                masking: masking.map(|rules| Arc::clone(&rules.core)),
                threads: threads::checked("threads", threads)?,
            };
            builder.with_arrays(py, |ids, sentences, documents, document_ids| {
                StoreShard::new(ids, sentences, documents, document_ids).map(drop).map_err(to_py)
            })??;
            Ok(builder)
        })
    }

    /// Return the next rows, or None at the end.
    fn next_block(&self, py: Python<'_>) -> PyResult<Option<ExampleBlock>> {
        guarded(|| {
            let pool = threads::pool(self.threads);
            let block = self.with_arrays(py, |ids, sentences, documents, document_ids| {
                let shard = StoreShard::checked_before(ids, sentences, documents, document_ids);
                self.lock().next_block(&shard, self.masking.as_deref(), pool)
            })?;
            Ok(block.map(|block| ExampleBlock { block }))
        })
    }

    /// What was counted in all blocks so far, by the names of the report.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = py.detach(|| self.lock().counts());
        let dict = PyDict::new(py);
        dict.set_item("short_targets", counts.short_targets)?;
        dict.set_item("lone_sentences", counts.lone_sentences)?;
        dict.set_item("rows_dropped", counts.rows_dropped)?;
        dict.set_item("tokens_cut", counts.tokens_cut)?;
        dict.set_item("truncated", counts.truncated)?;
        dict.set_item("sentences_divided", counts.sentences_divided)?;
        dict.set_item("candidates", counts.masks.candidates)?;
        dict.set_item("masked", counts.masks.masked)?;
        dict.set_item("random", counts.masks.random)?;
        dict.set_item("kept", counts.masks.kept)?;
        dict.set_item("capped", counts.masks.capped)?;
        Ok(dict)
    }
}

impl ExampleBuilder {
    /// Only without the interpreter, as in `TokenStoreWriter::lock`.
    fn lock(&self) -> std::sync::MutexGuard<'_, CoreBuilder> {
        self.builder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the borrowed arrays, without the interpreter.
    fn with_arrays<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(wordpiece::pretraining::collate::Column<'_>, &[i64], &[i64], &[u64]) -> T + Send,
    ) -> PyResult<T> {
        let ids = self.ids.read(py)?;
        let sentences = readonly(py, &self.sentence_offsets)?;
        let documents = readonly(py, &self.document_offsets)?;
        let document_ids = readonly(py, &self.document_ids)?;
        let (ids, sentences) = (ids.column()?, sentences.as_slice()?);
        let (documents, document_ids) = (documents.as_slice()?, document_ids.as_slice()?);
        detached(py, || work(ids, sentences, documents, document_ids))
    }
}

/// Some rows.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct ExampleBlock {
    block: RowBlock,
}

/// Returns 0 and then the ends of some lists.
fn offsets(ends: &[u64]) -> Vec<i64> {
    std::iter::once(0).chain(ends.iter().map(|&end| end as i64)).collect()
}

#[pymethods]
impl ExampleBlock {
    /// Return the number of rows.
    fn __len__(&self) -> usize {
        self.block.len()
    }

    /// Return the lengths of the rows in tokens.
    fn lengths<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        (0..self.block.len()).map(|i| self.block.row(i).len() as i64).collect::<Vec<_>>().into_pyarray(py)
    }

    /// The number of sequences: that of rows, unless they are packed.
    #[getter]
    fn sequences(&self) -> usize {
        self.block.sequence_lengths.len()
    }

    /// Return the labels of pairs; empty if rows are no pairs.
    fn pair_labels<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        self.block.pair_labels.clone().into_pyarray(py)
    }

    /// Return all columns of the rows by name, as flat arrays: what row formats have, and the identity of each row.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| {
            let block = &self.block;
            let dict = PyDict::new(py);
            let ids = py.detach(|| block.ids.iter().map(|&id| id as i32).collect::<Vec<_>>());
            dict.set_item("input_ids", ids.into_pyarray(py))?;
            dict.set_item("row_offsets", offsets(&block.row_ends).into_pyarray(py))?;
            dict.set_item("token_type_ids", py.detach(|| block.token_type_ids()).into_pyarray(py))?;
            dict.set_item("second_starts", block.second_starts.clone().into_pyarray(py))?;
            if !block.pair_labels.is_empty() {
                let labels = block.pair_labels.iter().map(|&label| label as i8).collect::<Vec<_>>();
                dict.set_item("pair_labels", labels.into_pyarray(py))?;
            }
            if !block.mask_ends.is_empty() {
                dict.set_item("labels", py.detach(|| block.labels()).into_pyarray(py))?;
            }
            if !block.sequence_ends.is_empty() {
                dict.set_item("position_ids", py.detach(|| block.position_ids()).into_pyarray(py))?;
                let bounds = (0..block.len()).flat_map(|i| block.cu_seqlens(i)).collect::<Vec<_>>();
                dict.set_item("cu_seqlens", bounds.into_pyarray(py))?;
                dict.set_item("sequence_offsets", offsets(&block.sequence_ends).into_pyarray(py))?;
            }
            let (documents, ordinals): (Vec<u64>, Vec<u64>) = block.identities.iter().copied().unzip();
            dict.set_item("document_ids", documents.into_pyarray(py))?;
            dict.set_item("ordinals", ordinals.into_pyarray(py))?;
            Ok(dict)
        })
    }
}

/// A writer that a call takes out when it finishes it, or that an interruption has left half-way.
struct Slot<T>(Mutex<Option<T>>);

impl<T: Send> Slot<T> {
    fn new(writer: T) -> Slot<T> {
        Slot(Mutex::new(Some(writer)))
    }

    fn take(&self) -> PyResult<T> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| error::input("this writer has failed or finished before".to_owned()))
    }

    /// Calls `write` with the writer, which is of no use after an error.
    fn write(&self, py: Python<'_>, write: impl FnOnce(&mut T) -> wordpiece::Result<()> + Send) -> PyResult<()> {
        let mut writer = self.take()?;
        detached(py, || write(&mut writer))?.map_err(to_py)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        Ok(())
    }
}

/// Writes the rows of one pass over one shard as arrays to be memory-mapped.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct NpyExampleWriter(Slot<CoreNpyWriter>);

#[pymethods]
impl NpyExampleWriter {
    /// Create the files ``<prefix>.input_ids.npy`` and so on in a folder.
    #[new]
    #[pyo3(signature = (folder, prefix, *, narrow_ids, narrow_places, pairs, masks, packed))]
    fn new(
        folder: PathBuf,
        prefix: &str,
        narrow_ids: bool,
        narrow_places: bool,
        pairs: bool,
        masks: bool,
        packed: bool,
    ) -> PyResult<NpyExampleWriter> {
        guarded(|| {
            let layout = NpyExampleLayout { narrow_ids, narrow_places, pairs, masks, packed };
            Ok(NpyExampleWriter(Slot::new(CoreNpyWriter::new(&folder, prefix, layout).map_err(to_py)?)))
        })
    }

    /// Append rows.
    fn write(&self, py: Python<'_>, block: &ExampleBlock) -> PyResult<()> {
        guarded(|| self.0.write(py, |writer| writer.write(&block.block)))
    }

    /// Complete the files; return what each holds with its name, size in bytes and CRC-32.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let writer = self.0.take()?;
            let files = detached(py, || writer.finish())?.map_err(to_py)?;
            let entry = |(what, file): (&'static str, wordpiece::pretraining::FileEntry)| {
                (what, file.name, file.bytes, format!("{:08x}", file.crc32))
            };
            PyList::new(py, files.into_iter().map(entry).collect::<Vec<_>>())
        })
    }
}

/// Writes rows as the shards of a folder that mosaicml-streaming reads.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct MdsWriter(Slot<CoreMdsWriter>);

#[pymethods]
impl MdsWriter {
    /// Begin the shards of a folder, which must exist, or resume after `shards`, the samples and bytes of those that are
    /// complete. `pair_label` is the name of the column of labels of pairs.
    #[new]
    #[pyo3(signature = (folder, *, narrow_ids, pair_label, masks, packed, size_limit, shards))]
    fn new(
        folder: PathBuf,
        narrow_ids: bool,
        pair_label: Option<String>,
        masks: bool,
        packed: bool,
        size_limit: usize,
        shards: Vec<(u64, u64)>,
    ) -> MdsWriter {
        let layout = MdsLayout { narrow_ids, pair_label, masks, packed, size_limit };
        let shards = shards.into_iter().map(|(samples, bytes)| MdsShard { samples, bytes }).collect();
        MdsWriter(Slot::new(CoreMdsWriter::new(&folder, layout, shards)))
    }

    /// Append the rows of a block from row `first` on; return the samples and bytes of the shards that are complete.
    fn write(&self, py: Python<'_>, block: &ExampleBlock, first: usize) -> PyResult<Vec<(u64, u64)>> {
        guarded(|| {
            let mut shards = Vec::new();
            self.0.write(py, |writer| {
                writer.write(&block.block, first)?;
                shards.extend(writer.shards().iter().map(|shard| (shard.samples, shard.bytes)));
                Ok(())
            })?;
            Ok(shards)
        })
    }

    /// Complete the folder; return the number of shards.
    fn finish(&self, py: Python<'_>) -> PyResult<usize> {
        guarded(|| {
            let writer = self.0.take()?;
            detached(py, || writer.finish())?.map_err(to_py)
        })
    }
}

/// Encodes rows with static masks as TFRecords with the features of the original BERT.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct TfrecordEncoder(Mutex<CoreTfrecordEncoder>);

#[pymethods]
impl TfrecordEncoder {
    /// Create an encoder of rows that are padded to `length` tokens and `max_predictions` masks.
    #[new]
    fn new(length: usize, max_predictions: usize) -> TfrecordEncoder {
        TfrecordEncoder(Mutex::new(CoreTfrecordEncoder::new(length, max_predictions)))
    }

    /// Return the records of a block from row `first` on.
    fn encode<'py>(&self, py: Python<'py>, block: &ExampleBlock, first: usize) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| {
            let bytes = detached(py, || {
                let mut bytes = Vec::new();
                let mut encoder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                encoder.encode(&block.block, first, &mut bytes);
                bytes
            })?;
            Ok(PyBytes::new(py, &bytes))
        })
    }
}

/// Return the sequences of each row, for sequences of these lengths; see the packing of rows.
#[pyfunction]
pub fn pack_sequences(lengths: Vec<u32>, room: usize, max_sequences: Option<usize>) -> PyResult<Vec<Vec<usize>>> {
    guarded(|| {
        if let Some(longest) = lengths.iter().max().filter(|&&longest| longest as usize > room) {
            return Err(error::input(format!("a sequence of {longest} tokens does not fit a row of {room}")));
        }
        Ok(wordpiece::pretraining::pack(&lengths, room, max_sequences))
    })
}

/// Return the sentences of a line, cut by the rule of `sentences="split"`.
#[pyfunction]
pub fn split_sentences(line: &str, abbreviations: Option<Vec<String>>) -> Vec<String> {
    let splitter = match &abbreviations {
        Some(list) => wordpiece::pretraining::SentenceSplitter::new(list.iter().map(String::as_str)),
        None => wordpiece::pretraining::SentenceSplitter::default(),
    };
    splitter.split(line).map(str::to_owned).collect()
}
