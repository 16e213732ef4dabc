//! Tokens to model inputs: windows, special tokens, padding.

use std::collections::BTreeMap;
use std::ops::Range;

use super::text::Token;
use super::{Encoding, Padding, PostProcessor, Refusal, Side, Strategy, TemplatePiece, Truncation};

/// All that is known of one token.
#[derive(Clone, Debug)]
struct Row {
    id: u32,
    token: String,
    offsets: (usize, usize),
    word: Option<u32>,
    type_id: u32,
    attention: u32,
    special: u32,
}

/// An encoding on its way.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    rows: Vec<Row>,
    overflowing: Vec<Draft>,
    /// Which rows belong to the first and to the second text. Empty: not told yet.
    sequences: BTreeMap<usize, Range<usize>>,
}

fn special(id: u32, token: &str, type_id: u32) -> Row {
    Row { id, token: token.to_owned(), offsets: (0, 0), word: None, type_id, attention: 1, special: 1 }
}

impl Draft {
    /// Numbers the words, or gives all of them one number.
    pub(super) fn of_words(words: Vec<Vec<Token>>, word: Option<u32>, type_id: u32) -> Self {
        let mut rows = Vec::new();
        for (i, tokens) in words.into_iter().enumerate() {
            for Token { id, text, offsets } in tokens {
                let word = Some(word.unwrap_or(i as u32));
                rows.push(Row { id, token: text, offsets, word, type_id, attention: 1, special: 0 });
            }
        }
        Self { rows, ..Self::default() }
    }

    fn of_rows(rows: Vec<Row>) -> Self {
        Self { rows, ..Self::default() }
    }

    /// One after the other. Every window of one is combined with every window of the other; those with a window of the
    /// first have those of the second hang on them again.
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
        let Self { mut rows, mut sequences, .. } = self;
        let shift = rows.len();
        for (sequence, range) in other.sequences {
            sequences.insert(sequence, range.start + shift..range.end + shift);
        }
        rows.extend(other.rows);
        Self { rows, overflowing, sequences }
    }

    fn set_sequence(&mut self, sequence: usize) {
        self.sequences.insert(sequence, 0..self.rows.len());
    }

    fn sequence_ids(&self) -> Vec<Option<usize>> {
        let mut ids = vec![None; self.rows.len()];
        // Counted, not looked up: where only the second text is told, all belongs to the first, as in the reference
        // implementation (seen without a post-processor).
        for sequence in 0..self.sequences.len().max(1) {
            let range = self.sequences.get(&sequence).cloned().unwrap_or(0..self.rows.len());
            ids[range].fill(Some(sequence));
        }
        ids
    }

    /// Keeps `keep` tokens; the rest goes into windows of as many, each of which has `stride` tokens in common with the
    /// one before.
    fn truncate(self, keep: usize, stride: usize, direction: Side) -> Result<Self, Refusal> {
        let n = self.rows.len();
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
        let mut windows = windows.into_iter().map(|window| Self::of_rows(self.rows[window].to_vec()));
        let first = windows.next().unwrap_or_default();
        Ok(Self { overflowing: windows.collect(), ..first })
    }

    fn pad(&mut self, length: usize, padding: &Padding) {
        for window in &mut self.overflowing {
            window.pad(length, padding);
        }
        let missing = length.saturating_sub(self.rows.len());
        let pad = Row { attention: 0, ..special(padding.pad_id, &padding.pad_token, padding.pad_type_id) };
        let pads = vec![pad; missing];
        match padding.direction {
            Side::Right => self.rows.extend(pads),
            Side::Left => {
                self.rows.splice(0..0, pads);
                for range in self.sequences.values_mut() {
                    *range = range.start + missing..range.end + missing;
                }
            }
        }
    }

    /// The lists that are handed out.
    pub(super) fn finish(self) -> Encoding {
        Encoding {
            ids: self.rows.iter().map(|row| row.id).collect(),
            tokens: self.rows.iter().map(|row| row.token.clone()).collect(),
            offsets: self.rows.iter().map(|row| row.offsets).collect(),
            word_ids: self.rows.iter().map(|row| row.word).collect(),
            type_ids: self.rows.iter().map(|row| row.type_id).collect(),
            sequence_ids: self.sequence_ids(),
            attention_mask: self.rows.iter().map(|row| row.attention).collect(),
            special_tokens_mask: self.rows.iter().map(|row| row.special).collect(),
            overflowing: self.overflowing.into_iter().map(Self::finish).collect(),
        }
    }
}

