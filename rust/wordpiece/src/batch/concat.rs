//! Concatenates chunks into the arrays of a batch, and pads each row to the target length.
//!
//! A single chunk without padding is moved, not copied. Otherwise each column is written once, into memory that is not
//! initialised before, by several threads if it is large.

use std::mem::MaybeUninit;
use std::ops::Range;

use wordpiece_parallel::{Workers, checkpoint, map_with};

use super::chunk::{RowChunk, TypeIds};
use super::columns::{BatchRows, Columns, Number};
use crate::error::{Error, Result};
use crate::inputs::{Padding, Side};
use crate::memory;

/// Puts the rows of all chunks into one array for each column. With a target, shorter rows are padded to that length.
///
/// # Errors
///
/// [`Error::OutOfMemory`] if the arrays cannot be allocated.
pub(super) fn concatenate<N: Number>(
    mut chunks: Vec<RowChunk>,
    target: Option<(usize, &Padding)>,
    columns: &Columns,
    pool: Option<Workers>,
) -> Result<BatchRows<N>> {
    match chunks.pop() {
        Some(chunk) if target.is_none() && chunks.is_empty() => only_chunk(chunk, columns),
        last => {
            chunks.extend(last);
            BatchLayout::new(&chunks, target, pool)?.batch(columns)
        }
    }
}

/// Returns the rows of a batch that consists of one chunk and has no padding, without copying those columns that have
/// their type already.
fn only_chunk<N: Number>(chunk: RowChunk, columns: &Columns) -> Result<BatchRows<N>> {
    let RowChunk { mut rows, type_ids, longest, .. } = chunk;
    // Give back the capacity that was reserved and not used.
    rows.ids.shrink_to_fit();
    rows.offsets.shrink_to_fit();
    rows.word_ids.shrink_to_fit();
    rows.sequence_ids.shrink_to_fit();
    let mut row_offsets = rows.row_offsets;
    row_offsets.insert(0, 0);
    let (n, n_rows) = (rows.ids.len(), row_offsets.len() - 1);
    let new = Columns { offsets: false, word_ids: false, sequence_ids: false, ..*columns };
    memory::check_tokens(n, n_rows, longest, new.token_bytes::<N>())?;
    let length = |is_requested: bool| if is_requested { n } else { 0 };
    Ok(BatchRows {
        ids: N::list(rows.ids),
        row_offsets,
        type_ids: match type_ids {
            TypeIds::Same { id, .. } => memory::try_filled(N::of(id), length(columns.type_ids), n_rows, longest)?,
            TypeIds::List(list) => N::list(list),
        },
        attention_mask: memory::try_filled(N::of(1), length(columns.attention_mask), n_rows, longest)?,
        special_tokens_mask: N::list(rows.special_tokens_mask),
        offsets: rows.offsets,
        word_ids: rows.word_ids,
        sequence_ids: rows.sequence_ids,
        overflow_to_sample: rows.overflow_to_sample,
        n_tokens: rows.n_tokens,
        truncated: rows.truncated,
    })
}

/// The positions of the rows of chunks in the columns of a batch.
pub(super) struct BatchLayout<'a> {
    /// In the order of the batch.
    chunks: &'a [RowChunk],
    /// Number of tokens of each chunk, padding included.
    sizes: Vec<usize>,
    /// Where each row begins, and where the last one ends, padding included.
    pub row_offsets: Vec<i64>,
    /// Rows are padded to this length in tokens; 0 without padding.
    target: usize,
    /// The length of the longest row, padding included.
    longest: usize,
    /// The tokens to pad with, and the side.
    padding: Option<&'a Padding>,
    /// The threads that share the writing of large columns with this one.
    pool: Option<Workers>,
}

/// Columns of fewer bytes are written by one thread: waking others would take longer.
const MIN_BYTES_FOR_THREADS: usize = 1 << 20;

/// Copying the rows of a chunk can be interrupted after this many of them.
const ROWS_PER_CHECKPOINT: usize = 64;

/// No machine has memory for the rows of a batch with this many tokens.
const MAX_TOKENS: usize = if usize::BITS > 48 { 1 << 48 } else { usize::MAX >> 8 };

