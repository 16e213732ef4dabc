//! Memory for large results, and a hint to the operating system: huge pages.
//!
//! A result can be much larger than its input: a short text that is padded to the length of a long one, or the
//! overlapping windows of a text. Such results are allocated with [`try_reserve`] or [`try_filled`], or checked with
//! [`check`] beforehand: a failed allocation would otherwise abort the process. The hint changes nothing in what a
//! program computes, and does nothing where it is not supported.

use crate::error::{Error, Result};

/// Lists of fewer bytes are not worth a system call.
const MIN_ADVISED_BYTES: usize = 1 << 22;

/// Results of fewer bytes are allocated without a check.
const MIN_CHECKED_BYTES: usize = 1 << 26;

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
#[cfg(all(target_os = "linux", not(miri)))]
fn advise_huge_pages<T>(list: &mut Vec<T>) {
    const PAGE: usize = 4096;
    let start = list.as_mut_ptr().map_addr(|address| address.next_multiple_of(PAGE));
    let end = (list.as_ptr().addr() + list.capacity() * size_of::<T>()) & !(PAGE - 1);
    if start.addr() < end {
        // SAFETY: `start..end` is inside the list's allocation. Where pages are larger, the kernel refuses a start inside of
        // one, and includes the page that `end` is in, which others may use as well: the advice changes how pages are
        // backed, never what they hold or who may access them. A kernel without huge pages returns an error, which changes
        // nothing.
        unsafe { libc::madvise(start.cast(), end - start.addr(), libc::MADV_HUGEPAGE) };
    }
}

// Miri has no pages.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise_huge_pages<T>(_list: &mut Vec<T>) {}

/// As [`reserve`]; if the memory cannot be allocated, an error for `rows` rows of at most `length` tokens.
///
/// # Errors
///
/// [`Error::OutOfMemory`].
pub(crate) fn try_reserve<T>(list: &mut Vec<T>, n: usize, rows: usize, length: usize) -> Result<()> {
    let bytes = n.saturating_mul(size_of::<T>());
    list.try_reserve(n).map_err(|_| Error::OutOfMemory { rows, length, bytes })?;
    if list.capacity() * size_of::<T>() >= MIN_ADVISED_BYTES {
        advise_huge_pages(list);
    }
    Ok(())
}

/// Returns `n` times the same value; if the memory cannot be allocated, an error for `rows` rows of at most `length`
/// tokens. Zeros come from the system, which need not write them.
///
/// # Errors
///
/// [`Error::OutOfMemory`].
pub(crate) fn try_filled<T: Clone>(value: T, n: usize, rows: usize, length: usize) -> Result<Vec<T>> {
    check_tokens(n, rows, length, size_of::<T>())?;
    Ok(vec![value; n])
}

/// Checks that memory for `rows` rows of `length` tokens can be allocated, if each token needs `token_bytes`.
///
/// Allocates as much and frees it again, where it is enough to fail: reserving address space takes microseconds.
///
/// # Errors
///
/// [`Error::OutOfMemory`].
pub(crate) fn check(rows: usize, length: usize, token_bytes: usize) -> Result<()> {
    check_tokens(rows.saturating_mul(length), rows, length, token_bytes)
}

/// As [`check`] for `tokens` tokens in rows that are not all of the same length; `length` is the length of the longest.
pub(crate) fn check_tokens(tokens: usize, rows: usize, length: usize, token_bytes: usize) -> Result<()> {
    let bytes = tokens.saturating_mul(token_bytes);
    if bytes < MIN_CHECKED_BYTES {
        return Ok(());
    }
    // The hint keeps the compiler from removing an allocation that nothing uses.
    let allocated = std::hint::black_box(&mut Vec::<u8>::new()).try_reserve_exact(bytes);
    allocated.map_err(|_| Error::OutOfMemory { rows, length, bytes })
}
