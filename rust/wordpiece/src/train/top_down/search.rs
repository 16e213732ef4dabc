//! Finds the threshold, and builds the vocabulary for it.
//!
//! A piece is kept if its count reaches the threshold. The higher the threshold, the fewer pieces, so that the threshold for
//! a size is found by bisection, between the least and the greatest count of a word: about log2 of that range of sets are
//! computed, and each from the same first counts. The search stops at the first set that is not larger than requested
//! and at most `slack_ratio` smaller, as in TensorFlow Text. The size is not exactly monotonous in the threshold,
//! because the counts of later rounds depend on which pieces were kept; the search may therefore end at a set outside
//! of the slack.

use std::cmp::Reverse;

use hashbrown::HashSet;

use super::super::learner::{LearnerOutput, LearningTask};
use super::super::options::TopDownOptions;
use super::super::progress::Monitor;
use super::super::trained::Stop;
use super::super::vocab_builder::{CONTINUATION_PREFIX, VocabBuilder};
use super::prepare::{SelectedWords, select_words};
use super::suffixes::{SuffixCell, WordSuffixes};
use crate::error::{Error, Result, TrainingError};

/// The state that is the same for every threshold.
struct ThresholdSearch<'a> {
    suffixes: WordSuffixes<'a>,
    /// The counts of the first round, by suffix.
    first_counts: Vec<u64>,
    /// The number of rounds for each threshold.
    rounds: usize,
    /// The tokens that come first: special tokens and plain characters.
    leading: VocabBuilder,
    /// For each suffix, whether its token is in `leading`.
    is_leading: Vec<bool>,
    /// The continuation forms of all characters are always pieces. These are the ones that are suffixes, as numbers.
    char_suffixes: Vec<u32>,
    /// The other continuation forms, unless they are in `leading`, as tokens.
    other_chars: Vec<String>,
}

/// The pieces for a threshold.
struct PieceSet {
    /// The count of each suffix.
    cells: Vec<SuffixCell>,
    /// For each suffix, whether it is a piece.
    kept: Vec<bool>,
}

impl<'a> ThresholdSearch<'a> {
    /// Prepares the search for a vocabulary that begins with the tokens of `base`.
    fn new(
        selected: SelectedWords<'a>,
        base: &VocabBuilder,
        options: &TopDownOptions,
        monitor: &mut Monitor<'_>,
    ) -> Result<ThresholdSearch<'a>> {
        let suffixes = WordSuffixes::new(selected.words, options.include_joiner, monitor)?;
        let mut leading = base.clone();
        for c in &selected.chars {
            leading.add(c.encode_utf8(&mut [0; 4]));
        }
        let mut is_leading = vec![false; suffixes.count()];
        for token in leading.texts() {
            suffixes.numbers_of(token).for_each(|i| is_leading[i as usize] = true);
        }
        let (mut char_suffixes, mut other_chars) = (Vec::new(), Vec::new());
        for c in selected.chars.iter().filter(|_| options.include_joiner) {
            let token = format!("{CONTINUATION_PREFIX}{c}");
            // If a word has the text of this token, it has the character as a marked suffix too.
            let number = suffixes.numbers_of(&token).find(|&i| i >= suffixes.first_marked());
            match number {
                Some(number) => char_suffixes.push(number),
                None if leading.id(&token).is_none() => other_chars.push(token),
                None => {}
            }
        }
        let first_counts = suffixes.first_counts();
        let rounds = options.num_iterations;
        Ok(ThresholdSearch { suffixes, first_counts, rounds, leading, is_leading, char_suffixes, other_chars })
    }

    /// Finds the pieces for a threshold.
    ///
    /// In the first round pieces start at every character, so that a suffix has the count of all words that end with it. In each
    /// further round, words are divided into the longest pieces of the round before, and a suffix has the count of the pieces
    /// that start where it does. Rounds end early when the set stays the same.
    fn find_pieces(&self, threshold: u64, pieces: &mut PieceSet, monitor: &mut Monitor<'_>) -> Result<()> {
        let PieceSet { cells, kept } = pieces;
        kept.fill(false);
        for round in 0..self.rounds {
            let mut settled = round > 0;
            if round == 0 {
                cells.iter_mut().zip(&self.first_counts).for_each(|(cell, &count)| cell.count = count);
            } else {
                self.suffixes.count_round(&mut kept.clone(), cells, monitor)?;
            }
            for (kept, cell) in kept.iter_mut().zip(cells.iter()) {
                let now_kept = cell.count >= threshold;
                settled &= *kept == now_kept;
                *kept = now_kept;
            }
            if settled {
                // A round depends only on the set of pieces, so all further rounds would be the same.
                break;
            }
        }
        // Twins are one token. If both are kept, the count is the count of the marked one.
        let twins = self.suffixes.twins();
        for &(plain, marked) in twins {
            kept[plain as usize] &= !kept[marked as usize];
        }
        let covered: HashSet<u32> =
            twins.iter().filter(|(plain, _)| kept[*plain as usize]).map(|&(_, marked)| marked).collect();
        for &i in self.char_suffixes.iter().filter(|i| !covered.contains(*i)) {
            if !std::mem::replace(&mut kept[i as usize], true) {
                cells[i as usize].count = 1;
            }
        }
        Ok(())
    }

    /// Returns the size of the vocabulary with these pieces.
    fn size(&self, pieces: &PieceSet) -> usize {
        let new = pieces.kept.iter().zip(&self.is_leading).filter(|&(&kept, &leading)| kept && !leading).count();
        self.leading.len() + self.other_chars.len() + new
    }

    /// Returns the vocabulary with these pieces: by descending count after the leading tokens, then in string order.
    fn into_vocab(self, pieces: &PieceSet) -> VocabBuilder {
        let mut ranked: Vec<(Reverse<u64>, String)> = (0..pieces.kept.len() as u32)
            .filter(|&i| pieces.kept[i as usize] && !self.is_leading[i as usize])
            .map(|i| (Reverse(pieces.cells[i as usize].count), self.suffixes.token(i)))
            .collect();
        ranked.extend(self.other_chars.into_iter().map(|token| (Reverse(1), token)));
        ranked.sort_unstable();
        let mut vocab = self.leading;
        ranked.iter().for_each(|(_, token)| {
            vocab.add(token);
        });
        vocab
    }
}

