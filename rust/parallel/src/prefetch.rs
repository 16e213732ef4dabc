//! A hint to the CPU to load memory that is needed soon.

/// Requests the cache line of an address, which need not be valid. Does nothing where the CPU has no such instruction, and
/// under Miri, which has no caches.
#[inline(always)]
pub fn prefetch<T>(_address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is a hint that reads nothing; any address is allowed, valid or not.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(_address.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) _address, options(nostack, preserves_flags, readonly));
    }
}
