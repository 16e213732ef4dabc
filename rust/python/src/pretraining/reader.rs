//! Batches of rows out of memory-mapped examples.

use std::sync::{Mutex, PoisonError};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wordpiece::Error;
use wordpiece::pretraining::collate::{Batch, BatchLayout, Row, Shard};
use wordpiece::pretraining::masking::{EpochKeys, Masking, RowKeys};

use super::mapped::MappedFiles;
use super::masking::{MaskingRules, SCRATCH};
use super::numbers::{Numbers, ReadonlyNumbers, readonly};
use crate::error::{self, guarded, to_py};
use crate::interrupt::detached;

/// The arrays of one pass over one shard of examples. They are kept, not copied.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct ExampleShard {
    ids: Numbers,
    row_offsets: Py<PyArray1<i64>>,
    second_starts: Option<Numbers>,
    pair_labels: Option<Py<PyArray1<u8>>>,
    masks: Option<(Py<PyArray1<i64>>, Numbers, Numbers)>,
    sequences: Option<(Py<PyArray1<i64>>, Numbers)>,
    files: MappedFiles,
}

/// masked_offsets, masked_positions and masked_ids.
type MaskArrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// [`ExampleShard`] while it is read.
struct ReadonlyShard<'py> {
    ids: ReadonlyNumbers<'py>,
    row_offsets: PyReadonlyArray1<'py, i64>,
    second_starts: Option<ReadonlyNumbers<'py>>,
    pair_labels: Option<PyReadonlyArray1<'py, u8>>,
    masks: Option<(PyReadonlyArray1<'py, i64>, ReadonlyNumbers<'py>, ReadonlyNumbers<'py>)>,
    sequences: Option<(PyReadonlyArray1<'py, i64>, ReadonlyNumbers<'py>)>,
}

impl ReadonlyShard<'_> {
    fn shard(&self) -> PyResult<Shard<'_>> {
        Ok(Shard {
            ids: self.ids.column()?,
            row_offsets: self.row_offsets.as_slice()?,
            second_starts: self.second_starts.as_ref().map(ReadonlyNumbers::column).transpose()?,
            pair_labels: self.pair_labels.as_ref().map(PyReadonlyArray1::as_slice).transpose()?,
            masks: match &self.masks {
                Some((offsets, places, ids)) => Some((offsets.as_slice()?, places.column()?, ids.column()?)),
                None => None,
            },
            sequences: match &self.sequences {
                Some((offsets, lengths)) => Some((offsets.as_slice()?, lengths.column()?)),
                None => None,
            },
        })
    }
}

#[pymethods]
impl ExampleShard {
    /// Keep the arrays of a shard; those that its kind of rows does not have are None.
    #[new]
    #[pyo3(signature = (input_ids, row_offsets, *, second_starts=None, pair_labels=None, masks=None, sequences=None))]
    fn new(
        input_ids: &Bound<'_, PyAny>,
        row_offsets: Bound<'_, PyArray1<i64>>,
        second_starts: Option<&Bound<'_, PyAny>>,
        pair_labels: Option<Bound<'_, PyArray1<u8>>>,
        masks: Option<MaskArrays<'_>>,
        sequences: Option<(Bound<'_, PyArray1<i64>>, Bound<'_, PyAny>)>,
    ) -> PyResult<ExampleShard> {
        guarded(|| {
            let mut arrays = vec![input_ids.clone(), row_offsets.clone().into_any()];
            arrays.extend(second_starts.cloned());
            arrays.extend(pair_labels.iter().map(|labels| labels.clone().into_any()));
            if let Some((offsets, places, ids)) = &masks {
                arrays.extend([offsets.clone().into_any(), places.clone(), ids.clone()]);
            }
            if let Some((offsets, lengths)) = &sequences {
                arrays.extend([offsets.clone().into_any(), lengths.clone()]);
            }
            Ok(ExampleShard {
                files: MappedFiles::of(input_ids.py(), &arrays)?,
                ids: Numbers::new("input_ids", input_ids)?,
                row_offsets: row_offsets.unbind(),
                second_starts: second_starts.map(|list| Numbers::new("second_starts", list)).transpose()?,
                pair_labels: pair_labels.map(Bound::unbind),
                masks: match masks {
                    Some((offsets, places, ids)) => Some((
                        offsets.unbind(),
                        Numbers::new("masked_positions", &places)?,
                        Numbers::new("masked_ids", &ids)?,
                    )),
                    None => None,
                },
                sequences: match sequences {
                    Some((offsets, lengths)) => Some((offsets.unbind(), Numbers::new("sequence_lengths", &lengths)?)),
                    None => None,
                },
            })
        })
    }
}

