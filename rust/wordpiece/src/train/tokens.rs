//! The vocabulary while it grows.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// What marks a token that continues a word.
pub(super) const JOINER: &str = "##";

/// Cuts words into the longest tokens, one after the other, by looking texts up: for the few words where that is not slow.
pub(super) struct Cutter<'a> {
    tokens: &'a Tokens,
    /// The characters of the longest token.
    most: usize,
}

impl<'a> Cutter<'a> {
    pub fn new(tokens: &'a Tokens) -> Cutter<'a> {
        Cutter { tokens, most: tokens.texts.iter().map(|text| text.chars().count()).max().unwrap_or(0) }
    }

    /// The longest token that begins `text`, which goes on in a word or begins one: its bytes there, and its id.
    pub fn longest(&self, text: &str, continues: bool) -> Option<(usize, u32)> {
        let prefix = if continues { JOINER } else { "" };
        let mut token = String::from(prefix);
        token.extend(text.chars().take(self.most));
        while token.len() > prefix.len() {
            if let Some(id) = self.tokens.id(&token) {
                return Some((token.len() - prefix.len(), id));
            }
            token.pop();
        }
        None
    }

    /// All pieces of `text`; none where it cannot be cut.
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

/// Distinct tokens, numbered in the order in which they came.
#[derive(Debug, Clone, Default)]
pub(super) struct Tokens {
    texts: Vec<String>,
    /// The ids, found by the hash of the text.
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Tokens {
    /// These tokens; of one that comes twice the first counts.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Tokens {
        let mut tokens = Tokens::default();
        for text in texts {
            tokens.add(text);
        }
        tokens
    }

    /// The id of a token, which is a new one where it was not in.
    pub fn add(&mut self, text: &str) -> u32 {
        if let Some(id) = self.id(text) {
            return id;
        }
        let Tokens { texts, ids, hasher } = self;
        let id = texts.len() as u32;
        texts.push(text.to_owned());
        ids.insert_unique(hasher.hash_one(text), id, |&id| hasher.hash_one(texts[id as usize].as_str()));
        id
    }

    /// The id of what two tokens become together: that of an existing token with this text, or a new one.
    pub fn join(&mut self, a: u32, b: u32) -> u32 {
        let (first, second) = (self.text(a), self.text(b));
        let joined = [first, second.strip_prefix(JOINER).unwrap_or(second)].concat();
        self.add(&joined)
    }

    pub fn id(&self, text: &str) -> Option<u32> {
        self.ids.find(self.hasher.hash_one(text), |&id| self.texts[id as usize] == text).copied()
    }

    pub fn text(&self, id: u32) -> &str {
        &self.texts[id as usize]
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Drops the last tokens, so that `most` are left.
    pub fn truncate(&mut self, most: usize) {
        self.ids.retain(|&mut id| (id as usize) < most);
        self.texts.truncate(most);
    }

    pub fn into_texts(self) -> Vec<String> {
        self.texts
    }

    pub fn texts(&self) -> &[String] {
        &self.texts
    }
}
