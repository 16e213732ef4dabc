//! The settings and the result of a learner.

use pyo3::prelude::*;
use wordpiece::train::{self, Learner, MergeOptions, Stop, TopDownOptions, TrainOptions};

use crate::error::input;
use crate::text::{Fields, Utf8String, strings};

/// A trained vocabulary and how it came about; see `wordpiece::train::Trained` for the fields.
#[pyclass(frozen, get_all, module = "wordpiece_bert._core")]
pub struct Trained {
    tokens: Vec<String>,
    counts: Vec<u64>,
    unknown: u128,
    pieces: Vec<(u32, Vec<u32>)>,
    /// Why the learner stopped: ``"size"``, ``"nothing left"`` or ``"threshold"``.
    stop: &'static str,
    least_size: usize,
    threshold: Option<u64>,
    dropped_chars: Vec<char>,
    /// Occurrences of dropped characters, of all characters, of words with a dropped character, of all words.
    dropped_shares: (u64, u64, u128, u128),
    /// The number of excluded distinct words, and of their occurrences.
    excluded: (u64, u128),
}

impl From<train::Trained> for Trained {
    fn from(trained: train::Trained) -> Trained {
        let dropped = trained.dropped;
        Trained {
            tokens: trained.tokens,
            counts: trained.counts,
            unknown: trained.unknown,
            pieces: trained.pieces,
            stop: match trained.stop {
                Stop::SizeReached => "size",
                Stop::NothingLeft => "nothing left",
                Stop::Threshold(_) => "threshold",
            },
            least_size: trained.least_size,
            threshold: trained.threshold,
            dropped_shares: (dropped.occurrences, dropped.of_characters, dropped.words, dropped.of_words),
            dropped_chars: dropped.chars,
            excluded: (trained.excluded.words, trained.excluded.occurrences),
        }
    }
}

/// The options that all learners have, as items of a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct TargetFields {
    vocab_size: usize,
    special_tokens: Vec<Utf8String>,
    base: Option<Vec<Utf8String>>,
    fill_unused: bool,
}

/// The options of `bpe` and `likelihood`, as items of a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct MergeFields {
    min_frequency: u64,
    limit_alphabet: Option<usize>,
    initial_alphabet: Vec<Utf8String>,
}

impl From<MergeFields> for MergeOptions {
    fn from(fields: MergeFields) -> MergeOptions {
        let MergeFields { min_frequency, limit_alphabet, initial_alphabet } = fields;
        MergeOptions { min_frequency, limit_alphabet, initial_alphabet: strings(initial_alphabet) }
    }
}

/// The options of `top_down`, as items of a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TopDownFields {
    lower_thresh: Option<u64>,
    upper_thresh: Option<u64>,
    num_iterations: usize,
    slack_ratio: f64,
    max_token_length: usize,
    max_unique_chars: usize,
    max_input_words: Option<usize>,
    include_joiner: bool,
}

impl From<TopDownFields> for TopDownOptions {
    fn from(fields: TopDownFields) -> TopDownOptions {
        TopDownOptions {
            lower_thresh: fields.lower_thresh,
            upper_thresh: fields.upper_thresh,
            num_iterations: fields.num_iterations,
            slack_ratio: fields.slack_ratio,
            max_token_length: fields.max_token_length,
            max_unique_chars: fields.max_unique_chars,
            max_input_words: fields.max_input_words,
            include_joiner: fields.include_joiner,
        }
    }
}

/// Returns the learner with this name and these options.
fn learner(algorithm: &str, options: &Bound<'_, PyAny>) -> PyResult<Learner> {
    let merge_options = || options.extract::<Fields<MergeFields>>().map(|fields| MergeOptions::from(fields.0));
    Ok(match algorithm {
        "bpe" => Learner::Bpe(merge_options()?),
        "likelihood" => Learner::Likelihood(merge_options()?),
        "top_down" => Learner::TopDown(options.extract::<Fields<TopDownFields>>()?.0.into()),
        other => return Err(input(format!("algorithm must be 'bpe', 'top_down' or 'likelihood', not {other:?}"))),
    })
}

/// Returns the options of a training run.
pub fn train_options(
    target: TargetFields,
    algorithm: &str,
    options: &Bound<'_, PyAny>,
    threads: usize,
) -> PyResult<TrainOptions> {
    let TargetFields { vocab_size, special_tokens, base, fill_unused } = target;
    let learner = learner(algorithm, options)?;
    let (special_tokens, base) = (strings(special_tokens), base.map(strings));
    Ok(TrainOptions { vocab_size, special_tokens, base, fill_unused, learner, threads })
}
