//! Chooses tokens of a row to predict, and what the model sees in their place.
//!
//! A share of the tokens that are not special is chosen: single tokens, whole words, or spans of words. Of the chosen
//! tokens most become the mask token, some a random ordinary token, and the rest stay. All of it is a pure function of
//! the ids and of the row's [`RowKeys`], so that any worker computes the same masks for a row.
//!
//! # Cost
//!
//! A row is read once, to find its candidates. Choosing is the first part of a shuffle of them, one random number for
//! each chosen unit; a chosen token takes one or two more. Nothing is allocated from row to row.

use std::collections::BTreeSet;

use super::random::{Key, Stream, below, unit};
use crate::definition::Definition;

/// A type of token ids, of files or of models.
pub trait TokenId: Copy + Send + Sync {
    /// Returns the id as an index; ids that are negative become indices that no vocabulary has.
    fn index(self) -> usize;
}

macro_rules! token_id {
    ($($number:ty),*) => {$(
        impl TokenId for $number {
            #[inline]
            fn index(self) -> usize {
                self as usize
            }
        }
    )*};
}
token_id!(u16, u32, i32, i64);

/// What is chosen together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MaskUnit {
    /// Single tokens.
    #[default]
    Tokens,
    /// All pieces of a word.
    Words,
    /// Some words one after the other, of a length that is drawn.
    Spans,
}

/// Options of [`Masking`].
#[derive(Debug, Clone, PartialEq)]
pub struct MaskingOptions {
    /// The share of the tokens to choose, from 0 to 1.
    pub probability: f64,
    /// What is chosen together.
    pub unit: MaskUnit,
    /// The most tokens to choose in a row.
    pub max_predictions: Option<usize>,
    /// The share of the chosen tokens that become the mask token.
    pub masked: f64,
    /// The share of the chosen tokens that become a random one.
    pub random: f64,
    /// The probability with which a span ends after each word.
    pub span_probability: f64,
    /// The longest span, in words; at least 1.
    pub max_span_length: usize,
}

impl Default for MaskingOptions {
    /// The paper's: 15 % of the tokens, of which 80 % are masked and 10 % random; single tokens.
    fn default() -> Self {
        MaskingOptions {
            probability: 0.15,
            unit: MaskUnit::Tokens,
            max_predictions: None,
            masked: 0.8,
            random: 0.1,
            span_probability: 0.2,
            max_span_length: 10,
        }
    }
}

/// What masking needs to know of a vocabulary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenClasses {
    /// All ids, of added tokens too.
    pub ids: Vec<u32>,
    /// The ids of special tokens, which are never chosen.
    pub special: Vec<u32>,
    /// The ids of tokens that continue a word.
    pub continuing: Vec<u32>,
}

impl TokenClasses {
    /// Returns the classes of a tokenizer's tokens; `special` are the ids that its caller treats as special.
    ///
    /// A token continues a word if it is in the vocabulary, not added, and starts with the prefix for that. An empty prefix
    /// would make every token continue one: callers refuse to mask words with it.
    #[must_use]
    pub fn of(definition: &Definition, special: Vec<u32>) -> TokenClasses {
        let added: BTreeSet<u32> = definition.registered_tokens().into_iter().map(|(id, _)| id).collect();
        let prefix = definition.continuing_subword_prefix.as_str();
        let continues = |token: &str, id| !prefix.is_empty() && token.starts_with(prefix) && !added.contains(&id);
        let continuing =
            definition.vocab.iter().filter(|&(token, id)| continues(token, id)).map(|(_, id)| id).collect();
        let mut ids: Vec<u32> = definition.vocab.iter().map(|(_, id)| id).chain(added.iter().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        TokenClasses { ids, special, continuing }
    }
}

/// The token is never chosen. The class of ids that no token has.
const SPECIAL: u8 = 0;
/// The token begins a word.
const BEGINS: u8 = 1;
/// The token continues the word of a token before it.
const CONTINUES: u8 = 2;

/// The rules by which tokens are masked, for one vocabulary.
#[derive(Debug, Clone)]
pub struct Masking {
    options: MaskingOptions,
    /// The class of each id.
    classes: Vec<u8>,
    mask_id: u32,
    /// The ids that may replace a token, ascending.
    ordinary: Vec<u32>,
    /// The running sums of the weights of span lengths 1, 2, ….
    span_sums: Vec<f64>,
}

/// The keys of the random choices in rows of one epoch.
#[derive(Debug, Clone, Copy)]
pub struct EpochKeys([Key; 4]);

/// The keys of the random choices in one row.
#[derive(Debug, Clone, Copy)]
pub struct RowKeys {
    choice: Key,
    fate: Key,
    random: Key,
    length: Key,
}

impl EpochKeys {
    /// Derives the keys of rows that share a seed, an epoch, and a number (0, or the id of their document).
    #[must_use]
    pub fn new(seed: u64, epoch: u64, high: u64) -> EpochKeys {
        let streams = [Stream::Choice, Stream::Fate, Stream::Random, Stream::Length];
        EpochKeys(streams.map(|stream| Key::of_rows(seed, stream, epoch, high)))
    }

