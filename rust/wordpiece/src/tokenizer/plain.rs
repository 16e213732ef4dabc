//! The shortest code path, for one or many *plain* texts: single texts of moderate length without added tokens.
//!
//! Most batches consist of plain texts. Several share the fixed cost of a text: their words are looked up together, and
//! the resulting ids are divided into rows.

use super::input::{Input, Text};
use super::options::{EncodeOptions, RequestedFields};
use super::pipeline::Tokenizer;
use crate::fast::{FastState, PieceFields, TextPieces};
use crate::inputs::layout::{KnownSequences, Layout, Slot};
use crate::inputs::{Side, TruncationStrategy};
use crate::scratch::EncodeScratch;

/// Longer texts, in bytes, take the general path, which need not read a text to its end.
const MAX_BYTES: usize = 8192;

/// The most bytes read of a text that is truncated, for each token that can stay. English has five bytes for each
/// token.
const MAX_BYTES_PER_TOKEN: usize = 16;

/// How the rows of plain texts are laid out: special tokens, one text, special tokens.
pub(crate) struct PlainLayout<'t> {
    /// The special tokens before the text.
    pub before: &'t [Slot],
    /// The special tokens after the text.
    pub after: &'t [Slot],
    /// Segment id of the text.
    pub type_id: u32,
    /// Sequence id of special tokens and padding: −1, or the sequence id of the text where sequences are not known.
    pub other_sequence_id: i32,
    /// Number of special tokens in a row.
    pub added: usize,
    /// Number of pieces of a text that stay, at most.
    pub budget: usize,
    /// Longer texts are not plain.
    max_bytes: usize,
}

impl PlainLayout<'_> {
    /// Returns the text of an input if it is a plain one.
    pub fn text_of<'a>(&self, input: &Input<'a>) -> Option<&'a str> {
        match (&input.first, &input.second) {
            (Text::Raw(text), None) if text.len() <= self.max_bytes => Some(text),
            _ => None,
        }
    }
}

impl Tokenizer {
    /// Returns the layout of plain texts' rows; `None` if something is requested that only the general path supports:
    /// trimmed offsets, strides, truncation from the left, or a layout with more than one text.
    pub(crate) fn plain_layout(&self, options: &EncodeOptions, fields: RequestedFields) -> Option<PlainLayout<'_>> {
        let layout: &Layout = self.layouts.get(false, options.add_special_tokens);
        let has_fast_way = self.fast.is_some() && !self.added.searches_normalized();
        if !has_fast_way || (fields.spans && layout.trim_offsets.is_some()) {
            return None;
        }
        let (mut budget, mut max_bytes) = (usize::MAX, MAX_BYTES);
        if let Some(truncation) = &options.truncation {
            // Only a text that is truncated on the right has one row and no errors; others take the general path.
            budget = truncation.budget(layout.added).ok().filter(|&budget| budget > 0)?;
            let is_simple = truncation.side == Side::Right && truncation.strategy != TruncationStrategy::OnlySecond;
            if !is_simple || truncation.stride > 0 {
                return None;
            }
            if !fields.all_pieces {
                max_bytes = max_bytes.min(budget.saturating_mul(MAX_BYTES_PER_TOKEN));
            }
        }
        let at = layout.slots.iter().position(|slot| matches!(slot, Slot::Text { .. }))?;
        let (before, after) = (&layout.slots[..at], &layout.slots[at + 1..]);
        let Slot::Text { type_id, .. } = layout.slots[at] else { return None };
        let is_only_text = after.iter().all(|slot| matches!(slot, Slot::Special { .. }));
        let other_sequence_id = if layout.known_sequences == KnownSequences::All { -1 } else { 0 };
        let added = layout.added;
        is_only_text.then_some(PlainLayout { before, after, type_id, other_sequence_id, added, budget, max_bytes })
    }

    /// Tokenizes texts together, up to the first that contains an added token or that only the pipeline can tokenize;
    /// returns how many it has done. `write` is called with the number of each text and its pieces, in order.
    pub(crate) fn tokenize_plain<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
        fields: PieceFields,
        skip_special: bool,
        scratch: &mut EncodeScratch,
        write: impl FnMut(usize, TextPieces<'_>),
    ) -> usize {
        let Some(fast) = &self.fast else { return 0 };
        let texts = texts.take_while(|text| self.added.has_no_raw(text, skip_special));
        let state = scratch.fast.get_or_insert_with(|| Box::new(FastState::new(&self.definition)));
        fast.tokenize_texts(texts, fields, &self.matcher, state, write)
    }
}
