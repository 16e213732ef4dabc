//! How much of each text stays.

use crate::error::{Error, Result};

/// Cutting rows to a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    /// The length of a row, special tokens included.
    pub max_length: usize,
    /// How many tokens two neighbouring windows share.
    pub stride: usize,
    /// Which text gives way.
    pub strategy: TruncationStrategy,
    /// From which side.
    pub side: Side,
}

/// Which text of a pair gives way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TruncationStrategy {
    /// The longer one, token by token; the odd token is left to the longer, on a tie to the second.
    #[default]
    LongestFirst,
    /// The first alone.
    OnlyFirst,
    /// The second alone.
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
    /// What is left for the texts beside `added` special tokens; an error when that is less than nothing.
    pub fn budget(&self, added: usize) -> Result<usize> {
        self.max_length.checked_sub(added).ok_or(Error::MaxLengthBelowSpecials { max_length: self.max_length, added })
    }

    /// Checks what does not depend on a text: room for the special tokens, and a stride smaller than a window.
    pub fn check(&self, added: usize) -> Result<()> {
        let window = self.budget(added)?;
        if self.stride > 0 && self.stride >= window {
            return Err(Error::StrideTooLarge { stride: self.stride, window, max_length: self.max_length, added });
        }
        Ok(())
    }

    /// How many tokens of each text are enough to know which stay, when `budget` of them do: one more than can stay.
    pub(crate) fn enough(&self, budget: usize, pair: bool) -> [usize; 2] {
        let some = budget.saturating_add(1);
        match (self.side, self.strategy) {
            // What stays is at the end.
            (Side::Left, _) => [usize::MAX; 2],
            (Side::Right, TruncationStrategy::LongestFirst) => [some; 2],
            (Side::Right, TruncationStrategy::OnlyFirst) if pair => [some, usize::MAX],
            (Side::Right, TruncationStrategy::OnlyFirst) => [some; 2],
            (Side::Right, TruncationStrategy::OnlySecond) => [usize::MAX, some],
        }
    }

    /// How many tokens of each text stay, given their lengths and the number of special tokens around them.
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

    fn check_stride(&self, length: usize, target: usize, added: usize) -> Result<()> {
        if target < length && target > 0 && self.stride >= target {
            let Truncation { stride, max_length, .. } = *self;
            return Err(Error::StrideTooLarge { stride, window: target, max_length, added });
        }
        Ok(())
    }
}

fn shorten(which: &'static str, length: usize, excess: usize) -> Result<usize> {
    if length > excess { Ok(length - excess) } else { Err(Error::SequenceTooShort { which, length, excess }) }
}
