//! Processors: how many this process may use, and on which of them a thread runs. Only Linux reports and accepts the latter.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;
use std::time::Instant;

pub use imp::allowed_processors;
pub(crate) use imp::{current, leave};

/// Returns how many threads of this process can run at the same time: what its affinity and control group allow.
///
/// Affinity is asked for each time, because a forked worker often sets its own. The files of a control group are read at
/// most once a second while it stays the same: reading them takes 60 µs, a tenth of the time of a short sentence.
///
/// # Examples
///
/// ```
/// use wordpiece_parallel::{allowed_processors, available_processors};
///
/// assert!((1..=allowed_processors()).contains(&available_processors()));
/// ```
pub fn available_processors() -> usize {
    /// What was found last: the second in which it was, from 1; the processors of the affinity; the number found.
    static FOUND: AtomicU64 = AtomicU64::new(0);
    static START: OnceLock<Instant> = OnceLock::new();
    const MOST: usize = 0xffff;

    let allowed = allowed_processors().min(MOST) as u64;
    let second = START.get_or_init(Instant::now).elapsed().as_secs() + 1;
    let key = (second << 32) | (allowed << 16);
    let found = FOUND.load(Ordering::Relaxed);
    if found & !(MOST as u64) == key {
        return found as usize & MOST;
    }
    let count = available_parallelism().map_or(1, usize::from).min(MOST);
    FOUND.store(key | count as u64, Ordering::Relaxed);
    count
}

#[cfg(all(target_os = "linux", not(miri)))]
mod imp {
    use std::mem::{MaybeUninit, size_of};

    /// Returns the number of processors in the affinity of the calling thread: no more threads can run at the same time.
    ///
    /// 1024 if there are more, and where the system does not say.
    pub fn allowed_processors() -> usize {
        // SAFETY: the set is valid, and is only read.
        let count = affinity().map_or(libc::CPU_SETSIZE, |allowed| unsafe { libc::CPU_COUNT(&allowed) });
        usize::try_from(count).unwrap_or(1).max(1)
    }

    /// Returns the processors on which the calling thread may run, or `None` if the system does not say, as beyond 1024.
    fn affinity() -> Option<libc::cpu_set_t> {
        let mut allowed = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: `allowed` has as many bytes as the call is told; thread 0 is the calling one.
        let status = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), allowed.as_mut_ptr()) };
        // SAFETY: all zeros is a valid `cpu_set_t`, and so is what the system wrote.
        (status == 0).then(|| unsafe { allowed.assume_init() })
    }

    /// Returns the processor that this thread runs on, or `None` if the system does not report it.
    pub(crate) fn current() -> Option<usize> {
        // SAFETY: the function has no arguments and touches no memory of ours.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    /// Moves this thread to another processor if it runs on `busy` and is allowed to run elsewhere.
    ///
    /// A woken worker often starts on the processor of the thread that woke it, where it would wait for its turn.
    pub(crate) fn leave(busy: Option<usize>) {
        if busy.is_none() || current() != busy {
            return;
        }
        let Some(allowed) = affinity() else { return };
        let Some(here) = busy.filter(|&cpu| cpu < libc::CPU_SETSIZE as usize) else { return };
        let (mut others, size) = (allowed, size_of::<libc::cpu_set_t>());
        // SAFETY: `here` is below `CPU_SETSIZE`, so `CPU_CLR` stays inside the set; both sets have `size` bytes.
        unsafe {
            libc::CPU_CLR(here, &mut others);
            if libc::CPU_COUNT(&others) > 0 && libc::sched_setaffinity(0, size, &others) == 0 {
                libc::sched_setaffinity(0, size, &allowed);
            }
        }
    }
}

// Miri has no processors: it runs one thread at a time.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod imp {
    /// Returns a number that does not limit anything: affinity is not asked for here.
    pub fn allowed_processors() -> usize {
        1024
    }

    pub(crate) fn current() -> Option<usize> {
        None
    }

    pub(crate) fn leave(_busy: Option<usize>) {}
}
