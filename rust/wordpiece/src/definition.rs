//! A tokenizer as data: the contents of a `tokenizer.json`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::added::{AddedToken, assign_ids, check_ids, fixed_ids};
use crate::decode::{self, Decoder};
use crate::error::{Error, Result};
use crate::inputs::{Padding, PostProcessor, Truncation};
use crate::normalize::{Normalized, Normalizer};
use crate::split::PreTokenizer;
use crate::vocab::Vocab;

/// Everything that defines a [`Tokenizer`](crate::Tokenizer). The readers in [`format`](crate::format) produce one, and the
/// writers consume one.
///
/// A definition may be inconsistent, for instance lack its unknown token; [`Tokenizer::new`](crate::Tokenizer::new)
/// checks it. See `bert.rs` for the definitions of BERT tokenizers.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The tokens of the model and their ids.
    pub vocab: Vocab,
    /// The token that a word becomes if it cannot be split into pieces of the vocabulary. Must be in the vocabulary.
    pub unk_token: String,
    /// The prefix of pieces that continue a word, usually `##`. May be empty.
    pub continuing_subword_prefix: String,
    /// The most characters (Unicode scalar values) that a word may have; a longer one becomes the unknown token.
    pub max_input_chars_per_word: usize,
    /// Rewrites a text before it is split into words.
    pub normalizer: Option<Normalizer>,
    /// Splits a normalized text into words. Without one the text is a single word, spaces included.
    pub pre_tokenizer: Option<PreTokenizer>,
    /// Adds special tokens around the texts of a row.
    pub post_processor: Option<PostProcessor>,
    /// Turns tokens back into text. Without one, tokens are joined by spaces.
    pub decoder: Option<Decoder>,
    /// Tokens that are found in the text before the model sees it, in the order of registration. A token that is
    /// registered again keeps its id and gets the new flags; one with empty content is ignored.
    pub added_tokens: Vec<AddedToken>,
    /// The ids of added tokens that are not in the vocabulary, where they are not the next free ids: in a vocabulary with
    /// gaps, files of the reference give such a token the id of another one, with which models were trained.
    pub fixed_ids: BTreeMap<String, u32>,
    /// The truncation that the file requests. The core does not apply it; callers use it as their default.
    pub truncation: Option<Truncation>,
    /// The padding that the file requests. The core does not apply it; callers use it as their default.
    pub padding: Option<Padding>,
}

impl Definition {
    /// Returns the added tokens with their ids, each once with the flags of its last registration, by ascending id.
    ///
    /// This is how a `tokenizer.json` lists them. A token of the vocabulary has its id there; the others follow the
    /// vocabulary.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece::{AddedToken, Definition, Vocab};
    ///
    /// let mut definition = Definition::bert(Vocab::new([("[UNK]", 0), ("new", 1)])?);
    /// definition.added_tokens = vec![AddedToken::special("[NAME]"), AddedToken::special("[UNK]")];
    /// let ids: Vec<u32> = definition.registered_tokens().iter().map(|(id, _)| *id).collect();
    /// assert_eq!(ids, [0, 2]); // the vocabulary has one of them
    /// # Ok::<(), wordpiece::Error>(())
    /// ```
    pub fn registered_tokens(&self) -> Vec<(u32, AddedToken)> {
        // Collecting into a map keeps the last of the tokens with one id.
        self.registrations().into_iter().collect::<BTreeMap<u32, AddedToken>>().into_iter().collect()
    }

    /// Returns the added tokens with their ids in the order in which they were registered, repeated ones too: of tokens with
    /// one normalized form the first matches, and a token that once was special is found as one.
    pub(crate) fn registrations(&self) -> Vec<(u32, AddedToken)> {
        let added: Vec<_> = self.added_tokens.iter().filter(|token| !token.content.is_empty()).cloned().collect();
        assign_ids(&self.vocab, &added, &self.fixed_ids).into_iter().zip(added).collect()
    }

    /// Returns what the registrations decide besides the list by id: the tokens of whose normalized form another one was
    /// registered first, and so is found; and those that once were special, and so are found as such.
    pub(crate) fn decided_by_order(&self) -> [BTreeSet<u32>; 2] {
        let (mut first, mut unfound, mut special) = (HashMap::new(), BTreeSet::new(), BTreeSet::new());
        for (id, token) in self.registrations() {
            let normalizer = self.normalizer.as_ref().filter(|_| token.normalized);
            // A pattern that gives up is an error when the tokenizer is made.
            let form =
                normalizer.and_then(|normalizer| normalizer.normalized(&token.content).ok()).unwrap_or(token.content);
            if *first.entry((token.normalized, form)).or_insert(id) != id {
                unfound.insert(id);
            }
            if token.special {
                special.insert(id);
            }
        }
        for (id, token) in self.registered_tokens() {
            if token.special {
                special.remove(&id);
            }
        }
        [unfound, special]
    }

