//! A trie over tokens, as it is built: nodes by level, before they are placed in the double array.

use std::collections::VecDeque;
use std::ops::Range;

use super::pieces::MatchedPiece;

/// A token as the tries store it: the bytes that it matches, and the piece that it becomes.
#[derive(Clone, Copy)]
pub(super) struct TokenKey<'a> {
    /// The first eight bytes, big-endian and padded with zeros. Most comparisons and most steps need only these, whereas
    /// the texts are scattered in memory.
    start: u64,
    /// The bytes to match, without the continuing-subword prefix.
    text: &'a [u8],
    piece: MatchedPiece,
}

impl<'a> TokenKey<'a> {
    /// Returns the key of a token.
    ///
    /// # Panics
    ///
    /// If the text has 2³² bytes or more.
    pub fn new(text: &'a str, id: u32) -> TokenKey<'a> {
        let text = text.as_bytes();
        let mut start = [0; 8];
        let n = text.len().min(8);
        start[..n].copy_from_slice(&text[..n]);
        let len = u32::try_from(text.len()).expect("a token has fewer than 2³² bytes");
        TokenKey { start: u64::from_be_bytes(start), text, piece: MatchedPiece { id, len } }
    }

    /// Returns the byte at `depth`, which must be less than the length of the text.
    fn byte(&self, depth: usize) -> u8 {
        if depth < 8 { self.start.to_be_bytes()[depth] } else { self.text[depth] }
    }
}

/// A trie whose nodes are numbered level by level: parents before children, and the children of a node consecutively.
pub(super) struct Trie {
    /// The first child of each node; they end where the children of the next node begin. One number more than nodes.
    first_child: Vec<u32>,
    /// The byte on the edge to each node; 0 for the root.
    pub labels: Vec<u8>,
    /// The piece of each node that ends a token.
    pub pieces: Vec<Option<MatchedPiece>>,
}

impl Trie {
    /// The number of the root.
    pub const ROOT: usize = 0;

    /// Builds the trie over distinct keys, level by level, without a map per node.
    ///
    /// # Panics
    ///
    /// If it has 2³² nodes or more.
    pub fn new(mut keys: Vec<TokenKey<'_>>) -> Trie {
        keys.sort_unstable_by_key(|key| (key.start, key.text));
        let mut trie = Trie { first_child: vec![1], labels: vec![0], pieces: Vec::new() };
        // The queue holds the nodes without children so far, in order: the keys that pass through each, and its depth.
        let mut ranges = VecDeque::from([(0, keys.len(), 0)]);
        while let Some((mut low, high, depth)) = ranges.pop_front() {
            let ends_here = low < high && keys[low].text.len() == depth;
            trie.pieces.push(ends_here.then(|| keys[low].piece));
            low += usize::from(ends_here);
            while low < high {
                let byte = keys[low].byte(depth);
                let next = low + 1 + keys[low + 1..high].partition_point(|key| key.byte(depth) == byte);
                ranges.push_back((low, next, depth + 1));
                trie.labels.push(byte);
                low = next;
            }
            trie.first_child.push(u32::try_from(trie.labels.len()).expect("fewer than 2³² nodes"));
        }
        trie
    }

    /// Returns the numbers of the children of a node.
    #[inline]
    pub fn children(&self, node: usize) -> Range<usize> {
        self.first_child[node] as usize..self.first_child[node + 1] as usize
    }
}
