//! The generator, the order of rows, and the rules of masking.

use std::cell::RefCell;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use wordpiece::pretraining::masking::{self, EpochKeys, MaskScratch, MaskUnit, MaskingOptions, TokenClasses};
use wordpiece::pretraining::random::{EpochOrder, text_id};

use crate::error::{self, guarded};
use crate::interrupt::detached;
use crate::text::{Fields, Utf8, Utf8String};
use crate::tokenizer::Tokenizer;

thread_local! {
    /// The buffers of masking, which calls on one thread reuse. A call takes them, because a handler of a signal may mask, too.
    pub static SCRATCH: RefCell<MaskScratch> = RefCell::default();
}

/// Ids after masking, and labels.
type MaskedArrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

/// Return `count` rows of the reading order of `n` rows, from position `start` on.
#[pyfunction]
pub fn epoch_order(
    py: Python<'_>,
    n: u64,
    seed: u64,
    epoch: u64,
    start: u64,
    count: u64,
) -> PyResult<Bound<'_, PyArray1<i64>>> {
    guarded(|| {
        if start > n || count > n - start {
            return Err(error::input(format!("positions {start} to {start} + {count} of {n} rows")));
        }
        if i64::try_from(n).is_err() {
            return Err(error::input(format!("{n} rows do not fit 63 bits")));
        }
        let order = EpochOrder::new(n, seed, epoch);
        let rows = detached(py, || {
            let mut rows = Vec::new();
            rows.try_reserve_exact(count as usize).map_err(|_| {
                error::input(format!(
                    "{count} positions need {} bytes, which cannot be allocated",
                    count.saturating_mul(8)
                ))
            })?;
            for position in start..start + count {
                if position % 4096 == 0 {
                    wordpiece_parallel::checkpoint();
                }
                rows.push(order.at(position) as i64);
            }
            Ok::<_, PyErr>(rows)
        })??;
        Ok(rows.into_pyarray(py))
    })
}

/// Return the number of a document whose id is a text.
#[pyfunction]
pub fn text_document_id(text: Utf8<'_>) -> u64 {
    text_id(&text)
}

/// The options of masking, as items of a dict. `unit` is ``"tokens"``, ``"words"`` or ``"spans"``.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct MaskingFields {
    probability: f64,
    unit: Utf8String,
    max_predictions: Option<usize>,
    masked: f64,
    random: f64,
    span_probability: f64,
    max_span_length: usize,
}

impl MaskingFields {
    fn core(self) -> PyResult<MaskingOptions> {
        let MaskingFields { probability, unit, max_predictions, masked, random, span_probability, max_span_length } =
            self;
        let unit = match &*unit {
            "tokens" => MaskUnit::Tokens,
            "words" => MaskUnit::Words,
            "spans" => MaskUnit::Spans,
            other => return Err(error::input(format!("unit must be 'tokens', 'words' or 'spans', not {other:?}"))),
        };
        Ok(MaskingOptions { probability, unit, max_predictions, masked, random, span_probability, max_span_length })
    }
}

/// The rules by which tokens are masked; what `wordpiece_bert.pretraining.Masking` wraps.
#[pyclass(frozen, module = "wordpiece_bert._core")]
pub struct MaskingRules {
    pub core: Arc<masking::Masking>,
}

#[pymethods]
impl MaskingRules {
    /// Create the rules for a tokenizer; shares are not checked.
    #[new]
    fn new(
        tokenizer: &Tokenizer,
        special_ids: Vec<u32>,
        mask_id: u32,
        options: Fields<MaskingFields>,
    ) -> PyResult<MaskingRules> {
        guarded(|| {
            let options = options.0.core()?;
            let classes = TokenClasses::of(tokenizer.definition(), special_ids);
            // The rules have a byte for each id up to the largest.
            let largest = tokenizer.definition().vocab.max_id().unwrap_or(0);
            Vec::<u8>::new().try_reserve_exact(largest as usize + 1).map_err(|_| {
                error::input(format!("the tokenizer has ids up to {largest}, for which there is not enough memory"))
            })?;
            Ok(MaskingRules { core: Arc::new(masking::Masking::new(&classes, mask_id, options)) })
        })
    }

    /// The number of ids; larger ids are not the tokenizer's.
    #[getter]
    fn size(&self) -> usize {
        self.core.size()
    }

    /// Mask rows that lie one after the other in an array; return the masked ids and the labels.
    ///
    /// `row_offsets` has where each row begins and where the last one ends. `rows` has the number of each row; its
    /// random choices depend on this number.
    #[allow(clippy::too_many_arguments, reason = "a Python signature")]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        input_ids: PyReadonlyArray1<'py, i64>,
        row_offsets: PyReadonlyArray1<'py, i64>,
        rows: PyReadonlyArray1<'py, u64>,
        seed: u64,
        epoch: u64,
        high: u64,
    ) -> PyResult<MaskedArrays<'py>> {
        guarded(|| {
            let (ids, offsets, rows) = (input_ids.as_slice()?, row_offsets.as_slice()?, rows.as_slice()?);
            let masked = detached(py, || self.mask_rows(ids, offsets, rows, EpochKeys::new(seed, epoch, high)))?;
            let (ids, labels) = masked.map_err(error::input)?;
            Ok((ids.into_pyarray(py), labels.into_pyarray(py)))
        })
    }
}

impl MaskingRules {
    fn mask_rows(
        &self,
        ids: &[i64],
        offsets: &[i64],
        rows: &[u64],
        keys: EpochKeys,
    ) -> Result<(Vec<i64>, Vec<i64>), String> {
        if offsets.len() != rows.len() + 1 {
            return Err(format!("{} row numbers, but {} row offsets", rows.len(), offsets.len()));
        }
        let mut new_ids = ids.to_vec();
        let mut labels = vec![wordpiece::pretraining::collate::IGNORED; ids.len()];
        let mut scratch = SCRATCH.take();
        for (bounds, &row) in offsets.windows(2).zip(rows) {
            wordpiece_parallel::checkpoint();
            let range = usize::try_from(bounds[0]).ok().zip(usize::try_from(bounds[1]).ok());
            let range = range.filter(|&(start, end)| start <= end && end <= ids.len());
            let Some((start, end)) = range else {
                return Err(format!("a row from {} to {} of {} ids", bounds[0], bounds[1], ids.len()));
            };
            self.core.apply(&ids[start..end], &keys.row(row), &mut scratch, |place, old, new| {
                new_ids[start + place] = new.into();
                labels[start + place] = old.into();
            });
        }
        SCRATCH.set(scratch);
        Ok((new_ids, labels))
    }
}
