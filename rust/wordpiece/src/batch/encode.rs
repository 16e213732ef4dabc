//! The division of a batch into runs, and of runs among threads.

use std::ops::Range;

use wordpiece_parallel::{ScratchGuard, Workers, checkpoint, try_map_with};

use super::chunk::{ChunkEncoder, RowChunk};
use super::columns::{BatchRows, Columns, Number};
use super::concat::concatenate;
use super::in_place::TokenArrays;
use crate::error::Result;
use crate::inputs::Encoding;
use crate::memory;
use crate::scratch::EncodeScratch;
use crate::tokenizer::{BatchItem, EncodeOptions, Input, Tokenizer};

/// A run has at least this many bytes of text, to be worth what handing it to a thread costs.
const MIN_RUN_BYTES: usize = 1 << 12;

/// A run has at most this many bytes of text (or one input), so that all threads end at about the same time.
const MAX_RUN_BYTES: usize = 1 << 16;

/// On one thread, texts that are copied are encoded in runs of so many bytes: they stay in the first-level cache.
const COPIED_BYTES: usize = 1 << 14;

/// Between these bounds, each thread gets about this many runs: in the end it waits for a part of one.
const RUNS_PER_THREAD: usize = 16;

impl Tokenizer {
    /// Encodes many inputs into flat arrays, on this thread and the threads of the pool. The result does not depend on
    /// the pool.
    ///
    /// ```
    /// use wordpiece::{Columns, Definition, EncodeOptions, Input, Tokenizer, Vocab};
    ///
    /// let vocab = Vocab::new([("[UNK]", 0), ("one", 1), ("two", 2)])?;
    /// let tokenizer = Tokenizer::new(Definition::bert(vocab))?;
    /// let inputs = [Input::single("One two"), Input::single("two")];
    /// let batch = tokenizer.encode_batch::<i64>(&inputs, &EncodeOptions::default(), &Columns::default(), None)?;
    /// assert_eq!(batch.ids, [1, 2, 2]);
    /// assert_eq!(batch.row_offsets, [0, 2, 3]);
    /// # Ok::<(), wordpiece::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the first input that has one, with its index; see [`Tokenizer::encode`].
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the rows cannot be allocated.
    pub fn encode_batch<N: Number>(
        &self,
        inputs: &[impl BatchItem],
        options: &EncodeOptions,
        columns: &Columns,
        pool: Option<Workers>,
    ) -> Result<BatchRows<N>> {
        let encoder = ChunkEncoder::new(self, options, columns);
        if let Some(workers) = pool.filter(|_| options.padding.is_none())
            && let Some(arrays) = TokenArrays::reserve(inputs, columns)
        {
            return arrays.fill(&encoder, inputs, divide(inputs, run_bytes(inputs, pool)), workers);
        }
        let chunks = match pool {
            None => vec![encoder.only_chunk(inputs)?],
            Some(_) => map_runs(self, inputs, pool, |first, inputs, scratch| {
                let mut chunk = RowChunk::default();
                encoder.encode_items(first, inputs, scratch, &mut chunk).map(|()| vec![chunk])
            })?,
        };
        let longest = chunks.iter().map(|chunk| chunk.longest).max().unwrap_or(0);
        let target = match &options.padding {
            Some(padding) => Some((padding.target(longest)?, padding)),
            None => None,
        };
        concatenate(chunks, target, columns, pool)
    }

