//! Token ↔ id.

use hashbrown::DefaultHashBuilder;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use crate::error::{Error, Result};

/// Where one token stands in the arena, and its id.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    end: u32,
    id: u32,
}

/// A vocabulary: distinct tokens with distinct ids, which need not be dense.
#[derive(Clone)]
pub struct Vocab {
    /// All tokens, one after the other.
    text: String,
    /// In the order of their ids.
    entries: Vec<Entry>,
    /// Indices into `entries`, found by the token's hash.
    by_token: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// `entries[i].id == i` for all `i`: looking up an id is an index then, else a binary search.
    dense: bool,
}

impl std::fmt::Debug for Vocab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vocab").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl PartialEq for Vocab {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Vocab {
    /// Builds a vocabulary from tokens and their ids.
    ///
    /// A token given twice keeps its last id, as a repeated JSON key does; two tokens with one id are an error.
    pub fn new<'a>(tokens: impl IntoIterator<Item = (&'a str, u32)>) -> Result<Vocab> {
        let tokens = tokens.into_iter();
        let hasher = DefaultHashBuilder::default();
        let mut text = String::new();
        let mut entries: Vec<Entry> = Vec::with_capacity(tokens.size_hint().0);
        let mut by_token: HashTable<u32> = HashTable::with_capacity(tokens.size_hint().0);
        let token_of = |text: &str, e: Entry| hasher.hash_one(&text[e.start as usize..e.end as usize]);
        for (token, id) in tokens {
            let hash = hasher.hash_one(token);
            let found = by_token.find(hash, |&i| {
                let e = entries[i as usize];
                &text[e.start as usize..e.end as usize] == token
            });
            if let Some(&i) = found {
                entries[i as usize].id = id;
                continue;
            }
            let start = text.len();
            text.push_str(token);
            if text.len() > i32::MAX as usize {
                return Err(Error::VocabTooLarge { bytes: text.len() });
            }
            entries.push(Entry { start: start as u32, end: text.len() as u32, id });
            by_token.insert_unique(hash, entries.len() as u32 - 1, |&i| token_of(&text, entries[i as usize]));
        }
        if !entries.is_sorted_by_key(|e| e.id) {
            entries.sort_unstable_by_key(|e| e.id);
            by_token.clear();
            for (i, &e) in entries.iter().enumerate() {
                by_token.insert_unique(token_of(&text, e), i as u32, |&j| token_of(&text, entries[j as usize]));
            }
        }
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].id == pair[1].id) {
            let token = |e: Entry| text[e.start as usize..e.end as usize].to_owned();
            return Err(Error::DuplicateId { id: pair[0].id, first: token(pair[0]), second: token(pair[1]) });
        }
        let dense = entries.last().is_none_or(|e| e.id as usize == entries.len() - 1);
        Ok(Vocab { text, entries, by_token, hasher, dense })
    }

    /// The number of tokens, which is not the largest id plus one when ids have gaps.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no token at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The id of a token.
    pub fn id(&self, token: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(token);
        let found = self.by_token.find(hash, |&i| self.text_of(self.entries[i as usize]) == token)?;
        Some(self.entries[*found as usize].id)
    }

    /// The token of an id.
    pub fn token(&self, id: u32) -> Option<&str> {
        let index = if self.dense { id as usize } else { self.entries.binary_search_by_key(&id, |e| e.id).ok()? };
        self.entries.get(index).map(|&e| self.text_of(e))
    }

    /// All tokens with their ids, by ascending id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u32)> + Clone {
        self.entries.iter().map(|&e| (self.text_of(e), e.id))
    }

    /// The largest id.
    pub fn max_id(&self) -> Option<u32> {
        self.entries.last().map(|e| e.id)
    }

    fn text_of(&self, e: Entry) -> &str {
        &self.text[e.start as usize..e.end as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_may_have_gaps_and_come_in_any_order() {
        let vocab = Vocab::new([("c", 9), ("a", 2), ("b", 4_000_000_000)]).unwrap();
        assert_eq!(vocab.iter().collect::<Vec<_>>(), [("a", 2), ("c", 9), ("b", 4_000_000_000)]);
        assert_eq!(vocab.id("c"), Some(9));
        assert_eq!(vocab.token(4_000_000_000), Some("b"));
        assert_eq!(vocab.token(3), None);
        assert_eq!((vocab.len(), vocab.max_id()), (3, Some(4_000_000_000)));
    }

    #[test]
    fn a_repeated_token_keeps_its_last_id_and_a_shared_id_is_refused() {
        assert_eq!(Vocab::new([("a", 0), ("b", 1), ("a", 2)]).unwrap().id("a"), Some(2));
        let error = Vocab::new([("a", 0), ("b", 0)]).unwrap_err();
        assert!(error.to_string().contains("id 0"), "{error}");
    }
}
