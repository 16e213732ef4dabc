//! A pool of scratch buffers that are kept from one call to the next.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Scratch buffers that a [`ScratchPool`] can keep.
///
/// `Default` makes new ones. They are `Send` because the next user may be another thread.
pub trait Scratch: Default + Send {
    /// Frees memory that is not worth keeping, after a use. Called each time the buffers go back to the pool.
    fn trim(&mut self) {}
}

/// Idle scratch buffers: as many as were ever in use at once, up to `SLOTS`.
///
/// A slot is a pointer that is swapped out and in. No lock is ever held, so a process that forks at any moment leaves its
/// child nothing locked. Taking a buffer out reads at most `SLOTS` pointers, and writes to the one that it takes.
///
/// # Examples
///
/// ```
/// use wordpiece_parallel::{Scratch, ScratchPool};
///
/// #[derive(Default)]
/// struct Line(Vec<u8>);
///
/// impl Scratch for Line {
///     fn trim(&mut self) {
///         self.0.shrink_to(1 << 20);
///     }
/// }
///
/// let pool: ScratchPool<Line> = ScratchPool::default();
/// pool.check_out().0.extend_from_slice(b"some text");
/// assert_eq!(pool.check_out().0, b"some text", "buffers keep their content: clear them before use");
/// ```
pub struct ScratchPool<T, const SLOTS: usize = 64> {
    /// Each null, or a pointer from `Box::into_raw` that the pool owns.
    slots: [AtomicPtr<T>; SLOTS],
}

impl<T, const SLOTS: usize> Default for ScratchPool<T, SLOTS> {
    fn default() -> Self {
        ScratchPool { slots: [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS] }
    }
}

/// A clone is an empty pool: buffers are not shared between owners.
impl<T, const SLOTS: usize> Clone for ScratchPool<T, SLOTS> {
    fn clone(&self) -> Self {
        ScratchPool::default()
    }
}

impl<T, const SLOTS: usize> fmt::Debug for ScratchPool<T, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScratchPool").field("slots", &SLOTS).finish_non_exhaustive()
    }
}

impl<T: Scratch, const SLOTS: usize> ScratchPool<T, SLOTS> {
    /// Returns scratch buffers for exclusive use, new ones if none wait. They go back to the pool when the guard is
    /// dropped, with their content; if it is dropped by a panic, they are freed instead.
    pub fn check_out(&self) -> ScratchGuard<'_, T, SLOTS> {
        let waiting = self.slots.iter().find_map(|slot| {
            // Load first: swapping takes the cache line for writing, and most slots are empty.
            if slot.load(Ordering::Relaxed).is_null() {
                return None;
            }
            let waiting = slot.swap(ptr::null_mut(), Ordering::Acquire);
            // SAFETY: a pointer in a slot comes from `Box::into_raw` in `ScratchGuard::drop`, and the swap took it out
            // of the only slot that held it, so this is its only owner. `T: Send`, so another thread may have made it.
            (!waiting.is_null()).then(|| unsafe { Box::from_raw(waiting) })
        });
        ScratchGuard { scratch: Some(waiting.unwrap_or_default()), pool: self }
    }

    /// Keeps buffers for the next use; frees them if all slots are taken.
    #[inline]
    fn put(&self, scratch: Box<T>) {
        let waiting = Box::into_raw(scratch);
        for slot in &self.slots {
            let empty = ptr::null_mut();
            if slot.compare_exchange(empty, waiting, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
        }
        // SAFETY: `waiting` comes from `Box::into_raw` above and no slot accepted it, so this is its only owner.
        drop(unsafe { Box::from_raw(waiting) });
    }
}

impl<T, const SLOTS: usize> Drop for ScratchPool<T, SLOTS> {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            let waiting = std::mem::replace(slot.get_mut(), ptr::null_mut());
            if !waiting.is_null() {
                // SAFETY: a pointer in a slot comes from `Box::into_raw` in `ScratchGuard::drop` and is in one slot only;
                // `&mut self` excludes other users of the pool.
                drop(unsafe { Box::from_raw(waiting) });
            }
        }
    }
}

/// A guard over scratch buffers that were checked out of a [`ScratchPool`]; returns them to it when dropped.
pub struct ScratchGuard<'a, T: Scratch, const SLOTS: usize = 64> {
    /// `Some` until the guard is dropped.
    scratch: Option<Box<T>>,
    pool: &'a ScratchPool<T, SLOTS>,
}

impl<T: Scratch, const SLOTS: usize> ScratchGuard<'_, T, SLOTS> {
    /// Returns the buffers to the pool untrimmed, after a use that cannot have made them large.
    #[inline]
    pub fn put_back(mut self) {
        if let Some(scratch) = self.scratch.take() {
            self.pool.put(scratch);
        }
    }
}

impl<T: Scratch, const SLOTS: usize> Deref for ScratchGuard<'_, T, SLOTS> {
    type Target = T;

    fn deref(&self) -> &T {
        self.scratch.as_ref().expect("taken only when the guard is dropped")
    }
}

impl<T: Scratch, const SLOTS: usize> DerefMut for ScratchGuard<'_, T, SLOTS> {
    fn deref_mut(&mut self) -> &mut T {
        self.scratch.as_mut().expect("taken only when the guard is dropped")
    }
}

impl<T: Scratch, const SLOTS: usize> Drop for ScratchGuard<'_, T, SLOTS> {
    fn drop(&mut self) {
        // A panic may have left the buffers inconsistent: those are freed.
        let Some(mut scratch) = self.scratch.take().filter(|_| !std::thread::panicking()) else { return };
        scratch.trim();
        self.pool.put(scratch);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicIsize, Ordering};

    use super::{Scratch, ScratchPool};

    /// How many buffers exist.
    static LIVE: AtomicIsize = AtomicIsize::new(0);

    struct Counted {
        uses: Vec<u8>,
    }

    impl Default for Counted {
        fn default() -> Counted {
            LIVE.fetch_add(1, Ordering::Relaxed);
            Counted { uses: Vec::new() }
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            LIVE.fetch_sub(1, Ordering::Relaxed);
        }
    }

    impl Scratch for Counted {
        fn trim(&mut self) {
            self.uses.truncate(3);
        }
    }

    #[test]
    fn buffers_are_reused_trimmed_dropped_after_a_panic_and_never_shared() {
        const ROUNDS: usize = if cfg!(miri) { 50 } else { 1000 };
        let pool: ScratchPool<Counted, 2> = ScratchPool::default();
        pool.check_out().uses.extend([1, 2, 3, 4]);
        assert_eq!(pool.check_out().uses, [1, 2, 3], "reused, trimmed");
        {
            let (first, second, third) = (pool.check_out(), pool.check_out(), pool.check_out());
            assert_eq!([first.uses.len(), second.uses.len(), third.uses.len()], [3, 0, 0]);
            assert_eq!(LIVE.load(Ordering::Relaxed), 3);
        }
        assert_eq!(LIVE.load(Ordering::Relaxed), 2, "no more than the slots are kept");
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _guard = pool.check_out();
            panic!("while in use");
        }));
        assert!(panicked.is_err());
        assert_eq!(LIVE.load(Ordering::Relaxed), 1, "freed after a panic");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let mut buffer = pool.check_out();
                        buffer.uses.clear();
                        buffer.uses.push(7);
                        assert_eq!(buffer.uses, [7]);
                    }
                });
            }
        });
        drop(pool);
        assert_eq!(LIVE.load(Ordering::Relaxed), 0, "nothing leaks");
    }
}
