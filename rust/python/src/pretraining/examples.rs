//! Making rows of a token store, and encoding them.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wordpiece::pretraining::formats::{
    MdsEncoder as CoreMdsEncoder, MdsLayout, MdsShard, TfrecordEncoder as CoreTfrecordEncoder,
};
use wordpiece::pretraining::masking::Masking;
use wordpiece::pretraining::rows::{
    ExampleBuilder as CoreBuilder, Objective, Packing, RowBlock, RowOptions, StoreShard,
};

use super::mapped::MappedFiles;
use super::masking::MaskingRules;
use super::numbers::{Numbers, readonly};
use super::slot::Slot;
use crate::error::{self, guarded, to_py};
use crate::interrupt::detached;
use crate::text::{Fields, Utf8, Utf8String};
use crate::threads::{self, Threads};

/// Makes the rows of one pass over one shard of a token store, block by block.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct ExampleBuilder {
    builder: Slot<CoreBuilder>,
    ids: Numbers,
    sentence_offsets: Py<PyArray1<i64>>,
    document_offsets: Py<PyArray1<i64>>,
    document_ids: Py<PyArray1<u64>>,
    files: MappedFiles,
    masking: Option<Arc<Masking>>,
    threads: Option<Threads>,
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

/// The options of rows, by the names of the attributes of `wordpiece_bert.pretraining.row_options.RowOptions`.
#[derive(FromPyObject)]
struct RowFields {
    objective: Utf8String,
    max_length: usize,
    short_seq_prob: f64,
    min_sentences: usize,
    seed: u64,
    cls_id: u32,
    sep_id: u32,
    /// The length of packed rows.
    packing: Option<usize>,
    packing_window: usize,
    max_sequences_per_row: Option<usize>,
}

impl RowFields {
    fn core(self, pass: u64) -> PyResult<(RowOptions, Option<Packing>)> {
        let RowFields { max_length, short_seq_prob, min_sentences, seed, cls_id, sep_id, .. } = self;
        let objective = objective_of(&self.objective)?;
        let least = if matches!(objective, Objective::Nsp | Objective::Sop) { 5 } else { 3 };
        if max_length < least {
            return Err(error::input(format!("max_length is {max_length}, but rows need at least {least} tokens")));
        }
        let (window, max_sequences) = (self.packing_window, self.max_sequences_per_row);
        let packing = self.packing.map(|length| Packing { length, window, max_sequences });
        if let Some(Packing { length, .. }) = packing
            && (length < max_length || window == 0 || max_sequences == Some(0))
        {
            return Err(error::input(format!(
                "rows of {length} tokens, a window of {window} and at most {max_sequences:?} sequences cannot be packed"
            )));
        }
        let options = RowOptions { objective, max_length, short_seq_prob, min_sentences, seed, pass, cls_id, sep_id };
        Ok((options, packing))
    }
}

#[pymethods]
impl ExampleBuilder {
    /// Begin with the first row. The arrays are the arrays of a shard, usually memory maps; they are kept, not copied.
    ///
    /// With `masking`, masks are static: they depend on the seed, the pass, and the document and number of each row.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "a Python signature: four arrays")]
    fn new(
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        sentence_offsets: Bound<'_, PyArray1<i64>>,
        document_offsets: Bound<'_, PyArray1<i64>>,
        document_ids: Bound<'_, PyArray1<u64>>,
        options: Fields<RowFields>,
        pass_number: u64,
        masking: Option<&MaskingRules>,
        threads: Option<Threads>,
    ) -> PyResult<ExampleBuilder> {
        guarded(|| {
            let (options, packing) = options.0.core(pass_number)?;
            let arrays = [ids, sentence_offsets.as_any(), document_offsets.as_any(), document_ids.as_any()];
            let builder = ExampleBuilder {
                files: MappedFiles::of(py, &arrays.map(Bound::clone))?,
                builder: Slot::new(CoreBuilder::new(options, packing)),
                ids: Numbers::new("ids", ids)?,
                sentence_offsets: sentence_offsets.unbind(),
                document_offsets: document_offsets.unbind(),
                document_ids: document_ids.unbind(),
                masking: masking.map(|rules| Arc::clone(&rules.core)),
                threads,
            };
            builder.with_arrays(py, |ids, sentences, documents, document_ids| {
                detached(py, || StoreShard::new(ids, sentences, documents, document_ids).map(drop))?.map_err(to_py)
            })?;
            Ok(builder)
        })
    }

