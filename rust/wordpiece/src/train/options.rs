//! The options of the learners.

/// Options of the learners that merge pairs, `bpe` and `likelihood`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeOptions {
    /// The least count at which a pair is merged; 0 means 1. It does not filter words or characters.
    pub min_frequency: u64,
    /// How many characters are kept, the most frequent first; `None` keeps all. The others are removed from the words.
    pub limit_alphabet: Option<usize>,
    /// Characters that rank above all others, whether they occur or not. Of each string only the first character
    /// counts.
    pub initial_alphabet: Vec<String>,
}

impl Default for MergeOptions {
    /// The defaults of `BertWordPieceTokenizer.train` in Hugging Face `tokenizers`.
    fn default() -> MergeOptions {
        MergeOptions { min_frequency: 2, limit_alphabet: Some(1000), initial_alphabet: Vec::new() }
    }
}

/// Options of `top_down`, with the names and defaults of TensorFlow Text.
#[derive(Debug, Clone, PartialEq)]
pub struct TopDownOptions {
    /// The least threshold, at least 1; `None` uses the least count of a word.
    pub lower_thresh: Option<u64>,
    /// The greatest threshold, at least 1; `None` uses the greatest count of a word.
    pub upper_thresh: Option<u64>,
    /// Rounds of segmentation for each threshold. The search usually settles before the fourth.
    pub num_iterations: usize,
    /// How far below the requested size the vocabulary may be, as a fraction of that size.
    pub slack_ratio: f64,
    /// Words of more characters than this are excluded.
    pub max_token_length: usize,
    /// How many distinct characters are kept, the most frequent first; words with any other are excluded.
    pub max_unique_chars: usize,
    /// How many distinct words are kept, the most frequent first; `None` keeps all.
    pub max_input_words: Option<usize>,
    /// Whether pieces inside words are prefixed with `##`. Without it, the start and the inside of words share pieces.
    pub include_joiner: bool,
}

impl Default for TopDownOptions {
    fn default() -> TopDownOptions {
        TopDownOptions {
            lower_thresh: Some(10),
            upper_thresh: Some(10_000_000),
            num_iterations: 4,
            slack_ratio: 0.05,
            max_token_length: 50,
            max_unique_chars: 1000,
            max_input_words: Some(5_000_000),
            include_joiner: true,
        }
    }
}

/// A learner and its options.
#[derive(Debug, Clone, PartialEq)]
pub enum Learner {
    /// Byte-pair encoding: merges the most frequent pair.
    Bpe(MergeOptions),
    /// Merges the pair whose merging increases the likelihood most.
    Likelihood(MergeOptions),
    /// Keeps frequent words first, then frequent word endings.
    TopDown(TopDownOptions),
}

/// Options of [`train`](super::train).
#[derive(Debug, Clone, PartialEq)]
pub struct TrainOptions {
    /// The requested size of the vocabulary, special tokens included.
    pub vocab_size: usize,
    /// The first tokens of the vocabulary, in this order; a repeated one is used once. With `base` they are expected to
    /// be in it and are only excluded from the token counts.
    pub special_tokens: Vec<String>,
    /// A vocabulary to extend: its tokens keep their ids.
    pub base: Option<Vec<String>>,
    /// Whether new tokens replace `[unused0]`, `[unused1]`, … of `base` instead of following it; `vocab_size` is
    /// ignored.
    pub fill_unused: bool,
    /// The learner and its options.
    pub learner: Learner,
    /// The number of threads for the parts that can be divided; 0 means 1. It does not affect the result.
    pub threads: usize,
}

impl Default for TrainOptions {
    fn default() -> TrainOptions {
        TrainOptions {
            vocab_size: 30_522,
            special_tokens: ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(String::from).to_vec(),
            base: None,
            fill_unused: false,
            learner: Learner::Bpe(MergeOptions::default()),
            threads: 1,
        }
    }
}