    /// Returns the same definition with another vocabulary, and other added tokens with their ids.
    ///
    /// # Errors
    ///
    /// [`Error::AddedTokenId`] for an added token that the reference gives another id on reading a file of the result.
    pub fn with_tokens(&self, vocab: Vocab, added: Vec<(u32, AddedToken)>) -> Result<Definition> {
        let (ids, added_tokens): (Vec<u32>, Vec<AddedToken>) = added.into_iter().unzip();
        check_ids(&vocab, &added_tokens, &ids)?;
        let fixed_ids = fixed_ids(&vocab, &added_tokens, &ids)?;
        Ok(Definition { vocab, added_tokens, fixed_ids, ..self.clone() })
    }

    /// Returns the normalized form of a text and the words it is split into, which the vocabulary is not asked for. Added
    /// tokens are not searched for.
    ///
    /// ```
    /// use wordpiece::{Definition, Vocab};
    ///
    /// let definition = Definition::bert(Vocab::new([("[UNK]", 0)])?);
    /// let words = definition.words("Night-Watch")?;
    /// assert_eq!(words, ("night-watch".to_owned(), ["night", "-", "watch"].map(String::from).to_vec()));
    /// # Ok::<(), wordpiece::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::PatternFailed`] if a regular expression of the normalizer or the pre-tokenizer gives up.
    pub fn words(&self, text: &str) -> Result<(String, Vec<String>)> {
        let needs_spans = self.pre_tokenizer.as_ref().is_some_and(PreTokenizer::needs_spans);
        let mut normalized = Normalized::default();
        normalized.reset(text, 0, needs_spans);
        if let Some(normalizer) = &self.normalizer {
            normalizer.apply(&mut normalized)?;
        }
        let whole = normalized.text.clone();
        let mut ranges: Vec<_> = std::iter::once(0..whole.len()).collect();
        if let Some(pre_tokenizer) = &self.pre_tokenizer {
            pre_tokenizer.split(&mut normalized, &mut ranges)?;
        }
        let words = ranges.into_iter().map(|range| normalized.text[range].to_owned());
        Ok((whole, words.filter(|word| !word.is_empty()).collect()))
    }

    /// Returns whether a token is in the vocabulary or registered.
    pub fn has_token(&self, token: &str) -> bool {
        let is_added = || self.added_tokens.iter().any(|added| added.content == token && !token.is_empty());
        self.vocab.id(token).is_some() || is_added()
    }

    /// Returns the definition with a lower-casing step before its normalizer, or unchanged if the normalizer is such a
    /// step or a sequence that has one.
    ///
    /// Special tokens keep their case, because they are found before the text is normalized.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece::{Definition, Vocab};
    ///
    /// let mut definition = Definition::bert(Vocab::new([("[UNK]", 0)])?);
    /// definition.normalizer = None;
    /// assert_eq!(definition.words("New")?.0, "New");
    /// assert_eq!(definition.with_lowercase().words("New")?.0, "new");
    /// # Ok::<(), wordpiece::Error>(())
    /// ```
    pub fn with_lowercase(&self) -> Definition {
        let mut steps = match &self.normalizer {
            None => Vec::new(),
            Some(Normalizer::Sequence(steps)) => steps.clone(),
            Some(normalizer) => vec![normalizer.clone()],
        };
        if steps.contains(&Normalizer::Lowercase) {
            return self.clone();
        }
        steps.insert(0, Normalizer::Lowercase);
        Definition { normalizer: Some(Normalizer::Sequence(steps)), ..self.as_written() }
    }