/// Learns a vocabulary.
///
/// It may be larger or much smaller than requested, as in TensorFlow Text. When a vocabulary is extended, what exceeds
/// the requested size is truncated.
pub(in super::super) fn learn(
    task: LearningTask<'_>,
    options: &TopDownOptions,
    monitor: &mut Monitor<'_>,
) -> Result<LearnerOutput> {
    if options.lower_thresh == Some(0) || options.upper_thresh == Some(0) {
        return Err(Error::Training(TrainingError::ZeroThreshold));
    }
    let LearningTask { counts, vocab: base, extends, size } = task;
    let no_tokens = VocabBuilder::default();
    let selected = select_words(counts, if extends { &no_tokens } else { &base }, options);
    let excluded = selected.excluded;
    if selected.words.is_empty() {
        return Ok(LearnerOutput { vocab: base, stop: Stop::NothingLeft, excluded, ..LearnerOutput::default() });
    }
    // The bounds come from all words, the excluded ones included.
    let least = counts.counts().iter().min().copied().unwrap_or(1);
    let most = counts.counts().iter().max().copied().unwrap_or(1);
    let mut low = i128::from(least.max(options.lower_thresh.unwrap_or(0)));
    let mut high = i128::from(most.min(options.upper_thresh.unwrap_or(u64::MAX)));
    let search = ThresholdSearch::new(selected, &base, options, monitor)?;
    let n = search.suffixes.count();
    let mut pieces = PieceSet { cells: vec![SuffixCell::default(); n], kept: vec![false; n] };
    let slack = (options.slack_ratio * size as f64).max(0.0);
    let mut tried = 0;
    let threshold = loop {
        // At least 1: both bounds are at first, and the search ends at 1.
        let threshold = (low + high) / 2;
        search.find_pieces(threshold as u64, &mut pieces, monitor)?;
        let missing = size as i128 - search.size(&pieces) as i128;
        tried += 1;
        monitor.set_done(tried);
        if (missing >= 0 && missing as f64 <= slack) || low >= high || threshold <= 1 {
            break threshold;
        }
        if missing < 0 {
            low = threshold + 1;
        } else {
            high = threshold - 1;
        }
    };
    let mut vocab = search.into_vocab(&pieces);
    if extends {
        vocab.truncate(size);
    }
    let stop = if vocab.len() < size { Stop::Threshold(threshold as u64) } else { Stop::SizeReached };
    Ok(LearnerOutput { vocab, stop, excluded, threshold: Some(threshold as u64), ..LearnerOutput::default() })
}
