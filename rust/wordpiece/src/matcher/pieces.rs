//! What matching emits: the pieces of a word, and lists of pieces as the failure transitions hold them.

/// Means "no node" and "no piece".
pub(super) const NONE: u32 = u32::MAX;

/// A list of pieces: empty, a single piece, or the concatenation of two lists.
///
/// The list of a deep node begins with the list of its parent. Sharing the common part keeps the automaton linear in
/// the size of the vocabulary even for adversarial vocabularies (one token of ten thousand letters).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pops {
    /// [`NONE`] for the empty list, the highest bit and the length of the piece for a single one, otherwise an index into
    /// `Matcher::concatenations`.
    code: u32,
    /// The id of a single piece.
    id: u32,
}

/// What [`Pops`] is.
pub(super) enum PopsKind {
    Empty,
    Piece(MatchedPiece),
    /// An index into `Matcher::concatenations`.
    Concatenation(usize),
}

impl Pops {
    pub const EMPTY: Pops = Pops { code: NONE, id: 0 };
    const PIECE: u32 = 1 << 31;

    /// Returns the list of one piece.
    ///
    /// # Panics
    ///
    /// If the piece has 2³¹ − 1 bytes or more.
    pub fn piece(piece: MatchedPiece) -> Pops {
        assert!(piece.len < !Pops::PIECE, "a token has fewer than 2³¹ − 1 bytes");
        Pops { code: piece.len | Pops::PIECE, id: piece.id }
    }

    /// Returns the concatenation with an index.
    ///
    /// # Panics
    ///
    /// If the index is 2³¹ or more.
    pub fn concatenation(index: usize) -> Pops {
        assert!(index < Pops::PIECE as usize, "fewer than 2³¹ concatenations");
        Pops { code: index as u32, id: 0 }
    }

    #[inline(always)]
    pub fn kind(self) -> PopsKind {
        if self.code & Pops::PIECE == 0 {
            PopsKind::Concatenation(self.code as usize)
        } else if self.code == NONE {
            PopsKind::Empty
        } else {
            PopsKind::Piece(MatchedPiece { id: self.id, len: self.code & !Pops::PIECE })
        }
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

impl PendingPieces {
    /// Returns the size of the memory that the list holds, in bytes.
    pub fn capacity_bytes(&self) -> usize {
        size_of::<Pops>() * self.0.capacity()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::{MatchedPiece, Pops, PopsKind};

    #[test]
    fn the_largest_lists_are_told_apart_and_larger_ones_refused() {
        const LEN: u32 = (1 << 31) - 2;
        let piece = |len| Pops::piece(MatchedPiece { id: 5, len });
        let found = piece(LEN).kind();
        assert!(matches!(found, PopsKind::Piece(MatchedPiece { id: 5, len: LEN })), "not the piece");
        assert!(matches!(Pops::concatenation((1 << 31) - 1).kind(), PopsKind::Concatenation(0x7FFF_FFFF)));
        assert!(catch_unwind(|| piece(LEN + 1)).is_err());
        assert!(catch_unwind(|| Pops::concatenation(1 << 31)).is_err());
    }
}