    /// Returns the text of a list of tokens.
    ///
    /// With `cleanup`, the spaces before punctuation and in English contractions are removed from the text as well, as
    /// transformers does on request, whatever the decoder removes from single tokens.
    ///
    /// # Errors
    ///
    /// [`Error::PatternFailed`] if the pattern of a `Replace` decoder fails on a token.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece::{Definition, Vocab};
    ///
    /// let definition = Definition::bert(Vocab::new([("[UNK]", 0)])?);
    /// let tokens = ["new", "york", "##er"].map(String::from).to_vec();
    /// assert_eq!(definition.join_tokens(tokens, false)?, "new yorker");
    /// # Ok::<(), wordpiece::Error>(())
    /// ```
    pub fn join_tokens(&self, mut tokens: Vec<String>, cleanup: bool) -> Result<String> {
        let mut text = match &self.decoder {
            None => tokens.join(" "),
            Some(decoder) => {
                decoder.apply(&mut tokens)?;
                tokens.concat()
            }
        };
        if cleanup {
            decode::clean_up_text(&mut text);
        }
        Ok(text)
    }

    /// Returns the error for an unknown token that is not in the vocabulary.
    pub(crate) fn missing_unk(&self) -> Error {
        let first = self.vocab.iter().next().map(|(token, _)| token);
        let marked_token = first.filter(|token| token.starts_with('\u{feff}')).map(str::to_owned);
        Error::MissingUnk { unk_token: self.unk_token.clone(), marked_token }
    }

    /// Returns the definition that reading this one's `tokenizer.json` would give: without the history of registrations.
    pub(crate) fn as_written(&self) -> Definition {
        let added_tokens = self.registered_tokens().into_iter().map(|(_, token)| token).collect();
        Definition { added_tokens, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;
    use crate::split::{Metaspace, PrependScheme};

    fn definition(added_tokens: Vec<AddedToken>) -> Definition {
        let vocab = Vocab::new([("[UNK]", 0), ("a", 1), ("##b", 2)]).unwrap();
        Definition { added_tokens, ..Definition::bert(vocab) }
    }

    #[test]
    fn registered_tokens_are_listed_once_by_id_with_their_last_flags() {
        let plain = |content| AddedToken { special: false, ..AddedToken::special(content) };
        let tokens = vec![plain("new"), AddedToken::special("a"), plain(""), AddedToken::special("new")];
        let expected = [(1, AddedToken::special("a")), (3, AddedToken::special("new"))];
        assert_eq!(definition(tokens).registered_tokens(), expected);
    }

    #[test]
    fn a_lower_casing_step_is_added_once_and_first() {
        let bert = definition(Vec::new());
        let lowered = bert.with_lowercase();
        let steps = vec![Normalizer::Lowercase, bert.normalizer.clone().unwrap()];
        assert_eq!(lowered.normalizer, Some(Normalizer::Sequence(steps)));
        assert_eq!(lowered.with_lowercase(), lowered);
        let bare = Definition { normalizer: None, ..bert };
        assert_eq!(bare.with_lowercase().normalizer, Some(Normalizer::Sequence(vec![Normalizer::Lowercase])));
    }

    #[test]
    fn replacements_that_multiply_a_text_are_an_error() {
        let doubled = Normalizer::Replace { pattern: Pattern::literal("a"), content: "aa".to_owned() };
        let many = Definition { normalizer: Some(Normalizer::Sequence(vec![doubled; 40])), ..definition(Vec::new()) };
        assert!(matches!(many.words("a"), Err(Error::PatternFailed { .. })));
    }

    #[test]
    fn nothing_is_put_before_an_empty_text() {
        let metaspace = Metaspace { replacement: '_', prepend: PrependScheme::First, split: true };
        let first = Definition { pre_tokenizer: Some(PreTokenizer::Metaspace(metaspace)), ..definition(Vec::new()) };
        assert_eq!(first.words("").unwrap(), (String::new(), Vec::new()));
        assert_eq!(first.words("a").unwrap().1, ["_a"]);
    }

    #[test]
    fn tokens_are_joined_by_the_decoder_or_by_spaces() {
        let tokens = || ["a", "##b", "."].map(str::to_owned).to_vec();
        let bert = definition(Vec::new());
        assert_eq!(bert.join_tokens(tokens(), false).unwrap(), "ab.");
        let bare = Definition { decoder: None, ..bert };
        assert_eq!(bare.join_tokens(tokens(), false).unwrap(), "a ##b .");
        assert_eq!(bare.join_tokens(tokens(), true).unwrap(), "a ##b.");
    }

    #[test]
    fn contractions_of_several_tokens_are_cleaned_up_on_request_only() {
        let tokens = || ["do", "not", "say", "i", "'", "m", "it"].map(str::to_owned).to_vec();
        let bert = definition(Vec::new());
        assert_eq!(bert.join_tokens(tokens(), false).unwrap(), "do not say i ' m it");
        assert_eq!(bert.join_tokens(tokens(), true).unwrap(), "do not say i'm it");
    }
}
