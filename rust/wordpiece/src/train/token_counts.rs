//! How often each token of a finished vocabulary is used, defined in the same way for all learners.

use std::ops::Range;

use wordpiece_parallel::fork_join;

use super::counts::WordCounts;
use super::options::TrainOptions;
use super::progress::Monitor;
use super::sorted_tokens::SortedTokens;
use super::vocab_builder::CONTINUATION_PREFIX;
use crate::error::{Error, Result, TrainingError};
use crate::matcher::{Matcher, PendingPieces, within_limit};

/// The least number of distinct words for which another thread is started.
const LEAST_WORDS_PER_THREAD: usize = 4096;

/// If the vocabulary has longer tokens, in characters, longer words are matched without the automaton, which would take
/// twenty bytes for each character of the tokens.
const LONGEST_TOKEN_OF_MATCHER: usize = 1024;

/// The uses of a vocabulary.
pub(super) struct TokenCounts {
    /// How often each token is used, by id.
    pub counts: Vec<u64>,
    /// How many occurrences of words cannot be segmented.
    pub unknown: u128,
}

/// Segments all words by longest match and counts how often each token is used; special tokens count 0.
///
/// A word of n occurrences adds n to each of its tokens, once for each time that it has the token. The result does not depend
/// on the number of threads: these are sums of whole numbers, and each word is in one part.
///
/// The words are divided into equal parts, one for each thread. The calling thread counts the first part and reports
/// progress; the others stop soon after it has been interrupted.
pub(super) fn token_counts(
    words: &WordCounts,
    tokens: &[String],
    options: &TrainOptions,
    monitor: &mut Monitor<'_>,
) -> Result<TokenCounts> {
    let is_huge = |text: &str| !within_limit(text, LONGEST_TOKEN_OF_MATCHER);
    let sorted = tokens.iter().any(|token| is_huge(token)).then(|| SortedTokens::new(tokens));
    let longest = if sorted.is_some() { LONGEST_TOKEN_OF_MATCHER } else { usize::MAX };
    let matcher = Matcher::new(tokens.iter().map(String::as_str).zip(0..), CONTINUATION_PREFIX, longest);
    let part = words.len().div_ceil(options.threads.max(1)).max(LEAST_WORDS_PER_THREAD);
    let count_part = |part: Range<usize>, check: &mut dyn FnMut() -> Result<()>| {
        let mut scratch = PendingPieces::default();
        let (mut counts, mut unknown) = (vec![0u64; tokens.len()], 0u128);
        for i in part {
            let n = words.counts()[i];
            let word = words.word(i);
            let mut add = |n: u64| {
                let mut add_id = |id: u32| counts[id as usize] = counts[id as usize].wrapping_add(n);
                match &sorted {
                    Some(sorted) if is_huge(word) => sorted.each_piece(word, add_id),
                    _ => matcher.each_piece(word, &mut scratch, |piece| add_id(piece.id)),
                }
            };
            // The pieces of a word are not stored, since it can be long. That it is unknown shows after some of them; they
            // are found once more and taken back.
            if !add(n) {
                add(n.wrapping_neg());
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