    /// Returns the keys of a row.
    #[inline]
    #[must_use]
    pub fn row(&self, low: u64) -> RowKeys {
        let [choice, fate, random, length] = self.0.map(|key| key.row(low));
        RowKeys { choice, fate, random, length }
    }
}

/// How many tokens masking considered and chose, and what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MaskCounts {
    /// Tokens that could have been chosen.
    pub candidates: u64,
    /// Chosen tokens that became the mask token.
    pub masked: u64,
    /// Chosen tokens that became a random one.
    pub random: u64,
    /// Chosen tokens that stayed.
    pub kept: u64,
    /// Rows for which the limit of predictions was lower than their share.
    pub capped: u64,
}

impl std::ops::AddAssign for MaskCounts {
    fn add_assign(&mut self, other: MaskCounts) {
        self.candidates += other.candidates;
        self.masked += other.masked;
        self.random += other.random;
        self.kept += other.kept;
        self.capped += other.capped;
    }
}

/// Buffers of [`Masking::apply`], kept from row to row.
#[derive(Debug, Default)]
pub struct MaskScratch {
    /// The places of candidates, or the units, in the order in which they are chosen.
    order: Vec<u32>,
    /// Where each unit begins and ends in the row.
    bounds: Vec<(u32, u32)>,
    taken: Vec<bool>,
    /// The chosen places, each with the place whose number decides its fate.
    chosen: Vec<(u32, u32)>,
}

impl Masking {
    /// Creates the rules. Ids that `classes` does not list count as special.
    #[must_use]
    pub fn new(classes: &TokenClasses, mask_id: u32, options: MaskingOptions) -> Masking {
        let size = classes.ids.iter().max().map_or(0, |&id| id as usize + 1);
        let mut by_id = vec![SPECIAL; size];
        let mut set = |ids: &[u32], class| {
            for &id in ids {
                if let Some(entry) = by_id.get_mut(id as usize) {
                    *entry = class;
                }
            }
        };
        set(&classes.ids, BEGINS);
        set(&classes.continuing, CONTINUES);
        set(&classes.special, SPECIAL);
        let ordinary = (0..).zip(&by_id).filter(|(_, class)| **class != SPECIAL).map(|(id, _)| id).collect();
        let mut span_sums = Vec::with_capacity(options.max_span_length);
        let (mut weight, mut sum) = (1.0, 0.0);
        for _ in 0..options.max_span_length {
            sum += weight;
            span_sums.push(sum);
            weight *= 1.0 - options.span_probability;
        }
        Masking { options, classes: by_id, mask_id, ordinary, span_sums }
    }

    /// Returns the number of ids, special ones included: ids from there on are not of this vocabulary.
    #[must_use]
    pub fn size(&self) -> usize {
        self.classes.len()
    }

    #[inline]
    fn class(&self, id: impl TokenId) -> u8 {
        self.classes.get(id.index()).copied().unwrap_or(SPECIAL)
    }

    /// Returns how many of `n` candidates are to be chosen, and whether the limit of predictions lowered the number.
    fn wanted(&self, n: usize) -> (usize, bool) {
        if n == 0 || self.options.probability == 0.0 {
            return (0, false);
        }
        let share = ((self.options.probability * n as f64).round_ties_even() as usize).max(1);
        let wanted = share.min(self.options.max_predictions.unwrap_or(usize::MAX));
        (wanted, wanted < share)
    }