    /// Encodes many inputs and computes something from the ids of each, without keeping the ids of the whole batch. Returns
    /// which inputs were truncated. The result does not depend on the pool.
    ///
    /// `outputs` has equally many elements for each input. `write` is called for runs of consecutive inputs, with the ids
    /// of the run, the end of each input's row in them, and the elements of these inputs. Rows are not padded.
    ///
    /// ```
    /// use wordpiece::{Definition, EncodeOptions, Input, Tokenizer, Vocab};
    ///
    /// let vocab = Vocab::new([("[UNK]", 0), ("one", 1), ("two", 2)])?;
    /// let tokenizer = Tokenizer::new(Definition::bert(vocab))?;
    /// let inputs = [Input::single("One two"), Input::single("two")];
    /// let mut lengths = [0; 2];
    /// tokenizer.encode_into(&inputs, &EncodeOptions::default(), &mut lengths, None, |_ids, ends, lengths| {
    ///     let mut start = 0;
    ///     for (length, &end) in lengths.iter_mut().zip(ends) {
    ///         *length = end - start;
    ///         start = end;
    ///     }
    /// })?;
    /// assert_eq!(lengths, [2, 1]);
    /// # Ok::<(), wordpiece::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::encode_batch`]; some of `outputs` have then been written.
    ///
    /// # Panics
    ///
    /// If `outputs` cannot be divided equally among the inputs.
    pub fn encode_into<T: Send>(
        &self,
        inputs: &[impl BatchItem],
        options: &EncodeOptions,
        outputs: &mut [T],
        pool: Option<Workers>,
        write: impl Fn(&[u32], &[i64], &mut [T]) + Sync,
    ) -> Result<Vec<bool>> {
        let width = outputs.len().checked_div(inputs.len()).unwrap_or(0);
        assert_eq!(outputs.len(), width * inputs.len(), "equally many outputs for each input");
        let columns = Columns::default();
        let encoder = ChunkEncoder::new(self, options, &columns);
        let mut rest = outputs;
        // Also on one thread: the ids of a run stay in the cache until they are used.
        let parts = divide(inputs, run_bytes(inputs, pool)).into_iter().map(|run| {
            let (part, after) = std::mem::take(&mut rest).split_at_mut(width * run.len());
            rest = after;
            (run, part)
        });
        let encode = |scratch: &mut ScratchGuard<'_, EncodeScratch>, (run, part): (Range<usize>, &mut [T])| {
            let mut chunk = RowChunk::default();
            encoder.encode_items(run.start, &inputs[run], scratch, &mut chunk)?;
            write(&chunk.rows.ids, &chunk.rows.row_offsets, part);
            Ok(chunk.rows.truncated)
        };
        let truncated = try_map_with(parts.collect(), pool, || self.scratch(), encode)?;
        Ok(truncated.concat())
    }

    /// Encodes many inputs, with everything that is known about each. The result does not depend on the pool.
    ///
    /// # Errors
    ///
    /// The error of the first input that has one, with its index; see [`Tokenizer::encode`].
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the rows cannot be allocated.
    pub fn encodings(
        &self,
        inputs: &[impl BatchItem],
        options: &EncodeOptions,
        pool: Option<Workers>,
    ) -> Result<Vec<Encoding>> {
        let mut encodings = map_runs(self, inputs, pool, |first, inputs, scratch| {
            let encode =
                |(i, input)| self.encode_unpadded(input, options, scratch).map_err(|error| error.at_index(first + i));
            inputs.iter().enumerate().map(encode).collect()
        })?;
        if let Some(padding) = &options.padding {
            let target = padding.target(encodings.iter().map(Encoding::len).max().unwrap_or(0))?;
            memory::check(encodings.iter().map(Encoding::rows).sum(), target, padding.token_bytes())?;
            for encoding in &mut encodings {
                checkpoint();
                encoding.pad(target, padding);
            }
        }
        Ok(encodings)
    }
}

/// Calls `f` with runs of consecutive inputs and the index of the first of each; returns all results in the order of
/// the inputs, or the first error.
fn map_runs<T: Send, I: BatchItem>(
    tokenizer: &Tokenizer,
    inputs: &[I],
    pool: Option<Workers>,
    f: impl Fn(usize, &[Input<'_>], &mut EncodeScratch) -> Result<Vec<T>> + Sync,
) -> Result<Vec<T>> {
    let encode = |scratch: &mut ScratchGuard<'_, EncodeScratch>, run: Range<usize>| {
        I::with_inputs(&inputs[run.clone()], run.start, |inputs| f(run.start, inputs, scratch))
    };
    if pool.is_none() && !I::COPIES {
        return encode(&mut tokenizer.scratch(), 0..inputs.len());
    }
    let runs = divide(inputs, run_bytes(inputs, pool));
    let mut all = Vec::with_capacity(inputs.len());
    for mut results in try_map_with(runs, pool, || tokenizer.scratch(), encode)? {
        all.append(&mut results);
    }
    Ok(all)
}

impl ChunkEncoder<'_> {
    /// Encodes all items of a batch on this thread.
    fn only_chunk<I: BatchItem>(&self, items: &[I]) -> Result<RowChunk> {
        let (mut scratch, mut chunk) = (self.tokenizer.scratch(), RowChunk::default());
        let runs = if I::COPIES { divide(items, COPIED_BYTES) } else { std::iter::once(0..items.len()).collect() };
        self.reserve(items, &mut chunk)?;
        for run in runs {
            let first = run.start;
            I::with_inputs(&items[run], first, |inputs| self.encode_into(first, inputs, &mut scratch, &mut chunk))?;
        }
        Ok(chunk)
    }
}

