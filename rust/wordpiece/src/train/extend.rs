//! Vocabularies that grow out of others: slots that were kept free, and what new tokens were before.

use super::tokens::{Cutter, JOINER, Tokens};
use crate::error::{Error, Result, TrainingError};

/// The ids of `[unused0]`, `[unused1]`, … in the order of the ids.
///
/// # Errors
///
/// There is none.
pub(super) fn unused_slots(base: &Tokens) -> Result<Vec<u32>> {
    let is_slot = |text: &str| {
        let number = text.strip_prefix("[unused").and_then(|rest| rest.strip_suffix(']'));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let slots: Vec<u32> = (0..base.len() as u32).filter(|&id| is_slot(base.text(id))).collect();
    if slots.is_empty() { Err(Error::Training(TrainingError::NoUnusedSlot)) } else { Ok(slots) }
}

/// Puts what was learned behind `base` into its slots, as much as there is room for; returns all tokens and the ids of the
/// new ones.
pub(super) fn filled(base: Tokens, slots: &[u32], learned: Vec<String>) -> (Vec<String>, Vec<u32>) {
    let old = base.len();
    let mut tokens = base.into_texts();
    let new = learned.into_iter().skip(old).zip(slots);
    let ids = new.map(|(token, &slot)| {
        tokens[slot as usize] = token;
        slot
    });
    let ids = ids.collect();
    (tokens, ids)
}

/// For each new token its pieces under the vocabulary that it was added to: what a model has read in its place so far.
pub(super) fn pieces_before(base: &[String], tokens: &[String], new: &[u32]) -> Vec<(u32, Vec<u32>)> {
    let base = Tokens::new(base.iter().map(String::as_str));
    let cutter = Cutter::new(&base);
    let unknown: Vec<u32> = base.id("[UNK]").into_iter().collect();
    let pieces = |&id: &u32| {
        let token = tokens[id as usize].as_str();
        let rest = token.strip_prefix(JOINER).filter(|rest| !rest.is_empty());
        let found = cutter.pieces(rest.unwrap_or(token), rest.is_some());
        (id, found.unwrap_or_else(|| unknown.clone()))
    };
    new.iter().map(pieces).collect()
}
