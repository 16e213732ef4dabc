//! The definition of a tokenizer, as data, and why one is refused.
//!
//! Deliberately separate from [`crate::Definition`]: sharing it would hide mistakes in how definitions are read.

use std::collections::HashMap;

/// The part of a configuration or call that a [`Refusal`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The vocabulary.
    Vocab,
    /// Another part of the configuration, as a `tokenizer.json` would state it.
    Format,
    /// A text, or an option of a call.
    Input,
}

/// Why a configuration or a call was refused: the error type of the reference implementation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The part that is wrong.
    pub kind: RefusalKind,
    /// A sentence that names the wrong value.
    pub message: String,
}

impl Refusal {
    pub(super) fn vocab(message: String) -> Self {
        Self { kind: RefusalKind::Vocab, message }
    }

    pub(super) fn format(message: String) -> Self {
        Self { kind: RefusalKind::Format, message }
    }

    pub(super) fn input(message: String) -> Self {
        Self { kind: RefusalKind::Input, message }
    }
}

/// The definition of a tokenizer. The default is uncased BERT without a vocabulary.
#[derive(Clone, Debug)]
pub struct Config {
    /// The tokens of the model and their ids. A repeated token keeps its last id.
    pub vocab: Vec<(String, u32)>,
    /// The token of a word that cannot be divided into tokens.
    pub unk_token: String,
    /// The prefix of tokens that continue a word.
    pub continuing_subword_prefix: String,
    /// Words of more characters are unknown.
    pub max_input_chars_per_word: usize,
    /// How a text is normalized.
    pub normalizer: Option<Normalizer>,
    /// How a normalized text is split into words; `None` makes it a single word.
    pub pre_tokenizer: Option<PreTokenizer>,
    /// Which special tokens are added around the texts.
    pub post_processor: Option<PostProcessor>,
    /// The added tokens, in order of registration.
    pub added_tokens: Vec<AddedToken>,
    /// Whether special tokens that occur in a text are treated as ordinary text.
    pub encode_special_tokens: bool,
    /// How rows are truncated.
    pub truncation: Option<Truncation>,
    /// How rows are padded.
    pub padding: Option<Padding>,
}

impl Default for Config {
    /// Uncased BERT without a vocabulary, added tokens or a post-processor.
    fn default() -> Self {
        Self {
            vocab: Vec::new(),
            unk_token: "[UNK]".into(),
            continuing_subword_prefix: "##".into(),
            max_input_chars_per_word: 100,
            normalizer: Some(Normalizer::Bert(BertNormalizer::default())),
            pre_tokenizer: Some(PreTokenizer::Bert),
            post_processor: None,
            added_tokens: Vec::new(),
            encode_special_tokens: false,
            truncation: None,
            padding: None,
        }
    }
}

/// The options of BERT's normalizer.
#[derive(Clone, Copy, Debug)]
pub struct BertNormalizer {
    /// Delete control characters and turn white space characters into spaces.
    pub clean_text: bool,
    /// Put spaces around CJK ideographs.
    pub handle_chinese_chars: bool,
    /// Decompose canonically and delete nonspacing marks. `None` means: if `lowercase` is set.
    pub strip_accents: Option<bool>,
    /// Lower-case each character.
    pub lowercase: bool,
}

impl Default for BertNormalizer {
    fn default() -> Self {
        Self { clean_text: true, handle_chinese_chars: true, strip_accents: None, lowercase: true }
    }
}

/// A normalizer.
#[derive(Clone, Debug)]
pub enum Normalizer {
    /// BERT's: clean up, isolate ideographs, strip accents, lower-case, in that order.
    Bert(BertNormalizer),
    /// Canonical decomposition.
    Nfd,
    /// Lower-case each character.
    Lowercase,
    /// Delete all combining marks, without decomposing.
    StripAccents,
    /// Delete white space at the ends.
    Strip {
        /// At the start.
        left: bool,
        /// At the end.
        right: bool,
    },
    /// Several normalizers, applied in order.
    Sequence(Vec<Normalizer>),
}

