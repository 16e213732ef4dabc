//! The slow, obvious tokenizer: what every other path of this project is compared with.
//!
//! It is written to be checked by reading, beside the description of the reference implementation: each step makes a new
//! list, the longest match is found by trying every length, added tokens are looked for at every position, and nothing is
//! clever. It shares the tables of [`crate::unicode`] with the pipeline and not one line more. Where this project differs
//! from the reference implementation on purpose, a comment says so.
//!
//! Texts are lists of characters here, and all positions count characters.
//!
//! ```
//! use wordpiece::reference::{Config, Tokenizer};
//!
//! let vocab = ["[UNK]", "un", "##aff", "##able"];
//! let vocab = vocab.iter().zip(0..).map(|(token, id)| (token.to_string(), id)).collect();
//! let tokenizer = Tokenizer::new(Config { vocab, ..Config::default() }).unwrap();
//! let encoding = tokenizer.encode(&"Unaffable".into(), true).unwrap();
//! assert_eq!(encoding.tokens, ["un", "##aff", "##able"]);
//! assert_eq!(encoding.offsets, [(0, 2), (2, 5), (5, 9)]);
//! ```

mod inputs;
mod text;

use std::collections::HashMap;

/// What kind of thing a [`Refusal`] refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The vocabulary.
    Vocab,
    /// Another part of the configuration, as it would stand in a `tokenizer.json`.
    Format,
    /// A text or an option of a call.
    Input,
}

/// Why something was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which part is wrong.
    pub kind: RefusalKind,
    /// The value that is wrong, in a sentence.
    pub message: String,
}

impl Refusal {
    fn vocab(message: String) -> Self {
        Self { kind: RefusalKind::Vocab, message }
    }

    fn format(message: String) -> Self {
        Self { kind: RefusalKind::Format, message }
    }

    fn input(message: String) -> Self {
        Self { kind: RefusalKind::Input, message }
    }
}

/// Everything that makes a tokenizer.
#[derive(Clone, Debug)]
pub struct Config {
    /// Token and id. A repeated token keeps its last id.
    pub vocab: Vec<(String, u32)>,
    /// The token of a word that cannot be put together.
    pub unk_token: String,
    /// What stands before a piece that does not begin its word.
    pub continuing_subword_prefix: String,
    /// A word of more characters than this is unknown.
    pub max_input_chars_per_word: usize,
    /// What happens to a text first.
    pub normalizer: Option<Normalizer>,
    /// How it is cut into words; `None`: it is one word.
    pub pre_tokenizer: Option<PreTokenizer>,
    /// What is added around the tokens.
    pub post_processor: Option<PostProcessor>,
    /// In the order in which they are added.
    pub added_tokens: Vec<AddedToken>,
    /// Leave special tokens that stand in a text to the model.
    pub encode_special_tokens: bool,
    /// Where encodings are cut.
    pub truncation: Option<Truncation>,
    /// How they are made equally long.
    pub padding: Option<Padding>,
}

impl Default for Config {
    /// BERT, uncased, with no vocabulary and nothing added.
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

/// The four switches of BERT's normalizer.
#[derive(Clone, Copy, Debug)]
pub struct BertNormalizer {
    /// Remove control characters, make white space plain.
    pub clean_text: bool,
    /// Put spaces around ideographs.
    pub handle_chinese_chars: bool,
    /// Decompose and drop nonspacing marks; `None`: as `lowercase` says.
    pub strip_accents: Option<bool>,
    /// Make lower case.
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
    /// Cleaning, ideographs, accents, lower case, in that order.
    Bert(BertNormalizer),
    /// Canonical decomposition.
    Nfd,
    /// Lower case.
    Lowercase,
    /// Drops all combining marks, decomposing nothing.
    StripAccents,
    /// Removes white space at the ends.
    Strip {
        /// At the beginning.
        left: bool,
        /// At the end.
        right: bool,
    },
    /// One after the other.
    Sequence(Vec<Normalizer>),
}

/// What becomes of the characters at which a text is split.
#[derive(Clone, Copy, Debug)]
pub enum Behavior {
    /// They go.
    Removed,
    /// Each is a word.
    Isolated,
    /// Each run of them is a word.
    Contiguous,
}

/// A pre-tokenizer.
#[derive(Clone, Debug)]
pub enum PreTokenizer {
    /// At white space, which goes, and at punctuation, which is isolated.
    Bert,
    /// Runs of word characters, and runs of what is neither that nor white space.
    Whitespace,
    /// At white space, which goes.
    WhitespaceSplit,
    /// At punctuation.
    Punctuation(Behavior),
    /// At numbers.
    Digits {
        /// Each number character is a word, not each run of them.
        individual: bool,
    },
    /// One after the other.
    Sequence(Vec<PreTokenizer>),
}

/// A special token of a template: what it expands to.
#[derive(Clone, Debug)]
pub struct TemplateToken {
    /// The ids.
    pub ids: Vec<u32>,
    /// The tokens, as many.
    pub tokens: Vec<String>,
}

/// One piece of a template, with its type id.
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
        /// Token and id that begin.
        cls: (String, u32),
        /// Token and id that end each text.
        sep: (String, u32),
    },
    /// Any arrangement.
    Template {
        /// For one text.
        single: Vec<TemplatePiece>,
        /// For two.
        pair: Vec<TemplatePiece>,
        /// What the names mean.
        special_tokens: HashMap<String, TemplateToken>,
    },
}

