//! Places the nodes of tries in a double array.
//!
//! The children of a node with base `b` are in the cells `b ^ label`. A base must be free, and so must all of these cells,
//! which lie in one block of 256. For a whole block, both are found with a few operations on sets of 256 bits: the bases
//! that put a child with some label into a free cell are the free cells, with the bits of the label flipped in their
//! numbers. Nodes are placed depth first, so the nodes of one token are near each other.

use super::pieces::NONE;
use super::trie::Trie;

/// The base of a node without children: no byte leads from it to a cell with that byte as its label.
pub(super) const NO_CHILDREN: u32 = 0;

/// The label of a cell that no edge leads to: this byte occurs in no text.
pub(super) const EMPTY_LABEL: u8 = 0xFF;

/// Number of cells of a block: a label changes the lowest eight bits of a base.
const BLOCK: usize = 256;

/// A node goes into one of this many blocks that have free cells, or else into a new one. More would fill the array
/// better, and take longer.
const OPEN_BLOCKS: usize = 16;

/// A block with fewer free cells is left as it is: their bases are mostly taken, and searching it takes long.
const MIN_FREE: u32 = 24;

/// A set of cells, or of bases, of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockSet([u64; BLOCK / 64]);

impl BlockSet {
    const EMPTY: BlockSet = BlockSet([0; BLOCK / 64]);
    const FULL: BlockSet = BlockSet([u64::MAX; BLOCK / 64]);

    /// Returns the set of all `i ^ label` for the numbers `i` of this set.
    fn flipped(self, label: u8) -> BlockSet {
        /// For each of the six lowest bits, the numbers in which it is not set.
        const CLEAR: [u64; 6] = [
            0x5555_5555_5555_5555,
            0x3333_3333_3333_3333,
            0x0F0F_0F0F_0F0F_0F0F,
            0x00FF_00FF_00FF_00FF,
            0x0000_FFFF_0000_FFFF,
            0x0000_0000_FFFF_FFFF,
        ];
        let mut words = std::array::from_fn(|i| self.0[i ^ usize::from(label >> 6)]);
        for (bit, clear) in CLEAR.into_iter().enumerate().filter(|(bit, _)| label >> bit & 1 == 1) {
            words = words.map(|word: u64| word >> (1 << bit) & clear | (word & clear) << (1 << bit));
        }
        BlockSet(words)
    }

    fn and(self, other: BlockSet) -> BlockSet {
        BlockSet(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    fn first(self) -> Option<usize> {
        let i = self.0.iter().position(|&word| word != 0)?;
        Some(64 * i + self.0[i].trailing_zeros() as usize)
    }

    fn contains(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    fn numbers(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(64 * i + bit)
            })
        })
    }

    fn remove(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }
}

/// Returns the number of a cell as the arrays store it.
///
/// # Panics
///
/// If it does not fit, or is the one that means "no node".
fn number_of(cell: usize) -> u32 {
    assert!(cell < NONE as usize, "fewer than 2³² − 1 cells");
    cell as u32
}

/// The double array while it is filled.
#[derive(Debug)]
pub(super) struct Cells {
    bases: Vec<u32>,
    labels: Vec<u8>,
    /// Number of roots, which are in the first block, to which no edge leads.
    roots: u32,
    open: Vec<OpenBlock>,
}

/// A block that may have room for more nodes.
#[derive(Debug)]
struct OpenBlock {
    /// Number of its first cell.
    start: usize,
    /// Cells without a node.
    free_cells: BlockSet,
    /// Bases without a node.
    free_bases: BlockSet,
}

impl Default for Cells {
    fn default() -> Cells {
        // The first block has no labels: it belongs to the base of nodes without children.
        const { assert!(NO_CHILDREN == 0) };
        Cells { bases: vec![NO_CHILDREN; BLOCK], labels: vec![EMPTY_LABEL; BLOCK], roots: 0, open: Vec::new() }
    }
}

impl Cells {
    /// Adds the nodes of a trie; returns the cell of each.
    pub fn place(&mut self, trie: &Trie) -> Vec<u32> {
        let mut cell_of = vec![0; trie.labels.len()];
        cell_of[Trie::ROOT] = self.roots;
        self.roots += 1;
        let mut nodes = vec![Trie::ROOT];
        while let Some(node) = nodes.pop() {
            let children = trie.children(node);
            if children.is_empty() {
                continue;
            }
            let base = self.base_for(&trie.labels[children.clone()]);
            self.bases[cell_of[node] as usize] = number_of(base);
            for child in children.clone() {
                let cell = base ^ usize::from(trie.labels[child]);
                self.labels[cell] = trie.labels[child];
                cell_of[child] = number_of(cell);
            }
            nodes.extend(children.rev());
        }
        cell_of
    }

