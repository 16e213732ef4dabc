//! Builds the automaton from a vocabulary: two tries, then failure transitions in breadth-first order.
//!
//! The tries are built level by level from sorted tokens, which places the children of each node next to each other
//! without a map per node. [`Matcher::link`] then computes the failure transitions, parents before children, as in
//! Algorithm 2 of Song et al. (2021). Both passes are linear in the bytes of the vocabulary.

use super::automaton::{Failure, MatchedPiece, Matcher, NONE, Pops};
use super::within_limit;

/// A token as the tries store it: the bytes that it matches, and the piece that it becomes.
#[derive(Clone, Copy)]
struct TokenKey<'a> {
    /// The first eight bytes, big-endian and padded with zeros. Most comparisons and most steps need only these, whereas
    /// the texts are scattered in memory.
    start: u64,
    /// The bytes to match, without the continuing-subword prefix.
    text: &'a [u8],
    piece: MatchedPiece,
}

impl<'a> TokenKey<'a> {
    fn new(text: &'a str, id: u32) -> TokenKey<'a> {
        let text = text.as_bytes();
        let mut start = [0; 8];
        let n = text.len().min(8);
        start[..n].copy_from_slice(&text[..n]);
        TokenKey { start: u64::from_be_bytes(start), text, piece: MatchedPiece { id, len: text.len() as u32 } }
    }

    /// Returns the byte at `depth`, which must be less than the length of the text.
    fn byte(&self, depth: usize) -> u8 {
        if depth < 8 { self.start.to_be_bytes()[depth] } else { self.text[depth] }
    }
}

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
        let mut matcher = Matcher {
            children: vec![0],
            labels: Vec::new(),
            failures: Vec::new(),
            pieces: Vec::new(),
            concatenations: Vec::new(),
            start: 0,
            inside: 0,
            from_start: Box::new([NONE; 256]),
            from_inside: Box::new([NONE; 256]),
            max_chars,
        };
        // Continuations first: failure transitions lead only into their trie. With an empty prefix both tries are one.
        if !prefix.is_empty() {
            matcher.inside = matcher.add_trie(continuing);
            matcher.from_inside = matcher.children_by_byte(matcher.inside);
            matcher.link(matcher.inside);
        }
        matcher.start = matcher.add_trie(beginning);
        matcher.from_start = matcher.children_by_byte(matcher.start);
        if prefix.is_empty() {
            matcher.inside = matcher.start;
            matcher.from_inside = matcher.from_start.clone();
        }
        matcher.link(matcher.start);
        matcher
    }

    /// Adds a trie over distinct keys, level by level, so that the children of a node are consecutive; returns its root.
    ///
    /// The piece of a node that ends a token is kept in its `pops` until `link` reads it.
    fn add_trie(&mut self, mut keys: Vec<TokenKey<'_>>) -> u32 {
        keys.sort_unstable_by_key(|key| (key.start, key.text));
        // An unreachable node stands in for the parent of the root, so that the children of all others are consecutive.
        self.push_node(0);
        let root = self.labels.len() as u32;
        self.push_node(0);
        self.children.push(self.labels.len() as u32);
        // The queue holds the nodes without children so far, in order: the keys that pass through each, and its depth.
        let mut ranges = std::collections::VecDeque::from([(0, keys.len(), 0)]);
        let mut node = root as usize;
        while let Some((mut low, high, depth)) = ranges.pop_front() {
            if low < high && keys[low].text.len() == depth {
                self.failures[node].pops = Pops::piece(self.pieces.len() as u32);
                self.pieces.push(keys[low].piece);
                low += 1;
            }
            while low < high {
                let byte = keys[low].byte(depth);
                let next = low + 1 + keys[low + 1..high].partition_point(|key| key.byte(depth) == byte);
                ranges.push_back((low, next, depth + 1));
                self.push_node(byte);
                low = next;
            }
            self.children.push(self.labels.len() as u32);
            node += 1;
        }
        root
    }

    /// Appends a node without children, reached by the byte `label`.
    fn push_node(&mut self, label: u8) {
        self.failures.push(Failure { next: NONE, pops: Pops::EMPTY });
        self.labels.push(label);
    }

    /// Returns the children of `node`, indexed by the byte that leads to them.
    fn children_by_byte(&self, node: u32) -> Box<[u32; 256]> {
        let mut table = Box::new([NONE; 256]);
        for child in self.children(node) {
            table[self.labels[child] as usize] = child as u32;
        }
        table
    }

    /// Sets the failure transitions of all nodes below `root`, parents before children.
    ///
    /// A node that ends a token emits that token and continues at the root of the continuations. Any other node follows the
    /// failure of its parent, and then further failures until it reaches a node that has a child for the byte; it emits the
    /// pieces of all the failures that it followed.
    fn link(&mut self, root: u32) {
        for parent in root..self.labels.len() as u32 {
            let of_parent = self.failures[parent as usize];
            for child in self.children(parent) {
                let byte = self.labels[child];
                let own = self.failures[child].pops;
                let (next, pops) = if own != Pops::EMPTY {
                    (self.inside, own)
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
                self.failures[child] = Failure { next, pops };
            }
        }
    }

    /// Returns the list of the pieces of `first` followed by those of `second`.
    fn concatenate(&mut self, first: Pops, second: Pops) -> Pops {
        if first == Pops::EMPTY || second == Pops::EMPTY {
            return if first == Pops::EMPTY { second } else { first };
        }
        self.concatenations.push((first, second));
        Pops::concatenation(self.concatenations.len() as u32 - 1)
    }
}