    /// Return the next rows, or None at the end.
    fn next_block(&self, py: Python<'_>) -> PyResult<Option<ExampleBlock>> {
        guarded(|| {
            let pool = threads::pool(self.threads);
            let block = self.with_arrays(py, |ids, sentences, documents, document_ids| {
                let shard = StoreShard::checked_before(ids, sentences, documents, document_ids);
                self.builder.call(py, |builder| Ok(builder.next_block(&shard, self.masking.as_deref(), pool)))
            })?;
            Ok(block.map(|block| ExampleBlock { block }))
        })
    }

    /// What was counted in all blocks so far, by the names of the report.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = self.builder.call(py, |builder| Ok(builder.counts()))?;
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
    /// Calls `work` with the borrowed arrays.
    fn with_arrays<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(wordpiece::pretraining::collate::Column<'_>, &[i64], &[i64], &[u64]) -> PyResult<T>,
    ) -> PyResult<T> {
        self.files.check(py)?;
        let ids = self.ids.read(py)?;
        let sentences = readonly(py, &self.sentence_offsets)?;
        let documents = readonly(py, &self.document_offsets)?;
        let document_ids = readonly(py, &self.document_ids)?;
        let (ids, sentences) = (ids.column()?, sentences.as_slice()?);
        let (documents, document_ids) = (documents.as_slice()?, document_ids.as_slice()?);
        work(ids, sentences, documents, document_ids)
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

    /// The number of sequences: as many as rows, unless these are packed.
    #[getter]
    fn sequences(&self) -> usize {
        self.block.sequence_lengths.len()
    }

    /// Return the labels of pairs; empty if rows are not pairs.
    fn pair_labels<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        self.block.pair_labels.clone().into_pyarray(py)
    }

    /// Return the rows from row `first` on.
    fn rest(&self, py: Python<'_>, first: usize) -> ExampleBlock {
        ExampleBlock { block: py.detach(|| self.block.rest(first)) }
    }

    /// Return the columns of an example folder by name: ids and offsets, and what cannot be derived from them.
    ///
    /// Offsets are without the first one, 0. Ids and places have 16 bits if they are narrow, else 32.
    #[pyo3(signature = (*, narrow_ids, narrow_places))]
    fn stored<'py>(&self, py: Python<'py>, narrow_ids: bool, narrow_places: bool) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| {
            let (block, dict) = (&self.block, PyDict::new(py));
            let numbers = |name: &str, list: &[u32], narrow: bool| match narrow {
                true => {
                    let narrowed: Vec<u16> = py.detach(|| list.iter().map(|&number| number as u16).collect());
                    dict.set_item(name, narrowed.into_pyarray(py))
                }
                false => dict.set_item(name, list.to_vec().into_pyarray(py)),
            };
            let ends = |name: &str, ends: &[u64]| dict.set_item(name, offsets(ends).split_off(1).into_pyarray(py));
            numbers("input_ids", &block.ids, narrow_ids)?;
            ends("row_offsets", &block.row_ends)?;
            numbers("second_starts", &block.second_starts, narrow_places)?;
            dict.set_item("pair_labels", block.pair_labels.clone().into_pyarray(py))?;
            ends("masked_offsets", &block.mask_ends)?;
            numbers("masked_positions", &block.mask_places, narrow_places)?;
            numbers("masked_ids", &block.mask_ids, narrow_ids)?;
            ends("sequence_offsets", &block.sequence_ends)?;
            numbers("sequence_lengths", &block.sequence_lengths, narrow_places)?;
            Ok(dict)
        })
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

