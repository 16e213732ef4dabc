//! Post-processors as data: the special tokens around the texts of a row, such as `[SEP]` after the second text.
//!
//! As in `tokenizer.json`, `[CLS] A [SEP] B [SEP]` can be written as `BertProcessing` or as a template; both behave as
//! in `tokenizers` 0.23.3. `layout` turns them into the slots of a row.

use std::collections::HashMap;

use crate::error::{Error, Result};

/// The most tokens that a template may add to a row.
const MOST_ADDED: usize = 1 << 16;

/// The special tokens that are added around the texts of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum PostProcessor {
    /// `[CLS] A [SEP]`, `[CLS] A [SEP] B [SEP]`; segment ids 0 and 1.
    Bert {
        /// The token that begins a row, and its id.
        cls: (String, u32),
        /// The token that follows each text, and its id.
        sep: (String, u32),
    },
    /// `<s> A </s>`, `<s> A </s></s> B </s>`; all segment ids 0.
    Roberta {
        /// The token that begins a row, and its id.
        cls: (String, u32),
        /// The token that follows each text, and its id.
        sep: (String, u32),
        /// Whether the offsets of a token exclude white space at its ends.
        trim_offsets: bool,
        /// Whether a pre-tokenizer inserted a space before each text.
        add_prefix_space: bool,
    },
    /// An arbitrary arrangement.
    Template(Template),
}

/// An arrangement of texts and special tokens (`TemplateProcessing`).
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The row of a single text.
    pub single: Vec<TemplatePiece>,
    /// The row of a pair.
    pub pair: Vec<TemplatePiece>,
    /// The special tokens that the pieces refer to by name.
    pub special_tokens: Vec<SpecialToken>,
}

/// One element of a template.
#[derive(Debug, Clone, PartialEq)]
pub enum TemplatePiece {
    /// A text.
    Sequence {
        /// The text.
        sequence: SequenceId,
        /// The segment id of its tokens.
        type_id: u32,
    },
    /// One or more special tokens.
    Special {
        /// The name of an entry of [`Template::special_tokens`].
        name: String,
        /// The segment id of the tokens.
        type_id: u32,
    },
}

/// A text of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceId {
    /// The first text, `$A`.
    A,
    /// The second text, `$B`.
    B,
}

/// The tokens that a name in a template expands to.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecialToken {
    /// The name that template pieces use.
    pub name: String,
    /// The ids of the tokens.
    pub ids: Vec<u32>,
    /// The texts of the tokens, as many as ids.
    pub tokens: Vec<String>,
}

impl Template {
    /// Checks that the template is consistent.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BadTemplate`] if a piece names a special token that is not defined, if a special token does not
    /// have as many ids as texts, if `single` contains the second text, or if a template adds too many tokens.
    pub fn check(&self) -> Result<()> {
        let bad = |message: String| Err(Error::BadTemplate { message });
        for token in &self.special_tokens {
            if token.ids.len() != token.tokens.len() {
                let (name, ids, tokens) = (&token.name, token.ids.len(), token.tokens.len());
                return bad(format!("special token {name:?} has {ids} ids but {tokens} tokens"));
            }
        }
        let counts: HashMap<&str, usize> =
            self.special_tokens.iter().rev().map(|token| (token.name.as_str(), token.ids.len())).collect();
        for pieces in [&self.single, &self.pair] {
            let mut added = 0;
            for piece in pieces {
                if let TemplatePiece::Special { name, .. } = piece {
                    let Some(count) = counts.get(name.as_str()) else {
                        return bad(format!("the template names {name:?}, which is not among its special_tokens"));
                    };
                    added += count;
                }
            }
            if added > MOST_ADDED {
                return bad(format!("the template adds {added} tokens to a row; the limit is {MOST_ADDED}"));
            }
        }
        if self.single.iter().any(|piece| matches!(piece, TemplatePiece::Sequence { sequence: SequenceId::B, .. })) {
            return bad("the template for a single text uses $B".to_owned());
        }
        Ok(())
    }
}
