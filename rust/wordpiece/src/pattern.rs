//! Patterns of `tokenizer.json`: literal strings and regular expressions.
//!
//! Used by the `Replace` normalizer and the `Split` pre-tokenizer, never by BERT's own components. Expressions are compiled
//! once, when a file is read. Searching a literal is linear; Oniguruma backtracks, so an expression can take much longer,
//! until it exceeds Oniguruma's limit and the search fails with [`Error::PatternFailed`]. Without the feature `regex`, an
//! expression is an [`Error::BadPattern`], and the crate needs no C compiler.

#[cfg(feature = "regex")]
use onig::{MatchParam, Regex, RegexOptions, Region, SearchOptions, Syntax};

use crate::error::{Error, Result};

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
    /// Returns [`Error::PatternFailed`] if Oniguruma gives up, for example because of its limit on backtracking.
    pub(crate) fn find_all(&self, text: &str, found: &mut Vec<(usize, usize)>) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let Some(regex) = &self.regex else {
            found.extend(text.match_indices(&self.source).map(|(at, matched)| (at, at + matched.len())));
            return Ok(());
        };
        let failed = |message| Error::PatternFailed { pattern: self.source.clone(), message };
        let mut from = 0;
        let mut last_end = None;
        while from <= text.len() {
            let Some((start, end)) = regex.find(text, from).map_err(failed)? else { break };
            // After an empty match, continue at the next character; otherwise the search would not advance.
            from = if start == end { end + text[end..].chars().next().map_or(1, char::len_utf8) } else { end };
            if start == end && last_end == Some(end) {
                continue;
            }
            last_end = Some(end);
            found.push((start, end));
        }
        Ok(())
    }
}

/// A compiled regular expression. What fails is Oniguruma's message.
#[cfg(feature = "regex")]
#[derive(Debug)]
struct Expression(Regex);

#[cfg(feature = "regex")]
impl Expression {
    fn compile(source: &str) -> std::result::Result<Expression, String> {
        let compiled = Regex::with_options(source, RegexOptions::REGEX_OPTION_NONE, Syntax::default());
        compiled.map(Expression).map_err(|error| error.description().to_owned())
    }

    /// Returns the byte range of the first match at or after `from`.
    fn find(&self, text: &str, from: usize) -> std::result::Result<Option<(usize, usize)>, String> {
        let mut region = Region::new();
        let (options, limits) = (SearchOptions::SEARCH_OPTION_NONE, MatchParam::default());
        let at = self.0.search_with_param(text, from, text.len(), options, Some(&mut region), limits);
        Ok(at.map_err(|error| error.description().to_owned())?.and_then(|_| region.pos(0)))
    }
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

    fn find(&self, _: &str, _: usize) -> std::result::Result<Option<(usize, usize)>, String> {
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
}
