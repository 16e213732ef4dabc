//! Interruption: a computation on any number of threads that ends early when the calling thread finds out that it should.
//!
//! [`interruptible`] runs a computation and sets, for its duration, what [`checkpoint`] does on the calling thread and on
//! the threads that [`map_with`](crate::map_with) shares work with: the calling thread polls every 20 ms, the others read a
//! flag. A checkpoint of an interrupted computation unwinds its thread, as a panic does but without a message, so loops deep
//! inside a computation need no result to pass on, and everything is dropped on the way. Without [`interruptible`], a
//! checkpoint does nothing.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::fork_join::{CancelOnPanic, Cancellation};

/// The interval between two polls of the calling thread.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The reason why [`interruptible`] returned no result: its computation was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

/// What all threads of an interruptible computation share.
pub(crate) struct Computation {
    cancellation: Cancellation,
    /// Returns whether there is still a caller to compute for.
    is_wanted: fn() -> bool,
    /// The process whose threads help the caller at present; 0 if none do.
    helped_in: AtomicU32,
}

/// Marks a computation as one that other threads help with.
pub(crate) struct Helped<'a> {
    computation: &'a Computation,
    before: u32,
}

impl Drop for Helped<'_> {
    fn drop(&mut self) {
        self.computation.helped_in.store(self.before, Ordering::Relaxed);
    }
}

impl Computation {
    /// Marks the computation as one that other threads help with, until what is returned is dropped.
    pub(crate) fn helped(&self) -> Helped<'_> {
        let before = self.helped_in.swap(process::id(), Ordering::Relaxed);
        Helped { computation: self, before }
    }

    /// Whether this process was forked, by the poll, from the one whose threads help the caller. Here they do not exist.
    fn has_lost_helpers(&self) -> bool {
        let helped_in = self.helped_in.load(Ordering::Relaxed);
        helped_in != 0 && helped_in != process::id()
    }

    /// Whether the helpers of the calling thread are to end.
    fn is_over(&self) -> bool {
        self.cancellation.is_cancelled() || !(self.is_wanted)()
    }
}

/// What a thread that takes part in an interruptible computation knows of it.
struct Participant<'a> {
    computation: &'a Computation,
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
        let Some(poll) = &self.poll else { return self.computation.is_over() };
        let cancellation = &self.computation.cancellation;
        if !cancellation.is_cancelled()
            && Instant::now() >= poll.due.get()
            // In use if the function itself reaches a checkpoint, which must not poll again.
            && let Ok(mut function) = poll.function.try_borrow_mut()
        {
            // A poll that panics ends the computation, too, which the other threads would otherwise finish.
            let _guard = CancelOnPanic(cancellation);
            if !function() || self.computation.has_lost_helpers() {
                cancellation.cancel();
            }
            poll.due.set(Instant::now() + POLL_INTERVAL);
        }
        cancellation.is_cancelled()
    }
}

