//! Rows from tokens: `Encoding`, truncation, post-processors and padding of `tokenizers`.

use std::collections::BTreeMap;
use std::ops::Range;

use super::config::{Padding, PostProcessor, Refusal, Side, Strategy, TemplatePiece, Truncation};
use super::matcher::Token;

/// One encoded row. All lists but `overflowing` have one entry per token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// The ids of the tokens.
    pub ids: Vec<u32>,
    /// The tokens as text; for an added token, the text that it covers.
    pub tokens: Vec<String>,
    /// The characters of the text (or word) that each token covers, end exclusive.
    pub offsets: Vec<(usize, usize)>,
    /// The word that each token belongs to.
    pub word_ids: Vec<Option<u32>>,
    /// The segment of each token.
    pub type_ids: Vec<u32>,
    /// The text that each token comes from, 0 or 1.
    pub sequence_ids: Vec<Option<usize>>,
    /// 0 for padding, 1 for all other tokens.
    pub attention_mask: Vec<u32>,
    /// 1 for special tokens and padding, 0 for the tokens of a text.
    pub special_tokens_mask: Vec<u32>,
    /// The other windows, if the row was truncated.
    pub overflowing: Vec<Encoding>,
}

/// Everything known about one token of a row.
#[derive(Clone, Debug)]
struct RowToken {
    id: u32,
    token: String,
    offsets: (usize, usize),
    word: Option<u32>,
    type_id: u32,
    attention: u32,
    special: u32,
}

/// A row under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    tokens: Vec<RowToken>,
    overflowing: Vec<Draft>,
    /// The tokens that come from the first and from the second text. Empty if not known yet.
    sequences: BTreeMap<usize, Range<usize>>,
}

/// Returns a special token.
fn special(id: u32, token: &str, type_id: u32) -> RowToken {
    RowToken { id, token: token.to_owned(), offsets: (0, 0), word: None, type_id, attention: 1, special: 1 }
}

impl Draft {
    /// Returns the row of a list of words. Words are numbered in order, unless all get the same number `word`.
    pub(super) fn of_words(words: Vec<Vec<Token>>, word: Option<u32>, type_id: u32) -> Self {
        let mut row = Vec::new();
        for (i, tokens) in words.into_iter().enumerate() {
            for Token { id, text, offsets } in tokens {
                let word = Some(word.unwrap_or(i as u32));
                row.push(RowToken { id, token: text, offsets, word, type_id, attention: 1, special: 0 });
            }
        }
        Self::of_tokens(row)
    }

    fn of_tokens(tokens: Vec<RowToken>) -> Self {
        Self { tokens, ..Self::default() }
    }

    /// Concatenates two rows. Every window of one is combined with every window of the other; combinations with an
    /// overflowing window of the first have the combinations with windows of the second nested in them again.
    pub(super) fn merge(self, other: Self) -> Self {
        let mut overflowing = Vec::new();
        for mine in &self.overflowing {
            overflowing.push(mine.clone().merge(other.clone()));
            for theirs in &other.overflowing {
                overflowing.push(mine.clone().merge(theirs.clone()));
            }
        }
        for theirs in &other.overflowing {
            overflowing.push(self.clone().merge(theirs.clone()));
        }
        let Self { mut tokens, mut sequences, .. } = self;
        let shift = tokens.len();
        for (sequence, range) in other.sequences {
            sequences.insert(sequence, range.start + shift..range.end + shift);
        }
        tokens.extend(other.tokens);
        Self { tokens, overflowing, sequences }
    }

    /// Records that all tokens come from one text.
    fn set_sequence(&mut self, sequence: usize) {
        self.sequences.insert(sequence, 0..self.tokens.len());
    }

    /// Returns the text that each token comes from.
    fn sequence_ids(&self) -> Vec<Option<usize>> {
        let mut ids = vec![None; self.tokens.len()];
        // By count, not by key: if only the second text is recorded, all tokens are attributed to the first, as in
        // `tokenizers` (which shows without a post-processor).
        for sequence in 0..self.sequences.len().max(1) {
            let range = self.sequences.get(&sequence).cloned().unwrap_or(0..self.tokens.len());
            ids[range].fill(Some(sequence));
        }
        ids
    }

