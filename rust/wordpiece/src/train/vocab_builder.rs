//! A vocabulary that grows during training, and segmentation by longest match with it.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// The prefix of tokens that continue a word. Training always produces vocabularies with this prefix.
pub(super) const CONTINUATION_PREFIX: &str = "##";

/// Distinct tokens, numbered from 0 in the order in which they were added.
#[derive(Debug, Clone, Default)]
pub(super) struct VocabBuilder {
    texts: Vec<String>,
    /// The ids, by the hash of the text.
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl VocabBuilder {
    /// Creates a vocabulary of these tokens; a repeated one is added once.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> VocabBuilder {
        let mut vocab = VocabBuilder::default();
        for text in texts {
            vocab.add(text);
        }
        vocab
    }

    /// Adds a token if it is new; returns its id.
    pub fn add(&mut self, text: &str) -> u32 {
        if let Some(id) = self.id(text) {
            return id;
        }
        let VocabBuilder { texts, ids, hasher } = self;
        let id = texts.len() as u32;
        texts.push(text.to_owned());
        ids.insert_unique(hasher.hash_one(text), id, |&id| hasher.hash_one(texts[id as usize].as_str()));
        id
    }

    /// Adds the token that two tokens become when they are merged, if it is new; returns its id.
    ///
    /// The continuation prefix of the second token is removed: `a` and `##b` become `ab`.
    pub fn add_merged(&mut self, a: u32, b: u32) -> u32 {
        let (first, second) = (self.text(a), self.text(b));
        let merged = [first, second.strip_prefix(CONTINUATION_PREFIX).unwrap_or(second)].concat();
        self.add(&merged)
    }

    /// Returns the id of a token.
    pub fn id(&self, text: &str) -> Option<u32> {
        self.ids.find(self.hasher.hash_one(text), |&id| self.texts[id as usize] == text).copied()
    }

    /// Returns the text of a token.
    pub fn text(&self, id: u32) -> &str {
        &self.texts[id as usize]
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Removes the tokens with the highest ids until at most `most` are left.
    pub fn truncate(&mut self, most: usize) {
        self.ids.retain(|&mut id| (id as usize) < most);
        self.texts.truncate(most);
    }

    /// Returns the tokens in the order of their ids.
    pub fn into_texts(self) -> Vec<String> {
        self.texts
    }

    /// Returns the tokens in the order of their ids.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }
}

/// Segments words into the longest tokens from left to right by looking up every possible text.
///
/// This is quadratic in the length of a piece; it serves for the few words that the
/// [`Matcher`](crate::matcher::Matcher) does not segment, and for new tokens, of which there are thousands and not
/// millions.
pub(super) struct LongestMatch<'a> {
    vocab: &'a VocabBuilder,
    /// The number of characters of the longest token.
    longest_token: usize,
}

impl<'a> LongestMatch<'a> {
    /// Prepares segmentation with these tokens.
    pub fn new(vocab: &'a VocabBuilder) -> LongestMatch<'a> {
        let longest_token = vocab.texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        LongestMatch { vocab, longest_token }
    }

    /// Returns the longest token that `text` begins with: its length in bytes, without the prefix, and its id.
    ///
    /// `continues`: whether `text` continues a word, so that the token needs the continuation prefix.
    pub fn longest(&self, text: &str, continues: bool) -> Option<(usize, u32)> {
        let prefix = if continues { CONTINUATION_PREFIX } else { "" };
        let mut token = String::from(prefix);
        token.extend(text.chars().take(self.longest_token));
        while token.len() > prefix.len() {
            if let Some(id) = self.vocab.id(&token) {
                return Some((token.len() - prefix.len(), id));
            }
            token.pop();
        }
        None
    }

    /// Returns all pieces of `text`, or `None` if it cannot be segmented.
    pub fn pieces(&self, text: &str, continues: bool) -> Option<Vec<u32>> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let (len, id) = self.longest(&text[at..], continues || at > 0)?;
            pieces.push(id);
            at += len;
        }
        Some(pieces)
    }
}
