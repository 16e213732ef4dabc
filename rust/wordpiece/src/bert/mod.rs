//! The definition of a BERT tokenizer.
//!
//! A BERT tokenizer is a [`Definition`] with these parts; everything else about it is a vocabulary and a few options:
//!
//! - five special tokens, one for each [`Role`], registered as added tokens so that they are found in raw text;
//! - BERT's normalizer ([`BertNormalizer`](crate::normalize::BertNormalizer)) and its pre-tokenizer
//!   ([`PreTokenizer::Bert`]);
//! - a WordPiece model whose words have at most 100 characters and whose continuation pieces begin with `##`;
//! - the template `[CLS] A [SEP]` for one text and `[CLS] A [SEP] B [SEP]` for two, with segment ids 0 and 1;
//! - a WordPiece decoder that tidies the spaces around punctuation.
//!
//! [`Definition::bert_with_options`] builds one, [`Definition::bert_options`] decides whether a definition is one that
//! the options rebuild, and [`Definition::guess_special_tokens`] finds the roles in a definition that does not name
//! them. The binding and the Python package call these; neither assembles a BERT tokenizer itself.
//!
//! ```
//! use wordpiece::bert::{BertOptions, Role};
//! use wordpiece::{Definition, EncodeOptions, Input, Tokenizer, Vocab};
//!
//! let tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##want", "##ed"];
//! let vocab = Vocab::new(tokens.into_iter().zip(0..))?;
//! let options = BertOptions::default();
//! let definition = Definition::bert_with_options(vocab, &options);
//! assert_eq!(definition.bert_options(&options.special_tokens), Some(options));
//! assert_eq!(definition.guess_special_tokens().get(Role::Mask), Some("[MASK]"));
//!
//! let tokenizer = Tokenizer::new(definition)?;
//! let row = tokenizer.encode(&Input::single("Unwanted [MASK]"), &EncodeOptions::default())?;
//! assert_eq!(row.tokens, ["[CLS]", "un", "##want", "##ed", "[MASK]", "[SEP]"]);
//! # Ok::<(), wordpiece::Error>(())
//! ```

mod options;

pub use options::{BertOptions, CONTINUING_SUBWORD_PREFIX, MAX_INPUT_CHARS_PER_WORD, Role, SpecialTokens};

use std::collections::BTreeMap;

use crate::added::AddedToken;
use crate::decode::Decoder;
use crate::definition::Definition;
use crate::inputs::{PostProcessor, SequenceId, SpecialToken, Template, TemplatePiece};
use crate::normalize::Normalizer;
use crate::split::PreTokenizer;
use crate::vocab::Vocab;

impl Definition {
    /// Returns uncased BERT over a vocabulary, without special tokens and without a template.
    ///
    /// The unknown token is `[UNK]`. See [`bert_with_options`](Definition::bert_with_options) for a complete BERT
    /// tokenizer.
    pub fn bert(vocab: Vocab) -> Definition {
        let special_tokens = SpecialTokens::default();
        Definition::bert_with_options(vocab, &BertOptions { special_tokens, ..BertOptions::default() })
    }

    /// Returns the BERT tokenizer with these options over a vocabulary.
    ///
    /// Nothing is checked here: [`Tokenizer::new`](crate::Tokenizer::new) refuses a vocabulary without the unknown token.
    pub fn bert_with_options(vocab: Vocab, options: &BertOptions) -> Definition {
        let special_tokens = &options.special_tokens;
        let with_id = |role| special_tokens.get(role).and_then(|token| Some((token, vocab.id(token)?)));
        let template = with_id(Role::Cls).zip(with_id(Role::Sep)).map(|(cls, sep)| bert_template(cls, sep));
        let registered = special_tokens.iter().filter(|(_, token)| vocab.id(token).is_some());
        Definition {
            unk_token: special_tokens.get(Role::Unk).unwrap_or(Role::Unk.usual_token()).to_owned(),
            continuing_subword_prefix: options.continuing_subword_prefix.clone(),
            max_input_chars_per_word: options.max_input_chars_per_word,
            normalizer: Some(Normalizer::Bert(options.normalizer)),
            pre_tokenizer: Some(PreTokenizer::Bert),
            post_processor: template.map(PostProcessor::Template),
            decoder: Some(bert_decoder(&options.continuing_subword_prefix)),
            added_tokens: registered.map(|(_, token)| AddedToken::special(token)).collect(),
            fixed_ids: BTreeMap::new(),
            truncation: None,
            padding: None,
            vocab,
        }
    }