impl ExampleShard {
    fn read<'py>(&self, py: Python<'py>) -> PyResult<ReadonlyShard<'py>> {
        self.files.check(py)?;
        Ok(ReadonlyShard {
            ids: self.ids.read(py)?,
            row_offsets: readonly(py, &self.row_offsets)?,
            second_starts: self.second_starts.as_ref().map(|list| list.read(py)).transpose()?,
            pair_labels: self.pair_labels.as_ref().map(|list| readonly(py, list)).transpose()?,
            masks: match &self.masks {
                Some((offsets, places, ids)) => Some((readonly(py, offsets)?, places.read(py)?, ids.read(py)?)),
                None => None,
            },
            sequences: match &self.sequences {
                Some((offsets, lengths)) => Some((readonly(py, offsets)?, lengths.read(py)?)),
                None => None,
            },
        })
    }
}

/// The rows of all shards as one list, and batches of them.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct ExampleReader {
    /// The number of the first row of each shard, and the number of all rows.
    starts: Vec<u64>,
    /// Called with the number of a shard; returns its arrays.
    load: Py<PyAny>,
    /// The shards that were loaded.
    shards: Mutex<Vec<Option<Py<ExampleShard>>>>,
    pad_id: i64,
}

/// The shard of each row and its number there, and the numbers of these shards, ascending.
type Located = (Vec<(usize, usize)>, Vec<usize>);

impl ExampleReader {
    /// Returns a shard, loaded now if it was not.
    fn shard(&self, py: Python<'_>, number: usize) -> PyResult<Py<ExampleShard>> {
        let lock = || self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shard) = &lock()[number] {
            return Ok(shard.clone_ref(py));
        }
        // Not locked: Python may switch threads here, and two threads may load a shard at once.
        let loaded: Py<ExampleShard> = self.load.call1(py, (number,))?.extract(py)?;
        // What this thread loaded in vain is dropped after the lock is released: closing its memory maps lets other
        // threads run, and one of them would wait for the lock with the interpreter in its hands.
        let shard = lock()[number].get_or_insert_with(|| loaded.clone_ref(py)).clone_ref(py);
        drop(loaded);
        Ok(shard)
    }

    /// Returns the shard of each row and its number there, and the shards by ascending number.
    fn locate(&self, rows: &[i64]) -> PyResult<Located> {
        let total = self.starts.last().copied().unwrap_or(0);
        let mut located = Vec::with_capacity(rows.len());
        for &row in rows {
            let Some(row) = u64::try_from(row).ok().filter(|&row| row < total) else {
                return Err(error::input(format!("index {row} is out of range for {total} rows")));
            };
            let number = self.starts.partition_point(|&start| start <= row) - 1;
            located.push((number, (row - self.starts[number]) as usize));
        }
        let mut used: Vec<usize> = located.iter().map(|&(number, _)| number).collect();
        used.sort_unstable();
        used.dedup();
        Ok((located, used))
    }
}

/// The masking of a batch: the rules, and the keys of the epoch.
struct BatchMasking<'a> {
    rules: &'a Masking,
    keys: EpochKeys,
}

#[pymethods]
impl ExampleReader {
    /// Create a reader of shards with these numbers of rows; `load` is called with the number of a shard when it is needed.
    #[new]
    fn new(row_counts: Vec<u64>, load: Py<PyAny>, pad_id: i64) -> ExampleReader {
        let shards = row_counts.iter().map(|_| None).collect();
        let mut starts = vec![0];
        for n in row_counts {
            starts.push(starts[starts.len() - 1] + n);
        }
        ExampleReader { starts, load, shards: Mutex::new(shards), pad_id }
    }

    /// Return the number of rows.
    fn __len__(&self) -> usize {
        self.starts.last().copied().unwrap_or(0) as usize
    }

