//! Threads that live as long as one call and run in parallel to the calling thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A request to stop early, shared by all threads of one [`fork_join`].
///
/// It only ever goes from "not cancelled" to "cancelled". Workers poll it; nothing is interrupted.
#[derive(Debug, Default)]
pub struct Cancellation(AtomicBool);

impl Cancellation {
    /// Asks all threads to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](Cancellation::cancel) was called, or one of the threads panicked. Costs one relaxed load.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Cancels when it is dropped by a panic.
pub(crate) struct CancelOnPanic<'a>(pub(crate) &'a Cancellation);

impl Drop for CancelOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.cancel();
        }
    }
}

/// Runs `work` for each item on a new thread each and `caller` on the calling thread, all at the same time.
///
/// Returns what `caller` returned, and the results of `work` in the order of the items, once all threads have ended. Items
/// carry the per-thread state: an item can be an exclusive reference to it, or a part of the input together with one.
/// `caller` runs on the calling thread, so it may use what other threads must not touch, such as a progress callback; it
/// can also feed the workers through a channel.
///
/// Use this if each thread keeps a state between calls or the calling thread has a different job; use
/// [`map_with`](crate::map_with) to share many equal items. Starting a thread costs some tens of microseconds. Without
/// items no thread is started.
///
/// The functions decide what cancellation means: typically `caller` calls [`Cancellation::cancel`] on an error or when the
/// user interrupts, and `work` polls [`Cancellation::is_cancelled`] in its loop.
///
/// # Panics
///
/// If `caller` or a thread panics, or a thread cannot be started; the others see the cancellation, and the panic continues
/// here once they have ended. A `caller` that feeds a channel must own the sender, so that a panic closes the channel and
/// the workers end.
///
/// # Examples
///
/// Each thread sums its part; the calling thread sums the first.
///
/// ```
/// use wordpiece_parallel::fork_join;
///
/// let numbers: Vec<u64> = (1..=100).collect();
/// let mut parts = numbers.chunks(25);
/// let first = parts.next().unwrap();
/// let (own, others) = fork_join(parts, |part, _| part.iter().sum::<u64>(), |_| first.iter().sum::<u64>());
/// assert_eq!(own + others.iter().sum::<u64>(), 5050);
/// ```
///
/// Fallible work: the first error in the order of the items is returned, and the calling thread stops early.
///
/// ```
/// use wordpiece_parallel::fork_join;
///
/// let texts = ["1", "2", "x", "4"];
/// let parse = |text: &str| text.parse::<u32>().map_err(|error| error.to_string());
/// let ((), parsed) = fork_join(texts, |text, cancellation| {
///     parse(text).inspect_err(|_| cancellation.cancel())
/// }, |_| ());
/// let parsed: Result<Vec<u32>, String> = parsed.into_iter().collect();
/// assert_eq!(parsed.unwrap_err(), "invalid digit found in string");
/// ```
pub fn fork_join<I: Send, R: Send, C>(
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I, &Cancellation) -> R + Sync,
    caller: impl FnOnce(&Cancellation) -> C,
) -> (C, Vec<R>) {
    let cancellation = Cancellation::default();
    let guarded = |item: I| {
        let _guard = CancelOnPanic(&cancellation);
        work(item, &cancellation)
    };
    thread::scope(|scope| {
        // Also set when starting a thread or `caller` fails: the scope waits for the threads that have begun.
        let _guard = CancelOnPanic(&cancellation);
        let guarded = &guarded;
        let threads: Vec<_> = items.into_iter().map(|item| scope.spawn(move || guarded(item))).collect();
        let own = caller(&cancellation);
        let join = |thread: thread::ScopedJoinHandle<'_, R>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (own, threads.into_iter().map(join).collect())
    })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::sync_channel;
    use std::sync::{Arc, Mutex};

    use super::fork_join;

    #[test]
    fn results_keep_the_order_of_the_items_and_states_can_be_exclusive() {
        let mut states = vec![0; 5];
        let items = states.iter_mut().enumerate();
        let (own, results) = fork_join(
            items,
            |(i, state), _| {
                *state += i;
                10 * i
            },
            |_| "own",
        );
        assert_eq!((own, results), ("own", vec![0, 10, 20, 30, 40]));
        assert_eq!(states, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_panic_of_the_caller_cancels_the_threads_and_continues() {
        let wait = |(), cancellation: &super::Cancellation| {
            while !cancellation.is_cancelled() {
                std::thread::yield_now();
            }
        };
        let panic = catch_unwind(|| fork_join([(), ()], wait, |_| panic!("of the caller"))).unwrap_err();
        assert_eq!(*panic.downcast::<&str>().unwrap(), "of the caller");
    }

    #[test]
    fn a_panic_of_a_thread_cancels_the_caller_and_continues() {
        let caller = |cancellation: &super::Cancellation| {
            while !cancellation.is_cancelled() {
                std::thread::yield_now();
            }
        };
        let panic = catch_unwind(|| fork_join([()], |(), _| panic!("of a thread"), caller)).unwrap_err();
        assert_eq!(*panic.downcast::<&str>().unwrap(), "of a thread");
    }

    #[test]
    fn a_caller_that_feeds_a_channel_ends_the_threads_when_it_panics() {
        let (sender, receiver) = sync_channel::<u32>(1);
        let receiver = Arc::new(Mutex::new(receiver));
        let items = vec![receiver.clone(), receiver];
        let work = |receiver: Arc<Mutex<std::sync::mpsc::Receiver<u32>>>, _: &super::Cancellation| {
            while receiver.lock().unwrap().recv().is_ok() {}
        };
        let caller = move |_: &super::Cancellation| {
            sender.send(1).unwrap();
            let sender = sender;
            drop(sender);
            panic!("while feeding")
        };
        assert!(catch_unwind(AssertUnwindSafe(|| fork_join::<_, _, ()>(items, work, caller))).is_err());
    }
}
