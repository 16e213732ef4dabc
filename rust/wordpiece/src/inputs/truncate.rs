//! Truncation: how many tokens of each text remain in a row.
//!
//! Equals `truncate_encodings` of `tokenizers` 0.23.3, including which text loses an odd token. Special tokens count
//! towards the length and are never dropped. All of it is arithmetic on lengths.
//!
//! For example, with `max_length` 10 and BERT's 3 special tokens, 7 tokens remain for a pair of 9 and 4: `LongestFirst`
//! keeps 4 and 3, `OnlyFirst` 3 and 4, and `OnlySecond` fails, because the second text is shorter than the excess of 6.

use crate::error::{Error, Result};

/// How rows are truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    /// The most tokens in a row, including special tokens.
    pub max_length: usize,
    /// The number of tokens that adjacent windows share. Must be less than the tokens of text in a window.
    pub stride: usize,
    /// Which text of a pair is truncated.
    pub strategy: TruncationStrategy,
    /// The side from which tokens are removed.
    pub side: Side,
}

/// Which text of a pair is truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TruncationStrategy {
    /// The longer one, token by token. If both end up sharing an odd budget, the longer text keeps the odd token, on a tie
    /// the second.
    #[default]
    LongestFirst,
    /// Only the first.
    OnlyFirst,
    /// Only the second.
    OnlySecond,
}

/// A side of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Side {
    /// The end.
    #[default]
    Right,
    /// The start.
    Left,
}

impl Truncation {
    /// Returns how many tokens remain for the texts after `added` special tokens.
    ///
    /// # Errors
    ///
    /// Returns [`Error::MaxLengthBelowSpecials`] if the special tokens alone exceed `max_length`.
    pub fn budget(&self, added: usize) -> Result<usize> {
        self.max_length.checked_sub(added).ok_or(Error::MaxLengthBelowSpecials { max_length: self.max_length, added })
    }

    /// Checks what does not depend on a text.
    ///
    /// # Errors
    ///
    /// As [`budget`](Truncation::budget), and [`Error::StrideTooLarge`] if the stride is not less than a window.
    pub fn check(&self, added: usize) -> Result<()> {
        let window = self.budget(added)?;
        if self.stride > 0 && self.stride >= window {
            return Err(Error::StrideTooLarge { stride: self.stride, window, max_length: self.max_length, added });
        }
        Ok(())
    }

    /// Returns how many tokens of each text suffice to determine the kept row, given a `budget` of tokens of text.
    ///
    /// One more than can remain, so that truncation is noticed; `usize::MAX` where every token matters. The caller must
    /// handle two cases in which lengths beyond that matter: an odd token of a pair, and the values named in errors.
    pub(crate) fn limits(&self, budget: usize, pair: bool) -> [usize; 2] {
        let limit = budget.saturating_add(1);
        match (self.side, self.strategy) {
            // The kept tokens are at the end.
            (Side::Left, _) => [usize::MAX; 2],
            (Side::Right, TruncationStrategy::LongestFirst) => [limit; 2],
            (Side::Right, TruncationStrategy::OnlyFirst) if pair => [limit, usize::MAX],
            (Side::Right, TruncationStrategy::OnlyFirst) => [limit; 2],
            (Side::Right, TruncationStrategy::OnlySecond) => [usize::MAX, limit],
        }
    }

    /// Returns how many tokens of each text remain, given their lengths and the number of special tokens.
    ///
    /// # Errors
    ///
    /// As [`budget`](Truncation::budget); [`Error::SequenceTooShort`] if the text to truncate is not longer than the excess;
    /// [`Error::SecondSequenceNotProvided`] for `OnlySecond` without a pair; [`Error::StrideTooLarge`] if a window that
    /// results is not larger than the stride.
    pub(crate) fn targets(&self, first: usize, second: Option<usize>, added: usize) -> Result<(usize, usize)> {
        let budget = self.budget(added)?;
        let (a, b) = (first, second.unwrap_or(0));
        if a + b <= budget {
            return Ok((a, b));
        }
        if budget == 0 {
            return Ok((0, 0));
        }
        let excess = a + b - budget;
        let targets = match (self.strategy, second) {
            (TruncationStrategy::LongestFirst, None) => (budget, 0),
            (TruncationStrategy::LongestFirst, Some(_)) => {
                let (low, high) = (a.min(b), a.max(b));
                let high = if low > budget { low } else { low.max(budget - low).min(high) };
                let (low, high) = match low + high > budget {
                    true => (budget / 2, budget / 2 + budget % 2),
                    false => (low, high),
                };
                if a > b { (high, low) } else { (low, high) }
            }
            (TruncationStrategy::OnlyFirst, _) => (shorten("first", a, excess)?, b),
            (TruncationStrategy::OnlySecond, None) => return Err(Error::SecondSequenceNotProvided),
            (TruncationStrategy::OnlySecond, Some(_)) => (a, shorten("second", b, excess)?),
        };
        self.check_stride(a, targets.0, added)?;
        self.check_stride(b, targets.1, added)?;
        Ok(targets)
    }

    /// Checks that windows of `target` tokens advance through a text of `length` tokens.
    fn check_stride(&self, length: usize, target: usize, added: usize) -> Result<()> {
        if target < length && target > 0 && self.stride >= target {
            let Truncation { stride, max_length, .. } = *self;
            return Err(Error::StrideTooLarge { stride, window: target, max_length, added });
        }
        Ok(())
    }
}

/// Returns `length` less `excess`, which must leave something; `which` names the text in the error.
fn shorten(which: &'static str, length: usize, excess: usize) -> Result<usize> {
    if length > excess { Ok(length - excess) } else { Err(Error::SequenceTooShort { which, length, excess }) }
}
