//! The rows of plain texts, written directly from the ids of many of them.
//!
//! The general path writes a row slot by slot, from pieces that were copied for it. Here all texts of a lookup share one
//! list of pieces, and each row is a slice of it between special tokens.
//!
//! An input is plain if it is one text, not a pair and not divided into words, and not much longer than what may stay of it;
//! options such as strides and truncation from the left leave no input plain ([`PlainLayout`]). Both paths write the same
//! rows: this one only makes fewer copies.

use super::chunk::{ChunkEncoder, RowChunk};
use crate::fast::{PieceFields, TextPieces};
use crate::inputs::layout::Slot;
use crate::offsets::convert;
use crate::scratch::EncodeScratch;
use crate::tokenizer::{Input, PlainLayout, Text};

impl ChunkEncoder<'_> {
    /// Appends the rows of the first inputs as long as they are plain texts; returns how many there were. The first
    /// input has index `first` in the batch.
    pub(super) fn append_plain(
        &self,
        plain: &PlainLayout<'_>,
        first: usize,
        inputs: &[Input<'_>],
        chunk: &mut RowChunk,
        scratch: &mut EncodeScratch,
    ) -> usize {
        let texts = inputs.iter().map_while(|input| plain.text_of(input));
        let fields = PieceFields { word_ids: self.columns.word_ids, spans: self.columns.offsets };
        let skip_special = self.options.encode_special_tokens;
        self.tokenizer.tokenize_plain(texts, fields, skip_special, scratch, |i, pieces| {
            if self.columns.windows {
                chunk.rows.overflow_to_sample.push((first + i) as i64);
            }
            self.append_plain_row(plain, &inputs[i], pieces, chunk);
        })
    }

    /// Appends the row of one plain text: special tokens, the pieces that fit, special tokens. Writes what
    /// [`ChunkEncoder::append_row`] writes for it, but for `overflow_to_sample`.
    #[inline]
    fn append_plain_row(
        &self,
        plain: &PlainLayout<'_>,
        input: &Input<'_>,
        pieces: TextPieces<'_>,
        chunk: &mut RowChunk,
    ) {
        let columns = self.columns;
        let start = chunk.rows.ids.len();
        let n = pieces.ids.len().min(plain.budget);
        push_special(plain.before, plain.other_sequence_id, self, chunk);
        let rows = &mut chunk.rows;
        rows.ids.extend_from_slice(&pieces.ids[..n]);
        if columns.word_ids {
            rows.word_ids.extend(pieces.word_ids[..n].iter().map(|&word| word as i32));
        }
        if columns.offsets {
            let spans = &mut pieces.spans[..n];
            if let Text::Raw(text) = &input.first {
                convert(text, self.options.offset_unit, spans);
            }
            rows.offsets.extend(spans.iter().flat_map(|span| [i64::from(span.start), i64::from(span.end)]));
        }
        if columns.type_ids {
            chunk.type_ids.extend(rows.ids.len(), plain.type_id);
        }
        if columns.special_tokens_mask {
            rows.special_tokens_mask.resize(rows.ids.len(), 0);
        }
        if columns.sequence_ids {
            rows.sequence_ids.resize(rows.ids.len(), 0);
        }
        push_special(plain.after, plain.other_sequence_id, self, chunk);
        let rows = &mut chunk.rows;
        let end = rows.ids.len();
        rows.row_offsets.push(end as i64);
        rows.truncated.push(n < pieces.ids.len());
        if columns.sequence_ids {
            chunk.pad_sequence_ids.push(plain.other_sequence_id);
        }
        if columns.n_tokens {
            rows.n_tokens.push((pieces.ids.len() + plain.added) as i64);
        }
        chunk.longest = chunk.longest.max(end - start);
    }
}

/// Appends the special tokens of some slots.
#[inline]
fn push_special(slots: &[Slot], sequence_id: i32, encoder: &ChunkEncoder<'_>, chunk: &mut RowChunk) {
    for slot in slots {
        let Slot::Special { ids, type_id, .. } = slot else { continue };
        chunk.push_special(ids, *type_id, encoder.columns);
        if encoder.columns.sequence_ids {
            chunk.rows.sequence_ids.resize(chunk.rows.ids.len(), sequence_id);
        }
    }
}
