//! Placement of threads on processors. Only Linux reports and accepts it; elsewhere these functions do nothing.

pub(crate) use imp::{current, leave};

#[cfg(all(target_os = "linux", not(miri)))]
mod imp {
    use std::mem::{MaybeUninit, size_of};

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
        let mut allowed = MaybeUninit::<libc::cpu_set_t>::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: `allowed` has `size` bytes; all zeros is a valid `cpu_set_t`; thread 0 is the calling one.
        let (status, allowed) =
            unsafe { (libc::sched_getaffinity(0, size, allowed.as_mut_ptr()), allowed.assume_init()) };
        let Some(here) = busy.filter(|&cpu| status == 0 && cpu < libc::CPU_SETSIZE as usize) else { return };
        let mut others = allowed;
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
    pub(crate) fn current() -> Option<usize> {
        None
    }

    pub(crate) fn leave(_busy: Option<usize>) {}
}
