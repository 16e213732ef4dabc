//! Layouts: the slots of a row, as a post-processor defines them.
//!
//! A [`Layout`] lists what a row consists of, from left to right, for a given number of texts and with or without special
//! tokens. The four layouts of a tokenizer are computed once. They also record two peculiarities of `tokenizers` 0.23.3 that
//! results depend on: segment ids of overflowing windows, and which tokens are attributed to a text.
//!
//! For BERT, a pair with special tokens has the slots `[CLS]` (segment 0), text 0 (0), `[SEP]` (0), text 1 (1) and `[SEP]`
//! (1), and adds 3 special tokens.

use std::collections::HashMap;

use super::template::{PostProcessor, SequenceId, SpecialToken, Template, TemplatePiece};
use crate::error::Result;

/// One slot of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Slot {
    /// A window of a text.
    Text {
        /// Which text: 0 or 1.
        text: usize,
        /// Its segment id in the kept row.
        type_id: u32,
        /// Its segment id in the other windows: the reference applies the template's only to the first.
        window_type_id: u32,
    },
    /// Special tokens; as many ids as tokens.
    Special { ids: Vec<u32>, tokens: Vec<String>, type_id: u32 },
}

/// The slots of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    /// From left to right.
    pub slots: Vec<Slot>,
    /// The number of special tokens in all slots.
    pub added: usize,
    /// Which tokens are attributed to a text.
    pub known_sequences: KnownSequences,
    /// Whether offsets are trimmed (RoBERTa), and if so whether a pre-tokenizer may have inserted a leading space.
    pub trim_offsets: Option<bool>,
}

/// Which tokens of a row the reference attributes to the text that they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownSequences {
    /// All.
    All,
    /// The tokens of first windows: a pair without a post-processor.
    FirstWindow,
    /// None, so that queries assume the first text: a single text without a post-processor.
    None,
}

/// The four layouts of a tokenizer; the index is whether special tokens are added.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layouts {
    single: [Layout; 2],
    pair: [Layout; 2],
}

impl Layouts {
    /// Derives the layouts from a post-processor.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BadTemplate`](crate::Error::BadTemplate) if a template is inconsistent.
    pub fn new(post_processor: Option<&PostProcessor>) -> Result<Layouts> {
        if let Some(PostProcessor::Template(template)) = post_processor {
            template.check()?;
        }
        let layout = |pair, special| Layout::new(post_processor, pair, special);
        Ok(Layouts {
            single: [layout(false, false), layout(false, true)],
            pair: [layout(true, false), layout(true, true)],
        })
    }

    /// Returns the layout of a row of one text or of a pair, with or without special tokens.
    pub fn get(&self, pair: bool, add_special_tokens: bool) -> &Layout {
        let layouts = if pair { &self.pair } else { &self.single };
        &layouts[usize::from(add_special_tokens)]
    }
}

impl Layout {
    /// Derives one layout.
    fn new(post_processor: Option<&PostProcessor>, pair: bool, special: bool) -> Layout {
        let text = |text: usize, type_id: u32| Slot::Text { text, type_id, window_type_id: text as u32 };
        let mut trim_offsets = None;
        let mut known_sequences = KnownSequences::All;
        let slots = match post_processor {
            None => {
                known_sequences = if pair { KnownSequences::FirstWindow } else { KnownSequences::None };
                if pair { vec![text(0, 0), text(1, 1)] } else { vec![text(0, 0)] }
            }
            Some(PostProcessor::Bert { cls, sep }) => {
                let mut slots = vec![named(cls, 0), text(0, 0), named(sep, 0)];
                if pair {
                    slots.extend([text(1, 1), named(sep, 1)]);
                }
                slots
            }
            Some(PostProcessor::Roberta { cls, sep, trim_offsets: trim, add_prefix_space }) => {
                trim_offsets = trim.then_some(*add_prefix_space);
                // All segment ids are 0, except that without special tokens the other windows of a second text keep 1.
                let text =
                    |text| Slot::Text { text, type_id: 0, window_type_id: if special { 0 } else { text as u32 } };
                let mut slots = vec![named(cls, 0), text(0), named(sep, 0)];
                if pair {
                    slots.extend([named(sep, 0), text(1), named(sep, 0)]);
                }
                slots
            }
            Some(PostProcessor::Template(template)) => from_template(template, pair),
        };
        let slots: Vec<Slot> = slots.into_iter().filter(|slot| special || matches!(slot, Slot::Text { .. })).collect();
        let added = slots.iter().map(|slot| if let Slot::Special { ids, .. } = slot { ids.len() } else { 0 }).sum();
        Layout { slots, added, known_sequences, trim_offsets }
    }
}

/// Returns the slot of one special token.
fn named((token, id): &(String, u32), type_id: u32) -> Slot {
    Slot::Special { ids: vec![*id], tokens: vec![token.clone()], type_id }
}

/// Returns the slots of a template. Names without a special token are skipped; [`Template::check`] refuses them first.
fn from_template(template: &Template, pair: bool) -> Vec<Slot> {
    let pieces = if pair { &template.pair } else { &template.single };
    // Of equal names the first counts.
    let tokens: HashMap<&str, &SpecialToken> =
        template.special_tokens.iter().rev().map(|token| (token.name.as_str(), token)).collect();
    let slot = |piece: &TemplatePiece| match piece {
        TemplatePiece::Sequence { sequence, type_id } => {
            let text = usize::from(*sequence == SequenceId::B);
            Some(Slot::Text { text, type_id: *type_id, window_type_id: text as u32 })
        }
        TemplatePiece::Special { name, type_id } => {
            let token = tokens.get(name.as_str())?;
            Some(Slot::Special { ids: token.ids.clone(), tokens: token.tokens.clone(), type_id: *type_id })
        }
    };
    pieces.iter().filter_map(slot).collect()
}
