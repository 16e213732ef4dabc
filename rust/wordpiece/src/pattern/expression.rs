//! Expressions of Oniguruma, whose steps are counted.

use std::any::Any;
use std::ffi::{c_int, c_ulong, c_void};
use std::panic::{catch_unwind, resume_unwind};
use std::ptr;

use onig::{MatchParam, Regex, RegexOptions, Region, SearchOptions, Syntax};
use onig_sys::{
    ONIG_ABORT, ONIGERR_RETRY_LIMIT_IN_MATCH_OVER, ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER, OnigCalloutArgs,
    onig_get_current_by_callout_args, onig_get_retry_counter_by_callout_args, onig_get_start_by_callout_args,
};
use wordpiece_parallel::checkpoint;

/// Returns how many steps the searches of a text of `bytes` bytes may take: some tenths of a second. Expressions
/// for natural text need a few for each byte.
const fn most_steps(bytes: usize) -> usize {
    30_000_000_usize.saturating_add(bytes.saturating_mul(100))
}

/// The steps that are left for the searches of a text.
///
/// A place at which a match may begin takes as many as Oniguruma goes back from there, and as there are bytes to where it
/// ends, or fails at last. What it reads beyond that is not known.
struct StepBudget {
    left: usize,
    places: usize,
    /// What a checkpoint unwound with, which must not pass through C.
    unwound: Option<Box<dyn Any + Send>>,
}

impl StepBudget {
    /// Returns parameters of a search that goes back `back` times at most, and takes what it counts from this.
    fn limits(&mut self, back: usize) -> MatchParam {
        let mut limits = MatchParam::default();
        // The limit for each place is part of the one for the search; 0 is none.
        limits.set_retry_limit_in_match(0);
        let (raw, back) = (limits.as_raw(), c_ulong::try_from(back.max(1)).unwrap_or(c_ulong::MAX));
        // SAFETY: the parameters are initialised, and borrowed by nothing else.
        unsafe {
            onig_sys::onig_set_retry_limit_in_search_of_match_param(raw, back);
            onig_sys::onig_set_progress_callout_of_match_param(raw, Some(count));
            onig_sys::onig_set_retraction_callout_of_match_param(raw, Some(count));
            onig_sys::onig_set_callout_user_data_of_match_param(raw, ptr::from_mut(self).cast());
        }
        limits
    }
}

/// Counts the steps of a place where a match began or failed to. Ends the search if none are left, or it is interrupted.
unsafe extern "C" fn count(args: *mut OnigCalloutArgs, budget: *mut c_void) -> c_int {
    // SAFETY: Oniguruma passes its own arguments, and the budget of `limits`, which is not used otherwise during a search.
    let (budget, start, end, back) = unsafe {
        let (start, end) = (onig_get_start_by_callout_args(args), onig_get_current_by_callout_args(args));
        (&mut *budget.cast::<StepBudget>(), start, end, onig_get_retry_counter_by_callout_args(args))
    };
    // Looking behind may fail before the start.
    let steps = end.addr().saturating_sub(start.addr()).saturating_add(usize::try_from(back).unwrap_or(usize::MAX));
    budget.left = budget.left.saturating_sub(steps);
    budget.places += 1;
    if budget.places.is_multiple_of(16) {
        budget.unwound = catch_unwind(checkpoint).err();
    }
    if budget.left == 0 || budget.unwound.is_some() { ONIG_ABORT } else { 0 }
}

/// Returns whether an error of Oniguruma says that the steps were not enough.
fn is_over(error: &onig::Error) -> bool {
    [ONIG_ABORT, ONIGERR_RETRY_LIMIT_IN_MATCH_OVER, ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER].contains(&error.code())
}

/// A compiled regular expression. What fails is a message.
#[derive(Debug)]
pub(super) struct Expression {
    plain: Regex,
    /// The same, which calls `count` where a match fails or ends.
    counted: Option<Regex>,
}

impl Expression {
    pub(super) fn compile(source: &str) -> Result<Expression, String> {
        let compile = |source: &str| Regex::with_options(source, RegexOptions::REGEX_OPTION_NONE, Syntax::default());
        let plain = compile(source).map_err(|error| error.description().to_owned())?;
        // A comment may hide the parenthesis, unless a line ends before it; options that must come first, as `(?I)`, leave only
        // the limit of each search.
        let counted = |end| compile(&format!("(?{{.}}<)(?:{source}{end})(?{{.}})")).ok();
        Ok(Expression { plain, counted: counted("").or_else(|| counted("\n")) })
    }

    pub(super) fn find_all(&self, text: &str, found: &mut Vec<(usize, usize)>) -> Result<(), String> {
        let (most, none) = (most_steps(text.len()), SearchOptions::SEARCH_OPTION_NONE);
        // Counting takes time, so a search does it if it goes back oftener. Those that do not are one for each byte at most.
        let few = ((1 << 24) / text.len()).max(64);
        let mut budget = StepBudget { left: most, places: 0, unwound: None };
        let mut region = Region::new();
        let mut from = 0;
        let mut last_end = None;
        while from <= text.len() {
            budget.places += 1;
            if budget.places.is_multiple_of(16) {
                checkpoint();
            }
            let mut search = |regex: &Regex, limits| {
                regex.search_with_param(text, from, text.len(), none, Some(&mut region), limits)
            };
            let mut at = search(&self.plain, budget.limits(few));
            if at.as_ref().is_err_and(is_over) {
                at = search(self.counted.as_ref().unwrap_or(&self.plain), budget.limits(budget.left));
            }
            if let Some(panic) = budget.unwound.take() {
                resume_unwind(panic);
            }
            let at = at.map_err(|error| match is_over(&error) {
                true => format!("it takes more than {most} steps for {} bytes", text.len()),
                false => error.description().to_owned(),
            })?;
            let Some((start, end)) = at.and_then(|_| region.pos(0)) else { break };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "calls Oniguruma, which is C")]
    fn an_expression_has_the_same_matches_when_it_is_counted() {
        let (anchors, groups) = (r"\Ga|(?{c}X)b$|^\(", r"(a)\1|(?<=(?:A)|(?:a))b");
        for source in ["(?i)a|b", "(?x) b # a comment", anchors, groups, r"a\Kb|\((?:[^()]|\g<0>)*\)", "b*"] {
            let plain = Expression::compile(source).unwrap();
            let counted = Expression { plain: Expression::compile(source).unwrap().counted.unwrap(), counted: None };
            let (mut found, mut same) = (Vec::new(), Vec::new());
            plain.find_all("aab (AB) b", &mut found).and(counted.find_all("aab (AB) b", &mut same)).unwrap();
            assert!(found == same && found.len() > 1, "{source}: {found:?} {same:?}");
        }
    }
}
