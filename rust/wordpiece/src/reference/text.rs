//! One text: added tokens, normalization, words, pieces.

use super::{Behavior, BertNormalizer, Normalizer, PreTokenizer, Registered, Tokenizer};
use crate::unicode;

/// A character of a text and the characters of the original that it stands for, end exclusive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aligned {
    pub c: char,
    pub from: (usize, usize),
}

/// A text on its way.
pub(super) type Text = Vec<Aligned>;

/// A token before it has a word number and a type.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub id: u32,
    pub text: String,
    pub offsets: (usize, usize),
}

/// A part of a text: an added token that was found, or what stands between two of them.
enum Part {
    Added(u32, Text),
    Plain(Text),
}

/// A text as it was given: every character stands for itself.
pub(super) fn original(text: &str) -> Text {
    text.chars().enumerate().map(|(i, c)| Aligned { c, from: (i, i + 1) }).collect()
}

fn string(text: &[Aligned]) -> String {
    text.iter().map(|a| a.c).collect()
}

/// From the beginning of the first character to the end of the last.
fn span(text: &[Aligned]) -> (usize, usize) {
    (text[0].from.0, text[text.len() - 1].from.1)
}

/// Rewrites a text. Each new character says how it came about, and so where it comes from:
///
/// * 0: it takes the place of the old character at the cursor, which moves on by one;
/// * 1: it is put in, and stands for what the old character before the cursor stands for;
/// * −n: as 0, and the cursor then skips n old characters, which are gone.
///
/// `skip` old characters at the beginning are gone too.
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

fn map(old: Text, f: impl Fn(char) -> char) -> Text {
    let new: Vec<(char, isize)> = old.iter().map(|a| (f(a.c), 0)).collect();
    transform(&old, &new, 0)
}

fn lowercase(old: Text) -> Text {
    let mut new = Vec::new();
    for a in &old {
        for (i, c) in unicode::lowercase(a.c).enumerate() {
            new.push((c, isize::from(i > 0)));
        }
    }
    transform(&old, &new, 0)
}

fn nfd(old: Text) -> Text {
    let mut new = Vec::new();
    for a in &old {
        match unicode::decompose(a.c) {
            Some(parts) => new.extend(parts.iter().enumerate().map(|(i, &c)| (c, isize::from(i > 0)))),
            None => new.push((a.c, 0)),
        }
    }
    // Canonical order: sort each run of characters that are not of class 0, keeping the order within a class. What came
    // about how moves along with its character; the ranges are dealt out afterwards.
    let class = |&(c, _): &(char, isize)| unicode::combining_class(c);
    for run in new.chunk_by_mut(|a, b| class(a) != 0 && class(b) != 0) {
        run.sort_by_key(class);
    }
    transform(&old, &new, 0)
}

fn strip(old: Text, left: bool, right: bool) -> Text {
    let blank = |a: &&Aligned| unicode::is_whitespace(a.c);
    let start = if left { old.iter().take_while(blank).count() } else { 0 };
    let end = old.len() - if right { old.iter().rev().take_while(blank).count() } else { 0 };
    old.get(start..end).unwrap_or_default().to_vec()
}

fn clean(old: Text) -> Text {
    let kept = filter(old, |c| !unicode::is_removed_by_clean(c));
    map(kept, |c| if unicode::is_whitespace(c) { ' ' } else { c })
}

