//! Normalization, aligned with the original text: `normalizers` and `NormalizedString` of `tokenizers`.

use super::config::{BertNormalizer, Normalizer};
use crate::unicode;

/// A character of a text and the characters of the original that it derives from, end exclusive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aligned {
    pub c: char,
    pub from: (usize, usize),
}

/// A text with its alignment, at any stage of the pipeline.
pub(super) type Text = Vec<Aligned>;

/// Returns a text as given: every character derives from itself.
pub(super) fn original(text: &str) -> Text {
    text.chars().enumerate().map(|(i, c)| Aligned { c, from: (i, i + 1) }).collect()
}

/// Returns the characters of a text as a string.
pub(super) fn string(text: &[Aligned]) -> String {
    text.iter().map(|a| a.c).collect()
}

/// Returns the range of the original from the start of the first character to the end of the last.
pub(super) fn span(text: &[Aligned]) -> (usize, usize) {
    (text[0].from.0, text[text.len() - 1].from.1)
}

/// Replaces a text by new characters, each with a number that states where it comes from:
///
/// * 0: it replaces the old character at the cursor, which advances by one;
/// * 1: it is inserted, and derives from whatever the old character before the cursor derives from;
/// * −n: as 0, and the cursor then skips n old characters, which are deleted.
///
/// The first `skip` old characters are deleted as well.
fn transform(old: &[Aligned], new: &[(char, isize)], skip: usize) -> Text {
    let mut cursor = skip;
    let mut text = Text::new();
    for &(c, change) in new {
        if change > 0 {
            let from = if cursor == 0 { (old[0].from.0, old[0].from.0) } else { old[cursor - 1].from };
            text.push(Aligned { c, from });
        } else {
            text.push(Aligned { c, from: old[cursor].from });
            cursor += 1 + change.unsigned_abs();
        }
    }
    text
}

/// Deletes the characters for which `keep` is false.
fn filter(old: Text, keep: impl Fn(char) -> bool) -> Text {
    let skip = old.iter().take_while(|a| !keep(a.c)).count();
    let mut new: Vec<(char, isize)> = Vec::new();
    for a in &old[skip..] {
        if keep(a.c) {
            new.push((a.c, 0));
        } else if let Some((_, change)) = new.last_mut() {
            *change -= 1;
        }
    }
    transform(&old, &new, skip)
}

/// Replaces each character.
fn map(old: Text, f: impl Fn(char) -> char) -> Text {
    let new: Vec<(char, isize)> = old.iter().map(|a| (f(a.c), 0)).collect();
    transform(&old, &new, 0)
}

/// Lower-cases each character on its own.
fn lowercase(old: Text) -> Text {
    let mut new = Vec::new();
    for a in &old {
        for (i, c) in unicode::lowercase(a.c).enumerate() {
            new.push((c, isize::from(i > 0)));
        }
    }
    transform(&old, &new, 0)
}

/// Decomposes canonically (NFD).
fn nfd(old: Text) -> Text {
    let mut new = Vec::new();
    for a in &old {
        match unicode::decompose(a.c) {
            Some(parts) => new.extend(parts.iter().enumerate().map(|(i, &c)| (c, isize::from(i > 0)))),
            None => new.push((a.c, 0)),
        }
    }
    // Canonical order: sort each run of characters whose combining class is not 0, keeping the order within a class.
    // The numbers move with their characters; `transform` assigns ranges of the original afterwards.
    let class = |&(c, _): &(char, isize)| unicode::combining_class(c);
    for run in new.chunk_by_mut(|a, b| class(a) != 0 && class(b) != 0) {
        run.sort_by_key(class);
    }
    transform(&old, &new, 0)
}

/// Deletes white space at the start (`left`) and at the end (`right`).
fn strip(old: Text, left: bool, right: bool) -> Text {
    let blank = |a: &&Aligned| unicode::is_whitespace(a.c);
    let start = if left { old.iter().take_while(blank).count() } else { 0 };
    let end = old.len() - if right { old.iter().rev().take_while(blank).count() } else { 0 };
    old.get(start..end).unwrap_or_default().to_vec()
}

/// Deletes control characters and turns white space characters into spaces.
fn clean(old: Text) -> Text {
    let kept = filter(old, |c| !unicode::is_removed_by_clean(c));
    map(kept, |c| if unicode::is_whitespace(c) { ' ' } else { c })
}

/// Puts a space before and after each CJK ideograph.
fn isolate_ideographs(old: Text) -> Text {
    let mut new = Vec::new();
    for a in &old {
        if unicode::is_cjk(a.c) {
            new.extend([(' ', 0), (a.c, 1), (' ', 1)]);
        } else {
            new.push((a.c, 0));
        }
    }
    transform(&old, &new, 0)
}

/// Applies BERT's normalizer, one step after the other.
fn normalize_bert(options: &BertNormalizer, mut text: Text) -> Text {
    if options.clean_text {
        text = clean(text);
    }
    if options.handle_chinese_chars {
        text = isolate_ideographs(text);
    }
    if options.strip_accents.unwrap_or(options.lowercase) {
        text = filter(nfd(text), |c| !unicode::is_nonspacing_mark(c));
    }
    if options.lowercase {
        text = lowercase(text);
    }
    text
}

/// Applies a normalizer.
pub(super) fn normalize(normalizer: Option<&Normalizer>, text: Text) -> Text {
    match normalizer {
        None => text,
        Some(Normalizer::Bert(options)) => normalize_bert(options, text),
        Some(Normalizer::Nfd) => nfd(text),
        Some(Normalizer::Lowercase) => lowercase(text),
        Some(Normalizer::StripAccents) => filter(text, |c| !unicode::is_combining_mark(c)),
        Some(Normalizer::Strip { left, right }) => strip(text, *left, *right),
        Some(Normalizer::Sequence(all)) => all.iter().fold(text, |text, one| normalize(Some(one), text)),
    }
}
