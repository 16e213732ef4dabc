//! A batch without padding on several threads: each run is copied to its place as soon as that is known.
//!
//! Where the rows of a run belong follows from the lengths of all runs before it. Runs are handed out in order, so these
//! have mostly ended when a run does: its rows are copied while they are in the cache of the thread that made them, and
//! its lists are used again for the next run. Otherwise the thread that ends the last of the runs before it copies them.
//!
//! The arrays are reserved for a token for every two bytes of text. Memory that is never written costs nothing; rows
//! that do not fit are appended at the end.

use std::collections::BTreeMap;
use std::mem::{self, MaybeUninit};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use wordpiece_parallel::{ScratchGuard, Workers, try_map_with};

use super::chunk::{ChunkEncoder, RowChunk};
use super::columns::{BatchRows, Columns, Number};
use super::concat::{BatchLayout, Unwritten, Written};
use crate::error::Result;
use crate::memory;
use crate::scratch::EncodeScratch;
use crate::tokenizer::BatchItem;

/// Larger batches, by what would be reserved for them in bytes, are put together at the end: the system may refuse to
/// promise much more memory than there is.
const MAX_RESERVED_BYTES: usize = if usize::BITS > 32 { 1 << (usize::BITS / 2) } else { 1 << 30 };

/// The columns of a batch with values for each token, which are empty but for their capacity.
#[derive(Default)]
pub(super) struct TokenArrays<N> {
    ids: Vec<N>,
    offsets: Vec<i64>,
    word_ids: Vec<i32>,
    sequence_ids: Vec<i32>,
}

/// Places for the next tokens in each array.
struct Places<'a, N> {
    ids: &'a mut [MaybeUninit<N>],
    offsets: &'a mut [MaybeUninit<i64>],
    word_ids: &'a mut [MaybeUninit<i32>],
    sequence_ids: &'a mut [MaybeUninit<i32>],
}

/// What threads share.
struct Progress<'a, N> {
    /// The places of the run that is placed next, and of those after it.
    free: Places<'a, N>,
    /// The runs that have been placed, in order: their rows without the values of tokens.
    placed: Vec<RowChunk>,
    /// Runs that ended before one before them, or for which there is no place.
    waiting: BTreeMap<usize, RowChunk>,
}

impl<N: Number> TokenArrays<N> {
    /// Reserves the arrays of a batch. `None` if there is a column that these are not made for, or too little memory.
    pub fn reserve(inputs: &[impl BatchItem], columns: &Columns) -> Option<TokenArrays<N>> {
        if columns.attention_mask || columns.special_tokens_mask || columns.windows {
            return None;
        }
        let n = inputs.iter().map(|input| input.bytes() / 2 + 4).sum::<usize>();
        let mut arrays =
            TokenArrays { ids: Vec::new(), offsets: Vec::new(), word_ids: Vec::new(), sequence_ids: Vec::new() };
        // Segment ids are mostly the same for all tokens: `finish` makes them.
        let token_bytes = Columns { type_ids: false, ..*columns }.token_bytes::<N>();
        if n.saturating_mul(token_bytes) > MAX_RESERVED_BYTES {
            return None;
        }
        let offsets = if columns.offsets { 2 * n } else { 0 };
        let word_ids = if columns.word_ids { n } else { 0 };
        let sequence_ids = if columns.sequence_ids { n } else { 0 };
        let reserved = memory::try_reserve(&mut arrays.ids, n, inputs.len(), 0)
            .and_then(|()| memory::try_reserve(&mut arrays.offsets, offsets, inputs.len(), 0))
            .and_then(|()| memory::try_reserve(&mut arrays.word_ids, word_ids, inputs.len(), 0))
            .and_then(|()| memory::try_reserve(&mut arrays.sequence_ids, sequence_ids, inputs.len(), 0));
        reserved.is_ok().then_some(arrays)
    }

