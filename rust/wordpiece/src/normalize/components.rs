//! The small normalizers that `tokenizer.json` files combine.

use unicode_normalization_alignments::UnicodeNormalization;

use super::{Normalized, Normalizer, Span};
use crate::error::Result;
use crate::unicode;

/// Applies a normalizer that is neither BERT's nor a sequence.
pub(super) fn apply(normalizer: &Normalizer, text: &mut Normalized) -> Result<()> {
    match normalizer {
        Normalizer::Bert(_) | Normalizer::Sequence(_) => unreachable!("applied by Normalizer::apply"),
        Normalizer::Lowercase => {
            let old = std::mem::take(&mut text.text);
            let changes = old
                .chars()
                .flat_map(|c| unicode::lowercase(c).enumerate().map(|(i, lower)| (lower, isize::from(i > 0))))
                .collect::<Vec<_>>();
            text.text = old;
            text.transform(changes, 0);
        }
        Normalizer::Nfd => recompose(text, |old| old.nfd().collect()),
        Normalizer::Nfc => recompose(text, |old| old.nfc().collect()),
        Normalizer::Nfkd => recompose(text, |old| old.nfkd().collect()),
        Normalizer::Nfkc => recompose(text, |old| old.nfkc().collect()),
        Normalizer::StripAccents => filter(text, |c| !unicode::is_combining_mark(c)),
        Normalizer::Strip { left, right } => strip(text, *left, *right),
        Normalizer::Replace { pattern, content } => {
            let mut found = Vec::new();
            pattern.find_all(&text.text, &mut found)?;
            replace(text, &found, content);
        }
        Normalizer::Prepend(prefix) => prepend(text, prefix),
    }
    Ok(())
}

fn recompose(text: &mut Normalized, form: impl Fn(&str) -> Vec<(char, isize)>) {
    let changes = form(&text.text);
    text.transform(changes, 0);
}

/// Keeps the characters that `keep` names.
fn filter(text: &mut Normalized, keep: impl Fn(char) -> bool) {
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

fn strip(text: &mut Normalized, left: bool, right: bool) {
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

fn char_at(text: &str, at: usize) -> char {
    text[at..].chars().next().expect("a position inside the text")
}

/// Puts `content` in place of each range; it stands for what the last byte of the range stood for.
pub(crate) fn replace(text: &mut Normalized, found: &[(usize, usize)], content: &str) {
    if found.is_empty() {
        return;
    }
    let mut new_text = String::with_capacity(text.text.len());
    let mut new_spans = Vec::new();
    let mut kept = 0;
    for &(start, end) in found {
        new_text.push_str(&text.text[kept..start]);
        new_text.push_str(content);
        if text.aligned {
            new_spans.extend_from_slice(&text.spans[kept..start]);
            let span = match end {
                0 => Span { start: text.base, end: text.base },
                _ => text.spans[end - 1],
            };
            new_spans.extend(std::iter::repeat_n(span, content.len()));
        }
        kept = end;
    }
    new_text.push_str(&text.text[kept..]);
    if text.aligned {
        new_spans.extend_from_slice(&text.spans[kept..]);
    }
    text.text = new_text;
    text.spans = new_spans;
}

/// Puts `prefix` before a text that is not empty; it stands for what the first character stands for.
pub(crate) fn prepend(text: &mut Normalized, prefix: &str) {
    if text.text.is_empty() || prefix.is_empty() {
        return;
    }
    text.text.insert_str(0, prefix);
    if text.aligned {
        let first = text.spans[0];
        text.spans.splice(0..0, std::iter::repeat_n(first, prefix.len()));
    }
}
