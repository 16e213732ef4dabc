//! Many texts over threads → flat arrays.

use rayon::ThreadPool;
use rayon::prelude::*;

use crate::error::Result;
use crate::inputs::assemble::{Sink, set_sequence, trimmed};
use crate::inputs::layout::{Sequences, Slot};
use crate::inputs::pieces::Pieces;
use crate::inputs::{Encoding, PadLength, Padding, Side};
use crate::memory;
use crate::scratch::Scratch;
use crate::tokenizer::{EncodeOptions, Input, Text, Tokenizer, Wanted};
use crate::vocab::Vocab;

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

/// The rows of a run of texts, not yet padded. The attention mask follows from their lengths.
#[derive(Default)]
struct Chunk {
    rows: BatchRows,
    /// What a padding place of each row has for a sequence id: −1, but 0 where nothing is known about sequences.
    pad_sequence_ids: Vec<i32>,
    /// The longest row that is not an overflowing window.
    longest: usize,
}

/// Texts are handed to threads in runs of about this many bytes: enough to make a task worth its cost.
const RUN_BYTES: usize = 1 << 16;

impl BatchRows {
    /// Makes room for what the texts will probably take: a token for every four bytes, as in English.
    fn make_room(&mut self, inputs: &[Input<'_>], options: &EncodeOptions, columns: &Columns) {
        let cut = options.truncation.filter(|_| !columns.windows);
        let most = cut.map_or(usize::MAX, |truncation| truncation.max_length.saturating_mul(inputs.len()));
        let n = (inputs.iter().map(Input::len).sum::<usize>() / 4).min(most);
        memory::reserve(&mut self.ids, n);
        if columns.offsets {
            memory::reserve(&mut self.offsets, 2 * n);
        }
        if columns.word_ids {
            memory::reserve(&mut self.word_ids, n);
        }
        if columns.sequence_ids {
            memory::reserve(&mut self.sequence_ids, n);
        }
    }
}

impl Tokenizer {
    /// Encodes many texts into flat arrays, in the given pool or on this thread; the answer is the same.
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
        Ok(join(chunks, target, columns))
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

