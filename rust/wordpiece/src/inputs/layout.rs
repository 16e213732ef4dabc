//! A post-processor made ready: what stands in a row, place by place.

use super::template::{Piece, PostProcessor, Template, Which};
use crate::error::Result;

/// One place of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Slot {
    /// A text.
    Text {
        /// 0 or 1.
        which: usize,
        /// Its segment id in the row that is kept.
        type_id: u32,
        /// Its segment id in the other windows: the reference sets the template's in the first alone.
        window_type_id: u32,
    },
    /// Special tokens.
    Special { ids: Vec<u32>, tokens: Vec<String>, type_id: u32 },
}

/// The places of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    pub slots: Vec<Slot>,
    /// The number of special tokens.
    pub added: usize,
    /// What is known about where tokens come from.
    pub sequences: Sequences,
    /// Roberta's trimming of offsets; the value says whether a first space was put there by a pre-tokenizer.
    pub trim_offsets: Option<bool>,
}

/// Which tokens are known to come from which text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sequences {
    /// All of them.
    Known,
    /// Without a post-processor, of a pair: those of a text that was not moved to another window.
    FirstWindow,
    /// Without a post-processor, of a single text: none, which reads as all from the first.
    Unknown,
}

/// The four layouts of a tokenizer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layouts {
    single: [Layout; 2],
    pair: [Layout; 2],
}

impl Layouts {
    /// Makes them ready; an error when a template does not fit.
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

    /// The layout of a row of one text or two, with special tokens or without.
    pub fn get(&self, pair: bool, add_special_tokens: bool) -> &Layout {
        let layouts = if pair { &self.pair } else { &self.single };
        &layouts[usize::from(add_special_tokens)]
    }
}

impl Layout {
    fn new(post_processor: Option<&PostProcessor>, pair: bool, special: bool) -> Layout {
        let text = |which: usize, type_id: u32| Slot::Text { which, type_id, window_type_id: which as u32 };
        let mut trim_offsets = None;
        let mut sequences = Sequences::Known;
        let slots = match post_processor {
            None => {
                sequences = if pair { Sequences::FirstWindow } else { Sequences::Unknown };
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
                // All segment ids are 0; only without special tokens do the windows of a second text keep theirs.
                let text =
                    |which| Slot::Text { which, type_id: 0, window_type_id: if special { 0 } else { which as u32 } };
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
        Layout { slots, added, sequences, trim_offsets }
    }
}

fn named((token, id): &(String, u32), type_id: u32) -> Slot {
    Slot::Special { ids: vec![*id], tokens: vec![token.clone()], type_id }
}

fn from_template(template: &Template, pair: bool) -> Vec<Slot> {
    let pieces = if pair { &template.pair } else { &template.single };
    let slot = |piece: &Piece| match piece {
        Piece::Sequence { which, type_id } => {
            let which = usize::from(*which == Which::Second);
            Some(Slot::Text { which, type_id: *type_id, window_type_id: which as u32 })
        }
        Piece::Special { name, type_id } => {
            let token = template.special_tokens.iter().find(|token| token.name == *name)?;
            Some(Slot::Special { ids: token.ids.clone(), tokens: token.tokens.clone(), type_id: *type_id })
        }
    };
    pieces.iter().filter_map(slot).collect()
}