/// A token that is found in the text before the model sees it.
#[derive(Clone, Debug, Default)]
pub struct AddedToken {
    /// What is looked for.
    pub content: String,
    /// The id that a file gives it; it must be the one it gets.
    pub id: Option<u32>,
    /// Only where no word character stands beside it.
    pub single_word: bool,
    /// Takes white space before it.
    pub lstrip: bool,
    /// Takes white space after it.
    pub rstrip: bool,
    /// Looked for in the normalized text, in its normalized form.
    pub normalized: bool,
    /// Skipped by decoding.
    pub special: bool,
}

/// Left or right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// At the beginning.
    Left,
    /// At the end.
    Right,
}

/// Which text is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The longer one, then both.
    LongestFirst,
    /// The first.
    OnlyFirst,
    /// The second.
    OnlySecond,
}

/// Where encodings are cut.
#[derive(Clone, Copy, Debug)]
pub struct Truncation {
    /// The most tokens, special ones included.
    pub max_length: usize,
    /// How many tokens a window has in common with the one before.
    pub stride: usize,
    /// Which text.
    pub strategy: Strategy,
    /// Which end goes.
    pub direction: Side,
}

/// How encodings are made equally long.
#[derive(Clone, Debug)]
pub struct Padding {
    /// To this length; `None`: to the longest of the batch.
    pub length: Option<usize>,
    /// Then up to a multiple of this; 0: not.
    pub multiple_of: usize,
    /// At which end.
    pub direction: Side,
    /// With this id,
    pub pad_id: u32,
    /// this type id,
    pub pad_type_id: u32,
    /// and this token, which need not be in the vocabulary.
    pub pad_token: String,
}

/// One text, whole or already cut into words.
#[derive(Clone, Debug)]
pub enum Sequence {
    /// A text.
    Text(String),
    /// Words; offsets count from the beginning of each.
    Words(Vec<String>),
}

/// One text or two.
#[derive(Clone, Debug)]
pub struct Input {
    /// The first.
    pub first: Sequence,
    /// The second.
    pub second: Option<Sequence>,
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self { first: Sequence::Text(text.into()), second: None }
    }
}

/// What a text became. All lists but `overflowing` have one entry a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// The ids.
    pub ids: Vec<u32>,
    /// The tokens; of an added token, the text that it took.
    pub tokens: Vec<String>,
    /// Where they stand in the text (or word), in characters, end exclusive.
    pub offsets: Vec<(usize, usize)>,
    /// The word they belong to.
    pub word_ids: Vec<Option<u32>>,
    /// The segment they belong to.
    pub type_ids: Vec<u32>,
    /// The text they belong to, 0 or 1.
    pub sequence_ids: Vec<Option<usize>>,
    /// 1, and 0 for padding.
    pub attention_mask: Vec<u32>,
    /// 1 for what was added around the text, padding included.
    pub special_tokens_mask: Vec<u32>,
    /// The other windows, if it was cut.
    pub overflowing: Vec<Encoding>,
}