    fn encode_chunk(
        &self,
        first: usize,
        inputs: &[Input<'_>],
        options: &EncodeOptions,
        columns: &Columns,
        scratch: &mut Scratch,
    ) -> Result<Chunk> {
        let mut chunk = Chunk::default();
        chunk.rows.make_room(inputs, options, columns);
        for (i, input) in inputs.iter().enumerate() {
            if self
                .append_whole(input, options, columns, &mut chunk, scratch)
                .map_err(|error| error.at_index(first + i))?
            {
                if columns.windows {
                    chunk.rows.overflow_to_sample.push((first + i) as i64);
                }
                continue;
            }
            let all = columns.windows || columns.n_tokens;
            let wanted = Wanted { words: columns.word_ids, spans: columns.offsets, texts: false, all };
            let rows = self.rows(input, options, wanted, scratch).map_err(|error| error.at_index(first + i))?;
            let vocab = &self.definition().vocab;
            let mut write = |picks: &[u32]| {
                let trim = rows.layout.trim_offsets;
                let mut writer = RowWriter { rows: &mut chunk.rows, columns, vocab, trim, sequences: Vec::new() };
                rows.write(picks, &mut writer);
                let pad_sequence_id = writer.finish();
                let start = chunk.rows.row_offsets.last().copied().unwrap_or(0);
                let end = chunk.rows.ids.len() as i64;
                chunk.rows.row_offsets.push(end);
                chunk.pad_sequence_ids.push(pad_sequence_id);
                if columns.windows {
                    chunk.rows.overflow_to_sample.push((first + i) as i64);
                }
                (end - start) as usize
            };
            let length = write(&rows.kept());
            if columns.windows {
                for picks in rows.overflow() {
                    write(&picks);
                }
            }
            chunk.longest = chunk.longest.max(length);
            chunk.rows.truncated.push(rows.truncated());
            if columns.n_tokens {
                chunk.rows.n_tokens.push(rows.n_tokens() as i64);
            }
        }
        Ok(chunk)
    }
}

impl Tokenizer {
    /// Writes the row of a single text that cannot be cut straight into the columns; false where that cannot be done.
    ///
    /// Most batches are of this kind, and a fifth of their time went into carrying ids from one list to another.
    fn append_whole(
        &self,
        input: &Input<'_>,
        options: &EncodeOptions,
        columns: &Columns,
        chunk: &mut Chunk,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let (Text::Raw(text), None) = (&input.first, &input.second) else { return Ok(false) };
        if options.truncation.is_some() || columns.offsets || columns.word_ids || columns.sequence_ids {
            return Ok(false);
        }
        let layout = self.layout(input, options)?;
        let texts = layout.slots.iter().filter(|slot| matches!(slot, Slot::Text { .. })).count();
        if texts != 1 {
            return Ok(false);
        }
        let rows = &mut chunk.rows;
        let start = rows.ids.len();
        for slot in &layout.slots {
            let (type_id, special) = match slot {
                Slot::Special { ids, type_id, .. } => {
                    rows.ids.extend_from_slice(ids);
                    (*type_id, 1)
                }
                Slot::Text { type_id, .. } => {
                    let mut pieces = Pieces { ids: std::mem::take(&mut rows.ids), ..Pieces::default() };
                    let done = self.append_ids(text, options, scratch, &mut pieces);
                    rows.ids = pieces.ids;
                    done?;
                    (*type_id, 0)
                }
            };
            let n = rows.ids.len();
            if columns.type_ids {
                rows.type_ids.resize(n, type_id);
            }
            if columns.special_tokens_mask {
                rows.special_tokens_mask.resize(n, special);
            }
        }
        let n = rows.ids.len();
        rows.row_offsets.push(n as i64);
        rows.truncated.push(false);
        if columns.n_tokens {
            rows.n_tokens.push((n - start) as i64);
        }
        chunk.pad_sequence_ids.push(if layout.sequences == Sequences::Known { -1 } else { 0 });
        chunk.longest = chunk.longest.max(n - start);
        Ok(true)
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
    let mut runs = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (i, input) in inputs.iter().enumerate() {
        bytes += input.len();
        if bytes >= RUN_BYTES {
            runs.push(start..i + 1);
            (start, bytes) = (i + 1, 0);
        }
    }
    runs.push(start..inputs.len());
    let results: Vec<Result<Vec<T>>> = pool.install(|| {
        let run = |run: std::ops::Range<usize>| f(run.start, &inputs[run], &mut tokenizer.scratch());
        runs.into_par_iter().map(run).collect()
    });
    let mut all = Vec::with_capacity(inputs.len());
    for result in results {
        all.append(&mut result?);
    }
    Ok(all)
}

/// Writes one row into the columns that were asked for.
struct RowWriter<'a> {
    rows: &'a mut BatchRows,
    columns: &'a Columns,
    vocab: &'a Vocab,
    trim: Option<bool>,
    sequences: Vec<(u32, std::ops::Range<usize>)>,
}

impl RowWriter<'_> {
    /// Fills in the sequence ids of the row; returns what its padding has.
    fn finish(self) -> i32 {
        let RowWriter { rows, columns, sequences, .. } = self;
        let start = rows.row_offsets.last().map_or(0, |&end| end as usize);
        // As in the reference: where nothing is known about the first text, everything counts as its own.
        let known = sequences.iter().any(|(sequence, _)| *sequence == 0);
        let rest = if known { -1 } else { 0 };
        if columns.sequence_ids {
            rows.sequence_ids.resize(rows.ids.len(), rest);
            debug_assert!(rows.sequence_ids.len() >= start);
            let n_sequences = sequences.len().max(1) as u32;
            for (sequence, range) in sequences.iter().filter(|(sequence, _)| *sequence < n_sequences) {
                rows.sequence_ids[range.clone()].fill(*sequence as i32);
            }
        }
        rest
    }
}

impl Sink for RowWriter<'_> {
    fn special(&mut self, ids: &[u32], _tokens: &[String], type_id: u32) {
        let rows = &mut *self.rows;
        rows.ids.extend_from_slice(ids);
        let n = rows.ids.len();
        if self.columns.type_ids {
            rows.type_ids.resize(n, type_id);
        }
        if self.columns.special_tokens_mask {
            rows.special_tokens_mask.resize(n, 1);
        }
        if self.columns.offsets {
            rows.offsets.resize(2 * n, 0);
        }
        if self.columns.word_ids {
            rows.word_ids.resize(n, -1);
        }
    }