fn set_ideographs_apart(old: Text) -> Text {
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

fn normalize_bert(options: &BertNormalizer, mut text: Text) -> Text {
    if options.clean_text {
        text = clean(text);
    }
    if options.handle_chinese_chars {
        text = set_ideographs_apart(text);
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

/// Cuts a text into words at the characters of which `at` is true. No word is empty.
fn split(text: Text, behavior: Behavior, at: impl Fn(char) -> bool) -> Vec<Text> {
    let mut words: Vec<Text> = Vec::new();
    let mut previous = None;
    for a in text {
        let here = at(a.c);
        let joined = previous == Some(here) && !(here && matches!(behavior, Behavior::Isolated));
        previous = Some(here);
        if here && matches!(behavior, Behavior::Removed) {
            continue;
        }
        match words.last_mut().filter(|_| joined) {
            Some(word) => word.push(a),
            None => words.push(vec![a]),
        }
    }
    words
}

fn pre_tokenize(pre_tokenizer: Option<&PreTokenizer>, text: Text) -> Vec<Text> {
    match pre_tokenizer {
        None => vec![text],
        Some(PreTokenizer::Bert) => split(text, Behavior::Removed, unicode::is_whitespace)
            .into_iter()
            .flat_map(|word| split(word, Behavior::Isolated, unicode::is_punctuation))
            .collect(),
        Some(PreTokenizer::Whitespace) => {
            split(text, Behavior::Removed, |c| unicode::is_whitespace(c) && !unicode::is_word(c))
                .into_iter()
                .flat_map(|word| split(word, Behavior::Contiguous, unicode::is_word))
                .collect()
        }
        Some(PreTokenizer::WhitespaceSplit) => split(text, Behavior::Removed, unicode::is_whitespace),
        Some(PreTokenizer::Punctuation(behavior)) => split(text, *behavior, unicode::is_punctuation),
        Some(PreTokenizer::Digits { individual }) => {
            let behavior = if *individual { Behavior::Isolated } else { Behavior::Contiguous };
            split(text, behavior, unicode::is_numeric)
        }
        Some(PreTokenizer::Sequence(all)) => all
            .iter()
            .fold(vec![text], |words, one| words.into_iter().flat_map(|word| pre_tokenize(Some(one), word)).collect()),
    }
}

impl Tokenizer {
    /// The tokens of a text, word by word.
    pub(super) fn words(&self, text: &str) -> Vec<Vec<Token>> {
        let mut words = Vec::new();
        for part in self.cut_out(original(text), false) {
            let parts = match part {
                Part::Added(..) => vec![part],
                Part::Plain(text) => self.cut_out(normalize(self.config.normalizer.as_ref(), text), true),
            };
            for part in parts {
                match part {
                    Part::Added(id, text) => words.push(vec![Token { id, text: string(&text), offsets: span(&text) }]),
                    Part::Plain(text) => {
                        let split = pre_tokenize(self.config.pre_tokenizer.as_ref(), text);
                        words.extend(split.iter().filter(|word| !word.is_empty()).map(|word| self.pieces(word)));
                    }
                }
            }
        }
        words
    }

    /// Cuts out the added tokens that are looked for in the original (or, if so asked, in the normalized) text.
    fn cut_out(&self, text: Text, normalized: bool) -> Vec<Part> {
        let wanted: Vec<&Registered> = self.added.iter().filter(|added| added.token.normalized == normalized).collect();
        let mut parts = Vec::new();
        let mut done = 0; // the text is dealt with up to here
        let mut position = 0; // and searched up to here
        while position < text.len() {
            // The longest that matches here; of two with one pattern, the one that was added first (in the reference
            // implementation chance decides).
            let mut found: Option<&Registered> = None;
            for added in &wanted {
                let here = text[position..].iter().map(|a| a.c).take(added.pattern.len());
                if here.eq(added.pattern.iter().copied()) && found.is_none_or(|f| f.pattern.len() < added.pattern.len())
                {
                    found = Some(added);
                }
            }
            let Some(added) = found else {
                position += 1;
                continue;
            };
            let (mut start, mut end) = (position, position + added.pattern.len());
            position = end; // Also if it is refused now: what it covers is not searched again.
            if self.config.encode_special_tokens && added.ever_special {
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
                // Wholly inside the white space that the token before took. The reference implementation panics.
                continue;
            }
            if done < start {
                parts.push(Part::Plain(text[done..start].to_vec()));
            }
            if start < end {
                parts.push(Part::Added(added.id, text[start..end].to_vec()));
            }
            done = end;
        }
        if done < text.len() {
            parts.push(Part::Plain(text[done..].to_vec()));
        }
        parts
    }

    /// The pieces of a word: the longest that fits, again and again; one unknown token if ever nothing fits.
    fn pieces(&self, word: &[Aligned]) -> Vec<Token> {
        let unknown = || {
            let unk = &self.config.unk_token;
            vec![Token { id: self.vocab[unk], text: unk.clone(), offsets: span(word) }]
        };
        if word.len() > self.config.max_input_chars_per_word {
            return unknown();
        }
        let mut pieces = Vec::new();
        let mut start = 0;
        while start < word.len() {
            let prefix = if start > 0 { self.config.continuing_subword_prefix.as_str() } else { "" };
            let longest = (start + 1..=word.len()).rev().find_map(|end| {
                let text = format!("{prefix}{}", string(&word[start..end]));
                let id = *self.vocab.get(&text)?;
                Some((end, Token { id, text, offsets: span(&word[start..end]) }))
            });
            let Some((end, token)) = longest else { return unknown() };
            pieces.push(token);
            start = end;
        }
        pieces
    }
}
