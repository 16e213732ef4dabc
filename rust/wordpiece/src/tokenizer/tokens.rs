//! Lookups between tokens and ids, and decoding of ids.
//!
//! Added tokens come before the tokens of the model's vocabulary: an added token may have the text of one of them, or
//! an id that the vocabulary has given to another.

use super::pipeline::Tokenizer;
use crate::added::AddedToken;
use crate::error::{Error, Result};

impl Tokenizer {
    /// Returns the added tokens with their ids, in the order in which they were added.
    pub fn added_tokens(&self) -> impl ExactSizeIterator<Item = (u32, &AddedToken)> {
        self.added.iter()
    }

    /// Returns the id of a token, which may be an added one.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.added.id_of(token).or_else(|| self.definition.vocab.id(token))
    }

    /// Returns the token of an id; of a normalized added token its normalized form.
    pub fn id_to_token(&self, id: u32) -> Option<&str> {
        self.added.token(id).or_else(|| self.definition.vocab.token(id))
    }

    /// Returns the number of tokens in the model's vocabulary and, if requested, of the added tokens that are not in
    /// it.
    pub fn vocab_size(&self, with_added_tokens: bool) -> usize {
        let added = || self.added.iter().filter(|(_, token)| self.definition.vocab.id(&token.content).is_none());
        self.definition.vocab.len() + if with_added_tokens { added().count() } else { 0 }
    }

    /// Returns all tokens with their ids: the model's vocabulary by id, then the added ones that are not in it.
    pub fn vocab(&self) -> Vec<(&str, u32)> {
        let vocab = &self.definition.vocab;
        let added = self.added.iter().map(|(id, token)| (token.content.as_str(), id));
        vocab.iter().chain(added.filter(|(token, _)| vocab.id(token).is_none())).collect()
    }

    /// Returns whether an id belongs to an added token that decoding can skip.
    pub fn is_special(&self, id: u32) -> bool {
        self.added.is_special(id)
    }

    /// Returns the number of special tokens around one text, or around a pair.
    pub fn special_tokens_added(&self, pair: bool) -> usize {
        self.layouts.get(pair, true).added
    }

    /// Turns ids into text.
    ///
    /// With `skip_special_tokens`, added tokens that are special are skipped. `cleanup` is as for
    /// [`Definition::join_tokens`](crate::Definition::join_tokens).
    ///
    /// # Errors
    ///
    /// [`Error::UnknownId`] for an id without a token if `strict`; else it is skipped. Errors of the decoder's
    /// patterns.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece::{Definition, Tokenizer, Vocab};
    ///
    /// let tokenizer = Tokenizer::new(Definition::bert(Vocab::new([("[UNK]", 0), ("york", 1), ("##er", 2)])?))?;
    /// assert_eq!(tokenizer.decode(&[1, 2, 9], true, false, false)?, "yorker"); // no token has the id 9
    /// assert!(tokenizer.decode(&[9], true, false, true).is_err());
    /// # Ok::<(), wordpiece::Error>(())
    /// ```
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool, cleanup: bool, strict: bool) -> Result<String> {
        let mut tokens = Vec::with_capacity(ids.len());
        for &id in ids {
            match self.id_to_token(id) {
                Some(_) if skip_special_tokens && self.added.is_special(id) => {}
                Some(token) => tokens.push(token.to_owned()),
                None if strict => return Err(Error::UnknownId { id, vocab_size: self.vocab_size(true) }),
                None => {}
            }
        }
        self.definition.join_tokens(tokens, cleanup)
    }
}