/// The token and the normal form of an added token, once it has its id.
#[derive(Clone, Debug)]
struct Registered {
    token: AddedToken,
    id: u32,
    /// What is looked for: the content, normalized if so asked.
    pattern: Vec<char>,
    /// Special now, or in an earlier registration of the same content.
    ever_special: bool,
}

/// The reference tokenizer.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    config: Config,
    vocab: HashMap<String, u32>,
    by_id: HashMap<u32, String>,
    added: Vec<Registered>,
}

impl Tokenizer {
    /// Makes a tokenizer, and refuses what the reference implementation would trip over later.
    pub fn new(config: Config) -> Result<Self, Refusal> {
        let vocab: HashMap<String, u32> = config.vocab.iter().cloned().collect();
        if vocab.is_empty() {
            return Err(Refusal::vocab("the vocabulary is empty".into()));
        }
        if !vocab.contains_key(&config.unk_token) {
            return Err(Refusal::vocab(format!("no unknown token {:?}", config.unk_token)));
        }
        let mut by_id = HashMap::new();
        for (token, &id) in &vocab {
            if let Some(other) = by_id.insert(id, token.clone()) {
                return Err(Refusal::vocab(format!("id {id} is given to {token:?} and {other:?}")));
            }
        }
        if let Some(post) = &config.post_processor {
            inputs::check_post_processor(post)?;
        }
        let mut tokenizer = Self { config, vocab, by_id, added: Vec::new() };
        tokenizer.register_added_tokens()?;
        Ok(tokenizer)
    }

    /// Gives every added token its id, in order.
    fn register_added_tokens(&mut self) -> Result<(), Refusal> {
        let vocab_size = self.vocab.len() as u32;
        let mut next = vocab_size;
        for token in self.config.added_tokens.clone() {
            if token.content.is_empty() {
                continue;
            }
            let known = self.added.iter().position(|other| other.token.content == token.content);
            let id = match (known, self.vocab.get(&token.content)) {
                (Some(position), _) => self.added[position].id,
                (None, Some(&id)) => id,
                (None, None) => {
                    // The reference implementation gives out `next` even if some token has that id already.
                    if self.by_id.contains_key(&next) {
                        next = self.by_id.keys().max().map_or(0, |max| max + 1);
                    }
                    next += 1;
                    next - 1
                }
            };
            if let Some(stored) = token.id.filter(|&stored| stored != id) {
                let message = format!("added token {:?} has id {stored} in the file but gets {id}", token.content);
                return Err(Refusal::format(message));
            }
            let pattern: Vec<char> = if token.normalized {
                let content = text::original(&token.content);
                text::normalize(self.config.normalizer.as_ref(), content).iter().map(|a| a.c).collect()
            } else {
                token.content.chars().collect()
            };
            if pattern.is_empty() {
                // The reference implementation would match it between any two bytes.
                return Err(Refusal::input(format!("added token {:?} is nothing once normalized", token.content)));
            }
            self.by_id.insert(id, pattern.iter().collect());
            let ever_special = token.special || known.is_some_and(|position| self.added[position].ever_special);
            let registered = Registered { token, id, pattern, ever_special };
            match known {
                Some(position) => self.added[position] = registered,
                None => self.added.push(registered),
            }
        }
        Ok(())
    }