impl<'a> BatchLayout<'a> {
    /// Works out where each row begins. `target` is the length to pad to, if rows are padded.
    ///
    /// An error if the number of all tokens does not fit 48 bits, so that later sizes cannot overflow, or if there is
    /// no memory for the ends of rows.
    pub fn new(
        chunks: &'a [RowChunk],
        target: Option<(usize, &'a Padding)>,
        pool: Option<Workers>,
    ) -> Result<BatchLayout<'a>> {
        let padding = target.map(|(_, padding)| padding);
        let target = target.map_or(0, |(target, _)| target);
        let longest = chunks.iter().map(|chunk| chunk.longest).max().unwrap_or(0).max(target);
        let n_rows: usize = chunks.iter().map(|chunk| chunk.rows.row_offsets.len()).sum();
        let mut row_offsets = Vec::new();
        memory::try_reserve(&mut row_offsets, n_rows + 1, n_rows, longest)?;
        row_offsets.push(0);
        let mut sizes = Vec::with_capacity(chunks.len());
        let mut end = 0;
        for chunk in chunks {
            let start = end;
            for row in chunk.row_ranges() {
                end = row.len().max(target).saturating_add(end);
                row_offsets.push(end as i64);
            }
            sizes.push(end - start);
        }
        if end >= MAX_TOKENS {
            let bytes = end.saturating_mul(size_of::<u32>());
            return Err(Error::OutOfMemory { rows: n_rows, length: longest, bytes });
        }
        Ok(BatchLayout { chunks, sizes, row_offsets, target, longest, padding, pool })
    }