/// Runs `work`, and interrupts it when `poll`, which is called every 20 ms on this thread, returns false.
///
/// The threads that help this one call `is_wanted` at each checkpoint and end when it returns false: a `poll` that
/// waits for a lock may never return, such as the lock of an interpreter that shuts down. It must cost a few
/// nanoseconds.
///
/// `work` notices at its checkpoints: each item of a [`map_with`](crate::map_with) is one, and each call of [`checkpoint`].
/// It is then unwound on all threads, and what it borrowed mutably is left as a panic would leave it. The first poll is
/// 20 ms after the start: a short computation is never polled.
///
/// A `poll` may fork the process. The computation goes on in the parent; in the child it is interrupted if other threads
/// helped, as they do not exist there.
///
/// # Errors
///
/// [`Interrupted`] if `poll` returned false, or forked, and `work` did not reach its end.
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
/// let endless = interruptible(|| true, &mut || { polls += 1; polls < 3 }, || loop { checkpoint() });
/// assert_eq!(endless, Err::<(), _>(Interrupted));
/// assert_eq!(polls, 3);
/// ```
pub fn interruptible<T>(
    is_wanted: fn() -> bool,
    poll: &mut dyn FnMut() -> bool,
    work: impl FnOnce() -> T,
) -> Result<T, Interrupted> {
    let computation = Computation { cancellation: Cancellation::default(), is_wanted, helped_in: AtomicU32::new(0) };
    let poll = Poll { function: RefCell::new(poll), due: Cell::new(Instant::now() + POLL_INTERVAL) };
    let caller = Participant { computation: &computation, poll: Some(poll) };
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

/// Calls `f` with the computation that this thread takes part in.
pub(crate) fn with_computation<T>(f: impl FnOnce(Option<&Computation>) -> T) -> T {
    // SAFETY: as in `poll`; the reference does not outlive this call, during which `enter` does not return.
    f(unsafe { CURRENT.get().as_ref() }.map(|participant| participant.computation))
}

/// Runs `work` on a thread that helps the one whose computation this is.
pub(crate) fn take_part(computation: Option<&Computation>, work: &(dyn Fn() + Sync)) {
    match computation {
        Some(computation) => Participant { computation, poll: None }.enter(work),
        None => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use super::{Interrupted, checkpoint, interruptible};
    use crate::{map_with, thread_pool};

    /// Counts a thread for as long as it lives.
    struct Running<'a>(&'a AtomicUsize);

    impl<'a> Running<'a> {
        fn new(count: &'a AtomicUsize) -> Self {
            count.fetch_add(1, Ordering::Relaxed);
            Running(count)
        }
    }

    impl Drop for Running<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn all_threads_end_when_the_caller_is_interrupted() {
        for workers in [0, 1, 3] {
            let pool = thread_pool(workers).filter(|_| workers > 0);
            let start = Instant::now();
            let endless = |(): &mut (), _: usize| loop {
                checkpoint();
            };
            let mut go_on = || start.elapsed() < Duration::from_millis(50);
            let ended = interruptible(|| true, &mut go_on, || map_with((0..8).collect(), pool, || (), endless));
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
        let ended = interruptible(|| true, &mut go_on, || map_with((0..2).collect(), thread_pool(1), || (), work));
        // Without a second processor the caller may take both items.
        assert!(matches!(ended, Err(Interrupted)) || start.elapsed() < Duration::from_millis(100));
    }

    #[test]
    fn the_helpers_of_a_caller_that_never_returns_from_its_poll_end() {
        static WANTED: AtomicBool = AtomicBool::new(true);
        let Some(pool) = thread_pool(1) else { return };
        let helpers = AtomicUsize::new(0);
        let main = std::thread::current().id();
        let endless = |(): &mut (), _: usize| {
            let _running = (std::thread::current().id() != main).then(|| Running::new(&helpers));
            loop {
                checkpoint();
            }
        };
        // The poll returns only so that the test can: the helper has ended by then.
        let mut stuck = || {
            WANTED.store(helpers.load(Ordering::Relaxed) == 0, Ordering::Relaxed);
            while !WANTED.load(Ordering::Relaxed) && helpers.load(Ordering::Relaxed) > 0 {
                std::thread::yield_now();
            }
            WANTED.load(Ordering::Relaxed)
        };
        let is_wanted = || WANTED.load(Ordering::Relaxed);
        let ended = interruptible(is_wanted, &mut stuck, || map_with((0..2).collect(), Some(pool), || (), endless));
        assert_eq!(ended, Err::<Vec<()>, _>(Interrupted));
    }

    #[test]
    fn outside_of_a_computation_a_checkpoint_does_nothing_and_panics_are_passed_on() {
        checkpoint();
        let panic =
            catch_unwind(AssertUnwindSafe(|| interruptible(|| true, &mut || true, || panic!("a bug")))).unwrap_err();
        assert_eq!(*panic.downcast::<&str>().unwrap(), "a bug");
        checkpoint();
        assert_eq!(interruptible(|| true, &mut || false, || 7), Ok(7), "a short computation is not polled");
    }
}