    fn text(&mut self, which: usize, known: bool, pieces: &Pieces, range: std::ops::Range<usize>, type_id: u32) {
        let rows = &mut *self.rows;
        let start = rows.ids.len();
        rows.ids.extend_from_slice(&pieces.ids[range.clone()]);
        let n = rows.ids.len();
        if self.columns.type_ids {
            rows.type_ids.resize(n, type_id);
        }
        if self.columns.special_tokens_mask {
            rows.special_tokens_mask.resize(n, 0);
        }
        if self.columns.word_ids {
            rows.word_ids.extend(pieces.words[range.clone()].iter().map(|&word| word as i32));
        }
        if self.columns.offsets {
            // Room first, then plain stores: appending two numbers at a time takes several times as long.
            let at = rows.offsets.len();
            rows.offsets.resize(2 * n, 0);
            let places = rows.offsets[at..].chunks_exact_mut(2);
            for (place, span) in places.zip(&pieces.spans[range.clone()]) {
                place.copy_from_slice(&[i64::from(span.start), i64::from(span.end)]);
            }
            if let Some(prefix_space) = self.trim {
                for (index, (i, place)) in range.zip(rows.offsets[at..].chunks_exact_mut(2)).enumerate() {
                    let text = pieces.own_text(i).or_else(|| self.vocab.token(pieces.ids[i])).unwrap_or_default();
                    let span = (pieces.spans[i].start, pieces.spans[i].end);
                    let (start, end) = trimmed(text, index, span, prefix_space);
                    place.copy_from_slice(&[i64::from(start), i64::from(end)]);
                }
            }
        }
        if known {
            set_sequence(&mut self.sequences, which as u32, start..n);
        }
    }
}

/// Puts the chunks one after the other, each row filled up to the target.
fn join<N: Number>(chunks: Vec<Chunk>, target: Option<(usize, &Padding)>, columns: &Columns) -> BatchRows<N> {
    if target.is_none() && chunks.len() == 1 {
        return chunks.into_iter().map(|chunk| whole(chunk.rows, columns)).next().expect("one chunk");
    }
    joined(chunks, target, columns)
}

/// The rows of a single chunk without padding: nothing need be copied.
fn whole<N: Number>(rows: BatchRows, columns: &Columns) -> BatchRows<N> {
    let mut row_offsets = rows.row_offsets;
    row_offsets.insert(0, 0);
    let n = if columns.attention_mask { rows.ids.len() } else { 0 };
    BatchRows {
        ids: N::list(rows.ids),
        row_offsets,
        type_ids: N::list(rows.type_ids),
        attention_mask: vec![N::of(1); n],
        special_tokens_mask: N::list(rows.special_tokens_mask),
        offsets: rows.offsets,
        word_ids: rows.word_ids,
        sequence_ids: rows.sequence_ids,
        overflow_to_sample: rows.overflow_to_sample,
        n_tokens: rows.n_tokens,
        truncated: rows.truncated,
    }
}