/// How many special tokens a post-processor adds.
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

/// Refuses a template with a name that means nothing, with a second text where there is but one, or with a special
/// token that has not as many ids as tokens.
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

/// How many tokens of the text are left room for; refused if the special tokens alone are too many.
fn budget(truncation: &Truncation, added: usize) -> Result<usize, Refusal> {
    let max_length = truncation.max_length;
    max_length
        .checked_sub(added)
        .ok_or_else(|| Refusal::input(format!("max_length {max_length} with {added} special tokens")))
}

/// What can be said of the options before any text is seen.
pub(super) fn check_truncation(truncation: &Truncation, added: usize) -> Result<(), Refusal> {
    let (stride, room) = (truncation.stride, budget(truncation, added)?);
    if stride > 0 && stride >= room {
        return Err(Refusal::input(format!("stride {stride} for windows of {room} tokens")));
    }
    Ok(())
}

/// Cuts one text or two so that they fit, together with the special tokens that will be added.
pub(super) fn truncate_pair(
    first: Draft,
    second: Option<Draft>,
    truncation: &Truncation,
    added: usize,
) -> Result<(Draft, Option<Draft>), Refusal> {
    let Truncation { stride, direction, strategy, .. } = *truncation;
    let room = budget(truncation, added)?;
    let (a, b) = (first.rows.len(), second.as_ref().map_or(0, |second| second.rows.len()));
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
        (Strategy::OnlySecond, None) => return Err(Refusal::input("only_second, but no second text is there".into())),
        (Strategy::OnlyFirst, _) if a > excess => (a - excess, b),
        (Strategy::OnlySecond, Some(_)) if b > excess => (a, b - excess),
        (Strategy::OnlyFirst | Strategy::OnlySecond, _) => {
            let message = format!("{excess} tokens have to go; {strategy:?} is too short (lengths {a} and {b})");
            return Err(Refusal::input(message));
        }
    };
    let first = first.truncate(keep_a, stride, direction)?;
    let second = second.map(|second| second.truncate(keep_b, stride, direction)).transpose()?;
    Ok((first, second))
}

/// Puts one text or two together with the special tokens.
pub(super) fn post_process(
    post: Option<&PostProcessor>,
    mut first: Draft,
    mut second: Option<Draft>,
    add_special_tokens: bool,
) -> Draft {
    let Some(post) = post else {
        // Nobody says here which rows are whose, but for the windows that are kept, and only if there are two texts.
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
        for row in &mut draft.rows {
            row.type_id = sequence as u32;
        }
    }
    match post {
        PostProcessor::Bert { cls, sep } => {
            let cls = || Draft::of_rows(vec![special(cls.1, &cls.0, 0)]);
            let sep = |type_id| Draft::of_rows(vec![special(sep.1, &sep.0, type_id)]);
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
            let mut place = |mut draft: Draft, type_id: u32| {
                for row in &mut draft.rows {
                    row.type_id = type_id; // of the kept window only: the others keep 0 and 1
                }
                all = std::mem::take(&mut all).merge(draft);
            };
            for piece in template {
                match piece {
                    TemplatePiece::A(type_id) => place(first.clone(), *type_id),
                    TemplatePiece::B(type_id) => place(second.clone().unwrap_or_default(), *type_id),
                    TemplatePiece::Special(name, type_id) if add_special_tokens => {
                        let token = &special_tokens[name];
                        let pairs = token.ids.iter().zip(&token.tokens);
                        place(
                            Draft::of_rows(pairs.map(|(&id, token)| special(id, token, *type_id)).collect()),
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

/// Makes all equally long, their windows too.
pub(super) fn pad(drafts: &mut [Draft], padding: &Padding) {
    let longest = drafts.iter().map(|draft| draft.rows.len()).max().unwrap_or(0);
    let mut length = padding.length.unwrap_or(longest);
    if padding.multiple_of > 0 {
        length = length.next_multiple_of(padding.multiple_of);
    }
    for draft in drafts {
        draft.pad(length, padding);
    }
}