    /// Returns the bases and the labels of all cells.
    pub fn into_arrays(self) -> (Vec<u32>, Vec<u8>) {
        (self.bases, self.labels)
    }

    /// Takes a base, and the cells for children with these labels.
    fn base_for(&mut self, labels: &[u8]) -> usize {
        // Most nodes have one child: these fill what the others have left. Several cells that fit are found in a block with
        // many that are free.
        let blocks = || self.open.iter().enumerate();
        let fits = |(i, block): (usize, &OpenBlock)| Some((i, block.base_for(labels)?));
        let found = if labels.len() == 1 { blocks().find_map(fits) } else { blocks().rev().take(4).find_map(fits) };
        let (i, base) = found.unwrap_or_else(|| {
            if self.open.len() == OPEN_BLOCKS {
                self.open.remove(0);
            }
            self.open.push(OpenBlock {
                start: self.labels.len(),
                free_cells: BlockSet::FULL,
                free_bases: BlockSet::FULL,
            });
            self.labels.resize(self.labels.len() + BLOCK, EMPTY_LABEL);
            self.bases.resize(self.labels.len(), NO_CHILDREN);
            (self.open.len() - 1, 0)
        });
        let block = &mut self.open[i];
        block.free_bases.remove(base);
        for &label in labels {
            block.free_cells.remove(base ^ usize::from(label));
        }
        let base = block.start + base;
        if block.free_cells.len() < MIN_FREE {
            self.open.remove(i);
        }
        base
    }
}

impl OpenBlock {
    /// Returns a base that is free, with free cells for children with these labels.
    fn base_for(&self, labels: &[u8]) -> Option<usize> {
        if let [label] = *labels {
            // Most nodes have one child, and the first free cell will do.
            let mut bases = self.free_cells.numbers().map(|cell| cell ^ usize::from(label));
            return bases.find(|&base| self.free_bases.contains(base));
        }
        let mut bases = self.free_bases;
        for &label in labels {
            bases = bases.and(self.free_cells.flipped(label));
            if bases == BlockSet::EMPTY {
                return None;
            }
        }
        bases.first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matcher::trie::TokenKey;

    #[test]
    fn flipping_the_numbers_of_a_set() {
        let mut set = BlockSet::EMPTY;
        for number in [0, 1, 7, 63, 64, 100, 200, 255] {
            set.0[number / 64] |= 1 << (number % 64);
        }
        for label in 0..=255u8 {
            let flipped = set.flipped(label);
            for number in 0..BLOCK {
                let from = number ^ usize::from(label);
                assert_eq!(flipped.0[number / 64] >> (number % 64) & 1, set.0[from / 64] >> (from % 64) & 1);
            }
        }
    }

    /// Every node finds its children and no others.
    #[test]
    fn a_cell_has_the_label_of_one_edge() {
        let half = if cfg!(miri) { 15 } else { 1500 };
        let tokens: Vec<String> =
            (0..2 * half).map(|i| format!("{:x}é{}", i * 7919 % 5000, "ab".repeat(i % 4))).collect();
        let tries = [0, half].map(|from| {
            let mut tokens = tokens[from..from + half].to_vec();
            tokens.sort();
            tokens.dedup();
            Trie::new(tokens.iter().map(|token| TokenKey::new(token, 0)).collect())
        });
        let mut cells = Cells::default();
        let placed = tries.each_ref().map(|trie| cells.place(trie));
        let (bases, labels) = cells.into_arrays();
        for (trie, cell_of) in tries.iter().zip(&placed) {
            for node in 0..trie.labels.len() {
                let found: Vec<(u8, usize)> = (0..0xFF)
                    .map(|byte| (byte, bases[cell_of[node] as usize] as usize ^ usize::from(byte)))
                    .filter(|&(byte, cell)| labels[cell] == byte)
                    .collect();
                let expected: Vec<(u8, usize)> =
                    trie.children(node).map(|child| (trie.labels[child], cell_of[child] as usize)).collect();
                assert_eq!(found, expected);
            }
        }
    }
}
