//! Interruption: a computation on any number of threads that ends early when the calling thread finds out that it should.
//!
//! [`interruptible`] runs a computation and sets, for its duration, what [`checkpoint`] does on the calling thread and on
//! the threads that [`map_with`](crate::map_with) shares work with: the calling thread polls every 20 ms, the others read a
//! flag. A checkpoint of an interrupted computation unwinds its thread, as a panic does but without a message, so loops deep
//! inside a computation need no result to pass on, and everything is dropped on the way. Without [`interruptible`], a
//! checkpoint does nothing.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use crate::fork_join::{CancelOnPanic, Cancellation};

/// The interval between two polls of the calling thread.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The reason why [`interruptible`] returned no result: its computation was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

/// What a thread that takes part in an interruptible computation knows of it.
struct Participant<'a> {
    cancellation: &'a Cancellation,
    /// `Some` on the calling thread.
    poll: Option<Poll<'a>>,
}

struct Poll<'a> {
    /// Returns whether to continue.
    function: RefCell<&'a mut dyn FnMut() -> bool>,
    /// When to call it next.
    due: Cell<Instant>,
}

thread_local! {
    /// Null, or what this thread takes part in. Set for the duration of [`Participant::enter`].
    static CURRENT: Cell<*const Participant<'static>> = const { Cell::new(ptr::null()) };
}

impl Participant<'_> {
    /// Runs `work` with this as what checkpoints refer to.
    fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Restore(*const Participant<'static>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        // The pointer's lifetime ends with this function: `Restore` replaces it before `self` can go, even by a panic.
        let _restore = Restore(CURRENT.replace(ptr::from_ref(self).cast()));
        work()
    }

    /// Polls if it is time to. Returns whether the computation is interrupted.
    fn is_interrupted(&self) -> bool {
        if let Some(poll) = &self.poll
            && !self.cancellation.is_cancelled()
            && Instant::now() >= poll.due.get()
            // In use if the function itself reaches a checkpoint, which must not poll again.
            && let Ok(mut function) = poll.function.try_borrow_mut()
        {
            // A poll that panics ends the computation, too, which the other threads would otherwise finish.
            let _guard = CancelOnPanic(self.cancellation);
            if !function() {
                self.cancellation.cancel();
            }
            poll.due.set(Instant::now() + POLL_INTERVAL);
        }
        self.cancellation.is_cancelled()
    }
}

/// Runs `work`, and interrupts it when `poll`, which is called every 20 ms on this thread, returns false.
///
/// `work` notices at its checkpoints: each item of a [`map_with`](crate::map_with) is one, and each call of [`checkpoint`].
/// It is then unwound on all threads, and what it borrowed mutably is left as a panic would leave it. The first poll is
/// 20 ms after the start: a short computation is never polled.
///
/// # Errors
///
/// [`Interrupted`] if `poll` returned false and `work` did not reach its end.
///
/// # Panics
///
/// If `work` or `poll` panics.
///
/// # Examples
///
/// ```
/// use wordpiece_parallel::{Interrupted, checkpoint, interruptible};
///
/// let mut polls = 0;
/// let endless = interruptible(&mut || { polls += 1; polls < 3 }, || loop { checkpoint() });
/// assert_eq!(endless, Err::<(), _>(Interrupted));
/// assert_eq!(polls, 3);
/// ```
pub fn interruptible<T>(poll: &mut dyn FnMut() -> bool, work: impl FnOnce() -> T) -> Result<T, Interrupted> {
    let cancellation = Cancellation::default();
    let poll = Poll { function: RefCell::new(poll), due: Cell::new(Instant::now() + POLL_INTERVAL) };
    let caller = Participant { cancellation: &cancellation, poll: Some(poll) };
    // Unwind safety: an interrupted computation leaves what a panic would leave; see the documentation.
    match catch_unwind(AssertUnwindSafe(|| caller.enter(work))) {
        Ok(result) => Ok(result),
        Err(panic) if panic.is::<Interrupted>() => Err(Interrupted),
        Err(panic) => resume_unwind(panic),
    }
}

/// Ends the computation here if it was interrupted: unwinds to [`interruptible`]. Otherwise returns at once.
///
/// It costs a few nanoseconds, on the calling thread a reading of the clock as well (some 25 ns): call it about every 10 µs
/// to 10 ms of work, where unwinding is allowed.
#[inline]
pub fn checkpoint() {
    if !CURRENT.get().is_null() {
        check();
    }
}

#[inline(never)]
fn check() {
    if poll() {
        resume_unwind(Box::new(Interrupted));
    }
}

/// Polls if it is time to; returns whether the computation of this thread is interrupted. Unwinds only if the poll panics.
pub(crate) fn poll() -> bool {
    // SAFETY: a pointer that is not null was set by `enter` on this thread, which has not returned: its `self` is alive.
    let current = unsafe { CURRENT.get().as_ref() };
    current.is_some_and(|participant| !thread::panicking() && participant.is_interrupted())
}

/// Calls `f` with the cancellation of the computation that this thread takes part in.
pub(crate) fn with_cancellation<T>(f: impl FnOnce(Option<&Cancellation>) -> T) -> T {
    // SAFETY: as in `poll`; the reference does not outlive this call, during which `enter` does not return.
    f(unsafe { CURRENT.get().as_ref() }.map(|participant| participant.cancellation))
}

/// Runs `work` on a thread that helps the one whose cancellation this is.
pub(crate) fn take_part<T>(cancellation: Option<&Cancellation>, work: impl FnOnce() -> T) -> T {
    match cancellation {
        Some(cancellation) => Participant { cancellation, poll: None }.enter(work),
        None => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::{Duration, Instant};

    use super::{Interrupted, checkpoint, interruptible};
    use crate::{map_with, thread_pool};

    #[test]
    fn all_threads_end_when_the_caller_is_interrupted() {
        for workers in [0, 1, 3] {
            let pool = thread_pool(workers).filter(|_| workers > 0);
            let start = Instant::now();
            let endless = |(): &mut (), _: usize| loop {
                checkpoint();
            };
            let mut go_on = || start.elapsed() < Duration::from_millis(50);
            let ended = interruptible(&mut go_on, || map_with((0..8).collect(), pool, || (), endless));
            assert_eq!(ended, Err::<Vec<()>, _>(Interrupted));
            assert!(start.elapsed() < Duration::from_secs(if cfg!(miri) { 60 } else { 2 }));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "compares short times")]
    fn a_caller_that_waits_for_workers_polls() {
        let start = Instant::now();
        let main = std::thread::current().id();
        let work = |(): &mut (), _: usize| {
            while std::thread::current().id() != main {
                checkpoint();
            }
            // The caller's item ends once a worker has taken the other one.
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut go_on = || start.elapsed() < Duration::from_millis(100);
        let ended = interruptible(&mut go_on, || map_with((0..2).collect(), thread_pool(1), || (), work));
        // Without a second processor the caller may take both items.
        assert!(matches!(ended, Err(Interrupted)) || start.elapsed() < Duration::from_millis(100));
    }

    #[test]
    fn outside_of_a_computation_a_checkpoint_does_nothing_and_panics_are_passed_on() {
        checkpoint();
        let panic = catch_unwind(AssertUnwindSafe(|| interruptible(&mut || true, || panic!("a bug")))).unwrap_err();
        assert_eq!(*panic.downcast::<&str>().unwrap(), "a bug");
        checkpoint();
        assert_eq!(interruptible(&mut || false, || 7), Ok(7), "a short computation is not polled");
    }
}
