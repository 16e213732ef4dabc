//! The parts of a BERT tokenizer as Python objects: its roles and the options of its normalizer.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wordpiece::bert::{Role, SpecialTokens};

use super::convert;
use crate::location::Location;

/// The roles with their usual tokens, in the order in which transformers registers them.
pub const SPECIAL_TOKEN_ROLES: [(&str, &str); Role::ALL.len()] = {
    let mut roles = [("", ""); Role::ALL.len()];
    let mut i = 0;
    while i < roles.len() {
        roles[i] = (Role::ALL[i].name(), Role::ALL[i].usual_token());
        i += 1;
    }
    roles
};

/// The options of BERT's normalizer, under the names of `Tokenizer.from_vocab`.
#[pyclass(frozen, get_all, eq, hash, module = "wordpiece_bert._core")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BertNormalizer {
    /// Whether text is lower-cased.
    lowercase: bool,
    /// Whether combining marks are dropped; None follows `lowercase`.
    strip_accents: Option<bool>,
    /// Whether control characters are dropped and every white-space character becomes a space.
    clean_text: bool,
    /// Whether each ideograph becomes a word.
    tokenize_chinese_chars: bool,
}

#[pymethods]
impl BertNormalizer {
    #[new]
    #[pyo3(signature = (*, lowercase, strip_accents, clean_text, tokenize_chinese_chars))]
    fn new(
        lowercase: bool,
        strip_accents: Option<bool>,
        clean_text: bool,
        tokenize_chinese_chars: bool,
    ) -> BertNormalizer {
        BertNormalizer { lowercase, strip_accents, clean_text, tokenize_chinese_chars }
    }
}

impl From<wordpiece::normalize::BertNormalizer> for BertNormalizer {
    fn from(core: wordpiece::normalize::BertNormalizer) -> BertNormalizer {
        BertNormalizer {
            lowercase: core.lowercase,
            strip_accents: core.strip_accents,
            clean_text: core.clean_text,
            tokenize_chinese_chars: core.tokenize_chinese_chars,
        }
    }
}

impl From<BertNormalizer> for wordpiece::normalize::BertNormalizer {
    fn from(options: BertNormalizer) -> wordpiece::normalize::BertNormalizer {
        wordpiece::normalize::BertNormalizer {
            lowercase: options.lowercase,
            strip_accents: options.strip_accents,
            clean_text: options.clean_text,
            tokenize_chinese_chars: options.tokenize_chinese_chars,
        }
    }
}

/// Reads special tokens from a dict of role names and tokens; other keys are ignored.
pub fn special_tokens(by_role: &Bound<'_, PyDict>) -> PyResult<SpecialTokens> {
    let mut special_tokens = SpecialTokens::default();
    for role in Role::ALL {
        if let Some(token) = by_role.get_item(role.name())? {
            let token = convert::string(&token, Location::argument(role.name()), "a token is a str")?;
            special_tokens.set(role, token.get(by_role.py()));
        }
    }
    Ok(special_tokens)
}
