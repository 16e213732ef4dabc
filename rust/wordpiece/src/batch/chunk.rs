//! Encodes a run of inputs into rows, without padding.
//!
//! Each input takes one of two paths: plain texts together ([`plain`](super::plain)), everything else by itself, slot by
//! slot of its layout. Both append to the same columns, and write the same rows for the inputs that both accept.

use std::ops::Range;

use wordpiece_parallel::checkpoint;

use super::columns::{BatchRows, Columns};
use crate::error::Result;
use crate::inputs::assemble::{RowSink, WindowedInput};
use crate::inputs::encoding::set_sequence;
use crate::inputs::pieces::Pieces;
use crate::inputs::trim::trim_offsets;
use crate::memory;
use crate::scratch::EncodeScratch;
use crate::tokenizer::{BatchItem, EncodeOptions, Input, PlainLayout, RequestedFields, Tokenizer};
use crate::vocab::Vocab;

/// The rows of a run of inputs, without padding. The attention mask follows from their lengths.
#[derive(Default)]
pub(super) struct RowChunk {
    /// All columns but segment ids and the attention mask. `row_offsets` has the end of each row only.
    pub rows: BatchRows,
    /// The segment ids of all rows.
    pub type_ids: TypeIds,
    /// The sequence id of each row's padding: −1, but 0 where sequences are not known. Only if sequence ids are
    /// requested.
    pub pad_sequence_ids: Vec<i32>,
    /// Length of the longest row that is not an overflowing window, in tokens.
    pub longest: usize,
}

/// The segment ids of a chunk. Mostly all are the same, and then no list is kept.
pub(super) enum TypeIds {
    /// `n` times the same id.
    Same { id: u32, n: usize },
    /// One for each token.
    List(Vec<u32>),
}

impl Default for TypeIds {
    fn default() -> TypeIds {
        TypeIds::Same { id: 0, n: 0 }
    }
}

impl TypeIds {
    /// Appends an id until there are `total`.
    pub fn extend(&mut self, total: usize, new: u32) {
        match self {
            TypeIds::Same { id, n } if *id == new || *n == 0 => (*id, *n) = (new, total),
            TypeIds::Same { id, n } => {
                let mut list = vec![*id; *n];
                list.resize(total, new);
                *self = TypeIds::List(list);
            }
            TypeIds::List(list) => list.resize(total, new),
        }
    }
}

impl RowChunk {
    /// Returns the range of each row in the columns with a value for each token.
    pub fn row_ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.rows.row_offsets.iter().map(|&end| end as usize);
        std::iter::once(0).chain(ends.clone()).zip(ends).map(|(start, end)| start..end)
    }

    /// Returns the number of tokens of the rows, by their ends.
    pub fn n_tokens(&self) -> usize {
        self.rows.row_offsets.last().map_or(0, |&end| end as usize)
    }

    /// Checks that each column that is copied token by token has the values of all tokens of the rows if it is
    /// requested, and otherwise none.
    ///
    /// # Panics
    ///
    /// If one has more or fewer.
    pub fn assert_columns(&self, columns: &Columns) {
        let (rows, n) = (&self.rows, self.n_tokens());
        let when = |is_requested: bool, n: usize| if is_requested { n } else { 0 };
        assert_eq!(rows.ids.len(), n, "an id for each token");
        assert_eq!(rows.offsets.len(), when(columns.offsets, 2 * n), "two offsets for each token");
        assert_eq!(rows.word_ids.len(), when(columns.word_ids, n), "a word id for each token");
        assert_eq!(rows.sequence_ids.len(), when(columns.sequence_ids, n), "a sequence id for each token");
    }

    /// Appends special tokens to all columns but sequence ids, which depend on the complete row.
    #[inline]
    pub fn push_special(&mut self, ids: &[u32], type_id: u32, columns: &Columns) {
        let rows = &mut self.rows;
        match *ids {
            // Nearly always there is one.
            [id] => rows.ids.push(id),
            _ => rows.ids.extend_from_slice(ids),
        }
        let n = rows.ids.len();
        if columns.type_ids {
            self.type_ids.extend(n, type_id);
        }
        if columns.special_tokens_mask {
            rows.special_tokens_mask.resize(n, 1);
        }
        if columns.offsets {
            rows.offsets.resize(2 * n, 0);
        }
        if columns.word_ids {
            rows.word_ids.resize(n, -1);
        }
    }
}

