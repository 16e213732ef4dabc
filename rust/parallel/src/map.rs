//! A map over items that the calling thread shares with a pool.

use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rayon::ThreadPool;

use crate::processor;

/// How long an idle worker spins before it sleeps: about as long as waking it up takes.
const LINGER: Duration = Duration::from_micros(50);

/// Incremented by each call that wants workers, so that a lingering worker notices the next call.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Calls `f` with each item and a per-thread state made by `init`, and returns the results in the order of the items.
///
/// The calling thread takes part: it would only wait otherwise, and it has begun before the first worker wakes up. Items
/// are handed out one at a time, in order, so put the longest first where they differ in size. Without a pool, or with a
/// single item, the calling thread does everything and no worker is woken.
///
/// # Panics
///
/// If `init` or `f` panics, after the remaining threads have finished.
///
/// # Examples
///
/// ```
/// use wordpiece_parallel::{map_with, thread_pool};
///
/// let words = vec!["a", "bb", "ccc"];
/// let doubled = map_with(words, thread_pool(2), String::new, |buffer, word| {
///     buffer.clear();
///     buffer.push_str(word);
///     buffer.push_str(word);
///     buffer.len()
/// });
/// assert_eq!(doubled, [2, 4, 6]);
/// ```
pub fn map_with<I: Send, S, R: Send>(
    items: Vec<I>,
    pool: Option<&ThreadPool>,
    init: impl Fn() -> S + Sync,
    f: impl Fn(&mut S, I) -> R + Sync,
) -> Vec<R> {
    let n = items.len();
    let Some(pool) = pool.filter(|_| n > 1) else {
        let mut state = init();
        return items.into_iter().map(|item| f(&mut state, item)).collect();
    };
    let queue = Mutex::new(items.into_iter().enumerate());
    let results = Mutex::new(Vec::with_capacity(n));
    let caller = processor::current();
    let work = || {
        let mut state = init();
        loop {
            let next = lock(&queue).next();
            let Some((number, item)) = next else { break };
            let result = f(&mut state, item);
            lock(&results).push((number, result));
        }
    };
    let done = AtomicUsize::new(0);
    let workers = pool.current_num_threads().min(n - 1);
    pool.in_place_scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|_| {
                processor::leave(caller);
                work();
                // Read before the caller is released: its next call changes the count.
                let calls = CALLS.load(Ordering::Relaxed);
                done.fetch_add(1, Ordering::Release);
                rayon::spawn(move || linger(|| CALLS.load(Ordering::Relaxed) != calls));
            });
        }
        CALLS.fetch_add(1, Ordering::Relaxed);
        work();
        // Spin first: the end of the scope would put this thread to sleep.
        linger(|| done.load(Ordering::Acquire) == workers);
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Spins until `condition` holds or [`LINGER`] has passed.
///
/// Waking a sleeping thread takes some 30 µs, in which 20 KB of text are tokenized: for batches of 64 KiB in a row, a
/// second thread would be of no use. The loop does not yield: two yielding threads look idle to the scheduler, which then
/// leaves both on one processor while another has nothing to do.
fn linger(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() && start.elapsed() < LINGER {
        for _ in 0..16 {
            hint::spin_loop();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::map_with;
    use crate::thread_pool;

    #[test]
    fn results_keep_the_order_of_the_items_on_any_number_of_threads() {
        let expected: Vec<usize> = (0..500).map(|i| i * i).collect();
        for pool in [None, thread_pool(1), thread_pool(3)] {
            for _ in 0..20 {
                assert_eq!(map_with((0..500).collect(), pool, || (), |(), i: usize| i * i), expected);
            }
        }
    }
}
