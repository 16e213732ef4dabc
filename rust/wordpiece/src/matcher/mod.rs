//! Word → pieces, longest match first.
//!
//! Greedy matching takes the longest token that begins the word, then the longest continuation, and so on. Done
//! literally it starts over after each piece and reads characters again and again. Here all tokens stand in a trie, and
//! each node knows what to do when the next byte does not fit: which pieces are certain by now (`pops`), and the node
//! for what has been read since (`fail`). So a word is read once, byte by byte, whatever the vocabulary: the "linear
//! maximum matching" of Song et al., *Fast WordPiece Tokenization* (2021). `build` makes the trie, `walk` reads words.

mod build;
mod walk;

pub(crate) use walk::Walk;

/// No node, no entry.
const NONE: u32 = u32::MAX;

/// What to do in a state when no child fits.
#[derive(Debug, Clone, Copy)]
struct Failure {
    /// Where to go on; `NONE`: the word has no pieces.
    next: u32,
    /// The pieces that are certain then.
    pops: Pops,
}

/// A list of entries: nothing, one entry, or two lists one after the other.
///
/// The lists of deep nodes begin with those of their parents. Sharing them keeps the whole automaton linear in the
/// vocabulary, also for one made to be large (a token of ten thousand letters).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pops(u32);

impl Pops {
    const EMPTY: Pops = Pops(NONE);
    const ENTRY: u32 = 1 << 31;

    fn entry(index: u32) -> Pops {
        Pops(index | Pops::ENTRY)
    }

    fn joined(index: u32) -> Pops {
        Pops(index)
    }
}

/// What a piece is: its id, and how many bytes of the word it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub id: u32,
    pub len: u32,
}

/// The automaton over a vocabulary.
#[derive(Debug, Clone)]
pub(crate) struct Matcher {
    /// Where the children of each node begin; they end where those of the next node begin. Four bytes for a node and one
    /// for its label is all that most steps read.
    children: Vec<u32>,
    /// The byte that leads to each node.
    labels: Vec<u8>,
    failures: Vec<Failure>,
    entries: Vec<Entry>,
    joined: Vec<(Pops, Pops)>,
    /// Where a word begins, and where a continuation does.
    start: u32,
    inside: u32,
    /// The children of those two, by byte.
    from_start: Box<[u32; 256]>,
    from_inside: Box<[u32; 256]>,
    /// Words of more characters are unknown.
    max_chars: usize,
}