    /// The id of a token.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        let added = self.added.iter().find(|added| added.token.content == token);
        added.map(|added| added.id).or_else(|| self.vocab.get(token).copied())
    }

    /// The token of an id; of a normalized added token, its normalized form.
    pub fn id_to_token(&self, id: u32) -> Option<&str> {
        self.by_id.get(&id).map(String::as_str)
    }

    /// The number of different tokens.
    pub fn vocab_size(&self) -> usize {
        let new = self.added.iter().filter(|added| !self.vocab.contains_key(&added.token.content));
        self.vocab.len() + new.count()
    }

    /// Encodes one text or pair, cut and padded as configured.
    pub fn encode(&self, input: &Input, add_special_tokens: bool) -> Result<Encoding, Refusal> {
        let mut encodings = self.encode_batch(std::slice::from_ref(input), add_special_tokens)?;
        Ok(encodings.remove(0))
    }

    /// Encodes many, padded to one length if so configured.
    pub fn encode_batch(&self, batch: &[Input], add_special_tokens: bool) -> Result<Vec<Encoding>, Refusal> {
        let post = self.config.post_processor.as_ref();
        if let Some(truncation) = &self.config.truncation {
            inputs::check_truncation(truncation, inputs::added_tokens(post, false, add_special_tokens))?;
        }
        let mut drafts = Vec::new();
        for input in batch {
            let first = self.encode_sequence(&input.first, 0);
            let second = input.second.as_ref().map(|second| self.encode_sequence(second, 1));
            let (first, second) = match &self.config.truncation {
                Some(truncation) => {
                    let added = inputs::added_tokens(post, second.is_some(), add_special_tokens);
                    inputs::truncate_pair(first, second, truncation, added)?
                }
                None => (first, second),
            };
            drafts.push(inputs::post_process(post, first, second, add_special_tokens));
        }
        if let Some(padding) = &self.config.padding {
            inputs::pad(&mut drafts, padding);
        }
        Ok(drafts.into_iter().map(inputs::Draft::finish).collect())
    }

    fn encode_sequence(&self, sequence: &Sequence, type_id: u32) -> inputs::Draft {
        match sequence {
            Sequence::Text(text) => inputs::Draft::of_words(self.words(text), None, type_id),
            Sequence::Words(words) => {
                let mut all = inputs::Draft::default();
                for (i, word) in words.iter().enumerate() {
                    all = all.merge(inputs::Draft::of_words(self.words(word), Some(i as u32), type_id));
                }
                all
            }
        }
    }

    /// Turns ids back into text, as the decoder of WordPiece does; `cleanup` takes spaces before punctuation away.
    /// `join` is the decoder that a file without one has: all tokens with a space between.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool, decoder: Option<&WordPieceDecoder>) -> String {
        // The reference implementation compares the normalized form with the contents of special tokens, and so keeps
        // special tokens that normalization changes. Here the id decides.
        let skipped = |id: u32| self.added.iter().any(|added| added.id == id && added.token.special);
        let tokens: Vec<&str> = ids
            .iter()
            .filter(|&&id| !(skip_special_tokens && skipped(id)))
            .filter_map(|&id| self.id_to_token(id))
            .collect();
        match decoder {
            Some(decoder) => decoder.decode(&tokens),
            None => tokens.join(" "),
        }
    }
}

/// The decoder of WordPiece.
#[derive(Clone, Debug)]
pub struct WordPieceDecoder {
    /// Taken away from every token but the first.
    pub prefix: String,
    /// Take some spaces away, within each token.
    pub cleanup: bool,
}

impl WordPieceDecoder {
    /// Tokens to text.
    pub fn decode(&self, tokens: &[&str]) -> String {
        let mut text = String::new();
        for (i, token) in tokens.iter().enumerate() {
            let mut piece = match token.strip_prefix(self.prefix.as_str()) {
                _ if i == 0 => token.to_string(),
                Some(rest) => rest.to_string(),
                None => format!(" {token}"),
            };
            if self.cleanup {
                for (from, to) in [
                    (" .", "."),
                    (" ?", "?"),
                    (" !", "!"),
                    (" ,", ","),
                    (" ' ", "'"),
                    (" n't", "n't"),
                    (" 'm", "'m"),
                    (" do not", " don't"),
                    (" 's", "'s"),
                    (" 've", "'ve"),
                    (" 're", "'re"),
                ] {
                    piece = piece.replace(from, to);
                }
            }
            text += &piece;
        }
        text
    }
}

/// Reads a `vocab.txt`: the id of a token is the number of its line, from 0. A repeated token keeps its last id.
pub fn read_vocab_txt(bytes: &[u8]) -> Result<Vec<(String, u32)>, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|e| Refusal::vocab(format!("not UTF-8: {e}")))?;
    // A line feed ends a line, so the last one starts none.
    let lines = text.strip_suffix('\n').unwrap_or(text);
    if lines.is_empty() && text.is_empty() {
        return Ok(Vec::new());
    }
    let mut ids: HashMap<String, u32> = HashMap::new();
    for (i, line) in lines.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        ids.insert(line.trim_end_matches(crate::unicode::is_whitespace).to_owned(), i as u32);
    }
    let mut vocab: Vec<(String, u32)> = ids.into_iter().collect();
    vocab.sort_by_key(|&(_, id)| id);
    Ok(vocab)
}
