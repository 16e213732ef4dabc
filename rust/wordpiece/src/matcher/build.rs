//! Builds the automaton from a vocabulary: two tries, then failure transitions in breadth-first order.
//!
//! A [`Trie`] is built from sorted tokens, and [`Cells`] places its nodes in the double array. [`Matcher::link`] then
//! computes the failure transitions, parents before children, as in Algorithm 2 of Song et al. (2021). All passes are linear
//! in the bytes of the vocabulary.

use super::automaton::{Failure, Matcher};
use super::cells::Cells;
use super::pieces::{NONE, Pops};
use super::trie::{TokenKey, Trie};
use super::within_limit;

impl Matcher {
    /// Builds the automaton over `tokens`, which are pairs of text and id.
    ///
    /// Every token can begin a word. Those that begin with `prefix` can also continue one, with the rest of their text; an
    /// empty `prefix` means that every token can do both. Words of more than `max_chars` characters are unknown, so longer
    /// tokens are omitted; so are empty ones.
    pub fn new<'a>(tokens: impl IntoIterator<Item = (&'a str, u32)>, prefix: &str, max_chars: usize) -> Matcher {
        let fits = |text: &str| !text.is_empty() && within_limit(text, max_chars);
        let mut beginning: Vec<TokenKey<'a>> = Vec::new();
        let mut continuing: Vec<TokenKey<'a>> = Vec::new();
        for (token, id) in tokens {
            if fits(token) {
                beginning.push(TokenKey::new(token, id));
            }
            if let Some(rest) = token.strip_prefix(prefix)
                && !prefix.is_empty()
                && fits(rest)
            {
                continuing.push(TokenKey::new(rest, id));
            }
        }
        // Continuations first: failure transitions lead only into their trie. With an empty prefix both tries are one.
        let tries = match prefix.is_empty() {
            true => vec![Trie::new(beginning)],
            false => vec![Trie::new(continuing), Trie::new(beginning)],
        };
        let mut cells = Cells::default();
        let placed: Vec<Vec<u32>> = tries.iter().map(|trie| cells.place(trie)).collect();
        let (bases, labels) = cells.into_arrays();
        let mut matcher = Matcher {
            failures: vec![Failure { next: NONE, pops: Pops::EMPTY }; bases.len()],
            bases,
            labels,
            concatenations: Vec::new(),
            inside: placed[0][Trie::ROOT],
            start: placed[placed.len() - 1][Trie::ROOT],
            max_chars,
        };
        for (trie, cell_of) in tries.iter().zip(&placed) {
            matcher.link(trie, cell_of);
        }
        matcher
    }

    /// Sets the failure transitions of all nodes of a trie, parents before children.
    ///
    /// A node that ends a token emits that token and continues at the root of the continuations. Any other node follows the
    /// failure of its parent, and then further failures until it reaches a node that has a child for the byte; it emits the
    /// pieces of all the failures that it followed.
    fn link(&mut self, trie: &Trie, cell_of: &[u32]) {
        for (node, &cell) in cell_of.iter().enumerate() {
            let of_parent = self.failures[cell as usize];
            for child in trie.children(node) {
                let byte = trie.labels[child];
                let (next, pops) = if let Some(piece) = trie.pieces[child] {
                    (self.inside, Pops::piece(piece))
                } else {
                    let Failure { next: mut node, mut pops } = of_parent;
                    loop {
                        if node == NONE {
                            break (NONE, Pops::EMPTY);
                        }
                        if let Some(next) = self.child(node, byte) {
                            break (next, pops);
                        }
                        let Failure { next, pops: more } = self.failures[node as usize];
                        pops = self.concatenate(pops, more);
                        node = next;
                    }
                };
                self.failures[cell_of[child] as usize] = Failure { next, pops };
            }
        }
    }

    /// Returns the list of the pieces of `first` followed by the pieces of `second`.
    ///
    /// Lists are not copied: a list is a piece, or a pair of lists. So each takes the same memory however many pieces it has,
    /// and all of them together are linear in the nodes.
    fn concatenate(&mut self, first: Pops, second: Pops) -> Pops {
        if first == Pops::EMPTY || second == Pops::EMPTY {
            return if first == Pops::EMPTY { second } else { first };
        }
        self.concatenations.push((first, second));
        Pops::concatenation(self.concatenations.len() - 1)
    }
}