fn joined<N: Number>(chunks: Vec<Chunk>, target: Option<(usize, &Padding)>, columns: &Columns) -> BatchRows<N> {
    let mut out = BatchRows {
        ids: Vec::new(),
        row_offsets: vec![0],
        type_ids: Vec::new(),
        attention_mask: Vec::new(),
        special_tokens_mask: Vec::new(),
        offsets: Vec::new(),
        word_ids: Vec::new(),
        sequence_ids: Vec::new(),
        overflow_to_sample: Vec::new(),
        n_tokens: Vec::new(),
        truncated: Vec::new(),
    };
    let rows = chunks.iter().map(|chunk| chunk.rows.row_offsets.len()).sum::<usize>();
    let tokens = chunks.iter().map(|chunk| chunk.rows.ids.len()).sum::<usize>();
    let size = target.map_or(tokens, |(target, _)| tokens.max(rows.saturating_mul(target)));
    let room = |wanted: bool| if wanted { size } else { 0 };
    memory::reserve(&mut out.ids, size);
    memory::reserve(&mut out.type_ids, room(columns.type_ids));
    memory::reserve(&mut out.attention_mask, room(columns.attention_mask));
    memory::reserve(&mut out.special_tokens_mask, room(columns.special_tokens_mask));
    memory::reserve(&mut out.offsets, 2 * room(columns.offsets));
    for chunk in chunks {
        let rows = &chunk.rows;
        out.overflow_to_sample.extend_from_slice(&rows.overflow_to_sample);
        out.n_tokens.extend_from_slice(&rows.n_tokens);
        out.truncated.extend_from_slice(&rows.truncated);
        let Some((target, padding)) = target else {
            let base = out.ids.len() as i64;
            out.row_offsets.extend(rows.row_offsets.iter().map(|end| base + end));
            out.ids.extend(rows.ids.iter().map(|&id| N::of(id)));
            out.type_ids.extend(rows.type_ids.iter().map(|&id| N::of(id)));
            if columns.attention_mask {
                out.attention_mask.resize(out.ids.len(), N::of(1));
            }
            out.special_tokens_mask.extend(rows.special_tokens_mask.iter().map(|&bit| N::of(bit)));
            out.offsets.extend_from_slice(&rows.offsets);
            out.word_ids.extend_from_slice(&rows.word_ids);
            out.sequence_ids.extend_from_slice(&rows.sequence_ids);
            continue;
        };
        let mut start = 0;
        for (&end, &pad_sequence_id) in rows.row_offsets.iter().zip(&chunk.pad_sequence_ids) {
            let row = start..end as usize;
            start = end as usize;
            let pad = Pad { n: target.saturating_sub(row.len()), left: padding.side == Side::Left };
            pad.column(&rows.ids[row.clone()], N::of, &mut out.ids, N::of(padding.id));
            if columns.type_ids {
                pad.column(&rows.type_ids[row.clone()], N::of, &mut out.type_ids, N::of(padding.type_id));
            }
            if columns.attention_mask {
                pad.column(&rows.ids[row.clone()], |_| N::of(1), &mut out.attention_mask, N::of(0));
            }
            if columns.special_tokens_mask {
                pad.column(&rows.special_tokens_mask[row.clone()], N::of, &mut out.special_tokens_mask, N::of(1));
            }
            if columns.word_ids {
                pad.column(&rows.word_ids[row.clone()], |id| id, &mut out.word_ids, -1);
            }
            if columns.sequence_ids {
                pad.column(&rows.sequence_ids[row.clone()], |id| id, &mut out.sequence_ids, pad_sequence_id);
            }
            if columns.offsets {
                let pairs = Pad { n: 2 * pad.n, ..pad };
                pairs.column(&rows.offsets[2 * row.start..2 * row.end], |at| at, &mut out.offsets, 0);
            }
            out.row_offsets.push(out.ids.len() as i64);
        }
    }
    out
}

/// How a row is filled up.
#[derive(Clone, Copy)]
struct Pad {
    n: usize,
    left: bool,
}

impl Pad {
    fn column<F: Copy, T: Copy>(self, row: &[F], as_number: impl Fn(F) -> T, to: &mut Vec<T>, value: T) {
        if self.left {
            to.resize(to.len() + self.n, value);
        }
        to.extend(row.iter().map(|&number| as_number(number)));
        if !self.left {
            to.resize(to.len() + self.n, value);
        }
    }
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
