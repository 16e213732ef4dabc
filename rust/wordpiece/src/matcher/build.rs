//! Making the automaton: two tries, then failure links in breadth-first order.

use super::{Entry, Failure, Matcher, NONE, Pops};

/// A token as the matcher sees it: what it matches, and the entry it gives.
#[derive(Clone, Copy)]
struct Key<'a> {
    /// The first eight bytes as a number, the first one highest: most comparisons and most steps need no others, and texts
    /// lie apart in memory.
    start: u64,
    text: &'a [u8],
    entry: Entry,
}

impl<'a> Key<'a> {
    fn new(text: &'a str, id: u32) -> Key<'a> {
        let text = text.as_bytes();
        let mut start = [0; 8];
        let n = text.len().min(8);
        start[..n].copy_from_slice(&text[..n]);
        Key { start: u64::from_be_bytes(start), text, entry: Entry { id, len: text.len() as u32 } }
    }

    fn byte(&self, depth: usize) -> u8 {
        if depth < 8 { self.start.to_be_bytes()[depth] } else { self.text[depth] }
    }
}

impl Matcher {
    /// Builds the automaton over `tokens`, of which those that begin with `prefix` also continue words.
    ///
    /// Words of more than `max_chars` characters are never matched, so longer tokens are left out.
    pub fn new<'a>(tokens: impl IntoIterator<Item = (&'a str, u32)>, prefix: &str, max_chars: usize) -> Matcher {
        let fits = |text: &str| !text.is_empty() && (text.len() <= max_chars || text.chars().count() <= max_chars);
        let mut beginning: Vec<Key<'a>> = Vec::new();
        let mut continuing: Vec<Key<'a>> = Vec::new();
        for (token, id) in tokens {
            if fits(token) {
                beginning.push(Key::new(token, id));
            }
            if let Some(rest) = token.strip_prefix(prefix)
                && !prefix.is_empty()
                && fits(rest)
            {
                continuing.push(Key::new(rest, id));
            }
        }
        let mut matcher = Matcher {
            children: vec![0],
            labels: Vec::new(),
            failures: Vec::new(),
            entries: Vec::new(),
            joined: Vec::new(),
            start: 0,
            inside: 0,
            from_start: Box::new([NONE; 256]),
            from_inside: Box::new([NONE; 256]),
            max_chars,
        };
        // Continuations first: failure links lead only into their trie. With an empty prefix both tries are the same.
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

    /// Adds a trie over distinct keys, level by level, so that the children of a node stand side by side; returns its
    /// root. The entry of a node stands in its `pops` until `link` reads it.
    fn add_trie(&mut self, mut keys: Vec<Key<'_>>) -> u32 {
        keys.sort_unstable_by_key(|key| (key.start, key.text));
        // A node that nothing leads to takes the place of a root's parent: the children of all others stay side by side.
        self.push_node(0);
        let root = self.labels.len() as u32;
        self.push_node(0);
        self.children.push(self.labels.len() as u32);
        // Of each node that has no children yet, in order: the keys that pass through it, and its depth.
        let mut ranges = std::collections::VecDeque::from([(0, keys.len(), 0)]);
        let mut node = root as usize;
        while let Some((mut low, high, depth)) = ranges.pop_front() {
            if low < high && keys[low].text.len() == depth {
                self.failures[node].pops = Pops::entry(self.entries.len() as u32);
                self.entries.push(keys[low].entry);
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

    /// Adds a node, which has no children yet.
    fn push_node(&mut self, label: u8) {
        self.failures.push(Failure { next: NONE, pops: Pops::EMPTY });
        self.labels.push(label);
    }

    fn children_by_byte(&self, node: u32) -> Box<[u32; 256]> {
        let mut table = Box::new([NONE; 256]);
        for child in self.children(node) {
            table[self.labels[child] as usize] = child as u32;
        }
        table
    }

    /// Sets the failures of all nodes below `root`, parents before children.
    ///
    /// A token's own node pops that token and goes on inside the word. Any other node does what its parent would do, and
    /// then, as long as the byte does not fit there, what that place would do.
    fn link(&mut self, root: u32) {
        for parent in root..self.labels.len() as u32 {
            let of_parent = self.failures[parent as usize];
            for child in self.children(parent) {
                let byte = self.labels[child];
                let own = self.failures[child].pops;
                let (next, pops) = if own != Pops::EMPTY {
                    (self.inside, own)
                } else {
                    let Failure { next: mut place, mut pops } = of_parent;
                    loop {
                        if place == NONE {
                            break (NONE, Pops::EMPTY);
                        }
                        if let Some(next) = self.child(place, byte) {
                            break (next, pops);
                        }
                        let Failure { next, pops: more } = self.failures[place as usize];
                        pops = self.join(pops, more);
                        place = next;
                    }
                };
                self.failures[child] = Failure { next, pops };
            }
        }
    }

    fn join(&mut self, first: Pops, second: Pops) -> Pops {
        if first == Pops::EMPTY || second == Pops::EMPTY {
            return if first == Pops::EMPTY { second } else { first };
        }
        self.joined.push((first, second));
        Pops::joined(self.joined.len() as u32 - 1)
    }
}