    /// Returns the options from which transformers' `BertTokenizer` rebuilds this tokenizer, or `None` if it cannot.
    ///
    /// `BertTokenizer` reads the vocabulary, the special tokens and the normalizer's options, and assumes BERT for
    /// everything else. It therefore gives the same ids only if every role has a token that is registered as special and
    /// the model, the pre-tokenizer, the post-processor and the decoder are BERT's own. `BertProcessing` counts as BERT's
    /// post-processor, since it produces the rows of the template. Truncation and padding are not compared.
    pub fn bert_options(&self, special_tokens: &SpecialTokens) -> Option<BertOptions> {
        let registered = self.registered_tokens();
        let special_id = |role| {
            let token = special_tokens.get(role)?;
            let (id, _) = registered.iter().find(|(_, added)| added.special && added.content == token)?;
            Some((token, *id))
        };
        if !Role::ALL.into_iter().all(|role| special_id(role).is_some()) {
            return None;
        }
        let Some(Normalizer::Bert(normalizer)) = self.normalizer else { return None };
        let is_bert = self.unk_token == special_tokens.get(Role::Unk)?
            && self.continuing_subword_prefix == CONTINUING_SUBWORD_PREFIX
            && self.max_input_chars_per_word == MAX_INPUT_CHARS_PER_WORD
            && normalizer.clean_text
            && self.pre_tokenizer == Some(PreTokenizer::Bert)
            && self.decoder.as_ref() == Some(&bert_decoder(CONTINUING_SUBWORD_PREFIX))
            && is_bert_post_processor(self.post_processor.as_ref()?, special_id(Role::Cls)?, special_id(Role::Sep)?);
        is_bert.then(|| BertOptions { special_tokens: special_tokens.clone(), normalizer, ..BertOptions::default() })
    }

    /// Returns the tokens that appear to have BERT's roles, where a definition does not name them.
    ///
    /// The model names its unknown token, the post-processor the tokens around a single text, and the padding its token.
    /// A role that none of these fills goes to its [usual token](Role::usual_token). Roles whose token is neither in the
    /// vocabulary nor registered stay vacant.
    pub fn guess_special_tokens(&self) -> SpecialTokens {
        let (cls, sep) = self.tokens_around_text();
        let mut special_tokens = SpecialTokens::default();
        for role in Role::ALL {
            let named = match role {
                Role::Unk => Some(self.unk_token.as_str()),
                Role::Sep => sep,
                Role::Pad => self.padding.as_ref().map(|padding| padding.token.as_str()),
                Role::Cls => cls,
                Role::Mask => None,
            };
            let token = named.unwrap_or(role.usual_token());
            if self.has_token(token) {
                special_tokens.set(role, token);
            }
        }
        special_tokens
    }

    /// Returns the token before and the token after a single text.
    ///
    /// Each is `None` if there is no post-processor, or if its template has another shape than one special token, the text,
    /// and one special token.
    pub fn tokens_around_text(&self) -> (Option<&str>, Option<&str>) {
        match &self.post_processor {
            None => (None, None),
            Some(PostProcessor::Bert { cls, sep } | PostProcessor::Roberta { cls, sep, .. }) => {
                (Some(&cls.0), Some(&sep.0))
            }
            Some(PostProcessor::Template(template)) => match template.single.as_slice() {
                [cls, TemplatePiece::Sequence { .. }, sep] => (only_token(template, cls), only_token(template, sep)),
                _ => (None, None),
            },
        }
    }

    /// Returns the definition with BERT's template around the tokens `cls` and `sep`, each given with its id, in place of
    /// its post-processor.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece::{Definition, EncodeOptions, Input, Tokenizer, Vocab};
    ///
    /// let vocab = Vocab::new([("[UNK]", 0), ("[CLS]", 1), ("[SEP]", 2), ("new", 3)])?;
    /// let definition = Definition::bert(vocab).with_bert_template(("[CLS]", 1), ("[SEP]", 2));
    /// let ids = Tokenizer::new(definition)?.encode_ids(&Input::pair("new", "new"), &EncodeOptions::default())?;
    /// assert_eq!(ids, [1, 3, 2, 3, 2]);
    /// # Ok::<(), wordpiece::Error>(())
    /// ```
    pub fn with_bert_template(&self, cls: (&str, u32), sep: (&str, u32)) -> Definition {
        Definition { post_processor: Some(PostProcessor::Template(bert_template(cls, sep))), ..self.as_written() }
    }
}

