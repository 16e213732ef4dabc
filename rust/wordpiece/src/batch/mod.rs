//! Many texts over threads → flat arrays.

mod chunk;
mod join;
mod plain;

use std::ops::Range;

use rayon::ThreadPool;

use crate::error::Result;
use crate::inputs::{Encoding, PadLength, Padding, Side};
use crate::scratch::{Lent, Scratch};
use crate::tokenizer::{EncodeOptions, Input, Tokenizer};
use wordpiece_parallel::map_with;

/// What a batch is asked for beside ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Columns {
    /// Segment ids.
    pub type_ids: bool,
    /// 0 for padding.
    pub attention_mask: bool,
    /// 1 for special tokens and padding.
    pub special_tokens_mask: bool,
    /// Start and end of each token in its text.
    pub offsets: bool,
    /// The word each token belongs to.
    pub word_ids: bool,
    /// The text each token comes from.
    pub sequence_ids: bool,
    /// The windows that truncation cut off, as rows after that of their text.
    pub windows: bool,
    /// The number of tokens of each text before truncation and padding.
    pub n_tokens: bool,
}

/// Rows as flat arrays. Columns that were not asked for are empty.
///
/// `N` is the number type of what a model is called with: ids, segment ids and masks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchRows<N = u32> {
    /// Ids of all rows, one after the other.
    pub ids: Vec<N>,
    /// Where each row begins in `ids`, and at last where the last one ends.
    pub row_offsets: Vec<i64>,
    /// Segment ids.
    pub type_ids: Vec<N>,
    /// 0 for padding.
    pub attention_mask: Vec<N>,
    /// 1 for special tokens and padding.
    pub special_tokens_mask: Vec<N>,
    /// Start and end, two numbers a token.
    pub offsets: Vec<i64>,
    /// Word ids, −1 where there is none.
    pub word_ids: Vec<i32>,
    /// Sequence ids, −1 where there is none.
    pub sequence_ids: Vec<i32>,
    /// The text each row comes from; filled when windows are rows.
    pub overflow_to_sample: Vec<i64>,
    /// The number of tokens of each text before truncation and padding, special tokens included.
    pub n_tokens: Vec<i64>,
    /// Whether each text was cut.
    pub truncated: Vec<bool>,
}

impl<N> BatchRows<N> {
    /// The number of rows and their length, if all have the same.
    pub fn shape(&self) -> Option<(usize, usize)> {
        let rows = self.row_offsets.len().saturating_sub(1);
        let length = self.ids.len().checked_div(rows).unwrap_or(0);
        let is_even = self.row_offsets.iter().enumerate().all(|(row, &start)| start == (row * length) as i64);
        is_even.then_some((rows, length))
    }
}

/// A type of number that a model takes.
pub trait Number: Copy + Send {
    /// The number.
    fn of(number: u32) -> Self;

    /// All of a list.
    fn list(numbers: Vec<u32>) -> Vec<Self> {
        numbers.into_iter().map(Self::of).collect()
    }
}

impl Number for u32 {
    fn of(number: u32) -> u32 {
        number
    }

    fn list(numbers: Vec<u32>) -> Vec<u32> {
        numbers
    }
}

impl Number for i64 {
    fn of(number: u32) -> i64 {
        number.into()
    }
}

/// Texts are handed to threads in runs of so many bytes: enough to make a run worth its cost, and few enough that all
/// threads end at about the same time.
const LEAST_RUN_BYTES: usize = 1 << 12;
const MOST_RUN_BYTES: usize = 1 << 16;
const RUNS_PER_THREAD: usize = 4;

impl Tokenizer {
    /// Encodes many texts into flat arrays, on this thread and those of the pool; the answer is the same.
    ///
    /// An error is that of the first text that has one, with its index.
    pub fn encode_batch<N: Number>(
        &self,
        inputs: &[Input<'_>],
        options: &EncodeOptions,
        columns: &Columns,
        pool: Option<&ThreadPool>,
    ) -> Result<BatchRows<N>> {
        let chunks = map_runs(self, inputs, pool, |first, inputs, scratch| {
            self.encode_chunk(first, inputs, options, columns, scratch).map(|chunk| vec![chunk])
        })?;
        let longest = chunks.iter().map(|chunk| chunk.longest).max().unwrap_or(0);
        let target = match &options.padding {
            Some(padding) => Some((padding.target(longest)?, padding)),
            None => None,
        };
        Ok(join::join(chunks, target, columns, pool))
    }

    /// Encodes many texts with everything there is to know about each.
    pub fn encodings(
        &self,
        inputs: &[Input<'_>],
        options: &EncodeOptions,
        pool: Option<&ThreadPool>,
    ) -> Result<Vec<Encoding>> {
        let mut encodings = map_runs(self, inputs, pool, |first, inputs, scratch| {
            let encode =
                |(i, input)| self.encode_unpadded(input, options, scratch).map_err(|error| error.at_index(first + i));
            inputs.iter().enumerate().map(encode).collect()
        })?;
        if let Some(padding) = &options.padding {
            let target = padding.target(encodings.iter().map(Encoding::len).max().unwrap_or(0))?;
            encodings.iter_mut().for_each(|encoding| encoding.pad(target, padding));
        }
        Ok(encodings)
    }
}

/// Calls `f` with runs of consecutive inputs and the index of their first; results keep the order of the inputs.
fn map_runs<T: Send>(
    tokenizer: &Tokenizer,
    inputs: &[Input<'_>],
    pool: Option<&ThreadPool>,
    f: impl Fn(usize, &[Input<'_>], &mut Scratch) -> Result<Vec<T>> + Sync,
) -> Result<Vec<T>> {
    let Some(pool) = pool else { return f(0, inputs, &mut tokenizer.scratch()) };
    let total: usize = inputs.iter().map(Input::len).sum();
    let run_bytes =
        (total / (RUNS_PER_THREAD * (pool.current_num_threads() + 1))).clamp(LEAST_RUN_BYTES, MOST_RUN_BYTES);
    let mut runs = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (i, input) in inputs.iter().enumerate() {
        bytes += input.len();
        if bytes >= run_bytes {
            runs.push(start..i + 1);
            (start, bytes) = (i + 1, 0);
        }
    }
    runs.push(start..inputs.len());
    let encode = |scratch: &mut Lent<'_>, run: Range<usize>| f(run.start, &inputs[run], scratch);
    let mut all = Vec::with_capacity(inputs.len());
    for result in map_with(runs, Some(pool), || tokenizer.scratch(), encode) {
        all.append(&mut result?);
    }
    Ok(all)
}

impl Padding {
    /// Padding to the longest row of the batch, with BERT's padding token.
    pub fn longest(id: u32, token: impl Into<String>) -> Padding {
        Padding {
            length: PadLength::Longest,
            multiple_of: None,
            id,
            type_id: 0,
            token: token.into(),
            side: Side::Right,
        }
    }
}