impl BatchRows {
    /// Reserves what the rows of some inputs will hardly exceed: a token for every two bytes. English has one for five
    /// bytes, source code one for three. Memory that is never written costs nothing; a list that grows is copied.
    fn reserve(&mut self, inputs: &[impl BatchItem], options: &EncodeOptions, columns: &Columns) -> Result<()> {
        let truncation = options.truncation.filter(|_| !columns.windows);
        let max = truncation.map_or(usize::MAX, |truncation| truncation.max_length.saturating_mul(inputs.len()));
        let n = (inputs.iter().map(BatchItem::bytes).sum::<usize>() / 2).min(max);
        let rows = inputs.len();
        let length = n.div_ceil(rows.max(1));
        memory::try_reserve(&mut self.ids, n, rows, length)?;
        if columns.offsets {
            memory::try_reserve(&mut self.offsets, 2 * n, rows, length)?;
        }
        if columns.word_ids {
            memory::try_reserve(&mut self.word_ids, n, rows, length)?;
        }
        if columns.sequence_ids {
            memory::try_reserve(&mut self.sequence_ids, n, rows, length)?;
        }
        Ok(())
    }
}

/// Encodes the runs of a batch. Threads share it.
pub(super) struct ChunkEncoder<'a> {
    /// The tokenizer of the batch.
    pub tokenizer: &'a Tokenizer,
    /// How inputs are encoded; padding is added later.
    pub options: &'a EncodeOptions,
    /// The requested columns.
    pub columns: &'a Columns,
    /// How the rows of plain texts are laid out; `None` if all inputs take the general path.
    plain: Option<PlainLayout<'a>>,
    /// The properties of pieces that the columns require.
    fields: RequestedFields,
}

impl<'a> ChunkEncoder<'a> {
    /// Works out, once for the batch, what its columns need and which inputs are plain.
    pub fn new(tokenizer: &'a Tokenizer, options: &'a EncodeOptions, columns: &'a Columns) -> ChunkEncoder<'a> {
        let fields = RequestedFields {
            word_ids: columns.word_ids,
            spans: columns.offsets,
            texts: false,
            all_pieces: columns.windows || columns.n_tokens,
        };
        // A plain text has one row, however much truncation drops.
        let has_windows = columns.windows && options.truncation.is_some();
        let plain = if has_windows { None } else { tokenizer.plain_layout(options, fields) };
        ChunkEncoder { tokenizer, options, columns, plain, fields }
    }

    /// Encodes a run of items, the first of which has index `first` in the batch, after the rows of a chunk.
    ///
    /// # Errors
    ///
    /// The error of the first item that has one, with its index in the batch.
    pub fn encode_items<I: BatchItem>(
        &self,
        first: usize,
        items: &[I],
        scratch: &mut EncodeScratch,
        chunk: &mut RowChunk,
    ) -> Result<()> {
        self.reserve(items, chunk)?;
        I::with_inputs(items, first, |inputs| self.encode_into(first, inputs, scratch, chunk))
    }

    /// Reserves memory for the rows of some items.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if it cannot be allocated.
    pub fn reserve(&self, items: &[impl BatchItem], chunk: &mut RowChunk) -> Result<()> {
        chunk.rows.reserve(items, self.options, self.columns)
    }

    /// Encodes a run of inputs, the first of which has index `first` in the batch, after the rows of a chunk. Memory for them
    /// should have been reserved.
    ///
    /// # Errors
    ///
    /// The error of the first input that has one, with its index in the batch.
    pub fn encode_into(
        &self,
        first: usize,
        inputs: &[Input<'_>],
        scratch: &mut EncodeScratch,
        chunk: &mut RowChunk,
    ) -> Result<()> {
        let mut i = 0;
        while i < inputs.len() {
            checkpoint();
            if let Some(plain) = &self.plain {
                i += self.append_plain(plain, first + i, &inputs[i..], chunk, scratch);
            }
            let Some(input) = inputs.get(i) else { break };
            let rows = self.tokenizer.rows(input, self.options, self.fields, scratch);
            let appended = rows.and_then(|rows| self.append_rows(&rows, first + i, chunk));
            appended.map_err(|error| error.at_index(first + i))?;
            i += 1;
        }
        Ok(())
    }

    /// Appends the kept row of the input with an index in the batch and, if requested, its overflowing windows.
    fn append_rows(&self, input: &WindowedInput<'_>, index: usize, chunk: &mut RowChunk) -> Result<()> {
        let length = self.append_row(input, &input.kept(), index, chunk);
        if self.columns.windows && input.truncated() {
            input.check_memory(self.token_bytes())?;
            for choice in input.overflow() {
                checkpoint();
                self.append_row(input, &choice, index, chunk);
            }
        }
        chunk.longest = chunk.longest.max(length);
        chunk.rows.truncated.push(input.truncated());
        if self.columns.n_tokens {
            chunk.rows.n_tokens.push(input.n_tokens() as i64);
        }
        Ok(())
    }

    /// Returns the number of bytes that a token needs in a [`RowChunk`].
    fn token_bytes(&self) -> usize {
        let Columns { type_ids, special_tokens_mask, offsets, word_ids, sequence_ids, .. } = *self.columns;
        let narrow = [true, type_ids, special_tokens_mask, word_ids, sequence_ids];
        let narrow = narrow.iter().filter(|is_requested| **is_requested).count();
        size_of::<u32>() * narrow + if offsets { 2 * size_of::<i64>() } else { 0 }
    }

    /// Appends one row; returns its length.
    fn append_row(&self, input: &WindowedInput<'_>, choice: &[u32], index: usize, chunk: &mut RowChunk) -> usize {
        let start = chunk.rows.ids.len();
        let mut writer = RowWriter {
            chunk,
            columns: self.columns,
            vocab: &self.tokenizer.definition().vocab,
            trim: input.layout.trim_offsets,
            sequences: Vec::new(),
        };
        input.write(choice, &mut writer);
        let pad_sequence_id = writer.finish();
        let end = chunk.rows.ids.len();
        chunk.rows.row_offsets.push(end as i64);
        if self.columns.sequence_ids {
            chunk.pad_sequence_ids.push(pad_sequence_id);
        }
        if self.columns.windows {
            chunk.rows.overflow_to_sample.push(index as i64);
        }
        end - start
    }
}

/// Appends one row to the requested columns of a chunk.
struct RowWriter<'a> {
    chunk: &'a mut RowChunk,
    columns: &'a Columns,
    vocab: &'a Vocab,
    /// How offsets are trimmed, as in [`Layout`](crate::inputs::layout::Layout).
    trim: Option<bool>,
    /// The tokens of the chunk that are known to come from each text.
    sequences: Vec<(u32, Range<usize>)>,
}

impl RowWriter<'_> {
    /// Fills in the sequence ids of the row; returns the one of its padding.
    fn finish(self) -> i32 {
        let RowWriter { chunk: RowChunk { rows, .. }, columns, sequences, .. } = self;
        // As in the reference: if the first text is not known anywhere, everything counts as it.
        let is_first_known = sequences.iter().any(|(sequence, _)| *sequence == 0);
        let other = if is_first_known { -1 } else { 0 };
        if columns.sequence_ids {
            rows.sequence_ids.resize(rows.ids.len(), other);
            let n_sequences = sequences.len().max(1) as u32;
            for (sequence, range) in sequences.iter().filter(|(sequence, _)| *sequence < n_sequences) {
                rows.sequence_ids[range.clone()].fill(*sequence as i32);
            }
        }
        other
    }
}

