//! The options of a BERT tokenizer, and the roles of its special tokens. Plain data.

use crate::normalize::BertNormalizer;

/// The continuing-subword prefix of the original BERT vocabularies.
pub const CONTINUING_SUBWORD_PREFIX: &str = "##";

/// The most characters that a word may have in the original BERT; a longer one becomes the unknown token.
pub const MAX_INPUT_CHARS_PER_WORD: usize = 100;

/// The role of a special token.
///
/// The discriminants follow [`Role::ALL`], which is the order in which transformers registers the tokens. That order
/// decides the ids of tokens that a vocabulary lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Replaces a word that cannot be divided into pieces of the vocabulary.
    Unk,
    /// Ends each text of a row.
    Sep,
    /// Fills short rows up to a common length.
    Pad,
    /// Begins each row; its vector is used for classification.
    Cls,
    /// Replaces a token that a masked language model is to predict.
    Mask,
}

impl Role {
    /// Every role, in the order of registration.
    pub const ALL: [Role; 5] = [Role::Unk, Role::Sep, Role::Pad, Role::Cls, Role::Mask];

    /// Returns the name of the role in `tokenizer_config.json` and `special_tokens_map.json`, such as `"cls_token"`.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Unk => "unk_token",
            Role::Sep => "sep_token",
            Role::Pad => "pad_token",
            Role::Cls => "cls_token",
            Role::Mask => "mask_token",
        }
    }

    /// Returns the token that has this role in the original BERT vocabularies, such as `"[CLS]"`.
    pub const fn usual_token(self) -> &'static str {
        match self {
            Role::Unk => "[UNK]",
            Role::Sep => "[SEP]",
            Role::Pad => "[PAD]",
            Role::Cls => "[CLS]",
            Role::Mask => "[MASK]",
        }
    }
}

/// The special tokens of a tokenizer by role. A role may be vacant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// Indexed by `Role as usize`.
    by_role: [Option<String>; Role::ALL.len()],
}

impl SpecialTokens {
    /// Returns the tokens of the original BERT: `[UNK]`, `[SEP]`, `[PAD]`, `[CLS]` and `[MASK]`.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece::bert::{Role, SpecialTokens};
    ///
    /// let mut tokens = SpecialTokens::usual();
    /// tokens.set(Role::Mask, "<mask>");
    /// assert_eq!((tokens.get(Role::Cls), tokens.get(Role::Mask)), (Some("[CLS]"), Some("<mask>")));
    /// ```
    pub fn usual() -> SpecialTokens {
        SpecialTokens { by_role: Role::ALL.map(|role| Some(role.usual_token().to_owned())) }
    }

    /// Returns the token with this role, or `None` if the role is vacant.
    pub fn get(&self, role: Role) -> Option<&str> {
        self.by_role[role as usize].as_deref()
    }

    /// Assigns a role to a token, replacing the token that had it.
    pub fn set(&mut self, role: Role, token: impl Into<String>) {
        self.by_role[role as usize] = Some(token.into());
    }

    /// Iterates over the occupied roles and their tokens, in the order of [`Role::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Role, &str)> {
        Role::ALL.into_iter().filter_map(|role| Some((role, self.get(role)?)))
    }
}

/// The options of a BERT tokenizer; a vocabulary and these are the entire tokenizer.
///
/// The default is the one of the original uncased BERT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BertOptions {
    /// The special tokens. Those that the vocabulary lacks are not registered; if `Cls` or `Sep` is vacant or missing
    /// from the vocabulary, there is no template. A vacant `Unk` means `[UNK]`.
    pub special_tokens: SpecialTokens,
    /// How text is normalized.
    pub normalizer: BertNormalizer,
    /// The prefix of pieces that continue a word, in the vocabulary and for the decoder.
    pub continuing_subword_prefix: String,
    /// A word with more characters than this becomes the unknown token.
    pub max_input_chars_per_word: usize,
}

impl Default for BertOptions {
    fn default() -> Self {
        BertOptions {
            special_tokens: SpecialTokens::usual(),
            normalizer: BertNormalizer::default(),
            continuing_subword_prefix: CONTINUING_SUBWORD_PREFIX.to_owned(),
            max_input_chars_per_word: MAX_INPUT_CHARS_PER_WORD,
        }
    }
}