/// Returns `[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]` with segment ids 0 and 1, as `tokenizers` writes it for BERT.
fn bert_template(cls: (&str, u32), sep: (&str, u32)) -> Template {
    let special = |(token, _): (&str, u32), type_id| TemplatePiece::Special { name: token.to_owned(), type_id };
    let text = |sequence, type_id| TemplatePiece::Sequence { sequence, type_id };
    let single = vec![special(cls, 0), text(SequenceId::A, 0), special(sep, 0)];
    let mut pair = single.clone();
    pair.extend([text(SequenceId::B, 1), special(sep, 1)]);
    let definition = |(token, id): (&str, u32)| SpecialToken {
        name: token.to_owned(),
        ids: vec![id],
        tokens: vec![token.to_owned()],
    };
    let mut special_tokens = vec![definition(cls)];
    if sep.0 != cls.0 {
        special_tokens.push(definition(sep));
    }
    Template { single, pair, special_tokens }
}

/// Returns the decoder of BERT: the inverse of the model with this prefix, then clean-up.
fn bert_decoder(prefix: &str) -> Decoder {
    Decoder::WordPiece { prefix: prefix.to_owned(), cleanup: true }
}

/// Returns whether a post-processor produces the rows of BERT's template, by either of the names that files use.
fn is_bert_post_processor(post_processor: &PostProcessor, cls: (&str, u32), sep: (&str, u32)) -> bool {
    match post_processor {
        PostProcessor::Bert { cls: own_cls, sep: own_sep } => {
            (own_cls.0.as_str(), own_cls.1) == cls && (own_sep.0.as_str(), own_sep.1) == sep
        }
        PostProcessor::Roberta { .. } => false,
        PostProcessor::Template(template) => {
            let bert = bert_template(cls, sep);
            // The definitions are named, so their order means nothing.
            template.single == bert.single
                && template.pair == bert.pair
                && template.special_tokens.len() == bert.special_tokens.len()
                && bert.special_tokens.iter().all(|token| template.special_tokens.contains(token))
        }
    }
}

