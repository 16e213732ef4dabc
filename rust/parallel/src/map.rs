//! A map over items that the calling thread shares with a pool.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::interrupt;
use crate::pool::{Workers, lock};
use crate::processor;

/// Calls `f` with each item and a per-thread state made by `init`, and returns the results in the order of the items.
///
/// The calling thread takes part: it would only wait otherwise, and it has begun before the first worker wakes up. Items
/// are handed out one at a time, in order, so put the longest first where they differ in size. Without workers, or with a
/// single item, the calling thread does everything and no worker is woken. Before each item is a
/// [`checkpoint`](crate::checkpoint).
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
    workers: Option<Workers>,
    init: impl Fn() -> S + Sync,
    f: impl Fn(&mut S, I) -> R + Sync,
) -> Vec<R> {
    let n = items.len();
    let Some(workers) = workers.filter(|_| n > 1) else {
        let mut state = init();
        let one = |item| {
            interrupt::checkpoint();
            f(&mut state, item)
        };
        return items.into_iter().map(one).collect();
    };
    let queue = Mutex::new(items.into_iter().enumerate());
    let results = Mutex::new(Vec::with_capacity(n));
    let work = || {
        let (mut state, mut own) = (init(), Vec::new());
        loop {
            interrupt::checkpoint();
            let next = lock(&queue).next();
            let Some((number, item)) = next else { break };
            own.push((number, f(&mut state, item)));
        }
        // Once for each thread: a lock that all take after each item would be passed between them.
        lock(&results).append(&mut own);
    };
    run_on_all(workers, n - 1, &work);
    // Not sorted: a sort would be compiled for each copy of this function, of which there are dozens, and is longer than
    // the function.
    let mut in_order: Vec<Option<R>> = (0..n).map(|_| None).collect();
    for (number, result) in results.into_inner().unwrap_or_else(PoisonError::into_inner) {
        in_order[number] = Some(result);
    }
    in_order.into_iter().flatten().collect()
}

/// Runs `work` on the calling thread and on at most `limit` workers, as part of the computation of the calling thread.
fn run_on_all(workers: Workers, limit: usize, work: &(dyn Fn() + Sync)) {
    let caller = processor::current();
    interrupt::with_computation(|computation| {
        let _helped = computation.map(interrupt::Computation::helped);
        let help = || {
            processor::leave(caller);
            interrupt::take_part(computation, work);
        };
        workers.run_beside(limit, &help, work);
    });
}

/// As [`map_with`], for a function that can fail: once it has, no later item is begun.
///
/// # Errors
///
/// The error of the first item that has one, which does not depend on the threads: those before it are all computed.
///
/// # Panics
///
/// As [`map_with`].
///
/// # Examples
///
/// ```
/// use wordpiece_parallel::{thread_pool, try_map_with};
///
/// let read = |(): &mut (), text: &'static str| text.parse::<u32>().map_err(|_| text);
/// assert_eq!(try_map_with(vec!["1", "x", "3", "y"], thread_pool(2), || (), read), Err("x"));
/// ```
pub fn try_map_with<I: Send, S, R: Send, E: Send>(
    items: Vec<I>,
    workers: Option<Workers>,
    init: impl Fn() -> S + Sync,
    f: impl Fn(&mut S, I) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    // The least number of an item that failed. A thread that reads an old value does more than it must.
    let failed = AtomicUsize::new(usize::MAX);
    let one = |state: &mut S, (number, item)| {
        if number > failed.load(Ordering::Relaxed) {
            return None;
        }
        let result = f(state, item);
        if result.is_err() {
            failed.fetch_min(number, Ordering::Relaxed);
        }
        Some(result)
    };
    map_with(items.into_iter().enumerate().collect(), workers, init, one).into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{map_with, try_map_with};
    use crate::thread_pool;

    #[test]
    fn results_keep_the_order_of_the_items_on_any_number_of_threads() {
        const ROUNDS: usize = if cfg!(miri) { 1 } else { 20 };
        let expected: Vec<usize> = (0..500).map(|i| i * i).collect();
        for pool in [None, thread_pool(1), thread_pool(3)] {
            for _ in 0..ROUNDS {
                assert_eq!(map_with((0..500).collect(), pool, || (), |(), i: usize| i * i), expected);
            }
        }
    }
    #[test]
    fn the_first_error_is_returned_and_no_item_is_begun_after_it() {
        for pool in [None, thread_pool(1), thread_pool(3)] {
            let begun = AtomicUsize::new(0);
            let f = |(): &mut (), i: usize| {
                begun.fetch_add(1, Ordering::Relaxed);
                if i >= 10 { Err(i) } else { Ok(i) }
            };
            assert_eq!(try_map_with((0..1000).collect(), pool, || (), f), Err(10));
            // Each thread may have begun one more before the error was known.
            let most = 11 + pool.map_or(0, |pool| pool.count());
            assert!(begun.into_inner() <= most, "at most {most} items are begun");
            assert_eq!(try_map_with((0..10).collect(), pool, || (), |(), i| Ok::<_, ()>(i)), Ok((0..10).collect()));
        }
    }
}
