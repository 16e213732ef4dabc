//! Memory of a producer, which is read without ever making a reference to it.
//!
//! By the specification nobody writes to the buffers of an array before it is released. But producers hand over memory that
//! others can write to, such as a mapped file or the buffer of a `bytearray`, so what was checked once may be something else
//! the next time it is read. Whatever is read here is a copy, and all that is checked or computed is that copy.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr;

/// Consecutive items of `N` bytes each, at any alignment.
#[derive(Clone, Copy)]
pub(crate) struct Items<'a, const N: usize> {
    start: *const [u8; N],
    len: usize,
    lives: PhantomData<&'a [[u8; N]]>,
}

// SAFETY: it is used as a shared reference to bytes is, and those may go to and be used by several threads.
unsafe impl<const N: usize> Send for Items<'_, N> {}
// SAFETY: as for `Send`.
unsafe impl<const N: usize> Sync for Items<'_, N> {}

impl<'a, const N: usize> Items<'a, N> {
    /// No items.
    pub(crate) const EMPTY: Items<'static, N> = Items { start: ptr::dangling(), len: 0, lives: PhantomData };

    /// Returns the `len` items at `start`.
    ///
    /// # Safety
    ///
    /// They are inside one allocation, which is not freed for `'a`, and together have at most `isize::MAX` bytes.
    pub(crate) unsafe fn new(start: *const [u8; N], len: usize) -> Items<'a, N> {
        Items { start, len, lives: PhantomData }
    }

    /// Returns the number of items.
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// Whether there are no items.
    pub(crate) fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns a copy of an item.
    ///
    /// # Panics
    ///
    /// If there is no such item.
    pub(crate) fn get(self, index: usize) -> [u8; N] {
        assert!(index < self.len, "item {index} of {}", self.len);
        // SAFETY: the contract of `new` covers the item; an array of bytes has no alignment.
        unsafe { self.start.add(index).read() }
    }

    /// Returns a copy of the last item.
    pub(crate) fn last(self) -> Option<[u8; N]> {
        self.len.checked_sub(1).map(|last| self.get(last))
    }

    /// Returns the bytes of some items.
    ///
    /// # Panics
    ///
    /// If there are no such items.
    pub(crate) fn bytes(self, range: Range<usize>) -> Items<'a, 1> {
        assert!(range.start <= range.end && range.end <= self.len, "items {range:?} of {}", self.len);
        // SAFETY: `range` is checked to be inside of the items, which the contract of `new` covers.
        unsafe { Items::new(self.start.add(range.start).cast(), range.len() * N) }
    }

    /// Returns the bytes from byte `start` of item `index` on, `len` of them.
    ///
    /// # Panics
    ///
    /// If the item does not have them.
    pub(crate) fn bytes_of(self, index: usize, start: usize, len: usize) -> Items<'a, 1> {
        self.bytes(index..index + 1).bytes(start..start + len)
    }
}

impl Items<'_, 1> {
    /// Appends a copy of the bytes.
    pub(crate) fn append_to(self, buffer: &mut Vec<u8>) {
        buffer.reserve(self.len);
        let end = buffer.len();
        // SAFETY: the contract of `new` covers the bytes. The buffer has room for as many (reserved above), and is not
        // the producer's memory. Copied bytes are initialised.
        unsafe {
            ptr::copy_nonoverlapping(self.start.cast::<u8>(), buffer.as_mut_ptr().add(end), self.len);
            buffer.set_len(end + self.len);
        }
    }
}
