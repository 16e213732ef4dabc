//! Progress reporting and cancellation of counting and learning.
//!
//! The caller passes an observer, a function that is called about every 50 ms with the [`Progress`] and returns whether
//! to continue. The learners call [`Monitor::step`] in their inner loops; it costs an addition and a comparison, and reads
//! the clock once in 1024 steps.

use std::time::{Duration, Instant};

use crate::error::{Error, Result, TrainingError};

/// The current stage of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reading and counting; progress is measured in bytes.
    Counting,
    /// Learning; progress is measured in tokens, or for `top_down` in thresholds tried.
    Learning,
}

/// The progress of the current stage.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The present stage.
    pub stage: Stage,
    /// The amount of work done, in the unit of the stage.
    pub done: u64,
    /// The total amount of work in the stage, in the same unit, if known.
    pub total: Option<u64>,
}

/// The least time between two calls of the observer.
const INTERVAL: Duration = Duration::from_millis(50);

/// The number of steps between two readings of the clock.
const STEPS_PER_CHECK: u32 = 1024;

/// Calls the observer regularly, and turns its wish to stop into [`TrainingError::Interrupted`].
pub(super) struct Monitor<'a> {
    observer: &'a mut dyn FnMut(Progress) -> bool,
    progress: Progress,
    /// When the observer was called last.
    last: Instant,
    /// Steps since the clock was read last.
    steps: u32,
}

impl<'a> Monitor<'a> {
    /// Creates a monitor that reports to `observer`, which returns false to stop the work.
    pub fn new(observer: &'a mut dyn FnMut(Progress) -> bool) -> Monitor<'a> {
        let progress = Progress { stage: Stage::Counting, done: 0, total: None };
        Monitor { observer, progress, last: Instant::now(), steps: 0 }
    }

    /// Begins a stage and reports it at once.
    pub fn begin(&mut self, stage: Stage, total: Option<u64>) -> Result<()> {
        self.progress = Progress { stage, done: 0, total };
        self.report()
    }

    /// Sets how much of the stage is done; the next report includes it.
    pub fn set_done(&mut self, done: u64) {
        self.progress.done = done;
    }

    /// Counts a small step, of up to a microsecond.
    #[inline(always)]
    pub fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps < STEPS_PER_CHECK { Ok(()) } else { self.check() }
    }

    /// Counts the work on a word of this many symbols: a step for the word and one more for every 64 symbols.
    #[inline(always)]
    pub fn step_word(&mut self, symbols: usize) -> Result<()> {
        self.steps += 1 + u32::try_from(symbols / 64).unwrap_or(STEPS_PER_CHECK).min(STEPS_PER_CHECK);
        if self.steps < STEPS_PER_CHECK { Ok(()) } else { self.check() }
    }

    /// Reads the clock, and reports if the interval has passed. Call this after work that may have taken long.
    pub fn check(&mut self) -> Result<()> {
        self.steps = 0;
        if self.last.elapsed() < INTERVAL { Ok(()) } else { self.report() }
    }

    /// Calls the observer now.
    pub fn report(&mut self) -> Result<()> {
        self.last = Instant::now();
        match (self.observer)(self.progress) {
            true => Ok(()),
            false => Err(Error::Training(TrainingError::Interrupted)),
        }
    }
}
