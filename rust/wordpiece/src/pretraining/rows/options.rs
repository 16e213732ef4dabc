//! Options of rows.

/// What a model is to learn from a row besides its masked tokens, and how rows are made for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// Pairs of segments; whether the second one is from another document.
    Nsp,
    /// Pairs of segments; whether they are swapped.
    Sop,
    /// Sentences that fill a row, across documents.
    FullSentences,
    /// Sentences that fill a row, of one document.
    DocSentences,
    /// Tokens that fill a row exactly, across documents.
    Blocks,
    /// A document in each row, cut at its length.
    Text,
}

/// Options of rows.
#[derive(Debug, Clone)]
pub struct RowOptions {
    /// What rows are for.
    pub objective: Objective,
    /// The longest row in tokens, special tokens included: at least 5 for pairs, else 3.
    pub max_length: usize,
    /// The probability that a pair aims at a smaller number of tokens.
    pub short_seq_prob: f64,
    /// The least number of sentences that a pair for next-sentence prediction is made of, where its document has as many.
    pub min_sentences: usize,
    /// The seed of all random choices.
    pub seed: u64,
    /// The pass, which is the epoch of random choices.
    pub pass: u64,
    /// The id of the token that begins a row.
    pub cls_id: u32,
    /// The id of the token that ends a segment.
    pub sep_id: u32,
}
