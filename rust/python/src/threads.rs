//! How many threads, and the pools they live in.

use std::process;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::thread::available_parallelism;

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error;

/// A batch with fewer bytes of text is encoded on the calling thread: waking others would take longer.
const INLINE_BYTES: usize = 32 << 10;

/// The most threads that can be asked for: a slip such as `threads=10**6` is told, not tried.
const MOST: usize = 1024;

/// What `set_num_threads` set; 0: what the process may use.
static DEFAULT: AtomicUsize = AtomicUsize::new(0);

/// The pools made so far, the latest first. Entries are never removed or changed.
static POOLS: AtomicPtr<Entry> = AtomicPtr::new(std::ptr::null_mut());

struct Entry {
    /// The process that made the pool. After a fork the child finds the entries, but the threads behind them are not there.
    process: u32,
    size: usize,
    pool: ThreadPool,
    next: *const Entry,
}

/// The threads that help the calling one with `bytes` of text, `None` where it works alone.
///
/// The answer is the same whatever the number of threads, so a machine that can start no thread is no error.
pub fn pool(threads: Option<usize>, bytes: usize) -> Option<&'static ThreadPool> {
    if bytes < INLINE_BYTES { None } else { team(threads) }
}

/// The threads that help the calling one, whatever there is to do; `None` where it works alone.
pub fn team(threads: Option<usize>) -> Option<&'static ThreadPool> {
    match number(threads) {
        // The calling thread is one of them.
        1 => None,
        size => pool_of(size - 1),
    }
}

/// The number of threads to use.
pub fn number(threads: Option<usize>) -> usize {
    match threads.unwrap_or_else(|| DEFAULT.load(Ordering::Relaxed)) {
        // Asked anew each time: affinity and control group can change, and a forked worker often sets its own.
        0 => available_parallelism().map_or(1, usize::from).min(MOST),
        size => size,
    }
}

/// Finds or makes the pool of this process with so many workers.
///
/// A list that only grows needs no lock, so a process that forks at any moment leaves its child nothing locked.
fn pool_of(size: usize) -> Option<&'static ThreadPool> {
    let process = process::id();
    let mut head = POOLS.load(Ordering::Acquire);
    if let Some(pool) = find(head, process, size) {
        return Some(pool);
    }
    let name = |i| format!("wordpiece-{i}");
    let pool = ThreadPoolBuilder::new().num_threads(size).thread_name(name).build().ok()?;
    let entry = Box::into_raw(Box::new(Entry { process, size, pool, next: head }));
    loop {
        match POOLS.compare_exchange(head, entry, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: it was put into the list, where it stays for ever.
            Ok(_) => return Some(unsafe { &(*entry).pool }),
            Err(now) => {
                if let Some(pool) = find(now, process, size) {
                    // Another thread was quicker.
                    // SAFETY: nobody else has seen this entry.
                    drop(unsafe { Box::from_raw(entry) });
                    return Some(pool);
                }
                head = now;
                // SAFETY: nobody else has seen this entry.
                unsafe { (*entry).next = head };
            }
        }
    }
}

fn find(mut entry: *const Entry, process: u32, size: usize) -> Option<&'static ThreadPool> {
    // SAFETY: pointers in the list are null or those of entries, which stay for ever and do not change.
    while let Some(this) = unsafe { entry.as_ref() } {
        if (this.process, this.size) == (process, size) {
            return Some(&this.pool);
        }
        entry = this.next;
    }
    None
}

/// Checks a number of threads; `None` stands for the default.
pub fn checked(name: &str, threads: Option<&Bound<'_, PyAny>>) -> PyResult<Option<usize>> {
    let Some(given) = threads else { return Ok(None) };
    match given.extract::<usize>() {
        Ok(threads) if (1..=MOST).contains(&threads) && !given.is_instance_of::<pyo3::types::PyBool>() => {
            Ok(Some(threads))
        }
        _ => Err(error::input(format!(
            "{name} must be a whole number from 1 to {MOST}, or None for as many as this process may use, not {}",
            given.repr()?
        ))),
    }
}

/// Set how many threads are used where a call does not say so with `threads=`.
///
/// Parameters
/// ----------
/// n
///     A number from 1 to 1024; None, the default at the start, for as many as affinity and control group allow.
///
/// Raises
/// ------
/// InputError
///     `n` is no such number.
#[pyfunction]
pub fn set_num_threads(n: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    DEFAULT.store(checked("n", n)?.unwrap_or(0), Ordering::Relaxed);
    Ok(())
}