/// Returns how many bytes of text a run should have.
fn run_bytes(inputs: &[impl BatchItem], pool: Option<Workers>) -> usize {
    let total: usize = inputs.iter().map(BatchItem::bytes).sum();
    let threads = pool.map_or(1, |pool| pool.count() + 1);
    (total / (RUNS_PER_THREAD * threads)).clamp(MIN_RUN_BYTES, MAX_RUN_BYTES)
}

/// Divides inputs into runs of at least so many bytes, except for the last.
fn divide(inputs: &[impl BatchItem], run_bytes: usize) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (i, input) in inputs.iter().enumerate() {
        bytes += input.bytes();
        if bytes >= run_bytes {
            runs.push(start..i + 1);
            (start, bytes) = (i + 1, 0);
        }
    }
    runs.push(start..inputs.len());
    runs
}

#[cfg(test)]
mod tests {
    use wordpiece_parallel::thread_pool;

    use super::*;
    use crate::added::AddedToken;
    use crate::definition::Definition;
    use crate::inputs::Padding;
    use crate::normalize::{BertNormalizer, Normalizer};
    use crate::vocab::Vocab;

    #[test]
    fn texts_by_themselves_have_the_rows_of_inputs() {
        let vocab = Vocab::new([("[UNK]", 0), ("a", 1), ("##a", 2), ("b", 3)]).unwrap();
        let tokenizer = Tokenizer::new(Definition::bert(vocab)).unwrap();
        let texts: Vec<String> = (0..if cfg!(miri) { 4 } else { 2_000 }).map(|i| "a aa b ".repeat(i % 7)).collect();
        let alone: Vec<&str> = texts.iter().map(String::as_str).collect();
        let inputs: Vec<Input<'_>> = alone.iter().copied().map(Input::single).collect();
        let (options, columns) = (EncodeOptions::default(), Columns { offsets: true, ..Columns::default() });
        let padding = Some(Padding::longest(1, "[PAD]"));
        for options in [&options, &EncodeOptions { padding, ..options.clone() }] {
            for pool in [None, thread_pool(2)] {
                let expected = tokenizer.encode_batch::<u32>(&inputs, options, &columns, pool).unwrap();
                assert_eq!(tokenizer.encode_batch::<u32>(&alone, options, &columns, pool).unwrap(), expected);
                assert_eq!(
                    tokenizer.encodings(&alone, options, pool).unwrap(),
                    tokenizer.encodings(&inputs, options, pool).unwrap()
                );
            }
        }
    }

    /// Few and short texts: Miri runs them, but not the property tests in `tests/`.
    #[test]
    fn rows_of_the_fast_path_are_those_of_the_pipeline() {
        let vocab = || Vocab::new([("[UNK]", 0), ("[PAD]", 1), ("a", 2), ("##a", 3), ("中", 4)]).unwrap();
        let long = "a".repeat(70);
        let texts = ["", "a", "a aa, ä Ab", "中a文 각 a\u{301}\u{323}", "😀 ax", &long, "a"].map(Input::single);
        let options = EncodeOptions { padding: Some(Padding::longest(1, "[PAD]")), ..EncodeOptions::default() };
        let columns = Columns { attention_mask: true, offsets: true, word_ids: true, ..Columns::default() };
        for (normalized, padded) in [(true, true), (false, false)] {
            let token = AddedToken { normalized, special: false, ..AddedToken::special("x") };
            let normalizer = Some(Normalizer::Bert(BertNormalizer::default()));
            let definition = Definition { normalizer, added_tokens: vec![token], ..Definition::bert(vocab()) };
            let fast = Tokenizer::new(definition).unwrap();
            assert!(fast.instruction_set().is_some());
            let slow = fast.clone().with_instruction_set(None);
            let options = if padded { &options } else { &EncodeOptions::default() };
            for columns in [Columns::default(), columns] {
                let rows =
                    |tokenizer: &Tokenizer| tokenizer.encode_batch::<i64>(&texts, options, &columns, None).unwrap();
                assert_eq!(rows(&fast), rows(&slow), "{columns:?}");
            }
        }
    }
}
