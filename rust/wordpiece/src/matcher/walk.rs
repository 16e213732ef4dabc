//! Runs the automaton over a word and emits its pieces.
//!
//! The walk reads each byte once and never goes back in the word. A byte leads to a child, or the node fails: the pieces that
//! are certain by then are emitted, and the walk continues at the node for what was read after them. A failure shortens
//! the text that the node stands for, and only a byte lengthens it, by one; so a word of n bytes takes at most n steps to
//! children and n failures. With the pieces, which are at most as many as the bytes, the time is linear in the word, however
//! long the tokens are. The loop "longest match, then again from its end" is quadratic in the worst case.

use super::automaton::Matcher;
use super::pieces::{MatchedPiece, NONE, PendingPieces, PieceSink, Pops, PopsKind, WordPieces};
use super::within_limit;
use wordpiece_parallel::prefetch;

/// Passes each piece to a function.
struct EachPiece<'a, F> {
    each: F,
    pending: &'a mut Vec<Pops>,
}

impl<F: FnMut(MatchedPiece)> PieceSink for EachPiece<'_, F> {
    fn push(&mut self, piece: MatchedPiece) {
        (self.each)(piece);
    }

    fn pending(&mut self) -> &mut Vec<Pops> {
        self.pending
    }
}

impl Matcher {
    /// Finds the pieces of `word`, longest match first, and replaces those in `out`.
    ///
    /// Returns false if the word is unknown: it cannot be divided into tokens, or it has more characters than the limit. An
    /// empty word has no pieces and is not unknown.
    pub fn match_word(&self, word: &str, out: &mut WordPieces) -> bool {
        out.pieces.clear();
        self.walk(word, out)
    }

    /// Calls `each` with the pieces of `word`, which are stored nowhere. Returns what [`match_word`](Matcher::match_word)
    /// returns; before it returns false, some pieces may have been passed to `each`.
    pub fn each_piece(&self, word: &str, scratch: &mut PendingPieces, each: impl FnMut(MatchedPiece)) -> bool {
        scratch.0.clear();
        self.walk(word, &mut EachPiece { each, pending: &mut scratch.0 })
    }

    /// Reads a word, and gives its pieces to `out` in order; returns false if it is unknown.
    ///
    /// A node stands for the text that was read and not yet emitted. At the end of the word, that text must be divided into
    /// pieces entirely, which leads to `inside`, the root of the continuations: nothing is left over.
    #[inline(always)]
    fn walk(&self, word: &str, out: &mut impl PieceSink) -> bool {
        // No failure leads from the start to the end of a word.
        if word.is_empty() {
            return true;
        }
        if !within_limit(word, self.max_chars) {
            return false;
        }
        let mut node = self.start;
        for &byte in word.as_bytes() {
            loop {
                if let Some(next) = self.child(node, byte) {
                    node = next;
                    // Each piece ends with a failure, and of a large vocabulary most are not in the nearest cache.
                    prefetch(self.failures.as_ptr().wrapping_add(next as usize));
                    break;
                }
                match self.pop(node, out) {
                    NONE => return false,
                    next => node = next,
                }
            }
        }
        // The bytes read since the last certain piece must divide into pieces as well.
        while node != self.inside {
            match self.pop(node, out) {
                NONE => return false,
                next => node = next,
            }
        }
        true
    }

    /// Takes the failure transition of `node`: emits its pieces and returns the node to continue in, or [`NONE`].
    #[inline]
    fn pop(&self, node: u32, out: &mut impl PieceSink) -> u32 {
        let failure = self.failures[node as usize];
        if failure.next != NONE {
            // Nearly always it is one piece.
            match failure.pops.kind() {
                PopsKind::Piece(piece) => out.push(piece),
                _ => self.emit(failure.pops, out),
            }
        }
        failure.next
    }

    /// Appends the pieces of a list to `out`, depth first and without recursion: lists nest as deep as the trie.
    #[inline(never)]
    fn emit(&self, pops: Pops, out: &mut impl PieceSink) {
        let mut next = pops;
        loop {
            match next.kind() {
                PopsKind::Empty => {}
                PopsKind::Piece(piece) => out.push(piece),
                PopsKind::Concatenation(index) => {
                    let (first, second) = self.concatenations[index];
                    out.pending().push(second);
                    next = first;
                    continue;
                }
            }
            match out.pending().pop() {
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

    /// The definition, taken literally: try every end, longest first.
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
        let mut out = WordPieces::default();
        let found = matcher.match_word(word, &mut out);
        if found {
            let read: u32 = out.pieces.iter().map(|piece| piece.len).sum();
            assert_eq!(read as usize, word.len(), "the pieces cover the word");
        }
        found.then(|| out.pieces.iter().map(|piece| piece.id).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 10 } else { 4000 }))]

        /// Tiny alphabets and tiny vocabularies exercise every kind of failure transition within seconds.
        #[test]
        fn matching_equals_the_definition(
            tokens in prop::collection::btree_set("(##|#)?[abé]{0,5}", 0..12),
            word in "[abé#]{0,14}",
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
    #[cfg_attr(miri, ignore = "reads 10 MB")]
    fn matching_is_linear_for_long_words_and_long_tokens() {
        let vocab = ["a", "##a", &"a".repeat(20_000), &format!("##{}", "a".repeat(30_000))].map(String::from);
        let word = "a".repeat(5_000_000) + "b";
        assert_eq!(pieces(&vocab, "##", usize::MAX, &word), None);
        let found = pieces(&vocab, "##", usize::MAX, &word[..5_000_000]).unwrap();
        assert_eq!(found[..2], [2, 3]);
        assert_eq!(pieces(&vocab, "##", 100, &word), None, "more characters than a word may have");
    }
}
