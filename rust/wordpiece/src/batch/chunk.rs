//! A run of texts → their rows, not yet padded.

use std::ops::Range;

use super::{BatchRows, Columns};
use crate::error::Result;
use crate::inputs::assemble::RowSink;
use crate::inputs::encoding::set_sequence;
use crate::inputs::pieces::Pieces;
use crate::inputs::trim::trim_offsets;
use crate::memory;
use crate::scratch::Scratch;
use crate::tokenizer::{EncodeOptions, Input, Tokenizer, Wanted};
use crate::vocab::Vocab;

/// The rows of a run of texts, not yet padded. The attention mask follows from their lengths.
#[derive(Default)]
pub(super) struct Chunk {
    /// All columns but segment ids.
    pub rows: BatchRows,
    pub types: Types,
    /// What a padding place of each row has for a sequence id: −1, but 0 where nothing is known about sequences. Kept when
    /// sequence ids are.
    pub pad_sequence_ids: Vec<i32>,
    /// The longest row that is not an overflowing window.
    pub longest: usize,
}

/// The segment ids of a run of texts. Mostly they are all the same, and no list is kept.
pub(super) enum Types {
    /// So many, all the same.
    Same {
        id: u32,
        n: usize,
    },
    List(Vec<u32>),
}

impl Default for Types {
    fn default() -> Types {
        Types::Same { id: 0, n: 0 }
    }
}

impl Types {
    /// Adds as many of one id as make `total`.
    pub fn extend(&mut self, total: usize, new: u32) {
        match self {
            Types::Same { id, n } if *id == new || *n == 0 => (*id, *n) = (new, total),
            Types::Same { id, n } => {
                let mut list = vec![*id; *n];
                list.resize(total, new);
                *self = Types::List(list);
            }
            Types::List(list) => list.resize(total, new),
        }
    }
}

impl Chunk {
    /// The tokens of each row.
    pub fn rows(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.rows.row_offsets.iter().map(|&end| end as usize);
        std::iter::once(0).chain(ends.clone()).zip(ends).map(|(start, end)| start..end)
    }
}

impl BatchRows {
    /// Makes room for what the texts will hardly exceed, a token for every two bytes; English has one for five, code one
    /// for three. What is not touched costs nothing, and a list that grows is written twice.
    fn make_room(&mut self, inputs: &[Input<'_>], options: &EncodeOptions, columns: &Columns) {
        let cut = options.truncation.filter(|_| !columns.windows);
        let most = cut.map_or(usize::MAX, |truncation| truncation.max_length.saturating_mul(inputs.len()));
        let n = (inputs.iter().map(Input::len).sum::<usize>() / 2).min(most);
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
    pub(super) fn encode_chunk(
        &self,
        first: usize,
        inputs: &[Input<'_>],
        options: &EncodeOptions,
        columns: &Columns,
        scratch: &mut Scratch,
    ) -> Result<Chunk> {
        let mut chunk = Chunk::default();
        chunk.rows.make_room(inputs, options, columns);
        let plain = self.plain(options, columns);
        let mut i = 0;
        while i < inputs.len() {
            if let Some(plain) = &plain {
                i += self.append_plain(plain, first + i, &inputs[i..], options, columns, &mut chunk, scratch);
            }
            let Some(input) = inputs.get(i) else { break };
            let all = columns.windows || columns.n_tokens;
            let wanted = Wanted { words: columns.word_ids, spans: columns.offsets, texts: false, all };
            let rows = self.rows(input, options, wanted, scratch).map_err(|error| error.at_index(first + i))?;
            let vocab = &self.definition().vocab;
            let mut write = |picks: &[u32]| {
                let trim = rows.layout.trim_offsets;
                let Chunk { rows: to, types, .. } = &mut chunk;
                let mut writer = RowWriter { rows: to, types, columns, vocab, trim, sequences: Vec::new() };
                rows.write(picks, &mut writer);
                let pad_sequence_id = writer.finish();
                let start = chunk.rows.row_offsets.last().copied().unwrap_or(0);
                let end = chunk.rows.ids.len() as i64;
                chunk.rows.row_offsets.push(end);
                if columns.sequence_ids {
                    chunk.pad_sequence_ids.push(pad_sequence_id);
                }
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
            i += 1;
        }
        Ok(chunk)
    }
}

/// Writes one row into the columns that were asked for.
struct RowWriter<'a> {
    rows: &'a mut BatchRows,
    types: &'a mut Types,
    columns: &'a Columns,
    vocab: &'a Vocab,
    trim: Option<bool>,
    sequences: Vec<(u32, Range<usize>)>,
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

impl RowSink for RowWriter<'_> {
    fn special(&mut self, ids: &[u32], _tokens: &[String], type_id: u32) {
        let rows = &mut *self.rows;
        rows.ids.extend_from_slice(ids);
        let n = rows.ids.len();
        if self.columns.type_ids {
            self.types.extend(n, type_id);
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

    fn text(&mut self, text: usize, known: bool, pieces: &Pieces, range: Range<usize>, type_id: u32) {
        let rows = &mut *self.rows;
        let start = rows.ids.len();
        rows.ids.extend_from_slice(&pieces.ids[range.clone()]);
        let n = rows.ids.len();
        if self.columns.type_ids {
            self.types.extend(n, type_id);
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
                    let (start, end) = trim_offsets(text, index, span, prefix_space);
                    place.copy_from_slice(&[i64::from(start), i64::from(end)]);
                }
            }
        }
        if known {
            set_sequence(&mut self.sequences, text as u32, start..n);
        }
    }
}
