//! A tokenizer as data: what a `tokenizer.json` says.

use crate::added::AddedToken;
use crate::decode::Decoder;
use crate::inputs::{Padding, PostProcessor, Truncation};
use crate::normalize::{BertNormalizer, Normalizer};
use crate::split::PreTokenizer;
use crate::vocab::Vocab;

/// Everything a [`Tokenizer`](crate::Tokenizer) is made of. Files are read into it and written from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Tokens and ids of the model.
    pub vocab: Vocab,
    /// What a word becomes that has no pieces.
    pub unk_token: String,
    /// What marks a piece that continues a word, usually `##`.
    pub continuing_subword_prefix: String,
    /// A word of more characters than this is unknown.
    pub max_input_chars_per_word: usize,
    /// What is done to a text first.
    pub normalizer: Option<Normalizer>,
    /// How it is cut into words; without one it is a single word, spaces included.
    pub pre_tokenizer: Option<PreTokenizer>,
    /// What is put around the texts.
    pub post_processor: Option<PostProcessor>,
    /// How tokens become text again.
    pub decoder: Option<Decoder>,
    /// Tokens that are found in the text as they are, in the order in which they were added.
    pub added_tokens: Vec<AddedToken>,
    /// Truncation that holds where a call says nothing.
    pub truncation: Option<Truncation>,
    /// Padding that holds where a call says nothing.
    pub padding: Option<Padding>,
}

impl Definition {
    /// BERT over a vocabulary: its normalizer, splitter and decoder, no special tokens, no template.
    pub fn bert(vocab: Vocab) -> Definition {
        Definition {
            vocab,
            unk_token: "[UNK]".to_owned(),
            continuing_subword_prefix: "##".to_owned(),
            max_input_chars_per_word: 100,
            normalizer: Some(Normalizer::Bert(BertNormalizer::default())),
            pre_tokenizer: Some(PreTokenizer::Bert),
            post_processor: None,
            decoder: Some(Decoder::WordPiece { prefix: "##".to_owned(), cleanup: true }),
            added_tokens: Vec::new(),
            truncation: None,
            padding: None,
        }
    }
}
