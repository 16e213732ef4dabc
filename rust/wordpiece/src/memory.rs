//! Hints to the operating system and the CPU about memory: huge pages for large results, and prefetching.
//!
//! None of them changes what a program computes, and each does nothing where it is not supported.

/// Lists of fewer bytes are not worth a system call.
const MIN_ADVISED_BYTES: usize = 1 << 22;

/// Reserves capacity for `n` more elements, in huge pages if the list is large.
///
/// Linux backs fresh memory one page of 4 KiB at a time, with a page fault for each; a batch of a million tokens causes
/// thousands. With the hint it backs 2 MiB at once.
pub(crate) fn reserve<T>(list: &mut Vec<T>, n: usize) {
    list.reserve(n);
    if list.capacity() * size_of::<T>() >= MIN_ADVISED_BYTES {
        advise_huge_pages(list);
    }
}

/// Requests huge pages for the complete pages of a list's allocation.
#[cfg(target_os = "linux")]
fn advise_huge_pages<T>(list: &mut Vec<T>) {
    const PAGE: usize = 4096;
    let start = list.as_mut_ptr().addr().next_multiple_of(PAGE);
    let end = (list.as_ptr().addr() + list.capacity() * size_of::<T>()) & !(PAGE - 1);
    if start < end {
        // SAFETY: `start..end` is inside the list's allocation; the advice changes how its pages are backed, never what
        // they hold. A kernel without huge pages, or with larger pages, returns an error, which changes nothing.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages<T>(_list: &mut Vec<T>) {}

/// Requests the cache line at an address that will be read soon. Does nothing where the CPU has no such instruction.
#[inline(always)]
pub fn prefetch<T>(_address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint that reads nothing; any address is allowed, valid or not.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(_address.cast());
    }
}
