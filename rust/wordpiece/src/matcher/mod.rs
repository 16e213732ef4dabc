//! Division of a word into pieces, longest match first.
//!
//! WordPiece splits a word greedily: it takes the longest token that is a prefix of the word, then the longest
//! continuation token (`##…`) that is a prefix of the rest, and so on; if at any point no token fits, the entire word is
//! unknown. This equals `tokenizers` 0.23.3's `WordPiece` model and the `WordpieceTokenizer` of Devlin et al. (2018).
//!
//! Trying every length at every position is quadratic in the length of the word. The [`Matcher`] implements the linear
//! algorithm (LinMaxMatch) of Song et al., *Fast WordPiece Tokenization* (2021). All tokens are stored in tries, and each
//! node has a failure transition: the pieces that are certain once no child fits (`pops`), and the node that represents
//! the bytes read since then (`next`). Each byte of a word is therefore read once, whatever the vocabulary.
//!
//! | file | contents |
//! |---|---|
//! | `pieces` | what matching emits: pieces, and the lists of them that transitions hold |
//! | `automaton` | the data: nodes and failure transitions |
//! | `build` | construction of the automaton from a vocabulary |
//! | `trie`, `cells` | a trie over tokens; its nodes placed in a double array |
//! | `walk` | matching: the automaton reads a word and emits its pieces |
//!
//! # Invariants
//!
//! - Words and tokens are compared as UTF-8 bytes. A piece begins and ends between characters because tokens do.
//! - The pieces of a word are consecutive and cover it without gaps.
//!
//! # Cost
//!
//! Construction is linear in the bytes of the vocabulary, apart from sorting it. Matching takes amortised constant time
//! per byte plus one step per piece; a scratch [`WordPieces`] makes it free of allocations. A cell takes
//! 17 bytes (5 for the transitions that succeed, 12 for the failure), and about one in seven is empty; concatenations add at
//! most 16 per node.
//!
//! # Example
//!
//! With the tokens `a`, `abcdx`, `##b`, `##c` and `##cdy`, matching `abcdz` walks down `abcdx` as far as `abcd`. No child
//! fits `z`, so the failure of that node emits `a`, `##b` and continues in the node of `##cd`. No child fits there either,
//! and the failure of that node is [`pieces::NONE`], because no continuation begins with `d`: the word is unknown.

mod automaton;
mod build;
mod cells;
mod pieces;
mod trie;
mod walk;

pub(crate) use automaton::Matcher;
pub(crate) use pieces::{PendingPieces, WordPieces};

/// Returns whether a word or token has at most `limit` characters. The characters of a short one are not counted.
#[inline]
pub(crate) fn within_limit(word: &str, limit: usize) -> bool {
    word.len() <= limit || word.chars().count() <= limit
}
