//! The automaton as data: the nodes of two tries, and their failure transitions.

use super::pieces::Pops;

/// The failure transition of a node, taken when no child matches the next byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failure {
    /// The node to continue in, without consuming the byte; [`NONE`](super::pieces::NONE) means that the word has no pieces.
    pub next: u32,
    /// The pieces that are certain at this point.
    pub pops: Pops,
}

/// The automaton over a vocabulary.
///
/// The nodes of two tries (tokens that begin a word, tokens that continue one) are cells of one double array: the child of
/// a node for a byte is in the cell `base ^ byte`, if that has the byte as its label. No two nodes with children have the
/// same base, so the label alone says whose child a cell holds.
#[derive(Debug, Clone)]
pub(crate) struct Matcher {
    /// For each cell, the base of the children of its node; [`NO_CHILDREN`](super::cells::NO_CHILDREN) if it has none.
    pub(super) bases: Vec<u32>,
    /// For each cell, the byte on the edge to its node; [`EMPTY_LABEL`](super::cells::EMPTY_LABEL) if nothing leads to the cell.
    pub(super) labels: Vec<u8>,
    /// For each cell, the failure transition of its node.
    pub(super) failures: Vec<Failure>,
    /// The concatenations that [`Pops`] refers to.
    pub(super) concatenations: Vec<(Pops, Pops)>,
    /// The root of the tokens that begin a word.
    pub(super) start: u32,
    /// The root of the tokens that continue a word; equal to `start` if the continuing-subword prefix is empty.
    pub(super) inside: u32,
    /// Words of more characters are unknown.
    pub(super) max_chars: usize,
}

impl Matcher {
    /// Returns the child of `node` on the edge `byte`.
    #[inline(always)]
    pub(super) fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let cell = self.bases[node as usize] ^ u32::from(byte);
        (self.labels[cell as usize] == byte).then_some(cell)
    }
}
