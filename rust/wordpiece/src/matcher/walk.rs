//! Reading words.

use super::{Entry, Matcher, NONE, Pops};

/// The pieces of the last word, and the space needed to find them: kept between words so that none allocates.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// The pieces of the word, in order.
    pub entries: Vec<Entry>,
    pending: Vec<Pops>,
}

impl Matcher {
    /// Finds the pieces of `word` by longest match first; false when it has none, or too many characters.
    pub fn walk(&self, word: &str, walk: &mut Walk) -> bool {
        walk.entries.clear();
        if word.len() > self.max_chars && word.chars().count() > self.max_chars {
            return false;
        }
        let mut node = self.start;
        for &byte in word.as_bytes() {
            loop {
                if let Some(next) = self.child(node, byte) {
                    node = next;
                    break;
                }
                match self.pop(node, walk) {
                    NONE => return false,
                    next => node = next,
                }
            }
        }
        // What has been read since the last certain piece must fall into pieces as well.
        while node != self.inside {
            match self.pop(node, walk) {
                NONE => return false,
                next => node = next,
            }
        }
        true
    }

    #[inline]
    pub(super) fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let found = if node == self.inside {
            self.from_inside[byte as usize]
        } else if node == self.start {
            self.from_start[byte as usize]
        } else {
            let children = self.children(node);
            let start = children.start;
            self.labels[children].iter().position(|&label| label == byte).map_or(NONE, |at| (start + at) as u32)
        };
        (found != NONE).then_some(found)
    }

    #[inline]
    pub(super) fn children(&self, node: u32) -> std::ops::Range<usize> {
        self.children[node as usize] as usize..self.children[node as usize + 1] as usize
    }

    /// Emits what is certain at `node` and returns where to go on.
    #[inline]
    fn pop(&self, node: u32, walk: &mut Walk) -> u32 {
        let failure = self.failures[node as usize];
        if failure.next != NONE {
            self.emit(failure.pops, walk);
        }
        failure.next
    }

    fn emit(&self, pops: Pops, walk: &mut Walk) {
        let mut next = pops;
        loop {
            if next == Pops::EMPTY {
                // Nothing here.
            } else if next.0 & Pops::ENTRY != 0 {
                walk.entries.push(self.entries[(next.0 & !Pops::ENTRY) as usize]);
            } else {
                let (first, second) = self.joined[next.0 as usize];
                walk.pending.push(second);
                next = first;
                continue;
            }
            match walk.pending.pop() {
                Some(pops) => next = pops,
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// The definition, read aloud.
    fn by_definition(vocab: &[String], prefix: &str, max_chars: usize, word: &str) -> Option<Vec<u32>> {
        if word.chars().count() > max_chars {
            return None;
        }
        let ids: HashMap<&str, u32> = vocab.iter().enumerate().map(|(i, token)| (token.as_str(), i as u32)).collect();
        let ends: Vec<usize> = word.char_indices().map(|(at, _)| at).skip(1).chain([word.len()]).collect();
        let mut pieces = Vec::new();
        let mut start = 0;
        while start < word.len() {
            let (end, id) = ends.iter().rev().filter(|&&end| end > start).find_map(|&end| {
                let text = if start == 0 { word[..end].to_owned() } else { format!("{prefix}{}", &word[start..end]) };
                ids.get(text.as_str()).map(|&id| (end, id))
            })?;
            pieces.push(id);
            start = end;
        }
        Some(pieces)
    }

    fn pieces(vocab: &[String], prefix: &str, max_chars: usize, word: &str) -> Option<Vec<u32>> {
        let tokens = vocab.iter().enumerate().map(|(i, token)| (token.as_str(), i as u32));
        let matcher = Matcher::new(tokens, prefix, max_chars);
        let mut walk = Walk::default();
        let found = matcher.walk(word, &mut walk);
        if found {
            let read: u32 = walk.entries.iter().map(|entry| entry.len).sum();
            assert_eq!(read as usize, word.len(), "the pieces cover the word");
        }
        found.then(|| walk.entries.iter().map(|entry| entry.id).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// Tiny alphabets and tiny vocabularies meet every failure link within seconds.
        #[test]
        fn walk_equals_the_definition(
            tokens in prop::collection::btree_set("(##|#)?[abé]{1,5}", 1..12),
            word in "[abé#]{1,14}",
            prefix in prop::sample::select(vec!["##", "", "#", "a", "é"]),
            max_chars in 1usize..16,
        ) {
            let vocab: Vec<String> = tokens.into_iter().collect();
            prop_assert_eq!(
                pieces(&vocab, prefix, max_chars, &word),
                by_definition(&vocab, prefix, max_chars, &word)
            );
        }
    }

    #[test]
    fn a_long_word_and_a_long_token_stay_linear() {
        let vocab = ["a", "##a", &"a".repeat(20_000), &format!("##{}", "a".repeat(30_000))].map(String::from);
        let word = "a".repeat(5_000_000) + "b";
        assert_eq!(pieces(&vocab, "##", usize::MAX, &word), None);
        let found = pieces(&vocab, "##", usize::MAX, &word[..5_000_000]).unwrap();
        assert_eq!(found[..2], [2, 3]);
        assert_eq!(pieces(&vocab, "##", 100, &word), None, "more characters than a word may have");
    }
}