    /// Chooses tokens of a row and calls `write` with the place, the old id and the new id of each, in any order.
    pub fn apply<I: TokenId>(
        &self,
        ids: &[I],
        keys: &RowKeys,
        scratch: &mut MaskScratch,
        mut write: impl FnMut(usize, u32, u32),
    ) -> MaskCounts {
        let mut counts = MaskCounts::default();
        let capped = match self.options.unit {
            MaskUnit::Tokens => self.choose_tokens(ids, keys, scratch, &mut counts),
            MaskUnit::Words | MaskUnit::Spans => self.choose_words(ids, keys, scratch, &mut counts),
        };
        counts.capped = u64::from(capped);
        let threshold = self.options.masked + self.options.random;
        for &(place, group) in &scratch.chosen {
            let old = ids[place as usize].index() as u32; // it has a class, so the vocabulary has it
            let fate = unit(keys.fate.draw(u64::from(group)));
            let new = if fate < self.options.masked {
                counts.masked += 1;
                self.mask_id
            } else if fate < threshold && !self.ordinary.is_empty() {
                counts.random += 1;
                let i = below(keys.random.draw(u64::from(place)), self.ordinary.len() as u64);
                self.ordinary[i as usize]
            } else {
                counts.kept += 1;
                old
            };
            write(place as usize, old, new);
        }
        counts
    }

    /// Chooses single tokens; returns whether the limit lowered their number.
    fn choose_tokens<I: TokenId>(
        &self,
        ids: &[I],
        keys: &RowKeys,
        scratch: &mut MaskScratch,
        counts: &mut MaskCounts,
    ) -> bool {
        let MaskScratch { order, chosen, .. } = scratch;
        // Every place is written and only candidates are counted, which takes no branch.
        order.resize(ids.len(), 0);
        let mut n = 0;
        for (place, &id) in (0..).zip(ids) {
            order[n] = place;
            n += usize::from(self.class(id) != SPECIAL);
        }
        order.truncate(n);
        chosen.clear();
        let (wanted, capped) = self.wanted(n);
        counts.candidates += n as u64;
        for t in 0..wanted.min(n) {
            let j = t + below(keys.choice.draw(t as u64), (n - t) as u64) as usize;
            order.swap(t, j);
            chosen.push((order[t], order[t]));
        }
        capped
    }

    /// Chooses words or spans of words; returns whether the limit lowered the number of tokens.
    fn choose_words<I: TokenId>(
        &self,
        ids: &[I],
        keys: &RowKeys,
        scratch: &mut MaskScratch,
        counts: &mut MaskCounts,
    ) -> bool {
        let MaskScratch { order, bounds, taken, chosen } = scratch;
        let n = self.find_words(ids, bounds);
        let (wanted, capped) = self.wanted(n);
        counts.candidates += n as u64;
        chosen.clear();
        if wanted == 0 {
            return capped;
        }
        order.clear();
        order.extend(0..bounds.len() as u32);
        taken.clear();
        taken.resize(bounds.len(), false);
        let mut t = 0;
        while chosen.len() < wanted && t < order.len() {
            let j = t + below(keys.choice.draw(t as u64), (order.len() - t) as u64) as usize;
            order.swap(t, j);
            let first = order[t] as usize;
            t += 1;
            if taken[first] {
                continue;
            }
            let group = bounds[first].0;
            let length = match self.options.unit {
                MaskUnit::Spans => self.span_length(keys.length.draw(u64::from(group))),
                MaskUnit::Tokens | MaskUnit::Words => 1,
            };
            for word in first..(first + length).min(bounds.len()) {
                let (start, end) = bounds[word];
                let touches = word == first || bounds[word - 1].1 == start;
                if taken[word] || !touches || chosen.len() + (end - start) as usize > wanted {
                    break;
                }
                taken[word] = true;
                let is_span = self.options.unit == MaskUnit::Spans;
                chosen.extend((start..end).map(|place| (place, if is_span { group } else { place })));
            }
        }
        capped
    }

