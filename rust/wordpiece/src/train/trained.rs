//! The result of training: a vocabulary, and counts of what was excluded.

/// Why a learner stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stop {
    /// The vocabulary has the requested size or more.
    #[default]
    SizeReached,
    /// There are no more pairs to merge, or they are too rare.
    NothingLeft,
    /// The search for a threshold ended at this one, and the vocabulary is smaller than requested.
    Threshold(u64),
}

/// A trained vocabulary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trained {
    /// The tokens; the index of a token is its id.
    pub tokens: Vec<String>,
    /// How often each token is used when the training words are segmented by longest match with this vocabulary; 0 for
    /// special tokens. As long as `tokens`.
    pub counts: Vec<u64>,
    /// How many occurrences of words cannot be segmented with this vocabulary.
    pub unknown: u128,
    /// For each new token of an extended vocabulary, its id and its pieces under the old vocabulary; the unknown token
    /// where it cannot be segmented. Embeddings of new tokens can be initialised from the embeddings of the pieces.
    pub pieces: Vec<(u32, Vec<u32>)>,
    /// Why the learner stopped.
    pub stop: Stop,
    /// The size of the special tokens and the alphabet together, below which a vocabulary cannot be; 0 for `top_down`.
    pub least_size: usize,
    /// The characters that `limit_alphabet` dropped.
    pub dropped: DroppedChars,
    /// The words that `top_down` excluded.
    pub excluded: ExcludedWords,
    /// The threshold at which `top_down` ended.
    pub threshold: Option<u64>,
}

/// The characters that `limit_alphabet` dropped, and how much of the text that affects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DroppedChars {
    /// The dropped characters, the most frequent first.
    pub chars: Vec<char>,
    /// How often they occur in all words.
    pub occurrences: u64,
    /// How many characters occur in all words.
    pub of_characters: u64,
    /// How many occurrences of words have a dropped character.
    pub words: u128,
    /// How many occurrences of words there are.
    pub of_words: u128,
}

/// The words that `top_down` does not learn from, because of their length, their characters or their number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExcludedWords {
    /// How many distinct words were excluded.
    pub words: u64,
    /// How often they occur.
    pub occurrences: u128,
}