    /// Keeps `keep` tokens; the rest overflows into windows of that size, each of which shares `stride` tokens with the
    /// one before.
    fn truncate(self, keep: usize, stride: usize, direction: Side) -> Result<Self, Refusal> {
        let n = self.tokens.len();
        if keep >= n {
            return Ok(self);
        }
        if keep == 0 {
            return Ok(Self { overflowing: vec![self], ..Self::default() });
        }
        if stride >= keep {
            return Err(Refusal::input(format!("stride {stride} for windows of {keep} tokens")));
        }
        let step = keep - stride;
        let mut windows = Vec::new();
        match direction {
            Side::Right => {
                let mut start = 0;
                loop {
                    windows.push(start..n.min(start + keep));
                    if start + keep >= n {
                        break;
                    }
                    start += step;
                }
            }
            Side::Left => {
                let mut end = n;
                loop {
                    windows.push(end.saturating_sub(keep)..end);
                    if end <= keep {
                        break;
                    }
                    end -= step;
                }
            }
        }
        let mut windows = windows.into_iter().map(|window| Self::of_tokens(self.tokens[window].to_vec()));
        let first = windows.next().unwrap_or_default();
        Ok(Self { overflowing: windows.collect(), ..first })
    }

    /// Pads the row and its overflow to `length` tokens.
    fn pad(&mut self, length: usize, padding: &Padding) {
        for window in &mut self.overflowing {
            window.pad(length, padding);
        }
        let missing = length.saturating_sub(self.tokens.len());
        let pad = RowToken { attention: 0, ..special(padding.pad_id, &padding.pad_token, padding.pad_type_id) };
        let pads = vec![pad; missing];
        match padding.direction {
            Side::Right => self.tokens.extend(pads),
            Side::Left => {
                self.tokens.splice(0..0, pads);
                for range in self.sequences.values_mut() {
                    *range = range.start + missing..range.end + missing;
                }
            }
        }
    }

    /// Returns the finished row.
    pub(super) fn finish(self) -> Encoding {
        Encoding {
            ids: self.tokens.iter().map(|token| token.id).collect(),
            tokens: self.tokens.iter().map(|token| token.token.clone()).collect(),
            offsets: self.tokens.iter().map(|token| token.offsets).collect(),
            word_ids: self.tokens.iter().map(|token| token.word).collect(),
            type_ids: self.tokens.iter().map(|token| token.type_id).collect(),
            sequence_ids: self.sequence_ids(),
            attention_mask: self.tokens.iter().map(|token| token.attention).collect(),
            special_tokens_mask: self.tokens.iter().map(|token| token.special).collect(),
            overflowing: self.overflowing.into_iter().map(Self::finish).collect(),
        }
    }
}

/// Returns how many special tokens a post-processor adds to a row.
pub(super) fn added_tokens(post: Option<&PostProcessor>, pair: bool, add_special_tokens: bool) -> usize {
    match post {
        None => 0,
        Some(_) if !add_special_tokens => 0,
        Some(PostProcessor::Bert { .. }) => 2 + usize::from(pair),
        Some(PostProcessor::Template { single, pair: both, special_tokens }) => (if pair { both } else { single })
            .iter()
            .map(|piece| match piece {
                TemplatePiece::Special(name, _) => special_tokens[name].ids.len(),
                TemplatePiece::A(_) | TemplatePiece::B(_) => 0,
            })
            .sum(),
    }
}

/// Refuses a template that contains an undefined name, uses the second text for a single one, or defines a special token
/// with different numbers of ids and tokens.
pub(super) fn check_post_processor(post: &PostProcessor) -> Result<(), Refusal> {
    let PostProcessor::Template { single, pair, special_tokens } = post else {
        return Ok(());
    };
    for piece in single.iter().chain(pair) {
        if let TemplatePiece::Special(name, _) = piece
            && !special_tokens.contains_key(name)
        {
            return Err(Refusal::format(format!("the template names {name:?}, which special_tokens does not have")));
        }
    }
    if single.iter().any(|piece| matches!(piece, TemplatePiece::B(_))) {
        return Err(Refusal::format("the template for one text names the second, B".into()));
    }
    for (name, token) in special_tokens {
        if token.ids.len() != token.tokens.len() {
            let (ids, tokens) = (token.ids.len(), token.tokens.len());
            return Err(Refusal::format(format!("special token {name:?} has {ids} ids and {tokens} tokens")));
        }
    }
    Ok(())
}

/// Returns how many tokens of text fit in a row; refused if the special tokens alone exceed it.
fn budget(truncation: &Truncation, added: usize) -> Result<usize, Refusal> {
    let max_length = truncation.max_length;
    max_length
        .checked_sub(added)
        .ok_or_else(|| Refusal::input(format!("max_length {max_length} with {added} special tokens")))
}

/// Refuses options that are wrong whatever the text.
pub(super) fn check_truncation(truncation: &Truncation, added: usize) -> Result<(), Refusal> {
    let (stride, room) = (truncation.stride, budget(truncation, added)?);
    if stride > 0 && stride >= room {
        return Err(Refusal::input(format!("stride {stride} for windows of {room} tokens")));
    }
    Ok(())
}

