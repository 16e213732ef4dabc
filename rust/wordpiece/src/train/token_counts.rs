//! How often each token of a finished vocabulary is used, defined in the same way for all learners.

use std::ops::Range;

use wordpiece_parallel::fork_join;

use super::counts::WordCounts;
use super::options::TrainOptions;
use super::progress::Monitor;
use super::vocab_builder::CONTINUATION_PREFIX;
use crate::error::{Error, Result, TrainingError};
use crate::matcher::{Matcher, WordPieces};

/// The least number of distinct words for which another thread is started.
const LEAST_WORDS_PER_THREAD: usize = 4096;

/// The uses of a vocabulary.
pub(super) struct TokenCounts {
    /// How often each token is used, by id.
    pub counts: Vec<u64>,
    /// How many occurrences of words cannot be segmented.
    pub unknown: u128,
}

/// Segments all words by longest match and counts how often each token is used; special tokens count 0.
///
/// The words are divided into equal parts, one for each thread. The calling thread counts the first part and reports
/// progress; the others stop soon after it has been interrupted.
pub(super) fn token_counts(
    words: &WordCounts,
    tokens: &[String],
    options: &TrainOptions,
    monitor: &mut Monitor<'_>,
) -> Result<TokenCounts> {
    let matcher = Matcher::new(tokens.iter().map(String::as_str).zip(0..), CONTINUATION_PREFIX, usize::MAX);
    let part = words.len().div_ceil(options.threads.max(1)).max(LEAST_WORDS_PER_THREAD);
    let count_part = |part: Range<usize>, check: &mut dyn FnMut() -> Result<()>| {
        let mut word_pieces = WordPieces::default();
        let (mut counts, mut unknown) = (vec![0u64; tokens.len()], 0u128);
        for i in part {
            let n = words.counts()[i];
            if matcher.match_word(words.word(i), &mut word_pieces) {
                word_pieces.pieces.iter().for_each(|piece| counts[piece.id as usize] += n);
            } else {
                unknown += u128::from(n);
            }
            check()?;
        }
        Ok(TokenCounts { counts, unknown })
    };
    let later_parts = (part..words.len()).step_by(part).map(|start| start..(start + part).min(words.len()));
    let (first, others) = fork_join(
        later_parts,
        |part, cancellation| {
            count_part(part, &mut || match cancellation.is_cancelled() {
                true => Err(Error::Training(TrainingError::Interrupted)),
                false => Ok(()),
            })
        },
        |cancellation| {
            let first = count_part(0..part.min(words.len()), &mut || monitor.step());
            first.inspect_err(|_| cancellation.cancel())
        },
    );
    let TokenCounts { mut counts, mut unknown } = first?;
    for other in others {
        let other = other?;
        counts.iter_mut().zip(other.counts).for_each(|(sum, n)| *sum += n);
        unknown += other.unknown;
    }
    let specials: hashbrown::HashSet<&str> = options.special_tokens.iter().map(String::as_str).collect();
    for (count, _) in counts.iter_mut().zip(tokens).filter(|(_, token)| specials.contains(token.as_str())) {
        *count = 0;
    }
    Ok(TokenCounts { counts, unknown })
}