/// The number of samples of a shard and the content of its file, in two pieces.
type EncodedShard<'py> = (u64, [Bound<'py, PyArray1<u8>>; 2]);

fn encoded(py: Python<'_>, shard: MdsShard) -> EncodedShard<'_> {
    (shard.samples, shard.content.map(|piece| piece.into_pyarray(py)))
}

/// Encodes rows as shards that mosaicml-streaming reads.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct MdsEncoder(Slot<CoreMdsEncoder>);

#[pymethods]
impl MdsEncoder {
    /// Begin a shard. `pair_label` is the name of the column of labels of pairs.
    #[new]
    #[pyo3(signature = (*, narrow_ids, pair_label, masks, packed, size_limit))]
    fn new(
        narrow_ids: bool,
        pair_label: Option<Utf8String>,
        masks: bool,
        packed: bool,
        size_limit: usize,
    ) -> MdsEncoder {
        MdsEncoder(Slot::new(CoreMdsEncoder::new(MdsLayout {
            narrow_ids,
            pair_label: pair_label.map(|text| text.0),
            masks,
            packed,
            size_limit,
        })))
    }

    /// Append rows; return the number of samples and the content of each shard that has become complete.
    fn encode<'py>(&self, py: Python<'py>, block: &ExampleBlock) -> PyResult<Vec<EncodedShard<'py>>> {
        guarded(|| {
            let shards = self.0.call(py, |encoder| Ok(encoder.encode(&block.block)))?;
            Ok(shards.into_iter().map(|shard| encoded(py, shard)).collect())
        })
    }

    /// Return the last shard; None if there are no rows that are in none.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Option<EncodedShard<'py>>> {
        guarded(|| Ok(self.0.call(py, |encoder| Ok(encoder.finish()))?.map(|shard| encoded(py, shard))))
    }

    /// Return ``index.json`` for shards of these names, samples and sizes in bytes.
    fn index(&self, py: Python<'_>, shards: Vec<(Utf8String, u64, u64)>) -> PyResult<String> {
        let shards: Vec<_> = shards.into_iter().map(|(name, samples, bytes)| (name.0, samples, bytes)).collect();
        guarded(|| self.0.call(py, |encoder| Ok(encoder.index(&shards))))
    }
}

/// Encodes rows with static masks as TFRecords with the features of the original BERT.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct TfrecordEncoder(Slot<CoreTfrecordEncoder>);

#[pymethods]
impl TfrecordEncoder {
    /// Create an encoder of rows that are padded to `length` tokens and `max_predictions` masks.
    #[new]
    fn new(length: usize, max_predictions: usize) -> TfrecordEncoder {
        TfrecordEncoder(Slot::new(CoreTfrecordEncoder::new(length, max_predictions)))
    }

    /// Return the records of rows.
    fn encode<'py>(&self, py: Python<'py>, block: &ExampleBlock) -> PyResult<Bound<'py, PyArray1<u8>>> {
        guarded(|| {
            let bytes = self.0.call(py, |encoder| {
                let mut bytes = Vec::new();
                encoder.encode(&block.block, &mut bytes);
                Ok(bytes)
            })?;
            Ok(bytes.into_pyarray(py))
        })
    }
}

/// Return the sentences of a line, cut by the rule of `sentences="split"`.
#[pyfunction]
pub fn split_sentences(line: Utf8<'_>, abbreviations: Option<Vec<Utf8String>>) -> Vec<String> {
    let splitter = match &abbreviations {
        Some(list) => wordpiece::pretraining::SentenceSplitter::new(list.iter().map(|text| &**text)),
        None => wordpiece::pretraining::SentenceSplitter::default(),
    };
    splitter.split(&line).map(str::to_owned).collect()
}
