//! The small normalizers that `tokenizer.json` files combine, each as an edit of a [`Normalized`].
//!
//! Each function is linear in the text and equals the normalizer of the same name in `tokenizers` 0.23.3.

use super::normalized::Normalized;
use crate::unicode;

/// Lower-cases each character on its own. `İ` becomes two characters, of which the second counts as inserted.
pub(super) fn lowercase(text: &mut Normalized) {
    let old = std::mem::take(&mut text.text);
    let changes = old
        .chars()
        .flat_map(|c| unicode::lowercase(c).enumerate().map(|(i, lower)| (lower, isize::from(i > 0))))
        .collect::<Vec<_>>();
    text.text = old;
    text.transform(changes, 0);
}

/// Replaces the text with one of its Unicode normalization forms, given as characters with their changes.
pub(super) fn recompose(text: &mut Normalized, form: impl Fn(&str) -> Vec<(char, isize)>) {
    let changes = form(&text.text);
    text.transform(changes, 0);
}

/// Deletes the characters for which `keep` is false.
pub(super) fn filter(text: &mut Normalized, keep: impl Fn(char) -> bool) {
    let mut changes: Vec<(char, isize)> = Vec::with_capacity(text.text.len());
    let mut removed_at_start = 0;
    for c in text.text.chars() {
        match (keep(c), changes.last_mut()) {
            (true, _) => changes.push((c, 0)),
            (false, Some((_, change))) => *change -= 1,
            (false, None) => removed_at_start += 1,
        }
    }
    text.transform(changes, removed_at_start);
}

/// Deletes white space at the start (`left`) and at the end (`right`).
pub(super) fn strip(text: &mut Normalized, left: bool, right: bool) {
    let old = text.text.as_str();
    let start = match left {
        true => old.find(|c| !unicode::is_whitespace(c)).unwrap_or(old.len()),
        false => 0,
    };
    let end = match right {
        true => old.rfind(|c| !unicode::is_whitespace(c)).map_or(0, |at| at + char_at(old, at).len_utf8()),
        false => old.len(),
    };
    let removed = old[..start].chars().count();
    let kept: Vec<(char, isize)> = old.get(start..end).unwrap_or("").chars().map(|c| (c, 0)).collect();
    if start > 0 || end < old.len() {
        text.transform(kept, removed);
    }
}

/// Returns the character that begins at byte `at`.
fn char_at(text: &str, at: usize) -> char {
    text[at..].chars().next().expect("a position inside the text")
}
