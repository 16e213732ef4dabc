//! Inputs and outputs of the encoder.

use std::ops::Range;

use crate::numbers::Numbers;
use crate::pooling::Pooling;

/// The embedding tables, each with rows of E numbers.
#[derive(Clone, Copy)]
pub struct EmbeddingTables<'a> {
    /// A row for each id of the vocabulary; or, instead of a table, a row for each token.
    pub words: Numbers<'a>,
    /// A row for each token type, if the model has types.
    pub types: Option<Numbers<'a>>,
    /// A row for each position, if the model has such a table.
    pub positions: Option<Numbers<'a>>,
}

/// The tokens of all sequences, one sequence after the other. All columns have the same length, or are empty.
#[derive(Clone, Copy)]
pub struct TokenColumns<'a> {
    /// Rows of the table of words.
    pub ids: &'a [u32],
    /// Rows of the table of types; empty if all are 0.
    pub types: &'a [u32],
    /// Rows of the table of positions; empty for 0, 1, 2, … in each sequence.
    pub position_ids: &'a [u32],
    /// The position of each token in its sequence, where attention weights and hidden states are written; empty for
    /// 0, 1, 2, … in each sequence.
    pub positions: &'a [u32],
}

/// One sequence, and where the requested results go.
#[derive(Default)]
pub struct Sequence<'a> {
    /// Its tokens, as a range of the [`TokenColumns`].
    pub tokens: Range<usize>,
    /// How many of its tokens, from the first on, may be attended to; the remaining ones are masked.
    pub keys: usize,
    /// Hidden states [length, H] to be written, each with its number: 0 for the embeddings, i for the output of layer
    /// i, L + 1 for the output of the last layer before the norm that follows it. Rows of positions without a token are
    /// not written.
    pub states: Vec<(usize, &'a mut [f32])>,
    /// The attention weights [N, length, length] of each layer; as many as layers, or empty. They must be 0
    /// beforehand: positions without a token are not written.
    pub attentions: Vec<&'a mut [f32]>,
    /// The length of `states` and `attentions`, greater than all positions.
    pub length: usize,
    /// The pooled vectors to be written, computed from the tokens that may be attended to.
    pub pooled: Option<PooledOutput<'a>>,
}

/// The pooling of a sequence, and its output.
pub struct PooledOutput<'a> {
    /// The modes, whose vectors are written side by side.
    pub modes: &'a [Pooling],
    /// How many tokens at the start, which belong to a prompt, are excluded.
    pub skip: usize,
    /// [modes, H].
    pub to: &'a mut [f32],
}