    /// Encodes the runs of a batch into the arrays.
    ///
    /// # Errors
    ///
    /// The error of the first input that has one, with its index in the batch.
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the columns cannot be allocated.
    pub fn fill(
        mut self,
        encoder: &ChunkEncoder<'_>,
        inputs: &[impl BatchItem],
        runs: Vec<Range<usize>>,
        workers: Workers,
    ) -> Result<BatchRows<N>> {
        let (free, placed) = (self.places(), Vec::with_capacity(runs.len()));
        let progress = Progress { free, placed, waiting: BTreeMap::new() };
        let progress = Mutex::new(progress);
        let encode = |(scratch, spare): &mut (ScratchGuard<'_, EncodeScratch>, Vec<RowChunk>),
                      (number, run): (usize, Range<usize>)| {
            let mut chunk = spare.pop().unwrap_or_default();
            encoder.encode_items(run.start, &inputs[run], scratch, &mut chunk)?;
            let ready = {
                let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
                progress.place(number, chunk, encoder.columns)
            };
            for (chunk, places) in ready {
                let Written = places.write(&chunk);
                spare.push(chunk.without_tokens());
            }
            Ok(())
        };
        let runs = runs.into_iter().enumerate().collect();
        try_map_with(runs, Some(workers), || (encoder.tokenizer.scratch(), Vec::new()), encode)?;
        let Progress { placed, waiting, .. } = progress.into_inner().unwrap_or_else(PoisonError::into_inner);
        let n: usize = placed.iter().map(RowChunk::n_tokens).sum();
        // SAFETY: the places of the runs in `placed` are the first ones of each array. There are as many as their rows
        // have tokens, `n`, in offsets twice as many, and none in a column that is not requested: `Places::take`
        // asserts this for each run. All were written before `try_map_with` returned, or it would have unwound; after
        // an error, which leaves out runs, this is not reached.
        unsafe {
            self.ids.set_len(n);
            self.offsets.set_len(if encoder.columns.offsets { 2 * n } else { 0 });
            self.word_ids.set_len(if encoder.columns.word_ids { n } else { 0 });
            self.sequence_ids.set_len(if encoder.columns.sequence_ids { n } else { 0 });
        }
        self.finish(placed, waiting, encoder.columns, workers)
    }

    /// Returns the places for the first tokens and all others that there is capacity for.
    fn places(&mut self) -> Places<'_, N> {
        Places {
            ids: self.ids.spare_capacity_mut(),
            offsets: self.offsets.spare_capacity_mut(),
            word_ids: self.word_ids.spare_capacity_mut(),
            sequence_ids: self.sequence_ids.spare_capacity_mut(),
        }
    }

    /// Appends the runs that had no place, and returns the batch.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the columns cannot be allocated.
    fn finish(
        mut self,
        mut placed: Vec<RowChunk>,
        waiting: BTreeMap<usize, RowChunk>,
        columns: &Columns,
        workers: Workers,
    ) -> Result<BatchRows<N>> {
        for chunk in waiting.into_values() {
            chunk.assert_columns(columns);
            let rows = &chunk.rows;
            let (n, n_rows) = (rows.ids.len(), rows.row_offsets.len());
            memory::try_reserve(&mut self.ids, n, n_rows, chunk.longest)?;
            memory::try_reserve(&mut self.offsets, rows.offsets.len(), n_rows, chunk.longest)?;
            memory::try_reserve(&mut self.word_ids, rows.word_ids.len(), n_rows, chunk.longest)?;
            memory::try_reserve(&mut self.sequence_ids, rows.sequence_ids.len(), n_rows, chunk.longest)?;
            self.ids.extend(rows.ids.iter().map(|&id| N::of(id)));
            self.offsets.extend_from_slice(&rows.offsets);
            self.word_ids.extend_from_slice(&rows.word_ids);
            self.sequence_ids.extend_from_slice(&rows.sequence_ids);
            placed.push(chunk);
        }
        // Give back the capacity that was reserved and not used.
        self.ids.shrink_to_fit();
        self.offsets.shrink_to_fit();
        self.word_ids.shrink_to_fit();
        self.sequence_ids.shrink_to_fit();
        let layout = BatchLayout::new(&placed, None, Some(workers))?;
        let type_ids = if columns.type_ids { layout.type_ids()? } else { Vec::new() };
        Ok(BatchRows {
            ids: self.ids,
            type_ids,
            offsets: self.offsets,
            word_ids: self.word_ids,
            sequence_ids: self.sequence_ids,
            n_tokens: layout.all(|chunk| &chunk.rows.n_tokens)?,
            truncated: layout.all(|chunk| &chunk.rows.truncated)?,
            row_offsets: layout.row_offsets,
            attention_mask: Vec::new(),
            special_tokens_mask: Vec::new(),
            overflow_to_sample: Vec::new(),
        })
    }
}

