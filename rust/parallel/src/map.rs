//! A map over items that the calling thread shares with a pool.

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
    let caller = processor::current();
    let work = || {
        let mut state = init();
        loop {
            interrupt::checkpoint();
            let next = lock(&queue).next();
            let Some((number, item)) = next else { break };
            let result = f(&mut state, item);
            lock(&results).push((number, result));
        }
    };
    interrupt::with_computation(|computation| {
        let help = || {
            processor::leave(caller);
            interrupt::take_part(computation, work);
        };
        workers.run_beside(n - 1, &help, work);
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::map_with;
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
}
