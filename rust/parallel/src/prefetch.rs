//! A hint to the CPU to load memory that is needed soon.

/// Requests the cache line of an address, which need not be valid. Does nothing where the CPU has no such instruction.
#[inline(always)]
pub fn prefetch<T>(_address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint that reads nothing; any address is allowed, valid or not.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(_address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) _address, options(nostack, preserves_flags, readonly));
    }
}
