//! Work shared out among threads, the calling one among them.

use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rayon::ThreadPool;

/// How long a worker stays awake for the next batch: about what it takes to wake it up.
const LINGER: Duration = Duration::from_micros(50);

/// How many times work was shared: a number that changes when workers are wanted.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Calls `f` with each item and a state that `init` makes for each thread; results keep the order of the items.
///
/// The calling thread works as well: it would only wait, and while others wake up it has begun. Without a pool it does all.
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
                // Before the caller may go on: the call after this one changes it.
                let calls = CALLS.load(Ordering::Relaxed);
                done.fetch_add(1, Ordering::Release);
                rayon::spawn(move || linger(|| CALLS.load(Ordering::Relaxed) != calls));
            });
        }
        CALLS.fetch_add(1, Ordering::Relaxed);
        work();
        // The scope waits asleep.
        linger(|| done.load(Ordering::Acquire) == workers);
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Keeps a thread awake until something is so, or not for long.
///
/// To wake a thread that sleeps takes some 30 µs, in which 20 KB of text are tokenized: with batches of 64 KiB, one after
/// the other, a second thread would be of no use. It does not yield, or both threads would share a processor while
/// another one is idle: to the scheduler they seem content.
fn linger(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() && start.elapsed() < LINGER {
        for _ in 0..16 {
            hint::spin_loop();
        }
    }
}

/// Where threads run.
#[cfg(target_os = "linux")]
mod processor {
    use std::mem::{MaybeUninit, size_of};

    /// The processor that this thread runs on; None where the system does not tell.
    pub fn current() -> Option<usize> {
        // SAFETY: no argument, and no memory is touched.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    /// Goes elsewhere if this thread runs on that processor and may run on others.
    pub fn leave(other: Option<usize>) {
        if other.is_none() || current() != other {
            return;
        }
        let mut allowed = MaybeUninit::<libc::cpu_set_t>::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: the set is as large as is said, all zeros is a set, and 0 is this thread.
        let (status, allowed) =
            unsafe { (libc::sched_getaffinity(0, size, allowed.as_mut_ptr()), allowed.assume_init()) };
        let Some(here) = other.filter(|&cpu| status == 0 && cpu < libc::CPU_SETSIZE as usize) else { return };
        let mut others = allowed;
        // SAFETY: as above; the processor's number is less than the set has room for.
        unsafe {
            libc::CPU_CLR(here, &mut others);
            if libc::CPU_COUNT(&others) > 0 && libc::sched_setaffinity(0, size, &others) == 0 {
                libc::sched_setaffinity(0, size, &allowed);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod processor {
    pub fn current() -> Option<usize> {
        None
    }

    pub fn leave(_other: Option<usize>) {}
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
