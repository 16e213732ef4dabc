//! The automaton as data: the nodes of two tries, their failure transitions, and the output of matching.

/// Means "no node" and "no piece".
pub(super) const NONE: u32 = u32::MAX;

/// The failure transition of a node, taken when no child matches the next byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failure {
    /// The node to continue in, without consuming the byte; [`NONE`] means that the word has no pieces.
    pub next: u32,
    /// The pieces that are certain at this point.
    pub pops: Pops,
}

/// A list of pieces: empty, a single piece, or the concatenation of two lists.
///
/// The list of a deep node begins with that of its parent. Sharing the common part keeps the automaton linear in the size
/// of the vocabulary even for adversarial vocabularies (one token of ten thousand letters). The number encodes the case:
/// [`NONE`] for the empty list, the highest bit for an index into [`Matcher::pieces`], otherwise an index into
/// [`Matcher::concatenations`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pops(pub u32);

impl Pops {
    pub const EMPTY: Pops = Pops(NONE);
    pub const PIECE: u32 = 1 << 31;

    pub fn piece(index: u32) -> Pops {
        Pops(index | Pops::PIECE)
    }

    pub fn concatenation(index: u32) -> Pops {
        Pops(index)
    }
}

/// One piece of a matched word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatchedPiece {
    /// The id of its token.
    pub id: u32,
    /// The bytes of the word that it covers; the continuing-subword prefix is not counted.
    pub len: u32,
}

/// The pieces of the word matched last, and scratch space to find them. Reusing it between words avoids allocations.
#[derive(Debug, Default)]
pub(crate) struct WordPieces {
    /// The pieces of the word, in order; unspecified after a word without pieces.
    pub pieces: Vec<MatchedPiece>,
    /// The second halves of concatenations that are still to be emitted, innermost last.
    pub(super) pending: Vec<Pops>,
}

impl WordPieces {
    /// Returns the size of the memory that the lists hold, in bytes.
    pub fn capacity_bytes(&self) -> usize {
        size_of::<MatchedPiece>() * self.pieces.capacity() + size_of::<Pops>() * self.pending.capacity()
    }
}

/// Where the pieces of a word go.
pub(super) trait PieceSink {
    fn push(&mut self, piece: MatchedPiece);

    /// The second halves of concatenations that are still to be emitted, innermost last.
    fn pending(&mut self) -> &mut Vec<Pops>;
}

impl PieceSink for WordPieces {
    #[inline(always)]
    fn push(&mut self, piece: MatchedPiece) {
        self.pieces.push(piece);
    }

    #[inline(always)]
    fn pending(&mut self) -> &mut Vec<Pops> {
        &mut self.pending
    }
}

/// Scratch space to find pieces that are not stored.
#[derive(Debug, Default)]
pub(crate) struct PendingPieces(pub(super) Vec<Pops>);

/// The automaton over a vocabulary.
///
/// Nodes are numbered; the two tries (tokens that begin a word, tokens that continue one) share the numbering. The
/// children of a node are consecutive.
#[derive(Debug, Clone)]
pub(crate) struct Matcher {
    /// The first child of each node; the children end where those of the next node begin. Most steps read only these four
    /// bytes per node and one byte per label.
    pub(super) children: Vec<u32>,
    /// The byte on the edge to each node.
    pub(super) labels: Vec<u8>,
    /// The failure transition of each node.
    pub(super) failures: Vec<Failure>,
    /// The pieces that [`Pops`] refers to.
    pub(super) pieces: Vec<MatchedPiece>,
    /// The concatenations that [`Pops`] refers to.
    pub(super) concatenations: Vec<(Pops, Pops)>,
    /// The root of the tokens that begin a word.
    pub(super) start: u32,
    /// The root of the tokens that continue a word; equal to `start` if the continuing-subword prefix is empty.
    pub(super) inside: u32,
    /// The children of `start` by byte: roots have too many children for a linear search.
    pub(super) from_start: Box<[u32; 256]>,
    /// The children of `inside` by byte.
    pub(super) from_inside: Box<[u32; 256]>,
    /// Words of more characters are unknown.
    pub(super) max_chars: usize,
}

impl Matcher {
    /// Returns the child of `node` on the edge `byte`.
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

    /// Returns the numbers of the children of `node`.
    #[inline]
    pub(super) fn children(&self, node: u32) -> std::ops::Range<usize> {
        self.children[node as usize] as usize..self.children[node as usize + 1] as usize
    }
}