    /// Return a batch of rows as arrays.
    ///
    /// Rows are padded to `length`, or to the longest of them rounded up to a multiple of `multiple_of`; with `flatten`
    /// they follow each other in one row without padding.
    #[pyo3(signature = (rows, *, length, multiple_of, flatten, masking, seed, epoch))]
    #[allow(clippy::too_many_arguments, reason = "a Python signature: options by name")]
    fn batch<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, i64>,
        length: Option<usize>,
        multiple_of: usize,
        flatten: bool,
        masking: Option<&MaskingRules>,
        seed: u64,
        epoch: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| {
            let rows = rows.as_slice()?;
            let (located, used) = self.locate(rows)?;
            let shards = used.iter().map(|&number| self.shard(py, number)).collect::<PyResult<Vec<_>>>()?;
            let readonly = shards.iter().map(|shard| shard.get().read(py)).collect::<PyResult<Vec<_>>>()?;
            let borrowed = readonly.iter().map(ReadonlyShard::shard).collect::<PyResult<Vec<_>>>()?;
            let masking =
                masking.map(|rules| BatchMasking { rules: &rules.core, keys: EpochKeys::new(seed, epoch, 0) });
            let made = detached(py, || {
                let list = located.iter().map(|(number, row)| {
                    let at = used.binary_search(number).expect("`used` has the shard of every row");
                    borrowed[at].row(*row)
                });
                let list = list.collect::<Result<Vec<_>, _>>()?;
                let layout = match (flatten, length) {
                    (true, _) => BatchLayout::Flat,
                    (false, Some(length)) => BatchLayout::Padded(length),
                    (false, None) => {
                        let longest = list.iter().map(Row::len).max().unwrap_or(0);
                        BatchLayout::Padded(longest.next_multiple_of(multiple_of.max(1)))
                    }
                };
                let keys = |i: usize| -> RowKeys {
                    let masking = masking.as_ref().expect("keys are asked for only with masking");
                    masking.keys.row(rows[i] as u64)
                };
                let with = masking.as_ref().map(|masking| (masking.rules, &keys as &dyn Fn(usize) -> RowKeys));
                let mut scratch = SCRATCH.take();
                let batch = Batch::new(&list, layout, self.pad_id, with, &mut scratch);
                SCRATCH.set(scratch);
                batch.map(|batch| (batch, layout))
            })?;
            let (batch, layout) = made.map_err(|error: Error| to_py(error))?;
            arrays(py, batch, layout, rows.len())
        })
    }

    /// Return the lengths of rows in tokens.
    fn lengths<'py>(&self, py: Python<'py>, rows: PyReadonlyArray1<'py, i64>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        guarded(|| {
            let rows = rows.as_slice()?;
            let (located, used) = self.locate(rows)?;
            let shards = used.iter().map(|&number| self.shard(py, number)).collect::<PyResult<Vec<_>>>()?;
            let readonly = shards.iter().map(|shard| shard.get().read(py)).collect::<PyResult<Vec<_>>>()?;
            let borrowed = readonly.iter().map(ReadonlyShard::shard).collect::<PyResult<Vec<_>>>()?;
            let mut lengths = Vec::with_capacity(rows.len());
            for (number, row) in located {
                let at = used.binary_search(&number).expect("`used` has the shard of every row");
                let length = borrowed[at].row_length(row).ok_or(Error::BrokenExamples { row });
                lengths.push(length.map_err(to_py)? as i64);
            }
            Ok(lengths.into_pyarray(py))
        })
    }
}

/// Returns the arrays of a batch by name.
fn arrays<'py>(py: Python<'py>, batch: Batch, layout: BatchLayout, rows: usize) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    let shape = match layout {
        BatchLayout::Padded(length) => [rows, length],
        BatchLayout::Flat => [1, batch.input_ids.len()],
    };
    let set = |name: &str, list: Vec<i64>| -> PyResult<()> {
        result.set_item(name, list.into_pyarray(py).call_method1("reshape", (shape,))?)
    };
    let (packed, masked) = (!batch.cu_seqlens.is_empty(), batch.has_labels);
    set("input_ids", batch.input_ids)?;
    set("token_type_ids", batch.token_type_ids)?;
    if packed {
        set("position_ids", batch.position_ids)?;
    } else {
        set("attention_mask", batch.attention_mask)?;
    }
    if masked {
        set("labels", batch.labels)?;
    }
    if packed {
        if let BatchLayout::Padded(length) = layout {
            let sees = batch.sees.into_pyarray(py).call_method1("reshape", ([rows, 1, length, length],))?;
            result.set_item("attention_mask", sees)?;
        }
        result.set_item("cu_seqlens", batch.cu_seqlens.into_pyarray(py))?;
        result.set_item("max_seqlen", batch.longest_sequence)?;
    }
    result.set_item("pair_labels", batch.pair_labels.into_pyarray(py))?;
    Ok(result)
}