/// What happens to the characters at which a text is split.
#[derive(Clone, Copy, Debug)]
pub enum Behavior {
    /// They are removed.
    Removed,
    /// Each is a word.
    Isolated,
    /// Each run of them is a word.
    Contiguous,
}

/// A pre-tokenizer.
#[derive(Clone, Debug)]
pub enum PreTokenizer {
    /// At white space, which is removed, and at punctuation, which is isolated.
    Bert,
    /// Into runs of word characters and runs of characters that are neither word characters nor white space.
    Whitespace,
    /// At white space, which is removed.
    WhitespaceSplit,
    /// At punctuation.
    Punctuation(Behavior),
    /// At numeric characters.
    Digits {
        /// Whether each numeric character is a word, rather than each run of them.
        individual: bool,
    },
    /// By GPT-2's pattern; each byte becomes a visible character.
    ByteLevel {
        /// Insert a space before a text that does not begin with one.
        add_prefix_space: bool,
        /// Split by the pattern; otherwise the text is one word.
        use_regex: bool,
    },
    /// Several pre-tokenizers; each splits the words of the one before.
    Sequence(Vec<PreTokenizer>),
}

/// What the name of a special token in a template expands to.
#[derive(Clone, Debug)]
pub struct TemplateToken {
    /// The ids of the tokens.
    pub ids: Vec<u32>,
    /// The texts of the tokens, as many as ids.
    pub tokens: Vec<String>,
}

/// One element of a template, with its segment id.
#[derive(Clone, Debug)]
pub enum TemplatePiece {
    /// The first text.
    A(u32),
    /// The second text.
    B(u32),
    /// A special token, by name.
    Special(String, u32),
}

/// A post-processor.
#[derive(Clone, Debug)]
pub enum PostProcessor {
    /// `[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]`.
    Bert {
        /// The token that begins a row, and its id.
        cls: (String, u32),
        /// The token that follows each text, and its id.
        sep: (String, u32),
    },
    /// An arbitrary arrangement.
    Template {
        /// The row of a single text.
        single: Vec<TemplatePiece>,
        /// The row of a pair.
        pair: Vec<TemplatePiece>,
        /// The special tokens, by name.
        special_tokens: HashMap<String, TemplateToken>,
    },
}

/// A token that is found in the text before the model sees it.
#[derive(Clone, Debug, Default)]
pub struct AddedToken {
    /// The text to search for.
    pub content: String,
    /// The id that a file states; construction fails if the token is assigned another one.
    pub id: Option<u32>,
    /// Match only if neither the character before nor the one after is a word character.
    pub single_word: bool,
    /// Absorb the white space before it.
    pub lstrip: bool,
    /// Absorb the white space after it.
    pub rstrip: bool,
    /// Search for its normalized form in the normalized text, instead of its content in the original text.
    pub normalized: bool,
    /// Skip it in decoding, on request.
    pub special: bool,
}

/// An end of a text or row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The start.
    Left,
    /// The end.
    Right,
}

/// Which text of a pair is truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The longer one until both are equally long, then both.
    LongestFirst,
    /// Only the first.
    OnlyFirst,
    /// Only the second.
    OnlySecond,
}

/// How rows are truncated.
#[derive(Clone, Copy, Debug)]
pub struct Truncation {
    /// The most tokens in a row, including special tokens.
    pub max_length: usize,
    /// The number of tokens that adjacent windows share.
    pub stride: usize,
    /// Which text is truncated.
    pub strategy: Strategy,
    /// The end from which tokens are removed.
    pub direction: Side,
}

/// How rows are padded.
#[derive(Clone, Debug)]
pub struct Padding {
    /// The length to pad to; `None` means the length of the longest row of the batch.
    pub length: Option<usize>,
    /// Round the length up to a multiple of this; 0 does not round.
    pub multiple_of: usize,
    /// The end at which padding is added.
    pub direction: Side,
    /// The id of the padding token.
    pub pad_id: u32,
    /// The segment id of the padding token.
    pub pad_type_id: u32,
    /// The text of the padding token; it need not be in the vocabulary.
    pub pad_token: String,
}
