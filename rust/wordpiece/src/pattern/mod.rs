//! Patterns of `tokenizer.json`: literal strings and regular expressions.
//!
//! Used by the `Replace` normalizer and the `Split` pre-tokenizer, never by BERT's own components. Expressions are compiled
//! once, when a file is read. Searching a literal is linear; Oniguruma backtracks, so an expression can take time that is
//! quadratic in the length of the text, or worse. Its steps are counted, and limited by the length of the text:
//! a search that needs more fails with [`Error::PatternFailed`]. Without the feature `regex`, an expression is an
//! [`Error::BadPattern`], and the crate needs no C compiler.

use crate::error::{Error, Result};

#[cfg(feature = "regex")]
mod expression;
#[cfg(feature = "regex")]
use expression::Expression;

/// A literal string, or a regular expression in Oniguruma's syntax, to search for.
///
/// `tokenizers` uses Oniguruma, so the expressions of existing files are written for it; another engine could match
/// differently. Two patterns are equal if they have the same source and kind.
#[derive(Debug)]
pub struct Pattern {
    source: String,
    /// The compiled expression; `None` for a literal.
    regex: Option<Expression>,
}

impl Pattern {
    /// Creates a pattern that matches a literal string.
    pub fn literal(text: impl Into<String>) -> Pattern {
        Pattern { source: text.into(), regex: None }
    }

    /// Compiles a regular expression.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BadPattern`] if Oniguruma cannot compile it.
    pub fn regex(source: impl Into<String>) -> Result<Pattern> {
        let source = source.into();
        match Expression::compile(&source) {
            Ok(regex) => Ok(Pattern { source, regex: Some(regex) }),
            Err(message) => Err(Error::BadPattern { pattern: source, message }),
        }
    }

    /// Returns the literal, or the source of the expression.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns whether this is a regular expression.
    pub fn is_regex(&self) -> bool {
        self.regex.is_some()
    }

    /// Appends the byte range of every match in `text` to `found`, from left to right, without overlaps.
    ///
    /// An empty match is reported unless it begins where the previous match ends. An empty text has no match, not even an
    /// empty one. Both follow `tokenizers`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::PatternFailed`] if Oniguruma gives up, above all because it takes too many steps.
    pub(crate) fn find_all(&self, text: &str, found: &mut Vec<(usize, usize)>) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let Some(regex) = &self.regex else {
            found.extend(text.match_indices(&self.source).map(|(at, matched)| (at, at + matched.len())));
            return Ok(());
        };
        regex.find_all(text, found).map_err(|message| Error::PatternFailed { pattern: self.source.clone(), message })
    }

    /// Returns the length of a text whose matches are replaced.
    ///
    /// # Errors
    ///
    /// Returns [`Error::PatternFailed`] if it is above `limit`.
    pub(crate) fn replaced(
        &self,
        bytes: usize,
        matches: &[(usize, usize)],
        content: &str,
        limit: usize,
    ) -> Result<usize> {
        let kept = bytes - matches.iter().map(|(start, end)| end - start).sum::<usize>();
        let made = kept.saturating_add(matches.len().saturating_mul(content.len()));
        if made > limit && !matches.is_empty() {
            let message = format!("its replacements make {made} bytes; the limit is {limit}");
            return Err(Error::PatternFailed { pattern: self.source.clone(), message });
        }
        Ok(made)
    }
}

/// Returns how long a text may become by replacements, each of which may multiply it.
pub(crate) fn most_bytes(bytes: usize) -> usize {
    bytes.saturating_mul(64).max(1 << 20)
}

/// There is no expression without the feature.
#[cfg(not(feature = "regex"))]
#[derive(Debug)]
enum Expression {}

#[cfg(not(feature = "regex"))]
impl Expression {
    fn compile(_: &str) -> std::result::Result<Expression, String> {
        Err("the crate was built without regular expressions (feature `regex`)".to_owned())
    }

    fn find_all(&self, _: &str, _: &mut Vec<(usize, usize)>) -> std::result::Result<(), String> {
        match *self {}
    }
}

impl Clone for Pattern {
    fn clone(&self) -> Pattern {
        match &self.regex {
            None => Pattern::literal(self.source.clone()),
            Some(_) => Pattern::regex(self.source.clone()).expect("the same source compiled before"),
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.source == other.source && self.is_regex() == other.is_regex()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &Pattern, text: &str) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        pattern.find_all(text, &mut found).unwrap();
        found
    }

    #[test]
    #[cfg(feature = "regex")]
    #[cfg_attr(miri, ignore = "calls Oniguruma, which is C")]
    fn literals_and_expressions_match_left_to_right() {
        assert_eq!(found(&Pattern::literal("aa"), "aaaxaa"), [(0, 2), (4, 6)]);
        assert_eq!(found(&Pattern::regex("a+").unwrap(), "aaaxaa"), [(0, 3), (4, 6)]);
        assert_eq!(found(&Pattern::regex("x*").unwrap(), "éxa"), [(0, 0), (2, 3), (4, 4)]);
        assert_eq!(found(&Pattern::regex("x*").unwrap(), ""), []);
    }

    #[test]
    #[cfg(feature = "regex")]
    #[cfg_attr(miri, ignore = "calls Oniguruma, which is C")]
    fn a_bad_expression_is_an_error() {
        assert!(matches!(Pattern::regex("a("), Err(Error::BadPattern { pattern, .. }) if pattern == "a("));
    }

    /// The first two go back, at one place or in a search for each letter; the others read on to the end without going back.
    #[test]
    #[cfg(feature = "regex")]
    #[cfg_attr(miri, ignore = "calls Oniguruma, which is C")]
    fn an_expression_that_takes_quadratic_time_is_an_error() {
        let text = "a".repeat(100_000);
        for source in ["(?=(a+)+b)a", "(?=(a+)+b)a|a", "a+b", "(?:a+)+b", "(?=.*b)a", "(?x) a++ b # to the end"] {
            let failed = Pattern::regex(source).unwrap().find_all(&text, &mut Vec::new());
            assert!(
                matches!(&failed, Err(Error::PatternFailed { pattern, message })
                    if pattern == source && message == "it takes more than 40000000 steps for 100000 bytes"),
                "{failed:?}"
            );
        }
    }

    #[test]
    #[cfg(feature = "regex")]
    #[cfg_attr(miri, ignore = "calls Oniguruma, which is C")]
    fn an_expression_may_take_many_steps_for_each_match() {
        let text = ("a".repeat(200) + "b ").repeat(100);
        assert_eq!(found(&Pattern::regex("a+(?<!a)b|b").unwrap(), &text).len(), 100);
        let gap = format!("the cat{}sat", " ".repeat(4000));
        assert_eq!(found(&Pattern::regex(r"\s+$").unwrap(), &gap), []);
        let spaces = " ".repeat(50_000) + "x";
        assert_eq!(found(&Pattern::regex(r"\s+(?!\S)|\s+").unwrap(), &spaces), [(0, 49_999), (49_999, 50_000)]);
    }
}
