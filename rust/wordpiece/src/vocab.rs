//! Vocabularies: the map between tokens and ids.
//!
//! A [`Vocab`] stores the text of all tokens in one string and indexes it by 32-bit offsets, so it costs about 20 bytes
//! for each token besides the text. Looking up a token hashes it once; looking up an id is an index if the ids are
//! 0, 1, 2, …, and a binary search otherwise.
//!
//! ```
//! use wordpiece::Vocab;
//!
//! let vocab = Vocab::new([("[UNK]", 0), ("un", 7), ("##want", 3)])?;
//! assert_eq!(vocab.id("un"), Some(7));
//! assert_eq!(vocab.token(3), Some("##want"));
//! assert_eq!(vocab.token(1), None);
//! # Ok::<(), wordpiece::Error>(())
//! ```

use hashbrown::DefaultHashBuilder;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use crate::error::{Error, Result};

/// One token: its byte range in [`Vocab::text`], and its id.
#[derive(Debug, Clone, Copy)]
struct VocabEntry {
    start: u32,
    end: u32,
    id: u32,
}

/// An immutable vocabulary: distinct tokens with distinct ids. The ids may have gaps.
///
/// Two vocabularies are equal if they map the same tokens to the same ids.
#[derive(Clone)]
pub struct Vocab {
    /// The text of all tokens, concatenated; at most `i32::MAX` bytes.
    text: String,
    /// One entry for each token, by ascending id.
    entries: Vec<VocabEntry>,
    /// Indices into `entries`, keyed by the hash of the token.
    by_token: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Whether `entries[i].id == i` for all `i`.
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
    /// The largest id that a token may have: the number of ids up to it fits 32 bits, and so does a number for "none".
    pub const LAST_ID: u32 = u32::MAX - 1;

    /// Builds a vocabulary from tokens and their ids, in any order.
    ///
    /// A token that is given twice keeps its last id, as a repeated JSON key does.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateId`] if two tokens have one id, [`Error::IdTooLarge`] if one has an id above [`Vocab::LAST_ID`], and
    /// [`Error::VocabTooLarge`] if the tokens have more than 2 GiB of text.
    pub fn new<'a>(tokens: impl IntoIterator<Item = (&'a str, u32)>) -> Result<Vocab> {
        let tokens = tokens.into_iter();
        let hasher = DefaultHashBuilder::default();
        let mut text = String::new();
        let mut entries: Vec<VocabEntry> = Vec::with_capacity(tokens.size_hint().0);
        let mut by_token: HashTable<u32> = HashTable::with_capacity(tokens.size_hint().0);
        let hash_of = |text: &str, e: VocabEntry| hasher.hash_one(&text[e.start as usize..e.end as usize]);
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
            entries.push(VocabEntry { start: start as u32, end: text.len() as u32, id });
            by_token.insert_unique(hash, entries.len() as u32 - 1, |&i| hash_of(&text, entries[i as usize]));
        }
        if !entries.is_sorted_by_key(|e| e.id) {
            entries.sort_unstable_by_key(|e| e.id);
            by_token.clear();
            for (i, &e) in entries.iter().enumerate() {
                by_token.insert_unique(hash_of(&text, e), i as u32, |&j| hash_of(&text, entries[j as usize]));
            }
        }
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].id == pair[1].id) {
            let token = |e: VocabEntry| text[e.start as usize..e.end as usize].to_owned();
            return Err(Error::DuplicateId { id: pair[0].id, first: token(pair[0]), second: token(pair[1]) });
        }
        if let Some(&last) = entries.last()
            && last.id > Vocab::LAST_ID
        {
            return Err(Error::IdTooLarge {
                id: last.id,
                token: text[last.start as usize..last.end as usize].to_owned(),
            });
        }
        let dense = entries.last().is_none_or(|e| e.id as usize == entries.len() - 1);
        Ok(Vocab { text, entries, by_token, hasher, dense })
    }

    /// Returns the number of tokens. If the ids have gaps, the largest id is this or more.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the vocabulary has no tokens.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the id of a token, or `None` if it is not in the vocabulary.
    pub fn id(&self, token: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(token);
        let found = self.by_token.find(hash, |&i| self.text_of(self.entries[i as usize]) == token)?;
        Some(self.entries[*found as usize].id)
    }

    /// Returns the token with an id, or `None` if no token has it.
    pub fn token(&self, id: u32) -> Option<&str> {
        let index = if self.dense { id as usize } else { self.entries.binary_search_by_key(&id, |e| e.id).ok()? };
        self.entries.get(index).map(|&e| self.text_of(e))
    }

    /// Iterates over all tokens and their ids, by ascending id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u32)> + Clone {
        self.entries.iter().map(|&e| (self.text_of(e), e.id))
    }

    /// Returns the largest id, or `None` for an empty vocabulary.
    pub fn max_id(&self) -> Option<u32> {
        self.entries.last().map(|e| e.id)
    }

    fn text_of(&self, e: VocabEntry) -> &str {
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
    fn the_number_of_ids_must_fit_32_bits() {
        assert_eq!(Vocab::new([("a", Vocab::LAST_ID)]).unwrap().id("a"), Some(4_294_967_294));
        let error = Vocab::new([("a", u32::MAX), ("b", 0)]).unwrap_err();
        assert!(matches!(&error, Error::IdTooLarge { id: u32::MAX, token } if token == "a"), "{error}");
        assert!(error.to_string().contains("4294967295; the largest id is 4294967294"), "{error}");
    }

    #[test]
    fn a_repeated_token_keeps_its_last_id_and_a_shared_id_is_an_error() {
        assert_eq!(Vocab::new([("a", 0), ("b", 1), ("a", 2)]).unwrap().id("a"), Some(2));
        let error = Vocab::new([("a", 0), ("b", 0)]).unwrap_err();
        assert!(error.to_string().contains("id 0"), "{error}");
    }
}