impl RowSink for RowWriter<'_> {
    fn special(&mut self, ids: &[u32], _tokens: &[String], type_id: u32) {
        self.chunk.push_special(ids, type_id, self.columns);
    }

    fn text(&mut self, text: usize, known: bool, pieces: &Pieces, range: Range<usize>, type_id: u32) {
        let rows = &mut self.chunk.rows;
        let start = rows.ids.len();
        rows.ids.extend_from_slice(&pieces.ids[range.clone()]);
        let n = rows.ids.len();
        if self.columns.type_ids {
            self.chunk.type_ids.extend(n, type_id);
        }
        if self.columns.special_tokens_mask {
            rows.special_tokens_mask.resize(n, 0);
        }
        if self.columns.word_ids {
            rows.word_ids.extend(pieces.words[range.clone()].iter().map(|&word| word as i32));
        }
        if self.columns.offsets {
            // Resizing once and storing takes a fraction of the time of appending two numbers at a time.
            let at = rows.offsets.len();
            rows.offsets.resize(2 * n, 0);
            let pairs = rows.offsets[at..].chunks_exact_mut(2);
            for (pair, span) in pairs.zip(&pieces.spans[range.clone()]) {
                pair.copy_from_slice(&[i64::from(span.start), i64::from(span.end)]);
            }
            if let Some(prefix_space) = self.trim {
                for (index, (i, pair)) in range.zip(rows.offsets[at..].chunks_exact_mut(2)).enumerate() {
                    let text = pieces.own_text(i).or_else(|| self.vocab.token(pieces.ids[i])).unwrap_or_default();
                    let span = (pieces.spans[i].start, pieces.spans[i].end);
                    let (start, end) = trim_offsets(text, index, span, prefix_space);
                    pair.copy_from_slice(&[i64::from(start), i64::from(end)]);
                }
            }
        }
        if known {
            set_sequence(&mut self.sequences, text as u32, start..n);
        }
    }
}
