//! Making the automaton: two tries, then failure links in breadth-first order.

use super::{Entry, Matcher, NONE, Node, Pops};

/// A token as the matcher sees it: what it matches, and the entry it gives.
type Key<'a> = (&'a [u8], Entry);

impl Matcher {
    /// Builds the automaton over `tokens`, of which those that begin with `prefix` also continue words.
    ///
    /// Words of more than `max_chars` characters are never matched, so longer tokens are left out.
    pub fn new<'a>(tokens: impl IntoIterator<Item = (&'a str, u32)>, prefix: &str, max_chars: usize) -> Matcher {
        let fits = |text: &str| !text.is_empty() && (text.len() <= max_chars || text.chars().count() <= max_chars);
        let mut beginning: Vec<Key<'a>> = Vec::new();
        let mut continuing: Vec<Key<'a>> = Vec::new();
        for (token, id) in tokens {
            let entry = |text: &str| Entry { id, len: text.len() as u32 };
            if fits(token) {
                beginning.push((token.as_bytes(), entry(token)));
            }
            if let Some(rest) = token.strip_prefix(prefix)
                && !prefix.is_empty()
                && fits(rest)
            {
                continuing.push((rest.as_bytes(), entry(rest)));
            }
        }
        let mut matcher = Matcher {
            nodes: Vec::new(),
            labels: Vec::new(),
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
        keys.sort_unstable_by_key(|key| key.0);
        let root = self.nodes.len() as u32;
        self.push_node(0);
        // Of each node that has none yet, in order: the keys that pass through it, and its depth.
        let mut ranges = std::collections::VecDeque::from([(root, 0, keys.len(), 0)]);
        while let Some((node, mut low, high, depth)) = ranges.pop_front() {
            if low < high && keys[low].0.len() == depth {
                self.nodes[node as usize].pops = Pops::entry(self.entries.len() as u32);
                self.entries.push(keys[low].1);
                low += 1;
            }
            self.nodes[node as usize].children = self.nodes.len() as u32;
            while low < high {
                let byte = keys[low].0[depth];
                let next = low + keys[low..high].partition_point(|key| key.0[depth] == byte);
                self.nodes[node as usize].degree += 1;
                ranges.push_back((self.nodes.len() as u32, low, next, depth + 1));
                self.push_node(byte);
                low = next;
            }
        }
        root
    }

    fn push_node(&mut self, label: u8) {
        self.nodes.push(Node { children: 0, degree: 0, fail: NONE, pops: Pops::EMPTY });
        self.labels.push(label);
    }

    fn children_by_byte(&self, node: u32) -> Box<[u32; 256]> {
        let mut table = Box::new([NONE; 256]);
        let Node { children, degree, .. } = self.nodes[node as usize];
        for child in children..children + degree {
            table[self.labels[child as usize] as usize] = child;
        }
        table
    }

    /// Sets `fail` and `pops` of all nodes below `root`, parents before children.
    ///
    /// A token's own node pops that token and goes on inside the word. Any other node does what its parent would do, and
    /// then, as long as the byte does not fit there, what that place would do.
    fn link(&mut self, root: u32) {
        for parent in root..self.nodes.len() as u32 {
            let Node { children, degree, fail: parent_fail, pops: parent_pops } = self.nodes[parent as usize];
            for child in children..children + degree {
                let byte = self.labels[child as usize];
                let own = self.nodes[child as usize].pops;
                let (fail, pops) = if own != Pops::EMPTY {
                    (self.inside, own)
                } else {
                    let (mut place, mut pops) = (parent_fail, parent_pops);
                    loop {
                        if place == NONE {
                            break (NONE, Pops::EMPTY);
                        }
                        if let Some(next) = self.child(place, byte) {
                            break (next, pops);
                        }
                        pops = self.join(pops, self.nodes[place as usize].pops);
                        place = self.nodes[place as usize].fail;
                    }
                };
                self.nodes[child as usize].fail = fail;
                self.nodes[child as usize].pops = pops;
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
