//! Single texts of moderate length, many at once.
//!
//! Most batches are made of them. What a text costs before its first byte and after its last is paid for several together:
//! their words are looked up in one go, and rows are cut out of the ids that come of it.

use super::Columns;
use super::chunk::Chunk;
use crate::error::{Error, Result};
use crate::fast::Wanted;
use crate::inputs::layout::{KnownSequences, Layout, Slot};
use crate::inputs::{Side, TruncationStrategy};
use crate::offsets::convert;
use crate::scratch::Scratch;
use crate::tokenizer::{EncodeOptions, Input, Text, Tokenizer};

/// Texts of more bytes go the general way, which need not read a text to its end.
const MOST_BYTES: usize = 8192;

/// How the rows of plain texts look.
pub(super) struct Plain<'t> {
    before: &'t [Slot],
    after: &'t [Slot],
    /// The segment id of the text.
    type_id: u32,
    /// The sequence id of special tokens and padding: that of the text where nothing is known about sequences.
    rest_sequence_id: i32,
    /// Special tokens of a row.
    added: usize,
    /// The pieces that stay of a text.
    budget: usize,
    /// Longer texts are not read to the end.
    most_bytes: usize,
}

impl Tokenizer {
    /// How rows of plain texts look; `None` where something was asked for that only the general way can do.
    pub(super) fn plain(&self, options: &EncodeOptions, columns: &Columns) -> Option<Plain<'_>> {
        let layout: &Layout = self.single_layout(options.add_special_tokens);
        if (columns.offsets && layout.trim_offsets.is_some()) || !self.has_plain_path() {
            return None;
        }
        let (mut budget, mut most_bytes) = (usize::MAX, MOST_BYTES);
        if let Some(truncation) = &options.truncation {
            // A text that is cut from the right has one row here; windows, strides and errors are told elsewhere.
            budget = truncation.budget(layout.added).ok().filter(|&budget| budget > 0)?;
            let simple = truncation.side == Side::Right && truncation.strategy != TruncationStrategy::OnlySecond;
            if !simple || truncation.stride > 0 || columns.windows {
                return None;
            }
            if !columns.n_tokens {
                // English has five bytes a piece.
                most_bytes = most_bytes.min(budget.saturating_mul(16));
            }
        }
        let at = layout.slots.iter().position(|slot| matches!(slot, Slot::Text { .. }))?;
        let (before, after) = (&layout.slots[..at], &layout.slots[at + 1..]);
        let Slot::Text { type_id, .. } = layout.slots[at] else { return None };
        let only = after.iter().all(|slot| matches!(slot, Slot::Special { .. }));
        let rest_sequence_id = if layout.known_sequences == KnownSequences::All { -1 } else { 0 };
        only.then_some(Plain { before, after, type_id, rest_sequence_id, added: layout.added, budget, most_bytes })
    }

    /// The ids of one input: what a batch of it alone has, in the shortest way.
    pub fn encode_ids(&self, input: &Input<'_>, options: &EncodeOptions) -> Result<Vec<u32>> {
        let columns = Columns::default();
        if let (Some(plain), (Text::Raw(text), None), None) =
            (self.plain(options, &columns), (&input.first, &input.second), &options.padding)
            && text.len() <= plain.most_bytes
        {
            let mut ids = Vec::new();
            let wanted = Wanted { words: false, spans: false };
            let texts = std::iter::once(*text);
            let done =
                self.tokenize_plain(texts, wanted, options.encode_special_tokens, &mut self.scratch(), |_, found| {
                    let n = found.ids.len().min(plain.budget);
                    let special = |slot: &Slot, ids: &mut Vec<u32>| {
                        if let Slot::Special { ids: special, .. } = slot {
                            ids.extend_from_slice(special);
                        }
                    };
                    ids.reserve_exact(n + plain.added);
                    plain.before.iter().for_each(|slot| special(slot, &mut ids));
                    ids.extend_from_slice(&found.ids[..n]);
                    plain.after.iter().for_each(|slot| special(slot, &mut ids));
                });
            if done == 1 {
                return Ok(ids);
            }
        }
        // Alone in its batch: errors need no index.
        let rows = self.encode_batch::<u32>(std::slice::from_ref(input), options, &columns, None);
        rows.map(|rows| rows.ids).map_err(Error::without_index)
    }

    /// Appends the rows of the first inputs, as long as they are plain texts; returns how many they were.
    #[allow(clippy::too_many_arguments, reason = "what is asked, where it is written, and what is needed")]
    pub(super) fn append_plain(
        &self,
        plain: &Plain<'_>,
        first: usize,
        inputs: &[Input<'_>],
        options: &EncodeOptions,
        columns: &Columns,
        chunk: &mut Chunk,
        scratch: &mut Scratch,
    ) -> usize {
        let texts = inputs.iter().map_while(|input| match (&input.first, &input.second) {
            (Text::Raw(text), None) if text.len() <= plain.most_bytes => Some(*text),
            _ => None,
        });
        let wanted = Wanted { words: columns.word_ids, spans: columns.offsets };
        self.tokenize_plain(texts, wanted, options.encode_special_tokens, scratch, |i, found| {
            let rows = &mut chunk.rows;
            let start = rows.ids.len();
            let n = found.ids.len().min(plain.budget);
            for slot in plain.before {
                push_special(slot, plain.rest_sequence_id, columns, chunk);
            }
            let rows = &mut chunk.rows;
            rows.ids.extend_from_slice(&found.ids[..n]);
            if columns.word_ids {
                rows.word_ids.extend(found.words[..n].iter().map(|&word| word as i32));
            }
            if columns.offsets {
                let spans = &mut found.spans[..n];
                if let Text::Raw(text) = &inputs[i].first {
                    convert(text, options.offset_unit, spans);
                }
                rows.offsets.extend(spans.iter().flat_map(|span| [i64::from(span.start), i64::from(span.end)]));
            }
            if columns.type_ids {
                chunk.types.extend(rows.ids.len(), plain.type_id);
            }
            if columns.special_tokens_mask {
                rows.special_tokens_mask.resize(rows.ids.len(), 0);
            }
            if columns.sequence_ids {
                rows.sequence_ids.resize(rows.ids.len(), 0);
            }
            for slot in plain.after {
                push_special(slot, plain.rest_sequence_id, columns, chunk);
            }
            let rows = &mut chunk.rows;
            let end = rows.ids.len();
            rows.row_offsets.push(end as i64);
            rows.truncated.push(n < found.ids.len());
            if columns.sequence_ids {
                chunk.pad_sequence_ids.push(plain.rest_sequence_id);
            }
            if columns.n_tokens {
                rows.n_tokens.push((found.ids.len() + plain.added) as i64);
            }
            if columns.windows {
                rows.overflow_to_sample.push((first + i) as i64);
            }
            chunk.longest = chunk.longest.max(end - start);
        })
    }
}

/// Appends special tokens.
fn push_special(slot: &Slot, sequence_id: i32, columns: &Columns, chunk: &mut Chunk) {
    let Slot::Special { ids, type_id, .. } = slot else { return };
    let rows = &mut chunk.rows;
    match ids[..] {
        // One is what nearly all are.
        [id] => rows.ids.push(id),
        _ => rows.ids.extend_from_slice(ids),
    }
    let n = rows.ids.len();
    if columns.word_ids {
        rows.word_ids.resize(n, -1);
    }
    if columns.offsets {
        rows.offsets.resize(2 * n, 0);
    }
    if columns.type_ids {
        chunk.types.extend(n, *type_id);
    }
    if columns.special_tokens_mask {
        rows.special_tokens_mask.resize(n, 1);
    }
    if columns.sequence_ids {
        rows.sequence_ids.resize(n, sequence_id);
    }
}
