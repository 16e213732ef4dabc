//! Looking in on work that takes long: progress goes out, a wish to stop comes in.

use std::time::{Duration, Instant};

use crate::error::{Error, Result, TrainingError};

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reading and counting; the unit is the byte.
    Counting,
    /// Learning; the unit is the token, or for `top_down` a step of the search.
    Learning,
}

/// How far it is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// So much of it is done.
    pub done: u64,
    /// Of so much, where that is known.
    pub total: Option<u64>,
}

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Steps between two looks at the clock.
const STEPS: u32 = 1024;

/// Calls whoever watches every 50 ms or so; learners tell it at each small step.
pub struct Watch<'a> {
    observer: &'a mut dyn FnMut(Progress) -> bool,
    now: Progress,
    last: Instant,
    steps: u32,
}

impl<'a> Watch<'a> {
    /// A watch over work that is to be told to `observer`, which returns false to stop it.
    pub fn new(observer: &'a mut dyn FnMut(Progress) -> bool) -> Watch<'a> {
        let now = Progress { stage: Stage::Counting, done: 0, total: None };
        Watch { observer, now, last: Instant::now(), steps: 0 }
    }

    /// Begins a stage.
    pub(crate) fn begin(&mut self, stage: Stage, total: Option<u64>) -> Result<()> {
        self.now = Progress { stage, done: 0, total };
        self.look()
    }

    /// So much is done.
    pub(crate) fn done(&mut self, done: u64) {
        self.now.done = done;
    }

    /// A step of less than a microsecond or so was made.
    #[inline(always)]
    pub(crate) fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps < STEPS { Ok(()) } else { self.pause() }
    }

    /// As many small steps as there are symbols are about to be made, each much smaller than one that counts.
    #[inline(always)]
    pub(crate) fn steps(&mut self, symbols: usize) -> Result<()> {
        self.steps += 1 + u32::try_from(symbols / 64).unwrap_or(STEPS).min(STEPS);
        if self.steps < STEPS { Ok(()) } else { self.pause() }
    }

    /// A step was made that may have taken long.
    pub(crate) fn pause(&mut self) -> Result<()> {
        self.steps = 0;
        if self.last.elapsed() < PAUSE { Ok(()) } else { self.look() }
    }

    /// Tells at once.
    pub(crate) fn look(&mut self) -> Result<()> {
        self.last = Instant::now();
        match (self.observer)(self.now) {
            true => Ok(()),
            false => Err(Error::Training(TrainingError::Interrupted)),
        }
    }
}
