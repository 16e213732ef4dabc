//! Longest match by binary search, for vocabularies with huge tokens.
//!
//! A text of one word of a hundred million characters can train tokens of millions. The [`Matcher`](crate::matcher::Matcher)
//! takes some twenty bytes for each of their characters; sorted tokens take sixteen for each token, and a binary search for
//! each piece.

use super::vocab_builder::CONTINUATION_PREFIX;

/// The tokens of a vocabulary, sorted for longest match.
pub(super) struct SortedTokens<'a> {
    beginning: Texts<'a>,
    continuing: Texts<'a>,
}

/// Texts with their ids in ascending order, and for each the index of the longest other one that it begins with.
struct Texts<'a> {
    texts: Vec<(&'a str, u32)>,
    parents: Vec<Option<u32>>,
}

impl<'a> SortedTokens<'a> {
    /// Sorts these tokens, whose ids are their positions.
    pub fn new(tokens: &'a [String]) -> SortedTokens<'a> {
        let all = || tokens.iter().map(String::as_str).zip(0..);
        let rest = |(token, id): (&'a str, u32)| Some((token.strip_prefix(CONTINUATION_PREFIX)?, id));
        SortedTokens { beginning: Texts::new(all()), continuing: Texts::new(all().filter_map(rest)) }
    }

    /// Calls `each` with the ids of the pieces of a word, longest match first. Returns false if it cannot be divided into
    /// tokens; some pieces may have been passed to `each` then.
    pub fn each_piece(&self, word: &str, mut each: impl FnMut(u32)) -> bool {
        let mut at = 0;
        while at < word.len() {
            let texts = if at == 0 { &self.beginning } else { &self.continuing };
            let Some((len, id)) = texts.longest(&word[at..]) else { return false };
            each(id);
            at += len;
        }
        true
    }
}

impl<'a> Texts<'a> {
    fn new(texts: impl Iterator<Item = (&'a str, u32)>) -> Texts<'a> {
        let mut texts: Vec<(&str, u32)> = texts.filter(|(text, _)| !text.is_empty()).collect();
        texts.sort_unstable();
        let mut open: Vec<u32> = Vec::new();
        let mut parents = Vec::with_capacity(texts.len());
        for (i, (text, _)) in texts.iter().enumerate() {
            while open.pop_if(|&mut last| !text.starts_with(texts[last as usize].0)).is_some() {}
            parents.push(open.last().copied());
            open.push(i as u32);
        }
        Texts { texts, parents }
    }

    /// Returns the length and the id of the longest text that `word` begins with.
    fn longest(&self, word: &str) -> Option<(usize, u32)> {
        // Whatever lies between the wanted text and the word in this order begins with the wanted text. So the wanted
        // text is the last text that is not greater than the word, or that text's parent, or the parent's parent, and
        // so on.
        let mut at = self.texts.partition_point(|&(text, _)| text <= word).checked_sub(1)?;
        loop {
            let (text, id) = self.texts[at];
            if word.starts_with(text) {
                return Some((text.len(), id));
            }
            at = self.parents[at]? as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matcher::{Matcher, PendingPieces};

    proptest! {
        #[test]
        fn pieces_are_those_of_the_matcher(
            tokens in prop::collection::btree_set("(##)?[ab#é]{0,5}", 0..16),
            words in prop::collection::vec("[ab#é]{1,12}", 1..20),
        ) {
            let tokens: Vec<String> = tokens.into_iter().collect();
            let matcher = Matcher::new(tokens.iter().map(String::as_str).zip(0..), CONTINUATION_PREFIX, usize::MAX);
            let sorted = SortedTokens::new(&tokens);
            let mut scratch = PendingPieces::default();
            for word in &words {
                let (mut expected, mut got) = (Vec::new(), Vec::new());
                let found = matcher.each_piece(word, &mut scratch, |piece| expected.push(piece.id));
                prop_assert_eq!(sorted.each_piece(word, |id| got.push(id)), found);
                if found {
                    prop_assert_eq!(got, expected);
                }
            }
        }
    }
}
