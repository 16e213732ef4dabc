//! `[CLS] A [SEP] B [SEP]`: which special tokens stand around the texts.

use crate::error::{Error, Result};

/// What is put around the texts, as a `tokenizer.json` says it.
#[derive(Debug, Clone, PartialEq)]
pub enum PostProcessor {
    /// `[CLS] A [SEP]`, `[CLS] A [SEP] B [SEP]`; segment ids 0 and 1.
    Bert {
        /// Token and id that begin the row.
        cls: (String, u32),
        /// Token and id that end each text.
        sep: (String, u32),
    },
    /// `<s> A </s>`, `<s> A </s></s> B </s>`; all segment ids 0.
    Roberta {
        /// Token and id that begin the row.
        cls: (String, u32),
        /// Token and id that end each text.
        sep: (String, u32),
        /// Whether white space at the ends of a token is left out of its offsets.
        trim_offsets: bool,
        /// Whether the first space of a text was put there by a pre-tokenizer.
        add_prefix_space: bool,
    },
    /// Any arrangement.
    Template(Template),
}

/// An arrangement of texts and special tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// Of one text.
    pub single: Vec<Piece>,
    /// Of two.
    pub pair: Vec<Piece>,
    /// What the names in it stand for.
    pub special_tokens: Vec<SpecialToken>,
}

/// One place of a template.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// A text.
    Sequence {
        /// Which one.
        which: Which,
        /// Its segment id.
        type_id: u32,
    },
    /// Special tokens.
    Special {
        /// Their name in `special_tokens`.
        name: String,
        /// Their segment id.
        type_id: u32,
    },
}

/// The first or the second text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The first, A.
    First,
    /// The second, B.
    Second,
}

/// What a name in a template stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecialToken {
    /// The name.
    pub name: String,
    /// The ids of the tokens.
    pub ids: Vec<u32>,
    /// Their texts.
    pub tokens: Vec<String>,
}

impl Template {
    /// Checks that every name is known, that each special token has as many ids as texts, and that `single` leaves the
    /// second text alone.
    pub fn check(&self) -> Result<()> {
        let bad = |message: String| Err(Error::BadTemplate { message });
        for token in &self.special_tokens {
            if token.ids.len() != token.tokens.len() {
                let (name, ids, tokens) = (&token.name, token.ids.len(), token.tokens.len());
                return bad(format!("special token {name:?} has {ids} ids but {tokens} tokens"));
            }
        }
        for piece in self.single.iter().chain(&self.pair) {
            if let Piece::Special { name, .. } = piece
                && !self.special_tokens.iter().any(|token| token.name == *name)
            {
                return bad(format!("the template names {name:?}, which is not among its special_tokens"));
            }
        }
        if self.single.iter().any(|piece| matches!(piece, Piece::Sequence { which: Which::Second, .. })) {
            return bad("the template for a single text uses $B".to_owned());
        }
        Ok(())
    }
}
