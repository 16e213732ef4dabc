//! How often each token of a finished vocabulary is used: the same meaning for all learners.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::tokens::JOINER;
use super::{TrainOptions, Watch, WordCounts};
use crate::error::{Error, Result, TrainingError};
use crate::matcher::{Matcher, WordPieces};

/// Fewer words than this are not worth a thread.
const LEAST_PART: usize = 4096;

/// How often each token is used, and how many occurrences of words have no pieces.
pub(super) fn uses(
    counts: &WordCounts,
    tokens: &[String],
    options: &TrainOptions,
    watch: &mut Watch<'_>,
) -> Result<(Vec<u64>, u128)> {
    let matcher = Matcher::new(tokens.iter().map(String::as_str).zip(0..), JOINER, usize::MAX);
    let part = counts.len().div_ceil(options.threads.max(1)).max(LEAST_PART);
    let stopped = AtomicBool::new(false);
    let of_words = |words: Range<usize>, go_on: &mut dyn FnMut() -> Result<()>| {
        let mut word_pieces = WordPieces::default();
        let (mut used, mut unknown) = (vec![0u64; tokens.len()], 0u128);
        for i in words {
            let n = counts.counts()[i];
            if matcher.match_word(counts.word(i), &mut word_pieces) {
                word_pieces.pieces.iter().for_each(|piece| used[piece.id as usize] += n);
            } else {
                unknown += u128::from(n);
            }
            go_on()?;
        }
        Ok((used, unknown))
    };
    let (mut used, unknown) = std::thread::scope(|scope| {
        let parts = (part..counts.len()).step_by(part).map(|start| {
            let (of_words, stopped) = (&of_words, &stopped);
            let words = start..(start + part).min(counts.len());
            scope.spawn(move || {
                of_words(words, &mut || match stopped.load(Ordering::Relaxed) {
                    true => Err(Error::Training(TrainingError::Interrupted)),
                    false => Ok(()),
                })
            })
        });
        let parts: Vec<_> = parts.collect();
        let first = of_words(0..part.min(counts.len()), &mut || watch.step());
        stopped.store(first.is_err(), Ordering::Relaxed);
        let (mut used, mut unknown) = first?;
        for part in parts {
            let (more, missing) = part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            used.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
            unknown += missing;
        }
        Ok::<_, Error>((used, unknown))
    })?;
    let specials: hashbrown::HashSet<&str> = options.special_tokens.iter().map(String::as_str).collect();
    for (count, _) in used.iter_mut().zip(tokens).filter(|(_, token)| specials.contains(token.as_str())) {
        *count = 0;
    }
    Ok((used, unknown))
}
