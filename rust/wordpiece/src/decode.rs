//! Tokens → text.

use crate::error::Result;
use crate::pattern::Pattern;
use crate::split::{Metaspace, PrependScheme};

/// How tokens become text again. Without one, tokens are joined by a space.
#[derive(Debug, Clone, PartialEq)]
pub enum Decoder {
    /// Pieces are joined to words, words by spaces.
    WordPiece {
        /// What marks a piece that continues a word.
        prefix: String,
        /// Whether spaces before punctuation and around contractions go, token by token.
        cleanup: bool,
    },
    /// One after the other.
    Sequence(Vec<Decoder>),
    /// All tokens become one.
    Fuse,
    /// Drops a character at the ends of each token.
    Strip {
        /// The character.
        content: char,
        /// At most so many at the start.
        start: usize,
        /// At most so many at the end.
        stop: usize,
    },
    /// Puts `content` in place of every match, token by token.
    Replace {
        /// What to search for.
        pattern: Pattern,
        /// What to put there.
        content: String,
    },
    /// Makes spaces of the visible character.
    Metaspace(Metaspace),
}

/// What `cleanup` replaces, in this order, in each token by itself.
const CLEANUP: [(&str, &str); 11] = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
];

impl Decoder {
    /// The same decoder with the clean-up of its WordPiece parts switched on or off.
    pub fn with_cleanup(&self, cleanup: bool) -> Decoder {
        match self {
            Decoder::WordPiece { prefix, .. } => Decoder::WordPiece { prefix: prefix.clone(), cleanup },
            Decoder::Sequence(steps) => {
                Decoder::Sequence(steps.iter().map(|step| step.with_cleanup(cleanup)).collect())
            }
            other => other.clone(),
        }
    }

    /// Rewrites the tokens; joined with nothing between them they are the text.
    pub(crate) fn apply(&self, tokens: &mut Vec<String>) -> Result<()> {
        match self {
            Decoder::WordPiece { prefix, cleanup } => {
                for (i, token) in tokens.iter_mut().enumerate() {
                    if i > 0 {
                        match token.strip_prefix(prefix.as_str()) {
                            Some(rest) => *token = rest.to_owned(),
                            None => token.insert(0, ' '),
                        }
                    }
                    if *cleanup {
                        clean_up(token);
                    }
                }
            }
            Decoder::Sequence(steps) => return steps.iter().try_for_each(|step| step.apply(tokens)),
            Decoder::Fuse => *tokens = vec![tokens.concat()],
            Decoder::Strip { content, start, stop } => {
                for token in tokens.iter_mut() {
                    let cut = token.chars().take(*start).take_while(|c| c == content).count();
                    let rest = &token[cut * content.len_utf8()..];
                    let cut_end = rest.chars().rev().take(*stop).take_while(|c| c == content).count();
                    *token = rest[..rest.len() - cut_end * content.len_utf8()].to_owned();
                }
            }
            Decoder::Replace { pattern, content } => {
                let mut found = Vec::new();
                for token in tokens.iter_mut() {
                    found.clear();
                    pattern.find_all(token, &mut found)?;
                    let mut replaced = String::with_capacity(token.len());
                    let mut end = 0;
                    for &(from, to) in &found {
                        replaced.push_str(&token[end..from]);
                        replaced.push_str(content);
                        end = to;
                    }
                    replaced.push_str(&token[end..]);
                    *token = replaced;
                }
            }
            Decoder::Metaspace(Metaspace { replacement, prepend, .. }) => {
                for (i, token) in tokens.iter_mut().enumerate() {
                    let drop = i == 0 && *prepend != PrependScheme::Never;
                    *token = token.replace(*replacement, if drop { "" } else { " " });
                }
            }
        }
        Ok(())
    }
}

fn clean_up(token: &mut String) {
    for (from, to) in CLEANUP {
        if token.contains(from) {
            *token = token.replace(from, to);
        }
    }
}
