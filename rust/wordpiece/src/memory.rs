//! What the machine is told about memory: large results in large pages, and what will be read soon.
//!
//! The kernel gives fresh memory a page of 4 KiB at a time, a trap for each, and a batch of a million tokens takes
//! thousands. On Linux a hint lets it give 2 MiB at once.

/// Lists smaller than this do without.
const WORTH_IT: usize = 1 << 22;

/// Makes room for `n` more entries, in large pages where that is worth it.
pub(crate) fn reserve<T>(list: &mut Vec<T>, n: usize) {
    list.reserve(n);
    if list.capacity() * size_of::<T>() >= WORTH_IT {
        advise(list);
    }
}

#[cfg(target_os = "linux")]
fn advise<T>(list: &mut Vec<T>) {
    const PAGE: usize = 4096;
    let start = list.as_mut_ptr().addr().next_multiple_of(PAGE);
    let end = (list.as_ptr().addr() + list.capacity() * size_of::<T>()) & !(PAGE - 1);
    if start < end {
        // SAFETY: whole pages inside memory of ours; the advice changes how it is backed, never what it holds. A kernel
        // without large pages says no, which changes nothing.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise<T>(_list: &mut Vec<T>) {}

/// Asks for memory that will be read soon.
#[inline(always)]
pub fn prefetch<T>(_at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; no address can do harm.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(_at.cast());
    }
}