impl<'a, N: Number> Progress<'a, N> {
    /// Takes over the run with a number. Returns the runs whose places are known now, each with its places.
    fn place(&mut self, number: usize, chunk: RowChunk, columns: &Columns) -> Vec<(RowChunk, Places<'a, N>)> {
        self.waiting.insert(number, chunk);
        let mut ready = Vec::new();
        while let Some(mut chunk) = self.waiting.remove(&self.placed.len()) {
            let Some(places) = self.free.take(&chunk, columns) else {
                self.waiting.insert(self.placed.len(), chunk);
                break;
            };
            self.placed.push(chunk.take_rows());
            ready.push((chunk, places));
        }
        ready
    }
}

impl<'a, N: Number> Places<'a, N> {
    /// Takes the places of the tokens of a chunk, if there are enough: one in each array for each token that the rows
    /// have by their ends, two for offsets, and none for columns that are not requested.
    ///
    /// # Panics
    ///
    /// If the columns of the chunk do not have as many values.
    fn take(&mut self, chunk: &RowChunk, columns: &Columns) -> Option<Places<'a, N>> {
        /// Splits off the first `n` of a slice.
        fn split<'a, T>(all: &mut &'a mut [T], n: usize) -> &'a mut [T] {
            all.split_off_mut(..n).expect("no more tokens than there are places")
        }
        chunk.assert_columns(columns);
        let rows = &chunk.rows;
        // The arrays of the other columns were reserved for as many tokens, if they are requested.
        (rows.ids.len() <= self.ids.len()).then(|| Places {
            ids: split(&mut self.ids, rows.ids.len()),
            offsets: split(&mut self.offsets, rows.offsets.len()),
            word_ids: split(&mut self.word_ids, rows.word_ids.len()),
            sequence_ids: split(&mut self.sequence_ids, rows.sequence_ids.len()),
        })
    }

    /// Copies the values of the tokens of the chunk that these are the places of.
    fn write(self, chunk: &RowChunk) -> Written {
        let Written = Unwritten(self.ids).copy(&chunk.rows.ids, N::of);
        let Written = Unwritten(self.offsets).copy(&chunk.rows.offsets, |at| at);
        let Written = Unwritten(self.word_ids).copy(&chunk.rows.word_ids, |id| id);
        Unwritten(self.sequence_ids).copy(&chunk.rows.sequence_ids, |id| id)
    }
}

impl RowChunk {
    /// Moves out everything but the values of tokens.
    fn take_rows(&mut self) -> RowChunk {
        let rows = &mut self.rows;
        RowChunk {
            rows: BatchRows {
                row_offsets: mem::take(&mut rows.row_offsets),
                n_tokens: mem::take(&mut rows.n_tokens),
                truncated: mem::take(&mut rows.truncated),
                ..BatchRows::default()
            },
            type_ids: mem::take(&mut self.type_ids),
            pad_sequence_ids: mem::take(&mut self.pad_sequence_ids),
            longest: mem::take(&mut self.longest),
        }
    }

