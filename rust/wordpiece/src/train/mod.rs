//! Learns vocabularies: the words of texts are counted, and a learner builds a vocabulary from the counts.
//!
//! 1. [`count()`] counts the words of files or texts into [`WordCounts`], a multiset.
//! 2. [`train()`] learns a vocabulary from it with one of three learners ([`Learner`]): `bpe`, `likelihood` or
//!    `top_down`. The module of each learner opens with its definition.
//! 3. A [`Reporter`] measures how a tokenizer with the vocabulary divides texts.
//!
//! # Invariants
//!
//! - A learner returns the same tokens for the same counts: the number of threads, the order of the words, hash seeds
//!   and the platform have no effect.
//! - Special tokens come first and are not recognised in the training text.
//! - Tokens that continue a word begin with `##`, whatever the tokenizer that is trained for uses later.
//!
//! # Example
//!
//! ```
//! use wordpiece::train::{Learner, MergeOptions, TrainOptions, WordCounts, train};
//!
//! let counts = WordCounts::new([("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)])?;
//! let learner = Learner::Bpe(MergeOptions::default());
//! let options = TrainOptions { vocab_size: 30, learner, ..TrainOptions::default() };
//! let trained = train(&counts, &options, &mut |_| true)?;
//! assert!(trained.tokens.contains(&"##est".to_owned()));
//! # Ok::<(), wordpiece::Error>(())
//! ```

mod alphabet;
mod bpe;
mod counts;
mod driver;
mod extend;
mod learner;
mod likelihood;
mod neighbours;
mod options;
mod pairs;
mod progress;
mod report;
mod sorted_tokens;
mod symbols;
mod token_counts;
mod top_down;
mod trained;
mod vocab_builder;

pub use crate::error::TrainingError;
pub use counts::{BlockSource, ByteBlock, CountOptions, Counted, FileBlocks, InvalidBytes, WordCounts, count};
pub use driver::train;
pub use options::{Learner, MergeOptions, TopDownOptions, TrainOptions};
pub use progress::{Progress, Stage};
pub use report::{ReportSums, Reporter};
pub use trained::{DroppedChars, ExcludedWords, Stop, Trained};
