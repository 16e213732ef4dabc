//! Patterns of `tokenizer.json`: literal strings and regular expressions.
//!
//! Used by the `Replace` normalizer and the `Split` pre-tokenizer, never by BERT's own components. Expressions are compiled
//! once, when a file is read. Searching a literal is linear; Oniguruma backtracks, so an expression can take time that is
//! quadratic in the length of the text, or worse. Its steps are limited by the length of the text ([`most_steps`]): a search
//! that needs more fails with [`Error::PatternFailed`]. Without the feature `regex`, an expression is an
//! [`Error::BadPattern`], and the crate needs no C compiler.

#[cfg(feature = "regex")]
use onig::{MatchParam, Regex, RegexOptions, Region, SearchOptions, Syntax};
#[cfg(feature = "regex")]
use onig_sys::{ONIGERR_RETRY_LIMIT_IN_MATCH_OVER, ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER};

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
    /// Returns [`Error::PatternFailed`] if Oniguruma gives up, above all because it goes back too often.
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
        let mut budget = StepBudget::new(text);
        while from <= text.len() {
            let Some((start, end)) = regex.find(text, from, &mut budget).map_err(failed)? else { break };
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

/// Returns how often Oniguruma may go back in all searches of a text of `bytes` bytes: some hundred milliseconds for 100 KB.
///
/// Expressions for natural text need a few steps for each byte.
const fn most_steps(bytes: usize) -> usize {
    10_000_000_usize.saturating_add(bytes.saturating_mul(100))
}

/// The steps that are left for the searches of a text.
///
/// Oniguruma takes a limit for a search, but does not tell how many steps it took. So a search begins with a low limit, and is
/// repeated with a higher one if that is exceeded. Limits that were exceeded count, and the one that was enough; but not the
/// lowest, of which there is at most one for each byte.
#[cfg_attr(not(feature = "regex"), expect(dead_code, reason = "no expression is searched for"))]
struct StepBudget {
    left: usize,
    /// The limit for the whole text, for the message.
    most: usize,
}

impl StepBudget {
    #[cfg(feature = "regex")]
    const LOWEST: usize = 1 << 12;

    fn new(text: &str) -> StepBudget {
        let most = most_steps(text.len());
        StepBudget { left: most, most }
    }
}

/// A compiled regular expression. What fails is a message.
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
    fn find(
        &self,
        text: &str,
        from: usize,
        budget: &mut StepBudget,
    ) -> std::result::Result<Option<(usize, usize)>, String> {
        let mut region = Region::new();
        let mut steps = StepBudget::LOWEST;
        loop {
            let (options, limits) = (SearchOptions::SEARCH_OPTION_NONE, limited(steps));
            let found = self.0.search_with_param(text, from, text.len(), options, Some(&mut region), limits);
            if steps > StepBudget::LOWEST {
                budget.left -= steps;
            }
            match found {
                Ok(at) => return Ok(at.and_then(|_| region.pos(0))),
                Err(error) if is_over(error.code()) => {
                    let more = steps.saturating_mul(2).min(budget.left);
                    if more <= steps {
                        return Err(format!("it takes more than {} steps for {} bytes", budget.most, text.len()));
                    }
                    steps = more;
                    region.clear();
                }
                Err(error) => return Err(error.description().to_owned()),
            }
        }
    }
}

/// Returns parameters by which a search takes at most so many steps.
#[cfg(feature = "regex")]
fn limited(steps: usize) -> MatchParam {
    let mut limits = MatchParam::default();
    // The limit for each place at which a match may begin is part of the one for the search.
    limits.set_retry_limit_in_match(0);
    let steps = std::ffi::c_ulong::try_from(steps).unwrap_or(std::ffi::c_ulong::MAX);
    // SAFETY: the parameters are initialised, and borrowed by nothing else.
    unsafe { onig_sys::onig_set_retry_limit_in_search_of_match_param(limits.as_raw(), steps) };
    limits
}

/// Returns whether an error of Oniguruma says that the steps were not enough.
#[cfg(feature = "regex")]
fn is_over(code: i32) -> bool {
    [ONIGERR_RETRY_LIMIT_IN_MATCH_OVER, ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER].contains(&code)
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

    fn find(&self, _: &str, _: usize, _: &mut StepBudget) -> std::result::Result<Option<(usize, usize)>, String> {
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

    /// The first goes back in one search, from each letter to the end; the second in as many searches as there are letters.
    #[test]
    #[cfg(feature = "regex")]
    #[cfg_attr(miri, ignore = "calls Oniguruma, which is C")]
    fn an_expression_that_takes_quadratic_time_is_an_error_in_linear_time() {
        let text = "a".repeat(100_000);
        for source in ["(?=(a+)+b)a", "(?=(a+)+b)a|a"] {
            let started = std::time::Instant::now();
            let failed = Pattern::regex(source).unwrap().find_all(&text, &mut Vec::new());
            assert!(
                matches!(&failed, Err(Error::PatternFailed { pattern, message })
                    if pattern == source && message == "it takes more than 20000000 steps for 100000 bytes"),
                "{failed:?}"
            );
            assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
        }
        // The steps that are left after the last search are fewer than the lowest limit.
        let failed = Pattern::regex("(?=(a+)+b)a").unwrap().find_all(&text[..67_700], &mut Vec::new());
        assert!(matches!(failed, Err(Error::PatternFailed { .. })), "{failed:?}");
    }

    /// Searches that need more than the lowest limit, and many of them.
    #[test]
    #[cfg(feature = "regex")]
    #[cfg_attr(miri, ignore = "calls Oniguruma, which is C")]
    fn an_expression_may_take_many_steps_for_each_match() {
        let text = ("a".repeat(200) + "b ").repeat(100);
        assert_eq!(found(&Pattern::regex("a+(?<!a)b|b").unwrap(), &text).len(), 100);
        let spaces = " ".repeat(50_000) + "x";
        assert_eq!(found(&Pattern::regex(r"\s+(?!\S)|\s+").unwrap(), &spaces), [(0, 49_999), (49_999, 50_000)]);
    }
}
