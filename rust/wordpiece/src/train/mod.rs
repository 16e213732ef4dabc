//! Texts → word counts → a vocabulary.
//!
//! Three learners, each in one file that begins with its definition: [`bpe`], [`top_down`], [`likelihood`]. All learn from
//! [`WordCounts`], a multiset of words, and give the same tokens for the same counts, whatever the threads, the run and the
//! platform. [`train`] is the front door.
//!
//! ```
//! use wordpiece::train::{Joining, Learner, TrainOptions, WordCounts, train};
//!
//! let counts = WordCounts::new([("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)])?;
//! let options = TrainOptions { vocab_size: 30, learner: Learner::Bpe(Joining::default()), ..TrainOptions::default() };
//! let trained = train(&counts, &options, &mut |_| true)?;
//! assert!(trained.tokens.contains(&"##est".to_owned()));
//! # Ok::<(), wordpiece::Error>(())
//! ```

mod alphabet;
mod bpe;
mod counts;
mod extend;
mod likelihood;
mod progress;
mod report;
mod symbols;
mod token_counts;
mod tokens;
mod top_down;

pub use crate::error::TrainingError;
pub use alphabet::DroppedChars;
pub use counts::{BadBytes, Block, Blocks, CountOptions, Counted, Files, WordCounts, count};
pub use progress::{Progress, Stage};
pub use report::{Reporter, Sums};
pub use top_down::{LeftOut, TopDownOptions};

use alphabet::Alphabet;
use progress::Watch;
use tokens::Tokens;

use crate::error::{Error, Result};

/// The learners that join pairs, and what they can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joining {
    /// Pairs that occur less often are not joined.
    pub min_frequency: u64,
    /// So many characters are kept, the most frequent; `None`: all. Others vanish from the words.
    pub limit_alphabet: Option<usize>,
    /// Characters that are kept before all others, seen or not: of each string the first one.
    pub initial_alphabet: Vec<String>,
}

impl Default for Joining {
    fn default() -> Joining {
        Joining { min_frequency: 2, limit_alphabet: Some(1000), initial_alphabet: Vec::new() }
    }
}

/// The learners.
#[derive(Debug, Clone, PartialEq)]
pub enum Learner {
    /// The most frequent pair is joined.
    Bpe(Joining),
    /// The pair that gains most by being joined is joined.
    Likelihood(Joining),
    /// Whole words first, then the endings that are left.
    TopDown(TopDownOptions),
}

/// What to learn.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainOptions {
    /// The size of the vocabulary, special tokens included.
    pub vocab_size: usize,
    /// What comes first, in this order; of one that stands twice the first counts.
    pub special_tokens: Vec<String>,
    /// A vocabulary that is to be extended: its tokens keep their ids, and `special_tokens` are only told not to be counted.
    pub base: Option<Vec<String>>,
    /// New tokens take the places of `[unused0]`, `[unused1]`, … of `base`; `vocab_size` is not looked at.
    pub fill_unused: bool,
    /// Who learns, and how.
    pub learner: Learner,
    /// Threads to use where the work falls into parts; 0 is taken as 1. The answer does not depend on it.
    pub threads: usize,
}

impl Default for TrainOptions {
    fn default() -> TrainOptions {
        TrainOptions {
            vocab_size: 30_522,
            special_tokens: ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(String::from).to_vec(),
            base: None,
            fill_unused: false,
            learner: Learner::Bpe(Joining::default()),
            threads: 1,
        }
    }
}

/// Why a learner ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stop {
    /// The vocabulary is as large as was asked for, or larger.
    #[default]
    SizeReached,
    /// Nothing is left to join, or too rare.
    NothingLeft,
    /// The lowest threshold that the options allow was reached.
    Threshold(u64),
}

/// A vocabulary, and how it came about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trained {
    /// The tokens; the ids are the places.
    pub tokens: Vec<String>,
    /// How often each is used when the words are cut by longest match with this vocabulary; 0 for special tokens.
    pub counts: Vec<u64>,
    /// How many occurrences of words have no pieces.
    pub unknown: u128,
    /// For each new token of an extended vocabulary its id and its pieces under the old one; the unknown token where it has
    /// none.
    pub pieces: Vec<(u32, Vec<u32>)>,
    /// Why the learner ended.
    pub stop: Stop,
    /// The size with the special tokens and all characters alone: a smaller one cannot be met.
    pub least_size: usize,
    /// What `limit_alphabet` left out.
    pub dropped: DroppedChars,
    /// What `top_down` left out.
    pub left_out: LeftOut,
    /// The threshold that `top_down` ended with.
    pub threshold: Option<u64>,
}

