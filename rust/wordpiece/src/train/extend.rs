//! Extending a vocabulary: its unused slots, and the pieces that new tokens had before.

use super::vocab_builder::{CONTINUATION_PREFIX, LongestMatch, VocabBuilder};
use crate::error::{Error, Result, TrainingError};

/// Returns the ids of `[unused0]`, `[unused1]`, … in ascending order.
///
/// # Errors
///
/// [`TrainingError::NoUnusedSlot`].
pub(super) fn unused_slots(base: &VocabBuilder) -> Result<Vec<u32>> {
    let is_slot = |text: &str| {
        let number = text.strip_prefix("[unused").and_then(|rest| rest.strip_suffix(']'));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let slots: Vec<u32> = (0..base.len() as u32).filter(|&id| is_slot(base.text(id))).collect();
    if slots.is_empty() { Err(Error::Training(TrainingError::NoUnusedSlot)) } else { Ok(slots) }
}

/// Moves the learned tokens that follow `base` into its slots, as far as the slots suffice.
///
/// Returns all tokens and the ids of the new ones.
pub(super) fn fill_slots(base: VocabBuilder, slots: &[u32], learned: Vec<String>) -> (Vec<String>, Vec<u32>) {
    let old_size = base.len();
    let mut tokens = base.into_texts();
    let new = learned.into_iter().skip(old_size).zip(slots);
    let ids = new.map(|(token, &slot)| {
        tokens[slot as usize] = token;
        slot
    });
    let ids = ids.collect();
    (tokens, ids)
}

/// Returns each new token's pieces under the vocabulary that it was added to, which a model has read for it so far.
///
/// A token that cannot be segmented has the piece `[UNK]`, or none if `base` has no such token.
pub(super) fn pieces_before(base: &[String], tokens: &[String], new: &[u32]) -> Vec<(u32, Vec<u32>)> {
    let base = VocabBuilder::new(base.iter().map(String::as_str));
    let longest_match = LongestMatch::new(&base);
    let unknown: Vec<u32> = base.id("[UNK]").into_iter().collect();
    let pieces = |&id: &u32| {
        let token = tokens[id as usize].as_str();
        let rest = token.strip_prefix(CONTINUATION_PREFIX).filter(|rest| !rest.is_empty());
        let pieces = longest_match.pieces(rest.unwrap_or(token), rest.is_some());
        (id, pieces.unwrap_or_else(|| unknown.clone()))
    };
    new.iter().map(pieces).collect()
}
