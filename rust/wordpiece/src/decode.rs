//! Decoders: the text of a list of tokens.
//!
//! A [`Decoder`] rewrites a list of tokens so that their concatenation is the text. Decoding is not the inverse of
//! encoding: what the normalizer removed stays lost, and the spaces between words are guessed. Each decoder costs time and
//! memory in proportion to the bytes of the tokens.
//!
//! ```
//! use wordpiece::{Decoder, Definition, Vocab};
//!
//! let vocab = Vocab::new([("[UNK]", 0)])?;
//! let decoder = Some(Decoder::WordPiece { prefix: "##".to_owned(), cleanup: true });
//! let definition = Definition { decoder, ..Definition::bert(vocab) };
//! let tokens = ["un", "##want", "##ed", "!"].map(str::to_owned).to_vec();
//! assert_eq!(definition.join_tokens(tokens, false)?, "unwanted!");
//! # Ok::<(), wordpiece::Error>(())
//! ```

use crate::byte_level::{self, ByteLevel};
use crate::error::Result;
use crate::pattern::{Pattern, most_bytes};
use crate::split::{Metaspace, PrependScheme};

/// How tokens are turned back into text, as the `decoder` of a `tokenizer.json`.
#[derive(Debug, Clone, PartialEq)]
pub enum Decoder {
    /// Appends pieces with the prefix to the token before, without the prefix, and puts a space before all others.
    WordPiece {
        /// The prefix of pieces that continue a word. The first token of a text keeps it.
        prefix: String,
        /// Whether to remove spaces before punctuation and in English contractions. Each token is cleaned up by itself,
        /// with the space that was put before it.
        cleanup: bool,
    },
    /// Applies several decoders, one after the other.
    Sequence(Vec<Decoder>),
    /// Concatenates all tokens into one.
    Fuse,
    /// Removes repetitions of a character from both ends of each token.
    Strip {
        /// The character to remove.
        content: char,
        /// The most characters to remove at the start.
        start: usize,
        /// The most characters to remove at the end.
        stop: usize,
    },
    /// Replaces every match within a token.
    Replace {
        /// The pattern to search for.
        pattern: Pattern,
        /// The replacement, taken literally.
        content: String,
    },
    /// Turns the visible replacement character back into spaces.
    Metaspace(Metaspace),
    /// Concatenates all tokens and turns their characters back into bytes. Bytes that are not UTF-8 become U+FFFD.
    ByteLevel(ByteLevel),
}

/// The replacement that the reference's decoder has and transformers has not.
const DO_NOT: (&str, &str) = (" do not", " don't");

/// The replacements of `cleanup`, applied to each token in this order. The reference has the same ones.
const CLEANUP: [(&str, &str); 11] = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    DO_NOT,
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
];

impl Decoder {
    /// Rewrites the tokens so that their concatenation is the text.
    ///
    /// # Errors
    ///
    /// [`Error::PatternFailed`](crate::Error::PatternFailed) if the pattern of a `Replace` decoder fails on a token, or its
    /// replacements multiply the text.
    pub(crate) fn apply(&self, tokens: &mut Vec<String>) -> Result<()> {
        self.step(tokens, most_bytes(tokens.iter().map(String::len).sum()))
    }

    /// As [`Decoder::apply`]; the replacements of a `Replace` may make at most `limit` bytes.
    fn step(&self, tokens: &mut Vec<String>, limit: usize) -> Result<()> {
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
                        clean_up(token, &CLEANUP);
                    }
                }
            }
            Decoder::Sequence(steps) => return steps.iter().try_for_each(|step| step.step(tokens, limit)),
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
                let (mut matches, mut left) = (Vec::new(), limit);
                for token in tokens.iter_mut() {
                    matches.clear();
                    pattern.find_all(token, &mut matches)?;
                    left = left.saturating_sub(pattern.replaced(token.len(), &matches, content, left)?);
                    let mut replaced = String::with_capacity(token.len());
                    let mut end = 0;
                    for &(from, to) in &matches {
                        replaced.push_str(&token[end..from]);
                        replaced.push_str(content);
                        end = to;
                    }
                    replaced.push_str(&token[end..]);
                    *token = replaced;
                }
            }
            Decoder::ByteLevel(_) => *tokens = vec![byte_level::decode(tokens)],
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

/// Removes the spaces before punctuation and in English contractions from a text, as transformers does on request after
/// decoding. Unlike the clean-up of a decoder, it sees the whole text, and so finds contractions of several tokens.
pub(crate) fn clean_up_text(text: &mut String) {
    let rules: Vec<_> = CLEANUP.into_iter().filter(|rule| *rule != DO_NOT).collect();
    clean_up(text, &rules);
}

fn clean_up(text: &mut String, rules: &[(&str, &str)]) {
    for (from, to) in rules {
        if text.contains(from) {
            *text = text.replace(from, to);
        }
    }
}