    /// Returns the chunk, from which the rows have been taken, without the values of tokens; lists keep their capacity.
    fn without_tokens(mut self) -> RowChunk {
        self.rows.ids.clear();
        self.rows.offsets.clear();
        self.rows.word_ids.clear();
        self.rows.sequence_ids.clear();
        self
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use wordpiece_parallel::thread_pool;

    use super::super::chunk::TypeIds;
    use super::*;
    use crate::definition::Definition;
    use crate::error::Error;
    use crate::inputs::{Side, Truncation, TruncationStrategy};
    use crate::tokenizer::{EncodeOptions, Input, Tokenizer};
    use crate::vocab::Vocab;

    /// The columns of a chunk of one token: all that can be requested here.
    const COLUMNS: Columns = Columns {
        type_ids: true,
        attention_mask: false,
        special_tokens_mask: false,
        offsets: true,
        word_ids: true,
        sequence_ids: true,
        windows: false,
        n_tokens: true,
    };

    fn chunk_of_one_token() -> RowChunk {
        let rows = BatchRows {
            ids: vec![7],
            row_offsets: vec![1],
            offsets: vec![0, 1],
            word_ids: vec![0],
            sequence_ids: vec![0],
            n_tokens: vec![1],
            truncated: vec![false],
            ..BatchRows::default()
        };
        RowChunk { rows, type_ids: TypeIds::Same { id: 0, n: 1 }, pad_sequence_ids: vec![-1], longest: 1 }
    }

    /// Otherwise the rows would claim more values than were written.
    #[test]
    fn places_are_not_given_to_a_chunk_whose_columns_disagree() {
        let damages: [fn(&mut RowChunk); 7] = [
            |_| (),
            |chunk| chunk.rows.row_offsets[0] += 1,
            |chunk| chunk.rows.ids.clear(),
            |chunk| chunk.rows.offsets.truncate(1),
            |chunk| chunk.rows.word_ids.clear(),
            |chunk| chunk.rows.word_ids.push(0),
            |chunk| chunk.rows.sequence_ids.clear(),
        ];
        let inputs = [Input::single("a")];
        for (number, damage) in damages.into_iter().enumerate() {
            let mut chunk = chunk_of_one_token();
            damage(&mut chunk);
            let take = |columns: &Columns| {
                let mut arrays = TokenArrays::<i64>::reserve(&inputs, columns).unwrap();
                let mut places = arrays.places();
                catch_unwind(AssertUnwindSafe(|| places.take(&chunk, columns).is_some())).ok()
            };
            assert_eq!(take(&COLUMNS), (number == 0).then_some(true), "damage {number}");
            assert_eq!(take(&Columns::default()), None, "columns that are not requested");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends where memory cannot be had")]
    fn columns_that_do_not_fit_into_memory_are_an_error() {
        let n = 1 << 47;
        for id in [0, 1] {
            let rows = BatchRows { row_offsets: vec![n as i64], truncated: vec![false], ..BatchRows::default() };
            let placed = vec![RowChunk { rows, type_ids: TypeIds::Same { id, n }, longest: n, ..RowChunk::default() }];
            let arrays = TokenArrays::<i64>::default();
            let found = arrays.finish(placed, BTreeMap::new(), &COLUMNS, thread_pool(1).unwrap());
            assert!(matches!(found, Err(Error::OutOfMemory { rows: 1, length, .. }) if length == n), "{found:?}");
        }
    }

    /// The error comes from the first input that fails, whichever run ends first.
    #[test]
    fn the_error_of_a_batch_is_that_of_its_first_input_with_one() {
        let tokenizer = Tokenizer::new(Definition::bert(Vocab::new([("[UNK]", 0), ("a", 1)]).unwrap())).unwrap();
        let truncation =
            Truncation { strategy: TruncationStrategy::OnlySecond, max_length: 10, stride: 0, side: Side::Right };
        let options = EncodeOptions { truncation: Some(truncation), ..EncodeOptions::default() };
        let long = "a ".repeat(if cfg!(miri) { 100 } else { 3_000 });
        // Of a single text nothing can be dropped.
        let input = |i| if i == 7 || i > 20 { Input::single(&long) } else { Input::pair("a", &long) };
        let inputs: Vec<Input<'_>> = (0..40).map(input).collect();
        let rows = |pool| {
            let found = tokenizer.encode_batch::<i64>(&inputs, &options, &Columns::default(), pool);
            found.unwrap_err().to_string()
        };
        assert!(rows(None).contains('7'), "{}", rows(None));
        for threads in [1, 3] {
            assert_eq!(rows(thread_pool(threads)), rows(None));
        }
    }

    /// Texts with a token for every byte do not fit into what is reserved.
    #[test]
    fn rows_are_those_of_one_thread_whether_they_fit_or_not() {
        let vocab = Vocab::new([("[UNK]", 0), ("a", 1), ("##a", 2), ("!", 3), ("[CLS]", 4), ("[SEP]", 5)]).unwrap();
        let tokenizer = Tokenizer::new(Definition::bert(vocab)).unwrap();
        let columns = [Columns::default(), COLUMNS];
        let n = if cfg!(miri) { 3 } else { 300 };
        for words in ["a aaaa ".repeat(20), "!".repeat(140)] {
            let texts: Vec<String> = (0..n).map(|i| format!("{}{words}", "a ".repeat(i % 50))).collect();
            let single: Vec<Input<'_>> = texts.iter().map(|text| Input::single(text)).collect();
            let mixed: Vec<Input<'_>> = texts
                .iter()
                .enumerate()
                .map(|(i, text)| if i % 3 == 0 { Input::single(text) } else { Input::pair(text, "a !") })
                .collect();
            for (inputs, columns) in [&single, &mixed].into_iter().flat_map(|inputs| columns.map(|it| (inputs, it))) {
                let rows =
                    |pool| tokenizer.encode_batch::<i64>(inputs, &EncodeOptions::default(), &columns, pool).unwrap();
                let expected = rows(None);
                assert!(expected.ids.len() > n * 70);
                for threads in [1, 3] {
                    assert_eq!(rows(thread_pool(threads)), expected, "{columns:?}");
                }
            }
        }
    }
}