/// What a learner hands back.
#[derive(Debug, Default)]
struct Outcome {
    tokens: Tokens,
    stop: Stop,
    least_size: usize,
    dropped: DroppedChars,
    left_out: LeftOut,
    threshold: Option<u64>,
}

/// Learns a vocabulary from word counts.
///
/// `observer` is called every 50 milliseconds or so, and returns false to stop.
///
/// # Errors
///
/// A [`TrainingError`]: no words, counts that are too large, a base that has the size asked for already, or
/// [`TrainingError::Interrupted`].
pub fn train(
    counts: &WordCounts,
    options: &TrainOptions,
    observer: &mut dyn FnMut(Progress) -> bool,
) -> Result<Trained> {
    if counts.is_empty() {
        return Err(Error::Training(TrainingError::NoWords));
    }
    let of_characters = characters(counts)?;
    let mut watch = Watch::new(observer);
    let base = options.base.as_ref().map(|texts| Tokens::new(texts.iter().map(String::as_str)));
    let extends = base.is_some();
    let old = base.as_ref().map_or(0, Tokens::len);
    let slots = match (&base, options.fill_unused) {
        (Some(base), true) => extend::unused_slots(base)?,
        _ => Vec::new(),
    };
    let size = if options.fill_unused { old + slots.len() } else { options.vocab_size };
    if extends && size <= old {
        return Err(Error::Training(TrainingError::SizeOfBase { vocab_size: size, base: old }));
    }
    let tokens = base.clone().unwrap_or_else(|| Tokens::new(options.special_tokens.iter().map(String::as_str)));
    let total = if matches!(options.learner, Learner::TopDown(_)) { None } else { Some(size as u64) };
    watch.begin(Stage::Learning, total)?;
    let outcome = match &options.learner {
        Learner::TopDown(how) => top_down::learn(counts, tokens, extends, size, how, &mut watch)?,
        Learner::Bpe(how) => join(counts, of_characters, tokens, extends, size, how, bpe::learn, &mut watch)?,
        Learner::Likelihood(how) => {
            join(counts, of_characters, tokens, extends, size, how, likelihood::learn, &mut watch)?
        }
    };
    let learned = outcome.tokens.into_texts();
    let (tokens, new) = match base {
        Some(base) if options.fill_unused => extend::filled(base, &slots, learned),
        _ => {
            let new = old as u32..learned.len() as u32;
            (learned, if extends { new.collect() } else { Vec::new() })
        }
    };
    let pieces = match &options.base {
        Some(base) => extend::pieces_before(base, &tokens, &new),
        None => Vec::new(),
    };
    let (used, unknown) = token_counts::uses(counts, &tokens, options, &mut watch)?;
    Ok(Trained {
        tokens,
        counts: used,
        unknown,
        pieces,
        stop: outcome.stop,
        least_size: outcome.least_size,
        dropped: outcome.dropped,
        left_out: outcome.left_out,
        threshold: outcome.threshold,
    })
}

/// What `bpe` and `likelihood` share: the alphabet, and words cut into it (or into the pieces of the base).
#[allow(clippy::too_many_arguments, reason = "all that the two share, and the one function that they do not")]
fn join(
    counts: &WordCounts,
    of_characters: u64,
    mut tokens: Tokens,
    extends: bool,
    size: usize,
    how: &Joining,
    learn: fn(&mut symbols::Words, &mut Tokens, usize, u64, &mut Watch<'_>) -> Result<Stop>,
    watch: &mut Watch<'_>,
) -> Result<Outcome> {
    let alphabet = Alphabet::new(counts, of_characters, &how.initial_alphabet, how.limit_alphabet, watch)?;
    alphabet.append_to(&mut tokens);
    let least_size = tokens.len();
    let mut words = match extends {
        true => alphabet.cut_longest(counts, &tokens, watch)?,
        false => alphabet.cut(counts, &tokens, watch)?,
    };
    watch.pause()?;
    let stop = learn(&mut words, &mut tokens, size, how.min_frequency, watch)?;
    Ok(Outcome { tokens, stop, least_size, dropped: alphabet.dropped, ..Outcome::default() })
}

/// The characters of all words, each word as often as it occurs: every sum that learners form is at most that.
///
/// # Errors
///
/// It passes 63 bits.
fn characters(counts: &WordCounts) -> Result<u64> {
    let mut sum = 0u64;
    for (word, n) in counts.iter() {
        let weight = n.checked_mul(word.chars().count() as u64).and_then(|weight| sum.checked_add(weight));
        sum = weight
            .filter(|&sum| i64::try_from(sum).is_ok())
            .ok_or_else(|| Error::Training(TrainingError::CountsTooLarge { word: word.to_owned(), count: n }))?;
    }
    Ok(sum)
}