    /// Writes all requested columns, one after the other. Those that are not requested stay empty.
    fn batch<N: Number>(self, columns: &Columns) -> Result<BatchRows<N>> {
        // All of them together: if the last did not fit, the others would have been written for nothing.
        memory::check_tokens(self.n_tokens(), self.n_rows(), self.longest, columns.token_bytes::<N>())?;
        let pad_id = self.padding.map_or(0, |padding| padding.id);
        let when = |is_requested: bool| is_requested.then_some(());
        let attention_mask = when(columns.attention_mask)
            .map(|()| self.column(1, |_, _, to| to.fill(N::of(1)), |_, _| N::of(0)))
            .transpose()?;
        let special_tokens_mask = when(columns.special_tokens_mask)
            .map(|()| self.numbers(|chunk| &chunk.rows.special_tokens_mask, 1))
            .transpose()?;
        let offsets = when(columns.offsets)
            .map(|()| {
                let write = |chunk: &RowChunk, row: Range<usize>, to: Unwritten<'_, _>| {
                    to.copy(&chunk.rows.offsets[2 * row.start..2 * row.end], |at| at)
                };
                self.column(2, write, |_, _| 0)
            })
            .transpose()?;
        let word_ids = when(columns.word_ids)
            .map(|()| self.column(1, |chunk, row, to| to.copy(&chunk.rows.word_ids[row], |id| id), |_, _| -1))
            .transpose()?;
        let sequence_ids = when(columns.sequence_ids)
            .map(|()| {
                let write =
                    |chunk: &RowChunk, row, to: Unwritten<'_, _>| to.copy(&chunk.rows.sequence_ids[row], |id| id);
                self.column(1, write, |chunk, i| chunk.pad_sequence_ids[i])
            })
            .transpose()?;
        Ok(BatchRows {
            ids: self.numbers(|chunk| &chunk.rows.ids, pad_id)?,
            type_ids: when(columns.type_ids).map(|()| self.type_ids()).transpose()?.unwrap_or_default(),
            attention_mask: attention_mask.unwrap_or_default(),
            special_tokens_mask: special_tokens_mask.unwrap_or_default(),
            offsets: offsets.unwrap_or_default(),
            word_ids: word_ids.unwrap_or_default(),
            sequence_ids: sequence_ids.unwrap_or_default(),
            overflow_to_sample: self.all(|chunk| &chunk.rows.overflow_to_sample)?,
            n_tokens: self.all(|chunk| &chunk.rows.n_tokens)?,
            truncated: self.all(|chunk| &chunk.rows.truncated)?,
            row_offsets: self.row_offsets,
        })
    }

    /// Returns the number of rows.
    fn n_rows(&self) -> usize {
        self.row_offsets.len() - 1
    }

    /// Returns the number of tokens of all rows, padding included.
    fn n_tokens(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// Writes the column of segment ids.
    pub fn type_ids<N: Number>(&self) -> Result<Vec<N>> {
        let pad_id = self.padding.map_or(0, |padding| padding.type_id);
        let is_pad_id = |chunk: &RowChunk| match chunk.type_ids {
            TypeIds::Same { id, n } => n == 0 || id == pad_id,
            TypeIds::List(_) => false,
        };
        // If all tokens have one id, and padding has it too, there is nothing to look up. Zeros come from the system,
        // which need not write them.
        if self.chunks.iter().all(is_pad_id) {
            return memory::try_filled(N::of(pad_id), self.n_tokens(), self.n_rows(), self.longest);
        }
        let write = |chunk: &RowChunk, row, to: Unwritten<'_, _>| match &chunk.type_ids {
            TypeIds::Same { id, .. } => to.fill(N::of(*id)),
            TypeIds::List(list) => to.copy(&list[row], N::of),
        };
        self.column(1, write, |_, _| N::of(pad_id))
    }

    /// Writes a column of model inputs.
    fn numbers<N: Number>(&self, list: impl Fn(&RowChunk) -> &[u32] + Sync, pad: u32) -> Result<Vec<N>> {
        let write = |chunk: &RowChunk, row, to: Unwritten<'_, _>| to.copy(&list(chunk)[row], N::of);
        self.column(1, write, |_, _| N::of(pad))
    }

    /// Concatenates what each chunk has of something that is not padded.
    pub fn all<T: Copy>(&self, list: impl Fn(&RowChunk) -> &[T]) -> Result<Vec<T>> {
        let n = self.chunks.iter().map(|chunk| list(chunk).len()).sum();
        let mut all = Vec::new();
        memory::try_reserve(&mut all, n, self.n_rows(), self.longest)?;
        self.chunks.iter().for_each(|chunk| all.extend_from_slice(list(chunk)));
        Ok(all)
    }

    /// Writes a column of `width` values for each token, divided among threads by chunks if it is large.
    ///
    /// `write` writes the values of the tokens in a range of the chunk; `pad` returns the padding of the chunk's `i`-th row.
    fn column<T: Copy + Send>(
        &self,
        width: usize,
        write: impl Fn(&RowChunk, Range<usize>, Unwritten<'_, T>) -> Written + Sync,
        pad: impl Fn(&RowChunk, usize) -> T + Sync,
    ) -> Result<Vec<T>> {
        let total = width * self.n_tokens();
        let mut all = Vec::new();
        memory::try_reserve(&mut all, total, self.n_rows(), self.longest)?;
        let mut rest = &mut all.spare_capacity_mut()[..total];
        let mut parts = Vec::with_capacity(self.chunks.len());
        for (chunk, size) in self.chunks.iter().zip(&self.sizes) {
            let (part, others) = rest.split_at_mut(width * size);
            parts.push((chunk, part));
            rest = others;
        }
        let is_left = self.padding.is_some_and(|padding| padding.side == Side::Left);
        let write_part = |(chunk, mut part): (&RowChunk, &mut [MaybeUninit<T>])| {
            for (i, row) in chunk.row_ranges().enumerate() {
                if i % ROWS_PER_CHECKPOINT == 0 {
                    checkpoint();
                }
                let (n, n_padded) = (width * row.len(), width * row.len().max(self.target));
                let (here, others) = part.split_at_mut(n_padded);
                let (tokens, padding) = match is_left {
                    true => {
                        let (padding, tokens) = here.split_at_mut(n_padded - n);
                        (tokens, padding)
                    }
                    false => here.split_at_mut(n),
                };
                let Written = write(chunk, row, Unwritten(tokens));
                if !padding.is_empty() {
                    let Written = Unwritten(padding).fill(pad(chunk, i));
                }
                part = others;
            }
            assert!(part.is_empty(), "the rows of a chunk have its size");
        };
        let pool = self.pool.filter(|_| total * size_of::<T>() >= MIN_BYTES_FOR_THREADS);
        map_with(parts, pool, || (), |(), part| write_part(part));
        assert!(rest.is_empty(), "the chunks have the size of the column");
        // SAFETY: the parts cover the first `total` elements of the spare capacity, and the rows of a chunk cover its
        // part, as the two assertions check. Of each row `write` wrote all tokens, or it could not have returned
        // `Written`, and `fill` the padding. A thread that panicked would have unwound through `map_with`.
        unsafe { all.set_len(total) };
        Ok(all)
    }
}

/// The memory of some values that is not initialised yet.
pub(super) struct Unwritten<'a, T>(pub &'a mut [MaybeUninit<T>]);

/// Says that all values of an [`Unwritten`] were written: nothing but its methods returns it.
pub(super) struct Written;

impl<T: Copy> Unwritten<'_, T> {
    /// Writes the values of a list, each converted.
    ///
    /// # Panics
    ///
    /// If the list does not have as many values as there is memory for.
    #[inline]
    pub fn copy<F: Copy>(self, from: &[F], convert: impl Fn(F) -> T) -> Written {
        assert_eq!(from.len(), self.0.len());
        for (to, &from) in self.0.iter_mut().zip(from) {
            to.write(convert(from));
        }
        Written
    }

    /// Writes the same value everywhere.
    #[inline]
    fn fill(self, value: T) -> Written {
        self.0.fill(MaybeUninit::new(value));
        Written
    }
}