/// Truncates a text or a pair so that it fits together with the special tokens that will be added.
pub(super) fn truncate_pair(
    first: Draft,
    second: Option<Draft>,
    truncation: &Truncation,
    added: usize,
) -> Result<(Draft, Option<Draft>), Refusal> {
    let Truncation { stride, direction, strategy, .. } = *truncation;
    let room = budget(truncation, added)?;
    let (a, b) = (first.tokens.len(), second.as_ref().map_or(0, |second| second.tokens.len()));
    if a + b <= room {
        return Ok((first, second));
    }
    let excess = a + b - room;
    let (keep_a, keep_b) = match (strategy, &second) {
        _ if room == 0 => (0, 0),
        (Strategy::LongestFirst, None) => (room, 0),
        (Strategy::LongestFirst, Some(_)) => {
            let (short, long) = (a.min(b), a.max(b));
            let mut keep_short = short;
            let mut keep_long = if short > room { short } else { short.max(room - short) };
            if keep_short + keep_long > room {
                keep_short = room / 2;
                keep_long = keep_short + room % 2;
            }
            debug_assert!(keep_long <= long);
            if a > b { (keep_long, keep_short) } else { (keep_short, keep_long) }
        }
        (Strategy::OnlySecond, None) => return Err(Refusal::input("only_second, but there is no second text".into())),
        (Strategy::OnlyFirst, _) if a > excess => (a - excess, b),
        (Strategy::OnlySecond, Some(_)) if b > excess => (a, b - excess),
        (Strategy::OnlyFirst | Strategy::OnlySecond, _) => {
            let message = format!("cannot remove {excess} tokens: {strategy:?} is too short (lengths {a} and {b})");
            return Err(Refusal::input(message));
        }
    };
    let first = first.truncate(keep_a, stride, direction)?;
    let second = second.map(|second| second.truncate(keep_b, stride, direction)).transpose()?;
    Ok((first, second))
}

/// Combines a text or a pair with the special tokens.
pub(super) fn post_process(
    post: Option<&PostProcessor>,
    mut first: Draft,
    mut second: Option<Draft>,
    add_special_tokens: bool,
) -> Draft {
    let Some(post) = post else {
        // Tokens are attributed to texts only for the kept windows of a pair.
        let Some(mut second) = second else { return first };
        first.set_sequence(0);
        second.set_sequence(1);
        return Draft::default().merge(first).merge(second);
    };
    for (sequence, draft) in std::iter::once(&mut first).chain(second.as_mut()).enumerate() {
        draft.set_sequence(sequence);
        for window in &mut draft.overflowing {
            window.set_sequence(sequence);
        }
        for token in &mut draft.tokens {
            token.type_id = sequence as u32;
        }
    }
    match post {
        PostProcessor::Bert { cls, sep } => {
            let cls = || Draft::of_tokens(vec![special(cls.1, &cls.0, 0)]);
            let sep = |type_id| Draft::of_tokens(vec![special(sep.1, &sep.0, type_id)]);
            if add_special_tokens {
                first = cls().merge(first).merge(sep(0));
                second = second.map(|second| second.merge(sep(1)));
            }
            match second {
                Some(second) => first.merge(second),
                None => first,
            }
        }
        PostProcessor::Template { single, pair, special_tokens } => {
            let template = if second.is_some() { pair } else { single };
            let mut all = Draft::default();
            let mut append = |mut draft: Draft, type_id: u32| {
                for token in &mut draft.tokens {
                    token.type_id = type_id; // only in the kept window: the others keep 0 and 1
                }
                all = std::mem::take(&mut all).merge(draft);
            };
            for piece in template {
                match piece {
                    TemplatePiece::A(type_id) => append(first.clone(), *type_id),
                    TemplatePiece::B(type_id) => append(second.clone().unwrap_or_default(), *type_id),
                    TemplatePiece::Special(name, type_id) if add_special_tokens => {
                        let token = &special_tokens[name];
                        let pairs = token.ids.iter().zip(&token.tokens);
                        append(
                            Draft::of_tokens(pairs.map(|(&id, token)| special(id, token, *type_id)).collect()),
                            *type_id,
                        );
                    }
                    TemplatePiece::Special(..) => {}
                }
            }
            all
        }
    }
}

/// Pads all rows of a batch, and their overflow, to one length.
pub(super) fn pad(drafts: &mut [Draft], padding: &Padding) {
    let longest = drafts.iter().map(|draft| draft.tokens.len()).max().unwrap_or(0);
    let mut length = padding.length.unwrap_or(longest);
    if padding.multiple_of > 0 {
        length = length.next_multiple_of(padding.multiple_of);
    }
    for draft in drafts {
        draft.pad(length, padding);
    }
}