/// Returns the token of a template piece that expands to exactly one.
fn only_token<'a>(template: &'a Template, piece: &TemplatePiece) -> Option<&'a str> {
    let TemplatePiece::Special { name, .. } = piece else { return None };
    match template.special_tokens.iter().find(|token| token.name == *name)?.tokens.as_slice() {
        [token] => Some(token),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tokenizer_json;
    use crate::inputs::{PadLength, Padding, Side};
    use crate::normalize::BertNormalizer;

    const TOKENS: [&str; 7] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b"];

    fn vocab() -> Vocab {
        Vocab::new(TOKENS.into_iter().zip(0..)).unwrap()
    }

    fn bert() -> Definition {
        Definition::bert_with_options(vocab(), &BertOptions::default())
    }

    fn rebuilt(definition: &Definition) -> Option<BertOptions> {
        definition.bert_options(&SpecialTokens::usual())
    }

    #[test]
    fn the_options_of_a_bert_tokenizer_are_those_it_was_built_from() {
        let normalizer = BertNormalizer { lowercase: false, strip_accents: Some(true), ..BertNormalizer::default() };
        let options = BertOptions { normalizer, ..BertOptions::default() };
        let definition = Definition::bert_with_options(vocab(), &options);
        assert_eq!(rebuilt(&definition), Some(options));
    }

    #[test]
    fn bert_processing_and_a_reordered_template_are_berts_post_processor() {
        let processing = PostProcessor::Bert { cls: ("[CLS]".to_owned(), 2), sep: ("[SEP]".to_owned(), 3) };
        assert!(rebuilt(&Definition { post_processor: Some(processing), ..bert() }).is_some());
        let mut template = bert_template(("[CLS]", 2), ("[SEP]", 3));
        template.special_tokens.reverse();
        let post_processor = Some(PostProcessor::Template(template));
        assert!(rebuilt(&Definition { post_processor, ..bert() }).is_some());
    }

    #[test]
    fn a_tokenizer_that_differs_from_bert_in_one_part_has_no_bert_options() {
        let template = bert_template(("[SEP]", 3), ("[CLS]", 2));
        let unclean = BertNormalizer { clean_text: false, ..BertNormalizer::default() };
        let others = [
            Definition { unk_token: "a".to_owned(), ..bert() },
            Definition { continuing_subword_prefix: "@@".to_owned(), ..bert() },
            Definition { max_input_chars_per_word: 99, ..bert() },
            Definition { normalizer: None, ..bert() },
            Definition { normalizer: Some(Normalizer::Bert(unclean)), ..bert() },
            Definition { pre_tokenizer: Some(PreTokenizer::Whitespace), ..bert() },
            Definition { post_processor: None, ..bert() },
            Definition { post_processor: Some(PostProcessor::Template(template)), ..bert() },
            Definition { decoder: None, ..bert() },
            Definition { added_tokens: Vec::new(), ..bert() },
        ];
        for (i, definition) in others.iter().enumerate() {
            assert_eq!(rebuilt(definition), None, "definition {i}");
        }
    }

    #[test]
    fn the_last_registration_of_a_token_decides_whether_it_is_special() {
        let mut definition = bert();
        definition.added_tokens.push(AddedToken { special: false, ..AddedToken::special("[MASK]") });
        assert_eq!(rebuilt(&definition), None);
    }

    #[test]
    fn special_tokens_missing_from_the_vocabulary_are_not_registered_and_leave_no_template() {
        let vocab = Vocab::new([("[UNK]", 0), ("[CLS]", 1)]).unwrap();
        let definition = Definition::bert_with_options(vocab, &BertOptions::default());
        let registered: Vec<&str> = definition.added_tokens.iter().map(|token| token.content.as_str()).collect();
        assert_eq!(registered, ["[UNK]", "[CLS]"]);
        assert_eq!(definition.post_processor, None);
    }

    #[test]
    fn one_token_may_begin_and_end_a_row() {
        let definition = bert().with_bert_template(("[SEP]", 3), ("[SEP]", 3));
        assert_eq!(definition.tokens_around_text(), (Some("[SEP]"), Some("[SEP]")));
        let json = tokenizer_json::write(&definition).unwrap();
        assert_eq!(tokenizer_json::read(&json).unwrap(), definition);
    }

    #[test]
    fn roles_are_guessed_from_the_parts_that_name_tokens() {
        let padding = Padding {
            length: PadLength::Longest,
            multiple_of: None,
            id: 5,
            type_id: 0,
            token: "a".to_owned(),
            side: Side::Right,
        };
        let definition = Definition { padding: Some(padding), ..bert().with_bert_template(("##b", 6), ("[SEP]", 3)) };
        let guessed = definition.guess_special_tokens();
        let expected =
            [(Role::Unk, "[UNK]"), (Role::Sep, "[SEP]"), (Role::Pad, "a"), (Role::Cls, "##b"), (Role::Mask, "[MASK]")];
        assert_eq!(guessed.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_role_stays_vacant_if_no_token_can_have_it() {
        let vocab = Vocab::new([("[UNK]", 0), ("a", 1)]).unwrap();
        let mut definition = Definition::bert(vocab);
        definition.added_tokens.push(AddedToken::special("[PAD]"));
        let guessed = definition.guess_special_tokens();
        assert_eq!(guessed.iter().collect::<Vec<_>>(), [(Role::Unk, "[UNK]"), (Role::Pad, "[PAD]")]);
    }

    #[test]
    fn a_template_of_another_shape_names_no_tokens_around_a_text() {
        let mut template = bert_template(("[CLS]", 2), ("[SEP]", 3));
        template.special_tokens[0].ids.push(3);
        template.special_tokens[0].tokens.push("[SEP]".to_owned());
        let definition = Definition { post_processor: Some(PostProcessor::Template(template.clone())), ..bert() };
        assert_eq!(definition.tokens_around_text(), (None, Some("[SEP]")));
        template.single.pop();
        let definition = Definition { post_processor: Some(PostProcessor::Template(template)), ..bert() };
        assert_eq!(definition.tokens_around_text(), (None, None));
    }
}
