//! Selects the words that `top_down` learns from.

use std::cmp::Reverse;

use hashbrown::{HashMap, HashSet};

use super::super::counts::WordCounts;
use super::super::options::TopDownOptions;
use super::super::trained::ExcludedWords;
use super::super::vocab_builder::VocabBuilder;
use crate::matcher::within_limit;

/// The words to learn from, and their characters.
pub(super) struct SelectedWords<'a> {
    /// The words with their counts, in string order.
    pub words: Vec<(&'a str, u64)>,
    /// All characters of the words, ascending.
    pub chars: Vec<char>,
    pub excluded: ExcludedWords,
}

/// Excludes words that are too long, special tokens, words with a character outside the `max_unique_chars` most
/// frequent ones, and all but the `max_input_words` most frequent words. Ties are decided by code point and by string
/// order.
pub(super) fn select_words<'a>(
    counts: &'a WordCounts,
    special_tokens: &VocabBuilder,
    options: &TopDownOptions,
) -> SelectedWords<'a> {
    // A word has at most as many characters as bytes, so few words are counted.
    let fits = |word: &str| within_limit(word, options.max_token_length);
    let mut words: Vec<(&str, u64)> =
        counts.iter().filter(|&(word, _)| fits(word) && special_tokens.id(word).is_none()).collect();
    let mut weights: HashMap<char, u64> = HashMap::new();
    for &(word, n) in &words {
        word.chars().for_each(|c| *weights.entry(c).or_default() += n);
    }
    let mut ranked: Vec<(Reverse<u64>, char)> = weights.into_iter().map(|(c, weight)| (Reverse(weight), c)).collect();
    ranked.sort_unstable();
    if ranked.len() > options.max_unique_chars {
        ranked.truncate(options.max_unique_chars);
        let allowed: HashSet<char> = ranked.into_iter().map(|(_, c)| c).collect();
        words.retain(|(word, _)| word.chars().all(|c| allowed.contains(&c)));
    }
    if let Some(most) = options.max_input_words
        && words.len() > most
    {
        // The sort is stable, so of words with equal counts the first in string order stay.
        words.sort_by_key(|&(_, n)| Reverse(n));
        words.truncate(most);
        words.sort_unstable();
    }
    let chars: HashSet<char> = words.iter().flat_map(|(word, _)| word.chars()).collect();
    let mut chars: Vec<char> = chars.into_iter().collect();
    chars.sort_unstable();
    let kept: u128 = words.iter().map(|&(_, n)| u128::from(n)).sum();
    let excluded = ExcludedWords { words: (counts.len() - words.len()) as u64, occurrences: counts.total() - kept };
    SelectedWords { words, chars, excluded }
}
