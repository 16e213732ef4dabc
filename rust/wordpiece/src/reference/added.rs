//! Added tokens: their ids, and where they occur in a text; `AddedVocabulary` of `tokenizers`.

use std::collections::HashMap;

use super::config::{AddedToken, Config, Refusal};
use super::normalize::{Text, normalize, original};
use crate::unicode;

/// An added token that has its id.
#[derive(Clone, Debug)]
pub(super) struct Registered {
    pub token: AddedToken,
    pub id: u32,
    /// The characters to search for: the content, normalized if the token asks for that.
    pattern: Vec<char>,
    /// Whether this or an earlier registration of the same content is special.
    ever_special: bool,
}

/// A range of a text: an added token that occurs there, or the text between two of them.
pub(super) enum Segment {
    Added(u32, Text),
    Plain(Text),
}

/// Assigns an id to every added token, in order, and records the tokens in `by_id`. Tokens without content are ignored; a
/// repeated content keeps its position and id and replaces the options.
pub(super) fn register(
    config: &Config,
    vocab: &HashMap<String, u32>,
    by_id: &mut HashMap<u32, String>,
) -> Result<Vec<Registered>, Refusal> {
    let mut all: Vec<Registered> = Vec::new();
    let mut next = vocab.len() as u32;
    for token in config.added_tokens.iter().filter(|token| !token.content.is_empty()).cloned() {
        let known = all.iter().position(|other| other.token.content == token.content);
        let id = match (known, vocab.get(&token.content)) {
            (Some(position), _) => all[position].id,
            (None, Some(&id)) => id,
            (None, None) => {
                // Where no file states the id, this differs from `tokenizers`, which assigns `next` even if another token has it.
                if token.id.is_none() && by_id.contains_key(&next) {
                    next = by_id.keys().max().map_or(0, |max| max + 1);
                }
                next += 1;
                next - 1
            }
        };
        if let Some(stored) = token.id.filter(|&stored| stored != id) {
            let message = format!("added token {:?} has id {stored} in the file but is assigned {id}", token.content);
            return Err(Refusal::format(message));
        }
        let pattern: Vec<char> = if token.normalized {
            normalize(config.normalizer.as_ref(), original(&token.content)).iter().map(|a| a.c).collect()
        } else {
            token.content.chars().collect()
        };
        if pattern.is_empty() {
            // Differs from `tokenizers`, which would match it between any two bytes.
            return Err(Refusal::input(format!("added token {:?} normalizes to the empty string", token.content)));
        }
        by_id.insert(id, pattern.iter().collect());
        let ever_special = token.special || known.is_some_and(|position| all[position].ever_special);
        let registered = Registered { token, id, pattern, ever_special };
        match known {
            Some(position) => all[position] = registered,
            None => all.push(registered),
        }
    }
    Ok(all)
}

/// Divides a text at the added tokens that are searched for in the original or, if `normalized`, in the normalized text.
/// With `encode_special_tokens`, occurrences of special tokens remain ordinary text.
pub(super) fn cut_out(all: &[Registered], text: Text, normalized: bool, encode_special_tokens: bool) -> Vec<Segment> {
    let candidates: Vec<&Registered> = all.iter().filter(|added| added.token.normalized == normalized).collect();
    let mut segments = Vec::new();
    let mut done = 0; // everything before this is in `segments`
    let mut position = 0; // and everything before this has been searched
    while position < text.len() {
        // The longest token that matches here; of two with the same pattern, the one that was added first. Differs from
        // `tokenizers`, where the order of a hash map decides.
        let mut found: Option<&Registered> = None;
        for added in &candidates {
            let here = text[position..].iter().map(|a| a.c).take(added.pattern.len());
            if here.eq(added.pattern.iter().copied()) && found.is_none_or(|f| f.pattern.len() < added.pattern.len()) {
                found = Some(added);
            }
        }
        let Some(added) = found else {
            position += 1;
            continue;
        };
        let (mut start, mut end) = (position, position + added.pattern.len());
        position = end; // Even if the match is rejected below, its text is not searched again.
        if encode_special_tokens && added.ever_special {
            continue;
        }
        let word_at = |i: Option<usize>| i.and_then(|i| text.get(i)).is_some_and(|a| unicode::is_word(a.c));
        if added.token.single_word && (word_at(start.checked_sub(1)) || word_at(Some(end))) {
            continue;
        }
        if added.token.lstrip {
            while start > 0 && unicode::is_whitespace(text[start - 1].c) {
                start -= 1;
            }
            start = start.max(done);
        }
        if added.token.rstrip {
            while end < text.len() && unicode::is_whitespace(text[end].c) {
                end += 1;
            }
        }
        if start > end {
            // Lies within the white space that the token before it absorbed. Differs from `tokenizers`, which panics.
            continue;
        }
        if done < start {
            segments.push(Segment::Plain(text[done..start].to_vec()));
        }
        if start < end {
            segments.push(Segment::Added(added.id, text[start..end].to_vec()));
        }
        done = end;
    }
    if done < text.len() {
        segments.push(Segment::Plain(text[done..].to_vec()));
    }
    segments
}
