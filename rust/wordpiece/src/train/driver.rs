//! Runs a learner on word counts: checks the options, prepares the words, and collects the result.

use super::alphabet::Alphabet;
use super::counts::WordCounts;
use super::extend;
use super::learner::{LearnerOutput, LearningTask};
use super::options::{Learner, MergeOptions, TrainOptions};
use super::progress::{Monitor, Progress, Stage};
use super::symbols::SymbolWords;
use super::token_counts::{TokenCounts, token_counts};
use super::trained::{Stop, Trained};
use super::vocab_builder::VocabBuilder;
use super::{bpe, likelihood, top_down};
use crate::error::{Error, Result, TrainingError};

/// Learns a vocabulary from word counts.
///
/// `observer` is called about every 50 milliseconds and returns false to stop. The result depends on `counts` and
/// `options` only, not on the number of threads.
///
/// # Errors
///
/// [`Error::Training`] with [`TrainingError::NoWords`], [`TrainingError::CountsTooLarge`],
/// [`TrainingError::TooManySymbols`], [`TrainingError::SizeOfBase`], [`TrainingError::NoUnusedSlot`],
/// [`TrainingError::ZeroThreshold`], or [`TrainingError::Interrupted`] when the observer stops the work.
pub fn train(
    counts: &WordCounts,
    options: &TrainOptions,
    observer: &mut dyn FnMut(Progress) -> bool,
) -> Result<Trained> {
    if counts.is_empty() {
        return Err(Error::Training(TrainingError::NoWords));
    }
    let characters = total_characters(counts)?;
    let mut monitor = Monitor::new(observer);
    let base = options.base.as_ref().map(|texts| VocabBuilder::new(texts.iter().map(String::as_str)));
    let extends = base.is_some();
    let base_size = base.as_ref().map_or(0, VocabBuilder::len);
    let slots = match (&base, options.fill_unused) {
        (Some(base), true) => extend::unused_slots(base)?,
        _ => Vec::new(),
    };
    let size = if options.fill_unused { base_size + slots.len() } else { options.vocab_size };
    if extends && size <= base_size {
        return Err(Error::Training(TrainingError::SizeOfBase { vocab_size: size, base: base_size }));
    }
    let vocab = base.clone().unwrap_or_else(|| VocabBuilder::new(options.special_tokens.iter().map(String::as_str)));
    let task = LearningTask { counts, vocab, extends, size };
    let output = learn(task, characters, &options.learner, &mut monitor)?;
    let learned = output.vocab.into_texts();
    let (tokens, new) = match base {
        Some(base) if options.fill_unused => extend::fill_slots(base, &slots, learned),
        _ => {
            let new = base_size as u32..learned.len() as u32;
            (learned, if extends { new.collect() } else { Vec::new() })
        }
    };
    let pieces = match &options.base {
        Some(base) => extend::pieces_before(base, &tokens, &new),
        None => Vec::new(),
    };
    let TokenCounts { counts, unknown } = token_counts(counts, &tokens, options, &mut monitor)?;
    Ok(Trained {
        tokens,
        counts,
        unknown,
        pieces,
        stop: output.stop,
        least_size: output.least_size,
        dropped: output.dropped,
        excluded: output.excluded,
        threshold: output.threshold,
    })
}

/// Runs the learner. `characters` is the number of characters of all words.
fn learn(
    task: LearningTask<'_>,
    characters: u64,
    learner: &Learner,
    monitor: &mut Monitor<'_>,
) -> Result<LearnerOutput> {
    // The number of thresholds that `top_down` will try is not known.
    let total = if matches!(learner, Learner::TopDown(_)) { None } else { Some(task.size as u64) };
    monitor.begin(Stage::Learning, total)?;
    match learner {
        Learner::TopDown(options) => top_down::learn(task, options, monitor),
        Learner::Bpe(options) => learn_merges(task, characters, options, bpe::learn, monitor),
        Learner::Likelihood(options) => learn_merges(task, characters, options, likelihood::learn, monitor),
    }
}

/// Appends tokens that merge pairs of symbols until the vocabulary has the given size; `bpe::learn` or
/// `likelihood::learn`. The number is `min_frequency`.
type MergeLearner = fn(&mut SymbolWords, &mut VocabBuilder, usize, u64, &mut Monitor<'_>) -> Result<Stop>;

/// Does what `bpe` and `likelihood` have in common: chooses the alphabet and segments the words into its characters, or
/// into the pieces of the vocabulary to extend.
fn learn_merges(
    task: LearningTask<'_>,
    characters: u64,
    options: &MergeOptions,
    learn: MergeLearner,
    monitor: &mut Monitor<'_>,
) -> Result<LearnerOutput> {
    let LearningTask { counts, mut vocab, extends, size } = task;
    let alphabet = Alphabet::new(counts, characters, &options.initial_alphabet, options.limit_alphabet, monitor)?;
    alphabet.append_to(&mut vocab);
    let least_size = vocab.len();
    let mut words = match extends {
        true => alphabet.segment_longest_match(counts, &vocab, monitor)?,
        false => alphabet.segment_characters(counts, &vocab, monitor)?,
    };
    monitor.check()?;
    let stop = learn(&mut words, &mut vocab, size, options.min_frequency, monitor)?;
    Ok(LearnerOutput { vocab, stop, least_size, dropped: alphabet.dropped, ..LearnerOutput::default() })
}

/// Returns the number of characters of all words, each word as often as it occurs.
///
/// Every sum that the learners form is at most this number, so none of them overflows 63 bits.
///
/// # Errors
///
/// [`TrainingError::CountsTooLarge`] if it exceeds 63 bits.
fn total_characters(counts: &WordCounts) -> Result<u64> {
    let mut sum = 0u64;
    for (word, n) in counts.iter() {
        let weight = n.checked_mul(word.chars().count() as u64).and_then(|weight| sum.checked_add(weight));
        sum = weight
            .filter(|&sum| i64::try_from(sum).is_ok())
            .ok_or_else(|| Error::Training(TrainingError::CountsTooLarge { word: word.to_owned(), count: n }))?;
    }
    Ok(sum)
}
