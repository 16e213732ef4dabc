//! All steps, from texts to rows: `TokenizerImpl` of `tokenizers`.

use std::collections::HashMap;

use super::added::{self, Registered, Segment, cut_out};
use super::config::{Config, Refusal};
use super::decode::WordPieceDecoder;
use super::inputs::{self, Encoding};
use super::matcher::{Token, pieces};
use super::normalize::{normalize, original, span, string};
use super::split::pre_tokenize;

/// One text, or a text that was split into words beforehand.
#[derive(Clone, Debug)]
pub enum Sequence {
    /// A text.
    Text(String),
    /// The words of a text; offsets count from the start of each.
    Words(Vec<String>),
}

/// A single text, or a pair.
#[derive(Clone, Debug)]
pub struct Input {
    /// The first text.
    pub first: Sequence,
    /// The second text of a pair.
    pub second: Option<Sequence>,
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self { first: Sequence::Text(text.into()), second: None }
    }
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
    /// Creates a tokenizer. Refuses every configuration that `tokenizers` would refuse or fail on later.
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
        let added = added::register(&config, &vocab, &mut by_id)?;
        Ok(Self { config, vocab, by_id, added })
    }

    /// Returns the id of a token.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        let added = self.added.iter().find(|added| added.token.content == token);
        added.map(|added| added.id).or_else(|| self.vocab.get(token).copied())
    }

    /// Returns the token of an id; for a normalized added token, its normalized form.
    pub fn id_to_token(&self, id: u32) -> Option<&str> {
        self.by_id.get(&id).map(String::as_str)
    }

    /// Returns the number of distinct tokens.
    pub fn vocab_size(&self) -> usize {
        let new = self.added.iter().filter(|added| !self.vocab.contains_key(&added.token.content));
        self.vocab.len() + new.count()
    }

    /// Encodes a text or a pair, truncated and padded as configured.
    pub fn encode(&self, input: &Input, add_special_tokens: bool) -> Result<Encoding, Refusal> {
        let mut encodings = self.encode_batch(std::slice::from_ref(input), add_special_tokens)?;
        Ok(encodings.remove(0))
    }

    /// Encodes a batch, truncated and padded as configured.
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

    /// Tokenizes one text of an input.
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

    /// Turns ids back into text. Ids without a token are skipped. Without a decoder, tokens are separated by spaces.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool, decoder: Option<&WordPieceDecoder>) -> String {
        // Differs from `tokenizers`, which compares the normalized form with the contents of special tokens, and so keeps
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

    /// Returns the tokens of a text, word by word. An added token is a word.
    fn words(&self, text: &str) -> Vec<Vec<Token>> {
        let keep_special = self.config.encode_special_tokens;
        let mut words = Vec::new();
        for segment in cut_out(&self.added, original(text), false, keep_special) {
            let segments = match segment {
                Segment::Added(..) => vec![segment],
                Segment::Plain(text) => {
                    let normalized = normalize(self.config.normalizer.as_ref(), text);
                    cut_out(&self.added, normalized, true, keep_special)
                }
            };
            for segment in segments {
                match segment {
                    Segment::Added(id, text) => {
                        words.push(vec![Token { id, text: string(&text), offsets: span(&text) }]);
                    }
                    Segment::Plain(text) => {
                        let split = pre_tokenize(self.config.pre_tokenizer.as_ref(), text);
                        let split = split.iter().filter(|word| !word.is_empty());
                        words.extend(split.map(|word| pieces(&self.config, &self.vocab, word)));
                    }
                }
            }
        }
        words
    }
}
