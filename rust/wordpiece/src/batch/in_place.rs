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

use wordpiece_parallel::{ScratchGuard, Workers, map_with};

use super::chunk::{ChunkEncoder, RowChunk, TypeIds};
use super::columns::{BatchRows, Columns, Number};
use super::concat::{Unwritten, Written};
use crate::error::Result;
use crate::memory;
use crate::scratch::EncodeScratch;
use crate::tokenizer::Input;

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
    pub fn reserve(inputs: &[Input<'_>], columns: &Columns) -> Option<TokenArrays<N>> {
        if columns.attention_mask || columns.special_tokens_mask || columns.windows {
            return None;
        }
        let n = inputs.iter().map(|input| input.len() / 2 + 4).sum::<usize>();
        let mut arrays =
            TokenArrays { ids: Vec::new(), offsets: Vec::new(), word_ids: Vec::new(), sequence_ids: Vec::new() };
        let offsets = if columns.offsets { 2 * n } else { 0 };
        let word_ids = if columns.word_ids { n } else { 0 };
        let sequence_ids = if columns.sequence_ids { n } else { 0 };
        let bytes = size_of::<N>() * n + 8 * offsets + 4 * (word_ids + sequence_ids);
        if bytes > MAX_RESERVED_BYTES {
            return None;
        }
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
    pub fn fill(
        mut self,
        encoder: &ChunkEncoder<'_>,
        inputs: &[Input<'_>],
        runs: Vec<Range<usize>>,
        workers: Workers,
    ) -> Result<BatchRows<N>> {
        let progress = Progress {
            free: Places {
                ids: self.ids.spare_capacity_mut(),
                offsets: self.offsets.spare_capacity_mut(),
                word_ids: self.word_ids.spare_capacity_mut(),
                sequence_ids: self.sequence_ids.spare_capacity_mut(),
            },
            placed: Vec::with_capacity(runs.len()),
            waiting: BTreeMap::new(),
        };
        let progress = Mutex::new(progress);
        let encode = |(scratch, spare): &mut (ScratchGuard<'_, EncodeScratch>, Vec<RowChunk>),
                      (number, run): (usize, Range<usize>)| {
            let mut chunk = spare.pop().unwrap_or_default();
            encoder.encode_into(run.start, &inputs[run], scratch, &mut chunk)?;
            let ready = progress.lock().unwrap_or_else(PoisonError::into_inner).place(number, chunk);
            for (chunk, places) in ready {
                let Written = places.write(&chunk);
                spare.push(chunk.without_tokens());
            }
            Ok(())
        };
        let runs = runs.into_iter().enumerate().collect();
        map_with(runs, Some(workers), || (encoder.tokenizer.scratch(), Vec::new()), encode)
            .into_iter()
            .collect::<Result<()>>()?;
        let Progress { placed, waiting, .. } = progress.into_inner().unwrap_or_else(PoisonError::into_inner);
        let n: usize = placed.iter().map(RowChunk::placed_tokens).sum();
        // SAFETY: the places of the runs in `placed` are the first `n` of each array, for offsets twice as many, if the column
        // is requested; all were written before `map_with` returned, or it would have unwound.
        unsafe {
            self.ids.set_len(n);
            self.offsets.set_len(if encoder.columns.offsets { 2 * n } else { 0 });
            self.word_ids.set_len(if encoder.columns.word_ids { n } else { 0 });
            self.sequence_ids.set_len(if encoder.columns.sequence_ids { n } else { 0 });
        }
        self.finish(placed, waiting, encoder.columns)
    }

    /// Appends the runs that had no place, and returns the batch.
    fn finish(
        mut self,
        mut placed: Vec<RowChunk>,
        waiting: BTreeMap<usize, RowChunk>,
        columns: &Columns,
    ) -> Result<BatchRows<N>> {
        for chunk in waiting.into_values() {
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
        let n_rows: usize = placed.iter().map(|chunk| chunk.rows.row_offsets.len()).sum();
        let mut row_offsets = Vec::with_capacity(n_rows + 1);
        row_offsets.push(0);
        let (mut truncated, mut n_tokens) = (Vec::with_capacity(n_rows), Vec::new());
        let mut type_ids = TypeIds::default();
        let mut end = 0;
        for RowChunk { rows, type_ids: of_chunk, .. } in &placed {
            row_offsets.extend(rows.row_offsets.iter().map(|&row_end| end as i64 + row_end));
            truncated.extend_from_slice(&rows.truncated);
            n_tokens.extend_from_slice(&rows.n_tokens);
            if columns.type_ids {
                type_ids.append(end, of_chunk);
            }
            end = row_offsets[row_offsets.len() - 1] as usize;
        }
        Ok(BatchRows {
            ids: self.ids,
            row_offsets,
            type_ids: type_ids.into_list(),
            offsets: self.offsets,
            word_ids: self.word_ids,
            sequence_ids: self.sequence_ids,
            n_tokens,
            truncated,
            attention_mask: Vec::new(),
            special_tokens_mask: Vec::new(),
            overflow_to_sample: Vec::new(),
        })
    }
}

impl<'a, N: Number> Progress<'a, N> {
    /// Takes over the run with a number. Returns the runs whose places are known now, each with its places.
    fn place(&mut self, number: usize, chunk: RowChunk) -> Vec<(RowChunk, Places<'a, N>)> {
        self.waiting.insert(number, chunk);
        let mut ready = Vec::new();
        while let Some(mut chunk) = self.waiting.remove(&self.placed.len()) {
            let Some(places) = self.free.take(&chunk) else {
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
    /// Takes the places of the tokens of a chunk, if there are enough.
    fn take(&mut self, chunk: &RowChunk) -> Option<Places<'a, N>> {
        /// Splits off the first `n` of a slice.
        fn split<'a, T>(all: &mut &'a mut [T], n: usize) -> &'a mut [T] {
            all.split_off_mut(..n).expect("no more tokens than there are places")
        }
        let rows = &chunk.rows;
        // The other arrays have as many places, or twice as many, if they are requested, and else a chunk has nothing for them.
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

    /// Returns the number of tokens of the rows.
    fn placed_tokens(&self) -> usize {
        self.rows.row_offsets.last().map_or(0, |&end| end as usize)
    }
}

impl TypeIds {
    /// Appends the segment ids of a chunk to those of `before` tokens.
    fn append(&mut self, before: usize, chunk: &TypeIds) {
        match chunk {
            TypeIds::Same { id, n } => self.extend(before + n, *id),
            TypeIds::List(ids) => {
                let first = mem::take(self).into_list();
                *self = TypeIds::List(first);
                if let TypeIds::List(list) = self {
                    list.extend_from_slice(ids);
                }
            }
        }
    }

    /// Returns the ids as a list.
    fn into_list<N: Number>(self) -> Vec<N> {
        match self {
            TypeIds::Same { id, n } => vec![N::of(id); n],
            TypeIds::List(list) => N::list(list),
        }
    }
}

#[cfg(test)]
mod tests {
    use wordpiece_parallel::thread_pool;

    use super::*;
    use crate::definition::Definition;
    use crate::tokenizer::{EncodeOptions, Tokenizer};
    use crate::vocab::Vocab;

    /// Texts with a token for every byte do not fit into what is reserved.
    #[test]
    fn rows_are_those_of_one_thread_whether_they_fit_or_not() {
        let vocab = Vocab::new([("[UNK]", 0), ("a", 1), ("##a", 2), ("!", 3), ("[CLS]", 4), ("[SEP]", 5)]).unwrap();
        let tokenizer = Tokenizer::new(Definition::bert(vocab)).unwrap();
        let columns = [
            Columns::default(),
            Columns {
                offsets: true,
                word_ids: true,
                sequence_ids: true,
                type_ids: true,
                n_tokens: true,
                ..Columns::default()
            },
        ];
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