    /// Finds the words of a row; returns the number of tokens in them.
    fn find_words<I: TokenId>(&self, ids: &[I], bounds: &mut Vec<(u32, u32)>) -> usize {
        // One entry more than there can be words: the word before the first.
        bounds.clear();
        let mut n = 0;
        let mut before = SPECIAL;
        for (place, &id) in (0..).zip(ids) {
            let class = self.class(id);
            if class != SPECIAL {
                n += 1;
                match bounds.last_mut() {
                    Some(word) if class == CONTINUES && before != SPECIAL => word.1 = place + 1,
                    _ => bounds.push((place, place + 1)),
                }
            }
            before = class;
        }
        n
    }

    /// Returns the length of a span in words.
    fn span_length(&self, draw: u64) -> usize {
        let Some(&last) = self.span_sums.last() else { return 1 };
        let threshold = unit(draw) * last;
        1 + self.span_sums.iter().position(|&sum| threshold < sum).unwrap_or(self.span_sums.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masking(options: MaskingOptions) -> Masking {
        let classes =
            TokenClasses { ids: (0..40).collect(), special: vec![0, 1, 2, 3, 4], continuing: (20..30).collect() };
        Masking::new(&classes, 4, options)
    }

    fn masked(masking: &Masking, ids: &[u32], epoch: u64, row: u64) -> (Vec<u32>, MaskCounts) {
        let mut new_ids = ids.to_vec();
        let keys = EpochKeys::new(1, epoch, 0).row(row);
        let counts = masking.apply(ids, &keys, &mut MaskScratch::default(), |place, old, new| {
            assert_eq!(old, ids[place]);
            new_ids[place] = new;
        });
        (new_ids, counts)
    }

    #[test]
    fn a_mask_token_that_the_type_of_the_ids_has_not_is_written() {
        let classes = TokenClasses { ids: (0..40).collect(), special: vec![70_004], continuing: Vec::new() };
        let options = MaskingOptions { probability: 1.0, masked: 1.0, random: 0.0, ..MaskingOptions::default() };
        let mut written = Vec::new();
        let keys = EpochKeys::new(1, 0, 0).row(0);
        let write = |_, old, new| written.push((old, new));
        Masking::new(&classes, 70_004, options).apply(&[7_u16], &keys, &mut MaskScratch::default(), write);
        assert_eq!(written, [(7, 70_004)]);
    }

    #[test]
    fn rows_without_candidates_stay() {
        let (ids, counts) = masked(&masking(MaskingOptions::default()), &[2, 3], 0, 0);
        assert_eq!((ids, counts), (vec![2, 3], MaskCounts::default()));
    }

    #[test]
    fn a_share_is_rounded_half_to_even_and_at_least_one() {
        let half = masking(MaskingOptions { probability: 0.5, ..MaskingOptions::default() });
        let wanted = [1, 2, 3, 5, 7].map(|n| half.wanted(n).0);
        assert_eq!(wanted, [1, 1, 2, 2, 4]);
        let capped =
            masking(MaskingOptions { max_predictions: Some(1), probability: 0.5, ..MaskingOptions::default() });
        assert_eq!([1, 2, 7].map(|n| capped.wanted(n)), [(1, false), (1, false), (1, true)]);
    }

    #[test]
    fn words_are_chosen_whole_and_never_across_special_tokens() {
        let words = masking(MaskingOptions { unit: MaskUnit::Words, masked: 1.0, random: 0.0, ..Default::default() });
        let row = [2, 20, 21, 3, 22, 10, 23, 24, 11, 12, 13, 14, 15, 16, 17, 3];
        let allowed = [vec![1, 2], vec![4], vec![5, 6, 7]];
        for epoch in 0..200 {
            let (ids, _) = masked(&words, &row, epoch, 3);
            for word in &allowed {
                let n = word.iter().filter(|&&place| ids[place] == 4).count();
                assert!(n == 0 || n == word.len(), "{ids:?}");
            }
        }
    }

    #[test]
    fn span_lengths_follow_their_weights() {
        let spans = masking(MaskingOptions { unit: MaskUnit::Spans, ..MaskingOptions::default() });
        let lengths =
            [0x1d0b_14e4_db01_8fed, 0xb346_6f8a_7b81_a989, 0x9ceb_e8a6_d050_dd01].map(|u| spans.span_length(u));
        assert_eq!(lengths, [1, 5, 4]);
        assert_eq!(spans.span_length(u64::MAX), 10);
    }
}
